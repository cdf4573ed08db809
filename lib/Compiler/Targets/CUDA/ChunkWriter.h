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

#ifndef TESSERA_COMPILER_TARGETS_CUDA_CHUNKWRITER_H
#define TESSERA_COMPILER_TARGETS_CUDA_CHUNKWRITER_H

#include "Compiler/Targets/CUDA/Chunks.h"
#include "Compiler/Targets/CUDA/KernelWriter.h"

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
    mlir::Value lane;
    const Chunk &chunk;
    std::string header; ///< of a loop over the first of U chunks
    /// Writes where chunk `u` is, and that the loop over `u` goes on if it is
    /// nowhere; of the loop with the arithmetic, `lanes` is true.
    llvm::function_ref<void(bool lanes)> place;
    bool inStage = false;
    /// Of a stage's reductions, by lane.
    llvm::ArrayRef<std::string> sums = {};
  };
  mlir::LogicalResult write(const Loop &chunks);

  /// How many chunks of the lane's iterations there are, as a `Point`.
  std::string getCount(mlir::scf::ParallelOp loop, mlir::Value lane);
  /// The induction variables of chunk `number`; the lane is that of its first
  /// iteration.
  void writeIndices(mlir::scf::ParallelOp loop, mlir::Value lane,
                    const std::string &number);
  /// Conditions for all vector accesses of a chunk to be such; `extent` is of
  /// its lane.
  void addFit(mlir::Value extent, const Chunk &chunk, int width,
              llvm::SmallVectorImpl<std::string> &conditions);

  // What a form sets before it writes.
  /// Loads that go through shared memory, to the vector that `place` names.
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
  /// Whether several stages need a load.
  bool isKept(const Loop &chunks, mlir::Operation *op,
              const Chunk::Planned &plan);
  /// Whether an op reads the same for all chunks.
  bool isOfAll(const Loop &chunks, mlir::Operation *op,
               const Chunk::Planned &plan);
  /// An addend that is 0 but in the iteration, if any, of which `number` is
  /// `other`.
  struct OneHot {
    mlir::Value number, other, value;
    std::string hot, picked; ///< that iteration; the value in all of them
  };
  std::optional<OneHot> getOneHot(const Loop &chunks, mlir::Region &reduction,
                                  mlir::Value addend);
  /// The load of small floats of which a reduction is the maximum or minimum,
  /// if it is one over the lanes of a row; `function` compares two at a time.
  mlir::memref::LoadOp getPairs(const Loop &chunks, mlir::Region &reduction,
                                mlir::Value addend, std::string &function);
  std::string getGuards(llvm::ArrayRef<Chunk::Guard> guards);

  KernelWriter &out;
  /// What one-hot sums and pairs do without.
  llvm::DenseSet<mlir::Operation *> replaced;
  /// The loads that an earlier stage did, to what keeps them.
  llvm::StringMap<std::string> kept;
  std::string lastKept; ///< the last one that was declared
};

} // namespace tessera::cuda

#endif // TESSERA_COMPILER_TARGETS_CUDA_CHUNKWRITER_H
