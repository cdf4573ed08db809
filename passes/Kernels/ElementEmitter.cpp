//===- ElementEmitter.cpp - one element of a tv op as scalar code ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What KernelEmitter::element emits for the ops that a kernel computes where
// their value is used. Small floats are computed in f32.
//
//===----------------------------------------------------------------------===//

#include "Kernels/KernelEmitter.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

bool tessera::canInline(Operation *op) {
  return isa<tv::MapOp, tv::BroadcastOp, tv::ConstantOp, tv::IotaOp,
             tv::RandomOp, tv::SizeOp, tv::GatherOp, tv::SliceOp, tv::PadOp,
             tv::ConcatOp, tv::CombineOp>(op);
}

static Type elementType(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getElementType();
}

Value KernelEmitter::element(Value tensor, ArrayRef<Value> indices) {
  for (auto &[at, value] : known[tensor])
    if (ArrayRef<Value>(at) == indices)
      return value;
  Operation *op = tensor.getDefiningOp();
  if (op && inlined.contains(op)) {
    SmallVector<Value> values = compute(op, indices);
    for (auto [result, value] : llvm::zip_equal(op->getResults(), values))
      setElement(result, indices, value);
    return values[cast<OpResult>(tensor).getResultNumber()];
  }
  if (isa<Float8E4M3FNType, Float8E5M2Type>(elementType(tensor)))
    return fail(op ? op : tensor.getParentRegion()->getParentOp(),
                "kernels do not compute on 8-bit floats yet; convert to bf16",
                b.getF32Type());
  Value value = loadMemory(tensor, indices);
  setElement(tensor, indices, value);
  return value;
}

void KernelEmitter::setElement(Value tensor, ArrayRef<Value> indices,
                               Value scalar) {
  known[tensor].push_back({llvm::to_vector(indices), scalar});
}

//===----------------------------------------------------------------------===//
// Indices and numbers
//===----------------------------------------------------------------------===//

Value KernelEmitter::fromIndex(Value index, Type element) {
  Type type = getKernelScalar(element);
  if (auto integer = dyn_cast<IntegerType>(type))
    return arith::IndexCastOp::create(b, location, integer, index);
  Value wide = arith::IndexCastOp::create(b, location, b.getI64Type(), index);
  return arith::SIToFPOp::create(b, location, type, wide);
}

Value KernelEmitter::toIndex(Value integer, Type element) {
  if (element.isUnsignedInteger())
    return arith::IndexCastUIOp::create(b, location, b.getIndexType(), integer);
  return arith::IndexCastOp::create(b, location, b.getIndexType(), integer);
}

