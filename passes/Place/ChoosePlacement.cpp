//===- ChoosePlacement.cpp - the cheapest views for an op -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All ways to divide an op's loops that its views suggest are placed
// (Placement.h); each is charged with the time of the moves from the operands'
// views and to the results', and of the op itself: else a large product would
// be repeated on all devices to save half an all-reduce. On a tie weights stay
// where they are, then large operands do.
//
// Candidates of a factor: whole, each product that some dimension of it has,
// and these without axes that another factor wants. An op has few, so all
// combinations are tried; beyond `kMaxCombinations` one factor at a time.
//
//===----------------------------------------------------------------------===//

#include "Place/ChoosePlacement.h"
#include "Layout/AxisOrder.h"
#include "Layout/OpCost.h"
#include "Layout/PlanViews.h"
#include "Place/Remarks.h"
#include "TensorView/Notes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::Factor;
using layout::IterationFactor;
using layout::Product;
using layout::SubAxis;
using layout::View;

static constexpr size_t kMaxCombinations = 4096;

bool tv::isWeight(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (op->getNumOperands() != 1)
      return false;
    value = op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(value);
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!function || !argument.getOwner()->isEntryBlock())
    return false;
  return isWeightRole(function.getArgAttrOfType<StringAttr>(
      argument.getArgNumber(), kRoleAttr));
}

FailureOr<Placement> tv::getActualPlacement(Operation *op) {
  Placement actual;
  auto add = [&](Value value, std::vector<View> &views) -> LogicalResult {
    ViewAttr view = getView(value);
    if (!view)
      return op->emitError()
             << "has an operand or result of type " << value.getType()
             << " without a view; run tv-propagate-shardings first";
    views.push_back(placesOf(view.getView()));
    return success();
  };
  for (Value operand : op->getOperands())
    if (failed(add(operand, actual.operands)))
      return failure();
  for (Value result : op->getResults())
    if (failed(add(result, actual.results)))
      return failure();
  return actual;
}

double tv::getWork(Operation *op, const Placement &placement,
                   const Moves &moves) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled)
    return 0;
  PlacedOp placed(ruled, placement);
  auto tensorsOf = [&](ValueRange values, const std::vector<View> &views) {
    std::vector<layout::OpTensor> tensors;
    for (auto [value, view] : llvm::zip_equal(values, views))
      tensors.push_back({moves.getTypicalShape(value),
                         ExtentAnalysis::getElementBytes(value), view});
    return tensors;
  };
  Division division = placed.getDivision();
  int64_t parts = 1;
  if (division.dims) {
    View view;
    view.dims = *division.dims;
    parts = layout::sizeOf(layout::axesOf(view));
    division.products.assign(division.products.size(), {Factor::rest()});
  }
  return layout::opSeconds(placed.getRule(), division.products, parts,
                           tensorsOf(op->getOperands(), placement.operands),
                           tensorsOf(op->getResults(), placement.results),
                           placed.getMesh(), moves.getMachine());
}

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

/// `order` with the axes of `placement` behind it.
static layout::AxisOrder withAxesOf(const Placement &placement,
                                    layout::AxisOrder order) {
  for (const auto *views : {&placement.operands, &placement.results})
    for (const View &view : *views)
      order.add(view);
  return order;
}

