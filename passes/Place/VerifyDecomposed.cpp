//===- VerifyDecomposed.cpp - each op is local or a reshard ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The contract of the phase after tv-decompose-reshardings.
//
//===----------------------------------------------------------------------===//

#include "Place/Passes.h"
#include "Place/Placement.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_VERIFYDECOMPOSEDPASS
#include "Place/Passes.h.inc"
} // namespace tessera::tv

namespace {
struct VerifyDecomposed : tv::impl::VerifyDecomposedPassBase<VerifyDecomposed> {
  void runOnOperation() override {
    bool whole = true;
    LocalChecks checks;
    for (Block &block : getOperation().getBody())
      for (Operation &op : block)
        if (Status status = checks.check(&op); !status) {
          op.emitError() << "needs data of other devices: " << status.message()
                         << "; run tv-decompose-reshardings";
          whole = false;
        }
    if (!whole)
      return signalPassFailure();
    markAllAnalysesPreserved(); // and nothing is verified again
  }
};
} // namespace
