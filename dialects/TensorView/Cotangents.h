//===- Cotangents.h - gradients of values, op by op -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reverse mode over a block of ops. The cotangent of a value is the gradient of
// what is differentiated by it: a tensor of the value's shape and element type,
// global and without a view, so that propagation decides how it lies.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_COTANGENTS_H
#define TESSERA_TENSORVIEW_COTANGENTS_H

#include "TensorView/TensorView.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tessera::tv {

class Cotangents {
public:
  /// Says that a gradient by `value` is asked for.
  void ask(mlir::Value value) { needed.insert(value); }
  /// Marks the results of `op` that depend on what is asked for, which was said
  /// of its operands before.
  void visit(mlir::Operation *op);
  /// Whether a gradient that is asked for depends on `value`.
  bool isNeeded(mlir::Value value) const { return needed.contains(value); }

  /// Adds to the cotangent of `to`, or to that of a box of it. Nothing, if it
  /// is not needed.
  void add(mlir::Value to, mlir::Value cotangent);
  void addBox(mlir::Value to, llvm::ArrayRef<int64_t> offsets,
              mlir::Value cotangent);
  bool isAdded(mlir::Value to) const { return addends.contains(to); }
  /// What was added, as one value; null if nothing was.
  mlir::Value take(mlir::ImplicitLocOpBuilder &builder, mlir::Value of);

  /// Adds the cotangents of an op's operands from those of its results: by the
  /// op's own rule, by its scalar function or by its decomposition. Builds at
  /// the end of `block`. An error if it has none of these.
  llvm::LogicalResult reverse(mlir::Operation *op, mlir::Block &block);

private:
  struct Addend {
    mlir::Value value;
    std::optional<llvm::SmallVector<int64_t>> offsets; ///< of a box
  };
  llvm::LogicalResult refuse(mlir::Operation *op);

  llvm::DenseSet<mlir::Value> needed;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Addend, 2>> addends;
  /// The first op whose reversal gave each value a cotangent; null for results
  /// of the function.
  llvm::DenseMap<mlir::Value, mlir::Operation *> origin;
  mlir::Operation *reversed = nullptr;
};

/// `number` in every element of a tensor of floats, whose dynamic extents are
/// those of `like`.
mlir::Value buildSplat(mlir::ImplicitLocOpBuilder &builder, double number,
                       mlir::RankedTensorType type, mlir::Value like = {});

/// The rule of an op that is a scalar function, or several, of its operands'
/// elements, `body`: a map of the primals and the cotangents.
llvm::LogicalResult addScalarCotangents(mlir::ImplicitLocOpBuilder &builder,
                                        mlir::Operation *op, mlir::Block &body,
                                        Cotangents &cotangents);

} // namespace tessera::tv

#endif // TESSERA_TENSORVIEW_COTANGENTS_H
