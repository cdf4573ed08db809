//===- FakeNCCL.cpp - libnccl.so.2 without GPUs ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the runtime uses of NCCL, between threads of one process, on the fake
// driver's streams. Like the real one in its non-blocking mode: a call is in
// progress until it has been asked about a few times, a new one before that is
// an error, a part is null until the split is done, ending a communicator waits
// for the graphs that hold its work. With TESSERA_FAKE_NCCL_NO_WINDOWS=n in the
// environment communicators of n ranks map no memory: their windows are in host
// memory, or null with "n null", as of later versions.
// TESSERA_FAKE_NCCL_VERSION is what it takes itself for.
//
//===----------------------------------------------------------------------===//

#include "FakeNCCL.h"
#include "Backends/CUDA/NCCL/NCCL.h"
#include "Exec/Fold.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

using namespace tessera::cuda;
using namespace tessera::cuda::nccl;
using tessera::DType;
using tessera::layout::Combiner;

/// The fake driver's.
extern "C" Code cuMemAlloc_v2(DevicePointer *pointer, size_t bytes);
extern "C" Code cuMemFree_v2(DevicePointer pointer);
void fakeDriverPut(Stream stream, std::function<void()> step);
void fakeDriverRecord(Stream stream, std::function<void()> step);

namespace {

constexpr State kInvalidUsage = static_cast<State>(5);
constexpr State kRemoteError = static_cast<State>(6);

std::mutex mutex; // of all that is here
std::condition_variable change;
std::string firstMisuse;
std::map<std::string, int> callCounts;
std::map<std::pair<std::string, int>, uint64_t> callBytes; // by ranks, too
std::set<int> failedRanks;
int liveComms = 0;
std::map<void *, int> memory; // of memAlloc, with its windows

/// What one rank sends another: with a header that the receiver compares.
struct Mail {
  std::string header;
  std::vector<std::byte> bytes;
};

struct Split {
  int joined = 0;
  std::map<int, std::map<int, CommObject *>> parts; // by color, then by key
};

struct Clique {
  int size = 0, joined = 0;
  std::map<std::pair<int, int>, std::deque<Mail>> mail;
  std::set<std::pair<int, int>> met; // a rank has called, with this peer in it
  std::shared_ptr<Split> split;      // the last one
  std::vector<size_t> windows;       // their sizes, as the first rank says
};
std::map<std::string, std::shared_ptr<Clique>> cliques;

void misuse(const std::string &text) {
  if (firstMisuse.empty())
    firstMisuse = text;
}

struct Operation {
  Comm comm;
  int peer; // or -1: all
  Stream stream;
  std::function<void()> post, finish; // what it sends, what it waits for
};

thread_local int depth = 0;
thread_local std::vector<Operation> operations;
thread_local std::vector<Comm> aborting;

} // namespace

namespace tessera::cuda::nccl {
struct CommObject {
  std::shared_ptr<Clique> clique;
  int rank = 0, worldRank = 0;
  bool aborted = false, finalized = false;
  size_t windows = 0;              // made so far
  std::map<Window, void *> shared; // memory with a window
  bool unmapped = false;           // its windows are in host memory
  /// Whether the call in progress is done; null when there is none.
  std::function<bool()> pending;
  CommObject *part = nullptr; // made by a split, not handed over yet
  /// Held by all work that is enqueued or in a graph.
  std::shared_ptr<int> inUse = std::make_shared<int>(0);
};
} // namespace tessera::cuda::nccl

/// In progress until asked a few times and `done`.
static State begin(Comm comm, std::function<bool()> done) {
  comm->pending = [done = std::move(done), asked = 0]() mutable {
    return ++asked > 3 && done();
  };
  return kInProgress;
}

