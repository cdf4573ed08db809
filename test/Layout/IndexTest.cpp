//===- IndexTest.cpp - local and global indices ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every index map against the enumerated values of every small product, plain
// and inside groups.
//
//===----------------------------------------------------------------------===//

#include "Enumerate.h"

#include <gtest/gtest.h>

using namespace tessera::layout;
using namespace tessera::layout::test;

static void checkMaps(const Product &product, int64_t bound, const Mesh &mesh) {
  for (const Coords &coords : allCoords(mesh)) {
    std::vector<int64_t> held = heldValues(product, bound, mesh, coords);
    std::string what = toString(product, mesh) + " on " + std::to_string(bound);
    ASSERT_EQ(localExtent(product, bound, mesh, coords), int64_t(held.size()))
        << what;
    for (size_t i = 0; i < held.size(); ++i)
      ASSERT_EQ(localToGlobal(product, bound, mesh, coords, i), held[i])
          << what;
    std::vector<Run> runs;
    for (size_t i = 0; i < held.size(); ++i) {
      if (i > 0 && held[i] == held[i - 1] + 1)
        ++runs.back().length;
      else
        runs.push_back({int64_t(i), held[i], 1});
    }
    ASSERT_EQ(localRuns(product, bound, mesh, coords), runs) << what;
  }
}

TEST(Index, EqualsEnumerationOnPlainProducts) {
  for (const Mesh &mesh : smallMeshes()) {
    Pool pool;
    pool.maxFactors = longRun ? 4 : 3;
    pool.maxCapacity = longRun ? 64 : 36;
    forEachProduct(mesh, pool, [&](const Product &product) {
      for (int64_t bound = 0; bound <= reach(product); ++bound)
        checkMaps(product, bound, mesh);
    });
  }
}

TEST(Index, EqualsEnumerationOnGroups) {
  for (const Mesh &mesh : smallMeshes()) {
    Pool pool;
    pool.subAxes = false;
    pool.maxFactors = 3;
    pool.maxCapacity = longRun ? 36 : 18;
    forEachProduct(mesh, pool, [&](const Product &product) {
      int64_t size = reach(product);
      for (int64_t lo = 0; lo < size; ++lo)
        for (int64_t hi = lo + 1; hi <= size; ++hi) {
          Product whole = {Factor::stored(2), Factor::group(product, lo, hi),
                           Factor::stored(2)};
          int64_t full = 4 * (hi - lo);
          for (int64_t bound : {full - 3, full})
            checkMaps(whole, bound, mesh);
        }
    });
  }
}

TEST(Index, RestIsTheCeilingOfWhatTheBoundNeeds) {
  Mesh mesh = makeMesh("<x = 3>");
  View view = makeView("[did(x) * _ * 2]", mesh);
  const Product &product = view.dims[0].product;
  for (int64_t bound = 0; bound < 40; ++bound) {
    Product resolved = product;
    resolved[1] = Factor::stored(std::max<int64_t>(1, (bound + 5) / 6));
    for (const Coords &coords : allCoords(mesh))
      EXPECT_EQ(localRuns(product, bound, mesh, coords),
                localRuns(resolved, bound, mesh, coords));
  }
}

TEST(Index, UnevenHeads) {
  Mesh mesh = makeMesh("<x = 3>");
  View view = canonicalize(makeView("[did(x) * _, _]", mesh), {16, 9}, mesh);
  EXPECT_EQ(localShape(view, {16, 9}, mesh, {0}), (Shape{6, 9}));
  EXPECT_EQ(localShape(view, {16, 9}, mesh, {2}), (Shape{4, 9}));
  EXPECT_EQ(maxLocalShape(view, {16, 9}, mesh), (Shape{6, 9}));
  EXPECT_FALSE(isEven(view, {16, 9}, mesh));
  EXPECT_TRUE(isEven(view, {18, 9}, mesh));
}

TEST(Index, ExtentsOverAllDevices) {
  for (const Mesh &mesh : smallMeshes()) {
    Pool pool;
    pool.maxCapacity = 24;
    forEachProduct(mesh, pool, [&](const Product &product) {
      int64_t size = reach(product);
      for (int64_t lo = 0; lo < size; lo += 3) {
        View view;
        view.dims = {{{Factor::group(product, lo, size)}, 1}};
        std::vector<int64_t> extents;
        for (const Coords &coords : allCoords(mesh))
          extents.push_back(
              heldValues(view.dims[0].product, size - lo, mesh, coords).size());
        auto [least, most] =
            std::minmax_element(extents.begin(), extents.end());
        Shape shape = {size - lo};
        ASSERT_EQ(maxLocalShape(view, shape, mesh)[0], *most)
            << toString(view, mesh);
        ASSERT_EQ(isEven(view, shape, mesh), *least == *most)
            << toString(view, mesh);
      }
    });
  }
}

TEST(Index, StridesFollowAlloc) {
  Mesh mesh = makeMesh("<x = 2>");
  View view = makeView("[2, 3, 5]", mesh);
  EXPECT_EQ(localStrides(view, {2, 3, 5}), (Shape{15, 5, 1}));
  view.alloc = {1, 2, 0};
  EXPECT_EQ(localStrides(view, {2, 3, 5}), (Shape{1, 10, 2}));
}
