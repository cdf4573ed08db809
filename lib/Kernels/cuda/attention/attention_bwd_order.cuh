//===- attention_bwd_order.cuh - attention, backward: who does what when --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Configuration, parameters and workspace of attention_bwd.cuh, which blocks of
// queries see which tiles of keys, and the order of launch with its ranks.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_BWD_ORDER_CUH
#define TESSERA_KERNELS_ATTENTION_BWD_ORDER_CUH

#include "attention/attention_mods.cuh"
#include "attention/attention_trap.cuh"
#include "attention/attention_walks.cuh"
#include "base/wgmma.cuh"

namespace tessera {

/// Tensors as (d, position, head, batch), 128-byte swizzle. Boxes are 64 x
/// QueryBox (q, dout), 64 x KeyBox (k, v), 64 x 64 (dk, dv). A map without
/// elements may be anything.
struct BwdMaps {
  TensorMap q, k, v, dout, dk, dv;
};

/// f32 of batch, head and query or key; of both, by score; by distance q - k +
/// keys, for which there are queries + keys.
struct BwdSum {
  float *to;
  int64 strides[4]; // in elements
};

/// Of all three kernels. Strides are those of batch, head and query, in
/// elements; a row of o, dout and dq is contiguous and 16-byte aligned.
template <class Args_, int Sums = 0> struct BwdParams {
  using Args = Args_;
  void const *o, *dout;
  void *dq;
  float const *lse, *dlse; // natural logarithms; dlse or null
  int64 o_strides[3], dout_strides[3], dq_strides[3];
  int64 lse_strides[3], dlse_strides[3];
  void *workspace; // BwdWorkspace<C>::bytes, 16-byte aligned
  int *ticket;     // zero, and left zero
  int batch, heads, key_heads, queries, keys; // of this device
  int causal_shift;                           // keys less queries, globally
  BwdSum sums[Sums + !Sums];
  Args args;
};

/// MayAsk: whether a step asks mask.
template <bool MayAsk> struct BwdAsks {};
template <> struct BwdAsks<true> { bool asks; };

/// Packed: the place of a tile, the sequence of a step.
template <bool Packed, class Place> struct BwdPlace {
  TSR_MEMBER Place place() const { return {}; }
};
template <class Place> struct BwdPlace<true, Place> {
  Place own;
  TSR_MEMBER Place const &place() const { return own; }
};

/// What is in shared memory: of attention_bwd.cuh, of attention_bwd_wide.cuh.
template <class C> struct BwdShared;
template <class C> struct BwdWideShared;
template <class C, bool Wide> struct BwdSharedOf { using Type = BwdShared<C>; };
template <class C> struct BwdSharedOf<C, true> {
  using Type = BwdWideShared<C>;
};

/// Type T, head dimension D, of values DV; BM queries, in so many stages, and
/// BN keys (attention_tiles.h).
template <class T_, int D_, class Mods_, bool Ordered_, int BM_, int BN_,
          int Stages_, int DV_ = D_>
struct BwdConfig {
  using T = T_;
  using Mods = Mods_;
  static constexpr bool Causal = Mods::Causal, Ordered = Ordered_;
  static constexpr bool Sparse = Mods::BlockKeys > 0, Packed = Mods::Packed;
  static constexpr bool HasMods = Mods::HasScore || Mods::HasMask;
  /// Some steps do not ask mask. Where no other functor is: probabilities are
  /// made as without functors, and mask is asked then.
  static constexpr bool MayAsk = Sparse || Mods::KeepsRange;
  static constexpr bool AsksApart = MayAsk && HasMods && !Mods::HasScore;
  /// Tiles walk their blocks of queries as BlockWalks says.
  static constexpr bool Walks = Ordered && Sparse;
  static constexpr int D = D_, DV = DV_, BM = BM_, BN = BN_, Stages = Stages_;
  /// A cluster of two blocks has a tile, half of the keys each: what a block
  /// sums for 128 keys does not fit into its registers.
  static constexpr bool Wide = D > 128;
  static constexpr int Cluster = Wide ? 2 : 1, Threads = Wide ? 512 : 384;
  /// Rows of a copy.
  static constexpr int QueryBox = BM / Cluster, KeyBox = BN / Cluster;
  /// Sums for captured tensors, and the floats of a warp's part of one.
  static constexpr int Sums = Mods::Sums, SumFloats = BM + 16;
  TSR_DEVICE constexpr int sums_by(SumBy by) {
    int count = 0;
    for (int n = 0; n < Sums; n++)
      count += Mods::sum_by(n) == by;
    return count;
  }
  static constexpr int DistanceSums = sums_by(SumBy::Distance);
  /// Those that blocks of queries have in shared memory.
  static constexpr int SharedSums = DistanceSums + sums_by(SumBy::Query);
  static_assert(!Sums || Mods::HasScoreGrad, "score_grad has the addends");
  /// Whether there are registers to load what the rows have before a wait.
  static constexpr bool RowsAhead = BM == 64 && !HasMods && !Ordered;
  /// Of 64 columns; of what is beyond the last, copies make zeros.
  static constexpr int Panels = (D + 63) / 64, ValuePanels = (DV + 63) / 64;
  static constexpr int QueryPanels = BM / 64;
  /// Registers of a thread.
  static constexpr int Producer = 40, Consumer = 232;
  /// What the functors have of the queries of a block.
  static constexpr int RowBytes =
      __is_empty(typename Mods::Row) ? 0 : BM * sizeof(typename Mods::Row);
  /// There is room for a step's dQ in shared memory, from where a warp adds it
  /// by a copy: consumers wait for neither L2 nor their turn. (Of 64 queries of
  /// twice the columns it takes the room of gradients: 0.98, ordered 0.83.)
  static constexpr bool AddsByCopy =
      BM == 128 && RowBytes == 0 && sizeof(typename Mods::Args) <= 96;
  /// Threads of prepare and finish, which have a block for each block of
  /// queries, head and batch; how many of prepare's a multiprocessor holds: it
  /// is over when the last of them is.
  static constexpr int SideThreads = 256, PrepareBlocks = 6;
  /// A step's dQ is of one consumer group, the next step's of the other: up to
  /// 96 columns of 64 queries, for which a group has registers, but beside
  /// dropout. Half of so few columns each read the same gradients of scores
  /// twice, and of 96 columns two panels of 64 were added. (Sums are added by
  /// both groups in each step.)
  static constexpr bool Alternates =
      D <= 96 && BM == 64 && Sums == 0 && !Mods::HasDropout;
  /// The last tile to add to a block of queries writes dQ. That takes it
  /// longer, and where all see all, one tile is the last at all blocks. (Wide
  /// heads have no registers for that, walks do not say which tile it is. Heads
  /// of 96 have none for it in three loops, which without functors are faster:
  /// 1.035 at 16384 positions, 0.96 at 1024.)
  static constexpr bool Writes = Ordered && Causal && !Wide && !Walks &&
                                 !Sums && !(Alternates && D == 96 && !HasMods);
  /// There is a last kernel: for dQ else, sums by distance and traps.
  static constexpr bool HasFinish = !Writes || DistanceSums || kTraps;
  /// dK, as dV, has its left operand in registers.
  static constexpr bool DkFromRegisters = BM == 128 || (Alternates && D == 64);
  /// Of a step's dQ, a consumer group, or a block of a cluster, adds 64 rows
  /// and these columns: all, or half of them where both add to 64 rows.
  static constexpr int DqColumns = Alternates ? D : BM * Panels / 2;
  static constexpr int Part = 64 * DqColumns, DqParts = Alternates ? 1 : 2;
  /// A consumer group has its own turn to add; else both have one.
  static constexpr bool TurnsOfGroups = AddsByCopy || Alternates;
  /// Counters of what was added to a block of queries: of the warps that add,
  /// or of a cluster's blocks.
  static constexpr int Counters = AddsByCopy || Wide ? 2 : 1;
  /// Floats of a row of a block's sums.
  static constexpr int SumColumns = DqParts * Part / BM;
  static_assert(D == 64 || D == 96 || D == 128 || D == 192 || D == 256,
                "head dimension 64, 96, 128, 192 or 256");
  static_assert(DV == D || (D == 192 && DV == 128), "values as keys, or 128");
  static_assert(!Wide || !(Packed || Sums || Mods::HasDropout),
                "no packed sequences, sums or dropout beside wide heads");
  static_assert(Mods::BlockQueries % BM == 0 && Mods::BlockKeys % BN == 0,
                "a tile lies in one block");
  static_assert(!Packed || !Sums, "sums have all tiles");
  static_assert(!(Sparse && Packed), "packed sequences have their own tiles");
  static_assert(BN % BM == 0, "blocks of queries begin where tiles do");
  static_assert(!Walks || (BM == WalkParts::Rows && BN == WalkParts::Keys),
                "walks are of such tiles");

