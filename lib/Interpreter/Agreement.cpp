//===- Agreement.cpp - do views agree with an op's rule ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Interpreter.h"
#include "Layout/Exchange.h"
#include "TensorView/TensorView.h"

#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;
using layout::Combiner;
using layout::SubAxis;
using Kind = layout::IterationFactor::Kind;
using State = std::optional<Combiner>;

/// The product of a dimension that one factor indexes; null in a flat one.
static const layout::Product *productOf(const layout::View &view, size_t dim) {
  size_t d = 0;
  for (const layout::Dim &own : view.dims) {
    if (d == dim && own.span == 1)
      return &own.product;
    d += own.span;
  }
  return nullptr;
}

/// The state of a value along one sub-axis.
static State stateAlong(const layout::View &view, const SubAxis &sub) {
  for (const layout::Partial &partial : view.partial)
    if (layout::contains(partial.axes, sub))
      return partial.combiner;
  return std::nullopt;
}

/// Cuts sub-axes that overlap into pieces that do not.
static std::set<SubAxis> cutApart(std::set<SubAxis> axes) {
  auto cutOne = [&]() {
    for (const SubAxis &a : axes)
      for (const SubAxis &b : axes) {
        if (a == b || !layout::overlap(a, b))
          continue;
        std::vector<SubAxis> rest = layout::subtract({a}, {b});
        if (rest.empty() || rest == std::vector<SubAxis>{a})
          continue;
        std::vector<SubAxis> common = layout::subtract({a}, rest);
        axes.erase(a);
        axes.insert(rest.begin(), rest.end());
        axes.insert(common.begin(), common.end());
        return true;
      }
    return false;
  };
  while (cutOne())
    ;
  return axes;
}

bool interp::agreesWithRule(Operation *op,
                            ArrayRef<std::optional<Layout>> operands,
                            ArrayRef<std::optional<Layout>> results,
                            std::string &why) {
  std::set<SubAxis> axes;
  for (ArrayRef<std::optional<Layout>> layouts : {operands, results})
    for (const std::optional<Layout> &layout : layouts)
      if (layout)
        for (const layout::Partial &partial : layout->view.partial)
          axes.insert(partial.axes.begin(), partial.axes.end());

  // Along which axes a split leaves an addend on each device.
  std::map<SubAxis, Combiner> reduced;
  auto rules = dyn_cast<tv::ShardingRuleOpInterface>(op);
  layout::Rule rule;
  if (rules)
    rule = rules.getShardingRule();
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    const layout::IterationFactor &factor = rule.factors[f];
    if (factor.kind != Kind::Reduction &&
        (factor.kind != Kind::Indexed || rule.isInResult(f)))
      continue;
    const layout::Product *first = nullptr;
    for (auto [i, dims] : llvm::enumerate(rule.operands))
      for (auto [d, factors] : llvm::enumerate(dims)) {
        if (!llvm::is_contained(factors, int(f)) || !operands[i])
          continue;
        const layout::Product *product = productOf(operands[i]->view, d);
        if (!product || factors.size() != 1) {
          why = "a dimension that is summed over is part of another";
          return false;
        }
        if (first && *first != *product) {
          why = "a dimension that is summed over lies differently in its "
                "operands";
          return false;
        }
        first = product;
      }
    if (!first)
      continue;
    for (const SubAxis &sub : layout::axesOf(*first)) {
      reduced[sub] = factor.combiner;
      axes.insert(sub);
    }
  }

  const Layout *any = nullptr;
  for (ArrayRef<std::optional<Layout>> layouts : {operands, results})
    for (const std::optional<Layout> &layout : layouts)
      any = layout ? &*layout : any;
  auto reducedAlong = [&](const SubAxis &sub) -> State {
    for (const auto &[axis, combiner] : reduced)
      if (layout::contains(axis, sub))
        return combiner;
    return std::nullopt;
  };
  axes = cutApart(std::move(axes));
  for (const SubAxis &a : axes) {
    State sum = reducedAlong(a);
    for (const SubAxis &b : axes)
      if (a != b && layout::overlap(a, b)) {
        why = "sub-axes of partial states overlap";
        return false;
      }
    SmallVector<State> in, out;
    bool partial = false;
    for (auto [i, operand] : llvm::enumerate(operands)) {
      in.push_back(operand ? stateAlong(operand->view, a) : State());
      bool isAdded = rules && rule.uses[i] == layout::Use::Added;
      // What joins a split sum once is partial as the sum is.
      if (isAdded && sum) {
        if (in.back() != sum) {
          why = "an operand that is added once must be partial along " +
                layout::toString(a, any->mesh);
          return false;
        }
        in.back() = std::nullopt;
      }
      partial |= in.back().has_value();
    }
    out.assign(results.size(), std::nullopt);
    if (partial && sum) {
      why = "an operand is partial along an axis that splits the sum";
      return false;
    }
    if (partial) {
      // A reinterpreted value keeps its addends.
      if (isa<tv::ReinterpretOpInterface>(op))
        out.assign(results.size(), in[0]);
      else if (!rules) {
        why = "it needs whole operands";
        return false;
      } else {
        out.clear();
        if (failed(rules.transferPartial(in, out, why)))
          return false;
      }
    }
    if (sum)
      out.assign(results.size(), sum);
    for (auto [result, state] : llvm::zip_equal(results, out))
      if ((result ? stateAlong(result->view, a) : State()) != state) {
        why = "its result is not partial along " +
              layout::toString(a, any->mesh) + " as it must be";
        return false;
      }
  }
  return true;
}
