//===- attention_dropout.cuh - which weights of attention stay ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A weight stays by its number of random.cuh, of 16 bits, where eight that
// follow each other come of one computation. Where the keys are a multiple of
// eight, these are a query's with eight keys; else they begin anywhere, and a
// computation more has the rest. In a fragment of products such eight lie in
// several lanes: each lane computes some of them, and all get their bits by
// shuffles.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_DROPOUT_CUH
#define TESSERA_KERNELS_ATTENTION_DROPOUT_CUH

#include "attention/attention_mods.cuh"
#include "base/random.cuh"

namespace tessera {

/// Which of the eight weights from 8 * `block` on stay, a bit each.
template <class Mods>
TSR_DEVICE uint32 kept_of(WeightStream const &of, int64 block) {
  constexpr uint32 Least = Mods::DropBelow << 16;
  uint32 words[4], kept = 0;
  Philox<16>::draw(words, block, of.seed, of.stream);
#pragma unroll
  for (int i = 0; i < 4; i++)
    kept |= (uint32)(words[i] << 16 >= Least) << 2 * i |
            (uint32)(words[i] >= Least) << (2 * i + 1);
  return kept;
}

/// Which of `Count` weights from `number` on stay, a bit each: a multiple of
/// eight, 32 at most.
template <class Mods, int Count>
TSR_DEVICE uint32 kept_from(WeightStream const &of, int64 number) {
  constexpr int More = Mods::KeysInEights ? 0 : 1;
  uint64 kept = 0;
#pragma unroll
  for (int i = 0; i < Count / 8 + More; i++)
    kept |= (uint64)kept_of<Mods>(of, number / 8 + i) << 8 * i;
  return (uint32)(More ? kept >> (number & 7) : kept) & ~0u >> (32 - Count);
}

/// Of a fragment of 64 queries and N keys. Four lanes have two queries; each
/// draws for one of these and half of the keys.
template <class Mods, int N> struct KeptOfQueries {
  static constexpr int Half = N / 2, Words = (Half + 31) / 32;
  static constexpr int Last = Half - 32 * (Words - 1); // bits
  static_assert(N % 16 == 0 && N <= 128, "bits of a word");
  /// Of a query, a lane's own two of eight keys that follow each other.
  uint32 bits[2];

  /// The query that a lane draws for is its first one or, 8 behind, its other.
  TSR_DEVICE int own(int first) { return first + 8 * (threadIdx.x % 2); }
  /// `number`: of the weight of `own` and the fragment's first key.
  TSR_MEMBER void draw(WeightStream const &of, int64 number) {
    const int lane = threadIdx.x % 32;
    bits[0] = bits[1] = 0;
    number += lane / 2 % 2 * Half;
#pragma unroll
    for (int w = 0; w < Words; w++) {
      const uint32 drawn = w + 1 < Words
                               ? kept_from<Mods, 32>(of, number + 32 * w)
                               : kept_from<Mods, Last>(of, number + 32 * w);
#pragma unroll
      for (int from = 0; from < 4; from++) {
        const uint32 other = __shfl_sync(~0u, drawn, (lane & ~3) | from);
        bits[from % 2] |= (other >> lane % 4 * 2 & 0x03030303)
                          << (from / 2 * Words + w) * 2;
      }
    }
  }
  /// Whether the lane's element i stays.
  TSR_MEMBER bool has(int i) const {
    const int eight = i / 4 % (Half / 8);
    const int word = i / 4 / (Half / 8) * Words + eight / 4;
    return bits[i / 2 % 2] >> (eight % 4 * 8 + word * 2 + i % 2) & 1;
  }
};

/// Of a fragment of 64 keys and N queries. Eight lanes have the pairs of two of
/// eight queries that follow each other with 16 keys; each draws for two of 64
/// queries.
template <class Mods, int N> struct KeptOfKeys {
  static constexpr int Words = (N + 63) / 64;
  uint32 bits[Words];

  /// The first query, and the first key, that a lane draws for, from the first
  /// query of the fragment and its own first key.
  TSR_DEVICE int own_query(int first) {
    const int lane = threadIdx.x % 32;
    return first + lane / 4 * 8 + lane % 4 * 2;
  }
  TSR_DEVICE int own_key(int first) { return first - threadIdx.x % 32 / 4; }
  /// As above.
  template <class F>
  TSR_MEMBER void draw(WeightStream const &of, int64 number, F const &behind) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int w = 0; w < Words; w++) {
      uint32 drawn = 0;
#pragma unroll
      for (int e = 0; e < 2; e++)
        drawn |= kept_from<Mods, 16>(of, number + behind(64 * w + e)) << 16 * e;
      bits[w] = 0; // beside sums, all at once would spill more
#pragma unroll(Mods::Sums > 0 ? 4 : 8)
      for (int j = 0; j < min(8, N / 8 - 8 * w); j++)
        bits[w] |= (__shfl_sync(~0u, drawn, lane % 4 | j << 2) >> lane / 4 &
                    0x01010101)
                   << j;
    }
  }
  TSR_MEMBER bool has(int i) const {
    return bits[i / 32] >> (i % 2 * 16 + i / 2 % 2 * 8 + i / 4 % 8) & 1;
  }
};

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_DROPOUT_CUH
