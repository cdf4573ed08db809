//===- ViewDerive.cpp - views of derived tensors --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The views under which a reshape or a slice moves no data, and
// when one view splits another further.
//
// A reshape pairs the least groups of operand and result dimensions that hold
// equally many elements. In each group the operand's products, each cut at its
// extent, are written one after the other as one mixed-radix number, and that
// is cut again at the borders of the result's dimensions:
//
//     [3, did(x) * 5]  on 3x10     3 * did(x) * 5  on 30     [3 * did(x), 5] on
//     6x5
//
//===----------------------------------------------------------------------===//

#include "Layout/ViewInternal.h"

#include <algorithm>
#include <numeric>

using namespace tessera;
using namespace tessera::layout;
using Kind = Factor::Kind;

static bool isRest(const Factor &factor) {
  return factor.kind == Kind::Rest || factor.kind == Kind::Open;
}

static std::string text(int64_t value) { return std::to_string(value); }

static Dim canonicalDim(Product product, int64_t bound, int64_t span) {
  return {bound == kDynamic ? canonicalDynamicProduct(product)
                            : canonicalProduct(product, bound),
          span};
}

/// Whole on every device.
static Dim wholeDim(int64_t extent) {
  if (extent == kDynamic)
    return {{Factor::rest()}, 1};
  return {{Factor::stored(std::max<int64_t>(1, extent))}, 1};
}

//===----------------------------------------------------------------------===//
// Splitting at borders
//===----------------------------------------------------------------------===//

/// Cuts the digit `factors.back()`, of stride `stride`, so that an inner digit
/// of radix `radix` remains at the back. False if it does not come apart there.
static bool splitLast(Product &factors, int64_t stride, int64_t radix,
                      int64_t bound) {
  Factor &factor = factors.back();
  // What an outermost stored digit reaches beyond the bound does not count.
  bool outermost =
      factors.size() == 1 || (bound != kDynamic && !isRest(factor) &&
                              multiply(stride, capacity(factor)) >= bound);
  Factor inner = Factor::stored(radix);
  if (factor.kind == Kind::Stored && (outermost || factor.size % radix == 0)) {
    factor.size = ceilDiv(factor.size, radix);
  } else if (isRest(factor) && outermost) {
    // Stays as it is: the ceiling of what is left.
  } else if (factor.kind == Kind::Device && factor.sub.size % radix == 0) {
    factor.sub.size /= radix;
    inner = Factor::device(
        {factor.sub.axis, factor.sub.pre * factor.sub.size, radix});
  } else {
    return false;
  }
  factors.push_back(std::move(inner));
  return true;
}

std::vector<Dim> layout::splitAtBorders(Product product, const Shape &extents) {
  int64_t bound = 1;
  for (int64_t extent : extents)
    bound = extent == kDynamic || bound == kDynamic ? kDynamic
                                                    : multiply(bound, extent);
  // Outermost dimensions of one value need no digits.
  size_t first = 0;
  while (first < extents.size() && extents[first] == 1)
    ++first;
  if (first == extents.size())
    first = 0;

  std::vector<Dim> dims; // innermost first
  for (size_t next = extents.size(); next > first;) {
    Product digits; // of one result dimension, innermost first
    int64_t stride = 1, border = 1, span = 0;
    do {
      --next;
      ++span;
      if (next == first) {
        border = extents[next] == kDynamic ? kDynamic
                                           : multiply(border, extents[next]);
        digits.insert(digits.end(), std::make_move_iterator(product.rbegin()),
                      std::make_move_iterator(product.rend()));
        break;
      }
      border = multiply(border, extents[next]);
      while (stride < border && !product.empty()) {
        const Factor &last = product.back();
        bool straddles =
            isRest(last) || multiply(stride, capacity(last)) > border;
        if (straddles && (border % stride != 0 ||
                          !splitLast(product, stride, border / stride, bound)))
          break;
        stride *= capacity(product.back());
        digits.push_back(std::move(product.back()));
        product.pop_back();
      }
    } while (stride != border);
    std::reverse(digits.begin(), digits.end());
    Dim dim = canonicalDim(digits, border, span);
    if (span == 1 || border == kDynamic || dim.product == digits) {
      dims.push_back(std::move(dim));
      continue;
    }
    // A group that is none within this border may come apart now.
    std::vector<Dim> parts = splitAtBorders(
        std::move(dim.product),
        Shape(extents.begin() + next, extents.begin() + next + span));
    dims.insert(dims.end(), std::make_move_iterator(parts.rbegin()),
                std::make_move_iterator(parts.rend()));
  }
  dims.resize(dims.size() + first, Dim{{Factor::stored(1)}, 1});
  std::reverse(dims.begin(), dims.end());
  return dims;
}

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

