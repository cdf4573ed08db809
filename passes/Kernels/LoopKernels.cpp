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

namespace {
/// The loops of a list of tiles. All numbers are of type index.
struct PackedTiles {
  KernelEmitter &emitter;
  tv::PackedTilesOp op;
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc();
  Arith math{b, loc};
  const int64_t sequences = op.getNumSequences(), rows = op.getRows(),
                positions = op.getNumPositions();

  // Numbers of sequences and of their tiles are words, as in the list: a thread
  // goes through all sequences, and 64 bits take twice the time.
  Value word(int64_t value) {
    return arith::ConstantIntOp::create(b, loc, b.getI32Type(), value);
  }
  Value toWord(Value index) {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
  }
  Value toIndex(Value word) {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), word);
  }
  Value number(int64_t value) { return emitter.index(value); }
  void store(Value value, Value batch, Value at) {
    emitter.store(value, op.getResult(), {batch, at});
  }
  /// Tile `at` of the list, or what stands before the tiles.
  void storeFour(ArrayRef<Value> values, Value batch, Value at) {
    for (auto [i, value] : llvm::enumerate(values))
      store(value, batch,
            math.add(math.mul(at, number(4)), number(int64_t(i))));
  }
  /// Where sequence `i` begins, of the positions, as far as it alone says.
  Value beginOf(Value batch, Value i) {
    // Sequences are those of all batches.
    Value of =
        emitter.globalIndices(op.getResult().getType(), {batch, number(0)})[0];
    Value begin = emitter.element(op.getBegins(), {of, i});
    begin = arith::MaxSIOp::create(b, loc, begin, word(0));
    return arith::MinSIOp::create(b, loc, begin, word(positions));
  }
  Value countTiles(Value begin, Value end) {
    return math.div(math.add(math.sub(end, begin), word(rows - 1)), word(rows));
  }
  Value sectionOf(Value begin) { return math.div(begin, word(16384)); }

  /// `body` has a sequence's number, where it begins and ends, and what it gave
  /// for the one before. Gives where the last one ends, and what `body` gave.
  using OfSequence =
      llvm::function_ref<SmallVector<Value>(Value, Value, Value, ValueRange)>;
  SmallVector<Value> forSequences(Value batch, int64_t values,
                                  OfSequence body) {
    SmallVector<Value> init(1 + values, word(0));
    init[0] = beginOf(batch, number(0));
    return emitter.inOrder(
        number(sequences), init, [&](ArrayRef<Value> i, ValueRange before) {
          Value end =
              math.max(before[0], beginOf(batch, math.add(i[0], number(1))));
          SmallVector<Value> next = {end};
          llvm::append_range(
              next, body(toWord(i[0]), before[0], end, before.drop_front()));
          return next;
        });
  }
  /// How many tiles of sequence `i`, from `begin` to `end`, stand before tile m
  /// of `sequence`, which has so many and begins at `ownBegin`.
  Value countBefore(Value i, Value begin, Value end, Value m, Value sequence,
                    Value tiles, Value ownBegin) {
    Value all = countTiles(begin, end), none = word(0);
    Value section = sectionOf(begin), ownSection = sectionOf(ownBegin);
    Value isBefore = math.less(i, sequence);
    Value inSection;
    if (op.getCausal()) {
      // Those behind its tile m, and that one.
      Value behind = math.sub(math.sub(all, m), word(1));
      inSection = math.select(
          math.less(m, all),
          math.add(behind, math.select(isBefore, word(1), none)), none);
    } else {
      Value comes =
          arith::OrIOp::create(b, loc, math.less(tiles, all),
                               math.both(math.equal(tiles, all), isBefore));
      inSection = math.select(comes, all, none);
    }
    return math.select(math.equal(section, ownSection), inSection,
                       math.select(math.less(section, ownSection), all, none));
  }
};
} // namespace

static void emitLoops(KernelEmitter &emitter, tv::PackedTilesOp op) {
  PackedTiles list{emitter, op};
  Arith &math = list.math;
  auto number = [&](int64_t value) { return list.number(value); };
  emitter.addOutput(op.getResult());
  SmallVector<Value> words = emitter.localExtents(op.getResult());
  // As many tiles as there may be. Each thread has one, the number-th where
  // sequences stand in order, and a part of the words behind the last.
  const int64_t threads =
      std::max<int64_t>(list.positions / list.rows + list.sequences, 1);
  emitter.parallel({words[0], number(threads)}, [&](ArrayRef<Value> place) {
    Value batch = place[0], tile = list.toWord(place[1]);
    // All tiles; of the thread's, its sequence, where that begins and ends, and
    // the number of its first.
    SmallVector<Value> own = list.forSequences(
        batch, 5, [&](Value i, Value begin, Value end, ValueRange before) {
          Value tiles = list.countTiles(begin, end);
          // Below the first the difference is larger than any number of tiles.
          Value isOwn = math.less(math.sub(tile, before[0]), tiles);
          return SmallVector<Value>{math.add(before[0], tiles),
                                    math.select(isOwn, i, before[1]),
                                    math.select(isOwn, begin, before[2]),
                                    math.select(isOwn, end, before[3]),
                                    math.select(isOwn, before[0], before[4])};
        });
    Value count = own[1], sequence = own[2], begin = own[3], end = own[4];
    emitter.ifThen(math.less(tile, count), [&] {
      Value m = math.sub(tile, own[5]), tiles = list.countTiles(begin, end);
      Value before = list.forSequences(
          batch, 1, [&](Value i, Value from, Value to, ValueRange sum) {
            return SmallVector<Value>{
                math.add(sum[0], list.countBefore(i, from, to, m, sequence,
                                                  tiles, begin))};
          })[1];
      if (!op.getCausal()) // its own last ones
        before = math.add(before, math.sub(math.sub(tiles, m), list.word(1)));
      Value ofTile[] = {begin, math.sub(end, begin), m, sequence};
      list.storeFour(ofTile, batch, math.add(list.toIndex(before), number(1)));
    });
    emitter.ifThen(math.equal(place[1], number(0)), [&] {
      Value header[] = {count, list.beginOf(batch, number(0)), own[0],
                        list.word(0)};
      list.storeFour(header, batch, number(0));
    });
    Value last = math.mul(math.add(list.toIndex(count), number(1)), number(4));
    const int64_t most = list.positions + 4 * list.sequences;
    emitter.inOrder(
        number(llvm::divideCeil(most, threads)), {},
        [&](ArrayRef<Value> i, ValueRange) {
          Value at = math.add(
              last, math.add(math.mul(i[0], number(threads)), place[1]));
          emitter.ifThen(math.less(at, words[1]),
                         [&] { list.store(list.word(0), batch, at); });
          return SmallVector<Value>();
        });
  });
}

using Emit = void (*)(KernelEmitter &, Operation *);

static Emit getEmit(Operation *op) {
  return TypeSwitch<Operation *, Emit>(op)
      // The ops that this file is about.
      .Case<tv::ScatterOp, tv::CumsumOp, tv::DispatchOp, tv::PackedTilesOp>(
          [](auto op) -> Emit {
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
