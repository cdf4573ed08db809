//===- Grouping.h - which ops run together --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_GROUPING_H
#define TESSERA_KERNELS_GROUPING_H

#include "Kernels/FusedKernel.h"
#include "Kernels/Variants.h"
#include "Plan/Target.h"

namespace tessera {

/// A matrix product.
struct Product {
  /// Those in the plan; without a name the backend's library, and nothing to
  /// choose.
  FittingVariants variants;

  /// Whether one of the variants is a kernel of our own.
  bool hasKernel() const;
};

/// One step of the plan: fused ops, or one op of another kind.
struct PlanStep {
  mlir::Operation *op; ///< the one op, or the last of the fused ones
  std::optional<FusedOps> fused;
  size_t first, last; ///< places of its ops in the program
  /// Of a collective, the one before it: all ranks run them in one order.
  std::optional<size_t> before = std::nullopt;
  /// If there is one: the op itself, or the first of the fused ops of its own
  /// kernel.
  std::optional<Product> product = std::nullopt;
  /// What the library of the product does as well, in the same step. Where one
  /// of its variants is a kernel, that is one of the fused ops.
  llvm::SmallVector<plan::Fusion, 2> joined{};
  /// The values that other steps read.
  llvm::SetVector<mlir::Value> outputs{};
};

struct Grouping {
  /// In an order that their data asks for.
  std::vector<PlanStep> steps;
  /// Of all ops, in an order in which they could run.
  llvm::DenseMap<mlir::Operation *, size_t> placeOf;
  /// The ops that compute free ones in their loops; others read all operands in
  /// memory.
  llvm::DenseSet<mlir::Operation *> loops;
  /// Those that are as free: copies alone read them (getCopied), or they are
  /// cheaper to make again than to keep.
  llvm::DenseSet<mlir::Operation *> copied;
};

/// The steps of a program of local tensors. `matmul` are the variants of matrix
/// products that are allowed, the preferred first; none: the backend's library.
/// Nothing is changed.
mlir::FailureOr<Grouping> groupSteps(mlir::func::FuncOp main,
                                     llvm::ArrayRef<std::string> matmul);

/// Moves ops into a group at the builder's place, with copies of the free ones
/// that they compute; its results, the `outputs`, go to all who read them.
plan::GroupOp makeGroup(mlir::OpBuilder &builder,
                        llvm::ArrayRef<mlir::Operation *> ops,
                        llvm::ArrayRef<mlir::Value> outputs,
                        const Grouping &of);

/// Whether the step of an op on all elements reads this operand; what it does
/// not read only says what its results are.
bool isRead(mlir::OpOperand &operand);

} // namespace tessera

#endif // TESSERA_KERNELS_GROUPING_H
