//===- attention_bwd.cuh - attention, backward ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gradients of attention_fwd.cuh, by three kernels, or four:
//
//   prepare  D = rowsum(dO * O) - dlse, the log-sum-exp in units of log 2 and
//            what functors have of a query; zeroes dQ that nothing adds to,
//            and, where additions have no order, the sums of all.
//   main     a tile of 128 keys at a time, over all blocks of queries of a
//            head:
//              S = K Q^T, dP = V dO^T, P = exp2(S - lse), dS = P * (dP - D),
//              dV += P dO, dK += dS Q, dQ += dS^T K.
//            With dropout, P of dV and dP have its zeros and its scale.
//            Scores are transposed: P lies in registers as a left operand.
//            dS goes through shared memory, dQ is added to global memory in
//            f32, in the accumulators' order: 16 bytes a thread, or by a warp
//            from shared memory, where there is room. Ordered and causal, the
//            last tile to add makes rows of it.
//   finish   makes them else: dQ, scaled, in the tensors' type.
//   share    where several query heads read a key head: adds up their dK and
//            dV, which are memory of this kernel alone till then.
//
// Heads of 192 and 256 have another main kernel, attention_bwd_wide.cuh.
//
// Main and finish may be launched to start early: main waits for prepare before
// it reads what that has made, finish where the order's counters do not show a
// block of queries to be complete. Prepare waits for nothing, and begins when
// walks (attention_walks.cuh) are made: main reads them without a wait.
//
// A block of the main kernel is a warp that plans, a thread that loads and two
// consumer warp groups of 64 keys each. Blocks are persistent: tiles come by a
// ticket, the next one is planned while this one is under way, its loads are
// issued while this one's results are stored.
//
// The consumer groups take turns at the tensor cores. A turn is dQ of the last
// step (by now the other group's half of its dS is there), dV and dK of this
// one, S and dP of the next; exponentials and dS fall into the other group's
// turn. Of 64 queries dQ comes first: dV has its left operand in registers, and
// holds the warps until that has been read; of few columns all of dQ is in
// every second turn of a group. What an accumulator holds is issued
// and awaited in one iteration of the loop, but for dK and dV, which nothing
// else reads; otherwise ptxas serialises all products.
//
// Ordered: every block of queries gets its additions in the order of ranks, so
// the results are the same bits in every run. The rank of a tile counts those
// that were launched before it (that have smaller tickets) and have the block
// of queries. So a tile waits on earlier ones alone, and the earliest that is
// not finished waits on none: nothing hangs, in any order of launch or of
// blocks inside a tile, on any number of multiprocessors.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_BWD_CUH
#define TESSERA_KERNELS_ATTENTION_BWD_CUH

#include "attention/attention_bwd_scores.cuh"
#include "attention/attention_bwd_sides.cuh"
#include "attention/attention_bwd_wide.cuh"

