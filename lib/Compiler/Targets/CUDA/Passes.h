//===- Passes.h - the phase `scheduled` on GPUs ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CUDA_PASSES_H
#define TESSERA_COMPILER_TARGETS_CUDA_PASSES_H

#include "Schedule/Schedule.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace tessera::cuda {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "Compiler/Targets/CUDA/Passes.h.inc"
} // namespace tessera::cuda

#endif // TESSERA_COMPILER_TARGETS_CUDA_PASSES_H
