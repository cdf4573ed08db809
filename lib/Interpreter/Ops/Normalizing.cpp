//===- Normalizing.cpp - composites over rows, by their formulas ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Independent of the decompositions into core ops, so that these can be checked
// against it.
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Ops/Evaluators.h"
#include "TensorView/TensorView.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

namespace {
/// Figures of the rows of operand 0 along `dim`, computed once each.
template <typename Figures> class Rows {
public:
  Rows(OpRun &run, size_t dim,
       llvm::function_ref<Figures(ArrayRef<double>)> compute)
      : run(run), dim(dim), compute(compute) {}

  /// Of the row through `index`; its element along `dim` does not matter.
  const Figures &operator()(ArrayRef<int64_t> index) {
    Index of(index);
    of[dim] = 0;
    std::vector<int64_t> key(of.begin(), of.end());
    if (auto found = rows.find(key); found != rows.end())
      return found->second;
    std::vector<double> row;
    for (int64_t i = 0; i < run.shapeOf(0)[dim]; ++i) {
      of[dim] = i;
      row.push_back(run.read(0, of).real);
    }
    return rows.emplace(key, compute(row)).first->second;
  }

private:
  OpRun &run;
  size_t dim;
  llvm::function_ref<Figures(ArrayRef<double>)> compute;
  std::map<std::vector<int64_t>, Figures> rows;
};

struct MaxAndSum {
  double max, sum; ///< sum of exp(x - max)
};
struct MeanAndVariance {
  double mean, variance;
};
} // namespace

static MaxAndSum maxAndSum(ArrayRef<double> row) {
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (double x : row)
    max = std::fmax(max, x);
  for (double x : row)
    sum += std::exp(x - max);
  return {max, sum};
}

static MeanAndVariance meanAndVariance(ArrayRef<double> row) {
  double mean = 0, variance = 0;
  for (double x : row)
    mean += x / row.size();
  for (double x : row)
    variance += (x - mean) * (x - mean) / row.size();
  return {mean, variance};
}

static double meanOfSquares(ArrayRef<double> row) {
  double mean = 0;
  for (double x : row)
    mean += x * x / row.size();
  return mean;
}

static LogicalResult evalSoftmax(OpRun &run) {
  Rows<MaxAndSum> rows(run, cast<tv::SoftmaxOp>(run.op).getDim(), maxAndSum);
  run.fill(0, [&](ArrayRef<int64_t> index) {
    const MaxAndSum &row = rows(index);
    return real(std::exp(run.read(0, index).real - row.max) / row.sum);
  });
  return success();
}

static LogicalResult evalLayerNorm(OpRun &run) {
  double epsilon = cast<tv::LayerNormOp>(run.op).getEpsilon().convertToDouble();
  Rows<MeanAndVariance> rows(run, run.shapeOf(0).size() - 1, meanAndVariance);
  run.fill(0, [&](ArrayRef<int64_t> index) {
    const MeanAndVariance &row = rows(index);
    return real((run.read(0, index).real - row.mean) /
                    std::sqrt(row.variance + epsilon) *
                    run.read(1, index.take_back(1)).real +
                run.read(2, index.take_back(1)).real);
  });
  return success();
}

static LogicalResult evalRmsNorm(OpRun &run) {
  double epsilon = cast<tv::RmsNormOp>(run.op).getEpsilon().convertToDouble();
  Rows<double> rows(run, run.shapeOf(0).size() - 1, meanOfSquares);
  run.fill(0, [&](ArrayRef<int64_t> index) {
    return real(run.read(0, index).real / std::sqrt(rows(index) + epsilon) *
                run.read(1, index.take_back(1)).real);
  });
  return success();
}

