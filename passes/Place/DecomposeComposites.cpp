//===- DecomposeComposites.cpp - composites whose loops are split ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A composite knows its own decomposition; the pass chooses which to replace.
//
//===----------------------------------------------------------------------===//

#include "Place/ChoosePlacement.h"
#include "Place/Passes.h"
#include "TensorView/TensorView.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_DECOMPOSECOMPOSITESPASS
#include "Place/Passes.h.inc"
} // namespace tessera::tv

/// Whether `type`'s view splits a dimension that a sequential factor indexes.
static bool cutsSequential(Type type,
                           const std::vector<layout::DimFactors> &dims,
                           const layout::Rule &rule) {
  ViewAttr view = tv::getView(type);
  if (!view)
    return false;
  size_t first = 0;
  for (const layout::Dim &dim : view.getView().dims) {
    bool split = !layout::axesOf(dim.product).empty();
    for (size_t d = first; split && d < first + dim.span; ++d)
      for (int factor : dims[d])
        if (rule.factors[factor].kind ==
            layout::IterationFactor::Kind::Sequential)
          return true;
    first += dim.span;
  }
  return false;
}

/// Whether loops over operand `i` are some of those over the first, of which
/// each of its elements is used many times: where it alone is cut it is
/// gathered.
static bool isParameter(const layout::Rule &rule, size_t i) {
  return i > 0 && rule.operands[i].size() < rule.operands[0].size() &&
         llvm::all_of(rule.operands[i], [&](const layout::DimFactors &dim) {
           return llvm::is_contained(rule.operands[0], dim);
         });
}

/// Whether `op`, whose operands are not cut, takes no longer than two moves of
/// next to nothing, which its core ops need at the least: then a device makes
/// whole results, of which it has parts for nothing.
static bool isQuick(ShardingRuleOpInterface op) {
  auto function = op->getParentOfType<func::FuncOp>();
  auto hasView = [](Type type) { return bool(tv::getView(type)); };
  if (!function || !llvm::all_of(op->getOperandTypes(), hasView))
    return false;
  FailureOr<Moves> moves = Moves::get(function);
  FailureOr<Placement> actual = getActualPlacement(op);
  if (failed(moves) || failed(actual))
    return false;
  Result<Placement> whole = followOperands(op, *actual, 0);
  return whole &&
         getWork(op, *whole, *moves) <= 2 * moves->getMachine().latency;
}

static bool cutsSequential(ShardingRuleOpInterface op) {
  layout::Rule rule = op.getShardingRule();
  for (auto [i, type] : llvm::enumerate(op->getOperandTypes()))
    if (!isParameter(rule, i) && cutsSequential(type, rule.operands[i], rule))
      return true;
  for (auto [i, type] : llvm::enumerate(op->getResultTypes()))
    if (cutsSequential(type, rule.results[i], rule))
      return !isQuick(op);
  return false;
}

/// `value`, which takes the place of `result`, with its view.
static Value keepView(OpBuilder &builder, OpResult result, Value value) {
  Operation *made = value.getDefiningOp();
  if (!made || !value.use_empty())
    return ConstrainOp::create(builder, result.getLoc(), result.getType(),
                               value, getView(result));
  value.setType(result.getType());
  Operation *op = result.getOwner();
  if (Attribute user = op->getAttr(kUserViewAttr);
      user && op->getNumResults() == made->getNumResults())
    made->setAttr(kUserViewAttr, user);
  return value;
}

namespace {
class DecomposeComposites
    : public tv::impl::DecomposeCompositesPassBase<DecomposeComposites> {
public:
  using DecomposeCompositesPassBase::DecomposeCompositesPassBase;

  void runOnOperation() override {
    SmallVector<CompositeOpInterface> composites;
    getOperation()->walk([&](CompositeOpInterface op) {
      auto ruled = dyn_cast<ShardingRuleOpInterface>(op.getOperation());
      if (all || !ruled || (!ruleless && cutsSequential(ruled)))
        composites.push_back(op);
    });
    if (composites.empty())
      markAllAnalysesPreserved(); // and nothing is verified again
    for (CompositeOpInterface op : composites) {
      OpBuilder builder(op);
      Operation *before = op->getPrevNode();
      SmallVector<Value> results;
      tv::nameLocation(op);
      if (failed(op.decompose(builder, results)))
        return signalPassFailure();
      for (auto [result, value] : llvm::zip_equal(op->getResults(), results))
        if (getView(result) && !getView(value))
          value = keepView(builder, result, value);
      if (Attribute local = op->getAttr(kLocalOpAttr))
        for (Operation *made = op->getPrevNode(); made != before;
             made = made->getPrevNode())
          made->setAttr(kLocalOpAttr, local);
      op->replaceAllUsesWith(results);
      op->erase();
    }
  }
};
} // namespace
