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

FailureOr<Moves> Moves::get(func::FuncOp function,
                            const layout::Machine &machine) {
  FailureOr<ExtentAnalysis> extents = ExtentAnalysis::run(function);
  if (failed(extents))
    return failure();
  return Moves(std::move(*extents), machine);
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
  return extents.getTypicalShape(withoutReshards(value));
}

Result<const layout::Plan *>
Moves::plan(Value value, const layout::Shape &shape, const View &from,
            const View &to, const layout::Mesh &mesh,
            std::optional<layout::Step::Kind> step) {
  if (!plans || plans->getMesh() != mesh)
    plans.emplace(mesh, machine);
  return plans->get(shape, ExtentAnalysis::getElementBytes(value), from, to,
                    step);
}

Result<const layout::Plan *>
Moves::plan(Value value, const View &from, const View &to,
            const layout::Mesh &mesh, std::optional<layout::Step::Kind> step) {
  return plan(value, getMaxShape(value), from, to, mesh, step);
}

Result<double> Moves::seconds(Value value, const View &from, const View &to,
                              const layout::Mesh &mesh) {
  if (from == to)
    return 0.;
  Result<const layout::Plan *> plan =
      this->plan(value, getTypicalShape(value), from, to, mesh);
  if (!plan)
    return plan.error();
  return (*plan)->chosen.cost.seconds;
}
