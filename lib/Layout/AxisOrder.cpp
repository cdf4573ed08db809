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

AxisOrder::AxisOrder(const Mesh &mesh) : places(mesh.axes.size()) {
  // Behind those of views, and apart where sizes are.
  std::vector<int64_t> sizes;
  for (const Axis &axis : mesh.axes)
    sizes.push_back(axis.size);
  std::ranges::sort(sizes);
  for (size_t axis = 0; axis < places.size(); ++axis)
    places[axis] =
        int(places.size() +
            (std::ranges::find(sizes, mesh.axes[axis].size) - sizes.begin()));
}

void AxisOrder::add(const View &view) {
  auto see = [&](const std::vector<SubAxis> &axes) {
    for (const SubAxis &sub : axes)
      if (places[sub.axis] >= int(places.size()))
        places[sub.axis] = count++;
  };
  for (const Dim &dim : view.dims)
    see(axesAsWritten(dim.product));
  for (const Partial &partial : view.partial) {
    std::vector<SubAxis> axes = partial.axes; // in no order of their own
    sort(axes);
    see(axes);
  }
}

void AxisOrder::sort(std::vector<SubAxis> &axes) const {
  std::ranges::sort(axes, {}, [&](const SubAxis &sub) {
    return std::pair(places[sub.axis], sub);
  });
}

Product AxisOrder::numbered(Product product) const {
  for (Factor &factor : product) {
    if (factor.kind == Factor::Kind::Device)
      factor.sub.axis = places[factor.sub.axis];
    factor.product = numbered(std::move(factor.product));
  }
  return product;
}
