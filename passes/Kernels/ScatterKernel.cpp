//===- ScatterKernel.cpp - a scatter whose updates are sorted first -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For GPUs, which updates one after another leave idle. Chunks of indices are
// sorted by the row that they name, each by itself: an index has as many before
// it as name lower rows, or its own and stand earlier. Then each row takes what
// each chunk has for it. Few rows are few threads: parts of the chunks are
// summed first. The order is fixed by sizes alone.
//
//===----------------------------------------------------------------------===//

#include "Kernels/BuildLocal.h"
#include "Kernels/LoopKernels.h"
#include "Plan/Target.h"

using namespace mlir;
using namespace tessera;

namespace {
/// Fewer updates are done one by one.
constexpr int64_t kFewUpdates = 1 << 10;
/// Indices of a chunk, at least: each is compared with all others.
constexpr int64_t kMinChunk = 1 << 8;
/// Rows of all chunks, at most, unless a chunk has kMaxChunk indices.
constexpr int64_t kMaxCounts = 1 << 22, kMaxChunk = 1 << 12;
/// Elements that are enough threads, or are summed in parts until they are.
constexpr int64_t kManyElements = 1 << 22;

struct Sizes {
  int64_t updates, rows, chunk, chunks, parts;
};
} // namespace

/// Nothing if they are not known, or few.
static std::optional<Sizes> getSizes(tv::ScatterOp op) {
  auto indices = cast<RankedTensorType>(op.getIndices().getType()),
       result = cast<RankedTensorType>(op.getResult().getType());
  if (!indices.hasStaticShape() || !result.hasStaticShape() ||
      !LocalShape(op.getResult()).isPlain())
    return std::nullopt;
  Sizes sizes{indices.getNumElements(), result.getDimSize(op.getDim()),
              kMinChunk, 0, 1};
  if (sizes.updates < kFewUpdates || sizes.updates > INT32_MAX ||
      sizes.rows >= INT32_MAX || result.getNumElements() == 0)
    return std::nullopt;
  auto chunks = [&] { return llvm::divideCeil(sizes.updates, sizes.chunk); };
  while (sizes.chunk < kMaxChunk && chunks() * sizes.rows > kMaxCounts)
    sizes.chunk *= 2;
  sizes.chunks = chunks();
  // Parts are of 0, which only a sum begins with.
  if (op.getUpdate() == tv::Update::Sum)
    for (int64_t parts = sizes.chunks; parts > 1; --parts)
      if (sizes.chunks % parts == 0 &&
          parts * result.getNumElements() <= kManyElements) {
        sizes.parts = parts;
        break;
      }
  return sizes;
}

bool tessera::isSorted(tv::ScatterOp op) {
  return plan::getTarget(op).getLimits().multiprocessors > 0 && getSizes(op);
}

