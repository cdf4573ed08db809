//===- TensorViewVerify.cpp - what makes an op legal ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op checks its element types, ranks and attributes, then `verifyExtents`
// reads the op's sharding rule: dimensions with the same factors have the same
// extent. Extents are those of the whole tensors, which local types carry too,
// so one check serves all phases; an extent that is not static agrees with any.
//
//===----------------------------------------------------------------------===//

#include "TensorView/TensorView.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

static Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}
static int64_t rankOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getRank();
}
static layout::Shape shapeOf(Value value) {
  return getGlobalShape(value.getType());
}

static bool isStored(Type type) {
  return isa<Float64Type, Float32Type, BFloat16Type, Float16Type,
             Float8E4M3FNType, Float8E5M2Type>(type) ||
         type.isSignlessInteger(64) || type.isSignlessInteger(32) ||
         type.isSignlessInteger(8) || type.isSignlessInteger(1) ||
         type.isUnsignedInteger(32) || type.isUnsignedInteger(8);
}
static bool isFloat(Type type) {
  return isa<Float64Type, Float32Type, BFloat16Type, Float16Type>(type);
}
/// All but f8 and i1, which are for storage and masks.
static bool isNumber(Type type) {
  return isFloat(type) || (isa<IntegerType>(type) && !type.isInteger(1));
}
static bool isIndex(Type type) {
  return type.isSignlessInteger(32) || type.isSignlessInteger(64);
}
static bool isCount(Type type) {
  return isIndex(type) || type.isF32() || type.isF64();
}

static bool isDynamic(int64_t extent) { return extent == layout::kDynamic; }

static std::string extentText(int64_t extent) {
  return isDynamic(extent) ? "?" : std::to_string(extent);
}

namespace {
/// A tensor among an op's operands and results, with its name in messages.
struct Place {
  Value value;
  std::string name;
};
} // namespace

static SmallVector<Place> placesOf(Operation *op) {
  SmallVector<Place> places;
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    places.push_back({operand, "operand #" + std::to_string(i)});
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    places.push_back({result, "result #" + std::to_string(i)});
  return places;
}

//===----------------------------------------------------------------------===//
// Checks that all ops share
//===----------------------------------------------------------------------===//

static MeshAttr meshOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return {};
  if (auto local = dyn_cast_or_null<LocalAttr>(tensor.getEncoding()))
    return local.getView().getMesh();
  ViewAttr view = getView(tensor);
  return view ? view.getMesh() : MeshAttr();
}

/// Element types that exist; encodings that are ours and fit each other; one
/// mesh.
static LogicalResult verifyTensors(Operation *op) {
  const Place *withMesh = nullptr;
  bool local = false, other = false;
  SmallVector<Place> places = placesOf(op);
  for (Region &region : op->getRegions())
    region.walk([&](LoadOp load) {
      places.push_back({load.getTensor(), "a captured tensor"});
    });
  for (const Place &place : places) {
    auto type = cast<RankedTensorType>(place.value.getType());
    if (!isStored(type.getElementType()))
      return op->emitOpError()
             << place.name << " has element type " << type.getElementType()
             << "; it must be one of f64, f32, bf16, f16, f8E4M3FN, f8E5M2, "
                "i64, i32, ui32, i8, ui8, i1";
    Attribute encoding = type.getEncoding();
    if (encoding && !isa<ViewAttr, LocalAttr>(encoding))
      return op->emitOpError()
             << place.name << " has an encoding that is neither #tv.view nor "
             << "#tv.local";
    (isa_and_nonnull<LocalAttr>(encoding) ? local : other) = true;
    MeshAttr mesh = meshOf(type);
    if (!mesh)
      continue;
    if (withMesh && meshOf(withMesh->value.getType()) != mesh)
      return op->emitOpError()
             << place.name << " lies on mesh " << mesh << ", but "
             << withMesh->name << " on " << meshOf(withMesh->value.getType())
             << "; all tensors of one op must lie on one mesh";
    if (!withMesh)
      withMesh = &place;
  }
  if (local && other)
    return op->emitOpError() << "mixes #tv.local tensors with global ones";
  return success();
}

