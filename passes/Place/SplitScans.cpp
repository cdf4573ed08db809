//===- SplitScans.cpp - running sums along a split dimension --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A dimension of n elements in runs of `rest`, each whole on one device, is
// two: [ceil(n / rest), rest]. A sum runs along `rest` where it is; what is
// before a run are the totals of the runs before, one element each, which all
// devices get.
//
//===----------------------------------------------------------------------===//

#include "Place/Passes.h"
#include "TensorView/TensorView.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_SPLITSCANSPASS
#include "Place/Passes.h.inc"
} // namespace tessera::tv

/// The type that sums are in: of narrow floats f32.
static Type getWide(Type element) {
  if (isa<FloatType>(element) && !element.isF64())
    return Float32Type::get(element.getContext());
  return element;
}

/// How many adjacent elements each device has at least of a dimension that
/// devices share; 1 if they share it in another way, or share nothing.
static int64_t getRun(const layout::Product &product) {
  int64_t run = 1;
  for (const layout::Factor &factor : llvm::reverse(product)) {
    if (factor.kind == layout::Factor::Kind::Device)
      return run;
    if (factor.kind != layout::Factor::Kind::Stored)
      return 1;
    run *= factor.size;
  }
  return 1;
}

/// The run to split by, if it is known and the totals are fewer bytes than the
/// elements.
static std::optional<int64_t> getRun(CumsumOp op) {
  ViewAttr view = tv::getView(op.getInput());
  ViewAttr after = tv::getView(op.getResult());
  RankedTensorType type = op.getInput().getType();
  const int64_t dim = op.getDim();
  if (!view || !after || !view.getView().partial.empty() ||
      int64_t(view.getView().dims.size()) != type.getRank() ||
      after.getView().dims != view.getView().dims || type.isDynamicDim(dim))
    return std::nullopt;
  const layout::Product &product = view.getView().dims[dim].product;
  if (llvm::any_of(product, [](const layout::Factor &factor) {
        return factor.kind == layout::Factor::Kind::Group;
      }))
    return std::nullopt;
  const int64_t run = getRun(product), extent = type.getDimSize(dim);
  Type element = type.getElementType();
  if (llvm::divideCeil(extent, run) *
          getWide(element).getIntOrFloatBitWidth() >=
      extent * element.getIntOrFloatBitWidth())
    return std::nullopt;
  return run;
}

/// Values in between have no view yet, but the totals: all devices have all.
static Value split(CumsumOp op, int64_t run) {
  OpBuilder at(op);
  ImplicitLocOpBuilder b(op.getLoc(), at);
  RankedTensorType type = op.getInput().getType();
  const int64_t dim = op.getDim(), extent = type.getDimSize(dim);
  const int64_t runs = llvm::divideCeil(extent, run), rank = type.getRank();
  Type wide = getWide(type.getElementType());
  const TypedAttr zero = b.getZeroAttr(wide);
  auto shaped = [&](ArrayRef<int64_t> extents) {
    SmallVector<int64_t> shape(type.getShape());
    shape.erase(shape.begin() + dim);
    shape.insert(shape.begin() + dim, extents.begin(), extents.end());
    return RankedTensorType::get(shape, wide);
  };
  auto places = [&](int64_t at, int64_t value, int64_t size) {
    SmallVector<int64_t> all(size, 0);
    all[at] = value;
    return all;
  };

  Value x = op.getInput();
  const bool narrow = wide != type.getElementType();
  const bool padded = runs * run != extent;
  if (narrow)
    x = CastOp::create(b, shaped(extent), x);
  if (padded)
    x = PadOp::create(b, shaped(runs * run), x, places(dim, 0, rank),
                      places(dim, runs * run - extent, rank), zero);
  x = ReshapeOp::create(b, shaped({runs, run}), x);
  Value sums = CumsumOp::create(b, x.getType(), x, dim + 1, op.getReverse());
  // The last of each run is its total.
  Value totals =
      SliceOp::create(b, shaped({runs, 1}), sums,
                      places(dim + 1, op.getReverse() ? 0 : run - 1, rank + 1));
  totals = ReshapeOp::create(b, shaped(runs), totals);

  ViewAttr view = tv::getView(op.getInput());
  auto whole = [&](int64_t extent) {
    layout::View totalsView = view.getView();
    totalsView.alloc.reset();
    totalsView.dims[dim] = layout::View::replicated(1).dims[0];
    RankedTensorType type = shaped(extent);
    return withEncoding(type, view.with(layout::canonicalize(
                                  totalsView, layout::Shape(type.getShape()),
                                  view.getLayoutMesh())));
  };
  Value before = CumsumOp::create(b, whole(runs), totals, dim, op.getReverse());
  // Each but the first gets that of the run before it.
  const int64_t reverse = op.getReverse();
  before =
      PadOp::create(b, whole(runs + 1), before, places(dim, 1 - reverse, rank),
                    places(dim, reverse, rank), zero);
  before = SliceOp::create(b, whole(runs), before, places(dim, reverse, rank));
  SmallVector<int64_t> dims;
  for (int64_t d = 0; d < rank; ++d)
    dims.push_back(d + (d > dim));
  before = BroadcastOp::create(b, x.getType(), before, dims,
                               type.hasStaticShape() ? Value() : x);

  Value y = AddOp::create(b, x.getType(), sums, before);
  RankedTensorType exact = narrow ? shaped(extent) : op.getType();
  y = ReshapeOp::create(b, padded ? shaped(runs * run) : exact, y);
  if (padded)
    y = SliceOp::create(b, exact, y, places(dim, 0, rank));
  return narrow ? CastOp::create(b, op.getType(), y) : y;
}

namespace {
struct SplitScans : tv::impl::SplitScansPassBase<SplitScans> {
  void runOnOperation() override {
    bool split = false;
    getOperation()->walk([&](CumsumOp op) {
      std::optional<int64_t> run = getRun(op);
      if (!run || op->hasAttr(kLocalOpAttr))
        return;
      tv::nameLocation(op);
      Value y = ::split(op, *run);
      op.replaceAllUsesWith(y);
      op.erase();
      split = true;
    });
    if (!split)
      markAllAnalysesPreserved(); // and nothing is verified again
  }
};
} // namespace
