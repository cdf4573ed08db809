//===- ViewCanonical.cpp - legal views and their one spelling -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The canonical form of a dimension comes from rewriting a *span*, the values
// [lo, hi) of a product; a dimension is the span [0, extent), a group its own.
// Each rule keeps what every device holds:
//
//   trim    a digit that has one value k over the whole span goes: a stored one
//           vanishes, a device digit becomes a *fixed* digit, which says that
//           devices with another coordinate hold nothing. (For lo = 0 these are
//           the digits outside of P >= hi, P the product inside.)
//   splice  an outermost group is a shift of the span; an inner one that is
//           full, or full but for a factor common to both its ends, dissolves.
//   merge   neighbouring integers, and neighbouring digits of one axis.
//   shift   an outermost integer starts at 0 and ends with the span.
//   shrink  in a span that crosses one border only, digits of which both sides
//           show one or few values count as far as they are seen.
//   seam    where a group starts again in the middle of a stored run, at the
//   end
//           of a span, the run belongs to the group as far as it can.
//
// At the end fixed digits stand outermost in mesh order, save that one next to
// the outermost device digit is merged with it.
//
// A dynamic extent cuts nothing, so there only neighbours merge.
//
//===----------------------------------------------------------------------===//

#include "Layout/ViewInternal.h"

#include <algorithm>
#include <numeric>

using namespace tessera;
using namespace tessera::layout;
using Kind = Factor::Kind;

//===----------------------------------------------------------------------===//
// Spans
//===----------------------------------------------------------------------===//

namespace {
/// Only devices whose coordinate has `digit` at `sub` hold anything.
struct Fixed {
  SubAxis sub;
  int64_t digit;
};

/// The values [lo, hi) of `factors` (outermost first), lo < hi.
struct Span {
  Product factors;
  int64_t lo;
  int64_t hi;
};

class Normalizer {
public:
  Product dimension(const Product &product, int64_t bound);
  Product dynamicDimension(const Product &product);

private:
  void normalize(Span &span, bool inner);
  void trim(Span &span);
  void fix(const Factor &factor, int64_t digit);
  void dissolveGroups(Product &factors, bool skipOutermost);
  static void merge(Product &factors);
  static bool unrollRotations(Product &factors);
  static bool shrink(Span &span);
  static bool moveSeam(Span &span);
  void tighten(Span &span);
  static Product asFactors(Span span);
  void mergeFixed();
  bool absorbInGroups(Product &factors);
  void absorbOutermost(Span &span);

  std::vector<Fixed> fixed;
};
} // namespace

static bool isStored(const Factor &factor) {
  return factor.kind == Kind::Stored;
}

/// The stride of an outermost factor.
static int64_t innerCapacity(const Product &factors) {
  int64_t result = 1;
  for (size_t i = 1; i < factors.size(); ++i)
    result = multiply(result, capacity(factors[i]));
  return result;
}

/// The smallest size of an inner digit of a digit of radix `size` such that
/// a..b differ in that digit only.
static int64_t smallestDigit(int64_t size, int64_t a, int64_t b) {
  int64_t smallest = size;
  for (int64_t divisor = 1; divisor <= size / divisor; ++divisor)
    if (size % divisor == 0)
      for (int64_t inner : {divisor, size / divisor})
        if (inner > b - a && a / inner == b / inner)
          smallest = std::min(smallest, inner);
  return smallest;
}

/// Records that `factor` has the one value `digit`.
void Normalizer::fix(const Factor &factor, int64_t digit) {
  if (factor.kind == Kind::Device && factor.sub.size > 1)
    fixed.push_back({factor.sub, digit});
  if (factor.kind != Kind::Group)
    return;
  int64_t value = factor.lo + digit;
  for (size_t i = factor.product.size(); i-- > 0;) {
    int64_t size = capacity(factor.product[i]);
    fix(factor.product[i], value % size);
    value /= size;
  }
}

