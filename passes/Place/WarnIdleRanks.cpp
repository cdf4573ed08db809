//===- WarnIdleRanks.cpp - ranks that have little of the work -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Work is loop iterations. Of an op's loop a rank has a fraction, which is the
// same on all ranks or depends on coordinates: shards are short or empty at the
// end, and a value may lie on a part of the mesh. The iterations of ops with
// the same fractions are added before they are counted for each rank. Dynamic
// sizes count at their declared maximum.
//
//===----------------------------------------------------------------------===//

#include "Layout/OpCost.h"
#include "Layout/PlanViews.h"
#include "Place/Passes.h"
#include "Place/Placement.h"
#include "TensorView/ExtentAnalysis.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

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
/// What the device at each position of a mesh has of a loop.
class Fractions {
public:
  Fractions(const layout::Product &product, int64_t size,
            const layout::Mesh &mesh);
  double at(const layout::Coords &coords) const {
    int64_t index = 0;
    for (auto [axis, extent] : axes)
      index = index * extent + coords[axis];
    return values[index];
  }

private:
  /// Axes of the mesh, and their sizes, along which devices have more or less.
  SmallVector<std::pair<int, int64_t>> axes;
  std::vector<double> values; ///< row-major over `axes`
};

/// All iterations of an op, and what it has of them on each device: numbers of
/// `Fractions`, to be multiplied.
struct Loops {
  double all = 0;
  std::vector<size_t> fractions;
};

/// What a rank does of the work, and the ranks that do as much.
struct Share {
  double loops = 0;
  SmallVector<int64_t> ranks;
};

struct WarnIdleRanks : tv::impl::WarnIdleRanksPassBase<WarnIdleRanks> {
  void runOnContract() override;

private:
  layout::Shape shapeOf(Value value) const;
  std::optional<layout::View> viewOf(Value value) const;
  layout::Shape sizesOf(ShardingRuleOpInterface op,
                        const layout::Rule &rule) const;
  const Loops &count(ShardingRuleOpInterface op);
  size_t numberOf(const layout::Product &product, int64_t size);
  double countAt(const Loops &loops, const layout::Coords &coords) const;
  void findShares();
  std::string tellShares() const;
  bool noteEmptyParts(bool withSingle,
                      llvm::function_ref<Diagnostic &(BlockArgument)> note);
  void noteOp(InFlightDiagnostic &warning);
  void noteIdleAxes(InFlightDiagnostic &warning);

  std::optional<layout::Mesh> mesh;
  std::optional<ExtentAnalysis> extents; ///< where the function declares sizes
  bool atMaximum;                        ///< whether dynamic loops are counted
  /// By what ops look like, and by the extents of what is dynamic.
  std::map<Looks, Loops> counted;
  std::map<std::pair<layout::Product, int64_t>, size_t> numbers;
  std::vector<Fractions> fractions;
  /// Iterations of all ops that have the same fractions.
  std::map<std::vector<size_t>, double> work;
  std::vector<SubAxis> used;
  double all;
  Share most, least;
};
} // namespace

Fractions::Fractions(const layout::Product &product, int64_t size,
                     const layout::Mesh &mesh) {
  // Loops of no known size are divided as if each digit had its part.
  const int64_t bound =
      size == layout::kDynamic ? layout::capacity(product) : size;
  layout::View view;
  view.dims.push_back({product, 1});
  if (!layout::isEven(view, {bound}, mesh))
    for (const SubAxis &sub : layout::axesOf(product))
      if (axes.empty() || axes.back().first != sub.axis)
        axes.push_back({sub.axis, mesh.axes[sub.axis].size});
  layout::Coords coords(mesh.axes.size(), 0);
  for (size_t varied = 0; varied <= axes.size();) {
    values.push_back(double(layout::localExtent(product, bound, mesh, coords)) /
                     double(std::max<int64_t>(bound, 1)));
    for (varied = 1; varied <= axes.size(); ++varied) {
      auto [axis, extent] = axes[axes.size() - varied];
      if (++coords[axis] < extent)
        break;
      coords[axis] = 0;
    }
  }
}

size_t WarnIdleRanks::numberOf(const layout::Product &product, int64_t size) {
  auto [known, isNew] = numbers.try_emplace({product, size}, fractions.size());
  if (isNew)
    fractions.emplace_back(product, size, *mesh);
  return known->second;
}

