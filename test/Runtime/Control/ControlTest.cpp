//===- ControlTest.cpp - ranks that die, stop, hang, skip and fail --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank is a process of its own. They meet through shared memory, which
// also stands for the transport: at each step a rank waits, polling, until all
// have arrived there. One of them misbehaves at one step; each of the others
// must get a verdict that names it, in time.
//
//===----------------------------------------------------------------------===//

#include "Runtime/Control/Control.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <new>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tessera;

namespace {

constexpr int kMaxWorld = 4;
constexpr int kSteps = 6;
constexpr double kDeadline = 0.6;

enum class Fault {
  None,
  Kill,
  Stop,
  Hang,
  Skip,
  Fail,
  Blame,
  Wonder,
  Leave,
  Absent,
  FailAll
};

struct Outcome {
  std::atomic<int> state; ///< 0 running, 1 finished in peace, 2 verdict
  int culprit;
  double waited; ///< from the begin of the step to the verdict
  char message[600], op[100], location[100];
};

struct Shared {
  std::atomic<int> arrived[2 * kSteps];
  std::atomic<int> agreed; ///< between the runs
  std::atomic<int> gathers, gathered;
  char parts[kMaxWorld][4096];
  Outcome outcomes[kMaxWorld];
};

class Names : public StepNames {
public:
  const char *op(int64_t step) const override { return ops[step]; }
  const char *location(int64_t step) const override { return places[step]; }

private:
  const char *ops[kSteps] = {"op0", "op1", "op2", "op3", "op4", "op5"};
  const char *places[kSteps] = {"m:0", "m:1", "m:2", "m:3", "m:4", "m:5"};
};

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Waits until `counter` reaches `count`.
void await(std::atomic<int> &counter, int count) {
  while (counter.load() < count)
    usleep(200);
}

struct Scenario {
  int world;
  Fault fault;
  int culprit;
  int step;
};

/// Joins the others at `counter`. False after a verdict, which is noted.
bool join(std::atomic<int> &counter, int world, Watch &watch,
          Outcome &outcome) {
  double begin = now();
  ++counter;
  while (counter.load() < world) {
    if (std::optional<Verdict> verdict = watch.poll()) {
      outcome.culprit = verdict->rank;
      outcome.waited = now() - begin;
      strncpy(outcome.message, verdict->message.c_str(),
              sizeof outcome.message - 1);
      strncpy(outcome.op, verdict->op.c_str(), sizeof outcome.op - 1);
      strncpy(outcome.location, verdict->location.c_str(),
              sizeof outcome.location - 1);
      outcome.state = 2;
      return false;
    }
    usleep(500);
  }
  return true;
}

/// The life of a rank; two runs of kSteps steps.
void live(Shared &shared, const Scenario &scenario, int rank) {
  int gathers = 0;
  AllGather allGather = [&](const void *mine, void *all, size_t bytes) {
    await(shared.gathered, gathers * scenario.world);
    std::memcpy(shared.parts[rank], mine, bytes);
    ++gathers;
    ++shared.gathers;
    await(shared.gathers, gathers * scenario.world);
    for (int i = 0; i < scenario.world; ++i)
      std::memcpy(static_cast<char *>(all) + i * bytes, shared.parts[i], bytes);
    ++shared.gathered;
    return Status(Ok{});
  };
  Outcome &outcome = shared.outcomes[rank];
  Result<std::unique_ptr<Watch>> started =
      startControl(rank, scenario.world, kDeadline, allGather);
  if (!started) {
    strncpy(outcome.message, started.message().c_str(),
            sizeof outcome.message - 1);
    return;
  }
  Watch &watch = **started;
  Names names;
  for (int run = 0; run < 2; ++run) {
    watch.beginRun(names);
    for (int step = 0; step < kSteps; ++step) {
      watch.begin(step);
      if (run == 1 && step == scenario.step &&
          (rank == scenario.culprit || scenario.fault == Fault::FailAll ||
           scenario.fault == Fault::Wonder)) {
        switch (scenario.fault) {
        case Fault::None:
        case Fault::Absent:
          break;
        case Fault::Kill:
          raise(SIGKILL);
          break;
        case Fault::Stop:
          raise(SIGSTOP);
          break;
        case Fault::Hang:
          sleep(30);
          break;
        case Fault::Skip:
          watch.end(step);
          continue;
        case Fault::Fail:
          watch.fail({"no memory left", "op2 of mine", "m:2", rank});
          return;
        case Fault::Blame:
          // Nobody may pass, so that all wait for the verdict.
          shared.arrived[run * kSteps + step] -= scenario.world;
          watch.fail({"rank 1 has left", "op2 of mine", "m:2", 1});
          break;
        case Fault::FailAll:
          // Nobody arrives, so that all wait for the verdict.
          shared.arrived[run * kSteps + step] -= scenario.world;
          watch.fail({"for a reason", "op", "m", rank});
          break;
        case Fault::Wonder:
          if (rank == 1)
            return;
          usleep(100'000);
          watch.fail({"nobody knows", "op2 of mine", "m:2", -1});
          break;
        case Fault::Leave:
          return;
        }
      }
      if (!join(shared.arrived[run * kSteps + step], scenario.world, watch,
                outcome))
        return;
      watch.end(step);
    }
    watch.endRun();
    if (run == 0) {
      if (scenario.fault == Fault::Absent && rank == scenario.culprit)
        sleep(30);
      if (!join(shared.agreed, scenario.world, watch, outcome))
        return;
    }
  }
  outcome.state = 1;
}

class Control : public ::testing::Test {
protected:
  Control()
      : memory(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        shared(*new (memory) Shared()) {}
  ~Control() override { munmap(memory, sizeof(Shared)); }

  void play(const Scenario &scenario) {
    std::vector<pid_t> children;
    for (int rank = 0; rank < scenario.world; ++rank) {
      pid_t child = fork();
      if (child == 0) {
        live(shared, scenario, rank);
        _exit(0);
      }
      children.push_back(child);
    }
    double until = now() + 20;
    std::vector<bool> ended(children.size(), false);
    auto running = [&](size_t i) {
      if (!ended[i] && waitpid(children[i], nullptr, WNOHANG) != 0)
        ended[i] = true;
      return !ended[i];
    };
    for (size_t i = 0; i < children.size(); ++i)
      while ((static_cast<int>(i) != scenario.culprit ||
              scenario.fault == Fault::Blame) &&
             running(i) && now() < until)
        usleep(2000);
    for (size_t i = 0; i < children.size(); ++i) {
      if (running(i)) {
        kill(children[i], SIGKILL);
        waitpid(children[i], nullptr, 0);
      }
    }
  }

  /// All others got a verdict on the culprit within the deadline and 2 seconds.
  void expectVerdicts(const Scenario &scenario, const std::string &says) {
    for (int rank = 0; rank < scenario.world; ++rank) {
      if (rank == scenario.culprit)
        continue;
      const Outcome &outcome = shared.outcomes[rank];
      SCOPED_TRACE("rank " + std::to_string(rank) +
                   " says: " + outcome.message);
      ASSERT_EQ(outcome.state, 2);
      EXPECT_EQ(outcome.culprit, scenario.culprit);
      EXPECT_LT(outcome.waited, kDeadline + 2);
      EXPECT_NE(std::string(outcome.message).find(says), std::string::npos);
      EXPECT_NE(std::string(outcome.message)
                    .find("rank " + std::to_string(scenario.culprit)),
                std::string::npos);
      if (scenario.fault == Fault::Absent) {
        EXPECT_STREQ(outcome.op, "");
      } else if (scenario.fault != Fault::Fail) {
        EXPECT_EQ(outcome.op, "op" + std::to_string(scenario.step));
        EXPECT_EQ(outcome.location, "m:" + std::to_string(scenario.step));
      } else {
        EXPECT_STREQ(outcome.op, "op2 of mine");
        EXPECT_STREQ(outcome.location, "m:2");
      }
    }
  }

  void *memory;
  Shared &shared;
};

TEST_F(Control, PeaceGivesNoVerdict) {
  play({4, Fault::None, -1, 0});
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(shared.outcomes[rank].state, 1) << shared.outcomes[rank].message;
}

TEST_F(Control, OneRankNeedsNobody) {
  play({1, Fault::None, -1, 0});
  EXPECT_EQ(shared.outcomes[0].state, 1) << shared.outcomes[0].message;
}

struct FaultCase {
  const char *name;
  Fault fault;
  const char *says;
};

class ControlFault
    : public Control,
      public ::testing::WithParamInterface<std::tuple<FaultCase, int>> {};

TEST_P(ControlFault, IsNamedByAllOthers) {
  const auto &[fault, culprit] = GetParam();
  Scenario scenario = {3, fault.fault, culprit, 2};
  double begin = now();
  play(scenario);
  expectVerdicts(scenario, fault.says);
  // Death and failure are known at once, not at the deadline.
  if (fault.fault == Fault::Kill || fault.fault == Fault::Fail) {
    EXPECT_LT(now() - begin, kDeadline + 2);
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllFaults, ControlFault,
    ::testing::Combine(
        ::testing::Values(
            FaultCase{"Killed", Fault::Kill, "died"},
            FaultCase{"Stopped", Fault::Stop, "has not answered"},
            FaultCase{"Hanging", Fault::Hang, "made no progress"},
            FaultCase{"Skipping", Fault::Skip, "without taking part"},
            FaultCase{"Failing", Fault::Fail, "failed: no memory left"}),
        ::testing::Values(0, 1, 2)),
    [](const auto &info) {
      return std::string(std::get<0>(info.param).name) + "Rank" +
             std::to_string(std::get<1>(info.param));
    });

TEST_F(Control, ARankThatIsAbsentBetweenRunsIsNamed) {
  for (int culprit : {0, 1}) {
    new (memory) Shared();
    Scenario scenario = {3, Fault::Absent, culprit, 0};
    play(scenario);
    expectVerdicts(scenario, "made no progress");
  }
}

TEST_F(Control, OfSeveralFailuresAllRanksGetTheSame) {
  play({4, Fault::FailAll, -1, 2});
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(shared.outcomes[rank].state, 2);
    EXPECT_EQ(shared.outcomes[rank].culprit, shared.outcomes[0].culprit);
    EXPECT_STREQ(shared.outcomes[rank].message, shared.outcomes[0].message);
  }
}

TEST_F(Control, ARankThatBlamesAnotherIsNotTheCulprit) {
  for (int speaker : {0, 2}) {
    new (memory) Shared();
    play({3, Fault::Blame, speaker, 2});
    for (int rank : {0, 1, 2}) {
      const Outcome &outcome = shared.outcomes[rank];
      EXPECT_EQ(outcome.state, 2) << outcome.message;
      EXPECT_EQ(outcome.culprit, 1);
      EXPECT_STREQ(outcome.message, "rank 1 has left");
      EXPECT_STREQ(outcome.op, "op2 of mine");
    }
  }
}

TEST_F(Control, WhoFailsBecauseARankHasLeftIsNotTheCulprit) {
  Scenario scenario = {3, Fault::Wonder, 1, 2};
  play(scenario);
  for (int rank : {0, 2}) {
    const Outcome &outcome = shared.outcomes[rank];
    EXPECT_EQ(outcome.state, 2);
    EXPECT_EQ(outcome.culprit, 1);
    EXPECT_STREQ(outcome.message, "rank 1 has left: nobody knows");
  }
}

TEST_F(Control, ARankThatLeavesEarlyIsNamed) {
  for (int culprit : {0, 1}) {
    new (memory) Shared();
    Scenario scenario = {3, Fault::Leave, culprit, 3};
    play(scenario);
    expectVerdicts(scenario, "has left");
  }
}

} // namespace
