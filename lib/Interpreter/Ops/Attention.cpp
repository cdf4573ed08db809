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
  const double number = randomNumber(*op.getSeed(), stream, linearize(pair, of),
                                     tv::DropoutOp::kBits);
  return tv::DropoutOp::keeps(rate, number) ? 1 / (1 - rate) : 0;
}

/// Of two rows; one that has nothing is zeros.
static double dot(ArrayRef<Scalar> a, ArrayRef<Scalar> b) {
  double sum = 0;
  for (auto [x, y] : llvm::zip(a, b))
    sum += x.real * y.real;
  return sum;
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
    const std::vector<int64_t> &columns = run.along(2, 3);
    Index last;
    Row row;
    std::vector<double> sums; // of each column
    run.fill(0, [&](ArrayRef<int64_t> index) {
      // Elements of one query follow each other.
      if (Index query(index.drop_back()); query != last) {
        last = query;
        row = scores(query);
        sums.assign(columns.size(), 0);
        for (auto [i, weight] : llvm::enumerate(row.weights))
          if (const int64_t t = i; weight != 0) {
            const double factor =
                weight * dropoutFactor(run, op, 3,
                                       {query[0], query[1], query[2], t}, of);
            for (auto [sum, value] :
                 llvm::zip(sums, keyRow(2, query[0], group(query[1]), t)))
              sum += factor * value.real;
          }
      }
      auto column = llvm::lower_bound(columns, index[3]);
      if (column == columns.end() || *column != index[3]) {
        (void)run.failHere("needs column " + Twine(index[3]) +
                           " of its values, which is not on this device");
        return real(0);
      }
      return real(row.sum > 0 ? sums[column - columns.begin()] / row.sum : 0);
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

  /// A key, or its value, of a batch; nothing for zeros.
  ArrayRef<Scalar> keyRow(unsigned operand, int64_t batch, int64_t head,
                          int64_t key) {
    if (op.getPages()) {
      const int64_t rows = run.shapeOf(operand)[2];
      batch = run.read(structure(), {batch, key / rows}).whole;
      if (batch < 0 || batch >= run.shapeOf(operand)[0])
        return {};
      key %= rows;
    }
    return run.row(operand, {batch, head, key});
  }

  Row scores(ArrayRef<int64_t> query) {
    int64_t b = query[0], h = query[1], s = query[2];
    int64_t queries = run.shapeOf(0)[2], keys = numKeys();
    ArrayRef<Scalar> own = run.row(0, {b, h, s});
    double scale = op.getScale().convertToDouble();
    Row row;
    row.weights.assign(keys, -std::numeric_limits<double>::infinity());
    for (int64_t t = 0; t < keys; ++t) {
      double score = scale * dot(own, keyRow(1, b, group(h), t));
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
    for (unsigned i = 0; i < op.getCapturedGrads().size(); ++i)
      run.fill(3 + i, [](ArrayRef<int64_t>) { return real(0); });
    scoreGrad.accumulate = [&](int64_t number, ArrayRef<int64_t> index,
                               double value) {
      if (std::optional<int64_t> at =
              run.results[3 + number].place->find(index))
        run.results[3 + number].data->data[*at].real += value;
    };
    for (auto [sum, operand] : llvm::zip_equal(sums, kSummed))
      sum.assign(run.operands[operand].data->data.size(), 0);
    for (int64_t b : run.along(kQuery, 0))
      for (int64_t h : run.along(kQuery, 1))
        for (int64_t s : run.along(kQuery, 2))
          addRow(b, h, s);
    for (unsigned i = 0; i < std::size(sums); ++i)
      run.fill(i, [&](ArrayRef<int64_t> index) {
        const int64_t at = run.find(kSummed[i], index);
        if (!llvm::is_contained(run.along(kQuery, 0), index[0]))
          (void)run.failHere("needs queries of batch " + Twine(index[0]) +
                             ", which are not on this device");
        return real(at < 0 ? 0 : sums[i][at]);
      });
    return success();
  }

private:
  enum : unsigned { kGrad, kQuery, kKey, kValue, kOutput, kLse, kLseGrad };

  int64_t heads() { return run.shapeOf(kQuery)[1] / run.shapeOf(kKey)[1]; }

  /// Adds what a query makes, with each key of this device.
  void addRow(int64_t b, int64_t h, int64_t s) {
    const Index query = {b, h, s};
    const double scale = op.getScale().convertToDouble();
    ArrayRef<Scalar> q = run.row(kQuery, query), grads = run.row(kGrad, query),
                     output = run.row(kOutput, query);
    // Nothing, at an index that is not held: that is an error of the op.
    auto sumsAt = [&](unsigned i, ArrayRef<Scalar> row) {
      const Scalar *begin = run.operands[kSummed[i]].data->data.data();
      return MutableArrayRef(sums[i]).slice(
          row.empty() ? 0 : row.begin() - begin, row.size());
    };
    auto add = [](MutableArrayRef<double> sums, double factor,
                  ArrayRef<Scalar> row) {
      for (auto [sum, value] : llvm::zip(sums, row))
        sum += factor * value.real;
    };
    double lse = run.read(kLse, query).real;
    if (lse == -std::numeric_limits<double>::infinity())
      return; // no keys
    double dlse = op.getLseGrad() ? run.read(kLseGrad, query).real : 0;
    for (int64_t t : run.along(kKey, 2)) {
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
      const Index key = {b, h / heads(), t};
      ArrayRef<Scalar> k = run.row(kKey, key), v = run.row(kValue, key);
      double slope = dlse, magnitude = 0;
      for (auto [g, x, o] : llvm::zip(grads, v, output)) {
        slope += g.real * (factor * x.real - o.real);
        magnitude +=
            std::fabs(factor * g.real * x.real) + std::fabs(g.real * o.real);
      }
      slope += magnitude * roundingOfSums;
      double score = scale * dot(q, k), modified = score;
      at[1] = real(score);
      if (!op.getScoreMod().empty())
        modified = scoreMod(ArrayRef(at).drop_front())[0].real;
      const double weight = std::exp(modified - lse);
      double slopeOfScore = weight * slope;
      at[0] = at[1];
      at[1] = real(slopeOfScore);
      if (!op.getScoreMod().empty())
        slopeOfScore = scoreGrad(at)[0].real;
      add(sumsAt(0, q), scale * slopeOfScore, k);
      add(sumsAt(1, k), scale * slopeOfScore, q);
      add(sumsAt(2, v), weight * factor, grads);
    }
  }

  OpRun &run;
  tv::AttentionGradOp op;
  ScalarProgram scoreMod, maskMod, scoreGrad;
  SequencesOf sequencesOf;
  /// Of the query, the keys and the values, each as its operand lies here.
  static constexpr unsigned kSummed[] = {kQuery, kKey, kValue};
  std::vector<double> sums[std::size(kSummed)];
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
