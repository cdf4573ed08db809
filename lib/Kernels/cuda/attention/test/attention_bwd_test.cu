//===- attention_bwd_test.cu - attention_bwd.cuh against float64 ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//     attention_bwd_test [check | small | bench]
//
// With TEST_BLOCKS: of block masks, which have a program of their own, and so
// many random ones by `fuzz COUNT`; with TEST_PACKED: of packed sequences; with
// TEST_DROPOUT: with dropout. With TESSERA_TRAP_WAITS: that broken walks end a
// run (attention_trap.cuh), in a process of their own, `raised` or `missing`.
//
// The forward kernel makes what the backward starts from. `small` holds what a
// sanitizer can run in seconds; `bench` times, after a check of some rows of
// each size, and holds the bits of twenty ordered runs against each other.
//
//===----------------------------------------------------------------------===//

#include "attention.cuh"

#include <random>
#include <unistd.h>

template <class M, bool Ordered> struct Backward : Problem<M> {
  using C = Bwd<T, D, M, Ordered, DV>;
  using P = BwdParams<typename M::Args, M::Sums>;
  using Base = Problem<M>;
  using Base::s, Base::packed, Base::lq, Base::lk, Base::lv, Base::lo,
      Base::rows, Base::key_rows, Base::kv_row, Base::o_row;
  int64 dq_row = packed ? 2 * D : D;
  Layout ldq = layout(s.order, s.heads, s.queries, dq_row);
  Array<Stored> dout{rows * o_row}, dq{rows * dq_row}, dk{key_rows * kv_row},
      own_dv{packed ? 0 : key_rows * DV};
  Stored *dv = packed ? dk + D : own_dv.data;
  // Of query heads, where these share keys.
  const bool shares = s.heads != s.key_heads;
  const Layout shared_dk = layout(Order::Head, s.heads, s.keys, D),
               shared_dv = layout(Order::Head, s.heads, s.keys, DV);
  Array<Stored> head_dk{shares ? (size_t)s.batch * shared_dk.batch : 0},
      head_dv{shares ? (size_t)s.batch * shared_dv.batch : 0};
  Array<float> dlse{rows};
  Array<char> workspace{(size_t)BwdWorkspace<C>::bytes(
      this->s.batch, this->s.heads, this->s.queries, this->s.keys,
      this->sequences)};
  std::vector<std::unique_ptr<Array<float>>> sums;
  using Walked = WalkedMask<std::max(M::BlockQueries, C::BM),
                            std::max(M::BlockKeys, C::BN), C::Causal>;
  const int64 words = // of a head and direction
      C::Walks
          ? WalkParts(this->s.queries, this->s.keys, Walked::Passes).words()
          : 0;
  Array<int> walks{(size_t)(2 * words * this->s.batch * this->s.heads)};
  BwdMaps maps;
  P p = {};

  explicit Backward(Shape const &shape, bool has_dlse = false) : Base(shape) {
    randomize(dout, 6), randomize(dlse, 7);
    Base::launch();
    maps = {this->map(this->q, lq, s.queries, s.heads, C::QueryBox),
            this->map(this->k, lk, s.keys, s.key_heads, C::KeyBox),
            this->map(this->v, lv, s.keys, s.key_heads, C::KeyBox, DV),
            this->map(dout, lo, s.queries, s.heads, C::QueryBox, DV),
            shares ? this->map(head_dk, shared_dk, s.keys, s.heads, 64)
                   : this->map(dk, lk, s.keys, s.key_heads, 64),
            shares ? this->map(head_dv, shared_dv, s.keys, s.heads, 64, DV)
                   : this->map(dv, lv, s.keys, s.key_heads, 64, DV)};
    p.o = this->o.data, p.dout = dout.data, p.dq = dq.data;
    p.lse = this->lse, p.dlse = has_dlse ? dlse.data : nullptr;
    set_strides(p.o_strides, lo), set_strides(p.dout_strides, lo);
    set_strides(p.dq_strides, ldq);
    set_sizes(p, s.batch, s.heads, s.key_heads, s.queries, s.keys);
    std::copy_n(p.lse_strides, 3, p.dlse_strides);
    p.workspace = workspace.data, p.ticket = this->ticket;
    p.causal_shift = Base::p.causal_shift, p.args = Base::p.args;
    if constexpr (M::Packed)
      p.args.packed = this->list(C::BN);
    if constexpr (C::Walks)
      p.args.walks = walks, p.args.words = words;
    for (int n = 0; n < M::Sums; n++) {
      const int64 size = sum_size(M::sum_by(n), s.queries, s.keys);
      sums.push_back(std::make_unique<Array<float>>(s.batch * s.heads * size));
      p.sums[n] = {sums[n]->data, {s.heads * size, size, 1, 1}};
      if (M::sum_by(n) == SumBy::Score)
        p.sums[n].strides[2] = s.keys;
    }
  }

  void clear() {
    dq.clear(), dk.clear(), own_dv.clear(), workspace.clear(), walks.clear();
    head_dk.clear(), head_dv.clear();
    for (auto const &sum : sums)
      sum->clear();
  }
  Walked walked() const {
    const int64 columns = Base::blocks(s.keys, M::BlockKeys),
                kinds = Base::blocks(s.queries, M::BlockQueries) * columns;
    return {this->kinds, {s.heads * kinds, kinds, columns, 1},
            walks,       words,
            s.batch,     s.heads,
            s.queries,   s.keys};
  }
  void prepare() {
    if constexpr (C::Walks)
      launch_walks(walked());
    launch_prepare<C>(p, this->sequences);
  }
  void main(int blocks) { launch_bwd<C>(maps, p, blocks, this->sequences); }
  void finish() {
    launch_finish<C>(p, this->sequences);
    if (shares)
      launch_share<C>(p, head_dk.data, head_dv.data, dk.data, lk, dv, lv);
  }
  void launch(int blocks = multiprocessors()) {
    prepare(), main(blocks), finish();
    this->fill(dq.data, ldq, s.heads, D, 0);
    this->fill(dk.data, lk, s.key_heads, D, 0);
    this->fill(dv, lv, s.key_heads, DV, 0);
  }
};

