//===- attention.cuh - shapes and references of attention's tests ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_TEST_ATTENTION_CUH
#define TESSERA_KERNELS_TEST_ATTENTION_CUH

#include "attention_dropped.cuh"
#include "attention_ops.cuh"
#include "attention_sequences.cuh"

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

enum class Order {
  Position, ///< [batch, position, head, d]
  Head,     ///< [batch, head, position, d]
  Packed,   ///< keys and values in one tensor; results with a gap behind each
};
char const *const kOrders[] = {"", " heads outside", " packed"};

struct Shape {
  int batch, heads, key_heads, queries, keys;
  Order order = Order::Position;
  bool lse = true;
  int query_step = 1, first_query = 0, first_head = 0;
};

Layout layout(Order order, int heads, int positions, int row = D) {
  const int64 n = positions;
  if (order == Order::Head)
    return {heads * n * row, n * row, row};
  return {heads * n * row, row, (int64)heads * row};
}

template <class M> std::string title(Shape const &s) {
  const std::string blocks =
      M::BlockKeys ? format(" %dx%d", M::BlockQueries, M::BlockKeys)
      : M::PageRows ? format(" in pages of %d", M::PageRows)
                    : "";
  return format("d%d/%d %s %s%s%s b%d h%d/%d s%d/%d%s%s", D, DV, Element<T>::kName,
                M::kName, M::HasDropout ? ", dropout" : "", blocks.c_str(), s.batch, s.heads, s.key_heads, s.queries, s.keys,
                kOrders[(int)s.order],
                s.lse ? "" : " no lse");
}

//===----------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------===//

