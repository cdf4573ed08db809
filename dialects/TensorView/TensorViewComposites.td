//===- TensorViewComposites.td - ops that core ops define --*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What each is in core ops says its decomposition (TensorViewComposites.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_COMPOSITES_TD
#define TESSERA_TENSORVIEW_COMPOSITES_TD

class TensorView_CompositeOp<string mnemonic, list<Trait> traits = [Rule]>
    : TensorView_PureOp<mnemonic, traits # [Composite]> {
  let results = (outs AnyRankedTensor:$result);
}

include "TensorView/TensorViewPointwise.td"

def TensorView_SoftmaxOp : TensorView_CompositeOp<"softmax",
    [Rule, Differentiable]> {
  let summary = "exp(x - max) / sum(exp(x - max)) along a dimension";
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$dim);
  let assemblyFormat =
      "$input `dim` $dim attr-dict `:` functional-type(operands, results)";
}

def TensorView_LayerNormOp : TensorView_CompositeOp<"layer_norm"> {
  let summary = "Normalizes the last dimension to mean 0 and variance 1";
  let description = [{
    input [..., K], weight [K], bias [K]:
    (x - mean) / sqrt(variance + epsilon) * weight + bias.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$weight,
                       AnyRankedTensor:$bias, F64Attr:$epsilon);
  let assemblyFormat = [{
    $input `,` $weight `,` $bias `epsilon` `(` $epsilon `)` attr-dict `:`
    functional-type(operands, results)
  }];
}

def TensorView_RmsNormOp : TensorView_CompositeOp<"rms_norm"> {
  let summary = "x / sqrt(mean(x^2) + epsilon) * weight along the last dimension";
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$weight,
                       F64Attr:$epsilon);
  let assemblyFormat = [{
    $input `,` $weight `epsilon` `(` $epsilon `)` attr-dict `:`
    functional-type(operands, results)
  }];
}

def TensorView_RopeOp : TensorView_CompositeOp<"rope", [RuleAndPartial]> {
  let summary = "Rotary position embedding";
  let description = [{
    input [..., S, D] with D even; pairs (i, i + D/2) of position p turn by the
    angle p * base^(-2i/D) (Su et al., RoFormer; pairing as in GPT-NeoX).
    ```mlir
    %q1 = tv.rope %q at %p base(10000.0)
       : (tensor<2x8x1x64xf32>, tensor<2x1xi32>) -> tensor<2x8x1x64xf32>
    ```
    Positions are the indices of S, or those given: [S] for all, or [..., S] with
    the input's first dimensions, as of a batch that is decoded.
  }];
  let arguments = (ins AnyRankedTensor:$input,
                       Optional<AnyRankedTensor>:$positions, F64Attr:$base);
  let assemblyFormat = [{
    $input (`at` $positions^)? `base` `(` $base `)` attr-dict `:`
    functional-type(operands, results)
  }];
}

def TensorView_TopKOp : TensorView_PureOp<"top_k", [Rule, Composite]> {
  let summary = "The k largest elements along a dimension, and their indices";
  let description = [{
    ```mlir
    %values, %experts = tv.top_k %scores dim 1
       : (tensor<16x8xf32>) -> (tensor<16x2xf32>, tensor<16x2xi32>)
    ```
    k is the results' extent, at most 64. The largest comes first, of equal ones
    the one of the least index; a NaN is above all numbers. With k = 1 the indices
    are the argmax.
  }];
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$dim);
  let results = (outs AnyRankedTensor:$values, AnyRankedTensor:$indices);
  let assemblyFormat =
      "$input `dim` $dim attr-dict `:` functional-type(operands, results)";
}

def TensorView_CrossEntropyOp : TensorView_CompositeOp<"cross_entropy",
    [Rule, Differentiable]> {
  let summary = "log-sum-exp of the logits less the label's logit, a row";
  let description = [{
    ```mlir
    %loss, %lse = tv.cross_entropy %x, %labels
       : (tensor<8x512xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
    ```
    logits [..., V], labels [...] (i32), result [...]: 0 where the label is none
    of the V classes, as one of -100 that a loss leaves out. The second result, which
    may be left out, is the log-sum-exp alone, in f32 (f64 for f64).
  }];
  let arguments = (ins AnyRankedTensor:$logits, AnyRankedTensor:$labels);
  let results = (outs AnyRankedTensor:$result, Optional<AnyRankedTensor>:$lse);
  let assemblyFormat =
      "$logits `,` $labels attr-dict `:` functional-type(operands, results)";
}

def TensorView_AdamWOp : TensorView_PureOp<"adamw", [Rule, Composite]> {
  let summary = "A weight and its moments after a step of AdamW";
  let description = [{
    ```mlir
    %w1, %m1, %v1 = tv.adamw %w, %m, %v, %g scale %c rate %r step %t
        betas(0.9, 0.95) epsilon(1.0e-8) decay(0.1)
      : (!w, !w, !w, !w, tensor<f32>, tensor<f32>, tensor<i64>) -> (!w, !w, !w)
    ```
    Of the gradient g' = c g, with betas (a, b) and steps t that count from 1:
    m' = a m + (1 - a) g', v' = b v + (1 - b) g'^2, and
    w' = w - r (m' / (1 - a^t) / (sqrt(v' / (1 - b^t)) + epsilon) + decay w)
    (Loshchilov and Hutter). Computed in f32, or f64 if all floats are f64.
  }];
  let arguments = (ins AnyRankedTensor:$weight, AnyRankedTensor:$mean,
                       AnyRankedTensor:$square, AnyRankedTensor:$grad,
                       AnyRankedTensor:$scale, AnyRankedTensor:$rate,
                       AnyRankedTensor:$step, F64Attr:$meanBeta,
                       F64Attr:$squareBeta, F64Attr:$epsilon, F64Attr:$decay);
  let results = (outs AnyRankedTensor:$newWeight, AnyRankedTensor:$newMean,
                      AnyRankedTensor:$newSquare);
  let assemblyFormat = [{
    $weight `,` $mean `,` $square `,` $grad `scale` $scale `rate` $rate
    `step` $step `betas` `(` $meanBeta `,` $squareBeta `)`
    `epsilon` `(` $epsilon `)` `decay` `(` $decay `)` attr-dict `:`
    functional-type(operands, results)
  }];
}

def TensorView_DropoutOp : TensorView_CompositeOp<"dropout",
    [RuleAndPartial, Pointwise, Differentiable]> {
  let summary = "Drops elements with a probability, scales the others";
  let description = [{
    ```mlir
    %y = tv.dropout %x rate(0.1) seed(1) stream(2) step %t
       : (tensor<4x8xf32>, tensor<i64>) -> tensor<4x8xf32>
    ```
    x / (1 - rate) where tv.random of (seed, stream, step) is at least `rate`, else 0.
    The numbers depend on the global index, not on the mesh.
  }];
  let arguments = (ins AnyRankedTensor:$input, F64Attr:$rate, I64Attr:$seed,
                       I64Attr:$stream, Optional<AnyRankedTensor>:$step);
  let assemblyFormat = [{
    $input `rate` `(` $rate `)` `seed` `(` $seed `)` `stream` `(` $stream `)`
    (`step` $step^)? attr-dict `:` functional-type(operands, results)
  }];
}

#endif // TESSERA_TENSORVIEW_COMPOSITES_TD
