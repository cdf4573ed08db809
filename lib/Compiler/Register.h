//===- Register.h - all that the compiler registers ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_REGISTER_H
#define TESSERA_COMPILER_REGISTER_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace tessera {

/// Our dialects and those that our programs use, with their interfaces.
void registerDialects(mlir::DialectRegistry &registry);
/// They and the targets, with all that makes code.
void registerAll(mlir::DialectRegistry &registry);

/// Our passes, by name on a command line.
void registerAllPasses();

} // namespace tessera

#endif // TESSERA_COMPILER_REGISTER_H
