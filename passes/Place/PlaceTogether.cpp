//===- PlaceTogether.cpp - the cheapest views for ops together ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is best for one op after the other need not be best for all:
//
//     t = transpose a     the view of a, moved here or there
//     p = matmul t, b     wants t split otherwise
//     y = add p, c        p partial: one move of y for two of p and c
//
// Ops that values of one use join are a tree: the least time for its last value
// to lie in each view follows from that for the values before, whatever the
// rest does. Each op is divided in all ways over the digits of the mesh
// (`Ways`). A value of several uses is an end of its trees, where it lies as it
// is; then the trees around one such value are placed together, for each view
// in which that value may lie, but for those that read what another makes.
//
//===----------------------------------------------------------------------===//

#include "Place/PlaceTogether.h"
#include "Place/Ways.h"
#include "TensorView/Contract.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/ScopeExit.h"

#include <limits>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::View;

static constexpr double kNever = std::numeric_limits<double>::infinity();
/// What is less of the whole function's time is no gain: the model is not as
/// exact as that. And this part of a latency nobody could measure.
static constexpr double kLeastGain = 0.01, kLeastLatency = 0.001;
/// More ops than this around one value are placed tree by tree.
static constexpr size_t kMaxAround = 16;

/// A reshard of one value that the user did not write.
static ReshardOp asMove(Operation *op) {
  auto reshard = dyn_cast_or_null<ReshardOp>(op);
  bool moves = reshard && reshard.getInputs().size() == 1 &&
               !reshard->hasAttr(kUserMoveAttr);
  return moves ? reshard : ReshardOp();
}

/// The value before moves.
static Value sourceOf(Value value) {
  while (ReshardOp move = asMove(value.getDefiningOp()))
    value = move.getInputs()[0];
  return value;
}

/// The uses of `value` and of what moves make of it.
static void findUses(Value value, SmallVectorImpl<OpOperand *> &uses) {
  for (OpOperand &use : value.getUses())
    if (ReshardOp move = asMove(use.getOwner()))
      findUses(move.getResult(0), uses);
    else
      uses.push_back(&use);
}

/// The sub-axes in views of values.
static SmallVector<layout::SubAxis> findAxes(func::FuncOp function) {
  llvm::SetVector<ViewAttr> views;
  auto add = [&](Value value) {
    if (ViewAttr view = getView(value))
      views.insert(view);
  };
  llvm::for_each(function.getArguments(), add);
  for (Operation &op : function.getBody().front())
    llvm::for_each(op.getResults(), add);
  SmallVector<layout::SubAxis> axes;
  for (ViewAttr view : views)
    for (const layout::SubAxis &axis : layout::axesOf(view.getView()))
      if (!llvm::is_contained(axes, axis))
        axes.push_back(axis);
  return axes;
}

namespace {
/// An op, and how else it may be placed.
struct Placed {
  Operation *op;
  Way now;
  /// Null until a region asks; `now` may be none of them.
  const std::vector<Way> *ways = nullptr;
  double least = 0; ///< of work
};

/// A value that lies in some view, and the time until it does.
struct Lie {
  double seconds;
  const Way *way;
};

/// Ops that are placed at once, in order. All of them make one value; those
/// that are not read by one other of them only are the ends.
struct Region {
  SmallVector<Placed *> ops;
  Value center; ///< null if there is none
};

/// How ops of a region are placed.
struct Solution {
  double seconds = kNever;
  int center = -1, copy = -1; ///< views of the center
  SmallVector<Way> ways;
};

class Placer {
public:
  Placer(func::FuncOp function, Moves &moves, const layout::Mesh &mesh)
      : function(function), states(getStates(function)), moves(moves),
        mesh(mesh), ways(moves, mesh, findAxes(function)) {}
  void run();

private:
  double addOp(Operation *op);
  void findWays(Placed &placed);
  bool isPlaced(Operation *op) const { return placed.contains(op); }
  /// Whether only another placed op reads the result of a placed op.
  bool isJoined(Value value) const;
  int numberOf(Value value) { return ways.numberOf(value); }
  double seconds(Value value, int from, int to) {
    return ways.seconds(value, from, to);
  }
  double leastSeconds(Value value, int from, int to) {
    return ways.leastSeconds(value, from, to);
  }

