//===- FusedKernel.h - ops that run in one loop nest ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_FUSEDKERNEL_H
#define TESSERA_KERNELS_FUSEDKERNEL_H

#include "Kernels/KernelEmitter.h"

namespace tessera {

/// Ops over one iteration space `full`. Its outer dimensions index what
/// reductions leave; over the inner ones run the stages of the kernel, each a
/// loop that reduces and stores what the stages before have made possible:
///
///     for outer:
///       for inner: max   = reduce max x
///       for inner: total = reduce sum exp(x - max)
///       for inner: store exp(x - max) / total
///
/// On a GPU such a kernel may also reduce over the outer dimensions: each run
/// of neighbouring rows has a part of these sums, of columns, and a second loop
/// joins the parts:
///
///     for run:
///       for inner: part[run] = 0
///       for outer in run:
///         for inner: total = reduce sum dy * x
///         for inner: store dx; part[run] += dy * x
///     for inner: store reduce sum part
struct FusedOps {
  llvm::SetVector<mlir::Operation *> ops;
  Space full;
  /// A value with the dimensions `full`, for its extents.
  mlir::Value anchor;
  /// Dimensions of `full` in the order of the loops; the first `outer` of them
  /// are the outer ones. Without a reduction all are.
  llvm::SmallVector<int64_t> order;
  size_t outer = 0;
  bool reduces = false;
  size_t scalarOps = 0; ///< in all regions
  /// Whether nothing of `full` is stored, so that its dimensions may have any
  /// order; else that is asked of each op's users.
  bool storesOuter = false;
  /// Reductions over the outer dimensions; none where there are no
  /// `multiprocessors`, each of which gets a run of rows.
  llvm::SetVector<mlir::Operation *> sums;
  int64_t multiprocessors = 0;

  explicit FusedOps(mlir::Operation *op, int64_t multiprocessors = 0);

  /// Whether `op` fits into the loops, and its operands from these ops are
  /// elements that its own place there has at hand.
  bool canAdd(mlir::Operation *op) const;
  void add(mlir::Operation *op);
  bool tryAdd(mlir::Operation *op) {
    const bool fits = canAdd(op);
    if (fits)
      add(op);
    return fits;
  }

  /// Whether its loops are those of `other`, on the same devices.
  bool hasLoopsOf(const FusedOps &other) const;

  /// Whether a value is indexed by the outer dimensions alone.
  bool isOuter(mlir::Value value) const;

private:
  void insert(mlir::Operation *op);
  bool isSumOfColumns(mlir::Operation *op) const;
  bool reads(mlir::Value operand, bool atOuter) const;
  /// Whether nothing else reads what these ops make.
  bool isReadOnlyBy(mlir::Operation *reader) const;
  /// Whether free ops lead from one of these ops to the value.
  bool isBehind(mlir::Value value) const;

  llvm::DenseSet<mlir::Value> fromMemory; ///< operands that no op here makes
};

// What tv::ElementOpInterface says, of any op.

/// Whether it runs on every element by itself, where that is used.
bool isPointwise(mlir::Operation *op);
/// The same, or a composite that becomes such an op.
bool isElementwise(mlir::Operation *op);
/// The values whose elements it reads, all operands of an op without elements.
llvm::SmallVector<mlir::Value> getReadValues(mlir::Operation *op);
/// What it combines; nothing if it does not.
std::optional<tv::Reduction> getReduction(mlir::Operation *op);
/// Whether computing it again where its value is used costs less than loading
/// it.
bool isFree(mlir::Operation *op);

/// What is in memory of these values, or of what free and copied ops make them
/// of.
llvm::SetVector<mlir::Value>
getMemoryRead(llvm::SetVector<mlir::Value> read,
              const llvm::DenseSet<mlir::Operation *> &copied);

/// Whether it reads numbers that come several at a time; where elements are
/// made one by one, the others would be lost.
bool wantsSeveral(mlir::Operation *op);

/// The pointwise ops of a block that nothing reads but copies: concats, pads
/// and those slices that are in loops. Those compute them where they read them,
/// each element at most once. `isLooped` says of an op whether it, too, would
/// be in a kernel with them; what they read of others is in memory anyway.
llvm::DenseSet<mlir::Operation *>
getCopied(mlir::Block &block,
          llvm::function_ref<bool(mlir::Operation *)> isLooped);

/// The local dimensions that a reduction runs over; nothing where a merged one
/// is reduced in part.
std::optional<llvm::SmallVector<int64_t>>
getReducedDims(tv::ElementOpInterface op);

/// Whether an op reduces dimensions that do not come last.
bool reducesColumns(mlir::Operation *op);
/// Those of the ops that do, and the others.
std::pair<llvm::SmallVector<mlir::Operation *>,
          llvm::SmallVector<mlir::Operation *>>
partitionColumns(llvm::ArrayRef<mlir::Operation *> ops);
/// Where others of the ops reduce rows, those that reduce columns go behind
/// all: in this order FusedOps takes them.
void putSumsLast(llvm::SmallVectorImpl<mlir::Operation *> &ops);

/// Emits the kernel's body; `outputs` are those of the ops' values that others
/// need.
void emitFused(KernelEmitter &emitter, const FusedOps &fused,
               llvm::ArrayRef<mlir::Value> outputs);

} // namespace tessera

#endif // TESSERA_KERNELS_FUSEDKERNEL_H
