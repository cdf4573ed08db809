//===- SwapComposites.h - composites, or core ops instead -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLACE_SWAPCOMPOSITES_H
#define TESSERA_PLACE_SWAPCOMPOSITES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::tv {

/// Of `function`, whose values have views: composites of one result that need a
/// dimension whole, and the last of the core ops that define such a one.
llvm::SmallVector<mlir::Operation *> findSwaps(mlir::func::FuncOp function);

/// Puts core ops in place of such a composite, or it in place of these, all on
/// whole values; fails if it cannot, and then has changed something.
mlir::LogicalResult swapComposite(mlir::Operation *op);

} // namespace tessera::tv

#endif // TESSERA_PLACE_SWAPCOMPOSITES_H
