//===- SwapComposites.cpp - composites, or core ops instead ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tv-decompose-composites decides by the views that were propagated, before
// there is a move. Where ops are placed all at once it may be otherwise.
//
//===----------------------------------------------------------------------===//

#include "Place/SwapComposites.h"
#include "TensorView/Notes.h"
#include "TensorView/TensorView.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

/// `type` with a view over the mesh of `view` that splits nothing.
static Type wholeOf(Type type, ViewAttr view) {
  auto tensor = cast<RankedTensorType>(type);
  return withEncoding(
      type, ViewAttr::get(
                type.getContext(), view.getMesh(),
                layout::canonicalize(layout::View::replicated(tensor.getRank()),
                                     layout::Shape(tensor.getShape()),
                                     view.getLayoutMesh())));
}
static Type wholeOf(Type type) { return wholeOf(type, getView(type)); }

static Value moveTo(OpBuilder &builder, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return ReshardOp::create(builder, value.getLoc(), TypeRange{type},
                           ValueRange{value}, StepAttr())
      .getResult(0);
}

/// The value before moves that the user did not write.
static Value sourceOf(Value value) {
  for (auto move = value.getDefiningOp<ReshardOp>();
       move && move.getInputs().size() == 1 && !move->hasAttr(kUserMoveAttr);
       move = value.getDefiningOp<ReshardOp>())
    value = move.getInputs()[0];
  return value;
}

static bool isWholeComposite(Operation *op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled || !isa<CompositeOpInterface>(op) || op->getNumResults() != 1)
    return false;
  auto hasView = [](Type type) { return bool(getView(type)); };
  return llvm::all_of(op->getOperandTypes(), hasView) &&
         hasView(op->getResult(0).getType()) &&
         llvm::any_of(ruled.getShardingRule().factors, [](const auto &factor) {
           return factor.kind == layout::IterationFactor::Kind::Sequential;
         });
}

/// The ops that make `last` of the input of a softmax, the last first, if they
/// look so and nothing else needs them; and the input.
static FailureOr<std::pair<SmallVector<Operation *>, Value>>
findCore(Operation *last) {
  auto divided = dyn_cast<MapOp>(last);
  if (!divided || divided->getNumOperands() != 2)
    return failure();
  SmallVector<Operation *> ops = {last};
  auto take = [&](Value value) {
    Operation *op = sourceOf(value).getDefiningOp();
    if (op)
      ops.push_back(op);
    return op;
  };
  Operation *sums = take(divided->getOperand(1));
  if (!isa_and_nonnull<BroadcastOp>(sums))
    return failure();
  Operation *sum = take(sums->getOperand(0));
  if (!isa_and_nonnull<ReduceOp>(sum))
    return failure();
  Operation *exps = take(divided->getOperand(0));
  if (!isa_and_nonnull<MapOp>(exps) || exps->getNumOperands() != 2 ||
      sourceOf(sum->getOperand(0)).getDefiningOp() != exps)
    return failure();
  Operation *maxes = take(exps->getOperand(1));
  if (!isa_and_nonnull<BroadcastOp>(maxes))
    return failure();
  Operation *max = take(maxes->getOperand(0));
  Value input = sourceOf(exps->getOperand(0));
  if (!isa_and_nonnull<ReduceOp>(max) || sourceOf(max->getOperand(0)) != input)
    return failure();
  std::function<bool(Value)> isReadHere = [&](Value value) {
    return llvm::all_of(value.getUsers(), [&](Operation *user) {
      auto move = dyn_cast<ReshardOp>(user);
      return move ? sourceOf(move.getResult(0)) == sourceOf(value) &&
                        isReadHere(move.getResult(0))
                  : llvm::is_contained(ops, user);
    });
  };
  for (Operation *op : ArrayRef(ops).drop_front())
    if (!isReadHere(op->getResult(0)))
      return failure();
  return std::pair(std::move(ops), input);
}

