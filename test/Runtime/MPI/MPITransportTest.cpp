//===- MPITransportTest.cpp - the plug-in `mpi` under mpirun --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Started by mpirun, with the plug-in's path and a scenario as arguments:
//
//   groups   random groups of messages, several between the same two ranks,
//   each
//            byte of which says where it comes from and goes to
//   gives-up a rank whose poll says so returns its error although its peer
//   never
//            sends, and so does every later exchange
//
//===----------------------------------------------------------------------===//

#include "Exec/Transport.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

using namespace tessera;

namespace {

struct Countdown final : Poll {
  int left = -1; ///< negative: for ever
  int blamed = -1;
  Status poll() override {
    if (left == 0)
      return Error{"gave up"};
    left -= left > 0;
    return Ok{};
  }
  void blame(int peer) override { blamed = peer; }
};

[[noreturn]] void die(const std::string &what) {
  fprintf(stderr, "failed: %s\n", what.c_str());
  _exit(1);
}

/// A message of a group; every rank draws the same ones.
struct Drawn {
  int from, to;
  std::vector<uint8_t> bytes;
};

void groups(Transport &transport) {
  std::mt19937 random(7);
  const int size = transport.size(), rank = transport.rank();
  Countdown poll;
  transport.reserve(4);
  for (int round = 0; round < 200; ++round) {
    std::vector<Drawn> drawn(random() % 20);
    for (Drawn &message : drawn) {
      message.from = static_cast<int>(random() % size);
      message.to =
          static_cast<int>((message.from + 1 + random() % (size - 1)) % size);
      size_t bytes = 1 + random() % (round % 10 == 0 ? 200000 : 300);
      for (size_t i = 0; i < bytes; ++i)
        message.bytes.push_back(static_cast<uint8_t>(random()));
    }
    std::vector<std::vector<uint8_t>> arrived(drawn.size());
    std::vector<SendMessage> sends;
    std::vector<ReceiveMessage> receives;
    for (size_t i = 0; i < drawn.size(); ++i) {
      const Drawn &message = drawn[i];
      auto bytes = static_cast<int64_t>(message.bytes.size());
      if (message.from == rank)
        sends.push_back({message.to, message.bytes.data(), bytes});
      if (message.to == rank) {
        arrived[i].resize(message.bytes.size());
        receives.push_back({message.from, arrived[i].data(), bytes});
      }
    }
    if (Status status = transport.exchange(sends, receives, poll); !status)
      die(status.message());
    for (size_t i = 0; i < drawn.size(); ++i)
      if (drawn[i].to == rank && arrived[i] != drawn[i].bytes)
        die("message " + std::to_string(i) + " of round " +
            std::to_string(round) + " differs");
  }
}

void givesUp(Transport &transport) {
  if (transport.rank() != 0)
    return;
  char byte;
  ReceiveMessage never = {1, &byte, 1};
  Countdown poll;
  poll.left = 1000;
  Status status = transport.exchange({}, {&never, 1}, poll);
  if (status || status.message() != "gave up: rank 1 has not come" ||
      poll.blamed != 1)
    die("the wait was not given up because of rank 1");
  Countdown patient;
  if (Status later = transport.exchange({}, {}, patient);
      later || later.message() != status.message())
    die("a broken transport went on");
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3)
    die("usage: MPITransportTest PLUGIN groups|gives-up");
  void *library = dlopen(argv[1], RTLD_NOW);
  if (!library)
    die(dlerror());
  auto *open = reinterpret_cast<TransportOpen *>(
      dlsym(library, "tessera_transport_open"));
  auto *abort =
      reinterpret_cast<void (*)(int)>(dlsym(library, "tessera_mpi_abort"));
  if (!open || !abort)
    die("the plug-in lacks an entry");
  char error[256];
  Transport *transport = open(nullptr, 60, error, sizeof error);
  if (!transport)
    die(error);
  if (transport->size() != 3)
    die("not 3 ranks");
  bool gaveUp = std::string(argv[2]) == "gives-up";
  gaveUp ? givesUp(*transport) : groups(*transport);
  int rank = transport->rank();
  delete transport;
  // Rank 0 cannot finalize any more, and so none can.
  if (gaveUp && rank == 0) {
    printf("gave up\n");
    fflush(stdout);
    abort(0);
  }
  // The abort ends the others. If they left on their own, mpirun might see that
  // first and wait for them.
  if (gaveUp)
    sleep(60);
  return 0;
}
