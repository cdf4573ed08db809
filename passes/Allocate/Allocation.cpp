//===- Allocation.cpp - orders in memory and in-place collectives ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An all-gather over dimension d leaves shard r as the r-th chunk of the result
// in memory if both ends have d outermost, the others in one order, and the
// axes are the outermost digits of d:
//
//     [4, did(tp) * 3] -> [4, 6]       order (1, 0) on both ends
//     [4, 3 * did(tp)] -> [4, 6]       no order: shards interleave
//
// A reduce-scatter is the same from right to left.
//
//===----------------------------------------------------------------------===//

#include "Allocate/Allocation.h"
#include "Place/Placement.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::View;

/// The largest local extents, kDynamic where unknown.
static layout::Shape localShape(Value value) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  ViewAttr view = getView(value);
  return layout::maxLocalShape(view.getView(),
                               layout::Shape(shape.begin(), shape.end()),
                               view.getLayoutMesh());
}

Order tv::getRowMajor(Value value) {
  Order order(getView(value).getView().dims.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::optional<Chunked> tv::getChunked(ReshardOp step) {
  StepAttr plan = step.getPlanAttr();
  if (!plan || step.getInputs().size() != 1)
    return std::nullopt;
  Value from = step.getInputs()[0], to = step.getResult(0);
  bool gathers = plan.getKind() == StepKind::AllGather;
  if (!gathers && plan.getKind() != StepKind::ReduceScatter)
    return std::nullopt;
  Chunked chunked{gathers ? from : to, gathers ? to : from, {}};
  const View &shard = getView(chunked.shard).getView();
  const View &whole = getView(chunked.whole).getView();
  if (shard.dims.size() != whole.dims.size())
    return std::nullopt;

  std::optional<size_t> split;
  for (size_t dim = 0; dim < shard.dims.size(); ++dim) {
    if (shard.dims[dim].span != whole.dims[dim].span)
      return std::nullopt;
    if (shard.dims[dim] == whole.dims[dim])
      continue;
    if (split)
      return std::nullopt; // Two dimensions change: no order serves both.
    split = dim;
  }
  if (!split)
    return std::nullopt;
  // The axes are the outermost digits.
  const layout::Product &product = shard.dims[*split].product;
  size_t digits = 0;
  while (digits < product.size() &&
         product[digits].kind == layout::Factor::Kind::Device &&
         llvm::any_of(
             plan.getAxes(),
             [&](const layout::SubAxis &axis) {
               return layout::overlap(axis, product[digits].sub);
             }))
    ++digits;
  layout::Product rest(product.begin() + digits, product.end());
  for (const layout::SubAxis &axis : layout::axesOf(rest))
    for (const layout::SubAxis &moved : plan.getAxes())
      if (layout::overlap(axis, moved))
        return std::nullopt;
  if (digits == 0)
    return std::nullopt;

  chunked.order = getRowMajor(chunked.shard);
  layout::Shape extents = localShape(chunked.whole);
  bool outermost = std::all_of(extents.begin(), extents.begin() + *split,
                               [](int64_t extent) { return extent == 1; });
  if (!outermost) {
    chunked.order.erase(chunked.order.begin() + *split);
    chunked.order.insert(chunked.order.begin(), *split);
  }
  return chunked;
}

std::optional<Order> tv::getFixedOrder(Value value) {
  if (const auto &alloc = getView(value).getView().alloc)
    return *alloc;
  bool crosses = isa<BlockArgument>(value) ||
                 llvm::any_of(value.getUsers(), [](Operation *user) {
                   return user->hasTrait<OpTrait::IsTerminator>();
                 });
  return crosses ? std::optional(getRowMajor(value)) : std::nullopt;
}

std::optional<SharedMemory> tv::getSharedMemory(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto step = dyn_cast<ReshardOp>(op)) {
    // A part of what the device has.
    Value source = step.getInputs()[0];
    if (!step.getPlanAttr() || step.getInputs().size() != 1 ||
        step.getPlanAttr().getKind() != StepKind::Slice ||
        step.getPlanAttr().getAxes().empty() ||
        getView(source).getView().partial != getView(value).getView().partial ||
        getView(source).getView().dims.size() !=
            getView(value).getView().dims.size())
      return std::nullopt;
    return SharedMemory{source, getRowMajor(value)};
  }
  if (!op->hasTrait<OpTrait::SharesMemory>())
    return std::nullopt;
  Value source = op->getOperand(0);
  // A reshape needs row-major on both sides.
  if (!isa<ShardingRuleOpInterface>(op))
    return SharedMemory{source, {}};
  layout::Rule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  SharedMemory shared{source, {}};
  for (const layout::DimFactors &factors : rule.results[0]) {
    auto from = llvm::find(rule.operands[0], factors);
    if (from == rule.operands[0].end())
      return std::nullopt;
    shared.dims.push_back(from - rule.operands[0].begin());
  }
  bool flat =
      getView(source).getView().dims.size() != rule.operands[0].size() ||
      getView(value).getView().dims.size() != rule.results[0].size();
  return flat ? std::nullopt : std::optional(shared);
}

std::optional<Order> tv::getWantedOrder(Value value) {
  if (std::optional<Order> fixed = getFixedOrder(value))
    return fixed;
  for (Operation *user : value.getUsers()) {
    if (!user->hasTrait<OpTrait::SharesMemory>() ||
        user->getOperand(0) != value)
      continue;
    std::optional<SharedMemory> shared = getSharedMemory(user->getResult(0));
    if (!shared)
      continue;
    if (shared->dims.empty())
      return getRowMajor(value);
    if (std::optional<Order> below = getWantedOrder(user->getResult(0))) {
      Order order;
      for (int64_t dim : *below)
        order.push_back(shared->dims[dim]);
      return order;
    }
  }
  return std::nullopt;
}

void tv::setOrder(Value value, const Order &order) {
  ViewAttr attr = getView(value);
  View view = attr.getView();
  view.alloc = order;
  value.setType(withEncoding(value.getType(), attr.with(std::move(view))));
}
