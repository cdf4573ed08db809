//===- gemm.cuh - matrix product with functors ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C[M,N] = epilogue(A[M,K] B[N,K]^T), bf16 or f16 with f32 accumulation, any M,
// N and K > 0 whose rows TMA can address; or a batch of such products, of one B
// or a B each. Persistent; one producer warp, two consumer warp groups of 64 x
// BN each. Clusters of two blocks work on neighbouring row tiles and send each
// other half of the common B tile; a cluster is inside one GPU.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_GEMM_CUH
#define TESSERA_KERNELS_GEMM_CUH

#ifdef TESSERA_EMULATION
#include "EmulatedProduct.h" // `gemm` by its definition
#else
#include "base/wgmma.cuh"
#endif

namespace tessera {

/// An element of the result.
struct GemmElement {
  int batch, row, column;
};

/// What happens around the product. A kernel is a template over a struct that
/// derives from this one and replaces what differs.
struct GemmMods {
  /// What the functions below get from the kernel's parameters.
  struct Args {};
  /// Tensors that are stored.
  static constexpr int Results = 1;
  /// Whether there is one copy of the epilogue's text for 64 columns, and sums
  /// move to where it finds them. A long one has no registers otherwise.
  static constexpr bool Rolled = false;
  /// Called by the producer before it reads rows [row, row + 128) of A: the
  /// place to wait until they have arrived. A row may be beyond the last.
  template <class A> TSR_DEVICE void prologue(A const &, int batch, int row) {}
  /// Makes an element of each result out of x[0], the sum. The element exists.
  template <class A, int R>
  TSR_DEVICE void epilogue(A const &, float (&x)[R], GemmElement const &at) {}
};

/// `Rank` 2, or 3 for a batch; then B has a batch, too, or all share one.
template <class T_, int BN_, int Stages_, int Cluster_, class Mods_,
          int Rank_ = 2, bool BatchedB_ = false>
struct GemmConfig {
  using T = T_;
  using Mods = Mods_;
  static constexpr int BM = 128, BN = BN_, BK = 64, Stages = Stages_;
  static constexpr int Cluster = Cluster_, Threads = 384;
  static constexpr int Rank = Rank_;
  static constexpr bool BatchedB = BatchedB_;
  /// 64 x 64 panels of C that a warp group can have under way: what the stages
  /// leave, 2 at most.
  static constexpr int StorePanels =
      (226 * 1024 - Stages * (BM + BN) * BK * 2) / 16384 > 1 ? 2 : 1;
  static_assert(BN % 64 == 0 && (Cluster == 1 || Cluster == 2) &&
                (Rank == 2 || Rank == 3) && (Rank == 3 || !BatchedB));
  /// The next tile begins with the panel that was used longest ago.
  static_assert(BN / 64 * Mods::Results % StorePanels == 0);

