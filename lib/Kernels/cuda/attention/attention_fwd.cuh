//===- attention_fwd.cuh - attention, forward -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// O = softmax(mods(scale * Q K^T)) V and the log-sum-exp of its rows; bf16 or
// f16, head dimension 64, 96, 128, 192 or 256 (values of 192 may have 128),
// grouped heads, any lengths. Scores never leave the registers.
//
// A block is one producer warp and two or three consumer warp groups, each of
// which owns 64 query rows. Blocks are persistent: tiles of queries come by a
// ticket, longest first. Blocks of keys go from the last to the first, so that
// only the first ones look at the end of the keys and at the diagonal.
//
// In a warp group the scores of step i are issued just before the values of
// step i-1: the tensor cores still have P(i-1) V(i-1) when softmax(i) may
// start. The groups issue in turn, so that one group's softmax falls into the
// other's products. What an accumulator holds is issued and awaited in one
// iteration of the loop; otherwise ptxas serialises all products.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_FWD_CUH
#define TESSERA_KERNELS_ATTENTION_FWD_CUH

#include "base/wgmma.cuh"

namespace tessera {

/// Keys [begin, end).
struct KeyRange {
  int begin, end;
};

/// What a gradient of a captured tensor has a sum of scores' addends for.
enum class SumBy { Query, Key, Distance, Score };

/// A query and a key, by their global indices, and what the functors have of
/// each alone.
template <class Mods> struct AttentionPair {
  typename Mods::Row const &row;
  typename Mods::Column const &column;
  int64 batch, head, query, key;
};

/// What a kernel knows of its attention op. A kernel is a template over a
/// struct that derives from this one and replaces what differs. All functions
/// are pure: they may be called for any query and key, any number of times.
struct AttentionMods {
  /// What the functions below get from the kernel's parameters.
  struct Args {};
  /// Of the product of a query and a key.
  static constexpr float Scale = 1;
  /// A score functor gets the scaled product times InnerScale, and the score is
  /// OuterScale, which is positive, times what it gives: free of cost here.
  static constexpr float InnerScale = 1, OuterScale = 1;
  /// Keeps the keys up to query + causal_shift.
  static constexpr bool Causal = false;
  /// There is a `float score(Args const &, float scaled, AttentionPair const
  /// &)`.
  static constexpr bool HasScore = false;
  /// For the backward of a score there is a `float score_grad(Args const &,
  /// float scaled, float dy, AttentionPair const &)`: dy times the derivative
  /// of the score by the scaled product, whose InnerScale times it gets as
  /// `score` does; else that is 1.
  static constexpr bool HasScoreGrad = false;
  /// For the gradients of captured tensors, sums over the addends of scores:
  /// `score_grad` gets the derivative by the score as dy, and one more
  /// argument, `float (&addends)[Sums]`, which it sets.
  static constexpr int Sums = 0;
  TSR_DEVICE constexpr SumBy sum_by(int) { return SumBy::Query; }
  /// There is a `bool mask(Args const &, AttentionPair const &)`: whether the
  /// key is kept.
  static constexpr bool HasMask = false;

  /// What the functors load for a query or for a key, whatever the other: it is
  /// computed once for many pairs.
  struct Row {};
  struct Column {};
  template <class A>
  TSR_DEVICE Row row(A const &, int64 batch, int64 head, int64 query) {
    return {};
  }
  template <class A>
  TSR_DEVICE Column column(A const &, int64 batch, int64 key) {
    return {};
  }

