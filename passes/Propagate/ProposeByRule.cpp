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
#include <cmath>
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
        direction(direction) {}

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
    int source;
  };
  /// A split that gives way to another, and what is left of it.
  struct Loss {
    const Candidate *loser, *winner;
    Dim left;
  };
  /// What the factors get when candidates are taken in some order.
  struct Assignment {
    /// By factor: its product, and who suggested it.
    std::vector<const Candidate *> chosen;
    std::vector<std::optional<Dim>> products;
    std::vector<const Candidate *> flats;
    std::vector<Loss> losses;
  };
  using FactorsOfDims = std::vector<layout::DimFactors>;

  void collect(int tensor, const FactorsOfDims &factorsOfDims,
               int64_t priority);
  int placeInResults(const Candidate &candidate) const;
  Assignment assign(const std::vector<const Candidate *> &order) const;
  void assign(int factor, Dim dim, const Candidate &candidate,
              Assignment &to) const;
  bool isFree(const Candidate &flat, const Assignment &assignment) const;
  /// Of the op and of the moves around it; nothing where its boxes move.
  std::optional<layout::Price> price(const Assignment &assignment) const;
  std::optional<layout::Price> priceAgain(int tensor, const View &needs) const;
  std::optional<Dim> compose(const Assignment &assignment,
                             const layout::DimFactors &factors) const;
  View viewOf(const Assignment &assignment,
              const FactorsOfDims &factorsOfDims) const;
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
  static std::tuple<int64_t, bool, bool> rankOf(const Candidate &c) {
    return {c.priority, c.rounded, c.shifted};
  }
  static std::vector<const Candidate *>
  reversed(std::vector<const Candidate *> order, const Loss &loss);
  void explain(const Loss &loss, const std::vector<const Candidate *> &order);

  std::vector<Candidate> candidates;
  Assignment best;
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
  const auto canonical = [&] {
    View view;
    view.dims.push_back(std::move(other));
    return layout::canonicalize(view, {to}, graph.mesh).dims[0];
  };
  if (node.hasEqualParts) {
    if (from < to) {
      other.product = {layout::Factor::stored(to / from),
                       layout::Factor::group(dim.product, 0, from)};
      return canonical();
    }
    layout::Factor &outermost = other.product.front();
    if (outermost.kind == layout::Factor::Kind::Stored &&
        outermost.size % (from / to) == 0) {
      outermost.size /= from / to;
      return canonical();
    }
  }
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
  return canonical();
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
                          tensor.bytes(), tensor.weight, source});
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
  auto rank = [](const Candidate &c) {
    return std::tuple(c.priority, c.rounded, c.shifted, -c.bytes, !c.weight);
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate &a, const Candidate &b) {
                     const auto ofA = rank(a), ofB = rank(b);
                     if (ofA != ofB)
                       return ofA < ofB;
                     if (a.dim.product == b.dim.product)
                       return placeInResults(a) < placeInResults(b);
                     auto last = [&](const Candidate &c) {
                       auto [sizes, places] =
                           graph.axisOrder.keyOf(c.dim.product);
                       return std::tuple(std::move(sizes), placeInResults(c),
                                         std::move(places));
                     };
                     return last(a) < last(b);
                   });
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

/// A mesh axis splits one factor: M = did(a) * _ of x, which is better, leaves
/// N = did(b) * _ of w's did(b) * did(a) * _. A factor is only refined:
/// did(tp) * _ of x may become did(tp) * did(dp) * _ of another operand.
void Propagation::ByRule::assign(int factor, Dim dim,
                                 const Candidate &candidate,
                                 Assignment &to) const {
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
  for (size_t other = 0; other < to.products.size(); ++other)
    if (int(other) != factor && to.products[other])
      leave(*to.products[other], to.chosen[other]);
  for (const Candidate *flat : to.flats)
    leave(flat->dim, flat);
  if (taker)
    to.losses.push_back({&candidate, taker, dim});
  if (layout::axesOf(dim.product).empty())
    return;
  std::optional<Dim> &product = to.products[factor];
  auto isFiner = [&](const Dim &a, const Dim &b) {
    return layout::refines(a.product, b.product, rule.factors[factor].size,
                           graph.mesh);
  };
  if (product && !isFiner(dim, *product)) {
    if (!isFiner(*product, dim))
      to.losses.push_back({&candidate, to.chosen[factor], {}});
    return;
  }
  product = dim;
  to.chosen[factor] = &candidate;
}

