//===- attention_few.cuh - attention of few queries -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What attention_fwd.cuh computes, where queries are too few to fill its tiles,
// of one head each: a step of a decoder. A tile is some queries of all heads
// that read one key head, at most 64 rows. Where these are all that there are,
// each key and value is read once.
//
// A block is two pipes: a warp group that computes, and a thread that has
// steps, blocks of keys, under way for it. While one group waits for its
// products and exponentials, the other has the tensor cores.
//
// Pipes share steps, attention_pieces.cuh; keys and values may be pages,
// attention_paged.cuh.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_FEW_CUH
#define TESSERA_KERNELS_ATTENTION_FEW_CUH

#include "attention/attention_paged.cuh"
#include "attention/attention_pieces.cuh"
#include "base/wgmma.cuh"

namespace tessera {

/// Type T, head dimension D, of values DV; at most Rows rows a tile, BN keys a
/// step, Stages of which a pipe has under way (attention_tiles.h), and at most
/// Blocks blocks.
template <class T_, int D_, class Mods_, int DV_, int Rows_, int BN_,
          int Stages_, int Blocks_>
struct FewConfig {
  using T = T_;
  using Mods = Mods_;
  static constexpr int D = D_, DV = DV_, Rows = Rows_, BN = BN_;
  static constexpr int Stages = Stages_, Pipes = 2;
  static constexpr int MostPipes = Blocks_ * Pipes;
  /// Of 64 columns; of what is beyond the last, copies make zeros.
  static constexpr int Panels = (D + 63) / 64, ValuePanels = (DV + 63) / 64;
  static constexpr int PageRows = Mods::PageRows;
  static constexpr bool Paged = PageRows > 0;
  static constexpr bool Causal = Mods::Causal;
  static constexpr bool HasMods = Mods::HasScore || Mods::HasMask;
  /// The score is scaled before it is used; else by Factor, in the exponent.
  static constexpr bool Scaled = Mods::HasScore || !(Mods::Scale > 0);
  static constexpr float Factor = Scaled ? Mods::OuterScale : Mods::Scale;
  static constexpr int Consumers = 128, Threads = (Pipes + 1) * Consumers;
  /// Registers of a thread.
  static constexpr int Producer = 56, Consumer = 224;
  /// A product reads 64 rows, of which those from Rows on are anything: what
  /// lies behind them. Each row has its own result.
  static constexpr int QueryBytes = (Rows + 7) / 8 * 8 * 128;
  static constexpr int PieceFloats = kPieceFloats<Rows, DV>;
  static_assert(Rows >= 1 && Rows <= 64, "at most 64 rows");
  static_assert(Mods::BlockKeys == 0, "no block mask");
  static_assert(!Mods::Packed, "batches are sequences");
  static_assert(!Mods::HasDropout, "no dropout");

  struct Piece : TilePiece {
    int whole; // its blocks from there on cross the diagonal or the end of the
               // keys
  };
  using Share = StepShare<Threads, Pipes>;
  /// Of few steps a pipe has one under way: with more, memory serves some
  /// multiprocessors long before others (8 sequences of 4096 keys, on an H200:
  /// two have 0.95 of the speed of one, three 0.87).
  TSR_DEVICE int stages(Share const &share) {
    return share.steps < 32 * share.pipes ? 1 : Stages;
  }
  struct Barriers {
    uint64 q_full[2], q_empty[2];
    uint64 k_full[Stages], k_empty[Stages], v_full[Stages], v_empty[Stages];
  };
  struct Shared {
    struct {
      alignas(1024) char q[2][Panels][QueryBytes];
    } queries[Pipes]; // before the keys: see QueryBytes
    struct {
      alignas(1024) char k[Stages][Panels][BN * 128];
      alignas(1024) char v[Stages][ValuePanels][BN * 128];
    } keys[Pipes];
    Barriers barriers[Pipes];
    Piece piece[Pipes][2]; // travels with q_full
    int arrived[Pipes];
    typename Share::Starts starts;
  };
};

/// Tensors as (d, position, head, batch), 128-byte swizzle. Boxes are 64 x
/// tile_queries x heads of a group (q), 64 x kBoxRows, or BN (k, v). Where k
/// and v are pages, these are (d, position in the page, head, page).
struct FewMaps {
  TensorMap q, k, v;
};

/// Strides are those of batch, head and query, in elements; a row of o is
/// contiguous and 16-byte aligned.
template <class Args> struct FewParams {
  void *o;
  float *lse; // or null
  int64 o_strides[3], lse_strides[3];
  float *pieces; // [MostPipes, 2, PieceFloats], 16-byte aligned
  int *arrived;  // [2, MostPipes, 2]: zero, and left zero
  int batch, heads, key_heads, queries, keys; // of this device
  int tile_queries;                           // of each head of a group
  int causal_shift;                           // keys less queries, globally
  Args args;
};

/// Of a key head.
template <class P> TSR_DEVICE int few_tiles(P const &p) {
  return (p.queries + p.tile_queries - 1) / p.tile_queries;
}
/// A tile, by its number: those that read the same keys follow each other.
struct FewTile {
  int query, head, batch; // the first query; the key head

