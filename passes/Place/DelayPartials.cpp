//===- DelayPartials.cpp - combine partial values later -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In program order, each value with one use gets to know how it could lie if
// the reshards above it came later, through ops that may run on partial values
// without more moves. Where an op then needs less time for its operands, its
// result and the reshard of its result together, the ops above are rewritten:
//
//     a' = reshard a            a, b partial
//     b' = reshard b
//     s  = scale a'             later = {a: partial}, s: may be partial
//     t  = add s, b'            one reshard of t against two: rewrite
//
//===----------------------------------------------------------------------===//

#include "Place/DelayPartials.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::View;

namespace {
/// How a value lies if the reshards above it come later.
struct Later {
  View view;
  /// Of the reshards that vanish then.
  double seconds;
  /// For an op between: its views then. None for a reshard.
  std::optional<Placement> placement;
};

class Delayer {
public:
  Delayer(Moves &moves, Choices &choices) : moves(moves), choices(choices) {}
  LogicalResult visit(Operation *op);

private:
  LogicalResult visitReshard(ReshardOp op);
  /// Rewrites what is above `value`; gives the value that lies as `later`.
  Value commit(Value value);
  Value moveTo(OpBuilder &builder, Location loc, Value value, const View &view);
  void setOperands(Operation *op, const Placement &placement);

  Moves &moves;
  Choices &choices;
  llvm::DenseMap<Value, Later> laters;
};
} // namespace

/// A reshard of one value that the user did not write.
static ReshardOp asMove(Operation *op) {
  auto reshard = dyn_cast_or_null<ReshardOp>(op);
  bool moves = reshard && reshard.getInputs().size() == 1 &&
               !reshard->hasAttr(kUserMoveAttr);
  return moves ? reshard : ReshardOp();
}

LogicalResult Delayer::visitReshard(ReshardOp op) {
  Value from = op.getInputs()[0], to = op.getResult(0);
  View before = placesOf(from), after = placesOf(to);
  if (before.partial.empty() || before.partial == after.partial ||
      !to.hasOneUse())
    return success();
  Result<double> seconds =
      moves.seconds(from, before, after, getView(from).getLayoutMesh());
  if (!seconds)
    return op.emitError() << seconds.message();
  laters.try_emplace(to, Later{before, *seconds, std::nullopt});
  return success();
}

Value Delayer::moveTo(OpBuilder &builder, Location loc, Value value,
                      const View &view) {
  if (placesOf(value) == view)
    return value;
  Type type = withEncoding(value.getType(), getView(value).with(view));
  return ReshardOp::create(builder, loc, TypeRange{type}, ValueRange{value},
                           StepAttr())
      .getResult(0);
}

void Delayer::setOperands(Operation *op, const Placement &placement) {
  OpBuilder builder(op);
  for (auto [operand, view] :
       llvm::zip_equal(op->getOpOperands(), placement.operands)) {
    Value value = operand.get();
    if (placesOf(value) == view)
      continue;
    if (laters.contains(value))
      value = commit(value);
    operand.set(moveTo(builder, op->getLoc(), value, view));
  }
}

Value Delayer::commit(Value value) {
  Later later = laters.find(value)->second;
  Operation *op = value.getDefiningOp();
  if (!later.placement)
    return op->getOperand(0);
  setOperands(op, *later.placement);
  value.setType(withEncoding(value.getType(), getView(value).with(later.view)));
  return value;
}

LogicalResult Delayer::visit(Operation *op) {
  if (ReshardOp reshard = asMove(op))
    return visitReshard(reshard);
  bool anyLater = llvm::any_of(op->getOperands(),
                               [&](Value v) { return laters.contains(v); });
  if (!anyLater || op->getNumResults() != 1 ||
      !isa<ShardingRuleOpInterface, ReinterpretOpInterface>(op))
    return success();

  // As it is, and as it would be.
  FailureOr<Placement> actual = getActualPlacement(op);
  if (failed(actual))
    return failure();
  double workNow = getWork(op, *actual, moves);
  Value result = op->getResult(0);
  const layout::Mesh &mesh = getView(result).getLayoutMesh();
  double movesNow = 0;
  for (auto [value, view] :
       llvm::zip_equal(op->getOperands(), actual->operands))
    if (auto later = laters.find(value); later != laters.end()) {
      view = later->second.view;
      movesNow += later->second.seconds;
    }
  double movesAbove = movesNow;
  ReshardOp after =
      result.hasOneUse() ? asMove(*result.user_begin()) : ReshardOp();
  if (after) {
    View target = placesOf(after.getResult(0));
    Result<double> seconds =
        moves.seconds(result, actual->results[0], target, mesh);
    if (!seconds)
      return op->emitError() << seconds.message();
    movesNow += *seconds;
    actual->results[0] = target;
  }

  FailureOr<Choice> choice = choices.get(op, *actual);
  if (failed(choice))
    return failure();
  if (layout::isLess(choice->cost.moves, movesNow) &&
      layout::isLess(choice->cost.total(), movesNow + workNow)) {
    setOperands(op, choice->placement);
    const View &view = choice->placement.results[0];
    const bool isThere = placesOf(result) == view;
    Type decided = after ? after.getResult(0).getType() : result.getType();
    result.setType(withEncoding(result.getType(), getView(result).with(view)));
    choices.remark(op, *choice);
    if (isThere)
      return success();
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    auto reshard = ReshardOp::create(builder, op->getLoc(), TypeRange{decided},
                                     ValueRange{result}, StepAttr());
    Value moved = reshard.getResult(0);
    if (after)
      after.getResult(0).replaceAllUsesWith(moved);
    else
      result.replaceAllUsesExcept(moved, reshard);
    return visitReshard(reshard);
  }

  // Nothing gained here; perhaps further on.
  if (after || !result.hasOneUse())
    return success();
  std::optional<double> least; ///< of the moves below
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    if (!laters.contains(operand))
      continue;
    Result<Placement> passing = followOperands(op, *actual, number);
    if (!passing || passing->results[0].partial.empty())
      continue;
    double seconds = 0;
    for (auto [value, from, to] : llvm::zip_equal(
             op->getOperands(), actual->operands, passing->operands)) {
      Result<double> moved = moves.seconds(value, from, to, mesh);
      if (!moved)
        return op->emitError() << moved.message();
      seconds += *moved;
    }
    Result<double> below =
        moves.seconds(result, passing->results[0], actual->results[0], mesh);
    if (!below)
      return op->emitError() << below.message();
    if (seconds > 0 || layout::isLess(movesAbove, *below) ||
        (least && !layout::isLess(*below, *least)))
      continue;
    least = *below;
    View view = passing->results[0];
    laters.insert_or_assign(
        result, Later{std::move(view), movesAbove, std::move(*passing)});
  }
  return success();
}

LogicalResult tv::delayPartials(func::FuncOp function, Moves &moves,
                                Choices &choices) {
  Delayer delayer(moves, choices);
  for (Block &block : function.getBody())
    for (Operation &op : llvm::make_early_inc_range(block))
      if (failed(delayer.visit(&op)))
        return failure();
  // Reshards that were passed by.
  for (Block &block : function.getBody())
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isa<ReshardOp>(op) && op.use_empty())
        op.erase();
  return success();
}
