//===- SetTarget.cpp - what a program is compiled for ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernels/Passes.h"
#include "Plan/Target.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_SETTARGET
#include "Kernels/Passes.h.inc"
} // namespace tessera

namespace {
struct SetTarget : public tessera::impl::SetTargetBase<SetTarget> {
  using SetTargetBase::SetTargetBase;

  void runOnContract() override {
    Result<const plan::Target *> known = plan::parseTarget(target);
    if (!known) {
      getOperation().emitError() << known.message();
      return signalPassFailure();
    }
    plan::setTarget(getOperation(), **known);
  }
};
} // namespace
