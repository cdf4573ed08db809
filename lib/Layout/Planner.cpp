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
// phase, so only a sender that serves many can make another candidate cheaper:
// scatter first, then all-gather.
//
//===----------------------------------------------------------------------===//

#include "Layout/Planner.h"
#include "Layout/PlanViews.h"
#include "Layout/ViewInternal.h"
#include "Support/Try.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
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
  Result<Plan> plan();
  std::vector<Candidate> &proposed() { return candidates; }

private:
  // Figures.
  int64_t localElements(const View &view) const;
  int64_t localBytes(const View &view) const {
    return localElements(view) * move.elementBytes;
  }
  bool contiguous(const View &view, size_t begin, size_t end) const;
  const Traffic &trafficOf(const View &from, const View &to) const;
  Traffic computeTraffic(const View &from, const View &to) const;
  std::vector<bool> countPairs(const Exchange &exchange, int64_t scale,
                               Traffic &traffic) const;
  void countShares(const Exchange &exchange, int64_t scale,
                   Traffic &traffic) const;
  bool onlyFirstHolds(const View &view, const std::vector<SubAxis> &axes) const;
  int64_t boundWithPartial(const View &to,
                           const std::vector<SubAxis> &contract) const;

  // Steps.
  void add(Chain &chain, Step step, int64_t bytesSent, int64_t bytesReceived,
           bool packFrom, bool packTo) const;
  void addMove(Chain &chain, const View &to) const;
  void addMove(Chain &chain, const View &to, const Traffic &traffic,
               bool generic) const;
  void addReduction(Chain &chain, const View &to,
                    const std::vector<SubAxis> &contract) const;

  // Candidates.
  Chain start() const { return {{}, from}; }
  void propose(Chain chain);
  void proposeMoves(const Chain &chain);
  void proposeReductions();
  void proposeParts();
  Status keepStep();

  const Move &move;
  const Shape &shape;
  const Mesh &mesh;
  const Machine &machine;
  Traffics &known;
  const PlanViews views;
  View from, to; ///< `to` without new partial states
  std::vector<SubAxis> contract; ///< which states are reduced along
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

/// Whether parts of dims [begin, end), each contiguous in these dims, are
/// contiguous in memory. An undecided allocation can make them so.
bool Planner::contiguous(const View &view, size_t begin, size_t end) const {
  if (!view.alloc)
    return true;
  Shape local = maxLocalShape(view, shape, mesh);
  size_t next = begin;
  for (int64_t dim : *view.alloc) {
    if (next == end)
      break;
    if (size_t(dim) == next)
      ++next;
    else if (local[dim] != 1)
      return false;
  }
  return true;
}

/// Of a shard and a device; beyond, what a move costs is estimated where a
/// shard has several holders.
static constexpr int64_t kMaxPairs = 1 << 18;

const Traffic &Planner::trafficOf(const View &from, const View &to) const {
  auto [traffic, isNew] = known.try_emplace({from, to});
  if (isNew)
    traffic->second = computeTraffic(from, to);
  return traffic->second;
}

Traffic Planner::computeTraffic(const View &symbolicFrom,
                                const View &symbolicTo) const {
  View from = views.atMaximum(symbolicFrom), to = views.atMaximum(symbolicTo);
  Exchange exchange(from, to, shape, mesh, Coords(mesh.axes.size(), 0));
  Traffic traffic;
  traffic.axes = merged(exchange.active);

  // At smaller extents digits may be at other places than at the maximum.
  for (const Group &group : joinGroups(symbolicFrom, symbolicTo, shape)) {
    if (!group.changed() || !views.isDynamic(group, symbolicFrom))
      continue;
    traffic.dynamic = true;
    for (const Product *product : {&group.from, &group.to}) {
      std::vector<SubAxis> more = subtract(axesOf(*product), traffic.axes);
      traffic.axes.insert(traffic.axes.end(), more.begin(), more.end());
    }
  }

  // Unchanged dims only multiply; no class has more of them than this.
  int64_t scale = 1;
  Shape local = maxLocalShape(from, shape, mesh);
  for (size_t i = 0; i < exchange.groups.size(); ++i)
    if (std::find(exchange.changed.begin(), exchange.changed.end(), i) ==
        exchange.changed.end())
      for (size_t dim = exchange.groups[i].fromBegin;
           dim < exchange.groups[i].fromEnd; ++dim)
        scale *= local[dim];

  // Where each shard has one holder, nobody chooses who gives it.
  bool chosen = false;
  for (int64_t shard = 0; shard < exchange.numShards; ++shard)
    chosen |= exchange.holdersOf(shard).size() > 1;
  std::vector<bool> shared(exchange.changed.size(), false);
  if (chosen &&
      exchange.numShards * int64_t(exchange.members.size()) <= kMaxPairs)
    shared = countPairs(exchange, scale, traffic);
  else
    countShares(exchange, scale, traffic);

  int64_t cutFrom = 0, cutTo = 0;
  for (size_t i = 0; i < exchange.changed.size(); ++i) {
    const Group &group = exchange.groups[exchange.changed[i]];
    const Overlap &overlap = exchange.overlaps[i];
    if (overlap.fromCut || shared[i]) {
      ++cutFrom;
      traffic.packFrom |= !overlap.fromContiguous ||
                          !contiguous(from, group.fromBegin, group.fromEnd);
    }
    if (overlap.toCut || shared[i]) {
      ++cutTo;
      traffic.packTo |=
          !overlap.toContiguous || !contiguous(to, group.toBegin, group.toEnd);
    }
  }
  traffic.packFrom |= cutFrom > 1;
  traffic.packTo |= cutTo > 1;
  return traffic;
}

