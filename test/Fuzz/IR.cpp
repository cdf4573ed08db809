//===- IR.cpp - any text as a program -------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An input is a program whose first line may be a comment that says what it
// goes through: a pass or several, as tessera-opt takes them, or what
// tessera-compile does.
//
//     // tv-bind,tv-propagate-shardings
//     // tessera{from=local to=kernels}
//     // module
//
// What is refused has an error at a place; what is not must be valid, and read
// back; a module must be one that the runtime reads.
//
// Mutants are of tokens, lines and passes rather than of bytes, as most that is
// not a program ends in the parser.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Register.h"
#include "Compiler/VerifyInput.h"
#include "Fuzz.h"
#include "Module/Module.h"
#include "tessera/Compiler.h"

#include "lib/TestPasses.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace tessera;
using llvm::StringRef;

/// Our passes: those that are registered with their names.
static std::vector<std::string> passNames;

extern "C" __attribute__((visibility("default"))) int
LLVMFuzzerInitialize(int *, char ***) {
  registerAllPasses();
  test::registerPrintRulesPass();
  // MLIR tells their names to no one but stdout.
  int out = dup(STDOUT_FILENO), list = memfd_create("passes", 0);
  FUZZ_CHECK(out >= 0 && list >= 0 && dup2(list, STDOUT_FILENO) >= 0);
  printRegisteredPasses();
  llvm::outs().flush();
  FUZZ_CHECK(dup2(out, STDOUT_FILENO) >= 0);
  std::string text(lseek(list, 0, SEEK_END), '\0');
  FUZZ_CHECK(pread(list, text.data(), text.size(), 0) == ssize_t(text.size()));
  close(out);
  close(list);
  for (StringRef line : llvm::split(text, '\n'))
    if (line.consume_front("  --tv-"))
      passNames.push_back(("tv-" + line.take_until(llvm::isSpace)).str());
  FUZZ_CHECK(!passNames.empty());
  return 0;
}

static void compileToModule(std::string_view program) {
  CompileResult result = compile(program, {});
  if (!result.succeeded) {
    FUZZ_CHECK(result.diagnostics.find("error: ") != std::string::npos);
    return;
  }
  Result<ModuleReader> module = ModuleReader::read(result.output);
  if (!module)
    std::fprintf(stderr, "%s\n", module.message().c_str());
  FUZZ_CHECK(bool(module));
}

int test::fuzzOne(std::string_view input) {
  StringRef passes, program = input;
  if (program.starts_with("//"))
    passes = program.take_until([](char c) { return c == '\n'; })
                 .drop_front(2)
                 .trim();
  if (passes == "module") {
    compileToModule(input);
    return 0;
  }

  DialectRegistry registry;
  registerAll(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  bool failedWithError = false;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    failedWithError |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
  });
  PassManager manager(&context);
  manager.enableVerifier();
  if (failed(parsePassPipeline(passes, manager, llvm::nulls())) ||
      manager.empty()) {
    manager.clear();
    FUZZ_CHECK(succeeded(parsePassPipeline("tessera", manager)));
  }
  ParserConfig config(&context, /*verifyAfterParse=*/false);
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(program, config, "input");
  if (!module) {
    FUZZ_CHECK(failedWithError);
    return -1;
  }
  if (failed(verifyInput(*module)) || failed(manager.run(*module))) {
    FUZZ_CHECK(failedWithError);
    return 0;
  }
  FUZZ_CHECK(succeeded(verify(*module)));
  std::string text;
  llvm::raw_string_ostream(text) << *module;
  OwningOpRef<ModuleOp> again =
      parseSourceString<ModuleOp>(text, config, "output");
  FUZZ_CHECK(again && succeeded(verifyInput(*again)));
  return 0;
}

//===----------------------------------------------------------------------===//
// Mutants
//===----------------------------------------------------------------------===//

namespace {
/// A place in a text.
struct Token {
  size_t begin, end;
  char kind; ///< 'a' a word, '0' a number, 't' a type or view, else a character
};
} // namespace

