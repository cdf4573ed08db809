//===- ElideReshards.cpp - fewer and cheaper reshards ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Four rewrites until nothing changes, none of which takes more time:
//
//     merge       reshards that change nothing, or do what another does, vanish
//     shortcut    reshard(reshard(a)) -> reshard(a), where that is no dearer
//     than
//                 what it replaces: both if the middle has no other use
//     hoist       reshards of a, reshape(a) and transpose(a) become one of a,
//                 where each could as well be of a
//     reconsider  an op between reshards that only serve it is placed anew, now
//                 from the views before these reshards to the view after; or
//                 from before its operands' reshards that serve others too
//
// So a slice that is every use of an all-reduced value makes a reduce-scatter
// (shortcut), an activation that a product and its weight gradient need whole
// is gathered once (hoist), and a gather after a broadcast goes before it
// (reconsider). Each strictly lowers time or the number of reshards, so it
// ends.
//
// What the user wrote stays: the value lies as such a reshard says, and ops
// before and after it do not see through it. Only its own operand may be one
// that lies elsewhere.
//
//===----------------------------------------------------------------------===//

#include "Place/ChoosePlacement.h"
#include "Reshard/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::View;

namespace tessera::tv {
#define GEN_PASS_DEF_ELIDERESHARDSPASS
#include "Reshard/Passes.h.inc"
} // namespace tessera::tv

/// A reshard of one value, not planned yet; null for other ops.
static ReshardOp asMove(Operation *op) {
  auto reshard = dyn_cast_or_null<ReshardOp>(op);
  bool moves =
      reshard && reshard.getInputs().size() == 1 && !reshard.getPlanAttr();
  return moves ? reshard : ReshardOp();
}

/// Such a reshard that the user did not write.
static ReshardOp asImplicitMove(Operation *op) {
  ReshardOp move = asMove(op);
  return move && !move->hasAttr(kUserMoveAttr) ? move : ReshardOp();
}

/// The reshard that makes `value` for one use only.
static ReshardOp servingMove(Value value) {
  return value.hasOneUse() ? asImplicitMove(value.getDefiningOp())
                           : ReshardOp();
}

namespace {
class Elider {
public:
  Elider(func::FuncOp function, Moves &moves)
      : function(function), moves(moves), choices(moves) {}
  /// One round; sets `changed`.
  LogicalResult run(bool &changed);

private:
  /// A value, and the type that a reshard gives it.
  using Target = std::pair<Value, Type>;

  bool merge();
  LogicalResult shortcut(bool &changed);
  FailureOr<SmallVector<Target>> climb(ReshardOp move);
  LogicalResult hoist(bool &changed);
  LogicalResult reconsider(Operation *op, bool sharedMoves, bool &changed);
  FailureOr<double> secondsOf(ReshardOp op);
  FailureOr<double> secondsOf(Operation *op, Value value, const View &from,
                              const View &to);
  Value moveTo(OpBuilder &builder, Location loc, Value value, Type type);
  void sweep();

  func::FuncOp function;
  Moves &moves;
  Choices choices;
};
} // namespace

FailureOr<double> Elider::secondsOf(Operation *op, Value value,
                                    const View &from, const View &to) {
  Result<double> seconds =
      moves.seconds(value, from, to, getView(value).getLayoutMesh());
  if (!seconds)
    return op->emitError() << seconds.message();
  return *seconds;
}

FailureOr<double> Elider::secondsOf(ReshardOp op) {
  Value from = op.getInputs()[0];
  return secondsOf(op, from, placesOf(from), placesOf(op.getResult(0)));
}

bool Elider::merge() {
  bool changed = false;
  llvm::DenseMap<Target, Value> known;
  for (Block &block : function.getBody())
    for (Operation &op : llvm::make_early_inc_range(block)) {
      ReshardOp reshard = asMove(&op);
      if (!reshard)
        continue;
      Value from = reshard.getInputs()[0], to = reshard.getResult(0);
      const bool isWritten = reshard->hasAttr(kUserMoveAttr);
      Value same = isWritten ? to : from;
      if (from.getType() != to.getType())
        same = known.try_emplace({from, to.getType()}, to).first->second;
      if (same == to)
        continue;
      Operation *other = same.getDefiningOp();
      if (Attribute step = reshard->getAttr(kStepAttr)) {
        if (Attribute own = other->getAttr(kStepAttr); own && own != step)
          continue;
        other->setAttr(kStepAttr, step);
      }
      if (isWritten)
        other->setAttr(kUserMoveAttr, reshard->getAttr(kUserMoveAttr));
      to.replaceAllUsesWith(same);
      reshard.erase();
      changed = true;
    }
  return changed;
}