  FewTile() = default;
  template <class P> TSR_MEMBER FewTile(P const &p, int number) {
    const int tiles = few_tiles(p);
    query = number % tiles * p.tile_queries;
    head = number / tiles % p.key_heads, batch = number / tiles / p.key_heads;
  }
};

/// The blocks of keys that a tile's queries see.
template <class C> struct FewBlocks : KeyBlocks {
  template <class P> TSR_MEMBER FewBlocks(P const &p, FewTile const &tile) {
    using Mods = typename C::Mods;
    const int group = p.heads / p.key_heads, head = tile.head * group;
    const int64 batch = Mods::batch(p.args, tile.batch);
    const int64 first = Mods::query(p.args, tile.query);
    const int64 last =
        Mods::query(p.args, min(tile.query + p.tile_queries, p.queries) - 1);
    KeyRange seen = {p.keys, 0};
    for (int h = head; h < head + (Mods::KeysByHead ? group : 1); h++) {
      const KeyRange own =
          Mods::keys(p.args, batch, Mods::head(p.args, h), first, last, p.keys);
      seen = {min(seen.begin, own.begin), max(seen.end, own.end)};
    }
    *static_cast<KeyBlocks *>(this) = key_blocks<C>(p, seen, first, last);
  }
  /// One without keys has a step, too: its results are written in it.
  TSR_MEMBER int steps() const { return max(end - begin, 1); }
};

/// By a thread, or by a warp where there are pages.
template <class C, class P> struct FewProducer {
  FewMaps const &maps;
  P const &p;
  typename C::Shared &s;
  typename C::Share const &share;
  const int pipe; // of the block
  typename C::Barriers &barriers = s.barriers[pipe];
  const int lane = C::Paged ? threadIdx.x % 32 : 0;
  const int stages = C::stages(share);
  Ring<2> q_ring;
  Ring<C::Stages> ring;

  /// `own`: the pages that there may be.
  template <int Panels, class O>
  TSR_MEMBER void load(TensorMap const &map, char (&to)[Panels][C::BN * 128],
                       uint64 *full, uint64 *empty, int block,
                       FewTile const &tile, O const &own) {
    barrier_wait(empty, ring.phase ^ 1);
    if (lane == 0)
      barrier_expect(full, sizeof to);
    if constexpr (C::Paged) {
      __syncwarp();
      KeyPages<C, P, 1>::load(to, &map, full, block, tile.head, own,
                              kEvictFirst);
    } else {
#pragma unroll
      for (int c = 0; c < Panels; c++)
        tma_load(to[c], &map, full, c * 64, block * C::BN, tile.head,
                 tile.batch, kEvictFirst);
    }
  }
  TSR_MEMBER void tell(typename C::Piece const &piece) {
    barrier_wait(&barriers.q_empty[q_ring.stage], q_ring.phase ^ 1);
    s.piece[pipe][q_ring.stage] = piece;
  }

  TSR_MEMBER void run() {
    const int group = p.heads / p.key_heads;
    PipePieces pieces(share, blockIdx.x * C::Pipes + pipe, pipe);
    while (pieces.more()) {
      const FewTile tile(p, pieces.tile);
      const FewBlocks<C> blocks(p, tile);
      const TilePiece piece = pieces.next(blocks.begin, blocks.end);
      auto pages = [&] {
        if constexpr (C::Paged)
          return KeyPages<C, P, 1>(p, blocks.seen, tile.batch, piece.begin);
        else
          return 0;
      }();
      if (lane == 0) {
        tell({piece, blocks.whole});
        uint64 *const full = &barriers.q_full[q_ring.stage];
        barrier_expect(full, C::Panels * group * p.tile_queries * 128);
#pragma unroll
        for (int c = 0; c < C::Panels; c++)
          tma_load(s.queries[pipe].q[q_ring.stage][c], &maps.q, full, c * 64,
                   tile.query, tile.head * group, tile.batch, kEvictFirst);
        q_ring.next();
      }
      for (int n = piece.begin; n < piece.end; n++, ring.next(stages)) {
        const int i = ring.stage;
        const auto own = [&] {
          if constexpr (C::Paged)
            return pages.find(n);
          else
            return 0;
        }();
        load(maps.k, s.keys[pipe].k[i], &barriers.k_full[i],
             &barriers.k_empty[i], n, tile, own);
        load(maps.v, s.keys[pipe].v[i], &barriers.v_full[i],
             &barriers.v_empty[i], n, tile, own);
      }
    }
    if (lane == 0) {
      tell({{-1}});
      barrier_arrive(&barriers.q_full[q_ring.stage]);
    }
  }
};

template <class C, class P> struct FewConsumer {
  using Mods = typename C::Mods;
  using T = typename C::T;
  P const &p;
  typename C::Shared &s;
  const int pipe; // of the block
  const int stages;
  typename C::Barriers &barriers = s.barriers[pipe];
  const int thread = threadIdx.x % C::Consumers, lane = threadIdx.x % 32;
  const int group = p.heads / p.key_heads, used = group * p.tile_queries;
  Ring<2> q_ring;
  Ring<C::Stages> ring;
  typename C::Piece piece;
  FewTile tile;
  // This thread's rows are `row` and row + 8; of one that is not there, the
  // last one's place is taken, and of a query that is not there.
  const int row = thread / 32 * 16 + lane / 4;
  int64 of_batch, of_head[2], query[2]; // global, as the functors get them
  typename Mods::Row rows[2];           // of the functors
  KeyRange seen;                        // where there are pages
  float o[C::DV / 2], x[C::BN / 2], top[2], sum[2], shrink[2];
  Fragment16 probs[C::BN / 16];

  TSR_MEMBER FewConsumer(P const &p, typename C::Shared &s, int pipe,
                         int stages)
      : p(p), s(s), pipe(pipe), stages(stages) {}

  TSR_DEVICE float infinity() { return __int_as_float(0x7f800000); }
  TSR_MEMBER void release(uint64 *b) {
    if (lane == 0)
      barrier_arrive(b);
  }
  /// Which of this device's heads a row is of, and which of its queries.
  TSR_MEMBER int head_of(int row) {
    return tile.head * group + row / p.tile_queries;
  }
  TSR_MEMBER int query_of(int row) { return tile.query + row % p.tile_queries; }
  TSR_MEMBER bool has(int row) {
    return row < used && query_of(row) < p.queries;
  }

  TSR_MEMBER void scores() {
    barrier_wait(&barriers.k_full[ring.stage], ring.phase);
    const uint64 a = operand(s.queries[pipe].q[q_ring.stage][0]);
    const uint64 b = operand(s.keys[pipe].k[ring.stage][0]);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < C::D / 16; i++)
      Wgmma<T, C::BN>::ss(x, a + i / 4 * (C::QueryBytes >> 4) + i % 4 * kStepK,
                          b + i / 4 * (C::BN * 128 >> 4) + i % 4 * kStepK,
                          i > 0);
    wgmma_commit();
    wgmma_wait<0>();
    release(&barriers.k_empty[ring.stage]);
  }
  TSR_MEMBER void sync() { named_sync(1 + pipe, C::Consumers); }
  TSR_MEMBER void values(int block) {
#pragma unroll
    for (int i = 0; i < C::BN / 16; i++)
      convert<T>(probs[i], x + 8 * i);
    barrier_wait(&barriers.v_full[ring.stage], ring.phase);
    if constexpr (C::Paged)
      clear_unseen<C::BN>(s.keys[pipe].v[ring.stage], seen, block,
                          [&] { sync(); });
    const uint64 b = operand(s.keys[pipe].v[ring.stage][0], C::BN * 128);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < C::BN / 16; i++)
      Wgmma<T, C::DV>::rs(o, probs[i], b + i * kStepMN, true);
    wgmma_commit();
    wgmma_wait<0>();
    release(&barriers.v_empty[ring.stage]);
  }

  /// x: scaled and modified scores of a block of keys, as in attention_fwd.cuh.
  TSR_MEMBER void modify(int block) {
    const int first = block * C::BN + lane % 4 * 2;
    if (C::Scaled || C::HasMods) {
      const KeyPositions<Mods> own_keys = {first, p.keys};
#pragma unroll
      for (int i = 0; i < C::BN / 2; i++) {
        const int r = i / 2 % 2;
        const int64 key = own_keys[fragment_column(i)];
        const typename Mods::Column column =
            Mods::column(p.args, of_batch, key);
        const AttentionPair<Mods> at = {rows[r],    column,   of_batch,
                                        of_head[r], query[r], key};
        float score =
            C::Scaled ? x[i] * (Mods::Scale * Mods::InnerScale) : x[i];
        if constexpr (Mods::HasScore)
          score = Mods::score(p.args, score, at);
        if constexpr (Mods::HasMask)
          score = Mods::mask(p.args, at) ? score : -infinity();
        asm("" : "+f"(score)); // one after the other, for want of registers
        x[i] = score;
      }
    }
    if (block >= piece.whole) {
#pragma unroll
      for (int i = 0; i < C::BN / 2; i++) {
        int visible = p.keys;
        if (C::Causal)
          visible = min(visible, last_seen<C>(p, query[i / 2 % 2]) + 1);
        if (fragment_column(i) >= visible - first)
          x[i] = -infinity();
      }
    }
  }
  /// x: scores to unnormalised probabilities; o by the new maximum.
  TSR_MEMBER void softmax() {
    const float c = C::Factor * 1.44269504f;
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float m = top[r];
#pragma unroll
      for (int i = 0; i < C::BN / 2; i++)
        if (i / 2 % 2 == r)
          m = fmaxf(m, x[i]);
      m = quad_max(m);
      const float mc = m == -infinity() ? 0 : m * c; // exp2 of -inf, and no NaN
      shrink[r] = exp2_fast(top[r] * c - mc);
      top[r] = m;
      float total = 0;
#pragma unroll
      for (int i = 0; i < C::BN / 2; i++)
        if (i / 2 % 2 == r) {
          x[i] = exp2_fast(x[i] * c - mc);
          total += x[i];
        }
      sum[r] = sum[r] * shrink[r] + total;
    }
