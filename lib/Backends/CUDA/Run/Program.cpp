//===- Program.cpp - a binding's works on a GPU ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first run does all works one by one: what libraries and peers do only
// once they do now. (Some run beside those behind them, but where steps are
// timed or checked.) Then it records them as a CUDA graph, which later runs
// launch. The host polls: the event at the end, the companions, the peers'
// watch. The stream itself leaves breadcrumbs in pinned memory around each
// collective, so that a hang inside of the graph has a name.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Run/Program.h"
#include "Backends/CUDA/Run/Graphs.h"
#include "Support/Clock.h"
#include "Support/Try.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>

using namespace tessera;
using namespace tessera::cuda;

namespace {

/// How long a wait spins before it sleeps, and how long it sleeps at a time.
constexpr double kSpinSeconds = 200e-6;
constexpr long kSleepNanoseconds = 20'000;
/// How well the device's clock should be known on the host's, and how often
/// that is tried.
constexpr double kClockError = 5e-6;
constexpr int kClockTries = 8;
/// How long what is in flight has to end after a failure. NCCL's kernels over
/// symmetric memory never do, and ranks answer 2 s after a deadline.
constexpr double kGraceSeconds = 1;

class CUDAProgram final : public Program {
public:
  CUDAProgram(Device &device, Binaries &binaries, Function mark,
              std::span<const std::unique_ptr<Work>> works, uint32_t flags)
      : device(device), driver(device.driver()), binaries(binaries), mark(mark),
        works(works), flags(flags) {}

  Status prepare() {
    Device::Current current(device);
    for (Event *event : {&done, &forked})
      TSR_TRY(device.check(driver.eventCreate(event, kEventUntimed),
                           "make an event"));
    if (flags & TESSERA_TIME_STEPS) {
      events.resize(works.size() + 1);
      measured.resize(works.size());
      for (Event &event : events)
        TSR_TRY(device.check(driver.eventCreate(&event, kEventTimed),
                             "make an event"));
    }
    if (!mark)
      return Ok{};
    void *host = nullptr;
    TSR_TRY(device.check(
        driver.memHostAlloc(&host, 64, kHostPortable | kHostMapped),
        "allocate pinned memory"));
    crumb = static_cast<volatile uint32_t *>(host);
    *crumb = 0;
    return device.check(driver.memHostGetDevicePointer(&crumbWords[0], host, 0),
                        "map pinned memory");
  }

  ~CUDAProgram() override {
    if (device.isStuck())
      return;
    Device::Current current(device);
    if (exec)
      driver.graphExecDestroy(exec);
    for (Event event : {done, forked})
      if (event)
        driver.eventDestroy(event);
    for (Event event : events)
      if (event)
        driver.eventDestroy(event);
    if (crumb)
      driver.memFreeHost(const_cast<uint32_t *>(crumb));
  }

  Ran run(Peers &peers, const StepNames &names) override {
    Device::Current current(device);
    forget();
    Running running{peers.transport(), &peers.startWait()};
    device.follows.reset();
    Ran ran = Ok{};
    if (flags & TESSERA_CHECK_STEPS)
      ran = checkSteps(peers, names, running);
    else if (flags & TESSERA_TIME_STEPS)
      ran = timeSteps(peers, running);
    else
      ran = launch(peers, running);
    if (!ran)
      settle();
    return ran;
  }

  Ran enqueue(Peers &peers, void *callers) override {
    const double began = now();
    Device::Current current(device);
    Stream stream = static_cast<Stream>(callers);
    const auto followed = std::exchange(device.follows, std::nullopt);
    Running running{peers.transport(), &peers.startWait()};
    auto enqueueAll = [&]() -> Ran {
      int capturing = 0;
      TSR_TRY(check(driver.streamIsCapturing(stream, &capturing),
                    "ask about the caller's stream"));
      if (capturing) {
        if (!warm)
          return Stop{0, TESSERA_INVALID_ARGUMENT,
                      "peers and libraries get ready in the first run, which "
                      "cannot be captured: run once before"};
        // A graph takes in works, not the launch of a graph.
        TSR_TRY(order(device.stream(), stream));
        TSR_TRY(enqueueWorks(running));
        return order(stream, device.stream());
      }
      if (exec) {
        Ran ran = launchIn(stream, followed);
        host = now() - began;
        return ran;
      }
      TSR_TRY(order(device.stream(), stream));
      TSR_TRY(submit(running));
      TSR_TRY(check(driver.streamWaitEvent(stream, done, 0),
                    "make the caller's stream wait"));
      host = now() - began;
      return warm ? Ok{} : finishFirst(peers, running);
    };
    Ran ran = enqueueAll();
    if (!ran && ran.error().code != TESSERA_INVALID_ARGUMENT)
      settle();
    return ran;
  }

