//===- Collectives.cpp - collectives on GPUs ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enqueues a plan: its copies and folds are launches of the runtime's kernels,
// the messages of a phase one group on the communicator of all ranks. Where the
// whole plan is one of NCCL's own collectives, it is that, on the communicator
// of its group, and needs no scratch.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/NCCL/Collectives.h"
#include "Support/Try.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::cuda;
using Kind = layout::Step::Kind;

namespace {

class CollectiveWork final : public Work {
public:
  CollectiveWork(Binaries &binaries, Communicators *communicators,
                 CollectivePlan plan, bool native)
      : binaries(binaries), communicators(communicators),
        plan(std::move(plan)), report{this->plan.traffic}, native(native) {
    if (!native)
      takeScratch(this->plan.scratchBytes, 256);
  }

  void setAddresses(const Bases &bases) override {
    if (native) {
      calls.clear();
      for (const CollectivePlan::Native &call : plan.natives)
        calls.push_back({call.kind, bases(call.source), bases(call.target),
                         call.count, call.dtype});
      return;
    }
    this->bases = bases;
    phases.clear();
    for (const CollectivePlan::Phase &phase : plan.phases)
      phases.push_back({BoundMessages(phase, bases)});
  }

  Status prepare() override {
    if (native)
      return Ok{};
    const int processors = binaries.device().multiprocessors();
    for (size_t i = 0; i < phases.size(); ++i) {
      const CollectivePlan::Phase &phase = plan.phases[i];
      RuntimeLaunches before(processors), after(processors);
      for (const CollectivePlan::Copy &copy : phase.before)
        before.copy(copy.loop, bases(copy.to), bases(copy.from));
      for (const CollectivePlan::Fold &fold : phase.folds) {
        std::vector<const std::byte *> members;
        for (const Place &member : fold.members)
          members.push_back(bases(member));
        TSR_TRY(after.fold(fold.dtype, plan.combiner, members, fold.count,
                           bases(fold.to)));
      }
      if (i + 1 == phases.size())
        for (const CollectivePlan::Fill &fill : plan.fills)
          after.fill(fill.loop, bases(fill.to), fill.value.data(),
                     info(fill.dtype).bytes);
      for (const CollectivePlan::Copy &copy : phase.after)
        after.copy(copy.loop, bases(copy.to), bases(copy.from));
      launches += before.launches.size() + after.launches.size();
      TSR_TRY(phases[i].before.prepare(binaries, std::move(before.launches)));
      TSR_TRY(phases[i].after.prepare(binaries, std::move(after.launches)));
    }
    return Ok{};
  }

  Status connect(Peers &peers) override {
    if (!communicators)
      return Ok{};
    TSR_TRY(communicators->connect(peers, partitions));
    world = communicators->find(partitions.front());
    group = communicators->find(partitions.back());
    report.communicator = (native ? group : world)->number();
    return Ok{};
  }

  Status run(const Running &running) override {
    const Stream stream = binaries.device().stream();
    report.handed = {};
    if (native)
      return group->run(calls, nccl::reductionOf(plan.combiner), stream,
                        *running.poll, report.handed);
    for (const Phase &phase : phases) {
      TSR_TRY(phase.before.enqueue());
      if (!phase.messages.sends.empty() || !phase.messages.receives.empty())
        TSR_TRY(world->exchange(phase.messages.sends, phase.messages.receives,
                                stream, *running.poll, report.handed));
      TSR_TRY(phase.after.enqueue());
    }
    return Ok{};
  }

  std::string text() const override {
    if (native) {
      std::string counts;
      for (const CollectivePlan::Native &call : plan.natives)
        counts += (counts.empty() ? "" : " and ") + std::to_string(call.count) +
                  " x " + info(call.dtype).name;
      return std::string("NCCL's ") + layout::toString(plan.natives[0].kind) +
             " of " + counts + ", " + std::to_string(plan.group.size()) +
             " ranks";
    }
    size_t sends = 0, receives = 0;
    for (const Phase &phase : phases) {
      sends += phase.messages.sends.size();
      receives += phase.messages.receives.size();
    }
    return std::to_string(sends) + " sends of " +
           std::to_string(plan.traffic.bytesSent) + " bytes, " +
           std::to_string(receives) + " receives of " +
           std::to_string(plan.traffic.bytesReceived) + " bytes, " +
           std::to_string(launches) + " launches to copy and fold";
  }

  const CollectiveReport *collective() const override { return &report; }

  /// The world, and the groups of the plan where these may be asked for.
  std::vector<Partition> partitions;

private:
  struct Phase {
    BoundMessages messages;
    RuntimeQueue before{}, after{};
  };

  Binaries &binaries;
  Communicators *communicators;
  CollectivePlan plan;
  CollectiveReport report;
  const bool native;
  Bases bases{};
  std::vector<Phase> phases; ///< the plan's, with addresses
  size_t launches = 0;
  std::vector<Communicator::Call> calls; ///< when native
  const Communicator *world = nullptr, *group = nullptr;
};

} // namespace

bool cuda::movesBetweenRanks(const fb::CollectiveT &collective,
                             const layout::Mesh &mesh) {
  return mesh.numDevices() > 1 && kindOf(collective) != Kind::Slice;
}

Result<std::unique_ptr<Work>>
cuda::makeCollective(Binaries &binaries, Communicators *communicators,
                     const fb::CollectiveT &collective,
                     const std::vector<layout::SubAxis> &axes,
                     Tensors &tensors) {
  const layout::Mesh &mesh = tensors.module().mesh();
  Result<CollectivePlan> plan =
      CollectivePlan::create(collective, axes, tensors);
  if (!plan)
    return plan.error();
  // The same on all ranks, as they all make the communicators.
  const bool grouped =
      plan->group.size() > 1 && (kindOf(collective) == Kind::AllGather ||
                                 kindOf(collective) == Kind::AllReduce ||
                                 kindOf(collective) == Kind::ReduceScatter);
  Result<bool> native = nativeOnAll(*plan, collective, axes, tensors);
  if (!native)
    return native.error();
  auto work = std::make_unique<CollectiveWork>(binaries, communicators,
                                               std::move(*plan), *native);
  work->partitions.push_back(Partition::world(mesh.numDevices()));
  if (grouped)
    work->partitions.push_back(Partition::along(axes, mesh));
  return std::unique_ptr<Work>(std::move(work));
}