static LogicalResult evalRope(OpRun &run) {
  double base = cast<tv::RopeOp>(run.op).getBase().convertToDouble();
  const bool isGiven = run.operands.size() > 1;
  size_t last = run.shapeOf(0).size() - 1;
  int64_t depth = run.shapeOf(0)[last], half = depth / 2;
  run.fill(0, [&](ArrayRef<int64_t> index) {
    bool upper = index[last] >= half;
    int64_t i = index[last] - (upper ? half : 0);
    Index lowIndex(index), highIndex(index);
    lowIndex[last] = i;
    highIndex[last] = i + half;
    double low = run.read(0, lowIndex).real, high = run.read(0, highIndex).real;
    int64_t position = index[last - 1];
    if (isGiven) {
      Index of(index.take_front(run.shapeOf(1).size() - 1));
      of.push_back(position);
      position = run.read(1, of).whole;
    }
    double angle = double(position) * std::pow(base, -2.0 * i / depth);
    return real(upper ? high * std::cos(angle) + low * std::sin(angle)
                      : low * std::cos(angle) - high * std::sin(angle));
  });
  return success();
}

/// The indices of a row, the largest element first.
static std::vector<int64_t> sortDown(ArrayRef<double> row) {
  std::vector<int64_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const bool isNaN = std::isnan(row[a]);
    if (isNaN != std::isnan(row[b]))
      return isNaN;
    return isNaN || row[a] == row[b] ? a < b : row[a] > row[b];
  });
  return order;
}

static LogicalResult evalTopK(OpRun &run) {
  const size_t dim = cast<tv::TopKOp>(run.op).getDim();
  Rows<std::vector<int64_t>> orders(run, dim, sortDown);
  run.fill(0, [&](ArrayRef<int64_t> index) {
    Index from(index);
    from[dim] = orders(index)[index[dim]];
    return run.read(0, from);
  });
  run.fill(1, [&](ArrayRef<int64_t> index) {
    return whole(orders(index)[index[dim]]);
  });
  return success();
}

static LogicalResult evalCrossEntropy(OpRun &run) {
  size_t last = run.shapeOf(0).size() - 1;
  int64_t classes = run.shapeOf(0)[last];
  Rows<MaxAndSum> rows(run, last, maxAndSum);
  run.fill(0, [&](ArrayRef<int64_t> index) {
    Index at(index);
    int64_t label = run.read(1, index).whole;
    if (label < 0 || label >= classes)
      return real(0);
    at.push_back(label);
    const MaxAndSum &row = rows(at);
    return real(row.max + std::log(row.sum) - run.read(0, at).real);
  });
  if (cast<tv::CrossEntropyOp>(run.op).getLse())
    run.fill(1, [&](ArrayRef<int64_t> index) {
      Index at(index);
      at.push_back(0);
      const MaxAndSum &row = rows(at);
      return real(row.max + std::log(row.sum));
    });
  return success();
}

static LogicalResult evalDropout(OpRun &run) {
  auto op = cast<tv::DropoutOp>(run.op);
  double rate = op.getRate().convertToDouble();
  const uint64_t stream =
      op.getStream() + (op.getStep() ? run.read(1, {}).whole << 32 : 0);
  run.fill(0, [&](ArrayRef<int64_t> index) {
    double number =
        randomNumber(op.getSeed(), stream, linearize(index, run.resultShape(0)),
                     tv::DropoutOp::kBits);
    return real(tv::DropoutOp::keeps(rate, number)
                    ? run.read(0, index).real / (1 - rate)
                    : 0);
  });
  return success();
}

void interp::addNormalizing(EvaluatorTable &table) {
  add<tv::SoftmaxOp>(table, evalSoftmax);
  add<tv::LayerNormOp>(table, evalLayerNorm);
  add<tv::RmsNormOp>(table, evalRmsNorm);
  add<tv::RopeOp>(table, evalRope);
  add<tv::TopKOp>(table, evalTopK);
  add<tv::CrossEntropyOp>(table, evalCrossEntropy);
  add<tv::DropoutOp>(table, evalDropout);
}
