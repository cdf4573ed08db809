//===- TensorViewInterfaces.td - what passes ask of ops ----*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_INTERFACES_TD
#define TESSERA_TENSORVIEW_INTERFACES_TD

include "mlir/IR/OpBase.td"

def ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::tessera::tv";
  let description = [{
    What an op does to dimensions: the loops it runs, and which loop indexes which
    dimension of each operand and result. Passes know ops through this alone.
  }];
  let methods = [
    InterfaceMethod<[{
      The op's rule, computed from shapes and attributes, not from views.
    }], "::tessera::layout::Rule", "getShardingRule">,
    InterfaceMethod<[{
      One sub-axis along which some operands are partial: `operands[i]` is the
      combiner of operand i's state, or nothing when it is whole. Sets the state
      of each result. Fails, with the reason in `why`, when the op may not run on
      such operands.
    }], "::llvm::LogicalResult", "transferPartial",
      (ins "::llvm::ArrayRef<::std::optional<::tessera::layout::Combiner>>":$operands,
           "::llvm::SmallVectorImpl<::std::optional<::tessera::layout::Combiner>> &":$results,
           "::std::string &":$why),
      [{}], [{
        return ::tessera::tv::refusePartial($_op, operands, results, why);
      }]>
  ];
  let verify = [{ return ::tessera::tv::verifyLocalPartials($_op); }];
  let verifyWithRegions = 1;
}

def ReinterpretOpInterface : OpInterface<"ReinterpretOpInterface"> {
  let cppNamespace = "::tessera::tv";
  let description = [{
    An op with one operand and one result that gives the same elements other
    indices, and so has no factors: a view goes through it by arithmetic.
  }];
  let methods = [
    InterfaceMethod<"The view of the result when the operand lies as `view`.",
      "::tessera::Result<::tessera::layout::View>", "getResultView",
      (ins "const ::tessera::layout::View &":$view,
           "const ::tessera::layout::Mesh &":$mesh)>,
    InterfaceMethod<"The view of the operand that makes the result lie as `view`.",
      "::tessera::Result<::tessera::layout::View>", "getOperandView",
      (ins "const ::tessera::layout::View &":$view,
           "const ::tessera::layout::Mesh &":$mesh)>
  ];
}

def WindowOpInterface : OpInterface<"WindowOpInterface"> {
  let cppNamespace = "::tessera::tv";
  let description = [{
    An op between one tensor, the *whole*, and boxes of it: `slice` takes a box out
    of its operand, `pad` and `concat` put their operands as boxes into their
    result. Where the whole is split, the boxes may lie where it places them, as
    `(did(tp) * 6 | 3 : 10)`; then nothing moves.
  }];
  let methods = [
    InterfaceMethod<"The one operand, or the one result, that holds the boxes.",
      "::mlir::Value", "getWhole">,
    InterfaceMethod<[{
      Where each box begins in the whole; kDynamic along a dynamic dimension that
      the box does not span.
    }], "::std::vector<::tessera::layout::Shape>", "getBoxOffsets">
  ];
}

def ExtentsOpInterface : OpInterface<"ExtentsOpInterface"> {
  let cppNamespace = "::tessera::tv";
  let description = [{
    An op that computes extents of its results; those of other ops follow from
    their rules.
  }];
  let methods = [
    InterfaceMethod<[{
      The results' extents from the operands'. Fails, with the reason in `why`, when
      operands do not fit.
    }], "::llvm::LogicalResult", "inferExtents",
      (ins "::llvm::ArrayRef<::std::vector<::tessera::layout::Extent>>":$operands,
           "::llvm::SmallVectorImpl<::std::vector<::tessera::layout::Extent>> &":$results,
           "::std::string &":$why)>
  ];
}

def CompositeOpInterface : OpInterface<"CompositeOpInterface"> {
  let cppNamespace = "::tessera::tv";
  let description = [{
    A named op that is defined by its decomposition into the core ops.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the core ops before the op; gives the values of its results. Types
      carry no encoding if the op's have none; else views follow from the op's.
    }], "::llvm::LogicalResult", "decompose",
      (ins "::mlir::OpBuilder &":$builder,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$results)>
  ];
}

