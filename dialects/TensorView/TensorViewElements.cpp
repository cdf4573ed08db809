//===- TensorViewElements.cpp - one element of an op as scalar code -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ElementOpInterface of the ops on local tensors that have it. Ops that name
// dimensions do so by their global numbers, so a tensor with a merged dimension
// is addressed by global indices.
//
//===----------------------------------------------------------------------===//

#include "TensorView/ElementBuilder.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

static Type elementType(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getElementType();
}

Space tv::getSpace(Type type) {
  const LocalAttr local = getLocal(type);
  Space space;
  size_t next = 0;
  for (const layout::Dim &dim : local.getLayoutView().dims) {
    LocalDim localDim{dim.product, {}};
    for (int64_t i = 0; i < dim.span; ++i)
      localDim.extents.push_back(local.getExtents()[next++]);
    space.push_back(std::move(localDim));
  }
  return space;
}

/// Whether a view merges dimensions of the tensor.
static bool isFlat(Value tensor) {
  return llvm::any_of(getLocal(tensor).getLayoutView().dims,
                      [](const layout::Dim &dim) { return dim.span != 1; });
}

SmallVector<Value> tv::getOperandsAndCaptured(Operation *op) {
  SmallVector<Value> values(op->getOperands());
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  llvm::append_range(values, captured);
  return values;
}

//===----------------------------------------------------------------------===//
// ElementBuilder
//===----------------------------------------------------------------------===//

ElementBuilder::~ElementBuilder() = default;

Value ElementBuilder::elementAt(Value tensor, ArrayRef<Value> global,
                                Value condition, Value otherwise) {
  auto [held, local] = localIndices(tensor.getType(), global);
  Value both = b.createOrFold<arith::AndIOp>(location, condition, held);
  return guarded(both, otherwise, [&] { return element(tensor, local); });
}

Value ElementBuilder::fromIndex(Value index, Type element) {
  Type type = getComputed(element);
  if (auto integer = dyn_cast<IntegerType>(type))
    return arith::IndexCastOp::create(b, location, integer, index);
  Value wide = arith::IndexCastOp::create(b, location, b.getI64Type(), index);
  return arith::SIToFPOp::create(b, location, type, wide);
}

Value ElementBuilder::toIndex(Value integer, Type element) {
  if (element.isUnsignedInteger())
    return arith::IndexCastUIOp::create(b, location, b.getIndexType(), integer);
  return arith::IndexCastOp::create(b, location, b.getIndexType(), integer);
}

Value ElementBuilder::inRange(Value index, Value bound) {
  // An index below 0 is a large unsigned number.
  return arith::CmpIOp::create(b, location, arith::CmpIPredicate::ult, index,
                               bound);
}

//===----------------------------------------------------------------------===//
// Pointwise, reductions, broadcasts
//===----------------------------------------------------------------------===//

using Values = SmallVector<Value>;

Values MapOp::emitElement(ElementBuilder &build, ArrayRef<Value> indices) {
  Values arguments;
  for (Value input : getInputs())
    arguments.push_back(build.element(input, indices));
  return build.evaluate(getBody().front(), arguments);
}

Values ReduceOp::emitElement(ElementBuilder &build, ArrayRef<Value> indices) {
  return {build.element(getInput(), indices)};
}

Value ReduceOp::getLooped() { return getInput(); }

std::optional<Reduction> ReduceOp::getReduction() {
  return Reduction{getCombiner(), getDims()};
}

Values BroadcastOp::emitElement(ElementBuilder &build,
                                ArrayRef<Value> indices) {
  // Equal indices on this device where both lie alike, else by the global ones.
  Value input = getInput();
  Space source = getSpace(input.getType());
  Space target = getSpace(getResult().getType());
  bool alike = !isFlat(input) && !isFlat(getResult());
  for (size_t i = 0; alike && i < source.size(); ++i)
    alike = source[i] == target[getDims()[i]];
  Values from(indices), at;
  if (!alike)
    from = build.globalIndices(getResult().getType(), indices);
  for (int64_t dim : getDims())
    at.push_back(from[dim]);
  if (!alike)
    at = build.localIndices(input.getType(), at).second;
  return {build.element(input, at)};
}

