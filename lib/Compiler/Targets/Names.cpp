//===- Names.cpp - what modules call things -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/Names.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tessera;

std::string tessera::getPlace(Location location) {
  // The innermost place in a file, without folders above the source's own.
  auto file = location->findInstanceOf<FileLineColLoc>();
  if (!file)
    return "";
  return (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" +
          Twine(file.getColumn()))
      .str();
}

std::optional<DType> tessera::getDType(Type element) {
  std::string name;
  llvm::raw_string_ostream(name) << element;
  if (element.isUnsignedInteger())
    name.erase(1, 1); // MLIR's ui32 is u32
  return dtypeFromName(name);
}
