//===- TensorViewAttention.td - attention ------------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention, its gradient, and how kernels cut packed sequences. (A block mask is a
// composite.) TensorViewOps.td includes it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_ATTENTION_TD
#define TESSERA_TENSORVIEW_ATTENTION_TD

def TensorView_AttentionOp : TensorView_PureOp<"attention",
    [Rule, Differentiable, AttrSizedOperandSegments]> {
  let summary = "Scaled dot-product attention";
  let description = [{
    ```mlir
    %o, %lse = tv.attention %q, %k, %v scale(0.125) causal
        : (tensor<2x12x128x64xf32>, ...) -> (tensor<2x12x128x64xf32>, tensor<2x12x128xf32>)
      score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
        %x = tv.load %bias[%h, %qi] : tensor<12x128xf32> -> f32
        %y = arith.addf %s, %x : f32
        tv.yield %y : f32
      }
      mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
        %m = arith.cmpi sle, %ki, %qi : index
        tv.yield %m : i1
      }
    ```
    q [B, H, S, D], k [B, G, T, D], v [B, G, T, V] where G divides H (grouped
    queries: head h reads group h / (H/G)); result [B, H, S, V] and the log-sum-exp
    of the scaled, modified scores in f32 (f64 for f64) [B, H, S]. The score is
    multiplied by `scale`, then `score_mod` runs, then the masks. `causal` keeps
    ki <= qi + T - S. A row without any key gives 0 and -inf. Indices in regions
    are global.

    `dropout(0.1) seed(1) stream(2) step %t` is that of `tv.dropout` on the weights,
    [B, H, S, T] after the softmax: of each row some are 0, the others divided by 0.9.
    The log-sum-exp does not see it.

    A block mask says in advance what mask_mod would, block by block, so that kernels
    leave blocks out:

    ```mlir
    %bm = tv.block_mask of [8192, 8192] blocks [128, 128] : () -> tensor<1x1x64x64xi8>
      mask_mod (...) {...}
    %o, %lse = tv.attention %q, %k, %v scale(0.125) block_mask(%bm) blocks [128, 128]
        : (...) -> (...)
      mask_mod (...) {...}
    ```
    Of each block of queries and keys, [B or 1, H or 1, S/128, T/128] rounded up, the
    i8 is 0: none of its pairs is kept; 1: those that mask_mod keeps; 2: all, and
    mask_mod is not asked. `causal` holds besides. The mask is whole on every device. The
    mask_mod of a `tv.block_mask` in the same function must be written as the attention's.

    Packed sequences lie one behind the other, in each batch its own, S = T, and each
    attends to itself alone:

    ```mlir
    %o, %lse = tv.attention %q, %k, %v scale(0.125) causal sequences(%begins)
        : (tensor<1x12x8192x64xbf16>, ..., tensor<1x33xi32>) -> (...)
    ```
    `begins` [B, N + 1] (i32) says where each of N sequences begins and, behind the last
    one, where that ends; it is whole on every device. A sequence may be empty; one that
    would begin before the end of another begins there. A position of no sequence, such
    as one behind the last, is a row without any key. mask_mod and score_mod see
    positions of the batch, and `causal` and mask_mod hold besides. On GPUs, where a
    device has one batch and all positions, kernels go through what is in a sequence alone;
    where it has more, or parts of the positions, they ask of each pair whether it is.

    `sequences(%begins) used(%lengths)` says besides how many positions of each there are
    (FlashAttention's seqused), i32 of [B, N] and whole on every device: of sequence i the
    first lengths[i], none if that is below 0 and all if it is beyond its end. Those behind
    them are of no sequence, whatever stands there, as in rows of one size that are padded.

    `tv.sequence_errors` says what of these data is wrong, for a `tv.check`.

    `tiles` of `tv.packed_tiles` say the same as the sequences that these are of, for
    kernels.

    Keys and values may lie in pages, as those of caches that grow:

    ```mlir
    %o, %lse = tv.attention %q, %k, %v scale(0.125) pages(%table)
        : (tensor<8x32x1x128xbf16>, tensor<900x4x64x128xbf16>, ..., tensor<8x40xi32>) -> (...)
      mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
        %n = tv.load %lengths[%b] : tensor<8xi32> -> i32
        %end = arith.index_cast %n : i32 to index
        %m = arith.cmpi slt, %ki, %end : index
        tv.yield %m : i1
      }
    ```
    Then key [P, G, R, D] and value [P, G, R, V] are pages of R positions, and `table`
    [B, M] (i32) says which page has the positions from i R on of a batch: T = M R. An
    entry that is no page is one of zeros, and a page may be of several batches. Pages are
    whole on every device but for their heads; the table may be split by batches. How many
    keys a batch has mask_mod says: kernels do not read pages that it keeps no key of. On
    GPUs `flash` reads them where they lie, for a decoder's step as for a piece of a prompt,
    where the number of pages is static; `math` gathers them. There is no gradient.
    `tv.page_errors` says which sequences have
    wrong pages.
  }];
  let arguments = (ins AnyRankedTensor:$query, AnyRankedTensor:$key,
                       AnyRankedTensor:$value,
                       Optional<AnyRankedTensor>:$step,
                       Optional<AnyRankedTensor>:$blockMask,
                       Optional<AnyRankedTensor>:$sequences,
                       Optional<AnyRankedTensor>:$used,
                       Optional<AnyRankedTensor>:$tiles,
                       Optional<AnyRankedTensor>:$pages, F64Attr:$scale,
                       UnitAttr:$causal,
                       OptionalAttr<F64Attr>:$dropout,
                       OptionalAttr<I64Attr>:$seed, OptionalAttr<I64Attr>:$stream,
                       OptionalAttr<DenseI64ArrayAttr>:$blocks);
  let results = (outs AnyRankedTensor:$result, AnyRankedTensor:$lse);
  let regions = (region MaxSizedRegion<1>:$scoreMod, MaxSizedRegion<1>:$maskMod);
  let assemblyFormat = [{
    $query `,` $key `,` $value `scale` `(` $scale `)` (`causal` $causal^)?
    (`dropout` `(` $dropout^ `)` `seed` `(` $seed `)` `stream` `(` $stream `)`)?
    (`step` $step^)?
    (`block_mask` `(` $blockMask^ `)` `blocks` $blocks)?
    (`sequences` `(` $sequences^ `)`)? (`used` `(` $used^ `)`)?
    (`tiles` `(` $tiles^ `)`)? (`pages` `(` $pages^ `)`)? attr-dict `:` functional-type(operands, results)
    (`score_mod` custom<ScalarRegion>($scoreMod)^)?
    (`mask_mod` custom<ScalarRegion>($maskMod)^)?
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Which pairs there are or where their keys lie, as an operand says: the last one, a
    /// block mask, sequences, tiles or pages. Null if there is none.
    ::mlir::Value getStructure() {
      return getBlockMask()   ? getBlockMask()
             : getSequences() ? getSequences()
             : getTiles()     ? getTiles()
                              : getPages();
    }
    /// Of a batch: M R of pages.
    int64_t getNumKeys();
  }];
}

def TensorView_AttentionGradOp : TensorView_PureOp<"attention_grad",
    [RuleAndPartial, AttrSizedOperandSegments]> {
  let summary = "The gradients of tv.attention";
  let description = [{
    ```mlir
    %dq, %dk, %dv, %dbias = tv.attention_grad %do, %q, %k, %v, %o, %lse
        scale(0.125) causal captured %bias
        : (tensor<2x12x128x64xf32>, ...) -> (tensor<2x12x128x64xf32>, ...)
      score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
        %x = tv.load %bias[%h, %qi] : tensor<12x128xf32> -> f32
        %y = arith.addf %s, %x : f32
        tv.yield %y : f32
      }
      score_grad (%s: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
        tv.accumulate 0 [%h, %qi], %dy : f32
        tv.yield %dy : f32
      }
    ```
    do and o are of the shape of the attention's result, o and lse what it gave for
    q, k, v with the same attributes and regions; `dlse` is the gradient of lse where
    that was used. The results are the gradients of q, k, v and of each tensor in
    `captured`, which score_mod loads from and which must be of floats.

    `score_grad` is the transpose of score_mod at one score: from the scaled score s
    and the gradient dy of what score_mod made of it, it yields the gradient of s and
    adds with `tv.accumulate` to the gradients of captured tensors. Without it,
    `tv-differentiate` writes it. It does not run for scores that are masked; a row
    without any key gives 0 everywhere. Sums are in f32 (f64 for f64) and rounded
    once. A block mask, sequences, their used lengths or tiles are the attention's;
    `tv-differentiate` holds them, the attributes and the regions against an attention
    that gave o in the same function.
  }];
  let arguments = (ins AnyRankedTensor:$grad, AnyRankedTensor:$query,
                       AnyRankedTensor:$key, AnyRankedTensor:$value,
                       AnyRankedTensor:$output, AnyRankedTensor:$lse,
                       Optional<AnyRankedTensor>:$lseGrad,
                       Variadic<AnyRankedTensor>:$captured,
                       Optional<AnyRankedTensor>:$step,
                       Optional<AnyRankedTensor>:$blockMask,
                       Optional<AnyRankedTensor>:$sequences,
                       Optional<AnyRankedTensor>:$used,
                       Optional<AnyRankedTensor>:$tiles, F64Attr:$scale,
                       UnitAttr:$causal,
                       OptionalAttr<F64Attr>:$dropout,
                       OptionalAttr<I64Attr>:$seed, OptionalAttr<I64Attr>:$stream,
                       OptionalAttr<DenseI64ArrayAttr>:$blocks);
  let results = (outs AnyRankedTensor:$queryGrad, AnyRankedTensor:$keyGrad,
                      AnyRankedTensor:$valueGrad,
                      Variadic<AnyRankedTensor>:$capturedGrads);
  let regions = (region MaxSizedRegion<1>:$scoreMod, MaxSizedRegion<1>:$maskMod,
                        MaxSizedRegion<1>:$scoreGrad);
  let assemblyFormat = [{
    $grad `,` $query `,` $key `,` $value `,` $output `,` $lse
    (`dlse` $lseGrad^)? `scale` `(` $scale `)` (`causal` $causal^)?
    (`dropout` `(` $dropout^ `)` `seed` `(` $seed `)` `stream` `(` $stream `)`)?
    (`step` $step^)?
    (`captured` $captured^)?
    (`block_mask` `(` $blockMask^ `)` `blocks` $blocks)?
    (`sequences` `(` $sequences^ `)`)? (`used` `(` $used^ `)`)?
    (`tiles` `(` $tiles^ `)`)? attr-dict `:` functional-type(operands, results)
    (`score_mod` custom<ScalarRegion>($scoreMod)^)?
    (`mask_mod` custom<ScalarRegion>($maskMod)^)?
    (`score_grad` custom<ScalarRegion>($scoreGrad)^)?
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Which pairs there are, as an operand says: the last one, a block mask, sequences
    /// or tiles. Null if there is none.
    ::mlir::Value getStructure() {
      return getBlockMask()   ? getBlockMask()
             : getSequences() ? getSequences()
                              : getTiles();
    }
  }];
}

def TensorView_PackedTilesOp : TensorView_PureOp<"packed_tiles", [Rule]> {
  let summary = "The tiles that kernels cut packed sequences into";
  let description = [{
    ```mlir
    %t = tv.packed_tiles %begins rows(128) causal : (tensor<1x33xi32>) -> tensor<1x8452xi32>
    %o, %lse = tv.attention %q, %k, %v scale(0.125) causal tiles(%t) : (...) -> (...)
    ```
    For `tv.attention`: where N sequences begin and how many positions of each are used, as
    its `sequences` [B, N + 1] and `used` are (`tv.packed_tiles %begins used %lengths`), and
    how many rows a tile has, at least 4. The result is i32 of [B, S + 8 N + 4], S being the
    number of positions: four words, four for each sequence and four for each tile. First
    come the number of tiles and that of positions of sequences; then of each sequence where
    it begins, how long it is as far as it is used and its number of tiles; then of each
    tile where its sequence begins, how long that is, the tile's number in it, and the
    sequence's. Other words are 0.

    Tiles stand in the order of launch: inside sections of 16384 positions, in which
    sequences that begin there are, those with most keys first (FlashAttention's longest
    processing time first). One list is for all heads, for all layers, and for the
    gradient as well; `tv-expand-composites` makes it where a kernel takes it.
  }];
  let arguments = (ins AnyRankedTensor:$begins, Optional<AnyRankedTensor>:$used,
                       I64Attr:$rows, UnitAttr:$causal);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $begins (`used` $used^)? `rows` `(` $rows `)` (`causal` $causal^)? attr-dict `:`
    functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The sequences; how many positions they are of.
    int64_t getNumSequences();
    int64_t getNumPositions();
  }];
}

#endif // TESSERA_TENSORVIEW_ATTENTION_TD
