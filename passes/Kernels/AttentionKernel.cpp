//===- AttentionKernel.cpp - attention as one op of a kernel --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which attentions the variants for tensor cores can do, and the kernels of
// `flash`: Kernels/cuda/attention_fwd.cuh and attention_bwd.cuh compute them.
// The regions get local indices from the kernel; what they see as global ones
// is computed in them.
//
//===----------------------------------------------------------------------===//

#include "Kernels/LoopKernels.h"

using namespace mlir;
using namespace tessera;

/// Whether every device has all of a dimension, in order.
static bool isWhole(const LocalDim &dim) {
  return layout::axesOf(dim.product).empty() &&
         llvm::none_of(dim.product, [](const layout::Factor &factor) {
           return factor.kind == layout::Factor::Kind::Group;
         });
}

/// Whether a device's heads are all those of its groups, or the same part of
/// each: then its own numbers of heads say which group a head reads.
template <typename Op> static bool headsMatch(Op op) {
  auto local = [](Value tensor) {
    return cast<tv::LocalAttr>(
        cast<RankedTensorType>(tensor.getType()).getEncoding());
  };
  layout::View query = local(op.getQuery()).getLayoutView();
  layout::View key = local(op.getKey()).getLayoutView();
  layout::View value = local(op.getValue()).getLayoutView();
  if (key.dims[1] != value.dims[1])
    return false;
  int64_t heads = *local(op.getQuery()).getExtents()[1].getStatic();
  int64_t groups = *local(op.getKey()).getExtents()[1].getStatic();
  if (heads == groups)
    return query.dims[1] == key.dims[1];
  layout::View ofHeads;
  ofHeads.dims = {query.dims[1]};
  Result<layout::View> parts =
      layout::reshapeView(ofHeads, {heads}, {groups, heads / groups},
                          local(op.getQuery()).getLayoutMesh());
  return parts && parts->dims.size() == 2 && parts->dims[0] == key.dims[1];
}

/// What kernels for tensor cores ask for, ours and cuDNN's, of an attention or
/// its gradient. `others` are their tensors beside the query, the key and the
/// value, results among them.
template <typename Op>
static std::optional<std::string> whyNotOnTensorCores(Op op, StringRef target,
                                                      ValueRange others) {
  if (target != plan::kCUDATarget)
    return "it is for " + plan::kCUDATarget.str();
  auto type = cast<RankedTensorType>(op.getQuery().getType());
  if (!type.getElementType().isBF16() && !type.getElementType().isF16())
    return "its elements must be bf16 or f16";
  if (cast<RankedTensorType>(op.getValue().getType()).getDimSize(3) !=
      type.getDimSize(3))
    return "keys and values must have the same head dimension";
  SmallVector<Value> tensors = {op.getQuery(), op.getKey(), op.getValue()};
  llvm::append_range(tensors, others);
  for (Value tensor : tensors) {
    Space space = getSpace(tensor.getType());
    if (space.size() != 4)
      return "no dimensions may be merged";
    if (!isWhole(space[2]) || !isWhole(space[3]))
      return "only batch and heads may be split";
  }
  if (getSpace(op.getQuery().getType())[0] !=
      getSpace(op.getKey().getType())[0])
    return "queries and keys must split the batch alike";
  if (!headsMatch(op))
    return "a device must have the key heads of its query heads, and no others";
  for (Value tensor : others) {
    if (tensor.getDefiningOp() != op)
      continue;
    Memory memory = getOwnMemory(tensor.getType());
    if (!memory.unit || memory.order.back() != 3)
      return "the head dimension of its result must be innermost in memory";
  }
  return std::nullopt;
}

/// Of our own.
template <typename Op>
static std::optional<std::string> whyNotHeadDimension(Op op) {
  int64_t depth = cast<RankedTensorType>(op.getQuery().getType()).getDimSize(3);
  if (depth != 64 && depth != 128)
    return "its head dimension must be 64 or 128";
  return std::nullopt;
}

std::optional<std::string> tessera::whyNotFlash(tv::AttentionOp op,
                                                StringRef target) {
  if (auto why = whyNotOnTensorCores(op, target, op.getResult()))
    return why;
  return whyNotHeadDimension(op);
}

std::optional<std::string> tessera::whyNotFlash(tv::AttentionGradOp op,
                                                StringRef target) {
  if (auto why = whyNotOnTensorCores(op, target,
                                     {op.getQueryGrad(), op.getKeyGrad(),
                                      op.getValueGrad(), op.getGrad(),
                                      op.getOutput()}))
    return why;
  if (!op.getCapturedGrads().empty())
    return "gradients of captured tensors are asked for";
  return whyNotHeadDimension(op);
}

