//===- CapturedGrad.cpp - gradients of captured tensors -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a region adds to a captured tensor is first summed over the dimensions
// that the index does not depend on, so that a bias of heads or queries needs
// no scatter. `flash` has part of that done, by query, key or distance, when a
// score leaves the registers.
//
//===----------------------------------------------------------------------===//

#include "Kernels/CapturedGrad.h"
#include "Kernels/ExpandAttention.h"
#include "TensorView/ElementBuilder.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tessera;

/// Arguments of score_grad before the indices.
static constexpr int64_t kIndices = 2;
/// Dimensions of the scores, and one more.
static constexpr int64_t kQuery = 2, kKey = 3, kDistance = 4;

//===----------------------------------------------------------------------===//
// What an index depends on
//===----------------------------------------------------------------------===//

namespace {
/// How a value depends on query and key: on which of them, or on their distance
/// alone; and, where it is a sum, how often it has each.
struct Dependence {
  enum : unsigned { OnQuery = 1, OnKey = 2, OnDistance = 4 };
  unsigned on = 0;
  bool isSum = true;
  int64_t queries = 0, keys = 0;

  static Dependence ofSum(int64_t queries, int64_t keys) {
    unsigned on = (queries ? OnQuery : 0) | (keys ? OnKey : 0);
    if (queries && queries == -keys)
      on = OnDistance;
    return {on, true, queries, keys};
  }
};
/// Those of the values of a score_grad.
class Dependences {
public:
  explicit Dependences(Block &block) : block(block) {}

  Dependence of(Value value) {
    if (value.getParentBlock() != &block)
      return {}; // a tensor that is loaded from
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      int64_t dim = int64_t(argument.getArgNumber()) - kIndices;
      return Dependence::ofSum(dim == kQuery, dim == kKey);
    }
    Operation *op = value.getDefiningOp();
    if (auto it = known.find(op); it != known.end())
      return it->second;
    Dependence own = ofResult(op);
    return known[op] = own;
  }

private:
  static unsigned widthOf(Value value) {
    return isa<IndexType>(value.getType())
               ? IndexType::kInternalStorageBitWidth
               : value.getType().getIntOrFloatBitWidth();
  }
  /// Whether it is an argument in any type that has all positions.
  static bool isPosition(Value value) {
    while (widthOf(value) >= 32) {
      if (isa<BlockArgument>(value))
        return true;
      Operation *op = value.getDefiningOp();
      if (!isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op))
        return false;
      value = op->getOperand(0);
    }
    return false;
  }
  /// Whether it is a comparison that the difference of its operands decides,
  /// wherever they wrap.
  static bool isOfDifference(Operation *op) {
    auto compare = dyn_cast<arith::CmpIOp>(op);
    if (!compare)
      return false;
    using arith::CmpIPredicate;
    switch (compare.getPredicate()) {
    case CmpIPredicate::eq:
    case CmpIPredicate::ne:
      return true;
    case CmpIPredicate::slt:
    case CmpIPredicate::sle:
    case CmpIPredicate::sgt:
    case CmpIPredicate::sge:
      return isPosition(compare.getLhs()) && isPosition(compare.getRhs());
    default:
      return false;
    }
  }
  Dependence ofResult(Operation *op) {
    SmallVector<Dependence> operands;
    for (Value operand : op->getOperands())
      operands.push_back(of(operand));
    bool areSums =
        llvm::all_of(operands, [](const Dependence &d) { return d.isSum; });
    APInt factor;
    if (areSums &&
        isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op)) {
      // What wrapped is a sum as long as it is no wider.
      Dependence own = operands[0];
      if (widthOf(op->getResult(0)) > widthOf(op->getOperand(0)) &&
          !isPosition(op->getResult(0)))
        own.isSum = !own.on;
      return own;
    }
    if (areSums &&
        (isa<arith::AddIOp, arith::SubIOp>(op) || isOfDifference(op))) {
      int64_t sign = isa<arith::AddIOp>(op) ? 1 : -1;
      Dependence sum =
          Dependence::ofSum(operands[0].queries + sign * operands[1].queries,
                            operands[0].keys + sign * operands[1].keys);
      sum.isSum = !isa<arith::CmpIOp>(op) || !sum.on;
      return sum;
    }
    if (areSums && isa<arith::MulIOp>(op) &&
        matchPattern(op->getOperand(1), m_ConstantInt(&factor)))
      return Dependence::ofSum(operands[0].queries * factor.getSExtValue(),
                               operands[0].keys * factor.getSExtValue());
    Dependence all;
    for (const Dependence &operand : operands)
      all.on |= operand.on;
    all.isSum = !all.on;
    return all;
  }
  Block &block;
  llvm::DenseMap<Operation *, Dependence> known;
};
} // namespace

