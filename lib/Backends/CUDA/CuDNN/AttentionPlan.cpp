//===- AttentionPlan.cpp - engines of cuDNN's for attention ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/CuDNN/AttentionPlan.h"
#include "Support/Try.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::cuda::dnn;

std::string AttentionShape::text() const {
  return std::string(grads ? "gradients of " : "") + "attention of " +
         std::to_string(batch) + " x " + std::to_string(heads) + " heads, " +
         std::to_string(queries) + " queries on " + std::to_string(keys) +
         " keys of " + std::to_string(depth) + " " + info(dtype).name +
         (groups != heads ? ", " + std::to_string(groups) + " groups" : "") +
         (causal ? ", causal" : "");
}

/// Before, NVIDIA's own frontend masks keys beyond the last multiple of 128.
static constexpr size_t kOldestOfGradients = 91501;

/// From here on, that frontend gets the same bits in every run from an engine
/// and knobs that it names itself; which those are differs by GPU and version.
static constexpr int kNotByPattern = 100;

Status tessera::cuda::whyNotGradients(const Api &api, const Device &device) {
  if (device.capability() >= kNotByPattern)
    return Error{"it is not known to give the same gradients in every run on "
                 "GPUs of compute capability 10.0 or later"};
  return api.needs(kOldestOfGradients, "gradients");
}

//===----------------------------------------------------------------------===//
// Engines
//===----------------------------------------------------------------------===//

/// What a heuristic proposes for a graph, the best first.
static std::vector<Object> propose(Objects &objects, Object graph,
                                   Heuristic mode) {
  Object heuristics = objects.make(Kind::Heuristics);
  objects.set(heuristics, Field::HeuristicsGraph, graph);
  objects.set(heuristics, Field::HeuristicsMode, mode);
  objects.finalize(heuristics);
  const int64_t count =
      objects.get(heuristics, Field::HeuristicsResults, std::span<Object>());
  std::vector<Object> configs;
  for (int64_t i = 0; i < count; ++i)
    configs.push_back(objects.make(Kind::Config));
  configs.resize(
      objects.get(heuristics, Field::HeuristicsResults, std::span(configs)));
  return configs;
}

Status AttentionPlan::take(Object config) {
  std::array<Object, 1> engine = {made->make(Kind::Engine)};
  made->get(config, Field::ConfigEngine, std::span<Object>(engine));
  made->get(engine[0], Field::EngineIndex, std::span(&number, 1));
  std::array<Note, static_cast<int>(Note::Count)> notes;
  const int64_t count =
      made->get(engine[0], Field::EngineNotes, std::span<Note>(notes));
  if (made->status &&
      std::count(notes.begin(), notes.begin() + count, Note::Nondeterministic))
    return Error{"it has other bits in every run"};
  plan = made->make(Kind::Plan);
  made->set(plan, Field::PlanConfig, config);
  made->finalize(plan);
  made->get(plan, Field::PlanWorkspace, std::span(&bytes, 1));
  return made->status;
}

Result<std::unique_ptr<AttentionPlan>>
AttentionPlan::create(const Api &api, Handle handle,
                      const AttentionShape &shape) {
  std::unique_ptr<AttentionPlan> result(new AttentionPlan(api));
  Object graph = makeAttentionGraph(result->graph, shape, handle);
  if (!result->graph.status)
    return result->graph.status.error();
  std::string why;
  auto refuse = [&](const std::string &reason) {
    if (why.find(reason) == std::string::npos)
      why += (why.empty() ? ": " : "; ") + reason;
  };
  for (Heuristic mode : {Heuristic::A, Heuristic::Fallback}) {
    result->proposed = std::make_unique<Objects>(api);
    const std::vector<Object> configs = propose(*result->proposed, graph, mode);
    if (!result->proposed->status)
      refuse(result->proposed->status.message());
    for (Object config : configs) {
      result->made = std::make_unique<Objects>(api);
      Status taken = result->take(config);
      if (taken)
        return result;
      refuse("engine " + std::to_string(result->number) + ": " +
             taken.message());
    }
    result->made.reset(); // before what it was made of
  }
  return Error{"cuDNN " + api.version() + " has no engine for " + shape.text() +
               why};
}

//===----------------------------------------------------------------------===//
// The handle
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<CuDNN>> CuDNN::open(const Device &device) {
  Result<const Api *> api = Api::get();
  if (!api)
    return api.error();
  Device::Current current(device);
  std::unique_ptr<CuDNN> result(new CuDNN(**api, device));
  TSR_TRY((*api)->check((*api)->create(&result->handle_), "make a handle"));
  TSR_TRY((*api)->check((*api)->setStream(result->handle_, device.stream()),
                        "take a stream"));
  return result;
}

CuDNN::~CuDNN() {
  plans.clear();
  if (handle_)
    api_.destroy(handle_);
}

/// How many plans there may be before those that nobody uses go.
static constexpr size_t kManyPlans = 64;

Result<std::shared_ptr<const AttentionPlan>>
CuDNN::plan(const AttentionShape &shape) {
  if (auto found = plans.find(shape); found != plans.end())
    return found->second;
  Device::Current current(device);
  if (plans.size() >= kManyPlans)
    std::erase_if(
        plans, [](const auto &each) { return each.second.use_count() == 1; });
  Result<std::unique_ptr<AttentionPlan>> made =
      AttentionPlan::create(api_, handle_, shape);
  if (!made)
    return made.error();
  return plans[shape] = std::move(*made);
}
