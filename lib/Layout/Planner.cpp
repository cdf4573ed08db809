//===- Planner.cpp - how data moves from one view to another --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A candidate is a Chain of steps; each step is classified and priced as it is
// added. The views between steps come from PlanViews.
//
// Without partial states the direct exchange receives the lower bound in one
// phase, so only a sender that serves many, or has more than others, can make
// another candidate cheaper: even parts first, then all-gather. So does an
// exchange that makes a new state: the devices along its axes share what they
// lack together.
//
//===----------------------------------------------------------------------===//

#include "Layout/Planner.h"
#include "Layout/AxisOrder.h"
#include "Layout/PlanViews.h"
#include "Layout/Traffic.h"
#include "Layout/ViewInternal.h"
#include "Support/Try.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace tessera::layout {

//===----------------------------------------------------------------------===//
// The planner
//===----------------------------------------------------------------------===//

namespace {
/// A candidate while it is built.
struct Chain {
  Candidate candidate;
  View at; ///< where the data is now
};

class Planner {
public:
  Planner(const Move &move, Shape symbolic, const Mesh &mesh,
          const Machine &machine, Traffics &known)
      : move(move), shape(move.shape), mesh(mesh), machine(machine),
        known(known), views(move.shape, std::move(symbolic), mesh) {}

  Status proposeAll();
  Result<std::vector<Candidate>> rank(size_t count);
  Result<Plan> plan();
  Plan planBetween() const;
  int64_t lowerBound();
  std::vector<Candidate> &proposed() { return candidates; }

private:
  // Figures.
  int64_t localElements(const View &view) const;
  int64_t localBytes(const View &view) const {
    return localElements(view) * move.elementBytes;
  }
  const Traffic &trafficOf(const View &from, const View &to) const;
  int64_t boundWithPartial(const View &to,
                           const std::vector<SubAxis> &contract) const;
  int64_t boundOnMoves() const;

  // Steps.
  void add(Chain &chain, Step step, int64_t bytesSent, int64_t bytesReceived,
           bool packFrom, bool packTo) const;
  void addMove(Chain &chain, const View &to) const;
  void addMove(Chain &chain, const View &to, const Traffic &traffic,
               bool generic) const;
  void addReduction(Chain &chain, const View &to,
                    const std::vector<SubAxis> &contract) const;

  // Candidates.
  std::vector<SubAxis> othersOf(const View &view) const;
  void keep(const std::vector<Partial> &kept);
  void proposeKeeping(const std::vector<Partial> &kept);
  Chain start() const { return {{}, from}; }
  void propose(Chain chain);
  void proposeMoves(const Chain &chain);
  void proposeReductions();
  bool makesOneState() const;
  bool alwaysJoins(const View &view) const;
  void proposeParts(const Chain &chain);
  void proposePartsFirst();
  void proposePartsLast();
  Status keepStep();

  const Move &move;
  const Shape &shape;
  const Mesh &mesh;
  const Machine &machine;
  Traffics &known;
  const PlanViews views;
  View from, to;                 ///< `to` without new partial states
  std::vector<SubAxis> contract; ///< which states are reduced along
  std::vector<SubAxis> entering; ///< which new states are along
  std::vector<Candidate> candidates;
};
} // namespace

//===----------------------------------------------------------------------===//
// Figures
//===----------------------------------------------------------------------===//

int64_t Planner::localElements(const View &view) const {
  int64_t elements = 1;
  for (int64_t extent : maxLocalShape(view, shape, mesh))
    elements *= extent;
  return elements;
}

const Traffic &Planner::trafficOf(const View &from, const View &to) const {
  auto [traffic, isNew] = known.try_emplace({from, to});
  if (isNew)
    traffic->second = computeTraffic(from, to, views);
  return traffic->second;
}

/// An element with p addends that q devices need takes p - 1 receptions to be
/// combined and q - 1 more to reach the others; and each device receives at
/// least once what it needs, or the devices along a state that stays together.
int64_t Planner::boundWithPartial(const View &to,
                                  const std::vector<SubAxis> &contract) const {
  if (!to.partial.empty())
    return ceilDiv(localBytes(to), sizeOf(partialAxes(to)));
  int64_t elements = 1;
  for (int64_t extent : shape)
    elements *= extent;
  int64_t devices = mesh.numDevices();
  int64_t holders = devices / sizeOf(splitAxes(to));
  int64_t receptions = elements * (sizeOf(contract) - 2 + holders);
  return std::max(localBytes(to),
                  ceilDiv(receptions * move.elementBytes, devices));
}