  Ran wait(Peers &peers) override {
    Device::Current current(device);
    Ran ran = wait(peers, done);
    if (!ran)
      settle();
    return ran;
  }

  std::span<const StepTime> times() const override { return measured; }
  double clockError() const override { return clock; }
  double hostSeconds() const override { return host; }

private:
  //===--------------------------------------------------------------------===//
  // Enqueueing
  //===--------------------------------------------------------------------===//

  Ran check(Code code, const char *what) {
    if (Status status = device.check(code, what); !status)
      return Stop{0, TESSERA_INTERNAL, status.message()};
    return Ok{};
  }

  /// What is in `after` later waits for what is in `before` now.
  Ran order(Stream after, Stream before) {
    TSR_TRY(check(driver.eventRecord(forked, before),
                  "record an event in a stream"));
    return check(driver.streamWaitEvent(after, forked, 0),
                 "make a stream wait for another");
  }

  /// The graph in the caller's stream itself, which costs the GPU and the host
  /// fewer waits than ours between two of them. `followed`: what the device
  /// followed until now.
  Ran launchIn(Stream stream, std::optional<unsigned long long> followed) {
    unsigned long long id = 0;
    TSR_TRY(check(driver.streamGetId(stream, &id),
                  "ask about the caller's stream"));
    if (followed != id)
      TSR_TRY(order(stream, device.stream()));
    TSR_TRY(check(driver.graphLaunch(exec, stream), "launch the graph"));
    TSR_TRY(
        check(driver.eventRecord(done, stream), "record an event in a stream"));
    TSR_TRY(check(driver.streamWaitEvent(device.stream(), done, 0),
                  "make a stream wait for another"));
    device.follows = id;
    return Ok{};
  }

  Ran launch(Peers &peers, const Running &running) {
    const double began = now();
    TSR_TRY(submit(running));
    host = now() - began;
    return warm ? wait(peers, done) : finishFirst(peers, running);
  }

  /// Waits, and makes the graph for the next run.
  Ran finishFirst(Peers &peers, const Running &running) {
    TSR_TRY(wait(peers, done));
    warm = true;
    if ((flags & TESSERA_NO_GRAPH) || works.empty())
      return Ok{};
    peers.startWait();
    return capture(running);
  }

  /// Everything on our stream, and the event at its end.
  Ran submit(const Running &running) {
    TSR_TRY(exec ? check(driver.graphLaunch(exec, device.stream()),
                         "launch the graph")
                 : enqueueWorks(running));
    return record(done, 0);
  }

  /// All of them, those that may run beside others in a stream of their own.
  Ran enqueueWorks(const Running &running) {
    size_t until = 0; // when that is awaited; 0: it has nothing
    auto join = [&]() -> Ran {
      return std::exchange(until, 0) ? order(device.stream(), device.aside())
                                     : Ran(Ok{});
    };
    for (size_t i = 0; i < works.size(); ++i) {
      if (until == i)
        TSR_TRY(join());
      if (works[i]->until <= i + 1) {
        if (Status status = enqueue(i, running); !status)
          return stopAt(i, status);
        continue;
      }
      TSR_TRY(order(device.aside(), device.stream()));
      until = until ? std::min(until, works[i]->until) : works[i]->until;
      Device::Aside aside(device);
      if (Status status = enqueue(i, running); !status)
        return stopAt(i, status);
    }
    return join();
  }

  /// Enqueues one work, between breadcrumbs if it is a collective.
  Status enqueue(size_t i, const Running &running) {
    if (!works[i]->meetsPeers())
      return works[i]->run(running);
    TSR_TRY(leave(2 * i + 1));
    TSR_TRY(works[i]->run(running));
    return leave(2 * i + 2);
  }

