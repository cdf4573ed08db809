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
// ticket, longest first, or, where these would be too few, blocks share their
// steps (attention_pieces.cuh). Keys and values may be pages
// (attention_paged.cuh). Blocks of keys go from the last to the first, so that
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

#include "attention/attention_dropout.cuh"
#include "attention/attention_fwd_load.cuh"
#include "attention/attention_pieces.cuh"
#include "attention/attention_tanh.cuh"
#include "base/wgmma.cuh"

namespace tessera {

/// Type T, head dimension D, of values DV; BM queries, 64 to a consumer group,
/// and BN keys, in so many stages (attention_tiles.h). Blocks: at most so many
/// share the steps of all tiles; 0: each takes whole tiles.
template <class T_, int D_, class Mods_, int DV_, int BM_, int BN_, int Stages_,
          int Blocks_ = 0>
struct FwdConfig {
  using T = T_;
  using Mods = Mods_;
  static constexpr int D = D_, DV = DV_, BM = BM_, BN = BN_, Stages = Stages_;
  /// Of queries: a tile's are there before the one before ends, where there is
  /// room.
  static constexpr int QueryStages = Stages > 2 ? 2 : 1;
  /// Of 64 columns; of what is beyond the last, copies make zeros.
  static constexpr int Panels = (D + 63) / 64, ValuePanels = (DV + 63) / 64;
  static constexpr bool Causal = Mods::Causal, Sparse = Mods::BlockKeys > 0;
  static constexpr bool Packed = Mods::Packed, Paged = Mods::PageRows > 0;
  static constexpr int MostBlocks = Blocks_;
  static constexpr bool Split = MostBlocks > 0;
  static constexpr bool HasMods = Mods::HasScore || Mods::HasMask || Sparse;
  /// Some steps do not ask mask.
  static constexpr bool MayAsk = Sparse || Mods::KeepsRange;
  /// The score is scaled before it is used; else by Factor, in the exponent.
  static constexpr bool Scaled = Mods::HasScore || !(Mods::Scale > 0);
  static constexpr float Factor = Scaled ? Mods::OuterScale : Mods::Scale;
  static constexpr int Groups = BM / 64, Threads = 128 * (Groups + 1);
  using Tanh = TanhScores<Mods, BN, Groups>;
  /// The exponentials of all scores are numbers as they are: no maximum is
  /// looked for. Near: and tanh is a polynomial where that is good enough.
  static constexpr bool Bounded = Mods::BoundedTanh,
                        Near = Tanh::Near && !Sparse;
  /// Where shared memory has no room for results beside the queries, they leave
  /// from registers, or, where there are too many of them, in the queries'
  /// place.
  static constexpr bool Direct = D > 128 && DV < 256, InPlace = DV == 256;
  /// The first scores of a tile are issued with the last values of the one
  /// before, which hides what one of few steps waits for. Others have too few
  /// registers for that.
  static constexpr bool Chains = QueryStages == 2 && !Causal && !HasMods &&
                                 !Packed && !Split && !Paged &&
                                 !Mods::HasDropout;
  /// Over masked blocks and others. Two are faster, but where ptxas then loses
  /// sight of what is the same for a warp, and where it would be three.
  static constexpr bool OneLoop =
      (Groups == 3 && Causal && !Near) || Mods::KeepsRange;
  /// Of keys and values that tiles of queries walk along together.
  static constexpr int SectionBytes = (D > 128 ? 64 : 32) << 20;
  /// Registers of a thread: functors need some in the producer, too, and pages
  /// and steps.
  static constexpr int Producer = Groups == 3                   ? 32
                                  : Paged                       ? 56
                                  : HasMods || InPlace || Split ? 40
                                                                : 24;
  static constexpr int Consumer = Groups == 3                   ? 160
                                  : Paged                       ? 224
                                  : HasMods || InPlace || Split ? 232
                                                                : 240;
  static_assert((Producer + Groups * Consumer) * 128 <=
                    65536 / Threads / 8 * 8 * Threads,
                "the registers that a block starts with");
  static_assert(D == 64 || D == 96 || D == 128 || D == 192 || D == 256,
                "head dimension 64, 96, 128, 192 or 256");
  static_assert(DV == D || (D == 192 && DV == 128), "values as keys, or 128");
  static_assert(Mods::BlockQueries % BM == 0 && Mods::BlockKeys % BN == 0,
                "a tile lies in one block");
  static_assert(!Mods::HasDropout || !Packed,
                "packed sequences have no dropout");
  static_assert(!Packed || !Sparse, "packed sequences have their own tiles");
  static_assert(!Paged || (!Packed && !Sparse && !Mods::HasDropout),
                "pages have neither tiles of their own nor dropout");
  static_assert(!Split || (!Sparse && !Mods::HasDropout),
                "what is shared has neither a block mask nor dropout");
  static_assert(Groups == 2 || (!Split && !Paged), "two groups");
  /// Of the pieces that a block leaves: two of each group.
  static constexpr int PieceFloats = kPieceFloats<64, DV>;
  using Share = StepShare<Threads, 1>;

