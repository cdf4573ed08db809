//===- Control.cpp - who is dead, who is stuck ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rank's own thread writes two atomics: how far it is, and how often it has
// polled, from which the control thread concludes that it waits. The control
// thread looks at them at each tick, and sends or judges. The names of ops are
// asked for only by the rank's own thread, in `poll`, where they are alive.
//
//===----------------------------------------------------------------------===//

#include "Runtime/Control/Control.h"
#include "Runtime/Control/Link.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace tessera {

using namespace control;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

namespace {

/// What rank 0 knows of a rank. A rank may also wait between runs, when ranks
/// agree on something.
struct Peer {
  Position position = Position::before();
  bool waiting = false;
  bool left = false; ///< said farewell
  /// When it last made progress, or began or ceased to wait.
  Clock::time_point moved = Clock::now();
  Clock::time_point heard = Clock::now();

  void report(Position now, bool isWaiting) {
    heard = Clock::now();
    if (now != position || isWaiting != waiting)
      moved = heard;
    position = now;
    waiting = isWaiting;
  }
};

class Control final : public Watch {
public:
  Control(int rank, double deadline, std::vector<Link> links)
      : rank(rank), deadline(deadline), links(std::move(links)),
        wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    peers.resize(rank == 0 ? this->links.size() : 1);
  }

  bool start() {
    // The program's signals are not this thread's business.
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    auto main = [](void *self) -> void * {
      static_cast<Control *>(self)->loop();
      return nullptr;
    };
    started = wake >= 0 && pthread_create(&thread, nullptr, main, this) == 0;
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    return started;
  }

  ~Control() override {
    stopping.store(true);
    signal();
    if (started)
      pthread_join(thread, nullptr);
    if (wake >= 0)
      close(wake);
  }

  void beginRun(const StepNames &stepNames) override {
    names = &stepNames;
    move(here().nextRun());
  }
  void endRun() override {
    names = nullptr;
    move(here().endOfRun());
  }
  void begin(int64_t step) override { move(here().atStep(step, false)); }
  void end(int64_t step) override { move(here().atStep(step, true)); }

  void fail(const Verdict &verdict) override {
    Message message;
    message.kind = Kind::Failure;
    message.rank = verdict.rank;
    message.position = position.load(std::memory_order_relaxed);
    setText(message.text, verdict.message);
    setText(message.op, verdict.op);
    setText(message.location, verdict.location);
    {
      // Rank 0 makes it the verdict of all, unless another one came first.
      std::lock_guard<std::mutex> lock(mutex);
      failure = message;
    }
    signal();
  }

  void wait(bool begins) override { waitsOutside.store(begins); }

  std::optional<Verdict> poll() override {
    if (!settled.load(std::memory_order_acquire)) {
      polls.store(polls.load(std::memory_order_relaxed) + 1,
                  std::memory_order_relaxed);
      return std::nullopt;
    }
    return compose();
  }

private:
  //===--------------------------------------------------------------------===//
  // The rank's own thread
  //===--------------------------------------------------------------------===//

  Position here() const {
    return Position::fromBits(position.load(std::memory_order_relaxed));
  }
  void move(Position to) {
    position.store(to.bits(), std::memory_order_relaxed);
  }

  std::string describe(Position where) const {
    if (names && where.step() >= 0)
      return std::string("in op ") + names->op(where.step()) + " at " +
             names->location(where.step());
    if (where.isInRun())
      return where.step() < 0 ? "before the first op" : "in a run";
    return where.run() == 0 ? "before the first run" : "between two runs";
  }

  /// The verdict in words. The op is the one that its culprit named, or the one
  /// that this rank cannot go on with.
  Verdict compose() const {
    std::lock_guard<std::mutex> lock(mutex);
    Verdict result;
    result.message = getText(decision.text);
    result.rank = decision.rank;
    result.op = getText(decision.op);
    result.location = getText(decision.location);
    Position theirs = Position::fromBits(decision.position);
    if (result.op.empty() && decision.rank >= 0 && decision.rank != rank)
      result.message += "; last seen " + describe(theirs);
    if (result.op.empty() && names && here().step() >= 0) {
      result.op = names->op(here().step());
      result.location = names->location(here().step());
    }
    return result;
  }

  //===--------------------------------------------------------------------===//
  // Both threads
  //===--------------------------------------------------------------------===//

  void signal() {
    uint64_t one = 1;
    [[maybe_unused]] ssize_t count = write(wake, &one, sizeof one);
  }

  /// The first verdict stays.
  void settle(const Message &message) {
    std::lock_guard<std::mutex> lock(mutex);
    if (settled.load(std::memory_order_relaxed))
      return;
    decision = message;
    settled.store(true, std::memory_order_release);
  }

  //===--------------------------------------------------------------------===//
  // The control thread
  //===--------------------------------------------------------------------===//

