//===- ElideReshards.cpp - fewer and cheaper reshards ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Five rewrites until nothing changes, none of which takes more time:
//
//     merge       reshards that change nothing, or do what another does, vanish
//     shortcut    reshard(reshard(a)) -> reshard(a), where that is no dearer
//                 than what it replaces: both if the middle has no other use
//     share       a reshard starts where another of its value ends, and that
//                 goes before it, where both take less time so
//     hoist       reshards of a, reshape(a), transpose(a) and exp(a) become one
//                 of a, where that with the more work takes less time
//     reconsider  an op between reshards that only serve it is placed anew, now
//                 from the views before these reshards to the view after; or
//                 from before its operands' reshards that serve others too
//
// So a slice that is every use of an all-reduced value makes a reduce-scatter
// (shortcut), a sum of which one use is whole and one a part is made whole once
// (share), an activation that a product and its weight gradient need whole is
// gathered once (hoist), and a gather after a broadcast goes before it
// (reconsider). Each lowers time, as it counts it, or the number of
// reshards; as some count moves one by one and some together, rounds have a
// limit.
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
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::Price;
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
  Elider(func::FuncOp function, Moves &moves, bool explain)
      : function(function), moves(moves), choices(moves), explain(explain) {}
  /// One round; sets `changed`.
  LogicalResult run(bool &changed);

private:
  /// A value, and the type that a reshard gives it.
  using Target = std::pair<Value, Type>;
  /// What else would do for a move, and what that takes: the move of the
  /// target, and the more work of the ops that then come after it.
  struct Climb {
    Target target;
    Price price;
    double work = 0;
  };
  using Climbs = SmallVector<Climb, 1>;

  bool merge();
  LogicalResult shortcut(bool &changed);
  LogicalResult share(bool &changed);
  FailureOr<Climbs> climb(ReshardOp move);
  void hoist(ReshardOp move, ArrayRef<Climb> climbs);
  LogicalResult hoist(bool &changed);
  LogicalResult reconsider(Operation *op, bool sharedMoves, bool &changed);
  FailureOr<Price> priceOf(ReshardOp op);
  FailureOr<Price> priceOf(Operation *op, Value value, const View &from,
                           const View &to);
  /// Says, where asked, what `op` became and what that costs.
  void say(Operation *op, const Twine &what, const Price &chosen,
           const Price &otherwise);
  Value moveTo(OpBuilder &builder, Location loc, Value value, Type type);
  void sweep();

  func::FuncOp function;
  Moves &moves;
  Choices choices;
  bool explain;
};
} // namespace

FailureOr<Price> Elider::priceOf(Operation *op, Value value, const View &from,
                                 const View &to) {
  Result<Price> price =
      moves.price(value, from, to, getView(value).getLayoutMesh());
  if (!price)
    return op->emitError() << price.message();
  return *price;
}

FailureOr<Price> Elider::priceOf(ReshardOp op) {
  Value from = op.getInputs()[0];
  return priceOf(op, from, placesOf(from), placesOf(op.getResult(0)));
}

static std::string textOf(const View &view, Value value) {
  return layout::toString(view, getView(value).getLayoutMesh());
}
static std::string textOf(Value value) {
  return textOf(placesOf(value), value);
}

void Elider::say(Operation *op, const Twine &what, const Price &chosen,
                 const Price &otherwise) {
  if (explain)
    emitRemark(op->getLoc()) << what << layout::describe(chosen, otherwise);
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
      FailureOr<Price> direct = priceOf(second, start, placesOf(start),
                                        placesOf(second.getResult(0)));
      FailureOr<Price> now = priceOf(second), before = priceOf(first);
      if (failed(direct) || failed(now) || failed(before))
        return failure();
      bool dead = middle.hasOneUse();
      if (dead)
        *now += *before;
      if (dead ? layout::isLess(now->seconds, direct->seconds)
               : !layout::isLess(direct->seconds, now->seconds))
        continue;
      say(second,
          textOf(start) + " to " + textOf(second.getResult(0)) +
              " is one move, not by " + textOf(middle),
          *direct, *now);
      second->setOperand(0, start);
      changed = true;
    }
  return success();
}

/// The reshards of `value` that are used and may start or end elsewhere.
static SmallVector<ReshardOp> freeMovesOf(Value value) {
  SmallVector<ReshardOp> found;
  for (Operation *user : value.getUsers())
    if (ReshardOp move = asImplicitMove(user);
        move && !move->hasAttr(kStepAttr) && !move->use_empty())
      found.push_back(move);
  return found;
}

