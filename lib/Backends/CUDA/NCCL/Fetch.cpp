//===- Fetch.cpp - rows that indices name, on GPUs ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Who wants which rows is known on the GPU alone, so nobody can send them.
// Where all ranks reach each other's tables a kernel reads the rows there,
// between two meetings of the group: in front of it all have written theirs,
// behind it nobody reads any more. Elsewhere NCCL gathers the whole table, and
// the same kernel reads it here.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/NCCL/Fetch.h"
#include "Support/Try.h"

using namespace tessera;
using namespace tessera::cuda;
using Kind = layout::Step::Kind;

namespace {

class FetchWork final : public Work {
public:
  FetchWork(Binaries &binaries, Communicators *communicators, FetchPlan fetch,
            std::vector<Partition> partitions)
      : binaries(binaries), communicators(communicators),
        plan(std::move(fetch)), partitions(std::move(partitions)) {
    const int64_t members = plan.group.size(), bytes = plan.rowBytes();
    // A member's rows begin where the widest words may.
    slotBytes = (plan.mostHeld() * bytes + 15) / 16 * 16;
    if (members > 1) {
      slots = takeScratch(members * slotBytes, 256);
      word = takeScratch(sizeof(int32_t));
      report.traffic.bytesSent = report.traffic.bytesReceived =
          (members - 1) * slotBytes;
    } else if (!plan.whole.isDense()) {
      slots = takeScratch(slotBytes, 256);
    }
    const bool fills = plan.held() * bytes == slotBytes;
    packs = !plan.whole.isDense() || (members > 1 && !fills);
    if (packs)
      report.traffic.copies = 1,
      report.traffic.copiedBytes = plan.whole.bytes();
  }

  void setAddresses(const Bases &bases) override {
    table = bases(plan.table);
    result = bases(plan.result);
    indices.clear();
    for (const FetchPlan::Index &index : plan.indices)
      indices.push_back(bases(index.place));
    slot = bases(slots);
    meeting = bases(word);
  }

  Status prepare() override {
    std::vector<std::byte *> members;
    for (size_t i = 0; i < plan.group.size(); ++i)
      members.push_back(slot + i * slotBytes);
    if (plan.group.size() == 1 && !packs)
      members[0] = table;
    RuntimeLaunches copies(binaries.device().multiprocessors());
    if (packs)
      copies.copy(plan.whole, members[plan.self], table);
    TSR_TRY(before.prepare(binaries, std::move(copies.launches)));
    return prepareFetch({members.begin(), members.end()});
  }

  Status connect(Peers &peers) override {
    if (!communicators)
      return Ok{};
    TSR_TRY(communicators->connect(peers, partitions));
    group = communicators->find(partitions.back());
    report.communicator = group->number();
    // (Of one without rows nobody reads any.)
    std::byte *mine = plan.held() == 0         ? meeting
                      : plan.whole.isDense() ? table
                                             : nullptr;
    Result<PeerMemory::Reached> result =
        communicators->peers().reach(peers, mine, plan.group);
    if (!result)
      return result.error();
    reached = std::move(*result);
    if (reached.addresses.empty()) {
      peers.log(TESSERA_LOG_INFO,
                "a fetch gathers its whole table: " + reached.why);
      return Ok{};
    }
    report.traffic = {};
    report.traffic.bytesSent = report.traffic.bytesReceived =
        plan.wanted() * plan.rowBytes() + 2 * sizeof(int32_t);
    return prepareFetch({reached.addresses.begin(), reached.addresses.end()});
  }

  Status run(const Running &running) override {
    const Stream stream = binaries.device().stream();
    report.handed = {};
    const bool moves = plan.group.size() > 1 && slotBytes > 0;
    const bool meets = moves && !reached.addresses.empty();
    auto call = [&](Kind kind, const std::byte *from, std::byte *to,
                    int64_t count, DType dtype) {
      const Communicator::Call call[] = {{kind, from, to, count, dtype}};
      return group->run(call, nccl::kSum, stream, *running.poll, report.handed);
    };
    auto meet = [&] {
      return call(Kind::AllReduce, meeting, meeting, 1, DType::I32);
    };
    if (!meets)
      TSR_TRY(before.enqueue());
    if (moves && !meets)
      TSR_TRY(call(Kind::AllGather,
                   packs ? slot + plan.self * slotBytes : table, slot,
                   slotBytes, DType::I8));
    if (meets)
      TSR_TRY(meet());
    TSR_TRY(rows.enqueue());
    return meets ? meet() : Ok{};
  }

  std::string text() const override {
    return "at most " + std::to_string(plan.wanted()) + " rows of " +
           std::to_string(plan.rowBytes()) + " bytes, of " +
           std::to_string(plan.group.size()) + " ranks";
  }

  const CollectiveReport *collective() const override { return &report; }

private:
  Status prepareFetch(const std::vector<const std::byte *> &members) {
    RuntimeLaunches fetch(binaries.device().multiprocessors());
    TSR_TRY(fetch.fetch(plan, members, indices, result));
    return rows.prepare(binaries, std::move(fetch.launches));
  }

  Binaries &binaries;
  Communicators *communicators;
  FetchPlan plan;
  std::vector<Partition> partitions; ///< the world, and the groups
  bool packs = false;
  int64_t slotBytes = 0;
  Place slots{Place::kScratch, 0}, word{Place::kScratch, 0};
  std::byte *table = nullptr, *result = nullptr;
  std::byte *slot = nullptr, *meeting = nullptr;
  std::vector<const std::byte *> indices;
  RuntimeQueue before, rows;
  const Communicator *group = nullptr;
  PeerMemory::Reached reached; ///< the table of each, where it is
  CollectiveReport report;
};

} // namespace

Result<std::unique_ptr<Work>>
cuda::makeFetch(Binaries &binaries, Communicators *communicators,
                const fb::CollectiveT &fetch,
                const std::vector<layout::SubAxis> &axes, Tensors &tensors) {
  Result<FetchPlan> plan = FetchPlan::create(fetch, axes, tensors);
  if (!plan)
    return plan.error();
  const layout::Mesh &mesh = tensors.module().mesh();
  if (plan->group.size() == 1)
    communicators = nullptr;
  return std::unique_ptr<Work>(std::make_unique<FetchWork>(
      binaries, communicators, std::move(*plan),
      std::vector<Partition>{Partition::world(mesh.numDevices()),
                             Partition::along(axes, mesh)}));
}