/// Drops digits of one value and dissolves outermost groups.
void Normalizer::trim(Span &span) {
  Product kept; // innermost first
  std::vector<int64_t> strides;
  int64_t stride = 1;
  auto keep = [&](Product &&factors) {
    for (size_t i = factors.size(); i-- > 0;) {
      int64_t size = capacity(factors[i]);
      if (size == 1 || stride >= span.hi) {
        fix(factors[i], 0);
        continue;
      }
      kept.push_back(std::move(factors[i]));
      strides.push_back(stride);
      stride = multiply(stride, size);
    }
  };
  keep(std::move(span.factors));
  while (!kept.empty()) {
    int64_t inner = strides.back();
    int64_t first = span.lo / inner, last = (span.hi - 1) / inner;
    if (first == last) {
      fix(kept.back(), first);
      span.lo -= first * inner;
      span.hi -= first * inner;
      kept.pop_back();
      strides.pop_back();
      continue;
    }
    if (kept.back().kind != Kind::Group)
      break;
    Factor group = std::move(kept.back());
    kept.pop_back();
    strides.pop_back();
    span.lo += group.lo * inner;
    span.hi += group.lo * inner;
    stride = inner;
    keep(std::move(group.product));
  }
  span.factors.assign(std::make_move_iterator(kept.rbegin()),
                      std::make_move_iterator(kept.rend()));
}

/// Puts every group in normal form, and its factors in its place if it needs
/// no bounds.
void Normalizer::dissolveGroups(Product &factors, bool skipOutermost) {
  for (size_t i = skipOutermost; i < factors.size();) {
    if (factors[i].kind != Kind::Group) {
      ++i;
      continue;
    }
    Span span{std::move(factors[i].product), factors[i].lo, factors[i].hi};
    normalize(span, /*inner=*/true);
    Product parts = asFactors(std::move(span));
    factors.erase(factors.begin() + i);
    factors.insert(factors.begin() + i, std::make_move_iterator(parts.begin()),
                   std::make_move_iterator(parts.end()));
    i += parts.size();
  }
}

/// Merges neighbours, the inner one into the outer one.
void Normalizer::merge(Product &factors) {
  size_t last = 0;
  for (size_t i = 1; i < factors.size(); ++i) {
    Factor &outer = factors[last], &inner = factors[i];
    if (isStored(outer) && isStored(inner)) {
      outer.size = multiply(outer.size, inner.size);
      continue;
    }
    if (inner.kind == Kind::Device) {
      if (outer.kind == Kind::Device && adjacent(outer.sub, inner.sub)) {
        outer.sub.size *= inner.sub.size;
        continue;
      }
      if (outer.kind == Kind::Group) {
        Factor &end = outer.product.back();
        if (end.kind == Kind::Device && adjacent(end.sub, inner.sub)) {
          end.sub.size *= inner.sub.size;
          outer.lo *= inner.sub.size;
          outer.hi *= inner.sub.size;
          continue;
        }
      }
    }
    if (++last != i)
      factors[last] = std::move(inner);
  }
  if (!factors.empty())
    factors.resize(last + 1, Factor::stored(1));
}

/// A stored number of a group that is whole turns of its product is a longer
/// stretch of it: 2 * (2 * did(x) | 1:3) is (3 * did(x) | 1:5).
bool Normalizer::unrollRotations(Product &factors) {
  for (size_t i = 0; i + 1 < factors.size(); ++i) {
    if (!isStored(factors[i]) || factors[i + 1].kind != Kind::Group)
      continue;
    Factor &group = factors[i + 1];
    int64_t turn = innerCapacity(group.product);
    if (!isStored(group.product.front()) || (group.hi - group.lo) % turn != 0)
      continue;
    group.hi = group.lo + (group.hi - group.lo) * factors[i].size;
    group.product.front().size = ceilDiv(group.hi, turn);
    factors.erase(factors.begin() + i);
    return true;
  }
  return false;
}

/// For a span with one border of the outermost digit in it, `left` values
/// before and `right` after: the digits inside are seen at their end and at
/// their start only. Returns whether anything changed.
bool Normalizer::shrink(Span &span) {
  Product &factors = span.factors;
  if (span.lo == 0 || factors.size() < 2)
    return false;
  int64_t stride = innerCapacity(factors);
  int64_t border = (span.hi - 1) / stride;
  if (span.lo / stride + 1 != border)
    return false;
  int64_t left = border * stride - span.lo, right = span.hi - border * stride;

  bool changed = false;
  size_t i = 1;
  for (; i < factors.size(); ++i) {
    stride /= capacity(factors[i]);
    int64_t seen = std::max(ceilDiv(left, stride), ceilDiv(right, stride));
    if (isStored(factors[i]) && seen < factors[i].size) {
      // At 1 the factor is of no use; trim drops it.
      factors[i].size = seen;
      changed = true;
    }
    if (seen > 1)
      break;
  }
  // The digits before factor i change all together, at the border, so their
  // order is free: mesh order, but next to what they merge with.
  auto begin = factors.begin() + 1, end = factors.begin() + i;
  if (std::all_of(begin, end, [](const Factor &factor) {
        return factor.kind == Kind::Device || isStored(factor);
      })) {
    auto place = [&](const Factor &factor) {
      if (factor.kind != Kind::Device)
        return 0;
      if (factors[0].kind == Kind::Device &&
          adjacent(factors[0].sub, factor.sub))
        return 1;
      if (i < factors.size() && factors[i].kind == Kind::Device &&
          adjacent(factor.sub, factors[i].sub))
        return 3;
      return 2;
    };
    auto less = [&](const Factor &a, const Factor &b) {
      return std::pair(place(a), a.sub) < std::pair(place(b), b.sub);
    };
    if (!std::is_sorted(begin, end, less)) {
      std::sort(begin, end, less);
      changed = true;
    }
  }
  if (changed) {
    stride = innerCapacity(factors);
    span.lo = border * stride - left;
    span.hi = border * stride + right;
  }
  return changed;
}

