//===- Comm.td - the comm dialect --------------------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One op for each kind of step that a planned reshard may be. All are one class:
// the kind is what distinguishes them, and the types say what moves. And `fetch`,
// of which data say what moves.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMM_TD
#define TESSERA_COMM_TD

include "TensorView/TensorViewAttrs.td"
include "TensorView/TensorViewInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Comm_Dialect : Dialect {
  let name = "comm";
  let cppNamespace = "::tessera::comm";
  let summary = "Moves of data between the devices of a mesh";
  let description = [{
    After localization, the only ops in which devices meet. Operands and results
    are one device's parts (`#tv.local`); an op moves each operand from its view
    to the view of the result of its number, and `comm.fetch` rows that data name. It
    names the axes along which it goes: those that no longer split, or are no longer
    partial; of a slice those that do after it. Only ops from peer to peer
    (`comm.all_to_all`, `comm.permute`, `comm.exchange`) may name more.
    Every device runs the same `comm` ops in the same order.
  }];
  let dependentDialects = ["::tessera::tv::TensorViewDialect"];
  let useDefaultAttributePrinterParser = 1;
}

def Comm_AxesAttr : AttrDef<Comm_Dialect, "Axes"> {
  let mnemonic = "axes";
  let summary = "Sub-axes of a mesh along which devices meet";
  let description = [{ `#comm.axes<#m [tp, dp:(1)2]>` }];
  let parameters = (ins "::tessera::tv::MeshAttr":$mesh,
    AttrParameter<"::std::vector<::tessera::layout::SubAxis>", "",
                  "const ::std::vector<::tessera::layout::SubAxis> &">:$axes);
  let hasCustomAssemblyFormat = 1;
}

def CollectiveOpInterface
    : OpInterface<"CollectiveOpInterface", [MoveOpInterface]> {
  let cppNamespace = "::tessera::comm";
  let description = [{ What all ops of `comm` have. }];
  let methods = [
    InterfaceMethod<"How the data moves.", "::tessera::tv::StepKind", "getKind">,
    InterfaceMethod<"Along which sub-axes.", "::tessera::comm::AxesAttr", "getAxes">,
    InterfaceMethod<"A number that no other op of the program has.", "uint64_t",
                    "getId">,
    InterfaceMethod<"The alternative that lost, with its cost; may be null.",
                    "::mlir::StringAttr", "getLoserAttr">
  ];
  let verify = [{ return ::tessera::comm::verifyCollective($_op); }];
}

class Comm_Op<string mnemonic, string kind>
    : Op<Comm_Dialect, mnemonic,
         [DeclareOpInterfaceMethods<CollectiveOpInterface>,
          OpInterfaceTrait<"::tessera::tv::MoveOpInterface">]> {
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, Comm_AxesAttr:$axes,
                       I64Attr:$id, OptionalAttr<StrAttr>:$loser);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $inputs `over` custom<Axes>($axes) `id` $id (`loser` $loser^)? attr-dict
    `:` functional-type($inputs, $results)
  }];
  let extraClassDefinition =
      "::tessera::tv::StepKind $cppClass::getKind() { "
      "return ::tessera::tv::StepKind::" # kind # "; }";
}

def Comm_SliceOp : Comm_Op<"slice", "Slice"> {
  let summary = "Each device keeps a part of what it has";
  let description = [{
    ```mlir
    %r = comm.slice %x over #m [tp] id 0
       : (tensor<8xf32, #tv.local<#whole, of [8]>>)
      -> tensor<4xf32, #tv.local<#split, of [8]>>
    ```
    No bytes move. May make a partial value, as `comm.exchange`, of which the
    devices have all that is needed.
  }];
}
def Comm_AllGatherOp : Comm_Op<"all_gather", "AllGather"> {
  let summary = "Devices join their shards";
}
def Comm_AllReduceOp : Comm_Op<"all_reduce", "AllReduce"> {
  let summary = "Devices combine their partial values";
  let description = [{
    ```mlir
    %r = comm.all_reduce %x over #m [tp] id 3 loser "reduce-scatter, all-gather"
       : (tensor<8xf32, #tv.local<#partial, of [8]>>)
      -> tensor<8xf32, #tv.local<#whole, of [8]>>
    ```
    The combiner is that of the operand's partial state.
  }];
}
def Comm_ReduceScatterOp : Comm_Op<"reduce_scatter", "ReduceScatter"> {
  let summary = "Devices combine partial values, each keeps a shard";
}
def Comm_AllToAllOp : Comm_Op<"all_to_all", "AllToAll"> {
  let summary = "Axes leave some dimensions and split others";
}
def Comm_PermuteOp : Comm_Op<"permute", "Permute"> {
  let summary = "Every device's part goes to one other device";
}
def Comm_BroadcastOp : Comm_Op<"broadcast", "Broadcast"> {
  let summary = "What one coordinate holds goes to all";
}
def Comm_FetchOp : Op<Comm_Dialect, "fetch",
    [DeclareOpInterfaceMethods<CollectiveOpInterface>,
     DeclareOpInterfaceMethods<MoveOpInterface, ["getRowIndices"]>]> {
  let summary = "Each device gets the rows that it names, from who holds them";
  let description = [{
    ```mlir
    // Of 16 experts with 40 rows each, split over ep, those of each token's choices.
    %r = comm.fetch %buffers at %experts, %slots over #m [ep] id 4
       : (tensor<4x40x64xf32, #tv.local<#b, of [16, 40, 64]>>,
          tensor<32x2xi32, #tv.local<#t, of [128, 2]>>,
          tensor<32x2xi32, #tv.local<#t, of [128, 2]>>)
      -> tensor<32x2x64xf32, #tv.local<#r, of [128, 2, 64]>>
    ```
    `result[i..., d...] = table[at[0][i...], at[1][i...], ..., d...]`: an operand of
    `at` for each leading dimension of the table, i32 or i64, all of one type; zeros
    where an index lies outside of the table. The table's first dimension is split
    by blocks over the axes and by nothing else, the leading dimensions behind it are
    whole, and the other dimensions lie as the result's last ones.

    What moves follows from the indices when it runs: each row once for every element
    of `at` that names it, none that the device itself holds. CPUs tell each other how
    many rows they want, then which, then these move. GPUs read the rows in each
    other's memory, between two all-reduces of a word by which they meet.
  }];
  let arguments = (ins AnyRankedTensor:$table,
                       Variadic<RankedTensorOf<[I32, I64]>>:$at,
                       Comm_AxesAttr:$axes, I64Attr:$id,
                       OptionalAttr<StrAttr>:$loser);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $table `at` $at `over` custom<Axes>($axes) `id` $id (`loser` $loser^)? attr-dict
    `:` functional-type(operands, $result)
  }];
  let hasVerifier = 1;
}
def Comm_ExchangeOp : Comm_Op<"exchange", "Exchange"> {
  let summary = "Any other change of view, by sends and receives";
  let description = [{
    Also makes a partial value: of its part of the result each device keeps what
    it has, of devices that have the same the first along the new state's axes;
    these share what all of them lack, and have the combiner's identity elsewhere.
  }];
}

#endif // TESSERA_COMM_TD
