//===- SplitKeys.cpp - attention over keys that devices share -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each run of keys is a head of its own, which devices share: its queries are
// those of the head. What runs give is joined by their log-sum-exps, the
// weights of their results (FlashDecoding's split of keys).
//
//===----------------------------------------------------------------------===//

#include "Layout/PlanViews.h"
#include "Place/Moves.h"
#include "Place/Passes.h"
#include "Place/Placement.h"
#include "Place/Runs.h"
#include "TensorView/CoreBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_SPLITKEYSPASS
#include "Place/Passes.h.inc"
} // namespace tessera::tv

namespace {
/// [batches, groups, runs, heads of a group, queries] of the attention of runs;
/// batches and queries may be dynamic.
struct Runs {
  int64_t batches, groups, runs, heads, queries;
  int64_t keys, run; ///< all of a head, of a run
  int64_t allHeads() const { return groups * heads; }
};
} // namespace

/// The runs of an attention whose keys devices share that have its queries.
static std::optional<Runs> getRuns(AttentionOp op) {
  Value query = op.getQuery(), key = op.getKey(), value = op.getValue();
  // What lies in blocks, sequences or pages is whole; dropout counts the
  // weights of a head.
  if (op.getStructure() || op.getDropout() || op->hasAttr(kLocalOpAttr))
    return std::nullopt;
  for (Value tensor : {query, key, value})
    if (auto type = cast<RankedTensorType>(tensor.getType());
        type.isDynamicDim(1) || type.isDynamicDim(3) ||
        !placesOf(tensor).partial.empty())
      return std::nullopt;
  const std::optional<int64_t> run = getRun(key, 2);
  if (!run || placesOf(key).dims[2] != placesOf(value).dims[2])
    return std::nullopt;
  const std::vector<layout::SubAxis> shared =
      layout::axesOf(placesOf(key).dims[2].product);
  for (Value tensor : {query, Value(op.getResult()), Value(op.getLse())})
    if (layout::subtract(shared, layout::axesOf(placesOf(tensor))) != shared)
      return std::nullopt;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(query.getType()).getShape();
  ArrayRef<int64_t> keys = cast<RankedTensorType>(key.getType()).getShape();
  if (llvm::is_contained(shape, 0) || llvm::is_contained(keys, 0) ||
      (op.getCausal() && ShapedType::isDynamic(shape[2])))
    return std::nullopt;
  const int64_t runs = llvm::divideCeil(keys[2], *run);
  // Which variants there are depends on a mask, and the program names them.
  if (op->hasAttr(kVariantsAttr) && op.getMaskMod().empty() &&
      ((op.getCausal() && shape[2] != 1) || runs * *run != keys[2]))
    return std::nullopt;
  return Runs{shape[0], keys[1], runs, shape[1] / keys[1],
              shape[2], keys[2], *run};
}

/// That of `like`, [batches, heads, queries], with runs behind the heads, all
/// of which each device has.
static RankedTensorType getAllRuns(Value like, const Runs &of) {
  ViewAttr attr = tv::getView(like);
  layout::View view = placesOf(like);
  view.dims.insert(view.dims.begin() + 2, layout::View::replicated(1).dims[0]);
  const SmallVector<int64_t> shape = {of.batches, of.allHeads(), of.runs,
                                      of.queries};
  auto type = RankedTensorType::get(shape, Core::elementOf(like));
  return withEncoding(type, attr.with(layout::canonicalize(
                                view, layout::Shape(shape.begin(), shape.end()),
                                attr.getLayoutMesh())));
}

