//===- Link.h - messages of the control channel over a socket -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One message format for all, of fixed size, between equal builds of Tessera on
// machines of one kind. Nothing here blocks, but `meet`, which has a time
// limit.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_CONTROL_LINK_H
#define TESSERA_RUNTIME_CONTROL_LINK_H

#include "Runtime/Control/Control.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace tessera::control {

/// How far a rank is, as a number that only grows: the run, the step in it, and
/// whether that step has ended.
class Position {
public:
  static Position before() { return Position(0); }
  Position nextRun() const { return Position((run() + 1) << kRunShift); }
  Position atStep(int64_t step, bool ended) const {
    return Position(run() << kRunShift |
                    (static_cast<uint64_t>(step) + 1) << 1 | ended);
  }
  Position endOfRun() const { return Position(value | kStepMask); }

  static Position fromBits(uint64_t bits) { return Position(bits); }
  uint64_t bits() const { return value; }
  auto operator<=>(const Position &) const = default;

  uint64_t run() const { return value >> kRunShift; }
  bool isInRun() const {
    return run() != 0 && (value & kStepMask) != kStepMask;
  }
  /// The step begun last, or -1.
  int64_t step() const {
    return isInRun() ? static_cast<int64_t>((value & kStepMask) >> 1) - 1 : -1;
  }

private:
  explicit Position(uint64_t value) : value(value) {}
  static constexpr int kRunShift = 32;
  static constexpr uint64_t kStepMask = (uint64_t{1} << kRunShift) - 1;
  uint64_t value;
};

enum class Kind : uint32_t {
  Hello,    ///< a rank introduces itself, with the token
  Report,   ///< how far `rank` is
  Farewell, ///< `rank` leaves in peace
  Failure,  ///< why `rank`, or who speaks, cannot go on: rank 0 decides
  Verdict,  ///< why no rank can go on
};

struct Message {
  uint64_t token = 0;
  Kind kind = Kind::Report;
  int32_t rank = -1; ///< who speaks; of the last two, who is at fault
  uint64_t position = 0;
  uint32_t waiting = 0;
  char text[420] = {}; ///< of the last two
  char op[128] = {};   ///< likewise, where the culprit knows it itself
  char location[256] = {};
};
static_assert(sizeof(Message) == 832, "no padding goes over the wire");

/// Copies what fits.
template <size_t size>
void setText(char (&target)[size], const std::string &text) {
  size_t count = std::min(text.size(), size - 1);
  std::memcpy(target, text.data(), count);
  target[count] = 0;
}
template <size_t size> std::string getText(const char (&text)[size]) {
  return {text, strnlen(text, size)};
}

/// One end of a connection; owns the socket.
class Link {
public:
  explicit Link(int fd) : fd(fd) {}
  Link(Link &&other) noexcept;
  Link &operator=(Link &&other) noexcept;
  ~Link();

  int socket() const { return fd; }
  bool isOpen() const { return fd >= 0; }
  bool hasUnsent() const { return sent < out.size(); }
  void close();

  /// Sends, or keeps for `flush` what does not go now. A report is dropped when
  /// something is kept. False when the connection is broken.
  bool send(const Message &message);
  bool flush();
  /// Takes what has arrived; false at the end of the connection.
  bool receive(std::vector<Message> &messages);

private:
  int fd;
  std::vector<char> in, out;
  size_t sent = 0;
};

/// Collective: connects all ranks with rank 0. On rank 0 the result has a link
/// for each rank (its own is closed), elsewhere one, to rank 0. Connecting
/// takes less than `deadline` seconds.
Result<std::vector<Link>> meet(int rank, int world, double deadline,
                               const AllGather &allGather);

} // namespace tessera::control

#endif // TESSERA_RUNTIME_CONTROL_LINK_H
