//===- EmitModule.h - from a planned program to a module file -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_EMITMODULE_H
#define TESSERA_COMPILER_EMITMODULE_H

#include "Compiler/CPUCodegen.h"
#include "Compiler/CUDA/CUDACodegen.h"
#include "Support/DType.h"

namespace tessera {

/// "file:line:column" of a location; empty if it has none.
std::string getPlace(mlir::Location location);

/// What a module calls elements of this type; none if it cannot have them.
std::optional<DType> getDType(mlir::Type element);

/// The kernels of a program as code of its target: an ELF shared object, or
/// cubins.
struct KernelCode {
  std::string elf;
  std::vector<cuda::CompiledKernel> cuda;
};

/// The module file of a program whose `@main` holds ops of `plan` and `comm`
/// only.
mlir::FailureOr<std::string> emitModule(mlir::ModuleOp program,
                                        llvm::StringRef report,
                                        KernelCode code);

} // namespace tessera

#endif // TESSERA_COMPILER_EMITMODULE_H