namespace {
/// Operand dimensions of the view [from, fromEnd) hold the same elements as the
/// result dimensions [to, toEnd).
struct Pairing {
  size_t from, fromEnd, to, toEnd;
};

class Reshape {
public:
  Reshape(const View &view, const Shape &from, const Shape &to,
          const Mesh &mesh)
      : view(view), to(to), mesh(mesh) {
    for (size_t i = 0; i < view.dims.size(); ++i)
      bounds.push_back(boundOf(view, i, from));
  }

  Result<View> run();

private:
  void pair();
  void pairStatic(size_t i, size_t iEnd, size_t j, size_t jEnd);
  void pairAround(size_t iFirst, size_t iLast, size_t jFirst, size_t jLast);
  std::optional<Error> convert(const Pairing &group);
  Result<Product> merge(const Pairing &group, bool dynamic);
  std::optional<Error> splitAround(const Pairing &group, Product merged,
                                   const Shape &extents, size_t first,
                                   size_t last);
  /// The operand's view, but these dimensions whole.
  std::string viewWithWhole(size_t begin, size_t end) const {
    View whole = view;
    for (size_t i = begin; i < end; ++i)
      whole.dims[i].product = {Factor::rest()};
    return toString(whole, mesh);
  }

  const View &view;
  const Shape &to;
  const Mesh &mesh;
  Shape bounds; // of the view's dimensions
  std::vector<Pairing> groups;
  View result;
};
} // namespace

static int64_t staticProduct(const Shape &shape, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t i = begin; i < end; ++i)
    if (shape[i] != kDynamic)
      product = multiply(product, shape[i]);
  return product;
}

/// Pairs static dimensions of equal products, from the left.
void Reshape::pairStatic(size_t i, size_t iEnd, size_t j, size_t jEnd) {
  size_t firstGroup = groups.size();
  while (i < iEnd && j < jEnd) {
    Pairing group{i, i + 1, j, j + 1};
    int64_t left = bounds[i++], right = to[j++];
    while (left != right) {
      if (left < right)
        left *= bounds[i++];
      else
        right *= to[j++];
    }
    group.fromEnd = i;
    group.toEnd = j;
    groups.push_back(group);
  }
  // Dimensions of extent 1 are left over.
  if (i == iEnd && j == jEnd)
    return;
  if (groups.size() == firstGroup) {
    groups.push_back({i, iEnd, j, jEnd});
    return;
  }
  groups.back().fromEnd = iEnd;
  groups.back().toEnd = jEnd;
}

/// Pairs what it can of static dimensions from either side; what is between is
/// one group.
void Reshape::pairAround(size_t iFirst, size_t iLast, size_t jFirst,
                         size_t jLast) {
  // Up to the next border that both shapes have.
  size_t i = 0, j = 0;
  for (size_t a = 0, b = 0; a < iFirst && b < jFirst; i = a, j = b) {
    int64_t left = bounds[a++], right = to[b++];
    while (left != right && (left < right ? a < iFirst : b < jFirst)) {
      if (left < right)
        left *= bounds[a++];
      else
        right *= to[b++];
    }
    if (left != right)
      break;
    groups.push_back({i, a, j, b});
  }
  std::vector<Pairing> found; // rightmost first
  size_t iEnd = bounds.size(), jEnd = to.size();
  for (size_t a = iEnd, b = jEnd;
       a > std::max(i, iLast) && b > std::max(j, jLast); iEnd = a, jEnd = b) {
    int64_t left = bounds[--a], right = to[--b];
    while (left != right &&
           (left < right ? a > std::max(i, iLast) : b > std::max(j, jLast))) {
      if (left < right)
        left *= bounds[--a];
      else
        right *= to[--b];
    }
    if (left != right)
      break;
    found.push_back({a, iEnd, b, jEnd});
  }
  groups.push_back({i, iEnd, j, jEnd});
  groups.insert(groups.end(), found.rbegin(), found.rend());
}