/// Dimensions of the same factors have the same extent.
static LogicalResult verifyExtents(Operation *op) {
  layout::Rule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  struct Seen {
    int64_t extent;
    std::string name;
  };
  std::map<layout::DimFactors, Seen> seen;
  SmallVector<Place> places = placesOf(op);
  for (auto [i, place] : llvm::enumerate(places)) {
    const auto &dims = i < rule.operands.size()
                           ? rule.operands[i]
                           : rule.results[i - rule.operands.size()];
    layout::Shape shape = shapeOf(place.value);
    for (auto [d, factors] : llvm::enumerate(dims)) {
      bool shifted = llvm::any_of(factors, [&](int f) {
        return rule.factors[f].kind == layout::IterationFactor::Kind::Shifted;
      });
      if (factors.empty() || shifted || isDynamic(shape[d]))
        continue;
      auto [it, isNew] = seen.try_emplace(
          factors,
          Seen{shape[d], place.name + "'s dimension " + std::to_string(d)});
      if (!isNew && it->second.extent != shape[d])
        return op->emitOpError()
               << place.name << "'s dimension " << d << " has extent "
               << shape[d] << "; it must be " << it->second.extent << ", as "
               << it->second.name << " has";
    }
  }
  return success();
}

static LogicalResult verifyRank(Operation *op, Value value, StringRef name,
                                int64_t rank) {
  if (rankOf(value) == rank)
    return success();
  return op->emitOpError() << name << " has rank " << rankOf(value)
                           << "; it must be " << rank;
}

static LogicalResult verifyRankAtLeast(Operation *op, Value value,
                                       StringRef name, int64_t rank) {
  if (rankOf(value) >= rank)
    return success();
  return op->emitOpError() << name << " has rank " << rankOf(value)
                           << "; it must be at least " << rank;
}

static LogicalResult verifyDim(Operation *op, int64_t dim, Value value) {
  if (dim >= 0 && dim < rankOf(value))
    return success();
  return op->emitOpError() << "dim " << dim << " is not in [0, "
                           << rankOf(value) << ")";
}

static LogicalResult verifyElement(Operation *op, Value value, StringRef name,
                                   bool (*legal)(Type), StringRef right) {
  if (legal(elementOf(value)))
    return success();
  return op->emitOpError() << name << " has element type " << elementOf(value)
                           << "; it must be " << right;
}
static constexpr StringLiteral kFloats = "f64, f32, bf16 or f16";
static constexpr StringLiteral kNumbers = "a number, not f8 or i1";
static constexpr StringLiteral kIndices = "i32 or i64";
static constexpr StringLiteral kCounts = "i32, i64, f32 or f64";

/// All of `values` have the element type of the first.
static LogicalResult verifySameElement(Operation *op, ValueRange values) {
  for (Value value : values)
    if (elementOf(value) != elementOf(values[0]))
      return op->emitOpError()
             << "element type " << elementOf(value) << " must be "
             << elementOf(values[0]) << ", as the others";
  return success();
}

static LogicalResult verifyDense(Operation *op, ArrayRef<int64_t> list,
                                 StringRef name, int64_t size) {
  if (int64_t(list.size()) == size)
    return success();
  return op->emitOpError() << "'" << name << "' has " << list.size()
                           << " numbers; it must have " << size;
}

/// Ascending, in [0, rank).
static LogicalResult verifyAscending(Operation *op, ArrayRef<int64_t> dims,
                                     int64_t rank) {
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim < 0 || dim >= rank || (i && dim <= dims[i - 1]))
      return op->emitOpError()
             << "'dims' must ascend and be in [0, " << rank << ")";
  return success();
}

/// `like` gives the extents of the result, and does so where it must.
static LogicalResult verifyLike(Operation *op, Value like, Value result,
                                ArrayRef<int64_t> fromOperand = {}) {
  layout::Shape shape = shapeOf(result);
  if (!like) {
    for (auto [d, extent] : llvm::enumerate(shape))
      if (isDynamic(extent) && !llvm::is_contained(fromOperand, d))
        return op->emitOpError() << "result's dimension " << d
                                 << " is dynamic; 'like' must give its extent";
    return success();
  }
  layout::Shape likeShape = shapeOf(like);
  bool equal = likeShape.size() == shape.size();
  for (size_t d = 0; equal && d < shape.size(); ++d)
    equal = isDynamic(shape[d]) || isDynamic(likeShape[d]) ||
            shape[d] == likeShape[d];
  if (!equal)
    return op->emitOpError() << "'like' must have the shape of the result";
  return success();
}

//===----------------------------------------------------------------------===//
// Scalar regions
//===----------------------------------------------------------------------===//

