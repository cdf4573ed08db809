//===- Team.cpp - what tessera-run's ranks tell each other ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Team.h"
#include "Support/Try.h"

#include "Ending.h"
#include "Exec/Transport.h"
#include "tessera/tessera.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <mutex>

namespace tessera::run {

using Clock = std::chrono::steady_clock;

/// How long after the deadline a rank that is in a run may still tell why it
/// fails, which says more than that it did not come.
static constexpr double kVerdictSeconds = 2;

static Error noAnswer(double seconds) {
  char text[32];
  snprintf(text, sizeof text, "%g s", seconds);
  return Error{std::string("no answer for ") + text};
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

namespace {

/// A meeting has two halves: all bring their part, then all have taken the
/// whole.
struct Table {
  Table(int size, double seconds)
      : size(size), seconds(seconds), present(size) {}

  Status meet(int rank, std::unique_lock<std::mutex> &lock) {
    size_t meeting = meetings;
    present[rank] = true;
    if (std::ranges::count(present, false) == 0) {
      present.assign(present.size(), false);
      ++meetings;
      changed.notify_all();
      return Ok{};
    }
    if (changed.wait_for(lock, std::chrono::duration<double>(seconds),
                         [&] { return meetings != meeting; }))
      return Ok{};
    const auto absent = std::ranges::find(present, false) - present.begin();
    return Error{noAnswer(seconds).message + ": rank " +
                 std::to_string(absent) + " has not come"};
  }

  const int size;
  const double seconds; ///< a meeting waits
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<char> parts;
  std::vector<bool> present; ///< by rank
  size_t meetings = 0;
};

class ThreadsTeam final : public Team {
public:
  ThreadsTeam(int rank, std::shared_ptr<Table> table)
      : number(rank), table(std::move(table)) {}
  int rank() const override { return number; }
  int size() const override { return table->size; }

  Status allGather(const void *mine, void *all, size_t bytes) override {
    if (bytes == 0)
      return Ok{};
    std::unique_lock<std::mutex> lock(table->mutex);
    table->parts.resize(bytes * table->size);
    std::memcpy(&table->parts[number * bytes], mine, bytes);
    TSR_TRY(table->meet(number, lock));
    std::memcpy(all, table->parts.data(), bytes * table->size);
    return table->meet(number, lock);
  }

private:
  int number;
  std::shared_ptr<Table> table;
};

} // namespace

std::vector<std::unique_ptr<Team>> makeThreadsTeams(int size, double deadline) {
  auto table = std::make_shared<Table>(size, deadline + kVerdictSeconds);
  std::vector<std::unique_ptr<Team>> teams;
  for (int rank = 0; rank < size; ++rank)
    teams.push_back(std::make_unique<ThreadsTeam>(rank, table));
  return teams;
}

//===----------------------------------------------------------------------===//
// MPI
//===----------------------------------------------------------------------===//

static std::atomic<void (*)(int)> mpiAbort = nullptr;

void abortMPI(int code) {
  if (auto *abort = mpiAbort.load())
    abort(code);
}

namespace {

class MPITeam final : public Team, private Poll {
public:
  MPITeam(std::unique_ptr<Transport> transport, double seconds)
      : transport(std::move(transport)), seconds(seconds) {}
  int rank() const override { return transport->rank(); }
  int size() const override { return transport->size(); }

  Status allGather(const void *mine, void *all, size_t bytes) override {
    if (bytes == 0)
      return Ok{};
    char *parts = static_cast<char *>(all);
    std::memcpy(parts + rank() * bytes, mine, bytes);
    std::vector<SendMessage> sends;
    std::vector<ReceiveMessage> receives;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank())
        continue;
      auto count = static_cast<int64_t>(bytes);
      sends.push_back({peer, mine, count});
      receives.push_back({peer, parts + peer * bytes, count});
    }
    until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(seconds));
    return transport->exchange(sends, receives, *this);
  }

private:
  Status poll() override {
    if (Clock::now() > until)
      return noAnswer(seconds);
    return Ok{};
  }

  std::unique_ptr<Transport> transport;
  double seconds; ///< an exchange waits
  Clock::time_point until;
};

} // namespace

Result<std::unique_ptr<Team>> joinMPITeam(double deadline) {
  // The plug-in is beside the library, and the library opens the same one.
  Dl_info library;
  std::string path = "libtessera-mpi.so";
  if (dladdr(reinterpret_cast<void *>(&tessera_context_create), &library) &&
      library.dli_fname) {
    std::string name = library.dli_fname;
    path = name.substr(0, name.rfind('/') + 1) + path;
  }
  void *plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!plugin)
    return Error{std::string("transport mpi: ") + dlerror()};
  auto *open = reinterpret_cast<TransportOpen *>(
      dlsym(plugin, "tessera_transport_open"));
  auto *abort =
      reinterpret_cast<void (*)(int)>(dlsym(plugin, "tessera_mpi_abort"));
  if (!open || !abort)
    return Error{path + ": is not Tessera's plug-in for MPI"};
  char error[512] = {};
  std::unique_ptr<Transport> transport;
  {
    Phase joining("MPI_Init", deadline);
    transport.reset(open(nullptr, deadline, error, sizeof error));
  }
  if (!transport)
    return Error{std::string("transport mpi: ") + error};
  mpiAbort = abort;
  return std::unique_ptr<Team>(std::make_unique<MPITeam>(
      std::move(transport), deadline + kVerdictSeconds));
}

} // namespace tessera::run
