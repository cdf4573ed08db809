//===- attention_sparse_kernels.cu - block masks and few queries ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The templates as a library, for attention_sparse.py.
//
//===----------------------------------------------------------------------===//

#include "attention/test/packed_tiles.cuh"
#include "attention_launch.cuh"

//===----------------------------------------------------------------------===//
// Block masks: `table` has the kinds of blocks, the same for all heads
//===----------------------------------------------------------------------===//

struct BlocksArgs {
  signed char const *kinds; // [blocks of queries, blocks of keys]
  int columns;
  int const *documents; // [position]
  int *walks;           // what `walks` makes of the kinds
  int64 words;
};
static WalkParts walk_parts(Sizes const &s) {
  return WalkParts(s.queries, s.keys, kWalkPasses<128>);
}
static void capture(BlocksArgs &args, Sizes const &s, Tensors const &t) {
  args = {(signed char const *)t.table, (s.keys + 127) / 128,
          (int const *)t.documents, (int *)t.walks, walk_parts(s).words()};
}
struct Blocks : Full<128> {
  using Args = BlocksArgs;
  static constexpr int BlockQueries = 128, BlockKeys = 128;
  TSR_DEVICE int kind(Args const &a, IndexPair const &at) {
    return a.kinds[at.query / BlockQueries * a.columns + at.key / BlockKeys];
  }
  TSR_DEVICE int *walks(Args const &a, IndexPair const &, bool last) {
    return a.walks + last * a.words;
  }
};
struct CausalBlocks : Blocks {
  static constexpr bool HasMask = true;
  template <class At> TSR_DEVICE bool mask(Args const &, At const &at) {
    return at.key <= at.query;
  }
};
struct WindowBlocks : Blocks {
  static constexpr bool HasMask = true;
  template <class At> TSR_DEVICE bool mask(Args const &, At const &at) {
    return at.key <= at.query && at.key > at.query - 2048;
  }
};
struct DocumentBlocks : Blocks {
  static constexpr bool HasMask = true;
  struct Row {
    int document;
  };
  struct Column {
    int document;
  };
  TSR_DEVICE Row row(Args const &a, int64, int64, int64 q) {
    return {a.documents[q]};
  }
  TSR_DEVICE Column column(Args const &a, int64, int64 k) {
    return {a.documents[k]};
  }
  template <class At> TSR_DEVICE bool mask(Args const &, At const &at) {
    return at.row.document == at.column.document;
  }
};

/// How the ordered backward goes through `table`, into `walks`, of so many
/// bytes.
extern "C" long walks_bytes(Sizes s) { return 2 * 4 * walk_parts(s).words(); }
extern "C" void walks(Sizes s, Tensors t, cudaStream_t stream) {
  const int64 columns = (s.keys + 127) / 128;
  const WalkedMask<128, 128, false> mask = {(signed char const *)t.table,
                                            {0, 0, columns, 1},
                                            (int *)t.walks,
                                            walk_parts(s).words(),
                                            1,
                                            1,
                                            s.queries,
                                            s.keys};
  launch_walks(mask, stream);
}

//===----------------------------------------------------------------------===//
// Packed sequences: `table` has what packed_tiles makes of where they begin
//===----------------------------------------------------------------------===//

struct PackedArgs {
  PackedTiles tiles;
};
static void capture(PackedArgs &args, Sizes const &s, Tensors const &t) {
  args.tiles = {(PackedHeader const *)t.table, s.sequences};
}
struct PackedCausal : Full<128> {
  using Args = PackedArgs;
  static constexpr bool Causal = true, Packed = true;
  TSR_DEVICE PackedTiles packed(Args const &a) { return a.tiles; }
};

__global__ void packed_kernel(int const *begins, int positions,
                              PackedHeader *list) {
  packed_tiles<true>(begins, nullptr, positions, 128, list);
}
/// Into `table`, of PackedTiles::words.
extern "C" void packed(int const *begins, Sizes s, void *table,
                       cudaStream_t stream) {
  packed_kernel<<<s.sequences, 128, 0, stream>>>(begins, s.queries,
                                                 (PackedHeader *)table);
  CHECK(cudaGetLastError());
}

/// mods: causal, window of 2048, documents, whole blocks alone, packed causal
/// sequences.
extern "C" void attention(int, int, int kind, int mods, Sizes s, Tensors t,
                          cudaStream_t stream) {
  const Run runs[] = {all<128, CausalBlocks>, all<128, WindowBlocks>,
                      all<128, DocumentBlocks>, all<128, Blocks>,
                      all<128, PackedCausal>};
  runs[mods](kind, s, t, stream);
}
/// Of any kind.
extern "C" long attention_workspace(int, Sizes s) {
  return BwdWorkspace<Bwd<bf16, 128, DocumentBlocks, true>>::bytes(
      s.batch, s.heads, s.queries, s.keys, s.sequences);
}

//===----------------------------------------------------------------------===//
// Few queries, of sequences whose lengths `table` has; `documents` has their
// pages, where keys and values are pages
//===----------------------------------------------------------------------===//

