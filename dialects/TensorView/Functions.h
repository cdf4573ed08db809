//===- Functions.h - names of functions -----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_FUNCTIONS_H
#define TESSERA_TENSORVIEW_FUNCTIONS_H

#include "mlir/IR/Operation.h"

#include <string>

namespace tessera::tv {

/// `; did you mean 'x'?`, of functions that `op` may call, or nothing.
std::string suggestFunction(mlir::Operation *op, llvm::StringRef name);

} // namespace tessera::tv

#endif // TESSERA_TENSORVIEW_FUNCTIONS_H
