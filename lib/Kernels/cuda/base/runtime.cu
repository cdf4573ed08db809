//===- runtime.cu - kernels of the runtime --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies between strided boxes, transposed copies, fills, fetches of rows and
// the reductions of collectives: the binary "runtime" of each cuda module. What
// they are called with is prepared by Backends/CUDA/Driver/Copies.cpp, which
// has the same structs. NVRTC compiles this file as it is, without any header.
//
// Every kernel is right for any number of blocks, of kThreads threads. All
// offsets are in bytes.
//
//===----------------------------------------------------------------------===//

// A host that compiles this file for its tests brings these.
#ifndef TESSERA_HOST_EMULATION
constexpr unsigned kThreads = 256; // of each block
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
using int8_t = signed char;
using int32_t = int;
using int64_t = long long;

__device__ __forceinline__ float f16ToFloat(uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
__device__ __forceinline__ uint16_t f16FromFloat(float value) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
#endif

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// One loop of a nest. For n < 2^31, n / size == n * magic >> shift.
struct Loop {
  uint32_t size, magic, shift, unused;
  int64_t target, source; // strides
};

struct CopyArguments {
  uint8_t *target;
  const uint8_t *source;
  uint32_t count, rank;
  Loop loops[17]; // outermost first
};

struct TransposeArguments {
  uint8_t *target;
  const uint8_t *source;
  uint32_t tiles, rank;
  uint32_t rows, columns; // contiguous in the target, in the source
  int64_t column, row; // strides: of columns in the target, rows in the source
  Loop loops[17];      // around, then tiles of rows, then tiles of columns
};

struct FillArguments {
  uint8_t *target;
  uint32_t count, rank;
  uint4 value; // repeated to 16 bytes
  Loop loops[17];
};

struct FetchArguments {
  uint8_t *target;
  uint64_t rowBytes; // of a member's row, which is dense
  uint64_t block;    // rows of a member, by the first index
  uint32_t places, placeRank;
  uint32_t words, rowRank; // of a row
  uint32_t lanes;          // threads of a row, a power of two
  uint32_t indices, wide, unused; // wide: i64
  const uint8_t *at[4];
  uint64_t extents[4];
  int64_t strides[17][4]; // of the indices, by loop over places
  Loop place[17], row[17];
  const uint8_t *rows[128]; // by member
};

struct FoldArguments {
  uint8_t *target;
  uint64_t count;
  uint32_t members;
  uint32_t wide; // whether all pointers are aligned to 16 bytes
  const uint8_t *sources[128];
};

struct Offsets {
  int64_t target, source;
};

/// Where points `n` of a nest lie. The loop over loops is not unrolled: that
/// made most of this binary, and the points have enough to do at a time.
template <uint32_t kPoints>
__device__ __forceinline__ void offsetsOf(const Loop *loops, uint32_t rank,
                                          uint32_t (&n)[kPoints],
                                          Offsets (&at)[kPoints]) {
#pragma unroll
  for (uint32_t u = 0; u < kPoints; ++u)
    at[u] = {0, 0};
#pragma unroll 1
  for (uint32_t d = rank; d-- > 1;) {
    const Loop &loop = loops[d];
#pragma unroll
    for (uint32_t u = 0; u < kPoints; ++u) {
      const uint32_t outer =
          static_cast<uint64_t>(n[u]) * loop.magic >> loop.shift;
      const uint32_t i = n[u] - outer * loop.size;
      at[u].target += i * loop.target;
      at[u].source += i * loop.source;
      n[u] = outer;
    }
  }
#pragma unroll
  for (uint32_t u = 0; u < kPoints; ++u) {
    at[u].target += n[u] * loops[0].target;
    at[u].source += n[u] * loops[0].source;
  }
}
__device__ __forceinline__ Offsets offsetsOf(const Loop *loops, uint32_t rank,
                                             uint32_t n) {
  uint32_t points[1] = {n};
  Offsets at[1];
  offsetsOf(loops, rank, points, at);
  return at[0];
}

//===----------------------------------------------------------------------===//
// Copies and fills
//===----------------------------------------------------------------------===//

template <typename T>
__device__ __forceinline__ void copyBox(const CopyArguments &a) {
  constexpr uint32_t kAtOnce = 4; // loads in flight
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t n = blockIdx.x * kThreads + threadIdx.x; n < a.count;
       n += step * kAtOnce) {
    T values[kAtOnce];
    uint32_t points[kAtOnce];
    Offsets at[kAtOnce];
#pragma unroll
    for (uint32_t u = 0; u < kAtOnce; ++u)
      points[u] = n + u * step;
    offsetsOf(a.loops, a.rank, points, at);
#pragma unroll
    for (uint32_t u = 0; u < kAtOnce; ++u)
      if (n + u * step < a.count)
        values[u] = *reinterpret_cast<const T *>(a.source + at[u].source);
#pragma unroll
    for (uint32_t u = 0; u < kAtOnce; ++u)
      if (n + u * step < a.count)
        *reinterpret_cast<T *>(a.target + at[u].target) = values[u];
  }
}

