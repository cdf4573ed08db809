//===- prelude.cuh - what every kernel needs ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Types, tensors as kernels get them, vectors of neighbouring elements, and the
// scalar operations of the IR that C++ has no operator for, under the names
// that they have there. No header of CUDA is included: NVRTC compiles this
// alone. What is PTX here has a host version beside it, for host_emulation.h.
//
//===----------------------------------------------------------------------===//

#pragma once

namespace tessera {

/// How many blocks a multiprocessor should hold at a time. A kernel that does
/// not have registers enough then is compiled again without.
#ifdef TESSERA_FEWER_BLOCKS
__device__ constexpr int resident(int) { return 1; }
#else
__device__ constexpr int resident(int blocks) { return blocks; }
#endif

using int8 = signed char;
using uint8 = unsigned char;
using int16 = short;
using uint16 = unsigned short;
using int32 = int;
using uint32 = unsigned int;
using int64 = long long;
using uint64 = unsigned long long;

/// Small floats are bits; kernels compute with them as float.
struct f16 {
  uint16 bits;
};
struct bf16 {
  uint16 bits;
};
struct f8E4M3 {
  uint8 bits;
};
struct f8E5M2 {
  uint8 bits;
};

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// A tensor as the runtime hands it over, all in 64-bit words: the address of
/// its first element, then sizes and strides in elements. The stride of
/// dimension `Unit` is known to be 1.
template <class T, int Rank, int Unit = -1> struct Tensor {
  T *data;
  int64 size[Rank];
  int64 stride[Rank];

  template <class... Index> __device__ T *at(Index... index) const {
    const int64 indices[Rank] = {int64(index)...};
    int64 offset = 0;
#pragma unroll
    for (int i = 0; i < Rank; ++i)
      offset += i == Unit ? indices[i] : indices[i] * stride[i];
    return data + offset;
  }

  /// Whether `V` neighbours along `dim` are one aligned access everywhere.
  template <int V> __device__ bool fits(int dim) const {
    const int bytes = V * sizeof(T) < 16 ? V * sizeof(T) : 16;
    bool all = reinterpret_cast<uint64>(data) % bytes == 0;
#pragma unroll
    for (int i = 0; i < Rank; ++i)
      all = all &&
            (size[i] <= 1 || (i == dim ? stride[i] == 1 : stride[i] % V == 0));
    return all;
  }
};
template <class T, int Unit> struct Tensor<T, 0, Unit> {
  T *data;
  __device__ T *at() const { return data; }
};

/// The last digit of a mixed-radix number, which keeps the others.
template <class Number> __device__ Number split(Number &number, Number radix) {
  const Number quotient = number / radix, digit = number - quotient * radix;
  number = quotient;
  return digit;
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

/// `V` neighbouring elements.
template <class T, int V>
struct alignas(V * sizeof(T) < 16 ? V * sizeof(T) : 16) Vector {
  T lane[V];

  /// Of what was loaded. (As part of a word: the compiler then finds the
  /// shortest way from small floats to float.)
  __device__ T get(int i) const {
    if constexpr (sizeof(T) == 2 && V > 1) {
      const uint32 pair = reinterpret_cast<const uint32 *>(lane)[i / 2];
      return __builtin_bit_cast(T, uint16(i % 2 == 0 ? pair : pair >> 16));
    } else {
      return lane[i];
    }
  }
};

template <int Bytes> struct Word;
template <> struct Word<1> {
  using Type = uint8;
};
template <> struct Word<2> {
  using Type = uint16;
};
template <> struct Word<4> {
  using Type = uint32;
};
template <> struct Word<8> {
  using Type = uint2;
};
template <> struct Word<16> {
  using Type = uint4;
};

template <int V, class T>
__device__ void load(Vector<T, V> &to, const T *from) {
  using Access = typename Word<(V * sizeof(T) < 16 ? V * sizeof(T) : 16)>::Type;
#pragma unroll
  for (int i = 0; i < int(V * sizeof(T) / sizeof(Access)); ++i)
    reinterpret_cast<Access *>(to.lane)[i] =
        reinterpret_cast<const Access *>(from)[i];
}

// One store each. The compiler takes a struct's store apart into members', and
// in most kernels of rows does not find together again what belongs together.
template <class W> __device__ void storeWord(W *to, W word) { *to = word; }
#ifndef TESSERA_EMULATION
__device__ inline void storeWord(uint2 *to, uint2 word) {
  asm volatile(
      "st.global.v2.u32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)),
      "r"(word.x), "r"(word.y)
      : "memory");
}
__device__ inline void storeWord(uint4 *to, uint4 word) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w)
               : "memory");
}
#endif