/// Dynamic extents are at their maximum where the function declares sizes.
layout::Shape WarnIdleRanks::shapeOf(Value value) const {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  if (extents && ShapedType::isDynamicShape(shape))
    return extents->getMaximumShape(value);
  return layout::Shape(shape.begin(), shape.end());
}

/// The size of each factor's loop; kDynamic where no dimension tells it.
layout::Shape WarnIdleRanks::sizesOf(ShardingRuleOpInterface op,
                                     const layout::Rule &rule) const {
  layout::Shape sizes;
  for (const layout::IterationFactor &factor : rule.factors)
    sizes.push_back(factor.size);
  if (!llvm::is_contained(sizes, layout::kDynamic))
    return sizes;
  auto look = [&](Value value, const std::vector<layout::DimFactors> &dims) {
    const layout::Shape shape = shapeOf(value);
    for (auto [d, factors] : llvm::enumerate(dims))
      if (factors.size() == 1 &&
          rule.factors[factors[0]].size == layout::kDynamic)
        sizes[factors[0]] = std::max(sizes[factors[0]], shape[d]);
  };
  for (auto [value, dims] : llvm::zip_equal(op->getOperands(), rule.operands))
    look(value, dims);
  for (auto [value, dims] : llvm::zip_equal(op->getResults(), rule.results))
    look(value, dims);
  return sizes;
}

/// A loop of no known size counts as one iteration.
const Loops &WarnIdleRanks::count(ShardingRuleOpInterface op) {
  Looks looks = looksOf(op);
  bool isDynamic = false;
  if (extents)
    for (ValueRange values :
         {ValueRange(op->getOperands()), ValueRange(op->getResults())})
      for (Value value : values)
        if (!cast<RankedTensorType>(value.getType()).hasStaticShape()) {
          isDynamic = true;
          llvm::append_range(looks, extents->getMaximumShape(value));
        }
  auto [known, isNew] = counted.try_emplace(std::move(looks));
  Loops &loops = known->second;
  if (!isNew)
    return loops;

  Placement actual;
  for (Value operand : op->getOperands())
    actual.operands.push_back(placesOf(operand));
  for (Value result : op->getResults())
    actual.results.push_back(placesOf(result));
  PlacedOp placed(op, std::move(actual));
  mesh = placed.getMesh();
  Division division = placed.getDivision();
  atMaximum |= isDynamic;
  loops.all = 1;
  auto divide = [&](const layout::Product &product, int64_t size) {
    std::vector<SubAxis> axes = layout::axesOf(product);
    if (axes.empty())
      return;
    llvm::append_range(used, axes);
    loops.fractions.push_back(numberOf(product, size));
  };
  if (division.dims) {
    // Those of the whole, or of any tensor of a pointwise op.
    auto windows = dyn_cast<WindowOpInterface>(op.getOperation());
    Value whole = windows ? windows.getWhole() : op->getResult(0);
    layout::View view;
    view.dims = *division.dims;
    const layout::Shape shape = shapeOf(whole);
    for (auto [d, dim] : llvm::enumerate(view.dims))
      divide(dim.product, layout::boundOf(view, d, shape));
  }
  for (auto [factor, product, size] :
       llvm::zip_equal(placed.getRule().factors, division.products,
                       sizesOf(op, placed.getRule()))) {
    using Kind = layout::IterationFactor::Kind;
    // What is addressed is not run through.
    if (size != layout::kDynamic && factor.kind != Kind::Indexed)
      loops.all *= double(size);
    if (!division.dims)
      divide(product, size);
  }
  llvm::sort(loops.fractions);
  return loops;
}

double WarnIdleRanks::countAt(const Loops &loops,
                              const layout::Coords &coords) const {
  double part = loops.all;
  for (size_t number : loops.fractions)
    part *= fractions[number].at(coords);
  return part;
}

