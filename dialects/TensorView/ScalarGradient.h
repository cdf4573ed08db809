//===- ScalarGradient.h - gradients of scalar regions ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_SCALARGRADIENT_H
#define TESSERA_TENSORVIEW_SCALARGRADIENT_H

#include "TensorView/TensorView.h"

#include "mlir/IR/IRMapping.h"

namespace tessera::tv {

/// Reverse mode over the block of a scalar region: the gradients of its
/// arguments from those of what it yields, which may be null; null where
/// nothing depends on one. `primals` maps its arguments, and what it computes,
/// to values where `builder` is; gradients are in `wide`, f32 or f64. An
/// argument or what a load gave has a gradient if `isActive` says so;
/// `accumulate` gets a load's. An error at an op that has none.
///
/// A branch that a `select` does not take has gradient 0 whatever its slope is;
/// equal operands of a maximum or minimum get half each.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
differentiateScalars(mlir::OpBuilder &builder, mlir::Block &block,
                     const mlir::IRMapping &primals, mlir::ValueRange yielded,
                     mlir::Type wide,
                     llvm::function_ref<bool(mlir::Value)> isActive,
                     llvm::function_ref<void(LoadOp, mlir::Value)> accumulate);

/// Writes the `score_grad` of an op that has a `score_mod` alone.
llvm::LogicalResult addScoreGrad(AttentionGradOp op);

} // namespace tessera::tv

#endif // TESSERA_TENSORVIEW_SCALARGRADIENT_H
