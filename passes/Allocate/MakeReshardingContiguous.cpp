//===- MakeReshardingContiguous.cpp - an order for every value ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values that no collective asked for get their source's order, or the one that
// makes a reshape of them free, or row-major.
// Then each step is looked at: where the shard of an all-gather or
// reduce-scatter could not have the order of the whole, it is copied into that
// order; where a step that keeps elements in place in their buffer (all-reduce,
// permute, broadcast) has two orders, its operand is copied.
//
//===----------------------------------------------------------------------===//

#include "Allocate/Allocation.h"
#include "Allocate/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::View;

namespace tessera::tv {
#define GEN_PASS_DEF_MAKERESHARDINGCONTIGUOUSPASS
#include "Allocate/Passes.h.inc"
} // namespace tessera::tv

static Order orderOf(Value value) { return *getView(value).getView().alloc; }

/// The order of a value that has not been decided; that of its source is.
static Order chooseOrder(Value value) {
  if (std::optional<Order> fixed = getFixedOrder(value))
    return *fixed;
  std::optional<SharedMemory> shared = getSharedMemory(value);
  if (!shared)
    return getWantedOrder(value).value_or(getRowMajor(value));
  if (shared->dims.empty())
    return getRowMajor(value);
  Order above = orderOf(shared->source), order;
  for (int64_t dim : above)
    if (auto at = llvm::find(shared->dims, dim); at != shared->dims.end())
      order.push_back(at - shared->dims.begin());
  return order;
}

/// `value` in another order: a step that moves nothing.
static Value copyTo(OpBuilder &builder, Location loc, Value value,
                    const Order &order) {
  ViewAttr attr = getView(value);
  View view = attr.getView();
  view.alloc = order;
  auto plan = StepAttr::get(builder.getContext(), StepKind::Slice,
                            attr.getMesh(), {}, builder.getStringAttr(""));
  Type type = withEncoding(value.getType(), attr.with(std::move(view)));
  return ReshardOp::create(builder, loc, TypeRange{type}, ValueRange{value},
                           plan)
      .getResult(0);
}

namespace {
struct MakeReshardingContiguous
    : tv::impl::MakeReshardingContiguousPassBase<MakeReshardingContiguous> {
  void runOnContract() override;

private:
  void align(ReshardOp step);
  void copyResult(ReshardOp step, const Order &order);
};
} // namespace

/// The step writes `order`; a copy makes of it what it wrote before.
void MakeReshardingContiguous::copyResult(ReshardOp step, const Order &order) {
  Value result = step.getResult(0);
  Order needed = orderOf(result);
  setOrder(result, order);
  OpBuilder builder(step);
  builder.setInsertionPointAfter(step);
  Value copy = copyTo(builder, step.getLoc(), result, needed);
  result.replaceAllUsesExcept(copy, copy.getDefiningOp());
}

void MakeReshardingContiguous::align(ReshardOp step) {
  if (step.getInputs().size() != 1)
    return;
  Value from = step.getInputs()[0], to = step.getResult(0);
  OpBuilder builder(step);
  if (std::optional<Chunked> chunked = getChunked(step)) {
    bool inOrder = orderOf(chunked->whole) == chunked->order;
    // Out of order, the collective itself packs or unpacks the whole.
    if (!inOrder || orderOf(chunked->shard) == chunked->order)
      return;
    if (chunked->shard == to)
      return copyResult(step, chunked->order);
    step->setOperand(0, copyTo(builder, step.getLoc(), from, chunked->order));
    return;
  }
  StepKind kind = step.getPlanAttr().getKind();
  bool inPlace = kind == StepKind::AllReduce || kind == StepKind::Permute ||
                 kind == StepKind::Broadcast;
  if (!inPlace || orderOf(from).size() != orderOf(to).size() ||
      orderOf(from) == orderOf(to))
    return;
  step->setOperand(0, copyTo(builder, step.getLoc(), from, orderOf(to)));
}

void MakeReshardingContiguous::runOnContract() {
  func::FuncOp function = getOperation();
  llvm::SmallVector<ReshardOp> steps;
  for (Block &block : function.getBody()) {
    for (Value argument : block.getArguments())
      if (getView(argument))
        setOrder(argument, chooseOrder(argument));
    for (Operation &op : block) {
      for (Value result : op.getResults())
        if (getView(result))
          setOrder(result, chooseOrder(result));
      if (auto step = dyn_cast<ReshardOp>(op))
        steps.push_back(step);
    }
  }
  for (ReshardOp step : steps)
    align(step);
  Block &entry = function.getBody().front();
  function.setFunctionType(FunctionType::get(
      function.getContext(), entry.getArgumentTypes(),
      function.getBody().back().getTerminator()->getOperandTypes()));
}
