//===- Propagation.cpp - from some views to a view for every tensor -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Propagate/Propagation.h"
#include "Layout/PlanViews.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

using namespace tessera;
using namespace tessera::tv;
using layout::Dim;
using layout::IterationFactor;
using layout::Price;
using layout::Product;
using layout::Shape;
using layout::SubAxis;
using layout::View;

/// The product of the extents that a dimension beginning at `first` spans.
static int64_t boundOf(const Shape &shape, const Dim &dim, int64_t first) {
  int64_t bound = 1;
  for (int64_t d = first; d < first + dim.span; ++d) {
    if (shape[d] == layout::kDynamic)
      return layout::kDynamic;
    bound *= shape[d];
  }
  return bound;
}

static bool isShifted(const layout::Rule &rule, int factor) {
  return rule.factors[factor].kind == IterationFactor::Kind::Shifted;
}

static bool leavesPartial(const layout::Rule &rule, int factor) {
  for (size_t result = 0; result < rule.results.size(); ++result)
    if (rule.makesPartial(factor, result))
      return true;
  return false;
}

Propagation::Propagation(layout::Mesh mesh, const layout::Machine &machine,
                         bool explain)
    : explain(explain), mesh(std::move(mesh)), axisOrder(this->mesh),
      plans(this->mesh, machine) {}

int Propagation::addTensor(Tensor tensor) {
  nodesOfTensor.emplace_back();
  producers.push_back(-1);
  disputed.emplace_back(tensor.shape.size());
  origins.emplace_back(tensor.shape.size(), std::pair<int, int64_t>(-1, 0));
  tensors.push_back(std::move(tensor));
  return tensors.size() - 1;
}

void Propagation::addNode(Node node) {
  int index = nodes.size();
  for (const std::vector<int> *list : {&node.operands, &node.results})
    for (int tensor : *list)
      if (tensor >= 0)
        nodesOfTensor[tensor].push_back(index);
  for (int tensor : node.results)
    if (tensor >= 0)
      producers[tensor] = index;
  nodes.push_back(std::move(node));
  for (std::vector<bool> &listed : isPending)
    listed.push_back(false);
}

bool Propagation::isOpen(int tensor) const {
  const std::vector<int> &open = tensors[tensor].open;
  return std::any_of(open.begin(), open.end(),
                     [](int dim) { return dim != kClosed; });
}

void Propagation::askAgain(int node) {
  for (int direction = 0; direction < 2; ++direction) {
    const std::vector<int> &targets = direction == int(Direction::Forward)
                                          ? nodes[node].results
                                          : nodes[node].operands;
    const bool decides =
        explain || std::any_of(targets.begin(), targets.end(), [&](int target) {
          return target >= 0 && isOpen(target);
        });
    if (!decides || isPending[direction][node])
      continue;
    isPending[direction][node] = true;
    pending[direction].push_back(node);
  }
}

int64_t Propagation::Tensor::bytes() const {
  int64_t bytes = elementBytes;
  for (int64_t extent : typical)
    bytes *= extent;
  return bytes;
}

void Propagation::findDepths() {
  depths.assign(nodes.size(), 0);
  std::vector<int> waits(nodes.size(), 0), ready;
  for (size_t node = 0; node < nodes.size(); ++node) {
    for (int operand : nodes[node].operands)
      waits[node] += operand >= 0 && producers[operand] >= 0;
    if (waits[node] == 0)
      ready.push_back(node);
  }
  while (!ready.empty()) {
    int node = ready.back();
    ready.pop_back();
    for (int result : nodes[node].results) {
      if (result < 0)
        continue;
      for (int user : nodesOfTensor[result]) {
        if (user == node)
          continue;
        depths[user] = std::max(depths[user], depths[node] + 1);
        if (--waits[user] == 0)
          ready.push_back(user);
      }
    }
  }
}

