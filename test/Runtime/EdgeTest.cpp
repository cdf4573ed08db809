//===- EdgeTest.cpp - what goes wrong, and what can be asked --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DamagedPlans.h"
#include "MLP.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

using namespace tessera;
using namespace tessera::test;

extern "C" int tessera_test_from_c(void);

namespace {

TEST(Context, CanBeMadeFromC) { EXPECT_EQ(tessera_test_from_c(), 1); }

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST(Binding, SymbolValuesAreChecked) {
  double data[1024] = {};
  withModule(MLP(2).b.module(kernels()), 2, [&](tessera_module *module, int) {
    std::vector<void *> pointers(4, data);
    EXPECT_ERROR(bindError(module, {66}, pointers),
                 "size batch = 66 is above its declared maximum 64");
    EXPECT_ERROR(bindError(module, {3}, pointers), "not a multiple of 2");
    EXPECT_ERROR(bindError(module, {-2}, pointers), "negative");
    EXPECT_ERROR(bindError(module, {}, pointers), "1 symbols, 0 values");
    EXPECT_ERROR(bindError(module, {2}, {data}), "4 ports, 1 pointers");
    EXPECT_ERROR(bindError(module, {2}, {data, data, nullptr, data}),
                 "port 'w1' needs 512 bytes, its pointer is null");
    EXPECT_ERROR(
        bindError(module, {2},
                  {data, reinterpret_cast<char *>(data) + 1, data, data}),
        "port 'w0' is not aligned");
  });
}

TEST(Binding, RanksMustAgreeOnSizes) {
  double data[1024] = {};
  withModule(MLP(2).b.module(kernels()), 2,
             [&](tessera_module *module, int rank) {
               EXPECT_ERROR(
                   bindError(module, {rank ? 2 : 4}, {data, data, data, data}),
                   "ranks 0 and 1 differ");
             });
}

/// What loading fails with, on each rank.
std::vector<std::string>
loadErrors(int ranks, const std::function<std::string(int)> &module) {
  std::vector<std::string> errors(ranks);
  onRanks(ranks, [&](tessera_context *context) {
    int rank = tessera_context_rank(context);
    std::string bytes = module(rank);
    tessera_module *loaded = nullptr;
    errors[rank] =
        take(tessera_module_load(context, bytes.data(), bytes.size(), &loaded));
    if (loaded)
      tessera_module_destroy(loaded);
  });
  return errors;
}

TEST(Loading, AllRanksNeedTheSameModule) {
  for (const std::string &error : loadErrors(2, [](int rank) {
         PlanBuilder b("<tp = 2>");
         b.input(rank ? "x" : "y", {4}, "[_]");
         return b.module();
       }))
    EXPECT_ERROR(error, "ranks 0 and 1 differ in the module they load");
}

TEST(Loading, ADamagedModuleOnOneRankIsAnErrorOnAll) {
  auto errors = loadErrors(2, [](int rank) {
    std::string module = MLP(2).b.module(kernels());
    if (rank == 1)
      module[5000] ^= 1;
    return module;
  });
  EXPECT_ERROR(errors[0], "rank 1: the module is damaged");
  EXPECT_ERROR(errors[1], "the module is damaged");
}

TEST(Loading, TheMeshMustFitTheRanks) {
  for (const std::string &error :
       loadErrors(2, [](int) { return MLP(4).b.module(kernels()); }))
    EXPECT_ERROR(error, "for a mesh of 4 devices");
}

TEST(Loading, CodeAndKernelsMustBeThere) {
  EXPECT_ERROR(loadErrors(1, [](int) { return MLP(1).b.module("no ELF"); })[0],
               "code does not load");
  MLP mlp(1);
  mlp.b.plan.steps[1]->action.AsLaunch()->symbol = "other";
  double data[1024] = {};
  withModule(mlp.b.module(kernels()), 1, [&](tessera_module *module, int) {
    EXPECT_ERROR(bindError(module, {2}, {data, data, data, data},
                           TESSERA_INVALID_MODULE),
                 "no kernel 'other'");
  });
}

TEST(Loading, TheModuleMustBeForTheBackend) {
  MLP mlp(2);
  mlp.b.forCUDA();
  for (const std::string &error :
       loadErrors(2, [&](int) { return mlp.b.module(kernels()); }))
    EXPECT_ERROR(error,
                 "the module is compiled for cuda:sm_90a; this context runs "
                 "cpu: compile with --target=cpu or use --backend cuda");
}

TEST(Running, AProcessorHasNoStreams) {
  std::vector<std::vector<double>> memory(4, std::vector<double>(1024));
  withModule(MLP(1).b.module(kernels()), 1, [&](tessera_module *loaded, int) {
    int64_t batch = 4;
    void *pointers[4];
    for (int i = 0; i < 4; ++i)
      pointers[i] = memory[i].data();
    tessera_binding *binding;
    ASSERT_OK(tessera_binding_create(loaded, &batch, 1, pointers, 4, &binding));
    EXPECT_ERROR(take(tessera_binding_enqueue(binding, nullptr)),
                 "has no streams");
    // The context is as good as before.
    EXPECT_OK(tessera_binding_run(binding));
    EXPECT_OK(tessera_binding_wait(binding));
    tessera_binding_destroy(binding);
  });
}

TEST(Running, ARankThatLeavesEndsTheWaitOfTheOthers) {
  std::string module = MLP(3).b.module(kernels());
  std::vector<std::vector<double>> memory(12, std::vector<double>(1024));
  withModule(module, 3, [&](tessera_module *loaded, int rank) {
    int64_t batch = 4;
    void *pointers[4];
    for (int i = 0; i < 4; ++i)
      pointers[i] = memory[rank * 4 + i].data();
    tessera_binding *binding;
    ASSERT_OK(tessera_binding_create(loaded, &batch, 1, pointers, 4, &binding));
    if (rank != 1) {
      tessera_status *status = tessera_binding_run(binding);
      EXPECT_EQ(tessera_status_code(status), TESSERA_PEER);
      EXPECT_STREQ(tessera_status_op(status), "tv.reshard");
      EXPECT_STREQ(tessera_status_location(status), "test.mlir:4:1");
      // Or one that left because of it: only a control channel knows more.
      std::string who = "rank " + std::to_string(tessera_status_rank(status));
      std::string first = take(status);
      EXPECT_ERROR(first, who + " has left");
      // Poisoned: the same error, without a wait.
      EXPECT_EQ(take(tessera_binding_run(binding)), first);
    }
    tessera_binding_destroy(binding);
  });
}

TEST(Running, ARankThatStaysAwayEndsTheWaitAtTheDeadline) {
  tessera_context_options options{};
  options.deadline = 0.2;
  static std::mutex mutex;
  static std::vector<std::string> lines;
  options.log = [](void *, tessera_log_level level, const char *message) {
    std::lock_guard lock(mutex);
    lines.push_back((level == TESSERA_LOG_WARNING ? "W " : "I ") +
                    std::string(message));
  };
  std::vector<std::vector<double>> memory(8, std::vector<double>(1024));
  std::atomic<bool> ended = false;
  withModule(
      MLP(2).b.module(kernels()), 2,
      [&](tessera_module *loaded, int rank) {
        int64_t batch = 4;
        void *pointers[4];
        for (int i = 0; i < 4; ++i)
          pointers[i] = memory[rank * 4 + i].data();
        tessera_binding *binding;
        ASSERT_OK(
            tessera_binding_create(loaded, &batch, 1, pointers, 4, &binding));
        if (rank == 0) {
          tessera_status *status = tessera_binding_run(binding);
          EXPECT_EQ(tessera_status_rank(status), 1);
          EXPECT_ERROR(take(status),
                       "no answer for 0.2 s: rank 1 has not come");
          ended = true;
        }
        while (!ended)
          std::this_thread::yield();
        tessera_binding_destroy(binding);
      },
      options);
  // Both bound, one failed.
  std::sort(lines.begin(), lines.end());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_ERROR(lines[0], "I bound: 4 steps");
  EXPECT_ERROR(lines[2], "W this context ends: no answer");
}

TEST(Running, TheControlChannelNamesTheRankThatLeft) {
  tessera_context_options options{};
  options.control = 1;
  options.deadline = 3;
  std::vector<std::vector<double>> memory(12, std::vector<double>(1024));
  withModule(
      MLP(3).b.module(kernels()), 3,
      [&](tessera_module *loaded, int rank) {
        int64_t batch = 4;
        void *pointers[4];
        for (int i = 0; i < 4; ++i)
          pointers[i] = memory[rank * 4 + i].data();
        tessera_binding *binding;
        ASSERT_OK(
            tessera_binding_create(loaded, &batch, 1, pointers, 4, &binding));
        EXPECT_OK(tessera_binding_run(binding));
        if (rank != 1) {
          tessera_status *status = tessera_binding_run(binding);
          EXPECT_EQ(tessera_status_code(status), TESSERA_PEER);
          EXPECT_EQ(tessera_status_rank(status), 1);
          EXPECT_STREQ(tessera_status_location(status), "test.mlir:4:1");
          EXPECT_ERROR(take(status), "rank 1 has left");
        }
        tessera_binding_destroy(binding);
      },
      options);
}

TEST(Loading, WrongPlansThatLoadNeverCrashWhenBound) {
  // Symbols, aliases, constants, all kinds of steps.
  PlanBuilder b("<tp = 1>");
  int n = b.symbol("n", 16);
  int x = b.input("x", {Size::symbol(n), 8}, "[_, _]");
  int t = b.alias("t", x, fb::AliasKind::Transpose, {8, Size::symbol(n)},
                  "[_, _]", {1, 0});
  int r = b.alias("r", x, fb::AliasKind::Reshape, {Size::symbol(n), 2, 4},
                  "[_, _, _]");
  int s = b.alias("s", r, fb::AliasKind::Slice, {Size::symbol(n), 1, 4},
                  "[_, _, _]", {}, {0, 1, 0});
  int d = b.alias("d", x, fb::AliasKind::Shard, {Size::symbol(n), 8}, "[_, _]");
  int c = b.tensor("c", {8}, "[_]", fb::Storage::Constant);
  int h = b.tensor("h", {8, 8}, "[_, _]", fb::Storage::Symmetric);
  int y = b.output("y", {8, 8}, "[_, _]");
  int z = b.output("z", {Size::symbol(n), 1, 4}, "[_, _, _]");
  b.contract(t, {0, 2}, d, {2, 1}, h, {0, 1});
  b.launch("twice_plus", {h, c}, {valueScalar(Size::symbol(n, 2))});
  b.collective(fb::CollectiveKind::Exchange, h, y, {});
  b.copy(s, z);
  onRanks(1, [&](tessera_context *context) {
    Survivors survivors = loadDamaged(
        context, b.plan, {{0}, {3}, {16}}, [](ModuleBuilder &module) {
          module.setCode(kernels());
          module.setConstants(std::string(64, '\0'));
        });
    EXPECT_GT(survivors.loads, survivors.rounds / 10);
    EXPECT_GT(survivors.binds, survivors.rounds / 4);
  });
}

TEST(Context, OptionsAreChecked) {
  tessera_context *context;
  tessera_context_options options{};
  EXPECT_ERROR(take(tessera_context_create(&options, &context)), "size");
  options.size = sizeof options;
  options.world = 2;
  EXPECT_ERROR(take(tessera_context_create(&options, &context)),
               "needs a transport");
  options.transport = "carrier-pigeon";
  EXPECT_ERROR(take(tessera_context_create(&options, &context)),
               "cannot open transport 'carrier-pigeon'");
  options.transport = "threads";
  EXPECT_ERROR(take(tessera_context_create(&options, &context)),
               "needs a tessera_threads");
  tessera_threads *group;
  ASSERT_OK(tessera_threads_create(3, &group));
  options.handle = group;
  EXPECT_ERROR(take(tessera_context_create(&options, &context)),
               "the transport says 0 of 3");
  tessera_threads_destroy(group);
  options = {};
  options.size = sizeof options;
  options.world = 1;
  options.backend = "abacus";
  EXPECT_ERROR(take(tessera_context_create(&options, &context)),
               "there is no backend 'abacus': it is \"cpu\" or \"cuda\"");
  auto expectWrong = [&](const tessera_context_options &wrong,
                         const char *says) {
    EXPECT_ERROR(take(tessera_context_create(&wrong, &context)), says);
  };
  tessera_context_options alone{};
  alone.size = sizeof alone;
  alone.world = 1;
  for (int rank : {5, 1, -1}) {
    options = alone;
    options.rank = rank;
    expectWrong(options,
                ("there is no rank " + std::to_string(rank) + " of 1").c_str());
  }
  options = alone;
  options.world = -1;
  expectWrong(options, "there is no rank 0 of -1");
  for (double deadline : {-1.0, double(NAN), double(INFINITY)}) {
    options = alone;
    options.deadline = deadline;
    expectWrong(options, "must be a number of seconds");
  }
  options = alone;
  options.flags = 64 | TESSERA_TIME_STEPS;
  expectWrong(options, "there are no flags 64");
  options = alone;
  options.allocate = [](void *, size_t) -> void * { return nullptr; };
  expectWrong(options, "come together");
  options = alone;
  options.size = offsetof(tessera_context_options, transport) + 3;
  expectWrong(options, "size is not set");
  options = alone;
  tessera_bootstrap bootstrap{};
  options.bootstrap = &bootstrap;
  expectWrong(options, "bootstrap's size");
  bootstrap.size = sizeof bootstrap;
  expectWrong(options, "bootstrap has no all_gather");
  for (int world : {0, -1, 4097}) {
    EXPECT_ERROR(take(tessera_threads_create(world, &group)), "1 to 4096");
  }
  // A caller that was built when the struct ended after `world`.
  options = {};
  options.size = offsetof(tessera_context_options, transport);
  options.world = 1;
  options.transport = "beyond what the caller has";
  ASSERT_OK(tessera_context_create(&options, &context));
  EXPECT_EQ(tessera_context_world(context), 1);
  tessera_context_destroy(context);
}

TEST(Context, NoMemoryIsTooLargeToAskFor) {
  onRanks(1, [](tessera_context *context) {
    for (size_t bytes : {SIZE_MAX, SIZE_MAX - 62}) {
      void *pointer = nullptr;
      tessera_status *status =
          tessera_device_allocate(context, bytes, &pointer);
      EXPECT_EQ(tessera_status_code(status), TESSERA_OUT_OF_MEMORY);
      EXPECT_ERROR(take(status), "not enough memory");
      EXPECT_EQ(pointer, nullptr);
    }
  });
}

TEST(Context, TheCallersBootstrapIsUsed) {
  struct Shared {
    std::mutex mutex;
    char slots[2][4096];
    std::atomic<int> arrived = 0, left = 0;
  };
  struct User {
    Shared *shared;
    int rank;
    int calls = 0;
  };
  Shared shared;
  User users[2] = {{&shared, 0}, {&shared, 1}};
  tessera_threads *group;
  ASSERT_OK(tessera_threads_create(2, &group));
  std::string module = MLP(2).b.module(kernels());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      auto bootstrap = sized<tessera_bootstrap>();
      bootstrap.user = &users[rank];
      bootstrap.all_gather = [](void *user, const void *mine, void *all,
                                size_t bytes) {
        User &self = *static_cast<User *>(user);
        ++self.calls;
        std::memcpy(self.shared->slots[self.rank], mine, bytes);
        int round = (++self.shared->arrived + 1) / 2;
        while (self.shared->arrived < 2 * round)
          std::this_thread::yield();
        for (int i = 0; i < 2; ++i)
          std::memcpy(static_cast<char *>(all) + i * bytes,
                      self.shared->slots[i], bytes);
        ++self.shared->left;
        while (self.shared->left < 2 * round)
          std::this_thread::yield();
        return 0;
      };
      auto options = sized<tessera_context_options>();
      options.rank = rank;
      options.world = 2;
      options.transport = "threads";
      options.handle = group;
      options.bootstrap = &bootstrap;
      tessera_context *context;
      ASSERT_OK(tessera_context_create(&options, &context));
      tessera_module *loaded;
      ASSERT_OK(
          tessera_module_load(context, module.data(), module.size(), &loaded));
      EXPECT_EQ(users[rank].calls, 2); // context and module
      tessera_module_destroy(loaded);
      tessera_context_destroy(context);
    });
  for (std::thread &thread : threads)
    thread.join();
  tessera_threads_destroy(group);
}