Values BroadcastOp::getReadValues() { return {getInput()}; }
bool BroadcastOp::isFree() { return true; }

//===----------------------------------------------------------------------===//
// Same elements, other indices
//===----------------------------------------------------------------------===//

Values SliceOp::emitElement(ElementBuilder &build, ArrayRef<Value> indices) {
  Arith math{build.builder(), build.loc()};
  Values global = build.globalIndices(getResult().getType(), indices);
  for (auto [at, offset] : llvm::zip_equal(global, getOffsets()))
    at = math.add(at, build.index(offset));
  return {build.element(
      getInput(), build.localIndices(getInput().getType(), global).second)};
}

Values PadOp::emitElement(ElementBuilder &build, ArrayRef<Value> indices) {
  Arith math{build.builder(), build.loc()};
  Values global = build.globalIndices(getResult().getType(), indices);
  Value inside = build.yes();
  for (auto [at, low, high, size] : llvm::zip_equal(
           global, getLow(), getHigh(), getLocal(getInput()).getExtents())) {
    if (low == 0 && high == 0)
      continue;
    at = math.sub(at, build.index(low));
    inside = math.both(inside, build.inRange(at, build.extent(size)));
  }
  Value value = build.constant(getValue(), elementType(getInput()));
  return {build.elementAt(getInput(), global, inside, value)};
}

Values ConcatOp::emitElement(ElementBuilder &build, ArrayRef<Value> indices) {
  Arith math{build.builder(), build.loc()};
  Values global = build.globalIndices(getResult().getType(), indices);
  size_t dim = getDim();
  Value result = build.zero(elementType(getResult()));
  for (Value input : getInputs()) {
    Value size = build.extent(getLocal(input).getExtents()[dim]);
    result = build.elementAt(input, global, build.inRange(global[dim], size),
                             result);
    global[dim] = math.sub(global[dim], size);
  }
  return {result};
}

//===----------------------------------------------------------------------===//
// Elements at run-time indices
//===----------------------------------------------------------------------===//

Values GatherOp::emitElement(ElementBuilder &build, ArrayRef<Value> indices) {
  Value table = getTable(), ids = getIndices();
  const layout::Extent &rows = getLocal(table).getExtents()[getDim()];
  size_t dim = getDim(), rank = getLocal(ids).getExtents().size();
  if (isFlat(table) || isFlat(ids) || isFlat(getResult())) {
    Values global = build.globalIndices(getResult().getType(), indices);
    ArrayRef<Value> from = global;
    Value row = build.toIndex(
        build.element(
            ids,
            build.localIndices(ids.getType(), from.slice(dim, rank)).second),
        elementType(ids));
    Values position(from.take_front(dim));
    position.push_back(row);
    llvm::append_range(position, from.drop_front(dim + rank));
    return {build.elementAt(table, position,
                            build.inRange(row, build.extent(rows)),
                            build.zero(elementType(table)))};
  }
  Value row = build.toIndex(build.element(ids, indices.slice(dim, rank)),
                            elementType(ids));
  auto [held, at] = build.localIndex(table, dim, row);
  Value here = Arith{build.builder(), build.loc()}.both(
      build.inRange(row, build.extent(rows)), held);
  Values position(indices.take_front(dim));
  position.push_back(at);
  llvm::append_range(position, indices.drop_front(dim + rank));
  return {build.guarded(here, build.zero(elementType(table)),
                        [&] { return build.element(table, position); })};
}

