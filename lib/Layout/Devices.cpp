//===- Devices.cpp - between meshes that list other devices ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Positions of two meshes of the same axes are the same, so what moves between
// views is found from position to position, and then given to the devices that
// each mesh has there.
//
//===----------------------------------------------------------------------===//

#include "Layout/Transfers.h"

#include <algorithm>
#include <numeric>

using namespace tessera;
using namespace tessera::layout;

/// Whether devices at two places have the same, which depends on these digits.
static bool isAlike(const std::vector<SubAxis> &digits, const Mesh &mesh,
                    const Coords &a, const Coords &b) {
  return std::ranges::all_of(digits, [&](const SubAxis &sub) {
    return sub.digit(mesh, a) == sub.digit(mesh, b);
  });
}

bool layout::liesAlike(const View &view, const Mesh &a, const Mesh &b) {
  const std::vector<SubAxis> digits = axesOf(view);
  if (a.devices == b.devices || digits.empty())
    return true;
  const Mesh positions{a.axes, {}};
  const int64_t count = positions.numDevices();
  std::vector<int64_t> inB(count); // of each rank
  for (int64_t at = 0; at < count; ++at)
    inB[b.devices.empty() ? at : b.devices[at]] = at;
  for (int64_t at = 0; at < count; ++at)
    if (!isAlike(digits, positions, positions.coordsOfRank(at),
                 positions.coordsOfRank(
                     inB[a.devices.empty() ? at : a.devices[at]])))
      return false;
  return true;
}

/// Each device's whole block goes to the one that has its place on `toMesh`,
/// unless that has the same. So none sends or receives more than one.
static Transfers moveBlocks(const View &view, const Mesh &fromMesh,
                            const Mesh &toMesh, const Shape &shape,
                            int64_t rank) {
  const std::vector<SubAxis> digits = axesOf(view);
  auto wholeBlock = [&](const Coords &at, int64_t peer) {
    const Shape sizes = localShape(view, shape, toMesh, at);
    PeerBoxes block{peer,
                    {{Shape(sizes.size(), 0), sizes}},
                    std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                                    std::multiplies<int64_t>())};
    if (!block.elements)
      block.boxes.clear();
    return block;
  };
  auto add = [](std::vector<PeerBoxes> &peers, PeerBoxes boxes) {
    if (boxes.elements)
      peers.push_back(std::move(boxes));
  };
  const Coords has = fromMesh.coordsOfRank(rank);
  const Coords needs = toMesh.coordsOfRank(rank);
  Transfers moves;
  moves.keepFrom = moves.keepTo = {rank, {}, 0};
  if (isAlike(digits, toMesh, has, needs)) {
    moves.keepFrom = moves.keepTo = wholeBlock(needs, rank);
  } else {
    add(moves.receives, wholeBlock(needs, fromMesh.rankOfCoords(needs)));
  }
  const int64_t taker = toMesh.rankOfCoords(has);
  if (!isAlike(digits, toMesh, fromMesh.coordsOfRank(taker), has))
    add(moves.sends, wholeBlock(has, taker));
  return moves;
}

Transfers layout::expandTransfers(const View &from, const Mesh &fromMesh,
                                  const View &to, const Mesh &toMesh,
                                  const Shape &shape, int64_t rank) {
  if (fromMesh.devices == toMesh.devices)
    return expandTransfers(from, to, shape, toMesh, rank);
  if (from.dims == to.dims && from.partial == to.partial)
    return moveBlocks(to, fromMesh, toMesh, shape, rank);
  const Mesh positions{toMesh.axes, {}};
  auto at = [&](const Mesh &mesh) {
    const int64_t position = positions.rankOfCoords(mesh.coordsOfRank(rank));
    return expandTransfers(from, to, shape, positions, position);
  };
  // What stays at a position moves like the rest, and what moves may stay.
  Transfers sent = at(fromMesh), received = at(toMesh), moves;
  sent.sends.push_back(std::move(sent.keepFrom));
  received.receives.push_back(std::move(received.keepTo));
  auto place = [&](std::vector<PeerBoxes> &peers, const Mesh &mesh,
                   std::vector<PeerBoxes> &others, PeerBoxes &own) {
    own.peer = rank;
    own.elements = 0;
    for (PeerBoxes &boxes : peers) {
      boxes.peer = mesh.rankOfCoords(positions.coordsOfRank(boxes.peer));
      if (boxes.peer == rank)
        own = std::move(boxes);
      else if (boxes.elements)
        others.push_back(std::move(boxes));
    }
    std::ranges::sort(others, {}, &PeerBoxes::peer);
  };
  place(sent.sends, toMesh, moves.sends, moves.keepFrom);
  place(received.receives, fromMesh, moves.receives, moves.keepTo);
  return moves;
}