/// Arguments and yielded values of the given types; only arith, math, tv.load;
/// nothing from outside but tensors that tv.load reads.
static LogicalResult verifyScalarRegion(Operation *op, Region &region,
                                        StringRef name, TypeRange arguments,
                                        TypeRange yields) {
  Block &block = region.front();
  if (block.getArgumentTypes() != arguments)
    return op->emitOpError() << name << " must have arguments (" << arguments
                             << "), not (" << block.getArgumentTypes() << ")";
  for (Operation &inner : block) {
    if (!isa<YieldOp, LoadOp>(inner) &&
        (!isa<arith::ArithDialect, math::MathDialect>(inner.getDialect()) ||
         llvm::any_of(inner.getResultTypes(), llvm::IsaPred<ShapedType>)))
      return inner.emitOpError()
             << "is not allowed in a scalar region of " << op->getName()
             << ", which holds scalar arith and math ops, "
                "tv.load and tv.yield";
    for (OpOperand &operand : inner.getOpOperands()) {
      bool captured = isa<LoadOp>(inner) && operand.getOperandNumber() == 0;
      bool outside = operand.get().getParentRegion() != &region;
      if (outside && !captured)
        return inner.emitOpError()
               << "uses a value from outside of the scalar region; only "
                  "tv.load may, to read a tensor";
    }
  }
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return op->emitOpError() << name << " must end in tv.yield";
  if (yield.getOperandTypes() != yields)
    return yield.emitOpError() << "must yield (" << yields << "), not ("
                               << yield.getOperandTypes() << ")";
  return success();
}

LogicalResult LoadOp::verify() {
  if (!isa_and_nonnull<TensorViewDialect>(
          (*this)->getParentOp() ? (*this)->getParentOp()->getDialect()
                                 : nullptr))
    return emitOpError() << "belongs in a scalar region of a tv op";
  if (int64_t(getIndices().size()) != rankOf(getTensor()))
    return emitOpError() << "has " << getIndices().size()
                         << " indices; the tensor has rank "
                         << rankOf(getTensor());
  Type scalar = getScalarType(elementOf(getTensor()));
  if (getType() != scalar)
    return emitOpError() << "result must be " << scalar;
  auto local = dyn_cast_or_null<LocalAttr>(getTensor().getType().getEncoding());
  if (local && !layout::axesOf(local.getLayoutView()).empty())
    return emitOpError() << "reads a tensor that is not whole on each device";
  return success();
}

//===----------------------------------------------------------------------===//
// Pointwise, reductions, broadcasts
//===----------------------------------------------------------------------===//

LogicalResult MapOp::verify() {
  if (getInputs().empty() || getResults().empty())
    return emitOpError() << "must have an operand and a result";
  if (failed(verifyTensors(*this)))
    return failure();
  for (const Place &place : placesOf(*this))
    if (failed(
            verifyRank(*this, place.value, place.name, rankOf(getInputs()[0]))))
      return failure();
  return verifyExtents(*this);
}

LogicalResult MapOp::verifyRegions() {
  SmallVector<Type> arguments, yields;
  for (Value input : getInputs())
    arguments.push_back(getScalarType(elementOf(input)));
  for (Value result : getResults())
    yields.push_back(getScalarType(elementOf(result)));
  return verifyScalarRegion(*this, getBody(), "the region", arguments, yields);
}

LogicalResult ReduceOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getInput(), "input", isNumber, kNumbers)) ||
      failed(verifySameElement(*this, {getInput(), getResult()})) ||
      failed(verifyAscending(*this, getDims(), rankOf(getInput()))) ||
      failed(verifyRank(*this, getResult(), "result",
                        rankOf(getInput()) - int64_t(getDims().size()))))
    return failure();
  return verifyExtents(*this);
}

LogicalResult BroadcastOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifySameElement(*this, {getInput(), getResult()})) ||
      failed(verifyDense(*this, getDims(), "dims", rankOf(getInput()))) ||
      failed(verifyAscending(*this, getDims(), rankOf(getResult()))) ||
      failed(verifyLike(*this, getLike(), getResult(), getDims())))
    return failure();
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

LogicalResult LinearOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getInput(), "input", isFloat, kFloats)) ||
      failed(verifyRankAtLeast(*this, getInput(), "input", 1)) ||
      failed(verifyRank(*this, getWeight(), "weight", 2)) ||
      failed(verifyRank(*this, getResult(), "result", rankOf(getInput()))) ||
      (getBias() && failed(verifyRank(*this, getBias(), "bias", 1))))
    return failure();
  SmallVector<Value> all(getOperands());
  all.push_back(getResult());
  if (failed(verifySameElement(*this, all)))
    return failure();
  return verifyExtents(*this);
}

