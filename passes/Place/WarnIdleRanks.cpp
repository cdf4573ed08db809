//===- WarnIdleRanks.cpp - ranks that have little of the work -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Work is loop iterations. Shards are short or empty at the end, so of all
// ranks the first has the most and the last the least.
//
//===----------------------------------------------------------------------===//

#include "Layout/PlanViews.h"
#include "Place/Passes.h"
#include "Place/Placement.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"

#include <array>
#include <map>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::SubAxis;

namespace tessera::tv {
#define GEN_PASS_DEF_WARNIDLERANKSPASS
#include "Place/Passes.h.inc"
} // namespace tessera::tv

namespace {
struct WarnIdleRanks : tv::impl::WarnIdleRanksPassBase<WarnIdleRanks> {
  void runOnContract() override;

private:
  /// Iterations: all, of the first rank, of the last.
  using Loops = std::array<double, 3>;

  const Loops &count(ShardingRuleOpInterface op);
  void noteEmptyParts(llvm::function_ref<Diagnostic &(BlockArgument)> note);
  void suggest(InFlightDiagnostic &warning, const layout::Mesh &mesh);

  std::map<Looks, Loops> counted;
  std::vector<SubAxis> used;
  double all, most, least;
};
} // namespace

/// Of a loop of `size`, what the device at `coords` has.
static double partOf(const layout::Product &product, int64_t size,
                     const layout::Mesh &mesh, const layout::Coords &coords) {
  if (size == layout::kDynamic)
    return 1.0 / double(layout::sizeOf(layout::axesOf(product)));
  return double(layout::localExtent(product, size, mesh, coords)) /
         double(std::max<int64_t>(size, 1));
}

/// A dynamic loop counts as one iteration.
const WarnIdleRanks::Loops &WarnIdleRanks::count(ShardingRuleOpInterface op) {
  auto [known, isNew] = counted.try_emplace(looksOf(op));
  if (!isNew)
    return known->second;

  Placement actual;
  for (Value operand : op->getOperands())
    actual.operands.push_back(placesOf(operand));
  for (Value result : op->getResults())
    actual.results.push_back(placesOf(result));
  PlacedOp placed(op, std::move(actual));
  const layout::Mesh &mesh = placed.getMesh();
  layout::Coords first(mesh.axes.size(), 0), last;
  for (const layout::Axis &axis : mesh.axes)
    last.push_back(axis.size - 1);

  Division division = placed.getDivision();
  double whole = 1, ofFirst = 1, ofLast = 1;
  if (division.dims) { // evenly, but for a few
    layout::View view;
    view.dims = *division.dims;
    std::vector<SubAxis> axes = layout::axesOf(view);
    llvm::append_range(used, axes);
    ofFirst = ofLast = 1.0 / double(layout::sizeOf(axes));
  }
  for (auto [factor, product] :
       llvm::zip_equal(placed.getRule().factors, division.products)) {
    using Kind = layout::IterationFactor::Kind;
    // What is addressed is not run through.
    if (factor.size != layout::kDynamic && factor.kind != Kind::Indexed)
      whole *= double(factor.size);
    if (division.dims)
      continue;
    llvm::append_range(used, layout::axesOf(product));
    ofFirst *= partOf(product, factor.size, mesh, first);
    ofLast *= partOf(product, factor.size, mesh, last);
  }
  return known->second = {whole, whole * ofFirst, whole * ofLast};
}

/// Arguments of which some ranks have no part.
void WarnIdleRanks::noteEmptyParts(
    llvm::function_ref<Diagnostic &(BlockArgument)> note) {
  for (BlockArgument argument : getOperation().getArguments()) {
    ViewAttr view = getView(argument);
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!view || view.getView().dims.size() != size_t(type.getRank()))
      continue;
    const layout::Mesh mesh = view.getLayoutMesh();
    for (auto [d, dim] : llvm::enumerate(view.getView().dims)) {
      std::vector<SubAxis> axes = layout::axesOf(dim.product);
      const int64_t extent = type.getDimSize(d);
      // (One element on one of the devices is meant to be there.)
      if (axes.size() != 1 || extent >= axes[0].size || extent < 2)
        continue;
      Diagnostic &text = note(argument)
                         << "dimension " << d << " has " << extent << " for "
                         << axes[0].size << " parts";
      // Fewer parts that are larger would make the first rank's more.
      if (axes[0].size % extent == 0)
        text << "; did(" << mesh.axes[axes[0].axis].name << ":(" << axes[0].pre
             << ")" << extent << ") * _ gives each rank a part, which "
             << axes[0].size / extent << " ranks share";
      else
        text << ": " << axes[0].size - extent << " ranks have none";
    }
  }
}

/// The views of arguments that would give the ranks something to do.
void WarnIdleRanks::suggest(InFlightDiagnostic &warning,
                            const layout::Mesh &mesh) {
  noteEmptyParts([&](BlockArgument argument) -> Diagnostic & {
    return warning.attachNote(argument.getLoc());
  });
  std::vector<SubAxis> idle = layout::unusedAxes(mesh, used);
  Value largest;
  for (BlockArgument argument : getOperation().getArguments()) {
    ViewAttr view = getView(argument);
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!view || view.getView().dims.size() != size_t(type.getRank()))
      continue;
    if (idle.empty() || !type.hasStaticShape() || type.getRank() == 0 ||
        !layout::axesOf(view.getView().dims[0].product).empty() ||
        type.getDimSize(0) < layout::sizeOf(idle))
      continue;
    if (!largest ||
        type.getNumElements() >
            cast<RankedTensorType>(largest.getType()).getNumElements())
      largest = argument;
  }
  if (idle.empty())
    return;
  std::string digits;
  for (const SubAxis &axis : idle)
    digits += "did(" + layout::toString(axis, mesh) + ") * ";
  Diagnostic &note =
      warning.attachNote(largest ? largest.getLoc() : getOperation().getLoc());
  note << "no op is divided by " << digits << "_";
  if (largest)
    note << "; written in dimension 0 of this argument it divides its rows";
}

void WarnIdleRanks::runOnContract() {
  markAllAnalysesPreserved();
  all = most = least = 0;
  used.clear();
  counted.clear();
  std::optional<layout::Mesh> mesh;
  for (Block &block : getOperation().getBody())
    for (Operation &op : block)
      if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
          ruled && op.getNumResults() > 0) {
        auto [whole, ofFirst, ofLast] = count(ruled);
        all += whole;
        most += ofFirst;
        least += ofLast;
        mesh = getView(op.getResult(0)).getLayoutMesh();
      }
  if (!mesh || all == 0)
    return;
  const double even = all / double(mesh->numDevices());
  if (least > 0 && most < 2 * even) {
    // All work, but of what some must be sent first.
    std::optional<InFlightDiagnostic> warning;
    noteEmptyParts([&](BlockArgument argument) -> Diagnostic & {
      if (warning)
        return warning->attachNote(argument.getLoc());
      warning.emplace(mlir::emitWarning(argument.getLoc())
                      << "ranks hold nothing of an argument: ");
      return *warning->getUnderlyingDiagnostic();
    });
    return;
  }
  auto percent = [&](double part) {
    return llvm::formatv("{0:f1} %", 100 * part / all).str();
  };
  InFlightDiagnostic warning =
      getOperation().emitWarning()
      << "of the work the first rank does " << percent(most) << " and the last "
      << percent(least) << ", where " << percent(even) << " is an even part";
  suggest(warning, *mesh);
}
