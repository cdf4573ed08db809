//===- NCCLTest.cpp - communicators and their failures --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On the fake driver and the fake NCCL: which communicators there are, what is
// called on them, and that every rank ends in time with the same verdict when
// one of them does not take part. That the right bytes move, CollectivesTest
// and MovesTest show on the same backend.
//
//===----------------------------------------------------------------------===//

#include "FakeNCCL.h"
#include "OnFake.h"

#include <chrono>
#include <mutex>

using namespace tessera;
using namespace tessera::test;
using fb::CollectiveKind;

namespace {

const FakeNCCL &fake() {
  static const auto &found = openFake<FakeNCCL>("libnccl.so.2", "fake_nccl");
  return found;
}
class NCCL : public OnFake<fake> {};

std::mutex logMutex;
std::vector<std::string> lines;
void keepLine(void *, tessera_log_level, const char *message) {
  std::lock_guard lock(logMutex);
  lines.push_back(message);
}
int linesWith(const std::string &part) {
  std::lock_guard lock(logMutex);
  return std::count_if(
      lines.begin(), lines.end(),
      [&](const std::string &line) { return contains(line, part); });
}

double seconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string makeGather(const char *mesh) {
  PlanBuilder b(mesh);
  int x = b.input("x", {8}, "[did(tp) * _]");
  int y = b.output("y", {8}, "[_]");
  b.collective(CollectiveKind::AllGather, x, y, {"tp"});
  return b.module();
}

TEST_F(NCCL, OneCommunicatorAPartition) {
  PlanBuilder b("<dp = 2, tp = 2>");
  auto step = [&](CollectiveKind kind, const char *from, const char *to,
                  std::vector<std::string> axes) {
    std::string n = std::to_string(b.plan.steps.size());
    int x = b.input("x" + n, {8, 4}, from);
    int y = b.output("y" + n, {8, 4}, to);
    b.collective(kind, x, y, axes);
  };
  step(CollectiveKind::AllGather, "[did(tp) * _, _]", "[_, _]", {"tp"});
  step(CollectiveKind::AllReduce, "[_, _], partial = [dp : sum]", "[_, _]",
       {"dp"});
  step(CollectiveKind::ReduceScatter, "[_, _], partial = [tp : sum]",
       "[did(tp) * _, _]", {"tp"});
  // The world in the order of ranks, and in another one.
  step(CollectiveKind::AllGather, "[did(dp) * did(tp) * _, _]", "[_, _]",
       {"dp", "tp"});
  step(CollectiveKind::AllGather, "[did(tp) * did(dp) * _, _]", "[_, _]",
       {"tp", "dp"});
  // Not NCCL's: it is unpacked.
  step(CollectiveKind::AllGather, "[_, did(tp) * _]", "[_, _]", {"tp"});
  step(CollectiveKind::Slice, "[_, _]", "[_, did(tp) * _]", {});
  lines.clear();
  RunOptions options;
  options.runs = 3;
  options.context.log = keepLine;
  std::mutex mutex;
  std::array<tessera_communicator, 4> sums{}; // of all ranks
  options.inspect = [&](tessera_binding *binding, int) {
    ASSERT_EQ(tessera_binding_communicator_count(binding), sums.size());
    for (size_t i = 0; i < sums.size(); ++i) {
      auto each = sized<tessera_communicator>();
      ASSERT_OK(tessera_binding_communicator(binding, i, &each));
      std::lock_guard lock(mutex);
      sums[i].calls += each.calls;
      sums[i].bytes_sent += each.bytes_sent;
      sums[i].bytes_received += each.bytes_received;
    }
    ASSERT_EQ(tessera_binding_step_count(binding), 7u);
    auto step = sized<tessera_step>();
    ASSERT_OK(tessera_binding_step(binding, 0, &step));
    EXPECT_STREQ(step.text, "NCCL's all-gather of 16 x f32, 2 ranks");
    ASSERT_OK(tessera_binding_step(binding, 5, &step));
    EXPECT_STREQ(step.text, "1 sends of 64 bytes, 1 receives of 64 bytes, 2 "
                            "launches to copy and fold");
  };
  layout::Mesh mesh = *layout::parseMesh("<dp = 2, tp = 2>");
  runModule(
      b.module(), 4,
      [](const std::string &, const layout::Shape &i, int) {
        return i[0] * 4 + i[1];
      },
      [](const std::string &port, const layout::Shape &i, int) {
        bool sum = port == "y1" || port == "y2";
        return (i[0] * 4 + i[1]) * (sum ? 2 : 1);
      },
      options);
  EXPECT_EQ(linesWith("NCCL 2.28.9: communicator 1, of ranks [0, 1, 2, 3]"), 4);
  EXPECT_EQ(linesWith("communicator 2, of ranks [0, 1], split"), 2);
  EXPECT_EQ(linesWith("communicator 2, of ranks [2, 3], split"), 2);
  EXPECT_EQ(linesWith("communicator 3, of ranks [0, 2], split"), 2);
  EXPECT_EQ(linesWith("communicator 4, of ranks [0, 2, 1, 3], split"), 4);
  EXPECT_EQ(linesWith("communicator 5"), 0);
  // By four ranks, once to run and once to record.
  EXPECT_EQ(fake().calls("allGather"), 2 * 4 * 3);
  EXPECT_EQ(fake().calls("allReduce"), 2 * 4);
  EXPECT_EQ(fake().calls("reduceScatter"), 2 * 4);
  EXPECT_EQ(fake().calls("send"), 2 * 4);
  // The messages of a phase are a group; a collective alone needs none.
  EXPECT_EQ(fake().calls("groupEnd"), 2 * 4);
  // What the report has of a run is what NCCL was called with.
  auto bytes = [](const char *name, int ranks) {
    return fake().bytes(name, ranks);
  };
  EXPECT_EQ(2 * sums[0].calls, 2 * 4 * (1u + 2)); // a send, a receive
  EXPECT_EQ(2 * sums[1].calls, 2 * 4 * 2u);
  EXPECT_EQ(2 * (sums[0].bytes_sent + sums[3].bytes_sent),
            3 * bytes("allGather", 4) + bytes("send", 4));
  EXPECT_EQ(2 * (sums[0].bytes_received + sums[3].bytes_received),
            3 * bytes("allGather", 4) + bytes("recv", 4));
  EXPECT_EQ(2 * sums[1].bytes_sent,
            bytes("allGather", 2) + bytes("reduceScatter", 2));
  EXPECT_EQ(2 * sums[2].bytes_sent, bytes("allReduce", 2));
  EXPECT_EQ(fake().calls("commAbort"), 0);
}

TEST_F(NCCL, TensorsOfOneStepAreOneGroup) {
  PlanBuilder b("<tp = 2>");
  std::vector<fb::Pair> pairs;
  for (fb::DType dtype : {fb::DType::F32, fb::DType::F64}) {
    std::string n = std::to_string(pairs.size());
    int x = b.input("x" + n, {8}, "[_], partial = [tp : sum]", dtype);
    pairs.emplace_back(x, b.output("y" + n, {8}, "[_]", dtype));
  }
  b.collective(CollectiveKind::AllReduce, pairs[0].source(), pairs[0].target(),
               {"tp"}, fb::Combiner::Sum, {pairs[1]});
  RunOptions options;
  options.runs = 3;
  options.inspect = [&](tessera_binding *binding, int) {
    auto step = sized<tessera_step>();
    ASSERT_OK(tessera_binding_step(binding, 0, &step));
    EXPECT_STREQ(step.text,
                 "NCCL's all-reduce of 8 x f32 and 8 x f64, 2 ranks");
  };
  runModule(
      b.module(), 2,
      [](const std::string &port, const layout::Shape &i, int rank) {
        return i[0] + (port == "x1") * 100 + rank;
      },
      [](const std::string &port, const layout::Shape &i, int) {
        return 2 * (i[0] + (port == "y1") * 100) + 1;
      },
      options);
  // By two ranks, once to run and once to record.
  EXPECT_EQ(fake().calls("allReduce"), 2 * 2 * 2);
  EXPECT_EQ(fake().calls("groupEnd"), 2 * 2);
  // What NCCL recorded in the graph is not in what runs.
  EXPECT_EQ(fake().calls("event"), 0);
}

TEST_F(NCCL, SymmetricMemoryIsShared) {
  PlanBuilder b("<dp = 2, tp = 2>");
  int x = b.input("x", {8, 64}, "[did(tp) * _, _]");
  int s = b.tensor("s", {8, 64}, "[did(tp) * _, _]", fb::Storage::Symmetric);
  int t = b.tensor("t", {8, 64}, "[_, _]", fb::Storage::Symmetric);
  int y = b.output("y", {8, 64}, "[_, _]");
  b.copy(x, s);
  b.collective(CollectiveKind::AllGather, s, t, {"tp"});
  b.copy(t, y);
  auto value = [](const std::string &, const layout::Shape &i, int) {
    return i[0] * 64 + i[1];
  };
  for (uint32_t flags : {TESSERA_SYMMETRIC, TESSERA_COPY_ENGINES}) {
    fake().reset();
    lines.clear();
    RunOptions options;
    options.runs = 3;
    options.context.flags = flags;
    options.context.log = keepLine;
    runModule(b.module(), 4, value, value, options);
    EXPECT_EQ(fake().calls("memAlloc"), 4);
    // On the communicator of the world and on that of the group.
    EXPECT_EQ(fake().calls("commWindowRegister"), 8);
    EXPECT_EQ(linesWith("3072 bytes of symmetric memory are shared by ranks "
                        "[0, 1, 2, 3]"),
              4);
  }
}

TEST_F(NCCL, RowsAreReadFromPeersOrGathered) {
  PlanBuilder b("<dp = 2, tp = 2>");
  int x = b.input("x", {7, 6}, "[did(tp) * _, _]");
  int z = b.input("z", {7, 6}, "[did(tp) * _, _]");
  int at = b.input("at", {2, 5}, "[did(dp) * _, did(tp) * _]", fb::DType::I64);
  int table =
      b.tensor("table", {7, 6}, "[did(tp) * _, _]", fb::Storage::Symmetric);
  int y = b.output("y", {2, 5, 6}, "[did(dp) * _, did(tp) * _, _]");
  b.copy(x, table);
  b.fetch(table, {at}, y, {"tp"});
  b.copy(z, table); // which no peer may see
  auto row = [](const layout::Shape &i) { return (i[0] * 5 + i[1]) % 9 - 1; };
  auto value = [&](const std::string &port, const layout::Shape &i, int) {
    return port == "at" ? row(i) : port == "z" ? -1 : 1 + i[0] * 6 + i[1];
  };
  auto expected = [&](const std::string &, const layout::Shape &i, int) {
    const int64_t r = row(i);
    return r < 0 || r > 6 ? 0 : 1 + r * 6 + i[2];
  };
  const std::string unreached =
      "a fetch gathers its whole table: cannot reach GPU 2: ";
  for (const char *apart : {"", "3 to 2", "3 to 1"}) {
    setenv("TESSERA_FAKE_CUDA_APART", apart, 1);
    fake().reset();
    lines.clear();
    // (That GPU 1 is out of reach is nothing to the group of GPU 3.)
    const bool isGathered = std::string(apart) == "3 to 2";
    RunOptions options;
    options.runs = 3;
    options.context.log = keepLine;
    options.inspect = [&](tessera_binding *binding, int) {
      auto report = sized<tessera_collective>();
      ASSERT_OK(tessera_binding_collective(binding, 0, &report));
      EXPECT_STREQ(report.kind, "fetch");
    };
    runModule(b.module(), 4, value, expected, options);
    EXPECT_EQ(linesWith(unreached), isGathered ? 4 : 0);
    // Once to run and once to record.
    EXPECT_EQ(fake().calls("allGather"), isGathered ? 4 * 2 : 0);
    EXPECT_EQ(fake().calls("allReduce"), isGathered ? 0 : 4 * 2 * 2);
  }
  unsetenv("TESSERA_FAKE_CUDA_APART");
}

TEST_F(NCCL, SymmetricMemoryOfAModuleWithoutPeersIsSharedLater) {
  // The second module takes over what the first one has had.
  auto plan = [](CollectiveKind kind, const char *from, const char *to) {
    PlanBuilder b("<tp = 2>");
    int x = b.input("x", {8, 64}, from);
    int s = b.tensor("s", {8, 64}, from, fb::Storage::Symmetric);
    int t = b.tensor("t", {8, 64}, to, fb::Storage::Symmetric);
    int y = b.output("y", {8, 64}, to);
    b.copy(x, s);
    b.collective(kind, s, t, {"tp"});
    b.copy(t, y);
    return b.module();
  };
  const char *whole = "[_, _]", *part = "[did(tp) * _, _]";
  const std::string modules[] = {plan(CollectiveKind::Slice, whole, part),
                                 plan(CollectiveKind::AllGather, part, whole)};
  tessera_context_options options{};
  options.flags = TESSERA_SYMMETRIC;
  onRanks(
      2,
      [&](tessera_context *context) {
        for (const std::string &file : modules) {
          tessera_module *module;
          ASSERT_OK(
              tessera_module_load(context, file.data(), file.size(), &module));
          std::vector<float> memory[2] = {std::vector<float>(512),
                                          std::vector<float>(512)};
          void *pointers[] = {memory[0].data(), memory[1].data()};
          tessera_binding *binding;
          ASSERT_OK(tessera_binding_create(module, nullptr, 0, pointers, 2,
                                           &binding));
          ASSERT_OK(tessera_binding_run(binding));
          tessera_binding_destroy(binding);
          tessera_module_destroy(module);
        }
      },
      options);
  EXPECT_EQ(fake().calls("memAlloc"), 2);
  EXPECT_EQ(fake().calls("commWindowRegister"), 2);
}

TEST_F(NCCL, ABindingThatFailsOnOneRankLeavesSymmetricMemoryAlike) {
  PlanBuilder b("<tp = 2>");
  int n = b.symbol("n", 1024);
  int x = b.input("x", {Size::symbol(n), 64}, "[did(tp) * _, _]");
  int t =
      b.tensor("t", {Size::symbol(n), 64}, "[_, _]", fb::Storage::Symmetric);
  int y = b.output("y", {Size::symbol(n), 64}, "[_, _]");
  b.collective(CollectiveKind::AllGather, x, t, {"tp"});
  b.copy(t, y);
  tessera_context_options options{};
  options.flags = TESSERA_SYMMETRIC;
  withModule(
      b.module(), 2,
      [&](tessera_module *module, int rank) {
        std::vector<float> memory[2] = {std::vector<float>(1 << 16),
                                        std::vector<float>(1 << 16)};
        void *pointers[] = {memory[0].data(), memory[1].data()};
        auto bind = [&](int64_t n, size_t count) {
          tessera_binding *binding;
          std::string error = take(
              tessera_binding_create(module, &n, 1, pointers, count, &binding));
          if (error.empty()) {
            EXPECT_OK(tessera_binding_run(binding));
            tessera_binding_destroy(binding);
          }
          return error;
        };
        EXPECT_EQ(bind(8, 2), "");
        EXPECT_ERROR(bind(512, rank == 1 ? 1 : 2), "1 pointers were given");
        // The fake compares the sizes of ranks' windows.
        EXPECT_EQ(bind(64, 2), "");
      },
      options);
}

TEST_F(NCCL, RanksMustShareMemoryAlike) {
  for (uint32_t flags : {TESSERA_SYMMETRIC, TESSERA_COPY_ENGINES}) {
    auto adapt = [&](int rank, tessera_context_options &options) {
      options.backend = "cuda";
      options.flags = rank ? flags : 0;
    };
    for (const std::string &error : getContextErrors(2, adapt))
      EXPECT_EQ(error,
                "ranks 0 and 1 differ in what they run on: target or flags");
  }
}

TEST_F(NCCL, WithoutPeerAccessNothingIsShared) {
  PlanBuilder b("<dp = 2, tp = 2>");
  int x = b.input("x", {8, 64}, "[did(tp) * _, _]");
  int t = b.tensor("t", {8, 64}, "[_, _]", fb::Storage::Symmetric);
  int y = b.output("y", {8, 64}, "[_, _]");
  b.collective(CollectiveKind::AllGather, x, t, {"tp"});
  b.copy(t, y);
  struct Case {
    uint32_t flags;
    const char *windows, *apart, *error;
  };
  for (const Case &each :
       {Case{TESSERA_SYMMETRIC, "4", "",
             "NCCL has no peer access between ranks [0, 1, 2, 3], on GPUs [0, "
             "1, 2, 3], and cannot map memory between them; run without "
             "--symmetric (TESSERA_SYMMETRIC)"},
        Case{TESSERA_COPY_ENGINES, "4 null", "3 to 1",
             "NCCL has no peer access between ranks [0, 1, 2, 3], on GPUs [0, "
             "1, 2, 3], and cannot map memory between them: GPU 3 of rank 3 "
             "cannot reach GPU 1 of rank 1; run without --copy-engines "
             "(TESSERA_COPY_ENGINES)"},
        // Only the groups of an axis: the first is named, and other pairs are
        // not asked about.
        Case{TESSERA_SYMMETRIC | TESSERA_COPY_ENGINES, "2", "0 to 2",
             "NCCL has no peer access between ranks [0, 1], on GPUs [0, 1], "
             "and cannot map memory between them; run without --symmetric "
             "(TESSERA_SYMMETRIC) and --copy-engines "
             "(TESSERA_COPY_ENGINES)"}}) {
    setenv("TESSERA_FAKE_NCCL_NO_WINDOWS", each.windows, 1);
    setenv("TESSERA_FAKE_CUDA_APART", each.apart, 1);
    for (bool control : {true, false}) {
      tessera_context_options options{};
      options.flags = each.flags;
      options.control = control;
      withModule(
          b.module(), 4,
          [&](tessera_module *module, int) {
            std::vector<float> memory[2] = {std::vector<float>(256),
                                            std::vector<float>(512)};
            // Also when it is tried again.
            for (int i = 0; i < 2; ++i)
              EXPECT_EQ(bindError(module, {},
                                  {memory[0].data(), memory[1].data()},
                                  TESSERA_UNSUPPORTED),
                        each.error);
          },
          options);
    }
  }
  unsetenv("TESSERA_FAKE_NCCL_NO_WINDOWS");
  unsetenv("TESSERA_FAKE_CUDA_APART");
  EXPECT_EQ(fake().calls("allGather"), 0);
}

/// Says what a rank gets to hear from an NCCL of that version. The process,
/// which keeps the one that it has opened, ends.
[[noreturn]] void sayWithVersion(const char *version, uint32_t flags) {
  setenv("TESSERA_FAKE_NCCL_VERSION", version, 1);
  const std::string file = makeGather("<tp = 2>");
  tessera_threads *group;
  take(tessera_threads_create(2, &group));
  auto textOf = [&](int rank) {
    auto options = sized<tessera_context_options>();
    options.rank = rank;
    options.world = 2;
    options.transport = "threads";
    options.handle = group;
    options.backend = "cuda";
    options.flags = flags;
    tessera_context *context;
    tessera_module *module;
    auto memory = sized<tessera_memory>();
    std::string text = take(tessera_context_create(&options, &context));
    if (text.empty())
      text =
          take(tessera_module_load(context, file.data(), file.size(), &module));
    if (text.empty())
      text = take(tessera_module_memory(module, nullptr, 0, &memory));
    return text;
  };
  std::thread other([&] { textOf(1); });
  fprintf(stderr, "[%s]", textOf(0).c_str());
  other.join();
  _exit(0);
}

TEST_F(NCCL, OlderVersions) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto exits = testing::ExitedWithCode(0);
  EXPECT_EXIT(sayWithVersion("21705", 0), exits,
              "is NCCL 2.17.5; 2.18.0 or later is needed");
  EXPECT_EXIT(sayWithVersion("22707", TESSERA_SYMMETRIC), exits,
              "symmetric memory needs NCCL 2.28.0 or later, this is 2.27.7");
  EXPECT_EXIT(sayWithVersion("22707", 0), exits, "\\[\\]");
}

