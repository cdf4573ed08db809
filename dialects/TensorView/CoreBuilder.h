//===- CoreBuilder.h - core ops from an op --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of this folder only: what composites become, and gradients. Values in between
// have no encoding, so that propagation decides theirs; on local types they get
// the local type that follows from the op's.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_COREBUILDER_H
#define TESSERA_TENSORVIEW_COREBUILDER_H

#include "TensorView/TensorView.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tessera::tv {

/// Builds core ops at an op's place.
class Core {
public:
  Core(mlir::OpBuilder &builder, mlir::Operation *op, mlir::Location loc)
      : builder(builder), op(op), loc(loc) {}
  Core(mlir::OpBuilder &builder, mlir::Operation *op)
      : Core(builder, op, op->getLoc()) {}

  mlir::OpBuilder &builder;
  mlir::Operation *op;
  mlir::Location loc;

  static mlir::RankedTensorType typeOf(mlir::Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType());
  }
  static mlir::Type elementOf(mlir::Value value) {
    return typeOf(value).getElementType();
  }
  mlir::Type wide(mlir::Value value) {
    mlir::Type element = elementOf(value);
    return element.isF64() ? element : builder.getF32Type();
  }
  /// The type of `value` with other elements and, if global, no encoding.
  mlir::RankedTensorType like(mlir::Value value, mlir::Type element);
  mlir::RankedTensorType like(mlir::Value value) {
    return like(value, elementOf(value));
  }
  /// Like `value`, but partial only as `part` is, or, without one, whole.
  mlir::RankedTensorType likePart(mlir::Value value, mlir::Type element,
                                  mlir::Value part = {});
  /// With these dimensions alone; null if another of a local `value` is split.
  mlir::RankedTensorType keep(mlir::Value value, llvm::ArrayRef<int64_t> dims,
                              mlir::Type element);
  /// With more dimensions, the last, which are whole; null if a dimension of a
  /// local type stands for several.
  mlir::RankedTensorType append(mlir::RankedTensorType type,
                                llvm::ArrayRef<int64_t> extents,
                                mlir::Type element);
  mlir::RankedTensorType result() { return typeOf(op->getResult(0)); }

  /// A map whose function computes its results from wide arguments: narrow
  /// floats come as f32 and results are rounded.
  using Function = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::ImplicitLocOpBuilder &, llvm::ArrayRef<mlir::Value>)>;
  llvm::SmallVector<mlir::Value> map(mlir::ValueRange inputs,
                                     llvm::ArrayRef<mlir::Type> results,
                                     Function function);
  mlir::Value map(mlir::ValueRange inputs, mlir::Type result,
                  Function function) {
    return map(inputs, llvm::ArrayRef<mlir::Type>(result), function)[0];
  }

  /// Reduces `dim`; null, with an error at the op, when a device has only a
  /// part of it.
  mlir::Value reduce(Combiner combiner, mlir::Value input, int64_t dim);
  /// `value` repeated along the dimensions of `shape` that are not in `dims`.
  mlir::Value broadcast(mlir::Value value, llvm::ArrayRef<int64_t> dims,
                        mlir::Value shape);
  /// `value`, reduced over `dim`, repeated along it.
  mlir::Value broadcastBack(mlir::Value value, int64_t dim, mlir::Value shape);

  mlir::Value iota(int64_t dim, mlir::Value shape, mlir::Type element);
  mlir::Value likeIfDynamic(mlir::Value shape) {
    return llvm::is_contained(getGlobalShape(shape.getType()), layout::kDynamic)
               ? shape
               : mlir::Value();
  }
  /// The extent of `dim` of `shape`, as `element` everywhere in what is like
  /// `value`.
  mlir::Value extentLike(mlir::Value value, mlir::Type element,
                         mlir::Value shape, int64_t dim);
  /// `numerator` over the extent of `dim` of `shape`.
  mlir::Value divideByExtent(mlir::Value numerator, mlir::Value shape,
                             int64_t dim);

  static mlir::Value constant(mlir::ImplicitLocOpBuilder &b, mlir::Type type,
                              double value) {
    return mlir::arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  }
};

} // namespace tessera::tv

#endif // TESSERA_TENSORVIEW_COREBUILDER_H
