//===- CollectivePlanTest.cpp - collectives that a library can do ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which plans are one all-gather, all-reduce or reduce-scatter of a library,
// and that all ranks of a group say the same.
//
//===----------------------------------------------------------------------===//

#include "Exec/CollectivePlan.h"
#include "../Module/PlanBuilder.h"
#include "gtest/gtest.h"

using namespace tessera;
using namespace tessera::test;
using fb::CollectiveKind;
using Native = CollectivePlan::Native;

namespace {

struct Case {
  CollectiveKind kind;
  const char *mesh;
  std::vector<Size> shape;
  const char *from, *to;
  std::vector<std::string> axes;
  fb::Combiner combiner = fb::Combiner::Sum;
  fb::DType dtype = fb::DType::F32;
};

struct Planned {
  std::vector<CollectivePlan> plans; ///< by rank
  std::vector<bool> native;
};

/// Plans the last step of `b` on all ranks.
Planned planAll(PlanBuilder &b, int ranks) {
  Planned planned;
  Result<ModuleReader> module = ModuleReader::read(b.module());
  EXPECT_TRUE(module) << module.message();
  const int step = b.plan.steps.size() - 1;
  const fb::CollectiveT &collective =
      *module->plan().steps[step]->action.AsCollective();
  for (int rank = 0; rank < ranks; ++rank) {
    Result<Tensors> tensors = Tensors::create(*module, rank, {});
    EXPECT_TRUE(tensors) << tensors.message();
    Result<CollectivePlan> plan = CollectivePlan::create(
        collective, module->axes(step), **tensors->get(collective.source),
        **tensors->get(collective.target), module->mesh(), rank);
    EXPECT_TRUE(plan) << plan.message();
    Result<bool> native =
        nativeOnAll(*plan, collective, module->axes(step), *tensors);
    EXPECT_TRUE(native) << native.message();
    planned.native.push_back(*native);
    planned.plans.push_back(std::move(*plan));
  }
  return planned;
}

Planned planAll(const Case &c) {
  PlanBuilder b(c.mesh);
  int x = b.input("x", c.shape, c.from, c.dtype);
  int y = b.output("y", c.shape, c.to, c.dtype);
  b.collective(c.kind, x, y, c.axes, c.combiner);
  return planAll(b, layout::parseMesh(c.mesh)->numDevices());
}

void expectNative(const Case &c, layout::Step::Kind kind, int64_t count) {
  SCOPED_TRACE(std::string(c.mesh) + " " + c.from + " -> " + c.to);
  Planned planned = planAll(c);
  for (size_t rank = 0; rank < planned.plans.size(); ++rank) {
    EXPECT_TRUE(planned.native[rank]) << "rank " << rank;
    const CollectivePlan &plan = planned.plans[rank];
    ASSERT_TRUE(plan.native) << "rank " << rank;
    EXPECT_EQ(plan.native->kind, kind);
    EXPECT_EQ(plan.native->count, count);
    EXPECT_EQ(plan.native->source.buffer, 0);
    EXPECT_EQ(plan.native->target.buffer, 1);
    EXPECT_EQ(plan.native->source.offset, 0);
    EXPECT_EQ(plan.native->target.offset, 0);
  }
}

void expectPhases(const Case &c) {
  SCOPED_TRACE(std::string(c.mesh) + " " + c.from + " -> " + c.to);
  Planned planned = planAll(c);
  for (size_t rank = 0; rank < planned.plans.size(); ++rank)
    EXPECT_FALSE(planned.native[rank]) << "rank " << rank;
}

TEST(CollectivePlan, EvenAllGathersAreNative) {
  expectNative({CollectiveKind::AllGather,
                "<tp = 4>",
                {8, 5},
                "[did(tp) * _, _]",
                "[_, _]",
                {"tp"}},
               layout::Step::Kind::AllGather, 10);
  expectNative({CollectiveKind::AllGather,
                "<tp = 4>",
                {5, 8},
                "[_, did(tp) * _], alloc = (1, 0)",
                "[_, _], alloc = (1, 0)",
                {"tp"}},
               layout::Step::Kind::AllGather, 10);
  // Beside another split, and with a partial state that stays.
  expectNative({CollectiveKind::AllGather,
                "<dp = 2, tp = 3>",
                {6, 8},
                "[did(tp) * _, did(dp) * _]",
                "[_, did(dp) * _]",
                {"tp"}},
               layout::Step::Kind::AllGather, 8);
  expectNative({CollectiveKind::AllGather,
                "<dp = 2, tp = 3>",
                {6, 8},
                "[did(dp) * _, _], partial = [tp : sum]",
                "[_, _], partial = [tp : sum]",
                {"dp"}},
               layout::Step::Kind::AllGather, 24);
  // Over two axes, and on a mesh of another device order.
  expectNative({CollectiveKind::AllGather,
                "<dp = 2, tp = 2, devices = [0, 2, 1, 3]>",
                {8},
                "[did(dp) * did(tp) * _]",
                "[_]",
                {"dp", "tp"}},
               layout::Step::Kind::AllGather, 2);
}

TEST(CollectivePlan, OtherAllGathersAreNot) {
  // Uneven, unpacked, cyclic, the members in another order.
  expectPhases({CollectiveKind::AllGather,
                "<tp = 4>",
                {7, 5},
                "[did(tp) * _, _]",
                "[_, _]",
                {"tp"}});
  expectPhases({CollectiveKind::AllGather,
                "<tp = 4>",
                {5, 8},
                "[_, did(tp) * _]",
                "[_, _]",
                {"tp"}});
  expectPhases({CollectiveKind::AllGather,
                "<tp = 4>",
                {8, 5},
                "[_ * did(tp), _]",
                "[_, _]",
                {"tp"}});
  expectPhases({CollectiveKind::AllGather,
                "<dp = 2, tp = 2>",
                {8},
                "[did(dp) * did(tp) * _]",
                "[_]",
                {"tp", "dp"}});
  // One rank; nothing to move.
  expectPhases({CollectiveKind::AllGather,
                "<tp = 1>",
                {8},
                "[did(tp) * _]",
                "[_]",
                {"tp"}});
  expectPhases({CollectiveKind::AllGather,
                "<tp = 2>",
                {4, 0},
                "[did(tp) * _, _]",
                "[_, _]",
                {"tp"}});
}

TEST(CollectivePlan, AllReduces) {
  expectNative({CollectiveKind::AllReduce,
                "<tp = 3>",
                {5, 7},
                "[_, _], partial = [tp : sum]",
                "[_, _]",
                {"tp"}},
               layout::Step::Kind::AllReduce, 35);
  expectNative({CollectiveKind::AllReduce,
                "<tp = 3>",
                {5, 7},
                "[_, _], alloc = (1, 0), partial = [tp : sum]",
                "[_, _], alloc = (1, 0)",
                {"tp"}},
               layout::Step::Kind::AllReduce, 35);
  expectNative({CollectiveKind::AllReduce,
                "<tp = 3>",
                {5, 7},
                "[_, _], partial = [tp : max]",
                "[_, _]",
                {"tp"},
                fb::Combiner::Max,
                fb::DType::I32},
               layout::Step::Kind::AllReduce, 35);
  // A library's maximum may lose a NaN.
  expectPhases({CollectiveKind::AllReduce,
                "<tp = 3>",
                {5, 7},
                "[_, _], partial = [tp : max]",
                "[_, _]",
                {"tp"},
                fb::Combiner::Max});
  expectPhases({CollectiveKind::AllReduce,
                "<tp = 3>",
                {5, 7},
                "[_, _], alloc = (1, 0), partial = [tp : sum]",
                "[_, _]",
                {"tp"}});
}

TEST(CollectivePlan, ReduceScatters) {
  expectNative({CollectiveKind::ReduceScatter,
                "<tp = 4>",
                {8, 5},
                "[_, _], partial = [tp : sum]",
                "[did(tp) * _, _]",
                {"tp"}},
               layout::Step::Kind::ReduceScatter, 10);
  expectNative({CollectiveKind::ReduceScatter,
                "<dp = 2, tp = 3>",
                {12, 8},
                "[did(dp) * _, _], partial = [tp : sum]",
                "[did(dp) * did(tp) * _, _]",
                {"tp"}},
               layout::Step::Kind::ReduceScatter, 16);
  expectPhases({CollectiveKind::ReduceScatter,
                "<tp = 4>",
                {7, 5},
                "[_, _], partial = [tp : sum]",
                "[did(tp) * _, _]",
                {"tp"}});
  expectPhases({CollectiveKind::ReduceScatter,
                "<tp = 4>",
                {5, 8},
                "[_, _], partial = [tp : sum]",
                "[_, did(tp) * _]",
                {"tp"}});
  expectPhases({CollectiveKind::ReduceScatter,
                "<tp = 4>",
                {16},
                "[_], partial = [tp : sum]",
                "[_ * did(tp)]",
                {"tp"}});
}

TEST(CollectivePlan, InPlaceThroughAnAlias) {
  PlanBuilder b("<tp = 3>");
  int h = b.tensor("h", {50}, "[_], partial = [tp : sum]");
  int s = b.alias("s", h, fb::AliasKind::Same, {50}, "[_]");
  b.collective(CollectiveKind::AllReduce, h, s, {"tp"});
  Planned planned = planAll(b, 3);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(planned.native[rank]);
    const Native &native = *planned.plans[rank].native;
    EXPECT_EQ(native.source.buffer, h);
    EXPECT_EQ(native.target.buffer, h);
    EXPECT_EQ(native.target.offset, native.source.offset);
  }
}

TEST(CollectivePlan, GroupsListTheFirstAxisOutermost) {
  layout::Mesh mesh =
      *layout::parseMesh("<dp = 2, tp = 2, devices = [0, 2, 1, 3]>");
  const layout::SubAxis dp{0, 1, 2}, tp{1, 1, 2};
  using Ranks = std::vector<int>;
  EXPECT_EQ(groupAlong({dp, tp}, mesh, 3), (Ranks{0, 2, 1, 3}));
  EXPECT_EQ(groupAlong({tp, dp}, mesh, 3), (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(groupAlong({tp}, mesh, 3), (Ranks{1, 3}));
  EXPECT_EQ(groupAlong({dp}, mesh, 3), (Ranks{2, 3}));
}

} // namespace
