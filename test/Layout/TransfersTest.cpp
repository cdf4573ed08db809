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
static int64_t lacking(const Tensor &tensor, const View &from, const View &to) {
  int64_t most = 0;
  for (size_t rank = 0; rank < tensor.coords.size(); ++rank) {
    const std::vector<int64_t> &has = tensor.localsOf(from)[rank].elements;
    int64_t count = 0;
    for (int64_t element : tensor.localsOf(to)[rank].elements)
      count += !std::binary_search(has.begin(), has.end(), element);
    most = std::max(most, count);
  }
  return most;
}

/// What the busiest rank must send at least, if holders of an element share
/// those that lack it as they like. Those that hold one element hold the same
/// elements.
static int64_t fairShare(const Tensor &tensor, const View &from,
                         const View &to) {
  const std::vector<Local> &source = tensor.localsOf(from);
  const std::vector<SubAxis> partial = partialAxesOf(from);
  std::map<std::vector<size_t>, int64_t> lacked; // by holders
  for (size_t rank = 0; rank < tensor.coords.size(); ++rank) {
    for (int64_t element : tensor.localsOf(to)[rank].elements) {
      std::vector<size_t> holders;
      for (size_t peer = 0; peer < source.size(); ++peer)
        if (std::binary_search(source[peer].elements.begin(),
                               source[peer].elements.end(), element) &&
            digitsOf(partial, tensor.mesh, tensor.coords[peer]) ==
                digitsOf(partial, tensor.mesh, tensor.coords[rank]))
          holders.push_back(peer);
      if (std::find(holders.begin(), holders.end(), rank) == holders.end())
        ++lacked[holders];
    }
  }
  int64_t most = 0;
  for (const auto &[holders, elements] : lacked)
    most = std::max(most, (elements + int64_t(holders.size()) - 1) /
                              int64_t(holders.size()));
  return most;
}

static void checkPair(const Tensor &tensor, const View &from, const View &to) {
  SCOPED_TRACE(toString(from, tensor.mesh) + " to " +
               toString(to, tensor.mesh) + " on " + toString(tensor.mesh));
  Moved moved = runTransfers(tensor, from, to, sourceContents(tensor, from));
  EXPECT_EQ(moved.contents, sourceContents(tensor, to));
  EXPECT_EQ(moved.received, lacking(tensor, from, to));
  // Holders share a taker at positions of one dimension, so that less than one
  // of these may be too much.
  EXPECT_LE(moved.sent,
            std::max(moved.received, fairShare(tensor, from, to)) + 1);
}

static void checkAll(const char *meshText, const Shape &shape) {
  Tensor tensor(shape, makeMesh(meshText));
  std::vector<View> views = viewsOf(shape, tensor.mesh, {});
  int64_t pair = 0;
  for (const View &from : views) {
    for (const View &to : views) {
      if (from.partial != to.partial || pair++ % kSample)
        continue;
      checkPair(tensor, from, to);
      if (::testing::Test::HasFailure())
        return;
    }
  }
}

TEST(Transfers, EveryPairOf1DViews) {
  for (auto text : {"<x=2>", "<x=3>", "<x=2, y=2>", "<x=2, y=3>", "<x=4>",
                    "<x=6>", "<x=2, y=3, devices=iota(y, x)>"})
    for (int64_t extent : {0, 1, 5, 6, 12})
      checkAll(text, {extent});
  checkAll("<x=3, y=4>", {12});
}

TEST(Transfers, EveryPairOf2DViews) {
  for (auto text : {"<x=2>", "<x=3>", "<x=2, y=2>", "<x=2, y=3>", "<x=4>",
                    "<x=6>", "<x=2, y=3, devices=iota(y, x)>"})
    for (Shape shape : {Shape{4, 6}, Shape{5, 3}, Shape{0, 3}})
      checkAll(text, shape);
}

TEST(Transfers, EveryPairOf3DViews) {
  checkAll("<x=2>", {2, 3, 4});
  checkAll("<x=2, y=2>", {2, 3, 2});
}

/// Between meshes that list other devices. Of one view a device receives a
/// block if it has another, and no more.
static void checkBetween(const char *fromMesh, const char *toMesh,
                         const Shape &shape) {
  Tensor tensor(shape, makeMesh(fromMesh)), moved(shape, makeMesh(toMesh));
  const std::vector<View> views = viewsOf(shape, tensor.mesh, {});
  for (const View &from : views) {
    for (const View &to : views) {
      if (!std::ranges::includes(partialAxesOf(to), partialAxesOf(from)))
        continue;
      SCOPED_TRACE(toString(from, tensor.mesh) + " on " + fromMesh + " to " +
                   toString(to, tensor.mesh) + " on " + toMesh);
      const Contents before = sourceContents(tensor, from);
      Moved done = runTransfers(tensor, from, to, before, nullptr, &moved);
      if (from.partial == to.partial)
        EXPECT_EQ(done.contents, sourceContents(moved, to));
      if (from == to) {
        int64_t most = 0;
        for (size_t rank = 0; rank < before.size(); ++rank)
          if (before[rank] != done.contents[rank])
            most = std::max<int64_t>(most, done.contents[rank].size());
        EXPECT_EQ(done.received, most);
        EXPECT_EQ(done.sent, most);
        if (liesAlike(from, tensor.mesh, moved.mesh))
          EXPECT_EQ(most, 0);
        Move move{shape, 4, from, to};
        move.fromMesh = tensor.mesh;
        move.toMesh = moved.mesh;
        Result<Plan> plan = planMove(move, tensor.mesh, Machine());
        ASSERT_TRUE(plan);
        EXPECT_EQ(plan->chosen.cost.bytesReceived, 4 * most);
      }
      if (::testing::Test::HasFailure())
        return;
    }
  }
}

