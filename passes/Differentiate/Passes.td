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

#endif // TESSERA_DIFFERENTIATE_PASSES_TD