TEST_F(NCCL, MulticastMustBeOff) {
  unsetenv("NCCL_NVLS_ENABLE");
  withModule(makeGather("<tp = 2>"), 2, [&](tessera_module *module, int) {
    auto memory = sized<tessera_memory>();
    tessera_status *status = tessera_module_memory(module, nullptr, 0, &memory);
    EXPECT_STREQ(tessera_status_location(status), "test.mlir:1:1");
    EXPECT_ERROR(take(status), "set NCCL_NVLS_ENABLE=0 in the environment");
  });
  setenv("NCCL_NVLS_ENABLE", "0", 1);
}

TEST_F(NCCL, ARankThatCannotJoinEndsTheWaitOfTheOthers) {
  for (bool control : {true, false}) {
    fake().reset();
    fake().fail(1);
    tessera_context_options options{};
    options.control = control;
    options.deadline = 1;
    const double began = seconds();
    withModule(
        makeGather("<dp = 2, tp = 2>"), 4,
        [&](tessera_module *module, int rank) {
          std::vector<float> memory[2] = {std::vector<float>(4),
                                          std::vector<float>(8)};
          void *pointers[] = {memory[0].data(), memory[1].data()};
          tessera_binding *binding;
          tessera_status *status =
              tessera_binding_create(module, nullptr, 0, pointers, 2, &binding);
          EXPECT_LT(seconds() - began, 3);
          EXPECT_EQ(tessera_status_code(status), TESSERA_PEER);
          EXPECT_STREQ(tessera_status_location(status), "test.mlir:1:1");
          if (control)
            EXPECT_EQ(tessera_status_rank(status), 1);
          EXPECT_ERROR(take(status),
                       control || rank == 1
                           ? "NCCL cannot make a communicator of all ranks: "
                             "remote error (told by the fake)"
                           : "NCCL has not brought all ranks together");
        },
        options);
  }
}

