//===- ExtentAnalysis.h - the extents of every tensor of a function
//--------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_EXTENTANALYSIS_H
#define TESSERA_TENSORVIEW_EXTENTANALYSIS_H

#include "TensorView/TensorView.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::tv {

/// Global extents as numbers or polynomials of the function's dynamic sizes. A
/// `?` of an argument is named by `tv.dims`; that of a result follows from the
/// op's iteration factors, or, for a reshape, from matching extents from the
/// left.
class ExtentAnalysis {
public:
  /// Fails, with an error at the op, when an extent does not follow.
  static llvm::FailureOr<ExtentAnalysis> run(mlir::func::FuncOp function);

  llvm::ArrayRef<layout::Extent> get(mlir::Value value) const {
    return extents.find(value)->second;
  }
  /// With dynamic sizes at their declared maximum.
  layout::Shape getMaximumShape(mlir::Value value) const;
  int64_t getMaximumBytes(mlir::Value value) const;
  static int64_t getElementBytes(mlir::Value value);

  const std::map<std::string, int64_t> &getMaximums() const { return maximums; }

private:
  llvm::LogicalResult addArguments(mlir::func::FuncOp function);
  llvm::LogicalResult addResults(mlir::Operation *op);

  std::map<std::string, int64_t> maximums;
  llvm::DenseMap<mlir::Value, std::vector<layout::Extent>> extents;
};

} // namespace tessera::tv

#endif // TESSERA_TENSORVIEW_EXTENTANALYSIS_H
