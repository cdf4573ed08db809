//===- Runs.cpp - a split dimension as two --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Place/Runs.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

std::optional<int64_t> tv::getRun(Value value, int64_t dim) {
  ViewAttr view = tv::getView(value);
  auto type = cast<RankedTensorType>(value.getType());
  if (!view || !view.getView().partial.empty() ||
      int64_t(view.getView().dims.size()) != type.getRank() ||
      type.isDynamicDim(dim))
    return std::nullopt;
  int64_t run = 1;
  for (const layout::Factor &factor :
       llvm::reverse(view.getView().dims[dim].product)) {
    if (factor.kind == layout::Factor::Kind::Device)
      return run;
    if (factor.kind != layout::Factor::Kind::Stored)
      return std::nullopt;
    run *= factor.size;
  }
  return std::nullopt;
}

RankedTensorType tv::replaceExtent(RankedTensorType type, int64_t dim,
                                   ArrayRef<int64_t> extents, Type element) {
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + dim);
  shape.insert(shape.begin() + dim, extents.begin(), extents.end());
  return RankedTensorType::get(shape, element);
}

RankedTensorType tv::makeWhole(Value like, int64_t dim, int64_t extent,
                               Type element) {
  ViewAttr attr = tv::getView(like);
  layout::View view = attr.getView();
  view.alloc.reset();
  view.dims[dim] = layout::View::replicated(1).dims[0];
  RankedTensorType type = replaceExtent(cast<RankedTensorType>(like.getType()),
                                        dim, extent, element);
  return withEncoding(
      type, attr.with(layout::canonicalize(view, layout::Shape(type.getShape()),
                                           attr.getLayoutMesh())));
}

SmallVector<int64_t> tv::atDim(int64_t dim, int64_t value, int64_t count) {
  SmallVector<int64_t> all(count, 0);
  all[dim] = value;
  return all;
}

Value tv::splitIntoRuns(ImplicitLocOpBuilder &b, Value value, int64_t dim,
                        int64_t run, TypedAttr fill) {
  auto type = cast<RankedTensorType>(value.getType());
  const int64_t extent = type.getDimSize(dim), rank = type.getRank();
  const int64_t runs = llvm::divideCeil(extent, run);
  if (runs * run != extent)
    value = PadOp::create(
        b, replaceExtent(type, dim, runs * run, type.getElementType()), value,
        atDim(dim, 0, rank), atDim(dim, runs * run - extent, rank), fill);
  return ReshapeOp::create(
      b, replaceExtent(type, dim, {runs, run}, type.getElementType()), value);
}
