//===- Placement.cpp - views under which an op moves nothing --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `place` is the whole meaning of a rule for one op: it checks that a division
// is possible and gives each dimension the product of its factors and each
// result the partial states that the division leaves. Whether an op is local is
// then a comparison: place the division that its own views show, and compare.
//
//===----------------------------------------------------------------------===//

#include "Place/Placement.h"
#include "Layout/PlanViews.h"
#include "TensorView/Notes.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::DimFactors;
using layout::IterationFactor;
using layout::Product;
using layout::SubAxis;
using layout::Use;
using layout::View;
using Kind = IterationFactor::Kind;

static layout::Shape shapeOf(Value value) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  return layout::Shape(shape.begin(), shape.end());
}

View tv::placesOf(View view) {
  view.alloc.reset();
  return view;
}

static bool isSplit(const Product &product) {
  return !layout::axesOf(product).empty();
}

PlacedOp::PlacedOp(ShardingRuleOpInterface op, Placement actual)
    : op(op), windows(dyn_cast<WindowOpInterface>(op.getOperation())),
      actual(std::move(actual)),
      mesh(getView(op->getResult(0)).getLayoutMesh()),
      rule(op.getShardingRule()) {
  for (Value operand : op->getOperands())
    operandShapes.push_back(shapeOf(operand));
  for (Value result : op->getResults())
    resultShapes.push_back(shapeOf(result));
}

//===----------------------------------------------------------------------===//
// From factors to dimensions and back
//===----------------------------------------------------------------------===//

layout::Dim PlacedOp::composeDim(const DimFactors &factors,
                                 const Division &division) const {
  if (factors.size() == 1)
    return {division.products[factors[0]], 1};
  Product product;
  bool split = llvm::any_of(
      factors, [&](int f) { return isSplit(division.products[f]); });
  if (!split)
    return {{layout::Factor::rest()}, 1};
  for (auto [number, f] : llvm::enumerate(factors)) {
    // The outermost digit needs no bound of its own: the dimension's is enough.
    const Product &part = division.products[f];
    if (number == 0)
      llvm::append_range(product, part);
    else
      product.push_back(layout::Factor::group(part, 0, rule.factors[f].size));
  }
  return {product, 1};
}

std::optional<std::vector<Product>>
PlacedOp::getFactorProducts(const DimFactors &factors,
                            const Product &product) const {
  if (factors.size() == 1)
    return std::vector<Product>{product};
  layout::Shape from{1}, to;
  for (int f : factors) {
    int64_t size = rule.factors[f].size;
    to.push_back(size);
    if (size == layout::kDynamic || from[0] == layout::kDynamic)
      from[0] = layout::kDynamic;
    else
      from[0] *= size;
  }
  View whole;
  whole.dims.push_back({product, 1});
  Result<View> parts = layout::reshapeView(whole, from, to, getMesh());
  if (!parts || parts->dims.size() != factors.size())
    return std::nullopt;
  std::vector<Product> products;
  for (layout::Dim &dim : parts->dims)
    products.push_back(std::move(dim.product));
  // A digit above all values of an inner factor, which has one value there, may
  // as well be above those of the outermost; it stays there, so that one split
  // has one division.
  for (size_t i = 1; i < products.size(); ++i) {
    Product &inner = products[i];
    while (to[i] != layout::kDynamic && !inner.empty() && isSplit({inner[0]}) &&
           (inner[0].kind == layout::Factor::Kind::Device ||
            layout::capacity(inner[0]) == 1) &&
           layout::capacity(Product(inner.begin() + 1, inner.end())) >= to[i]) {
      products[0].insert(products[0].begin(), inner[0]);
      inner.erase(inner.begin());
    }
  }
  View outer;
  outer.dims.push_back({products[0], 1});
  products[0] = layout::canonicalize(outer, {to[0]}, getMesh()).dims[0].product;
  return products;
}

const View *PlacedOp::getSplitWhole() const {
  if (!windows)
    return nullptr;
  bool isResult = isWholeResult();
  const View &whole = isResult ? actual.results[0] : actual.operands[0];
  const std::vector<DimFactors> &dims =
      isResult ? rule.results[0] : rule.operands[0];
  if (whole.dims.size() != dims.size()) // flat
    return &whole;
  for (auto [dim, factors] : llvm::zip_equal(whole.dims, dims))
    if (isSplit(dim.product) && rule.factors[factors[0]].kind == Kind::Shifted)
      return &whole;
  return nullptr;
}

