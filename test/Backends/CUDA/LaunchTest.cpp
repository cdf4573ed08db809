//===- LaunchTest.cpp - what kernels are launched with, and when ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the driver is asked for, in which order and with which arguments.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Driver/Device.h"
#include "OnRecordingDriver.h"

using namespace tessera;
using namespace tessera::test;

namespace {

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
  explicit Boxes(int64_t width, fb::DType dtype = fb::DType::BF16,
                 bool ragged = false) {
    int batch = symbol("batch", 8);
    int x =
        input("x", {Size::symbol(batch), 100, 2, width}, "[_, _, _, _]", dtype);
    int turned = alias("turned", x, fb::AliasKind::Transpose,
                       {Size::symbol(batch), 2, 100, width}, "[_, _, _, _]",
                       {0, 2, 1, 3});
    int y = output("y", {4}, "[_]");
    // 9 words, 3 words, 1 word; then a map from word 16 on.
    int kernels = binary("boxes", "fake cubin 90\nboxes 256");
    launch("boxes", {turned, y}, {valueScalar(7)});
    function(kernels, "boxes", {4});
    auto boxed = std::make_unique<fb::BoxedTensorT>();
    boxed->tensor = 0;
    boxed->box = {1, 1, 128, 64};
    boxed->ragged = ragged;
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

TEST_F(CUDA, ARaggedMapHasRowsTwice) {
  Session session;
  ASSERT_EQ(session.open(Boxes(72, fb::DType::BF16, true).module()), "");
  ASSERT_EQ(session.bind({1}), "");
  ASSERT_EQ(session.run(), "");
  const std::vector<uint64_t> &words = driver().launches.at(0).words;
  const uint64_t rows = 1 << 30, back = uint64_t(1) << 34;
  const std::vector<uint64_t> map(words.begin() + 16, words.end());
  const std::vector<uint64_t> expected = {
      reinterpret_cast<uint64_t>(session.pointers[0]),
      9 << 8 | 5,
      72,
      rows,
      2,
      rows + 1,
      101, // sizes
      288,
      144,
      back - 288,
      288, // strides
      64,
      128,
      1,
      1,
      1}; // box
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
    ASSERT_EQ(session.open(Boxes(72).module()), "");
    ASSERT_EQ(session.allocate({3}), "");
    void *allocated = session.pointers[0];
    session.pointers[0] = static_cast<std::byte *>(allocated) + 8;
    EXPECT_ERROR(session.bindAllocated({3}),
                 "function 'boxes' cannot read tensor 'turned' in boxes: its "
                 "address is no multiple of 16 bytes");
    session.pointers[0] = allocated;
  }
  {
    Session session;
    ASSERT_EQ(session.open(Boxes(72, fb::DType::F32).module()), "");
    EXPECT_ERROR(session.bind({3}), "boxes have elements of f16 or bf16");
  }
  {
    Session session;
    ASSERT_EQ(session.open(Boxes(72, fb::DType::BF16, true).module()), "");
    EXPECT_ERROR(session.bind({3}),
                 "ragged boxes have rows of one batch and one head");
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

TEST_F(CUDA, AFunctionStartsEarlyBehindTheOneBeforeAlone) {
  for (int64_t empty : {1, 0}) {
    driver() = RecordingDriver();
    TwicePlus plan;
    const int binary =
        plan.plan.steps[0]->action.AsLaunch()->functions[0]->binary;
    plan.function(binary, "twice_plus", {empty}, 128, 1024, 4);
    plan.function(binary, "twice_plus", {4}, 128, 1024, 4);
    auto &functions = plan.plan.steps[0]->action.AsLaunch()->functions;
    for (auto &function : functions)
      function->early = true;
    Session session;
    ASSERT_EQ(session.open(plan.module()), "");
    ASSERT_EQ(session.bind({3}), "");
    ASSERT_EQ(session.run(), "");
    // Not the first, nor what follows one without points.
    std::vector<bool> early;
    for (const FakeLaunch &launch : driver().launches)
      early.push_back(launch.early);
    EXPECT_EQ(early, empty ? std::vector<bool>({false, true, true})
                           : std::vector<bool>({false, false}));
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

/// What a caller has for streams of its own.
struct Callers {
  std::unique_ptr<cuda::Device> device =
      std::move(*cuda::Device::open(nullptr, 0));
  cuda::Device::Current current{*device};
};

TEST_F(CUDA, ARunInTheCallersStream) {
  Session session;
  ASSERT_EQ(session.open(TwicePlus().module()), "");
  ASSERT_EQ(session.bind({4}), "");
  Callers callers;
  const cuda::Driver &api = callers.device->driver();
  cuda::Stream stream;
  ASSERT_EQ(api.streamCreate(&stream, cuda::kStreamNonBlocking), 0);
  EXPECT_EQ(tessera_binding_host_seconds(session.binding), 0);
  EXPECT_OK(tessera_binding_enqueue(session.binding, stream));
  EXPECT_GT(tessera_binding_host_seconds(session.binding), 0);
  EXPECT_OK(tessera_binding_wait(session.binding));
  expectTwicePlus(session, 4, 1);
  driver().calls.clear();
  EXPECT_OK(tessera_binding_enqueue(session.binding, stream));
  EXPECT_OK(tessera_binding_wait(session.binding));
  EXPECT_EQ(driver().calls, std::vector<std::string>{"launch graph"});
  // The graph runs in the caller's stream, and ours waits for it; the caller's
  // only for what ours holds itself, and for other streams.
  auto countWaits = [&](cuda::Stream stream) {
    const size_t before = driver().waits;
    EXPECT_OK(tessera_binding_enqueue(session.binding, stream));
    EXPECT_OK(tessera_binding_wait(session.binding));
    return driver().waits - before;
  };
  cuda::Stream other;
  ASSERT_EQ(api.streamCreate(&other, cuda::kStreamNonBlocking), 0);
  EXPECT_EQ(countWaits(stream), 1u);
  EXPECT_EQ(countWaits(other), 2u);
  EXPECT_EQ(countWaits(other), 1u);
  EXPECT_EQ(countWaits(stream), 2u);
  expectTwicePlus(session, 4, 2);
  EXPECT_EQ(countWaits(stream), 2u);
  EXPECT_EQ(api.streamDestroy(other), 0);
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

TEST_F(CUDA, WhoWaitsLooksAtWhatIsChecked) {
  CUDAPlan plan;
  int codes = plan.input("codes", {5}, "[_]", fb::DType::I32);
  plan.copy(codes, plan.output("wrong", {5}, "[_]", fb::DType::I32));
  plan.plan.ports.back()->check = "codes fall";
  Session session;
  ASSERT_EQ(session.open(plan.module()), "");
  ASSERT_EQ(session.bind(), "");
  auto give = [&](std::array<int32_t, 5> values) {
    EXPECT_OK(tessera_device_copy(session.context, session.pointers[0],
                                  values.data(), sizeof values));
  };
  Callers callers;
  const cuda::Driver &api = callers.device->driver();
  cuda::Stream stream;
  ASSERT_EQ(api.streamCreate(&stream, cuda::kStreamNonBlocking), 0);
  // What is there before the first run is nobody's result.
  const std::array<int32_t, 5> before = {1, 2, 3, 4, 5};
  EXPECT_OK(tessera_device_copy(session.context, session.pointers[1],
                                before.data(), sizeof before));
  EXPECT_OK(tessera_binding_wait(session.binding));
  give({0, 0, 0, -3, 0});
  EXPECT_OK(tessera_binding_enqueue(session.binding, stream));
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(take(tessera_binding_wait(session.binding)),
              "codes fall: 'wrong' is -3 at [3]");
  EXPECT_EQ(session.run(), "codes fall: 'wrong' is -3 at [3]");
  give({});
  EXPECT_OK(tessera_binding_enqueue(session.binding, stream));
  EXPECT_OK(tessera_binding_wait(session.binding));
  EXPECT_EQ(session.run(), "");
  EXPECT_EQ(api.streamDestroy(stream), 0);
}

TEST_F(CUDA, TheFirstRunIsNoPartOfACapture) {
  Session session;
  ASSERT_EQ(session.open(TwicePlus().module()), "");
  ASSERT_EQ(session.bind({4}), "");
  Callers callers;
  const cuda::Driver &api = callers.device->driver();
  cuda::Stream stream;
  ASSERT_EQ(api.streamCreate(&stream, cuda::kStreamNonBlocking), 0);
  ASSERT_EQ(api.streamBeginCapture(stream, cuda::kCaptureThreadLocal), 0);
  EXPECT_ERROR(take(tessera_binding_enqueue(session.binding, stream)),
               "the first run, which cannot be captured: run once before");
  EXPECT_EQ(api.streamDestroy(stream), 0);
}

/// y = x + 3 in three steps, the second beside two that it needs nothing of;
/// each writes a tensor of its own.
struct Beside : CUDAPlan {
  Beside() {
    const int kernels = binary("kernels", "fake cubin 90\nplus_one 48");
    const int x = input("x", {8}, "[_]");
    auto plusOne = [&](int from, int to) {
      launch("plus_one", {from, to});
      function(kernels, "plus_one", {8});
      return to;
    };
    auto local = [&](const char *name) { return tensor(name, {8}, "[_]"); };
    const int first = plusOne(x, local("first"));
    const int second = plusOne(first, local("second"));
    plan.steps.back()->until = 4;
    plusOne(plusOne(x, local("other")), local("another"));
    plusOne(second, output("y", {8}, "[_]"));
    driver().kernels["plus_one"] = [](const FakeLaunch &launch) {
      const auto *x = reinterpret_cast<const float *>(launch.words[0]);
      auto *y = reinterpret_cast<float *>(launch.words[3]);
      for (uint64_t i = 0; i < launch.words[1]; ++i)
        y[i] = x[i] + 1;
    };
  }
};

static void expectPlusThree(Session &session, bool first) {
  std::vector<float> x(8, first ? 1.0f : 5.0f), y(8);
  ASSERT_OK(
      tessera_device_copy(session.context, session.pointers[0], x.data(), 32));
  ASSERT_EQ(session.run(), "");
  ASSERT_OK(
      tessera_device_copy(session.context, y.data(), session.pointers[1], 32));
  EXPECT_EQ(y, std::vector<float>(8, x[0] + 3));
}

/// What is beside others has what it reads and writes to itself, however late
/// it runs.
TEST_F(CUDA, StepsRunBesideOthers) {
  for (bool late : {false, true})
    for (uint32_t flags : {0u, uint32_t(TESSERA_NO_GRAPH)}) {
      Session session;
      ASSERT_EQ(session.open(Beside().module(), cudaOptions(flags)), "");
      ASSERT_EQ(session.bind(), "");
      driver().late = late;
      for (int run = 0; run < 3; ++run) {
        const size_t waits = driver().waits;
        expectPlusThree(session, run == 0);
        // To begin and to end; the graph's own are no calls.
        EXPECT_EQ(driver().waits - waits, flags ? 2u : run == 0 ? 4u : 0u);
      }
      driver().late = false;
    }
}

/// A caller's graph takes in both streams.
TEST_F(CUDA, StepsBesideOthersInACallersGraph) {
  Session session;
  ASSERT_EQ(session.open(Beside().module()), "");
  ASSERT_EQ(session.bind(), "");
  expectPlusThree(session, true);
  Callers callers;
  const cuda::Driver &api = callers.device->driver();
  cuda::Stream stream;
  ASSERT_EQ(api.streamCreate(&stream, cuda::kStreamNonBlocking), 0);
  ASSERT_EQ(api.streamBeginCapture(stream, cuda::kCaptureThreadLocal), 0);
  driver().launches.clear();
  EXPECT_OK(tessera_binding_enqueue(session.binding, stream));
  EXPECT_TRUE(driver().launches.empty());
  cuda::Graph graph;
  ASSERT_EQ(api.streamEndCapture(stream, &graph), 0);
  cuda::GraphExec exec;
  ASSERT_EQ(api.graphInstantiate(&exec, graph, 0), 0);
  ASSERT_EQ(api.graphLaunch(exec, stream), 0);
  EXPECT_EQ(driver().launches.size(), 5u);
  EXPECT_EQ(api.graphExecDestroy(exec), 0);
  EXPECT_EQ(api.graphDestroy(graph), 0);
  EXPECT_EQ(api.streamDestroy(stream), 0);
}

TEST_F(CUDA, TimedAndCheckedStepsRunAlone) {
  for (uint32_t flags : {TESSERA_TIME_STEPS, TESSERA_CHECK_STEPS}) {
    Session session;
    ASSERT_EQ(session.open(Beside().module(), cudaOptions(flags)), "");
    ASSERT_EQ(session.bind(), "");
    const size_t waits = driver().waits;
    expectPlusThree(session, true);
    EXPECT_EQ(driver().waits, waits);
  }
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
      auto step = sized<tessera_step>();
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

} // namespace
