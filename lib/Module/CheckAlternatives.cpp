//===- CheckAlternatives.cpp - one variant is as good as another ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch does not say which of its tensors it writes, but the first step that
// touches a temporary or an output must be one that does. So a tensor is there
// for all steps once one that always runs has touched it, or one of each
// variant of some alternative; till then, only for the steps of a variant that
// has.
//
//===----------------------------------------------------------------------===//

#include "Module/CheckAlternatives.h"

#include <algorithm>
#include <map>
#include <set>

using namespace tessera;

std::vector<int> tessera::tensorsOf(const fb::StepT &step) {
  switch (step.action.type) {
  case fb::Action::Launch: {
    const auto &tensors = step.action.AsLaunch()->tensors;
    return {tensors.begin(), tensors.end()};
  }
  case fb::Action::Contract: {
    const fb::ContractT &contract = *step.action.AsContract();
    std::vector<int> ids = {contract.a, contract.b, contract.c};
    for (int optional :
         {contract.bias, contract.x, contract.aux, contract.sums})
      if (optional >= 0)
        ids.push_back(optional);
    return ids;
  }
  case fb::Action::Attend: {
    const fb::AttendT &attend = *step.action.AsAttend();
    std::vector<int> ids = {attend.query, attend.key, attend.value,
                            attend.result};
    if (attend.lse >= 0)
      ids.push_back(attend.lse);
    return ids;
  }
  case fb::Action::Collective: {
    const fb::CollectiveT &collective = *step.action.AsCollective();
    return {collective.source, collective.target};
  }
  case fb::Action::Copy:
    return {step.action.AsCopy()->source, step.action.AsCopy()->target};
  default:
    return {};
  }
}

namespace {

class Checker {
public:
  using Problem = std::optional<std::string>;
  explicit Checker(const fb::PlanT &plan)
      : plan(plan), written(plan.tensors.size()) {}

  Problem run() {
    for (size_t i = 0; i < plan.alternatives.size(); ++i)
      if (Problem problem = checkVariants(*plan.alternatives[i]))
        return "alternative " + std::to_string(i) + ": " + *problem;
    for (const auto &port : plan.ports)
      if (port->kind != fb::PortKind::Output)
        written[rootOf(port->tensor)].always = true;
    for (size_t i = 0; i < plan.tensors.size(); ++i)
      if (plan.tensors[i]->storage == fb::Storage::Constant)
        written[i].always = true;
    for (size_t i = 0; i < plan.steps.size(); ++i)
      if (Problem problem = checkStep(*plan.steps[i]))
        return "step " + std::to_string(i) + " ('" + plan.steps[i]->op +
               "' at " + plan.steps[i]->location + "): " + *problem;
    // What a caller gets.
    for (const auto &port : plan.ports) {
      int tensor = port->kind == fb::PortKind::Output  ? port->tensor
                   : port->kind == fb::PortKind::State ? port->state_result
                                                       : -1;
      if (tensor >= 0)
        if (Problem problem = checkUse(tensor, /*by=*/nullptr))
          return "port '" + port->name + "': " + *problem;
    }
    return std::nullopt;
  }

private:
  /// Who has written a tensor so far.
  struct Written {
    bool always = false;
    std::map<int, std::set<int>> variants; ///< by alternative
  };

  static bool isThere(const fb::VariantT &variant) {
    return variant.reason.empty();
  }

  static Problem checkVariants(const fb::AlternativeT &alternative) {
    if (alternative.kind.empty())
      return "it has no kind";
    std::set<std::string> names;
    for (const auto &variant : alternative.variants)
      if (variant->name.empty() || !names.insert(variant->name).second)
        return "two variants are named '" + variant->name + "'";
    if (std::ranges::none_of(alternative.variants,
                             [](const auto &v) { return isThere(*v); }))
      return "it has no variant";
    return std::nullopt;
  }

  int rootOf(int tensor) const {
    while (plan.tensors[tensor]->alias)
      tensor = plan.tensors[tensor]->alias->source;
    return tensor;
  }

  Problem checkStep(const fb::StepT &step) {
    if (step.alternative != -1) {
      if (step.alternative < 0 ||
          static_cast<size_t>(step.alternative) >= plan.alternatives.size())
        return "there is no alternative " + std::to_string(step.alternative);
      const auto &variants = plan.alternatives[step.alternative]->variants;
      if (step.variant < 0 ||
          static_cast<size_t>(step.variant) >= variants.size() ||
          !isThere(*variants[step.variant]))
        return "there is no variant " + std::to_string(step.variant);
    }
    for (int tensor : tensorsOf(step))
      if (Problem problem = checkUse(tensor, &step))
        return problem;
    return std::nullopt;
  }

  bool hasAllVariants(int alternative, const std::set<int> &found) const {
    const auto &variants = plan.alternatives[alternative]->variants;
    return static_cast<int64_t>(found.size()) ==
           std::ranges::count_if(variants,
                                 [](const auto &v) { return isThere(*v); });
  }

  /// Whether a tensor is there when `step`, or the caller, uses it.
  Problem checkUse(int tensor, const fb::StepT *step) {
    Written &by = written[rootOf(tensor)];
    for (const auto &[alternative, found] : by.variants)
      by.always |= hasAllVariants(alternative, found);
    if (by.always)
      return std::nullopt;
    for (const auto &[alternative, found] : by.variants)
      if (!step || step->alternative != alternative)
        return "tensor " + std::to_string(tensor) + " ('" +
               plan.tensors[tensor]->name + "') is written in variant '" +
               plan.alternatives[alternative]->variants[*found.begin()]->name +
               "' of " + plan.alternatives[alternative]->kind + " only";
    if (step && step->alternative >= 0)
      by.variants[step->alternative].insert(step->variant);
    else
      by.always = step != nullptr;
    return std::nullopt;
  }

  const fb::PlanT &plan;
  std::vector<Written> written; ///< by root tensor
};

} // namespace

std::optional<std::string> tessera::checkAlternatives(const fb::PlanT &plan) {
  return Checker(plan).run();
}
