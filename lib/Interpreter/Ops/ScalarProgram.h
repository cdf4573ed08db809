//===- ScalarProgram.h - scalar regions ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_OPS_SCALARPROGRAM_H
#define TESSERA_INTERPRETER_OPS_SCALARPROGRAM_H

#include "Interpreter/Ops/Evaluators.h"

#include "mlir/IR/Region.h"

namespace tessera::interp {

/// A region of `arith`, `math`, `tv.load` and `tv.accumulate` as a list of
/// steps on slots.
class ScalarProgram {
public:
  struct Step {
    void (*apply)(ScalarProgram &, const Step &);
    llvm::SmallVector<int, 4> in;
    int out;
    mlir::Type inType, outType;
    int64_t predicate = 0;
    Part tensor;        ///< of a load
    int64_t number = 0; ///< of an accumulate's tensor
  };

  /// Fails, with the error in `run`, at an op that has no rule.
  mlir::LogicalResult compile(mlir::Region &region, OpRun &run);

  /// The step of an op, but for its slots; nothing if it has no rule.
  static std::optional<Step> stepOf(mlir::Operation &op);

  /// The yielded values.
  llvm::ArrayRef<Scalar> operator()(llvm::ArrayRef<Scalar> arguments);

  /// Takes what the region adds to gradients of captured tensors.
  std::function<void(int64_t number, llvm::ArrayRef<int64_t> index,
                     double value)>
      accumulate;

  std::vector<Scalar> slots;
  OpRun *run = nullptr;

private:
  std::vector<Step> steps;
  llvm::SmallVector<int> yields;
  std::vector<Scalar> yielded;
};

} // namespace tessera::interp

#endif // TESSERA_INTERPRETER_OPS_SCALARPROGRAM_H