  // Global indices from this device's own; monotone in the index.
  template <class A> TSR_DEVICE int64 batch(A const &, int index) {
    return index;
  }
  template <class A> TSR_DEVICE int64 head(A const &, int index) {
    return index;
  }
  template <class A> TSR_DEVICE int64 query(A const &, int index) {
    return index;
  }
  /// Which of this device's key heads its query head reads.
  template <class A>
  TSR_DEVICE int key_head(A const &, int head, int heads, int key_heads) {
    return head / (heads / key_heads);
  }
  /// A range outside of which no query of [first, last] sees a key; of later
  /// queries neither end is smaller.
  template <class A>
  TSR_DEVICE KeyRange keys(A const &, int64 batch, int64 head, int64 first,
                           int64 last, int keys) {
    return {0, keys};
  }
};

/// Type T, head dimension D, of values DV; BM queries, 64 to a consumer group,
/// and BN keys (attention_tiles.h).
template <class T_, int D_, class Mods_, int DV_, int BM_, int BN_>
struct FwdConfig {
  using T = T_;
  using Mods = Mods_;
  static constexpr int D = D_, DV = DV_, BM = BM_, BN = BN_, Stages = 2;
  /// Of 64 columns; of what is beyond the last, copies make zeros.
  static constexpr int Panels = (D + 63) / 64, ValuePanels = (DV + 63) / 64;
  static constexpr bool Causal = Mods::Causal;
  static constexpr bool HasMods = Mods::HasScore || Mods::HasMask;
  /// The score is scaled before it is used; else by Factor, in the exponent.
  static constexpr bool Scaled = Mods::HasScore || !(Mods::Scale > 0);
  static constexpr float Factor = Scaled ? Mods::OuterScale : Mods::Scale;
  static constexpr int Groups = BM / 64, Threads = 128 * (Groups + 1);
  /// Results are stored by way of the queries' memory.
  static constexpr bool InPlace = D > 128;
  /// Over masked blocks and others. Two are faster, but where ptxas then loses
  /// sight of what is the same for a warp.
  static constexpr bool OneLoop = Groups == 3 && Causal;
  /// Registers of a thread: functors need some in the producer, too.
  static constexpr int Producer = Groups == 3          ? 32
                                  : HasMods || InPlace ? 40
                                                       : 24;
  static constexpr int Consumer = Groups == 3          ? 160
                                  : HasMods || InPlace ? 232
                                                       : 240;
  static_assert(D == 64 || D == 96 || D == 128 || D == 192 || D == 256,
                "head dimension 64, 96, 128, 192 or 256");
  static_assert(DV == D || (D == 192 && DV == 128), "values as keys, or 128");

