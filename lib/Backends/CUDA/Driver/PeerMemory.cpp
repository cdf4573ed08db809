//===- PeerMemory.cpp - the memory of the other ranks' GPUs ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Driver/PeerMemory.h"
#include "Support/Try.h"

#include <cstring>
#include <fstream>
#include <random>

using namespace tessera;
using namespace tessera::cuda;

/// What a rank tells the others of a place in its memory.
struct PeerMemory::Record {
  uint64_t process[2]; ///< random
  char host[40];       ///< which boot of which kernel; empty: not known
  int32_t ordinal;
  int32_t hasHandle;
  ContextHandle context;
  DevicePointer pointer;
  uint64_t offset; ///< in the allocation
  IpcHandle handle;
};

class PeerMemory::Mapping {
public:
  Mapping(const Device &device, DevicePointer base)
      : device(device), base(base) {}
  Mapping(const Mapping &) = delete;
  ~Mapping() {
    if (device.isStuck())
      return;
    Device::Current current(device);
    device.driver().ipcCloseMemHandle(base);
  }

  const Device &device;
  const DevicePointer base;
};

PeerMemory::Record PeerMemory::describe(std::byte *pointer) const {
  static const std::array<uint64_t, 2> process = [] {
    std::random_device random;
    auto word = [&] { return uint64_t(random()) << 32 | random(); };
    return std::array<uint64_t, 2>{word(), word()};
  }();
  Record record{};
  record.process[0] = process[0];
  record.process[1] = process[1];
  std::string host;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), host);
  host.copy(record.host, sizeof record.host - 1);
  record.ordinal = device.ordinal();
  record.context = device.handle();
  record.pointer = reinterpret_cast<DevicePointer>(pointer);
  DevicePointer base = 0;
  size_t bytes = 0;
  if (pointer &&
      !device.driver().memGetAddressRange(&base, &bytes, record.pointer) &&
      !device.driver().ipcGetMemHandle(&record.handle, base)) {
    record.hasHandle = 1;
    record.offset = record.pointer - base;
  }
  return record;
}

void PeerMemory::open(const Record &record, const Record &mine,
                      Reached &reached) {
  const Driver &driver = device.driver();
  const std::string name = "GPU " + std::to_string(record.ordinal);
  auto add = [&](DevicePointer pointer) {
    reached.addresses.push_back(reinterpret_cast<std::byte *>(pointer));
  };
  // (Nor would a GPU of this process reach it: it is mapped memory.)
  if (!record.hasHandle) {
    reached.why = "the driver shares no such memory of " + name;
    return;
  }
  if (std::equal(mine.process, mine.process + 2, record.process)) {
    if (record.context != device.handle()) {
      const Code code = driver.ctxEnablePeerAccess(record.context, 0);
      if (code != 0 && code != kPeerAccessAlreadyEnabled) {
        reached.why = driver.check(code, "reach " + name).message();
        return;
      }
    }
    return add(record.pointer);
  }
  if (!mine.host[0] || std::strcmp(mine.host, record.host)) {
    reached.why = name + " is on another host";
    return;
  }
  std::shared_ptr<Mapping> mapping = opened[record.handle].lock();
  if (!mapping) {
    DevicePointer base = 0;
    const Code code =
        driver.ipcOpenMemHandle(&base, record.handle, kLazyPeerAccess);
    if (code != 0) {
      reached.why = driver.check(code, "open memory of " + name).message();
      return;
    }
    mapping = std::make_shared<Mapping>(device, base);
    opened[record.handle] = mapping;
  }
  add(mapping->base + record.offset);
  reached.mappings.push_back(std::move(mapping));
}

Result<PeerMemory::Reached> PeerMemory::reach(Peers &peers, std::byte *pointer,
                                              const std::vector<int> &group) {
  Device::Current current(device);
  const Record mine = describe(pointer);
  std::vector<Record> records(peers.size());
  TSR_TRY(peers.allGather(&mine, records.data(), sizeof mine));
  Reached reached;
  for (int rank : group) {
    if (!reached.why.empty())
      break;
    if (!records[rank].pointer)
      reached.why =
          "rank " + std::to_string(rank) + " has nothing that others can read";
    else if (rank == peers.rank())
      reached.addresses.push_back(pointer);
    else
      open(records[rank], mine, reached);
  }

  struct Answer {
    char why[160]; ///< empty: all are in reach
  };
  Answer answer{};
  reached.why.copy(answer.why, sizeof answer.why - 1);
  std::vector<Answer> answers(peers.size());
  TSR_TRY(peers.allGather(&answer, answers.data(), sizeof answer));
  for (const Answer &each : answers)
    if (each.why[0])
      return Reached{{}, {}, each.why};
  return reached;
}