  std::vector<int64_t> keyOf(const Region &region);
  void improve(const Region &region);
  Solution solve(const Region &region, bool asItIs, double bound);
  double reach(const Region &region, Value source, int view);
  double leastReach(const Region &region, Value source, int view);
  bool isFree(OpOperand &use);
  int kindReturned(OpOperand &use);
  void noteReturned(OpOperand &use);
  bool isShared(OpOperand &use, int kind);
  double reachEnds(Value value, int from, int copy, bool least = false);
  ArrayRef<Value> copiesFor(const Region &region, Value source);
  void evaluate(const Region &region, const Placed &placed, bool asItIs,
                double bound);
  void choose(const Region &region, Value value, int view,
              llvm::DenseMap<Operation *, const Way *> &chosen);
  Value settle(OpBuilder &builder, Value value, int view, int copyView);
  void apply(const Region &region, const Solution &solution);
  Value moveTo(OpBuilder &builder, Value value, int view);

  func::FuncOp function;
  SmallVector<BlockArgument> states; ///< of its results
  Moves &moves;
  const layout::Mesh &mesh;
  Ways ways;
  double slack = 0; ///< less is no gain
  /// Of regions that look the same; without ways where nothing is gained.
  std::map<std::vector<int64_t>, Solution> solved;

  llvm::MapVector<Operation *, Placed> placed;
  llvm::DenseMap<Value, SmallVector<OpOperand *>> uses;
  /// The kinds of moves of what is returned, and how many are of each.
  llvm::DenseMap<unsigned, int> kindOfReturned;
  std::map<int, int> returned;

  // Of the region that is solved.
  llvm::DenseSet<Operation *> inside;
  llvm::DenseMap<Value, llvm::MapVector<int, Lie>> lies;
  llvm::DenseMap<Value, SmallVector<Value>> copies;
  llvm::DenseMap<Value, llvm::DenseMap<int, double>> reached, leastReached;
  int center = -1, copy = -1;
};
} // namespace

//===----------------------------------------------------------------------===//
// The least time of a region
//===----------------------------------------------------------------------===//

bool Placer::isJoined(Value value) const {
  auto known = uses.find(value);
  return isPlaced(value.getDefiningOp()) && known->second.size() == 1 &&
         isPlaced(known->second[0]->getOwner()) &&
         !value.getDefiningOp()->hasAttr(kUserViewAttr);
}

/// `source`, and what else its moves make of it that stays for others.
ArrayRef<Value> Placer::copiesFor(const Region &region, Value source) {
  auto [known, isNew] = copies.try_emplace(source);
  SmallVector<Value> &found = known->second;
  if (!isNew)
    return found;
  found.push_back(source);
  for (size_t i = 0; i < found.size(); ++i)
    for (Operation *user : found[i].getUsers())
      if (ReshardOp move = asMove(user)) {
        SmallVector<OpOperand *> uses;
        findUses(move.getResult(0), uses);
        if (move->isBeforeInBlock(region.ops[0]->op) &&
            llvm::any_of(uses, [&](OpOperand *use) {
              return !inside.contains(use->getOwner());
            }))
          found.push_back(move.getResult(0));
      }
  return found;
}

/// The time until `source` lies as `view`.
double Placer::reach(const Region &region, Value source, int view) {
  auto [known, isNew] = reached[source].try_emplace(view, kNever);
  double &least = known->second;
  if (!isNew)
    return least;
  if (source == region.center)
    return least = std::min(seconds(source, center, view),
                            seconds(source, copy, view));
  if (auto made = lies.find(source); made != lies.end()) {
    // Those that may be the least are planned first.
    SmallVector<std::pair<double, int>> from;
    for (const auto &[is, lie] : made->second)
      from.emplace_back(lie.seconds + leastSeconds(source, is, view), is);
    llvm::sort(from);
    for (auto [atLeast, is] : from) {
      if (atLeast >= least)
        break;
      least = std::min(least, made->second.find(is)->second.seconds +
                                  seconds(source, is, view));
    }
  } else {
    for (Value copy : copiesFor(region, source))
      least = std::min(least, seconds(source, numberOf(copy), view));
  }
  return least;
}

