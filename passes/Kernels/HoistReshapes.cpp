//===- HoistReshapes.cpp - pointwise ops on both sides of a reshape -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel has one iteration space. A reshape moves nothing, so what is
// computed before it may as well be computed in its shape, of memory in that
// shape.
//
//===----------------------------------------------------------------------===//

#include "Kernels/BuildLocal.h"
#include "Kernels/FusedKernel.h"
#include "Kernels/LoopKernels.h"
#include "Kernels/Windows.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_HOISTRESHAPES
#include "Kernels/Passes.h.inc"
} // namespace tessera

/// More ops before a reshape stay where they are: a chain of reshapes would
/// move them again and again.
static constexpr int64_t kMaxDepth = 8;

static bool isRowMajor(Value tensor) {
  return isPlain(tensor) && getOwnMemory(tensor.getType()).isRowMajor();
}

namespace {
/// Values in the shape that a reshape gives to one of them.
class Reshaper {
public:
  /// From the shape of one value into that of another, which has the same
  /// elements.
  Reshaper(Value before, Value after, OpBuilder &builder, Location loc)
      : before(before), after(after), from(before),
        to(after), build{builder, loc} {}
  bool canMove(Value value, int64_t depth = kMaxDepth);
  /// The same of a pointwise op but for who reads it.
  bool canMoveOp(Operation *op, int64_t depth = kMaxDepth) {
    return isOf(op->getResult(0), from) && op->getNumResults() == 1 &&
           llvm::all_of(op->getOperands(), [&](Value operand) {
             return operand == before || canMove(operand, depth - 1);
           });
  }
  Value move(Value value);
  Value moveOp(Operation *op);

private:
  static bool isOf(Value value, const LocalShape &shape) {
    const LocalShape own(value);
    return own.dims == shape.dims && own.extents == shape.extents;
  }
  std::optional<SmallVector<int64_t>> getDims(ArrayRef<int64_t> dims) const;
  Value reshape(Value value, const LocalShape &shape) {
    return tv::ReshapeOp::create(
        build.b, build.loc, shape.summed(value).type(getElement(value)), value);
  }

  const Value before, after;
  const LocalShape from, to;
  Build build;
};
} // namespace

/// The dimensions of the new shape that are made of these, if all of each are.
std::optional<SmallVector<int64_t>>
Reshaper::getDims(ArrayRef<int64_t> dims) const {
  const auto runs = getReshapedRuns(from.extents, to.extents);
  if (!runs)
    return std::nullopt;
  SmallVector<int64_t> result;
  ReshapedRun first = {0, 0};
  for (const ReshapedRun &run : *runs) {
    size_t taken = 0;
    for (size_t dim = first.from; dim < run.from; ++dim)
      taken += llvm::is_contained(dims, int64_t(dim));
    if (taken != 0 && taken != run.from - first.from)
      return std::nullopt;
    if (taken != 0)
      llvm::append_range(result, llvm::seq<int64_t>(first.to, run.to));
    first = run;
  }
  return result;
}

/// Whether what makes the value could as well make it in the new shape, of what
/// is in memory in the order of its indices.
bool Reshaper::canMove(Value value, int64_t depth) {
  if (!isOf(value, from))
    return false;
  Operation *op = value.getDefiningOp();
  auto isInMemory = [](Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || isa<tv::ContractionOpInterface>(op))
      return isRowMajor(value);
    // What a collective gives another extent may be a window.
    return isa<tv::ReinterpretOpInterface>(op) ||
           (isa<comm::CollectiveOpInterface>(op) && isRowMajor(value) &&
            op->getNumOperands() == 1 &&
            cast<RankedTensorType>(op->getOperand(0).getType()).getShape() ==
                cast<RankedTensorType>(value.getType()).getShape());
  };
  // Free ops whose elements do not depend on their indices, or on some alone.
  if (op && isFree(op) && isa<tv::ConstantOp, tv::BroadcastOp>(op)) {
    if (getReadValues(op).empty())
      return true;
    auto broadcast = cast<tv::BroadcastOp>(op);
    Value input = broadcast.getInput();
    return LocalShape(input).dims == from.take(broadcast.getDims()).dims &&
           getDims(broadcast.getDims()) && isInMemory(input);
  }
  if (op && isPointwise(op))
    return depth > 0 && op->hasOneUse() && canMoveOp(op, depth);
  return isInMemory(value);
}

Value Reshaper::moveOp(Operation *op) {
  auto operands = llvm::map_to_vector(op->getOperands(), [&](Value operand) {
    return operand == before ? after : move(operand);
  });
  // (Its region may load from a tensor that is an operand, too.)
  Operation *moved = build.b.clone(*op);
  moved->setOperands(operands);
  Value result = op->getResult(0);
  moved->getResult(0).setType(to.summed(result).type(getElement(result)));
  return moved->getResult(0);
}

Value Reshaper::move(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !(isFree(op) || isPointwise(op)))
    return reshape(value, to);
  if (isPointwise(op))
    return moveOp(op);
  RankedTensorType type = to.summed(value).type(getElement(value));
  if (getReadValues(op).empty()) {
    auto splat = cast<SplatElementsAttr>(cast<tv::ConstantOp>(op).getValue());
    return tv::ConstantOp::create(
        build.b, op->getLoc(), type,
        SplatElementsAttr::get(RankedTensorType::get({}, type.getElementType()),
                               splat.getSplatValue<Attribute>()),
        Value());
  }
  auto broadcast = cast<tv::BroadcastOp>(op);
  const SmallVector<int64_t> dims = *getDims(broadcast.getDims());
  Value input = broadcast.getInput();
  if (const LocalShape shape = to.take(dims);
      shape.dims != LocalShape(input).dims ||
      shape.extents != LocalShape(input).extents)
    input = reshape(input, shape);
  return tv::BroadcastOp::create(build.b, op->getLoc(), type, input,
                                 build.b.getDenseI64ArrayAttr(dims), Value());
}