/// What it takes to join what runs give, and to gather the keys instead, with
/// what the devices compute and read.
static std::pair<layout::Price, layout::Price>
price(AttentionOp op, const Runs &of, Moves &moves) {
  const layout::Machine &machine = moves.getMachine();
  const layout::Mesh &mesh = tv::getView(op.getKey()).getLayoutMesh();
  layout::Plans plans(mesh, machine);
  auto move = [&](Value value, const layout::Shape &shape,
                  const layout::View &from, const layout::View &to) {
    auto plan =
        plans.get(shape, ExtentAnalysis::getElementBytes(value), from, to);
    return plan ? layout::Price((*plan)->chosen.cost)
                : layout::Price(std::numeric_limits<double>::infinity());
  };
  layout::Price gather;
  double bytes = 0;
  bool areSmall = true;
  for (Value value : {op.getKey(), op.getValue()}) {
    layout::Shape shape = moves.getTypicalShape(value);
    layout::View split = placesOf(value), whole = split;
    whole.dims[2] = layout::View::replicated(1).dims[0];
    gather += move(value, shape, split, whole);
    const int64_t all = computeProduct(maxLocalShape(whole, shape, mesh)) *
                        ExtentAnalysis::getElementBytes(value);
    areSmall &= machine.isSmall(all);
    bytes += double(all);
  }
  if (areSmall) // they go together
    gather.seconds -= machine.latency;

  RankedTensorType all = getAllRuns(op.getLse(), of);
  layout::View whole = tv::getView(all).getView(), split = whole;
  split.dims[2] = placesOf(op.getKey()).dims[2];
  layout::Product &product = split.dims[2].product;
  while (product.back().kind == layout::Factor::Kind::Stored)
    product.pop_back();
  layout::Shape lses = moves.getTypicalShape(op.getLse());
  lses.insert(lses.begin() + 2, of.runs);
  layout::Price join = move(op.getLse(), lses, split, whole);
  const std::vector<layout::SubAxis> shared = layout::axesOf(product);
  layout::View result = placesOf(op.getResult()), partial = result;
  partial.partial.push_back({shared, layout::Combiner::Sum});
  // Sums are as wide as log-sum-exps.
  join +=
      move(op.getLse(), moves.getTypicalShape(op.getResult()), partial, result);

  // Each computes and reads a part instead of all.
  const layout::Shape own = maxLocalShape(
      placesOf(op.getLse()), moves.getTypicalShape(op.getLse()), mesh);
  const int64_t columns = getGlobalShape(op.getKey().getType())[3] +
                          getGlobalShape(op.getValue().getType())[3];
  const double attend = std::max(double(computeProduct(own)) *
                                     double(of.keys * columns) / machine.loops,
                                 bytes / (2 * machine.copy));
  double parts = 1;
  for (const layout::SubAxis &axis : shared)
    parts *= axis.size;
  join.seconds += attend / parts;
  gather.seconds += attend;
  return {join, gather};
}

/// Has `to` compute what `from` does of the heads and keys that those of runs
/// stand for. `more` may change what it yields.
static void
mapRegion(Region &from, Region &to, TypeRange arguments, Location loc,
          const Runs &of,
          llvm::function_ref<Value(OpBuilder &, ValueRange, Value)> more) {
  OpBuilder b(loc.getContext());
  Block &block = to.emplaceBlock();
  for (Type type : arguments)
    block.addArgument(type, loc);
  b.setInsertionPointToEnd(&block);
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIndexAttr(value));
  };
  // Heads are (group, run, head of the group).
  SmallVector<Value> values(block.getArguments());
  Value &head = values[values.size() - 3], &key = values.back();
  Value pair = arith::DivUIOp::create(b, loc, head, number(of.heads));
  Value run = arith::RemUIOp::create(b, loc, pair, number(of.runs));
  Value group = arith::DivUIOp::create(b, loc, pair, number(of.runs));
  Value inGroup = arith::RemUIOp::create(b, loc, head, number(of.heads));
  head = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, group, number(of.heads)), inGroup);
  key = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, run, number(of.run)), key);
  Value yielded;
  if (!from.empty()) {
    IRMapping mapping;
    mapping.map(from.getArguments(), values);
    for (Operation &op : from.front().without_terminator())
      b.clone(op, mapping);
    yielded =
        mapping.lookupOrDefault(from.front().getTerminator()->getOperand(0));
  }
  if (more)
    yielded = more(b, values, yielded);
  YieldOp::create(b, loc, yielded);
}

