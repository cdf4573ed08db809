//===- ExpandAttention.h - attention as core ops ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_EXPANDATTENTION_H
#define TESSERA_KERNELS_EXPANDATTENTION_H

#include "TensorView/TensorView.h"

#include "mlir/IR/Builders.h"

namespace tessera {
/// The `math` variant of attention and of its gradient, on local types: the
/// values of its results, with all scores in memory.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
expandAttention(tv::AttentionOp op, mlir::OpBuilder &b);
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
expandAttentionGrad(tv::AttentionGradOp op, mlir::OpBuilder &b);

/// Has mask_mod say what the block mask of an attention or its gradient says;
/// the op keeps a mask of blocks that `tile` divides, two of the own ones where
/// these are of odd multiples of its half.
void coarsenBlockMask(tv::AttentionOp op, int64_t tile);
void coarsenBlockMask(tv::AttentionGradOp op, int64_t tile);

/// Has mask_mod say all that a block mask says.
void foldBlockMask(tv::AttentionOp op);
void foldBlockMask(tv::AttentionGradOp op);

/// The same of where packed sequences begin and what of them is used: mask_mod
/// loads the sequence of each position, which ops before the attention compute.
void foldSequences(tv::AttentionOp op);
void foldSequences(tv::AttentionGradOp op);

/// Whether devices have parts of the queries or of the keys.
bool splitsPositions(tv::AttentionOp op);
bool splitsPositions(tv::AttentionGradOp op);

/// Gathers keys and values that lie in pages.
void foldPages(tv::AttentionOp op);

/// The `flash` variant of a gradient: the op as it stands, and, for captured
/// tensors, sums that it makes and what makes their gradients of these. It is
/// there again for each kMostSums more.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
expandToFlash(tv::AttentionGradOp op, mlir::OpBuilder &b,
              llvm::SmallVectorImpl<tv::AttentionGradOp> &made);
} // namespace tessera

#endif // TESSERA_KERNELS_EXPANDATTENTION_H
