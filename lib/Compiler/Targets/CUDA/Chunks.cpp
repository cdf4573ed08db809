//===- Chunks.cpp - what is not done for each lane ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What does not depend on the lane is computed once for all of them, and memory
// that they touch side by side is one access. What is in a branch that is the
// same for the whole chunk is guarded by its condition, so nothing is read that
// the program does not read.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/Scheduling.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::schedule;

int cuda::narrow(int width, std::optional<int64_t> extent) {
  while (extent && width > 1 && *extent % width != 0)
    width /= 2;
  return width;
}

Chunk::Chunk(scf::ParallelOp loop, Value lane, const MemoryUse &memory,
             const llvm::DenseSet<Value> &others)
    : loop(loop), lanes(loop, lane, memory, others) {
  visit(*loop.getBody(), /*guarded=*/false);
  // From loads back to what their addresses and conditions come from.
  SmallVector<Value> worklist;
  for (auto &[op, plan] : planned) {
    if (isa<memref::StoreOp>(op) ||
        (plan.kind != RoleKind::Vector && plan.kind != RoleKind::Read &&
         plan.kind != RoleKind::Ahead))
      continue;
    op->walk([&](Operation *inner) {
      llvm::append_range(worklist, inner->getOperands());
    });
    for (Operation *branch = op->getParentOp(); branch != loop;
         branch = branch->getParentOp())
      worklist.push_back(cast<scf::IfOp>(branch).getCondition());
  }
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    auto found = planned.find(op);
    if (!op || found == planned.end() || found->second.kind != RoleKind::Once)
      continue;
    found->second.kind = RoleKind::Address;
    llvm::append_range(worklist, op->getOperands());
  }
}

void Chunk::visit(Block &block, bool guarded) {
  auto isInside = [&](Value value) {
    return loop->isAncestor(value.getParentRegion()->getParentOp());
  };
  for (Operation &op : block.without_terminator()) {
    if (std::optional<unsigned> dim = lanes.getVectorDim(&op)) {
      planned[&op] = {RoleKind::Vector, guarded, *dim};
    } else if (auto random = dyn_cast<plan::RandomOp>(op);
               random && lanes.counts(random.getNumber()) &&
               lanes.isFixed(random.getSeed()) &&
               lanes.isFixed(random.getStream())) {
      planned[&op] = {RoleKind::Randoms, guarded};
    } else if (lanes.isSame(&op, guarded)) {
      const bool isPure = isMemoryEffectFree(&op) && op.getNumRegions() == 0;
      const bool isAhead = !guarded && op.getNumRegions() == 0 &&
                           !llvm::any_of(op.getOperands(), isInside);
      planned[&op] = {isPure    ? RoleKind::Once
                      : isAhead ? RoleKind::Ahead
                                : RoleKind::Read,
                      guarded};
    } else if (auto branch = dyn_cast<scf::IfOp>(op);
               branch && lanes.isFixed(branch.getCondition())) {
      for (Region &region : branch->getRegions())
        if (!region.empty())
          visit(region.front(), /*guarded=*/true);
    }
  }
}

SmallVector<std::pair<memref::LoadOp, Chunk::Planned *>> Chunk::getLoads() {
  SmallVector<std::pair<memref::LoadOp, Planned *>> loads;
  for (auto &[op, plan] : planned)
    if (auto load = dyn_cast<memref::LoadOp>(op);
        load && plan.kind == RoleKind::Vector)
      loads.push_back({load, &plan});
  return loads;
}

int Chunk::getWidth() const {
  int width = 1;
  for (auto &[op, plan] : planned)
    if (plan.kind == RoleKind::Vector) {
      auto type = cast<MemRefType>(getAccess(op).memref.getType());
      int bytes = type.getElementTypeBitWidth() / 8;
      width = std::max(width, std::min(16 / bytes, 8));
    }
  return width;
}

void Chunk::addAligned(SmallVectorImpl<ConditionAttr> &conditions) {
  for (auto &[op, plan] : planned) {
    if (plan.kind != RoleKind::Vector && plan.kind != RoleKind::Tile &&
        plan.kind != RoleKind::Summed)
      continue;
    Value memref = getAccess(op).memref;
    auto condition = ConditionAttr::get(
        loop.getContext(), ConditionKind::Aligned,
        cast<BlockArgument>(memref).getArgNumber(),
        plan.kind == RoleKind::Tile ? *getUnitDim(memref) : plan.dim);
    if (!llvm::is_contained(conditions, condition))
      conditions.push_back(condition);
  }
}

//===----------------------------------------------------------------------===//
// Peepholes
//===----------------------------------------------------------------------===//

namespace {
/// Of values of a loop's body that the loop reduces.
struct ReducedValue : OpRewritePattern<scf::ReduceOp> {
  ReducedValue(MLIRContext *context, Chunk &chunk)
      : OpRewritePattern(context), chunk(chunk) {}

