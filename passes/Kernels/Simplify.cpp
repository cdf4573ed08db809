//===- Simplify.cpp - local programs in canonical form --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The folders and patterns of the tv dialect on the ops of the program. Scalar
// regions stay as they are: a function of a constant would be rounded as here,
// not as on the target.
//
//===----------------------------------------------------------------------===//

#include "Kernels/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_SIMPLIFY
#include "Kernels/Passes.h.inc"
} // namespace tessera

namespace {
struct Simplify : public tessera::impl::SimplifyBase<Simplify> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    context->getOrLoadDialect<tv::TensorViewDialect>()
        ->getCanonicalizationPatterns(set);
    patterns = std::move(set);
    return success();
  }

  void runOnContract() override {
    SmallVector<Operation *> ops;
    for (Operation &op : getOperation().getBody().getOps())
      if (isa<tv::TensorViewDialect>(op.getDialect()))
        ops.push_back(&op);
    if (failed(applyOpPatternsGreedily(
            ops, patterns,
            GreedyRewriteConfig().setStrictness(
                GreedyRewriteStrictness::ExistingAndNewOps))))
      signalPassFailure();
  }

  FrozenRewritePatternSet patterns;
};
} // namespace
