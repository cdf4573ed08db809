//===- attention_kernels.cu - attention's kernels, to be timed ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The templates as a library, for attention.py: bf16 tensors [batch, position,
// head, d], contiguous; log-sum-exps [batch, head, query].
//
//===----------------------------------------------------------------------===//

#include "attention_configs.cuh"
#include "harness.cuh"

template <int D> struct Full : AttentionMods {
  static constexpr float Scale = D == 64    ? 0.125f
                                 : D == 96  ? 0.1020620726f
                                 : D == 128 ? 0.08838834764f
                                 : D == 192 ? 0.07216878365f
                                            : 0.0625f; // 1 / sqrt(D)
};
template <int D> struct Triangle : Full<D> {
  static constexpr bool Causal = true;
};
/// 50 tanh(s / 50).
template <int D> struct SoftCap : Triangle<D> {
  static constexpr bool HasScore = true, HasScoreGrad = true;
  using Args = AttentionMods::Args;
  static constexpr float InnerScale = 0.02f, OuterScale = 50;
  template <class At>
  TSR_DEVICE float score(Args const &, float s, At const &) {
    return tanhFast(s);
  }
  template <class At>
  TSR_DEVICE float score_grad(Args const &, float s, float dy, At const &) {
    const float t = tanhFast(s);
    return dy * (1 - t * t);
  }
};
/// bias[head, query] and rel[head, query - key + queries], both from `table`,
/// and their sums for each batch.
struct Table {
  float const *data;
  int64 heads_stride, shift;
};
template <int D> struct RowBias : Triangle<D> {
  static constexpr bool HasScore = true, HasScoreGrad = true;
  static constexpr int Sums = 1;
  using Args = Table;
  struct Row {
    float bias;
  };
  TSR_DEVICE Row row(Args const &a, int64, int64 h, int64 q) {
    return {a.data[h * a.heads_stride + q]};
  }
  template <class At>
  TSR_DEVICE float score(Args const &, float s, At const &at) {
    return s + at.row.bias;
  }
  template <class At>
  TSR_DEVICE float score_grad(Args const &, float, float dy, At const &,
                              float (&addends)[1]) {
    return addends[0] = dy;
  }
};
template <int D> struct Relative : Triangle<D> {
  static constexpr bool HasScore = true, HasScoreGrad = true;
  static constexpr int Sums = 1;
  TSR_DEVICE constexpr SumBy sum_by(int) { return SumBy::Distance; }
  using Args = Table;
  template <class At>
  TSR_DEVICE float score(Args const &a, float s, At const &at) {
    return s + a.data[at.head * a.heads_stride + at.query - at.key + a.shift];
  }
  template <class At>
  TSR_DEVICE float score_grad(Args const &, float, float dy, At const &,
                              float (&addends)[1]) {
    return addends[0] = dy;
  }
};

struct Sizes {
  int batch, heads, key_heads, queries, keys;
};
struct Tensors {
  void *q, *k, *v, *o, *dout, *dq, *dk, *dv, *lse, *workspace, *ticket, *table,
      *sums;
};

static TensorMap map(void *base, int d, Sizes const &s, bool of_keys,
                     unsigned box) {
  const uint64_t n = of_keys ? s.keys : s.queries;
  const uint64_t h = of_keys ? s.key_heads : s.heads;
  return tensor_map<bf16>((__nv_bfloat16 const *)base,
                          {(uint64_t)d, n, h, (uint64_t)s.batch},
                          {h * d, (uint64_t)d, h * d * n}, {64, box, 1, 1});
}
static void fill(AttentionMods::Args &, Sizes const &, Tensors const &) {}
static void fill(Table &args, Sizes const &s, Tensors const &t) {
  args = {(float const *)t.table, 2 * s.queries, s.queries};
}
static void fill(int64 *strides, int64 heads, int64 positions, int64 d) {
  strides[0] = positions * heads * d, strides[1] = d, strides[2] = heads * d;
}
template <class P> static void fill(P &p, Sizes const &s, Tensors const &t) {
  fill(p.args, s, t);
  p.batch = s.batch, p.heads = s.heads, p.key_heads = s.key_heads;
  p.queries = s.queries, p.keys = s.keys;
  p.causal_shift = s.keys - s.queries, p.ticket = (int *)t.ticket;
  p.lse = (float *)t.lse;
  p.lse_strides[0] = (int64)s.heads * s.queries;
  p.lse_strides[1] = s.queries, p.lse_strides[2] = 1;
}

