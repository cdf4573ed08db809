//===- SchedulePoints.cpp - loops whose iterations stand alone ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads share the chunks of all iterations. Where the neighbours of an
// operand lie along another loop than the last one, blocks take squares of
// iterations instead: they read the operand along its own memory into shared
// memory, and find its elements there.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/Scheduling.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::schedule;

constexpr int kPointThreads = 256;
constexpr size_t kLongBody = 100;
constexpr int64_t kFewPoints = 1 << 14; // no more threads than a GPU has
constexpr int kTileThreads = 128; // of tiles.cuh
constexpr int kTileBlocks = 8;    // that a multiprocessor should hold
constexpr int kMaxStaticShared = 48 << 10;

/// Gives loads their tiles, and the loop its schedule, where it has squares.
static LoopAttr getSquares(scf::ParallelOp loop, Chunk &chunk) {
  const unsigned last = loop.getNumLoops() - 1;
  unsigned across = last;
  int bytes = 0, side = kWarp, width = 1;
  SmallVector<Chunk::Planned *> tiles;
  for (auto [load, plan] : chunk.getLoads()) {
    if (plan->guarded)
      continue;
    std::optional<unsigned> found = getAcross(loop, load, plan->dim);
    if (!found || (across != last && *found != across))
      continue;
    across = *found;
    tiles.push_back(plan);
    int size = load.getMemRefType().getElementTypeBitWidth() / 8;
    // Lines of 128 bytes, read 16 at a time.
    side = std::max(side, kWarp * 4 / std::min(size, 4));
    width = std::max(width, std::min(16 / size, 8));
    bytes += size;
  }
  auto getExtent = [&](unsigned i) {
    return getConstant(loop.getUpperBound()[i]);
  };
  auto isShort = [&](unsigned i) {
    return getExtent(i) && *getExtent(i) < kWarp / 2;
  };
  // (A gap of 4 bytes between lines, or of an element of 8.)
  if (tiles.empty() || bytes * side * (side + 4) > kMaxStaticShared ||
      isShort(across) || isShort(last))
    return {};
  for (auto [number, plan] : llvm::enumerate(tiles)) {
    plan->kind = RoleKind::Tile;
    plan->number = number;
  }
  MLIRContext *context = loop.getContext();
  SmallVector<InstanceAttr> instances;
  width = narrow(narrow(width, getExtent(last)), getExtent(across));
  if (width > 1) {
    SmallVector<ConditionAttr> conditions;
    auto addMultiple = [&](unsigned i) {
      if (!getExtent(i))
        conditions.push_back(
            ConditionAttr::get(context, ConditionKind::Multiple, i, -1));
    };
    addMultiple(last);
    chunk.addAligned(conditions);
    addMultiple(across);
    instances.push_back(
        InstanceAttr::get(context, width, 4, Keep::No, conditions));
  }
  instances.push_back(InstanceAttr::get(context, 1, 4, Keep::No, {}));
  return LoopAttr::get(context, Form::Squares, kTileThreads,
                       int64_t(side) * side, 0, kTileBlocks, side, across,
                       instances);
}

static LoopAttr getFlat(scf::ParallelOp loop, Chunk &chunk) {
  MLIRContext *context = loop.getContext();
  const unsigned last = loop.getNumLoops() - 1;
  std::optional<int64_t> extent = getConstant(loop.getUpperBound()[last]);
  // Long bodies hide the latency of their loads themselves.
  size_t ops = 0;
  // A thread would do the loops of its lanes one after another.
  bool loops = false;
  loop.getBody()->walk([&](Operation *op) {
    ++ops;
    loops |= isa<scf::ForOp>(op);
  });
  std::optional<int64_t> points = 1;
  for (Value upper : loop.getUpperBound())
    if (std::optional<int64_t> size = getConstant(upper); size && points)
      *points *= *size;
    else
      points = std::nullopt;
  // So would it those of long bodies, where there is a thread for each.
  const bool few = ops > kLongBody && points && *points <= kFewPoints;
  const int width = loops || few ? 1 : narrow(chunk.getWidth(), extent);
  auto unroll = [&](int width) {
    int registers = 0;
    for (auto [load, plan] : chunk.getLoads())
      registers += std::max<int>(
          width * load.getMemRefType().getElementTypeBitWidth() / 8 / 4, 1);
    return ops > kLongBody || loops
               ? 1
               : std::clamp(kLoadRegisters / 2 / std::max(registers, 1), 1, 4);
  };
  SmallVector<InstanceAttr> instances;
  if (width > 1) {
    SmallVector<ConditionAttr> conditions;
    if (!extent)
      conditions.push_back(
          ConditionAttr::get(context, ConditionKind::Multiple, last, -1));
    chunk.addAligned(conditions);
    instances.push_back(
        InstanceAttr::get(context, width, unroll(width), Keep::No, conditions));
  }
  instances.push_back(InstanceAttr::get(context, 1, unroll(1), Keep::No, {}));
  return LoopAttr::get(context, Form::Points, kPointThreads,
                       int64_t(kPointThreads) * width * unroll(width), 0, 0, 0,
                       -1, instances);
}

void cuda::schedulePoints(scf::ParallelOp loop) {
  const MemoryUse memory(loop);
  Chunk chunk(loop, loop.getInductionVars().back(), memory);
  LoopAttr attribute = getSquares(loop, chunk);
  if (!attribute)
    attribute = getFlat(loop, chunk);
  loop->setAttr(kLoopAttr, attribute);
  chunk.write();
}
