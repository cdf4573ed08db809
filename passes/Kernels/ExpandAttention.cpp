//===- ExpandAttention.cpp - attention as core ops ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One map over all scores does what is done to each: scale, score_mod, masks;
// for the gradient also the weight, made anew from the log-sum-exp, and the
// score's own gradient. All else is products and sums.
//
//===----------------------------------------------------------------------===//

#include "Kernels/ExpandAttention.h"
#include "Kernels/CapturedGrad.h"
#include "Kernels/KernelEmitter.h"
#include "TensorView/TensorViewPointwise.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;
using tv::Floats;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Emits a scalar region's ops; gives what it yields. What it accumulates is
/// appended to `adjoints`, in order.
static Value inlineRegion(OpBuilder &b, Region &region, ValueRange arguments,
                          SmallVectorImpl<Value> *adjoints = nullptr) {
  IRMapping mapping;
  mapping.map(region.getArguments(), arguments);
  for (Operation &op : region.front().without_terminator()) {
    // Of a score_grad: what it adds is the caller's.
    if (auto accumulate = dyn_cast<tv::AccumulateOp>(op))
      adjoints->push_back(mapping.lookup(accumulate.getAdjoint()));
    else
      b.clone(op, mapping);
  }
  return mapping.lookup(region.front().getTerminator()->getOperand(0));
}

//===----------------------------------------------------------------------===//
// Block masks
//===----------------------------------------------------------------------===//

/// Whether mask_mod and the block mask keep the pair `at`; null if there are
/// neither.
template <typename Op>
static Value inlineMask(Op op, OpBuilder &b, ValueRange at) {
  Location loc = op.getLoc();
  Value says;
  if (!op.getMaskMod().empty())
    says = inlineRegion(b, op.getMaskMod(), at);
  if (!op.getBlockMask())
    return says;
  auto mask = cast<TypedValue<RankedTensorType>>(op.getBlockMask());
  SmallVector<Value> block;
  for (auto [dim, extent] :
       llvm::enumerate(tv::getGlobalShape(mask.getType()))) {
    auto index = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, loc, b.getIndexAttr(value));
    };
    if (dim >= 2)
      block.push_back(arith::DivUIOp::create(
          b, loc, at[dim], index((*op.getBlocks())[dim - 2])));
    else
      block.push_back(extent == 1 ? index(0) : at[dim]);
  }
  Value kind = tv::LoadOp::create(b, loc, b.getI8Type(), mask, block);
  auto compare = [&](arith::CmpIPredicate predicate, int8_t with) -> Value {
    return arith::CmpIOp::create(
        b, loc, predicate, kind,
        arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(with)));
  };
  // As kernels do: what is neither 0 nor 2 asks.
  Value kept = compare(arith::CmpIPredicate::ne, 0);
  if (!says)
    return kept;
  return arith::AndIOp::create(
      b, loc, kept,
      arith::OrIOp::create(b, loc, compare(arith::CmpIPredicate::eq, 2), says));
}

/// Has mask_mod keep the pairs that `body` keeps.
template <typename Op>
static void setMask(Op op,
                    llvm::function_ref<Value(OpBuilder &, ValueRange)> body) {
  Region folded;
  Block &block = folded.emplaceBlock();
  OpBuilder b(op.getContext());
  b.setInsertionPointToEnd(&block);
  for (int64_t dim = 0; dim < 4; ++dim)
    block.addArgument(b.getIndexType(), op.getLoc());
  tv::YieldOp::create(b, op.getLoc(), body(b, block.getArguments()));
  op.getMaskMod().takeBody(folded);
}

template <typename Op> static void foldBlocks(Op op) {
  if (!op.getBlockMask())
    return;
  // One that is made of mask_mod says no more.
  auto made = op.getBlockMask().template getDefiningOp<tv::BlockMaskOp>();
  if (op.getMaskMod().empty() || !made)
    setMask(op,
            [&](OpBuilder &b, ValueRange at) { return inlineMask(op, b, at); });
  op.getBlockMaskMutable().clear();
  op.removeBlocksAttr();
}

