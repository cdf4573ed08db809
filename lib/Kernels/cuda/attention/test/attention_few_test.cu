//===- attention_few_test.cu - attention_few.cuh against float64 ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//     attention_few_test [check | small | bench]
//
// TEST_ROWS is how many rows a tile has at most: queries of each head of a group.
// TEST_PAGED: keys and values are pages. TEST_WHOLE: of attention_fwd.cuh, whose
// tiles have the queries of one head, whole or, by TEST_SPLIT, shared.
// The modes are those of attention_test.
//
//===----------------------------------------------------------------------===//

#include "attention_check.cuh"
#include "attention_pages.cuh"

/// All, none, one, whole pages, and any.
template <class M> std::vector<int> mixedLengths(Shape const &s) {
  std::vector<int> lengths;
  for (unsigned b = 0; b < (unsigned)s.batch; b++)
    lengths.push_back(b % 7 == 0   ? s.keys
                      : b % 7 == 2 ? 0
                      : b % 7 == 3 ? 1
                      : b % 7 == 4 ? s.keys / 2 / std::max(M::PageRows, 1) *
                                         M::PageRows
                                   : (b * 2654435761u >> 8) % (s.keys + 1));
  return lengths;
}

#ifndef TEST_WHOLE
template <class M> using FewOf = Few<T, D, M, DV, TEST_ROWS, 132>;

/// The same tensors.
template <class M> struct FewProblem : Problem<M> {
  using C = FewOf<M>;
  Array<float> pieces{(size_t)2 * C::MostPipes * C::PieceFloats};
  Array<int> arrived{4 * C::MostPipes};
  FewMaps few_maps;
  FewParams<typename M::Args> few = {};
  using Cache = PagedCache<M, FewProblem>;
  std::unique_ptr<Cache> cache;

  explicit FewProblem(Shape const &shape) : Problem<M>(shape) {
    auto const &s = this->s;
    const unsigned group = s.heads / s.key_heads;
    few.tile_queries = std::min<int>(TEST_ROWS / group, s.queries);
    few_maps = {rows_map<T>(this->q, this->lq, s.batch, s.heads, s.queries, D,
                            few.tile_queries, false, group),
                this->map(this->k, this->lk, s.keys, s.key_heads, C::BN),
                this->map(this->v, this->lv, s.keys, s.key_heads, C::BN, DV)};
    auto const &p = this->p;
    few.o = p.o, few.lse = p.lse, few.args = p.args;
    set_strides(few.o_strides, this->lo);
    set_sizes(few, s.batch, s.heads, s.key_heads, s.queries, s.keys);
    few.causal_shift = p.causal_shift;
    few.pieces = pieces, few.arrived = arrived;
    CHECK(cudaMemset(arrived, 0, 4 * C::MostPipes * sizeof(int)));
    setLengths(mixedLengths<M>(s), true);
  }
  void setLengths(std::vector<int> const &lengths, bool mixed = false) {
    Problem<M>::setLengths(lengths);
    if constexpr (M::PageRows > 0) {
      cache = std::make_unique<Cache>(*this, lengths, mixed);
      const int heads = this->s.key_heads, box = kBoxRows<C::BN, M::PageRows>;
      few_maps.k = cache->map(*cache->k, cache->lk, heads, box, D);
      few_maps.v = cache->map(cache->values(), cache->lv, heads, box, DV);
      few.args.table = *cache->table;
    }
  }
  bool settled() const {
    for (int n : arrived.host())
      if (n)
        return false;
    return true;
  }
  void launch() { launch_few<C>(few_maps, few, C::MostPipes / C::Pipes); }
};

#else
/// The same tensors.
template <class M> struct FewProblem : Problem<M> {
  using C = typename Problem<M>::C;
  using Cache = PagedCache<M, FewProblem>;
  std::unique_ptr<Cache> cache;

  explicit FewProblem(Shape const &shape) : Problem<M>(shape) {
    setLengths(mixedLengths<M>(shape), true);
  }
  void setLengths(std::vector<int> const &lengths, bool mixed = false) {
    Problem<M>::setLengths(lengths);
    if constexpr (M::PageRows > 0) {
      cache = std::make_unique<Cache>(*this, lengths, mixed);
      const int heads = this->s.key_heads, box = kBoxRows<C::BN, M::PageRows>;
      this->maps.k = cache->map(*cache->k, cache->lk, heads, box, D);
      this->maps.v = cache->map(cache->values(), cache->lv, heads, box, DV);
      this->p.args.table = *cache->table;
    }
  }
};
#endif