LogicalResult Elider::shortcut(bool &changed) {
  for (Block &block : function.getBody())
    for (Operation &op : block) {
      ReshardOp second = asMove(&op);
      ReshardOp first =
          second ? asImplicitMove(second.getInputs()[0].getDefiningOp())
                 : second;
      if (!first)
        continue;
      Value start = first.getInputs()[0], middle = first.getResult(0);
      FailureOr<double> direct = secondsOf(second, start, placesOf(start),
                                           placesOf(second.getResult(0)));
      FailureOr<double> last = secondsOf(second), before = secondsOf(first);
      if (failed(direct) || failed(last) || failed(before))
        return failure();
      bool dead = middle.hasOneUse();
      if (dead ? layout::isLess(*before + *last, *direct)
               : !layout::isLess(*direct, *last))
        continue;
      second->setOperand(0, start);
      changed = true;
    }
  return success();
}

Value Elider::moveTo(OpBuilder &builder, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return ReshardOp::create(builder, loc, TypeRange{type}, ValueRange{value},
                           StepAttr())
      .getResult(0);
}

/// What else would do for `move`: the reshard itself, then those of the values
/// that reshapes and transposes made its operand of, as far up as that takes no
/// more time.
FailureOr<SmallVector<Elider::Target>> Elider::climb(ReshardOp move) {
  SmallVector<Target> targets = {
      {move.getInputs()[0], move.getResult(0).getType()}};
  FailureOr<double> seconds = secondsOf(move);
  if (failed(seconds))
    return failure();
  if (*seconds == 0 || !asImplicitMove(move))
    return targets;
  while (Operation *op = targets.back().first.getDefiningOp()) {
    std::optional<View> view =
        getOperandView(op, placesOf(getView(targets.back().second).getView()));
    if (!view)
      break;
    Value operand = op->getOperand(0);
    FailureOr<double> above =
        secondsOf(move, operand, placesOf(operand), *view);
    if (failed(above))
      return failure();
    if (layout::isLess(*seconds, *above))
      break;
    seconds = above;
    targets.emplace_back(
        operand, withEncoding(operand.getType(), getView(operand).with(*view)));
  }
  return targets;
}

/// Each goes as far up as another could, and is merged with that one.
LogicalResult Elider::hoist(bool &changed) {
  SmallVector<std::pair<ReshardOp, SmallVector<Target>>> climbs;
  llvm::DenseMap<Target, int64_t> counts;
  for (Block &block : function.getBody())
    for (Operation &op : block)
      if (ReshardOp move = asMove(&op)) {
        FailureOr<SmallVector<Target>> targets = climb(move);
        if (failed(targets))
          return failure();
        for (const Target &target : *targets)
          ++counts[target];
        climbs.emplace_back(move, std::move(*targets));
      }
  for (auto &[move, targets] : climbs) {
    while (targets.size() > 1 && counts[targets.back()] < 2)
      targets.pop_back();
    if (targets.size() == 1)
      continue;
    OpBuilder builder(move);
    auto [source, type] = targets.pop_back_val();
    Value value = moveTo(builder, move.getLoc(), source, type);
    for (auto [made, type] : llvm::reverse(targets)) {
      Operation *op = builder.clone(*made.getDefiningOp());
      op->setOperand(0, value);
      value = op->getResult(0);
      value.setType(cast<RankedTensorType>(type));
      moves.noteCopy(value, made);
    }
    move.getResult(0).replaceAllUsesWith(value);
    move.erase();
    changed = true;
  }
  return success();
}