  struct Shared {
    alignas(1024) char q[Panels][BM * 128];
    alignas(1024) char own_o[InPlace ? 1 : ValuePanels][InPlace ? 1 : BM * 128];
    alignas(1024) char k[Stages][Panels][BN * 128];
    alignas(1024) char v[Stages][ValuePanels][BN * 128];
    uint64 q_full, q_empty;
    uint64 k_full[Stages], k_empty[Stages], v_full[Stages], v_empty[Stages];
    int tile; // travels with q_full; negative: no more
  };
};

/// Tensors as (d, position, head, batch), 128-byte swizzle. Boxes are 64 x BM
/// (q), 64 x BN (k, v), 64 x 64 (o). A map without elements may be anything.
struct FwdMaps {
  TensorMap q, k, v, o;
};

template <class Args> struct FwdParams {
  float *lse;           // or null
  int64 lse_strides[3]; // batch, head, query
  int *ticket;          // zero, and left zero; or null: every gridDim.x-th tile
  int batch, heads, key_heads, queries, keys; // of this device
  int causal_shift;                           // keys less queries, globally
  Args args;
};

/// A tile of queries: longest first, inside sections of heads whose keys and
/// values fit into L2 together.
template <class C> struct FwdTile {
  int m, head, batch;

  template <class P> TSR_MEMBER FwdTile(P const &p, int id) {
    const int tiles = (p.queries + C::BM - 1) / C::BM;
    const int all = p.heads * p.batch;
    const int fit = (32 << 20) / (2 * (C::D + C::DV)) / max(p.keys, 1);
    const int section = min(all, max(1, fit) * (p.heads / p.key_heads));
    const int s = id / (tiles * section);
    const int width = min(section, all - s * section);
    const int inside = id - s * tiles * section;
    int row, column;
    if (C::Causal)
      row = tiles - 1 - inside / width, column = inside % width;
    else
      row = inside % tiles, column = inside / tiles;
    m = row;
    head = (s * section + column) % p.heads;
    batch = (s * section + column) / p.heads;
  }
};

/// Key blocks that the queries [first, end) of a tile see: [begin, end), of
/// which those from `whole` on cross the diagonal or the end of the keys. Empty
/// if there are no such queries.
template <class C> struct FwdBlocks {
  int begin = 0, end = 0, whole = 0;

  template <class P>
  TSR_MEMBER FwdBlocks(P const &p, FwdTile<C> const &t, int first, int rows) {
    using Mods = typename C::Mods;
    first += t.m * C::BM;
    const int last = min(first + rows, p.queries) - 1;
    if (last < first)
      return;
    const int64 first_query = Mods::query(p.args, first);
    const int64 last_query = Mods::query(p.args, last);
    KeyRange seen =
        Mods::keys(p.args, Mods::batch(p.args, t.batch),
                   Mods::head(p.args, t.head), first_query, last_query, p.keys);
    int all_see = p.keys; // the keys before are seen by all rows
    if (C::Causal) {
      seen.end = min(seen.end, (int)last_query + p.causal_shift + 1);
      all_see = min(all_see, (int)first_query + p.causal_shift + 1);
    }
    begin = max(seen.begin, 0) / C::BN;
    end = (max(min(seen.end, p.keys), 0) + C::BN - 1) / C::BN;
    end = max(begin, end);
    whole = max(all_see, 0) / C::BN;
  }
};

template <class C, class P> struct FwdProducer {
  FwdMaps const &maps;
  P const &p;
  typename C::Shared &s;
  Ring<C::Stages> k_ring, v_ring;

  template <int Panels>
  TSR_MEMBER void load(TensorMap const &map, char (&to)[Panels][C::BN * 128],
                       uint64 *full, uint64 *empty, int phase, int block,
                       int head, int batch) {
    barrier_wait(empty, phase ^ 1);
    barrier_expect(full, sizeof to);
#pragma unroll
    for (int c = 0; c < Panels; c++)
      tma_load(to[c], &map, full, c * 64, block * C::BN, head, batch,
               kEvictLast);
  }
  TSR_MEMBER void load_k(int block, int head, int batch) {
    const int i = k_ring.stage;
    load(maps.k, s.k[i], &s.k_full[i], &s.k_empty[i], k_ring.phase, block, head,
         batch);
    k_ring.next();
  }
  TSR_MEMBER void load_v(int block, int head, int batch) {
    const int i = v_ring.stage;
    load(maps.v, s.v[i], &s.v_full[i], &s.v_empty[i], v_ring.phase, block, head,
         batch);
    v_ring.next();
  }

  TSR_MEMBER void run() {
    const int tiles = (p.queries + C::BM - 1) / C::BM * p.heads * p.batch;
    int id = blockIdx.x;
    for (int phase = 0;; phase ^= 1) {
      if (id >= tiles) {
        barrier_wait(&s.q_empty, phase ^ 1);
        s.tile = -1;
        barrier_arrive(&s.q_full);
        return;
      }
      int next = id + gridDim.x;
      if (p.ticket) { // a draw a tile: the last of all finds tiles - 1
        const int drawn = atomicAdd(p.ticket, 1);
        next = drawn + gridDim.x;
        if (drawn == tiles - 1)
          *p.ticket = 0;
      }
      const FwdTile<C> t(p, id);
      const FwdBlocks<C> blocks(p, t, 0, C::BM);
      const int head = C::Mods::key_head(p.args, t.head, p.heads, p.key_heads);
      if (blocks.begin < blocks.end)
        load_k(blocks.end - 1, head, t.batch);
      barrier_wait(&s.q_empty, phase ^ 1);
      s.tile = id;
      barrier_expect(&s.q_full, sizeof s.q);
#pragma unroll
      for (int c = 0; c < C::Panels; c++)
        tma_load(s.q[c], &maps.q, &s.q_full, c * 64, t.m * C::BM, t.head,
                 t.batch, kEvictFirst);
      for (int n = blocks.end - 1; n >= blocks.begin; n--) {
        if (n > blocks.begin)
          load_k(n - 1, head, t.batch);
        load_v(n, head, t.batch);
      }
      id = next;
    }
  }
};

template <class C, class P> struct FwdConsumer {
  using Mods = typename C::Mods;
  using T = typename C::T;
  FwdMaps const &maps;
  P const &p;
  typename C::Shared &s;
  const int group, thread = threadIdx.x % 128, lane = threadIdx.x % 32;
  Ring<C::Stages> k_ring, v_ring;
  int row;                    // this thread's first; the other is row + 8
  int last;                   // this group's last block: then q is free
  int head, batch;            // of this device
  typename Mods::Row rows[2]; // of the functors
  float o[C::DV / 2], x[C::BN / 2], top[2], sum[2], shrink[2];
  Fragment16 probs[C::BN / 16];

  TSR_MEMBER FwdConsumer(FwdMaps const &maps, P const &p, typename C::Shared &s,
                         int group)
      : maps(maps), p(p), s(s), group(group) {}

  TSR_DEVICE float infinity() { return __int_as_float(0x7f800000); }
  TSR_MEMBER void release(uint64 *b) {
    if (lane == 0)
      barrier_arrive(b);
  }
  /// The queries were read for the last time.
  TSR_MEMBER void release_q() {
    if (!C::InPlace)
      release(&s.q_empty);
  }
  TSR_MEMBER void release_k() {
    release(&s.k_empty[k_ring.stage]);
    k_ring.next();
  }
  TSR_MEMBER void release_v() {
    release(&s.v_empty[v_ring.stage]);
    v_ring.next();
  }
  TSR_MEMBER void wait_k() {
    barrier_wait(&s.k_full[k_ring.stage], k_ring.phase);
  }
  TSR_MEMBER void wait_v() {
    barrier_wait(&s.v_full[v_ring.stage], v_ring.phase);
  }

  TSR_MEMBER void issue_scores() {
    const uint64 a = operand(s.q[0] + group * 64 * 128);
    const uint64 b = operand(s.k[k_ring.stage][0]);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < C::D / 16; i++)
      Wgmma<T, C::BN>::ss(x, a + i / 4 * (C::BM * 128 >> 4) + i % 4 * kStepK,
                          b + i / 4 * (C::BN * 128 >> 4) + i % 4 * kStepK,
                          i > 0);
    wgmma_commit();
  }
  TSR_MEMBER void issue_values(bool first) {
    const uint64 b = operand(s.v[v_ring.stage][0], C::BN * 128);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < C::BN / 16; i++)
      Wgmma<T, C::DV>::rs(o, probs[i], b + i * kStepMN, !first || i > 0);
    wgmma_commit();
  }
  TSR_MEMBER void convert_probs() {
#pragma unroll
    for (int i = 0; i < C::BN / 16; i++)
      convert<T>(probs[i], x + 8 * i);
  }
  TSR_MEMBER void rescale() {
#pragma unroll
    for (int i = 0; i < C::DV / 2; i++)
      o[i] *= shrink[i / 2 % 2];
  }

  /// x: scaled and modified scores. Keys beyond the end are never shown to a
  /// functor: another takes their place, and they are masked afterwards.
  template <bool Masked> TSR_MEMBER void modify(int block) {
    const int first = block * C::BN + lane % 4 * 2;
    // The queries are computed anew in each step, for want of registers.
    int own = row;
    asm volatile("" : "+r"(own));
    int64 query[2]; // global, as the functors get them
#pragma unroll
    for (int r = 0; r < 2; r++)
      query[r] = Mods::query(p.args, min(own + 8 * r, p.queries - 1));
    if (C::Scaled || C::HasMods) {
      const int64 of_batch = Mods::batch(p.args, batch);
      const int64 of_head = Mods::head(p.args, head);
#pragma unroll
      for (int i = 0; i < C::BN / 2; i++) {
        const int r = i / 2 % 2;
        int key = first + fragment_column(i);
        if (Masked)
          key = min(key, p.keys - 1);
        const typename Mods::Column column =
            Mods::column(p.args, of_batch, key);
        const AttentionPair<Mods> at = {rows[r], column,   of_batch,
                                        of_head, query[r], key};
        float score =
            C::Scaled ? x[i] * (Mods::Scale * Mods::InnerScale) : x[i];
        if constexpr (Mods::HasScore)
          score = Mods::score(p.args, score, at);
        if constexpr (Mods::HasMask)
          score = Mods::mask(p.args, at) ? score : -infinity();
        // One element after the other: what the compiler would gather of all
        // before it masks the first does not fit into the registers.
        asm("" : "+f"(score));
        x[i] = score;
      }
    }
    if (Masked) {
      int visible[2]; // keys before the end and the diagonal
#pragma unroll
      for (int r = 0; r < 2; r++) {
        visible[r] = p.keys;
        if (C::Causal)
          visible[r] = min(visible[r], (int)query[r] + p.causal_shift + 1);
      }
#pragma unroll
      for (int i = 0; i < C::BN / 2; i++)
        if (fragment_column(i) >= visible[i / 2 % 2] - first)
          x[i] = -infinity();
    }
  }

  /// x: scores to unnormalised probabilities.
  template <bool First> TSR_MEMBER void softmax(int block, bool masked) {
    const float c = C::Factor * 1.44269504f;
    if (masked)
      modify<true>(block);
    else
      modify<false>(block);
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float m = First ? -infinity() : top[r];
#pragma unroll
      for (int i = 0; i < C::BN / 2; i++)
        if (i / 2 % 2 == r)
          m = fmaxf(m, x[i]);
      m = quad_max(m);
      float mc = m * c;
      if ((masked || C::HasMods) && m == -infinity())
        mc = 0; // no key so far: exp2 of -inf, and no NaN
      if (!First)
        shrink[r] = exp2_fast(top[r] * c - mc);
      top[r] = m;
      float total = 0;
#pragma unroll
      for (int i = 0; i < C::BN / 2; i++)
        if (i / 2 % 2 == r) {
          x[i] = exp2_fast(x[i] * c - mc);
          total += x[i];
        }
      sum[r] = First ? total : sum[r] * shrink[r] + total;
    }
  }

  TSR_MEMBER void take_turn() { named_sync(1 + group, 256); }
  TSR_MEMBER void pass_turn() {
    named_arrive(1 + (group + 1) % C::Groups, 256);
  }

  TSR_MEMBER void step(int block, bool masked, bool first) {
    wait_k();
    take_turn();
    issue_scores();
    wait_v();
    issue_values(first);
    pass_turn();
    wgmma_wait<1>();
    release_k();
    if (block == last)
      release_q();
    softmax<false>(block, masked);
    wgmma_wait<0>();
    release_v();
    convert_probs();
    rescale();
  }

  /// Blocks of the tile that none of this group's rows sees.
  TSR_MEMBER void skip(int blocks) {
    for (; blocks > 0; blocks--) {
      wait_k();
      take_turn();
      pass_turn();
      release_k();
      wait_v();
      release_v();
    }
  }

  /// Leaves the sums in o, sum and top.
  TSR_MEMBER void products(FwdBlocks<C> const &blocks) {
    int n = blocks.end - 1;
    wait_k();
    take_turn();
    issue_scores();
    pass_turn();
    wgmma_wait<0>();
    release_k();
    if (n == last)
      release_q();
    softmax<true>(n--, true);
    convert_probs();
    bool first = true;
    if (!C::OneLoop)
      for (; n >= max(blocks.whole, blocks.begin); n--, first = false)
        step(n, true, first);
    for (; n >= blocks.begin; n--, first = false)
      step(n, C::OneLoop && n >= blocks.whole, first);
    wait_v();
    issue_values(first);
    wgmma_wait<0>();
    release_v();
  }

  TSR_MEMBER void tile(int id) {
    const FwdTile<C> t(p, id);
    const FwdBlocks<C> all(p, t, 0, C::BM), blocks(p, t, group * 64, 64);
    row = t.m * C::BM + group * 64 + thread / 32 * 16 + lane / 4;
    head = t.head, batch = t.batch;
#pragma unroll
    for (int r = 0; r < 2; r++)
      rows[r] = Mods::row(p.args, Mods::batch(p.args, batch),
                          Mods::head(p.args, head),
                          Mods::query(p.args, min(row + 8 * r, p.queries - 1)));
    last = blocks.begin;
    // Nothing yet. A zero would be moved to where the products leave theirs.
#pragma unroll
    for (int i = 0; i < C::DV / 2; i++)
      asm volatile("" : "=f"(o[i]));
    const bool empty = blocks.begin >= blocks.end;
    if (!empty) {
      skip(all.end - blocks.end);
      products(blocks);
      skip(blocks.begin - all.begin);
    } else {
      sum[0] = sum[1] = 0;
      release_q();
      skip(all.end - all.begin);
    }

    float *lse = p.lse;
    asm("" : "+l"(lse)); // where ptxas knows that there is none it spills
#pragma unroll
    for (int r = 0; r < 2; r++) {
      sum[r] = quad_sum(sum[r]);
      shrink[r] = sum[r] == 0 ? 0 : 1 / sum[r];
      if (lse && lane % 4 == 0 && row + 8 * r < p.queries)
        lse[t.batch * p.lse_strides[0] + t.head * p.lse_strides[1] +
            (row + 8 * r) * p.lse_strides[2]] =
            sum[r] == 0 ? -infinity()
                        : top[r] * C::Factor + log2_fast(sum[r]) * 0.69314718f;
    }
    char *panels = (C::InPlace ? s.q[0] : s.own_o[0]) + group * 64 * 128;
    if (thread == 0)
      bulk_wait_read<0>();
    named_sync(5 + group, 128);
#pragma unroll
    for (int c = 0; c < C::DV / 16; c++) {
      float scaled[8];
#pragma unroll
      for (int i = 0; i < 8; i++)
        scaled[i] = empty ? 0 : o[8 * c + i] * shrink[i / 2 % 2];
      Fragment16 f;
      convert<T>(f, scaled);
      store_fragment(panels + c / 4 * C::BM * 128, c % 4, f);
    }
    fence_async();
    named_sync(5 + group, 128);
    if (thread == 0) {
#pragma unroll
      for (int c = 0; c < C::ValuePanels; c++)
        tma_store(&maps.o, panels + c * C::BM * 128, c * 64,
                  t.m * C::BM + group * 64, t.head, t.batch);
      bulk_commit();
    }
    if (C::InPlace) {
      if (thread == 0)
        bulk_wait_read<0>();
      named_sync(5 + group, 128);
      release(&s.q_empty);
    }
  }

  TSR_MEMBER void run() {
    if (group == C::Groups - 1)
      named_arrive(1, 256); // the first turn is group 0's
    for (int phase = 0;; phase ^= 1) {
      barrier_wait(&s.q_full, phase);
      // By the lane that releases what it was told of.
      const int id = __reduce_max_sync(~0u, lane == 0 ? s.tile : -1);
      if (id < 0)
        break;
      tile(id);
    }
    if (thread == 0)
      bulk_wait_done<0>();
  }
};