LogicalResult MatmulOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getLhs(), "lhs", isFloat, kFloats)) ||
      failed(verifySameElement(*this, {getLhs(), getRhs(), getResult()})) ||
      failed(verifyRankAtLeast(*this, getLhs(), "lhs", 2)) ||
      failed(verifyRank(*this, getRhs(), "rhs", rankOf(getLhs()))) ||
      failed(verifyRank(*this, getResult(), "result", rankOf(getLhs()))))
    return failure();
  return verifyExtents(*this);
}

LogicalResult GroupedMatmulOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getInput(), "input", isFloat, kFloats)) ||
      failed(
          verifySameElement(*this, {getInput(), getWeight(), getResult()})) ||
      failed(verifyElement(*this, getCounts(), "counts", isIndex, kIndices)) ||
      failed(verifyRank(*this, getInput(), "input", 3)) ||
      failed(verifyRank(*this, getWeight(), "weight", 3)) ||
      failed(verifyRank(*this, getCounts(), "counts", 1)) ||
      failed(verifyRank(*this, getResult(), "result", 3)))
    return failure();
  return verifyExtents(*this);
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getQuery(), "query", isFloat, kFloats)) ||
      failed(verifySameElement(
          *this, {getQuery(), getKey(), getValue(), getResult()})) ||
      failed(verifyRank(*this, getQuery(), "query", 4)) ||
      failed(verifyRank(*this, getKey(), "key", 4)) ||
      failed(verifyRank(*this, getValue(), "value", 4)) ||
      failed(verifyRank(*this, getResult(), "result", 4)) ||
      failed(verifyRank(*this, getLse(), "lse", 3)))
    return failure();
  Type element = elementOf(getQuery());
  Type wide = element.isF64() ? element : Float32Type::get(getContext());
  if (elementOf(getLse()) != wide)
    return emitOpError() << "lse has element type " << elementOf(getLse())
                         << "; it must be " << wide;
  int64_t heads = shapeOf(getQuery())[1], groups = shapeOf(getKey())[1];
  if (isDynamic(heads) || isDynamic(groups))
    return emitOpError() << "the number of heads must be static";
  if (groups == 0 || heads % groups)
    return emitOpError() << "the key's " << groups
                         << " heads must divide the query's " << heads;
  return verifyExtents(*this);
}

LogicalResult AttentionOp::verifyRegions() {
  Type index = IndexType::get(getContext());
  Type wide = elementOf(getLse());
  Type boolean = IntegerType::get(getContext(), 1);
  if (!getScoreMod().empty() &&
      failed(verifyScalarRegion(*this, getScoreMod(), "score_mod",
                                {wide, index, index, index, index}, {wide})))
    return failure();
  if (getMaskMod().empty())
    return success();
  return verifyScalarRegion(*this, getMaskMod(), "mask_mod",
                            {index, index, index, index}, {boolean});
}

//===----------------------------------------------------------------------===//
// Same elements, other indices
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifySameElement(*this, {getInput(), getResult()})))
    return failure();
  auto count = [](Value value) {
    std::pair<int64_t, int64_t> r{0, 1}; // dynamic extents; product of others
    for (int64_t extent : shapeOf(value))
      isDynamic(extent) ? ++r.first : r.second *= extent;
    return r;
  };
  auto [dynamicIn, in] = count(getInput());
  auto [dynamicOut, out] = count(getResult());
  if (dynamicOut == dynamicIn && in == out)
    return success();
  if (!dynamicIn && !dynamicOut)
    return emitOpError() << "operand has " << in << " elements, result " << out;
  // One dynamic extent of the result takes what the others leave.
  if (dynamicIn && dynamicOut == 1 && out && (dynamicIn > 1 || in % out == 0))
    return success();
  if (dynamicOut == 1 && dynamicIn)
    return emitOpError() << "result's static extents (" << out
                         << ") must divide the operand's (" << in << ")";
  return emitOpError()
         << "cannot tell the result's dynamic extents: it must have as many as "
            "the operand and static extents of the same product, or one";
}

