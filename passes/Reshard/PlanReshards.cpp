//===- PlanReshards.cpp - each reshard becomes steps ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Asks the planner for each reshard and writes the steps of the cheapest
// candidate as a chain of reshards. The planner works at the maximum of dynamic
// extents; the views between steps are then spelled for any extent, and steps
// that do not hold for any become exchanges.
//
//===----------------------------------------------------------------------===//

#include "Layout/Exchange.h"
#include "Layout/PlanViews.h"
#include "Place/Moves.h"
#include "Place/Placement.h"
#include "Reshard/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <array>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::Factor;
using layout::Product;
using layout::Step;
using layout::SubAxis;
using layout::View;

namespace tessera::tv {
#define GEN_PASS_DEF_PLANRESHARDSPASS
#include "Reshard/Passes.h.inc"
} // namespace tessera::tv

//===----------------------------------------------------------------------===//
// Views between steps, for any extent
//===----------------------------------------------------------------------===//

/// The product that splits dimensions of these extents.
static Product canonicalize(const Product &product,
                            const layout::Shape &extents,
                            const layout::Mesh &mesh) {
  View one;
  one.dims.push_back({product, int64_t(extents.size())});
  return layout::canonicalize(one, extents, mesh).dims[0].product;
}

/// A product that is `atMaximum` when the dimensions of `shape` have the
/// extents `maximum`, and scales with them: one of `ends`, one of them
/// gathered, or `atMaximum` with one digit as `_`. Nothing if there is none.
static std::optional<Product> spellForAnyExtent(const Product &atMaximum,
                                                llvm::ArrayRef<Product> ends,
                                                const layout::Shape &shape,
                                                const layout::Shape &maximum,
                                                const layout::Mesh &mesh) {
  auto fits = [&](const Product &product) {
    View one;
    one.dims.push_back({product, int64_t(shape.size())});
    return bool(layout::verify(one, shape, mesh)) &&
           canonicalize(product, maximum, mesh) == atMaximum;
  };
  for (const Product &end : ends) {
    std::vector<SubAxis> axes = layout::axesOf(end);
    for (size_t mask = 0; mask < size_t(1) << std::min<size_t>(axes.size(), 6);
         ++mask) {
      std::vector<SubAxis> gone;
      for (size_t i = 0; i < std::min<size_t>(axes.size(), 6); ++i)
        if (mask >> i & 1)
          gone.push_back(axes[i]);
      Product product = layout::gathered(end, gone);
      if (fits(product))
        return canonicalize(product, shape, mesh);
    }
  }
  for (size_t i = 0; i <= atMaximum.size(); ++i) {
    Product product = atMaximum;
    if (i < product.size() && product[i].kind == Factor::Kind::Stored)
      product[i] = Factor::rest();
    else if (i == product.size())
      product.push_back(Factor::rest());
    else
      continue;
    if (fits(product))
      return canonicalize(product, shape, mesh);
  }
  return std::nullopt;
}

/// `step`, canonical at the maximum, as a view for any extent.
static std::optional<View> spellForAnyExtent(const View &step, const View &from,
                                             const View &to,
                                             const layout::Shape &shape,
                                             const layout::Shape &maximum,
                                             const layout::Mesh &mesh) {
  if (shape == maximum)
    return step;
  View spelled = step;
  size_t begin = 0;
  for (layout::Dim &dim : spelled.dims) {
    size_t end = begin + dim.span;
    layout::Shape part(shape.begin() + begin, shape.begin() + end);
    layout::Shape partMaximum(maximum.begin() + begin, maximum.begin() + end);
    llvm::SmallVector<Product> ends{{Factor::rest()}};
    for (const View *view : {&to, &from}) {
      size_t at = 0;
      for (const layout::Dim &other : view->dims) {
        if (at == begin && other.span == dim.span)
          ends.push_back(other.product);
        at += other.span;
      }
    }
    if (part != partMaximum) {
      auto product =
          spellForAnyExtent(dim.product, ends, part, partMaximum, mesh);
      if (!product)
        return std::nullopt;
      dim.product = std::move(*product);
    }
    begin = end;
  }
  return spelled;
}

