//===- SeparateVariants.cpp - ops of their own for each choice ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernels/Passes.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_SEPARATEVARIANTS
#include "Kernels/Passes.h.inc"
} // namespace tessera

namespace {
struct SeparateVariants
    : public tessera::impl::SeparateVariantsBase<SeparateVariants> {
  void runOnContract() override {
    Block &block = getOperation().getBody().front();
    const size_t ops = block.getOperations().size();
    plan::separateVariants(block);
    if (block.getOperations().size() == ops)
      markAllAnalysesPreserved(); // and nothing is verified again
  }
};
} // namespace
