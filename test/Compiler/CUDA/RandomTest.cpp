//===- RandomTest.cpp - random numbers of kernels for GPUs ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// random.cuh on the host, for vectors of all widths, first numbers at each
// place among four, and numbers beyond 32 bits, against the interpreter.
//
//===----------------------------------------------------------------------===//

#include "Emulation.h"

#include "base/random.cuh"

#include "Interpreter/Ops/Evaluators.h"

#include "gtest/gtest.h"

using namespace tessera;

template <int Bits, int V> static void expectNumbers(int64_t first) {
  constexpr uint64_t kSeeds[] = {7, 0xfedcba9876543210};
  constexpr uint64_t kStreams[] = {0, 0x123456789abcdef0};
  for (uint64_t seed : kSeeds)
    for (uint64_t stream : kStreams) {
      float numbers[V];
      randomNumbers<Bits>(numbers, first, seed, stream);
      for (int i = 0; i < V; ++i)
        EXPECT_EQ(numbers[i],
                  interp::randomNumber(seed, stream, first + i, Bits))
            << i << " of " << V << " from " << first << " on";
    }
}
template <int Bits> static void expectNumbers(int64_t first) {
  expectNumbers<Bits, 1>(first);
  expectNumbers<Bits, 2>(first);
  expectNumbers<Bits, 4>(first);
  expectNumbers<Bits, 8>(first);
  EXPECT_EQ(randomNumber<Bits>(first, 7, 1),
            interp::randomNumber(7, 1, first, Bits));
}

TEST(Random, EqualsTheInterpreter) {
  // The counter's second word, and the number's, come from beyond 32 bits.
  for (int64_t base : {int64_t(0), int64_t(1) << 32, int64_t(1) << 34,
                       int64_t(1) << 35, (int64_t(1) << 62) + 4096})
    for (int64_t first = std::max<int64_t>(base - 9, 0); first < base + 9;
         ++first) {
      expectNumbers<24>(first);
      expectNumbers<16>(first);
    }
}
