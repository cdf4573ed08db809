//===- Plan.td - the plan dialect --------------------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a module file holds, as IR: the steps in order and the tensors between
// them. A module is a transcription of it, one step or tensor an op.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLAN_TD
#define TESSERA_PLAN_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::tessera::plan";
  let summary = "The steps of a module and the memory between them";
  let description = [{
    Operands and results are local tensors; each op but `plan.alias` and `plan.join`
    writes its results into memory of their own. Together with the ops of `comm`, all
    that a planned program holds. `plan.target` on the module op says what the plan is
    for: `#plan.target<"cuda:sm_90a">`; without it the cpu.
  }];
  let dependentDialects = ["::tessera::tv::TensorViewDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

def Plan_TargetAttr : AttrDef<Plan_Dialect, "Target"> {
  let mnemonic = "target";
  let summary = "What a program is compiled for";
  let description = [{
    `#plan.target<"cuda:sm_90a">`. One that there is (Plan/Target.h).
  }];
  let parameters = (ins StringRefParameter<>:$name);
  let assemblyFormat = "`<` $name `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Scalars of a launch
//===----------------------------------------------------------------------===//

def Plan_CoordAttr : AttrDef<Plan_Dialect, "Coord"> {
  let mnemonic = "coord";
  let summary = "The device's coordinate on a mesh axis";
  let description = [{ `#plan.coord<"tp">` }];
  let parameters = (ins StringRefParameter<>:$axis);
  let assemblyFormat = "`<` $axis `>`";
}

def Plan_ExtentAttr : AttrDef<Plan_Dialect, "Extent"> {
  let mnemonic = "extent";
  let summary = "A size that is known when a module is bound";
  let description = [{ `#plan.extent<2 * b * s + 1>` }];
  let parameters = (ins AttrParameter<"::tessera::layout::Extent", "",
                                      "const ::tessera::layout::Extent &">:$extent);
  let hasCustomAssemblyFormat = 1;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

class Plan_Op<string mnemonic, list<Trait> traits = []>
    : Op<Plan_Dialect, mnemonic, [Pure] # traits>;

def Plan_LaunchOp
    : Plan_Op<"launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a kernel";
  let description = [{
    ```mlir
    %r = plan.launch @gelu(%x) scalars [#plan.coord<"tp">] from "tv.gelu"
       : (tensor<?x8xf32, #tv.local<...>>) -> tensor<?x8xf32, #tv.local<...>>
    ```
    The kernel is a function on strided memrefs: the inputs, the results, then
    an i64 for each scalar. `from` names the op of the source.

    A launch `aside` takes long and fills little of a device, which may run it
    beside the steps behind it, up to the first that reads its results.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyRankedTensor>:$inputs,
                       ArrayAttr:$scalars, UnitAttr:$aside, StrAttr:$source);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $kernel `(` $inputs `)` `scalars` $scalars (`aside` $aside^)? `from` $source
    attr-dict `:` functional-type($inputs, $results)
  }];
  let hasVerifier = 1;
}

def Plan_Epilogue : I32EnumAttr<"Epilogue", "What follows a product", [
    I32EnumAttrCase<"GeluTanh", 1, "gelu_tanh">,
    I32EnumAttrCase<"GeluTanhGrad", 2, "gelu_tanh_grad">]> {
  let cppNamespace = "::tessera::plan";
}

def Plan_Summed : I32EnumAttr<"Summed", "What a product also sums", [
    I32EnumAttrCase<"A", 1, "a">,
    I32EnumAttrCase<"B", 2, "b">,
    I32EnumAttrCase<"Result", 3, "result">]> {
  let cppNamespace = "::tessera::plan";
}

def Plan_ContractOp : Plan_Op<"contract", [AttrSizedOperandSegments]> {
  let summary = "A product of two tensors, by the backend's matrix library";
  let description = [{
    ```mlir
    %c = plan.contract %a [0, 1, 3], %b [2, 3] to [0, 1, 2] from "tv.linear" : ...
    ```
    A label for each local dimension. One in a, b and the result is a batch, in a
    and the result a row, in b and the result a column, in a and b contracted.

    ```mlir
    %c, %aux = plan.contract %a [0, 1], %b [2, 1] bias %bias to [0, 2]
                 then gelu_tanh from "tv.linear" : ...
    ```
    What is summed gets the bias of its column, and what is added, is `aux`, goes through
    the epilogue and is the result. A partial result has no epilogue, and a partial bias.

    ```mlir
    %c, %sums = plan.contract %a [0, 1], %b [2, 1] to [0, 2]
                  then gelu_tanh_grad(%x) sums result from "tv.linear" : ...
    %c, %sums = plan.contract %a [0, 1], %b [2, 1] to [0, 2] sums a from "tv.linear" : ...
    ```
    The epilogue `gelu_tanh_grad` multiplies by the slope of gelu_tanh at x, which has the
    result's shape. `sums result` also gives the sum of each of the result's columns over
    all else, `sums a` of each row of a, `sums b` of each column of b; these are one
    dimension. Sums have the result's elements; they accumulate in f32, and those of the
    result may be of values that are not rounded yet.

    ```mlir
    %c = plan.contract %a [0, 1], %b [0, 2] add %before to [1, 2] from "tv.contract" : ...
    ```
    What is added has the result's shape, elements and partial state.

    Which of this the matrix library does in one step, the target says: what it does
    not do is an error when the step becomes one of a module.
  }];
  let arguments = (ins AnyRankedTensor:$a, AnyRankedTensor:$b,
                       Optional<AnyRankedTensor>:$bias,
                       Optional<AnyRankedTensor>:$x,
                       Optional<AnyRankedTensor>:$addend,
                       DenseI32ArrayAttr:$aLabels, DenseI32ArrayAttr:$bLabels,
                       DenseI32ArrayAttr:$labels,
                       OptionalAttr<Plan_Epilogue>:$epilogue,
                       OptionalAttr<Plan_Summed>:$summed, StrAttr:$source);
  let results = (outs AnyRankedTensor:$result,
                      Optional<AnyRankedTensor>:$second);
  let assemblyFormat = [{
    $a $aLabels `,` $b $bLabels (`bias` $bias^)? (`add` $addend^)? `to` $labels
    (`then` $epilogue^)? (`(` $x^ `)`)? (`sums` $summed^)? `from` $source
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// What `second` is: null where it is the other.
    ::mlir::Value getAux() { return getSummed() ? ::mlir::Value() : getSecond(); }
    ::mlir::Value getSums() { return getSummed() ? getSecond() : ::mlir::Value(); }
  }];
  let hasVerifier = 1;
}

def Plan_AttendOp : Plan_Op<"attend"> {
  let summary = "Attention, by the backend's attention library";
  let description = [{
    ```mlir
    %o, %lse = plan.attend %q, %k, %v scale(0.125) causal from "tv.attention" : ...
    ```
    What `tv.attention` is without a score_mod or a mask_mod, in bf16 or f16: query and
    result [b, h, s, d], key and value [b, g, t, d], the log-sum-exp, in f32, [b, h, s];
    it may be absent. All keys are on the device, and all queries if the attention is
    causal. A device's query head h reads its key head h / (H/G), H and G being the
    numbers that it has. Causal attention has at least as many keys as queries: query i
    sees the keys up to i + t - s.
  }];
  let arguments = (ins AnyRankedTensor:$query, AnyRankedTensor:$key,
                       AnyRankedTensor:$value, F64Attr:$scale, UnitAttr:$causal,
                       StrAttr:$source);
  let results = (outs AnyRankedTensor:$result, Optional<AnyRankedTensor>:$lse);
  let assemblyFormat = [{
    $query `,` $key `,` $value `scale` `(` $scale `)` (`causal` $causal^)?
    `from` $source attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Plan_AttendGradOp : Plan_Op<"attend_grad"> {
  let summary = "The gradients of attention, by the backend's attention library";
  let description = [{
    ```mlir
    %dq, %dk, %dv = plan.attend_grad %do, %q, %k, %v, %o, %lse scale(0.125) causal
        from "tv.attention_grad" : ...
    ```
    Of what `plan.attend` is, where %o and %lse are its results, or those of any other
    variant of the attention. The gradient of the result, and that of the query, have the
    query's shape, those of key and value the key's.
  }];
  let arguments = (ins AnyRankedTensor:$grad, AnyRankedTensor:$query,
                       AnyRankedTensor:$key, AnyRankedTensor:$value,
                       AnyRankedTensor:$output, AnyRankedTensor:$lse,
                       F64Attr:$scale, UnitAttr:$causal, StrAttr:$source);
  let results = (outs AnyRankedTensor:$queryGrad, AnyRankedTensor:$keyGrad,
                      AnyRankedTensor:$valueGrad);
  let assemblyFormat = [{
    $grad `,` $query `,` $key `,` $value `,` $output `,` $lse `scale` `(` $scale `)`
    (`causal` $causal^)? `from` $source attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Plan_CopyOp : Plan_Op<"copy"> {
  let summary = "The same local tensor in memory of its own";
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
      "$input `from` $source attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

def Plan_GroupOp : Op<Plan_Dialect, "group", [SingleBlock, RecursiveMemoryEffects]> {
  let summary = "Ops that run together";
  let description = [{
    ```mlir
    %y = plan.group {
      %p = tv.linear %x, %w : (!x, !w) -> !y
      plan.yield %p : !y
    } : !y
    ```
    Ops on local tensors that are one kernel, or one step of the backend's matrix
    library. They read values from outside as they are in memory; what they make is in
    memory only where the group yields it. What is computed where it is used
    (`isFree`) is inside each group that uses it. A value that only lends its extents is
    no reason to wait: where it is made elsewhere, a constant of its type stands for it.

    ```mlir
    %y = plan.group of ["own", "cublaslt"] without {...} then gelu_tanh sums result {...} : !y
    ```
    With a matrix product: the variants of it that there are, the preferred first, and why
    others are missing (of none, it is the library's); what the library does as well,
    of ops in the group (`plan.contract`). After `tv-choose-variants` there is one.
  }];
  let arguments = (ins OptionalAttr<StrArrayAttr>:$variants,
                       OptionalAttr<DictionaryAttr>:$without,
                       OptionalAttr<Plan_Epilogue>:$epilogue,
                       OptionalAttr<Plan_Summed>:$summed);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    (`of` $variants^)? (`without` $without^)? (`then` $epilogue^)?
    (`sums` $summed^)? $body attr-dict `:` type($results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Its ops, in order.
    auto getOps() { return getBody().front().without_terminator(); }
    /// What it yields, inside.
    ::mlir::OperandRange getYielded() {
      return getBody().front().getTerminator()->getOperands();
    }
    /// The matrix product in it; null if there is none.
    ::mlir::Operation *getProduct();
  }];
}

def Plan_YieldOp
    : Plan_Op<"yield", [Terminator, HasParent<"GroupOp">]> {
  let summary = "Ends a group with what others read of it";
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

//===----------------------------------------------------------------------===//
// In kernels
//===----------------------------------------------------------------------===//

def Plan_AttentionOp : Op<Plan_Dialect, "attention", [AttrSizedOperandSegments]> {
  let summary = "Attention whose scores are never in memory";
  let description = [{
    The body of a kernel for a GPU: what `tv.attention` is, on strided memrefs.

    ```mlir
    plan.attention %q, %k, %v to %o, %lse scale(0.125) causal : !q, !k, !k to !o, !lse
      score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
        %x = memref.load %bias[%h, %qi] : !bias
        %y = arith.addf %s, %x : f32
        tv.yield %y : f32
      }
    ```
    The log-sum-exp may be absent. The regions' indices are this device's own;
    each reads any values of the kernel around. A device's query head h reads its key head
    h / (H/G), H and G being the numbers that it has.

    `causal_mod` gives the last key that a query of a causal attention sees, which may be
    none that the device has, and of later queries is no earlier one: where devices have
    blocks of the keys, and blocks of queries or such in turn. Without one, the last query
    sees all keys.

    `block_mod` loads what the block mask of `tv.attention` says of a pair, an i8, which is
    the same for all pairs of a block: of `blocks` [queries, keys].

    With `tiles` it is of packed sequences, one batch with as many queries as keys, all on
    the device: a list of `tv.packed_tiles`, which has as many rows a tile as the schedule.
    The kernel that makes it says by `plan.packed_tiles` of what it is, and a launch that
    reads another's is an error.

    With `dropout(rate) seed %seed stream %stream step %step` weights are 0 where tv.random
    of their number, that of a pair by `number_mod`, is below the rate; the others are
    divided by 1 - rate. Those of a query follow each other; of a gradient, those of 16 keys
    from a multiple of 16 on. `step` is a memref of one i64.

    With `pages` key and value are [P, G, R, D] and [P, G, R, V], pages of R keys, and the
    table [B, M] has the pages of a batch, one behind the other; one that there is not has
    zeros.
  }];
  let arguments = (ins AnyMemRef:$query, AnyMemRef:$key, AnyMemRef:$value,
                       AnyMemRef:$result, Optional<AnyMemRef>:$lse,
                       Optional<AnyMemRef>:$tiles, Optional<AnyMemRef>:$pages,
                       Optional<I64>:$seed, Optional<I64>:$stream,
                       Optional<AnyMemRef>:$step, F64Attr:$scale, UnitAttr:$causal,
                       OptionalAttr<F64Attr>:$dropout,
                       OptionalAttr<DenseI64ArrayAttr>:$blocks);
  let regions = (region MaxSizedRegion<1>:$scoreMod, MaxSizedRegion<1>:$maskMod,
                        MaxSizedRegion<1>:$blockMod, MaxSizedRegion<1>:$numberMod,
                        MaxSizedRegion<1>:$causalMod);
  let assemblyFormat = [{
    $query `,` $key `,` $value `to` $result (`,` $lse^)? `scale` `(` $scale `)`
    (`causal` $causal^)?
    (`dropout` `(` $dropout^ `)` `seed` $seed `stream` $stream)?
    (`step` $step^)?
    (`blocks` $blocks^)? (`tiles` $tiles^)? (`pages` $pages^)? attr-dict `:`
    type($query) `,` type($key) `,` type($value) `to` type($result) (`,` type($lse)^)?
    (`step` type($step)^)? (`tiles` type($tiles)^)? (`pages` type($pages)^)?
    (`score_mod` custom<ScalarRegion>($scoreMod)^)?
    (`mask_mod` custom<ScalarRegion>($maskMod)^)?
    (`block_mod` custom<ScalarRegion>($blockMod)^)?
    (`number_mod` custom<ScalarRegion>($numberMod)^)?
    (`causal_mod` custom<ScalarRegion>($causalMod)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Of a batch: M R of pages. It may be dynamic.
    int64_t getNumKeys();
  }];
}

def Plan_AttentionGradOp : Op<Plan_Dialect, "attention_grad",
                              [AttrSizedOperandSegments]> {
  let summary = "The gradients of attention, whose scores are never in memory";
  let description = [{
    The body of a kernel for a GPU: what `tv.attention_grad` is, on strided memrefs.

    ```mlir
    plan.attention_grad %do, %q, %k, %v, %o, %lse to %dq, %dk, %dv by %scratch
        sums %dbias ["query"] scale(0.125) causal
        : !q, !q, !k, !k, !q, !l, !q, !k, !k, !scratch, !l
      score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
        %c = memref.load %bias[%h, %qi] : !bias
        %t = math.tanh %s : f32
        %y = arith.addf %t, %c : f32
        tv.yield %y : f32
      }
      score_grad (%s: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
        %y = math.tanh %s : f32
        %yy = arith.mulf %y, %y : f32
        %ay = arith.mulf %dy, %yy : f32
        %a = arith.subf %dy, %ay : f32
        tv.yield %a, %dy : f32, f32
      }
    ```
    As `plan.attention` otherwise. `sums` are of what score_grad yields behind the
    score's gradient, each by what its name says: "query" [B, H, S], "key" [B, H, T],
    "distance" [B, H, S + T], where qi - ki is at qi - ki + T, or "score" [B, H, S, T],
    in f32.

    `scratch` is memory for the kernel alone: f32, [B, H, S + 128, C], where C is D + 3,
    or D + 7 with a score_mod or a mask_mod, D up to a multiple of 64, and 3/2 of the
    tiles of 128 keys more for each sum by distance. With `tiles` it has 128 rows more for
    each sequence, with `blocks` as many as n * (m + m / 32 + 8) numbers take, of n tiles of
    128 keys and m blocks of 64 queries.

    Where query heads share keys, the gradients of keys and values are made for each of
    them, in the tensors' type, `by %scratch heads %dk_heads, %dv_heads` of [B, H, T, D]
    and [B, H, T, D of the values], and added up: rounded once a head, then once more.
  }];
  let arguments = (ins AnyMemRef:$grad, AnyMemRef:$query, AnyMemRef:$key,
                       AnyMemRef:$value, AnyMemRef:$output, AnyMemRef:$lse,
                       Optional<AnyMemRef>:$lseGrad, AnyMemRef:$queryGrad,
                       AnyMemRef:$keyGrad, AnyMemRef:$valueGrad,
                       AnyMemRef:$scratch, Optional<AnyMemRef>:$keyGradOfHeads,
                       Optional<AnyMemRef>:$valueGradOfHeads,
                       Variadic<AnyMemRef>:$sums,
                       DefaultValuedAttr<StrArrayAttr, "{}">:$sumsBy,
                       Optional<AnyMemRef>:$tiles, Optional<AnyMemRef>:$walks,
                       Optional<I64>:$seed, Optional<I64>:$stream,
                       Optional<AnyMemRef>:$step, F64Attr:$scale, UnitAttr:$causal,
                       OptionalAttr<F64Attr>:$dropout,
                       OptionalAttr<DenseI64ArrayAttr>:$blocks);
  let regions = (region MaxSizedRegion<1>:$scoreMod, MaxSizedRegion<1>:$maskMod,
                        MaxSizedRegion<1>:$scoreGrad, MaxSizedRegion<1>:$blockMod,
                        MaxSizedRegion<1>:$numberMod, MaxSizedRegion<1>:$walkMod,
                        MaxSizedRegion<1>:$causalMod);
  let assemblyFormat = [{
    $grad `,` $query `,` $key `,` $value `,` $output `,` $lse (`dlse` $lseGrad^)?
    `to` $queryGrad `,` $keyGrad `,` $valueGrad `by` $scratch
    (`heads` $keyGradOfHeads^ `,` $valueGradOfHeads)?
    (`sums` $sums^ $sumsBy)? `scale` `(` $scale `)` (`causal` $causal^)?
    (`dropout` `(` $dropout^ `)` `seed` $seed `stream` $stream)?
    (`step` $step^)?
    (`blocks` $blocks^)? (`tiles` $tiles^)? (`walks` $walks^)? attr-dict `:`
    type(operands)
    (`score_mod` custom<ScalarRegion>($scoreMod)^)?
    (`mask_mod` custom<ScalarRegion>($maskMod)^)?
    (`score_grad` custom<ScalarRegion>($scoreGrad)^)?
    (`block_mod` custom<ScalarRegion>($blockMod)^)?
    (`number_mod` custom<ScalarRegion>($numberMod)^)?
    (`walk_mod` custom<ScalarRegion>($walkMod)^)?
    (`causal_mod` custom<ScalarRegion>($causalMod)^)?
  }];
  let hasVerifier = 1;
}

def Plan_BlockWalksOp : Op<Plan_Dialect, "block_walks"> {
  let summary = "In which order the gradients of attention go through a block mask";
  let description = [{
    The body of a kernel for a GPU, for `plan.attention_grad`, in which tiles of 128 keys
    add to blocks of 64 queries, in one order in every run:

    ```mlir
    plan.block_walks %mask to %walks of [8192, 8192] blocks [128, 128] causal
        : memref<1x1x64x64xi8> to memref<1x1x2x9216xi32>
    ```
    `mask` is a block mask [B or 1, H or 1, M, N] of so many queries and keys. For n tiles
    and m blocks of queries, `walks` [B or 1, H or 1, 2, n (m + m / 32 + 8)] has, for each
    of the mask's heads, the order in which tiles are launched and that in which each goes
    through its blocks of queries, with how many tiles add to a block before it: once from
    the first queries on, once from the last (`BlockWalks` of attention_walks.cuh).
  }];
  let arguments = (ins AnyMemRef:$mask, AnyMemRef:$walks, DenseI64ArrayAttr:$of,
                       DenseI64ArrayAttr:$blocks, UnitAttr:$causal);
  let assemblyFormat = [{
    $mask `to` $walks `of` $of `blocks` $blocks (`causal` $causal^)?
    attr-dict `:` type($mask) `to` type($walks)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Words of a head and direction, for so many queries and keys.
    static int64_t countWords(int64_t queries, int64_t keys);
  }];
}

def Plan_RandomOp : Plan_Op<"random"> {
  let summary = "One of the numbers of tv.random";
  let description = [{
    ```mlir
    %r = plan.random %number seed %seed stream %stream
    %h = plan.random %number seed %seed stream %stream bits(16)
    ```
    An f32; `%number` is a row-major global index, `%stream` the counter's high 64 bits.
  }];
  let arguments = (ins Index:$number, I64:$seed, I64:$stream,
                       DefaultValuedAttr<I64Attr, "24">:$bits);
  let results = (outs F32:$result);
  let assemblyFormat = [{
    $number `seed` $seed `stream` $stream (`bits` `(` $bits^ `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_ProductOp : Op<Plan_Dialect, "product"> {
  let summary = "A matrix product and what follows each of its sums";
  let description = [{
    The body of a kernel for a GPU: rows of a with rows of b, on strided memrefs.

    ```mlir
    plan.product %a, %b to %c, %h : !a, !b to !c, !h
      epilogue (%sum: f32, %row: index, %column: index) {
        %0 = memref.load %bias[%column] : !bias
        %1 = arith.extf %0 : bf16 to f32
        %h = arith.addf %sum, %1 : f32
        %y = math.tanh %h : f32
        tv.yield %y, %h : f32, f32
      }
    ```
    The last dimensions of a and b are contracted: [m, k] and [n, k] become [m, n].
    With one more dimension before them there is a product for each of its indices; b
    may lack it, if all are of the same b. Sums are f32. The epilogue gives an element
    of each result, from the sum and this device's own indices; it reads any values of
    the kernel around. Without it the result is the sum.
  }];
  let arguments = (ins AnyMemRef:$a, AnyMemRef:$b, Variadic<AnyMemRef>:$outputs);
  let regions = (region MaxSizedRegion<1>:$epilogue);
  let assemblyFormat = [{
    $a `,` $b `to` $outputs attr-dict `:` type($a) `,` type($b) `to` type($outputs)
    (`epilogue` custom<ScalarRegion>($epilogue)^)?
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Alternatives
//===----------------------------------------------------------------------===//

def Plan_ChooseOp
    : Op<Plan_Dialect, "choose", [
          DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "The values of one of several variants, chosen at run time";
  let description = [{
    ```mlir
    %o, %l = plan.choose "attention" of "flash"(%a, %b), "math"(%c, %d)
               without {cudnn = "it is not compiled in"} from "tv.attention" : !o, !l
    ```
    Variants of one op, the preferred first; their values are equal but for
    rounding. Which one is computed is chosen when the module is bound. What only a
    variant's values need belongs to that variant, and does not run when another is
    chosen; a choice itself belongs to none. `without` has the variants that do not
    exist, with the reason. `on "..."`, behind the source, says what the op and its
    gradient have in common: whose choice the other's may follow at run time.

    A single variant may have no values: its ops are those of the program, and the
    op only says that there was no choice, and why.

    ```mlir
    plan.choose "attention" of "math"() without {flash = "it is for cuda:sm_90a"}
      from "tv.attention"
    ```
  }];
  let arguments = (ins StrAttr:$kind, StrArrayAttr:$variants,
                       Variadic<AnyRankedTensor>:$values,
                       OptionalAttr<DictionaryAttr>:$without, StrAttr:$source,
                       OptionalAttr<StrAttr>:$problem);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::OperandRange getValuesOf(unsigned variant) {
      return getValues().slice(variant * getNumResults(), getNumResults());
    }
    ::llvm::StringRef getVariant(unsigned variant) {
      return ::mlir::cast<::mlir::StringAttr>(getVariants()[variant]).getValue();
    }
  }];
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def Plan_AliasKind : I32EnumAttr<"AliasKind", "How an alias lies in its source", [
    I32EnumAttrCase<"Reshape", 0, "reshape">,
    I32EnumAttrCase<"Transpose", 1, "transpose">,
    I32EnumAttrCase<"Slice", 2, "slice">,
    I32EnumAttrCase<"Shard", 3, "shard">]> {
  let cppNamespace = "::tessera::plan";
}

def Plan_AliasOp : Plan_Op<"alias"> {
  let summary = "A window on another tensor's memory";
  let description = [{
    ```mlir
    %r = plan.alias reshape %x : ...                 // the same elements in order
    %r = plan.alias transpose %x at [0, 2, 1] : ...  // dim i is the source's at[i]
    %r = plan.alias slice %x at [0, 0, 8] : ...      // from these global indices on
    %r = plan.alias shard %x : ...                   // the part its view holds
    ```
  }];
  let arguments = (ins Plan_AliasKind:$kind, AnyRankedTensor:$input,
                       OptionalAttr<DenseI64ArrayAttr>:$at);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $kind $input (`at` $at^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Plan_JoinOp : Plan_Op<"join"> {
  let summary = "Tensors side by side in one memory, written there";
  let description = [{
    ```mlir
    %y = plan.join %a, %b dim 1 : ...  // along local dimension 1
    ```
    What the operands are made by writes them into the result's memory, and nothing is
    copied. So each operand is a result of a launch or of an attention, or each one of the same
    choice between such results, or a transpose or reshape of that; nothing else reads it. Of
    the result each device has a window for each operand, and sizes along `dim` are known.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, I64Attr:$dim);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
      "$inputs `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Plan_ConstantOp : Plan_Op<"constant"> {
  let summary = "A constant in the module; each device takes its part";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value attr-dict `:` functional-type(operands, results)";
}

#endif // TESSERA_PLAN_TD
