//===- TensorViewPlacing.td - how data lies ----------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The op that moves data, and those that tell propagation how it shall lie.
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
    $inputs (`plan` $plan^)? attr-dict `:` functional-type($inputs, $results)
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

#endif // TESSERA_TENSORVIEW_PLACING_TD
