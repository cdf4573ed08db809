//===- OpPrice.cpp - what an op and its moves take ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Place/OpPrice.h"
#include "Place/ChoosePlacement.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <cmath>
#include <map>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

/// A reshard of one value; null for other ops.
static ReshardOp asMove(Operation *op) {
  auto reshard = dyn_cast_or_null<ReshardOp>(op);
  return reshard && reshard.getInputs().size() == 1 ? reshard : ReshardOp();
}

Operation *tv::firstUserOf(Value value) {
  Operation *first = nullptr;
  for (Operation *user : value.getUsers()) {
    user = value.getParentBlock()->findAncestorOpInBlock(*user);
    if (user && (!first || user->isBeforeInBlock(first)))
      first = user;
  }
  return first;
}

bool tv::isOnTheWay(Operation *op) {
  return op->getNumOperands() == 1 && op->getNumResults() == 1 &&
         op->getNumRegions() == 0 && !isa<ReshardOp>(op) &&
         isMemoryEffectFree(op) &&
         (op->hasTrait<OpTrait::Pointwise>() ||
          op->hasTrait<OpTrait::SharesMemory>());
}

ReshardOp tv::moveBehind(Value value) {
  Operation *maker = value.getDefiningOp();
  for (int way = 0; way < kMaxWay && maker && isOnTheWay(maker); ++way)
    maker = maker->getOperand(0).getDefiningOp();
  return asMove(maker);
}

Operation *tv::payerOf(ReshardOp move) {
  Value value = move.getResult(0);
  Operation *first = firstUserOf(value);
  for (int way = 0; way < kMaxWay && first && value.hasOneUse() &&
                    isOnTheWay(first) && first->getResult(0).hasOneUse();
       ++way) {
    value = first->getResult(0);
    first = firstUserOf(value);
  }
  // (A region may be what reads it.)
  bool pays = first && !isa<ReshardOp>(first) &&
              llvm::is_contained(first->getOperands(), value);
  return pays ? first : move;
}

static double workOf(Operation *op, const Moves &moves) {
  auto hasView = [](Value value) { return bool(getView(value)); };
  if (!isa<ShardingRuleOpInterface>(op) || op->getNumResults() == 0 ||
      !llvm::all_of(op->getOperands(), hasView) ||
      !llvm::all_of(op->getResults(), hasView))
    return 0;
  return getWork(op, *getActualPlacement(op), moves);
}

/// What `op` and the moves that it pays for take; with `kinds`, small ones of a
/// kind whose results it reads itself go together.
static Result<layout::Price> priceOf(Operation *op, Moves &moves, bool kinds) {
  std::vector<OperandMove> paid, direct;
  auto pay = [&](ReshardOp move) {
    if (payerOf(move) != op)
      return;
    Value from = move.getInputs()[0], to = move.getResult(0);
    paid.push_back({from, placesOf(from), placesOf(to)});
    if (kinds && firstUserOf(to) == op)
      direct.push_back(paid.back());
  };
  if (ReshardOp move = asMove(op))
    pay(move);
  else
    for (Value operand :
         llvm::SetVector<Value>(op->operand_begin(), op->operand_end()))
      if (ReshardOp move = moveBehind(operand))
        pay(move);
  layout::Price price(workOf(op, moves));
  if (paid.empty())
    return price;
  const layout::Mesh &mesh = getView(paid[0].value).getLayoutMesh();
  Result<layout::Price> moved = moves.price(paid, mesh, HUGE_VAL);
  if (!moved)
    return moved.error();
  price += *moved;
  price.seconds -= moves.savedByKinds(direct, mesh);
  return price;
}

Result<layout::Price> tv::priceOf(Operation *op, Moves &moves) {
  // What is returned would be kept until then.
  return ::priceOf(op, moves, /*kinds=*/!op->hasTrait<OpTrait::IsTerminator>());
}

//===----------------------------------------------------------------------===//
// A function
//===----------------------------------------------------------------------===//

/// Nothing for what does not wait. What goes from peer to peer is paid by the
/// op that needs it.
static std::optional<Moves::Kind> kindOf(ReshardOp move, Moves &moves) {
  Value from = move.getInputs()[0];
  auto kind = moves.kindOf(from, placesOf(from), placesOf(move.getResult(0)),
                           getView(from).getLayoutMesh());
  return kind && !layout::isFromPeerToPeer(std::get<0>(*kind)) ? kind
                                                               : std::nullopt;
}

std::optional<layout::Price> tv::priceOf(func::FuncOp function, Moves &moves) {
  layout::Price sum;
  std::map<Moves::Kind, SmallVector<Value>> waiting;
  for (Operation &op : function.getBody().front()) {
    Result<layout::Price> price = ::priceOf(&op, moves, /*kinds=*/false);
    if (!price)
      return std::nullopt;
    sum += *price;
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        auto group = llvm::find_if(waiting, [&](auto &each) {
          return llvm::is_contained(each.second, operand);
        });
        if (group == waiting.end())
          continue;
        sum.seconds -=
            moves.getMachine().latency * double(group->second.size() - 1);
        waiting.erase(group);
      }
    });
    if (ReshardOp move = asMove(&op))
      if (auto kind = kindOf(move, moves))
        waiting[*kind].push_back(move.getResult(0));
  }
  return sum;
}
