//===- ElementBuilder.h - what elements of tensors are made with ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op on local tensors says with ElementOpInterface what one element of its
// results is. It says so to an ElementBuilder, at some place in the code of a
// kernel; how elements of its operands come there is the builder's matter.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_ELEMENTBUILDER_H
#define TESSERA_TENSORVIEW_ELEMENTBUILDER_H

#include "TensorView/TensorView.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace tessera::tv {

/// A dimension of a local tensor: a product over the row-major number of the
/// global dimensions that it spans.
struct LocalDim {
  layout::Product product;
  std::vector<layout::Extent> extents;
  bool operator==(const LocalDim &) const = default;
};
using Space = llvm::SmallVector<LocalDim>;

/// The dimensions of a tensor type encoded with `#tv.local`.
Space getSpace(mlir::Type type);

/// Index arithmetic that folds constants.
struct Arith {
  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::AddIOp>(loc, x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::SubIOp>(loc, x, y);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::MulIOp>(loc, x, y);
  }
  mlir::Value div(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::DivUIOp>(loc, x, y);
  }
  mlir::Value rem(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::RemUIOp>(loc, x, y);
  }
  mlir::Value max(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::MaxUIOp>(loc, x, y);
  }
  mlir::Value both(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::AndIOp>(loc, x, y);
  }
  mlir::Value equal(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::CmpIOp>(
        loc, mlir::arith::CmpIPredicate::eq, x, y);
  }
  mlir::Value less(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::CmpIOp>(
        loc, mlir::arith::CmpIPredicate::ult, x, y);
  }
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::SelectOp>(loc, condition, x, y);
  }
};

/// Scalar code at one place of a kernel. Elements are in the types that kernels
/// compute in: those of scalar regions, small floats as f32. Indices are of
/// type index, local ones one for each local dimension of a tensor, global
/// ones one for each of its global dimensions.
class ElementBuilder {
public:
  virtual ~ElementBuilder();

  mlir::OpBuilder &builder() { return b; }
  mlir::Location loc() const { return location; }

  /// The element of a local tensor.
  virtual mlir::Value element(mlir::Value tensor,
                              llvm::ArrayRef<mlir::Value> indices) = 0;
  /// The element at a global index where `condition` holds and this device has
  /// it, else `otherwise`.
  mlir::Value elementAt(mlir::Value tensor, llvm::ArrayRef<mlir::Value> global,
                        mlir::Value condition, mlir::Value otherwise);
  /// What a scalar region yields for these arguments.
  virtual llvm::SmallVector<mlir::Value>
  evaluate(mlir::Block &block, llvm::ArrayRef<mlir::Value> arguments) = 0;

  /// A number of an attribute's, or 0, as an element of type `element`.
  virtual mlir::Value constant(mlir::Attribute value, mlir::Type element) = 0;
  mlir::Value zero(mlir::Type element) {
    return constant(b.getZeroAttr(element), element);
  }
  /// An i64 attribute of `op`. It is given to the kernel, so that ops that
  /// differ in it alone share one.
  virtual mlir::Value attribute(mlir::Operation *op, mlir::StringAttr name) = 0;
  /// tv.random's number for a row-major global index; `seed` and `stream`, the
  /// counter's high half, are i64.
  virtual mlir::Value randomNumber(mlir::Value number, mlir::Value seed,
                                   mlir::Value stream, int64_t bits) = 0;

  virtual mlir::Value index(int64_t value) = 0;
  /// The condition that always holds.
  virtual mlir::Value yes() = 0;
  mlir::Value fromIndex(mlir::Value index, mlir::Type element);
  mlir::Value toIndex(mlir::Value integer, mlir::Type element);
  /// 0 <= index < bound
  mlir::Value inRange(mlir::Value index, mlir::Value bound);

  /// A size as an index.
  virtual mlir::Value extent(const layout::Extent &extent) = 0;
  /// This device's extents of a tensor.
  virtual llvm::SmallVector<mlir::Value> localExtents(mlir::Value tensor) = 0;
  /// The global index of a local one.
  virtual llvm::SmallVector<mlir::Value>
  globalIndices(mlir::Type type, llvm::ArrayRef<mlir::Value> local) = 0;
  /// Whether this device holds a global index that is in range, and its local
  /// index if so.
  virtual std::pair<mlir::Value, llvm::SmallVector<mlir::Value>>
  localIndices(mlir::Type type, llvm::ArrayRef<mlir::Value> global) = 0;
  /// The same of one local dimension of a tensor.
  virtual std::pair<mlir::Value, mlir::Value>
  localIndex(mlir::Value tensor, int64_t dim, mlir::Value global) = 0;

  /// `then()` where `condition`, else `otherwise`.
  virtual mlir::Value guarded(mlir::Value condition, mlir::Value otherwise,
                              llvm::function_ref<mlir::Value()> then) = 0;
  /// A loop nest that runs in order; `body` gets the indices and the carried
  /// values and returns their next values.
  using Body = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      llvm::ArrayRef<mlir::Value> indices, mlir::ValueRange carried)>;
  virtual llvm::SmallVector<mlir::Value>
  inOrder(llvm::ArrayRef<mlir::Value> extents, mlir::ValueRange init,
          Body body) = 0;
  /// A value that is the same everywhere, computed before all loops.
  virtual mlir::Value hoisted(llvm::function_ref<mlir::Value()> emit) = 0;

  /// An error at `op`, whose elements cannot be computed; `type` is that of the
  /// value, which is of no use then.
  virtual mlir::Value fail(mlir::Operation *op, const llvm::Twine &message,
                           mlir::Type type) = 0;

protected:
  ElementBuilder(const mlir::OpBuilder &builder, mlir::Location loc)
      : b(builder), location(loc) {}

  /// The type that elements of this type are computed in.
  virtual mlir::Type getComputed(mlir::Type element) const = 0;

  mlir::OpBuilder b;
  mlir::Location location;
};

} // namespace tessera::tv

#endif // TESSERA_TENSORVIEW_ELEMENTBUILDER_H
