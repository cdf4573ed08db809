//===- attention_dropped.cuh - ops with dropout, for attention's tests ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_TEST_ATTENTION_DROPPED_CUH
#define TESSERA_KERNELS_TEST_ATTENTION_DROPPED_CUH

#include "attention/attention_dropout.cuh"
#include "test/harness.cuh"

/// Three of ten weights are dropped; the numbers are beyond 32 bits.
template <class M> struct Dropped : M {
  static constexpr bool HasDropout = true, KeysInEights = true;
  static constexpr uint32 DropBelow = 19661; // ceil(0.3 * 2^16)
  static constexpr float KeptScale = 1 / 0.7f;
  using Args = typename M::Args;
  TSR_DEVICE WeightStream stream(Args const &) {
    return {0x123456789abcdef0, 0xfedcba9876543210};
  }
  TSR_DEVICE int64 number(Args const &a, IndexPair const &at) {
    return ((int64(1) << 34) + (at.batch * a.heads + at.head) * a.queries +
            at.query) *
               a.keys +
           at.key;
  }
};

/// Of keys that are no multiple of eight.
template <class M> struct DroppedAnywhere : Dropped<M> {
  static constexpr bool KeysInEights = false;
};

/// What dropout multiplies a weight by, from its own number alone.
template <class M>
__device__ double weight_factor(typename M::Args const &args,
                                IndexPair const &at) {
  if constexpr (M::HasDropout) {
    const WeightStream of = M::stream(args);
    const float number =
        randomNumber<16>(M::number(args, at), of.seed, of.stream);
    return number < M::DropBelow * 0x1p-16f ? 0 : (double)M::KeptScale;
  }
  return 1;
}

#endif // TESSERA_KERNELS_TEST_ATTENTION_DROPPED_CUH
