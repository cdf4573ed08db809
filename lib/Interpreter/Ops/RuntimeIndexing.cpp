//===- RuntimeIndexing.cpp - ops with indices that are data --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a split table or target a device knows its own rows only: what it reads of
// others counts as 0, what it would write to others is dropped.
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Ops/Evaluators.h"
#include "TensorView/TensorView.h"

#include <map>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

/// Whether `value` is held here along `dim` of an operand.
static bool holds(OpRun &run, unsigned operand, size_t dim, int64_t value) {
  const std::vector<int64_t> &held = run.along(operand, dim);
  return std::binary_search(held.begin(), held.end(), value);
}

static LogicalResult evalGather(OpRun &run) {
  auto op = cast<tv::GatherOp>(run.op);
  size_t dim = op.getDim(), rank = run.shapeOf(1).size();
  run.fill(0, [&](ArrayRef<int64_t> index) {
    int64_t row = run.read(1, index.slice(dim, rank)).whole;
    if (!holds(run, 0, dim, row))
      return Scalar{};
    Index from(index.take_front(dim));
    from.push_back(row);
    llvm::append_range(from, index.drop_front(dim + rank));
    return run.read(0, from);
  });
  return success();
}

static LogicalResult evalScatter(OpRun &run) {
  auto op = cast<tv::ScatterOp>(run.op);
  size_t dim = op.getDim(), rank = run.shapeOf(1).size();
  auto combiner = op.getCombiner();
  NDArray &result = *run.results[0].data;
  run.fill(0, [&](ArrayRef<int64_t> index) { return run.read(0, index); });
  // An update for each index and each element of a row that the result holds:
  // all of them must be here.
  int64_t expected = run.operands[1].data->data.size(), applied = 0;
  for (size_t d = 0; d < run.shapeOf(0).size(); ++d)
    if (d != dim) {
      const std::vector<int64_t> *held = run.results[0].place->along(d);
      if (!held || *held != run.along(2, d < dim ? d : d + rank - 1))
        return run.failHere("updates and result hold different parts of a "
                            "dimension that they share");
      expected *= held->size();
    }
  run.operands[2].place->forEach([&](ArrayRef<int64_t> index, int64_t at) {
    Index to(index.take_front(dim));
    to.push_back(run.read(1, index.slice(dim, rank)).whole);
    llvm::append_range(to, index.drop_front(dim + rank));
    ++applied;
    const Scalar &update = run.operands[2].data->data[at];
    if (std::optional<int64_t> here = run.results[0].place->find(to))
      result.data[*here] =
          combiner ? combine(layout::Combiner(int(*combiner)), result.type,
                             result.data[*here], update)
                   : update;
  });
  if (applied != expected)
    return run.failHere("updates and indices hold different parts of the "
                        "dimensions that they share");
  return success();
}

static LogicalResult evalCumsum(OpRun &run) {
  auto op = cast<tv::CumsumOp>(run.op);
  const size_t dim = op.getDim();
  Type type = run.typeOf(0);
  // Wide sums, rounded once each.
  Type wide = isa<FloatType>(type) ? Float64Type::get(type.getContext()) : type;
  run.fill(0, [&](ArrayRef<int64_t> index) {
    Index at(index);
    const int64_t end = run.shapeOf(0)[dim];
    Scalar sum = {};
    for (at[dim] = op.getReverse() ? end - 1 : 0;;
         at[dim] += op.getReverse() ? -1 : 1) {
      sum = combine(layout::Combiner::Sum, wide, sum, run.read(0, at));
      if (at[dim] == index[dim])
        return sum;
    }
  });
  return success();
}

static LogicalResult evalDispatch(OpRun &run) {
  int64_t tokens = run.shapeOf(1)[0], choices = run.shapeOf(1)[1];
  int64_t experts = run.resultShape(0)[0], capacity = run.resultShape(0)[1];
  if (!run.isWhole(1, 0) || !run.isWhole(1, 1))
    return failure();
  std::vector<int64_t> counts(experts, 0), slots(tokens * choices, -1);
  // The token in each row of the buffers.
  std::vector<int64_t> tokenOf(experts * capacity, -1);
  for (int64_t choice = 0; choice < tokens * choices; ++choice) {
    int64_t expert = run.read(1, {choice / choices, choice % choices}).whole;
    if (expert < 0 || expert >= experts || counts[expert] == capacity)
      continue;
    slots[choice] = counts[expert]++;
    tokenOf[expert * capacity + slots[choice]] = choice / choices;
  }
  run.fill(0, [&](ArrayRef<int64_t> index) {
    int64_t token = tokenOf[index[0] * capacity + index[1]];
    return token < 0 ? Scalar{} : run.read(0, {token, index[2]});
  });
  run.fill(1, [&](ArrayRef<int64_t> index) { return whole(counts[index[0]]); });
  run.fill(2, [&](ArrayRef<int64_t> index) {
    return whole(slots[index[0] * choices + index[1]]);
  });
  return success();
}

