//===- Mesh.cpp - named axes of devices -----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks, positions and coordinates of a mesh, and what makes a mesh legal.
//
//===----------------------------------------------------------------------===//

#include "Layout/Mesh.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::layout;

int64_t Mesh::numDevices() const {
  int64_t count = 1;
  for (const Axis &axis : axes)
    count *= axis.size;
  return count;
}

std::optional<int> Mesh::findAxis(std::string_view name) const {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].name == name)
      return int(i);
  return std::nullopt;
}

std::vector<int64_t> Mesh::coordsOfRank(int64_t rank) const {
  int64_t position = rank;
  if (!devices.empty())
    position =
        std::find(devices.begin(), devices.end(), rank) - devices.begin();
  std::vector<int64_t> coords(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    coords[i] = position % axes[i].size;
    position /= axes[i].size;
  }
  return coords;
}

int64_t Mesh::rankOfCoords(const std::vector<int64_t> &coords) const {
  int64_t position = 0;
  for (size_t i = 0; i < axes.size(); ++i)
    position = position * axes[i].size + coords[i];
  return devices.empty() ? position : devices[position];
}

Status layout::verify(const Mesh &mesh) {
  int64_t count = 1;
  for (size_t i = 0; i < mesh.axes.size(); ++i) {
    const Axis &axis = mesh.axes[i];
    if (axis.name.empty() || axis.name == "_")
      return Error{"axis " + std::to_string(i) + " of the mesh has no name"};
    if (axis.size < 1)
      return Error{"mesh axis " + axis.name + " has size " +
                   std::to_string(axis.size) + "; a size is at least 1"};
    if (*mesh.findAxis(axis.name) != int(i))
      return Error{"the mesh names axis " + axis.name +
                   " twice; names are distinct"};
    if (__builtin_mul_overflow(count, axis.size, &count) || count > int64_t(1)
                                                                        << 32)
      return Error{"the mesh has more devices than 2^32"};
  }
  if (mesh.devices.empty())
    return Ok{};
  std::string expected = "each rank from 0 to " + std::to_string(count - 1) +
                         " stands once in `devices`";
  if (int64_t(mesh.devices.size()) != count)
    return Error{"the mesh has " + std::to_string(count) +
                 " positions, but `devices` lists " +
                 std::to_string(mesh.devices.size()) + " ranks; " + expected};
  std::vector<bool> seen(count);
  bool identity = true;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rank = mesh.devices[i];
    if (rank < 0 || rank >= count || seen[rank])
      return Error{"rank " + std::to_string(rank) +
                   " in `devices` is out of range or there twice; " + expected};
    seen[rank] = true;
    identity &= rank == i;
  }
  if (identity)
    return Error{"`devices` lists the ranks in order; leave it out"};
  return Ok{};
}

bool layout::overlap(const SubAxis &a, const SubAxis &b) {
  if (a.axis != b.axis || a.size == 1 || b.size == 1)
    return false;
  return b.pre % (a.pre * a.size) != 0 && a.pre % (b.pre * b.size) != 0;
}

/// Ranks are mixed-radix numbers of a mesh's coordinates. Of each axis the
/// product of the sizes that are outside of it; nothing if ranks are none.
static std::optional<std::vector<int64_t>> placesOf(Mesh mesh,
                                                    bool byPosition) {
  if (byPosition)
    mesh.devices.clear();
  const int64_t count = mesh.numDevices();
  std::vector<int64_t> strides, places, origin(mesh.axes.size(), 0);
  for (size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    const int64_t size = mesh.axes[axis].size;
    std::vector<int64_t> next = origin;
    next[axis] = size > 1;
    strides.push_back(mesh.rankOfCoords(next));
    const int64_t within = strides.back() * size;
    if (size > 1 && (within == 0 || count % within))
      return std::nullopt;
    places.push_back(size > 1 ? count / within : 1);
  }
  for (size_t position = 0; position < mesh.devices.size(); ++position) {
    int64_t rank = 0, rest = int64_t(position);
    for (size_t axis = mesh.axes.size(); axis-- > 0;) {
      rank += rest % mesh.axes[axis].size * strides[axis];
      rest /= mesh.axes[axis].size;
    }
    if (rank != mesh.devices[position])
      return std::nullopt;
  }
  return places;
}

std::optional<std::vector<SubAxis>>
layout::sameDigit(const SubAxis &sub, const Mesh &from, const Mesh &to) {
  // Where both list their devices alike, positions do for ranks.
  const bool byPosition = from.devices == to.devices;
  const auto own = placesOf(from, byPosition), other = placesOf(to, byPosition);
  if (!own || !other || from.numDevices() != to.numDevices())
    return std::nullopt;
  int64_t begin = (*own)[sub.axis] * sub.pre;
  const int64_t end = begin * sub.size;
  std::vector<SubAxis> digits;
  while (begin < end) {
    // The axis that begins here or goes on.
    size_t axis = 0;
    auto endOf = [&] { return (*other)[axis] * to.axes[axis].size; };
    while ((*other)[axis] > begin || endOf() <= begin)
      ++axis;
    const int64_t next = std::min(end, endOf());
    if (begin % (*other)[axis] || next % begin || endOf() % next)
      return std::nullopt;
    digits.push_back({int(axis), begin / (*other)[axis], next / begin});
    begin = next;
  }
  return digits;
}