void Reshape::pair() {
  auto nextDynamic = [](const Shape &shape, size_t begin) {
    return size_t(std::find(shape.begin() + begin, shape.end(), kDynamic) -
                  shape.begin());
  };
  // Between two `?` lie equally many elements, if those of the result are those
  // of the operand.
  bool alike = std::count(bounds.begin(), bounds.end(), kDynamic) ==
               std::count(to.begin(), to.end(), kDynamic);
  for (size_t i = 0, j = 0; alike;) {
    size_t iEnd = nextDynamic(bounds, i), jEnd = nextDynamic(to, j);
    alike = staticProduct(bounds, i, iEnd) == staticProduct(to, j, jEnd);
    if (iEnd == bounds.size())
      break;
    i = iEnd + 1;
    j = jEnd + 1;
  }
  if (!alike) {
    auto afterDynamic = [](const Shape &shape) {
      return size_t(shape.rend() -
                    std::find(shape.rbegin(), shape.rend(), kDynamic));
    };
    pairAround(nextDynamic(bounds, 0), afterDynamic(bounds), nextDynamic(to, 0),
               afterDynamic(to));
    return;
  }
  for (size_t i = 0, j = 0;;) {
    size_t iEnd = nextDynamic(bounds, i), jEnd = nextDynamic(to, j);
    pairStatic(i, iEnd, j, jEnd);
    if (iEnd == bounds.size())
      return;
    groups.push_back({iEnd, iEnd + 1, jEnd, jEnd + 1});
    i = iEnd + 1;
    j = jEnd + 1;
  }
}

/// The one number that the operand dimensions of a group make, all of them but
/// the outermost with their extents as bounds. An inner `?` is a `_` there.
Result<Product> Reshape::merge(const Pairing &group, bool dynamic) {
  size_t first = group.from; // of the dynamic dimensions
  while (first < group.fromEnd && bounds[first] != kDynamic)
    ++first;
  size_t last = group.fromEnd;
  while (last > first && bounds[last - 1] != kDynamic)
    --last;
  size_t outermost = group.from;
  while (outermost < first && bounds[outermost] == 1 &&
         axesOf(view.dims[outermost].product).empty())
    ++outermost;
  bool isInner = last > outermost + 1;
  Product merged;
  int64_t bound = 1;
  for (size_t i = group.from; i < group.fromEnd; ++i) {
    const Product &product = view.dims[i].product;
    bound = dynamic ? kDynamic : multiply(bound, bounds[i]);
    if (isInner && i >= first && i < last) {
      if (std::vector<SubAxis> axes = axesOf(product); !axes.empty()) {
        return Error{"operand dimension " + text(i) + ": how did(" +
                     toString(axes[0], mesh) +
                     ") splits a `?` that is merged with others cannot be "
                     "said of the result; constrain the operand to " +
                     viewWithWhole(i, i + 1)};
      }
      // Takes the integers before it: all of it is stored.
      while (!merged.empty() && (merged.back().kind == Kind::Stored ||
                                 merged.back().kind == Kind::Rest))
        merged.pop_back();
      merged.push_back(Factor::rest());
      continue;
    }
    // A digit that must reach exactly its extent.
    if (bounds[i] != kDynamic && (i > group.from || dynamic) &&
        capacity(product) != bounds[i])
      merged.push_back(Factor::group(product, 0, bounds[i]));
    else
      merged.insert(merged.end(), product.begin(), product.end());
  }
  return canonicalDim(std::move(merged), bound, 1).product;
}

