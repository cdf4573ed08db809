//===- InterpretPass.h - the interpreter in a pass pipeline --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_MACHINE_INTERPRETPASS_H
#define TESSERA_INTERPRETER_MACHINE_INTERPRETPASS_H

#include "mlir/Pass/PassManager.h"

namespace tessera::interp {

/// Declares the options `--interpret=N` and `--interpret-*`; before the command
/// line is parsed.
void registerInterpretOptions();

/// Builds `pipeline`; if --interpret is given, between a pass that keeps the
/// source and one that interprets what came of it. The second prints one line
/// to stdout, or fails with the first element that differs.
llvm::LogicalResult addInterpretation(
    mlir::PassManager &passes,
    llvm::function_ref<llvm::LogicalResult(mlir::PassManager &)> pipeline);

} // namespace tessera::interp

#endif // TESSERA_INTERPRETER_MACHINE_INTERPRETPASS_H
