//===- attention_paged.cuh - keys and values in pages ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block of keys is copied in boxes of rows, each from one page, of as few as
// one row: their swizzle is that of addresses. A page without a key that some
// query sees is never read, and of one that has both, values of the other rows
// are cleared: what lies there may be anything, NaN too. Zeros come from a page
// that the table has wrong, as it lies outside of the tensor.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_PAGED_CUH
#define TESSERA_KERNELS_ATTENTION_PAGED_CUH

#include "attention/attention_mods.cuh"

namespace tessera {

TSR_DEVICE constexpr int common_divisor(int a, int b) {
  return b ? common_divisor(b, a % b) : a;
}
/// Of the boxes that BN rows are copied in, pages of PageRows.
template <int BN, int PageRows>
constexpr int kBoxRows = common_divisor(BN, PageRows);

/// Which pages a warp copies the boxes of a tile's blocks from, a lane a box.
/// Blocks follow each other, from `begin` on, upwards or down. It asks for them
/// long before it copies.
template <class C, class P, int Direction> struct KeyPages {
  static constexpr int PageRows = C::Mods::PageRows;
  static constexpr int BoxRows = kBoxRows<C::BN, PageRows>;
  static constexpr int Boxes = C::BN / BoxRows;
  /// Boxes of a lane, and how many blocks those of a warp are.
  static constexpr int Each = (Boxes + 31) / 32;
  static constexpr int Blocks = Each * 32 / Boxes;
  P const &p;
  const KeyRange seen;
  const int batch, begin, lane = threadIdx.x % 32;
  int now[Each], next[Each];

  TSR_MEMBER KeyPages(P const &p, KeyRange const &seen, int batch, int begin)
      : p(p), seen(seen), batch(batch), begin(begin) {
    ask(begin);
  }
  /// Those of a lane, of a block.
  struct Own {
    int page[Each];
  };
  TSR_MEMBER void ask(int block) {
#pragma unroll
    for (int i = 0; i < Each; i++) {
      const int box = i * 32 + lane;
      // Of the blocks to come, in their order, each has its boxes in theirs.
      const int key =
          (block + Direction * (box / Boxes)) * C::BN + box % Boxes * BoxRows;
      next[i] = -1; // outside of the tensor
      if (key < seen.end && key + BoxRows > seen.begin)
        next[i] = C::Mods::page(p.args, batch, key / PageRows);
    }
  }
  /// Of a block, the one behind the last that was asked for.
  TSR_MEMBER Own find(int block) {
    const int at = Direction * (block - begin) % Blocks;
    if (at == 0) {
#pragma unroll
      for (int i = 0; i < Each; i++)
        now[i] = next[i];
      ask(block + Direction * Blocks);
    }
    Own own;
#pragma unroll
    for (int i = 0; i < Each; i++)
      own.page[i] =
          Blocks > 1 ? __shfl_sync(~0u, now[i], at * Boxes + lane) : now[i];
    return own;
  }
  /// By the warp, a block of a head; `full` expects it.
  template <int Panels>
  TSR_MEMBER static void load(char (&to)[Panels][C::BN * 128],
                              TensorMap const *map, uint64 *full, int block,
                              int head, Own const &own, uint64 hint) {
#pragma unroll
    for (int i = 0; i < Each; i++)
      if (const int row = (i * 32 + int(threadIdx.x % 32)) * BoxRows;
          row < C::BN)
#pragma unroll
        for (int c = 0; c < Panels; c++)
          tma_load(to[c] + row * 128, map, full, c * 64,
                   (block * C::BN + row) % PageRows, head, own.page[i], hint);
  }
};

/// By a warp group, whose barrier is `sync`: values of a block in rows that no
/// query sees, as a probability of 0 leaves NaN. Several groups may do so.
template <int BN, int Panels, class S>
TSR_DEVICE void clear_unseen(char (&v)[Panels][BN * 128], KeyRange const &seen,
                             int block, S sync) {
  const int begin = seen.begin - block * BN, end = seen.end - block * BN;
  if (begin <= 0 && end >= BN)
    return;
  auto *const words = reinterpret_cast<uint4 *>(v[0]);
  for (int i = threadIdx.x % 128; i < Panels * BN * 8; i += 128)
    if (const int row = i / 8 % BN; row < begin || row >= end)
      words[i] = make_uint4(0, 0, 0, 0);
  fence_async();
  sync();
}

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_PAGED_CUH
