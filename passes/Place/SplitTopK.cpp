//===- SplitTopK.cpp - the largest elements of a split dimension ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The k largest elements are among the k largest of each run. All devices get
// those, with their indices, and choose again. Of equal candidates the first
// one has the least index, as runs and what is taken of one are in that order;
// what fills up the last run comes behind all elements.
//
//===----------------------------------------------------------------------===//

#include "Layout/PlanViews.h"
#include "Place/Moves.h"
#include "Place/Passes.h"
#include "Place/Placement.h"
#include "Place/Runs.h"
#include "TensorView/CoreBuilder.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_SPLITTOPKPASS
#include "Place/Passes.h.inc"
} // namespace tessera::tv

static int64_t bytesOf(Value value) {
  return ExtentAnalysis::getElementBytes(value);
}

namespace {
enum class Way {
  Rounds,     ///< combine one maximum after the other, and its index
  Candidates, ///< all devices get so many of each run
  Whole       ///< all devices get all elements
};
} // namespace

/// What each takes, with `kept` candidates of each run.
static std::array<layout::Price, 3> price(TopKOp op, int64_t run, int64_t kept,
                                          Moves &moves) {
  Value x = op.getInput();
  const int64_t dim = op.getDim();
  layout::Plans plans(tv::getView(x).getLayoutMesh(), moves.getMachine());
  const layout::Price never(std::numeric_limits<double>::infinity());
  auto move = [&](const layout::Shape &shape, int64_t bytes,
                  const layout::View &from, const layout::View &to) {
    auto plan = plans.get(shape, bytes, from, to);
    return plan ? layout::Price((*plan)->chosen.cost) : never;
  };
  layout::Shape shape = moves.getTypicalShape(x);
  layout::View split = placesOf(x), whole = split;
  whole.dims[dim] = layout::View::replicated(1).dims[0];
  const layout::Price all = move(shape, bytesOf(x), split, whole);

  // Each run is an element, of all that is kept of it.
  const bool hasFewer =
      llvm::divideCeilSigned(shape[dim], run) * kept < shape[dim];
  shape[dim] = llvm::divideCeil(shape[dim], run);
  layout::Product &product = split.dims[dim].product;
  while (product.back().kind == layout::Factor::Kind::Stored)
    product.pop_back();
  const layout::Price candidates =
      move(shape, kept * (bytesOf(x) + bytesOf(op.getIndices())), split, whole);

  layout::View partial = whole;
  partial.partial.push_back({layout::axesOf(product), layout::Combiner::Max});
  shape[dim] = 1;
  layout::Price rounds;
  for (Value result : op.getResults()) {
    const int64_t times = getGlobalShape(result.getType())[dim];
    const layout::Price one = move(shape, bytesOf(result), partial, whole);
    rounds += {double(times) * one.seconds, times * one.bytes};
  }
  return {rounds, hasFewer ? candidates : never, all};
}

/// The way that takes least time; the first of equal ones, all elements before
/// candidates.
static Way choose(ArrayRef<layout::Price> prices) {
  Way best = Way::Rounds;
  for (Way way : {Way::Whole, Way::Candidates})
    if (layout::isLess(prices[size_t(way)].seconds,
                       prices[size_t(best)].seconds))
      best = way;
  return best;
}

/// Says why, beside the best of the others.
static void report(TopKOp op, ArrayRef<layout::Price> prices, Way chosen) {
  const char *const does[] = {"combines one maximum after the other",
                              "sends candidates of each run to all devices",
                              "sends all elements to all devices"};
  const layout::Price *other = nullptr;
  for (auto [way, price] : llvm::enumerate(prices))
    if (way != size_t(chosen) && (!other || price.seconds < other->seconds))
      other = &price;
  mlir::emitRemark(op.getLoc())
      << does[size_t(chosen)]
      << layout::describe(prices[size_t(chosen)], *other);
}

