//===- FetchPlan.cpp - the rows that one rank fetches ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec/FetchPlan.h"
#include "Exec/CollectivePlan.h"

#include <algorithm>

using namespace tessera;
using layout::Shape;

Result<FetchPlan> FetchPlan::create(const fb::CollectiveT &fetch,
                                    const std::vector<layout::SubAxis> &axes,
                                    Tensors &tensors) {
  FetchPlan plan;
  const LocalTensor &table = **tensors.get(fetch.source);
  const LocalTensor &result = **tensors.get(fetch.target);
  const LocalTensor &first = **tensors.get(fetch.indices[0]);
  const size_t leading = fetch.indices.size(), rank = first.sizes.size();
  auto front = [](const Shape &shape, size_t count, int64_t factor) {
    Shape result(shape.begin(), shape.begin() + count);
    for (int64_t &value : result)
      value *= factor;
    return result;
  };
  auto back = [](const Shape &shape, size_t count) {
    return Shape(shape.begin() + count, shape.end());
  };

  plan.group = groupAlong(axes, tensors.module().mesh(), tensors.rank());
  plan.self =
      std::ranges::find(plan.group, tensors.rank()) - plan.group.begin();
  // What blocks have in common; none at all is one of a row.
  const layout::Factor &last = table.view.dims[0].product.empty()
                                   ? layout::Factor::stored(1)
                                   : table.view.dims[0].product.back();
  plan.block = last.kind == layout::Factor::Kind::Stored
                   ? std::max<int64_t>(last.size, 1)
                   : 1;
  plan.elementBytes = table.elementBytes();
  plan.table = placeOf(table);
  plan.result = placeOf(result);
  plan.extents = front(table.globalShape, leading, 1);
  plan.heldSizes = front(table.sizes, leading, 1);
  plan.tableStrides = front(table.strides, leading, plan.elementBytes);
  plan.places = first.sizes;
  plan.placeStrides = front(result.strides, rank, plan.elementBytes);
  for (int32_t id : fetch.indices) {
    const LocalTensor &index = **tensors.get(id);
    const int64_t bytes = index.elementBytes();
    plan.indices.push_back(
        {placeOf(index), bytes == 8, front(index.strides, rank, bytes)});
  }
  plan.row = back(table.sizes, leading);
  plan.rowFrom = back(table.strides, leading);
  plan.rowTo = back(result.strides, rank);
  plan.whole = CopyLoop(plan.elementBytes, table.sizes, rowMajor(table.sizes),
                        table.strides);
  if (back(result.sizes, rank) != plan.row)
    return Error{"a fetch gives rows that are not those of its table"};
  return plan;
}

int64_t FetchPlan::mostHeld() const {
  int64_t rows = block;
  for (size_t d = 1; d < extents.size(); ++d)
    rows *= extents[d];
  return rows;
}
