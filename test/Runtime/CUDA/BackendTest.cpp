//===- BackendTest.cpp - the cuda backend over a driver without a GPU -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the driver is asked for, in which order and with which arguments, and
// what becomes of each of its refusals.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Device.h"
#include "Backends/CUDA/Program.h"
#include "OnRecordingDriver.h"
#include "Runtime/Context.h"

#include <random>

using namespace tessera;
using namespace tessera::test;
using fb::PortKind;

namespace {

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// y = 2 x + 1 on [batch, 8]: one kernel of one function, 4 points a block.
struct TwicePlus : CUDAPlan {
  explicit TwicePlus(int parameterBytes = 8 * (5 + 5 + 1)) {
    int batch = symbol("batch", 64);
    Size rows = Size::symbol(batch);
    int x = input("x", {rows, 8}, "[_, _]");
    int y = output("y", {rows, 8}, "[_, _]");
    int kernels = binary("pointwise", "fake cubin 90\ntwice_plus " +
                                          std::to_string(parameterBytes));
    launch("twice_plus", {x, y}, {value(1)});
    function(kernels, "twice_plus", {rows, 8}, 128, 1024, 4);
    driver().kernels["twice_plus"] = [](const FakeLaunch &launch) {
      const auto *x = reinterpret_cast<const float *>(launch.words[0]);
      auto *y = reinterpret_cast<float *>(launch.words[5]);
      const float plus = launch.words[10];
      for (uint64_t i = 0; i < launch.words[1] * launch.words[2]; ++i)
        y[i] = 2 * x[i] + plus;
    };
  }
};

/// Puts numbers in x, runs, and compares y.
void expectTwicePlus(Session &session, int64_t batch, float scale) {
  std::vector<float> x(batch * 8), y(batch * 8);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = scale * i;
  ASSERT_OK(tessera_device_copy(session.context, session.pointers[0], x.data(),
                                x.size() * 4));
  ASSERT_EQ(session.run(), "");
  ASSERT_OK(tessera_device_copy(session.context, y.data(), session.pointers[1],
                                y.size() * 4));
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(y[i], 2 * x[i] + 1) << i;
}

//===----------------------------------------------------------------------===//
// Contexts and memory
//===----------------------------------------------------------------------===//

TEST_F(CUDA, AContextSaysWhatItRunsOn) {
  tessera_context_options options = cudaOptions();
  int32_t ordinal = 1;
  options.device = &ordinal;
  tessera_context *context;
  ASSERT_OK(tessera_context_create(&options, &context));
  tessera_device device{};
  device.size = sizeof device;
  ASSERT_OK(tessera_context_device(context, &device));
  EXPECT_STREQ(device.target, "cuda:sm_90a");
  EXPECT_ERROR(device.description, "GPU 1, Fake 1, driver");
  EXPECT_EQ(device.free_bytes, size_t(1) << 30);
  EXPECT_EQ(driver().retained[1], 1);
  tessera_context_destroy(context);

  ordinal = 2;
  EXPECT_ERROR(take(tessera_context_create(&options, &context)),
               "there is no GPU 2: this machine has 2");
}

TEST_F(CUDA, RanksOfAProcessHaveDevicesOfTheirOwn) {
  std::string places[3];
  tessera_context_options options = cudaOptions();
  onRanks(
      3,
      [&](tessera_context *context) {
        tessera_device device{};
        device.size = sizeof device;
        ASSERT_OK(tessera_context_device(context, &device));
        places[tessera_context_rank(context)] = device.description;
      },
      options);
  EXPECT_ERROR(places[0], "GPU 0");
  EXPECT_ERROR(places[1], "GPU 1");
  EXPECT_ERROR(places[2], "GPU 0"); // modulo their number
}

TEST_F(CUDA, RanksMustRunOnTheSame) {
  tessera_threads *group;
  ASSERT_OK(tessera_threads_create(2, &group));
  std::string errors[2];
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      tessera_context_options options = cudaOptions();
      options.world = 2;
      options.rank = rank;
      options.transport = "threads";
      options.handle = group;
      if (rank)
        options.backend = nullptr;
      tessera_context *context;
      errors[rank] = take(tessera_context_create(&options, &context));
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &error : errors)
    EXPECT_ERROR(error, "ranks 0 and 1 differ in what they run on");
  tessera_threads_destroy(group);
}

