//===- BlockMask.cpp - block masks in terms of core ops -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pairs of a block are a dimension: how many are kept, of those there are.
// Only a block of which its intervals do not say asks its pairs.
//
//===----------------------------------------------------------------------===//

#include "TensorView/CoreBuilder.h"
#include "TensorView/Intervals.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

#include <algorithm>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

using Body = ImplicitLocOpBuilder &;
using Args = ArrayRef<Value>;
using Values = SmallVector<Value>;

namespace {
class BlockMask {
public:
  BlockMask(OpBuilder &builder, BlockMaskOp op)
      : op(op), core(builder, op), intervals(op.getMaskMod().front()),
        number(builder.getI32Type()) {
    for (int64_t extent : getGlobalShape(op.getResult().getType()))
      if (extent >= INT32_MAX)
        number = builder.getI64Type();
    // (A block may be larger than what there is.)
    for (unsigned dim : {2, 3})
      if (std::max(all(dim), size(2) * size(3)) >= INT32_MAX / 2)
        number = builder.getI64Type();
  }
  Value build();

private:
  bool reduceLoads();
  Value countPairs();
  SmallVector<Value> getOuter(Value like);
  Verdict getVerdict(Body b, Args outer);

  Value constant(Body b, int64_t value) {
    return arith::ConstantOp::create(b, b.getIntegerAttr(number, value));
  }
  int64_t size(unsigned dim) { return op.getBlocks()[dim - 2]; }
  int64_t all(unsigned dim) { return op.getOf()[dim - 2]; }
  /// The first query or key of a block.
  Value getFirst(Body b, Value block, unsigned dim) {
    return arith::MulIOp::create(b, block, constant(b, size(dim)));
  }
  Value toIndex(Body b, Value value) {
    return arith::IndexCastOp::create(b, b.getIndexType(), value);
  }
  void map(IRMapping &arguments, unsigned argument, Value index) {
    arguments.map(op.getMaskMod().getArgument(argument), index);
  }

  BlockMaskOp op;
  Core core;
  Intervals intervals;
  Type number; ///< of indices, and of how many pairs there are
  /// The least and largest values of blocks, by these dimensions.
  struct Bounds {
    SmallVector<int64_t> dims;
    Value low, high;
  };
  SmallVector<Bounds> bounds;
};
} // namespace

/// One small kernel has the bounds of all that is read.
bool BlockMask::reduceLoads() {
  for (const Intervals::Reduced &each : intervals.getReduced()) {
    const unsigned over = each.over;
    SmallVector<int64_t> dims;
    if (each.hasBatch)
      dims.push_back(0);
    if (each.hasHead)
      dims.push_back(1);
    dims.push_back(over);
    RankedTensorType outer = core.keep(op.getResult(), dims, number);
    if (!outer) { // split along others, too
      dims = {0, 1, 2, 3};
      outer = core.like(op.getResult(), number);
    }
    RankedTensorType space = core.append(outer, size(over), number);
    if (!space)
      return false;
    SmallVector<Value> place;
    for (int64_t dim = 0; dim < space.getRank(); ++dim)
      place.push_back(IotaOp::create(core.builder, core.loc, space, dim,
                                     /*like=*/Value()));
    Type element = each.value.getType();
    element = element.isIndex() || element.isInteger(64)
                  ? core.builder.getI64Type()
                  : core.builder.getI32Type();
    Value values =
        core.map(place, core.like(place[0], element), [&](Body b, Args in) {
          IRMapping arguments;
          Value at;
          for (auto [dim, index] : llvm::zip(dims, in)) {
            if (dim != over) {
              map(arguments, dim, toIndex(b, index));
              continue;
            }
            at = arith::AddIOp::create(b, getFirst(b, index, over), in.back());
            if (all(over) % size(over) != 0)
              at = arith::MinSIOp::create(b, at, constant(b, all(over) - 1));
            map(arguments, over, toIndex(b, at));
          }
          return Values{Intervals::build(b, each.value, arguments)};
        });
    const int64_t last = dims.size();
    bounds.push_back({dims, core.reduce(Combiner::Min, values, last),
                      core.reduce(Combiner::Max, values, last)});
  }
  return true;
}

/// What a verdict is made of, for elements of blocks or of their pairs.
SmallVector<Value> BlockMask::getOuter(Value like) {
  SmallVector<Value> outer;
  for (int64_t dim = 0; dim < 4; ++dim)
    outer.push_back(core.iota(dim, like, number));
  for (const Bounds &each : bounds)
    for (Value bound : {each.low, each.high})
      outer.push_back(core.broadcast(bound, each.dims, like));
  return outer;
}

Verdict BlockMask::getVerdict(Body b, Args outer) {
  IRMapping arguments;
  SmallVector<Interval> own;
  const layout::Shape shape = getGlobalShape(op.getResult().getType());
  for (unsigned dim = 0; dim < 2; ++dim) {
    map(arguments, dim, toIndex(b, outer[dim]));
    own.push_back({outer[dim], outer[dim], 0, shape[dim] - 1});
  }
  for (unsigned dim = 2; dim < 4; ++dim) {
    Value first = getFirst(b, outer[dim], dim);
    Value last = arith::AddIOp::create(b, first, constant(b, size(dim) - 1));
    if (all(dim) % size(dim) != 0)
      last = arith::MinSIOp::create(b, last, constant(b, all(dim) - 1));
    own.push_back({first, last, 0, all(dim) - 1});
  }
  SmallVector<std::pair<Value, Value>> read;
  for (size_t i = 4; i < outer.size(); i += 2)
    read.push_back({outer[i], outer[i + 1]});
  return intervals.build(b, arguments, own, read);
}

