//===- Evaluators.h - what each op computes ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One evaluator an op, by op class; pointwise ops have one by their scalar
// functions. It computes those elements of its results that the device holds and
// asks for elements of operands by global index, so whole tensors, views and
// local types need no code of their own.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_OPS_EVALUATORS_H
#define TESSERA_INTERPRETER_OPS_EVALUATORS_H

#include "Interpreter/Ops/Placement.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringMap.h"

#include <functional>

namespace tessera::interp {

/// One device's part of a tensor.
struct Part {
  std::shared_ptr<const Placement> place;
  std::shared_ptr<NDArray> data;
};

/// One op on one device.
class OpRun {
public:
  mlir::Operation *op;
  std::vector<Part> operands;
  std::vector<Part> results; ///< to be filled
  /// The part of a value from outside of the op's regions.
  std::function<Part(mlir::Value)> captured;
  bool roundScalars = false; ///< at conversions inside of regions

  /// The first error; `notHeld` when the cause is an element that is elsewhere.
  std::string error;
  bool notHeld = false;

  mlir::LogicalResult fail(const llvm::Twine &message) {
    if (error.empty())
      error = message.str();
    return mlir::failure();
  }
  mlir::LogicalResult failHere(const llvm::Twine &message) {
    if (error.empty())
      notHeld = true;
    return fail(message);
  }

  const Shape &shapeOf(unsigned operand) const {
    return operands[operand].place->shape;
  }
  const Shape &resultShape(unsigned result) const {
    return results[result].place->shape;
  }
  mlir::Type typeOf(unsigned operand) const {
    return operands[operand].data->type;
  }
  mlir::Type resultType(unsigned result) const {
    return results[result].data->type;
  }
  /// The element of an operand at a global index. Not being held is an error
  /// that is noticed after the evaluator.
  Scalar read(unsigned operand, llvm::ArrayRef<int64_t> index);
  /// Where it is in the operand's array; -1, and the error, if not held.
  int64_t find(unsigned operand, llvm::ArrayRef<int64_t> index);
  /// What is held of an operand's last dimension, which must not be flat, at
  /// global indices of the others; nothing, and the error, if not held.
  llvm::ArrayRef<Scalar> row(unsigned operand, Index outer);
  /// Calls `compute` for each element of a result that is held here.
  void fill(unsigned result,
            llvm::function_ref<Scalar(llvm::ArrayRef<int64_t> index)> compute) {
    results[result].place->forEach(
        [&](llvm::ArrayRef<int64_t> index, int64_t at) {
          results[result].data->data[at] = compute(index);
        });
  }
  /// What is held of an operand along a dimension, which must not be flat.
  const std::vector<int64_t> &along(unsigned operand, size_t dim);
  /// Requires that an operand's dimension is whole here.
  bool isWhole(unsigned operand, size_t dim);
};

using Evaluator = mlir::LogicalResult (*)(OpRun &run);
using EvaluatorTable = llvm::StringMap<Evaluator>;

template <typename Op> void add(EvaluatorTable &table, Evaluator evaluator) {
  table[Op::getOperationName()] = evaluator;
}

void addPointwise(EvaluatorTable &table);    // map, gelu, adamw, ...
void addContractions(EvaluatorTable &table); // reduce, linear, matmul, ...
void addAttention(EvaluatorTable &table);
void addIndexing(EvaluatorTable &table); // broadcast, reshape, slice, ...
void addRuntimeIndexing(EvaluatorTable &table); // gather, scatter, ...
void addSources(EvaluatorTable &table);         // constant, iota, random, size
void addNormalizing(EvaluatorTable &table);     // softmax, norms, rope, ...
void addConvolutions(EvaluatorTable &table);    // conv, pool

/// What a pointwise op's function gives.
mlir::LogicalResult evalScalars(OpRun &run);

/// The op's own evaluator, or that of pointwise ops; null if there is none.
Evaluator evaluatorOf(mlir::Operation *op);

/// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
double geluTanh(double x);
double geluTanhGrad(double x); // its slope

/// Number `index` of stream `stream`, of 16 or 24 bits: see tv.random.
double randomNumber(uint64_t seed, uint64_t stream, uint64_t index, int bits);

} // namespace tessera::interp

#endif // TESSERA_INTERPRETER_OPS_EVALUATORS_H
