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
    dimensions through `ShardingRuleOpInterface`, and how it becomes an op on one
    device's part through `LocalizableOpInterface`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::math::MathDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
}

#endif // TESSERA_TENSORVIEW_DIALECT_TD
