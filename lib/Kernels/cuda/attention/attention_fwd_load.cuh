//===- attention_fwd_load.cuh - what attention's forward reads ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The producer of attention_fwd.cuh: which tiles a block has, and the copies of
// their queries, keys and values. What it tells consumers travels with those.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_FWD_LOAD_CUH
#define TESSERA_KERNELS_ATTENTION_FWD_LOAD_CUH

#include "attention/attention_fwd_steps.cuh"
#include "attention/attention_paged.cuh"
#include "attention/attention_pieces.cuh"

namespace tessera {

/// Tensors as (d, position, head, batch), 128-byte swizzle. Boxes are 64 x BM
/// (q), 64 x BN (k, v), 64 x 64 (o). A map without elements may be anything.
/// Where k and v are pages, these are (d, position in the page, head, page), of
/// 64 x kBoxRows.
struct FwdMaps {
  TensorMap q, k, v, o;
};

template <class C, class P> struct FwdProducer {
  FwdMaps const &maps;
  P const &p;
  typename C::Shared &s;
  Ring<C::Stages> k_ring, v_ring;
  Ring<C::QueryStages> q_ring;

  /// Paged: by a whole warp, from its `own` pages.
  template <int Panels, class O>
  TSR_MEMBER void load(TensorMap const &map, char (&to)[Panels][C::BN * 128],
                       uint64 *full, uint64 *empty, int phase, int block,
                       int head, FwdTile<C> const &t, O const &own) {
    barrier_wait(empty, phase ^ 1);
    if constexpr (C::Paged) {
      if (threadIdx.x % 32 == 0)
        barrier_expect(full, sizeof to);
      __syncwarp();
      KeyPages<C, P, -1>::load(to, &map, full, block, head, own, kEvictLast);
    } else {
      barrier_expect(full, sizeof to);
#pragma unroll
      for (int c = 0; c < Panels; c++)
        load_box<C>(to[c], &map, full, c * 64, block * C::BN, head, t.batch,
                    t.place, kEvictLast);
    }
  }
  template <class O = int>
  TSR_MEMBER void load_k(int block, int head, FwdTile<C> const &t,
                         O const &own = 0) {
    const int i = k_ring.stage;
    load(maps.k, s.k[i], &s.k_full[i], &s.k_empty[i], k_ring.phase, block, head,
         t, own);
    k_ring.next();
  }
  template <class O = int>
  TSR_MEMBER void load_v(int block, int head, FwdTile<C> const &t,
                         O const &own = 0) {
    const int i = v_ring.stage;
    load(maps.v, s.v[i], &s.v_full[i], &s.v_empty[i], v_ring.phase, block, head,
         t, own);
    v_ring.next();
  }

  /// Queries, and what else is to be told of their tile.
  TSR_MEMBER void load_q(FwdTile<C> const &t, typename C::Told const &told) {
    const int i = q_ring.stage;
    barrier_wait(&s.q_empty[i], q_ring.phase ^ 1);
    s.told[i] = told;
    barrier_expect(&s.q_full[i], sizeof s.q[i]);
#pragma unroll
    for (int c = 0; c < C::Panels; c++)
      load_box<C>(s.q[i][c], &maps.q, &s.q_full[i], c * 64, t.m * C::BM, t.head,
                  t.batch, t.place, kEvictFirst);
    q_ring.next();
  }
  /// There is no tile more, or never was one.
  TSR_MEMBER void tell_end() {
    const int i = q_ring.stage;
    barrier_wait(&s.q_empty[i], q_ring.phase ^ 1);
    s.told[i].tile = -1;
    barrier_arrive(&s.q_full[i]);
  }

  TSR_MEMBER int tiles() { return fwd_tiles<C>(p) * p.heads * p.batch; }
  /// A draw for the next tile is made four steps before a tile's last one, of
  /// which as many are under way as there are stages, not before: who has a
  /// long one should not have the next one, too.
  TSR_MEMBER int draw() { return atomicAdd(p.ticket, 1); }
  TSR_MEMBER int tile_of(int drawn) {
    if (drawn == tiles() - 1) // a draw a tile: the last of all
      *p.ticket = 0;
    return drawn + gridDim.x;
  }
  /// By a whole warp.
  TSR_MEMBER int draw_together() {
    int next = 0;
    if (threadIdx.x % 32 == 0)
      next = tile_of(draw());
    return __shfl_sync(~0u, next, 0);
  }

  TSR_MEMBER void run() {
    int id = blockIdx.x;
    for (;;) {
      if (id >= tiles())
        return tell_end();
      const int number = fwd_tile<C>(p, id);
      const FwdTile<C> t(p, number);
      const FwdBlocks<C> blocks(p, t, 0, C::BM);
      const int head = C::Mods::key_head(p.args, t.head, p.heads, p.key_heads);
      if (blocks.begin < blocks.end)
        load_k(blocks.end - 1, head, t);
      load_q(t, {C::Packed ? t.head : number, false, t.place, {}});
      // Four blocks before what consumers have, so that nothing waits for it.
      const int ahead =
          C::Stages == 2 ? min(blocks.begin + 2, blocks.end - 1) : blocks.begin;
      int drawn = 0;
      for (int n = blocks.end - 1; n >= blocks.begin; n--) {
        if (n == ahead)
          drawn = draw();
        if (n > blocks.begin)
          load_k(n - 1, head, t);
        load_v(n, head, t);
      }
      if (blocks.begin == blocks.end)
        drawn = draw();
      id = tile_of(drawn);
    }
  }

  /// Split or Paged: the same, by a whole warp, piece by piece.
  template <class S> TSR_MEMBER void run_shared(S const &share) {
    if constexpr (C::Split) {
      for (PipePieces pieces(share, blockIdx.x, 0); pieces.more();) {
        const FwdTile<C> t(p, pieces.tile);
        const FwdBlocks<C> blocks(p, t, 0, C::BM);
        load_piece(t, pieces.next(blocks.begin, blocks.end), blocks.seen,
                   [] {});
      }
    } else {
      for (int id = blockIdx.x; id < tiles();) {
        const int number = fwd_tile<C>(p, id);
        const FwdTile<C> t(p, number);
        const FwdBlocks<C> blocks(p, t, 0, C::BM);
        load_piece(t, {number, blocks.begin, blocks.end, 0, 0}, blocks.seen,
                   [&] { id = draw_together(); });
      }
    }
    if (threadIdx.x % 32 == 0)
      tell_end();
  }
  /// ahead: done before the last values are loaded. By a whole warp, if Paged.
  template <class F>
  TSR_MEMBER void load_piece(FwdTile<C> const &t, TilePiece const &piece,
                             KeyRange const &seen, F ahead) {
    const int lane = threadIdx.x % 32;
    const int head = C::Mods::key_head(p.args, t.head, p.heads, p.key_heads);
    auto pages = [&] {
      if constexpr (C::Paged)
        return KeyPages<C, P, -1>(p, seen, t.batch, piece.end - 1);
      else
        return 0;
    }();
    auto find = [&](int block) {
      if constexpr (C::Paged)
        return pages.find(block);
      else
        return 0;
    };
    if (!C::Paged && lane > 0)
      return;
    int n = piece.end - 1;
    auto own = find(n);
    if (n >= piece.begin)
      load_k(n, head, t, own);
    if (lane == 0)
      load_q(t, {C::Packed ? t.head : piece.tile, false, t.place, piece});
    if (n < piece.begin)
      ahead();
    for (; n >= piece.begin; n--) {
      const auto of_values = own;
      if (n > piece.begin) {
        own = find(n - 1);
        load_k(n - 1, head, t, own);
      } else {
        ahead();
      }
      load_v(n, head, t, of_values);
    }
  }

  /// Sparse: the same, by a whole warp.
  TSR_MEMBER void run_sparse() {
    const int lane = threadIdx.x % 32;
    for (int id = blockIdx.x; id < tiles();) {
      const int number = fwd_tile<C>(p, id);
      const FwdTile<C> t(p, number);
      const int head = C::Mods::key_head(p.args, t.head, p.heads, p.key_heads);
      FwdWalk<C, P> walk(p, t);
      const bool empty = !walk.more();
      FwdStep step = {};
      auto load_keys = [&] {
        step = walk.next();
        const int i = k_ring.stage;
        if (lane == 0) {
          barrier_wait(&s.k_empty[i], k_ring.phase ^ 1);
          s.step[i] = step.packed();
          load_k(step.block, head, t);
        }
      };
      if (!empty)
        load_keys();
      if (lane == 0)
        load_q(t, {number, empty, {}, {}});
      for (bool last = empty; !last;) {
        const int block = step.block;
        last = step.last;
        if (!last)
          load_keys();
        else
          id = draw_together();
        if (lane == 0)
          load_v(block, head, t);
      }
      if (empty)
        id = draw_together();
    }
    if (lane == 0)
      tell_end();
  }
};

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_FWD_LOAD_CUH