void tessera::foldBlockMask(tv::AttentionOp op) { foldBlocks(op); }
void tessera::foldBlockMask(tv::AttentionGradOp op) { foldBlocks(op); }

/// Of a block of several, whether they all are `kind`.
static Value areAll(OpBuilder &b, Location loc, ArrayRef<Value> kinds,
                    int8_t kind) {
  Value all;
  for (Value each : kinds) {
    Value is = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::eq, each,
        arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(kind)));
    all = all ? arith::AndIOp::create(b, loc, all, is) : is;
  }
  return all;
}

/// A mask of the blocks that two of a side make where one is no multiple of
/// `tile`; 1 where they differ.
template <typename Op> static void coarsen(Op op, int64_t tile) {
  auto mask = cast<TypedValue<RankedTensorType>>(op.getBlockMask());
  const layout::Shape counts = tv::getGlobalShape(mask.getType());
  SmallVector<int64_t> sizes(*op.getBlocks()), parts = {1, 1};
  LocalShape shape = LocalShape(mask).take({0, 1});
  for (int64_t i : {0, 1}) {
    if (sizes[i] % tile)
      sizes[i] *= parts[i] = 2;
    shape.add(layout::Extent(llvm::divideCeil(counts[2 + i], parts[i])));
  }
  OpBuilder b(op);
  Location loc = op.getLoc();
  Build build{b, loc};
  SmallVector<Value> indices;
  for (int64_t dim = 0; dim < 4; ++dim)
    indices.push_back(build.iota(dim, shape, Value()));
  Value coarse = build.map(
      indices, shape, b.getI8Type(), [&](OpBuilder &b, ValueRange at) -> Value {
        auto index = [&](int64_t value) -> Value {
          return arith::ConstantOp::create(b, loc, b.getIndexAttr(value));
        };
        SmallVector<Value> place;
        for (Value each : at)
          place.push_back(
              arith::IndexCastOp::create(b, loc, b.getIndexType(), each));
        // Behind the last one is none: it stands for that.
        auto partOf = [&](int64_t i, int64_t part) -> Value {
          if (parts[i] == 1)
            return place[2 + i];
          Value own = arith::AddIOp::create(
              b, loc,
              arith::MulIOp::create(b, loc, place[2 + i], index(parts[i])),
              index(part));
          return arith::MinUIOp::create(b, loc, own, index(counts[2 + i] - 1));
        };
        SmallVector<Value> kinds;
        for (int64_t m = 0; m < parts[0]; ++m)
          for (int64_t n = 0; n < parts[1]; ++n)
            kinds.push_back(tv::LoadOp::create(
                b, loc, b.getI8Type(), mask,
                ValueRange{place[0], place[1], partOf(0, m), partOf(1, n)}));
        auto kind = [&](int8_t value) -> Value {
          return arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(value));
        };
        return arith::SelectOp::create(
            b, loc, areAll(b, loc, kinds, 0), kind(0),
            arith::SelectOp::create(b, loc, areAll(b, loc, kinds, 2), kind(2),
                                    kind(1)));
      });
  foldBlocks(op);
  op.getBlockMaskMutable().assign(coarse);
  op.setBlocks(sizes);
}

void tessera::coarsenBlockMask(tv::AttentionOp op, int64_t tile) {
  coarsen(op, tile);
}
void tessera::coarsenBlockMask(tv::AttentionGradOp op, int64_t tile) {
  coarsen(op, tile);
}

//===----------------------------------------------------------------------===//
// Parts of positions
//===----------------------------------------------------------------------===//

template <typename Op> static bool splits(Op op) {
  return llvm::any_of(ValueRange{op.getQuery(), op.getKey()}, [](Value tensor) {
    return !isWhole(getSpace(tensor.getType())[2]);
  });
}
bool tessera::splitsPositions(tv::AttentionOp op) { return splits(op); }
bool tessera::splitsPositions(tv::AttentionGradOp op) { return splits(op); }

//===----------------------------------------------------------------------===//
// Packed sequences
//===----------------------------------------------------------------------===//

