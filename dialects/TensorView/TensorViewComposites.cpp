//===- TensorViewComposites.cpp - composites in terms of core ops --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scalars are computed in f32 (f64 for f64) and rounded to the op's type once,
// at the end. Values in between have no encoding, so that propagation decides
// theirs; on local types they get the local type that follows from the op's.
//
//===----------------------------------------------------------------------===//

#include "TensorView/TensorView.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

/// The type of `type` without dimensions `dropped`, with other elements. Null
/// when `type` is local and a dropped dimension is split or flat.
static RankedTensorType without(RankedTensorType type,
                                ArrayRef<int64_t> dropped, Type element) {
  auto keep = [&](int64_t dim) { return !llvm::is_contained(dropped, dim); };
  layout::Shape shape = getGlobalShape(type);
  SmallVector<int64_t> kept;
  for (int64_t d = 0, e = shape.size(); d < e; ++d)
    if (keep(d))
      kept.push_back(shape[d]);
  auto local = dyn_cast_or_null<LocalAttr>(type.getEncoding());
  if (!local)
    return RankedTensorType::get(kept, element);
  if (dropped.empty())
    return RankedTensorType::get(type.getShape(), element, local);

  const layout::View &from = local.getLayoutView();
  if (from.dims.size() != shape.size())
    return {};
  layout::View to = from;
  to.dims.clear();
  std::vector<layout::Extent> extents;
  for (int64_t d = 0, e = shape.size(); d < e; ++d) {
    if (!keep(d)) {
      if (!layout::axesOf(from.dims[d].product).empty())
        return {};
      continue;
    }
    to.dims.push_back(from.dims[d]);
    extents.push_back(local.getExtents()[d]);
  }
  if (from.alloc) {
    to.alloc.emplace();
    for (int64_t d : *from.alloc)
      if (keep(d))
        to.alloc->push_back(
            d - llvm::count_if(dropped, [&](int64_t x) { return x < d; }));
  }
  auto global = RankedTensorType::get(kept, element, local.getView().with(to));
  return getLocalType(global, std::move(extents));
}

namespace {
/// Builds core ops at an op's place.
class Core {
public:
  Core(OpBuilder &builder, Operation *op)
      : builder(builder), op(op), loc(op->getLoc()) {}

  OpBuilder &builder;
  Operation *op;
  Location loc;

  static RankedTensorType typeOf(Value value) {
    return cast<RankedTensorType>(value.getType());
  }
  static Type elementOf(Value value) { return typeOf(value).getElementType(); }
  Type wide(Value value) {
    Type element = elementOf(value);
    return element.isF64() ? element : builder.getF32Type();
  }
  /// The type of `value` with other elements and, if global, no encoding.
  RankedTensorType like(Value value, Type element) {
    return without(typeOf(value), {}, element);
  }
  RankedTensorType result() { return typeOf(op->getResult(0)); }

  /// A map whose body computes its results from wide arguments: narrow floats
  /// come as f32 and results are rounded.
  using Body =
      function_ref<SmallVector<Value>(ImplicitLocOpBuilder &, ArrayRef<Value>)>;
  SmallVector<Value> map(ValueRange inputs, ArrayRef<Type> results, Body body) {
    auto map = MapOp::create(builder, loc, results, inputs);
    Block &block = map.getBody().emplaceBlock();
    for (Value input : inputs)
      block.addArgument(getScalarType(elementOf(input)), loc);
    ImplicitLocOpBuilder b(loc, builder.getContext());
    b.setInsertionPointToEnd(&block);
    SmallVector<Value> arguments;
    for (Value argument : block.getArguments())
      arguments.push_back(
          isa<BFloat16Type, Float16Type>(argument.getType())
              ? arith::ExtFOp::create(b, b.getF32Type(), argument)
              : argument);
    SmallVector<Value> values = body(b, arguments);
    for (auto [value, type] : llvm::zip_equal(values, results)) {
      Type element =
          getScalarType(cast<RankedTensorType>(type).getElementType());
      if (value.getType() != element)
        value = arith::TruncFOp::create(b, element, value);
    }
    YieldOp::create(b, values);
    return SmallVector<Value>(map.getResults());
  }
  Value map(ValueRange inputs, Type result, Body body) {
    return map(inputs, ArrayRef<Type>(result), body)[0];
  }

  /// Reduces `dim`; null, with an error at the op, when a device has only a
  /// part of it.
  Value reduce(Combiner combiner, Value input, int64_t dim) {
    RankedTensorType type = without(typeOf(input), {dim}, elementOf(input));
    if (!type) {
      op->emitOpError() << "cannot be decomposed on local types when dimension "
                        << dim << " is split; decompose it before";
      return {};
    }
    return ReduceOp::create(builder, loc, type, combiner, input,
                            ArrayRef<int64_t>{dim});
  }

