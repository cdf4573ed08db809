//===- Attention.cpp - attention by its definition -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Ops/Evaluators.h"
#include "Interpreter/Ops/ScalarProgram.h"
#include "TensorView/ScalarGradient.h"
#include "TensorView/TensorView.h"

#include "mlir/IR/OwningOpRef.h"

#include <array>
#include <cmath>
#include <map>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

/// Where a batch's packed sequences begin and end as far as they are used, of
/// so many positions, from an operand that says where they begin; the next one
/// may say how many positions are used.
static std::vector<std::pair<int64_t, int64_t>>
readSequences(OpRun &run, unsigned operand, bool hasUsed, int64_t batch,
              int64_t positions) {
  std::vector<std::pair<int64_t, int64_t>> sequences;
  int64_t end = 0;
  for (int64_t i = 0, e = run.shapeOf(operand)[1]; i < e; ++i) {
    const int64_t begin = end;
    end =
        std::max(end, std::min(run.read(operand, {batch, i}).whole, positions));
    if (i == 0)
      continue;
    const int64_t length =
        hasUsed
            ? std::clamp<int64_t>(run.read(operand + 1, {batch, i - 1}).whole,
                                  0, end - begin)
            : end - begin;
    sequences.push_back({begin, begin + length});
  }
  return sequences;
}

/// The sequence of each position of this device's batches, -1 where there is
/// none; empty if the op has no packed sequences.
using SequencesOf = std::map<int64_t, std::vector<int64_t>>;
template <typename Op>
static SequencesOf getSequencesOf(OpRun &run, Op op, unsigned query) {
  SequencesOf sequencesOf;
  if (!op.getSequences() && !op.getTiles())
    return sequencesOf;
  const unsigned operand = op->getNumOperands() - 1 - bool(op.getUsed());
  for (int64_t batch : run.along(query, 0)) {
    std::vector<int64_t> &own = sequencesOf[batch];
    own.assign(run.shapeOf(query)[2], -1);
    // Tiles that are data may say anything; what is no position is nothing.
    auto add = [&](int64_t begin, int64_t end, int64_t number) {
      end = std::min<int64_t>(end, own.size());
      for (int64_t at = std::max<int64_t>(begin, 0); at < end; ++at)
        own[at] = number;
    };
    if (op.getSequences()) {
      for (auto [i, span] : llvm::enumerate(readSequences(
               run, operand, bool(op.getUsed()), batch, own.size())))
        add(span.first, span.second, i);
      continue;
    }
    auto word = [&](int64_t at) {
      return run.read(operand, {batch, at}).whole;
    };
    const int64_t count = (run.shapeOf(operand)[1] - own.size() - 4) / 8;
    for (int64_t i = 0; i < count; ++i)
      add(word(4 + 4 * i), word(4 + 4 * i) + word(5 + 4 * i), i);
  }
  return sequencesOf;
}

/// Whether a block mask or sequences, if there are such, leave the pair to
/// mask_mod; else `kept` is what they say themselves.
template <typename Op>
static bool asksMask(OpRun &run, Op op, unsigned operand,
                     const SequencesOf &sequencesOf, ArrayRef<int64_t> pair,
                     bool &kept) {
  kept = true;
  if (!sequencesOf.empty()) {
    const std::vector<int64_t> &own = sequencesOf.at(pair[0]);
    return kept = own[pair[2]] >= 0 && own[pair[2]] == own[pair[3]];
  }
  if (!op.getBlockMask())
    return true;
  const ArrayRef<int64_t> blocks = *op.getBlocks();
  auto perOne = [&](unsigned dim) {
    return run.shapeOf(operand)[dim] == 1 ? 0 : pair[dim];
  };
  const int64_t kind =
      run.read(operand,
               {perOne(0), perOne(1), pair[2] / blocks[0], pair[3] / blocks[1]})
          .whole;
  kept = kind != 0;
  return kept && kind != 2;
}