  struct Shared {
    alignas(1024) char a[Stages][BM * BK * 2];
    alignas(1024) char b[Stages][BN * BK * 2];
    alignas(1024) char c[2][StorePanels][64 * 64 * 2];
    uint64 full[Stages], empty[Stages];
  };
};

/// Boxes (columns x rows, of one of a batch): 64 x 128, 64 x BN/Cluster, 64 x
/// 64; 128-byte swizzle.
template <int Results = 1> struct GemmMaps {
  TensorMap a, b, c[Results];
};

template <class Args> struct GemmParams {
  int batch, m, n, k; // batch 1 for rank 2
  int group; // row tiles (of clusters) that are walked together, for reuse in
             // L2
  Args args;
};

#ifndef TESSERA_EMULATION

/// The tanh form of gelu, for epilogues: x sigmoid(2 sqrt(2/pi) (x + 0.044715
/// x^3)), with exp2 and a division that keep 22 bits.
TSR_DEVICE float gelu_tanh(float x) {
  const float t =
      x * (2.30220818f + 0.10294324f * x * x); // 2 log2(e) of tanh's
  return __fdividef(x, 1 + exp2_fast(-t));
}

/// The tiles of a block: down `group` row tiles, then the next column.
template <class C> struct GemmTiles {
  int id = blockIdx.x / C::Cluster;
  int batch = 0, row, column; // first of the tile

  /// Moves to the next tile, if there is one.
  template <class P> TSR_MEMBER bool next(P const &p, int rank) {
    // Row tiles of one of the batch, then of all.
    const int lines = (p.m + C::BM * C::Cluster - 1) / (C::BM * C::Cluster);
    const int rows = C::Rank == 2 ? lines : lines * p.batch;
    const int columns = (p.n + C::BN - 1) / C::BN;
    if (id >= rows * columns)
      return false;
    const int first = id / (p.group * columns) * p.group;
    const int height = min(rows - first, p.group);
    const int inside = id % (p.group * columns);
    int line = first + inside % height;
    if constexpr (C::Rank == 3) {
      batch = line / lines;
      line %= lines;
    }
    row = (line * C::Cluster + rank) * C::BM;
    column = inside / height * C::BN;
    id += gridDim.x / C::Cluster;
    return true;
  }
};

template <class C, class P>
TSR_DEVICE void gemm_produce(GemmMaps<C::Mods::Results> const &maps, P const &p,
                             typename C::Shared &s, int rank) {
  Ring<C::Stages> ring;
  GemmTiles<C> tiles;
  while (tiles.next(p, rank)) {
    C::Mods::prologue(p.args, tiles.batch, tiles.row);
    for (int k = 0; k < p.k; k += C::BK, ring.next()) {
      const int i = ring.stage;
      barrier_wait(&s.empty[i], ring.phase ^ 1);
      barrier_expect(&s.full[i], (C::BM + C::BN) * C::BK * 2);
      if constexpr (C::Rank == 2)
        tma_load(s.a[i], &maps.a, &s.full[i], k, tiles.row);
      else
        tma_load(s.a[i], &maps.a, &s.full[i], k, tiles.row, tiles.batch);
      // This block's part of the common tile.
      constexpr int part = C::BN / C::Cluster;
      constexpr unsigned short all = (1 << C::Cluster) - 1;
      char *b = s.b[i] + rank * part * 128;
      const int column = tiles.column + rank * part;
      if constexpr (C::Cluster == 1 && C::BatchedB)
        tma_load(b, &maps.b, &s.full[i], k, column, tiles.batch);
      else if constexpr (C::Cluster == 1)
        tma_load(b, &maps.b, &s.full[i], k, column);
      else if constexpr (C::BatchedB)
        tma_load_multicast(b, &maps.b, &s.full[i], k, column, tiles.batch, all);
      else
        tma_load_multicast(b, &maps.b, &s.full[i], k, column, all);
    }
  }
}

template <class C>
TSR_DEVICE void gemm_release(typename C::Shared &s, int stage) {
  const int lane = threadIdx.x % 32;
  if constexpr (C::Cluster == 1) {
    if (lane == 0)
      barrier_arrive(&s.empty[stage]);
  } else {
    if (lane < C::Cluster)
      barrier_arrive_at(&s.empty[stage], lane);
  }
}

template <class C, class P>
TSR_DEVICE void gemm_consume(GemmMaps<C::Mods::Results> const &maps, P const &p,
                             typename C::Shared &s, int rank) {
  using T = typename C::T;
  constexpr int Results = C::Mods::Results;
  constexpr bool Rolled = C::Mods::Rolled;
  const int half = threadIdx.x / 128 - 1, thread = threadIdx.x % 128;
  Ring<C::Stages> ring;
  GemmTiles<C> tiles;
  while (tiles.next(p, rank)) {
    float acc[C::BN / 2];
    int previous = 0;
    for (int k = 0; k < p.k; k += C::BK, ring.next()) {
      barrier_wait(&s.full[ring.stage], ring.phase);
      const uint64 a = operand(s.a[ring.stage] + half * 64 * 128);
      const uint64 b = operand(s.b[ring.stage]);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < C::BK / 16; i++)
        Wgmma<T, C::BN>::ss(acc, a + i * kStepK, b + i * kStepK, k + i > 0);
      wgmma_commit();
      wgmma_wait<1>(); // the step before
      if (k > 0)
        gemm_release<C>(s, previous);
      previous = ring.stage;
    }
    wgmma_wait<0>();
    gemm_release<C>(s, previous);
    const int row = tiles.row + half * 64 + thread / 32 * 16 + thread % 32 / 4;
#pragma unroll(Rolled ? 1 : C::BN / 64)
    for (int c = 0; c < C::BN / 64; c++) {
      Fragment16 fragments[Results][4];
#pragma unroll
      for (int r = 0; r < Results; r++) {
        char *panel = s.c[half][(c * Results + r) % C::StorePanels];
        if (thread == 0)
          bulk_wait_read<C::StorePanels - 1>();
        named_sync(1 + half, 128);
#pragma unroll
        for (int i = 0; i < 4; i++) {
          if (r == 0) {
            float const *sums = acc + (Rolled ? 0 : c * 32) + i * 8;
            const int column = tiles.column + c * 64 + i * 16 + thread % 4 * 2;
            float x[Results][8];
#pragma unroll
            for (int j = 0; j < 8; j++) {
              float y[Results] = {sums[j]};
              C::Mods::epilogue(
                  p.args, y,
                  GemmElement{tiles.batch, min(row + fragment_row(j), p.m - 1),
                              min(column + fragment_column(j), p.n - 1)});
#pragma unroll
              for (int of = 0; of < Results; of++)
                x[of][j] = y[of];
            }
#pragma unroll
            for (int of = 0; of < Results; of++)
              convert<T>(fragments[of][i], x[of]);
          }
          store_fragment(panel, i, fragments[r][i]);
        }
        fence_async();
        named_sync(1 + half, 128);
        if (thread == 0) {
          if constexpr (C::Rank == 2)
            tma_store(&maps.c[r], panel, tiles.column + c * 64,
                      tiles.row + half * 64);
          else
            tma_store(&maps.c[r], panel, tiles.column + c * 64,
                      tiles.row + half * 64, tiles.batch);
          bulk_commit();
        }
      }
      if constexpr (Rolled) {
#pragma unroll
        for (int i = 0; i < C::BN / 2 - 32; i++)
          acc[i] = acc[i + 32];
      }
    }
  }
  if (thread == 0)
    bulk_wait_done<0>();
}