StringRef tessera::getSumBy(tv::AccumulateOp accumulate) {
  Dependences dependences(*accumulate->getBlock());
  unsigned on = 0;
  for (Value index : accumulate.getIndices())
    on |= dependences.of(index).on;
  switch (on) {
  case 0:
  case Dependence::OnQuery:
    return "query";
  case Dependence::OnKey:
    return "key";
  case Dependence::OnDistance:
    return "distance";
  default:
    return "score";
  }
}

//===----------------------------------------------------------------------===//
// Distances
//===----------------------------------------------------------------------===//

/// How many devices have a block of a dimension, each as large a one; 1: they
/// have all of it. Nothing if it lies otherwise.
static std::optional<int64_t> countBlocks(const LocalShape &shape,
                                          int64_t dim) {
  using Kind = layout::Factor::Kind;
  int64_t devices = 1, own = 1;
  for (const layout::Factor &factor : shape.dims[dim].product) {
    if (factor.kind == Kind::Device && own == 1)
      devices *= factor.sub.size;
    else if (factor.kind == Kind::Stored)
      own *= factor.size;
    else
      return std::nullopt;
  }
  if (shape.extents[dim].getStatic() != devices * own)
    return std::nullopt;
  return devices;
}

namespace {
/// What devices have of the queries and keys of scores, where distances of
/// positions are those of their own and one more number.
struct Distances {
  int64_t queryBlocks = 1, keyBlocks = 1;

  static std::optional<Distances> of(const LocalShape &scores) {
    if (layout::axesOf(scores.dims[kQuery].product).empty() &&
        layout::axesOf(scores.dims[kKey].product).empty())
      return Distances();
    std::optional<int64_t> queries = countBlocks(scores, kQuery),
                           keys = countBlocks(scores, kKey);
    if (!queries || !keys)
      return std::nullopt;
    return Distances{*queries, *keys};
  }
  bool areWhole() const { return queryBlocks * keyBlocks == 1; }
  int64_t getQueries(const LocalShape &scores) const {
    return *scores.extents[kQuery].getStatic() / queryBlocks;
  }
  int64_t getKeys(const LocalShape &scores) const {
    return *scores.extents[kKey].getStatic() / keyBlocks;
  }
};
} // namespace

static LocalShape getScores(tv::AttentionGradOp op) {
  LocalShape scores = LocalShape(op.getQuery()).take({0, 1, 2});
  scores.add(LocalShape(op.getKey()), 2);
  return scores;
}

bool tessera::hasDistances(tv::AttentionGradOp op) {
  return Distances::of(getScores(op)).has_value();
}

/// `scores` with a dimension for distances: each device has those of its
/// queries and keys.
static LocalShape withDistances(LocalShape scores) {
  std::optional<Distances> distances = Distances::of(scores);
  if (!distances || distances->areWhole()) {
    scores.add(scores.extents[kQuery] + scores.extents[kKey]);
    return scores;
  }
  layout::Dim dim;
  for (int64_t of : {kQuery, kKey})
    llvm::copy_if(scores.dims[of].product, std::back_inserter(dim.product),
                  [](const layout::Factor &factor) {
                    return factor.kind == layout::Factor::Kind::Device;
                  });
  const int64_t own =
      distances->getQueries(scores) + distances->getKeys(scores);
  dim.product.push_back(layout::Factor::stored(own));
  scores.dims.push_back(dim);
  scores.extents.push_back(
      layout::Extent(distances->queryBlocks * distances->keyBlocks * own));
  return scores;
}

