//===- PlanViews.cpp - the views between the steps of a plan --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See PlanViews.h. A view is put together group by group from the digits of
// both ends, in the dims of one of them, and made canonical.
//
//===----------------------------------------------------------------------===//

#include "Layout/PlanViews.h"
#include "Layout/ViewInternal.h"

#include <algorithm>

namespace tessera::layout {

//===----------------------------------------------------------------------===//
// Sub-axes and partial states of views
//===----------------------------------------------------------------------===//

std::optional<Combiner> changedCombiner(const View &from, const View &to) {
  for (auto [some, others] : {std::pair(&from, &to), std::pair(&to, &from)})
    for (const Partial &state : some->partial)
      if (std::ranges::find(others->partial, state) == others->partial.end())
        return state.combiner;
  return std::nullopt;
}

bool overlap(const std::vector<SubAxis> &a, const std::vector<SubAxis> &b) {
  return std::ranges::any_of(a, [&](const SubAxis &x) {
    return std::ranges::any_of(b,
                               [&](const SubAxis &y) { return overlap(x, y); });
  });
}

std::vector<SubAxis> splitAxes(const View &view) {
  std::vector<SubAxis> axes;
  for (const Dim &dim : view.dims) {
    std::vector<SubAxis> subs = axesOf(dim.product);
    axes.insert(axes.end(), subs.begin(), subs.end());
  }
  return axes;
}

std::vector<SubAxis> intersect(const std::vector<SubAxis> &a,
                               const std::vector<SubAxis> &b) {
  std::vector<SubAxis> result;
  for (const SubAxis &sub : a) {
    for (const SubAxis &other : b) {
      int64_t pre = std::max(sub.pre, other.pre);
      int64_t end = std::min(sub.pre * sub.size, other.pre * other.size);
      if (pre >= end)
        continue;
      SubAxis both{sub.axis, pre, end / pre};
      if (contains(sub, both) && contains(other, both))
        result.push_back(both);
    }
  }
  return result;
}

std::vector<Partial> withoutPartial(const View &view,
                                    const std::vector<SubAxis> &axes) {
  std::vector<Partial> states;
  for (const Partial &state : view.partial) {
    Partial left{merged(subtract(state.axes, axes)), state.combiner};
    if (!left.axes.empty())
      states.push_back(std::move(left));
  }
  return states;
}

std::vector<Partial> commonPartial(const View &a, const View &b) {
  std::vector<Partial> states;
  for (const Partial &state : a.partial) {
    for (const Partial &other : b.partial) {
      Partial both{merged(intersect(state.axes, other.axes)), state.combiner};
      if (state.combiner == other.combiner && !both.axes.empty())
        states.push_back(std::move(both));
    }
  }
  return states;
}

Product gathered(const Product &product, const std::vector<SubAxis> &axes) {
  Product result;
  for (const Factor &factor : product) {
    if (factor.kind == Factor::Kind::Group) {
      result.push_back(
          Factor::group(gathered(factor.product, axes), factor.lo, factor.hi));
    } else if (factor.kind == Factor::Kind::Device) {
      std::vector<SubAxis> left = subtract({factor.sub}, axes);
      std::vector<SubAxis> gone = subtract({factor.sub}, left);
      std::vector<SubAxis> digits = left;
      digits.insert(digits.end(), gone.begin(), gone.end());
      std::sort(digits.begin(), digits.end());
      for (const SubAxis &digit : digits)
        result.push_back(contains(gone, digit) ? Factor::stored(digit.size)
                                               : Factor::device(digit));
    } else {
      result.push_back(factor);
    }
  }
  return result;
}

/// `product` with each device digit as those of `pieces` that it is made of.
static Product cut(const Product &product, const std::vector<SubAxis> &pieces) {
  Product result;
  for (const Factor &factor : product) {
    size_t before = result.size();
    if (factor.kind == Factor::Kind::Device)
      for (const SubAxis &piece : pieces)
        if (contains(factor.sub, piece))
          result.push_back(Factor::device(piece));
    if (result.size() == before)
      result.push_back(factor);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

View PlanViews::canonical(View view) const {
  view.alloc.reset();
  return canonicalize(view, symbolic, mesh);
}

View PlanViews::atMaximum(const View &view) const {
  return shape == symbolic ? view : canonicalize(view, shape, mesh);
}

View PlanViews::gathered(const View &view,
                         const std::vector<SubAxis> &axes) const {
  View result = view;
  for (Dim &dim : result.dims)
    dim.product = layout::gathered(dim.product, axes);
  return canonical(std::move(result));
}

/// A view with the dims of `from` or of `to` whose digits are chosen one by one
/// where the digits of both align, and as a whole for a single dimension on
/// both sides where they do not. Digits are cut at the borders of `borders`
/// too.
View PlanViews::mixed(
    const View &from, const View &to, bool intoFrom,
    const std::function<Product(const AlignedDigit &)> &digit,
    const std::function<Product(const Group &, int64_t bound)> &unaligned,
    const std::vector<SubAxis> &borders) const {
  View result = intoFrom ? from : to;
  std::vector<SubAxis> pieces = borders;
  for (const View *view : {&from, &to}) {
    std::vector<SubAxis> axes = axesOf(*view);
    pieces.insert(pieces.end(), axes.begin(), axes.end());
  }
  pieces = refineAxes(pieces).value_or(std::vector<SubAxis>{});
  for (const Group &group : joinGroups(from, to, shape)) {
    if (!group.changed())
      continue;
    size_t begin = intoFrom ? group.fromBegin : group.toBegin;
    size_t end = intoFrom ? group.fromEnd : group.toEnd;
    auto digits = alignDigits(cut(group.from, pieces), cut(group.to, pieces),
                              group.bound);
    if (digits) {
      size_t next = 0;
      for (size_t dim = begin; dim < end; ++dim) {
        int64_t bound = boundOf(result, dim, shape);
        Product &product = result.dims[dim].product;
        product.clear();
        for (int64_t reach = 1; reach < bound; ++next) {
          Product chosen = digit((*digits)[next]);
          product.insert(product.end(), chosen.begin(), chosen.end());
          reach *= (*digits)[next].size;
        }
      }
    } else if (group.fromEnd - group.fromBegin == 1 &&
               group.toEnd - group.toBegin == 1) {
      result.dims[begin].product =
          unaligned(group, boundOf(result, begin, symbolic));
    }
  }
  return canonical(std::move(result));
}

/// `fine` with only those digits of `axes` that `coarse` has not, if that
/// splits `coarse` further, else `coarse`.
Product PlanViews::refinement(const Product &fine, const Product &coarse,
                              const std::vector<SubAxis> &axes,
                              int64_t bound) const {
  std::vector<SubAxis> added = subtract(axesOf(fine), axesOf(coarse));
  Product product = layout::gathered(fine, subtract(added, axes));
  return refines(product, coarse, bound, mesh) ? product : coarse;
}

View PlanViews::sliced(const View &from, const View &to,
                       const std::vector<SubAxis> &axes) const {
  return mixed(
      from, to, /*intoFrom=*/true,
      [&](const AlignedDigit &digit) {
        bool takes = digit.from.kind == Factor::Kind::Stored &&
                     digit.to.kind == Factor::Kind::Device &&
                     contains(axes, digit.to.sub);
        return Product{takes ? digit.to : digit.from};
      },
      [&](const Group &group, int64_t bound) {
        return refinement(group.to, group.from, axes, bound);
      });
}

View PlanViews::beforeGather(const View &from, const View &to) const {
  const std::vector<SubAxis> axes = subtract(splitAxes(from), axesOf(to));
  return mixed(
      from, to, /*intoFrom=*/false,
      [&](const AlignedDigit &digit) {
        bool keeps = digit.to.kind == Factor::Kind::Stored &&
                     digit.from.kind == Factor::Kind::Device &&
                     contains(axes, digit.from.sub);
        return Product{keeps ? digit.from : digit.to};
      },
      [&](const Group &group, int64_t bound) {
        return refinement(group.from, group.to, axes, bound);
      },
      axes);
}

/// The values of a digit that may be split: stored, or a `_`, the blocks of
/// which keep their places only if it is outermost. Else 1.
static int64_t divisibleSize(const View &view, size_t dim, size_t place,
                             const Shape &shape) {
  const Product &product = view.dims[dim].product;
  switch (product[place].kind) {
  case Factor::Kind::Stored:
    return product[place].size;
  case Factor::Kind::Rest:
    return place ? 1 : restCapacity(product, boundOf(view, dim, shape));
  default:
    return 1;
  }
}

/// `view` with that digit in blocks over `axes`; nothing where it is none.
std::optional<View> PlanViews::scatteredAt(const View &view,
                                           const std::vector<SubAxis> &axes,
                                           size_t dim, size_t place) const {
  int64_t parts = sizeOf(axes), size = divisibleSize(view, dim, place, shape);
  if (size == 1 || parts == 1)
    return std::nullopt;
  View result = view;
  Product &product = result.dims[dim].product;
  Product split;
  for (const SubAxis &sub : axes)
    split.push_back(Factor::device(sub));
  split.push_back(product[place].kind == Factor::Kind::Rest
                      ? Factor::rest()
                      : Factor::stored(ceilDiv(size, parts)));
  if (place != 0 && size % parts)
    split = {Factor::group(std::move(split), 0, size)};
  product.erase(product.begin() + place);
  product.insert(product.begin() + place, split.begin(), split.end());
  return canonical(std::move(result));
}

std::optional<View> PlanViews::scattered(const View &view,
                                         const std::vector<SubAxis> &axes,
                                         const std::set<size_t> &stay) const {
  size_t bestDim = 0, bestPlace = 0;
  int64_t bestSize = 1, bestLeft = 1;
  for (size_t dim = 0; dim < view.dims.size(); ++dim) {
    for (size_t i = 0; i < view.dims[dim].product.size() && !stay.contains(dim);
         ++i) {
      int64_t size = divisibleSize(view, dim, i, shape);
      int64_t left = ceilDiv(size, sizeOf(axes));
      if (size == 1 || (bestSize > 1 && left * bestSize >= bestLeft * size))
        continue;
      bestDim = dim;
      bestPlace = i;
      bestSize = size;
      bestLeft = left;
    }
  }
  if (bestSize == 1)
    return std::nullopt;
  return scatteredAt(view, axes, bestDim, bestPlace);
}

std::optional<View>
PlanViews::scatteredInBoth(const View &view, const View &to,
                           const std::vector<SubAxis> &axes) const {
  int64_t parts = sizeOf(axes);
  bool done = false;
  auto split = [&](const Factor &factor) {
    if (done || factor.kind != Factor::Kind::Stored || factor.size % parts)
      return Product{factor};
    done = true;
    Product product;
    for (const SubAxis &sub : axes)
      product.push_back(Factor::device(sub));
    product.push_back(Factor::stored(factor.size / parts));
    return product;
  };
  View result = mixed(
      view, to, /*intoFrom=*/true,
      [&](const AlignedDigit &digit) {
        return digit.to.kind == Factor::Kind::Stored ? split(digit.from)
                                                     : Product{digit.from};
      },
      [&](const Group &group, int64_t) { return group.from; });
  for (const Group &group : joinGroups(view, to, shape)) {
    if (group.changed())
      continue;
    for (size_t dim = group.fromBegin; dim < group.fromEnd && !done; ++dim) {
      Product product;
      for (const Factor &factor : result.dims[dim].product) {
        Product chosen = split(factor);
        product.insert(product.end(), chosen.begin(), chosen.end());
      }
      result.dims[dim].product = std::move(product);
    }
  }
  if (!done)
    return std::nullopt;
  return canonical(std::move(result));
}

View PlanViews::evened(const View &view) const {
  View result = view;
  std::vector<SubAxis> elsewhere;
  const Shape local = maxLocalShape(view, shape, mesh);
  for (size_t dim = 0; dim < view.dims.size(); ++dim) {
    Product &product = result.dims[dim].product;
    const std::vector<SubAxis> axes = axesOf(product);
    const int64_t parts = sizeOf(axes), bound = boundOf(view, dim, shape);
    if (local[dim] * parts <= bound)
      continue;
    product.clear();
    if (bound % parts)
      elsewhere.insert(elsewhere.end(), axes.begin(), axes.end());
    else
      for (const SubAxis &sub : axes)
        product.push_back(Factor::device(sub));
    product.push_back(Factor::rest());
  }
  result = canonical(std::move(result));
  return scattered(result, elsewhere).value_or(result);
}

bool PlanViews::onlyOneHolds(const View &view,
                             const std::vector<SubAxis> &axes) const {
  for (size_t dim = 0; dim < view.dims.size(); ++dim) {
    const Product &product = view.dims[dim].product;
    const int64_t bound = boundOf(view, dim, shape);
    const Parts parts(product);
    std::vector<SubAxis> own;
    for (const SubAxis &sub : axes)
      if (overlap(parts.subs, {sub}))
        own.push_back(sub);
    if (own.empty())
      continue;
    std::optional<std::vector<int64_t>> holder;
    for (int64_t part = 0; part < parts.count; ++part) {
      const Coords coords = parts.coordsOf(mesh, part);
      if (!localExtent(product, bound, mesh, coords))
        continue;
      std::vector<int64_t> digits;
      for (const SubAxis &sub : own)
        digits.push_back(sub.digit(mesh, coords));
      if (holder && *holder != digits)
        return false;
      holder = std::move(digits);
    }
  }
  return true;
}

bool PlanViews::isDynamic(const Group &group, const View &from) const {
  for (size_t dim = group.fromBegin; dim < group.fromEnd; ++dim)
    if (boundOf(from, dim, symbolic) == kDynamic)
      return true;
  return false;
}

bool PlanViews::alwaysSlices(const View &from, const View &to) const {
  for (const Group &group : joinGroups(from, to, shape))
    if (group.changed() && isDynamic(group, from) &&
        !refines(group.to, group.from, kDynamic, mesh))
      return false;
  return true;
}

} // namespace tessera::layout
