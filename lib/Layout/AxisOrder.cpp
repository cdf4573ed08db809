//===- AxisOrder.cpp - axes by where they appear first --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/AxisOrder.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::layout;

static void collect(const Product &product, std::vector<SubAxis> &axes) {
  for (const Factor &factor : product) {
    if (factor.kind == Factor::Kind::Device)
      axes.push_back(factor.sub);
    collect(factor.product, axes);
  }
}

std::vector<SubAxis> layout::axesAsWritten(const Product &product) {
  std::vector<SubAxis> axes;
  collect(product, axes);
  return axes;
}

AxisOrder::AxisOrder(const Mesh &mesh) {
  for (const Axis &axis : mesh.axes)
    sizes.push_back(axis.size);
  // Behind those of views, and apart where sizes are.
  for (int64_t size : sizes)
    places.push_back(int(sizes.size()) +
                     int(std::ranges::count_if(
                         sizes, [&](int64_t other) { return other < size; })));
}

void AxisOrder::add(const View &view) {
  auto see = [&](const std::vector<SubAxis> &axes) {
    for (const SubAxis &sub : axes)
      if (places[sub.axis] >= int(places.size()))
        places[sub.axis] = count++;
  };
  for (const Dim &dim : view.dims)
    see(axesAsWritten(dim.product));
  for (const Partial &partial : view.partial)
    see(sorted(partial.axes)); // in no order of their own
}

std::vector<SubAxis> AxisOrder::sorted(std::vector<SubAxis> axes) const {
  std::ranges::sort(axes, {}, [&](const SubAxis &sub) {
    return std::pair(places[sub.axis], sub);
  });
  return axes;
}

template <typename NumberOf>
static Product withNumbers(Product product, NumberOf numberOf) {
  for (Factor &factor : product) {
    if (factor.kind == Factor::Kind::Device)
      factor.sub.axis = int(numberOf(factor.sub.axis));
    factor.product = withNumbers(std::move(factor.product), numberOf);
  }
  return product;
}

std::pair<Product, Product> AxisOrder::keyOf(const Product &product) const {
  return {withNumbers(product, [&](int axis) { return sizes[axis]; }),
          withNumbers(product, [&](int axis) { return places[axis]; })};
}
