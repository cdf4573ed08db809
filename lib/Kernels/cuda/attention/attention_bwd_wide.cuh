//===- attention_bwd_wide.cuh - attention, backward: wide heads -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The main kernel of attention_bwd.cuh for head dimensions 192 and 256, whose
// sums dK and dV of 128 keys do not fit into the registers of a block: a
// cluster of two blocks has a tile, 64 of its keys each.
//
// Both blocks take the same steps. Each loads half of a step's queries and
// gradients into both, and sends its dS of its keys to the other: with that and
// the other's keys it makes half of the columns of dQ for all 128. So L2 gives
// and adds what it would for 128 keys of a block, at 256 25 bytes a clock and
// multiprocessor; with 64 keys it would be 51, more than it has.
//
// A block is 512 threads, whose consumer groups differ:
//
//   values   S = K Q^T, P = exp2(S - lse), dV += P dO
//   keys     dP = V dO^T, dS = P * (dP - D), dK += dS Q
//   queries  dQ = dS^T K
//
// P goes from the first to the second, dS from there to the third and to the
// other block, through one place in shared memory, in the tensors' type. The
// groups take no turns: what one computes falls into the others' products.
// Values issues dV of the last step behind S; keys does not, as dV and dK have
// their left operand in registers, and hold their warps until that is read: a
// dK behind dP would hold dS up, which two groups and the other block wait for
// (at 256, 4k: 438 TFLOP/s for 558).
//
// Of products m64nNk16, S and dP (N 64) read as much shared memory as they may
// while they run, 128 bytes a clock, but for those columns of K and V that are
// kept in registers; dV and dK 64; dQ 107, at 256 in two parts 128. A step of
// 64 queries moves 360 KB at 256, 252 at 192, 202 with values of 128: 2880,
// 2016 and 1616 clocks, beside 2560, 1920 and 1664 of the tensor cores.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_BWD_WIDE_CUH
#define TESSERA_KERNELS_ATTENTION_BWD_WIDE_CUH

#include "attention/attention_bwd_scores.cuh"