//===----------------------------------------------------------------------===//
// Steps, for any extent
//===----------------------------------------------------------------------===//

/// What a step changes of dynamic dimensions.
static llvm::SmallVector<layout::Group>
getDynamicChanges(const View &from, const View &to, const layout::Shape &shape,
                  const layout::Shape &maximum) {
  llvm::SmallVector<layout::Group> changes;
  for (layout::Group &group : layout::joinGroups(from, to, maximum)) {
    bool dynamic = false;
    for (size_t dim = group.fromBegin; dim < group.fromEnd; ++dim)
      dynamic |= layout::boundOf(from, dim, shape) == layout::kDynamic;
    if (dynamic && group.changed())
      changes.push_back(std::move(group));
  }
  return changes;
}

/// What the product splits an extent by; nothing where it has groups.
static std::optional<int64_t> getDivisor(const Product &product) {
  int64_t divisor = layout::sizeOf(layout::axesOf(product));
  for (const layout::Factor &factor : product) {
    if (factor.kind == layout::Factor::Kind::Group)
      return std::nullopt;
    if (factor.kind == layout::Factor::Kind::Stored)
      divisor *= factor.size;
  }
  return divisor;
}

/// Whether the step, which is right at the maximum, is so for any extent:
/// blocks of blocks may be elsewhere than blocks where they do not divide the
/// extent, which is a multiple of `multiples`.
static bool holdsForAnyExtent(const Step &step, const View &from,
                              llvm::ArrayRef<layout::Group> changes,
                              const layout::Shape &multiples,
                              const layout::Mesh &mesh) {
  return llvm::all_of(changes, [&](const layout::Group &group) {
    int64_t multiple = 1;
    for (size_t dim = group.fromBegin; dim < group.fromEnd; ++dim)
      multiple *= layout::boundOf(from, dim, multiples);
    const bool isDivided =
        llvm::all_of(std::array{&group.from, &group.to}, [&](auto *product) {
          std::optional<int64_t> divisor = getDivisor(*product);
          return divisor && multiple % *divisor == 0;
        });
    // Where they divide it, they lie as they do in twice what all are multiples
    // of, where nothing stored is left out for being one element.
    const int64_t bound = isDivided ? 2 * multiple : layout::kDynamic;
    auto isPart = [&](const Product &fine, const Product &coarse) {
      return layout::refines(canonicalize(fine, {bound}, mesh),
                             canonicalize(coarse, {bound}, mesh), bound, mesh);
    };
    switch (step.kind) {
    case Step::Kind::Slice:
      if (from.partial == step.to.partial)
        return isPart(group.to, group.from);
      // What the axes of a new state split, their devices have together.
      return isPart(group.from, group.to) ||
             isPart(group.to, layout::gathered(group.from, step.axes));
    case Step::Kind::ReduceScatter:
      return isPart(group.to, group.from);
    case Step::Kind::AllGather:
    case Step::Kind::Broadcast:
      return isPart(group.from, group.to);
    case Step::Kind::AllReduce:
      return false; // leaves all where it is
    default:
      return true;
    }
  });
}

/// The exchange from one view to another with the same partial states.
static Step getExchange(const View &from, const View &to,
                        const layout::Shape &maximum) {
  Step step{Step::Kind::Exchange, {}, {}, to};
  for (const layout::Group &group : layout::joinGroups(from, to, maximum))
    for (const Product *product : {&group.from, &group.to})
      if (group.changed())
        llvm::append_range(
            step.axes, layout::subtract(layout::axesOf(*product), step.axes));
  step.axes = layout::merged(step.axes);
  return step;
}