  LogicalResult matchAndRewrite(scf::ReduceOp reduce,
                                PatternRewriter &rewriter) const override {
    bool any = false;
    for (auto [addend, reduction] :
         llvm::zip_equal(reduce->getOpOperands(), reduce.getReductions())) {
      Operation *op = addend.get().getDefiningOp();
      Value better = op && op->getBlock() == reduce->getBlock()
                         ? rewrite(op, reduction, rewriter)
                         : Value();
      if (!better)
        continue;
      any = true;
      rewriter.modifyOpInPlace(reduce, [&] { addend.set(better); });
      // And what only that needed.
      SmallVector<Value> operands(op->getOperands());
      if (op->use_empty())
        rewriter.eraseOp(op);
      for (Value operand : operands)
        if (Operation *left = operand.getDefiningOp();
            left && left->getBlock() == reduce->getBlock() &&
            isOpTriviallyDead(left) && !chunk.planned.contains(left))
          rewriter.eraseOp(left);
    }
    return success(any);
  }

  /// What to reduce in place of the result of `op`; null for that.
  virtual Value rewrite(Operation *op, Region &reduction,
                        PatternRewriter &rewriter) const = 0;

  Chunk &chunk;
};

/// A sum of what a select leaves of one iteration, and of zeros.
struct OneHotSum : ReducedValue {
  using ReducedValue::ReducedValue;

  Value rewrite(Operation *op, Region &reduction,
                PatternRewriter &rewriter) const override {
    auto select = dyn_cast<arith::SelectOp>(op);
    auto compare =
        select ? select.getCondition().getDefiningOp<arith::CmpIOp>() : nullptr;
    if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq ||
        !isBy<arith::AddFOp>(reduction) ||
        !matchPattern(select.getFalseValue(), m_AnyZeroFloat()))
      return {};
    const Lanes &lanes = chunk.getLanes();
    for (auto [number, other] :
         {std::pair(compare.getLhs(), compare.getRhs()),
          std::pair(compare.getRhs(), compare.getLhs())}) {
      // (Modulo 2^32, too; smaller numbers C++ would widen.)
      Type type = other.getType();
      if (!type.isIndex() && type.getIntOrFloatBitWidth() < 32)
        return {};
      if (auto cast = number.getDefiningOp<arith::IndexCastOp>();
          cast && !lanes.counts(number))
        number = cast.getIn();
      if (lanes.counts(number) && lanes.isFixed(other))
        return OneHotOp::create(rewriter, select.getLoc(),
                                select.getTrueValue(), number, other);
    }
    return {};
  }
};

/// The maximum or minimum of a load over the lanes of a row, which is widened.
struct PairsOfLanes : ReducedValue {
  using ReducedValue::ReducedValue;

  Value rewrite(Operation *op, Region &reduction,
                PatternRewriter &rewriter) const override {
    auto wide = dyn_cast<arith::ExtFOp>(op);
    auto load = wide ? wide.getIn().getDefiningOp<memref::LoadOp>() : nullptr;
    auto loop = cast<scf::ParallelOp>(op->getParentOp());
    if (!load || !wide.getType().isF32() ||
        load.getType().getIntOrFloatBitWidth() != 16 ||
        !llvm::is_contained(loop.getInductionVars(),
                            chunk.getLanes().getLane()))
      return {};
    auto found = chunk.planned.find(load);
    if (found == chunk.planned.end() || found->second.guarded ||
        found->second.dim < 0 || found->second.kind == RoleKind::Tile)
      return {};
    std::optional<Extreme> extreme;
    if (isBy<arith::MaximumFOp>(reduction))
      extreme = Extreme::Maximum;
    else if (isBy<arith::MinimumFOp>(reduction))
      extreme = Extreme::Minimum;
    if (!extreme)
      return {};
    return PairsOp::create(rewriter, wide.getLoc(), wide.getType(), *extreme,
                           load);
  }
};
} // namespace

void Chunk::formPeepholes() {
  RewritePatternSet patterns(loop.getContext());
  patterns.add<OneHotSum, PairsOfLanes>(loop.getContext(), *this);
  // Nothing else changes: the other ops have their roles.
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingOps)
      .enableFolding(false)
      .enableConstantCSE(false);
  (void)applyOpPatternsGreedily({loop.getBody()->getTerminator()},
                                std::move(patterns), config);
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

void Chunk::writeCounting(Value number) {
  while (number != lanes.getLane()) {
    Operation *op = number.getDefiningOp();
    const unsigned dim = *lanes.getCounting(op);
    if (!getRole(op))
      setRole(op, RoleKind::Counts, dim);
    number = op->getOperand(dim);
  }
}

void Chunk::write() {
  for (auto &[op, plan] : planned)
    setRole(op, plan.kind, plan.dim, plan.number);
  // What only numbers of random numbers need, from the last op.
  for (Value value : llvm::reverse(lanes.getCounting())) {
    Operation *op = value.getDefiningOp();
    if (op && !value.use_empty() &&
        llvm::all_of(value.getUsers(), [](Operation *user) {
          return hasRole(user, RoleKind::First) ||
                 hasRole(user, RoleKind::Randoms);
        }))
      setRole(op, RoleKind::First, *lanes.getCounting(op));
  }
  for (auto &[op, plan] : planned)
    if (auto random = dyn_cast<plan::RandomOp>(op);
        random && plan.kind == RoleKind::Randoms)
      writeCounting(random.getNumber());
  for (auto oneHot : loop.getBody()->getOps<OneHotOp>())
    writeCounting(oneHot.getNumber());
}
