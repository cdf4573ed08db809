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
// With TEST_BLOCKS: of block masks, which have a program of their own; with
// TEST_PACKED: of packed sequences; with TEST_DROPOUT: with dropout.
//
// `small` holds what a sanitizer can run in seconds, `bench` times against
// nothing but the clock.
//
//===----------------------------------------------------------------------===//

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
  check<M>({1, 2, 2, 300, 200, Order::Position, false});
  check<M>({1, 2, 2, 130, 129, Order::Position, true, false});
  check<M>({16, 24, 24, 384, 384});
}
template <class M> void checkBlocks() {
  check<M>({2, 4, 4, 1024, 1024});
  check<M>({1, 4, 2, 700, 9000, Order::Packed}); // words of blocks
  check<M>({2, 3, 1, 333, 129, Order::Head, false});
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
  check<Blocks<Pattern<2>>>({1, 2, 1, 8192, 8192});
}
template <class M> void checkPacked() {
  check<Sequences<M>>({1, 4, 2, 1000, 1000});
  check<Sequences<M>>({1, 3, 1, 2300, 2300, Order::Packed});
  check<Sequences<M>>({1, 2, 2, 1, 1, Order::Head, false});
}
void checkPacked(bool small) {
  if (small)
    return check<Sequences<CapturedTriangle>>({1, 2, 1, 420, 420});
  checkPacked<CapturedTriangle>();
  checkPacked<Captured>();
  checkPacked<SoftCap>();
  checkPacked<RowFactor>();
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
  checkMods<Sharp<Captured>>();
  checkMods<Sharp<CapturedTriangle>>();
  checkMods<Sharp<Stripes>>();
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
  check<Dropped<M>>({1, 3, 1, 333, 132, Order::Head});
}
void checkDropped(bool small) {
  if (small)
    return check<Dropped<CapturedTriangle>>({1, 2, 1, 130, 152});
  checkDropped<CapturedTriangle>();
  checkDropped<Captured>();
  checkDropped<SoftCap>();
  checkDropped<Window>();
  checkDropped<Blocks<Stripes>>();
}
void benchDropped() {
  constexpr int heads = 2048 / D;
  bench<Dropped<Captured>>({4, heads, heads, 4096, 4096});
  bench<Dropped<CapturedTriangle>>({4, heads, heads, 4096, 4096});
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
  mode == "bench" ? benchAll() : mode == "small" ? checkSmall() : checkAll();
#endif
  if (mode == "bench")
    return 0;
  return report.close(format("attention d%d/%d %s", D, DV, Element<T>::kName).c_str());
}
