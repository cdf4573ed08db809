//===- TensorViewComposites.cpp - composites in terms of core ops --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scalars are computed in f32 (f64 for f64) and rounded to the op's type once,
// at the end.
//
//===----------------------------------------------------------------------===//

#include "TensorView/CoreBuilder.h"
#include "TensorView/TensorViewPointwise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

using Body = ImplicitLocOpBuilder &;
using Args = ArrayRef<Value>;
using Values = SmallVector<Value>;

//===----------------------------------------------------------------------===//
// Pointwise
//===----------------------------------------------------------------------===//

int64_t DropoutOp::leastKept(double rate) {
  return std::min<int64_t>(std::ceil(std::ldexp(rate, kBits)),
                           (1 << kBits) - 1);
}

LogicalResult DropoutOp::decompose(OpBuilder &builder,
                                   SmallVectorImpl<Value> &results) {
  Core core(builder, *this);
  Value random = RandomOp::create(
      builder, getLoc(), core.likePart(getInput(), builder.getF32Type()),
      getSeed(), getStream(), kBits, getStep(), core.likeIfDynamic(getInput()));
  double rate = getRate().convertToDouble();
  results.push_back(
      core.map({getInput(), random}, core.result(), [&](Body b, Args in) {
        const double least = std::ldexp(leastKept(rate), -kBits);
        Value keep =
            arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, in[1],
                                  Core::constant(b, b.getF32Type(), least));
        Type type = in[0].getType();
        Value scaled =
            arith::DivFOp::create(b, in[0], Core::constant(b, type, 1 - rate));
        return Values{arith::SelectOp::create(b, keep, scaled,
                                              Core::constant(b, type, 0))};
      }));
  return success();
}

// What depends on the step alone is of scalars, computed once.
LogicalResult AdamWOp::decompose(OpBuilder &builder,
                                 SmallVectorImpl<Value> &results) {
  Core core(builder, *this);
  Value w = getWeight();
  const double a = getMeanBeta().convertToDouble();
  const double b = getSquareBeta().convertToDouble();
  const double epsilon = getEpsilon().convertToDouble();
  const double decay = getDecay().convertToDouble();
  Type wide = core.wide(w), scalar = core.like(getScale(), wide);
  SmallVector<Value> inputs = {w,         getMean(),  getSquare(),
                               getGrad(), getScale(), getRate()};
  llvm::append_range(
      inputs, core.map(getStep(), {scalar, scalar}, [&](Body body, Args in) {
        // In f64: of 1 - b^t little is left while t is small.
        Type f64 = body.getF64Type();
        Scalar t(body, arith::SIToFPOp::create(body, f64, in[0]), f64);
        return Values{(1 - pow(a, t)).getValue(), (1 - pow(b, t)).getValue()};
      }));
  for (Value &input : MutableArrayRef(inputs).drop_front(4))
    input = core.broadcast(input, {}, w);
  SmallVector<Type> types(getResultTypes());
  results = core.map(inputs, types, [&](Body body, Args in) {
    auto at = [&](unsigned i) { return Scalar(body, in[i], wide); };
    Scalar weight = at(0), grad = at(3) * at(4);
    Scalar mean = at(1) * a + grad * (1 - a);
    Scalar square = at(2) * b + grad * grad * (1 - b);
    Scalar move = mean / at(6) / (sqrt(square / at(7)) + epsilon);
    Scalar next = weight - (move + weight * decay) * at(5);
    return Values{next.getValue(), mean.getValue(), square.getValue()};
  });
  return success();
}

