//===- CanonicalTest.cpp - one spelling for one placement -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For classes of products, every member at every bound: the canonical form
// places every value where the original does, is its own canonical form, and no
// two canonical forms place alike.
//
//===----------------------------------------------------------------------===//

#include "Enumerate.h"

#include <gtest/gtest.h>

#include <map>

using namespace tessera::layout;
using namespace tessera::layout::test;

namespace {
/// The canonical forms met so far, by bound and placement.
class Spellings {
public:
  explicit Spellings(const Mesh &mesh) : mesh(mesh) {}

  void check(const Product &product, int64_t bound) {
    View view;
    view.dims = {{product, 1}};
    View canonical = canonicalize(view, {bound}, mesh);
    std::string what = toString(view, mesh) + " on " + std::to_string(bound) +
                       " as " + toString(canonical, mesh);
    Placement placed = placement(product, bound, mesh);
    const Product &form = canonical.dims[0].product;
    if (placement(form, bound, mesh) != placed || reach(form) < bound) {
      ADD_FAILURE() << what << " places differently";
      return;
    }
    if (auto status = verify(canonical, {bound}, mesh); !status)
      ADD_FAILURE() << what << ": " << status.message();
    if (!isCanonical(canonical, {bound}, mesh))
      ADD_FAILURE() << what << " becomes "
                    << toString(canonicalize(canonical, {bound}, mesh), mesh);
    auto [entry, isNew] = forms.try_emplace({bound, placed}, canonical, view);
    if (!isNew && entry->second.first != canonical)
      ADD_FAILURE() << what << ", but " << toString(entry->second.second, mesh)
                    << " as " << toString(entry->second.first, mesh);
  }

private:
  const Mesh &mesh;
  std::map<std::pair<int64_t, Placement>, std::pair<View, View>> forms;
};
} // namespace

TEST(Canonical, IsUniqueForPlainProducts) {
  for (const Mesh &mesh : smallMeshes()) {
    Spellings spellings(mesh);
    Pool pool;
    pool.stored = {2, 3, 4};
    pool.maxFactors = longRun ? 5 : 4;
    pool.maxCapacity = longRun ? 64 : 32;
    forEachProduct(mesh, pool, [&](const Product &product) {
      for (int64_t bound = 0; bound <= reach(product); ++bound)
        spellings.check(product, bound);
    });
  }
}
