//===- VerifyInput.h - what a program that was read must be ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_VERIFYINPUT_H
#define TESSERA_COMPILER_VERIFYINPUT_H

#include "Support/Result.h"

#include "mlir/Pass/Pass.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace tessera {

/// An error if `bytes` cannot be read, or if reading them crashes: MLIR's reader
/// of bytecode trusts the numbers in a file, and may crash behind an error, too.
/// So bytecode is first read in a child process, with bounds on memory and time;
/// for tools, whose process has one thread. Text passes.
Status tryBytecode(llvm::StringRef bytes, const mlir::DialectRegistry &);

/// Verifies a program that was parsed without MLIR's verifier: first its tensor
/// types, which verifiers of ops rely on, then all else. An error is at the
/// first op that is not legal.
llvm::LogicalResult verifyInput(mlir::Operation *program);

/// The same as a pass, `verify-input`.
std::unique_ptr<mlir::Pass> createVerifyInputPass();
void registerVerifyInputPass();

} // namespace tessera

#endif // TESSERA_COMPILER_VERIFYINPUT_H
