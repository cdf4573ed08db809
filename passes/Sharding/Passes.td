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
// From decided views to planned reshards
//===----------------------------------------------------------------------===//

def DecomposeReshardingsPass
    : Pass<"tv-decompose-reshardings", "::mlir::func::FuncOp"> {
  let summary = "Makes each op one that moves nothing, and adds tv.reshard";
  let description = [{
    Where the views of an op's operands and results disagree, the op is divided
    over the mesh in the way that moves the fewest bytes before and after it; on a
    tie weights stay where they are, then large operands do. A reduction over a
    split factor gives a partial result. What is added to such a result once, as
    the bias of a linear, becomes partial itself, which moves nothing. Partial
    values are combined later where that moves fewer bytes.

    ```mlir
    %y = tv.linear %x, %w bias %b
       : (tensor<4x8xf32, #tv.view<#m, [4, did(tp) * 4]>>,
          tensor<6x8xf32, #tv.view<#m, [6, did(tp) * 4]>>,
          tensor<6xf32, #tv.view<#m, [6]>>)
      -> tensor<4x6xf32, #tv.view<#m, [4, 6]>>
    ```

    becomes

    ```mlir
    %c = tv.reshard %b : (tensor<6xf32, #tv.view<#m, [6]>>)
      -> tensor<6xf32, #tv.view<#m, [6], partial = [tp : sum]>>
    %p = tv.linear %x, %w bias %c : (...)
      -> tensor<4x6xf32, #tv.view<#m, [4, 6], partial = [tp : sum]>>
    %y = tv.reshard %p : (tensor<4x6xf32, #tv.view<#m, [4, 6], partial = [tp : sum]>>)
      -> tensor<4x6xf32, #tv.view<#m, [4, 6]>>
    ```
  }];
}

def VerifyDecomposedPass
    : Pass<"tv-verify-decomposed", "::mlir::func::FuncOp"> {
  let summary = "Checks that each op is local or a tv.reshard";
  let description = [{
    The contract of the phase after `tv-decompose-reshardings`: for each op but
    `tv.reshard`, a device computes its part of the results from its parts of the
    operands.

    ```mlir
    // rejected: result #0 must be partial along tp
    %y = tv.reduce sum %x dims [0] : (tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>)
      -> tensor<f32, #tv.view<#m, []>>
    ```
  }];
}

def ElideReshardsPass : Pass<"tv-elide-reshards", "::mlir::func::FuncOp"> {
  let summary = "Removes reshards that need not be, or makes them cheaper";
  let description = [{
    Reshards that change nothing or repeat another vanish; a reshard of a reshard
    starts at the first one's operand; an op that has reshards of its own before and
    after it is placed anew between their outer views. Bytes moved never rise.

    ```mlir
    %a = tv.reshard %x : (tensor<8xf32, #tv.view<#m, [8], partial = [tp : sum]>>)
      -> tensor<8xf32, #tv.view<#m, [8]>>
    %b = tv.reshard %a : (tensor<8xf32, #tv.view<#m, [8]>>)
      -> tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>
    ```

    becomes, when `%a` has no other use,

    ```mlir
    %b = tv.reshard %x : (tensor<8xf32, #tv.view<#m, [8], partial = [tp : sum]>>)
      -> tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>
    ```
  }];
}

def PlanReshardsPass : Pass<"tv-plan-reshards", "::mlir::func::FuncOp"> {
  let summary = "Makes each tv.reshard a chain of planned steps";
  let description = [{
    The planner (Layout/Planner.h) prices its candidates for each reshard, with
    dynamic extents at their declared maximum. The cheapest becomes a chain of
    reshards of one step each. A remark tells plan, bytes, lower bound, cost and
    the cheapest alternative.

    ```mlir
    %y = tv.reshard %x : (tensor<8xf32, #tv.view<#m, [8], partial = [tp : sum]>>)
      -> tensor<8xf32, #tv.view<#m, [8]>>
    ```

    becomes

    ```mlir
    %y = tv.reshard %x plan <all_reduce over #m [tp], loser = "...">
       : (tensor<8xf32, #tv.view<#m, [8], partial = [tp : sum]>>)
      -> tensor<8xf32, #tv.view<#m, [8]>>
    ```
  }];
  let options = [
    Option<"explain", "explain", "bool", /*default=*/"false",
           "Report each plan as a remark diagnostic too">
  ];
  let statistics = [Statistic<"planned", "reshards", "Reshards planned">];
}