namespace tessera {

/// Of a block, with 64 keys.
template <class C> struct BwdWideShared {
  static constexpr int Bytes = 64 * 128; // a panel of 64 rows
  /// Of the keys, those for a block's columns of dQ.
  static constexpr int DqPanels = 2;
  /// Places of P and dS: as many as there is room for beside some kilobytes.
  static constexpr int Small = 1536 + C::Stages * (8 * C::BM + C::RowBytes);
  static constexpr int Free = (227 * 1024 - Small) / Bytes - DqPanels -
                              C::Panels - C::ValuePanels -
                              C::Stages * (C::Panels + C::ValuePanels);
  static constexpr int Places = Free / 2 < 3 ? Free / 2 : 3;
  static_assert(C::BM == 64 && C::BN == 128 && Places > 0, "no such tile");
  static_assert(C::Planned > C::Stages + Places + C::Ahead,
                "a step's place is free when the one behind it is over");
  /// Registers of a thread: of the warps that do not compute, and of groups.
  static constexpr int Producer = 40, Values = C::D == 256 ? 208 : 192;
  static constexpr int Keys = C::D == 256 ? 200 : 192;
  static constexpr int Queries = C::D == 256 ? 64 : 88;
  /// Of the keys, and of their values, the 16-column groups that have room in
  /// registers.
  static constexpr int KeptKeys = C::D == 256    ? 0
                                  : C::DV == 128 ? (C::HasMods ? 8 : 12)
                                                 : (C::HasMods ? 1 : 5);
  static constexpr int KeptValues = C::D == 256 ? 0 : C::DV == 128 ? 7 : 5;

  alignas(1024) char k[C::Panels][Bytes]; // in the order of `panel`
  alignas(1024) char other_k[DqPanels][Bytes];
  alignas(1024) char v[C::ValuePanels][Bytes];
  alignas(1024) char q[C::Stages][C::Panels][Bytes];
  alignas(1024) char dout[C::Stages][C::ValuePanels][Bytes];
  alignas(1024) char ds[Places][Bytes]; // rows: keys; before, P
  alignas(1024) char other_ds[Places][Bytes];
  alignas(16) float lse[C::Stages][C::BM];
  alignas(16) float delta[C::Stages][C::BM];
  alignas(16) typename C::Mods::Row
      row[C::RowBytes ? C::Stages : 1][C::RowBytes ? C::BM : 1];
  BwdParams<typename C::Mods::Args, C::Sums> planned; // as in BwdShared
  BwdSections sections;                               // as in BwdShared
  BwdFirst first;
  typename C::Step step[C::Planned]; // travel with step_full
  int drawn;                         // of the second block
  uint64 drawn_full, drawn_empty;    // of the second, of the first
  uint64 k_full, k_empty, v_full, v_empty;
  uint64 k_read, v_read; // by products, of a tile
  uint64 q_full[C::Stages], q_empty[C::Stages], q_both[C::Stages];
  uint64 dout_full[C::Stages], dout_empty[C::Stages], dout_both[C::Stages];
  uint64 p_full[Places], ds_full[Places], ds_empty[Places];
  uint64 other_full[Places];
  uint64 sent_empty[Places]; // the other block's other_ds
  uint64 step_full[C::Planned], step_empty[C::Planned];
  uint64 turn[2], added[2]; // Ordered; of a block

  /// Where panel c of the keys' columns lies. Of three, the first and half of
  /// the second are a block's columns of dQ, the last and the other half are
  /// the other's: an operand of either begins with a whole panel, and the
  /// distance from there to the half is positive.
  TSR_DEVICE constexpr int panel(int c) {
    return C::Panels == 3 && c ? 3 - c : c;
  }
  /// Of a block's columns of dQ, the panel that they begin with, and the bytes
  /// to the second one: for its own keys, and for the other's.
  TSR_DEVICE int dq_panel(int rank) {
    return C::Panels == 3 ? rank : rank * DqPanels;
  }
  TSR_DEVICE int dq_distance(int rank) {
    return C::Panels == 3 ? rank ? Bytes + 64 : 2 * Bytes : Bytes;
  }
  TSR_DEVICE int other_dq_distance(int rank) {
    return C::Panels == 3 && rank ? Bytes + 64 : Bytes;
  }
  /// From eight columns of a product to their place among the block's.
  TSR_DEVICE int dq_shift(int rank, int eight) {
    return C::Panels == 3 && rank ? eight < 8 ? 4 : -8 : 0;
  }
  /// The panels of columns that other_k has.
  TSR_DEVICE int other_panel(int rank, int i) {
    return C::Panels == 3 ? (i ? 1 : 2 * rank) : rank * DqPanels + i;
  }
};

/// A thread, as BwdProducer. A copy into both blocks waits for both.
template <class C, class P> struct BwdWideProducer {
  using Shared = typename C::Shared;
  BwdMaps const &maps;
  P const &p;
  Shared &s;
  const int rank = cluster_rank();
  int steps = 0, tiles = 0;
  bool early = true; // prepare may still run
  Ring<C::Stages> ring;

  TSR_MEMBER void load_panel(TensorMap const &map, char *to, uint64 *full,
                             int panel, int block, typename C::Step const &of) {
    tma_load(to, &map, full, panel * 64, of.n * C::BN + block * 64,
             bwd_key_head<C>(p, of), of.batch, kEvictFirst);
  }
  TSR_MEMBER void load_tile(typename C::Step const &of) {
    const int parity = tiles & 1 ^ 1;
    barrier_wait(&s.v_empty, parity);
    barrier_expect(&s.v_full, sizeof s.v);
#pragma unroll
    for (int c = 0; c < C::ValuePanels; c++)
      load_panel(maps.v, s.v[c], &s.v_full, c, rank, of);
    barrier_wait(&s.k_empty, parity);
    barrier_expect(&s.k_full, sizeof s.k + sizeof s.other_k);
#pragma unroll
    for (int c = 0; c < C::Panels; c++)
      load_panel(maps.k, s.k[Shared::panel(c)], &s.k_full, c, rank, of);
#pragma unroll
    for (int i = 0; i < Shared::DqPanels; i++)
      load_panel(maps.k, s.other_k[i], &s.k_full, Shared::other_panel(rank, i),
                 rank ^ 1, of);
    tiles++;
  }

  /// Until a stage is free in both blocks.
  TSR_MEMBER void wait_both(uint64 *empty, uint64 *both) {
    barrier_wait(empty, ring.phase ^ 1);
    barrier_arrive_at(both, rank ^ 1);
    barrier_wait(both, ring.phase);
  }
  template <int Panels>
  TSR_MEMBER void load_queries(TensorMap const &map,
                               char (&to)[Panels][Shared::Bytes], float *row_to,
                               float const *row_from, uint64 *full,
                               typename C::Step const &step, int more = 0) {
    if (!step.sum)
      return barrier_arrive(full);
    barrier_expect(full, sizeof to + C::BM * 4 + more);
#pragma unroll
    for (int c = 0; c < Panels; c++)
      tma_load_multicast(to[c] + rank * C::QueryBox * 128, &map, full, c * 64,
                         step.m * C::BM + rank * C::QueryBox, step.head,
                         step.batch, 3, kEvictLast);
    if (early) {
      wait_before();
      start_next();
      early = false;
    }
    bulk_load(row_to, row_from, C::BM * 4, full);
  }
  TSR_MEMBER void load_step(typename C::Step const &step) {
    const BwdWorkspace<C> work(p);
    const int i = ring.stage;
    const int64 row = (step.sum - work.sum) / C::SumColumns;
    wait_both(&s.q_empty[i], &s.q_both[i]);
    // As in BwdProducer.
    if (const int over = steps + C::Ahead - C::Planned; over >= 0)
      barrier_arrive(&s.step_empty[over % C::Planned]);
    load_queries(maps.q, s.q[i], s.lse[i], work.lse + row, &s.q_full[i], step,
                 C::RowBytes);
    if (C::RowBytes && step.sum)
      bulk_load(s.row[i], work.row + row, C::RowBytes, &s.q_full[i]);
    wait_both(&s.dout_empty[i], &s.dout_both[i]);
    load_queries(maps.dout, s.dout[i], s.delta[i], work.delta + row,
                 &s.dout_full[i], step);
    ring.next();
  }

  TSR_MEMBER void run() {
    for (bool first = true;; steps++) { // of a tile
      typename C::Step const &step = s.step[steps % C::Planned];
      barrier_wait(&s.step_full[steps % C::Planned], steps / C::Planned & 1);
      if (step.n < 0) {
        wait_before(); // it may have loaded none
        const int parity = tiles & 1 ^ 1;
        barrier_wait(&s.v_empty, parity);
        barrier_arrive(&s.v_full);
        barrier_wait(&s.k_empty, parity);
        barrier_arrive(&s.k_full);
        return;
      }
      load_step(step);
      if (first)
        load_tile(step);
      first = step.last;
    }
  }
};

/// A thread that sends dS to the other block.
template <class C> struct BwdSender {
  typename C::Shared &s;
  const int other = cluster_rank() ^ 1;
  Ring<C::Shared::Places> places;

  TSR_MEMBER void run() {
    for (unsigned number = 0;; number++) {
      const unsigned at = number % C::Planned;
      barrier_wait(&s.step_full[at], number / C::Planned & 1);
      const bool end = s.step[at].n < 0, empty = !s.step[at].sum;
      barrier_arrive(&s.step_empty[at]);
      if (end)
        return;
      if (empty)
        continue;
      const int i = places.stage;
      barrier_wait(&s.ds_full[i], places.phase);
      barrier_wait(&s.sent_empty[i], places.phase ^ 1);
      bulk_copy_at(s.other_ds[i], s.ds[i], sizeof s.ds[i], &s.other_full[i],
                   other);
      places.next();
    }
  }
};

/// What the consumer groups have in common.
template <class C, class P> struct BwdWideGroup : BwdScores<C, P> {
  using T = typename C::T;
  using Shared = typename C::Shared;
  using Scores = BwdScores<C, P>;
  using Scores::s, Scores::thread, Scores::lane;
  static constexpr int Step16 = Shared::Bytes >> 4; // to the next panel
  BwdMaps const &maps;
  const int rank = cluster_rank();
  unsigned steps = 0; // before this one
  int tiles = 0;      // before this one
  Ring<Shared::Places> places;

  TSR_MEMBER BwdWideGroup(BwdMaps const &maps, P const &p, Shared &s)
      : Scores(p, s), maps(maps) {}

  /// As in BwdConsumer.
  TSR_MEMBER void release(uint64 *b) { barrier_arrive(b); }
  /// By a lane of each warp, of what products alone have read.
  TSR_MEMBER void release_read(uint64 *b) {
    __syncwarp();
    if (lane == 0)
      barrier_arrive(b);
  }
  TSR_MEMBER typename C::Step const &step_now() {
    return s.step[steps % C::Planned];
  }
  /// The first columns of this group's rows as left operands.
  template <int Kept, int Panels, class At>
  TSR_MEMBER void keep(Fragment16 *kept, char (&rows)[Panels][Shared::Bytes],
                       At at) {
#pragma unroll
    for (int i = 0; i < Kept; i++)
      load_fragment(kept[i], rows[at(i / 4)], i % 4);
  }
  /// x = rows queries^T, of Panels panels of columns; `at`: where the rows'
  /// lie.
  template <int Kept, int Panels, class At>
  TSR_MEMBER void issue_rows(float (&x)[C::BM / 2], Fragment16 const *kept,
                             char (&rows)[Panels][Shared::Bytes],
                             char (&queries)[Panels][Shared::Bytes], At at) {
    using Product = Wgmma<T, C::BM>;
    const uint64 a = operand(rows[0]), b = operand(queries[0]);
    wgmma_fence();
    if (Kept)
      Product::template rs_set<false>(x, kept[0], b);
    else
      Product::ss_set(x, a, b);
#pragma unroll
    for (int i = 1; i < Panels * 4; i++) {
      const uint64 right = b + i / 4 * Step16 + i % 4 * kStepK;
      if (i < Kept)
        Product::template rs<false>(x, kept[i < Kept ? i : 0], right, true);
      else
        Product::ss(x, a + at(i / 4) * Step16 + i % 4 * kStepK, right, true);
    }
    wgmma_commit();
  }
  /// sum += left right, of 64 keys and a step's queries.
  template <int Parts, int Size>
  TSR_MEMBER void issue_sum(float (&sum)[Parts][Size], Fragment16 const *left,
                            char *right) {
    const uint64 b = operand(right, Shared::Bytes);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < C::BM / 16; i++)
#pragma unroll
      for (int part = 0; part < Parts; part++)
        Wgmma<T, 2 * Size>::rs(
            sum[part], left[i],
            b + part * (2 * Size / 64) * Step16 + i * kStepMN, true);
    wgmma_commit();
  }
  /// A tile's results, by way of the place of what is not read any more once
  /// `read` says so, and free, as `empty` tells, when they are stored.
  template <int Panels, class At, int Parts, int Size>
  TSR_MEMBER void store_rows(TensorMap const &map,
                             char (&to)[Panels][Shared::Bytes], At at,
                             float const (&rows)[Parts][Size], float scale,
                             int barrier, uint64 *read, uint64 *empty) {
    barrier_wait(read, tiles & 1);
#pragma unroll
    for (int c = 0; c < Panels * 4; c++) {
      float scaled[8];
#pragma unroll
      for (int e = 0; e < 8; e++)
        scaled[e] = rows[8 * c / Size][8 * c % Size + e] * scale;
      Fragment16 f;
      convert<T>(f, scaled);
      store_fragment(to[at(c / 4)], c % 4, f);
    }
    fence_async();
    named_sync(barrier, 128);
    if (thread == 0) {
      typename C::Step const &of = s.step[(steps - 1) % C::Planned];
#pragma unroll
      for (int c = 0; c < Panels; c++)
        tma_store(&map, to[at(c)], c * 64, of.n * C::BN + rank * 64, of.head,
                  of.batch);
      bulk_commit();
      bulk_wait_read<0>();
      barrier_arrive(empty);
    }
  }
  TSR_DEVICE int same(int c) { return c; }
  /// Of sums of so many columns: with 512 threads, the accumulators of a
  /// product of 256 are too many.
  TSR_DEVICE constexpr int parts(int columns) { return columns == 256 ? 2 : 1; }
  template <int Parts, int Size>
  TSR_DEVICE void clear(float (&sum)[Parts][Size]) {
#pragma unroll
    for (int part = 0; part < Parts; part++)
#pragma unroll
      for (int i = 0; i < Size; i++)
        asm volatile("mov.f32 %0, 0f00000000;" : "=f"(sum[part][i]));
  }
};