namespace tessera {

template <class C, class P> struct BwdConsumer : BwdScores<C, P> {
  using Mods = typename C::Mods;
  using T = typename C::T;
  using Sums = BwdSums<C, P>;
  using Scores = BwdScores<C, P>;
  using Scores::p, Scores::s, Scores::thread, Scores::lane, Scores::key,
      Scores::columns, Scores::sees, Scores::load_row;
  BwdMaps const &maps;
  const int group;
  unsigned steps = 0; // before this one
  Ring<C::Stages> ring;
  int buffer = 0;  // of dS: this step's
  int written = 0; // AddsByCopy: how many blocks of dQ, modulo 2
  float dk[C::D / 2], dv[C::D / 2];

  TSR_MEMBER BwdConsumer(BwdMaps const &maps, P const &p, typename C::Shared &s,
                         int group)
      : Scores(p, s), maps(maps), group(group) {}

  /// Of a step's last products: left operands, rows are keys.
  struct Operands {
    Fragment16 probs[C::BM / 16], ds[C::BM / 16];
  };

  /// By every thread: racecheck takes only those for ordered that arrive
  /// themselves, and one arrival a warp is no faster.
  TSR_MEMBER void release(uint64 *b) { barrier_arrive(b); }
  TSR_MEMBER void take_turn() { named_sync(1 + group, 256); }
  TSR_MEMBER void pass_turn() { named_arrive(1 + (group ^ 1), 256); }

  /// x = (this group's 64 rows of keys) queries^T.
  TSR_MEMBER void issue_rows(float (&x)[C::BM / 2], char *keys, char *queries) {
    const uint64 a = operand(keys + group * 64 * 128);
    const uint64 b = operand(queries);
    wgmma_fence();
    Wgmma<T, C::BM>::ss_set(x, a, b);
#pragma unroll
    for (int i = 1; i < C::D / 16; i++)
      Wgmma<T, C::BM>::ss(x, a + i / 4 * (C::BN * 128 >> 4) + i % 4 * kStepK,
                          b + i / 4 * (C::BM * 128 >> 4) + i % 4 * kStepK,
                          true);
    wgmma_commit();
  }
  /// x (+)= left rows: dV, or dK.
  TSR_MEMBER void issue_columns(float (&x)[C::D / 2], Fragment16 const *left,
                                char *rows, bool first) {
    const uint64 b = operand(rows, C::BM * 128);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < C::BM / 16; i++)
      Wgmma<T, C::D>::rs(x, left[i], b + i * kStepMN, !first || i > 0);
    wgmma_commit();
  }
  TSR_MEMBER void issue_dk(char *q, bool first) {
    const uint64 a = operand(s.ds[buffer][0] + group * 64 * 128);
    const uint64 b = operand(q, C::BM * 128);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < C::BM / 16; i++)
      Wgmma<T, C::D>::template ss<false, true>(
          dk, a + i / 4 * (C::BN * 128 >> 4) + i % 4 * kStepK, b + i * kStepMN,
          !first || i > 0);
    wgmma_commit();
  }
  /// Whether (a part of) dQ of the step before is this group's.
  TSR_MEMBER bool adds() {
    return !C::Alternates || (int)((steps - 1) % 2) == group;
  }
  /// How many additions this group has made before that one.
  TSR_MEMBER unsigned added() { return (steps - 1) / (C::Alternates ? 2 : 1); }
  /// Whose turn it waits for: the group's or the block's.
  TSR_MEMBER int turn_of() { return C::TurnsOfGroups ? group : 0; }
  /// The first row and column of its part.
  TSR_MEMBER int first_row() { return C::BM == 128 ? group * 64 : 0; }
  TSR_MEMBER int first_column() {
    return C::BM == 128 || C::Alternates ? 0 : group * C::DqColumns;
  }
  /// This group's part of dQ of the step before.
  TSR_MEMBER void issue_dq(float (&dq)[C::DqColumns / 2]) {
    constexpr int N = C::DqColumns;
    const int column = first_column();
    const uint64 a = operand(s.ds[buffer ? buffer - 1 : 2][first_row() / 64]);
    const uint64 b = operand(s.k[column / 64] + column % 64 * 2, C::BN * 128);
    wgmma_fence();
    Wgmma<T, N>::template ss_set<true, true>(dq, a, b);
#pragma unroll
    for (int i = 1; i < C::BN / 16; i++)
      Wgmma<T, N>::template ss<true, true>(dq, a + i * kStepMN, b + i * kStepMN,
                                           true);
    wgmma_commit();
  }
  /// Of the step before.
  TSR_MEMBER void gather_sums(typename Sums::Addition (&sums)[Sums::N]) {
    if constexpr (C::Sums > 0)
      Sums::gather(sums, p, s, group, s.step[(steps - 1) % C::Planned],
                   (steps - 1) % 2);
  }
  /// Where this thread's part of dQ of the step before goes.
  struct Target {
    float *to;
    bool first; // Ordered: nothing is there, not even a zero
    bool final; // Writes: with this, it is dQ
  };
  TSR_MEMBER Target target() {
    typename C::Step const &last = s.step[(steps - 1) % C::Planned];
    return {last.sum + (C::Alternates ? 0 : group) * C::Part + thread * 4,
            last.rank == 0, C::Writes && last.final};
  }
  /// This group's part of the block's rows, of what is there and this. What it
  /// takes is read here, the thread's number, too: known before, it would take
  /// registers from all steps.
  TSR_MEMBER void write_dq(Target const &target,
                           float (&dq)[C::DqColumns / 2]) {
    if (!target.first)
#pragma unroll
      for (int j = 0; j < C::DqColumns / 8; j++) {
        const uint4 part = load_last(target.to + j * 512);
        dq[4 * j] += __uint_as_float(part.x);
        dq[4 * j + 1] += __uint_as_float(part.y);
        dq[4 * j + 2] += __uint_as_float(part.z);
        dq[4 * j + 3] += __uint_as_float(part.w);
      }
    typename C::Step const &last = s.step[(steps - 1) % C::Planned];
    P const &own = s.planned;
    int thread = this->thread;
    asm volatile("" : "+r"(thread));
    const int column = first_column();
    const int query = last.first_query() + first_row();
    const int64 stride = own.dq_strides[2];
    T *const to = static_cast<T *>(own.dq) + last.batch * own.dq_strides[0] +
                  last.head * own.dq_strides[1] + query * stride + column;
    const int rows = last.queries(own) - query;
    tessera::store_rows<T, C::DqColumns>(
        thread, [&](int row) { return to + row * stride; },
        [&](int row, int c) { return row < rows && column + c < C::D; },
        [&](int i) { return dq[i] * Mods::Scale; });
  }
  /// Until this group may add: under the products that make what it adds.
  TSR_MEMBER void await_turn() {
    if (C::Ordered && !C::AddsByCopy)
      barrier_wait(&s.turn[turn_of()], added() & 1);
  }
  /// In its turn, with the sums for captured tensors, which are there by now.
  TSR_MEMBER void add_dq(Target const &target, float (&dq)[C::DqColumns / 2],
                         typename Sums::Addition const (&sums)[Sums::N]) {
    const bool writes = C::Writes && __builtin_expect(target.final, 0);
    if (C::AddsByCopy) {
      barrier_wait(&s.dq_empty[group], added() & 1 ^ 1);
      if (writes) {
        barrier_wait(&s.turn[group], written);
        written ^= 1;
      }
    }
    if (writes)
      write_dq(target, dq);
    else
#pragma unroll
      for (int j = 0; j < C::DqColumns / 8; j++) {
        const float part[4] = {dq[4 * j], dq[4 * j + 1], dq[4 * j + 2],
                               dq[4 * j + 3]};
        if (C::AddsByCopy)
          reinterpret_cast<float4 *>(s.dq[group])[j * 128 + thread] =
              make_float4(part[0], part[1], part[2], part[3]);
        else if (C::Ordered)
          global_add(target.to + j * 512, part, target.first);
        else
          global_add(target.to + j * 512, part);
      }
    if constexpr (C::Sums > 0)
      Sums::add(sums);
    if (C::AddsByCopy)
      fence_async();
    if (C::AddsByCopy || C::Ordered)
      release(&s.added[turn_of()]);
  }

  /// The first of the queries that are this thread's columns, or the next in
  /// the block, that sees its key of row r.
  TSR_MEMBER int first_seeing(int r, typename C::Step const &now) {
    if (!now.masked)
      return 0;
    const int first = now.first_query() + lane % 4 * 2;
    int hidden = 0;
#pragma unroll
    for (int i = 0; i < C::BM / 2; i++)
      if (i / 2 % 2 == 0 && !sees(first + fragment_column(i), r, now))
        hidden = fragment_column(i) + 1;
    return hidden;
  }
  /// x: scores; y: dP, then dS. The probabilities go to `probs`. As `modify`,
  /// but a score's gradient is complete when it is added to the sums.
  TSR_MEMBER void differentiate(float const (&x)[C::BM / 2],
                                float (&y)[C::BM / 2], Fragment16 *probs,
                                int stage, typename C::Step const &now,
                                Sums &sums) {
    const int own = lane % 4 * 2, first = now.first_query() + own;
    const typename Scores::Pairs pairs = this->pairs(stage, now);
    const int seeing[] = {first_seeing(0, now), first_seeing(1, now)};
    sums.start(now, first, key);
#pragma unroll
    for (int pair = 0; pair < C::BM / 4; pair++) {
      float probability[2];
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const int i = 2 * pair + e, r = pair % 2, column = fragment_column(i);
        const AttentionPair<Mods> at = this->pair_of(pairs, i, now);
        const float scaled = x[i] * (Mods::Scale * Mods::InnerScale);
        bool kept = column >= seeing[r];
        if constexpr (Mods::HasMask)
          kept &= this->keeps(at, now);
        float value = exp2_fast(Mods::score(p.args, scaled, at) *
                                    (Mods::OuterScale * 1.44269504f) -
                                s.lse[stage][own + column]);
        float addends[C::Sums];
        float grad = Mods::score_grad(
            p.args, scaled, value * (y[i] - s.delta[stage][own + column]), at,
            addends);
        asm volatile("" : "+f"(value), "+f"(grad)); // as in `modify`
        probability[e] = kept ? value : 0;
        y[i] = kept ? grad : 0;
#pragma unroll
        for (int n = 0; n < C::Sums; n++)
          addends[n] = kept ? addends[n] : 0;
        sums.take(addends, i,
                  (Mods::WholeQueries || first + column < p.queries) &&
                      (Mods::WholeKeys || key + 8 * r < p.keys));
      }
      probs[pair / 4].r[pair % 4] = pack<T>(probability[0], probability[1]);
    }
  }

  /// P and dS of a step whose S (x) and dP (y) are under way; dS goes to shared
  /// memory. i: its stage.
  template <bool First>
  TSR_MEMBER void score(float (&x)[C::BM / 2], float (&y)[C::BM / 2],
                        Operands &to, Sums &sums, int i,
                        typename C::Step const &now) {
    // Ahead of the waits, where there are registers for that.
    float2 lse[C::BM / 8], delta[C::BM / 8];
    if (C::RowsAhead)
      load_row(lse, s.lse[i]);
    KeptOfKeys<Mods, C::BM> kept;
    this->draw(kept, now);
    if constexpr (C::Sums > 0) {
      wgmma_wait<0>();
      this->drop(y, kept);
      differentiate(x, y, to.probs, i, now, sums);
    } else {
      wgmma_wait<1>();
      if constexpr (C::AsksApart) {
        load_row(lse, s.lse[i]);
        this->plain(x, lse);
        this->ask(x, i, now);
      } else if constexpr (C::HasMods) {
        this->modify(x, to.probs, i, now);
      } else {
        if (!C::RowsAhead)
          load_row(lse, s.lse[i]);
        this->plain(x, lse);
      }
      if (now.masked)
        this->hide(x, to.probs, now);
      if (C::RowsAhead)
        load_row(delta, s.delta[i]);
      wgmma_wait<0>();
      if (!C::RowsAhead)
        load_row(delta, s.delta[i]);
      this->drop(y, kept);
#pragma unroll
      for (int e = 0; e < C::BM / 2; e++)
        y[e] = x[e] * (y[e] - (e % 2 ? delta[e / 4].y : delta[e / 4].x));
    }
    // Three buffers: the other group may still be at dQ of two steps ago. The
    // results of the tile before are stored by way of them.
    if (First)
      wait_stored();
#pragma unroll
    for (int j = 0; j < C::BM / 16; j++) {
      convert<T>(to.ds[j], y + 8 * j);
      store_fragment(s.ds[buffer][j / 4] + group * 64 * 128, j % 4, to.ds[j]);
      if constexpr (!Mods::HasScoreGrad)
        convert<T>(to.probs[j], x + 8 * j);
    }
    if constexpr (Mods::HasDropout)
#pragma unroll
      for (int e = 0; e < C::BM / 2; e++)
        if (!kept.has(e))
          to.probs[e / 8].r[e / 2 % 4] &= e % 2 ? 0xffff : 0xffff0000;
    fence_async();
    if constexpr (C::Sums > 0)
      sums.reduce(now, key);
  }
  /// Where dQ of the step before goes, read before the turn, in which nothing
  /// should wait.
  template <bool First> TSR_MEMBER Target target_ahead() {
    Target to = {};
    if (!First) {
      to = target();
      asm volatile("" : "+l"(to.to)); // made here
    }
    return to;
  }
  TSR_MEMBER void next_step() {
    steps++;
    ring.next();
    buffer = buffer == 2 ? 0 : buffer + 1;
  }

  /// Blocks of 64 queries. Adds: `adds()`, not in the first step. Whether it
  /// was the tile's last step.
  template <bool First, bool Adds> TSR_MEMBER bool step() {
    const int i = ring.stage, parity = ring.phase;
    const int before = i ? i - 1 : C::Stages - 1;
    float x[C::BM / 2], y[C::BM / 2]; // S, then P; dP, then dS
    Operands own;
    barrier_wait(&s.q_full[i], parity);
    if (First)
      take_turn();
    issue_rows(x, s.k[0], s.q[i][0]);
    barrier_wait(&s.dout_full[i], parity);
    issue_rows(y, s.v[0], s.dout[i][0]);
    pass_turn();
    const typename C::Step &now = s.step[steps % C::Planned];
    if (!First) {
      wgmma_wait<2>(); // dK of the last step
      release(&s.q_empty[before]);
    }
    Sums sums(p, s, group);
    score<First>(x, y, own, sums, i, now);
    const bool last = now.last;
    const Target to = target_ahead<!Adds>();
    take_turn();
    float dq[C::DqColumns / 2];
    if (Adds)
      issue_dq(dq);
    issue_columns(dv, own.probs, s.dout[i][0], First);
    if (C::DkFromRegisters)
      issue_columns(dk, own.ds, s.q[i][0], First);
    else
      issue_dk(s.q[i][0], First);
    if constexpr (C::Sums > 0)
      sums.store(steps % 2);
    if (Adds) {
      typename Sums::Addition additions[Sums::N];
      gather_sums(additions);
      await_turn();
      wgmma_wait<2>();
      add_dq(to, dq, additions);
    }
    wgmma_wait<1>();
    release(&s.dout_empty[i]);
    next_step();
    return last;
  }

  /// Blocks of 128 queries, of which products with 64 columns read operands as
  /// fast as shared memory gives them: dK has its left one in registers, too,
  /// which it keeps until it is over. So dQ comes last, and its addition falls
  /// into S of the next step. Whether that is the tile's last.
  template <bool First, bool Last> TSR_MEMBER bool turn(Operands &own) {
    const int i = ring.stage;
    const Target to = target_ahead<First>();
    take_turn();
    issue_columns(dv, own.probs, s.dout[i][0], First);
    issue_columns(dk, own.ds, s.q[i][0], First);
    float dq[C::DqColumns / 2];
    if (First) {
      wgmma_wait<0>();
    } else {
      issue_dq(dq);
      wgmma_wait<1>();
    }
    release(&s.q_empty[i]);
    release(&s.dout_empty[i]);
    Ring<C::Stages> next = ring;
    next.next();
    float x[C::BM / 2], y[C::BM / 2];
    if (!Last) {
      barrier_wait(&s.q_full[next.stage], next.phase);
      issue_rows(x, s.k[0], s.q[next.stage][0]);
    }
    if (!First) {
      typename Sums::Addition none[Sums::N];
      await_turn();
      wgmma_wait<Last ? 0 : 1>();
      add_dq(to, dq, none);
    }
    next_step();
    return Last || scores<false>(x, y, own);
  }
  /// The rest of a turn, and the scores.
  template <bool First>
  TSR_MEMBER bool scores(float (&x)[C::BM / 2], float (&y)[C::BM / 2],
                         Operands &own) {
    const int i = ring.stage;
    barrier_wait(&s.dout_full[i], ring.phase);
    issue_rows(y, s.v[0], s.dout[i][0]);
    pass_turn();
    const typename C::Step &now = s.step[steps % C::Planned];
    Sums sums(p, s, group);
    score<First>(x, y, own, sums, i, now);
    return now.last;
  }
  TSR_MEMBER void turns() {
    float x[C::BM / 2], y[C::BM / 2];
    Operands own;
    barrier_wait(&s.q_full[ring.stage], ring.phase);
    take_turn();
    issue_rows(x, s.k[0], s.q[ring.stage][0]);
    if (scores<true>(x, y, own)) {
      turn<true, true>(own);
    } else {
      bool last = turn<true, false>(own);
      while (!last)
        last = turn<false, false>(own);
      turn<false, true>(own);
    }
  }

  /// Until this group's part of all buffers of dS is free again.
  TSR_MEMBER void wait_stored() {
    if (thread == 0)
      bulk_wait_read<0>();
    named_sync(3 + group, 128);
  }
  /// By way of the buffers of dS that are free: this step's, and, once the
  /// other group is at its last dQ, the one after.
  TSR_MEMBER void store_rows(TensorMap const &map, float const *rows,
                             float scale) {
    char *panels[] = {s.ds[buffer][0] + group * 64 * 128,
                      s.ds[buffer == 2 ? 0 : buffer + 1][0] + group * 64 * 128};
    wait_stored();
#pragma unroll
    for (int c = 0; c < C::D / 16; c++) {
      float scaled[8];
#pragma unroll
      for (int e = 0; e < 8; e++)
        scaled[e] = rows[8 * c + e] * scale;
      Fragment16 f;
      convert<T>(f, scaled);
      store_fragment(panels[c / 4], c % 4, f);
    }
    fence_async();
    named_sync(3 + group, 128);
    if (thread == 0) {
      typename C::Step const &of = s.step[(steps - 1) % C::Planned];
#pragma unroll
      for (int c = 0; c < C::Panels; c++)
        store_box<C>(&map, panels[c], c * 64, of.n * C::BN + group * 64,
                     of.head, of.batch, of.place());
      bulk_commit();
    }
  }

  TSR_MEMBER void steps_of_tile() {
    bool last = step<true, false>();
    if constexpr (C::Alternates && C::Writes && C::D > 64) {
      // One loop, in which NVRTC spills nothing; three of them are faster.
      while (!last)
        last = adds() ? step<false, true>() : step<false, false>();
    } else if constexpr (C::Alternates) {
      if (!last && !adds())
        last = step<false, false>();
      while (!last)
        last = step<false, true>() || step<false, false>();
    } else {
      while (!last)
        last = step<false, true>();
    }
  }
  /// The rest of a tile's last step.
  template <bool Adds> TSR_MEMBER void end() {
    float dq[C::DqColumns / 2];
    typename Sums::Addition additions[Sums::N];
    if (Adds)
      issue_dq(dq);
    pass_turn();
    if (Adds) {
      gather_sums(additions);
      await_turn();
    }
    wgmma_wait<0>();
    if (C::BM == 64)
      release(&s.q_empty[ring.stage ? ring.stage - 1 : C::Stages - 1]);
    release(&s.k_empty);
    if (Adds)
      add_dq(target(), dq, additions);
  }

  TSR_MEMBER void tile(typename C::Step const &start, int phase) {
    this->start(start, start.first_key() + group * 64);
    const bool empty = !start.sum;
    barrier_wait(&s.v_full, phase);
    if (!empty) {
      if constexpr (C::BM == 128) {
        turns();
      } else {
        steps_of_tile();
      }
      pass_turn();
      release(&s.v_empty);
      take_turn();
      if (adds())
        end<true>();
      else
        end<false>();
      store_rows(maps.dv, dv, Mods::KeptScale);
    } else {
#pragma unroll
      for (int i = 0; i < C::D / 2; i++)
        dk[i] = dv[i] = 0;
      if (C::Sums > 0 && p.queries == 0 && group == 0)
        bwd_clear_sums<C>(p, start);
      barrier_wait(&s.q_full[ring.stage], ring.phase);
      barrier_wait(&s.dout_full[ring.stage], ring.phase);
      release(&s.q_empty[ring.stage]);
      release(&s.dout_empty[ring.stage]);
      steps++;
      if ((C::AddsByCopy || C::Ordered) && adds()) {
        await_turn();
        if (C::AddsByCopy)
          barrier_wait(&s.dq_empty[group], added() & 1 ^ 1);
        release(&s.added[turn_of()]);
      }
      ring.next();
      release(&s.v_empty);
      release(&s.k_empty);
      store_rows(maps.dv, dv, Mods::KeptScale);
    }
    store_rows(maps.dk, dk, Mods::Scale);
  }

  TSR_MEMBER void run() {
    if (group == 1)
      pass_turn(); // the first turn is group 0's
    for (int number = 0;; number++) {
      // The first tile's keys are loaded before its steps are planned.
      const unsigned i = steps % C::Planned;
      barrier_wait(&s.step_full[i], steps / C::Planned & 1);
      barrier_wait(&s.k_full, number & 1);
      typename C::Step const &start = s.step[i];
      if (start.n < 0)
        break;
      tile(start, number & 1);
    }
    if (thread == 0)
      bulk_wait_done<0>();
  }
};

