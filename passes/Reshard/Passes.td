//===- Passes.td - reshards become planned steps -----------*- tablegen -*-===//
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

#ifndef TESSERA_RESHARD_PASSES_TD
#define TESSERA_RESHARD_PASSES_TD

include "TensorView/ContractPass.td"

def ElideReshardsPass : ContractPass<"tv-elide-reshards", "Propagated"> {
  let summary = "Removes reshards that need not be, or makes them cheaper";
  let description = [{
    Reshards that change nothing or repeat another vanish; a reshard of a reshard
    starts at the first one's operand; one of two reshards of a value starts where the
    other ends, so that a sum which one use needs whole and one in part is made whole
    once; reshards of a value, of its reshape, of its transpose and of what an op of one
    operand makes of it become one of the value, or start where one ends; an op that has
    reshards of its own before and after it is placed anew between their outer views,
    if need be with one next to it.

    Each change lowers one price, that of the whole function: what its ops and its moves
    take, those that one op is the first to need together, as `tv-merge-reshards` moves
    them. So the pass ends by itself.

    A reshard that the user wrote (`tv.user_move`) stays, and no op is placed across
    it: the value lies as it says. `explain` says in remarks what was done and is not
    changed again, and the bytes and the time of it and of what it was done instead of.

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

    With `explain`:

    ```mlir
    #m = #tv.mesh<tp = 2>
    !addends = tensor<8xf32, #tv.view<#m, [8], partial = [tp : sum]>>
    !whole = tensor<8xf32, #tv.view<#m, [8]>>
    !halves = tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>
    func.func @f(%x: !addends) -> !halves {
      %a = tv.reshard %x : (!addends) -> !whole
      // remark: is one move, not by [8]: 16 bytes, 5 us; otherwise 32 bytes, 5 us
      %b = tv.reshard %a : (!whole) -> !halves
      return %b : !halves
    }
    ```
  }];
  let options = [
    Option<"explain", "explain", "bool", /*default=*/"false",
           "Report each change that remains as a remark diagnostic">,
    Option<"explainLater", "explain-later", "bool", /*default=*/"false",
           "Leave that to tv-place-together, which reports what then remains">
  ];
}

