//===- Transfers.cpp - what one rank sends and receives -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each peer that has something for this rank, or needs something of it, the
// runs of both sides are intersected group by group, and the product of these
// pieces over the groups is the list of boxes. Sender and receiver do the same
// computation, so their lists agree.
//
//===----------------------------------------------------------------------===//

#include "Layout/Transfers.h"
#include "Layout/Exchange.h"
#include "Layout/ViewInternal.h"

#include <algorithm>

namespace tessera::layout {

View instantiate(const View &view, const Shape &shape) {
  View result = view;
  for (size_t i = 0; i < view.dims.size(); ++i)
    result.dims[i].product =
        withoutRest(view.dims[i].product, boundOf(view, i, shape));
  return result;
}

const char *toString(Step::Kind kind) {
  switch (kind) {
  case Step::Kind::Slice:
    return "slice";
  case Step::Kind::AllGather:
    return "all-gather";
  case Step::Kind::AllReduce:
    return "all-reduce";
  case Step::Kind::ReduceScatter:
    return "reduce-scatter";
  case Step::Kind::AllToAll:
    return "all-to-all";
  case Step::Kind::Permute:
    return "permute";
  case Step::Kind::Broadcast:
    return "broadcast";
  case Step::Kind::Exchange:
    return "exchange";
  case Step::Kind::Fetch:
    return "fetch";
  }
  return "";
}

namespace {
/// A box of a group on both sides.
struct Piece {
  Box from, to;
  int64_t elements;
};

/// One side's local tensor in a group: row-major positions and boxes.
class LocalGroup {
public:
  LocalGroup(const View &view, size_t begin, size_t end, const Shape &shape,
             const Mesh &mesh, const Coords &coords) {
    for (size_t dim = begin; dim < end; ++dim)
      extents.push_back(localExtent(view.dims[dim].product,
                                    boundOf(view, dim, shape), mesh, coords));
  }

  /// A range of positions that starts at `at` is a box if its length is at most
  /// `most` times `unit`, a multiple of it; one such pair for each dimension
  /// that may be the last one cut.
  struct Cut {
    int64_t unit, most;
  };
  std::vector<Cut> cutsAt(int64_t at) const {
    std::vector<Cut> cuts;
    int64_t unit = 1;
    for (size_t dim = extents.size(); dim-- > 0;) {
      int64_t index = at / unit % extents[dim];
      cuts.push_back({unit, extents[dim] - index});
      if (index)
        break;
      unit *= extents[dim];
    }
    return cuts;
  }

