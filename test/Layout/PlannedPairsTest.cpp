//===- PlannedPairsTest.cpp - every plan is right -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every pair of views of small tensors is planned, the steps run by definition
// on all devices, and the result compared with the value that each device must
// hold. `PlannerTests --long` (minutes) sees more views, shapes and meshes.
//
//===----------------------------------------------------------------------===//

#include "MoveSimulation.h"

#include <iostream>

using namespace tessera;
using namespace tessera::layout;
using namespace tessera::layout::test;

/// `subs` cut at the borders of `others`.
static std::vector<SubAxis> cutAt(const std::vector<SubAxis> &subs,
                                  const std::vector<SubAxis> &others) {
  std::vector<SubAxis> result;
  for (const SubAxis &sub : subs) {
    int64_t end = sub.pre * sub.size;
    std::set<int64_t> borders = {sub.pre, end};
    for (const SubAxis &other : others)
      for (int64_t border : {other.pre, other.pre * other.size})
        if (other.axis == sub.axis && border % sub.pre == 0 &&
            end % border == 0)
          borders.insert(border);
    for (auto at = borders.begin(); std::next(at) != borders.end(); ++at)
      result.push_back({sub.axis, *at, *std::next(at) / *at});
  }
  return result;
}

/// The states of `view` that `other` does not have, and whether one of them
/// comes after a state that both have: it cannot be reduced.
struct Changes {
  std::vector<Partial> states; ///< in order, those without axes too
  bool blocked = false;
};
static Changes changesOf(const View &view, const View &other) {
  std::vector<SubAxis> borders = partialAxesOf(view);
  for (const SubAxis &sub : partialAxesOf(other))
    borders.push_back(sub);
  Changes changes;
  bool stays = false;
  for (const Partial &state : view.partial) {
    Partial left{{}, state.combiner};
    bool keeps = false;
    for (const SubAxis &sub : cutAt(state.axes, borders)) {
      bool kept = false;
      for (const Partial &same : other.partial) {
        std::vector<SubAxis> pieces = cutAt(same.axes, borders);
        kept |= same.combiner == state.combiner &&
                std::find(pieces.begin(), pieces.end(), sub) != pieces.end();
      }
      keeps |= kept;
      if (!kept)
        left.axes.push_back(sub);
    }
    changes.blocked |= stays && !left.axes.empty();
    stays |= keeps;
    changes.states.push_back(std::move(left));
  }
  return changes;
}

/// The values of devices combined over states, the first state first.
class Combined {
public:
  Combined(const std::vector<Partial> &states, const Tensor &tensor) {
    for (const Partial &state : states)
      levels.push_back({state.combiner, groupsOf(state.axes, tensor)});
  }

  template <typename ValueOfRank>
  int64_t at(int64_t rank, const ValueOfRank &value) const {
    return at(rank, levels.size(), value);
  }

private:
  struct Level {
    Combiner combiner;
    std::vector<std::vector<int64_t>> groups;
  };
  std::vector<Level> levels;

  template <typename ValueOfRank>
  int64_t at(int64_t rank, size_t level, const ValueOfRank &value) const {
    if (!level)
      return value(rank);
    const Level &last = levels[level - 1];
    int64_t result = identityOf(last.combiner);
    for (int64_t peer : last.groups[rank])
      result = combine(last.combiner, result, at(peer, level - 1, value));
    return result;
  }
};

/// What each rank holds after a move, combined over its states, is what it was:
/// a state that stays may have been combined and made anew.
static void checkContents(const Tensor &tensor, const View &from,
                          const View &to, const Contents &after) {
  Combined reduced(from.partial, tensor), added(to.partial, tensor);
  std::vector<std::vector<int64_t>> digits;
  for (const Coords &coords : tensor.coords)
    digits.push_back(digitsOf(partialAxesOf(from), tensor.mesh, coords));
  const std::vector<Local> &locals = tensor.localsOf(to);
  for (size_t rank = 0; rank < locals.size(); ++rank) {
    const std::vector<int64_t> &elements = locals[rank].elements;
    ASSERT_EQ(after[rank].size(), elements.size());
    for (size_t i = 0; i < elements.size(); ++i)
      ASSERT_EQ(added.at(rank, [&](int64_t peer) { return after[peer][i]; }),
                reduced.at(rank,
                           [&](int64_t peer) {
                             return addend(elements[i], digits[peer]);
                           }))
          << "rank " << rank;
  }
}