//===----------------------------------------------------------------------===//
// Normalizations
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxOp::decompose(OpBuilder &builder,
                                   SmallVectorImpl<Value> &results) {
  Core core(builder, *this);
  Value x = getInput();
  int64_t dim = getDim();
  Value max = core.reduce(Combiner::Max, x, dim);
  if (!max)
    return failure();
  Value exp = core.map({x, core.broadcastBack(max, dim, x)},
                       core.like(x, core.wide(x)), [&](Body b, Args in) {
                         return Values{math::ExpOp::create(
                             b, arith::SubFOp::create(b, in[0], in[1]))};
                       });
  Value sum = core.reduce(Combiner::Sum, exp, dim);
  results.push_back(core.map({exp, core.broadcastBack(sum, dim, x)},
                             core.result(), [&](Body b, Args in) {
                               return Values{
                                   arith::DivFOp::create(b, in[0], in[1])};
                             }));
  return success();
}

/// 1 / sqrt(mean over `dim` of the squares of `x` + epsilon), of the shape of
/// `x`.
static Value inverseDeviation(Core &core, Value x, int64_t dim,
                              double epsilon) {
  Value square = core.map(x, core.like(x, core.wide(x)), [&](Body b, Args in) {
    return Values{arith::MulFOp::create(b, in[0], in[0])};
  });
  Value sum = core.reduce(Combiner::Sum, square, dim);
  Value mean = sum ? core.divideByExtent(sum, x, dim) : Value();
  if (!mean)
    return {};
  Value inverse = core.map(
      mean, core.like(mean, Core::elementOf(mean)), [&](Body b, Args in) {
        Type type = in[0].getType();
        Value root = math::SqrtOp::create(
            b,
            arith::AddFOp::create(b, in[0], Core::constant(b, type, epsilon)));
        return Values{
            arith::DivFOp::create(b, Core::constant(b, type, 1), root)};
      });
  return core.broadcastBack(inverse, dim, x);
}

LogicalResult LayerNormOp::decompose(OpBuilder &builder,
                                     SmallVectorImpl<Value> &results) {
  Core core(builder, *this);
  Value x = getInput();
  Type wide = core.wide(x);
  int64_t last = getGlobalShape(x.getType()).size() - 1;
  // Two passes: the mean first, then the squares of what is left.
  Value wideX = x;
  if (Core::elementOf(x) != wide)
    wideX = core.map(x, core.like(x, wide),
                     [&](Body b, Args in) { return Values{in[0]}; });
  Value sum = core.reduce(Combiner::Sum, wideX, last);
  Value mean = sum ? core.divideByExtent(sum, x, last) : Value();
  if (!mean)
    return failure();
  Value centered =
      core.map({wideX, core.broadcastBack(mean, last, x)}, core.like(x, wide),
               [&](Body b, Args in) {
                 return Values{arith::SubFOp::create(b, in[0], in[1])};
               });
  Value inverse =
      inverseDeviation(core, centered, last, getEpsilon().convertToDouble());
  if (!inverse)
    return failure();
  results.push_back(
      core.map({centered, inverse, core.broadcast(getWeight(), {last}, x),
                core.broadcast(getBias(), {last}, x)},
               core.result(), [&](Body b, Args in) {
                 Value unit = arith::MulFOp::create(b, in[0], in[1]);
                 Value scaled = arith::MulFOp::create(b, unit, in[2]);
                 return Values{arith::AddFOp::create(b, scaled, in[3])};
               }));
  return success();
}

LogicalResult RmsNormOp::decompose(OpBuilder &builder,
                                   SmallVectorImpl<Value> &results) {
  Core core(builder, *this);
  Value x = getInput();
  int64_t last = getGlobalShape(x.getType()).size() - 1;
  Value inverse =
      inverseDeviation(core, x, last, getEpsilon().convertToDouble());
  if (!inverse)
    return failure();
  results.push_back(
      core.map({x, inverse, core.broadcast(getWeight(), {last}, x)},
               core.result(), [&](Body b, Args in) {
                 Value unit = arith::MulFOp::create(b, in[0], in[1]);
                 return Values{arith::MulFOp::create(b, unit, in[2])};
               }));
  return success();
}

//===----------------------------------------------------------------------===//
// With indices
//===----------------------------------------------------------------------===//

