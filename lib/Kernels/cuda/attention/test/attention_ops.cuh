//===- attention_ops.cuh - what functions attention's tests have ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// TEST_D is the head dimension, TEST_DV of values if that is another, TEST_T the
// element tag.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_TEST_ATTENTION_OPS_CUH
#define TESSERA_KERNELS_TEST_ATTENTION_OPS_CUH

#include "attention_kernels.cuh"

#ifndef TEST_DV
#define TEST_DV TEST_D
#endif
constexpr int D = TEST_D, DV = TEST_DV;
using T = TEST_T;
using Stored = Element<T>::Type;

struct Base : AttentionMods {
  static constexpr double kLse = 1e-4; // the error of a log-sum-exp
  static constexpr float Scale = D == 64 ? 0.125f : 0.08838834764f;
};
struct Full : Base {
  static constexpr char const *kName = "full";
};
struct Triangle : Base {
  static constexpr char const *kName = "causal";
  static constexpr bool Causal = true;
};
/// Scores have no factor of their own in the exponent.
struct NegativeScale : Base {
  static constexpr char const *kName = "negative scale";
  static constexpr float Scale = -Base::Scale;
};
/// What the functors capture: one struct for all.
struct Captured : Base {
  static constexpr char const *kName = "plain";
  static constexpr bool kAgrees = false;
  struct Args {
    float const *row;   // [heads, queries]
    float const *shift; // [heads, queries + keys]: by query - key
    int const *query_document, *key_document; // [batch, queries], [batch, keys]
    int queries, keys, window;
    int first_head, query_step, first_query; // of this device
    signed char const *kinds; // [batch, heads, blocks of queries, of keys]
    int heads;
    int const *lengths; // [batch]
    PackedTiles packed;
    int const *table; // [batch, pages of a sequence]
    int *walks;       // [batch, heads, 2, words], of `kinds`
    int64 words;
  };
};
struct CapturedTriangle : Captured {
  static constexpr char const *kName = "causal";
  static constexpr bool Causal = true;
};
/// With scores so far apart that a row's reference rises inside of it.
template <class M> struct Sharp : M {
  static constexpr char const *kName = "sharp";
  static constexpr float Scale = 16 * M::Scale;
};
/// Of lengths that are multiples of the tiles.
template <class M> struct Whole : M {
  static constexpr char const *kName = "whole tiles";
  static constexpr bool WholeQueries = true, WholeKeys = true;
};
template <float (*Tanh)(float)> struct Cap : Captured {
  static constexpr char const *kName = "causal, soft cap";
  static constexpr bool Causal = true, HasScore = true, HasScoreGrad = true;
  template <class At>
  TSR_DEVICE float score(Args const &, float s, At const &) {
    return 5 * Tanh(s * 0.2f);
  }
  template <class At>
  TSR_DEVICE float score_grad(Args const &, float s, float dy, At const &) {
    const float t = Tanh(s * 0.2f);
    return dy * (1 - t * t);
  }
};
using SoftCap = Cap<tanhFast>;
struct RowFactor : Captured {
  static constexpr char const *kName = "captured [head, query]";
  static constexpr bool HasScore = true, HasScoreGrad = true;
  struct Row {
    float factor;
  };
  TSR_DEVICE Row row(Args const &a, int64, int64 h, int64 q) {
    return {a.row[h * a.queries + q]};
  }
  template <class At>
  TSR_DEVICE float score(Args const &, float s, At const &at) {
    return s * at.row.factor + at.row.factor;
  }
  template <class At>
  TSR_DEVICE float score_grad(Args const &, float, float dy, At const &at) {
    return dy * at.row.factor;
  }
};
struct Relative : BiasOf<Captured, SumBy::Distance> {
  static constexpr char const *kName = "relative bias";
  template <class At>
  TSR_DEVICE float score(Args const &a, float s, At const &at) {
    return s +
           a.shift[at.head * (a.queries + a.keys) + at.query - at.key + a.keys];
  }
};
struct RowBias : BiasOf<CapturedTriangle, SumBy::Query> {
  static constexpr char const *kName = "causal, bias [head, query]";
  struct Row {
    float bias;
  };
  TSR_DEVICE Row row(Args const &a, int64, int64 h, int64 q) {
    return {a.row[h * a.queries + q]};
  }
  template <class At>
  TSR_DEVICE float score(Args const &, float s, At const &at) {
    return s + at.row.bias;
  }
};
/// Sums of every kind, two of one, and a window.
struct AllSums : RowFactor {
  static constexpr char const *kName = "sums of every kind";
  static constexpr bool HasMask = true;
  static constexpr int Sums = 5;
  TSR_DEVICE constexpr SumBy sum_by(int n) {
    return n < 4 ? SumBy(n) : SumBy::Query;
  }
  template <class At>
  TSR_DEVICE float score_grad(Args const &, float s, float dy, At const &at,
                              float (&addends)[5]) {
    addends[0] = addends[2] = dy * (s * s + 1);
    addends[1] = addends[4] = dy;
    addends[3] = dy * at.row.factor;
    return addends[3];
  }
  template <class At> TSR_DEVICE bool mask(Args const &a, At const &at) {
    return at.key <= at.query + 70 && at.key > at.query - a.window;
  }
  TSR_DEVICE KeyRange keys(Args const &a, int64, int64, int64 first, int64 last,
                           int) {
    return {(int)first - a.window + 1, (int)last + 71};
  }
};
/// Sums of which none is in shared memory.
struct KeyBias : Captured {
  static constexpr char const *kName = "causal, sums by key and score";
  static constexpr bool Causal = true, HasScore = true, HasScoreGrad = true;
  static constexpr int Sums = 2;
  TSR_DEVICE constexpr SumBy sum_by(int n) {
    return n ? SumBy::Score : SumBy::Key;
  }
  template <class At>
  TSR_DEVICE float score(Args const &a, float s, At const &at) {
    return s * a.row[at.key % a.queries];
  }
  template <class At>
  TSR_DEVICE float score_grad(Args const &a, float s, float dy, At const &at,
                              float (&addends)[2]) {
    addends[0] = addends[1] = dy * (s * s + 1);
    return dy * a.row[at.key % a.queries];
  }
};
/// The keys query - window < key <= query; the kernel knows the range.
struct Window : Captured {
  static constexpr char const *kName = "sliding window";
  static constexpr bool HasMask = true, KeepsRange = true;
  template <class At> TSR_DEVICE bool mask(Args const &a, At const &at) {
    return at.key <= at.query && at.key > at.query - a.window;
  }
  TSR_DEVICE KeyRange keys(Args const &a, int64, int64, int64 first, int64 last,
                           int) {
    return {(int)first - a.window + 1, (int)last + 1};
  }
};
struct Lengths : LengthsOf<Captured> {
  static constexpr char const *kName = "lengths";
  static constexpr int kSeen = 1 << 30; // at most, of the last
};
struct Prompt : PromptOf<Lengths> {
  static constexpr char const *kName = "prompt";
};
/// Documents; a query of document -1 sees nothing.
struct Documents : Captured {
  static constexpr char const *kName = "documents, empty rows";
  static constexpr bool HasMask = true;
  struct Row {
    int document;
  };
  struct Column {
    int document;
  };
  TSR_DEVICE Row row(Args const &a, int64 b, int64, int64 q) {
    return {a.query_document[b * a.queries + q]};
  }
  TSR_DEVICE Column column(Args const &a, int64 b, int64 k) {
    return {a.key_document[b * a.keys + k]};
  }
  template <class At> TSR_DEVICE bool mask(Args const &, At const &at) {
    return at.row.document == at.column.document;
  }
};
/// A device's heads and every second query of a longer sequence: numbers are
/// global. Slopes by head.
struct Sharded : Captured {
  static constexpr char const *kName = "shard of heads and queries, slopes";
  static constexpr bool Causal = true, HasScore = true, HasMask = true;
  TSR_DEVICE int64 head(Args const &a, int h) { return a.first_head + h; }
  TSR_DEVICE int64 query(Args const &a, int64 i) {
    return i * a.query_step + a.first_query;
  }
  template <class At>
  TSR_DEVICE float score(Args const &, float s, At const &at) {
    return s + exp2f(-0.5f * (at.head + 1)) * (at.key - at.query);
  }
  template <class At> TSR_DEVICE bool mask(Args const &, At const &at) {
    return (at.query + at.key) % 3 != 0;
  }
};

