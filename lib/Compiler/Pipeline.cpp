//===- Pipeline.cpp - the passes of each phase ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiler/Pipeline.h"
#include "Allocate/Passes.h"
#include "Bind/Passes.h"
#include "Differentiate/Passes.h"
#include "Kernels/Passes.h"
#include "Localize/Passes.h"
#include "Memory/Passes.h"
#include "Place/Passes.h"
#include "Plan/Target.h"
#include "Propagate/Passes.h"
#include "Reshard/Passes.h"
#include "Support/Variants.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;

static void buildSource(OpPassManager &, const PipelineOptions &) {}

/// Gradients are ops; no call or local region is left.
static void buildDifferentiated(OpPassManager &passes,
                                const PipelineOptions &) {
  passes.addPass(tv::createInlinePass());
  passes.addPass(tv::createInlineRegionsPass());
  passes.addPass(tv::createDifferentiatePass());
}

static void buildBind(OpPassManager &passes, const PipelineOptions &options) {
  if (!options.shardings.empty())
    passes.addPass(tv::createReadShardingsPass({options.shardings}));
  tv::BindPassOptions bind;
  bind.mesh.assign(options.mesh.begin(), options.mesh.end());
  passes.addPass(tv::createBindPass(bind));
}

/// What moves and loops are priced with, where it is not what passes take
/// without being told.
static void addMachine(OpPassManager &passes, const PipelineOptions &options) {
  tv::SetMachinePassOptions set;
  set.machine = options.machine;
  set.replaces = !options.machine.empty();
  // (A tool that makes no code has no targets.)
  const auto target = plan::parseTarget(options.target);
  const layout::Machine machine =
      target ? (*target)->getMachine() : layout::Machine();
  if (!set.replaces && machine != layout::Machine())
    set.machine = llvm::formatv(
        "<latency={0:e},bandwidth={1:e},copy={2:e},loops={3:e}>",
        machine.latency, machine.bandwidth, machine.copy, machine.loops);
  if (!set.machine.empty())
    passes.addPass(tv::createSetMachinePass(set));
}

/// Every value has a view.
static void buildPropagated(OpPassManager &passes,
                            const PipelineOptions &options) {
  addMachine(passes, options);
  passes.addNestedPass<func::FuncOp>(tv::createSimplifyIndicesPass());
  tv::DecomposeCompositesPassOptions decompose;
  decompose.ruleless = true;
  passes.addPass(tv::createDecomposeCompositesPass(decompose));
  tv::PropagateShardingsPassOptions propagate;
  propagate.explain = options.explain;
  passes.addNestedPass<func::FuncOp>(
      tv::createPropagateShardingsPass(propagate));
  // What ops become has no view yet.
  passes.addNestedPass<func::FuncOp>(
      tv::createSplitTopKPass({options.explain}));
  passes.addNestedPass<func::FuncOp>(
      tv::createSplitKeysPass({options.explain}));
  passes.addPass(tv::createDecomposeCompositesPass());
  passes.addPass(tv::createSplitScansPass());
  passes.addNestedPass<func::FuncOp>(tv::createPropagateShardingsPass());
  passes.addNestedPass<func::FuncOp>(tv::createShareReductionsPass());
}

/// Every op is local, or a reshard that is one planned step.
static void buildPlanned(OpPassManager &passes,
                         const PipelineOptions &options) {
  OpPassManager &function = passes.nest<func::FuncOp>();
  function.addPass(
      tv::createDecomposeReshardingsPass({false, options.explain}));
  function.addPass(tv::createVerifyDecomposedPass());
  function.addPass(tv::createElideReshardsPass(
      {options.explain, options.explain && !options.opByOp}));
  if (!options.opByOp)
    function.addPass(tv::createPlaceTogetherPass({options.explain}));
  function.addPass(tv::createWarnIdleRanksPass());
  function.addPass(tv::createMoveBetweenDevicesPass());
  if (options.strict)
    function.addPass(tv::createForbidImplicitMovesPass());
  tv::PlanReshardsPassOptions plan;
  plan.explain = options.explain && options.explainMoves;
  function.addPass(tv::createPlanReshardsPass(plan));
  function.addPass(tv::createVerifyPlannedPass());
  function.addPass(tv::createReorderShardedAxisPass());
  function.addPass(tv::createMakeReshardingContiguousPass());
  function.addPass(tv::createVerifyAllocatedPass());
  function.addPass(tv::createMergeReshardsPass());
}

/// One device's program: local tensors and collectives.
static void buildLocal(OpPassManager &passes, const PipelineOptions &) {
  passes.addPass(tv::createLocalizePass());
  passes.addPass(tv::createVerifyLocalizedPass());
}

/// A number of bytes, as 80GiB; nothing if it is none.
static std::optional<int64_t> parseBytes(StringRef text) {
  int shift = 0;
  for (auto [unit, bits] : {std::pair("KiB", 10), {"MiB", 20}, {"GiB", 30}})
    if (text.consume_back(unit))
      shift = bits;
  int64_t count;
  if (text.getAsInteger(10, count) || count <= 0 || count > INT64_MAX >> shift)
    return std::nullopt;
  return count << shift;
}