  Stop stopAt(size_t i, const Status &status) const {
    return {i, works[i]->meetsPeers() ? TESSERA_PEER : TESSERA_INTERNAL,
            status.message()};
  }

  Status leave(size_t crumb) {
    crumbWords[1] = crumb;
    void *parameters[] = {crumbWords};
    return device.check(driver.launchKernel(mark, 1, 1, 1, 1, 1, 1, 0,
                                            device.stream(), parameters,
                                            nullptr),
                        "leave a breadcrumb");
  }

  Ran record(Event event, size_t work) {
    const Code code = driver.eventRecord(event, device.stream());
    if (code)
      return broken(code, "record an event", work);
    return Ok{};
  }

  /// The device says that something before failed.
  Stop broken(Code code, const char *what, size_t work) {
    std::string message = device.check(code, what).message();
    if (!(flags & TESSERA_CHECK_STEPS))
      message += "; what fails on a GPU shows later than where: a run that "
                 "checks each step names the op";
    return Stop{work, TESSERA_INTERNAL, message};
  }

  Ran capture(const Running &running) {
    TSR_TRY(
        check(driver.streamBeginCapture(device.stream(), kCaptureThreadLocal),
              "begin to record the graph"));
    Ran ran = enqueueWorks(running);
    Graph graph = nullptr;
    Ran ended = check(driver.streamEndCapture(device.stream(), &graph),
                      "record the graph");
    if (ran)
      ran = std::move(ended);
    if (ran)
      if (Status status = leaveKernels(binaries, graph); !status)
        ran = Stop{0, TESSERA_INTERNAL, status.message()};
    if (ran)
      ran = check(driver.graphInstantiate(&exec, graph, 0),
                  "make the graph ready");
    if (graph)
      driver.graphDestroy(graph);
    return ran;
  }

  //===--------------------------------------------------------------------===//
  // Step by step
  //===--------------------------------------------------------------------===//

  /// With an event between any two works.
  Ran timeSteps(Peers &peers, const Running &running) {
    // Its time on the host's clock is between that before it was recorded and
    // that after a wait, as nothing is ahead of it. A wait that was slow once
    // is tried again.
    double began = 0;
    for (int tries = 0; tries < kClockTries; ++tries) {
      const double sent = now();
      TSR_TRY(record(events[0], 0));
      TSR_TRY(wait(peers, events[0]));
      const double answered = now();
      began = (sent + answered) / 2;
      clock = (answered - sent) / 2;
      if (clock < kClockError)
        break;
    }
    const double first = now();
    for (size_t i = 0; i < works.size(); ++i) {
      measured[i].enqueueBegin = i ? measured[i - 1].enqueueEnd : first;
      if (Status status = enqueue(i, running); !status)
        return stopAt(i, status);
      TSR_TRY(record(events[i + 1], i));
      measured[i].enqueueEnd = now();
    }
    TSR_TRY(record(done, 0));
    host = now() - first;
    TSR_TRY(wait(peers, done));
    double last = began;
    for (size_t i = 0; i < works.size(); ++i) {
      float milliseconds = 0;
      if (Status status = device.check(
              driver.eventElapsedTime(&milliseconds, events[0], events[i + 1]),
              "read the time of a step");
          !status)
        return Stop{i, TESSERA_INTERNAL, status.message()};
      // Where the device waited for the host, that is no step's time.
      measured[i].begin = std::max(last, measured[i].enqueueBegin - clock);
      measured[i].end = last =
          std::max(measured[i].begin, began + 1e-3 * milliseconds);
    }
    return Ok{};
  }

  /// Each work alone, with a line in the log before and after it.
  Ran checkSteps(Peers &peers, const StepNames &names, const Running &running) {
    measured.resize(works.size());
    host = 0;
    for (size_t i = 0; i < works.size(); ++i) {
      peers.log(TESSERA_LOG_INFO, describeStep(i, names, *works[i]));
      const double began = now();
      if (Status status = enqueue(i, running); !status)
        return stopAt(i, status);
      TSR_TRY(record(done, i));
      const double enqueued = now();
      host += enqueued - began;
      if (Ran ran = wait(peers, done); !ran)
        return Stop{i, ran.error().code, ran.message()};
      measured[i] = {began, now(), began, enqueued};
      char text[64];
      snprintf(text, sizeof text, "step %zu took %.1f us", i,
               1e6 * (measured[i].end - began));
      peers.log(TESSERA_LOG_INFO, text);
    }
    return Ok{};
  }

