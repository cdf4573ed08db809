//===- OnHost.h - what functions of kernels need on the host ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tests of what attention's kernels decide in plain C++. Included ahead of
// their headers; what these have of CUDA, and name of ptx.cuh and wgmma.cuh,
// which are PTX.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_COMPILER_CUDA_ONHOST_H
#define TESSERA_TEST_COMPILER_CUDA_ONHOST_H

#include <algorithm>
#include <random>
#include <utility>

#define __host__
#define __noinline__
using std::max;
using std::min;
inline int atomicAdd(int *to, int value) {
  return std::exchange(*to, *to + value);
}
inline unsigned atomicOr(unsigned *to, unsigned value) {
  return std::exchange(*to, *to | value);
}
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(unsigned bits) { return __builtin_ffs(bits); }
inline int __ffsll(unsigned long long bits) { return __builtin_ffsll(bits); }
int __reduce_max_sync(unsigned, int value);

#define TESSERA_KERNELS_PTX_CUH
#define TESSERA_KERNELS_WGMMA_CUH
#define TSR_MEMBER inline
#define TSR_DEVICE static inline
#include "base/prelude.cuh"
namespace tessera {
struct alignas(64) TensorMap {
  char bytes[128];
};
TSR_DEVICE int load_relaxed(int const *p) { return *p; }
TSR_DEVICE int load_acquire(int const *p) { return *p; }
template <class... A> void tma_load(A...);
template <class... A> void tma_store(A...);

using Random = std::mt19937;
inline int draw(Random &random, int least, int most) {
  return least + int(random() % unsigned(most - least + 1));
}
} // namespace tessera

#endif // TESSERA_TEST_COMPILER_CUDA_ONHOST_H
