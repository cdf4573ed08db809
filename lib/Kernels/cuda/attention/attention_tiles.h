//===- attention_tiles.h - tiles of attention -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tiles that attention_fwd.cuh, attention_few.cuh and attention_bwd.cuh are
// fastest with: for
// `cuda-schedule`, which writes them down, and for what runs the templates by
// themselves.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_TILES_H
#define TESSERA_KERNELS_ATTENTION_TILES_H

namespace tessera {

/// Queries of a block, keys that it takes at a time, and how many of what it
/// walks along are under way: keys and values forward, queries and gradients
/// backward.
struct AttentionTiles {
  int rows, keys, stages;
};

/// Whether e to the power of any score is a number of bf16's range, with room
/// for sums: of scores up to `most` in size (attention_tanh.cuh). Wider heads
/// have not been tried.
constexpr bool isBounded(int depth, float most) {
  return depth <= 128 && most <= 55;
}

/// Whether so many queries of a head are as many tiles of 128 as of 192.
constexpr bool areFewTiles(long queries) {
  return (queries + 127) / 128 == (queries + 191) / 192;
}

/// Of queries and keys with head dimension `depth`. `functions`: of a score or
/// of a mask; `scaled`: the scores are, before they are used. There are 64 rows
/// to a consumer group; three groups have too few registers for functions, and
/// keys are what there are registers and shared memory for. `blockKeys`: of the
/// blocks of a block mask, of which a tile has a part; 0: there is none.
/// `bounded`: the only function is a tanh of bounded scores, which takes few
/// registers. `queries`: of a head, 0 where they are not known: two groups are
/// faster where a head has as many tiles then. `uneven`: tiles are of packed
/// sequences, have pages, or blocks share them.
constexpr AttentionTiles getForwardTiles(int depth, int ofValues,
                                         bool functions, bool scaled,
                                         int blockKeys = 0,
                                         bool bounded = false, long queries = 0,
                                         bool uneven = false) {
  if (blockKeys)
    return {128, depth > 128 || blockKeys % 128 ? 64 : 128, 2};
  // (96 columns have too few registers for that.)
  const bool two = depth == 64 && queries > 0 && areFewTiles(queries);
  const bool three = !two && ((depth < 128 && !functions && !scaled) ||
                              (depth == 64 && bounded));
  const int keys = depth == 96 && three                              ? 112
                   : depth <= 128 || (ofValues == 128 && !functions) ? 128
                   : depth == 192 ? (functions ? 96 : 112)
                                  : (functions ? 64 : 80);
  // Where there is room, short tiles do not wait for what they read. (Beside a
  // block mask functors have too few registers for it, as have uneven tiles.)
  return {three ? 192 : 128, keys, depth == 64 && !uneven ? 4 : 2};
}

/// The most rows of a tile that has queries of a group of heads, whose keys two
/// pipes of a block share with all others (attention_few.cuh).
constexpr int kMostFewRows = 64, kFewPipes = 2;
/// How many queries of each of `group` heads such a tile has; 0: tiles of one
/// head are better. It is best where one has all queries, or tiles of a head
/// would be emptier: one of 128 queries takes as long as two, and half of it as
/// one.
constexpr int getGroupQueries(int group, long queries) {
  if (group < 1 || group > kMostFewRows || queries < 1)
    return 0;
  const int most = kMostFewRows / group;
  const long tiles = (queries + most - 1) / most;
  return tiles > 1 && 2 * tiles > group ? 0 : (queries + tiles - 1) / tiles;
}

/// Whether blocks share the keys of all tiles of a head's queries, where whole
/// ones would leave many of them idle. Times are in steps, of `tile`.keys; what
/// the parts of a tile cost is some.
constexpr bool isShared(AttentionTiles tile, double heads, double queries,
                        double keys, bool causal, double blocks) {
  auto divide = [](double a, double b) {
    const double whole = (double)(long)(a / b);
    return whole * b < a ? whole + 1 : whole;
  };
  const double tiles = heads * divide(queries, tile.rows);
  const double steps = divide(keys, tile.keys);
  // The last queries of a causal attention see all keys, the others fewer.
  const double seen = keys - queries / 2;
  const double mean =
      causal ? (seen > keys / 2 ? seen : keys / 2) / tile.keys : steps;
  const double shared = tiles * mean / blocks, parts = 4;
  const double whole = !causal          ? divide(tiles, blocks) * steps
                       : shared > steps ? shared
                                        : steps;
  return shared + parts < 0.9 * whole;
}

/// Of `rows` such rows; the stages are those of a pipe, of 64 KB at most: more
/// under way comes no faster.
constexpr AttentionTiles getFewTiles(int depth, int ofValues, int rows) {
  const int panels = (depth + 63) / 64, all = panels + (ofValues + 63) / 64;
  const int keys = all <= 2 ? 128 : all <= 4 ? 64 : 32;
  const int queries = 2 * panels * ((rows + 7) / 8 * 8) * 128;
  const int room = 112 * 1024 - queries, most = 64 * 1024;
  return {rows, keys, (room < most ? room : most) / (all * keys * 128)};
}

/// `sums`: those for captured tensors by query or distance, which a block of
/// queries has in shared memory. Probabilities beside their product with a
/// derivative, or beside what a mask compares, are too many registers for 128
/// queries. With two stages, and all tiles at the same queries, a step waits
/// for its own. Wide heads have no room for more, but beside narrow values.
constexpr AttentionTiles getBackwardTiles(int depth, int ofValues, bool mask,
                                          bool scoreGrad, int sums) {
  if (depth > 128)
    return {64, 128, ofValues == 128 ? 3 : 2};
  const int rows = depth == 64 && !mask && !scoreGrad ? 128 : 64;
  return {rows, 128, rows == 64 && sums <= 2 ? 3 : 2};
}

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_TILES_H
