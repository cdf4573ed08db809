//===- Contract.cpp - products of tensors on the CPU ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Labels that are adjacent in memory in every operand are merged; of what is
// left, one row, one column and one contracted label make the matrix product,
// chosen for size and for strides that BLAS takes as they are; the others are
// loops around it. Where strides or types do not suit BLAS, tiles are converted
// into scratch, multiplied there and stored from there.
//
// OpenBLAS is linked in as a private copy built without threads. So no thread
// count of the process is touched, ranks that are threads of one process do not
// share a pool, and a product is the same bits in every run. Such a build hands
// out its packing buffers without a lock: the linker puts one around that
// (--wrap), and products of several threads run side by side.
//
//===----------------------------------------------------------------------===//

#include "Backends/CPU/Contract.h"
#include "Support/Half.h"

#include <algorithm>
#include <array>
#include <cblas.h>
#include <climits>
#include <mutex>

using namespace tessera;

static std::mutex buffers;

extern "C" {
void *__real_blas_memory_alloc(int position);
void __real_blas_memory_free(void *buffer);

void *__wrap_blas_memory_alloc(int position) {
  std::lock_guard lock(buffers);
  return __real_blas_memory_alloc(position);
}
void __wrap_blas_memory_free(void *buffer) {
  std::lock_guard lock(buffers);
  __real_blas_memory_free(buffer);
}
}

namespace {

constexpr int A = Contraction::A, B = Contraction::B, C = Contraction::C;

constexpr int64_t kTileM = 256, kTileN = 512, kTileK = 512;
constexpr int64_t kMaxLoops = 48;

void gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int64_t m, int64_t n,
          int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb,
          float beta, float *c, int64_t ldc) {
  cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
}
void gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int64_t m, int64_t n,
          int64_t k, const double *a, int64_t lda, const double *b, int64_t ldb,
          double beta, double *c, int64_t ldc) {
  cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
}

/// A matrix with a unit stride, as BLAS wants it.
struct Layout {
  bool transposed;
  int64_t leading;
};

/// Nothing where BLAS cannot take it.
std::optional<Layout> layoutOf(int64_t rows, int64_t cols, int64_t rowStride,
                               int64_t colStride) {
  if ((cols == 1 || colStride == 1) && (rows == 1 || rowStride >= cols)) {
    int64_t leading = rows == 1 ? cols : rowStride;
    if (std::max({rows, cols, leading}) <= INT_MAX)
      return Layout{false, std::max<int64_t>(leading, 1)};
  }
  if ((rows == 1 || rowStride == 1) && (cols == 1 || colStride >= rows)) {
    int64_t leading = cols == 1 ? rows : colStride;
    if (std::max({rows, cols, leading}) <= INT_MAX)
      return Layout{true, std::max<int64_t>(leading, 1)};
  }
  return std::nullopt;
}

/// Calls `body` with the three element offsets of every point of a loop nest,
/// the first loop outermost.
template <typename Loops, typename Body>
void forEach(const Loops &loops, std::array<int64_t, 3> offsets, Body body) {
  std::array<int64_t, kMaxLoops> index{};
  for (const auto &loop : loops)
    if (loop.size == 0)
      return;
  while (true) {
    body(offsets);
    int d = static_cast<int>(loops.size()) - 1;
    for (; d >= 0; --d) {
      bool wraps = ++index[d] == loops[d].size;
      for (int t = 0; t < 3; ++t)
        offsets[t] += loops[d].stride[t] * (wraps ? 1 - loops[d].size : 1);
      if (!wraps)
        break;
      index[d] = 0;
    }
    if (d < 0)
      return;
  }
}

template <typename From, typename To>
void convertTile(const std::byte *from, int64_t rows, int64_t cols,
                 int64_t rowStride, int64_t colStride, To *to) {
  const From *source = reinterpret_cast<const From *>(from);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      to[r * cols + c] = static_cast<To>(source[r * rowStride + c * colStride]);
}

template <typename To, typename From>
void storeTile(const From *from, int64_t rows, int64_t cols, int64_t rowStride,
               int64_t colStride, std::byte *to) {
  To *target = reinterpret_cast<To *>(to);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      target[r * rowStride + c * colStride] =
          static_cast<To>(from[r * cols + c]);
}