LogicalResult TransposeOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifySameElement(*this, {getInput(), getResult()})) ||
      failed(verifyDense(*this, getPerm(), "perm", rankOf(getInput()))) ||
      failed(verifyRank(*this, getResult(), "result", rankOf(getInput()))))
    return failure();
  SmallVector<bool> seen(getPerm().size());
  for (int64_t dim : getPerm())
    if (dim < 0 || dim >= int64_t(seen.size()) ||
        std::exchange(seen[dim], true))
      return emitOpError() << "'perm' must name each dimension once";
  return verifyExtents(*this);
}

LogicalResult SliceOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifySameElement(*this, {getInput(), getResult()})) ||
      failed(verifyDense(*this, getOffsets(), "offsets", rankOf(getInput()))) ||
      failed(verifyRank(*this, getResult(), "result", rankOf(getInput()))))
    return failure();
  layout::Shape in = shapeOf(getInput()), out = shapeOf(getResult());
  for (auto [d, offset] : llvm::enumerate(getOffsets())) {
    if (isDynamic(in[d]) || isDynamic(out[d])) {
      if (isDynamic(in[d]) != isDynamic(out[d]) || offset != 0)
        return emitOpError() << "must take dimension " << d
                             << ", which is dynamic, as a whole";
      continue;
    }
    if (offset < 0 || offset + out[d] > in[d])
      return emitOpError() << "takes [" << offset << ", " << offset + out[d]
                           << ") of dimension " << d << ", which has extent "
                           << in[d];
  }
  return verifyExtents(*this);
}

LogicalResult ConcatOp::verify() {
  if (getInputs().empty())
    return emitOpError() << "must have an operand";
  SmallVector<Value> all(getOperands());
  all.push_back(getResult());
  if (failed(verifyTensors(*this)) || failed(verifySameElement(*this, all)) ||
      failed(verifyDim(*this, getDim(), getResult())))
    return failure();
  int64_t sum = 0;
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    if (failed(verifyRank(*this, input, "operand #" + std::to_string(i),
                          rankOf(getResult()))))
      return failure();
    int64_t extent = shapeOf(input)[getDim()];
    sum = isDynamic(sum) || isDynamic(extent) ? layout::kDynamic : sum + extent;
  }
  if (shapeOf(getResult())[getDim()] != sum)
    return emitOpError() << "result's dimension " << getDim() << " has extent "
                         << extentText(shapeOf(getResult())[getDim()])
                         << "; it must be " << extentText(sum);
  return verifyExtents(*this);
}

LogicalResult PadOp::verify() {
  int64_t rank = rankOf(getInput());
  if (failed(verifyTensors(*this)) ||
      failed(verifySameElement(*this, {getInput(), getResult()})) ||
      failed(verifyDense(*this, getLow(), "low", rank)) ||
      failed(verifyDense(*this, getHigh(), "high", rank)) ||
      failed(verifyRank(*this, getResult(), "result", rank)))
    return failure();
  auto value = cast<TypedAttr>(getValueAttr());
  if (value.getType() != elementOf(getInput()))
    return emitOpError() << "value has type " << value.getType()
                         << "; it must be " << elementOf(getInput());
  layout::Shape in = shapeOf(getInput()), out = shapeOf(getResult());
  for (int64_t d = 0; d < rank; ++d) {
    if (getLow()[d] < 0 || getHigh()[d] < 0)
      return emitOpError() << "'low' and 'high' must not be negative";
    int64_t right =
        isDynamic(in[d]) ? in[d] : in[d] + getLow()[d] + getHigh()[d];
    if (out[d] != right)
      return emitOpError() << "result's dimension " << d << " has extent "
                           << extentText(out[d]) << "; it must be "
                           << extentText(right);
  }
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// Elements at run-time indices
//===----------------------------------------------------------------------===//

LogicalResult GatherOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifySameElement(*this, {getTable(), getResult()})) ||
      failed(
          verifyElement(*this, getIndices(), "indices", isIndex, kIndices)) ||
      failed(verifyDim(*this, getDim(), getTable())) ||
      failed(verifyRank(*this, getResult(), "result",
                        rankOf(getTable()) + rankOf(getIndices()) - 1)))
    return failure();
  return verifyExtents(*this);
}

