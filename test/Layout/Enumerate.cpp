//===- Enumerate.cpp - all small products, and their meaning --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Enumerate.h. Holds the tests' main too, for the flag --long.
//
//===----------------------------------------------------------------------===//

#include "Enumerate.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace tessera::layout;
using Kind = Factor::Kind;

bool test::longRun = false;

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i)
    test::longRun |= !std::strcmp(argv[i], "--long");
  return RUN_ALL_TESTS();
}

Mesh test::makeMesh(const char *text) {
  auto mesh = parseMesh(text);
  if (!mesh) {
    ADD_FAILURE() << mesh.message();
    return {};
  }
  return *mesh;
}

View test::makeView(const char *text, const Mesh &mesh) {
  auto view = parseView(text, mesh);
  if (!view) {
    ADD_FAILURE() << view.message();
    return {};
  }
  return *view;
}

std::vector<Mesh> test::smallMeshes() {
  std::vector<const char *> texts = {"<x = 4>", "<x = 2, y = 3>"};
  if (!sanitized)
    texts.insert(texts.end(),
                 {"<x = 2>", "<x = 3>", "<x = 6>", "<x = 2, y = 2>",
                  "<x = 3, y = 2>", "<x = 4, y = 2>"});
  std::vector<Mesh> meshes;
  for (const char *text : texts)
    meshes.push_back(makeMesh(text));
  return meshes;
}

std::vector<Coords> test::allCoords(const Mesh &mesh) {
  std::vector<Coords> result = {{}};
  for (const Axis &axis : mesh.axes) {
    std::vector<Coords> longer;
    for (const Coords &coords : result)
      for (int64_t i = 0; i < axis.size; ++i) {
        longer.push_back(coords);
        longer.back().push_back(i);
      }
    result = std::move(longer);
  }
  return result;
}

static int64_t radix(const Factor &factor) {
  if (factor.kind == Kind::Device)
    return factor.sub.size;
  if (factor.kind == Kind::Group)
    return factor.hi - factor.lo;
  return factor.size;
}

int64_t test::reach(const Product &product) {
  int64_t result = 1;
  for (const Factor &factor : product)
    result *= radix(factor);
  return result;
}

bool test::isHeld(const Product &product, int64_t value, const Mesh &mesh,
                  const Coords &coords) {
  for (size_t i = product.size(); i-- > 0;) {
    const Factor &factor = product[i];
    int64_t digit = value % radix(factor);
    value /= radix(factor);
    if (factor.kind == Kind::Device) {
      int64_t axis = mesh.axes[factor.sub.axis].size;
      int64_t inner = axis / factor.sub.pre / factor.sub.size;
      if (coords[factor.sub.axis] / inner % factor.sub.size != digit)
        return false;
    }
    if (factor.kind == Kind::Group &&
        !isHeld(factor.product, factor.lo + digit, mesh, coords))
      return false;
  }
  return true;
}

std::vector<int64_t> test::heldValues(const Product &product, int64_t bound,
                                      const Mesh &mesh, const Coords &coords) {
  std::vector<int64_t> values;
  for (int64_t value = 0; value < bound; ++value)
    if (isHeld(product, value, mesh, coords))
      values.push_back(value);
  return values;
}

test::Placement test::placement(const Product &product, int64_t bound,
                                const Mesh &mesh) {
  Placement result;
  for (const Coords &coords : allCoords(mesh))
    result.push_back(heldValues(product, bound, mesh, coords));
  return result;
}

test::Signature test::signature(const Product &product, int64_t bound,
                                const Mesh &mesh) {
  Signature result(bound, 0);
  char32_t bit = 1;
  for (const Coords &coords : allCoords(mesh)) {
    for (int64_t value = 0; value < bound; ++value)
      if (isHeld(product, value, mesh, coords))
        result[value] |= bit;
    bit <<= 1;
  }
  return result;
}

Product test::withRest(Product product, int64_t bound) {
  int64_t others = 1;
  for (const Factor &factor : product)
    if (factor.kind != Kind::Rest)
      others *= radix(factor);
  for (Factor &factor : product)
    if (factor.kind == Kind::Rest)
      factor =
          Factor::stored(std::max<int64_t>(1, (bound + others - 1) / others));
  return product;
}

std::vector<int64_t> test::heldElements(const View &view, const Shape &shape,
                                        const Mesh &mesh,
                                        const Coords &coords) {
  std::vector<int64_t> result = {0};
  for (size_t i = 0; i < view.dims.size(); ++i) {
    int64_t bound = boundOf(view, i, shape);
    std::vector<int64_t> values =
        heldValues(withRest(view.dims[i].product, bound), bound, mesh, coords);
    std::vector<int64_t> longer;
    for (int64_t outer : result)
      for (int64_t value : values)
        longer.push_back(outer * bound + value);
    result = std::move(longer);
  }
  return result;
}

void test::forEachProduct(const Mesh &mesh, const Pool &pool,
                          const std::function<void(const Product &)> &body) {
  std::vector<Factor> factors;
  for (int64_t size : pool.stored)
    factors.push_back(Factor::stored(size));
  for (size_t i = 0; i < mesh.axes.size(); ++i) {
    int64_t axis = mesh.axes[i].size;
    for (int64_t pre = 1; pre <= axis; ++pre)
      for (int64_t size = 2; pre * size <= axis; ++size)
        if (axis % (pre * size) == 0 && (pool.subAxes || size == axis))
          factors.push_back(Factor::device({int(i), pre, size}));
  }
  Product product;
  std::function<void()> extend = [&] {
    if (reach(product) > pool.maxCapacity)
      return;
    body(product);
    if (int(product.size()) == pool.maxFactors)
      return;
    for (const Factor &factor : factors) {
      bool disjoint = true;
      for (const Factor &other : product)
        if (factor.kind == Kind::Device && other.kind == Kind::Device)
          disjoint &= !overlap(factor.sub, other.sub);
      if (!disjoint)
        continue;
      product.push_back(factor);
      extend();
      product.pop_back();
    }
  };
  extend();
}