/// Kernels, matrix products, collectives and windows.
static void buildKernels(OpPassManager &passes,
                         const PipelineOptions &options) {
  SetTargetOptions set;
  set.target = options.target;
  passes.addPass(createSetTarget(set));
  const plan::Target *target = *plan::parseTarget(options.target);
  passes.addPass(tv::createFetchRowsPass(
      {target->getFetchPhases(), target->choosesFetches()}));
  ExpandCompositesOptions expand;
  expand.attention.assign(options.attention.begin(), options.attention.end());
  passes.addNestedPass<func::FuncOp>(createExpandComposites(expand));
  OpPassManager &function = passes.nest<func::FuncOp>();
  function.addPass(createSimplify());
  function.addPass(createHoistReshapes());
  (*plan::parseTarget(options.target))->addPasses(function);
  passes.addPass(createCSEPass());
  OpPassManager &groups = passes.nest<func::FuncOp>();
  groups.addPass(createSeparateVariants());
  GroupOpsOptions group;
  group.matmul.assign(options.matmul.begin(), options.matmul.end());
  groups.addPass(createGroupOps(group));
  groups.addPass(createChooseVariants());
  passes.addPass(createEmitKernels());
  if (options.memory.empty())
    return;
  RecomputeOptions recompute;
  recompute.bytes = *parseBytes(options.memory);
  recompute.explain = options.explain;
  passes.addPass(createRecompute(recompute));
}

/// How the target runs kernels.
static void buildScheduled(OpPassManager &passes,
                           const PipelineOptions &options) {
  (*plan::parseTarget(options.target))
      ->addSchedule(passes.nest<func::FuncOp>());
}

ArrayRef<Phase> tessera::getPipeline() {
  static const Phase phases[] = {
      {"source", buildSource},   {"differentiated", buildDifferentiated},
      {"bind", buildBind},       {"propagated", buildPropagated},
      {"planned", buildPlanned}, {"local", buildLocal},
      {"kernels", buildKernels}, {"scheduled", buildScheduled},
      {"plan", nullptr},         {"module", nullptr},
  };
  return phases;
}

static Error error(const Twine &message) { return {message.str()}; }

/// The number of the phase of this name.
static Result<size_t> findPhase(ArrayRef<Phase> phases, StringRef name) {
  const Phase *found = llvm::find_if(
      phases, [&](const Phase &phase) { return phase.name == name; });
  if (found != phases.end())
    return size_t(found - phases.begin());
  auto names = llvm::map_range(
      phases, [](const Phase &phase) { return StringRef(phase.name); });
  return error("there is no phase '" + name + "'; there are " +
               llvm::join(names, ", "));
}

Status tessera::checkOptions(const PipelineOptions &options,
                             ArrayRef<Phase> phases, StringRef dashes) {
  const std::string &from = options.from, &to = options.to;
  Result<size_t> first = findPhase(phases, from), last = findPhase(phases, to);
  for (const Result<size_t> *phase : {&first, &last})
    if (!*phase)
      return phase->error();
  if (!phases[*first].build)
    return error("nothing starts after '" + from + "', which is no program");
  if (*first > *last)
    return error("the phase '" + to + "' is before '" + from +
                 "', in which the input is");
  if (auto target = plan::parseTarget(options.target); !target)
    return target.error();
  if (!options.memory.empty() && !parseBytes(options.memory))
    return error(dashes + "memory: '" + options.memory +
                 "' is no number of bytes above 0, as 1000, 64KiB, 500MiB or "
                 "80GiB");
  for (const auto &[kind, variants] :
       {std::pair("attention", &options.attention),
        std::pair("matmul", &options.matmul)})
    if (!variants->empty())
      if (Status status =
              checkVariants(kind, {variants->begin(), variants->end()});
          !status)
        return error(dashes + kind + ": " + status.message());
  // What would change nothing is an error, but for variants of ops that the
  // program does not have.
  const std::tuple<const char *, bool, const char *> uses[] = {
      {"mesh", !options.mesh.empty(), "bind"},
      {"shardings", !options.shardings.empty(), "bind"},
      {"machine", !options.machine.empty(), "propagated"},
      {"strict", options.strict, "planned"},
      {"op-by-op", options.opByOp, "planned"},
      {"memory", !options.memory.empty(), "kernels"},
      {"attention", !options.attention.empty(), "kernels"},
      {"matmul", !options.matmul.empty(), "kernels"}};
  for (const auto &[name, isGiven, phase] : uses) {
    size_t number = *findPhase(phases, phase);
    if (isGiven && *first >= number)
      return error(dashes + name + " changes nothing of a program that has " +
                   "been through '" + phase + "'");
    if (isGiven && *last < number)
      return error(dashes + name + " changes nothing before '" + phase +
                   "', and '" + to + "' is");
  }
  return Ok{};
}

void tessera::registerPipeline() {
  registerPassPipeline(
      "tessera", "From source to kernels, or part of it",
      [](OpPassManager &passes, StringRef text,
         function_ref<LogicalResult(const Twine &)> errorHandler) {
        PipelineOptions options;
        if (failed(options.parseFromString(text)))
          return failure();
        // Up to the last phase that is IR.
        ArrayRef<Phase> phases = getPipeline().take_while(
            [](const Phase &phase) { return phase.build != nullptr; });
        if (Status status = checkOptions(options, phases, ""); !status)
          return errorHandler(status.message());
        bool running = false;
        for (const Phase &phase : phases) {
          if (running)
            phase.build(passes, options);
          running |= phase.name == options.from;
          if (phase.name == options.to)
            break;
        }
        return success();
      },
      [](function_ref<void(const detail::PassOptions &)> describe) {
        describe(PipelineOptions());
      });
}
