//===- ChunkWriter.h - text of loops over chunks --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop of a thread over its chunks (Chunks.h) of a parallel loop, whatever
// the form of the kernel: where the chunks are is told by the form. The text is
// a template: `V` iterations to a chunk, `U` chunks at a time, and `Point` is
// the type of a chunk's number.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_CUDA_CHUNKWRITER_H
#define TESSERA_COMPILER_CUDA_CHUNKWRITER_H

#include "Compiler/CUDA/Chunks.h"
#include "Compiler/CUDA/KernelWriter.h"

namespace tessera::cuda {

/// Registers that loads of a thread may fill at a time.
constexpr int kLoadRegisters = 32;
constexpr int kWarp = 32;

/// The narrowest type that numbers all points of these extents.
std::string getPointType(llvm::ArrayRef<std::optional<int64_t>> extents);
/// The widest vectors that the last extent allows, if it is known.
int narrow(int width, std::optional<int64_t> extent);
/// The dimension of a memref whose stride is known to be 1.
std::optional<unsigned> getUnitDim(mlir::Value memref);
/// Names the same element of a row in all of its stages.
std::string getKeepKey(mlir::scf::ParallelOp loop, mlir::memref::LoadOp load);

/// One for each function.
class ChunkWriter {
public:
  explicit ChunkWriter(KernelWriter &out) : out(out) {}

  struct Loop {
    mlir::scf::ParallelOp loop;
    const Chunk &chunk;
    std::string header; ///< of a loop over the first of U chunks
    /// Writes where chunk `u` is, or leaves the loop over `u`.
    llvm::function_ref<void()> place;
    bool inStage = false;
    /// Of a stage's reductions, by lane.
    llvm::ArrayRef<std::string> sums = {};
  };
  mlir::LogicalResult write(const Loop &chunks);

  /// How many chunks there are.
  std::string getCount(mlir::scf::ParallelOp loop);
  /// The induction variables of chunk `number`; the last is that of its first
  /// iteration.
  void writeIndices(mlir::scf::ParallelOp loop, const std::string &number);
  /// Conditions for all vector accesses of a loop to be such.
  void addFit(mlir::scf::ParallelOp loop, const Chunk &chunk, int width,
              llvm::SmallVectorImpl<std::string> &conditions);

  // What a form sets before it writes.
  /// Loads that go through shared memory, to its name.
  llvm::DenseMap<mlir::Operation *, std::string> tiles;
  /// Of a row: how many stages do a load (`getKeepKey`).
  llvm::StringMap<int> keepable;
  /// Whether what is not kept is loaded only where it is used, for there are
  /// not registers enough.
  bool loadsLate = false;

private:
  mlir::LogicalResult writeLoads(const Loop &chunks);
  mlir::LogicalResult writeLanes(const Loop &chunks);
  mlir::LogicalResult writeRandoms(const Chunk &chunk, plan::RandomOp op,
                                   const Chunk::Planned &plan);
  mlir::LogicalResult writeLane(mlir::Block &block, const Chunk &chunk,
                                llvm::ArrayRef<std::string> results);
  /// Whether a load of a chunk is one of its second pass.
  bool isLate(const Loop &chunks, mlir::Operation *op,
              const Chunk::Planned &plan);
  std::string getGuards(llvm::ArrayRef<Chunk::Guard> guards);

  KernelWriter &out;
  /// The loads that an earlier stage did, to their registers.
  llvm::StringMap<std::string> kept;
};

} // namespace tessera::cuda

#endif // TESSERA_COMPILER_CUDA_CHUNKWRITER_H