Report report;

/// Rows of a tensor in its layout, as floats, every `step`-th position.
std::vector<float> gather(std::vector<Stored> const &x, Layout const &l,
                          int64 offset, int batch, int heads, int positions,
                          int step, int depth = D) {
  std::vector<float> rows;
  for (int b = 0; b < batch; b++)
    for (int h = 0; h < heads; h++)
      for (int i = 0; i < positions; i += step)
        for (int d = 0; d < depth; d++)
          rows.push_back((float)x[offset + b * l.batch + h * l.head +
                                  (int64)i * l.position + d]);
  return rows;
}

/// The largest error of dq, dk and dv, and whether it is small enough.
template <class M, bool Ordered>
std::pair<bool, std::string> compare(Backward<M, Ordered> &x, int step) {
  Shape const &s = x.s;
  const int queries = (s.queries + step - 1) / step;
  const int keys = (s.keys + step - 1) / step;
  Array<float> rq((size_t)s.batch * s.heads * queries * D),
      rk((size_t)s.batch * s.key_heads * keys * D),
      rv((size_t)s.batch * s.key_heads * keys * DV);
  if (queries)
    reference_bwd<Exact<M>, false><<<dim3((queries + 3) / 4, s.heads, s.batch), 128>>>(
        x.q, x.k, x.v, x.o, x.dout, x.lq, x.lk, x.lv, x.lo, x.p.lse, x.p.dlse, rq,
        nullptr, x.p, step);
  if (keys)
    reference_bwd<Exact<M>, true><<<dim3((keys + 3) / 4, s.key_heads, s.batch), 128>>>(
        x.q, x.k, x.v, x.o, x.dout, x.lq, x.lk, x.lv, x.lo, x.p.lse, x.p.dlse, rk, rv,
        x.p, step);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  const auto dq = x.dq.host();
  const auto dk = x.dk.host(), own_dv = x.own_dv.host();
  const double unit = Element<T>::kRounding;
  // A result is rounded, and so is each product of scores' gradients that it is
  // the sum of: these average out if there are some.
  const double norm = (std::min(s.queries, s.keys) < 16 ? 2 : 1) * unit;
  // A gradient may vanish, as that of a query which sees one key: of terms that
  // cancel, rounding is left.
  const double floor = 1e-2;
  const Errors e[] = {
      errors(gather(dq, x.ldq, 0, s.batch, s.heads, s.queries, step),
             rq.host(), D, floor),
      errors(gather(dk, x.lk, 0, s.batch, s.key_heads, s.keys, step), rk.host(),
             D, floor),
      errors(gather(x.packed ? dk : own_dv, x.lv, x.packed ? D : 0, s.batch,
                    s.key_heads, s.keys, step, DV),
             rv.host(), DV, floor)};
  bool ok = true;
  for (Errors const &one : e)
    ok = ok && one.norm <= norm && one.worst <= 8 * unit;
  return {ok, format("err %.1e %.1e %.1e worst %.1e %.1e %.1e", e[0].norm,
                     e[1].norm, e[2].norm, e[0].worst, e[1].worst, e[2].worst)};
}

