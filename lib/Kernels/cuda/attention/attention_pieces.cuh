//===- attention_pieces.cuh - tiles that several blocks share -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// There may be fewer tiles than multiprocessors, and sequences of any lengths,
// so pipes, one or more of a block, do not share tiles but steps: of all that
// there are, blocks of keys in the order of tiles, each takes an equal part. A
// tile that lies in several parts is joined by the pipe that is the last to
// have its piece (maxima, sums and unnormalised results in f32), in the order
// of the pieces: the bits do not depend on who that is. As each block knows how
// many steps every tile has, nothing is prepared for a launch.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_PIECES_CUH
#define TESSERA_KERNELS_ATTENTION_PIECES_CUH

#include "base/ptx.cuh"

namespace tessera {

/// Blocks [begin, end) of a tile's keys, and the pipes that have the tile's
/// first and last piece.
struct TilePiece {
  int tile; // negative: no more
  int begin, end, first, last;

  TSR_MEMBER bool is_whole() const { return first == last; }
};

/// Of all tiles' steps, what each of a block's pipes takes.
template <int Threads, int Pipes> struct StepShare {
  static constexpr int Least = 4;
  /// In shared memory. (The sums are read 16 bytes at a time.)
  struct Starts {
    alignas(16) int warps[Threads / 32]; // sums of steps
    alignas(16) int tile[Pipes];         // of the first step
    int offset[Pipes];
  };
  Starts &starts;
  int steps = 0, pipes; // of all tiles; that have some

  TSR_MEMBER int start(int pipe) const {
    return pipe < pipes ? (int)((int64)steps * pipe / pipes) : steps;
  }
  /// The pipe that has a step.
  TSR_MEMBER int owner(int step) const {
    return (int)((((int64)step + 1) * pipes - 1) / steps);
  }

  /// By all threads of a block. `of_tile(i)`: a tile's steps, at least one.
  /// There are at most `most` pipes: as many as tiles, or more, of at least
  /// Least steps, and fewer where the pieces of tiles, of so many rows, would
  /// take longer than they save: of n it is some rows / 64 * 2 sqrt(n) steps.
  template <class F>
  TSR_MEMBER StepShare(Starts &starts, int tiles, int most, int rows, F of_tile)
      : starts(starts) {
    const int each = (tiles + Threads - 1) / Threads;
    const int first = min((int)threadIdx.x * each, tiles);
    const int last = min(first + each, tiles);
    int own = 0;
    for (int tile = first; tile < last; tile++)
      own += of_tile(tile);
    // Of this and all threads before.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int before = own;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_up_sync(~0u, before, distance);
      before += lane >= distance ? other : 0;
    }
    if (lane == 31)
      starts.warps[warp] = before;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < Threads / 32; w++) {
      before += w < warp ? starts.warps[w] : 0;
      steps += starts.warps[w];
    }
    before -= own;
    const float work = steps * sqrtf(tiles) * 64 / rows;
    const float best = exp2_fast(log2_fast(work) * 2 / 3);
    most = min((int)gridDim.x * Pipes, most);
    pipes = max(min(most, max(min((int)best, steps / Least), tiles)), 1);
    for (int pipe = 0; pipe < Pipes; pipe++) {
      int offset = start(blockIdx.x * Pipes + pipe) - before, tile = first;
      if (offset < 0 || offset >= own)
        continue;
      for (;; tile++) {
        const int steps_of_tile = of_tile(tile);
        if (offset < steps_of_tile)
          break;
        offset -= steps_of_tile;
      }
      starts.tile[pipe] = tile, starts.offset[pipe] = offset;
    }
    __syncthreads();
  }
};

