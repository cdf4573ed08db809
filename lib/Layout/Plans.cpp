//===- Plans.cpp - plans as text, and each made once ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Planner.h; how a plan is found is in Planner.cpp.
//
//===----------------------------------------------------------------------===//

#include "Layout/Planner.h"

#include <cstdio>

namespace tessera::layout {

std::optional<int64_t> busiestBytes(const std::vector<Move> &moves,
                                    const Mesh &mesh) {
  constexpr int64_t kMaxDevices = 64;
  if (mesh.numDevices() > kMaxDevices)
    return std::nullopt;
  int64_t most = 0;
  for (int64_t rank = 0; rank < mesh.numDevices(); ++rank) {
    int64_t sent = 0, received = 0;
    for (const Move &move : moves) {
      const Mesh &fromMesh = move.fromMesh ? *move.fromMesh : mesh;
      const Mesh &toMesh = move.toMesh ? *move.toMesh : mesh;
      const Transfers transfers = expandTransfers(
          instantiate(move.from, move.shape), fromMesh,
          instantiate(move.to, move.shape), toMesh, move.shape, rank);
      for (const PeerBoxes &peer : transfers.sends)
        sent += peer.elements * move.elementBytes;
      for (const PeerBoxes &peer : transfers.receives)
        received += peer.elements * move.elementBytes;
    }
    most = std::max({most, sent, received});
  }
  return most;
}

std::string describe(const Price &price) {
  char text[64];
  snprintf(text, sizeof text, "%lld bytes, %.4g us",
           static_cast<long long>(price.bytes), price.seconds * 1e6);
  return text;
}

std::string describe(const Price &chosen, const Price &otherwise) {
  return ": " + describe(chosen) + "; otherwise " + describe(otherwise);
}

std::string describe(const Candidate &candidate) {
  const Cost &cost = candidate.cost;
  char figures[64];
  snprintf(figures, sizeof figures, ", %lld bytes, %.1f us",
           static_cast<long long>(std::max(cost.bytesSent, cost.bytesReceived)),
           cost.seconds * 1e6);
  return candidate.text + figures;
}

static Move moveOf(const Shape &shape, int64_t elementBytes, const View &from,
                   const View &to, std::optional<Step::Kind> step,
                   const Mesh &mesh) {
  return {shape,
          elementBytes,
          canonicalize(from, shape, mesh),
          canonicalize(to, shape, mesh),
          {},
          step};
}

Result<const Plan *> Plans::get(const Shape &shape, int64_t elementBytes,
                                const View &from, const View &to,
                                std::optional<Step::Kind> step) {
  Key key{shape, elementBytes, from, to, step};
  if (auto known = plans.find(key); known != plans.end())
    return &known->second;
  Result<Plan> plan =
      planMove(moveOf(shape, elementBytes, from, to, step, mesh), mesh, machine,
               traffics[shape]);
  if (!plan)
    return plan.error();
  return &plans.emplace(std::move(key), std::move(*plan)).first->second;
}

Result<std::vector<Candidate>> Plans::rank(const Shape &shape,
                                           int64_t elementBytes,
                                           const View &from, const View &to,
                                           std::optional<Step::Kind> step) {
  return rankCandidates(moveOf(shape, elementBytes, from, to, step, mesh), mesh,
                        machine, traffics[shape]);
}

Result<int64_t> Plans::lowerBound(const Shape &shape, int64_t elementBytes,
                                  const View &from, const View &to) {
  return findLowerBound(moveOf(shape, elementBytes, from, to, {}, mesh), mesh,
                        machine, traffics[shape]);
}

} // namespace tessera::layout