static LogicalResult evalCombine(OpRun &run) {
  // Over the choices it sums those that are held, of all three alike.
  const std::vector<int64_t> &choices = run.along(1, 1);
  if (run.along(2, 1) != choices || run.along(3, 1) != choices)
    return run.failHere("experts, slots and weights hold different choices");
  run.fill(0, [&](ArrayRef<int64_t> index) {
    double sum = 0;
    for (int64_t k : choices) {
      int64_t expert = run.read(1, {index[0], k}).whole;
      int64_t slot = run.read(2, {index[0], k}).whole;
      if (!holds(run, 0, 0, expert) || !holds(run, 0, 1, slot))
        continue;
      sum += run.read(3, {index[0], k}).real *
             run.read(0, {expert, slot, index[1]}).real;
    }
    return real(sum);
  });
  return success();
}

static LogicalResult evalSequenceErrors(OpRun &run) {
  auto op = cast<tv::SequenceErrorsOp>(run.op);
  const int64_t last = run.shapeOf(0)[1] - 1, tokens = op.getTokens();
  if (!run.isWhole(0, 1))
    return failure();
  run.fill(0, [&](ArrayRef<int64_t> index) {
    const int64_t b = index[0], i = index[1];
    auto begin = [&](int64_t at) { return run.read(0, {b, at}).whole; };
    if (i > 0 && begin(i) < begin(i - 1))
      return whole(1);
    if (begin(i) < 0 || begin(i) > tokens)
      return whole(2);
    if (!op.getUsed() || i == last)
      return whole(0);
    const int64_t used = run.read(1, index).whole;
    const int64_t end = std::max(begin(i), begin(i + 1));
    return whole(used < 0 || begin(i) + used > end ? 3 : 0);
  });
  return success();
}

static LogicalResult evalPageErrors(OpRun &run) {
  auto op = cast<tv::PageErrorsOp>(run.op);
  const int64_t sequences = run.shapeOf(0)[0], columns = run.shapeOf(0)[1];
  const int64_t page = op.getPage(), pages = op.getPages();
  if (!run.isWhole(0, 0) || !run.isWhole(0, 1) || !run.isWhole(1, 0))
    return failure();
  auto forEachNeeded = [&](int64_t b, llvm::function_ref<void(int64_t)> visit) {
    const int64_t length = run.read(1, b).whole;
    for (int64_t i = 0; i < columns && i * page < length; ++i)
      visit(run.read(0, {b, i}).whole);
  };
  std::map<int64_t, int64_t> uses;
  for (int64_t b = 0; b < sequences; ++b)
    forEachNeeded(b, [&](int64_t at) { ++uses[at]; });
  run.fill(0, [&](ArrayRef<int64_t> index) {
    const int64_t length = run.read(1, index).whole;
    if (length < 0 || length > columns * page)
      return whole(1);
    bool isMissing = false, isTwice = false;
    forEachNeeded(index[0], [&](int64_t at) {
      isMissing |= at < 0 || at >= pages;
      isTwice |= uses[at] > 1;
    });
    return whole(isMissing ? 2 : isTwice ? 3 : 0);
  });
  return success();
}

void interp::addRuntimeIndexing(EvaluatorTable &table) {
  add<tv::GatherOp>(table, evalGather);
  add<tv::ScatterOp>(table, evalScatter);
  add<tv::CumsumOp>(table, evalCumsum);
  add<tv::DispatchOp>(table, evalDispatch);
  add<tv::CombineOp>(table, evalCombine);
  add<tv::SequenceErrorsOp>(table, evalSequenceErrors);
  add<tv::PageErrorsOp>(table, evalPageErrors);
}
