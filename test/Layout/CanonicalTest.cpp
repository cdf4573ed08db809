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
#include <unordered_map>

using namespace tessera::layout;
using namespace tessera::layout::test;

namespace {
/// The canonical forms met so far, by placement.
class Spellings {
public:
  /// With `unique` false, other spellings may place alike.
  explicit Spellings(const Mesh &mesh, bool unique = true)
      : mesh(mesh), unique(unique) {}

  /// Checks `product` at every bound from `least` to what it reaches.
  void check(const Product &product, int64_t least) {
    Signature full = signature(product, reach(product), mesh);
    for (int64_t bound = least; bound <= reach(product); ++bound)
      check(product, bound, full.substr(0, bound));
  }

private:
  void check(const Product &product, int64_t bound, const Signature &placed) {
    View view;
    view.dims = {{product, 1}};
    View canonical = canonicalize(view, {bound}, mesh);
    auto what = [&] {
      return toString(view, mesh) + " on " + std::to_string(bound) + " as " +
             toString(canonical, mesh);
    };
    auto [entry, isNew] = forms.try_emplace(placed, canonical, view);
    if (!isNew && (unique || entry->second.first == canonical)) {
      if (entry->second.first != canonical)
        ADD_FAILURE() << what() << ", but "
                      << toString(entry->second.second, mesh) << " as "
                      << toString(entry->second.first, mesh);
      return;
    }
    const Product &form = canonical.dims[0].product;
    if (reach(form) < bound || signature(form, bound, mesh) != placed) {
      ADD_FAILURE() << what() << " places differently";
      return;
    }
    if (auto status = verify(canonical, {bound}, mesh); !status)
      ADD_FAILURE() << what() << ": " << status.message();
    if (!isCanonical(canonical, {bound}, mesh))
      ADD_FAILURE() << what() << " becomes "
                    << toString(canonicalize(canonical, {bound}, mesh), mesh);
  }

  const Mesh &mesh;
  bool unique;
  std::unordered_map<Signature, std::pair<View, View>> forms;
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
      spellings.check(product, 0);
    });
  }
}

/// Calls `body` with outer * (product | lo:hi) * inner, where outer and inner
/// are absent, stored, or an axis that the product leaves.
template <typename Body>
static void forEachGroup(const Product &product, int64_t lo, int64_t hi,
                         const Mesh &mesh, Body body) {
  Product around = {Factor::stored(1), Factor::stored(2), Factor::stored(3)};
  for (int axis = 0; axis < int(mesh.axes.size()); ++axis) {
    Factor device = Factor::device({axis, 1, mesh.axes[axis].size});
    bool free = true;
    for (const SubAxis &sub : axesOf(product))
      free &= !overlap(sub, device.sub);
    if (free)
      around.push_back(device);
  }
  for (const Factor &outer : around)
    for (const Factor &inner : around)
      if (outer.kind == Factor::Kind::Stored || outer != inner)
        body({outer, Factor::group(product, lo, hi), inner});
}

TEST(Canonical, IsUniqueForCutGroups) {
  for (const Mesh &mesh : smallMeshes()) {
    Spellings spellings(mesh);
    Pool pool;
    pool.maxFactors = 3;
    pool.maxCapacity = longRun ? 24 : 12;
    forEachProduct(mesh, pool, [&](const Product &product) {
      for (int64_t hi = 1; hi <= reach(product); ++hi)
        forEachGroup(product, 0, hi, mesh,
                     [&](const Product &whole) { spellings.check(whole, 1); });
    });
  }
}

/// An axis of 6 can be cut as 2 * 3 and as 3 * 2; see View.h on slices of two
/// values of such digits.
static bool isCutTwoWays(const Mesh &mesh) { return mesh.axes[0].size == 6; }

TEST(Canonical, IsUniqueForGroupsWithOffset) {
  for (const Mesh &mesh : smallMeshes()) {
    Spellings spellings(mesh);
    Pool pool;
    pool.maxCapacity = longRun ? 18 : 8;
    pool.subAxes = !isCutTwoWays(mesh);
    forEachProduct(mesh, pool, [&](const Product &product) {
      for (int64_t lo = 0; lo < reach(product); ++lo)
        for (int64_t hi = lo + 1; hi <= reach(product); ++hi)
          forEachGroup(product, lo, hi, mesh, [&](const Product &whole) {
            spellings.check(whole, 1);
          });
    });
  }
}

TEST(Canonical, IsUniqueForSlices) {
  for (const Mesh &mesh : smallMeshes()) {
    Spellings spellings(mesh);
    Pool pool;
    pool.maxFactors = longRun ? 4 : 3;
    pool.maxCapacity = longRun ? 36 : 24;
    pool.subAxes = !isCutTwoWays(mesh);
    forEachProduct(mesh, pool, [&](const Product &product) {
      int64_t size = reach(product);
      for (int64_t lo = 0; lo < size; ++lo)
        for (int64_t hi = lo + 1; hi <= size; ++hi)
          spellings.check({Factor::group(product, lo, hi)}, hi - lo);
    });
  }
}