/// For a span with one border between two values of a group in it. On 7 values
/// 2 * (2 * did(x) * 2 | 5) holds x = 0011000, the group's 00110 and
/// the start of another: so does 2 * (2 * did(x) * 2 | 6).
bool Normalizer::moveSeam(Span &span) {
  Product &factors = span.factors;
  if (factors.size() < 2 || factors[1].kind != Kind::Group)
    return false;
  Factor &group = factors[1];
  Product &product = group.product;
  int64_t stride = innerCapacity(factors);
  int64_t border = (span.hi - 1) / stride * stride;
  if (!isStored(product.back()) || span.lo / stride + 1 != border / stride)
    return false;
  int64_t run = product.back().size;
  // How many values the second group shows.
  int64_t inner = stride / capacity(group);
  int64_t seen = ceilDiv(span.hi - border, inner);
  if (!isStored(factors[0])) {
    // The second group may as well start at 0.
    if (group.hi != capacity(product) || group.lo + seen > run)
      return false;
    int64_t moved = group.lo * inner * (border / stride);
    span.lo += moved;
    span.hi += moved;
    Product parts = std::move(product);
    factors.erase(factors.begin() + 1);
    factors.insert(factors.begin() + 1, std::make_move_iterator(parts.begin()),
                   std::make_move_iterator(parts.end()));
    return true;
  }
  // The group goes on as its product does, turn after turn.
  bool turns = isStored(product.front());
  int64_t turn = turns ? innerCapacity(product) : capacity(product);
  if (!turns && group.hi != turn)
    return false;
  if (group.hi % turn / run != group.lo % turn / run ||
      seen > run - group.lo % run)
    return false;
  group.hi += std::min(seen, run - group.hi % run);
  // The span's first value keeps its place in the first group.
  if (!turns)
    product.insert(product.begin(), Factor::stored(1));
  product.front().size = ceilDiv(group.hi, turn);
  return true;
}

/// Splits off the part of an outermost device digit that is fixed. Only inside
/// groups: a dimension is spelled with the larger digit.
void Normalizer::tighten(Span &span) {
  if (span.factors.empty() || span.factors[0].kind != Kind::Device)
    return;
  SubAxis &sub = span.factors[0].sub;
  int64_t stride = innerCapacity(span.factors);
  int64_t first = span.lo / stride;
  int64_t size = smallestDigit(sub.size, first, (span.hi - 1) / stride);
  if (size == sub.size)
    return;
  fixed.push_back({{sub.axis, sub.pre, sub.size / size}, first / size});
  span.lo -= first / size * size * stride;
  span.hi -= first / size * size * stride;
  sub = {sub.axis, sub.pre * (sub.size / size), size};
}

void Normalizer::normalize(Span &span, bool inner) {
  do {
    trim(span);
    dissolveGroups(span.factors, /*skipOutermost=*/true);
    merge(span.factors);
    if (!span.factors.empty() && isStored(span.factors[0])) {
      int64_t stride = innerCapacity(span.factors);
      int64_t start = span.lo / stride * stride;
      span.lo -= start;
      span.hi -= start;
      span.factors[0].size = ceilDiv(span.hi, stride);
    }
  } while (unrollRotations(span.factors) || shrink(span) || moveSeam(span));
  if (inner)
    tighten(span);
}

