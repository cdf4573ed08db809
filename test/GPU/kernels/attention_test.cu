//===- attention_test.cu - attention_fwd.cuh against a float64 reference --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//     attention_test [check | small | bench]
//
// TEST_D is the head dimension, TEST_T the element tag. `small` holds what a
// sanitizer can run in seconds, `bench` times against nothing but the clock.
//
//===----------------------------------------------------------------------===//

#include "attention_fwd.cuh"
#include "harness.cuh"

constexpr int D = TEST_D;
using T = TEST_T;
using Stored = Element<T>::Type;

//===----------------------------------------------------------------------===//
// The ops
//===----------------------------------------------------------------------===//

struct Base : AttentionMods {
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
  struct Args {
    float const *row;   // [heads, queries]
    float const *shift; // [heads, queries + keys]: by query - key
    int const *query_document, *key_document; // [batch, queries], [batch, keys]
    int queries, keys, window;
    int first_head, query_step, first_query; // of this device
  };
};
struct SoftCap : Captured {
  static constexpr char const *kName = "causal, soft cap";
  static constexpr bool Causal = true, HasScore = true;
  TSR_DEVICE float score(Args const &, float s, int64, int64, int64, int64) {
    return 5 * tanhf(s * 0.2f);
  }
};
struct RowFactor : Captured {
  static constexpr char const *kName = "captured [head, query]";
  static constexpr bool HasScore = true;
  TSR_DEVICE float score(Args const &a, float s, int64, int64 h, int64 q,
                         int64) {
    return s * a.row[h * a.queries + q] + a.row[h * a.queries + q];
  }
};
struct Relative : Captured {
  static constexpr char const *kName = "relative bias";
  static constexpr bool HasScore = true;
  TSR_DEVICE float score(Args const &a, float s, int64, int64 h, int64 q,
                         int64 k) {
    return s + a.shift[h * (a.queries + a.keys) + q - k + a.keys];
  }
};
/// The keys query - window < key <= query; the kernel knows the range.
struct Window : Captured {
  static constexpr char const *kName = "sliding window";
  static constexpr bool HasMask = true;
  TSR_DEVICE bool mask(Args const &a, int64, int64, int64 q, int64 k) {
    return k <= q && k > q - a.window;
  }
  TSR_DEVICE KeyRange keys(Args const &a, int64, int64, int64 first, int64 last,
                           int) {
    return {(int)first - a.window + 1, (int)last + 1};
  }
};
/// Documents; a query of document -1 sees nothing.
struct Documents : Captured {
  static constexpr char const *kName = "documents, empty rows";
  static constexpr bool HasMask = true;
  TSR_DEVICE bool mask(Args const &a, int64 b, int64, int64 q, int64 k) {
    return a.query_document[b * a.queries + q] ==
           a.key_document[b * a.keys + k];
  }
};
/// A device's heads and every second query of a longer sequence: numbers are
/// global. Slopes by head.
struct Sharded : Captured {
  static constexpr char const *kName = "shard of heads and queries, slopes";
  static constexpr bool Causal = true, HasScore = true, HasMask = true;
  TSR_DEVICE int64 head(Args const &a, int h) { return a.first_head + h; }
  TSR_DEVICE int64 query(Args const &a, int i) {
    return (int64)i * a.query_step + a.first_query;
  }
  TSR_DEVICE float score(Args const &, float s, int64, int64 h, int64 q,
                         int64 k) {
    return s + exp2f(-0.5f * (h + 1)) * (k - q);
  }
  TSR_DEVICE bool mask(Args const &, int64, int64, int64 q, int64 k) {
    return (q + k) % 3 != 0;
  }
};

//===----------------------------------------------------------------------===//
// Kernel and reference
//===----------------------------------------------------------------------===//

