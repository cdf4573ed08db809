//===- OpCost.h - how long an op takes on one device ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LAYOUT_OPCOST_H
#define TESSERA_LAYOUT_OPCOST_H

#include "Layout/Planner.h"
#include "Layout/Rule.h"

namespace tessera::layout {

/// An operand or result while its op runs.
struct OpTensor {
  Shape shape; ///< global, all of it known
  int64_t elementBytes;
  View view;
};

/// The seconds that a device needs for an op of which it has one of `parts`
/// even parts, and of each factor's loop what its product says: for the loops,
/// or to read and write memory where that takes longer.
double opSeconds(const Rule &rule, const std::vector<Product> &products,
                 int64_t parts, const std::vector<OpTensor> &operands,
                 const std::vector<OpTensor> &results, const Mesh &mesh,
                 const Machine &machine);

/// Whether some device has nothing of a tensor: of one that lies on a part of
/// the mesh, or has fewer elements than parts. Dynamic dimensions are not
/// looked at.
bool leavesOut(const View &view, const Shape &shape, const Mesh &mesh);

/// Whether it lies on a part of the mesh: a dimension of 1 does.
bool liesOnPart(const View &view, const Shape &shape, const Mesh &mesh);

} // namespace tessera::layout

#endif // TESSERA_LAYOUT_OPCOST_H