SmallVector<Operation *> tv::findSwaps(func::FuncOp function) {
  SmallVector<Operation *> found;
  for (Operation &op : function.getBody().front())
    if (!op.hasAttr(kLocalOpAttr) &&
        (isWholeComposite(&op) || succeeded(findCore(&op))))
      found.push_back(&op);
  return found;
}

/// `made` in place of the result of `op`, for which it stands.
static void replace(OpBuilder &builder, Operation *op, Value made) {
  Value old = op->getResult(0);
  if (Attribute user = op->getAttr(kUserViewAttr))
    made.getDefiningOp()->setAttr(kUserViewAttr, user);
  else
    made.getDefiningOp()->removeAttr(kUserViewAttr);
  builder.setInsertionPointAfterValue(made);
  old.replaceAllUsesWith(moveTo(builder, made, old.getType()));
}

/// What says what `op` computes.
static DictionaryAttr plainAttributes(Operation *op) {
  NamedAttrList attributes(withoutNotes(op));
  attributes.erase(kUserViewAttr);
  return attributes.getDictionary(op->getContext());
}

/// What `op`, whose values are whole, is in core ops.
static FailureOr<Value> decompose(OpBuilder &builder, Operation *op) {
  Operation *before = op->getPrevNode();
  SmallVector<Value> results;
  if (failed(cast<CompositeOpInterface>(op).decompose(builder, results)) ||
      !results[0].getDefiningOp())
    return failure();
  for (Operation *made = op->getPrevNode(); made != before;
       made = made->getPrevNode())
    for (Value value : made->getResults()) {
      if (!isa<RankedTensorType>(value.getType()))
        return failure();
      value.setType(
          wholeOf(value.getType(), getView(op->getResult(0).getType())));
    }
  return results[0];
}

LogicalResult tv::swapComposite(Operation *op) {
  OpBuilder builder(op);
  const Type whole = wholeOf(op->getResult(0).getType());
  if (isWholeComposite(op)) {
    Operation *copy = builder.clone(*op);
    builder.setInsertionPoint(copy);
    for (OpOperand &operand : copy->getOpOperands())
      operand.set(
          moveTo(builder, operand.get(), wholeOf(operand.get().getType())));
    copy->getResult(0).setType(whole);
    FailureOr<Value> made = decompose(builder, copy);
    if (failed(made))
      return failure();
    copy->erase();
    replace(builder, op, *made);
    op->erase();
    return success();
  }
  auto core = findCore(op);
  if (failed(core))
    return failure();
  auto &[ops, input] = *core;
  auto max = cast<ReduceOp>(ops.back());
  if (max.getDims().size() != 1)
    return failure();
  auto softmax = SoftmaxOp::create(
      builder, op->getLoc(), whole,
      moveTo(builder, input, wholeOf(input.getType())), max.getDims()[0]);
  // Whether that is what they compute.
  Operation *before = softmax->getPrevNode();
  builder.setInsertionPoint(softmax);
  FailureOr<Value> made = decompose(builder, softmax);
  if (failed(made))
    return failure();
  auto same = findCore(made->getDefiningOp());
  if (failed(same) || same->first.size() != ops.size())
    return failure();
  for (auto [one, other] : llvm::zip_equal(ops, same->first)) {
    if (one->getName() != other->getName() ||
        plainAttributes(one) != plainAttributes(other))
      return failure();
    for (auto [a, b] : llvm::zip_equal(one->getRegions(), other->getRegions()))
      if (!OperationEquivalence::isRegionEquivalentTo(
              &a, &b, OperationEquivalence::IgnoreLocations))
        return failure();
  }
  while (softmax->getPrevNode() != before)
    softmax->getPrevNode()->erase();
  replace(builder, op, softmax.getResult());
  // The last first, and moves that nothing reads.
  auto drop = [&](Operation *op) {
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      if (isa<ReshardOp>(user) && user->use_empty())
        user->erase();
  };
  for (Operation *each : ops) {
    for (int depth = 0; depth < 4; ++depth)
      drop(each);
    if (!each->use_empty())
      return failure();
    each->erase();
  }
  return success();
}