/// The ranks with most and with least.
void WarnIdleRanks::findShares() {
  SmallVector<Loops> summed;
  for (const auto &[numbers, loops] : work)
    summed.push_back({loops, numbers});
  std::vector<double> done(mesh->numDevices());
  layout::Coords coords(mesh->axes.size(), 0);
  for (size_t position = 0; position < done.size(); ++position) {
    const int64_t rank =
        mesh->devices.empty() ? int64_t(position) : mesh->devices[position];
    for (const Loops &loops : summed)
      done[rank] += countAt(loops, coords);
    for (size_t axis = coords.size(); axis-- > 0;) {
      if (++coords[axis] < mesh->axes[axis].size)
        break;
      coords[axis] = 0;
    }
  }
  most = {*llvm::max_element(done), {}};
  least = {*llvm::min_element(done), {}};
  // (Sums of the same numbers in another order are the same work.)
  const double close = 1e-9 * most.loops;
  for (auto [rank, loops] : llvm::enumerate(done))
    for (Share *share : {&most, &least})
      if (std::abs(loops - share->loops) <= close)
        share->ranks.push_back(int64_t(rank));
}

/// "33.3 %"; two digits of what is less than 0.1 %.
static std::string percent(double part, double all) {
  const double is = 100 * part / all;
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format(is > 0 && is < 0.1 ? "%.2g %%" : "%.1f %%", is);
  return text;
}

/// "rank 1", "ranks 0 and 2", "ranks 4 to 9", "rank 0 and 99 others".
static std::string toString(ArrayRef<int64_t> ranks) {
  if (ranks.size() == 1)
    return llvm::formatv("rank {0}", ranks[0]);
  if (ranks.size() > 2 &&
      ranks.back() - ranks.front() == int64_t(ranks.size()) - 1)
    return llvm::formatv("ranks {0} to {1}", ranks.front(), ranks.back());
  if (ranks.size() > 8)
    return llvm::formatv("rank {0} and {1} others", ranks[0], ranks.size() - 1);
  return llvm::formatv("ranks {0:$[, ]} and {1}",
                       llvm::make_range(ranks.begin(), ranks.end() - 1),
                       ranks.back());
}

std::string WarnIdleRanks::tellShares() const {
  auto tell = [&](const Share &share) {
    const bool one = share.ranks.size() == 1;
    return toString(share.ranks) + (one ? " does " : " do ") +
           percent(share.loops, all) + (one ? "" : " each");
  };
  const bool alike = int64_t(most.ranks.size()) == mesh->numDevices();
  return std::string("of the work ") +
         (atMaximum ? "at the sizes' maximums " : "") +
         (alike ? "each rank does " + percent(most.loops, all)
                : tell(most) + " and " + tell(least)) +
         ", where " + percent(all / double(mesh->numDevices()), all) +
         " is an even part";
}

//===----------------------------------------------------------------------===//
// The views that would give all ranks something to do
//===----------------------------------------------------------------------===//

/// With dynamic extents at their maximum. Nothing for a value without a view,
/// or with dimensions that lie as one.
std::optional<layout::View> WarnIdleRanks::viewOf(Value value) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  ViewAttr view = getView(value);
  if (!type || !view || view.getView().dims.size() != size_t(type.getRank()))
    return std::nullopt;
  return placesOf(
      type.hasStaticShape()
          ? view.getView()
          : layout::canonicalize(view.getView(), shapeOf(value), *mesh));
}

namespace {
/// Device digits, and how many values they cut: elements, or runs of them.
struct Cut {
  layout::Product digits;
  int64_t values, run;
};
} // namespace

/// Nothing where other digits cut, too, or each device could have a shorter
/// run.
static std::optional<Cut> findCut(const layout::Product &product,
                                  int64_t extent) {
  Cut cut = {{}, 0, 1};
  for (const layout::Factor &digit : product)
    if (digit.kind == layout::Factor::Kind::Stored)
      cut.run *= digit.size;
    else if (digit.kind == layout::Factor::Kind::Device && cut.run == 1)
      cut.digits.push_back(digit);
    else
      return std::nullopt;
  const int64_t parts = layout::sizeOf(layout::axesOf(product));
  cut.values = llvm::divideCeil(extent, cut.run);
  if (cut.run > 1 && cut.run <= int64_t(llvm::divideCeil(extent, parts)))
    return std::nullopt;
  return cut;
}

/// Of digits that cut `extent` values into more parts than these, those that
/// cut them into as many: others on their axes share a part.
static std::optional<layout::Product> fewerParts(const layout::Product &product,
                                                 int64_t extent) {
  layout::Product digits;
  for (const layout::Factor &factor : product) {
    SubAxis sub = factor.sub;
    if (sub.size % extent == 0)
      sub.size = extent;
    else if (extent % sub.size)
      return std::nullopt;
    extent /= sub.size;
    digits.push_back(layout::Factor::device(sub));
    if (extent == 1)
      return digits;
  }
  return std::nullopt;
}

