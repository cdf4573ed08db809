//===- Memory.h - memory of the interpreter ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From kernels on a tensor is a window on memory: strides count, two windows
// may share a memory, and what nobody wrote cannot be read.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_MACHINE_MEMORY_H
#define TESSERA_INTERPRETER_MACHINE_MEMORY_H

#include "Interpreter/Ops/NDArray.h"

#include <memory>
#include <optional>

namespace tessera::interp {

struct Memory {
  mlir::Type type; ///< of the elements
  std::vector<Scalar> data;
  std::vector<char> written;
};

struct Window {
  std::shared_ptr<Memory> memory;
  Shape shape;
  Shape strides;
  int64_t offset = 0;

  /// Unwritten memory of its own, dense in `order`: dimensions, outermost
  /// first.
  static Window create(mlir::Type type, Shape shape,
                       llvm::ArrayRef<int64_t> order);
  /// The same with the elements of `array`.
  static Window create(const NDArray &array, llvm::ArrayRef<int64_t> order);

  /// The place in memory of an element; nothing if that is outside of the
  /// window or of the memory.
  std::optional<int64_t> find(llvm::ArrayRef<int64_t> index) const;
  /// The elements, or what is wrong with the first that has no value.
  Result<std::shared_ptr<NDArray>> read() const;
};

/// Strides of dense memory.
Shape stridesOf(const Shape &shape, llvm::ArrayRef<int64_t> order);
/// 0, 1, ..., rank - 1.
Shape rowMajor(size_t rank);

} // namespace tessera::interp

#endif // TESSERA_INTERPRETER_MACHINE_MEMORY_H
