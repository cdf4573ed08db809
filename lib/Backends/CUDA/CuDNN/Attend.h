//===- Attend.h - attention on a GPU by cuDNN -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_CUDNN_ATTEND_H
#define TESSERA_BACKENDS_CUDA_CUDNN_ATTEND_H

#include "Backends/CUDA/CuDNN/AttentionPlan.h"
#include "Backends/CUDA/Driver/Launch.h"

namespace tessera::cuda {

/// One execution of a plan of cuDNN's.
Result<std::unique_ptr<Work>> makeAttend(Binaries &binaries, CuDNN &library,
                                         const fb::AttendT &attend,
                                         Tensors &tensors);

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_CUDNN_ATTEND_H
