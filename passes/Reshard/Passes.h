//===- Passes.h - reshards become planned steps -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RESHARD_PASSES_H
#define TESSERA_RESHARD_PASSES_H

#include "TensorView/Contract.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tessera::tv {

#define GEN_PASS_DECL
#include "Reshard/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Reshard/Passes.h.inc"

} // namespace tessera::tv

#endif // TESSERA_RESHARD_PASSES_H
