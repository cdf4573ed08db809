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
/// Before the tiles: how many they are, where the first sequence begins and
/// where the last one ends.
struct alignas(16) PackedHeader {
  int count, begin, end, unused;
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
    return reinterpret_cast<PackedTile const *>(header + 1)[i];
  }

  /// How many there may be.
  static __host__ __device__ constexpr int64 most(int64 positions,
                                                  int64 sequences, int rows) {
    return positions / rows + sequences;
  }
};

/// By the threads of a whole grid. Not in line: behind a loop that threads leave
/// apart, NVRTC takes what is the same for a warp for numbers of each thread.
template <class T>
static __device__ __noinline__ void
fill_rows(PackedHeader const *list, T *to, int64 head_stride, int64 row_stride,
          int64 heads, int64 positions, int64 columns, T value) {
  const int64 begin = list->begin, end = list->end;
  const int64 rows = begin + positions - end;
  for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x;
       i < heads * rows * columns; i += int64(gridDim.x) * blockDim.x) {
    const int64 head = i / columns / rows, row = i / columns % rows;
    const int64 at = row < begin ? row : end + row - begin;
    to[head * head_stride + at * row_stride + i % columns] = value;
  }
}
/// `value` in all rows of no sequence. The tensor is [1, heads, positions], or
/// has columns behind them.
template <class T, int Rank, int Unit>
TSR_DEVICE void fill_outside(PackedTiles const &all,
                             Tensor<T, Rank, Unit> const &to, T value) {
  if (all.header->begin + to.size[2] != all.header->end)
    fill_rows(all.header, to.data, to.stride[1], to.stride[2], to.size[1],
              to.size[2], Rank == 4 ? to.size[3] : 1, value);
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
