//===- ForbidImplicitMoves.cpp - strict mode ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Looks at every reshard that is left after elision. One that moves bytes and
// was not written by the user is an error, which shows the line to write. All
// are reported in one run.
//
//===----------------------------------------------------------------------===//

#include "Layout/Planner.h"
#include "Reshard/Passes.h"
#include "TensorView/ExtentAnalysis.h"
#include "TensorView/TensorView.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_FORBIDIMPLICITMOVESPASS
#include "Reshard/Passes.h.inc"
} // namespace tessera::tv

namespace {
class ForbidImplicitMovesPass
    : public tv::impl::ForbidImplicitMovesPassBase<ForbidImplicitMovesPass> {
public:
  using ForbidImplicitMovesPassBase::ForbidImplicitMovesPassBase;
  void runOnContract() override;

private:
  LogicalResult check(ReshardOp reshard, Value input, Type result,
                      const ExtentAnalysis &extents);
};
} // namespace

LogicalResult ForbidImplicitMovesPass::check(ReshardOp reshard, Value input,
                                             Type result,
                                             const ExtentAnalysis &extents) {
  ViewAttr from = getView(input), to = getView(result);
  layout::Move move{extents.getMaximumShape(input),
                    extents.getElementBytes(input), from.getView(),
                    to.getView()};
  if (from.getMesh() != to.getMesh()) {
    move.fromMesh = from.getLayoutMesh();
    move.toMesh = to.getLayoutMesh();
  }
  Result<layout::Plan> plan =
      layout::planMove(move, from.getLayoutMesh(), getMachine(reshard));
  if (!plan)
    return reshard.emitError() << plan.message();
  if (plan->chosen.cost.bytesReceived == 0 && plan->chosen.cost.bytesSent == 0)
    return success();
  // As text: diagnostics put types in quotes, and this is to be copied.
  std::string line;
  llvm::raw_string_ostream(line) << "(" << input.getType() << ") -> " << result;
  auto textOf = [&](ViewAttr view) {
    std::string text = layout::toString(view.getView(), view.getLayoutMesh());
    if (from.getMesh() != to.getMesh())
      text += " on " + layout::toString(view.getLayoutMesh());
    return text;
  };
  InFlightDiagnostic diagnostic =
      reshard.emitError()
      << "strict mode: the program does not write this move, "
      << plan->chosen.text << " of " << plan->chosen.cost.bytesReceived
      << " bytes on a device, from " << textOf(from) << " to " << textOf(to);
  if (Operation *producer = input.getDefiningOp())
    diagnostic.attachNote(producer->getLoc())
        << "give this result the view "
        << layout::toString(from.getView(), from.getLayoutMesh())
        << " and write after it: %r = tv.reshard %v : " << line;
  else
    diagnostic.attachNote(input.getLoc())
        << "write: %r = tv.reshard %argument : " << line;
  return failure();
}

void ForbidImplicitMovesPass::runOnContract() {
  func::FuncOp function = getOperation();
  FailureOr<ExtentAnalysis> extents = ExtentAnalysis::run(function);
  if (failed(extents))
    return signalPassFailure();
  bool failedAny = false;
  function.walk([&](ReshardOp reshard) {
    if (reshard->hasAttr(kUserMoveAttr))
      return;
    for (auto [input, result] :
         llvm::zip_equal(reshard.getInputs(), reshard.getResultTypes()))
      failedAny |= failed(check(reshard, input, result, *extents));
  });
  if (failedAny)
    signalPassFailure();
}