struct LengthsArgs {
  int const *lengths; // [batch]
  int const *pages;   // [batch, pages of a sequence]
  int keys, queries;
};
static void capture(LengthsArgs &args, Sizes const &s, Tensors const &t) {
  args = {(int const *)t.table, (int const *)t.documents, s.keys, s.queries};
}
template <int D> struct OfLengths : Full<D> { using Args = LengthsArgs; };
template <int D> using Lengths = LengthsOf<OfLengths<D>>;
template <int D, int R> struct Pages : Lengths<D> {
  static constexpr int PageRows = R;
  TSR_DEVICE int page(LengthsArgs const &a, int batch, int index) {
    return a.pages[batch * (a.keys / R) + index];
  }
};

/// Where keys and values lie: in `pages` pages, or not.
template <class C> static Sizes cache_of(int pages, Sizes s) {
  if (C::Paged)
    s.batch = pages, s.keys = C::Mods::PageRows;
  return s;
}
/// `workspace` has the pieces, `ticket` what of each has arrived.
template <int D, int Rows, class M = Lengths<D>>
static void few(int pages, Sizes const &s, Tensors const &t,
                cudaStream_t stream) {
  using C = Few<bf16, D, M, D, Rows, 132>;
  using P = FewParams<LengthsArgs>;
  P p = {};
  fill(p, D, s, t);
  p.pieces = (float *)t.workspace, p.arrived = (int *)t.ticket;
  const unsigned group = s.heads / s.key_heads;
  p.tile_queries = getGroupQueries(group, s.queries);
  constexpr int box = kBoxRows<C::BN, M::PageRows>;
  const Sizes cache = cache_of<C>(pages, s);
  const FewMaps maps = {map(t.q, D, s, false, p.tile_queries, group),
                        map(t.k, D, cache, true, box),
                        map(t.v, D, cache, true, box)};
  launch_few<C>(maps, p, multiprocessors(), stream);
}

/// Of as many rows, queries and heads of a group, as there is a kernel for;
/// else 0, and nothing runs. page_rows: of `pages` pages [page, position, head,
/// d], or 0.
extern "C" int decode(int d, int page_rows, int pages, Sizes s, Tensors t,
                      cudaStream_t stream) {
  const int rows = s.heads / s.key_heads * s.queries;
  decltype(&few<128, 8>) run = nullptr;
  if (d == 128 && rows == 8)
    run = page_rows == 0     ? few<128, 8>
          : page_rows == 16  ? few<128, 8, Pages<128, 16>>
          : page_rows == 64  ? few<128, 8, Pages<128, 64>>
          : page_rows == 128 ? few<128, 8, Pages<128, 128>>
                             : nullptr;
  else if (d == 64 && rows == 8)
    run = page_rows == 0     ? few<64, 8>
          : page_rows == 16  ? few<64, 8, Pages<64, 16>>
          : page_rows == 64  ? few<64, 8, Pages<64, 64>>
          : page_rows == 128 ? few<64, 8, Pages<64, 128>>
                             : nullptr;
  else if (d == 128 && rows == 16 && page_rows == 0)
    run = few<128, 16>;
  if (run)
    run(pages, s, t, stream);
  return run != nullptr;
}
/// By a length or, Causal, of all keys.
template <int D, int R = 0> using Prompt = PromptOf<Pages<D, R>>;
template <int D> struct CausalPrompt : Full<D> {
  using Args = LengthsArgs;
  static constexpr bool Causal = true;
};
/// In tiles of a head's queries, which `Blocks` share, or none.
template <int D, class M, int Blocks>
using Whole = FwdConfig<bf16, D, M, D, 128, 128, 2, Blocks>;
/// As cuda-schedule chooses.
template <int D, class M>
static void prompt(int pages, Sizes const &s, Tensors const &t,
                   cudaStream_t stream) {
  if (getGroupQueries(s.heads / s.key_heads, s.queries))
    return few<D, 64, M>(pages, s, t, stream);
  using Shared = Whole<D, M, 132>;
  const Sizes cache = cache_of<Shared>(pages, s);
  if (isShared({Shared::BM, Shared::BN, 2}, (double)s.batch * s.heads,
               s.queries, s.keys, M::Causal, 132))
    return forward<Shared>(s, t, stream, cache);
  forward<Whole<D, M, 0>>(s, t, stream, cache);
}
/// Of heads of 128: causal, or in pages by lengths.
extern "C" void prompt(int page_rows, int pages, Sizes s, Tensors t,
                       cudaStream_t stream) {
  (page_rows == 64 ? prompt<128, Prompt<128, 64>>
                   : prompt<128, CausalPrompt<128>>)(pages, s, t, stream);
}
/// Bytes of the pieces and, zero before and after, of what has arrived; of any.
extern "C" void decode_workspace(long *pieces, long *arrived) {
  using C = Few<bf16, 128, Lengths<128>, 128, 64, 132>;
  *pieces = 2l * C::MostPipes * C::PieceFloats * sizeof(float);
  *arrived = 4l * C::MostPipes * sizeof(int);
}
