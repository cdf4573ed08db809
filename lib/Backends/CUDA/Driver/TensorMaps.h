//===- TensorMaps.h - tensors as the copy engine of an SM sees them -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel that reads or writes boxes of a tensor by TMA gets the tensor as a
// map: 128 bytes that the driver encodes when addresses are known.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_DRIVER_TENSORMAPS_H
#define TESSERA_BACKENDS_CUDA_DRIVER_TENSORMAPS_H

#include "Backends/CUDA/Driver/Device.h"
#include "Exec/LocalTensors.h"

namespace tessera::cuda {

/// What the driver is told of a tensor but for its address. Dimensions count
/// from the innermost of the box, the last of the tensor.
struct TensorMap {
  static constexpr size_t kBytes = 128, kAlignment = 64;

  int type = 0; ///< the driver's number
  std::vector<uint64_t> sizes;
  std::vector<uint64_t> strides; ///< in bytes, of all dimensions but the first
  std::vector<uint32_t> box;

  /// Boxes have one extent for each dimension of the tensor, outermost first; a
  /// row of one is 128 bytes. Says why a tensor cannot be read in boxes.
  static Result<TensorMap> create(const LocalTensor &tensor,
                                  std::span<const int32_t> box);
  /// Of rows of many sequences, [1, heads, rows, columns]: a box ends where its
  /// sequence does, as attention_packed.cuh of Kernels/cuda says.
  static Result<TensorMap> createRagged(const LocalTensor &tensor,
                                        std::span<const int32_t> box);

  /// A tensor without elements is never read.
  bool isEmpty() const;
  /// Writes the map for a tensor at `address` to `to`; zeros for an empty one.
  Status encode(const Device &device, const std::byte *address,
                std::byte *to) const;
};

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_DRIVER_TENSORMAPS_H
