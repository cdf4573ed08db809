//===- MoveBetweenDevices.cpp - arguments and results on others' devices --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of arguments and results alone can anybody see on which device a block is, so
// only these are moved, last of all that is decided. What moves next to it is
// one exchange with it if that takes less time.
//
//===----------------------------------------------------------------------===//

#include "Place/Moves.h"
#include "Place/Passes.h"
#include "Place/Placement.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_MOVEBETWEENDEVICESPASS
#include "Place/Passes.h.inc"
} // namespace tessera::tv

/// `type` on the devices that `user`, of an argument or result, names; nothing
/// where it lies so.
static RankedTensorType getElsewhere(Type type, ViewAttr user) {
  ViewAttr view = getView(type);
  if (!view || !user || view.getMesh() == user.getMesh() ||
      layout::liesAlike(view.getView(), user.getLayoutMesh(),
                        view.getLayoutMesh()))
    return {};
  return withEncoding(
      cast<RankedTensorType>(type),
      ViewAttr::get(type.getContext(), user.getMesh(), view.getView()));
}

static ReshardOp createMove(OpBuilder &builder, Location loc, Value value,
                            Type type, bool isWritten) {
  auto move = ReshardOp::create(builder, loc, TypeRange{type},
                                ValueRange{value}, StepAttr());
  if (isWritten)
    move->setAttr(kUserMoveAttr, builder.getUnitAttr());
  return move;
}

/// The seconds of a move of `value`, which lies as `from`.
static Result<double> getSeconds(Value value, ViewAttr from, ViewAttr to,
                                 Moves &moves) {
  if (from.getMesh() != to.getMesh()) {
    Result<layout::Plan> plan = moves.planBetween(value, from, to);
    return plan ? Result<double>(plan->chosen.cost.seconds) : plan.error();
  }
  Result<const layout::Plan *> plan =
      moves.plan(value, placesOf(from.getView()), placesOf(to.getView()),
                 from.getLayoutMesh());
  return plan ? Result<double>((*plan)->chosen.cost.seconds) : plan.error();
}

/// One exchange in place of a move and the next, of which one changes the
/// devices and the other the view, if it takes less time.
static void tryJoin(ReshardOp first, Moves &moves) {
  Value between = first.getResult(0);
  if (first.getInputs().size() != 1 || !between.hasOneUse())
    return;
  auto second = dyn_cast<ReshardOp>(*between.user_begin());
  if (!second || second.getInputs().size() != 1 || second->hasAttr(kStepAttr) ||
      first->hasAttr(kStepAttr))
    return;
  Value value = first.getInputs()[0];
  ViewAttr from = getView(value), via = getView(between),
           to = getView(second.getResult(0));
  if ((from.getMesh() == via.getMesh()) == (via.getMesh() == to.getMesh()) ||
      from.getView().partial != to.getView().partial)
    return;
  Result<double> one = getSeconds(value, from, to, moves),
                 some = getSeconds(value, from, via, moves),
                 rest = getSeconds(value, via, to, moves);
  if (!one || !some || !rest || !layout::isLess(*one, *some + *rest))
    return;
  second->setOperand(0, value);
  if (!first->hasAttr(kUserMoveAttr))
    second->removeAttr(kUserMoveAttr);
  first.erase();
}

namespace {
struct MoveBetweenDevices
    : tv::impl::MoveBetweenDevicesPassBase<MoveBetweenDevices> {
  void runOnContract() override;
};
} // namespace

void MoveBetweenDevices::runOnContract() {
  func::FuncOp function = getOperation();
  Block &body = function.getBody().front();
  FailureOr<Moves> moves = Moves::get(function);
  if (failed(moves))
    return signalPassFailure();
  OpBuilder builder(&body, body.begin());
  // What is a value on other devices.
  llvm::DenseMap<std::pair<Value, Type>, Value> elsewhereOf;
  for (BlockArgument argument : body.getArguments()) {
    const unsigned number = argument.getArgNumber();
    const Type type = argument.getType();
    RankedTensorType elsewhere = getElsewhere(
        type, function.getArgAttrOfType<ViewAttr>(number, kUserViewAttr));
    bool isWritten = bool(function.removeArgAttr(number, kUserMoveAttr));
    if (!elsewhere)
      continue;
    argument.setType(elsewhere);
    if (argument.use_empty())
      continue;
    ReshardOp move =
        createMove(builder, argument.getLoc(), argument, type, isWritten);
    argument.replaceAllUsesExcept(move.getResult(0), move);
    elsewhereOf[{move.getResult(0), elsewhere}] = argument;
  }
  Operation *end = body.getTerminator();
  builder.setInsertionPoint(end);
  for (OpOperand &operand : end->getOpOperands()) {
    const unsigned number = operand.getOperandNumber();
    RankedTensorType elsewhere = getElsewhere(
        operand.get().getType(),
        function.getResultAttrOfType<ViewAttr>(number, kUserViewAttr));
    bool isWritten = bool(function.removeResultAttr(
        number, builder.getStringAttr(kUserMoveAttr)));
    if (!elsewhere)
      continue;
    // (An argument that lies so is returned as it is.)
    Value &moved = elsewhereOf[{operand.get(), elsewhere}];
    if (!moved)
      moved = createMove(builder, end->getLoc(), operand.get(), elsewhere,
                         isWritten)
                  .getResult(0);
    operand.set(moved);
  }
  for (ReshardOp move : llvm::to_vector(body.getOps<ReshardOp>()))
    if (move.use_empty() && isa<BlockArgument>(move.getInputs()[0]))
      move.erase();
    else
      tryJoin(move, *moves);
  function.setFunctionType(FunctionType::get(
      &getContext(), body.getArgumentTypes(), end->getOperandTypes()));
}