/// Of each batch's positions, how many of `begins` there are before the first
/// that lies behind it: one more than the number of its sequence, [B, S]. More
/// than there are sequences if there is none.
static Value countSequences(Build &build, Value query, Value begins) {
  LocalShape positions = LocalShape(begins).take({0});
  positions.add(LocalShape(query).extents[2]);
  LocalShape pairs = positions;
  pairs.add(LocalShape(begins), 1);
  Value all = build.broadcast(begins, {0, 2}, pairs, Value());
  Value places = build.map(
      {all, build.iota(1, pairs, all), build.iota(2, pairs, all)}, pairs,
      build.b.getI64Type(), [&](OpBuilder &b, ValueRange args) -> Value {
        Location loc = build.loc;
        Value begin = arith::ExtSIOp::create(b, loc, b.getI64Type(), args[0]);
        Value isBehind = arith::CmpIOp::create(
            b, loc, arith::CmpIPredicate::sgt, begin, args[1]);
        return arith::SelectOp::create(
            b, loc, isBehind, args[2],
            arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(INT64_MAX)));
      });
  return build.reduce(tv::Combiner::Min, places, 2, positions);
}

/// The same where sequences have used lengths: those behind them are of none.
static Value countUsed(Build &build, Value counts, Value begins, Value used) {
  // Of each position's sequence the begin is the largest of those counted.
  LocalShape positions(counts), pairs = positions;
  pairs.add(LocalShape(begins), 1);
  Value all = build.broadcast(begins, {0, 2}, pairs, Value());
  Value own = build.broadcast(counts, {0, 1}, pairs, Value());
  Type i64 = build.b.getI64Type();
  Value starts =
      build.map({all, own, build.iota(2, pairs, all)}, pairs, i64,
                [&](OpBuilder &b, ValueRange args) -> Value {
                  Location loc = build.loc;
                  Value zero =
                      arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(0));
                  Value begin = arith::ExtSIOp::create(b, loc, i64, args[0]);
                  Value isCounted = arith::CmpIOp::create(
                      b, loc, arith::CmpIPredicate::slt, args[2], args[1]);
                  return arith::SelectOp::create(
                      b, loc, isCounted,
                      arith::MaxSIOp::create(b, loc, begin, zero), zero);
                });
  Value start = build.reduce(tv::Combiner::Max, starts, 2, positions);
  return build.map(
      {counts, start, build.iota(0, positions, counts),
       build.iota(1, positions, counts)},
      positions, i64, [&](OpBuilder &b, ValueRange args) -> Value {
        Location loc = build.loc;
        auto number = [&](int64_t value) -> Value {
          return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
        };
        auto toIndex = [&](Value value) -> Value {
          return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
        };
        // (Of no sequence, 0.)
        Value length = tv::LoadOp::create(
            b, loc, b.getI32Type(), cast<TypedValue<RankedTensorType>>(used),
            ValueRange{toIndex(args[2]), toIndex(arith::SubIOp::create(
                                             b, loc, args[0], number(1)))});
        Value isUsed = arith::CmpIOp::create(
            b, loc, arith::CmpIPredicate::slt,
            arith::SubIOp::create(b, loc, args[3], args[1]),
            arith::ExtSIOp::create(b, loc, i64, length));
        return arith::SelectOp::create(b, loc, isUsed, args[0],
                                       number(INT64_MAX));
      });
}

/// Zeros in the rows of no sequence: padding may be anything, and 0 times NaN
/// is NaN.
static Value clearOutside(Build &build, Value tensor,
                          TypedValue<RankedTensorType> counts) {
  LocalShape shape(tensor);
  Type element = getElement(tensor);
  return build.map(
      {tensor, build.iota(0, shape, tensor), build.iota(2, shape, tensor)},
      shape.summed(tensor), element,
      [&](OpBuilder &b, ValueRange args) -> Value {
        Location loc = build.loc;
        auto toIndex = [&](Value value) -> Value {
          return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
        };
        Value own =
            tv::LoadOp::create(b, loc, b.getI64Type(), counts,
                               ValueRange{toIndex(args[1]), toIndex(args[2])});
        Value isOutside = arith::CmpIOp::create(
            b, loc, arith::CmpIPredicate::eq, own,
            arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(INT64_MAX)));
        Floats f{b, loc, args[0].getType()};
        return f.select(isOutside, f.number(0), args[0]);
      });
}

