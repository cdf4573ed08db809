//===- attention_bwd_scores.cuh - attention, backward: probabilities -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A consumer group's scores of 64 keys and a block of queries, transposed, to
// probabilities.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_BWD_SCORES_CUH
#define TESSERA_KERNELS_ATTENTION_BWD_SCORES_CUH

#include "attention/attention_bwd_steps.cuh"
#include "attention/attention_dropout.cuh"

namespace tessera {

template <class C, class P> struct BwdScores {
  using Mods = typename C::Mods;
  using T = typename C::T;
  P const &p;
  typename C::Shared &s;
  const int thread = threadIdx.x % 128, lane = threadIdx.x % 32;
  int key;                          // this thread's first; the other is key + 8
  typename Mods::Column columns[2]; // of the functors

  TSR_MEMBER BwdScores(P const &p, typename C::Shared &s) : p(p), s(s) {}

  /// For a tile: the first of this group's keys.
  TSR_MEMBER void start(typename C::Step const &of, int first) {
    key = first + thread / 32 * 16 + lane / 4;
#pragma unroll
    for (int r = 0; r < 2; r++)
      columns[r] = Mods::column(p.args, Mods::batch(p.args, of.batch),
                                min(key + 8 * r, of.keys(p) - 1));
  }

  /// Whether a query, an index of this device, sees this thread's key of row r.
  /// Packed and causal: what is behind the end sees nothing, by its lse.
  TSR_MEMBER bool sees(int query, int r, typename C::Step const &of) {
    return ((C::Packed && C::Causal) || key + 8 * r < of.keys(p)) &&
           (!C::Causal ||
            key + 8 * r <= last_seen<C>(p, Mods::query(p.args, query)));
  }
  /// Numbers of the queries that are this thread's columns.
  TSR_MEMBER void load_row(float2 (&row)[C::BM / 8], float const *from) {
#pragma unroll
    for (int j = 0; j < C::BM / 8; j++)
      row[j] = *reinterpret_cast<float2 const *>(from + j * 8 + lane % 4 * 2);
  }
  /// What functors get of a step's scores, and of element i of them.
  struct Pairs {
    typename Mods::Row const *rows;
    QueryPositions<Mods> queries;
    int64 batch, head;
  };
  TSR_MEMBER Pairs pairs(int stage, typename C::Step const &now) {
    const int own = lane % 4 * 2;
    return {&s.row[C::RowBytes ? stage : 0][C::RowBytes ? own : 0],
            {now.first_query() + own, now.queries(p)},
            Mods::batch(p.args, now.batch),
            Mods::head(p.args, now.head)};
  }
  TSR_MEMBER AttentionPair<Mods> pair_of(Pairs const &of, int i,
                                         typename C::Step const &now) {
    const int r = i / 2 % 2, column = fragment_column(i);
    const KeyPositions<Mods> keys = {key, now.keys(p)};
    return {
        of.rows[C::RowBytes ? column : 0],       columns[r], of.batch, of.head,
        Mods::query(p.args, of.queries[column]), keys[8 * r]};
  }
  /// x: scores to probabilities.
  TSR_MEMBER void plain(float (&x)[C::BM / 2], float2 const (&lse)[C::BM / 8]) {
    const float c = Mods::Scale * 1.44269504f;
#pragma unroll
    for (int e = 0; e < C::BM / 2; e++)
      x[e] = exp2_fast(x[e] * c - (e % 2 ? lse[e / 4].y : lse[e / 4].x));
  }
  TSR_MEMBER void plain(float (&x)[C::BM / 2], float const *from) {
    float2 lse[C::BM / 8];
    load_row(lse, from);
    plain(x, lse);
  }
  /// What no query sees of this step.
  TSR_MEMBER void hide(float (&x)[C::BM / 2], Fragment16 *probs,
                       typename C::Step const &now) {
    const int first = now.first_query() + lane % 4 * 2;
#pragma unroll
    for (int e = 0; e < C::BM / 2; e++) {
      if (sees(first + fragment_column(e), e / 2 % 2, now))
        continue;
      x[e] = 0;
      if constexpr (Mods::HasScoreGrad)
        probs[e / 8].r[e / 2 % 4] &= e % 2 ? 0xffff : 0xffff0000;
    }
  }
  /// Whether mask keeps a pair of a step that sees it.
  TSR_MEMBER bool keeps(AttentionPair<Mods> const &at,
                        typename C::Step const &now) {
    bool kept = Mods::mask(p.args, at);
    if constexpr (C::MayAsk)
      kept |= !now.asks;
    return kept;
  }
  /// x: scores to probabilities times the derivative of the score functor;
  /// where that is not 1, the probabilities alone go to `probs`. Queries and
  /// keys beyond the end are never shown to a functor: others take their place,
  /// and they are masked afterwards (queries by their lse).
  TSR_MEMBER void modify(float (&x)[C::BM / 2], Fragment16 *probs, int stage,
                         typename C::Step const &now) {
    const Pairs pairs = this->pairs(stage, now);
    float const *const lse = &s.lse[stage][lane % 4 * 2];
#pragma unroll
    for (int pair = 0; pair < C::BM / 4; pair++) {
      float probability[2];
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const int i = 2 * pair + e, column = fragment_column(i);
        const AttentionPair<Mods> at = pair_of(pairs, i, now);
        const float scaled = x[i] * (Mods::Scale * Mods::InnerScale);
        float score = scaled, slope = 1;
        if constexpr (Mods::HasScore)
          score = Mods::score(p.args, scaled, at);
        if constexpr (Mods::HasScoreGrad)
          slope = Mods::score_grad(p.args, scaled, 1, at);
        float value =
            exp2_fast(score * (Mods::OuterScale * 1.44269504f) - lse[column]);
        bool kept = true;
        if constexpr (Mods::HasMask)
          kept = keeps(at, now);
        // Without branches, and one element after the other: what the compiler
        // would gather of all does not fit into the registers.
        asm volatile("" : "+f"(value), "+f"(slope));
        probability[e] = kept ? value : 0;
        x[i] = Mods::HasScoreGrad ? kept ? value * slope : 0 : probability[e];
      }
      if constexpr (Mods::HasScoreGrad)
        probs[pair / 4].r[pair % 4] = pack<T>(probability[0], probability[1]);
    }
  }