LogicalResult ScatterOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getInit(), "init", isNumber, kNumbers)) ||
      failed(
          verifySameElement(*this, {getInit(), getUpdates(), getResult()})) ||
      failed(
          verifyElement(*this, getIndices(), "indices", isIndex, kIndices)) ||
      failed(verifyDim(*this, getDim(), getInit())) ||
      failed(verifyRank(*this, getResult(), "result", rankOf(getInit()))) ||
      failed(verifyRank(*this, getUpdates(), "updates",
                        rankOf(getInit()) + rankOf(getIndices()) - 1)))
    return failure();
  return verifyExtents(*this);
}

LogicalResult DispatchOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifySameElement(*this, {getTokens(), getResult()})) ||
      failed(
          verifySameElement(*this, {getExperts(), getCounts(), getSlots()})) ||
      failed(
          verifyElement(*this, getExperts(), "experts", isIndex, kIndices)) ||
      failed(verifyRank(*this, getTokens(), "tokens", 2)) ||
      failed(verifyRank(*this, getExperts(), "experts", 2)) ||
      failed(verifyRank(*this, getResult(), "result", 3)) ||
      failed(verifyRank(*this, getCounts(), "counts", 1)) ||
      failed(verifyRank(*this, getSlots(), "slots", 2)))
    return failure();
  layout::Shape shape = shapeOf(getResult());
  if (isDynamic(shape[0]) || isDynamic(shape[1]))
    return emitOpError()
           << "the number of experts and their capacity must be static";
  return verifyExtents(*this);
}

LogicalResult CombineOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getBuffers(), "buffers", isFloat, kFloats)) ||
      failed(verifySameElement(*this,
                               {getBuffers(), getWeights(), getResult()})) ||
      failed(verifySameElement(*this, {getExperts(), getSlots()})) ||
      failed(
          verifyElement(*this, getExperts(), "experts", isIndex, kIndices)) ||
      failed(verifyRank(*this, getBuffers(), "buffers", 3)) ||
      failed(verifyRank(*this, getExperts(), "experts", 2)) ||
      failed(verifyRank(*this, getSlots(), "slots", 2)) ||
      failed(verifyRank(*this, getWeights(), "weights", 2)) ||
      failed(verifyRank(*this, getResult(), "result", 2)))
    return failure();
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

LogicalResult ConstantOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyLike(*this, getLike(), getResult())))
    return failure();
  auto type = dyn_cast<RankedTensorType>(getValue().getType());
  if (!type || type.getEncoding() ||
      type.getElementType() != elementOf(getResult()))
    return emitOpError() << "value must be a tensor of "
                         << elementOf(getResult()) << " without encoding";
  layout::Shape shape = shapeOf(getResult());
  if (type.getRank() != 0 && type.getShape() != ArrayRef(shape))
    return emitOpError() << "value must have the result's shape or rank 0";
  return success();
}

LogicalResult IotaOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getResult(), "result", isCount, kCounts)) ||
      failed(verifyDim(*this, getDim(), getResult())))
    return failure();
  return verifyLike(*this, getLike(), getResult());
}

LogicalResult RandomOp::verify() {
  if (failed(verifyTensors(*this)))
    return failure();
  if (!elementOf(getResult()).isF32())
    return emitOpError() << "result has element type " << elementOf(getResult())
                         << "; it must be f32";
  return verifyLike(*this, getLike(), getResult());
}

LogicalResult SizeOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getResult(), "result", isCount, kCounts)) ||
      failed(verifyDim(*this, getDim(), getInput())))
    return failure();
  return verifyRank(*this, getResult(), "result", 0);
}

//===----------------------------------------------------------------------===//
// How data lies
//===----------------------------------------------------------------------===//

static LogicalResult verifySameTensor(Operation *op, Value a, Value b) {
  if (elementOf(a) == elementOf(b) && shapeOf(a) == shapeOf(b))
    return success();
  return op->emitOpError() << "result must have the shape and element type of "
                              "its operand";
}

LogicalResult ReshardOp::verify() {
  if (failed(verifyTensors(*this)))
    return failure();
  if (getInputs().empty() || getInputs().size() != getResults().size())
    return emitOpError() << "must have as many results as operands, at least "
                            "one";
  for (auto [input, result] : llvm::zip(getInputs(), getResults())) {
    if (failed(verifySameTensor(*this, input, result)))
      return failure();
    for (Value value : {input, Value(result)})
      if (isa_and_nonnull<LocalAttr>(
              cast<RankedTensorType>(value.getType()).getEncoding()))
        return emitOpError() << "moves global tensors, not #tv.local ones";
  }
  if (getPlan() && (!getView(getInputs()[0]) || !getView(getResults()[0]) ||
                    getPlan()->getMesh() != getView(getInputs()[0]).getMesh()))
    return emitOpError() << "has a plan, so its tensors must have views on the "
                            "plan's mesh";
  return success();
}

