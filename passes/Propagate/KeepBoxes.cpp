//===- KeepBoxes.cpp - whether a box of a split value stays where it is ---===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Through a slice goes the same split of the other extent, even blocks that
// some device must send for. When all is known, a result of a slice keeps what
// each device has of it instead, if that takes no longer in all: the ops that
// follow it take as long as the device with the most, but nothing moves.
//
//     x [did(tp) * 4] of 16     slice 3 to 13     exp
//       even blocks    3, 3, 3, 1: a move           3 elements
//       as they lie    1, 4, 4, 1                   4 elements
//
// All that lies as the result does must be free to follow it.
//
//===----------------------------------------------------------------------===//

#include "Layout/PlanViews.h"
#include "Propagate/Propagation.h"

#include <algorithm>
#include <map>
#include <set>

using namespace tessera;
using namespace tessera::tv;
using layout::IterationFactor;
using layout::Product;
using layout::View;

namespace {
/// The views that tensors would have, and the ops between them.
struct Followers {
  std::map<int, View> views;
  std::set<int> nodes;
};
} // namespace

/// What lies as `first` does, if that has `view`; nothing where one of them may
/// not.
static std::optional<Followers>
findFollowers(int first, const View &view,
              const std::vector<Propagation::Tensor> &tensors,
              const std::vector<Propagation::Node> &nodes,
              const std::vector<std::vector<int>> &nodesOfTensor,
              const layout::Mesh &mesh) {
  Followers found;
  std::vector<int> pending = {first};
  found.views[first] = view;
  std::set<int> needed; // as well
  while (!pending.empty()) {
    const int tensor = pending.back();
    pending.pop_back();
    if (tensors[tensor].pinned)
      return std::nullopt;
    for (int number : nodesOfTensor[tensor]) {
      const Propagation::Node &node = nodes[number];
      const auto use = std::ranges::find(node.operands, tensor);
      if (use == node.operands.end())
        continue; // what makes it
      const View &before = tensors[tensor].view, after = found.views[tensor];
      if (node.forward) { // the same elements, as a reshape's
        const int made = node.results[0];
        const Propagation::Tensor &other = tensors[made];
        Result<View> even = node.forward(before), kept = node.forward(after);
        if (!even || !kept ||
            std::ranges::find(other.open, Propagation::kClosed) !=
                other.open.end() ||
            layout::canonicalize(*even, other.shape, mesh) != other.view)
          return std::nullopt;
        found.views[made] = layout::canonicalize(*kept, other.shape, mesh);
        pending.push_back(made);
        continue;
      }
      found.nodes.insert(number);
      const auto &dims = node.rule.operands[use - node.operands.begin()];
      for (size_t d = 0; d < dims.size(); ++d) {
        const layout::Dim &even = before.dims[d], &kept = after.dims[d];
        if (even == kept)
          continue;
        if (dims[d].size() != 1 || node.rule.factors[dims[d][0]].kind !=
                                       IterationFactor::Kind::Parallel)
          return std::nullopt;
        const auto visit = [&](int other, const auto &otherDims,
                               bool isResult) {
          for (size_t o = 0; o < otherDims.size(); ++o) {
            if (std::ranges::find(otherDims[o], dims[d][0]) ==
                otherDims[o].end())
              continue;
            if (other < 0 || otherDims[o].size() != 1 ||
                tensors[other].view.dims.size() != otherDims.size())
              return false;
            const layout::Dim &lies = tensors[other].view.dims[o];
            // A part of what is whole costs nothing.
            if (!isResult && layout::axesOf(lies.product).empty())
              continue;
            if (lies != even || tensors[other].open[o] == Propagation::kClosed)
              return false;
            if (!isResult) {
              needed.insert(other);
              continue;
            }
            auto [its, isNew] =
                found.views.try_emplace(other, tensors[other].view);
            if (its->second.dims[o] == kept)
              continue;
            its->second.dims[o] = kept;
            pending.push_back(other);
          }
          return true;
        };
        for (size_t i = 0; i < node.operands.size(); ++i)
          if (!visit(node.operands[i], node.rule.operands[i], false))
            return std::nullopt;
        for (size_t i = 0; i < node.results.size(); ++i)
          if (!visit(node.results[i], node.rule.results[i], true))
            return std::nullopt;
      }
    }
  }
  for (int other : needed)
    if (!found.views.contains(other))
      return std::nullopt;
  return found;
}

