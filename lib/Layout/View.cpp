//===- View.cpp - views: order, hash, verifier ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Comparison and hashing are structural. The verifier walks the products once
// for what can be wrong in a dimension and once for sub-axes in common.
//
//===----------------------------------------------------------------------===//

#include "Layout/ViewInternal.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::layout;
using Kind = Factor::Kind;

std::strong_ordering Factor::operator<=>(const Factor &other) const {
  if (auto order = kind <=> other.kind; order != 0)
    return order;
  switch (kind) {
  case Kind::Stored:
    return size <=> other.size;
  case Kind::Rest:
  case Kind::Open:
    return std::strong_ordering::equal;
  case Kind::Device:
    return sub <=> other.sub;
  case Kind::Group:
    if (auto order = lo <=> other.lo; order != 0)
      return order;
    if (auto order = hi <=> other.hi; order != 0)
      return order;
    return product <=> other.product;
  }
  __builtin_unreachable();
}

View View::replicated(int64_t rank) {
  View view;
  view.dims.assign(rank, Dim{{Factor::rest()}, 1});
  return view;
}

//===----------------------------------------------------------------------===//
// Hashing
//===----------------------------------------------------------------------===//

namespace {
struct Hash {
  uint64_t state = 0x9e3779b97f4a7c15;

  void add(uint64_t value) {
    state ^= value;
    state *= 0xff51afd7ed558ccd;
    state ^= state >> 32;
  }
  void add(const SubAxis &sub) {
    add(sub.axis);
    add(sub.pre);
    add(sub.size);
  }
  void add(const std::vector<int64_t> &ints) {
    add(ints.size());
    for (int64_t i : ints)
      add(i);
  }
  void add(const Product &product) {
    add(product.size());
    for (const Factor &factor : product) {
      add(uint64_t(factor.kind));
      if (factor.kind == Kind::Stored)
        add(factor.size);
      if (factor.kind == Kind::Device)
        add(factor.sub);
      if (factor.kind == Kind::Group) {
        add(factor.lo);
        add(factor.hi);
        add(factor.product);
      }
    }
  }
};
} // namespace

size_t layout::hashValue(const Mesh &mesh) {
  Hash hash;
  for (const Axis &axis : mesh.axes) {
    hash.add(std::hash<std::string>()(axis.name));
    hash.add(axis.size);
  }
  hash.add(mesh.devices);
  return hash.state;
}