def PlaceTogetherPass : ContractPass<"tv-place-together", "Propagated"> {
  let summary = "Places ops anew that take less time together";
  let description = [{
    Ops are placed anew where they and the moves between them take less time together
    than one after the other: over all axes of the mesh, also those that no view names,
    cut where views cut them, and then once more, with a fifth of the effort, cut into
    primes (no more than three parts). What comes of either is elided
    (`tv-elide-reshards`), and kept if the whole function then takes less by the price of
    elision, where small moves go together as `tv-merge-reshards` moves them: by a
    fortieth, for the model is not more exact; by a hundredth where a tenth of the bytes
    goes, and by a twentieth where there are more. Of dynamic sizes it must be no more
    either where they are half of their maximum or where they are a sixteenth.
    `tessera-compile --op-by-op` leaves the pass out, and so do meshes of more than 1024
    devices.

    What the user wrote of arguments and results stays, and where data moves or a
    barrier is no op is placed across it. What reads or makes a value on a part of the
    mesh stays as it is, too, as in a stage of a pipeline. What stands between is placed
    as the model has it: where few bytes move, fewer steps of more bytes; and where rows
    of weights are more than those of activations, data parallel gradients may be products
    of activations that are gathered, and not sums. (Only where the user wrote how all
    dimensions of a value between are split is what makes it not placed together with what
    reads it.) What is returned is split in dimensions that are open (no view, or `?`) as
    it comes or where that cuts best: sums, and what comes split where the user says
    otherwise; or it is whole, where that takes less together with other moves.

    A function of up to 16 ops is then placed all at once (Place/FewOps.h), by a beam search
    (Lowerre, The HARPY speech recognition system, 1976): op by op in order, each in all ways
    after each of the cheapest states of what lies how, with all that goes together counted
    as above, and copies of values that others take their parts from. States end by a lower
    bound: what ops take at the least, and the moves on one way to an end. There concats and
    slices may be split along their dimension, and a softmax, one by one of up to three, is
    tried split if it is whole and whole if it had been decomposed. A ten thousandth less
    will do, a hundredth where more bytes move, but not what is less than a thousandth of a
    latency.

    Of programs of up to six ops on meshes of 2 by 2, 2 by 3 and 4 by 2, 19 of 20 take
    the least time that any placement does, where of those placed op by op half do. Of
    those in which ops share values as they like 19 of 20 take the least that is known, and
    the others at most 1.1 of it (test/Passes/placement.py); but where all that moves is
    small, a latency more is twice as long, and one of some hundreds has one.
    What is gathered along an outer axis may stay in runs, as `2 * did(y) * _` of
    `did(x) * did(y) * _`. It knows that exchanges go together for the operands of an op, and
    small moves of one kind, and those of values that are returned; not that others do. So
    how a program is written hardly matters: products transposed, operands swapped, axes
    by other names or in another order, ops that undo each other
    (test/Passes/invariance.py).

    Effort is bounded. A group of ops that cannot gain a hundredth of what the function
    takes is left as it is: of one layer more is placed anew than of each of 96. So are
    the groups that are left when 10000 plans of moves, or what takes as long, have been
    tried, and what is the best by then of the last one is taken. Groups are placed one
    after the other, beside the others as they stand, up to three times while that gains,
    and then those around two values that have several uses each.
    Of a group of many ops the moves that operands share are tried all at once. `explain`
    tells how many groups were left at first, where the moves of their operands take a
    hundredth of the time together.

    ```mlir
    #m = #tv.mesh<x = 2, y = 2>
    !a = tensor<6144x6144xf32, #tv.view<#m, [did(x) * 3072, 6144]>>
    !b = tensor<6144x6144xf32, #tv.view<#m, [6144, 6144]>>
    func.func @f(%a: !a, %b: !b) -> !a {
      %y = tv.matmul %a, %b : (!a, !b) -> !a
      return %y : !a
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<x = 2, y = 2>
    !a = tensor<6144x6144xf32, #tv.view<#m, [did(x) * 3072, 6144]>>
    !b = tensor<6144x6144xf32, #tv.view<#m, [6144, 6144]>>
    !c = tensor<6144x6144xf32, #tv.view<#m, [did(x) * did(y) * 1536, 6144]>>
    func.func @f(%a: !a, %b: !b) -> !c {
      %c = tv.reshard %a : (!a) -> !c
      %y = tv.matmul %c, %b : (!c, !b) -> !c
      return %y : !c
    }
    ```
  }];
  let options = [
    Option<"explain", "explain", "bool", /*default=*/"false",
           "Report as a remark diagnostic what is gained, and how many ops are "
           "not placed as they were chosen to be alone">
  ];
}

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

