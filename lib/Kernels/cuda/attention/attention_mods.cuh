//===- attention_mods.cuh - what a kernel knows of its attention ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_MODS_CUH
#define TESSERA_KERNELS_ATTENTION_MODS_CUH

#include "attention/attention_packed.cuh"

namespace tessera {

/// Keys [begin, end).
struct KeyRange {
  int begin, end;
};

/// How many of the keys 0, 1, ... have a number below `end`; not more than 0 if
/// that is negative. Key k has the number Weight * k; or Weight * (k / Size)
/// and the number that k % Size has by what follows, which is below Weight.
template <int64 Weight> TSR_DEVICE int64 keys_below(int64 end) {
  if constexpr (Weight == 0)
    return end > 0 ? int64(1) << 31 : 0;
  else
    return (end + Weight - 1) / Weight;
}
template <int64 Weight, int64 Size, int64... Inner>
TSR_DEVICE int64 keys_below(int64 end) {
  const int64 whole = end / Weight;
  return whole * Size + min(Size, keys_below<Inner...>(end - whole * Weight));
}

/// What a gradient of a captured tensor has a sum of scores' addends for.
enum class SumBy { Query, Key, Distance, Score };

/// What the random numbers of weights are of (random.cuh).
struct WeightStream {
  uint64 seed, stream;
};

/// A query and a key, by their global indices.
struct IndexPair {
  int64 batch, head, query, key;
};

/// Positions that functors get of what one thread has: those that lie some
/// constant behind its first. They never get one at the end or beyond: the last
/// takes its place. Where none is, what they load lies constants apart, if the
/// numbers have 64 bits; what a mask alone compares takes half of that.
template <bool Whole, bool Compared> struct Positions {
  int first, end;
  TSR_MEMBER int operator[](int i) const {
    return Whole ? first + i : min(first + i, end - 1);
  }
};
template <> struct Positions<true, false> {
  int64 first;
  int end;
  TSR_MEMBER int64 operator[](int i) const { return first + i; }
};
template <class Mods>
using QueryPositions =
    Positions<Mods::WholeQueries, Mods::HasMask && !Mods::HasScore>;
template <class Mods>
using KeyPositions =
    Positions<Mods::WholeKeys, Mods::HasMask && !Mods::HasScore>;

/// The same, and what the functors have of each alone.
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
  /// Keeps the keys up to diagonal(query) + causal_shift.
  static constexpr bool Causal = false;
  /// There is a `float score(Args const &, float scaled, AttentionPair const
  /// &)`.
  static constexpr bool HasScore = false;
  /// It is tanh, for bf16, and isBounded of attention_tiles.h holds.
  static constexpr bool BoundedTanh = false;
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
  /// The queries and keys of a block mask's blocks, multiples of the tiles'; 0:
  /// there is none. Else there is an `int kind(Args const &, IndexPair const
  /// &)`, the same for all pairs of a block: 0: none of them is kept; 1: those
  /// that mask keeps; 2: all, and mask is not asked. For an ordered backward
  /// there is an `int const *walks(Args const &, IndexPair const &, bool
  /// last)`: those of a head and batch (attention_walks.cuh), from its last
  /// queries on or not.
  static constexpr int BlockQueries = 0, BlockKeys = 0;
  /// The one batch is of packed sequences, whose queries and keys have the same
  /// positions; tensor maps are ragged. There is a `PackedTiles packed(Args
  /// const &)`, of as many rows as the kernel's tiles. Positions are those of
  /// all sequences; but `keys` below is asked about those inside of one.
  static constexpr bool Packed = false;
  /// Keys and values are pages of so many positions, any number; 0: they are
  /// not. There is an `int page(Args const &, int batch, int index)`: the page
  /// that has positions [index * PageRows, (index + 1) * PageRows) of a batch
  /// of this device. It is asked about those that `keys` below has a part of.
  /// Where there is no such page, all is zero.
  static constexpr int PageRows = 0;

