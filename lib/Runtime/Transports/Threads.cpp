//===- Threads.cpp - ranks that are threads of one process ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One slot for each ordered pair of ranks. A sender offers the address of its
// buffer in the slot; the receiver copies from there and empties the slot; so
// there is one copy and nothing is allocated. Everybody works on all of its
// pairs in turn, so no order of ranks deadlocks.
//
//===----------------------------------------------------------------------===//

#include "Runtime/Transports/Threads.h"

#include <atomic>
#include <cstring>
#include <ctime>
#include <deque>
#include <mutex>
#include <sched.h>
#include <vector>

using namespace tessera;

namespace {

struct alignas(64) Slot {
  enum State : uint32_t { Empty, Offered, Taking, WrongSize };
  std::atomic<uint32_t> state = Empty;
  const void *data = nullptr;
  int64_t bytes = 0;
};

class Group final : public ThreadsGroup,
                    public std::enable_shared_from_this<Group> {
public:
  explicit Group(int size)
      : ranks(size), slots(static_cast<size_t>(size) * size), present(size) {}

  int size() const override { return ranks; }
  Result<std::unique_ptr<Transport>> join(int rank) override;

  Slot &slot(int from, int to) {
    return slots[static_cast<size_t>(from) * ranks + to];
  }

  enum Presence : uint32_t { NotYet, Here, Left };
  const int ranks;
  std::deque<Slot> slots; // they cannot move
  std::deque<std::atomic<uint32_t>> present;
};

class Member final : public Transport {
public:
  Member(std::shared_ptr<Group> group, int rank)
      : group(std::move(group)), self(rank), nextSend(size()),
        nextReceive(size()) {}
  ~Member() override { group->present[self].store(Group::Left); }

  int rank() const override { return self; }
  int size() const override { return group->ranks; }
  Status exchange(std::span<const SendMessage> sends,
                  std::span<const ReceiveMessage> receives,
                  Poll &poll) override;

private:
  /// The index of the first message for `peer` at or after `from`.
  template <typename Message>
  static size_t find(std::span<const Message> messages, int peer, size_t from) {
    while (from < messages.size() && messages[from].peer != peer)
      ++from;
    return from;
  }

  std::shared_ptr<Group> group;
  int self;
  // For each peer, the message in flight.
  std::vector<size_t> nextSend, nextReceive;
};

} // namespace

Status Member::exchange(std::span<const SendMessage> sends,
                        std::span<const ReceiveMessage> receives, Poll &poll) {
  const int ranks = size();
  for (int peer = 0; peer < ranks; ++peer) {
    nextSend[peer] = find(sends, peer, 0);
    nextReceive[peer] = find(receives, peer, 0);
  }
  std::vector<size_t> &sending = nextSend, &receiving = nextReceive;
  auto sweep = [&](bool &moved, bool &open) -> Status {
    for (int step = 1; step < ranks; ++step) {
      int to = (self + step) % ranks, from = (self + ranks - step) % ranks;
      Slot &in = group->slot(from, self);
      if (receiving[from] < receives.size()) {
        open = true;
        uint32_t offered = Slot::Offered;
        if (in.state.compare_exchange_strong(offered, Slot::Taking,
                                             std::memory_order_acquire)) {
          const ReceiveMessage &message = receives[receiving[from]];
          if (in.bytes != message.bytes) {
            int64_t bytes = in.bytes;
            in.state.store(Slot::WrongSize, std::memory_order_release);
            return Error{"rank " + std::to_string(from) + " sends " +
                         std::to_string(bytes) + " bytes where rank " +
                         std::to_string(self) + " expects " +
                         std::to_string(message.bytes)};
          }
          std::memcpy(message.data, in.data, message.bytes);
          in.state.store(Slot::Empty, std::memory_order_release);
          receiving[from] = find(receives, from, receiving[from] + 1);
          moved = true;
        } else if (group->present[from].load() == Group::Left &&
                   in.state.load() == Slot::Empty) {
          poll.blame(from);
          return Error{"rank " + std::to_string(from) + " has left"};
        }
      }
      Slot &out = group->slot(self, to);
      if (sending[to] < sends.size()) {
        open = true;
        uint32_t state = out.state.load(std::memory_order_acquire);
        const SendMessage &message = sends[sending[to]];
        if (state == Slot::WrongSize)
          return Error{"rank " + std::to_string(to) +
                       " expects a message of another size than the " +
                       std::to_string(message.bytes) + " bytes that rank " +
                       std::to_string(self) + " sends"};
        if (state == Slot::Empty) {
          // `data` tells an offer that was taken from one not yet made.
          if (out.data) {
            out.data = nullptr;
            sending[to] = find(sends, to, sending[to] + 1);
          }
          if (sending[to] < sends.size()) {
            out.data = sends[sending[to]].data;
            out.bytes = sends[sending[to]].bytes;
            out.state.store(Slot::Offered, std::memory_order_release);
          }
          moved = true;
        } else if (group->present[to].load() == Group::Left) {
          poll.blame(to);
          return Error{"rank " + std::to_string(to) + " has left"};
        }
      }
    }
    return Ok{};
  };

  unsigned idle = 0;
  while (true) {
    bool moved = false, open = false;
    Status status = sweep(moved, open);
    if (status && !open)
      return Ok{};
    if (status && !moved) {
      if (Status asked = poll.poll(); !asked)
        status = givenUp(asked.error(), *this, poll, [&](int peer) {
          return peer != self && (receiving[peer] < receives.size() ||
                                  sending[peer] < sends.size());
        });
      // Spin for as long as a message takes, then leave the core to others.
      if (++idle < 4096)
        sched_yield();
      else if (status) {
        timespec pause{0, 100'000};
        nanosleep(&pause, nullptr);
      }
    } else {
      idle = 0;
    }
    if (status)
      continue;
    // Take back what is still offered: the buffers are the caller's again.
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == self || sending[peer] >= sends.size())
        continue;
      Slot &out = group->slot(self, peer);
      uint32_t offered = Slot::Offered;
      while (!out.state.compare_exchange_strong(offered, Slot::Empty) &&
             offered == Slot::Taking) {
        offered = Slot::Offered;
        sched_yield();
      }
      out.data = nullptr;
    }
    return status;
  }
}

Result<std::unique_ptr<Transport>> Group::join(int rank) {
  if (rank < 0 || rank >= ranks)
    return Error{"there is no rank " + std::to_string(rank) +
                 " in a group of " + std::to_string(ranks) + " threads"};
  uint32_t expected = NotYet;
  if (!present[rank].compare_exchange_strong(expected, Here))
    return Error{"rank " + std::to_string(rank) +
                 " of the group of threads was taken before"};
  return std::unique_ptr<Transport>(new Member(shared_from_this(), rank));
}

std::shared_ptr<ThreadsGroup> ThreadsGroup::create(int size) {
  return std::make_shared<Group>(size);
}
