//===- Attention.cpp - attention by its definition -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Evaluators.h"
#include "Interpreter/ScalarProgram.h"
#include "TensorView/TensorView.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

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
    // Every query needs all of its own dimension and all keys.
    if (!run.isWhole(0, 3) || !run.isWhole(1, 3) || !run.isWhole(1, 2) ||
        !run.isWhole(2, 2))
      return failure();
    Index of;
    Row row;
    run.fill(0, [&](ArrayRef<int64_t> index) {
      // Elements of one query follow each other.
      if (Index query(index.drop_back()); query != of) {
        of = query;
        row = scores(query);
      }
      double sum = 0;
      for (auto [t, weight] : llvm::enumerate(row.weights))
        if (weight != 0)
          sum += weight *
                 run.read(2, {of[0], group(of[1]), int64_t(t), index[3]}).real;
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

  Row scores(ArrayRef<int64_t> query) {
    int64_t b = query[0], h = query[1], s = query[2];
    int64_t queries = run.shapeOf(0)[2], keys = run.shapeOf(1)[2],
            depth = run.shapeOf(0)[3];
    double scale = op.getScale().convertToDouble();
    Row row;
    row.weights.assign(keys, -std::numeric_limits<double>::infinity());
    for (int64_t t = 0; t < keys; ++t) {
      double score = 0;
      for (int64_t d = 0; d < depth; ++d)
        score += run.read(0, {b, h, s, d}).real *
                 run.read(1, {b, group(h), t, d}).real;
      score *= scale;
      Scalar at[] = {real(score), whole(b), whole(h), whole(s), whole(t)};
      if (!op.getScoreMod().empty())
        score = scoreMod(at)[0].real;
      if (op.getCausal() && t > s + keys - queries)
        continue;
      if (!op.getMaskMod().empty() &&
          !maskMod(ArrayRef(at).drop_front())[0].whole)
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
};
} // namespace

void interp::addAttention(EvaluatorTable &table) {
  add<tv::AttentionOp>(table,
                       [](OpRun &run) { return Attention(run).evaluate(); });
}
