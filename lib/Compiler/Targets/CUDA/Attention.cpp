//===- Attention.cpp - which attentions GPUs have kernels for -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/Target.h"
#include "Kernels/CapturedGrad.h"
#include "Kernels/ExpandAttention.h"
#include "Kernels/LoopKernels.h"
#include "Kernels/cuda/attention/attention_tiles.h"

#include <array>

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

/// Whether a device's heads are all those of its groups, or the same part of
/// each: then its own numbers of heads say which group a head reads.
template <typename Op> static bool headsMatch(Op op) {
  layout::View query = getLocal(op.getQuery()).getLayoutView();
  layout::View key = getLocal(op.getKey()).getLayoutView();
  layout::View value = getLocal(op.getValue()).getLayoutView();
  if (key.dims[1] != value.dims[1])
    return false;
  int64_t heads = *getLocal(op.getQuery()).getExtents()[1].getStatic();
  int64_t groups = *getLocal(op.getKey()).getExtents()[1].getStatic();
  if (heads == groups)
    return query.dims[1] == key.dims[1];
  layout::View ofHeads;
  ofHeads.dims = {query.dims[1]};
  Result<layout::View> parts =
      layout::reshapeView(ofHeads, {heads}, {groups, heads / groups},
                          getLocal(op.getQuery()).getLayoutMesh());
  return parts && parts->dims.size() == 2 && parts->dims[0] == key.dims[1];
}

/// What has the batches of keys: a table of pages, or the keys.
static Value getKeyBatches(tv::AttentionOp op) {
  return op.getPages() ? op.getPages() : op.getKey();
}
static Value getKeyBatches(tv::AttentionGradOp op) { return op.getKey(); }

/// What has a row of a head for each query, and for each key; the query and the
/// key first.
using Rows = std::array<SmallVector<Value>, 2>;
static Rows getRows(tv::AttentionOp op) {
  return {{{op.getQuery(), op.getResult()}, {op.getKey(), op.getValue()}}};
}
static Rows getRows(tv::AttentionGradOp op) {
  return {{{op.getQuery(), op.getGrad(), op.getOutput(), op.getQueryGrad()},
           {op.getKey(), op.getValue(), op.getKeyGrad(), op.getValueGrad()}}};
}

/// What kernels for tensor cores ask for, ours and cuDNN's, of an attention or
/// its gradient.
template <typename Op>
static std::optional<std::string> whyNotOnTensorCores(Op op) {
  auto type = cast<RankedTensorType>(op.getQuery().getType());
  if (!type.getElementType().isBF16() && !type.getElementType().isF16())
    return "its elements must be bf16 or f16";
  const Rows rows = getRows(op);
  for (ArrayRef<Value> tensors : rows)
    for (Value tensor : tensors) {
      Space space = getSpace(tensor.getType());
      if (space.size() != 4)
        return "no dimensions may be merged";
      if (!isWhole(space[3]) ||
          space[2] != getSpace(tensors.front().getType())[2])
        return "only batch, heads and positions may be split, and these alike";
    }
  // A row's sum is one device's.
  if (std::is_same_v<Op, tv::AttentionOp> &&
      !isWhole(getSpace(op.getKey().getType())[2]))
    return "each device must have all keys";
  if (getSpace(op.getQuery().getType())[0] !=
      getSpace(getKeyBatches(op).getType())[0])
    return "queries and keys must split the batch alike";
  if (!headsMatch(op))
    return "a device must have the key heads of its query heads, and no others";
  for (ArrayRef<Value> tensors : rows)
    for (Value tensor : tensors) {
      if (tensor.getDefiningOp() != op)
        continue;
      Memory memory = getOwnMemory(tensor.getType());
      if (!memory.unit || memory.order.back() != 3)
        return "the head dimension of its result must be innermost in memory";
    }
  return std::nullopt;
}

/// What holds for positions that devices split: kernels count their own, and
/// the op's functions know which these are.
template <typename Op>
static std::optional<std::string> whyNotPositions(Op op) {
  if (!splitsPositions(op))
    return std::nullopt;
  if (op.getTiles())
    return "positions are split, and it has tiles; give it the sequences";
  // The numbers of so many weights of a query follow each other.
  const LocalDim keys = getSpace(op.getKey().getType())[2];
  if (op.getDropout() && !isBlock(keys) && !hasRuns(keys, 16))
    return "with dropout a device must have keys by blocks of a multiple of 16";
  return std::nullopt;
}

/// The head dimension of queries and keys, and of values.
template <typename Op> static std::pair<int64_t, int64_t> getDepths(Op op) {
  auto depthOf = [](Value tensor) {
    return cast<RankedTensorType>(tensor.getType()).getDimSize(3);
  };
  return {depthOf(op.getQuery()), depthOf(op.getValue())};
}

template <typename Op> static std::optional<std::string> whyNotDepths(Op op) {
  auto [depth, ofValues] = getDepths(op);
  if (!llvm::is_contained({64, 96, 128, 192, 256}, depth))
    return "its head dimension must be 64, 96, 128, 192 or 256";
  if (ofValues != depth && !(depth == 192 && ofValues == 128))
    return "values must have the head dimension of keys, or 128 for 192";
  return std::nullopt;
}

