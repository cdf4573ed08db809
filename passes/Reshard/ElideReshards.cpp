//===- ElideReshards.cpp - fewer and cheaper reshards ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rewrites, each of which lowers the price of the function (Trial.h), until
// none does:
//
//     merge       reshards that change nothing, or do what another does, vanish
//     shortcut    reshard(reshard(a)) -> reshard(a)
//     reorder     reshard(reshard(a)) -> the other first, which others read too
//     join        reshards of a, reshape(a), transpose(a) and exp(a) start at
//                 the end of one of a, or are that one
//     reconsider  an op between reshards that only serve it is placed anew, now
//                 from the views before these reshards to the view after; or
//                 from before its operands' reshards that serve others too
//
// Where none does alone, shortcut and reconsider are tried with an op next to
// it that is placed anew.
//
// So a slice that is every use of an all-reduced value makes a reduce-scatter
// (shortcut), a sum of which one use is whole and one a part is made whole once
// (reorder, join), an activation that a product and its weight gradient need
// whole is gathered once, as is one of which pointwise ops make what lies in
// two ways (join), and a gather after a broadcast goes before it (reconsider).
//
// What the user wrote stays: the value lies as such a reshard says, and ops
// before and after it do not see through it. Only its own operand may be one
// that lies elsewhere.
//
//===----------------------------------------------------------------------===//

#include "Reshard/ElideReshards.h"
#include "Place/ChoosePlacement.h"
#include "Place/Remarks.h"
#include "Reshard/Passes.h"
#include "Reshard/Trial.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
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

/// A reshard that the user did not write.
static ReshardOp asImplicitMove(Operation *op) {
  ReshardOp move = asMove(op);
  return move && !move->hasAttr(kUserMoveAttr) ? move : ReshardOp();
}

/// Such a one that is not told its step either.
static ReshardOp asFreeMove(Operation *op) {
  ReshardOp move = asImplicitMove(op);
  return move && !move->hasAttr(kStepAttr) ? move : ReshardOp();
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
      : function(function), moves(moves), choices(moves), trial(moves),
        explain(explain) {}
  LogicalResult run();

private:
  /// A value, and the type that a reshard gives it.
  using Target = std::pair<Value, Type>;
  /// What else would do for a move: the move of the target, and the more work
  /// of the ops that then come after it.
  struct Climb {
    Target target;
    double seconds, work;
  };
  using Climbs = SmallVector<Climb, 1>;
  /// Moves that start where one ends.
  struct Hub {
    Target target;
    double gain;                                  ///< about
    SmallVector<std::pair<size_t, size_t>> moves; ///< and how far each climbs
  };

  /// What a change did to an op, or to the reshard that it made.
  struct Remark {
    Operation *op;
    std::string text;
    FunctionType types; ///< of its operands and results
  };
  using Remarks = SmallVector<Remark, 1>;

  void merge(Operation *op, llvm::DenseMap<Target, Value> &known);
  LogicalResult shortcut(Operation *op);
  void reorder(Operation *op);
  Climbs climb(ReshardOp move);
  void findHubs(Value source, ArrayRef<std::pair<size_t, size_t>> moves,
                ArrayRef<std::pair<ReshardOp, Climbs>> all,
                std::vector<Hub> &hubs);
  void join(const Hub &hub, MutableArrayRef<std::pair<ReshardOp, Climbs>> all);
  void join();
  FailureOr<bool> place(Operation *op, bool sharedMoves, Remarks &remarks);
  LogicalResult reconsider(Operation *op, bool sharedMoves);
  /// Keeps a change of `op` if that is less; `inPairs` with one of the ops
  /// around it, which is then placed anew. `change` says what it does.
  LogicalResult
  attempt(Operation *op, llvm::function_ref<FailureOr<bool>(Remarks &)> change,
          llvm::function_ref<llvm::SetVector<Operation *>()> around);

  SmallVector<Operation *> getOps();
  std::optional<double> secondsOf(Value value, const View &from,
                                  const View &to);
  void remark(Remarks &remarks, Operation *op, std::string text);
  /// Whether the trial is kept; leaves the remarks at their ops.
  bool keep(ArrayRef<Remark> remarks);

  func::FuncOp function;
  Moves &moves;
  Choices choices;
  Trial trial;
  bool explain;
  bool changed = false, inPairs = false;
};
} // namespace

static std::string textOf(const View &view, Value value) {
  return layout::toString(view, getView(value).getLayoutMesh());
}
static std::string textOf(Value value) {
  return textOf(placesOf(value), value);
}

/// Trials take ops out: those are in no block.
SmallVector<Operation *> Elider::getOps() {
  SmallVector<Operation *> ops;
  for (Block &block : function.getBody())
    for (Operation &op : block)
      ops.push_back(&op);
  return ops;
}

