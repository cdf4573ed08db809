//===- Lanes.cpp - what neighbouring iterations share ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One walk over the body. It goes into a branch if its condition is the same
// for the whole chunk.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/Lanes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

std::optional<int64_t> cuda::getConstant(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return number.getSExtValue();
  return std::nullopt;
}

std::optional<unsigned> cuda::getUnitDim(Value memref) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (succeeded(cast<MemRefType>(memref.getType())
                    .getStridesAndOffset(strides, offset)))
    for (auto [dim, stride] : llvm::enumerate(strides))
      if (stride == 1)
        return dim;
  return std::nullopt;
}

Access cuda::getAccess(Operation *op) {
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return {load.getMemRef(), load.getIndices()};
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return {store.getMemRef(), store.getIndices()};
  return {};
}

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
      for (Value output :
           {grad.getQueryGrad(), grad.getKeyGrad(), grad.getValueGrad(),
            grad.getScratch(), grad.getKeyGradOfHeads(),
            grad.getValueGradOfHeads()})
        if (output)
          ++stores[output];
      for (Value output : grad.getSums())
        ++stores[output];
    } else if (auto walks = dyn_cast<plan::BlockWalksOp>(op)) {
      ++stores[walks.getWalks()];
    } else if (auto product = dyn_cast<plan::ProductOp>(op)) {
      for (Value output : product.getOutputs())
        ++stores[output];
    }
  });
}

bool MemoryUse::storesHalves() const {
  return llvm::all_of(stores, [](const auto &store) {
    Type type = cast<MemRefType>(store.first.getType()).getElementType();
    return type.isF16() || type.isBF16();
  });
}

Lanes::Lanes(scf::ParallelOp loop, Value lane, const MemoryUse &memory,
             const llvm::DenseSet<Value> &others)
    : memory(memory), lane(lane), varying(others) {
  varying.insert(lane);
  counting.insert(lane);
  visit(*loop.getBody(), /*guarded=*/false);
}

/// A division by what may be 0 where a branch is not taken.
static bool mayTrap(Operation *op) {
  return isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
             arith::FloorDivSIOp, arith::CeilDivSIOp, arith::CeilDivUIOp>(op) &&
         !matchPattern(op->getOperand(1), m_NonZero());
}

bool Lanes::isSame(Operation *op, bool guarded) const {
  if (guarded && mayTrap(op))
    return false;
  return !op->walk([&](Operation *inner) {
              if (llvm::any_of(inner->getOperands(), [&](Value value) {
                    return varying.contains(value);
                  }))
                return WalkResult::interrupt();
              if (auto load = dyn_cast<memref::LoadOp>(inner);
                  load && memory.isStored(load.getMemRef()))
                return WalkResult::interrupt();
              return isa<memref::StoreOp, memref::AllocaOp>(inner)
                         ? WalkResult::interrupt()
                         : WalkResult::advance();
            }).wasInterrupted();
}