Status Propagation::run() {
  findDepths();
  for (const Tensor &tensor : tensors)
    axisOrder.add(tensor.view);
  std::set<int64_t> priorities = {0};
  for (const Tensor &tensor : tensors)
    priorities.insert(tensor.priority.begin(), tensor.priority.end());

  // Each round but the last refines a dimension by at least one axis.
  int64_t axes = 0;
  for (const layout::Axis &axis : mesh.axes)
    for (int64_t rest = axis.size; rest > 1; rest /= 2)
      ++axes;
  int64_t left = (axes + 1) * tensors.size() * 2 + 4;

  for (int64_t priority : priorities) {
    for (size_t node = 0; node < nodes.size(); ++node)
      askAgain(node);
    for (bool last : {false, true}) {
      breakTies = last;
      for (int node : std::exchange(tied, {}))
        askAgain(node);
      if (Status status = runToEnd(priority, left); !status)
        return status;
    }
  }
  for (size_t tensor = 0; tensor < tensors.size(); ++tensor)
    if (tensors[tensor].returned)
      scatterReturned(tensor);
  for (size_t node = 0; node < nodes.size(); ++node)
    keepSplit(node);
  for (size_t node = 0; node < nodes.size(); ++node)
    if (nodes[node].box)
      keepBox(node);
  return Ok{};
}

/// Whether a split of any dimension passes through the op as it is.
static bool isParallel(const layout::Rule &rule) {
  return std::all_of(rule.factors.begin(), rule.factors.end(),
                     [](const IterationFactor &factor) {
                       return factor.kind == IterationFactor::Kind::Parallel;
                     });
}

bool Propagation::passesOn(const Node &node) const {
  return node.results.size() == 1 && (node.forward || isParallel(node.rule));
}

bool Propagation::isOpenEverywhere(int tensor) const {
  const std::vector<int> &open = tensors[tensor].open;
  return std::find(open.begin(), open.end(), kClosed) == open.end();
}

std::optional<View> Propagation::viewAbove(const Node &node, size_t operand,
                                           const View &view) const {
  if (node.forward) {
    Result<View> above = node.backward(view);
    return above ? std::optional(std::move(*above)) : std::nullopt;
  }
  const Tensor &made = tensors[node.results[0]];
  const Tensor &of = tensors[node.operands[operand]];
  View above = of.view;
  const auto &from = node.rule.results[0], &to = node.rule.operands[operand];
  if (view.dims.size() != from.size() || above.dims.size() != to.size())
    return std::nullopt; // flat
  for (size_t d = 0; d < to.size(); ++d)
    for (size_t r = 0; r < from.size(); ++r) {
      if (to[d] != from[r])
        continue;
      // Of other extents blocks over the same devices are another product.
      if (of.shape[d] == made.shape[r])
        above.dims[d] = view.dims[r];
      else if (layout::axesOf(above.dims[d].product) !=
               layout::axesOf(view.dims[r].product))
        return std::nullopt;
    }
  return above;
}

std::optional<Price> Propagation::priceMove(int tensor, const View &from,
                                            const View &to) const {
  const Tensor &moved = tensors[tensor];
  auto plan = plans.get(moved.typical, moved.elementBytes, from, to);
  return plan ? std::optional(Price((*plan)->chosen.cost)) : std::nullopt;
}

bool Propagation::canLeave(int tensor, const View &view) const {
  return priceMove(tensor, view, View::replicated(tensors[tensor].shape.size()))
      .has_value();
}

Status Propagation::runToEnd(int64_t priority, int64_t &roundsLeft) {
  bool changed = true;
  while (changed) {
    changed = roundForward(priority);
    changed |= roundBackward(priority);
    if (--roundsLeft < 0)
      return Error{"propagation does not come to an end"};
  }
  return Ok{};
}

bool Propagation::roundForward(int64_t priority) {
  std::vector<int> &listed = pending[int(Direction::Forward)];
  std::set<std::pair<int, int>> waiting; // by depth
  bool changed = false;
  while (true) {
    for (int node : std::exchange(listed, {}))
      waiting.emplace(depths[node], node);
    if (waiting.empty())
      return changed;
    int node = waiting.extract(waiting.begin()).value().second;
    isPending[int(Direction::Forward)][node] = false;
    std::vector<Proposal> proposals;
    propose(node, Direction::Forward, priority, proposals);
    changed |= merge(proposals, Direction::Forward);
  }
}

