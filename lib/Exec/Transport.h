//===- Transport.h - what moves bytes between ranks -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plug-in for CPU collectives has one primitive, a grouped exchange; all
// collectives are built on it. `threads` joins ranks of one process, `mpi` (a
// shared library of its own) the processes of an MPI job.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_EXEC_TRANSPORT_H
#define TESSERA_EXEC_TRANSPORT_H

#include "Support/Result.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tessera {

struct SendMessage {
  int peer;
  const void *data;
  int64_t bytes;
};
struct ReceiveMessage {
  int peer;
  void *data;
  int64_t bytes;
};

/// Asked while a transport waits.
class Poll {
public:
  /// An error ends the wait: a peer is dead, or this rank must give up.
  virtual Status poll() = 0;
  /// Told before an exchange ends in an error because of a peer.
  virtual void blame(int) {}

protected:
  ~Poll() = default;
};

class Transport {
public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Sends and receives a group of messages and returns when all are done: what
  /// was sent may be overwritten, what was received may be read. The k-th
  /// message that A sends to B is the k-th that B receives from A, counted over
  /// all calls, and has the same size. No message has 0 bytes or goes to this
  /// rank itself. Receives are posted before sends, so that no order of ranks
  /// deadlocks. Never blocks: it calls `poll` whenever nothing moves, and
  /// returns its error, with the peers that it waits for. Allocates nothing,
  /// except the first time a group has more messages than `reserve` was told.
  virtual Status exchange(std::span<const SendMessage> sends,
                          std::span<const ReceiveMessage> receives,
                          Poll &poll) = 0;

  /// Prepares for groups of up to so many sends and as many receives.
  virtual void reserve(size_t) {}
};

/// The end of a wait: `why`, and who kept it waiting, the first of whom is to
/// blame. `isMissing(peer)`: whether something for or from it is under way.
template <typename IsMissing>
Error givenUp(const Error &why, const Transport &transport, Poll &poll,
              IsMissing isMissing) {
  std::string peers;
  int count = 0;
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (!isMissing(peer))
      continue;
    if (++count == 1)
      poll.blame(peer);
    if (count == 9)
      peers += " and more";
    if (count < 9)
      peers += (count == 1 ? "" : ", ") + std::to_string(peer);
  }
  if (count == 0)
    return why;
  return {why.message + (count == 1 ? ": rank " : ": ranks ") + peers +
          (count == 1 ? " has not come" : " have not come")};
}

/// What a plug-in library `libtessera-NAME.so` exports as the C symbol
/// `tessera_transport_open`: a transport over `handle` (for `mpi` an MPI_Comm*,
/// null for the world), or null with one sentence in `error`; collective, and
/// given up after `seconds`, but for MPI's initialization, which cannot be.
/// Plug-ins are built together with the library; this is no stable ABI.
using TransportOpen = Transport *(const void *handle, double seconds,
                                  char *error, size_t errorSize);

} // namespace tessera

#endif // TESSERA_EXEC_TRANSPORT_H
