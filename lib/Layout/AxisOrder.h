//===- AxisOrder.h - axes by where they appear first ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What decides between equals where something must: neither the names of axes
// nor the order in which a mesh lists them may have an influence.
//
//     mesh <y = 2, x = 2>, views [_, did(x) * _], [did(y) * _, _]     x, y
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LAYOUT_AXISORDER_H
#define TESSERA_LAYOUT_AXISORDER_H

#include "Layout/View.h"

namespace tessera::layout {

/// The sub-axes of a product as they stand in it, unlike `axesOf`.
std::vector<SubAxis> axesAsWritten(const Product &product);

class AxisOrder {
public:
  /// Axes that no view has are in the order of their sizes.
  explicit AxisOrder(const Mesh &mesh);
  /// Axes of `view` that none before it has come behind those that one has.
  void add(const View &view);
  std::vector<SubAxis> sorted(std::vector<SubAxis> axes) const;
  /// The product with sizes for axes, which decide first, and with places.
  std::pair<Product, Product> keyOf(const Product &product) const;

private:
  std::vector<int64_t> sizes;
  std::vector<int> places; ///< by axis
  int count = 0;           ///< of axes seen
};

} // namespace tessera::layout

#endif // TESSERA_LAYOUT_AXISORDER_H
