//===- Differentiate.cpp - gradients become ops ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Before tv-bind, which gives each use of a constant, broadcast or random value
// a copy of its own: the backward makes them anew. And a tensor that a region
// loads from is still the same value as the operand that asks for its gradient.
//
// What the backward needs of the forward is a use; nothing is decided to be
// kept or made anew.
//
//===----------------------------------------------------------------------===//

#include "Differentiate/Callee.h"
#include "Differentiate/Passes.h"
#include "TensorView/Cotangents.h"
#include "TensorView/ScalarGradient.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "Differentiate/Passes.h.inc"
} // namespace tessera::tv

namespace {
class Differentiate : public tv::impl::DifferentiatePassBase<Differentiate> {
  void runOnOperation() override;
  LogicalResult run(func::FuncOp function);
  LogicalResult replace(GradientOp op, func::FuncOp callee, uint64_t &size);

  /// Functions that are done, and, with false, that are being done.
  llvm::DenseMap<Operation *, bool> functions;
  llvm::SetVector<Operation *> callees;
};
} // namespace

/// `gradient` as a result of `type`, of an argument of type `argument`.
static Value place(ImplicitLocOpBuilder &builder, Value gradient,
                   RankedTensorType type, Type argument) {
  ViewAttr asked = getView(type), own = getView(gradient);
  if (asked && !own && gradient.use_empty() && gradient.getDefiningOp())
    gradient.setType(type);
  ViewAttr view = asked ? asked : getView(argument);
  if (gradient.getType() == type && (asked || !view))
    return gradient;
  return ConstrainOp::create(builder, type, gradient, view ? view : own);
}

