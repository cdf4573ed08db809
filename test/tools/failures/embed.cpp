//===- embed.cpp - a program over the C header whose ranks go wrong -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   embed threads|sockets FOLDER MODULE DEADLINE RUNS RANKS VICTIM FAULT STAGE
//
// Runs a module RUNS times, on ranks that are threads of this process, or on
// processes of mpirun that find each other through sockets of their own: an
// all_gather by rank 0, which gives up after the deadline and tells the others
// for whom it waited. FAULT is "none" (somebody else does it), "hang" or
// "skip", by rank VICTIM before stage STAGE: 0 the context, 1 the module, 2 the
// binding, 3 + k run k. Of a rank that fails FOLDER/said.RANK tells what the
// library said, and when: a line each for time, stage, code, rank at fault, op,
// location, message. FOLDER/ready.RANK is there when the library's part begins.
//
//===----------------------------------------------------------------------===//

#include "tessera/tessera.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mpi.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

std::string folder, module_, fault;
double deadline;
int runs, ranks, victim, stageOfFault;

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

[[noreturn]] void die(const char *what) {
  perror(what);
  _exit(3);
}

//===----------------------------------------------------------------------===//
// Sockets
//===----------------------------------------------------------------------===//

/// All ranks connect with rank 0, which has a socket for each.
struct Sockets {
  int rank;
  std::vector<int> peers; ///< elsewhere one, to rank 0

  void connect() {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const std::string path = folder + "/socket";
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    auto *name = reinterpret_cast<sockaddr *>(&address);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (rank != 0) {
      while (::connect(fd, name, sizeof address) != 0)
        usleep(1000);
      if (write(fd, &rank, sizeof rank) != sizeof rank)
        die("connect");
      peers = {fd};
      return;
    }
    if (bind(fd, name, sizeof address) != 0 || listen(fd, ranks) != 0)
      die("listen");
    peers.assign(ranks, -1);
    for (int i = 1; i < ranks; ++i) {
      int peer = accept(fd, nullptr, nullptr), from;
      if (peer < 0 || read(peer, &from, sizeof from) != sizeof from)
        die("accept");
      peers[from] = peer;
    }
  }

  static bool receive(int fd, void *data, size_t bytes, double until) {
    char *at = static_cast<char *>(data);
    while (bytes > 0) {
      pollfd wait = {fd, POLLIN, 0};
      const double left = until - now();
      if (left <= 0 || poll(&wait, 1, static_cast<int>(1000 * left) + 1) < 0)
        return false;
      const ssize_t count = recv(fd, at, bytes, MSG_DONTWAIT);
      if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
        return false;
      at += count > 0 ? count : 0;
      bytes -= count > 0 ? count : 0;
    }
    return true;
  }

  /// Not 0: a rank plus 1, which did not come.
  int allGather(const void *mine, void *all, size_t bytes) {
    const double until = now() + deadline;
    char *parts = static_cast<char *>(all);
    int missing = 0;
    if (rank != 0) {
      if (send(peers[0], mine, bytes, MSG_NOSIGNAL) < 0 ||
          !receive(peers[0], &missing, sizeof missing, until + 0.5))
        return 1;
      if (!missing && !receive(peers[0], all, ranks * bytes, until + 0.5))
        return 1;
      return missing;
    }
    std::memcpy(parts, mine, bytes);
    for (int peer = 1; peer < ranks && !missing; ++peer)
      if (!receive(peers[peer], parts + peer * bytes, bytes, until))
        missing = peer + 1;
    for (int peer = 1; peer < ranks; ++peer) {
      (void)!send(peers[peer], &missing, sizeof missing, MSG_NOSIGNAL);
      if (!missing)
        (void)!send(peers[peer], all, ranks * bytes, MSG_NOSIGNAL);
    }
    return missing;
  }
};

//===----------------------------------------------------------------------===//
// A rank
//===----------------------------------------------------------------------===//

struct Rank {
  explicit Rank(int number) : number(number) {}

  const int number;
  tessera_context *context = nullptr;
  tessera_module *module = nullptr;
  tessera_binding *binding = nullptr;
  std::vector<std::vector<float>> ports;

