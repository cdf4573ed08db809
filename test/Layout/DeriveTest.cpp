//===- DeriveTest.cpp - views of reshapes, transposes and slices ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Under a derived view every element stays on its device, in the same order in
// its buffer: by enumeration of small shapes, and as text for the cases that
// programs have.
//
//===----------------------------------------------------------------------===//

#include "Enumerate.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace tessera::layout;
using namespace tessera::layout::test;

static std::string str(const Shape &shape) {
  std::string text;
  for (int64_t extent : shape)
    text += (text.empty() ? "" : "x") +
            (extent == kDynamic ? "?" : std::to_string(extent));
  return "[" + text + "]";
}

/// The canonical products of up to two factors (a few of three) that reach
/// `bound`.
static std::vector<Product> productsFor(int64_t bound, const Mesh &mesh) {
  std::vector<Product> result;
  Pool pool;
  pool.maxFactors = 3;
  pool.maxCapacity = 2 * bound + 2;
  forEachProduct(mesh, pool, [&](const Product &product) {
    if (reach(product) < bound)
      return;
    View view;
    view.dims = {{product, 1}};
    result.push_back(canonicalize(view, {bound}, mesh).dims[0].product);
  });
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

/// Calls `body` with canonical views of `shape`: all of each dimension with the
/// others whole, and pairs that share no axis.
template <typename Body>
static void forEachView(const Shape &shape, const Mesh &mesh, Body body) {
  std::vector<std::vector<Product>> products;
  View whole;
  for (int64_t extent : shape) {
    products.push_back(productsFor(extent, mesh));
    whole.dims.push_back({{Factor::stored(std::max<int64_t>(1, extent))}, 1});
  }
  body(whole);
  for (size_t i = 0; i < shape.size(); ++i)
    for (const Product &first : products[i]) {
      View view = whole;
      view.dims[i].product = first;
      body(view);
      for (size_t j = i + 1; j < shape.size(); ++j)
        for (const Product &second : products[j]) {
          View both = view;
          both.dims[j].product = second;
          if (verify(both, shape, mesh))
            body(both);
        }
    }
}

static void checkReshape(const View &view, const Shape &from, const Shape &to,
                         const Mesh &mesh) {
  std::string what =
      toString(view, mesh) + " on " + str(from) + " as " + str(to);
  auto result = reshapeView(view, from, to, mesh);
  ASSERT_TRUE(bool(result)) << what << ": " << result.message();
  what += " is " + toString(*result, mesh);
  auto status = verify(*result, to, mesh);
  ASSERT_TRUE(bool(status)) << what << ": " << status.message();
  ASSERT_TRUE(isCanonical(*result, to, mesh)) << what;
  for (const Coords &coords : allCoords(mesh))
    ASSERT_EQ(heldElements(view, from, mesh, coords),
              heldElements(*result, to, mesh, coords))
        << what;
}

TEST(Reshape, MovesNothing) {
  std::vector<Shape> shapes12 = {{12},    {2, 6},    {6, 2},    {3, 4},
                                 {4, 3},  {2, 2, 3}, {3, 2, 2}, {1, 12},
                                 {12, 1}, {4, 1, 3}, {2, 3, 2}};
  std::vector<Shape> shapes10 = {{10}, {2, 5}, {5, 2}, {1, 5, 2}};
  for (const Mesh &mesh : smallMeshes())
    for (const auto &shapes : {shapes12, shapes10})
      for (const Shape &from : shapes)
        forEachView(from, mesh, [&](const View &view) {
          for (const Shape &to : shapes)
            checkReshape(view, from, to, mesh);
        });
}

TEST(Reshape, OfAFlatViewMovesNothing) {
  Mesh mesh = makeMesh("<x = 3, y = 2>");
  View view = makeView("[flat(2) did(x) * 4, 5]", mesh);
  for (const Shape &to : {Shape{12, 5},
                          {2, 30},
                          {60},
                          {6, 2, 5},
                          {2, 6, 5},
                          {3, 4, 5},
                          {4, 15},
                          {3, 20}})
    checkReshape(view, {2, 6, 5}, to, mesh);
}

TEST(Reshape, ThereAndBackComesApartAgain) {
  Mesh mesh = makeMesh("<x = 6>");
  Shape from{9, 5, 2};
  View view = makeView("[9, 2 * did(x:(1)3), did(x:(3)2)]", mesh);
  for (const Shape &to : {Shape{15, 6}, {90}, {3, 30}, {45, 2}}) {
    checkReshape(view, from, to, mesh);
    checkReshape(*reshapeView(view, from, to, mesh), to, from, mesh);
  }
}

TEST(Reshape, ToTheSameShapeIsTheIdentity) {
  for (const Mesh &mesh : smallMeshes())
    for (const Shape &shape : {Shape{4, 3}, {1, 6}, {4, 1}, {5, 2}})
      forEachView(shape, mesh, [&](const View &view) {
        auto result = reshapeView(view, shape, shape, mesh);
        ASSERT_TRUE(bool(result));
        EXPECT_EQ(*result, view);
      });
}

namespace {
struct Case {
  const char *mesh, *from;
  Shape fromShape, toShape;
  const char *to;
};
} // namespace

static void checkCase(const Case &c) {
  Mesh mesh = makeMesh(c.mesh);
  View from = canonicalize(makeView(c.from, mesh), c.fromShape, mesh);
  auto to = reshapeView(from, c.fromShape, c.toShape, mesh);
  ASSERT_TRUE(bool(to)) << c.from << ": " << to.message();
  EXPECT_EQ(toString(*to, mesh), c.to)
      << c.from << " on " << str(c.fromShape) << " as " << str(c.toShape);
}

TEST(Reshape, KeepsDigitsWhereTheyFit) {
  for (const Case &c : std::initializer_list<Case>{
           {"<x = 2>", "[_, did(x) * _]", {3, 10}, {30}, "[3 * did(x) * 5]"},
           {"<x = 2>", "[3 * did(x) * 5]", {30}, {3, 10}, "[3, did(x) * 5]"},
           {"<x = 2>", "[3 * did(x) * 5]", {30}, {6, 5}, "[3 * did(x), 5]"},
           {"<x = 2>", "[did(x) * _]", {10}, {2, 5}, "[did(x), 5]"},
           {"<x = 3>", "[did(x) * _]", {12}, {2, 6}, "[flat(2) did(x) * 4]"},
           // Heads in uneven shares, and the weight that they come from.
           {"<tp = 3>",
            "[(did(tp) * _ | 16) * 9]",
            {144},
            {16, 9},
            "[did(tp) * 6, 9]"},
           {"<tp = 3>",
            "[_, (did(tp) * _ | 16) * 9, _]",
            {4, 144, 5},
            {4, 16, 9, 5},
            "[4, did(tp) * 6, 9, 5]"},
           {"<tp = 3>",
            "[_, did(tp) * _, _]",
            {2, 16, 9},
            {288},
            "[2 * (did(tp) * 3 | 8) * 18]"},
           {"<x = 4>",
            "[did(x) * 3]",
            {12},
            {2, 6},
            "[did(x:(1)2), did(x:(2)2) * 3]"},
           {"<x = 2>", "[30]", {30}, {5, 6}, "[5, 6]"},
           {"<x = 2>", "[did(x) * 6 * 1]", {12}, {4, 3}, "[did(x) * 2, 3]"},
           {"<x = 2>",
            "[2 * did(x) * 6]",
            {24},
            {4, 2, 3},
            "[2 * did(x), 2, 3]"},
           {"<dp = 2, tp = 2>",
            "[did(dp) * _, did(tp) * _, _]",
            {4, 6, 5},
            {24, 5},
            "[did(dp) * 2 * did(tp) * 3, 5]"},
           {"<x = 2>", "[did(x), 1, 3]", {2, 1, 3}, {2, 3}, "[did(x), 3]"},
           {"<x = 2>",
            "[did(x), 3]",
            {2, 3},
            {2, 1, 3, 1},
            "[did(x), 1, 3, 1]"},
           {"<x = 2>", "[1, did(x)]", {1, 2}, {2}, "[did(x)]"},
           {"<x = 2>", "[]", {}, {1, 1}, "[1, 1]"},
           {"<x = 2>", "[1, 1]", {1, 1}, {}, "[]"},
           {"<x = 2>", "[did(x) * _, _]", {0, 3}, {3, 0}, "[3, 1]"},
       })
    checkCase(c);
}

TEST(Reshape, DynamicDimensions) {
  const int64_t d = kDynamic;
  for (const Case &c : std::initializer_list<Case>{
           {"<x = 2>",
            "[_, _, did(x) * _]",
            {d, d, 384},
            {d, d, 12, 32},
            "[_, _, did(x) * 6, 32]"},
           {"<x = 2>",
            "[did(x) * _, _]",
            {d, 12},
            {d, 3, 4},
            "[did(x) * _, 3, 4]"},
           {"<x = 2>", "[did(x) * _, _]", {d, 12}, {d}, "[did(x) * _ * 12]"},
           {"<x = 2>", "[did(x) * _ * 12]", {d}, {d, 12}, "[did(x) * _, 12]"},
           {"<x = 2>", "[did(x) * _]", {d}, {d, 12}, "[flat(2) did(x) * _]"},
           {"<x = 2>", "[_]", {d}, {d, 12}, "[_, 12]"},
           {"<x = 2>", "[_ * did(x) * 12]", {d}, {d, 4}, "[_ * did(x) * 3, 4]"},
           {"<x = 2>",
            "[_, _, did(x) * _]",
            {d, d, 384},
            {d, 384},
            "[_, did(x) * 192]"},
           {"<x = 2>",
            "[_, did(x) * _]",
            {d, 384},
            {d, d, 384},
            "[_, _, did(x) * 192]"},
           {"<x = 2>",
            "[did(x) * _, _, _]",
            {4, d, 6},
            {2, 2, d, 6},
            "[did(x), 2, _, 6]"},
           {"<x = 2>",
            "[did(x) * _, _, _]",
            {4, d, 6},
            {d, 6},
            "[did(x) * _, 6]"},
           {"<x = 2>",
            "[did(x) * _, _, _]",
            {3, d, 6},
            {d, 6},
            "[(did(x) * 2 | 3) * _, 6]"},
           {"<x = 2>",
            "[(did(x) * 2 | 3) * _, _]",
            {d, 6},
            {3, d, 6},
            "[did(x) * 2, _, 6]"},
           {"<x = 2>",
            "[did(x) * _, _]",
            {d, 6},
            {4, d, 6},
            "[did(x) * 2, _, 6]"},
           {"<x = 2>",
            "[_, _, did(x) * _]",
            {2, d, 4},
            {d, 4},
            "[_, did(x) * 2]"},
       })
    checkCase(c);
}

namespace {
struct DynamicShapes {
  Shape from, to;
  Shape fromFactor, toFactor; // extents at 1
};
} // namespace

/// A dynamic view and its reshape, if there is one, hold the same elements at
/// every extent. `visit` gets each view and what became of it.
static void forEachDynamicReshape(
    const DynamicShapes &shapes,
    const std::function<void(const View &, const tessera::Result<View> &)>
        &visit) {
  auto at = [](Shape shape, const Shape &factor, int64_t n) {
    for (size_t i = 0; i < shape.size(); ++i)
      shape[i] = shape[i] == kDynamic ? factor[i] * n : shape[i];
    return shape;
  };
  for (const Mesh &mesh : smallMeshes()) {
    auto check = [&](const View &view) {
      if (!verify(view, shapes.from, mesh))
        return;
      View canonical = canonicalize(view, shapes.from, mesh);
      auto result = reshapeView(canonical, shapes.from, shapes.to, mesh);
      visit(canonical, result);
      if (!result)
        return;
      std::string what = toString(canonical, mesh) + " on " + str(shapes.from) +
                         " as " + str(shapes.to) + " is " +
                         toString(*result, mesh);
      ASSERT_TRUE(bool(verify(*result, shapes.to, mesh))) << what;
      ASSERT_TRUE(isCanonical(*result, shapes.to, mesh)) << what;
      for (int64_t n : {1, 2, 3, 5})
        for (const Coords &coords : allCoords(mesh))
          ASSERT_EQ(heldElements(canonical,
                                 at(shapes.from, shapes.fromFactor, n), mesh,
                                 coords),
                    heldElements(*result, at(shapes.to, shapes.toFactor, n),
                                 mesh, coords))
              << what << " at " << n;
    };
    Pool pool;
    pool.maxCapacity = 24;
    forEachProduct(mesh, pool, [&](const Product &product) {
      for (size_t i = 0; i < shapes.from.size(); ++i)
        for (size_t rest = 0; rest <= product.size(); ++rest) {
          View view = View::replicated(shapes.from.size());
          view.dims[i].product = product;
          view.dims[i].product.insert(view.dims[i].product.begin() + rest,
                                      Factor::rest());
          check(view);
        }
    });
  }
}

TEST(Reshape, OfDynamicDimensionsMovesNothing) {
  const int64_t d = kDynamic;
  for (const DynamicShapes &shapes : std::initializer_list<DynamicShapes>{
           {{d, 12}, {d, 3, 4}, {1, 12}, {1, 3, 4}},
           {{d, 12}, {d}, {1, 12}, {12}},
           {{d}, {d, 12}, {12}, {1, 12}},
           {{d, 12}, {d, 4}, {1, 12}, {3, 4}},
           {{d, 4}, {d, 12}, {3, 4}, {1, 12}},
           {{d, 12}, {1, d, 4}, {1, 12}, {1, 3, 4}},
           {{1, d, 12}, {d, 4}, {1, 1, 12}, {3, 4}},
           {{d, 6, 2}, {d, 2}, {1, 6, 2}, {6, 2}}})
    forEachDynamicReshape(
        shapes, [&](const View &view, const tessera::Result<View> &result) {
          // What is split over an extent of 1 is on one device.
          bool outside =
              shapes.from[0] == 1 && !axesOf(view.dims[0].product).empty();
          ASSERT_TRUE(bool(result) || outside) << result.message();
        });
}

TEST(Reshape, AroundADynamicDimensionMovesNothing) {
  const int64_t d = kDynamic;
  for (const DynamicShapes &shapes : std::initializer_list<DynamicShapes>{
           {{2, d, 4}, {d, 4}, {2, 1, 4}, {2, 4}},
           {{4, d}, {d}, {4, 1}, {4}},
           {{2, 3, d, 4}, {2, d, 2, 2}, {2, 3, 1, 4}, {2, 3, 2, 2}},
           {{3, d, 4}, {d, 12}, {3, 1, 4}, {1, 12}},
           {{d}, {4, d}, {4}, {4, 1}},
           {{d, 3}, {2, 3, d, 3}, {6, 3}, {2, 3, 1, 3}},
           {{4, d, 3}, {2, d}, {4, 1, 3}, {2, 6}},
           {{2, d, 3, d}, {3, d, 2, d}, {2, 1, 3, 1}, {3, 1, 2, 1}},
           {{d, 6, d}, {d, 3, d, 2}, {1, 6, 1}, {1, 3, 1, 2}}}) {
    size_t dynamic = 0, moved = 0, kept = 0;
    while (shapes.from[dynamic] != d)
      ++dynamic;
    forEachDynamicReshape(
        shapes, [&](const View &view, const tessera::Result<View> &result) {
          ++(result ? kept : moved);
          // With nothing split but dimensions outside of the
          // first `?` it can always be said, if there is one.
          bool outside = dynamic > 0;
          for (size_t i = dynamic; i < view.dims.size(); ++i)
            outside &= axesOf(view.dims[i].product).empty();
          bool merges = shapes.to[0] == d;
          ASSERT_TRUE(bool(result) || !outside || !merges) << result.message();
        });
    EXPECT_GT(kept, 0u) << str(shapes.from) << " as " << str(shapes.to);
  }
}

TEST(Reshape, SaysWhyNot) {
  Mesh mesh = makeMesh("<tp = 2>");
  auto message = [&](const char *view, Shape from, Shape to) {
    auto result = reshapeView(canonicalize(makeView(view, mesh), from, mesh),
                              from, to, mesh);
    return result ? "no error" : result.message();
  };
  EXPECT_EQ(message("[did(tp) * _]", {6}, {4}),
            "the operand has 6 elements and the result 4; a reshape keeps "
            "their number");
  const int64_t huge = int64_t(1) << 40;
  EXPECT_EQ(message("[did(tp) * _, _]", {huge, huge}, {2 * huge, 2 * huge}),
            "a reshape of more than 2^63 elements");
  EXPECT_EQ(message("[did(tp)]", {1}, {}),
            "did(tp) has no dimension in a result of rank 0");
  EXPECT_EQ(message("[did(tp) * _, _]", {kDynamic, kDynamic}, {kDynamic}),
            "operand dimension 0: how did(tp) splits a `?` that is merged with "
            "others cannot be said of the result; constrain the operand to "
            "[_, _]");
  EXPECT_EQ(message("[_, did(tp) * _]", {4, kDynamic}, {2, kDynamic}),
            "operand dimension 1: how did(tp) splits a `?` that is merged with "
            "others cannot be said of the result; constrain the operand to "
            "[4, _]");
  for (Shape to : {Shape{3, kDynamic}, {kDynamic, kDynamic}})
    EXPECT_EQ(
        message("[did(tp) * _]", {kDynamic}, to),
        "result dimension 1: did(tp) does not split the static dimensions "
        "outside of this `?` evenly; constrain the operand to [_]");
}

TEST(Reshape, CarriesPartialAndDropsAForeignOrder) {
  Mesh mesh = makeMesh("<x = 2, y = 2>");
  auto reshape = [&](const char *view) {
    auto result = reshapeView(makeView(view, mesh), {4, 6}, {4, 2, 3}, mesh);
    return result ? toString(*result, mesh) : result.message();
  };
  EXPECT_EQ(reshape("[did(x) * 2, 6], partial = [y : max]"),
            "[did(x) * 2, 2, 3], partial = [y : max]");
  EXPECT_EQ(reshape("[4, 6], alloc = (0, 1)"), "[4, 2, 3], alloc = (0, 1, 2)");
  EXPECT_EQ(reshape("[4, 6], alloc = (1, 0)"), "[4, 2, 3]");
}

//===----------------------------------------------------------------------===//
// Slice
//===----------------------------------------------------------------------===//

TEST(Slice, KeepsEveryElementWhereItLies) {
  for (const Mesh &mesh : smallMeshes())
    for (int64_t extent : {4, 9, 12})
      forEachView({extent}, mesh, [&](const View &view) {
        for (int64_t lo = 0; lo <= extent; ++lo)
          for (int64_t size = 0; lo + size <= extent; ++size) {
            auto result = sliceView(view, {extent}, {lo}, {size}, mesh);
            ASSERT_TRUE(bool(result)) << result.message();
            std::string what = toString(view, mesh) + " from " +
                               std::to_string(lo) + " is " +
                               toString(*result, mesh);
            ASSERT_TRUE(bool(verify(*result, {size}, mesh))) << what;
            ASSERT_TRUE(isCanonical(*result, {size}, mesh)) << what;
            for (const Coords &coords : allCoords(mesh)) {
              std::vector<int64_t> kept;
              for (int64_t value : heldElements(view, {extent}, mesh, coords))
                if (value >= lo && value < lo + size)
                  kept.push_back(value - lo);
              ASSERT_EQ(kept, heldElements(*result, {size}, mesh, coords))
                  << what;
            }
          }
      });
}

TEST(Slice, OfSeveralDimensions) {
  Mesh mesh = makeMesh("<x = 2, y = 2>");
  auto slice = [&](const char *text, Shape shape, Shape lo, Shape size) {
    View view = canonicalize(makeView(text, mesh), shape, mesh);
    auto result = sliceView(view, shape, lo, size, mesh);
    return result ? toString(*result, mesh) : result.message();
  };
  // q of qkv by head: the split dimension is whole, the sliced one is stored.
  EXPECT_EQ(slice("[_, did(x) * _, _]", {5, 4, 96}, {0, 0, 32}, {5, 4, 32}),
            "[5, did(x) * 2, 32]");
  EXPECT_EQ(slice("[did(x) * _, _]", {8, 3}, {2, 0}, {4, 3}),
            "[did(x) * 2, 3]");
  EXPECT_EQ(slice("[did(x) * _, _]", {8, 3}, {1, 0}, {5, 3}),
            "[did(x) * 3, 3]");
  EXPECT_EQ(slice("[did(x) * _, _]", {8, 3}, {4, 0}, {4, 3}),
            "[(did(x) | 1:2) * 4, 3]");
  EXPECT_EQ(slice("[_, _], alloc = (1, 0)", {8, 3}, {0, 0}, {8, 3}),
            "[8, 3], alloc = (1, 0)");
  EXPECT_EQ(slice("[_, _], alloc = (1, 0)", {8, 3}, {0, 0}, {7, 3}), "[7, 3]");
  EXPECT_EQ(slice("[_, did(x) * _]", {kDynamic, 4}, {0, 2}, {kDynamic, 2}),
            "[_, (did(x) | 1:2) * 2]");
  EXPECT_EQ(slice("[did(x) * _]", {kDynamic}, {0}, {4}),
            "dimension 0 is split and dynamic; where a slice of it lies is "
            "unknown, so make it whole first");
  EXPECT_EQ(slice("[flat(2) (did(x) * _ | 3)]", {1, 3}, {0, 0}, {1, 2}),
            "[1, did(x) * 2]");
}

TEST(Slice, OfFlatDimensions) {
  Mesh mesh = makeMesh("<x = 3>");
  View view = makeView("[flat(2) did(x) * 4]", mesh);
  Shape shape = {2, 6};
  auto row = sliceView(view, shape, {1, 0}, {1, 6}, mesh);
  ASSERT_TRUE(bool(row));
  for (const Coords &coords : allCoords(mesh)) {
    std::vector<int64_t> kept;
    for (int64_t value : heldElements(view, shape, mesh, coords))
      if (value >= 6)
        kept.push_back(value - 6);
    EXPECT_EQ(kept, heldElements(*row, {1, 6}, mesh, coords));
  }
  auto column = sliceView(view, shape, {0, 1}, {2, 2}, mesh);
  ASSERT_FALSE(bool(column));
  EXPECT_EQ(column.message(),
            "dimension 0 is the start of a flat(2), of which a slice keeps the "
            "inner dimensions whole; move the data first");
}

//===----------------------------------------------------------------------===//
// Refinement
//===----------------------------------------------------------------------===//

TEST(Refines, EqualsInclusionOnEveryDevice) {
  for (const Mesh &mesh : smallMeshes())
    for (int64_t bound : {4, 6, 7, 12}) {
      std::vector<Product> products = productsFor(bound, mesh);
      std::vector<Product> slices;
      // Slices too: groups with an offset.
      for (const Product &product : products)
        if (slices.size() < 20) {
          View view;
          view.dims = {{{Factor::group(product, 1, bound)}, 1}};
          slices.push_back(
              canonicalize(view, {bound - 1}, mesh).dims[0].product);
        }
      auto check = [&](const std::vector<Product> &all, int64_t bound) {
        std::vector<Placement> placements;
        for (const Product &product : all)
          placements.push_back(placement(product, bound, mesh));
        for (size_t i = 0; i < all.size(); ++i)
          for (size_t j = 0; j < all.size(); ++j) {
            bool included = true;
            for (size_t k = 0; included && k < placements[i].size(); ++k)
              included = std::includes(
                  placements[j][k].begin(), placements[j][k].end(),
                  placements[i][k].begin(), placements[i][k].end());
            ASSERT_EQ(refines(all[i], all[j], bound, mesh), included)
                << toString(all[i], mesh) << " in " << toString(all[j], mesh)
                << " on " << bound;
          }
      };
      check(products, bound);
      check(slices, bound - 1);
    }
}

TEST(Refines, DynamicDimensions) {
  Mesh mesh = makeMesh("<x = 2, y = 2>");
  auto check = [&](const char *fine, const char *coarse) {
    View a = canonicalize(makeView(fine, mesh), {kDynamic}, mesh);
    View b = canonicalize(makeView(coarse, mesh), {kDynamic}, mesh);
    return refines(a.dims[0].product, b.dims[0].product, kDynamic, mesh);
  };
  EXPECT_TRUE(check("[did(x) * _]", "[_]"));
  EXPECT_FALSE(check("[_]", "[did(x) * _]"));
  EXPECT_TRUE(check("[_ * did(x) * did(y) * 4]", "[_ * did(x) * 8]"));
  // The blocks are ceilings: 3 values on 2 are 2 and 1, on 2x2 one each.
  EXPECT_FALSE(check("[did(y) * did(x) * _]", "[did(x) * _]"));
}
