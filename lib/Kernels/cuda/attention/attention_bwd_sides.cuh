//===- attention_bwd_sides.cuh - attention, backward: before and after ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels before and after the main one of attention_bwd.cuh, and those of
// what heads share.
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

/// Of C::SideThreads threads, for one of the blocks of queries of all heads and
/// batches. Rows that see no key, and those beyond the end, get an infinite
/// lse: their probabilities are 0.
template <class C, class P>
TSR_DEVICE void attention_bwd_prepare(P const &p, int at) {
  using T = typename C::T;
  start_next();
  constexpr int Lanes = C::ValuePanels == 3 ? 32 : C::ValuePanels * 8;
  constexpr int Step = C::SideThreads / Lanes;
  const BwdSide<C> of(p, at);
  if (!of.exists)
    return;
  const int m = of.m, head = of.head, batch = of.batch;
  const int lane = threadIdx.x % Lanes;
  const BwdWorkspace<C> work(p);
  const float infinity = __int_as_float(0x7f800000);
  bwd_clear_sums<C>(p, batch, head, m, of.blocks(p));
  bool clear = true; // dQ: Ordered, the first addition is a store
  if (C::Ordered) {
    clear = bwd_count<C>(sequence_of<C>(p, of.place), batch, head, m) == 0;
    if (threadIdx.x < 2)
      work.turns[2 * of.number + threadIdx.x] = 0;
  }
  if (C::Writes && clear) { // dQ itself
    T *const dq = static_cast<T *>(p.dq) + batch * p.dq_strides[0] +
                  head * p.dq_strides[1];
    for (int i = threadIdx.x; i < C::BM * C::D / 8; i += C::SideThreads) {
      const int64 query = of.first + m * C::BM + i / (C::D / 8);
      if (query < of.end)
        storeWord(reinterpret_cast<uint4 *>(dq + query * p.dq_strides[2]) +
                      i % (C::D / 8),
                  make_uint4(0, 0, 0, 0));
    }
  } else if (clear) {
    float4 *sum =
        reinterpret_cast<float4 *>(work.sum + of.number * C::DqParts * C::Part);
#pragma unroll
    for (int i = threadIdx.x; i < C::DqParts * C::Part / 4; i += C::SideThreads)
      sum[i] = make_float4(0, 0, 0, 0);
  }
  // Two rows at a time: there are no registers for more (PrepareBlocks).
  constexpr int AtOnce = 2;
  static_assert(C::BM % (Step * AtOnce) == 0, "all threads have as many rows");
  const int own = threadIdx.x / Lanes;
  int row = of.first + m * C::BM + own;
  auto first_of = [&](void const *tensor, int64 const(&strides)[3]) {
    return static_cast<T const *>(tensor) + batch * strides[0] +
           head * strides[1] + row * strides[2] + lane * 8;
  };
  T const *o_row = first_of(p.o, p.o_strides);
  T const *dout_row = first_of(p.dout, p.dout_strides);
#pragma unroll 1
  for (int i = own; i < C::BM; i += Step * AtOnce) {
    uint4 o[AtOnce] = {}, dout[AtOnce] = {};
#pragma unroll
    for (int j = 0; j < AtOnce; j++) {
      if (row + j * Step < of.end && lane * 8 < C::DV)
        o[j] = load_last(o_row), dout[j] = load_last(dout_row);
      o_row += Step * p.o_strides[2], dout_row += Step * p.dout_strides[2];
    }
#pragma unroll
    for (int j = 0; j < AtOnce; j++, row += Step) {
      Vector<T, 8> x, y;
      *reinterpret_cast<uint4 *>(x.lane) = o[j];
      *reinterpret_cast<uint4 *>(y.lane) = dout[j];
      float delta = 0, lse = infinity;
#pragma unroll
      for (int v = 0; v < 8; v++)
        delta += widen<float>(x.get(v)) * widen<float>(y.get(v));
#pragma unroll
      for (int w = Lanes / 2; w; w /= 2)
        delta += __shfl_xor_sync(~0u, delta, w);
      if (lane == 0) {
        if (row < of.end) {
          lse = p.lse[batch * p.lse_strides[0] + head * p.lse_strides[1] +
                      row * p.lse_strides[2]];
          if (p.dlse)
            delta -= p.dlse[batch * p.dlse_strides[0] +
                            head * p.dlse_strides[1] + row * p.dlse_strides[2]];
          if (lse == -infinity)
            lse = infinity, delta = 0;
        }
        const int64 to = of.number * C::BM + i + j * Step;
        work.lse[to] = lse * 1.44269504f, work.delta[to] = delta;
        if (C::RowBytes)
          work.row[to] =
              C::Mods::row(p.args, C::Mods::batch(p.args, batch),
                           C::Mods::head(p.args, head),
                           C::Mods::query(p.args, min(row, of.end - 1)));
      }
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
    if (C::Ordered && threadIdx.x == 0)
      trap_if_endless();
    return;
  }
  if (!of.exists)
    return;
  const int count =
      bwd_count<C>(sequence_of<C>(p, of.place), of.batch, of.head, of.m);
  if (threadIdx.x < C::Counters) {
    int *const turn = BwdWorkspace<C>(p).turns + 2 * of.number + threadIdx.x;
    wait_for_tiles(turn, count, of.batch, of.head, of.m,
                   of.first + of.m * C::BM);
    trap_if_endless();
  }
  __syncthreads();
}

/// Launched as prepare. A quad makes 64 bytes of two rows, 8 apart, from what
/// one has added.
template <class C, class P>
TSR_DEVICE void attention_bwd_finish(P const &p, int at) {
  using T = typename C::T;
  const BwdSide<C> of(p, at);
  const int m = of.m, head = of.head, batch = of.batch;
  bwd_wait_added<C>(p, of, at);
  if (!of.exists)
    return;
  bwd_finish_sums<C>(p, batch, head, m, of.blocks(p));
  if (C::Writes)
    return;
  float const *sum = BwdWorkspace<C>(p).sum + of.number * C::DqParts * C::Part;
  T *out =
      static_cast<T *>(p.dq) + batch * p.dq_strides[0] + head * p.dq_strides[1];
  struct Place {
    int thread, columns, group; // 32 columns of a consumer group's part
    TSR_MEMBER explicit Place(int i)
        : thread(i % 128), columns(i / 128 % (C::DqColumns / 32)),
          group(i / 128 / (C::DqColumns / 32)) {}
  };
  constexpr int Places = C::DqParts * C::Part / 16; // of all threads
  constexpr int AtOnce = Places % (2 * C::SideThreads) ? 1 : 2;
  for (int first = threadIdx.x; first < Places;
       first += AtOnce * C::SideThreads) {
    uint4 parts[AtOnce][4];
#pragma unroll
    for (int a = 0; a < AtOnce; a++) {
      const Place from(first + a * C::SideThreads);
#pragma unroll
      for (int j = 0; j < 4; j++)
        parts[a][j] = load_last(sum + from.group * C::Part +
                                (from.columns * 4 + j) * 512 + from.thread * 4);
    }
#pragma unroll
    for (int a = 0; a < AtOnce; a++) {
      const Place from(first + a * C::SideThreads);
      uint32 words[2][4]; // of two rows
#pragma unroll
      for (int j = 0; j < 4; j++) {
        auto scaled = [](uint32 x) {
          return __uint_as_float(x) * C::Mods::Scale;
        };
        const uint4 part = parts[a][j];
        words[0][j] = pack<T>(scaled(part.x), scaled(part.y));
        words[1][j] = pack<T>(scaled(part.z), scaled(part.w));
      }
      const bool whole = C::BM == 128; // rows
      const int row = (whole ? from.group * 64 : 0) + from.thread / 32 * 16 +
                      from.thread / 4 % 8;
      const int column = (whole ? 0 : from.group * C::DqColumns) +
                         from.columns * 32 + from.thread % 4 * 8;
#pragma unroll
      for (int r = 0; r < 2; r++) {
        quad_transpose(words[r], threadIdx.x);
        const int64 query = of.first + m * C::BM + row + r * 8;
        if (query < of.end && column < C::D)
          storeWord(
              reinterpret_cast<uint4 *>(out + query * p.dq_strides[2] + column),
              make_uint4(words[r][0], words[r][1], words[r][2], words[r][3]));
      }
    }
  }
}

/// dK or dV: of each query head as tiles leave them, and of each key head.
/// Strides as BwdParams'.
struct BwdShare {
  void const *from;
  void *to;
  int64 from_strides[3], to_strides[3];
};
template <class Args_> struct BwdShares {
  using Args = Args_;
  BwdShare dk, dv;
  int batch, heads, key_heads, keys;
  Args args;
};
/// Keys of a block of share, of C::SideThreads threads; all blocks.
constexpr int kShareRows = 64;

template <class P>
static __host__ __device__ constexpr int bwd_share_blocks(P const &p) {
  return 2 * ((p.keys + kShareRows - 1) / kShareRows) * p.key_heads * p.batch;
}
/// Where several query heads read a key head, or none does: what they leave in
/// the tensors' type is added in f32, from the first head to the last. For one
/// of the blocks of kShareRows keys of dK and of dV, of all key heads and
/// batches.
template <class C, class P>
TSR_DEVICE void attention_bwd_share(P const &p, int at) {
  using T = typename C::T;
  const bool of_values = at % 2;
  at /= 2;
  const int blocks = (p.keys + kShareRows - 1) / kShareRows;
  const int first = at % blocks * kShareRows;
  const int last = min(first + kShareRows, p.keys);
  at /= blocks;
  const int key_head = at % p.key_heads, batch = at / p.key_heads;
  auto first_head = [&](int key_head) {
    return first_where(p.heads, [&](int head) {
      return C::Mods::key_head(p.args, head, p.heads, p.key_heads) >= key_head;
    });
  };
  const int begin = first_head(key_head), end = first_head(key_head + 1);
  BwdShare of; // field by field: what is chosen as a whole lies in memory
  of.from = of_values ? p.dv.from : p.dk.from;
  of.to = of_values ? p.dv.to : p.dk.to;
#pragma unroll
  for (int i = 0; i < 3; i++) {
    of.from_strides[i] =
        of_values ? p.dv.from_strides[i] : p.dk.from_strides[i];
    of.to_strides[i] = of_values ? p.dv.to_strides[i] : p.dk.to_strides[i];
  }
  const int lanes = (of_values ? C::DV : C::D) / 8;
  const int rows = C::SideThreads / lanes, column = threadIdx.x % lanes * 8;
  T const *from = static_cast<T const *>(of.from) + batch * of.from_strides[0] +
                  begin * of.from_strides[1] + column;
  T *to = static_cast<T *>(of.to) + batch * of.to_strides[0] +
          key_head * of.to_strides[1] + column;
  wait_before();
  if ((int)threadIdx.x >= rows * lanes)
    return;
  for (int key = first + threadIdx.x / lanes; key < last; key += rows) {
    T const *next = from + key * of.from_strides[2];
    float sum[8] = {};
#pragma unroll 4
    for (int head = begin; head < end; head++, next += of.from_strides[1]) {
      const uint4 part = load_last(next);
      Vector<T, 8> x;
      *reinterpret_cast<uint4 *>(x.lane) = part;
#pragma unroll
      for (int v = 0; v < 8; v++)
        sum[v] += widen<float>(x.get(v));
    }
    storeWord(reinterpret_cast<uint4 *>(to + key * of.to_strides[2]),
              make_uint4(pack<T>(sum[0], sum[1]), pack<T>(sum[2], sum[3]),
                         pack<T>(sum[4], sum[5]), pack<T>(sum[6], sum[7])));
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
