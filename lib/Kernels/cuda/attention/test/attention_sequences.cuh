//===- attention_sequences.cuh - packed sequences in tests ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_TEST_ATTENTION_SEQUENCES_CUH
#define TESSERA_KERNELS_TEST_ATTENTION_SEQUENCES_CUH

#include "packed_tiles.cuh"

#include <algorithm>
#include <vector>

/// Of packed sequences; positions that their functors see are those of all.
template <class M> struct Sequences : M {
  static constexpr bool Packed = true;
  using Args = typename M::Args;
  TSR_DEVICE PackedTiles packed(Args const &a) { return a.packed; }

  /// Where they begin, and where the last one ends: empty ones, of one
  /// position, and all around a tile.
  static std::vector<int> begins(int positions) {
    constexpr int lengths[] = {0, 1, 127, 128, 129, 0, 0, 63, 64, 65, 700};
    std::vector<int> begins = {0};
    for (int i = 0; begins.back() < positions; i++)
      begins.push_back(std::min(positions, begins.back() + lengths[i % 11]));
    begins.push_back(positions);
    return begins;
  }
  /// How many positions there are of each: all, more, none, and all but some.
  static std::vector<int> used(std::vector<int> const &begins) {
    std::vector<int> used;
    for (size_t i = 0; i + 1 < begins.size(); i++) {
      const int all = begins[i + 1] - begins[i];
      used.push_back(i % 11 == 10  ? all - 130
                     : i % 11 == 3 ? -4
                     : i % 4 == 1  ? all + 5
                                   : all);
    }
    return used;
  }
};
/// The same as a mask.
template <class M> struct Separate : M {
  static constexpr bool HasMask = true;
  using Args = typename M::Args;
  template <class At> TSR_DEVICE bool mask(Args const &a, At const &at) {
    return a.query_document[at.query] == a.key_document[at.key];
  }
};
template <class M>
__global__ void list_tiles(int const *begins, int const *used, int positions,
                           int rows, PackedHeader *list) {
  packed_tiles<M::Causal>(begins, used, positions, rows, list);
}
template <class X>
__global__ void fill_gaps(PackedTiles tiles, Tensor<X, 4> to, X value) {
  fill_outside(tiles, to, value);
}

#endif // TESSERA_KERNELS_TEST_ATTENTION_SEQUENCES_CUH
