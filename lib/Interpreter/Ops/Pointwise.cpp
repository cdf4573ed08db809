//===- Pointwise.cpp - pointwise ops -------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Ops/Evaluators.h"
#include "Interpreter/Ops/ScalarProgram.h"
#include "TensorView/TensorView.h"
#include "TensorView/TensorViewPointwise.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

static LogicalResult evalRegion(OpRun &run, Region &region) {
  ScalarProgram program;
  if (failed(program.compile(region, run)))
    return failure();
  // All results are computed at each index of each; their views may differ.
  SmallVector<Scalar> arguments(run.operands.size());
  for (unsigned r = 0; r < run.results.size(); ++r) {
    Type type = run.resultType(r);
    run.fill(r, [&](ArrayRef<int64_t> index) {
      for (unsigned i = 0; i < run.operands.size(); ++i) {
        arguments[i] = run.read(i, index);
        // Signless in the region.
        if (run.typeOf(i).isUnsignedInteger())
          arguments[i] = whole(
              wrapTo(arguments[i].whole, tv::getScalarType(run.typeOf(i))));
      }
      Scalar value = program(arguments)[r];
      return isFloat(type) ? value : whole(wrapTo(value.whole, type));
    });
  }
  return success();
}

static LogicalResult evalMap(OpRun &run) {
  return evalRegion(run, cast<tv::MapOp>(run.op).getBody());
}

LogicalResult interp::evalScalars(OpRun &run) {
  Region region;
  tv::buildBody(cast<tv::ScalarOpInterface>(run.op), region);
  return evalRegion(run, region);
}

double interp::geluTanh(double x) {
  double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(inner));
}

static LogicalResult evalGelu(OpRun &run) {
  bool tanh = cast<tv::GeluOp>(run.op).getTanh();
  run.fill(0, [&](ArrayRef<int64_t> index) {
    double x = run.read(0, index).real;
    return real(tanh ? geluTanh(x) : 0.5 * x * std::erfc(-x / std::sqrt(2.0)));
  });
  return success();
}

double interp::geluTanhGrad(double x) {
  double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  double rise = std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
  double cosh = std::cosh(inner); // 1 - tanh^2 would cancel
  return 0.5 * (1 + std::tanh(inner)) + 0.5 * x * (rise / cosh / cosh);
}

static LogicalResult evalGeluGrad(OpRun &run) {
  bool tanh = cast<tv::GeluGradOp>(run.op).getTanh();
  // Terms of about 1 cancel: what they round to, in the wide type, is no part
  // of what a small slope rounds to.
  double rounding = 0;
  if (run.roundScalars)
    rounding = run.resultType(0).isF64() ? 0x1p-53 : 0x1p-24;
  run.fill(0, [&](ArrayRef<int64_t> index) {
    double dy = run.read(0, index).real, x = run.read(1, index).real;
    double density = std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
    double slope = tanh ? geluTanhGrad(x)
                        : 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * density;
    return real(dy * (slope + rounding));
  });
  return success();
}

static LogicalResult evalAdamW(OpRun &run) {
  auto op = cast<tv::AdamWOp>(run.op);
  const double a = op.getMeanBeta().convertToDouble();
  const double b = op.getSquareBeta().convertToDouble();
  const double epsilon = op.getEpsilon().convertToDouble();
  const double decay = op.getDecay().convertToDouble();
  const double scale = run.read(4, {}).real, rate = run.read(5, {}).real;
  const double steps = run.read(6, {}).whole;
  using At = ArrayRef<int64_t>;
  auto grad = [&](At at) { return scale * run.read(3, at).real; };
  auto mean = [&](At at) {
    return a * run.read(1, at).real + (1 - a) * grad(at);
  };
  auto square = [&](At at) {
    return b * run.read(2, at).real + (1 - b) * grad(at) * grad(at);
  };
  run.fill(0, [&](At at) {
    const double root = std::sqrt(square(at) / (1 - std::pow(b, steps)));
    const double move = mean(at) / (1 - std::pow(a, steps)) / (root + epsilon);
    const double weight = run.read(0, at).real;
    return real(weight - rate * (move + decay * weight));
  });
  run.fill(1, [&](At at) { return real(mean(at)); });
  run.fill(2, [&](At at) { return real(square(at)); });
  return success();
}

void interp::addPointwise(EvaluatorTable &table) {
  add<tv::MapOp>(table, evalMap);
  add<tv::AdamWOp>(table, evalAdamW);
  // In doubles, with more care than their functions, which serve f32.
  add<tv::GeluOp>(table, evalGelu);
  add<tv::GeluGradOp>(table, evalGeluGrad);
}
