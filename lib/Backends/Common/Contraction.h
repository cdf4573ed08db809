//===- Contraction.h - the loops of a product of tensors ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the matrix libraries of all backends start from: the labels of a product
// of tensors, sorted by the part they play, and merged where memory allows.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_COMMON_CONTRACTION_H
#define TESSERA_BACKENDS_COMMON_CONTRACTION_H

#include "Support/DType.h"
#include "Support/Result.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

/// c = a * b by labels: a label in a, b and c is a batch, in a and c a row, in
/// b and c a column, in a and b (or one of them) contracted.
struct Contraction {
  enum { A, B, C };

  struct Operand {
    DType dtype;
    std::span<const int64_t> sizes;
    std::span<const int64_t> strides; ///< in elements
    std::span<const int32_t> labels;
  };

  /// One label, or several that are adjacent in memory wherever they occur.
  /// Strides of operands without it are 0.
  struct Loop {
    int64_t size = 1;
    int64_t stride[3] = {0, 0, 0};
  };
  using Loops = std::vector<Loop>;

  static Result<Contraction> create(const Operand &a, const Operand &b,
                                    const Operand &c);

  /// Loops of one step go, and those that one loop covers in all operands
  /// become one, outermost in c first.
  static Loops collapse(Loops loops);

  DType dtypes[3];
  Loops batches, rows, columns, sums; ///< a label each
  bool empty = false;                 ///< c has no elements
  bool sumsNothing = false;           ///< c is all zeros
};

} // namespace tessera

#endif // TESSERA_BACKENDS_COMMON_CONTRACTION_H