/// Moves what is common to both ends of a span from its inside to `outside`.
/// `exact` when hi counts; else it may be rounded up.
static void extract(Span &span, Product &outside, bool exact) {
  size_t kept = span.factors.size();
  int64_t common = 1;
  while (kept > 0) {
    Factor &factor = span.factors[kept - 1];
    int64_t size = capacity(factor);
    int64_t ends = exact ? std::gcd(span.lo, span.hi) : span.lo;
    if (isStored(factor))
      size = std::gcd(size, ends);
    if (size == 1 || ends % size != 0)
      break;
    span.lo /= size;
    span.hi = ceilDiv(span.hi, size);
    common = multiply(common, size);
    if (size == capacity(factor)) {
      --kept;
      outside.insert(outside.begin(), std::move(factor));
      continue;
    }
    factor.size /= size;
    outside.insert(outside.begin(), Factor::stored(size));
    break;
  }
  span.factors.resize(kept, Factor::stored(1));
}

/// The factors of a normal span of exactly hi - lo values.
Product Normalizer::asFactors(Span span) {
  if (span.lo == 0 && span.hi == capacity(span.factors))
    return std::move(span.factors);
  Product result;
  extract(span, result, /*exact=*/true);
  if (span.lo == 0 && span.hi == capacity(span.factors))
    result.insert(result.begin(), std::make_move_iterator(span.factors.begin()),
                  std::make_move_iterator(span.factors.end()));
  else
    result.insert(result.begin(),
                  Factor::group(std::move(span.factors), span.lo, span.hi));
  return result;
}

//===----------------------------------------------------------------------===//
// Fixed digits
//===----------------------------------------------------------------------===//

void Normalizer::mergeFixed() {
  std::sort(fixed.begin(), fixed.end(),
            [](const Fixed &a, const Fixed &b) { return a.sub < b.sub; });
  size_t last = 0;
  for (size_t i = 1; i < fixed.size(); ++i) {
    if (adjacent(fixed[last].sub, fixed[i].sub)) {
      fixed[last].digit =
          fixed[last].digit * fixed[i].sub.size + fixed[i].digit;
      fixed[last].sub.size *= fixed[i].sub.size;
    } else {
      fixed[++last] = fixed[i];
    }
  }
  if (!fixed.empty())
    fixed.resize(last + 1);
}

/// Where a fixed digit and the outermost digit of an inner group can be cut
/// anew so that less is left in the group (6 as 3 * 2 rather than 2 * 3), joins
/// the two for another round.
bool Normalizer::absorbInGroups(Product &factors) {
  for (Factor &group : factors) {
    if (group.kind != Kind::Group)
      continue;
    if (absorbInGroups(group.product))
      return true;
    Factor &device = group.product[0];
    if (device.kind != Kind::Device)
      continue;
    for (size_t i = 0; i < fixed.size(); ++i) {
      if (!adjacent(fixed[i].sub, device.sub))
        continue;
      int64_t stride = innerCapacity(group.product);
      int64_t shift = fixed[i].digit * device.sub.size;
      int64_t size = fixed[i].sub.size * device.sub.size;
      if (smallestDigit(size, shift + group.lo / stride,
                        shift + (group.hi - 1) / stride) >= device.sub.size)
        continue;
      device.sub = {device.sub.axis, fixed[i].sub.pre, size};
      group.lo += shift * stride;
      group.hi += shift * stride;
      fixed.erase(fixed.begin() + i);
      return true;
    }
  }
  return false;
}

void Normalizer::absorbOutermost(Span &span) {
  if (span.factors.empty() || span.factors[0].kind != Kind::Device)
    return;
  SubAxis &sub = span.factors[0].sub;
  for (size_t i = 0; i < fixed.size(); ++i) {
    if (!adjacent(fixed[i].sub, sub))
      continue;
    int64_t shift =
        multiply(fixed[i].digit * sub.size, innerCapacity(span.factors));
    span.lo += shift;
    span.hi += shift;
    sub = {sub.axis, fixed[i].sub.pre, fixed[i].sub.size * sub.size};
    fixed.erase(fixed.begin() + i);
    return;
  }
}

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

/// A fixed digit as a digit of one value; at 0, where the size of a digit does
/// not count (`outermost`), as the plain device factor.
static Factor asFactor(const Fixed &fixed, bool outermost) {
  Factor device = Factor::device(fixed.sub);
  if (outermost && fixed.digit == 0)
    return device;
  return Factor::group({std::move(device)}, fixed.digit, fixed.digit + 1);
}