/// Puts in place of `op` the ops of `callee`, and then those of its gradient.
LogicalResult Differentiate::replace(GradientOp op, func::FuncOp callee,
                                     uint64_t &size) {
  // A copy, whose arguments are values of their own however often the op has
  // one operand.
  OwningOpRef<func::FuncOp> copy = callee.clone();
  Block &block = copy->getBody().front();
  // It keeps the results, which ops may be given others for.
  OwningOpRef<func::ReturnOp> returns =
      cast<func::ReturnOp>(block.getTerminator());
  (*returns)->remove();
  Cotangents cotangents;
  for (int64_t number : op.getTo())
    cotangents.ask(block.getArgument(number));
  SmallVector<Operation *> forward;
  for (Operation &inner : block) {
    inner.setLoc(CallSiteLoc::get(inner.getLoc(), op.getLoc()));
    cotangents.visit(&inner);
    forward.push_back(&inner);
  }

  ImplicitLocOpBuilder builder(op.getLoc(), op.getContext());
  builder.setInsertionPointToEnd(&block);
  for (auto [i, number] : llvm::enumerate(op.getOf())) {
    Value given, result = returns->getOperand(number);
    if (op.getCotangents().empty())
      given = buildSplat(builder, 1, withEncoding(result.getType(), {}));
    else
      given = op.getCotangents()[i];
    cotangents.add(result, given);
  }
  for (Operation *inner : llvm::reverse(forward))
    if (failed(cotangents.reverse(inner, block)))
      return failure();

  SmallVector<Value> results(returns->getOperands());
  for (auto [i, number] : llvm::enumerate(op.getTo())) {
    BlockArgument argument = block.getArgument(number);
    Value gradient = cotangents.take(builder, argument);
    if (!gradient) {
      mlir::emitRemark(op.getLoc())
          << "the gradient by argument #" << number << " is 0: '"
          << op.getCallee() << "' does not depend on it there";
      gradient = buildSplat(builder, 0, withEncoding(argument.getType(), {}),
                            argument);
    }
    auto type = cast<RankedTensorType>(op.getResult(results.size()).getType());
    results.push_back(place(builder, gradient, type, argument.getType()));
  }

  SmallVector<Operation *> all;
  for (Operation &inner : block)
    all.push_back(&inner);
  size += all.size();
  if (size > kMaxOps)
    return op.emitError() << "becomes " << all.size() << " ops, and the "
                          << "program " << size << "; a program may have "
                          << kMaxOps;
  for (Value &result : results)
    if (auto argument = dyn_cast<BlockArgument>(result);
        argument && argument.getOwner() == &block)
      result = op.getInputs()[argument.getArgNumber()];
  for (auto [argument, input] :
       llvm::zip_equal(block.getArguments(), op.getInputs()))
    argument.replaceAllUsesWith(input);
  op->getBlock()->getOperations().splice(op->getIterator(),
                                         block.getOperations());
  op->replaceAllUsesWith(results);
  op.erase();
  for (Operation *inner : llvm::reverse(all))
    if (isOpTriviallyDead(inner))
      inner->erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Gradients that the program writes itself
//===----------------------------------------------------------------------===//

/// What says how a value lies says nothing of the value.
static Value skipPlacing(Value value) {
  while (value) {
    Operation *op = value.getDefiningOp();
    if (auto reshard = dyn_cast_or_null<ReshardOp>(op))
      value = reshard.getInputs()[cast<OpResult>(value).getResultNumber()];
    else if (isa_and_nonnull<BarrierOp, ConstrainOp>(op))
      value = op->getOperand(0);
    else
      return value;
  }
  return value;
}

/// Where sequences begin and how much of them is used, where that is known.
template <typename Op> static std::pair<Value, Value> getSequences(Op op) {
  if (!op.getTiles())
    return {op.getSequences(), op.getUsed()};
  auto tiles = op.getTiles().template getDefiningOp<PackedTilesOp>();
  return tiles ? std::pair<Value, Value>(tiles.getBegins(), tiles.getUsed())
               : std::pair<Value, Value>();
}

/// Blocks that a mask keeps whole are not asked again: it must be the
/// attention's own. Later the two are lowered apart.
static LogicalResult verifyBlockMask(Operation *attention, Value mask,
                                     Region &region) {
  auto made = mask ? skipPlacing(mask).getDefiningOp<BlockMaskOp>() : nullptr;
  if (!made || region.empty() ||
      OperationEquivalence::isRegionEquivalentTo(
          &region, &made.getMaskMod(), OperationEquivalence::IgnoreLocations))
    return success();
  InFlightDiagnostic error = attention->emitOpError(
      "has another mask_mod than its block mask; write the same in both");
  error.attachNote(made.getLoc()) << "the block mask is here";
  return error;
}

/// A gradient asks about the pairs and weights that its attention had. Later
/// the two are lowered apart.
static LogicalResult verifyForward(AttentionGradOp op) {
  auto forward = skipPlacing(op.getOutput()).getDefiningOp<AttentionOp>();
  auto ofLse = skipPlacing(op.getLse()).getDefiningOp<AttentionOp>();
  if (!forward && !ofLse)
    return success();
  const bool isOne = !forward || !ofLse || forward == ofLse;
  forward = forward ? forward : ofLse;
  auto fail = [&](const Twine &problem) {
    InFlightDiagnostic error = op.emitOpError(problem);
    error.attachNote(forward.getLoc()) << "the attention is here";
    return error;
  };
  if (!isOne)
    return fail("has the output of one attention, and the log-sum-exp of "
                "another");
  for (StringRef name :
       {"scale", "causal", "dropout", "seed", "stream", "blocks"}) {
    Attribute own = op->getAttr(name), other = forward->getAttr(name);
    if (own == other)
      continue;
    auto textOf = [](Attribute attribute) {
      std::string text = "none";
      if (isa_and_nonnull<UnitAttr>(attribute))
        return std::string("it");
      if (attribute)
        llvm::raw_string_ostream(text = "") << attribute;
      return text;
    };
    return fail("differs from its attention in '" + name + "': " + textOf(own) +
                " here, " + textOf(other) + " there");
  }
  auto [begins, used] = getSequences(op);
  auto [itsBegins, itsUsed] = getSequences(forward);
  const bool isKnown =
      (!op.getTiles() || begins) && (!forward.getTiles() || itsBegins);
  using Operand = std::tuple<StringRef, Value, Value>;
  for (auto [name, own, other] :
       {Operand("query", op.getQuery(), forward.getQuery()),
        Operand("key", op.getKey(), forward.getKey()),
        Operand("value", op.getValue(), forward.getValue())})
    // Who calls may give one tensor twice, whole and split.
    if (!areSame(own, other, skipPlacing) &&
        !(isa<BlockArgument>(skipPlacing(own)) &&
          isa<BlockArgument>(skipPlacing(other))))
      return fail(Twine("differs from its attention in its ") + name);
  for (auto [name, own, other] :
       {Operand("block mask", op.getBlockMask(), forward.getBlockMask()),
        Operand("step", op.getStep(), forward.getStep()),
        Operand("sequences", isKnown ? begins : Value(),
                isKnown ? itsBegins : Value()),
        Operand("used lengths", isKnown ? used : Value(),
                isKnown ? itsUsed : Value())})
    if (!areSame(own, other, skipPlacing))
      return fail(Twine("differs from its attention in its ") + name);
  using Mod = std::tuple<StringRef, Region *, Region *>;
  for (auto [name, own, other] :
       {Mod("score_mod", &op.getScoreMod(), &forward.getScoreMod()),
        Mod("mask_mod", &op.getMaskMod(), &forward.getMaskMod())})
    if (!areSame(*own, *other, skipPlacing))
      return fail(Twine("differs from its attention in its ") + name);
  return success();
}

LogicalResult Differentiate::run(func::FuncOp function) {
  auto [state, isNew] = functions.try_emplace(function, false);
  if (!isNew)
    return success();
  SmallVector<GradientOp> gradients;
  uint64_t size = 0;
  function.walk([&](Operation *op) {
    ++size;
    if (auto gradient = dyn_cast<GradientOp>(op))
      gradients.push_back(gradient);
  });
  for (GradientOp op : gradients) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        op, op.getCalleeAttr());
    if (failed(run(callee)))
      return failure();
    if (!functions.lookup(callee))
      return op.emitError()
             << "'" << op.getCallee() << "' asks for a gradient of itself";
    if (!callee.getBody().hasOneBlock() || callee.getBody().front().empty() ||
        !isa<func::ReturnOp>(callee.getBody().front().back()))
      return op.emitError() << "'" << op.getCallee()
                            << "' has control flow; only straight-line "
                               "functions have a gradient";
    if (failed(verifyUnchecked(op, callee)))
      return failure();
    callees.insert(callee);
    if (failed(replace(op, callee, size)))
      return failure();
  }
  WalkResult masked = function.walk([](AttentionOp op) {
    return WalkResult(verifyBlockMask(op, op.getBlockMask(), op.getMaskMod()));
  });
  if (masked.wasInterrupted())
    return failure();
  WalkResult written = function.walk([](AttentionGradOp op) {
    bool lacks = !op.getScoreMod().empty() && op.getScoreGrad().empty();
    return failed(verifyForward(op)) || (lacks && failed(addScoreGrad(op)))
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  functions[function] = true;
  return failure(written.wasInterrupted());
}

void Differentiate::runOnOperation() {
  ModuleOp module = getOperation();
  functions.clear();
  callees.clear();
  for (auto function : module.getOps<func::FuncOp>())
    if (failed(run(function)))
      return signalPassFailure();
  for (Operation *callee : callees)
    if (cast<func::FuncOp>(callee).isPrivate() &&
        SymbolTable::symbolKnownUseEmpty(callee, module))
      callee->erase();
  if (callees.empty())
    markAllAnalysesPreserved(); // and nothing is verified again
}
