//===- TensorViewOps.td - the ops of tv --------------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Few and orthogonal core ops, then composites that are defined by them. Shapes
// in descriptions are global; capital letters are extents.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_OPS_TD
#define TESSERA_TENSORVIEW_OPS_TD

include "TensorView/TensorViewAttrs.td"
include "TensorView/TensorViewInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"

def Rule : DeclareOpInterfaceMethods<ShardingRuleOpInterface>;
def RuleAndPartial
    : DeclareOpInterfaceMethods<ShardingRuleOpInterface, ["transferPartial"]>;
def Composite : DeclareOpInterfaceMethods<CompositeOpInterface>;
def Differentiable : DeclareOpInterfaceMethods<DifferentiableOpInterface>;
def Reinterpret : DeclareOpInterfaceMethods<ReinterpretOpInterface>;
def Windows : DeclareOpInterfaceMethods<WindowOpInterface>;
def InferExtents : DeclareOpInterfaceMethods<ExtentsOpInterface>;
def Contraction : DeclareOpInterfaceMethods<ContractionOpInterface>;
class Elements<list<string> own = []>
    : DeclareOpInterfaceMethods<ElementOpInterface, own>;

// Cheaper to make anew at each use than to move.
def Rematerializable : NativeOpTrait<"Rematerializable">;
// Runs on every element by itself and names no dimension.
def Pointwise : NativeOpTrait<"Pointwise">;
// The result may lie in the operand's memory.
def SharesMemory : NativeOpTrait<"SharesMemory">;
// Says something to propagation, and is gone after it.
def GuidesPropagation : NativeOpTrait<"GuidesPropagation">;

class TensorView_Op<string mnemonic, list<Trait> traits = []>
    : Op<TensorView_Dialect, mnemonic, traits>;

// An op on tensors without side effects; `op operands attributes : (types) -> types`.
class TensorView_PureOp<string mnemonic, list<Trait> traits = []>
    : TensorView_Op<mnemonic, [Pure] # traits> {
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Scalar regions
//===----------------------------------------------------------------------===//

