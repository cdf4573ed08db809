//===- Ending.cpp - how a rank's process ends other than in peace ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// When a rank dies, mpirun tells the others to end by SIGTERM after a second,
// and ends them after another; after MPI_Abort it does so at once. Whether
// somebody has said why cannot be seen from that, so who speaks leaves a mark
// in the job's folder, which mpirun removes.
//
// All state is there until the process is gone: exit() runs while the warden
// watches.
//
//===----------------------------------------------------------------------===//

#include "Ending.h"
#include "Team.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace tessera;
using namespace tessera::run;

using Clock = std::chrono::steady_clock;

static Clock::duration seconds(double count) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(count));
}

namespace {

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> files; ///< to be removed
  std::string phase;              ///< empty: none
  double allowed = 0;             ///< seconds of it
  Clock::time_point until;
  bool told = false;    ///< by SIGTERM
  bool failing = false; ///< a rank of this process has an error

  static State &get() {
    static State *state = new State; // for ever
    return *state;
  }
};

} // namespace

std::optional<int> run::launchedRank() {
  for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (const char *value = getenv(name))
      return atoi(value);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The other ranks of this machine
//===----------------------------------------------------------------------===//

static std::string readAll(const std::string &path) {
  std::string text;
  if (FILE *file = fopen(path.c_str(), "re")) {
    char buffer[4096];
    while (size_t count = fread(buffer, 1, sizeof buffer, file))
      text.append(buffer, count);
    fclose(file);
  }
  return text;
}

/// A variable in a process' environment as /proc has it.
static std::string variable(const std::string &environment, const char *name) {
  const std::string key = std::string(name) + "=";
  for (size_t at = 0; at < environment.size();) {
    const size_t end = std::min(environment.find('\0', at), environment.size());
    if (environment.compare(at, key.size(), key) == 0)
      return environment.substr(at + key.size(), end - at - key.size());
    at = end + 1;
  }
  return {};
}

namespace {

/// "12 (a name) T 3 ..."
struct ProcessState {
  std::string name;
  char state = 'Z';
  int parent = 0;

  explicit ProcessState(const std::string &folder) {
    const std::string text = readAll(folder + "/stat");
    const size_t open = text.find(" ("), close = text.rfind(") ");
    if (open == std::string::npos || close == std::string::npos)
      return;
    name = text.substr(open + 2, close - open - 2);
    sscanf(text.c_str() + close + 2, "%c %d", &state, &parent);
  }
};

} // namespace

static std::string lookForAbsent() {
  const char *job = getenv("PMIX_NAMESPACE");
  const char *size = getenv("OMPI_COMM_WORLD_SIZE");
  const char *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  DIR *processes = job && size && here ? opendir("/proc") : nullptr;
  if (!processes)
    return {};
  const ProcessState self("/proc/self");
  std::map<int, bool> stopped; // of the ranks that are there
  while (const dirent *entry = readdir(processes)) {
    const std::string folder = std::string("/proc/") + entry->d_name;
    if (!isdigit(entry->d_name[0]))
      continue;
    // To read an environment is to wait for what its process does to its
    // memory, so only those are read that may be ours.
    const ProcessState other(folder);
    if (other.state == 'Z' ||
        (other.name != self.name && other.parent != self.parent))
      continue;
    const std::string environment = readAll(folder + "/environ");
    const std::string rank = variable(environment, "PMIX_RANK");
    if (rank.empty() || variable(environment, "PMIX_NAMESPACE") != job)
      continue;
    // A rank may be a process and one that started it.
    stopped[atoi(rank.c_str())] |= other.state == 'T' || other.state == 't';
  }
  closedir(processes);
  std::string text;
  // Those of other machines are not seen.
  const int world = std::strcmp(size, here) == 0 ? atoi(size) : 0;
  for (int rank = 0; rank < world; ++rank)
    if (!stopped.count(rank))
      text += "; rank " + std::to_string(rank) + " died: its process has ended";
  for (auto [rank, isStopped] : stopped)
    if (isStopped)
      text += "; rank " + std::to_string(rank) + " is stopped";
  return text;
}

/// In a thread of its own: what is to be said does not wait for long.
std::string run::describeAbsent() {
  struct Search {
    std::mutex mutex;
    std::condition_variable changed;
    std::string text;
    bool done = false;
  };
  auto search = std::make_shared<Search>();
  try {
    std::thread([search] {
      std::string text = lookForAbsent();
      std::lock_guard<std::mutex> lock(search->mutex);
      search->text = std::move(text);
      search->done = true;
      search->changed.notify_all();
    }).detach();
  } catch (const std::system_error &) {
    return {};
  }
  std::unique_lock<std::mutex> lock(search->mutex);
  search->changed.wait_for(lock, seconds(0.5), [&] { return search->done; });
  return search->text;
}

//===----------------------------------------------------------------------===//
// Speaking
//===----------------------------------------------------------------------===//

/// Whether none of the job's ranks on this machine has spoken; from then on
/// none may.
static bool maySpeak() {
  static std::atomic<bool> asked = false;
  if (asked.exchange(true))
    return false;
  const char *folder = getenv("PMIX_SERVER_TMPDIR");
  const char *job = getenv("PMIX_NAMESPACE");
  if (!folder || !job)
    return true;
  const std::string mark = std::string(folder) + "/tessera-run-said-" + job;
  const int fd =
      open(mark.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0)
    close(fd);
  return fd >= 0 || errno != EEXIST;
}

static void say(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  message = "tessera: " + message + "\n";
  for (size_t at = 0; at < message.size();) {
    const ssize_t count =
        write(STDERR_FILENO, message.data() + at, message.size() - at);
    if (count <= 0 && errno != EINTR)
      return;
    at += count > 0 ? count : 0;
  }
}

static void removeFiles() {
  State &state = State::get();
  std::lock_guard<std::mutex> lock(state.mutex);
  for (const std::string &file : state.files)
    unlink(file.c_str());
}

void run::removeAtError(const std::string &path) {
  State &state = State::get();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.files.push_back(path);
}

void run::fail(int rank, std::string message, int culprit) {
  State &state = State::get();
  if (culprit < 0)
    message += describeAbsent();
  {
    std::unique_lock<std::mutex> lock(state.mutex);
    state.failing = true;
    // Those before this rank that can say it, too.
    const int others = rank - (culprit >= 0 && culprit < rank);
    if (others > 0)
      state.changed.wait_for(
          lock, seconds(std::min(0.25 + 0.05 * (others - 1), 0.75)),
          [&] { return state.told; });
  }
  static std::mutex once;
  once.lock(); // for ever: of the ranks in a process one ends it
  if (maySpeak())
    say(message);
  removeFiles();
  Phase ending("MPI_Abort", 1);
  abortMPI(1);
  _exit(1);
}

//===----------------------------------------------------------------------===//
// The warden
//===----------------------------------------------------------------------===//

Phase::Phase(const char *name, double allowed) {
  State &state = State::get();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.phase = name;
  state.allowed = allowed;
  state.until = Clock::now() + seconds(allowed);
}

Phase::~Phase() {
  if (kept)
    return;
  State &state = State::get();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.phase.clear();
}

/// Ends the process, as the phase has not. MPI is not asked: it is stuck, and
/// mpirun ends the others when a rank ends like this.
static void checkPhase() {
  State &state = State::get();
  std::string phase;
  double allowed;
  {
    std::lock_guard<std::mutex> lock(state.mutex);
    if (state.phase.empty() || Clock::now() < state.until)
      return;
    phase = state.phase;
    allowed = state.allowed;
  }
  const int rank = launchedRank().value_or(0);
  char text[32];
  snprintf(text, sizeof text, "%g s", allowed);
  if (maySpeak()) {
    const std::string absent = describeAbsent();
    say("rank " + std::to_string(rank) + " has waited in " + phase + " for " +
        text + (absent.empty() ? ": other ranks have not come there" : absent));
  }
  removeFiles();
  _exit(1);
}

/// Of several ranks mpirun ends the others when one has died or failed. One of
/// them says why, unless that is done: one that has an error and is told to be
/// quick, or one that sees who is missing.
[[noreturn]] static void endBySignal(int signal) {
  State &state = State::get();
  if (signal == SIGTERM && launchedRank()) {
    std::unique_lock<std::mutex> lock(state.mutex);
    state.told = true;
    state.changed.notify_all();
    const bool failing = state.failing;
    lock.unlock();
    if (failing)
      usleep(700'000); // who fails ends the process itself
    else if (std::string absent = describeAbsent();
             !absent.empty() && maySpeak())
      say(absent.substr(2) + "; the launcher ends the other ranks");
  }
  removeFiles();
  ::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(signal);
  _exit(128 + signal);
}

static sigset_t endings() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // What the starter has ignored (nohup) stays so.
    struct sigaction action;
    if (sigaction(signal, nullptr, &action) == 0 &&
        action.sa_handler != SIG_IGN)
      sigaddset(&set, signal);
  }
  return set;
}

Status run::startWarden() {
  static const sigset_t set = endings();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  pthread_t thread;
  auto watch = [](void *) -> void * {
    while (true) {
      const timespec pause = {0, 50'000'000};
      const int signal = sigtimedwait(&set, nullptr, &pause);
      if (signal > 0)
        endBySignal(signal);
      checkPhase();
    }
  };
  if (int error = pthread_create(&thread, nullptr, watch, nullptr))
    return Error{std::string("cannot start a thread: ") + std::strerror(error)};
  pthread_detach(thread);
  return Ok{};
}
