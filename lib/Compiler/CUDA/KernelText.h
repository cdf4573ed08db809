//===- KernelText.h - kernels as CUDA C++ ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_CUDA_KERNELTEXT_H
#define TESSERA_COMPILER_CUDA_KERNELTEXT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>
#include <vector>

namespace tessera::cuda {

/// The extent of a loop, in terms of a kernel's arguments.
struct SpaceExtent {
  enum class Kind { Constant, Dimension, Scalar };
  Kind kind;
  int64_t constant = 0;
  unsigned argument = 0; ///< of the kernel: a memref, or a scalar
  unsigned dim = 0;
};

/// A `__global__` function; see `Function` in Module/module.fbs.
struct DeviceFunction {
  std::string symbol;
  int threads = 1;
  int shared = 0;  ///< bytes of dynamic shared memory
  int cluster = 1; ///< the number of blocks is a multiple of this
  /// There are no more blocks than run at once: each costs much to begin.
  bool persistent = false;
  std::vector<SpaceExtent> space;
  int64_t items = 1;
  /// Tensors that it reads or writes in boxes; their maps stand behind the
  /// parameters.
  struct Boxed {
    unsigned argument;
    std::vector<int32_t> box;
  };
  std::vector<Boxed> boxed;
};

/// A kernel's translation unit. Its functions run in order.
struct KernelSource {
  std::string name;
  /// A comment that leads back to the program. (Not in the text, so that equal
  /// kernels have equal texts.)
  std::string origin;
  std::string text;
  std::vector<DeviceFunction> functions;
};

/// The text of a kernel function: each of its top-level loops, or its
/// attention, becomes a device function. An op that has no text is an error at
/// its location.
mlir::FailureOr<KernelSource> emitKernel(mlir::func::FuncOp kernel);

} // namespace tessera::cuda

#endif // TESSERA_COMPILER_CUDA_KERNELTEXT_H