def TensorView_YieldOp : TensorView_Op<"yield", [Pure, Terminator]> {
  let summary = "Ends a scalar region";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def TensorView_LoadOp : TensorView_Op<"load", [Pure]> {
  let summary = "One element of a captured tensor, in a scalar region";
  let description = [{
    ```mlir
    %x = tv.load %bias[%h, %qi] : tensor<12x128xf32> -> f32
    ```
    Indices are global. Captured tensors are whole on every device. Where an index
    is outside of the tensor, or below 0, the value is 0.
  }];
  let arguments = (ins AnyRankedTensor:$tensor, Variadic<Index>:$indices);
  let results = (outs AnyType:$result);
  let assemblyFormat =
      "$tensor `[` $indices `]` attr-dict `:` type($tensor) `->` type($result)";
  let hasVerifier = 1;
}

def TensorView_AccumulateOp
    : TensorView_Op<"accumulate", [MemoryEffects<[MemWrite]>]> {
  let summary = "Adds to one element of a captured tensor's gradient";
  let description = [{
    ```mlir
    tv.accumulate 0 [%h, %qi], %adjoint : f32
    ```
    The transpose of `tv.load`, in the `score_grad` of an `attention_grad` alone:
    into the gradient of the captured tensor of this number. An index outside is
    dropped.
  }];
  let arguments = (ins I64Attr:$number, Variadic<Index>:$indices,
                       AnyFloat:$adjoint);
  let assemblyFormat = [{
    $number `[` $indices `]` `,` $adjoint attr-dict `:` type($adjoint)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Pointwise, reductions, broadcasts
//===----------------------------------------------------------------------===//

def TensorView_MapOp : TensorView_PureOp<"map",
    [RuleAndPartial, Elements<>, Pointwise, SingleBlock, Differentiable]> {
  let summary = "A scalar function of the elements at one index";
  let description = [{
    ```mlir
    %r = tv.map %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      (%x: f32, %y: f32) {
        %s = arith.addf %x, %y : f32
        tv.yield %s : f32
      }
    ```
    All operands and results have one shape; element types may differ, and an
    unsigned element is a signless integer in the region. The region holds `arith`,
    `math` and `tv.load`, which alone may use a value from outside.

    Each op has a result for all operands, the same on all targets. Integers wrap, so
    the least one divided by -1 is itself. A quotient by 0 is 0, and the remainder what
    was divided. A shift by the width or more, or by less than 0, leaves 0, and of
    `shrsi` the sign in all bits. A float is cut to its integer towards 0, and to the
    least or largest of the type; a NaN becomes 0.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $inputs attr-dict `:` functional-type($inputs, $results)
    custom<ScalarRegion>($body)
  }];
  let hasRegionVerifier = 1;
}

def TensorView_ReduceOp : TensorView_PureOp<"reduce",
    [RuleAndPartial, Elements<["getLooped", "getReduction"]>, Differentiable]> {
  let summary = "Combines the elements along some dimensions";
  let description = [{
    ```mlir
    %r = tv.reduce sum %x dims [2] : (tensor<2x3x4xf32>) -> tensor<2x3xf32>
    ```
    `dims` ascend and vanish from the result. Accumulates in f32 (f64 for f64).
    The empty reduction is the combiner's identity.
  }];
  let arguments = (ins TensorView_Combiner:$combiner, AnyRankedTensor:$input,
                       DenseI64ArrayAttr:$dims);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $combiner $input `dims` $dims attr-dict `:` functional-type(operands, results)
  }];
}

def TensorView_BroadcastOp : TensorView_PureOp<"broadcast",
    [RuleAndPartial, Elements<["getReadValues", "isFree"]>, Rematerializable,
     Differentiable]> {
  let summary = "Repeats a tensor along new dimensions";
  let description = [{
    ```mlir
    %r = tv.broadcast %x dims [2] : (tensor<4xf32>) -> tensor<2x3x4xf32>
    %r = tv.broadcast %x dims [2] like %t
       : (tensor<4xf32>, tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
    ```
    Operand dimension i is result dimension dims[i]; `dims` ascend. New dynamic
    extents are those of `like`, whose elements are not read.
  }];
  let arguments = (ins AnyRankedTensor:$input, DenseI64ArrayAttr:$dims,
                       Optional<AnyRankedTensor>:$like);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `dims` $dims (`like` $like^)? attr-dict `:`
    functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

def TensorView_ContractOp : TensorView_PureOp<"contract",
    [RuleAndPartial, Contraction, AttrSizedOperandSegments, Differentiable]> {
  let summary = "The product of two tensors, summed over some dimensions";
  let description = [{
    ```mlir
    %c = tv.contract %a [0, 1, 3], %b [2, 3] bias %bias to [0, 1, 2]
       : (tensor<2x3x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<2x3x16xf32>
    ```
    A label for each dimension. One in a, b and the result is a batch, in a and the
    result a row, in b and the result a column; over one in a and b it sums, in f32
    (f64 for f64). A label is in two tensors at least, once in each. A bias has an
    element for each index of the result's last dimension, which must be a column
    then. The result may be f32 where a and b are narrower: what it sums, not rounded.

    ```mlir
    %s = tv.contract %x [0, 1], %d [0, 2] add %before to [1, 2]
       : (tensor<64x8xbf16>, tensor<64x16xbf16>, tensor<8x16xf32>) -> tensor<8x16xf32>
    ```
    An addend has the result's shape. It joins the sum before that is rounded, once:
    where the product is partial, so is the addend.

    `linear` and `matmul` are contractions with names.
  }];
  let arguments = (ins AnyRankedTensor:$a, AnyRankedTensor:$b,
                       Optional<AnyRankedTensor>:$bias,
                       Optional<AnyRankedTensor>:$addend,
                       DenseI32ArrayAttr:$aLabels, DenseI32ArrayAttr:$bLabels,
                       DenseI32ArrayAttr:$labels);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $a $aLabels `,` $b $bLabels (`bias` $bias^)? (`add` $addend^)? `to` $labels
    attr-dict `:` functional-type(operands, results)
  }];
}

def TensorView_LinearOp : TensorView_PureOp<"linear",
    [RuleAndPartial, Contraction, Differentiable]> {
  let summary = "x times the transposed weight, plus a bias";
  let description = [{
    ```mlir
    %y = tv.linear %x, %w bias %b
       : (tensor<2x3x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<2x3x16xf32>
    ```
    input [..., K], weight [N, K], bias [N], result [..., N].
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$weight,
                       Optional<AnyRankedTensor>:$bias);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^)? attr-dict `:`
    functional-type(operands, results)
  }];
}