void tessera::emitSortedScatter(KernelEmitter &emitter, tv::ScatterOp op) {
  const std::optional<Sizes> sizes = getSizes(op);
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc();
  Arith math{b, loc};
  Value result = op.getResult(), ids = op.getIndices();
  emitter.addOutput(result);

  LocalShape whole(result);
  auto scratch = [&](Type element, ArrayRef<int64_t> extents,
                     bool isOfResults = false) {
    LocalShape shape;
    shape.mesh = whole.mesh;
    for (int64_t extent : extents)
      shape.add(layout::Extent(extent));
    for (size_t dim = 0; isOfResults && dim < whole.dims.size(); ++dim)
      shape.add(whole, dim);
    return emitter.addScratch(shape.type(element));
  };
  auto load = [&](Value from, ValueRange at) -> Value {
    return memref::LoadOp::create(b, loc, from, at);
  };
  auto loadIndex = [&](Value from, ValueRange at) -> Value {
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(),
                                        load(from, at));
  };
  auto store = [&](Value value, Value to, ValueRange at) {
    memref::StoreOp::create(b, loc, value, to, at);
  };
  Type i32 = b.getI32Type();
  auto toI32 = [&](Value index) -> Value {
    return arith::IndexCastUIOp::create(b, loc, i32, index);
  };
  auto number = [&](int32_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, i32, value);
  };
  // Of each index, its row, and the numbers of the chunk's updates by row; of
  // each row, where a chunk's begin, and how many there are, and the chunks of
  // a part that have some, and how many these are.
  Value rowOf = scratch(i32, {sizes->chunks, sizes->chunk});
  Value sorted = scratch(i32, {sizes->chunks, sizes->chunk});
  Value first = scratch(i32, {sizes->chunks, sizes->rows});
  Value count = scratch(i32, {sizes->chunks, sizes->rows});
  const int64_t ofPart = sizes->chunks / sizes->parts;
  Value having = scratch(i32, {sizes->parts, sizes->rows, ofPart});
  Value numHaving = scratch(i32, {sizes->parts, sizes->rows});
  Type element = getElement(result);
  Value partial;
  if (sizes->parts > 1)
    partial = scratch(getKernelScalar(element), {sizes->parts},
                      /*isOfResults=*/true);

  const size_t dim = op.getDim();
  SmallVector<Value> updates = emitter.localExtents(op.getUpdates());
  const size_t rank = cast<RankedTensorType>(ids.getType()).getRank();
  SmallVector<Value> indexed(ArrayRef(updates).slice(dim, rank));
  // The place of an update among the indices.
  auto getPlace = [&](Value update) {
    SmallVector<Value> place(rank);
    for (size_t i = rank; i-- > 0;) {
      place[i] = i == 0 ? update : math.rem(update, indexed[i]);
      update = i == 0 ? update : math.div(update, indexed[i]);
    }
    return place;
  };
  Value chunks = emitter.index(sizes->chunks),
        chunk = emitter.index(sizes->chunk), rows = emitter.index(sizes->rows);
  auto getUpdate = [&](Value ofChunk, Value inChunk) {
    return math.add(math.mul(ofChunk, chunk), inChunk);
  };

  emitter.parallel({chunks, chunk}, [&](ArrayRef<Value> at) {
    Value update = getUpdate(at[0], at[1]);
    Value exists = sizes->updates % sizes->chunk == 0
                       ? emitter.yes()
                       : math.less(update, emitter.index(sizes->updates));
    Value row = emitter.guarded(exists, rows, [&] {
      Value global = emitter.toIndex(emitter.element(ids, getPlace(update)),
                                     getElement(ids));
      auto [held, local] = emitter.localIndex(result, dim, global);
      Value bound = emitter.extent(whole.extents[dim]);
      return math.select(math.both(emitter.inRange(global, bound), held), local,
                         rows);
    });
    store(toI32(row), rowOf, at);
  });
  emitter.parallel({chunks, rows}, [&](ArrayRef<Value> at) {
    store(number(0), first, at);
    store(number(0), count, at);
    Value part = emitter.index(ofPart);
    store(number(0), having,
          {math.div(at[0], part), at[1], math.rem(at[0], part)});
  });
  auto next = [&](Value counted, Value condition) -> Value {
    return math.add(counted, arith::ExtUIOp::create(b, loc, i32, condition));
  };
  emitter.parallel({chunks, chunk}, [&](ArrayRef<Value> at) {
    Value own = load(rowOf, at);
    SmallVector<Value> found = emitter.inOrder(
        chunk, {number(0), number(0), number(0)},
        [&](ArrayRef<Value> k, ValueRange counted) -> SmallVector<Value> {
          Value other = load(rowOf, {at[0], k[0]});
          Value same = math.equal(other, own);
          return {next(counted[0], math.less(other, own)),
                  next(counted[1], math.both(same, math.less(k[0], at[1]))),
                  next(counted[2], math.both(same, math.less(at[1], k[0])))};
        });
    Value position = arith::IndexCastUIOp::create(b, loc, b.getIndexType(),
                                                  math.add(found[0], found[1]));
    store(toI32(getUpdate(at[0], at[1])), sorted, {at[0], position});
    Value isLast = math.equal(found[2], number(0));
    Value isRow = math.less(own, number(sizes->rows));
    emitter.ifThen(math.both(isLast, isRow), [&] {
      Value row = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), own);
      store(found[0], first, {at[0], row});
      store(math.add(found[1], number(1)), count, {at[0], row});
    });
  });

  // An element of the result looks at those alone: a row may have few updates.
  emitter.parallel(
      {emitter.index(sizes->parts), rows}, [&](ArrayRef<Value> at) {
        Value begin = math.mul(at[0], emitter.index(ofPart));
        Value found = emitter.inOrder(
            emitter.index(ofPart), number(0),
            [&](ArrayRef<Value> k, ValueRange counted) -> SmallVector<Value> {
              Value ofChunk = math.add(begin, k[0]);
              Value has = math.less(number(0), load(count, {ofChunk, at[1]}));
              emitter.ifThen(has, [&] {
                Value place = arith::IndexCastUIOp::create(
                    b, loc, b.getIndexType(), counted[0]);
                store(toI32(ofChunk), having, {at[0], at[1], place});
              });
              return {next(counted[0], has)};
            })[0];
        store(found, numHaving, at);
      });

  auto combine = [&](Value x, Value y) {
    auto combiner = op.getCombiner(); // none: the last one stays
    return combiner ? emitter.combine(*combiner, element, x, y,
                                      /*mayReorder=*/false)
                    : y;
  };
  // What the chunks of a part have for a place of the result.
  auto take = [&](ArrayRef<Value> place, Value part, Value init) {
    Value row = place[dim];
    return emitter.inOrder(
        loadIndex(numHaving, {part, row}), init,
        [&](ArrayRef<Value> at, ValueRange value) {
          Value ofChunk = loadIndex(having, {part, row, at[0]});
          Value from = loadIndex(first, {ofChunk, row});
          return emitter.inOrder(
              loadIndex(count, {ofChunk, row}), value,
              [&](ArrayRef<Value> k, ValueRange value) -> SmallVector<Value> {
                Value update =
                    loadIndex(sorted, {ofChunk, math.add(from, k[0])});
                SmallVector<Value> id = getPlace(update), at(place);
                at.erase(at.begin() + dim);
                at.insert(at.begin() + dim, id.begin(), id.end());
                return {
                    combine(value[0], emitter.element(op.getUpdates(), at))};
              });
        })[0];
  };
  SmallVector<Value> extents = emitter.localExtents(result);
  if (!partial) {
    emitter.parallel(extents, [&](ArrayRef<Value> place) {
      Value init = emitter.element(op.getInit(), place);
      emitter.store(take(place, emitter.index(0), init), result, place);
    });
    return;
  }
  SmallVector<Value> all = {emitter.index(sizes->parts)};
  llvm::append_range(all, extents);
  emitter.parallel(all, [&](ArrayRef<Value> at) {
    store(take(at.drop_front(), at[0], emitter.zero(element)), partial, at);
  });
  emitter.parallel(extents, [&](ArrayRef<Value> place) {
    Value init = emitter.element(op.getInit(), place);
    Value sum = emitter.inOrder(
        all[0], init,
        [&](ArrayRef<Value> part, ValueRange value) -> SmallVector<Value> {
          SmallVector<Value> at = {part[0]};
          llvm::append_range(at, place);
          return {combine(value[0], load(partial, at))};
        })[0];
    emitter.store(sum, result, place);
  });
}
