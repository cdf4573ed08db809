//===- Fetch.h - rows that indices name, on GPUs --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_NCCL_FETCH_H
#define TESSERA_BACKENDS_CUDA_NCCL_FETCH_H

#include "Backends/CUDA/Driver/Launch.h"
#include "Backends/CUDA/NCCL/Communicators.h"
#include "Exec/FetchPlan.h"

namespace tessera::cuda {

/// `communicators` as makeCollective's.
Result<std::unique_ptr<Work>>
makeFetch(Binaries &binaries, Communicators *communicators,
          const fb::CollectiveT &fetch,
          const std::vector<layout::SubAxis> &axes, Tensors &tensors);

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_NCCL_FETCH_H
