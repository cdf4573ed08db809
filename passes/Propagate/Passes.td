//===- Passes.td - from the user's views to all views ------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PROPAGATE_PASSES_TD
#define TESSERA_PROPAGATE_PASSES_TD

include "TensorView/ContractPass.td"

def SetMachinePass
    : ContractPass<"tv-set-machine", "Bound", "::mlir::ModuleOp"> {
  let summary = "Says what moves and loops are priced with";
  let description = [{
    From here on choices between ways to move and to compute are those that take less
    time on this machine (`#tv.machine`). Without it they are those of an H200. A program
    that says it itself keeps that, unless `replaces` is set. `tessera-compile` has it
    from the target, or from `--machine`.

    With `machine=<latency=1.0e-5,bandwidth=2.0e10,copy=2.5e11,loops=4.0e13>`

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>
    func.func @main(%x: !x) -> !x {
      return %x : !x
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>
    module attributes {tv.machine = #tv.machine<latency = 1.0e-05, bandwidth = 2.0e+10, copy = 2.5e+11, loops = 4.0e+13>} {
      func.func @main(%x: !x) -> !x {
        return %x : !x
      }
    }
    ```

    With `machine=<latency=0.0,bandwidth=2.0e10,copy=2.5e11,loops=4.0e13>`

    ```mlir
    // rejected: the latency of a machine is a number above 0
    #m = #tv.mesh<tp = 2>
    !x = tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>
    func.func @main(%x: !x) -> !x {
      return %x : !x
    }
    ```
  }];
  let options = [
    Option<"machine", "machine", "std::string", /*default=*/"",
           "As <latency=5.0e-6,bandwidth=3.0e11,copy=2.0e12,loops=3.0e14>">,
    Option<"replaces", "replaces", "bool", /*default=*/"false",
           "Also where the program says another">];
}

def PropagateShardingsPass
    : ContractPass<"tv-propagate-shardings", "Bound"> {
  let summary = "Gives every tensor a view that follows from the user's views";
  let description = [{
    Rounds over all ops: each op carries the split of an iteration factor from one
    of its tensors to the others, forward from operands to results, then backward,
    until nothing changes. A user's view is never changed, except for dimensions
    written with `?`; others are only split further. Where two splits exclude each
    other, the one stays with which the op and the moves around it take less time
    (Layout/OpCost.h, Layout/Planner.h). A tie waits until nothing else changes, for
    another view may decide it; then the weight stays. So does a split of a dimension
    that an op needs whole, as `tv.softmax`, which core ops then replace. Of the other
    split goes on what the first leaves: of `did(tp) * did(dp) * _` beside
    `did(dp) * _` it is `did(tp) * _`. The result does not depend on the order of ops or operands, nor on
    the names of axes or their order in the mesh: what nothing else decides the axis
    does that appears first in the views of arguments, then of results.
    `explain` says in remarks where each split comes from, and why others were not
    taken, with the bytes and the time of either choice.

    Through a slice, pad or concat goes the same split of the other extent: blocks
    over the same devices, of which only the overlap moves, once, so that what is
    computed from it is balanced. Equal parts stay where they are: three of
    `did(tp) * 4` are a whole of `3 * did(tp) * 4`, and have that of such. In the end a
    slice keeps what each device has of it instead (`[(did(tp) * 4 | 3:10)]` of
    `[did(tp) * 4]` from 3 to 10), and so does what lies as it does, where all that is
    free to and where that takes no longer: the ops wait for the device with the most,
    but nothing moves.

    A reshape makes no view of so many pieces that no move from it can be planned, as
    `[flat(2) 1536 * did(y) * 1024 * did(x)]` of 3072x3072; its result then moves before.

    Tensors that nothing reaches are whole on every device, except what the function
    returns of a sum over devices: each keeps a part of it, of a dimension that is open if
    it has a view, also of what the sum becomes first where nothing else uses that (of a
    product of it, computed by the same rows; of a slice, pad or concat, along a dimension
    that it keeps), unless it is so small that its move costs no more than a latency. And
    except what it returns of a composite along a dimension that is split, as
    `tv.softmax`: it stays split as its core ops leave it, with what pointwise ops and the
    like make of it, if nothing else uses that.

    What the function returns lies as it came out where its type has no view, or an open
    one; partial states alone are combined, unless that view has any.

    `tv.constrain`, `tv.same_view` and `tv.barrier` are gone after it: where an operand
    lies otherwise than its result there is a `tv.reshard`.

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

#endif // TESSERA_PROPAGATE_PASSES_TD
