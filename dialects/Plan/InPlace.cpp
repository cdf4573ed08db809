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

/// Whether what `nest` writes to `target` is where it read `source` before.
static bool replacesInNest(Operation *nest, Value source, Value target) {
  auto isIn = [&](Operation *user) { return nest->isAncestor(user); };
  for (Operation *writer : llvm::make_filter_range(target.getUsers(), isIn)) {
    auto store = dyn_cast<memref::StoreOp>(writer);
    if (!store || !writesOnce(store))
      return false;
    for (Operation *reader : llvm::make_filter_range(source.getUsers(), isIn)) {
      auto load = dyn_cast<memref::LoadOp>(reader);
      if (!load || load->getBlock() != store->getBlock() ||
          !load->isBeforeInBlock(store) ||
          !llvm::equal(load.getIndices(), store.getIndices()))
        return false;
    }
  }
  return true;
}

/// Whether `kernel` reads argument `in` only at what it writes to `out` next,
/// and not once it has written.
static bool readsWhatItReplaces(func::FuncOp kernel, unsigned in,
                                unsigned out) {
  Value source = kernel.getArgument(in), target = kernel.getArgument(out);
  if (source.getType() != target.getType())
    return false;
  Block &body = kernel.getBody().front();
  Operation *first = nullptr; // of what writes
  for (Operation *writer : target.getUsers()) {
    Operation *nest = body.findAncestorOpInBlock(*writer);
    if (!first || nest->isBeforeInBlock(first))
      first = nest;
  }
  bool readsThere = false;
  for (Operation *reader : source.getUsers()) {
    Operation *nest = body.findAncestorOpInBlock(*reader);
    if (first && first->isBeforeInBlock(nest))
      return false;
    readsThere |= nest == first;
  }
  return !readsThere || replacesInNest(first, source, target);
}

/// Whether nothing reads the memory of `value` after `step`, nor `step` itself
/// but as `operand`.
static bool isReadBefore(Value value, LaunchOp step, Value operand) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (auto alias = dyn_cast<AliasOp>(user))
      return isReadBefore(alias.getResult(), step, operand);
    return user == step ? value == operand : user->isBeforeInBlock(step);
  });
}

/// What `value` is in other dimensions, or itself.
static Value skipReshapes(Value value) {
  while (auto alias = value.getDefiningOp<AliasOp>()) {
    if (alias.getKind() != AliasKind::Reshape)
      break;
    value = alias.getInput();
  }
  return value;
}

/// The input of `step` that is `state`, if it is one alone.
static Value findInput(LaunchOp step, Value state) {
  Value found;
  for (Value input : step.getInputs())
    if (skipReshapes(input) == state) {
      if (found)
        return {};
      found = input;
    }
  return found;
}

InPlace plan::findInPlace(func::FuncOp main) {
  InPlace found;
  if (!main.getBody().hasOneBlock())
    return found; // no plan
  Operation *returns = main.getBody().front().getTerminator();
  llvm::DenseMap<Operation *, SmallVector<std::pair<unsigned, unsigned>>> pairs;
  SmallVector<std::pair<Value, Value>> copies; ///< and what they are of
  const SmallVector<BlockArgument> stateOf = tv::getStates(main);
  for (OpOperand &operand : returns->getOpOperands()) {
    BlockArgument state = stateOf[operand.getOperandNumber()];
    // What is returned in other dimensions than it is computed in, is copied.
    auto copy = operand.get().getDefiningOp<CopyOp>();
    if (copy && !copy->hasOneUse())
      continue;
    auto result = dyn_cast<OpResult>(copy ? skipReshapes(copy.getInput())
                                          : operand.get());
    auto step = result ? dyn_cast<LaunchOp>(result.getOwner()) : LaunchOp();
    if (!state || !step || operand.get().getType() != state.getType() ||
        llvm::count(returns->getOperands(), operand.get()) != 1 ||
        found.states.contains(result))
      continue;
    Value input = findInput(step, state);
    if (!input || input.getType() != result.getType() ||
        !isReadBefore(state, step, input))
      continue;
    auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        step, step.getKernelAttr());
    unsigned in = llvm::find(step.getInputs(), input).getIndex();
    unsigned out = step.getInputs().size() + result.getResultNumber();
    if (!readsWhatItReplaces(kernel, in, out))
      continue;
    pairs[step].emplace_back(out, in);
    found.states[result] = input;
    if (copy) {
      found.states[copy.getResult()] = state;
      copies.emplace_back(copy.getResult(), result);
    }
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
  for (auto [copy, result] : copies)
    if (!found.states.contains(result))
      found.states.erase(copy);
  return found;
}

void plan::eraseCopies(func::FuncOp kernel,
                       ArrayRef<std::pair<unsigned, unsigned>> inPlace) {
  Block &body = kernel.getBody().front();
  auto isNest = [](Operation &op) { return op.getNumRegions() > 0; };
  auto writes = [](Operation *op) {
    return op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>() &&
           !isa<memref::LoadOp>(op) && !isMemoryEffectFree(op);
  };
  for (auto [out, in] : inPlace)
    for (Operation *user :
         llvm::make_early_inc_range(kernel.getArgument(out).getUsers())) {
      auto store = dyn_cast<memref::StoreOp>(user);
      auto load =
          store ? store.getValue().getDefiningOp<memref::LoadOp>() : nullptr;
      if (!load || load.getMemRef() != kernel.getArgument(in) ||
          load->getBlock() != store->getBlock() ||
          !llvm::equal(load.getIndices(), store.getIndices()))
        continue;
      // Of a nest that does nothing else; a kernel has one at least.
      Operation *nest = body.findAncestorOpInBlock(*store);
      int64_t numWrites = 0;
      nest->walk([&](Operation *op) { numWrites += writes(op); });
      if (numWrites == 1 && nest->use_empty() &&
          llvm::count_if(body, isNest) > 1)
        nest->erase();
    }
}