/// The distance of positions that is at `index` of their dimension.
static Value getDistance(OpBuilder &b, Location loc, const LocalShape &scores,
                         Value index) {
  tv::Arith math{b, loc};
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIndexAttr(value));
  };
  const Distances distances = *Distances::of(scores);
  const int64_t keys = distances.getKeys(scores);
  if (distances.areWhole())
    return math.sub(index, constant(keys));
  const int64_t queries = distances.getQueries(scores);
  Value own = constant(queries + keys), blocks = constant(distances.keyBlocks);
  Value part = math.div(index, own), place = math.rem(index, own);
  Value query = math.mul(math.div(part, blocks), constant(queries));
  Value key = math.mul(math.rem(part, blocks), constant(keys));
  return math.sub(math.add(place, query), math.add(key, constant(keys)));
}

/// Whether a kernel has the sum of a block of queries in shared memory.
static bool isShared(tv::AccumulateOp accumulate) {
  StringRef by = getSumBy(accumulate);
  return by == "query" || by == "distance";
}

/// The dimensions of such a sum.
static SmallVector<int64_t> getSumDims(StringRef by) {
  if (by == "score")
    return {0, 1, kQuery, kKey};
  return {0, 1, by == "query" ? kQuery : by == "key" ? kKey : kDistance};
}

//===----------------------------------------------------------------------===//
// Sums of what is added
//===----------------------------------------------------------------------===//

namespace {
/// Sums what one tv.accumulate adds into a tensor that lies as the result.
class CapturedGrad {
public:
  /// `scores` has one dimension more, for distances.
  CapturedGrad(Build &build, tv::AttentionGradOp op,
               tv::AccumulateOp accumulate, const LocalShape &scores)
      : build(build), op(op), accumulate(accumulate), scores(scores),
        target(op.getCapturedGrads()[accumulate.getNumber()]) {}

  /// `addends` have these dimensions of `scores`.
  FailureOr<Value> sum(Value addends, ArrayRef<int64_t> has);

private:
  /// Which of the arguments a value of the region depends on.
  unsigned dependences(Value value);
  Value indices(ArrayRef<int64_t> dims, ArrayRef<int64_t> targetDims);
  Value place(Value sums, size_t dim);

  Build &build;
  tv::AttentionGradOp op;
  tv::AccumulateOp accumulate;
  const LocalShape &scores;
  LocalShape target;
  llvm::DenseMap<Value, unsigned> known;
};
} // namespace

unsigned CapturedGrad::dependences(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() == accumulate->getBlock()
               ? 1u << argument.getArgNumber()
               : 0;
  Operation *maker = value.getDefiningOp();
  if (maker->getBlock() != accumulate->getBlock())
    return 0; // a tensor that is loaded from
  auto [it, isNew] = known.try_emplace(value, 0);
  if (!isNew)
    return it->second;
  unsigned all = 0;
  for (Value operand : maker->getOperands())
    all |= dependences(operand);
  return known[value] = all;
}

/// Zeros to add into: as much a part of a sum as what is added. (A local type
/// says its extents.)
static Value zeros(Build &build, const LocalShape &shape, Type element) {
  auto scalar = RankedTensorType::get({}, element);
  return tv::ConstantOp::create(
      build.b, build.loc, shape.type(element),
      DenseElementsAttr::get(scalar, Attribute(build.b.getZeroAttr(element))),
      Value());
}