/// What all devices along a state lack one of them must receive: of a new one
/// of any, and what is combined on the way of one that stays.
int64_t Planner::boundOnMoves() const {
  const int64_t received =
      ceilDiv(lackOf(from, move.to, views) * move.elementBytes,
              sizeOf(partialAxes(move.to)));
  // In one exchange who sends most sends what it cannot but send, or more.
  if (trafficOf(from, move.to).sent * move.elementBytes <= received)
    return received;
  return std::max(received, leavesOf(from, move.to, views) * move.elementBytes);
}

/// Between meshes that list other devices: one exchange among all of them, in
/// which whole blocks move if only devices change.
Plan Planner::planBetween() const {
  const bool blocks = samePlaces(move.from, move.to);
  Step step{blocks ? Step::Kind::Permute : Step::Kind::Exchange,
            unusedAxes(mesh, {}), Combiner::Sum, move.to};
  // (Of many devices nobody asks which is the busiest.)
  const int64_t bytes =
      busiestBytes({move}, mesh)
          .value_or(std::max(localBytes(move.from), localBytes(move.to)));
  Chain chain{{}, move.from};
  add(chain, std::move(step), bytes, bytes, !blocks, !blocks);
  return {std::move(chain.candidate), std::nullopt};
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void Planner::add(Chain &chain, Step step, int64_t bytesSent,
                  int64_t bytesReceived, bool packFrom, bool packTo) const {
  Cost &cost = chain.candidate.cost;
  int64_t before = localBytes(chain.at), after = localBytes(step.to);
  if (step.kind != Step::Kind::Slice) {
    cost.phases += 1;
    cost.copies += packFrom + packTo;
    cost.seconds +=
        machine.latency +
        double(std::max(bytesSent, bytesReceived)) / machine.bandwidth +
        double(packFrom * before + packTo * after) / machine.copy;
  }
  cost.bytesSent += bytesSent;
  cost.bytesReceived += bytesReceived;
  // An all-reduce works in place, and a slice is a view of its source.
  bool inPlace =
      step.kind == Step::Kind::AllReduce || step.kind == Step::Kind::Slice;
  cost.peakBytes = std::max(cost.peakBytes, inPlace ? before : before + after);

  std::string &text = chain.candidate.text;
  if (!text.empty())
    text += ", then ";
  if (step.kind == Step::Kind::Slice) {
    text += step.to.partial == chain.at.partial ? "local slice"
            : step.to.dims == chain.at.dims     ? "whole to partial"
                                                : "split to partial";
  } else {
    text += toString(step.kind);
    if (step.kind == Step::Kind::Exchange &&
        step.to.partial != chain.at.partial)
      text += " to partial";
  }
  step.axes = merged(std::move(step.axes));
  const std::vector<SubAxis> axes =
      step.kind == Step::Kind::Exchange
          ? subtract(partialAxes(step.to), partialAxes(chain.at))
          : step.axes;
  if (!axes.empty()) {
    text += " over [";
    for (const SubAxis &sub : merged(axes)) {
      if (text.back() != '[')
        text += ", ";
      text += toString(sub, mesh);
    }
    text += "]";
  }
  chain.at = step.to;
  chain.candidate.steps.push_back(std::move(step));
}

/// Adds the step without reduction that leads to `to`: classified, or as a
/// plain exchange.
void Planner::addMove(Chain &chain, const View &to, const Traffic &traffic,
                      bool generic) const {
  const View &at = chain.at;
  int64_t sent = traffic.sent * move.elementBytes;
  int64_t received = traffic.received * move.elementBytes;
  std::vector<SubAxis> before = splitAxes(at), after = splitAxes(to);
  std::vector<SubAxis> leaving = subtract(before, after);
  std::vector<SubAxis> entering = subtract(after, before);
  Step step{Step::Kind::Exchange, traffic.axes, Combiner::Sum, to};
  if (!generic && !received && views.alwaysSlices(at, to)) {
    step.kind = Step::Kind::Slice;
    step.axes = entering;
  } else if (generic) {
    // As it is.
  } else if (traffic.permutation && !traffic.dynamic) {
    step.kind = Step::Kind::Permute;
  } else if (entering.empty() && !leaving.empty() &&
             samePlaces(views.gathered(at, leaving), to)) {
    step.axes = leaving;
    if (views.onlyOneHolds(at, leaving)) {
      // Inside, it is a scatter and an all-gather.
      step.kind = Step::Kind::Broadcast;
      int64_t p = sizeOf(leaving);
      sent = received = std::max(received, ceilDiv(2 * received * (p - 1), p));
    } else {
      // On a ring a device sends on what it receives, of equal parts as much as
      // it sends without. Others go from each device to all others.
      step.kind = Step::Kind::AllGather;
    }
  } else if (entering.empty() && leaving.empty() &&
             samePlaces(views.gathered(at, traffic.axes),
                        views.gathered(to, traffic.axes))) {
    step.kind = Step::Kind::AllToAll;
  }
  add(chain, std::move(step), sent, received, traffic.packFrom, traffic.packTo);
}

void Planner::addMove(Chain &chain, const View &to) const {
  if (!samePlaces(chain.at, to))
    addMove(chain, to, trafficOf(chain.at, to), /*generic=*/false);
}

/// Reduces over `contract`: scattered over those axes that split `to`, whole
/// over the others. The dims of `to` are those of the chain's view or split
/// further by some of `contract`.
void Planner::addReduction(Chain &chain, const View &to,
                           const std::vector<SubAxis> &contract) const {
  std::vector<SubAxis> scatter = intersect(contract, splitAxes(to));
  std::vector<Partial> states = chain.at.partial;
  for (const Partial &state : states) {
    std::vector<SubAxis> axes = intersect(state.axes, contract);
    std::vector<SubAxis> scattering = intersect(axes, scatter);
    std::vector<SubAxis> whole = subtract(axes, scattering);
    if (!scattering.empty()) {
      scatter = subtract(scatter, scattering);
      View next = views.gathered(to, scatter);
      next.partial = withoutPartial(chain.at, scattering);
      Traffic traffic = trafficOf(chain.at, next);
      int64_t p = sizeOf(scattering);
      int64_t bytes = std::max(ceilDiv(localBytes(chain.at) * (p - 1), p),
                               localBytes(next) * (p - 1));
      add(chain,
          {Step::Kind::ReduceScatter, scattering, state.combiner,
           views.canonical(std::move(next))},
          bytes, bytes, traffic.packFrom, false);
    }
    if (!whole.empty()) {
      View next = chain.at;
      next.partial = withoutPartial(chain.at, whole);
      int64_t p = sizeOf(whole);
      int64_t bytes = ceilDiv(2 * localBytes(next) * (p - 1), p);
      add(chain,
          {Step::Kind::AllReduce, whole, state.combiner,
           views.canonical(std::move(next))},
          bytes, bytes, false, false);
    }
  }
}

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

/// Closes a chain that has reached `to` and adds it unless it is there already,
/// or passes through a view that is none: digits of one axis may cut it in ways
/// that do not fit together.
void Planner::propose(Chain chain) {
  if (!entering.empty() && chain.at.partial != move.to.partial)
    add(chain, {Step::Kind::Slice, entering, Combiner::Sum, move.to}, 0, 0,
        false, false);
  Candidate &candidate = chain.candidate;
  if (candidate.steps.empty())
    candidate.text = "nothing to move";
  else
    candidate.steps.back().to = move.to;
  for (const Step &step : candidate.steps)
    if (!verify(step.to, shape, mesh))
      return;
  for (const Candidate &other : candidates) {
    bool same = other.text == candidate.text &&
                std::equal(other.steps.begin(), other.steps.end(),
                           candidate.steps.begin(), candidate.steps.end(),
                           [](const Step &a, const Step &b) {
                             return a.kind == b.kind && a.to == b.to;
                           });
    if (same)
      return;
  }
  candidates.push_back(std::move(candidate));
}

/// The axes that do not split `view`, in the order in which views of the move
/// have them, whatever that of the mesh is.
std::vector<SubAxis> Planner::othersOf(const View &view) const {
  AxisOrder order(mesh);
  order.add(move.from);
  order.add(move.to);
  return order.sorted(unusedAxes(mesh, axesOf(view)));
}

/// From where the chain is to `to`: in one step; the rest of the move, then an
/// all-gather; and where one sender serves many, a scatter and an all-gather,
/// or even parts first.
void Planner::proposeMoves(const Chain &chain) {
  if (samePlaces(chain.at, to)) {
    propose(chain);
    return;
  }
  proposeParts(chain);
  Traffic traffic = trafficOf(chain.at, to);
  Chain direct = chain;
  addMove(direct, to, traffic, /*generic=*/false);
  Step::Kind kind = direct.candidate.steps.back().kind;
  propose(std::move(direct));
  if (kind == Step::Kind::Slice && move.step != Step::Kind::Exchange)
    return;
  if (kind != Step::Kind::Exchange) {
    Chain exchange = chain;
    addMove(exchange, to, traffic, /*generic=*/true);
    propose(std::move(exchange));
  }

  auto proposeOver = [&](const View &middle) {
    if (samePlaces(middle, chain.at) || samePlaces(middle, to))
      return;
    Chain twoSteps = chain;
    addMove(twoSteps, middle);
    addMove(twoSteps, to);
    propose(std::move(twoSteps));
  };
  View middle = views.beforeGather(chain.at, to);
  proposeOver(middle);
  // Where the axes of a reduce-scatter have no place of their own.
  if (!chain.candidate.steps.empty()) {
    std::vector<SubAxis> leaving =
        subtract(splitAxes(chain.at), axesOf(middle));
    if (auto spread = views.scattered(middle, leaving))
      proposeOver(*spread);
  }
  if (traffic.sent > traffic.received) {
    if (auto spread = views.scattered(to, othersOf(to)))
      proposeOver(*spread);
    proposeOver(views.evened(chain.at));
  }
}

/// A reduction, then moves. What `to` splits is sliced first where that is
/// free. The reduction is scattered as `to` is and whole over the other axes;
/// or all whole; or all scattered, which makes moves before the last all-gather
/// small; or scattered over devices too that hold the same addends.
void Planner::proposeReductions() {
  Chain base = start();
  std::vector<SubAxis> unused = unusedAxes(mesh, axesOf(from));
  View split = views.sliced(from, to, unused);
  addMove(base, verify(split, shape, mesh) ? split : from);

  auto reduce = [&](const Chain &chain, View view) {
    view.partial = to.partial;
    Chain reduced = chain;
    addReduction(reduced, views.canonical(std::move(view)), contract);
    proposeMoves(reduced);
  };
  auto reduceScattered = [&](const Chain &chain) {
    View as = views.sliced(chain.at, to, contract);
    as.partial = to.partial;
    std::vector<SubAxis> others = subtract(contract, splitAxes(as));
    // Where `to` leaves some of the devices little, all of them combine.
    if (localElements(as) * (sizeOf(contract) / sizeOf(others)) >
        localElements(chain.at))
      if (auto even = views.scattered(chain.at, contract))
        reduce(chain, *even);
    if (others.empty())
      return;
    if (auto all = views.scattered(as, others))
      reduce(chain, *all);
    if (!samePlaces(as, to))
      if (auto all = views.scatteredInBoth(as, to, others))
        reduce(chain, *all);
  };
  reduce(base, views.sliced(base.at, to, contract));
  reduce(base, base.at);
  reduceScattered(base);
  std::vector<SubAxis> idle = othersOf(base.at);
  std::optional<View> spread;
  if (!idle.empty()) {
    spread = views.scatteredInBoth(base.at, to, idle);
    if (!spread)
      spread = views.scattered(base.at, idle);
  }
  if (spread) {
    Chain chain = base;
    addMove(chain, *spread);
    reduce(chain, views.sliced(chain.at, to, contract));
    reduceScattered(chain);
  }
}

/// Of several, each has an identity of its own.
bool Planner::makesOneState() const {
  return 1 == std::ranges::count_if(move.to.partial, [&](const Partial &state) {
           return overlap(state.axes, entering);
         });
}

/// A new state of what the chain has: of its part of `to` each device along the
/// state's axes keeps what none before it has, they share what all of them
/// lack, and elsewhere they have the identity.
void Planner::proposeParts(const Chain &chain) {
  if (!makesOneState())
    return;
  auto proposeFrom = [&](Chain parts) {
    const Traffic traffic = trafficOf(parts.at, move.to);
    Step step{Step::Kind::Slice, entering, Combiner::Sum, move.to};
    if (traffic.received || !alwaysJoins(parts.at)) {
      step.kind = Step::Kind::Exchange;
      step.axes = traffic.axes;
    }
    add(parts, std::move(step), traffic.sent * move.elementBytes,
        traffic.received * move.elementBytes, traffic.packFrom, traffic.packTo);
    propose(std::move(parts));
    return traffic;
  };
  const Traffic direct = proposeFrom(chain);
  // One sender that serves many scatters first.
  if (direct.sent <= direct.received)
    return;
  for (const std::optional<View> &spread :
       {views.scattered(to, othersOf(to)),
        std::optional(views.evened(chain.at))})
    if (spread && !samePlaces(*spread, chain.at)) {
      Chain scattered = chain;
      addMove(scattered, *spread);
      proposeFrom(std::move(scattered));
    }
}

/// Whether the devices along the axes of new states hold all of their part of
/// `to` whatever the dynamic extents are; they are known to at the maximum.
bool Planner::alwaysJoins(const View &view) const {
  if (views.symbolic == shape)
    return true;
  View whole = views.canonical(
      views.gathered(view, intersect(entering, splitAxes(view))));
  return verify(whole, shape, mesh) && views.alwaysSlices(whole, to);
}

/// New states of one combiner with those that are combined, made before.
void Planner::proposePartsFirst() {
  std::vector<SubAxis> parts = intersect(entering, splitAxes(from));
  if (parts.empty() || move.step)
    return;
  View first = views.gathered(from, parts);
  std::vector<SubAxis> axes = partialAxes(from);
  axes.insert(axes.end(), entering.begin(), entering.end());
  for (const View *view : {&move.from, &move.to})
    for (const Partial &state : view->partial)
      if (state.combiner != from.partial[0].combiner)
        return;
  first.partial = {{merged(axes), from.partial[0].combiner}};
  first = views.canonical(std::move(first));
  if (!verify(first, shape, mesh))
    return;
  Chain made = start();
  add(made, {Step::Kind::Slice, entering, Combiner::Sum, first}, 0, 0, false,
      false);
  Move behind = move;
  behind.from = first;
  Planner rest(behind, views.symbolic, mesh, machine, known);
  if (!rest.proposeAll())
    return;
  for (const Candidate &moved : rest.proposed()) {
    Candidate &both = candidates.emplace_back(made.candidate);
    both.steps.insert(both.steps.end(), moved.steps.begin(), moved.steps.end());
    both.text += ", then " + moved.text;
    both.cost += moved.cost;
  }
}

/// A reduction of which each device along the axes of a new state gets a part
/// only, of which they then make the state for nothing.
void Planner::proposePartsLast() {
  if (!makesOneState() || move.step)
    return;
  const View split = views.sliced(to, from, entering);
  const std::vector<SubAxis> left = subtract(entering, splitAxes(split));
  std::vector<std::optional<View>> parts = {split};
  if (!left.empty())
    parts = {views.scatteredInBoth(split, from, left),
             views.scattered(split, left)};
  for (const std::optional<View> &middle : parts) {
    // Digits of an axis that do not fit together are no part of each other.
    if (!middle || !verify(*middle, shape, mesh) ||
        sizeOf(intersect(entering, splitAxes(*middle))) != sizeOf(entering) ||
        !samePlaces(views.gathered(*middle, entering), to))
      continue;
    Move before = move;
    before.to = *middle;
    Planner first(before, views.symbolic, mesh, machine, known);
    if (!first.proposeAll())
      continue;
    for (Candidate &moved : first.proposed())
      propose({std::move(moved), *middle});
  }
}

/// Only what is one step of the kind that the move must have.
Status Planner::keepStep() {
  if (!move.step)
    return Ok{};
  std::string others;
  for (const Candidate &candidate : candidates)
    if (candidate.steps.size() == 1)
      others += (others.empty() ? "" : " or ") + candidate.text;
  // What is one view at the maximum may be two at other extents.
  const bool mayBeNone =
      *move.step == Step::Kind::Slice || *move.step == Step::Kind::Exchange;
  std::erase_if(candidates, [&](const Candidate &candidate) {
    return candidate.steps.empty() ? !mayBeNone
                                   : candidate.steps.size() != 1 ||
                                         candidate.steps[0].kind != *move.step;
  });
  if (!candidates.empty())
    return Ok{};
  return Error{
      "from " + toString(move.from, mesh) + " to " + toString(move.to, mesh) +
      " is no " + toString(*move.step) +
      (others.empty() ? ", nor any other one step" : ", but " + others)};
}

void Planner::keep(const std::vector<Partial> &kept) {
  from = move.from;
  to = move.to;
  if (kept != to.partial) {
    to.partial = kept;
    to = canonicalize(to, views.symbolic, mesh);
  }
  contract = subtract(partialAxes(from), partialAxes(to));
  entering = subtract(partialAxes(move.to), partialAxes(to));
}

void Planner::proposeKeeping(const std::vector<Partial> &kept) {
  keep(kept);
  if (contract.empty()) {
    proposeMoves(start());
  } else {
    proposeReductions();
    proposePartsFirst();
    proposePartsLast();
  }
}

/// States that stay are kept, or combined and made anew.
Status Planner::proposeAll() {
  const std::vector<Partial> kept = commonPartial(move.from, move.to);
  proposeKeeping(kept);
  const bool isFree =
      std::ranges::any_of(candidates, [](const Candidate &candidate) {
        return candidate.cost.seconds == 0;
      });
  // (Of many devices that would be more exchanges than there is memory for.)
  constexpr int64_t kMaxDevices = 1024;
  if (!kept.empty() && !isFree && !move.step &&
      mesh.numDevices() <= kMaxDevices) {
    const auto usual = std::tuple(to, contract, entering);
    proposeKeeping({});
    std::tie(to, contract, entering) = usual;
  }
  return keepStep();
}

/// The text of a candidate with the views between its steps.
static std::string spell(const Candidate &candidate, const Mesh &mesh) {
  std::string text = candidate.text;
  for (size_t i = 0; i + 1 < candidate.steps.size(); ++i)
    text += (i ? " and " : " by ") + toString(candidate.steps[i].to, mesh);
  return text;
}

void tellApart(Candidate &a, Candidate &b, const Mesh &mesh) {
  if (a.text == b.text)
    for (Candidate *candidate : {&a, &b})
      candidate->text = spell(*candidate, mesh);
}

/// The candidates that count, the cheapest `count` of them in order first.
Result<std::vector<Candidate>> Planner::rank(size_t count) {
  TSR_TRY(proposeAll());
  int64_t memory = localBytes(from) + localBytes(to);
  auto fits = [&](const Candidate &candidate) {
    return candidate.cost.peakBytes <= memory;
  };
  if (std::any_of(candidates.begin(), candidates.end(), fits))
    std::erase_if(candidates, std::not_fn(fits));
  auto better = [&](const Candidate &a, const Candidate &b) {
    double more = a.cost.seconds - b.cost.seconds;
    if (std::abs(more) > 1e-9 * b.cost.seconds)
      return more < 0;
    if (a.cost.phases != b.cost.phases)
      return a.cost.phases < b.cost.phases;
    return a.cost.bytesSent + a.cost.bytesReceived <
           b.cost.bytesSent + b.cost.bytesReceived;
  };
  // The first of equals, in the order in which they were proposed.
  for (size_t place = 0; place < std::min(count, candidates.size()); ++place) {
    size_t best = place;
    for (size_t i = place + 1; i < candidates.size(); ++i)
      if (better(candidates[i], candidates[best]))
        best = i;
    std::rotate(candidates.begin() + place, candidates.begin() + best,
                candidates.begin() + best + 1);
  }
  return std::move(candidates);
}

Result<Plan> Planner::plan() {
  Result<std::vector<Candidate>> ranked = rank(2);
  if (!ranked)
    return ranked.error();
  Plan plan;
  plan.chosen = std::move(ranked->front());
  if (ranked->size() > 1) {
    plan.loser = std::move((*ranked)[1]);
    tellApart(plan.chosen, *plan.loser, mesh);
  }
  return plan;
}

int64_t Planner::lowerBound() {
  if (move.fromMesh || move.toMesh)
    return planBetween().chosen.cost.bytesReceived;
  keep(commonPartial(move.from, move.to));
  if (contract.empty())
    return boundOnMoves();
  return move.to.partial == to.partial ? boundWithPartial(to, contract) : 0;
}

static constexpr int64_t kMaxRuns = 1 << 22;

/// A planner for what can be planned.
static Result<Planner> plannerOf(const Move &move, const Mesh &mesh,
                                 const Machine &machine, Traffics &known) {
  for (const View *view : {&move.from, &move.to}) {
    int64_t rank = 0;
    for (const Dim &dim : view->dims)
      rank += dim.span;
    if (rank != int64_t(move.shape.size()))
      return Error{"a view of " + std::to_string(rank) +
                   " dimensions cannot be planned for a tensor of " +
                   std::to_string(move.shape.size())};
  }
  for (int64_t extent : move.shape)
    if (extent < 0)
      return Error{"a move is planned for known extents; give a dynamic "
                   "dimension its maximum"};
  if (move.elementBytes <= 0)
    return Error{"elements of a move have " +
                 std::to_string(move.elementBytes) +
                 " bytes; at least 1 is needed"};
  for (const View *view : {&move.from, &move.to})
    TSR_TRY(verify(*view, move.shape, mesh));
  Shape symbolic = move.shape;
  if (!move.dynamic.empty() && move.dynamic.size() != symbolic.size())
    return Error{"a move says for " + std::to_string(move.dynamic.size()) +
                 " dimensions whether they are dynamic; its tensor has " +
                 std::to_string(symbolic.size())};
  for (size_t dim = 0; dim < move.dynamic.size(); ++dim)
    if (move.dynamic[dim])
      symbolic[dim] = kDynamic;
  for (const View *view : {&move.from, &move.to})
    if (!isCanonical(*view, symbolic, mesh))
      return Error{"a move needs canonical views; " + toString(*view, mesh) +
                   " is not"};
  // Uneven shards are compared run by run.
  for (const Group &group : joinGroups(move.from, move.to, move.shape))
    if (group.changed() && boundOnRuns(group) > kMaxRuns)
      return Error{"a move from " + toString(move.from, mesh) + " to " +
                   toString(move.to, mesh) + " of a dimension of " +
                   std::to_string(group.bound) + " may take more than " +
                   std::to_string(kMaxRuns) +
                   " contiguous pieces; write a view with longer blocks"};
  bool stays = false;
  for (const Partial &state : move.from.partial) {
    View rest = move.from;
    rest.partial = {state};
    std::vector<SubAxis> kept;
    for (const Partial &both : commonPartial(rest, move.to))
      kept.insert(kept.end(), both.axes.begin(), both.axes.end());
    bool reduced = !subtract(state.axes, kept).empty();
    if (reduced && stays)
      return Error{std::string("a partial ") + toString(state.combiner) +
                   " cannot be reduced before the partial state of another "
                   "combiner that the destination keeps"};
    stays |= !kept.empty();
  }
  return Planner(move, std::move(symbolic), mesh, machine, known);
}

Result<Plan> planMove(const Move &move, const Mesh &mesh,
                      const Machine &machine, Traffics &known) {
  Result<Planner> planner = plannerOf(move, mesh, machine, known);
  if (!planner)
    return planner.error();
  return move.fromMesh || move.toMesh ? planner->planBetween()
                                      : planner->plan();
}

Result<int64_t> findLowerBound(const Move &move, const Mesh &mesh,
                               const Machine &machine, Traffics &known) {
  Result<Planner> planner = plannerOf(move, mesh, machine, known);
  if (!planner)
    return planner.error();
  return planner->lowerBound();
}

Result<std::vector<Candidate>> rankCandidates(const Move &move,
                                              const Mesh &mesh,
                                              const Machine &machine,
                                              Traffics &known) {
  Result<Planner> planner = plannerOf(move, mesh, machine, known);
  if (!planner)
    return planner.error();
  return planner->rank(std::numeric_limits<size_t>::max());
}

Result<std::optional<Candidate>> findDescribed(std::string_view description,
                                               const Move &move,
                                               const Mesh &mesh,
                                               const Machine &machine) {
  Traffics known;
  Result<Planner> planner = plannerOf(move, mesh, machine, known);
  if (!planner)
    return planner.error();
  TSR_TRY(planner->proposeAll());
  // Behind the text are two figures.
  const auto figures = description.rfind(',', description.rfind(',') - 1);
  const std::string_view text = description.substr(0, figures);
  for (Candidate &candidate : planner->proposed())
    if (candidate.text == text || spell(candidate, mesh) == text)
      return std::optional(std::move(candidate));
  return std::optional<Candidate>();
}

} // namespace tessera::layout
