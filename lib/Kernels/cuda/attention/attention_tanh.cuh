//===- attention_tanh.cuh - scores that are capped softly -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of attention_fwd.cuh: scores OuterScale * tanh(InnerScale * Scale * product)
// in bf16. They lie in [-OuterScale, OuterScale], and where that is small
// enough e to their power is a number of bf16's range whatever they are, so a
// softmax needs no maximum, and nothing that was summed ever shrinks.
//
// Near zero a polynomial in the product is the whole exponent: four
// instructions of a kind that goes faster beside the other group's products
// than one for the special functions, which the exponential is left alone with.
// Whether all of a chunk's products are near comes nearly for nothing: limit +
// product^2 has the limit's exponent, a power of two, then, and else a larger
// one, which has a bit that the limit's has not.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_TANH_CUH
#define TESSERA_KERNELS_ATTENTION_TANH_CUH

#include "attention/attention_mods.cuh"
#include "base/ptx.cuh"

namespace tessera {

/// Of BN keys, in one of so many groups.
template <class Mods, int BN, int Groups> struct TanhScores {
  /// In the exponent of 2.
  static constexpr float Bound = Mods::OuterScale * 1.44269504f;
  static_assert(!Mods::BoundedTanh || Bound <= 80, "so it is no bound");
  /// What exponents are relative to: sums of 2^60 weights are finite.
  static constexpr float Reference = Bound > 64 ? Bound - 64 : 0;

  static constexpr float Inner = Mods::Scale * Mods::InnerScale;
  static constexpr float Square = Inner * Inner;
  static constexpr bool Near = Mods::BoundedTanh && !Mods::HasMask &&
                               !Mods::HasDropout && Square > 0x1p-80f &&
                               Square < 0x1p80f;

  /// A power of two that the squares of products that are near are below: tanh
  /// is looked for up to 0.42 to 0.6.
  TSR_DEVICE constexpr float limit() {
    float limit = 1;
    while (Square * limit > 0.36f)
      limit /= 2;
    while (Square * limit * 2 <= 0.36f)
      limit *= 2;
    return limit;
  }

  /// Elements whose exponents are known before their exponentials are: as many
  /// as there are registers for.
  static constexpr int Chunk = Groups == 3 ? 6 : 16, All = BN / 2;
  static constexpr int Chunks = (All + Chunk - 1) / Chunk;

  /// Their exponents, from products x. Returns whether all of the warp's are
  /// right, that is near.
  TSR_DEVICE bool near(float (&e)[Chunk], float const (&x)[All], int chunk) {
    // tanh(x) is x + K3 x^3 + K5 x^5 to a part of 2^-16 where x^2 is up to At =
    // 0.25, to 2^-13.6 up to 0.36. C: in the product and Limit + product^2.
    constexpr float Limit = limit(), At = Square * Limit;
    constexpr float K3 = -0.33333333f + At * At * (0.02275f - 0.0102f * At);
    constexpr float K5 = 0.13333333f - At * (0.0742f - 0.0264f * At);
    constexpr float C0 = Inner * Bound * (1 - K3 * At + K5 * At * At);
    constexpr float C1 = Inner * Bound * Square * (K3 - 2 * K5 * At);
    constexpr float C2 = Inner * Bound * Square * Square * K5;
    uint32 bits = 0;
#pragma unroll
    for (int i = 0; i < Chunk; i++) {
      if (chunk * Chunk + i >= All)
        continue;
      const float product = x[chunk * Chunk + i];
      const float square = fmaf(product, product, Limit);
      bits |= __float_as_uint(square);
      e[i] = fmaf(product, fmaf(fmaf(square, C2, C1), square, C0), -Reference);
    }
    return !__any_sync(~0u, bits >= __float_as_uint(2 * Limit));
  }
  TSR_DEVICE void far(float (&e)[Chunk], float const (&x)[All], int chunk) {
#pragma unroll
    for (int i = 0; i < Chunk; i++)
      if (chunk * Chunk + i < All)
        e[i] = tanhFast(x[chunk * Chunk + i] * Inner) * Bound - Reference;
  }

  /// Products x to weights, which are added to the sums of two rows. Returns
  /// whether some of the warp's were not near.
  TSR_DEVICE bool weigh_near(float (&x)[All], float (&sum)[2]) {
    bool none_far = true;
    float e[2][Chunk];
#pragma unroll
    for (int c = 0; c <= Chunks; c++) {
      bool right = true;
      if (c < Chunks)
        right = near(e[c % 2], x, c);
      if (c > 0)
#pragma unroll
        for (int i = 0; i < Chunk; i++)
          if (int at = (c - 1) * Chunk + i; at < All) {
            x[at] = exp2_fast(e[(c - 1) % 2][i]);
            sum[at / 2 % 2] += x[at];
          }
      if (!right) {
        far(e[c % 2], x, c);
        none_far = false;
      }
    }
    return !none_far;
  }
};

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_TANH_CUH
