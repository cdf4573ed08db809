//===- Collectives.cpp - collectives on a grouped exchange ----------------===//
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

#include "Runtime/Collectives.h"
#include "Layout/Planner.h"
#include "Runtime/Fold.h"

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

static int64_t sizeOf(const std::vector<SubAxis> &axes) {
  int64_t n = 1;
  for (const SubAxis &sub : axes)
    n *= sub.size;
  return n;
}

static std::vector<SubAxis> partialAxes(const layout::View &view) {
  std::vector<SubAxis> axes;
  for (const layout::Partial &partial : view.partial)
    axes.insert(axes.end(), partial.axes.begin(), partial.axes.end());
  return axes;
}

std::vector<int>
CollectiveWork::groupOf(const std::vector<SubAxis> &axes) const {
  std::vector<int> ranks;
  Coords coords = mesh->coordsOfRank(rank);
  for (int64_t i = 0, n = sizeOf(axes); i < n; ++i) {
    int64_t digits = i;
    for (size_t a = axes.size(); a-- > 0; digits /= axes[a].size)
      setDigit(coords, axes[a], digits % axes[a].size, *mesh);
    ranks.push_back(mesh->rankOfCoords(coords));
  }
  return ranks;
}

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

CollectiveWork::Packing CollectiveWork::pack(const LocalTensor &tensor,
                                             const std::vector<Box> &boxes,
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

void CollectiveWork::count(const std::vector<Copy> &copies, bool &counted) {
  if (copies.empty())
    return;
  figures.copies += !counted;
  counted = true;
  for (const Copy &copy : copies)
    figures.copiedBytes += copy.loop.bytes();
}

void CollectiveWork::send(Phase &phase, int peer, Place place, int64_t bytes) {
  if (bytes == 0)
    return;
  phase.sends.push_back({peer, place, bytes});
  figures.bytesSent += bytes;
}

void CollectiveWork::receive(Phase &phase, int peer, Place place,
                             int64_t bytes) {
  if (bytes == 0)
    return;
  phase.receives.push_back({peer, place, bytes});
  figures.bytesReceived += bytes;
}

static void append(auto &to, auto &from) {
  to.insert(to.end(), from.begin(), from.end());
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

Status CollectiveWork::planExchange(const LocalTensor &source,
                                    const LocalTensor &target,
                                    Combiner combiner) {
  // A whole value may become partial: coordinate 0 keeps it, the others take
  // the identity. What was partial before stays so.
  layout::View to = target.view;
  to.partial = source.view.partial;
  layout::Transfers moves =
      layout::expandTransfers(source.view, to, source.globalShape, *mesh, rank);
  const bool shared = overlap(source, target);
  const int64_t bytes = source.elementBytes();

  Phase &phase = phases.emplace_back();
  for (const layout::PeerBoxes &peer : moves.sends) {
    Packing packing = pack(source, peer.boxes, true, shared);
    count(packing.copies, countedPack);
    append(phase.before, packing.copies);
    send(phase, peer.peer, packing.place, peer.elements * bytes);
  }
  for (const layout::PeerBoxes &peer : moves.receives) {
    Packing packing = pack(target, peer.boxes, false, false);
    count(packing.copies, countedUnpack);
    append(phase.after, packing.copies);
    receive(phase, peer.peer, packing.place, peer.elements * bytes);
  }

  const auto &from = moves.keepFrom.boxes, &keep = moves.keepTo.boxes;
  if (shared && source.offset == target.offset &&
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
      if (from[i].size == keep[i].size) {
        phase.before.push_back(
            {CopyLoop(bytes, from[i].size, target.strides, source.strides),
             corner(target, keep[i]), corner(source, from[i])});
        continue;
      }
      // Other local dimensions on the two sides (flat), the same elements in
      // row-major order.
      std::optional<Shape> strides =
          reshapeStrides(from[i].size, source.strides, keep[i].size);
      if (!strides)
        return Error{"a box that stays has no common dimensions"};
      phase.before.push_back(
          {CopyLoop(bytes, keep[i].size, target.strides, *strides),
           corner(target, keep[i]), corner(source, from[i])});
    }
  }

  std::vector<SubAxis> before = partialAxes(source.view);
  std::vector<SubAxis> after = partialAxes(target.view);
  // With the old digits at 0, what is left of the new state's digits.
  Coords coords = mesh->coordsOfRank(rank);
  for (const SubAxis &sub : before)
    setDigit(coords, sub, 0, *mesh);
  bool zero = true;
  for (const SubAxis &sub : after)
    zero &= sub.digit(*mesh, coords) == 0;
  Coords probe(mesh->axes.size(), 0);
  for (size_t a = 0; a < mesh->axes.size(); ++a)
    probe[a] = mesh->axes[a].size - 1;
  for (const SubAxis &sub : after)
    setDigit(probe, sub, 0, *mesh);
  for (const SubAxis &sub : before)
    if (sub.digit(*mesh, probe) != 0)
      return Error{"a partial value becomes whole without a reduction"};
  if (zero)
    return Ok{};
  identityOf(dtype, combiner, identity);
  Shape still(target.sizes.size(), 0);
  fill = Copy{CopyLoop(bytes, target.sizes, target.strides, still),
              placeOf(target),
              {}};
  return Ok{};
}

Status CollectiveWork::checkReduction(const LocalTensor &source,
                                      const LocalTensor &target,
                                      Combiner combiner) {
  if (Status status = canFold(dtype, combiner); !status)
    return status;
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
                   ") over " + layout::toString(sub, *mesh) +
                   ", along which its operand is not partial so"};
  }
  if (sizeOf(partialAxes(source.view)) !=
      sizeOf(partialAxes(target.view)) * sizeOf(axes))
    return Error{"what is partial before and after does not fit its axes"};
  return Ok{};
}