std::optional<std::string> tessera::whyNotCuDNN(tv::AttentionOp op,
                                                StringRef target) {
  if (auto why = whyNotOnTensorCores(op, target, op.getResult()))
    return why;
  if (!op.getScoreMod().empty() || !op.getMaskMod().empty())
    return "it has a score_mod or a mask_mod";
  // It may look for the largest score before it scales.
  if (!op.getScale().isFinite() || op.getScale().isNegative() ||
      op.getScale().isZero())
    return "its scale must be positive";
  auto type = cast<RankedTensorType>(op.getQuery().getType());
  int64_t depth = type.getDimSize(3);
  if (ShapedType::isDynamic(depth) || depth == 0 || depth % 8 != 0 ||
      depth > 128)
    return "its head dimension must be a multiple of 8, at most 128";
  // A query without keys has no softmax there.
  auto extentOf = [](Value tensor) {
    return cast<tv::LocalAttr>(
               cast<RankedTensorType>(tensor.getType()).getEncoding())
        .getExtents()[2];
  };
  layout::Extent queries = extentOf(op.getQuery()),
                 keys = extentOf(op.getKey());
  bool fits = queries == keys || (queries.getStatic() && keys.getStatic() &&
                                  *queries.getStatic() <= *keys.getStatic());
  if (op.getCausal() && !fits)
    return "it is causal, and there may be more queries than keys";
  return std::nullopt;
}

namespace {
/// A function of scores, then batch, head, query and key, for the kernel.
struct Mod {
  Region *from, *to;
  unsigned scores;
};
} // namespace

/// `queries` lies as the op's queries do. All keys are here, so their numbers
/// are global.
static void emitMods(KernelEmitter &emitter, Value queries, Value key,
                     ArrayRef<Mod> mods) {
  OpBuilder &b = emitter.builder();
  const layout::Extent keys =
      cast<tv::LocalAttr>(
          cast<RankedTensorType>(key.getType()).getEncoding())
          .getExtents()[2];
  for (const Mod &mod : mods) {
    if (mod.from->empty())
      continue;
    SmallVector<Type> types(mod.scores, b.getF32Type());
    types.append(4, b.getIndexType());
    emitter.scalarRegion(*mod.to, types, [&](ArrayRef<Value> arguments) {
      ArrayRef<Value> local = arguments.drop_front(mod.scores);
      SmallVector<Value> at(local.take_front(3));
      at.push_back(emitter.index(0));
      SmallVector<Value> global(arguments.take_front(mod.scores));
      llvm::append_range(global, emitter.globalIndices(queries.getType(), at));
      global.back() = local[3];
      emitter.noteIndex(local[3], keys);
      return emitter.evaluate(mod.from->front(), global);
    });
  }
}

void tessera::emitAttention(KernelEmitter &emitter, tv::AttentionOp op) {
  emitter.addOutput(op.getResult());
  if (!op.getLse().use_empty())
    emitter.addOutput(op.getLse());
  OpBuilder &b = emitter.builder();
  Value query = emitter.argument(op.getQuery());
  Value key = emitter.argument(op.getKey());
  Value value = emitter.argument(op.getValue());
  Value result = emitter.argument(op.getResult());
  Value lse = op.getLse().use_empty() ? Value() : emitter.argument(op.getLse());
  auto attention =
      plan::AttentionOp::create(b, op.getLoc(), query, key, value, result, lse,
                                op.getScaleAttr(), op.getCausalAttr());
  emitMods(emitter, op.getResult(), op.getKey(),
           {{&op.getScoreMod(), &attention.getScoreMod(), 1},
            {&op.getMaskMod(), &attention.getMaskMod(), 0}});
}

void tessera::emitAttentionGrad(KernelEmitter &emitter, tv::AttentionGradOp op,
                                Value sums) {
  for (Value result : op->getResults())
    emitter.addOutput(result);
  emitter.addOutput(sums);
  OpBuilder &b = emitter.builder();
  auto argument = [&](Value value) {
    return value ? emitter.argument(value) : Value();
  };
  auto attention = plan::AttentionGradOp::create(
      b, op.getLoc(), argument(op.getGrad()), argument(op.getQuery()),
      argument(op.getKey()), argument(op.getValue()), argument(op.getOutput()),
      argument(op.getLse()), argument(op.getLseGrad()),
      argument(op.getQueryGrad()), argument(op.getKeyGrad()),
      argument(op.getValueGrad()), argument(sums), op.getScaleAttr(),
      op.getCausalAttr());
  emitMods(emitter, op.getQueryGrad(), op.getKey(),
           {{&op.getScoreMod(), &attention.getScoreMod(), 1},
            {&op.getMaskMod(), &attention.getMaskMod(), 0},
            {&op.getScoreGrad(), &attention.getScoreGrad(), 2}});
}
