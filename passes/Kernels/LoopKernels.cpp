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
#include "Plan/Target.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

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
  // On many multiprocessors the tokens are cut into parts, each with a warp for
  // every expert, which first counts what it was given before.
  const int64_t multiprocessors =
      plan::getTarget(op).getLimits().multiprocessors;
  const int64_t parts = std::max<int64_t>(
      16 * multiprocessors / getConstantIntValue(allExperts).value_or(1), 1);
  Value tokenCount = choices[0], perToken = choices[1];
  Value partSize = math.div(math.add(tokenCount, emitter.index(parts - 1)),
                            emitter.index(parts));
  auto least = [&](Value x, Value y) {
    return math.select(math.less(x, y), x, y);
  };
  auto isGiven = [&](ArrayRef<Value> choice, Value expert) {
    return math.equal(expertAt(choice), expert);
  };
  auto countBefore = [&](Value token, Value expert) {
    constexpr int64_t kLanes = 32;
    Value lanes = emitter.index(kLanes), all = math.mul(token, perToken);
    return emitter.reduce(
        lanes, KernelEmitter::Reduction{tv::Combiner::Sum, b.getIndexType()},
        [&](ArrayRef<Value> lane) {
          Value last = math.add(all, emitter.index(kLanes - 1));
          Value trips = math.div(math.sub(last, lane[0]), lanes);
          return emitter.inOrder(
              trips, none, [&](ArrayRef<Value> trip, ValueRange sum) {
                Value at = math.add(math.mul(trip[0], lanes), lane[0]);
                Value given = isGiven(
                    {math.div(at, perToken), math.rem(at, perToken)}, expert);
                return SmallVector<Value>{
                    math.add(sum[0], math.select(given, one, none))};
              });
        })[0];
  };
  emitter.parallel({emitter.index(parts), allExperts}, [&](ArrayRef<Value> of) {
    Value part = of[0], expert = of[1];
    Value begin = least(math.mul(part, partSize), tokenCount);
    Value end = least(math.add(begin, partSize), tokenCount);
    Value before = parts > 1 ? countBefore(begin, expert) : none;
    const SmallVector<Value> own = {math.sub(end, begin), perToken};
    SmallVector<Value> given =
        emitter.inOrder(own, before, [&](ArrayRef<Value> at, ValueRange row) {
          const SmallVector<Value> choice = {math.add(begin, at[0]), at[1]};
          Value isHere = isGiven(choice, expert);
          emitter.ifThen(
              math.both(isHere, emitter.inRange(row[0], capacity)), [&] {
                emitter.store(
                    arith::IndexCastOp::create(b, loc, slotType, row[0]), slots,
                    choice);
              });
          return SmallVector<Value>{
              math.add(row[0], math.select(isHere, one, none))};
        });
    auto [held, e] = emitter.localIndex(result, 0, expert);
    Value isLast = math.equal(part, emitter.index(parts - 1));
    emitter.ifThen(math.both(held, isLast), [&, e = e] {
      Value count = least(given[0], capacity);
      emitter.store(arith::IndexCastOp::create(b, loc, countType, count),
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
/// The loops of a list of tiles.
struct PackedTiles {
  KernelEmitter &emitter;
  tv::PackedTilesOp op;
  OpBuilder &b = emitter.builder();
  Location loc = emitter.loc();
  Arith math{b, loc};
  const int64_t sequences = op.getNumSequences(), rows = op.getRows(),
                positions = op.getNumPositions();
  Value falls{}; ///< whether a begin is before another that it should follow

  // Numbers of sequences and of their tiles are words, as in the list: 64 bits
  // take twice the time.
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
  /// What stands before the sequences, a sequence or a tile.
  void storeFour(ArrayRef<Value> values, Value batch, Value at) {
    for (auto [i, value] : llvm::enumerate(values))
      store(value, batch,
            math.add(math.mul(at, number(4)), number(int64_t(i))));
  }
  /// Sequences are those of all batches.
  Value globalBatch(Value batch) {
    return emitter.globalIndices(op.getResult().getType(),
                                 {batch, number(0)})[0];
  }
  Value clamp(Value value, Value most) {
    return arith::MinSIOp::create(
        b, loc, arith::MaxSIOp::create(b, loc, value, word(0)), most);
  }
  /// Where sequence `i` begins, of the positions, as far as it alone says.
  Value saidBegin(Value batch, Value i) {
    return clamp(emitter.element(op.getBegins(), {globalBatch(batch), i}),
                 word(positions));
  }
  Value countTiles(Value length) {
    return math.div(math.add(length, word(rows - 1)), word(rows));
  }
  Value sectionOf(Value begin) { return math.div(begin, word(16384)); }

  struct Sequence {
    Value begin, length, tiles;
  };
  /// Sequence `i`, which begins there.
  Sequence getSequence(Value batch, Value i, Value begin) {
    Value length = math.sub(endOf(batch, i, begin), begin);
    if (op.getUsed())
      length =
          clamp(emitter.element(op.getUsed(), {globalBatch(batch), i}), length);
    return {begin, length, countTiles(length)};
  }
  /// One that would begin before the end of another begins there.
  Value endOf(Value batch, Value i, Value begin) {
    return math.max(begin, saidBegin(batch, math.add(i, number(1))));
  }
  /// Only where begins fall, as they should not, those before are looked at.
  Sequence findSequence(Value batch, Value i) {
    Value begin =
        emitter.inOrder(math.select(falls, i, number(0)), saidBegin(batch, i),
                        [&](ArrayRef<Value> before, ValueRange largest) {
                          return SmallVector<Value>{math.max(
                              largest[0], saidBegin(batch, before[0]))};
                        })[0];
    return getSequence(batch, i, begin);
  }
  /// A number for each place where sequence `i` may have its first tile; those
  /// of its others follow, and are below the next sequence's.
  Value firstSlot(Value begin, Value i) {
    return math.add(math.div(begin, word(rows)), i);
  }
  /// Sums over all sequences: by all threads of a row, or, where begins fall,
  /// in order.
  using OfSequence =
      llvm::function_ref<SmallVector<Value>(Value, const Sequence &)>;
  SmallVector<Value> sumOver(Value batch, unsigned count, OfSequence addends) {
    SmallVector<KernelEmitter::Reduction> reductions(
        count, {tv::Combiner::Sum, b.getI32Type()});
    SmallVector<Value> sums =
        emitter.reduce(number(sequences), reductions, [&](ArrayRef<Value> i) {
          return addends(i[0],
                         getSequence(batch, i[0], saidBegin(batch, i[0])));
        });
    SmallVector<Value> init(1 + count, word(0));
    init[0] = saidBegin(batch, number(0));
    SmallVector<Value> inOrder = emitter.inOrder(
        math.select(falls, number(sequences), number(0)), init,
        [&](ArrayRef<Value> i, ValueRange before) {
          SmallVector<Value> next = {endOf(batch, i[0], before[0])};
          SmallVector<Value> more =
              addends(i[0], getSequence(batch, i[0], before[0]));
          for (auto [sum, addend] : llvm::zip_equal(before.drop_front(), more))
            next.push_back(math.add(sum, addend));
          return next;
        });
    for (auto [sum, other] :
         llvm::zip_equal(sums, ArrayRef(inOrder).drop_front()))
      sum = math.select(falls, other, sum);
    return sums;
  }
  /// How many tiles of sequence `i` stand before tile m of `ownNumber`.
  Value countBefore(Value i, const Sequence &each, Value m, Value ownNumber,
                    const Sequence &own) {
    Value all = each.tiles, none = word(0);
    Value section = sectionOf(each.begin), ownSection = sectionOf(own.begin);
    Value isBefore = math.less(i, ownNumber);
    Value inSection;
    if (op.getCausal()) {
      // Those behind its tile m, and that one.
      Value behind = math.sub(math.sub(all, m), word(1));
      inSection = math.select(
          math.less(m, all),
          math.add(behind, math.select(isBefore, word(1), none)), none);
    } else {
      Value comes =
          arith::OrIOp::create(b, loc, math.less(own.tiles, all),
                               math.both(math.equal(own.tiles, all), isBefore));
      inSection = math.select(comes, all, none);
    }
    return math.select(math.equal(section, ownSection), inSection,
                       math.select(math.less(section, ownSection), all, none));
  }

  void makeTile(Value batch, Value slot, int64_t slots);
};
} // namespace

/// The sequence with the number `slot`, the tile that has this slot, if one
/// has, and a part of the words behind the last tile.
void PackedTiles::makeTile(Value batch, Value slot, int64_t slots) {
  Value own = toWord(slot);
  KernelEmitter::Reduction any = {tv::Combiner::Max, b.getI32Type()};
  falls = math.less(
      word(0), emitter.reduce(number(sequences), any, [&](ArrayRef<Value> i) {
        Value begin = saidBegin(batch, i[0]),
              next = saidBegin(batch, math.add(i[0], number(1)));
        return SmallVector<Value>{
            math.select(math.less(next, begin), word(1), word(0))};
      })[0]);
  SmallVector<Value> sums =
      sumOver(batch, 3, [&](Value i, const Sequence &each) {
        Value isBehind = math.less(own, firstSlot(each.begin, toWord(i)));
        return SmallVector<Value>{math.select(isBehind, word(0), word(1)),
                                  each.tiles, each.length};
      });
  Value behind =
      math.add(toIndex(math.add(sums[1], word(sequences))), number(1));
  emitter.ifThen(math.equal(slot, number(0)), [&] {
    storeFour({sums[1], sums[2], word(0), word(0)}, batch, number(0));
  });
  emitter.ifThen(math.less(slot, number(sequences)), [&] {
    Sequence each = findSequence(batch, slot);
    storeFour({each.begin, each.length, each.tiles, word(0)}, batch,
              math.add(slot, number(1)));
  });
  emitter.ifThen(math.less(word(0), sums[0]), [&] {
    Value sequence = math.sub(sums[0], word(1));
    Sequence of = findSequence(batch, toIndex(sequence));
    Value m = math.sub(own, firstSlot(of.begin, sequence));
    emitter.ifThen(math.less(m, of.tiles), [&] {
      Value before = sumOver(batch, 1, [&](Value i, const Sequence &each) {
        return SmallVector<Value>{
            countBefore(toWord(i), each, m, sequence, of)};
      })[0];
      if (!op.getCausal()) // its own last ones
        before = math.add(before, math.sub(math.sub(of.tiles, m), word(1)));
      storeFour({of.begin, of.length, m, sequence}, batch,
                math.add(toIndex(before), number(1 + sequences)));
    });
  });
  const int64_t most = positions + 4 * sequences,
                share = llvm::divideCeil(most, slots);
  Value words = number(4 + 4 * sequences + most);
  Value first =
      math.add(math.mul(behind, number(4)), math.mul(slot, number(share)));
  emitter.parallel(number(share), [&](ArrayRef<Value> i) {
    Value at = math.add(first, i[0]);
    emitter.ifThen(math.less(at, words), [&] { store(word(0), batch, at); });
  });
}

static void emitLoops(KernelEmitter &emitter, tv::PackedTilesOp op) {
  PackedTiles list{emitter, op};
  emitter.addOutput(op.getResult());
  SmallVector<Value> words = emitter.localExtents(op.getResult());
  // Without sequences all lists are alike.
  const bool causal = op.getCausal() && list.sequences > 0;
  emitter.function()->setAttr(
      plan::kPackedTilesAttr,
      emitter.builder().getDenseI64ArrayAttr(
          {list.positions, list.sequences, list.rows, causal}));
  if (list.sequences == 0)
    return emitter.parallel(words, [&](ArrayRef<Value> at) {
      list.store(list.word(0), at[0], at[1]);
    });
  const int64_t slots = list.positions / list.rows + list.sequences;
  emitter.parallel({words[0], list.number(slots)}, [&](ArrayRef<Value> at) {
    list.makeTile(at[0], at[1], slots);
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
