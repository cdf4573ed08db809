//===- Losers.cpp - what moves would have cost otherwise ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A module has figures of the largest sizes. For others the compiler's planner
// is asked again, which the runtime has not.
//
//===----------------------------------------------------------------------===//

#include "Losers.h"
#include "Layout/Planner.h"
#include "Module/Module.h"
#include "Support/DType.h"

#include <ranges>

using namespace tessera;

/// From where the move of a step begins to where it ends: all of its steps
/// name the same loser.
static std::pair<int32_t, int32_t> endsOf(const fb::CollectiveT &step,
                                          const fb::PlanT &plan) {
  int32_t first = step.source, last = step.target;
  auto isOfMove = [&](const fb::CollectiveT *other) {
    return other && other->loser == step.loser;
  };
  for (const auto &each : plan.steps | std::views::reverse)
    if (const auto *other = each->action.AsCollective();
        isOfMove(other) && other->target == first)
      first = other->source;
  for (const auto &each : plan.steps)
    if (const auto *other = each->action.AsCollective();
        isOfMove(other) && other->source == last)
      last = other->target;
  return {first, last};
}

static std::string priceLoser(const fb::CollectiveT &step,
                              const ModuleReader &module,
                              std::span<const int64_t> sizes) {
  const fb::PlanT &plan = module.plan();
  const auto &shape = plan.tensors[step.source]->shape;
  auto isDynamic = [](const auto &extent) { return !extent->terms.empty(); };
  if (step.loser.empty() || std::ranges::none_of(shape, isDynamic))
    return step.loser;
  auto [first, last] = endsOf(step, plan);
  layout::Move move;
  for (const auto &extent : shape)
    move.shape.push_back(evaluate(*extent, sizes).value_or(0));
  move.elementBytes =
      info(static_cast<DType>(plan.tensors[first]->dtype)).bytes;
  auto viewOf = [&](int32_t tensor) {
    layout::View view = module.view(tensor);
    view.alloc.reset(); // plans are made before it is decided
    return layout::canonicalize(view, move.shape, module.mesh());
  };
  move.from = viewOf(first);
  move.to = viewOf(last);
  layout::Machine machine;
  if (const auto &of = plan.machine)
    machine = {of->latency(), of->bandwidth(), of->copy(), of->loops()};
  auto found = layout::findDescribed(step.loser, move, module.mesh(), machine);
  return found && *found ? layout::describe(**found)
                         : step.loser + " at the largest sizes";
}

Result<std::vector<std::string>>
tessera::run::priceLosers(const std::string &path, uint64_t hash,
                          std::span<const int64_t> sizes) {
  Result<ModuleReader> module = ModuleReader::open(path);
  if (!module)
    return module.error();
  if (module->hash() != hash)
    return Error{"'" + path + "' was written anew while it ran"};
  std::vector<std::string> losers;
  for (const auto &step : module->plan().steps)
    if (const auto *collective = step->action.AsCollective())
      losers.push_back(priceLoser(*collective, *module, sizes));
  return losers;
}
