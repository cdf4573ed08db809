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

def TensorView_BlockMaskOp : TensorView_PureOp<"block_mask", [Rule, Composite]> {
  let summary = "Which blocks of attention's scores a mask keeps";
  let description = [{
    ```mlir
    %bm = tv.block_mask of [1000, 1000] blocks [128, 128] : () -> tensor<1x1x8x8xi8>
      mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
        %c = arith.cmpi sle, %ki, %qi : index
        tv.yield %c : i1
      }
    ```
    `of` so many queries and keys; result [B or 1, H or 1, ceil(S / 128), ceil(T / 128)]
    for the block_mask of `tv.attention`: 0 where no pair of the block is kept, 2 where
    all that there are, else 1. Block sizes are multiples of 64. What the mask loads from
    is whole on every device, as that of attention's regions:

    ```mlir
      mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
        %i = tv.load %documents[%b, %qi] : tensor<2x1000xi32> -> i32
        %j = tv.load %documents[%b, %ki] : tensor<2x1000xi32> -> i32
        %same = arith.cmpi eq, %i, %j : i32
        tv.yield %same : i1
      }
    ```

    Intervals say of most blocks that all or none of their pairs are kept; only the others
    ask their pairs. They go through comparisons, and, or, xor and select, +, -, *, signed
    min and max, casts, and / and % by constants, of indices and of what depends on a query
    alone or on a key alone, such as what is loaded by it, of which a kernel finds the
    least and the largest value of each block. Else all pairs are asked. The rest is one
    kernel; of few blocks another one adds counts of rows. Pairs are never in memory.
  }];
  let arguments = (ins DenseI64ArrayAttr:$of, DenseI64ArrayAttr:$blocks);
  let results = (outs AnyRankedTensor:$result);
  let regions = (region SizedRegion<1>:$maskMod);
  let assemblyFormat = [{
    `of` $of `blocks` $blocks attr-dict `:` functional-type(operands, results)
    `mask_mod` custom<ScalarRegion>($maskMod)
  }];
  let hasRegionVerifier = 1;
}

// Errors in what ragged attention reads. They have no rule: views pass the core ops that
// they are made of.
class TensorView_DataErrorsOp<string mnemonic>
    : TensorView_CompositeOp<mnemonic, [InferExtents]>;

def TensorView_SequenceErrorsOp : TensorView_DataErrorsOp<"sequence_errors"> {
  let summary = "What is wrong with where packed sequences begin";
  let description = [{
    ```mlir
    func.func @main(%q: !q {tv.name = "q"}, %cu: !cu {tv.name = "cu_seqlens"})
        -> (!q {tv.name = "y"},
            !cu {tv.name = "wrong", tv.check = "cu_seqlens fall (1) or are no tokens' (2)"}) {
      %y, %lse = tv.attention %q, %q, %q scale(0.35) causal sequences(%cu) : (...) -> (...)
      %wrong = tv.sequence_errors %cu tokens(300) : (!cu) -> !cu
      return %y, %wrong : !q, !cu
    }
    %errors = tv.sequence_errors %cu used(%lengths) tokens(300)
       : (tensor<1x5xi32>, tensor<1x4xi32>) -> tensor<1x5xi32>
    ```
    Of `sequences` [B, N + 1] and `used` [B, N] of `tv.attention`, with so many tokens in a
    batch. The result is i32 of [B, N + 1]: of each bound 0, or the first of these that holds:

    - 1: it is less than the one before it: sequences fall;
    - 2: it is not in [0, tokens];
    - 3: the used length of the sequence that begins there is below 0, or more than there
      is up to where the next one begins.

    N must be static.
  }];
  let arguments = (ins AnyRankedTensor:$begins, Optional<AnyRankedTensor>:$used,
                       I64Attr:$tokens);
  let assemblyFormat = [{
    $begins (`used` `(` $used^ `)`)? `tokens` `(` $tokens `)` attr-dict `:`
    functional-type(operands, results)
  }];
}