/// A flat dimension takes all of its factors, or none.
bool Propagation::ByRule::isFree(const Candidate &flat,
                                 const Assignment &assignment) const {
  std::vector<SubAxis> axes = layout::axesOf(flat.dim.product);
  for (const Candidate *other : assignment.flats)
    if (layout::overlap(layout::axesOf(other->dim.product), axes))
      return false;
  for (int factor : flat.factors)
    if (assignment.products[factor] || !carries(rule, factor))
      return false;
  for (const std::optional<Dim> &product : assignment.products)
    if (product && layout::overlap(layout::axesOf(product->product), axes))
      return false;
  return true;
}

Propagation::ByRule::Assignment
Propagation::ByRule::assign(const std::vector<const Candidate *> &order) const {
  Assignment to;
  to.chosen.resize(rule.factors.size());
  to.products.resize(rule.factors.size());
  for (const Candidate *candidate : order) {
    if (candidate->dim.span > 1) {
      if (isFree(*candidate, to))
        to.flats.push_back(candidate);
    } else if (candidate->shifted) {
      int factor = candidate->factors[0];
      if (auto dim =
              resized(candidate->dim,
                      graph.tensors[candidate->source].shape[candidate->first],
                      rule.factors[factor].size))
        assign(factor, *dim, *candidate, to);
    } else if (candidate->factors.size() == 1) {
      assign(candidate->factors[0], candidate->dim, *candidate, to);
    } else if (auto dims = splitByFactors(candidate->dim, candidate->factors,
                                          rule, graph.mesh)) {
      for (size_t i = 0; i < dims->size(); ++i)
        assign(candidate->factors[i], (*dims)[i], *candidate, to);
    }
  }
  return to;
}

/// The product of a dimension that `factors` index; nothing if none is split,
/// or where they make none.
std::optional<Dim>
Propagation::ByRule::compose(const Assignment &assignment,
                             const layout::DimFactors &factors) const {
  std::vector<Dim> dims;
  bool split = false;
  for (int factor : factors) {
    const std::optional<Dim> &product = assignment.products[factor];
    split |= product.has_value();
    dims.push_back(
        product ? *product
                : Dim{{layout::Factor::stored(rule.factors[factor].size)}, 1});
  }
  if (!split)
    return std::nullopt;
  return dims.size() == 1 ? dims[0]
                          : mergeFactors(dims, factors, rule, graph.mesh);
}

/// The dimension at which those of `factors` begin.
static std::optional<size_t>
findFlat(const std::vector<int> &factors, size_t span,
         const std::vector<layout::DimFactors> &factorsOfDims) {
  for (size_t d = 0; d + span <= factorsOfDims.size(); ++d) {
    std::vector<int> found;
    for (size_t i = d; i < d + span; ++i)
      found.insert(found.end(), factorsOfDims[i].begin(),
                   factorsOfDims[i].end());
    if (found == factors)
      return d;
  }
  return std::nullopt;
}

/// What a tensor of these factors would lie as, a dimension that is not split
/// whole.
View Propagation::ByRule::viewOf(const Assignment &assignment,
                                 const FactorsOfDims &factorsOfDims) const {
  View view = View::replicated(factorsOfDims.size());
  for (size_t d = 0; d < factorsOfDims.size(); ++d)
    if (auto dim = compose(assignment, factorsOfDims[d]))
      view.dims[d] = std::move(*dim);
  for (const Candidate *flat : assignment.flats)
    if (auto at = findFlat(flat->factors, flat->dim.span, factorsOfDims)) {
      // The dimensions of one flat(k) before it are one by now.
      size_t d = 0;
      for (size_t first = 0; first < *at; ++d)
        first += view.dims[d].span;
      view.dims.erase(view.dims.begin() + d + 1,
                      view.dims.begin() + d + flat->dim.span);
      view.dims[d] = flat->dim;
    }
  return view;
}

