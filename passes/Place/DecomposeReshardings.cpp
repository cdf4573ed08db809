//===- DecomposeReshardings.cpp - ops that move nothing, and reshards -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op whose views disagree gets the cheapest placement (ChoosePlacement.h),
// and a tv.reshard for each operand and result that lies otherwise. Last,
// partial values are carried through ops where that saves time
// (DelayPartials.h).
//
//===----------------------------------------------------------------------===//

#include "Place/ChoosePlacement.h"
#include "Place/DelayPartials.h"
#include "Place/Passes.h"
#include "Place/Remarks.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::View;

namespace tessera::tv {
#define GEN_PASS_DEF_DECOMPOSERESHARDINGSPASS
#include "Place/Passes.h.inc"
} // namespace tessera::tv

namespace {
class Decomposer {
public:
  Decomposer(Choices &choices) : choices(choices) {}
  LogicalResult decompose(Operation *op);

private:
  void makeCapturesWhole(Operation *op);
  void apply(Operation *op, const Placement &placement);

  Choices &choices;
  LocalChecks checks;
};
} // namespace

/// What a region reads of tensors outside must be whole on every device.
void Decomposer::makeCapturesWhole(Operation *op) {
  for (Region &region : op->getRegions())
    for (Operation &inner : region.getOps())
      for (OpOperand &operand : inner.getOpOperands()) {
        ViewAttr view = getView(operand.get());
        if (!view || layout::axesOf(view.getView()).empty())
          continue;
        auto type = cast<RankedTensorType>(operand.get().getType());
        View whole = layout::canonicalize(
            View::replicated(type.getRank()),
            layout::Shape(type.getShape().begin(), type.getShape().end()),
            view.getLayoutMesh());
        OpBuilder builder(op);
        operand.set(ReshardOp::create(builder, inner.getLoc(),
                                      TypeRange{withEncoding(
                                          type, view.with(std::move(whole)))},
                                      ValueRange{operand.get()}, StepAttr())
                        .getResult(0));
      }
}

void Decomposer::apply(Operation *op, const Placement &placement) {
  OpBuilder builder(op);
  auto isAt = [](Value value, const View &view) {
    return placesOf(getView(value).getView()) == view;
  };
  auto move = [&](Value value, Type type) {
    return ReshardOp::create(builder, op->getLoc(), TypeRange{type},
                             ValueRange{value}, StepAttr())
        .getResult(0);
  };
  for (auto [operand, view] :
       llvm::zip_equal(op->getOpOperands(), placement.operands)) {
    Value value = operand.get();
    if (!isAt(value, view))
      operand.set(move(
          value, withEncoding(value.getType(), getView(value).with(view))));
  }
  builder.setInsertionPointAfter(op);
  for (auto [result, view] :
       llvm::zip_equal(op->getResults(), placement.results)) {
    if (isAt(result, view))
      continue;
    Type decided = result.getType();
    result.setType(withEncoding(decided, getView(result).with(view)));
    Value moved = move(result, decided);
    result.replaceAllUsesExcept(moved, moved.getDefiningOp());
  }
}

LogicalResult Decomposer::decompose(Operation *op) {
  if (op->removeAttr(kLocalOpAttr)) {
    if (Status status = checks.check(op); !status)
      return op->emitError()
             << "is written for each device, but needs data of others: "
             << status.message()
             << "; a 'comm' op moves it before, or after, where a result is "
                "written as it lies";
    return success();
  }
  makeCapturesWhole(op);
  if (checks.check(op))
    return success();
  FailureOr<Placement> actual = getActualPlacement(op);
  if (failed(actual))
    return failure();

  FailureOr<Choice> choice = choices.get(op, *actual);
  if (failed(choice))
    return failure();
  apply(op, choice->placement);
  choices.remark(op, *choice);
  return success();
}

namespace {
struct DecomposeReshardings
    : tv::impl::DecomposeReshardingsPassBase<DecomposeReshardings> {
  using DecomposeReshardingsPassBase::DecomposeReshardingsPassBase;
  void runOnContract() override {
    FailureOr<Moves> moves = Moves::get(getOperation());
    if (failed(moves))
      return signalPassFailure();
    llvm::SmallVector<Operation *> ops;
    for (Block &block : getOperation().getBody())
      for (Operation &op : block)
        ops.push_back(&op);
    Choices choices(*moves, explain || explainLater);
    Decomposer decomposer(choices);
    for (Operation *op : ops)
      if (failed(decomposer.decompose(op)))
        return signalPassFailure();
    if (failed(delayPartials(getOperation(), *moves, choices)))
      return signalPassFailure();
    if (!explainLater)
      reportRemarks(getOperation());
  }
};
} // namespace
