//===- attention_fwd_steps.cuh - what blocks of attention walk along ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of attention_fwd.cuh: tiles of queries in the order of launch, and the blocks
// of keys that they take.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_FWD_STEPS_CUH
#define TESSERA_KERNELS_ATTENTION_FWD_STEPS_CUH

#include "attention/attention_mods.cuh"

namespace tessera {

/// Of a head.
template <class C, class P> TSR_DEVICE int fwd_tiles(P const &p) {
  if constexpr (C::Packed)
    return C::Mods::packed(p.args).count();
  else
    return (p.queries + C::BM - 1) / C::BM;
}

/// A tile of queries, by its number. Packed: m is the tile's in its sequence.
template <class C> struct FwdTile {
  int m, head, batch;
  PackedTile place; // Packed

  template <class P> TSR_MEMBER FwdTile(P const &p, int number) {
    const int tiles = fwd_tiles<C>(p);
    m = number % tiles;
    head = number / tiles % p.heads, batch = number / tiles / p.heads;
    if constexpr (C::Packed) {
      place = C::Mods::packed(p.args)[m];
      m = place.tile;
    }
  }
  /// Packed.
  TSR_MEMBER FwdTile(int head, PackedTile const &place)
      : m(place.tile), head(head), batch(0), place(place) {}
};

/// The number of tile `id` in the order of launch: longest first, inside
/// sections of heads. In the last one, whose keys and values fit into L2
/// together, long tiles have others to end with; the others are narrow. What is
/// left over is the first section.
template <class C, class P> TSR_DEVICE int fwd_tile(P const &p, int id) {
  const int tiles = fwd_tiles<C>(p);
  const int all = p.heads * p.batch, group = p.heads / p.key_heads;
  const int fit =
      max(1, C::SectionBytes / (2 * (C::D + C::DV)) / max(p.keys, 1));
  const HeadSection section(id / tiles, all, max(1, fit / 4) * group,
                            min(all, fit * group));
  const int inside = id - tiles * section.first;
  if (C::Packed)
    return (section.first + inside % section.width) * tiles +
           inside / section.width;
  return C::Causal || C::Sparse || C::Mods::HasMask // which may be causal
             ? (section.first + inside % section.width) * tiles + tiles - 1 -
                   inside / section.width
             : id;
}

/// Key blocks that the queries [first, end) of a tile see; none if there are no
/// such queries.
template <class C> struct FwdBlocks : KeyBlocks {
  template <class P>
  TSR_MEMBER FwdBlocks(P const &p, FwdTile<C> const &t, int first, int rows) {
    using Mods = typename C::Mods;
    first += t.m * C::BM;
    const auto &own = sequence_of<C>(p, t.place);
    const int last = min(first + rows, own.queries) - 1;
    if (last < first)
      return;
    const int64 first_query = Mods::query(p.args, first);
    const int64 last_query = Mods::query(p.args, last);
    auto keys = [&](int64 first, int64 last) {
      return Mods::keys(p.args, Mods::batch(p.args, t.batch),
                        Mods::head(p.args, t.head), first, last, own.keys);
    };
    const KeyRange seen = keys(first_query, last_query);
    *static_cast<KeyBlocks *>(this) =
        Mods::KeepsRange ? key_blocks<C>(own, seen, first_query, last_query,
                                         keys(last_query, first_query))
                         : key_blocks<C>(own, seen, first_query, last_query);
  }
};

/// What is done at a block of keys.
struct FwdStep {
  int block;
  bool masked; // by the end of the keys, the diagonal, or mask
  // Sparse:
  bool asks; // mask
  bool last; // of the tile

  TSR_MEMBER int packed() { return block * 8 + masked * 4 + asks * 2 + last; }
  TSR_MEMBER static FwdStep of(int packed) {
    return {packed / 8, (packed & 4) != 0, (packed & 2) != 0,
            (packed & 1) != 0};
  }
};

/// Sparse: the steps of a tile, from the last key block of the block mask to
/// the first. By a whole warp.
template <class C, class P> struct FwdWalk {
  using Mods = typename C::Mods;
  P const &p;
  const FwdBlocks<C> blocks;
  IndexPair at;
  int first;                  // of the blocks that the words are about
  uint32 kept = 0, whole = 0; // which are not 0, which are 2; kept: and to come

  TSR_MEMBER FwdWalk(P const &p, FwdTile<C> const &t)
      : p(p), blocks(p, t, 0, C::BM), first(blocks.end) {
    at = {Mods::batch(p.args, t.batch), Mods::head(p.args, t.head),
          Mods::query(p.args, t.m * C::BM), 0};
  }
  TSR_MEMBER bool more() {
    while (!kept && first > blocks.begin) {
      first -= 32;
      const int block = first + (int)threadIdx.x % 32;
      at.key = block * C::BN;
      const int kind = block < blocks.begin ? 0 : Mods::kind(p.args, at);
      kept = __ballot_sync(~0u, kind != 0);
      whole = __ballot_sync(~0u, kind == 2);
    }
    return kept;
  }
  /// If there are more.
  TSR_MEMBER FwdStep next() {
    const int bit = 31 - __clz(kept), block = first + bit;
    const bool asks = Mods::HasMask && !(whole >> bit & 1);
    kept ^= 1u << bit;
    return {block, asks || block >= blocks.whole, asks, !more()};
  }
};

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_FWD_STEPS_CUH