  /// A tile of keys, for a query head; n is negative after the last. Packed: n
  /// and the blocks of queries m are numbers in the sequence.
  struct Tile : BwdPlace<Packed, PackedTile>, BwdTicket {
    int n, head, batch;
    bool rows_down; // walks its blocks of queries from the last to the first
    bool launched_down;
    int passes; // BlockWalks: of its walks
  };
  /// A block of queries of a tile; n is negative after the last.
  struct Step : BwdAsks<MayAsk>, BwdPlace<Packed, PackedSpan>, BwdTicket {
    float *sum;  // of dQ, by consumer groups; null: no query sees the tile
    int *turn;   // Ordered: C::Counters of what was added
    int rank;    // Ordered: how many tiles add before this one
    bool final;  // Writes: no tile adds after this one
    bool trails; // Ordered: waits for as many at the next block
    int m, n, head, batch;
    bool masked; // some query does not see some key
    bool last;   // of the tile

    /// The first of the block's queries and of the tile's keys, and the ends of
    /// all.
    TSR_MEMBER int first_query() const { return begin() + m * BM; }
    TSR_MEMBER int first_key() const { return begin() + n * BN; }
    template <class P> TSR_MEMBER int queries(P const &p) const {
      return Packed ? begin() + this->place().length : p.queries;
    }
    template <class P> TSR_MEMBER int keys(P const &p) const {
      return Packed ? begin() + this->place().length : p.keys;
    }
    TSR_MEMBER int begin() const { return this->place().begin; }
  };
  /// Places of steps; those that are planned before they are loaded.
  static constexpr int Planned = AddsByCopy ? 6 : 8;
  static constexpr int Ahead =
      Sparse && !Wide && !Sums ? Planned - Stages - 1 : 1;
  static_assert(Ahead > 0 && Planned > Stages + Ahead,
                "a step's place is free when the one behind it is over");

