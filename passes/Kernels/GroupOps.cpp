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
#include "Kernels/Passes.h"
#include "Kernels/Windows.h"

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
