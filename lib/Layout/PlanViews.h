//===- PlanViews.h - the views between the steps of a plan ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The planner's own; no header of others includes it. Views between steps are
// made on the common refinement of both ends' digits, where each digit is
// stored or on a device on either side:
//
//     source    destination      before a reduction     before an all-gather
//     stored    device, unused   device (a free slice)
//     partial   device           device (reduce-scatter)
//     device    stored                                  device
//
// Where digits do not align (uneven blocks, dynamic extents), whole dimensions
// take their place.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LAYOUT_PLANVIEWS_H
#define TESSERA_LAYOUT_PLANVIEWS_H

#include "Layout/Exchange.h"

#include <functional>
#include <set>

namespace tessera::layout {

/// Sub-axes that split some dimension.
std::vector<SubAxis> splitAxes(const View &view);
/// Of the partial states that a move combines, or else makes.
std::optional<Combiner> changedCombiner(const View &from, const View &to);
/// Whether one of these and one of those overlap.
bool overlap(const std::vector<SubAxis> &a, const std::vector<SubAxis> &b);
/// The digits of `a` that are also in `b`; sub-axes that overlap at no common
/// border (6 as 2 * 3 and as 3 * 2) have none in common.
std::vector<SubAxis> intersect(const std::vector<SubAxis> &a,
                               const std::vector<SubAxis> &b);

/// `product` with the digits of `axes` in memory: what a gather over them
/// leaves.
Product gathered(const Product &product, const std::vector<SubAxis> &axes);

/// The states of `view` without `axes`.
std::vector<Partial> withoutPartial(const View &view,
                                    const std::vector<SubAxis> &axes);
/// The states of `a` that are states of `b`, with the same combiner.
std::vector<Partial> commonPartial(const View &a, const View &b);

/// Equal but for their allocations.
inline bool samePlaces(const View &a, const View &b) {
  return a.dims == b.dims && a.partial == b.partial;
}

/// Makes views of a tensor. `shape` has dynamic extents at their maximum,
/// `symbolic` as kDynamic. All views made are canonical and without allocation.
class PlanViews {
public:
  PlanViews(Shape shape, Shape symbolic, const Mesh &mesh)
      : shape(std::move(shape)), symbolic(std::move(symbolic)), mesh(mesh) {}

  View canonical(View view) const;
  /// The spelling of `view` at the maximum of dynamic extents.
  View atMaximum(const View &view) const;
  /// `view` with the digits of `axes` in memory.
  View gathered(const View &view, const std::vector<SubAxis> &axes) const;
  /// `from` split further by those digits of `axes` that split `to` in the same
  /// place.
  View sliced(const View &from, const View &to,
              const std::vector<SubAxis> &axes) const;
  /// `to` as it is before an all-gather over axes that split `from` and are not
  /// in `to`.
  View beforeGather(const View &from, const View &to) const;
  /// `view` split further over `axes`, which it does not use, at the stored
  /// digit that they split best, the outermost of equals; nothing when no digit
  /// is left. Not of dimensions in `stay`.
  std::optional<View> scattered(const View &view,
                                const std::vector<SubAxis> &axes,
                                const std::set<size_t> &stay = {}) const;
  /// The same at a digit that stays in memory from `view` to `to`, where it is
  /// in no other step's way; nothing when `axes` divide none evenly.
  std::optional<View> scatteredInBoth(const View &view, const View &to,
                                      const std::vector<SubAxis> &axes) const;
  /// `view` with dimensions of which some device has more than an even part
  /// split evenly: over the same axes where these divide them, else elsewhere.
  View evened(const View &view) const;
  /// Whether each device's part of `to` is in its part of `from`, whatever the
  /// dynamic extents are; they are known to be so at the maximum.
  bool alwaysSlices(const View &from, const View &to) const;
  /// Whether only devices with one coordinate on `axes` hold anything.
  bool onlyOneHolds(const View &view, const std::vector<SubAxis> &axes) const;
  bool isDynamic(const Group &group, const View &from) const;

  const Shape shape, symbolic;
  const Mesh &mesh;

private:
  View
  mixed(const View &from, const View &to, bool intoFrom,
        const std::function<Product(const AlignedDigit &)> &digit,
        const std::function<Product(const Group &, int64_t bound)> &unaligned,
        const std::vector<SubAxis> &borders = {}) const;
  std::optional<View> scatteredAt(const View &view,
                                  const std::vector<SubAxis> &axes, size_t dim,
                                  size_t place) const;
  Product refinement(const Product &fine, const Product &coarse,
                     const std::vector<SubAxis> &axes, int64_t bound) const;
};

} // namespace tessera::layout

#endif // TESSERA_LAYOUT_PLANVIEWS_H
