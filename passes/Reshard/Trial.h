//===- Trial.h - changes that are kept if they pay --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function has one price: what its ops and moves take (Place/OpPrice.h), and
// a picosecond for each reshard, so that of equal times fewer reshards are
// less. Changes are made, the ops that they reach are priced once more, and if
// that is no less the changes are undone. As each that is kept lowers the
// price, an integer, rewrites come to an end.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RESHARD_TRIAL_H
#define TESSERA_RESHARD_TRIAL_H

#include "Place/OpPrice.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/FunctionExtras.h"
#include "llvm/ADT/SetVector.h"

#include <memory>

namespace tessera::tv {

/// A reshard of one value, not planned yet; null for other ops.
ReshardOp asMove(mlir::Operation *op);

/// Whether `op` may as well come after a move of its one operand.
bool isPassed(mlir::Operation *op);

/// The prices of the ops of a function, and changes of it on trial.
class Trial {
public:
  explicit Trial(Moves &moves) : moves(moves) {}

  void setOperand(mlir::OpOperand &use, mlir::Value value);
  void setType(mlir::Value value, mlir::Type type);
  /// Where `value` is used, but for `except`, `by` is.
  void replace(mlir::Value value, mlir::Value by,
               mlir::Operation *except = nullptr);
  /// `value` as a `type` that a reshard before `before` gives it: one that
  /// there is, or a new one.
  mlir::Value moveTo(mlir::Operation *before, mlir::Location loc,
                     mlir::Value value, mlir::Type type);
  /// The result, a `type`, of a copy of `op` before `before`, of `operand`.
  mlir::Value copy(mlir::Operation *op, mlir::Operation *before,
                   mlir::Value operand, mlir::Type type);

  /// The prices of the ops that the changes reach.
  struct Outcome {
    layout::Price before, after;
  };
  /// Takes the operands of reshards without use, and of what only they read.
  void takeOutUnused();
  /// Ends the trial: its changes are kept if they lower the price. Then what
  /// was taken out is in no block any more.
  std::optional<Outcome> keepIfLess();
  /// Those are no ops from now on.
  void eraseDead();

private:
  struct Paid {
    layout::Price price;
    int64_t femtoseconds = 0;
  };
  std::optional<Paid> pay(mlir::Operation *op);
  void reach(mlir::Operation *op);
  void reachUser(mlir::Operation *op);
  void reachMaker(mlir::Value value);
  std::optional<Outcome> evaluate();

  Moves &moves;
  llvm::DenseMap<mlir::Operation *, std::optional<Paid>> known;
  std::vector<mlir::Operation *> dead;

  // Of this trial.
  llvm::SetVector<mlir::Operation *> reached, released;
  llvm::DenseSet<mlir::Operation *> made, takenOut;
  std::vector<llvm::unique_function<void()>> undos;
};

} // namespace tessera::tv

#endif // TESSERA_RESHARD_TRIAL_H
