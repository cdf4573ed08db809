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
// Propagation
//===----------------------------------------------------------------------===//

def PropagateShardingsPass
    : Pass<"tv-propagate-shardings", "::mlir::func::FuncOp"> {
  let summary = "Gives every tensor a view that follows from the user's views";
  let description = [{
    Rounds over all ops: each op carries the split of an iteration factor from one
    of its tensors to the others, forward from operands to results until nothing
    changes, then one round backward. A user's view is never changed, except for
    dimensions written with `?`; others are only split further. Where two splits
    exclude each other, the larger tensor stays; on a tie the weight. The result
    does not depend on the order of ops or operands. `explain` says in remarks
    where each split comes from, and why others were not taken.

    Tensors that nothing reaches are whole on every device. Constraints are gone
    after it: where their operand lies otherwise they become a `tv.reshard`.

    ```mlir
    func.func @f(%x: tensor<4x8xf32, #tv.view<#m, [4, 8]>>,
                 %w: tensor<16x8xf32, #tv.view<#m, [did(tp) * 8, 8]>>) -> tensor<4x16xf32> {
      %y = tv.linear %x, %w : (...) -> tensor<4x16xf32>
      return %y : tensor<4x16xf32>
    }
    ```

    becomes

    ```mlir
      %y = tv.linear %x, %w
         : (...) -> tensor<4x16xf32, #tv.view<#m, [4, did(tp) * 8]>>
    ```
  }];
  let options = [
    Option<"explain", "explain", "bool", "false",
           "Remarks that say where every decision came from">
  ];
}

//===----------------------------------------------------------------------===//
// Strict mode
//===----------------------------------------------------------------------===//

def ForbidImplicitMovesPass
    : Pass<"tv-forbid-implicit-moves", "::mlir::func::FuncOp"> {
  let summary = "Makes each move that the user did not write an error";
  let description = [{
    Runs after reshards are elided, where the pipeline is strict. A reshard that
    moves no byte, or that the user wrote as `tv.reshard` or `tv.constrain`,
    passes. Any other is an error at the op that caused it, with the bytes and the
    line to write.

    ```mlir
    %y = tv.linear %h, %w1 : (...) -> tensor<4x8xf32, #tv.view<#m, [4, 8], partial = [tp : sum]>>
    %r = tv.reshard %y : (...) -> tensor<4x8xf32, #tv.view<#m, [4, 8]>>
    ```

    is the error

    ```
    strict mode: the program does not write this move, all-reduce over [tp] of 128 bytes on a device,
    from [4, 8], partial = [tp : sum] to [4, 8]
    note: give this result the type ... and write after it: %r = tv.reshard %v : (...) -> ...
    ```

    and the program with that line passes.
  }];
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

//===----------------------------------------------------------------------===//
// For people
//===----------------------------------------------------------------------===//

def PrintRulesPass : Pass<"tv-print-rules"> {
  let summary = "Shows what each op does to dimensions";
  let description = [{
    One remark an op. A letter is a factor; each dimension lists its own.

    ```mlir
    // remark: (a, c) (b, c) added (b) -> (a, b) | a parallel 4, b parallel 16, c reduction sum 8
    %y = tv.linear %x, %w bias %b : ...
    ```
  }];
  let options = [
    Option<"rules", "rules", "bool", /*default=*/"true", "The ops' rules">,
    Option<"partial", "partial", "bool", /*default=*/"false",
           "Partial operands that an op may run on, with the results' states">,
    Option<"refused", "refused", "bool", /*default=*/"false",
           "And those that it may not, with the reason">,
    Option<"extents", "extents", "bool", /*default=*/"false",
           "Extents of results in terms of dynamic sizes">
  ];
  let dependentDialects = ["::tessera::tv::TensorViewDialect"];
}

#endif // TESSERA_SHARDING_PASSES_TD
