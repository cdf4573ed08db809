//===- EmitModule.h - from a planned program to a module file -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_EMITMODULE_H
#define TESSERA_COMPILER_EMITMODULE_H

#include "Plan/KernelCode.h"

#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// The module file of a program whose `@main` holds ops of `plan` and `comm`
/// only.
mlir::FailureOr<std::string> emitModule(mlir::ModuleOp program,
                                        llvm::StringRef report,
                                        plan::KernelCode code);

} // namespace tessera

#endif // TESSERA_COMPILER_EMITMODULE_H
