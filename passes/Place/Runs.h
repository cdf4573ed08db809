//===- Runs.h - a split dimension as two: its runs, and where in one ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A dimension of n elements in runs of `run`, each whole on one device, is two:
// [ceil(n / run), run]. What is done along a run is done where it is.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLACE_RUNS_H
#define TESSERA_PLACE_RUNS_H

#include "TensorView/TensorView.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tessera::tv {

/// How many adjacent elements each device has at least of dimension `dim` of
/// `value`. None where devices do not share it, or no run is known: of partial
/// values, merged dimensions, bounded groups, and dynamic ones.
std::optional<int64_t> getRun(mlir::Value value, int64_t dim);

/// `type` with `extents` in place of that of `dim`, and without a view.
mlir::RankedTensorType replaceExtent(mlir::RankedTensorType type, int64_t dim,
                                     llvm::ArrayRef<int64_t> extents,
                                     mlir::Type element);

/// That with one extent, which all devices have whole; the other dimensions lie
/// as those of `like`.
mlir::RankedTensorType makeWhole(mlir::Value like, int64_t dim, int64_t extent,
                                 mlir::Type element);

/// `value` with two dimensions in place of `dim`; the last run is filled up.
mlir::Value splitIntoRuns(mlir::ImplicitLocOpBuilder &builder,
                          mlir::Value value, int64_t dim, int64_t run,
                          mlir::TypedAttr fill);

/// One for each of `count` dimensions: `value` at `dim`, else 0.
llvm::SmallVector<int64_t> atDim(int64_t dim, int64_t value, int64_t count);

} // namespace tessera::tv

#endif // TESSERA_PLACE_RUNS_H