template <class C, class P> struct BwdValues : BwdWideGroup<C, P> {
  using Mods = typename C::Mods;
  using T = typename C::T;
  using Shared = typename C::Shared;
  using Group = BwdWideGroup<C, P>;
  using Group::s, Group::p, Group::rank, Group::steps, Group::tiles,
      Group::places, Group::release;
  Ring<C::Stages> q, dout;
  float dv[Group::parts(C::DV)][C::DV / 2 / Group::parts(C::DV)];
  static constexpr int Kept = Shared::KeptKeys;
  Fragment16 kept[Kept + !Kept], probs[C::BM / 16];

  TSR_MEMBER BwdValues(BwdMaps const &maps, P const &p, Shared &s)
      : Group(maps, p, s) {}

  TSR_MEMBER void issue_dv() {
    barrier_wait(&s.dout_full[dout.stage], dout.phase);
    this->issue_sum(dv, probs, s.dout[dout.stage][0]);
  }
  TSR_MEMBER void end_dv() {
    wgmma_wait<0>();
    this->release_read(&s.dout_empty[dout.stage]);
    dout.next();
  }

  /// Whether it was the tile's last.
  template <bool First> TSR_MEMBER bool step() {
    const int i = q.stage;
    float x[C::BM / 2];
    barrier_wait(&s.q_full[i], q.phase);
    this->template issue_rows<Kept>(x, kept, s.k, s.q[i], Shared::panel);
    if (!First)
      issue_dv(); // of the step before
    typename C::Step const &now = this->step_now();
    wgmma_wait<First ? 0 : 1>();
    Fragment16 next[C::BM / 16]; // where they are not x
    if constexpr (C::AsksApart) {
      this->plain(x, s.lse[i]);
      this->ask(x, i, now);
    } else if constexpr (C::HasMods) {
      this->modify(x, next, i, now);
    } else {
      this->plain(x, s.lse[i]);
    }
    if (now.masked)
      this->hide(x, next, now);
    const bool last = now.last;
    release(&s.q_empty[i]);
    q.next();
    if (!First)
      end_dv();
    barrier_wait(&s.ds_empty[places.stage], places.phase ^ 1);
#pragma unroll
    for (int j = 0; j < C::BM / 16; j++) {
      Fragment16 f;
      convert<T>(f, x + 8 * j);
      store_fragment(s.ds[places.stage], j, f);
      if (Mods::HasScoreGrad)
        probs[j].copy(next[j]);
      else
        probs[j] = f;
    }
    release(&s.p_full[places.stage]);
    places.next();
    steps++;
    return last;
  }

  TSR_MEMBER void tile(typename C::Step const &start) {
    this->start(start, start.first_key() + rank * 64);
    Group::clear(dv);
    if (start.sum) {
      this->template keep<Kept>(kept, s.k, Shared::panel);
      bool last = step<true>();
#pragma unroll 1
      while (!last)
        last = step<false>();
      release(&s.k_read);
      issue_dv();
      end_dv();
    } else {
      release(&s.k_read);
      barrier_wait(&s.q_full[q.stage], q.phase);
      release(&s.q_empty[q.stage]);
      q.next();
      barrier_wait(&s.dout_full[dout.stage], dout.phase);
      this->release_read(&s.dout_empty[dout.stage]);
      dout.next();
      steps++;
    }
    this->store_rows(this->maps.dv, s.v, Group::same, dv, 1, 1, &s.v_read,
                     &s.v_empty);
  }

  TSR_MEMBER void run() {
    for (;; tiles++) {
      barrier_wait(&s.k_full, tiles & 1);
      typename C::Step const &start = this->step_now();
      if (start.n < 0)
        break;
      tile(start);
    }
    if (this->thread == 0)
      bulk_wait_done<0>();
  }
};