/// Nothing if there is no plan.
std::optional<double> Elider::secondsOf(Value value, const View &from,
                                        const View &to) {
  Result<double> seconds =
      moves.seconds(value, from, to, getView(value).getLayoutMesh());
  return seconds ? std::optional(*seconds) : std::nullopt;
}

/// Of what `op` is now; null for what is no op.
void Elider::remark(Remarks &remarks, Operation *op, std::string text) {
  if (explain && op)
    remarks.push_back({op, std::move(text), typesOf(op)});
}

bool Elider::keep(ArrayRef<Remark> remarks) {
  std::optional<Trial::Outcome> outcome = trial.keepIfLess();
  changed |= outcome.has_value();
  if (!outcome)
    return false;
  for (auto &[op, text, types] : remarks)
    leaveRemark(op, text + layout::describe(outcome->after, outcome->before),
                types);
  return true;
}

void Elider::merge(Operation *op, llvm::DenseMap<Target, Value> &known) {
  ReshardOp move = asMove(op);
  if (!move)
    return;
  Value from = move.getInputs()[0], to = move.getResult(0);
  const bool isWritten = move->hasAttr(kUserMoveAttr);
  Value same = from;
  if (from.getType() != to.getType())
    same = known.try_emplace({from, to.getType()}, to).first->second;
  else if (isWritten)
    return;
  if (same == to)
    return;
  Operation *other = same == from ? nullptr : same.getDefiningOp();
  Attribute step = move->getAttr(kStepAttr);
  if (other && step && other->hasAttr(kStepAttr) &&
      other->getAttr(kStepAttr) != step)
    return;
  trial.replace(to, same);
  if (!trial.keepIfLess())
    return;
  changed = true;
  if (other && step)
    other->setAttr(kStepAttr, step);
  if (other && isWritten)
    other->setAttr(kUserMoveAttr, move->getAttr(kUserMoveAttr));
}

LogicalResult Elider::shortcut(Operation *op) {
  ReshardOp second = asMove(op);
  ReshardOp first =
      second ? asImplicitMove(second.getInputs()[0].getDefiningOp()) : second;
  if (!first)
    return success();
  auto change = [&](Remarks &remarks) {
    Value start = first.getInputs()[0], end = second.getResult(0);
    std::string what;
    if (explain)
      what = textOf(start) + " to " + textOf(end) + " is one move, not by " +
             textOf(first.getResult(0));
    Value made = end;
    if (asFreeMove(second)) {
      made = trial.moveTo(second, second.getLoc(), start, end.getType());
      trial.replace(end, made);
    } else {
      trial.setOperand(second->getOpOperand(0), start);
    }
    remark(remarks, made.getDefiningOp(), std::move(what));
    return true;
  };
  llvm::SetVector<Operation *> around;
  if (Operation *maker = first.getInputs()[0].getDefiningOp())
    around.insert(maker);
  return attempt(second, change, [&] { return around; });
}

/// A sum of which a part becomes whole is made whole, and cut for nothing.
void Elider::reorder(Operation *op) {
  ReshardOp first = asFreeMove(op);
  if (!first)
    return;
  Value value = first.getInputs()[0], middle = first.getResult(0);
  SmallVector<ReshardOp> seconds;
  for (Operation *user : middle.getUsers())
    if (ReshardOp second = asFreeMove(user))
      seconds.push_back(second);
  for (ReshardOp second : seconds) {
    Value end = second.getResult(0);
    std::string what;
    if (explain)
      what = textOf(value) + " is " + textOf(end) + " first, then " +
             textOf(middle);
    Value made = trial.moveTo(first, second.getLoc(), value, end.getType());
    Remarks remarks;
    remark(remarks, made.getDefiningOp(), std::move(what));
    trial.replace(end, made);
    trial.replace(middle,
                  trial.moveTo(first, first.getLoc(), made, middle.getType()));
    if (keep(remarks))
      return;
  }
}

