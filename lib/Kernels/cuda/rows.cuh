//===- rows.cuh - threads that work on one row ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel over rows is written once for a group of threads: the loops inside a
// row are shared among `size()` members, and a reduction gives every member the
// same number, by a tree that depends on nothing but the number of threads.
//
//   BlockRow   a block takes one row at a time
//   WarpRow    each warp of a block takes one, for short rows
//   ColumnRow  neighbouring threads take neighbouring rows, for tensors whose
//              neighbouring elements lie in neighbouring rows
//
//===----------------------------------------------------------------------===//

#pragma once

#include "prelude.cuh"

namespace tessera {

constexpr int kWarp = 32;
constexpr int kMaxWarps = 32;

template <class T> __device__ T otherLane(T x, int mask) {
  if constexpr (sizeof(T) < 4)
    return T(__shfl_xor_sync(0xffffffff, int(x), mask));
  else
    return __shfl_xor_sync(0xffffffff, x, mask);
}

/// `Combine::of` of the values of all lanes, which may be in any order of its
/// two arguments, so that all lanes get the same bits.
template <class Combine, class T> __device__ T reduceWarp(T x) {
#pragma unroll
  for (int mask = kWarp / 2; mask > 0; mask /= 2)
    x = Combine::of(x, otherLane(x, mask));
  return x;
}

/// The number of this thread, and of all of its block. Which chunks a thread
/// has is then known, mostly, and a row's stages are one piece of code, which
/// shares what it computes in registers. A kernel that has not enough of them
/// is compiled again without.
#ifdef TESSERA_ANY_SIZE
template <int Threads> __device__ int getThread() { return threadIdx.x; }
template <int Threads> __device__ int getThreads() { return blockDim.x; }
#else
template <int Threads> __device__ int getThread() {
  const int thread = threadIdx.x;
  __builtin_assume(thread >= 0 && thread < Threads);
  return thread;
}
template <int Threads> __device__ int getThreads() { return Threads; }
#endif

template <int Threads> struct BlockRow {
  static constexpr bool active = true;
  __device__ int64 first() const { return blockIdx.x; }
  __device__ int64 step() const { return gridDim.x; }
  __device__ int64 row(int64 at, int64) { return at; }
  __device__ int member() const { return getThread<Threads>(); }
  __device__ int size() const { return getThreads<Threads>(); }
  __device__ bool leads() const { return threadIdx.x == 0; }
  __device__ void sync() const { __syncthreads(); }

  template <class Combine, class T> __device__ T reduce(T x, T identity) const {
    __shared__ T parts[kMaxWarps];
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    x = reduceWarp<Combine>(x);
    __syncthreads(); // the reduction before may still be read
    if (lane == 0)
      parts[warp] = x;
    __syncthreads();
    x = lane < Threads / kWarp ? parts[lane] : identity;
    return reduceWarp<Combine>(x);
  }
};

template <int Threads> struct WarpRow {
  static constexpr bool active = true;
  __device__ int64 first() const {
    return int64(blockIdx.x) * (Threads / kWarp) + threadIdx.x / kWarp;
  }
  __device__ int64 step() const { return int64(gridDim.x) * (Threads / kWarp); }
  __device__ int64 row(int64 at, int64) { return at; }
  __device__ int member() const { return threadIdx.x % kWarp; }
  __device__ int size() const { return kWarp; }
  __device__ bool leads() const { return member() == 0; }
  __device__ void sync() const { __syncwarp(); }

  template <class Combine, class T> __device__ T reduce(T x, T) const {
    return reduceWarp<Combine>(x);
  }
};

template <int Threads> struct ColumnRow {
  bool active = true;
  __device__ int64 first() const { return int64(blockIdx.x) * kWarp; }
  __device__ int64 step() const { return int64(gridDim.x) * kWarp; }
  /// Threads beyond the last row follow it, so that all meet at barriers.
  __device__ int64 row(int64 at, int64 rows) {
    const int64 mine = at + threadIdx.x % kWarp;
    active = mine < rows;
    return active ? mine : rows - 1;
  }
  __device__ int member() const { return getThread<Threads>() / kWarp; }
  __device__ int size() const { return getThreads<Threads>() / kWarp; }
  __device__ bool leads() const { return active && member() == 0; }
  __device__ void sync() const { __syncthreads(); }

  template <class Combine, class T> __device__ T reduce(T x, T) const {
    __shared__ T parts[kMaxWarps][kWarp];
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    __syncthreads();
    parts[warp][lane] = x;
    __syncthreads();
    x = parts[0][lane];
    for (int i = 1; i < size(); ++i)
      x = Combine::of(x, parts[i][lane]);
    return x;
  }
};

/// Of what a row's stages load once: makes the compiler convert it anew in this
/// stage, not keep it converted, in twice the registers. For kernels that spill
/// otherwise.
template <class T, int V, int U>
__device__ void keepPacked([[maybe_unused]] Vector<T, V> (&loads)[U]) {
#ifdef TESSERA_KEEP_PACKED
  if constexpr (V * sizeof(T) % 4 == 0)
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int i = 0; i < int(V * sizeof(T) / 4); ++i)
        asm volatile("" : "+r"(reinterpret_cast<uint32 *>(loads[u].lane)[i]));
#endif
}

/// The sum, maximum or minimum of lanes, by a tree.
template <class Combine, int V, class T>
__device__ T reduceLanes(const T (&lanes)[V]) {
  T x[V];
#pragma unroll
  for (int i = 0; i < V; ++i)
    x[i] = lanes[i];
#pragma unroll
  for (int half = V / 2; half > 0; half /= 2)
#pragma unroll
    for (int i = 0; i < half; ++i)
      x[i] = Combine::of(x[i], x[i + half]);
  return x[0];
}

} // namespace tessera
