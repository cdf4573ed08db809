//===- FailureTest.cpp - what becomes of the driver's refusals ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../Runtime/DamagedPlans.h"
#include "Backends/CUDA/Driver/Device.h"
#include "Backends/CUDA/Run/Program.h"
#include "OnRecordingDriver.h"
#include "Runtime/Context.h"
#include "Support/Clock.h"

using namespace tessera;
using namespace tessera::test;

namespace {

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

TEST_F(CUDA, NotEnoughMemoryIsKnownBeforeAnyIsTaken) {
  CUDAPlan plan;
  int n = plan.symbol("n", int64_t(1) << 40);
  int x = plan.input("x", {1}, "[_]");
  int big = plan.tensor("big", {Size::symbol(n)}, "[_]");
  int y = plan.alias("y", big, fb::AliasKind::Slice, {1}, "[_]", {}, {0});
  plan.copy(x, y);
  plan.copy(y, x);
  Session session;
  ASSERT_EQ(session.open(plan.module()), "");
  std::string error = session.bind({int64_t(1) << 30});
  EXPECT_ERROR(error, "not enough memory: the binding needs 4294967");
  EXPECT_ERROR(error, "bytes, 1073741820 are free");
  EXPECT_EQ(driver().allocations.size(), 1u); // the port
}

TEST_F(CUDA, WrongPlansThatLoadNeverCrash) {
  // With device functions and binaries: the driver is asked for nothing that
  // it could not survive.
  TwicePlus plan;
  int x = 0, batch = 0;
  int t = plan.alias("t", x, fb::AliasKind::Transpose, {8, Size::symbol(batch)},
                     "[_, _]", {1, 0});
  int z = plan.output("z", {8, Size::symbol(batch)}, "[_, _]");
  plan.copy(t, z);
  tessera_context_options options = cudaOptions();
  tessera_context *context;
  ASSERT_OK(tessera_context_create(&options, &context));
  Survivors survivors =
      loadDamaged(context, plan.plan, {{0}, {3}, {64}},
                  [&](ModuleBuilder &module) { module.setCode(plan.code, 0); });
  tessera_context_destroy(context);
  EXPECT_GT(survivors.loads, survivors.rounds / 20);
  EXPECT_GT(survivors.binds, survivors.rounds / 20);
}

TEST_F(CUDA, ALaunchThatFailsNamesItsOp) {
  for (uint32_t flags : {0u, uint32_t(TESSERA_NO_GRAPH)}) {
    Session session;
    ASSERT_EQ(session.open(TwicePlus().module(), cudaOptions(flags)), "");
    ASSERT_EQ(session.bind({4}), "");
    driver().failNext["cuLaunchKernelEx"] = 1;
    tessera_status *status = tessera_binding_run(session.binding);
    EXPECT_EQ(tessera_status_code(status), TESSERA_INTERNAL);
    EXPECT_STREQ(tessera_status_op(status), "tv.map");
    EXPECT_STREQ(tessera_status_location(status), "test.mlir:1:1");
    std::string error = take(status);
    EXPECT_ERROR(error, "cannot launch 'twice_plus': CUDA_ERROR_INVALID_VALUE");
    EXPECT_EQ(session.run(), error); // poisoned
    // The driver is not asked for what may wait for the run.
    const size_t allocations = driver().allocations.size();
    driver().failNext = {{"cuMemAlloc_v2", 1}, {"cuModuleLoadDataEx", 1}};
    EXPECT_EQ(
        bindError(session.module, {4}, session.pointers, TESSERA_INTERNAL),
        error);
    const std::string file = TwicePlus().module();
    tessera_module *module;
    EXPECT_EQ(take(tessera_module_load(session.context, file.data(),
                                       file.size(), &module)),
              error);
    EXPECT_EQ(driver().failNext.size(), 2u);
    driver().failNext.clear();
    EXPECT_EQ(driver().allocations.size(), allocations);
  }
}

TEST_F(CUDA, EachStepOfAGraphMayFail) {
  for (const char *call :
       {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphGetNodes",
        "cuGraphNodeGetType", "cuGraphInstantiateWithFlags", "cuGraphLaunch",
        "cuEventRecord"}) {
    Session session;
    ASSERT_EQ(session.open(TwicePlus().module()), "");
    ASSERT_EQ(session.bind({4}), "");
    if (call == std::string("cuGraphLaunch"))
      ASSERT_EQ(session.run(), "");
    driver().failNext[call] = 1;
    EXPECT_ERROR(session.run(), "CUDA_ERROR_INVALID_VALUE");
  }
}

TEST_F(CUDA, ABrokenDeviceIsAnErrorAndAHint) {
  leaves = true;
  for (uint32_t flags : {0u, uint32_t(TESSERA_CHECK_STEPS)}) {
    driver() = RecordingDriver();
    Session session;
    ASSERT_EQ(session.open(TwicePlus().module(), cudaOptions(flags)), "");
    ASSERT_EQ(session.bind({4}), "");
    driver().breaks = "twice_plus";
    tessera_status *status = tessera_binding_run(session.binding);
    EXPECT_STREQ(tessera_status_op(status), "tv.map");
    std::string error = take(status);
    EXPECT_ERROR(error, "CUDA_ERROR_ILLEGAL_ADDRESS");
    EXPECT_EQ(contains(error, "checks each step"), flags == 0) << error;
  }
}

TEST_F(CUDA, EveryCallThatMakesAContextMayFail) {
  for (const char *call :
       {"cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute",
        "cuDevicePrimaryCtxRetain", "cuStreamCreate"}) {
    driver().failNext[call] = 2;
    tessera_context_options options = cudaOptions();
    tessera_context *context;
    std::string error = take(tessera_context_create(&options, &context));
    EXPECT_ERROR(error, "GPU 0: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  }
}

TEST_F(CUDA, EveryCallThatMakesABindingMayFail) {
  for (const char *call :
       {"cuModuleGetFunction", "cuFuncGetParamInfo", "cuFuncSetAttribute",
        "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuEventCreate",
        "cuMemAlloc_v2"}) {
    Session session;
    ASSERT_EQ(session.open(TwicePlus().module()), "");
    driver().failNext[call] = 2;
    EXPECT_ERROR(session.bind({4}), "CUDA_ERROR_OUT_OF_MEMORY");
  }
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

/// Launches one kernel of no parameter; a collective, as far as a program sees.
class FakeWork final : public Work {
public:
  FakeWork(const cuda::Device &device, cuda::Function function, bool waits)
      : device(device), function(function), waits(waits) {}
  void setAddresses(const Bases &) override {}
  Status run(const Running &) override {
    return device.check(device.driver().launchKernel(function, 1, 1, 1, 1, 1, 1,
                                                     0, device.stream(),
                                                     nullptr, nullptr),
                        "launch");
  }
  const CollectiveReport *collective() const override {
    return waits ? &report : nullptr;
  }

private:
  const cuda::Device &device;
  cuda::Function function;
  bool waits;
  CollectiveReport report{{8, 8}};
};

class NoNames final : public StepNames {
public:
  const char *op(int64_t) const override { return "op"; }
  const char *location(int64_t) const override { return "here"; }
};

/// Counts; may fail.
class FakeCompanion final : public cuda::Companion {
public:
  Status poll() override {
    ++polls;
    return polls < failAt ? Status(Ok{})
                          : Status(Error{"the companion failed"});
  }
  void abort() override {
    ++aborts;
    driver().hanging = driver().hanging && !frees;
  }
  int polls = 0, aborts = 0, failAt = 1 << 30;
  bool frees = false;
};

/// Runs works 0, 1, 2 of which 1 and 2 are collectives and 2 hangs. `later`: in
/// the second run that is enqueued, it is 0 that hangs.
void runHanging(FakeCompanion &companion, bool &stuck, Stop &result,
                bool later = false) {
  tessera_context_options options = cudaOptions();
  options.backend = nullptr;
  options.deadline = 0.3;
  Outcome<std::unique_ptr<Context>> context = Context::create(options);
  ASSERT_TRUE(context);
  auto device = cuda::Device::open(nullptr, 0);
  ASSERT_TRUE(device);
  (*device)->companions.push_back(&companion);
  {
    cuda::Device::Current current(**device);
    cuda::Module module;
    const char *image = "fake cubin 90\nplain 0 hang 0 tessera_mark 16";
    driver().kernels["tessera_mark"] = [](const FakeLaunch &launch) {
      *reinterpret_cast<volatile uint32_t *>(launch.words[0]) = launch.words[1];
    };
    const cuda::Driver &api = (*device)->driver();
    ASSERT_EQ(api.moduleLoadDataEx(&module, image, 0, nullptr, nullptr), 0);
    cuda::Function plain, hang, mark;
    ASSERT_EQ(api.moduleGetFunction(&plain, module, "plain"), 0);
    ASSERT_EQ(api.moduleGetFunction(&hang, module, "hang"), 0);
    ASSERT_EQ(api.moduleGetFunction(&mark, module, "tessera_mark"), 0);
    std::vector<std::unique_ptr<Work>> works;
    for (int i = 0; i < 3; ++i)
      works.push_back(std::make_unique<FakeWork>(
          **device, i == (later ? 0 : 2) ? hang : plain, i > 0));
    Result<ModuleReader> reader = ModuleReader::read(CUDAPlan().module());
    ASSERT_TRUE(reader) << reader.message();
    auto binaries = cuda::Binaries::load(**device, *reader);
    ASSERT_TRUE(binaries) << binaries.message();
    auto program = cuda::makeProgram(**device, **binaries, mark, works, 0);
    ASSERT_TRUE(program);
    NoNames names;
    cuda::Stream stream = nullptr;
    if (later) {
      ASSERT_EQ(api.streamCreate(&stream, cuda::kStreamNonBlocking), 0);
      ASSERT_TRUE((*program)->enqueue(**context, stream));
      ASSERT_TRUE((*program)->wait(**context));
    }
    driver().hangs = "hang";
    const double began = now();
    Ran ran = later ? (*program)->enqueue(**context, stream)
                    : (*program)->run(**context, names);
    if (later) {
      ASSERT_TRUE(ran);
      ran = (*program)->wait(**context);
    }
    ASSERT_FALSE(ran);
    EXPECT_LT(now() - began, options.deadline + 2);
    result = ran.error();
    stuck = (*device)->isStuck();
    char from = 1, to = 0;
    Status copied = (*device)->copy(&to, &from, 1);
    EXPECT_EQ(bool(copied), !stuck);
    if (stuck)
      EXPECT_EQ(copied.message(), "cannot copy 1 bytes: a run that failed has "
                                  "not ended on GPU 0");
    program->reset();
    if (!stuck)
      EXPECT_EQ(api.moduleUnload(module), 0);
  }
}

TEST_F(CUDA, AHangEndsAtTheDeadlineAndNamesTheCollective) {
  leaves = true;
  FakeCompanion companion;
  bool stuck = false;
  Stop stop{};
  runHanging(companion, stuck, stop);
  EXPECT_EQ(stop.code, TESSERA_PEER);
  EXPECT_ERROR(stop.message, "no answer for 0.3 s");
  EXPECT_EQ(stop.work, 2u);
  EXPECT_EQ(companion.aborts, 1);
  EXPECT_TRUE(stuck); // nothing that waits for the device is called
}

TEST_F(CUDA, AHangBeforeTheFirstCollectiveIsNotTheLastRuns) {
  leaves = true;
  FakeCompanion companion;
  bool stuck = false;
  Stop stop{};
  runHanging(companion, stuck, stop, /*later=*/true);
  EXPECT_EQ(stop.code, TESSERA_PEER);
  EXPECT_EQ(stop.work, 0u);
}

TEST_F(CUDA, ACompanionsErrorEndsTheRun) {
  FakeCompanion companion;
  companion.failAt = 3;
  companion.frees = true;
  bool stuck = true;
  Stop stop{};
  runHanging(companion, stuck, stop);
  EXPECT_EQ(stop.message, "the companion failed");
  EXPECT_EQ(stop.code, TESSERA_PEER);
  EXPECT_EQ(companion.aborts, 1);
  EXPECT_FALSE(stuck);
}

} // namespace
