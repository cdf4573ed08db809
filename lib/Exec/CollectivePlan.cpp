//===- CollectivePlan.cpp - what one rank does in a collective ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything follows from the two views. Exchange-like collectives ask the
// layout algebra which boxes go where; a reduce-scatter sends each member of
// the group the box of the addend that it will hold, and adds what it receives
// in the group's order; an all-reduce is that over equal chunks of the buffer,
// then a gather of the chunks. So every element is added up on one rank, in one
// order, and is the same on all.
//
// Messages list elements box after box, in a box by the order of the target's
// dimensions in memory, which all ranks know. Boxes that lie so in memory are
// used in place, the others are packed into scratch.
//
//===----------------------------------------------------------------------===//

#include "Exec/CollectivePlan.h"
#include "Exec/Fold.h"
#include "Layout/Exchange.h"
#include "Layout/Transfers.h"
#include "Support/Try.h"

#include <algorithm>

using namespace tessera;
using layout::Box;
using layout::Combiner;
using layout::Coords;
using layout::Shape;
using layout::SubAxis;

//===----------------------------------------------------------------------===//
// Groups and partial states
//===----------------------------------------------------------------------===//

static void setDigit(Coords &coords, const SubAxis &sub, int64_t value,
                     const layout::Mesh &mesh) {
  int64_t rest = mesh.axes[sub.axis].size / (sub.pre * sub.size);
  coords[sub.axis] += (value - sub.digit(mesh, coords)) * rest;
}

std::vector<int> tessera::groupAlong(const std::vector<SubAxis> &axes,
                                     const layout::Mesh &mesh, int rank) {
  std::vector<int> ranks;
  Coords coords = mesh.coordsOfRank(rank);
  for (int64_t i = 0, n = sizeOf(axes); i < n; ++i) {
    int64_t digits = i;
    for (size_t a = axes.size(); a-- > 0; digits /= axes[a].size)
      setDigit(coords, axes[a], digits % axes[a].size, mesh);
    ranks.push_back(mesh.rankOfCoords(coords));
  }
  return ranks;
}

namespace {

using Copy = CollectivePlan::Copy;
using Fold = CollectivePlan::Fold;
using Message = CollectivePlan::Message;
using Kind = layout::Step::Kind;
using Native = CollectivePlan::Native;
using Phase = CollectivePlan::Phase;

/// Boxes of a tensor as one message or part of a reduction: where they lie one
/// after the other in memory, that place; else copies from or to scratch.
struct Packing {
  Place place;
  std::vector<Copy> copies;
};

class Planner {
public:
  Planner(CollectivePlan &plan, const std::vector<SubAxis> &axes,
          std::vector<int> order, const layout::Mesh &mesh, int rank)
      : plan(plan), axes(axes), order(std::move(order)), mesh(mesh),
        rank(rank) {}

  Status planExchange(const LocalTensor &source, const LocalTensor &target);
  Status planAllReduce(const LocalTensor &source, const LocalTensor &target);
  Status planReduceScatter(const LocalTensor &source,
                           const LocalTensor &target);
  /// Of a broadcast that planExchange has planned, which one device sends to
  /// all: a scatter and an all-gather of even parts, if these are not small.
  void scatterFirst(int64_t elementBytes);
  /// The native form of an all-gather that planExchange has planned.
  void findNativeAllGather(const LocalTensor &source,
                           const LocalTensor &target);

private:
  Status checkReduction(const LocalTensor &source, const LocalTensor &target);
  bool mayReduceNatively(DType dtype) const;
  Packing pack(const LocalTensor &tensor, const std::vector<Box> &boxes,
               bool toScratch, bool mustCopy);
  void count(const std::vector<Copy> &copies, bool &counted);
  void send(Phase &phase, int peer, Place place, int64_t bytes);
  void receive(Phase &phase, int peer, Place place, int64_t bytes);
  int64_t self() const {
    return std::find(plan.group.begin(), plan.group.end(), rank) -
           plan.group.begin();
  }
  Place takeScratch(int64_t bytes) {
    Place place{Place::kScratch, plan.scratchBytes};
    plan.scratchBytes += (bytes + 63) / 64 * 64;
    return place;
  }

