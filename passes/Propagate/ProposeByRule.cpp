//===- ProposeByRule.cpp - what one op proposes ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op passes splits between its tensors by the factors of its rule, in three
// steps:
//
//     linear [M, K] x [N, K] -> [M, N],  x [did(dp) * _, _], w [did(tp) * _, _]
//       collect   M = did(dp) * _ of x, N = did(tp) * _ of w, the best first
//       choose    both: they split by different axes
//       propose   the result becomes [did(dp) * _, did(tp) * _]
//
//===----------------------------------------------------------------------===//

#include "Layout/PlanViews.h"
#include "Propagate/Propagation.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

using namespace tessera;
using namespace tessera::tv;
using layout::Dim;
using layout::IterationFactor;
using layout::Shape;
using layout::SubAxis;
using layout::View;
using Kind = IterationFactor::Kind;

/// One op, asked in one direction of a round.
class Propagation::ByRule {
public:
  ByRule(Propagation &graph, int index, Direction direction)
      : graph(graph), index(index), node(graph.nodes[index]), rule(node.rule),
        direction(direction), chosen(rule.factors.size()),
        products(rule.factors.size()) {}

  void collect(int64_t priority);
  void choose();
  void propose(std::vector<Proposal> &proposals) const;

private:
  /// A product that one tensor of the op suggests for one of its factors (or,
  /// for flat dimensions, a sequence of factors).
  struct Candidate {
    std::vector<int> factors;
    Dim dim;
    int64_t first; ///< tensor dimension
    bool shifted;
    bool rounded;
    int64_t priority;
    int64_t bytes;
    bool weight;
    std::string text;
    int source;
  };
  using FactorsOfDims = std::vector<layout::DimFactors>;

  void collect(int tensor, const FactorsOfDims &factorsOfDims,
               int64_t priority);
  int placeInResults(const Candidate &candidate) const;
  void assign(int factor, Dim dim, const Candidate &candidate);
  bool isFree(const Candidate &flat) const;
  void proposeTo(int target, const FactorsOfDims &factorsOfDims,
                 std::vector<Proposal> &proposals) const;
  /// What the product of a factor means for dimension `d` of `target`.
  std::optional<Dim> dimOf(int factor, int target, size_t d) const;
  /// The split of `dim`, of extent `from`, for a dimension of extent `to`;
  /// nothing where some device would have no value, or a window is split.
  std::optional<Dim> resized(const Dim &dim, int64_t from, int64_t to) const;
  void add(int target, int64_t first, const Dim &dim,
           const Candidate &candidate, std::vector<Proposal> &proposals) const;

  Propagation &graph;
  const int index;
  const Node &node;
  const layout::Rule &rule;
  const Direction direction;
  std::vector<Candidate> candidates;
  /// By factor: its product, and who suggested it.
  std::vector<const Candidate *> chosen;
  std::vector<std::optional<Dim>> products;
  std::vector<const Candidate *> flats;
};