/// Through shared memory, so that reads and writes are both contiguous.
template <typename T, uint32_t kTile>
__device__ __forceinline__ void transposeBox(const TransposeArguments &a) {
  __shared__ T tile[kTile][kTile + 1];
  for (uint32_t n = blockIdx.x; n < a.tiles; n += gridDim.x) {
    // The last two loops step over tiles; how far tells the tile's corner.
    uint32_t rest = n, corner[2];
    for (uint32_t d = 0; d < 2; ++d) {
      const Loop &loop = a.loops[a.rank - 1 - d];
      const uint32_t outer =
          static_cast<uint64_t>(rest) * loop.magic >> loop.shift;
      corner[d] = (rest - outer * loop.size) * kTile;
      rest = outer;
    }
    const Offsets at = offsetsOf(a.loops, a.rank, n);
    const uint32_t columns = min(kTile, a.columns - corner[0]);
    const uint32_t rows = min(kTile, a.rows - corner[1]);
#pragma unroll 8
    for (uint32_t i = 0; i < kTile * kTile / kThreads; ++i) {
      const uint32_t e = i * kThreads + threadIdx.x;
      const uint32_t r = e / kTile, c = e % kTile;
      if (r < rows && c < columns)
        tile[r][c] = *reinterpret_cast<const T *>(a.source + at.source +
                                                  r * a.row + c * sizeof(T));
    }
    __syncthreads();
#pragma unroll 8
    for (uint32_t i = 0; i < kTile * kTile / kThreads; ++i) {
      const uint32_t e = i * kThreads + threadIdx.x;
      const uint32_t c = e / kTile, r = e % kTile;
      if (r < rows && c < columns)
        *reinterpret_cast<T *>(a.target + at.target + c * a.column +
                               r * sizeof(T)) = tile[r][c];
    }
    __syncthreads();
  }
}

template <typename T>
__device__ __forceinline__ void fillBox(const FillArguments &a) {
  const T value = *reinterpret_cast<const T *>(&a.value);
  const uint32_t step = gridDim.x * kThreads;
#pragma unroll 1
  for (uint32_t n = blockIdx.x * kThreads + threadIdx.x; n < a.count; n += step)
    *reinterpret_cast<T *>(a.target + offsetsOf(a.loops, a.rank, n).target) =
        value;
}

#define TESSERA_MOVES(BYTES, TYPE, TILE)                                       \
  extern "C" __global__ void __launch_bounds__(kThreads)                       \
      tessera_copy_##BYTES(const __grid_constant__ CopyArguments a) {          \
    copyBox<TYPE>(a);                                                          \
  }                                                                            \
  extern "C" __global__ void __launch_bounds__(kThreads)                       \
      tessera_transpose_##BYTES(                                               \
          const __grid_constant__ TransposeArguments a) {                      \
    transposeBox<TYPE, TILE>(a);                                               \
  }                                                                            \
  extern "C" __global__ void __launch_bounds__(kThreads)                       \
      tessera_fill_##BYTES(const __grid_constant__ FillArguments a) {          \
    fillBox<TYPE>(a);                                                          \
  }
// The compiler says in front of this file how many bytes the smallest element
// of a program has: no word is smaller; and whether it fetches rows.
#ifndef TESSERA_SMALLEST
#define TESSERA_SMALLEST 1
#endif
#if TESSERA_SMALLEST <= 1
TESSERA_MOVES(1, uint8_t, 64)
#endif
#if TESSERA_SMALLEST <= 2
TESSERA_MOVES(2, uint16_t, 64)
#endif
#if TESSERA_SMALLEST <= 4
TESSERA_MOVES(4, uint32_t, 32)
#endif
TESSERA_MOVES(8, uint2, 32)
TESSERA_MOVES(16, uint4, 32)

#ifdef TESSERA_FETCHES
//===----------------------------------------------------------------------===//
// Fetches
//===----------------------------------------------------------------------===//

