//===- packed_tiles.cuh - what tv.packed_tiles makes, without a compiler --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_PACKED_TILES_CUH
#define TESSERA_TEST_PACKED_TILES_CUH

#include "attention/attention_packed.cuh"

namespace tessera {

/// Sequences that begin in so many positions are a section: the tiles that run
/// together should find in L2 what they read.
constexpr int kPackedSection = 16384;

/// Makes the tiles of a head from where sequences begin and, behind the last
/// one, where that ends: those of sequence blockIdx.x of gridDim.x. One that
/// would begin before the end of another begins there.
template <bool Causal>
TSR_DEVICE void packed_tiles(int const *begins, int positions, int rows,
                             PackedHeader *header) {
  auto *to = reinterpret_cast<PackedTile *>(header + 1);
  const int sequences = gridDim.x, sequence = blockIdx.x;
  struct Walk {
    int begin, end;
    TSR_MEMBER int tiles(int rows) const {
      return (end - begin + rows - 1) / rows;
    }
    TSR_MEMBER int section() const { return begin / kPackedSection; }
  };
  const Walk start = {0, min(max(begins[0], 0), positions)};
  auto next = [&](Walk at, int i) -> Walk {
    return {at.end, max(at.end, min(begins[i + 1], positions))};
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
    to[before] = {{own.begin, own.end - own.begin}, m, sequence};
  }
  if (sequence == 0 && threadIdx.x == 0) {
    Walk at = start;
    *header = {0, at.end};
    for (int i = 0; i < sequences; i++) {
      at = next(at, i);
      header->count += at.tiles(rows);
    }
    header->end = at.end;
  }
}

} // namespace tessera

#endif // TESSERA_TEST_PACKED_TILES_CUH
