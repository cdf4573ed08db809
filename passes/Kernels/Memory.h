//===- Memory.h - how values of a plan lie in memory ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_MEMORY_H
#define TESSERA_KERNELS_MEMORY_H

#include "TensorView/ElementBuilder.h"
#include "TensorView/TensorView.h"

namespace tessera {

using tv::getLocal;
using tv::getSpace;
using tv::LocalDim;
using tv::Space;

/// How a value lies in memory, as far as it is known without sizes.
struct Memory {
  /// Local dimensions, outermost first.
  llvm::SmallVector<int64_t> order;
  /// For each place in `order`, whether a step of the dimension before may be
  /// more than all of this one.
  llvm::SmallVector<bool> cut;
  /// Whether the last of `order` has stride 1.
  bool unit = true;

  bool isRowMajor() const;
};

/// Memory of its own in the order of the view's `alloc`.
Memory getOwnMemory(mlir::Type type);
/// How a value of the plan lies: a window as its source does, any other in
/// memory of its own.
Memory getMemory(mlir::Value planned);
/// How a box of type `to` lies in what lies so, of type `from`.
Memory getBoxMemory(Memory memory, mlir::Type from, mlir::Type to);
/// How what lies so, of type `from`, lies as its reshape of type `to`; nothing
/// if there may be no strides for that.
std::optional<Memory> getReshapedMemory(const Memory &memory, mlir::Type from,
                                        mlir::Type to);
/// Whether a reshape of what lies so, of type `from`, is to be a window on it.
bool mayBeReshaped(const Memory &memory, mlir::Type from, mlir::Type to);

/// Where runs of dimensions end that a reshape makes of each other.
struct ReshapedRun {
  size_t from, to;
};
/// The runs, as short as can be; nothing where extents do not tell.
std::optional<llvm::SmallVector<ReshapedRun>>
getReshapedRuns(llvm::ArrayRef<layout::Extent> from,
                llvm::ArrayRef<layout::Extent> to);

/// Whether each device has a multiple of `of` of the first `count` of a
/// dimension.
bool hasMultiple(const LocalDim &dim, int64_t count, int64_t of);
/// Whether, with dimension `unit` innermost in memory, all other strides of a
/// planned value and the place of its first element are multiples of 8
/// elements.
bool isAligned(mlir::Value planned, int64_t unit);

/// Whether steps may write the operands of a concat in their places in the
/// result's memory.
bool mayBeJoined(tv::WindowOpInterface op);
/// Whether what a step makes may be written to memory of `planned`'s own, which
/// has it in other dimensions.
bool mayBeReturned(mlir::Value planned);

} // namespace tessera

#endif // TESSERA_KERNELS_MEMORY_H
