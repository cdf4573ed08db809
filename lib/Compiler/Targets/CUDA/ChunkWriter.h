//===- ChunkWriter.h - text of loops over chunks --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop of a thread over its chunks of a parallel loop, whatever the form of
// the kernel: where the chunks are is told by the form, and what is done how by
// the roles of ops (Schedule/Schedule.td). The text is a template: `V`
// iterations to a chunk, `U` chunks at a time, and `Point` is the type of a
// chunk's number.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CUDA_CHUNKWRITER_H
#define TESSERA_COMPILER_TARGETS_CUDA_CHUNKWRITER_H

#include "Compiler/Targets/CUDA/KernelWriter.h"
#include "Schedule/Schedule.h"

#include <map>

namespace tessera::cuda {

/// The narrowest type that numbers all points of these extents.
std::string getPointType(llvm::ArrayRef<std::optional<int64_t>> extents);

/// What a loop's function says of its launch.
std::string getBounds(schedule::LoopAttr attribute);

/// Calls the first of a loop's instances of which all conditions hold; `call`
/// is the text of a call.
void writeInstances(
    KernelWriter &out, mlir::scf::ParallelOp loop,
    llvm::function_ref<std::string(schedule::InstanceAttr)> call);

/// One for each function.
class ChunkWriter {
public:
  explicit ChunkWriter(KernelWriter &out) : out(out) {}

  struct Loop {
    mlir::scf::ParallelOp loop;
    mlir::Value lane;
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

  /// Of runs of rows: declares what is kept, and a function `fetch` that has a
  /// row's loads leave. `place` is as in a loop, of a stage.
  using Place = llvm::function_ref<void(mlir::scf::ParallelOp stage)>;
  mlir::LogicalResult writeFetch(mlir::scf::ForOp rows, Place place);
  /// At the beginning of each row: it has arrived, and the next one leaves.
  void writeTurn(mlir::scf::ForOp rows);
  /// After the rows: the sums of columns that `stage` has set go to memory.
  void writeSums(mlir::scf::ParallelOp stage, Place place);

  /// The vectors that `place` names, of loads through shared memory.
  llvm::DenseMap<mlir::Operation *, std::string> tiles;

private:
  struct OneHot {
    std::string hot, picked; ///< the lane; the value in all of them
  };
  mlir::LogicalResult writeLoads();
  mlir::LogicalResult writeLanes(const Loop &chunks);
  void declareKept(mlir::memref::LoadOp load, llvm::StringRef varies);
  void writeSummed(mlir::Operation *access);
  mlir::LogicalResult writeLate(mlir::memref::LoadOp load);
  mlir::LogicalResult writeRandoms(plan::RandomOp op, mlir::Value lane);
  mlir::FailureOr<OneHot> writeOneHot(schedule::OneHotOp op, mlir::Value lane);
  mlir::LogicalResult writePairs(schedule::PairsOp op, mlir::Region &reduction,
                                 const std::string &sum);
  /// Of the chunk's first lane, as which the number counts.
  mlir::LogicalResult writeFirst(mlir::Value number, mlir::Value lane);
  mlir::LogicalResult writeLane(mlir::Block &block,
                                llvm::ArrayRef<std::string> results);
  /// The conditions of the branches around an op.
  std::string getGuards(mlir::Operation *op);
  void declareVector(const std::string &variable, mlir::Value memref,
                     llvm::StringRef end);

  KernelWriter &out;
  /// Ops with a role, in order.
  llvm::SmallVector<std::pair<mlir::Operation *, schedule::RoleAttr>> planned;
  /// Of the loads of all lanes, and of random numbers, in what their lanes are.
  llvm::DenseMap<mlir::Operation *, std::string> vectors;
  /// What an earlier stage keeps, by number.
  std::map<int64_t, std::string> kept;
  std::string lastKept; ///< the last one that was declared
  /// Sums of columns, by number.
  std::map<int64_t, std::string> summed;
};

} // namespace tessera::cuda

#endif // TESSERA_COMPILER_TARGETS_CUDA_CHUNKWRITER_H