Values CombineOp::emitElement(ElementBuilder &build, ArrayRef<Value> indices) {
  Value buffers = getBuffers(), choices = getExperts(), slots = getSlots();
  if (isFlat(buffers) || isFlat(choices) || isFlat(getResult())) {
    Type type = build.zero(elementType(buffers)).getType();
    return {
        build.fail(*this, "on merged dimensions needs a reshape first", type)};
  }
  OpBuilder &b = build.builder();
  Arith math{b, build.loc()};
  ArrayRef<layout::Extent> extents = getLocal(buffers).getExtents();
  // Over the choices that this device has.
  auto add = [&](ArrayRef<Value> choice, ValueRange carried) -> Values {
    Values at = {indices[0], choice[0]};
    Value expert =
        build.toIndex(build.element(choices, at), elementType(choices));
    Value slot = build.toIndex(build.element(slots, at), elementType(slots));
    auto [expertHeld, e] = build.localIndex(buffers, 0, expert);
    auto [slotHeld, c] = build.localIndex(buffers, 1, slot);
    Value here =
        math.both(math.both(build.inRange(expert, build.extent(extents[0])),
                            build.inRange(slot, build.extent(extents[1]))),
                  math.both(expertHeld, slotHeld));
    return {build.guarded(here, carried[0], [&, e = e, c = c]() -> Value {
      Value value =
          arith::MulFOp::create(b, build.loc(), build.element(getWeights(), at),
                                build.element(buffers, {e, c, indices[1]}));
      return arith::AddFOp::create(b, build.loc(), carried[0], value);
    })};
  };
  return build.inOrder(build.localExtents(choices)[1],
                       build.zero(elementType(buffers)), add);
}

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

bool ConstantOp::hasElements() { return isa<SplatElementsAttr>(getValue()); }

Values ConstantOp::emitElement(ElementBuilder &build, ArrayRef<Value>) {
  auto value = cast<DenseElementsAttr>(getValue());
  return {build.hoisted([&] {
    return build.constant(value.getSplatValue<Attribute>(),
                          elementType(getResult()));
  })};
}

Values IotaOp::emitElement(ElementBuilder &build, ArrayRef<Value> indices) {
  Values global = build.globalIndices(getResult().getType(), indices);
  return {build.fromIndex(global[getDim()], elementType(getResult()))};
}

Values RandomOp::emitElement(ElementBuilder &build, ArrayRef<Value> indices) {
  Arith math{build.builder(), build.loc()};
  Value number = build.index(0);
  for (auto [at, size] :
       llvm::zip_equal(build.globalIndices(getResult().getType(), indices),
                       getLocal(getResult()).getExtents()))
    number = math.add(math.mul(number, build.extent(size)), at);
  // Layers differ in streams. What a kernel knows takes no register: the seed,
  // from which the keys of all rounds follow, and that the high half is 0.
  Type i64 = math.b.getI64Type();
  Value seed = build.constant(getSeedAttr(), i64);
  Value stream = build.attribute(*this, getStreamAttrName());
  if (llvm::isUInt<32>(getStream()))
    stream = math.both(
        stream, build.constant(math.b.getI64IntegerAttr(UINT32_MAX), i64));
  if (getStep()) {
    Value high = arith::ShLIOp::create(
        math.b, math.loc, build.element(getStep(), {}),
        build.constant(math.b.getI64IntegerAttr(32), math.b.getI64Type()));
    stream = math.add(stream, high);
  }
  return {build.randomNumber(number, seed, stream, getBits())};
}

SmallVector<Value> RandomOp::getReadValues() {
  return getStep() ? Values{getStep()} : Values{};
}
bool RandomOp::isFree() { return true; }

int64_t RandomOp::getElementsAtOnce() { return getBits() == 16 ? 8 : 4; }

Values SizeOp::emitElement(ElementBuilder &build, ArrayRef<Value>) {
  return {
      build.fromIndex(build.extent(getLocal(getInput()).getExtents()[getDim()]),
                      elementType(getResult()))};
}

Values SizeOp::getReadValues() { return {}; }
bool SizeOp::isFree() { return true; }