template <typename T>
void loadTile(DType dtype, const std::byte *from, int64_t rows, int64_t cols,
              int64_t rowStride, int64_t colStride, T *to) {
  if constexpr (sizeof(T) == 8)
    convertTile<double>(from, rows, cols, rowStride, colStride, to);
  else if (dtype == DType::F32)
    convertTile<float>(from, rows, cols, rowStride, colStride, to);
  else if (dtype == DType::BF16)
    convertTile<BF16>(from, rows, cols, rowStride, colStride, to);
  else
    convertTile<F16>(from, rows, cols, rowStride, colStride, to);
}

template <typename T>
void storeTileAs(DType dtype, const T *from, int64_t rows, int64_t cols,
                 int64_t rowStride, int64_t colStride, std::byte *to) {
  if constexpr (sizeof(T) == 8)
    storeTile<double>(from, rows, cols, rowStride, colStride, to);
  else if (dtype == DType::F32)
    storeTile<float>(from, rows, cols, rowStride, colStride, to);
  else if (dtype == DType::BF16)
    storeTile<BF16>(from, rows, cols, rowStride, colStride, to);
  else
    storeTile<F16>(from, rows, cols, rowStride, colStride, to);
}

} // namespace

bool Contract::isDirect(const Loop &m, const Loop &n, const Loop &k) const {
  return dtypes[A] == dtypes[B] && dtypes[A] == dtypes[C] &&
         (dtypes[A] == DType::F32 || dtypes[A] == DType::F64) &&
         layoutOf(m.size, k.size, m.stride[A], k.stride[A]) &&
         layoutOf(k.size, n.size, k.stride[B], n.stride[B]) &&
         layoutOf(m.size, n.size, m.stride[C], n.stride[C]);
}

Result<Contract> Contract::create(const Operand &a, const Operand &b,
                                  const Operand &c) {
  Contract contract;
  Result<Contraction> loops = Contraction::create(a, b, c);
  if (!loops)
    return loops.error();
  std::copy(std::begin(loops->dtypes), std::end(loops->dtypes),
            contract.dtypes);
  contract.empty = loops->empty;
  if (contract.empty)
    return contract;
  // Nothing to sum: one sum of no terms, whatever the other contracted labels.
  if (loops->sumsNothing) {
    loops->sums.assign(1, Loop{});
    loops->sums[0].size = 0;
  }
  std::vector<Loop> batches = Contraction::collapse(loops->batches);
  std::vector<Loop> rows = Contraction::collapse(loops->rows);
  std::vector<Loop> columns = Contraction::collapse(loops->columns);
  std::vector<Loop> sums = Contraction::collapse(loops->sums);

  // One of each, or a loop of one step where there is none.
  auto orOne = [](std::vector<Loop> loops) {
    if (loops.empty())
      loops.push_back(Loop{});
    return loops;
  };
  rows = orOne(rows);
  columns = orOne(columns);
  sums = orOne(sums);
  size_t best[3] = {0, 0, 0};
  double bestScore = -1;
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t j = 0; j < columns.size(); ++j)
      for (size_t l = 0; l < sums.size(); ++l) {
        bool direct = contract.isDirect(rows[i], columns[j], sums[l]);
        double score = (direct ? 2.0 : 1.0) * rows[i].size * columns[j].size *
                       std::max<int64_t>(sums[l].size, 1);
        if (score > bestScore) {
          bestScore = score;
          best[0] = i, best[1] = j, best[2] = l;
        }
      }
  auto take = [](std::vector<Loop> &loops, size_t i) {
    Loop loop = loops[i];
    loops.erase(loops.begin() + i);
    return loop;
  };
  contract.m = take(rows, best[0]);
  contract.n = take(columns, best[1]);
  contract.k = take(sums, best[2]);
  contract.direct = contract.isDirect(contract.m, contract.n, contract.k);
  contract.outer = std::move(batches);
  contract.outer.insert(contract.outer.end(), rows.begin(), rows.end());
  contract.outer.insert(contract.outer.end(), columns.begin(), columns.end());
  contract.outerSums = std::move(sums);
  if (contract.outer.size() + contract.outerSums.size() > kMaxLoops)
    return Error{"a product over too many dimensions"};
  return contract;
}

int64_t Contract::scratchBytes() const {
  if (empty || direct)
    return 0;
  int64_t tm = std::min(m.size, kTileM), tn = std::min(n.size, kTileN),
          tk = std::min(k.size, kTileK);
  return (tm * tk + tk * tn + tm * tn) * (dtypes[C] == DType::F64 ? 8 : 4);
}

