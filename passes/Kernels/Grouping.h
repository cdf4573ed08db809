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

namespace tessera {

/// One op of the plan: fused ops, or one op of another kind.
struct PlanStep {
  mlir::Operation *op; ///< the one op, or the last of the fused ones
  std::optional<FusedOps> fused;
  size_t first, last; ///< places of its ops in the program
  /// Of a collective, the one before it: all ranks run them in one order.
  std::optional<size_t> before = std::nullopt;
  /// Whether the fused ops begin with a matrix product of our own.
  bool isProduct = false;
  /// Of fused ops, the values that other steps read.
  llvm::SetVector<mlir::Value> outputs{};
};

/// The steps of a program of local tensors, in an order that their data asks
/// for. `matmul` are the variants of matrix products that are allowed, the
/// preferred first; none: the backend's library. A gelu behind a product of our
/// own is decomposed, and ops that variants of several choices share get
/// copies.
mlir::FailureOr<std::vector<PlanStep>>
groupSteps(mlir::func::FuncOp main, llvm::StringRef target,
           llvm::ArrayRef<std::string> matmul);

} // namespace tessera

#endif // TESSERA_KERNELS_GROUPING_H
