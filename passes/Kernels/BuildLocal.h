//===- BuildLocal.h - types and ops of local tensors -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_BUILDLOCAL_H
#define TESSERA_KERNELS_BUILDLOCAL_H

#include "Kernels/Passes.h"

namespace tessera {

inline mlir::Type getElement(mlir::Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType()).getElementType();
}

/// A local tensor type, a dimension at a time.
struct LocalShape {
  tv::MeshAttr mesh;
  std::vector<layout::Dim> dims;
  std::vector<layout::Extent> extents;
  std::vector<layout::Partial> partial;

  LocalShape() = default;
  explicit LocalShape(mlir::Value tensor) {
    const tv::LocalAttr local = tv::getLocal(tensor);
    mesh = local.getView().getMesh();
    dims = local.getLayoutView().dims;
    extents = local.getExtents();
  }
  /// No dimension stands for several.
  bool isPlain() const {
    return llvm::all_of(dims,
                        [](const layout::Dim &dim) { return dim.span == 1; });
  }
  LocalShape take(llvm::ArrayRef<int64_t> which) const {
    LocalShape result;
    result.mesh = mesh;
    for (int64_t dim : which)
      result.add(*this, dim);
    return result;
  }
  void add(const LocalShape &other, int64_t dim) {
    dims.push_back(other.dims[dim]);
    extents.push_back(other.extents[dim]);
  }
  void add(const layout::Extent &extent) {
    layout::Shape shape = {extent.asShape()};
    dims.push_back(
        layout::canonicalize(layout::View::replicated(1), shape, mesh.getMesh())
            .dims[0]);
    extents.push_back(extent);
  }
  /// Under the partial states of `tensor`, and a sum over each of `dims`.
  LocalShape summed(mlir::Value tensor,
                    llvm::ArrayRef<layout::Dim> dims = {}) const {
    LocalShape result = *this;
    result.partial = tv::getLocal(tensor).getLayoutView().partial;
    std::vector<layout::SubAxis> axes;
    for (const layout::Dim &dim : dims)
      llvm::append_range(axes, layout::axesOf(dim.product));
    if (axes.empty())
      return result;
    for (layout::Partial &state : result.partial)
      if (state.combiner == layout::Combiner::Sum) {
        llvm::append_range(state.axes, axes);
        return result;
      }
    result.partial.push_back({axes, layout::Combiner::Sum});
    return result;
  }
  mlir::RankedTensorType type(mlir::Type element) const {
    layout::View view;
    view.dims = dims;
    view.partial = partial;
    layout::Shape shape;
    for (const layout::Extent &extent : extents)
      shape.push_back(extent.asShape());
    auto attribute = tv::ViewAttr::get(mesh.getContext(), mesh, view);
    return tv::getLocalType(
        mlir::RankedTensorType::get(shape, element, attribute), extents);
  }
};

/// Builds tv ops on local tensors.
struct Build {
  mlir::OpBuilder &b;
  mlir::Location loc;

  using Body =
      llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)>;

  mlir::Value map(mlir::ValueRange inputs, const LocalShape &shape,
                  mlir::Type element, Body body) {
    return map(inputs, shape.type(element), body);
  }
  mlir::Value map(mlir::ValueRange inputs, mlir::RankedTensorType type,
                  Body body) {
    auto map = tv::MapOp::create(b, loc, mlir::TypeRange(type), inputs);
    mlir::Block &block = map.getBody().emplaceBlock();
    for (mlir::Value input : inputs)
      block.addArgument(tv::getScalarType(getElement(input)), loc);
    mlir::OpBuilder inner = mlir::OpBuilder::atBlockBegin(&block);
    mlir::Value result = body(inner, block.getArguments());
    tv::YieldOp::create(inner, loc, result);
    return map.getResult(0);
  }
  mlir::Value broadcast(mlir::Value input, llvm::ArrayRef<int64_t> dims,
                        const LocalShape &shape, mlir::Value like) {
    mlir::Type element = getElement(input);
    return tv::BroadcastOp::create(b, loc, shape.type(element), input,
                                   b.getDenseI64ArrayAttr(dims), like);
  }
  mlir::Value iota(int64_t dim, const LocalShape &shape, mlir::Value like) {
    return tv::IotaOp::create(b, loc, shape.type(b.getI64Type()),
                              b.getI64IntegerAttr(dim), like);
  }
  mlir::Value reduce(tv::Combiner combiner, mlir::Value input, int64_t dim,
                     const LocalShape &shape) {
    mlir::Type element = getElement(input);
    return tv::ReduceOp::create(b, loc, shape.type(element), combiner, input,
                                b.getDenseI64ArrayAttr(dim));
  }
  mlir::Value transpose(mlir::Value input, llvm::ArrayRef<int64_t> perm) {
    mlir::Type element = getElement(input);
    return tv::TransposeOp::create(
        b, loc, LocalShape(input).take(perm).summed(input).type(element), input,
        b.getDenseI64ArrayAttr(perm));
  }
  /// In a wider element type.
  mlir::Value widen(mlir::Value input, mlir::Type element) {
    if (getElement(input) == element)
      return input;
    return map(input, LocalShape(input).summed(input), element,
               [&](mlir::OpBuilder &b, mlir::ValueRange args) -> mlir::Value {
                 return mlir::arith::ExtFOp::create(b, loc, element, args[0]);
               });
  }
};

} // namespace tessera

#endif // TESSERA_KERNELS_BUILDLOCAL_H
