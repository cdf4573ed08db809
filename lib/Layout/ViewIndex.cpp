//===- ViewIndex.cpp - local and global indices ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A factor is a digit that answers, at given coordinates: how many of its
// values below x are held, is x held, which is the j-th held, and how far does
// the held run at x reach. A product answers the same for its mixed-radix
// numbers, from the innermost factor outwards with the stride so far; a group
// asks its product with its lower bound added. So everything here takes time in
// the number of factors, and no memory.
//
//===----------------------------------------------------------------------===//

#include "Layout/ViewInternal.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::layout;
using Kind = Factor::Kind;

//===----------------------------------------------------------------------===//
// Capacities
//===----------------------------------------------------------------------===//

static int64_t capacity(const Factor &factor, int64_t rest) {
  switch (factor.kind) {
  case Kind::Stored:
    return factor.size;
  case Kind::Device:
    return factor.sub.size;
  case Kind::Group:
    return factor.hi - factor.lo;
  case Kind::Rest:
  case Kind::Open:
    return rest;
  }
  __builtin_unreachable();
}

int64_t layout::capacity(const Factor &factor) { return ::capacity(factor, 1); }

int64_t layout::capacity(const Product &product) {
  int64_t result = 1;
  for (const Factor &factor : product)
    result = multiply(result, capacity(factor));
  return result;
}

int64_t layout::restCapacity(const Product &product, int64_t bound) {
  return std::max<int64_t>(1, ceilDiv(bound, capacity(product)));
}