/// The row-major index into dimensions `targetDims` of the tensor, for each
/// index in dimensions `dims` of the scores; outside, one that is no index.
Value CapturedGrad::indices(ArrayRef<int64_t> dims,
                            ArrayRef<int64_t> targetDims) {
  OpBuilder &outer = build.b;
  LocalShape shape = scores.take(dims);
  SmallVector<Value> inputs;
  for (size_t d = 0; d < dims.size(); ++d)
    inputs.push_back(build.iota(d, shape, Value()));
  // Extents that the index is held against.
  llvm::DenseMap<int64_t, size_t> sizeOf;
  LocalShape scalar;
  scalar.mesh = scores.mesh;
  for (int64_t dim : targetDims)
    if (targetDims.size() > 1 && !target.extents[dim].getStatic()) {
      Value size =
          tv::SizeOp::create(outer, build.loc, scalar.type(outer.getI64Type()),
                             op.getCaptured()[accumulate.getNumber()],
                             outer.getI64IntegerAttr(dim));
      sizeOf[dim] = inputs.size();
      inputs.push_back(build.broadcast(size, {}, shape, Value()));
    }
  if (inputs.empty()) {
    auto scalar = RankedTensorType::get({}, outer.getI64Type());
    inputs.push_back(tv::ConstantOp::create(
        outer, build.loc, shape.type(outer.getI64Type()),
        DenseElementsAttr::get(scalar, Attribute(outer.getI64IntegerAttr(0))),
        Value()));
  }
  return build.map(
      inputs, shape, outer.getI64Type(),
      [&](OpBuilder &b, ValueRange args) -> Value {
        Location loc = build.loc;
        Block &block = *accumulate->getBlock();
        IRMapping mapping;
        auto constant = [&](int64_t value) -> Value {
          return arith::ConstantOp::create(b, loc, b.getIndexAttr(value));
        };
        // Of positions that cancel, one is as good as another.
        Value zero = constant(0);
        for (BlockArgument argument : block.getArguments().drop_front(kIndices))
          mapping.map(argument, zero);
        for (auto [d, dim] : llvm::enumerate(dims)) {
          Value index =
              arith::IndexCastOp::create(b, loc, b.getIndexType(), args[d]);
          if (dim != kDistance) {
            mapping.map(block.getArgument(kIndices + dim), index);
            continue;
          }
          Value ahead = getDistance(b, loc, scores, index);
          Value behind = arith::SubIOp::create(b, loc, zero, ahead);
          mapping.map(block.getArgument(kIndices + kQuery),
                      arith::MaxSIOp::create(b, loc, ahead, zero).getResult());
          mapping.map(block.getArgument(kIndices + kKey),
                      arith::MaxSIOp::create(b, loc, behind, zero).getResult());
        }
        llvm::SmallPtrSet<Operation *, 8> needed;
        SmallVector<Value> open;
        for (int64_t dim : targetDims)
          open.push_back(accumulate.getIndices()[dim]);
        while (!open.empty()) {
          Operation *maker = open.pop_back_val().getDefiningOp();
          if (maker && maker->getBlock() == &block &&
              needed.insert(maker).second)
            llvm::append_range(open, maker->getOperands());
        }
        for (Operation &inner : block)
          if (needed.contains(&inner))
            b.clone(inner, mapping);
        auto number = [&](int64_t value) -> Value {
          return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
        };
        auto indexOf = [&](int64_t dim) -> Value {
          return arith::IndexCastOp::create(
              b, loc, b.getI64Type(),
              mapping.lookup(accumulate.getIndices()[dim]));
        };
        if (targetDims.size() == 1)
          return indexOf(targetDims[0]);
        Value linear = number(0), inside;
        for (int64_t dim : targetDims) {
          Value index = indexOf(dim);
          auto size = sizeOf.find(dim);
          Value extent = size != sizeOf.end()
                             ? args[size->second]
                             : number(*target.extents[dim].getStatic());
          // Unsigned, so that what is negative is outside too.
          Value isIn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                             index, extent);
          inside = inside
                       ? arith::AndIOp::create(b, loc, inside, isIn).getResult()
                       : isIn;
          linear = arith::AddIOp::create(
              b, loc, arith::MulIOp::create(b, loc, linear, extent), index);
        }
        return arith::SelectOp::create(b, loc, inside, linear, number(-1));
      });
}

