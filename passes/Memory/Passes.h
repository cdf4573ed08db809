//===- Passes.h - the memory of a plan --------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_MEMORY_PASSES_H
#define TESSERA_MEMORY_PASSES_H

#include "Plan/Plan.h"
#include "TensorView/Contract.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace tessera {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "Memory/Passes.h.inc"
} // namespace tessera

#endif // TESSERA_MEMORY_PASSES_H