/// At most `reach`, without a plan.
double Placer::leastReach(const Region &region, Value source, int view) {
  auto [known, isNew] = leastReached[source].try_emplace(view, kNever);
  double &least = known->second;
  if (!isNew)
    return least;
  if (source == region.center)
    return least = std::min(leastSeconds(source, center, view),
                            leastSeconds(source, copy, view));
  if (auto made = lies.find(source); made != lies.end()) {
    for (const auto &[from, lie] : made->second)
      if (lie.seconds < least)
        least = std::min(least, lie.seconds + leastSeconds(source, from, view));
  } else {
    for (Value copy : copiesFor(region, source))
      least = std::min(least, leastSeconds(source, numberOf(copy), view));
  }
  return least;
}

/// Whether `use` returns a value in whatever view it has.
bool Placer::isFree(OpOperand &use) {
  unsigned number = use.getOperandNumber();
  return isa<func::ReturnOp>(use.getOwner()) && !states[number] &&
         !function.getResultAttr(number, kUserViewAttr);
}

/// The kind of the small move that makes what `use` returns; -1 if there is
/// none, or others read that, too.
int Placer::kindReturned(OpOperand &use) {
  ReshardOp move = asMove(use.get().getDefiningOp());
  if (!move || !isa<func::ReturnOp>(use.getOwner()) ||
      !llvm::all_of(move->getUsers(), llvm::IsaPred<func::ReturnOp>))
    return -1;
  Value from = move.getInputs()[0];
  return ways.kindOf(from, numberOf(from), numberOf(use.get()));
}

void Placer::noteReturned(OpOperand &use) {
  auto [known, isNew] = kindOfReturned.try_emplace(use.getOperandNumber());
  if (!isNew)
    --returned[known->second];
  known->second = kindReturned(use);
  ++returned[known->second];
}

/// Whether a move of `kind` to `use`, which returns it, goes together with what
/// is returned beside it: all wait for the end.
bool Placer::isShared(OpOperand &use, int kind) {
  auto others = returned.find(kind);
  return kind >= 0 && others != returned.end() &&
         others->second >
             (kindOfReturned.lookup(use.getOperandNumber()) == kind);
}

/// The time of moves to the uses of `value` that are not in the region; with
/// `least` at most that, without plans.
double Placer::reachEnds(Value value, int from, int copy, bool least) {
  double sum = 0;
  SmallVector<int> needs;
  for (OpOperand *use : uses.find(value)->second) {
    if (inside.contains(use->getOwner()) ||
        (isFree(*use) && ways.viewOf(from).partial.empty()))
      continue;
    auto move = dyn_cast<ReshardOp>(use->getOwner());
    int need = numberOf(move ? move.getResult(0) : use->get());
    if (llvm::is_contained(needs, need))
      continue;
    needs.push_back(need);
    const bool isReturned = isa<func::ReturnOp>(use->getOwner());
    auto time = [&](int is) {
      if (least)
        return std::max(leastSeconds(value, is, need) -
                            moves.getMachine().alpha * isReturned,
                        0.);
      double time = seconds(value, is, need);
      if (isReturned && isShared(*use, ways.kindOf(value, is, need)))
        time -= moves.getMachine().alpha;
      return time;
    };
    sum += std::min(time(from), time(copy));
  }
  return sum;
}