def TensorView_MatmulOp : TensorView_PureOp<"matmul",
    [RuleAndPartial, Contraction, Differentiable]> {
  let summary = "Batched matrix product";
  let description = [{
    lhs [..., M, K], rhs [..., K, N], result [..., M, N]; the batch dimensions are
    equal. A transposed operand is a `tv.transpose`, which moves nothing.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
      "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def TensorView_GroupedMatmulOp : TensorView_PureOp<"grouped_matmul",
    [RuleAndPartial, Differentiable]> {
  let summary = "One linear an expert, on the rows that it has";
  let description = [{
    input [E, C, K], weight [E, N, K], counts [E] (i32), result [E, C, N]. Rows at
    and beyond an expert's count are 0.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$weight,
                       AnyRankedTensor:$counts);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `,` $weight `counts` $counts attr-dict `:`
    functional-type(operands, results)
  }];
}

include "TensorView/TensorViewAttention.td"

//===----------------------------------------------------------------------===//
// Same elements, other indices
//===----------------------------------------------------------------------===//

def TensorView_ReshapeOp : TensorView_PureOp<"reshape",
    [Reinterpret, InferExtents, SharesMemory, Differentiable]> {
  let summary = "The same elements in row-major order under another shape";
  let description = [{
    ```mlir
    %r = tv.reshape %x : (tensor<?x128x384xf32>) -> tensor<?x128x12x32xf32>
    ```
    Dynamic extents of the result are the operand's, in order. A result with one of
    them takes what the other extents leave, which must be a whole number whatever the
    operand's are: `[2, ?]` may become `[?]` and `[2, ?]` again.
  }];
  let arguments = (ins AnyRankedTensor:$input);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
      "$input attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def TensorView_TransposeOp : TensorView_PureOp<"transpose",
    [RuleAndPartial, SharesMemory, Differentiable]> {
  let summary = "Permutes dimensions";
  let description = [{ Result dimension i is operand dimension perm[i]. }];
  let arguments = (ins AnyRankedTensor:$input, DenseI64ArrayAttr:$perm);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
      "$input `perm` $perm attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def TensorView_SliceOp : TensorView_PureOp<"slice",
    [RuleAndPartial, Elements<>, Windows, SharesMemory, Differentiable]> {
  let summary = "A box of a tensor";
  let description = [{
    ```mlir
    %q = tv.slice %x offsets [0, 0, 384]
       : (tensor<2x128x1152xf32>) -> tensor<2x128x384xf32>
    ```
    The result's shape is the box. A dynamic dimension is taken whole. Of a split
    operand each device keeps what it has of the box: `[did(tp) * 4]` from 3 to 10 is
    `[(did(tp) * 4 | 3:10)]`, and only a reshard after it moves what a device lacks.
    Whether there is one where the result's view is open, `tv-propagate-shardings`
    says.
  }];
  let arguments = (ins AnyRankedTensor:$input, DenseI64ArrayAttr:$offsets);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
      "$input `offsets` $offsets attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def TensorView_ConcatOp : TensorView_PureOp<"concat",
    [RuleAndPartial, Elements<>, Windows, InferExtents, Differentiable]> {
  let summary = "Tensors one after the other along a dimension";
  let description = [{
    ```mlir
    %c = tv.concat %a, %b dim 1
       : (tensor<4x8xf32>, tensor<4x3xf32>) -> tensor<4x11xf32>
    ```
    Where the result is split along `dim`, each operand must lie as its box of it:
    of `[did(tp) * 6]`, 11 values, the first 8 are `[(did(tp) * 6 | 8)]`. A reshard
    before it moves what a device lacks.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, I64Attr:$dim);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
      "$inputs `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def TensorView_PadOp : TensorView_PureOp<"pad",
    [RuleAndPartial, Elements<>, Windows, InferExtents, Differentiable]> {
  let summary = "A tensor with a border of one value";
  let description = [{
    ```mlir
    %r = tv.pad %x low [0, 1] high [0, 2] value 0.0 : f32
       : (tensor<4x8xf32>) -> tensor<4x11xf32>
    ```
    Where the result is split, the operand must lie as its box of it, as for
    `concat`.
  }];
  let arguments = (ins AnyRankedTensor:$input, DenseI64ArrayAttr:$low,
                       DenseI64ArrayAttr:$high, TypedAttrInterface:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `low` $low `high` $high `value` $value attr-dict `:`
    functional-type(operands, results)
  }];
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Elements at run-time indices
//===----------------------------------------------------------------------===//

def TensorView_GatherOp : TensorView_PureOp<"gather",
    [RuleAndPartial, Elements<>, Differentiable]> {
  let summary = "Slices of a table at run-time indices";
  let description = [{
    ```mlir
    %e = tv.gather %table, %ids dim 0
       : (tensor<30522x384xf32>, tensor<2x128xi32>) -> tensor<2x128x384xf32>
    ```
    The result has the dimensions of `indices` in place of the table's `dim`. An
    index outside of the table is 0 in every element.
  }];
  let arguments = (ins AnyRankedTensor:$table, AnyRankedTensor:$indices,
                       I64Attr:$dim);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $table `,` $indices `dim` $dim attr-dict `:`
    functional-type(operands, results)
  }];
}

def TensorView_ScatterOp : TensorView_PureOp<"scatter",
    [RuleAndPartial, Differentiable]> {
  let summary = "Updates of a tensor at run-time indices";
  let description = [{
    ```mlir
    %g = tv.scatter sum %init, %ids, %updates dim 0
       : (tensor<100x8xf32>, tensor<2x5xi32>, tensor<2x5x8xf32>) -> tensor<100x8xf32>
    ```
    Updates have the dimensions of `indices` in place of `dim`; `sum`, `max` and
    `min` combine them in row-major order of the indices, sums in f32 (f64 for
    f64); GPUs sum parts of many updates first, the same ones in every run. Of `set`
    the last one stays, as of rows that are appended to a cache. An index outside is
    dropped.
  }];
  let arguments = (ins TensorView_Update:$update, AnyRankedTensor:$init,
                       AnyRankedTensor:$indices, AnyRankedTensor:$updates,
                       I64Attr:$dim);
  let results = (outs AnyRankedTensor:$result);
  let extraClassDeclaration = [{
    /// None of `set`.
    std::optional<Combiner> getCombiner() {
      if (getUpdate() == Update::Set)
        return std::nullopt;
      return static_cast<Combiner>(getUpdate());
    }
  }];
  let assemblyFormat = [{
    $update $init `,` $indices `,` $updates `dim` $dim attr-dict `:`
    functional-type(operands, results)
  }];
}

def TensorView_CumsumOp : TensorView_PureOp<"cumsum",
    [RuleAndPartial, Differentiable]> {
  let summary = "Sums of all elements up to each, along a dimension";
  let description = [{
    ```mlir
    %s = tv.cumsum %x dim 1 : (tensor<2x5xf32>) -> tensor<2x5xf32>
    %r = tv.cumsum reverse %x dim 1 : (tensor<2x5xf32>) -> tensor<2x5xf32>
    ```
    `reverse`: of all elements from each on. Sums in f32 (f64 for f64), in order;
    integers wrap.
  }];
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$dim, UnitAttr:$reverse);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    `` custom<Flag>($reverse, "\"reverse\"") $input `dim` $dim attr-dict `:`
    functional-type(operands, results)
  }];
}

def TensorView_DispatchOp : TensorView_PureOp<"dispatch",
    [Rule, Differentiable]> {
  let summary = "Tokens into the buffers of their experts";
  let description = [{
    tokens [T, D], experts [T, K] (i32, expert of each token's k-th choice), result
    [E, C, D] with the capacity C, counts [E] (i32), slots [T, K] (i32, the row
    that a choice got, or -1 beyond the capacity). Rows are given out in row-major
    order of `experts`; unused rows are 0. A choice of an expert that there is none of
    gets no row, and -1.
  }];
  let arguments = (ins AnyRankedTensor:$tokens, AnyRankedTensor:$experts);
  let results = (outs AnyRankedTensor:$result, AnyRankedTensor:$counts,
                      AnyRankedTensor:$slots);
  let assemblyFormat = [{
    $tokens `,` $experts attr-dict `:` functional-type(operands, results)
  }];
}

def TensorView_CombineOp : TensorView_PureOp<"combine",
    [RuleAndPartial, Elements<>, Differentiable]> {
  let summary = "Weighted sum of what the experts made of each token";
  let description = [{
    buffers [E, C, D], experts [T, K], slots [T, K] (from `dispatch`), weights
    [T, K], result [T, D]. A choice without a row, or outside of the buffers, adds 0.
  }];
  let arguments = (ins AnyRankedTensor:$buffers, AnyRankedTensor:$experts,
                       AnyRankedTensor:$slots, AnyRankedTensor:$weights);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $buffers `,` $experts `,` $slots `,` $weights attr-dict `:`
    functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

// Reads no elements, and so is free.
class TensorView_SourceOp<string mnemonic, list<string> own = []>
    : TensorView_PureOp<mnemonic, [Rule, Rematerializable, Elements<own>]> {
  let results = (outs AnyRankedTensor:$result);
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> getReadValues() { return {}; }
    bool isFree() { return hasElements(); }
  }];
}

def TensorView_ConstantOp : TensorView_SourceOp<"constant", ["hasElements"]> {
  let summary = "A constant tensor";
  let description = [{
    ```mlir
    %c = tv.constant dense<1.0> : tensor<4x8xf32> : () -> tensor<4x8xf32>
    %c = tv.constant dense<0.0> : tensor<f32> like %t
       : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
    The value has the global shape of the result, or rank 0: every element then.
    It has no encoding. A dynamic shape needs rank 0 and, unless the type is local,
    `like`.
  }];
  let arguments = (ins ElementsAttr:$value, Optional<AnyRankedTensor>:$like);
  let assemblyFormat = [{
    $value (`like` $like^)? attr-dict `:` functional-type(operands, results)
  }];
}

def TensorView_IotaOp : TensorView_SourceOp<"iota"> {
  let summary = "The index along a dimension";
  let description = [{ Elements are i32, i64, f32 or f64. }];
  let arguments = (ins I64Attr:$dim, Optional<AnyRankedTensor>:$like);
  let assemblyFormat = [{
    $dim (`like` $like^)? attr-dict `:` functional-type(operands, results)
  }];
}

def TensorView_RandomOp
    : TensorView_PureOp<"random",
    [Rule, Rematerializable, AttrSizedOperandSegments,
     Elements<["getElementsAtOnce", "getReadValues", "isFree"]>]> {
  let summary = "Uniform numbers in [0, 1) that depend on the global index alone";
  let description = [{
    ```mlir
    %r = tv.random seed(1) stream(2) : () -> tensor<4x8xf32>
    %r = tv.random seed(1) stream(2) step %t : (tensor<i64>) -> tensor<4x8xf32>
    %h = tv.random seed(1) stream(2) bits(16) : () -> tensor<4x8xf32>
    ```
    Philox 4x32-10 (Salmon et al., SC 2011): key = (seed's low and high 32 bits),
    counter = (row-major global index / 4 in its low 64 bits, `stream` + 2^32 `step`
    in its high 64 bits), word = index % 4, value = (word >> 8) * 2^-24, of type f32.
    Without a step it is 0; with a state that counts steps each has other numbers.

    Of 16 bits, for what is compared with a rate: Philox 4x32-7, which passes the same
    tests of randomness, counter = (index / 8, as above), word = index % 8 / 2, value =
    its low half, or its high half where the index is odd, * 2^-16.
  }];
  let arguments = (ins I64Attr:$seed, I64Attr:$stream,
                       DefaultValuedAttr<I64Attr, "24">:$bits,
                       Optional<AnyRankedTensor>:$step,
                       Optional<AnyRankedTensor>:$like);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    `seed` `(` $seed `)` `stream` `(` $stream `)` (`bits` `(` $bits^ `)`)?
    (`step` $step^)? (`like` $like^)? attr-dict `:` functional-type(operands, results)
  }];
}

def TensorView_SizeOp
    : TensorView_PureOp<"size", [Rule, Elements<["getReadValues", "isFree"]>]> {
  let summary = "A global extent, as a tensor of rank 0";
  let description = [{
    Of type i32, i64, f32 or f64. The operand's elements are not read.
  }];
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$dim);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
      "$input `dim` $dim attr-dict `:` functional-type(operands, results)";
}

include "TensorView/TensorViewPlacing.td"

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

def TensorView_CallOp : TensorView_PureOp<"call",
    [CallOpInterface, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A function's results, at the sizes of this call";
  let description = [{
    ```mlir
    func.func private @rotate(%x: tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32> {
      %r = tv.rope %x base(10000.0) : (tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32>
      return %r : tensor<?x?x?x64xf32>
    }
    %q1 = tv.call @rotate(%q) : (tensor<2x8x16x64xf32>) -> tensor<2x8x16x64xf32>
    %k1 = tv.call @rotate(%k) : (tensor<2x2x16x64xf32>) -> tensor<2x2x16x64xf32>
    ```
    Where the function's types have `?`, the extents are those of the call, and where
    they have no view, so is the view; all else must be equal. (`func.call` wants equal
    types.) `tv-inline` puts the function's ops in the place of the call, at these
    extents; there is an error if they do not give the results' types.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee,
                       Variadic<AnyRankedTensor>:$inputs,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat =
      "$callee `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)";
  let extraClassDeclaration = [{
    ::mlir::CallInterfaceCallable getCallableForCallee() {
      return getCalleeAttr();
    }
    void setCalleeFromCallable(::mlir::CallInterfaceCallable callee) {
      setCalleeAttr(::llvm::cast<::mlir::FlatSymbolRefAttr>(
          ::llvm::cast<::mlir::SymbolRefAttr>(callee)));
    }
    operand_range getArgOperands() { return getInputs(); }
    ::mlir::MutableOperandRange getArgOperandsMutable() {
      return getInputsMutable();
    }
  }];
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

def TensorView_GradientOp : TensorView_PureOp<"gradient",
    [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A function's results and their gradients by its arguments";
  let description = [{
    ```mlir
    %loss, %dw, %db = tv.gradient @loss(%x, %w, %b) of [0] to [1, 2]
       : (!x, !w, !b) -> (!loss, !w, !b)
    %y, %dx = tv.gradient @block(%x, %w) of [0] with (%dy) to [0]
       : (!x, !w, !x) -> (!x, !x)
    ```
    First all results of the function, which must inline; then for each argument in
    `to` the gradient of the results in `of`, a float of the argument's shape and
    element type. A result that is no scalar has its own gradient in `with`, of its
    shape; then all in `of` have.

    A gradient lies as its type says; where that has no view, as the argument. Equal
    elements of which one is the largest or least share its gradient evenly. Where a
    `select` or `tv.where` does not take a value, its gradient is 0 whatever its slope
    is. By an argument on which the results do not depend it is 0, with a remark.

    `tv-differentiate` replaces the op by the function's ops and those of the gradient:
    what `DifferentiableOpInterface` says of an op; of a pointwise op what its scalar
    function says; of any other composite what its decomposition says.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee,
                       Variadic<AnyRankedTensor>:$inputs,
                       Variadic<AnyRankedTensor>:$cotangents,
                       DenseI64ArrayAttr:$of, DenseI64ArrayAttr:$to);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $callee `(` $inputs `)` `of` $of (`with` `(` $cotangents^ `)`)? `to` $to
    attr-dict `:` functional-type(operands, results)
  }];
}

include "TensorView/TensorViewComposites.td"

#endif // TESSERA_TENSORVIEW_OPS_TD
