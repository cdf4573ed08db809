//===- PeerMemory.h - the memory of the other ranks' GPUs -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads of one process have the same addresses, once a GPU may reach the
// other; processes open each other's allocations by the driver's handles.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_DRIVER_PEERMEMORY_H
#define TESSERA_BACKENDS_CUDA_DRIVER_PEERMEMORY_H

#include "Backends/CUDA/Driver/Device.h"
#include "Exec/Peers.h"

#include <map>

namespace tessera::cuda {

class PeerMemory {
public:
  /// The device outlives it, and all that it gives.
  explicit PeerMemory(const Device &device) : device(device) {}

  /// An allocation of another process, open as long as somebody has this. No
  /// kernel that reads it may be in flight at the end.
  class Mapping;
  struct Reached {
    /// Of each rank of the group, as this rank's kernels reach it. Empty on all
    /// ranks if one has none, or does not reach one of its group.
    std::vector<std::byte *> addresses;
    std::vector<std::shared_ptr<Mapping>> mappings;
    std::string why; ///< none are, one reason, on all ranks the same
  };
  /// Collective, each rank with its place (null: none) and a group that it
  /// belongs to.
  Result<Reached> reach(Peers &peers, std::byte *pointer,
                        const std::vector<int> &group);

private:
  struct Record;
  Record describe(std::byte *pointer) const;
  /// Adds what `record` tells to `reached`; else says why not.
  void open(const Record &record, const Record &mine, Reached &reached);

  const Device &device;
  std::map<IpcHandle, std::weak_ptr<Mapping>> opened;
};

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_DRIVER_PEERMEMORY_H
