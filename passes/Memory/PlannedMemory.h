//===- PlannedMemory.h - the temporaries of a plan --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_MEMORY_PLANNEDMEMORY_H
#define TESSERA_MEMORY_PLANNEDMEMORY_H

#include "Layout/View.h"
#include "Plan/InPlace.h"

#include <map>

namespace tessera {

/// Memory of a device between two steps: a result, and all windows on it.
struct Buffer {
  mlir::Value value;
  int64_t bytes;    ///< of the device that has most of it, aligned
  bool isSymmetric; ///< in the arena that collectives use, or the local one
  size_t first;     ///< the step that writes it
  llvm::SmallVector<size_t, 4> reads{}; ///< steps, in order

  size_t last() const { return reads.empty() ? first : reads.back(); }
  /// The first step after `step` that reads it; nothing if there is none.
  std::optional<size_t> nextRead(size_t step) const;
};

/// The steps of a planned `@main`, and the memory between them that a binding
/// of its module takes: of dynamic sizes the largest, of variants the
/// preferred. What steps take while they run is not in it.
class PlannedMemory {
public:
  /// An error at what is no op of a plan.
  static mlir::FailureOr<PlannedMemory> get(mlir::func::FuncOp main);
  /// After steps have come or gone.
  mlir::LogicalResult update();

  /// The last is the program's end.
  llvm::ArrayRef<mlir::Operation *> getSteps() const { return steps; }
  llvm::ArrayRef<Buffer> getBuffers() const { return buffers; }
  /// Null: the caller's memory, or a constant.
  const Buffer *find(mlir::Value value) const;
  /// The variant that a step belongs to, or none.
  plan::Variant getVariant(mlir::Operation *step) const {
    return variants.lookup(step);
  }
  const plan::InPlace &getInPlace() const { return inPlace; }

  /// The largest local shape, dynamic sizes at their maximum, and its elements.
  layout::Shape getShape(mlir::Value value) const;
  int64_t getElements(mlir::Value value) const;
  int64_t getBytes(mlir::Value value) const;
  /// Of both arenas, as the runtime lays them out.
  int64_t getPeak() const;

private:
  explicit PlannedMemory(mlir::func::FuncOp main);
  bool isCallers(mlir::Value value) const;
  bool isSymmetric(mlir::Value value, mlir::OpResult result) const;

  mlir::func::FuncOp main;
  llvm::SmallVector<mlir::BlockArgument> states; ///< of its results
  plan::InPlace inPlace;
  int64_t alignment;
  std::map<std::string, int64_t> maximums; ///< of dynamic sizes
  llvm::DenseMap<mlir::Operation *, plan::Variant> variants;
  std::vector<mlir::Operation *> steps;
  std::vector<Buffer> buffers;
  llvm::DenseMap<mlir::Value, size_t> bufferOf;
  mutable llvm::DenseMap<mlir::Type, layout::Shape> shapes;
};

} // namespace tessera

#endif // TESSERA_MEMORY_PLANNEDMEMORY_H