/// `sums`, whose dimension `dim` lies as here, where the tensor's does.
Value CapturedGrad::place(Value sums, size_t dim) {
  LocalShape from(sums), to(sums), ids = from.take({int64_t(dim)});
  to.dims[dim] = target.dims[dim];
  to = to.summed(sums, from.dims[dim]);
  // What this device does not hold of the result is dropped.
  Type element = getElement(sums);
  return tv::ScatterOp::create(build.b, build.loc, to.type(element),
                               tv::Update::Sum, zeros(build, to, element),
                               build.iota(0, ids, Value()), sums, dim);
}

FailureOr<Value> CapturedGrad::sum(Value addends, ArrayRef<int64_t> has) {
  auto at = accumulate.getIndices();
  constexpr unsigned pair = 1u << (kIndices + kQuery) | 1u << (kIndices + kKey);
  // The score's, and those that there are: others cancel.
  unsigned possible = (1u << kIndices) - 1, used = 0;
  for (int64_t dim : has)
    possible |= 1u << (kIndices + dim);
  SmallVector<unsigned> depends;
  for (Value index : at) {
    unsigned own = dependences(index);
    if (own & pair && llvm::is_contained(has, kDistance))
      own = (own & ~pair) | 1u << (kIndices + kDistance);
    own &= possible;
    depends.push_back(own);
    used |= own;
  }
  if (used & ((1u << kIndices) - 1))
    return accumulate.emitOpError()
           << "has an index that depends on the score, which no kernel does";

  // Dimensions of the tensor that are one of the scores', and no others use.
  SmallVector<int64_t> direct, others, directDims, otherDims;
  for (auto [dim, index] : llvm::enumerate(at)) {
    auto argument = dyn_cast<BlockArgument>(index);
    bool isAlone = argument && llvm::count_if(depends, [&](unsigned mask) {
                                 return mask & depends[dim];
                               }) == 1;
    int64_t own = argument ? int64_t(argument.getArgNumber()) - kIndices : 0;
    if (isAlone && scores.extents[own] == target.extents[dim]) {
      direct.push_back(own);
      directDims.push_back(dim);
    } else {
      otherDims.push_back(dim);
    }
  }
  SmallVector<int64_t> unused, unusedAt, kept;
  for (auto [place, dim] : llvm::enumerate(has)) {
    if (!(used >> (kIndices + dim) & 1)) {
      unused.push_back(dim);
      unusedAt.push_back(place);
      continue;
    }
    kept.push_back(dim);
    if (!llvm::is_contained(direct, dim))
      others.push_back(dim);
  }

  Type wide = getElement(addends);
  OpBuilder &b = build.b;
  Value sums = addends;
  if (!unused.empty())
    sums = tv::ReduceOp::create(
        b, build.loc,
        scores.take(kept).summed(sums, scores.take(unused).dims).type(wide),
        tv::Combiner::Sum, sums, b.getDenseI64ArrayAttr(unusedAt));
  auto transpose = [&](ArrayRef<int64_t> perm) {
    if (!llvm::is_sorted(perm))
      sums = build.transpose(sums, perm);
  };
  // The direct ones first.
  SmallVector<int64_t> perm;
  for (ArrayRef<int64_t> dims : {ArrayRef(direct), ArrayRef(others)})
    for (int64_t dim : dims)
      perm.push_back(llvm::find(kept, dim) - kept.begin());
  transpose(perm);

  if (!otherDims.empty()) {
    LocalShape before = scores.take(direct), after = before;
    layout::Extent count(1);
    for (int64_t dim : otherDims) {
      after.add(target.extents[dim]);
      count = count * target.extents[dim];
    }
    // A single one goes where it lies; what this device does not hold of it is
    // dropped.
    if (otherDims.size() == 1)
      before.add(target, otherDims[0]);
    else
      before.add(count);
    before = before.summed(sums, scores.take(others).dims);
    sums =
        tv::ScatterOp::create(b, build.loc, before.type(wide), tv::Update::Sum,
                              zeros(build, before, wide),
                              indices(others, otherDims), sums, direct.size());
    if (otherDims.size() != 1)
      sums = tv::ReshapeOp::create(b, build.loc, after.summed(sums).type(wide),
                                   sums);
  }
  // In the tensor's order.
  SmallVector<int64_t> order(directDims), back(at.size());
  llvm::append_range(order, otherDims);
  for (auto [from, to] : llvm::enumerate(order))
    back[to] = from;
  transpose(back);
  for (size_t dim = 0; dim < at.size(); ++dim) {
    if (LocalShape(sums).dims[dim] == target.dims[dim])
      continue;
    sums = place(sums, dim);
  }
  return sums;
}

