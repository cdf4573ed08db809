//===- TensorViewConvolutions.cpp - products and pools of windows --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Windows are a gather: at indices that are computed, over all their dimensions
// at once. So a product sees one matrix, and borders are indices outside.
//
//===----------------------------------------------------------------------===//

#include "TensorView/TensorViewConvolutions.h"
#include "TensorView/CoreBuilder.h"
#include "TensorView/TensorViewVerify.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using namespace tessera::tv::checks;

using Body = ImplicitLocOpBuilder &;
using Args = ArrayRef<Value>;
using Values = SmallVector<Value>;

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

SmallVector<Window> tv::getWindows(ConvOp op) {
  return getWindows(op, ArrayRef(shapeOf(op.getWeight())).drop_front(2));
}

SmallVector<Window> tv::getWindows(PoolOp op) {
  return getWindows(op, op.getSizes());
}

/// Of an op with windows over the last dimensions of its input.
template <typename Op>
static LogicalResult verifyWindows(Op op, ArrayRef<int64_t> sizes) {
  const int64_t count = sizes.size();
  using List = std::optional<ArrayRef<int64_t>>;
  for (auto [list, name, least] :
       {std::tuple(List(sizes), "sizes", 1),
        std::tuple(op.getStrides(), "strides", 1),
        std::tuple(op.getLow(), "low", 0), std::tuple(op.getHigh(), "high", 0),
        std::tuple(op.getDilations(), "dilations", 1)}) {
    if (!list)
      continue;
    if (failed(verifyDense(op, *list, name, count)))
      return failure();
    for (int64_t number : *list)
      if (number < least || number > INT32_MAX)
        return op.emitOpError() << "'" << name << "' must be in [" << least
                                << ", 2^31): " << number;
  }
  layout::Shape in = shapeOf(op.getInput()), out = shapeOf(op.getResult());
  const size_t first = in.size() - count;
  for (auto [i, window] : llvm::enumerate(getWindows(op))) {
    const size_t d = first + i;
    if (isDynamic(in[d]))
      return op.emitOpError() << "moves windows over dimension " << d
                              << ", which must be static";
    const int64_t last = in[d] + window.low + window.high - window.span();
    if (last < 0)
      return op.emitOpError()
             << "has a window of " << window.span() << " values in dimension "
             << d << ", which has " << in[d] + window.low + window.high
             << " with its borders";
    const int64_t windows = last / window.stride + 1;
    if (out[d] != windows)
      return op.emitOpError() << "result's dimension " << d << " has extent "
                              << extentText(out[d]) << "; it must be "
                              << windows << ", the number of windows";
  }
  return success();
}

/// The elements of all windows over the last dimensions of `x`: of those
/// [F..., I...] it is [F..., K..., O...]. Borders are `outside`.
static Value gatherWindows(Core &core, Value x, ArrayRef<Window> windows,
                           ArrayRef<int64_t> counts, double outside) {
  OpBuilder &builder = core.builder;
  layout::Shape shape = getGlobalShape(x.getType());
  const size_t rank = windows.size(), first = shape.size() - rank;
  ArrayRef<int64_t> extents = ArrayRef(shape).drop_front(first);
  int64_t all = 1;
  bool hasBorders = false;
  SmallVector<int64_t> places; // [K..., O...]
  for (auto [extent, window] : llvm::zip_equal(extents, windows)) {
    all *= extent;
    hasBorders |= window.low || window.high;
    places.push_back(window.size);
  }
  llvm::append_range(places, counts);

  Type number = all > INT32_MAX ? builder.getI64Type() : builder.getI32Type();
  auto indices = RankedTensorType::get(places, number);
  Values digits;
  for (size_t d = 0; d < places.size(); ++d)
    digits.push_back(
        IotaOp::create(builder, core.loc, indices, d, /*like=*/Value()));
  Value index = core.map(digits, indices, [&](Body b, Args in) {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, b.getIntegerAttr(number, value));
    };
    Value at = constant(0);
    Value inside = arith::ConstantOp::create(b, b.getBoolAttr(true));
    for (auto [i, window] : llvm::enumerate(windows)) {
      Value k = arith::MulIOp::create(b, in[i], constant(window.dilation));
      Value o = arith::MulIOp::create(b, in[rank + i], constant(window.stride));
      Value from = arith::SubIOp::create(b, arith::AddIOp::create(b, o, k),
                                         constant(window.low));
      // One before the first is a large unsigned number.
      Value isHere = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, from,
                                           constant(extents[i]));
      inside = arith::AndIOp::create(b, inside, isHere);
      at = arith::AddIOp::create(
          b, arith::MulIOp::create(b, at, constant(extents[i])), from);
    }
    return Values{
        hasBorders ? arith::SelectOp::create(b, inside, at, constant(-1)) : at};
  });

  SmallVector<int64_t> flat(ArrayRef(shape).take_front(first));
  SmallVector<int64_t> gathered = flat;
  flat.push_back(all);
  llvm::append_range(gathered, places);
  Type element = Core::elementOf(x);
  if (rank > 1)
    x = ReshapeOp::create(builder, core.loc,
                          RankedTensorType::get(flat, element), x);
  auto type = RankedTensorType::get(gathered, element);
  Value result = GatherOp::create(builder, core.loc, type, x, index, first);
  if (!hasBorders || outside == 0)
    return result;
  auto dims = llvm::to_vector(llvm::seq<int64_t>(first, gathered.size()));
  return core.map(
      {result, core.broadcast(index, dims, result)}, type,
      [&](Body b, Args in) {
        Value zero =
            arith::ConstantOp::create(b, b.getZeroAttr(in[1].getType()));
        Value isOutside =
            arith::CmpIOp::create(b, arith::CmpIPredicate::slt, in[1], zero);
        return Values{arith::SelectOp::create(
            b, isOutside, Core::constant(b, in[0].getType(), outside), in[0])};
      });
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