  /// Weights are dropped where their random number, of 16 bits, is below
  /// DropBelow, the others times KeptScale. There are a `WeightStream
  /// stream(Args const &)` and an `int64 number(Args const &, IndexPair const
  /// &)`, a weight's. Those of a query follow each other; in a backward, those
  /// of 16 keys from a multiple of 16 on.
  static constexpr bool HasDropout = false;
  /// The kernel's tiles and blocks of queries, and of keys, are whole: it is
  /// known that no position is beyond the end.
  static constexpr bool WholeQueries = false, WholeKeys = false;
  /// Eight keys from a multiple of eight on have numbers from one on, so that
  /// less has to be drawn.
  static constexpr bool KeysInEights = false;
  static constexpr uint32 DropBelow = 0;
  static constexpr float KeptScale = 1;

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
  template <class A> TSR_DEVICE int64 query(A const &, int64 index) {
    return index;
  }
  /// Causal: of a query, no smaller for later ones. Of packed sequences it is
  /// the query itself.
  template <class A> TSR_DEVICE int64 diagonal(A const &, int64 query) {
    return query;
  }
  /// Which of this device's key heads its query head reads.
  template <class A>
  TSR_DEVICE int key_head(A const &, int head, int heads, int key_heads) {
    return head / (heads / key_heads);
  }
  /// A range outside of which no query of [first, last] sees a key; of later
  /// queries neither end is smaller. KeysByHead: it differs between heads.
  static constexpr bool KeysByHead = false;
  /// mask keeps what is in this range for a query, and it is asked only where
  /// some query of a block has another: by the ends of the last and of the
  /// first query, which is `keys` of these two in the other order.
  static constexpr bool KeepsRange = false;
  template <class A>
  TSR_DEVICE KeyRange keys(A const &, int64 batch, int64 head, int64 first,
                           int64 last, int keys) {
    return {0, keys};
  }
};

/// Heads (of all batches) whose tiles are launched together: in the order of
/// launch, sections of `width` of `all` heads, but for the last, of `ending`.
/// What is left over is the first section, as if heads were missing before it.
struct HeadSection {
  int first, width;
  bool last;

  /// The one that has head `at`.
  TSR_MEMBER HeadSection(int at, int all, int width, int ending) {
    const int rest = all - ending, missing = (width - rest % width) % width;
    const int begin = (at + missing) / width * width - missing;
    last = at >= rest;
    first = last ? rest : max(begin, 0);
    this->width = last ? ending : begin + width - first;
  }
};

/// Causal: the last key that a query sees, by its global number.
template <class C, class P> TSR_DEVICE int last_seen(P const &p, int64 query) {
  if constexpr (!C::Mods::Packed)
    query = C::Mods::diagonal(p.args, query);
  return (int)query + p.causal_shift;
}

/// Blocks of C::BN keys: [begin, end), of which those before `open` and from
/// `whole` on cross the diagonal, the end of the keys, or what mask keeps of a
/// range. No query sees a key outside of `seen`.
struct KeyBlocks {
  int begin = 0, end = 0, open = 0, whole = 0;
  KeyRange seen;
};
/// Those that the queries [first, last], by their global numbers, see, where
/// that is what their functors say; `kept`: what all of them see of a range.
template <class C, class P>
TSR_DEVICE KeyBlocks key_blocks(P const &p, KeyRange seen, int64 first,
                                int64 last, KeyRange kept = {0, 0x7fffffff}) {
  // The keys before are seen by all queries.
  int all_see = min(p.keys, kept.end);
  if (C::Causal) {
    seen.end = min(seen.end, last_seen<C>(p, last) + 1);
    all_see = min(all_see, last_seen<C>(p, first) + 1);
  }
  seen = {max(seen.begin, 0), max(min(seen.end, p.keys), 0)};
  KeyBlocks blocks;
  blocks.seen = seen;
  blocks.begin = seen.begin / C::BN;
  blocks.end = (seen.end + C::BN - 1) / C::BN;
  blocks.end = max(blocks.begin, blocks.end);
  blocks.whole = max(all_see, 0) / C::BN;
  blocks.open = (max(kept.begin, 0) + C::BN - 1) / C::BN;
  return blocks;
}

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_MODS_CUH