#pragma unroll
    for (int i = 0; i < C::DV / 2; i++)
      o[i] *= shrink[i / 2 % 2];
  }

  TSR_MEMBER T *result(int row) {
    return static_cast<T *>(p.o) + tile.batch * p.o_strides[0] +
           head_of(row) * p.o_strides[1] + query_of(row) * p.o_strides[2];
  }
  TSR_MEMBER float *lse(int row) {
    return p.lse + tile.batch * p.lse_strides[0] +
           head_of(row) * p.lse_strides[1] + query_of(row) * p.lse_strides[2];
  }

  TSR_MEMBER void store_whole() {
    const float c = C::Factor * 1.44269504f;
#pragma unroll
    for (int r = 0; r < 2; r++) {
      shrink[r] = sum[r] == 0 ? 0 : 1 / sum[r];
      if (p.lse && lane % 4 == 0 && has(row + 8 * r))
        *lse(row + 8 * r) =
            sum[r] == 0 ? -infinity()
                        : (top[r] * c + log2_fast(sum[r])) * 0.69314718f;
    }
    store_rows<T, C::DV>(
        threadIdx.x, [&](int row) { return result(row); },
        [&](int row, int) { return has(row); },
        [&](int i) { return o[i] * shrink[i / 2 % 2]; });
  }

  TSR_MEMBER void leave_piece() {
    const float c = C::Factor * 1.44269504f, most[] = {top[0] * c, top[1] * c};
    const int own = blockIdx.x * C::Pipes + pipe;
    const TilePieces all = {p.pieces, p.arrived, 2 * C::MostPipes, 1, 0};
    const TileRows rows = {
        result(0),      p.lse ? lse(0) : nullptr, p.o_strides[1],
        p.o_strides[2], p.lse_strides[1],         p.lse_strides[2],
        used,           p.tile_queries,           p.queries - tile.query};
    store_piece<C::Rows, C::DV>(
        p.pieces + (int64)all.slot(piece, own) * C::PieceFloats, o, most, sum,
        [&](int row) { return has(row); });
    join_tile<T, C::Rows, C::DV>(piece, own, all, rows, s.arrived[pipe],
                                 1 + pipe);
  }

  TSR_MEMBER void run_piece() {
    tile = FewTile(p, piece.tile);
    of_batch = Mods::batch(p.args, tile.batch);
    if constexpr (C::Paged)
      seen = FewBlocks<C>(p, tile).seen;
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int own = min(row + 8 * r, used - 1);
      of_head[r] = Mods::head(p.args, head_of(own));
      query[r] = Mods::query(p.args, min(query_of(own), p.queries - 1));
      rows[r] = Mods::row(p.args, of_batch, of_head[r], query[r]);
      top[r] = -infinity(), sum[r] = 0;
    }
