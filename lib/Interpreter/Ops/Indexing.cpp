//===- Indexing.cpp - ops that give elements other indices ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Ops/Evaluators.h"
#include "TensorView/TensorView.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

static LogicalResult evalBroadcast(OpRun &run) {
  auto op = cast<tv::BroadcastOp>(run.op);
  run.fill(0, [&](ArrayRef<int64_t> index) {
    Index from;
    for (int64_t dim : op.getDims())
      from.push_back(index[dim]);
    return run.read(0, from);
  });
  return success();
}

static LogicalResult evalReshape(OpRun &run) {
  const Shape &from = run.shapeOf(0), &to = run.resultShape(0);
  if (numElements(from) != numElements(to))
    return run.fail("the shapes " + indexText(from) + " and " + indexText(to) +
                    " have different numbers of elements");
  // A device reads its buffer under another shape: no element changes its
  // place.
  bool sameOrder =
      run.operands[0].data->data.size() == run.results[0].data->data.size();
  run.results[0].place->forEach([&](ArrayRef<int64_t> index, int64_t at) {
    int64_t source = run.find(0, delinearize(linearize(index, to), from));
    sameOrder &= source == at;
    if (source >= 0)
      run.results[0].data->data[at] = run.operands[0].data->data[source];
  });
  return sameOrder ? success()
                   : run.failHere("it would change the order of the elements "
                                  "that this device holds");
}

static LogicalResult evalTranspose(OpRun &run) {
  auto op = cast<tv::TransposeOp>(run.op);
  run.fill(0, [&](ArrayRef<int64_t> index) {
    Index from(index.size());
    for (auto [to, dim] : llvm::enumerate(op.getPerm()))
      from[dim] = index[to];
    return run.read(0, from);
  });
  return success();
}

static LogicalResult evalSlice(OpRun &run) {
  auto op = cast<tv::SliceOp>(run.op);
  run.fill(0, [&](ArrayRef<int64_t> index) {
    Index from(index);
    for (auto [i, offset] : llvm::zip_equal(from, op.getOffsets()))
      i += offset;
    return run.read(0, from);
  });
  return success();
}

static LogicalResult evalConcat(OpRun &run) {
  size_t dim = cast<tv::ConcatOp>(run.op).getDim();
  run.fill(0, [&](ArrayRef<int64_t> index) {
    Index from(index);
    unsigned operand = 0;
    while (operand + 1 < run.operands.size() &&
           from[dim] >= run.shapeOf(operand)[dim])
      from[dim] -= run.shapeOf(operand++)[dim];
    return run.read(operand, from);
  });
  return success();
}

static LogicalResult evalPad(OpRun &run) {
  auto op = cast<tv::PadOp>(run.op);
  Scalar border = scalarOf(op.getValue());
  run.fill(0, [&](ArrayRef<int64_t> index) {
    Index from(index);
    bool inside = true;
    for (auto [d, low] : llvm::enumerate(op.getLow())) {
      from[d] -= low;
      inside &= from[d] >= 0 && from[d] < run.shapeOf(0)[d];
    }
    return inside ? run.read(0, from) : border;
  });
  return success();
}

void interp::addIndexing(EvaluatorTable &table) {
  add<tv::BroadcastOp>(table, evalBroadcast);
  add<tv::ReshapeOp>(table, evalReshape);
  add<tv::TransposeOp>(table, evalTranspose);
  add<tv::SliceOp>(table, evalSlice);
  add<tv::ConcatOp>(table, evalConcat);
  add<tv::PadOp>(table, evalPad);
}
