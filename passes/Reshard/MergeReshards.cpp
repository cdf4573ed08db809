//===- MergeReshards.cpp - small moves that go together -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A small move costs a latency, whatever its bytes, so small moves wait for
// others of their kind until an op needs the result of one. That makes as few
// steps as there can be: the one that is needed first ends its group, and all
// that could have gone with it are in it.
//
// What goes from peer to peer for one op goes together whatever its size: the
// device that sends much of one operand may send little of the next. So does
// what only ops of one operand each, as a cast, see on its way there.
//
//===----------------------------------------------------------------------===//

#include "Layout/PlanViews.h"
#include "Layout/Transfers.h"
#include "Place/OpPrice.h"
#include "Reshard/Passes.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_MERGERESHARDSPASS
#include "Reshard/Passes.h.inc"
} // namespace tessera::tv

namespace {
struct MergeReshards : tv::impl::MergeReshardsPassBase<MergeReshards> {
  void runOnContract() override;

private:
  /// A plan without its loser, and the number of a combiner or -1.
  using Kind = std::pair<StepAttr, int>;

  static std::optional<Kind> getKind(ReshardOp step);
  bool merge(ArrayRef<ReshardOp> steps, Operation *user, Moves &moves);
};
} // namespace

/// What a device has of `value`, or gets of it, is no more than this.
static int64_t bytesOf(Value value, Moves &moves) {
  ViewAttr view = getView(value);
  return computeProduct(layout::maxLocalShape(
             view.getView(), moves.getMaxShape(value), view.getLayoutMesh())) *
         ExtentAnalysis::getElementBytes(value);
}

/// Of the partial states that a step combines, or makes.
static std::optional<layout::Combiner> getCombiner(ReshardOp step) {
  return layout::changedCombiner(getView(step.getInputs()[0]).getView(),
                                 getView(step.getResult(0)).getView());
}

/// Steps of one kind can go together, and permutes with exchanges. Nothing for
/// others.
std::optional<MergeReshards::Kind> MergeReshards::getKind(ReshardOp step) {
  StepAttr plan = step.getPlanAttr();
  if (plan.getKind() == StepKind::Slice || step.getInputs().size() != 1)
    return std::nullopt;
  const StepKind kind =
      plan.getKind() == StepKind::Permute ? StepKind::Exchange : plan.getKind();
  auto steps =
      StepAttr::get(step.getContext(), kind, plan.getMesh(), plan.getAxes(),
                    StringAttr::get(step.getContext()));
  auto combiner = getCombiner(step);
  return Kind(steps, combiner ? static_cast<int>(*combiner) : -1);
}

static bool isFromPeerToPeer(ReshardOp step) {
  return layout::isFromPeerToPeer(
      static_cast<layout::Step::Kind>(step.getPlanAttr().getKind()));
}

/// The steps from peer to peer that `user` is the first to need the results of,
/// and the ops on their way to it, which nothing else needs. States that they
/// make are of one combiner.
static SmallVector<ReshardOp> getExchanges(Operation *user,
                                           SmallVector<Operation *> &onTheWay) {
  SmallVector<ReshardOp> steps;
  std::optional<layout::Combiner> combiner;
  if (user->getNumOperands() < 2)
    return steps;
  for (Value operand : user->getOperands()) {
    SmallVector<Operation *> way;
    Operation *op = operand.getDefiningOp();
    for (; op && way.size() < kMaxWay && isOnTheWay(op) &&
           op->getResult(0).hasOneUse();
         op = op->getOperand(0).getDefiningOp())
      way.push_back(op);
    auto step = dyn_cast_if_present<ReshardOp>(op);
    if (!step || step.getInputs().size() != 1 || !isFromPeerToPeer(step) ||
        step->getBlock() != user->getBlock() || is_contained(steps, step))
      continue;
    Value result = step.getResult(0);
    if (way.empty() ? firstUserOf(result) != user : !result.hasOneUse())
      continue;
    auto made = getCombiner(step);
    if (made && combiner.value_or(*made) != *made)
      continue;
    combiner = made ? made : combiner;
    steps.push_back(step);
    append_range(onTheWay, llvm::reverse(way));
  }
  return steps;
}

/// The plan of steps of one kind along the same axes, or the exchange that does
/// what all of them do.
static StepAttr getMerged(ArrayRef<ReshardOp> steps) {
  StepAttr first = ReshardOp(steps.front()).getPlanAttr();
  StepKind kind = first.getKind();
  std::vector<layout::SubAxis> axes = first.getAxes();
  for (ReshardOp step : steps.drop_front()) {
    StepAttr plan = step.getPlanAttr();
    if (plan.getKind() != kind || plan.getAxes() != first.getAxes())
      kind = StepKind::Exchange;
    llvm::append_range(axes, layout::subtract(plan.getAxes(), axes));
  }
  return StepAttr::get(first.getContext(), kind, first.getMesh(),
                       layout::merged(std::move(axes)),
                       StringAttr::get(first.getContext()));
}