/// What a broadcast's result costs where it lies as `needs`: it is made again
/// there, and what it is made of moves. Nothing for others.
std::optional<layout::Price>
Propagation::ByRule::priceAgain(int tensor, const View &needs) const {
  const int producer = graph.producers[tensor];
  if (producer < 0 || graph.nodes[producer].forward ||
      needs.dims.size() != graph.tensors[tensor].shape.size())
    return std::nullopt;
  const Node &maker = graph.nodes[producer];
  if (maker.results.size() != 1)
    return std::nullopt;
  int source = -1;
  const FactorsOfDims &made = maker.rule.results[0];
  View at;
  for (size_t i = 0; i < maker.operands.size(); ++i) {
    if (maker.rule.uses[i] == layout::Use::Unread)
      continue;
    if (source >= 0 || maker.operands[i] < 0)
      return std::nullopt;
    source = maker.operands[i];
    for (const layout::DimFactors &factors : maker.rule.operands[i]) {
      auto dim = std::ranges::find(made, factors);
      if (factors.size() != 1 || dim == made.end() ||
          maker.rule.factors[factors[0]].kind != Kind::Parallel)
        return std::nullopt;
      at.dims.push_back(needs.dims[dim - made.begin()]);
    }
  }
  if (source < 0 || at.dims.size() == made.size())
    return std::nullopt;
  return graph.priceMove(source, graph.tensors[source].view, at);
}

std::optional<layout::Price>
Propagation::ByRule::price(const Assignment &assignment) const {
  std::vector<layout::Product> products;
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    if (assignment.chosen[f] && assignment.chosen[f]->shifted)
      return std::nullopt;
    products.push_back(assignment.products[f]
                           ? assignment.products[f]->product
                           : layout::Product{layout::Factor::rest()});
  }
  int64_t parts = 1;
  for (const Candidate *flat : assignment.flats)
    parts *= layout::sizeOf(layout::axesOf(flat->dim.product));
  layout::Price sum;
  auto add = [&](std::optional<layout::Price> moved) {
    if (!moved)
      return false;
    sum += *moved;
    return true;
  };
  std::vector<layout::OpTensor> operands, results;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    if (node.operands[i] < 0)
      return std::nullopt;
    View needs = viewOf(assignment, rule.operands[i]);
    const Tensor &tensor = graph.tensors[node.operands[i]];
    operands.push_back({tensor.typical, tensor.elementBytes, needs});
    if (rule.uses[i] == layout::Use::Unread)
      continue;
    auto moved = graph.priceMove(node.operands[i], tensor.view, needs);
    if (moved && moved->seconds > 0)
      if (auto again = priceAgain(node.operands[i], needs);
          again && again->seconds < moved->seconds)
        moved = again;
    if (!add(moved))
      return std::nullopt;
  }
  for (size_t i = 0; i < node.results.size(); ++i) {
    if (node.results[i] < 0)
      return std::nullopt;
    View gets = viewOf(assignment, rule.results[i]);
    const Tensor &tensor = graph.tensors[node.results[i]];
    results.push_back({tensor.typical, tensor.elementBytes, gets});
    // A result that nothing says anything of lies as it comes, but whole.
    View lies = graph.isWhole(node.results[i]) ? gets : tensor.view;
    for (size_t f = 0; f < products.size(); ++f)
      if (std::vector<SubAxis> axes = layout::axesOf(products[f]);
          !axes.empty() && rule.makesPartial(f, i))
        gets.partial.push_back({std::move(axes), rule.factors[f].combiner});
    if (!add(graph.priceMove(node.results[i], gets, lies)))
      return std::nullopt;
  }
  sum.seconds += layout::opSeconds(rule, products, parts, operands, results,
                                   graph.mesh, graph.plans.getMachine());
  return sum;
}

/// `order`, which led to `loss`, with the loser before the winner and all of
/// its own rank.
std::vector<const Propagation::ByRule::Candidate *>
Propagation::ByRule::reversed(std::vector<const Candidate *> order,
                              const Loss &loss) {
  std::erase(order, loss.loser);
  auto at = std::find_if(order.begin(), order.end(), [&](auto *c) {
    return c == loss.winner || rankOf(*c) == rankOf(*loss.loser);
  });
  order.insert(at, loss.loser);
  return order;
}