/// What dropout multiplies a weight by, of which there are [B, H, S, T].
template <typename Op>
static double dropoutFactor(OpRun &run, Op op, unsigned step,
                            ArrayRef<int64_t> pair, ArrayRef<int64_t> of) {
  if (!op.getDropout())
    return 1;
  const double rate = op.getDropout()->convertToDouble();
  const uint64_t stream =
      *op.getStream() + (op.getStep() ? run.read(step, {}).whole << 32 : 0);
  const double number =
      randomNumber(*op.getSeed(), stream, linearize(pair, of));
  return number < rate ? 0 : 1 / (1 - rate);
}

namespace {
/// The scores of one query, and of what its softmax is made.
struct Row {
  std::vector<double> weights; ///< exp(score - largest), 0 where masked
  double sum = 0;
  double largest = -std::numeric_limits<double>::infinity();
};

class Attention {
public:
  explicit Attention(OpRun &run)
      : run(run), op(cast<tv::AttentionOp>(run.op)) {}

  LogicalResult evaluate() {
    if ((!op.getScoreMod().empty() &&
         failed(scoreMod.compile(op.getScoreMod(), run))) ||
        (!op.getMaskMod().empty() &&
         failed(maskMod.compile(op.getMaskMod(), run))))
      return failure();
    sequencesOf = getSequencesOf(run, op, 0);
    // Every query needs all of its own dimension and all keys.
    if (!run.isWhole(0, 3) || !run.isWhole(1, 3) || !run.isWhole(1, 2) ||
        !run.isWhole(2, 2))
      return failure();
    if (op.getPages() && (!run.isWhole(1, 0) || !run.isWhole(2, 0) ||
                          !run.isWhole(structure(), 1)))
      return failure();
    const Index of = {run.shapeOf(0)[0], run.shapeOf(0)[1], run.shapeOf(0)[2],
                      numKeys()};
    Index last;
    Row row;
    run.fill(0, [&](ArrayRef<int64_t> index) {
      // Elements of one query follow each other.
      if (Index query(index.drop_back()); query != last) {
        last = query;
        row = scores(query);
      }
      double sum = 0;
      for (auto [i, weight] : llvm::enumerate(row.weights))
        if (const int64_t t = i; weight != 0)
          sum +=
              weight * read(2, {index[0], group(index[1]), t, index[3]}) *
              dropoutFactor(run, op, 3, {index[0], index[1], index[2], t}, of);
      return real(row.sum > 0 ? sum / row.sum : 0);
    });
    run.fill(1, [&](ArrayRef<int64_t> index) {
      Row own = scores(index);
      return real(own.sum > 0 ? own.largest + std::log(own.sum)
                              : -std::numeric_limits<double>::infinity());
    });
    return success();
  }

private:
  int64_t group(int64_t head) {
    return head / (run.shapeOf(0)[1] / run.shapeOf(1)[1]);
  }

  unsigned structure() { return op->getNumOperands() - 1; }
  int64_t numKeys() {
    const int64_t keys = run.shapeOf(1)[2];
    return op.getPages() ? keys * run.shapeOf(structure())[1] : keys;
  }

  /// Of keys or values, an element of a batch.
  double read(unsigned operand, Index index) {
    if (op.getPages()) {
      const int64_t rows = run.shapeOf(operand)[2];
      const int64_t page =
          run.read(structure(), {index[0], index[2] / rows}).whole;
      if (page < 0 || page >= run.shapeOf(operand)[0])
        return 0;
      index[0] = page, index[2] %= rows;
    }
    return run.read(operand, index).real;
  }

