//===- attention_few.cuh - attention of few queries -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What attention_fwd.cuh computes, where all queries of all heads that read one
// key head are at most 64: the step of a decoder. Then keys and values are all
// there is to read, and each is read once: the queries of a group of heads are
// the rows of one tile.
//
// A block is two pipes: a warp group that computes, and a thread that has
// steps, blocks of keys, under way for it. While one group waits for its
// products and exponentials, the other has the tensor cores.
//
// There may be fewer tiles than multiprocessors, and sequences of any lengths,
// so pipes do not share tiles but steps: of all that there are, in the order of
// tiles, each takes an equal part. A tile that lies in several parts is joined
// by the pipe that is the last to have its piece (maxima, sums and unnormalised
// results in f32), in the order of the pieces: the bits do not depend on who
// that is. As each block knows how many steps every tile has, nothing is
// prepared for a launch.
//
// Keys and values may be pages: a block of keys is copied in boxes of rows,
// each from one page, of as few as one row: their swizzle is that of addresses.
// A page without a key that some query sees is never read, and of one that has
// both, values of the other rows are cleared: what lies there may be anything,
// NaN too. Zeros come from a page that the table has wrong, as it lies outside
// of the tensor.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_FEW_CUH
#define TESSERA_KERNELS_ATTENTION_FEW_CUH

#include "attention/attention_mods.cuh"
#include "base/wgmma.cuh"

namespace tessera {

TSR_DEVICE constexpr int common_divisor(int a, int b) {
  return b ? common_divisor(b, a % b) : a;
}

/// Type T, head dimension D, of values DV; at most Rows queries and heads of a
/// group, BN keys a step, Stages of which a pipe has under way
/// (attention_tiles.h), and at most Blocks blocks.
template <class T_, int D_, class Mods_, int DV_, int Rows_, int BN_,
          int Stages_, int Blocks_>
struct FewConfig {
  using T = T_;
  using Mods = Mods_;
  static constexpr int D = D_, DV = DV_, Rows = Rows_, BN = BN_;
  static constexpr int Stages = Stages_, Pipes = 2;
  static constexpr int MostPipes = Blocks_ * Pipes;
  /// A pipe has at least so many steps, where there are.
  static constexpr int LeastSteps = 4;
  /// Of 64 columns; of what is beyond the last, copies make zeros.
  static constexpr int Panels = (D + 63) / 64, ValuePanels = (DV + 63) / 64;
  static constexpr int PageRows = Mods::PageRows;
  static constexpr bool Paged = PageRows > 0;
  /// The boxes of a block of keys.
  static constexpr int BoxRows = common_divisor(BN, PageRows);
  static constexpr int Boxes = BN / BoxRows;
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
  /// Of a piece: results, then a row's maximum, in powers of 2, and its sum. A
  /// multiple of 16 bytes.
  static constexpr int PieceFloats = (Rows * (DV + 2) + 3) / 4 * 4;
  static_assert(Rows >= 1 && Rows <= 64, "at most 64 rows");
  static_assert(Mods::BlockKeys == 0, "no block mask");
  static_assert(!Mods::Packed, "batches are sequences");
  static_assert(!Mods::HasDropout, "no dropout");

  struct Piece {
    int tile;        // negative: no more
    int begin, end;  // its blocks of keys, of which those from
    int whole;       // on cross the diagonal or the end of the keys
    int first, last; // the pipes that have the tile's first and last piece
  };
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
    Piece piece[Pipes][2];          // travels with q_full
    int tile[Pipes], offset[Pipes]; // of the first step
    int arrived[Pipes];
    int warps[Threads / 32]; // sums of steps
  };
};

/// Tensors as (d, position, head, batch), 128-byte swizzle. Boxes are 64 x
/// queries x heads of a group (q), 64 x BoxRows (k, v). Where k and v are
/// pages, these are (d, position in the page, head, page).
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
  int *arrived;  // [MostPipes]: zero, and left zero
  int batch, heads, key_heads, queries, keys; // of this device
  int causal_shift;                           // keys less queries, globally
  Args args;
};