void Contract::run(const std::byte *a, const std::byte *b, std::byte *c,
                   std::byte *scratch, bool adds) const {
  if (empty)
    return;
  bool wide = dtypes[C] == DType::F64;
  if (direct)
    wide ? runDirect<double>(a, b, c, adds) : runDirect<float>(a, b, c, adds);
  else
    wide ? runTiled<double>(a, b, c, scratch, adds)
         : runTiled<float>(a, b, c, scratch, adds);
}

template <typename T>
void Contract::runDirect(const std::byte *aBytes, const std::byte *bBytes,
                         std::byte *cBytes, bool adds) const {
  const T *a = reinterpret_cast<const T *>(aBytes);
  const T *b = reinterpret_cast<const T *>(bBytes);
  T *c = reinterpret_cast<T *>(cBytes);
  const Layout la = *layoutOf(m.size, k.size, m.stride[A], k.stride[A]);
  const Layout lb = *layoutOf(k.size, n.size, k.stride[B], n.stride[B]);
  const Layout lc = *layoutOf(m.size, n.size, m.stride[C], n.stride[C]);
  auto op = [](bool transposed) {
    return transposed ? CblasTrans : CblasNoTrans;
  };
  forEach(outer, {0, 0, 0}, [&](std::array<int64_t, 3> outside) {
    T beta = adds;
    forEach(outerSums, outside, [&](std::array<int64_t, 3> at) {
      // Row-major C, or its transpose as the product of the transposes.
      if (!lc.transposed)
        gemm(op(la.transposed), op(lb.transposed), m.size, n.size, k.size,
             a + at[A], la.leading, b + at[B], lb.leading, beta, c + at[C],
             lc.leading);
      else
        gemm(op(!lb.transposed), op(!la.transposed), n.size, m.size, k.size,
             b + at[B], lb.leading, a + at[A], la.leading, beta, c + at[C],
             lc.leading);
      beta = 1;
    });
  });
}

template <typename T>
void Contract::runTiled(const std::byte *a, const std::byte *b, std::byte *c,
                        std::byte *scratch, bool adds) const {
  const int64_t bytes[3] = {info(dtypes[A]).bytes, info(dtypes[B]).bytes,
                            info(dtypes[C]).bytes};
  T *tileA = reinterpret_cast<T *>(scratch);
  T *tileB = tileA + std::min(m.size, kTileM) * std::min(k.size, kTileK);
  T *tileC = tileB + std::min(k.size, kTileK) * std::min(n.size, kTileN);
  forEach(outer, {0, 0, 0}, [&](std::array<int64_t, 3> outside) {
    for (int64_t m0 = 0; m0 < m.size; m0 += kTileM)
      for (int64_t n0 = 0; n0 < n.size; n0 += kTileN) {
        const int64_t tm = std::min(kTileM, m.size - m0);
        const int64_t tn = std::min(kTileN, n.size - n0);
        std::byte *to =
            c + (outside[C] + m0 * m.stride[C] + n0 * n.stride[C]) * bytes[C];
        if (adds)
          loadTile(dtypes[C], to, tm, tn, m.stride[C], n.stride[C], tileC);
        else
          std::fill(tileC, tileC + tm * tn, T(0));
        forEach(outerSums, outside, [&](std::array<int64_t, 3> at) {
          for (int64_t k0 = 0; k0 < k.size; k0 += kTileK) {
            const int64_t tk = std::min(kTileK, k.size - k0);
            loadTile(dtypes[A],
                     a + (at[A] + m0 * m.stride[A] + k0 * k.stride[A]) *
                             bytes[A],
                     tm, tk, m.stride[A], k.stride[A], tileA);
            loadTile(dtypes[B],
                     b + (at[B] + k0 * k.stride[B] + n0 * n.stride[B]) *
                             bytes[B],
                     tk, tn, k.stride[B], n.stride[B], tileB);
            gemm(CblasNoTrans, CblasNoTrans, tm, tn, tk, tileA, tk, tileB, tn,
                 T(1), tileC, tn);
          }
        });
        storeTileAs(dtypes[C], tileC, tm, tn, m.stride[C], n.stride[C], to);
      }
  });
}
