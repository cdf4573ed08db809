//===- TensorViewVerify.h - checks that verifiers share ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of this folder only. All give an error at the op.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_TENSORVIEWVERIFY_H
#define TESSERA_TENSORVIEW_TENSORVIEWVERIFY_H

#include "TensorView/TensorView.h"

namespace tessera::tv::checks {

inline mlir::Type elementOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getElementType();
}
inline layout::Shape shapeOf(mlir::Value value) {
  return getGlobalShape(value.getType());
}
/// Of the whole tensor; a local one may merge dimensions.
int64_t rankOf(mlir::Value value);
inline bool isDynamic(int64_t extent) { return extent == layout::kDynamic; }
inline std::string extentText(int64_t extent) {
  return isDynamic(extent) ? "?" : std::to_string(extent);
}

/// A tensor among an op's operands and results, or that its regions load.
struct Place {
  mlir::Value value;
  enum { Operand, Result, Captured } role;
  size_t number;
  std::string name() const; ///< in messages
};
llvm::SmallVector<Place> placesOf(mlir::Operation *op);

/// The mesh of a global or local type; null if it has none.
MeshAttr meshOf(mlir::Type type);

/// Element types that exist; encodings that are ours and fit each other; one
/// mesh, captured tensors included.
llvm::LogicalResult verifyTensors(mlir::Operation *op);
/// Dimensions of the same factors have the same extent.
llvm::LogicalResult verifyExtents(mlir::Operation *op);
/// The same where each loop is a dimension of all tensors, which have one rank:
/// no rule is built.
llvm::LogicalResult verifySameExtents(mlir::Operation *op,
                                      llvm::ArrayRef<Place> places);

llvm::LogicalResult verifyRank(mlir::Operation *op, mlir::Value value,
                               llvm::StringRef name, int64_t rank);
llvm::LogicalResult verifyRankAtLeast(mlir::Operation *op, mlir::Value value,
                                      llvm::StringRef name, int64_t rank);
llvm::LogicalResult verifyDim(mlir::Operation *op, int64_t dim,
                              mlir::Value value);

/// A set of element types, with its name in messages.
struct Elements {
  bool (*contains)(mlir::Type);
  llvm::StringLiteral name;
};
extern const Elements kFloats;     ///< f64, f32, bf16, f16
extern const Elements kNumbers;    ///< all but f8 and i1
extern const Elements kIndices;    ///< i32, i64
extern const Elements kCounts;     ///< i32, i64, f32, f64
extern const Elements kConditions; ///< i1
extern const Elements kStored;     ///< all
llvm::LogicalResult verifyElement(mlir::Operation *op, mlir::Value value,
                                  llvm::StringRef name,
                                  const Elements &elements);
/// All of `values` have the element type of the first.
llvm::LogicalResult verifySameElement(mlir::Operation *op,
                                      mlir::ValueRange values);

/// One shape for all operands and the result, and one element type for those of
/// `alike`, which are all if none are given.
llvm::LogicalResult verifyPointwise(mlir::Operation *op,
                                    const Elements &elements,
                                    mlir::ValueRange alike = {});

/// A rank-0 i64, if there is one.
llvm::LogicalResult verifyStep(mlir::Operation *op, mlir::Value step);

llvm::LogicalResult verifyDense(mlir::Operation *op,
                                llvm::ArrayRef<int64_t> list,
                                llvm::StringRef name, int64_t size);
/// Ascending, in [0, rank).
llvm::LogicalResult verifyAscending(mlir::Operation *op,
                                    llvm::ArrayRef<int64_t> dims, int64_t rank);
/// `like` gives the extents of the result, and does so where it must.
llvm::LogicalResult verifyLike(mlir::Operation *op, mlir::Value like,
                               mlir::Value result,
                               llvm::ArrayRef<int64_t> fromOperand = {});

/// Arguments and yielded values of the given types; only arith, math, tv.load,
/// and tv.accumulate, which sees to its place; nothing from outside but tensors
/// that tv.load reads.
llvm::LogicalResult verifyScalarRegion(mlir::Operation *op,
                                       mlir::Region &region,
                                       llvm::StringRef name,
                                       mlir::TypeRange arguments,
                                       mlir::TypeRange yields);
/// The element type of sums and scalars.
mlir::Type getWide(mlir::Value value);

} // namespace tessera::tv::checks

#endif // TESSERA_TENSORVIEW_TENSORVIEWVERIFY_H
