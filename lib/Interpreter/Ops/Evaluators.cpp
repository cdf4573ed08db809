//===- Evaluators.cpp - reading of operands, the table of all evaluators -===//
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

int64_t OpRun::find(unsigned operand, ArrayRef<int64_t> index) {
  if (std::optional<int64_t> at = operands[operand].place->find(index))
    return *at;
  (void)failHere("needs element " + indexText(index) + " of operand #" +
                 Twine(operand) + ", which is not on this device");
  return -1;
}

Scalar OpRun::read(unsigned operand, ArrayRef<int64_t> index) {
  int64_t at = find(operand, index);
  return at < 0 ? Scalar{} : operands[operand].data->data[at];
}

ArrayRef<Scalar> OpRun::row(unsigned operand, Index outer) {
  const std::vector<int64_t> &held = along(operand, outer.size());
  if (held.empty())
    return {};
  outer.push_back(held.front());
  const int64_t at = find(operand, outer);
  if (at < 0)
    return {};
  return ArrayRef(operands[operand].data->data).slice(at, held.size());
}

const std::vector<int64_t> &OpRun::along(unsigned operand, size_t dim) {
  static const std::vector<int64_t> none;
  if (const std::vector<int64_t> *held = operands[operand].place->along(dim))
    return *held;
  (void)failHere("needs dimension " + Twine(dim) + " of operand #" +
                 Twine(operand) + " by itself, not in a flat one");
  return none;
}

bool OpRun::isWhole(unsigned operand, size_t dim) {
  const std::vector<int64_t> &held = along(operand, dim);
  if (static_cast<int64_t>(held.size()) == shapeOf(operand)[dim])
    return true;
  (void)failHere("needs dimension " + Twine(dim) + " of operand #" +
                 Twine(operand) + " whole on each device");
  return false;
}

Evaluator interp::evaluatorOf(Operation *op) {
  static const EvaluatorTable table = [] {
    EvaluatorTable made;
    addPointwise(made);
    addContractions(made);
    addAttention(made);
    addIndexing(made);
    addRuntimeIndexing(made);
    addSources(made);
    addNormalizing(made);
    addConvolutions(made);
    return made;
  }();
  Evaluator own = table.lookup(op->getName().getStringRef());
  return !own && isa<tv::ScalarOpInterface>(op) ? evalScalars : own;
}
