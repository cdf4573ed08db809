//===- Passes.td - from a user's views to planned reshards -*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the order in which the pipeline runs them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_PASSES_TD
#define TESSERA_SHARDING_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Source
//===----------------------------------------------------------------------===//

def BindPass : Pass<"tv-bind", "::mlir::ModuleOp"> {
  let summary = "Fixes the mesh and gives every view its one spelling";
  let description = [{
    Applies `mesh` to the program's mesh, inlines calls, gives each use of a
    constant, iota, broadcast or random value a copy of its own, replaces `_` and
    `?`, and writes every view in canonical form, so that from here on equal types
    are equal views. What the user wrote stays as `tv.user_view` on arguments and
    results.

    With `mesh=tp=4`:

    ```mlir
    #m = #tv.mesh<tp = 2>
    func.func @f(%x: tensor<8x4xf32, #tv.view<#m, [did(tp) * _, _]>>)
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 4>
    func.func @f(%x: tensor<8x4xf32, #tv.view<#m, [did(tp) * 2, 4]>>
                     {tv.user_view = #tv.view<#m, [did(tp) * _, _]>})
    ```
  }];
  let options = [
    ListOption<"mesh", "mesh", "std::string",
               "Sizes of mesh axes, as tp=4,dp=2; axes not named keep theirs">
  ];
}

//===----------------------------------------------------------------------===//
// Decomposition
//===----------------------------------------------------------------------===//

def DecomposeCompositesPass : Pass<"tv-decompose-composites"> {
  let summary = "Replaces composites whose loops are split by core ops";
  let description = [{
    A composite such as `tv.softmax` or `tv.layer_norm` needs the dimension that it
    normalizes whole on each device. Where a view splits it, the composite becomes
    the core ops that define it, whose reductions may be split. Their values have no
    view yet: propagate again.

    ```mlir
    %r = tv.softmax %x dim 1 : (tensor<4x8xf32, #columns>) -> tensor<4x8xf32, #columns>
    ```

    becomes

    ```mlir
    %max = tv.reduce max %x dims [1] : (tensor<4x8xf32, #columns>) -> tensor<4xf32>
    %e = tv.map ... { exp(%x - %max) }
    %sum = tv.reduce sum %e dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
    %r = tv.map ... { %e / %sum } -> tensor<4x8xf32, #columns>
    ```
  }];
  let options = [
    Option<"all", "all", "bool", /*default=*/"false",
           "Replace every composite, split or not">
  ];
  let statistics = [
    Statistic<"numDecomposed", "decomposed", "Composites replaced">
  ];
  let dependentDialects = ["::tessera::tv::TensorViewDialect"];
}

#endif // TESSERA_SHARDING_PASSES_TD