Division PlacedOp::getDivision(std::optional<size_t> first) const {
  Division division;
  division.products.assign(rule.factors.size(), {layout::Factor::rest()});
  auto isFlat = [](const layout::Dim &dim) { return dim.span != 1; };
  auto look = [&](const View &view, const std::vector<DimFactors> &dims) {
    if (llvm::any_of(view.dims, isFlat)) {
      if (isPointwise() && !division.dims)
        division.dims = view.dims;
      return;
    }
    for (auto [dim, factors] : llvm::zip_equal(view.dims, dims)) {
      if (factors.empty() || !isSplit(dim.product))
        continue;
      auto products = getFactorProducts(factors, dim.product);
      if (!products)
        continue;
      for (auto [f, product] : llvm::zip_equal(factors, *products))
        if (!isSplit(division.products[f]))
          division.products[f] = product;
    }
  };
  auto lookAt = [&](size_t operand) {
    if (rule.uses[operand] != Use::Unread)
      look(actual.operands[operand], rule.operands[operand]);
  };
  if (first)
    lookAt(*first);
  for (size_t operand = 0; operand < actual.operands.size(); ++operand)
    lookAt(operand);
  if (!first)
    for (auto [view, dims] : llvm::zip_equal(actual.results, rule.results))
      look(view, dims);

  if (const View *whole = getSplitWhole();
      whole && (!first || !isWholeResult())) {
    division.products.assign(rule.factors.size(), {layout::Factor::rest()});
    division.dims = whole->dims;
  }

  llvm::SmallVector<SubAxis> used;
  for (const Product &product : division.products)
    llvm::append_range(used, layout::axesOf(product));
  if (division.dims)
    for (const layout::Dim &dim : *division.dims)
      llvm::append_range(used, layout::axesOf(dim.product));
  for (const View &view : actual.operands)
    for (const layout::Partial &partial : view.partial)
      for (const SubAxis &axis : partial.axes) {
        if (llvm::any_of(used, [&](const SubAxis &other) {
              return layout::overlap(axis, other);
            }))
          continue;
        used.push_back(axis);
        if (auto delay = getDelay(axis))
          division.delays.push_back(std::move(*delay));
      }
  return division;
}

//===----------------------------------------------------------------------===//
// Placing
//===----------------------------------------------------------------------===//

PlacedOp::States PlacedOp::getStates(SubAxis axis) const {
  States states(actual.operands.size());
  for (auto [state, view, use] :
       llvm::zip_equal(states, actual.operands, rule.uses))
    for (const layout::Partial &partial : view.partial)
      if (use != Use::Unread && llvm::is_contained(partial.axes, axis))
        state = partial.combiner;
  return states;
}

std::optional<Delay> PlacedOp::getDelay(SubAxis axis) const {
  Delay delay{axis, getStates(axis), {}};
  std::optional<layout::Combiner> combiner;
  llvm::SmallVector<size_t> wholes;
  for (auto [number, state] : llvm::enumerate(delay.operands)) {
    if (state)
      combiner = state;
    else if (rule.uses[number] != Use::Unread)
      wholes.push_back(number);
  }
  // Few operands; beyond that, as they are or all of them.
  size_t choices = size_t(1) << std::min<size_t>(wholes.size(), 6);
  for (size_t mask = 0; mask < choices && combiner; ++mask) {
    Delay attempt = delay;
    for (auto [bit, number] : llvm::enumerate(wholes))
      if (mask >> std::min<size_t>(bit, 6) & 1)
        attempt.operands[number] = combiner;
    std::string why;
    if (succeeded(op.transferPartial(attempt.operands, attempt.results, why)))
      return attempt;
  }
  return std::nullopt;
}

/// Adds `axes` with `combiner` to the partial states of `view`.
static void addPartial(View &view, llvm::ArrayRef<SubAxis> axes,
                       layout::Combiner combiner) {
  for (layout::Partial &partial : view.partial)
    if (partial.combiner == combiner) {
      llvm::append_range(partial.axes, axes);
      return;
    }
  view.partial.push_back({{axes.begin(), axes.end()}, combiner});
}