template <class C, class P> struct BwdKeys : BwdWideGroup<C, P> {
  using Mods = typename C::Mods;
  using T = typename C::T;
  using Shared = typename C::Shared;
  using Group = BwdWideGroup<C, P>;
  using Group::s, Group::steps, Group::tiles, Group::places, Group::release;
  Ring<C::Stages> q, dout;
  float dk[Group::parts(C::D)][C::D / 2 / Group::parts(C::D)];
  static constexpr int Kept = Shared::KeptValues;
  Fragment16 kept[Kept + !Kept];

  TSR_MEMBER BwdKeys(BwdMaps const &maps, P const &p, Shared &s)
      : Group(maps, p, s) {}

  /// y: dP to dS, with P of this step.
  TSR_MEMBER void differentiate(float (&y)[C::BM / 2], float const *delta) {
    delta += this->lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < C::BM / 16; j++) {
      Fragment16 f;
      load_fragment(f, s.ds[places.stage], j);
#pragma unroll
      for (int r = 0; r < 4; r++) {
        const int e = 8 * j + 2 * r;
        float low, high;
        unpack<T>(f.r[r], low, high);
        const float2 of =
            *reinterpret_cast<float2 const *>(delta + fragment_column(e));
        y[e] = low * (y[e] - of.x), y[e + 1] = high * (y[e + 1] - of.y);
      }
    }
  }

  /// Whether it was the tile's last.
  TSR_MEMBER bool step() {
    const int i = dout.stage;
    float y[C::BM / 2];
    barrier_wait(&s.dout_full[i], dout.phase);
    this->template issue_rows<Kept>(y, kept, s.v, s.dout[i], Group::same);
    const bool last = this->step_now().last;
    wgmma_wait<0>();
    barrier_wait(&s.p_full[places.stage], places.phase);
    differentiate(y, s.delta[i]);
    release(&s.dout_empty[i]);
    dout.next();
    // In P's place: a warp has read what it writes.
    Fragment16 ds[C::BM / 16];
#pragma unroll
    for (int j = 0; j < C::BM / 16; j++) {
      convert<T>(ds[j], y + 8 * j);
      store_fragment(s.ds[places.stage], j, ds[j]);
    }
    fence_async();
    release(&s.ds_full[places.stage]);
    barrier_wait(&s.q_full[q.stage], q.phase);
    this->issue_sum(dk, ds, s.q[q.stage][0]);
    wgmma_wait<0>();
    this->release_read(&s.q_empty[q.stage]);
    q.next();
    places.next();
    steps++;
    return last;
  }

  TSR_MEMBER void tile(typename C::Step const &start) {
    Group::clear(dk);
    if (start.sum) {
      this->template keep<Kept>(kept, s.v, Group::same);
      bool last;
#pragma unroll 1
      do
        last = step();
      while (!last);
      release(&s.v_read);
    } else {
      release(&s.v_read);
      barrier_wait(&s.dout_full[dout.stage], dout.phase);
      release(&s.dout_empty[dout.stage]);
      dout.next();
      barrier_wait(&s.q_full[q.stage], q.phase);
      this->release_read(&s.q_empty[q.stage]);
      q.next();
      steps++;
    }
    this->store_rows(this->maps.dk, s.k, Shared::panel, dk, Mods::Scale, 2,
                     &s.k_read, &s.k_empty);
  }

  TSR_MEMBER void run() {
    for (;; tiles++) {
      barrier_wait(&s.v_full, tiles & 1);
      typename C::Step const &start = this->step_now();
      if (start.n < 0)
        break;
      tile(start);
    }
    if (this->thread == 0)
      bulk_wait_done<0>();
  }
};