def VerifyPlannedPass : Pass<"tv-verify-planned", "::mlir::func::FuncOp"> {
  let summary = "Checks that each tv.reshard is one planned step";
  let description = [{
    The contract of the phase after `tv-plan-reshards`, in addition to that of
    `tv-verify-decomposed`: every reshard has a plan, which combines exactly the
    partial states that vanish.

    ```mlir
    // rejected: no plan
    %y = tv.reshard %x : (tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>)
      -> tensor<8xf32, #tv.view<#m, [8]>>
    ```
  }];
}

//===----------------------------------------------------------------------===//
// Orders in memory
//===----------------------------------------------------------------------===//

def ReorderShardedAxisPass
    : Pass<"tv-reorder-sharded-axis", "::mlir::func::FuncOp"> {
  let summary = "Orders both ends of a collective so that it works in place";
  let description = [{
    An all-gather or reduce-scatter over a dimension that is not outermost needs no
    packing when both ends have that dimension outermost in memory. Values that the
    program is free to lay out get such an `alloc`; arguments and results of the
    function are row-major unless the user's view says otherwise.

    ```mlir
    %g = tv.gelu %x : (tensor<4x6xf32, #rows>) -> tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3]>>
    %y = tv.reshard %g plan <all_gather over #m [tp]> : (...)
      -> tensor<4x6xf32, #tv.view<#m, [4, 6]>>
    ```

    becomes

    ```mlir
    %g = tv.gelu %x : (tensor<4x6xf32, #rows>)
      -> tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3], alloc = (1, 0)>>
    %y = tv.reshard %g plan <all_gather over #m [tp]> : (...)
      -> tensor<4x6xf32, #tv.view<#m, [4, 6], alloc = (1, 0)>>
    ```
  }];
  let statistics = [Statistic<"reordered", "reordered",
                              "Collectives whose ends got an order of their own">];
}

def MakeReshardingContiguousPass
    : Pass<"tv-make-resharding-contiguous", "::mlir::func::FuncOp"> {
  let summary = "Gives every value an order in memory, copying where it must";
  let description = [{
    Decides `alloc` of every value. Where the shard of an all-gather or
    reduce-scatter could not get the order of the whole, as an argument that is
    row-major, one copy brings it there: a step that moves nothing and changes
    `alloc` alone.

    ```mlir
    %y = tv.reshard %arg plan <all_gather over #m [tp]>
       : (tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3]>>)
      -> tensor<4x6xf32, #tv.view<#m, [4, 6], alloc = (1, 0)>>
    ```

    becomes

    ```mlir
    %c = tv.reshard %arg plan <slice over #m []>
       : (tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3], alloc = (0, 1)>>)
      -> tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3], alloc = (1, 0)>>
    %y = tv.reshard %c plan <all_gather over #m [tp]>
       : (tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3], alloc = (1, 0)>>)
      -> tensor<4x6xf32, #tv.view<#m, [4, 6], alloc = (1, 0)>>
    ```
  }];
  let statistics = [Statistic<"copies", "copies",
                              "Copies that pack the operands of collectives">];
}

def VerifyAllocatedPass : Pass<"tv-verify-allocated", "::mlir::func::FuncOp"> {
  let summary = "Checks that every value has an order in memory";
  let description = [{
    The contract of the phase after `tv-make-resharding-contiguous`: `alloc` on
    every view, and the ends of an all-gather or reduce-scatter in one order where
    that makes the shards chunks of the whole.

    ```mlir
    // rejected: no alloc
    func.func @f(%x: tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>)
    ```
  }];
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
