//===- Graphs.h - a recorded run, made ready to launch -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_RUN_GRAPHS_H
#define TESSERA_BACKENDS_CUDA_RUN_GRAPHS_H

#include "Backends/CUDA/Driver/Launch.h"

namespace tessera::cuda {

/// Leaves kernels alone in a graph, as far as it can: the driver launches any
/// number of them, one behind the other, in 2 us, and takes 1 us more for each
/// other node. What cuBLASLt sets is set by the runtime's kernels. The events
/// that NCCL records and waits for, in case that launches of its own overlap
/// with the graph's, are taken out: those of a context come one after the
/// other.
Status leaveKernels(Binaries &binaries, Graph graph);

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_RUN_GRAPHS_H
