//===- Differentiate.cpp - gradients of scalar regions --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Before tv-bind: a tensor that a region loads from is then still the same
// value as the operand that asks for its gradient.
//
//===----------------------------------------------------------------------===//

#include "Differentiate/Passes.h"
#include "TensorView/ScalarGradient.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "Differentiate/Passes.h.inc"
} // namespace tessera::tv

namespace {
struct Differentiate : tv::impl::DifferentiatePassBase<Differentiate> {
  void runOnOperation() override {
    WalkResult written = getOperation().walk([](AttentionGradOp op) {
      bool lacks = !op.getScoreMod().empty() && op.getScoreGrad().empty();
      return lacks && failed(addScoreGrad(op)) ? WalkResult::interrupt()
                                               : WalkResult::advance();
    });
    if (written.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
