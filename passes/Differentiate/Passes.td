//===- Passes.td - the gradient of a program ---------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIFFERENTIATE_PASSES_TD
#define TESSERA_DIFFERENTIATE_PASSES_TD

include "TensorView/ContractPass.td"

def InlinePass : Pass<"tv-inline", "::mlir::ModuleOp"> {
  let summary = "Puts called functions in the place of calls";
  let description = [{
    Into public functions, and those whose gradient they ask for. Private functions
    that nobody needs then are gone.

    ```mlir
    func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = tv.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = call @twice(%0) : (tensor<4xf32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    ```

    becomes

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = tv.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %1 = tv.add %0, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    ```

    What `tv.call` names has the extents of the call where it is written for any:

    ```mlir
    func.func private @sums(%x: tensor<?x4xf32>) -> tensor<?xf32> {
      %0 = tv.reduce sum %x dims [1] : (tensor<?x4xf32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }
    func.func @g(%x: tensor<6x4xf32>) -> tensor<6xf32> {
      %0 = tv.call @sums(%x) : (tensor<6x4xf32>) -> tensor<6xf32>
      return %0 : tensor<6xf32>
    }
    ```

    becomes

    ```mlir
    func.func @g(%x: tensor<6x4xf32>) -> tensor<6xf32> {
      %0 = tv.reduce sum %x dims [1] : (tensor<6x4xf32>) -> tensor<6xf32>
      return %0 : tensor<6xf32>
    }
    ```

    Only straight-line functions inline:

    ```mlir
    func.func private @again(%x: tensor<4xf32>) -> tensor<4xf32> {
      // rejected: 'again' calls itself; recursion does not inline
      %0 = call @again(%x) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = call @again(%x) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
}

def DifferentiatePass : Pass<"tv-differentiate", "::mlir::ModuleOp"> {
  let summary = "Writes gradients as ops";
  let description = [{
    Replaces each `tv.gradient` by the ops of its function and then, last to first,
    those of their gradients. What they are, `DifferentiableOpInterface` says, or an
    op's scalar function or decomposition. No op of them names a device or a view, but
    where the text does: the gradient of a weight lies as the weight.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<8x16xf32>
    !w = tensor<4x16xf32, #tv.view<#m, [did(tp) * _, _]>>
    !y = tensor<8x4xf32>
    !loss = tensor<f32>
    func.func private @loss(%x: !x, %w: !w) -> !loss {
      %y = tv.linear %x, %w : (!x, !w) -> !y
      %e = tv.gelu tanh %y : (!y) -> !y
      %s = tv.reduce sum %e dims [0, 1] : (!y) -> !loss
      return %s : !loss
    }
    func.func @step(%x: !x, %w: !w) -> (!loss, !w) {
      %loss, %dw = tv.gradient @loss(%x, %w) of [0] to [1] : (!x, !w) -> (!loss, !w)
      return %loss, %dw : !loss, !w
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<8x16xf32>
    !w = tensor<4x16xf32, #tv.view<#m, [did(tp) * _, _]>>
    !y = tensor<8x4xf32>
    !loss = tensor<f32>
    func.func @step(%x: !x, %w: !w) -> (!loss, !w) {
      %y = tv.linear %x, %w : (!x, !w) -> !y
      %e = tv.gelu tanh %y : (!y) -> !y
      %s = tv.reduce sum %e dims [0, 1] : (!y) -> !loss
      %one = tv.constant dense<1.0> : tensor<f32> : () -> !loss
      %de = tv.broadcast %one dims [] : (!loss) -> !y
      %dy = tv.gelu_grad tanh %de, %y : (!y, !y) -> !y
      %dw = tv.contract %dy [0, 2], %x [0, 1] to [2, 1] : (!y, !x) -> !w
      return %s, %dw : !loss, !w
    }
    ```

    A `tv.attention_grad` that the program writes itself gets its `score_grad`, and must be
    of the same pairs and weights as the attention whose result it has.

    What has no gradient is named, with the way to it:

    ```mlir
    !x = tensor<1x1x2x4xf32>
    !l = tensor<1x1x2xf32>
    func.func private @f(%x: !x, %l: !l) -> !x {
      // rejected: 'tv.attention_grad' op has no gradient, and one is asked for
      %0, %1, %2 = tv.attention_grad %x, %x, %x, %x, %x, %l scale(1.0)
          : (!x, !x, !x, !x, !x, !l) -> (!x, !x, !x)
      return %0 : !x
    }
    func.func @g(%x: !x, %l: !l) -> (!x, !x) {
      %y, %dx = tv.gradient @f(%x, %l) of [0] with (%x) to [0] : (!x, !l, !x) -> (!x, !x)
      return %y, %dx : !x, !x
    }
    ```

    An argument without a part in it has zeros:

    ```mlir
    // remark: the gradient by argument #1 is 0: 'f' does not depend on it there
    func.func private @f(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
      return %x : tensor<f32>
    }
    func.func @g(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
      %0, %1 = tv.gradient @f(%x, %y) of [0] to [1]
          : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
      return %1 : tensor<f32>
    }
    ```

    Each `attention_grad` that has a score_mod, and no score_grad, gets the one that
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

#endif // TESSERA_DIFFERENTIATE_PASSES_TD
