//===- Convolutions.cpp - products and pools of windows ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// By their definition, window by window.
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Ops/Evaluators.h"
#include "TensorView/TensorViewConvolutions.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

/// Calls `visit` with each place in the window of number `window`, and where
/// that is in the operand's last dimensions; an empty one in a border.
static void forEachInWindow(
    ArrayRef<tv::Window> windows, ArrayRef<int64_t> extents,
    ArrayRef<int64_t> window,
    llvm::function_ref<void(ArrayRef<int64_t>, ArrayRef<int64_t>)> visit) {
  Shape sizes;
  for (const tv::Window &each : windows)
    sizes.push_back(each.size);
  for (int64_t number = 0; number < numElements(sizes); ++number) {
    Index place = delinearize(number, sizes), from;
    for (auto [i, each] : llvm::enumerate(windows)) {
      int64_t at =
          window[i] * each.stride + place[i] * each.dilation - each.low;
      if (at < 0 || at >= extents[i])
        break;
      from.push_back(at);
    }
    if (from.size() < windows.size())
      from.clear();
    visit(place, from);
  }
}

static LogicalResult evalConv(OpRun &run) {
  auto op = cast<tv::ConvOp>(run.op);
  auto windows = tv::getWindows(op);
  const int64_t channels = run.shapeOf(1)[1];
  const int64_t results = run.shapeOf(1)[0] / op.getGroups().value_or(1);
  run.fill(0, [&](ArrayRef<int64_t> index) {
    double sum = op.getBias() ? run.read(2, index[1]).real : 0;
    const int64_t first = index[1] / results * channels;
    forEachInWindow(
        windows, ArrayRef(run.shapeOf(0)).drop_front(2), index.drop_front(2),
        [&](ArrayRef<int64_t> place, ArrayRef<int64_t> from) {
          for (int64_t c = 0; c < channels && !from.empty(); ++c) {
            Index weight = {index[1], c}, input = {index[0], first + c};
            llvm::append_range(weight, place);
            llvm::append_range(input, from);
            sum += run.read(0, input).real * run.read(1, weight).real;
          }
        });
    return real(sum);
  });
  return success();
}

static LogicalResult evalPool(OpRun &run) {
  auto op = cast<tv::PoolOp>(run.op);
  auto windows = tv::getWindows(op);
  const size_t first = run.shapeOf(0).size() - windows.size();
  const bool isMax = op.getPooling() == tv::Pooling::Max;
  run.fill(0, [&](ArrayRef<int64_t> index) {
    double sum = 0, max = -std::numeric_limits<double>::infinity();
    int64_t count = 0;
    forEachInWindow(windows, ArrayRef(run.shapeOf(0)).drop_front(first),
                    index.drop_front(first),
                    [&](ArrayRef<int64_t>, ArrayRef<int64_t> from) {
                      ++count;
                      if (from.empty())
                        return;
                      Index input(index.take_front(first));
                      llvm::append_range(input, from);
                      const double x = run.read(0, input).real;
                      max = std::isnan(x) || std::isnan(max) ? x + max
                                                             : std::max(max, x);
                      sum += x;
                    });
    return real(isMax ? max : sum / count);
  });
  return success();
}

void interp::addConvolutions(EvaluatorTable &table) {
  add<tv::ConvOp>(table, evalConv);
  add<tv::PoolOp>(table, evalPool);
}
