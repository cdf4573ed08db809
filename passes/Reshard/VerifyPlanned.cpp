//===- VerifyPlanned.cpp - each reshard is one planned step ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The contract of the phase after tv-plan-reshards: ops are local, and every
// tv.reshard has a plan that does what its views say of partial states.
//
//===----------------------------------------------------------------------===//

#include "Layout/PlanViews.h"
#include "Place/Placement.h"
#include "Reshard/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_VERIFYPLANNEDPASS
#include "Reshard/Passes.h.inc"
} // namespace tessera::tv

static Status checkPlanned(ReshardOp op) {
  StepAttr plan = op.getPlanAttr();
  if (!plan)
    return Error{"has no plan; run tv-plan-reshards"};
  bool combines = plan.getKind() == StepKind::AllReduce ||
                  plan.getKind() == StepKind::ReduceScatter;
  std::vector<layout::SubAxis> named = layout::merged(plan.getAxes());
  for (auto [from, to] : llvm::zip_equal(op.getInputs(), op.getResults())) {
    std::vector<layout::SubAxis> before =
        layout::partialAxes(getView(from).getView());
    std::vector<layout::SubAxis> after =
        layout::partialAxes(getView(to).getView());
    std::vector<layout::SubAxis> gone =
        layout::merged(layout::subtract(std::move(before), after));
    if (combines ? gone != named : !gone.empty())
      return Error{
          "has a plan that does not combine exactly the partial states "
          "that vanish"};
  }
  return Ok{};
}

namespace {
struct VerifyPlanned : tv::impl::VerifyPlannedPassBase<VerifyPlanned> {
  void runOnOperation() override {
    bool whole = true;
    LocalChecks checks;
    for (Block &block : getOperation().getBody())
      for (Operation &op : block) {
        Status status = checks.check(&op);
        if (auto reshard = dyn_cast<ReshardOp>(op); status && reshard)
          status = checkPlanned(reshard);
        if (!status) {
          op.emitError() << status.message();
          whole = false;
        }
      }
    if (!whole)
      return signalPassFailure();
    markAllAnalysesPreserved(); // and nothing is verified again
  }
};
} // namespace
