//===- Callee.h - functions whose ops are put elsewhere ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIFFERENTIATE_CALLEE_H
#define TESSERA_DIFFERENTIATE_CALLEE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::tv {

/// An error at `user` if the function checks a result ('tv.check'): where its
/// ops go, nobody would.
llvm::LogicalResult verifyUnchecked(mlir::Operation *user,
                                    mlir::func::FuncOp callee);

} // namespace tessera::tv

#endif // TESSERA_DIFFERENTIATE_CALLEE_H