template <class M>
__global__ __launch_bounds__(FwdConfig<T, D, M>::Threads, 1) void kernel(
    const __grid_constant__ FwdMaps maps,
    const __grid_constant__ FwdParams<typename M::Args> p) {
  attention_fwd<FwdConfig<T, D, M>>(maps, p);
}

/// Strides of batch, head and position; the head dimension is contiguous.
struct Layout {
  int64 batch, head, position;
};

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
  double top = -INFINITY, sum = 0, out[D / 32] = {};
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
        x = M::score(p.args, (float)x, gb, gh, gq, j);
      if constexpr (M::HasMask)
        if (!M::mask(p.args, gb, gh, gq, j))
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
    sum = sum * shrink + total, top = m;
    for (int c = 0; c < D / 32; c++)
      out[c] *= shrink;
    for (int l = 0; l < min(32, p.keys - first); l++) {
      const double weight = __shfl_sync(~0u, e, l);
      Stored const *value =
          v + b * lv.batch + kh * lv.head + (first + l) * lv.position;
      for (int c = 0; c < D / 32; c++)
        out[c] += weight * (double)(float)value[c * 32 + lane];
    }
  }
  const int64 row = ((int64)b * p.heads + h) * p.queries + i;
  for (int c = 0; c < D / 32; c++)
    o[row * D + c * 32 + lane] = sum == 0 ? 0 : out[c] / sum;
  if (lane == 0)
    lse[row] = sum == 0 ? -INFINITY : top + log(sum);
}

//===----------------------------------------------------------------------===//
// Cases
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
  bool ticket = true, lse = true;
  int query_step = 1, first_query = 0, first_head = 0;
};

Layout layout(Order order, int heads, int positions, int row = D) {
  const int64 n = positions;
  if (order == Order::Head)
    return {heads * n * row, n * row, row};
  return {heads * n * row, row, (int64)heads * row};
}

/// The tensors of a shape, and the launch of a kernel on them.
template <class M> struct Problem {
  using C = FwdConfig<T, D, M>;
  Shape s;
  bool packed = s.order == Order::Packed;
  int64 kv_row = packed ? 2 * D : D, o_row = packed ? 2 * D : D;
  Layout lq = layout(s.order, s.heads, s.queries);
  Layout lk = layout(s.order, s.key_heads, s.keys, kv_row);
  Layout lo = layout(s.order, s.heads, s.queries, o_row);
  size_t rows = (size_t)s.batch * s.heads * s.queries;
  size_t key_rows = (size_t)s.batch * s.key_heads * s.keys;
  Array<Stored> q{rows * D}, k{key_rows * kv_row},
      own_v{packed ? 0 : key_rows * D}, o{rows * o_row};
  Stored *v = packed ? k + D : own_v.data;
  Array<float> lse{rows};
  Array<int> ticket{1};
  Array<float> row_table{(size_t)(s.first_head + s.heads) * s.queries};
  Array<float> shift_table{(size_t)(s.first_head + s.heads) *
                           (s.queries + s.keys)};
  Array<int> query_document{(size_t)s.batch * s.queries},
      key_document{(size_t)s.batch * s.keys};
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
    CHECK(cudaMemset(ticket, 0, sizeof(int)));
    maps = {map(q, lq, s.queries, s.heads, C::BM),
            map(k, lk, s.keys, s.key_heads, C::BN),
            map(v, lk, s.keys, s.key_heads, C::BN),
            map(o, lo, s.queries, s.heads, 64)};
    p.lse = s.lse ? lse.data : nullptr;
    p.lse_strides[0] = (int64)s.heads * s.queries;
    p.lse_strides[1] = s.queries, p.lse_strides[2] = 1;
    p.ticket = s.ticket ? ticket.data : nullptr;
    p.batch = s.batch, p.heads = s.heads, p.key_heads = s.key_heads;
    p.queries = s.queries, p.keys = s.keys;
    p.causal_shift = s.keys - s.query_step * s.queries;
    if constexpr (std::is_base_of_v<Captured, M>)
      p.args = {
          row_table, shift_table, query_document, key_document, s.queries,
          s.keys,    100,         s.first_head,   s.query_step, s.first_query};
  }

  TensorMap map(Stored const *base, Layout l, int positions, int heads,
                unsigned box) {
    return tensor_map<T>(
        base, {D, (uint64)positions, (uint64)heads, (uint64)s.batch},
        {(uint64)l.position, (uint64)l.head, (uint64)l.batch}, {64, box, 1, 1});
  }
  void launch() {
    const int bytes = sizeof(typename C::Shared);
    allow_shared(kernel<M>, bytes);
    const int tiles = (s.queries + C::BM - 1) / C::BM * s.heads * s.batch;
    if (tiles)
      kernel<M>
          <<<std::min(multiprocessors(), tiles), C::Threads, bytes>>>(maps, p);
    CHECK(cudaGetLastError());
  }
};