/// The whole kernel, of C::Threads threads (__launch_bounds__(C::Threads, 1),
/// __cluster_dims__(C::Cluster)) and sizeof(C::Shared) bytes of dynamic shared
/// memory, for any number of clusters. `maps` lies in the kernel's parameters.
template <class C, class P>
TSR_DEVICE void gemm(GemmMaps<C::Mods::Results> const &maps, P const &p) {
  extern __shared__ __align__(1024) char raw[];
  auto &s = *reinterpret_cast<typename C::Shared *>(raw);
  const int rank = C::Cluster > 1 ? cluster_rank() : 0;
  if (threadIdx.x == 0) {
    for (int i = 0; i < C::Stages; i++) {
      barrier_init(&s.full[i], 1);
      barrier_init(&s.empty[i], 8 * C::Cluster); // the consumers' warps
    }
    fence_barrier_init();
  }
  if constexpr (C::Cluster > 1)
    cluster_sync();
  else
    __syncthreads();
  if (threadIdx.x < 128) {
    registers_lower<40>();
    if (threadIdx.x == 0)
      gemm_produce<C>(maps, p, s, rank);
  } else {
    registers_raise<232>();
    gemm_consume<C>(maps, p, s, rank);
  }
  if constexpr (C::Cluster > 1)
    cluster_sync(); // the other block may still arrive at our barriers
}

#endif // TESSERA_EMULATION

} // namespace tessera

#endif // TESSERA_KERNELS_GEMM_CUH
