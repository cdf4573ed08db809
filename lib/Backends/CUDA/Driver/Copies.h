//===- Copies.h - prepared launches of the runtime's kernels --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies between strided boxes, fills and reductions on a GPU. All that depends
// on sizes and addresses is decided here, once; a launch only hands over its
// argument. The kernels are those of Kernels/cuda/base/runtime.cu.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_DRIVER_COPIES_H
#define TESSERA_BACKENDS_CUDA_DRIVER_COPIES_H

#include "Exec/FetchPlan.h"
#include "Layout/View.h"
#include "Support/DType.h"

#include <string>
#include <vector>

namespace tessera::cuda {

/// One launch: kThreads threads a block, no dynamic shared memory.
struct RuntimeLaunch {
  static constexpr unsigned kThreads = 256;

  std::string kernel;
  unsigned blocks;
  /// The kernel's one parameter.
  std::vector<uint64_t> argument;
};

/// Each appends what does it to `launches`. Addresses are the device's, and
/// aligned to elements; `processors` is the number of multiprocessors.
class RuntimeLaunches {
public:
  explicit RuntimeLaunches(int processors) : processors(processors) {}

  /// The boxes do not overlap.
  void copy(const CopyLoop &loop, std::byte *target, const std::byte *source);
  /// One value in every element that `loop` writes.
  void fill(const CopyLoop &loop, std::byte *target, const std::byte *value,
            int64_t elementBytes);
  /// As tessera::fold, bit by bit.
  Status fold(DType dtype, layout::Combiner combiner,
              std::span<const std::byte *const> members, int64_t count,
              std::byte *target);

  /// The wanted rows, from where the members' rows lie dense.
  Status fetch(const FetchPlan &plan, std::span<const std::byte *const> members,
               std::span<const std::byte *const> indices, std::byte *result);

  std::vector<RuntimeLaunch> launches;

private:
  unsigned blocksFor(uint64_t items) const;

  int processors;
};

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_DRIVER_COPIES_H
