//===- KernelForms.h - what kernels look like -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each form writes the `__global__` function of a loop, an attention or a
// product, and says how it is launched; its symbol is given. KernelText.cpp
// chooses.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CUDA_KERNELFORMS_H
#define TESSERA_COMPILER_TARGETS_CUDA_KERNELFORMS_H

#include "Compiler/Targets/CUDA/KernelWriter.h"

namespace tessera::cuda {

/// Points or squares.
mlir::LogicalResult writePoints(KernelWriter &out, mlir::scf::ParallelOp loop,
                                DeviceFunction &function);

/// Rows of warps, blocks or columns.
mlir::LogicalResult writeRows(KernelWriter &out, mlir::scf::ParallelOp loop,
                              DeviceFunction &function);

/// Functors for attention_fwd.cuh or attention_few.cuh.
mlir::LogicalResult writeAttention(KernelWriter &out, plan::AttentionOp op,
                                   DeviceFunction &function);

/// Functors for attention_bwd.cuh, and its three functions.
mlir::LogicalResult writeAttentionGrad(KernelWriter &out,
                                       plan::AttentionGradOp op,
                                       const std::string &symbol,
                                       std::vector<DeviceFunction> &functions);

/// A call of attention_walks.cuh.
mlir::LogicalResult writeBlockWalks(KernelWriter &out, plan::BlockWalksOp op,
                                    DeviceFunction &function);

/// A functor for gemm.cuh.
mlir::LogicalResult writeProduct(KernelWriter &out, plan::ProductOp op,
                                 DeviceFunction &function);

} // namespace tessera::cuda

#endif // TESSERA_COMPILER_TARGETS_CUDA_KERNELFORMS_H