/// The reshard itself, then those of the values that reshapes, transposes and
/// ops of one operand made its operand of.
Elider::Climbs Elider::climb(ReshardOp move) {
  Value value = move.getInputs()[0];
  std::optional<double> seconds =
      secondsOf(value, placesOf(value), placesOf(move.getResult(0)));
  Climbs climbs;
  if (!seconds)
    return climbs;
  climbs.push_back({{value, move.getResult(0).getType()}, *seconds, 0});
  if (*seconds == 0 || !asFreeMove(move))
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
    std::optional<double> above = secondsOf(operand, placesOf(operand), *view);
    if (!above)
      break;
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

/// The ends of moves of `source` from which others of these may start.
void Elider::findHubs(Value source, ArrayRef<std::pair<size_t, size_t>> moves,
                      ArrayRef<std::pair<ReshardOp, Climbs>> all,
                      std::vector<Hub> &hubs) {
  struct Group {
    SmallVector<std::pair<size_t, size_t>> moves;
    double seconds = 0; ///< of a move of the source
    double saved = 0;   ///< if that is there already
    bool isFree = true;
  };
  llvm::MapVector<Type, Group> groups;
  for (auto [number, level] : moves) {
    const auto &[move, climbs] = all[number];
    Group &group = groups[climbs[level].target.second];
    group.moves.emplace_back(number, level);
    group.seconds = climbs[level].seconds;
    group.saved += climbs[0].seconds - climbs[level].work;
    group.isFree &= bool(asFreeMove(move));
  }
  for (auto &[type, group] : groups) {
    if (group.seconds == 0)
      continue;
    Hub hub{{source, type}, group.saved - group.seconds, group.moves};
    bool isChange =
        llvm::any_of(group.moves, [](auto move) { return move.second != 0; });
    for (auto &[otherType, other] : groups) {
      if (otherType == type || !group.isFree || !other.isFree ||
          other.saved <= 0)
        continue;
      std::optional<double> seconds =
          secondsOf(source, placesOf(getView(type).getView()),
                    placesOf(getView(otherType).getView()));
      if (!seconds || !layout::isLess(*seconds, other.saved))
        continue;
      hub.gain += other.saved - *seconds;
      llvm::append_range(hub.moves, other.moves);
      isChange = true;
    }
    if (isChange && hub.moves.size() > 1 && hub.gain > 0)
      hubs.push_back(std::move(hub));
  }
}

void Elider::join(const Hub &hub,
                  MutableArrayRef<std::pair<ReshardOp, Climbs>> all) {
  auto [source, type] = hub.target;
  // What another hub replaced is no source any more.
  if (source.use_empty() || llvm::any_of(hub.moves, [&](auto of) {
        auto &[move, climbs] = all[of.first];
        return climbs.empty() || !move->getBlock();
      }))
    return;
  Operation *made = nullptr;
  for (auto [number, level] : hub.moves) {
    auto &[move, climbs] = all[number];
    Type end = climbs[level].target.second;
    if (level == 0 && end == type)
      continue;
    Location loc = move.getLoc();
    Value value = trial.moveTo(move, loc, source, type);
    made = value.getDefiningOp();
    value = trial.moveTo(move, loc, value, end);
    for (const Climb &below : llvm::reverse(ArrayRef(climbs).take_front(level)))
      value = trial.copy(below.target.first.getDefiningOp(), move, value,
                         below.target.second);
    trial.replace(move.getResult(0), value);
  }
  Remarks remarks;
  if (explain)
    remark(remarks, made,
           llvm::utostr(hub.moves.size()) + " moves are one, of " +
               textOf(source) + " to " +
               textOf(placesOf(getView(type).getView()), source));
  if (keep(remarks))
    for (auto [number, level] : hub.moves)
      all[number].second.clear();
}

/// Those first that save most.
void Elider::join() {
  std::vector<std::pair<ReshardOp, Climbs>> all;
  llvm::MapVector<Value, SmallVector<std::pair<size_t, size_t>>> bySource;
  for (Operation *op : getOps())
    if (ReshardOp move = asMove(op)) {
      Climbs climbs = climb(move);
      for (auto [level, climb] : llvm::enumerate(climbs))
        bySource[climb.target.first].emplace_back(all.size(), level);
      all.emplace_back(move, std::move(climbs));
    }
  std::vector<Hub> hubs;
  for (auto &[source, moves] : bySource)
    if (moves.size() > 1)
      findHubs(source, moves, all, hubs);
  llvm::stable_sort(hubs,
                    [](const Hub &a, const Hub &b) { return a.gain > b.gain; });
  for (const Hub &hub : hubs)
    join(hub, all);
}

/// Where moves one by one take less so, `op` is placed anew; false if not. With
/// `sharedMoves`, operands may be taken from before reshards that stay for
/// others.
FailureOr<bool> Elider::place(Operation *op, bool sharedMoves,
                              Remarks &remarks) {
  if (!isa<ShardingRuleOpInterface, ReinterpretOpInterface>(op) ||
      op->getNumResults() == 0)
    return false;
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
    return false;
  auto moveAfter = [](Value result) {
    return result.hasOneUse() ? asImplicitMove(*result.user_begin())
                              : ReshardOp();
  };
  for (Value result : op->getResults())
    anyMove |= bool(moveAfter(result));
  if (!anyMove)
    return false;

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
      Result<Price> price = moves.price(result, placesOf(result), view,
                                        getView(result).getLayoutMesh());
      if (!price)
        return op->emitError() << price.message();
      now += *price;
    }
  const double movesNow = now.seconds;
  if (movesNow == 0)
    return false;
  FailureOr<Choice> choice = choices.get(op, *actual);
  if (failed(choice))
    return failure();
  now.seconds += getWork(op, *getActualPlacement(op), moves);
  if (!layout::isLess(choice->cost.moves, movesNow) ||
      !layout::isLess(choice->cost.total(), now.seconds))
    return false;

  for (auto [operand, view] :
       llvm::zip_equal(op->getOpOperands(), choice->placement.operands)) {
    Value value = operand.get();
    if (placesOf(value) == view)
      continue;
    if (ReshardOp move = moveBefore(value))
      value = move.getInputs()[0];
    if (placesOf(value) != view)
      value = trial.moveTo(
          op, op->getLoc(), value,
          withEncoding(value.getType(), getView(value).with(view)));
    trial.setOperand(operand, value);
  }
  for (auto [result, view] :
       llvm::zip_equal(op->getResults(), choice->placement.results)) {
    if (placesOf(result) == view)
      continue;
    ReshardOp after = moveAfter(result);
    Value target = after ? after.getResult(0) : result;
    Type type = target.getType();
    trial.setType(result, withEncoding(type, getView(result).with(view)));
    Value moved = trial.moveTo(op->getNextNode(), op->getLoc(), result, type);
    trial.replace(target, moved, moved.getDefiningOp());
  }
  if (explain) {
    SmallVector<std::string> views;
    for (Value operand : op->getOperands())
      views.push_back(textOf(operand));
    remark(remarks, op,
           "'" + op->getName().getStringRef().str() +
               "' has operands that lie as " + llvm::join(views, ", "));
  }
  return true;
}