  Row scores(ArrayRef<int64_t> query) {
    int64_t b = query[0], h = query[1], s = query[2];
    int64_t queries = run.shapeOf(0)[2], keys = numKeys(),
            depth = run.shapeOf(0)[3];
    double scale = op.getScale().convertToDouble();
    Row row;
    row.weights.assign(keys, -std::numeric_limits<double>::infinity());
    for (int64_t t = 0; t < keys; ++t) {
      double score = 0;
      for (int64_t d = 0; d < depth; ++d)
        score += run.read(0, {b, h, s, d}).real * read(1, {b, group(h), t, d});
      score *= scale;
      Scalar at[] = {real(score), whole(b), whole(h), whole(s), whole(t)};
      if (!op.getScoreMod().empty())
        score = scoreMod(at)[0].real;
      if (op.getCausal() && t > s + keys - queries)
        continue;
      bool kept;
      if (asksMask(run, op, structure(), sequencesOf, {b, h, s, t}, kept) &&
          !op.getMaskMod().empty())
        kept = maskMod(ArrayRef(at).drop_front())[0].whole;
      if (!kept)
        continue;
      row.weights[t] = score;
      row.largest = std::fmax(row.largest, score);
    }
    for (double &weight : row.weights) {
      bool none = weight == -std::numeric_limits<double>::infinity();
      weight = none ? 0 : std::exp(weight - row.largest);
      row.sum += weight;
    }
    return row;
  }

  OpRun &run;
  tv::AttentionOp op;
  ScalarProgram scoreMod, maskMod;
  SequencesOf sequencesOf;
};

/// By the chain rule, a score at a time. A device has the part of each sum that
/// its queries and keys make.
class AttentionGrad {
public:
  explicit AttentionGrad(OpRun &run)
      : run(run), op(cast<tv::AttentionGradOp>(run.op)) {}

  LogicalResult evaluate() {
    // Without a score_grad it is the derivative of the score_mod.
    OwningOpRef<Operation *> derived;
    Region *scoreGradRegion = &op.getScoreGrad();
    if (!op.getScoreMod().empty() && op.getScoreGrad().empty()) {
      derived = op->clone();
      auto clone = cast<tv::AttentionGradOp>(*derived);
      if (failed(tv::addScoreGrad(clone)))
        return run.fail("score_mod has no gradient");
      scoreGradRegion = &clone.getScoreGrad();
    }
    for (auto [region, program] : {std::pair(&op.getScoreMod(), &scoreMod),
                                   std::pair(&op.getMaskMod(), &maskMod),
                                   std::pair(scoreGradRegion, &scoreGrad)})
      if (!region->empty() && failed(program->compile(*region, run)))
        return failure();
    sequencesOf = getSequencesOf(run, op, kQuery);
    for (auto [operand, dim] :
         {std::pair(kGrad, 3), std::pair(kQuery, 3), std::pair(kKey, 3),
          std::pair(kValue, 3), std::pair(kOutput, 3)})
      if (!run.isWhole(operand, dim))
        return failure();
    if (run.roundScalars)
      roundingOfSums = std::ldexp(
          1.0, -int(cast<FloatType>(run.typeOf(kLse)).getFPMantissaWidth()));
    fillGradients();
    for (unsigned i = 0; i < op.getCapturedGrads().size(); ++i)
      run.fill(3 + i, [](ArrayRef<int64_t>) { return real(0); });
    if (op.getCapturedGrads().empty())
      return success();
    scoreGrad.accumulate = [&](int64_t number, ArrayRef<int64_t> index,
                               double value) {
      if (std::optional<int64_t> at =
              run.results[3 + number].place->find(index))
        run.results[3 + number].data->data[*at].real += value;
    };
    for (int64_t b : run.along(kQuery, 0))
      for (int64_t h : run.along(kQuery, 1))
        for (int64_t s : run.along(kQuery, 2))
          makeRow({b, h, s});
    return success();
  }

private:
  enum : unsigned { kGrad, kQuery, kKey, kValue, kOutput, kLse, kLseGrad };

  /// Of one query and each key of this device.
  struct Row {
    std::vector<double> weights, scoreGrads;
  };

  double number(unsigned operand, Index index, int64_t last) {
    index.push_back(last);
    return run.read(operand, index).real;
  }
  int64_t heads() { return run.shapeOf(kQuery)[1] / run.shapeOf(kKey)[1]; }

