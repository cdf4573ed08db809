//===- MoveBetweenDevices.cpp - arguments and results on others' devices --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of arguments and results alone can anybody see on which device a block is, so
// only these are moved, last of all that is decided. Such a move goes through
// ops that make one value of one, so that it meets the next: both are one
// exchange, or none, if that takes less time.
//
//     x on [1, 0], move to [0, 1], exp, move to [1, 0]  ->  x on [1, 0], exp
//
//===----------------------------------------------------------------------===//

#include "Place/ChoosePlacement.h"
#include "Place/OpPrice.h"
#include "Place/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_MOVEBETWEENDEVICESPASS
#include "Place/Passes.h.inc"
} // namespace tessera::tv

/// `type` on the devices that `user`, of an argument or result, names; nothing
/// where it lies so.
static RankedTensorType getElsewhere(Type type, ViewAttr user) {
  ViewAttr view = getView(type);
  if (!view || !user || view.getMesh() == user.getMesh() ||
      layout::liesAlike(view.getView(), user.getLayoutMesh(),
                        view.getLayoutMesh()))
    return {};
  return withEncoding(
      cast<RankedTensorType>(type),
      ViewAttr::get(type.getContext(), user.getMesh(), view.getView()));
}

static ReshardOp createMove(OpBuilder &builder, Location loc, Value value,
                            Type type, bool isWritten) {
  auto move = ReshardOp::create(builder, loc, TypeRange{type},
                                ValueRange{value}, StepAttr());
  if (isWritten)
    move->setAttr(kUserMoveAttr, builder.getUnitAttr());
  return move;
}

//===----------------------------------------------------------------------===//
// Moves that meet
//===----------------------------------------------------------------------===//

static double getWork(Operation *op, ViewAttr operand, ViewAttr result,
                      Moves &moves) {
  return getWork(
      op, {{placesOf(operand.getView())}, {placesOf(result.getView())}}, moves);
}

/// A reshard of one value that is not told its step; null for other ops.
static ReshardOp asFreeMove(Operation *op) {
  auto move = dyn_cast_or_null<ReshardOp>(op);
  return move && move.getInputs().size() == 1 && !move->hasAttr(kStepAttr)
             ? move
             : ReshardOp();
}

/// Whether `op` makes one value of one, element by element or of its elements,
/// and reads no other.
static bool isPassed(Operation *op) {
  if (!op || op->getNumOperands() != 1 || op->getNumResults() != 1 ||
      !isMemoryEffectFree(op) ||
      !(op->hasTrait<OpTrait::Pointwise>() ||
        op->hasTrait<OpTrait::SharesMemory>()))
    return false;
  llvm::SetVector<Value> others;
  getUsedValuesDefinedAbove(op->getRegions(), others);
  return others.empty();
}

/// The view of the result of `op` that follows from one of its operand; null if
/// there is none.
static ViewAttr getViewAfter(Operation *op, ViewAttr view) {
  const layout::View operand = placesOf(view.getView());
  Result<Placement> placement =
      followOperands(op, {{operand}, {placesOf(op->getResult(0))}}, 0);
  return placement && placement->operands[0] == operand
             ? view.with(placement->results[0])
             : ViewAttr();
}

/// That of its operand from which this one of its result follows.
static ViewAttr getViewBefore(Operation *op, ViewAttr view) {
  std::optional<layout::View> operand =
      getOperandView(op, placesOf(view.getView()));
  return operand ? view.with(*operand) : ViewAttr();
}

namespace {
/// A move, ops each of which makes one value of one, and a move of what the
/// last of them makes. One move may take the place of both, at any of these
/// values: the ops before it then lie as follows from where the first move
/// starts, those behind it as they must where the second ends.
class Way {
public:
  /// Nothing if no move comes before `second`.
  static std::optional<Way> endingIn(ReshardOp second);

  /// Puts one move, or none, in the place of both if it takes less time.
  void tryJoin(Moves &moves);

private:
  Value getStart() const { return first->getOperand(0); }
  Value getEnd() const { return second->getResult(0); }
  bool setViews();
  double getSeconds(Value value, ViewAttr from, ViewAttr to,
                    Moves &moves) const;
  double getSecondsNow(Moves &moves) const;
  double getSecondsJoined(size_t at, Moves &moves) const;
  void join(size_t at, Moves &moves);

