//===- SetMachine.cpp - what moves and loops are priced with --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Propagate/Passes.h"
#include "TensorView/TensorView.h"

#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_SETMACHINEPASS
#include "Propagate/Passes.h.inc"
} // namespace tessera::tv

namespace {
struct SetMachinePass : tv::impl::SetMachinePassBase<SetMachinePass> {
  using SetMachinePassBase::SetMachinePassBase;

  void runOnContract() override {
    ModuleOp program = getOperation();
    if (!replaces && program->hasAttr(kMachineAttr))
      return;
    // Errors of the text are the parser's own.
    auto attribute = dyn_cast_or_null<MachineAttr>(
        parseAttribute("#tv.machine" + machine.getValue(), &getContext()));
    if (!attribute)
      return signalPassFailure();
    program->setAttr(kMachineAttr, attribute);
  }
};
} // namespace
