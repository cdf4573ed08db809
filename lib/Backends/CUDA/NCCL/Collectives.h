//===- Collectives.h - collectives on GPUs --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_NCCL_COLLECTIVES_H
#define TESSERA_BACKENDS_CUDA_NCCL_COLLECTIVES_H

#include "Backends/CUDA/Driver/Launch.h"
#include "Backends/CUDA/NCCL/Communicators.h"
#include "Exec/CollectivePlan.h"

namespace tessera::cuda {

/// Whether ranks may exchange anything in it: the same answer on all.
bool movesBetweenRanks(const fb::CollectiveT &collective,
                       const layout::Mesh &mesh);

/// `communicators` is null where nothing moves between ranks, else outlives the
/// result.
Result<std::unique_ptr<Work>>
makeCollective(Binaries &binaries, Communicators *communicators,
               const fb::CollectiveT &collective,
               const std::vector<layout::SubAxis> &axes, Tensors &tensors);

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_NCCL_COLLECTIVES_H
