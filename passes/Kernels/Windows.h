//===- Windows.h - slices that move no data -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_WINDOWS_H
#define TESSERA_KERNELS_WINDOWS_H

#include "Comm/Comm.h"
#include "TensorView/TensorView.h"

namespace tessera {

/// Where each local dimension of a box that the op takes out of its operand
/// begins in that, as a global number, if each device's part is a window on
/// what it has of the operand.
std::optional<llvm::SmallVector<int64_t>> getWindow(mlir::Operation *op);

/// Of an op that takes the dimensions of its operand in another order, which of
/// them each of the result's is; nothing of other ops, or none.
std::optional<llvm::SmallVector<int64_t>> getPermutation(mlir::Operation *op);

/// Whether all who read a window on memory of its operand's own copy it: as a
/// result of the program, or for a reshape that there are no strides for.
bool isCopiedWindow(mlir::Operation *op);

/// Whether each device's part lies in what it has as one window.
bool isWindow(comm::SliceOp slice);

} // namespace tessera

#endif // TESSERA_KERNELS_WINDOWS_H