def ElementOpInterface : OpInterface<"ElementOpInterface"> {
  let cppNamespace = "::tessera::tv";
  let description = [{
    An op on local tensors whose results can be computed element by element, where
    they are used. Its loops run over the indices of one value, by default its first
    result; at each, a pointwise op reads its operands at the same indices.
  }];
  let methods = [
    InterfaceMethod<[{
      The elements of all results at these local indices of `getLooped()`, as code at
      the builder's place. Of an op that reduces, what these indices add.
    }], "::llvm::SmallVector<::mlir::Value>", "emitElement",
      (ins "::tessera::tv::ElementBuilder &":$build,
           "::llvm::ArrayRef<::mlir::Value>":$indices)>,
    InterfaceMethod<"Whether there is such code: of constants, for splats alone.",
      "bool", "hasElements", (ins), [{}], [{ return true; }]>,
    InterfaceMethod<[{
      The values whose elements it reads, those that its regions use included; not
      one that only lends its extents.
    }], "::llvm::SmallVector<::mlir::Value>", "getReadValues", (ins), [{}], [{
        return ::tessera::tv::getOperandsAndCaptured($_op);
      }]>,
    InterfaceMethod<[{
      Whether computing an element again where it is used costs less than loading it.
    }], "bool", "isFree", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<"The value over whose indices it loops.",
      "::mlir::Value", "getLooped", (ins), [{}], [{ return $_op->getResult(0); }]>,
    InterfaceMethod<"What it combines over dimensions of `getLooped()`, if it does.",
      "::std::optional<::tessera::tv::Reduction>", "getReduction", (ins), [{}],
      [{ return ::std::nullopt; }]>,
    InterfaceMethod<"How many neighbours are made for the cost of one.",
      "int64_t", "getElementsAtOnce", (ins), [{}], [{ return 1; }]>
  ];
}

def ContractionOpInterface : OpInterface<"ContractionOpInterface"> {
  let cppNamespace = "::tessera::tv";
  let description = [{
    A product of two tensors, a and b, summed over some of their dimensions. A label
    for each dimension of a, b and the result says which go together; see
    `ContractionLabels`.
  }];
  let methods = [
    InterfaceMethod<"The left factor.", "::mlir::Value", "getA">,
    InterfaceMethod<"The right factor.", "::mlir::Value", "getB">,
    InterfaceMethod<[{
      What is added to each column, of the result's last dimension; null if there is
      none.
    }], "::mlir::Value", "getBias", (ins), [{}], [{ return ::mlir::Value(); }]>,
    InterfaceMethod<"What is added to the result: of its type; null if there is none.",
      "::mlir::Value", "getAddend", (ins), [{}], [{ return ::mlir::Value(); }]>,
    InterfaceMethod<"The labels of all global dimensions.",
      "::tessera::tv::ContractionLabels", "getContractionLabels">
  ];
}

def ScalarOpInterface : OpInterface<"ScalarOpInterface"> {
  let cppNamespace = "::tessera::tv";
  let description = [{
    An op with one result, each of whose elements is one function of the operands'
    elements at the same index.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the function of `operands`: an element of each operand, as it is in a
      scalar region, or narrow floats as f32. Its result may be f32 likewise.
    }], "::mlir::Value", "buildScalar",
      (ins "::mlir::ImplicitLocOpBuilder &":$builder,
           "::mlir::ValueRange":$operands)>
  ];
}

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::tessera::tv";
  let description = [{
    An op with a gradient of its own. One that is a scalar function has that of the
    function; any other composite that of its decomposition.
  }];
  let methods = [
    InterfaceMethod<[{
      Adds the cotangents of the operands that need one from those of the results,
      some of which may be null. Sees global tensors; names no device.
    }], "::llvm::LogicalResult", "addCotangents",
      (ins "::mlir::ImplicitLocOpBuilder &":$builder,
           "::tessera::tv::Cotangents &":$cotangents)>
  ];
}

def MoveOpInterface : OpInterface<"MoveOpInterface"> {
  let cppNamespace = "::tessera::tv";
  let description = [{
    An op that moves each operand from its encoding to that of the result of its
    number, and does nothing else; or rows of its first operand, which others name.
  }];
  let methods = [
    InterfaceMethod<[{
      Which rows of the first operand the result has, an operand for each of its
      leading dimensions: an index outside is a row of zeros. None: all of it.
    }], "::mlir::OperandRange", "getRowIndices", (ins), [{}],
    [{ return $_op->getOperands().take_front(0); }]>
  ];
}

#endif // TESSERA_TENSORVIEW_INTERFACES_TD