  Operation *first, *second;
  SmallVector<Operation *> ops;
  /// Whether others need the first move, too, and how many of the first ops.
  bool isFirstShared = false;
  size_t sharedOps = 0;
  /// How each value lies before the move and behind it; null if it cannot.
  SmallVector<ViewAttr> before, behind;
};
} // namespace

std::optional<Way> Way::endingIn(ReshardOp second) {
  Way way;
  way.second = second;
  Value value = second.getInputs()[0];
  bool isShared = !value.hasOneUse();
  for (Operation *op = value.getDefiningOp();
       isPassed(op) && way.ops.size() < kMaxWay; op = value.getDefiningOp()) {
    way.ops.push_back(op);
    way.sharedOps += isShared;
    value = op->getOperand(0);
    isShared |= !value.hasOneUse();
  }
  std::reverse(way.ops.begin(), way.ops.end());
  way.first = asFreeMove(value.getDefiningOp());
  way.isFirstShared = isShared;
  return way.first ? std::optional(std::move(way)) : std::nullopt;
}

/// False if no move changes devices, or both are not to be seen as one.
bool Way::setViews() {
  const ViewAttr from = getView(getStart()), to = getView(getEnd());
  auto changesDevices = [](Operation *move) {
    return getView(move->getOperand(0)).getMesh() !=
           getView(move->getResult(0)).getMesh();
  };
  // What is between lies as the source says.
  auto isWritten = [](Operation *move) {
    return move->hasAttr(kUserMoveAttr) &&
           getView(move->getOperand(0)).getView() !=
               getView(move->getResult(0)).getView();
  };
  if (!(changesDevices(first) || changesDevices(second)) ||
      (!ops.empty() && (isWritten(first) || isWritten(second))) ||
      from.getView().partial != to.getView().partial)
    return false;
  before.assign(ops.size() + 1, {});
  behind.assign(ops.size() + 1, {});
  before.front() = from;
  for (size_t i = 0; i < ops.size() && before[i]; ++i)
    before[i + 1] = getViewAfter(ops[i], before[i]);
  behind.back() = to;
  for (size_t i = ops.size(); i > 0 && behind[i]; --i)
    behind[i - 1] = getViewBefore(ops[i - 1], behind[i]);
  return true;
}

/// Of a move of what is like `value`; infinite if it has no plan.
double Way::getSeconds(Value value, ViewAttr from, ViewAttr to,
                       Moves &moves) const {
  const MeshAttr mesh = getView(first->getResult(0)).getMesh();
  Result<double> seconds = moves.seconds(value, from, to, mesh);
  return seconds ? *seconds : HUGE_VAL;
}

/// Of what vanishes with the second move.
double Way::getSecondsNow(Moves &moves) const {
  Value last = second->getOperand(0);
  double seconds = getSeconds(last, getView(last), getView(getEnd()), moves);
  for (Operation *op : ArrayRef(ops).drop_front(sharedOps))
    seconds += getWork(op, getView(op->getOperand(0)),
                       getView(op->getResult(0)), moves);
  if (!isFirstShared)
    seconds += getSeconds(getStart(), getView(getStart()),
                          getView(first->getResult(0)), moves);
  return seconds;
}

/// With the move at the value behind so many ops.
double Way::getSecondsJoined(size_t at, Moves &moves) const {
  if (!before[at] || !behind[at])
    return HUGE_VAL;
  double seconds = getSeconds(at == 0 ? getStart() : ops[at - 1]->getResult(0),
                              before[at], behind[at], moves);
  for (auto [i, op] : llvm::enumerate(ops)) {
    const auto &views = i < at ? before : behind;
    seconds += getWork(op, views[i], views[i + 1], moves);
  }
  return seconds;
}

/// The result of `made`, or of an op before it that does the same.
static Value getOne(Operation *made) {
  for (Operation *user : made->getOperand(0).getUsers())
    if (user->getBlock() == made->getBlock() && user->isBeforeInBlock(made) &&
        OperationEquivalence::isEquivalentTo(
            user, made, OperationEquivalence::exactValueMatch,
            /*markEquivalent=*/nullptr,
            OperationEquivalence::IgnoreLocations)) {
      made->erase();
      return user->getResult(0);
    }
  return made->getResult(0);
}