template <class M> void check(Shape const &s) {
  checkProblem<M, FewProblem<M>>(s);
}
template <class M> void checkMods() {
  check<M>({3, 8, 2, 77, 1300});
  check<M>({2, 4, 4, 150, 150, Order::Head});
  check<M>({3, 8, 8, 1, 700});
  check<M>({7, 16, 2, 1, 2000, Order::Packed});
  check<M>({2, 4, 4, 7, 333, Order::Head});
  check<M>({1, 8, 1, 1, 20000});
  check<M>({200, 4, 2, 2, 190, Order::Position, false});
}
#ifdef TEST_PAGED
template <int R> void checkPages() {
  const auto keys = [](int n) { return (n + R - 1) / R * R; };
  check<Pages<Lengths, R>>({14, 8, 2, 2, keys(700)});
  check<Pages<Lengths, R>>({8, 16, 2, 1, keys(2000), Order::Packed});
  check<Pages<Lengths, R>>({5, 4, 4, 7, keys(333), Order::Head});
  check<Pages<LastKeys, R>>({9, 8, 8, 1, keys(1500), Order::Head});
  check<Pages<Prompt, R>>({8, 8, 2, 203, keys(1500)});
}
void checkAll(bool small) {
  if (small) {
    check<Pages<Lengths, 16>>({5, 4, 2, 2, 1504});
    check<Pages<LastKeys, 3>>({2, 2, 1, 3, 300});
    check<Pages<Prompt, 16>>({3, 4, 2, 37, 320});
    return;
  }
  checkPages<1>();
  checkPages<4>();
  checkPages<16>();
  checkPages<24>();
  checkPages<64>();
  checkPages<128>();
  checkPages<256>();
  check<Pages<Lengths, 8>>({200, 4, 2, 2, 192, Order::Position, false});
  check<Pages<Lengths, 1000>>({3, 8, 1, 1, 20000});
  check<Pages<Lengths, 64>>({1, 16, 8, 1, 139968}); // two steps under way
  check<Pages<Lengths, 16>>({2, 2, 2, 1, 0});
}
#else
void checkAll(bool small) {
  if (small) {
    check<Lengths>({5, 4, 2, 2, 1500});
    check<RowFactor>({1, 2, 1, 3, 150});
    check<Triangle>({2, 4, 2, 37, 300});
    return;
  }
  checkMods<Full>();
  checkMods<Triangle>();
  checkMods<Lengths>();
  checkMods<Prompt>();
  checkMods<SoftCap>();
  checkMods<Window>();
  checkMods<Documents>();
  checkMods<RowFactor>();
  checkMods<NegativeScale>();
  check<Whole<Window>>({3, 8, 2, 77, 1152});
  check<Sharded>({2, 4, 2, 4, 1000, Order::Head, true, 2, 1, 4});
  check<Lengths>({1, 16, 8, 1, 139999}); // two steps under way
  check<Full>({2, 2, 2, 1, 0}); // no keys at all
  check<Full>({1, 1, 1, 1, 1});
  if (TEST_ROWS == 64) {
    check<Lengths>({9, 64, 8, 8, 3000});
    check<Triangle>({1, 16, 1, 4, 9999, Order::Packed});
  }
}

#endif