/// Cuts a number at the borders of result dimensions of which the one at
/// `first` is dynamic and those after it up to `last`, too, or whole: an inner
/// `?` gets what is stored innermost of what is outside of it.
std::optional<Error> Reshape::splitAround(const Pairing &group, Product merged,
                                          const Shape &extents, size_t first,
                                          size_t last) {
  Shape borders(extents.begin() + last, extents.end());
  borders[0] = kDynamic;
  std::vector<Dim> dims = splitAtBorders(std::move(merged), borders);
  Product outer = std::move(dims[0].product);
  int64_t extent = staticProduct(extents, 0, first);
  bool fits = dims[0].span == 1;
  if (std::vector<SubAxis> axes = axesOf(outer); !axes.empty()) {
    // [4, ?] from did(x:2) * _: did(x:2) * 2 and `_`, whose share must be
    // exact.
    int64_t inside = 1;
    for (; outer.back().kind == Kind::Stored; outer.pop_back())
      inside = multiply(inside, outer.back().size);
    fits &= isRest(outer.back());
    outer.pop_back();
    int64_t reach = fits ? capacity(outer) : 0;
    if (reach == 0 || extent % multiply(reach, inside) != 0)
      return Error{"result dimension " + text(last) + ": did(" +
                   toString(axes[0], mesh) +
                   ") does not split the static dimensions outside of this `?` "
                   "evenly; constrain the operand to " +
                   viewWithWhole(group.from, group.fromEnd)};
    outer.push_back(Factor::stored(extent / reach));
    outer = canonicalDim(std::move(outer), extent, 1).product;
    for (Dim &dim : splitAtBorders(
             std::move(outer), Shape(extents.begin(), extents.begin() + first)))
      result.dims.push_back(std::move(dim));
  } else if (!fits) {
    return Error{"result dimension " + text(last) +
                 ": a `?` among dimensions that the view would join; constrain "
                 "the operand to " +
                 viewWithWhole(group.from, group.fromEnd)};
  } else {
    first = 0;
  }
  for (; first <= last; ++first)
    result.dims.push_back(wholeDim(extents[first]));
  result.dims.insert(result.dims.end(),
                     std::make_move_iterator(dims.begin() + 1),
                     std::make_move_iterator(dims.end()));
  return std::nullopt;
}

std::optional<Error> Reshape::convert(const Pairing &group) {
  size_t count = group.fromEnd - group.from;
  Shape extents(to.begin() + group.to, to.begin() + group.toEnd);
  if (count == 1 && extents.size() == 1 && view.dims[group.from].span == 1) {
    result.dims.push_back(view.dims[group.from]);
    return std::nullopt;
  }

  std::vector<SubAxis> axes;
  for (size_t i = group.from; i < group.fromEnd; ++i) {
    std::vector<SubAxis> some = axesOf(view.dims[i].product);
    axes.insert(axes.end(), some.begin(), some.end());
  }
  if (axes.empty()) {
    for (int64_t extent : extents)
      result.dims.push_back(wholeDim(extent));
    return std::nullopt;
  }
  if (extents.empty())
    return Error{"did(" + toString(axes[0], mesh) +
                 ") has no dimension in a result of rank 0"};

  auto isDynamic = [](int64_t extent) { return extent == kDynamic; };
  size_t outermost = 0, first = 0, last = 0;
  while (outermost < extents.size() && extents[outermost] == 1)
    ++outermost;
  for (size_t i = extents.size(); i-- > 0;)
    if (isDynamic(extents[i])) {
      first = i;
      last = std::max(last, i);
    }
  Result<Product> merged =
      merge(group, std::any_of(extents.begin(), extents.end(), isDynamic) ||
                       std::any_of(bounds.begin() + group.from,
                                   bounds.begin() + group.fromEnd, isDynamic));
  if (!merged)
    return merged.error();
  // Only an outermost `?` leaves the digits inside it at known strides.
  if (last > outermost)
    return splitAround(group, std::move(*merged), extents, first, last);
  for (Dim &dim : splitAtBorders(std::move(*merged), extents))
    result.dims.push_back(std::move(dim));
  return std::nullopt;
}

/// An order of `count` local dimensions that is row-major stays so; another one
/// is left to later passes.
static std::optional<std::vector<int64_t>>
rowMajorOnly(const std::optional<std::vector<int64_t>> &alloc, size_t count) {
  if (!alloc || !std::is_sorted(alloc->begin(), alloc->end()))
    return std::nullopt;
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), int64_t(0));
  return order;
}