/// Plans from one view of `tensor` to another, for elements of all `sizes`.
static void checkPair(const Tensor &tensor, const View &from, const View &to,
                      const std::vector<int64_t> &sizes) {
  const auto &[shape, mesh, coords] =
      std::tie(tensor.shape, tensor.mesh, tensor.coords);
  SCOPED_TRACE(toString(from, mesh) + " to " + toString(to, mesh) + " on " +
               toString(mesh));
  Machine machine;
  Contents before = sourceContents(tensor, from);
  // States that are new, and what their devices lack; what they cannot but
  // send.
  int64_t newStates = 0, lacks = 0, leaves = 0;
  for (const Partial &state : changesOf(to, from).states)
    newStates += !state.axes.empty();
  const bool onlyAdds =
      newStates &&
      std::ranges::all_of(changesOf(from, to).states, [](const Partial &state) {
        return state.axes.empty();
      });
  if (onlyAdds)
    lacks = lackOfNewStates(tensor, from, to);
  std::optional<Moved> direct;
  if (from.partial == to.partial)
    direct = runTransfers(tensor, from, to, before);
  if (onlyAdds || direct)
    leaves = mostThatLeave(tensor, from, to);
  // What plans for several sizes have in common is run once.
  std::map<std::string, Moved> done;
  for (int64_t size : sizes) {
    Result<Plan> plan = planMove({shape, size, from, to}, mesh, machine);
    if (changesOf(from, to).blocked) {
      EXPECT_FALSE(bool(plan));
      return;
    }
    ASSERT_TRUE(bool(plan)) << plan.message();
    Traffics known;
    const int64_t lowerBound =
        *findLowerBound({shape, size, from, to}, mesh, machine, known);
    SCOPED_TRACE(plan->chosen.text);
    std::vector<const Candidate *> candidates = {&plan->chosen};
    if (plan->loser)
      candidates.push_back(&*plan->loser);
    for (const Candidate *candidate : candidates) {
      SCOPED_TRACE(candidate->text);
      std::string key = candidate->text;
      for (const Step &step : candidate->steps)
        key += toString(step.to, mesh);
      auto [place, isNew] = done.try_emplace(key);
      Moved &total = place->second;
      if (isNew) {
        View at = from;
        total.contents = before;
        for (const Step &step : candidate->steps) {
          SCOPED_TRACE(toString(step.kind));
          EXPECT_TRUE(isCanonical(step.to, shape, mesh));
          Moved moved = runStep(tensor, step, at, total.contents);
          total.contents = std::move(moved.contents);
          // What a library does for one sender is its own.
          if (step.kind != Step::Kind::Broadcast)
            total.sent += moved.sent;
          total.received += moved.received;
          total.copies += moved.copies;
          at = step.to;
        }
        EXPECT_EQ(at.dims, to.dims);
        EXPECT_EQ(at.partial, to.partial);
        checkContents(tensor, from, to, total.contents);
      }
      EXPECT_GE(
          std::max(candidate->cost.bytesSent, candidate->cost.bytesReceived),
          lowerBound);
      EXPECT_GE(candidate->cost.bytesSent, total.sent * size);
      EXPECT_GE(candidate->cost.bytesReceived, total.received * size);
      EXPECT_GE(candidate->cost.copies, total.copies);
    }
    if (plan->loser)
      EXPECT_LE(plan->chosen.cost.seconds,
                plan->loser->cost.seconds * (1 + 1e-9));

    const int64_t sharing = sizeOf(partialAxesOf(to));
    auto bound = [&](int64_t received) {
      return std::max((received * size + sharing - 1) / sharing, leaves * size);
    };
    if (onlyAdds) {
      EXPECT_EQ(lowerBound, bound(lacks));
      if (!lacks && newStates == 1)
        EXPECT_EQ(plan->chosen.cost.seconds, 0);
    }
    if (direct) {
      EXPECT_EQ(lowerBound, bound(direct->received));
      double seconds =
          direct->received
              ? machine.latency + std::max(direct->sent, direct->received) *
                                      size / machine.bandwidth
              : 0;
      // Only a faster plan may receive more.
      if (plan->chosen.cost.bytesReceived > direct->received * size)
        EXPECT_LT(plan->chosen.cost.seconds - 1e-15,
                  seconds + 2 * (sizeOf(shape) * size) / machine.copy);
    }
  }
}

