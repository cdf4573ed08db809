//===- TensorViewConvolutions.h - windows that move over a tensor --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_TENSORVIEWCONVOLUTIONS_H
#define TESSERA_TENSORVIEW_TENSORVIEWCONVOLUTIONS_H

#include "TensorView/TensorView.h"

namespace tessera::tv {

/// Along one dimension; in elements of it.
struct Window {
  int64_t size, stride, low, high, dilation;
  /// From its first element to its last.
  int64_t span() const { return (size - 1) * dilation + 1; }
};

/// Of an op with the lists of tv.conv; what is not given has its default.
template <typename Op>
llvm::SmallVector<Window> getWindows(Op op, llvm::ArrayRef<int64_t> sizes) {
  llvm::SmallVector<Window> windows;
  for (auto [i, size] : llvm::enumerate(sizes)) {
    auto at = [&, i = i](auto list, int64_t otherwise) {
      return list ? (*list)[i] : otherwise;
    };
    windows.push_back({size, at(op.getStrides(), 1), at(op.getLow(), 0),
                       at(op.getHigh(), 0), at(op.getDilations(), 1)});
  }
  return windows;
}
llvm::SmallVector<Window> getWindows(ConvOp op);
llvm::SmallVector<Window> getWindows(PoolOp op);

} // namespace tessera::tv

#endif // TESSERA_TENSORVIEW_TENSORVIEWCONVOLUTIONS_H
