//===- Passes.h - from local tensors to kernels ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_PASSES_H
#define TESSERA_KERNELS_PASSES_H

#include "Plan/Plan.h"
#include "TensorView/Contract.h"
#include "TensorView/TensorView.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace tessera {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "Kernels/Passes.h.inc"
} // namespace tessera

#endif // TESSERA_KERNELS_PASSES_H