//===----------------------------------------------------------------------===//
// All of an op
//===----------------------------------------------------------------------===//

LogicalResult tessera::checkScoreGrad(tv::AttentionGradOp op) {
  if (!op.getScoreMod().empty() && op.getScoreGrad().empty())
    return op.emitOpError()
           << "has a score_mod, but no score_grad; run tv-differentiate first";
  return success();
}

Value tessera::castTo(Build &build, Value value, Type result) {
  auto type = cast<RankedTensorType>(result);
  Type element = type.getElementType();
  if (element == getElement(value))
    return value;
  return build.map(value, type, [&](OpBuilder &b, ValueRange args) {
    const bool isWider = element.getIntOrFloatBitWidth() >
                         args[0].getType().getIntOrFloatBitWidth();
    return isWider ? arith::ExtFOp::create(b, build.loc, element, args[0])
                         .getResult()
                   : arith::TruncFOp::create(b, build.loc, element, args[0])
                         .getResult();
  });
}

FailureOr<SmallVector<Value>> tessera::sumCaptured(Build &build,
                                                   tv::AttentionGradOp op,
                                                   const LocalShape &scores,
                                                   ValueRange addends,
                                                   bool bySums) {
  Type wide = getElement(op.getLse());
  const LocalShape dims = withDistances(scores);
  SmallVector<Value> results;
  for (auto [number, result] : llvm::enumerate(op.getCapturedGrads())) {
    Value total;
    for (auto [accumulate, own] : llvm::zip_equal(
             op.getScoreGrad().getOps<tv::AccumulateOp>(), addends)) {
      if (accumulate.getNumber() != number)
        continue;
      FailureOr<Value> sum =
          CapturedGrad(build, op, accumulate, dims)
              .sum(own, getSumDims(bySums ? getSumBy(accumulate) : "score"));
      if (failed(sum))
        return failure();
      total = total ? build.map({total, *sum},
                                cast<RankedTensorType>(sum->getType()),
                                [&](OpBuilder &b, ValueRange args) {
                                  return arith::AddFOp::create(b, build.loc,
                                                               args[0], args[1])
                                      .getResult();
                                })
                    : *sum;
    }
    if (!total)
      total = zeros(build, LocalShape(result), wide);
    results.push_back(castTo(build, total, result.getType()));
  }
  return results;
}

