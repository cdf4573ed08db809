//===- tiles.cuh - tensors that are read across ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where an operand's neighbours lie along another loop than the result's, a
// block reads a square of it along its own memory, and passes it on through
// shared memory. A warp reads and writes rows of 128 bytes.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "prelude.cuh"

namespace tessera {

constexpr int kTileThreads = 256;

/// A square of `Size` x `Size` elements, as it is read: lines along memory. The
/// gap between lines makes reading across them free of bank conflicts, or
/// nearly.
template <class T, int Size> struct Tile {
  static constexpr int kGap = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
  alignas(16) T lines[Size][Size + kGap];

  /// Reads lines of a tensor: `address(line, place)` is where one of its
  /// elements is. `numLines` and `length` are what there is of the square.
  template <int V, class Address>
  __device__ void read(int64 numLines, int64 length, Address address) {
    constexpr int kLanes = Size / V < 32 ? Size / V : 32;
    constexpr int kStep = kTileThreads / kLanes;
    constexpr int kTurns = Size / kStep, kPieces = Size / (V * kLanes);
    const int first = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
    constexpr int kBytes = V * sizeof(T);
    using Part = typename Word<(kBytes < 4 ? kBytes : 4)>::Type;
    Vector<T, V> pieces[kTurns][kPieces];
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn)
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        const int line = first + turn * kStep, place = (lane + i * kLanes) * V;
        if (line < numLines && place < length)
          load(pieces[turn][i], address(line, place));
      }
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn)
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        const int line = first + turn * kStep, place = (lane + i * kLanes) * V;
        if (line < numLines && place < length)
#pragma unroll
          for (int part = 0; part < int(kBytes / sizeof(Part)); ++part)
            reinterpret_cast<Part *>(&lines[line][place])[part] =
                reinterpret_cast<const Part *>(pieces[turn][i].lane)[part];
      }
  }
};

} // namespace tessera
