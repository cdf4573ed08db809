//===- ExtentAnalysis.h - every extent as a polynomial of dynamic sizes --===//
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

namespace tessera::tv {

/// No tensor has more elements, so that a sum or two of extents, or bytes of
/// elements, cannot overflow.
inline constexpr int64_t kMaxElements = int64_t(1) << 56;

/// What `tv.sizes` declares of one size, verified.
struct DeclaredSize {
  int64_t maximum, multiple = 1;
  explicit DeclaredSize(mlir::Attribute attribute);
};

/// The global extents of every tensor of a function, in terms of the sizes that
/// `tv.sizes` declares and `tv.dims` gives to arguments. They follow through
/// the ops' rules; dimensions that must be equal must be the same polynomial.
class ExtentAnalysis {
public:
  /// Fails with an error at the op (or the function, for an argument) whose
  /// extents cannot be told.
  static llvm::FailureOr<ExtentAnalysis> run(mlir::func::FuncOp function);

  /// The same, op by op: first the arguments, then what an op gives, whose
  /// operands are known.
  static llvm::FailureOr<ExtentAnalysis>
  ofArguments(mlir::func::FuncOp function);
  llvm::LogicalResult addResults(mlir::Operation *op);

  /// One extent for each dimension of a tensor of the function.
  llvm::ArrayRef<layout::Extent> get(mlir::Value value) const {
    return extents.find(value)->second;
  }
  /// Those of a value that a pass made of `known`'s op.
  void copy(mlir::Value made, mlir::Value known) {
    extents[made] = std::vector<layout::Extent>(extents.find(known)->second);
  }
  /// With dynamic sizes at their declared maximum.
  layout::Shape getMaximumShape(mlir::Value value) const;
  /// Dynamic sizes at half of their maximum: what choices between values that
  /// grow with them and values that do not go by.
  layout::Shape getTypicalShape(mlir::Value value) const;
  /// What each extent is a multiple of, whatever the dynamic sizes are.
  layout::Shape getMultiples(mlir::Value value) const;
  static int64_t getElementBytes(mlir::Value value);

  const std::map<std::string, int64_t> &getMaximums() const { return maximums; }

private:
  llvm::LogicalResult addArguments(mlir::func::FuncOp function);
  /// Where all is static, the types say all, and the verifier has compared
  /// them. False elsewhere.
  bool addStaticResults(mlir::Operation *op);
  /// Every size in `own` has a maximum.
  llvm::LogicalResult add(mlir::Value value, std::vector<layout::Extent> own,
                          mlir::Operation *op);

  std::map<std::string, int64_t> maximums, multiples;
  llvm::DenseMap<mlir::Value, std::vector<layout::Extent>> extents;
};

} // namespace tessera::tv

#endif // TESSERA_TENSORVIEW_EXTENTANALYSIS_H