LogicalResult ConvOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getInput(), "input", kFloats)) ||
      failed(verifySameElement(*this, getOperands())) ||
      failed(verifySameElement(*this, {getInput(), getResult()})) ||
      failed(verifyRankAtLeast(*this, getInput(), "input", 3)) ||
      failed(verifyRank(*this, getWeight(), "weight", rankOf(getInput()))) ||
      failed(verifyRank(*this, getResult(), "result", rankOf(getInput()))) ||
      (getBias() && failed(verifyRank(*this, getBias(), "bias", 1))))
    return failure();
  layout::Shape in = shapeOf(getInput()), weight = shapeOf(getWeight());
  layout::Shape out = shapeOf(getResult());
  for (auto [shape, name] :
       {std::pair(&in, "input"), std::pair(&weight, "weight")})
    for (size_t d = *name == 'i' ? 1 : 0; d < shape->size(); ++d)
      if (isDynamic((*shape)[d]))
        return emitOpError() << name << "'s dimension " << d
                             << " is dynamic; only a batch may be";
  const int64_t groups = getGroups().value_or(1);
  if (groups < 1 || weight[0] % groups != 0)
    return emitOpError() << "has " << groups << " groups, which do not divide "
                         << "the weight's " << weight[0] << " results";
  if (in[1] != weight[1] * groups)
    return emitOpError() << "input has " << in[1] << " channels; the weight "
                         << "needs " << weight[1] * groups;
  if (out[0] != in[0])
    return emitOpError() << "result's dimension 0 has extent "
                         << extentText(out[0]) << "; it must be "
                         << extentText(in[0]) << ", the batch";
  for (auto [value, d, name] : {std::tuple(Value(getResult()), 1, "result"),
                                std::tuple(Value(getBias()), 0, "bias")})
    if (value && shapeOf(value)[d] != weight[0])
      return emitOpError() << name << "'s dimension " << d << " has extent "
                           << extentText(shapeOf(value)[d]) << "; it must be "
                           << weight[0] << ", as the weight's dimension 0 has";
  return verifyWindows(*this, ArrayRef(weight).drop_front(2));
}

/// The result's own extents, which the verifier checks, with the first ones of
/// the operand where windows are not moved.
static std::vector<layout::Extent>
inferWindows(Value result, ArrayRef<layout::Extent> input, size_t kept) {
  std::vector<layout::Extent> extents;
  for (auto [d, extent] : llvm::enumerate(shapeOf(result)))
    extents.push_back(d < kept ? input[d] : layout::Extent(extent));
  return extents;
}

LogicalResult
ConvOp::inferExtents(ArrayRef<std::vector<layout::Extent>> operands,
                     SmallVectorImpl<std::vector<layout::Extent>> &results,
                     std::string &) {
  results.push_back(inferWindows(getResult(), operands[0], 1));
  return success();
}

