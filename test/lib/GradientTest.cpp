//===- GradientTest.cpp - the gradient of every op, by differences --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test-gradients evaluates each function on whole tensors. Each op of it that
// reads floats and makes some becomes a function of its own, of which a
// tv.gradient asks for all gradients, for random cotangents: as
// tv-differentiate writes it, and as the interpreter has it, by differences.
// Both in float64.
//
//===----------------------------------------------------------------------===//

#include "Differentiate/Passes.h"
#include "Interpreter/Machine/Inputs.h"
#include "TensorView/TensorView.h"
#include "lib/TestPasses.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

using Arrays = std::vector<std::shared_ptr<NDArray>>;

/// How far gradients may be apart, of the norm of the one by differences; its
/// own error is about 1e-11.
static constexpr double kTolerance = 1e-8;

/// A module of `op` as a function of all that it reads, and of a function that
/// asks for its gradients. Null if there are none.
static OwningOpRef<ModuleOp> makeModule(Operation &op, ValueRange reads) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(op.getLoc());
  OpBuilder builder(op.getContext());
  auto hasGradient = [](Type type) {
    return isFloat(cast<RankedTensorType>(type).getElementType());
  };
  SmallVector<Type> inputs(reads.getTypes()), results(op.getResultTypes());
  SmallVector<Type> allInputs = inputs, allResults = results;
  SmallVector<int64_t> of, to;
  for (auto [i, type] : llvm::enumerate(op.getResultTypes()))
    if (hasGradient(type)) {
      of.push_back(i);
      allInputs.push_back(type);
    }
  for (auto [i, type] : llvm::enumerate(inputs))
    if (hasGradient(type)) {
      to.push_back(i);
      allResults.push_back(type);
    }
  if (of.empty() || to.empty())
    return {};
  auto add = [&](StringRef name, ArrayRef<Type> inputs,
                 ArrayRef<Type> results) {
    builder.setInsertionPointToEnd(module->getBody());
    auto function = func::FuncOp::create(
        builder, op.getLoc(), name, builder.getFunctionType(inputs, results));
    builder.setInsertionPointToEnd(function.addEntryBlock());
    return function;
  };
  func::FuncOp function = add("op", inputs, results);
  IRMapping mapping;
  mapping.map(reads, function.getArguments());
  Operation *clone = builder.clone(op, mapping);
  func::ReturnOp::create(builder, op.getLoc(), clone->getResults());
  function = add("gradient", allInputs, allResults);
  auto gradient = tv::GradientOp::create(
      builder, op.getLoc(), allResults, "op",
      function.getArguments().take_front(inputs.size()),
      function.getArguments().drop_front(inputs.size()), of, to);
  func::ReturnOp::create(builder, op.getLoc(), gradient.getResults());
  return module;
}

/// Of one that `module` holds.
static FailureOr<Arrays> runGradient(ModuleOp module, const Arrays &arguments) {
  Config config;
  config.ignoreViews = true;
  return Interpreter(config).run(module.lookupSymbol<func::FuncOp>("gradient"),
                                 arguments);
}

/// The numbers of gradients that agree; none after an error.
static FailureOr<int64_t> testOp(Operation &op, const Interpreter &reference) {
  llvm::SetVector<Value> reads;
  reads.insert_range(tv::getOperandsAndCaptured(&op));
  OwningOpRef<ModuleOp> module = makeModule(op, reads.getArrayRef());
  if (!module)
    return 0;
  Arrays arguments;
  for (Value value : reads)
    arguments.push_back(reference.lookup(value)->parts[0]);
  uint64_t number = 1;
  for (Value result : op.getResults()) {
    const NDArray &like = *reference.lookup(result)->parts[0];
    if (!like.isFloat())
      continue;
    auto array = std::make_shared<NDArray>(like);
    for (Scalar &element : array->data)
      element = real(2 * randomNumber(1, 0, number++, 24) - 1);
    arguments.push_back(array);
  }
  FailureOr<Arrays> expected = runGradient(*module, arguments);
  PassManager passes(op.getContext());
  passes.addPass(tv::createDifferentiatePass());
  if (failed(expected) || failed(passes.run(*module)))
    return failure();
  FailureOr<Arrays> found = runGradient(*module, arguments);
  if (failed(found))
    return failure();
  int64_t count = 0;
  for (size_t i = op.getNumResults(); i < found->size(); ++i) {
    const NDArray &own = *(*found)[i], &exact = *(*expected)[i];
    double norm = 0;
    for (Scalar element : exact.data)
      norm += element.real * element.real;
    double allowed = kTolerance * std::max(1.0, std::sqrt(norm));
    for (auto [at, element] : llvm::enumerate(own.data))
      if (!(std::fabs(element.real - exact.data[at].real) <= allowed))
        return op.emitOpError()
               << "gradient #" << i - op.getNumResults() << " differs at "
               << indexText(delinearize(at, exact.shape)) << ": "
               << toString(element, own.type) << ", by differences "
               << toString(exact.data[at], exact.type);
    count += own.data.size();
  }
  return count;
}

namespace {
struct TestGradientsPass
    : public PassWrapper<TestGradientsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestGradientsPass)
  StringRef getArgument() const override { return "test-gradients"; }
  StringRef getDescription() const override {
    return "Check the gradient of each op in each function by differences";
  }

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(test(function)))
        signalPassFailure();
  }

  LogicalResult test(func::FuncOp function) {
    if (function.isExternal())
      return function.emitError() << "has no body to test";
    Config config;
    config.ignoreViews = true;
    FailureOr<std::map<std::string, int64_t>> sizes = chooseSizes(function, {});
    if (failed(sizes))
      return failure();
    FailureOr<Arrays> inputs =
        makeInputs(function, *sizes, /*seed=*/1, /*files=*/nullptr);
    Interpreter interpreter(config);
    if (failed(inputs) || failed(interpreter.run(function, *inputs)))
      return failure();
    LogicalResult result = success();
    for (Operation &op : function.getBody().front().without_terminator()) {
      FailureOr<int64_t> count = testOp(op, interpreter);
      if (failed(count))
        result = failure();
      else if (*count)
        llvm::outs() << op.getName() << ": " << *count
                     << " elements of gradients agree\n";
    }
    return result;
  }
};
} // namespace

void tessera::test::registerGradientTestPass() {
  PassRegistration<TestGradientsPass>();
}
