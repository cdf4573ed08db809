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
// shared memory. A warp reads and writes rows of 64 or 128 bytes.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "base/prelude.cuh"

namespace tessera {

constexpr int kTileThreads = 128;

/// Which chunks of a square's result a thread has: `V` elements each, from
/// (`row`, `column`) on. Chunks of 8 are those that a warp's thread gets of
/// `Tile::across`.
template <int V, int Size> struct Square {
  static constexpr int kTurns = Size * Size / (V * kTileThreads);
  static constexpr int kLanes = Size / V, kStep = kTileThreads / kLanes;

  static __device__ int row(int turn) {
    if constexpr (V == 8)
      return group(turn) / (Size / 32) * 8 + threadIdx.x % 32 / 4;
    else
      return threadIdx.x / kLanes + turn * kStep;
  }
  static __device__ int column(int turn) {
    if constexpr (V == 8)
      return group(turn) % (Size / 32) * 32 + threadIdx.x % 4 * 8;
    else
      return threadIdx.x % kLanes * V;
  }

private:
  /// Of 8 rows and 32 columns.
  static __device__ int group(int turn) {
    return turn * (kTileThreads / 32) + threadIdx.x / 32;
  }
};

/// A square of `Size` x `Size` elements, as it is read: lines along memory.
template <class T, int Size> struct Tile {
  // The gap between lines makes reading across them free of bank conflicts, or
  // nearly.
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
    using Part = typename Word<(kSwizzled<V> ? 16
                                : kBytes < 4    ? kBytes
                                                : 4)>::Type;
    constexpr int kAll = kTurns * kPieces, kAtOnce = kAll < 8 ? kAll : 8;
    // Some are under way at a time.
#pragma unroll 1
    for (int begin = 0; begin < kAll; begin += kAtOnce) {
      Vector<T, V> pieces[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int line = first + (begin + i) / kPieces * kStep,
                  place = (lane + (begin + i) % kPieces * kLanes) * V;
        if (line < numLines && place < length)
          load(pieces[i], address(line, place));
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int line = first + (begin + i) / kPieces * kStep,
                  place = (lane + (begin + i) % kPieces * kLanes) * V;
        if (line < numLines && place < length)
#pragma unroll
          for (int part = 0; part < int(kBytes / sizeof(Part)); ++part)
            reinterpret_cast<Part *>(at<V>(line, place))[part] =
                reinterpret_cast<const Part *>(pieces[i].lane)[part];
      }
    }
  }

  /// What lies across lines `column` and after it, at place `row`: a chunk of
  /// `Square`. All threads of a warp call it together.
  template <int V> __device__ Vector<T, V> across(int row, int column) {
    Vector<T, V> result;
#ifndef TESSERA_EMULATION
    if constexpr (kSwizzled<V>) {
      // Four matrices of 8 x 8, of which lane i gives row i % 8 of matrix i / 8
      // and gets, of each, elements 2 * (i % 4) and the next of column i / 4:
      // with these rows, 8 neighbours.
      const int i = threadIdx.x % 8, matrix = threadIdx.x % 32 / 8;
      const int line = column / 32 * 32 + i / 2 * 8 + matrix * 2 + i % 2;
      uint4 words;
      __syncwarp();
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                   "{%0, %1, %2, %3}, [%4];"
                   : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                   : "r"(uint32(__cvta_generic_to_shared(
                       at<V>(line, row / 8 * 8))))
                   : "memory");
      *reinterpret_cast<uint4 *>(result.lane) = words;
    } else
#endif
    {
#pragma unroll
      for (int v = 0; v < V; ++v)
        result.lane[v] = *at<V>(column + v, row);
    }
    return result;
  }

private:
  /// Elements of 16 bits go across lines by `ldmatrix`: their lines are pieces
  /// of 16 bytes without a gap, in an order that is free of bank conflicts.
  template <int V>
  static constexpr bool kSwizzled = sizeof(T) == 2 && V == 8;
  template <int V> __device__ T *at(int line, int place) {
    if constexpr (kSwizzled<V>) {
      const int piece = place / 8 ^ ((line / 8 * 2 + line % 2) & 7);
      return &lines[0][0] + line * Size + piece * 8 + place % 8;
    } else {
      return &lines[line][place];
    }
  }
};

} // namespace tessera
