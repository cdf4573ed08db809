//===- MovesTest.cpp - planned moves of any two views, run ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random pairs of views go through the planner; the steps of each plan become
// collectives of one module, which runs over the threads transport. Every
// element of every result is compared.
//
//===----------------------------------------------------------------------===//

#include "../Layout/MoveSimulation.h"
#include "Layout/PlanViews.h"
#include "Ranks.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <set>

using namespace tessera;
using namespace tessera::test;
using layout::SubAxis;

namespace {

double numberOf(const layout::Shape &index) {
  double number = 1;
  for (int64_t i : index)
    number = number * 13 + i;
  return number;
}

int64_t digits(const std::vector<SubAxis> &axes, const layout::Mesh &mesh,
               const layout::Coords &coords) {
  int64_t number = 0;
  for (const SubAxis &sub : axes)
    number = number * sub.size + sub.digit(mesh, coords);
  return number;
}

/// The addends of one element, over all ranks that `coords` becomes when the
/// digits of `axes` vary.
double sumOver(const std::vector<SubAxis> &axes, const layout::Mesh &mesh,
               layout::Coords coords,
               const std::function<double(const layout::Coords &)> &addend,
               size_t from = 0) {
  if (from == axes.size())
    return addend(coords);
  const SubAxis &sub = axes[from];
  int64_t rest = mesh.axes[sub.axis].size / (sub.pre * sub.size);
  double sum = 0;
  for (int64_t digit = 0; digit < sub.size; ++digit) {
    layout::Coords next = coords;
    next[sub.axis] += (digit - sub.digit(mesh, coords)) * rest;
    sum += sumOver(axes, mesh, next, addend, from + 1);
  }
  return sum;
}

/// `values`: what the first extent is when the module is bound; planned is its
/// maximum, in `shape`. Empty for a static one.
void checkMoves(const char *meshText, const layout::Shape &shape, int count,
                unsigned seed, std::vector<int64_t> values = {}) {
  SCOPED_TRACE(meshText);
  if (std::getenv("TESSERA_LONG"))
    count *= 20;
  layout::Mesh mesh = *layout::parseMesh(meshText);
  const bool dynamic = !values.empty();
  layout::Shape symbolic = shape;
  std::vector<bool> dynamicDims(shape.size());
  if (dynamic) {
    symbolic[0] = layout::kDynamic;
    dynamicDims[0] = true;
  }
  std::vector<layout::View> views = layout::test::viewsOf(symbolic, mesh, {});
  // A view may not reach the maximum.
  std::erase_if(views, [&](const layout::View &view) {
    return !layout::verify(view, shape, mesh);
  });
  std::mt19937 random(seed);
  PlanBuilder b(meshText);
  std::vector<Size> sizes(shape.begin(), shape.end());
  if (dynamic)
    sizes[0] = Size::symbol(b.symbol("n", shape[0]));
  // Half of the tensors lie in some other order in memory.
  auto textOf = [&](layout::View view) {
    if (random() % 2) {
      view.alloc.emplace(view.dims.size());
      std::iota(view.alloc->begin(), view.alloc->end(), 0);
      std::shuffle(view.alloc->begin(), view.alloc->end(), random);
    }
    return layout::toString(view, mesh);
  };
  struct Move {
    layout::View from, to;
    layout::View parts; ///< that become addends of a new partial state
  };
  std::vector<Move> moves;
  while (static_cast<int>(moves.size()) < count) {
    layout::View from = views[random() % views.size()];
    layout::View to = views[random() % views.size()];
    auto plan = layout::planMove({shape, 4, from, to, dynamicDims}, mesh, {});
    ASSERT_TRUE(plan) << plan.message();
    std::string number = std::to_string(moves.size());
    int last = b.input("x" + number, sizes, textOf(from));
    std::string text;
    for (const layout::Step &step : plan->chosen.steps) {
      int next = b.tensor("t", sizes, textOf(step.to),
                          &step == &plan->chosen.steps.back()
                              ? fb::Storage::External
                              : fb::Storage::Symmetric);
      std::vector<std::string> axes;
      for (const SubAxis &sub : step.axes)
        axes.push_back(layout::toString(sub, mesh));
      b.collective(static_cast<fb::CollectiveKind>(step.kind), last, next, axes,
                   static_cast<fb::Combiner>(step.combiner));
      b.plan.steps.back()->op = layout::toString(from, mesh) + " -> " +
                                layout::toString(to, mesh) + " by " +
                                layout::toString(step.kind);
      last = next;
    }
    int port = b.port(last, fb::PortKind::Output);
    b.plan.ports[port]->name = "y" + number;
    Move move{from, to, from};
    const layout::View *before = &from;
    for (const layout::Step &step : plan->chosen.steps) {
      auto made = layout::subtract(partialAxes(step.to), partialAxes(*before));
      if (!made.empty())
        move.parts = *before;
      before = &step.to;
    }
    moves.push_back(std::move(move));
  }
  auto addend = [&](const std::string &port, const layout::Shape &index,
                    const layout::Coords &coords) {
    const layout::View &from = moves[std::stoi(port.substr(1))].from;
    return numberOf(index) * (1 + digits(partialAxes(from), mesh, coords));
  };
  const std::string module = b.module();
  auto check = [&](RunOptions options) {
    // Of what all devices along a new state's axes lack: what it is, and their
    // sum.
    std::mutex mutex;
    std::map<std::tuple<std::string, layout::Shape, layout::Coords>,
             std::pair<double, double>>
        lacking;
    auto addedBy = [&](const std::string &port) {
      const Move &move = moves[std::stoi(port.substr(1))];
      const std::vector<SubAxis> after = partialAxes(move.to);
      return layout::subtract(after,
                              layout::intersect(partialAxes(move.from), after));
    };
    // The first device along them.
    auto firstOf = [&](const std::string &port, int rank) {
      layout::Coords coords = mesh.coordsOfRank(rank);
      for (const SubAxis &sub : addedBy(port))
        coords[sub.axis] -= sub.digit(mesh, coords) *
                            (mesh.axes[sub.axis].size / (sub.pre * sub.size));
      return coords;
    };
    options.shared = [&](const std::string &port, const layout::Shape &index,
                         int rank, double got) {
      std::lock_guard lock(mutex);
      lacking[{port, index, firstOf(port, rank)}].second += got;
    };
    layout::Shape actual = shape;
    if (dynamic && !options.symbols.empty())
      actual[0] = options.symbols[0];
    auto holds = [&](const layout::View &view, const layout::Coords &coords,
                     const layout::Shape &index) {
      size_t d = 0;
      for (const layout::Dim &dim : view.dims) {
        int64_t bound = 1, at = 0;
        for (const size_t end = d + dim.span; d < end; ++d) {
          bound *= actual[d];
          at = at * actual[d] + index[d];
        }
        if (std::ranges::none_of(
                layout::localRuns(dim.product, bound, mesh, coords),
                [&](const layout::Run &run) {
                  return at >= run.global && at < run.global + run.length;
                }))
          return false;
      }
      return true;
    };
    runModule(
        module, mesh.numDevices(),
        [&](const std::string &port, const layout::Shape &index, int rank) {
          return addend(port, index, mesh.coordsOfRank(rank));
        },
        [&](const std::string &port, const layout::Shape &index, int rank) {
          const int number = std::stoi(port.substr(1));
          const auto &[from, to, parts] = moves[number];
          std::vector<SubAxis> before = partialAxes(from),
                               after = partialAxes(to);
          layout::Coords coords = mesh.coordsOfRank(rank);
          std::vector<SubAxis> kept = layout::intersect(before, after);
          std::vector<SubAxis> added = addedBy(port);
          const double value =
              sumOver(layout::subtract(before, kept), mesh, coords,
                      [&](const layout::Coords &coords) {
                        return addend(port, index, coords);
                      });
          // Of the devices along new states' axes the first that has it adds
          // it; of what none has, some one.
          int64_t first = -1;
          sumOver(added, mesh, coords, [&](const layout::Coords &each) {
            if (first < 0 && holds(parts, each, index))
              first = digits(added, mesh, each);
            return 0.0;
          });
          if (first >= 0)
            return digits(added, mesh, coords) == first ? value : 0.0;
          std::lock_guard lock(mutex);
          lacking[{port, index, firstOf(port, rank)}].first = value;
          return std::numeric_limits<double>::quiet_NaN();
        },
        options);
    for (const auto &[at, values] : lacking)
      EXPECT_EQ(values.first, values.second) << std::get<0>(at);
  };
  if (!dynamic)
    check({});
  for (int64_t value : values) {
    SCOPED_TRACE(value);
    RunOptions options;
    options.symbols = {value};
    check(options);
  }
}

TEST(Moves, AnyTwoViewsOnOneAxis) {
  checkMoves("<x = 2>", {6, 5}, 120, 1);
  checkMoves("<x = 3>", {7, 4}, 120, 2);
  checkMoves("<x = 4>", {6, 5}, 120, 3);
  checkMoves("<x = 6>", {8, 5}, 120, 4);
}

TEST(Moves, AnyTwoViewsOnTwoAxes) {
  checkMoves("<x = 2, y = 2>", {6, 5}, 120, 5);
  checkMoves("<x = 2, y = 3>", {8, 3}, 120, 6);
  checkMoves("<x = 3, y = 2, devices = [0, 2, 4, 1, 3, 5]>", {4, 7}, 120, 7);
}

TEST(Moves, AnyTwoViewsOfThreeDimensions) {
  checkMoves("<x = 2, y = 2>", {2, 3, 4}, 120, 8);
}

TEST(Moves, AnyTwoViewsOfADynamicExtent) {
  checkMoves("<x = 2>", {6, 5}, 100, 9, {0, 1, 4, 6});
  checkMoves("<x = 3, y = 2>", {13, 4}, 100, 10, {0, 1, 2, 7, 13});
  checkMoves("<x = 4>", {4, 4, 3}, 100, 11, {0, 1, 2, 3, 4});
  checkMoves("<x = 2, y = 3>", {3, 2, 4}, 100, 12, {0, 1, 2, 3});
}

} // namespace