std::optional<unsigned> Lanes::getVectorDim(ValueRange indices) const {
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

std::optional<unsigned> Lanes::getVectorDim(Operation *access) const {
  if (auto store = dyn_cast<memref::StoreOp>(access))
    return memory.stores.lookup(store.getMemRef()) == 1 &&
                   !memory.loads.contains(store.getMemRef()) &&
                   isa<BlockArgument>(store.getMemRef())
               ? getVectorDim(store.getIndices())
               : std::nullopt;
  auto load = dyn_cast<memref::LoadOp>(access);
  return load && !memory.isStored(load.getMemRef()) &&
                 isa<BlockArgument>(load.getMemRef())
             ? getVectorDim(load.getIndices())
             : std::nullopt;
}

std::optional<unsigned> Lanes::getCounting(Operation *op) const {
  auto isIt = [&](Value value, Value fixed) {
    return counts(value) && (!fixed || isFixed(fixed));
  };
  if (auto cast = dyn_cast<arith::IndexCastOp>(op))
    if (isIt(cast.getIn(), {}) &&
        (cast.getType().isIndex() || cast.getType().isInteger(64)))
      return 0;
  if (isa<arith::AddIOp, arith::SubIOp>(op)) {
    if (isIt(op->getOperand(0), op->getOperand(1)))
      return 0;
    if (isa<arith::AddIOp>(op) && isIt(op->getOperand(1), op->getOperand(0)))
      return 1;
  }
  return std::nullopt;
}

void Lanes::visit(Block &block, bool guarded) {
  for (Operation &op : block.without_terminator()) {
    if (getCounting(&op))
      counting.insert(op.getResult(0));
    if (isSame(&op, guarded))
      continue;
    if (auto branch = dyn_cast<scf::IfOp>(op);
        branch && isFixed(branch.getCondition()))
      for (Region &region : branch->getRegions())
        if (!region.empty())
          visit(region.front(), /*guarded=*/true);
    varying.insert(op.result_begin(), op.result_end());
  }
}

bool cuda::usesAny(Operation *op, const llvm::DenseSet<Value> &values) {
  return op
      ->walk([&](Operation *inner) {
        return llvm::any_of(inner->getOperands(),
                            [&](Value value) { return values.contains(value); })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

llvm::DenseSet<Value> cuda::getByRow(scf::ParallelOp loop) {
  llvm::DenseSet<Value> values = {loop.getInductionVars().back()};
  for (Operation &op : loop.getBody()->without_terminator())
    if (isa<scf::ParallelOp>(op) || usesAny(&op, values))
      values.insert(op.result_begin(), op.result_end());
  return values;
}

SmallVector<scf::ParallelOp> cuda::getStages(scf::ParallelOp loop) {
  SmallVector<scf::ParallelOp> stages;
  loop.getBody()->walk<WalkOrder::PreOrder>([&](scf::ParallelOp stage) {
    stages.push_back(stage);
    return WalkResult::skip();
  });
  return stages;
}

scf::ForOp cuda::getRowLoop(scf::ParallelOp loop) {
  scf::ForOp rows;
  for (auto inner : loop.getBody()->getOps<scf::ForOp>()) {
    if (inner.getBody()->getOps<scf::ParallelOp>().empty())
      continue;
    if (rows || inner.getNumResults() != 0)
      return nullptr;
    rows = inner;
  }
  return rows;
}

bool cuda::isSummed(scf::ParallelOp loop, Value memref) {
  scf::ForOp rows = getRowLoop(loop);
  if (!rows || !isa<BlockArgument>(memref))
    return false;
  scf::ParallelOp first;
  ValueRange places;
  auto isElement = [&](Operation *access, ValueRange indices) {
    auto stage = dyn_cast<scf::ParallelOp>(access->getParentOp());
    if (!stage ||
        (stage->getParentOp() != loop && stage->getParentOp() != rows))
      return false;
    if (!first) {
      if (!isa<memref::StoreOp>(access) || stage->getParentOp() != loop ||
          !stage->isBeforeInBlock(rows) ||
          !llvm::all_of(stage.getInductionVars(), [&](Value variable) {
            return llvm::is_contained(indices, variable);
          }))
        return false;
      first = stage;
      places = indices;
    }
    if (!llvm::equal(first.getUpperBound(), stage.getUpperBound(),
                     isSameExtent))
      return false;
    return llvm::all_of(llvm::zip_equal(places, indices), [&](auto pair) {
      auto [place, index] = pair;
      auto variables = first.getInductionVars();
      auto variable = llvm::find(variables, place);
      if (variable != variables.end())
        return index == stage.getInductionVars()[variable - variables.begin()];
      return index == place &&
             !rows->isAncestor(place.getParentRegion()->getParentOp());
    });
  };
  bool isIt = true;
  loop.walk([&](Operation *op) {
    if (const Access access = getAccess(op); access.memref == memref)
      isIt &= isElement(op, access.indices);
  });
  return isIt && first;
}

std::optional<Address> cuda::getAddress(scf::ForOp rows, memref::LoadOp load) {
  Address address;
  SmallVector<Value> worklist(load.getIndices());
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    address.varies |= value == rows.getInductionVar();
    Operation *op = value.getDefiningOp();
    if (!op || !rows->isAncestor(op))
      continue;
    if (!isMemoryEffectFree(op) || op->getNumRegions() != 0)
      return std::nullopt;
    if (address.ops.insert(op).second)
      llvm::append_range(worklist, op->getOperands());
  }
  return address;
}

bool cuda::readSame(scf::ParallelOp stage, memref::LoadOp load,
                    scf::ParallelOp otherStage, memref::LoadOp other) {
  if (load.getMemRef() != other.getMemRef() ||
      stage.getNumLoops() != otherStage.getNumLoops())
    return false;
  auto isSame = [&](auto pair) {
    auto [value, otherValue] = pair;
    auto variable = llvm::find(stage.getInductionVars(), value),
         otherVariable = llvm::find(otherStage.getInductionVars(), otherValue);
    const size_t number = variable - stage.getInductionVars().begin(),
                 otherNumber =
                     otherVariable - otherStage.getInductionVars().begin();
    if (number < stage.getNumLoops() || otherNumber < stage.getNumLoops())
      return number == otherNumber;
    APInt constant, otherConstant;
    if (matchPattern(value, m_ConstantInt(&constant)) &&
        matchPattern(otherValue, m_ConstantInt(&otherConstant)))
      return constant == otherConstant;
    return value == otherValue;
  };
  return llvm::all_of(
             llvm::zip_equal(stage.getUpperBound(), otherStage.getUpperBound()),
             isSame) &&
         llvm::all_of(llvm::zip_equal(load.getIndices(), other.getIndices()),
                      isSame);
}

std::optional<unsigned> cuda::getAcross(scf::ParallelOp loop,
                                        memref::LoadOp load, unsigned dim) {
  std::optional<unsigned> unit = getUnitDim(load.getMemRef());
  if (!unit || *unit == dim)
    return std::nullopt;
  Value along = load.getIndices()[*unit];
  auto variables = loop.getInductionVars();
  auto found = llvm::find(variables, along);
  if (found == variables.end())
    return std::nullopt;
  for (auto [i, index] : llvm::enumerate(load.getIndices())) {
    bool isLoop = llvm::is_contained(variables, index);
    if (!isLoop && loop->isAncestor(index.getParentRegion()->getParentOp()))
      return std::nullopt;
    if (i != *unit && index == along)
      return std::nullopt;
  }
  return found - variables.begin();
}

bool cuda::isSameExtent(Value extent, Value other) {
  auto dim = extent.getDefiningOp<memref::DimOp>(),
       otherDim = other.getDefiningOp<memref::DimOp>();
  return extent == other ||
         (dim && otherDim && dim.getSource() == otherDim.getSource() &&
          getConstant(dim.getIndex()) == getConstant(otherDim.getIndex())) ||
         (getConstant(extent) && getConstant(extent) == getConstant(other));
}