LogicalResult ConvOp::decompose(OpBuilder &builder,
                                SmallVectorImpl<Value> &results) {
  Core core(builder, *this);
  layout::Shape out = shapeOf(getResult()), kernel = shapeOf(getWeight());
  SmallVector<Window> moved = getWindows(*this);
  const int32_t rank = moved.size();
  const int64_t groups = getGroups().value_or(1);
  Value windows =
      gatherWindows(core, getInput(), moved, ArrayRef(out).drop_front(2), 0);
  Value weight = getWeight();
  Type element = Core::elementOf(weight);

  // Labels: 0 the batch, 1 results, 2 channels, 3 groups, then K and O.
  SmallVector<int32_t> ofWeight = {1, 2}, ofWindows = {0, 2}, ofResult = {0, 1};
  layout::Shape made = out;
  if (groups > 1) {
    auto split = [&](Value value, size_t dim) -> Value {
      layout::Shape to = shapeOf(value);
      to[dim] /= groups;
      to.insert(to.begin() + dim, groups);
      return ReshapeOp::create(builder, getLoc(),
                               RankedTensorType::get(to, element), value);
    };
    windows = split(windows, 1);
    weight = split(weight, 0);
    ofWeight.insert(ofWeight.begin(), 3);
    ofWindows.insert(ofWindows.begin() + 1, 3);
    ofResult.insert(ofResult.begin() + 1, 3);
    made[1] /= groups;
    made.insert(made.begin() + 1, groups);
  }
  for (int32_t i = 0; i < rank; ++i)
    ofWeight.push_back(4 + i);
  for (int32_t i = 0; i < 2 * rank; ++i)
    ofWindows.push_back(4 + i);
  for (int32_t i = rank; i < 2 * rank; ++i)
    ofResult.push_back(4 + i);

  // With a bias the sum is rounded after it.
  Type summed = getBias() ? core.wide(weight) : element;
  Value product = ContractOp::create(
      builder, getLoc(), RankedTensorType::get(made, summed), weight, windows,
      /*bias=*/Value(), /*addend=*/Value(), ofWeight, ofWindows, ofResult);
  if (groups > 1)
    product = ReshapeOp::create(builder, getLoc(),
                                RankedTensorType::get(out, summed), product);
  if (getBias())
    product = core.map({product, core.broadcast(getBias(), {1}, product)},
                       core.result(), [&](Body b, Args in) {
                         return Values{arith::AddFOp::create(b, in[0], in[1])};
                       });
  results.push_back(product);
  return success();
}

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

LogicalResult PoolOp::verify() {
  const int64_t count = getSizes().size();
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getInput(), "input", kFloats)) ||
      failed(verifySameElement(*this, {getInput(), getResult()})) ||
      failed(verifyRankAtLeast(*this, getInput(), "input", count)) ||
      failed(verifyRank(*this, getResult(), "result", rankOf(getInput()))))
    return failure();
  if (count == 0)
    return emitOpError() << "'sizes' must have a number for each dimension "
                            "that windows move over";
  layout::Shape in = shapeOf(getInput()), out = shapeOf(getResult());
  for (size_t d = 0; d < in.size() - count; ++d)
    if (out[d] != in[d])
      return emitOpError() << "result's dimension " << d << " has extent "
                           << extentText(out[d]) << "; it must be "
                           << extentText(in[d]) << ", as the input's has";
  return verifyWindows(*this, getSizes());
}

LogicalResult
PoolOp::inferExtents(ArrayRef<std::vector<layout::Extent>> operands,
                     SmallVectorImpl<std::vector<layout::Extent>> &results,
                     std::string &) {
  results.push_back(inferWindows(getResult(), operands[0],
                                 operands[0].size() - getSizes().size()));
  return success();
}

LogicalResult PoolOp::decompose(OpBuilder &builder,
                                SmallVectorImpl<Value> &results) {
  Core core(builder, *this);
  layout::Shape out = shapeOf(getResult());
  const size_t rank = getSizes().size(), first = out.size() - rank;
  const bool isMax = getPooling() == Pooling::Max;
  Value windows = gatherWindows(
      core, getInput(), getWindows(*this), ArrayRef(out).drop_front(first),
      isMax ? -std::numeric_limits<double>::infinity() : 0);
  Type element = Core::elementOf(windows), wide = core.wide(windows);
  if (!isMax && element != wide)
    windows = core.map(windows, core.like(windows, wide),
                       [&](Body, Args in) { return Values{in[0]}; });
  auto type = RankedTensorType::get(out, isMax ? element : wide);
  auto dims = llvm::to_vector(llvm::seq<int64_t>(first, first + rank));
  Value pooled =
      ReduceOp::create(builder, getLoc(), type,
                       isMax ? Combiner::Max : Combiner::Sum, windows, dims);
  if (!isMax) {
    int64_t count = 1;
    for (int64_t size : getSizes())
      count *= size;
    pooled = core.map(pooled, core.result(), [&](Body b, Args in) {
      return Values{arith::DivFOp::create(
          b, in[0], Core::constant(b, in[0].getType(), count))};
    });
  }
  results.push_back(pooled);
  return success();
}