/// The attention of runs: [batches, groups x runs x heads, queries].
static AttentionOp attendRuns(ImplicitLocOpBuilder &b, AttentionOp op,
                              const Runs &of) {
  auto typed = [](Value like, ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, Core::elementOf(like));
  };
  auto columnsOf = [](Value tensor) {
    return cast<RankedTensorType>(tensor.getType()).getShape().back();
  };
  auto split = [&](Value keys) -> Value {
    auto fill = cast<TypedAttr>(b.getZeroAttr(Core::elementOf(keys)));
    Value runs = splitIntoRuns(b, keys, 2, of.run, fill);
    return ReshapeOp::create(
        b,
        typed(keys, {of.batches, of.groups * of.runs, of.run, columnsOf(keys)}),
        runs);
  };
  Value query = op.getQuery();
  const int64_t columns = columnsOf(query);
  query = ReshapeOp::create(
      b, typed(query, {of.batches, of.groups, of.heads, of.queries, columns}),
      query);
  query = BroadcastOp::create(b,
                              typed(query, {of.batches, of.groups, of.runs,
                                            of.heads, of.queries, columns}),
                              query, ArrayRef<int64_t>{0, 1, 3, 4, 5}, Value());
  const int64_t heads = of.allHeads() * of.runs;
  query = ReshapeOp::create(
      b, typed(query, {of.batches, heads, of.queries, columns}), query);

  Value key = split(op.getKey()), value = split(op.getValue());
  auto runs = AttentionOp::create(
      b,
      TypeRange{typed(op.getResult(),
                      {of.batches, heads, of.queries, columnsOf(value)}),
                typed(op.getLse(), {of.batches, heads, of.queries})},
      query, key, value, Value(), Value(), Value(), Value(), Value(), Value(),
      op.getScaleAttr(), UnitAttr(), FloatAttr(), IntegerAttr(), IntegerAttr(),
      DenseI64ArrayAttr());
  runs->setDiscardableAttrs(op->getDiscardableAttrDictionary());

  const Type index = b.getIndexType();
  SmallVector<Type> places(4, index), scores = {Core::elementOf(op.getLse())};
  scores.append(places);
  if (!op.getScoreMod().empty())
    mapRegion(op.getScoreMod(), runs.getScoreMod(), scores, op.getLoc(), of,
              nullptr);
  const bool isFilled = of.runs * of.run != of.keys;
  const bool isCausal = op.getCausal() && of.queries > 1; // the last sees all
  if (op.getMaskMod().empty() && !isCausal && !isFilled)
    return runs;
  mapRegion(
      op.getMaskMod(), runs.getMaskMod(), places, op.getLoc(), of,
      [&](OpBuilder &b, ValueRange at, Value kept) {
        auto both = [&](arith::CmpIPredicate predicate, Value x, Value y) {
          Value keeps = arith::CmpIOp::create(b, op.getLoc(), predicate, x, y);
          kept =
              kept ? arith::AndIOp::create(b, op.getLoc(), kept, keeps) : keeps;
        };
        auto number = [&](int64_t value) -> Value {
          return arith::ConstantOp::create(b, op.getLoc(),
                                           b.getIndexAttr(value));
        };
        if (isCausal)
          both(arith::CmpIPredicate::sle, at[3],
               arith::AddIOp::create(b, op.getLoc(), at[2],
                                     number(of.keys - of.queries)));
        if (isFilled)
          both(arith::CmpIPredicate::ult, at[3], number(of.keys));
        return kept;
      });
  return runs;
}

