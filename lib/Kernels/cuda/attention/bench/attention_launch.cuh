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

#include "attention/test/attention_kernels.cuh"

template <int D> struct Full : AttentionMods {
  static constexpr float Scale = D == 64    ? 0.125f
                                 : D == 96  ? 0.1020620726f
                                 : D == 128 ? 0.08838834764f
                                 : D == 192 ? 0.07216878365f
                                            : 0.0625f; // 1 / sqrt(D)
};

/// sequences: packed ones, of the one batch; 0: none are. window: how many keys
/// a query sees, of a kind that has one.
struct Sizes {
  int batch, heads, key_heads, queries, keys, sequences, window;
};
/// `table`, `documents`: what functors read. `shares`: where query heads share
/// keys, room for the gradients of keys and values of each.
struct Tensors {
  void *q, *k, *v, *o, *dout, *dq, *dk, *dv, *lse, *workspace, *ticket, *table,
      *sums, *documents, *walks, *shares;
};

static Layout layout(int positions, int heads, int d) {
  return {(int64)positions * heads * d, d, (int64)heads * d};
}
static TensorMap map(void *base, int d, Sizes const &s, bool of_keys,
                     unsigned box, unsigned heads_box = 1) {
  const int n = of_keys ? s.keys : s.queries;
  const int h = of_keys ? s.key_heads : s.heads;
  return rows_map<bf16>((__nv_bfloat16 const *)base, layout(n, h, d), s.batch,
                        h, n, d, box, s.sequences, heads_box);
}
static void capture(AttentionMods::Args &, Sizes const &, Tensors const &) {}
/// dv: of a head of values.
template <class P>
static void fill(P &p, int dv, Sizes const &s, Tensors const &t) {
  capture(p.args, s, t);
  set_sizes(p, s.batch, s.heads, s.key_heads, s.queries, s.keys);
  p.o = t.o, p.lse = (float *)t.lse;
  set_strides(p.o_strides, layout(s.queries, s.heads, dv));
}

/// `cache`: the sizes of keys and values, where these are pages. Of tiles that
/// blocks share, `workspace` has the pieces, `ticket` what of each has arrived.
template <class C>
static void forward(Sizes const &s, Tensors const &t, cudaStream_t stream,
                    Sizes const &cache) {
  using P = FwdParams<typename C::Mods::Args>;
  P p = {};
  fill(p, C::DV, s, t);
  if (C::Split)
    p.pieces = (float *)t.workspace, p.arrived = (int *)t.ticket;
  else
    p.ticket = (int *)t.ticket;
  constexpr int box = kBoxRows<C::BN, C::Mods::PageRows>;
  const FwdMaps maps = {
      map(t.q, C::D, s, false, C::BM), map(t.k, C::D, cache, true, box),
      map(t.v, C::DV, cache, true, box), map(t.o, C::DV, s, false, 64)};
  const int tiles = (s.queries / C::BM + s.sequences + 1) * s.heads * s.batch;
  launch_fwd<C>(maps, p,
                C::Split ? multiprocessors()
                         : std::min(multiprocessors(), tiles),
                stream);
}
template <class C>
static void forward(Sizes const &s, Tensors const &t, cudaStream_t stream) {
  forward<C>(s, t, stream, s);
}
template <class C>
static void backward(Sizes const &s, Tensors const &t, cudaStream_t stream) {
  using P = BwdParams<typename C::Mods::Args, C::Sums>;
  P p = {};
  fill(p, C::DV, s, t);
  const int64 size = 2 * s.queries; // by query or by distance
  p.sums[0] = {(float *)t.sums, {s.heads * size, size, 1}};
  p.dout = t.dout, p.dq = t.dq;
  p.workspace = t.workspace, p.ticket = (int *)t.ticket;
  set_strides(p.dout_strides, layout(s.queries, s.heads, C::DV));
  set_strides(p.dq_strides, layout(s.queries, s.heads, C::D));
  // Of query heads, [batch, head, key, column], or the results themselves.
  const bool shares = s.heads != s.key_heads;
  const int64 of_heads = (int64)s.batch * s.heads * s.keys;
  auto *const dk = (__nv_bfloat16 *)t.shares, *const dv = dk + of_heads * C::D;
  auto result = [&](void *whole, __nv_bfloat16 *parts, int d) {
    return shares
               ? rows_map<bf16>(parts,
                                {of_heads / s.batch * d, (int64)s.keys * d, d},
                                s.batch, s.heads, s.keys, d, 64)
               : map(whole, d, s, true, 64);
  };
  const BwdMaps maps = {map(t.q, C::D, s, false, C::QueryBox),
                        map(t.k, C::D, s, true, C::KeyBox),
                        map(t.v, C::DV, s, true, C::KeyBox),
                        map(t.dout, C::DV, s, false, C::QueryBox),
                        result(t.dk, dk, C::D),
                        result(t.dv, dv, C::DV)};
  launch_prepare<C>(p, s.sequences, stream);
  launch_bwd<C>(maps, p, multiprocessors(), s.sequences, stream);
  launch_finish<C>(p, s.sequences, stream);
  if (shares)
    launch_share<C>(p, dk, dv, t.dk, layout(s.keys, s.key_heads, C::D), t.dv,
                    layout(s.keys, s.key_heads, C::DV), stream);
}
enum { Forward, Backward, Ordered };
using Run = void (*)(int, Sizes const &, Tensors const &, cudaStream_t);
template <int D, class M, int DV = D>
static void all(int kind, Sizes const &s, Tensors const &t,
                cudaStream_t stream) {
  if (kind == Forward && areFewTiles(s.queries))
    forward<Fwd<bf16, D, M, DV, 128>>(s, t, stream);
  else if (kind == Forward)
    forward<Fwd<bf16, D, M, DV>>(s, t, stream);
  else if (kind == Backward)
    backward<Bwd<bf16, D, M, false, DV>>(s, t, stream);
  else
    backward<Bwd<bf16, D, M, true, DV>>(s, t, stream);
}

#endif // TESSERA_KERNELS_BENCH_ATTENTION_LAUNCH_CUH