#pragma unroll
    for (int i = 0; i < C::DV / 2; i++)
      o[i] = 0;
    for (int n = piece.begin; n < piece.end; n++, ring.next(stages)) {
      scores();
      if (n == piece.end - 1)
        release(&barriers.q_empty[q_ring.stage]);
      modify(n);
      softmax();
      values(n);
    }
    if (piece.begin >= piece.end)
      release(&barriers.q_empty[q_ring.stage]);
#pragma unroll
    for (int r = 0; r < 2; r++)
      sum[r] = quad_sum(sum[r]);
    if (piece.is_whole())
      store_whole();
    else
      leave_piece();
  }

  TSR_MEMBER void run() {
    for (;; q_ring.next()) {
      barrier_wait(&barriers.q_full[q_ring.stage], q_ring.phase);
      // By the lane that releases what it was told of.
      if (lane == 0)
        piece = s.piece[pipe][q_ring.stage];
      for (int *word : {&piece.tile, &piece.begin, &piece.end, &piece.whole,
                        &piece.first, &piece.last})
        *word = __shfl_sync(~0u, *word, 0);
      if (piece.tile < 0)
        return;
      run_piece();
    }
  }
};

/// The whole kernel, of C::Threads threads (__launch_bounds__(C::Threads, 1))
/// and sizeof(C::Shared) bytes of dynamic shared memory, for any number of
/// blocks. `maps` lies in the kernel's parameters.
template <class C, class P>
TSR_DEVICE void attention_few(FewMaps const &maps, P const &p) {
  extern __shared__ __align__(1024) char raw[];
  auto &s = *reinterpret_cast<typename C::Shared *>(raw);
  if (threadIdx.x < C::Pipes) {
    typename C::Barriers &b = s.barriers[threadIdx.x];
    for (int i = 0; i < 2; i++)
      barrier_init(&b.q_full[i], 1), barrier_init(&b.q_empty[i], 4);
    for (int i = 0; i < C::Stages; i++) {
      barrier_init(&b.k_full[i], 1), barrier_init(&b.v_full[i], 1);
      barrier_init(&b.k_empty[i], 4), barrier_init(&b.v_empty[i], 4);
    }
    fence_barrier_init();
  }
  const typename C::Share share( // waits for all threads
      s.starts, p.batch * p.key_heads * few_tiles(p), C::MostPipes, C::Rows,
      [&](int tile) { return FewBlocks<C>(p, FewTile(p, tile)).steps(); });
  // Told by one lane, a warp's group is the same for all.
  const int group = __shfl_sync(~0u, (int)threadIdx.x / C::Consumers, 0);
  if (group == C::Pipes) {
    registers_lower<C::Producer>();
    const int pipe = threadIdx.x / 32 % 4;
    if (pipe < C::Pipes && (C::Paged || threadIdx.x % 32 == 0))
      FewProducer<C, P>{maps, p, s, share, pipe}.run();
  } else {
    registers_raise<C::Consumer>();
    FewConsumer<C, P>(p, s, group, C::stages(share)).run();
  }
}

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_FEW_CUH