Result<View> Reshape::run() {
  bool empty = false, isDynamic = false;
  int64_t fromCount = staticProduct(bounds, 0, bounds.size());
  int64_t toCount = staticProduct(to, 0, to.size());
  for (const Shape *shape : {&std::as_const(bounds), &to})
    for (int64_t extent : *shape) {
      empty |= extent == 0;
      isDynamic |= extent == kDynamic;
    }
  if (!empty && std::max(fromCount, toCount) == INT64_MAX)
    return Error{"a reshape of more than 2^63 elements"};
  if (!isDynamic && fromCount != toCount)
    return Error{"the operand has " + text(fromCount) +
                 " elements and the result " + text(toCount) +
                 "; a reshape keeps their number"};
  if (empty) {
    for (int64_t extent : to)
      result.dims.push_back(wholeDim(extent));
  } else {
    pair();
    for (const Pairing &group : groups)
      if (auto error = convert(group))
        return *error;
  }
  result.partial = view.partial;
  result.alloc = rowMajorOnly(view.alloc, result.dims.size());
  return result;
}

Result<View> layout::reshapeView(const View &view, const Shape &from,
                                 const Shape &to, const Mesh &mesh) {
  return Reshape(view, from, to, mesh).run();
}

//===----------------------------------------------------------------------===//
// Slice
//===----------------------------------------------------------------------===//

Result<View> layout::sliceView(const View &view, const Shape &shape,
                               const Shape &offsets, const Shape &sizes,
                               const Mesh &mesh) {
  View result;
  result.partial = view.partial;
  bool whole = true;
  size_t first = 0;
  for (size_t i = 0; i < view.dims.size(); ++i) {
    const Dim &dim = view.dims[i];
    int64_t inner = 1; // elements of a step of the outermost dimension
    bool wholeDim = true, wholeInner = true;
    for (int64_t k = 0; k < dim.span; ++k) {
      bool all =
          offsets[first + k] == 0 && sizes[first + k] == shape[first + k];
      wholeDim &= all;
      wholeInner &= all || k == 0;
      if (k > 0)
        inner = multiply(inner, shape[first + k]);
    }
    std::string where = "dimension " + text(first);
    int64_t offset = offsets[first], size = sizes[first];
    int64_t extent = shape[first];
    first += dim.span;
    if (wholeDim) {
      result.dims.push_back(dim);
      continue;
    }
    whole = false;
    if (!wholeInner)
      return Error{where + " is the start of a flat(" + text(dim.span) +
                   "), of which a slice keeps the inner dimensions whole; "
                   "move the data first"};
    bool split = !axesOf(dim.product).empty();
    if (extent == kDynamic || size == kDynamic ||
        boundOf(view, i, shape) == kDynamic) {
      if (split)
        return Error{where + " is split and dynamic; where a slice of it lies "
                             "is unknown, so make it whole first"};
      if (size != kDynamic && dim.span == 1)
        result.dims.push_back(
            {{Factor::stored(std::max<int64_t>(1, size))}, 1});
      else
        result.dims.push_back({{Factor::rest()}, dim.span});
      continue;
    }
    Product slice;
    if (size > 0)
      slice.push_back(
          Factor::group(dim.product, offset * inner, (offset + size) * inner));
    Dim sliced = canonicalDim(std::move(slice), size * inner, dim.span);
    if (dim.span == 1) {
      result.dims.push_back(std::move(sliced));
      continue;
    }
    Shape extents(sizes.begin() + first - dim.span, sizes.begin() + first);
    for (Dim &part : splitAtBorders(std::move(sliced.product), extents))
      result.dims.push_back(std::move(part));
  }
  if (whole)
    result.alloc = view.alloc;
  return result;
}

//===----------------------------------------------------------------------===//
// Refinement
//===----------------------------------------------------------------------===//

static bool hasGroup(const Product &product) {
  return std::any_of(product.begin(), product.end(), [](const Factor &factor) {
    return factor.kind == Kind::Group;
  });
}

