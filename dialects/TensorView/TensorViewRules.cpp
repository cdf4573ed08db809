//===- TensorViewRules.cpp - what ops do to dimensions -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sharding rule of each op. A builder adds factors and says which
// dimensions they index; a factor's size is the extent of a dimension that it
// indexes alone.
//
//===----------------------------------------------------------------------===//

#include "TensorView/TensorView.h"
#include "TensorView/TensorViewPointwise.h"
#include "TensorView/TensorViewVerify.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using checks::shapeOf;
using layout::Rule;
using layout::Use;
using Kind = layout::IterationFactor::Kind;

static layout::Combiner toLayout(tv::Combiner combiner) {
  auto isSame = [](tv::Combiner one, layout::Combiner other) {
    return static_cast<int>(one) == static_cast<int>(other);
  };
  static_assert(isSame(tv::Combiner::Sum, layout::Combiner::Sum) &&
                isSame(tv::Combiner::Max, layout::Combiner::Max) &&
                isSame(tv::Combiner::Min, layout::Combiner::Min));
  return static_cast<layout::Combiner>(combiner);
}

namespace {
class RuleBuilder {
public:
  explicit RuleBuilder(Operation *op) : op(op) {
    for (Value operand : op->getOperands())
      rule.operands.emplace_back(shapeOf(operand).size());
    for (Value result : op->getResults())
      rule.results.emplace_back(shapeOf(result).size());
    rule.uses.assign(op->getNumOperands(), Use::Read);
  }

  int factor(Kind kind, layout::Combiner combiner = layout::Combiner::Sum) {
    rule.factors.push_back({kind, layout::kDynamic, combiner});
    return rule.factors.size() - 1;
  }

  /// `factor` indexes a dimension, inside of the factors it already has.
  RuleBuilder &operand(unsigned i, int64_t dim, int factor) {
    rule.operands[i][dim].push_back(factor);
    return *this;
  }
  RuleBuilder &result(unsigned i, int64_t dim, int factor) {
    rule.results[i][dim].push_back(factor);
    return *this;
  }
  RuleBuilder &use(unsigned i, Use use) {
    rule.uses[i] = use;
    return *this;
  }

  /// One factor a dimension of the first result, indexing the same dimension of
  /// all results and all operands but scalars; `sequential` is the kind of one.
  RuleBuilder &pointwise(int64_t sequential = -1) {
    int64_t rank = rule.results[0].size();
    for (int64_t d = 0; d < rank; ++d) {
      int f = factor(d == sequential ? Kind::Sequential : Kind::Parallel);
      for (unsigned i = 0; i < rule.operands.size(); ++i)
        if (!rule.operands[i].empty())
          operand(i, d, f);
      for (unsigned i = 0; i < rule.results.size(); ++i)
        result(i, d, f);
    }
    return *this;
  }

  Rule build() {
    auto sizes = [&](const std::vector<layout::DimFactors> &dims,
                     const layout::Shape &shape) {
      for (auto [d, factors] : llvm::enumerate(dims))
        if (factors.size() == 1 && shape[d] != layout::kDynamic)
          rule.factors[factors[0]].size =
              std::max(rule.factors[factors[0]].size, shape[d]);
    };
    for (auto [i, value] : llvm::enumerate(op->getOperands()))
      sizes(rule.operands[i], shapeOf(value));
    for (auto [i, value] : llvm::enumerate(op->getResults()))
      sizes(rule.results[i], shapeOf(value));
    return std::move(rule);
  }

  /// Sets a size that no dimension of its own shows.
  RuleBuilder &size(int factor, int64_t size) {
    rule.factors[factor].size = size;
    return *this;
  }

private:
  Operation *op;
  Rule rule;
};
} // namespace

//===----------------------------------------------------------------------===//
// Pointwise, reductions, broadcasts
//===----------------------------------------------------------------------===//

Rule MapOp::getShardingRule() { return RuleBuilder(*this).pointwise().build(); }

