//===- Ways.cpp - all ways to place an op ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Place/Ways.h"
#include "Layout/PlanViews.h"
#include "TensorView/Notes.h"

#include <array>
#include <limits>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::SubAxis;
using layout::View;

static constexpr double kNever = std::numeric_limits<double>::infinity();
/// Axes of meshes with more digits are dealt whole.
static constexpr size_t kMaxDigits = 3;
/// And of more than this no loops have gaps.
static constexpr size_t kMaxWithGaps = 2;
/// Deals of digits to loops that are tried.
static constexpr size_t kMaxDeals = 512;
/// What goes over links counts so much more: links are shared, and the model is
/// not as exact as to move many bytes more for a little less time.
static constexpr double kCarried = 0.05;
/// What a deal is of a plan.
static constexpr double kDeal = 0.2;
/// In which operands are kept partial.
static constexpr std::array kCombiners = {layout::Combiner::Sum};

static std::vector<SubAxis> wholeAxes(const layout::Mesh &mesh) {
  std::vector<SubAxis> whole;
  for (auto [number, axis] : llvm::enumerate(mesh.axes))
    if (axis.size > 1)
      whole.push_back({int(number), 1, axis.size});
  return whole;
}

std::vector<SubAxis> tv::findDigits(const layout::Mesh &mesh,
                                    ArrayRef<ViewAttr> views, bool isFine) {
  std::vector<SubAxis> whole = wholeAxes(mesh);
  std::vector<SubAxis> all = whole;
  auto add = [&](const SubAxis &axis) {
    if (!llvm::is_contained(all, axis))
      all.push_back(axis);
  };
  for (ViewAttr view : views)
    llvm::for_each(layout::axesOf(view.getView()), add);
  for (const SubAxis &axis : whole)
    for (int64_t pre = 1; isFine && pre < axis.size;) {
      int64_t prime = 2;
      while (axis.size / pre % prime)
        ++prime;
      add({axis.axis, pre, prime});
      pre *= prime;
    }
  auto parts = layout::refineAxes(std::move(all));
  return parts && parts->size() <= kMaxDigits ? std::move(*parts) : whole;
}

Ways::Ways(Moves &moves, const layout::Mesh &mesh, std::vector<SubAxis> digits,
           ArrayRef<ViewAttr> views, double mostPlans)
    : moves(moves), mesh(mesh), axisOrder(mesh), carried(kCarried),
      left(mostPlans) {
  for (ViewAttr view : views)
    axisOrder.add(view.getView());
  this->digits = axisOrder.sorted(std::move(digits));
  axes = axisOrder.sorted(wholeAxes(mesh));
}

/// What is dealt to `places`: the digits, or axes whole if there are too many
/// ways to deal these; nothing if there are too many then, too.
ArrayRef<SubAxis> Ways::digitsFor(size_t places) const {
  for (ArrayRef<SubAxis> dealt : {ArrayRef(digits), ArrayRef(axes)}) {
    size_t deals = 1;
    for (size_t i = 1; i <= dealt.size() && deals <= kMaxDeals; ++i)
      deals *= places + i;
    if (deals <= kMaxDeals)
      return dealt;
  }
  return {};
}

