//===- attention_launch.cuh - launches of attention's kernels -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On bf16 tensors [batch, position, head, d], contiguous, with log-sum-exps
// [batch, head, query]. For its Args, an op has a `capture`.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_BENCH_ATTENTION_LAUNCH_CUH
#define TESSERA_KERNELS_BENCH_ATTENTION_LAUNCH_CUH

#include "attention/test/attention_configs.cuh"
#include "test/harness.cuh"

template <int D> struct Full : AttentionMods {
  static constexpr float Scale = D == 64    ? 0.125f
                                 : D == 96  ? 0.1020620726f
                                 : D == 128 ? 0.08838834764f
                                 : D == 192 ? 0.07216878365f
                                            : 0.0625f; // 1 / sqrt(D)
};

/// sequences: packed ones, of the one batch; 0: none are.
struct Sizes {
  int batch, heads, key_heads, queries, keys, sequences;
};
/// `table`, `documents`: what functors read.
struct Tensors {
  void *q, *k, *v, *o, *dout, *dq, *dk, *dv, *lse, *workspace, *ticket, *table,
      *sums, *documents, *walks;
};

static TensorMap map(void *base, int d, Sizes const &s, bool of_keys,
                     unsigned box, unsigned heads_box = 1) {
  const uint64_t n = of_keys ? s.keys : s.queries;
  const uint64_t h = of_keys ? s.key_heads : s.heads;
  if (s.sequences)
    return ragged_map<bf16>((__nv_bfloat16 const *)base, d, n, h, h * d, d,
                            box);
  return tensor_map<bf16>(
      (__nv_bfloat16 const *)base, {(uint64_t)d, n, h, (uint64_t)s.batch},
      {h * d, (uint64_t)d, h * d * n}, {64, box, heads_box, 1});
}
static void capture(AttentionMods::Args &, Sizes const &, Tensors const &) {}
static void fill(int64 *strides, int64 heads, int64 positions, int64 d) {
  strides[0] = positions * heads * d, strides[1] = d, strides[2] = heads * d;
}
template <class P> static void fill(P &p, Sizes const &s, Tensors const &t) {
  capture(p.args, s, t);
  p.batch = s.batch, p.heads = s.heads, p.key_heads = s.key_heads;
  p.queries = s.queries, p.keys = s.keys;
  p.causal_shift = s.keys - s.queries;
  p.o = t.o, p.lse = (float *)t.lse;
  p.lse_strides[0] = (int64)s.heads * s.queries;
  p.lse_strides[1] = s.queries, p.lse_strides[2] = 1;
}

template <class C, class P>
__global__ __launch_bounds__(C::Threads, 1) void fwd_kernel(
    const __grid_constant__ FwdMaps maps, const __grid_constant__ P p) {
  attention_fwd<C>(maps, p);
}
template <class C, class P>
__global__ __launch_bounds__(
    C::SideThreads,
    C::PrepareBlocks) void prepare_kernel(const __grid_constant__ P p) {
  attention_bwd_prepare<C>(p);
}
template <class C, class P>
__global__ __launch_bounds__(C::Threads, 1) void bwd_kernel(
    const __grid_constant__ BwdMaps maps, const __grid_constant__ P p) {
  attention_bwd<C>(maps, p);
}
template <class C, class P>
__global__ __launch_bounds__(C::SideThreads) void finish_kernel(
    const __grid_constant__ P p) {
  attention_bwd_finish<C>(p);
}

/// `cache`: the sizes of keys and values, where these are pages. Of tiles that
/// blocks share, `workspace` has the pieces, `ticket` what of each has arrived.
template <class C>
static void forward(Sizes const &s, Tensors const &t, cudaStream_t stream,
                    Sizes const &cache) {
  using P = FwdParams<typename C::Mods::Args>;
  P p = {};
  fill(p, s, t);
  if (C::Split)
    p.pieces = (float *)t.workspace, p.arrived = (int *)t.ticket;
  else
    p.ticket = (int *)t.ticket;
  fill(p.o_strides, s.heads, s.queries, C::DV);
  constexpr int box = kBoxRows<C::BN, C::Mods::PageRows>;
  const FwdMaps maps = {
      map(t.q, C::D, s, false, C::BM), map(t.k, C::D, cache, true, box),
      map(t.v, C::DV, cache, true, box), map(t.o, C::DV, s, false, 64)};
  const int bytes = sizeof(typename C::Shared);
  allow_shared(fwd_kernel<C, P>, bytes);
  const int tiles = (s.queries / C::BM + s.sequences + 1) * s.heads * s.batch;
  const int blocks =
      C::Split ? multiprocessors() : std::min(multiprocessors(), tiles);
  fwd_kernel<C, P><<<blocks, C::Threads, bytes, stream>>>(maps, p);
  CHECK(cudaGetLastError());
}
template <class C>
static void forward(Sizes const &s, Tensors const &t, cudaStream_t stream) {
  forward<C>(s, t, stream, s);
}
template <class C>
static void backward(Sizes const &s, Tensors const &t, cudaStream_t stream) {
  using P = BwdParams<typename C::Mods::Args, C::Sums>;
  P p = {};
  fill(p, s, t);
  const int64 size = 2 * s.queries; // by query or by distance
  p.sums[0] = {(float *)t.sums, {s.heads * size, size, 1}};
  p.dout = t.dout, p.dq = t.dq;
  p.workspace = t.workspace, p.ticket = (int *)t.ticket;
  fill(p.o_strides, s.heads, s.queries, C::DV);
  fill(p.dout_strides, s.heads, s.queries, C::DV);
  fill(p.dq_strides, s.heads, s.queries, C::D);
  const BwdMaps maps = {map(t.q, C::D, s, false, C::QueryBox),
                        map(t.k, C::D, s, true, C::KeyBox),
                        map(t.v, C::DV, s, true, C::KeyBox),
                        map(t.dout, C::DV, s, false, C::QueryBox),
                        map(t.dk, C::D, s, true, 64),
                        map(t.dv, C::DV, s, true, 64)};
  const int bytes = sizeof(typename C::Shared);
  allow_shared(bwd_kernel<C, P>, bytes);
  const dim3 blocks(BwdSide<C>::blocks(s.queries, s.sequences), s.heads,
                    s.batch);
  const int tiles = (s.keys / C::BN + s.sequences + 1) * s.key_heads * s.batch;
  prepare_kernel<C, P><<<blocks, C::SideThreads, 0, stream>>>(p);
  const int clusters = std::min(multiprocessors() / C::Cluster, tiles);
  launch_clusters(C::Cluster, true, bwd_kernel<C, P>, clusters * C::Cluster,
                  C::Threads, bytes, stream, maps, p);
  if constexpr (C::HasFinish)
    launch_early(finish_kernel<C, P>, blocks, C::SideThreads, 0, stream, p);
  CHECK(cudaGetLastError());
}
enum { Forward, Backward, Ordered };
using Run = void (*)(int, Sizes const &, Tensors const &, cudaStream_t);
template <int D, class M, int DV = D>
static void all(int kind, Sizes const &s, Tensors const &t,
                cudaStream_t stream) {
  if (kind == Forward)
    forward<Fwd<bf16, D, M, DV>>(s, t, stream);
  else if (kind == Backward)
    backward<Bwd<bf16, D, M, false, DV>>(s, t, stream);
  else
    backward<Bwd<bf16, D, M, true, DV>>(s, t, stream);
}

#endif // TESSERA_KERNELS_BENCH_ATTENTION_LAUNCH_CUH