  //===--------------------------------------------------------------------===//
  // Waiting
  //===--------------------------------------------------------------------===//

  /// Tells the watch what the stream has come to; whether that is news.
  bool follow(Watch *watch) {
    const uint32_t value = crumb ? *crumb : 0;
    if (value == seen || value == 0)
      return false;
    seen = value;
    if (watch && value % 2)
      watch->begin(value / 2);
    else if (watch)
      watch->end(value / 2 - 1);
    return true;
  }

  /// Of what has ended: the next run begins without breadcrumbs.
  void forget() {
    if (crumb)
      *crumb = 0;
    seen = 0;
  }

  /// The work that the stream's last breadcrumb is of.
  size_t lastSeen() const { return seen ? (seen - 1) / 2 : 0; }

  Ran wait(Peers &peers, Event event) {
    const double began = now();
    Poll &poll = peers.startWait();
    while (true) {
      const Code code = driver.eventQuery(event);
      if (follow(peers.watch()))
        peers.startWait();
      const double waited = now() - began;
      if (code == 0) {
        expected = waited;
        forget();
        return Ok{};
      }
      if (code != kNotReady)
        return broken(code, "finish a run", lastSeen());
      for (Companion *companion : device.companions)
        if (Status status = companion->poll(); !status)
          return Stop{lastSeen(), TESSERA_PEER, status.message()};
      if (mark)
        if (Status status = poll.poll(); !status)
          return Stop{lastSeen(), TESSERA_PEER, status.message()};
      // A sleep ends late: not around the time that the last wait took.
      if (waited > kSpinSeconds &&
          std::abs(waited - expected) > kSpinSeconds + 0.1 * expected) {
        timespec pause{0, kSleepNanoseconds};
        nanosleep(&pause, nullptr);
      }
    }
  }

  /// After a failure: ends what is in flight, or notes that it does not end.
  void settle() {
    for (Companion *companion : device.companions)
      companion->abort();
    auto ends = [&](Stream stream) {
      return driver.streamQuery(stream) != kNotReady;
    };
    for (const double began = now(); now() - began < kGraceSeconds;) {
      if (ends(device.stream()) && ends(device.aside())) {
        // No wait any more, but it writes out what kernels have printed.
        driver.streamSynchronize(device.stream());
        return;
      }
      timespec pause{0, 1'000'000};
      nanosleep(&pause, nullptr);
    }
    device.giveUp();
  }

  Device &device;
  const Driver &driver;
  Binaries &binaries;
  const Function mark; ///< if there are works that meet peers
  std::span<const std::unique_ptr<Work>> works;
  const uint32_t flags;
  double expected = 0;       ///< the length of the last wait
  bool warm = false;         ///< all works have run once
  Event done = nullptr;      ///< at the end of what was enqueued last
  Event forked = nullptr;    ///< in the stream of a caller
  std::vector<Event> events; ///< before the first work, and after each
  GraphExec exec = nullptr;
  std::vector<StepTime> measured;
  double clock = 0; ///< the error of `measured`
  double host = 0;
  /// 2 * i + 1 when collective i began, 2 * i + 2 when it ended.
  volatile uint32_t *crumb = nullptr;
  DevicePointer crumbWords[2] = {}; ///< for `mark`: where, and what
  uint32_t seen = 0;
};

} // namespace

Result<std::unique_ptr<Program>>
tessera::cuda::makeProgram(Device &device, Binaries &binaries, Function mark,
                           std::span<const std::unique_ptr<Work>> works,
                           uint32_t flags) {
  auto program =
      std::make_unique<CUDAProgram>(device, binaries, mark, works, flags);
  TSR_TRY(program->prepare());
  return std::unique_ptr<Program>(std::move(program));
}