  /// `value` repeated along the dimensions of `shape` that are not in `dims`.
  Value broadcast(Value value, ArrayRef<int64_t> dims, Value shape) {
    layout::Shape extents = getGlobalShape(shape.getType());
    bool dynamic = false;
    for (auto [d, extent] : llvm::enumerate(extents))
      dynamic |=
          extent == layout::kDynamic && !llvm::is_contained(dims, int64_t(d));
    return BroadcastOp::create(builder, loc, like(shape, elementOf(value)),
                               value, dims, dynamic ? shape : Value());
  }
  /// `value`, reduced over `dim`, repeated along it.
  Value broadcastBack(Value value, int64_t dim, Value shape) {
    SmallVector<int64_t> dims;
    for (int64_t d = 0, e = getGlobalShape(shape.getType()).size(); d < e; ++d)
      if (d != dim)
        dims.push_back(d);
    return broadcast(value, dims, shape);
  }

  Value iota(int64_t dim, Value shape, Type element) {
    return IotaOp::create(builder, loc, like(shape, element), dim,
                          likeIfDynamic(shape));
  }
  Value likeIfDynamic(Value shape) {
    return llvm::is_contained(getGlobalShape(shape.getType()), layout::kDynamic)
               ? shape
               : Value();
  }

  /// The extent of `dim` of `shape`, as `element` everywhere in what is like
  /// `value`.
  Value extentLike(Value value, Type element, Value shape, int64_t dim) {
    auto scalar = RankedTensorType::get({}, element);
    if (auto local = dyn_cast_or_null<LocalAttr>(typeOf(shape).getEncoding())) {
      layout::View whole; // on every device
      if (local.getLayoutView().alloc)
        whole.alloc.emplace();
      scalar = getLocalType(
          RankedTensorType::get({}, element, local.getView().with(whole)), {});
    }
    Value size = SizeOp::create(builder, loc, scalar, shape, dim);
    return broadcast(size, {}, value);
  }

  /// `numerator` over the extent of `dim` of `shape`.
  Value divideByExtent(Value numerator, Value shape, int64_t dim) {
    int64_t extent = getGlobalShape(shape.getType())[dim];
    if (extent != layout::kDynamic)
      return map(numerator, like(numerator, elementOf(numerator)),
                 [&](ImplicitLocOpBuilder &b, ArrayRef<Value> x) {
                   return SmallVector<Value>{arith::DivFOp::create(
                       b, x[0], constant(b, x[0].getType(), extent))};
                 });
    Value sizes = extentLike(numerator, elementOf(numerator), shape, dim);
    return map({numerator, sizes}, like(numerator, elementOf(numerator)),
               [&](ImplicitLocOpBuilder &b, ArrayRef<Value> x) {
                 return SmallVector<Value>{
                     arith::DivFOp::create(b, x[0], x[1])};
               });
  }

  static Value constant(ImplicitLocOpBuilder &b, Type type, double value) {
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  }
};
} // namespace

using Body = ImplicitLocOpBuilder &;
using Args = ArrayRef<Value>;
using Values = SmallVector<Value>;

//===----------------------------------------------------------------------===//
// Pointwise
//===----------------------------------------------------------------------===//

LogicalResult DropoutOp::decompose(OpBuilder &builder,
                                   SmallVectorImpl<Value> &results) {
  Core core(builder, *this);
  Value random = RandomOp::create(
      builder, getLoc(), core.like(getInput(), builder.getF32Type()), getSeed(),
      getStream(), core.likeIfDynamic(getInput()));
  double rate = getRate().convertToDouble();
  results.push_back(
      core.map({getInput(), random}, core.result(), [&](Body b, Args in) {
        // Numbers are multiples of 2^-24: the least that is not below the rate.
        const double least = std::ceil(rate * 0x1p24) * 0x1p-24;
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
  Value position = core.iota(rank - 2, low, f32);
  Value pair = core.iota(last, low, f32);
  double base = getBase().convertToDouble();
  SmallVector<Value> turned = core.map(
      {low, high, position, pair}, {halfType, halfType}, [&](Body b, Args in) {
        // Angles in f64: they are large, and only their fraction counts.
        Type f64 = b.getF64Type(), type = in[0].getType();
        Value exponent = arith::MulFOp::create(
            b, arith::ExtFOp::create(b, f64, in[3]),
            Core::constant(b, f64, -2 * std::log(base) / width));
        Value angle =
            arith::MulFOp::create(b, arith::ExtFOp::create(b, f64, in[2]),
                                  math::ExpOp::create(b, exponent));
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
  return success();
}
