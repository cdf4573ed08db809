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
    MachineAttr attribute = parseMachine();
    if (!attribute)
      return signalPassFailure();
    program->setAttr(kMachineAttr, attribute);
  }

  /// Its error is the parser's, with the flag and the place in its text.
  MachineAttr parseMachine() {
    const StringRef mnemonic = "#tv.machine", given = machine.getValue();
    std::string why;
    StringRef at;
    Attribute parsed;
    if (given.starts_with("<")) {
      ScopedDiagnosticHandler handler(&getContext(), [&](Diagnostic &error) {
        if (!why.empty())
          return;
        why = error.str();
        if (auto place = error.getLocation()->findInstanceOf<FileLineColLoc>())
          at = given.drop_front(
              std::max<size_t>(place.getColumn(), mnemonic.size() + 1) -
              mnemonic.size() - 1);
      });
      parsed = parseAttribute((mnemonic + given).str(), &getContext());
    } else {
      why = "must be as <latency=5.0e-6,bandwidth=3.0e11,copy=2.0e12,"
            "loops=3.0e14>";
    }
    if (auto attribute = dyn_cast_or_null<MachineAttr>(parsed))
      return attribute;
    InFlightDiagnostic error = emitError(getOperation().getLoc())
                               << "--machine='" << given << "'";
    if (!at.empty())
      error << " at '" << at << "'";
    error << ": " << why;
    return {};
  }
};
} // namespace