/// The largest error of a sum for captured tensors, of its addends' magnitude.
template <class M, bool Ordered> double compare_sums(Backward<M, Ordered> &x) {
  double worst = 0;
  if constexpr (M::Sums > 0) {
    Shape const &s = x.s;
    std::vector<std::unique_ptr<Array<double>>> made;
    Array<double *> pointers(2 * M::Sums);
    std::vector<double *> addresses;
    for (int i = 0; i < 2 * M::Sums; i++) {
      made.push_back(std::make_unique<Array<double>>(x.sums[i % M::Sums]->n));
      CHECK(cudaMemset(made[i]->data, 0, made[i]->n * sizeof(double)));
      addresses.push_back(made[i]->data);
    }
    CHECK(cudaMemcpy(pointers, addresses.data(),
                     addresses.size() * sizeof(double *),
                     cudaMemcpyHostToDevice));
    const int64 scores = (int64)s.batch * s.heads * s.queries * s.keys;
    if (scores)
      reference_sums<Exact<M>><<<(scores + 255) / 256, 256>>>(
          x.q, x.k, x.v, x.o, x.dout, x.lq, x.lk, x.lv, x.lo, x.p.lse, x.p.dlse,
          pointers.data, pointers.data + M::Sums, x.p);
    CHECK(cudaGetLastError());
    for (int n = 0; n < M::Sums; n++) {
      const auto sum = x.sums[n]->host();
      const auto exact = made[n]->host(), of = made[n + M::Sums]->host();
      for (size_t i = 0; i < sum.size(); i++)
        if (double off = std::fabs(sum[i] - exact[i]); !(off == 0))
          if (!(off / of[i] <= worst))
            worst = off / of[i];
    }
  }
  return worst;
}

/// A run's results, to hold others against.
struct Bits {
  std::vector<Stored> dq, dk, dv;
  std::vector<std::vector<float>> sums;
  template <class B>
  explicit Bits(B &x) : dq(x.dq.host()), dk(x.dk.host()), dv(x.own_dv.host()) {
    for (auto const &sum : x.sums)
      sums.push_back(sum->host());
  }
  bool operator==(Bits const &other) const {
    auto same = [](auto const &a, auto const &b) {
      return !memcmp(a.data(), b.data(), a.size() * sizeof a[0]);
    };
    bool all = same(dq, other.dq) && same(dk, other.dk) && same(dv, other.dv);
    for (size_t n = 0; n < sums.size(); n++)
      all = all && same(sums[n], other.sums[n]);
    return all;
  }
};

