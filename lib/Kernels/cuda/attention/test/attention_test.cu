//===- attention_test.cu - attention_fwd.cuh against a float64 reference --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//     attention_test [check | small | bench | caps]
//
// With TEST_SPLIT: blocks share steps. With TEST_BLOCKS: of block masks, which have a program of their own; with
// TEST_PACKED: of packed sequences; with TEST_DROPOUT: with dropout.
//
// `small` holds what a sanitizer can run in seconds, `bench` times against
// nothing but the clock, `caps` a soft cap beside the same without one.
//
//===----------------------------------------------------------------------===//

#include "attention_caps.cuh"
#include "attention_check.cuh"

template <class M> void check(Shape const &s) {
  checkProblem<M, Problem<M>>(s);
}
template <class M> void checkPlain() {
  check<M>({2, 4, 4, 1024, 1024});
  check<M>({2, 4, 2, 1000, 1300});
  check<M>({1, 6, 2, 777, 333, Order::Head});
  check<M>({2, 4, 4, 513, 640, Order::Packed});
  check<M>({3, 8, 1, 1, 700});
  check<M>({1, 2, 2, 1, 1});
  check<M>({1, 2, 2, 300, 200, Order::Position});
  check<M>({1, 2, 2, 130, 129, Order::Position, false});
  check<M>({16, 24, 24, 384, 384});
}
template <class M> void checkBlocks() {
  check<M>({2, 4, 4, 1024, 1024});
  check<M>({1, 4, 2, 700, 9000, Order::Packed}); // words of blocks
  check<M>({2, 3, 1, 333, 129, Order::Head});
}
/// The programs of block masks, instead of all others.
void checkBlocks(bool small) {
  if (small) {
    check<Blocks<Stripes>>({1, 2, 1, 300, 520});
    check<Blocks<Captured, 256>>({1, 2, 1, 300, 520});
    return;
  }
  checkBlocks<Blocks<Stripes>>();
  checkBlocks<Blocks<Captured, 256>>();
  checkBlocks<Blocks<Sharp<Stripes>>>();
  checkBlocks<Blocks<Window, 128, 192>>();
  checkBlocks<Blocks<SoftCap, 128, 256>>();
  checkBlocks<Blocks<TanhOf<CapturedTriangle, 50>>>();
  check<Blocks<Pattern<2>>>({1, 2, 1, 8192, 8192});
}
template <class M> void checkPacked() {
  check<Sequences<M>>({1, 4, 2, 1000, 1000});
  check<Sequences<M>>({1, 3, 1, 2300, 2300, Order::Packed});
  check<Sequences<M>>({1, 2, 2, 1, 1, Order::Head});
}
void checkPacked(bool small) {
  if (small)
    return check<Sequences<CapturedTriangle>>({1, 2, 1, 420, 420});
  checkPacked<CapturedTriangle>();
  checkPacked<Captured>();
  checkPacked<SoftCap>();
  checkPacked<TanhOf<CapturedTriangle, 50, 8>>();
  checkPacked<RowFactor>();
}
template <class M> void checkMods() {
  check<M>({2, 4, 4, 1024, 1024});
  check<M>({2, 4, 2, 700, 1000, Order::Packed});
  check<M>({1, 3, 1, 333, 129, Order::Head});
}

void checkAll() {
#ifdef TEST_SPLIT
  // Pieces of long tiles, one and both groups of them.
  for (int queries : {1, 64, 100, 256}) {
    check<Full>({1, 2, 1, queries, 9000});
    check<Triangle>({2, 1, 1, queries, 9000, Order::Head});
    check<Window>({1, 1, 1, queries, 5000});
    check<Documents>({1, 1, 1, queries, 5000, Order::Packed});
  }
  check<TanhOf<CapturedTriangle, 50, 8>>({1, 1, 1, 300, 9000});
  check<SoftCap>({1, 1, 1, 300, 9000});
  check<Full>({1, 1, 1, 128, 100000});
#endif
  checkPlain<Full>();
  checkPlain<Triangle>();
  check<Triangle>({1, 2, 2, 500, 0}); // no keys at all
  check<Full>({1, 2, 2, 64, 0});
  check<NegativeScale>({1, 4, 2, 500, 400});
  checkMods<Sharp<Captured>>();
  checkMods<Sharp<CapturedTriangle>>();
  checkMods<Sharp<Stripes>>();
  checkMods<SoftCap>();
  checkMods<RowFactor>();
#ifdef TEST_ALL
  // All scores near, some far, most of them; the cap alone; no bound.
  checkMods<TanhOf<CapturedTriangle, 50>>();
  checkMods<TanhOf<CapturedTriangle, 50, 8>>();
  checkMods<TanhOf<CapturedTriangle, 20, 16>>();
  checkMods<TanhOf<Captured, 1, 64>>();
  checkMods<TanhOf<Captured, 1000, 16>>();
  check<TanhOf<CapturedTriangle, 50>>({1, 2, 2, 500, 0}); // no keys at all
  // With keys that are hidden.
  checkMods<TanhOf<Stripes, 50>>();
  checkMods<TanhOf<Documents, 50, 8>>();
  checkMods<Relative>();
  check<Whole<Relative>>({2, 4, 2, 768, 1152, Order::Packed});
  check<Whole<Window>>({1, 3, 1, 1152, 384, Order::Head});
  checkMods<Window>();
  check<Window>({1, 1, 1, 1000, 200}); // windows behind the last key
  checkMods<Documents>();
  check<Sharded>({2, 4, 2, 512, 1024, Order::Position, true, 2, 0, 4});
  check<Sharded>({2, 4, 2, 512, 1000, Order::Head, true, 2, 1, 4});
#endif
}
void checkSmall() {
  check<Full>({1, 2, 1, 200, 300});
  check<Triangle>({1, 2, 2, 300, 200, Order::Packed});
  check<RowFactor>({1, 2, 1, 130, 150});
#ifdef TEST_ALL
  check<TanhOf<CapturedTriangle, 50, 8>>({1, 2, 1, 300, 520});
  check<Whole<Relative>>({1, 2, 1, 384, 384});
  check<Documents>({1, 2, 1, 130, 150});
  check<Window>({1, 2, 1, 200, 333});
#endif
}