/// What `node` takes where tensors lie as in `views`, or else as they do.
double Propagation::secondsOf(const Node &node,
                              const std::map<int, View> &views) const {
  const size_t count = node.rule.factors.size();
  std::vector<Product> products(count, {layout::Factor::rest()});
  std::vector<layout::OpTensor> operands, results;
  double uneven = 1; // as many values as that, of those of even blocks
  std::vector<char> seen(count, false);
  auto look = [&](int number, const auto &factors,
                  std::vector<layout::OpTensor> &list) {
    if (number < 0) {
      list.push_back({layout::Shape(factors.size(), 0), 0, View()});
      list.back().view = View::replicated(factors.size());
      return;
    }
    const Tensor &tensor = tensors[number];
    const auto found = views.find(number);
    const View &view = found == views.end() ? tensor.view : found->second;
    list.push_back({tensor.typical, tensor.elementBytes, view});
    if (view.dims.size() != factors.size())
      return;
    const layout::Shape local =
        layout::maxLocalShape(view, tensor.typical, mesh);
    for (size_t d = 0; d < factors.size(); ++d) {
      if (factors[d].size() != 1 || std::exchange(seen[factors[d][0]], true))
        continue;
      const Product &product = view.dims[d].product;
      products[factors[d][0]] = product;
      const int64_t devices = layout::sizeOf(layout::axesOf(product));
      const int64_t even = (tensor.typical[d] + devices - 1) / devices;
      uneven *= double(local[d]) / double(std::max<int64_t>(even, 1));
    }
  };
  for (size_t i = 0; i < node.results.size(); ++i)
    look(node.results[i], node.rule.results[i], results);
  for (size_t i = 0; i < node.operands.size(); ++i)
    look(node.operands[i], node.rule.operands[i], operands);
  const layout::Machine &machine = plans.getMachine();
  // Loops are priced as even.
  const double loops =
      uneven * layout::opSeconds(node.rule, products, 1, {}, {}, mesh, machine);
  return std::max(loops, layout::opSeconds(node.rule, products, 1, operands,
                                           results, mesh, machine));
}

void Propagation::keepBox(int number) {
  const Node &node = nodes[number];
  const int from = node.operands[0], to = node.results[0];
  if (from < 0 || to < 0)
    return;
  const Tensor &box = tensors[to];
  Result<View> lies = node.box(tensors[from].view);
  if (!lies || lies->partial != box.view.partial ||
      lies->dims.size() != box.view.dims.size() ||
      lies->dims.size() != box.shape.size())
    return;
  View kept = layout::canonicalize(*lies, box.shape, mesh);
  bool differs = false;
  for (size_t d = 0; d < kept.dims.size(); ++d) {
    if (kept.dims[d] == box.view.dims[d])
      continue;
    auto axes = layout::merged(layout::axesOf(kept.dims[d].product));
    if (axes.empty() || box.open[d] == kClosed ||
        axes != layout::merged(layout::axesOf(box.view.dims[d].product)))
      return;
    differs = true;
  }
  auto move = plans.get(box.typical, box.elementBytes, kept, box.view);
  if (!differs || !move)
    return;
  std::optional<Followers> followers =
      findFollowers(to, kept, tensors, nodes, nodesOfTensor, mesh);
  if (!followers)
    return;
  layout::Price even((*move)->chosen.cost), asTheyLie;
  for (int follower : followers->nodes) {
    even.seconds += secondsOf(nodes[follower], {});
    asTheyLie.seconds += secondsOf(nodes[follower], followers->views);
  }
  const bool keeps = !layout::isLess(even.seconds, asTheyLie.seconds);
  say(to, keeps, [&] {
    return box.name +
           (keeps ? " keeps what each device has, "
                  : " does not keep what each device has, ") +
           layout::toString(kept, mesh) +
           (keeps ? layout::describe(asTheyLie, even)
                  : layout::describe(even, asTheyLie));
  });
  if (keeps)
    for (auto &[tensor, view] : followers->views)
      tensors[tensor].view = std::move(view);
}