/// The pieces of a pipe, one after the other.
template <class Share> struct PipePieces {
  Share const &share;
  int tile, offset, step, last;

  TSR_MEMBER PipePieces(Share const &share, int number, int of_block)
      : share(share), tile(share.starts.tile[of_block]),
        offset(share.starts.offset[of_block]), step(share.start(number)),
        last(share.start(number + 1)) {}
  TSR_MEMBER bool more() const { return step < last; }
  /// Of `tile`, whose keys have blocks [begin, end).
  TSR_MEMBER TilePiece next(int begin, int end) {
    const int steps = max(end - begin, 1), first = step - offset;
    const int taken = min(steps - offset, last - step);
    const TilePiece piece = {
        tile, begin + offset, min(begin + offset + taken, end),
        share.owner(first), share.owner(first + steps - 1)};
    tile++, offset = 0, step += taken;
    return piece;
  }
};

/// Of a piece: the results of Rows rows, then a row's maximum, in powers of 2,
/// and its sum. A multiple of 16 bytes.
template <int Rows, int DV>
constexpr int kPieceFloats = (Rows * (DV + 2) + 3) / 4 * 4;

/// Of a warp group's 64 rows, those that there are, by `has(row)`: the thread's
/// two are 8 apart.
template <int Rows, int DV, class H>
TSR_DEVICE void store_piece(float *to, float const (&o)[DV / 2],
                            float const (&top)[2], float const (&sum)[2],
                            H has) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const int row = threadIdx.x / 32 % 4 * 16 + lane / 4 + 8 * r;
    if (!has(row))
      continue;
#pragma unroll
    for (int i = 0; i < DV / 2; i += 2)
      if (i / 2 % 2 == r)
        *reinterpret_cast<float2 *>(to + row * DV + fragment_column(i) +
                                    lane % 4 * 2) = make_float2(o[i], o[i + 1]);
    if (lane % 4 == 0) {
      float *const end = to + Rows * DV + row * 2;
      end[0] = top[r], end[1] = sum[r];
    }
  }
}
/// Where the rows of a tile lie: `of_head` of each of its heads, of which the
/// first `left` are there. Strides are in elements.
struct TileRows {
  void *o;
  float *lse; // or null
  int64 o_head, o_row, lse_head, lse_row;
  int rows, of_head, left;

  TSR_MEMBER bool has(int row) const {
    return row < rows && row % of_head < left;
  }
};
/// Where the pieces of a tile lie, of [pipes, Stride, 2] all, this group's the
/// `at`-th of Stride: a pipe's first piece may be a tile's last, and its last
/// one a tile's first. Counters are [2, pipes, Stride, 2]: zero, and left zero.
struct TilePieces {
  float *pieces;
  int *counters;
  int slots, stride, at;

  TSR_MEMBER int slot(TilePiece const &tile, int pipe) const {
    return (pipe * stride + at) * 2 + (pipe == tile.first);
  }
};

