//===- Moves.cpp - plans of the moves of one function ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A cache over the planner. Views are made canonical for the maximum of dynamic
// extents before they are asked for.
//
//===----------------------------------------------------------------------===//

#include "Place/Moves.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::View;

FailureOr<Moves> Moves::get(func::FuncOp function, const layout::Links &links) {
  FailureOr<ExtentAnalysis> extents = ExtentAnalysis::run(function);
  if (failed(extents))
    return failure();
  return Moves(std::move(*extents), links);
}

Moves::Moves(ExtentAnalysis extents, const layout::Links &links)
    : extents(std::move(extents)), links(links) {
  for (const auto &[name, maximum] : this->extents.getMaximums())
    typicalSizes[name] = std::max<int64_t>(maximum / 2, 1);
}

/// Reshards that passes add are not analyzed; they change no extent.
static Value withoutReshards(Value value) {
  while (auto reshard = value.getDefiningOp<ReshardOp>())
    value = reshard.getInputs()[cast<OpResult>(value).getResultNumber()];
  return value;
}

layout::Shape Moves::getMaxShape(Value value) const {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  if (!ShapedType::isDynamicShape(shape))
    return layout::Shape(shape.begin(), shape.end());
  return extents.getMaximumShape(withoutReshards(value));
}

layout::Shape Moves::getMultiples(Value value) const {
  return extents.getMultiples(withoutReshards(value));
}

layout::Shape Moves::getTypicalShape(Value value) const {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  if (!ShapedType::isDynamicShape(shape))
    return layout::Shape(shape.begin(), shape.end());
  layout::Shape typical;
  for (const layout::Extent &extent : extents.get(withoutReshards(value)))
    typical.push_back(
        std::max<int64_t>(extent.evaluate(typicalSizes).value_or(1), 0));
  return typical;
}

Result<const layout::Plan *> Moves::plan(Value value, layout::Shape shape,
                                         const View &from, const View &to,
                                         const layout::Mesh &mesh) {
  if (mesh != plannedMesh) {
    plans.clear();
    plannedMesh = mesh;
  }
  auto type = cast<RankedTensorType>(value.getType());
  int64_t bytes = ExtentAnalysis::getElementBytes(value);
  Key key{std::move(shape), bytes, from, to};
  if (auto known = plans.find(key); known != plans.end())
    return &known->second;

  const layout::Shape &extents = std::get<0>(key);
  layout::Move move{extents, bytes, from, to};
  if (ShapedType::isDynamicShape(type.getShape())) {
    move.from = layout::canonicalize(from, extents, mesh);
    move.to = layout::canonicalize(to, extents, mesh);
  }
  Result<layout::Plan> plan = layout::planMove(move, mesh, links);
  if (!plan)
    return plan.error();
  return &plans.emplace(std::move(key), std::move(*plan)).first->second;
}

Result<const layout::Plan *> Moves::plan(Value value, const View &from,
                                         const View &to,
                                         const layout::Mesh &mesh) {
  return plan(value, getMaxShape(value), from, to, mesh);
}

Result<int64_t> Moves::bytes(Value value, const View &from, const View &to,
                             const layout::Mesh &mesh) {
  Result<const layout::Plan *> plan =
      this->plan(value, getTypicalShape(value), from, to, mesh);
  if (!plan)
    return plan.error();
  const layout::Cost &cost = (*plan)->chosen.cost;
  return std::max(cost.bytesSent, cost.bytesReceived);
}
