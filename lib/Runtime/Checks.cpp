//===- Checks.cpp - outputs that must be 0 after a run ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runtime/Checks.h"
#include "Exec/Strided.h"
#include "Support/DType.h"
#include "Support/Try.h"

#include <algorithm>

using namespace tessera;

Status Checks::add(const fb::PortT &port, const LocalTensor &tensor,
                   const std::byte *memory) {
  if (tensor.elements() != product(tensor.globalShape))
    return Error{"'" + port.name + "' is checked, and split over devices"};
  checks.push_back({&port, tensor, memory});
  host.resize(
      std::max<size_t>(host.size(), tensor.elements() * tensor.elementBytes()));
  return Ok{};
}

/// The index of an element, by its number in row-major order.
static layout::Shape indexOf(int64_t number, const layout::Shape &shape) {
  layout::Shape index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0; number /= shape[dim])
    index[dim] = number % shape[dim];
  return index;
}

static Failure describe(const fb::PortT &port, const LocalTensor &tensor,
                        int64_t number, int64_t value) {
  std::string at;
  for (int64_t index : indexOf(number, tensor.globalShape))
    at += (at.empty() ? "" : ", ") + std::to_string(index);
  return {TESSERA_DATA,
          port.check + ": '" + port.name + "' is " + std::to_string(value) +
              (at.empty() ? "" : " at [" + at + "]"),
          {},
          port.location};
}

Outcome<Ok> Checks::lookAtAll(Backend &backend) {
  for (const auto &[port, tensor, memory] : checks) {
    const size_t size = tensor.elementBytes();
    const std::byte *data = memory;
    if (!backend.isHost()) {
      data = host.data();
      if (Status status =
              backend.copy(host.data(), memory, tensor.elements() * size);
          !status)
        return Failure{TESSERA_INTERNAL,
                       "'" + port->name + "': " + status.message()};
    }
    // Nothing else is of interest in most runs.
    if (std::all_of(data, data + tensor.elements() * size,
                    [](std::byte each) { return each == std::byte(); }))
      continue;
    for (int64_t number = 0; number < tensor.elements(); ++number) {
      int64_t place = 0, value = 0;
      const layout::Shape index = indexOf(number, tensor.sizes);
      for (size_t dim = 0; dim < index.size(); ++dim)
        place += index[dim] * tensor.strides[dim];
      convertElement(data + place * size, tensor.dtype, &value, DType::I64);
      if (value)
        return describe(*port, tensor, number, value);
    }
  }
  return Ok{};
}
