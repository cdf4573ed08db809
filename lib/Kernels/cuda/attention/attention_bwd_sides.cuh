//===- attention_bwd_sides.cuh - attention, backward: before and after ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels before and after the main one of attention_bwd.cuh.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_BWD_SIDES_CUH
#define TESSERA_KERNELS_ATTENTION_BWD_SIDES_CUH

#include "attention/attention_bwd_sums.cuh"

namespace tessera {

/// The block of queries that has the number `at` here. Packed: tiles have
/// theirs one behind the other, as many tiles of a head as there may be.
template <class C> struct BwdSide {
  int m, head, batch;
  int64 number;   // in the workspace
  int first, end; // positions: the first of all queries, and where they end
  bool exists = true;
  PackedTile place = {};

  /// Of a head.
  static __host__ __device__ constexpr int blocks(int queries, int sequences) {
    return C::Packed
               ? PackedTiles::most(queries, sequences, C::BN) * (C::BN / C::BM)
               : (queries + C::BM - 1) / C::BM;
  }
  template <class P> TSR_MEMBER static int blocks(P const &p) {
    if constexpr (C::Packed)
      return blocks(p.queries, C::Mods::packed(p.args).sequences);
    else
      return blocks(p.queries, 0);
  }

  template <class P> TSR_MEMBER BwdSide(P const &p, int at) {
    const int blocks = BwdSide::blocks(p);
    m = at % blocks, head = at / blocks % p.heads;
    batch = at / blocks / p.heads;
    number = at, first = 0, end = p.queries;
    if constexpr (C::Packed) {
      const PackedTiles all = C::Mods::packed(p.args);
      constexpr int InTile = C::BN / C::BM;
      exists = m / InTile < all.count();
      if (exists)
        place = all[m / InTile];
      m = place.tile * InTile + m % InTile;
      exists = exists && m * C::BM < place.length;
      number = bwd_block<C>(p, 0, head, m, place);
      first = place.begin, end = first + place.length;
    }
  }
};

/// Calls to(i, tile, bits) with which of 32 tiles, from this warp's on, add to
/// the blocks block(0), ..., block(count - 1) of a head; n(tile): its number.
/// By C::SideThreads threads. (No generic lambda: NVRTC takes one for the
/// host's.)
template <class C, class P, class Number, class Block, class To>
TSR_DEVICE void bwd_look(P const &p, int batch, int head, int tiles, Number n,
                         int count, Block block, To to) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int words = (tiles + 63) / 64 * 2;
  const int shares = C::SideThreads / 32 / words;
  const int tile = warp % words * 32 + lane;
  const int key = tile < tiles ? n(tile) : -1;
  for (int i = warp / words; i < count && warp < words * shares;
       i += 4 * shares) {
    uint32 adds = 0; // in the unrolled loop, loads are under way at once
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int m = block(min(i + j * shares, count - 1));
      const bool is = key >= 0 && 0 <= m && m < (p.queries + C::BM - 1) / C::BM;
      adds |= uint32(is & bwd_adds<C>(p, batch, head, is ? m : 0, is ? key : 0))
              << j;
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (i + j * shares < count)
        to(i + j * shares, tile, __ballot_sync(~0u, adds >> j & 1));
  }
}