TEST_F(CUDA, MemoryOfTheDevice) {
  tessera_context_options options = cudaOptions();
  tessera_context *context;
  ASSERT_OK(tessera_context_create(&options, &context));
  void *pointer;
  ASSERT_OK(tessera_device_allocate(context, 1000, &pointer));
  EXPECT_EQ(driver().allocations.size(), 1u);
  char out[1000], in[1000] = "there and back";
  ASSERT_OK(tessera_device_copy(context, pointer, in, sizeof in));
  ASSERT_OK(tessera_device_copy(context, out, pointer, sizeof out));
  EXPECT_STREQ(out, in);
  tessera_device_free(context, pointer, 1000);
  tessera_status *status =
      tessera_device_allocate(context, size_t(1) << 40, &pointer);
  EXPECT_EQ(tessera_status_code(status), TESSERA_OUT_OF_MEMORY);
  EXPECT_ERROR(take(status),
               "not enough memory: cannot allocate 1099511627776 bytes on GPU "
               "0: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  tessera_context_destroy(context);
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

TEST_F(CUDA, AModuleForAnotherTargetIsRefused) {
  PlanBuilder cpu("<tp = 1>");
  cpu.input("x", {4}, "[_]");
  {
    Session session;
    EXPECT_ERROR(session.open(cpu.module()),
                 "the module is compiled for cpu; this context runs "
                 "cuda:sm_90a: compile with --target=cuda:sm_90a or use "
                 "--backend cpu");
  }
  {
    driver().capability = 80;
    Session session;
    EXPECT_ERROR(session.open(TwicePlus().module()),
                 "the module is compiled for cuda:sm_90a; this context runs "
                 "cuda:sm_80: that needs compute capability 9.0, GPU 0 (Fake "
                 "0) has 8.0");
  }
}

TEST_F(CUDA, ACubinForAnotherArchitectureIsAnError) {
  CUDAPlan plan;
  plan.input("x", {4}, "[_]");
  plan.binary("old", "fake cubin 80\nf 8");
  Session session;
  std::string error = session.open(plan.module());
  EXPECT_ERROR(error, "cannot load binary 'old': CUDA_ERROR_NO_BINARY_FOR_GPU");
  EXPECT_ERROR(error, "Fake 0, compute capability 9.0");
  EXPECT_ERROR(error, "fake: another architecture");
}

TEST_F(CUDA, WhatAFunctionTakesIsCompared) {
  Session session;
  ASSERT_EQ(session.open(TwicePlus(80).module()), "");
  EXPECT_ERROR(session.bind({4}), "function 'twice_plus' of binary "
                                  "'pointwise' takes 80 bytes, its launch has "
                                  "88");
}

TEST_F(CUDA, AFunctionThatIsNotThere) {
  TwicePlus plan;
  plan.plan.steps[0]->action.AsLaunch()->functions[0]->symbol = "other";
  Session session;
  ASSERT_EQ(session.open(plan.module()), "");
  EXPECT_ERROR(session.bind({4}),
               "cannot find function 'other' of binary 'pointwise'");
}

TEST_F(CUDA, BlocksThatDoNotFit) {
  TwicePlus plan;
  driver().resident = 0;
  Session session;
  ASSERT_EQ(session.open(plan.module()), "");
  EXPECT_ERROR(session.bind({4}), "does not fit on GPU 0 with 128 threads");
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

TEST_F(CUDA, AKernelGetsItsWords) {
  Session session;
  ASSERT_EQ(session.open(TwicePlus().module()), "");
  ASSERT_EQ(session.bind({3}), "");
  expectTwicePlus(session, 3, 1);
  ASSERT_EQ(driver().launches.size(), 1u);
  const FakeLaunch &launch = driver().launches[0];
  EXPECT_EQ(launch.name, "twice_plus");
  EXPECT_EQ(launch.blocks, 6u); // 24 points by 4
  EXPECT_EQ(launch.threads, 128u);
  EXPECT_EQ(launch.shared, 1024u);
  const std::vector<uint64_t> words = {
      reinterpret_cast<uint64_t>(session.pointers[0]),
      3,
      8,
      8,
      1,
      reinterpret_cast<uint64_t>(session.pointers[1]),
      3,
      8,
      8,
      1,
      1};
  EXPECT_EQ(launch.words, words);
}

/// Reads x [batch, rows, 2, width] in boxes of 1 x 128 x 1 x 64, through a
/// transposed window.
struct Boxes : CUDAPlan {
  explicit Boxes(int64_t width, fb::DType dtype = fb::DType::BF16) {
    int batch = symbol("batch", 8);
    int x =
        input("x", {Size::symbol(batch), 100, 2, width}, "[_, _, _, _]", dtype);
    int turned = alias("turned", x, fb::AliasKind::Transpose,
                       {Size::symbol(batch), 2, 100, width}, "[_, _, _, _]",
                       {0, 2, 1, 3});
    int y = output("y", {4}, "[_]");
    // 9 words, 3 words, 1 word; then a map from word 16 on.
    int kernels = binary("boxes", "fake cubin 90\nboxes 256");
    launch("boxes", {turned, y}, {value(7)});
    function(kernels, "boxes", {4});
    auto boxed = std::make_unique<fb::BoxedTensorT>();
    boxed->tensor = 0;
    boxed->box = {1, 1, 128, 64};
    plan.steps[0]->action.AsLaunch()->functions[0]->boxed.push_back(
        std::move(boxed));
    driver().kernels["boxes"] = [](const FakeLaunch &) {};
  }
};

TEST_F(CUDA, MapsStandBehindTheWords) {
  Session session;
  ASSERT_EQ(session.open(Boxes(72).module()), "");
  ASSERT_EQ(session.bind({3}), "");
  ASSERT_EQ(session.run(), "");
  ASSERT_EQ(driver().launches.size(), 1u);
  const std::vector<uint64_t> &words = driver().launches[0].words;
  ASSERT_EQ(words.size(), 32u);
  EXPECT_EQ(words[12], 7u);
  const uint64_t address = reinterpret_cast<uint64_t>(session.pointers[0]);
  EXPECT_EQ(words[0], address);
  const std::vector<uint64_t> map(words.begin() + 16, words.end());
  const std::vector<uint64_t> expected = {
      address, 9 << 8 | 4, 72,    100, 2, 3, 0, // sizes
      288,     144,        28800, 0,            // strides
      64,      128,        1,     1,   0};      // box
  EXPECT_EQ(map, expected);
}

TEST_F(CUDA, ClustersAreLaunchedWhole) {
  // 8 points a row, by 4.
  auto blocks = [](int64_t rows, int cluster) {
    TwicePlus plan;
    auto &function = *plan.plan.steps[0]->action.AsLaunch()->functions[0];
    function.cluster = cluster;
    function.persistent = true;
    Session session;
    EXPECT_EQ(session.open(plan.module()), "");
    EXPECT_EQ(session.bind({rows}), "");
    driver().launches.clear();
    EXPECT_EQ(session.run(), "");
    return driver().launches.empty() ? 0u : driver().launches[0].blocks;
  };
  EXPECT_EQ(blocks(3, 4), 8u); // not 6
  EXPECT_EQ(blocks(2, 4), 4u);
  EXPECT_EQ(blocks(0, 4), 0u);
  // Not more than run at once.
  driver().multiprocessors = 5;
  driver().resident = 2;
  EXPECT_EQ(blocks(64, 1), 10u);
  EXPECT_EQ(blocks(64, 4), 8u);
}

TEST_F(CUDA, AnEmptyTensorHasNoMap) {
  Session session;
  ASSERT_EQ(session.open(Boxes(72).module()), "");
  ASSERT_EQ(session.bind({0}), "");
  ASSERT_EQ(session.run(), "");
  const std::vector<uint64_t> &words = driver().launches.at(0).words;
  EXPECT_EQ(std::vector<uint64_t>(words.begin() + 16, words.end()),
            std::vector<uint64_t>(16));
}

TEST_F(CUDA, WhatCannotBeReadInBoxes) {
  {
    Session session;
    ASSERT_EQ(session.open(Boxes(int64_t(1) << 31).module()), "");
    EXPECT_ERROR(session.bind({0}),
                 "dimension 3 has more than 2147482624 elements");
  }
  {
    Session session;
    ASSERT_EQ(session.open(Boxes(68).module()), "");
    EXPECT_ERROR(
        session.bind({3}),
        "function 'boxes' cannot read tensor 'turned' in boxes: the stride "
        "of dimension 1 is 136 bytes, which is no multiple of 16");
  }
  {
    Session session;
    ASSERT_EQ(session.open(Boxes(72, fb::DType::F32).module()), "");
    EXPECT_ERROR(session.bind({3}), "boxes have elements of f16 or bf16");
  }
  {
    Session session;
    ASSERT_EQ(session.open(Boxes(72).module()), "");
    driver().failNext["cuTensorMapEncodeTiled"] = 1;
    EXPECT_ERROR(session.bind({3}),
                 "cannot read tensor 'turned' in boxes: cannot "
                 "encode its map: CUDA_ERROR_INVALID_VALUE");
  }
}

TEST_F(CUDA, BlocksAreAsManyAsThePointsNeedOrAsRunAtOnce) {
  for (auto [batch, persistent, blocks] :
       {std::tuple(1, true, 2u), std::tuple(4, true, 8u),
        std::tuple(5, true, 8u), std::tuple(64, true, 8u),
        std::tuple(1, false, 2u), std::tuple(64, false, 128u)}) {
    driver() = RecordingDriver();
    TwicePlus plan;
    plan.plan.steps[0]->action.AsLaunch()->functions[0]->persistent =
        persistent;
    Session session;
    ASSERT_EQ(session.open(plan.module()), "");
    ASSERT_EQ(session.bind({batch}), "");
    expectTwicePlus(session, batch, 3);
    EXPECT_EQ(driver().launches.at(0).blocks, blocks) << batch;
  }
}

TEST_F(CUDA, NoPointsNoLaunch) {
  Session session;
  ASSERT_EQ(session.open(TwicePlus().module()), "");
  ASSERT_EQ(session.bind({0}), "");
  EXPECT_EQ(session.run(), "");
  EXPECT_TRUE(driver().launches.empty());
}

TEST_F(CUDA, TheFirstRunIsRecordedAndLaterOnesReplayIt) {
  Session session;
  ASSERT_EQ(session.open(TwicePlus().module()), "");
  ASSERT_EQ(session.bind({4}), "");
  expectTwicePlus(session, 4, 1);
  const std::vector<std::string> first = {"copy",          "launch twice_plus",
                                          "begin capture", "launch twice_plus",
                                          "end capture",   "copy"};
  EXPECT_EQ(driver().calls, first);
  driver().calls.clear();
  expectTwicePlus(session, 4, 2);
  const std::vector<std::string> later = {"copy", "launch graph", "copy"};
  EXPECT_EQ(driver().calls, later);
  EXPECT_GT(tessera_binding_host_seconds(session.binding), 0);
}

TEST_F(CUDA, ARunInTheCallersStream) {
  Session session;
  ASSERT_EQ(session.open(TwicePlus().module()), "");
  ASSERT_EQ(session.bind({4}), "");
  expectTwicePlus(session, 4, 1);
  Outcome<std::unique_ptr<cuda::Device>> callers =
      cuda::Device::open(nullptr, 0);
  ASSERT_TRUE(callers) << callers.message();
  cuda::Device::Current current(**callers);
  const cuda::Driver &api = (*callers)->driver();
  cuda::Stream stream;
  ASSERT_EQ(api.streamCreate(&stream, cuda::kStreamNonBlocking), 0);
  driver().calls.clear();
  EXPECT_OK(tessera_binding_enqueue(session.binding, stream));
  EXPECT_OK(tessera_binding_wait(session.binding));
  EXPECT_EQ(driver().calls, std::vector<std::string>{"launch graph"});
  // A graph of the caller's takes in the works themselves.
  ASSERT_EQ(api.streamBeginCapture(stream, cuda::kCaptureThreadLocal), 0);
  driver().calls.clear();
  EXPECT_OK(tessera_binding_enqueue(session.binding, stream));
  EXPECT_EQ(driver().calls, std::vector<std::string>{"launch twice_plus"});
  cuda::Graph graph;
  ASSERT_EQ(api.streamEndCapture(stream, &graph), 0);
  EXPECT_EQ(api.graphDestroy(graph), 0);
  EXPECT_EQ(api.streamDestroy(stream), 0);
}

TEST_F(CUDA, TheFirstRunIsNoPartOfACapture) {
  Session session;
  ASSERT_EQ(session.open(TwicePlus().module()), "");
  ASSERT_EQ(session.bind({4}), "");
  Outcome<std::unique_ptr<cuda::Device>> device =
      cuda::Device::open(nullptr, 0);
  ASSERT_TRUE(device) << device.message();
  cuda::Device::Current current(**device);
  const cuda::Driver &api = (*device)->driver();
  cuda::Stream stream;
  ASSERT_EQ(api.streamCreate(&stream, cuda::kStreamNonBlocking), 0);
  ASSERT_EQ(api.streamBeginCapture(stream, cuda::kCaptureThreadLocal), 0);
  EXPECT_ERROR(take(tessera_binding_enqueue(session.binding, stream)),
               "the first run, which cannot be captured: run once before");
  EXPECT_EQ(api.streamDestroy(stream), 0);
}

TEST_F(CUDA, WithoutAGraph) {
  Session session;
  ASSERT_EQ(session.open(TwicePlus().module(), cudaOptions(TESSERA_NO_GRAPH)),
            "");
  ASSERT_EQ(session.bind({4}), "");
  for (int run = 0; run < 2; ++run) {
    driver().calls.clear();
    expectTwicePlus(session, 4, 1 + run);
    const std::vector<std::string> calls = {"copy", "launch twice_plus",
                                            "copy"};
    EXPECT_EQ(driver().calls, calls);
  }
}

TEST_F(CUDA, StepsAreTimed) {
  TwicePlus plan;
  plan.copy(0, 1); // ordinals of x and y
  Session session;
  ASSERT_EQ(session.open(plan.module(), cudaOptions(TESSERA_TIME_STEPS)), "");
  ASSERT_EQ(session.bind({4}), "");
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(session.run(), "");
    double last = 0;
    ASSERT_EQ(tessera_binding_step_count(session.binding), 2u);
    for (size_t i = 0; i < 2; ++i) {
      tessera_step step{};
      step.size = sizeof step;
      ASSERT_OK(tessera_binding_step(session.binding, i, &step));
      EXPECT_STREQ(step.op, i ? "tv.copy" : "tv.map");
      EXPECT_EQ(step.collective, -1);
      EXPECT_NEAR(step.end - step.begin, 1e-3, 1e-5); // as the fake counts
      EXPECT_GE(step.begin, last);
      last = step.end;
    }
  }
}

TEST_F(CUDA, StepsAreLogged) {
  static std::vector<std::string> lines;
  lines.clear();
  tessera_context_options options = cudaOptions(TESSERA_CHECK_STEPS);
  options.log = [](void *, tessera_log_level, const char *message) {
    lines.push_back(message);
  };
  Session session;
  ASSERT_EQ(session.open(TwicePlus().module(), options), "");
  ASSERT_EQ(session.bind({4}), "");
  expectTwicePlus(session, 4, 1);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_ERROR(lines[1],
               "step 0, 'tv.map' at test.mlir:1:1, kernel 'twice_plus', "
               "twice_plus: 8 blocks of 128 threads, 1024 bytes shared");
  EXPECT_ERROR(lines[2], "step 0 took");
}

//===----------------------------------------------------------------------===//
// Copies and constants
//===----------------------------------------------------------------------===//

TEST_F(CUDA, DenseCopiesAreTheDriversStridedOnesAKernels) {
  for (const char *name : {"tessera_copy_4", "tessera_copy_8",
                           "tessera_copy_16", "tessera_transpose_4"})
    driver().kernels[name] = [name](const FakeLaunch &launch) {
      findEmulated(name).run(launch.blocks, launch.words.data());
    };
  CUDAPlan plan;
  int x = plan.input("x", {5, 7}, "[_, _]");
  int t =
      plan.alias("t", x, fb::AliasKind::Transpose, {7, 5}, "[_, _]", {1, 0});
  int y = plan.output("y", {5, 7}, "[_, _]");
  int z = plan.output("z", {7, 5}, "[_, _]");
  plan.copy(x, y);
  plan.copy(t, z);
  Session session;
  ASSERT_EQ(session.open(plan.module()), "");
  ASSERT_EQ(session.bind(), "");
  std::vector<float> in(35), same(35), turned(35);
  for (int i = 0; i < 35; ++i)
    in[i] = i;
  ASSERT_OK(tessera_device_copy(session.context, session.pointers[0], in.data(),
                                140));
  driver().calls.clear();
  ASSERT_EQ(session.run(), "");
  EXPECT_EQ(driver().calls.at(0), "copy on device");
  EXPECT_ERROR(driver().calls.at(1), "launch tessera_");
  ASSERT_OK(tessera_device_copy(session.context, same.data(),
                                session.pointers[1], 140));
  ASSERT_OK(tessera_device_copy(session.context, turned.data(),
                                session.pointers[2], 140));
  EXPECT_EQ(same, in);
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < 5; ++j)
      EXPECT_EQ(turned[i * 5 + j], in[j * 7 + i]);
}

TEST_F(CUDA, ConstantsAreBroughtToTheDevice) {
  CUDAPlan plan;
  int c = plan.tensor("c", {4}, "[_]", fb::Storage::Constant);
  int d = plan.tensor("d", {2}, "[_]", fb::Storage::Constant);
  plan.plan.tensors[d]->constant_offset = 64;
  int y = plan.output("y", {4}, "[_]"), z = plan.output("z", {2}, "[_]");
  plan.copy(c, y);
  plan.copy(d, z);
  std::string constants(72, '\0');
  const float values[] = {1, 2, 3, 4}, others[] = {5, 6};
  std::memcpy(constants.data(), values, sizeof values);
  std::memcpy(constants.data() + 64, others, sizeof others);
  Session session;
  ASSERT_EQ(session.open(plan.module(constants)), "");
  ASSERT_EQ(session.bind(), "");
  tessera_memory memory{};
  memory.size = sizeof memory;
  ASSERT_OK(tessera_binding_memory(session.binding, &memory));
  EXPECT_EQ(memory.constants, 512u); // each aligned to 256
  ASSERT_EQ(session.run(), "");
  float result[4];
  ASSERT_OK(tessera_device_copy(session.context, result, session.pointers[0],
                                sizeof result));
  EXPECT_EQ(result[3], 4);
  ASSERT_OK(
      tessera_device_copy(session.context, result, session.pointers[1], 8));
  EXPECT_EQ(result[1], 6);
}

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
  // As EdgeTest's, with device functions and binaries: what the reader lets
  // through must be bound or refused, and the driver is asked for nothing that
  // it could not survive.
  TwicePlus plan;
  int x = 0, batch = 0;
  int t = plan.alias("t", x, fb::AliasKind::Transpose, {8, Size::symbol(batch)},
                     "[_, _]", {1, 0});
  int z = plan.output("z", {8, Size::symbol(batch)}, "[_, _]");
  plan.copy(t, z);
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishPlanBuffer(builder, fb::Plan::Pack(builder, &plan.plan));
  const std::string bytes(reinterpret_cast<char *>(builder.GetBufferPointer()),
                          builder.GetSize());
  tessera_context_options options = cudaOptions();
  tessera_context *context;
  ASSERT_OK(tessera_context_create(&options, &context));
  std::mt19937 random(1);
  int loads = 0, binds = 0;
  const int rounds = std::getenv("TESSERA_LONG") ? 200000 : 4000;
  for (int i = 0; i < rounds; ++i) {
    std::string damaged = bytes;
    if (i > 0)
      for (unsigned k = 1 + random() % 3; k > 0; --k)
        damaged[random() % damaged.size()] =
            random() % 2 ? random() : random() % 10;
    ModuleBuilder builder;
    builder.setPlan(damaged);
    builder.setCode(plan.code, 0);
    std::string file = builder.build();
    tessera_module *loaded;
    if (tessera_status *status =
            tessera_module_load(context, file.data(), file.size(), &loaded)) {
      ASSERT_NE(take(status), "") << i;
      ASSERT_NE(i, 0) << "the plan itself is wrong";
      continue;
    }
    ++loads;
    tessera_memory memory{};
    memory.size = sizeof memory;
    for (int64_t size : {0, 3, 64})
      binds += take(tessera_module_memory(loaded, &size, 1, &memory)) == "";
    tessera_module_destroy(loaded);
  }
  tessera_context_destroy(context);
  EXPECT_GT(loads, rounds / 20);
  EXPECT_GT(binds, rounds / 20);
}

