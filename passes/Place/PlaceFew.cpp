//===- PlaceFew.cpp - few ops placed all at once --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Place/OpPrice.h"
#include "Place/Placer.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

/// More than that are not few.
static constexpr size_t kMaxFew = 16;

bool Placer::runFew(double bound) {
  // What the user says of what is returned holds where it is.
  auto isReturned = [&](Operation *op) {
    return llvm::any_of(uses[op->getResult(0)], [](OpOperand *use) {
      return isa<func::ReturnOp>(use->getOwner());
    });
  };
  Block &body = function.getBody().front();
  std::vector<Value> values;
  llvm::DenseMap<Value, int> numbers;
  std::vector<int> start;
  auto addValue = [&](Value value) {
    numbers[value] = int(values.size());
    values.push_back(value);
  };
  for (Value argument : function.getArguments())
    if (getView(argument)) {
      addValue(argument);
      start.push_back(numberOf(argument));
    }
  std::vector<FewOps::Node> nodes;
  size_t free = 0;
  for (Operation &op : body) {
    if (asMove(&op))
      continue;
    if (free > kMaxFew)
      return false;
    FewOps::Node &node = nodes.emplace_back();
    node.op = &op;
    if (!op.hasTrait<OpTrait::IsTerminator>())
      addOp(&op);
    for (Value operand : op.getOperands()) {
      auto known = numbers.find(sourceOf(operand));
      node.sources.push_back(known == numbers.end() ? -1 : known->second);
    }
    for (Value result : op.getResults())
      if (ViewAttr view = getView(result)) {
        if (view.getLayoutMesh() != mesh)
          return false;
        addValue(result);
        node.results.push_back(numbers[result]);
      }
    auto found = placed.find(&op);
    if (found != placed.end()) {
      ++free;
      continue;
    }
    Way &way = node.ways.emplace_back();
    for (auto [operand, source] :
         llvm::zip_equal(op.getOperands(), node.sources))
      way.operands.push_back(source < 0 ? -1 : numberOf(operand));
    way.result = node.results.empty() ? -1 : numberOf(values[node.results[0]]);
    way.work = 0;
    if (isa<func::ReturnOp>(op))
      for (OpOperand &use : op.getOpOperands())
        node.said.emplace_back(saidOf(use));
  }
  if (free > kMaxFew || free < 2)
    return false;
  // Of ops that are fixed the time does not matter.
  for (FewOps::Node &node : nodes)
    if (auto found = placed.find(node.op); found != placed.end()) {
      Placed &its = found->second;
      findWays(its);
      findUses(node.op->getResult(0), uses[node.op->getResult(0)]);
      const bool isFixed = isWritten(node.op) && !isReturned(node.op);
      node.ways.push_back(its.now);
      for (const Way &way : *its.ways)
        if (!(way == its.now) && (!isFixed || way.result == its.now.result))
          node.ways.push_back(way);
    }
  double fixed = 0;
  std::optional<layout::Price> price;
  const double now = ways.sum([&] {
    price = priceOf(function, moves);
    return price ? price->seconds : 0;
  });
  if (!price)
    return false;
  for (Operation &op : body)
    if (!asMove(&op) && !isPlaced(&op) &&
        isa<ShardingRuleOpInterface, ReinterpretOpInterface>(op))
      fixed += addOp(&op);
  const std::vector<FewOps::Node> all = nodes;
  FewOps few(ways, std::move(nodes), values);
  std::vector<FewOps::Step> steps = few.solve(
      std::min(now, bound) - fixed - kLeastLatency * ways.getLatency(), start);
  if (steps.empty())
    return true;
  beforeChange();

  OpBuilder builder(function.getContext());
  std::map<std::pair<int, int>, std::pair<Value, Operation *>> there;
  auto note = [&](Value value) {
    there[{numbers[value], numberOf(value)}] = {value, nullptr};
  };
  for (Value argument : function.getArguments())
    if (getView(argument))
      note(argument);
  for (auto [node, step] : llvm::zip_equal(all, steps)) {
    for (const FewOps::Move &move : step.moves) {
      auto [from, before] = there.at({move.value, move.from});
      if (ways.kindOf(from, move.from, move.to) < 0)
        builder.setInsertionPoint(node.op);
      else if (before && before != node.op)
        builder.setInsertionPointAfter(before); // which reads it first
      else if (before)
        builder.setInsertionPoint(before);
      else
        builder.setInsertionPointAfterValue(from);
      there.try_emplace({move.value, move.to}, moveTo(builder, from, move.to),
                        node.op);
    }
    for (auto [i, source] : llvm::enumerate(node.sources))
      if (source >= 0)
        node.op->setOperand(i, there.at({source, step.reads[i]}).first);
    if (isPlaced(node.op)) {
      Value result = node.op->getResult(0);
      if (numberOf(result) != step.way->result)
        result.setType(
            withEncoding(result.getType(),
                         getView(result).with(ways.viewOf(step.way->result))));
    }
    for (int result : node.results)
      note(values[result]);
  }
  finish();
  return true;
}
