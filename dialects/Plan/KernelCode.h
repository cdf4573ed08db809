//===- KernelCode.h - kernels as code of a target -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a target gives for the kernels of a plan. A module is a transcription of
// it; what its parts mean at run time is in Module/module.fbs.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLAN_KERNELCODE_H
#define TESSERA_PLAN_KERNELCODE_H

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/LogicalResult.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tessera::plan {

/// What of it is for people, and with what it is made.
struct CodeOptions {
  /// Keeps a text under a name; null: none is kept.
  std::function<llvm::LogicalResult(llvm::StringRef name, llvm::StringRef text)>
      dump;
  /// The folder where each kernel becomes a program of its own; empty: none.
  std::string programs;
  /// NVRTC's library or its folder; empty: where it usually is.
  std::string nvrtc;
  /// Called with how many kernels are compiled, of how many; null: nobody asks.
  std::function<void(size_t done, size_t all)> progress;
};

/// The extent of a loop, in terms of a kernel's arguments.
struct SpaceExtent {
  enum class Kind { Constant, Dimension, Scalar };
  Kind kind;
  int64_t constant = 0;
  unsigned argument = 0; ///< of the kernel: a memref, or a scalar
  unsigned dim = 0;
};

/// A function for a GPU; see `Function` in Module/module.fbs.
struct DeviceFunction {
  std::string symbol;
  int threads = 1;
  int shared = 0;  ///< bytes of dynamic shared memory
  int cluster = 1; ///< the number of blocks is a multiple of this
  /// There are no more blocks than run at once: each costs much to begin.
  bool persistent = false;
  /// It starts when the function before lets it, and waits itself for what that
  /// one does (`wait_before` of ptx.cuh).
  bool early = false;
  std::vector<SpaceExtent> space;
  int64_t items = 1;
  /// Tensors that it reads or writes in boxes; their maps stand behind the
  /// parameters.
  struct Boxed {
    unsigned argument;
    std::vector<int32_t> box;
    /// Boxes end where a sequence of its rows does (attention_packed.cuh).
    bool ragged = false;
  };
  std::vector<Boxed> boxed;
};

struct KernelCode {
  std::string bytes; ///< the module's section of code
  /// What lies in it for a GPU: cubins, and PTX beside those that are for no GPU
  /// alone.
  struct Binary {
    std::string name;
    size_t offset, size, ptxOffset, ptxSize;
  };
  std::vector<Binary> binaries;
  /// For a GPU what launches each kernel: its binary, and the functions in it.
  struct Kernel {
    int32_t binary;
    std::vector<DeviceFunction> functions;
  };
  llvm::StringMap<Kernel> kernels;
};

} // namespace tessera::plan

#endif // TESSERA_PLAN_KERNELCODE_H