def PlanReshardsPass : ContractPass<"tv-plan-reshards", "Propagated"> {
  let summary = "Makes each tv.reshard a chain of planned steps";
  let description = [{
    The planner (Layout/Planner.h) prices its candidates for each reshard, with
    dynamic extents at their declared maximum. The cheapest becomes a chain of
    reshards of one step each. A remark tells plan, bytes, lower bound, cost and the
    cheapest alternative, with the views between the steps where both have the same steps;
    each step has the number that remarks give its move (`tv.move`, in the generic form) until
    `tv-localize`.

    A plan takes at most 1.1 times as long as the best of all chains of three steps, and
    1.2 times where addends are combined or made (`PlannerTests` tries all, on 2 x 2, 4,
    8, 4 x 2, 2 x 3 and 6 devices, also of values on a part of them). Of even blocks it is
    the best. Exceptions are of uneven blocks, where some devices hold little or nothing,
    and the best chain goes by these, and of an axis that is cut in two ways:

    - `[4, did(y) * 4], partial = [x : sum]` to `[4, 3 * did(x)]`, 1.25 times: a sum is
      scattered where that cuts best, not where the exchange after it would like it;
      1.6 times before a new state, as `[4, did(x) * 4], partial = [y : sum]` to
      `[4, 3 * did(y)], partial = [x : sum]`.
    - `[6, did(y) * 2], partial = [x : sum]` to `[did(y) * 2, 2]`, 1.5 times: addends are
      not moved before they are combined; of even blocks that is as many times the bytes
      as there are addends.
    - `[6, did(y) * 2]` to `[6, did(x)]`, 1.29 times, and `[did(x) * 4, did(y) * 2]` to
      `[6, 2], partial = [x : sum]`, 1.31 times: what is whole becomes no sum of little
      on the way.
    - `[12], partial = [x:(3)2 : sum]` to `[4 * did(x:(2)3)], partial = [x:(1)2 : sum]`,
      twice: digits of an axis of 6 that is cut as 3 * 2 and as 2 * 3 have none in
      common, by which a sum could be scattered as the result wants it.
    - `[did(x) * 2, 4]` to `[4, 4]` on 4 devices, 1.25 times, `[did(x) * did(y), 4]` to
      `[3, 4]` on 2 x 3, 1.5 times, and `[3, did(x) * did(y)]` to `[3, 3]` on 3 x 3, 2.4
      times: what few devices have is first cut evenly, in one step and in one dimension,
      which then may not be long enough for a part for each device. So it is of what
      lies on a part of the mesh: 5 columns on 2 x 2 or 6 on 2 x 3, up to 1.5 times; 4
      on 4 devices, up to 1.25.

    The lower bound is what some device must receive; or send, where it alone has what
    several others need: `[did(x) * _]` to `[did(x:(2)2) * _], partial = [x:(1)2 : sum]`.
    A state that stays may be combined on the way, and made anew (on up to 1024 devices).

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
              loser = "reduce-scatter over [tp], then all-gather over [tp], 32 bytes, 10.0 us"> : (!addends) -> !whole
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

def MergeReshardsPass : ContractPass<"tv-merge-reshards", "Planned"> {
  let summary = "Makes small steps that can go together one";
  let description = [{
    Steps of one kind, along the same axes and with one combiner, each of which
    takes a device no longer than the latency, wait until the result of one is used,
    and become one `tv.reshard`: one latency, where each had its own. A permute waits
    with exchanges. What goes from peer to peer for the operands of one op, the first
    that needs it, goes together, too, of any size and along any axes, and with what
    waits for the op; behind ops of one operand as well, as a cast, which then wait. A
    remark tells how many tensors, and how many bytes a device has of them.

    ```mlir
    #m = #tv.mesh<dp = 2>
    !addends = tensor<8xf32, #tv.view<#m, [8], partial = [dp : sum]>>
    !whole = tensor<8xf32, #tv.view<#m, [8]>>
    func.func @f(%a: !addends, %b: !addends) -> (!whole, !whole) {
      %x = tv.reshard %a plan <all_reduce over #m [dp]> : (!addends) -> !whole
      %c = tv.neg %b : (!addends) -> !addends
      %y = tv.reshard %c plan <all_reduce over #m [dp]> : (!addends) -> !whole
      return %x, %y : !whole, !whole
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<dp = 2>
    !addends = tensor<8xf32, #tv.view<#m, [8], partial = [dp : sum]>>
    !whole = tensor<8xf32, #tv.view<#m, [8]>>
    func.func @f(%a: !addends, %b: !addends) -> (!whole, !whole) {
      %c = tv.neg %b : (!addends) -> !addends
      %x, %y = tv.reshard %a, %c plan <all_reduce over #m [dp]>
        : (!addends, !addends) -> (!whole, !whole)
      return %x, %y : !whole, !whole
    }
    ```
  }];
}

#endif // TESSERA_RESHARD_PASSES_TD
