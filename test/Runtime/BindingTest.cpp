//===- BindingTest.cpp - modules bound and run ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLP.h"
#include "Ranks.h"
#include "Runtime/Arena.h"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <malloc.h>
#include <mutex>
#include <random>

using namespace tessera;
using namespace tessera::test;
using fb::AliasKind;
using fb::CollectiveKind;
using fb::PortKind;
using fb::Storage;

//===----------------------------------------------------------------------===//
// Counting allocations. Not under a sanitizer, which has its own malloc.
//===----------------------------------------------------------------------===//

#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
#define TESSERA_COUNT_MALLOC 1
static std::atomic<bool> counting;
static std::atomic<int> allocations;

extern "C" void *__libc_malloc(size_t);
extern "C" void *__libc_calloc(size_t, size_t);
extern "C" void *__libc_realloc(void *, size_t);
extern "C" void *__libc_memalign(size_t, size_t);
extern "C" void *malloc(size_t bytes) {
  allocations += counting;
  return __libc_malloc(bytes);
}
extern "C" void *calloc(size_t count, size_t bytes) {
  allocations += counting;
  return __libc_calloc(count, bytes);
}
extern "C" void *realloc(void *pointer, size_t bytes) {
  allocations += counting;
  return __libc_realloc(pointer, bytes);
}
extern "C" void *aligned_alloc(size_t alignment, size_t bytes) {
  allocations += counting;
  return __libc_memalign(alignment, bytes);
}
#endif