TEST(Transfers, BetweenListsOfDevices) {
  for (Shape shape : {Shape{5}, Shape{8}, Shape{2}, Shape{4, 3}}) {
    checkBetween("<x=4>", "<x=4, devices=[3, 2, 1, 0]>", shape);
    checkBetween("<x=2, y=2, devices=[0, 1, 3, 2]>", "<x=2, y=2>", shape);
    checkBetween("<x=4, devices=[1, 2, 3, 0]>", "<x=4, devices=[0, 1, 3, 2]>",
                 shape);
  }
  checkBetween("<x=2, y=3>", "<x=2, y=3, devices=[0, 1, 2, 5, 4, 3]>", {7});
  EXPECT_TRUE(liesAlike(view("[did(x) * _]", {8}, makeMesh("<x=2, y=2>")),
                        makeMesh("<x=2, y=2, devices=[0, 1, 3, 2]>"),
                        makeMesh("<x=2, y=2>")));
}

TEST(Transfers, HoldersShareTheWork) {
  // Rows are on x, which four devices of y hold alike. Half of the rows are
  // needed by all of a y column: 3 of 4 devices of x lack each shard, and each
  // shard's holders serve an equal part of them.
  Mesh mesh = makeMesh("<x=4, y=2>");
  Shape shape = {16};
  View from = view("[did(x) * _]", shape, mesh);
  View to = view("[did(y) * _]", shape, mesh);
  Tensor tensor(shape, mesh);
  Moved moved = runTransfers(tensor, from, to, sourceContents(tensor, from));
  EXPECT_EQ(moved.received, 8);
  EXPECT_EQ(moved.sent, 8);
}

TEST(Transfers, HoldersShareATaker) {
  // Axes of 6 and 4 trade places. Four devices have the first 4 of 24 elements,
  // and five others need them: where each is served by one device, one of the
  // four serves two and sends 8. No device receives more than 6.
  Mesh mesh = makeMesh("<a=6, b=4>");
  for (Shape shape : {Shape{24}, Shape{24, 5}}) {
    const bool flat = shape.size() == 1;
    View from = view(flat ? "[did(a) * _]" : "[did(a) * _, _]", shape, mesh);
    View to = view(flat ? "[did(b) * _]" : "[did(b) * _, _]", shape, mesh);
    Tensor tensor(shape, mesh);
    Moved moved = runTransfers(tensor, from, to, sourceContents(tensor, from));
    EXPECT_EQ(moved.contents, sourceContents(tensor, to));
    EXPECT_EQ(moved.received, flat ? 6 : 30);
    EXPECT_EQ(moved.sent, moved.received);
  }
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

/// Every view of a shape with dynamic extents at all extents up to `most`:
/// instantiated it has the same local dimensions, and holds what it does by
/// definition; transfers between any two are right. Of pairs each `stride`-th.
static void checkDynamic(const char *meshText, const Shape &symbolic,
                         int64_t most, int64_t stride = 1) {
  Mesh mesh = makeMesh(meshText);
  std::vector<View> views = viewsOf(symbolic, mesh, {});
  int64_t pair = 0;
  for (int64_t extent = 0; extent <= most; ++extent) {
    Shape shape = symbolic;
    std::replace(shape.begin(), shape.end(), kDynamic, extent);
    Tensor tensor(shape, mesh);
    std::vector<View> legal;
    for (const View &view : views) {
      if (!verify(view, shape, mesh))
        continue;
      View defined = view;
      for (size_t dim = 0; dim < view.dims.size(); ++dim)
        defined.dims[dim].product =
            withRest(view.dims[dim].product, boundOf(view, dim, shape));
      View now = instantiate(view, shape);
      SCOPED_TRACE(toString(view, mesh) + " at " + std::to_string(extent));
      ASSERT_EQ(now, defined);
      for (size_t rank = 0; rank < tensor.coords.size(); ++rank)
        ASSERT_EQ(localShape(view, shape, mesh, tensor.coords[rank]),
                  tensor.localsOf(defined)[rank].extents);
      legal.push_back(std::move(now));
    }
    for (const View &from : legal) {
      for (const View &to : legal) {
        if (from.partial != to.partial || pair++ % stride)
          continue;
        checkPair(tensor, from, to);
        if (::testing::Test::HasFailure())
          return;
      }
    }
  }
}

TEST(Transfers, EveryPairOfViewsOfDynamicExtents) {
  const int64_t sample = longRun ? 1 : 23 * kSample;
  checkDynamic("<x=2, y=2>", {kDynamic}, 9);
  checkDynamic("<x=6>", {kDynamic}, 9);
  checkDynamic("<x=2, y=3>", {kDynamic}, 13, sample);
  checkDynamic("<x=2>", {kDynamic, 3}, 4);
  checkDynamic("<x=3>", {2, kDynamic}, 5);
  checkDynamic("<x=2, y=2>", {kDynamic, 3}, 5, sample);
  checkDynamic("<x=4>", {kDynamic, 4, 3}, 3, sample);
  checkDynamic("<x=2>", {kDynamic, 3, kDynamic}, 3, sample);
  checkDynamic("<x=6>", {2, kDynamic, 3}, 4, sample);
}
