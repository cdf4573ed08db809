//===- InPlace.cpp - states that steps replace where they lie -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan/InPlace.h"
#include "TensorView/Contract.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::plan;

/// Whether each iteration around `store` writes an element of its own.
static bool writesOnce(memref::StoreOp store) {
  for (Operation *op = store->getParentOp(); !isa<func::FuncOp>(op);
       op = op->getParentOp()) {
    auto loop = dyn_cast<LoopLikeOpInterface>(op);
    std::optional<SmallVector<Value>> variables;
    if (!loop || !(variables = loop.getLoopInductionVars()))
      return false;
    for (Value variable : *variables)
      if (!llvm::is_contained(store.getIndices(), variable))
        return false;
  }
  return true;
}

/// Whether `kernel` reads argument `in` only at what it writes to `out` next.
static bool readsWhatItReplaces(func::FuncOp kernel, unsigned in,
                                unsigned out) {
  Value source = kernel.getArgument(in), target = kernel.getArgument(out);
  if (source.getType() != target.getType())
    return false;
  for (Operation *writer : target.getUsers()) {
    auto store = dyn_cast<memref::StoreOp>(writer);
    if (!store || !writesOnce(store))
      return false;
    for (Operation *reader : source.getUsers()) {
      auto load = dyn_cast<memref::LoadOp>(reader);
      if (!load || load->getBlock() != store->getBlock() ||
          !load->isBeforeInBlock(store) ||
          !llvm::equal(load.getIndices(), store.getIndices()))
        return false;
    }
  }
  return true;
}

/// Whether nothing reads the memory of `value` after `step`, nor `step` itself
/// but as an operand.
static bool isReadBefore(Value value, LaunchOp step, bool isAlias = false) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (auto alias = dyn_cast<AliasOp>(user))
      return isReadBefore(alias.getResult(), step, /*isAlias=*/true);
    return user == step ? !isAlias : user->isBeforeInBlock(step);
  });
}

InPlace plan::findInPlace(func::FuncOp main) {
  InPlace found;
  if (!main.getBody().hasOneBlock())
    return found; // no plan
  Operation *returns = main.getBody().front().getTerminator();
  llvm::DenseMap<Operation *, SmallVector<std::pair<unsigned, unsigned>>> pairs;
  for (OpOperand &operand : returns->getOpOperands()) {
    BlockArgument state = tv::getState(main, operand.getOperandNumber());
    auto result = dyn_cast<OpResult>(operand.get());
    auto step = result ? dyn_cast<LaunchOp>(result.getOwner()) : LaunchOp();
    if (!state || !step || result.getType() != state.getType() ||
        llvm::count(returns->getOperands(), result) != 1 ||
        llvm::count(step.getInputs(), state) != 1 || !isReadBefore(state, step))
      continue;
    auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        step, step.getKernelAttr());
    unsigned in = llvm::find(step.getInputs(), state).getIndex();
    unsigned out = step.getInputs().size() + result.getResultNumber();
    if (!readsWhatItReplaces(kernel, in, out))
      continue;
    pairs[step].emplace_back(out, in);
    found.states[result] = state;
  }

  // One code serves all launches of a kernel.
  auto steps = main.getBody().front().getOps<LaunchOp>();
  for (LaunchOp step : steps) {
    auto [kernel, isNew] =
        found.kernels.try_emplace(step.getKernel(), pairs.lookup(step));
    if (kernel->second != pairs.lookup(step))
      kernel->second.clear();
  }
  for (LaunchOp step : steps)
    if (found.kernels[step.getKernel()].empty())
      for (Value result : step.getResults())
        found.states.erase(result);
  return found;
}
