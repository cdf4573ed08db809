//===- HostTimeTest.cpp - what a run on cuda costs the host ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs over libraries whose calls cost nothing (IdleCUDA.cpp): all that is left
// of a run's time is the runtime's. Prints it; the bounds are far above, to
// notice work that does not belong into a run and not a busy machine.
//
//===----------------------------------------------------------------------===//

#include "../../Runtime/CountAllocations.h"
#include "../../Runtime/Ranks.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>

using namespace tessera;
using namespace tessera::test;
using fb::CollectiveKind;
using fb::Storage;

namespace {

constexpr int kEach = 100, kRuns = 300;
constexpr auto kPatience = std::chrono::seconds(30);

/// Steps of the kinds asked for, `kEach` of each, on two ranks.
struct Program : PlanBuilder {
  explicit Program(std::vector<std::string> kinds) : PlanBuilder("<tp = 2>") {
    plan.target = "cuda:sm_90a";
    for (const char *name : {"runtime", "kernels"}) {
      plan.binaries.push_back(std::make_unique<fb::BinaryT>());
      plan.binaries.back()->name = name;
      plan.binaries.back()->size = 1;
    }
    const int x = input("x", {64, 64}, "[_, did(tp) * _]");
    const int y = output("y", {64, 64}, "[did(tp) * _, _]");
    const int square = input("square", {64, 64}, "[_, _]");
    const int product = tensor("product", {64, 64}, "[_, _]");
    const int turned = alias("turned", square, fb::AliasKind::Transpose,
                             {64, 64}, "[_, _]", {1, 0});
    const int part = tensor("part", {64, 64}, "[_, _], partial = [(tp) : sum]",
                            Storage::Symmetric);
    const int sum = tensor("sum", {64, 64}, "[_, _]", Storage::Symmetric);
    const int heads = tensor("heads", {1, 2, 64, 64}, "[_, _, _, _]",
                             Storage::Local, fb::DType::BF16);
    const int attended = tensor("attended", {1, 2, 64, 64}, "[_, _, _, _]",
                                Storage::Local, fb::DType::BF16);
    for (const std::string &kind : kinds)
      for (int i = 0; i < kEach; ++i) {
        if (kind == "kernel") {
          launch("point_80", {square, product});
          auto function = std::make_unique<fb::FunctionT>();
          function->binary = 1;
          function->symbol = "point_80"; // the bytes of its parameter
          function->threads = 128;
          plan.steps.back()->action.AsLaunch()->functions.push_back(
              std::move(function));
        } else if (kind == "product") {
          contract(square, {0, 2}, square, {1, 2}, product, {0, 1});
        } else if (kind == "attention") {
          attend(heads, heads, heads, attended, -1, 0.125, true);
        } else if (kind == "copy") {
          copy(turned, product);
        } else if (kind == "all-reduce") {
          collective(CollectiveKind::AllReduce, part, sum, {"tp"});
        } else {
          collective(CollectiveKind::AllToAll, x, y, {"tp"});
        }
      }
  }
};

struct Cost {
  double enqueue; ///< what tessera_binding_host_seconds says
  double run;     ///< all of tessera_binding_run
};

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The least of many runs on rank 0, in nanoseconds a step; the other rank
/// sleeps, as nobody meets in libraries that do nothing.
Cost measure(const Program &program, uint32_t flags) {
  const std::string file = program.PlanBuilder::module("xx");
  const double steps = program.plan.steps.size();
  Cost cost = {1e9, 1e9};
  std::mutex mutex;
  std::condition_variable change;
  int bound = 0;
  bool measured = false;
  tessera_context_options options{};
  options.backend = "cuda";
  options.flags = flags;
  onRanks(
      2,
      [&](tessera_context *context) {
        const int rank = tessera_context_rank(context);
        tessera_module *module;
        ASSERT_OK(
            tessera_module_load(context, file.data(), file.size(), &module));
        alignas(256) static std::byte memory[2][3][64 * 64 * 4];
        void *pointers[] = {memory[rank][0], memory[rank][1], memory[rank][2]};
        tessera_binding *binding;
        ASSERT_OK(
            tessera_binding_create(module, nullptr, 0, pointers, 3, &binding));
        ASSERT_OK(tessera_binding_run(binding));
        std::unique_lock lock(mutex);
        ++bound;
        change.notify_all();
        if (rank == 0) {
          change.wait_for(lock, kPatience, [&] { return bound == 2; });
#ifdef TESSERA_COUNT_MALLOC
          allocations = 0;
          counting = true;
#endif
          tessera_status *status = nullptr;
          for (int i = 0; i < kRuns && !status; ++i) {
            const double began = now();
            status = tessera_binding_run(binding);
            cost.run = std::min(cost.run, 1e9 * (now() - began) / steps);
            cost.enqueue =
                std::min(cost.enqueue,
                         1e9 * tessera_binding_host_seconds(binding) / steps);
          }
#ifdef TESSERA_COUNT_MALLOC
          counting = false;
          EXPECT_EQ(allocations, 0);
#endif
          EXPECT_OK(status);
          measured = true;
          change.notify_all();
        } else {
          change.wait_for(lock, kPatience, [&] { return measured; });
        }
        lock.unlock();
        tessera_binding_destroy(binding);
        tessera_module_destroy(module);
      },
      options);
  return cost;
}

/// Nothing reads the libraries' folder before the tests.
const bool kEnvironment = [] {
  setenv("TESSERA_CUDA_LIBRARY_PATH", TESSERA_IDLE_CUDA, 1);
  setenv("NCCL_NVLS_ENABLE", "0", 1);
  return true;
}();

const std::vector<std::string> kKinds = {"kernel", "product",    "attention",
                                         "copy",   "all-reduce", "exchange"};
/// In nanoseconds a step: the bound of docs/performance.md; sanitizers take
/// what they take.
#ifdef TESSERA_COUNT_MALLOC
constexpr double kBound = 1000;
#else
constexpr double kBound = 20000;
#endif

void expectCheap(const char *what, const Program &program, uint32_t flags) {
  const Cost cost = measure(program, flags);
  printf("%s: %.3g ns a step to enqueue, %.3g ns a step in all\n", what,
         cost.enqueue, cost.run);
  EXPECT_GT(cost.enqueue, 0);
  EXPECT_LT(cost.enqueue, kBound);
  EXPECT_LT(cost.run, kBound);
}

TEST(HostTime, OfEachKindOfStep) {
  for (const std::string &kind : kKinds)
    expectCheap(kind.c_str(), Program({kind}), TESSERA_NO_GRAPH);
}

TEST(HostTime, OfAProgram) {
  expectCheap("all kinds together", Program(kKinds), TESSERA_NO_GRAPH);
}

TEST(HostTime, WithAGraph) {
  expectCheap("all kinds together, as a graph", Program(kKinds), 0);
}

} // namespace