  using Shared = typename BwdSharedOf<BwdConfig, Wide>::Type;
};

/// In which sections heads, of all batches, are launched: with so many tiles
/// each, so many in a section and in the last one.
struct BwdSections {
  int tiles, all, width, ending;
};

/// Of a tile's head: of its first block of queries; what is in memory of walks.
struct BwdFirst {
  float *sum;
  int *turn;
  int const *walks;
};

template <class C> struct BwdShared {
  alignas(1024) char k[C::Panels][C::BN * 128];
  alignas(1024) char v[C::Panels][C::BN * 128];
  alignas(1024) char q[C::Stages][C::Panels][C::BM * 128];
  alignas(1024) char dout[C::Stages][C::Panels][C::BM * 128];
  alignas(1024) char ds[3][C::QueryPanels][C::BN * 128]; // rows: keys
  alignas(128) float dq[C::AddsByCopy ? 2 : 1][C::AddsByCopy ? C::Part : 1];
  alignas(16) float lse[C::Stages][C::BM];
  alignas(16) float delta[C::Stages][C::BM];
  alignas(16) typename C::Mods::Row
      row[C::RowBytes ? C::Stages : 1][C::RowBytes ? C::BM : 1];
  // Of two steps, by warps.
  float sums[C::SharedSums ? 2 : 1][C::SharedSums + !C::SharedSums]
            [C::SharedSums ? 8 : 1][C::SharedSums ? C::SumFloats : 1];
  /// The planner's own: what it has in common with consumers would take
  /// registers from them.
  BwdParams<typename C::Mods::Args, C::Sums> planned;
  BwdSections sections; // the planner has no registers for them
  BwdFirst first;
  typename C::Step step[C::Planned]; // travel with step_full
  uint64 k_full, k_empty, v_full, v_empty;
  uint64 q_full[C::Stages], q_empty[C::Stages];
  uint64 dout_full[C::Stages], dout_empty[C::Stages];
  uint64 step_full[C::Planned], step_empty[C::Planned];
  // Ordered, of both consumer groups or of each: they may add, and have.
  // AddsByCopy: it may write what the last tile writes; its dQ is there, or
  // written; is there no more.
  uint64 turn[2], added[2], dq_empty[2];
};

/// What the kernels hand on to each other.
template <class C> struct BwdWorkspace {
  float *sum; // [block of queries][part][columns / 8][thread][4]
  float *lse, *delta;
  typename C::Mods::Row *row;
  int *turns;       // Ordered: [block of queries][2], C::Counters of them
  float *distances; // [sum by distance][batch][head][tile of keys][place]

  /// Packed: as many as there may be, at least.
  static __host__ __device__ constexpr int64
  blocks(int64 batch, int64 heads, int64 queries, int64 sequences = 0) {
    return batch * heads * ((queries + C::BM - 1) / C::BM + sequences);
  }
  static __host__ __device__ constexpr int64 distance_places(int64 queries) {
    return (queries + C::BM - 1) / C::BM * C::BM + C::BN;
  }
  static __host__ __device__ constexpr int64 bytes(int64 batch, int64 heads,
                                                   int64 queries, int64 keys,
                                                   int64 sequences = 0) {
    return blocks(batch, heads, queries, sequences) *
               (C::BM * (C::SumColumns + 2) * 4 + C::RowBytes +
                (C::Ordered ? 8 : 0)) +
           C::DistanceSums * batch * heads * ((keys + C::BN - 1) / C::BN) *
               distance_places(queries) * 4;
  }
  template <class P> TSR_MEMBER explicit BwdWorkspace(P const &p) {
    int sequences = 0;
    if constexpr (C::Packed)
      sequences = C::Mods::packed(p.args).sequences;
    const int64 rows = blocks(p.batch, p.heads, p.queries, sequences) * C::BM;
    sum = static_cast<float *>(p.workspace);
    lse = sum + rows * C::SumColumns, delta = lse + rows;
    row = reinterpret_cast<typename C::Mods::Row *>(delta + rows);
    turns = reinterpret_cast<int *>(reinterpret_cast<char *>(row) +
                                    rows / C::BM * C::RowBytes);
    distances =
        reinterpret_cast<float *>(turns) + (C::Ordered ? rows / C::BM * 2 : 0);
  }
};

//===----------------------------------------------------------------------===//
// Which blocks of queries see which tiles of keys, and in which order
//===----------------------------------------------------------------------===//

/// The first of 0, ..., n - 1 from which on `is` holds; else n. By a whole
/// warp.
template <class F> TSR_DEVICE int first_where(int n, F is) {
  const int lane = threadIdx.x % 32;
  int begin = 0;
  while (begin < n) {
    const int width = (n - begin + 31) / 32, i = begin + lane * width;
    const uint32 held = __ballot_sync(~0u, i >= n || is(i));
    const int first = held ? __ffs(held) - 1 : 32;
    n = min(n, begin + first * width);
    if (first)
      begin += (first - 1) * width + 1;
  }
  return begin;
}

/// The tiles of keys [begin, end) that block m of a head's queries sees; none
/// if end <= begin. Neither end falls as m rises.
template <class C, class P>
TSR_DEVICE KeyRange bwd_tiles(P const &p, int batch, int head, int m) {
  using Mods = typename C::Mods;
  const int first = m * C::BM, last = min(first + C::BM, p.queries) - 1;
  const int64 last_query = Mods::query(p.args, last);
  KeyRange seen = {0, p.keys};
  if constexpr (!C::Walks) // which know but the block mask
    seen =
        Mods::keys(p.args, Mods::batch(p.args, batch), Mods::head(p.args, head),
                   Mods::query(p.args, first), last_query, p.keys);
  if (C::Causal)
    seen.end = min(seen.end, last_seen<C>(p, last_query) + 1);
  return {max(seen.begin, 0) / C::BN,
          (max(min(seen.end, p.keys), 0) + C::BN - 1) / C::BN};
}

/// KeepsRange: whether some query of block m of its head does not see some key
/// of a tile.
template <class C, class P>
TSR_DEVICE bool bwd_asks(P const &p, typename C::Tile const &t, int m) {
  using Mods = typename C::Mods;
  const int first = m * C::BM, last = min(first + C::BM, p.queries) - 1;
  const KeyRange kept = Mods::keys(
      p.args, Mods::batch(p.args, t.batch), Mods::head(p.args, t.head),
      Mods::query(p.args, last), Mods::query(p.args, first), p.keys);
  return t.n * C::BN < kept.begin || (t.n + 1) * C::BN > kept.end;
}

/// Sparse: what the block mask says of tile n of the keys and block m of a
/// head's queries.
template <class C, class P>
TSR_DEVICE int bwd_kind(P const &p, int batch, int head, int m, int n) {
  using Mods = typename C::Mods;
  const IndexPair at = {Mods::batch(p.args, batch), Mods::head(p.args, head),
                        Mods::query(p.args, m * C::BM), n * C::BN};
  return Mods::kind(p.args, at);
}

/// How many tiles add to block m of a head's queries. By a whole block of
/// threads.
template <class C, class P>
TSR_DEVICE int bwd_count(P const &p, int batch, int head, int m) {
  const KeyRange tiles = bwd_tiles<C>(p, batch, head, m);
  if constexpr (C::Sparse) {
    int count = 0;
    for (int first = tiles.begin; first < tiles.end; first += C::SideThreads) {
      const int n = first + threadIdx.x;
      count += __syncthreads_count(n < tiles.end &&
                                   bwd_kind<C>(p, batch, head, m, n));
    }
    return count;
  } else {
    return max(0, tiles.end - tiles.begin);
  }
}

/// Before this block of queries, some query does not see some key of tile n. By
/// a whole warp.
template <class C, class P> TSR_DEVICE int bwd_whole(P const &p, int n) {
  const int blocks = (p.queries + C::BM - 1) / C::BM;
  if ((n + 1) * C::BN > p.keys)
    return blocks;
  if (!C::Causal)
    return 0;
  return first_where(blocks, [&](int m) {
    return last_seen<C>(p, C::Mods::query(p.args, m * C::BM)) >=
           (n + 1) * C::BN - 1;
  });
}

/// The head whose keys a tile or a step has.
template <class C, class P, class Of>
TSR_DEVICE int bwd_key_head(P const &p, Of const &of) {
  return C::Mods::key_head(p.args, of.head, p.heads, p.key_heads);
}

/// The blocks [begin, end) of its head's queries that see a tile. By a whole
/// warp.
template <class C> struct BwdRows {
  int begin, end;

  template <class P> TSR_MEMBER BwdRows(P const &p, typename C::Tile const &t) {
    const int blocks = (p.queries + C::BM - 1) / C::BM;
    begin = first_where(blocks, [&](int m) {
      return bwd_tiles<C>(p, t.batch, t.head, m).end > t.n;
    });
    end = first_where(blocks, [&](int m) {
      return bwd_tiles<C>(p, t.batch, t.head, m).begin > t.n;
    });
    end = max(begin, end);
  }
};

/// Of keys, of a head.
template <class C, class P> TSR_DEVICE int bwd_head_tiles(P const &p) {
  if constexpr (C::Packed)
    return C::Mods::packed(p.args).count();
  else
    return (p.keys + C::BN - 1) / C::BN;
}

/// Whether all queries see all tiles, of the first head.
template <class C, class P> TSR_DEVICE bool bwd_sees_all(P const &p) {
  if constexpr (C::Causal || C::Sparse || C::Packed) {
    return false;
  } else {
    const int last = (p.queries + C::BM - 1) / C::BM - 1;
    return last >= 0 && bwd_tiles<C>(p, 0, 0, last).begin == 0 &&
           bwd_tiles<C>(p, 0, 0, 0).end == bwd_head_tiles<C>(p);
  }
}

/// The queries of two sections should fit into L2 together. The last one has
/// two tiles for each of a GPU's 132 multiprocessors, or of clusters on them,
/// so that there are short ones to end with.
///
/// Ordered, where all see all, none is shorter. There a tile should not come to
/// a head before the one that was launched there before is a few blocks ahead,
/// and not all that run should follow each other: eight heads of 4096 queries
/// or more, four where blocks are wide, with more tiles than run at a time; two
/// where consumers are ahead of what is added.
///
/// Beside a block mask it may be wider, as long as one tile of each head reads
/// 9 MB of queries and what belongs to them. Tiles of a document begin at the
/// same queries and wait for each other, unless those before are launched long
/// before them. (Those of a window begin at others, so that more is read at a
/// time.)
template <class C, class P>
TSR_DEVICE BwdSections bwd_sections(P const &p, int reads) {
  const int tiles = bwd_head_tiles<C>(p), all = p.heads * p.batch;
  const int bytes = 6 * C::D + 2 * C::DV; // of a query
  const int whole = max(1, (40 << 20) / bytes / max(1, p.queries));
  int wide = C::Walks ? (9 << 20) / bytes / max(1, reads) : 0;
  const int fit = max(whole, wide), width = max(whole / 2, 4);
  auto fill = [&](int blocks) { // heads whose tiles are as many
    return blocks / C::Cluster / max(1, tiles);
  };
  int ending = min(fit, max(width, fill(2 * 132)));
  if (C::Packed) // tiles that run together have few of the queries
    ending = max(ending, 2);
  else if (C::Ordered && !C::Walks && all >= 2 * fill(132))
    ending = min(ending, all - fill(132)); // not all begin at the last queries
  if (C::Ordered && bwd_sees_all<C>(p)) {
    const int wide_enough = (C::BM == 128 ? 4 : 8) * max(1, 4096 / p.queries);
    const int least = max(C::AddsByCopy ? 2 : wide_enough, fill(160 - 1) + 1);
    const int sections = max(1, all / least);
    wide = (all + sections - 1) / sections, ending = 0;
  }
  return {tiles, all, max(wide, min(fit, width)), min(all, ending)};
}

/// What is in memory of the walks of a head; they themselves.
template <class C, class P>
TSR_DEVICE int const *walk_words(P const &p, int batch, int head, bool down) {
  using Mods = typename C::Mods;
  const IndexPair at = {Mods::batch(p.args, batch), Mods::head(p.args, head), 0,
                        0};
  return Mods::walks(p.args, at, down);
}
template <class C, class P>
TSR_DEVICE int const *walk_words(P const &p, typename C::Tile const &t) {
  return walk_words<C>(p, t.batch, t.head, t.rows_down);
}
template <class C, class P>
TSR_DEVICE BlockWalks<> bwd_walks(P const &p, int passes, int const *words) {
  return {p.queries, p.keys, passes, kWalkPasses<C::Mods::BlockQueries>, words};
}

/// The rows of queries that a tile reads, of the head whose tiles read most: a
/// section may have any. By a whole warp.
template <class C, class P> TSR_DEVICE int bwd_reads(P const &p) {
  if constexpr (C::Walks) {
    int reads = 0;
    if (p.queries && p.keys)
      for (int i = threadIdx.x % 32; i < p.heads * p.batch; i += 32) {
        int const *const words =
            walk_words<C>(p, i / p.heads, i % p.heads, false);
        reads = max(reads, *bwd_walks<C>(p, 1, words).reads);
      }
    return __reduce_max_sync(~0u, reads);
  } else {
    return 0;
  }
}

/// Tile `id` in the order of launch: inside sections of heads, the longest
/// first. Ordered, most sections go the other way, from the last keys to the
/// first: then the tiles of a causal or windowed head come to a block of
/// queries one after the other, and do not wait. The last section has its long
/// tiles first nevertheless, for a short end, and walks its queries from the
/// last on. Beside a block mask, BlockWalks knows which are longest. By a whole
/// warp.
template <class C, class P>
TSR_DEVICE typename C::Tile bwd_tile(P const &p, BwdSections const &sections,
                                     int id) {
  const int tiles = sections.tiles;
  typename C::Tile t = {};
  if (id >= tiles * sections.all) {
    t.n = -1;
    return t;
  }
  t.number(id);
  const HeadSection section(id / tiles, sections.all, sections.width,
                            sections.ending);
  const int inside = id - tiles * section.first;
  const int column = inside / section.width;
  const int number = section.first + inside % section.width;
  t.launched_down = C::Ordered && !section.last;
  t.rows_down = C::Ordered && section.last;
  t.n = t.launched_down ? tiles - 1 - column : column;
  if constexpr (C::Packed) {
    t.own = C::Mods::packed(p.args)[t.n];
    t.n = (t.own.length + C::BN - 1) / C::BN - 1 - t.own.tile;
  }
  t.head = number % p.heads;
  t.batch = C::Packed ? 0 : number / p.heads;
  if constexpr (C::Walks) {
    if (p.queries) {
      const int launched =
          bwd_walks<C>(p, 1, walk_words<C>(p, t)).launched[column];
      t.n = launched / 2, t.passes = launched % 2 + 1;
    }
  }
  return t;
}

/// How many tiles add to a block of queries before this one, and after; beside
/// a block mask, BlockWalks has the first.
struct BwdRank {
  int before, after;
};
template <class C, class P>
TSR_DEVICE BwdRank bwd_rank(P const &p, typename C::Tile const &t, int m) {
  const KeyRange tiles = bwd_tiles<C>(p, t.batch, t.head, m);
  const int less = t.n - tiles.begin, more = tiles.end - 1 - t.n;
  return t.launched_down ? BwdRank{more, less} : BwdRank{less, more};
}

/// Whether a tile that begins with block m of its head's queries waits until
/// those before it are beyond the next one, too: where all see all, they would
/// walk one behind the other ever after, and each wait whenever the one before
/// does.
template <class C, class P>
TSR_DEVICE bool bwd_trails(P const &p, typename C::Tile const &t,
                           BwdRows<C> const &rows, int m) {
  return C::Ordered && !C::AddsByCopy && m == rows.begin && m + 1 < rows.end &&
         bwd_sees_all<C>(p) && // of another head, perhaps
         bwd_rank<C>(p, t, m).before == bwd_rank<C>(p, t, m + 1).before;
}

/// The number of block m of a head's queries, or of those of the sequence that
/// `place` is in: as many as the whole blocks before that and one for each
/// sequence before are room enough for theirs.
template <class C, class P>
TSR_DEVICE int bwd_block(P const &p, int batch, int head, int m,
                         PackedTile const &place) {
  const int blocks = (p.queries + C::BM - 1) / C::BM;
  if constexpr (C::Packed)
    return head * (blocks + C::Mods::packed(p.args).sequences) +
           place.begin / C::BM + place.sequence + m;
  return (batch * p.heads + head) * blocks + m;
}

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_BWD_ORDER_CUH