__global__ void fill_rows(Stored *x, Layout l, int begin, float value) {
  x[blockIdx.x * l.head + (begin + blockIdx.y) * l.position + threadIdx.x] =
      (Stored)value;
}
/// Whether the longest sequence, if it is NaN, leaves the others as they are,
/// and so what is behind it that is not used.
template <class M, bool Ordered> bool separate(Backward<M, Ordered> &x) {
  Shape const &s = x.s;
  int of = 0;
  for (int i = 0; i < x.sequences; i++)
    if (x.length(i) > x.length(of))
      of = i;
  auto results = [&] {
    x.clear(), x.launch();
    CHECK(cudaDeviceSynchronize());
    const auto dk = x.dk.host();
    return std::vector{
        gather(x.o.host(), x.lo, 0, 1, s.heads, s.queries, 1),
        gather(x.dq.host(), x.lo, 0, 1, s.heads, s.queries, 1),
        gather(dk, x.lk, 0, 1, s.key_heads, s.keys, 1),
        gather(x.packed ? dk : x.own_dv.host(), x.lk, x.packed ? D : 0, 1,
               s.key_heads, s.keys, 1)};
  };
  const auto before = results();
  auto fill = [&](Stored *to, Layout const &l, int heads) {
    const int rows = x.begins[of + 1] - x.begins[of];
    fill_rows<<<dim3(heads, rows), D>>>(to, l, x.begins[of], NAN);
  };
  fill(x.q, x.lq, s.heads), fill(x.dout, x.lo, s.heads);
  fill(x.k, x.lk, s.key_heads), fill(x.v, x.lk, s.key_heads);
  static_cast<Problem<M> &>(x).launch();
  const auto after = results();
  size_t leaks = 0;
  for (size_t r = 0; r < before.size(); r++)
    for (size_t i = 0; i < before[r].size(); i++) {
      const int position = i / D % s.queries;
      const bool own =
          x.begins[of] <= position && position < x.begins[of] + x.length(of);
      leaks += own ? !std::isnan(after[r][i]) : after[r][i] != before[r][i];
    }
  return leaks == 0;
}

template <class M, bool Ordered> std::string name(Shape const &s) {
  return (Ordered ? "ordered " : "") + title<M>(s);
}

template <class M, bool Ordered>
void check(Shape const &s, bool has_dlse = false, int runs = 4) {
  report.begin(name<M, Ordered>(s) + (has_dlse ? " dlse" : ""));
  Backward<M, Ordered> x(s, has_dlse);
  x.launch();
  CHECK(cudaDeviceSynchronize());
  auto [ok, text] = compare(x, 1);
  if (M::Sums) {
    const double off = compare_sums(x);
    ok = ok && off <= 2e-5;
    text += format(" sums %.1e", off);
  }
  const auto dq = x.dq.host();
  bool gaps = true; // what lies between the rows is untouched
  if (x.packed)
    for (size_t i = 0; i < dq.size(); i++) {
      unsigned short bits;
      memcpy(&bits, &dq[i], 2);
      gaps = gaps && (i / D % 2 == 0 || bits == 0xffff);
    }
  // The same bits with any number of blocks.
  int differ = 0;
  if (Ordered) {
    const Bits before(x);
    const int blocks[] = {multiprocessors(), 1, 7, 50};
    for (int run = 0; run < runs; run++) {
      x.clear();
      x.launch(blocks[run % 4]);
      CHECK(cudaDeviceSynchronize());
      differ += !(Bits(x) == before);
    }
  }
  const int ticket = x.ticket.host()[0];
  bool alone = true;
  if constexpr (M::Packed && Ordered)
    alone = separate(x);
  report.end(ok && gaps && !differ && ticket == 0 && alone,
             text + (gaps ? "" : " WROTE OUTSIDE") +
                 (alone ? "" : " SEQUENCES MIX") +
                 (differ ? format(" %d RUNS DIFFER", differ) : "") +
                 (ticket ? " TICKET" : ""));
}
template <class M> void both(Shape const &s, bool has_dlse = false) {
  check<M, false>(s, has_dlse);
  check<M, true>(s, has_dlse);
}