/// `bound`: on the time of the op and all before it in the region.
void Placer::evaluate(const Region &region, const Placed &placed, bool asItIs,
                      double bound) {
  Value result = placed.op->getResult(0);
  llvm::MapVector<int, Lie> &made = lies[result];
  made.clear();
  reached[result].clear();
  leastReached[result].clear();
  SmallVector<Value> sources;
  for (Value operand : placed.op->getOperands()) {
    sources.push_back(sourceOf(operand));
    leastReached.try_emplace(sources.back());
  }
  SmallVector<const llvm::DenseMap<int, double> *> least;
  for (Value source : sources)
    least.push_back(&leastReached.find(source)->second);
  auto consider = [&](const Way &way) {
    double limit = bound;
    if (auto same = made.find(way.result); same != made.end())
      limit = std::min(limit, same->second.seconds);
    double sum = way.work;
    for (auto [source, known, view] :
         llvm::zip_equal(sources, least, way.operands)) {
      auto found = known->find(view);
      sum += found != known->end() ? found->second
                                   : leastReach(region, source, view);
      if (sum > limit)
        return;
    }
    sum = way.work;
    for (auto [source, view] : llvm::zip_equal(sources, way.operands)) {
      sum += reach(region, source, view);
      if (sum > limit)
        return;
    }
    auto [lie, isNew] = made.insert({way.result, {sum, &way}});
    if (!isNew && sum < lie->second.seconds)
      lie->second = {sum, &way};
  };
  consider(placed.now);
  if (!asItIs)
    for (const Way &way : *placed.ways)
      consider(way);
}

/// The ways that make `value` lie as `view` after the least time.
void Placer::choose(const Region &region, Value value, int view,
                    llvm::DenseMap<Operation *, const Way *> &chosen) {
  const Way *way = lies[value][view].way;
  Operation *op = value.getDefiningOp();
  chosen[op] = way;
  for (auto [operand, need] :
       llvm::zip_equal(op->getOperands(), way->operands)) {
    Value source = sourceOf(operand);
    auto made = lies.find(source);
    if (source == region.center || made == lies.end())
      continue;
    double least = reach(region, source, need);
    for (const auto &[from, lie] : made->second)
      if (lie.seconds + seconds(source, from, need) == least) {
        choose(region, source, from, chosen);
        break;
      }
  }
}