static size_t loopsWithGaps(ArrayRef<SubAxis> digits, size_t loops) {
  return digits.size() > kMaxWithGaps ? 0 : loops;
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

int Ways::numberOf(const View &view) {
  auto [number, isNew] = numbers.try_emplace(view, int(views.size()));
  if (isNew)
    views.push_back(view);
  return number->second;
}

int Ways::numberOf(Value value) {
  ViewAttr view = getView(value);
  auto [number, isNew] = numbersOfViews.try_emplace(view);
  if (isNew)
    number->second = numberOf(placesOf(view.getView()));
  return number->second;
}

/// Empty unless small runs count.
layout::Shape Ways::smallShapeOf(Value value) {
  if (weightOfSmall == 0)
    return {};
  moves.setSmall(true);
  layout::Shape shape = moves.getTypicalShape(value);
  moves.setSmall(false);
  return shape;
}

double Ways::sum(llvm::function_ref<double()> time) {
  const double typical = time();
  if (weightOfSmall == 0)
    return typical;
  moves.setSmall(true);
  const double small = time();
  moves.setSmall(false);
  return typical + weightOfSmall * small;
}

double Ways::work(Operation *op, const Placement &placement) {
  return sum([&] { return getWork(op, placement, moves); });
}

int Ways::shapeOf(Value value) {
  if (value == last.first)
    return last.second;
  auto [known, isNew] = shapeOfValue.try_emplace(value);
  if (isNew)
    known->second =
        shapes
            .try_emplace({moves.getTypicalShape(value), smallShapeOf(value),
                          ExtentAnalysis::getElementBytes(value)},
                         int(shapes.size()))
            .first->second;
  last = *known;
  return known->second;
}

uint64_t Ways::keyOf(Value value, int from, int to) {
  return uint64_t(shapeOf(value)) << 42 | uint64_t(from) << 21 | to;
}

double Ways::seconds(Value value, int from, int to) {
  if (from == to)
    return 0;
  auto [time, isNew] = times.try_emplace(keyOf(value, from, to), kNever);
  if (!isNew)
    return time->second;
  if (leastSeconds(value, from, to) == 0 &&
      isSlice(value, from, to).value_or(false)) {
    spend(kDeal);
    return times[keyOf(value, from, to)] = 0;
  }
  spend(1);
  return time->second = sum([&] {
           auto price = moves.price(value, views[from], views[to], mesh);
           return price ? price->seconds + carried * double(price->bytes) /
                                               moves.getMachine().bandwidth
                        : kNever;
         });
}

double Ways::saved(ArrayRef<MoveOf> together) {
  std::vector<uint64_t> key;
  for (const MoveOf &move : together)
    key.push_back(keyOf(move.value, move.from, move.to));
  llvm::sort(key);
  auto [known, isNew] = savings.try_emplace(std::move(key));
  if (!isNew)
    return known->second;
  spend(1);
  std::vector<OperandMove> all;
  for (const MoveOf &move : together)
    all.push_back({move.value, views[move.from], views[move.to]});
  return known->second = sum([&] {
           double alone = 0;
           for (const OperandMove &move : all)
             alone += *moves.seconds(move.value, move.from, move.to, mesh);
           return alone - moves.price(all, mesh, kNever)->seconds;
         });
}

bool Ways::isExchange(Value value, int from, int to) {
  if (from == to)
    return false;
  auto [known, isNew] = exchanges.try_emplace(keyOf(value, from, to));
  if (isNew)
    known->second = moves.isExchange(value, views[from], views[to], mesh);
  return known->second;
}

int Ways::kindOf(Value value, int from, int to) {
  if (from == to)
    return -1;
  auto [kind, isNew] = kindsOfMoves.try_emplace(keyOf(value, from, to), -1);
  if (!isNew)
    return kind->second;
  if (auto found = moves.kindOf(value, views[from], views[to], mesh))
    kind->second = kinds.try_emplace(*found, int(kinds.size())).first->second;
  return kind->second;
}

ArrayRef<int> Ways::returned(Value value, int view, int now,
                             ArrayRef<Said> said) {
  auto [known, isNew] =
      returnedAs.try_emplace({shapeOf(value), view, now, said.vec()});
  SmallVector<int, 2> &found = known->second;
  if (!isNew)
    return found;
  ArrayRef<int64_t> extents =
      cast<RankedTensorType>(value.getType()).getShape();
  const layout::Shape maximum = moves.getMaxShape(value);
  View to = views[view];
  std::vector<SubAxis> free = layout::partialAxes(to);
  to.partial.clear();
  std::set<size_t> stay;
  const std::vector<layout::Dim> &dims = views[now].dims;
  const bool isFree =
      llvm::all_of(said, [](Said its) { return its == Said::Nothing; });
  if (!isFree && (to.dims.size() != said.size() || dims.size() != said.size()))
    return found; // products of several dimensions
  std::vector<SubAxis> needed;
  for (size_t d = 0; !isFree && d < said.size(); ++d) {
    if (said[d] == Said::All)
      stay.insert(d);
    if (said[d] == Said::Nothing || to.dims[d] == dims[d] ||
        (said[d] == Said::Least &&
         layout::refines(to.dims[d].product, dims[d].product, maximum[d],
                         mesh)))
      continue;
    llvm::append_range(free, layout::axesOf(to.dims[d].product));
    llvm::append_range(needed, layout::axesOf(dims[d].product));
    to.dims[d] = dims[d];
  }
  free = layout::subtract(std::move(free), needed);
  const layout::PlanViews made(maximum, {extents.begin(), extents.end()}, mesh);
  to = made.canonical(std::move(to));
  std::optional<View> split = to;
  if (!free.empty()) {
    free = axisOrder.sorted(std::move(free));
    split = made.scattered(to, free, stay);
  }
  // Blocks of a dynamic size are cut anew.
  for (size_t d = 0; !split && d < to.dims.size(); ++d)
    if (layout::Product product = to.dims[d].product;
        !stay.contains(d) && !product.empty() &&
        product.back() == layout::Factor::rest()) {
      for (const SubAxis &axis : free)
        product.insert(product.end() - 1, layout::Factor::device(axis));
      split = to;
      split->dims[d].product = std::move(product);
      split = made.canonical(std::move(*split));
    }
  for (const std::optional<View> &each : {split, std::optional(to)})
    if (each && layout::verify(*each, maximum, mesh))
      if (int number = numberOf(*each); !llvm::is_contained(found, number))
        found.push_back(number);
  return found;
}

/// The bytes of the largest part of `value`.
double Ways::localBytes(Value value, int view) {
  uint64_t key = uint64_t(shapeOf(value)) << 21 | view;
  auto [bytes, isNew] = localParts.try_emplace(key);
  if (isNew) {
    bytes->second = double(ExtentAnalysis::getElementBytes(value));
    for (int64_t extent :
         layout::maxLocalShape(views[view], moves.getTypicalShape(value), mesh))
      bytes->second *= double(extent);
  }
  return bytes->second;
}

double Ways::totalBytes(Value value) {
  double bytes = double(ExtentAnalysis::getElementBytes(value));
  for (int64_t extent : moves.getTypicalShape(value))
    bytes *= double(extent);
  return bytes;
}

/// What a device lacks of its part at the least, on average. It has one of as
/// many parts as there are devices along the axes that split a dimension before
/// and not after. Of a sum over p devices p - 1 parts of p come from others.
/// Devices along a state's axes share what they lack.
static double lackOf(const View &from, const View &to) {
  const std::vector<SubAxis> kept = layout::partialAxes(to);
  const std::vector<SubAxis> combined = layout::partialAxes(from);
  int64_t parts = layout::sizeOf(layout::subtract(combined, kept));
  if (from.dims.size() == to.dims.size())
    for (auto [before, after] : llvm::zip_equal(from.dims, to.dims))
      parts *= layout::sizeOf(
          layout::subtract(layout::subtract(layout::axesOf(before.product),
                                            layout::axesOf(after.product)),
                           kept));
  return (1 - 1 / double(parts)) / double(layout::sizeOf(kept));
}

/// How often an element is received at least where sums become whole, over the
/// number of devices: p addends p - 1 times, and once more by each further
/// device that needs it.
static double receptionsOf(const View &from, const View &to,
                           const layout::Mesh &mesh) {
  const std::vector<SubAxis> combined = layout::partialAxes(from);
  if (combined.empty() || !to.partial.empty())
    return 0;
  const int64_t devices = mesh.numDevices();
  const int64_t holders = devices / layout::sizeOf(layout::splitAxes(to));
  return double(layout::sizeOf(combined) - 2 + holders) / double(devices);
}

/// Whether each device has what it needs, by one dimension after the other;
/// nothing where that does not tell.
std::optional<bool> Ways::isSlice(Value value, int from, int to) const {
  auto type = cast<RankedTensorType>(value.getType());
  const View &is = views[from], &needed = views[to];
  if (!type.hasStaticShape() || is.partial != needed.partial ||
      is.dims.size() != size_t(type.getRank()) ||
      needed.dims.size() != is.dims.size())
    return std::nullopt;
  for (auto [fine, coarse, extent] :
       llvm::zip_equal(needed.dims, is.dims, type.getShape()))
    if (!layout::refines(fine.product, coarse.product, extent, mesh))
      return false;
  return true;
}

double Ways::leastSeconds(Value value, int from, int to) {
  if (from == to)
    return 0;
  auto [time, isNew] = leastTimes.try_emplace(keyOf(value, from, to), 0);
  if (!isNew)
    return time->second;
  auto [lack, isNewPair] = lacksOfMoves.try_emplace({from, to});
  if (isNewPair)
    lack->second = lackOf(views[from], views[to]);
  const layout::Machine &machine = moves.getMachine();
  if (lack->second == 0) // in other order it may not have it
    return time->second =
               isSlice(value, from, to).value_or(true) ? 0 : machine.latency;
  const double bytes =
      std::max(localBytes(value, to) * lack->second,
               totalBytes(value) * receptionsOf(views[from], views[to], mesh));
  return time->second = machine.latency + bytes / machine.bandwidth;
}

//===----------------------------------------------------------------------===//
// Ways
//===----------------------------------------------------------------------===//

/// By place what it is divided by, outermost first.
using Deal = std::vector<layout::Product>;

/// Calls `visit` for each way to deal `digits` to places, in every order, or
/// not to deal them. Each may leave a gap before others in one of the first
/// `loops` places: what is gathered along `x` of `did(x) * did(y) * _` is
/// `2 * did(y) * _`.
static void forEachDeal(ArrayRef<SubAxis> digits, size_t loops, Deal &deal,
                        llvm::function_ref<void()> visit) {
  if (digits.empty()) {
    auto endsInGap = [](const layout::Product &product) {
      return !product.empty() &&
             product.back().kind == layout::Factor::Kind::Stored;
    };
    if (llvm::none_of(deal, endsInGap))
      visit();
    return;
  }
  auto with = [](layout::Product &product, const layout::Factor &factor,
                 llvm::function_ref<void()> go) {
    for (size_t at = product.size() + 1; at-- > 0;) { // as they are first
      product.insert(product.begin() + at, factor);
      go();
      product.erase(product.begin() + at);
    }
  };
  auto rest = [&] { forEachDeal(digits.drop_front(), loops, deal, visit); };
  auto withGaps = [&](size_t other) {
    rest();
    for (size_t place = 0; place < loops; ++place)
      if (place != other)
        with(deal[place], layout::Factor::stored(digits[0].size), rest);
  };
  withGaps(deal.size());
  for (size_t place = 0; place < deal.size(); ++place)
    with(deal[place], layout::Factor::device(digits[0]),
         [&] { withGaps(place); });
}

/// Whether some gap is left, which nothing but time decides for.
static bool hasGap(const Deal &deal) {
  return llvm::any_of(deal, [](const layout::Product &product) {
    return llvm::any_of(product, [](const layout::Factor &factor) {
      return factor.kind == layout::Factor::Kind::Stored;
    });
  });
}

static layout::Product withRest(layout::Product product) {
  product.push_back(layout::Factor::rest());
  return product;
}

void Ways::add(Operation *op, const Placement &placement,
               std::vector<Way> &ways) {
  Way way;
  auto isLegal = [&](Value value, const View &view) {
    return bool(layout::verify(view, moves.getMaxShape(value), mesh));
  };
  for (auto [value, view] :
       llvm::zip_equal(op->getOperands(), placement.operands)) {
    if (!isLegal(value, view))
      return;
    way.operands.push_back(numberOf(view));
  }
  if (!isLegal(op->getResult(0), placement.results[0]))
    return;
  way.result = numberOf(placement.results[0]);
  way.work = work(op, placement);
  for (Way &other : ways)
    if (other == way) {
      other.work = std::min(other.work, way.work);
      return;
    }
  ways.push_back(std::move(way));
}

/// Which operands of `op` may be partial along an axis.
SmallVector<Delay> Ways::delaysOf(ShardingRuleOpInterface op) {
  SmallVector<Delay> delays;
  const size_t count = op->getNumOperands(), bits = std::min<size_t>(count, 6);
  for (layout::Combiner combiner : kCombiners)
    for (size_t mask = 1; mask < size_t(1) << bits; ++mask) {
      Delay delay;
      for (size_t i = 0; i < count; ++i)
        delay.operands.push_back(mask >> std::min<size_t>(i, 5) & 1
                                     ? std::optional(combiner)
                                     : std::nullopt);
      std::string why;
      if (succeeded(op.transferPartial(delay.operands, delay.results, why)))
        delays.push_back(std::move(delay));
    }
  return delays;
}

void Ways::find(ReinterpretOpInterface op, std::vector<Way> &ways) {
  std::vector<Way> withGaps;
  Value result = op->getResult(0);
  for (Value value : {op->getOperand(0), result}) {
    auto type = cast<RankedTensorType>(value.getType());
    const size_t rank = type.getRank();
    ArrayRef<SubAxis> digits = digitsFor(rank + kCombiners.size());
    if (digits.empty())
      return ways.clear();
    Deal deal(rank + kCombiners.size());
    forEachDeal(digits, loopsWithGaps(digits, rank), deal, [&] {
      if (isSpent())
        return;
      spend(kDeal);
      View view;
      for (size_t d = 0; d < rank; ++d)
        view.dims.push_back({withRest(deal[d]), 1});
      for (auto [i, combiner] : llvm::enumerate(kCombiners))
        if (!deal[rank + i].empty())
          view.partial.push_back({layout::axesOf(deal[rank + i]), combiner});
      view = layout::canonicalize(view, layout::Shape(type.getShape()), mesh);
      if (value == result) {
        Result<View> operand = op.getOperandView(view, mesh);
        if (!operand)
          return;
        view = placesOf(*operand);
      }
      if (auto to = reinterpret(op, view, mesh))
        add(op, {{view}, {*to}}, hasGap(deal) ? withGaps : ways);
    });
  }
  llvm::append_range(ways, withGaps);
}

void Ways::find(ShardingRuleOpInterface op, ArrayRef<Delay> delays,
                std::vector<Way> &ways) {
  std::vector<Way> withGaps;
  PlacedOp placed(op, *getActualPlacement(op));
  const layout::Rule &rule = placed.getRule();
  SmallVector<size_t> factors;
  for (auto [f, factor] : llvm::enumerate(rule.factors))
    if (factor.kind != layout::IterationFactor::Kind::Shifted &&
        factor.kind != layout::IterationFactor::Kind::Sequential)
      factors.push_back(f);
  ArrayRef<SubAxis> digits = digitsFor(factors.size() + delays.size());
  if (digits.empty())
    return;
  Deal deal(factors.size() + delays.size());
  forEachDeal(digits, loopsWithGaps(digits, factors.size()), deal, [&] {
    if (isSpent())
      return;
    spend(kDeal);
    Division division;
    division.products.assign(rule.factors.size(), {layout::Factor::rest()});
    for (auto [i, f] : llvm::enumerate(factors))
      division.products[f] = withRest(deal[i]);
    for (auto [i, delay] : llvm::enumerate(delays))
      for (const SubAxis &axis : layout::axesOf(deal[factors.size() + i])) {
        division.delays.push_back(delay);
        division.delays.back().axis = axis;
      }
    if (Result<Placement> placement = placed.place(division))
      add(op, *placement, hasGap(deal) ? withGaps : ways);
  });
  llvm::append_range(ways, withGaps);
  auto windows = dyn_cast<WindowOpInterface>(op.getOperation());
  if (!isThorough || !windows)
    return;
  // Through the boxes.
  auto type = cast<RankedTensorType>(windows.getWhole().getType());
  if (!type.hasStaticShape())
    return;
  const size_t rank = type.getRank();
  digits = digitsFor(rank);
  Deal whole(rank);
  forEachDeal(digits, 0, whole, [&] {
    if (isSpent())
      return;
    spend(kDeal);
    View view;
    for (const layout::Product &product : whole)
      view.dims.push_back({withRest(product), 1});
    Division division;
    division.dims =
        layout::canonicalize(view, layout::Shape(type.getShape()), mesh).dims;
    if (Result<Placement> placement = placed.place(division))
      add(op, *placement, ways);
  });
}

const std::vector<Way> &Ways::of(Operation *op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  auto reinterpretation = dyn_cast<ReinterpretOpInterface>(op);
  SmallVector<Delay> delays;
  // What a region does is not among the attributes.
  if (op->getNumRegions())
    delays = delaysOf(ruled);
  std::vector<int64_t> key = {
      reinterpret_cast<int64_t>(op->getName().getAsOpaquePointer()),
      reinterpret_cast<int64_t>(withoutNotes(op).getAsOpaquePointer())};
  for (const Delay &delay : delays)
    for (std::optional<layout::Combiner> state : delay.operands)
      key.push_back(state ? int64_t(*state) : -1);
  auto addValue = [&](Value value) {
    Type type = cast<RankedTensorType>(value.getType()).dropEncoding();
    key.push_back(reinterpret_cast<int64_t>(type.getAsOpaquePointer()));
    llvm::append_range(key, moves.getTypicalShape(value));
    llvm::append_range(key, smallShapeOf(value));
  };
  llvm::for_each(op->getOperands(), addValue);
  addValue(op->getResult(0));
  auto [ways, isNew] = known.try_emplace(std::move(key));
  if (isNew && reinterpretation)
    find(reinterpretation, ways->second);
  else if (isNew)
    find(ruled, op->getNumRegions() ? delays : delaysOf(ruled), ways->second);
  return ways->second;
}
