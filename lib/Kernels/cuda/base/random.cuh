//===- random.cuh - numbers of tv.random ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Philox 4x32 gives four numbers of 24 bits that follow each other for the
// price of one, twenty products of 32 bits, and eight of 16 bits for fourteen.
// So a thread that needs neighbours makes them together, wherever its first one
// lies among these. Seed and stream are the same everywhere: so are the keys of
// all rounds.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "base/prelude.cuh"

namespace tessera {

/// All bits of a product. (That of 64-bit numbers costs an addition of 0 more.)
#ifdef TESSERA_EMULATION
__device__ inline uint64 multiplyWide(uint32 x, uint32 y) {
  return uint64(x) * y;
}
#else
__device__ inline uint64 multiplyWide(uint32 x, uint32 y) {
  uint64 z;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(z) : "r"(x), "r"(y));
  return z;
}
#endif

template <int Bits> struct Philox {
  static_assert(Bits == 16 || Bits == 24, "the numbers of tv.random");
  static constexpr int Rounds = Bits == 16 ? 7 : 10;
  static constexpr int InWord = Bits == 16 ? 2 : 1, Numbers = 4 * InWord;

  /// Four words: numbers Numbers * `block` and those after it.
  __device__ static void draw(uint32 *words, uint64 block, uint64 seed,
                              uint64 stream) {
    uint32 counter[4] = {uint32(block), uint32(block >> 32), uint32(stream),
                         uint32(stream >> 32)};
    uint32 key[2] = {uint32(seed), uint32(seed >> 32)};
#pragma unroll
    for (int round = 0; round < Rounds; ++round) {
      const uint64 first = multiplyWide(counter[0], 0xD2511F53),
                   second = multiplyWide(counter[2], 0xCD9E8D57);
      counter[0] = uint32(second >> 32) ^ counter[1] ^ key[0];
      counter[1] = uint32(second);
      counter[2] = uint32(first >> 32) ^ counter[3] ^ key[1];
      counter[3] = uint32(first);
      key[0] += 0x9E3779B9u;
      key[1] += 0xBB67AE85u;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
      words[i] = counter[i];
  }
  /// Number i of words.
  __device__ static float number(uint32 const *words, int i) {
    const uint32 word = words[i / InWord];
    return InWord == 1
               ? float(int32(word >> 8)) * 0x1p-24f
               : float(int32(i % 2 ? word >> 16 : word & 0xffff)) * 0x1p-16f;
  }
};

/// Of numbers `first`, `first + 1` and so on.
template <int Bits, int V>
__device__ void randomNumbers(float (&numbers)[V], int64 first, uint64 seed,
                              uint64 stream) {
  using From = Philox<Bits>;
  constexpr int N = From::Numbers, kBlocks = (V + N - 1) / N;
  // With the one behind, of which the last may have a half.
  constexpr int kWords = (V - 1) / From::InWord + From::InWord;
  const uint64 block = uint64(first) / N;
  const int skipped = int(first & (N - 1));
  uint32 words[4 * kBlocks + 4] = {};
#pragma unroll
  for (int i = 0; i < kBlocks; ++i)
    From::draw(words + 4 * i, block + i, seed, stream);
  if (skipped != 0) {
    if (skipped + V > N * kBlocks)
      From::draw(words + 4 * kBlocks, block + kBlocks, seed, stream);
#pragma unroll
    for (int step = 1; step <= 2; ++step)
#pragma unroll
      for (int i = 0; i < kWords + 2 / step; ++i)
        words[i] =
            (skipped / From::InWord & step) != 0 ? words[i + step] : words[i];
    if (From::InWord == 2)
#pragma unroll
      for (int i = 0; i + 1 < kWords; ++i)
        words[i] = skipped & 1 ? words[i] >> 16 | words[i + 1] << 16 : words[i];
  }
#pragma unroll
  for (int i = 0; i < V; ++i)
    numbers[i] = From::number(words, i);
}

template <int Bits>
__device__ inline float randomNumber(int64 number, uint64 seed, uint64 stream) {
  float numbers[1];
  randomNumbers<Bits>(numbers, number, seed, stream);
  return numbers[0];
}

} // namespace tessera
