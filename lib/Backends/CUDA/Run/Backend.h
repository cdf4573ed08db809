//===- Backend.h - running on an NVIDIA GPU -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_RUN_BACKEND_H
#define TESSERA_BACKENDS_CUDA_RUN_BACKEND_H

#include "Exec/Backend.h"

namespace tessera {

/// As in tessera_context_options.
struct CUDAOptions {
  uint32_t flags;
  Allocator allocator;
  const int32_t *device;
  const char *algorithms;
};

Outcome<std::unique_ptr<Backend>> createCUDABackend(const CUDAOptions &options,
                                                    Peers &peers);

} // namespace tessera

#endif // TESSERA_BACKENDS_CUDA_RUN_BACKEND_H
