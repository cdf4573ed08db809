//===- Contraction.cpp - reductions and matrix products ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Over a reduced dimension an evaluator combines what the device holds; all
// operands must hold the same of it. The result's view says that it is partial.
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Ops/Evaluators.h"
#include "TensorView/TensorView.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

static LogicalResult evalReduce(OpRun &run) {
  auto op = cast<tv::ReduceOp>(run.op);
  auto combiner = layout::Combiner(int(op.getCombiner()));
  NDArray &result = *run.results[0].data;
  std::fill(result.data.begin(), result.data.end(),
            identityOf(combiner, result.type));
  int64_t expected = 1;
  for (int64_t dim : op.getDims())
    expected *= run.along(0, dim).size();
  std::vector<int64_t> counts(result.data.size(), 0);
  run.operands[0].place->forEach([&](ArrayRef<int64_t> index, int64_t at) {
    Index kept;
    for (auto [d, i] : llvm::enumerate(index))
      if (!llvm::is_contained(op.getDims(), d))
        kept.push_back(i);
    if (std::optional<int64_t> to = run.results[0].place->find(kept)) {
      result.data[*to] = combine(combiner, result.type, result.data[*to],
                                 run.operands[0].data->data[at]);
      ++counts[*to];
    }
  });
  for (int64_t count : counts)
    if (count != expected)
      return run.failHere("its result has elements here whose operand's "
                          "elements are elsewhere");
  return success();
}

/// Where an operand's elements are along a dimension that is not flat: from
/// `first`, `stride` apart.
struct Line {
  int64_t first, stride;
};
static Line lineOf(OpRun &run, unsigned operand, Index index, size_t dim) {
  const std::vector<int64_t> &held = run.along(operand, dim);
  if (held.empty() || !run.error.empty())
    return {0, 0};
  index[dim] = held[0];
  int64_t first = run.find(operand, index);
  if (held.size() == 1)
    return {first, 0};
  index[dim] = held[1];
  return {first, run.find(operand, index) - first};
}

/// The sum of products along two lines of the `count` elements held.
static Scalar dot(OpRun &run, Line a, Line b, size_t count) {
  if (!run.error.empty())
    return Scalar{};
  const Scalar *x = run.operands[0].data->data.data() + a.first;
  const Scalar *y = run.operands[1].data->data.data() + b.first;
  Type type = run.resultType(0);
  if (isFloat(type)) {
    double sum = 0;
    for (size_t k = 0; k < count; ++k)
      sum += x[k * a.stride].real * y[k * b.stride].real;
    return real(sum);
  }
  uint64_t sum = 0;
  for (size_t k = 0; k < count; ++k)
    sum += uint64_t(x[k * a.stride].whole) * uint64_t(y[k * b.stride].whole);
  return whole(wrapTo(int64_t(sum), type));
}

/// The count of a reduced dimension held in both of the first two operands.
static FailureOr<size_t> reduced(OpRun &run, size_t lhsDim, size_t rhsDim) {
  const std::vector<int64_t> &lhs = run.along(0, lhsDim);
  const std::vector<int64_t> &rhs = run.along(1, rhsDim);
  if (!run.error.empty())
    return failure();
  if (lhs != rhs)
    return run.failHere("its operands hold different parts of the dimension "
                        "that is summed over");
  return lhs.size();
}

static LogicalResult evalContract(OpRun &run) {
  auto op = cast<tv::ContractOp>(run.op);
  ArrayRef<int32_t> a = op.getALabels(), b = op.getBLabels(),
                    result = op.getLabels();
  // What is summed over: its dimension in a and in b, and how much is held.
  struct Sum {
    size_t a, b, count;
  };
  SmallVector<Sum> sums;
  for (auto [dim, label] : llvm::enumerate(a)) {
    if (llvm::is_contained(result, label))
      continue;
    const size_t other = llvm::find(b, label) - b.begin();
    FailureOr<size_t> count = reduced(run, dim, other);
    if (failed(count))
      return failure();
    sums.push_back({dim, other, *count});
  }
  run.fill(0, [&](ArrayRef<int64_t> index) {
    Index x(a.size(), 0), y(b.size(), 0);
    for (auto [at, label] : llvm::zip_equal(index, result)) {
      if (const int32_t *dim = llvm::find(a, label); dim != a.end())
        x[dim - a.begin()] = at;
      if (const int32_t *dim = llvm::find(b, label); dim != b.end())
        y[dim - b.begin()] = at;
    }
    Scalar value = Scalar{};
    std::function<void(ArrayRef<Sum>)> add = [&](ArrayRef<Sum> inner) {
      auto include = [&](Line a, Line b, size_t count) {
        value = combine(layout::Combiner::Sum, run.resultType(0), value,
                        dot(run, a, b, count));
      };
      if (inner.empty())
        return include({run.find(0, x), 0}, {run.find(1, y), 0}, 1);
      const Sum &sum = inner.front();
      if (inner.size() == 1)
        return include(lineOf(run, 0, x, sum.a), lineOf(run, 1, y, sum.b),
                       sum.count);
      for (size_t k = 0; k < sum.count; ++k) {
        x[sum.a] = run.along(0, sum.a)[k];
        y[sum.b] = run.along(1, sum.b)[k];
        add(inner.drop_front());
      }
    };
    add(sums);
    if (op.getBias())
      value = combine(layout::Combiner::Sum, run.resultType(0), value,
                      run.read(2, {index.back()}));
    if (op.getAddend())
      value = combine(layout::Combiner::Sum, run.resultType(0), value,
                      run.read(run.operands.size() - 1, index));
    return value;
  });
  return success();
}

static LogicalResult evalLinear(OpRun &run) {
  size_t last = run.shapeOf(0).size() - 1;
  FailureOr<size_t> count = reduced(run, last, 1);
  if (failed(count))
    return failure();
  run.fill(0, [&](ArrayRef<int64_t> index) {
    Index x(index), w{index[last], 0};
    Scalar value =
        dot(run, lineOf(run, 0, x, last), lineOf(run, 1, w, 1), *count);
    if (run.operands.size() > 2)
      value = combine(layout::Combiner::Sum, run.resultType(0), value,
                      run.read(2, {index[last]}));
    return value;
  });
  return success();
}

static LogicalResult evalMatmul(OpRun &run) {
  size_t m = run.shapeOf(0).size() - 2;
  FailureOr<size_t> count = reduced(run, m + 1, m);
  if (failed(count))
    return failure();
  run.fill(0, [&](ArrayRef<int64_t> index) {
    return dot(run, lineOf(run, 0, Index(index), m + 1),
               lineOf(run, 1, Index(index), m), *count);
  });
  return success();
}

static LogicalResult evalGroupedMatmul(OpRun &run) {
  FailureOr<size_t> count = reduced(run, 2, 2);
  if (failed(count))
    return failure();
  run.fill(0, [&](ArrayRef<int64_t> index) {
    if (index[1] >= run.read(2, {index[0]}).whole)
      return Scalar{};
    Index w{index[0], index[2], 0};
    return dot(run, lineOf(run, 0, Index(index), 2), lineOf(run, 1, w, 2),
               *count);
  });
  return success();
}

void interp::addContractions(EvaluatorTable &table) {
  add<tv::ReduceOp>(table, evalReduce);
  add<tv::ContractOp>(table, evalContract);
  add<tv::LinearOp>(table, evalLinear);
  add<tv::MatmulOp>(table, evalMatmul);
  add<tv::GroupedMatmulOp>(table, evalGroupedMatmul);
}
