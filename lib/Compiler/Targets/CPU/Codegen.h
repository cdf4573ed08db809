//===- Codegen.h - kernels to machine code --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CPU_CODEGEN_H
#define TESSERA_COMPILER_TARGETS_CPU_CODEGEN_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace tessera::cpu {

/// What came of the kernels on the way, for people.
struct KernelDumps {
  std::string llvm;     ///< LLVM IR, optimized
  std::string assembly; ///< of the same
};

/// Compiles the kernels of a planned program to an ELF shared object for
/// x86-64-v3. Each becomes a symbol of its name with the ABI of `Launch` in
/// Module/module.fbs. Empty if there are none.
mlir::FailureOr<std::string> compileKernels(mlir::ModuleOp program,
                                            KernelDumps *dumps = nullptr);

} // namespace tessera::cpu

#endif // TESSERA_COMPILER_TARGETS_CPU_CODEGEN_H