/// The op with sums of `count` of what it adds, from `first` on, in the place
/// of captured tensors. `scores` has a dimension for distances.
static tv::AttentionGradOp withSums(tv::AttentionGradOp op, OpBuilder &b,
                                    const LocalShape &scores, size_t first,
                                    size_t count) {
  Build build{b, op.getLoc()};
  Type wide = getElement(op.getLse());
  SmallVector<Value> places;
  SmallVector<Type> types(op->getResultTypes());
  types.truncate(3);
  auto isOwn = [&](size_t number) { return number - first < count; };
  for (auto [number, accumulate] :
       llvm::enumerate(op.getScoreGrad().getOps<tv::AccumulateOp>())) {
    if (!isOwn(number))
      continue;
    const SmallVector<int64_t> has = getSumDims(getSumBy(accumulate));
    LocalShape shape = scores.take(has);
    SmallVector<layout::Dim> summed;
    for (int64_t dim : {kQuery, kKey})
      if (!llvm::is_contained(has, dim) && !llvm::is_contained(has, kDistance))
        summed.push_back(scores.dims[dim]);
    places.push_back(zeros(build, shape, wide));
    types.push_back(shape.summed(op.getGrad(), summed).type(wide));
  }
  auto flash = tv::AttentionGradOp::create(
      b, op.getLoc(), types, op.getGrad(), op.getQuery(), op.getKey(),
      op.getValue(), op.getOutput(), op.getLse(), op.getLseGrad(), places,
      op.getStep(), op.getBlockMask(), op.getSequences(), op.getUsed(),
      op.getTiles(), op.getScaleAttr(), op.getCausalAttr(), op.getDropoutAttr(),
      op.getSeedAttr(), op.getStreamAttr(), op.getBlocksAttr());
  for (auto [from, to] :
       {std::pair(&op.getScoreMod(), &flash.getScoreMod()),
        std::pair(&op.getMaskMod(), &flash.getMaskMod()),
        std::pair(&op.getScoreGrad(), &flash.getScoreGrad())}) {
    IRMapping mapping;
    from->cloneInto(to, mapping);
  }
  Block &block = flash.getScoreGrad().front();
  auto argument = [&](int64_t dim) -> Value {
    return block.getArgument(kIndices + dim);
  };
  for (auto [number, accumulate] :
       llvm::enumerate(llvm::to_vector(block.getOps<tv::AccumulateOp>()))) {
    if (!isOwn(number)) {
      accumulate.erase();
      continue;
    }
    OpBuilder inner(accumulate);
    Location loc = accumulate.getLoc();
    SmallVector<Value> indices;
    for (int64_t dim : getSumDims(getSumBy(accumulate))) {
      if (dim != kDistance) {
        indices.push_back(argument(dim));
        continue;
      }
      Value keys = arith::ConstantOp::create(
          inner, loc, inner.getIndexAttr(*scores.extents[kKey].getStatic()));
      indices.push_back(arith::AddIOp::create(
          inner, loc,
          arith::SubIOp::create(inner, loc, argument(kQuery), argument(kKey)),
          keys));
    }
    tv::AccumulateOp::create(inner, loc, number - first, indices,
                             accumulate.getAdjoint());
    accumulate.erase();
  }
  // What the indices were computed from, and what others add.
  for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&inner))
      inner.erase();
  return flash;
}

FailureOr<SmallVector<Value>>
tessera::expandToFlash(tv::AttentionGradOp op, OpBuilder &b,
                       SmallVectorImpl<tv::AttentionGradOp> &made) {
  if (op.getCaptured().empty()) {
    made.push_back(cast<tv::AttentionGradOp>(b.clone(*op)));
    return llvm::to_vector_of<Value>(made.front()->getResults());
  }
  if (failed(checkScoreGrad(op)))
    return failure();
  Build build{b, op.getLoc()};
  const LocalShape scores = getScores(op);
  // How much of what is added the op, and each that repeats it, has.
  SmallVector<size_t> counts = {0};
  int64_t shared = 0;
  for (auto accumulate : op.getScoreGrad().getOps<tv::AccumulateOp>()) {
    if (isShared(accumulate) && shared++ == kMostSums) {
      counts.push_back(0);
      shared = 1;
    }
    ++counts.back();
  }
  SmallVector<Value> sums;
  size_t first = 0;
  for (size_t count : counts) {
    made.push_back(withSums(op, b, withDistances(scores), first, count));
    llvm::append_range(sums, made.back().getCapturedGrads());
    first += count;
  }

  SmallVector<Value> results(made.front()->getResults().take_front(3));
  FailureOr<SmallVector<Value>> captured =
      sumCaptured(build, op, scores, sums, /*bySums=*/true);
  if (failed(captured))
    return failure();
  llvm::append_range(results, *captured);
  return results;
}