/// What the survivors of a run without rank 1 see.
struct Trouble {
  const char *name;
  int goodRuns;   ///< before it: 0 none, 1 the first, 2 a recorded graph too
  uint32_t flags; ///< of the contexts
  enum { StaysAway, Leaves, HasAnError } kind;
  bool native;
  bool control = true;
};

void PrintTo(const Trouble &trouble, std::ostream *out) {
  *out << trouble.name;
}

class Troubles : public NCCL, public testing::WithParamInterface<Trouble> {};

TEST_P(Troubles, EndWithOneVerdictInTime) {
  const Trouble &trouble = GetParam();
  const int ranks = 3;
  PlanBuilder b("<tp = 3>");
  std::string view = trouble.native ? "[did(tp) * _, _]" : "[_, did(tp) * _]";
  int x = b.input("x", {9, 9}, view);
  int h = b.tensor("h", {9, 9}, "[_, _]", fb::Storage::Symmetric);
  int y = b.output("y", {9, 9}, view);
  b.collective(CollectiveKind::AllGather, x, h, {"tp"});
  b.plan.steps.back()->op = "first";
  b.collective(CollectiveKind::Slice, h, y, {});
  int z = b.output("z", {9, 9}, "[_, _]");
  b.collective(CollectiveKind::AllGather, y, z, {"tp"});
  b.plan.steps.back()->op = "second";
  const std::string module = b.module();

  const double deadline = 1;
  tessera_context_options options{};
  options.control = trouble.control;
  options.deadline = deadline;
  options.flags = trouble.flags;
  std::atomic<int> survivors{trouble.kind == Trouble::HasAnError ? ranks
                                                                 : ranks - 1};
  std::atomic<double> began{0};
  withModule(
      module, ranks,
      [&](tessera_module *loaded, int rank) {
        std::vector<float> memory[3] = {std::vector<float>(81),
                                        std::vector<float>(81),
                                        std::vector<float>(81)};
        void *pointers[] = {memory[0].data(), memory[1].data(),
                            memory[2].data()};
        tessera_binding *binding;
        ASSERT_OK(
            tessera_binding_create(loaded, nullptr, 0, pointers, 3, &binding));
        for (int run = 0; run < trouble.goodRuns; ++run)
          ASSERT_OK(tessera_binding_run(binding));
        if (rank == 1 && trouble.kind != Trouble::HasAnError) {
          began = seconds();
          // Whoever leaves leaves now, the others are still there.
          if (trouble.kind == Trouble::StaysAway)
            while (survivors)
              std::this_thread::yield();
          tessera_binding_destroy(binding);
          return;
        }
        if (rank == 1) {
          began = seconds();
          fake().fail(1);
        }
        tessera_status *status = nullptr;
        // Without rank 1's part the run does not end, unless all have done it.
        for (int run = 0; run < 3 && !status; ++run)
          status = tessera_binding_run(binding);
        const double took = seconds() - began;
        EXPECT_LT(took, deadline + 2) << "on rank " << rank;
        EXPECT_EQ(tessera_status_code(status), TESSERA_PEER);
        if (trouble.control) {
          EXPECT_EQ(tessera_status_rank(status), 1);
          if (trouble.kind != Trouble::Leaves)
            EXPECT_STREQ(tessera_status_op(status), "first");
        }
        const char *expected =
            trouble.kind == Trouble::HasAnError ? "remote error"
            : !trouble.control                  ? "no answer"
            : trouble.kind == Trouble::Leaves   ? "rank 1 has left"
                                                : "rank 1";
        EXPECT_ERROR(take(status), expected);
        // For ever after.
        status = tessera_binding_run(binding);
        EXPECT_EQ(tessera_status_code(status), TESSERA_PEER);
        tessera_status_free(status);
        const double before = seconds();
        tessera_binding_destroy(binding);
        EXPECT_LT(seconds() - before, 1) << "on rank " << rank;
        --survivors;
      },
      options);
  // Contexts end at once too.
  EXPECT_LT(seconds() - began, 2 * deadline + 4);
}