/// With `sharedMoves`, operands may be taken from before reshards that stay for
/// others.
LogicalResult Elider::reconsider(Operation *op, bool sharedMoves,
                                 bool &changed) {
  if (!isa<ShardingRuleOpInterface, ReinterpretOpInterface>(op) ||
      op->getNumResults() == 0)
    return success();
  auto moveBefore = [&](Value operand) {
    return sharedMoves ? asImplicitMove(operand.getDefiningOp())
                       : servingMove(operand);
  };
  bool anyMove = false, anyShared = false;
  for (Value operand : op->getOperands()) {
    anyMove |= bool(moveBefore(operand));
    anyShared |= moveBefore(operand) && !operand.hasOneUse();
  }
  if (sharedMoves && !anyShared)
    return success();
  auto moveAfter = [](Value result) {
    return result.hasOneUse() ? asImplicitMove(*result.user_begin())
                              : ReshardOp();
  };
  for (Value result : op->getResults())
    anyMove |= bool(moveAfter(result));
  if (!anyMove)
    return success();

  FailureOr<Placement> actual = getActualPlacement(op);
  if (failed(actual))
    return failure();
  double movesNow = 0;
  auto add = [&](ReshardOp move) -> LogicalResult {
    FailureOr<double> seconds = secondsOf(move);
    if (succeeded(seconds))
      movesNow += *seconds;
    return seconds;
  };
  for (auto [operand, view] :
       llvm::zip_equal(op->getOperands(), actual->operands))
    if (ReshardOp move = moveBefore(operand)) {
      view = placesOf(move.getInputs()[0]);
      if (operand.hasOneUse() && failed(add(move)))
        return failure();
    }
  for (auto [result, view] : llvm::zip_equal(op->getResults(), actual->results))
    if (ReshardOp move = moveAfter(result)) {
      view = placesOf(move.getResult(0));
      if (failed(add(move)))
        return failure();
    }
  if (movesNow == 0)
    return success();
  FailureOr<Choice> choice = choices.get(op, *actual);
  if (failed(choice))
    return failure();
  FailureOr<Placement> now = getActualPlacement(op);
  if (!layout::isLess(choice->cost.moves, movesNow) ||
      !layout::isLess(choice->cost.total(),
                      movesNow + getWork(op, *now, moves)))
    return success();

  changed = true;
  OpBuilder builder(op);
  for (auto [operand, view] :
       llvm::zip_equal(op->getOpOperands(), choice->placement.operands)) {
    Value value = operand.get();
    if (placesOf(value) == view)
      continue;
    if (ReshardOp move = moveBefore(value))
      value = move.getInputs()[0];
    if (placesOf(value) != view)
      value = moveTo(builder, op->getLoc(), value,
                     withEncoding(value.getType(), getView(value).with(view)));
    operand.set(value);
  }
  builder.setInsertionPointAfter(op);
  for (auto [result, view] :
       llvm::zip_equal(op->getResults(), choice->placement.results)) {
    if (placesOf(result) == view)
      continue;
    ReshardOp after = moveAfter(result);
    Value target = after ? after.getResult(0) : result;
    Type type = target.getType();
    result.setType(withEncoding(type, getView(result).with(view)));
    Value moved =
        placesOf(target) == view && target != result
            ? moveTo(builder, op->getLoc(), result, type)
            : ReshardOp::create(builder, op->getLoc(), TypeRange{type},
                                ValueRange{result}, StepAttr())
                  .getResult(0);
    if (after)
      target.replaceAllUsesWith(moved);
    else
      result.replaceAllUsesExcept(moved, moved.getDefiningOp());
  }
  return success();
}

/// Erases reshards without use, and what only they read.
void Elider::sweep() {
  for (Block &block : function.getBody())
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (op.use_empty() && (isa<ReshardOp>(op) || givesSameElements(&op)))
        op.erase();
}

LogicalResult Elider::run(bool &changed) {
  changed = merge();
  if (failed(shortcut(changed)))
    return failure();
  sweep();
  if (failed(hoist(changed)))
    return failure();
  sweep();
  for (Block &block : function.getBody())
    for (Operation &op : llvm::make_early_inc_range(block))
      if (failed(reconsider(&op, /*sharedMoves=*/false, changed)) ||
          failed(reconsider(&op, /*sharedMoves=*/true, changed)))
        return failure();
  sweep();
  return success();
}

namespace {
struct ElideReshards : tv::impl::ElideReshardsPassBase<ElideReshards> {
  void runOnContract() override {
    FailureOr<Moves> moves = Moves::get(getOperation());
    if (failed(moves))
      return signalPassFailure();
    Elider elider(getOperation(), *moves);
    for (bool changed = true; changed;)
      if (failed(elider.run(changed)))
        return signalPassFailure();
  }
};
} // namespace
