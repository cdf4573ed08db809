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
#include "Layout/PlanViews.h"
#include "Place/Placement.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::View;

/// What part of its maximum a size of a small run is.
static constexpr int64_t kSmall = 16;

FailureOr<Moves> Moves::get(func::FuncOp function) {
  FailureOr<ExtentAnalysis> extents = ExtentAnalysis::run(function);
  if (failed(extents))
    return failure();
  return Moves(std::move(*extents), tv::getMachine(function));
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
  value = withoutReshards(value);
  if (!small)
    return extents.getTypicalShape(value);
  std::map<std::string, int64_t> sizes = extents.getMaximums();
  for (auto &[name, size] : sizes)
    size = std::max<int64_t>(size / kSmall, 1);
  layout::Shape few;
  for (const layout::Extent &extent : extents.get(value))
    few.push_back(std::max<int64_t>(extent.evaluate(sizes).value_or(1), 0));
  return few;
}

layout::Plans &Moves::getPlans(const layout::Mesh &mesh) {
  if (!plans || plans->getMesh() != mesh) {
    plans.emplace(mesh, machine);
    busiest.clear();
  }
  return *plans;
}

Result<const layout::Plan *>
Moves::plan(Value value, const View &from, const View &to,
            const layout::Mesh &mesh, std::optional<layout::Step::Kind> step) {
  return getPlans(mesh).get(getMaxShape(value),
                            ExtentAnalysis::getElementBytes(value), from, to,
                            step);
}

Result<std::vector<layout::Candidate>>
Moves::rank(Value value, const View &from, const View &to,
            const layout::Mesh &mesh, std::optional<layout::Step::Kind> step) {
  return getPlans(mesh).rank(getMaxShape(value),
                             ExtentAnalysis::getElementBytes(value), from, to,
                             step);
}

Result<int64_t> Moves::lowerBound(Value value, const View &from, const View &to,
                                  const layout::Mesh &mesh) {
  return getPlans(mesh).lowerBound(
      getMaxShape(value), ExtentAnalysis::getElementBytes(value), from, to);
}

Result<layout::Plan> Moves::planBetween(Value value, ViewAttr from,
                                        ViewAttr to) const {
  return planBetween(value, getMaxShape(value), from, to);
}

Result<layout::Plan> Moves::planBetween(Value value, const layout::Shape &shape,
                                        ViewAttr from, ViewAttr to) const {
  const layout::Mesh &mesh = from.getLayoutMesh();
  layout::Move move{shape, ExtentAnalysis::getElementBytes(value),
                    layout::canonicalize(from.getView(), shape, mesh),
                    layout::canonicalize(to.getView(), shape, mesh)};
  move.from.alloc = move.to.alloc = std::nullopt;
  move.fromMesh = mesh;
  move.toMesh = to.getLayoutMesh();
  return layout::planMove(move, mesh, machine);
}

Result<layout::Price> Moves::price(Value value, const View &from,
                                   const View &to, const layout::Mesh &mesh) {
  if (from == to)
    return layout::Price();
  Result<const layout::Plan *> plan = getPlans(mesh).get(
      getTypicalShape(value), ExtentAnalysis::getElementBytes(value), from, to);
  if (!plan)
    return plan.error();
  return layout::Price((*plan)->chosen.cost);
}

bool Moves::isExchange(Value value, const View &from, const View &to,
                       const layout::Mesh &mesh) {
  if (from == to)
    return false;
  Result<const layout::Plan *> plan = getPlans(mesh).get(
      getTypicalShape(value), ExtentAnalysis::getElementBytes(value), from, to);
  return plan && (*plan)->chosen.steps.size() == 1 &&
         layout::isFromPeerToPeer((*plan)->chosen.steps[0].kind);
}

