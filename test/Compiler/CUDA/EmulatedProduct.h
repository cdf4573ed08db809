//===- EmulatedProduct.h - gemm.cuh on the host ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The product is made of wgmma and TMA, which no host has: here it is its
// definition, between the same maps and functors.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "base/prelude.cuh"

#define TSR_MEMBER __device__ inline
#define TSR_DEVICE static TSR_MEMBER

namespace tessera {

/// What a map is made of.
struct TensorMap {
  const void *descriptor; ///< of a CPU kernel's memref
  int64 box[3];

  /// Allocated, aligned, offset, sizes, strides.
  const int64 *words() const { return static_cast<const int64 *>(descriptor); }
  template <class T, int Rank>
  T *at(int64 batch, int64 row, int64 column) const {
    const int64 *w = words();
    const int64 *strides = w + 3 + Rank;
    int64 place = w[2] + row * strides[Rank - 2] + column * strides[Rank - 1];
    if (Rank == 3)
      place += batch * strides[0];
    return reinterpret_cast<T *>(w[1]) + place;
  }
  template <int Rank> void expect(int64 rows) const {
    const int64 *own = box + Rank - 2;
    if (own[0] != rows || own[1] != 64 || (Rank == 3 && box[0] != 1)) {
      fputs("emulation: boxes of another size than the kernel's\n", stderr);
      abort();
    }
  }
};

/// Threads share elements; an element that is twice in a tile's rows or columns
/// is computed once.
template <class C, class Maps, class P>
void gemm(const Maps &maps, const P &p) {
  using T = typename C::T;
  constexpr int kRank = C::Rank, kRankOfB = C::BatchedB ? 3 : 2;
  constexpr int kResults = C::Mods::Results;
  maps.a.template expect<kRank>(C::BM);
  maps.b.template expect<kRankOfB>(C::BN / C::Cluster);
  for (const TensorMap &c : maps.c)
    c.template expect<kRank>(64);
  if (kRank == 2 && p.batch != 1)
    abort();
  const int64 count = int64(p.batch) * p.m * p.n;
  for (int64 i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x) {
    const int column = i % p.n, row = i / p.n % p.m, batch = i / p.n / p.m;
    float x[kResults] = {};
    for (int k = 0; k < p.k; ++k)
      x[0] += widen<float>(*maps.a.template at<T, kRank>(batch, row, k)) *
              widen<float>(*maps.b.template at<T, kRankOfB>(batch, column, k));
    C::Mods::epilogue(p.args, x, {batch, row, column});
    for (int r = 0; r < kResults; ++r)
      *maps.c[r].template at<T, kRank>(batch, row, column) = narrow<T>(x[r]);
  }
}

} // namespace tessera
