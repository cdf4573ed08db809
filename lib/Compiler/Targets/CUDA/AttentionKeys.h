//===- AttentionKeys.h - which keys a mask keeps --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bounds of the keys that a mask_mod keeps for a query, so that kernels leave
// out blocks of keys: of causal attention, of windows, of prefixes whose length
// may be loaded, of blocks; and of these where devices have positions in turn.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CUDA_ATTENTIONKEYS_H
#define TESSERA_COMPILER_TARGETS_CUDA_ATTENTIONKEYS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera::cuda {

/// The first key that may be kept, or the one behind the last: as many as there
/// are keys whose number is below constant + sum of factor * value + sum of
/// factor * (of / by), which never falls as queries rise. A value beyond kFar
/// counts as kFar, one below -kFar as -kFar; then no sum wraps.
struct KeyBound {
  static constexpr int64_t kFar = int64_t(1) << 60;
  bool isEnd = false;
  int64_t constant = 0;
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> values; ///< of no query
  /// What depends on the query, or is it, and is not negative.
  struct Quotient {
    mlir::Value of;
    int64_t by, factor;
  };
  llvm::SmallVector<Quotient> ofQuery;
  /// Which number a key has, as keys_below of attention_mods.cuh takes that.
  llvm::SmallVector<int64_t> numbers;

  /// Whether that is the key.
  bool isPlain() const { return numbers.size() == 1 && numbers[0] == 1; }
  /// Whether it says something about key - query alone.
  bool isOfDistance() const;
};

/// Whether a value of a bound may be beyond kFar, or below -kFar.
bool mayBeFar(mlir::Value value);

/// The comparisons of a mask_mod that say bounds, each of which must hold.
llvm::SmallVector<mlir::arith::CmpIOp> getBoundingOps(mlir::Block &mask);

/// What one of them says: one bound, or with `eq` two.
llvm::SmallVector<KeyBound> getKeyBounds(mlir::arith::CmpIOp op);

/// Whether the bounds that a kernel takes are all that the mask says, and no
/// window of fewer than `least` keys, inside of which no block lies.
bool keepsRange(mlir::Block &mask, int64_t least);

/// Whether weights' numbers, by a number_mod, are such that those of `size`
/// keys from a multiple of that on follow each other from one on.
bool areInGroups(mlir::Block &number, int64_t size);

} // namespace tessera::cuda

#endif // TESSERA_COMPILER_TARGETS_CUDA_ATTENTIONKEYS_H