/// What the device with the most sends or receives in steps from peer to peer
/// that go together; nothing for steps of other kinds, in which each device
/// does as much.
static std::optional<int64_t> getBusiest(ArrayRef<ReshardOp> steps,
                                         Moves &moves) {
  if (!isFromPeerToPeer(steps.front()))
    return std::nullopt;
  std::vector<layout::Move> all;
  for (ReshardOp step : steps) {
    Value from = step.getInputs()[0];
    ViewAttr source = getView(from), target = getView(step.getResult(0));
    layout::Move &move = all.emplace_back(layout::Move{
        moves.getMaxShape(from), ExtentAnalysis::getElementBytes(from),
        source.getView(), target.getView()});
    move.fromMesh = source.getLayoutMesh();
    move.toMesh = target.getLayoutMesh();
  }
  return layout::busiestBytes(
      all, ReshardOp(steps.front()).getPlanAttr().getMesh().getMesh());
}

/// One step in place of `steps`, before `user`; false if there is but one.
bool MergeReshards::merge(ArrayRef<ReshardOp> steps, Operation *user,
                          Moves &moves) {
  if (steps.size() < 2)
    return false;
  SmallVector<Value> inputs, results;
  SmallVector<Location> places;
  SmallVector<int64_t> numbers;
  int64_t bytes = 0;
  for (ReshardOp step : steps) {
    inputs.push_back(step.getInputs()[0]);
    results.push_back(step.getResult(0));
    places.push_back(step.getLoc());
    auto together =
        remark::passed(step.getLoc(), remark::RemarkOpts::name("together")
                                          .category(getArgument())
                                          .function(getOperation().getName()));
    together << remark::metric("kind",
                               layout::toString(static_cast<layout::Step::Kind>(
                                   step.getPlanAttr().getKind())));
    auto move = step->getAttrOfType<DenseI64ArrayAttr>(kMoveAttr);
    numbers.push_back(move ? move[0] : -1);
    if (move)
      together << remark::metric("move", move[0]);
    bytes += bytesOf(step.getInputs()[0], moves);
  }
  std::optional<int64_t> busiest = getBusiest(steps, moves);
  OpBuilder builder(user);
  auto merged = ReshardOp::create(builder, builder.getFusedLoc(places),
                                  ValueRange(results).getTypes(), inputs,
                                  getMerged(steps));
  if (llvm::any_of(numbers, [](int64_t number) { return number >= 0; }))
    merged->setAttr(kMoveAttr, builder.getDenseI64ArrayAttr(numbers));
  auto joined =
      remark::passed(merged.getLoc(), remark::RemarkOpts::name("reshards")
                                          .category(getArgument())
                                          .function(getOperation().getName()));
  joined << remark::metric("tensors", steps.size())
         << remark::metric("bytes", bytes);
  if (busiest)
    joined << remark::metric("moved", *busiest);
  for (auto [old, result, step] :
       llvm::zip_equal(results, merged.getResults(), steps)) {
    old.replaceAllUsesWith(result);
    step->erase();
  }
  return true;
}

void MergeReshards::runOnContract() {
  FailureOr<Moves> moves = Moves::get(getOperation());
  if (failed(moves))
    return signalPassFailure();
  const layout::Machine &machine = moves->getMachine();
  bool changed = false;
  for (Block &block : getOperation().getBody()) {
    llvm::MapVector<Kind, SmallVector<ReshardOp>> waiting;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      // Of ended groups, what goes with what else there is for the op.
      SmallVector<ReshardOp> exchanges;
      auto endGroup = [&](Value needed) {
        auto step = needed.getDefiningOp<ReshardOp>();
        std::optional<Kind> kind = step ? getKind(step) : std::nullopt;
        auto group = kind ? waiting.find(*kind) : waiting.end();
        if (group == waiting.end() || !llvm::is_contained(group->second, step))
          return;
        if (isFromPeerToPeer(step) && !isa<ReshardOp>(op) && kind->second < 0)
          append_range(exchanges, group->second);
        else
          changed |= merge(group->second, &op, *moves);
        waiting.erase(group);
      };
      op.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          endGroup(operand);
      });
      if (!isa<ReshardOp>(op)) {
        SmallVector<Operation *> onTheWay;
        for (ReshardOp step : getExchanges(&op, onTheWay))
          if (!is_contained(exchanges, step))
            exchanges.push_back(step);
        if (merge(exchanges, &op, *moves)) {
          changed = true;
          for (Operation *behind : onTheWay)
            behind->moveBefore(&op);
        }
      }
      auto step = dyn_cast<ReshardOp>(op);
      std::optional<Kind> kind = step ? getKind(step) : std::nullopt;
      if (kind && machine.isSmall(bytesOf(step.getInputs()[0], *moves)) &&
          machine.isSmall(bytesOf(step.getResult(0), *moves)))
        waiting[*kind].push_back(step);
    }
  }
  if (!changed)
    markAllAnalysesPreserved(); // and nothing is verified again
}