size_t layout::hashValue(const View &view) {
  Hash hash;
  for (const Dim &dim : view.dims) {
    hash.add(dim.span);
    hash.add(dim.product);
  }
  hash.add(view.partial.size());
  for (const Partial &partial : view.partial) {
    hash.add(uint64_t(partial.combiner));
    for (const SubAxis &sub : partial.axes)
      hash.add(sub);
  }
  if (view.alloc)
    hash.add(*view.alloc);
  hash.add(view.priority);
  return hash.state;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

static std::string text(int64_t value) { return std::to_string(value); }

static std::optional<Error> verifySub(const SubAxis &sub, const Mesh &mesh,
                                      const std::string &where) {
  if (sub.axis < 0 || size_t(sub.axis) >= mesh.axes.size())
    return Error{where + ": axis number " + text(sub.axis) +
                 " is not on the mesh, which has " + text(mesh.axes.size()) +
                 " axes"};
  const Axis &axis = mesh.axes[sub.axis];
  if (sub.pre < 1 || sub.size < 1 ||
      axis.size % multiply(sub.pre, sub.size) != 0)
    return Error{where + ": " + toString(sub, mesh) + " is no part of axis " +
                 axis.name + " of size " + text(axis.size) + "; " +
                 text(sub.pre) + " * " + text(sub.size) + " must divide it"};
  return std::nullopt;
}

/// Keeps all arithmetic on legal views within 64 bits.
static constexpr int64_t maxReach = int64_t(1) << 62;

/// What a product under `bound` reaches when its groups are not cut.
static int64_t uncutReach(const Product &product, int64_t bound) {
  int64_t reach = 1;
  for (const Factor &factor : product) {
    int64_t size = capacity(factor);
    if (factor.kind == Kind::Group)
      size = std::max(uncutReach(factor.product, factor.hi), factor.hi);
    else if ((factor.kind == Kind::Rest || factor.kind == Kind::Open) &&
             bound != kDynamic)
      size = restCapacity(product, bound);
    reach = multiply(reach, size);
  }
  return reach;
}

/// `bound` is kDynamic where reach cannot be checked.
static std::optional<Error> verifyProduct(const Product &product, int64_t bound,
                                          bool isGroup, const Mesh &mesh,
                                          const std::string &where) {
  bool hasRest = false;
  for (const Factor &factor : product) {
    switch (factor.kind) {
    case Kind::Stored:
      if (factor.size < 1)
        return Error{where + ": a factor is " + text(factor.size) +
                     "; integers are at least 1"};
      break;
    case Kind::Rest:
    case Kind::Open:
      if (hasRest)
        return Error{"two `_` in one group of " + where +
                     "; write a number for one of them"};
      hasRest = true;
      break;
    case Kind::Device:
      if (auto error = verifySub(factor.sub, mesh, where))
        return error;
      break;
    case Kind::Group:
      if (factor.lo < 0 || factor.lo >= factor.hi)
        return Error{where + ": empty bound " + text(factor.lo) + ":" +
                     text(factor.hi) + "; a group keeps lo <= v < hi"};
      if (auto error =
              verifyProduct(factor.product, factor.hi, true, mesh, where))
        return error;
      break;
    }
  }
  int64_t reach = capacity(product);
  if (hasRest || bound == kDynamic || reach >= bound)
    return std::nullopt;
  const bool hasStored = std::ranges::any_of(product, [](const Factor &factor) {
    return factor.kind == Kind::Stored;
  });
  std::string fix = hasStored ? "`_` for one of the factors" : "`* _` behind";
  if (isGroup)
    fix = "a bound of " + text(reach) + " or less, or " + fix;
  return Error{where + ": " + toString(product, mesh) + " reaches " +
               text(reach) + (reach == 1 ? " value" : " values") +
               ", fewer than the " + (isGroup ? "bound " : "extent ") +
               text(bound) + "; write " + fix};
}

static std::optional<Error> verifyDisjoint(const View &view, const Mesh &mesh) {
  std::vector<SubAxis> axes = axesOf(view);
  for (size_t i = 0; i < axes.size(); ++i)
    for (size_t j = i + 1; j < axes.size() && axes[j].axis == axes[i].axis;
         ++j) {
      if (!overlap(axes[i], axes[j]))
        continue;
      std::string rule = "; sub-axes of one view are disjoint";
      if (axes[i] == axes[j])
        return Error{"axis " + toString(axes[i], mesh) + " is used twice" +
                     rule};
      return Error{toString(axes[i], mesh) + " and " + toString(axes[j], mesh) +
                   " overlap" + rule};
    }
  return std::nullopt;
}

static bool isPermutation(std::vector<int64_t> order, size_t size) {
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != int64_t(i))
      return false;
  return order.size() == size;
}

Status layout::verify(const View &view, const Shape &shape, const Mesh &mesh) {
  int64_t rank = 0;
  for (const Dim &dim : view.dims) {
    if (dim.span < 1 || dim.span > int64_t(shape.size()))
      return Error{"flat(" + text(dim.span) +
                   ") does not fit a tensor of rank " + text(shape.size())};
    rank += dim.span;
  }
  if (rank != int64_t(shape.size()))
    return Error{"the view describes " + text(rank) +
                 " dimensions, but the tensor has rank " + text(shape.size())};

  int64_t first = 0;
  for (size_t i = 0; i < view.dims.size(); ++i) {
    int64_t span = view.dims[i].span;
    std::string where = "dimension " + text(first);
    if (span > 1)
      where = "dimensions " + text(first) + " to " + text(first + span - 1);
    const Product &product = view.dims[i].product;
    int64_t bound = boundOf(view, i, shape);
    if (auto error = verifyProduct(product, bound, false, mesh, where))
      return *error;
    if (uncutReach(product, bound) > maxReach)
      return Error{where + ": " + toString(product, mesh) +
                   " reaches more than 2^62 values; write `_` for one of the "
                   "factors"};
    first += span;
  }
  for (const Partial &partial : view.partial)
    for (const SubAxis &sub : partial.axes)
      if (auto error = verifySub(sub, mesh, "partial"))
        return *error;
  if (auto error = verifyDisjoint(view, mesh))
    return *error;
  if (view.alloc && !isPermutation(*view.alloc, view.dims.size()))
    return Error{"alloc names each of the " + text(view.dims.size()) +
                 " local dimensions once, outermost in memory first"};
  if (!view.priority.empty() && view.priority.size() != view.dims.size())
    return Error{"priority needs a number for each of the " +
                 text(view.dims.size()) + " dimensions of the view, not " +
                 text(view.priority.size())};
  for (int64_t wish : view.priority)
    if (wish < 0)
      return Error{"priority " + text(wish) + " is negative; 0 is strongest"};
  return Ok{};
}