LogicalResult RopeOp::decompose(OpBuilder &builder,
                                SmallVectorImpl<Value> &results) {
  Core core(builder, *this);
  Value x = getInput();
  layout::Shape shape = getGlobalShape(x.getType());
  int64_t rank = shape.size(), last = rank - 1, width = shape[last];
  Type element = Core::elementOf(x);
  // The type of one half of the last dimension.
  SmallVector<int64_t> halfShape(shape.begin(), shape.end());
  halfShape[last] = width / 2;
  auto halfType = RankedTensorType::get(halfShape, element);
  if (auto local = dyn_cast_or_null<LocalAttr>(Core::typeOf(x).getEncoding())) {
    layout::View view = local.getLayoutView();
    if (int64_t(view.dims.size()) != rank ||
        !layout::axesOf(view.dims[last].product).empty())
      return emitOpError() << "cannot be decomposed on local types when its "
                              "last dimension is split; decompose it before";
    view.dims[last].product = {layout::Factor::rest()};
    std::vector<layout::Extent> extents = local.getExtents();
    extents[last] = width / 2;
    layout::Shape half(halfShape.begin(), halfShape.end());
    view = layout::canonicalize(view, half, local.getLayoutMesh());
    halfType = getLocalType(
        withEncoding(halfType, local.getView().with(std::move(view))),
        std::move(extents));
  }

  SmallVector<int64_t> offsets(rank, 0);
  Value low = SliceOp::create(builder, getLoc(), halfType, x, offsets);
  offsets[last] = width / 2;
  Value high = SliceOp::create(builder, getLoc(), halfType, x, offsets);
  Type f32 = builder.getF32Type();
  Value position = getPositions();
  if (position) {
    auto dims = llvm::to_vector(
        llvm::seq<int64_t>(getGlobalShape(position.getType()).size()));
    dims.back() = rank - 2;
    position = core.broadcast(position, dims, low);
  } else {
    position = core.iota(rank - 2, low, f32);
  }
  Value pair = core.iota(last, low, f32);
  double base = getBase().convertToDouble();
  SmallVector<Value> turned = core.map(
      {low, high, position, pair}, {halfType, halfType}, [&](Body b, Args in) {
        // Angles in f64: they are large, and only their fraction counts.
        Type f64 = b.getF64Type(), type = in[0].getType();
        Value exponent = arith::MulFOp::create(
            b, arith::ExtFOp::create(b, f64, in[3]),
            Core::constant(b, f64, -2 * std::log(base) / width));
        Value place = in[2].getType().isInteger()
                          ? Value(arith::SIToFPOp::create(b, f64, in[2]))
                          : arith::ExtFOp::create(b, f64, in[2]);
        Value angle =
            arith::MulFOp::create(b, place, math::ExpOp::create(b, exponent));
        Value cos = math::CosOp::create(b, angle);
        Value sin = math::SinOp::create(b, angle);
        if (type != f64) {
          cos = arith::TruncFOp::create(b, type, cos);
          sin = arith::TruncFOp::create(b, type, sin);
        }
        auto product = [&](Value a, Value c) -> Value {
          return arith::MulFOp::create(b, a, c);
        };
        return Values{
            arith::SubFOp::create(b, product(in[0], cos), product(in[1], sin)),
            arith::AddFOp::create(b, product(in[1], cos), product(in[0], sin))};
      });
  results.push_back(
      ConcatOp::create(builder, getLoc(), core.result(), turned, last));
  return success();
}

/// Whether neither comes first in the order of `tv.top_k`, but for indices.
static Value areLevel(Body b, Value x, Value y) {
  using Float = arith::CmpFPredicate;
  Value areNaN =
      arith::AndIOp::create(b, arith::CmpFOp::create(b, Float::UNO, x, x),
                            arith::CmpFOp::create(b, Float::UNO, y, y));
  return arith::OrIOp::create(b, arith::CmpFOp::create(b, Float::OEQ, x, y),
                              areNaN);
}

