//===- attention_kernels.cu - attention's kernels, to be timed ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The templates as a library, for attention.py.
//
//===----------------------------------------------------------------------===//

#include "attention/test/attention_dropped.cuh"
#include "attention_launch.cuh"

template <int D> struct Triangle : Full<D> {
  static constexpr bool Causal = true;
};
/// 50 tanh(s / 50).
template <int D> struct SoftCap : Triangle<D> {
  static constexpr bool HasScore = true, HasScoreGrad = true;
  using Args = AttentionMods::Args;
  static constexpr float InnerScale = 0.02f, OuterScale = 50;
  static constexpr bool BoundedTanh = true;
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
static void capture(Table &args, Sizes const &s, Tensors const &t) {
  args = {(float const *)t.table, 2 * s.queries, s.queries};
}
template <int D> struct OfTable : Triangle<D> {
  using Args = Table;
  // As programs of such lengths have it.
  static constexpr bool WholeQueries = true, WholeKeys = true;
};
template <int D> struct RowBias : BiasOf<OfTable<D>, SumBy::Query> {
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
};
template <int D> struct Relative : BiasOf<OfTable<D>, SumBy::Distance> {
  using Args = Table;
  template <class At>
  TSR_DEVICE float score(Args const &a, float s, At const &at) {
    return s + a.data[at.head * a.heads_stride + at.query - at.key + a.shift];
  }
};

struct Weights {
  int64 heads, queries, keys;
};
static void capture(Weights &args, Sizes const &s, Tensors const &) {
  args = {s.heads, s.queries, s.keys};
}
template <class M> struct OfWeights : M {
  using Args = Weights;
  static constexpr bool WholeQueries = true, WholeKeys = true;
};

struct Seen {
  int window;
};
static void capture(Seen &args, Sizes const &s, Tensors const &) {
  args = {s.window};
}
/// Of which some blocks are whole, as programs have it then.
template <int D, bool IsWide = true> struct Window : Full<D> {
  using Args = Seen;
  static constexpr bool HasMask = true, KeepsRange = IsWide;
  static constexpr bool WholeQueries = true, WholeKeys = true;
  template <class At> TSR_DEVICE bool mask(Args const &a, At const &at) {
    return at.key <= at.query && at.key > at.query - a.window;
  }
  TSR_DEVICE KeyRange keys(Args const &a, int64, int64, int64 first, int64 last,
                           int) {
    return {(int)first - a.window + 1, (int)last + 1};
  }
};
template <int D>
static void window(int kind, Sizes const &s, Tensors const &t,
                   cudaStream_t stream) {
  const Run run =
      s.window < 256 ? Run(all<D, Window<D, false>>) : Run(all<D, Window<D>>);
  run(kind, s, t, stream);
}

template <int D> Run of_mods(int mods) {
  const Run runs[] = {all<D, Full<D>>,
                      all<D, Triangle<D>>,
                      all<D, SoftCap<D>>,
                      all<D, RowBias<D>>,
                      all<D, Relative<D>>,
                      all<D, Dropped<OfWeights<Full<D>>>>,
                      all<D, Dropped<OfWeights<Triangle<D>>>>,
                      window<D>};
  return runs[mods];
}
template <int D, int DV = D> Run plain(int mods) {
  return mods ? all<D, Triangle<D>, DV> : all<D, Full<D>, DV>;
}

/// d of queries and keys, dv of values. mods: full, causal, causal with a soft
/// cap, with a bias by head and query, with one by distance, too;
/// with dropout, full and causal; the last keys alone.
extern "C" void attention(int d, int dv, int kind, int mods, Sizes s, Tensors t,
                          cudaStream_t stream) {
  const Run run = d == 64                 ? of_mods<64>(mods)
                  : d == 96               ? plain<96>(mods)
                  : d == 128              ? of_mods<128>(mods)
                  : d == 256              ? plain<256>(mods)
                  : d == 192 && dv == 192 ? plain<192>(mods)
                                          : plain<192, 128>(mods);
  run(kind, s, t, stream);
}
/// Of any kind.
template <int D, template <int> class M = Triangle>
static long workspace(Sizes const &s) {
  return BwdWorkspace<Bwd<bf16, D, M<D>, true>>::bytes(s.batch, s.heads,
                                                       s.queries, s.keys);
}
extern "C" long attention_workspace(int d, Sizes s) {
  return d == 64    ? workspace<64, Relative>(s)
         : d <= 128 ? workspace<128, Relative>(s)
         : d == 192 ? workspace<192>(s)
                    : workspace<256>(s);
}