static bool mayCall(Comm comm, const char *name, size_t bytes = 0) {
  ++callCounts[name];
  if (!comm || comm->pending || comm->aborted || comm->finalized) {
    misuse(std::string(name) + " on a communicator that is not ready");
    return false;
  }
  callBytes[{name, comm->clique->size}] += bytes;
  return true;
}

static void post(Comm comm, int peer, const std::string &header,
                 const void *data, size_t bytes) {
  std::lock_guard lock(mutex);
  if (comm->aborted || failedRanks.count(comm->worldRank))
    return;
  const auto *first = static_cast<const std::byte *>(data);
  comm->clique->mail[{comm->rank, peer}].push_back(
      {header, std::vector<std::byte>(first, first + bytes)});
  change.notify_all();
}

/// The next mail from a peer; empty when aborted.
static std::vector<std::byte> take(Comm comm, int peer,
                                   const std::string &header) {
  std::unique_lock lock(mutex);
  auto &mail = comm->clique->mail[{peer, comm->rank}];
  // What has failed neither sends nor receives: it and the others stay in the
  // op that it is in.
  change.wait(lock, [&] {
    return comm->aborted ||
           (!mail.empty() && !failedRanks.count(comm->worldRank));
  });
  if (comm->aborted)
    return {};
  Mail next = std::move(mail.front());
  mail.pop_front();
  if (next.header != header)
    misuse("rank " + std::to_string(peer) + " sends " + next.header +
           ", rank " + std::to_string(comm->rank) + " expects " + header);
  return std::move(next.bytes);
}

static size_t bytesOf(Type type) {
  switch (type) {
  case kInt8:
  case kUint8:
    return 1;
  case kFloat16:
  case kBfloat16:
    return 2;
  case kInt64:
  case kFloat64:
    return 8;
  default:
    return 4;
  }
}

static DType dtypeOf(Type type) {
  switch (type) {
  case kInt8:
    return DType::I8;
  case kUint8:
    return DType::U8;
  case kInt32:
    return DType::I32;
  case kUint32:
    return DType::U32;
  case kInt64:
    return DType::I64;
  case kFloat16:
    return DType::F16;
  case kFloat32:
    return DType::F32;
  case kFloat64:
    return DType::F64;
  case kBfloat16:
    return DType::BF16;
  }
  return DType::U8;
}

/// Enqueues the thread's group: all messages go out before any is waited for.
static State flush() {
  std::vector<Operation> group = std::move(operations);
  operations.clear();
  std::set<Comm> comms;
  for (const Operation &operation : group)
    comms.insert(operation.comm);
  if (group.empty())
    return kSuccess;
  struct Held {
    std::vector<Operation> group;
    std::vector<std::shared_ptr<int>> inUse;
  };
  auto held = std::make_shared<Held>();
  for (Comm comm : comms)
    held->inUse.push_back(comm->inUse);
  const Stream stream = group[0].stream;
  held->group = std::move(group);
  // Two peers connect when both have called for the first time; until then the
  // call is in progress.
  for (Comm comm : comms) {
    std::set<int> peers;
    for (const Operation &operation : held->group) {
      if (operation.comm != comm)
        continue;
      for (int peer = 0; peer < comm->clique->size; ++peer)
        if (operation.peer < 0 || operation.peer == peer)
          peers.insert(peer);
    }
    for (int peer : peers)
      comm->clique->met.insert({comm->rank, peer});
    begin(comm, [comm, peers] {
      for (int peer : peers)
        if (!comm->clique->met.count({peer, comm->rank}))
          return false;
      return true;
    });
  }
  fakeDriverPut(stream, [held] {
    for (const Operation &operation : held->group)
      operation.post();
    for (const Operation &operation : held->group)
      operation.finish();
  });
  fakeDriverRecord(stream, [] {
    std::lock_guard lock(mutex);
    ++callCounts["event"];
  });
  return kInProgress;
}

static State add(Operation operation) {
  operations.push_back(std::move(operation));
  return depth ? kSuccess : flush();
}

