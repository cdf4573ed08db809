//===- attention_bwd_sums.cuh - attention, backward: captured tensors -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What scores add to the gradients of captured tensors, summed over what an
// index does not tell apart: a number for each query, key, distance or score of
// a head. All else that makes a gradient of these is far smaller, and others'.
//
//   query     over the tile's keys by shuffles and in shared memory, then added
//             to global memory in the turn of dQ: in its order.
//   key       over the block's queries by shuffles; no other tile has the key.
//   distance  over the diagonals of the block, as for queries; a tile adds its
//             blocks up in memory of its own, and the last kernel the tiles.
//   score     is stored.
//
// One thread adds to a place, for keys and distances: so these are the same
// bits in every run, too.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_BWD_SUMS_CUH
#define TESSERA_KERNELS_ATTENTION_BWD_SUMS_CUH

#include "attention/attention_bwd_order.cuh"

namespace tessera {

/// Of one sum: the place of an element, from which others lie `stride` apart.
struct BwdSumRow {
  float *to;
  int64 stride;

  TSR_MEMBER float &operator[](int64 i) const { return to[i * stride]; }
};
template <class P>
TSR_DEVICE BwdSumRow bwd_sum_row(P const &p, int n, int batch, int head) {
  BwdSum const &sum = p.sums[n];
  return {sum.to + batch * sum.strides[0] + head * sum.strides[1],
          sum.strides[2]};
}

/// The places of a tile's sums by distance: that of query q and key k is
/// q - k + n * BN + BN - 1.
template <class C, class P>
TSR_DEVICE float *bwd_distances(P const &p, int which, int batch, int head,
                                int n) {
  const int64 tiles = (p.keys + C::BN - 1) / C::BN;
  const int64 row = (int64)(batch * p.heads + head) * tiles + n;
  return BwdWorkspace<C>(p).distances +
         (which * tiles * p.heads * p.batch + row) *
             BwdWorkspace<C>::distance_places(p.queries);
}

/// A consumer thread's part of a step's sums.
template <class C, class P> struct BwdSums {
  using Mods = typename C::Mods;
  static constexpr int N = C::Sums + !C::Sums, Columns = C::BM / 4;
  P const &p;
  typename C::Shared &s;
  const int group, thread = threadIdx.x % 128, lane = threadIdx.x % 32;
  // By query: of its columns, later of two. By key: of its two rows. By
  // distance: of neighbouring diagonals of 8x8 blocks, later of five.
  float part[N][Columns + 2];
  // By score: this thread's first.
  float *places[N];
  int64 strides[N];

  TSR_MEMBER BwdSums(P const &p, typename C::Shared &s, int group)
      : p(p), s(s), group(group) {}
  /// Before a step's scores are taken.
  TSR_MEMBER void start(typename C::Step const &now, int query, int key) {
#pragma unroll
    for (int n = 0; n < N; n++) {
#pragma unroll
      for (int i = 0; i < Columns + 2; i++)
        part[n][i] = 0;
      if (Mods::sum_by(n) != SumBy::Score)
        continue;
      const BwdSumRow row = bwd_sum_row(p, n, now.batch, now.head);
      places[n] = &row[query] + key * p.sums[n].strides[3];
      strides[n] = row.stride;
      // Or its multiples lie in registers all the time.
      asm volatile("" : "+l"(strides[n]));
    }
  }

  /// Those of element i of the scores, whether or not there are such a query
  /// and key.
  TSR_MEMBER void take(float const (&addends)[N], int i, bool exists) {
    const int block = i / 4, r = i / 2 % 2, e = i % 2;
#pragma unroll
    for (int n = 0; n < N; n++) {
      const SumBy by = Mods::sum_by(n);
      if (by == SumBy::Query)
        part[n][2 * block + e] += addends[n];
      else if (by == SumBy::Key)
        part[n][r] += addends[n];
      else if (by == SumBy::Distance)
        part[n][2 * (block - r + 1) + e] += addends[n];
      else if (exists)
        places[n][fragment_column(i) * strides[n] +
                  fragment_row(i) * p.sums[n].strides[3]] = addends[n];
    }
  }

  /// Sums over the warp; those by key are done then.
  TSR_MEMBER void reduce(typename C::Step const &now, int key) {
#pragma unroll
    for (int n = 0; n < N; n++) {
      const SumBy by = Mods::sum_by(n);
      if (by == SumBy::Query) {
        halve<Columns / 2>(part[n], 16);
        halve<Columns / 4>(part[n], 8);
        halve<Columns / 8>(part[n], 4);
      } else if (by == SumBy::Key) {
        const BwdSumRow row = bwd_sum_row(p, n, now.batch, now.head);
#pragma unroll
        for (int r = 0; r < 2; r++) {
          part[n][r] = quad_sum(part[n][r]);
          if (lane % 4 == 0 && key + 8 * r < p.keys)
            global_add(&row[key + 8 * r], part[n][r]);
        }
      } else if (by == SumBy::Distance) {
        diagonals(part[n]);
      }
    }
  }
  /// Leaves them to both groups. With two buffers, inside the group's turn: the
  /// other group has added those of two steps ago.
  TSR_MEMBER void store(int buffer) {
    int slot = 0;
#pragma unroll
    for (int n = 0; n < N; n++) {
      const SumBy by = Mods::sum_by(n);
      if (by != SumBy::Query && by != SumBy::Distance)
        continue;
      float *to = s.sums[buffer][slot++][group * 4 + thread / 32];
      if (by == SumBy::Query) {
        const int first =
            ((lane & 16) / 2 + (lane & 8) / 2 + (lane & 4) / 2) * Columns / 16;
#pragma unroll
        for (int i = 0; i < Columns / 8; i++)
          to[(first + i) / 2 * 8 + lane % 4 * 2 + i % 2] = part[n][i];
      } else if (!(lane & 4)) {
        const int first = (lane & 16 ? 10 : 0) + (lane & 8 ? 5 : 0);
#pragma unroll
        for (int i = 0; i < 5; i++)
          to[(first + i) / 2 * 8 + lane % 4 * 2 + (first + i) % 2] = part[n][i];
      }
    }
  }
  /// What a thread adds of a step: nothing to null.
  struct Addition {
    float *to;
    float sum;
  };
  /// Of what both groups have left of a step. Those by distance are added.
  TSR_DEVICE void gather(Addition (&additions)[N], P const &p,
                         typename C::Shared &s, int group,
                         typename C::Step const &of, int buffer) {
    constexpr int Diagonals = C::BM + C::BN; // the last of them is none
    const int thread = threadIdx.x % 128;
    int slot = 0, distance = 0;
#pragma unroll
    for (int n = 0; n < N; n++) {
      additions[n] = {nullptr, 0};
      const SumBy by = Mods::sum_by(n);
      if (by != SumBy::Query && by != SumBy::Distance)
        continue;
      auto *const from = s.sums[buffer][slot++];
      float sum = 0;
      if (by == SumBy::Query) {
        const int row = group * (C::BM / 2) + thread;
        if (thread >= C::BM / 2 || of.m * C::BM + row >= p.queries)
          continue;
#pragma unroll
        for (int warp = 0; warp < 8; warp++)
          sum += from[warp][row];
        additions[n] = {
            &bwd_sum_row(p, n, of.batch, of.head)[of.m * C::BM + row], sum};
      } else {
        // A place is always the same thread's.
        const int which = distance++;
        const int own = group * (Diagonals / 2) + thread;
        const int i = (own + Diagonals - of.m * C::BM % Diagonals) % Diagonals;
        if (thread >= Diagonals / 2 || i == Diagonals - 1)
          continue;
#pragma unroll
        for (int warp = 0; warp < 8; warp++) {
          const int at = i - (C::BN - 1) + 16 * warp + 16;
          if (0 <= at && at < C::SumFloats)
            sum += from[warp][at];
        }
        global_add(bwd_distances<C>(p, which, of.batch, of.head, of.n) +
                       of.m * C::BM + i,
                   sum);
      }
    }
  }
  /// In the turn of the step's dQ.
  TSR_DEVICE void add(Addition const (&additions)[N]) {
#pragma unroll
    for (int n = 0; n < N; n++)
      if (additions[n].to)
        global_add(additions[n].to, additions[n].sum);
  }

private:
  /// Of 2 * Half numbers of each of two lanes, one has the sums of the first
  /// half then, the other of the second.
  template <int Half, int Size>
  TSR_MEMBER void halve(float (&x)[Size], int bit) {
    const bool upper = lane & bit;
#pragma unroll
    for (int i = 0; i < Half; i++) {
      const float sent = upper ? x[i] : x[i + Half];
      x[i] = (upper ? x[i + Half] : x[i]) + __shfl_xor_sync(~0u, sent, bit);
    }
  }
  /// A block of 8x8 scores has keys in rows a = lane / 4. With its columns
  /// turned by a, what is in one column lies on one diagonal, or, where the
  /// column wraps, on that of the block before.
  TSR_MEMBER void diagonals(float (&x)[Columns + 2]) {
    constexpr int Blocks = Columns / 2 + 2;
    const int a = lane / 4, column = lane % 4 * 2;
    float turned[2 * Blocks];
#pragma unroll
    for (int block = 0; block < Blocks; block++) {
      float of[2];
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const float wrapped = block < Blocks - 1 ? x[2 * block + e] : 0;
        const float other = block ? x[2 * (block - 1) + e] : 0;
        of[e] = column + e < a ? wrapped : other;
      }
      const bool odd = a % 2;
      turned[2 * block] = __shfl_sync(~0u, odd ? of[1] : of[0],
                                      lane / 4 * 4 + (lane + a / 2) % 4);
      turned[2 * block + 1] = __shfl_sync(
          ~0u, odd ? of[0] : of[1], lane / 4 * 4 + (lane + (a + 1) / 2) % 4);
    }
    halve<Blocks>(turned, 16);
    halve<Blocks / 2>(turned, 8);
#pragma unroll
    for (int i = 0; i < Blocks / 2; i++)
      x[i] = turned[i] + __shfl_xor_sync(~0u, turned[i], 4);
  }
};