bool Propagation::roundBackward(int64_t priority) {
  std::vector<Proposal> proposals;
  for (int node : std::exchange(pending[int(Direction::Backward)], {})) {
    isPending[int(Direction::Backward)][node] = false;
    propose(node, Direction::Backward, priority, proposals);
  }
  return merge(proposals, Direction::Backward);
}

std::string Propagation::describe(const Proposal &proposal) const {
  return layout::toString(proposal.to.product, mesh) + " from " +
         tensors[proposal.source].name + " through " +
         nodes[proposal.node].name;
}

bool Propagation::merge(std::vector<Proposal> &proposals, Direction direction) {
  auto rank = [](const Proposal &p) {
    return std::tuple(p.tensor, p.priority, p.rounded, p.shifted, -p.bytes,
                      !p.weight, p.firstDim);
  };
  std::stable_sort(proposals.begin(), proposals.end(),
                   [&](const Proposal &a, const Proposal &b) {
                     const auto ofA = rank(a), ofB = rank(b);
                     if (ofA != ofB || a.to.product == b.to.product)
                       return ofA < ofB;
                     return axisOrder.keyOf(a.to.product) <
                            axisOrder.keyOf(b.to.product);
                   });
  if (direction == Direction::Backward)
    findDisputes(proposals);
  bool changed = false;
  for (const Proposal &proposal : proposals) {
    if (direction == Direction::Backward &&
        disputed[proposal.tensor][proposal.firstDim])
      continue;
    if (!take(proposal))
      continue;
    changed = true;
    for (int node : nodesOfTensor[proposal.tensor])
      askAgain(node);
  }
  return changed;
}

void Propagation::propose(int index, Direction direction, int64_t priority,
                          std::vector<Proposal> &proposals) {
  const Node &node = nodes[index];
  if (!node.forward)
    return proposeByRule(index, direction, priority, proposals);
  if (direction == Direction::Forward)
    proposeByView(index, node.operands[0], node.results[0], node.forward,
                  priority, proposals);
  else
    proposeByView(index, node.results[0], node.operands[0], node.backward,
                  priority, proposals);
}

bool Propagation::exclude(const Proposal &a, const Proposal &b) const {
  bool apart = a.firstDim + a.to.span <= b.firstDim ||
               b.firstDim + b.to.span <= a.firstDim;
  if (apart)
    return layout::overlap(layout::axesOf(a.to.product),
                           layout::axesOf(b.to.product));
  if (a.firstDim != b.firstDim || a.to.span != b.to.span)
    return true;
  int64_t bound = boundOf(tensors[a.tensor].shape, a.to, a.firstDim);
  return !layout::refines(a.to.product, b.to.product, bound, mesh) &&
         !layout::refines(b.to.product, a.to.product, bound, mesh);
}

bool Propagation::isFreeAsItIs(int tensor) const {
  if (producers[tensor] < 0)
    return true;
  const Node &node = nodes[producers[tensor]];
  if (node.forward)
    return isFreeAsItIs(node.operands[0]);
  for (size_t i = 0; i < node.operands.size(); ++i) {
    if (node.operands[i] < 0 || node.rule.uses[i] == layout::Use::Unread)
      continue;
    int64_t first = 0;
    for (const Dim &dim : tensors[node.operands[i]].view.dims) {
      bool split = !layout::axesOf(dim.product).empty();
      for (int64_t d = first; split && d < first + dim.span; ++d)
        for (int factor : node.rule.operands[i][d])
          if (!node.rule.isInResult(factor) || isShifted(node.rule, factor) ||
              leavesPartial(node.rule, factor))
            return false;
      first += dim.span;
    }
  }
  return true;
}