/// Groups in groups: the form is right and stable, but not always the only one.
TEST(Canonical, KeepsPlacementOfNestedGroups) {
  for (const Mesh &mesh : smallMeshes()) {
    Spellings spellings(mesh, /*unique=*/false);
    Pool pool;
    pool.maxFactors = longRun ? 3 : 2;
    pool.maxCapacity = longRun ? 12 : 6;
    forEachProduct(mesh, pool, [&](const Product &product) {
      for (int64_t lo = 0; lo < 2; ++lo)
        for (int64_t hi = lo + 1; hi <= reach(product); ++hi)
          forEachGroup(product, lo, hi, mesh, [&](const Product &whole) {
            int64_t size = reach(whole);
            for (int64_t start = 0; start < size; start += longRun ? 1 : 11)
              spellings.check(
                  {Factor::stored(2), Factor::group(whole, start, size)}, 1);
          });
    });
  }
}

/// Products with one `_` at every place: their canonical form means the same at
/// every extent, and two that do so at all extents have one form.
TEST(Canonical, IsUniqueForDynamicProducts) {
  for (const Mesh &mesh : smallMeshes()) {
    std::map<Signature, Product> forms;
    Pool pool;
    pool.maxCapacity = 24;
    forEachProduct(mesh, pool, [&](const Product &product) {
      for (size_t at = 0; at <= product.size(); ++at) {
        View view;
        view.dims = {{product, 1}};
        Product &open = view.dims[0].product;
        open.insert(open.begin() + at, Factor::rest());
        View canonical = canonicalize(view, {kDynamic}, mesh);
        EXPECT_TRUE(isCanonical(canonical, {kDynamic}, mesh));
        Signature all;
        for (int64_t bound = 1; bound <= 60; ++bound) {
          Signature placed = signature(withRest(open, bound), bound, mesh);
          EXPECT_EQ(placed,
                    signature(withRest(canonical.dims[0].product, bound), bound,
                              mesh))
              << toString(view, mesh) << " as " << toString(canonical, mesh);
          all += placed;
        }
        auto [entry, isNew] = forms.try_emplace(all, canonical.dims[0].product);
        EXPECT_EQ(entry->second, canonical.dims[0].product)
            << toString(view, mesh) << ": " << toString(entry->second, mesh)
            << " and " << toString(canonical, mesh);
      }
    });
  }
}

static View ofDims(std::vector<Dim> dims) {
  View view;
  view.dims = std::move(dims);
  return view;
}

/// Views of whole tensors, flat dimensions among them: those that place every
/// element alike and leave no device without any have one spelling.
TEST(Canonical, IsUniqueForViews) {
  for (const Mesh &mesh : smallMeshes())
    for (const Shape &shape : {Shape{2, 6}, {4, 3}, {1, 5}, {2, 2, 3}}) {
      std::map<Placement, std::pair<View, View>> forms;
      std::vector<Coords> devices = allCoords(mesh);
      auto check = [&](const View &view) {
        if (!verify(view, shape, mesh))
          return;
        View canonical = canonicalize(view, shape, mesh);
        Placement placed;
        bool full = true;
        for (const Coords &coords : devices) {
          placed.push_back(heldElements(view, shape, mesh, coords));
          full &= !placed.back().empty();
          if (placed.back() != heldElements(canonical, shape, mesh, coords))
            ADD_FAILURE() << toString(view, mesh) << " is placed differently "
                          << toString(canonical, mesh);
        }
        if (!full)
          return;
        if (!isCanonical(canonical, shape, mesh))
          ADD_FAILURE() << toString(canonical, mesh);
        auto [entry, isNew] = forms.try_emplace(placed, canonical, view);
        if (!isNew && entry->second.first != canonical)
          ADD_FAILURE() << toString(view, mesh) << " as "
                        << toString(canonical, mesh) << ", but "
                        << toString(entry->second.second, mesh) << " as "
                        << toString(entry->second.first, mesh);
      };
      Pool pool;
      pool.maxCapacity = 24;
      forEachProduct(mesh, pool, [&](const Product &first) {
        check(ofDims({{first, int64_t(shape.size())}}));
        if (shape.size() == 3)
          for (int64_t last : {2, 3})
            check(ofDims({{first, 2}, {{Factor::stored(last)}, 1}}));
      });
      pool.maxCapacity = 12;
      forEachProduct(mesh, pool, [&](const Product &first) {
        pool.maxFactors = 2;
        forEachProduct(mesh, pool, [&](const Product &second) {
          if (shape.size() == 2)
            check(ofDims({{first, 1}, {second, 1}}));
          else
            check(ofDims({{first, 1}, {second, 1}, {{Factor::stored(3)}, 1}}));
        });
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
