//===- LoopKernels.cpp - ops with a kernel of their own -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Their results are written at places that depend on data, in an order that the
// op fixes, so they are not made by pulling.
//
//===----------------------------------------------------------------------===//

#include "Kernels/LoopKernels.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace tessera;

static tv::LocalAttr getLocal(Value tensor) {
  return cast<tv::LocalAttr>(
      cast<RankedTensorType>(tensor.getType()).getEncoding());
}

static Type getElement(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getElementType();
}

void tessera::emitScatter(KernelEmitter &emitter, tv::ScatterOp op) {
  Value result = op.getResult(), ids = op.getIndices(),
        updates = op.getUpdates();
  emitter.addOutput(result);
  emitter.loops(emitter.localExtents(op.getInit()), [&](ArrayRef<Value> at) {
    emitter.store(emitter.element(op.getInit(), at), result, at);
  });
  size_t dim = op.getDim();
  size_t rank = cast<RankedTensorType>(ids.getType()).getRank();
  LocalDim target = getSpace(result.getType())[dim];
  Arith math{emitter.builder(), emitter.loc()};
  emitter.loops(emitter.localExtents(updates), [&](ArrayRef<Value> at) {
    Value row = emitter.toIndex(emitter.element(ids, at.slice(dim, rank)),
                                getElement(ids));
    auto [held, local] =
        emitter.localIndex(getLocal(result).getLayoutMesh(), target, row);
    Value bound = emitter.extent(getLocal(result).getExtents()[dim]);
    emitter.ifThen(math.both(emitter.inRange(row, bound), held), [&] {
      SmallVector<Value> place(at.take_front(dim));
      place.push_back(local);
      llvm::append_range(place, at.drop_front(dim + rank));
      Value value = emitter.combine(op.getCombiner(), getElement(result),
                                    emitter.loadMemory(result, place),
                                    emitter.element(updates, at),
                                    /*mayReorder=*/false);
      emitter.store(value, result, place);
    });
  });
}

void tessera::emitDispatch(KernelEmitter &emitter, tv::DispatchOp op) {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc();
  Value result = op.getResult(), counts = op.getCounts(), slots = op.getSlots();
  Value tokens = op.getTokens(), experts = op.getExperts();
  for (Value output : op->getResults())
    emitter.addOutput(output);
  for (Value output : {result, counts})
    emitter.loops(emitter.localExtents(output), [&](ArrayRef<Value> at) {
      Value zero = arith::ConstantOp::create(
          b, loc, b.getZeroAttr(getKernelScalar(getElement(output))));
      emitter.store(zero, output, at);
    });
  // Each device has all choices: it counts those of every expert, for slots are
  // the same on all devices, and fills the rows of its own.
  Space space = getSpace(result.getType());
  const layout::Mesh &mesh = getLocal(result).getLayoutMesh();
  Type countType = getElement(counts), slotType = getElement(slots);
  SmallVector<Value> width = {emitter.localExtents(result)[2]};
  Value allExperts = emitter.extent(getLocal(result).getExtents()[0]);
  Value capacity = emitter.extent(getLocal(result).getExtents()[1]);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value given = memref::AllocaOp::create(
      b, loc, MemRefType::get({ShapedType::kDynamic}, b.getIndexType()),
      ValueRange{allExperts});
  emitter.loops({allExperts}, [&](ArrayRef<Value> at) {
    memref::StoreOp::create(b, loc, zero, given, at);
  });
  emitter.loops(emitter.localExtents(experts), [&](ArrayRef<Value> at) {
    Value none =
        arith::ConstantOp::create(b, loc, b.getIntegerAttr(slotType, -1));
    emitter.store(none, slots, at);
    Value expert =
        emitter.toIndex(emitter.element(experts, at), getElement(experts));
    emitter.ifThen(emitter.inRange(expert, allExperts), [&] {
      Value row = memref::LoadOp::create(b, loc, given, ValueRange{expert});
      emitter.ifThen(emitter.inRange(row, capacity), [&] {
        Value next = arith::AddIOp::create(b, loc, row, one);
        memref::StoreOp::create(b, loc, next, given, ValueRange{expert});
        emitter.store(arith::IndexCastOp::create(b, loc, slotType, row), slots,
                      at);
        auto [held, e] = emitter.localIndex(mesh, space[0], expert);
        emitter.ifThen(held, [&, e = e] {
          emitter.store(arith::IndexCastOp::create(b, loc, countType, next),
                        counts, {e});
          emitter.loops(width, [&](ArrayRef<Value> column) {
            emitter.store(emitter.element(tokens, {at[0], column[0]}), result,
                          {e, row, column[0]});
          });
        });
      });
    });
  });
}