/// All members' bytes, by rank, where this one's are `bytes` at `data` for each
/// peer from `stride` bytes on.
static State exchange(Comm comm, Stream stream, std::string header,
                      const void *data, size_t bytes, size_t stride,
                      std::function<void(std::vector<const std::byte *>)> end) {
  auto *first = static_cast<const std::byte *>(data);
  return add({comm, -1, stream,
              [=] {
                for (int peer = 0; peer < comm->clique->size; ++peer)
                  post(comm, peer, header, first + peer * stride, bytes);
              },
              [=] {
                std::vector<std::vector<std::byte>> all;
                std::vector<const std::byte *> pointers;
                for (int peer = 0; peer < comm->clique->size; ++peer)
                  all.push_back(take(comm, peer, header));
                for (const auto &part : all) {
                  if (part.size() != bytes)
                    return;
                  pointers.push_back(part.data());
                }
                end(pointers);
              }});
}

static std::string headerOf(const char *name, size_t count, int type,
                            int reduction = 0) {
  return std::string(name) + " of " + std::to_string(count) + ", type " +
         std::to_string(type) + ", reduction " + std::to_string(reduction);
}

static State reduce(const char *name, const void *from, void *to, size_t count,
                    Type type, Reduction reduction, Comm comm, Stream stream,
                    size_t stride) {
  const Combiner combiner = reduction == kSum   ? Combiner::Sum
                            : reduction == kMax ? Combiner::Max
                                                : Combiner::Min;
  return exchange(comm, stream, headerOf(name, count, type, reduction), from,
                  count * bytesOf(type), stride,
                  [=](std::vector<const std::byte *> members) {
                    tessera::fold(dtypeOf(type), combiner, members, count,
                                  static_cast<std::byte *>(to));
                  });
}

static void endWindow(Comm comm, Window window) {
  --memory[comm->shared.at(window)];
  comm->shared.erase(window);
  if (comm->unmapped)
    free(window);
  else
    cuMemFree_v2(reinterpret_cast<DevicePointer>(window));
}