/// The same steps, with an exchange in place of those that do not hold for any
/// extent. Partial states become whole before it, and new ones come after it.
static std::vector<Step> holdForAnyExtent(std::vector<Step> steps, View at,
                                          const layout::Shape &shape,
                                          const layout::Shape &maximum,
                                          const layout::Shape &multiples,
                                          const layout::Mesh &mesh) {
  std::vector<Step> result;
  for (Step &step : steps) {
    auto changes = getDynamicChanges(at, step.to, shape, maximum);
    if (!holdsForAnyExtent(step, at, changes, multiples, mesh)) {
      if (step.kind == Step::Kind::ReduceScatter ||
          step.kind == Step::Kind::AllReduce) {
        at.partial = step.to.partial;
        result.push_back({Step::Kind::AllReduce, step.axes, step.combiner, at});
      }
      View moved = step.to;
      moved.partial = at.partial;
      result.push_back(getExchange(at, moved, maximum));
      at = std::move(moved);
      if (at.partial == step.to.partial)
        continue;
    }
    at = step.to;
    result.push_back(std::move(step));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// On which all lies but arguments, results and what is next to them
/// (tv-move-between-devices): pointwise ops and those that only give elements
/// other indices. Where there are no others any will do; that on which, as for
/// tv-bind, most bytes of arguments and results lie.
static MeshAttr getProgramMesh(func::FuncOp function) {
  for (Operation &op : function.getBody().front())
    if (ViewAttr view =
            op.getNumResults() ? getView(op.getResult(0)) : ViewAttr())
      if (op.hasAttr(kStepAttr) ||
          !(isa<ReshardOp>(op) || op.hasTrait<OpTrait::Pointwise>() ||
            op.hasTrait<OpTrait::SharesMemory>()))
        return view.getMesh();
  llvm::MapVector<MeshAttr, int64_t> bytes;
  for (TypeRange types :
       {function.getArgumentTypes(), function.getResultTypes()})
    for (Type type : types) {
      ViewAttr view = getView(type);
      if (!view)
        continue;
      auto tensor = cast<RankedTensorType>(type);
      int64_t size = !layout::axesOf(view.getView()).empty() *
                     int64_t(tensor.getElementTypeBitWidth());
      for (int64_t extent : tensor.getShape())
        size *= ShapedType::isDynamic(extent) ? 1 : extent;
      bytes[view.getMesh()] += size;
    }
  auto most = llvm::max_element(bytes, llvm::less_second());
  return most == bytes.end() ? MeshAttr() : most->first;
}

namespace {
struct PlanReshards : tv::impl::PlanReshardsPassBase<PlanReshards> {
  using PlanReshardsPassBase::PlanReshardsPassBase;

  void runOnContract() override;

private:
  LogicalResult planOne(OpBuilder &builder, ReshardOp op, Value from,
                        RankedTensorType toType, Value &moved, Moves &moves);
  /// The steps of the cheapest candidate that can be spelled for any extent.
  Result<std::vector<Step>> getSteps(const layout::Candidate &candidate,
                                     Value value, const View &from,
                                     const View &to, const layout::Mesh &mesh,
                                     Moves &moves);
  /// `candidate` as these steps do it: with their price where they are others.
  layout::Candidate getDone(const layout::Candidate &candidate,
                            ArrayRef<Step> steps, Value value, View at,
                            const layout::Mesh &mesh, Moves &moves);
  void report(ReshardOp op, ViewAttr from, ViewAttr to, MeshAttr mesh,
              const layout::Plan &plan, int64_t bound);

  MeshAttr programMesh;
  int64_t planned = 0; ///< moves
};
} // namespace

Result<std::vector<Step>>
PlanReshards::getSteps(const layout::Candidate &candidate, Value value,
                       const View &from, const View &to,
                       const layout::Mesh &mesh, Moves &moves) {
  ArrayRef<int64_t> extents =
      cast<RankedTensorType>(value.getType()).getShape();
  layout::Shape shape(extents.begin(), extents.end());
  layout::Shape maximum = moves.getMaxShape(value);
  std::vector<Step> steps = candidate.steps;
  // What is one view at the maximum may be two at other extents.
  if (steps.empty())
    steps.push_back({Step::Kind::Slice, {}, {}, to});
  for (size_t i = 0; i < steps.size(); ++i) {
    if (i + 1 == steps.size()) {
      steps[i].to = to;
      break;
    }
    auto spelled =
        spellForAnyExtent(steps[i].to, from, to, shape, maximum, mesh);
    if (!spelled)
      return Error{"a view between the steps of '" + candidate.text +
                   "' has no spelling that scales with a dynamic extent"};
    steps[i].to = std::move(*spelled);
  }
  return holdForAnyExtent(std::move(steps), from, shape, maximum,
                          moves.getMultiples(value), mesh);
}

layout::Candidate PlanReshards::getDone(const layout::Candidate &candidate,
                                        ArrayRef<Step> steps, Value value,
                                        View at, const layout::Mesh &mesh,
                                        Moves &moves) {
  if (llvm::equal(candidate.steps, steps, [](const Step &a, const Step &b) {
        return a.kind == b.kind;
      }))
    return candidate;
  const layout::Shape maximum = moves.getMaxShape(value);
  layout::Candidate done;
  for (const Step &step : steps) {
    View to = canonicalize(step.to, maximum, mesh);
    Result<const layout::Plan *> plan =
        moves.plan(value, at, to, mesh, step.kind);
    if (!plan)
      return candidate;
    layout::Candidate one = (*plan)->chosen;
    // What moves at other extents than the largest has its latency.
    if (one.steps.empty() && step.kind != Step::Kind::Slice) {
      one.text = layout::toString(step.kind);
      one.cost.phases = 1;
      one.cost.seconds = moves.getMachine().latency;
    }
    done.steps.push_back(step);
    done.text += (done.text.empty() ? "" : ", then ") + one.text;
    done.cost += one.cost;
    at = std::move(to);
  }
  return done;
}

void PlanReshards::report(ReshardOp op, ViewAttr from, ViewAttr to,
                          MeshAttr mesh, const layout::Plan &plan,
                          int64_t bound) {
  auto textOf = [&](ViewAttr attr) {
    std::string text =
        layout::toString(placesOf(attr.getView()), attr.getLayoutMesh());
    if (attr.getMesh() != mesh)
      text += " on " + layout::toString(attr.getLayoutMesh());
    return text;
  };
  std::string views = textOf(from) + " to " + textOf(to);
  std::string loser = plan.loser ? describe(*plan.loser) : "";
  if (explain) {
    InFlightDiagnostic remark = mlir::emitRemark(op.getLoc())
                                << views << ": " << describe(plan.chosen)
                                << "; lower bound " << bound << " bytes";
    if (plan.loser)
      remark << "; instead of " << loser;
  }
  const layout::Cost &cost = plan.chosen.cost;
  remark::passed(op.getLoc(), remark::RemarkOpts::name("reshard")
                                  .category(getArgument())
                                  .function(getOperation().getName()))
      << remark::metric("views", views)
      << remark::metric("plan", plan.chosen.text)
      << remark::metric("bytes", std::max(cost.bytesSent, cost.bytesReceived))
      << remark::metric("bound", bound) << remark::metric("copies", cost.copies)
      << remark::metric("us", cost.seconds * 1e6)
      << remark::metric("steps", plan.chosen.steps.size())
      << remark::metric("move", planned) << remark::metric("loser", loser);
}

LogicalResult PlanReshards::planOne(OpBuilder &builder, ReshardOp op,
                                    Value from, RankedTensorType toType,
                                    Value &moved, Moves &moves) {
  ViewAttr source = getView(from), target = getView(toType);
  const bool isBetween = moves.isBetween(from, source, target, programMesh);
  const MeshAttr meshAttr = isBetween ? programMesh : source.getMesh();
  const layout::Mesh &mesh = meshAttr.getMesh();
  View before = placesOf(source.getView()), after = placesOf(target.getView());
  auto addStep = [&](StepKind kind, const std::vector<SubAxis> &axes,
                     RankedTensorType type, const std::string &loser) {
    auto attr = StepAttr::get(op.getContext(), kind, meshAttr, axes,
                              builder.getStringAttr(loser));
    auto step = ReshardOp::create(builder, op.getLoc(), TypeRange{type},
                                  ValueRange{moved}, attr);
    step->setAttr(kMoveAttr, builder.getDenseI64ArrayAttr(planned));
    moved = step.getResult(0);
  };

  moved = from;
  if (before == after && !isBetween) {
    // At most another order in memory.
    if (from.getType() != toType)
      addStep(StepKind::Slice, {}, toType, "");
    return success();
  }
  std::optional<Step::Kind> only;
  if (auto name = op->getAttrOfType<StringAttr>(kStepAttr))
    only = static_cast<Step::Kind>(*symbolizeStepKind(name.getValue()));
  Result<layout::Plan> known = [&]() -> Result<layout::Plan> {
    if (isBetween)
      return moves.planBetween(from, source, target);
    Result<const layout::Plan *> plan =
        moves.plan(from, before, after, mesh, only);
    return plan ? Result<layout::Plan>(**plan) : plan.error();
  }();
  if (!known)
    return op.emitError() << known.message();
  layout::Plan plan = std::move(*known);
  auto stepsOf = [&](layout::Candidate &candidate) {
    auto steps = getSteps(candidate, from, before, after, mesh, moves);
    if (steps)
      candidate = getDone(candidate, *steps, from, before, mesh, moves);
    return steps;
  };
  const double cheapest = plan.chosen.cost.seconds;
  Result<std::vector<Step>> steps = stepsOf(plan.chosen);
  // Where extents may be others than the largest, another may be cheaper.
  if (!isBetween &&
      (!steps || layout::isLess(cheapest, plan.chosen.cost.seconds))) {
    auto all = moves.rank(from, before, after, mesh, only);
    if (!all)
      return op.emitError() << all.message();
    plan.loser.reset();
    for (layout::Candidate &other : llvm::drop_begin(*all)) {
      // No candidate takes less than at the largest.
      if (plan.loser &&
          !layout::isLess(other.cost.seconds, plan.loser->cost.seconds))
        break;
      auto others = stepsOf(other);
      if (!others)
        continue;
      if (!steps ||
          layout::isLess(other.cost.seconds, plan.chosen.cost.seconds)) {
        std::swap(plan.chosen, other);
        std::swap(steps, others);
        if (!others)
          continue;
      }
      if (!plan.loser ||
          layout::isLess(other.cost.seconds, plan.loser->cost.seconds))
        plan.loser = std::move(other);
    }
    if (plan.loser)
      layout::tellApart(plan.chosen, *plan.loser, mesh);
  }
  if (!steps)
    return op.emitError() << steps.message();
  Result<int64_t> bound = isBetween
                              ? plan.chosen.cost.bytesReceived
                              : moves.lowerBound(from, before, after, mesh);
  if (!bound)
    return op.emitError() << bound.message();
  report(op, source, target, meshAttr, plan, *bound);
  const std::string loser = plan.loser ? describe(*plan.loser) : "";
  if (only == Step::Kind::Exchange && steps->size() == 1 &&
      steps->front().kind == Step::Kind::Slice)
    steps->front() = getExchange(before, after, moves.getMaxShape(from));
  if (only && (steps->size() != 1 || steps->front().kind != *only))
    return op.emitError() << "is no " << layout::toString(*only)
                          << " for every extent of a dynamic dimension; an "
                             "exchange is";
  for (auto [number, step] : llvm::enumerate(*steps)) {
    bool last = number + 1 == steps->size();
    addStep(static_cast<StepKind>(step.kind), step.axes,
            last ? toType
                 : withEncoding(toType, source.with(std::move(step.to))),
            loser);
  }
  return success();
}

void PlanReshards::runOnContract() {
  FailureOr<Moves> moves = Moves::get(getOperation());
  if (failed(moves))
    return signalPassFailure();
  planned = 0;
  programMesh = getProgramMesh(getOperation());
  llvm::SmallVector<ReshardOp> reshards;
  getOperation().walk([&](ReshardOp op) {
    if (!op.getPlanAttr())
      reshards.push_back(op);
  });
  for (ReshardOp op : reshards) {
    OpBuilder builder(op);
    llvm::SmallVector<Value> results;
    for (auto [from, to] : llvm::zip_equal(op.getInputs(), op.getResults())) {
      Value moved;
      if (failed(planOne(builder, op, from,
                         cast<RankedTensorType>(to.getType()), moved, *moves)))
        return signalPassFailure();
      results.push_back(moved);
      ++planned;
    }
    op.replaceAllUsesWith(results);
    op.erase();
  }
}
