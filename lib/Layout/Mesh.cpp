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

namespace {
/// A part of an axis that is a digit of the ranks, too: written as mixed-radix
/// numbers these are [place, size, rest].
struct Digit {
  SubAxis sub;
  int64_t place;
};
} // namespace

/// The digits of all axes but those of size 1, each as long as can be; nothing
/// where ranks have none.
static std::optional<std::vector<Digit>> digitsOf(Mesh mesh, bool byPosition) {
  if (byPosition)
    mesh.devices.clear();
  const int64_t count = mesh.numDevices();
  std::vector<Digit> digits;
  int64_t within = 1; // positions next to each other on the axis
  for (size_t axis = mesh.axes.size(); axis-- > 0;) {
    const int64_t size = mesh.axes[axis].size;
    auto rankAt = [&](int64_t coordinate) {
      const int64_t position = coordinate * within;
      return mesh.devices.empty() ? position : mesh.devices[position];
    };
    for (int64_t begin = 1; begin < size;) { // from the innermost
      const int64_t stride = rankAt(begin);
      int64_t run = 1, digit = 1;
      while (run < size / begin && rankAt(run * begin) == run * stride)
        if (size / begin % ++run == 0)
          digit = run;
      if (digit == 1 || stride <= 0 || count % (stride * digit))
        return std::nullopt;
      digits.push_back({{int(axis), size / (begin * digit), digit},
                        count / (stride * digit)});
      begin *= digit;
    }
    within *= size;
  }
  for (size_t position = 0; position < mesh.devices.size(); ++position) {
    int64_t rank = 0, rest = int64_t(position);
    for (const Digit &digit : digits) {
      rank += rest % digit.sub.size * (count / (digit.place * digit.sub.size));
      rest /= digit.sub.size;
    }
    if (rank != mesh.devices[position])
      return std::nullopt;
  }
  return digits;
}

/// Cuts [begin, end) of a mixed-radix number, in which `startOf` says where
/// each digit starts (0: in none), at the borders of digits: visits parts of
/// them, outermost first. False where one is cut at none of its own borders.
template <typename StartOf, typename Visit>
static bool forDigits(const std::vector<Digit> &digits, int64_t begin,
                      int64_t end, StartOf startOf, Visit visit) {
  while (begin < end) {
    auto digit =
        std::find_if(digits.begin(), digits.end(), [&](const Digit &d) {
          return startOf(d) <= begin && begin < startOf(d) * d.sub.size;
        });
    const int64_t start = startOf(*digit), last = start * digit->sub.size;
    const int64_t next = std::min(end, last);
    if (begin % start || next % begin || last % next ||
        !visit(*digit, begin / start, next / begin))
      return false;
    begin = next;
  }
  return true;
}

std::optional<std::vector<SubAxis>>
layout::sameDigit(const SubAxis &sub, const Mesh &from, const Mesh &to) {
  // Where both list their devices alike, positions do for ranks.
  const bool byPosition = from.devices == to.devices;
  const auto own = digitsOf(from, byPosition), other = digitsOf(to, byPosition);
  if (!own || !other || from.numDevices() != to.numDevices())
    return std::nullopt;
  std::vector<SubAxis> same;
  auto add = [&](const Digit &digit, int64_t pre, int64_t size) {
    const SubAxis part = {digit.sub.axis, digit.sub.pre * pre, size};
    if (!same.empty() && adjacent(same.back(), part))
      same.back().size *= size;
    else
      same.push_back(part);
    return true;
  };
  auto addRanks = [&](const Digit &digit, int64_t pre, int64_t size) {
    const int64_t begin = digit.place * pre;
    return forDigits(
        *other, begin, begin * size, [](const Digit &d) { return d.place; },
        add);
  };
  auto startOf = [&](const Digit &d) {
    return d.sub.axis == sub.axis ? d.sub.pre : 0;
  };
  if (!forDigits(*own, sub.pre, sub.pre * sub.size, startOf, addRanks))
    return std::nullopt;
  return same;
}
