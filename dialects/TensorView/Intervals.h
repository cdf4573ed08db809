//===- Intervals.h - what a mask says of a block of pairs -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Interval arithmetic, in the program, on a mask_mod: where its queries and its
// keys are from a least to a most one, each of its integers is between two
// others, and its conditions hold for all pairs, for none, or for some perhaps.
// What depends on queries alone (or keys) through a load or another op without
// a rule has as its bounds its least and largest value of all of the block's,
// which the program reduces before.
//
// It is sound: bounds that do not fit their type are those of the type.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_INTERVALS_H
#define TESSERA_TENSORVIEW_INTERVALS_H

#include "mlir/IR/Block.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <optional>

namespace tessera::tv {

/// An integer between two others, both i32 or both i64. What can be said before
/// the program runs, too.
struct Interval {
  mlir::Value low, high;
  int64_t least, most;
};

/// Whether a condition holds for no pair, or for all; null: it is not known to.
struct Verdict {
  mlir::Value never, always;
};

class Intervals {
public:
  /// The arguments of a mask_mod.
  enum Argument : unsigned { kBatch, kHead, kQuery, kKey };

  /// Of a mask_mod's body.
  explicit Intervals(mlir::Block &body);

  /// What the program is to reduce: a value of the body, over the queries or
  /// the keys of each block.
  struct Reduced {
    mlir::Value value;
    Argument over;
    bool hasBatch, hasHead; ///< whether it depends on these
  };
  llvm::ArrayRef<Reduced> getReduced() const { return reduced; }

  /// Builds the value at these arguments, which are mapped to indices, as an
  /// integer of at least 32 bits.
  static mlir::Value build(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                           mlir::IRMapping &arguments);

  /// Builds what the body yields for a block: of a batch and a head, which are
  /// mapped to indices, for arguments in intervals and the bounds of what is
  /// reduced.
  Verdict build(mlir::ImplicitLocOpBuilder &b, mlir::IRMapping &arguments,
                llvm::ArrayRef<Interval> intervals,
                llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> bounds);

private:
  void find(mlir::Value value);
  unsigned dependences(mlir::Value value);
  bool isBounded(mlir::Value value);
  bool isReduced(mlir::Value value);

  mlir::Block &body;
  llvm::SmallVector<Reduced> reduced;
  llvm::DenseMap<mlir::Value, unsigned> known; ///< dependences
};

} // namespace tessera::tv

#endif // TESSERA_TENSORVIEW_INTERVALS_H
