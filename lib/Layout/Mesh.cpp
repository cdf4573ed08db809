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
