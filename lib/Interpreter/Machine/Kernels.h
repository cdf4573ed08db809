//===- Kernels.h - runs kernels on strided memory ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_MACHINE_KERNELS_H
#define TESSERA_INTERPRETER_MACHINE_KERNELS_H

#include "Interpreter/Machine/Memory.h"
#include "Interpreter/Ops/ScalarProgram.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <array>
#include <map>

namespace tessera::interp {

/// A function on memrefs and integers: loops, branches, loads, stores, `arith`
/// and `math`. Compiled once into steps on numbered slots.
class Kernel {
public:
  /// Null, and an error at the op, if one has no rule.
  static std::unique_ptr<Kernel> compile(mlir::func::FuncOp function);

  /// On one rank. Errors are reported at the op of the kernel.
  mlir::LogicalResult run(llvm::ArrayRef<Window> tensors,
                          llvm::ArrayRef<int64_t> scalars, int64_t rank,
                          bool roundValues);

  struct Step;
  /// The steps of a block, and what it yields.
  struct Code {
    std::vector<Step> steps;
    llvm::SmallVector<int> yields;
  };
  struct Functor;
  struct Step {
    enum class Kind {
      Scalar,
      Load,
      Store,
      Dim,
      For,
      Parallel,
      If,
      Attention,
      AttentionGrad,
      Random,
      Product,
      OneHot,
      Pairs,
      Zeros
    } kind;
    mlir::Operation *op;
    ScalarProgram::Step scalar{}; ///< of Scalar
    int memref = -1;              ///< of Load, Store, Dim, Zeros
    llvm::SmallVector<int, 4> in; ///< of Store the value is first
    /// Of For: index, carried values; of Parallel: indices.
    llvm::SmallVector<int> carried;
    llvm::SmallVector<int> results;
    Code body, otherwise;
    /// Of Parallel: how each addend joins its result, which are the arguments.
    /// Of Attention: score_mod, mask_mod, of its gradient then score_grad; of
    /// Product: epilogue; without code if absent.
    std::vector<Functor> functors;
    llvm::SmallVector<int> tensors; ///< of Attention and Product: memrefs
  };
  struct Functor {
    llvm::SmallVector<int> arguments;
    Code code;
  };

private:
  explicit Kernel(mlir::func::FuncOp function) : function(function) {}
  mlir::LogicalResult compile(mlir::Block &block, Code &code);
  mlir::LogicalResult compile(mlir::Region &region, Functor &functor);
  mlir::FailureOr<Step> compile(mlir::Operation *op);
  mlir::LogicalResult use(mlir::Operation *op, mlir::ValueRange values,
                          llvm::SmallVectorImpl<int> &in);
  /// Of those tensors and scalars that are not null, and the op's regions.
  mlir::LogicalResult useAttention(mlir::Operation *op,
                                   llvm::ArrayRef<mlir::Value> tensors,
                                   llvm::ArrayRef<mlir::Value> scalars,
                                   Step &step);
  mlir::LogicalResult useMemref(mlir::Operation *op, mlir::Value value,
                                int &memref);
  int define(mlir::Value value);

  bool run(const Code &code);
  bool run(const Step &step);
  bool runParallel(const Step &step);
  bool runAttention(const Step &step);
  bool runAttentionGrad(const Step &step);
  bool runProduct(const Step &step);
  bool read(const Step &step, int memref, llvm::ArrayRef<int64_t> index,
            Scalar &value);
  bool write(const Step &step, int memref, llvm::ArrayRef<int64_t> index,
             Scalar value);
  /// Writes a number into memory of floats.
  bool writeReal(const Step &step, int memref, llvm::ArrayRef<int64_t> index,
                 double value);
  /// Rows of memory's last dimension, by their other indices.
  using Rows = std::map<std::array<int64_t, 3>, std::vector<double>>;
  /// A row of memory of four dimensions, of which each element is read once;
  /// null on failure.
  const std::vector<double> *readRow(const Step &step, int memref, Rows &rows,
                                     std::array<int64_t, 3> outer);
  bool readSequences(const Step &step, int tiles, int64_t positions,
                     std::vector<int64_t> &sequenceOf);
  template <typename Op>
  std::optional<double> dropoutFactor(const Step &step, Op op, unsigned memory,
                                      llvm::ArrayRef<Scalar> pair);
  /// Whether an attention that may be causal shows a query a key; the last
  /// query sees all of `keys`.
  template <typename Op>
  std::optional<bool> sees(const Step &step, Op op, llvm::ArrayRef<Scalar> pair,
                           int64_t queries, int64_t keys);
  /// Whether a mask_mod and a block_mod keep a pair; either may be absent.
  std::optional<bool> isKept(const Functor &maskMod, const Functor &blockMod,
                             llvm::ArrayRef<Scalar> pair);
  /// The first value that a functor yields.
  std::optional<Scalar> call(const Functor &functor,
                             llvm::ArrayRef<Scalar> arguments);
  void assign(llvm::ArrayRef<int> to, llvm::ArrayRef<int> from);
  bool fail(const Step &step, const llvm::Twine &message);

  mlir::func::FuncOp function;
  Code code;
  llvm::DenseMap<mlir::Value, int> slotOf; ///< in `scalars` or `memrefs`
  ScalarProgram scalars;
  OpRun scalarRun;
  std::vector<Window> memrefs;
  int64_t rank = 0;
};

} // namespace tessera::interp

#endif // TESSERA_INTERPRETER_MACHINE_KERNELS_H
