//===- ExpandMath.h - functions as arithmetic -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CPU_EXPANDMATH_H
#define TESSERA_COMPILER_TARGETS_CPU_EXPANDMATH_H

#include "mlir/IR/BuiltinOps.h"

namespace tessera {
/// Replaces exp, erf and tanh of f32 by arithmetic that the vectorizer takes,
/// within 1 ulp of the exact value, conversions of bf16 by arithmetic on its
/// bits, and plan.random by its definition. Others stay calls.
void expandMath(mlir::ModuleOp module);
} // namespace tessera

#endif // TESSERA_COMPILER_TARGETS_CPU_EXPANDMATH_H
