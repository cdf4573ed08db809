//===- ViewInternal.h - shared by the files of the view algebra -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Saturating arithmetic, the product-level halves of functions that View.h
// gives for views, and the walk over devices.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LAYOUT_VIEWINTERNAL_H
#define TESSERA_LAYOUT_VIEWINTERNAL_H

#include "Layout/View.h"

namespace tessera::layout {

inline int64_t ceilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/// Product of non-negative numbers, saturating.
inline int64_t multiply(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}

/// What the `_` of `product` stands for under `bound`.
int64_t restCapacity(const Product &product, int64_t bound);
/// `product` with each `_` and `?` as that number, in its groups too; on a
/// dynamic dimension itself they stay.
Product withoutRest(const Product &product, int64_t bound);

/// Whether some group starts above 0.
bool hasOffset(const Product &product);

/// The canonical product of a static dimension. `product` has no `_`.
Product canonicalProduct(const Product &product, int64_t bound);
/// The canonical product of a dynamic dimension.
Product canonicalDynamicProduct(const Product &product);

/// Splits a canonical product over the row-major `extents` at as many of their
/// borders as its digits allow. An extent that is kDynamic is the first one.
std::vector<Dim> splitAtBorders(Product product, const Shape &extents);

/// Calls `body` at every combination of coordinates of the mesh axes named in
/// `axes`, the others 0, until it returns false.
template <typename Body>
bool forEachCoords(const std::vector<SubAxis> &axes, const Mesh &mesh,
                   Body body) {
  Coords coords(mesh.axes.size(), 0);
  std::vector<bool> varies(mesh.axes.size());
  for (const SubAxis &sub : axes)
    varies[sub.axis] = true;
  for (;;) {
    if (!body(coords))
      return false;
    size_t i = coords.size();
    while (i-- > 0) {
      if (varies[i] && ++coords[i] < mesh.axes[i].size)
        break;
      coords[i] = 0;
    }
    if (i == size_t(-1))
      return true;
  }
}

} // namespace tessera::layout

#endif // TESSERA_LAYOUT_VIEWINTERNAL_H