Report report;

template <class M> std::string title(Shape const &s) {
  return format("d%d %s %s b%d h%d/%d s%d/%d%s%s%s", D, Element<T>::kName,
                M::kName, s.batch, s.heads, s.key_heads, s.queries, s.keys,
                kOrders[(int)s.order], s.ticket ? "" : " no ticket",
                s.lse ? "" : " no lse");
}

template <class M> void check(Shape const &s) {
  report.begin(title<M>(s));
  Problem<M> problem(s);
  problem.launch();
  CHECK(cudaDeviceSynchronize());
  const auto o = problem.o.host();
  const auto lse = problem.lse.host();
  const int ticket = problem.ticket.host()[0];

  // The same bits again.
  problem.o.clear(), problem.lse.clear();
  problem.launch();
  CHECK(cudaDeviceSynchronize());
  const auto again = problem.o.host();
  const bool same =
      !memcmp(o.data(), again.data(), o.size() * sizeof(Stored)) &&
      !memcmp(lse.data(), problem.lse.host().data(), lse.size() * 4);

  Array<float> ref_o(problem.rows * D), ref_lse(problem.rows);
  if (problem.rows)
    reference<M><<<dim3((s.queries + 3) / 4, s.heads, s.batch), 128>>>(
        problem.q, problem.k, problem.v, problem.lq, problem.lk, problem.lk,
        ref_o, ref_lse, problem.p);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());

  // Results in the reference's order; what lies between them is untouched.
  std::vector<float> own(problem.rows * D);
  size_t untouched = 0;
  for (size_t r = 0; r < problem.rows; r++) {
    const int64 i = r % s.queries, h = r / s.queries % s.heads,
                b = r / s.queries / s.heads;
    const int64 at =
        b * problem.lo.batch + h * problem.lo.head + i * problem.lo.position;
    for (int d = 0; d < D; d++)
      own[r * D + d] = (float)o[at + d];
    for (int64 d = D; d < problem.o_row; d++) {
      unsigned short bits;
      memcpy(&bits, &o[at + d], 2);
      untouched += bits == 0xffff;
    }
  }
  const bool gaps = untouched == problem.rows * (problem.o_row - D);
  const Errors e = errors(own, ref_o.host(), D);
  const auto expected = ref_lse.host();
  double lse_error = 0;
  size_t empty = 0;
  for (size_t r = 0; r < problem.rows; r++) {
    empty += expected[r] == -INFINITY;
    if (s.lse && lse[r] != expected[r]) {
      const double d = std::fabs((double)lse[r] - expected[r]);
      if (!(d <= lse_error))
        lse_error = d;
    }
  }
  const double unit = Element<T>::kRounding;
  const bool ok = e.norm <= unit && e.worst <= 4 * unit && lse_error <= 1e-4 &&
                  same && gaps && ticket == 0;
  report.end(ok,
             format("err %.1e worst %.1e lse %.1e empty %zu%s%s%s", e.norm,
                    e.worst, lse_error, empty, same ? "" : " NOT REPRODUCIBLE",
                    gaps ? "" : " WROTE OUTSIDE", ticket ? " TICKET" : ""));
}