template <typename Op> static void foldPacked(Op op) {
  if (!op.getSequences())
    return;
  Location loc = op.getLoc();
  OpBuilder before(op);
  Build build{before, loc};
  auto counts = cast<TypedValue<RankedTensorType>>(
      countSequences(build, op.getQuery(), op.getSequences()));
  if (op.getUsed()) {
    counts = cast<TypedValue<RankedTensorType>>(
        countUsed(build, counts, op.getSequences(), op.getUsed()));
    // All that has a row for each position; the log-sum-exp is -inf there.
    SmallVector<OpOperand *> ofRows = {
        &op.getQueryMutable(), &op.getKeyMutable(), &op.getValueMutable()};
    if constexpr (std::is_same_v<Op, tv::AttentionGradOp>) {
      ofRows.append({&op.getGradMutable(), &op.getOutputMutable()});
      for (OpOperand &lseGrad : op.getLseGradMutable())
        ofRows.push_back(&lseGrad);
    }
    for (OpOperand *operand : ofRows)
      operand->set(clearOutside(build, operand->get(), counts));
  }
  const int64_t last = tv::getGlobalShape(op.getSequences().getType())[1] - 1;
  setMask(op, [&](OpBuilder &b, ValueRange at) -> Value {
    Type i64 = b.getI64Type();
    auto load = [&](Value position) -> Value {
      return tv::LoadOp::create(b, loc, i64, counts,
                                ValueRange{at[0], position});
    };
    auto number = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
    };
    auto compare = [&](arith::CmpIPredicate predicate, Value x,
                       Value y) -> Value {
      return arith::CmpIOp::create(b, loc, predicate, x, y);
    };
    auto both = [&](Value x, Value y) -> Value {
      return arith::AndIOp::create(b, loc, x, y);
    };
    Value own = load(at[2]);
    // From 1 to that of the last sequence.
    Value kept = both(compare(arith::CmpIPredicate::ult,
                              arith::SubIOp::create(b, loc, own, number(1)),
                              number(last)),
                      compare(arith::CmpIPredicate::eq, own, load(at[3])));
    return op.getMaskMod().empty()
               ? kept
               : both(kept, inlineRegion(b, op.getMaskMod(), at));
  });
  op.getSequencesMutable().clear();
  op.getUsedMutable().clear();
}

void tessera::foldSequences(tv::AttentionOp op) { foldPacked(op); }
void tessera::foldSequences(tv::AttentionGradOp op) { foldPacked(op); }

//===----------------------------------------------------------------------===//
// Pages
//===----------------------------------------------------------------------===//

/// Of each batch, [B, G, M R, D], what lies in pages, [P, G, R, D], by a table
/// of them, [B, M].
static Value gatherPages(Build &build, Value pages, Value table) {
  LocalShape page(pages);
  Type element = getElement(pages);
  LocalShape all(table);
  for (int64_t dim : {1, 2, 3})
    all.add(page, dim);
  Value gathered =
      tv::GatherOp::create(build.b, build.loc, all.type(element), pages, table,
                           build.b.getI64IntegerAttr(0));
  LocalShape keys = all.take({0, 2});
  keys.add(layout::Extent(*all.extents[1].getStatic() *
                          *all.extents[3].getStatic()));
  keys.add(all, 4);
  return tv::ReshapeOp::create(build.b, build.loc, keys.type(element),
                               build.transpose(gathered, {0, 2, 1, 3, 4}));
}

void tessera::foldPages(tv::AttentionOp op) {
  if (!op.getPages())
    return;
  OpBuilder before(op);
  Build build{before, op.getLoc()};
  op.getKeyMutable().assign(gatherPages(build, op.getKey(), op.getPages()));
  op.getValueMutable().assign(gatherPages(build, op.getValue(), op.getPages()));
  op.getPagesMutable().clear();
}

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

