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

std::string describe(const Candidate &candidate) {
  const Cost &cost = candidate.cost;
  char figures[64];
  snprintf(figures, sizeof figures, ", %lld bytes, %.1f us",
           static_cast<long long>(std::max(cost.bytesSent, cost.bytesReceived)),
           cost.seconds * 1e6);
  return candidate.text + figures;
}

Result<const Plan *> Plans::get(const Shape &shape, int64_t elementBytes,
                                const View &from, const View &to,
                                std::optional<Step::Kind> step) {
  Key key{shape, elementBytes, from, to, step};
  if (auto known = plans.find(key); known != plans.end())
    return &known->second;
  Move move{shape,
            elementBytes,
            canonicalize(from, shape, mesh),
            canonicalize(to, shape, mesh),
            {},
            step};
  Result<Plan> plan = planMove(move, mesh, machine, traffics[shape]);
  if (!plan)
    return plan.error();
  return &plans.emplace(std::move(key), std::move(*plan)).first->second;
}

} // namespace tessera::layout
