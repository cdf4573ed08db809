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

#include <set>

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
    Result<CollectivePlan> plan =
        CollectivePlan::create(collective, module->axes(step), *tensors);
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
    ASSERT_EQ(plan.natives.size(), 1u) << "rank " << rank;
    const Native &native = plan.natives[0];
    EXPECT_EQ(native.kind, kind);
    EXPECT_EQ(native.count, count);
    EXPECT_EQ(native.source.buffer, 0);
    EXPECT_EQ(native.target.buffer, 1);
    EXPECT_EQ(native.source.offset, 0);
    EXPECT_EQ(native.target.offset, 0);
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
    ASSERT_EQ(planned.plans[rank].natives.size(), 1u);
    const Native &native = planned.plans[rank].natives[0];
    EXPECT_EQ(native.source.buffer, h);
    EXPECT_EQ(native.target.buffer, h);
    EXPECT_EQ(native.target.offset, native.source.offset);
  }
}

/// One device sends about twice what it has, however many lack it; of little it
/// sends all to each.
TEST(CollectivePlan, ABroadcastIsAScatterAndAnAllGather) {
  for (const bool small : {false, true}) {
    const int64_t columns = small ? 300 : 1030, all = columns * 4;
    Planned planned = planAll({CollectiveKind::Broadcast,
                               "<x = 4>",
                               {1, columns},
                               "[(did(x) * 1 | 2:3), _]",
                               "[_, _]",
                               {"x"}});
    int64_t sent = 0, received = 0;
    for (size_t rank = 0; rank < planned.plans.size(); ++rank) {
      const CollectivePlan &plan = planned.plans[rank];
      ASSERT_EQ(plan.phases.size(), small ? 1u : 2u);
      EXPECT_EQ(plan.traffic.bytesReceived, rank == 2 ? 0 : all);
      if (rank == 2)
        EXPECT_EQ(plan.traffic.bytesSent, small ? 3 * all : all + 2 * 1088);
      sent += plan.traffic.bytesSent;
      received += plan.traffic.bytesReceived;
    }
    EXPECT_EQ(sent, received);
  }
}

/// Several tensors have the phases of one, and a native form if each has one.
TEST(CollectivePlan, TensorsGoTogether) {
  for (int64_t last : {100, 0}) {
    SCOPED_TRACE(last);
    PlanBuilder b("<tp = 4>");
    std::vector<fb::Pair> pairs;
    auto add = [&](fb::DType dtype, int64_t extent) {
      std::string n = std::to_string(pairs.size());
      int x = b.input("x" + n, {extent}, "[_], partial = [tp : sum]", dtype);
      pairs.emplace_back(x, b.output("y" + n, {extent}, "[_]", dtype));
    };
    add(fb::DType::F32, 64);
    add(fb::DType::F64, 32);
    // Of no elements there is nothing for a library to do.
    add(fb::DType::F32, last);
    b.collective(CollectiveKind::AllReduce, pairs[0].source(),
                 pairs[0].target(), {"tp"}, fb::Combiner::Sum,
                 {pairs.begin() + 1, pairs.end()});
    Planned planned = planAll(b, 4);
    for (int rank = 0; rank < 4; ++rank) {
      const CollectivePlan &plan = planned.plans[rank];
      EXPECT_EQ(planned.native[rank], last != 0);
      ASSERT_EQ(plan.phases.size(), 2u);
      ASSERT_EQ(plan.phases[0].folds.size(), 3u);
      EXPECT_EQ(plan.phases[0].folds[0].dtype, DType::F32);
      EXPECT_EQ(plan.phases[0].folds[1].dtype, DType::F64);
      // Scratch of its own for each.
      std::set<int64_t> scratch;
      size_t messages = 0;
      for (const auto &message : plan.phases[0].receives) {
        EXPECT_EQ(message.place.buffer, Place::kScratch);
        EXPECT_LE(message.place.offset + message.bytes, plan.scratchBytes);
        scratch.insert(message.place.offset);
        ++messages;
      }
      EXPECT_EQ(scratch.size(), messages);
      EXPECT_GE(messages, 2 * 3u);
    }
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
