//===- AttentionKernel.cpp - attention as one op of a kernel --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The `flash` variant. Its regions get local indices from the kernel; what they
// see as global ones is computed in them.
//
//===----------------------------------------------------------------------===//

#include "Kernels/CapturedGrad.h"
#include "Kernels/ExpandAttention.h"
#include "Kernels/LoopKernels.h"

using namespace mlir;
using namespace tessera;

static layout::Extent getNumKeys(tv::AttentionOp op) {
  return op.getPages() ? layout::Extent(op.getNumKeys())
                       : getLocal(op.getKey()).getExtents()[2];
}
static layout::Extent getNumKeys(tv::AttentionGradOp op) {
  return getLocal(op.getKey()).getExtents()[2];
}

/// A function of scores, then batch, head, query and key, for the kernel: what
/// `body` gives for global indices. `queries` lies as the op's queries do.
template <typename Op>
static void
emitMod(KernelEmitter &emitter, Op op, Value queries, Region &to,
        unsigned scores,
        llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)> body) {
  OpBuilder &b = emitter.builder();
  SmallVector<Type> types(scores, b.getF32Type());
  types.append(4, b.getIndexType());
  emitter.scalarRegion(to, types, [&](ArrayRef<Value> arguments) {
    ArrayRef<Value> local = arguments.drop_front(scores);
    SmallVector<Value> at(local.take_front(3));
    at.push_back(emitter.index(0));
    SmallVector<Value> global(arguments.take_front(scores));
    llvm::append_range(global, emitter.globalIndices(queries.getType(), at));
    // (Pages are whole.)
    global.back() = emitter.globalIndex(op.getKey(), 2, local[3]);
    emitter.noteIndex(global.back(), getNumKeys(op));
    return body(global);
  });
}

namespace {
struct Mod {
  Region *from, *to;
  unsigned scores;
};
} // namespace

/// The number of a weight among all, [B, H, S, T].
template <typename Op>
static void emitNumber(KernelEmitter &emitter, Op op, Value queries,
                       Region &numberMod) {
  OpBuilder &b = emitter.builder();
  const SmallVector<layout::Extent> of = {LocalShape(op.getQuery()).extents[1],
                                          LocalShape(op.getQuery()).extents[2],
                                          getNumKeys(op)};
  emitMod(emitter, op, queries, numberMod, 0,
          [&](ArrayRef<Value> pair) -> SmallVector<Value> {
            Value number = pair[0];
            for (auto [at, extent] : llvm::zip_equal(pair.drop_front(), of)) {
              Value before = arith::MulIOp::create(b, op.getLoc(), number,
                                                   emitter.extent(extent));
              number = arith::AddIOp::create(b, op.getLoc(), before, at);
            }
            return {number};
          });
}

/// Whether mask_mod says what `causal` does: a device's own keys are no block,
/// or its queries are none and a block mask leaves no room for a causal_mod.
template <typename Op> static bool masksDiagonal(Op op) {
  return op.getCausal() && !(isBlock(getSpace(op.getKey().getType())[2]) &&
                             (isBlock(getSpace(op.getQuery().getType())[2]) ||
                              !op.getBlockMask()));
}
template <typename Op> static UnitAttr getCausal(Op op) {
  return masksDiagonal(op) ? UnitAttr() : op.getCausalAttr();
}

/// The last key that a query sees: qi + T - S.
template <typename Op>
static Value getLastKey(KernelEmitter &emitter, Op op, Value query) {
  Arith math{emitter.builder(), op.getLoc()};
  return math.add(
      query, math.sub(emitter.extent(getNumKeys(op)),
                      emitter.extent(getLocal(op.getQuery()).getExtents()[2])));
}

/// Which of its own keys is the last that a device's query sees, where it has a
/// part of the positions.
template <typename Op>
static void emitCausal(KernelEmitter &emitter, Op op, Value queries,
                       Region &causalMod) {
  if (!op.getCausal() || !splitsPositions(op) || masksDiagonal(op))
    return;
  emitMod(emitter, op, queries, causalMod, 0,
          [&](ArrayRef<Value> pair) -> SmallVector<Value> {
            Arith math{emitter.builder(), op.getLoc()};
            Value first = emitter.globalIndex(op.getKey(), 2, emitter.index(0));
            return {math.sub(getLastKey(emitter, op, pair[2]), first)};
          });
}

template <typename Op>
static void emitMask(KernelEmitter &emitter, Op op, Value queries,
                     Region &maskMod) {
  Region &own = op.getMaskMod();
  if (own.empty() && !masksDiagonal(op))
    return;
  auto body = [&](ArrayRef<Value> pair) -> SmallVector<Value> {
    SmallVector<Value> kept;
    if (!own.empty())
      kept = emitter.evaluate(own.front(), pair);
    if (!masksDiagonal(op))
      return kept;
    Arith math{emitter.builder(), op.getLoc()};
    Value isBefore =
        arith::CmpIOp::create(math.b, op.getLoc(), arith::CmpIPredicate::sle,
                              pair[3], getLastKey(emitter, op, pair[2]));
    return {kept.empty() ? isBefore : math.both(isBefore, kept.front())};
  };
  emitMod(emitter, op, queries, maskMod, 0, body);
}