TEST_F(CUDA, ALaunchThatFailsNamesItsOp) {
  for (uint32_t flags : {0u, uint32_t(TESSERA_NO_GRAPH)}) {
    Session session;
    ASSERT_EQ(session.open(TwicePlus().module(), cudaOptions(flags)), "");
    ASSERT_EQ(session.bind({4}), "");
    driver().failNext["cuLaunchKernel"] = 1;
    tessera_status *status = tessera_binding_run(session.binding);
    EXPECT_EQ(tessera_status_code(status), TESSERA_INTERNAL);
    EXPECT_STREQ(tessera_status_op(status), "tv.map");
    EXPECT_STREQ(tessera_status_location(status), "test.mlir:1:1");
    std::string error = take(status);
    EXPECT_ERROR(error, "cannot launch 'twice_plus': CUDA_ERROR_INVALID_VALUE");
    EXPECT_EQ(session.run(), error); // poisoned
  }
}

TEST_F(CUDA, EachStepOfAGraphMayFail) {
  for (const char *call :
       {"cuStreamBeginCapture_v2", "cuStreamEndCapture",
        "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuEventRecord"}) {
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
  const Traffic *traffic() const override { return waits ? &moved : nullptr; }

private:
  const cuda::Device &device;
  cuda::Function function;
  bool waits;
  Traffic moved{8, 8};
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

/// Runs works 0, 1, 2 of which 1 and 2 are collectives and 2 hangs.
void runHanging(FakeCompanion &companion, bool &stuck, Stop &result) {
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
    works.push_back(std::make_unique<FakeWork>(**device, plain, false));
    works.push_back(std::make_unique<FakeWork>(**device, plain, true));
    works.push_back(std::make_unique<FakeWork>(**device, hang, true));
    driver().hangs = "hang";
    auto program = cuda::makeProgram(**device, mark, works, 0);
    ASSERT_TRUE(program);
    NoNames names;
    std::optional<Stop> stop = (*program)->run(**context, names);
    ASSERT_TRUE(stop);
    result = *stop;
    stuck = (*device)->isStuck();
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
  EXPECT_ERROR(stop.message, "no rank answered");
  EXPECT_EQ(stop.work, 2u);
  EXPECT_EQ(companion.aborts, 1);
  EXPECT_TRUE(stuck); // nothing that waits for the device is called
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