/// The blocks of keys that a tile's queries see.
template <class C> struct FewBlocks : KeyBlocks {
  template <class P> TSR_MEMBER FewBlocks(P const &p, int tile) {
    using Mods = typename C::Mods;
    const int group = p.heads / p.key_heads;
    const int head = tile % p.key_heads * group;
    const int64 batch = Mods::batch(p.args, tile / p.key_heads);
    const int64 first = Mods::query(p.args, 0);
    const int64 last = Mods::query(p.args, p.queries - 1);
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

/// How the steps of all tiles are shared. By all threads of a block.
template <class C> struct FewShare {
  int steps = 0, pipes; // of all tiles; that have some

  TSR_MEMBER int start(int pipe) const {
    return pipe < pipes ? (int)((int64)steps * pipe / pipes) : steps;
  }
  /// The pipe that has a step.
  TSR_MEMBER int owner(int step) const {
    return (int)((((int64)step + 1) * pipes - 1) / steps);
  }

  /// Leaves where each of the block's pipes starts.
  template <class P> TSR_MEMBER FewShare(P const &p, typename C::Shared &s) {
    const int tiles = p.batch * p.key_heads;
    const int each = (tiles + C::Threads - 1) / C::Threads;
    const int first = min((int)threadIdx.x * each, tiles);
    const int last = min(first + each, tiles);
    int own = 0;
    for (int tile = first; tile < last; tile++)
      own += FewBlocks<C>(p, tile).steps();
    // Of this and all threads before.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int before = own;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_up_sync(~0u, before, distance);
      before += lane >= distance ? other : 0;
    }
    if (lane == 31)
      s.warps[warp] = before;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < C::Threads / 32; w++) {
      before += w < warp ? s.warps[w] : 0;
      steps += s.warps[w];
    }
    before -= own;
    pipes = min(min((int)gridDim.x * C::Pipes, C::MostPipes),
                max(steps / C::LeastSteps, 1));
    for (int pipe = 0; pipe < C::Pipes; pipe++) {
      int offset = start(blockIdx.x * C::Pipes + pipe) - before, tile = first;
      if (offset < 0 || offset >= own)
        continue;
      for (;; tile++) {
        const int of_tile = FewBlocks<C>(p, tile).steps();
        if (offset < of_tile)
          break;
        offset -= of_tile;
      }
      s.tile[pipe] = tile, s.offset[pipe] = offset;
    }
    __syncthreads();
  }
};

/// Which pages a warp copies the boxes of a tile's blocks from, a lane a box.
/// It asks for them long before it copies.
template <class C, class P, bool Paged = C::Paged> struct FewPages {
  /// Boxes of a lane, and how many blocks those of a warp are.
  static constexpr int Each = (C::Boxes + 31) / 32;
  static constexpr int Blocks = Each * 32 / C::Boxes;
  P const &p;
  const KeyRange seen;
  const int batch, begin, lane = threadIdx.x % 32;
  int now[Each], next[Each], own[Each];

  TSR_MEMBER FewPages(P const &p, KeyRange const &seen, int batch, int begin)
      : p(p), seen(seen), batch(batch), begin(begin) {
    ask(begin);
  }
  TSR_MEMBER void ask(int block) {
#pragma unroll
    for (int i = 0; i < Each; i++) {
      const int key = block * C::BN + (i * 32 + lane) * C::BoxRows;
      next[i] = -1; // outside of the tensor
      if (key < seen.end && key + C::BoxRows > seen.begin)
        next[i] = C::Mods::page(p.args, batch, key / C::PageRows);
    }
  }
  /// Sets `own`, the pages of the lane's boxes, for a block: from `begin` on,
  /// one after the other.
  TSR_MEMBER void find(int block) {
    const int at = (block - begin) % Blocks;
    if (at == 0) {
#pragma unroll
      for (int i = 0; i < Each; i++)
        now[i] = next[i];
      ask(block + Blocks);
    }
#pragma unroll
    for (int i = 0; i < Each; i++)
      own[i] =
          Blocks > 1 ? __shfl_sync(~0u, now[i], at * C::Boxes + lane) : now[i];
  }
};
/// There are none.
template <class C, class P> struct FewPages<C, P, false> {
  const int batch;
  TSR_MEMBER FewPages(P const &, KeyRange const &, int batch, int)
      : batch(batch) {}
  TSR_MEMBER void find(int) {}
};

