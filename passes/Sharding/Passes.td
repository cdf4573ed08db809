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

include "TensorView/ContractPass.td"

//===----------------------------------------------------------------------===//
// Source
//===----------------------------------------------------------------------===//

def DifferentiatePass : Pass<"tv-differentiate", "::mlir::func::FuncOp"> {
  let summary = "Writes the gradients of scalar regions";
  let description = [{
    Gives each `attention_grad` that has a score_mod, and no score_grad, the one that
    is its derivative, in reverse: what score_mod computes, as far as slopes need it,
    then the gradients of what it computes from, last to first. Where a `select` does
    not take a value, its gradient is 0 whatever its slope is; equal operands of a
    maximum or minimum get half each.

    ```mlir
    !x = tensor<2x4x8x16xf32>
    !l = tensor<2x4x8xf32>
    func.func @f(%do: !x, %q: !x, %k: !x, %v: !x, %o: !x, %lse: !l,
                 %slopes: tensor<4xf32>) -> tensor<4xf32> {
      %dq, %dk, %dv, %dslopes = tv.attention_grad %do, %q, %k, %v, %o, %lse
          scale(0.25) captured %slopes
          : (!x, !x, !x, !x, !x, !l, tensor<4xf32>) -> (!x, !x, !x, tensor<4xf32>)
        score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
          %a = tv.load %slopes[%h] : tensor<4xf32> -> f32
          %d = arith.subi %ki, %qi : index
          %i = arith.index_cast %d : index to i32
          %f = arith.sitofp %i : i32 to f32
          %r = arith.mulf %a, %f : f32
          %y = arith.addf %s, %r : f32
          tv.yield %y : f32
        }
      return %dslopes : tensor<4xf32>
    }
    ```

    becomes

    ```mlir
    !x = tensor<2x4x8x16xf32>
    !l = tensor<2x4x8xf32>
    func.func @f(%do: !x, %q: !x, %k: !x, %v: !x, %o: !x, %lse: !l,
                 %slopes: tensor<4xf32>) -> tensor<4xf32> {
      %dq, %dk, %dv, %dslopes = tv.attention_grad %do, %q, %k, %v, %o, %lse
          scale(0.25) captured %slopes
          : (!x, !x, !x, !x, !x, !l, tensor<4xf32>) -> (!x, !x, !x, tensor<4xf32>)
        score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
          %a = tv.load %slopes[%h] : tensor<4xf32> -> f32
          %d = arith.subi %ki, %qi : index
          %i = arith.index_cast %d : index to i32
          %f = arith.sitofp %i : i32 to f32
          %r = arith.mulf %a, %f : f32
          %y = arith.addf %s, %r : f32
          tv.yield %y : f32
        }
        score_grad (%s: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
          %d = arith.subi %ki, %qi : index
          %i = arith.index_cast %d : index to i32
          %f = arith.sitofp %i : i32 to f32
          %a = arith.mulf %dy, %f : f32
          tv.accumulate 0[%h], %a : f32
          tv.yield %dy : f32
        }
      return %dslopes : tensor<4xf32>
    }
    ```
  }];
}

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
    func.func @f(%x: tensor<8x4xf32, #tv.view<#m, [did(tp) * _, _]>>) {
      return
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 4>
    func.func @f(%x: tensor<8x4xf32, #tv.view<#m, [did(tp) * 2, 4]>>
                     {tv.user_view = #tv.view<#m, [did(tp) * _, _]>}) {
      return
    }
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
    : ContractPass<"tv-propagate-shardings", "Bound"> {
  let summary = "Gives every tensor a view that follows from the user's views";
  let description = [{
    Rounds over all ops: each op carries the split of an iteration factor from one
    of its tensors to the others, forward from operands to results until nothing
    changes, then one round backward. A user's view is never changed, except for
    dimensions written with `?`; others are only split further. Where two splits
    exclude each other, the larger tensor stays; on a tie the weight. The result
    does not depend on the order of ops or operands. `explain` says in remarks
    where each split comes from, and why others were not taken.

    Through a slice, pad or concat goes the same split of the other extent: blocks
    over the same devices, of which only the overlap moves.

    Tensors that nothing reaches are whole on every device. Constraints are gone
    after it: where their operand lies otherwise they become a `tv.reshard`.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !w = tensor<16x8xf32, #tv.view<#m, [did(tp) * 8, 8]>>
    func.func @f(%x: tensor<4x8xf32>, %w: !w) -> tensor<4x16xf32> {
      %y = tv.linear %x, %w : (tensor<4x8xf32>, !w) -> tensor<4x16xf32>
      return %y : tensor<4x16xf32>
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x8xf32, #tv.view<#m, [4, 8]>>
    !w = tensor<16x8xf32, #tv.view<#m, [did(tp) * 8, 8]>>
    !y = tensor<4x16xf32, #tv.view<#m, [4, did(tp) * 8]>>
    func.func @f(%x: !x, %w: !w) -> !y {
      %y = tv.linear %x, %w : (!x, !w) -> !y
      return %y : !y
    }
    ```

    With `explain`:

    ```mlir
    #m = #tv.mesh<tp = 2>
    !w = tensor<16x8xf32, #tv.view<#m, [did(tp) * 8, 8]>>
    func.func @f(%x: tensor<4x8xf32>, %w: !w {tv.name = "w"}) -> tensor<4x16xf32> {
      // remark: dimension 1 becomes did(tp) * 8 from argument 'w' through 'tv.linear'
      %y = tv.linear %x, %w : (tensor<4x8xf32>, !w) -> tensor<4x16xf32>
      return %y : tensor<4x16xf32>
    }
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
    : ContractPass<"tv-forbid-implicit-moves", "Propagated"> {
  let summary = "Makes each move that the user did not write an error";
  let description = [{
    Runs after reshards are elided, where the pipeline is strict. A reshard that
    moves no byte, or that the user wrote as `tv.reshard` or `tv.constrain`,
    passes. Any other is an error at the op that caused it, with the bytes and the
    line to write.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x8xf32, #tv.view<#m, [4, did(tp) * 4]>>
    !w = tensor<6x8xf32, #tv.view<#m, [6, did(tp) * 4]>>
    !addends = tensor<4x6xf32, #tv.view<#m, [4, 6], partial = [tp : sum]>>
    !whole = tensor<4x6xf32, #tv.view<#m, [4, 6]>>
    func.func @f(%x: !x, %w: !w) -> !whole {
      %p = tv.linear %x, %w : (!x, !w) -> !addends
      // rejected: the program does not write this move, all-reduce over [tp] of 96 bytes
      %y = tv.reshard %p : (!addends) -> !whole
      return %y : !whole
    }
    ```

    The error says, in a note, what to write. The program with that line passes.
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
    #m = #tv.mesh<tp = 2>
    !columns = tensor<4x8xf32, #tv.view<#m, [4, did(tp) * 4]>>
    func.func @f(%x: !columns) -> !columns {
      %r = tv.softmax %x dim 1 : (!columns) -> !columns
      return %r : !columns
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !columns = tensor<4x8xf32, #tv.view<#m, [4, did(tp) * 4]>>
    !rows = tensor<4xf32>
    !full = tensor<4x8xf32>
    func.func @f(%x: !columns) -> !columns {
      %max = tv.reduce max %x dims [1] : (!columns) -> !rows
      %maxes = tv.broadcast %max dims [0] : (!rows) -> !full
      %e = tv.map %x, %maxes : (!columns, !full) -> !full (%u: f32, %v: f32) {
        %d = arith.subf %u, %v : f32
        %p = math.exp %d : f32
        tv.yield %p : f32
      }
      %sum = tv.reduce sum %e dims [1] : (!full) -> !rows
      %sums = tv.broadcast %sum dims [0] : (!rows) -> !full
      %r = tv.map %e, %sums : (!full, !full) -> !columns (%u: f32, %v: f32) {
        %q = arith.divf %u, %v : f32
        tv.yield %q : f32
      }
      return %r : !columns
    }
    ```

    With `all`, others too:

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = tv.silu %x : (tensor<4xf32>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    }
    ```

    becomes

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = tv.map %x : (tensor<4xf32>) -> tensor<4xf32> (%u: f32) {
        %m = arith.negf %u : f32
        %e = math.exp %m : f32
        %one = arith.constant 1.0 : f32
        %s = arith.addf %one, %e : f32
        %r = arith.divf %u, %s : f32
        tv.yield %r : f32
      }
      return %y : tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"all", "all", "bool", /*default=*/"false",
           "Replace every composite, split or not">
  ];
  let dependentDialects = ["::tessera::tv::TensorViewDialect"];
}

//===----------------------------------------------------------------------===//
// From decided views to planned reshards
//===----------------------------------------------------------------------===//

def DecomposeReshardingsPass
    : ContractPass<"tv-decompose-reshardings", "Propagated"> {
  let summary = "Makes each op one that moves nothing, and adds tv.reshard";
  let description = [{
    Where the views of an op's operands and results disagree, the op is divided
    over the mesh in the way that moves the fewest bytes before and after it; on a
    tie weights stay where they are, then large operands do. A reduction over a
    split factor gives a partial result. What is added to such a result once, as
    the bias of a linear, becomes partial itself, which moves nothing. Partial
    values are combined later where that moves fewer bytes.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x8xf32, #tv.view<#m, [4, did(tp) * 4]>>
    !w = tensor<6x8xf32, #tv.view<#m, [6, did(tp) * 4]>>
    !b = tensor<6xf32, #tv.view<#m, [6]>>
    !y = tensor<4x6xf32, #tv.view<#m, [4, 6]>>
    func.func @f(%x: !x, %w: !w, %b: !b) -> !y {
      %y = tv.linear %x, %w bias %b : (!x, !w, !b) -> !y
      return %y : !y
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x8xf32, #tv.view<#m, [4, did(tp) * 4]>>
    !w = tensor<6x8xf32, #tv.view<#m, [6, did(tp) * 4]>>
    !b = tensor<6xf32, #tv.view<#m, [6]>>
    !y = tensor<4x6xf32, #tv.view<#m, [4, 6]>>
    !c = tensor<6xf32, #tv.view<#m, [6], partial = [tp : sum]>>
    !p = tensor<4x6xf32, #tv.view<#m, [4, 6], partial = [tp : sum]>>
    func.func @f(%x: !x, %w: !w, %b: !b) -> !y {
      %c = tv.reshard %b : (!b) -> !c
      %p = tv.linear %x, %w bias %c : (!x, !w, !c) -> !p
      %y = tv.reshard %p : (!p) -> !y
      return %y : !y
    }
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
    #m = #tv.mesh<tp = 2>
    !x = tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>
    !y = tensor<f32, #tv.view<#m, []>>
    func.func @f(%x: !x) -> !y {
      // rejected: result #0 lies as [], but must lie as [], partial = [tp : sum]
      %y = tv.reduce sum %x dims [0] : (!x) -> !y
      return %y : !y
    }
    ```
  }];
}

def ElideReshardsPass : ContractPass<"tv-elide-reshards", "Propagated"> {
  let summary = "Removes reshards that need not be, or makes them cheaper";
  let description = [{
    Reshards that change nothing or repeat another vanish; a reshard of a reshard
    starts at the first one's operand; an op that has reshards of its own before and
    after it is placed anew between their outer views. Bytes moved never rise.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !addends = tensor<8xf32, #tv.view<#m, [8], partial = [tp : sum]>>
    !whole = tensor<8xf32, #tv.view<#m, [8]>>
    !halves = tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>
    func.func @f(%x: !addends) -> !halves {
      %a = tv.reshard %x : (!addends) -> !whole
      %b = tv.reshard %a : (!whole) -> !halves
      return %b : !halves
    }
    ```

    becomes, for `%a` has no other use,

    ```mlir
    #m = #tv.mesh<tp = 2>
    !addends = tensor<8xf32, #tv.view<#m, [8], partial = [tp : sum]>>
    !halves = tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>
    func.func @f(%x: !addends) -> !halves {
      %b = tv.reshard %x : (!addends) -> !halves
      return %b : !halves
    }
    ```
  }];
}

def PlanReshardsPass : ContractPass<"tv-plan-reshards", "Propagated"> {
  let summary = "Makes each tv.reshard a chain of planned steps";
  let description = [{
    The planner (Layout/Planner.h) prices its candidates for each reshard, with
    dynamic extents at their declared maximum. The cheapest becomes a chain of
    reshards of one step each. A remark tells plan, bytes, lower bound, cost and
    the cheapest alternative.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !addends = tensor<8xf32, #tv.view<#m, [8], partial = [tp : sum]>>
    !whole = tensor<8xf32, #tv.view<#m, [8]>>
    func.func @f(%x: !addends) -> !whole {
      %y = tv.reshard %x : (!addends) -> !whole
      return %y : !whole
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !addends = tensor<8xf32, #tv.view<#m, [8], partial = [tp : sum]>>
    !whole = tensor<8xf32, #tv.view<#m, [8]>>
    func.func @f(%x: !addends) -> !whole {
      %y = tv.reshard %x
        plan <all_reduce over #m [tp],
              loser = "reduce-scatter over [tp], then all-gather over [tp], 32 bytes, 10.0 us">
        : (!addends) -> !whole
      return %y : !whole
    }
    ```

    With `explain`:

    ```mlir
    #m = #tv.mesh<tp = 2>
    !addends = tensor<8xf32, #tv.view<#m, [8], partial = [tp : sum]>>
    !whole = tensor<8xf32, #tv.view<#m, [8]>>
    func.func @f(%x: !addends) -> !whole {
      // remark: to [8]: all-reduce over [tp], 32 bytes, 5.0 us; lower bound 32 bytes
      %y = tv.reshard %x : (!addends) -> !whole
      return %y : !whole
    }
    ```
  }];
  let options = [
    Option<"explain", "explain", "bool", /*default=*/"false",
           "Report each plan as a remark diagnostic too">
  ];
}

def VerifyPlannedPass : Pass<"tv-verify-planned", "::mlir::func::FuncOp"> {
  let summary = "Checks that each tv.reshard is one planned step";
  let description = [{
    The contract of the phase after `tv-plan-reshards`, in addition to that of
    `tv-verify-decomposed`: every reshard has a plan, which combines exactly the
    partial states that vanish.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !halves = tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>
    !whole = tensor<8xf32, #tv.view<#m, [8]>>
    func.func @f(%x: !halves) -> !whole {
      // rejected: has no plan
      %y = tv.reshard %x : (!halves) -> !whole
      return %y : !whole
    }
    ```
  }];
}

//===----------------------------------------------------------------------===//
// Orders in memory
//===----------------------------------------------------------------------===//

def ReorderShardedAxisPass
    : ContractPass<"tv-reorder-sharded-axis", "Planned"> {
  let summary = "Orders both ends of a collective so that it works in place";
  let description = [{
    An all-gather or reduce-scatter over a dimension that is not outermost needs no
    packing when both ends have that dimension outermost in memory. Values that the
    program is free to lay out get such an `alloc`; arguments and results of the
    function are row-major unless the user's view says otherwise.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3]>>
    !y = tensor<4x6xf32, #tv.view<#m, [4, 6]>>
    func.func @f(%x: !x) -> !y {
      %g = tv.gelu tanh %x : (!x) -> !x
      %a = tv.reshard %g plan <all_gather over #m [tp]> : (!x) -> !y
      %y = tv.gelu tanh %a : (!y) -> !y
      return %y : !y
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3]>>
    !y = tensor<4x6xf32, #tv.view<#m, [4, 6]>>
    !g = tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3], alloc = (1, 0)>>
    !a = tensor<4x6xf32, #tv.view<#m, [4, 6], alloc = (1, 0)>>
    func.func @f(%x: !x) -> !y {
      %g = tv.gelu tanh %x : (!x) -> !g
      %a = tv.reshard %g plan <all_gather over #m [tp]> : (!g) -> !a
      %y = tv.gelu tanh %a : (!a) -> !y
      return %y : !y
    }
    ```
  }];
}

def MakeReshardingContiguousPass
    : ContractPass<"tv-make-resharding-contiguous", "Planned"> {
  let summary = "Gives every value an order in memory, copying where it must";
  let description = [{
    Decides `alloc` of every value. Where the shard of an all-gather or
    reduce-scatter could not get the order of the whole, as an argument that is
    row-major, one copy brings it there: a step that moves nothing and changes
    `alloc` alone.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3]>>
    !a = tensor<4x6xf32, #tv.view<#m, [4, 6], alloc = (1, 0)>>
    !y = tensor<4x6xf32, #tv.view<#m, [4, 6]>>
    func.func @f(%x: !x) -> !y {
      %a = tv.reshard %x plan <all_gather over #m [tp]> : (!x) -> !a
      %y = tv.gelu tanh %a : (!a) -> !y
      return %y : !y
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3], alloc = (0, 1)>>
    !c = tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3], alloc = (1, 0)>>
    !a = tensor<4x6xf32, #tv.view<#m, [4, 6], alloc = (1, 0)>>
    !y = tensor<4x6xf32, #tv.view<#m, [4, 6], alloc = (0, 1)>>
    func.func @f(%x: !x) -> !y {
      %c = tv.reshard %x plan <slice over #m []> : (!x) -> !c
      %a = tv.reshard %c plan <all_gather over #m [tp]> : (!c) -> !a
      %y = tv.gelu tanh %a : (!a) -> !y
      return %y : !y
    }
    ```
  }];
}

def VerifyAllocatedPass : Pass<"tv-verify-allocated", "::mlir::func::FuncOp"> {
  let summary = "Checks that every value has an order in memory";
  let description = [{
    The contract of the phase after `tv-make-resharding-contiguous`: `alloc` on
    every view, and the ends of an all-gather or reduce-scatter in one order where
    that makes the shards chunks of the whole.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>
    // rejected: argument #0 has no 'alloc'
    func.func @f(%x: !x) -> !x {
      return %x : !x
    }
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
    func.func @f(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>, %b: tensor<16xf32>) -> tensor<4x16xf32> {
      // remark: (a, c) (b, c) added (b) -> (a, b) | a parallel 4, b parallel 16, c reduction sum 8
      %y = tv.linear %x, %w bias %b : (tensor<4x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<4x16xf32>
      return %y : tensor<4x16xf32>
    }
    ```

    With `rules=false partial refused`:

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<f32> {
      // remark: partial (sum) -> (sum)
      // remark: partial (max): tv.reduce may not run on a partial (max) operand: it combines by sum
      // remark: partial (min): tv.reduce may not run on a partial (min) operand: it combines by sum
      %y = tv.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
      return %y : tensor<f32>
    }
    ```

    With `rules=false extents`:

    ```mlir
    func.func @f(%x: tensor<?x4xf32> {tv.dims = ["b"]}) -> tensor<?xf32> attributes {tv.sizes = {b = 64}} {
      // remark: extents of result #0: [4 * b]
      %y = tv.reshape %x : (tensor<?x4xf32>) -> tensor<?xf32>
      return %y : tensor<?xf32>
    }
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