/// `view` with the axes of dimension `from` in the first whole dimension that
/// has a value for each of their devices, of those that they divide evenly if
/// there are any.
static std::optional<layout::View> moveAxes(layout::View view, size_t from,
                                            const layout::Shape &shape) {
  std::vector<SubAxis> axes = layout::axesOf(view.dims[from].product);
  const int64_t parts = layout::sizeOf(axes);
  std::optional<size_t> to;
  for (auto [d, dim] : llvm::enumerate(view.dims)) {
    const int64_t extent = shape[d];
    if (!layout::axesOf(dim.product).empty())
      continue;
    dim.product = {layout::Factor::rest()};
    if (extent >= parts && (!to || (shape[*to] % parts && extent % parts == 0)))
      to = d;
  }
  if (!to)
    return std::nullopt;
  view.dims[from].product = {layout::Factor::rest()};
  for (const SubAxis &sub : llvm::reverse(axes))
    view.dims[*to].product.insert(view.dims[*to].product.begin(),
                                  layout::Factor::device(sub));
  return view;
}

/// Whether some devices have nothing of dimension `d`.
static bool leavesOut(const layout::View &view, size_t d, int64_t extent,
                      const layout::Mesh &mesh) {
  layout::View alone;
  alone.dims.push_back(view.dims[d]);
  return layout::leavesOut(alone, {extent}, mesh);
}

/// Notes arguments of which some ranks have no part; with `withSingle` also the
/// largest that lies on a part of the mesh, as it is meant to where all work.
bool WarnIdleRanks::noteEmptyParts(
    bool withSingle, llvm::function_ref<Diagnostic &(BlockArgument)> note) {
  bool noted = false;
  std::pair<BlockArgument, size_t> single;
  int64_t singleSize = 0;
  for (BlockArgument argument : getOperation().getArguments()) {
    std::optional<layout::View> view = viewOf(argument);
    if (!view)
      continue;
    const layout::Shape shape = shapeOf(argument);
    for (auto [d, dim] : llvm::enumerate(view->dims)) {
      const layout::Product &product = dim.product;
      const int64_t extent = shape[d];
      if (!leavesOut(*view, d, extent, *mesh))
        continue;
      const int64_t parts = layout::sizeOf(layout::axesOf(product));
      const std::optional<Cut> cut = findCut(product, extent);
      if (!cut || cut->values <= 1 || cut->values >= parts) {
        const int64_t size = llvm::is_contained(shape, layout::kDynamic)
                                 ? 1
                                 : ShapedType::getNumElements(shape);
        if (size > singleSize) {
          single = {argument, d};
          singleSize = size;
        }
        continue;
      }
      Diagnostic &text = note(argument)
                         << "dimension " << d << " has " << cut->values;
      if (cut->run > 1)
        text << " runs of " << cut->run;
      text << " for " << parts << " parts";
      // (Fewer parts that are larger would make the first rank's more.)
      if (auto fewer = fewerParts(cut->digits, cut->values))
        text << "; " << layout::toString(*fewer, *mesh)
             << " * _ gives each rank a part, which " << parts / cut->values
             << " ranks share";
      else if (auto moved = moveAxes(*view, d, shape))
        text << "; " << layout::toString(*moved, *mesh)
             << " gives each rank a part";
      else
        text << ": " << parts - cut->values << " of them are empty";
      noted = true;
    }
  }
  if (!withSingle || !single.first)
    return noted;
  auto [argument, d] = single;
  Diagnostic &text = note(argument) << "lies on a part of the ranks";
  if (auto moved = moveAxes(*viewOf(argument), d, shapeOf(argument)))
    text << "; " << layout::toString(*moved, *mesh) << " gives each a part";
  return true;
}