/// The view of the query's heads that this device has, as pairs of a group and
/// a number in it: head h is in group h / (H / G). One flat dimension where it
/// does not split into the two.
static FailureOr<std::vector<layout::Dim>>
splitHeads(Operation *op, const LocalShape &query, const LocalShape &key) {
  int64_t heads = *query.extents[1].getStatic();
  int64_t groups = *key.extents[1].getStatic();
  layout::View ofHeads;
  ofHeads.dims = {query.dims[1]};
  // Which devices have the one group, no digit of its number says.
  const std::vector<layout::SubAxis> ofGroup =
      layout::axesOf(key.dims[1].product);
  auto isOfGroup = [&](const layout::SubAxis &axis) {
    return llvm::is_contained(ofGroup, axis);
  };
  if (groups == 1 && !ofGroup.empty()) {
    std::erase_if(ofHeads.dims[0].product, [&](const layout::Factor &factor) {
      const std::vector<layout::SubAxis> axes = layout::axesOf({factor});
      return !axes.empty() && llvm::all_of(axes, isOfGroup);
    });
    ofHeads = layout::canonicalize(ofHeads, {heads}, query.mesh.getMesh());
    if (llvm::any_of(layout::axesOf(ofHeads), isOfGroup))
      return op->emitOpError() << "on heads that lie across groups needs a "
                                  "reshard first";
    return std::vector<layout::Dim>{key.dims[1], ofHeads.dims[0]};
  }
  Result<layout::View> pairs = layout::reshapeView(
      ofHeads, {heads}, {groups, heads / groups}, query.mesh.getMesh());
  if (!pairs)
    return op->emitOpError() << pairs.message();
  return pairs->dims;
}

/// [B, G, H / G, T, D] of this device's heads, `last` giving the last two.
static FailureOr<LocalShape> groupedShape(Operation *op,
                                          const LocalShape &query,
                                          const LocalShape &key,
                                          const LocalShape &last) {
  FailureOr<std::vector<layout::Dim>> pairs = splitHeads(op, query, key);
  if (failed(pairs))
    return failure();
  LocalShape split = query.take({0});
  llvm::append_range(split.dims, *pairs);
  int64_t size = *query.extents[1].getStatic() / *key.extents[1].getStatic();
  split.extents.insert(split.extents.end(),
                       {key.extents[1], layout::Extent(size)});
  split.add(last, 2);
  split.add(last, 3);
  return split;
}

/// [B, H, T, D] of this device's heads, `last` giving the last two.
static LocalShape headShape(const LocalShape &query, const LocalShape &last) {
  LocalShape shape = query.take({0, 1});
  shape.add(last, 2);
  shape.add(last, 3);
  return shape;
}

/// The keys or values of each query head.
static FailureOr<Value> repeatGroups(Operation *op, Build &build,
                                     const LocalShape &query, Value tensor) {
  LocalShape from(tensor);
  if (*query.extents[1].getStatic() == *from.extents[1].getStatic())
    return tensor;
  FailureOr<LocalShape> split = groupedShape(op, query, from, from);
  if (failed(split))
    return failure();
  Value repeated = build.broadcast(tensor, {0, 1, 3, 4}, *split, Value());
  return Value(tv::ReshapeOp::create(
      build.b, build.loc, headShape(query, from).type(getElement(tensor)),
      repeated));
}