  void loop() {
    const auto tick = std::chrono::milliseconds(
        std::clamp(static_cast<int>(deadline * 1000 / 8), 5, 50));
    Clock::time_point next = Clock::now();
    while (!stopping.load()) {
      waitUntil(next);
      for (size_t i = 0; i < links.size(); ++i)
        take(i);
      const Clock::time_point now = Clock::now();
      const bool isTick = now >= next;
      if (isTick) {
        // If this process itself was stopped, that is nobody's fault.
        if (now - next > tick * 4)
          forgive(now - next);
        next = now + tick;
        notePolls();
        rank == 0 ? judge() : judgeHub();
      }
      tellAll(isTick);
    }
    tellAll(true);
    farewell();
  }

  /// Whether this rank waits: it has polled during the last few ticks. It may
  /// lose its core between two polls.
  void notePolls() {
    uint64_t now = polls.load(std::memory_order_relaxed);
    quietTicks = now == seenPolls ? quietTicks + 1 : 0;
    seenPolls = now;
    waiting = (quietTicks < 4 && now > 0) || waitsOutside.load();
  }

  void forgive(Clock::duration absence) {
    own.moved += absence;
    for (Peer &peer : peers) {
      peer.moved += absence;
      peer.heard += absence;
    }
  }

  void waitUntil(Clock::time_point until) {
    std::vector<pollfd> waits = {{wake, POLLIN, 0}};
    for (const Link &link : links)
      if (link.isOpen())
        waits.push_back(
            {link.socket(),
             static_cast<short>(POLLIN | (link.hasUnsent() ? POLLOUT : 0)), 0});
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - Clock::now() + std::chrono::microseconds(999));
    ::poll(waits.data(), waits.size(),
           static_cast<int>(std::max<int64_t>(left.count(), 0)));
    uint64_t count;
    [[maybe_unused]] ssize_t bytes = read(wake, &count, sizeof count);
  }

  /// What has come over link `index`. On rank 0 that is the rank's number,
  /// elsewhere the link leads to rank 0.
  void take(size_t index) {
    Link &link = links[index];
    if (!link.isOpen())
      return;
    std::vector<Message> messages;
    bool open = link.receive(messages);
    Peer &peer = peers[index];
    for (const Message &message : messages) {
      peer.heard = Clock::now();
      if (message.kind == Kind::Report)
        peer.report(Position::fromBits(message.position), message.waiting);
      else if (message.kind == Kind::Farewell)
        peer.left = true, peer.waiting = false;
      else if (message.kind == Kind::Failure)
        settle(decide(message, static_cast<int>(index)));
      else if (message.kind == Kind::Verdict)
        settle(message);
    }
    if (open)
      return;
    link.close();
    if (!peer.left)
      accuse(rank == 0 ? static_cast<int>(index) : 0,
             "died: its process has ended");
  }

  /// The failure of rank `speaker` as a verdict, on rank 0 or on one that has
  /// no link to it any more. Who failed for no reason that it knows did so
  /// because of a rank that has left, if there is one.
  Message decide(Message failure, int speaker) const {
    const std::string why = getText(failure.text);
    for (size_t i = 0; failure.rank < 0 && i < peers.size(); ++i)
      if (peers[i].left) {
        failure.rank = static_cast<int>(i);
        setText(failure.text,
                "rank " + std::to_string(i) + " has left: " + why);
      }
    if (failure.rank < 0 || failure.rank == speaker) {
      failure.rank = speaker;
      setText(failure.text,
              "rank " + std::to_string(speaker) + " failed: " + why);
    } else if (failure.rank < static_cast<int>(peers.size())) {
      failure.position = peers[failure.rank].position.bits();
    }
    failure.kind = Kind::Verdict;
    return failure;
  }

  void accuse(int culprit, const std::string &what) {
    Message message;
    message.kind = Kind::Verdict;
    message.rank = culprit;
    Peer &peer = peers[rank == 0 ? culprit : 0];
    message.position = peer.position.bits();
    setText(message.text, "rank " + std::to_string(culprit) + " " + what);
    settle(message);
  }

  static std::string text(double seconds) {
    char buffer[32];
    snprintf(buffer, sizeof buffer, seconds < 100 ? "%.3g s" : "%.0f s",
             seconds);
    return buffer;
  }

  /// Rank 0 looks for who keeps another rank waiting past the deadline.
  void judge() {
    peers[0].report(here(), waiting);
    if (settled.load())
      return;
    const Clock::time_point now = Clock::now();
    auto isLate = [&](Clock::time_point since) {
      return Seconds(now - since).count() > deadline;
    };
    // A peer that stopped is heard of last before others begin to wait for it,
    // by up to a report.
    auto isSilent = [&](const Peer &peer) {
      return !peer.left && Seconds(now - peer.heard).count() > deadline * 0.75;
    };
    const Peer *waiter = nullptr;
    for (const Peer &peer : peers)
      if (peer.waiting && !isSilent(peer) && isLate(peer.moved) &&
          (!waiter || peer.position < waiter->position))
        waiter = &peer;
    if (!waiter)
      return;

    int silent = -1, idle = -1, ahead = -1;
    bool allWait = true;
    for (size_t i = 0; i < peers.size(); ++i) {
      const Peer &peer = peers[i];
      const int number = static_cast<int>(i);
      allWait &= peer.waiting && isLate(peer.moved);
      if (isSilent(peer))
        silent = number;
      else if (!peer.waiting && isLate(peer.moved) &&
               (idle < 0 || peer.position < peers[idle].position))
        idle = number;
      if (peer.position > waiter->position &&
          (ahead < 0 || peer.position > peers[ahead].position))
        ahead = number;
    }
    if (silent >= 0)
      return accuse(silent,
                    "is stuck: it has not answered for " +
                        text(Seconds(now - peers[silent].heard).count()));
    if (idle >= 0)
      return accuse(idle, (peers[idle].left
                               ? "has left while others wait for it: it made "
                                 "no progress for "
                               : "is stuck: it made no progress for ") +
                              text(Seconds(now - peers[idle].moved).count()));
    if (allWait && ahead >= 0)
      return accuse(ahead, "went on without taking part in an op that others "
                           "have waited at for " +
                               text(Seconds(now - waiter->moved).count()));
    if (allWait) {
      Message message;
      message.kind = Kind::Verdict;
      setText(message.text, "all ranks have waited at one op for " +
                                text(Seconds(now - waiter->moved).count()));
      settle(message);
    }
  }

  /// Another rank looks whether rank 0, which judges, is there at all.
  void judgeHub() {
    Peer &hub = peers[0];
    own.report(here(), waiting);
    double silence = Seconds(Clock::now() - hub.heard).count();
    double waited = Seconds(Clock::now() - own.moved).count();
    if (settled.load() || !waiting || waited <= deadline)
      return;
    if (hub.left)
      accuse(0, "has left while others wait for it: it made no progress for " +
                    text(silence));
    else if (links[0].isOpen() && silence > deadline * 0.75)
      accuse(0, "is stuck: it has not answered for " + text(silence));
  }

  /// A verdict once, and on a tick how far this rank is.
  void tellAll(bool isTick) {
    std::optional<Message> verdict;
    {
      std::lock_guard<std::mutex> lock(mutex);
      verdict = std::exchange(failure, std::nullopt);
    }
    if (verdict && (rank == 0 || !links[0].isOpen()))
      settle(decide(*std::exchange(verdict, std::nullopt), rank));
    if (settled.load() && !toldVerdict) {
      std::lock_guard<std::mutex> lock(mutex);
      verdict = decision;
      toldVerdict = true;
    }
    Message report;
    report.rank = rank;
    report.position = position.load(std::memory_order_relaxed);
    report.waiting = waiting;
    for (Link &link : links) {
      if (!link.isOpen())
        continue;
      if (verdict)
        link.send(*verdict);
      if (isTick)
        link.send(report);
      else
        link.flush();
    }
  }

  /// Waits a little for the last words to go out, never for an answer.
  void farewell() {
    Message message;
    message.kind = Kind::Farewell;
    message.rank = rank;
    for (Link &link : links)
      if (link.isOpen())
        link.send(message);
    Clock::time_point until = Clock::now() + std::chrono::milliseconds(200);
    for (Link &link : links)
      while (link.isOpen() && link.hasUnsent() && Clock::now() < until &&
             link.flush())
        usleep(5000);
  }

  const int rank;
  const double deadline;

  // Written by the rank's own thread.
  std::atomic<uint64_t> position = 0;
  std::atomic<uint64_t> polls = 0;
  std::atomic<bool> waitsOutside = false;
  const StepNames *names = nullptr; ///< its own; null between runs

  // Written by either.
  mutable std::mutex mutex;
  Message decision;               ///< under `mutex`
  std::optional<Message> failure; ///< under `mutex`: this rank's, not yet told
  std::atomic<bool> settled = false;
  std::atomic<bool> stopping = false;

  // The control thread's own.
  std::vector<Link> links;
  std::vector<Peer> peers; ///< parallel to `links`
  Peer own;                ///< on ranks other than 0
  bool waiting = false;
  uint64_t seenPolls = 0;
  int quietTicks = 4;
  bool toldVerdict = false;

  int wake;
  bool started = false;
  pthread_t thread;
};

} // namespace

Result<std::unique_ptr<Watch>>
startControl(int rank, int world, double deadline, const AllGather &allGather) {
  Result<std::vector<Link>> links = meet(rank, world, deadline, allGather);
  if (!links)
    return links.error();
  auto control = std::make_unique<Control>(rank, deadline, std::move(*links));
  if (!control->start())
    return Error{"control channel: rank " + std::to_string(rank) +
                 " cannot start its thread"};
  return std::unique_ptr<Watch>(std::move(control));
}

} // namespace tessera