/// Notes the op with most of the difference between ranks.
void WarnIdleRanks::noteOp(InFlightDiagnostic &warning) {
  const layout::Coords busy = mesh->coordsOfRank(most.ranks[0]),
                       idle = mesh->coordsOfRank(least.ranks[0]);
  auto differenceOf = [&](ShardingRuleOpInterface op) {
    const Loops &loops = count(op);
    return countAt(loops, busy) - countAt(loops, idle);
  };
  ShardingRuleOpInterface worst;
  for (Block &block : getOperation().getBody())
    for (auto op : block.getOps<ShardingRuleOpInterface>())
      if (op->getNumResults() > 0 &&
          (!worst || differenceOf(op) > differenceOf(worst)))
        worst = op;
  const Loops &loops = count(worst);
  Diagnostic &text =
      warning.attachNote(worst.getLoc())
      << "most of this difference is here, where rank " << most.ranks[0]
      << " does " << percent(countAt(loops, busy), loops.all) << " and rank "
      << least.ranks[0] << " does " << percent(countAt(loops, idle), loops.all);
  std::optional<layout::View> view = viewOf(worst->getResult(0));
  if (!view)
    return;
  const layout::Shape shape = shapeOf(worst->getResult(0));
  for (size_t d = 0; d < view->dims.size(); ++d)
    if (leavesOut(*view, d, shape[d], *mesh))
      if (auto moved = moveAxes(*view, d, shape)) {
        text << "; with a result as " << layout::toString(*moved, *mesh)
             << " each has a part";
        return;
      }
}

/// Notes the axes that divide no op, at the largest argument whose rows they
/// may divide.
void WarnIdleRanks::noteIdleAxes(InFlightDiagnostic &warning) {
  std::vector<SubAxis> idle = layout::unusedAxes(*mesh, used);
  if (idle.empty())
    return;
  Value largest;
  int64_t largestSize = 0;
  for (BlockArgument argument : getOperation().getArguments()) {
    std::optional<layout::View> view = viewOf(argument);
    if (!view || view->dims.empty() ||
        !layout::axesOf(view->dims[0].product).empty())
      continue;
    const layout::Shape shape = shapeOf(argument);
    if (llvm::is_contained(shape, layout::kDynamic) ||
        shape[0] < layout::sizeOf(idle))
      continue;
    const int64_t size = ShapedType::getNumElements(shape);
    if (size > largestSize) {
      largest = argument;
      largestSize = size;
    }
  }
  std::string digits;
  for (const SubAxis &axis : idle)
    digits += "did(" + layout::toString(axis, *mesh) + ") * ";
  Diagnostic &note =
      warning.attachNote(largest ? largest.getLoc() : getOperation().getLoc());
  note << "no op is divided by " << digits << "_";
  if (largest)
    note << "; written in dimension 0 of this argument it divides its rows";
}

void WarnIdleRanks::runOnContract() {
  markAllAnalysesPreserved();
  all = 0;
  atMaximum = false;
  extents.reset();
  if (getOperation()->hasAttr(kSizesAttr)) {
    FailureOr<ExtentAnalysis> found = ExtentAnalysis::run(getOperation());
    if (failed(found))
      return signalPassFailure();
    extents.emplace(std::move(*found));
  }
  mesh.reset();
  counted.clear();
  numbers.clear();
  fractions.clear();
  work.clear();
  used.clear();
  for (Block &block : getOperation().getBody())
    for (auto op : block.getOps<ShardingRuleOpInterface>())
      if (op->getNumResults() > 0) {
        const Loops &loops = count(op);
        all += loops.all;
        work[loops.fractions] += loops.all;
      }
  if (!mesh || all == 0)
    return;
  findShares();
  if (least.loops > 0 && most.loops < 2 * all / double(mesh->numDevices())) {
    // All work, but of what some must be sent first.
    std::optional<InFlightDiagnostic> warning;
    noteEmptyParts(false, [&](BlockArgument argument) -> Diagnostic & {
      if (warning)
        return warning->attachNote(argument.getLoc());
      warning.emplace(mlir::emitWarning(argument.getLoc())
                      << tellShares()
                      << ", but ranks hold nothing of an argument: ");
      return *warning->getUnderlyingDiagnostic();
    });
    return;
  }
  // (Of a location: to a warning of an op tools add the whole op.)
  InFlightDiagnostic warning = mlir::emitWarning(getOperation().getLoc())
                               << tellShares();
  const bool noted =
      noteEmptyParts(true, [&](BlockArgument argument) -> Diagnostic & {
        return warning.attachNote(argument.getLoc());
      });
  if (!noted && least.loops < most.loops && least.ranks != most.ranks)
    noteOp(warning);
  noteIdleAxes(warning);
}