/// Whether `op` has a kernel that nothing of its own shape could join: neither
/// what reads it nor, as an epilogue, a product that it reads.
static bool isAlone(Operation *op) {
  for (Operation *user : op->getUsers())
    if (!user->hasTrait<OpTrait::IsTerminator>() &&
        !isa<tv::ContractionOpInterface, comm::CollectiveOpInterface>(user))
      return false;
  return llvm::none_of(op->getOperands(), [](Value operand) {
    return operand.hasOneUse() &&
           operand.getDefiningOp<tv::ContractionOpInterface>();
  });
}

/// Pointwise ops that read `value` in several shapes read it in one, that of
/// its first reshape that some read, where that leaves fewer kernels.
static bool readInOneShape(Value value) {
  if (!isRowMajor(value))
    return false;
  Operation *target = nullptr;
  SmallVector<Value> others = {value};
  for (Operation *user : value.getUsers()) {
    if (!isa<tv::ReinterpretOpInterface>(user) ||
        !isRowMajor(user->getResult(0)))
      continue;
    if (llvm::any_of(user->getUsers(), isPointwise) &&
        (!target || user->isBeforeInBlock(target))) {
      if (target)
        others.push_back(target->getResult(0));
      target = user;
    } else {
      others.push_back(user->getResult(0));
    }
  }
  if (!target)
    return false;
  OpBuilder builder(target);
  llvm::MapVector<Operation *, Value> movable; // and what it reads, also twice
  bool stays = false; // in another shape than the target's
  for (Value other : others)
    for (Operation *user : other.getUsers()) {
      if (user == target || (other == value && user->getNumResults() == 1 &&
                             llvm::is_contained(others, user->getResult(0))))
        continue;
      Reshaper reshaper(other, target->getResult(0), builder, user->getLoc());
      if (isPointwise(user) && isAlone(user) && reshaper.canMoveOp(user) &&
          isRowMajor(user->getResult(0)))
        movable.insert({user, other});
      else
        stays = true;
    }
  // What makes it is computed in that shape, too, if it is not in memory.
  Operation *maker = value.getDefiningOp();
  Reshaper all(value, target->getResult(0), builder, target->getLoc());
  if (movable.empty() ||
      (maker && isPointwise(maker) ? stays || !all.canMoveOp(maker)
                                   : !all.canMove(value)))
    return false;
  if (maker)
    target->moveAfter(maker);
  else
    target->moveBefore(value.getParentBlock(), value.getParentBlock()->begin());
  for (auto [op, other] : movable) {
    builder.setInsertionPoint(op);
    Value result = op->getResult(0);
    Value moved =
        Reshaper(other, target->getResult(0), builder, op->getLoc()).moveOp(op);
    result.replaceAllUsesWith(
        tv::ReshapeOp::create(builder, op->getLoc(), result.getType(), moved));
    op->erase();
  }
  for (Value other : ArrayRef(others).drop_front())
    if (other.use_empty())
      other.getDefiningOp()->erase();
  return true;
}

namespace {
struct HoistReshapes : public tessera::impl::HoistReshapesBase<HoistReshapes> {
  void runOnContract() override {
    bool changed = false;
    Block &block = getOperation().getBody().front();
    SetVector<Value> reshaped; // which stay: what is moved has no reshapes
    for (Operation &op : block)
      if (isa<tv::ReinterpretOpInterface>(op) &&
          !op.getOperand(0).getDefiningOp<tv::ReinterpretOpInterface>())
        reshaped.insert(op.getOperand(0));
    for (Value value : reshaped)
      changed |= readInOneShape(value);
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!isa<tv::ReinterpretOpInterface>(op))
        continue;
      Value before = op.getOperand(0), after = op.getResult(0);
      Operation *maker = before.getDefiningOp();
      if (!maker || !isPointwise(maker) || !isRowMajor(before) ||
          !isRowMajor(after) ||
          llvm::none_of(op.getUsers(), [](Operation *user) {
            return isPointwise(user) || isCopiedWindow(user);
          }))
        continue;
      OpBuilder builder(&op);
      Reshaper reshaper(before, after, builder, op.getLoc());
      if (!reshaper.canMove(before))
        continue;
      changed = true;
      Value moved = reshaper.move(before);
      moved.setType(after.getType());
      after.replaceAllUsesWith(moved);
      op.erase();
      // What made it is made again.
      SmallVector<Operation *> dead = {maker};
      while (!dead.empty()) {
        Operation *last = dead.pop_back_val();
        SmallVector<Value> operands(last->getOperands());
        last->erase();
        for (Value operand : operands)
          if (Operation *next = operand.getDefiningOp();
              next && isPointwise(next) && next->use_empty() &&
              !llvm::is_contained(dead, next))
            dead.push_back(next);
      }
    }
    if (!changed)
      markAllAnalysesPreserved(); // and nothing is verified again
  }
};
} // namespace
