//===- Traffic.cpp - what an exchange does on the wire --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/Traffic.h"
#include "Layout/ViewInternal.h"

#include <algorithm>
#include <set>

using namespace tessera;
using namespace tessera::layout;

/// Whether parts of dims [begin, end), each contiguous in these dims, are
/// contiguous in memory. An undecided allocation can make them so.
static bool contiguous(const View &view, const PlanViews &views, size_t begin,
                       size_t end) {
  if (!view.alloc)
    return true;
  Shape local = maxLocalShape(view, views.shape, views.mesh);
  size_t next = begin;
  for (int64_t dim : *view.alloc) {
    if (next == end)
      break;
    if (size_t(dim) == next)
      ++next;
    else if (local[dim] != 1)
      return false;
  }
  return true;
}

/// Of a shard and a device; beyond, what a move costs is estimated where a
/// shard has several holders.
static constexpr int64_t kMaxPairs = 1 << 18;

static int64_t most(const std::vector<int64_t> &values) {
  return *std::max_element(values.begin(), values.end());
}

/// What each device gives to each. The changed groups in which several holders
/// share one taker.
static std::vector<bool> countPairs(const Exchange &exchange, int64_t scale,
                                    Traffic &traffic) {
  size_t count = exchange.members.size();
  std::vector<int64_t> sent(count, 0), received(count, 0);
  std::vector<int64_t> takers(count, 0), givers(count, 0);
  std::vector<bool> shared(exchange.changed.size(), false);
  for (int64_t shard = 0; shard < exchange.numShards; ++shard)
    exchange.forShares(shard, [&](const Exchange::Share &share) {
      ++takers[share.giver];
      ++givers[share.taker];
      if (share.range)
        shared[share.range->along] = true;
      if (share.giver == share.taker)
        return;
      sent[share.giver] += scale * share.elements;
      received[share.taker] += scale * share.elements;
    });
  traffic.sent = most(sent);
  traffic.received = most(received);
  traffic.permutation = traffic.received && exchange.teamSize == 1 &&
                        most(takers) == 1 && most(givers) == 1;
  return shared;
}

/// The same from what each shard gives and each part needs in all, as if those
/// that have a shard shared its takers evenly.
static void countShares(const Exchange &exchange, int64_t scale,
                        Traffic &traffic) {
  struct Sums {
    std::vector<int64_t> elements, parts; ///< of a part, by the other side's
    explicit Sums(int64_t count) : elements(count, 0), parts(count, 0) {}
    void add(int64_t part, int64_t common) {
      elements[part] += common;
      parts[part] += common != 0;
    }
  };
  std::vector<Sums> gives, needs;
  int64_t classes = 1; // of devices that need the same
  for (const Overlap &overlap : exchange.overlaps) {
    Sums from(overlap.from.count), to(overlap.to.count);
    for (int64_t f = 0; f < overlap.from.count; ++f)
      for (const Overlap::Meeting &meeting : overlap.meetingsOf(f)) {
        from.add(f, meeting.elements);
        to.add(meeting.to, meeting.elements);
      }
    gives.push_back(std::move(from));
    needs.push_back(std::move(to));
    classes *= overlap.to.count;
  }
  const int64_t copies =
      std::max<int64_t>(int64_t(exchange.members.size()) / classes, 1);
  // Of a shard, by who need not be given it.
  std::vector<int64_t> kept(exchange.numShards, 0);
  for (size_t i = 0; i < exchange.members.size(); ++i)
    if (exchange.isKeeper(i))
      kept[exchange.members[i].shard] +=
          exchange.common(exchange.members[i], exchange.members[i]);

  bool isPermutation = exchange.teamSize == 1;
  for (const Exchange::Member &member : exchange.members) {
    int64_t given = copies, takers = copies, givers = 1;
    for (size_t i = 0; i < gives.size(); ++i) {
      given *= gives[i].elements[member.has[i]];
      takers *= gives[i].parts[member.has[i]];
      givers *= needs[i].parts[member.needs[i]];
    }
    const int64_t sharing = int64_t(exchange.holdersOf(member.shard).size());
    const int64_t shared =
        std::max<int64_t>(given / exchange.teamSize - kept[member.shard], 0);
    traffic.sent =
        std::max(traffic.sent, scale * ((shared + sharing - 1) / sharing));
    isPermutation &= sharing == 1 && takers <= 1 && givers <= 1;
  }
  traffic.received = scale * ((exchange.mostLacking + exchange.teamSize - 1) /
                              exchange.teamSize);
  traffic.permutation = traffic.received && isPermutation;
}