/// By a warp group, `count` pieces of a tile, every `apart`-th from pipe
/// `first` on: a warp has a row of four, of which a lane has four columns, or
/// twice four, and several of them at once, as their loads take long. What they
/// are together becomes the first of them; or, `whole`, the tile's results.
template <class T, int Rows, int DV>
TSR_DEVICE void join_pieces(TilePiece const &tile, TilePieces const &all,
                            TileRows const &rows, int first, int apart,
                            int count, bool whole) {
  constexpr int Parts = (DV + 127) / 128, Of = (Rows + 3) / 4;
  constexpr int Batch = Of < 4 / Parts ? Of : 4 / Parts;
  const int column = threadIdx.x % 32 * 4;
  const float infinity = __int_as_float(0x7f800000);
  auto piece = [&](int n) {
    return all.pieces +
           (int64)all.slot(tile, first + n * apart) * kPieceFloats<Rows, DV>;
  };
  auto end_of = [](float *piece, int row) -> float2 & { // maximum and sum
    return *reinterpret_cast<float2 *>(piece + Rows * DV + row * 2);
  };
  for (int begin = threadIdx.x / 32 % 4; begin < Rows; begin += 4 * Batch) {
    auto row = [&](int i) { return min(begin + 4 * i, Rows - 1); };
    bool some = false;
    for (int i = 0; i < Batch; i++)
      some |= rows.has(row(i));
    if (!some)
      continue;
    float m[Batch], total[Batch] = {}, to[Batch][Parts][4] = {};
#pragma unroll
    for (int i = 0; i < Batch; i++)
      m[i] = -infinity;
#pragma unroll 4
    for (int n = 0; n < count; n++)
#pragma unroll
      for (int i = 0; i < Batch; i++)
        m[i] = fmaxf(m[i], end_of(piece(n), row(i)).x);
#pragma unroll(4 / Parts)
    for (int n = 0; n < count; n++) {
      float *const from = piece(n);
#pragma unroll
      for (int i = 0; i < Batch; i++) {
        const float2 end = end_of(from, row(i));
        const float f = m[i] == -infinity ? 0 : exp2_fast(end.x - m[i]);
        total[i] += f * end.y;
#pragma unroll
        for (int part = 0; part < Parts; part++)
          if (part * 128 + column < DV) {
            const float4 add = *reinterpret_cast<float4 const *>(
                from + row(i) * DV + part * 128 + column);
            to[i][part][0] += f * add.x, to[i][part][1] += f * add.y;
            to[i][part][2] += f * add.z, to[i][part][3] += f * add.w;
          }
      }
    }
#pragma unroll
    for (int i = 0; i < Batch; i++) {
      const int own = begin + 4 * i;
      if (own >= Rows || !rows.has(own))
        continue;
      const int head = own / rows.of_head, query = own % rows.of_head;
      T *const result =
          static_cast<T *>(rows.o) + head * rows.o_head + query * rows.o_row;
      const float f = total[i] == 0 ? 0 : 1 / total[i];
#pragma unroll
      for (int part = 0; part < Parts; part++)
        if (part * 128 + column < DV) {
          const int at = part * 128 + column;
          float const(&x)[4] = to[i][part];
          if (whole)
            *reinterpret_cast<uint2 *>(result + at) = make_uint2(
                pack<T>(x[0] * f, x[1] * f), pack<T>(x[2] * f, x[3] * f));
          else
            *reinterpret_cast<float4 *>(piece(0) + own * DV + at) =
                make_float4(x[0], x[1], x[2], x[3]);
        }
      __syncwarp(); // all have read the first piece's
      if (column == 0 && !whole)
        end_of(piece(0), own) = make_float2(m[i], total[i]);
      if (column == 0 && whole && rows.lse)
        rows.lse[head * rows.lse_head + query * rows.lse_row] =
            total[i] == 0 ? -infinity
                          : (m[i] + log2_fast(total[i])) * 0.69314718f;
    }
  }
}

/// By a warp group, whose barrier is `barrier`, behind its piece of `count`:
/// whether it is the last of them to arrive. The counter is zero, and left
/// zero; `told` lies in shared memory.
TSR_DEVICE bool is_last_piece(int *counter, int count, int &told, int barrier) {
  const bool first = threadIdx.x % 128 == 0;
  fence_release();
  named_sync(barrier, 128);
  if (first) {
    told = atomicAdd(counter, 1);
    fence_acquire();
  }
  named_sync(barrier, 128);
  if (told != count - 1)
    return false;
  if (first)
    *counter = 0;
  return true;
}
/// By a warp group behind its piece, pipe `own`'s: the last of a tile to be
/// there joins all. Many are joined in groups first, by the last of each. Not
/// in line: it would take registers from the products.
template <class T, int Rows, int DV>
static __device__ __noinline__ void join_tile(TilePiece tile, int own,
                                              TilePieces all, TileRows rows,
                                              int &told, int barrier) {
  constexpr int AtOnce = 8;
  const int pieces = tile.last - tile.first + 1;
  const int each = pieces <= AtOnce ? pieces : (int)ceilf(sqrtf(pieces));
  int first = tile.first + (own - tile.first) / each * each, apart = 1;
  int count = min(each, tile.last + 1 - first);
  for (;;) {
    const bool whole = apart > 1 || each == pieces;
    if (!is_last_piece(all.counters + all.slot(tile, first), count, told,
                       barrier))
      return;
    join_pieces<T, Rows, DV>(tile, all, rows, first, apart, count, whole);
    if (whole)
      return;
    first = tile.first, apart = each, count = (pieces + each - 1) / each;
    all.counters += all.slots;
  }
}

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_PIECES_CUH
