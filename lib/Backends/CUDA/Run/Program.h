//===- Program.h - a binding's works on a GPU -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_RUN_PROGRAM_H
#define TESSERA_BACKENDS_CUDA_RUN_PROGRAM_H

#include "Backends/CUDA/Driver/Launch.h"
#include "Exec/Backend.h"

namespace tessera::cuda {

/// `mark` is the runtime's kernel `tessera_mark`, null if no work meets peers;
/// `flags` are tessera_context_flags.
Result<std::unique_ptr<Program>>
makeProgram(Device &device, Binaries &binaries, Function mark,
            std::span<const std::unique_ptr<Work>> works, uint32_t flags);

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_RUN_PROGRAM_H