Product Normalizer::dimension(const Product &product, int64_t bound) {
  if (bound == 0)
    return {Factor::stored(1)};
  Span span{product, 0, bound};
  do {
    normalize(span, /*inner=*/false);
    mergeFixed();
  } while (!fixed.empty() && absorbInGroups(span.factors));
  absorbOutermost(span);

  Product result;
  for (const Fixed &digit : fixed)
    result.push_back(asFactor(digit, /*outermost=*/true));
  Product inside;
  if (span.lo == 0) {
    inside = std::move(span.factors);
  } else {
    extract(span, inside, /*exact=*/false);
    inside.insert(inside.begin(),
                  Factor::group(std::move(span.factors), span.lo, span.hi));
  }
  result.insert(result.end(), std::make_move_iterator(inside.begin()),
                std::make_move_iterator(inside.end()));
  if (result.empty())
    result.push_back(Factor::stored(1));
  return result;
}

Product Normalizer::dynamicDimension(const Product &product) {
  Product factors = product;
  do {
    dissolveGroups(factors, /*skipOutermost=*/false);
    mergeFixed();
  } while (!fixed.empty() && absorbInGroups(factors));

  Product result;
  for (const Fixed &digit : fixed)
    result.push_back(asFactor(digit, /*outermost=*/false));
  size_t first = result.size();
  for (Factor &factor : factors) {
    if (capacity(factor) == 1 && factor.kind != Kind::Rest &&
        factor.kind != Kind::Open)
      continue; // a group of one value has become fixed digits
    // Neighbouring stored digits are one; `_` is written before an integer.
    if (factor.kind == Kind::Rest || factor.kind == Kind::Open) {
      auto where = result.end();
      while (where != result.begin() + first && isStored(*(where - 1)))
        --where;
      result.insert(where, Factor::rest());
      continue;
    }
    result.push_back(std::move(factor));
  }
  // An outermost `_` takes an integer next to it: all of it is stored.
  if (result.size() > first + 1 && result[first].kind == Kind::Rest &&
      isStored(result[first + 1])) {
    while (result.size() > first + 1 && isStored(result[first + 1]))
      result.erase(result.begin() + first + 1);
  }
  merge(result);
  if (result.empty())
    result.push_back(Factor::stored(1));
  return result;
}

Product layout::canonicalProduct(const Product &product, int64_t bound) {
  return Normalizer().dimension(product, bound);
}

Product layout::canonicalDynamicProduct(const Product &product) {
  return Normalizer().dynamicDimension(product);
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

static void canonicalizePartial(std::vector<Partial> &partial) {
  std::vector<Partial> result;
  for (Combiner combiner : {Combiner::Sum, Combiner::Max, Combiner::Min}) {
    std::vector<SubAxis> axes, merged;
    for (const Partial &item : partial)
      if (item.combiner == combiner)
        axes.insert(axes.end(), item.axes.begin(), item.axes.end());
    std::sort(axes.begin(), axes.end());
    for (const SubAxis &sub : axes) {
      if (sub.size == 1)
        continue;
      if (!merged.empty() && adjacent(merged.back(), sub))
        merged.back().size *= sub.size;
      else
        merged.push_back(sub);
    }
    if (!merged.empty())
      result.push_back({std::move(merged), combiner});
  }
  partial = std::move(result);
}

View layout::canonicalize(const View &view, const Shape &shape,
                          const Mesh &mesh) {
  View result;
  size_t first = 0;
  std::vector<int64_t> firstLocal; // of each of the view's dims, in the result
  for (size_t i = 0; i < view.dims.size(); ++i) {
    const Dim &dim = view.dims[i];
    int64_t bound = boundOf(view, i, shape);
    Product product = withoutRest(dim.product, bound);
    product = bound == kDynamic ? canonicalDynamicProduct(product)
                                : canonicalProduct(product, bound);
    firstLocal.push_back(result.dims.size());
    if (dim.span == 1 || bound == kDynamic) {
      result.dims.push_back({std::move(product), dim.span});
    } else {
      Shape extents(shape.begin() + first, shape.begin() + first + dim.span);
      for (Dim &part : splitAtBorders(std::move(product), extents))
        result.dims.push_back(std::move(part));
    }
    first += dim.span;
  }
  if (view.alloc) {
    firstLocal.push_back(result.dims.size());
    result.alloc.emplace();
    for (int64_t dim : *view.alloc)
      for (int64_t i = firstLocal[dim]; i < firstLocal[dim + 1]; ++i)
        result.alloc->push_back(i);
  }
  result.partial = view.partial;
  canonicalizePartial(result.partial);
  return result;
}

bool layout::isCanonical(const View &view, const Shape &shape,
                         const Mesh &mesh) {
  return canonicalize(view, shape, mesh) == view;
}