/// Whether the element x of index `at` comes after that of the last round.
static Value comesAfter(Body b, Value x, Value at, Value last, Value lastAt) {
  using Float = arith::CmpFPredicate;
  // Also a number after a NaN.
  Value isLess =
      arith::AndIOp::create(b, arith::CmpFOp::create(b, Float::ORD, x, x),
                            arith::CmpFOp::create(b, Float::ULT, x, last));
  Value isLater =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, at, lastAt);
  return arith::OrIOp::create(
      b, isLess, arith::AndIOp::create(b, areLevel(b, x, last), isLater));
}

// A round an element: the maximum of those that come after the last one, and
// the least of its indices.
LogicalResult TopKOp::decompose(OpBuilder &builder,
                                SmallVectorImpl<Value> &results) {
  Core core(builder, *this);
  Value x = getInput();
  const int64_t dim = getDim();
  const int64_t k = getGlobalShape(getValues().getType())[dim];
  Type number = Core::elementOf(getIndices());
  Value index = core.iota(dim, x, number);
  SmallVector<Value> values, indices; // of each round, as the results are
  SmallVector<Value> last;            // both of the last round, as the rows are
  SmallVector<int64_t> others;
  for (int64_t d = 0, e = getGlobalShape(x.getType()).size(); d < e; ++d)
    if (d != dim)
      others.push_back(d);
  for (int64_t round = 0; round < k; ++round) {
    SmallVector<Value> inputs = {x, index};
    llvm::append_range(inputs, last);
    auto isLeft = [](Body b, Args in) -> Value {
      if (in.size() > 2)
        return comesAfter(b, in[0], in[1], in[2], in[3]);
      return arith::ConstantOp::create(b, b.getBoolAttr(true));
    };
    Value left = core.map(inputs, core.like(x), [&](Body b, Args in) {
      Value none = Core::constant(b, in[0].getType(),
                                  -std::numeric_limits<double>::infinity());
      return Values{arith::SelectOp::create(b, isLeft(b, in), in[0], none)};
    });
    Value max = core.reduce(Combiner::Max, left, dim);
    if (!max)
      return failure();
    inputs.push_back(core.broadcastBack(max, dim, x));
    Value where = core.map(inputs, core.like(x, number), [&](Body b, Args in) {
      Value isTop = arith::AndIOp::create(b, isLeft(b, in.drop_back()),
                                          areLevel(b, in[0], in.back()));
      Value none = arith::ConstantOp::create(
          b, b.getIntegerAttr(number, number.isInteger(32) ? int64_t(INT32_MAX)
                                                           : INT64_MAX));
      return Values{arith::SelectOp::create(b, isTop, in[1], none)};
    });
    Value at = core.reduce(Combiner::Min, where, dim);
    last = {core.broadcastBack(max, dim, x), core.broadcastBack(at, dim, x)};
    for (auto [list, value, result] : {std::tuple(&values, max, getValues()),
                                       std::tuple(&indices, at, getIndices())})
      list->push_back(BroadcastOp::create(builder, getLoc(), core.like(result),
                                          value, others, Value()));
  }
  // Each result has round i at index i.
  Value place = core.iota(dim, indices[0], number);
  for (SmallVector<Value> *list : {&values, &indices}) {
    Value result = getResult(results.size());
    SmallVector<Value> inputs = *list;
    inputs.push_back(place);
    results.push_back(
        core.map(inputs, Core::typeOf(result), [&](Body b, Args in) {
          Value chosen = in[0];
          for (int64_t round = 1; round < k; ++round) {
            Value isIt = arith::CmpIOp::create(
                b, arith::CmpIPredicate::eq, in.back(),
                arith::ConstantOp::create(b, b.getIntegerAttr(number, round)));
            chosen = arith::SelectOp::create(b, isIt, in[round], chosen);
          }
          return Values{chosen};
        }));
  }
  return success();
}