  /// Which of a step's weights stay, while its scores are under way.
  TSR_MEMBER void draw(KeptOfKeys<Mods, C::BM> &kept,
                       typename C::Step const &now) {
    if constexpr (Mods::HasDropout) {
      const IndexPair own = {
          Mods::batch(p.args, now.batch), Mods::head(p.args, now.head),
          kept.own_query(now.first_query()), kept.own_key(key)};
      const int64 number = Mods::number(p.args, own);
      kept.draw(Mods::stream(p.args), number, [&](int i) {
        IndexPair at = own;
        at.query += i;
        return Mods::number(p.args, at) - number;
      });
    }
  }
  /// y: gradients of weights, by what dropout made of these.
  TSR_MEMBER void drop(float (&y)[C::BM / 2],
                       KeptOfKeys<Mods, C::BM> const &kept) {
    if constexpr (Mods::HasDropout)
#pragma unroll
      for (int e = 0; e < C::BM / 2; e++)
        y[e] = kept.has(e) ? y[e] * Mods::KeptScale : 0;
  }

  /// Those of a thread's probabilities that are asked of in one branch. What
  /// NVRTC would keep for all of them does not fit into the registers beside
  /// positions; a mask of what rows have needs less (and is slower in parts).
  static constexpr int Asked = C::RowBytes ? C::BM / 2 : 4;
  /// Of a step's probabilities, those that mask keeps.
  TSR_MEMBER void ask(float (&x)[C::BM / 2], int stage,
                      typename C::Step const &now) {
    int asks = now.asks;
#pragma unroll
    for (int e = 0; e < C::BM / 2; e += Asked) {
      asm volatile("" : "+r"(asks)); // or branches become one
      if (asks)
        ask(x, e, stage, now);
    }
  }
  /// Of the probabilities from `begin` on, those that mask keeps.
  TSR_MEMBER void ask(float (&x)[C::BM / 2], int begin, int stage,
                      typename C::Step const &now) {
    const Pairs pairs = this->pairs(stage, now);
#pragma unroll
    for (int i = begin; i < begin + Asked; i++)
      if (!Mods::mask(p.args, pair_of(pairs, i, now)))
        x[i] = 0;
  }
};

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_BWD_SCORES_CUH
