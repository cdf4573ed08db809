//===- CoreBuilder.cpp - core ops from an op ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorView/CoreBuilder.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

/// The type of `type` without dimensions `dropped`, with other elements. Null
/// when `type` is local and a dropped dimension is split or flat.
static RankedTensorType without(RankedTensorType type,
                                ArrayRef<int64_t> dropped, Type element) {
  auto keep = [&](int64_t dim) { return !llvm::is_contained(dropped, dim); };
  layout::Shape shape = getGlobalShape(type);
  SmallVector<int64_t> kept;
  for (int64_t d = 0, e = shape.size(); d < e; ++d)
    if (keep(d))
      kept.push_back(shape[d]);
  auto local = dyn_cast_or_null<LocalAttr>(type.getEncoding());
  if (!local)
    return RankedTensorType::get(kept, element);
  if (dropped.empty())
    return RankedTensorType::get(type.getShape(), element, local);

  const layout::View &from = local.getLayoutView();
  if (from.dims.size() != shape.size())
    return {};
  layout::View to = from;
  to.dims.clear();
  std::vector<layout::Extent> extents;
  for (int64_t d = 0, e = shape.size(); d < e; ++d) {
    if (!keep(d)) {
      if (!layout::axesOf(from.dims[d].product).empty())
        return {};
      continue;
    }
    to.dims.push_back(from.dims[d]);
    extents.push_back(local.getExtents()[d]);
  }
  if (from.alloc) {
    to.alloc.emplace();
    for (int64_t d : *from.alloc)
      if (keep(d))
        to.alloc->push_back(
            d - llvm::count_if(dropped, [&](int64_t x) { return x < d; }));
  }
  auto global = RankedTensorType::get(kept, element, local.getView().with(to));
  return getLocalType(global, std::move(extents));
}

RankedTensorType Core::like(Value value, Type element) {
  return without(typeOf(value), {}, element);
}

RankedTensorType Core::likePart(Value value, Type element, Value part) {
  RankedTensorType type = like(value, element);
  auto local = dyn_cast_or_null<LocalAttr>(type.getEncoding());
  if (!local)
    return type;
  layout::View view = local.getLayoutView();
  view.partial.clear();
  if (part)
    if (auto of = dyn_cast_or_null<LocalAttr>(typeOf(part).getEncoding()))
      view.partial = of.getLayoutView().partial;
  return withEncoding(type, LocalAttr::get(type.getContext(),
                                           local.getView().with(view),
                                           local.getExtents()));
}

RankedTensorType Core::keep(Value value, ArrayRef<int64_t> dims, Type element) {
  SmallVector<int64_t> others;
  for (int64_t d = 0, e = getGlobalShape(value.getType()).size(); d < e; ++d)
    if (!llvm::is_contained(dims, d))
      others.push_back(d);
  return without(typeOf(value), others, element);
}

RankedTensorType Core::append(RankedTensorType before, ArrayRef<int64_t> added,
                              Type element) {
  layout::Shape shape = getGlobalShape(before);
  llvm::append_range(shape, added);
  auto type = RankedTensorType::get(shape, element);
  auto local = dyn_cast_or_null<LocalAttr>(before.getEncoding());
  if (!local)
    return type;
  layout::View view = local.getLayoutView();
  if (view.dims.size() + added.size() != shape.size())
    return {};
  view.alloc.reset();
  std::vector<layout::Extent> extents = local.getExtents();
  for (int64_t extent : added) {
    view.dims.push_back(layout::canonicalize(layout::View::replicated(1),
                                             {extent}, local.getLayoutMesh())
                            .dims[0]);
    extents.push_back(extent);
  }
  return getLocalType(withEncoding(type, local.getView().with(view)),
                      std::move(extents));
}

SmallVector<Value> Core::map(ValueRange inputs, ArrayRef<Type> results,
                             Function function) {
  auto map = MapOp::create(builder, loc, results, inputs);
  Block &block = map.getBody().emplaceBlock();
  for (Value input : inputs)
    block.addArgument(getScalarType(elementOf(input)), loc);
  ImplicitLocOpBuilder b(loc, builder.getContext());
  b.setInsertionPointToEnd(&block);
  SmallVector<Value> arguments;
  for (Value argument : block.getArguments())
    arguments.push_back(isa<BFloat16Type, Float16Type>(argument.getType())
                            ? arith::ExtFOp::create(b, b.getF32Type(), argument)
                            : argument);
  SmallVector<Value> values = function(b, arguments);
  for (auto [value, type] : llvm::zip_equal(values, results)) {
    Type element = getScalarType(cast<RankedTensorType>(type).getElementType());
    if (value.getType() != element)
      value = arith::TruncFOp::create(b, element, value);
  }
  YieldOp::create(b, values);
  return SmallVector<Value>(map.getResults());
}

Value Core::reduce(Combiner combiner, Value input, int64_t dim) {
  RankedTensorType type = without(typeOf(input), {dim}, elementOf(input));
  if (!type) {
    op->emitOpError() << "cannot be decomposed on local types when dimension "
                      << dim << " is split; decompose it before";
    return {};
  }
  return ReduceOp::create(builder, loc, type, combiner, input,
                          ArrayRef<int64_t>{dim});
}

Value Core::broadcast(Value value, ArrayRef<int64_t> dims, Value shape) {
  layout::Shape extents = getGlobalShape(shape.getType());
  bool dynamic = false;
  for (auto [d, extent] : llvm::enumerate(extents))
    dynamic |=
        extent == layout::kDynamic && !llvm::is_contained(dims, int64_t(d));
  return BroadcastOp::create(builder, loc,
                             likePart(shape, elementOf(value), value), value,
                             dims, dynamic ? shape : Value());
}

Value Core::broadcastBack(Value value, int64_t dim, Value shape) {
  SmallVector<int64_t> dims;
  for (int64_t d = 0, e = getGlobalShape(shape.getType()).size(); d < e; ++d)
    if (d != dim)
      dims.push_back(d);
  return broadcast(value, dims, shape);
}

Value Core::iota(int64_t dim, Value shape, Type element) {
  return IotaOp::create(builder, loc, likePart(shape, element), dim,
                        likeIfDynamic(shape));
}

Value Core::extentLike(Value value, Type element, Value shape, int64_t dim) {
  auto scalar = RankedTensorType::get({}, element);
  if (auto local = dyn_cast_or_null<LocalAttr>(typeOf(shape).getEncoding())) {
    layout::View whole; // on every device
    if (local.getLayoutView().alloc)
      whole.alloc.emplace();
    scalar = getLocalType(
        RankedTensorType::get({}, element, local.getView().with(whole)), {});
  }
  Value size = SizeOp::create(builder, loc, scalar, shape, dim);
  return broadcast(size, {}, value);
}

Value Core::divideByExtent(Value numerator, Value shape, int64_t dim) {
  int64_t extent = getGlobalShape(shape.getType())[dim];
  if (extent != layout::kDynamic)
    return map(numerator, like(numerator, elementOf(numerator)),
               [&](ImplicitLocOpBuilder &b, ArrayRef<Value> x) {
                 return SmallVector<Value>{arith::DivFOp::create(
                     b, x[0], constant(b, x[0].getType(), extent))};
               });
  Value sizes = extentLike(numerator, elementOf(numerator), shape, dim);
  return map({numerator, sizes}, like(numerator, elementOf(numerator)),
             [&](ImplicitLocOpBuilder &b, ArrayRef<Value> x) {
               return SmallVector<Value>{arith::DivFOp::create(b, x[0], x[1])};
             });
}
