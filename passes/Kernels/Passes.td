//===- Passes.td - from local tensors to kernels -----------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_PASSES_TD
#define TESSERA_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExpandComposites : Pass<"tv-expand-composites", "::mlir::func::FuncOp"> {
  let summary = "Replaces composites of local tensors by core ops";
  let description = [{
    What no pass had a use for as a whole becomes `map`, `reduce`, `broadcast` and
    matrix products: composites by their own decomposition, attention in its `math`
    variant (the scores are in memory), the bias of a `linear` as an addition.

    ```mlir
    %y = tv.linear %x, %w bias %b : ...
    // becomes
    %p = tv.linear %x, %w : ...
    %c = tv.broadcast %b dims [1] like %p : ...
    %y = tv.map %p, %c : ... (%u: f32, %v: f32) { ... arith.addf ... }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def FormKernels : Pass<"tv-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Groups ops into kernels and says where memory is";
  let description = [{
    Every op of `@main` becomes an op of `plan`, or part of a kernel, or stays an op
    of `comm`:

    - pointwise ops and reductions with the same loops become one kernel, outlined
      as a function on strided memrefs; broadcasts, index numbers, random numbers
      and splats are computed where they are used;
    - matrix products become `plan.contract`;
    - reshape, transpose, slice and the local slice of a reshard become windows on
      their source where strides allow, else a copy.

    ```mlir
    %p = tv.linear %x, %w : ...
    %y = tv.map %p : ...
    // becomes
    %p = plan.contract %x [0, 1], %w [2, 1] to [0, 2] from "tv.linear" : ...
    %y = plan.launch @map_0(%p) scalars [] from "tv.map" : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::tessera::plan::PlanDialect"];
  let statistics = [
    Statistic<"numKernels", "kernels", "Kernels made">,
    Statistic<"numCopies", "copies", "Copies of tensors">];
}

#endif // TESSERA_KERNELS_PASSES_TD