void Propagation::findDisputes(const std::vector<Proposal> &proposals) {
  // What many uses may wish, alike.
  struct Wish {
    const Proposal *first;
    bool ofOthers; ///< of another op than the first one's, too
  };
  // Proposals to one tensor are next to each other, the strongest first.
  for (size_t begin = 0, end; begin < proposals.size(); begin = end) {
    auto rank = [](const Proposal &p) {
      return std::tuple(p.tensor, p.priority, p.rounded);
    };
    std::vector<Wish> wishes;
    for (end = begin; end < proposals.size() &&
                      rank(proposals[end]) == rank(proposals[begin]);
         ++end) {
      const Proposal &p = proposals[end];
      auto same = std::find_if(wishes.begin(), wishes.end(), [&](Wish &wish) {
        return wish.first->firstDim == p.firstDim && wish.first->to == p.to;
      });
      if (same == wishes.end())
        wishes.push_back({&p, false});
      else
        same->ofOthers |= same->first->node != p.node;
    }
    for (const Wish &wish : wishes)
      for (const Wish &other : wishes) {
        if (&wish == &other || !exclude(*wish.first, *other.first) ||
            !isFreeAsItIs(wish.first->tensor))
          continue;
        for (size_t i = begin; i < end; ++i) {
          const Proposal &p = proposals[i];
          if (p.firstDim != wish.first->firstDim || p.to != wish.first->to ||
              (p.node == other.first->node && !other.ofOthers))
            continue;
          for (int64_t d = p.firstDim; d < p.firstDim + p.to.span; ++d)
            disputed[p.tensor][d] = true;
          say(p.tensor, false, [&] {
            auto its = viewWith(p), others = viewWith(*other.first);
            auto moved = its && others ? priceMove(p.tensor, *its, *others)
                                       : std::nullopt;
            return tensors[p.tensor].name + " dimension " +
                   std::to_string(p.firstDim) + " does not become " +
                   describe(p) + ": another use wants " +
                   layout::toString(other.first->to.product, mesh) +
                   " in dimension " + std::to_string(other.first->firstDim) +
                   ", and as it is it serves both" +
                   (moved ? layout::describe(Price(), *moved) : "");
          });
        }
      }
  }
}

void Propagation::proposeByView(int index, int source, int target,
                                const ViewMap &map, int64_t priority,
                                std::vector<Proposal> &proposals) const {
  const Tensor &from = tensors[source];
  View view = from.view;
  view.partial.clear();
  view.alloc.reset();
  int64_t worst = 0, first = 0;
  for (size_t d = 0; d < view.dims.size(); ++d) {
    int64_t own = from.priority.empty() ? 0 : from.priority[d];
    if (own > priority) { // not yet seen
      Product whole;
      int64_t bound = boundOf(from.shape, view.dims[d], first);
      whole.push_back(bound == layout::kDynamic
                          ? layout::Factor::rest()
                          : layout::Factor::stored(bound));
      first += view.dims[d].span;
      view.dims[d].product = whole;
      continue;
    }
    first += view.dims[d].span;
    worst = std::max(worst, own);
  }
  Result<View> mapped = map(view);
  if (!mapped)
    return;
  first = 0;
  for (const Dim &dim : mapped->dims) {
    std::vector<SubAxis> axes = layout::axesOf(dim.product);
    int64_t origin = 0;
    for (const Dim &own : from.view.dims) {
      if (layout::overlap(axes, layout::axesOf(own.product)))
        break;
      origin += own.span;
    }
    if (!axes.empty())
      proposals.push_back(
          {target, first, dim, index, source, origin, /*shifted=*/false,
           /*rounded=*/false, worst, from.bytes(), from.weight});
    first += dim.span;
  }
}

std::optional<Dim> Propagation::roundToOutermost(const Dim &flat,
                                                 int64_t extent) const {
  Dim rounded;
  for (const layout::Factor &factor : flat.product) {
    if (factor.kind != layout::Factor::Kind::Device)
      break;
    rounded.product.push_back(factor);
  }
  if (layout::axesOf(rounded.product) != layout::axesOf(flat.product))
    return std::nullopt;
  rounded.product.push_back(layout::Factor::rest());
  View view;
  view.dims.push_back(rounded);
  return layout::canonicalize(view, {extent}, mesh).dims[0];
}

/// The dimensions of `view` that `span` dimensions of a tensor from `begin` on
/// are: the first, and the one behind the last.
static std::optional<std::pair<size_t, size_t>>
findDims(const View &view, int64_t begin, int64_t span) {
  size_t from = 0;
  int64_t first = 0;
  bool aligned = false;
  for (size_t d = 0; d < view.dims.size(); ++d) {
    if (first == begin)
      from = d, aligned = true;
    first += view.dims[d].span;
    if (first == begin + span && aligned)
      return std::pair(from, d + 1);
  }
  return std::nullopt;
}