static int64_t most(const std::vector<int64_t> &values) {
  return *std::max_element(values.begin(), values.end());
}

/// What each device gives to each. The changed groups in which several holders
/// share one taker.
std::vector<bool> Planner::countPairs(const Exchange &exchange, int64_t scale,
                                      Traffic &traffic) const {
  size_t count = exchange.members.size();
  std::vector<int64_t> sent(count, 0), received(count, 0);
  std::vector<int64_t> takers(count, 0), givers(count, 0);
  std::vector<bool> shared(exchange.changed.size(), false);
  for (int64_t shard = 0; shard < exchange.numShards; ++shard)
    exchange.forShares(shard, [&](const Exchange::Share &share) {
      ++takers[share.giver];
      ++givers[share.taker];
      if (share.range)
        shared[share.range->along] = true;
      if (share.giver == share.taker)
        return;
      sent[share.giver] += scale * share.elements;
      received[share.taker] += scale * share.elements;
    });
  traffic.sent = most(sent);
  traffic.received = most(received);
  traffic.permutation =
      traffic.received && most(takers) == 1 && most(givers) == 1;
  return shared;
}

/// The same from what each shard gives and each part needs in all, as if those
/// that have a shard shared its takers evenly.
void Planner::countShares(const Exchange &exchange, int64_t scale,
                          Traffic &traffic) const {
  struct Sums {
    std::vector<int64_t> elements, parts; ///< of a part, by the other side's
    explicit Sums(int64_t count) : elements(count, 0), parts(count, 0) {}
    void add(int64_t part, int64_t common) {
      elements[part] += common;
      parts[part] += common != 0;
    }
  };
  std::vector<Sums> gives, needs;
  int64_t classes = 1; // of devices that need the same
  for (const Overlap &overlap : exchange.overlaps) {
    Sums from(overlap.from.count), to(overlap.to.count);
    for (int64_t f = 0; f < overlap.from.count; ++f)
      for (const Overlap::Meeting &meeting : overlap.meetingsOf(f)) {
        from.add(f, meeting.elements);
        to.add(meeting.to, meeting.elements);
      }
    gives.push_back(std::move(from));
    needs.push_back(std::move(to));
    classes *= overlap.to.count;
  }
  const int64_t copies =
      std::max<int64_t>(int64_t(exchange.members.size()) / classes, 1);

  bool isPermutation = true;
  for (const Exchange::Member &member : exchange.members) {
    int64_t given = copies, takers = copies, needed = 1, givers = 1;
    for (size_t i = 0; i < gives.size(); ++i) {
      given *= gives[i].elements[member.has[i]];
      takers *= gives[i].parts[member.has[i]];
      needed *= needs[i].elements[member.needs[i]];
      givers *= needs[i].parts[member.needs[i]];
    }
    const int64_t own = exchange.common(member, member);
    const int64_t sharing = int64_t(exchange.holdersOf(member.shard).size());
    const int64_t shared = std::max<int64_t>(given - sharing * own, 0);
    traffic.sent =
        std::max(traffic.sent, scale * ((shared + sharing - 1) / sharing));
    traffic.received = std::max(traffic.received, scale * (needed - own));
    isPermutation &= sharing == 1 && takers <= 1 && givers <= 1;
  }
  traffic.permutation = traffic.received && isPermutation;
}

/// Whether only devices with coordinate 0 on all of `axes` hold anything.
bool Planner::onlyFirstHolds(const View &view,
                             const std::vector<SubAxis> &axes) const {
  for (size_t dim = 0; dim < view.dims.size(); ++dim) {
    const Product &product = view.dims[dim].product;
    int64_t bound = boundOf(view, dim, shape);
    Parts parts(product);
    if (std::none_of(parts.subs.begin(), parts.subs.end(),
                     [&](const SubAxis &sub) {
                       return std::any_of(axes.begin(), axes.end(),
                                          [&](const SubAxis &other) {
                                            return overlap(sub, other);
                                          });
                     }))
      continue;
    for (int64_t part = 0; part < parts.count; ++part) {
      Coords coords = parts.coordsOf(mesh, part);
      bool first =
          std::all_of(axes.begin(), axes.end(), [&](const SubAxis &sub) {
            return sub.digit(mesh, coords) == 0;
          });
      if (!first && localExtent(product, bound, mesh, coords))
        return false;
    }
  }
  return true;
}

