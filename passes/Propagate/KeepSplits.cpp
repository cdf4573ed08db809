//===- KeepSplits.cpp - whether what a composite returns stays split ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A composite needs the dimension that it runs through in order whole, so no
// split of it passes. Where its first operand has one, core ops take its place,
// of which only sums move: the result comes as the operand lies, if it has the
// same loop (that of tv.top_k has another, and no split). When all is known and
// the function returns it, it stays so, with what is made of it.
//
//     x [_, did(tp) * _]     softmax     exp     return
//       no split passes      gathered    whole
//       as it comes          split       split
//
// Nothing else may need it; an op that would need it whole is one.
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
using layout::SubAxis;
using layout::View;

/// The dimension that `factor` alone indexes.
static std::optional<size_t>
findDim(const std::vector<layout::DimFactors> &dims, int factor) {
  const auto at = std::ranges::find(dims, layout::DimFactors{factor});
  return at == dims.end() ? std::nullopt
                          : std::optional<size_t>(at - dims.begin());
}

static bool splits(const layout::Dim &dim) {
  return !layout::axesOf(dim.product).empty();
}

/// Gives the results of `node` the splits that `after` has and `before` has
/// not, views of its operand; false where one does not pass. Of a small value
/// a gather takes less than what core ops of another composite move.
bool Propagation::passSplits(const Node &node, size_t operand,
                             const View &before, const View &after,
                             std::map<int, View> &views) const {
  const int from = node.operands[operand];
  auto give = [&](int to, const View &view) {
    return !tensors[to].pinned &&
           views.try_emplace(to, view).first->second == view;
  };
  if (node.forward) {
    const int to = node.results[0];
    Result<View> was = node.forward(before), is = node.forward(after);
    return was && is && *was == tensors[to].view && isOpenEverywhere(to) &&
           give(to, *is);
  }
  auto kindOf = [&](int factor) { return node.rule.factors[factor].kind; };
  const bool becomesCore =
      operand == 0 && (!views.contains(from) ||
                       !plans.getMachine().isSmall(tensors[from].bytes()));
  const auto &dims = node.rule.operands[operand];
  if (after.dims.size() != dims.size())
    return false; // flat
  for (size_t r = 0; r < node.results.size(); ++r) {
    const int to = node.results[r];
    if (to < 0 || tensors[to].view.dims.size() != node.rule.results[r].size())
      return false;
    View view = tensors[to].view;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (before.dims[d] == after.dims[d] || !splits(after.dims[d]))
        continue;
      if (dims[d].size() != 1)
        return false;
      const auto at = findDim(node.rule.results[r], dims[d][0]);
      const IterationFactor::Kind kind = kindOf(dims[d][0]);
      if (!at || tensors[to].open[*at] == kClosed ||
          !(kind == IterationFactor::Kind::Parallel ||
            (kind == IterationFactor::Kind::Sequential && becomesCore)))
        return false;
      if (view.dims[*at] == after.dims[d])
        continue;
      if (splits(view.dims[*at]) ||
          layout::overlap(layout::axesOf(view),
                          layout::axesOf(after.dims[d].product)))
        return false;
      view.dims[*at] = after.dims[d];
    }
    if (!give(to, view))
      return false;
  }
  return true;
}

void Propagation::keepSplit(int first) {
  const Node &composite = nodes[first];
  if (composite.forward || composite.operands.empty() ||
      composite.operands[0] < 0 || composite.results.size() != 1)
    return;
  const View &lies = tensors[composite.operands[0]].view;
  const auto &dims = composite.rule.operands[0];
  View passed = lies; // so far
  bool cutsLoop = false;
  for (size_t d = 0; d < lies.dims.size() && d < dims.size(); ++d)
    if (splits(lies.dims[d]) && dims[d].size() == 1 &&
        composite.rule.factors[dims[d][0]].kind ==
            IterationFactor::Kind::Sequential) {
      passed.dims[d].product = {layout::Factor::rest()};
      cutsLoop = true;
    }
  if (!cutsLoop)
    return;
  std::map<int, View> views;
  const int result = composite.results[0];
  if (!passSplits(composite, 0, passed, lies, views) ||
      views.at(result) == tensors[result].view)
    return;
  const std::vector<SubAxis> axes = layout::subtract(
      layout::axesOf(views.at(result)), layout::axesOf(tensors[result].view));
  std::set<std::pair<int, int>> waiting; // by depth: operands are known
  auto askUsers = [&](const Node &node) {
    for (int made : node.results)
      for (int user : nodesOfTensor[made])
        if (user != producers[made])
          waiting.emplace(depths[user], user);
  };
  for (askUsers(composite); !waiting.empty();) {
    const Node &node = nodes[waiting.extract(waiting.begin()).value().second];
    bool passes = false;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const int operand = node.operands[i];
      if (operand < 0 ||
          (!node.forward && node.rule.uses[i] == layout::Use::Unread))
        continue;
      const View &before = tensors[operand].view;
      auto after = views.find(operand);
      // Of others each device takes its part, so these must be whole.
      if (after == views.end()
              ? layout::overlap(layout::axesOf(before), axes)
              : !passSplits(node, i, before, after->second, views))
        return;
      passes |= after != views.end();
    }
    if (passes)
      askUsers(node);
  }
  for (const auto &[made, view] : views) {
    say(made, true, [&] {
      return tensors[made].name + " becomes " + layout::toString(view, mesh) +
             ", for so it comes from the core ops of " + composite.name +
             " and nothing else says how it lies";
    });
    tensors[made].view = view;
  }
}
