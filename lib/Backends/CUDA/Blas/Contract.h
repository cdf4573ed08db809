//===- Contract.h - products of tensors on a GPU --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_BLAS_CONTRACT_H
#define TESSERA_BACKENDS_CUDA_BLAS_CONTRACT_H

#include "Backends/CUDA/Blas/Chooser.h"
#include "Backends/CUDA/Driver/Launch.h"

namespace tessera::cuda {

/// Calls of cuBLASLt, and copies before and after them.
Result<std::unique_ptr<Work>> makeContract(Binaries &binaries, const Blas &blas,
                                           Chooser &chooser,
                                           const fb::ContractT &contract,
                                           Tensors &tensors);

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_BLAS_CONTRACT_H