Result<Placement> PlacedOp::place(const Division &division) const {
  const layout::Mesh &mesh = getMesh();
  llvm::SmallVector<SubAxis> used;
  auto use = [&](llvm::ArrayRef<SubAxis> axes) -> Status {
    for (const SubAxis &axis : axes)
      for (const SubAxis &other : used)
        if (layout::overlap(axis, other))
          return Error{"mesh axis " + layout::toString(axis, mesh) +
                       " would divide two of its loops"};
    llvm::append_range(used, axes);
    return Ok{};
  };
  if (division.dims && !isPointwise() && !windows)
    return Error{"flat dimensions need a pointwise op"};

  Placement placement;
  auto place = [&](const std::vector<DimFactors> &dims) {
    View view;
    if (division.dims && !dims.empty())
      view.dims = *division.dims;
    else
      for (const DimFactors &factors : dims)
        view.dims.push_back(factors.empty()
                                ? layout::Dim{{layout::Factor::rest()}, 1}
                                : composeDim(factors, division));
    return view;
  };
  if (division.dims && windows) {
    View whole;
    whole.dims = *division.dims;
    Result<std::vector<View>> boxes = getBoxViews(windows, whole, mesh);
    if (!boxes)
      return boxes.error();
    placement = {{std::move(whole)}, std::move(*boxes)};
    if (isWholeResult())
      std::swap(placement.operands, placement.results);
  } else {
    for (const std::vector<DimFactors> &dims : rule.operands)
      placement.operands.push_back(place(dims));
    for (const std::vector<DimFactors> &dims : rule.results)
      placement.results.push_back(place(dims));
  }

  if (division.dims) {
    View view;
    view.dims = *division.dims;
    if (Status status = use(layout::axesOf(view)); !status)
      return status.error();
  }
  for (auto [f, factor] : llvm::enumerate(rule.factors)) {
    std::vector<SubAxis> axes;
    if (!division.dims)
      axes = layout::axesOf(division.products[f]);
    if (axes.empty())
      continue;
    if (Status status = use(axes); !status)
      return status.error();
    switch (factor.kind) {
    case Kind::Parallel:
      continue;
    case Kind::Shifted:
      return Error{"a dimension whose index it shifts must be whole"};
    case Kind::Sequential:
      return Error{"a dimension that it runs through in order must be whole"};
    case Kind::Indexed:
    case Kind::Reduction:
      break;
    }
    bool isSum = false;
    for (auto [number, view] : llvm::enumerate(placement.results))
      if (rule.makesPartial(f, number)) {
        addPartial(view, axes, factor.combiner);
        isSum = true;
      }
    for (auto [number, view] : llvm::enumerate(placement.operands))
      if (isSum && rule.uses[number] == Use::Added)
        addPartial(view, axes, factor.combiner);
  }
  for (const Delay &delay : division.delays) {
    if (Status status = use(delay.axis); !status)
      return status.error();
    for (auto [view, state] :
         llvm::zip_equal(placement.operands, delay.operands))
      if (state)
        addPartial(view, delay.axis, *state);
    for (auto [view, state] : llvm::zip_equal(placement.results, delay.results))
      if (state)
        addPartial(view, delay.axis, *state);
  }

  for (auto [number, view] : llvm::enumerate(placement.operands))
    view = rule.uses[number] == Use::Unread
               ? actual.operands[number]
               : layout::canonicalize(view, operandShapes[number], mesh);
  for (auto [number, view] : llvm::enumerate(placement.results))
    view = layout::canonicalize(view, resultShapes[number], mesh);
  return placement;
}

//===----------------------------------------------------------------------===//
// Local or not
//===----------------------------------------------------------------------===//

Status PlacedOp::checkLocal() const {
  Result<Placement> needed = place(getDivision());
  if (!needed)
    return needed.error();
  auto compare = [&](const char *what, size_t number, const View &is,
                     const View &must) -> Status {
    if (is == must)
      return Ok{};
    return Error{std::string(what) + " #" + std::to_string(number) +
                 " lies as " + layout::toString(is, getMesh()) +
                 ", but must lie as " + layout::toString(must, getMesh()) +
                 " beside the others"};
  };
  for (size_t i = 0; i < actual.operands.size(); ++i)
    if (Status status =
            compare("operand", i, actual.operands[i], needed->operands[i]);
        !status) {
      // The op itself says why one may not be partial, or must be with others.
      std::string why;
      std::vector<SubAxis> axes = layout::partialAxes(actual.operands[i]);
      llvm::append_range(axes, layout::partialAxes(needed->operands[i]));
      for (const SubAxis &axis : axes) {
        States results;
        if (failed(op.transferPartial(getStates(axis), results, why)))
          return Error{status.message() + ": " + why};
      }
      return status;
    }
  for (size_t i = 0; i < actual.results.size(); ++i)
    if (Status status =
            compare("result", i, actual.results[i], needed->results[i]);
        !status)
      return status;
  return Ok{};
}

Result<View> tv::reinterpret(ReinterpretOpInterface op, const View &view,
                             const layout::Mesh &mesh) {
  Result<View> result = op.getResultView(view, mesh);
  if (result)
    return placesOf(*result);
  return result;
}

bool tv::givesSameElements(Operation *op) {
  return op->hasTrait<OpTrait::SharesMemory>() && !isa<WindowOpInterface>(op);
}