/// The sum over each group's heads of `tensor`, [B, H, T, D], for a `result`
/// that is [B, G, T, D].
static FailureOr<Value> sumGroups(Operation *op, Build &build,
                                  const LocalShape &query, Value tensor,
                                  Value result) {
  LocalShape to(result);
  if (*query.extents[1].getStatic() == *to.extents[1].getStatic())
    return tensor;
  FailureOr<LocalShape> split = groupedShape(op, query, to, to);
  if (failed(split))
    return failure();
  if (!split->isPlain())
    return op->emitOpError() << "on heads that lie across groups needs a "
                                "reshard first";
  Type element = getElement(tensor);
  Value grouped = tv::ReshapeOp::create(
      build.b, build.loc, split->summed(tensor).type(element), tensor);
  return build.reduce(tv::Combiner::Sum, grouped, 2,
                      to.summed(tensor, split->dims[2]));
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

namespace {
/// The scores of this device's queries and keys, [B, H, S, T].
struct Scores {
  LocalShape shape;
  Value products; ///< before the scale
  /// Of a map: the products, the index in each dimension, S and T.
  SmallVector<Value> inputs;
};

/// One score, in a map of `Scores::inputs` and others.
struct Score {
  Value scaled;          ///< before score_mod
  SmallVector<Value> at; ///< b, h, qi, ki
  Value modified;        ///< after score_mod
  Value isSeen;          ///< null if no mask hides any
};
} // namespace

/// `query` and `key` have all heads and are wide; `keys` is the op's.
static Scores makeScores(Build &build, Value query, Value key, Value keys) {
  LocalShape queryShape(query), keyShape(keys);
  Scores scores;
  scores.shape = queryShape.take({0, 1, 2});
  scores.shape.add(keyShape, 2);
  Value products = tv::MatmulOp::create(
      build.b, build.loc, scores.shape.type(getElement(query)), query,
      build.transpose(key, {0, 1, 3, 2}));
  scores.products = products;
  scores.inputs.push_back(products);
  for (int64_t dim = 0; dim < 4; ++dim)
    scores.inputs.push_back(build.iota(dim, scores.shape, products));
  LocalShape scalar;
  scalar.mesh = queryShape.mesh;
  for (Value tensor : {query, keys}) {
    Value size = tv::SizeOp::create(build.b, build.loc,
                                    scalar.type(build.b.getI64Type()), tensor,
                                    build.b.getI64IntegerAttr(2));
    scores.inputs.push_back(build.broadcast(size, {}, scores.shape, products));
  }
  return scores;
}

template <typename Op>
static Score makeScore(Op op, OpBuilder &b, ValueRange args) {
  Location loc = op.getLoc();
  Score score;
  score.scaled = Floats{b, loc, args[0].getType()}.mul(
      args[0], op.getScale().convertToDouble());
  for (int64_t dim = 0; dim < 4; ++dim)
    score.at.push_back(
        arith::IndexCastOp::create(b, loc, b.getIndexType(), args[1 + dim]));
  score.modified = score.scaled;
  if (!op.getScoreMod().empty()) {
    SmallVector<Value> arguments = {score.scaled};
    llvm::append_range(arguments, score.at);
    score.modified = inlineRegion(b, op.getScoreMod(), arguments);
  }
  score.isSeen = inlineMask(op, b, score.at);
  if (op.getCausal()) {
    // ki <= qi + T - S
    Value last = arith::SubIOp::create(
        b, loc, arith::AddIOp::create(b, loc, args[3], args[6]), args[5]);
    Value isBefore =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, args[4], last);
    score.isSeen =
        score.isSeen
            ? arith::AndIOp::create(b, loc, score.isSeen, isBefore).getResult()
            : isBefore;
  }
  return score;
}

/// Whether no dimension stands for several; an error otherwise.
template <typename Op> static LogicalResult checkPlain(Op op) {
  for (Value tensor : {op.getQuery(), op.getKey(), op.getValue()})
    if (!LocalShape(tensor).isPlain())
      return op.emitOpError() << "on merged dimensions needs a reshape first";
  return success();
}

