//===- packed_tiles.cuh - what tv.packed_tiles makes, without a compiler --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_TEST_PACKED_TILES_CUH
#define TESSERA_KERNELS_TEST_PACKED_TILES_CUH

#include "attention/attention_packed.cuh"

namespace tessera {

/// Sequences that begin in so many positions are a section: the tiles that run
/// together should find in L2 what they read.
constexpr int kPackedSection = 16384;

/// Makes the tiles of a head from where sequences begin and, behind the last
/// one, where that ends: those of sequence blockIdx.x of gridDim.x. One that
/// would begin before the end of another begins there. Of each, `used`, if
/// there is one, says how many positions there are.
template <bool Causal>
TSR_DEVICE void packed_tiles(int const *begins, int const *used, int positions,
                             int rows, PackedHeader *header) {
  const int sequences = gridDim.x, sequence = blockIdx.x;
  auto *runs = reinterpret_cast<PackedRun *>(header + 1);
  auto *to = reinterpret_cast<PackedTile *>(runs + sequences);
  struct Walk {
    int begin, end, length;
    TSR_MEMBER int tiles(int rows) const { return (length + rows - 1) / rows; }
    TSR_MEMBER int section() const { return begin / kPackedSection; }
  };
  const Walk start = {0, min(max(begins[0], 0), positions), 0};
  auto next = [&](Walk at, int i) -> Walk {
    const int end = max(at.end, min(begins[i + 1], positions));
    const int all = end - at.end;
    return {at.end, end, used ? min(max(used[i], 0), all) : all};
  };
  Walk own = start;
  for (int i = 0; i <= sequence; i++)
    own = next(own, i);
  const int tiles = own.tiles(rows);
  for (int m = threadIdx.x; m < tiles; m += blockDim.x) {
    int before = Causal ? 0 : tiles - m - 1;
    Walk at = start;
    for (int i = 0; i < sequences; i++) {
      at = next(at, i);
      const int all = at.tiles(rows);
      // Causal: tiles m of all sequences are of the same length.
      if (at.section() != own.section())
        before += at.section() < own.section() ? all : 0;
      else if (Causal)
        before += max(all - m - 1, 0) + (i < sequence && all > m);
      else if (all > tiles || (all == tiles && i < sequence))
        before += all;
    }
    to[before] = {{own.begin, own.length}, m, sequence};
  }
  if (threadIdx.x == 0)
    runs[sequence] = {{own.begin, own.length}, tiles, 0};
  if (sequence == 0 && threadIdx.x == 0) {
    Walk at = start;
    *header = {};
    for (int i = 0; i < sequences; i++) {
      at = next(at, i);
      header->count += at.tiles(rows);
      header->positions += at.length;
    }
  }
}

} // namespace tessera

#endif // TESSERA_KERNELS_TEST_PACKED_TILES_CUH
