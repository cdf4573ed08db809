//===- Lanes.h - what neighbouring iterations share -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread takes a chunk of neighbouring iterations of one loop variable, the
// lane, at a time: a parallel loop's last, or that of a loop around.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CUDA_LANES_H
#define TESSERA_COMPILER_TARGETS_CUDA_LANES_H

#include "Plan/Plan.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::cuda {

/// An integer or index that is known.
std::optional<int64_t> getConstant(mlir::Value value);
/// The dimension of a memref whose stride is known to be 1.
std::optional<unsigned> getUnitDim(mlir::Value memref);

/// The memory of a load or a store, and where in it; null of another op.
struct Access {
  mlir::Value memref;
  mlir::ValueRange indices;
};
Access getAccess(mlir::Operation *op);

/// How a loop, with all in it, uses memory.
struct MemoryUse {
  explicit MemoryUse(mlir::Operation *loop);
  /// How many ops store to, or load from, a memref.
  llvm::DenseMap<mlir::Value, int> stores, loads;
  bool isStored(mlir::Value memref) const { return stores.contains(memref); }
  /// Stored and loaded again: order matters.
  bool isBoth(mlir::Value memref) const {
    return stores.contains(memref) && loads.contains(memref);
  }
  /// Whether all that is stored has 16 bits.
  bool storesHalves() const;
};

class Lanes {
public:
  /// `others` are values outside of the loop that differ by lane.
  Lanes(mlir::scf::ParallelOp loop, mlir::Value lane, const MemoryUse &memory,
        const llvm::DenseSet<mlir::Value> &others = {});

  mlir::Value getLane() const { return lane; }
  /// Values that grow by 1 each lane.
  const llvm::SetVector<mlir::Value> &getCounting() const { return counting; }
  bool counts(mlir::Value value) const { return counting.contains(value); }
  /// The operand as which the op's result grows, if it does.
  std::optional<unsigned> getCounting(mlir::Operation *op) const;
  /// Whether a value is the same in all lanes, and can be computed before them.
  bool isFixed(mlir::Value value) const { return !varying.contains(value); }
  /// Whether an op, with all in it, does the same in all lanes and changes
  /// nothing. (A division that a condition guards may trap before it.)
  bool isSame(mlir::Operation *op, bool guarded) const;
  /// The one dimension that `indices` address by the lane, if they do so and
  /// vary in no other way.
  std::optional<unsigned> getVectorDim(mlir::ValueRange indices) const;
  /// That of a load or store that may be one access for all lanes.
  std::optional<unsigned> getVectorDim(mlir::Operation *access) const;

private:
  void visit(mlir::Block &block, bool guarded);

  const MemoryUse &memory;
  mlir::Value lane;
  llvm::DenseSet<mlir::Value> varying;
  llvm::SetVector<mlir::Value> counting;
};

/// By columns, the values outside of stages that differ by row.
llvm::DenseSet<mlir::Value> getByRow(mlir::scf::ParallelOp loop);
/// Whether an op, or one in it, uses one of the values.
bool usesAny(mlir::Operation *op, const llvm::DenseSet<mlir::Value> &values);
/// The outermost parallel loops inside.
llvm::SmallVector<mlir::scf::ParallelOp> getStages(mlir::scf::ParallelOp loop);
/// The loop in order right inside that has stages, over the rows of a run; null
/// if there is none, or another one.
mlir::scf::ForOp getRowLoop(mlir::scf::ParallelOp loop);
/// Whether memory is a sum of columns over the rows of a run: what a stage
/// before the rows sets, and only stages access, in each iteration the same
/// element.
bool isSummed(mlir::scf::ParallelOp loop, mlir::Value memref);
/// What a load's address comes from, inside of the row loop; nothing if that is
/// not known before the row begins.
struct Address {
  llvm::SmallPtrSet<mlir::Operation *, 8> ops;
  bool varies = false; ///< by row
};
std::optional<Address> getAddress(mlir::scf::ForOp rows,
                                  mlir::memref::LoadOp load);
/// Whether two loads of stages read the same element of a row in each
/// iteration.
bool readSame(mlir::scf::ParallelOp stage, mlir::memref::LoadOp load,
              mlir::scf::ParallelOp otherStage, mlir::memref::LoadOp other);
/// Whether two extents are one value, or one dimension of one memory.
bool isSameExtent(mlir::Value extent, mlir::Value other);
/// The loop, other than the last one, along which the neighbours of a load of
/// all lanes lie, if all its indices are loops or the same in all iterations.
std::optional<unsigned> getAcross(mlir::scf::ParallelOp loop,
                                  mlir::memref::LoadOp load, unsigned dim);
/// Whether a reduction is by this op alone.
template <class Op> bool isBy(mlir::Region &reduction) {
  mlir::Block &block = reduction.front();
  auto op = block.getTerminator()->getOperand(0).getDefiningOp<Op>();
  return op && op.getLhs() == block.getArgument(0) &&
         op.getRhs() == block.getArgument(1);
}

} // namespace tessera::cuda

#endif // TESSERA_COMPILER_TARGETS_CUDA_LANES_H
