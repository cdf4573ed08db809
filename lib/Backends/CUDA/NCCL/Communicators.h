//===- Communicators.h - how the ranks' GPUs talk -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_NCCL_COMMUNICATORS_H
#define TESSERA_BACKENDS_CUDA_NCCL_COMMUNICATORS_H

#include "Backends/CUDA/Driver/PeerMemory.h"
#include "Backends/CUDA/NCCL/NCCL.h"
#include "Exec/Backend.h"
#include "Exec/Work.h"

#include <atomic>
#include <map>
#include <set>

namespace tessera::cuda {

/// All ranks in groups, in an order: by rank, the number of its group and its
/// place there. The same on all ranks.
struct Partition {
  std::vector<int> color, key;

  /// The groups along axes of a mesh.
  static Partition along(const std::vector<layout::SubAxis> &axes,
                         const layout::Mesh &mesh);
  static Partition world(int ranks);
  /// Their number.
  int groups() const;
  bool operator==(const Partition &) const = default;
};

/// One of NCCL's communicators. It never blocks: each call is followed by a
/// wait that polls. What it hands to NCCL it adds to `handed`.
class Communicator {
public:
  /// Enqueues the messages as one group; peers are ranks of the communicator.
  Status exchange(std::span<const SendMessage> sends,
                  std::span<const ReceiveMessage> receives, Stream stream,
                  Poll &poll, Handed &handed) const;
  /// As in CollectivePlan::Native.
  struct Call {
    layout::Step::Kind kind;
    const void *source;
    void *target;
    int64_t count;
    DType dtype;
  };
  /// Enqueues the calls, several as one group.
  Status run(std::span<const Call> calls, nccl::Reduction reduction,
             Stream stream, Poll &poll, Handed &handed) const;

  /// Its place among those of the context.
  int number() const { return place; }

private:
  friend class Communicators;
  Communicator(const nccl::Api &api, int place, int ranks)
      : api(api), place(place), ranks(ranks) {}
  void add(Handed &handed, int64_t sent, int64_t received) const;
  nccl::State enqueue(const Call &call, nccl::Reduction reduction,
                      Stream stream, Handed &handed) const;
  /// One group of what `enqueue(note)` enqueues, noting each state.
  template <typename Enqueue>
  Status enqueueGroup(const char *what, Poll &poll, Enqueue enqueue) const;
  /// Waits until the last call has been taken up.
  Status ready(nccl::State returned, const char *what, Poll &poll) const;

  const nccl::Api &api;
  const int place, ranks;
  nccl::Comm comm = nullptr;
};

/// Those of one context: the world's, and one split from it for each partition
/// in use.
class Communicators final : public Companion {
public:
  /// Only this rank's part: finds NCCL. The device outlives the result.
  /// `flags`: tessera_context_flags.
  static Result<std::unique_ptr<Communicators>> open(Device &device,
                                                     uint32_t flags);
  /// Ends them in peace where all is well, else aborts; never waits long.
  ~Communicators();

  /// Collective, with the same partitions on all ranks: makes what is not there
  /// yet.
  Status connect(Peers &peers, std::span<const Partition> partitions);
  /// Null before `connect` has made it.
  const Communicator *find(const Partition &partition) const;

  /// Memory that can be shared.
  Result<std::byte *> allocate(size_t bytes);
  /// False, and nothing is done, when it is not from `allocate`.
  bool free(std::byte *pointer);
  /// Collective: makes memory, as much on each rank, symmetric memory of all
  /// communicators there are, if it is from `allocate`. Fails on all ranks if
  /// NCCL cannot map it between some.
  Outcome<Ok> share(Peers &peers, std::byte *pointer, size_t bytes);

  /// What kernels reach without NCCL.
  PeerMemory &peers() { return peerMemory; }

  Status poll() override;
  void abort() override;

  const std::string &version() const { return api.version(); }
  /// Of each, in the order in which they were made.
  std::vector<CommunicatorNote> describe() const;

private:
  Communicators(Device &device, const nccl::Api &api, uint32_t flags)
      : device(device), api(api), flags(flags), peerMemory(device) {}
  void addMember(const Partition &partition);
  class Joining;
  Status makeWorld(Peers &peers);
  Status split(Peers &peers, const Partition &partition);
  nccl::Config config() const;
  struct Shared;
  /// Why these ranks have no windows, in a sentence.
  std::string cannotShare(const std::vector<int> &ranks,
                          const std::vector<Shared> &all) const;
  /// Whether aborting has come to its end, after a short wait.
  bool isAborted() const;

  struct Member {
    Partition partition;
    std::unique_ptr<Communicator> communicator;
    std::map<std::byte *, nccl::Window> windows{}; ///< by memory
    CommunicatorNote note{};
  };
  Device &device;
  const nccl::Api &api;
  const uint32_t flags;
  PeerMemory peerMemory;
  std::vector<Member> members; ///< the world first
  std::set<std::byte *> memory;
  /// Set by the thread that aborts when it is done.
  std::shared_ptr<std::atomic<bool>> aborted;
};

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_NCCL_COMMUNICATORS_H