void Propagation::proposeByRule(int index, Direction direction,
                                int64_t priority,
                                std::vector<Proposal> &proposals) {
  ByRule op(*this, index, direction);
  op.collect(priority);
  op.choose();
  op.propose(proposals);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

std::optional<Dim> Propagation::ByRule::resized(const Dim &dim, int64_t from,
                                                int64_t to) const {
  if (from == layout::kDynamic || to == layout::kDynamic)
    return std::nullopt;
  if (from == to)
    return dim;
  int64_t devices = 1;
  for (const SubAxis &axis : layout::axesOf(dim.product))
    devices *= axis.size;
  if (to < devices)
    return std::nullopt;
  Dim other{dim.product, 1};
  bool stored = false;
  for (layout::Factor &factor : other.product) {
    if (factor.kind == layout::Factor::Kind::Group)
      return std::nullopt;
    if (factor.kind != layout::Factor::Kind::Device &&
        !std::exchange(stored, true))
      factor = layout::Factor::rest();
  }
  if (!stored)
    other.product.push_back(layout::Factor::rest());
  View view;
  view.dims.push_back(std::move(other));
  return layout::canonicalize(view, {to}, graph.mesh).dims[0];
}

/// Whether a split of `factor` may go from one tensor of an op to another. One
/// that is addressed may where it is a target: each device keeps its part.
static bool carries(const layout::Rule &rule, int factor) {
  switch (rule.factors[factor].kind) {
  case Kind::Parallel:
  case Kind::Reduction:
  case Kind::Shifted:
    return true;
  case Kind::Indexed:
    return rule.isInResult(factor);
  case Kind::Sequential:
    return false;
  }
  return false;
}

/// `dim`, of one tensor dimension that several factors index, as one dimension
/// a factor; nothing when its digits straddle them.
static std::optional<std::vector<Dim>>
splitByFactors(const Dim &dim, const std::vector<int> &factors,
               const layout::Rule &rule, const layout::Mesh &mesh) {
  Shape sizes;
  int64_t extent = 1;
  for (int factor : factors) {
    int64_t size = rule.factors[factor].size;
    if (size == layout::kDynamic)
      return std::nullopt;
    sizes.push_back(size);
    extent *= size;
  }
  View view;
  view.dims.push_back({dim.product, 1});
  Result<View> split = layout::reshapeView(view, {extent}, sizes, mesh);
  if (!split || split->dims.size() != factors.size())
    return std::nullopt;
  return split->dims;
}

/// The converse.
static std::optional<Dim> mergeFactors(const std::vector<Dim> &dims,
                                       const std::vector<int> &factors,
                                       const layout::Rule &rule,
                                       const layout::Mesh &mesh) {
  Shape sizes;
  int64_t extent = 1;
  for (int factor : factors) {
    if (rule.factors[factor].size == layout::kDynamic)
      return std::nullopt;
    sizes.push_back(rule.factors[factor].size);
    extent *= sizes.back();
  }
  View view;
  view.dims = dims;
  Result<View> merged = layout::reshapeView(view, sizes, {extent}, mesh);
  if (!merged || merged->dims.size() != 1)
    return std::nullopt;
  return merged->dims[0];
}

//===----------------------------------------------------------------------===//
// Collecting
//===----------------------------------------------------------------------===//

/// For a linear, with x [did(dp) * _, _]: "M = did(dp) * _".
void Propagation::ByRule::collect(int source,
                                  const FactorsOfDims &factorsOfDims,
                                  int64_t priority) {
  const Tensor &tensor = graph.tensors[source];
  int64_t first = 0;
  for (size_t d = 0; d < tensor.view.dims.size(); ++d) {
    const Dim &dim = tensor.view.dims[d];
    int64_t begin = first;
    first += dim.span;
    int64_t own = tensor.priority.empty() ? 0 : tensor.priority[d];
    if (layout::axesOf(dim.product).empty() || own > priority)
      continue;
    std::vector<int> factors;
    for (int64_t i = begin; i < first; ++i)
      factors.insert(factors.end(), factorsOfDims[i].begin(),
                     factorsOfDims[i].end());
    Dim seen = dim;
    bool rounded = dim.span > 1 && !node.pointwise;
    if (rounded) {
      auto outermost = graph.roundToOutermost(dim, tensor.shape[begin]);
      if (!outermost)
        continue;
      seen = *outermost;
      factors = factorsOfDims[begin];
    }
    if (factors.empty())
      continue;
    bool shifted =
        factors.size() == 1 && rule.factors[factors[0]].kind == Kind::Shifted;
    candidates.push_back({factors, seen, begin, shifted, rounded, own,
                          tensor.bytes, tensor.weight,
                          layout::toString(seen.product, graph.mesh), source});
  }
}

/// Among equals the factor that comes first in the results: factors are
/// numbered by operands, whose order must not matter.
int Propagation::ByRule::placeInResults(const Candidate &candidate) const {
  int at = 0;
  for (const FactorsOfDims &result : rule.results)
    for (const layout::DimFactors &dim : result)
      for (int factor : dim) {
        if (factor == candidate.factors[0])
          return at;
        ++at;
      }
  return at;
}

void Propagation::ByRule::collect(int64_t priority) {
  for (size_t i = 0; i < node.operands.size(); ++i)
    if (node.operands[i] >= 0 && rule.uses[i] != layout::Use::Unread)
      collect(node.operands[i], rule.operands[i], priority);
  if (direction == Direction::Backward)
    for (size_t i = 0; i < node.results.size(); ++i)
      if (node.results[i] >= 0)
        collect(node.results[i], rule.results[i], priority);
  auto rank = [&](const Candidate &c) {
    return std::tuple(c.priority, c.rounded, c.shifted, -c.bytes, !c.weight,
                      placeInResults(c), std::string_view(c.text));
  };
  std::sort(candidates.begin(), candidates.end(),
            [&](const Candidate &a, const Candidate &b) {
              return rank(a) < rank(b);
            });
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

/// A mesh axis splits one factor: M = did(a) * _ of x, which is better, leaves
/// N = did(b) * _ of w's did(b) * did(a) * _. A factor is only refined:
/// did(tp) * _ of x may become did(tp) * did(dp) * _ of another operand.
void Propagation::ByRule::assign(int factor, Dim dim,
                                 const Candidate &candidate) {
  if (!carries(rule, factor))
    return;
  const Candidate *taker = nullptr;
  auto leave = [&](const Dim &other, const Candidate *of) {
    std::vector<SubAxis> taken = layout::axesOf(other.product);
    if (!layout::overlap(layout::axesOf(dim.product), taken))
      return;
    View view;
    view.dims.push_back({layout::gathered(dim.product, taken), 1});
    dim = layout::canonicalize(view, {rule.factors[factor].size}, graph.mesh)
              .dims[0];
    taker = of;
  };
  for (size_t other = 0; other < products.size(); ++other)
    if (int(other) != factor && products[other])
      leave(*products[other], chosen[other]);
  for (const Candidate *flat : flats)
    leave(flat->dim, flat);
  std::vector<SubAxis> left = layout::axesOf(dim.product);
  if (taker && direction == Direction::Forward)
    graph.log.push_back(
        {candidate.source, false,
         graph.tensors[candidate.source].name + " dimension " +
             std::to_string(candidate.first) + ": " + candidate.text +
             " does not pass " + node.name +
             (left.empty()
                  ? ""
                  : " but as " + layout::toString(dim.product, graph.mesh)) +
             ", whose loops " + taker->text + " of " +
             graph.tensors[taker->source].name + " splits"});
  if (left.empty())
    return;
  if (products[factor] &&
      !layout::refines(dim.product, products[factor]->product,
                       rule.factors[factor].size, graph.mesh))
    return;
  products[factor] = dim;
  chosen[factor] = &candidate;
}

/// A flat dimension takes all of its factors, or none.
bool Propagation::ByRule::isFree(const Candidate &flat) const {
  std::vector<SubAxis> axes = layout::axesOf(flat.dim.product);
  for (const Candidate *other : flats)
    if (layout::overlap(layout::axesOf(other->dim.product), axes))
      return false;
  for (int factor : flat.factors)
    if (products[factor] || !carries(rule, factor))
      return false;
  for (const std::optional<Dim> &product : products)
    if (product && layout::overlap(layout::axesOf(product->product), axes))
      return false;
  return true;
}

void Propagation::ByRule::choose() {
  for (const Candidate &candidate : candidates) {
    if (candidate.dim.span > 1) {
      if (isFree(candidate))
        flats.push_back(&candidate);
    } else if (candidate.shifted) {
      int factor = candidate.factors[0];
      if (auto dim =
              resized(candidate.dim,
                      graph.tensors[candidate.source].shape[candidate.first],
                      rule.factors[factor].size))
        assign(factor, *dim, candidate);
    } else if (candidate.factors.size() == 1) {
      assign(candidate.factors[0], candidate.dim, candidate);
    } else if (auto dims = splitByFactors(candidate.dim, candidate.factors,
                                          rule, graph.mesh)) {
      for (size_t i = 0; i < dims->size(); ++i)
        assign(candidate.factors[i], (*dims)[i], candidate);
    }
  }
}

//===----------------------------------------------------------------------===//
// Proposing
//===----------------------------------------------------------------------===//

void Propagation::ByRule::add(int target, int64_t first, const Dim &dim,
                              const Candidate &candidate,
                              std::vector<Proposal> &proposals) const {
  if (target == candidate.source)
    return;
  proposals.push_back({target, first, dim, index, candidate.source,
                       candidate.first, candidate.shifted, candidate.rounded,
                       candidate.priority, candidate.bytes, candidate.weight,
                       layout::toString(dim.product, graph.mesh),
                       "from " + graph.tensors[candidate.source].name +
                           " through " + node.name});
}

std::optional<Dim> Propagation::ByRule::dimOf(int factor, int target,
                                              size_t d) const {
  const Candidate *candidate = chosen[factor];
  if (!candidate || !candidate->shifted)
    return products[factor];
  if (direction == Direction::Backward && graph.isFreeAsItIs(target))
    return std::nullopt;
  return resized(candidate->dim,
                 graph.tensors[candidate->source].shape[candidate->first],
                 graph.tensors[target].shape[d]);
}

/// With M = did(dp) * _ and N = did(tp) * _, to the result of a linear:
/// dimension 0 becomes did(dp) * _, dimension 1 did(tp) * _.
void Propagation::ByRule::proposeTo(int target,
                                    const FactorsOfDims &factorsOfDims,
                                    std::vector<Proposal> &proposals) const {
  for (size_t d = 0; d < factorsOfDims.size(); ++d) {
    const std::vector<int> &factors = factorsOfDims[d];
    if (factors.size() == 1) {
      if (std::optional<Dim> dim = dimOf(factors[0], target, d))
        add(target, d, *dim, *chosen[factors[0]], proposals);
      continue;
    }
    const Candidate *source = nullptr;
    std::vector<Dim> dims;
    for (int factor : factors) {
      if (products[factor]) {
        dims.push_back(*products[factor]);
        source = chosen[factor];
      } else {
        dims.push_back(
            {{layout::Factor::stored(rule.factors[factor].size)}, 1});
      }
    }
    if (source)
      if (auto dim = mergeFactors(dims, factors, rule, graph.mesh))
        add(target, d, *dim, *source, proposals);
  }
  for (const Candidate *flat : flats)
    for (size_t d = 0; d + flat->dim.span <= factorsOfDims.size(); ++d) {
      std::vector<int> factors;
      for (int64_t i = 0; i < flat->dim.span; ++i)
        factors.insert(factors.end(), factorsOfDims[d + i].begin(),
                       factorsOfDims[d + i].end());
      if (factors == flat->factors)
        add(target, d, flat->dim, *flat, proposals);
    }
}

void Propagation::ByRule::propose(std::vector<Proposal> &proposals) const {
  const bool forward = direction == Direction::Forward;
  const std::vector<int> &targets = forward ? node.results : node.operands;
  const auto &factors = forward ? rule.results : rule.operands;
  for (size_t i = 0; i < targets.size(); ++i)
    if (targets[i] >= 0 && (forward || rule.uses[i] != layout::Use::Unread))
      proposeTo(targets[i], factors[i], proposals);
}
