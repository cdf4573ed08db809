//===- KernelWriter.h - text of what one thread does ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The text of a kernel while it is written: its arguments, the names of values,
// lines, and the statements of ops that a thread does on its own. How threads
// share a loop is the business of ChunkWriter.h and the forms (KernelForms.h),
// which write through this.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CUDA_KERNELWRITER_H
#define TESSERA_COMPILER_TARGETS_CUDA_KERNELWRITER_H

#include "Compiler/Targets/CUDA/KernelText.h"
#include "Compiler/Targets/CUDA/Lanes.h"
#include "Compiler/Targets/CUDA/ScalarText.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

namespace tessera::cuda {

/// An error unless the loop goes from 0 in steps of 1.
mlir::LogicalResult verifyLoop(mlir::scf::ParallelOp loop);
/// The extents of a kernel's outermost loop, which the runtime has to know.
mlir::FailureOr<std::vector<SpaceExtent>> getSpace(mlir::scf::ParallelOp loop);

class KernelWriter {
public:
  explicit KernelWriter(mlir::func::FuncOp kernel)
      : kernel(kernel), os(functions), memory(kernel) {}

  /// First of all; an argument of a type that kernels do not know is an error.
  mlir::LogicalResult nameArguments();
  /// The struct of parameters and all that was written.
  std::string getText();
  std::string getParametersType() { return getSymbol() + "_Parameters"; }
  std::string getSymbol() { return kernel.getName().str(); }

  // Functions.
  /// Opens a `__global__` function of the parameters `p`.
  void openGlobal(const std::string &bounds, const std::string &symbol);
  /// Forgets the function before.
  void nameParameters();
  /// Forgets the function before, and writes what the loop, or a part of it,
  /// uses of the kernel's entry.
  mlir::LogicalResult enterFunction(mlir::Operation *loop,
                                    mlir::Region *part = nullptr);

  // Lines.
  llvm::raw_ostream &line() { return os.indent(2 * depth); }
  void open(const llvm::Twine &text) {
    line() << text << " {\n";
    ++depth;
  }
  void close(llvm::StringRef end = "}") {
    --depth;
    line() << end << "\n";
  }

  /// Of what is written.
  Rounding rounding = Rounding::None;

  // Names.
  /// Of values that are not constant, in the function that is written.
  llvm::DenseMap<mlir::Value, std::string> names;
  /// A value as an expression: its name or literal.
  std::string name(mlir::Value value);
  std::string fresh(llvm::StringRef stem) {
    return (stem + llvm::Twine(counters[stem]++)).str();
  }
  /// Of an argument of the kernel, in its struct.
  std::string getArgument(mlir::Value value) { return arguments.lookup(value); }
  std::string getPointer(mlir::Value memref, mlir::ValueRange indices);
  std::string getElement(mlir::Value memref);

  // Statements.
  /// Writes the ops of a block and sets `results` to what its terminator
  /// yields.
  using BlockText = llvm::function_ref<mlir::LogicalResult(
      mlir::Block &, llvm::ArrayRef<std::string> results)>;
  mlir::LogicalResult writeOp(mlir::Operation *op);
  mlir::LogicalResult writeBlock(mlir::Block &block,
                                 llvm::ArrayRef<std::string> results = {});
  /// What the functions of random.cuh take.
  std::string getRandomArguments(plan::RandomOp op);
  mlir::LogicalResult writeIf(mlir::scf::IfOp op, BlockText writeInner);
  mlir::LogicalResult writeFor(mlir::scf::ForOp op, BlockText writeInner);
  void writeYield(mlir::Block &block, llvm::ArrayRef<std::string> results);
  /// A struct whose `of` combines two addends; the same for equal ones.
  mlir::FailureOr<std::string> getCombiner(mlir::Region &region);

private:
  std::string getParameters();
  mlir::LogicalResult writeNest(mlir::scf::ParallelOp op);
  mlir::LogicalResult writeExpression(mlir::Operation *op);

  mlir::func::FuncOp kernel;
  std::string structs, functions;
  llvm::raw_string_ostream os;
  int depth = 0;
  const MemoryUse memory;
  llvm::DenseMap<mlir::Value, std::string> arguments;
  llvm::StringMap<int> counters;
  llvm::StringMap<std::string> combiners;
};

} // namespace tessera::cuda

#endif // TESSERA_COMPILER_TARGETS_CUDA_KERNELWRITER_H