template <class M, bool Ordered> double bench(Shape const &s) {
  report.begin(name<M, Ordered>(s));
  Backward<M, Ordered> x(s);
  x.launch();
  auto [ok, text] = compare(x, 255);
  if (Ordered) {
    const Bits before(x);
    int differ = 0;
    for (int i = 0; i < 20; i++) {
      x.launch();
      differ += !(Bits(x) == before);
    }
    ok = ok && !differ;
    text += format(", %d of 20 runs differ", differ);
  }
  const double pairs =
      x.pairs ? x.pairs : s.queries * (double)s.keys * (M::Causal ? 0.5 : 1);
  const double work = 2. * s.batch * s.heads * pairs * (3 * D + 2 * DV);
  double whole[2], main[2] = {};
  for (bool hot : {false, true}) {
    whole[hot] = work * 1e-9 / measure(hot, [&] { x.launch(); });
    if (!Ordered) // prepare resets what an ordered run counts
      main[hot] =
          work * 1e-9 / measure(hot, [&] { x.main(multiprocessors()); });
  }
  report.end(ok, text);
  printf("  cold %.0f hot %.0f TFLOP/s, main %.0f %.0f; prepare %.1f us, "
         "finish %.1f us\n",
         whole[0], whole[1], main[0], main[1],
         1e3 * measure(false, [&] { x.prepare(); }),
         1e3 * measure(false, [&] { x.finish(); }));
  fflush(stdout);
  return whole[0];
}
template <class M> void benchBoth(Shape const &s) {
  const double free = bench<M, false>(s);
  printf("  ordered / free: %.3f\n", bench<M, true>(s) / free);
}

template <class M> void checkPlain() {
  both<M>({2, 4, 4, 1024, 1024});
  both<M>({2, 4, 2, 1000, 1300}, true);
  both<M>({1, 6, 2, 777, 333, Order::Head});
  both<M>({2, 4, 4, 513, 640, Order::Packed});
  both<M>({3, 8, 1, 1, 700}, true);
  both<M>({1, 2, 2, 1, 2});
  both<M>({1, 2, 2, 300, 0});
  both<M>({1, 2, 2, 0, 300});
  both<M>({16, 24, 24, 384, 384});
}
/// Several sections of heads.
template <class M> void checkOrder() {
  check<M, true>({1, 20, 20, 1100, 1100}, false, 20);
  check<M, true>({2, 27, 9, 1000, 700}, false, 20);
  check<M, true>({1, 9, 9, 130, 2000}, false, 20);
}
template <class M> void checkMods() {
  both<M>({2, 4, 4, 1024, 1024});
  both<M>({2, 4, 2, 700, 1000, Order::Packed}, true);
  both<M>({1, 3, 1, 333, 129, Order::Head});
}
// Wide heads have no sums for captured tensors.
#if TEST_D <= 128 && defined(TEST_ALL)
void checkSums() {
  checkMods<Relative>();
  checkMods<RowBias>();
  checkMods<KeyBias>();
  checkMods<AllSums>();
  both<Whole<AllSums>>({2, 4, 2, 768, 1152, Order::Packed}, true);
  both<Whole<Relative>>({1, 3, 1, 1152, 384, Order::Head});
  both<AllSums>({2, 4, 1, 300, 555}, true);
  both<AllSums>({1, 2, 2, 0, 300});
  both<AllSums>({1, 2, 1, 300, 0});
}
void checkSmallSums() {
  check<AllSums, true>({1, 2, 1, 130, 150});
  check<Whole<AllSums>, true>({1, 2, 1, 128, 256});
}
void benchSums(Shape const &s) {
  benchBoth<RowBias>(s);
  benchBoth<Relative>(s);
}
#else
void checkSums() {}
void checkSmallSums() {}
void benchSums(Shape const &) {}
#endif
void checkAll() {
  checkPlain<Full>();
  checkPlain<Triangle>();
  checkOrder<Full>();
  checkOrder<Triangle>();
#ifdef TEST_ALL
  both<NegativeScale>({1, 4, 2, 500, 400});
  checkMods<SoftCap>();
  checkMods<RowFactor>();
  checkSums();
  checkMods<Window>();
  both<Window>({1, 1, 1, 1000, 200}); // windows behind the last key
  checkMods<Documents>();
  both<Whole<Window>>({2, 4, 2, 768, 1152});
  both<Sharded>({2, 4, 2, 512, 1024, Order::Position, true, 2, 0, 4});
  both<Sharded>({2, 4, 2, 512, 1000, Order::Head, true, 2, 1, 4});
#endif
}
void checkSmall() {
  both<Full>({1, 2, 1, 200, 300});
  both<Triangle>({1, 2, 2, 300, 200, Order::Packed});
#ifdef TEST_ALL
  check<SoftCap, false>({1, 2, 1, 130, 150});
  checkSmallSums();
  check<Window, true>({1, 2, 1, 200, 333});
#endif
}