static std::vector<Token> tokensOf(StringRef text) {
  std::vector<Token> tokens;
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; };
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    char kind = text[at];
    if (llvm::isDigit(text[at])) {
      // `4x8xf32` is two numbers and a word.
      kind = '0';
      while (end < text.size() && llvm::isDigit(text[end]))
        ++end;
    } else if (llvm::isAlpha(text[at]) || StringRef("%!#@_").contains(kind)) {
      kind = 'a';
      while (end < text.size() && isWord(text[end]) &&
             !(text[at] == 'x' && llvm::isDigit(text[end])))
        ++end;
    } else if (llvm::isSpace(text[at])) {
      at = end;
      continue;
    }
    tokens.push_back({at, end, kind});
    // Bracketed text counts as a whole, too: a type, a view, a list.
    if (kind == '[' || kind == '<' || kind == '(') {
      int depth = 1;
      size_t close = end;
      for (; close < text.size() && depth && text[close] != '\n'; ++close)
        depth += StringRef("[<(").contains(text[close])   ? 1
                 : StringRef("]>)").contains(text[close]) ? -1
                                                          : 0;
      if (!depth)
        tokens.push_back({at, close, 't'});
    }
    at = end;
  }
  return tokens;
}

static std::string mutant(StringRef text, std::minstd_rand &random) {
  static const char *const numbers[] = {"0",
                                        "1",
                                        "2",
                                        "3",
                                        "5",
                                        "7",
                                        "64",
                                        "65537",
                                        "?",
                                        "-1",
                                        "4611686018427387904",
                                        "9223372036854775807",
                                        "9223372036854775808"};
  auto among = [&](size_t count) {
    return random() % std::max<size_t>(count, 1);
  };
  auto [first, rest] = text.split('\n');
  if (among(8) == 0 && text.starts_with("//"))
    return "// " + passNames[among(passNames.size())] + "\n" + rest.str();
  if (among(4) == 0) { // a line
    llvm::SmallVector<StringRef> lines;
    rest.split(lines, '\n');
    size_t from = among(lines.size()), to = among(lines.size());
    StringRef line = lines[from];
    if (among(2))
      lines.erase(lines.begin() + from);
    if (among(2))
      lines.insert(lines.begin() + std::min(to, lines.size()), line);
    return first.str() + "\n" + llvm::join(lines, "\n");
  }
  std::vector<Token> tokens = tokensOf(rest);
  if (tokens.empty())
    return text.str();
  // Most often what, changed everywhere, leaves types that agree.
  char want = StringRef("000tt ")[among(6)];
  Token old = tokens[among(tokens.size())];
  for (int tries = 0; tries < 64 && want != ' ' && old.kind != want; ++tries)
    old = tokens[among(tokens.size())];
  StringRef was = rest.slice(old.begin, old.end);
  std::string becomes;
  if (old.kind == '0' && among(2)) {
    becomes = numbers[among(std::size(numbers))];
  } else { // what stands elsewhere for the like
    std::vector<Token> like;
    std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(like),
                 [&](const Token &token) {
                   return token.kind == old.kind &&
                          (token.kind != 'a' ||
                           llvm::isAlpha(rest[token.begin]) ==
                               llvm::isAlpha(was[0])) &&
                          (token.kind != 't' || rest[token.begin] == was[0]);
                 });
    Token other = like[among(like.size())];
    becomes = rest.slice(other.begin, other.end).str();
  }
  std::string result = first.str() + "\n";
  if (want != ' ' && among(4)) { // everywhere
    size_t at = 0;
    for (const Token &token : tokens) {
      if (token.begin < at || rest.slice(token.begin, token.end) != was)
        continue;
      result += rest.slice(at, token.begin).str() + becomes;
      at = token.end;
    }
    return result + rest.substr(at).str();
  }
  return result + rest.take_front(old.begin).str() + becomes +
         rest.substr(old.end).str();
}

extern "C" __attribute__((visibility("default"))) size_t
LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);
extern "C" __attribute__((visibility("default"))) size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                        unsigned seed) {
  std::minstd_rand random(seed);
  if (random() % 16 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string text(reinterpret_cast<char *>(data), size);
  for (unsigned count = random() % 3 ? 1 : 2; count; --count)
    text = mutant(text, random);
  return text.copy(reinterpret_cast<char *>(data), maxSize);
}
