//===- GroupOps.cpp - ops that run together become groups -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What goes together is found first (Grouping.h), on a program that stays as it
// is; then the steps take their places in it, each kernel and each product of a
// library as a group.
//
//===----------------------------------------------------------------------===//

#include "Kernels/Grouping.h"
#include "Kernels/LoopKernels.h"
#include "Kernels/Passes.h"
#include "Kernels/Windows.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_GROUPOPS
#include "Kernels/Passes.h.inc"
} // namespace tessera

/// Says what no kernel can be made of.
static LogicalResult verify(func::FuncOp main) {
  for (auto op : main.getBody().getOps<tv::ElementOpInterface>())
    if (op.getReduction() && !getReducedDims(op))
      return op.emitError() << "reduces a part of dimensions that the view of "
                               "its operand merges; reshape it first";
  return success();
}

/// Whether the step computes: it is no collective, no window on memory and no
/// data of the plan.
static bool isGroup(const PlanStep &step) {
  Operation *op = step.op;
  return step.fused || step.product ||
         (isa<tv::TensorViewDialect>(op->getDialect()) && !getPermutation(op) &&
          !getWindow(op) && op->getNumOperands() > 0 &&
          !isa<tv::ReinterpretOpInterface>(op));
}

/// The free and copied ops that a group of these computes.
static llvm::SetVector<Operation *> getFreeOps(ArrayRef<Operation *> ops,
                                               const Grouping &of) {
  llvm::SetVector<Value> read;
  llvm::SetVector<Operation *> free;
  for (Operation *op : ops) {
    if (isFree(op))
      read.insert_range(op->getResults());
    else if (of.loops.contains(op))
      read.insert_range(getReadValues(op));
    else
      getUsedValuesDefinedAbove(op->getRegions(), read);
  }
  for (size_t i = 0; i < read.size(); ++i)
    if (Operation *op = read[i].getDefiningOp();
        op && (isFree(op) || of.copied.contains(op))) {
      free.insert(op);
      read.insert_range(getReadValues(op));
    }
  return free;
}

/// A copy of a free op in a group. What only lends it extents has the type say
/// them, unless it is at hand.
static Operation *copyFree(OpBuilder &builder, Operation *op,
                           IRMapping &inside) {
  Operation *copy = builder.clone(*op, inside);
  SmallVector<Value> read = getReadValues(copy);
  for (OpOperand &operand : copy->getOpOperands()) {
    Value value = operand.get();
    if (llvm::is_contained(read, value) || !value.getDefiningOp() ||
        value.getParentBlock() == copy->getBlock())
      continue;
    OpBuilder before(copy);
    auto type = cast<RankedTensorType>(value.getType());
    operand.set(tv::ConstantOp::create(
        before, copy->getLoc(), type,
        cast<ElementsAttr>(before.getZeroAttr(
            RankedTensorType::get({}, type.getElementType()))),
        Value()));
  }
  return copy;
}

plan::GroupOp tessera::makeGroup(OpBuilder &builder, ArrayRef<Operation *> ops,
                                 ArrayRef<Value> outputs, const Grouping &of) {
  llvm::SetVector<Operation *> free = getFreeOps(ops, of), all = free;
  all.insert_range(ops);
  SmallVector<Operation *> ordered = all.takeVector();
  llvm::sort(ordered, [&](Operation *a, Operation *b) {
    return of.placeOf.lookup(a) < of.placeOf.lookup(b);
  });
  auto group = plan::GroupOp::create(
      builder, ops.back()->getLoc(), ValueRange(outputs).getTypes(),
      ArrayAttr(), DictionaryAttr(), plan::EpilogueAttr(), plan::SummedAttr());
  Block &block = group.getBody().emplaceBlock();
  OpBuilder inner = OpBuilder::atBlockEnd(&block);
  IRMapping inside;
  auto readInside = [&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      operand.set(inside.lookupOrDefault(operand.get()));
  };
  for (Operation *op : ordered) {
    if (free.contains(op)) {
      copyFree(inner, op, inside);
      continue;
    }
    op->moveBefore(&block, block.end());
    if (of.loops.contains(op))
      readInside(op);
    for (Region &region : op->getRegions())
      region.walk(readInside);
    for (OpOperand &operand : op->getOpOperands())
      if (Operation *source = operand.get().getDefiningOp();
          !isRead(operand) && source && isFree(source))
        operand.set(OpBuilder(op).clone(*source)->getResult(0));
  }
  auto yielded = llvm::map_to_vector(
      outputs, [&](Value output) { return inside.lookupOrDefault(output); });
  plan::YieldOp::create(inner, group.getLoc(), yielded);
  for (auto [output, result] : llvm::zip_equal(outputs, group.getResults())) {
    const bool isCopied = free.contains(output.getDefiningOp());
    Value(output).replaceUsesWithIf(result, [&](OpOperand &use) {
      Operation *user = use.getOwner();
      if (isCopied) // is computed again elsewhere
        return user->getBlock() == group->getBlock() && !isFree(user) &&
               !of.loops.contains(user);
      return !group->isAncestor(user);
    });
  }
  return group;
}

/// A step's ops as a group.
static void group(const PlanStep &step, const Grouping &of,
                  OpBuilder &builder) {
  llvm::SetVector<Operation *> ops;
  if (step.fused)
    ops = step.fused->ops;
  else
    ops.insert(step.op);
  for (const plan::Fusion &fusion : step.joined)
    ops.insert(fusion.op);
  auto group =
      makeGroup(builder, ops.getArrayRef(), step.outputs.getArrayRef(), of);
  if (!step.product)
    return;
  const auto &[names, without] = step.product->variants;
  if (!names.empty())
    group.setVariantsAttr(builder.getStrArrayAttr(names));
  if (without)
    group.setWithoutAttr(without);
  for (const plan::Fusion &fusion : step.joined) {
    if (fusion.epilogue)
      group.setEpilogue(*fusion.epilogue);
    if (fusion.summed)
      group.setSummed(*fusion.summed);
  }
}

namespace {
struct GroupOps : public tessera::impl::GroupOpsBase<GroupOps> {
  using GroupOpsBase::GroupOpsBase;

  void runOnContract() override {
    func::FuncOp main = getOperation();
    SmallVector<std::string> variants(matmul.begin(), matmul.end());
    if (failed(verify(main)))
      return signalPassFailure();
    FailureOr<Grouping> grouping = groupSteps(main, variants);
    if (failed(grouping))
      return signalPassFailure();
    // All take their places at the end; what stays before them runs in groups,
    // or not at all.
    Operation *end = main.getBody().front().getTerminator();
    OpBuilder builder(end);
    Block::iterator placed(end);
    for (const PlanStep &step : grouping->steps) {
      if (step.op == end || (isGroup(step) && step.outputs.empty()))
        continue;
      if (isGroup(step))
        group(step, *grouping, builder);
      else
        step.op->moveBefore(end);
      if (placed == Block::iterator(end))
        placed = std::prev(placed);
    }
    Block &block = main.getBody().front();
    while (placed != block.begin())
      std::prev(placed)->erase();
  }
};
} // namespace