/// By a thread, or by a warp where there are pages.
template <class C, class P> struct FewProducer {
  FewMaps const &maps;
  P const &p;
  typename C::Shared &s;
  FewShare<C> const &share;
  const int pipe; // of the block
  typename C::Barriers &barriers = s.barriers[pipe];
  const int lane = C::Paged ? threadIdx.x % 32 : 0;
  Ring<2> q_ring;
  Ring<C::Stages> ring;

  template <int Panels>
  TSR_MEMBER void load(TensorMap const &map, char (&to)[Panels][C::BN * 128],
                       uint64 *full, uint64 *empty, int block, int head,
                       FewPages<C, P> const &pages) {
    barrier_wait(empty, ring.phase ^ 1);
    if (lane == 0)
      barrier_expect(full, sizeof to);
    if constexpr (C::Paged) {
      __syncwarp();
#pragma unroll
      for (int i = 0; i < pages.Each; i++)
        if (const int row = (i * 32 + lane) * C::BoxRows; row < C::BN)
#pragma unroll
          for (int c = 0; c < Panels; c++)
            tma_load(to[c] + row * 128, &map, full, c * 64,
                     (block * C::BN + row) % C::PageRows, head, pages.own[i],
                     kEvictFirst);
    } else {
#pragma unroll
      for (int c = 0; c < Panels; c++)
        tma_load(to[c], &map, full, c * 64, block * C::BN, head, pages.batch,
                 kEvictFirst);
    }
  }
  TSR_MEMBER void tell(typename C::Piece const &piece) {
    barrier_wait(&barriers.q_empty[q_ring.stage], q_ring.phase ^ 1);
    s.piece[pipe][q_ring.stage] = piece;
  }

  TSR_MEMBER void run() {
    const int group = p.heads / p.key_heads;
    const int number = blockIdx.x * C::Pipes + pipe;
    const int last = share.start(number + 1);
    int tile = s.tile[pipe], offset = s.offset[pipe];
    for (int step = share.start(number); step < last; tile++, offset = 0) {
      const FewBlocks<C> blocks(p, tile);
      const int head = tile % p.key_heads, batch = tile / p.key_heads;
      const int begin = blocks.begin + offset;
      const int taken = min(blocks.steps() - offset, last - step);
      const int end = min(begin + taken, blocks.end);
      const int first = step - offset;
      FewPages<C, P> pages(p, blocks.seen, batch, begin);
      if (lane == 0) {
        tell({tile, begin, end, blocks.whole, share.owner(first),
              share.owner(first + blocks.steps() - 1)});
        uint64 *const full = &barriers.q_full[q_ring.stage];
        barrier_expect(full, C::Panels * group * p.queries * 128);
#pragma unroll
        for (int c = 0; c < C::Panels; c++)
          tma_load(s.queries[pipe].q[q_ring.stage][c], &maps.q, full, c * 64, 0,
                   head * group, batch, kEvictFirst);
        q_ring.next();
      }
      for (int n = begin; n < end; n++, ring.next()) {
        const int i = ring.stage;
        pages.find(n);
        load(maps.k, s.keys[pipe].k[i], &barriers.k_full[i],
             &barriers.k_empty[i], n, head, pages);
        load(maps.v, s.keys[pipe].v[i], &barriers.v_full[i],
             &barriers.v_empty[i], n, head, pages);
      }
      step += taken;
    }
    if (lane == 0) {
      tell({-1});
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
  typename C::Barriers &barriers = s.barriers[pipe];
  const int thread = threadIdx.x % C::Consumers, lane = threadIdx.x % 32;
  const int group = p.heads / p.key_heads, used = group * p.queries;
  Ring<2> q_ring;
  Ring<C::Stages> ring;
  typename C::Piece piece;
  // This thread's rows are `row` and row + 8; of one that is not there, the
  // last one's place is taken.
  const int row = thread / 32 * 16 + lane / 4;
  int batch;                            // of this device
  int64 of_batch, of_head[2], query[2]; // global, as the functors get them
  typename Mods::Row rows[2];           // of the functors
  KeyRange seen;                        // where there are pages
  float o[C::DV / 2], x[C::BN / 2], top[2], sum[2], shrink[2];
  Fragment16 probs[C::BN / 16];

  TSR_MEMBER FewConsumer(P const &p, typename C::Shared &s, int pipe)
      : p(p), s(s), pipe(pipe) {}

  TSR_DEVICE float infinity() { return __int_as_float(0x7f800000); }
  TSR_MEMBER void release(uint64 *b) {
    if (lane == 0)
      barrier_arrive(b);
  }
  /// Which of this device's heads a row is of, and which of its queries.
  TSR_MEMBER int head_of(int row) {
    return piece.tile % p.key_heads * group + row / p.queries;
  }
  TSR_MEMBER int query_of(int row) { return row % p.queries; }

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
  /// Values in rows that no query sees: a probability of 0 leaves NaN.
  TSR_MEMBER void clear(int block) {
    const int begin = seen.begin - block * C::BN;
    const int end = seen.end - block * C::BN;
    if (begin <= 0 && end >= C::BN)
      return;
    auto *const words =
        reinterpret_cast<uint4 *>(s.keys[pipe].v[ring.stage][0]);
    for (int i = thread; i < C::ValuePanels * C::BN * 8; i += C::Consumers)
      if (const int row = i / 8 % C::BN; row < begin || row >= end)
        words[i] = make_uint4(0, 0, 0, 0);
    fence_async();
    named_sync(1 + pipe, C::Consumers);
  }
  TSR_MEMBER void values(int block) {
#pragma unroll
    for (int i = 0; i < C::BN / 16; i++)
      convert<T>(probs[i], x + 8 * i);
    barrier_wait(&barriers.v_full[ring.stage], ring.phase);
    if constexpr (C::Paged)
      clear(block);
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
#pragma unroll
      for (int i = 0; i < C::BN / 2; i++) {
        const int r = i / 2 % 2;
        const int key = min(first + fragment_column(i), p.keys - 1);
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
          visible = min(visible, (int)query[i / 2 % 2] + p.causal_shift + 1);
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
    return static_cast<T *>(p.o) + batch * p.o_strides[0] +
           head_of(row) * p.o_strides[1] + query_of(row) * p.o_strides[2];
  }
  /// Of a maximum in powers of 2, and a sum.
  TSR_MEMBER void store_lse(int row, float top, float sum) {
    if (p.lse)
      p.lse[batch * p.lse_strides[0] + head_of(row) * p.lse_strides[1] +
            query_of(row) * p.lse_strides[2]] =
          sum == 0 ? -infinity() : (top + log2_fast(sum)) * 0.69314718f;
  }

  TSR_MEMBER void store_whole() {
    const float c = C::Factor * 1.44269504f;
#pragma unroll
    for (int r = 0; r < 2; r++) {
      shrink[r] = sum[r] == 0 ? 0 : 1 / sum[r];
      if (lane % 4 == 0 && row + 8 * r < used)
        store_lse(row + 8 * r, top[r] * c, sum[r]);
    }
    store_rows<T, C::DV>([&](int row) { return result(row); }, used,
                         [&](int i) { return o[i] * shrink[i / 2 % 2]; });
  }

  /// A pipe's first piece may be a tile's last, and its last one a tile's
  /// first.
  TSR_MEMBER float *piece_of(int pipe) {
    return p.pieces +
           (2 * (int64)pipe + (pipe == piece.first)) * C::PieceFloats;
  }
  TSR_MEMBER void store_piece() {
    const float c = C::Factor * 1.44269504f;
    float *const to = piece_of(blockIdx.x * C::Pipes + pipe);
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int own = row + 8 * r;
      if (own >= used)
        continue;
#pragma unroll
      for (int i = 0; i < C::DV / 2; i += 2)
        if (i / 2 % 2 == r)
          *reinterpret_cast<float2 *>(to + own * C::DV + fragment_column(i) +
                                      lane % 4 * 2) =
              make_float2(o[i], o[i + 1]);
      if (lane % 4 == 0) {
        float *const end = to + C::Rows * C::DV + own * 2;
        end[0] = top[r] * c, end[1] = sum[r];
      }
    }
  }
  /// All pieces of the tile, of which each has the same rows: a warp a row, of
  /// which a lane has four columns, or twice four.
  TSR_MEMBER void join() {
    constexpr int Parts = (C::DV + 127) / 128;
    const int count = piece.last - piece.first + 1;
    auto end_of = [&](int n, int row) { // a maximum and a sum
      return *reinterpret_cast<float2 const *>(piece_of(piece.first + n) +
                                               C::Rows * C::DV + row * 2);
    };
    for (int own = thread / 32; own < used; own += C::Consumers / 32) {
      float m = -infinity();
      for (int n = lane; n < count; n += 32)
        m = fmaxf(m, end_of(n, own).x);
      for (int w = 16; w; w /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, w));
      float total = 0, to[Parts][4] = {};
      for (int first = 0; first < count; first += 32) {
        float factor = 0; // of the lane's piece
        if (first + lane < count && m != -infinity()) {
          const float2 end = end_of(first + lane, own);
          factor = exp2_fast(end.x - m);
          total += factor * end.y;
        }
        const int more = min(32, count - first);
#pragma unroll 8
        for (int n = 0; n < more; n++) {
          const float f = __shfl_sync(~0u, factor, n);
          float const *const from =
              piece_of(piece.first + first + n) + own * C::DV;
#pragma unroll
          for (int part = 0; part < Parts; part++)
            if (int column = part * 128 + lane * 4; column < C::DV) {
              const float4 add =
                  *reinterpret_cast<float4 const *>(from + column);
              to[part][0] += f * add.x, to[part][1] += f * add.y;
              to[part][2] += f * add.z, to[part][3] += f * add.w;
            }
        }
      }
      for (int w = 16; w; w /= 2)
        total += __shfl_xor_sync(~0u, total, w);
      const float f = total == 0 ? 0 : 1 / total;
#pragma unroll
      for (int part = 0; part < Parts; part++)
        if (int column = part * 128 + lane * 4; column < C::DV)
          *reinterpret_cast<uint2 *>(result(own) + column) =
              make_uint2(pack<T>(to[part][0] * f, to[part][1] * f),
                         pack<T>(to[part][2] * f, to[part][3] * f));
      if (lane == 0)
        store_lse(own, m, total);
    }
  }

  TSR_MEMBER void run_piece() {
    batch = piece.tile / p.key_heads;
    of_batch = Mods::batch(p.args, batch);
    if constexpr (C::Paged)
      seen = FewBlocks<C>(p, piece.tile).seen;
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int own = min(row + 8 * r, used - 1);
      of_head[r] = Mods::head(p.args, head_of(own));
      query[r] = Mods::query(p.args, query_of(own));
      rows[r] = Mods::row(p.args, of_batch, of_head[r], query[r]);
      top[r] = -infinity(), sum[r] = 0;
    }
#pragma unroll
    for (int i = 0; i < C::DV / 2; i++)
      o[i] = 0;
    for (int n = piece.begin; n < piece.end; n++, ring.next()) {
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
    if (piece.first == piece.last)
      return store_whole();
    store_piece();
    fence_release();
    named_sync(1 + pipe, C::Consumers);
    if (thread == 0) {
      s.arrived[pipe] = atomicAdd(&p.arrived[piece.first], 1);
      fence_acquire();
    }
    named_sync(1 + pipe, C::Consumers);
    if (s.arrived[pipe] != piece.last - piece.first)
      return;
    if (thread == 0)
      p.arrived[piece.first] = 0;
    join();
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
  const FewShare<C> share(p, s); // waits for all threads
  // Told by one lane, a warp's group is the same for all.
  const int group = __shfl_sync(~0u, (int)threadIdx.x / C::Consumers, 0);
  if (group == C::Pipes) {
    registers_lower<C::Producer>();
    const int pipe = threadIdx.x / 32 % 4;
    if (pipe < C::Pipes && (C::Paged || threadIdx.x % 32 == 0))
      FewProducer<C, P>{maps, p, s, share, pipe}.run();
  } else {
    registers_raise<C::Consumer>();
    FewConsumer<C, P>(p, s, group).run();
  }
}

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_FEW_CUH
