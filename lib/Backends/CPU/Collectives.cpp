//===- Collectives.cpp - collectives on a transport -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the phases of a plan one after the other: copies on this thread, each
// phase's messages as one exchange of the transport.
//
//===----------------------------------------------------------------------===//

#include "Backends/CPU/Collectives.h"
#include "Exec/Fold.h"
#include "Support/Try.h"

using namespace tessera;

CollectiveWork::CollectiveWork(CollectivePlan plan)
    : plan(std::move(plan)), report{this->plan.traffic} {
  takeScratch(this->plan.scratchBytes);
}

void CollectiveWork::setAddresses(const Bases &bases) {
  phases.clear();
  for (const CollectivePlan::Phase &phase : plan.phases) {
    Phase &bound = phases.emplace_back(Phase{BoundMessages(phase, bases)});
    for (const CollectivePlan::Copy &copy : phase.before)
      bound.before.push_back({&copy.loop, bases(copy.to), bases(copy.from)});
    for (const CollectivePlan::Fold &fold : phase.folds) {
      Fold &to = bound.folds.emplace_back(
          Fold{fold.dtype, {}, fold.count, bases(fold.to)});
      for (const Place &member : fold.members)
        to.sources.push_back(bases(member));
    }
    for (const CollectivePlan::Copy &copy : phase.after)
      bound.after.push_back({&copy.loop, bases(copy.to), bases(copy.from)});
  }
  filled.clear();
  for (const CollectivePlan::Fill &fill : plan.fills)
    filled.push_back(bases(fill.to));
}

Status CollectiveWork::run(const Running &running) {
  for (const Phase &phase : phases) {
    for (const Copy &copy : phase.before)
      copy.loop->run(copy.target, copy.source);
    if (!phase.messages.sends.empty() || !phase.messages.receives.empty())
      TSR_TRY(running.transport->exchange(
          phase.messages.sends, phase.messages.receives, *running.poll));
    for (const Fold &fold : phase.folds)
      tessera::fold(fold.dtype, plan.combiner, fold.sources, fold.count,
                    fold.target);
    if (&phase == &phases.back())
      for (size_t i = 0; i < filled.size(); ++i)
        plan.fills[i].loop.run(filled[i], plan.fills[i].value.data());
    for (const Copy &copy : phase.after)
      copy.loop->run(copy.target, copy.source);
  }
  return Ok{};
}
