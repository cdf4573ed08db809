//===- Backend.h - running on this machine's processor --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CPU_BACKEND_H
#define TESSERA_BACKENDS_CPU_BACKEND_H

#include "Exec/Backend.h"

namespace tessera {

struct CPUOptions {
  uint32_t flags; ///< tessera_context_flags
  Allocator allocator;
};

std::unique_ptr<Backend> createCPUBackend(const CPUOptions &options,
                                          Peers &peers);

} // namespace tessera

#endif // TESSERA_BACKENDS_CPU_BACKEND_H