/// Zeroes what is added to, or never reached, for one of `blocks` blocks of
/// queries of a head.
template <class C, class P>
TSR_DEVICE void bwd_clear_sums(P const &p, int batch, int head, int m,
                               int blocks) {
  using Mods = typename C::Mods;
  auto zero = [&](BwdSumRow row, int64 begin, int64 end) {
    for (int64 i = begin + threadIdx.x; i < end; i += C::SideThreads)
      row[i] = 0;
  };
  auto zero_part = [&](BwdSumRow row, int64 size) {
    zero(row, size * m / blocks, size * (m + 1) / blocks);
  };
  int distance = 0;
#pragma unroll
  for (int n = 0; n < Mods::Sums; n++) {
    BwdSumRow row = bwd_sum_row(p, n, batch, head);
    const int first = m * C::BM, last = min(first + C::BM, p.queries);
    switch (Mods::sum_by(n)) {
    case SumBy::Query:
      zero(row, first, last);
      break;
    case SumBy::Key:
      zero_part(row, p.keys);
      break;
    case SumBy::Distance: {
      const int64 tiles = (p.keys + C::BN - 1) / C::BN;
      zero_part({bwd_distances<C>(p, distance++, batch, head, 0), 1},
                tiles * BwdWorkspace<C>::distance_places(p.queries));
      break;
    }
    case SumBy::Score: {
      const KeyRange tiles = bwd_tiles<C>(p, batch, head, m);
      const int begin = min(tiles.begin * C::BN, p.keys);
      const int end = min(max(tiles.begin, tiles.end) * C::BN, p.keys);
      for (int query = first; query < last; query++) {
        const BwdSumRow keys = {&row[query], p.sums[n].strides[3]};
        zero(keys, 0, begin), zero(keys, end, p.keys);
      }
      if constexpr (C::Sparse)
        for (int tile = tiles.begin; tile < tiles.end; tile++)
          if (!bwd_kind<C>(p, batch, head, m, tile))
            for (int query = first; query < last; query++)
              zero({&row[query], p.sums[n].strides[3]}, tile * C::BN,
                   min(tile * C::BN + C::BN, p.keys));
    }
    }
  }
}
/// Without queries only the tiles of keys have blocks: those of this one, by a
/// consumer group.
template <class C, class P>
TSR_DEVICE void bwd_clear_sums(P const &p, typename C::Step const &of) {
  const int i = of.n * C::BN + threadIdx.x % 128;
#pragma unroll
  for (int n = 0; n < C::Mods::Sums; n++)
    if (C::Mods::sum_by(n) == SumBy::Key ||
        C::Mods::sum_by(n) == SumBy::Distance)
      if (i < p.keys)
        bwd_sum_row(p, n, of.batch, of.head)[i] = 0;
}

/// The sums by distance of all tiles, for one of `blocks` parts.
template <class C, class P>
TSR_DEVICE void bwd_finish_sums(P const &p, int batch, int head, int m,
                                int blocks) {
  const int tiles = (p.keys + C::BN - 1) / C::BN;
  const int places = BwdWorkspace<C>::distance_places(p.queries);
  const int64 size = p.queries + p.keys;
  int distance = 0;
#pragma unroll
  for (int n = 0; n < C::Mods::Sums; n++) {
    if (C::Mods::sum_by(n) != SumBy::Distance)
      continue;
    float const *from = bwd_distances<C>(p, distance++, batch, head, 0);
    const BwdSumRow to = bwd_sum_row(p, n, batch, head);
    for (int64 i = size * m / blocks + threadIdx.x; i < size * (m + 1) / blocks;
         i += C::SideThreads) {
      float sum = 0;
      for (int tile = 0; tile < tiles; tile++) {
        const int64 at = i - p.keys + (tile + 1) * C::BN - 1;
        if (0 <= at && at < places)
          sum += from[(int64)tile * places + at];
      }
      to[i] = sum;
    }
  }
}

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_BWD_SUMS_CUH
