//===- BackendTest.cpp - contexts, modules and memory on cuda -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnRecordingDriver.h"

using namespace tessera;
using namespace tessera::test;

namespace {

//===----------------------------------------------------------------------===//
// Contexts and memory
//===----------------------------------------------------------------------===//

TEST_F(CUDA, AContextSaysWhatItRunsOn) {
  tessera_context_options options = cudaOptions();
  int32_t ordinal = 1;
  options.device = &ordinal;
  tessera_context *context;
  ASSERT_OK(tessera_context_create(&options, &context));
  auto device = sized<tessera_device>();
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
        auto device = sized<tessera_device>();
        ASSERT_OK(tessera_context_device(context, &device));
        places[tessera_context_rank(context)] = device.description;
      },
      options);
  EXPECT_ERROR(places[0], "GPU 0");
  EXPECT_ERROR(places[1], "GPU 1");
  EXPECT_ERROR(places[2], "GPU 0"); // modulo their number
}

TEST_F(CUDA, RanksMustRunOnTheSame) {
  auto adapt = [](int rank, tessera_context_options &options) {
    if (rank)
      options.backend = nullptr;
  };
  for (const std::string &error : getContextErrors(2, adapt, cudaOptions()))
    EXPECT_ERROR(error, "ranks 0 and 1 differ in what they run on");
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
                 "0) has 8.0: compile with --target=cuda:sm_80");
  }
  {
    driver().capability = 75;
    Session session;
    EXPECT_ERROR(session.open(TwicePlus().module()),
                 "has 7.5; targets begin with cuda:sm_80");
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
  EXPECT_ERROR(error, "): compile with --target=cuda:sm_90a; fake: another "
                      "architecture");
}

TEST_F(CUDA, ANewerGPURunsAModuleFromItsPTX) {
  CUDAPlan plan;
  plan.input("x", {4}, "[_]");
  plan.plan.target = "cuda:sm_80";
  int old = plan.binary("old", "fake cubin 80\nf 8");
  auto addPTX = [&](std::string text) {
    plan.plan.binaries[old]->ptx_offset = plan.code.size();
    plan.plan.binaries[old]->ptx_size = text.size() + 1;
    plan.code += text + '\0';
  };
  addPTX("fake cubin 90\nf 8");
  {
    Session session;
    EXPECT_EQ(session.open(plan.module()), "");
  }
  // That no newer GPU compiles either.
  addPTX("fake cubin 120\nf 8");
  Session session;
  std::string error = session.open(plan.module());
  EXPECT_ERROR(error, "cannot load binary 'old' from its PTX");
  EXPECT_ERROR(error, "): compile with --target=cuda:sm_90a; fake: another");
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
  auto memory = sized<tessera_memory>();
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

} // namespace