Status CollectiveWork::planAllReduce(const LocalTensor &source,
                                     const LocalTensor &target) {
  if (Status status = checkReduction(source, target, combiner); !status)
    return status;
  if (source.sizes != target.sizes || source.view.dims != target.view.dims)
    return Error{"an all-reduce changes only partial states"};
  const std::vector<int> group = groupOf(axes);
  const int64_t bytes = source.elementBytes();
  const int64_t n = group.size(), total = source.elements();
  const int64_t self =
      std::find(group.begin(), group.end(), rank) - group.begin();

  // Source and target in message order.
  const bool unaligned =
      overlap(source, target) &&
      (source.offset != target.offset || source.strides != target.strides);
  Packing in = pack(source, {wholeBox(source)}, true, unaligned);
  Packing out = pack(target, {wholeBox(target)}, false, unaligned);
  count(in.copies, countedPack);
  count(out.copies, countedUnpack);
  // Chunks begin on 64-byte lines, so that sums run at full width.
  const int64_t line = std::max<int64_t>(64 / bytes, 1);
  const int64_t chunk = ((total + n - 1) / n + line - 1) / line * line;
  auto begin = [&](int64_t i) { return std::min(i * chunk, total); };
  auto length = [&](int64_t i) { return begin(i + 1) - begin(i); };

  Phase scatter, gather;
  scatter.before = in.copies;
  Fold fold{{}, length(self), out.place.at(begin(self) * bytes)};
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
  phases.push_back(std::move(scatter));
  phases.push_back(std::move(gather));
  return Ok{};
}