TEST(Inspect, PortsSymbolsAndLayouts) {
  withModule(MLP(2).b.module(kernels()), 2, [](tessera_module *module, int) {
    EXPECT_STREQ(tessera_module_report(module), "made by hand");
    EXPECT_NE(tessera_module_hash(module), 0u);
    EXPECT_TRUE(contains(tessera_module_mesh(module), "tp"));
    auto symbol = sized<tessera_symbol>();
    ASSERT_EQ(tessera_module_symbol_count(module), 1u);
    ASSERT_OK(tessera_module_symbol(module, 0, &symbol));
    EXPECT_STREQ(symbol.name, "batch");
    EXPECT_EQ(symbol.maximum, 64);
    EXPECT_EQ(symbol.multiple, 2);
    EXPECT_ERROR(take(tessera_module_symbol(module, 1, &symbol)),
                 "no symbol 1");
    auto port = sized<tessera_port>();
    ASSERT_OK(tessera_module_port(module, 1, &port));
    EXPECT_STREQ(port.name, "w0");
    EXPECT_EQ(port.kind, TESSERA_INPUT);
    EXPECT_EQ(port.dtype, TESSERA_F32);
    EXPECT_EQ(port.rank, 2);
    EXPECT_EQ(port.shape[0], 32);
    EXPECT_STREQ(port.shape_text, "[32, 8]");
    ASSERT_OK(tessera_module_port(module, 0, &port));
    EXPECT_EQ(port.shape[0], -1);
    EXPECT_STREQ(port.shape_text, "[batch, 8]");
    auto layout = sized<tessera_layout>();
    int64_t batch = 6;
    ASSERT_OK(tessera_module_layout(module, 1, &batch, 1, &layout));
    EXPECT_EQ(layout.shape[0], 16);
    EXPECT_EQ(layout.strides[0], 8);
    EXPECT_EQ(layout.bytes, 16u * 8 * 4);
    EXPECT_EQ(layout.global_shape[0], 32);
    EXPECT_ERROR(take(tessera_module_layout(module, 9, &batch, 1, &layout)),
                 "no port 9");
    auto memory = sized<tessera_memory>();
    size_t count = 0;
    for (tessera_status *status :
         {tessera_module_layout(module, 1, nullptr, 1, &layout),
          tessera_module_runs(module, 1, nullptr, 1, 0, nullptr, &count),
          tessera_module_memory(module, nullptr, 1, &memory)})
      EXPECT_ERROR(take(status), "a null pointer where none may be");
  });
}

} // namespace