template <class C, class P>
TSR_DEVICE void attention_bwd_narrow(BwdMaps const &maps, P const &p) {
  constexpr int Readers = 256;
  constexpr int OrderWarps = !C::AddsByCopy && !C::Ordered ? 0
                             : C::TurnsOfGroups            ? 2
                                                           : 1;
  extern __shared__ __align__(1024) char raw[];
  auto &s = *reinterpret_cast<typename C::Shared *>(raw);
  int drawn = 0;
  if (threadIdx.x == 96)
    drawn = atomicAdd(p.ticket, 1);
  if (threadIdx.x == 0) {
    s.planned = p;
    barrier_init(&s.k_full, 1), barrier_init(&s.v_full, 1);
    barrier_init(&s.k_empty, Readers), barrier_init(&s.v_empty, Readers);
    for (int i = 0; i < C::Stages; i++) {
      barrier_init(&s.q_full[i], 1), barrier_init(&s.dout_full[i], 1);
      barrier_init(&s.q_empty[i], Readers);
      barrier_init(&s.dout_empty[i], Readers);
    }
    for (int i = 0; i < 2; i++)
      barrier_init(&s.turn[i], 1), barrier_init(&s.dq_empty[i], 1),
          barrier_init(&s.added[i], C::TurnsOfGroups ? Readers / 2 : Readers);
    for (int i = 0; i < C::Planned; i++) {
      barrier_init(&s.step_full[i], 1);
      barrier_init(&s.step_empty[i], 1 + OrderWarps * 32);
    }
    fence_barrier_init();
  }
  __syncthreads();
  // A warp's number, told by one lane, is the same for all: without that, the
  // compiler has too few registers for the consumers.
  const int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0);
  if (warp < 4) {
    registers_lower<C::Producer>();
    if (warp == 3)
      BwdPlanner<C, P>{s.planned, s}.run(
          drawn, [&](typename C::Tile const &tile) {
            if (threadIdx.x == 96) {
              bwd_load_keys<C>(p, maps.v, s.v, &s.v_full, tile);
              bwd_load_keys<C>(p, maps.k, s.k, &s.k_full, tile);
            }
          });
    else if (warp > OrderWarps)
      return;
    else if (C::AddsByCopy && warp > 0)
      BwdAdder<C>{s, warp - 1}.run();
    else if (C::Ordered && warp > 0)
      BwdOrder<C>{s, warp - 1}.run();
    else if (threadIdx.x == 0)
      BwdProducer<C, P>{maps, p, s}.run();
  } else {
    registers_raise<C::Consumer>();
    BwdConsumer<C, P>(maps, p, s, warp / 4 - 1).run();
  }
}

/// The main kernel, of C::Threads threads (__launch_bounds__(C::Threads, 1))
/// and sizeof(C::Shared) bytes of dynamic shared memory, for any number of
/// clusters of C::Cluster blocks. `maps` lies in the kernel's parameters.
template <class C, class P>
TSR_DEVICE void attention_bwd(BwdMaps const &maps, P const &p) {
  if constexpr (C::Wide)
    attention_bwd_wide<C>(maps, p);
  else
    attention_bwd_narrow<C>(maps, p);
}

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_BWD_CUH