#ifdef TEST_PACKED
template <class M> void checkPacked() {
  both<Sequences<M>>({1, 4, 2, 1000, 1000}, true);
  both<Sequences<M>>({1, 3, 1, 2300, 2300, Order::Packed});
  both<Sequences<M>>({1, 2, 2, 130, 130, Order::Head});
}
void checkPacked(bool small) {
  if (small)
    return both<Sequences<CapturedTriangle>>({1, 2, 1, 420, 420});
  checkPacked<CapturedTriangle>();
  checkPacked<Captured>();
  checkPacked<SoftCap>();
  checkPacked<RowFactor>();
}
#endif
#ifdef TEST_BLOCKS
/// A random mask, of random extents: what is wrong with its gradients, ordered,
/// or with 20 runs of them by any number of blocks.
template <class M> std::string tryMask(std::mt19937 &random) {
  auto draw = [&](int least, int most) {
    return least + int(random() % unsigned(most - least + 1));
  };
  auto positions = [&] { return draw(0, 9) ? draw(1, 900) : draw(1, 130); };
  const int key_heads = draw(1, 2), heads = key_heads * draw(1, 4);
  // (Of one key, queries and keys have gradients of 0, to hold errors against.)
  Backward<M, true> x(
      {draw(1, 2), heads, key_heads, positions(), 40 + positions()},
      draw(0, 1));
  const int columns = x.blocks(x.s.keys, M::BlockKeys),
            rows = x.blocks(x.s.queries, M::BlockQueries);
  std::vector<signed char> kinds;
  for (int of = 0; of < x.s.batch * heads; of++) {
    const int style = draw(0, 4), percent = draw(0, 100);
    for (int m = 0; m < rows; m++)
      for (int n = 0; n < columns; n++) {
        const bool any = style == 0   ? draw(1, 100) <= percent
                         : style == 1 ? abs(m - n) <= percent / 20
                         : style == 2 ? m / (1 + percent / 10) == n
                         : style == 3 ? (m + n) % 2 == 0
                                      : m % 7 != 3 && draw(1, 100) <= percent;
        kinds.push_back(any ? draw(1, 2) : 0);
      }
  }
  CHECK(cudaMemcpy(x.kinds, kinds.data(), kinds.size(), cudaMemcpyHostToDevice));
  static_cast<Problem<M> &>(x).launch();
  x.launch();
  CHECK(cudaDeviceSynchronize());
  const auto [ok, text] = compare(x, 1);
  const Bits before(x);
  int differ = 0;
  for (int run = 0; run < 20; run++) {
    x.clear(), x.launch(draw(1, 132));
    CHECK(cudaDeviceSynchronize());
    differ += !(Bits(x) == before);
  }
  if (ok && !differ)
    return "";
  return title<M>(x.s) + " " + text +
         (differ ? format(" %d RUNS DIFFER", differ) : "");
}
void tryMasks(int count) {
  constexpr std::string (*kinds[])(std::mt19937 &) = {
    tryMask<Blocks<Stripes>>,
    tryMask<Blocks<Captured, 256>>,
    tryMask<Blocks<Window, 256, 256>>,
    tryMask<Blocks<Window, 128, 256>>,
    tryMask<Blocks<SoftCap>>,
    tryMask<Blocks<Stripes, 384>>,
#if TEST_D <= 128 // wide heads have no sums
    tryMask<Blocks<AllSums>>,
    tryMask<Blocks<KeyBias, 256>>,
#endif
  };
  report.begin(format("%d random block masks", count));
  std::string wrong;
  for (int seed = 0; seed < count && wrong.empty(); seed++) {
    std::mt19937 random(seed);
    wrong = kinds[seed % std::size(kinds)](random);
    if (!wrong.empty())
      wrong += format(" seed %d", seed);
  }
  report.end(wrong.empty(), wrong);
}
void checkBlocks(bool small) {
  if (small) {
    both<Blocks<Stripes>>({1, 2, 1, 300, 520});
    both<Blocks<Stripes>>({1, 1, 1, 70, 16500}); // walks of 128 tiles and more
    return;
  }
  checkMods<Blocks<Stripes>>();
  checkMods<Blocks<Captured, 256>>();
  checkMods<Blocks<Window, 128, 256>>();
  checkMods<Blocks<SoftCap, 256>>();
#if TEST_D <= 128
  checkMods<Blocks<AllSums, 256>>();
  checkMods<Blocks<KeyBias>>();
#endif
  both<Blocks<Stripes>>({1, 2, 1, 3000, 4600}); // words of blocks
  both<Blocks<Pattern<2>>>({2, 16, 8, 4096, 4096}); // wide sections, several
  tryMasks(120);
}
void benchBlocks() {
  const Shape shape = {2, 2048 / D, 2048 / D, 8192, 8192};
  benchBoth<Blocks<Pattern<0>>>(shape);
  benchBoth<Blocks<Pattern<1>>>(shape);
  benchBoth<Blocks<Pattern<2>>>(shape);
  benchBoth<Blocks<Pattern<3>>>(shape);
}
#endif
#ifdef TEST_DROPOUT
template <class M> void checkDropped() {
  both<Dropped<M>>({2, 4, 4, 1024, 1024});
  both<Dropped<M>>({2, 4, 2, 700, 1000, Order::Packed}, true);
  both<Dropped<M>>({1, 3, 1, 333, 136, Order::Head});
  both<DroppedAnywhere<M>>({2, 4, 2, 700, 1001, Order::Packed}, true);
  both<DroppedAnywhere<M>>({1, 3, 1, 333, 130, Order::Head});
  both<DroppedAnywhere<M>>({1, 2, 2, 257, 1027});
}
void checkDropped(bool small) {
  if (small) {
    both<Dropped<CapturedTriangle>>({1, 2, 1, 130, 152});
    both<DroppedAnywhere<CapturedTriangle>>({1, 2, 1, 130, 153});
    return;
  }
  checkDropped<CapturedTriangle>();
  checkDropped<Captured>();
  checkDropped<SoftCap>();
  checkDropped<RowBias>();
  checkDropped<Window>();
  checkDropped<Blocks<Stripes>>();
}
void benchDropped() {
  constexpr int heads = 2048 / D;
  benchBoth<Dropped<Captured>>({4, heads, heads, 4096, 4096});
  benchBoth<Dropped<CapturedTriangle>>({4, heads, heads, 4096, 4096});
  benchBoth<DroppedAnywhere<Captured>>({4, heads, heads, 4096, 4095});
}
#endif