Value KernelEmitter::inRange(Value index, Value bound) {
  // An index below 0 is a large unsigned number.
  return arith::CmpIOp::create(b, location, arith::CmpIPredicate::ult, index,
                               bound);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

Value KernelEmitter::elementAt(Value tensor, ArrayRef<Value> global,
                               Value condition, Value otherwise) {
  auto [held, local] = localIndices(tensor.getType(), global);
  Value both = b.createOrFold<arith::AndIOp>(location, condition, held);
  return guarded(both, otherwise, [&] { return element(tensor, local); });
}

SmallVector<Value> KernelEmitter::compute(Operation *op,
                                          ArrayRef<Value> indices) {
  // Ops that name dimensions do so by their global numbers.
  auto isFlat = [](Value tensor) {
    return llvm::any_of(getSpace(tensor.getType()), [](const LocalDim &dim) {
      return dim.extents.size() != 1;
    });
  };
  Arith math{b, location};
  auto zero = [&](Value tensor) -> Value {
    return arith::ConstantOp::create(
        b, location, b.getZeroAttr(getKernelScalar(elementType(tensor))));
  };
  return TypeSwitch<Operation *, SmallVector<Value>>(op)
      .Case([&](tv::MapOp map) {
        SmallVector<Value> arguments;
        for (Value input : map.getInputs())
          arguments.push_back(element(input, indices));
        return evaluate(map.getBody().front(), arguments);
      })
      .Case([&](tv::BroadcastOp broadcast) -> SmallVector<Value> {
        // Equal indices on this device where both lie alike, else by the global
        // ones.
        Value input = broadcast.getInput();
        Space source = getSpace(input.getType());
        Space target = getSpace(broadcast.getResult().getType());
        bool alike = !isFlat(input) && !isFlat(broadcast.getResult());
        for (size_t i = 0; alike && i < source.size(); ++i)
          alike = source[i] == target[broadcast.getDims()[i]];
        SmallVector<Value> from(indices), at;
        if (!alike)
          from = globalIndices(broadcast.getResult().getType(), indices);
        for (int64_t dim : broadcast.getDims())
          at.push_back(from[dim]);
        if (!alike)
          at = localIndices(input.getType(), at).second;
        return {element(input, at)};
      })
      .Case([&](tv::ConstantOp constant) -> SmallVector<Value> {
        auto value = cast<DenseElementsAttr>(constant.getValue());
        TypedAttr scalar = getKernelConstant(
            value.getSplatValue<Attribute>(),
            getKernelScalar(elementType(constant.getResult())));
        return {hoisted([&] {
          return arith::ConstantOp::create(b, location, scalar).getResult();
        })};
      })
      .Case([&](tv::IotaOp iota) -> SmallVector<Value> {
        SmallVector<Value> global =
            globalIndices(iota.getResult().getType(), indices);
        return {
            fromIndex(global[iota.getDim()], elementType(iota.getResult()))};
      })
      .Case([&](tv::RandomOp op) -> SmallVector<Value> {
        Type type = op.getResult().getType();
        auto local =
            cast<tv::LocalAttr>(cast<RankedTensorType>(type).getEncoding());
        Value number = index(0);
        for (auto [at, size] :
             llvm::zip_equal(globalIndices(type, indices), local.getExtents()))
          number = math.add(math.mul(number, extent(size)), at);
        return {plan::RandomOp::create(b, location, b.getF32Type(), number,
                                       op.getSeed(), op.getStream())};
      })
      .Case([&](tv::SizeOp size) -> SmallVector<Value> {
        auto type = cast<RankedTensorType>(size.getInput().getType());
        auto local = cast<tv::LocalAttr>(type.getEncoding());
        return {fromIndex(extent(local.getExtents()[size.getDim()]),
                          elementType(size.getResult()))};
      })
      .Case([&](tv::GatherOp gather) -> SmallVector<Value> {
        Value table = gather.getTable(), ids = gather.getIndices();
        auto idsType = cast<RankedTensorType>(ids.getType());
        auto local = cast<tv::LocalAttr>(
            cast<RankedTensorType>(table.getType()).getEncoding());
        size_t dim = gather.getDim();
        size_t rank =
            cast<tv::LocalAttr>(idsType.getEncoding()).getExtents().size();
        if (isFlat(table) || isFlat(ids) || isFlat(gather.getResult())) {
          SmallVector<Value> global =
              globalIndices(gather.getResult().getType(), indices);
          ArrayRef<Value> from = global;
          Value row = toIndex(
              element(ids, localIndices(idsType, from.slice(dim, rank)).second),
              elementType(ids));
          SmallVector<Value> position(from.take_front(dim));
          position.push_back(row);
          llvm::append_range(position, from.drop_front(dim + rank));
          return {elementAt(table, position,
                            inRange(row, extent(local.getExtents()[dim])),
                            zero(table))};
        }
        Value row =
            toIndex(element(ids, indices.slice(dim, rank)), elementType(ids));
        Space space = getSpace(table.getType());
        auto [held, at] = localIndex(local.getLayoutMesh(), space[dim], row);
        Value here =
            math.both(inRange(row, extent(local.getExtents()[dim])), held);
        SmallVector<Value> position(indices.take_front(dim));
        position.push_back(at);
        llvm::append_range(position, indices.drop_front(dim + rank));
        return {guarded(here, zero(table),
                        [&] { return element(table, position); })};
      })
      .Case([&](tv::SliceOp slice) -> SmallVector<Value> {
        SmallVector<Value> global =
            globalIndices(slice.getResult().getType(), indices);
        for (auto [at, offset] : llvm::zip_equal(global, slice.getOffsets()))
          at = math.add(at, index(offset));
        return {
            element(slice.getInput(),
                    localIndices(slice.getInput().getType(), global).second)};
      })
      .Case([&](tv::PadOp pad) -> SmallVector<Value> {
        Value input = pad.getInput();
        Type type = getKernelScalar(elementType(input));
        auto local = cast<tv::LocalAttr>(
            cast<RankedTensorType>(input.getType()).getEncoding());
        SmallVector<Value> global =
            globalIndices(pad.getResult().getType(), indices);
        Value inside = yes();
        for (auto [at, low, high, size] : llvm::zip_equal(
                 global, pad.getLow(), pad.getHigh(), local.getExtents())) {
          if (low == 0 && high == 0)
            continue;
          at = math.sub(at, index(low));
          inside = math.both(inside, inRange(at, extent(size)));
        }
        Value value = arith::ConstantOp::create(
            b, location, getKernelConstant(pad.getValue(), type));
        return {elementAt(input, global, inside, value)};
      })
      .Case([&](tv::ConcatOp concat) -> SmallVector<Value> {
        SmallVector<Value> global =
            globalIndices(concat.getResult().getType(), indices);
        size_t dim = concat.getDim();
        Value result = zero(concat.getResult());
        for (Value input : concat.getInputs()) {
          auto local = cast<tv::LocalAttr>(
              cast<RankedTensorType>(input.getType()).getEncoding());
          Value size = extent(local.getExtents()[dim]);
          result = elementAt(input, global, inRange(global[dim], size), result);
          global[dim] = math.sub(global[dim], size);
        }
        return {result};
      })
      .Case([&](tv::CombineOp combineOp) -> SmallVector<Value> {
        Value buffers = combineOp.getBuffers();
        Value choices = combineOp.getExperts();
        if (isFlat(buffers) || isFlat(choices) || isFlat(combineOp.getResult()))
          return {fail(op, "on merged dimensions needs a reshape first",
                       getKernelScalar(elementType(buffers)))};
        auto local = cast<tv::LocalAttr>(
            cast<RankedTensorType>(buffers.getType()).getEncoding());
        Space space = getSpace(buffers.getType());
        // Over the choices that this device has.
        auto add = [&](ArrayRef<Value> choice,
                       ValueRange carried) -> SmallVector<Value> {
          SmallVector<Value> at = {indices[0], choice[0]};
          Value expert = toIndex(element(choices, at), elementType(choices));
          Value slot = toIndex(element(combineOp.getSlots(), at),
                               elementType(combineOp.getSlots()));
          auto [expertHeld, e] =
              localIndex(local.getLayoutMesh(), space[0], expert);
          auto [slotHeld, c] =
              localIndex(local.getLayoutMesh(), space[1], slot);
          Value here = math.both(
              math.both(inRange(expert, extent(local.getExtents()[0])),
                        inRange(slot, extent(local.getExtents()[1]))),
              math.both(expertHeld, slotHeld));
          return {guarded(here, carried[0], [&]() -> Value {
            Value value = arith::MulFOp::create(
                b, location, element(combineOp.getWeights(), at),
                element(buffers, {e, c, indices[1]}));
            return arith::AddFOp::create(b, location, carried[0], value);
          })};
        };
        return inOrder(localExtents(choices)[1], zero(buffers), add);
      });
}