std::optional<View> Propagation::viewWith(const Proposal &proposal) const {
  const Tensor &tensor = tensors[proposal.tensor];
  View view = tensor.view;
  auto dims = findDims(view, proposal.firstDim, proposal.to.span);
  if (!dims)
    return std::nullopt;
  for (Dim &dim : view.dims)
    dim.product =
        layout::gathered(dim.product, layout::axesOf(proposal.to.product));
  auto at = view.dims.erase(view.dims.begin() + dims->first,
                            view.dims.begin() + dims->second);
  view.dims.insert(at, proposal.to);
  return view;
}

bool Propagation::isNeededWhole(const Proposal &proposal) const {
  for (int number : nodesOfTensor[proposal.tensor]) {
    const Node &node = nodes[number];
    auto look = [&](const std::vector<int> &list, const auto &factors) {
      for (size_t i = 0; !node.forward && i < list.size(); ++i)
        for (int64_t d = 0; list[i] == proposal.tensor && d < proposal.to.span;
             ++d)
          for (int factor : factors[i][proposal.firstDim + d])
            if (node.rule.factors[factor].kind ==
                layout::IterationFactor::Kind::Sequential)
              return true;
      return false;
    };
    if (look(node.operands, node.rule.operands) ||
        look(node.results, node.rule.results))
      return true;
  }
  return false;
}

bool Propagation::take(const Proposal &proposal) {
  Tensor &tensor = tensors[proposal.tensor];
  int64_t end = proposal.firstDim + proposal.to.span;
  auto replaced = findDims(tensor.view, proposal.firstDim, proposal.to.span);
  if (!replaced)
    return false;
  const auto [from, to] = *replaced;
  if (to == from + 1 && tensor.view.dims[from] == proposal.to)
    return false;

  auto refuse = [&](const char *reason, const Product &of = {}) {
    say(proposal.tensor, false, [&] {
      const bool makes = producers[proposal.tensor] == proposal.node;
      auto wanted = viewWith(proposal);
      auto moved = !wanted ? std::nullopt
                   : makes ? priceMove(proposal.tensor, *wanted, tensor.view)
                           : priceMove(proposal.tensor, tensor.view, *wanted);
      return tensor.name + " dimension " + std::to_string(proposal.firstDim) +
             " does not become " + describe(proposal) + ": " + reason +
             (of.empty() ? "" : layout::toString(of, mesh)) +
             (moved ? "; it moves: " + layout::describe(*moved) : "");
    });
    return false;
  };
  for (int64_t d = proposal.firstDim; d < end; ++d)
    if (tensor.open[d] == kClosed)
      return refuse("its view is the user's");
  if (!breakTies && isNeededWhole(proposal)) {
    tied.insert(proposal.node);
    return false;
  }
  int64_t bound = boundOf(tensor.shape, proposal.to, proposal.firstDim);
  if (to == from + 1) {
    const Dim &now = tensor.view.dims[from];
    if (layout::refines(now.product, proposal.to.product, bound, mesh))
      return false; // already as fine
    if (!layout::refines(proposal.to.product, now.product, bound, mesh))
      return refuse("it is already ", now.product);
  } else {
    for (size_t d = from; d < to; ++d)
      if (!layout::axesOf(tensor.view.dims[d].product).empty())
        return refuse("a dimension that it joins is already split");
  }
  View rest = tensor.view;
  rest.dims.erase(rest.dims.begin() + from, rest.dims.begin() + to);
  std::vector<SubAxis> used = layout::axesOf(rest);
  if (layout::overlap(used, layout::axesOf(proposal.to.product))) {
    refuse("an axis already splits another of its dimensions");
    // What the others do not use.
    Proposal fewer = proposal;
    View left;
    left.dims.push_back(
        {layout::gathered(proposal.to.product, used), proposal.to.span});
    Shape extents(tensor.shape.begin() + proposal.firstDim,
                  tensor.shape.begin() + end);
    fewer.to = layout::canonicalize(left, extents, mesh).dims[0];
    return !layout::axesOf(fewer.to.product).empty() &&
           !layout::overlap(used, layout::axesOf(fewer.to.product)) &&
           take(fewer);
  }

  View view = tensor.view;
  view.dims.erase(view.dims.begin() + from, view.dims.begin() + to);
  view.dims.insert(view.dims.begin() + from, proposal.to);
  // A reshape may make more pieces than moves have, as no user wrote them.
  if (nodes[proposal.node].forward && !canLeave(proposal.tensor, view) &&
      canLeave(proposal.source, tensors[proposal.source].view))
    return refuse("it would lie in too many pieces to move");

  tensor.view = std::move(view);
  if (!tensor.priority.empty()) {
    tensor.priority.erase(tensor.priority.begin() + from,
                          tensor.priority.begin() + to);
    tensor.priority.insert(tensor.priority.begin() + from, proposal.priority);
  }
  say(proposal.tensor, true, [&] {
    return tensor.name + " dimension " + std::to_string(proposal.firstDim) +
           " becomes " + describe(proposal);
  });
  origins[proposal.tensor][proposal.firstDim] = {proposal.source,
                                                 proposal.sourceDim};
  if (explain && proposal.rounded)
    explainRounding(proposal);
  return true;
}

