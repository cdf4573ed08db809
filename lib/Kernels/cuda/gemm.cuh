//===- gemm.cuh - matrix product with functors ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C[M,N] = epilogue(A[M,K] B[N,K]^T), bf16 or f16 with f32 accumulation, any M,
// N and K > 0 whose rows TMA can address. Persistent; one producer warp, two
// consumer warp groups of 64 x BN each. Clusters of two blocks work on
// neighbouring row tiles and send each other half of the common B tile; a
// cluster is inside one GPU.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_GEMM_CUH
#define TESSERA_KERNELS_GEMM_CUH

#include "wgmma.cuh"

namespace tessera {

/// What happens around the product. A kernel is a template over a struct that
/// derives from this one and replaces what differs.
struct GemmMods {
  /// What the functions below get from the kernel's parameters.
  struct Args {};
  /// Called by the producer before it reads rows [row, row + 128) of A: the
  /// place to wait until they have arrived. A row may be beyond the last.
  template <class A> TSR_DEVICE void prologue(A const &, int row) {}
  /// What is stored of a sum; `column` exists.
  template <class A>
  TSR_DEVICE float epilogue(A const &, float sum, int column) {
    return sum;
  }
};

/// The tanh form of gelu, for epilogues: x sigmoid(2 sqrt(2/pi) (x + 0.044715
/// x^3)), with exp2 and a division that keep 22 bits.
TSR_DEVICE float gelu_tanh(float x) {
  const float t =
      x * (2.30220818f + 0.10294324f * x * x); // 2 log2(e) of tanh's
  return __fdividef(x, 1 + exp2_fast(-t));
}

template <class T_, int BN_, int Stages_, int Cluster_, class Mods_>
struct GemmConfig {
  using T = T_;
  using Mods = Mods_;
  static constexpr int BM = 128, BN = BN_, BK = 64, Stages = Stages_;
  static constexpr int Cluster = Cluster_, Threads = 384;
  /// 64 x 64 panels of C that a warp group can have under way: what the stages
  /// leave, 2 at most.
  static constexpr int StorePanels =
      (226 * 1024 - Stages * (BM + BN) * BK * 2) / 16384 > 1 ? 2 : 1;
  static_assert(BN % 64 == 0 && (Cluster == 1 || Cluster == 2));

  struct Shared {
    alignas(1024) char a[Stages][BM * BK * 2];
    alignas(1024) char b[Stages][BN * BK * 2];
    alignas(1024) char c[2][StorePanels][64 * 64 * 2];
    uint64 full[Stages], empty[Stages];
  };
};

/// Boxes (columns x rows): 64 x 128, 64 x BN/Cluster, 64 x 64; 128-byte
/// swizzle.
struct GemmMaps {
  TensorMap a, b, c;
};

template <class Args> struct GemmParams {
  int m, n, k;
  int group; // row tiles (of clusters) that are walked together, for reuse in
             // L2
  Args args;
};

/// The tiles of a block: down `group` row tiles, then the next column.
template <class C> struct GemmTiles {
  int rows, columns, group, rank;
  int id = blockIdx.x / C::Cluster;
  int row, column; // first of the tile

  template <class P>
  TSR_MEMBER GemmTiles(P const &p, int rank)
      : rows((p.m + C::BM * C::Cluster - 1) / (C::BM * C::Cluster)),
        columns((p.n + C::BN - 1) / C::BN), group(p.group), rank(rank) {}
  /// Moves to the next tile, if there is one.
  TSR_MEMBER bool next() {
    if (id >= rows * columns)
      return false;
    const int first = id / (group * columns) * group;
    const int height = min(rows - first, group);
    const int inside = id % (group * columns);
    row = ((first + inside % height) * C::Cluster + rank) * C::BM;
    column = inside / height * C::BN;
    id += gridDim.x / C::Cluster;
    return true;
  }
};

template <class C, class P>
TSR_DEVICE void gemm_produce(GemmMaps const &maps, P const &p,
                             typename C::Shared &s, int rank) {
  Ring<C::Stages> ring;
  GemmTiles<C> tiles(p, rank);
  while (tiles.next()) {
    C::Mods::prologue(p.args, tiles.row);
    for (int k = 0; k < p.k; k += C::BK, ring.next()) {
      const int i = ring.stage;
      barrier_wait(&s.empty[i], ring.phase ^ 1);
      barrier_expect(&s.full[i], (C::BM + C::BN) * C::BK * 2);
      tma_load(s.a[i], &maps.a, &s.full[i], k, tiles.row);
      if constexpr (C::Cluster == 1) {
        tma_load(s.b[i], &maps.b, &s.full[i], k, tiles.column);
      } else {
        constexpr int part = C::BN / C::Cluster;
        tma_load_multicast(s.b[i] + rank * part * 128, &maps.b, &s.full[i], k,
                           tiles.column + rank * part, (1 << C::Cluster) - 1);
      }
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
TSR_DEVICE void gemm_consume(GemmMaps const &maps, P const &p,
                             typename C::Shared &s, int rank) {
  using T = typename C::T;
  const int half = threadIdx.x / 128 - 1, thread = threadIdx.x % 128;
  Ring<C::Stages> ring;
  GemmTiles<C> tiles(p, rank);
  while (tiles.next()) {
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
#pragma unroll
    for (int c = 0; c < C::BN / 64; c++) {
      char *panel = s.c[half][c % C::StorePanels];
      if (thread == 0)
        bulk_wait_read<C::StorePanels - 1>();
      named_sync(1 + half, 128);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        float *x = acc + c * 32 + i * 8;
        const int first = tiles.column + c * 64 + i * 16 + thread % 4 * 2;
#pragma unroll
        for (int j = 0; j < 8; j++)
          x[j] = C::Mods::epilogue(p.args, x[j],
                                   min(first + fragment_column(j), p.n - 1));
        Fragment16 f;
        convert<T>(f, x);
        store_fragment(panel, i, f);
      }
      fence_async();
      named_sync(1 + half, 128);
      if (thread == 0) {
        tma_store(&maps.c, panel, tiles.column + c * 64, tiles.row + half * 64);
        bulk_commit();
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
TSR_DEVICE void gemm(GemmMaps const &maps, P const &p) {
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

} // namespace tessera

#endif // TESSERA_KERNELS_GEMM_CUH