  Box boxAt(int64_t at, int64_t length) const {
    Box box{Shape(extents.size()), Shape(extents.size())};
    for (size_t dim = extents.size(); dim-- > 0;) {
      box.offset[dim] = at % extents[dim];
      at /= extents[dim];
      box.size[dim] = std::min(length, extents[dim]);
      length /= box.size[dim];
    }
    return box;
  }

private:
  Shape extents;
};
} // namespace

/// What `giver` has and `taker` needs in `group`, in increasing order; of that
/// what is at [begin, end).
static std::vector<Piece> piecesOf(const Group &group, const View &from,
                                   const View &to, const Shape &shape,
                                   const Mesh &mesh, const Coords &giver,
                                   const Coords &taker, int64_t begin,
                                   int64_t end) {
  std::vector<Run> has = localRuns(group.from, group.bound, mesh, giver);
  std::vector<Run> needs = localRuns(group.to, group.bound, mesh, taker);

  // Common runs as (from, to, length), joined where both sides go on.
  struct Common {
    int64_t from, to, length;
  };
  std::vector<Common> commons;
  int64_t seen = 0;
  for (size_t h = 0, n = 0; h < has.size() && n < needs.size();) {
    int64_t hasEnd = has[h].global + has[h].length;
    int64_t needsEnd = needs[n].global + needs[n].length;
    int64_t first = std::max(has[h].global, needs[n].global);
    int64_t last = std::min(hasEnd, needsEnd);
    int64_t common = std::max<int64_t>(last - first, 0);
    int64_t skipped = std::clamp<int64_t>(begin - seen, 0, common);
    int64_t length = std::clamp<int64_t>(end - seen, 0, common) - skipped;
    seen += common;
    if (length > 0) {
      first += skipped;
      Common next{has[h].local + first - has[h].global,
                  needs[n].local + first - needs[n].global, length};
      if (!commons.empty() &&
          commons.back().from + commons.back().length == next.from &&
          commons.back().to + commons.back().length == next.to)
        commons.back().length += next.length;
      else
        commons.push_back(next);
    }
    h += hasEnd == last;
    n += needsEnd == last;
  }

  auto divide = [](int64_t a, int64_t b) { return a % b == 0 || b % a == 0; };
  LocalGroup fromLocal(from, group.fromBegin, group.fromEnd, shape, mesh,
                       giver);
  LocalGroup toLocal(to, group.toBegin, group.toEnd, shape, mesh, taker);
  std::vector<Piece> pieces;
  for (Common common : commons) {
    while (common.length) {
      // The longest prefix that is a box on both sides, with all borders of
      // one dividing those of the other.
      int64_t length = 1;
      std::vector<LocalGroup::Cut> fromCuts = fromLocal.cutsAt(common.from);
      std::vector<LocalGroup::Cut> toCuts = toLocal.cutsAt(common.to);
      size_t toEnd = toCuts.size();
      for (const LocalGroup::Cut &a : fromCuts) {
        for (size_t i = 0; i < toEnd; ++i) {
          const LocalGroup::Cut &b = toCuts[i];
          if (!divide(a.unit, b.unit)) {
            toEnd = i;
            break;
          }
          int64_t unit = std::max(a.unit, b.unit);
          int64_t most =
              std::min({common.length, a.unit * a.most, b.unit * b.most});
          length = std::max(length, most / unit * unit);
        }
      }
      pieces.push_back({fromLocal.boxAt(common.from, length),
                        toLocal.boxAt(common.to, length), length});
      common.from += length;
      common.to += length;
      common.length -= length;
    }
  }
  return pieces;
}

static void append(Box &box, const Box &tail) {
  box.offset.insert(box.offset.end(), tail.offset.begin(), tail.offset.end());
  box.size.insert(box.size.end(), tail.size.begin(), tail.size.end());
}

/// The pairs of boxes that go from giver to taker, in row-major order.
static std::vector<Piece> boxesOf(const Exchange::Share &share,
                                  const Exchange &exchange, const View &from,
                                  const View &to, const Shape &shape,
                                  const Mesh &mesh) {
  std::vector<Piece> boxes = {{{}, {}, 1}};
  for (size_t i = 0; i < exchange.groups.size(); ++i) {
    int64_t begin = 0, end = exchange.groups[i].bound;
    if (share.range && exchange.changed[share.range->along] == i) {
      begin = share.range->begin;
      end = share.range->end;
    }
    std::vector<Piece> pieces = piecesOf(
        exchange.groups[i], from, to, shape, mesh,
        mesh.coordsOfRank(exchange.members[share.giver].rank),
        mesh.coordsOfRank(exchange.members[share.taker].rank), begin, end);
    std::vector<Piece> product;
    product.reserve(boxes.size() * pieces.size());
    for (const Piece &head : boxes) {
      for (const Piece &tail : pieces) {
        Piece joined = head;
        append(joined.from, tail.from);
        append(joined.to, tail.to);
        joined.elements *= tail.elements;
        product.push_back(std::move(joined));
      }
    }
    boxes = std::move(product);
  }
  return boxes;
}

Transfers expandTransfers(const View &from, const View &to, const Shape &shape,
                          const Mesh &mesh, int64_t rank) {
  Coords at = mesh.coordsOfRank(rank);
  Exchange exchange(from, to, shape, mesh, at);
  const std::vector<Exchange::Member> &members = exchange.members;
  const Exchange::Member &self = members[exchange.self];

  Transfers result;
  result.keepFrom = result.keepTo = {rank, {}, 0};
  auto add = [&](const Exchange::Share &share) {
    const int64_t giverRank = members[share.giver].rank,
                  takerRank = members[share.taker].rank;
    PeerBoxes has{takerRank, {}, 0}, gets{giverRank, {}, 0};
    for (Piece &piece : boxesOf(share, exchange, from, to, shape, mesh)) {
      has.boxes.push_back(std::move(piece.from));
      gets.boxes.push_back(std::move(piece.to));
      has.elements += piece.elements;
      gets.elements += piece.elements;
    }
    if (!has.elements)
      return;
    if (giverRank == takerRank) {
      result.keepFrom = std::move(has);
      result.keepTo = std::move(gets);
    } else if (giverRank == rank) {
      result.sends.push_back(std::move(has));
    } else {
      result.receives.push_back(std::move(gets));
    }
  };

  // One member of each shard that this rank needs something of.
  std::vector<bool> seen(exchange.numShards, false);
  for (const Exchange::Member &holder : members) {
    if (seen[holder.shard])
      continue;
    seen[holder.shard] = true;
    bool own = holder.shard == self.shard;
    if (!own && !exchange.common(holder, self))
      continue;
    exchange.forShares(holder.shard, [&](const Exchange::Share &share) {
      if (share.taker == exchange.self || share.giver == exchange.self)
        add(share);
    });
  }
  auto byPeer = [](const PeerBoxes &a, const PeerBoxes &b) {
    return a.peer < b.peer;
  };
  std::sort(result.sends.begin(), result.sends.end(), byPeer);
  std::sort(result.receives.begin(), result.receives.end(), byPeer);
  return result;
}

} // namespace tessera::layout
