//===- KernelText.h - kernels as CUDA C++ ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CUDA_KERNELTEXT_H
#define TESSERA_COMPILER_TARGETS_CUDA_KERNELTEXT_H

#include "Plan/KernelCode.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>
#include <vector>

namespace tessera::cuda {

using plan::DeviceFunction;
using plan::SpaceExtent;

/// A kernel's translation unit. Its functions run in order.
struct KernelSource {
  std::string name;
  /// A comment that leads back to the program. (Not in the text, so that equal
  /// kernels have equal texts.)
  std::string origin;
  std::string text;
  std::vector<DeviceFunction> functions;
};

/// The text of a kernel function whose schedule is verified: each of its
/// top-level loops, or its attention, becomes a device function. An op that has
/// no text is an error at its location.
mlir::FailureOr<KernelSource> emitKernel(mlir::func::FuncOp kernel);

} // namespace tessera::cuda

#endif // TESSERA_COMPILER_TARGETS_CUDA_KERNELTEXT_H