template <class M> void checkPlain() {
  check<M>({2, 4, 4, 1024, 1024});
  check<M>({2, 4, 2, 1000, 1300});
  check<M>({1, 6, 2, 777, 333, Order::Head});
  check<M>({2, 4, 4, 513, 640, Order::Packed});
  check<M>({3, 8, 1, 1, 700});
  check<M>({1, 2, 2, 1, 1});
  check<M>({1, 2, 2, 300, 200, Order::Position, false});
  check<M>({1, 2, 2, 130, 129, Order::Position, true, false});
  check<M>({16, 24, 24, 384, 384});
}
template <class M> void checkMods() {
  check<M>({2, 4, 4, 1024, 1024});
  check<M>({2, 4, 2, 700, 1000, Order::Packed});
  check<M>({1, 3, 1, 333, 129, Order::Head});
}

void checkAll() {
  checkPlain<Full>();
  checkPlain<Triangle>();
  check<Triangle>({1, 2, 2, 500, 0}); // no keys at all
  check<Full>({1, 2, 2, 64, 0});
  check<NegativeScale>({1, 4, 2, 500, 400});
  checkMods<SoftCap>();
  checkMods<RowFactor>();
#ifdef TEST_ALL
  checkMods<Relative>();
  checkMods<Window>();
  check<Window>({1, 1, 1, 1000, 200}); // windows behind the last key
  checkMods<Documents>();
  check<Sharded>({2, 4, 2, 512, 1024, Order::Position, true, true, 2, 0, 4});
  check<Sharded>({2, 4, 2, 512, 1000, Order::Head, true, true, 2, 1, 4});
#endif
}
void checkSmall() {
  check<Full>({1, 2, 1, 200, 300});
  check<Triangle>({1, 2, 2, 300, 200, Order::Packed});
  check<RowFactor>({1, 2, 1, 130, 150});
#ifdef TEST_ALL
  check<Documents>({1, 2, 1, 130, 150});
  check<Window>({1, 2, 1, 200, 333});
#endif
}

template <class M> void bench(Shape const &s) {
  Problem<M> problem(s);
  const double work =
      4. * s.batch * s.heads * s.queries * s.keys * D * (M::Causal ? 0.5 : 1);
  double rate[2];
  for (bool hot : {false, true})
    rate[hot] = work * 1e-9 / measure(hot, [&] { problem.launch(); });
  printf("bench %-60s cold %.0f hot %.0f TFLOP/s\n", title<M>(s).c_str(),
         rate[0], rate[1]);
  fflush(stdout);
}
void benchAll() {
  constexpr int heads = 2048 / D;
  bench<Full>({4, heads, heads, 4096, 4096});
  bench<Triangle>({4, heads, heads, 4096, 4096});
  bench<Full>({1, heads, heads, 16384, 16384});
  bench<Triangle>({1, heads, heads, 16384, 16384});
  bench<SoftCap>({4, heads, heads, 4096, 4096});
  bench<RowFactor>({4, heads, heads, 4096, 4096});
#ifdef TEST_ALL
  bench<Relative>({4, heads, heads, 4096, 4096});
  bench<Documents>({4, heads, heads, 4096, 4096});
#endif
  if (D == 128) // the GPT-3 block's, whole and a quarter of its heads
    for (int h : {96, 24})
      bench<Triangle>({1, h, h, 2048, 2048});
}

int main(int argc, char **argv) {
  const std::string mode = argc > 1 ? argv[1] : "check";
  if (mode == "bench") {
    benchAll();
    return 0;
  }
  mode == "small" ? checkSmall() : checkAll();
  return report.close(format("attention d%d %s", D, Element<T>::kName).c_str());
}