/// Part `at` of the walks of all heads, by C::SideThreads threads: each has a
/// tile of so many, by its place in the order of launch, and a block of queries
/// of the part, by its place in a walk over all.
template <class C, class P> TSR_DEVICE void bwd_make_walks(P const &p, int at) {
  using Walks = BwdWalks<C>;
  constexpr int Most = Walks::Most, Words = Most / 64;
  static_assert(Most <= C::SideThreads, "a thread has a tile and a block");
  // Of a block: the tiles that add to it. Of a tile: the blocks that it may
  // take.
  union Set {
    uint32 half[2];
    uint64 all;
  };
  __shared__ Set adding[Words][Most], open[Words][Most];
  // How many tiles have taken a block; before, a tile's blocks. Of all tiles,
  // the blocks and the pieces they are in.
  __shared__ int taken[Most], sums[2];
  const int all_parts = Walks(p.queries, p.keys).parts, part = at % all_parts;
  const int head = at / all_parts % p.heads, batch = at / all_parts / p.heads;
  if (batch >= p.batch)
    return;
  const int key_head = C::Mods::key_head(p.args, head, p.heads, p.key_heads);
  const int first_head = bwd_first_head<C>(p, key_head);
  const bool last = bwd_section<C>(p, batch * p.key_heads + key_head).last;
  const int own = threadIdx.x, lane = own % 32;
  // Counts are those of a pass. The heads of a tile have the order of the first
  // of them.
  const Walks most(p, batch, head, Walks::Passes);
  int *const launched = most.launched + part * most.tiles;
  int *const counts = most.counts + part * most.tiles;
  __syncthreads();
  if (own < 2)
    sums[own] = 0;
  for (int first = 0; first < most.tiles; first += Most) {
    const int tiles = min(most.tiles - first, Most);
    if (own < Most)
      taken[own] = 0;
    __syncthreads();
    int blocks = 0, pieces = 0;
    bwd_look<C>(
        p, batch, first_head, tiles, [&](int tile) { return first + tile; },
        most.columns, [&](int column) { return column * most.passes; },
        [&](int, int tile, uint32 adds) {
          if (adds >> lane & 1)
            atomicAdd(&taken[tile], 1);
          blocks += __popc(adds), pieces += __popc(adds & ~(adds << 1));
        });
    if (lane < 2)
      atomicAdd(&sums[lane], lane ? pieces : blocks);
    __syncthreads();
    if (own < tiles)
      counts[first + own] = taken[own];
  }
  const bool few = sums[0] / 3 < most.columns * most.tiles / 8;
  const bool local = few && sums[0] >= 4 * sums[1];
  const Walks walks(p, batch, head, local ? 1 : Walks::Passes);
  if (part >= walks.parts)
    return;

  // The shortest first, or the last keys; the other way in the last section.
  for (int first = 0; first < walks.tiles; first += Most) {
    const int n = own < Most ? first + own : walks.tiles;
    const int count = n < walks.tiles ? counts[n] : 0;
    int before = 0;
    for (int others = 0; others < walks.tiles; others += Most) {
      __syncthreads();
      if (own < min(Most, walks.tiles - others))
        taken[own] = counts[others + own];
      __syncthreads();
      for (int i = 0; i < min(Most, walks.tiles - others); i++)
        before +=
            local || taken[i] == count ? others + i > n : taken[i] < count;
    }
    if (n < walks.tiles)
      launched[last ? walks.tiles - 1 - before : before] =
          2 * n + walks.passes - 1;
  }

  // The block of a place is from + place * by.
  const int ranges = walks.parts / walks.passes;
  const int earlier = part % ranges * walks.width;
  const int by = last ? -walks.passes : walks.passes;
  const int from =
      (last ? walks.columns - 1 - earlier : earlier) * walks.passes +
      part / ranges;
  __syncthreads();
  for (int word = 0; own < Most && word < Words; word++)
    open[word][own].all = taken[own] = 0;
  for (int first = 0; first < walks.tiles; first += Most) {
    const int tiles = min(walks.tiles - first, Most);
    __syncthreads();
    bwd_look<C>(
        p, batch, head, tiles,
        [&](int tile) { return launched[first + tile] / 2; }, walks.width,
        [&](int place) { return from + place * by; },
        [&](int place, int tile, uint32 adds) {
          if (lane == 0)
            adding[tile / 64][place].half[tile / 32 % 2] = adds;
        });
    __syncthreads();
    // The first tile from `tile` on that adds to the block of a place may take
    // it.
    auto next = [&](int place, int tile) {
      uint64 rest = ~uint64(0) << tile % 64;
      for (int word = tile / 64; word * 64 < tiles; word++, rest = ~uint64(0))
        if (const uint64 bits = adding[word][place].all & rest)
          return word * 64 + __ffsll(bits) - 1;
      return Most;
    };
    auto let = [&](int tile, int place) {
      if (tile < Most)
        atomicOr(&open[place / 64][tile].half[place / 32 % 2],
                 1u << place % 32);
    };
    if (own < walks.width)
      let(next(own, 0), own);
    __syncthreads();
    uint32 *const walk =
        walks.walk(part, own < tiles ? launched[first + own] / 2 : 0);
    int steps = 0;
    for (;;) {
      uint64 bits = 0;
      int word = 0;
      while (own < tiles && !(bits = open[word][own].all) &&
             (word + 1) * 64 < walks.width)
        word++;
      const int place = word * 64 + __ffsll(bits) - 1;
      int behind = Most;
      if (bits) {
        open[word][own].all = bits & (bits - 1);
        behind = next(place, own + 1);
      }
      if (!__syncthreads_or(bits != 0))
        break;
      let(behind, place);
      if (bits)
        walk[steps++] = uint32(from + place * by) | uint32(taken[place]++)
                                                        << 16;
      __syncthreads();
    }
    if (own < tiles && steps < walks.width)
      walk[steps] = Walks::End;
  }
}