/// By rank, or with one that gives way to its rivals before them, whichever
/// takes less time. Where that is less than a latency, what a wrong guess costs
/// at the least, it is left to other tensors as long as these may say
/// something.
void Propagation::ByRule::choose() {
  std::vector<const Candidate *> order;
  for (const Candidate &candidate : candidates)
    order.push_back(&candidate);
  best = assign(order);
  if (best.losses.empty())
    return;

  const std::vector<Loss> losses = best.losses;
  // Flat dimensions go by rank.
  std::optional<layout::Price> byRank;
  if (best.flats.empty())
    byRank = price(best);
  const double latency = graph.plans.getMachine().latency;
  double least = byRank ? byRank->seconds : 0;
  std::vector<const Candidate *> bestOrder = order;
  std::set<const Candidate *> contested, tried;
  for (const Loss &loss : losses) {
    const auto &[loser, winner, left] = loss;
    if (!byRank || rankOf(*loser) != rankOf(*winner) ||
        !tried.insert(loser).second)
      continue;
    std::vector<const Candidate *> other = reversed(order, loss);
    Assignment assignment = assign(other);
    std::optional<layout::Price> price = this->price(assignment);
    if (!price || !assignment.flats.empty())
      continue;
    if (layout::isLess(price->seconds, least)) {
      best = std::move(assignment);
      bestOrder = std::move(other);
      least = price->seconds;
    }
    if (std::abs(price->seconds - byRank->seconds) < latency)
      contested.insert({loser, winner});
  }
  if (!contested.empty() && !graph.breakTies &&
      byRank->seconds - least < latency) {
    graph.tied.insert(index);
    std::erase_if(order, [&](auto *c) { return contested.contains(c); });
    best = assign(order);
  } else if (direction == Direction::Forward) {
    for (const Loss &loss : best.losses)
      explain(loss, bestOrder);
  }
}

void Propagation::ByRule::explain(const Loss &loss,
                                  const std::vector<const Candidate *> &order) {
  const auto &[loser, winner, left] = loss;
  if (!graph.explain ||
      !graph.conflicts.insert({index, loser->source, loser->first}).second)
    return;
  std::string text =
      graph.tensors[loser->source].name + " dimension " +
      std::to_string(loser->first) + ": " +
      layout::toString(loser->dim.product, graph.mesh) + " does not pass " +
      node.name +
      (layout::axesOf(left.product).empty()
           ? ""
           : " but as " + layout::toString(left.product, graph.mesh)) +
      ", whose loops " + layout::toString(winner->dim.product, graph.mesh) +
      " of " + graph.tensors[winner->source].name + " splits";
  auto chosen = price(best), other = price(assign(reversed(order, loss)));
  if (chosen && other)
    text += layout::describe(*chosen, *other);
  graph.log.push_back({loser->source, false, std::move(text)});
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
                       candidate.priority, candidate.bytes, candidate.weight});
}

std::optional<Dim> Propagation::ByRule::dimOf(int factor, int target,
                                              size_t d) const {
  const Candidate *candidate = best.chosen[factor];
  if (!candidate || !candidate->shifted)
    return best.products[factor];
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
        add(target, d, *dim, *best.chosen[factors[0]], proposals);
      continue;
    }
    const Candidate *source = nullptr;
    for (int factor : factors)
      if (best.products[factor])
        source = best.chosen[factor];
    if (auto dim = compose(best, factors))
      add(target, d, *dim, *source, proposals);
  }
  for (const Candidate *flat : best.flats)
    if (auto d = findFlat(flat->factors, flat->dim.span, factorsOfDims))
      add(target, *d, flat->dim, *flat, proposals);
}

void Propagation::ByRule::propose(std::vector<Proposal> &proposals) const {
  const bool forward = direction == Direction::Forward;
  const std::vector<int> &targets = forward ? node.results : node.operands;
  const auto &factors = forward ? rule.results : rule.operands;
  for (size_t i = 0; i < targets.size(); ++i)
    if (targets[i] >= 0 && (forward || rule.uses[i] != layout::Use::Unread))
      proposeTo(targets[i], factors[i], proposals);
}