template <class C, class P>
__global__ __launch_bounds__(C::Threads, 1) void fwd_kernel(
    const __grid_constant__ FwdMaps maps, const __grid_constant__ P p) {
  attention_fwd<C>(maps, p);
}
template <class C, class P>
__global__ __launch_bounds__(C::SideThreads) void prepare_kernel(
    const __grid_constant__ P p) {
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

template <class C>
static void forward(Sizes const &s, Tensors const &t, cudaStream_t stream) {
  using P = FwdParams<typename C::Mods::Args>;
  P p = {};
  fill(p, s, t);
  p.o = t.o;
  fill(p.o_strides, s.heads, s.queries, C::DV);
  const FwdMaps maps = {
      map(t.q, C::D, s, false, C::BM), map(t.k, C::D, s, true, C::BN),
      map(t.v, C::DV, s, true, C::BN), map(t.o, C::DV, s, false, 64)};
  const int bytes = sizeof(typename C::Shared);
  allow_shared(fwd_kernel<C, P>, bytes);
  const int tiles = (s.queries + C::BM - 1) / C::BM * s.heads * s.batch;
  fwd_kernel<C, P>
      <<<std::min(multiprocessors(), tiles), C::Threads, bytes, stream>>>(maps,
                                                                          p);
  CHECK(cudaGetLastError());
}
template <class C>
static void backward(Sizes const &s, Tensors const &t, cudaStream_t stream) {
  using P = BwdParams<typename C::Mods::Args, C::Sums>;
  P p = {};
  fill(p, s, t);
  const int64 size = 2 * s.queries; // by query or by distance
  p.sums[0] = {(float *)t.sums, {s.heads * size, size, 1}};
  p.o = t.o, p.dout = t.dout, p.dq = t.dq, p.workspace = t.workspace;
  fill(p.o_strides, s.heads, s.queries, C::D);
  fill(p.dout_strides, s.heads, s.queries, C::D);
  fill(p.dq_strides, s.heads, s.queries, C::D);
  const BwdMaps maps = {
      map(t.q, C::D, s, false, C::BM), map(t.k, C::D, s, true, C::BN),
      map(t.v, C::D, s, true, C::BN),  map(t.dout, C::D, s, false, C::BM),
      map(t.dk, C::D, s, true, 64),    map(t.dv, C::D, s, true, 64)};
  const int bytes = sizeof(typename C::Shared);
  allow_shared(bwd_kernel<C, P>, bytes);
  const dim3 blocks((s.queries + C::BM - 1) / C::BM, s.heads, s.batch);
  const int tiles = (s.keys + C::BN - 1) / C::BN * s.key_heads * s.batch;
  prepare_kernel<C, P><<<blocks, C::SideThreads, 0, stream>>>(p);
  launch_early(bwd_kernel<C, P>, std::min(multiprocessors(), tiles), C::Threads,
               bytes, stream, maps, p);
  launch_early(finish_kernel<C, P>, blocks, C::SideThreads, 0, stream, p);
  CHECK(cudaGetLastError());
}
enum { Forward, Backward, Ordered };
using Run = void (*)(int, Sizes const &, Tensors const &, cudaStream_t);
template <int D, class M>
static void all(int kind, Sizes const &s, Tensors const &t,
                cudaStream_t stream) {
  if (kind == Forward)
    forward<Fwd<bf16, D, M>>(s, t, stream);
  else if (kind == Backward)
    backward<Bwd<bf16, D, M>>(s, t, stream);
  else
    backward<Bwd<bf16, D, M, true>>(s, t, stream);
}
template <int D, int DV, class M>
static void only_forward(int, Sizes const &s, Tensors const &t,
                         cudaStream_t stream) {
  forward<Fwd<bf16, D, M, DV>>(s, t, stream);
}
template <int D> Run of_mods(int mods) {
  const Run runs[] = {all<D, Full<D>>, all<D, Triangle<D>>, all<D, SoftCap<D>>,
                      all<D, RowBias<D>>, all<D, Relative<D>>};
  return runs[mods];
}
template <int D, int DV = D> Run of_wide(int mods) {
  return mods ? only_forward<D, DV, Triangle<D>> : only_forward<D, DV, Full<D>>;
}

/// d of queries and keys, dv of values. mods: full, causal, causal with a soft
/// cap, with a bias by head and query, with one by distance, too.
extern "C" void attention(int d, int dv, int kind, int mods, Sizes s, Tensors t,
                          cudaStream_t stream) {
  const Run run = d == 64   ? of_mods<64>(mods)
                  : d == 96 ? (mods ? all<96, Triangle<96>> : all<96, Full<96>>)
                  : d == 128              ? of_mods<128>(mods)
                  : d == 256              ? of_wide<256>(mods)
                  : d == 192 && dv == 192 ? of_wide<192>(mods)
                                          : of_wide<192, 128>(mods);
  run(kind, s, t, stream);
}
/// Of any kind.
extern "C" long attention_workspace(int d, Sizes s) {
  return d == 64 ? BwdWorkspace<Bwd<bf16, 64, Relative<64>, true>>::bytes(
                       s.batch, s.heads, s.queries, s.keys)
                 : BwdWorkspace<Bwd<bf16, 128, Relative<128>, true>>::bytes(
                       s.batch, s.heads, s.queries, s.keys);
}