void Way::join(size_t at, Moves &moves) {
  OpBuilder builder(second);
  Value value = getStart();
  auto move = [&](Operation *place) {
    if (before[at] == behind[at])
      return;
    builder.setInsertionPoint(place);
    IRMapping mapping;
    mapping.map(second->getOperand(0), value);
    Operation *moved = builder.clone(*second, mapping);
    if (!first->hasAttr(kUserMoveAttr))
      moved->removeAttr(kUserMoveAttr);
    moved->getResult(0).setType(withEncoding(value.getType(), behind[at]));
    value = getOne(moved);
  };
  if (at == 0)
    move(ops.empty() ? second : first);
  for (auto [i, op] : llvm::enumerate(ops)) {
    builder.setInsertionPoint(op);
    IRMapping mapping;
    mapping.map(op->getOperand(0), value);
    Operation *made = builder.clone(*op, mapping);
    made->getResult(0).setType(withEncoding(op->getResult(0).getType(),
                                            (i < at ? before : behind)[i + 1]));
    value = getOne(made);
    moves.noteCopy(value, op->getResult(0));
    if (at == i + 1)
      move(at == ops.size() ? second : ops[at]);
  }
  getEnd().replaceAllUsesWith(value);
  second->erase();
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty())
      op->erase();
  if (first->use_empty())
    first->erase();
}

void Way::tryJoin(Moves &moves) {
  if (!setViews())
    return;
  double least = getSecondsNow(moves);
  std::optional<size_t> best;
  for (size_t at = 0; at <= ops.size(); ++at)
    if (double seconds = getSecondsJoined(at, moves);
        layout::isLess(seconds, least)) {
      least = seconds;
      best = at;
    }
  if (best)
    join(*best, moves);
}

namespace {
struct MoveBetweenDevices
    : tv::impl::MoveBetweenDevicesPassBase<MoveBetweenDevices> {
  void runOnContract() override;
};
} // namespace

void MoveBetweenDevices::runOnContract() {
  func::FuncOp function = getOperation();
  Block &body = function.getBody().front();
  FailureOr<Moves> moves = Moves::get(function);
  if (failed(moves))
    return signalPassFailure();
  OpBuilder builder(&body, body.begin());
  // What is a value on other devices.
  llvm::DenseMap<std::pair<Value, Type>, Value> elsewhereOf;
  for (BlockArgument argument : body.getArguments()) {
    const unsigned number = argument.getArgNumber();
    const Type type = argument.getType();
    RankedTensorType elsewhere = getElsewhere(
        type, function.getArgAttrOfType<ViewAttr>(number, kUserViewAttr));
    bool isWritten = bool(function.removeArgAttr(number, kUserMoveAttr));
    if (!elsewhere)
      continue;
    argument.setType(elsewhere);
    if (argument.use_empty())
      continue;
    ReshardOp move =
        createMove(builder, argument.getLoc(), argument, type, isWritten);
    argument.replaceAllUsesExcept(move.getResult(0), move);
    elsewhereOf[{move.getResult(0), elsewhere}] = argument;
  }
  Operation *end = body.getTerminator();
  builder.setInsertionPoint(end);
  for (OpOperand &operand : end->getOpOperands()) {
    const unsigned number = operand.getOperandNumber();
    RankedTensorType elsewhere = getElsewhere(
        operand.get().getType(),
        function.getResultAttrOfType<ViewAttr>(number, kUserViewAttr));
    bool isWritten = bool(function.removeResultAttr(
        number, builder.getStringAttr(kUserMoveAttr)));
    if (!elsewhere)
      continue;
    // (An argument that lies so is returned as it is.)
    Value &moved = elsewhereOf[{operand.get(), elsewhere}];
    if (!moved)
      moved = createMove(builder, end->getLoc(), operand.get(), elsewhere,
                         isWritten)
                  .getResult(0);
    operand.set(moved);
  }
  for (ReshardOp move : llvm::to_vector(body.getOps<ReshardOp>()))
    if (move.use_empty() && isa<BlockArgument>(move.getInputs()[0]))
      move.erase();
    else if (asFreeMove(move))
      if (std::optional<Way> way = Way::endingIn(move))
        way->tryJoin(*moves);
  function.setFunctionType(FunctionType::get(
      &getContext(), body.getArgumentTypes(), end->getOperandTypes()));
}
