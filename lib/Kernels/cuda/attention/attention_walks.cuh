//===- attention_walks.cuh - orders of the gradients beside a block mask --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Beside a block mask, attention_bwd.cuh adds to dQ in an order that a kernel
// makes from the mask, once for all layers.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_WALKS_CUH
#define TESSERA_KERNELS_ATTENTION_WALKS_CUH

#include "base/ptx.cuh"

namespace tessera {

/// Threads of a block that makes a part of walks.
constexpr int kWalkThreads = 256;

/// Tiles of keys and blocks of queries of so many, in so many passes at most,
/// in ranges of at most so many blocks.
struct WalkParts {
  static constexpr int Rows = 64, Keys = 128, Most = 128;
  int blocks, tiles, passes;
  int columns, width, parts; // blocks of a pass and of a part, parts

  __host__ __device__ constexpr WalkParts(int queries, int keys, int most)
      : blocks((queries + Rows - 1) / Rows), tiles((keys + Keys - 1) / Keys),
        passes(blocks < most ? blocks : most), columns(0), width(0), parts(0) {
    if (blocks == 0)
      return;
    columns = (blocks + passes - 1) / passes;
    const int ranges = (columns + Most - 1) / Most;
    width = (columns + ranges - 1) / ranges;
    parts = passes * ranges;
  }
  /// Of a head. Walks of one pass have up to parts - 1 places more, and one
  /// word is of all.
  __host__ __device__ constexpr int64 words() const {
    return int64(tiles) * parts * (width + 3);
  }
};
/// Over blocks of queries of a mask with such blocks.
template <int BlockQueries>
inline constexpr int kWalkPasses = BlockQueries > WalkParts::Rows ? 2 : 1;

/// Of a head of a block mask, the order in which its tiles of keys are launched
/// and that in which each walks its blocks of queries, with ranks. In a
/// scattered mask, a tile has as many of the first blocks as chance will have
/// it; in the order of queries, it would wait for those launched before it that
/// have more. So walks are what comes of all tiles taking a block at a time,
/// one that no tile launched before still has to take; tiles with nearly as
/// many blocks are launched one after the other, to stay in step; and where a
/// block of the mask has two, every second comes first, in a pass of its own,
/// as tiles stay at a block of the mask.
///
/// That would part tiles of the same queries, and where they are few, their
/// data may leave L2: a mask whose tiles have few blocks in one piece, as of
/// documents, is launched in the order of keys, and has one pass.
///
/// A pass is cut into ranges of so many blocks that walks are made of at once;
/// a range is a part of a walk.
///
/// How many heads are launched together is decided by what their tiles read
/// (bwd_sections).
template <class Word = int const> struct BlockWalks : WalkParts {
  static constexpr uint32 End = ~0u; // of a walk that is not over all
  // Rows of queries that a tile reads, on average; all, where tiles are
  // launched by how many blocks they have.
  Word *reads;
  // [part][tiles], for as many parts as there may be, each with its own:
  Word *launched; // 2 * tile + passes - 1
  Word *counts;   // of blocks, by tiles
  Word *steps;    // [tile][part][step]: block | rank << 16

  /// Of so many passes, where there are `most`; in memory of a head.
  TSR_MEMBER BlockWalks(int queries, int keys, int of_passes, int most,
                        Word *words)
      : WalkParts(queries, keys, of_passes) {
    const int parts_of_most = WalkParts(queries, keys, most).parts;
    reads = words, launched = words + 1;
    counts = launched + parts_of_most * tiles;
    steps = counts + parts_of_most * tiles;
  }
  TSR_MEMBER Word *walk(int part, int n) const {
    return steps + (int64(n) * parts + part) * width;
  }
};

/// A block mask, and where its walks are to be.
template <int BlockQueries, int BlockKeys, bool Causal> struct WalkedMask {
  signed char const *kinds;
  int64 strides[4]; // of batch, head, block of queries and of keys
  int *walks;       // [batch][head][from the first queries, from the last]
  int64 words;      // of each of them
  int batch, heads; // of the mask
  int queries, keys;
  static constexpr int Passes = kWalkPasses<BlockQueries>;

  /// Of parts, as many as there may be.
  __host__ __device__ constexpr int count() const {
    return WalkParts(queries, keys, Passes).parts * 2 * heads * batch;
  }
  /// Whether tile n of the keys adds to block m of a head's queries. By no
  /// branch: many may be under way.
  TSR_MEMBER bool adds(int of_batch, int head, int m, int n) const {
    constexpr int Rows = WalkParts::Rows, Keys = WalkParts::Keys;
    static_assert(BlockQueries % Rows == 0 && BlockKeys % Keys == 0,
                  "a tile lies in one block");
    const int last = min(m * Rows + Rows, queries) - 1;
    const bool seen = !Causal || n * Keys <= last + keys - queries;
    return seen & (kinds[of_batch * strides[0] + head * strides[1] +
                         m / (BlockQueries / Rows) * strides[2] +
                         n / (BlockKeys / Keys) * strides[3]] != 0);
  }
};

/// Calls to(i, tile, bits) with which of 32 tiles, from this warp's on, add to
/// the blocks block(0), ..., block(count - 1) of a head; n(tile): its number.
/// (No generic lambda: NVRTC takes one for the host's.)
template <class Mask, class Number, class Block, class To>
TSR_DEVICE void look_at_walks(Mask const &mask, int batch, int head, int tiles,
                              Number n, int count, Block block, To to) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int words = (tiles + 63) / 64 * 2;
  const int shares = kWalkThreads / 32 / words;
  const int tile = warp % words * 32 + lane;
  const int key = tile < tiles ? n(tile) : -1;
  const int blocks = (mask.queries + WalkParts::Rows - 1) / WalkParts::Rows;
  constexpr int AtOnce = 8; // loads under way
  for (int i = warp / words; i < count && warp < words * shares;
       i += AtOnce * shares) {
    uint32 adds = 0;
#pragma unroll
    for (int j = 0; j < AtOnce; j++) {
      const int m = block(min(i + j * shares, count - 1));
      const bool is = key >= 0 && 0 <= m && m < blocks;
      adds |= uint32(is & mask.adds(batch, head, is ? m : 0, is ? key : 0))
              << j;
    }
#pragma unroll
    for (int j = 0; j < AtOnce; j++)
      if (i + j * shares < count)
        to(i + j * shares, tile, __ballot_sync(~0u, adds >> j & 1));
  }
}

