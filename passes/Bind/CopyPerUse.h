//===- CopyPerUse.h - values made for each use ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BIND_COPYPERUSE_H
#define TESSERA_BIND_COPYPERUSE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::tv {

/// Values that are cheaper to make than to move get one copy a use.
llvm::LogicalResult copyPerUse(mlir::func::FuncOp function);

} // namespace tessera::tv

#endif // TESSERA_BIND_COPYPERUSE_H