/// A row for each place, of the member that has it; zeros where an index lies
/// outside of the table.
template <typename T>
__device__ __forceinline__ void fetchRows(const FetchArguments &a) {
  constexpr uint32_t kAtOnce = 4; // loads in flight
  const uint32_t lanes = min(a.lanes, kThreads);
  const uint32_t lane = threadIdx.x % lanes, perBlock = kThreads / lanes;
  const uint32_t step = gridDim.x * perBlock;
  for (uint32_t n = blockIdx.x * perBlock + threadIdx.x / lanes; n < a.places;
       n += step) {
    uint8_t *target = a.target;
    int64_t at[4] = {0, 0, 0, 0};
    uint32_t rest = n;
#pragma unroll 1
    for (uint32_t d = a.placeRank; d-- > 0;) {
      const Loop &loop = a.place[d];
      const uint32_t outer =
          static_cast<uint64_t>(rest) * loop.magic >> loop.shift;
      const uint32_t i = rest - outer * loop.size;
      target += i * loop.target;
#pragma unroll
      for (uint32_t k = 0; k < 4; ++k)
        at[k] += i * a.strides[d][k];
      rest = outer;
    }
    uint64_t number = 0, owner = 0;
    bool isInside = true;
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k) {
      if (k >= a.indices || !isInside)
        continue;
      const uint8_t *place = a.at[k] + at[k];
      // (A negative one is large.)
      uint64_t index =
          a.wide
              ? *reinterpret_cast<const int64_t *>(place)
              : static_cast<int64_t>(*reinterpret_cast<const int32_t *>(place));
      isInside = index < a.extents[k];
      if (k == 0) {
        owner = index / a.block;
        index -= owner * a.block;
      }
      number = number * a.extents[k] + index;
    }
    const uint8_t *source =
        isInside ? a.rows[owner] + number * a.rowBytes : nullptr;
    for (uint32_t w = lane; w < a.words; w += lanes * kAtOnce) {
      T values[kAtOnce] = {};
      uint32_t points[kAtOnce];
      Offsets to[kAtOnce];
#pragma unroll
      for (uint32_t u = 0; u < kAtOnce; ++u)
        points[u] = w + u * lanes;
      offsetsOf(a.row, a.rowRank, points, to);
#pragma unroll
      for (uint32_t u = 0; u < kAtOnce; ++u)
        if (source && w + u * lanes < a.words)
          values[u] = *reinterpret_cast<const T *>(source + to[u].source);
#pragma unroll
      for (uint32_t u = 0; u < kAtOnce; ++u)
        if (w + u * lanes < a.words)
          *reinterpret_cast<T *>(target + to[u].target) = values[u];
    }
  }
}

#define TESSERA_FETCH(BYTES, TYPE)                                             \
  extern "C" __global__ void __launch_bounds__(kThreads)                       \
      tessera_fetch_##BYTES(const __grid_constant__ FetchArguments a) {        \
    fetchRows<TYPE>(a);                                                        \
  }
#if TESSERA_SMALLEST <= 1
TESSERA_FETCH(1, uint8_t)
#endif
#if TESSERA_SMALLEST <= 2
TESSERA_FETCH(2, uint16_t)
#endif
#if TESSERA_SMALLEST <= 4
TESSERA_FETCH(4, uint32_t)
#endif
TESSERA_FETCH(8, uint2)
TESSERA_FETCH(16, uint4)
#endif

//===----------------------------------------------------------------------===//
// Breadcrumbs: how far a stream has come, for the host
//===----------------------------------------------------------------------===//

struct MarkArguments {
  volatile uint32_t *target; // pinned memory of the host
  uint64_t value;
};

/// One thread's. (A graph of kernels alone is launched in less time, and runs
/// in less, than one with memory operations between them.)
extern "C" __global__ void __launch_bounds__(1)
    tessera_mark(const __grid_constant__ MarkArguments a) {
  *a.target = static_cast<uint32_t>(a.value);
  __threadfence_system();
}

//===----------------------------------------------------------------------===//
// Folds: the same order and rounding as Exec/Fold.cpp
//===----------------------------------------------------------------------===//

struct BF16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