/// To global memory.
template <int V, class T>
__device__ void store(T *to, const Vector<T, V> &from) {
  using Access = typename Word<(V * sizeof(T) < 16 ? V * sizeof(T) : 16)>::Type;
#pragma unroll
  for (int i = 0; i < int(V * sizeof(T) / sizeof(Access)); ++i)
    storeWord(reinterpret_cast<Access *>(to) + i,
              reinterpret_cast<const Access *>(from.lane)[i]);
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

template <class To, class From> __device__ To bitcast(From x) {
  static_assert(sizeof(To) == sizeof(From), "a bitcast keeps the bits");
  return __builtin_bit_cast(To, x);
}

template <class To> __device__ To widen(bf16 x) {
  return bitcast<float>(uint32(x.bits) << 16);
}
template <class To> __device__ To widen(float x) { return x; }

/// To the nearest, ties to even.
template <class To> __device__ To narrow(double x) { return To(x); }
#ifdef TESSERA_EMULATION
template <class To> __device__ To widen(f16 x) {
  return To(bitcast<_Float16>(x.bits));
}
template <class To> __device__ To narrow(float x);
template <> __device__ inline f16 narrow<f16>(float x) {
  return {bitcast<uint16>(_Float16(x))};
}
template <> __device__ inline bf16 narrow<bf16>(float x) {
  const uint32 bits = bitcast<uint32>(x);
  if (x != x)
    return {0x7fff};
  return {uint16((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
template <> __device__ inline f16 narrow<f16>(double x) {
  return {bitcast<uint16>(_Float16(x))};
}
#else
template <class To> __device__ To widen(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
template <class To> __device__ To narrow(float x);
template <> __device__ inline f16 narrow<f16>(float x) {
  f16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
template <> __device__ inline bf16 narrow<bf16>(float x) {
  bf16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
template <> __device__ inline f16 narrow<f16>(double x) {
  f16 y;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(y.bits) : "d"(x));
  return y;
}
#endif

/// The upper half of an f16; and one of an exponent that is a bit shorter,
/// whose last number is not a number.
template <class To> __device__ To widen(f8E5M2 x) {
  return widen<To>(f16{uint16(x.bits << 8)});
}
template <class To> __device__ To widen(f8E4M3 x) {
  const int size = x.bits & 0x7f;
  const f16 shifted = {uint16((x.bits & 0x80) << 8 | size << 7)};
  return size == 0x7f ? bitcast<float>(0x7fffffff)
                      : widen<float>(shifted) * 256;
}

//===----------------------------------------------------------------------===//
// Integers: they wrap, and the operation says whether they have a sign
//===----------------------------------------------------------------------===//

template <class T> struct Unsigned;
template <> struct Unsigned<bool> {
  using Type = uint8;
};
template <> struct Unsigned<int8> {
  using Type = uint8;
};
template <> struct Unsigned<int16> {
  using Type = uint16;
};
template <> struct Unsigned<int32> {
  using Type = uint32;
};
template <> struct Unsigned<int64> {
  using Type = uint64;
};
template <class T> __device__ typename Unsigned<T>::Type unsign(T x) {
  return static_cast<typename Unsigned<T>::Type>(x);
}

// A sum or product of bools is one of single bits.
template <class T> __device__ T oneOf(uint64 bits) { return T(bits); }
template <> __device__ inline bool oneOf<bool>(uint64 bits) { return bits & 1; }

template <class T> __device__ T addi(T x, T y) {
  return oneOf<T>(uint64(unsign(x)) + unsign(y));
}
template <class T> __device__ T subi(T x, T y) {
  return oneOf<T>(uint64(unsign(x)) - unsign(y));
}
template <class T> __device__ T muli(T x, T y) {
  return oneOf<T>(uint64(unsign(x)) * unsign(y));
}
template <class T> __device__ T divui(T x, T y) {
  return T(unsign(x) / unsign(y));
}
template <class T> __device__ T remui(T x, T y) {
  return T(unsign(x) % unsign(y));
}
template <class T> __device__ T shli(T x, T y) {
  return oneOf<T>(uint64(unsign(x)) << unsign(y));
}
template <class T> __device__ T shrui(T x, T y) {
  return T(unsign(x) >> unsign(y));
}
template <class T> __device__ T minui(T x, T y) {
  return unsign(x) < unsign(y) ? x : y;
}
template <class T> __device__ T maxui(T x, T y) {
  return unsign(x) < unsign(y) ? y : x;
}
template <class T> __device__ T minsi(T x, T y) { return x < y ? x : y; }
template <class T> __device__ T maxsi(T x, T y) { return x < y ? y : x; }
template <class T> __device__ T absi(T x) { return x < 0 ? subi(T(0), x) : x; }
template <class T> __device__ T floordivsi(T x, T y) {
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}
template <class T> __device__ T ceildivsi(T x, T y) {
  return x / y + (x % y != 0 && (x < 0) == (y < 0));
}
template <class T> __device__ T ceildivui(T x, T y) {
  return T(unsign(x) / unsign(y) + (unsign(x) % unsign(y) != 0));
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

/// The larger one; a NaN if there is one.
#ifdef TESSERA_EMULATION
template <class T> __device__ T maximumf(T x, T y) {
  return x != x ? x : y != y ? y : x < y ? y : x;
}
template <class T> __device__ T minimumf(T x, T y) {
  return x != x ? x : y != y ? y : y < x ? y : x;
}
#else
__device__ inline float maximumf(float x, float y) {
  float z;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
}
__device__ inline float minimumf(float x, float y) {
  float z;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
}
__device__ inline double maximumf(double x, double y) {
  return x != x ? x : y != y ? y : x < y ? y : x;
}
__device__ inline double minimumf(double x, double y) {
  return x != x ? x : y != y ? y : y < x ? y : x;
}
#endif

/// The same of two small floats each, in halves of a word.
#ifdef TESSERA_EMULATION
template <class T, class Op> uint32 ofPairs(uint32 x, uint32 y, Op op) {
  auto of = [&](uint32 x, uint32 y) -> uint32 {
    return narrow<T>(op(widen<float>(T{uint16(x)}), widen<float>(T{uint16(y)})))
        .bits;
  };
  return of(x, y) | of(x >> 16, y >> 16) << 16;
}
template <class T> uint32 maximumPairs(uint32 x, uint32 y) {
  return ofPairs<T>(x, y, maximumf<float>);
}
template <class T> uint32 minimumPairs(uint32 x, uint32 y) {
  return ofPairs<T>(x, y, minimumf<float>);
}
#else
template <class T> __device__ uint32 maximumPairs(uint32 x, uint32 y);
template <class T> __device__ uint32 minimumPairs(uint32 x, uint32 y);
#define TESSERA_PAIRS(name, instruction, type)                                 \
  template <> __device__ inline uint32 name<type>(uint32 x, uint32 y) {        \
    uint32 z;                                                                  \
    asm(instruction " %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));                \
    return z;                                                                  \
  }
TESSERA_PAIRS(maximumPairs, "max.NaN.bf16x2", bf16)
TESSERA_PAIRS(minimumPairs, "min.NaN.bf16x2", bf16)
TESSERA_PAIRS(maximumPairs, "max.NaN.f16x2", f16)
TESSERA_PAIRS(minimumPairs, "min.NaN.f16x2", f16)
#undef TESSERA_PAIRS
#endif

// For results of 16 bits, whose rounding hides that of these: to 2 ulp, but the
// exponential, whose error grows with the exponent, to 2^-16.
#ifdef TESSERA_EMULATION
__device__ inline float divideFast(float x, float y) { return x / y; }
__device__ inline float sqrtFast(float x) { return sqrtf(x); }
#else
__device__ inline float divideFast(float x, float y) {
  float z;
  asm("div.full.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
}
__device__ inline float sqrtFast(float x) {
  float y;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#endif

/// 2^x and 1/x to 2 ulp, by one instruction each.
#ifdef TESSERA_EMULATION
__device__ inline float fastExp2(float x) { return exp2f(x); }
__device__ inline float fastReciprocal(float x) { return 1 / x; }
#else
__device__ inline float fastExp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float fastReciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#endif

__device__ inline float expFast(float x) { return fastExp2(1.44269504f * x); }

/// tanh to 5 ulp, without a branch: CUDA's own costs more than a kernel has
/// time for beside memory.
__device__ inline float tanh32(float x) {
  const float size = fabsf(x), square = x * x;
  // (1 - t) / (1 + t), t = e^(-2|x|), where that does not cancel.
  const float t = fastExp2(-2.885390082f * size);
  const float large = copysignf((1 - t) * fastReciprocal(1 + t), x);
  float sum = -0.00661575488f;
  sum = fmaf(sum, square, 0.0213127453f);
  sum = fmaf(sum, square, -0.0539100654f);
  sum = fmaf(sum, square, 0.133331180f);
  sum = fmaf(sum, square, -0.333333313f);
  return size < 0.55f ? fmaf(x * square, sum, x) : large;
}

/// tanh to 2^-11, for scores of attention in bf16.
#ifdef TESSERA_EMULATION
__device__ inline float tanhFast(float x) { return tanhf(x); }
#else
__device__ inline float tanhFast(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#endif

template <class T> __device__ bool isFinite(T x) { return x - x == 0; }
template <class T> __device__ bool isInfinite(T x) {
  return x == x && !isFinite(x);
}

} // namespace tessera