  /// Of a tile.
  struct Told {
    int tile;         // negative: no more
    bool empty;       // Sparse: no query sees a key
    PackedTile place; // Packed
    TilePiece piece;  // Split
  };
  struct Shared {
    alignas(1024) char q[QueryStages][Panels][BM * 128];
    alignas(1024) char own_o[D > 128 ? 1 : ValuePanels][D > 128 ? 1 : BM * 128];
    alignas(1024) char k[Stages][Panels][BN * 128];
    alignas(1024) char v[Stages][ValuePanels][BN * 128];
    uint64 q_full[QueryStages], q_empty[QueryStages];
    uint64 k_full[Stages], k_empty[Stages], v_full[Stages], v_empty[Stages];
    Told told[QueryStages];    // travels with q_full
    int step[Stages];          // Sparse: FwdStep::packed, travels with k_full
    TilePiece own[Groups * 4]; // Split: of a warp's tile, for want of registers
    int arrived[Groups];
    typename Share::Starts starts;
  };
};

/// Strides are those of batch, head and query, in elements; a row of o is
/// contiguous and 16-byte aligned.
template <class Args> struct FwdParams {
  void *o;
  float *lse; // or null
  int64 o_strides[3], lse_strides[3];
  int *ticket; // zero, and left zero
  // Split: [MostBlocks, Groups, 2, PieceFloats], 16-byte aligned; [2,
  // MostBlocks, Groups, 2]: zero, and left zero.
  float *pieces;
  int *arrived;
  int batch, heads, key_heads, queries, keys; // of this device
  int causal_shift;                           // keys less queries, globally
  Args args;
};

template <class C, class P> struct FwdConsumer {
  using Mods = typename C::Mods;
  using T = typename C::T;
  FwdMaps const &maps;
  P const &p;
  typename C::Shared &s;
  const int group, thread = threadIdx.x % 128, lane = threadIdx.x % 32;
  Ring<C::Stages> k_ring, v_ring;
  Ring<C::QueryStages> q_ring;
  int row;                    // this thread's first; the other is row + 8
  int last;                   // this group's last block: then q is free
  int head, batch;            // of this device
  int begin, end;             // Packed: the sequence's positions
  KeyRange seen;              // Paged
  typename Mods::Row rows[2]; // of the functors
  int64 number;               // of the weights that this lane draws, in a tile
  KeptOfQueries<Mods, C::BN> kept;
  float o[C::DV / 2], x[C::BN / 2], top[2], sum[2], shrink[2];
  /// top, of a row of the warp: what was summed has to shrink. Bounded: or, a
  /// score was not near.
  bool raised;
  Fragment16 probs[C::BN / 16];

  TSR_MEMBER FwdConsumer(FwdMaps const &maps, P const &p, typename C::Shared &s,
                         int group)
      : maps(maps), p(p), s(s), group(group) {}

  TSR_MEMBER int first_key() { return C::Packed ? begin : 0; }
  TSR_MEMBER int keys() { return C::Packed ? end : p.keys; }
  TSR_MEMBER int queries() { return C::Packed ? end : p.queries; }
  TSR_DEVICE float infinity() { return __int_as_float(0x7f800000); }
  TSR_MEMBER void release(uint64 *b) {
    if (lane == 0)
      barrier_arrive(b);
  }
  /// The queries were read for the last time.
  TSR_MEMBER void release_q() {
    if (!C::InPlace)
      free_q();
  }
  TSR_MEMBER void free_q() { release(&s.q_empty[q_ring.stage]); }
  TSR_MEMBER typename C::Told const &told_tile() {
    return s.told[q_ring.stage];
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
  TSR_MEMBER void sync() { named_sync(5 + group, 128); }
  /// Of a block that is about to be read.
  TSR_MEMBER void wait_values(int block) {
    wait_v();
    if constexpr (C::Paged)
      clear_unseen<C::BN>(s.v[v_ring.stage], seen, block, [&] { sync(); });
  }

  TSR_MEMBER void issue_scores() {
    const uint64 a = operand(s.q[q_ring.stage][0] + group * 64 * 128);
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
  template <bool Masked> TSR_MEMBER void modify(FwdStep const &step) {
    // Whether there is something to do but to hide the keys beyond.
    constexpr bool Asks = Mods::HasMask && (Masked || !C::MayAsk);
    constexpr bool Each =
        C::MayAsk ? C::Scaled || Asks : C::Scaled || C::HasMods;
    const int first = first_key() + step.block * C::BN + lane % 4 * 2;
    // The queries are computed anew in each step, for want of registers.
    int own = row;
    asm volatile("" : "+r"(own));
    int64 query[2]; // global, as the functors get them
#pragma unroll
    for (int r = 0; r < 2; r++)
      query[r] =
          Mods::query(p.args, QueryPositions<Mods>{own, queries()}[8 * r]);
    if (Each) {
      const int64 of_batch = Mods::batch(p.args, batch);
      const int64 of_head = Mods::head(p.args, head);
      const KeyPositions<Mods> own_keys = {first, keys()};
#pragma unroll
      for (int i = 0; i < C::BN / 2; i++) {
        const int r = i / 2 % 2;
        const int column = fragment_column(i);
        const int64 key =
            Masked || Mods::WholeKeys ? own_keys[column] : first + column;
        const typename Mods::Column of_key =
            Mods::column(p.args, of_batch, key);
        const AttentionPair<Mods> at = {rows[r], of_key,   of_batch,
                                        of_head, query[r], key};
        float score =
            C::Scaled ? x[i] * (Mods::Scale * Mods::InnerScale) : x[i];
        if constexpr (Mods::HasScore)
          score = Mods::score(p.args, score, at);
        if constexpr (Asks)
          score = Mods::mask(p.args, at) || (C::Sparse && !step.asks)
                      ? score
                      : -infinity();
        // One element after the other: what the compiler would gather of all
        // before it masks the first does not fit into the registers.
        asm("" : "+f"(score));
        x[i] = score;
      }
    }
    if (Masked && (C::Causal || !Mods::WholeKeys)) {
      int visible[2]; // keys before the end and the diagonal
#pragma unroll
      for (int r = 0; r < 2; r++) {
        visible[r] = keys();
        if (C::Causal)
          visible[r] = min(visible[r], last_seen<C>(p, query[r]) + 1);
      }
#pragma unroll
      for (int i = 0; i < C::BN / 2; i++)
        if (fragment_column(i) >= visible[i / 2 % 2] - first)
          x[i] = -infinity();
    }
  }

  /// Of the scores that this thread has of a row.
  TSR_MEMBER float maximum(int r) {
    float m = -infinity();
#pragma unroll
    for (int i = 0; i < C::BN / 2; i++)
      if (i / 2 % 2 == r)
        m = fmaxf(m, x[i]);
    return m;
  }
  /// x: scores to unnormalised probabilities; `release`: the tile's last. These
  /// are relative to top, which stays while no score makes more than 2^8 of it.
  /// So in most steps no lanes wait for each other, and no sums are scaled.
  template <bool First>
  TSR_MEMBER void softmax(FwdStep const &step, bool release) {
    if constexpr (C::Bounded) {
      if (release)
        release_q();
      return weigh<First>(step);
    }
    const float c = C::Factor * 1.44269504f;
    // Whether there may be no key yet where none is masked.
    constexpr bool Guarded = C::MayAsk ? Mods::HasScore : C::HasMods;
    // With this arrival behind the maxima ptxas waits for the values of the
    // step before among the exponentials, which is faster than sooner or later.
    // Functors of all scores leave it too few registers for that.
    constexpr bool Late = C::D <= 128 && (C::MayAsk || !C::HasMods);
    if (!Late && release)
      release_q();
    if (step.masked)
      modify<true>(step);
    else
      modify<false>(step);
    const float own[2] = {maximum(0), maximum(1)};
    raised = !First && __any_sync(~0u, own[0] > top[0] + 8 / c ||
                                           own[1] > top[1] + 8 / c);
    if (First || raised)
#pragma unroll
      for (int r = 0; r < 2; r++) {
        const float m = quad_max(First ? own[r] : fmaxf(top[r], own[r]));
        if (!First) // 1: no key so far
          shrink[r] = m == -infinity() ? 1 : exp2_fast((top[r] - m) * c);
        top[r] = m, sum[r] = First ? 0 : sum[r] * shrink[r];
      }
    if (Late && release)
      release_q();
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float mc = top[r] * c;
      if ((step.masked || Guarded) && top[r] == -infinity())
        mc = 0; // no key so far: exp2 of -inf, and no NaN
      float total = 0;
#pragma unroll
      for (int i = 0; i < C::BN / 2; i++)
        if (i / 2 % 2 == r) {
          x[i] = exp2_fast(x[i] * c - mc);
          total += x[i];
        }
      sum[r] += total;
    }
  }

  /// The same of bounded scores: relative to a constant.
  template <bool First> TSR_MEMBER void weigh(FwdStep const &step) {
    using Tanh = typename C::Tanh;
    if (First) {
      top[0] = top[1] = Tanh::Reference / Tanh::Bound;
      sum[0] = sum[1] = 0;
      raised = false;
    }
    if (!C::Near || First || step.masked || raised) {
      if (step.masked)
        modify<true>(step);
      else
        modify<false>(step);
#pragma unroll
      for (int i = 0; i < C::BN / 2; i++) {
        x[i] = exp2_fast(x[i] * Tanh::Bound - Tanh::Reference);
        sum[i / 2 % 2] += x[i];
      }
    } else {
      // Reduced: that a vote is the same for all of a warp ptxas does not know.
      raised = __reduce_or_sync(~0u, Tanh::weigh_near(x, sum));
    }
  }

  /// Which of a step's weights stay, while its scores are under way.
  TSR_MEMBER void draw(FwdStep const &step) {
    if constexpr (Mods::HasDropout)
      kept.draw(Mods::stream(p.args), number + step.block * C::BN);
  }
  /// x: probabilities, which are summed by now.
  TSR_MEMBER void drop() {
    if constexpr (Mods::HasDropout)
#pragma unroll
      for (int i = 0; i < C::BN / 2; i++)
        x[i] = kept.has(i) ? x[i] : 0;
  }

  TSR_MEMBER void take_turn() { named_sync(1 + group, 256); }
  TSR_MEMBER void pass_turn() {
    named_arrive(1 + (group + 1) % C::Groups, 256);
  }

  /// The step of the keys that were awaited, as the lane that releases them
  /// reads it.
  TSR_MEMBER FwdStep told() {
    return FwdStep::of(
        __shfl_sync(~0u, lane == 0 ? s.step[k_ring.stage] : 0, 0));
  }

  /// Sparse: gives the step that it was, else takes it.
  TSR_MEMBER FwdStep step(FwdStep at, bool first) {
    wait_k();
    take_turn();
    issue_scores();
    wait_values(at.block + 1);
    issue_values(first);
    pass_turn();
    if (C::Sparse)
      at = told();
    draw(at);
    wgmma_wait<1>();
    release_k();
    softmax<false>(at, C::Sparse ? at.last : at.block == last);
    drop();
    wgmma_wait<0>();
    release_v();
    convert_probs();
    if (!C::Bounded && raised)
      rescale();
    return at;
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
    FwdStep at = {n, true};
    wait_k();
    take_turn();
    issue_scores();
    pass_turn();
    if (C::Sparse)
      at = told(), at.masked = true;
    draw(at);
    wgmma_wait<0>();
    release_k();
    softmax<true>(at, C::Sparse ? at.last : n == last);
    drop();
    n--;
    convert_probs();
    bool first = true;
    if (C::Sparse)
      for (; !at.last; first = false)
        at = step(at, first);
    if (!C::Sparse && !C::OneLoop)
      for (; n >= max(blocks.whole, blocks.begin); n--, first = false)
        step({n, true}, first);
    for (; !C::Sparse && n >= blocks.begin; n--, first = false)
      step({n, C::OneLoop && (n >= blocks.whole ||
                              (Mods::KeepsRange && n < blocks.open))},
           first);
    wait_values(n + 1);
    issue_values(first);
    wgmma_wait<0>();
    release_v();
  }

  /// Of row i of the group's 64, which begin at the device's row `from`.
  TSR_MEMBER T *result(FwdTile<C> const &t, int from, int i) {
    return static_cast<T *>(p.o) + t.batch * p.o_strides[0] +
           t.head * p.o_strides[1] + (from + i) * p.o_strides[2];
  }
  /// Split: of a tile that others have a part of.
  TSR_MEMBER void leave_piece(FwdTile<C> const &t, int from,
                              TilePiece const &piece, bool empty) {
    if (empty)
#pragma unroll
      for (int i = 0; i < C::DV / 2; i++)
        o[i] = 0;
    const float c = C::Factor * 1.44269504f;
    const float most[] = {empty ? -infinity() : top[0] * c,
                          empty ? -infinity() : top[1] * c};
    const TilePieces all = {p.pieces, p.arrived, C::MostBlocks * C::Groups * 2,
                            C::Groups, group};
    float *const lse = p.lse + t.batch * p.lse_strides[0] +
                       t.head * p.lse_strides[1] + from * p.lse_strides[2];
    const TileRows rows = {result(t, from, 0),
                           p.lse ? lse : nullptr,
                           0,
                           p.o_strides[2],
                           0,
                           p.lse_strides[2],
                           64,
                           64,
                           queries() - from};
    const int own = blockIdx.x;
    store_piece<64, C::DV>(p.pieces +
                               (int64)all.slot(piece, own) * C::PieceFloats,
                           o, most, sum, [&](int i) { return rows.has(i); });
    join_tile<T, 64, C::DV>(piece, own, all, rows, s.arrived[group], 5 + group);
  }

  /// Split: of the warp's tile, which one lane reads and writes.
  TSR_MEMBER TilePiece own_piece() {
    TilePiece piece = {};
    if (lane == 0)
      piece = s.own[threadIdx.x / 32 - 4];
    for (int *word : {&piece.begin, &piece.end, &piece.first, &piece.last})
      *word = __shfl_sync(~0u, *word, 0);
    return piece;
  }

  TSR_MEMBER void begin_tile(FwdTile<C> const &t, KeyBlocks const &blocks) {
    row = first_key() + t.m * C::BM + group * 64 + thread / 32 * 16 + lane / 4;
    head = t.head, batch = t.batch;
#pragma unroll
    for (int r = 0; r < 2; r++)
      rows[r] = Mods::row(p.args, Mods::batch(p.args, batch),
                          Mods::head(p.args, head),
                          Mods::query(p.args, min(row + 8 * r, queries() - 1)));
    if constexpr (Mods::HasDropout)
      number = Mods::number(
          p.args,
          IndexPair{Mods::batch(p.args, batch), Mods::head(p.args, head),
                    Mods::query(p.args, min(kept.own(row), queries() - 1)), 0});
    last = blocks.begin;
  }
  /// Nothing yet. A zero would be moved to where the products leave theirs.
  TSR_MEMBER void clear() {
#pragma unroll
    for (int i = 0; i < C::DV / 2; i++)
      asm volatile("" : "=f"(o[i]));
  }

  TSR_MEMBER void tile(FwdTile<C> const &t) {
    FwdBlocks<C> all(p, t, 0, C::BM), blocks(p, t, group * 64, 64);
    if constexpr (C::Paged)
      seen = all.seen;
    if (C::Split) {
      if (lane == 0)
        s.own[threadIdx.x / 32 - 4] = told_tile().piece;
      const TilePiece piece = own_piece();
      all.begin = piece.begin, all.end = max(piece.begin, piece.end);
      blocks.begin = max(blocks.begin, all.begin);
      blocks.end = min(blocks.end, all.end);
    }
    bool empty = blocks.begin >= blocks.end;
    if (C::Sparse) { // all groups take the tile's steps
      blocks = all;
      empty = __shfl_sync(~0u, lane == 0 && told_tile().empty, 0);
    }
    if (C::Packed)
      begin = t.place.begin, end = begin + t.place.length;
    begin_tile(t, blocks);
    clear();
    if (!empty) {
      skip(all.end - blocks.end);
      products(blocks);
      skip(blocks.begin - all.begin);
    } else {
      sum[0] = sum[1] = 0;
      release_q();
      skip(C::Sparse ? 0 : all.end - all.begin);
    }

    finish_tile(t, empty);
  }

  /// `empty`: no query of the group sees a key.
  TSR_MEMBER void finish_tile(FwdTile<C> const &t, bool empty) {
    const int first = t.m * C::BM + group * 64;
    const int from = first_key() + first;
#pragma unroll
    for (int r = 0; r < 2; r++)
      sum[r] = quad_sum(sum[r]);
    if (C::Split)
      if (const TilePiece piece = own_piece(); !piece.is_whole()) {
        if (C::InPlace)
          free_q();
        return leave_piece(t, from, piece, empty);
      }
    float *lse = p.lse;
    asm("" : "+l"(lse)); // where ptxas knows that there is none it spills
#pragma unroll
    for (int r = 0; r < 2; r++) {
      shrink[r] = sum[r] == 0 ? 0 : Mods::KeptScale / sum[r];
      if (lse && lane % 4 == 0 && row + 8 * r < queries())
        lse[t.batch * p.lse_strides[0] + t.head * p.lse_strides[1] +
            (row + 8 * r) * p.lse_strides[2]] =
            sum[r] == 0 ? -infinity()
                        : top[r] * C::Factor + log2_fast(sum[r]) * 0.69314718f;
    }
    auto result = [&](int i) { return empty ? 0 : o[i] * shrink[i / 2 % 2]; };
    if (C::Direct) {
      T *const to = this->result(t, from, 0);
      store_rows<T, C::DV>(
          threadIdx.x, [&](int row) { return to + row * p.o_strides[2]; },
          [&](int row, int) { return row < queries() - from; }, result);
      return;
    }
    char *panels = (C::InPlace ? s.q[0][0] : s.own_o[0]) + group * 64 * 128;
    if (thread == 0)
      bulk_wait_read<0>();
    sync();
#pragma unroll
    for (int c = 0; c < C::DV / 16; c++) {
      float scaled[8];
#pragma unroll
      for (int i = 0; i < 8; i++)
        scaled[i] = result(8 * c + i);
      Fragment16 f;
      convert<T>(f, scaled);
      store_fragment(panels + c / 4 * C::BM * 128, c % 4, f);
    }
    fence_async();
    sync();
    if (thread == 0) {
#pragma unroll
      for (int c = 0; c < C::ValuePanels; c++)
        store_box<C>(&maps.o, panels + c * C::BM * 128, c * 64, first, t.head,
                     t.batch, t.place);
      bulk_commit();
    }
    if (C::InPlace) {
      if (thread == 0)
        bulk_wait_read<0>();
      sync();
      free_q();
    }
  }

  /// Packed: of the tile whose queries were awaited.
  TSR_MEMBER PackedTile place() {
    PackedTile own = {};
    if (lane == 0)
      own = told_tile().place;
    return {{__shfl_sync(~0u, own.begin, 0), __shfl_sync(~0u, own.length, 0)},
            __shfl_sync(~0u, own.tile, 0),
            0};
  }
  /// The number of the next tile; negative: there is none. By the lane that
  /// releases what it was told of.
  TSR_MEMBER int await_tile() {
    barrier_wait(&s.q_full[q_ring.stage], q_ring.phase);
    return __reduce_max_sync(~0u, lane == 0 ? told_tile().tile : -1);
  }
  /// Chains: a tile, if one of its group's queries sees a key, and those that
  /// follow it while that holds; all of these queries see the same ones. Gives
  /// the next.
  TSR_MEMBER int chain(int number) {
    FwdTile<C> t(p, number);
    FwdBlocks<C> blocks(p, t, group * 64, 64);
    if (blocks.begin >= blocks.end) {
      tile(t);
      q_ring.next();
      return await_tile();
    }
    begin_tile(t, blocks);
    clear();
    wait_k();
    take_turn();
    issue_scores();
    pass_turn();
    wgmma_wait<0>();
    release_k();
    for (;;) {
      int n = blocks.end - 1;
      softmax<true>({n, true}, n == last);
      convert_probs();
      bool first = true;
      for (n--; n >= blocks.begin; n--, first = false)
        step({n, n >= blocks.whole}, first);
      q_ring.next();
      number = await_tile();
      const FwdTile<C> own = t;
      if (number >= 0) {
        t = FwdTile<C>(p, number);
        blocks = FwdBlocks<C>(p, t, group * 64, 64);
      }
      const bool more = number >= 0 && blocks.begin < blocks.end;
      if (!more) {
        wait_v();
        issue_values(first);
        wgmma_wait<0>();
        release_v();
        finish_tile(own, false);
        return number;
      }
      wait_k();
      take_turn();
      issue_scores();
      wait_v();
      issue_values(first);
      pass_turn();
      wgmma_wait<1>();
      release_k();
      wgmma_wait<0>();
      release_v();
      finish_tile(own, false);
      begin_tile(t, blocks);
    }
  }
  TSR_MEMBER void run() {
    if (group == C::Groups - 1)
      named_arrive(1, 256); // the first turn is group 0's
    if constexpr (C::Chains)
      for (int number = await_tile(); number >= 0;)
        number = chain(number);
    else
      for (;; q_ring.next()) {
        const int number = await_tile();
        if (number < 0)
          break;
        if constexpr (C::Packed)
          tile(FwdTile<C>(number, place()));
        else
          tile(FwdTile<C>(p, number));
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
    for (int i = 0; i < C::QueryStages; i++) {
      barrier_init(&s.q_full[i], 1);
      barrier_init(&s.q_empty[i], 4 * C::Groups);
    }
    for (int i = 0; i < C::Stages; i++) {
      barrier_init(&s.k_full[i], 1), barrier_init(&s.v_full[i], 1);
      barrier_init(&s.k_empty[i], 4 * C::Groups);
      barrier_init(&s.v_empty[i], 4 * C::Groups);
    }
    fence_barrier_init();
  }
  __syncthreads();
  auto of_tile = [&](int tile) {
    const FwdBlocks<C> blocks(p, FwdTile<C>(p, tile), 0, C::BM);
    return max(blocks.end - blocks.begin, 1);
  };
  auto share = [&] {
    if constexpr (C::Split)
      return typename C::Share(s.starts, fwd_tiles<C>(p) * p.heads * p.batch,
                               C::MostBlocks, 64, of_tile);
    else
      return 0;
  }();
  // Told by one lane, a warp's group is the same for all: else the compiler has
  // too few registers for the consumers.
  const int group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0) - 1;
  if (group < 0) {
    registers_lower<C::Producer>();
    if constexpr (C::Sparse) {
      if (threadIdx.x < 32)
        FwdProducer<C, P>{maps, p, s}.run_sparse();
    } else if constexpr (C::Split || C::Paged) {
      if (threadIdx.x < 32)
        FwdProducer<C, P>{maps, p, s}.run_shared(share);
    } else {
      if (threadIdx.x == 0)
        FwdProducer<C, P>{maps, p, s}.run();
    }
  } else {
    registers_raise<C::Consumer>();
    FwdConsumer<C, P>(maps, p, s, group).run();
  }
}

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_FWD_CUH