  void fillGradients() {
    const std::vector<int64_t> &keys = run.along(kKey, 2);
    run.fill(0, [&](ArrayRef<int64_t> index) {
      const Row &row = rowOf({index[0], index[1], index[2]});
      double sum = 0;
      for (auto [i, t] : llvm::enumerate(keys))
        if (row.scoreGrads[i] != 0)
          sum += row.scoreGrads[i] *
                 number(kKey, {index[0], index[1] / heads(), t}, index[3]);
      return real(sum * op.getScale().convertToDouble());
    });
    auto overQueries = [&](ArrayRef<int64_t> index, unsigned operand,
                           std::vector<double> Row::*factors) {
      size_t key = llvm::lower_bound(keys, index[2]) - keys.begin();
      if (key == keys.size() || keys[key] != index[2]) {
        (void)run.failHere("needs key " + Twine(index[2]) +
                           ", which is not on this device");
        return 0.0;
      }
      double sum = 0;
      for (int64_t h : run.along(kQuery, 1))
        for (int64_t s : run.along(kQuery, 2))
          if (h / heads() == index[1])
            if (double factor = (rowOf({index[0], h, s}).*factors)[key])
              sum += factor * number(operand, {index[0], h, s}, index[3]);
      return sum;
    };
    run.fill(1, [&](ArrayRef<int64_t> index) {
      return real(overQueries(index, kQuery, &Row::scoreGrads) *
                  op.getScale().convertToDouble());
    });
    run.fill(2, [&](ArrayRef<int64_t> index) {
      return real(overQueries(index, kGrad, &Row::weights));
    });
  }

  const Row &rowOf(Index query) {
    auto [it, isNew] =
        rows.try_emplace(std::array<int64_t, 3>{query[0], query[1], query[2]});
    if (isNew) {
      scoreGrad.accumulate = [](int64_t, ArrayRef<int64_t>, double) {};
      it->second = makeRow(query);
    }
    return it->second;
  }

  Row makeRow(const Index &query) {
    int64_t b = query[0], h = query[1], s = query[2];
    int64_t depth = run.shapeOf(kQuery)[3], width = run.shapeOf(kValue)[3];
    const std::vector<int64_t> &held = run.along(kKey, 2);
    Row row;
    row.weights.assign(held.size(), 0);
    row.scoreGrads.assign(held.size(), 0);
    double lse = run.read(kLse, query).real;
    if (lse == -std::numeric_limits<double>::infinity())
      return row; // no keys
    double dlse = op.getLseGrad() ? run.read(kLseGrad, query).real : 0;
    for (auto [i, t] : llvm::enumerate(held)) {
      Index key = {b, h / heads(), t};
      Scalar at[] = {Scalar{}, Scalar{}, whole(b),
                     whole(h), whole(s), whole(t)};
      if (op.getCausal() &&
          t > s + run.shapeOf(kKey)[2] - run.shapeOf(kQuery)[2])
        continue;
      bool kept;
      if (asksMask(run, op, op->getNumOperands() - 1, sequencesOf, {b, h, s, t},
                   kept) &&
          !op.getMaskMod().empty())
        kept = maskMod(ArrayRef(at).drop_front(2))[0].whole;
      if (!kept)
        continue;
      const double factor = dropoutFactor(
          run, op, kLse + 1 + bool(op.getLseGrad()) + op.getCaptured().size(),
          {b, h, s, t},
          {run.shapeOf(kQuery)[0], run.shapeOf(kQuery)[1],
           run.shapeOf(kQuery)[2], run.shapeOf(kKey)[2]});
      double product = 0, slope = dlse, magnitude = 0;
      for (int64_t d = 0; d < depth; ++d)
        product += number(kQuery, query, d) * number(kKey, key, d);
      for (int64_t v = 0; v < width; ++v) {
        double grad = number(kGrad, query, v);
        double value = number(kValue, key, v);
        double mean = number(kOutput, query, v);
        slope += grad * (factor * value - mean);
        magnitude += std::fabs(factor * grad * value) + std::fabs(grad * mean);
      }
      slope += magnitude * roundingOfSums;
      double score = product * op.getScale().convertToDouble(),
             modified = score;
      at[1] = real(score);
      if (!op.getScoreMod().empty())
        modified = scoreMod(ArrayRef(at).drop_front())[0].real;
      row.weights[i] = std::exp(modified - lse);
      row.scoreGrads[i] = row.weights[i] * slope;
      at[0] = at[1];
      at[1] = real(row.scoreGrads[i]);
      if (!op.getScoreMod().empty())
        row.scoreGrads[i] = scoreGrad(at)[0].real;
      row.weights[i] *= factor; // of the values
    }
    return row;
  }