  /// False when the rank must end.
  bool ended(tessera_status *status, int stage) {
    if (!status)
      return false;
    const std::string name = folder + "/said." + std::to_string(number);
    FILE *file = fopen((name + ".part").c_str(), "w");
    if (!file)
      die("said");
    fprintf(file, "%.6f\n%d\n%d\n%d\n%s\n%s\n%s\n", now(), stage,
            tessera_status_code(status), tessera_status_rank(status),
            tessera_status_op(status), tessera_status_location(status),
            tessera_status_message(status));
    fclose(file);
    rename((name + ".part").c_str(), name.c_str());
    tessera_status_free(status);
    return true;
  }

  /// Whether the rank goes through the stage.
  bool begins(int stage) const {
    if (number != victim || stage != stageOfFault || fault == "none")
      return true;
    if (FILE *file = fopen((folder + "/fault").c_str(), "w")) {
      fprintf(file, "%.6f\n", now());
      fclose(file);
    }
    while (fault == "hang")
      sleep(1000);
    return false; // skips it
  }

  /// Whether all went well.
  bool live(tessera_context_options options) {
    options.size = sizeof options;
    options.rank = number;
    options.world = ranks;
    options.deadline = deadline;
    options.control = 1;
    if (FILE *file =
            fopen((folder + "/ready." + std::to_string(number)).c_str(), "w"))
      fclose(file);
    if (!begins(0) || ended(tessera_context_create(&options, &context), 0))
      return false;
    if (!begins(1) ||
        ended(tessera_module_load_file(context, module_.c_str(), &module), 1))
      return false;
    const int64_t size = 4;
    std::vector<void *> pointers;
    for (size_t i = 0; i < tessera_module_port_count(module); ++i) {
      tessera_layout layout = {};
      layout.size = sizeof layout;
      if (ended(tessera_module_layout(module, i, &size, 1, &layout), 1))
        return false;
      ports.emplace_back(layout.bytes / sizeof(float) + 1);
    }
    for (std::vector<float> &port : ports)
      pointers.push_back(port.data());
    if (!begins(2) ||
        ended(tessera_binding_create(module, &size, 1, pointers.data(),
                                     pointers.size(), &binding),
              2))
      return false;
    for (int run = 0; run < runs; ++run)
      if (begins(3 + run) && ended(tessera_binding_run(binding), 3 + run))
        return false;
    return true;
  }

  ~Rank() {
    tessera_binding_destroy(binding);
    tessera_module_destroy(module);
    tessera_context_destroy(context);
  }
};

} // namespace

int main(int argc, char **argv) {
  if (argc != 10) {
    fprintf(stderr, "usage: see embed.cpp\n");
    return 2;
  }
  folder = argv[2];
  module_ = argv[3];
  deadline = atof(argv[4]);
  runs = atoi(argv[5]);
  ranks = atoi(argv[6]);
  victim = atoi(argv[7]);
  fault = argv[8];
  stageOfFault = atoi(argv[9]);
  tessera_context_options options = {};

  if (argv[1] == std::string("threads")) {
    tessera_threads *group = nullptr;
    if (tessera_threads_create(ranks, &group))
      return 3;
    options.transport = "threads";
    options.handle = group;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([=] { Rank(rank).live(options); });
    for (int rank = 0; rank < ranks; ++rank)
      if (fault != "hang" || rank != victim)
        threads[rank].join();
    _exit(0); // a rank may hang
  }

  int provided, rank;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Sockets sockets{rank, {}};
  sockets.connect();
  tessera_bootstrap bootstrap = {};
  bootstrap.size = sizeof bootstrap;
  bootstrap.user = &sockets;
  bootstrap.all_gather = [](void *user, const void *mine, void *all,
                            size_t bytes) {
    return static_cast<Sockets *>(user)->allGather(mine, all, bytes);
  };
  MPI_Comm world = MPI_COMM_WORLD;
  options.transport = "mpi";
  options.handle = &world;
  options.bootstrap = &bootstrap;
  bool well;
  {
    Rank mine(rank);
    well = mine.live(options);
  }
  // With a peer that is not well MPI_Finalize would wait for ever; and mpirun
  // does not wait for who does not finalize, if all leave alike.
  _exit(well ? 0 : 1);
}