/// Weights, or their gradients, under the op's dropout.
template <typename Op>
static Value dropWeights(Op op, Build &build, Value weights) {
  if (!op.getDropout())
    return weights;
  return tv::DropoutOp::create(build.b, build.loc, weights.getType(), weights,
                               op.getDropoutAttr(), op.getSeedAttr(),
                               op.getStreamAttr(), op.getStep());
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> tessera::expandAttention(tv::AttentionOp op,
                                                       OpBuilder &b) {
  Build build{b, op.getLoc()};
  Location loc = op.getLoc();
  Type wide = getElement(op.getLse());
  if (failed(checkPlain(op)))
    return failure();
  LocalShape query(op.getQuery());
  FailureOr<Value> key = repeatGroups(op, build, query, op.getKey());
  FailureOr<Value> value = repeatGroups(op, build, query, op.getValue());
  if (failed(key) || failed(value))
    return failure();

  Scores all = makeScores(build, build.widen(op.getQuery(), wide),
                          build.widen(*key, wide), op.getKey());
  LocalShape rowShape = query.take({0, 1, 2});
  auto floats = [&](OpBuilder &b) { return Floats{b, loc, wide}; };
  Value scores = build.map(
      all.inputs, all.shape, wide, [&](OpBuilder &b, ValueRange args) -> Value {
        Score score = makeScore(op, b, args);
        if (!score.isSeen)
          return score.modified;
        Floats f = floats(b);
        return f.select(score.isSeen, score.modified, f.number(-kInfinity));
      });

  // A row without keys has the maximum -inf; 0 in its place makes its weights
  // exp(-inf), and no NaN.
  Value maximum = build.reduce(tv::Combiner::Max, scores, 3, rowShape);
  Value shift = build.map(
      maximum, rowShape, wide, [&](OpBuilder &b, ValueRange args) -> Value {
        Floats f = floats(b);
        Value isEmpty =
            f.compare(arith::CmpFPredicate::OEQ, args[0], f.number(-kInfinity));
        return f.select(isEmpty, f.number(0), args[0]);
      });
  Value shifts = build.broadcast(shift, {0, 1, 2}, all.shape, all.products);
  Value weights =
      build.map({scores, shifts}, all.shape, wide,
                [&](OpBuilder &b, ValueRange args) -> Value {
                  Floats f = floats(b);
                  return f.apply<math::ExpOp>(f.sub(args[0], args[1]));
                });
  Value total = build.reduce(tv::Combiner::Sum, weights, 3, rowShape);
  Value lse = build.map({total, shift}, rowShape, wide,
                        [&](OpBuilder &b, ValueRange args) -> Value {
                          Floats f = floats(b);
                          return f.add(f.apply<math::LogOp>(args[0]), args[1]);
                        });

  // Normalized after the product, which is smaller than the scores.
  LocalShape resultShape(op.getResult());
  Value sums = tv::MatmulOp::create(b, loc, resultShape.type(wide),
                                    dropWeights(op, build, weights),
                                    build.widen(*value, wide));
  Value totals = build.broadcast(total, {0, 1, 2}, resultShape, sums);
  Type element = getElement(op.getResult());
  Value result =
      build.map({sums, totals}, resultShape, element,
                [&](OpBuilder &b, ValueRange args) -> Value {
                  Floats f = floats(b);
                  Value isEmpty = f.compare(arith::CmpFPredicate::OEQ, args[1],
                                            f.number(0));
                  Value divisor = f.select(isEmpty, f.number(1), args[1]);
                  return Floats{b, loc, element}.cast(f.div(args[0], divisor));
                });
  return SmallVector<Value>{result, lse};
}

//===----------------------------------------------------------------------===//
// The gradient of attention
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>>
tessera::expandAttentionGrad(tv::AttentionGradOp op, OpBuilder &b) {
  Build build{b, op.getLoc()};
  Location loc = op.getLoc();
  if (failed(checkScoreGrad(op)) || failed(checkPlain(op)))
    return failure();
  Type wide = getElement(op.getLse());
  LocalShape query(op.getQuery()), keyShape(op.getKey()),
      valueShape(op.getValue());
  FailureOr<Value> key = repeatGroups(op, build, query, op.getKey());
  FailureOr<Value> value = repeatGroups(op, build, query, op.getValue());
  if (failed(key) || failed(value))
    return failure();
  Value wideKey = build.widen(*key, wide);
  Value wideQuery = build.widen(op.getQuery(), wide);
  Value grad = build.widen(op.getGrad(), wide);

  // What is linear in the gradient is partial as that is.
  auto linear = [&](const LocalShape &shape, ArrayRef<layout::Dim> sums = {}) {
    return shape.summed(op.getGrad(), sums).type(wide);
  };
  Scores all = makeScores(build, wideQuery, wideKey, op.getKey());
  Value slopes = tv::MatmulOp::create(
      b, loc, linear(all.shape), grad,
      build.transpose(build.widen(*value, wide), {0, 1, 3, 2}));
  slopes = dropWeights(op, build, slopes);

  // A row's sum of weights times slopes, which the log-sum-exp takes away.
  LocalShape rows = query.take({0, 1, 2});
  Value products = build.map(
      {grad, build.widen(op.getOutput(), wide)},
      linear(LocalShape(op.getGrad())), [&](OpBuilder &b, ValueRange args) {
        return Floats{b, loc, wide}.mul(args[0], args[1]);
      });
  Value means =
      build.reduce(tv::Combiner::Sum, products, 3, rows.summed(op.getGrad()));
  if (op.getLseGrad())
    means = build.map({means, op.getLseGrad()}, linear(rows),
                      [&](OpBuilder &b, ValueRange args) {
                        return Floats{b, loc, wide}.sub(args[0], args[1]);
                      });

  SmallVector<tv::AccumulateOp> accumulates;
  if (!op.getScoreGrad().empty())
    llvm::append_range(accumulates,
                       op.getScoreGrad().getOps<tv::AccumulateOp>());
  SmallVector<Value> inputs = all.inputs;
  inputs.push_back(slopes);
  inputs.push_back(build.broadcast(
      means, {0, 1, 2}, all.shape.summed(op.getGrad()), all.products));
  inputs.push_back(
      build.broadcast(op.getLse(), {0, 1, 2}, all.shape, all.products));
  SmallVector<Type> types(2 + accumulates.size(), linear(all.shape));
  types[0] = all.shape.type(wide);
  auto map = tv::MapOp::create(b, loc, types, inputs);
  {
    Block &block = map.getBody().emplaceBlock();
    for (Value input : inputs)
      block.addArgument(tv::getScalarType(getElement(input)), loc);
    auto b = OpBuilder::atBlockBegin(&block);
    ValueRange args = block.getArguments();
    Score score = makeScore(op, b, args);
    auto others = args.take_back(3);
    Floats f{b, loc, wide};
    Value zero = f.number(0);
    // A row without keys has the log-sum-exp -inf.
    Value isSeen =
        f.compare(arith::CmpFPredicate::ONE, others[2], f.number(-kInfinity));
    if (score.isSeen)
      isSeen = arith::AndIOp::create(b, loc, isSeen, score.isSeen);
    auto masked = [&](Value value) -> Value {
      return f.select(isSeen, value, zero);
    };
    Value weight =
        masked(f.apply<math::ExpOp>(f.sub(score.modified, others[2])));
    Value gradient = f.mul(weight, f.sub(others[0], others[1]));
    SmallVector<Value> adjoints;
    if (!op.getScoreGrad().empty()) {
      SmallVector<Value> arguments = {score.scaled, masked(gradient)};
      llvm::append_range(arguments, score.at);
      gradient = inlineRegion(b, op.getScoreGrad(), arguments, &adjoints);
    }
    Value scaled = f.mul(gradient, op.getScale().convertToDouble());
    SmallVector<Value> yielded = {weight, masked(scaled)};
    for (Value adjoint : adjoints)
      yielded.push_back(masked(adjoint));
    tv::YieldOp::create(b, loc, yielded);
  }
  Value weights = dropWeights(op, build, map.getResult(0)),
        scoreGrads = map.getResult(1);

  SmallVector<Value> results;
  auto add = [&](Value value) {
    results.push_back(
        castTo(build, value, op->getResult(results.size()).getType()));
  };
  add(tv::MatmulOp::create(
      b, loc, linear(LocalShape(op.getQueryGrad()), all.shape.dims[3]),
      scoreGrads, wideKey));
  for (auto [factors, tensor, result] :
       {std::tuple(scoreGrads, wideQuery, Value(op.getKeyGrad())),
        std::tuple(weights, grad, Value(op.getValueGrad()))}) {
    Value perHead = tv::MatmulOp::create(
        b, loc, linear(headShape(query, LocalShape(result)), all.shape.dims[2]),
        build.transpose(factors, {0, 1, 3, 2}), tensor);
    FailureOr<Value> sum = sumGroups(op, build, query, perHead, result);
    if (failed(sum))
      return failure();
    add(*sum);
  }
  FailureOr<SmallVector<Value>> captured = sumCaptured(
      build, op, all.shape, map.getResults().drop_front(2), /*bySums=*/false);
  if (failed(captured))
    return failure();
  llvm::append_range(results, *captured);
  return results;
}