namespace {

std::string kernels() { return readFile(TESSERA_TEST_KERNELS); }

fb::ScalarT coordScalar(int axis) {
  fb::ScalarT scalar;
  scalar.kind = fb::ScalarKind::Coord;
  scalar.axis = axis;
  return scalar;
}
fb::ScalarT localScalar(int tensor, int dim) {
  fb::ScalarT scalar;
  scalar.kind = fb::ScalarKind::Local;
  scalar.tensor = tensor;
  scalar.dim = dim;
  return scalar;
}

TEST(Binding, MLPOnAnyNumberOfRanksAndAnyBatch) {
  for (int ranks : {1, 2, 3, 4, 6})
    for (int64_t batch : {0, 2, 10, 64}) {
      RunOptions options;
      options.symbols = {batch};
      options.runs = 2;
      runModule(MLP(ranks).b.module(kernels()), ranks, MLP::input,
                MLP::expected, options);
    }
}

#ifdef TESSERA_COUNT_MALLOC
TEST(Binding, RunsWithoutAllocating) {
  const int ranks = 4;
  PlanBuilder b("<tp = 4>");
  // A packed exchange, a product through tiles, and the rest.
  int x = b.input("x", {8, 16}, "[_, did(tp) * _]");
  int t = b.tensor("t", {8, 16}, "[did(tp) * _, _]", Storage::Symmetric);
  int u = b.alias("u", t, AliasKind::Transpose, {16, 8}, "[_, did(tp) * _]",
                  {1, 0});
  int h = b.input("h", {16, 16}, "[_, _]", fb::DType::BF16);
  int p = b.tensor("p", {16, 8}, "[_, did(tp) * _]", Storage::Symmetric);
  int q = b.tensor("q", {16, 8}, "[_, _]", Storage::Symmetric);
  int y = b.output("y", {16, 8}, "[_, _]");
  b.collective(CollectiveKind::AllToAll, x, t, {"tp"});
  b.contract(h, {0, 2}, u, {2, 1}, p, {0, 1});
  b.collective(CollectiveKind::AllGather, p, q, {"tp"});
  b.launch("twice_plus", {q, y}, {valueScalar(0)});
  std::string module = b.module(kernels());
  std::atomic<int> ready = 0, done = 0;
  onRanks(ranks, [&](tessera_context *context) {
    tessera_module *loaded;
    ASSERT_OK(
        tessera_module_load(context, module.data(), module.size(), &loaded));
    std::vector<double> memory[3];
    void *pointers[3];
    for (int i = 0; i < 3; ++i) {
      memory[i].assign(256, 0);
      pointers[i] = memory[i].data();
    }
    tessera_binding *binding;
    ASSERT_OK(
        tessera_binding_create(loaded, nullptr, 0, pointers, 3, &binding));
    // All threads have bound before any count, and have run before it ends.
    ++ready;
    while (ready < ranks)
      ;
    counting = true;
    tessera_status *first = tessera_binding_run(binding);
    tessera_status *second = tessera_binding_run(binding);
    ++done;
    while (done < ranks)
      ;
    counting = false;
    EXPECT_OK(first);
    EXPECT_OK(second);
    tessera_binding_destroy(binding);
    tessera_module_destroy(loaded);
  });
  EXPECT_EQ(allocations, 0);
}

TEST(Binding, TheCounterCounts) {
  int before = allocations;
  counting = true;
  void *volatile pointer = malloc(16);
  counting = false;
  free(pointer);
  EXPECT_EQ(allocations, before + 1);
  allocations = before;
}
#endif

TEST(Binding, ScalarsAreValuesCoordinatesAndLocalExtents) {
  auto check = [](fb::ScalarT scalar, std::function<int64_t(int)> addend) {
    PlanBuilder b("<dp = 2, tp = 3>");
    int batch = b.symbol("batch", 64);
    int x = b.input("x", {Size::symbol(batch), 4}, "[did(tp) * _, _]");
    int y = b.output("y", {Size::symbol(batch), 4}, "[did(tp) * _, _]");
    std::vector<fb::ScalarT> scalars;
    scalars.push_back(std::move(scalar));
    b.launch("twice_plus", {x, y}, std::move(scalars));
    RunOptions options;
    options.symbols = {7};
    runModule(
        b.module(kernels()), 6,
        [](const std::string &, const layout::Shape &i, int) {
          return small(i);
        },
        [&](const std::string &, const layout::Shape &i, int rank) {
          return 2 * small(i) + addend(rank);
        },
        options);
  };
  check(valueScalar(Size::symbol(0, 3)), [](int) { return 21; });
  check(coordScalar(0), [](int rank) { return rank / 3; });
  check(coordScalar(1), [](int rank) { return rank % 3; });
  // 7 rows over 3: 3, 3, 1
  check(localScalar(0, 0), [](int rank) { return rank % 3 < 2 ? 3 : 1; });
}

TEST(Binding, AliasesAreWindowsOnTheirSource) {
  PlanBuilder b("<tp = 2>");
  int x = b.input("x", {6, 8}, "[_, _]");
  int shard = b.alias("shard", x, AliasKind::Shard, {6, 8}, "[_, did(tp) * _]");
  int slice = b.alias("slice", shard, AliasKind::Slice, {3, 8},
                      "[_, did(tp) * _]", {}, {2, 0});
  int turned = b.alias("turned", slice, AliasKind::Transpose, {8, 3},
                       "[did(tp) * _, _]", {1, 0});
  int split = b.alias("split", turned, AliasKind::Reshape, {2, 4, 3},
                      "[did(tp) * _, _, _]");
  int y = b.output("y", {2, 4, 3}, "[did(tp) * _, _, _]");
  b.copy(split, y);
  b.port(turned, PortKind::Output); // and an output that is an alias
  auto input = [](const std::string &, const layout::Shape &i, int) {
    return double(i[0] * 100 + i[1]);
  };
  runModule(b.module(), 2, input,
            [&](const std::string &port, const layout::Shape &i, int) {
              return port == "y" ? (i[2] + 2) * 100 + i[0] * 4 + i[1]
                                 : double((i[1] + 2) * 100 + i[0]);
            });
}

TEST(Binding, ConstantsAreWindowsOrCopies) {
  std::string constants(64 + 6 * 8 * 4, '\0');
  for (int i = 0; i < 48; ++i) {
    float value = i;
    std::memcpy(constants.data() + 64 + i * 4, &value, 4);
  }
  for (const char *view :
       {"[_, _]", "[did(tp) * _, _]", "[_, did(tp) * _]", "[_ * did(tp), _]",
        "[_, _ * did(tp)]", "[_, did(tp) * _], alloc = (1, 0)"}) {
    SCOPED_TRACE(view);
    PlanBuilder b("<tp = 3>");
    int c = b.tensor("c", {6, 8}, view, Storage::Constant);
    b.plan.tensors[c]->constant_offset = 64;
    int y = b.output("y", {6, 8}, view);
    b.copy(c, y);
    runModule(
        b.module("", constants), 3,
        [](const std::string &, const layout::Shape &, int) { return 0.0; },
        [](const std::string &, const layout::Shape &i, int) {
          return double(i[0] * 8 + i[1]);
        });
  }
}

TEST(Binding, StateIsReplacedByEachRun) {
  for (bool inPlace : {false, true}) {
    PlanBuilder b("<tp = 2>");
    int s = b.tensor("s", {4, 3}, "[did(tp) * _, _]", Storage::External);
    int next = inPlace ? b.alias("next", s, AliasKind::Same, {4, 3},
                                 "[did(tp) * _, _]")
                       : b.tensor("next", {4, 3}, "[did(tp) * _, _]");
    b.port(s, PortKind::State, next);
    b.launch("twice_plus", {s, next}, {valueScalar(1)});
    RunOptions options;
    options.runs = 3;
    runModule(
        b.module(kernels()), 2,
        [](const std::string &, const layout::Shape &i, int) {
          return small(i);
        },
        [](const std::string &, const layout::Shape &i, int) {
          return 8 * small(i) + 7;
        },
        options);
  }
}

TEST(Binding, AnInputCanBeAnOutput) {
  PlanBuilder b("<tp = 2>");
  int x = b.input("x", {4}, "[did(tp) * _]");
  b.port(x, PortKind::Output);
  auto number = [](const std::string &, const layout::Shape &i, int) {
    return small(i);
  };
  runModule(b.module(), 2, number, number);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST(Arena, BuffersAliveTogetherDoNotOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> buffers;
    for (int i = 0; i < 60; ++i) {
      int64_t first = random() % 40;
      buffers.push_back(
          {int64_t(random() % 1000), first, first + int64_t(random() % 10)});
    }
    int64_t end = assignOffsets(buffers), sum = 0;
    for (size_t i = 0; i < buffers.size(); ++i) {
      const Lifetime &a = buffers[i];
      sum += a.bytes + kArenaAlignment;
      EXPECT_EQ(a.offset % kArenaAlignment, 0);
      EXPECT_LE(a.offset + a.bytes, end);
      for (size_t j = 0; j < i; ++j) {
        const Lifetime &b = buffers[j];
        bool together = a.first <= b.last && b.first <= a.last;
        bool overlap = a.offset < b.offset + b.bytes &&
                       b.offset < a.offset + a.bytes && a.bytes && b.bytes;
        EXPECT_FALSE(together && overlap);
      }
    }
    EXPECT_LT(end, sum / 2); // reuse happens
  }
}

/// Runs `body` with the module loaded on each rank.
void withModule(const std::string &module, int ranks,
                const std::function<void(tessera_module *, int rank)> &body,
                tessera_context_options options = {}) {
  onRanks(
      ranks,
      [&](tessera_context *context) {
        tessera_module *loaded;
        ASSERT_OK(tessera_module_load(context, module.data(), module.size(),
                                      &loaded));
        body(loaded, tessera_context_rank(context));
        tessera_module_destroy(loaded);
      },
      options);
}

/// What binding fails with; `pointers` as they are.
std::string bindError(tessera_module *module, std::vector<int64_t> symbols,
                      std::vector<void *> pointers,
                      tessera_code code = TESSERA_INVALID_ARGUMENT) {
  tessera_binding *binding;
  tessera_status *status =
      tessera_binding_create(module, symbols.data(), symbols.size(),
                             pointers.data(), pointers.size(), &binding);
  if (!status)
    tessera_binding_destroy(binding);
  EXPECT_EQ(tessera_status_code(status), code);
  return take(status);
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}
#define EXPECT_ERROR(error, part)                                              \
  do {                                                                         \
    std::string found = error;                                                 \
    EXPECT_TRUE(contains(found, part)) << "error: '" << found << "'";          \
  } while (false)

TEST(Binding, MemoryIsKnownBeforeAndIsEnough) {
  withModule(MLP(2).b.module(kernels()), 2, [](tessera_module *module, int) {
    tessera_memory memory{};
    memory.size = sizeof memory;
    int64_t batch = 64;
    ASSERT_OK(tessera_module_memory(module, &batch, 1, &memory));
    EXPECT_EQ(memory.external, 4u * (64 * 8 + 16 * 8 + 8 * 16 + 64 * 8));
    EXPECT_EQ(memory.symmetric, 4u * 64 * 8);
    // h and a live together; the all-reduce's scratch does not meet them.
    EXPECT_EQ(memory.local, 4u * (64 * 16 + 64 * 16));
    EXPECT_EQ(memory.constants, 0u);
    batch = 2;
    ASSERT_OK(tessera_module_memory(module, &batch, 1, &memory));
    EXPECT_EQ(memory.symmetric, 4u * 2 * 8);
  });
}

TEST(Binding, OverTheLimitIsAnErrorBeforeTheRun) {
  tessera_context_options options{};
  options.memory_limit = 10000;
  double data[1024] = {};
  withModule(
      MLP(2).b.module(kernels()), 2,
      [&](tessera_module *module, int) {
        EXPECT_ERROR(bindError(module, {64}, {data, data, data, data},
                               TESSERA_OUT_OF_MEMORY),
                     "needs 10240 bytes of memory, the limit is 10000");
      },
      options);
}

TEST(Binding, NotEnoughMemoryOnOneRankIsAnErrorOnAll) {
  tessera_context_options options{};
  static std::atomic<int> given;
  given = 0;
  options.allocate = [](void *, size_t bytes) -> void * {
    // Some allocation of some rank fails.
    return given++ == 1 ? nullptr : std::aligned_alloc(64, bytes);
  };
  options.deallocate = [](void *, void *pointer, size_t) { free(pointer); };
  std::atomic<int> failed = 0;
  double data[1024] = {};
  withModule(
      MLP(2).b.module(kernels()), 2,
      [&](tessera_module *module, int) {
        int64_t batch = 64;
        void *pointers[] = {data, data, data, data};
        tessera_binding *binding;
        tessera_status *status =
            tessera_binding_create(module, &batch, 1, pointers, 4, &binding);
        failed += status != nullptr;
        EXPECT_ERROR(take(status), "not enough memory");
      },
      options);
  EXPECT_EQ(failed, 2);
}

TEST(Binding, MoreThanTheMachineHasIsAnError) {
  PlanBuilder b("<tp = 1>");
  int n = b.symbol("n", int64_t(1) << 50);
  int x = b.input("x", {1}, "[_]");
  int big = b.tensor("big", {Size::symbol(n)}, "[_]");
  int y = b.alias("y", big, AliasKind::Slice, {1}, "[_]", {}, {0});
  b.copy(x, y);
  b.copy(y, x);
  float data = 0;
  withModule(b.module(), 1, [&](tessera_module *module, int) {
    EXPECT_EQ(bindError(module, {1}, {&data}, TESSERA_OK), "");
    EXPECT_ERROR(
        bindError(module, {int64_t(1) << 50}, {&data}, TESSERA_OUT_OF_MEMORY),
        "not enough memory");
  });
}

TEST(Binding, BindingsOfAContextShareItsArenas) {
  static std::atomic<int64_t> held, most;
  held = most = 0;
  tessera_context_options options{};
  options.allocate = [](void *, size_t bytes) -> void * {
    held += bytes;
    most = std::max<int64_t>(most, held);
    return std::aligned_alloc(64, bytes);
  };
  options.deallocate = [](void *, void *pointer, size_t bytes) {
    held -= bytes;
    free(pointer);
  };
  double data[1024] = {};
  withModule(
      MLP(1).b.module(kernels()), 1,
      [&](tessera_module *module, int) {
        tessera_binding *bindings[5];
        void *pointers[] = {data, data + 256, data + 512, data + 768};
        int64_t batch = 64;
        int64_t one = 0;
        for (tessera_binding *&binding : bindings) {
          ASSERT_OK(
              tessera_binding_create(module, &batch, 1, pointers, 4, &binding));
          one = one ? one : held.load();
          batch -= 2;
        }
        EXPECT_LT(held, one + 1024);
        for (tessera_binding *binding : bindings)
          EXPECT_OK(tessera_binding_run(binding));
        for (tessera_binding *binding : bindings)
          tessera_binding_destroy(binding);
      },
      options);
  EXPECT_EQ(held, 0);
}

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
      std::string first = take(status);
      EXPECT_ERROR(first, "has left");
      // Poisoned: the same error, without a wait.
      EXPECT_EQ(take(tessera_binding_run(binding)), first);
    }
    tessera_binding_destroy(binding);
  });
}

