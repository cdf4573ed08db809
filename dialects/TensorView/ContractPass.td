//===- ContractPass.td - what a pass needs, for TableGen ---*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_CONTRACTPASS_TD
#define TESSERA_TENSORVIEW_CONTRACTPASS_TD

include "mlir/Pass/PassBase.td"

/// A pass that relies on a contract of Contract.h; it implements
/// `runOnContract`.
class ContractPass<string arg, string contract,
                   string operation = "::mlir::func::FuncOp">
    : PassBase<arg, "::tessera::tv::ContractPass<::tessera::tv::Contract::"
                    # contract # ", " # operation # ">">;

#endif // TESSERA_TENSORVIEW_CONTRACTPASS_TD
