//===- attention_kernels.cuh - the templates as kernels, and launches -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What tests and benchmarks share: C is a configuration, P its parameters, M
// what functors derive from.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_TEST_ATTENTION_KERNELS_CUH
#define TESSERA_KERNELS_TEST_ATTENTION_KERNELS_CUH

#include "attention_configs.cuh"
#include "test/harness.cuh"

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// Strides of batch, head and position; the head dimension is contiguous.
struct Layout {
  int64 batch, head, position;
};
/// As kernels copy boxes of 64 columns. `packed`: of sequences, in one batch.
template <class T>
TensorMap rows_map(typename Element<T>::Type const *base, Layout const &l,
                   int batch, int heads, int positions, int depth, unsigned box,
                   bool packed = false, unsigned heads_box = 1) {
  if (packed)
    return ragged_map<T>(base, depth, positions, heads, l.position, l.head,
                         box);
  return tensor_map<T>(
      base, {(uint64)depth, (uint64)positions, (uint64)heads, (uint64)batch},
      {(uint64)l.position, (uint64)l.head, (uint64)l.batch},
      {64, box, heads_box, 1});
}
inline void set_strides(int64 *strides, Layout const &l) {
  strides[0] = l.batch, strides[1] = l.head, strides[2] = l.position;
}
/// Log-sum-exps are [batch, head, query].
template <class P>
void set_sizes(P &p, int batch, int heads, int key_heads, int queries,
               int keys) {
  p.batch = batch, p.heads = heads, p.key_heads = key_heads;
  p.queries = queries, p.keys = keys, p.causal_shift = keys - queries;
  set_strides(p.lse_strides, {(int64)heads * queries, queries, 1});
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

template <class C, class P>
__global__ __launch_bounds__(C::Threads, 1) void fwd_kernel(
    const __grid_constant__ FwdMaps maps, const __grid_constant__ P p) {
  attention_fwd<C>(maps, p);
}
template <class C, class P>
void launch_fwd(FwdMaps const &maps, P const &p, int blocks,
                cudaStream_t stream = nullptr) {
  const int bytes = sizeof(typename C::Shared);
  allow_shared(fwd_kernel<C, P>, bytes);
  if (blocks)
    fwd_kernel<C, P><<<blocks, C::Threads, bytes, stream>>>(maps, p);
  CHECK(cudaGetLastError());
}

template <class C, class P>
__global__ __launch_bounds__(C::Threads, 1) void few_kernel(
    const __grid_constant__ FewMaps maps, const __grid_constant__ P p) {
  attention_few<C>(maps, p);
}
template <class C, class P>
void launch_few(FewMaps const &maps, P const &p, int blocks,
                cudaStream_t stream = nullptr) {
  const int bytes = sizeof(typename C::Shared);
  allow_shared(few_kernel<C, P>, bytes);
  few_kernel<C, P><<<blocks, C::Threads, bytes, stream>>>(maps, p);
  CHECK(cudaGetLastError());
}

//===----------------------------------------------------------------------===//
// Backward, in this order; `sequences`: packed ones, 0: none are
//===----------------------------------------------------------------------===//

template <class Mask>
__global__ __launch_bounds__(kWalkThreads) void walks_kernel(
    const __grid_constant__ Mask mask) {
  make_walks(mask, blockIdx.x);
}
template <class Mask>
void launch_walks(Mask const &mask, cudaStream_t stream = nullptr) {
  if (const int count = mask.count())
    walks_kernel<<<count, kWalkThreads, 0, stream>>>(mask);
  CHECK(cudaGetLastError());
}

template <class C, class P> dim3 side_grid(P const &p, int sequences) {
  return dim3(BwdSide<C>::blocks(p.queries, sequences), p.heads, p.batch);
}
template <class C, class P>
__global__ __launch_bounds__(
    C::SideThreads,
    C::PrepareBlocks) void prepare_kernel(const __grid_constant__ P p) {
  attention_bwd_prepare<C>(p);
}
template <class C, class P>
void launch_prepare(P const &p, int sequences, cudaStream_t stream = nullptr) {
  if (p.queries)
    prepare_kernel<C, P>
        <<<side_grid<C>(p, sequences), C::SideThreads, 0, stream>>>(p);
}

template <class C, class P>
__global__ __launch_bounds__(C::Threads, 1) void bwd_kernel(
    const __grid_constant__ BwdMaps maps, const __grid_constant__ P p) {
  attention_bwd<C>(maps, p);
}
/// By at most so many blocks.
template <class C, class P>
void launch_bwd(BwdMaps const &maps, P const &p, int blocks, int sequences,
                cudaStream_t stream = nullptr) {
  const int bytes = sizeof(typename C::Shared);
  allow_shared(bwd_kernel<C, P>, bytes);
  const int tiles =
      ((p.keys + C::BN - 1) / C::BN + sequences) * p.heads * p.batch;
  const int clusters = std::min(std::max(1, blocks / C::Cluster), tiles);
  if (tiles)
    launch_clusters(C::Cluster, p.queries > 0, bwd_kernel<C, P>,
                    clusters * C::Cluster, C::Threads, bytes, stream, maps, p);
}

template <class C, class P>
__global__ __launch_bounds__(C::SideThreads) void finish_kernel(
    const __grid_constant__ P p) {
  attention_bwd_finish<C>(p);
}
template <class C, class P>
void launch_finish(P const &p, int sequences, cudaStream_t stream = nullptr) {
  if constexpr (C::HasFinish)
    if (p.queries)
      launch_clusters(1, p.keys > 0, finish_kernel<C, P>,
                      side_grid<C>(p, sequences), C::SideThreads, 0, stream, p);
  CHECK(cudaGetLastError());
}

template <class C, class P>
__global__ __launch_bounds__(C::SideThreads) void share_kernel(
    const __grid_constant__ P p) {
  attention_bwd_share<C>(p, blockIdx.x);
}
/// dK and dV of query heads, [batch, head, key, column] in `from`, become `p`'s
/// of key heads, where these are not the same.
template <class C, class P, class T>
void launch_share(P const &p, T const *dk, T const *dv, void *to_dk,
                  Layout const &dk_layout, void *to_dv, Layout const &dv_layout,
                  cudaStream_t stream = nullptr) {
  BwdShares<typename P::Args> s = {};
  s.batch = p.batch, s.heads = p.heads, s.key_heads = p.key_heads;
  s.keys = p.keys, s.args = p.args;
  auto share = [&](BwdShare &of, T const *from, void *to, Layout const &layout,
                   int64 columns) {
    of.from = from, of.to = to;
    set_strides(of.from_strides,
                {p.heads * p.keys * columns, p.keys * columns, columns});
    set_strides(of.to_strides, layout);
  };
  share(s.dk, dk, to_dk, dk_layout, C::D);
  share(s.dv, dv, to_dv, dv_layout, C::DV);
  if (const int blocks = bwd_share_blocks(s))
    launch_clusters(1, true, share_kernel<C, decltype(s)>, blocks,
                    C::SideThreads, 0, stream, s);
  CHECK(cudaGetLastError());
}

//===----------------------------------------------------------------------===//
// Functors
//===----------------------------------------------------------------------===//

/// What a derived score adds, whose gradient is the score's, is summed.
template <class M, SumBy By> struct BiasOf : M {
  static constexpr bool HasScore = true, HasScoreGrad = true;
  static constexpr int Sums = 1;
  using Args = typename M::Args;
  TSR_DEVICE constexpr SumBy sum_by(int) { return By; }
  template <class At>
  TSR_DEVICE float score_grad(Args const &, float, float dy, At const &,
                              float (&addends)[1]) {
    return addends[0] = dy;
  }
};
/// The first keys of each sequence; the kernel knows how many.
template <class M> struct LengthsOf : M {
  static constexpr bool HasMask = true;
  using Args = typename M::Args;
  struct Row {
    int length;
  };
  TSR_DEVICE Row row(Args const &a, int64 b, int64, int64) {
    return {a.lengths[b]};
  }
  template <class At> TSR_DEVICE bool mask(Args const &, At const &at) {
    return at.key < at.row.length;
  }
  TSR_DEVICE KeyRange keys(Args const &a, int64 b, int64, int64, int64, int) {
    return {0, a.lengths[b]};
  }
};
/// The last positions of each sequence are queries, each of which sees those up
/// to its own. M: by lengths.
template <class M> struct PromptOf : M {
  using Args = typename M::Args;
  TSR_DEVICE typename M::Row row(Args const &a, int64 b, int64, int64 q) {
    return {int(a.lengths[b] - a.queries + q + 1)};
  }
  TSR_DEVICE KeyRange keys(Args const &a, int64 b, int64, int64, int64 last,
                           int) {
    return {0, int(a.lengths[b] - a.queries + last + 1)};
  }
};

#endif // TESSERA_KERNELS_TEST_ATTENTION_KERNELS_CUH