/// A causal op with a mask that is a pattern of its own.
struct Stripes : Captured {
  static constexpr char const *kName = "causal, stripes";
  static constexpr bool Causal = true, HasMask = true;
  template <class At> TSR_DEVICE bool mask(Args const &, At const &at) {
    return (at.query ^ at.key) & 4;
  }
};
/// Masks of issue 17, by number, of 8192 positions. Block masks of them agree.
template <int N> struct Pattern : Captured {
  static constexpr char const *kName = N == 0   ? "causal mask"
                                       : N == 1 ? "window of 2048"
                                       : N == 2 ? "8 documents"
                                                : "checkerboard";
  static constexpr bool HasMask = N != 3, kAgrees = true;
  __host__ __device__ static int document(int i) {
    constexpr int ends[] = {1618, 3066, 3870, 4364, 5341, 6115, 7613, 8192};
    int n = 0;
    while (n < 7 && i >= ends[n])
      n++;
    return n;
  }
  __host__ __device__ static bool keeps(int q, int k) {
    return N == 0   ? k <= q
           : N == 1 ? k <= q && k > q - 2048
           : N == 2 ? document(q) == document(k)
                    : q / 128 == k / 128 ||
                          ((q / 128 * 2654435761u) ^ (k / 128 * 40503u)) >> 5 & 1;
  }
  struct Row {
    int document;
  };
  struct Column {
    int document;
  };
  TSR_DEVICE Row row(Args const &a, int64 b, int64, int64 q) {
    return {N == 2 ? a.query_document[b * a.queries + q] : 0};
  }
  TSR_DEVICE Column column(Args const &a, int64 b, int64 k) {
    return {N == 2 ? a.key_document[b * a.keys + k] : 0};
  }
  template <class At> TSR_DEVICE bool mask(Args const &, At const &at) {
    return N == 2 ? at.row.document == at.column.document
                  : at.key <= at.query && (N == 0 || at.key > at.query - 2048);
  }
};
/// With a block mask, which agrees with the mask nowhere else.
template <class M, int Queries = 128, int Keys = 128> struct Blocks : M {
  static constexpr char const *kName = M::kName;
  static constexpr int BlockQueries = Queries, BlockKeys = Keys;
  using Args = typename Captured::Args;
  template <class At> TSR_DEVICE int kind(Args const &a, At const &at) {
    const int rows = (a.queries + Queries - 1) / Queries;
    const int columns = (a.keys + Keys - 1) / Keys;
    return a.kinds[((at.batch * a.heads + at.head) * rows +
                    at.query / Queries) *
                       columns +
                   at.key / Keys];
  }
  TSR_DEVICE int *walks(Args const &a, IndexPair const &at, bool last) {
    return a.walks + ((at.batch * a.heads + at.head) * 2 + last) * a.words;
  }
  TSR_DEVICE KeyRange keys(Args const &, int64, int64, int64, int64, int keys) {
    return {0, keys};
  }
};
/// The same without blocks that are left out.
template <class M, int Queries, int Keys> struct Folded : M {
  static constexpr bool HasMask = true;
  using Args = typename Captured::Args;
  template <class At> TSR_DEVICE bool mask(Args const &a, At const &at) {
    const int kind = Blocks<M, Queries, Keys>::kind(a, at);
    if constexpr (M::HasMask)
      return kind == 2 || (kind == 1 && M::mask(a, at));
    return kind != 0;
  }
};

#endif // TESSERA_KERNELS_TEST_ATTENTION_OPS_CUH
