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
#include "Support/Try.h"

#include <algorithm>
#include <map>
#include <set>

using namespace tessera;

namespace {

class Checker {
public:
  explicit Checker(const fb::PlanT &plan)
      : plan(plan), written(plan.tensors.size()) {}

  Status run() {
    for (size_t i = 0; i < plan.alternatives.size(); ++i)
      if (Status status = checkVariants(*plan.alternatives[i]); !status)
        return Error{"alternative " + std::to_string(i) + ": " +
                     status.message()};
    for (const auto &port : plan.ports)
      if (port->kind != fb::PortKind::Output)
        written[rootOf(port->tensor)].always = true;
    for (size_t i = 0; i < plan.tensors.size(); ++i)
      if (plan.tensors[i]->storage == fb::Storage::Constant)
        written[i].always = true;
    for (; at < plan.steps.size(); ++at)
      if (Status status = checkStep(*plan.steps[at]); !status)
        return Error{"step " + std::to_string(at) + " ('" + plan.steps[at]->op +
                     "' at " + plan.steps[at]->location +
                     "): " + status.message()};
    // What a caller gets.
    for (const auto &port : plan.ports) {
      int tensor = port->kind == fb::PortKind::Output  ? port->tensor
                   : port->kind == fb::PortKind::State ? port->state_result
                                                       : -1;
      if (tensor >= 0)
        if (Status status = checkUse(tensor, /*by=*/nullptr); !status)
          return Error{"port '" + port->name + "': " + status.message()};
    }
    return Ok{};
  }

private:
  /// Who has written a tensor so far.
  struct Written {
    bool always = false;
    std::map<int, std::set<int>> variants; ///< by alternative
    size_t ready = 0; ///< the step that waits until it is there
  };

  static bool isThere(const fb::VariantT &variant) {
    return variant.reason.empty();
  }

  static Status checkVariants(const fb::AlternativeT &alternative) {
    if (alternative.kind.empty())
      return Error{"it has no kind"};
    std::set<std::string> names;
    for (const auto &variant : alternative.variants)
      if (variant->name.empty() || !names.insert(variant->name).second)
        return Error{"two variants are named '" + variant->name + "'"};
    if (std::ranges::none_of(alternative.variants,
                             [](const auto &v) { return isThere(*v); }))
      return Error{"it has no variant"};
    return Ok{};
  }

  int rootOf(int tensor) const {
    while (plan.tensors[tensor]->alias)
      tensor = plan.tensors[tensor]->alias->source;
    return tensor;
  }

  Status checkStep(const fb::StepT &step) {
    if (step.alternative != -1) {
      if (step.alternative < 0 ||
          static_cast<size_t>(step.alternative) >= plan.alternatives.size())
        return Error{"there is no alternative " +
                     std::to_string(step.alternative)};
      const auto &variants = plan.alternatives[step.alternative]->variants;
      if (step.variant < 0 ||
          static_cast<size_t>(step.variant) >= variants.size() ||
          !isThere(*variants[step.variant]))
        return Error{"there is no variant " + std::to_string(step.variant)};
    }
    if (step.until != -1 && (step.until <= static_cast<int64_t>(at) ||
                             step.until > std::ssize(plan.steps)))
      return Error{"step " + std::to_string(step.until) +
                   " cannot be the first that waits for it"};
    for (int tensor : tensorsOf(step))
      TSR_TRY(checkUse(tensor, &step));
    return Ok{};
  }

  bool hasAllVariants(int alternative, const std::set<int> &found) const {
    const auto &variants = plan.alternatives[alternative]->variants;
    return static_cast<int64_t>(found.size()) ==
           std::ranges::count_if(variants,
                                 [](const auto &v) { return isThere(*v); });
  }

  /// Whether a tensor is there when `step`, or the caller, uses it.
  Status checkUse(int tensor, const fb::StepT *step) {
    Written &by = written[rootOf(tensor)];
    if (by.ready > at)
      return Error{"tensor " + std::to_string(tensor) + " ('" +
                   plan.tensors[tensor]->name + "') is there only for step " +
                   std::to_string(by.ready) + " and those behind it"};
    for (const auto &[alternative, found] : by.variants)
      by.always |= hasAllVariants(alternative, found);
    if (by.always)
      return Ok{};
    for (const auto &[alternative, found] : by.variants)
      if (!step || step->alternative != alternative)
        return Error{
            "tensor " + std::to_string(tensor) + " ('" +
            plan.tensors[tensor]->name + "') is written in variant '" +
            plan.alternatives[alternative]->variants[*found.begin()]->name +
            "' of " + plan.alternatives[alternative]->kind + " only"};
    if (step && step->until >= 0)
      by.ready = step->until;
    if (step && step->alternative >= 0)
      by.variants[step->alternative].insert(step->variant);
    else
      by.always = step != nullptr;
    return Ok{};
  }

  const fb::PlanT &plan;
  std::vector<Written> written; ///< by root tensor
  size_t at = 0;                ///< the step that is looked at
};

} // namespace

Status tessera::checkAlternatives(const fb::PlanT &plan) {
  return Checker(plan).run();
}
