//===- Scheduling.h - from loops to schedules -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the pass `cuda-schedule` is made of. Each form writes the attributes of
// a loop, and of the ops inside.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CUDA_SCHEDULING_H
#define TESSERA_COMPILER_TARGETS_CUDA_SCHEDULING_H

#include "Compiler/Targets/CUDA/Lanes.h"
#include "Plan/Target.h"
#include "Schedule/Schedule.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace tessera::cuda {

/// Registers that loads of a thread may fill at a time.
constexpr int kLoadRegisters = 32;
constexpr int kWarp = 32;
/// Of a multiprocessor's shared memory, by each block.
constexpr int64_t kSystemShared = 1 << 10;
/// Of a tile of gemm.cuh.
constexpr int64_t kProductRows = 128;

/// Of what functions of an attention have of a query, or of a key.
constexpr int64_t kKeptBytes = 16;

inline void setRole(mlir::Operation *op, schedule::RoleKind kind,
                    int64_t dim = -1, int64_t number = -1) {
  op->setAttr(schedule::kRoleAttr,
              schedule::RoleAttr::get(op->getContext(), kind, dim, number));
}

/// The widest vectors that the last extent allows, if it is known.
int narrow(int width, std::optional<int64_t> extent);

/// What of a body is not done for each lane.
class Chunk {
public:
  Chunk(mlir::scf::ParallelOp loop, mlir::Value lane, const MemoryUse &memory,
        const llvm::DenseSet<mlir::Value> &others = {});

  const Lanes &getLanes() const { return lanes; }
  struct Planned {
    schedule::RoleKind kind;
    bool guarded = false; ///< by branches
    int64_t dim = -1;     ///< along which a vector lies
    int64_t number = -1;
  };
  /// Ops with a role, in order: at first, loads of all lanes are vectors.
  llvm::MapVector<mlir::Operation *, Planned> planned;
  /// Those that are loads of all lanes.
  llvm::SmallVector<std::pair<mlir::memref::LoadOp, Planned *>> getLoads();

  /// The most elements that 16 bytes hold, over all vector accesses; 1 if there
  /// is none.
  int getWidth() const;
  /// Adds the conditions for vector accesses to be such.
  void addAligned(llvm::SmallVectorImpl<schedule::ConditionAttr> &conditions);
  /// Sums of one-hots, and maxima and minima of small floats.
  void formPeepholes();
  /// Writes the roles.
  void write();

private:
  void visit(mlir::Block &block, bool guarded);
  /// Gives the ops their role by which a number comes from the lane.
  void writeCounting(mlir::Value number);

  mlir::scf::ParallelOp loop;
  Lanes lanes;
};

/// No parallel loop inside: threads share chunks of iterations, or, where an
/// operand's neighbours lie along another loop than the last one, blocks take
/// squares.
void schedulePoints(mlir::scf::ParallelOp loop);

/// Parallel loops inside (stages): a group of threads takes one iteration at a
/// time, and the stages' chunks are shared among them.
void scheduleRows(mlir::scf::ParallelOp loop, const plan::Limits &limits);

/// The tiles that leave the fewest multiprocessors idle at the end.
void scheduleProduct(plan::ProductOp product, const plan::Limits &limits);
/// An error unless gemm.cuh has such a kernel, and a block room for it.
llvm::LogicalResult verifyProduct(plan::ProductOp product,
                                  const plan::Limits &limits);
/// Of a block's shared memory.
int64_t getSharedBytes(schedule::ProductAttr tiles);

/// Tiles, and what the functions of a score have for a query or for a key: of
/// an attention or its gradient.
void scheduleAttention(mlir::Operation *attention, const plan::Limits &limits);
/// An error unless the kernels have such tiles, a block room for them, and the
/// roles keep what the functions mean.
llvm::LogicalResult verifyAttention(mlir::Operation *attention,
                                    const plan::Limits &limits);
/// Whether a tile has queries of all heads that read one key head
/// (attention_few.cuh), and how many of each.
bool isOfFew(plan::AttentionOp attention);
int64_t getTileQueries(plan::AttentionOp attention);
/// Whether two blocks have a tile.
bool isOfClusters(plan::AttentionGradOp attention);
/// Of a block's shared memory.
int64_t getSharedBytes(plan::AttentionOp attention);
int64_t getSharedBytes(plan::AttentionGradOp attention);
/// The functions of an attention or its gradient that there are.
llvm::SmallVector<mlir::Block *> getFunctions(mlir::Operation *attention);
/// Whether a value that is kept takes 8 bytes, not 4.
bool isWide(mlir::Type type);
/// What a value of such a function is computed from.
enum Dependence : unsigned {
  OnBatch = 1,
  OnHead = 2,
  OnQuery = 4,
  OnKey = 8,
  OnScore = 16,
  OnMemory = 32
};
llvm::DenseMap<mlir::Operation *, unsigned> getDependences(mlir::Block &block);
/// Whether a function of a pair gives its query and what does not depend on it.
bool isShift(mlir::Block &function);
/// What `op` multiplies by a constant.
struct Scaling {
  mlir::Value value;
  llvm::APFloat factor;
};
std::optional<Scaling> getScaling(mlir::Operation *op);
/// Whether all that score_mod does beside what is the kernel's, the factors, is
/// a tanh of scores for which attention_tanh.cuh has a way.
bool isBoundedTanh(plan::AttentionOp attention);

/// An error unless threads can share a kernel's loop and its `stages`.
mlir::LogicalResult verifyLoops(mlir::scf::ParallelOp loop,
                                llvm::ArrayRef<mlir::scf::ParallelOp> stages);

/// An error at an op where a kernel's schedule is not legal: its program would
/// be another one, or the GPU has not what it takes.
mlir::LogicalResult verifySchedule(mlir::func::FuncOp kernel,
                                   const plan::Limits &limits);

} // namespace tessera::cuda

#endif // TESSERA_COMPILER_TARGETS_CUDA_SCHEDULING_H
