//===- Rule.h - what an op does to dimensions ----------------------------===//
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
    Reduction,  ///< values are combined with `combiner`; a split leaves the
                ///< results that it does not index partial
    Shifted,    ///< operand and result index differ by a constant (slice, pad,
                ///< concat): a split needs a window or an exchange. `size` is
                ///< the largest extent of its dimensions
    Indexed,    ///< a dimension addressed by run-time values. In operands only
                ///< (a table): a split leaves a result that is partial with
                ///< `combiner`. In a result (a target): a device drops what
                ///< belongs to others
    Sequential, ///< must be whole on each device
  };
  Kind kind = Kind::Parallel;
  int64_t size = 0; ///< kDynamic when unknown
  Combiner combiner = Combiner::Sum;
  auto operator<=>(const IterationFactor &) const = default;
};

/// The factors that index one dimension, outermost first; the dimension's
/// extent is the product of their sizes. Empty for a dimension of one value
/// that no loop touches.
using DimFactors = std::vector<int>;

/// What an op does with an operand.
enum class Use {
  Read,
  Added,  ///< joins the result once: when a Reduction factor is split over an
          ///< axis, it must be partial along that axis with the same combiner
  Unread, ///< stands for its extents only: any view will do
};

/// For each operand and each result, for each of its dimensions, its factors.
struct Rule {
  std::vector<IterationFactor> factors;
  std::vector<std::vector<DimFactors>> operands;
  std::vector<std::vector<DimFactors>> results;
  std::vector<Use> uses; ///< one an operand

  /// Whether a dimension of this result has `factor`.
  bool isInResult(int factor, size_t result) const {
    for (const DimFactors &dim : results[result])
      for (int f : dim)
        if (f == factor)
          return true;
    return false;
  }
  /// Whether some result has a dimension with `factor`.
  bool isInResult(int factor) const {
    for (size_t result = 0; result < results.size(); ++result)
      if (isInResult(factor, result))
        return true;
    return false;
  }
  /// Whether some operand has a dimension with `factor`.
  bool isInOperand(int factor) const {
    for (const std::vector<DimFactors> &operand : operands)
      for (const DimFactors &dim : operand)
        for (int f : dim)
          if (f == factor)
            return true;
    return false;
  }
  /// Whether a split of `factor` leaves this result partial.
  bool makesPartial(int factor, size_t result) const {
    using Kind = IterationFactor::Kind;
    Kind kind = factors[factor].kind;
    return kind == Kind::Reduction
               ? !isInResult(factor, result)
               : kind == Kind::Indexed && !isInResult(factor);
  }
};

} // namespace tessera::layout

#endif // TESSERA_LAYOUT_RULE_H
