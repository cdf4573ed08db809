//===- Work.h - one prepared step -----------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step of a plan becomes a Work in two moves: first everything that follows
// from sizes (so that memory is known before any is allocated), then addresses.
// Running it allocates nothing.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_EXEC_WORK_H
#define TESSERA_EXEC_WORK_H

#include "Exec/LocalTensors.h"
#include "Exec/Peers.h"

namespace tessera {

/// A byte of some tensor's memory or of the step's scratch.
struct Place {
  static constexpr int kScratch = -1;
  int buffer; ///< a root tensor, or kScratch
  int64_t offset;

  Place at(int64_t bytes) const { return {buffer, offset + bytes}; }
};

/// Where buffers are.
struct Bases {
  std::span<std::byte *const> tensors; ///< by root tensor
  std::byte *scratch;

  std::byte *operator()(const Place &place) const {
    return (place.buffer == Place::kScratch ? scratch : tensors[place.buffer]) +
           place.offset;
  }
};

/// What a step may use while it runs.
struct Running {
  Transport *transport; ///< null when there is one rank
  Poll *poll;
};

/// What a collective moves on this rank, in one run.
struct Traffic {
  int64_t bytesSent = 0, bytesReceived = 0;
  int64_t copies = 0, copiedBytes = 0; ///< packing and unpacking
};

/// What a collective gave a library to move when it was last enqueued, counted
/// where the library is called; the library's own collectives as a ring moves
/// them.
struct Handed {
  int communicator = -1; ///< the backend's number; -1: none
  uint64_t calls = 0;
  int64_t bytesSent = 0, bytesReceived = 0;
};

/// Where the algorithm of a library's calls comes from.
enum class Choice {
  Stored,   ///< a file of measured ones
  Measured, ///< in this context
  Heuristic ///< the library's own
};

/// What a collective does on this rank.
struct CollectiveReport {
  Traffic traffic;
  /// When it is connected: which of the backend's communicators it goes
  /// through; -1: none.
  int communicator = -1;
  Handed handed{};
};

/// Which algorithm a library's calls run, when they are connected.
struct AlgorithmReport {
  Choice choice = Choice::Heuristic;
  /// Of a stored or measured one: the same for the same algorithm.
  uint64_t hash = 0;
};

class Work {
public:
  virtual ~Work() = default;
  virtual void setAddresses(const Bases &bases) = 0;
  /// Does it, or enqueues it where the backend is a device.
  virtual Status run(const Running &running) = 0;
  /// Once, when the addresses are set, before the first run.
  virtual Status prepare() { return Ok{}; }
  /// Collective, once, when all ranks have prepared theirs.
  virtual Status connect(Peers &) { return Ok{}; }
  /// What it comes to, for people.
  virtual std::string text() const { return {}; }
  /// Null for all but collectives.
  virtual const CollectiveReport *collective() const { return nullptr; }
  /// Null where there is no call with a choice.
  virtual const AlgorithmReport *algorithm() const { return nullptr; }
  /// Whether this rank exchanges anything with others in it.
  bool meetsPeers() const {
    const CollectiveReport *report = collective();
    return report &&
           report->traffic.bytesSent + report->traffic.bytesReceived > 0;
  }

  int64_t scratchBytes() const { return scratch; }

  /// The number of the first work that waits for this one, which may run beside
  /// those before that; 0: the next one.
  size_t until = 0;

protected:
  /// Scratch for this step only; `alignment` is at most the backend's.
  Place takeScratch(int64_t bytes, int64_t alignment = 64) {
    Place place{Place::kScratch,
                (scratch + alignment - 1) / alignment * alignment};
    scratch = place.offset + (bytes + 63) / 64 * 64;
    return place;
  }

private:
  int64_t scratch = 0;
};

inline Place placeOf(const LocalTensor &tensor) {
  return {tensor.root, tensor.offset * tensor.elementBytes()};
}

} // namespace tessera

#endif // TESSERA_EXEC_WORK_H