/// Of C::SideThreads threads, for one of the blocks of queries of all heads and
/// batches. Rows that see no key, and those beyond the end, get an infinite
/// lse: their probabilities are 0.
template <class C, class P>
TSR_DEVICE void attention_bwd_prepare(P const &p, int at) {
  using T = typename C::T;
  start_next();
  constexpr int Lanes = C::ValuePanels == 3 ? 32 : C::ValuePanels * 8;
  constexpr int Step = C::SideThreads / Lanes;
  constexpr int Rows = C::BM / Step;
  const BwdSide<C> of(p, at);
  if (!of.exists)
    return;
  if constexpr (C::Walks) // of which there are fewer parts
    bwd_make_walks<C>(p, at);
  const int m = of.m, head = of.head, batch = of.batch;
  const int lane = threadIdx.x % Lanes;
  const int row = of.first + m * C::BM + threadIdx.x / Lanes;
  const BwdWorkspace<C> work(p);
  const float infinity = __int_as_float(0x7f800000);
  const bool own = lane * 8 < C::DV; // columns
  Vector<T, 8> o[Rows], dout[Rows];
#pragma unroll
  for (int i = 0; i < Rows; i++) {
    const int64 query = row + i * Step;
    auto load_row = [&](Vector<T, 8> &to, void const *from,
                        int64 const(&strides)[3]) {
      *reinterpret_cast<uint4 *>(to.lane) =
          load_last(static_cast<T const *>(from) + batch * strides[0] +
                    head * strides[1] + query * strides[2] + lane * 8);
    };
    if (query < of.end && own) {
      load_row(o[i], p.o, p.o_strides);
      load_row(dout[i], p.dout, p.dout_strides);
    }
  }
  bwd_clear_sums<C>(p, batch, head, m, of.blocks(p));
  bool clear = true; // dQ: Ordered, the first addition is a store
  if (C::Ordered) {
    clear = bwd_count<C>(sequence_of<C>(p, of.place), batch, head, m) == 0;
    if (threadIdx.x < 2)
      work.turns[2 * of.number + threadIdx.x] = 0;
  }
  if (clear) {
    float4 *sum =
        reinterpret_cast<float4 *>(work.sum + of.number * 2 * C::Part);
#pragma unroll
    for (int i = threadIdx.x; i < C::Part / 2; i += C::SideThreads)
      sum[i] = make_float4(0, 0, 0, 0);
  }
#pragma unroll
  for (int i = 0; i < Rows; i++) {
    const int64 query = row + i * Step;
    float delta = 0, lse = infinity;
    if (query < of.end && own) {
#pragma unroll
      for (int v = 0; v < 8; v++)
        delta += widen<float>(o[i].get(v)) * widen<float>(dout[i].get(v));
    }
#pragma unroll
    for (int w = Lanes / 2; w; w /= 2)
      delta += __shfl_xor_sync(~0u, delta, w);
    if (lane == 0) {
      if (query < of.end) {
        lse = p.lse[batch * p.lse_strides[0] + head * p.lse_strides[1] +
                    query * p.lse_strides[2]];
        if (p.dlse)
          delta -= p.dlse[batch * p.dlse_strides[0] + head * p.dlse_strides[1] +
                          query * p.dlse_strides[2]];
        if (lse == -infinity)
          lse = infinity, delta = 0;
      }
      const int64 to = of.number * C::BM + threadIdx.x / Lanes + i * Step;
      work.lse[to] = lse * 1.44269504f, work.delta[to] = delta;
      if (C::RowBytes)
        work.row[to] = C::Mods::row(
            p.args, C::Mods::batch(p.args, batch), C::Mods::head(p.args, head),
            C::Mods::query(p.args, min((int)query, of.end - 1)));
    }
  }
}