/// An element with p addends that q devices need takes p - 1 receptions to be
/// combined and q - 1 more to reach the others; and each device receives at
/// least once what it needs.
int64_t Planner::boundWithPartial(const View &to,
                                  const std::vector<SubAxis> &contract) const {
  int64_t elements = 1;
  for (int64_t extent : shape)
    elements *= extent;
  int64_t devices = mesh.numDevices() / sizeOf(partialAxes(to));
  int64_t holders = devices / sizeOf(splitAxes(to));
  int64_t receptions = elements * (sizeOf(contract) - 2 + holders);
  return std::max(localBytes(to),
                  ceilDiv(receptions * move.elementBytes, devices));
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
    cost.seconds += machine.alpha +
                    double(std::max(bytesSent, bytesReceived)) / machine.beta +
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
  }
  step.axes = merged(std::move(step.axes));
  if (step.kind != Step::Kind::Exchange && !step.axes.empty()) {
    text += " over [";
    for (const SubAxis &sub : step.axes) {
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
    if (onlyFirstHolds(at, leaving)) {
      // Inside, a library scatters and gathers, or sends in a pipeline.
      step.kind = Step::Kind::Broadcast;
      int64_t p = sizeOf(leaving);
      sent = received = std::max(received, ceilDiv(2 * received * (p - 1), p));
    } else {
      // On a ring a device sends on what it receives.
      step.kind = Step::Kind::AllGather;
      sent = received;
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
  std::vector<SubAxis> entering =
      subtract(partialAxes(move.to), partialAxes(to));
  if (!entering.empty())
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

/// From where the chain is to `to`: in one step; the rest of the move, then an
/// all-gather; and where one sender serves many, a scatter and an all-gather.
void Planner::proposeMoves(const Chain &chain) {
  if (samePlaces(chain.at, to)) {
    propose(chain);
    return;
  }
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
  if (traffic.sent > traffic.received)
    if (auto spread = views.scattered(to, unusedAxes(mesh, axesOf(to))))
      proposeOver(*spread);
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
  std::vector<SubAxis> idle = unusedAxes(mesh, axesOf(base.at));
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

/// What a new state's axes split needs no other device: each keeps its part,
/// and has the identity where others have theirs.
void Planner::proposeParts() {
  std::vector<SubAxis> parts = intersect(
      subtract(partialAxes(move.to), partialAxes(to)), splitAxes(from));
  const auto states = std::count_if(
      move.to.partial.begin(), move.to.partial.end(),
      [&](const Partial &state) { return overlap(state.axes, parts); });
  if (states == 1 &&
      samePlaces(views.canonical(views.gathered(from, parts)), to))
    propose(start());
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

Status Planner::proposeAll() {
  from = move.from;
  to = move.to;
  std::vector<Partial> kept = commonPartial(from, to);
  if (kept != to.partial) {
    to.partial = kept;
    to = canonicalize(to, views.symbolic, mesh);
  }
  contract = subtract(partialAxes(from), partialAxes(to));
  if (contract.empty()) {
    proposeParts();
    proposeMoves(start());
  } else {
    proposeReductions();
  }
  return keepStep();
}

Result<Plan> Planner::plan() {
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
  for (size_t place : {0, 1}) {
    if (place >= candidates.size())
      break;
    size_t best = place;
    for (size_t i = place + 1; i < candidates.size(); ++i)
      if (better(candidates[i], candidates[best]))
        best = i;
    std::rotate(candidates.begin() + place, candidates.begin() + best,
                candidates.begin() + best + 1);
  }

  Plan plan;
  bool newPartial = move.to.partial != to.partial;
  if (!contract.empty() && !newPartial)
    plan.lowerBoundBytes = boundWithPartial(to, contract);
  else if (contract.empty() && !newPartial && !samePlaces(from, to))
    plan.lowerBoundBytes = trafficOf(from, to).received * move.elementBytes;
  plan.chosen = std::move(candidates[0]);
  if (candidates.size() > 1)
    plan.loser = std::move(candidates[1]);
  return plan;
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
  return planner->plan();
}

std::string describe(const Candidate &candidate) {
  const Cost &cost = candidate.cost;
  char figures[64];
  snprintf(figures, sizeof figures, ", %lld bytes, %.1f us",
           static_cast<long long>(std::max(cost.bytesSent, cost.bytesReceived)),
           cost.seconds * 1e6);
  return candidate.text + figures;
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
  for (Candidate &candidate : planner->proposed())
    if (candidate.text == description.substr(0, figures))
      return std::optional(std::move(candidate));
  return std::optional<Candidate>();
}

Result<const Plan *> Plans::get(const Shape &shape, int64_t elementBytes,
                                const View &from, const View &to,
                                std::optional<Step::Kind> step) {
  Key key{shape, elementBytes, from, to, step};
  if (auto known = plans.find(key); known != plans.end())
    return &known->second;
  Move move{shape,
            elementBytes,
            canonicalize(from, shape, mesh),
            canonicalize(to, shape, mesh),
            {},
            step};
  Result<Plan> plan = planMove(move, mesh, machine, traffics[shape]);
  if (!plan)
    return plan.error();
  return &plans.emplace(std::move(key), std::move(*plan)).first->second;
}

} // namespace tessera::layout
