//===- Trial.cpp - changes that are kept if they pay ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What an op takes follows from it, the moves of its operands and who is the
// first to need these. So a change reaches the ops that it changes, and those
// that pay for the moves it is next to, before and after.
//
//===----------------------------------------------------------------------===//

#include "Reshard/Trial.h"
#include "Place/Placement.h"
#include "TensorView/Notes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

/// In femtoseconds: what a reshard counts for, and what is no gain, for times
/// are rounded.
static constexpr int64_t kReshard = 1000, kNoGain = 10;

ReshardOp tv::asMove(Operation *op) {
  auto reshard = dyn_cast_or_null<ReshardOp>(op);
  bool moves =
      reshard && reshard.getInputs().size() == 1 && !reshard.getPlanAttr();
  return moves ? reshard : ReshardOp();
}

bool tv::isPassed(Operation *op) {
  return givesSameElements(op) ||
         (op->getNumOperands() == 1 && op->hasTrait<OpTrait::Pointwise>() &&
          isMemoryEffectFree(op));
}

//===----------------------------------------------------------------------===//
// What changes reach
//===----------------------------------------------------------------------===//

/// Nothing if a move cannot be planned.
std::optional<Trial::Paid> Trial::pay(Operation *op) {
  if (takenOut.contains(op))
    return Paid();
  Result<layout::Price> price = priceOf(op, moves);
  if (!price)
    return std::nullopt;
  return Paid{*price, std::llround(price->seconds * 1e15) +
                          kReshard * isa<ReshardOp>(op)};
}

void Trial::reach(Operation *op) {
  if (!reached.insert(op) || made.contains(op) || known.contains(op))
    return;
  std::optional<Paid> before = pay(op);
  known.try_emplace(op, before);
}

/// `op`, whose operands or types change.
void Trial::reachUser(Operation *op) {
  reach(op);
  if (ReshardOp move = asMove(op))
    reach(payerOf(move));
}

/// If there is a move behind `value`, who pays for that may change with its
/// uses.
void Trial::reachMaker(Value value) {
  if (ReshardOp move = asMove(moveBehind(value)))
    reachUser(move);
}

//===----------------------------------------------------------------------===//
// Changes
//===----------------------------------------------------------------------===//

void Trial::setOperand(OpOperand &use, Value value) {
  Value old = use.get();
  if (old == value)
    return;
  Operation *owner = use.getOwner();
  Operation *user =
      value.getParentBlock()->findAncestorOpInBlock(*owner); // of a region
  auto reachAll = [&] {
    reachMaker(old);
    reachMaker(value);
    reachUser(user);
  };
  reachAll();
  undos.push_back([owner, number = use.getOperandNumber(), old] {
    owner->setOperand(number, old);
  });
  use.set(value);
  reachAll();
  if (Operation *maker = old.getDefiningOp())
    released.insert(maker);
}

void Trial::setType(Value value, Type type) {
  if (Operation *maker = value.getDefiningOp())
    reachUser(maker);
  for (Operation *user : value.getUsers())
    reachUser(value.getParentBlock()->findAncestorOpInBlock(*user));
  undos.push_back(
      [value, old = value.getType()]() mutable { value.setType(old); });
  value.setType(type);
}

void Trial::replace(Value value, Value by, Operation *except) {
  for (OpOperand &use : llvm::make_early_inc_range(value.getUses()))
    if (use.getOwner() != except)
      setOperand(use, by);
}

Value Trial::moveTo(Operation *before, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  reachMaker(value);
  ReshardOp move;
  for (Operation *user : value.getUsers())
    if (ReshardOp known = asMove(user); known &&
                                        known.getResult(0).getType() == type &&
                                        known->getBlock() == before->getBlock())
      move = known;
  if (move) {
    if (move != before && before->isBeforeInBlock(move)) {
      reachUser(move);
      undos.push_back([move, next = move->getNextNode()]() mutable {
        move->moveBefore(next);
      });
      move->moveBefore(before);
    }
  } else {
    OpBuilder builder(before);
    move = ReshardOp::create(builder, loc, TypeRange{type}, ValueRange{value},
                             StepAttr());
    made.insert(move);
    undos.push_back([move]() mutable { move.erase(); });
    reach(move);
    released.insert(move); // unless it gets a use
  }
  reachMaker(value);
  return move.getResult(0);
}

Value Trial::copy(Operation *op, Operation *before, Value operand, Type type) {
  reachMaker(operand);
  OpBuilder builder(before);
  IRMapping mapping;
  mapping.map(op->getOperand(0), operand);
  Operation *copied = builder.clone(*op, mapping);
  copied->removeAttr(kRemarksAttr);
  Value result = copied->getResult(0);
  result.setType(type);
  moves.noteCopy(result, op->getResult(0));
  made.insert(copied);
  undos.push_back([copied] { copied->erase(); });
  reach(copied);
  reachMaker(operand);
  return result;
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

void Trial::takeOutUnused() {
  while (!released.empty()) {
    Operation *op = released.pop_back_val();
    if (!op->use_empty() || takenOut.contains(op) ||
        !(isa<ReshardOp>(op) || isPassed(op)))
      continue;
    reach(op);
    SmallVector<Value> operands(op->getOperands());
    llvm::for_each(operands, [&](Value value) { reachMaker(value); });
    undos.push_back([op, operands] { op->setOperands(operands); });
    op->setOperands({});
    takenOut.insert(op);
    for (Value value : operands) {
      reachMaker(value);
      if (Operation *maker = value.getDefiningOp())
        released.insert(maker);
    }
  }
}

/// Nothing if that is no less.
std::optional<Trial::Outcome> Trial::evaluate() {
  takeOutUnused();
  Outcome outcome;
  int64_t saved = 0;
  for (Operation *op : reached) {
    const std::optional<Paid> after = pay(op);
    const std::optional<Paid> before =
        made.contains(op) ? Paid() : known.find(op)->second;
    if (!before || !after)
      return std::nullopt;
    outcome.before += before->price;
    outcome.after += after->price;
    saved += before->femtoseconds - after->femtoseconds;
  }
  return saved > kNoGain ? std::optional(outcome) : std::nullopt;
}

std::optional<Trial::Outcome> Trial::keepIfLess() {
  std::optional<Outcome> outcome = evaluate();
  if (!outcome)
    for (auto &undo : llvm::reverse(undos))
      undo();
  else
    for (Operation *op : reached)
      if (takenOut.contains(op)) {
        known.erase(op);
        op->remove();
        dead.push_back(op);
      } else {
        known[op] = pay(op);
      }
  reached.clear();
  made.clear();
  takenOut.clear();
  undos.clear();
  return outcome;
}

void Trial::eraseDead() {
  for (Operation *op : std::exchange(dead, {}))
    op->destroy();
}