/// Until all tiles have added to a block of queries. Ordered, that shows before
/// the main kernel has ended; the last block waits for the end, and with it
/// what follows in the stream.
template <class C, class P>
TSR_DEVICE void bwd_wait_added(P const &p, BwdSide<C> const &of, int at) {
  if (!C::Ordered || C::DistanceSums ||
      at == of.blocks(p) * p.heads * p.batch - 1) {
    wait_before();
    return;
  }
  if (!of.exists)
    return;
  const int count =
      bwd_count<C>(sequence_of<C>(p, of.place), of.batch, of.head, of.m);
  if (threadIdx.x < 2) {
    int *const turn = BwdWorkspace<C>(p).turns + 2 * of.number + threadIdx.x;
    while (load_acquire(turn) < count) {
    }
  }
  __syncthreads();
}

/// Launched as prepare. A thread makes 16 bytes of two rows, 8 apart, from what
/// the four threads of a quad have added.
template <class C, class P>
TSR_DEVICE void attention_bwd_finish(P const &p, int at) {
  using T = typename C::T;
  const BwdSide<C> of(p, at);
  const int m = of.m, head = of.head, batch = of.batch;
  bwd_wait_added<C>(p, of, at);
  if (!of.exists)
    return;
  bwd_finish_sums<C>(p, batch, head, m, of.blocks(p));
  float const *sum = BwdWorkspace<C>(p).sum + of.number * 2 * C::Part;
  T *out =
      static_cast<T *>(p.dq) + batch * p.dq_strides[0] + head * p.dq_strides[1];
#pragma unroll
  for (int i = threadIdx.x; i < C::Part / 8; i += C::SideThreads) {
    constexpr int Eights = C::DqColumns / 8;
    const int j = i % Eights, quad = i / Eights % 32, group = i / Eights / 32;
    float4 part[4];
#pragma unroll
    for (int l = 0; l < 4; l++)
      part[l] = *reinterpret_cast<float4 const *>(sum + group * C::Part +
                                                  j * 512 + (quad * 4 + l) * 4);
    const bool whole = C::DqColumns == C::Panels * 64; // rows
    const int row = (whole ? group * 64 : 0) + quad / 8 * 16 + quad % 8;
    const int column = (whole ? 0 : group * C::DqColumns) + j * 8;
#pragma unroll
    for (int r = 0; r < 2; r++) {
      uint32 two[4];
#pragma unroll
      for (int l = 0; l < 4; l++)
        two[l] = pack<T>((r ? part[l].z : part[l].x) * C::Mods::Scale,
                         (r ? part[l].w : part[l].y) * C::Mods::Scale);
      const int64 query = of.first + m * C::BM + row + r * 8;
      if (query < of.end && column < C::D)
        storeWord(
            reinterpret_cast<uint4 *>(out + query * p.dq_strides[2] + column),
            make_uint4(two[0], two[1], two[2], two[3]));
    }
  }
}

/// Both, with a block for each block of queries, head and batch.
TSR_DEVICE int bwd_grid_block() {
  return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}
template <class C, class P> TSR_DEVICE void attention_bwd_prepare(P const &p) {
  attention_bwd_prepare<C>(p, bwd_grid_block());
}
template <class C, class P> TSR_DEVICE void attention_bwd_finish(P const &p) {
  attention_bwd_finish<C>(p, bwd_grid_block());
}

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_BWD_SIDES_CUH