/// For each factor the products to try, whole first.
static std::vector<std::vector<Product>>
getCandidates(const PlacedOp &op, const layout::AxisOrder &order) {
  const layout::Rule &rule = op.getRule();
  std::vector<std::vector<Product>> candidates(rule.factors.size(),
                                               {{Factor::rest()}});
  auto add = [&](int f, Product product) {
    IterationFactor::Kind kind = rule.factors[f].kind;
    if (kind == IterationFactor::Kind::Shifted ||
        kind == IterationFactor::Kind::Sequential)
      return;
    View one;
    one.dims.push_back({std::move(product), 1});
    one = layout::canonicalize(one, {rule.factors[f].size}, op.getMesh());
    product = std::move(one.dims[0].product);
    if (!layout::axesOf(product).empty() &&
        !llvm::is_contained(candidates[f], product))
      candidates[f].push_back(std::move(product));
  };
  auto look = [&](const View &view,
                  const std::vector<layout::DimFactors> &dims) {
    if (view.dims.size() != dims.size()) // flat
      return;
    for (auto [dim, factors] : llvm::zip_equal(view.dims, dims))
      if (auto products = op.getFactorProducts(factors, dim.product))
        for (auto [f, product] : llvm::zip_equal(factors, *products))
          add(f, product);
  };
  const Placement &actual = op.getActual();
  for (auto [use, view, dims] :
       llvm::zip_equal(rule.uses, actual.operands, rule.operands))
    if (use != layout::Use::Unread)
      look(view, dims);
  for (auto [view, dims] : llvm::zip_equal(actual.results, rule.results))
    look(view, dims);

  // Of equals the first is taken, wherever operands stand.
  for (std::vector<Product> &products : candidates)
    llvm::stable_sort(llvm::MutableArrayRef(products).drop_front(),
                      [&](const Product &a, const Product &b) {
                        return order.keyOf(a) < order.keyOf(b);
                      });

  // Without what another factor wants, in whole or in part.
  std::vector<std::vector<Product>> full = candidates;
  std::vector<SubAxis> pieces;
  for (const std::vector<Product> &products : full)
    for (const Product &product : products)
      llvm::append_range(pieces, layout::axesOf(product));
  if (auto refined = layout::refineAxes(pieces))
    pieces = std::move(*refined);
  pieces = order.sorted(std::move(pieces));
  auto isWanted = [&](const SubAxis &piece, size_t byOtherThan) {
    for (size_t g = 0; g < full.size(); ++g)
      if (g != byOtherThan && llvm::any_of(full[g], [&](const Product &other) {
            return layout::overlap({piece}, layout::axesOf(other));
          }))
        return true;
    return false;
  };
  for (size_t f = 0; f < full.size(); ++f)
    for (const Product &product : full[f]) {
      std::vector<SubAxis> wanted;
      for (const SubAxis &piece : pieces)
        if (wanted.size() < 4 && !llvm::is_contained(wanted, piece) &&
            layout::overlap({piece}, layout::axesOf(product)) &&
            isWanted(piece, f))
          wanted.push_back(piece);
      for (size_t mask = 1; mask < size_t(1) << wanted.size(); ++mask) {
        std::vector<SubAxis> gone;
        for (size_t i = 0; i < wanted.size(); ++i)
          if (mask >> i & 1)
            gone.push_back(wanted[i]);
        add(f, layout::gathered(product, gone));
      }
    }
  return candidates;
}

