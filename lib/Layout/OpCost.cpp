//===- OpCost.cpp - how long an op takes on one device --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/OpCost.h"
#include "Layout/PlanViews.h"
#include "Layout/ViewInternal.h"

#include <algorithm>

namespace tessera::layout {

using Kind = IterationFactor::Kind;

/// The extent of each factor's loop.
static Shape sizesOf(const Rule &rule, const std::vector<OpTensor> &operands,
                     const std::vector<OpTensor> &results) {
  Shape sizes;
  // What is shifted is run through for the result.
  for (const IterationFactor &factor : rule.factors)
    sizes.push_back(factor.kind == Kind::Shifted ? kDynamic : factor.size);
  auto look = [&](const OpTensor &tensor, const std::vector<DimFactors> &dims) {
    for (size_t d = 0; d < dims.size(); ++d)
      if (dims[d].size() == 1 && sizes[dims[d][0]] == kDynamic)
        sizes[dims[d][0]] = tensor.shape[d];
  };
  for (size_t i = 0; i < results.size(); ++i)
    look(results[i], rule.results[i]);
  for (size_t i = 0; i < operands.size(); ++i)
    look(operands[i], rule.operands[i]);
  return sizes;
}

/// Whether an operand is a table, of which is read what the result has.
static bool isTable(const Rule &rule, const std::vector<DimFactors> &dims) {
  for (const DimFactors &factors : dims)
    for (int f : factors)
      if (rule.factors[f].kind == Kind::Indexed && !rule.isInResult(f))
        return true;
  return false;
}

double opSeconds(const Rule &rule, const std::vector<Product> &products,
                 int64_t parts, const std::vector<OpTensor> &operands,
                 const std::vector<OpTensor> &results, const Mesh &mesh,
                 const Machine &machine) {
  double iterations = 1.0 / double(parts);
  Shape sizes = sizesOf(rule, operands, results);
  for (size_t f = 0; f < products.size(); ++f) {
    int64_t devices = sizeOf(axesOf(products[f]));
    // What is addressed is not run through; split, each device has its share.
    if (rule.factors[f].kind == Kind::Indexed)
      iterations /= double(devices);
    else
      iterations *= double(ceilDiv(std::max<int64_t>(sizes[f], 0), devices));
  }

  double bytes = 0;
  auto touch = [&](const OpTensor &tensor) {
    double local = double(tensor.elementBytes);
    for (int64_t extent : maxLocalShape(tensor.view, tensor.shape, mesh))
      local *= double(extent);
    bytes += local;
  };
  for (size_t i = 0; i < operands.size(); ++i)
    if (rule.uses[i] != Use::Unread && !isTable(rule, rule.operands[i]))
      touch(operands[i]);
  for (const OpTensor &result : results)
    touch(result);
  // A copy reads and writes.
  return std::max(iterations / machine.loops, bytes / (2 * machine.copy));
}

static bool leavesOut(const Product &product, int64_t bound, const Mesh &mesh) {
  if (bound == kDynamic || bound == 0)
    return false;
  auto hasSome = [&](const Coords &coords) {
    return localExtent(product, bound, mesh, coords) > 0;
  };
  Coords last;
  for (const Axis &axis : mesh.axes)
    last.push_back(axis.size - 1);
  // But for groups that start above 0 the last device has the least.
  return hasOffset(product) ? !forEachCoords(axesOf(product), mesh, hasSome)
                            : !hasSome(last);
}

bool leavesOut(const View &view, const Shape &shape, const Mesh &mesh) {
  for (size_t i = 0; i < view.dims.size(); ++i)
    if (leavesOut(view.dims[i].product, boundOf(view, i, shape), mesh))
      return true;
  return false;
}

bool liesOnPart(const View &view, const Shape &shape, const Mesh &mesh) {
  for (size_t i = 0; i < view.dims.size(); ++i)
    if (boundOf(view, i, shape) == 1 &&
        leavesOut(view.dims[i].product, 1, mesh))
      return true;
  return false;
}

} // namespace tessera::layout