/// Every pair of views, or every `stride`-th; for small and large elements, so
/// that latency and bandwidth count in turn.
static void checkAll(const char *meshText, const Shape &shape,
                     const Kinds &kinds = {}, int64_t stride = 1) {
  Tensor tensor(shape, makeMesh(meshText));
  std::vector<View> views = viewsOf(shape, tensor.mesh, kinds);
  int64_t pair = 0;
  for (const View &from : views) {
    for (const View &to : views) {
      if (pair++ % stride)
        continue;
      checkPair(tensor, from, to, {4, 4 << 20});
      if (::testing::Test::HasFailure())
        return;
    }
  }
  if (longRun)
    std::cout << meshText << ' ' << ::testing::PrintToString(shape) << ": "
              << pair / stride << " pairs" << std::endl;
}

/// Axes of 2, 3, 4 and 6, one or two of them, and ranks in another order.
static const char *const kMeshes[] = {
    "<x=2>",      "<x=3>",      "<x=4>",      "<x=6>",
    "<x=2, y=2>", "<x=2, y=3>", "<x=3, y=2>", "<x=2, y=3, devices=iota(y, x)>"};
static const char *const kMeshesOf8[] = {"<x=4, y=2>", "<x=2, y=2, z=2>"};

/// What the suite sees, and with --long more.
template <typename T>
static std::vector<T> seen(std::vector<T> always, const std::vector<T> &more) {
  if (longRun)
    always.insert(always.end(), more.begin(), more.end());
  return always;
}

TEST(PlannedPairs, EveryPairOf1DViews) {
  Pool pool;
  Kinds kinds{.twoStates = true, .pool = &pool};
  for (auto text : kMeshes)
    for (int64_t extent :
         seen<int64_t>({0, 1, 5, 6, 12}, {2, 3, 4, 7, 8, 9, 10, 11, 13, 24}))
      checkAll(text, {extent}, kinds, kSample);
  for (auto text : kMeshesOf8)
    for (int64_t extent : seen<int64_t>({}, {0, 1, 3, 5, 8, 12, 13}))
      checkAll(text, {extent}, kinds, kSample);
}

TEST(PlannedPairs, EveryPairOf2DViews) {
  for (auto text : kMeshes)
    for (Shape shape : seen<Shape>({{4, 6}, {5, 3}, {0, 3}, {1, 6}},
                                   {{4, 4}, {3, 7}, {12, 2}}))
      checkAll(text, shape, {.twoStates = true}, kSample);
  for (auto text : kMeshesOf8)
    for (Shape shape : seen<Shape>({}, {{4, 6}, {5, 3}}))
      checkAll(text, shape, {.twoStates = true}, kSample);
  Pool pool;
  for (auto text :
       seen<const char *>({}, {"<x=2>", "<x=3>", "<x=2, y=2>", "<x=4>"}))
    checkAll(text, {4, 6}, {.twoStates = true, .pool = &pool}, kSample);
}

TEST(PlannedPairs, EveryPairOf3DViews) {
  checkAll("<x=2>", {2, 3, 4}, {}, kSample);
  for (auto text : {"<x=2, y=2>", "<x=2, y=3>", "<x=4>"})
    for (Shape shape : seen<Shape>({{2, 3, 2}}, {{4, 1, 3}, {2, 5, 2, 1}}))
      checkAll(text, shape, {.twoStates = true}, kSample);
}

TEST(PlannedPairs, EveryPairOfViewsOnParts) {
  for (auto text : {"<x=2, y=2>", "<x=2, y=3>", "<x=4>"})
    for (Shape shape : seen<Shape>({{1, 4}, {1, 5}}, {{1, 3, 2}, {4, 1, 3}}))
      checkAll(text, shape, {.parts = true, .twoStates = true}, kSample);
  for (auto text : kMeshesOf8)
    for (Shape shape : seen<Shape>({}, {{1, 8}, {1, 5}}))
      checkAll(text, shape, {.parts = true}, kSample);
}

