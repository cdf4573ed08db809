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
#include "Kernels/LoopKernels.h"

using namespace mlir;
using namespace tessera;

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
      cast<tv::LocalAttr>(cast<RankedTensorType>(key.getType()).getEncoding())
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
                                Type scratchType) {
  for (Value result : op->getResults())
    emitter.addOutput(result);
  Value scratch = emitter.addScratch(scratchType);
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
  auto attention = plan::AttentionGradOp::create(
      b, op.getLoc(), argument(op.getGrad()), argument(op.getQuery()),
      argument(op.getKey()), argument(op.getValue()), argument(op.getOutput()),
      argument(op.getLse()), argument(op.getLseGrad()),
      argument(op.getQueryGrad()), argument(op.getKeyGrad()),
      argument(op.getValueGrad()), scratch, sums, b.getStrArrayAttr(sumsBy),
      op.getScaleAttr(), op.getCausalAttr());
  emitMods(emitter, op.getQueryGrad(), op.getKey(),
           {{&op.getScoreMod(), &attention.getScoreMod(), 1},
            {&op.getMaskMod(), &attention.getMaskMod(), 0},
            {&op.getScoreGrad(), &attention.getScoreGrad(), 2}});
}