/// What keys and values are read at, beside a copy.
template <class M> void bench(Shape const &s, std::vector<int> const &lengths) {
  FewProblem<M> problem(s);
  problem.setLengths(lengths);
  double keys = 0;
  for (int length : lengths)
    keys += length;
  const double bytes = keys * s.key_heads * (D + DV) * 2;
  const size_t n = (size_t)1 << 30;
  Array<char> from(n), to(n);
  const double copy =
      2e-9 * n / measure(false, [&] {
        CHECK(cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToDevice));
      });
  // What is more than L2 may hold need not be driven out of it.
  const double rate =
      bytes * 1e-9 / measure(bytes > 4e8, [&] { problem.launch(); });
  printf("bench %-60s mean %.0f keys: %.2f TB/s, copy %.2f, ratio %.3f\n",
         title<M>(s).c_str(), keys / s.batch, rate, copy, rate / copy);
  fflush(stdout);
}
/// A piece of a prompt, the last `queries` of its keys.
template <class M> void benchPrompt(Shape const &s) {
  FewProblem<M> problem(s);
  problem.setLengths(std::vector<int>(s.batch, s.keys));
  const double pairs = (double)s.queries * s.keys -
                       0.5 * s.queries * (s.queries - 1.0);
  const double flops = 2.0 * pairs * (D + DV) * s.heads * s.batch;
  const double few = measure(false, [&] { problem.launch(); });
  double whole = 0;
#ifndef TEST_WHOLE
  if constexpr (M::PageRows == 0)
    whole = measure(false, [&] { static_cast<Problem<M> &>(problem).launch(); });
#endif
  printf("bench %-60s %.0f TFLOP/s; in tiles of its own %.0f\n",
         title<M>(s).c_str(), flops * 1e-9 / few,
         whole ? flops * 1e-9 / whole : 0);
  fflush(stdout);
}
void benchAll() {
  if (TEST_ROWS >= 64) {
    auto prompts = [](auto mods) {
      using M = decltype(mods);
      for (int queries : {16, 64, 256, 512, 2048}) {
        benchPrompt<M>({1, 64, 8, queries, 32768});
        benchPrompt<M>({1, 8, 1, queries, 32768});
        benchPrompt<M>({8, 32, 8, queries, 4096});
      }
      benchPrompt<M>({1, 1, 1, 4096, 4096});
      benchPrompt<M>({1, 4, 4, 4096, 4096});
      benchPrompt<M>({1, 16, 16, 1024, 1024});
    };
    prompts(Prompt());
#ifdef TEST_PAGED
    prompts(Pages<Prompt, 16>());
    prompts(Pages<Prompt, 128>());
#else
    prompts(Triangle());
    prompts(Full());
#endif
    return;
  }
  // 64 lognormal lengths, of a mean of 8027: those of the peers' figures.
  const std::vector<int> drawn = {
      951,   1123,  1217,  1401,  1630,  1779,  1834,  1938,  2048,  2274,
      2311,  2595,  2599,  2895,  3090,  3153,  3186,  3589,  4054,  4718,
      4797,  4807,  4965,  5233,  5508,  5613,  5676,  5810,  5852,  6094,
      6223,  6488,  6596,  6644,  7018,  7131,  7195,  7354,  7516,  7530,
      7530,  7821,  8196,  8945,  9402,  9516,  9707,  9819,  10012, 10604,
      11111, 11256, 11343, 11816, 12466, 12884, 15503, 18785, 19205, 20293,
      22736, 23236, 26334, 32768};
  const int group = TEST_ROWS;
  auto all = [&](auto mods) {
    using M = decltype(mods);
    bench<M>({64, 8 * group, 8, 1, 32768}, drawn);
    bench<M>({1, 8 * group, 8, 1, 131072}, {131072});
    bench<M>({8, 8 * group, 8, 1, 4096}, std::vector<int>(8, 4096));
    bench<M>({256, 8 * group, 8, 1, 1024}, std::vector<int>(256, 1000));
  };
  all(Lengths());
#ifdef TEST_PAGED
  all(Pages<Lengths, 16>());
  all(Pages<Lengths, 64>());
  all(Pages<Lengths, 128>());
#endif
}

int main(int argc, char **argv) {
  const std::string mode = argc > 1 ? argv[1] : "check";
  if (mode == "bench") {
    benchAll();
    return 0;
  }
  checkAll(mode == "small");
#ifdef TEST_PAGED
  const char *const pages = " in pages";
#else
  const char *const pages = "";
#endif
  return report.close(format("attention of %d rows d%d/%d %s%s", TEST_ROWS, D,
                             DV, Element<T>::kName, pages)
                          .c_str());
}