template <typename T> struct Accumulator {
  using Type = T;
  static __device__ __forceinline__ T load(T value) { return value; }
  static __device__ __forceinline__ T store(T value) { return value; }
};
template <> struct Accumulator<BF16> {
  using Type = float;
  static __device__ __forceinline__ float load(BF16 value) {
    return __uint_as_float(static_cast<uint32_t>(value.bits) << 16);
  }
  static __device__ __forceinline__ BF16 store(float value) {
    const uint32_t word = __float_as_uint(value);
    const uint32_t bits = value != value
                              ? (word >> 16 & 0x8000) | 0x7fc0
                              : (word + 0x7fff + (word >> 16 & 1)) >> 16;
    return {static_cast<uint16_t>(bits)};
  }
};
template <> struct Accumulator<F16> {
  using Type = float;
  static __device__ __forceinline__ float load(F16 value) {
    return f16ToFloat(value.bits);
  }
  static __device__ __forceinline__ F16 store(float value) {
    return {f16FromFloat(value)};
  }
};

/// The type of each dtype's elements, in a fold's name.
struct Types {
  using f64 = double;
  using f32 = float;
  using bf16 = BF16;
  using f16 = F16;
  using i64 = int64_t;
  using i32 = int32_t;
  using u32 = uint32_t;
  using i8 = int8_t;
  using u8 = uint8_t;
};
// Integers wrap: signed ones are added as unsigned ones.
struct Fold_sum : Types {
  using i64 = uint64_t;
  using i32 = uint32_t;
  using i8 = uint8_t;
  template <typename T> static __device__ __forceinline__ T apply(T a, T b) {
    return a + b;
  }
};
// A NaN wins.
struct Fold_max : Types {
  template <typename T> static __device__ __forceinline__ T apply(T a, T b) {
    return b > a || b != b ? b : a;
  }
};
struct Fold_min : Types {
  template <typename T> static __device__ __forceinline__ T apply(T a, T b) {
    return b < a || b != b ? b : a;
  }
};

template <typename T, typename Op, uint32_t kItems>
__device__ __forceinline__ void foldItems(const FoldArguments &a,
                                          uint64_t begin) {
  using Value = Accumulator<T>;
  struct alignas(sizeof(T) * kItems) Items {
    T values[kItems];
  };
  typename Value::Type sums[kItems];
  auto load = [&](uint32_t member) {
    return *reinterpret_cast<const Items *>(a.sources[member] +
                                            begin * sizeof(T));
  };
  const Items first = load(0);
#pragma unroll
  for (uint32_t i = 0; i < kItems; ++i)
    sums[i] = Value::load(first.values[i]);
#pragma unroll 2
  for (uint32_t m = 1; m < a.members; ++m) {
    const Items next = load(m);
#pragma unroll
    for (uint32_t i = 0; i < kItems; ++i)
      sums[i] = Op::apply(sums[i], Value::load(next.values[i]));
  }
  Items result;
#pragma unroll
  for (uint32_t i = 0; i < kItems; ++i)
    result.values[i] = Value::store(sums[i]);
  *reinterpret_cast<Items *>(a.target + begin * sizeof(T)) = result;
}

template <typename T, typename Op>
__device__ __forceinline__ void foldAll(const FoldArguments &a) {
  constexpr uint32_t kWide = sizeof(T) == 1 ? 8 : 16 / sizeof(T);
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * kThreads;
  const uint64_t self =
      static_cast<uint64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const uint64_t wide = a.wide ? a.count / kWide : 0;
  for (uint64_t n = self; n < wide; n += step)
    foldItems<T, Op, kWide>(a, n * kWide);
  for (uint64_t n = wide * kWide + self; n < a.count; n += step)
    foldItems<T, Op, 1>(a, n);
}

#define TESSERA_FOLD(OP, TYPE)                                                 \
  extern "C" __global__ void __launch_bounds__(kThreads)                       \
      tessera_##OP##_##TYPE(const __grid_constant__ FoldArguments a) {         \
    foldAll<Fold_##OP::TYPE, Fold_##OP>(a);                                    \
  }
// The compiler says, too, which folds it needs.
#ifndef TESSERA_FOLDS
#define TESSERA_FOLDS_OF(TYPE)                                                 \
  TESSERA_FOLD(sum, TYPE) TESSERA_FOLD(max, TYPE) TESSERA_FOLD(min, TYPE)
#define TESSERA_FOLDS                                                          \
  TESSERA_FOLDS_OF(f64)                                                        \
  TESSERA_FOLDS_OF(f32)                                                        \
  TESSERA_FOLDS_OF(bf16)                                                       \
  TESSERA_FOLDS_OF(f16)                                                        \
  TESSERA_FOLDS_OF(i64)                                                        \
  TESSERA_FOLDS_OF(i32)                                                        \
  TESSERA_FOLDS_OF(u32)                                                        \
  TESSERA_FOLDS_OF(i8)                                                         \
  TESSERA_FOLDS_OF(u8)
#endif
TESSERA_FOLDS