std::optional<Moves::Kind> Moves::kindOf(Value value, const View &from,
                                         const View &to,
                                         const layout::Mesh &mesh) {
  if (from == to)
    return std::nullopt;
  const layout::Shape shape = getMaxShape(value);
  for (const View *view : {&from, &to}) {
    int64_t bytes = ExtentAnalysis::getElementBytes(value);
    for (int64_t extent : layout::maxLocalShape(*view, shape, mesh))
      bytes *= extent;
    if (!machine.isSmall(bytes))
      return std::nullopt;
  }
  Result<const layout::Plan *> plan = this->plan(value, from, to, mesh);
  if (!plan || (*plan)->chosen.cost.phases == 0)
    return std::nullopt;
  const layout::Step &last = (*plan)->chosen.steps.back();
  if (last.kind == layout::Step::Kind::Slice)
    return std::nullopt;
  return Kind(last.kind, last.axes, last.combiner);
}

double Moves::savedByKinds(ArrayRef<OperandMove> together,
                           const layout::Mesh &mesh) {
  double saved = 0;
  if (together.size() < 2)
    return saved;
  llvm::SmallVector<Kind> kinds;
  for (const OperandMove &move : together) {
    std::optional<Kind> kind = kindOf(move.value, move.from, move.to, mesh);
    if (!kind || layout::isFromPeerToPeer(std::get<0>(*kind)))
      continue;
    if (llvm::is_contained(kinds, *kind))
      saved += machine.latency;
    else
      kinds.push_back(std::move(*kind));
  }
  return saved;
}

Result<layout::Price> Moves::price(ArrayRef<OperandMove> together,
                                   const layout::Mesh &mesh, double limit) {
  layout::Price sum, most, exchanged;
  Exchanges exchanges;
  for (const OperandMove &move : together) {
    if (move.from == move.to)
      continue;
    layout::Shape shape = getTypicalShape(move.value);
    const int64_t bytes = ExtentAnalysis::getElementBytes(move.value);
    Result<const layout::Plan *> plan =
        getPlans(mesh).get(shape, bytes, move.from, move.to);
    if (!plan)
      return plan.error();
    const layout::Candidate &chosen = (*plan)->chosen;
    const layout::Price price(chosen.cost);
    sum += price;
    if (chosen.steps.size() != 1 ||
        !layout::isFromPeerToPeer(chosen.steps[0].kind))
      continue;
    exchanges.emplace_back(std::move(shape), bytes, move.from, move.to);
    exchanged += price;
    if (price.seconds > most.seconds)
      most = price;
  }
  if (exchanges.size() < 2 ||
      sum.seconds - exchanged.seconds + most.seconds > limit)
    return sum;
  llvm::sort(exchanges);
  auto [known, isNew] = busiest.try_emplace(exchanges);
  if (isNew) {
    std::vector<layout::Move> all;
    for (auto &[shape, bytes, from, to] : exchanges)
      all.push_back({shape, bytes, from, to});
    known->second = layout::busiestBytes(all, mesh);
  }
  sum.seconds -= machine.latency * double(exchanges.size() - 1);
  if (known->second) {
    const int64_t fewer = exchanged.bytes - *known->second;
    sum.bytes -= fewer;
    sum.seconds -= double(fewer) / machine.bandwidth;
  }
  return sum;
}

Result<double> Moves::seconds(Value value, const View &from, const View &to,
                              const layout::Mesh &mesh) {
  Result<layout::Price> price = this->price(value, from, to, mesh);
  if (!price)
    return price.error();
  return price->seconds;
}

bool Moves::isBetween(Value value, ViewAttr from, ViewAttr to, MeshAttr mesh) {
  if (from.getMesh() != to.getMesh())
    return true;
  View before = placesOf(from.getView()), after = placesOf(to.getView());
  if (from.getMesh() == mesh || before == after)
    return false;
  auto plan = this->plan(value, before, after, from.getLayoutMesh());
  // (A slice may not hold for any extent.)
  return !plan || (*plan)->chosen.cost.phases > 0 ||
         !cast<RankedTensorType>(value.getType()).hasStaticShape();
}

Result<double> Moves::seconds(Value value, ViewAttr from, ViewAttr to,
                              MeshAttr mesh) {
  if (!isBetween(value, from, to, mesh))
    return seconds(value, placesOf(from.getView()), placesOf(to.getView()),
                   from.getLayoutMesh());
  Result<layout::Plan> plan =
      planBetween(value, getTypicalShape(value), from, to);
  if (!plan)
    return plan.error();
  return plan->chosen.cost.seconds;
}