LogicalResult CrossEntropyOp::decompose(OpBuilder &builder,
                                        SmallVectorImpl<Value> &results) {
  Core core(builder, *this);
  Value x = getLogits();
  Type wide = core.wide(x);
  int64_t last = getGlobalShape(x.getType()).size() - 1;
  Value max = core.reduce(Combiner::Max, x, last);
  if (!max)
    return failure();
  Value index = core.iota(last, x, Core::elementOf(getLabels()));
  Value label = core.broadcastBack(getLabels(), last, x);
  SmallVector<Value> parts = core.map(
      {x, core.broadcastBack(max, last, x), index, label},
      {core.like(x, wide), core.like(x, wide)}, [&](Body b, Args in) {
        Value below = arith::SubFOp::create(b, in[0], in[1]);
        Value isLabel =
            arith::CmpIOp::create(b, arith::CmpIPredicate::eq, in[2], in[3]);
        Value zero = Core::constant(b, below.getType(), 0);
        return Values{math::ExpOp::create(b, below),
                      arith::SelectOp::create(b, isLabel, below, zero)};
      });
  Value sum = core.reduce(Combiner::Sum, parts[0], last);
  Value own = core.reduce(Combiner::Sum, parts[1], last);
  SmallVector<Value> inputs = {sum, own, getLabels()};
  int64_t classes = getGlobalShape(x.getType())[last];
  if (classes == layout::kDynamic)
    inputs.push_back(
        core.extentLike(getLabels(), Core::elementOf(getLabels()), x, last));
  results.push_back(core.map(inputs, core.result(), [&](Body b, Args in) {
    Value count = in.size() > 3
                      ? in[3]
                      : arith::ConstantOp::create(
                            b, b.getIntegerAttr(in[2].getType(), classes));
    // A label below 0 is a large unsigned number.
    Value isClass =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, in[2], count);
    Value loss = arith::SubFOp::create(b, math::LogOp::create(b, in[0]), in[1]);
    return Values{arith::SelectOp::create(
        b, isClass, loss, Core::constant(b, loss.getType(), 0))};
  }));
  if (getLse())
    results.push_back(
        core.map({max, sum}, Core::typeOf(getLse()), [&](Body b, Args in) {
          return Values{
              arith::AddFOp::create(b, in[0], math::LogOp::create(b, in[1]))};
        }));
  return success();
}

//===----------------------------------------------------------------------===//
// Errors in data
//===----------------------------------------------------------------------===//

static Value number(Body b, int64_t value) {
  return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
}

/// As what is not in [0, end]: a number below 0 is a large unsigned one.
static Value isBeyond(Body b, Value x, Value end) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, x, end);
}

/// 1 where the first of these is so, else 2 where the second is, and so on.
static Value getFirst(Body b, Args errors) {
  Value first = number(b, 0);
  for (size_t i = errors.size(); i-- > 0;)
    first = arith::SelectOp::create(b, errors[i], number(b, i + 1), first);
  return first;
}

LogicalResult SequenceErrorsOp::inferExtents(
    ArrayRef<std::vector<layout::Extent>> operands,
    SmallVectorImpl<std::vector<layout::Extent>> &results, std::string &) {
  results.push_back(operands[0]);
  return success();
}

LogicalResult SequenceErrorsOp::decompose(OpBuilder &builder,
                                          SmallVectorImpl<Value> &results) {
  Core core(builder, *this);
  Value begins = getBegins();
  const int64_t last = getGlobalShape(begins.getType())[1] - 1;
  auto indices = RankedTensorType::get({last + 1}, builder.getI32Type());
  Value index = IotaOp::create(builder, getLoc(), indices, 0, /*like=*/Value());
  // What is so far from each bound; the first has itself before it, the last
  // itself behind.
  auto gather = [&](Value from, int64_t by) -> Value {
    Value at = core.map(index, indices, [&](Body b, Args in) {
      Value moved = arith::AddIOp::create(b, in[0], number(b, by));
      moved = arith::MaxSIOp::create(b, moved, number(b, 0));
      return Values{arith::MinSIOp::create(b, moved, number(b, last))};
    });
    return GatherOp::create(builder, getLoc(), core.like(begins), from, at, 1);
  };
  SmallVector<Value> inputs = {begins, gather(begins, -1)};
  if (getUsed()) // behind the last sequence 0, as of any index outside
    inputs.append({gather(begins, 1), gather(getUsed(), 0)});
  results.push_back(core.map(inputs, core.result(), [&](Body b, Args in) {
    Values errors = {
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, in[0], in[1]),
        isBeyond(b, in[0], number(b, getTokens()))};
    if (in.size() > 2) {
      // (It wraps only where a bound is below 0.)
      Value place = arith::SubIOp::create(
          b, arith::MaxSIOp::create(b, in[2], in[0]), in[0]);
      errors.push_back(isBeyond(b, in[3], place));
    }
    return Values{getFirst(b, errors)};
  }));
  return success();
}

