//===- HopperTest.cpp - hand-written kernels compile as they must ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attention_fwd.cuh and gemm.cuh in all their kinds: no spills, and no remark
// that ptxas had to serialise products. What they compute is tested in
// lib/Kernels/cuda/*/test.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/NVRTC.h"
#include "Kernels/cuda/attention/attention_tiles.h"

#include "gtest/gtest.h"

using namespace tessera;
using namespace tessera;
using namespace tessera::cuda;

static void expectClean(const std::vector<Unit> &units) {
  Result<NVRTC> compiler = NVRTC::open("", "sm_90a");
  ASSERT_TRUE(compiler) << compiler.message();
  Result<std::vector<Binary>> binaries = compiler->compile(units);
  ASSERT_TRUE(binaries) << binaries.message();
  for (size_t i = 0; i < units.size(); ++i) {
    const Binary &binary = (*binaries)[i];
    ASSERT_EQ(binary.functions.size(), 1u) << units[i].name;
    EXPECT_EQ(binary.functions[0].spillBytes, 0) << units[i].name;
    EXPECT_EQ(binary.functions[0].stackBytes, 0) << units[i].name;
    for (const std::string &note : binary.notes)
      ADD_FAILURE() << units[i].name << ": " << note;
  }
}

TEST(Hopper, AttentionIsClean) {
  const std::string functors = R"(
  struct Args {
    const float *bias;
    int64 stride;
  };
  static constexpr bool HasScore = true, HasMask = true;
  template <class At>
  static __device__ float score(const Args &a, float s, const At &at) {
    return 30 * tanhf(s / 30) +
           a.bias[at.head * a.stride + at.query - at.key];
  }
  template <class At>
  static __device__ bool mask(const Args &a, const At &at) {
    return at.key <= at.query && at.query - at.key < 1000;
  }
)";
  const std::string cap = R"(
  struct Args {};
  static constexpr float InnerScale = 0.02f, OuterScale = 50;
  static constexpr bool HasScore = true, BoundedTanh = true;
  template <class At>
  static __device__ float score(const Args &, float s, const At &) {
    return tanhFast(s);
  }
)";
  std::vector<Unit> units;
  for (std::string type : {"bf16", "f16"})
    for (std::string depth : {"64", "96", "128", "192", "256"})
      for (std::string causal : {"false", "true"})
        for (auto [mods, queries] : {std::pair(std::string(), 0L),
                                     {std::string(), 128},
                                     {functors, 0},
                                     {cap, 0}}) {
          const int d = std::stoi(depth);
          const bool hasMods = !mods.empty(), isCap = mods == cap;
          // Beside wider accumulators functors have too few registers.
          if ((hasMods && d > 128) || (isCap && type == "f16"))
            continue;
          const AttentionTiles tiles =
              getForwardTiles(d, d, hasMods, hasMods, 0, isCap, queries);
          if (queries &&
              tiles.rows == getForwardTiles(d, d, hasMods, hasMods).rows)
            continue;
          units.push_back(
              {"attention " + type + " " + depth + " causal " + causal +
                   (isCap     ? " with a cap"
                    : hasMods ? " with functors"
                    : queries ? " of few queries"
                              : ""),
               "#include \"attention/attention_fwd.cuh\"\n"
               "using namespace tessera;\n"
               "struct Mods : AttentionMods {\n"
               "  static constexpr float Scale = 0.125f;\n"
               "  static constexpr bool Causal = " +
                   causal + ";\n" + mods +
                   "};\n"
                   "using Config = FwdConfig<" +
                   type + ", " + depth + ", Mods, " + depth + ", " +
                   std::to_string(tiles.rows) + ", " +
                   std::to_string(tiles.keys) + ", " +
                   std::to_string(tiles.stages) +
                   ">;\n"
                   "extern \"C\" __global__ void "
                   "__launch_bounds__(Config::Threads, 1)\n"
                   "attention(const __grid_constant__ FwdMaps maps,\n"
                   "          const __grid_constant__ FwdParams<Mods::Args> p) "
                   "{\n"
                   "  attention_fwd<Config>(maps, p);\n"
                   "}\n"});
        }
  expectClean(units);
}

TEST(Hopper, GemmIsClean) {
  std::vector<Unit> units;
  for (std::string type : {"bf16", "f16"})
    for (std::string tile :
         {"256, 4, 2", "256, 4, 1", "192, 5, 2", "128, 6, 2"})
      for (bool hasMods : {false, true})
        units.push_back(
            {"gemm " + type + " " + tile + (hasMods ? " with functors" : ""),
             std::string("#include \"gemm/gemm.cuh\"\n"
                         "using namespace tessera;\n"
                         "struct Mods : GemmMods {\n") +
                 (hasMods
                      ? "  struct Args {\n    const " + type +
                            " *bias;\n  };\n"
                            "  static __device__ void epilogue(const Args &a, "
                            "float (&x)[1], const GemmElement &at) {\n"
                            "    x[0] = gelu_tanh(x[0] + "
                            "widen<float>(a.bias[at.column]));\n  }\n"
                      : "") +
                 "};\n"
                 "using Config = GemmConfig<" +
                 type + ", " + tile +
                 ", Mods>;\n"
                 "extern \"C\" __global__ __cluster_dims__(Config::Cluster) "
                 "void __launch_bounds__(Config::Threads, 1)\n"
                 "matmul(const __grid_constant__ GemmMaps<> maps,\n"
                 "       const __grid_constant__ GemmParams<Mods::Args> p) {\n"
                 "  gemm<Config>(maps, p);\n"
                 "}\n"});
  expectClean(units);
}

/// Batches, with what epilogues of models do: a bias, a gelu, an element of
/// another tensor, two results.
TEST(Hopper, GemmWithAllThereIsIsClean) {
  std::vector<Unit> units;
  for (std::string tile :
       {"256, 4, 2", "256, 4, 1", "192, 5, 2", "192, 5, 1", "128, 6, 2"})
    for (std::string batched : {"false", "true"}) {
      units.push_back(
          {"gemm " + tile + " of B batched: " + batched,
           "#include \"gemm/gemm.cuh\"\n"
           "using namespace tessera;\n"
           "struct Mods : GemmMods {\n"
           "  struct Args {\n"
           "    Tensor<const bf16, 3, 2> other;\n"
           "    Tensor<const bf16, 1, 0> bias;\n"
           "  };\n"
           "  static constexpr int Results = 2;\n"
           "  static constexpr bool Rolled = true;\n"
           "  static __device__ void epilogue(const Args &a,\n"
           "      float (&x)[Results], const GemmElement &at) {\n"
           "    const float h = x[0] + "
           "widen<float>(*a.bias.at(at.column));\n"
           "    x[0] = 0.5f * h * (1 + tanh32(0.8f * h)) +\n"
           "        widen<float>(*a.other.at(at.batch, at.row, "
           "at.column));\n"
           "    x[1] = h;\n"
           "  }\n"
           "};\n"
           "using Config = GemmConfig<bf16, " +
               tile + ", Mods, 3, " + batched +
               ">;\n"
               "extern \"C\" __global__ __cluster_dims__(Config::Cluster) "
               "void __launch_bounds__(Config::Threads, 1)\n"
               "matmul(const __grid_constant__ GemmMaps<2> maps,\n"
               "       const __grid_constant__ GemmParams<Mods::Args> p) {\n"
               "  gemm<Config>(maps, p);\n"
               "}\n"});
    }
  expectClean(units);
}