Status CollectiveWork::planReduceScatter(const LocalTensor &source,
                                         const LocalTensor &target) {
  if (Status status = checkReduction(source, target, combiner); !status)
    return status;
  const std::vector<int> group = groupOf(axes);
  const int64_t bytes = source.elementBytes();
  layout::View from = source.view, to = target.view;
  from.partial = to.partial = {};

  Phase phase;
  Fold fold{{}, target.elements(), {}};
  std::vector<Box> mine;
  for (int member : group) {
    // No axis of the group splits the source, so a member's boxes of its source
    // are the same boxes of ours.
    layout::Transfers moves =
        layout::expandTransfers(from, to, source.globalShape, *mesh, member);
    if (!moves.receives.empty())
      return Error{"the target of a reduce-scatter must be a part of its "
                   "operand on each device"};
    bool self = member == rank;
    Packing packing = pack(source, moves.keepFrom.boxes, true, false);
    count(packing.copies, countedPack);
    append(phase.before, packing.copies);
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
  phase.after = out.copies;
  phase.folds.push_back(std::move(fold));
  phases.push_back(std::move(phase));
  return Ok{};
}

Result<std::unique_ptr<CollectiveWork>>
CollectiveWork::create(const fb::CollectiveT &collective,
                       const std::vector<SubAxis> &axes,
                       const LocalTensor &source, const LocalTensor &target,
                       const layout::Mesh &mesh, int rank) {
  if (source.globalShape != target.globalShape)
    return Error{"its operand and result have different global shapes"};
  auto work = std::make_unique<CollectiveWork>();
  work->mesh = &mesh;
  work->rank = rank;
  work->axes = axes;
  work->dtype = source.dtype;
  work->combiner = static_cast<Combiner>(collective.combiner);
  auto spans = [](const layout::View &view) {
    std::vector<int64_t> spans;
    for (const layout::Dim &dim : view.dims)
      spans.push_back(dim.span);
    return spans;
  };
  work->order = target.order;
  if (spans(source.view) != spans(target.view))
    work->order.clear(); // only row-major order means the same on both sides
  Status status = Ok{};
  switch (collective.kind) {
  case fb::CollectiveKind::AllReduce:
    status = work->planAllReduce(source, target);
    break;
  case fb::CollectiveKind::ReduceScatter:
    status = work->planReduceScatter(source, target);
    break;
  default:
    status = work->planExchange(source, target, work->combiner);
    if (status && collective.kind == fb::CollectiveKind::Slice &&
        work->figures.bytesSent + work->figures.bytesReceived > 0)
      status = Error{"a local slice cannot do this move"};
  }
  if (!status)
    return status.error();
  return work;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

size_t CollectiveWork::mostMessages() const {
  size_t most = 0;
  for (const Phase &phase : phases)
    most = std::max({most, phase.sends.size(), phase.receives.size()});
  return most;
}

void CollectiveWork::setAddresses(const Bases &bases) {
  auto set = [&](std::vector<Copy> &copies) {
    for (Copy &copy : copies) {
      copy.target = bases(copy.to);
      copy.source = bases(copy.from);
    }
  };
  for (Phase &phase : phases) {
    set(phase.before);
    set(phase.after);
    for (Fold &fold : phase.folds) {
      fold.target = bases(fold.to);
      fold.sources.clear();
      for (const Place &member : fold.members)
        fold.sources.push_back(bases(member));
    }
    phase.boundSends.clear();
    for (const Message &message : phase.sends)
      phase.boundSends.push_back(
          {message.peer, bases(message.place), message.bytes});
    phase.boundReceives.clear();
    for (const Message &message : phase.receives)
      phase.boundReceives.push_back(
          {message.peer, bases(message.place), message.bytes});
  }
  if (fill) {
    fill->target = bases(fill->to);
    fill->source = identity;
  }
}

Status CollectiveWork::run(const Running &running) {
  for (const Phase &phase : phases) {
    for (const Copy &copy : phase.before)
      copy.loop.run(copy.target, copy.source);
    if (!phase.boundSends.empty() || !phase.boundReceives.empty())
      if (Status status = running.transport->exchange(
              phase.boundSends, phase.boundReceives, *running.poll);
          !status)
        return status;
    for (const Fold &fold : phase.folds)
      tessera::fold(dtype, combiner, fold.sources, fold.count, fold.target);
    for (const Copy &copy : phase.after)
      copy.loop.run(copy.target, copy.source);
  }
  if (fill)
    fill->loop.run(fill->target, fill->source);
  return Ok{};
}
