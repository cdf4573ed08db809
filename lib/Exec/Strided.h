//===- Strided.h - copies between strided boxes ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_EXEC_STRIDED_H
#define TESSERA_EXEC_STRIDED_H

#include "Module/Module.h"

#include <algorithm>
#include <span>

namespace tessera {

/// A loop nest over equally shaped source and target, made once and run often.
/// Adjacent dimensions that both sides allow are merged, and what is contiguous
/// in both is moved with memcpy.
class CopyLoop {
public:
  CopyLoop() = default;
  /// Strides are in elements; at most kMaxRank sizes.
  CopyLoop(int64_t elementBytes, const layout::Shape &sizes,
           const layout::Shape &targetStrides,
           const layout::Shape &sourceStrides);
  /// From a box of sizes `from` to one of sizes `to`, the same elements in
  /// row-major order. Nothing if dimensions of one end inside those of the
  /// other (2 x 3 and 3 x 2), or it takes more than kMaxRank loops.
  static std::optional<CopyLoop> between(int64_t elementBytes,
                                         const layout::Shape &to,
                                         const layout::Shape &targetStrides,
                                         const layout::Shape &from,
                                         const layout::Shape &sourceStrides);

  /// Makes it `count` such loops, each so many bytes further on. False, and
  /// nothing changes, when that is one loop too many.
  bool repeat(int64_t count, int64_t targetStep, int64_t sourceStep);

  void run(std::byte *target, const std::byte *source) const;
  int64_t bytes() const { return total; }
  /// Whether it is one run of bytes on both sides.
  bool isDense() const { return rank == 0; }

  struct Dim {
    int64_t size, target, source; ///< strides in bytes
    bool operator==(const Dim &) const = default;
  };
  /// What it comes to, for those that run it otherwise: `unitBytes` contiguous
  /// bytes at each point of these loops, by falling strides of the target.
  std::span<const Dim> loops() const {
    return {dims.data(), static_cast<size_t>(rank)};
  }
  int64_t unitBytes() const { return unit; }
  bool operator==(const CopyLoop &other) const {
    return unit == other.unit && std::ranges::equal(loops(), other.loops());
  }

private:
  void normalize();

  std::array<Dim, kMaxRank> dims;
  int rank = 0;
  int64_t unit = 0; // bytes moved at once
  int64_t total = 0;
};

int64_t product(const layout::Shape &sizes);
/// Strides of a dense tensor, the first dimension outermost.
layout::Shape rowMajor(const layout::Shape &sizes);
/// Whether elements in row-major order lie one after the other in memory.
bool isDense(const layout::Shape &sizes, const layout::Shape &strides);

/// The strides under which a tensor of `from` and `strides` is one of `to` with
/// the same row-major order of elements, if there are any.
std::optional<layout::Shape> reshapeStrides(const layout::Shape &from,
                                            const layout::Shape &strides,
                                            const layout::Shape &to);

} // namespace tessera

#endif // TESSERA_EXEC_STRIDED_H
