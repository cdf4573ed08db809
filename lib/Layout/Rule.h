//===- Rule.h - what an op does to dimensions
//------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LAYOUT_RULE_H
#define TESSERA_LAYOUT_RULE_H

#include "Layout/View.h"

namespace tessera::layout {

/// An iteration factor of an op: a loop over `size` values that indexes some
/// dimensions of its operands and results.
struct IterationFactor {
  enum class Kind {
    Parallel,   ///< each value computes its own part of the results
    Reduction,  ///< values are combined with `combiner`; a split leaves a
                ///< partial result
    Shifted,    ///< operand and result index differ by a constant (slice, pad,
                ///< concat): a split needs a window or an exchange
    Indexed,    ///< a dimension addressed by run-time values (gather, scatter):
                ///< a split table gives a masked local gather and a partial sum
    Sequential, ///< must be whole on each device
  };
  Kind kind = Kind::Parallel;
  int64_t size = 0; ///< kDynamic when unknown
  Combiner combiner = Combiner::Sum;
};

/// For each operand and each result, for each of its dimensions, the factor
/// that indexes it, or -1 for a dimension of one value that no loop touches.
struct Rule {
  std::vector<IterationFactor> factors;
  std::vector<std::vector<int>> operands;
  std::vector<std::vector<int>> results;
};

} // namespace tessera::layout

#endif // TESSERA_LAYOUT_RULE_H
