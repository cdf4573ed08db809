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

#include "base/prelude.cuh"

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
  static constexpr int kThreads = Threads;
  __device__ int64 first() const { return blockIdx.x; }
  __device__ int64 step() const { return gridDim.x; }
  __device__ int64 row(int64 at, int64) { return at; }
  __device__ int member() const { return getThread<Threads>(); }
  __device__ int size() const { return getThreads<Threads>(); }
  template <class Point> __device__ Point share(Point chunks) const {
    return chunks;
  }
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
  static constexpr int kThreads = Threads;
  __device__ int64 first() const {
    return int64(blockIdx.x) * (Threads / kWarp) + threadIdx.x / kWarp;
  }
  __device__ int64 step() const { return int64(gridDim.x) * (Threads / kWarp); }
  __device__ int64 row(int64 at, int64) { return at; }
  __device__ int member() const { return threadIdx.x % kWarp; }
  __device__ int size() const { return kWarp; }
  template <class Point> __device__ Point share(Point chunks) const {
    return chunks;
  }
  __device__ bool leads() const { return member() == 0; }
  __device__ void sync() const { __syncwarp(); }

  template <class Combine, class T> __device__ T reduce(T x, T) const {
    return reduceWarp<Combine>(x);
  }
};

template <int Threads> struct ColumnRow {
  static constexpr int kThreads = Threads;
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
  /// Of a row that there is.
  template <class Point> __device__ Point share(Point chunks) const {
    return active ? chunks : 0;
  }
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

//===----------------------------------------------------------------------===//
// What several stages of a row need
//===----------------------------------------------------------------------===//

/// Where it is: loaded anew in each stage, or loaded once and then kept, perhaps
/// while the row before is computed.
enum class Keep { No, Registers, Shared, Ahead };

/// A thread's `U` vectors of a row, one for each of its chunks. `Varies`: by row.
template <Keep How, class T, int V, int U, int Threads, bool Varies = true>
struct Kept {
  Vector<T, V> vectors[U];

  __device__ explicit Kept(int) {}
  __device__ int end() const { return 0; }
  __device__ void load(int u, const T *from) {
    tessera::load(vectors[u], from);
  }
  __device__ void leave() {}
  __device__ void arrive(int) {}
  __device__ void fetch(int, const T *) {}
  __device__ const Vector<T, V> &operator[](int u) const { return vectors[u]; }

  /// In a later stage: makes the compiler convert them anew, not keep them
  /// converted, in twice the registers. For kernels that spill otherwise.
  __device__ void again() {
#ifdef TESSERA_KEEP_PACKED
    if constexpr (V * sizeof(T) % 4 == 0)
#pragma unroll
      for (int u = 0; u < U; ++u)
#pragma unroll
        for (int i = 0; i < int(V * sizeof(T) / 4); ++i)
          asm volatile(""
                       : "+r"(reinterpret_cast<uint32 *>(vectors[u].lane)[i]));
#endif
  }
};

/// The dynamic shared memory of the block.
#ifdef TESSERA_EMULATION
inline char *getShared() { return emulation::shared; }
#else
__device__ inline char *getShared() {
  extern __shared__ __align__(16) char memory[];
  return memory;
}
#endif

/// Global memory to shared, past the registers.
template <int Bytes> __device__ void copyAsync(void *to, const void *from) {
#ifdef TESSERA_EMULATION
  memcpy(to, from, Bytes);
#else
  constexpr int kPart = Bytes < 16 ? Bytes : 16;
#pragma unroll
  for (int at = 0; at < Bytes; at += kPart) {
    const uint32 target =
        __cvta_generic_to_shared(static_cast<char *>(to) + at);
    const void *source = static_cast<const char *>(from) + at;
    if constexpr (kPart == 16)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target),
                   "l"(source)
                   : "memory");
    else
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(target),
                   "l"(source), "n"(kPart)
                   : "memory");
  }
