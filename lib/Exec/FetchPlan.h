//===- FetchPlan.h - the rows that one rank fetches -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which rows of a table data tell when it runs; where each may lie is known
// before, the same for every kind of device.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_EXEC_FETCHPLAN_H
#define TESSERA_EXEC_FETCHPLAN_H

#include "Exec/Strided.h"
#include "Exec/Work.h"

namespace tessera {

struct FetchPlan {
  /// Of one of the table's dimensions, at each place of the result.
  struct Index {
    Place place;
    bool isWide;           ///< i64, not i32
    layout::Shape strides; ///< in bytes
  };

  /// `axes`: along which the table's rows lie in blocks, outermost first.
  static Result<FetchPlan> create(const fb::CollectiveT &fetch,
                                  const std::vector<layout::SubAxis> &axes,
                                  Tensors &tensors);

  /// Of a row, from the table, or from where it lies dense, to the result; from
  /// the table to where it lies dense; and one element's bytes in all of it.
  CopyLoop copy() const { return {elementBytes, row, rowTo, rowFrom}; }
  CopyLoop unpack() const { return {elementBytes, row, rowTo, rowMajor(row)}; }
  CopyLoop pack() const { return {elementBytes, row, rowMajor(row), rowFrom}; }
  CopyLoop fill() const {
    return {elementBytes, row, rowTo, layout::Shape(row.size(), 0)};
  }
  int64_t rowBytes() const { return product(row) * elementBytes; }
  /// How many rows this rank wants, has, and how many a rank has at most.
  int64_t wanted() const { return product(places); }
  int64_t held() const { return product(heldSizes); }
  int64_t mostHeld() const;

  std::vector<int> group; ///< ranks, by block of rows
  size_t self = 0;        ///< of the group
  int64_t block = 1;      ///< rows of a member, but for the last ones
  Place table{}, result{};
  std::vector<Index> indices;
  layout::Shape extents;      ///< of the table's dimensions with indices
  layout::Shape heldSizes;    ///< of these here
  layout::Shape tableStrides; ///< and their strides, in bytes
  layout::Shape places;       ///< local sizes of the indices
  layout::Shape placeStrides; ///< of these in the result, in bytes
  int64_t elementBytes = 0;
  layout::Shape row, rowFrom, rowTo; ///< sizes, and strides in elements
  CopyLoop whole; ///< all rows of the table, to where they lie dense
};

} // namespace tessera

#endif // TESSERA_EXEC_FETCHPLAN_H
