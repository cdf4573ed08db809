//===- Memory.cpp - memory of the interpreter ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Machine/Memory.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

Shape interp::rowMajor(size_t rank) {
  Shape order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Shape interp::stridesOf(const Shape &shape, ArrayRef<int64_t> order) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (int64_t dim : llvm::reverse(order)) {
    strides[dim] = stride;
    stride *= shape[dim];
  }
  return strides;
}

Window Window::create(Type type, Shape shape, ArrayRef<int64_t> order) {
  NDArray unwritten(type, shape);
  auto memory = std::make_shared<Memory>();
  memory->type = type;
  memory->written.assign(unwritten.data.size(), false);
  memory->data = std::move(unwritten.data);
  Shape strides = stridesOf(shape, order);
  return {std::move(memory), std::move(shape), std::move(strides)};
}

Window Window::create(const NDArray &array, ArrayRef<int64_t> order) {
  Window window = create(array.type, array.shape, order);
  for (size_t i = 0; i < array.data.size(); ++i) {
    int64_t at = *window.find(delinearize(i, array.shape));
    window.memory->data[at] = array.data[i];
    window.memory->written[at] = true;
  }
  return window;
}

std::optional<int64_t> Window::find(ArrayRef<int64_t> index) const {
  int64_t at = offset;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (index[d] < 0 || index[d] >= shape[d])
      return std::nullopt;
    at += index[d] * strides[d];
  }
  if (at < 0 || at >= static_cast<int64_t>(memory->data.size()))
    return std::nullopt;
  return at;
}

Result<std::shared_ptr<NDArray>> Window::read() const {
  auto array = std::make_shared<NDArray>(memory->type, shape);
  for (size_t i = 0; i < array->data.size(); ++i) {
    Index index = delinearize(i, shape);
    std::optional<int64_t> at = find(index);
    if (!at)
      return Error{"element " + indexText(index) + " is outside of its memory"};
    if (!memory->written[*at])
      return Error{"element " + indexText(index) + " was never written"};
    array->data[i] = memory->data[*at];
  }
  return array;
}
