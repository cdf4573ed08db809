//===- attention_bwd_steps.cuh - attention, backward: steps ahead ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The warps of attention_bwd.cuh that do not compute: one plans steps into a
// ring in shared memory, one loads them, and one or two say whose turn it is to
// add, where that has an order, or add themselves.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_BWD_STEPS_CUH
#define TESSERA_KERNELS_ATTENTION_BWD_STEPS_CUH

#include "attention/attention_bwd_order.cuh"

namespace tessera {

/// Of the first 32 words of 32 blocks, those in which some block has a kind
/// that is not 0. By a whole warp.
template <class F> TSR_DEVICE uint32 kept_words(int blocks, F kind) {
  const int all = min((blocks + 31) / 32, 32);
  uint32 words = 0;
#pragma unroll 8
  for (int word = 0; word < all; word++)
    words |= (uint32)(kind(word * 32 + (int)threadIdx.x % 32) != 0) << word;
  return __reduce_or_sync(~0u, words);
}

/// Sparse: which blocks of its head's queries a tile has, 32 at a time. By a
/// whole warp.
template <class C, class P> struct BwdWalk {
  P const &p;
  uint32 words;       // of 32 blocks: which have any
  uint32 kept, whole; // which are not 0, which are 2

  /// The first block of the walk from i to end that the tile has, or end; block
  /// i is m(i). Before came those from 0 on.
  template <class F>
  TSR_MEMBER int next(typename C::Tile const &t, int i, int end, F m) {
    auto kind = [&](int i) {
      return i < end ? bwd_kind<C>(p, t.batch, t.head, m(i), t.n) : 0;
    };
    for (; i < end; i = (i | 31) + 1) {
      const int lane = threadIdx.x % 32;
      if (i % 1024 == 0)
        words = kept_words(end - i, [&](int from) { return kind(i + from); });
      if (i % 32 == 0) {
        kept = 0;
        if (!(words >> i / 32 % 32 & 1))
          continue;
        const int own = kind(i + lane);
        kept = __ballot_sync(~0u, own != 0);
        whole = __ballot_sync(~0u, own == 2);
      }
      if (const uint32 rest = kept >> i % 32)
        return i + __ffs(rest) - 1;
    }
    return end;
  }
};

/// Keys or values of a tile or a step of one.
template <class C, class P, class Of>
TSR_DEVICE void bwd_load_keys(P const &p, TensorMap const &map,
                              char (*to)[C::BN * 128], uint64 *full,
                              Of const &of) {
  const int head = bwd_key_head<C>(p, of);
  barrier_expect(full, C::BN * C::Panels * 128);
#pragma unroll
  for (int c = 0; c < C::Panels; c++)
    load_box<C>(to[c], &map, full, c * 64, of.n * C::BN, head, of.batch,
                of.place(), kEvictFirst);
}

/// A warp that draws tiles and plans their steps, ahead of the producer. In a
/// cluster the first block draws for both.
template <class C, class P> struct BwdPlanner {
  P const &p;
  typename C::Shared &s;
  const int lane = threadIdx.x % 32;
  int steps = 0, draws = 0;

  /// A step is put into the ring, and added when it is known whether it is the
  /// last of its tile.
  TSR_MEMBER void put(typename C::Step const &step) {
    const int i = steps % C::Planned;
    barrier_wait(&s.step_empty[i], steps / C::Planned & 1 ^ 1);
    if (lane == 0)
      s.step[i] = step;
  }
  TSR_MEMBER void add(bool last) {
    const int i = steps % C::Planned;
    if (lane == 0) {
      s.step[i].last = last;
      barrier_arrive(&s.step_full[i]);
    }
    steps++;
  }

  TSR_MEMBER void tile(typename C::Tile const &t) {
    const auto &own = sequence_of<C>(p, t.place());
    const int whole = bwd_whole<C>(own, t.n);
    bool any = false;
    auto empty = [&] {
      typename C::Step step = {};
      step.n = t.n, step.head = t.head, step.batch = t.batch;
      step.number(t);
      if constexpr (C::Packed)
        step.own = t.own;
      return step;
    };
    __syncwarp();
    if (lane == 0) {
      const BwdWorkspace<C> work(p);
      const int64 at = bwd_block<C>(p, t.batch, t.head, 0, t.place());
      s.first.sum = work.sum + at * C::DqParts * C::Part;
      s.first.turn = work.turns + at * 2;
      if constexpr (C::Walks)
        s.first.walks = walk_words<C>(p, t);
    }
    __syncwarp();
    auto next = [&](int m, int rank, bool final, bool asks, bool trails) {
      if (any)
        add(false);
      any = true;
      typename C::Step step = empty();
      step.sum = s.first.sum + (int64)m * (C::DqParts * C::Part);
      step.turn = s.first.turn + m * 2;
      step.m = m, step.rank = rank, step.final = final, step.trails = trails;
      step.masked = m < whole;
      if constexpr (C::MayAsk)
        step.asks = asks;
      put(step);
    };
    if constexpr (C::Walks) {
      for (int part = 0; part < WalkParts(p.queries, p.keys, t.passes).parts;
           part++) {
        uint32 mine = 0; // of 32 steps
        for (int i = 0;; i++) {
          if (i % 32 == 0) {
            // Made anew: there are no registers to keep it.
            const BlockWalks<> walks = bwd_walks<C>(p, t.passes, s.first.walks);
            mine = walks.End;
            if (i + lane < walks.width)
              mine = walks.walk(part, t.n)[i + lane];
            // What is behind the end was never written.
            const uint32 ends = __ballot_sync(~0u, mine == walks.End);
            if (ends & ((1u << lane) - 1))
              mine = walks.End;
            if (mine != walks.End &&
                bwd_kind<C>(p, t.batch, t.head, mine & 0xffff, t.n) != 2)
              mine |= 1u << 31;
          }
          const uint32 now = __shfl_sync(~0u, mine, i % 32);
          if (now == BlockWalks<>::End)
            break;
          next(now & 0xffff, now >> 16 & 0x7fff, false, now >> 31, false);
        }
      }
    } else {
      const BwdRows<C> rows(own, t);
      const int blocks = rows.end - rows.begin;
      auto block = [&](int i) {
        return t.rows_down ? rows.end - 1 - i : rows.begin + i;
      };
      if constexpr (C::Sparse) {
        BwdWalk<C, P> walk = {p};
        auto from = [&](int i) { return walk.next(t, i, blocks, block); };
        for (int i = from(0); i < blocks; i = from(i + 1))
          next(block(i), 0, false, !(walk.whole >> i % 32 & 1), false);
      } else {
        for (int first = 0; first < blocks; first += 32) { // a lane each
          const int own_block = block(min(first + lane, blocks - 1));
          const BwdRank rank = bwd_rank<C>(own, t, own_block);
          const uint32 final = __ballot_sync(~0u, rank.after == 0);
          const uint32 asks =
              C::MayAsk ? __ballot_sync(~0u, bwd_asks<C>(own, t, own_block))
                        : 0;
          for (int i = first; i < min(first + 32, blocks); i++)
            next(block(i), __shfl_sync(~0u, rank.before, i % 32),
                 final >> i % 32 & 1, asks >> i % 32 & 1,
                 i == 0 && bwd_trails<C>(p, t, rows, block(0)));
        }
      }
    }
    if (!any)
      put(empty());
    add(true);
  }

  /// By a lane.
  TSR_MEMBER int draw() {
    if constexpr (!C::Wide) {
      return atomicAdd(p.ticket, 1);
    } else {
      const int parity = draws++ & 1;
      if (cluster_rank() == 0) {
        const int drawn = atomicAdd(p.ticket, 1);
        barrier_wait(&s.drawn_empty, parity ^ 1);
        store_at(&s.drawn, drawn, &s.drawn_full, 1);
        return drawn;
      }
      barrier_expect(&s.drawn_full, sizeof s.drawn);
      barrier_wait(&s.drawn_full, parity);
      const int drawn = s.drawn;
      barrier_arrive_at(&s.drawn_empty, 0);
      return drawn;
    }
  }

  /// Begins with a draw that was made; loads(tile): when that is known.
  template <class F> TSR_MEMBER void run(int drawn, F loads) {
    const int reads = bwd_reads<C>(p);
    if (lane == 0)
      s.sections = bwd_sections<C>(p, reads);
    __syncwarp();
    BwdSections const &sections = s.sections;
    for (bool first = true;; first = false) {
      if (lane == 0 && !first)
        drawn = draw();
      drawn = __shfl_sync(~0u, drawn, 0);
      const typename C::Tile t = bwd_tile<C>(p, sections, drawn);
      if (t.n < 0) {
        // The last draw of all.
        const int tiles = sections.tiles * sections.all;
        if (lane == 0 && drawn == tiles + (int)gridDim.x / C::Cluster - 1 &&
            (!C::Wide || cluster_rank() == 0))
          *p.ticket = 0;
        typename C::Step end = {};
        end.n = -1;
        put(end);
        return add(true);
      }
      if (first)
        loads(t);
      tile(t);
    }
  }
};

/// A thread. The first queries of a tile go ahead of its values, and they ahead
/// of its keys: in this order there is room for them. Steps without queries
/// have places in the rings like others.
template <class C, class P> struct BwdProducer {
  BwdMaps const &maps;
  P const &p;
  typename C::Shared &s;
  int steps = 0, tiles = 0;
  bool early = true; // prepare may still run
  Ring<C::Stages> ring;

  TSR_MEMBER void load_queries(TensorMap const &map, char (*to)[C::BM * 128],
                               float *row_to, float const *row_from,
                               uint64 *full, typename C::Step const &step,
                               int more = 0) {
    barrier_expect(full, C::BM * (C::Panels * 128 + 4) + more);
#pragma unroll
    for (int c = 0; c < C::Panels; c++)
      load_box<C>(to[c], &map, full, c * 64, step.m * C::BM, step.head,
                  step.batch, step.place(), kEvictNormal);
    if (early) {
      wait_before();
      start_next();
      early = false;
    }
    bulk_load(row_to, row_from, C::BM * 4, full);
  }
  TSR_MEMBER void load_step(typename C::Step const &step) {
    const BwdWorkspace<C> work(p);
    const int i = ring.stage, parity = ring.phase ^ 1;
    const int64 row = (step.sum - work.sum) / C::SumColumns;
    barrier_wait(&s.q_empty[i], parity);
    // The step that had its place is over, and nothing reads those before.
    if (const int over = steps + C::Ahead - C::Planned; over >= 0)
      barrier_arrive(&s.step_empty[over % C::Planned]);
    if (step.sum) {
      load_queries(maps.q, s.q[i], s.lse[i], work.lse + row, &s.q_full[i], step,
                   C::RowBytes);
      if (C::RowBytes)
        bulk_load(s.row[i], work.row + row, C::RowBytes, &s.q_full[i]);
    } else {
      barrier_arrive(&s.q_full[i]);
    }
    barrier_wait(&s.dout_empty[i], parity);
    if (step.sum)
      load_queries(maps.dout, s.dout[i], s.delta[i], work.delta + row,
                   &s.dout_full[i], step);
    else
      barrier_arrive(&s.dout_full[i]);
    ring.next();
  }

  TSR_MEMBER void run() {
    for (bool first = true;; steps++) { // of a tile
      typename C::Step const &step = s.step[steps % C::Planned];
      barrier_wait(&s.step_full[steps % C::Planned], steps / C::Planned & 1);
      const int parity = tiles & 1 ^ 1;
      if (step.n < 0) {
        wait_before(); // it may have loaded none
        barrier_wait(&s.k_empty, parity);
        barrier_arrive(&s.k_full);
        return;
      }
      load_step(step);
      if (first && tiles++) { // the planner has loaded those of the first
        barrier_wait(&s.v_empty, parity);
        bwd_load_keys<C>(p, maps.v, s.v, &s.v_full, step);
        barrier_wait(&s.k_empty, parity);
        bwd_load_keys<C>(p, maps.k, s.k, &s.k_full, step);
      }
      first = step.last;
    }
  }
};

/// A warp, for both consumer groups, or for each where they alternate: waits
/// until a step's rank has come, lets them add, and counts on. They meet
/// barriers in shared memory alone: this fence makes the additions of all
/// threads visible. It takes half of a step: where the next step's rank has
/// come before, its turn does not wait for that. Steps of more queries take
/// longer than the reading. (Two warps where both groups add to a step have
/// twice the fences: 0.99. One where they alternate: 0.96 to 1.00.)
template <class C> struct BwdOrder {
  typename C::Shared &s;
  const int of, lane = threadIdx.x % 32; // a group, or a block of a cluster
  unsigned number = 0; // of the step that is read next
  int *turn;           // of the step that was read; null: it adds nothing
  int rank;
  bool trails;
  bool end; // it was none
  BwdTurn<typename C::Step> own;

  /// Whether step n, the next or the one behind it, is planned.
  TSR_MEMBER bool is_there(unsigned n) {
    return barrier_test(&s.step_full[n % C::Planned], n / C::Planned & 1);
  }
  TSR_MEMBER typename C::Step const &await(unsigned n) {
    barrier_wait(&s.step_full[n % C::Planned], n / C::Planned & 1);
    return s.step[n % C::Planned];
  }
  /// Whether the next step is the other group's.
  TSR_MEMBER bool is_other() {
    return C::Alternates && (int)(number % 2) != of;
  }
  TSR_MEMBER void pass() {
    barrier_arrive(&s.step_empty[number++ % C::Planned]);
  }
  TSR_MEMBER void read() {
    if (is_other()) {
      end = await(number).n < 0;
      pass();
      if (end)
        return;
    }
    typename C::Step const &step = await(number);
    turn = step.sum ? step.turn + (C::Wide ? of : 0) : nullptr;
    rank = step.rank, trails = step.trails, end = step.n < 0;
    own.tell(step);
    pass();
  }

  TSR_MEMBER void let_add() {
    fence_acquire();
    __syncwarp();
    if (lane == 0)
      barrier_arrive(&s.turn[of]);
  }

  TSR_MEMBER void run() {
    wait_before();
    read();
    bool lets = false; // them already
    for (int shown = 0, parity = 0; !end; parity ^= 1) {
      if (!lets) {
        if (trails)
          own.wait(turn + 2, rank, 1);
        if (turn && shown != rank)
          own.wait(turn, rank);
        let_add();
      }
      int *const counter = lane == 0 ? turn : nullptr;
      const int count = rank + 1;
      const bool ahead = C::BM == 64 && is_there(number) &&
                         (!is_other() || is_there(number + 1));
      if (ahead) {
        read();
        if (turn)
          shown = load_relaxed(turn);
      }
      barrier_wait(&s.added[of], parity);
      lets = ahead && !end && !trails && (!turn || shown == rank);
      if (lets)
        let_add();
      else if (ahead && turn)
        shown = load_relaxed(turn);
      fence_release();
      if (counter)
        store_relaxed(counter, count);
      if (!ahead)
        read(), shown = 0;
    }
  }
};

/// Instead, where dQ is in shared memory: a warp for each consumer group that
/// adds what the group has left there. What it has copied it makes visible; the
/// group is a step ahead meanwhile.
template <class C> struct BwdAdder {
  typename C::Shared &s;
  const int group;
  BwdTurn<typename C::Step> own;

  /// By a lane: a step's dQ.
  TSR_MEMBER void add(typename C::Step const &step, int parity) {
    float *const sum = step.sum;
    int *const turn = sum && C::Ordered ? step.turn + group : nullptr;
    const int rank = step.rank;
    const bool written = C::Writes && step.final; // by the group
    own.tell(step);
    if (turn) {
      if (rank > 0)
        own.wait(turn, rank);
      fence_acquire();
    }
    if (written)
      barrier_arrive(&s.turn[group]);
    barrier_wait(&s.added[group], parity);
    if (sum && !written) {
      constexpr int Bytes = C::Part * 4;
      if (C::Ordered && rank == 0)
        bulk_store(sum + group * C::Part, s.dq[group], Bytes);
      else
        bulk_add(sum + group * C::Part, s.dq[group], Bytes);
      bulk_commit();
      bulk_wait_done<0>();
    }
    barrier_arrive(&s.dq_empty[group]);
    if (turn) {
      fence_release();
      store_relaxed(turn, rank + 1);
    }
  }

  TSR_MEMBER void run() {
    wait_before();
    for (unsigned number = 0;; number++) {
      const unsigned i = number % C::Planned;
      barrier_wait(&s.step_full[i], number / C::Planned & 1);
      const bool end = s.step[i].n < 0;
      if (threadIdx.x % 32 == 0 && !end)
        add(s.step[i], number & 1);
      __syncwarp();
      barrier_arrive(&s.step_empty[i]);
      if (end)
        return;
    }
  }
};

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_BWD_STEPS_CUH