std::optional<View> tv::getOperandView(Operation *op, const View &view) {
  const bool computes = !givesSameElements(op);
  if (computes && (op->getNumOperands() != 1 || !view.partial.empty() ||
                   !op->hasTrait<OpTrait::Pointwise>()))
    return std::nullopt;
  const layout::Mesh &mesh = getView(op->getOperand(0)).getLayoutMesh();
  if (auto reinterpretation = dyn_cast<ReinterpretOpInterface>(op)) {
    Result<View> operand = reinterpretation.getOperandView(view, mesh);
    if (!operand)
      return std::nullopt;
    Result<View> result = reinterpret(reinterpretation, *operand, mesh);
    if (!result || *result != view)
      return std::nullopt;
    return placesOf(*operand);
  }
  // Partial states pass as they are; the rule places the dimensions.
  View dims = view;
  dims.partial.clear();
  View whole = View::replicated(
      cast<RankedTensorType>(op->getOperand(0).getType()).getRank());
  PlacedOp placed(cast<ShardingRuleOpInterface>(op),
                  Placement{{whole}, {dims}});
  Result<Placement> placement = placed.place(placed.getDivision());
  if (!placement || placement->results[0] != dims)
    return std::nullopt;
  placement->operands[0].partial = view.partial;
  return placement->operands[0];
}

/// The op's values that carry data over a mesh, in order.
static llvm::SmallVector<Value> tensorsOf(Operation *op) {
  llvm::SmallVector<Value> values;
  for (Value value : op->getOperands())
    if (isa<RankedTensorType>(value.getType()))
      values.push_back(value);
  for (Value value : op->getResults())
    if (isa<RankedTensorType>(value.getType()))
      values.push_back(value);
  return values;
}

Status tv::checkLocal(Operation *op) {
  for (Region &region : op->getRegions())
    for (Operation &inner : region.getOps())
      for (Value operand : inner.getOperands())
        if (ViewAttr view = getView(operand);
            view && !layout::axesOf(view.getView()).empty())
          return Error{"its region reads a tensor that is not whole on every "
                       "device"};
  llvm::SmallVector<Value> tensors = tensorsOf(op);
  if (tensors.empty())
    return Ok{};
  for (Value value : tensors)
    if (!getView(value))
      return Error{"has an operand or result without a view"};
  if (isa<MoveOpInterface>(op) || op->hasTrait<OpTrait::IsTerminator>())
    return Ok{};

  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (auto reinterpretation = dyn_cast<ReinterpretOpInterface>(op)) {
    ViewAttr from = getView(op->getOperand(0)), to = getView(op->getResult(0));
    Result<View> result =
        reinterpret(reinterpretation, from.getView(), from.getLayoutMesh());
    if (result && *result == placesOf(to.getView()))
      return Ok{};
    if (!ruled)
      return Error{result
                       ? "its result must lie as " +
                             layout::toString(*result, from.getLayoutMesh()) +
                             " where its operand lies"
                       : result.message()};
  }
  if (!ruled)
    return Error{"is not an op that may stand between sharded tensors"};
  Placement actual;
  for (Value operand : op->getOperands())
    actual.operands.push_back(placesOf(operand));
  for (Value result : op->getResults())
    actual.results.push_back(placesOf(result));
  return PlacedOp(ruled, std::move(actual)).checkLocal();
}

Looks tv::looksOf(Operation *op) {
  Looks looks;
  auto add = [&](auto part) {
    looks.push_back(reinterpret_cast<uintptr_t>(part.getAsOpaquePointer()));
  };
  add(op->getName());
  add(withoutNotes(op));
  for (Value operand : op->getOperands()) {
    add(operand.getType());
    looks.push_back(llvm::find(op->getOperands(), operand) -
                    op->operand_begin());
  }
  for (Type type : op->getResultTypes())
    add(type);
  return looks;
}

Status LocalChecks::check(Operation *op) {
  if (op->getNumRegions())
    return checkLocal(op);
  auto [status, isNew] = known.try_emplace(looksOf(op), Ok{});
  if (isNew)
    status->second = checkLocal(op);
  return status->second;
}

Result<Placement> tv::followOperands(Operation *op, const Placement &actual,
                                     size_t first) {
  if (auto reinterpretation = dyn_cast<ReinterpretOpInterface>(op)) {
    Result<View> result =
        reinterpret(reinterpretation, actual.operands[0],
                    getView(op->getResult(0)).getLayoutMesh());
    if (result)
      return Placement{{actual.operands[0]}, {*result}};
    if (!isa<ShardingRuleOpInterface>(op))
      return result.error();
  }
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled)
    return Error{"has no rule"};
  PlacedOp placed(ruled, actual);
  return placed.place(placed.getDivision(first));
}
