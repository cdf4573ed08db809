//===- Notes.h - what passes leave at ops for later ones --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_NOTES_H
#define TESSERA_TENSORVIEW_NOTES_H

#include "mlir/IR/Operation.h"

namespace tessera::tv {

/// `tv.remarks = [["...", type], ...]`, from tv-decompose-reshardings to
/// tv-place-together: remarks on the op, each with the types of its operands
/// and results of which it is true (Place/Remarks.h).
inline constexpr llvm::StringLiteral kRemarksAttr = "tv.remarks";

/// The attributes of `op` that decide something.
inline mlir::DictionaryAttr withoutNotes(mlir::Operation *op) {
  if (!op->hasAttr(kRemarksAttr))
    return op->getAttrDictionary();
  mlir::NamedAttrList attributes(op->getAttrDictionary());
  attributes.erase(kRemarksAttr);
  return attributes.getDictionary(op->getContext());
}

} // namespace tessera::tv

#endif // TESSERA_TENSORVIEW_NOTES_H