Product layout::withoutRest(const Product &product, int64_t bound) {
  Product result = product;
  for (Factor &factor : result) {
    if (factor.kind == Kind::Group)
      factor.product = withoutRest(factor.product, factor.hi);
    else if ((factor.kind == Kind::Rest || factor.kind == Kind::Open) &&
             bound != kDynamic)
      factor = Factor::stored(restCapacity(product, bound));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Digits at given coordinates
//===----------------------------------------------------------------------===//

namespace {
/// The digits of one product at one device. `rest` is the capacity of its `_`.
class Digits {
public:
  Digits(const Product &product, int64_t bound, const Mesh &mesh,
         const Coords &coords)
      : product(product), mesh(mesh), coords(coords) {
    for (const Factor &factor : product)
      if (factor.kind == Kind::Rest || factor.kind == Kind::Open)
        rest = restCapacity(product, bound);
  }

  /// Held values below `bound`.
  int64_t countBelow(int64_t bound) const {
    int64_t count = 0, full = 1, stride = 1;
    for (size_t i = product.size(); i-- > 0;) {
      const Factor &factor = product[i];
      int64_t size = ::capacity(factor, rest);
      int64_t x = bound / stride % size;
      count = countBelow(factor, x) * full + (has(factor, x) ? count : 0);
      full = multiply(full, countBelow(factor, size));
      stride = multiply(stride, size);
    }
    return bound >= stride ? full : count;
  }

  bool has(int64_t value) const {
    int64_t stride = 1;
    for (size_t i = product.size(); i-- > 0;) {
      int64_t size = ::capacity(product[i], rest);
      if (!has(product[i], value / stride % size))
        return false;
      stride = multiply(stride, size);
    }
    return true;
  }

  /// The held value with `index` held values below it.
  int64_t select(int64_t index) const {
    int64_t value = 0, stride = 1;
    for (size_t i = product.size(); i-- > 0;) {
      const Factor &factor = product[i];
      int64_t size = ::capacity(factor, rest);
      int64_t held = countBelow(factor, size);
      value += select(factor, index % held) * stride;
      index /= held;
      stride = multiply(stride, size);
    }
    return value;
  }

  /// `value` is held; an end such that all from `value` to it are held, and it
  /// is the run's end unless the run goes on over a carry.
  int64_t runEnd(int64_t value) const {
    int64_t stride = 1, end = value + 1;
    for (size_t i = product.size(); i-- > 0;) {
      const Factor &factor = product[i];
      int64_t size = ::capacity(factor, rest);
      int64_t x = value / stride % size;
      int64_t outer = value - value % multiply(stride, size);
      int64_t within = multiply(runEnd(factor, x), stride);
      if (__builtin_add_overflow(outer, within, &end))
        end = INT64_MAX;
      if (countBelow(factor, size) != size)
        return end;
      stride = multiply(stride, size);
    }
    return end;
  }

private:
  Digits inside(const Factor &group) const {
    return Digits(group.product, group.hi, mesh, coords);
  }

  int64_t countBelow(const Factor &factor, int64_t x) const {
    switch (factor.kind) {
    case Kind::Stored:
    case Kind::Rest:
    case Kind::Open:
      return x;
    case Kind::Device:
      return x > factor.sub.digit(mesh, coords);
    case Kind::Group: {
      Digits digits = inside(factor);
      return digits.countBelow(factor.lo + x) - digits.countBelow(factor.lo);
    }
    }
    __builtin_unreachable();
  }

  bool has(const Factor &factor, int64_t x) const {
    if (factor.kind == Kind::Device)
      return x == factor.sub.digit(mesh, coords);
    if (factor.kind == Kind::Group)
      return inside(factor).has(factor.lo + x);
    return true;
  }

  int64_t select(const Factor &factor, int64_t index) const {
    if (factor.kind == Kind::Device)
      return factor.sub.digit(mesh, coords);
    if (factor.kind == Kind::Group) {
      Digits digits = inside(factor);
      return digits.select(index + digits.countBelow(factor.lo)) - factor.lo;
    }
    return index;
  }

  int64_t runEnd(const Factor &factor, int64_t x) const {
    if (factor.kind == Kind::Device)
      return x + 1;
    if (factor.kind == Kind::Group)
      return std::min(inside(factor).runEnd(factor.lo + x), factor.hi) -
             factor.lo;
    return ::capacity(factor, rest);
  }

  const Product &product;
  const Mesh &mesh;
  const Coords &coords;
  int64_t rest = 1;
};
} // namespace

int64_t layout::boundOf(const View &view, size_t dim, const Shape &shape) {
  size_t first = 0;
  for (size_t i = 0; i < dim; ++i)
    first += view.dims[i].span;
  int64_t bound = 1;
  for (int64_t i = 0; i < view.dims[dim].span; ++i) {
    if (shape[first + i] == kDynamic)
      return kDynamic;
    bound = multiply(bound, shape[first + i]);
  }
  return bound;
}

int64_t layout::localExtent(const Product &product, int64_t bound,
                            const Mesh &mesh, const Coords &coords) {
  return Digits(product, bound, mesh, coords).countBelow(bound);
}

int64_t layout::localToGlobal(const Product &product, int64_t bound,
                              const Mesh &mesh, const Coords &coords,
                              int64_t index) {
  return Digits(product, bound, mesh, coords).select(index);
}

std::vector<Run> layout::localRuns(const Product &product, int64_t bound,
                                   const Mesh &mesh, const Coords &coords) {
  Digits digits(product, bound, mesh, coords);
  int64_t extent = digits.countBelow(bound);
  std::vector<Run> runs;
  for (int64_t local = 0; local < extent;) {
    int64_t global = digits.select(local);
    int64_t length = std::min(digits.runEnd(global), bound) - global;
    // A run that goes on over a carry comes in several pieces.
    if (!runs.empty() && runs.back().global + runs.back().length == global)
      runs.back().length += length;
    else
      runs.push_back({local, global, length});
    local += length;
  }
  return runs;
}

Shape layout::localShape(const View &view, const Shape &shape, const Mesh &mesh,
                         const Coords &coords) {
  Shape result(view.dims.size());
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = localExtent(view.dims[i].product, boundOf(view, i, shape), mesh,
                            coords);
  return result;
}

//===----------------------------------------------------------------------===//
// Extents over all devices
//===----------------------------------------------------------------------===//

bool layout::hasOffset(const Product &product) {
  for (const Factor &factor : product)
    if (factor.kind == Kind::Group &&
        (factor.lo != 0 || hasOffset(factor.product)))
      return true;
  return false;
}

static void collectAxes(const Product &product, std::vector<SubAxis> &axes) {
  for (const Factor &factor : product) {
    if (factor.kind == Kind::Device)
      axes.push_back(factor.sub);
    else if (factor.kind == Kind::Group)
      collectAxes(factor.product, axes);
  }
}

/// The smallest and the largest local extent over all devices.
static std::pair<int64_t, int64_t>
extentRange(const Product &product, int64_t bound, const Mesh &mesh) {
  Coords coords(mesh.axes.size(), 0);
  std::vector<SubAxis> axes = axesOf(product);
  if (axes.empty()) {
    int64_t extent = localExtent(product, bound, mesh, coords);
    return {extent, extent};
  }
  // Without offsets every digit holds at least as much as the next one of the
  // same axis, so the first device has most and the last one least.
  if (!hasOffset(product)) {
    int64_t most = localExtent(product, bound, mesh, coords);
    for (size_t i = 0; i < coords.size(); ++i)
      coords[i] = mesh.axes[i].size - 1;
    return {localExtent(product, bound, mesh, coords), most};
  }
  std::pair<int64_t, int64_t> range = {INT64_MAX, 0};
  forEachCoords(axes, mesh, [&](const Coords &coords) {
    int64_t extent = localExtent(product, bound, mesh, coords);
    range.first = std::min(range.first, extent);
    range.second = std::max(range.second, extent);
    return true;
  });
  return range;
}

Shape layout::maxLocalShape(const View &view, const Shape &shape,
                            const Mesh &mesh) {
  Shape result(view.dims.size());
  for (size_t i = 0; i < result.size(); ++i) {
    int64_t bound = boundOf(view, i, shape);
    result[i] = bound == kDynamic
                    ? kDynamic
                    : extentRange(view.dims[i].product, bound, mesh).second;
  }
  return result;
}

bool layout::isEven(const View &view, const Shape &shape, const Mesh &mesh) {
  for (size_t i = 0; i < view.dims.size(); ++i) {
    const Product &product = view.dims[i].product;
    int64_t bound = boundOf(view, i, shape);
    if (bound == kDynamic) {
      if (!axesOf(product).empty())
        return false;
      continue;
    }
    auto [least, most] = extentRange(product, bound, mesh);
    if (least != most)
      return false;
  }
  return true;
}

std::vector<int64_t> layout::localStrides(const View &view,
                                          const Shape &localShape) {
  std::vector<int64_t> strides(localShape.size());
  int64_t stride = 1;
  for (size_t i = strides.size(); i-- > 0;) {
    int64_t dim = view.alloc ? (*view.alloc)[i] : int64_t(i);
    strides[dim] = stride;
    stride *= localShape[dim];
  }
  return strides;
}

std::vector<SubAxis> layout::axesOf(const Product &product) {
  std::vector<SubAxis> axes;
  collectAxes(product, axes);
  std::sort(axes.begin(), axes.end());
  return axes;
}

std::vector<SubAxis> layout::axesOf(const View &view) {
  std::vector<SubAxis> axes = partialAxes(view);
  for (const Dim &dim : view.dims)
    collectAxes(dim.product, axes);
  std::sort(axes.begin(), axes.end());
  return axes;
}

std::vector<SubAxis> layout::partialAxes(const View &view) {
  std::vector<SubAxis> axes;
  for (const Partial &state : view.partial)
    axes.insert(axes.end(), state.axes.begin(), state.axes.end());
  return axes;
}

int64_t layout::sizeOf(const std::vector<SubAxis> &axes) {
  int64_t size = 1;
  for (const SubAxis &sub : axes)
    size *= sub.size;
  return size;
}

bool layout::liesInBlocks(const Dim &dim, const std::vector<SubAxis> &axes) {
  const Product &product = dim.product;
  const size_t own = product.size() - axes.size();
  if (dim.span != 1 || product.size() < axes.size() || own > 1)
    return false;
  for (size_t i = 0; i < axes.size(); ++i)
    if (product[i] != Factor::device(axes[i]))
      return false;
  return own == 0 || product.back().kind == Factor::Kind::Stored ||
         product.back().kind == Factor::Kind::Rest;
}
