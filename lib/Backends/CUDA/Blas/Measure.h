//===- Measure.h - the fastest algorithm of a matrix product --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_BLAS_MEASURE_H
#define TESSERA_BACKENDS_CUDA_BLAS_MEASURE_H

#include "Backends/CUDA/Blas/Algorithms.h"
#include "Backends/CUDA/Blas/Blas.h"
#include "Backends/CUDA/Driver/Device.h"

namespace tessera {
class Backend;
}

namespace tessera::cuda {

/// Times what cuBLASLt proposes for a product, in memory of its own that is
/// taken for as long as it lasts. What the heuristic chooses stays unless
/// another is faster by more than what times differ from run to run. Needs a
/// Current. (OUT_OF_MEMORY: nothing was measured.)
Outcome<Algorithms::Entry> measure(const Blas &blas, const Blas::Calls &calls,
                                   const Device &device, Backend &memory);

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_BLAS_MEASURE_H
