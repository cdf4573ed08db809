//===- tessera-lsp-server.cpp - programs in an editor ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The Language Server Protocol over standard input and output. MLIR's own
// server says neither what passes find nor how values lie.
//
//===----------------------------------------------------------------------===//

#include "Document.h"
#include "Support/StandardStreams.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/LSP/Transport.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;
using namespace llvm::lsp;

namespace {
class Server {
public:
  explicit Server(JSONTransport &transport);

  void initialize(const InitializeParams &, Callback<json::Value> reply);
  void initialized(const InitializedParams &) {}
  void shutdown(const NoParams &, Callback<std::nullptr_t> reply);
  void open(const DidOpenTextDocumentParams &params);
  void change(const DidChangeTextDocumentParams &params);
  void close(const DidCloseTextDocumentParams &params);
  void hover(const TextDocumentPositionParams &params,
             Callback<std::optional<Hover>> reply);
  void define(const TextDocumentPositionParams &params,
              Callback<std::optional<Location>> reply);

  MessageHandler handler;
  bool isShutDown = false;

private:
  void set(const URIForFile &uri, StringRef text, int64_t version);

  OutgoingNotification<PublishDiagnosticsParams> publish;
  StringMap<std::unique_ptr<tessera::lsp::Document>> documents;
};
} // namespace

Server::Server(JSONTransport &transport) : handler(transport) {
  handler.method("initialize", this, &Server::initialize);
  handler.notification("initialized", this, &Server::initialized);
  handler.method("shutdown", this, &Server::shutdown);
  handler.notification("textDocument/didOpen", this, &Server::open);
  handler.notification("textDocument/didChange", this, &Server::change);
  handler.notification("textDocument/didClose", this, &Server::close);
  handler.method("textDocument/hover", this, &Server::hover);
  handler.method("textDocument/definition", this, &Server::define);
  publish = handler.outgoingNotification<PublishDiagnosticsParams>(
      "textDocument/publishDiagnostics");
}

void Server::initialize(const InitializeParams &, Callback<json::Value> reply) {
  reply(json::Object{
      {"serverInfo", json::Object{{"name", "tessera-lsp-server"},
                                  {"version", TESSERA_VERSION}}},
      {"capabilities",
       json::Object{// A change sends the whole text.
                    {"textDocumentSync",
                     json::Object{{"openClose", true}, {"change", 1}}},
                    {"hoverProvider", true},
                    {"definitionProvider", true}}}});
}

void Server::shutdown(const NoParams &, Callback<std::nullptr_t> reply) {
  isShutDown = true;
  reply(nullptr);
}

void Server::set(const URIForFile &uri, StringRef text, int64_t version) {
  auto &document = documents[uri.file()];
  document = std::make_unique<tessera::lsp::Document>(uri, text);
  PublishDiagnosticsParams params(uri, version);
  params.diagnostics = document->getDiagnostics();
  publish(params);
}

void Server::open(const DidOpenTextDocumentParams &params) {
  const TextDocumentItem &item = params.textDocument;
  set(item.uri, item.text, item.version);
}

void Server::change(const DidChangeTextDocumentParams &params) {
  if (!params.contentChanges.empty())
    set(params.textDocument.uri, params.contentChanges.back().text,
        params.textDocument.version);
}

void Server::close(const DidCloseTextDocumentParams &params) {
  documents.erase(params.textDocument.uri.file());
  publish(PublishDiagnosticsParams(params.textDocument.uri, 0));
}

void Server::hover(const TextDocumentPositionParams &params,
                   Callback<std::optional<Hover>> reply) {
  auto it = documents.find(params.textDocument.uri.file());
  reply(it == documents.end() ? std::nullopt
                              : it->second->getHover(params.position));
}

void Server::define(const TextDocumentPositionParams &params,
                    Callback<std::optional<Location>> reply) {
  auto it = documents.find(params.textDocument.uri.file());
  reply(it == documents.end() ? std::nullopt
                              : it->second->getDefinition(params.position));
}

int main(int argc, char **argv) {
  tessera::holdStandardStreams();
  InitLLVM init(argc, argv, /*InstallPipeSignalExitHandler=*/false);
  cl::SetVersionPrinter(
      [](raw_ostream &os) { os << "Tessera " TESSERA_VERSION "\n"; });
  cl::ParseCommandLineOptions(
      argc, argv,
      "Tessera: shows an editor the errors and views of a program, by the "
      "Language Server Protocol on standard input and output\n");
  JSONTransport transport(stdin, outs());
  Server server(transport);
  // An editor that goes closes the input; this is no error.
  if (Error error = transport.run(server.handler)) {
    consumeError(std::move(error));
    return ferror(stdin) != 0;
  }
  return !server.isShutDown; // as the protocol asks
}
