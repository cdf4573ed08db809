//===- Chunks.cpp - what neighbouring iterations share --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One walk over the body. It goes into a branch if its condition is the same
// for the whole chunk; what it finds there is guarded by that condition, so
// nothing is read that the program does not read.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/Chunks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

MemoryUse::MemoryUse(Operation *loop) {
  loop->walk([&](Operation *op) {
    if (auto store = dyn_cast<memref::StoreOp>(op))
      ++stores[store.getMemRef()];
    else if (auto load = dyn_cast<memref::LoadOp>(op))
      ++loads[load.getMemRef()];
    else if (auto attention = dyn_cast<plan::AttentionOp>(op)) {
      ++stores[attention.getResult()];
      if (attention.getLse())
        ++stores[attention.getLse()];
    } else if (auto grad = dyn_cast<plan::AttentionGradOp>(op)) {
      for (Value output : {grad.getQueryGrad(), grad.getKeyGrad(),
                           grad.getValueGrad(), grad.getSums()})
        ++stores[output];
    } else if (auto product = dyn_cast<plan::ProductOp>(op)) {
      for (Value output : product.getOutputs())
        ++stores[output];
    }
  });
}

Chunk::Chunk(scf::ParallelOp loop, Value lane, const MemoryUse &memory,
             const llvm::DenseSet<Value> &others)
    : memory(memory), lane(lane), varying(others) {
  varying.insert(lane);
  counting.insert(lane);
  visit(*loop.getBody(), {});
  for (Value value : llvm::reverse(counting)) {
    Operation *op = value.getDefiningOp();
    if (op && !value.use_empty() &&
        llvm::all_of(value.getUsers(), [&](Operation *user) {
          auto found = planned.find(user);
          return firstOnly.contains(user) ||
                 (found != planned.end() &&
                  found->second.role == Role::Randoms);
        }))
      firstOnly.insert(op);
  }
  // From loads back to what their addresses come from.
  SmallVector<Value> worklist;
  for (auto &[op, plan] : planned) {
    if (plan.role == Role::VectorLoad || plan.role == Role::OnceLoaded) {
      op->walk([&](Operation *inner) {
        llvm::append_range(worklist, inner->getOperands());
      });
      for (const Guard &guard : plan.guards)
        worklist.push_back(guard.condition);
    }
  }
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    auto found = planned.find(op);
    if (!op || found == planned.end() || found->second.role != Role::Once ||
        !forAddresses.insert(op).second)
      continue;
    llvm::append_range(worklist, op->getOperands());
  }
}

bool Chunk::varies(Operation *op) const {
  return op
      ->walk([&](Operation *inner) {
        if (llvm::any_of(inner->getOperands(),
                         [&](Value value) { return varying.contains(value); }))
          return WalkResult::interrupt();
        if (auto load = dyn_cast<memref::LoadOp>(inner);
            load && memory.isStored(load.getMemRef()))
          return WalkResult::interrupt();
        return isa<memref::StoreOp, memref::AllocaOp>(inner)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

std::optional<unsigned> Chunk::getVectorDim(ValueRange indices) const {
  std::optional<unsigned> dim;
  for (auto [i, index] : llvm::enumerate(indices)) {
    if (!varying.contains(index))
      continue;
    if (index != lane || dim)
      return std::nullopt;
    dim = i;
  }
  return dim;
}

Value Chunk::getCounting(Operation *op) const {
  auto isCounting = [&](Value value) { return counting.contains(value); };
  auto isFixed = [&](Value value) { return !varying.contains(value); };
  if (auto cast = dyn_cast<arith::IndexCastOp>(op))
    if (isCounting(cast.getIn()) &&
        (cast.getType().isIndex() || cast.getType().isInteger(64)))
      return cast.getIn();
  if (auto sum = dyn_cast<arith::AddIOp>(op)) {
    if (isCounting(sum.getLhs()) && isFixed(sum.getRhs()))
      return sum.getLhs();
    if (isCounting(sum.getRhs()) && isFixed(sum.getLhs()))
      return sum.getRhs();
  }
  if (auto difference = dyn_cast<arith::SubIOp>(op))
    if (isCounting(difference.getLhs()) && isFixed(difference.getRhs()))
      return difference.getLhs();
  return {};
}

SmallVector<Operation *> Chunk::getCountingOps(Value number) const {
  SmallVector<Operation *> ops;
  for (Value value = number; value != lane; value = getCounting(ops.back()))
    ops.push_back(value.getDefiningOp());
  std::reverse(ops.begin(), ops.end());
  return ops;
}

/// A division by what may be 0 where a branch is not taken.
static bool mayTrap(Operation *op) {
  return isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
             arith::FloorDivSIOp, arith::CeilDivSIOp, arith::CeilDivUIOp>(op) &&
         !matchPattern(op->getOperand(1), m_NonZero());
}

void Chunk::visit(Block &block, SmallVector<Guard> guards) {
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      continue;
    if (auto store = dyn_cast<memref::StoreOp>(op)) {
      if (memory.stores.lookup(store.getMemRef()) == 1 &&
          !memory.loads.contains(store.getMemRef()))
        if (std::optional<unsigned> dim = getVectorDim(store.getIndices()))
          planned[&op] = {Role::VectorStore, guards, *dim};
      continue;
    }
    if (auto load = dyn_cast<memref::LoadOp>(op);
        load && !memory.isStored(load.getMemRef())) {
      if (std::optional<unsigned> dim = getVectorDim(load.getIndices())) {
        planned[&op] = {Role::VectorLoad, guards, *dim};
        varying.insert(load.getResult());
        continue;
      }
    }
    if (auto random = dyn_cast<plan::RandomOp>(op);
        random && counting.contains(random.getNumber())) {
      planned[&op] = {Role::Randoms, guards};
      varying.insert(random.getResult());
      continue;
    }
    if (getCounting(&op))
      counting.insert(op.getResult(0));
    if (!varies(&op) && (guards.empty() || !mayTrap(&op))) {
      bool pure = isMemoryEffectFree(&op) && op.getNumRegions() == 0;
      planned[&op] = {pure ? Role::Once : Role::OnceLoaded, guards};
      continue;
    }
    if (auto branch = dyn_cast<scf::IfOp>(op);
        branch && !varying.contains(branch.getCondition())) {
      for (Region &region : branch->getRegions()) {
        if (region.empty())
          continue;
        SmallVector<Guard> inner = guards;
        inner.push_back(
            {branch.getCondition(), &region == &branch.getElseRegion()});
        visit(region.front(), inner);
      }
    }
    for (Value result : op.getResults())
      varying.insert(result);
  }
}

static unsigned getBytes(Operation *op) {
  auto type = cast<MemRefType>(isa<memref::LoadOp>(op)
                                   ? cast<memref::LoadOp>(op).getMemRefType()
                                   : cast<memref::StoreOp>(op).getMemRefType());
  return type.getElementType().getIntOrFloatBitWidth() / 8;
}

int Chunk::getWidth() const {
  int width = 1;
  for (auto &[op, plan] : planned)
    if (plan.role == Role::VectorLoad || plan.role == Role::VectorStore)
      width = std::max<int>(width, std::min<int>(16 / getBytes(op), 8));
  return width;
}

int Chunk::countRegisters(int width) const {
  int registers = 0;
  for (auto &[op, plan] : planned)
    if (plan.role == Role::VectorLoad)
      registers += std::max<int>(width * getBytes(op) / 4, 1);
  return registers;
}
