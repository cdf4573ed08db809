//===- Chunks.h - what neighbouring iterations share ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread takes a chunk of neighbouring iterations of one loop variable, the
// lane, at a time: a parallel loop's last, or that of a loop around. What does
// not depend on it is computed once for all of them, and memory that they touch
// side by side is one access.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CUDA_CHUNKS_H
#define TESSERA_COMPILER_TARGETS_CUDA_CHUNKS_H

#include "Plan/Plan.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::cuda {

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
};

struct Chunk {
  enum class Role {
    Once,        ///< pure; computed once, cheap enough to do it again
    OnceLoaded,  ///< reads memory; computed once
    VectorLoad,  ///< one access for all iterations
    VectorStore, ///< the same; after all else
    Randoms,     ///< random numbers that follow each other; made together
  };
  /// Conditions of the branches around an op, all the same for the whole chunk.
  struct Guard {
    mlir::Value condition;
    bool negated;
  };
  struct Planned {
    Role role;
    llvm::SmallVector<Guard> guards;
    unsigned dim = 0; ///< of the memref, along which a vector lies
  };

  /// `others` are values outside of the loop that differ by lane.
  Chunk(mlir::scf::ParallelOp loop, mlir::Value lane, const MemoryUse &memory,
        const llvm::DenseSet<mlir::Value> &others = {});

  /// Ops with a role, in order; the others run for each iteration.
  llvm::MapVector<mlir::Operation *, Planned> planned;
  /// Those among `Once` that addresses and conditions of loads need.
  llvm::DenseSet<mlir::Operation *> forAddresses;

  /// Whether a value grows by 1 each iteration, and what it is made of, in
  /// order: done for the chunk's first iteration.
  bool counts(mlir::Value value) const { return counting.contains(value); }
  llvm::SmallVector<mlir::Operation *> getCountingOps(mlir::Value number) const;
  /// Whether a value is the same in all iterations.
  bool isFixed(mlir::Value value) const { return !varying.contains(value); }

  /// Whether the op is not done for each iteration.
  bool has(mlir::Operation *op) const {
    return planned.contains(op) || firstOnly.contains(op);
  }
  /// The most elements that 16 bytes hold, over all vector accesses; 1 if there
  /// is none.
  int getWidth() const;
  /// Registers that the loads of one chunk of `width` fill.
  int countRegisters(int width) const;

private:
  void visit(mlir::Block &block, llvm::SmallVector<Guard> guards);
  bool varies(mlir::Operation *op) const;
  /// The one dimension that `indices` address by the lane, if they do so and
  /// vary in no other way.
  std::optional<unsigned> getVectorDim(mlir::ValueRange indices) const;

  /// The operand by which the op's result grows by 1 each iteration, if it
  /// does.
  mlir::Value getCounting(mlir::Operation *op) const;

  const MemoryUse &memory;
  mlir::Value lane;
  llvm::DenseSet<mlir::Value> varying;
  /// What grows by 1 each iteration.
  llvm::SetVector<mlir::Value> counting;
  /// Ops that only numbers of `Randoms` need.
  llvm::DenseSet<mlir::Operation *> firstOnly;
};

} // namespace tessera::cuda

#endif // TESSERA_COMPILER_TARGETS_CUDA_CHUNKS_H