/// Values in between have no view yet, but the log-sum-exps of runs: all
/// devices have all.
static SmallVector<Value> split(AttentionOp op, const Runs &of) {
  OpBuilder at(op);
  ImplicitLocOpBuilder b(op.getLoc(), at);
  Core core(b, op);
  AttentionOp runs = attendRuns(b, op, of);
  Type wide = Core::elementOf(op.getLse());
  auto reshape = [&](Value value, ArrayRef<int64_t> shape) -> Value {
    return ReshapeOp::create(
        b, RankedTensorType::get(shape, Core::elementOf(value)), value);
  };
  auto none = [&](ImplicitLocOpBuilder &b, Value lse) -> Value {
    Value lowest =
        Core::constant(b, wide, -std::numeric_limits<double>::infinity());
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, lse, lowest);
  };
  /// exp(x - of), and 0 where x is that of no key.
  auto weigh = [&](ImplicitLocOpBuilder &b, ArrayRef<Value> in) {
    Value weight =
        math::ExpOp::create(b, arith::SubFOp::create(b, in[0], in[1]));
    return SmallVector<Value>{arith::SelectOp::create(
        b, none(b, in[0]), Core::constant(b, wide, 0), weight)};
  };

  Value own = reshape(runs.getLse(),
                      {of.batches, of.groups, of.runs, of.heads, of.queries});
  Value all = TransposeOp::create(
      b,
      RankedTensorType::get(
          {of.batches, of.groups, of.heads, of.runs, of.queries}, wide),
      own, ArrayRef<int64_t>{0, 1, 3, 2, 4});
  all = ReshapeOp::create(b, getAllRuns(op.getLse(), of), all);
  Value most = core.reduce(Combiner::Max, all, 2);
  Value weights =
      core.map({all, core.broadcastBack(most, 2, all)}, core.like(all), weigh);
  Value sum = core.reduce(Combiner::Sum, weights, 2);
  Value lse = core.map({most, sum}, op.getLse().getType(),
                       [&](ImplicitLocOpBuilder &b, ArrayRef<Value> in) {
                         Value log = arith::AddFOp::create(
                             b, in[0], math::LogOp::create(b, in[1]));
                         return SmallVector<Value>{arith::SelectOp::create(
                             b, none(b, in[0]), in[0], log)};
                       });

  Value perHead = reshape(lse, {of.batches, of.groups, of.heads, of.queries});
  Value weight = core.map({own, core.broadcast(perHead, {0, 1, 3, 4}, own)},
                          core.like(own), weigh);
  const int64_t columns =
      cast<RankedTensorType>(op.getResult().getType()).getShape().back();
  Value parts = reshape(runs.getResult(), {of.batches, of.groups, of.runs,
                                           of.heads, of.queries, columns});
  parts = core.map(
      {parts, core.broadcast(weight, {0, 1, 2, 3, 4}, parts)},
      core.like(parts, wide), [&](ImplicitLocOpBuilder &b, ArrayRef<Value> in) {
        return SmallVector<Value>{arith::MulFOp::create(b, in[0], in[1])};
      });
  Value result = core.reduce(Combiner::Sum, parts, 2);
  if (Type element = Core::elementOf(op.getResult()); element != wide)
    result = CastOp::create(b, core.like(result, element), result);
  result = ReshapeOp::create(b, op.getResult().getType(), result);
  return {result, lse};
}

namespace {
struct SplitKeys : tv::impl::SplitKeysPassBase<SplitKeys> {
  using SplitKeysPassBase::SplitKeysPassBase;

  void runOnOperation() override {
    std::optional<Moves> moves;
    WalkResult walk = getOperation().walk([&](AttentionOp op) {
      std::optional<Runs> of = getRuns(op);
      if (!of)
        return WalkResult::advance();
      if (!moves) {
        FailureOr<Moves> made = Moves::get(getOperation());
        if (failed(made))
          return WalkResult::interrupt();
        moves = std::move(*made);
      }
      const auto [join, gather] = price(op, *of, *moves);
      const bool joins = layout::isLess(join.seconds, gather.seconds);
      if (explain)
        mlir::emitRemark(op.getLoc())
            << (joins ? "each device attends to its own keys, and what these "
                        "give is joined"
                      : "devices gather the keys that they share")
            << layout::describe(joins ? join : gather, joins ? gather : join);
      if (!joins)
        return WalkResult::advance();
      tv::nameLocation(op);
      op->replaceAllUsesWith(::split(op, *of));
      op->erase();
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    if (!moves)
      markAllAnalysesPreserved(); // and nothing is verified again
  }
};
} // namespace