/// The view dimension of `view` that begins at tensor dimension `first`.
static const Dim *dimAt(const View &view, int64_t first) {
  int64_t at = 0;
  for (const Dim &dim : view.dims) {
    if (at == first)
      return &dim;
    at += dim.span;
  }
  return nullptr;
}

void Propagation::explainRounding(const Proposal &proposal) {
  const Tensor &source = tensors[proposal.source];
  const Dim *flat = dimAt(source.view, proposal.sourceDim);
  if (!flat || producers[proposal.source] < 0 ||
      !explained.insert(proposal.source).second)
    return;
  const Node &reshape = nodes[producers[proposal.source]];
  std::string text = source.name + " is split inside of dimensions " +
                     std::to_string(proposal.sourceDim) + " to " +
                     std::to_string(proposal.sourceDim + flat->span - 1) +
                     ", as " + layout::toString(flat->product, mesh) +
                     ", which does not pass " + nodes[proposal.node].name +
                     ": data moves";
  if (!reshape.backward) {
    log.push_back({proposal.source, false, text});
    return;
  }

  // What the operand of the reshape would need, and from where it has what it
  // has: the same product there helps.
  View wish = source.view;
  size_t at = flat - source.view.dims.data();
  std::vector<Dim> rounded(flat->span);
  for (int64_t d = 0; d < flat->span; ++d) {
    int64_t extent = source.shape[proposal.sourceDim + d];
    rounded[d].product = {extent == layout::kDynamic
                              ? layout::Factor::rest()
                              : layout::Factor::stored(extent)};
  }
  rounded[0] = *roundToOutermost(*flat, source.shape[proposal.sourceDim]);
  wish.dims.erase(wish.dims.begin() + at);
  wish.dims.insert(wish.dims.begin() + at, rounded.begin(), rounded.end());
  Result<View> wanted = reshape.backward(wish);
  int tensor = reshape.operands[0];
  int64_t dim = origins[proposal.source][proposal.sourceDim].second;
  const Dim *has = dimAt(tensors[tensor].view, dim);
  const Dim *needs = wanted ? dimAt(*wanted, dim) : nullptr;
  while (has && needs && tensors[tensor].open[dim] != kClosed) {
    auto [next, nextDim] = origins[tensor][dim];
    const Dim *there = next < 0 ? nullptr : dimAt(tensors[next].view, nextDim);
    if (!there || there->product != has->product)
      break;
    tensor = next;
    dim = nextDim;
  }
  if (has && needs && tensors[tensor].open[dim] == kClosed)
    text += "; it would not if " + tensors[tensor].name + " had " +
            layout::toString(needs->product, mesh) + " in dimension " +
            std::to_string(dim);
  log.push_back({proposal.source, false, text});
}