Rule ReduceOp::getShardingRule() {
  RuleBuilder rule(*this);
  int64_t to = 0;
  for (int64_t d = 0, e = shapeOf(getInput()).size(); d < e; ++d) {
    if (llvm::is_contained(getDims(), d)) {
      rule.operand(0, d, rule.factor(Kind::Reduction, toLayout(getCombiner())));
      continue;
    }
    int f = rule.factor(Kind::Parallel);
    rule.operand(0, d, f).result(0, to++, f);
  }
  return rule.build();
}

Rule BroadcastOp::getShardingRule() {
  RuleBuilder rule(*this);
  for (int64_t d = 0, e = shapeOf(getResult()).size(); d < e; ++d) {
    int f = rule.factor(Kind::Parallel);
    rule.result(0, d, f);
    const int64_t *from = llvm::find(getDims(), d);
    if (from != getDims().end())
      rule.operand(0, from - getDims().begin(), f);
  }
  if (getLike())
    rule.use(1, Use::Unread);
  return rule.build();
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// Labels are factors: those of the result, then those that are summed over.
static Rule contractionRule(ContractionOpInterface op) {
  RuleBuilder rule(op);
  ContractionLabels labels = op.getContractionLabels();
  llvm::SmallDenseMap<int32_t, int> factors;
  for (auto [d, label] : llvm::enumerate(labels.result)) {
    factors[label] = rule.factor(Kind::Parallel);
    rule.result(0, d, factors[label]);
  }
  auto add = [&](unsigned operand, ArrayRef<int32_t> dims) {
    for (auto [d, label] : llvm::enumerate(dims)) {
      if (!factors.contains(label))
        factors[label] = rule.factor(Kind::Reduction);
      rule.operand(operand, d, factors[label]);
    }
  };
  add(0, labels.a);
  add(1, labels.b);
  unsigned added = 2;
  if (op.getBias())
    rule.operand(added, 0, factors[labels.result.back()])
        .use(added++, Use::Added);
  if (op.getAddend()) {
    add(added, labels.result);
    rule.use(added, Use::Added);
  }
  return rule.build();
}

ContractionLabels ContractOp::getContractionLabels() {
  return {SmallVector<int32_t>(getALabels()),
          SmallVector<int32_t>(getBLabels()),
          SmallVector<int32_t>(getLabels())};
}

ContractionLabels LinearOp::getContractionLabels() {
  int32_t last = shapeOf(getInput()).size() - 1;
  ContractionLabels labels;
  llvm::append_range(labels.a, llvm::seq(0, last + 1));
  labels.b = {last + 1, last};
  labels.result = labels.a;
  labels.result.back() = last + 1;
  return labels;
}

ContractionLabels MatmulOp::getContractionLabels() {
  int32_t rank = shapeOf(getLhs()).size();
  ContractionLabels labels;
  llvm::append_range(labels.a, llvm::seq(0, rank));
  labels.b = labels.result = labels.a;
  labels.b[rank - 2] = rank - 1;
  labels.b[rank - 1] = labels.result[rank - 1] = rank;
  return labels;
}

Value LinearOp::getA() { return getInput(); }
Value LinearOp::getB() { return getWeight(); }
Value MatmulOp::getA() { return getLhs(); }
Value MatmulOp::getB() { return getRhs(); }

Rule ContractOp::getShardingRule() { return contractionRule(*this); }
Rule LinearOp::getShardingRule() { return contractionRule(*this); }
Rule MatmulOp::getShardingRule() { return contractionRule(*this); }

Rule GroupedMatmulOp::getShardingRule() {
  RuleBuilder rule(*this);
  int e = rule.factor(Kind::Parallel);
  int c = rule.factor(Kind::Parallel);
  int n = rule.factor(Kind::Parallel);
  int k = rule.factor(Kind::Reduction);
  rule.operand(0, 0, e).operand(0, 1, c).operand(0, 2, k);
  rule.operand(1, 0, e).operand(1, 1, n).operand(1, 2, k);
  rule.operand(2, 0, e);
  rule.result(0, 0, e).result(0, 1, c).result(0, 2, n);
  return rule.build();
}

/// What says which pairs there are or where keys lie, the last operands, is
/// whole on each device, or of its batches.
template <typename Op>
static void addStructure(RuleBuilder &rule, Op op, bool ofBatches, int batch) {
  const unsigned count = bool(op.getStructure()) + bool(op.getUsed()),
                 end = op->getNumOperands();
  for (unsigned i = end - count; i < end; ++i)
    for (int64_t dim = 0, e = shapeOf(op->getOperand(i)).size(); dim < e; ++dim)
      rule.operand(i, dim,
                   dim == 0 && ofBatches ? batch
                                         : rule.factor(Kind::Sequential));
}

Rule AttentionOp::getShardingRule() {
  RuleBuilder rule(*this);
  int64_t heads = shapeOf(getQuery())[1], keyHeads = shapeOf(getKey())[1];
  int b = rule.factor(Kind::Parallel);
  int g = rule.factor(Kind::Parallel);
  int s = rule.factor(Kind::Parallel);
  int d = rule.factor(Kind::Sequential);
  int t = rule.factor(Kind::Sequential);
  int v = rule.factor(Kind::Parallel);
  int of = getPages() ? rule.factor(Kind::Sequential) : b; // of keys: pages
  rule.operand(0, 0, b).operand(0, 1, g).operand(0, 2, s).operand(0, 3, d);
  rule.operand(1, 0, of).operand(1, 1, g).operand(1, 2, t).operand(1, 3, d);
  rule.operand(2, 0, of).operand(2, 1, g).operand(2, 2, t).operand(2, 3, v);
  rule.result(0, 0, b).result(0, 1, g).result(0, 2, s).result(0, 3, v);
  rule.result(1, 0, b).result(1, 1, g).result(1, 2, s);
  if (keyHeads > 0 && heads > keyHeads) {
    int group = rule.factor(Kind::Parallel);
    rule.size(group, heads / keyHeads);
    rule.operand(0, 1, group).result(0, 1, group).result(1, 1, group);
  }
  addStructure(rule, *this, getTiles() || getPages(), b);
  return rule.build();
}

// Each score adds to one row of dq, to one of dk and dv and to elements of
// captured tensors. What a device does not hold of those is dropped.
Rule AttentionGradOp::getShardingRule() {
  RuleBuilder rule(*this);
  int64_t heads = shapeOf(getQuery())[1], keyHeads = shapeOf(getKey())[1];
  int b = rule.factor(Kind::Reduction);
  int g = rule.factor(Kind::Reduction);
  int s = rule.factor(Kind::Reduction);
  int d = rule.factor(Kind::Sequential);
  int t = rule.factor(Kind::Reduction);
  int v = rule.factor(Kind::Sequential);
  SmallVector<int> ofHead = {g};
  if (keyHeads > 0 && heads > keyHeads) {
    ofHead.push_back(rule.factor(Kind::Reduction));
    rule.size(ofHead.back(), heads / keyHeads);
  }
  // Of queries: do, q, o, lse, dlse; of keys: k, v.
  SmallVector<std::pair<unsigned, int>> queries = {
      {0, v}, {1, d}, {4, v}, {5, -1}};
  if (getLseGrad())
    queries.push_back({6, -1});
  for (auto [i, depth] : queries) {
    rule.operand(i, 0, b).operand(i, 2, s);
    for (int h : ofHead)
      rule.operand(i, 1, h);
    if (depth >= 0)
      rule.operand(i, 3, depth);
  }
  for (auto [i, depth] : {std::pair(2u, d), std::pair(3u, v)}) {
    rule.operand(i, 0, b).operand(i, 1, g).operand(i, 2, t).operand(i, 3,
                                                                    depth);
    rule.result(i - 1, 0, b).result(i - 1, 1, g).result(i - 1, 2, t);
    rule.result(i - 1, 3, depth);
  }
  rule.result(0, 0, b).result(0, 2, s).result(0, 3, d);
  for (int h : ofHead)
    rule.result(0, 1, h);
  unsigned first = 6 + bool(getLseGrad());
  for (auto [i, tensor] : llvm::enumerate(getCaptured())) {
    for (int64_t dim = 0, e = shapeOf(tensor).size(); dim < e; ++dim) {
      int f = rule.factor(Kind::Indexed);
      rule.operand(first + i, dim, f).result(3 + i, dim, f);
    }
    rule.use(first + i, Use::Unread);
  }
  addStructure(rule, *this, bool(getTiles()), b);
  return rule.build();
}

//===----------------------------------------------------------------------===//
// Same elements, other indices
//===----------------------------------------------------------------------===//

/// The algebra reads canonical views; a pass that runs without `tv-bind` may
/// meet others.
static Result<layout::View> reshape(const layout::View &view,
                                    const layout::Shape &from,
                                    const layout::Shape &to,
                                    const layout::Mesh &mesh) {
  if (!layout::isCanonical(view, from, mesh))
    return Error{layout::toString(view, mesh) +
                 " is not in canonical form; run tv-bind first"};
  return layout::reshapeView(view, from, to, mesh);
}

Result<layout::View> ReshapeOp::getResultView(const layout::View &view,
                                              const layout::Mesh &mesh) {
  return reshape(view, shapeOf(getInput()), shapeOf(getResult()), mesh);
}

Result<layout::View> ReshapeOp::getOperandView(const layout::View &view,
                                               const layout::Mesh &mesh) {
  return reshape(view, shapeOf(getResult()), shapeOf(getInput()), mesh);
}

Rule TransposeOp::getShardingRule() {
  RuleBuilder rule(*this);
  for (auto [to, from] : llvm::enumerate(getPerm())) {
    int f = rule.factor(Kind::Parallel);
    rule.operand(0, from, f).result(0, to, f);
  }
  return rule.build();
}

/// The rule of an op whose operands and result have the same dimensions, some
/// of them `shifted`.
static Rule shiftedRule(Operation *op, function_ref<bool(int64_t)> shifted) {
  RuleBuilder rule(op);
  for (int64_t d = 0, e = shapeOf(op->getResult(0)).size(); d < e; ++d) {
    int f = rule.factor(shifted(d) ? Kind::Shifted : Kind::Parallel);
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      rule.operand(i, d, f);
    rule.result(0, d, f);
  }
  return rule.build();
}

Rule SliceOp::getShardingRule() {
  return shiftedRule(*this, [&](int64_t d) {
    return shapeOf(getInput())[d] != shapeOf(getResult())[d];
  });
}
Rule ConcatOp::getShardingRule() {
  return shiftedRule(*this, [&](int64_t d) { return d == int64_t(getDim()); });
}
Rule PadOp::getShardingRule() {
  return shiftedRule(
      *this, [&](int64_t d) { return getLow()[d] != 0 || getHigh()[d] != 0; });
}

Value SliceOp::getWhole() { return getInput(); }
Value ConcatOp::getWhole() { return getResult(); }
Value PadOp::getWhole() { return getResult(); }

std::vector<layout::Shape> SliceOp::getBoxOffsets() {
  return {layout::Shape(getOffsets())};
}

std::vector<layout::Shape> ConcatOp::getBoxOffsets() {
  layout::Shape whole = shapeOf(getResult());
  bool dynamic = whole[getDim()] == layout::kDynamic;
  std::vector<layout::Shape> boxes;
  int64_t at = dynamic ? layout::kDynamic : 0;
  for (Value input : getInputs()) {
    boxes.emplace_back(whole.size(), 0)[getDim()] = at;
    if (!dynamic)
      at += shapeOf(input)[getDim()];
  }
  return boxes;
}

std::vector<layout::Shape> PadOp::getBoxOffsets() {
  layout::Shape offsets(getLow());
  for (auto [d, extent] : llvm::enumerate(shapeOf(getResult())))
    if (extent == layout::kDynamic && (getLow()[d] != 0 || getHigh()[d] != 0))
      offsets[d] = layout::kDynamic;
  return {offsets};
}

Result<std::vector<layout::View>> tv::getBoxViews(WindowOpInterface op,
                                                  const layout::View &whole,
                                                  const layout::Mesh &mesh) {
  Value value = op.getWhole();
  layout::Shape shape = shapeOf(value);
  bool isResult = value.getDefiningOp() == op;
  std::vector<layout::View> views;
  for (auto [i, offsets] : llvm::enumerate(op.getBoxOffsets())) {
    Value box = isResult ? op->getOperand(i) : Value(op->getResult(i));
    Result<layout::View> view =
        layout::sliceView(whole, shape, offsets, shapeOf(box), mesh);
    if (!view)
      return view.error();
    views.push_back(std::move(*view));
  }
  return views;
}

//===----------------------------------------------------------------------===//
// Elements at run-time indices
//===----------------------------------------------------------------------===//

Rule GatherOp::getShardingRule() {
  RuleBuilder rule(*this);
  int64_t dim = getDim(), indices = shapeOf(getIndices()).size();
  for (int64_t d = 0, e = shapeOf(getTable()).size(); d < e; ++d) {
    if (d == dim) {
      rule.operand(0, d, rule.factor(Kind::Indexed));
      continue;
    }
    int f = rule.factor(Kind::Parallel);
    rule.operand(0, d, f).result(0, d < dim ? d : d + indices - 1, f);
  }
  for (int64_t d = 0; d < indices; ++d) {
    int f = rule.factor(Kind::Parallel);
    rule.operand(1, d, f).result(0, dim + d, f);
  }
  return rule.build();
}

// What is set last stays: each device reads all updates, in order.
Rule ScatterOp::getShardingRule() {
  RuleBuilder rule(*this);
  const bool combines = getCombiner().has_value();
  const auto combiner = toLayout(getCombiner().value_or(Combiner::Sum));
  int64_t dim = getDim(), indices = shapeOf(getIndices()).size();
  for (int64_t d = 0, e = shapeOf(getInit()).size(); d < e; ++d) {
    int f = rule.factor(d == dim ? Kind::Indexed : Kind::Parallel, combiner);
    rule.operand(0, d, f).result(0, d, f);
    if (d != dim)
      rule.operand(2, d < dim ? d : d + indices - 1, f);
  }
  for (int64_t d = 0; d < indices; ++d) {
    int f =
        rule.factor(combines ? Kind::Reduction : Kind::Sequential, combiner);
    rule.operand(1, d, f).operand(2, dim + d, f);
  }
  return rule.use(0, combines ? Use::Added : Use::Read).build();
}

Rule CumsumOp::getShardingRule() {
  return RuleBuilder(*this).pointwise(getDim()).build();
}

// The row of a choice depends on all choices before it, so each device reads
// all of `experts`; it fills the rows of the buffers that it holds.
Rule DispatchOp::getShardingRule() {
  RuleBuilder rule(*this);
  int t = rule.factor(Kind::Sequential);
  int k = rule.factor(Kind::Sequential);
  int d = rule.factor(Kind::Parallel);
  int e = rule.factor(Kind::Indexed);
  int c = rule.factor(Kind::Indexed);
  rule.operand(0, 0, t).operand(0, 1, d);
  rule.operand(1, 0, t).operand(1, 1, k);
  rule.result(0, 0, e).result(0, 1, c).result(0, 2, d);
  rule.result(1, 0, e);
  rule.result(2, 0, t).result(2, 1, k);
  return rule.build();
}

Rule CombineOp::getShardingRule() {
  RuleBuilder rule(*this);
  int e = rule.factor(Kind::Indexed);
  int c = rule.factor(Kind::Indexed);
  int d = rule.factor(Kind::Parallel);
  int t = rule.factor(Kind::Parallel);
  int k = rule.factor(Kind::Reduction);
  rule.operand(0, 0, e).operand(0, 1, c).operand(0, 2, d);
  for (unsigned i = 1; i < 4; ++i)
    rule.operand(i, 0, t).operand(i, 1, k);
  rule.result(0, 0, t).result(0, 1, d);
  return rule.build();
}

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

/// Every element from its index alone; `like` is not read.
static Rule sourceRule(Operation *op, Value like) {
  RuleBuilder rule(op);
  for (int64_t d = 0, e = shapeOf(op->getResult(0)).size(); d < e; ++d)
    rule.result(0, d, rule.factor(Kind::Parallel));
  // (The last operand; a step before it is rank 0.)
  if (like)
    rule.use(op->getNumOperands() - 1, Use::Unread);
  return rule.build();
}

Rule ConstantOp::getShardingRule() { return sourceRule(*this, getLike()); }
Rule IotaOp::getShardingRule() { return sourceRule(*this, getLike()); }
Rule RandomOp::getShardingRule() { return sourceRule(*this, getLike()); }
Rule SizeOp::getShardingRule() { return sourceRule(*this, getInput()); }

Rule PackedTilesOp::getShardingRule() {
  RuleBuilder rule(*this);
  for (unsigned i = 0; i < getNumOperands(); ++i)
    for (int64_t dim : {0, 1})
      rule.operand(i, dim, rule.factor(Kind::Sequential));
  rule.result(0, 0, rule.factor(Kind::Parallel));
  rule.result(0, 1, rule.factor(Kind::Sequential));
  return rule.build();
}

Rule BlockMaskOp::getShardingRule() { return sourceRule(*this, Value()); }

//===----------------------------------------------------------------------===//
// Composites
//===----------------------------------------------------------------------===//

Rule tv::getPointwiseRule(Operation *op) {
  return RuleBuilder(op).pointwise().build();
}
Rule DropoutOp::getShardingRule() { return getPointwiseRule(*this); }

Rule SoftmaxOp::getShardingRule() {
  return RuleBuilder(*this).pointwise(getDim()).build();
}
Rule RopeOp::getShardingRule() {
  RuleBuilder rule(*this);
  const int64_t last = shapeOf(getInput()).size() - 1;
  const int64_t positions = getPositions() ? shapeOf(getPositions()).size() : 0;
  for (int64_t d = 0; d <= last; ++d) {
    int f = rule.factor(d == last ? Kind::Sequential : Kind::Parallel);
    rule.operand(0, d, f).result(0, d, f);
    if (d < positions - 1)
      rule.operand(1, d, f);
    else if (positions && d == last - 1)
      rule.operand(1, positions - 1, f);
  }
  return rule.build();
}

Rule TopKOp::getShardingRule() {
  RuleBuilder rule(*this);
  for (int64_t d = 0, e = shapeOf(getInput()).size(); d < e; ++d) {
    const bool isRow = d == int64_t(getDim());
    int f = rule.factor(isRow ? Kind::Sequential : Kind::Parallel);
    rule.operand(0, d, f);
    int of = isRow ? rule.factor(Kind::Sequential) : f;
    rule.result(0, d, of).result(1, d, of);
  }
  return rule.build();
}

/// input and result [..., K], parameters [K]; K must be whole.
static Rule normRule(Operation *op) {
  RuleBuilder rule(op);
  int64_t last = shapeOf(op->getResult(0)).size() - 1;
  for (int64_t d = 0; d <= last; ++d) {
    int f = rule.factor(d == last ? Kind::Sequential : Kind::Parallel);
    rule.operand(0, d, f).result(0, d, f);
    for (unsigned i = 1; d == last && i < op->getNumOperands(); ++i)
      rule.operand(i, 0, f);
  }
  return rule.build();
}
Rule LayerNormOp::getShardingRule() { return normRule(*this); }
Rule RmsNormOp::getShardingRule() { return normRule(*this); }

/// A loop a dimension of the weight; scalars have none.
Rule AdamWOp::getShardingRule() {
  RuleBuilder rule(*this);
  for (int64_t d = 0, e = shapeOf(getWeight()).size(); d < e; ++d) {
    int f = rule.factor(Kind::Parallel);
    for (unsigned i = 0; i < 4; ++i)
      rule.operand(i, d, f);
    for (unsigned i = 0; i < 3; ++i)
      rule.result(i, d, f);
  }
  return rule.build();
}

Rule CrossEntropyOp::getShardingRule() {
  RuleBuilder rule(*this);
  int64_t last = shapeOf(getLabels()).size();
  for (int64_t d = 0; d < last; ++d) {
    int f = rule.factor(Kind::Parallel);
    rule.operand(0, d, f).operand(1, d, f);
    for (unsigned i = 0; i < getNumResults(); ++i)
      rule.result(i, d, f);
  }
  rule.operand(0, last, rule.factor(Kind::Sequential));
  return rule.build();
}

//===----------------------------------------------------------------------===//
// How data lies
//===----------------------------------------------------------------------===//

Rule SameViewOp::getShardingRule() {
  return RuleBuilder(*this).pointwise().build();
}