/// The tensors of a shape, and the launch of a kernel on them.
template <class M> struct Problem {
  using C = Fwd<T, D, M, DV>;
  Shape s;
  bool packed = s.order == Order::Packed;
  int64 kv_row = packed ? D + DV : D, o_row = packed ? 2 * DV : DV;
  Layout lq = layout(s.order, s.heads, s.queries);
  Layout lk = layout(s.order, s.key_heads, s.keys, kv_row);
  Layout lv = layout(s.order, s.key_heads, s.keys, packed ? kv_row : DV);
  Layout lo = layout(s.order, s.heads, s.queries, o_row);
  size_t rows = (size_t)s.batch * s.heads * s.queries;
  size_t key_rows = (size_t)s.batch * s.key_heads * s.keys;
  Array<Stored> q{rows * D}, k{key_rows * kv_row},
      own_v{packed ? 0 : key_rows * DV}, o{rows * o_row};
  Stored *v = packed ? k + D : own_v.data;
  Array<float> lse{rows};
  Array<int> ticket{1};
  Array<float> row_table{(size_t)(s.first_head + s.heads) * s.queries};
  Array<float> shift_table{(size_t)(s.first_head + s.heads) *
                           (s.queries + s.keys)};
  Array<int> query_document{(size_t)s.batch * s.queries},
      key_document{(size_t)s.batch * s.keys}, lengths{(size_t)s.batch};
  static int blocks(int n, int size) {
    return size ? (n + size - 1) / size : 0;
  }
  double pairs = 0; // of a head, of a Pattern
  std::vector<int> begins, used; // of Sequences
  int sequences = 0;
  /// Of kernels, by their tiles.
  std::vector<std::unique_ptr<Array<PackedHeader>>> lists;
  size_t kinds_size = (size_t)s.batch * s.heads *
                      blocks(s.queries, M::BlockQueries) *
                      blocks(s.keys, M::BlockKeys);
  Array<signed char> kinds{kinds_size};
  static constexpr size_t kPieces = C::MostBlocks * C::Groups;
  Array<float> pieces{2 * kPieces * C::PieceFloats};
  Array<int> arrived{4 * kPieces};
  FwdMaps maps;
  FwdParams<typename M::Args> p = {};

  explicit Problem(Shape const &shape) : s(shape) {
    randomize(q, 1), randomize(k, 2), randomize(own_v, 3);
    randomize(row_table, 4), randomize(shift_table, 5);
    // Documents of 37 and more positions; every 50th query has none.
    auto documents = [&](Array<int> const &to, int n, bool holes) {
      std::vector<int> ids;
      for (int b = 0; b < s.batch; b++)
        for (int i = 0; i < n; i++)
          ids.push_back(holes && i % 50 == 7 ? -1 : i / (37 + 90 * b));
      CHECK(cudaMemcpy(to, ids.data(), ids.size() * sizeof(int),
                       cudaMemcpyHostToDevice));
    };
    documents(query_document, s.queries, true);
    documents(key_document, s.keys, false);
    if constexpr (M::Packed) {
      begins = M::begins(s.queries), sequences = begins.size() - 1;
      used = M::used(begins);
      // Queries and keys of none have no number in common.
      for (auto [to, none] :
           {std::pair(query_document.data, -1), {key_document.data, -2}}) {
        std::vector<int> ids(s.queries, none);
        for (int i = 0; i < sequences; i++)
          std::fill_n(ids.begin() + begins[i], length(i), i);
        CHECK(cudaMemcpy(to, ids.data(), ids.size() * sizeof(int),
                         cudaMemcpyHostToDevice));
      }
    }
    std::vector<signed char> all;
    if constexpr (std::is_base_of_v<Captured, M>)
      if constexpr (M::kAgrees)
        all = agree();
    // Each kind, long gaps, and rows of blocks without any.
    const int columns = blocks(s.keys, M::BlockKeys);
    for (size_t i = all.size(); i < kinds_size; i++) {
      const unsigned row = i / std::max(columns, 1), n = i % std::max(columns, 1);
      const unsigned mixed = (row * 2654435761u) ^ (n * 40503u * (row + 1));
      all.push_back(row % 7 == 3                 ? 0
                    : row % 7 == 5 && n % 40 > 1 ? 0
                                                 : (mixed >> 7) % 3);
    }
    CHECK(cudaMemcpy(kinds, all.data(), all.size(), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(ticket, 0, sizeof(int)));
    CHECK(cudaMemset(arrived, 0, 4 * kPieces * sizeof(int)));
    maps = {map(q, lq, s.queries, s.heads, C::BM),
            map(k, lk, s.keys, s.key_heads, C::BN),
            map(v, lv, s.keys, s.key_heads, C::BN, DV),
            map(o, lo, s.queries, s.heads, 64, DV)};
    p.o = o;
    set_strides(p.o_strides, lo);
    p.lse = s.lse ? lse.data : nullptr;
    p.ticket = ticket;
    p.pieces = pieces, p.arrived = arrived;
    set_sizes(p, s.batch, s.heads, s.key_heads, s.queries, s.keys);
    p.causal_shift = s.keys - s.query_step * s.queries;
    if constexpr (std::is_base_of_v<Captured, M>)
      p.args = {
          row_table, shift_table, query_document, key_document, s.queries,
          s.keys,    100,         s.first_head,   s.query_step, s.first_query,
          kinds,     s.heads,     lengths};
    // From none to all.
    std::vector<int> drawn;
    for (unsigned b = 0; b < (unsigned)s.batch; b++)
      drawn.push_back(b % 5 == 2 ? 0 : (b * 2654435761u >> 8) % (s.keys + 1));
    setLengths(drawn);
    if constexpr (M::Packed)
      p.args.packed = list(C::BM);
  }
  PackedTiles list(int rows) {
    Array<int> at(begins.size()), ends(used.size());
    for (auto [to, from] : {std::pair(&at, &begins), {&ends, &used}})
      CHECK(cudaMemcpy(*to, from->data(), to->n * sizeof(int),
                       cudaMemcpyHostToDevice));
    lists.push_back(std::make_unique<Array<PackedHeader>>(
        PackedTiles::words(s.queries, sequences, rows) / 4));
    Array<PackedHeader> &to = *lists.back();
    list_tiles<M><<<sequences, 32>>>(at, ends, s.queries, rows, to);
    CHECK(cudaDeviceSynchronize());
    return {to, sequences};
  }
  /// Of a sequence, as far as it is used.
  int length(int i) const {
    return std::clamp(used[i], 0, begins[i + 1] - begins[i]);
  }
  /// `value` in the rows of no sequence.
  template <class X>
  void fill(X *to, Layout l, int heads, int columns, float value) {
    if constexpr (M::Packed)
      fill_gaps<<<7, 64>>>(p.args.packed,
                           Tensor<X, 4>{to,
                                        {1, heads, s.queries, columns},
                                        {l.batch, l.head, l.position, 1}},
                           X(value));
  }
  void setLengths(std::vector<int> const &drawn) {
    CHECK(cudaMemcpy(lengths, drawn.data(), drawn.size() * sizeof(int),
                     cudaMemcpyHostToDevice));
  }
  /// Whether what blocks count with is as it was.
  bool settled() const {
    for (int n : arrived.host())
      if (n)
        return false;
    return ticket.host()[0] == 0;
  }

  /// Kinds and documents of a Pattern.
  std::vector<signed char> agree() {
    for (auto [to, n] : {std::pair(&query_document, s.queries),
                         {&key_document, s.keys}}) {
      std::vector<int> ids;
      for (int i = 0; i < s.batch * n; i++)
        ids.push_back(M::document(i % n));
      CHECK(cudaMemcpy(*to, ids.data(), ids.size() * sizeof(int),
                       cudaMemcpyHostToDevice));
    }
    std::vector<signed char> one, all;
    for (int q = 0; q < s.queries; q += M::BlockQueries)
      for (int k = 0; k < s.keys; k += M::BlockKeys) {
        int kept = 0, of = 0;
        for (int i = q; i < std::min(q + M::BlockQueries, s.queries); i++)
          for (int j = k; j < std::min(k + M::BlockKeys, s.keys); j++)
            kept += M::keeps(i, j), of++;
        pairs += kept;
        one.push_back(kept == 0 ? 0 : kept == of ? 2 : 1);
      }
    for (int i = 0; i < s.batch * s.heads; i++)
      all.insert(all.end(), one.begin(), one.end());
    return all;
  }
  TensorMap map(Stored const *base, Layout l, int positions, int heads,
                unsigned box, int depth = D) {
    return rows_map<T>(base, l, s.batch, heads, positions, depth, box,
                       M::Packed);
  }
  void launch() {
    // As programs launch it: there may be more blocks than tiles.
    launch_fwd<C>(maps, p, std::min((size_t)multiprocessors(), rows));
    fill(o.data, lo, s.heads, DV, 0);
    fill(lse.data, {0, s.queries, 1}, s.heads, 1, -INFINITY);
    CHECK(cudaGetLastError());
  }
};

//===----------------------------------------------------------------------===//
// References, in float64: a warp a row, what it goes over 32 at a time
//===----------------------------------------------------------------------===//

/// The same op with exact functions.
template <class M> struct ExactOf { using Type = M; };
template <> struct ExactOf<SoftCap> { using Type = Cap<tanh32>; };
template <class M, int Queries, int Keys>
struct ExactOf<Blocks<M, Queries, Keys>> {
  using Type = Folded<typename ExactOf<M>::Type, Queries, Keys>;
};
template <class M> struct ExactOf<Dropped<M>> {
  using Type = Dropped<typename ExactOf<M>::Type>;
};
template <class M> struct ExactOf<DroppedAnywhere<M>> {
  using Type = DroppedAnywhere<typename ExactOf<M>::Type>;
};
template <class M> struct ExactOf<Sequences<M>> {
  using Type = Separate<typename ExactOf<M>::Type>;
};
template <class M> using Exact = typename ExactOf<M>::Type;

/// A functor of M, of a pair.
#define FUNCTOR(NAME, BEFORE, ...)                                             \
  [&] {                                                                        \
    const typename M::Row row = M::row(p.args, gb, gh, gq);                    \
    const typename M::Column column = M::column(p.args, gb, j);                \
    return M::NAME(p.args,                                                     \
                   BEFORE AttentionPair<M>{row, column, gb, gh, gq, j}         \
                       __VA_ARGS__);                                           \
  }()
#define COMMA ,

/// A warp a query row, keys 32 at a time, a key a lane.
template <class M>
__global__ void reference(Stored const *q, Stored const *k, Stored const *v,
                          Layout lq, Layout lk, Layout lv, float *o, float *lse,
                          FwdParams<typename M::Args> p) {
  const int i = blockIdx.x * 4 + threadIdx.x / 32, h = blockIdx.y,
            b = blockIdx.z, lane = threadIdx.x % 32;
  if (i >= p.queries)
    return;
  const int64 gb = M::batch(p.args, b), gh = M::head(p.args, h),
              gq = M::query(p.args, i);
  const int kh = h / (p.heads / p.key_heads);
  Stored const *query = q + b * lq.batch + h * lq.head + i * lq.position;
  double top = -INFINITY, sum = 0, out[DV / 32] = {};
  for (int first = 0; first < p.keys; first += 32) {
    const int j = first + lane;
    double x = -INFINITY;
    if (j < p.keys && (!M::Causal || j <= gq + p.causal_shift)) {
      Stored const *key = k + b * lk.batch + kh * lk.head + j * lk.position;
      x = 0;
      for (int d = 0; d < D; d++)
        x += (double)(float)query[d] * (double)(float)key[d];
      x *= M::Scale;
      if constexpr (M::HasScore)
        x = FUNCTOR(score, (float)x COMMA);
      if constexpr (M::HasMask)
        if (!FUNCTOR(mask, ))
          x = -INFINITY;
    }
    double m = x;
    for (int w = 16; w; w /= 2)
      m = fmax(m, __shfl_xor_sync(~0u, m, w));
    m = fmax(m, top);
    if (m == -INFINITY)
      continue;
    const double e = exp(x - m), shrink = exp(top - m);
    double total = e;
    for (int w = 16; w; w /= 2)
      total += __shfl_xor_sync(~0u, total, w);
    const double own = e * weight_factor<M>(p.args, {gb, gh, gq, j});
    sum = sum * shrink + total, top = m;
    for (int c = 0; c < DV / 32; c++)
      out[c] *= shrink;
    for (int l = 0; l < min(32, p.keys - first); l++) {
      const double weight = __shfl_sync(~0u, own, l);
      Stored const *value =
          v + b * lv.batch + kh * lv.head + (first + l) * lv.position;
      for (int c = 0; c < DV / 32; c++)
        out[c] += weight * (double)(float)value[c * 32 + lane];
    }
  }
  const int64 row = ((int64)b * p.heads + h) * p.queries + i;
  for (int c = 0; c < DV / 32; c++)
    o[row * DV + c * 32 + lane] = sum == 0 ? 0 : out[c] / sum;
  if (lane == 0)
    lse[row] = sum == 0 ? -INFINITY : top + log(sum);
}

/// The gradients of every `step`-th query (of Q) or key (of K and V), from the
/// first on, of what the forward gave: a warp a row, lanes go over the other
/// side's. lo: of o and dout.
template <class M, bool Keys, class P>
__global__ void reference_bwd(Stored const *q, Stored const *k, Stored const *v,
                              Stored const *o, Stored const *dout, Layout lq,
                              Layout lk, Layout lv, Layout lo, float const *lse,
                              float const *dlse, float *d1, float *d2, P p,
                              int step) {
  const int rows = ((Keys ? p.keys : p.queries) + step - 1) / step;
  const int index = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = index * step, head = blockIdx.y, b = blockIdx.z;
  if (index >= rows)
    return;
  const int group = p.heads / p.key_heads, others = Keys ? p.queries : p.keys;
  const int kh = Keys ? head : head / group;
  const int64 gb = M::batch(p.args, b);
  double sum1[D / 32] = {}, sum2[DV / 32] = {};
  for (int h = Keys ? kh * group : head;
       h < (Keys ? (kh + 1) * group : head + 1); h++)
    for (int first = 0; first < others; first += 32) {
      const int i = Keys ? first + lane : row, j = Keys ? row : first + lane;
      double prob = 0, ds = 0;
      const int64 gq = M::query(p.args, min(i, p.queries - 1)),
                  gh = M::head(p.args, h);
      bool seen = i < p.queries && j < p.keys;
      seen = seen && (!M::Causal || j <= gq + p.causal_shift);
      if constexpr (M::HasMask)
        seen = seen && FUNCTOR(mask, );
      if (seen) {
        Stored const *query = q + b * lq.batch + h * lq.head + i * lq.position;
        Stored const *key = k + b * lk.batch + kh * lk.head + j * lk.position;
        Stored const *value = v + b * lv.batch + kh * lv.head + j * lv.position;
        const int64 at = b * lo.batch + h * lo.head + i * lo.position;
        const int64 flat = ((int64)b * p.heads + h) * p.queries + i;
        double x = 0, dp = 0, delta = dlse ? -dlse[flat] : 0;
        for (int d = 0; d < D; d++)
          x += (double)(float)query[d] * (double)(float)key[d];
        for (int d = 0; d < DV; d++) {
          dp += (double)(float)dout[at + d] * (double)(float)value[d];
          delta += (double)(float)dout[at + d] * (double)(float)o[at + d];
        }
        x *= M::Scale;
        double y = x, slope = 1;
        if constexpr (M::HasScore)
          y = FUNCTOR(score, (float)x COMMA);
        if constexpr (M::Sums > 0) {
          float addends[M::Sums];
          slope = FUNCTOR(score_grad, (float)x COMMA 1 COMMA, , addends);
        } else if constexpr (M::HasScoreGrad)
          slope = FUNCTOR(score_grad, (float)x COMMA 1 COMMA);
        if (lse[flat] != -INFINITY) {
          const double factor = weight_factor<M>(p.args, {gb, gh, gq, j});
          prob = exp(y - lse[flat]);
          ds = prob * (factor * dp - delta) * slope * M::Scale;
          prob *= factor;
        }
      }
      for (int l = 0; l < min(32, others - first); l++) {
        const double weight1 = __shfl_sync(~0u, ds, l);
        const double weight2 = __shfl_sync(~0u, prob, l);
        const int64 at1 =
            Keys ? b * lq.batch + h * lq.head + (first + l) * lq.position
                 : b * lk.batch + kh * lk.head + (first + l) * lk.position;
        const int64 at2 =
            b * lo.batch + h * lo.head + (first + l) * lo.position;
        for (int c = 0; c < D / 32; c++)
          sum1[c] +=
              weight1 * (double)(float)(Keys ? q : k)[at1 + c * 32 + lane];
        for (int c = 0; Keys && c < DV / 32; c++)
          sum2[c] += weight2 * (double)(float)dout[at2 + c * 32 + lane];
      }
    }
  const int64 to = ((int64)b * gridDim.y + head) * rows + index;
  for (int c = 0; c < D / 32; c++)
    d1[to * D + c * 32 + lane] = sum1[c];
  for (int c = 0; Keys && c < DV / 32; c++)
    d2[to * DV + c * 32 + lane] = sum2[c];
}

/// Of sum n of a head: how many, and which a query and a key add to.
__host__ __device__ inline int64 sum_size(SumBy by, int64 queries, int64 keys) {
  return by == SumBy::Query      ? queries
         : by == SumBy::Key      ? keys
         : by == SumBy::Distance ? queries + keys
                                 : queries * keys;
}
/// The sums for captured tensors, and those of their addends' magnitudes; a
/// thread a score.
template <class M, class P>
__global__ void reference_sums(Stored const *q, Stored const *k,
                               Stored const *v, Stored const *o,
                               Stored const *dout, Layout lq, Layout lk,
                               Layout lv, Layout lo, float const *lse, float const *dlse,
                               double *const *sums, double *const *magnitudes,
                               P p) {
  const int64 id = blockIdx.x * (int64)blockDim.x + threadIdx.x;
  const int j = id % p.keys, i = id / p.keys % p.queries;
  const int h = id / p.keys / p.queries % p.heads;
  const int b = id / p.keys / p.queries / p.heads;
  if (b >= p.batch)
    return;
  const int kh = h / (p.heads / p.key_heads);
  const int64 gb = M::batch(p.args, b), gh = M::head(p.args, h),
              gq = M::query(p.args, i);
  const int64 flat = ((int64)b * p.heads + h) * p.queries + i;
  bool seen = lse[flat] != -INFINITY &&
              (!M::Causal || j <= gq + p.causal_shift);
  if constexpr (M::HasMask)
    seen = seen && FUNCTOR(mask, );
  if (!seen)
    return;
  Stored const *query = q + b * lq.batch + h * lq.head + i * lq.position;
  const int64 key = b * lk.batch + kh * lk.head + j * lk.position;
  const int64 value = b * lv.batch + kh * lv.head + j * lv.position;
  const int64 at = b * lo.batch + h * lo.head + i * lo.position;
  double x = 0, dp = 0, delta = dlse ? -dlse[flat] : 0, size = fabs(delta);
  for (int d = 0; d < D; d++) {
    x += (double)(float)query[d] * (double)(float)k[key + d];
    dp += (double)(float)dout[at + d] * (double)(float)v[value + d];
    delta += (double)(float)dout[at + d] * (double)(float)o[at + d];
    size += fabs((float)dout[at + d]) *
            (fabs((float)v[value + d]) + fabs((float)o[at + d]));
  }
  x *= M::Scale;
  const double prob = exp(FUNCTOR(score, (float)x COMMA) - (double)lse[flat]);
  const double factor = weight_factor<M>(p.args, {gb, gh, gq, j});
  float addends[M::Sums];
  FUNCTOR(score_grad, (float)x COMMA 1 COMMA, , addends);
  for (int n = 0; n < M::Sums; n++) {
    const SumBy by = M::sum_by(n);
    const int64 to = ((int64)b * p.heads + h) * sum_size(by, p.queries, p.keys) +
                     (by == SumBy::Query      ? i
                      : by == SumBy::Key      ? j
                      : by == SumBy::Distance ? i - j + p.keys
                                              : (int64)i * p.keys + j);
    atomicAdd(&sums[n][to], prob * (factor * dp - delta) * addends[n]);
    atomicAdd(&magnitudes[n][to], prob * size * fabs(addends[n]));
  }
}

#endif // TESSERA_KERNELS_TEST_ATTENTION_CUH
