//===- Gradient.cpp - gradients by differences ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The oracle of tv-differentiate, with which it shares nothing: central
// differences of the function on whole tensors, in float64 whatever the types,
// with one step of Richardson's extrapolation. For smooth functions and small
// shapes: it runs the function four times for each element.
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Machine/Interpreter.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

/// What an argument's element moves by, times its size where that is above 1.
static constexpr double kStep = 2e-3;

/// A gradient by more elements takes too long.
static constexpr int64_t kMaxGradients = 1024;

LogicalResult Interpreter::evaluateGradient(tv::GradientOp op) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      op, op.getCalleeAttr());
  std::vector<Tensor> given;
  std::vector<std::shared_ptr<NDArray>> arrays;
  for (Value operand : op.getOperands()) {
    given.push_back(values.find(operand)->second);
    FailureOr<std::shared_ptr<NDArray>> array = assembled(op, operand);
    if (failed(array))
      return failure();
    arrays.push_back(*array);
  }
  int64_t count = 0;
  for (int64_t number : op.getTo())
    count += arrays[number]->data.size();
  if (count > kMaxGradients)
    return op.emitOpError()
           << "asks for " << count << " derivatives; the interpreter takes "
           << kMaxGradients
           << " differences at most; give it what tv-differentiate makes of it";
  given.resize(op.getInputs().size());
  FailureOr<std::vector<Tensor>> results = call(callee, std::move(given));
  if (failed(results))
    return failure();

  Config own = config;
  config.ignoreViews = true;
  config.roundValues = false;
  // With one element of an argument moved, in a copy: results may be arguments.
  auto run = [&](int64_t number, size_t at,
                 double step) -> FailureOr<std::vector<Tensor>> {
    std::vector<Tensor> arguments;
    for (int64_t i = 0, e = op.getInputs().size(); i < e; ++i) {
      std::shared_ptr<NDArray> array = arrays[i];
      if (i == number) {
        array = std::make_shared<NDArray>(*array);
        array->data[at].real += step;
      }
      arguments.push_back(distribute(array, std::nullopt));
    }
    return call(callee, std::move(arguments));
  };
  // The slope of the sum of results times their cotangents.
  auto slope = [&](int64_t argument, size_t at,
                   double step) -> FailureOr<double> {
    FailureOr<std::vector<Tensor>> above = run(argument, at, step);
    FailureOr<std::vector<Tensor>> below = run(argument, at, -step);
    if (failed(above) || failed(below))
      return failure();
    double sum = 0;
    for (auto [i, number] : llvm::enumerate(op.getOf())) {
      const NDArray &up = *(*above)[number].parts[0];
      const NDArray &down = *(*below)[number].parts[0];
      for (size_t k = 0; k < up.data.size(); ++k) {
        double weight = op.getCotangents().empty()
                            ? 1
                            : arrays[op.getInputs().size() + i]->data[k].real;
        // Of two infinities it is no number.
        if (up.data[k].real != down.data[k].real)
          sum += weight * (up.data[k].real - down.data[k].real);
      }
    }
    return sum / (2 * step);
  };
  std::vector<std::shared_ptr<NDArray>> gradients;
  for (int64_t number : op.getTo()) {
    const NDArray &argument = *arrays[number];
    auto gradient = std::make_shared<NDArray>(argument.type, argument.shape);
    for (size_t k = 0; k < argument.data.size(); ++k) {
      double step = kStep * std::max(1.0, std::fabs(argument.data[k].real));
      FailureOr<double> wide = slope(number, k, step);
      FailureOr<double> narrow = slope(number, k, step / 2);
      if (failed(wide) || failed(narrow))
        return failure();
      gradient->data[k] = real((4 * *narrow - *wide) / 3);
    }
    gradients.push_back(std::move(gradient));
  }
  config = own;

  for (auto [i, tensor] : llvm::enumerate(*results))
    values[op.getResult(i)] = std::move(tensor);
  for (auto [i, gradient] : llvm::enumerate(gradients)) {
    Value result = op.getResult(results->size() + i);
    if (config.roundValues)
      gradient->round(config.doublesToFloat);
    FailureOr<std::optional<Layout>> layout = layoutOf(op, result.getType());
    if (failed(layout))
      return failure();
    values[result] = distribute(gradient, *layout);
  }
  return success();
}
