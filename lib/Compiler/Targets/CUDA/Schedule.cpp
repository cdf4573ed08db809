//===- Schedule.cpp - the pass cuda-schedule ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop tells what it looks like: points or rows. One that runs in order is
// left to one thread.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/KernelForms.h"
#include "Compiler/Targets/CUDA/Passes.h"
#include "Compiler/Targets/CUDA/Scheduling.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::schedule;

namespace tessera::cuda {
#define GEN_PASS_DEF_CUDASCHEDULE
#define GEN_PASS_DEF_CUDAVERIFYSCHEDULE
#include "Compiler/Targets/CUDA/Passes.h.inc"
} // namespace tessera::cuda

/// That of an earlier schedule.
static void removeAttributes(func::FuncOp kernel) {
  kernel.walk([](Operation *op) {
    for (StringLiteral name :
         {kLoopAttr, kProductAttr, kAttentionAttr, kRoleAttr, kSyncAttr,
          kAtOnceAttr, kRoundedAttr, kBoundAttr})
      op->removeAttr(name);
  });
}

static LogicalResult scheduleLoop(Operation *op, const plan::Limits &limits) {
  auto loop = dyn_cast<scf::ParallelOp>(op);
  if (!loop) {
    op->setAttr(kLoopAttr, LoopAttr::get(op->getContext(), Form::Thread, 1, 1,
                                         0, 0, 0, -1, {}));
    return success();
  }
  SmallVector<scf::ParallelOp> stages = getStages(loop);
  if (failed(verifyLoops(loop, stages)))
    return failure();
  if (stages.empty())
    schedulePoints(loop);
  else
    scheduleRows(loop, limits);
  return success();
}

/// What a kernel's program is planned for; an error unless threads run it.
static FailureOr<plan::Limits> getLimits(func::FuncOp kernel) {
  const plan::Target &target = plan::getTarget(kernel);
  if (target.getLimits().threads == 0)
    return kernel.emitError() << "the program is planned for '"
                              << target.getName() << "', not for a GPU";
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitError() << "a kernel has a body of one block";
  return target.getLimits();
}

namespace {
struct SchedulePass
    : public tessera::cuda::impl::CUDAScheduleBase<SchedulePass> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(plan::kKernelAttr))
      return;
    FailureOr<plan::Limits> limits = getLimits(kernel);
    if (failed(limits))
      return signalPassFailure();
    removeAttributes(kernel);
    if (MemoryUse(kernel).storesHalves())
      kernel->setAttr(kRoundedAttr, UnitAttr::get(&getContext()));
    for (Operation &op : kernel.getBody().front())
      if (isa<scf::ParallelOp, scf::ForOp, scf::IfOp, memref::StoreOp>(op) &&
          failed(scheduleLoop(&op, *limits)))
        return signalPassFailure();
      else if (auto product = dyn_cast<plan::ProductOp>(op))
        scheduleProduct(product, *limits);
      else if (isa<plan::AttentionOp, plan::AttentionGradOp>(op))
        scheduleAttention(&op, *limits);
  }
};

struct VerifySchedulePass
    : public tessera::cuda::impl::CUDAVerifyScheduleBase<VerifySchedulePass> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(plan::kKernelAttr))
      return;
    FailureOr<plan::Limits> limits = getLimits(kernel);
    if (failed(limits) || failed(verifySchedule(kernel, *limits)))
      signalPassFailure();
  }
};
} // namespace
