//===- ViewText.cpp - any text as a mesh, shapes and a view ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An input has four lines: a mesh, a shape, another shape of as many elements
// (or none), a view of a tensor of the first shape.
//
//     <x = 2, y = 3>
//     4x?x6
//     24x?
//     [did(x) * _, _, did(y) * _]
//
// What is printed must be read back as the same; the canonical form of a legal
// view must be legal, canonical, and place every element as the view does, by
// the definition of digits; so must the view of a reshape.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"
#include "Layout/View.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::layout;
using Kind = Factor::Kind;

/// Elements and devices up to which placements are compared.
static constexpr int64_t kMaxElements = 512, kMaxDevices = 16;

static std::optional<Shape> parseShape(std::string_view text) {
  Shape shape;
  if (text.empty())
    return shape;
  for (std::string_view extent : test::split(text, 'x')) {
    int64_t value = 0;
    if (extent != "?")
      for (char c : extent)
        if (c < '0' || c > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, c - '0', &value))
          return std::nullopt;
    shape.push_back(extent == "?" ? kDynamic : value);
  }
  return shape;
}

/// The number of elements, if it is known and at most `kMaxElements`.
static std::optional<int64_t> countOf(const Shape &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    if (extent < 0 || extent > kMaxElements ||
        (count *= std::max<int64_t>(extent, 1)) > kMaxElements)
      return std::nullopt;
  return std::find(shape.begin(), shape.end(), 0) == shape.end() ? count : 0;
}

/// `product` with a number for `_` and `?`: what `bound` needs.
static Product withRest(Product product, int64_t bound) {
  __int128 others = 1;
  for (Factor &factor : product) {
    if (factor.kind == Kind::Group)
      factor.product = withRest(factor.product, factor.hi);
    if (factor.kind != Kind::Rest && factor.kind != Kind::Open)
      others = std::min<__int128>(others * capacity(factor), INT64_MAX);
  }
  for (Factor &factor : product)
    if (factor.kind == Kind::Rest || factor.kind == Kind::Open)
      factor = Factor::stored(
          std::max<int64_t>(1, int64_t((bound + others - 1) / others)));
  return product;
}

/// The definition: whether the device at `coords` holds `value`.
static bool isHeld(const Product &product, int64_t value, const Mesh &mesh,
                   const Coords &coords) {
  for (size_t i = product.size(); i-- > 0;) {
    const Factor &factor = product[i];
    int64_t digit = value % capacity(factor);
    value /= capacity(factor);
    if (factor.kind == Kind::Device && factor.sub.digit(mesh, coords) != digit)
      return false;
    if (factor.kind == Kind::Group &&
        !isHeld(factor.product, factor.lo + digit, mesh, coords))
      return false;
  }
  return true;
}

/// The row-major numbers of the elements that a device holds, in local order.
static std::vector<int64_t> heldElements(const View &view, const Shape &shape,
                                         const Mesh &mesh,
                                         const Coords &coords) {
  std::vector<int64_t> held = {0};
  for (size_t i = 0; i < view.dims.size(); ++i) {
    int64_t bound = boundOf(view, i, shape);
    Product product = withRest(view.dims[i].product, bound);
    std::vector<int64_t> longer;
    for (int64_t outer : held)
      for (int64_t value = 0; value < bound; ++value)
        if (isHeld(product, value, mesh, coords))
          longer.push_back(outer * bound + value);
    held = std::move(longer);
  }
  return held;
}

static void checkSamePlacement(const View &a, const Shape &shapeOfA,
                               const View &b, const Shape &shapeOfB,
                               const Mesh &mesh) {
  for (int64_t rank = 0; rank < mesh.numDevices(); ++rank) {
    Coords coords = mesh.coordsOfRank(rank);
    FUZZ_CHECK(heldElements(a, shapeOfA, mesh, coords) ==
               heldElements(b, shapeOfB, mesh, coords));
  }
}

/// What the library says of a canonical view's elements is what they are.
static void checkIndices(const View &view, const Shape &shape,
                         const Mesh &mesh) {
  for (int64_t rank = 0; rank < mesh.numDevices(); ++rank) {
    Coords coords = mesh.coordsOfRank(rank);
    Shape local = localShape(view, shape, mesh, coords);
    for (size_t i = 0; i < view.dims.size(); ++i) {
      const Product &product = view.dims[i].product;
      int64_t bound = boundOf(view, i, shape), count = 0;
      Product digits = withRest(product, bound);
      for (int64_t value = 0; value < bound; ++value) {
        if (!isHeld(digits, value, mesh, coords))
          continue;
        FUZZ_CHECK(count < local[i]);
        FUZZ_CHECK(localToGlobal(product, bound, mesh, coords, count++) ==
                   value);
      }
      FUZZ_CHECK(local[i] == count);
      int64_t next = 0;
      for (const Run &run : localRuns(product, bound, mesh, coords)) {
        FUZZ_CHECK(run.local == next && run.length > 0);
        next += run.length;
      }
      FUZZ_CHECK(next == count);
    }
  }
}

static void checkText(const View &view, const Mesh &mesh) {
  Result<View> again = parseView(toString(view, mesh), mesh);
  FUZZ_CHECK(again && *again == view);
}

static void checkCanonical(const View &view, const Shape &shape,
                           const Mesh &mesh) {
  FUZZ_CHECK(bool(verify(view, shape, mesh)));
  FUZZ_CHECK(isCanonical(view, shape, mesh));
  checkText(view, mesh);
}

int test::fuzzOne(std::string_view input) {
  std::vector<std::string_view> lines = test::split(input, '\n');
  if (lines.size() < 4)
    return -1;
  Result<Mesh> mesh = parseMesh(lines[0]);
  std::optional<Shape> shape = parseShape(lines[1]), to = parseShape(lines[2]);
  if (!mesh || !shape || !to)
    return -1;
  Result<Mesh> sameMesh = parseMesh(toString(*mesh));
  FUZZ_CHECK(sameMesh && *sameMesh == *mesh);
  Result<View> view = parseView(lines[3], *mesh);
  if (!view)
    return -1;
  checkText(*view, *mesh);
  if (!verify(*view, *shape, *mesh))
    return 0;

  View canonical = canonicalize(*view, *shape, *mesh);
  checkCanonical(canonical, *shape, *mesh);
  std::optional<int64_t> count = countOf(*shape);
  bool small = count && mesh->numDevices() <= kMaxDevices;
  if (small) {
    checkSamePlacement(*view, *shape, canonical, *shape, *mesh);
    checkIndices(canonical, *shape, *mesh);
  }
  if (!canonical.partial.empty() || !count || countOf(*to) != count)
    return 0;
  canonical.alloc.reset();
  Result<View> reshaped = reshapeView(canonical, *shape, *to, *mesh);
  if (!reshaped)
    return 0;
  checkCanonical(*reshaped, *to, *mesh);
  if (small)
    checkSamePlacement(canonical, *shape, *reshaped, *to, *mesh);
  return 0;
}