INSTANTIATE_TEST_SUITE_P(
    NCCL, Troubles,
    testing::Values(
        Trouble{"AwayInTheFirstRun", 0, 0, Trouble::StaysAway, true},
        Trouble{"AwayWhenRecorded", 1, 0, Trouble::StaysAway, true},
        Trouble{"AwayInAGraph", 2, 0, Trouble::StaysAway, true},
        Trouble{"AwayFromAnExchange", 2, 0, Trouble::StaysAway, false},
        Trouble{"AwayWithoutGraphs", 2, TESSERA_NO_GRAPH, Trouble::StaysAway,
                true},
        Trouble{"AwayWithoutControl", 2, 0, Trouble::StaysAway, true, false},
        Trouble{"AwayFromSymmetricMemory", 2, TESSERA_SYMMETRIC,
                Trouble::StaysAway, true},
        Trouble{"AwayFromCopyEngines", 2, TESSERA_COPY_ENGINES,
                Trouble::StaysAway, true},
        Trouble{"LeavesCopyEngines", 2, TESSERA_COPY_ENGINES, Trouble::Leaves,
                true},
        Trouble{"ErrorOfCopyEngines", 2, TESSERA_COPY_ENGINES,
                Trouble::HasAnError, true},
        Trouble{"LeavesBeforeTheFirstRun", 0, 0, Trouble::Leaves, false},
        Trouble{"LeavesFromAGraph", 2, 0, Trouble::Leaves, true},
        Trouble{"ErrorInTheFirstRun", 0, 0, Trouble::HasAnError, true},
        Trouble{"ErrorInAGraph", 2, 0, Trouble::HasAnError, false}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