template <class M> void bench(Shape const &s) {
  Problem<M> problem(s);
  const double pairs = problem.pairs ? problem.pairs
                                     : s.queries * (double)s.keys *
                                           (M::Causal ? 0.5 : 1);
  const double work = 2. * s.batch * s.heads * pairs * (D + DV);
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
  bench<TanhOf<CapturedTriangle, 50>>({4, heads, heads, 4096, 4096});
  bench<TanhOf<CapturedTriangle, 50, 16>>({4, heads, heads, 4096, 4096});
  bench<RowFactor>({4, heads, heads, 4096, 4096});
#ifdef TEST_ALL
  bench<Relative>({4, heads, heads, 4096, 4096});
  bench<Documents>({4, heads, heads, 4096, 4096});
#endif
  if (D == 128) // the GPT-3 block's, whole and a quarter of its heads
    for (int h : {96, 24})
      bench<Triangle>({1, h, h, 2048, 2048});
}

/// By turns: shares of the speed without a cap.
void benchCaps(Shape const &s) {
  using Near = TanhOf<CapturedTriangle, 50>;
  Problem<Triangle> none(s);
  Problem<Unknown<Near>> unknown(s);
  Problem<Near> near(s);
  Problem<TanhOf<CapturedTriangle, 50, 16>> far(s);
  const std::function<void()> launches[] = {
      [&] { none.launch(); }, [&] { unknown.launch(); },
      [&] { near.launch(); }, [&] { far.launch(); }};
  std::vector<double> shares[4];
  for (int round = 0; round < 7; round++) {
    double ms[4];
    for (int i = 0; i < 4; i++) {
      ms[i] = measure(/*hot=*/true, launches[i]);
      shares[i].push_back(ms[0] / ms[i]);
    }
  }
  for (auto &all : shares)
    std::sort(all.begin(), all.end());
  printf("caps %-40s unknown %.3f near %.3f far %.3f\n",
         title<Triangle>(s).c_str(), shares[1][3], shares[2][3], shares[3][3]);
  fflush(stdout);
}
void benchCaps() {
  constexpr int heads = 2048 / D;
  benchCaps({4, heads, heads, 4096, 4096});
  benchCaps({1, heads, heads, 16384, 16384});
}

void benchBlocks() {
  bench<Blocks<Pattern<0>>>({2, 2048 / D, 2048 / D, 8192, 8192});
  bench<Triangle>({2, 2048 / D, 2048 / D, 8192, 8192});
  bench<Blocks<Pattern<1>>>({2, 2048 / D, 2048 / D, 8192, 8192});
  bench<Blocks<Pattern<2>>>({2, 2048 / D, 2048 / D, 8192, 8192});
  bench<Blocks<Pattern<3>>>({2, 2048 / D, 2048 / D, 8192, 8192});
}

#ifdef TEST_DROPOUT
template <class M> void checkDropped() {
  check<Dropped<M>>({2, 4, 4, 1024, 1024});
  check<Dropped<M>>({2, 4, 2, 700, 1000, Order::Packed});
  check<Dropped<M>>({1, 3, 1, 333, 136, Order::Head});
  check<DroppedAnywhere<M>>({2, 4, 2, 700, 1001, Order::Packed});
  check<DroppedAnywhere<M>>({1, 3, 1, 333, 130, Order::Head});
  check<DroppedAnywhere<M>>({1, 2, 2, 257, 1027});
}
void checkDropped(bool small) {
  if (small) {
    check<Dropped<CapturedTriangle>>({1, 2, 1, 130, 152});
    check<DroppedAnywhere<CapturedTriangle>>({1, 2, 1, 130, 153});
    return;
  }
  checkDropped<CapturedTriangle>();
  checkDropped<Captured>();
  checkDropped<SoftCap>();
  checkDropped<TanhOf<CapturedTriangle, 50>>();
  checkDropped<Window>();
  checkDropped<Blocks<Stripes>>();
}
void benchDropped() {
  constexpr int heads = 2048 / D;
  bench<Dropped<Captured>>({4, heads, heads, 4096, 4096});
  bench<Dropped<CapturedTriangle>>({4, heads, heads, 4096, 4096});
  bench<DroppedAnywhere<Captured>>({4, heads, heads, 4096, 4095});
}
#endif

int main(int argc, char **argv) {
  const std::string mode = argc > 1 ? argv[1] : "check";
#ifdef TEST_BLOCKS
  mode == "bench" ? benchBlocks() : checkBlocks(mode == "small");
#elif defined(TEST_PACKED)
  checkPacked(mode == "small");
#elif defined(TEST_DROPOUT)
  mode == "bench" ? benchDropped() : checkDropped(mode == "small");
#else
  mode == "bench"   ? benchAll()
  : mode == "caps"  ? benchCaps()
  : mode == "small" ? checkSmall()
                    : checkAll();
#endif
  if (mode == "bench" || mode == "caps")
    return 0;
  return report.close(format("attention d%d/%d %s", D, DV, Element<T>::kName).c_str());
}