LogicalResult PageErrorsOp::inferExtents(
    ArrayRef<std::vector<layout::Extent>> operands,
    SmallVectorImpl<std::vector<layout::Extent>> &results, std::string &why) {
  if (operands[0][0] != operands[1][0]) {
    why = "has a table of " + layout::toString(operands[0][0]) +
          " sequences and lengths of " + layout::toString(operands[1][0]);
    return failure();
  }
  results.push_back(operands[1]);
  return success();
}

// How often each page is needed: once, or it is an error.
LogicalResult PageErrorsOp::decompose(OpBuilder &builder,
                                      SmallVectorImpl<Value> &results) {
  Core core(builder, *this);
  Value table = getTable();
  Type i32 = builder.getI32Type();
  Value length = core.broadcast(getLengths(), {0}, table);
  Value place = core.iota(1, table, i32);
  auto isNeeded = [&](Body b, Value place, Value length) -> Value {
    Value first = arith::MulIOp::create(b, place, number(b, getPage()));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, first, length);
  };
  Value needed =
      core.map({place, length, table}, core.like(table), [&](Body b, Args in) {
        return Values{arith::SelectOp::create(b, isNeeded(b, in[0], in[1]),
                                              in[2], number(b, -1))};
      });
  auto splat = [&](int64_t value, RankedTensorType type, Value like) -> Value {
    auto scalar = RankedTensorType::get({}, i32);
    return ConstantOp::create(
        builder, getLoc(), type,
        DenseElementsAttr::get(scalar, builder.getI32IntegerAttr(value)), like);
  };
  auto pages = RankedTensorType::get({int64_t(getPages())}, i32);
  Value zeros = splat(0, pages, Value());
  Value ones = splat(1, core.like(table), core.likeIfDynamic(table));
  Value uses = ScatterOp::create(builder, getLoc(), pages, Update::Sum, zeros,
                                 needed, ones, 0);
  // (0 of a page that is not there.)
  Value times =
      GatherOp::create(builder, getLoc(), core.like(table), uses, needed, 0);
  enum { Twice = 1, Missing }; // the worse is larger
  Value found =
      core.map({place, length, times}, core.like(table), [&](Body b, Args in) {
        using Int = arith::CmpIPredicate;
        Value one = number(b, 1);
        Value error =
            getFirst(b, {arith::CmpIOp::create(b, Int::sgt, in[2], one),
                         arith::CmpIOp::create(b, Int::slt, in[2], one)});
        return Values{arith::SelectOp::create(b, isNeeded(b, in[0], in[1]),
                                              error, number(b, 0))};
      });
  Value worst = core.reduce(Combiner::Max, found, 1);
  if (!worst)
    return failure();
  const int64_t room = getGlobalShape(table.getType())[1] * getPage();
  results.push_back(
      core.map({getLengths(), worst}, core.result(), [&](Body b, Args in) {
        auto is = [&](int64_t error) -> Value {
          return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, in[1],
                                       number(b, error));
        };
        return Values{getFirst(
            b, {isBeyond(b, in[0], number(b, room)), is(Missing), is(Twice)})};
      }));
  return success();
}
