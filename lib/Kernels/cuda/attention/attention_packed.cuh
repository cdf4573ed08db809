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
/// A sequence, in their order, as far as it is used.
struct alignas(16) PackedRun : PackedSpan {
  int tiles, none;
};
/// Before the sequences and the tiles: how many tiles there are, and how many
/// positions of sequences.
struct alignas(16) PackedHeader {
  int count, positions, none[2];
};
/// All of a head, in the order of launch: inside sections of sequences, the
/// longest first, and of a sequence the last first. For tiles of keys, whose
/// queries are those behind them, a sequence's are counted from the other end.
/// tv.packed_tiles makes them.
struct PackedTiles {
  PackedHeader const *header;
  int sequences;

  TSR_MEMBER int count() const { return header->count; }
  TSR_MEMBER PackedTile const &operator[](int i) const {
    return reinterpret_cast<PackedTile const *>(header + 1 + sequences)[i];
  }
  TSR_MEMBER PackedSpan const &sequence(int i) const {
    return reinterpret_cast<PackedRun const *>(header + 1)[i];
  }
  /// Whether a position is of no sequence.
  TSR_MEMBER bool is_outside(int position) const {
    int begun = 0; // sequences, of which the last one may have it
    for (int end = sequences; begun < end;) {
      const int middle = (begun + end) / 2;
      if (sequence(middle).begin <= position)
        begun = middle + 1;
      else
        end = middle;
    }
    return begun == 0 ||
           position - sequence(begun - 1).begin >= sequence(begun - 1).length;
  }

  /// How many there may be.
  static __host__ __device__ constexpr int64 most(int64 positions,
                                                  int64 sequences, int rows) {
    return positions / rows + sequences;
  }
  /// Words of the list with so many.
  static __host__ __device__ constexpr int64 words(int64 positions,
                                                   int64 sequences, int rows) {
    return 4 * (1 + sequences + most(positions, sequences, rows));
  }
};

/// By the warps of a whole grid: each has rows from all over the tensor, for
/// those to fill are neighbours. Not in line: behind a loop that threads leave
/// apart, NVRTC takes what is the same for a warp for numbers of each thread.
template <class T>
static __device__ __noinline__ void
fill_rows(PackedTiles all, T *to, int64 head_stride, int64 row_stride,
          int heads, int positions, int columns, T value) {
  const int lane = threadIdx.x % 32, of_block = blockDim.x / 32;
  const int warps = gridDim.x * of_block;
  for (int first = blockIdx.x * of_block + threadIdx.x / 32; first < positions;
       first += 32 * warps) {
    const int64 own = first + int64(lane) * warps;
    const bool is_own = own < positions && all.is_outside(own);
    unsigned rows = __ballot_sync(~0u, is_own);
    for (; rows; rows &= rows - 1) {
      T *row = to + (first + (__ffs(rows) - 1) * warps) * row_stride;
      for (int i = lane; i < heads * columns; i += 32)
        row[i / columns * head_stride + i % columns] = value;
    }
  }
}
/// `value` in all rows of no sequence. The tensor is [1, heads, positions], or
/// has columns behind them.
template <class T, int Rank, int Unit>
TSR_DEVICE void fill_outside(PackedTiles const &all,
                             Tensor<T, Rank, Unit> const &to, T value) {
  if (all.header->positions != to.size[2])
    fill_rows(all, to.data, to.stride[1], to.stride[2], int(to.size[1]),
              int(to.size[2]), Rank == 4 ? int(to.size[3]) : 1, value);
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
