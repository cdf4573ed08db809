//===- attention_packed.cuh - sequences one behind the other --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Packed sequences: positions of many, one sequence behind the other, each of
// which attends to itself alone. Tiles begin where their sequence does, so that
// inside of it there is plain attention: only the diagonal and a sequence's
// last keys are masked. Which tiles there are is data, made on the device.
//
// Copies see a tile's own sequence as a whole tensor: what they read behind its
// end is zeros, what they write there is dropped. So no sequence's numbers get
// into another's, not even NaN. A ragged map does that. It has the rows twice:
// once in a dimension of R = 2^30, where row i of a sequence of n is R - n + i
// and its end is the dimension's; and once to say where that end lies. A third
// dimension, always at R, takes R rows back, as R * 2^34 is 0 in an address:
//
//     row * (R - n + i) + (2^34 - row) * R + row * end = row * (end - n + i)
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_PACKED_CUH
#define TESSERA_KERNELS_ATTENTION_PACKED_CUH

#include "base/ptx.cuh"

namespace tessera {

/// Extents of a ragged map from the innermost dimension: d, kRaggedRows, heads,
/// kRaggedRows + 1, positions + 1. Strides in bytes, with those of a row and of
/// a head: row, head, kRaggedStride - row, row.
constexpr int64 kRaggedRows = 1 << 30, kRaggedStride = int64(1) << 34;

/// The positions of a sequence.
struct PackedSpan {
  int begin, length;
};
/// A tile: positions [tile * rows, (tile + 1) * rows) of its sequence.
struct alignas(16) PackedTile : PackedSpan {
  int tile, sequence;
};
/// All of a head, in the order of launch: inside sections of sequences, the
/// longest first, and of a sequence the last first. For tiles of keys, whose
/// queries are those behind them, a sequence's are counted from the other end.
struct PackedTiles {
  PackedTile const *tiles;
  int const *count;
  int sequences;

  /// How many there may be.
  static __host__ __device__ constexpr int64 most(int64 positions,
                                                  int64 sequences, int rows) {
    return positions / rows + sequences;
  }
};

/// Sequences that begin in so many positions are a section: the tiles that run
/// together should find in L2 what they read.
constexpr int kPackedSection = 16384;

/// Makes the tiles of a head from where sequences begin and, behind the last
/// one, where that ends: those of sequence blockIdx.x of gridDim.x. One that
/// would begin before the end of another begins there.
template <bool Causal>
TSR_DEVICE void packed_tiles(int const *begins, int positions, int rows,
                             PackedTile *to, int *count) {
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
    *count = 0;
    for (int i = 0; i < sequences; i++) {
      at = next(at, i);
      *count += at.tiles(rows);
    }
  }
}

/// A sequence of packed ones, with the names of what a kernel's parameters have
/// of all.
template <class Args> struct PackedSequence {
  Args const &args;
  int queries, keys;
  static constexpr int causal_shift = 0;
};
/// Where nothing is packed, the parameters themselves.
template <class C, class P>
TSR_DEVICE decltype(auto) sequence_of(P const &p, PackedSpan const &of) {
  if constexpr (C::Packed)
    return PackedSequence<typename C::Mods::Args>{p.args, of.length, of.length};
  else
    return (p);
}

/// Copies of rows from `row` on, of a sequence or of a whole batch.
template <class C>
TSR_DEVICE void load_box(void *to, TensorMap const *map, uint64 *b, int column,
                         int row, int head, int batch, PackedSpan const &of,
                         uint64 hint) {
  if constexpr (C::Packed)
    tma_load(to, map, b, column, kRaggedRows - of.length + row, head,
             kRaggedRows, of.begin + of.length, hint);
  else
    tma_load(to, map, b, column, row, head, batch, hint);
}
template <class C>
TSR_DEVICE void store_box(TensorMap const *map, void const *from, int column,
                          int row, int head, int batch, PackedSpan const &of) {
  if constexpr (C::Packed)
    tma_store(map, from, column, kRaggedRows - of.length + row, head,
              kRaggedRows, of.begin + of.length);
  else
    tma_store(map, from, column, row, head, batch);
}

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_PACKED_CUH