/// Unchanged dims only multiply; no class has more of them than this.
static int64_t scaleOf(const Exchange &exchange, const View &from,
                       const PlanViews &views) {
  int64_t scale = 1;
  const Shape local = maxLocalShape(from, views.shape, views.mesh);
  for (size_t i = 0; i < exchange.groups.size(); ++i)
    if (std::find(exchange.changed.begin(), exchange.changed.end(), i) ==
        exchange.changed.end())
      for (size_t dim = exchange.groups[i].fromBegin;
           dim < exchange.groups[i].fromEnd; ++dim)
        scale *= local[dim];
  return scale;
}

int64_t layout::lackOf(const View &from, const View &to,
                       const PlanViews &views) {
  const View largest = views.atMaximum(from);
  Exchange exchange(largest, views.atMaximum(to), views.shape, views.mesh,
                    Coords(views.mesh.axes.size(), 0));
  return exchange.mostLacking * scaleOf(exchange, largest, views);
}

int64_t layout::leavesOf(const View &from, const View &to,
                         const PlanViews &views) {
  const View largest = views.atMaximum(from);
  Exchange exchange(largest, views.atMaximum(to), views.shape, views.mesh,
                    Coords(views.mesh.axes.size(), 0));
  if (exchange.numShards * int64_t(exchange.members.size()) > kMaxPairs)
    return 0;
  const int64_t holders =
      views.mesh.numDevices() /
      (sizeOf(splitAxes(largest)) * sizeOf(partialAxes(largest)));
  int64_t most = 0;
  for (int64_t shard = 0; shard < exchange.numShards; ++shard) {
    // What others need of it are parts that have no element in common.
    std::set<std::vector<int32_t>> parts;
    int64_t elements = 0;
    exchange.forShares(shard, [&](const Exchange::Share &share) {
      const Exchange::Member &giver = exchange.members[share.giver],
                             &taker = exchange.members[share.taker];
      if (share.giver != share.taker &&
          parts.emplace(taker.needs, taker.needs + exchange.overlaps.size())
              .second)
        elements += exchange.common(giver, taker);
    });
    most = std::max(most, elements);
  }
  return ceilDiv(most * scaleOf(exchange, largest, views), holders);
}

Traffic layout::computeTraffic(const View &symbolicFrom, const View &symbolicTo,
                               const PlanViews &views) {
  const Shape &shape = views.shape;
  const Mesh &mesh = views.mesh;
  View from = views.atMaximum(symbolicFrom), to = views.atMaximum(symbolicTo);
  Exchange exchange(from, to, shape, mesh, Coords(mesh.axes.size(), 0));
  Traffic traffic;
  traffic.axes = merged(exchange.active);

  // At smaller extents digits may be at other places than at the maximum.
  for (const Group &group : joinGroups(symbolicFrom, symbolicTo, shape)) {
    if (!group.changed() || !views.isDynamic(group, symbolicFrom))
      continue;
    traffic.dynamic = true;
    for (const Product *product : {&group.from, &group.to}) {
      std::vector<SubAxis> more = subtract(axesOf(*product), traffic.axes);
      traffic.axes.insert(traffic.axes.end(), more.begin(), more.end());
    }
  }

  const int64_t scale = scaleOf(exchange, from, views);
  // Where each shard has one holder, nobody chooses who gives it.
  bool chosen = exchange.teamSize > 1;
  for (int64_t shard = 0; shard < exchange.numShards; ++shard)
    chosen |= exchange.holdersOf(shard).size() > 1;
  std::vector<bool> shared(exchange.changed.size(), false);
  if (chosen &&
      exchange.numShards * int64_t(exchange.members.size()) <= kMaxPairs)
    shared = countPairs(exchange, scale, traffic);
  else
    countShares(exchange, scale, traffic);

  int64_t cutFrom = 0, cutTo = 0;
  for (size_t i = 0; i < exchange.changed.size(); ++i) {
    const Group &group = exchange.groups[exchange.changed[i]];
    const Overlap &overlap = exchange.overlaps[i];
    if (overlap.fromCut || shared[i]) {
      ++cutFrom;
      traffic.packFrom |=
          !overlap.fromContiguous ||
          !contiguous(from, views, group.fromBegin, group.fromEnd);
    }
    if (overlap.toCut || shared[i]) {
      ++cutTo;
      traffic.packTo |= !overlap.toContiguous ||
                        !contiguous(to, views, group.toBegin, group.toEnd);
    }
  }
  traffic.packFrom |= cutFrom > 1;
  traffic.packTo |= cutTo > 1;
  return traffic;
}