/// Whether a block may have pairs of both kinds; null if all may.
static Value isUndecided(Body b, const Verdict &verdict) {
  if (!verdict.never && !verdict.always)
    return {};
  Value decided =
      verdict.never && verdict.always
          ? b.createOrFold<arith::OrIOp>(verdict.never, verdict.always)
      : verdict.never ? verdict.never
                      : verdict.always;
  if (matchPattern(decided, m_Zero()))
    return {};
  return b.createOrFold<arith::XOrIOp>(
      decided, arith::ConstantOp::create(b, b.getBoolAttr(true)));
}

/// How many pairs of each block are kept, of those that are asked.
Value BlockMask::countPairs() {
  const int64_t rows = size(2), columns = size(3);
  int64_t blocks = 1;
  for (int64_t extent : getGlobalShape(op.getResult().getType()))
    blocks *= extent;
  // Few blocks would leave most of a GPU idle, which counts each row apart.
  const bool byRows = blocks < 128;
  const SmallVector<int64_t> inner = byRows
                                         ? SmallVector<int64_t>{rows, columns}
                                         : SmallVector<int64_t>{rows * columns};
  RankedTensorType pairs = core.append(core.result(), inner, number);
  if (!pairs) {
    op.emitOpError() << "on merged dimensions needs a reshape first";
    return {};
  }
  Value like = IotaOp::create(core.builder, core.loc, pairs, /*dim=*/0,
                              /*like=*/Value());
  SmallVector<Value> inputs = getOuter(like);
  const size_t ofOuter = inputs.size();
  for (size_t i = 0; i < inner.size(); ++i)
    inputs.push_back(core.iota(4 + i, like, number));
  Value kept = core.map(inputs, core.like(like, number), [&](Body b, Args in) {
    const Args outer = in.take_front(ofOuter);
    Value undecided = isUndecided(b, getVerdict(b, outer));
    Value row = in[ofOuter], column = in.back();
    if (!byRows) {
      row = arith::DivUIOp::create(b, row, constant(b, columns));
      column = arith::RemUIOp::create(b, column, constant(b, columns));
    }
    IRMapping arguments;
    for (unsigned dim = 0; dim < 2; ++dim)
      map(arguments, dim, toIndex(b, outer[dim]));
    Value inside;
    for (auto [dim, within] : {std::pair(2u, row), std::pair(3u, column)}) {
      Value at = arith::AddIOp::create(b, getFirst(b, outer[dim], dim), within);
      map(arguments, dim, toIndex(b, at));
      if (all(dim) % size(dim) == 0)
        continue;
      Value is = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, at,
                                       constant(b, all(dim)));
      inside = inside ? arith::AndIOp::create(b, inside, is) : is;
    }
    Value is = Intervals::build(
        b, op.getMaskMod().front().getTerminator()->getOperand(0), arguments);
    if (is.getType() != number)
      is = arith::ExtUIOp::create(b, number, is);
    Value zero = constant(b, 0);
    if (inside)
      is = arith::SelectOp::create(b, inside, is, zero);
    // (Kernels leave out the loop over pairs by this condition.)
    return Values{undecided ? arith::SelectOp::create(b, undecided, is, zero)
                            : is};
  });
  Value count = kept;
  for (int64_t dim = pairs.getRank(); dim-- > 4;)
    count = core.reduce(Combiner::Sum, count, dim);
  return count;
}

Value BlockMask::build() {
  if (!reduceLoads()) {
    op.emitOpError() << "on merged dimensions needs a reshape first";
    return {};
  }
  Value count = countPairs();
  if (!count)
    return {};
  SmallVector<Value> inputs = getOuter(count);
  inputs.push_back(count);
  return core.map(inputs, core.result(), [&](Body b, Args in) {
    // Of how many pairs a block is.
    Value pairs;
    for (unsigned dim : {2, 3}) {
      Value own = constant(b, size(dim));
      if (all(dim) % size(dim) != 0)
        own = arith::MinSIOp::create(
            b, own,
            arith::SubIOp::create(b, constant(b, all(dim)),
                                  getFirst(b, in[dim], dim)));
      pairs = pairs ? arith::MulIOp::create(b, pairs, own) : own;
    }
    using Int = arith::CmpIPredicate;
    Type i8 = b.getIntegerType(8);
    Value own = in.back();
    Value any = arith::CmpIOp::create(b, Int::ne, own, constant(b, 0));
    Value full = arith::CmpIOp::create(b, Int::eq, own, pairs);
    Value kind = arith::AddIOp::create(b, arith::ExtUIOp::create(b, i8, any),
                                       arith::ExtUIOp::create(b, i8, full));
    const Verdict verdict = getVerdict(b, in.drop_back());
    if (!isUndecided(b, verdict))
      return Values{kind};
    for (auto [is, decided] :
         {std::pair(verdict.never, 0), std::pair(verdict.always, 2)})
      if (is)
        kind = arith::SelectOp::create(
            b, is, arith::ConstantOp::create(b, b.getI8IntegerAttr(decided)),
            kind);
    return Values{kind};
  });
}

LogicalResult BlockMaskOp::decompose(OpBuilder &builder,
                                     SmallVectorImpl<Value> &results) {
  Value result = BlockMask(builder, *this).build();
  if (!result)
    return failure();
  results.push_back(result);
  return success();
}