template <class C, class P> struct BwdQueries : BwdWideGroup<C, P> {
  using T = typename C::T;
  using Shared = typename C::Shared;
  using Group = BwdWideGroup<C, P>;
  using Group::s, Group::rank, Group::thread, Group::steps, Group::tiles,
      Group::places, Group::release;
  /// Columns at a time: accumulators of 128 are too many beside the other
  /// groups'.
  static constexpr int Parts = C::D == 256 ? 2 : 1, N = C::DqColumns / Parts;

  TSR_MEMBER BwdQueries(BwdMaps const &maps, P const &p, Shared &s)
      : Group(maps, p, s) {}

  /// dq (+)= dS^T keys, of a block's 64 keys.
  template <bool First>
  TSR_MEMBER void issue_dq(float (&dq)[N / 2], char *ds, char *keys,
                           int distance) {
    const uint64 a = operand(ds), b = operand(keys, distance);
    wgmma_fence();
    if (First)
      Wgmma<T, N>::template ss_set<true, true>(dq, a, b);
#pragma unroll
    for (int i = First; i < 4; i++)
      Wgmma<T, N>::template ss<true, true>(dq, a + i * kStepMN, b + i * kStepMN,
                                           true);
    wgmma_commit();
  }

  /// Whether it was the tile's last.
  TSR_MEMBER bool step() {
    const int i = places.stage, other = rank ^ 1;
    barrier_wait(&s.ds_full[i], places.phase);
    typename C::Step const &now = this->step_now();
    const bool first = now.rank == 0; // nothing is there
    const bool last = now.last;
    float *to = now.sum + rank * C::Part + thread * 4;
    // Not unrolled: ptxas would begin a part before it adds the one before.
#pragma unroll 1
    for (int part = 0; part < Parts; part++) {
      float dq[N / 2];
      issue_dq<true>(dq, s.ds[i], s.k[Shared::dq_panel(rank) + part],
                     Shared::dq_distance(rank));
      if (part == 0) {
        if (thread == 0)
          barrier_expect(&s.other_full[i], sizeof s.other_ds[i]);
        barrier_wait(&s.other_full[i], places.phase);
        if (thread == 0)
          barrier_arrive_at(&s.ds_empty[i], other); // it was sent
      }
      issue_dq<false>(dq, s.other_ds[i], s.other_k[part],
                      Shared::other_dq_distance(rank));
      wgmma_wait<1>();
      if (part == Parts - 1)
        release(&s.ds_empty[i]);
      wgmma_wait<0>();
      if (part == Parts - 1 && this->lane == 0)
        barrier_arrive_at(&s.sent_empty[i], other);
      if (part == Parts - 1 && last)
        release(&s.k_read);
      if (C::Ordered && part == 0)
        barrier_wait(&s.turn[rank], steps & 1);
#pragma unroll
      for (int j = 0; j < N / 8; j++) {
        const float four[4] = {dq[4 * j], dq[4 * j + 1], dq[4 * j + 2],
                               dq[4 * j + 3]};
        float *const at = to + (j + Shared::dq_shift(rank, j)) * 512;
        if (C::Ordered)
          global_add(at, four, first);
        else
          global_add(at, four);
      }
      to += N / 8 * 512;
    }
    if (C::Ordered)
      release(&s.added[rank]);
    places.next();
    steps++;
    return last;
  }

  TSR_MEMBER void run() {
    for (;; tiles++) {
      barrier_wait(&s.k_full, tiles & 1);
      typename C::Step const &start = this->step_now();
      if (start.n < 0)
        break;
      if (start.sum) {
        bool last;
#pragma unroll 1
        do
          last = step();
        while (!last);
        continue;
      }
      release(&s.k_read);
      if (C::Ordered) {
        barrier_wait(&s.turn[rank], steps & 1);
        release(&s.added[rank]);
      }
      steps++;
    }
  }
};