Solution Placer::solve(const Region &region, bool asItIs, double bound) {
  lies.clear();
  reached.clear();
  leastReached.clear();
  // Of the op and those before it in its tree.
  llvm::DenseMap<Value, double> least;
  double all = 0;
  SmallVector<const Placed *> later;
  llvm::DenseSet<Value> afterCenter;
  for (const Placed *placed : region.ops) {
    Value result = placed->op->getResult(0);
    double sum = placed->least;
    bool isLater = false;
    for (Value operand : placed->op->getOperands()) {
      Value source = sourceOf(operand);
      isLater |= source == region.center || afterCenter.contains(source);
      if (source != region.center)
        sum += least.lookup(source);
    }
    least[result] = sum;
    all += placed->least;
    if (isLater) {
      afterCenter.insert(result);
      later.push_back(placed);
    }
  }
  // Other ops take their least work at the least.
  auto boundOf = [&](const Placed &placed) {
    return bound - all + least.lookup(placed.op->getResult(0));
  };
  for (const Placed *placed : region.ops)
    if (!afterCenter.contains(placed->op->getResult(0)))
      evaluate(region, *placed, asItIs, boundOf(*placed));

  Solution best;
  auto finish = [&](double before) {
    SmallVector<std::pair<Value, int>> ends;
    for (const Placed *placed : region.ops) {
      Value value = placed->op->getResult(0);
      if (value == region.center || isJoined(value))
        continue;
      double least = kNever;
      int view = -1;
      for (const auto &[from, lie] : lies[value]) {
        if (lie.seconds + reachEnds(value, from, from, true) >= least)
          continue;
        double sum = lie.seconds + reachEnds(value, from, from);
        if (sum < least) {
          least = sum;
          view = from;
        }
      }
      before += least;
      if (before > bound || before >= best.seconds)
        return;
      ends.emplace_back(value, view);
    }
    if (before > bound || before >= best.seconds)
      return;
    if (region.center && region.center.getDefiningOp() &&
        inside.contains(region.center.getDefiningOp()))
      ends.emplace_back(region.center, center);
    llvm::DenseMap<Operation *, const Way *> chosen;
    for (auto [value, view] : ends)
      choose(region, value, view, chosen);
    best = {before, center, copy, {}};
    for (const Placed *placed : region.ops)
      best.ways.push_back(*chosen.lookup(placed->op));
  };
  if (!region.center) {
    finish(0);
    return best;
  }

  // The views in which the center may lie, and where it may have a copy: where
  // a use has it.
  llvm::MapVector<int, Lie> from;
  if (auto made = lies.find(region.center); made != lies.end())
    from = made->second;
  else
    from.insert({numberOf(region.center), {0, nullptr}});
  auto solveFrom = [&](int is, int other, double before) {
    // What the rest takes at the least.
    double limit =
        std::min(bound, best.seconds) - all + least.lookup(region.center);
    if (before + leastSeconds(region.center, is, other) +
            reachEnds(region.center, is, other, true) >
        limit)
      return;
    before +=
        seconds(region.center, is, other) + reachEnds(region.center, is, other);
    if (before > limit)
      return;
    center = is;
    copy = other;
    reached[region.center].clear();
    leastReached[region.center].clear();
    for (const Placed *placed : later)
      evaluate(region, *placed, asItIs,
               boundOf(*placed) - before + least.lookup(region.center));
    finish(before);
  };
  // A copy is where a use has it.
  llvm::SetVector<int> needs;
  for (const Placed *placed : region.ops)
    for (auto [i, operand] : llvm::enumerate(placed->op->getOperands()))
      if (sourceOf(operand) == region.center) {
        needs.insert(placed->now.operands[i]);
        if (!asItIs)
          for (const Way &way : *placed->ways)
            needs.insert(way.operands[i]);
      }
  for (const auto &[is, lie] : from) {
    solveFrom(is, is, lie.seconds);
    for (int other : needs)
      if (other != is)
        solveFrom(is, other, lie.seconds);
  }
  return best;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

Value Placer::moveTo(OpBuilder &builder, Value value, int view) {
  if (numberOf(value) == view)
    return value;
  Type type =
      withEncoding(value.getType(), getView(value).with(ways.viewOf(view)));
  return ReshardOp::create(builder, value.getLoc(), TypeRange{type},
                           ValueRange{value}, StepAttr())
      .getResult(0);
}

/// `value` lies as `view`, with a copy as `copyView`; its uses that are not in
/// the region are served from either. Gives the copy.
Value Placer::settle(OpBuilder &builder, Value value, int view, int copyView) {
  SmallVector<std::pair<OpOperand *, int>> needs;
  for (OpOperand *use : uses.find(value)->second)
    if (!inside.contains(use->getOwner()))
      needs.emplace_back(use, numberOf(use->get()));
  value.setType(
      withEncoding(value.getType(), getView(value).with(ways.viewOf(view))));
  Value copy = moveTo(builder, value, copyView);
  llvm::DenseMap<int, Value> made;
  for (auto [use, need] : needs) {
    llvm::scope_exit note([&, use = use] {
      if (isa<func::ReturnOp>(use->getOwner()))
        noteReturned(*use);
    });
    if (isa<ReshardOp>(use->getOwner()) ||
        (isFree(*use) && ways.viewOf(view).partial.empty())) {
      use->set(value);
      continue;
    }
    Value &moved = made[need];
    if (!moved) {
      bool direct =
          seconds(value, view, need) <= seconds(value, copyView, need);
      moved = moveTo(builder, direct ? value : copy, need);
    }
    use->set(moved);
  }
  return copy;
}

void Placer::apply(const Region &region, const Solution &solution) {
  OpBuilder builder(function.getContext());
  Value copyOfCenter;
  auto settleCenter = [&] {
    builder.setInsertionPointAfterValue(region.center);
    copyOfCenter =
        settle(builder, region.center, solution.center, solution.copy);
  };
  if (region.center && !inside.contains(region.center.getDefiningOp()))
    settleCenter();
  for (auto [placed, way] : llvm::zip_equal(region.ops, solution.ways)) {
    Operation *op = placed->op;
    builder.setInsertionPoint(op);
    for (auto [operand, view] :
         llvm::zip_equal(op->getOpOperands(), way.operands)) {
      Value source = sourceOf(operand.get());
      SmallVector<Value> from = {source};
      if (source == region.center)
        from.push_back(copyOfCenter);
      else if (!isJoined(source))
        llvm::append_range(from, copiesFor(region, source));
      Value nearest =
          *llvm::min_element(from, [&, view = view](Value a, Value b) {
            return seconds(source, numberOf(a), view) <
                   seconds(source, numberOf(b), view);
          });
      operand.set(moveTo(builder, nearest, view));
    }
    placed->now = way;
    if (Value result = op->getResult(0); result == region.center) {
      settleCenter();
    } else if (numberOf(result) != way.result) {
      builder.setInsertionPointAfter(op);
      settle(builder, result, way.result, way.result);
    }
  }
}

/// What decides how a region is placed.
std::vector<int64_t> Placer::keyOf(const Region &region) {
  std::vector<int64_t> key;
  llvm::DenseMap<Value, int64_t> numbers;
  if (region.center) {
    numbers[region.center] = -1;
    key.push_back(numberOf(region.center));
  }
  auto addEnds = [&](Value value) {
    for (OpOperand *use : uses.find(value)->second)
      if (!inside.contains(use->getOwner())) {
        auto move = dyn_cast<ReshardOp>(use->getOwner());
        key.push_back(numberOf(move ? move.getResult(0) : use->get()));
        key.push_back(isFree(*use));
        if (isa<func::ReturnOp>(use->getOwner()))
          for (auto [kind, count] : returned)
            if (isShared(*use, kind))
              key.push_back(-3 - kind);
      }
    key.push_back(-1);
  };
  if (region.center)
    addEnds(region.center);
  for (auto [number, placed] : llvm::enumerate(region.ops)) {
    key.push_back(reinterpret_cast<int64_t>(placed->ways));
    for (auto [operand, view] :
         llvm::zip_equal(placed->op->getOperands(), placed->now.operands)) {
      Value source = sourceOf(operand);
      key.push_back(view);
      if (auto known = numbers.find(source); known != numbers.end()) {
        key.push_back(known->second);
        continue;
      }
      key.push_back(-2);
      for (Value copy : copiesFor(region, source))
        key.push_back(numberOf(copy));
    }
    Value result = placed->op->getResult(0);
    key.push_back(placed->now.result);
    if (result != region.center) {
      numbers[result] = number;
      if (!isJoined(result))
        addEnds(result);
    }
  }
  return key;
}

void Placer::improve(const Region &region) {
  inside.clear();
  copies.clear();
  double least = 0;
  for (const Placed *placed : region.ops) {
    inside.insert(placed->op);
    least += placed->now.work / double(mesh.numDevices());
  }
  // Most regions take too little for a gain: their ways are not asked for.
  auto asItIs = [&] { return solve(region, /*asItIs=*/true, kNever).seconds; };
  if (double now = asItIs(); now == kNever || least > now - slack)
    return;
  least = 0;
  for (Placed *placed : region.ops) {
    findWays(*placed);
    least += placed->least;
  }
  auto [solution, isNew] = solved.try_emplace(keyOf(region));
  if (isNew) {
    const double now = asItIs();
    if (least > now - slack)
      return;
    Solution best = solve(region, /*asItIs=*/false, now - slack);
    if (best.seconds < now - slack)
      solution->second = std::move(best);
  }
  if (!solution->second.ways.empty())
    apply(region, solution->second);
}

void Placer::findWays(Placed &placed) {
  if (placed.ways)
    return;
  placed.ways = &ways.of(placed.op);
  auto same = llvm::find(*placed.ways, placed.now);
  if (same != placed.ways->end())
    placed.now.work = same->work;
  placed.least = placed.now.work;
  for (const Way &way : *placed.ways)
    placed.least = std::min(placed.least, way.work);
}

/// What `op` takes, and how it is placed.
double Placer::addOp(Operation *op) {
  if (ReshardOp move = asMove(op)) {
    Value from = move.getInputs()[0], to = move.getResult(0);
    double time = seconds(from, numberOf(from), numberOf(to));
    return time == kNever ? 0 : time;
  }
  if (!isa<ShardingRuleOpInterface, ReinterpretOpInterface>(op))
    return 0;
  const double work = getWork(op, *getActualPlacement(op), moves);
  if (op->getNumResults() != 1 || isa<WindowOpInterface, ReshardOp>(op))
    return work;
  Placed made{op, {}};
  for (Value operand : op->getOperands())
    made.now.operands.push_back(numberOf(operand));
  made.now.result = numberOf(op->getResult(0));
  made.now.work = work;
  placed.insert({op, std::move(made)});
  return work;
}

void Placer::run() {
  Block &body = function.getBody().front();
  SmallVector<Value> values(function.getArguments());
  double all = 0;
  for (Operation &op : body.without_terminator()) {
    all += addOp(&op);
    if (!asMove(&op))
      llvm::append_range(values, op.getResults());
  }
  for (Value value : values)
    findUses(value, uses[value]);
  for (OpOperand &use : body.getTerminator()->getOpOperands())
    noteReturned(use);
  slack = std::max(kLeastGain * all, kLeastLatency * moves.getMachine().alpha);

  // The last op of the tree of each op, from the last op on.
  llvm::DenseMap<Operation *, Operation *> ends;
  llvm::MapVector<Operation *, SmallVector<Operation *>> trees;
  for (auto &[op, ways] : llvm::reverse(placed)) {
    Value result = op->getResult(0);
    Operation *end =
        isJoined(result) ? ends.lookup(uses[result][0]->getOwner()) : op;
    ends[op] = end;
    trees[end].push_back(op);
  }
  auto improveAll = [&](llvm::SetVector<Operation *> of, Value center) {
    Region region;
    region.center = center;
    for (Operation *end : of)
      for (Operation *op : trees[end])
        region.ops.push_back(&placed.find(op)->second);
    llvm::sort(region.ops, [](const Placed *a, const Placed *b) {
      return a->op->isBeforeInBlock(b->op);
    });
    improve(region);
  };
  for (auto &[end, tree] : trees) {
    llvm::SetVector<Operation *> of;
    of.insert(end);
    improveAll(of, Value());
  }
  for (Value value : values) {
    if (uses[value].size() < 2 ||
        (value.getDefiningOp() &&
         value.getDefiningOp()->hasAttr(kUserViewAttr)))
      continue;
    llvm::SetVector<Operation *> around;
    size_t count = 0;
    auto add = [&](Operation *op) {
      if (isPlaced(op) && around.insert(ends.lookup(op)))
        count += trees[ends.lookup(op)].size();
    };
    add(value.getDefiningOp());
    for (OpOperand *use : uses[value])
      add(use->getOwner());
    if (around.empty() || count > kMaxAround)
      continue;
    // What is made in one tree and read in another would count twice: the
    // later one stays as it is.
    SmallVector<Operation *> inOrder = around.takeVector();
    llvm::sort(inOrder, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    auto readsOther = [&](Operation *op) {
      return llvm::any_of(op->getOperands(), [&](Value operand) {
        Value source = sourceOf(operand);
        Operation *end = ends.lookup(source.getDefiningOp());
        return source != value && end != ends.lookup(op) &&
               around.contains(end);
      });
    };
    for (Operation *end : inOrder)
      if (llvm::none_of(trees[end], readsOther))
        around.insert(end);
    improveAll(around, value);
  }
  // Reshards that nothing reads any more.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isa<ReshardOp>(op) && op.use_empty())
      op.erase();
  // Results as they lie now.
  SmallVector<Type> results(body.getTerminator()->getOperandTypes());
  function.setFunctionType(FunctionType::get(function.getContext(),
                                             body.getArgumentTypes(), results));
}

void tv::placeTogether(func::FuncOp function, Moves &moves) {
  for (Operation &op : function.getBody().front())
    for (Value value : op.getResults())
      if (ViewAttr view = getView(value))
        return Placer(function, moves, view.getLayoutMesh()).run();
}