/// Tiles that the program itself gives.
template <typename Op> static std::optional<std::string> whyNotTiles(Op op) {
  if (!op.getTiles())
    return std::nullopt;
  auto tiles = op.getTiles().template getDefiningOp<tv::PackedTilesOp>();
  if (!tiles)
    return "its tiles must be what tv.packed_tiles gives";
  if (tiles.getRows() != plan::kPackedRows)
    return "its tiles have " + std::to_string(tiles.getRows()) + " rows, not " +
           std::to_string(plan::kPackedRows);
  if (cast<RankedTensorType>(op.getQuery().getType()).getDimSize(0) != 1)
    return "it has tiles, and a device more than one batch; give it the "
           "sequences";
  return std::nullopt;
}

/// Dropout, whose numbers are those of all weights.
template <typename Op> static std::optional<std::string> whyNotDropout(Op op) {
  if (!op.getDropout())
    return std::nullopt;
  const int64_t queries = tv::getGlobalShape(op.getQuery().getType())[2],
                keys = tv::getGlobalShape(op.getKey().getType())[2];
  if (queries == layout::kDynamic || keys == layout::kDynamic)
    return "with dropout, the numbers of queries and keys must be static";
  if (op.getTiles())
    return "it has tiles and dropout; give it the sequences";
  return std::nullopt;
}

/// Pages.
static std::optional<std::string> whyNotPages(tv::AttentionOp op) {
  if (!op.getPages())
    return std::nullopt;
  auto key = cast<RankedTensorType>(op.getKey().getType());
  // There is no tensor map without one.
  if (key.isDynamicDim(0) || key.getDimSize(0) == 0 || key.getDimSize(2) == 0)
    return "the numbers of pages and of their positions must be known, and not "
           "0";
  if (op.getDropout())
    return "it has pages and dropout";
  return std::nullopt;
}

std::optional<std::string> cuda::whyNotFlash(Operation *attention) {
  if (auto op = dyn_cast<tv::AttentionOp>(attention)) {
    if (auto why = whyNotOnTensorCores(op))
      return why;
    if (auto why = whyNotDepths(op))
      return why;
    for (auto why : {whyNotPages(op), whyNotDropout(op), whyNotPositions(op)})
      if (why)
        return why;
    return whyNotTiles(op);
  }
  auto op = cast<tv::AttentionGradOp>(attention);
  if (auto why = whyNotOnTensorCores(op))
    return why;
  if (!op.getScoreGrad().empty())
    for (auto add : op.getScoreGrad().getOps<tv::AccumulateOp>())
      if (getSumBy(add) == "distance") {
        if (!hasDistances(op))
          return "devices must have equal blocks of positions for a gradient "
                 "by distance";
        if (op.getKey().getType().isDynamicDim(2))
          return "the number of keys must be known for a gradient by distance";
      }
  if (auto why = whyNotDepths(op))
    return why;
  if (getDepths(op).first > kMostNarrowDepth) {
    StringRef has = !op.getCaptured().empty() ? "gradients of captured tensors"
                    : op.getTiles()           ? "tiles"
                    : op.getDropout()         ? "dropout"
                                              : "";
    if (!has.empty())
      return "it has " + has.str() +
             ", for which its head dimension must be 64, 96 or 128";
  }
  for (auto why : {whyNotDropout(op), whyNotPositions(op)})
    if (why)
      return why;
  return whyNotTiles(op);
}

/// What an attention and its gradient both need.
template <typename Op>
static std::optional<std::string> whyNotInLibrary(Op op) {
  if (auto why = whyNotOnTensorCores(op))
    return why;
  if (op.getCausal() && splitsPositions(op))
    return "it is causal, and positions are split";
  if (!op.getScoreMod().empty() || !op.getMaskMod().empty())
    return "it has a score_mod or a mask_mod";
  if (op.getBlockMask())
    return "it has a block mask";
  if (op.getSequences())
    return "it has packed sequences";
  if (op.getDropout())
    return "it has dropout";
  // It may look for the largest score before it scales.
  if (!op.getScale().isFinite() || op.getScale().isNegative() ||
      op.getScale().isZero())
    return "its scale must be positive";
  auto [depth, ofValues] = getDepths(op);
  if (ofValues != depth)
    return "keys and values must have the same head dimension";
  if (ShapedType::isDynamic(depth) || depth == 0 || depth % 8 != 0 ||
      depth > 128)
    return "its head dimension must be a multiple of 8, at most 128";
  // A query without keys has no softmax there.
  layout::Extent queries = getLocal(op.getQuery()).getExtents()[2],
                 keys = getLocal(op.getKey()).getExtents()[2];
  bool fits = queries == keys || (queries.getStatic() && keys.getStatic() &&
                                  *queries.getStatic() <= *keys.getStatic());
  if (op.getCausal() && !fits)
    return "it is causal, and there may be more queries than keys";
  if (std::is_same_v<Op, tv::AttentionGradOp> && queries.getStatic() == 1 &&
      keys.getStatic() == 1)
    return "it has one query and one key";
  return std::nullopt;
}

std::optional<std::string> cuda::whyNotCuDNN(Operation *attention) {
  if (auto op = dyn_cast<tv::AttentionOp>(attention)) {
    if (op.getPages())
      return "it has pages";
    return whyNotInLibrary(op);
  }
  auto op = cast<tv::AttentionGradOp>(attention);
  // It takes what the query adds from the results alone.
  if (op.getLseGrad())
    return "it has a gradient of the log-sum-exp";
  return whyNotInLibrary(op);
}
