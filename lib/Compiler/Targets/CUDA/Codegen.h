//===- Codegen.h - kernels to cubins --------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CUDA_CODEGEN_H
#define TESSERA_COMPILER_TARGETS_CUDA_CODEGEN_H

#include "Compiler/Targets/CUDA/KernelText.h"
#include "Compiler/Targets/CUDA/NVRTC.h"

#include "mlir/IR/BuiltinOps.h"

namespace tessera::cuda {

struct CompiledKernel {
  KernelSource source;
  std::string defines; ///< in front of the text that became the binary
  Binary binary;
};

/// The text of a planned program's kernels, in order, and last the runtime's
/// own
/// ("runtime", without functions of a launch).
mlir::FailureOr<std::vector<CompiledKernel>>
emitKernels(mlir::ModuleOp program);

/// Compiles them for an architecture, as "sm_90a". A kernel that spills
/// registers, or that ptxas remarks on, gets a warning.
mlir::LogicalResult compileKernels(mlir::ModuleOp program,
                                   std::vector<CompiledKernel> &kernels,
                                   const plan::CodeOptions &options,
                                   const std::string &architecture);

/// Writes each kernel, compiled for an architecture, to a file of its own that
/// nvcc compiles alone: what it includes, the kernel, and a main function that
/// runs it on random numbers, times it and prints a checksum. Beside it, the
/// machine code that NVRTC gave, and PTX. What an earlier dump wrote there is
/// removed.
mlir::LogicalResult dumpKernels(mlir::ModuleOp program,
                                llvm::ArrayRef<CompiledKernel> kernels,
                                const std::string &folder,
                                llvm::StringRef architecture);

} // namespace tessera::cuda

#endif // TESSERA_COMPILER_TARGETS_CUDA_CODEGEN_H