/// As attention_bwd, of clusters of two blocks.
template <class C, class P>
TSR_DEVICE void attention_bwd_wide(BwdMaps const &maps, P const &p) {
  using Shared = typename C::Shared;
  static_assert(sizeof(Shared) <= 227 * 1024, "more than a block has");
  constexpr int Group = 128, Warps = 4;
  extern __shared__ __align__(1024) char raw[];
  auto &s = *reinterpret_cast<Shared *>(raw);
  if (threadIdx.x == 0) {
    s.planned = p;
    barrier_init(&s.drawn_full, 1), barrier_init(&s.drawn_empty, 1);
    barrier_init(&s.k_full, 1), barrier_init(&s.v_full, 1);
    barrier_init(&s.k_empty, 1), barrier_init(&s.v_empty, 1);
    barrier_init(&s.k_read, 2 * Group), barrier_init(&s.v_read, Group);
    for (int i = 0; i < C::Stages; i++) {
      barrier_init(&s.q_full[i], 1), barrier_init(&s.dout_full[i], 1);
      barrier_init(&s.q_both[i], 1), barrier_init(&s.dout_both[i], 1);
      barrier_init(&s.q_empty[i], Group + Warps);
      barrier_init(&s.dout_empty[i], Group + Warps);
    }
    for (int i = 0; i < Shared::Places; i++) {
      barrier_init(&s.p_full[i], Group), barrier_init(&s.ds_full[i], Group);
      barrier_init(&s.ds_empty[i], Group + 1); // read, and sent
      barrier_init(&s.other_full[i], 1), barrier_init(&s.sent_empty[i], Warps);
    }
    for (int i = 0; i < 2; i++)
      barrier_init(&s.turn[i], 1), barrier_init(&s.added[i], Group);
    for (int i = 0; i < C::Planned; i++) {
      barrier_init(&s.step_full[i], 1);
      barrier_init(&s.step_empty[i], C::Ordered ? 34 : 2);
    }
    fence_barrier_init();
  }
  cluster_sync();
  // As in attention_bwd.
  const int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0);
  if (warp < 4) {
    registers_lower<Shared::Producer>();
    if (warp == 3) {
      BwdPlanner<C, P> planner = {s.planned, s};
      planner.run(planner.lane == 0 ? planner.draw() : 0,
                  [](typename C::Tile const &) {});
    } else if (C::Ordered && warp == 1)
      BwdOrder<C>{s, cluster_rank()}.run();
    else if (warp == 2 && threadIdx.x % 32 == 0)
      BwdSender<C>{s}.run();
    else if (threadIdx.x == 0)
      BwdWideProducer<C, P>{maps, p, s}.run();
  } else if (warp < 8) {
    registers_raise<Shared::Values>();
    BwdValues<C, P>(maps, p, s).run();
  } else if (warp < 12) {
    registers_raise<Shared::Keys>();
    BwdKeys<C, P>(maps, p, s).run();
  } else {
    registers_lower<Shared::Queries>();
    BwdQueries<C, P>(maps, p, s).run();
  }
  // What a block sends, the other must be there for.
  __syncwarp();
  cluster_sync();
}

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_BWD_WIDE_CUH