/// Part `at` of all walks, by a block of threads: each has a tile of so many,
/// by its place in the order of launch, and a block of queries of the part, by
/// its place in a walk over all.
template <class Mask> TSR_DEVICE void make_walks(Mask const &mask, int at) {
  constexpr int Most = WalkParts::Most, Words = Most / 64;
  static_assert(Most <= kWalkThreads, "a thread has a tile and a block");
  // Of a block: the tiles that add to it. Of a tile: the blocks that it may
  // take from this slot on, and those from the next.
  union Set {
    uint32 half[2];
    uint64 all;
  };
  __shared__ Set adding[Words][Most], given[2][Words][Most];
  // How many tiles have taken a block; before, a tile's blocks. Of all tiles,
  // the blocks, the pieces they are in, and twice the blocks that they read.
  __shared__ int taken[Most], sums[3];
  __shared__ uint32 differs[Most / 32]; // from the tile before
  const int all_parts = WalkParts(mask.queries, mask.keys, Mask::Passes).parts;
  if (all_parts == 0 || mask.keys == 0)
    return;
  const int part = at % all_parts, walked = at / all_parts;
  const bool last = walked % 2; // from the last queries on
  const int head = walked / 2 % mask.heads, batch = walked / 2 / mask.heads;
  if (batch >= mask.batch)
    return;
  const int own = threadIdx.x, lane = own % 32;
  auto walks_of = [&](int passes) {
    return BlockWalks<int>(mask.queries, mask.keys, passes, Mask::Passes,
                           mask.walks + walked * mask.words);
  };
  // Counts are those of a pass.
  const BlockWalks<int> most = walks_of(Mask::Passes);
  int *const launched = most.launched + part * most.tiles;
  int *const counts = most.counts + part * most.tiles;
  __syncthreads();
  if (own < 3)
    sums[own] = 0;
  for (int first = 0; first < most.tiles; first += Most) {
    const int tiles = min(most.tiles - first, Most);
    if (own < Most)
      taken[own] = differs[own / 32] = 0;
    __syncthreads();
    int blocks = 0, pieces = 0;
    look_at_walks(
        mask, batch, head, tiles, [&](int tile) { return first + tile; },
        most.columns, [&](int column) { return column * most.passes; },
        [&](int, int tile, uint32 adds) {
          if (adds >> lane & 1)
            atomicAdd(&taken[tile], 1);
          if (lane == 0)
            atomicOr(&differs[tile / 32], (adds ^ adds << 1) | 1);
          blocks += __popc(adds), pieces += __popc(adds & ~(adds << 1));
        });
    if (lane < 2)
      atomicAdd(&sums[lane], lane ? pieces : blocks);
    __syncthreads();
    // A tile with the blocks of the one before goes just behind that: what it
    // reads is mostly in L2, and counts as half.
    if (own < tiles) {
      counts[first + own] = taken[own];
      atomicAdd(&sums[2], taken[own] << (differs[own / 32] >> lane & 1));
    }
    __syncthreads();
  }
  const bool few = sums[0] / 3 < most.columns * most.tiles / 8;
  const bool local = few && sums[0] >= 4 * sums[1];
  const int64 read = int64(sums[2]) * WalkParts::Rows * most.passes;
  if (part == 0 && own == 0)
    *most.reads =
        local ? min(mask.queries, int(read / (2 * most.tiles))) : mask.queries;
  const BlockWalks<int> walks = walks_of(local ? 1 : Mask::Passes);
  if (part >= walks.parts)
    return;

  // The shortest first, or the last keys; the other way from the last queries.
  for (int first = 0; first < walks.tiles; first += Most) {
    const int n = own < Most ? first + own : walks.tiles;
    const int count = n < walks.tiles ? counts[n] : 0;
    int before = 0;
    for (int others = 0; others < walks.tiles; others += Most) {
      __syncthreads();
      if (own < min(Most, walks.tiles - others))
        taken[own] = counts[others + own];
      __syncthreads();
      for (int i = 0; i < min(Most, walks.tiles - others); i++)
        before +=
            local || taken[i] == count ? others + i > n : taken[i] < count;
    }
    if (n < walks.tiles)
      launched[last ? walks.tiles - 1 - before : before] =
          2 * n + walks.passes - 1;
  }

  // The block of a place is from + place * by.
  const int ranges = walks.parts / walks.passes;
  const int earlier = part % ranges * walks.width;
  const int by = last ? -walks.passes : walks.passes;
  const int from =
      (last ? walks.columns - 1 - earlier : earlier) * walks.passes +
      part / ranges;
  __syncthreads();
  for (int word = 0; own < Most && word < Words; word++)
    given[0][word][own].all = given[1][word][own].all = taken[own] = 0;
  for (int first = 0; first < walks.tiles; first += Most) {
    const int tiles = min(walks.tiles - first, Most);
    __syncthreads();
    look_at_walks(
        mask, batch, head, tiles,
        [&](int tile) { return launched[first + tile] / 2; }, walks.width,
        [&](int place) { return from + place * by; },
        [&](int place, int tile, uint32 adds) {
          if (lane == 0)
            adding[tile / 64][place].half[tile / 32 % 2] = adds;
        });
    __syncthreads();
    // The first tile from `tile` on that adds to the block of a place may take
    // it.
    auto next = [&](int place, int tile) {
      uint64 rest = ~uint64(0) << tile % 64;
      for (int word = tile / 64; word * 64 < tiles; word++, rest = ~uint64(0))
        if (const uint64 bits = adding[word][place].all & rest)
          return word * 64 + __ffsll(bits) - 1;
      return Most;
    };
    auto let = [&](int tile, unsigned slot, unsigned place) {
      if (tile < Most)
        atomicOr(&given[slot % 2][place / 64][tile].half[place / 32 % 2],
                 1u << place % 32);
    };
    if (own < walks.width)
      let(next(own, 0), 0, own);
    __syncthreads();
    int *const walk =
        walks.walk(part, own < tiles ? launched[first + own] / 2 : 0);
    int steps = 0;
    uint64 open[Words] = {};
    for (unsigned slot = 0;; slot++) {
      int place = -1;
#pragma unroll
      for (int word = 0; word < Words; word++) {
        if (own < tiles) {
          uint64 &more = given[slot % 2][word][own].all;
          open[word] |= more, more = 0;
        }
        if (open[word] && place < 0) {
          place = word * 64 + __ffsll(open[word]) - 1;
          open[word] &= open[word] - 1;
        }
      }
      if (place >= 0) {
        let(next(place, own + 1), slot + 1, place);
        walk[steps++] = uint32(from + place * by) | uint32(taken[place]++)
                                                        << 16;
      }
      if (!__syncthreads_or(place >= 0))
        break;
    }
    if (own < tiles && steps < walks.width)
      walk[steps] = walks.End;
  }
}

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_WALKS_CUH
