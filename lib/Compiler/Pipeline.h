//===- Pipeline.h - the passes of each phase ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_PIPELINE_H
#define TESSERA_COMPILER_PIPELINE_H

#include "Support/Result.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace tessera {

/// Options of the pipeline `tessera`.
struct PipelineOptions : public mlir::PassPipelineOptions<PipelineOptions> {
  ListOption<std::string> mesh{
      *this, "mesh", llvm::cl::desc("Sizes of mesh axes, as tp=4,dp=2")};
  Option<std::string> shardings{
      *this, "shardings",
      llvm::cl::desc("A file with views by name, as layers.*.wq: "
                     "[did(tp) * _, _], after a line mesh <tp = 2>")};
  Option<bool> strict{
      *this, "strict",
      llvm::cl::desc("A move that the source does not write is an error"),
      llvm::cl::init(false)};
  Option<bool> opByOp{
      *this, "op-by-op",
      llvm::cl::desc("Ops are placed one after the other alone, not together "
                     "where that takes less time"),
      llvm::cl::init(false)};
  Option<bool> explain{
      *this, "explain",
      llvm::cl::desc("Remarks that say where views and moves come from"),
      llvm::cl::init(false)};
  /// Whether moves are explained where they are planned: or by who runs the
  /// passes, which know later which of them there are.
  bool explainMoves = true;
  Option<std::string> target{
      *this, "target",
      llvm::cl::desc("What the plan is for, as cpu or cuda:sm_90a"),
      llvm::cl::init("cpu")};
  Option<std::string> machine{
      *this, "machine",
      llvm::cl::desc("What moves and loops are priced with, as "
                     "<latency=5.0e-6,bandwidth=3.0e11,copy=2.0e12,"
                     "loops=3.0e14>; else what the program says, or the "
                     "target has")};
  ListOption<std::string> attention{
      *this, "attention",
      llvm::cl::desc(
          "Variants of attention to compile in, in order of "
          "preference: flash, cudnn, math (all of them by default)")};
  ListOption<std::string> matmul{
      *this, "matmul",
      llvm::cl::desc("Variants of matrix products to compile in for cuda, in "
                     "order of preference: cublaslt, own (cublaslt alone by "
                     "default)")};
  Option<std::string> memory{
      *this, "memory",
      llvm::cl::desc("What a device may hold between steps, as 80GiB: what is "
                     "more is made again")};
  Option<std::string> from{*this, "from",
                           llvm::cl::desc("The phase to start after"),
                           llvm::cl::init("source")};
  Option<std::string> to{*this, "to", llvm::cl::desc("The phase to stop after"),
                         llvm::cl::init("kernels")};
};

/// What is true of a program after a phase is in architecture.md, section 4.
struct Phase {
  llvm::StringLiteral name;
  /// Adds the passes that lead from the phase before to this one; null for the
  /// phases that are not IR.
  void (*build)(mlir::OpPassManager &passes, const PipelineOptions &options);
};
llvm::ArrayRef<Phase> getPipeline();

/// An error unless `phases`, which a tool can stop after, variants and target
/// are ones that there are, and every option is of a phase that runs. `dashes`
/// stand before the options' names.
Status checkOptions(const PipelineOptions &options,
                    llvm::ArrayRef<Phase> phases, llvm::StringRef dashes);

/// Makes the pipeline `tessera` known on command lines.
void registerPipeline();

} // namespace tessera

#endif // TESSERA_COMPILER_PIPELINE_H
