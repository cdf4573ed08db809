//===- Passes.h - from the user's views to all views ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PROPAGATE_PASSES_H
#define TESSERA_PROPAGATE_PASSES_H

#include "TensorView/Contract.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tessera::tv {

#define GEN_PASS_DECL
#include "Propagate/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Propagate/Passes.h.inc"

} // namespace tessera::tv

#endif // TESSERA_PROPAGATE_PASSES_H
