//===- ReorderShardedAxis.cpp - orders for in-place collectives -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each planned all-gather and reduce-scatter asks for an order on both ends
// (Allocation.h), in program order. A value that lies in another's memory
// passes the wish on to it. The small end follows only if the large one could:
// else the collective packs the large one anyway.
//
//===----------------------------------------------------------------------===//

#include "Allocate/Allocation.h"
#include "Allocate/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_REORDERSHARDEDAXISPASS
#include "Allocate/Passes.h.inc"
} // namespace tessera::tv

/// Gives `value` the order if it is free to have it. What shares memory must
/// agree.
static bool tryOrder(Value value, const Order &order) {
  if (std::optional<Order> fixed = getFixedOrder(value))
    return *fixed == order;
  if (std::optional<SharedMemory> shared = getSharedMemory(value)) {
    if (shared->dims.empty()) {
      if (order != getRowMajor(value))
        return false;
      // The source is row-major unless someone orders it, which a wish
      // prevents.
      if (!tryOrder(shared->source, getRowMajor(shared->source)))
        return false;
    } else {
      Order above;
      for (int64_t dim : order)
        above.push_back(shared->dims[dim]);
      if (!tryOrder(shared->source, above))
        return false;
    }
  }
  setOrder(value, order);
  return true;
}

namespace {
struct ReorderShardedAxis
    : tv::impl::ReorderShardedAxisPassBase<ReorderShardedAxis> {
  void runOnContract() override {
    bool tried = false;
    getOperation().walk([&](ReshardOp step) {
      std::optional<Chunked> chunked = getChunked(step);
      tried |= chunked.has_value();
      if (!chunked || !tryOrder(chunked->whole, chunked->order))
        return;
      tryOrder(chunked->shard, chunked->order);
    });
    if (!tried)
      markAllAnalysesPreserved(); // and nothing is verified again
  }
};
} // namespace
