//===- wgmma.cuh - products of a warp group -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The products m64nNk16 of bf16 or f16, accumulated in f32:
//
// Wgmma<T, N>::ss(d, a, b, accumulate)  d (+)= a b, of shared memory, K-major, or
//                                       MN-major as ss<true, true> says of them.
// Wgmma<T, N>::ss_set(d, a, b)          d = a b.
// Wgmma<T, N>::rs(d, a, b, accumulate)  a in registers, b in shared memory, MN-major, or
//                                       K-major as rs<false> says of it.
// Wgmma<T, N>::rs_set(d, a, b)          d = a b.
//
// d holds the N/2 elements of a thread, a fragment's order is in ptx.cuh. Without
// `accumulate` d is overwritten, but its registers stay alive before; where something
// else needs them, ss_set and rs_set have d as an output alone.
//
//===----------------------------------------------------------------------===//

// clang-format off
#ifndef TESSERA_KERNELS_WGMMA_CUH
#define TESSERA_KERNELS_WGMMA_CUH

#include "base/ptx.cuh"

namespace tessera {

template <class T, int N> struct Wgmma;

// An instruction's text names its operands by numbers: d's first.
#define TSR_TEXT_32 \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define TSR_TEXT_64 \
  TSR_TEXT_32 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define TSR_TEXT_80 \
  TSR_TEXT_64 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define TSR_TEXT_96 \
  TSR_TEXT_80 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define TSR_TEXT_112 \
  TSR_TEXT_96 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define TSR_TEXT_128 \
  TSR_TEXT_112 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define TSR_TEXT_192 \
  TSR_TEXT_128 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79," \
  "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define TSR_TEXT_256 \
  TSR_TEXT_192 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111," \
  "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

#define TSR_D8(c, i) \
  c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3]), c(d[i + 4]), c(d[i + 5]), c(d[i + 6]), c(d[i + 7])
#define TSR_D_32(c) TSR_D8(c, 0), TSR_D8(c, 8)
#define TSR_D_64(c) TSR_D_32(c), TSR_D8(c, 16), TSR_D8(c, 24)
#define TSR_D_80(c) TSR_D_64(c), TSR_D8(c, 32)
#define TSR_D_96(c) TSR_D_80(c), TSR_D8(c, 40)
#define TSR_D_112(c) TSR_D_96(c), TSR_D8(c, 48)
#define TSR_D_128(c) TSR_D_112(c), TSR_D8(c, 56)
#define TSR_D_192(c) TSR_D_128(c), TSR_D8(c, 64), TSR_D8(c, 72), TSR_D8(c, 80), TSR_D8(c, 88)
#define TSR_D_256(c) TSR_D_192(c), TSR_D8(c, 96), TSR_D8(c, 104), TSR_D8(c, 112), TSR_D8(c, 120)

#define TSR_PRODUCT(T, N, p, a, b, transposed) \
  "{\n.reg .pred p;\nsetp.ne.b32 p, " p ", 0;\n" \
  "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T " {" TSR_TEXT_##N "}, " a ", " b \
  ", p, 1, 1, " transposed ";\n}"

// i0 to i5 are the numbers of the operands after d.
#define TSR_WGMMA(T, N, i0, i1, i2, i3, i4, i5, i6) \
  template <> struct Wgmma<T, N> { \
    template <bool TA = false, bool TB = false> \
    TSR_DEVICE void ss(float (&d)[N / 2], uint64 a, uint64 b, bool accumulate) { \
      asm volatile(TSR_PRODUCT(T, N, "%" #i2, "%" #i0, "%" #i1, "%" #i3 ", %" #i4) \
          : TSR_D_##N("+f") \
          : "l"(a), "l"(b), "r"((int)accumulate), "n"((int)TA), "n"((int)TB)); \
    } \
    template <bool TA = false, bool TB = false> \
    TSR_DEVICE void ss_set(float (&d)[N / 2], uint64 a, uint64 b) { \
      asm volatile(TSR_PRODUCT(T, N, "0", "%" #i0, "%" #i1, "%" #i2 ", %" #i3) \
          : TSR_D_##N("=f") : "l"(a), "l"(b), "n"((int)TA), "n"((int)TB)); \
    } \
    template <bool TB = true> \
    TSR_DEVICE void rs(float (&d)[N / 2], Fragment16 const &a, uint64 b, bool accumulate) { \
      asm volatile(TSR_PRODUCT(T, N, "%" #i5, "{%" #i0 ",%" #i1 ",%" #i2 ",%" #i3 "}", "%" #i4, "%" #i6) \
          : TSR_D_##N("+f") \
          : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "l"(b), "r"((int)accumulate), "n"((int)TB)); \
    } \
    template <bool TB = true> \
    TSR_DEVICE void rs_set(float (&d)[N / 2], Fragment16 const &a, uint64 b) { \
      asm volatile(TSR_PRODUCT(T, N, "0", "{%" #i0 ",%" #i1 ",%" #i2 ",%" #i3 "}", "%" #i4, "%" #i5) \
          : TSR_D_##N("=f") \
          : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "l"(b), "n"((int)TB)); \
    } \
  };
#define TSR_WGMMAS(N, ...) TSR_WGMMA(bf16, N, __VA_ARGS__) TSR_WGMMA(f16, N, __VA_ARGS__)
TSR_WGMMAS(32, 16, 17, 18, 19, 20, 21, 22)
TSR_WGMMAS(64, 32, 33, 34, 35, 36, 37, 38)
TSR_WGMMAS(80, 40, 41, 42, 43, 44, 45, 46)
TSR_WGMMAS(96, 48, 49, 50, 51, 52, 53, 54)
TSR_WGMMAS(112, 56, 57, 58, 59, 60, 61, 62)
TSR_WGMMAS(128, 64, 65, 66, 67, 68, 69, 70)
TSR_WGMMAS(192, 96, 97, 98, 99, 100, 101, 102)
TSR_WGMMAS(256, 128, 129, 130, 131, 132, 133, 134)

#undef TSR_WGMMAS
#undef TSR_WGMMA
#undef TSR_PRODUCT

} // namespace tessera

#endif // TESSERA_KERNELS_WGMMA_CUH