LogicalResult ConstrainOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifySameTensor(*this, getInput(), getResult())))
    return failure();
  MeshAttr mesh = meshOf(getInput().getType());
  if (mesh && mesh != getView().getMesh())
    return emitOpError() << "operand lies on mesh " << mesh
                         << ", but the view is on " << getView().getMesh();
  return getView().verifyEncoding(
      shapeOf(getResult()), elementOf(getResult()),
      [&] { return emitOpError() << "view does not fit: "; });
}

//===----------------------------------------------------------------------===//
// Composites
//===----------------------------------------------------------------------===//

/// One shape and element type for all operands and the result.
static LogicalResult verifyPointwise(Operation *op, bool (*legal)(Type),
                                     StringRef right) {
  SmallVector<Value> all(op->getOperands());
  all.push_back(op->getResult(0));
  if (failed(verifyTensors(op)) || failed(verifySameElement(op, all)) ||
      failed(verifyElement(op, all[0], "operand #0", legal, right)))
    return failure();
  for (Value value : all)
    if (failed(verifyRank(op, value, "each tensor", rankOf(all[0]))))
      return failure();
  return verifyExtents(op);
}

LogicalResult AddOp::verify() {
  return verifyPointwise(*this, isNumber, kNumbers);
}
LogicalResult MulOp::verify() {
  return verifyPointwise(*this, isNumber, kNumbers);
}
LogicalResult GeluOp::verify() {
  return verifyPointwise(*this, isFloat, kFloats);
}
LogicalResult SiluOp::verify() {
  return verifyPointwise(*this, isFloat, kFloats);
}

LogicalResult SoftmaxOp::verify() {
  if (failed(verifyDim(*this, getDim(), getInput())))
    return failure();
  return verifyPointwise(*this, isFloat, kFloats);
}

/// input and result [..., K], parameters [K], a positive epsilon.
static LogicalResult verifyNorm(Operation *op, const APFloat &epsilon) {
  SmallVector<Value> all(op->getOperands());
  all.push_back(op->getResult(0));
  if (failed(verifyTensors(op)) || failed(verifySameElement(op, all)) ||
      failed(verifyElement(op, all[0], "input", isFloat, kFloats)) ||
      failed(verifyRankAtLeast(op, all[0], "input", 1)) ||
      failed(verifyRank(op, all.back(), "result", rankOf(all[0]))))
    return failure();
  for (Value parameter : ArrayRef(all).drop_front().drop_back())
    if (failed(verifyRank(op, parameter, "weight or bias", 1)))
      return failure();
  if (!(epsilon.convertToDouble() >= 0))
    return op->emitOpError() << "epsilon must not be negative";
  return verifyExtents(op);
}

LogicalResult LayerNormOp::verify() { return verifyNorm(*this, getEpsilon()); }
LogicalResult RmsNormOp::verify() { return verifyNorm(*this, getEpsilon()); }

LogicalResult RopeOp::verify() {
  if (failed(verifyRankAtLeast(*this, getInput(), "input", 2)))
    return failure();
  int64_t last = shapeOf(getInput()).back();
  if (isDynamic(last) || last % 2)
    return emitOpError() << "the last dimension must be static and even";
  if (!(getBase().convertToDouble() > 0))
    return emitOpError() << "base must be positive";
  return verifyPointwise(*this, isFloat, kFloats);
}

LogicalResult CrossEntropyOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getLogits(), "logits", isFloat, kFloats)) ||
      failed(verifySameElement(*this, {getLogits(), getResult()})) ||
      failed(verifyElement(*this, getLabels(), "labels", isIndex, kIndices)) ||
      failed(verifyRankAtLeast(*this, getLogits(), "logits", 1)) ||
      failed(
          verifyRank(*this, getLabels(), "labels", rankOf(getLogits()) - 1)) ||
      failed(verifyRank(*this, getResult(), "result", rankOf(getLogits()) - 1)))
    return failure();
  return verifyExtents(*this);
}

LogicalResult DropoutOp::verify() {
  double rate = getRate().convertToDouble();
  if (!(rate >= 0 && rate < 1))
    return emitOpError() << "rate must be in [0, 1)";
  return verifyPointwise(*this, isFloat, kFloats);
}