  CollectivePlan &plan;
  const std::vector<SubAxis> &axes;
  // Message order: the target's local dimensions, outermost first; empty means
  // row-major.
  std::vector<int> order;
  const layout::Mesh &mesh;
  int rank;
  bool countedPack = false, countedUnpack = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

static Shape permuted(const Shape &shape, const std::vector<int> &order) {
  if (order.empty())
    return shape;
  Shape result;
  for (int dim : order)
    result.push_back(shape[dim]);
  return result;
}

Packing Planner::pack(const LocalTensor &tensor, const std::vector<Box> &boxes,
                      bool toScratch, bool mustCopy) {
  const int64_t bytes = tensor.elementBytes();
  const Place base = placeOf(tensor);
  Shape strides = permuted(tensor.strides, order);
  int64_t total = 0;
  bool inPlace = !mustCopy;
  std::optional<Place> first;
  for (const Box &box : boxes) {
    int64_t count = product(box.size);
    if (count == 0)
      continue;
    Place place = base;
    for (size_t d = 0; d < box.offset.size(); ++d)
      place.offset += box.offset[d] * tensor.strides[d] * bytes;
    if (!first)
      first = place;
    inPlace &= isDense(permuted(box.size, order), strides) &&
               place.offset == first->offset + total * bytes;
    total += count;
  }
  if (!first)
    return {base, {}};
  if (inPlace)
    return {*first, {}};
  Packing packing{takeScratch(total * bytes), {}};
  Place next = packing.place;
  for (const Box &box : boxes) {
    if (product(box.size) == 0)
      continue;
    Place place = base;
    for (size_t d = 0; d < box.offset.size(); ++d)
      place.offset += box.offset[d] * tensor.strides[d] * bytes;
    Shape sizes = permuted(box.size, order), dense = rowMajor(sizes);
    if (toScratch)
      packing.copies.push_back(
          {CopyLoop(bytes, sizes, dense, strides), next, place});
    else
      packing.copies.push_back(
          {CopyLoop(bytes, sizes, strides, dense), place, next});
    next.offset += product(sizes) * bytes;
  }
  return packing;
}

void Planner::count(const std::vector<Copy> &copies, bool &counted) {
  if (copies.empty())
    return;
  plan.traffic.copies += !counted;
  counted = true;
  for (const Copy &copy : copies)
    plan.traffic.copiedBytes += copy.loop.bytes();
}

void Planner::send(Phase &phase, int peer, Place place, int64_t bytes) {
  if (bytes == 0)
    return;
  phase.sends.push_back({peer, place, bytes});
  plan.traffic.bytesSent += bytes;
}

void Planner::receive(Phase &phase, int peer, Place place, int64_t bytes) {
  if (bytes == 0)
    return;
  phase.receives.push_back({peer, place, bytes});
  plan.traffic.bytesReceived += bytes;
}

static void append(auto &to, const auto &from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// Copies that follow one another in equal steps, as one.
static void mergeCopies(std::vector<Copy> &copies) {
  std::vector<Copy> merged;
  auto step = [](const Place &from, const Place &to) -> std::optional<int64_t> {
    if (from.buffer != to.buffer)
      return std::nullopt;
    return to.offset - from.offset;
  };
  for (size_t i = 0, end; i < copies.size(); i = end) {
    Copy copy = copies[i];
    end = i + 1;
    if (end < copies.size()) {
      const auto to = step(copy.to, copies[end].to);
      const auto from = step(copy.from, copies[end].from);
      auto follows = [&](size_t n) {
        return n < copies.size() && copies[n].loop == copy.loop &&
               step(copies[n - 1].to, copies[n].to) == to &&
               step(copies[n - 1].from, copies[n].from) == from;
      };
      while (to && *to > 0 && from && follows(end))
        ++end;
      if (end - i > 1 && !copy.loop.repeat(end - i, *to, *from))
        end = i + 1;
    }
    merged.push_back(copy);
  }
  copies = std::move(merged);
}

static Box wholeBox(const LocalTensor &tensor) {
  return {Shape(tensor.sizes.size(), 0), tensor.sizes};
}

/// Whether writing one may change the other.
static bool overlap(const LocalTensor &a, const LocalTensor &b) {
  if (a.root != b.root || a.elements() == 0 || b.elements() == 0)
    return false;
  auto end = [](const LocalTensor &t) {
    int64_t last = t.offset;
    for (size_t i = 0; i < t.sizes.size(); ++i)
      last += (t.sizes[i] - 1) * t.strides[i];
    return last;
  };
  return a.offset <= end(b) && b.offset <= end(a);
}

//===----------------------------------------------------------------------===//
// The kinds of collectives
//===----------------------------------------------------------------------===//

Status Planner::planExchange(const LocalTensor &source,
                             const LocalTensor &target) {
  const std::vector<SubAxis> after = layout::merged(partialAxes(target.view));
  for (const SubAxis &sub : partialAxes(source.view))
    if (!layout::contains(after, sub))
      return Error{"a partial value becomes whole without a reduction"};
  layout::Transfers moves =
      layout::expandTransfers(source.view, *source.mesh, target.view,
                              *target.mesh, source.globalShape, rank);
  const bool shared = overlap(source, target);
  const int64_t bytes = source.elementBytes();
  // Of a new partial state this rank has the identity where it has no addend.
  int64_t addends = moves.keepTo.elements;
  for (const layout::PeerBoxes &peer : moves.receives)
    addends += peer.elements;
  const bool fills = addends != target.elements();

  Phase &phase = plan.phases.emplace_back();
  for (const layout::PeerBoxes &peer : moves.sends) {
    Packing packing = pack(source, peer.boxes, true, shared);
    count(packing.copies, countedPack);
    append(phase.before, packing.copies);
    send(phase, peer.peer, packing.place, peer.elements * bytes);
  }
  for (const layout::PeerBoxes &peer : moves.receives) {
    Packing packing = pack(target, peer.boxes, false, /*mustCopy=*/fills);
    count(packing.copies, countedUnpack);
    append(phase.after, packing.copies);
    receive(phase, peer.peer, packing.place, peer.elements * bytes);
  }

  const auto &from = moves.keepFrom.boxes, &keep = moves.keepTo.boxes;
  if (shared && !fills && source.offset == target.offset &&
      source.strides == target.strides &&
      std::equal(from.begin(), from.end(), keep.begin(), keep.end(),
                 [](const Box &a, const Box &b) {
                   return a.offset == b.offset && a.size == b.size;
                 })) {
    // It stays where it is.
  } else if (shared) {
    Packing out = pack(source, from, true, true);
    append(phase.before, out.copies);
    // The same elements in the same order, from that scratch to the target.
    Place next = out.place;
    for (const Box &box : keep) {
      if (product(box.size) == 0)
        continue;
      Packing in = pack(target, {box}, false, true);
      Copy copy = in.copies[0];
      copy.from = next;
      phase.after.push_back(copy);
      next.offset += copy.loop.bytes();
    }
  } else {
    for (size_t i = 0; i < from.size(); ++i) {
      auto corner = [](const LocalTensor &tensor, const Box &box) {
        int64_t offset = 0;
        for (size_t d = 0; d < box.offset.size(); ++d)
          offset += box.offset[d] * tensor.strides[d];
        return placeOf(tensor).at(offset * tensor.elementBytes());
      };
      std::optional<CopyLoop> loop = CopyLoop::between(
          bytes, keep[i].size, target.strides, from[i].size, source.strides);
      if (!loop)
        return Error{"a copy of what stays takes more than " +
                     std::to_string(kMaxRank) + " nested loops"};
      (fills ? phase.after : phase.before)
          .push_back({*loop, corner(target, keep[i]), corner(source, from[i])});
    }
  }

  if (!fills)
    return Ok{};
  Shape still(target.sizes.size(), 0);
  plan.fills = {{target.dtype,
                 CopyLoop(bytes, target.sizes, target.strides, still),
                 placeOf(target),
                 {}}};
  identityOf(target.dtype, plan.combiner, plan.fills[0].value.data());
  return Ok{};
}

Status Planner::checkReduction(const LocalTensor &source,
                               const LocalTensor &target) {
  const Combiner combiner = plan.combiner;
  TSR_TRY(canFold(source.dtype, combiner));
  for (const SubAxis &sub : axes) {
    auto holds = [&](const layout::Partial &partial) {
      return partial.combiner == combiner &&
             std::any_of(
                 partial.axes.begin(), partial.axes.end(),
                 [&](const SubAxis &s) { return layout::overlap(s, sub); });
    };
    if (sub.size > 1 && std::none_of(source.view.partial.begin(),
                                     source.view.partial.end(), holds))
      return Error{"it reduces (" + std::string(layout::toString(combiner)) +
                   ") over " + layout::toString(sub, mesh) +
                   ", along which its operand is not partial so"};
  }
  if (sizeOf(partialAxes(source.view)) !=
      sizeOf(partialAxes(target.view)) * sizeOf(axes))
    return Error{"what is partial before and after does not fit its axes"};
  return Ok{};
}

Status Planner::planAllReduce(const LocalTensor &source,
                              const LocalTensor &target) {
  TSR_TRY(checkReduction(source, target));
  if (source.sizes != target.sizes || source.view.dims != target.view.dims)
    return Error{"an all-reduce changes only partial states"};
  const std::vector<int> &group = plan.group;
  const int64_t bytes = source.elementBytes();
  const int64_t n = group.size(), total = source.elements();
  const int64_t self = this->self();

  // Source and target in message order.
  const bool unaligned =
      overlap(source, target) &&
      (source.offset != target.offset || source.strides != target.strides);
  Packing in = pack(source, {wholeBox(source)}, true, unaligned);
  Packing out = pack(target, {wholeBox(target)}, false, unaligned);
  count(in.copies, countedPack);
  count(out.copies, countedUnpack);
  if (total && in.copies.empty() && out.copies.empty() &&
      mayReduceNatively(source.dtype))
    plan.natives = {
        {Kind::AllReduce, source.dtype, total, in.place, out.place}};
  // Chunks begin on 64-byte lines, so that sums run at full width; small ones
  // do not, so that every device sums its share.
  const int64_t share = (total + n - 1) / n;
  const int64_t line =
      share * bytes < 512 ? 1 : std::max<int64_t>(64 / bytes, 1);
  const int64_t chunk = (share + line - 1) / line * line;
  auto begin = [&](int64_t i) { return std::min(i * chunk, total); };
  auto length = [&](int64_t i) { return begin(i + 1) - begin(i); };

  Phase scatter, gather;
  scatter.before = in.copies;
  Fold fold{source.dtype, {}, length(self), out.place.at(begin(self) * bytes)};
  for (int64_t i = 0; i < n; ++i) {
    if (i == self) {
      fold.members.push_back(in.place.at(begin(self) * bytes));
      continue;
    }
    send(scatter, group[i], in.place.at(begin(i) * bytes), length(i) * bytes);
    Place addend = takeScratch(length(self) * bytes);
    receive(scatter, group[i], addend, length(self) * bytes);
    fold.members.push_back(addend);
    send(gather, group[i], fold.to, length(self) * bytes);
    receive(gather, group[i], out.place.at(begin(i) * bytes),
            length(i) * bytes);
  }
  scatter.folds.push_back(std::move(fold));
  gather.after = out.copies;
  plan.phases.push_back(std::move(scatter));
  plan.phases.push_back(std::move(gather));
  return Ok{};
}

Status Planner::planReduceScatter(const LocalTensor &source,
                                  const LocalTensor &target) {
  TSR_TRY(checkReduction(source, target));
  const std::vector<int> &group = plan.group;
  const int64_t bytes = source.elementBytes();
  layout::View from = source.view, to = target.view;
  from.partial = to.partial = {};

  Phase phase;
  Fold fold{source.dtype, {}, target.elements(), {}};
  std::vector<Box> mine;
  // Whether the members' parts lie in memory in the group's order.
  bool inOrder = true;
  for (const int &member : group) {
    // No axis of the group splits the source, so a member's boxes of its source
    // are the same boxes of ours.
    layout::Transfers moves =
        layout::expandTransfers(from, to, source.globalShape, mesh, member);
    if (!moves.receives.empty())
      return Error{"the target of a reduce-scatter must be a part of its "
                   "operand on each device"};
    bool self = member == rank;
    Packing packing = pack(source, moves.keepFrom.boxes, true, false);
    count(packing.copies, countedPack);
    append(phase.before, packing.copies);
    inOrder &= packing.place.buffer == source.root &&
               packing.place.offset ==
                   placeOf(source).offset +
                       (&member - group.data()) * target.elements() * bytes &&
               moves.keepFrom.elements == target.elements();
    if (self) {
      mine = moves.keepTo.boxes;
      fold.members.push_back(packing.place);
      continue;
    }
    send(phase, member, packing.place, moves.keepFrom.elements * bytes);
    Place addend = takeScratch(target.elements() * bytes);
    receive(phase, member, addend, target.elements() * bytes);
    fold.members.push_back(addend);
  }
  // In place only where the sum lands on the addend of this very rank.
  const Place own =
      fold.members[std::find(group.begin(), group.end(), rank) - group.begin()];
  Packing out = pack(target, mine, false, false);
  if (overlap(source, target) &&
      (out.place.buffer != own.buffer || out.place.offset != own.offset))
    out = pack(target, mine, false, true);
  count(out.copies, countedUnpack);
  fold.to = out.place;
  if (inOrder && target.elements() && phase.before.empty() &&
      out.copies.empty() && mayReduceNatively(source.dtype))
    plan.natives = {{Kind::ReduceScatter, source.dtype, target.elements(),
                     placeOf(source), out.place}};
  phase.after = out.copies;
  phase.folds.push_back(std::move(fold));
  plan.phases.push_back(std::move(phase));
  return Ok{};
}

/// Whether a library's sum gives what `fold` gives, up to the order of
/// additions: its maximum of floats may lose a NaN.
bool Planner::mayReduceNatively(DType dtype) const {
  return plan.combiner == Combiner::Sum || !info(dtype).isFloat;
}

void Planner::findNativeAllGather(const LocalTensor &source,
                                  const LocalTensor &target) {
  if (plan.phases.size() != 1 || !plan.fills.empty() || plan.traffic.copies)
    return;
  const Phase &phase = plan.phases[0];
  const int64_t n = plan.group.size(), count = source.elements();
  const int64_t bytes = count * source.elementBytes();
  const size_t peers = n - 1;
  if (count == 0 || target.elements() != n * count ||
      phase.receives.size() != peers || phase.sends.size() != peers)
    return;
  const Place to = placeOf(target), from = placeOf(source);
  auto same = [](const Place &a, const Place &b) {
    return a.buffer == b.buffer && a.offset == b.offset;
  };
  // Each member's part, where the group's order has it.
  for (const Message &message : phase.receives) {
    auto member = std::find(plan.group.begin(), plan.group.end(), message.peer);
    if (member == plan.group.end() || message.bytes != bytes ||
        !same(message.place, to.at((member - plan.group.begin()) * bytes)))
      return;
  }
  for (const Message &message : phase.sends)
    if (message.bytes != bytes || !same(message.place, from) ||
        std::find(plan.group.begin(), plan.group.end(), message.peer) ==
            plan.group.end())
      return;
  // Its own part, copied there in one piece.
  if (phase.before.size() != 1 || !phase.before[0].loop.isDense() ||
      !same(phase.before[0].to, to.at(self() * bytes)) ||
      !same(phase.before[0].from, from))
    return;
  plan.natives = {{Kind::AllGather, source.dtype, count, from, to}};
}

void Planner::scatterFirst(int64_t elementBytes) {
  Phase scatter = plan.phases[0];
  const std::vector<int> &group = plan.group;
  const int64_t n = group.size(), self = this->self();
  const bool sends = !scatter.sends.empty();
  // One holder sends all that it has to each, and the others receive that.
  if (sends == !scatter.receives.empty() ||
      int64_t(scatter.sends.size() + scatter.receives.size()) !=
          (sends ? n - 1 : 1))
    return;
  const Message all = sends ? scatter.sends[0] : scatter.receives[0];
  for (const Message &message : sends ? scatter.sends : scatter.receives)
    if (message.bytes != all.bytes ||
        std::ranges::find(group, message.peer) == group.end())
      return;
  const int64_t holder =
      sends ? self : std::ranges::find(group, all.peer) - group.begin();
  const int64_t line = std::max<int64_t>(64 / elementBytes, 1) * elementBytes;
  const int64_t share = (all.bytes + n - 1) / n;
  if (share < 512)
    return;
  const int64_t chunk = (share + line - 1) / line * line;
  auto begin = [&](int64_t i) { return std::min(i * chunk, all.bytes); };
  auto length = [&](int64_t i) { return begin(i + 1) - begin(i); };

  Phase gather;
  std::swap(gather.after, scatter.after);
  scatter.sends.clear();
  scatter.receives.clear();
  plan.traffic.bytesSent = plan.traffic.bytesReceived = 0;
  auto place = [&](int64_t i) { return all.place.at(begin(i)); };
  for (int64_t i = 0; i < n; ++i) {
    if (i == self)
      continue;
    if (sends) {
      send(scatter, group[i], place(i), length(i));
      send(gather, group[i], place(self), length(self));
      continue;
    }
    receive(gather, group[i], place(i), length(i));
    if (i == holder)
      receive(scatter, group[i], place(self), length(self));
    else
      send(gather, group[i], place(self), length(self));
  }
  plan.phases = {std::move(scatter), std::move(gather)};
}

/// Plans what `rank` does to move `source` to `target`.
static Result<CollectivePlan> planOne(const fb::CollectiveT &collective,
                                      const std::vector<SubAxis> &axes,
                                      const LocalTensor &source,
                                      const LocalTensor &target,
                                      const layout::Mesh &mesh, int rank) {
  if (source.globalShape != target.globalShape)
    return Error{"its operand and result have different global shapes"};
  CollectivePlan plan;
  plan.combiner = combinerOf(collective);
  plan.group = groupAlong(axes, mesh, rank);
  auto spans = [](const layout::View &view) {
    std::vector<int64_t> spans;
    for (const layout::Dim &dim : view.dims)
      spans.push_back(dim.span);
    return spans;
  };
  // Only row-major order means the same on both sides of other spans.
  const bool alike = spans(source.view) == spans(target.view);
  Planner planner(plan, axes, alike ? target.order : std::vector<int>(), mesh,
                  rank);
  Status status = Ok{};
  switch (kindOf(collective)) {
  case Kind::AllReduce:
    status = planner.planAllReduce(source, target);
    break;
  case Kind::ReduceScatter:
    status = planner.planReduceScatter(source, target);
    break;
  default:
    status = planner.planExchange(source, target);
    if (status && kindOf(collective) == Kind::Slice &&
        plan.traffic.bytesSent + plan.traffic.bytesReceived > 0)
      status = Error{"a local slice cannot do this move"};
    if (status && kindOf(collective) == Kind::AllGather)
      planner.findNativeAllGather(source, target);
    if (status && kindOf(collective) == Kind::Broadcast)
      planner.scatterFirst(source.elementBytes());
  }
  if (!status)
    return status.error();
  if (plan.group.size() < 2)
    plan.natives.clear();
  return plan;
}

/// What `other` does, an equal collective of other tensors, in the same phases.
static void join(CollectivePlan &plan, CollectivePlan other) {
  auto shift = [&](Place &place) {
    if (place.buffer == Place::kScratch)
      place.offset += plan.scratchBytes;
  };
  auto move = [&](auto &to, auto &from, auto... places) {
    for (auto &each : from) {
      (shift(each.*places), ...);
      to.push_back(std::move(each));
    }
  };
  plan.phases.resize(std::max(plan.phases.size(), other.phases.size()));
  for (size_t i = 0; i < other.phases.size(); ++i) {
    Phase &to = plan.phases[i], &from = other.phases[i];
    for (Fold &fold : from.folds)
      std::ranges::for_each(fold.members, shift);
    move(to.before, from.before, &Copy::to, &Copy::from);
    move(to.sends, from.sends, &Message::place);
    move(to.receives, from.receives, &Message::place);
    move(to.folds, from.folds, &Fold::to);
    move(to.after, from.after, &Copy::to, &Copy::from);
  }
  move(plan.fills, other.fills, &CollectivePlan::Fill::to);
  if (plan.natives.empty() || other.natives.empty())
    plan.natives.clear();
  else
    append(plan.natives, other.natives);
  plan.traffic.bytesSent += other.traffic.bytesSent;
  plan.traffic.bytesReceived += other.traffic.bytesReceived;
  plan.traffic.copies += other.traffic.copies;
  plan.traffic.copiedBytes += other.traffic.copiedBytes;
  plan.scratchBytes += other.scratchBytes;
}

Result<CollectivePlan> CollectivePlan::create(const fb::CollectiveT &collective,
                                              const std::vector<SubAxis> &axes,
                                              Tensors &tensors) {
  std::optional<CollectivePlan> plan;
  for (const fb::Pair &pair : pairsOf(collective)) {
    Result<const LocalTensor *> source = tensors.get(pair.source());
    if (!source)
      return source.error();
    Result<const LocalTensor *> target = tensors.get(pair.target());
    if (!target)
      return target.error();
    Result<CollectivePlan> one =
        planOne(collective, axes, **source, **target, tensors.module().mesh(),
                tensors.rank());
    if (!one)
      return one.error();
    if (plan)
      join(*plan, std::move(*one));
    else
      plan = std::move(*one);
  }
  for (Phase &phase : plan->phases) {
    mergeCopies(phase.before);
    mergeCopies(phase.after);
  }
  return std::move(*plan);
}

size_t CollectivePlan::mostMessages() const {
  size_t most = 0;
  for (const Phase &phase : phases)
    most = std::max({most, phase.sends.size(), phase.receives.size()});
  return most;
}

BoundMessages::BoundMessages(const CollectivePlan::Phase &phase,
                             const Bases &bases) {
  for (const CollectivePlan::Message &message : phase.sends)
    sends.push_back({message.peer, bases(message.place), message.bytes});
  for (const CollectivePlan::Message &message : phase.receives)
    receives.push_back({message.peer, bases(message.place), message.bytes});
}

Result<bool> tessera::nativeOnAll(const CollectivePlan &plan,
                                  const fb::CollectiveT &collective,
                                  const std::vector<SubAxis> &axes,
                                  const Tensors &tensors) {
  if (plan.natives.empty())
    return false;
  for (int member : plan.group) {
    if (member == tensors.rank())
      continue;
    Result<Tensors> theirs = tensors.onRank(member);
    if (!theirs)
      return theirs.error();
    Result<CollectivePlan> other =
        CollectivePlan::create(collective, axes, *theirs);
    if (!other)
      return other.error();
    if (!std::ranges::equal(plan.natives, other->natives,
                            [](const Native &a, const Native &b) {
                              return a.kind == b.kind && a.count == b.count;
                            }))
      return false;
  }
  return true;
}
