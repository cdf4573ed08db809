//===- Document.h - what is known of a program's text ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A text is read and, if it is a program, compiled up to the phase `planned` on
// a copy, from which come errors, the views of values, and why they are so.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LSP_DOCUMENT_H
#define TESSERA_LSP_DOCUMENT_H

#include "Layout/View.h"

#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/LSP/Protocol.h"
#include "llvm/Support/SourceMgr.h"

#include <map>
#include <set>

namespace tessera::lsp {

/// A line and a column, from 1, as MLIR's locations have them.
using Place = std::pair<unsigned, unsigned>;

/// How one value lies once views are propagated.
struct Lying {
  mlir::RankedTensorType type;
  layout::Shape extents; ///< with dynamic ones at their maximum
  bool operator==(const Lying &) const = default;
};

class Document {
public:
  Document(const llvm::lsp::URIForFile &uri, llvm::StringRef text);

  const std::vector<llvm::lsp::Diagnostic> &getDiagnostics() const {
    return diagnostics;
  }
  /// Nothing where there is no name.
  std::optional<llvm::lsp::Hover> getHover(llvm::lsp::Position position);
  std::optional<llvm::lsp::Location>
  getDefinition(llvm::lsp::Position position);

private:
  /// A name in the text, where it is defined, and what there is to say of it.
  struct Name {
    llvm::SMRange range, definition;
    std::string text;
  };
  /// The results of an op that has been through propagation, and the calls that
  /// it was inlined through.
  struct Propagated {
    mlir::OperationName name;
    llvm::SmallVector<Place> callers;
    llvm::SmallVector<Lying> results;
  };

  bool isSource();
  void compile();
  void record(mlir::func::FuncOp function);
  void add(mlir::Diagnostic &diagnostic);
  /// The places of an op and of the calls around it.
  llvm::SmallVector<Place> getPlaces(mlir::Location location);

  std::optional<Name> find(llvm::lsp::Position position);
  std::string describe(mlir::ValueRange values, llvm::SMRange name);
  /// What was asked about: functions may call each other in circles, and the
  /// same one often.
  using Asked = std::set<std::pair<const void *, std::optional<Place>>>;
  /// How `value` lies wherever it is, or where `caller` calls its function.
  void findLyings(mlir::Value value, std::optional<Place> caller,
                  llvm::SmallVectorImpl<Lying> &lyings, Asked &asked);

  // The protocol counts columns in units of UTF-16.
  llvm::lsp::Position getPosition(llvm::SMLoc loc);
  llvm::lsp::Range getRange(llvm::SMRange range);
  llvm::SMLoc getLoc(llvm::lsp::Position position);

  llvm::lsp::URIForFile uri;
  llvm::SourceMgr sources;
  mlir::MLIRContext context;
  mlir::AsmParserState names;
  mlir::OwningOpRef<mlir::ModuleOp> program; ///< null: not one that parses
  std::vector<llvm::lsp::Diagnostic> diagnostics;
  std::map<Place, std::string> remarks;
  std::multimap<Place, Propagated> ops;
  llvm::StringMap<llvm::SmallVector<Lying>> arguments; ///< by function
};

} // namespace tessera::lsp

#endif // TESSERA_LSP_DOCUMENT_H