/// The whole kernel, of C::Threads threads (__launch_bounds__(C::Threads, 1))
/// and sizeof(C::Shared) bytes of dynamic shared memory, for any number of
/// blocks. `maps` lies in the kernel's parameters.
template <class C, class P>
TSR_DEVICE void attention_fwd(FwdMaps const &maps, P const &p) {
  extern __shared__ __align__(1024) char raw[];
  auto &s = *reinterpret_cast<typename C::Shared *>(raw);
  if (threadIdx.x == 0) {
    barrier_init(&s.q_full, 1);
    barrier_init(&s.q_empty, 4 * C::Groups);
    for (int i = 0; i < C::Stages; i++) {
      barrier_init(&s.k_full[i], 1), barrier_init(&s.v_full[i], 1);
      barrier_init(&s.k_empty[i], 4 * C::Groups);
      barrier_init(&s.v_empty[i], 4 * C::Groups);
    }
    fence_barrier_init();
  }
  __syncthreads();
  // Told by one lane, a warp's group is the same for all: else the compiler has
  // too few registers for the consumers.
  const int group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0) - 1;
  if (group < 0) {
    registers_lower<C::Producer>();
    if (threadIdx.x == 0)
      FwdProducer<C, P>{maps, p, s}.run();
  } else {
    registers_raise<C::Consumer>();
    FwdConsumer<C, P>(maps, p, s, group).run();
  }
}

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_FWD_CUH
