//===- Enumerate.h - all small products, and their meaning by definition --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The oracle of the tests of the algebra: a value is held where each of its
// digits is, found by taking the value apart. It shares no code with lib/Layout
// but the data structures. Products are enumerated from a pool of factors.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_LAYOUT_ENUMERATE_H
#define TESSERA_TEST_LAYOUT_ENUMERATE_H

#include "Layout/View.h"

#include <functional>

namespace tessera::layout::test {

/// Set by `--long`: larger enumerations, minutes rather than seconds.
extern bool longRun;

/// Sanitizers make the tests ten times as slow: they look at memory and
/// arithmetic of a sample of what a build without them compares.
#if __has_feature(address_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
inline constexpr int64_t kSample = sanitized ? 23 : 1;

/// Meshes with axes of 2, 3, 4 and 6 devices, in one and two dimensions.
std::vector<Mesh> smallMeshes();

Mesh makeMesh(const char *text);
/// Fails the test on a syntax error.
View makeView(const char *text, const Mesh &mesh);

std::vector<Coords> allCoords(const Mesh &mesh);

/// The definition: whether `value` of `product` is held at `coords`.
bool isHeld(const Product &product, int64_t value, const Mesh &mesh,
            const Coords &coords);
/// The values below `bound` that are held, increasing.
std::vector<int64_t> heldValues(const Product &product, int64_t bound,
                                const Mesh &mesh, const Coords &coords);
/// heldValues at every coordinate: what a placement is.
using Placement = std::vector<std::vector<int64_t>>;
Placement placement(const Product &product, int64_t bound, const Mesh &mesh);

/// The same in short: for each value below `bound`, a bit for each device.
using Signature = std::u32string;
Signature signature(const Product &product, int64_t bound, const Mesh &mesh);

/// `product` with its `_` replaced by what `bound` needs.
Product withRest(Product product, int64_t bound);

/// Global row-major indices that a view's device holds, in local row-major
/// order.
std::vector<int64_t> heldElements(const View &view, const Shape &shape,
                                  const Mesh &mesh, const Coords &coords);

struct Pool {
  std::vector<int64_t> stored = {2, 3};
  bool subAxes = true; ///< sub-axes as well as whole axes
  int maxFactors = 3;
  int64_t maxCapacity = 48;
};
/// Calls `body` with every product of up to `maxFactors` factors, sub-axes
/// disjoint.
void forEachProduct(const Mesh &mesh, const Pool &pool,
                    const std::function<void(const Product &)> &body);

int64_t reach(const Product &product);

} // namespace tessera::layout::test

#endif // TESSERA_TEST_LAYOUT_ENUMERATE_H
