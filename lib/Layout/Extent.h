//===- Extent.h - a size as a polynomial of dynamic sizes
//------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LAYOUT_EXTENT_H
#define TESSERA_LAYOUT_EXTENT_H

#include "Layout/View.h"

#include <map>

namespace tessera::layout {

/// constant + sum of coefficient * (product of symbols), e.g. `2 * b * s + 1`.
/// Symbols of a term are sorted; no coefficient is 0. So equality is equality
/// of the polynomials.
struct Extent {
  int64_t constant = 0;
  std::map<std::vector<std::string>, int64_t> terms;

  Extent() = default;
  Extent(int64_t value) : constant(value) {}
  static Extent symbol(std::string name) {
    Extent e;
    e.terms[{std::move(name)}] = 1;
    return e;
  }

  auto operator<=>(const Extent &) const = default;

  std::optional<int64_t> getStatic() const {
    return terms.empty() ? std::optional(constant) : std::nullopt;
  }
  /// `constant` if static, else kDynamic.
  int64_t asShape() const { return terms.empty() ? constant : kDynamic; }
  /// With the symbols' values; nothing if one is missing.
  std::optional<int64_t>
  evaluate(const std::map<std::string, int64_t> &values) const;
};

Extent operator+(const Extent &a, const Extent &b);
Extent operator-(const Extent &a, const Extent &b);
Extent operator*(const Extent &a, const Extent &b);
/// The quotient if `b` is one term that divides every term of `a`.
std::optional<Extent> divideExactly(const Extent &a, const Extent &b);

size_t hashValue(const Extent &extent);

//   extent ::= term ((`+` | `-`) term)*
//   term   ::= (int | name) (`*` (int | name))*
Result<Extent> parseExtent(TokenSource &tokens);
std::string toString(const Extent &extent);

} // namespace tessera::layout

#endif // TESSERA_LAYOUT_EXTENT_H