TEST(PlannedPairs, OtherCombiners) {
  for (auto text : {"<x=2, y=2>", "<x=4>"}) {
    for (Combiner combiner : {Combiner::Max, Combiner::Min}) {
      checkAll(text, {6}, {.combiner = combiner, .twoStates = true}, kSample);
      checkAll(text, {4, 6}, {.combiner = combiner, .twoStates = true},
               kSample);
    }
  }
}

TEST(PlannedPairs, PartsOfAnAxisThatDoNotFit) {
  // 6 devices as 2 * 3 and as 3 * 2: these digits are not independent, and have
  // none in common.
  Tensor tensor({8}, makeMesh("<x=6>"));
  for (auto [from, to] :
       {std::pair{"[_], partial = [x:(1)2 : sum]",
                  "[_], partial = [x:(1)3 : sum]"},
        std::pair{"[did(x:(1)2) * _]", "[did(x:(3)2) * _]"},
        std::pair{"[2 * did(x:(1)2) * 2], partial = [x:(2)3 : sum]",
                  "[did(x:(3)2) * 4]"}})
    checkPair(tensor, view(from, tensor.shape, tensor.mesh),
              view(to, tensor.shape, tensor.mesh), {4, 4 << 20});
}

TEST(PlannedPairs, NothingMovesOfAnEmptyTensor) {
  Tensor tensor({0, 3}, makeMesh("<x=2>"));
  View from = view("[_, did(x) * _]", tensor.shape, tensor.mesh);
  View to = view("[flat(2) did(x) * _]", tensor.shape, tensor.mesh);
  for (auto [a, b] : {std::pair{from, to}, std::pair{to, from}})
    checkPair(tensor, a, b, {4});
}

/// A plan for a dynamic extent holds for every extent up to the maximum.
static void checkDynamic(const char *meshText, const Shape &shape,
                         int64_t stride = 1) {
  Mesh mesh = makeMesh(meshText);
  Shape symbolic = shape;
  symbolic[0] = kDynamic;
  std::vector<bool> dynamic(shape.size(), false);
  dynamic[0] = true;
  std::vector<Tensor> tensors;
  for (int64_t extent = 1; extent <= shape[0]; ++extent) {
    Shape now = shape;
    now[0] = extent;
    tensors.emplace_back(now, mesh);
  }
  std::vector<View> views = viewsOf(symbolic, mesh, {.flat = false});
  int64_t pair = 0;
  for (const View &from : views) {
    for (const View &to : views) {
      if (pair++ % stride)
        continue;
      SCOPED_TRACE(toString(from, mesh) + " to " + toString(to, mesh));
      // A view may not reach the maximum.
      if (!verify(from, shape, mesh) || !verify(to, shape, mesh))
        continue;
      Result<Plan> plan =
          planMove({shape, 1 << 20, from, to, dynamic}, mesh, {});
      ASSERT_TRUE(bool(plan)) << plan.message();
      SCOPED_TRACE(plan->chosen.text);
      for (const Tensor &tensor : tensors) {
        SCOPED_TRACE(tensor.shape[0]);
        View at = canonicalize(from, tensor.shape, mesh);
        View end = canonicalize(to, tensor.shape, mesh);
        Contents contents = sourceContents(tensor, at);
        View begin = at;
        for (const Step &step : plan->chosen.steps) {
          EXPECT_TRUE(isCanonical(step.to, symbolic, mesh));
          Step current = step;
          current.to = canonicalize(step.to, tensor.shape, mesh);
          contents = runStep(tensor, current, at, contents).contents;
          at = current.to;
        }
        EXPECT_EQ(at, end);
        checkContents(tensor, begin, end, contents);
      }
      if (::testing::Test::HasFailure())
        return;
    }
  }
}

TEST(PlannedPairs, DynamicExtents) {
  checkDynamic("<x=2, y=2>", {9});
  checkDynamic("<x=2, y=3>", {13}, kSample);
  checkDynamic("<x=4>", {9});
  checkDynamic("<x=6>", {7}, kSample);
  checkDynamic("<x=2, y=2>", {5, 4}, kSample);
}