/// The ops that make the operands of `op` and read its results, but for moves.
static llvm::SetVector<Operation *> opsAround(Operation *op) {
  llvm::SetVector<Operation *> around;
  for (Value operand : op->getOperands()) {
    Operation *maker = operand.getDefiningOp();
    if (ReshardOp move = asImplicitMove(maker))
      maker = move.getInputs()[0].getDefiningOp();
    if (maker)
      around.insert(maker);
  }
  for (Operation *user : op->getUsers())
    if (ReshardOp move = asImplicitMove(user))
      around.insert(move->user_begin(), move->user_end());
    else
      around.insert(user);
  return around;
}

LogicalResult Elider::reconsider(Operation *op, bool sharedMoves) {
  return attempt(
      op, [&](Remarks &remarks) { return place(op, sharedMoves, remarks); },
      [&] { return opsAround(op); });
}

LogicalResult
Elider::attempt(Operation *op,
                llvm::function_ref<FailureOr<bool>(Remarks &)> change,
                llvm::function_ref<llvm::SetVector<Operation *>()> around) {
  for (size_t next = 0;; ++next) {
    Remarks remarks;
    FailureOr<bool> isChanged = change(remarks);
    if (failed(isChanged) || !*isChanged)
      return isChanged;
    llvm::SetVector<Operation *> ops;
    if (inPairs) {
      trial.takeOutUnused();
      ops = around();
    }
    if (next < ops.size() &&
        failed(place(ops[next], /*sharedMoves=*/false, remarks)))
      return failure();
    if (keep(remarks) || next + 1 >= ops.size())
      return success();
  }
}

LogicalResult Elider::run() {
  const SmallVector<Operation *> ops = getOps();
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty() && (isa<ReshardOp>(op) || isPassed(op)))
      op->erase();
  // Pairs where no change is less alone.
  for (inPairs = false;; inPairs = !changed) {
    changed = false;
    llvm::DenseMap<Target, Value> known;
    for (Operation *op : getOps())
      merge(op, known);
    for (Operation *op : getOps())
      if (failed(shortcut(op)))
        return failure();
    for (Operation *op : getOps())
      reorder(op);
    join();
    for (Operation *op : getOps())
      for (bool sharedMoves : {false, true})
        if (op->getBlock() && failed(reconsider(op, sharedMoves)))
          return failure();
    trial.eraseDead();
    if (inPairs && !changed)
      return success();
  }
}

LogicalResult tv::elideReshards(func::FuncOp function, Moves &moves,
                                bool explain) {
  return Elider(function, moves, explain).run();
}

namespace {
struct ElideReshards : tv::impl::ElideReshardsPassBase<ElideReshards> {
  using ElideReshardsPassBase::ElideReshardsPassBase;
  void runOnContract() override {
    FailureOr<Moves> moves = Moves::get(getOperation());
    if (failed(moves) ||
        failed(elideReshards(getOperation(), *moves, explain || explainLater)))
      return signalPassFailure();
    if (!explainLater)
      reportRemarks(getOperation());
  }
};
} // namespace