/// The axes along which operands are partial and may stay so.
static llvm::SmallVector<Delay> getDelays(const PlacedOp &op,
                                          const layout::AxisOrder &order) {
  std::vector<SubAxis> axes;
  for (const View &view : op.getActual().operands)
    for (const layout::Partial &partial : view.partial)
      for (const SubAxis &axis : partial.axes)
        if (!llvm::is_contained(axes, axis))
          axes.push_back(axis);
  llvm::SmallVector<Delay> delays;
  for (const SubAxis &axis : order.sorted(std::move(axes)))
    if (auto delay = op.getDelay(axis))
      delays.push_back(std::move(*delay));
  return delays;
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

namespace {
class Search {
public:
  Search(Operation *op, const Placement &actual, Moves &moves,
         const layout::AxisOrder &programOrder, bool explain)
      : op(op), actual(actual), moves(moves), programOrder(programOrder),
        explain(explain), mesh(getView(op->getResult(0)).getLayoutMesh()) {}

  void tryReinterpretation(ReinterpretOpInterface op);
  void tryDivisions(const PlacedOp &placed);
  std::optional<Choice> best;
  /// A reinterpretation is none where its operand lies, or some move cannot be
  /// planned.
  std::string why;

private:
  void consider(Placement placement);
  void tryWholeDims(const PlacedOp &placed, llvm::ArrayRef<Delay> delays);

  Operation *op;
  const Placement &actual;
  Moves &moves;
  const layout::AxisOrder &programOrder;
  const bool explain;
  const layout::Mesh &mesh;
};
} // namespace

void Search::consider(Placement placement) {
  // Factors may want digits that cut one axis in ways that do not fit.
  auto isLegal = [&](const View &view, Value value) {
    return bool(layout::verify(view, moves.getMaxShape(value), mesh));
  };
  if (!llvm::all_of(llvm::zip_equal(placement.operands, op->getOperands()),
                    [&](auto each) { return std::apply(isLegal, each); }) ||
      !llvm::all_of(llvm::zip_equal(placement.results, op->getResults()),
                    [&](auto each) { return std::apply(isLegal, each); }))
    return;
  auto refuse = [&](const std::string &reason) {
    if (why.empty())
      why = reason;
  };
  MoveCost cost;
  cost.work = getWork(op, placement, moves);
  std::vector<OperandMove> before;
  for (auto [number, value, from, to] : llvm::enumerate(
           op->getOperands(), actual.operands, placement.operands)) {
    // A value that is several operands moves once.
    bool again = from == to;
    for (size_t i = 0; i < number; ++i)
      again |= op->getOperand(i) == value && placement.operands[i] == to;
    if (again)
      continue;
    ++cost.reshards;
    before.push_back({value, from, to});
    Result<double> seconds = moves.seconds(value, from, to, mesh);
    if (!seconds)
      return refuse(seconds.message());
    if (*seconds == 0)
      continue;
    cost.weights += isWeight(value);
    int64_t elements = 1;
    for (int64_t extent : moves.getTypicalShape(value))
      elements *= extent;
    cost.elements += elements;
  }
  for (auto [value, from, to] :
       llvm::zip_equal(op->getResults(), placement.results, actual.results)) {
    Result<layout::Price> price = moves.price(value, from, to, mesh);
    if (!price)
      return refuse(price.message());
    cost.add(*price);
    cost.reshards += from != to;
  }
  double limit = best ? best->cost.total() : HUGE_VAL;
  if (explain && best)
    limit = best->second ? best->second->cost.total() : HUGE_VAL;
  cost.add(*moves.price(before, mesh, limit - cost.total()));
  PricedPlacement priced{std::move(placement), cost};
  if (!best) {
    best = Choice{std::move(priced), {}};
  } else if (cost < best->cost) {
    if (explain && priced.placement != best->placement)
      best->second = PricedPlacement(std::move(*best));
    static_cast<PricedPlacement &>(*best) = std::move(priced);
  } else if (explain && priced.placement != best->placement &&
             (!best->second || cost < best->second->cost)) {
    best->second = std::move(priced);
  }
}

/// The move comes after the op or before it. Where it would have to be in the
/// middle, some dimensions of the operand come whole.
void Search::tryReinterpretation(ReinterpretOpInterface op) {
  auto tryOperand = [&](const View &view) {
    Result<View> result = reinterpret(op, view, mesh);
    if (result)
      return consider(Placement{{view}, {*result}});
    if (why.empty())
      why = result.message(); // Other candidates remain.
  };
  tryOperand(actual.operands[0]);
  if (Result<View> operand = op.getOperandView(actual.results[0], mesh))
    tryOperand(placesOf(*operand));
  if (best)
    return;
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  layout::Shape shape(type.getShape().begin(), type.getShape().end());
  llvm::SmallVector<size_t> split;
  for (auto [d, dim] : llvm::enumerate(actual.operands[0].dims))
    if (!layout::axesOf(dim.product).empty())
      split.push_back(d);
  const size_t count = std::min<size_t>(split.size(), 4);
  for (size_t mask = 1; mask < size_t(1) << count; ++mask) {
    View view = actual.operands[0];
    for (size_t i = 0; i < split.size(); ++i)
      if (i >= count || mask >> i & 1)
        view.dims[split[i]].product = {Factor::rest()};
    tryOperand(layout::canonicalize(view, shape, mesh));
  }
  if (!best)
    tryOperand(
        layout::canonicalize(View::replicated(type.getRank()), shape, mesh));
}

void Search::tryDivisions(const PlacedOp &placed) {
  const layout::AxisOrder order = withAxesOf(actual, programOrder);
  std::vector<std::vector<Product>> candidates = getCandidates(placed, order);
  llvm::SmallVector<Delay> delays = getDelays(placed, order);

  // One number a factor, then one a delay; 0 is whole, and combined.
  llvm::SmallVector<size_t> counts;
  for (const std::vector<Product> &products : candidates)
    counts.push_back(products.size());
  counts.append(delays.size(), 2);
  auto tryNumbers = [&](llvm::ArrayRef<size_t> numbers) {
    Division division;
    for (size_t f = 0; f < candidates.size(); ++f)
      division.products.push_back(candidates[f][numbers[f]]);
    for (size_t i = 0; i < delays.size(); ++i)
      if (numbers[candidates.size() + i])
        division.delays.push_back(delays[i]);
    // Other divisions are possible where this is none.
    if (Result<Placement> placement = placed.place(division))
      consider(std::move(*placement));
  };

  llvm::SmallVector<size_t> numbers(counts.size(), 0);
  tryNumbers(numbers);
  size_t combinations = 1;
  for (size_t count : counts)
    combinations = std::min(combinations * count, kMaxCombinations + 1);
  if (combinations <= kMaxCombinations) {
    for (size_t n = 1; n < combinations; ++n) {
      size_t rest = n;
      for (size_t i = 0; i < counts.size(); ++i) {
        numbers[i] = rest % counts[i];
        rest /= counts[i];
      }
      tryNumbers(numbers);
    }
    return tryWholeDims(placed, delays);
  }
  for (bool better = true; better;) {
    better = false;
    for (size_t i = 0; i < counts.size(); ++i) {
      size_t kept = numbers[i];
      for (size_t number = 0; number < counts[i]; ++number) {
        const std::optional<Choice> before = best;
        numbers[i] = number;
        tryNumbers(numbers);
        if (best && (!before || best->cost < before->cost)) {
          kept = number;
          better = true;
        }
      }
      numbers[i] = kept;
    }
  }
  return tryWholeDims(placed, delays);
}

/// Dimensions for all tensors at once. Flat ones have no factors of their own:
/// all tensors have them, or none. Boxes lie where the whole is: what moves is
/// the box before or after the op, never more.
void Search::tryWholeDims(const PlacedOp &placed,
                          llvm::ArrayRef<Delay> delays) {
  auto tryView = [&](const View &view) {
    for (bool delayed : {false, true}) {
      Division division;
      division.dims = view.dims;
      if (delayed)
        division.delays.assign(delays.begin(), delays.end());
      if (Result<Placement> placement = placed.place(division))
        consider(std::move(*placement));
    }
  };
  if (const View *whole = placed.getSplitWhole())
    return tryView(*whole);
  if (!placed.isPointwise())
    return;
  auto isFlat = [](const View &view) {
    return llvm::any_of(view.dims,
                        [](const auto &dim) { return dim.span > 1; });
  };
  for (auto [use, view] :
       llvm::zip_equal(placed.getRule().uses, actual.operands))
    if (use != layout::Use::Unread && isFlat(view))
      tryView(view);
  for (const View &view : actual.results)
    if (isFlat(view))
      tryView(view);
}

static FailureOr<Choice> choosePlacement(Operation *op, const Placement &actual,
                                         Moves &moves,
                                         const layout::AxisOrder &order,
                                         bool explain) {
  Search search(op, actual, moves, order, explain);
  if (auto reinterpretation = dyn_cast<ReinterpretOpInterface>(op))
    search.tryReinterpretation(reinterpretation);
  if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op))
    search.tryDivisions(PlacedOp(ruled, actual));
  if (!search.best && !search.why.empty())
    return op->emitError() << search.why;
  if (!search.best)
    return op->emitError()
           << "is not an op that may stand between sharded tensors";
  return *search.best;
}

