//===- BlockWalks.h - orders of gradients beside a block mask ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLAN_BLOCKWALKS_H
#define TESSERA_PLAN_BLOCKWALKS_H

#include "Plan/Plan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::plan {

/// Whether walks are those of so many queries and keys, as far as their type
/// tells.
llvm::LogicalResult verifyWalks(mlir::Operation *op, mlir::Value walks,
                                int64_t queries, int64_t keys);

/// Whether attention in the kernel that is launched goes by lists that were
/// made for it: gradients through a block mask in an order of that very mask,
/// tiles of packed sequences of as many positions and rows.
llvm::LogicalResult verifyLists(LaunchOp launch, mlir::func::FuncOp kernel,
                                mlir::SymbolTableCollection &symbols);

} // namespace tessera::plan

#endif // TESSERA_PLAN_BLOCKWALKS_H