#ifdef TESSERA_TRAP_WAITS
/// Of the first head, and both directions: the rank of a tile's last step is
/// raised by one, or the step is missing. Gives the wait without an end.
template <class Mask>
__global__ void break_walks(Mask mask, bool missing, BwdWait *broken) {
  auto walks_of = [&](int passes) {
    return BlockWalks<int>(mask.queries, mask.keys, passes, Mask::Passes,
                           mask.walks + blockIdx.x * mask.words);
  };
  const BlockWalks<int> all = walks_of(1);
  int *last = nullptr, n = 0;
  // Some tiles have no step. Behind the last one that has, none adds.
  for (int at = missing ? all.tiles - 1 : all.tiles / 2; !last;
       at += missing ? -1 : 1) {
    n = all.launched[at] / 2;
    const BlockWalks<int> walks = walks_of(all.launched[at] % 2 + 1);
    for (int part = 0; part < walks.parts; part++)
      for (int i = 0; i < walks.width; i++) {
        int *const step = walks.walk(part, n) + i;
        if (*step == (int)walks.End)
          break;
        last = step;
      }
  }
  const int m = *last & 0xffff, rank = *last >> 16;
  broken[blockIdx.x] = {
      0, 0, m, m * WalkParts::Rows, n, n * WalkParts::Keys, rank + 1, rank};
  if (missing)
    broken[blockIdx.x].n = broken[blockIdx.x].key = -1; // finish waits for it
  *last = missing ? (int)BlockWalks<int>::End : *last + (1 << 16);
}
std::string endless(BwdWait const &w) {
  return format(TESSERA_ENDLESS_WAIT, w.batch, w.head, w.m, w.query, w.n, w.key,
                w.rank, w.count);
}
using Trapped = Backward<Blocks<Stripes>, true>;
/// Says which lines may come, then what the GPU says.
int runBroken(bool missing) {
  Trapped x({2, 4, 2, 1000, 1300});
  Array<BwdWait> broken(2);
  x.prepare();
  break_walks<<<2, 1>>>(x.walked(), missing, broken.data);
  for (BwdWait const &wait : broken.host())
    printf("expected %s", endless(wait).c_str());
  fflush(stdout);
  x.main(multiprocessors()), x.finish();
  const cudaError_t error = cudaDeviceSynchronize();
  printf("error %d: %s\n", (int)error, cudaGetErrorString(error));
  fflush(stdout);
  _exit(error ? 3 : 0); // nothing of the context can be freed
}
void checkBroken(std::string const &program, char const *how) {
  report.begin(format("walks: a step is %s", how));
  FILE *child = popen(("timeout 30 '" + program + "' " + how).c_str(), "r");
  std::vector<std::string> expected, said;
  std::string error = "no error";
  for (char line[512]; child && fgets(line, sizeof line, child);) {
    const std::string text = line;
    if (!text.compare(0, 9, "expected "))
      expected.push_back(text.substr(9));
    else if (!text.compare(0, 8, "tessera:"))
      said.push_back(text);
    else
      error = text.substr(0, text.size() - 1);
  }
  const int status = child ? pclose(child) : -1;
  const bool is_expected =
      said.size() == 1 &&
      std::count(expected.begin(), expected.end(), said[0]) > 0;
  for (std::string &line : said)
    error += "\n  " + line.substr(0, line.size() - 1);
  if (!is_expected)
    for (std::string const &line : expected)
      error += "\n  EXPECTED " + line.substr(0, line.size() - 1);
  report.end(is_expected && status == 3 << 8, error);
}
void checkTraps(std::string const &program) {
  check<Blocks<Stripes>, true>({2, 4, 2, 1000, 1300});
  check<Blocks<Window, 128, 256>, true>({1, 3, 1, 2000, 3000});
  check<Triangle, true>({2, 4, 2, 1000, 1300});
  checkBroken(program, "raised");
  checkBroken(program, "missing");
}
#endif

