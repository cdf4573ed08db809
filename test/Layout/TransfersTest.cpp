//===- TransfersTest.cpp - what ranks send and receive --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// expandTransfers on all ranks for every pair of views of small tensors: both
// sides agree, each element arrives once and is the right one, and no device
// receives what it holds.
//
//===----------------------------------------------------------------------===//

#include "MoveSimulation.h"

using namespace tessera;
using namespace tessera::layout;
using namespace tessera::layout::test;

/// Elements that each rank needs and does not hold, the largest over the ranks.
static int64_t lacking(const View &from, const View &to, const Shape &shape,
                       const Mesh &mesh) {
  int64_t most = 0;
  for (int64_t rank = 0; rank < mesh.numDevices(); ++rank) {
    Coords coords = mesh.coordsOfRank(rank);
    std::vector<int64_t> has = localOf(from, shape, mesh, coords).elements;
    std::set<int64_t> held(has.begin(), has.end());
    int64_t count = 0;
    for (int64_t element : localOf(to, shape, mesh, coords).elements)
      count += !held.count(element);
    most = std::max(most, count);
  }
  return most;
}

static void checkPair(const View &from, const View &to, const Shape &shape,
                      const Mesh &mesh) {
  SCOPED_TRACE(toString(from, mesh) + " to " + toString(to, mesh) + " on " +
               toString(mesh));
  Moved moved =
      runTransfers(from, to, shape, mesh, sourceContents(from, shape, mesh));
  EXPECT_EQ(moved.contents, sourceContents(to, shape, mesh));
  EXPECT_EQ(moved.received, lacking(from, to, shape, mesh));
}

/// Every pair, or every `stride`-th.
static void checkAll(const char *meshText, const Shape &shape,
                     int64_t stride = 1) {
  Mesh mesh = makeMesh(meshText);
  std::vector<View> views = viewsOf(shape, mesh, /*withPartial=*/true);
  int64_t pair = 0;
  for (const View &from : views) {
    for (const View &to : views) {
      if (from.partial != to.partial || pair++ % stride)
        continue;
      checkPair(from, to, shape, mesh);
      if (::testing::Test::HasFailure())
        return;
    }
  }
}

TEST(Transfers, EveryPairOf1DViews) {
  for (auto text : {"<x=2>", "<x=3>", "<x=2, y=2>", "<x=2, y=3>", "<x=4>",
                    "<x=2, y=3, devices=iota(y, x)>"})
    for (int64_t extent : {1, 5, 6, 12})
      checkAll(text, {extent});
}

TEST(Transfers, PairsOf2DViews) {
  for (auto text : {"<x=2>", "<x=3>"})
    for (Shape shape : {Shape{4, 6}, Shape{5, 3}})
      checkAll(text, shape);
  for (auto text :
       {"<x=2, y=2>", "<x=2, y=3>", "<x=4>", "<x=2, y=3, devices=iota(y, x)>"})
    for (Shape shape : {Shape{4, 6}, Shape{5, 3}})
      checkAll(text, shape);
}

TEST(Transfers, PairsOf3DViews) {
  checkAll("<x=2>", {2, 3, 4});
  checkAll("<x=2, y=2>", {2, 3, 2});
}

TEST(Transfers, HoldersShareTheWork) {
  // Rows are on x, which four devices of y hold alike. Half of the rows are
  // needed by all of a y column: 3 of 4 devices of x lack each shard, and each
  // shard's holders serve an equal part of them.
  Mesh mesh = makeMesh("<x=4, y=2>");
  Shape shape = {16};
  View from = view("[did(x) * _]", shape, mesh);
  View to = view("[did(y) * _]", shape, mesh);
  Moved moved =
      runTransfers(from, to, shape, mesh, sourceContents(from, shape, mesh));
  EXPECT_EQ(moved.received, 8);
  EXPECT_EQ(moved.sent, 8);
}

TEST(Transfers, NearestHolderServes) {
  Mesh mesh = makeMesh("<dp=2, tp=2>");
  Shape shape = {8};
  View from = view("[did(tp) * _]", shape, mesh);
  View to = view("[_]", shape, mesh);
  for (int64_t rank = 0; rank < 4; ++rank) {
    Transfers transfers = expandTransfers(from, to, shape, mesh, rank);
    ASSERT_EQ(transfers.receives.size(), 1u);
    EXPECT_EQ(transfers.receives[0].peer / 2, rank / 2);
  }
}

TEST(Transfers, LongBoxesBetweenFlatAndPlainDims) {
  // Of the first half of 5 x 6 elements, whole rows are one box.
  Mesh mesh = makeMesh("<x=2>");
  Shape shape = {5, 6};
  View from = view("[did(x) * _, _]", shape, mesh);
  View to = view("[flat(2) did(x) * _]", shape, mesh);
  Transfers transfers = expandTransfers(from, to, shape, mesh, 0);
  ASSERT_EQ(transfers.keepTo.boxes.size(), 2u);
  EXPECT_EQ(transfers.keepFrom.boxes[0].size, (Shape{2, 6}));
  EXPECT_EQ(transfers.keepTo.boxes[0].size, Shape{12});
  EXPECT_EQ(transfers.keepFrom.boxes[1].size, (Shape{1, 3}));
  ASSERT_EQ(transfers.sends.size(), 1u);
  EXPECT_EQ(transfers.sends[0].boxes[0].offset, (Shape{2, 3}));
}

TEST(Transfers, ViewsOfDynamicExtentsAtAnyExtent) {
  // A `_` is what the extent at hand needs; nothing has to be spelled anew.
  Mesh mesh = makeMesh("<x=2, y=3>");
  std::vector<View> views = viewsOf({kDynamic}, mesh, /*withPartial=*/false);
  auto volumes = [](const std::vector<PeerBoxes> &lists) {
    std::vector<std::pair<int64_t, int64_t>> result;
    for (const PeerBoxes &list : lists)
      result.push_back({list.peer, list.elements});
    return result;
  };
  for (int64_t extent : {1, 4, 7, 12}) {
    Shape shape = {extent};
    for (const View &from : views) {
      for (const View &to : views) {
        if (!verify(from, shape, mesh) || !verify(to, shape, mesh))
          continue;
        for (int64_t rank = 0; rank < 6; ++rank) {
          Transfers symbolic = expandTransfers(from, to, shape, mesh, rank);
          Transfers spelled =
              expandTransfers(canonicalize(from, shape, mesh),
                              canonicalize(to, shape, mesh), shape, mesh, rank);
          EXPECT_EQ(volumes(symbolic.sends), volumes(spelled.sends));
          EXPECT_EQ(volumes(symbolic.receives), volumes(spelled.receives));
          EXPECT_EQ(symbolic.keepTo.elements, spelled.keepTo.elements);
        }
      }
    }
  }
}
