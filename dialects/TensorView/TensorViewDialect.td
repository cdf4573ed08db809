//===- TensorViewDialect.td - the tv dialect ---------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_DIALECT_TD
#define TESSERA_TENSORVIEW_DIALECT_TD

include "mlir/IR/OpBase.td"

def TensorView_Dialect : Dialect {
  let name = "tv";
  let cppNamespace = "::tessera::tv";
  let summary = "Tensor programs for a whole mesh of devices";
  let description = [{
    A program in `tv` is written once for the whole machine. Its values are
    builtin tensors; the encoding of a tensor type says how the tensor lies over
    a mesh of devices:

    - no encoding: undecided, legal only before propagation;
    - `#tv.view`: the global tensor, and which device holds which part;
    - `#tv.local`: one device's part, after localization.

    Only `tv.reshard` changes how data lies. Every other op tells what it does to
    dimensions through `ShardingRuleOpInterface`, or `ReinterpretOpInterface`.

    **Local types.** A `#tv.local` type carries the view and the extents of the
    whole tensor. From these and the device's coordinates follow the global index
    of each local element, and with it the meaning of an op on local types: it
    computes, for each element of its result that the device holds, what the op
    on the whole tensors would, from those elements of its operands that the
    device holds. Every index that an op sees stays global, and so do all its
    attributes:

    - `iota`, `random`, `constant` give what the whole tensor has at the global
      index of each local element; `size` gives the global extent.
    - `slice`, `pad` and `concat` relate global indices. Each element of the
      operand that a local element of the result stands for must be on the same
      device; else the op is not legal and needs a reshard before.
    - `gather` and `combine` on a split table: an element that this device does
      not hold counts as 0, so the result is partial (sum).
    - `scatter` and `dispatch` on a split result: updates of elements that this
      device does not hold are dropped. Split updates combine into a result that
      is partial; its `init` is partial too.
    - `attention` and `attention_grad` number batch, head, query and key globally
      in their regions and for `causal`; `tv.load` and `tv.accumulate` take global
      indices of a whole tensor; `grouped_matmul` compares counts with global rows.
    - `reduce`, `linear`, `matmul`, `grouped_matmul`, `attention_grad` over a split
      dimension combine what this device holds; the result's view says that it is
      partial.
    - `reshape` and `transpose` keep each device's elements; `reshape` also keeps
      their local row-major order.

    So the local form of every op is the same op on local types.

    **Attributes** of a program, all of them optional but for sizes:

    - `tv.name = "encoder.weight"` on an argument or result: what it is called in
      files and reports; else `arg0`, `result0` and so on.
    - `tv.role` on an argument: `"input"`; `"weight"`, which on a tie stays where it
      is; `"state"`, kept from one run to the next: the one result of the same name
      is its next value, of the same type, and lies as it does; or `"parameter"`, a
      weight that is state.
    - `tv.init = "zero"` on a state: it is zeros before the first run, unless it is
      given; files need not hold it.
    - `tv.check = "sequences overlap"` on a result of integers, of which each device has
      all: a run after which one of them is not 0 is an error, which says this, which one
      it is and what it has. So a program reports data that is wrong.
    - `tv.dims = ["b", "s"]` on an argument names its dynamic extents, in order;
      `tv.sizes = {b = 64, s = [256, 8]}` on the function declares the maximum of
      each, here also that s is a multiple of 8.
    - `tv.machine = #tv.machine<...>` on the module: what moves and loops are priced with.
      Without it `tessera-compile` writes there what its target has.
    - `tv.variants = ["flash", "math"]` on `tv.attention` or its gradient: the
      variants of this op to compile in, the preferred first.
    - `tv.range = [0, 100]` on an argument: the interpreter makes up numbers from the
      first to below the second.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::math::MathDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasCanonicalizer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Whether tensor types with an encoding are printed once a file, as
    /// aliases such as `!t8x16xf32`.
    bool aliasesTensorTypes() const { return tensorTypeAliases; }
    void setTensorTypeAliases(bool value) { tensorTypeAliases = value; }

  private:
    bool tensorTypeAliases = false;

  public:
  }];
}

#endif // TESSERA_TENSORVIEW_DIALECT_TD
