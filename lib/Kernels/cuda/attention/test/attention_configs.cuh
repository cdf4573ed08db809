//===- attention_configs.cuh - with the tiles of programs -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_TEST_ATTENTION_CONFIGS_CUH
#define TESSERA_KERNELS_TEST_ATTENTION_CONFIGS_CUH

#include "attention/attention_bwd.cuh"
#include "attention/attention_few.cuh"
#include "attention/attention_fwd.cuh"
#include "attention/attention_tiles.h"

namespace tessera {

/// The blocks that share steps; 0: they take whole tiles.
template <class M> constexpr int kSplitBlocks =
#ifdef TEST_SPLIT
    M::BlockKeys || M::HasDropout ? 0 : 132;
#else
    0;
#endif
/// Of a head, where they are known.
#ifndef TEST_QUERIES
#define TEST_QUERIES 0
#endif
template <class M, int D, int DV, int Queries>
constexpr AttentionTiles kForwardTiles = getForwardTiles(
    D, DV,
    M::HasScore || M::HasMask || M::HasDropout ||
        (D > 128 && (kSplitBlocks<M> || M::PageRows)),
    M::HasScore || !(M::Scale > 0) || kSplitBlocks<M> || M::PageRows,
    M::BlockKeys,
    M::BoundedTanh && !M::HasMask && !M::HasDropout && !M::Packed &&
        !kSplitBlocks<M> && !M::PageRows,
    Queries, kSplitBlocks<M> || M::Packed || M::PageRows);
template <class T, int D, class M, int DV = D, int Queries = TEST_QUERIES>
using Fwd = FwdConfig<T, D, M, DV, kForwardTiles<M, D, DV, Queries>.rows,
                      kForwardTiles<M, D, DV, Queries>.keys,
                      kForwardTiles<M, D, DV, Queries>.stages, kSplitBlocks<M>>;

template <class T, int D, class M, int DV, int Rows, int Blocks>
using Few = FewConfig<T, D, M, DV, Rows, getFewTiles(D, DV, Rows).keys,
                      getFewTiles(D, DV, Rows).stages, Blocks>;

template <class M> __device__ constexpr int count_shared_sums() {
  int count = 0;
  for (int n = 0; n < M::Sums; n++)
    count += M::sum_by(n) == SumBy::Query || M::sum_by(n) == SumBy::Distance;
  return count;
}
template <class M, int D, int DV>
constexpr AttentionTiles
    kBackwardTiles = getBackwardTiles(D, DV,
                                      M::HasMask || M::HasDropout || M::BlockKeys, M::HasScoreGrad,
                                      count_shared_sums<M>());
template <class T, int D, class M, bool Ordered = false, int DV = D>
using Bwd = BwdConfig<T, D, M, Ordered, kBackwardTiles<M, D, DV>.rows,
                      kBackwardTiles<M, D, DV>.keys,
                      kBackwardTiles<M, D, DV>.stages, DV>;

} // namespace tessera

#endif // TESSERA_KERNELS_TEST_ATTENTION_CONFIGS_CUH
