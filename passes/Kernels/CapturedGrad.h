//===- CapturedGrad.h - gradients of captured tensors -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_CAPTUREDGRAD_H
#define TESSERA_KERNELS_CAPTUREDGRAD_H

#include "Kernels/BuildLocal.h"

namespace tessera {

/// What tells the indices apart that a score_grad adds at, beside batch and
/// head: "query", "key", "distance" of the two, or "score" for all else.
llvm::StringRef getSumBy(tv::AccumulateOp accumulate);

/// Whether devices have all queries or an equal block of them, and of the keys:
/// then `flash` may sum by distance.
bool hasDistances(tv::AttentionGradOp op);

/// The sums by query or distance that a kernel of `flash` has shared memory
/// for.
inline constexpr int64_t kMostSums = 8;

/// An error if a score_mod has no score_grad.
llvm::LogicalResult checkScoreGrad(tv::AttentionGradOp op);

/// The gradients of the captured tensors, from what each tv.accumulate of the
/// op adds: for all `scores` [B, H, S, T], or, if `bySums`, summed by what
/// getSumBy says (plan.attention_grad).
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
sumCaptured(Build &build, tv::AttentionGradOp op, const LocalShape &scores,
            mlir::ValueRange addends, bool bySums);

/// In the result's element type.
mlir::Value castTo(Build &build, mlir::Value value, mlir::Type result);

} // namespace tessera

#endif // TESSERA_KERNELS_CAPTUREDGRAD_H