const layout::AxisOrder &Choices::orderOf(Operation *op) {
  if (!order) {
    order.emplace(getView(op->getResult(0)).getLayoutMesh());
    for (Value argument : op->getBlock()->getArguments())
      if (ViewAttr view = getView(argument))
        order->add(view.getView());
  }
  return *order;
}

FailureOr<Choice> Choices::get(Operation *op, const Placement &actual) {
  // A region is not looked at.
  if (op->getNumRegions())
    return choosePlacement(op, actual, moves, orderOf(op), explain);
  std::vector<int64_t> looks = {
      reinterpret_cast<int64_t>(op->getName().getAsOpaquePointer()),
      reinterpret_cast<int64_t>(withoutNotes(op).getAsOpaquePointer()),
      int64_t(op->getNumOperands())};
  auto add = [&](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    looks.push_back(
        reinterpret_cast<int64_t>(type.getElementType().getAsOpaquePointer()));
    looks.push_back(type.getRank());
    llvm::append_range(looks, type.getShape());
    if (!type.hasStaticShape()) {
      llvm::append_range(looks, moves.getMaxShape(value));
      llvm::append_range(looks, moves.getTypicalShape(value));
    }
    looks.push_back(isWeight(value));
  };
  for (Value operand : op->getOperands()) {
    add(operand);
    looks.push_back(llvm::find(op->getOperands(), operand) -
                    op->operand_begin());
  }
  llvm::for_each(op->getResults(), add);
  Key key(std::move(looks), actual.operands, actual.results);
  if (auto choice = known.find(key); choice != known.end())
    return choice->second;
  FailureOr<Choice> choice =
      choosePlacement(op, actual, moves, orderOf(op), explain);
  if (succeeded(choice))
    known.emplace(std::move(key), *choice);
  return choice;
}

/// "takes [8], [did(x) * 4] and gives [did(x) * 4]: 16 bytes, 5 us".
static std::string describe(const PricedPlacement &priced,
                            const layout::Mesh &mesh) {
  auto list = [&](const std::vector<View> &views) {
    std::string text;
    for (const View &view : views)
      text += (text.empty() ? "" : ", ") + layout::toString(view, mesh);
    return text;
  };
  const auto &[placement, cost] = priced;
  std::string text;
  if (!placement.operands.empty())
    text = "takes " + list(placement.operands) + " and ";
  return text + "gives " + list(placement.results) + ": " +
         layout::describe(layout::Price(cost.total(), cost.bytes));
}

void Choices::remark(Operation *op, const Choice &choice) const {
  if (!explain)
    return;
  const layout::Mesh &mesh = getView(op->getResult(0)).getLayoutMesh();
  leaveRemark(op,
              describe(choice, mesh) +
                  (choice.second
                       ? "; otherwise " + describe(*choice.second, mesh)
                       : ""),
              typesOf(op));
}