int main(int argc, char **argv) {
  const std::string mode = argc > 1 ? argv[1] : "check";
#ifdef TESSERA_TRAP_WAITS
  if (mode == "raised" || mode == "missing")
    return runBroken(mode == "missing");
  checkTraps(argv[0]);
#elif defined(TEST_BLOCKS)
  if (mode == "fuzz")
    tryMasks(argc > 2 ? atoi(argv[2]) : 1000);
  else
    mode == "bench" ? benchBlocks() : checkBlocks(mode == "small");
#elif defined(TEST_PACKED)
  checkPacked(mode == "small");
#elif defined(TEST_DROPOUT)
  mode == "bench" ? benchDropped() : checkDropped(mode == "small");
#else
  if (mode == "bench") {
    constexpr int heads = 2048 / D;
    for (auto [batch, length] : {std::pair(16, 1024), {4, 4096}, {1, 16384}}) {
      benchBoth<Full>({batch, heads, heads, length, length});
      benchBoth<Triangle>({batch, heads, heads, length, length});
    }
    bench<SoftCap, false>({4, heads, heads, 4096, 4096});
    bench<RowFactor, false>({4, heads, heads, 4096, 4096});
    benchSums({4, heads, heads, 4096, 4096});
    benchBoth<Window>({4, heads, heads, 4096, 4096});
    if (D == 128) // the GPT-3 block's: half and a quarter of its heads
      for (int h : {48, 24})
        bench<Triangle, false>({1, h, h, 2048, 2048});
  } else {
    mode == "small" ? checkSmall() : checkAll();
  }
#endif
  return report.close(
      format("attention bwd d%d/%d %s", D, DV, Element<T>::kName).c_str());
}
