//===- Emulation.cpp - the runtime's kernels on the host ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Brings what CUDA's C++ has more than the host's, and a launcher for each
// kernel.
//
//===----------------------------------------------------------------------===//

#include "Emulation.h"
#include "Support/Half.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#define TESSERA_HOST_EMULATION
#define TESSERA_FETCHES
#define __device__
#define __global__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __shared__ static thread_local

namespace {

struct Index {
  uint32_t x;
};
thread_local Index gridDim, blockIdx;
constexpr Index threadIdx{0};
constexpr unsigned kThreads = 1;

struct alignas(8) uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
inline void __syncthreads() {}
inline void __threadfence_system() {}
inline float __uint_as_float(uint32_t bits) {
  return std::bit_cast<float>(bits);
}
inline uint32_t __float_as_uint(float value) {
  return std::bit_cast<uint32_t>(value);
}
inline float f16ToFloat(uint16_t bits) {
  tessera::F16 half;
  half.bits = bits;
  return static_cast<float>(half);
}
inline uint16_t f16FromFloat(float value) { return tessera::F16(value).bits; }
using std::min;

#pragma clang diagnostic ignored "-Wunknown-pragmas"
#pragma clang diagnostic ignored "-Wpass-failed"
#include "Kernels/cuda/base/runtime.cu"

template <typename Arguments, void (*kernel)(Arguments)>
void launch(unsigned blocks, const void *argument) {
  Arguments arguments;
  std::memcpy(&arguments, argument, sizeof arguments);
  gridDim.x = blocks;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
    kernel(arguments);
}

struct Entry {
  const char *name;
  tessera::test::Emulated kernel;
};
#define ENTRY(ARGUMENTS, NAME)                                                 \
  {"tessera_" #NAME, {launch<ARGUMENTS, tessera_##NAME>, sizeof(ARGUMENTS)}},
#define MOVES(BYTES)                                                           \
  ENTRY(CopyArguments, copy_##BYTES)                                           \
  ENTRY(TransposeArguments, transpose_##BYTES)                                 \
  ENTRY(FillArguments, fill_##BYTES)                                           \
  ENTRY(FetchArguments, fetch_##BYTES)
#define FOLDS(TYPE)                                                            \
  ENTRY(FoldArguments, sum_##TYPE)                                             \
  ENTRY(FoldArguments, max_##TYPE)                                             \
  ENTRY(FoldArguments, min_##TYPE)
constexpr Entry kEntries[] = {
    ENTRY(MarkArguments, mark) MOVES(1) MOVES(2) MOVES(4) MOVES(8) MOVES(16)
        FOLDS(f64) FOLDS(f32) FOLDS(bf16) FOLDS(f16) FOLDS(i64) FOLDS(i32)
            FOLDS(u32) FOLDS(i8) FOLDS(u8)};

} // namespace

tessera::test::Emulated tessera::test::findEmulated(std::string_view name) {
  for (const Entry &entry : kEntries)
    if (name == entry.name)
      return entry.kernel;
  return {};
}
