//===- random.cuh - numbers of tv.random ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Philox 4x32-10 gives four numbers that follow each other for the price of
// one, twenty products of 32 bits. So a thread that needs neighbours makes them
// together, wherever its first one lies among four. Seed and stream are the
// same everywhere: so are the keys of all rounds.
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

/// Of numbers 4 * `block` and the three after it.
__device__ inline void philox(uint32 *words, uint64 block, uint64 seed,
                              uint64 stream) {
  uint32 counter[4] = {uint32(block), uint32(block >> 32), uint32(stream),
                       uint32(stream >> 32)};
  uint32 key[2] = {uint32(seed), uint32(seed >> 32)};
#pragma unroll
  for (int round = 0; round < 10; ++round) {
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

/// Of numbers `first`, `first + 1` and so on.
template <int V>
__device__ void randomNumbers(float (&numbers)[V], int64 first, uint64 seed,
                              uint64 stream) {
  constexpr int kBlocks = (V + 3) / 4;
  const uint64 block = uint64(first) / 4;
  const int skipped = int(first & 3);
  uint32 words[4 * kBlocks + 4] = {};
#pragma unroll
  for (int i = 0; i < kBlocks; ++i)
    philox(words + 4 * i, block + i, seed, stream);
  if (skipped != 0) {
    if (skipped + V > 4 * kBlocks)
      philox(words + 4 * kBlocks, block + kBlocks, seed, stream);
#pragma unroll
    for (int step = 1; step <= 2; ++step)
#pragma unroll
      for (int i = 0; i < V + 2 / step; ++i)
        words[i] = (skipped & step) != 0 ? words[i + step] : words[i];
  }
#pragma unroll
  for (int i = 0; i < V; ++i)
    numbers[i] = float(int32(words[i] >> 8)) * 0x1p-24f;
}

__device__ inline float randomNumber(int64 number, uint64 seed, uint64 stream) {
  float numbers[1];
  randomNumbers(numbers, number, seed, stream);
  return numbers[0];
}

} // namespace tessera
