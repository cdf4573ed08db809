//===- Agreement.cpp - do views agree with an op's rule ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Machine/Interpreter.h"
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

/// The dimension of `view` at `dim`; null in a flat one.
static const layout::Dim *dimOf(const layout::View &view, size_t dim) {
  size_t d = 0;
  for (const layout::Dim &own : view.dims) {
    if (d == dim && own.span == 1)
      return &own;
    d += own.span;
  }
  return nullptr;
}

/// Whether a dimension of this extent is split, but into one block.
static bool isOnOneDevice(const layout::Product &product, int64_t extent) {
  auto isDevice = [](const layout::Factor &factor) {
    return factor.kind == layout::Factor::Kind::Device;
  };
  return product.size() > 1 &&
         llvm::all_of(ArrayRef(product).drop_back(), isDevice) &&
         product.back().kind == layout::Factor::Kind::Stored &&
         product.back().size >= extent;
}

/// The product of factor `f` in a dimension that `factors` index; null where
/// the view does not tell them apart.
static std::optional<layout::Product>
productOf(const Layout &layout, size_t dim, const layout::DimFactors &factors,
          int f, const layout::Rule &rule) {
  const layout::Dim *own = dimOf(layout.view, dim);
  if (!own || factors.size() == 1)
    return own ? std::optional(own->product) : std::nullopt;
  layout::Shape from = {1}, to;
  for (int factor : factors) {
    to.push_back(rule.factors[factor].size);
    if (to.back() == layout::kDynamic)
      return std::nullopt;
    from[0] *= to.back();
  }
  // Where one device has all of it, the factor that has one value is split.
  auto unit = llvm::find(to, 1);
  if (unit != to.end() && isOnOneDevice(own->product, from[0])) {
    layout::View split = layout::View::replicated(1);
    if (factors[unit - to.begin()] == f) {
      split.dims[0].product = own->product;
      split.dims[0].product.back() = layout::Factor::stored(1);
    }
    return layout::canonicalize(split, {rule.factors[f].size}, layout.mesh)
        .dims[0]
        .product;
  }
  layout::View merged;
  merged.dims = {*own};
  Result<layout::View> parts =
      layout::reshapeView(merged, from, to, layout.mesh);
  if (!parts || parts->dims.size() != to.size())
    return std::nullopt;
  size_t number = llvm::find(factors, f) - factors.begin();
  layout::View one;
  one.dims = {parts->dims[number]};
  return layout::canonicalize(one, {to[number]}, layout.mesh).dims[0].product;
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

  // Along which axes a split leaves an addend on each device, in which results.
  struct Sum {
    Combiner combiner;
    SmallVector<bool> inResult;
  };
  std::map<SubAxis, Sum> reduced;
  auto rules = dyn_cast<tv::ShardingRuleOpInterface>(op);
  layout::Rule rule;
  if (rules)
    rule = rules.getShardingRule();
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    const layout::IterationFactor &factor = rule.factors[f];
    Sum sum{factor.combiner, {}};
    for (size_t result = 0; result < results.size(); ++result)
      sum.inResult.push_back(rule.makesPartial(f, result));
    if (!llvm::is_contained(sum.inResult, true))
      continue;
    std::optional<layout::Product> first;
    for (auto [i, dims] : llvm::enumerate(rule.operands))
      for (auto [d, factors] : llvm::enumerate(dims)) {
        if (!llvm::is_contained(factors, int(f)) || !operands[i])
          continue;
        auto product = productOf(*operands[i], d, factors, f, rule);
        if (!product) {
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
      reduced[sub] = sum;
      axes.insert(sub);
    }
  }

  const Layout *any = nullptr;
  for (ArrayRef<std::optional<Layout>> layouts : {operands, results})
    for (const std::optional<Layout> &layout : layouts)
      any = layout ? &*layout : any;
  auto reducedAlong = [&](const SubAxis &sub) -> const Sum * {
    for (const auto &[axis, sum] : reduced)
      if (layout::contains(axis, sub))
        return &sum;
    return nullptr;
  };
  axes = cutApart(std::move(axes));
  for (const SubAxis &a : axes) {
    const Sum *sum = reducedAlong(a);
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
        if (in.back() != sum->combiner) {
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
    for (size_t i = 0; sum && i < results.size(); ++i)
      if (sum->inResult[i])
        out[i] = sum->combiner;
    for (auto [result, state] : llvm::zip_equal(results, out))
      if ((result ? stateAlong(result->view, a) : State()) != state) {
        why = "its result is not partial along " +
              layout::toString(a, any->mesh) + " as it must be";
        return false;
      }
  }
  return true;
}
