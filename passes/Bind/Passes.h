//===- Passes.h - a user's program in one spelling --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BIND_PASSES_H
#define TESSERA_BIND_PASSES_H

#include "TensorView/Contract.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tessera::tv {

#define GEN_PASS_DECL
#include "Bind/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Bind/Passes.h.inc"

} // namespace tessera::tv

#endif // TESSERA_BIND_PASSES_H
