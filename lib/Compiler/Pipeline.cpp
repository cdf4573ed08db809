//===- Pipeline.cpp - the passes of each phase ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiler/Pipeline.h"
#include "Kernels/Passes.h"
#include "Localize/Passes.h"
#include "Plan/Plan.h"
#include "Sharding/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace tessera;

static void buildSource(OpPassManager &, const PipelineOptions &) {}

static void buildBind(OpPassManager &passes, const PipelineOptions &options) {
  tv::BindPassOptions bind;
  bind.mesh.assign(options.mesh.begin(), options.mesh.end());
  passes.addPass(tv::createBindPass(bind));
}

/// Every value has a view.
static void buildPropagated(OpPassManager &passes,
                            const PipelineOptions &options) {
  tv::PropagateShardingsPassOptions propagate;
  propagate.explain = options.explain;
  passes.addNestedPass<func::FuncOp>(
      tv::createPropagateShardingsPass(propagate));
  // What composites become has no view yet.
  passes.addPass(tv::createDecomposeCompositesPass());
  passes.addNestedPass<func::FuncOp>(tv::createPropagateShardingsPass());
}

/// Every op is local, or a reshard that is one planned step.
static void buildPlanned(OpPassManager &passes,
                         const PipelineOptions &options) {
  OpPassManager &function = passes.nest<func::FuncOp>();
  function.addPass(tv::createDecomposeReshardingsPass());
  function.addPass(tv::createVerifyDecomposedPass());
  function.addPass(tv::createElideReshardsPass());
  if (options.strict)
    function.addPass(tv::createForbidImplicitMovesPass());
  tv::PlanReshardsPassOptions plan;
  plan.explain = options.explain;
  function.addPass(tv::createPlanReshardsPass(plan));
  function.addPass(tv::createVerifyPlannedPass());
  function.addPass(tv::createReorderShardedAxisPass());
  function.addPass(tv::createMakeReshardingContiguousPass());
  function.addPass(tv::createVerifyAllocatedPass());
}

/// One device's program: local tensors and collectives.
static void buildLocal(OpPassManager &passes, const PipelineOptions &) {
  passes.addPass(tv::createLocalizePass());
  passes.addPass(tv::createVerifyLocalizedPass());
}

/// Kernels, matrix products, collectives and windows.
static void buildKernels(OpPassManager &passes,
                         const PipelineOptions &options) {
  ExpandCompositesOptions expand;
  expand.epilogues = options.target == plan::kCUDATarget;
  expand.target = options.target;
  expand.attention.assign(options.attention.begin(), options.attention.end());
  passes.addNestedPass<func::FuncOp>(createExpandComposites(expand));
  if (options.target == plan::kCUDATarget)
    passes.addNestedPass<func::FuncOp>(createSplitReductions());
  passes.addPass(createCSEPass());
  FormKernelsOptions kernels;
  kernels.target = options.target;
  kernels.matmul.assign(options.matmul.begin(), options.matmul.end());
  passes.addPass(createFormKernels(kernels));
}

ArrayRef<Phase> tessera::getPipeline() {
  static const Phase phases[] = {
      {"source", buildSource},
      {"bind", buildBind},
      {"propagated", buildPropagated},
      {"planned", buildPlanned},
      {"local", buildLocal},
      {"kernels", buildKernels},
      {"plan", nullptr},
      {"module", nullptr},
  };
  return phases;
}

void tessera::registerPipeline() {
  static PassPipelineRegistration<PipelineOptions> pipeline(
      "tessera", "From source to kernels, or part of it",
      [](OpPassManager &passes, const PipelineOptions &options) {
        bool running = false;
        for (const Phase &phase : getPipeline()) {
          if (running && phase.build)
            phase.build(passes, options);
          running |= phase.name == options.from;
          if (phase.name == options.to)
            return;
        }
      });
}