/// A reshard of a value starts where another of that value ends. So does one
/// that stands before such another, if both take less time then: a sum that is
/// made whole for one use is cut for the next, for nothing.
LogicalResult Elider::share(bool &changed) {
  SmallVector<Value> values(function.getArguments());
  for (Block &block : function.getBody())
    for (Operation &op : block)
      llvm::append_range(values, op.getResults());
  for (Value value : values) {
    for (ReshardOp move : freeMovesOf(value)) {
      const View from = placesOf(value);
      const View to = placesOf(move.getResult(0));
      // What the move and another take now, and what in the other order.
      ReshardOp best;
      Price now, least;
      double gain = 0;
      auto consider = [&](ReshardOp other, Price sum) -> LogicalResult {
        const View end = placesOf(other.getResult(0));
        FailureOr<Price> first = priceOf(other, value, from, end);
        FailureOr<Price> second = priceOf(move, value, end, to);
        if (failed(first) || failed(second))
          return failure();
        *first += *second;
        if (!layout::isLess(first->seconds, sum.seconds) ||
            sum.seconds - first->seconds <= gain)
          return success();
        gain = sum.seconds - first->seconds;
        best = other;
        now = sum;
        least = *first;
        return success();
      };
      FailureOr<Price> own = priceOf(move);
      if (failed(own))
        return failure();
      for (Value start : {value, move.getResult(0)})
        for (ReshardOp other : freeMovesOf(start)) {
          FailureOr<Price> its = priceOf(other);
          if (failed(its))
            return failure();
          *its += *own;
          if (other != move && failed(consider(other, *its)))
            return failure();
        }
      if (!best)
        continue;
      say(move,
          textOf(value) + " is " + textOf(best.getResult(0)) + " first, then " +
              textOf(move.getResult(0)),
          least, now);
      if (!best->isBeforeInBlock(move))
        best->moveBefore(move);
      best->setOperand(0, value);
      move->setOperand(0, best.getResult(0));
      changed = true;
    }
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

/// Whether `op` may as well come after a move of its one operand.
static bool isPassed(Operation *op) {
  return givesSameElements(op) ||
         (op->getNumOperands() == 1 && op->hasTrait<OpTrait::Pointwise>() &&
          isMemoryEffectFree(op));
}

/// What else would do for `move`: the reshard itself, then those of the values
/// that reshapes, transposes and ops of one operand made its operand of.
FailureOr<Elider::Climbs> Elider::climb(ReshardOp move) {
  FailureOr<Price> price = priceOf(move);
  if (failed(price))
    return failure();
  Climbs climbs = {
      {{move.getInputs()[0], move.getResult(0).getType()}, *price}};
  if (price->seconds == 0 || !asImplicitMove(move))
    return climbs;
  constexpr int kMaxComputing = 8; // so that long chains are not run through
  bool alone = true;
  int computing = 0;
  while (Operation *op = climbs.back().target.first.getDefiningOp()) {
    View below = placesOf(getView(climbs.back().target.second).getView());
    computing += !givesSameElements(op);
    if (!isPassed(op) || computing > kMaxComputing)
      break;
    std::optional<View> view = getOperandView(op, below);
    if (!view)
      break;
    Value operand = op->getOperand(0);
    FailureOr<Price> above = priceOf(move, operand, placesOf(operand), *view);
    if (failed(above))
      return failure();
    double work = climbs.back().work;
    alone &= op->hasOneUse();
    if (!givesSameElements(op)) {
      work += getWork(op, {{*view}, {below}}, moves);
      if (alone)
        work -= getWork(op, *getActualPlacement(op), moves);
    }
    climbs.push_back({{operand, withEncoding(operand.getType(),
                                             getView(operand).with(*view))},
                      *above,
                      work});
  }
  return climbs;
}

/// The last of `climbs` in place of `move`, which is left without uses.
void Elider::hoist(ReshardOp move, ArrayRef<Climb> climbs) {
  OpBuilder builder(move);
  auto [source, type] = climbs.back().target;
  Value value = moveTo(builder, move.getLoc(), source, type);
  for (const Climb &below : llvm::reverse(climbs.drop_back())) {
    auto [made, type] = below.target;
    Operation *op = builder.clone(*made.getDefiningOp());
    op->setOperand(0, value);
    value = op->getResult(0);
    value.setType(cast<RankedTensorType>(type));
    moves.noteCopy(value, made);
  }
  move.getResult(0).replaceAllUsesWith(value);
}

/// Moves that may become one do so where that takes less time, those first that
/// save most. (They are the same then, and merged.)
LogicalResult Elider::hoist(bool &changed) {
  SmallVector<std::pair<ReshardOp, Climbs>> all;
  struct Shared {
    SmallVector<std::pair<size_t, size_t>> moves; ///< and how far each climbs
    double gain = 0;
  };
  llvm::MapVector<Target, Shared> shared;
  for (Block &block : function.getBody())
    for (Operation &op : block)
      if (ReshardOp move = asMove(&op)) {
        FailureOr<Climbs> climbs = climb(move);
        if (failed(climbs))
          return failure();
        for (auto [level, climb] : llvm::enumerate(*climbs))
          shared[climb.target].moves.emplace_back(all.size(), level);
        all.emplace_back(move, std::move(*climbs));
      }
  // The time of all moves as they are, and as one.
  auto priceOf = [&](const Shared &group) {
    std::pair<Price, Price> prices;
    for (auto [number, level] : group.moves) {
      const Climbs &climbs = all[number].second;
      prices.first += climbs[0].price;
      prices.second.seconds += climbs[level].work;
    }
    auto [number, level] = group.moves[0];
    prices.second += all[number].second[level].price;
    return prices;
  };
  SmallVector<Shared *> groups;
  for (auto &[target, group] : shared)
    if (group.moves.size() > 1) {
      auto [now, one] = priceOf(group);
      group.gain = now.seconds - one.seconds;
      groups.push_back(&group);
    }
  llvm::stable_sort(groups, [](auto *a, auto *b) { return a->gain > b->gain; });
  SmallVector<bool> done(all.size(), false);
  for (Shared *group : groups) {
    llvm::erase_if(group->moves, [&](auto move) { return done[move.first]; });
    if (group->moves.size() < 2 ||
        llvm::all_of(group->moves, [](auto move) { return move.second == 0; }))
      continue;
    auto [first, level] = group->moves[0];
    auto [source, type] = all[first].second[level].target;
    auto [now, one] = priceOf(*group);
    // What a hoisted move made is no source any more.
    if (source.use_empty() || !layout::isLess(one.seconds, now.seconds))
      continue;
    say(all[first].first,
        Twine(group->moves.size()) + " moves are one, of " + textOf(source) +
            " to " + textOf(placesOf(getView(type).getView()), source),
        one, now);
    for (auto [number, level] : group->moves) {
      done[number] = true;
      if (level == 0)
        continue;
      auto &[move, climbs] = all[number];
      hoist(move, ArrayRef(climbs).take_front(level + 1));
      changed = true;
    }
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
  std::vector<OperandMove> own;
  for (auto [operand, view] :
       llvm::zip_equal(op->getOperands(), actual->operands))
    if (ReshardOp move = moveBefore(operand)) {
      view = placesOf(move.getInputs()[0]);
      if (operand.hasOneUse())
        own.push_back({move.getInputs()[0], view, placesOf(operand)});
    }
  Result<Price> price =
      moves.price(own, getView(op->getResult(0)).getLayoutMesh(), HUGE_VAL);
  if (!price)
    return op->emitError() << price.message();
  Price now = *price;
  for (auto [result, view] : llvm::zip_equal(op->getResults(), actual->results))
    if (ReshardOp move = moveAfter(result)) {
      view = placesOf(move.getResult(0));
      FailureOr<Price> price = priceOf(move);
      if (failed(price))
        return failure();
      now += *price;
    }
  const double movesNow = now.seconds;
  if (movesNow == 0)
    return success();
  FailureOr<Choice> choice = choices.get(op, *actual);
  if (failed(choice))
    return failure();
  now.seconds += getWork(op, *getActualPlacement(op), moves);
  if (!layout::isLess(choice->cost.moves, movesNow) ||
      !layout::isLess(choice->cost.total(), now.seconds))
    return success();

  changed = true;
  if (explain) {
    SmallVector<std::string> views;
    for (auto [value, view] :
         llvm::zip_equal(op->getOperands(), choice->placement.operands))
      views.push_back(textOf(view, value));
    say(op,
        "'" + op->getName().getStringRef() + "' has operands that lie as " +
            llvm::join(views, ", "),
        {choice->cost.total(), choice->cost.bytes}, now);
  }
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
      if (op.use_empty() && (isa<ReshardOp>(op) || isPassed(&op)))
        op.erase();
}

LogicalResult Elider::run(bool &changed) {
  changed = merge();
  if (failed(shortcut(changed)) || failed(share(changed)))
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
  using ElideReshardsPassBase::ElideReshardsPassBase;
  void runOnContract() override {
    FailureOr<Moves> moves = Moves::get(getOperation());
    if (failed(moves))
      return signalPassFailure();
    Elider elider(getOperation(), *moves, explain);
    // (Prices of single moves and of those that go together may disagree.)
    bool changed = true;
    for (int round = 0; changed && round < 100; ++round)
      if (failed(elider.run(changed)))
        return signalPassFailure();
  }
};
} // namespace
