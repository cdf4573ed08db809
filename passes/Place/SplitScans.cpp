//===- SplitScans.cpp - running sums along a split dimension --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum goes along runs where they are; what is before a run are the totals of
// the runs before, one element each, which all devices get.
//
//===----------------------------------------------------------------------===//

#include "Place/Passes.h"
#include "Place/Runs.h"

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

/// The run to split by, if it is known and the totals are fewer bytes than the
/// elements.
static std::optional<int64_t> getRun(CumsumOp op) {
  std::optional<int64_t> run = tv::getRun(op.getInput(), op.getDim());
  ViewAttr after = tv::getView(op.getResult());
  if (!run || !after ||
      after.getView().dims != tv::getView(op.getInput()).getView().dims)
    return std::nullopt;
  const int64_t extent = op.getInput().getType().getDimSize(op.getDim());
  Type element = op.getInput().getType().getElementType();
  if (llvm::divideCeilSigned(extent, *run) *
          int64_t(getWide(element).getIntOrFloatBitWidth()) >=
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
    return replaceExtent(type, dim, extents, wide);
  };

  Value x = op.getInput();
  const bool narrow = wide != type.getElementType();
  const bool padded = runs * run != extent;
  if (narrow)
    x = CastOp::create(b, shaped(extent), x);
  x = splitIntoRuns(b, x, dim, run, zero);
  Value sums = CumsumOp::create(b, x.getType(), x, dim + 1, op.getReverse());
  // The last of each run is its total.
  Value totals =
      SliceOp::create(b, shaped({runs, 1}), sums,
                      atDim(dim + 1, op.getReverse() ? 0 : run - 1, rank + 1));
  totals = ReshapeOp::create(b, shaped(runs), totals);

  auto whole = [&](int64_t extent) {
    return makeWhole(op.getInput(), dim, extent, wide);
  };
  Value before = CumsumOp::create(b, whole(runs), totals, dim, op.getReverse());
  // Each but the first gets that of the run before it.
  const int64_t reverse = op.getReverse();
  before =
      PadOp::create(b, whole(runs + 1), before, atDim(dim, 1 - reverse, rank),
                    atDim(dim, reverse, rank), zero);
  before = SliceOp::create(b, whole(runs), before, atDim(dim, reverse, rank));
  SmallVector<int64_t> dims;
  for (int64_t d = 0; d < rank; ++d)
    dims.push_back(d + (d > dim));
  before = BroadcastOp::create(b, x.getType(), before, dims,
                               type.hasStaticShape() ? Value() : x);

  Value y = AddOp::create(b, x.getType(), sums, before);
  RankedTensorType exact = narrow ? shaped(extent) : op.getType();
  y = ReshapeOp::create(b, padded ? shaped(runs * run) : exact, y);
  if (padded)
    y = SliceOp::create(b, exact, y, atDim(dim, 0, rank));
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