/// Values in between have no view yet, but the candidates: all devices have
/// all.
static SmallVector<Value> split(TopKOp op, int64_t run, int64_t kept) {
  OpBuilder at(op);
  ImplicitLocOpBuilder b(op.getLoc(), at);
  Core core(b, op);
  Value x = op.getInput();
  auto type = cast<RankedTensorType>(x.getType());
  const int64_t dim = op.getDim(), rank = type.getRank();
  const int64_t runs = llvm::divideCeil(type.getDimSize(dim), run);
  const int64_t candidates = runs * kept;
  Type element = type.getElementType();
  Type number = Core::elementOf(op.getIndices());

  auto lowest =
      b.getFloatAttr(element, -std::numeric_limits<double>::infinity());
  Value parts = splitIntoRuns(b, x, dim, run, lowest);
  auto best =
      TopKOp::create(b,
                     TypeRange{replaceExtent(type, dim, {runs, kept}, element),
                               replaceExtent(type, dim, {runs, kept}, number)},
                     parts, dim + 1);
  Value place = core.iota(dim, best.getIndices(), number);
  Value indices = core.map(
      {best.getIndices(), place}, best.getIndices().getType(),
      [&](ImplicitLocOpBuilder &b, ArrayRef<Value> in) {
        Value size =
            arith::ConstantOp::create(b, b.getIntegerAttr(number, run));
        Value before = arith::MulIOp::create(b, in[1], size);
        return SmallVector<Value>{arith::AddIOp::create(b, in[0], before)};
      });
  auto all = [&](Value value) -> Value {
    Type whole = makeWhole(x, dim, candidates, Core::elementOf(value));
    return ReshapeOp::create(b, whole, value);
  };
  Value values = all(best.getValues());
  indices = all(indices);

  // The index of each is that of the candidate at its place.
  const int64_t k = getGlobalShape(op.getType(0))[dim];
  auto chosen = TopKOp::create(
      b, TypeRange{op.getValues().getType(), makeWhole(x, dim, k, number)},
      values, dim);
  SmallVector<int64_t> ofChosen, ofAll;
  for (int64_t d = 0; d < rank; ++d) {
    ofChosen.push_back(d + (d > dim));
    ofAll.push_back(d + (d >= dim));
  }
  RankedTensorType pairs = replaceExtent(type, dim, {k, candidates}, number);
  auto inPairs = [&](Value value, ArrayRef<int64_t> dims) -> Value {
    return BroadcastOp::create(b, pairs, value, dims, Value());
  };
  Value wanted = inPairs(chosen.getIndices(), ofChosen);
  Value known = inPairs(indices, ofAll);
  Value taken = core.map(
      {wanted, core.iota(dim + 1, known, number), known}, pairs,
      [&](ImplicitLocOpBuilder &b, ArrayRef<Value> in) {
        Value isIt =
            arith::CmpIOp::create(b, arith::CmpIPredicate::eq, in[0], in[1]);
        Value none = arith::ConstantOp::create(b, b.getIntegerAttr(number, 0));
        return SmallVector<Value>{
            arith::SelectOp::create(b, isIt, in[2], none)};
      });
  Value result = ReduceOp::create(b, op.getIndices().getType(), Combiner::Sum,
                                  taken, ArrayRef<int64_t>{dim + 1});
  return {chosen.getValues(), result};
}

namespace {
struct SplitTopK : tv::impl::SplitTopKPassBase<SplitTopK> {
  using SplitTopKPassBase::SplitTopKPassBase;

  void runOnOperation() override {
    std::optional<Moves> moves;
    WalkResult walk = getOperation().walk([&](TopKOp op) {
      Value x = op.getInput();
      const int64_t dim = op.getDim();
      std::optional<int64_t> run = getRun(x, dim);
      if (!run || op->hasAttr(kLocalOpAttr))
        return WalkResult::advance();
      if (!moves) {
        FailureOr<Moves> made = Moves::get(getOperation());
        if (failed(made))
          return WalkResult::interrupt();
        moves = std::move(*made);
      }
      const int64_t kept =
          std::min(*run, getGlobalShape(op.getValues().getType())[dim]);
      const auto prices = price(op, *run, kept, *moves);
      const Way way = choose(prices);
      if (explain)
        report(op, prices, way);
      if (way == Way::Rounds)
        return WalkResult::advance();
      tv::nameLocation(op);
      if (way == Way::Whole) {
        OpBuilder builder(op);
        Type whole = makeWhole(
            x, dim, cast<RankedTensorType>(x.getType()).getDimSize(dim),
            Core::elementOf(x));
        auto gather = ReshardOp::create(builder, op.getLoc(), TypeRange{whole},
                                        ValueRange{x}, StepAttr());
        op.getInputMutable().assign(gather.getResult(0));
        return WalkResult::advance();
      }
      op->replaceAllUsesWith(::split(op, *run, kept));
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
