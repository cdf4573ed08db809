//===- Communicators.cpp - how the ranks' GPUs talk -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank has one communicator of the world, in the order of ranks, and one for
// each set of mesh axes whose groups are not the world. All are made by all
// ranks together, in one order, so a rank takes part in a split even where its
// own group needs none.
//
// Aborting tells the kernels in flight to end, but then waits for the graphs
// that hold them to be destroyed, which is the caller's next step: so a thread
// of its own does it. When a program never destroys them, that thread stays.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/NCCL/Communicators.h"
#include "Exec/CollectivePlan.h"
#include "Support/Clock.h"
#include "Support/Try.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <system_error>
#include <thread>

using namespace tessera;
using namespace tessera::cuda;
using nccl::State;

/// How long ending in peace, and aborting, may take.
static constexpr double kFinalizeSeconds = 5, kAbortSeconds = 2;

static void nap() {
  timespec time{0, 20'000};
  nanosleep(&time, nullptr);
}

//===----------------------------------------------------------------------===//
// Partitions
//===----------------------------------------------------------------------===//

Partition Partition::along(const std::vector<layout::SubAxis> &axes,
                           const layout::Mesh &mesh) {
  Partition partition;
  for (int rank = 0, n = mesh.numDevices(); rank < n; ++rank) {
    std::vector<int> group = groupAlong(axes, mesh, rank);
    partition.color.push_back(*std::min_element(group.begin(), group.end()));
    partition.key.push_back(std::find(group.begin(), group.end(), rank) -
                            group.begin());
  }
  return partition;
}

Partition Partition::world(int ranks) {
  Partition partition;
  for (int rank = 0; rank < ranks; ++rank) {
    partition.color.push_back(0);
    partition.key.push_back(rank);
  }
  return partition;
}

int Partition::groups() const { return std::count(key.begin(), key.end(), 0); }

/// The group of `rank`, in its order.
static std::vector<int> groupOf(const Partition &partition, int rank) {
  std::vector<int> group(std::count(
      partition.color.begin(), partition.color.end(), partition.color[rank]));
  for (size_t i = 0; i < partition.color.size(); ++i)
    if (partition.color[i] == partition.color[rank])
      group[partition.key[i]] = i;
  return group;
}

/// "[0, 2]"
static std::string textOf(const std::vector<int> &numbers) {
  std::string text;
  for (int number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Until `comm` has taken up what was asked of it.
static Status await(const nccl::Api &api, nccl::Comm comm, const char *what,
                    Poll &poll) {
  // Most is taken up at once: then there is no need of a clock.
  double began = 0;
  while (true) {
    State state = nccl::kInProgress;
    State asked = api.commGetAsyncError(comm, &state);
    if (asked != nccl::kSuccess)
      return api.check(asked, what, comm);
    if (state != nccl::kInProgress)
      return api.check(state, what, comm);
    TSR_TRY(poll.poll());
    const double at = now();
    if (!began)
      began = at;
    if (at - began > 200e-6)
      nap();
  }
}

Status Communicator::ready(State returned, const char *what, Poll &poll) const {
  if (returned == nccl::kSuccess)
    return Ok{};
  if (returned != nccl::kInProgress)
    return api.check(returned, what, comm);
  return await(api, comm, what, poll);
}

void Communicator::add(Handed &handed, int64_t sent, int64_t received) const {
  handed.communicator = place;
  ++handed.calls;
  handed.bytesSent += sent;
  handed.bytesReceived += received;
}

template <typename Enqueue>
Status Communicator::enqueueGroup(const char *what, Poll &poll,
                                  Enqueue enqueue) const {
  TSR_TRY(ready(api.groupStart(), what, poll));
  State first = nccl::kSuccess;
  enqueue([&](State state) {
    if (first == nccl::kSuccess && state != nccl::kInProgress)
      first = state;
  });
  const State ended = api.groupEnd();
  TSR_TRY(api.check(first, what, comm));
  return ready(ended, what, poll);
}

Status Communicator::exchange(std::span<const SendMessage> sends,
                              std::span<const ReceiveMessage> receives,
                              Stream stream, Poll &poll, Handed &handed) const {
  return enqueueGroup("exchange messages", poll, [&](auto note) {
    for (const ReceiveMessage &message : receives) {
      note(api.recv(message.data, message.bytes, nccl::kUint8, message.peer,
                    comm, stream));
      add(handed, 0, message.bytes);
    }
    for (const SendMessage &message : sends) {
      note(api.send(message.data, message.bytes, nccl::kUint8, message.peer,
                    comm, stream));
      add(handed, message.bytes, 0);
    }
  });
}

State Communicator::enqueue(const Call &call, nccl::Reduction reduction,
                            Stream stream, Handed &handed) const {
  const auto &[kind, source, target, count, dtype] = call;
  const nccl::Type type = nccl::typeOf(dtype);
  const int64_t bytes = (ranks - 1) * count * info(dtype).bytes;
  const int64_t moved =
      kind == layout::Step::Kind::AllReduce ? 2 * bytes / ranks : bytes;
  add(handed, moved, moved);
  switch (kind) {
  case layout::Step::Kind::AllGather:
    return api.allGather(source, target, count, type, comm, stream);
  case layout::Step::Kind::AllReduce:
    return api.allReduce(source, target, count, type, reduction, comm, stream);
  default: // ReduceScatter
    return api.reduceScatter(source, target, count, type, reduction, comm,
                             stream);
  }
}

Status Communicator::run(std::span<const Call> calls, nccl::Reduction reduction,
                         Stream stream, Poll &poll, Handed &handed) const {
  const char *what = layout::toString(calls[0].kind);
  if (calls.size() == 1)
    return ready(enqueue(calls[0], reduction, stream, handed), what, poll);
  return enqueueGroup(what, poll, [&](auto note) {
    for (const Call &call : calls)
      note(enqueue(call, reduction, stream, handed));
  });
}

//===----------------------------------------------------------------------===//
// Making them
//===----------------------------------------------------------------------===//

/// A wait for all ranks, outside of any run: no watch knows its deadline.
class Communicators::Joining final : public Poll {
public:
  explicit Joining(Peers &peers)
      : peers(peers), began(now()), inner(peers.startWait()) {}
  Status poll() override {
    // Without a watch the peers have the same deadline. It began no earlier
    // and is asked first, so it has passed only where this one has.
    Status status = inner.poll();
    if (now() - began > peers.deadline())
      return Error{"NCCL has not brought all ranks together for " +
                   peers.deadlineText()};
    return status;
  }

private:
  Peers &peers;
  double began;
  Poll &inner;
};

Result<std::unique_ptr<Communicators>> Communicators::open(Device &device,
                                                           uint32_t flags) {
  Result<const nccl::Api *> api = nccl::Api::get();
  if (!api)
    return api.error();
  if (flags & (TESSERA_SYMMETRIC | TESSERA_COPY_ENGINES))
    TSR_TRY((*api)->hasWindows());
  std::unique_ptr<Communicators> result(
      new Communicators(device, **api, flags));
  device.companions.push_back(result.get());
  return result;
}

nccl::Config Communicators::config() const {
  nccl::Config config;
  config.blocking = 0;
  config.splitShare = 1;
  if (flags & TESSERA_COPY_ENGINES)
    config.CTAPolicy = nccl::kZeroCTAs;
  return config;
}

void Communicators::addMember(const Partition &partition) {
  const int place = static_cast<int>(members.size());
  Member &member = members.emplace_back();
  member.partition = partition;
  const int ranks = static_cast<int>(partition.key.size()) / partition.groups();
  member.communicator.reset(new Communicator(api, place, ranks));
}

Status Communicators::makeWorld(Peers &peers) {
  // All ranks learn whether rank 0 has an id.
  struct Record {
    nccl::UniqueId id;
    char error[256];
  };
  Record mine{};
  if (peers.rank() == 0)
    if (Status status =
            api.check(api.getUniqueId(&mine.id), "make an id", nullptr);
        !status)
      status.message().copy(mine.error, sizeof mine.error - 1);
  std::vector<Record> all(peers.size());
  TSR_TRY(peers.allGather(&mine, all.data(), sizeof mine));
  if (all[0].error[0])
    return Error{std::string("rank 0: ") + all[0].error};

  addMember(Partition::world(peers.size()));
  nccl::Config config = this->config();
  static constexpr const char *what = "make a communicator of all ranks";
  nccl::Comm &comm = members.back().communicator->comm;
  State state = api.commInitRankConfig(&comm, peers.size(), all[0].id,
                                       peers.rank(), &config);
  TSR_TRY(api.check(state, what, comm));
  Joining joining(peers);
  return await(api, comm, what, joining);
}

Status Communicators::split(Peers &peers, const Partition &partition) {
  const nccl::Comm world = members[0].communicator->comm;
  addMember(partition);
  nccl::Config config = this->config();
  static constexpr const char *what = "split a communicator";
  // It is null until the split is done.
  nccl::Comm &comm = members.back().communicator->comm;
  State state = api.commSplit(world, partition.color[peers.rank()],
                              partition.key[peers.rank()], &comm, &config);
  TSR_TRY(api.check(state, what, world));
  Joining joining(peers);
  TSR_TRY(await(api, world, what, joining));
  if (!comm)
    return Error{"NCCL cannot split a communicator: there is no result"};
  return await(api, comm, what, joining);
}

const Communicator *Communicators::find(const Partition &partition) const {
  for (const Member &member : members)
    if (member.partition == partition)
      return member.communicator.get();
  return nullptr;
}

Status Communicators::connect(Peers &peers,
                              std::span<const Partition> partitions) {
  if (aborted)
    return Error{"the communicators are aborted"};
  Device::Current current(device);
  auto freeBytes = [&] {
    size_t free = 0, total = 0;
    device.driver().memGetInfo(&free, &total);
    return static_cast<double>(free);
  };
  double began = 0, before = 0;
  auto begin = [&] {
    began = now();
    before = freeBytes();
  };
  auto made = [&](const Partition &partition) {
    CommunicatorNote &note = members.back().note;
    note = {"NCCL",
            textOf(groupOf(partition, peers.rank())),
            partition.groups(),
            members.size() > 1,
            static_cast<uint64_t>(std::max(before - freeBytes(), 0.0)),
            now() - began};
    char cost[96];
    snprintf(cost, sizeof cost, "%.3f s and about %.1f MiB", note.seconds,
             double(note.memory) / (1 << 20));
    peers.log(TESSERA_LOG_INFO,
              "NCCL " + api.version() + ": communicator " +
                  std::to_string(members.size()) + ", of ranks " + note.ranks +
                  (note.split ? ", split from the first" : "") + ", took " +
                  cost);
  };
  auto make = [&]() -> Status {
    for (const Partition &partition : partitions) {
      if (members.empty()) {
        begin();
        TSR_TRY(makeWorld(peers));
        made(members[0].partition);
      }
      if (find(partition))
        continue;
      begin();
      TSR_TRY(split(peers, partition));
      made(partition);
    }
    return Ok{};
  };
  Status status = make();
  if (!status)
    abort();
  return status;
}

std::vector<CommunicatorNote> Communicators::describe() const {
  std::vector<CommunicatorNote> notes;
  for (const Member &member : members)
    notes.push_back(member.note);
  return notes;
}

//===----------------------------------------------------------------------===//
// Symmetric memory
//===----------------------------------------------------------------------===//

Result<std::byte *> Communicators::allocate(size_t bytes) {
  Device::Current current(device);
  void *pointer = nullptr;
  const std::string what =
      "allocate " + std::to_string(bytes) + " bytes of symmetric memory";
  TSR_TRY(api.check(api.memAlloc(&pointer, bytes), what, nullptr));
  auto *bytePointer = static_cast<std::byte *>(pointer);
  memory.insert(bytePointer);
  return bytePointer;
}

bool Communicators::free(std::byte *pointer) {
  if (!memory.erase(pointer))
    return false;
  Device::Current current(device);
  // Kernels in flight may use it for ever.
  if (device.isStuck() || (aborted && !isAborted()))
    return true;
  for (Member &member : members) {
    auto window = member.windows.find(pointer);
    if (window == member.windows.end())
      continue;
    if (!aborted && window->second)
      api.commWindowDeregister(member.communicator->comm, window->second);
    member.windows.erase(window);
  }
  api.memFree(pointer);
  return true;
}

/// What a rank tells the others of its windows and its GPU.
struct Communicators::Shared {
  int32_t lacking; ///< the number of the first communicator without, or -1
  int32_t ordinal;
  Device::Uuid uuid;
};

Outcome<Ok> Communicators::share(Peers &peers, std::byte *pointer,
                                 size_t bytes) {
  if (!memory.count(pointer))
    return Ok{};
  Device::Current current(device);
  auto registerAll = [&]() -> Status {
    static constexpr const char *what = "register symmetric memory";
    Joining joining(peers);
    for (Member &member : members) {
      auto [window, isNew] = member.windows.insert({pointer, nullptr});
      if (!isNew)
        continue;
      const nccl::Comm comm = member.communicator->comm;
      State state = api.commWindowRegister(comm, pointer, bytes,
                                           &window->second, nccl::kSymmetric);
      TSR_TRY(api.check(state, what, comm));
      TSR_TRY(await(api, comm, what, joining));
      if (device.isOnDevice(window->second))
        peers.log(TESSERA_LOG_INFO,
                  std::to_string(bytes) +
                      " bytes of symmetric memory are shared by ranks " +
                      textOf(groupOf(member.partition, peers.rank())));
    }
    return Ok{};
  };
  if (Status status = registerAll(); !status) {
    abort();
    return peers.giveUp({TESSERA_PEER, status.message()});
  }

  // Where NCCL cannot map memory between GPUs it succeeds, and would go on
  // without.
  Shared mine{-1, device.ordinal(), device.uuid()};
  for (size_t i = members.size(); i-- > 0;)
    if (!device.isOnDevice(members[i].windows.at(pointer)))
      mine.lacking = static_cast<int32_t>(i);
  std::vector<Shared> all(peers.size());
  if (Status status = peers.allGather(&mine, all.data(), sizeof mine); !status)
    return peers.giveUp({TESSERA_PEER, status.message()});
  for (int rank = 0; rank < peers.size(); ++rank)
    if (all[rank].lacking >= 0)
      return Failure{
          TESSERA_UNSUPPORTED,
          cannotShare(groupOf(members[all[rank].lacking].partition, rank),
                      all)};
  return Ok{};
}

std::string Communicators::cannotShare(const std::vector<int> &ranks,
                                       const std::vector<Shared> &all) const {
  std::vector<int> ordinals;
  for (int rank : ranks)
    ordinals.push_back(all[rank].ordinal);
  auto name = [&](int rank) {
    return "GPU " + std::to_string(all[rank].ordinal) + " of rank " +
           std::to_string(rank);
  };
  std::string why;
  for (int from : ranks)
    for (int to : ranks)
      if (why.empty() && device.lacksPeer(all[from].uuid, all[to].uuid))
        why = ": " + name(from) + " cannot reach " + name(to);
  std::string flag;
  if (flags & TESSERA_SYMMETRIC)
    flag = "--symmetric (TESSERA_SYMMETRIC)";
  if (flags & TESSERA_COPY_ENGINES)
    flag += std::string(flag.empty() ? "" : " and ") +
            "--copy-engines (TESSERA_COPY_ENGINES)";
  return "NCCL has no peer access between ranks " + textOf(ranks) +
         ", on GPUs " + textOf(ordinals) +
         ", and cannot map memory between them" + why + "; run without " + flag;
}

//===----------------------------------------------------------------------===//
// Ending them
//===----------------------------------------------------------------------===//

Status Communicators::poll() {
  if (aborted)
    return Error{"the communicators are aborted"};
  for (const Member &member : members) {
    const nccl::Comm comm = member.communicator->comm;
    State state = nccl::kSuccess;
    if (!comm)
      continue;
    State asked = api.commGetAsyncError(comm, &state);
    TSR_TRY(api.check(asked != nccl::kSuccess ? asked : state, "go on", comm));
  }
  return Ok{};
}

void Communicators::abort() {
  if (aborted)
    return;
  aborted = std::make_shared<std::atomic<bool>>(false);
  std::vector<nccl::Comm> comms;
  // Parts before the whole, whose resources they share.
  for (size_t i = members.size(); i-- > 0;)
    if (nccl::Comm comm = members[i].communicator->comm)
      comms.push_back(comm);
  auto end = [comms = std::move(comms), done = aborted, &api = api,
              context = device.handle(), &driver = device.driver()] {
    driver.ctxPush(context);
    // As a group, so that the kernels of all are told before one is waited for.
    api.groupStart();
    for (nccl::Comm comm : comms)
      api.commAbort(comm);
    api.groupEnd();
    ContextHandle popped;
    driver.ctxPop(&popped);
    *done = true;
  };
  try {
    std::thread(std::move(end)).detach();
  } catch (const std::system_error &) {
    // Without a thread it is never done.
  }
}

bool Communicators::isAborted() const {
  for (const double end = now() + kAbortSeconds; !*aborted && now() < end;)
    nap();
  return *aborted;
}

Communicators::~Communicators() {
  std::erase(device.companions, this);
  Device::Current current(device);
  // Finalizing ends all that was asked of a communicator, on all its ranks.
  bool well = !aborted && !device.isStuck();
  const double began = now();
  for (size_t i = members.size(); well && i-- > 0;) {
    const nccl::Comm comm = members[i].communicator->comm;
    State state = api.commFinalize(comm);
    while (state == nccl::kInProgress && now() - began < kFinalizeSeconds) {
      nap();
      if (api.commGetAsyncError(comm, &state) != nccl::kSuccess)
        state = nccl::kInProgress;
    }
    well = state == nccl::kSuccess;
  }
  if (well) {
    for (size_t i = members.size(); i-- > 0;)
      api.commDestroy(members[i].communicator->comm);
    return;
  }
  abort();
  if (!isAborted())
    device.giveUp(); // its context is still in use
}
