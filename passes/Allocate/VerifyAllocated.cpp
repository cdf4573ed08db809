//===- VerifyAllocated.cpp - every value has an order in memory -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The contract of the phase after tv-make-resharding-contiguous.
//
//===----------------------------------------------------------------------===//

#include "Allocate/Allocation.h"
#include "Allocate/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_VERIFYALLOCATEDPASS
#include "Allocate/Passes.h.inc"
} // namespace tessera::tv

static bool hasOrder(Value value) {
  ViewAttr view = getView(value);
  return !view || view.getView().alloc;
}

/// Whether an all-gather or reduce-scatter has one end in the order of the
/// other where the large one could be chunks.
static bool isContiguous(ReshardOp step) {
  std::optional<Chunked> chunked = getChunked(step);
  if (!chunked)
    return true;
  const auto &whole = getView(chunked->whole).getView().alloc;
  const auto &shard = getView(chunked->shard).getView().alloc;
  return whole != chunked->order || shard == chunked->order;
}

namespace {
struct VerifyAllocated : tv::impl::VerifyAllocatedPassBase<VerifyAllocated> {
  void runOnOperation() override {
    bool whole = true;
    for (Block &block : getOperation().getBody()) {
      for (BlockArgument argument : block.getArguments())
        if (!hasOrder(argument)) {
          getOperation().emitError()
              << "argument #" << argument.getArgNumber()
              << " has no 'alloc'; run tv-make-resharding-contiguous";
          whole = false;
        }
      for (Operation &op : block) {
        if (!llvm::all_of(op.getResults(), hasOrder)) {
          op.emitError() << "has a result without 'alloc'; run "
                            "tv-make-resharding-contiguous";
          whole = false;
        }
        auto step = dyn_cast<ReshardOp>(op);
        if (whole && step && !isContiguous(step)) {
          op.emitError() << "has a shard that is no chunk of the whole; run "
                            "tv-make-resharding-contiguous";
          whole = false;
        }
      }
    }
    if (!whole)
      return signalPassFailure();
    markAllAnalysesPreserved(); // and nothing is verified again
  }
};
} // namespace
