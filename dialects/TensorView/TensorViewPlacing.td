//===- TensorViewPlacing.td - how data lies ----------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The op that moves data, those that tell propagation how it shall lie, and what is
// written for each device.
// TensorViewOps.td includes it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_PLACING_TD
#define TESSERA_TENSORVIEW_PLACING_TD

def TensorView_ReshardOp
    : TensorView_PureOp<"reshard",
    [OpInterfaceTrait<"::tessera::tv::MoveOpInterface">, Differentiable]> {
  let summary = "The same tensor under another view";
  let description = [{
    ```mlir
    %r = tv.reshard %x : (tensor<8x4xf32, #rows>) -> tensor<8x4xf32, #whole>
    ```
    The only op that changes how data lies. Several operands move together, each to
    the result of its number. `plan` is set by `tv-plan-reshards`; from there every
    reshard is one step.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs,
                       OptionalAttr<TensorView_StepAttr>:$plan);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $inputs (`plan` $plan^)? `` custom<MoveAttrs>(attr-dict) `:`
    functional-type($inputs, $results)
  }];
}

def TensorView_ConstrainOp : TensorView_PureOp<"constrain",
    [GuidesPropagation, Differentiable]> {
  let summary = "A user's view in the middle of a program";
  let description = [{
    ```mlir
    %r = tv.constrain %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
       to #tv.view<#m, [did(tp) * _, _]>
    ```
    Propagation makes it a reshard, which passes keep.
  }];
  let arguments = (ins AnyRankedTensor:$input, TensorView_ViewAttr:$view);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input attr-dict `:` functional-type(operands, results) `to` qualified($view)
  }];
}

def TensorView_SameViewOp : TensorView_PureOp<"same_view",
    [GuidesPropagation, Rule, Differentiable]> {
  let summary = "Tensors of one shape that lie alike from here on";
  let description = [{
    ```mlir
    %k1, %v1 = tv.same_view %k, %v : (tensor<8x4xf32>, tensor<8x4xbf16>)
       -> (tensor<8x4xf32>, tensor<8x4xbf16>)
    ```
    Each result is the operand of its number; all have one view. Propagation finds it
    from all operands and all uses together, as that of one tensor; an operand that
    lies otherwise moves. Element types may differ. Where several results have views
    in their types, these must be equal.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat =
      "$inputs attr-dict `:` functional-type($inputs, $results)";
}

def TensorView_BarrierOp : TensorView_PureOp<"barrier",
    [GuidesPropagation, Differentiable]> {
  let summary = "Where views pass in one direction, or not at all";
  let description = [{
    ```mlir
    %r = tv.barrier forward %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
    `forward`: the operand's view goes on to the result, and what uses want does not
    go back to the operand; `backward`: the converse; `none`: neither. Where the two
    then lie differently, data moves here. A gradient has the mirror image on its way
    back, so that neither side says more of the other.
  }];
  let arguments = (ins TensorView_Passage:$passage, AnyRankedTensor:$input);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
      "$passage $input attr-dict `:` functional-type(operands, results)";
}

def TensorView_LocalRegionOp : TensorView_PureOp<"local_region",
    [IsolatedFromAbove, SingleBlock, InferExtents]> {
  let summary = "A part of a program as each device runs it";
  let description = [{
    ```mlir
    !part = tensor<4x8xf32, #tv.local<#tv.view<#m, [did(tp) * _, _]>, of [8, 8]>>
    !sum = tensor<8xf32, #tv.local<#tv.view<#m, [_], partial = [tp : sum]>, of [8]>>
    !whole = tensor<8xf32, #tv.local<#tv.view<#m, [_]>, of [8]>>
    %s = tv.local_region %x : (tensor<8x8xf32>) -> tensor<8xf32> {
    ^bb0(%own: !part):
      %0 = tv.reduce sum %own dims [0] : (!part) -> !sum
      %1 = comm.all_reduce %0 over #m [tp] id 0 : (!sum) -> !whole
      tv.yield %1 : !whole
    }
    ```
    Inside, tensors are one device's parts, as after `tv-localize`, and devices meet in
    `comm` ops alone: each is one step of its kind. Operands move to the views of the
    region's arguments, results lie as what it yields; propagation takes both as they
    are and changes nothing between them. An op that would need more than its device's
    parts is an error at the op.

    An op means its part of the global op, as everywhere. What is a device's own has the
    device for an index: `[8]` as `[did(tp) * 4]` is by `tv.reshape` `[2, 4]` as
    `[did(tp) * 1, 4]`, of which a softmax along dimension 1 is that of each part.
    `tv-inline-regions` puts the body in the region's place. Views may say `_` and whole
    axes; then another mesh (`--mesh`) has other parts of the same program.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $inputs attr-dict `:` functional-type($inputs, $results) $body
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block &getOps() { return getBody().front(); }
    /// What the region yields.
    ::mlir::OperandRange getYielded() {
      return getOps().getTerminator()->getOperands();
    }
  }];
}

#endif // TESSERA_TENSORVIEW_PLACING_TD
