//===- InlineRegions.cpp - what is written for each device ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The inverse of tv-localize, of a part of the program: the local form of an op
// is the op on local types, so types change and ops stay. What the user decided
// stays by attributes that later passes obey.
//
//===----------------------------------------------------------------------===//

#include "Comm/Comm.h"
#include "Localize/Passes.h"
#include "TensorView/ExtentAnalysis.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_INLINEREGIONSPASS
#include "Localize/Passes.h.inc"
} // namespace tessera::tv

/// The tensor of which `part` is one device's part, in its view.
static RankedTensorType getWhole(Type part) {
  const LocalAttr local = getLocal(part);
  return RankedTensorType::get(local.getGlobalShape(),
                               cast<RankedTensorType>(part).getElementType(),
                               local.getView());
}

static void replaceByReshards(comm::CollectiveOpInterface op) {
  OpBuilder builder(op);
  for (auto [from, to] : llvm::zip_equal(op->getOperands(), op->getResults())) {
    auto reshard =
        ReshardOp::create(builder, op.getLoc(), TypeRange{to.getType()},
                          ValueRange{from}, StepAttr());
    reshard->setAttr(kStepAttr,
                     builder.getStringAttr(stringifyStepKind(op.getKind())));
    to.replaceAllUsesWith(reshard.getResult(0));
  }
  op->erase();
}

/// Whether parts are of the tensors that they say, inside of regions, too. A
/// function for any size names none; its caller does.
static LogicalResult checkExtents(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    if (auto type = dyn_cast<RankedTensorType>(argument.getType());
        type && !type.hasStaticShape() &&
        !function.getArgAttr(argument.getArgNumber(), kDimsAttr))
      return success();
  FailureOr<ExtentAnalysis> extents = ExtentAnalysis::ofArguments(function);
  if (failed(extents))
    return failure();
  for (Operation &op : function.getBody().front()) {
    if (auto region = dyn_cast<LocalRegionOp>(op)) {
      for (auto [argument, operand] :
           llvm::zip_equal(region.getOps().getArguments(), region.getInputs()))
        extents->copy(argument, operand);
      for (Operation &inner : region.getOps().without_terminator())
        if (failed(extents->addResults(&inner)))
          return failure();
    }
    if (failed(extents->addResults(&op)))
      return failure();
  }
  return success();
}

static void inlineRegion(LocalRegionOp region) {
  OpBuilder builder(region);
  auto constrain = [&](Type type, Value value, ViewAttr view) -> Value {
    return ConstrainOp::create(builder, region.getLoc(), type, value, view);
  };
  Block &body = region.getOps();
  for (auto [argument, operand] :
       llvm::zip_equal(body.getArguments(), region.getInputs())) {
    RankedTensorType type = getWhole(argument.getType());
    argument.replaceAllUsesWith(constrain(type, operand, getView(type)));
  }
  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator())
    ops.push_back(&op);
  for (Operation *op : ops) {
    op->moveBefore(region);
    for (Value result : op->getResults())
      result.setType(getWhole(result.getType()));
  }
  for (auto [result, value] :
       llvm::zip_equal(region.getResults(), region.getYielded()))
    result.replaceAllUsesWith(
        constrain(result.getType(), value, getView(value)));
  region.erase();
  for (Operation *op : ops) {
    if (auto move = dyn_cast<comm::CollectiveOpInterface>(op))
      replaceByReshards(move);
    else
      op->setAttr(kLocalOpAttr, builder.getUnitAttr());
  }
}

namespace {
struct InlineRegions : tv::impl::InlineRegionsPassBase<InlineRegions> {
  void runOnOperation() override {
    bool any = false;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<LocalRegionOp> regions;
      function.walk([&](LocalRegionOp op) { regions.push_back(op); });
      if (regions.empty())
        continue;
      any = true;
      if (failed(checkExtents(function)))
        return signalPassFailure();
      for (LocalRegionOp region : regions) {
        WalkResult fetches = region.walk([](comm::FetchOp op) {
          op.emitOpError() << "is none that a local region may have; tv.gather "
                              "with tv.step = \"fetch\", outside of it, is one";
          return WalkResult::interrupt();
        });
        if (fetches.wasInterrupted())
          return signalPassFailure();
        inlineRegion(region);
      }
    }
    if (!any)
      markAllAnalysesPreserved(); // and nothing is verified again
  }
};
} // namespace
