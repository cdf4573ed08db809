//===- Interpreter.h - runs a function of any phase on N ranks -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The oracle of rules, passes and plans: simple, and sharing nothing with the
// planner. Every value is kept as what each rank holds. An op runs on each rank
// by itself where its operands and results agree with its sharding rule; before
// the program is decomposed, where they do not agree, it runs on the whole
// tensors. A move is defined as: assemble the whole, distribute it anew. Ops of
// the plan run on memory (Plan.cpp), their kernels op by op (Kernels.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_MACHINE_INTERPRETER_H
#define TESSERA_INTERPRETER_MACHINE_INTERPRETER_H

#include "Interpreter/Machine/Kernels.h"
#include "Interpreter/Ops/Evaluators.h"
#include "TensorView/TensorView.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>

namespace tessera::interp {

struct Config {
  int64_t ranks = 1;
  /// Round each value to its type; else floats stay float64.
  bool roundValues = false;
  /// And f64 to f32: how a program of f64 rounds, in a larger unit.
  bool doublesToFloat = false;
  /// Evaluate on whole tensors, as if no type had an encoding.
  bool ignoreViews = false;
  /// An op with views that does not run on each rank by itself is an error.
  bool localOnly = false;
  /// Values of dynamic sizes.
  std::map<std::string, int64_t> sizes;
};

class Interpreter {
public:
  explicit Interpreter(Config config) : config(std::move(config)) {}

  /// Whole arguments in, whole results out. Errors are reported where they
  /// arise.
  mlir::FailureOr<std::vector<std::shared_ptr<NDArray>>>
  run(mlir::func::FuncOp function,
      llvm::ArrayRef<std::shared_ptr<NDArray>> arguments);

  /// The largest addend of a partial value that was combined.
  double getLargestAddend() const { return largestAddend; }
  /// The parts of the results of the last run.
  const std::vector<Tensor> &getResultParts() const { return resultParts; }
  /// What a value was in the last run; null if it was not reached.
  const Tensor *lookup(mlir::Value value) const;

private:
  using Values = llvm::DenseMap<mlir::Value, Tensor>;

  mlir::FailureOr<std::vector<Tensor>> call(mlir::func::FuncOp function,
                                            std::vector<Tensor> arguments);
  mlir::LogicalResult evaluate(mlir::Operation *op);
  mlir::LogicalResult evaluateMove(mlir::Operation *op);
  mlir::LogicalResult evaluateFetch(mlir::Operation *op);
  mlir::LogicalResult evaluateCall(mlir::CallOpInterface op);
  mlir::LogicalResult evaluateRegion(tv::LocalRegionOp op);
  /// By differences, in float64.
  mlir::LogicalResult evaluateGradient(tv::GradientOp op);
  mlir::LogicalResult evaluateOnRanks(mlir::Operation *op, Evaluator evaluator,
                                      llvm::ArrayRef<Shape> shapes,
                                      std::string &error, bool &notHeld);
  mlir::LogicalResult evaluateWhole(mlir::Operation *op, Evaluator evaluator,
                                    llvm::ArrayRef<Shape> shapes);
  mlir::LogicalResult evaluatePlan(mlir::Operation *op);
  mlir::LogicalResult runLaunch(mlir::Operation *op,
                                llvm::ArrayRef<Window> inputs,
                                llvm::ArrayRef<Window> results,
                                const layout::Mesh &mesh, int64_t rank);
  mlir::LogicalResult runContract(mlir::Operation *op,
                                  llvm::ArrayRef<Window> inputs,
                                  llvm::ArrayRef<Window> results);
  mlir::LogicalResult runAttend(mlir::Operation *op,
                                llvm::ArrayRef<Window> inputs,
                                llvm::ArrayRef<Window> results);
  mlir::LogicalResult runAttendGrad(mlir::Operation *op,
                                    llvm::ArrayRef<Window> inputs,
                                    llvm::ArrayRef<Window> results);
  /// Writes an element, rounded where values are.
  void store(const Window &window, llvm::ArrayRef<int64_t> at, double number);
  /// A value of the plan, or a copy of any other local tensor.
  mlir::FailureOr<Window> windowOf(mlir::Operation *op, mlir::Value value,
                                   int64_t rank);
  /// The whole of a value that `op` reads.
  mlir::FailureOr<std::shared_ptr<NDArray>> assembled(mlir::Operation *op,
                                                      mlir::Value value);
  /// How a type's tensor lies, for a whole tensor of `shape`.
  mlir::FailureOr<std::optional<Layout>> layoutOf(mlir::Operation *op,
                                                  mlir::Type type);
  mlir::FailureOr<Shape> resultShape(mlir::Operation *op, unsigned result);

  Config config;
  Values values;
  /// On each rank, of results of the plan; `values` has their elements too.
  llvm::DenseMap<mlir::Value, std::vector<Window>> windows;
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<Kernel>> kernels;
  std::vector<Tensor> resultParts;
  double largestAddend = 0;
  int depth = 0;
};

/// Whether `op` may run on each device by itself under these layouts, as far as
/// reductions and partial states say: its Reduction factors and split tables
/// are split alike in all operands, and the results are partial as that and
/// `transferPartial` ask. If not, `why`.
bool agreesWithRule(mlir::Operation *op,
                    llvm::ArrayRef<std::optional<Layout>> operands,
                    llvm::ArrayRef<std::optional<Layout>> results,
                    std::string &why);

} // namespace tessera::interp

#endif // TESSERA_INTERPRETER_MACHINE_INTERPRETER_H