TEST(Running, ARankThatStaysAwayEndsTheWaitAtTheDeadline) {
  tessera_context_options options{};
  options.deadline = 0.2;
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
          EXPECT_ERROR(take(tessera_binding_run(binding)), "no rank answered");
          ended = true;
        }
        while (!ended)
          std::this_thread::yield();
        tessera_binding_destroy(binding);
      },
      options);
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
          EXPECT_ERROR(take(status), "rank 1 has left");
        }
        tessera_binding_destroy(binding);
      },
      options);
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
  // A caller that was built when the struct ended after `world`.
  options = {};
  options.size = offsetof(tessera_context_options, transport);
  options.world = 1;
  options.transport = "beyond what the caller has";
  ASSERT_OK(tessera_context_create(&options, &context));
  EXPECT_EQ(tessera_context_world(context), 1);
  tessera_context_destroy(context);
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
      tessera_bootstrap bootstrap{};
      bootstrap.size = sizeof bootstrap;
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
      tessera_context_options options{};
      options.size = sizeof options;
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
      EXPECT_EQ(users[rank].calls, 1);
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
    tessera_symbol symbol{};
    symbol.size = sizeof symbol;
    ASSERT_EQ(tessera_module_symbol_count(module), 1u);
    ASSERT_OK(tessera_module_symbol(module, 0, &symbol));
    EXPECT_STREQ(symbol.name, "batch");
    EXPECT_EQ(symbol.maximum, 64);
    EXPECT_EQ(symbol.multiple, 2);
    EXPECT_ERROR(take(tessera_module_symbol(module, 1, &symbol)),
                 "no symbol 1");
    tessera_port port{};
    port.size = sizeof port;
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
    tessera_layout layout{};
    layout.size = sizeof layout;
    int64_t batch = 6;
    ASSERT_OK(tessera_module_layout(module, 1, &batch, 1, &layout));
    EXPECT_EQ(layout.shape[0], 16);
    EXPECT_EQ(layout.strides[0], 8);
    EXPECT_EQ(layout.bytes, 16u * 8 * 4);
    EXPECT_EQ(layout.global_shape[0], 32);
    EXPECT_ERROR(take(tessera_module_layout(module, 9, &batch, 1, &layout)),
                 "no port 9");
  });
}

} // namespace
