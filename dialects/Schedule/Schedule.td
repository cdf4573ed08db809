//===- Schedule.td - the schedule dialect ------------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the threads of a GPU run a kernel's loops, beside the loops themselves:
// without the attributes it is the same program, in order.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SCHEDULE_TD
#define TESSERA_SCHEDULE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Schedule_Dialect : Dialect {
  let name = "schedule";
  let cppNamespace = "::tessera::schedule";
  let summary = "How the threads of a GPU share the loops of a kernel";
  let description = [{
    Attributes on a kernel's ops (`plan.kernel`), whose meaning without them is the
    same, and two ops. `cuda-verify-schedule` holds them against the program.

    Each op of the kernel's body that becomes a device function has `schedule.loop`,
    a `#schedule.loop`. A thread takes a *chunk* of neighbouring iterations, *lanes*, at
    a time: of the loop's last dimension, or, where a loop is over rows, of the last
    dimension of the parallel loops inside, its *stages* (by columns, of the rows
    instead). It goes over a few chunks twice: first all loads, so that many are under
    way at once, then the arithmetic and the stores. `schedule.role`, a
    `#schedule.role`, says which ops are not done for each lane on its own.

    - `schedule.sync`, a unit: outside of stages the row's threads wait before and
      after this store, or after this stage, for what it stores is loaded again.
    - `schedule.at_once`, an integer, on a stage: of how many chunks the arithmetic is
      unrolled where values are kept in shared memory.
    - `schedule.product`, a `#schedule.product`, on a `plan.product`.
    - `schedule.attention`, a `#schedule.attention`, on a `plan.attention` or its
      gradient. In their functions `schedule.role` says what is not done for each score.
    - `schedule.bound`, a unit, on a comparison of a mask_mod: tiles of keys that it keeps
      none of are left out.
    - `schedule.rounded`, a unit, on the kernel: all results have 16 bits, for which
      the GPU's fast division, square root and exponential are good enough.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

def Schedule_Form : I32EnumAttr<"Form", "How threads share a loop", [
    I32EnumAttrCase<"Points", 0, "points">,
    I32EnumAttrCase<"Squares", 1, "squares">,
    I32EnumAttrCase<"Warps", 2, "warps">,
    I32EnumAttrCase<"Blocks", 3, "blocks">,
    I32EnumAttrCase<"Columns", 4, "columns">,
    I32EnumAttrCase<"Thread", 5, "thread">]> {
  let cppNamespace = "::tessera::schedule";
  let genSpecializedAttr = 0;
}

def Schedule_Keep : I32EnumAttr<"Keep", "Where stages keep what they share", [
    I32EnumAttrCase<"No", 0, "no">,
    I32EnumAttrCase<"Registers", 1, "registers">,
    I32EnumAttrCase<"Shared", 2, "shared">,
    I32EnumAttrCase<"Ahead", 3, "ahead">]> {
  let cppNamespace = "::tessera::schedule";
  let genSpecializedAttr = 0;
}

def Schedule_ConditionKind : I32EnumAttr<"ConditionKind", "What is tested", [
    I32EnumAttrCase<"Aligned", 0, "aligned">,
    I32EnumAttrCase<"Multiple", 1, "multiple">,
    I32EnumAttrCase<"StageMultiple", 2, "stage_multiple">,
    I32EnumAttrCase<"StageAtMost", 3, "stage_at_most">]> {
  let cppNamespace = "::tessera::schedule";
  let genSpecializedAttr = 0;
}

def Schedule_ConditionAttr : AttrDef<Schedule_Dialect, "Condition"> {
  let mnemonic = "condition";
  let summary = "What must be true of a launch for an instance to run";
  let description = [{
    - `<aligned 2, 1>`: of the kernel's argument 2 the instance's vectors along
      dimension 1 are aligned, wherever they lie, and that dimension's stride is 1;
    - `<multiple 1>`: the extent of the loop's dimension 1 is a multiple of the
      vectors' width; `<stage_multiple 0>`: that of the last dimension of stage 0;
    - `<stage_at_most 0, 4096>`: stage 0 has at most 4096 iterations.
  }];
  let parameters = (ins EnumParameter<Schedule_ConditionKind>:$kind, "int64_t":$of,
                        DefaultValuedParameter<"int64_t", "-1">:$number);
  let assemblyFormat = "`<` $kind $of (`,` $number^)? `>`";
}

def Schedule_InstanceAttr : AttrDef<Schedule_Dialect, "Instance"> {
  let mnemonic = "instance";
  let summary = "A loop's function for one width of vectors";
  let description = [{
    `<vectors(4) unroll(2) if [<aligned 0, 1>]>`: chunks of 4 iterations, of which a
    thread takes 2 at a time, where argument 0 allows it. `keep` says where later
    stages of a row find what is kept; then each thread takes all its chunks at once.
    `keep(ahead)`, of runs of rows: in shared memory, for which a row's loads leave
    when the row before begins.
    Squares unroll no more chunks than a thread has.
  }];
  let parameters = (ins "int64_t":$vectors, "int64_t":$unroll,
                        DefaultValuedParameter<"Keep", "Keep::No">:$keep,
                        OptionalArrayRefParameter<"ConditionAttr">:$conditions);
  let assemblyFormat = [{
    `<` `vectors` `(` $vectors `)` `unroll` `(` $unroll `)` (`keep` `(` $keep^ `)`)?
    (`if` ` ` `[` $conditions^ `]`)? `>`
  }];
}

def Schedule_LoopAttr : AttrDef<Schedule_Dialect, "Loop"> {
  let mnemonic = "loop";
  let summary = "How blocks and threads take the iterations of a loop";
  let description = [{
    ```mlir
    #schedule.loop<points threads(256) items(2048)
        as [<vectors(4) unroll(2) if [<aligned 0, 1>, <aligned 1, 1>]>,
            <vectors(1) unroll(4)>]>
    ```
    The first of the instances of which all conditions hold runs; the last has none.
    A block has so many `threads` and, in `points`, `items` of the loop's iterations
    at a time; `shared` bytes are its dynamic shared memory, and a multiprocessor
    should hold `resident` blocks.

    - `points`: all threads share all chunks;
    - `squares`: a block takes squares, of `side` by `side` iterations of the last
      dimension and of dimension `across`, along which operands lie that it reads
      through shared memory;
    - `warps`, `blocks`: a warp, or a block, takes an iteration, a row, at a time, and
      shares the chunks of each stage;
    - `columns`: so do the threads of a block with the same lane of their warp;
      neighbouring lanes have neighbouring rows, and chunks are of rows;
    - `thread`: one thread does it all.

    Warps and blocks may take runs of rows: an iteration of the loop has a loop in
    order inside, over rows, which has the stages.
  }];
  let parameters = (ins EnumParameter<Schedule_Form>:$form, "int64_t":$threads,
                        DefaultValuedParameter<"int64_t", "1">:$items,
                        DefaultValuedParameter<"int64_t", "0">:$shared,
                        DefaultValuedParameter<"int64_t", "0">:$resident,
                        DefaultValuedParameter<"int64_t", "0">:$side,
                        DefaultValuedParameter<"int64_t", "-1">:$across,
                        OptionalArrayRefParameter<"InstanceAttr">:$instances);
  let assemblyFormat = [{
    `<` $form `threads` `(` $threads `)` (`items` `(` $items^ `)`)?
    (`shared` `(` $shared^ `)`)? (`resident` `(` $resident^ `)`)?
    (`side` `(` $side^ `)`)? (`across` `(` $across^ `)`)?
    (`as` ` ` `[` $instances^ `]`)? `>`
  }];
  let extraClassDeclaration = [{
    /// Whether a group of threads takes an iteration at a time.
    bool isOfRows() const {
      return getForm() == Form::Warps || getForm() == Form::Blocks ||
             getForm() == Form::Columns;
    }
    /// The threads that share a row.
    int64_t getGroup() const {
      return getForm() == Form::Warps     ? 32
             : getForm() == Form::Columns ? getThreads() / 32
                                          : getThreads();
    }
  }];
}

def Schedule_ProductAttr : AttrDef<Schedule_Dialect, "Product"> {
  let mnemonic = "product";
  let summary = "How blocks take the tiles of a matrix product";
  let description = [{
    ```mlir
    #schedule.product<columns(256) stages(4) cluster(2)>
    ```
    A block computes tiles of 128 rows and so many `columns`, from `stages` operands'
    panels of 64 in shared memory at a time. A `cluster` of 2 blocks, with the next
    rows, shares what it reads of b. `rolled`: there is one copy of the epilogue's text
    for 64 columns.
  }];
  let parameters = (ins "int64_t":$columns, "int64_t":$stages, "int64_t":$cluster,
                        DefaultValuedParameter<"bool", "false">:$rolled);
  let assemblyFormat = [{
    `<` `columns` `(` $columns `)` `stages` `(` $stages `)` `cluster` `(` $cluster `)`
    (`rolled` `(` $rolled^ `)`)? `>`
  }];
}

def Schedule_AttentionAttr : AttrDef<Schedule_Dialect, "Attention"> {
  let mnemonic = "attention";
  let summary = "How blocks take the scores of an attention or its gradient";
  let description = [{
    ```mlir
    #schedule.attention<rows(128) keys(128) stages(2)>
    ```
    A block takes so many queries, `rows`, and `keys` at a time. Forward it has a tile of
    queries, and `stages` of keys and values under way, where there are more than two the
    queries of two tiles; the gradient has a tile of keys, and stages of queries and
    gradients.

    ```mlir
    #schedule.attention<rows(8) keys(64) stages(3)>
    ```
    At most 64 rows, forward, are as many queries of each head that reads one key head,
    as in a decoder's step: blocks share the keys of all tiles alike, two pipes a block, of
    which each has so many stages, and the last to have a part of a tile joins its parts.

    ```mlir
    #schedule.attention<rows(128) keys(128) stages(2) shared(true)>
    ```
    Blocks share the keys of larger tiles, too, where these would leave many of them idle.

    ```mlir
    #schedule.attention<rows(64) keys(128) stages(2) finish(true)>
    ```
    Behind the blocks of a gradient a kernel finishes what they summed in the scratch: the
    gradient of queries, where no tile of keys sees it whole, sums by distance, and whether
    a wait for another tile had no end.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$keys, "int64_t":$stages,
                        OptionalParameter<"bool">:$shared,
                        OptionalParameter<"bool">:$finish);
  let assemblyFormat = [{
    `<` `rows` `(` $rows `)` `keys` `(` $keys `)` `stages` `(` $stages `)`
    (`shared` `(` $shared^ `)`)? (`finish` `(` $finish^ `)`)? `>`
  }];
}

//===----------------------------------------------------------------------===//
// Ops inside
//===----------------------------------------------------------------------===//

def Schedule_RoleKind : I32EnumAttr<"RoleKind", "When an op is done", [
    I32EnumAttrCase<"Once", 0, "once">,
    I32EnumAttrCase<"Address", 1, "address">,
    I32EnumAttrCase<"Read", 2, "read">,
    I32EnumAttrCase<"Ahead", 3, "ahead">,
    I32EnumAttrCase<"Vector", 4, "vector">,
    I32EnumAttrCase<"Late", 5, "late">,
    I32EnumAttrCase<"Kept", 6, "kept">,
    I32EnumAttrCase<"Tile", 7, "tile">,
    I32EnumAttrCase<"Randoms", 8, "randoms">,
    I32EnumAttrCase<"Counts", 9, "counts">,
    I32EnumAttrCase<"First", 10, "first">,
    I32EnumAttrCase<"Lanes", 11, "lanes">,
    I32EnumAttrCase<"Query", 12, "query">,
    I32EnumAttrCase<"Key", 13, "key">,
    I32EnumAttrCase<"InnerScale", 14, "inner_scale">,
    I32EnumAttrCase<"OuterScale", 15, "outer_scale">,
    I32EnumAttrCase<"Summed", 16, "summed">]> {
  let cppNamespace = "::tessera::schedule";
  let genSpecializedAttr = 0;
}

def Schedule_RoleAttr : AttrDef<Schedule_Dialect, "Role"> {
  let mnemonic = "role";
  let summary = "How an op is done for the lanes of a chunk";
  let description = [{
    - `<once>`: pure and the same for all lanes; before the chunk's arithmetic;
    - `<address>`: the same, and again before its loads, which need it;
    - `<read>`: reads memory, the same for all lanes; with the chunk's loads;
    - `<ahead>`: a read that is the same for all chunks, before them;
    - `<vector along 1>`: a load or a store of all lanes at once, neighbours along
      the memref's dimension 1; loads first, stores last;
    - `<late along 1>`: such a load, but with the arithmetic, for registers;
    - `<kept along 1 as 0>`: such a load of a stage, which the first stage that has
      number 0 does and later ones find kept;
    - `<tile along 1 as 0>`: such a load of a square, through shared memory number 0,
      which is filled along the memref's own neighbours;
    - `<summed along 1 as 0>`: a load or a store of a column's sum over a run of rows, by
      each lane on its own; where rows are kept it is in registers, number 0, which go to
      memory after the run's rows;
    - `<randoms>`: the random numbers of a chunk, made together;
    - `<counts along 0>`: grows by 1 with each lane, as its operand 0 does, and what is
      of the chunk's first lane is also needed; `<first along 0>`: nothing else is;
    - `<lanes>`: by columns, outside of stages: differs by row;
    - `<query>`, `<key>`: in a function of an attention: once for a query of a head, or
      for a key, and kept for all scores of it;
    - `<inner_scale>`, `<outer_scale>`: there, too: a product by a constant that the
      kernel's own scale has, all that is done with the score at first in all functions,
      or what score_mod yields.

    Under conditions a role is only for conditions that are the same for all lanes.
  }];
  let parameters = (ins EnumParameter<Schedule_RoleKind>:$kind,
                        DefaultValuedParameter<"int64_t", "-1">:$dim,
                        DefaultValuedParameter<"int64_t", "-1">:$number);
  let assemblyFormat = "`<` $kind (`along` $dim^)? (`as` $number^)? `>`";
  let extraClassDeclaration = [{
    bool is(RoleKind kind) const { return getKind() == kind; }
    /// Whether it is a load, or a store, of all lanes.
    bool isVector() const {
      return is(RoleKind::Vector) || is(RoleKind::Late) || is(RoleKind::Kept) ||
             is(RoleKind::Tile);
    }
  }];
}

class Schedule_Op<string mnemonic, list<Trait> traits = []>
    : Op<Schedule_Dialect, mnemonic, [Pure] # traits>;

def Schedule_OneHotOp
    : Schedule_Op<"one_hot", [AllTypesMatch<["value", "result"]>]> {
  let summary = "An addend that is 0 but in one iteration";
  let description = [{
    ```mlir
    %a = schedule.one_hot %x where %i is %label : f32, index, i32
    ```
    `%x` where `%i`, as an integer of `%label`'s type, is `%label`, else 0: what a
    stage sums, where `%i` counts lanes. It looks at that lane alone.
  }];
  let arguments = (ins AnyFloat:$value, AnySignlessIntegerOrIndex:$number,
                       AnySignlessIntegerOrIndex:$other);
  let results = (outs AnyFloat:$result);
  let assemblyFormat = [{
    $value `where` $number `is` $other attr-dict `:` type($value) `,` type($number)
    `,` type($other)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$number,
                                 "::mlir::Value":$other), [{
    build($_builder, $_state, value.getType(), value, number, other);
  }]>];
  let hasVerifier = 1;
}

def Schedule_Extreme : I32EnumAttr<"Extreme", "What pairs are compared for", [
    I32EnumAttrCase<"Maximum", 0, "maximum">,
    I32EnumAttrCase<"Minimum", 1, "minimum">]> {
  let cppNamespace = "::tessera::schedule";
}

def Schedule_PairsOp : Schedule_Op<"pairs"> {
  let summary = "A widened float, of lanes that are compared two at a time before";
  let description = [{
    ```mlir
    %a = schedule.pairs maximum %x : bf16
    ```
    `%x`, a load of all lanes, as f32: that of which a stage takes the maximum or
    minimum, a pair of lanes an instruction.
  }];
  let arguments = (ins Schedule_Extreme:$extreme, AnyFloat:$input);
  let results = (outs F32:$result);
  let assemblyFormat = "$extreme $input attr-dict `:` type($input)";
}

#endif // TESSERA_SCHEDULE_TD
