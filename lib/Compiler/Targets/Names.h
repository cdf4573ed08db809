//===- Names.h - what modules call things ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_NAMES_H
#define TESSERA_COMPILER_TARGETS_NAMES_H

#include "Support/DType.h"

#include "mlir/IR/Location.h"
#include "mlir/IR/Types.h"

namespace tessera {

/// "file:line:column" of a location; empty if it has none.
std::string getPlace(mlir::Location location);

/// What a module calls elements of this type; none if it cannot have them.
std::optional<DType> getDType(mlir::Type element);

} // namespace tessera

#endif // TESSERA_COMPILER_TARGETS_NAMES_H
