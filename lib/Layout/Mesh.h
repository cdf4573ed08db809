//===- Mesh.h - named axes of devices -------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LAYOUT_MESH_H
#define TESSERA_LAYOUT_MESH_H

#include "Support/Result.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::layout {

struct Axis {
  std::string name;
  int64_t size;
  auto operator<=>(const Axis &) const = default;
};

/// A grid of devices. A *position* is the row-major number of a device's
/// coordinates, the first axis outermost; `devices` maps positions to ranks.
struct Mesh {
  std::vector<Axis> axes;
  /// Rank at each position; empty means rank = position, and is the only
  /// spelling of that order.
  std::vector<int64_t> devices;

  auto operator<=>(const Mesh &) const = default;

  int64_t numDevices() const;
  std::optional<int> findAxis(std::string_view name) const;
  /// One coordinate for each axis.
  std::vector<int64_t> coordsOfRank(int64_t rank) const;
  int64_t rankOfCoords(const std::vector<int64_t> &coords) const;
};

/// A part of an axis: with the axis' coordinate written as a mixed-radix number
/// [pre, size, rest], outermost first, the digit of radix `size`. The whole
/// axis has pre = 1 and size = the axis' size.
struct SubAxis {
  int axis;
  int64_t pre;
  int64_t size;
  auto operator<=>(const SubAxis &) const = default;

  bool isWhole(const Mesh &mesh) const {
    return pre == 1 && size == mesh.axes[axis].size;
  }
  /// The digit of this sub-axis at `coords`.
  int64_t digit(const Mesh &mesh, const std::vector<int64_t> &coords) const {
    int64_t rest = mesh.axes[axis].size / (pre * size);
    return coords[axis] / rest % size;
  }
};

/// Checks that axes are named, distinct and not empty, and that `devices` is
/// empty or a permutation of the ranks other than the identity.
Status verify(const Mesh &mesh);

/// Whether two sub-axes of a mesh are not independent: they have a digit in
/// common, or cut their axis in ways that do not fit (6 as 2 * 3 and as 3 * 2).
bool overlap(const SubAxis &a, const SubAxis &b);

/// Whether `inner` is the digit next inside `outer` on the same axis.
inline bool adjacent(const SubAxis &outer, const SubAxis &inner) {
  return outer.axis == inner.axis && outer.pre * outer.size == inner.pre;
}

/// Sub-axes of `to` that together, outermost first, are on every rank the digit
/// that `sub` of `from` is. Nothing where there are none: the meshes have other
/// numbers of devices, are cut where they do not divide each other (6 as 2 * 3
/// and as 3 * 2), or they list their devices in orders that are neither equal
/// nor of axes.
std::optional<std::vector<SubAxis>> sameDigit(const SubAxis &sub,
                                              const Mesh &from, const Mesh &to);

} // namespace tessera::layout

#endif // TESSERA_LAYOUT_MESH_H
