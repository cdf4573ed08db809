//===- Target.h - x86-64 --------------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CPU_TARGET_H
#define TESSERA_COMPILER_TARGETS_CPU_TARGET_H

namespace tessera::cpu {

/// Makes the target "cpu" known.
void registerTargets();

} // namespace tessera::cpu

#endif // TESSERA_COMPILER_TARGETS_CPU_TARGET_H