/// The op's regions, what its block mask says of a pair, what number it is, and
/// what a query sees.
template <typename Op>
static void emitMods(KernelEmitter &emitter, Op op, Value queries,
                     ArrayRef<Mod> mods, Region &maskMod, Region &blockMod,
                     Region &numberMod, Region &causalMod) {
  emitCausal(emitter, op, queries, causalMod);
  if (op.getDropout())
    emitNumber(emitter, op, queries, numberMod);
  for (const Mod &mod : mods)
    if (!mod.from->empty())
      emitMod(emitter, op, queries, *mod.to, mod.scores,
              [&](ArrayRef<Value> global) {
                return emitter.evaluate(mod.from->front(), global);
              });
  emitMask(emitter, op, queries, maskMod);
  Value mask = op.getBlockMask();
  if (!mask)
    return;
  OpBuilder &b = emitter.builder();
  emitMod(emitter, op, queries, blockMod, 0,
          [&](ArrayRef<Value> pair) -> SmallVector<Value> {
            SmallVector<Value> at(pair);
            for (auto [dim, extent] :
                 llvm::enumerate(tv::getGlobalShape(mask.getType()))) {
              if (dim >= 2) {
                at[dim] = arith::DivUIOp::create(
                    b, op.getLoc(), at[dim],
                    emitter.index((*op.getBlocks())[dim - 2]));
                emitter.noteIndex(at[dim], layout::Extent(extent));
              } else if (extent == 1) {
                at[dim] = emitter.index(0);
              }
            }
            return {emitter.loadCaptured(op, mask, at)};
          });
}

namespace {
/// Of the op in a kernel; nothing if there is none.
struct Dropout {
  Value seed, stream, step;

  template <typename Op> Dropout(KernelEmitter &emitter, Op op) {
    if (!op.getDropout())
      return;
    // As of tv.random: layers differ in streams alone.
    seed = emitter.constant(op.getSeedAttr(), emitter.builder().getI64Type());
    stream = emitter.attribute(op, op.getStreamAttrName());
    if (op.getStep())
      step = emitter.argument(op.getStep());
  }
};
} // namespace

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
  Value tiles = op.getTiles() ? emitter.argument(op.getTiles()) : Value();
  Value pages = op.getPages() ? emitter.argument(op.getPages()) : Value();
  const Dropout dropout(emitter, op);
  auto attention = plan::AttentionOp::create(
      b, op.getLoc(), query, key, value, result, lse, tiles, pages,
      dropout.seed, dropout.stream, dropout.step, op.getScaleAttr(),
      getCausal(op), op.getDropoutAttr(), op.getBlocksAttr());
  emitMods(emitter, op, op.getResult(),
           {{&op.getScoreMod(), &attention.getScoreMod(), 1}},
           attention.getMaskMod(), attention.getBlockMod(),
           attention.getNumberMod(), attention.getCausalMod());
}

/// Which of the block mask's heads, of all batches, a pair is of.
static void emitMaskHead(KernelEmitter &emitter, tv::AttentionGradOp op,
                         Region &walkMod) {
  const layout::Shape mask = tv::getGlobalShape(op.getBlockMask().getType());
  emitMod(emitter, op, op.getQueryGrad(), walkMod, 0,
          [&](ArrayRef<Value> pair) -> SmallVector<Value> {
            Arith math{emitter.builder(), op.getLoc()};
            Value head = mask[1] == 1 ? emitter.index(0) : pair[1];
            if (mask[0] != 1)
              head = math.add(math.mul(pair[0], emitter.index(mask[1])), head);
            return {head};
          });
}

void tessera::emitAttentionGrad(KernelEmitter &emitter, tv::AttentionGradOp op,
                                Value walks, TypeRange scratchTypes) {
  for (Value result : op->getResults())
    emitter.addOutput(result);
  SmallVector<Value> scratch(3);
  for (auto [memory, type] : llvm::zip(scratch, scratchTypes))
    memory = emitter.addScratch(type);
  OpBuilder &b = emitter.builder();
  auto argument = [&](Value value) {
    return value ? emitter.argument(value) : Value();
  };
  // What the region adds it yields.
  SmallVector<Value> sums;
  SmallVector<StringRef> sumsBy;
  if (!op.getScoreGrad().empty())
    for (auto add : llvm::make_early_inc_range(
             op.getScoreGrad().getOps<tv::AccumulateOp>())) {
      sums.push_back(argument(op.getCapturedGrads()[add.getNumber()]));
      sumsBy.push_back(getSumBy(add));
      Operation *yield = op.getScoreGrad().front().getTerminator();
      yield->insertOperands(yield->getNumOperands(), add.getAdjoint());
      add.erase();
    }
  const Dropout dropout(emitter, op);
  auto attention = plan::AttentionGradOp::create(
      b, op.getLoc(), argument(op.getGrad()), argument(op.getQuery()),
      argument(op.getKey()), argument(op.getValue()), argument(op.getOutput()),
      argument(op.getLse()), argument(op.getLseGrad()),
      argument(op.getQueryGrad()), argument(op.getKeyGrad()),
      argument(op.getValueGrad()), scratch[0], scratch[1], scratch[2], sums,
      b.getStrArrayAttr(sumsBy), argument(op.getTiles()), argument(walks),
      dropout.seed, dropout.stream, dropout.step, op.getScaleAttr(),
      getCausal(op), op.getDropoutAttr(), op.getBlocksAttr());
  emitMods(emitter, op, op.getQueryGrad(),
           {{&op.getScoreMod(), &attention.getScoreMod(), 1},
            {&op.getScoreGrad(), &attention.getScoreGrad(), 2}},
           attention.getMaskMod(), attention.getBlockMod(),
           attention.getNumberMod(), attention.getCausalMod());
  if (walks)
    emitMaskHead(emitter, op, attention.getWalkMod());
}