def TensorView_PageErrorsOp : TensorView_DataErrorsOp<"page_errors"> {
  let summary = "What is wrong with the pages of sequences";
  let description = [{
    ```mlir
    func.func @main(%q: !q {tv.name = "q"}, %pages: !pages {tv.name = "pages"},
                    %table: !table {tv.name = "table"}, %lengths: !each {tv.name = "lengths"})
        -> (!q {tv.name = "y"}, !each {tv.name = "wrong", tv.check =
              "a cache is full (1), or a page is not there (2) or needed twice (3)"}) {
      %wrong = tv.page_errors %table lengths(%lengths) page(4) pages(16)
         : (tensor<5x3xi32>, tensor<5xi32>) -> tensor<5xi32>
      %y, %lse = tv.attention %q, %pages, %pages scale(0.35) pages(%table) : (...) -> (...)
        mask_mod (...) {...} // of keys below the sequence's length
      return %y, %wrong : !q, !each
    }
    ```
    Of `pages` [B, M] of `tv.attention`, of B sequences whose positions are so many as
    lengths [B] (i32) says, in pages of `page` positions, of which there are `pages`. A
    sequence needs the pages that its positions are in: the first ceil(length / page) of its
    row, all of them if it is too long for these. What stands behind them is not looked at.
    The result is i32 of [B]: of each sequence 0, or the first of these that holds:

    - 1: its length is below 0, or more than the M pages of its row have positions;
    - 2: a page that it needs is not in [0, pages);
    - 3: a page that it needs is needed again, by itself or by another sequence. (Of caches
      that share pages to be read, as of a prefix, 3 is none.)

    M must be static. Where sequences are split over devices, one all-reduce of [pages]
    finds pages that several need.
  }];
  let arguments = (ins AnyRankedTensor:$table, AnyRankedTensor:$lengths,
                       I64Attr:$page, I64Attr:$pages);
  let assemblyFormat = [{
    $table `lengths` `(` $lengths `)` `page` `(` $page `)` `pages` `(` $pages `)`
    attr-dict `:` functional-type(operands, results)
  }];
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

// Moves windows over the last dimensions of an input. It has no rule: views pass
// the core ops that it is made of.
class TensorView_WindowsOp<string mnemonic>
    : TensorView_PureOp<mnemonic, [Composite, InferExtents]> {
  dag windows = (ins OptionalAttr<DenseI64ArrayAttr>:$strides,
                     OptionalAttr<DenseI64ArrayAttr>:$low,
                     OptionalAttr<DenseI64ArrayAttr>:$high,
                     OptionalAttr<DenseI64ArrayAttr>:$dilations);
  string format = [{
    (`strides` $strides^)? (`low` $low^)? (`high` $high^)?
    (`dilations` $dilations^)? attr-dict `:` functional-type(operands, results)
  }];
  let results = (outs AnyRankedTensor:$result);
}

def TensorView_ConvOp : TensorView_WindowsOp<"conv"> {
  let summary = "Products of windows of an input and a weight";
  let description = [{
    ```mlir
    %y = tv.conv %x, %w bias %b strides [2, 2] low [1, 1] high [1, 1]
       : (tensor<4x3x32x32xf32>, tensor<8x3x3x3xf32>, tensor<8xf32>) -> tensor<4x8x16x16xf32>
    ```
    input [B, C, I...], weight [N, C / groups, K...], bias [N], result [B, N, O...],
    in one dimension or more; the weight is not turned around. Window o of a dimension
    has its element k at o stride + k dilation - low; `low` and `high` are borders of
    zeros. Strides and dilations are 1 and borders 0 where they are not given, and there
    are O = (I + low + high - (K - 1) dilation - 1) / stride + 1 windows, which must be
    static. With `groups(g)` group i of N / g results sees group i of C / g channels.

    Patches are windows whose strides are their extents.
  }];
  let arguments = !con((ins AnyRankedTensor:$input, AnyRankedTensor:$weight,
                            Optional<AnyRankedTensor>:$bias), windows,
                       (ins OptionalAttr<I64Attr>:$groups));
  let assemblyFormat =
      "$input `,` $weight (`bias` $bias^)? (`groups` `(` $groups^ `)`)?" # format;
}

def TensorView_PoolOp : TensorView_WindowsOp<"pool"> {
  let summary = "The largest element, or the mean, of each window";
  let description = [{
    ```mlir
    %y = tv.pool max %x sizes [2, 2] strides [2, 2]
       : (tensor<4x8x32x32xf32>) -> tensor<4x8x16x16xf32>
    ```
    Windows as of `tv.conv`, of these `sizes` over as many last dimensions. Borders of
    a maximum are -inf; a mean counts those of zeros too.
  }];
  let arguments = !con((ins TensorView_Pooling:$pooling, AnyRankedTensor:$input,
                            DenseI64ArrayAttr:$sizes), windows);
  let assemblyFormat = "$pooling $input `sizes` $sizes" # format;
}

def TensorView_DropoutOp : TensorView_CompositeOp<"dropout",
    [RuleAndPartial, Pointwise, Differentiable]> {
  let summary = "Drops elements with a probability, scales the others";
  let description = [{
    ```mlir
    %y = tv.dropout %x rate(0.1) seed(1) stream(2) step %t
       : (tensor<4x8xf32>, tensor<i64>) -> tensor<4x8xf32>
    ```
    x / (1 - rate) where tv.random of (seed, stream, step) and 16 bits is at least
    `rate`, else 0: what is dropped is `rate`, rounded up to a multiple of 2^-16, below
    1. The numbers depend on the global index, not on the mesh.
  }];
  let arguments = (ins AnyRankedTensor:$input, F64Attr:$rate, I64Attr:$seed,
                       I64Attr:$stream, Optional<AnyRankedTensor>:$step);
  let assemblyFormat = [{
    $input `rate` `(` $rate `)` `seed` `(` $seed `)` `stream` `(` $stream `)`
    (`step` $step^)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Of its numbers, of an attention's, too; the least number that stays, in
    /// units of the last bit.
    static constexpr int kBits = 16;
    static int64_t leastKept(double rate);
    static bool keeps(double rate, double number) {
      return number * (1 << kBits) >= double(leastKept(rate));
    }
  }];
}

#endif // TESSERA_TENSORVIEW_COMPOSITES_TD