#endif
}
/// What a thread copies between two of these is a group of its copies.
__device__ inline void endCopies() {
#ifndef TESSERA_EMULATION
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Until all of a thread's groups but the last few have arrived.
template <int Most> __device__ void waitForCopies([[maybe_unused]] int groups) {
#ifndef TESSERA_EMULATION
  if constexpr (Most >= 0) {
    if (groups == Most)
      asm volatile("cp.async.wait_group %0;" ::"n"(Most) : "memory");
    else
      waitForCopies<Most - 1>(groups);
  }
#endif
}

/// In shared memory, from byte `begin` on. (Each thread reads only its own, so
/// nobody else waits.) It holds more than registers do, and more blocks run at
/// a time.
template <class T, int V, int U, int Threads, bool Varies>
struct Kept<Keep::Shared, T, V, U, Threads, Varies> {
  using Own = Vector<T, V>;
  int begin;
  Own *own;

  __device__ explicit Kept(int begin)
      : begin(begin),
        own(reinterpret_cast<Own *>(getShared() + begin) + threadIdx.x) {}
  __device__ int end() const { return begin + U * Threads * int(sizeof(Own)); }
  __device__ void load(int u, const T *from) {
    copyAsync<sizeof(Own)>(own + u * Threads, from);
  }
  __device__ void leave() { endCopies(); }
  __device__ void arrive(int u) { waitForCopies<U - 1>(U - 1 - u); }
  __device__ Own operator[](int u) const { return own[u * Threads]; }
  __device__ void again() {}
};

/// There, too, of the row that is computed and of the next one, which `fetch`
/// has leave. What no row changes is there once.
template <class T, int V, int U, int Threads, bool Varies>
struct Kept<Keep::Ahead, T, V, U, Threads, Varies> {
  using Own = Vector<T, V>;
  static constexpr int kRows = Varies ? 2 : 1;
  int begin, row = kRows - 1;
  Own *own;

  __device__ explicit Kept(int begin)
      : begin(begin),
        own(reinterpret_cast<Own *>(getShared() + begin) + threadIdx.x) {}
  __device__ int end() const {
    return begin + kRows * U * Threads * int(sizeof(Own));
  }
  __device__ void fetch(int u, const T *from) {
    copyAsync<sizeof(Own)>(own + ((row + 1) % kRows * U + u) * Threads, from);
  }
  __device__ void turn() { row = (row + 1) % kRows; }
  __device__ void load(int, const T *) {}
  __device__ Own operator[](int u) const {
    return own[(row * U + u) * Threads];
  }
  __device__ void again() {}
};

/// A thread's sums of columns over a run of rows: lane `v` of chunk `u`. `end`
/// is after the run; in between they are in registers, if rows are kept.
template <Keep How, class T, int V, int U> struct Summed {
  T lanes[U][V];

  __device__ T get(int u, int v, const T *) const { return lanes[u][v]; }
  __device__ void set(int u, int v, T *, T sum) { lanes[u][v] = sum; }
  __device__ void end(int u, T *to) const {
    Vector<T, V> sums;
#pragma unroll
    for (int v = 0; v < V; ++v)
      sums.lane[v] = lanes[u][v];
    store(to, sums);
  }
};
template <class T, int V, int U> struct Summed<Keep::No, T, V, U> {
  __device__ T get(int, int, const T *from) const { return *from; }
  __device__ void set(int, int, T *to, T sum) { *to = sum; }
  __device__ void end(int, T *) const {}
};

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

/// The maximum or minimum of small floats, two at a time as `Pairs` does it.
template <class Combine, uint32 (*Pairs)(uint32, uint32), class T, int V>
__device__ void combinePairs(float (&lanes)[V], const Vector<T, V> &x) {
  if constexpr (V == 1) {
    lanes[0] = Combine::of(lanes[0], widen<float>(x.get(0)));
  } else {
    uint32 pairs[V / 2];
#pragma unroll
    for (int i = 0; i < V / 2; ++i)
      pairs[i] = reinterpret_cast<const uint32 *>(x.lane)[i];
#pragma unroll
    for (int half = V / 4; half > 0; half /= 2)
#pragma unroll
      for (int i = 0; i < half; ++i)
        pairs[i] = Pairs(pairs[i], pairs[i + half]);
    lanes[0] = Combine::of(lanes[0], widen<float>(T{uint16(pairs[0])}));
    lanes[1] = Combine::of(lanes[1], widen<float>(T{uint16(pairs[0] >> 16)}));
  }
}

} // namespace tessera
