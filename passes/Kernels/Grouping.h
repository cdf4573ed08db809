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
  /// Of one that has a kernel, what follows it, decomposed, that a library
  /// computes with it.
  std::optional<plan::Fusion> epilogue{};

  /// Whether one of the variants is a kernel of our own.
  bool hasKernel() const;
};

/// One op of the plan: fused ops, or one op of another kind.
struct PlanStep {
  mlir::Operation *op; ///< the one op, or the last of the fused ones
  std::optional<FusedOps> fused;
  size_t first, last; ///< places of its ops in the program
  /// Of a collective, the one before it: all ranks run them in one order.
  std::optional<size_t> before = std::nullopt;
  /// If there is one: the op itself, or the first of the fused ops of its own
  /// kernel.
  std::optional<Product> product = std::nullopt;
  /// Of a product without a kernel, what the library does as well.
  llvm::SmallVector<plan::Fusion, 2> joined{};
  /// Of fused ops, the values that other steps read.
  llvm::SetVector<mlir::Value> outputs{};
};

/// The steps of a program of local tensors, in an order that their data asks
/// for. `matmul` are the variants of matrix products that are allowed, the
/// preferred first; none: the backend's library. What was kept for a library
/// behind a product that has a kernel is decomposed, and ops that variants of
/// several choices share get copies.
mlir::FailureOr<std::vector<PlanStep>>
groupSteps(mlir::func::FuncOp main, llvm::ArrayRef<std::string> matmul);

} // namespace tessera

#endif // TESSERA_KERNELS_GROUPING_H