/// Makes the device digits that `coarse` has not stored ones, so that what is
/// left is `coarse` if `fine` only splits further. False when the axes are cut
/// in ways that do not fit.
static bool storeOthers(Product &fine, const std::vector<SubAxis> &coarse) {
  Product result;
  for (const Factor &factor : fine) {
    if (factor.kind != Kind::Device) {
      result.push_back(factor);
      continue;
    }
    // Walks the digit from its outer end, cutting it at borders of `coarse`.
    SubAxis sub = factor.sub;
    int64_t pre = sub.pre, end = sub.pre * sub.size;
    while (pre < end) {
      int64_t stop = end;
      bool common = false;
      for (const SubAxis &other : coarse) {
        if (other.axis != sub.axis)
          continue;
        int64_t otherEnd = other.pre * other.size;
        if (other.pre <= pre && otherEnd > pre) {
          common = true;
          stop = std::min(stop, otherEnd);
        } else if (other.pre > pre) {
          stop = std::min(stop, other.pre);
        }
      }
      if (stop % pre != 0 || end % stop != 0)
        return false;
      result.push_back(common ? Factor::device({sub.axis, pre, stop / pre})
                              : Factor::stored(stop / pre));
      pre = stop;
    }
  }
  fine = std::move(result);
  return true;
}

/// Whether every run of `fine` lies in runs of `coarse`.
static bool contains(const std::vector<Run> &coarse,
                     const std::vector<Run> &fine) {
  size_t i = 0;
  for (const Run &run : fine) {
    while (i < coarse.size() &&
           coarse[i].global + coarse[i].length <= run.global)
      ++i;
    if (i == coarse.size() || coarse[i].global > run.global ||
        coarse[i].global + coarse[i].length < run.global + run.length)
      return false;
  }
  return true;
}

bool layout::refines(const Product &fine, const Product &coarse, int64_t bound,
                     const Mesh &mesh) {
  if (fine == coarse)
    return true;
  std::vector<SubAxis> axes = axesOf(coarse);
  if (axes.empty())
    return true;
  // Both partition the extent by their devices. So if each part of `fine`, with
  // the axes foreign to `coarse` joined, is in a part of `coarse`, they are
  // equal; and without groups equal parts have equal spellings.
  Product joined = fine;
  if (!hasGroup(fine) && !hasGroup(coarse) && storeOthers(joined, axes))
    return (bound == kDynamic ? canonicalDynamicProduct(joined)
                              : canonicalProduct(joined, bound)) == coarse;
  if (bound == kDynamic)
    return false;
  std::vector<SubAxis> all = axesOf(fine);
  all.insert(all.end(), axes.begin(), axes.end());
  return forEachCoords(all, mesh, [&](const Coords &coords) {
    return contains(localRuns(coarse, bound, mesh, coords),
                    localRuns(fine, bound, mesh, coords));
  });
}

//===----------------------------------------------------------------------===//
// Another mesh
//===----------------------------------------------------------------------===//

namespace {
/// From the axes of one mesh to those of another; notes what has none.
struct Translation {
  const Mesh &from, &to;
  std::optional<SubAxis> missing;

  std::vector<SubAxis> operator()(const SubAxis &sub) {
    if (auto digits = sameDigit(sub, from, to))
      return *digits;
    missing = sub;
    return {};
  }
};
} // namespace

static Product translated(const Product &product, Translation &translation) {
  Product result;
  for (const Factor &factor : product) {
    if (factor.kind == Kind::Device) {
      for (const SubAxis &sub : translation(factor.sub))
        result.push_back(Factor::device(sub));
      continue;
    }
    result.push_back(factor);
    if (factor.kind == Kind::Group)
      result.back().product = translated(factor.product, translation);
  }
  if (result.empty()) // of axes of size 1
    result.push_back(Factor::stored(1));
  return result;
}

Result<View> layout::onMesh(View view, const Mesh &from, const Mesh &to) {
  Translation translation{from, to, std::nullopt};
  for (Dim &dim : view.dims)
    dim.product = translated(dim.product, translation);
  for (Partial &partial : view.partial) {
    std::vector<SubAxis> axes;
    for (const SubAxis &sub : partial.axes)
      for (const SubAxis &digit : translation(sub))
        axes.push_back(digit);
    partial.axes = std::move(axes);
  }
  if (translation.missing)
    return Error{toString(*translation.missing, from) + " of the mesh " +
                 toString(from) + " is no digit of its ranks on the mesh " +
                 toString(to)};
  return view;
}
