//===- CuDNNGraphTest.cpp - what cuDNN itself makes of our graphs ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the library is there: its heuristics for an H100 that it knows by
// numbers only. An engine that does not take a graph is not proposed, so what
// is proposed for ours is attention to cuDNN. Without a driver the toolkit's
// stub of one is enough for that.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/CuDNN/AttentionPlan.h"
#include "gtest/gtest.h"

#include <dlfcn.h>

using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::cuda::dnn;

namespace {

// Of cuDNN's numbers, those that only this test uses.
constexpr auto kDevice = static_cast<Kind>(38);
constexpr auto kDeviceText = static_cast<Field>(2702);
constexpr auto kHeuristicsDevice = static_cast<Field>(204);
constexpr auto kChar = static_cast<Type>(24);

constexpr std::string_view kH100 = R"({
  "deviceName": "NVIDIA H100 80GB HBM3", "deviceVer": 900, "driverVer": 13000,
  "cudaDeviceId": 0, "pciDeviceId": 0, "isTccDriver": 0,
  "multiProcessorCount": 132, "warpSize": 32, "maxCtasPerSM": 32,
  "maxThreadsPerSM": 2048, "maxThreadsPerBlock": 1024,
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
  "regsPerBlock": 65536, "maxRegistersPerSM": 65536,
  "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "supportCoopLaunch": 1,
  "smClockRateKHz": 1980000, "memClockRateKHz": 2619000,
  "l2CacheSize": 52428800, "totalGlobalMem": 85520809984})";

/// b, s, h, d in memory.
AttentionShape shapeOf(int64_t heads, int64_t groups, int64_t queries,
                       int64_t keys, int64_t depth, DType dtype, bool causal,
                       bool lse) {
  AttentionShape shape{dtype, causal, 2,  heads, groups, queries, keys,
                       depth, {},     {}, {},    {},     {},      {}};
  auto strides = [&](int64_t h, int64_t s) -> AttentionShape::Strides {
    return {s * h * depth, depth, h * depth, 1};
  };
  shape.q = shape.o = strides(heads, queries);
  shape.k = shape.v = strides(groups, keys);
  if (lse)
    shape.lse = {heads * queries, queries, 1};
  return shape;
}

TEST(CuDNNGraph, IsAttentionToTheLibrary) {
  if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) &&
      !dlopen("/usr/local/cuda/lib64/stubs/libcuda.so", RTLD_NOW | RTLD_GLOBAL))
    GTEST_SKIP() << "there is no libcuda.so.1, nor a stub of it";
  Result<const Api *> opened = Api::get();
  if (!opened)
    GTEST_SKIP() << opened.message();
  const Api &api = **opened;
  Objects devices(api);
  Object device = devices.make(kDevice);
  ASSERT_TRUE(devices.status) << devices.status.message();
  ASSERT_EQ(
      api.setField(device, kDeviceText, kChar, kH100.size(), kH100.data()), 0);
  devices.finalize(device);
  if (!devices.status)
    GTEST_SKIP() << "this version wants to know more of a GPU: "
                 << devices.status.message();

  for (bool causal : {false, true})
    for (auto [lse, grads] :
         {std::pair(false, false), {true, false}, {true, true}})
      for (DType dtype : {DType::BF16, DType::F16})
        for (int64_t depth : {8, 64, 72, 128})
          for (auto [heads, groups] : {std::pair(8, 8), {8, 2}, {6, 1}})
            for (auto [queries, keys] :
                 {std::pair(4096, 4096), {1, 1}, {1, 512}, {70, 150}, {7, 3}}) {
              if (causal && queries > keys)
                continue;
              AttentionShape shape = shapeOf(heads, groups, queries, keys,
                                             depth, dtype, causal, lse);
              if (grads)
                shape.grads = {shape.o, shape.q, shape.k, shape.v};
              Objects objects(api);
              Object graph = makeAttentionGraph(objects, shape, nullptr);
              Object heuristics = objects.make(Kind::Heuristics);
              objects.set(heuristics, Field::HeuristicsGraph, graph);
              objects.set(heuristics, Field::HeuristicsMode, Heuristic::A);
              objects.set(heuristics, kHeuristicsDevice, device);
              objects.finalize(heuristics);
              const int64_t engines = objects.get(
                  heuristics, Field::HeuristicsResults, std::span<Object>());
              EXPECT_TRUE(objects.status)
                  << shape.text() << ": " << objects.status.message();
              EXPECT_GE(engines, 1) << shape.text();
            }
}

} // namespace
