//===- LoopKernels.h - ops with a kernel of their own ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_LOOPKERNELS_H
#define TESSERA_KERNELS_LOOPKERNELS_H

#include "Kernels/FusedKernel.h"

namespace tessera {
/// Whether an op writes in an order of its own, in a kernel that computes the
/// free ops that it reads.
bool hasOwnOrder(mlir::Operation *op);
/// The kernel of such an op: a scatter copies `init`, then does the updates of
/// each place in order; a cumsum adds up each row in order; a dispatch gives
/// out rows in order, counting those of each expert.
void emitInOrder(KernelEmitter &emitter, mlir::Operation *op);
/// Whether a scatter has as many threads as there are elements, or more, which
/// take sorted updates: on GPUs, where sizes are known and updates many. Small
/// floats are then added in f32.
bool isSorted(tv::ScatterOp op);
void emitSortedScatter(KernelEmitter &emitter, tv::ScatterOp op);

/// Gradients of wider heads have kernels without such tiles, block masks and
/// sums for captured tensors.
inline constexpr int64_t kMostNarrowDepth = 128;
/// The `flash` variant of attention: one op. Emits the kernel's only output, or
/// two if the log-sum-exp is used.
void emitAttention(KernelEmitter &emitter, tv::AttentionOp op);
/// The same of its gradient, with sums for captured tensors: its results, and
/// scratch memory: its own, and where query heads share keys, the gradients of
/// keys and values of each. `walks` are those of its block mask, or null.
void emitAttentionGrad(KernelEmitter &emitter, tv::AttentionGradOp op,
                       mlir::Value walks, mlir::TypeRange scratch);

/// What an op is called in reports.
llvm::StringRef getSource(mlir::Operation *op);

/// The variant of a matrix product that is a kernel.
inline constexpr llvm::StringLiteral kOwnProduct = "own";
/// The dimensions of the factors in the orders in which it reads them: rows
/// [.., M, K] and [N, K], or a batch of such, of a result [.., M, N].
struct ProductOrders {
  llvm::SmallVector<int64_t> a, b;
};
/// Nothing if the product is no such.
std::optional<ProductOrders> getProductOrders(tv::ContractionOpInterface op);
/// This variant of a product, of its factors in these orders, and the ops of
/// `fused` behind it: one op. `outputs` are those of their values that others
/// need.
void emitProduct(KernelEmitter &emitter, const FusedOps &fused, mlir::Value a,
                 mlir::Value b, llvm::ArrayRef<mlir::Value> outputs);
/// Whether such a product, the first of `fused`, may compute `op` in its
/// epilogue, as far as what is stored is concerned.
bool mayFollowProduct(const FusedOps &fused, mlir::Operation *op);

/// The labels of a product's local dimensions; nothing where a view merges
/// dimensions that the product does not merge.
std::optional<tv::ContractionLabels>
getLocalLabels(tv::ContractionOpInterface op);
/// Whether no local dimension spans several global ones.
bool isPlain(mlir::Value tensor);
/// Whether dimension `unit` is innermost and rows are multiples of 8 elements
/// where tv-emit-kernels puts a value, which may be a window.
bool hasBoxes(mlir::Value tensor, int64_t unit);
/// The same of a value in memory of its own.
bool hasOwnBoxes(mlir::RankedTensorType type, int64_t unit);
} // namespace tessera

#endif // TESSERA_KERNELS_LOOPKERNELS_H
