//===- ScatterReturned.cpp - sums that are returned in parts --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the function returns of a sum over devices, in a view that is open: each
// device keeps a part, which is a reduce-scatter where the whole is an
// all-reduce. What the sum becomes first is split so, too, where nothing else
// uses it.
//
//===----------------------------------------------------------------------===//

#include "Layout/PlanViews.h"
#include "Propagate/Propagation.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::tv;
using layout::Dim;
using layout::IterationFactor;
using layout::Product;
using layout::SubAxis;
using layout::View;

Propagation::Sum Propagation::findSum(int tensor) const {
  Sum sum;
  std::set<int> nodesBelow;
  // The last one first: what uses a tensor is known before it is its turn.
  std::map<int, int, std::greater<>> turns = {{producers[tensor], tensor}};
  while (!turns.empty()) {
    const auto [number, made] = *turns.begin();
    turns.erase(turns.begin());
    const std::vector<int> &around = nodesOfTensor[made];
    if (!isOpen(made) ||
        !std::all_of(around.begin(), around.end(), [&, number = number](int n) {
          return n == number || nodesBelow.count(n);
        }))
      continue;
    const Node &node = nodes[number];
    const bool passes = passesOn(node);
    const size_t result =
        std::find(node.results.begin(), node.results.end(), made) -
        node.results.begin();
    bool isSum = false;
    for (size_t i = 0; !passes && i < node.operands.size(); ++i) {
      const int operand = node.operands[i];
      if (operand < 0)
        continue;
      const std::vector<Dim> &dims = tensors[operand].view.dims;
      if (dims.size() == node.rule.operands[i].size())
        for (size_t d = 0; d < dims.size(); ++d)
          for (int factor : node.rule.operands[i][d])
            if (node.rule.makesPartial(factor, result)) {
              // What splits the result is lost to other loops.
              const std::vector<SubAxis> axes =
                  layout::subtract(layout::axesOf(dims[d].product),
                                   layout::axesOf(tensors[made].view));
              isSum |= !axes.empty();
              for (const SubAxis &axis : layout::subtract(axes, sum.axes))
                sum.axes.push_back(axis);
            }
    }
    if (!passes && !isSum && node.results.size() != 1)
      continue;
    nodesBelow.insert(number);
    sum.tensors.push_back(made);
    if (isSum) {
      sum.sums.insert(made);
      continue;
    }
    sum.behindLoops |= !passes;
    // Where it lies as what is made of it does.
    for (size_t i = 0; i < node.operands.size(); ++i)
      if (const int operand = node.operands[i];
          operand >= 0 && producers[operand] >= 0 &&
          viewAbove(node, i, tensors[made].view) == tensors[operand].view)
        turns.emplace(producers[operand], operand);
  }
  return sum;
}

/// Whether `node` may make its result lie as `to` instead of `from`: what it
/// splits are loops that go on. A norm needs some dimensions whole.
static bool splitsLoops(const layout::Rule &rule, const View &from,
                        const View &to) {
  const auto &factors = rule.results[0];
  if (from.dims.size() != factors.size() || to.dims.size() != factors.size())
    return false;
  for (size_t d = 0; d < factors.size(); ++d)
    if (from.dims[d] != to.dims[d] &&
        (factors[d].size() != 1 ||
         rule.factors[factors[d][0]].kind != IterationFactor::Kind::Parallel))
      return false;
  return true;
}

bool Propagation::keepsClosed(int tensor, const View &view) const {
  const Tensor &t = tensors[tensor];
  if (isOpenEverywhere(tensor))
    return true;
  if (view.dims.size() != t.shape.size() ||
      view.dims.size() != t.view.dims.size())
    return false;
  for (size_t d = 0; d < view.dims.size(); ++d)
    if (t.open[d] == kClosed && view.dims[d] != t.view.dims[d])
      return false;
  return true;
}

std::map<int, std::optional<View>>
Propagation::viewsAbove(const Sum &sum, int tensor, const View &view) const {
  std::map<int, std::optional<View>> views;
  views[tensor] = layout::canonicalize(view, tensors[tensor].shape, mesh);
  for (int made : sum.tensors) {
    auto found = views.find(made);
    if (found == views.end() || !found->second || sum.sums.count(made))
      continue;
    const View taken = *found->second;
    const Node &node = nodes[producers[made]];
    if (!passesOn(node) && !splitsLoops(node.rule, tensors[made].view, taken)) {
      found->second = std::nullopt;
      continue;
    }
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const int operand = node.operands[i];
      if (operand < 0)
        continue;
      std::optional<View> above = viewAbove(node, i, taken);
      if (above && !keepsClosed(operand, *above))
        above = std::nullopt;
      auto [known, isNew] = views.try_emplace(operand, above);
      if (!isNew && known->second != above)
        known->second = std::nullopt;
    }
  }
  return views;
}

void Propagation::scatterReturned(int tensor) {
  const Tensor &t = tensors[tensor];
  if (producers[tensor] < 0 || nodesOfTensor[tensor].size() != 1 ||
      t.view.dims.size() != t.shape.size() ||
      plans.getMachine().isSmall(t.bytes()))
    return;
  const Sum sum = findSum(tensor);
  if (sum.axes.empty() || layout::overlap(sum.axes, layout::axesOf(t.view)))
    return;
  const auto summed = axisOrder.sorted(layout::merged(sum.axes));
  // Blocks over more devices, of the first dimension that has as many or else
  // enough elements.
  std::map<int, std::optional<View>> views;
  auto split = [&](size_t d, bool divides) {
    Product product = t.view.dims[d].product;
    const bool isBlocks = std::all_of(
        product.begin(), product.end(), [&](const layout::Factor &factor) {
          return factor.kind == layout::Factor::Kind::Device ||
                 &factor == &product.back();
        });
    const std::vector<SubAxis> axes = layout::axesAsWritten(product);
    const int64_t parts = layout::sizeOf(axes) * layout::sizeOf(sum.axes);
    if (!isBlocks || (divides ? t.shape[d] % parts != 0 : t.typical[d] < parts))
      return false;
    product.clear();
    for (const SubAxis &axis : axes)
      product.push_back(layout::Factor::device(axis));
    for (const SubAxis &axis : summed)
      product.push_back(layout::Factor::device(axis));
    product.push_back(layout::Factor::rest());
    View view = t.view;
    view.dims[d].product = std::move(product);
    views = viewsAbove(sum, tensor, view);
    return !sum.behindLoops ||
           std::any_of(sum.sums.begin(), sum.sums.end(), [&](int made) {
             auto found = views.find(made);
             return found != views.end() && found->second &&
                    *found->second != tensors[made].view;
           });
  };
  bool found = false;
  for (bool divides : {true, false})
    for (size_t d = 0; d < t.shape.size() && !found; ++d)
      found = t.open[d] != kClosed && split(d, divides);
  if (!found)
    return;
  for (int made : sum.tensors) {
    auto other = views.find(made);
    if (other == views.end() || !other->second ||
        *other->second == tensors[made].view)
      continue;
    say(made, true, [&] {
      View addends = tensors[made].view;
      addends.partial.push_back({sum.axes, layout::Combiner::Sum});
      const bool isSum = sum.sums.count(made);
      auto parts = priceMove(made, addends, *other->second);
      auto whole = priceMove(made, addends, tensors[made].view);
      return tensors[made].name + " becomes " +
             layout::toString(*other->second, mesh) + ", for it is " +
             (isSum ? "" : "of ") + "a sum and nothing else says how it lies" +
             (isSum && parts && whole ? layout::describe(*parts, *whole) : "");
    });
    tensors[made].view = *other->second;
  }
}
