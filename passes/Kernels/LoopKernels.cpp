//===- LoopKernels.cpp - ops with a kernel of their own -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Their results are written at places that depend on data, or from one another,
// in an order that the op fixes, so they are not made by pulling. What one
// place gets is decided in that order, by one iteration of a parallel loop.
//
//===----------------------------------------------------------------------===//

#include "Kernels/LoopKernels.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

static tv::LocalAttr getLocal(Value tensor) {
  return cast<tv::LocalAttr>(
      cast<RankedTensorType>(tensor.getType()).getEncoding());
}

static Type getElement(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getElementType();
}

static void emitLoops(KernelEmitter &emitter, tv::ScatterOp op) {
  if (isSorted(op))
    return emitSortedScatter(emitter, op);
  Value result = op.getResult(), ids = op.getIndices(),
        updates = op.getUpdates();
  emitter.addOutput(result);
  emitter.parallel(emitter.localExtents(op.getInit()), [&](ArrayRef<Value> at) {
    emitter.store(emitter.element(op.getInit(), at), result, at);
  });
  size_t dim = op.getDim();
  size_t rank = cast<RankedTensorType>(ids.getType()).getRank();
  Arith math{emitter.builder(), emitter.loc()};
  // Updates of one place differ in the dimensions of `ids` only.
  SmallVector<Value> free = emitter.localExtents(updates);
  SmallVector<Value> indexed(ArrayRef(free).slice(dim, rank));
  free.erase(free.begin() + dim, free.begin() + dim + rank);
  emitter.parallel(free, [&](ArrayRef<Value> place) {
    emitter.inOrder(indexed, {}, [&](ArrayRef<Value> id, ValueRange) {
      Value row = emitter.toIndex(emitter.element(ids, id), getElement(ids));
      auto [held, local] = emitter.localIndex(result, dim, row);
      Value bound = emitter.extent(getLocal(result).getExtents()[dim]);
      emitter.ifThen(math.both(emitter.inRange(row, bound), held), [&] {
        SmallVector<Value> from(place), to(place);
        from.insert(from.begin() + dim, id.begin(), id.end());
        to.insert(to.begin() + dim, local);
        auto combiner = op.getCombiner();
        Value before = combiner ? emitter.loadMemory(result, to) : Value();
        Value value = emitter.element(updates, from);
        if (combiner)
          value = emitter.combine(*combiner, getElement(result), before, value,
                                  /*mayReorder=*/false);
        emitter.store(value, result, to);
      });
      return SmallVector<Value>();
    });
  });
}

static void emitLoops(KernelEmitter &emitter, tv::CumsumOp op) {
  OpBuilder &b = emitter.builder();
  Value input = op.getInput(), result = op.getResult();
  emitter.addOutput(result);
  Arith math{b, emitter.loc()};
  const size_t dim = op.getDim();
  Type element = getElement(result);
  SmallVector<Value> rows = emitter.localExtents(result);
  Value extent = rows[dim], last = math.sub(extent, emitter.index(1));
  rows.erase(rows.begin() + dim);
  emitter.parallel(rows, [&](ArrayRef<Value> row) {
    Value zero = arith::ConstantOp::create(
        b, emitter.loc(), b.getZeroAttr(getKernelScalar(element)));
    emitter.inOrder(extent, zero, [&](ArrayRef<Value> at, ValueRange sum) {
      SmallVector<Value> place(row);
      place.insert(place.begin() + dim,
                   op.getReverse() ? math.sub(last, at[0]) : at[0]);
      Value next = emitter.combine(tv::Combiner::Sum, element, sum[0],
                                   emitter.element(input, place),
                                   /*mayReorder=*/false);
      emitter.store(next, result, place);
      return SmallVector<Value>{next};
    });
  });
}

static void emitLoops(KernelEmitter &emitter, tv::DispatchOp op) {
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc();
  Value result = op.getResult(), counts = op.getCounts(), slots = op.getSlots();
  Value tokens = op.getTokens(), experts = op.getExperts();
  for (Value output : op->getResults())
    emitter.addOutput(output);
  Type countType = getElement(counts), slotType = getElement(slots);
  auto fill = [&](Value output, int64_t number) {
    emitter.parallel(emitter.localExtents(output), [&](ArrayRef<Value> at) {
      TypedAttr value = b.getZeroAttr(getKernelScalar(getElement(output)));
      if (number != 0)
        value = b.getIntegerAttr(getElement(output), number);
      emitter.store(arith::ConstantOp::create(b, loc, value), output, at);
    });
  };
  fill(result, 0);
  fill(slots, -1);
  // Each device has all choices: it counts those of every expert, for slots are
  // the same on all devices, and fills the rows of its own.
  SmallVector<Value> choices = emitter.localExtents(experts);
  Value allExperts = emitter.extent(getLocal(result).getExtents()[0]);
  Value capacity = emitter.extent(getLocal(result).getExtents()[1]);
  Value none = emitter.index(0), one = emitter.index(1);
  Arith math{b, loc};
  auto expertAt = [&](ArrayRef<Value> choice) {
    return emitter.toIndex(emitter.element(experts, choice),
                           getElement(experts));
  };
  emitter.parallel(allExperts, [&](ArrayRef<Value> expert) {
    SmallVector<Value> given = emitter.inOrder(
        choices, none, [&](ArrayRef<Value> choice, ValueRange row) {
          Value taken = math.both(math.equal(expertAt(choice), expert[0]),
                                  emitter.inRange(row[0], capacity));
          emitter.ifThen(taken, [&] {
            emitter.store(arith::IndexCastOp::create(b, loc, slotType, row[0]),
                          slots, choice);
          });
          Value next = math.add(row[0], one);
          return SmallVector<Value>{
              arith::SelectOp::create(b, loc, taken, next, row[0])};
        });
    auto [held, e] = emitter.localIndex(result, 0, expert[0]);
    emitter.ifThen(held, [&, e = e] {
      emitter.store(arith::IndexCastOp::create(b, loc, countType, given[0]),
                    counts, e);
    });
  });
  // Each row is that of one choice.
  SmallVector<Value> elements(choices);
  elements.push_back(emitter.localExtents(result)[2]);
  emitter.parallel(elements, [&](ArrayRef<Value> at) {
    ArrayRef<Value> choice = at.drop_back();
    Value row = emitter.toIndex(emitter.loadMemory(slots, choice), slotType);
    auto [expertHeld, e] = emitter.localIndex(result, 0, expertAt(choice));
    auto [rowHeld, r] = emitter.localIndex(result, 1, row);
    Value here = math.both(emitter.inRange(row, capacity),
                           math.both(expertHeld, rowHeld));
    emitter.ifThen(here, [&, e = e, r = r] {
      emitter.store(emitter.element(tokens, {at[0], at.back()}), result,
                    {e, r, at.back()});
    });
  });
}

using Emit = void (*)(KernelEmitter &, Operation *);

static Emit getEmit(Operation *op) {
  return TypeSwitch<Operation *, Emit>(op)
      // The ops that this file is about.
      .Case<tv::ScatterOp, tv::CumsumOp, tv::DispatchOp>([](auto op) -> Emit {
        return [](KernelEmitter &emitter, Operation *each) {
          emitLoops(emitter, cast<decltype(op)>(each));
        };
      })
      .Default(nullptr);
}

bool tessera::hasOwnOrder(Operation *op) { return getEmit(op); }

void tessera::emitInOrder(KernelEmitter &emitter, Operation *op) {
  getEmit(op)(emitter, op);
}