  OpRun &run;
  tv::AttentionGradOp op;
  ScalarProgram scoreMod, maskMod, scoreGrad;
  SequencesOf sequencesOf;
  std::map<std::array<int64_t, 3>, Row> rows;
  /// The two sums that make a slope cancel. A program that rounds them may be
  /// off by half an ulp of what they sum.
  double roundingOfSums = 0;
};
} // namespace

static LogicalResult evalBlockMask(OpRun &run) {
  auto op = cast<tv::BlockMaskOp>(run.op);
  ScalarProgram maskMod;
  if (failed(maskMod.compile(op.getMaskMod(), run)))
    return failure();
  run.fill(0, [&](ArrayRef<int64_t> index) {
    bool any = false, all = true;
    auto end = [&](unsigned dim) {
      return std::min((index[2 + dim] + 1) * op.getBlocks()[dim],
                      op.getOf()[dim]);
    };
    for (int64_t s = index[2] * op.getBlocks()[0]; s < end(0); ++s)
      for (int64_t t = index[3] * op.getBlocks()[1]; t < end(1); ++t) {
        const Scalar at[] = {whole(index[0]), whole(index[1]), whole(s),
                             whole(t)};
        const bool kept = maskMod(at)[0].whole;
        any |= kept, all &= kept;
      }
    return whole(any + (any && all));
  });
  return success();
}

static LogicalResult evalPackedTiles(OpRun &run) {
  auto op = cast<tv::PackedTilesOp>(run.op);
  const int64_t rows = op.getRows();
  struct Tile {
    int64_t begin, length, number, sequence;
    int64_t count(int64_t rows) const { return llvm::divideCeil(length, rows); }
  };
  auto makeWords = [&](int64_t batch) {
    std::vector<Tile> tiles;
    const auto sequences =
        readSequences(run, 0, bool(op.getUsed()), batch, op.getNumPositions());
    std::vector<int64_t> words = {0, 0, 0, 0};
    for (auto [i, span] : llvm::enumerate(sequences)) {
      const int64_t length = span.second - span.first;
      words[1] += length;
      words.insert(words.end(), {span.first, length,
                                 int64_t(llvm::divideCeil(length, rows)), 0});
      for (int64_t m = 0; m * rows < length; ++m)
        tiles.push_back({span.first, length, m, int64_t(i)});
    }
    llvm::stable_sort(tiles, [&](const Tile &a, const Tile &b) {
      auto key = [&](const Tile &tile) {
        const int64_t last = -tile.number, section = tile.begin / 16384;
        return op.getCausal()
                   ? std::tuple(section, last, tile.sequence, int64_t(0))
                   : std::tuple(section, -tile.count(rows), tile.sequence,
                                last);
      };
      return key(a) < key(b);
    });
    words[0] = tiles.size();
    for (const Tile &tile : tiles)
      words.insert(words.end(),
                   {tile.begin, tile.length, tile.number, tile.sequence});
    words.resize(run.resultShape(0)[1]);
    return words;
  };
  std::map<int64_t, std::vector<int64_t>> words;
  run.fill(0, [&](ArrayRef<int64_t> index) {
    auto [own, isNew] = words.try_emplace(index[0]);
    if (isNew)
      own->second = makeWords(index[0]);
    return whole(own->second[index[1]]);
  });
  return success();
}

void interp::addAttention(EvaluatorTable &table) {
  add<tv::PackedTilesOp>(table, evalPackedTiles);
  add<tv::BlockMaskOp>(table, evalBlockMask);
  add<tv::AttentionOp>(table,
                       [](OpRun &run) { return Attention(run).evaluate(); });
  add<tv::AttentionGradOp>(
      table, [](OpRun &run) { return AttentionGrad(run).evaluate(); });
}
