//===- Passes.h - from the global program to one device's -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LOCALIZE_PASSES_H
#define TESSERA_LOCALIZE_PASSES_H

#include "TensorView/Contract.h"

#include "mlir/Pass/Pass.h"

namespace tessera::tv {

#define GEN_PASS_DECL
#include "Localize/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Localize/Passes.h.inc"

} // namespace tessera::tv

#endif // TESSERA_LOCALIZE_PASSES_H
