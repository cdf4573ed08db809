//===- SolveRegion.cpp - the least time of ops together -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// By value, the views in which it may lie and the least time until it does; for
// each view of the centers, if there are some.
//
//===----------------------------------------------------------------------===//

#include "Place/OpPrice.h"
#include "Place/Placer.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

static constexpr double kNever = std::numeric_limits<double>::infinity();
/// How often ops of a region are placed anew to try moves that operands share.
static constexpr size_t kMaxTried = 8192;
/// What asking a way takes of a plan of a move.
static constexpr double kWay = 0.001;

Operation *Placer::joining(Value value) const {
  if (!isPlaced(value.getDefiningOp()) || isWritten(value.getDefiningOp()))
    return nullptr;
  Operation *only = nullptr;
  for (OpOperand *use : uses.find(value)->second) {
    if (!isPlaced(use->getOwner()))
      continue;
    if (only && only != use->getOwner())
      return nullptr;
    only = use->getOwner();
  }
  return only;
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

/// The views in which `source` is there for the region.
SmallVector<int> Placer::viewsFor(const Region &region, Value source) {
  SmallVector<int> views;
  for (Value copy : copiesFor(region, source))
    views.push_back(numberOf(copy));
  llvm::append_range(views, sharedViews.lookup(source));
  return views;
}

/// Notes what more than one operand reads of what is made before the region.
void Placer::findReads(const Region &region) {
  reads.clear();
  for (auto [at, placed] : llvm::enumerate(region.ops))
    for (auto [i, operand] : llvm::enumerate(placed->op->getOperands()))
      if (Value source = sourceOf(operand);
          !isCenter(region, source) && !inside.contains(source.getDefiningOp()))
        reads[source].emplace_back(at, i);
  reads.remove_if([](const auto &each) { return each.second.size() < 2; });
}

/// Adds to `shared` the moves of these that ops need if they are placed as
/// `chosen` says.
void Placer::addShared(const Region &region, ArrayRef<Way> chosen,
                       SmallVectorImpl<Shared> &shared) {
  for (auto &[source, operands] : reads)
    for (auto [op, operand] : operands) {
      const Shared move = {operands[0], chosen[op].operands[operand]};
      auto isThere = [&, to = move.view](Value copy) {
        return numberOf(copy) == to;
      };
      if (llvm::none_of(copiesFor(region, source), isThere) &&
          !llvm::is_contained(shared, move))
        shared.push_back(move);
    }
}

Value Placer::valueOf(const Region &region, const Shared &shared) {
  const auto [op, operand] = shared.read;
  return sourceOf(region.ops[op]->op->getOperand(operand));
}

/// The time until what is `shared` is there, which it is from now on.
double Placer::pay(const Region &region, ArrayRef<Shared> shared) {
  sharedViews.clear();
  sharedMoves.clear();
  double sum = 0;
  for (const Shared &each : shared) {
    Value source = valueOf(region, each);
    double least = kNever;
    int from = -1;
    for (int is : viewsFor(region, source))
      if (double time = seconds(source, is, each.view); time < least) {
        least = time;
        from = is;
      }
    sum += least;
    sharedViews[source].push_back(each.view);
    const auto [op, operand] = each.read;
    if (from >= 0)
      sharedMoves.push_back({region.ops[op]->op, operand, each.view,
                             kindOf(source, from, each.view)});
  }
  return sum;
}

/// The kind of a move to what an operand reads.
int Placer::kindOf(Value value, int from, int to) {
  return ways.isExchange(value, from, to) ? kExchange
                                          : ways.kindOf(value, from, to);
}

/// Where `source` lies that the region makes as `is`: also where it moves for
/// uses that are not in the region, which has been paid; not where that waits.
ArrayRef<int> Placer::placesFor(Value source, const int &is) {
  ArrayRef<OpOperand *> all = uses.find(source)->second;
  if (all.size() == 1)
    return is;
  auto [known, isNew] = places.try_emplace({source.getAsOpaquePointer(), is});
  SmallVector<int> &found = known->second;
  if (!isNew)
    return found;
  found.push_back(is);
  for (OpOperand *use : all) {
    if (inside.contains(use->getOwner()) || isa<ReshardOp>(use->getOwner()))
      continue;
    const int need = needOf(source, is, *use, isAsItIs);
    const bool waits = isa<func::ReturnOp>(use->getOwner()) &&
                       isShared(*use, ways.kindOf(source, is, need));
    if (!waits && !llvm::is_contained(found, need))
      found.push_back(need);
  }
  return found;
}

/// How `source` comes to lie as `view`.
const Placer::Reaches &Placer::reach(const Region &region, Value source,
                                     int view) {
  auto [known, isNew] = reached[source].try_emplace(view);
  auto &[least, joining] = known->second;
  if (!isNew)
    return known->second;
  const double latency = ways.getLatency();
  auto consider = [&](int is, int place, const Lie &lie) {
    const double time = lie.seconds + seconds(source, place, view);
    if (time >= least.seconds &&
        time >= std::min(joining.seconds, least.seconds + latency))
      return;
    const int kind = is == view      ? lie.kind
                     : place == view ? kAlone
                                     : kindOf(source, place, view);
    const Reach found = {time, kind, is};
    if (kind != kAlone && time < joining.seconds)
      joining = found;
    if (time < least.seconds)
      least = found;
  };
  // Those that may be the least are planned first.
  SmallVector<std::tuple<double, int, int>> from;
  auto add = [&](int is, double before, int place) {
    from.emplace_back(before + leastSeconds(source, place, view), is, place);
  };
  auto made = lies.find(source);
  const bool isMade = !isCenter(region, source) && made != lies.end();
  if (isCenter(region, source)) {
    const auto [center, copy] = spots.lookup(source);
    add(center, 0, center);
    add(copy, 0, copy);
  } else if (isMade) {
    for (const auto &[is, lie] : made->second)
      for (int place : placesFor(source, is))
        add(is, lie.seconds, place);
  } else {
    for (int is : viewsFor(region, source))
      add(is, 0, is);
  }
  llvm::sort(from);
  for (auto [atLeast, is, place] : from) {
    if (atLeast >= least.seconds &&
        (least.kind != kAlone ||
         atLeast >= std::min(joining.seconds, least.seconds + latency)))
      break;
    consider(is, place,
             isMade ? made->second.find(is)->second : Lie{0, nullptr});
  }
  if (const double payers = isMade ? 1 : payersOf(source); payers > 1) {
    least.seconds /= payers;
    joining.seconds /= payers;
  }
  if (least.kind != kAlone || joining.seconds >= least.seconds + latency)
    joining = {};
  return known->second;
}

/// Of an operand, for which what is made for one before it lies as `before`, if
/// it is the same; else negative.
Placer::Reaches Placer::reachOperand(const Region &region, OpOperand &operand,
                                     Value source, int view, int before) {
  if (before >= 0)
    return {{seconds(source, before, view)}, {}};
  Reaches how = reach(region, source, view);
  // The first that reads what is shared waits for its move.
  for (const SharedMove &move : sharedMoves)
    if (move.op == operand.getOwner() &&
        move.operand == operand.getOperandNumber() && move.view == view)
      how.least.kind = move.kind;
  return how;
}

/// By operand the one before it that has what the region makes for this, too;
/// -1 where there is none.
SmallVector<int> Placer::findBefore(const Region &region,
                                    ArrayRef<Value> sources) {
  SmallVector<int> before;
  for (auto [i, source] : llvm::enumerate(sources)) {
    auto same = llvm::find(sources.take_front(i), source);
    bool isMade = !isCenter(region, source) && lies.contains(source);
    before.push_back(isMade && same != sources.take_front(i).end()
                         ? same - sources.begin()
                         : -1);
  }
  return before;
}

/// The time that operands save that come together, each as `reaches` says:
/// first the least, or so that it joins others.
double Placer::join(MutableArrayRef<Reach> operands,
                    ArrayRef<Reaches> reaches) {
  const double latency = ways.getLatency();
  double saved = 0;
  SmallVector<int> kinds;
  auto take = [&](int kind) {
    if (kind == kAlone)
      return;
    if (llvm::is_contained(kinds, kind))
      saved += latency;
    else
      kinds.push_back(kind);
  };
  for (auto &&[operand, how] : llvm::zip_equal(operands, reaches)) {
    operand = how.least;
    take(operand.kind);
  }
  auto more = [](const Reaches &how) {
    return how.joining.seconds - how.least.seconds;
  };
  for (auto &&[operand, how] : llvm::zip_equal(operands, reaches)) {
    const int kind = how.joining.kind;
    if (kind == kAlone || operand.kind != kAlone)
      continue;
    // What the first of its kind takes is made good by those behind it.
    double gain = llvm::is_contained(kinds, kind) ? latency : 0;
    gain -= more(how);
    for (auto &&[other, its] : llvm::zip_equal(operands, reaches))
      if (&its != &how && other.kind == kAlone && its.joining.kind == kind &&
          !llvm::is_contained(kinds, kind))
        gain += latency - more(its);
    if (gain <= 0)
      continue;
    operand = how.joining;
    saved -= more(how);
    take(kind);
  }
  return saved;
}

/// At most `reach`, without a plan.
double Placer::leastReach(const Region &region, Value source, int view) {
  auto [known, isNew] = leastReached[source].try_emplace(view, kNever);
  double &least = known->second;
  if (!isNew)
    return least;
  if (isCenter(region, source)) {
    const auto [center, copy] = spots.lookup(source);
    return least = std::min(leastSeconds(source, center, view),
                            leastSeconds(source, copy, view));
  }
  if (auto made = lies.find(source); made != lies.end()) {
    for (const auto &[is, lie] : made->second)
      if (lie.seconds < least)
        for (int place : placesFor(source, is))
          least =
              std::min(least, lie.seconds + leastSeconds(source, place, view));
  } else {
    for (int is : viewsFor(region, source))
      least = std::min(least, leastSeconds(source, is, view));
    least /= payersOf(source);
  }
  return least;
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
  const SmallVector<int> before = findBefore(region, sources);
  SmallVector<const llvm::DenseMap<int, double> *> least;
  for (Value source : sources)
    least.push_back(&leastReached.find(source)->second);
  const double latency = ways.getLatency();
  auto consider = [&](const Way &way) {
    double limit = bound;
    if (auto same = made.find(way.result); same != made.end())
      limit = std::min(limit, same->second.seconds);
    // One after the other, or at the least all with one latency.
    double sum, together;
    auto add = [&](double seconds) {
      sum += seconds;
      together += std::max(seconds - latency, 0.);
      return std::min(sum, together) <= limit;
    };
    sum = way.work;
    together = way.work + latency;
    for (auto [source, known, view, other] :
         llvm::zip_equal(sources, least, way.operands, before)) {
      if (other >= 0)
        continue;
      auto found = known->find(view);
      if (!add(found != known->end() ? found->second
                                     : leastReach(region, source, view)))
        return;
    }
    sum = way.work;
    together = way.work + latency;
    SmallVector<Reach> operands(sources.size());
    SmallVector<Reaches> reaches;
    for (auto [operand, source, view, other] : llvm::zip_equal(
             placed.op->getOpOperands(), sources, way.operands, before)) {
      reaches.push_back(reachOperand(region, operand, source, view,
                                     other < 0 ? -1 : way.operands[other]));
      if (!add(reaches.back().least.seconds))
        return;
    }
    sum -= join(operands, reaches);
    if (sum > limit)
      return;
    const bool isExchange = operands.size() == 1 &&
                            operands[0].kind == kExchange &&
                            isOnTheWay(placed.op);
    const Lie better = {sum, &way, isExchange ? kExchange : kAlone};
    auto [lie, isNew] = made.insert({way.result, better});
    if (!isNew && sum < lie->second.seconds)
      lie->second = better;
  };
  consider(placed.now);
  if (!asItIs) {
    ways.spend(kWay * double(placed.ways->size()));
    for (const Way &way : *placed.ways)
      if (!ways.isSpent())
        consider(way);
  }
  if (isCenter(region, result) || !isJoined(result) ||
      uses.find(result)->second.size() == 1)
    return;
  for (auto &[view, lie] : made)
    lie.seconds += reachEnds(result, view, view, asItIs);
}

/// The ways that make `value` lie as `view` after the least time.
void Placer::choose(const Region &region, Value value, int view,
                    llvm::DenseMap<Operation *, const Way *> &chosen) {
  const Way *way = lies[value][view].way;
  Operation *op = value.getDefiningOp();
  chosen[op] = way;
  SmallVector<Value> sources;
  SmallVector<Reaches> reaches;
  for (Value operand : op->getOperands())
    sources.push_back(sourceOf(operand));
  const SmallVector<int> before = findBefore(region, sources);
  for (auto [operand, source, need, other] :
       llvm::zip_equal(op->getOpOperands(), sources, way->operands, before))
    reaches.push_back(reachOperand(region, operand, source, need,
                                   other < 0 ? -1 : way->operands[other]));
  SmallVector<Reach> operands(sources.size());
  join(operands, reaches);
  for (auto [source, other, how] : llvm::zip_equal(sources, before, operands))
    if (other < 0 && !isCenter(region, source) && lies.contains(source))
      choose(region, source, how.from, chosen);
}

/// With moves that operands share: each that takes less time, of those that
/// there are `now`, and of those of a solution for which each operand would pay
/// a part.
Placer::Solution Placer::findBest(const Region &region, ArrayRef<Shared> now,
                                  double bound) {
  kindsOfEnds.clear();
  Solution best = solve(region, {}, {}, /*asItIs=*/false, bound);
  SmallVector<Shared> candidates(now);
  if (!reads.empty()) {
    paysParts = true;
    const Solution inParts = solve(region, {}, {}, /*asItIs=*/false, bound);
    paysParts = false;
    if (!inParts.ways.empty())
      addShared(region, inParts.ways, candidates);
  }
  auto tryMoves = [&](ArrayRef<Shared> shared) {
    Solution other = solve(region, shared, {}, /*asItIs=*/false,
                           std::min(bound, best.seconds));
    if (other.seconds < best.seconds)
      best = std::move(other);
  };
  // One by one, or all at once of many ops.
  const size_t step =
      candidates.size() * region.ops.size() > kMaxTried ? candidates.size() : 1;
  for (size_t i = 0; i < candidates.size() && !ways.isSpent(); i += step) {
    SmallVector<Shared> shared = best.shared;
    shared.append(candidates.begin() + i, candidates.begin() + i + step);
    tryMoves(shared);
  }
  // One in place of another from which it is taken: it may come directly.
  if (step == 1 && !best.shared.empty()) {
    SmallVector<Shared> taken;
    addShared(region, best.ways, taken);
    for (const Shared &each : taken)
      for (size_t i = 0; i < best.shared.size() && !ways.isSpent(); ++i)
        if (SmallVector<Shared> shared = best.shared;
            !llvm::is_contained(shared, each)) {
          shared[i] = each;
          tryMoves(shared);
        }
  }
  // One kind for what is returned, after the other.
  size_t makers = 0;
  for (const auto &[kind, its] : findReturned())
    makers += its.size();
  for (int kind : kindsOfEnds.takeVector()) {
    if (makers < 2 || ways.isSpent())
      break;
    SmallVector<int> together(best.waiting);
    together.push_back(kind);
    Solution other = solve(region, best.shared, together, /*asItIs=*/false,
                           std::min(bound, best.seconds));
    if (other.seconds < best.seconds)
      best = std::move(other);
  }
  return best;
}

Placer::Solution Placer::solve(const Region &region, ArrayRef<Shared> shared,
                               ArrayRef<int> together, bool asItIs,
                               double bound) {
  const double paid =
      pay(region, shared) + ways.getLatency() * double(together.size());
  waiting.assign(together.begin(), together.end());
  if (paid > bound || paid == kNever)
    return {};
  bound -= paid;
  this->isAsItIs = asItIs;
  lies.clear();
  places.clear();
  reached.clear();
  leastReached.clear();
  // Of the op and those before it in its tree; and how many centers must be
  // known for it.
  llvm::DenseMap<Value, double> least;
  llvm::DenseMap<Value, size_t> stages;
  double all = 0;
  const size_t last = region.centers.size();
  std::vector<SmallVector<const Placed *>> byStage(last + 1);
  for (const Placed *placed : region.ops) {
    Value result = placed->op->getResult(0);
    double sum = placed->least;
    size_t stage = 0;
    for (Value operand : placed->op->getOperands()) {
      Value source = sourceOf(operand);
      const size_t number =
          llvm::find(region.centers, source) - region.centers.begin();
      if (number < last)
        stage = std::max(stage, number + 1);
      else
        sum += least.lookup(source);
      stage = std::max(stage, stages.lookup(source));
    }
    least[result] = sum;
    stages[result] = stage;
    all += placed->least;
    byStage[stage].push_back(placed);
  }

  Solution best;
  auto finish = [&](double before) {
    SmallVector<std::pair<Value, int>> ends;
    for (const Placed *placed : region.ops) {
      Value value = placed->op->getResult(0);
      if (isCenter(region, value) || isJoined(value))
        continue;
      double least = kNever;
      int view = -1;
      for (const auto &[from, lie] : lies[value]) {
        if (lie.seconds + reachEnds(value, from, from, asItIs, true) >= least)
          continue;
        double sum = lie.seconds + reachEnds(value, from, from, asItIs);
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
    best = {before, {}, SmallVector<Shared>(shared), waiting, {}};
    for (Value center : region.centers) {
      best.centers.push_back(spots.lookup(center));
      if (inside.contains(center.getDefiningOp()))
        ends.emplace_back(center, best.centers.back().first);
    }
    llvm::DenseMap<Operation *, const Way *> chosen;
    for (auto [value, view] : ends)
      choose(region, value, view, chosen);
    for (const Placed *placed : region.ops)
      best.ways.push_back(*chosen.lookup(placed->op));
  };
  // For each view of the first centers, what `before` is spent on in place of
  // `work`, the least that the ops take that make them.
  auto solveStage = [&](auto &solveNext, size_t stage, double before,
                        double work) -> void {
    // Other ops take their least work at the least.
    for (const Placed *placed : byStage[stage])
      evaluate(region, *placed, asItIs,
               bound - all + least.lookup(placed->op->getResult(0)) - before +
                   work);
    if (stage == last)
      return finish(before);
    // The views in which the center may lie, and where it may have a copy:
    // where a use has it, and it moves there.
    Value center = region.centers[stage];
    llvm::MapVector<int, Lie> from;
    if (auto made = lies.find(center); made != lies.end())
      from = made->second;
    else
      from.insert({numberOf(center), {0, nullptr}});
    llvm::SetVector<int> needs;
    for (const Placed *placed : region.ops)
      for (auto [i, operand] : llvm::enumerate(placed->op->getOperands()))
        if (sourceOf(operand) == center) {
          needs.insert(placed->now.operands[i]);
          if (!asItIs)
            for (const Way &way : *placed->ways)
              needs.insert(way.operands[i]);
        }
    const double workThen = work + least.lookup(center);
    auto solveFrom = [&](int is, int copy, double then) {
      if (ways.isSpent())
        return;
      // What the rest takes at the least.
      const double limit = std::min(bound, best.seconds) - all + workThen;
      if (then + leastSeconds(center, is, copy) +
              reachEnds(center, is, copy, asItIs, true) >
          limit)
        return;
      then += seconds(center, is, copy) + reachEnds(center, is, copy, asItIs);
      if (then > limit)
        return;
      spots[center] = {is, copy};
      reached[center].clear();
      leastReached[center].clear();
      solveNext(solveNext, stage + 1, then, workThen);
    };
    for (const auto &[is, lie] : from) {
      solveFrom(is, is, before + lie.seconds);
      for (int copy : needs)
        if (copy != is)
          solveFrom(is, copy, before + lie.seconds);
    }
  };
  solveStage(solveStage, 0, 0, 0);
  best.seconds += paid;
  return best;
}
