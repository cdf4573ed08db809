//===- MPITransport.cpp - libtessera-mpi.so -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The transport plug-in `mpi`: the only code that links MPI, opened on demand.
// It works on a duplicate of the given communicator, so that its messages never
// meet the program's own.
//
// MPI is initialized here only if the program has not done so, and then also
// finalized here when the process exits; but not after an error: with a dead
// peer MPI_Finalize would wait for ever. After an error this file calls MPI no
// more, so that nothing arrives late in memory that has a new owner.
//
//===----------------------------------------------------------------------===//

#include "Exec/Transport.h"
#include "Support/Try.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mpi.h>
#include <optional>
#include <sched.h>
#include <string>
#include <vector>

namespace tessera {
namespace {

/// MPI counts with int; longer messages go in pieces, whose order MPI keeps.
constexpr int64_t kMaxPiece = int64_t{1} << 30;
constexpr int kTag = 0;

/// Finalizes at the end of the process what was initialized here.
struct Session {
  bool owned = false;
  bool broken = false;
  ~Session() {
    int finalized = 0;
    if (owned && !broken && MPI_Finalized(&finalized) == MPI_SUCCESS &&
        !finalized)
      MPI_Finalize();
  }
};
Session session;

Error mpiError(const char *call, int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return Error{std::string(call) + ": " + text};
}

class MPITransport final : public Transport {
public:
  MPITransport(MPI_Comm comm) : comm(comm) {
    MPI_Comm_rank(comm, &myRank);
    MPI_Comm_size(comm, &mySize);
  }
  ~MPITransport() override {
    int finalized = 0;
    if (!failed && MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized)
      MPI_Comm_free(&comm);
  }

  int rank() const override { return myRank; }
  int size() const override { return mySize; }
  void reserve(size_t messages) override {
    requests.reserve(2 * messages);
    peers.reserve(2 * messages);
  }

  Status exchange(std::span<const SendMessage> sends,
                  std::span<const ReceiveMessage> receives,
                  Poll &poll) override {
    if (failed)
      return *failed;
    requests.clear();
    peers.clear();
    for (const ReceiveMessage &message : receives)
      TSR_TRY(post(message.data, message.bytes, message.peer, "MPI_Irecv",
                   MPI_Irecv));
    for (const SendMessage &message : sends)
      TSR_TRY(post(const_cast<void *>(message.data), message.bytes,
                   message.peer, "MPI_Isend",
                   [](void *data, int count, MPI_Datatype type, int peer,
                      int tag, MPI_Comm comm, MPI_Request *request) {
                     return MPI_Isend(data, count, type, peer, tag, comm,
                                      request);
                   }));

    for (int round = 0;; ++round) {
      int done = 0;
      int code = MPI_Testall(static_cast<int>(requests.size()), requests.data(),
                             &done, MPI_STATUSES_IGNORE);
      if (code != MPI_SUCCESS)
        return fail(mpiError("MPI_Testall", code));
      if (done)
        return Ok{};
      if (Status status = poll.poll(); !status)
        return fail(givenUp(status.error(), *this, poll,
                            [&](int peer) { return isWaitingFor(peer); }));
      // Soon give way: there may be more ranks than cores.
      if (round > 100)
        sched_yield();
    }
  }

private:
  template <typename Call>
  Status post(void *data, int64_t bytes, int peer, const char *name,
              Call call) {
    for (int64_t at = 0; at < bytes; at += kMaxPiece) {
      MPI_Request request;
      int code = call(static_cast<char *>(data) + at,
                      static_cast<int>(std::min(bytes - at, kMaxPiece)),
                      MPI_BYTE, peer, kTag, comm, &request);
      if (code != MPI_SUCCESS)
        return fail(mpiError(name, code));
      requests.push_back(request);
      peers.push_back(peer);
    }
    return Ok{};
  }

  bool isWaitingFor(int peer) const {
    for (size_t i = 0; i < requests.size(); ++i) {
      int done = 1;
      if (peers[i] == peer && requests[i] != MPI_REQUEST_NULL &&
          MPI_Request_get_status(requests[i], &done, MPI_STATUS_IGNORE) ==
              MPI_SUCCESS &&
          !done)
        return true;
    }
    return false;
  }

  Error fail(Error error) {
    session.broken = true;
    failed = error;
    return error;
  }

  MPI_Comm comm;
  int myRank = 0, mySize = 1;
  std::vector<MPI_Request> requests;
  std::vector<int> peers; ///< parallel to `requests`
  std::optional<Error> failed;
};

/// A communicator of the same ranks, unless one of them does not come.
Result<MPI_Comm> duplicate(MPI_Comm comm, double seconds) {
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Request request;
  if (int code = MPI_Comm_idup(comm, &own, &request); code != MPI_SUCCESS)
    return mpiError("MPI_Comm_idup", code);
  const double until = MPI_Wtime() + seconds;
  for (int done = 0; !done;) {
    if (int code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        code != MPI_SUCCESS)
      return mpiError("MPI_Comm_idup", code);
    if (!done && MPI_Wtime() > until) {
      session.broken = true;
      char text[32];
      snprintf(text, sizeof text, "%g s", seconds);
      return Error{std::string("MPI_Comm_idup: not all ranks came within ") +
                   text};
    }
    if (!done)
      sched_yield();
  }
  return own;
}

Result<Transport *> open(const void *handle, double seconds) {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (finalized)
    return Error{"MPI has been finalized in this process"};
  if (!initialized) {
    int provided = 0;
    int code =
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    if (code != MPI_SUCCESS)
      return mpiError("MPI_Init_thread", code);
    session.owned = true;
  }
  MPI_Comm comm =
      handle ? *static_cast<const MPI_Comm *>(handle) : MPI_COMM_WORLD;
  Result<MPI_Comm> own = duplicate(comm, seconds);
  if (!own)
    return own.error();
  if (int code = MPI_Comm_set_errhandler(*own, MPI_ERRORS_RETURN);
      code != MPI_SUCCESS)
    return mpiError("MPI_Comm_set_errhandler", code);
  return new MPITransport(*own);
}

} // namespace
} // namespace tessera

#define TESSERA_PLUGIN extern "C" __attribute__((visibility("default")))

/// See TransportOpen in Transport.h.
TESSERA_PLUGIN tessera::Transport *tessera_transport_open(const void *handle,
                                                          double seconds,
                                                          char *error,
                                                          size_t errorSize) {
  tessera::Result<tessera::Transport *> transport =
      tessera::open(handle, seconds);
  if (transport)
    return *transport;
  snprintf(error, errorSize, "%s", transport.message().c_str());
  return nullptr;
}

/// For tessera-run alone, which ends all processes of its job after an error.
TESSERA_PLUGIN void tessera_mpi_abort(int code) {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized && !finalized)
    MPI_Abort(MPI_COMM_WORLD, code);
}