static void awaitUnused(Comm comm) {
  while (true) {
    {
      std::lock_guard lock(mutex);
      if (comm->inUse.use_count() == 1) {
        liveComms -= comm->part ? 2 : 1;
        while (!comm->shared.empty())
          endWindow(comm, comm->shared.begin()->first);
        delete comm->part;
        delete comm;
        return;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

extern "C" {

State ncclGetVersion(int *version) {
  const char *other = getenv("TESSERA_FAKE_NCCL_VERSION");
  return *version = other ? atoi(other) : 22809, kSuccess;
}
const char *ncclGetErrorString(State state) {
  return state == kRemoteError ? "remote error" : "invalid usage";
}
const char *ncclGetLastError(Comm) { return "told by the fake"; }
State ncclGetUniqueId(UniqueId *id) {
  static std::atomic<int> next{0};
  snprintf(id->bytes, sizeof id->bytes, "clique %d", ++next);
  return kSuccess;
}

State ncclCommInitRankConfig(Comm *comm, int ranks, UniqueId id, int rank,
                             Config *config) {
  std::lock_guard lock(mutex);
  ++callCounts["commInitRankConfig"];
  if (config->magic != 0xcafebeef || config->blocking != 0 ||
      config->splitShare != 1 || config->version != 22700)
    misuse("the configuration is not as expected");
  std::shared_ptr<Clique> &clique = cliques[id.bytes];
  if (!clique)
    clique = std::make_shared<Clique>();
  clique->size = ranks;
  ++clique->joined;
  ++liveComms;
  *comm = new CommObject;
  (*comm)->clique = clique;
  (*comm)->rank = (*comm)->worldRank = rank;
  return begin(*comm, [clique] { return clique->joined == clique->size; });
}

State ncclCommSplit(Comm comm, int color, int key, Comm *part, Config *) {
  std::lock_guard lock(mutex);
  if (!mayCall(comm, "commSplit"))
    return kInvalidUsage;
  *part = nullptr;
  auto *made = new CommObject;
  made->worldRank = comm->worldRank;
  comm->part = made;
  ++liveComms;
  std::shared_ptr<Split> &last = comm->clique->split;
  const int size = comm->clique->size;
  if (!last || last->joined == size)
    last = std::make_shared<Split>();
  ++last->joined;
  last->parts[color][key] = made;
  return begin(comm, [=, split = last] {
    if (split->joined < size)
      return false;
    // The first to see it makes the clique of its part.
    auto &members = split->parts[color];
    if (!made->clique) {
      auto clique = std::make_shared<Clique>();
      clique->size = members.size();
      int rank = 0;
      for (auto &[key, member] : members) {
        member->rank = rank++;
        member->clique = clique;
      }
    }
    *part = made;
    comm->part = nullptr;
    return true;
  });
}

State ncclCommFinalize(Comm comm) {
  std::lock_guard lock(mutex);
  if (!mayCall(comm, "commFinalize"))
    return kInvalidUsage;
  comm->finalized = true;
  return begin(comm, [comm] { return comm->inUse.use_count() == 1; });
}

State ncclCommDestroy(Comm comm) {
  std::lock_guard lock(mutex);
  ++callCounts["commDestroy"];
  if (!comm->finalized || comm->pending)
    misuse("destroyed before it is finalized");
  --liveComms;
  delete comm;
  return kSuccess;
}

State ncclCommAbort(Comm comm) {
  {
    std::lock_guard lock(mutex);
    ++callCounts["commAbort"];
    comm->aborted = true;
    change.notify_all();
  }
  if (depth)
    aborting.push_back(comm);
  else
    awaitUnused(comm);
  return kSuccess;
}

State ncclCommGetAsyncError(Comm comm, State *state) {
  std::lock_guard lock(mutex);
  if (comm->pending && comm->pending())
    comm->pending = nullptr;
  *state = failedRanks.count(comm->worldRank) ? kRemoteError
           : comm->pending                    ? kInProgress
                                              : kSuccess;
  return kSuccess;
}

State ncclGroupStart() { return ++depth, kSuccess; }
State ncclGroupEnd() {
  if (--depth)
    return kSuccess;
  for (Comm comm : std::exchange(aborting, {}))
    awaitUnused(comm);
  std::lock_guard lock(mutex);
  ++callCounts["groupEnd"];
  return flush();
}

State ncclSend(const void *data, size_t count, Type type, int peer, Comm comm,
               Stream stream) {
  std::lock_guard lock(mutex);
  if (!mayCall(comm, "send", count * bytesOf(type)))
    return kInvalidUsage;
  return add({comm, peer, stream,
              [=] {
                post(comm, peer, headerOf("message", count, type), data,
                     count * bytesOf(type));
              },
              [] {}});
}

State ncclRecv(void *data, size_t count, Type type, int peer, Comm comm,
               Stream stream) {
  std::lock_guard lock(mutex);
  if (!mayCall(comm, "recv", count * bytesOf(type)))
    return kInvalidUsage;
  return add({comm, peer, stream, [] {},
              [=] {
                std::vector<std::byte> bytes =
                    take(comm, peer, headerOf("message", count, type));
                if (bytes.size() == count * bytesOf(type))
                  memcpy(data, bytes.data(), bytes.size());
              }});
}

State ncclAllGather(const void *from, void *to, size_t count, Type type,
                    Comm comm, Stream stream) {
  std::lock_guard lock(mutex);
  if (!mayCall(comm, "allGather", count * bytesOf(type)))
    return kInvalidUsage;
  const size_t bytes = count * bytesOf(type);
  return exchange(comm, stream, headerOf("all-gather", count, type), from,
                  bytes, 0, [=](std::vector<const std::byte *> members) {
                    for (size_t i = 0; i < members.size(); ++i)
                      memcpy(static_cast<std::byte *>(to) + i * bytes,
                             members[i], bytes);
                  });
}

State ncclAllReduce(const void *from, void *to, size_t count, Type type,
                    Reduction reduction, Comm comm, Stream stream) {
  std::lock_guard lock(mutex);
  if (!mayCall(comm, "allReduce", count * bytesOf(type)))
    return kInvalidUsage;
  return reduce("all-reduce", from, to, count, type, reduction, comm, stream,
                0);
}

State ncclReduceScatter(const void *from, void *to, size_t count, Type type,
                        Reduction reduction, Comm comm, Stream stream) {
  std::lock_guard lock(mutex);
  if (!mayCall(comm, "reduceScatter", count * bytesOf(type)))
    return kInvalidUsage;
  return reduce("reduce-scatter", from, to, count, type, reduction, comm,
                stream, count * bytesOf(type));
}

State ncclMemAlloc(void **pointer, size_t bytes) {
  std::lock_guard lock(mutex);
  ++callCounts["memAlloc"];
  *pointer = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  memory[*pointer] = 0;
  return kSuccess;
}
State ncclMemFree(void *pointer) {
  std::lock_guard lock(mutex);
  auto found = memory.find(pointer);
  if (found == memory.end() || found->second)
    misuse("freed what is no memory, or has windows");
  memory.erase(pointer);
  free(pointer);
  return kSuccess;
}
State ncclCommWindowRegister(Comm comm, void *data, size_t bytes,
                             Window *window, int flags) {
  std::lock_guard lock(mutex);
  if (!mayCall(comm, "commWindowRegister"))
    return kInvalidUsage;
  if (!memory.count(data) || flags != kSymmetric)
    misuse("a window on other memory");
  const size_t number = comm->windows++;
  std::vector<size_t> &sizes = comm->clique->windows;
  if (number == sizes.size())
    sizes.push_back(bytes);
  if (number > sizes.size() || sizes[number] != bytes)
    misuse("windows of one rank differ from another's");
  *window = nullptr;
  const char *without = getenv("TESSERA_FAKE_NCCL_NO_WINDOWS");
  const bool unmapped = without && atoi(without) == comm->clique->size;
  if (unmapped && strstr(without, "null"))
    return begin(comm, [] { return true; });
  DevicePointer pointer = 0;
  if (!unmapped)
    cuMemAlloc_v2(&pointer, 1);
  Window made = reinterpret_cast<Window>(
      unmapped ? reinterpret_cast<DevicePointer>(malloc(1)) : pointer);
  ++memory[data];
  comm->shared[made] = data;
  comm->unmapped |= unmapped;
  return begin(comm, [=] {
    *window = made;
    return true;
  });
}
State ncclCommWindowDeregister(Comm comm, Window window) {
  std::lock_guard lock(mutex);
  if (!comm->shared.count(window))
    return misuse("ended what is no window"), kInvalidUsage;
  endWindow(comm, window);
  return kSuccess;
}

extern const tessera::test::FakeNCCL fake_nccl;
const tessera::test::FakeNCCL fake_nccl = {
    [] {
      std::lock_guard lock(mutex);
      return liveComms + static_cast<int>(memory.size());
    },
    [](const char *name) {
      std::lock_guard lock(mutex);
      return callCounts[name];
    },
    [](const char *name, int ranks) {
      std::lock_guard lock(mutex);
      return callBytes[{name, ranks}];
    },
    [] {
      std::lock_guard lock(mutex);
      return firstMisuse.c_str();
    },
    [](int rank) {
      std::lock_guard lock(mutex);
      failedRanks.insert(rank);
    },
    [] {
      std::lock_guard lock(mutex);
      failedRanks.clear();
      callCounts.clear();
      callBytes.clear();
      firstMisuse.clear();
    }};

} // extern "C"
