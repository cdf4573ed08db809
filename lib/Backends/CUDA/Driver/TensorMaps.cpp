//===- TensorMaps.cpp - tensors as the copy engine of an SM sees them -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Driver/TensorMaps.h"

#include <algorithm>
#include <cstring>

using namespace tessera;
using namespace tessera::cuda;

/// Along a dimension: coordinates of boxes, and kernels' numbers of rows
/// rounded up to their tiles, are of 32 bits with a sign.
static constexpr int64_t kMostElements = (int64_t(1) << 31) - 1024;

Result<TensorMap> TensorMap::create(const LocalTensor &tensor,
                                    std::span<const int32_t> box) {
  TensorMap map;
  if (tensor.dtype != DType::F16 && tensor.dtype != DType::BF16)
    return Error{"boxes have elements of f16 or bf16"};
  map.type = tensor.dtype == DType::F16 ? kMapF16 : kMapBF16;
  const size_t rank = tensor.sizes.size();
  if (rank < 2 || rank > 5 || box.size() != rank)
    return Error{"boxes have the tensor's 2 to 5 dimensions"};
  const int64_t bytes = tensor.elementBytes();
  if (box.back() * bytes != 128)
    return Error{"a row of a box has 128 bytes"};
  for (size_t i = rank; i-- > 0;) {
    const int64_t size = tensor.sizes[i], stride = tensor.strides[i] * bytes;
    if (box[i] < 1 || box[i] > 256)
      return Error{"boxes have 1 to 256 elements along a dimension"};
    map.sizes.push_back(size);
    map.box.push_back(box[i]);
    if (size > kMostElements)
      return Error{"dimension " + std::to_string(i) + " has more than " +
                   std::to_string(kMostElements) + " elements"};
    if (i == rank - 1) {
      if (tensor.strides[i] != 1 && size > 1)
        return Error{"the stride of its last dimension is " +
                     std::to_string(tensor.strides[i]) + ", not 1"};
      continue;
    }
    // Of one element the stride does not matter.
    const bool one = size <= 1;
    if (!one && (stride % 16 || stride < 0 || stride >= int64_t(1) << 40))
      return Error{"the stride of dimension " + std::to_string(i) + " is " +
                   std::to_string(stride) +
                   " bytes, which is no multiple of 16 below 2^40"};
    map.strides.push_back(one ? 128 : stride);
  }
  if (!map.isEmpty() && !tensor.isAligned(16))
    return Error{"its address is no multiple of 16 bytes"};
  return map;
}

// Sizes and strides are explained there: rows of a sequence lie before the end
// of a dimension of 2^30; where that end lies is the last dimension's
// coordinate, of rows - 2^30 by the third one's.
Result<TensorMap> TensorMap::createRagged(const LocalTensor &tensor,
                                          std::span<const int32_t> box) {
  Result<TensorMap> whole = create(tensor, box);
  if (!whole)
    return whole;
  if (tensor.sizes.size() != 4 || tensor.sizes[0] != 1 || box[0] != 1 ||
      box[1] != 1)
    return Error{"ragged boxes have rows of one batch and one head"};
  if (whole->isEmpty())
    return whole;
  constexpr uint64_t kRows = 1 << 30, kBack = uint64_t(1) << 34;
  const uint64_t row = whole->strides[0], head = whole->strides[1];
  if (whole->sizes[1] >= kRows || row >= kBack)
    return Error{"ragged boxes have less than 2^30 rows, of less than 2^34 "
                 "bytes"};
  whole->sizes = {whole->sizes[0], kRows, whole->sizes[2], kRows + 1,
                  whole->sizes[1] + 1};
  whole->strides = {row, head, kBack - row, row};
  whole->box = {whole->box[0], whole->box[1], 1, 1, 1};
  return whole;
}

bool TensorMap::isEmpty() const {
  return std::count(sizes.begin(), sizes.end(), uint64_t(0)) > 0;
}

Status TensorMap::encode(const Device &device, const std::byte *address,
                         std::byte *to) const {
  alignas(kAlignment) std::byte map[kBytes] = {};
  if (!isEmpty()) {
    Device::Current current(device);
    const std::vector<uint32_t> steps(sizes.size(), 1);
    // What memory lies beside a box's row of 128 bytes, L2 fetches as well:
    // where that is another row's, such as another head's, for nothing.
    const uint64_t row = sizes[0] * (128 / box[0]);
    const bool beside =
        row % 256 == 0 || (!strides.empty() && strides[0] == row);
    Status status = device.check(
        device.driver().tensorMapEncode(
            map, type, sizes.size(), const_cast<std::byte *>(address),
            sizes.data(), strides.data(), box.data(), steps.data(), kMapDense,
            kMapSwizzle128, beside ? kMapPromote256 : kMapPromote128,
            kMapZeros),
        "encode its map");
    if (!status)
      return status;
  }
  memcpy(to, map, kBytes);
  return Ok{};
}
