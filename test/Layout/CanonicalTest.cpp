//===- CanonicalTest.cpp - one spelling for one placement -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For classes of products, every member at every bound: the canonical form
// places every value where the original does, is its own canonical form, and no
// two canonical forms place alike.
//
//===----------------------------------------------------------------------===//

#include "Enumerate.h"

#include <gtest/gtest.h>

#include <map>

using namespace tessera::layout;
using namespace tessera::layout::test;

namespace {
/// The canonical forms met so far, by bound and placement.
class Spellings {
public:
  explicit Spellings(const Mesh &mesh) : mesh(mesh) {}

  void check(const Product &product, int64_t bound) {
    View view;
    view.dims = {{product, 1}};
    View canonical = canonicalize(view, {bound}, mesh);
    std::string what = toString(view, mesh) + " on " + std::to_string(bound) +
                       " as " + toString(canonical, mesh);
    Placement placed = placement(product, bound, mesh);
    const Product &form = canonical.dims[0].product;
    if (placement(form, bound, mesh) != placed || reach(form) < bound) {
      ADD_FAILURE() << what << " places differently";
      return;
    }
    if (auto status = verify(canonical, {bound}, mesh); !status)
      ADD_FAILURE() << what << ": " << status.message();
    if (!isCanonical(canonical, {bound}, mesh))
      ADD_FAILURE() << what << " becomes "
                    << toString(canonicalize(canonical, {bound}, mesh), mesh);
    auto [entry, isNew] = forms.try_emplace({bound, placed}, canonical, view);
    if (!isNew && entry->second.first != canonical)
      ADD_FAILURE() << what << ", but " << toString(entry->second.second, mesh)
                    << " as " << toString(entry->second.first, mesh);
  }

private:
  const Mesh &mesh;
  std::map<std::pair<int64_t, Placement>, std::pair<View, View>> forms;
};
} // namespace

TEST(Canonical, IsUniqueForPlainProducts) {
  for (const Mesh &mesh : smallMeshes()) {
    Spellings spellings(mesh);
    Pool pool;
    pool.stored = {2, 3, 4};
    pool.maxFactors = longRun ? 5 : 4;
    pool.maxCapacity = longRun ? 64 : 32;
    forEachProduct(mesh, pool, [&](const Product &product) {
      for (int64_t bound = 0; bound <= reach(product); ++bound)
        spellings.check(product, bound);
    });
  }
}

static std::string canonicalText(const char *text, Shape shape,
                                 const char *meshText) {
  Mesh mesh = makeMesh(meshText);
  View view = makeView(text, mesh);
  auto status = verify(view, shape, mesh);
  EXPECT_TRUE(bool(status)) << status.message();
  View canonical = canonicalize(view, shape, mesh);
  EXPECT_TRUE(isCanonical(canonical, shape, mesh));
  return toString(canonical, mesh);
}

TEST(Canonical, FollowsTheRules) {
  auto check = [](const char *text, int64_t extent, const char *expected) {
    EXPECT_EQ(canonicalText(text, {extent}, "<b = 2, c = 3, x = 4>"), expected)
        << text << " on " << extent;
  };
  // `_` is the ceiling of what its own group still needs.
  check("[did(b) * did(c) * _]", 14, "[did(b) * did(c) * 3]");
  check("[(did(c) * _ | 16) * 144]", 2304, "[did(c) * 864]");
  check("[did(c) * _]", 2304, "[did(c) * 768]");
  check("[_]", 5, "[5]");
  check("[?]", 5, "[5]");
  check("[_]", 1, "[1]");
  check("[_]", 0, "[1]");
  // Integers are cut to what the extent needs, ones vanish, neighbours merge.
  check("[did(b) * 8]", 5, "[did(b) * 5]");
  check("[2 * 2 * 1 * did(b) * 3]", 24, "[4 * did(b) * 3]");
  check("[8 * did(b) * 3]", 13, "[3 * did(b) * 3]");
  check("[did(x:(1)2) * did(x:(2)2) * 2]", 8, "[did(x) * 2]");
  check("[did(x:(2)2) * did(x:(1)2) * 2]", 8,
        "[did(x:(2)2) * did(x:(1)2) * 2]");
  // What only decides who holds nothing stands outermost, in mesh order.
  check("[did(c) * did(b) * 2]", 2, "[did(b) * did(c) * 2]");
  check("[did(x:(1)2) * did(b) * did(x:(2)2)]", 2, "[did(b) * did(x)]");
  // Groups.
  check("[(did(b) * 3 | 6)]", 6, "[did(b) * 3]");
  check("[2 * (2 * 3 | 1:5)]", 8, "[8]");
  check("[2 * (did(b) * 4 | 6)]", 12, "[2 * (did(b) * 2 | 3) * 2]");
  check("[(3 * did(b) * 2 | 5:11)]", 6, "[(2 * did(b) * 2 | 1:7)]");
}

TEST(Canonical, OfViews) {
  const char *mesh = "<dp = 2, one = 1, tp = 4>";
  EXPECT_EQ(
      canonicalText("[did(one) * _, _], partial = [one : sum]", {4, 6}, mesh),
      "[4, 6]");
  EXPECT_EQ(
      canonicalText("[_], partial = [tp:(2)2 : sum, dp : sum, tp:(1)2 : sum]",
                    {4}, mesh),
      "[4], partial = [(dp, tp) : sum]");
  EXPECT_EQ(canonicalText("[_, ?], priority = [1, 0]", {4, 6}, mesh), "[4, 6]");
  // flat only where digits straddle.
  EXPECT_EQ(
      canonicalText("[flat(3) did(tp) * _], alloc = (0)", {2, 4, 3}, mesh),
      "[did(tp:(1)2), did(tp:(2)2) * 2, 3], alloc = (0, 1, 2)");
  EXPECT_EQ(canonicalText("[flat(3) did(tp) * _, 5], alloc = (1, 0)",
                          {3, 4, 2, 5}, mesh),
            "[flat(2) did(tp) * 3, 2, 5], alloc = (2, 0, 1)");
  EXPECT_EQ(canonicalText("[flat(2) _]", {1, 1}, mesh), "[1, 1]");
}

TEST(Canonical, KeepsARestOnDynamicDimensions) {
  auto check = [](const char *text, const char *expected) {
    EXPECT_EQ(canonicalText(text, {kDynamic}, "<x = 2, y = 4>"), expected)
        << text;
  };
  check("[_]", "[_]");
  check("[? * 3]", "[_]");
  check("[2 * _ * 3 * did(x)]", "[_ * did(x)]");
  check("[did(x) * 2 * _ * 3]", "[did(x) * _ * 6]");
  check("[did(x) * 2 * 3]", "[did(x) * 6]");
  check("[2 * 2 * _]", "[_]");
  check("[did(x) * 2 * 3 * _]", "[did(x) * _ * 6]");
  check("[did(y:(1)2) * did(y:(2)2) * _]", "[did(y) * _]");
  check("[_ * (did(x) * _ | 6)]", "[_ * did(x) * 3]");
  check("[_ * (did(x) * _ | 5) * 2]", "[_ * (did(x) * 3 | 5) * 2]");
}
