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
// pointwise ops, and those that only give elements other indices, so that it
// meets others: they are one exchange, or none, if that takes less time.
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

/// A reshard of one value that is not told its step; null for other ops.
static ReshardOp asFreeMove(Operation *op) {
  auto move = dyn_cast_or_null<ReshardOp>(op);
  return move && move.getInputs().size() == 1 && !move->hasAttr(kStepAttr)
             ? move
             : ReshardOp();
}

/// Whether `op` makes one value, element by element, or gives those of one
/// other indices, and reads nothing else.
static bool isPassed(Operation *op) {
  if (!op || op->getNumOperands() == 0 || op->getNumResults() != 1 ||
      !isMemoryEffectFree(op) ||
      !(op->hasTrait<OpTrait::Pointwise>() ||
        (op->getNumOperands() == 1 && op->hasTrait<OpTrait::SharesMemory>())))
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

/// Those of its operands from which this one of its result follows; none if
/// there are none.
static SmallVector<ViewAttr> getViewsBefore(Operation *op, ViewAttr view) {
  const layout::View result = placesOf(view.getView());
  if (op->getNumOperands() == 1) {
    std::optional<layout::View> operand = getOperandView(op, result);
    return operand ? SmallVector<ViewAttr>{view.with(*operand)}
                   : SmallVector<ViewAttr>();
  }
  if (!result.partial.empty())
    return {};
  Placement wanted{{}, {result}};
  for (Value operand : op->getOperands())
    wanted.operands.push_back(layout::View::replicated(
        cast<RankedTensorType>(operand.getType()).getRank()));
  PlacedOp placed(cast<ShardingRuleOpInterface>(op), std::move(wanted));
  Result<Placement> placement = placed.place(placed.getDivision());
  if (!placement || placement->results[0] != result)
    return {};
  SmallVector<ViewAttr> views;
  for (layout::View &operand : placement->operands)
    views.push_back(view.with(std::move(operand)));
  return views;
}

/// Of an operand's ways so many ops are looked at, so that trees are not run
/// through again.
static constexpr int kMaxLooked = 32;
/// No less time is a difference, in seconds.
static constexpr double kLeast = 1e-12;

static bool changesDevices(Operation *move) {
  return getView(move->getOperand(0)).getMesh() !=
         getView(move->getResult(0)).getMesh();
}

/// Whether the source says how the result lies: what is on the other side of
/// ops lies as these do, then.
static bool changesWrittenView(Operation *move) {
  return move->hasAttr(kUserMoveAttr) &&
         getView(move->getOperand(0)).getView() !=
             getView(move->getResult(0)).getView();
}

/// Whether nothing but `user` reads the value.
static bool isReadOnlyBy(Value value, Operation *user) {
  return llvm::all_of(value.getUsers(),
                      [&](Operation *other) { return other == user; });
}

namespace {
/// How a value comes to lie as a move would make it.
struct Way {
  double seconds = HUGE_VAL; ///< less those of what vanishes with the move
  bool meets = false;        ///< whether another move is part of this one

  /// Either `op` makes it, of operands that come to lie as that needs,
  Operation *op = nullptr;
  std::vector<Way> operands;
  /// or it moves: what `ops` make of `start`, where that lies. The views of
  /// `start` and of what each makes:
  Value start;
  SmallVector<Operation *> ops;
  SmallVector<ViewAttr> views;
  ReshardOp first; ///< that is part of this move, or null
};

/// Finds what may take the place of a move, together with others before it.
class Joiner {
public:
  Joiner(ReshardOp last, Moves &moves)
      : last(last), moves(moves),
        program(getView(last->getOperand(0)).getMesh()) {}

  /// One move or none for some, if that takes less time.
  void run();

private:
  double getSeconds(Value value, ViewAttr from, ViewAttr to);
  double getWork(Operation *op, ArrayRef<ViewAttr> operands, ViewAttr result);
  double getWorkNow(Operation *op);

  /// The way that takes least for `value` to lie as `view`, which only `last`
  /// and what vanishes with it need if it `vanishes`.
  Way find(Value value, ViewAttr view, bool vanishes);
  Way findThrough(Value value, ViewAttr view, bool vanishes);
  Way findJoined(Value value, ViewAttr view, bool vanishes);

  Value make(const Way &way, ViewAttr view, Operation *place);
  Value copy(Operation *op, ValueRange operands, ViewAttr view);
  Value move(const Way &way, Value value, ViewAttr view, Operation *place);

  ReshardOp last;
  Moves &moves;
  MeshAttr program;
  int looked = 0; ///< ops
};
} // namespace

/// Of a move of what is like `value`; infinite if it has no plan.
double Joiner::getSeconds(Value value, ViewAttr from, ViewAttr to) {
  if (from.getView().partial != to.getView().partial)
    return HUGE_VAL;
  Result<double> seconds = moves.seconds(value, from, to, program);
  return seconds ? *seconds : HUGE_VAL;
}

double Joiner::getWork(Operation *op, ArrayRef<ViewAttr> operands,
                       ViewAttr result) {
  Placement placement{{}, {placesOf(result.getView())}};
  for (ViewAttr view : operands)
    placement.operands.push_back(placesOf(view.getView()));
  return tv::getWork(op, placement, moves);
}

double Joiner::getWorkNow(Operation *op) {
  SmallVector<ViewAttr> views;
  for (Value operand : op->getOperands())
    views.push_back(getView(operand));
  return getWork(op, views, getView(op->getResult(0)));
}

/// The last move goes before the op that makes the value.
Way Joiner::findThrough(Value value, ViewAttr view, bool vanishes) {
  Way way;
  Operation *op = value.getDefiningOp();
  if (!isPassed(op) || changesWrittenView(last) || ++looked > kMaxLooked)
    return way;
  SmallVector<ViewAttr> views = getViewsBefore(op, view);
  if (views.empty())
    return way;
  way.op = op;
  way.seconds = getWork(op, views, view) - (vanishes ? getWorkNow(op) : 0);
  // Exchanges for one op go together, as do those that vanish.
  int exchanges = 0, vanishing = 0;
  for (auto [number, operand, needed] :
       llvm::enumerate(op->getOperands(), views)) {
    if (llvm::is_contained(op->getOperands().take_front(number), operand)) {
      way.operands.push_back(Way()); // as the first of them
      continue;
    }
    Way &own = way.operands.emplace_back(
        find(operand, needed, vanishes && isReadOnlyBy(operand, op)));
    way.seconds += own.seconds;
    way.meets |= own.meets;
    exchanges += !own.op && own.views.back().getMesh() != needed.getMesh();
    vanishing += own.first && own.ops.empty() && vanishes &&
                 isReadOnlyBy(operand, op) && changesDevices(own.first);
  }
  way.seconds += moves.getMachine().latency *
                 (std::max(vanishing - 1, 0) - std::max(exchanges - 1, 0));
  return way;
}

/// The last move is one with another, behind what ops make of that one's
/// operand.
Way Joiner::findJoined(Value value, ViewAttr view, bool vanishes) {
  Way way;
  const Value end = value;
  double saved = 0;
  Operation *op = value.getDefiningOp();
  for (; isPassed(op) && op->getNumOperands() == 1 && way.ops.size() < kMaxWay;
       op = value.getDefiningOp()) {
    way.ops.push_back(op);
    saved += vanishes ? getWorkNow(op) : 0;
    value = op->getOperand(0);
    vanishes &= value.hasOneUse();
  }
  std::reverse(way.ops.begin(), way.ops.end());
  way.first = asFreeMove(op);
  const bool isDirect = value == last->getOperand(0);
  if (!way.first || !(changesDevices(way.first) || changesDevices(last)) ||
      (!isDirect &&
       (changesWrittenView(way.first) || changesWrittenView(last))))
    return way;
  way.meets = true;
  way.start = way.first->getOperand(0);
  way.views = {getView(way.start)};
  double seconds = 0;
  for (Operation *each : way.ops) {
    ViewAttr after = getViewAfter(each, way.views.back());
    if (!after)
      return way;
    seconds += getWork(each, way.views.back(), after);
    way.views.push_back(after);
  }
  if (vanishes)
    saved += getSeconds(way.start, getView(way.start), getView(value));
  way.seconds = seconds - saved + getSeconds(end, way.views.back(), view);
  return way;
}

Way Joiner::find(Value value, ViewAttr view, bool vanishes) {
  Way best = findThrough(value, view, vanishes);
  Way joined = findJoined(value, view, vanishes);
  Way moved;
  moved.start = value;
  moved.views = {getView(value)};
  moved.seconds = getSeconds(value, getView(value), view);
  for (Way *other : {&joined, &moved})
    if (other->seconds < best.seconds - kLeast)
      best = std::move(*other);
  // (Without any plan it moves.)
  return best.seconds < HUGE_VAL ? best : moved;
}

/// A copy of `op`, of these operands, or one that there is.
Value Joiner::copy(Operation *op, ValueRange operands, ViewAttr view) {
  OpBuilder builder(op);
  IRMapping mapping;
  mapping.map(op->getOperands(), operands);
  Operation *copied = builder.clone(*op, mapping);
  Value result = copied->getResult(0);
  result.setType(withEncoding(result.getType(), view));
  for (Operation *user : copied->getOperand(0).getUsers())
    if (user->getBlock() == copied->getBlock() &&
        user->isBeforeInBlock(copied) &&
        OperationEquivalence::isEquivalentTo(
            user, copied, OperationEquivalence::exactValueMatch,
            /*markEquivalent=*/nullptr,
            OperationEquivalence::IgnoreLocations)) {
      copied->erase();
      return user->getResult(0);
    }
  moves.noteCopy(result, op->getResult(0));
  return result;
}

/// `value` as `view`, by a move before `place`.
Value Joiner::move(const Way &way, Value value, ViewAttr view,
                   Operation *place) {
  if (getView(value) == view)
    return value;
  auto type = cast<RankedTensorType>(withEncoding(value.getType(), view));
  for (Operation *user : value.getUsers())
    if (ReshardOp other = asFreeMove(user);
        other && other != last && other->getResult(0).getType() == type &&
        other->getBlock() == place->getBlock() && other->isBeforeInBlock(place))
      return other->getResult(0);
  OpBuilder builder(place);
  return createMove(builder, last.getLoc(), value, type,
                    last->hasAttr(kUserMoveAttr) &&
                        (!way.first || way.first->hasAttr(kUserMoveAttr)))
      .getResult(0);
}

Value Joiner::make(const Way &way, ViewAttr view, Operation *place) {
  if (!way.op) {
    Value value = way.start;
    for (auto [i, op] : llvm::enumerate(way.ops))
      value = copy(op, value, way.views[i + 1]);
    // Moves of arguments stay where they go together.
    if (way.first && way.ops.empty() && place != last)
      place = way.first;
    return move(way, value, view, place);
  }
  SmallVector<Value> operands;
  SmallVector<ViewAttr> views = getViewsBefore(way.op, view);
  for (auto [number, own] : llvm::enumerate(way.operands)) {
    size_t same =
        llvm::find(way.op->getOperands(), way.op->getOperand(number)) -
        way.op->operand_begin();
    operands.push_back(same < number ? operands[same]
                                     : make(own, views[number], way.op));
  }
  return copy(way.op, operands, view);
}

/// What makes `value`, if nothing reads it, and so on.
static void eraseUnused(Value value) {
  SmallVector<Operation *> unused;
  auto check = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (op && op->use_empty() && (asFreeMove(op) || isPassed(op)))
      unused.push_back(op);
  };
  check(value);
  while (!unused.empty()) {
    Operation *op = unused.pop_back_val();
    llvm::SetVector<Value> operands(op->operand_begin(), op->operand_end());
    op->erase();
    llvm::for_each(operands, check);
  }
}

void Joiner::run() {
  Value value = last->getOperand(0);
  const ViewAttr view = getView(last->getResult(0));
  Way way = find(value, view, value.hasOneUse());
  if (!way.meets ||
      way.seconds >= getSeconds(value, getView(value), view) - kLeast)
    return;
  last->getResult(0).replaceAllUsesWith(make(way, view, last));
  last->erase();
  eraseUnused(value);
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
  SmallVector<ReshardOp> all = llvm::to_vector(body.getOps<ReshardOp>());
  const bool isElsewhere = llvm::any_of(all, changesDevices);
  for (ReshardOp move : all)
    if (move.use_empty() && isa<BlockArgument>(move.getInputs()[0]))
      move.erase();
    else if (isElsewhere && asFreeMove(move))
      Joiner(move, *moves).run();
  function.setFunctionType(FunctionType::get(
      &getContext(), body.getArgumentTypes(), end->getOperandTypes()));
}
