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
// may be loaded.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CUDA_ATTENTIONKEYS_H
#define TESSERA_COMPILER_TARGETS_CUDA_ATTENTIONKEYS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera::cuda {

/// ofQuery * q + constant + sum of factor * value, ofQuery not negative: the
/// first key that may be kept, or the one behind the last. A value beyond kFar
/// counts as kFar, one below -kFar as -kFar; then no sum wraps.
struct KeyBound {
  static constexpr int64_t kFar = int64_t(1) << 60;
  bool isEnd = false;
  int64_t ofQuery = 0, constant = 0;
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> values;
};

/// Whether a value of a bound may be beyond kFar, or below -kFar.
bool mayBeFar(mlir::Value value);

/// The comparisons of a mask_mod that say bounds, each of which must hold.
llvm::SmallVector<mlir::arith::CmpIOp> getBoundingOps(mlir::Block &mask);

/// What one of them says: one bound, or with `eq` two.
llvm::SmallVector<KeyBound> getKeyBounds(mlir::arith::CmpIOp op);

} // namespace tessera::cuda

#endif // TESSERA_COMPILER_TARGETS_CUDA_ATTENTIONKEYS_H
