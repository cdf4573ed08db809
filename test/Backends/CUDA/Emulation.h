//===- Emulation.h - the runtime's kernels on the host --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels/cuda/base/runtime.cu compiled as C++: each block is one thread, blocks
// run one after the other. Good for what it computes, not for races.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_RUNTIME_CUDA_EMULATION_H
#define TESSERA_TEST_RUNTIME_CUDA_EMULATION_H

#include <cstddef>
#include <string_view>

namespace tessera::test {

struct Emulated {
  /// Runs the kernel with its parameter at `argument`.
  void (*run)(unsigned blocks, const void *argument) = nullptr;
  size_t argumentBytes = 0;
};

/// Its `run` is null when runtime.cu has no kernel of that name.
Emulated findEmulated(std::string_view name);

} // namespace tessera::test

#endif // TESSERA_TEST_RUNTIME_CUDA_EMULATION_H
