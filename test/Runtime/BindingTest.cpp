//===- BindingTest.cpp - modules bound and run ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CountAllocations.h"
#include "MLP.h"
#include "Ranks.h"
#include "Layout/Arena.h"

#include <atomic>
#include <cstdlib>
#include <random>

using namespace tessera;
using namespace tessera::test;
using fb::AliasKind;
using fb::CollectiveKind;
using fb::PortKind;
using fb::Storage;

namespace {

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

TEST(Binding, ReshapesOfWhatIsCutAreErrors) {
  PlanBuilder b("<tp = 1>");
  int x = b.input("x", {4, 6}, "[_, _]");
  int cut = b.alias("cut", x, AliasKind::Slice, {4, 3}, "[_, _]", {}, {0, 3});
  int merged = b.alias("merged", cut, AliasKind::Reshape, {12}, "[_]");
  int y = b.output("y", {12}, "[_]");
  b.copy(merged, y);
  float data[24] = {};
  withModule(b.module(), 1, [&](tessera_module *module, int) {
    EXPECT_ERROR(bindError(module, {}, {data, data}, TESSERA_INVALID_MODULE),
                 "tensor 'merged': it cannot be a reshape of tensor 'cut' in "
                 "place");
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
// Checks
//===----------------------------------------------------------------------===//

/// An input of 3 x 4, and that as an output that must be 0.
std::string checkedModule(fb::DType dtype, const std::string &view,
                          const std::string &inputView) {
  PlanBuilder b("<tp = 2>");
  int codes = b.input("codes", {3, 4}, inputView, dtype);
  int wrong = b.output("wrong", {3, 4}, view, dtype);
  b.copy(codes, wrong);
  b.plan.ports.back()->check = "codes fall";
  b.plan.ports.back()->location = "a.mlir:2:3";
  return b.module(kernels());
}

TEST(Binding, WhatIsCheckedIsZeroAfterARun) {
  for (auto [dtype, view] :
       {std::pair(fb::DType::I32, "[_, _]"),
        std::pair(fb::DType::I64, "[_, _]"),
        std::pair(fb::DType::I8, "[_, _], alloc = (1, 0)"),
        std::pair(fb::DType::I1, "[flat(2) _]"),
        std::pair(fb::DType::U32, "[_, _], alloc = (1, 0)")})
    withModule(
        checkedModule(dtype, view, view), 2, [&](tessera_module *module, int) {
          auto port = sized<tessera_port>();
          ASSERT_OK(tessera_module_port(module, 1, &port));
          EXPECT_STREQ(port.check, "codes fall");
          ASSERT_OK(tessera_module_port(module, 0, &port));
          EXPECT_STREQ(port.check, "");
          std::vector<PortMemory> ports(2);
          std::vector<void *> pointers;
          for (size_t i = 0; i < 2; ++i) {
            ports[i].layout.size = sizeof ports[i].layout;
            ASSERT_OK(
                tessera_module_layout(module, i, nullptr, 0, &ports[i].layout));
            ports[i].port.dtype = port.dtype;
            ports[i].alignedBytes.assign(12, 0);
            pointers.push_back(ports[i].data());
          }
          tessera_binding *binding;
          ASSERT_OK(tessera_binding_create(module, nullptr, 0, pointers.data(),
                                           2, &binding));
          EXPECT_OK(tessera_binding_run(binding));
          auto set = [&](const layout::Shape &where, double value) {
            ports[0].forEach(module, 0, {}, [&](char *at, const auto &index) {
              if (index == where)
                store(at, port.dtype, value);
            });
          };
          // The first one, and the context goes on.
          set({2, 1}, 1);
          set({1, 3}, 1);
          tessera_status *status = tessera_binding_run(binding);
          EXPECT_EQ(tessera_status_code(status), TESSERA_DATA);
          EXPECT_STREQ(tessera_status_location(status), "a.mlir:2:3");
          EXPECT_EQ(take(status), "codes fall: 'wrong' is 1 at [1, 3]");
          set({1, 3}, 0);
          EXPECT_EQ(take(tessera_binding_run(binding)),
                    "codes fall: 'wrong' is 1 at [2, 1]");
          set({2, 1}, 0);
          EXPECT_OK(tessera_binding_run(binding));
          tessera_binding_destroy(binding);
        });
}

TEST(Binding, EachRankHasAllOfWhatIsChecked) {
  double data[16] = {};
  withModule(
      checkedModule(fb::DType::I32, "[_, did(tp) * _]", "[_, did(tp) * _]"), 2,
      [&](tessera_module *module, int) {
        EXPECT_ERROR(
            bindError(module, {}, {data, data}, TESSERA_INVALID_MODULE),
            "'wrong' is checked, and split over devices");
      });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST(Arena, BuffersAliveTogetherDoNotOverlap) {
  constexpr int64_t kAlignment = 64;
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<layout::Lifetime> buffers;
    for (int i = 0; i < 60; ++i) {
      int64_t first = random() % 40;
      buffers.push_back(
          {int64_t(random() % 1000), first, first + int64_t(random() % 10)});
    }
    int64_t end = layout::assignOffsets(buffers, kAlignment), sum = 0;
    for (size_t i = 0; i < buffers.size(); ++i) {
      const layout::Lifetime &a = buffers[i];
      sum += a.bytes + kAlignment;
      EXPECT_EQ(a.offset % kAlignment, 0);
      EXPECT_LE(a.offset + a.bytes, end);
      for (size_t j = 0; j < i; ++j) {
        const layout::Lifetime &b = buffers[j];
        bool together = a.first <= b.last && b.first <= a.last;
        bool overlap = a.offset < b.offset + b.bytes &&
                       b.offset < a.offset + a.bytes && a.bytes && b.bytes;
        EXPECT_FALSE(together && overlap);
      }
    }
    EXPECT_LT(end, sum / 2); // reuse happens
  }
}

TEST(Binding, MemoryIsKnownBeforeAndIsEnough) {
  withModule(MLP(2).b.module(kernels()), 2, [](tessera_module *module, int) {
    auto memory = sized<tessera_memory>();
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
  int n = b.symbol("n", INT64_MAX / 4);
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
    // It would be less than nothing when it is aligned.
    EXPECT_ERROR(
        bindError(module, {INT64_MAX / 4}, {&data}, TESSERA_INVALID_MODULE),
        "tensor 'big': its size overflows");
  });
}

TEST(Binding, ProductsOnTheCPUHaveNoEpilogue) {
  for (int what : {0, 1, 2}) {
    PlanBuilder b("<tp = 1>");
    int x = b.input("x", {2, 2}, "[_, _]"), c = b.input("c", {2}, "[_]");
    int y = b.output("y", {2, 2}, "[_, _]");
    b.contract(x, {0, 2}, x, {1, 2}, y, {0, 1});
    fb::ContractT &contract = *b.plan.steps[0]->action.AsContract();
    if (what == 0)
      contract.epilogue = fb::Epilogue::GeluTanh;
    else if (what == 1)
      contract.bias = c;
    else
      contract.summed = fb::Summed::A, contract.sums = c;
    float data[4] = {};
    withModule(b.module(), 1, [&](tessera_module *module, int) {
      EXPECT_ERROR(
          bindError(module, {}, {data, data, data}, TESSERA_INVALID_MODULE),
          "no product with a bias, an epilogue or sums");
    });
  }
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
  // One that nobody uses any more goes before a larger one comes.
  most = 0;
  withModule(
      MLP(1).b.module(kernels()), 1,
      [&](tessera_module *module, int) {
        void *pointers[] = {data, data + 256, data + 512, data + 768};
        for (int64_t batch : {60, 64}) {
          tessera_binding *binding;
          ASSERT_OK(
              tessera_binding_create(module, &batch, 1, pointers, 4, &binding));
          EXPECT_LE(most, held + 4 * 64 * 8) << batch; // symmetric memory
          tessera_binding_destroy(binding);
        }
      },
      options);
}

} // namespace
