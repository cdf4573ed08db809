//===- PlaceTogetherPass.cpp - ops placed together where that is less -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Place/PlaceTogether.h counts each move alone. What it makes is elided like
// the rest, and kept only if the whole function then takes less by the price of
// elision, where moves of one op go together.
//
//===----------------------------------------------------------------------===//

#include "Place/OpPrice.h"
#include "Place/PlaceTogether.h"
#include "Place/Placement.h"
#include "Reshard/ElideReshards.h"
#include "Reshard/Passes.h"
#include "Reshard/Trial.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::Price;

namespace tessera::tv {
#define GEN_PASS_DEF_PLACETOGETHERPASS
#include "Reshard/Passes.h.inc"
} // namespace tessera::tv

/// What is less of the whole function's time is no gain, for the model is not
/// more exact: by it the GPT-3 block takes a hundredth less sequence parallel
/// than tensor parallel over four GPUs, and by the clock a hundredth more. Less
/// will do where a tenth of the bytes goes, and more bytes need more.
static double leastGain(const Price &now, const Price &then) {
  if (double(then.bytes) > double(now.bytes))
    return 0.05;
  return double(then.bytes) > 0.9 * double(now.bytes) ? 0.025 : 0.01;
}

namespace {
/// What the ops of a function and their moves take. Small moves of one kind go
/// together until an op needs one of them (tv-merge-reshards).
class FunctionPrice {
public:
  explicit FunctionPrice(Moves &moves) : moves(moves) {}
  /// Nothing if some move has no plan.
  std::optional<Price> get(func::FuncOp function);

private:
  using Kind = std::tuple<layout::Step::Kind, std::vector<layout::SubAxis>,
                          layout::Combiner>;
  std::optional<Kind> kindOf(ReshardOp move);
  bool isSmall(Value value) const;

  Moves &moves;
  std::map<Kind, SmallVector<Value>> waiting;
};
} // namespace

/// What a device has of `value`.
bool FunctionPrice::isSmall(Value value) const {
  ViewAttr view = getView(value);
  int64_t bytes = ExtentAnalysis::getElementBytes(value);
  for (int64_t extent : layout::maxLocalShape(
           view.getView(), moves.getTypicalShape(value), view.getLayoutMesh()))
    bytes *= extent;
  return moves.getMachine().isSmall(bytes);
}

/// Nothing for what does not wait. What goes from peer to peer is paid by the
/// op that needs it.
std::optional<FunctionPrice::Kind> FunctionPrice::kindOf(ReshardOp move) {
  Value from = move.getInputs()[0], to = move.getResult(0);
  if (!isSmall(from) || !isSmall(to) || placesOf(from) == placesOf(to))
    return std::nullopt;
  auto plan = moves.plan(from, placesOf(from), placesOf(to),
                         getView(from).getLayoutMesh());
  if (!plan || (*plan)->chosen.cost.phases == 0)
    return std::nullopt;
  const layout::Step &last = (*plan)->chosen.steps.back();
  if (last.kind == layout::Step::Kind::Slice ||
      layout::isFromPeerToPeer(last.kind))
    return std::nullopt;
  return Kind(last.kind, last.axes, last.combiner);
}

std::optional<Price> FunctionPrice::get(func::FuncOp function) {
  Price sum;
  waiting.clear();
  for (Operation &op : function.getBody().front()) {
    Result<Price> price = priceOf(&op, moves);
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
      if (std::optional<Kind> kind = kindOf(move))
        waiting[*kind].push_back(move.getResult(0));
  }
  return sum;
}

namespace {
/// In a typical run, and in a small one where sizes are dynamic.
struct Prices {
  std::optional<Price> typical, small;

  Prices(func::FuncOp function, Moves &moves) {
    typical = small = FunctionPrice(moves).get(function);
    auto isStatic = [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return !tensor || tensor.hasStaticShape();
    };
    if (llvm::all_of(function.getBody().front(), [&](Operation &op) {
          return llvm::all_of(op.getResultTypes(), isStatic);
        }))
      return;
    moves.setSmall(true);
    small = FunctionPrice(moves).get(function);
    moves.setSmall(false);
  }
  /// In both runs no more, and in one less by what is a gain.
  bool isBelow(const Prices &other) const {
    if (!typical || !small || !other.typical || !other.small)
      return false;
    auto isNoMore = [](const Price &a, const Price &b) {
      return !layout::isLess(b.seconds, a.seconds);
    };
    auto isGain = [](const Price &a, const Price &b) {
      return a.seconds < (1 - leastGain(b, a)) * b.seconds;
    };
    return isNoMore(*typical, *other.typical) &&
           isNoMore(*small, *other.small) &&
           (isGain(*typical, *other.typical) || isGain(*small, *other.small));
  }
};

struct PlaceTogether : tv::impl::PlaceTogetherPassBase<PlaceTogether> {
  using PlaceTogetherPassBase::PlaceTogetherPassBase;
  void runOnContract() override;
};
} // namespace

void PlaceTogether::runOnContract() {
  func::FuncOp function = getOperation();
  FailureOr<Moves> moves = Moves::get(function);
  if (failed(moves))
    return signalPassFailure();
  OwningOpRef<func::FuncOp> old;
  std::optional<Prices> before;
  placeTogether(function, *moves, [&] {
    before.emplace(function, *moves);
    old = function.clone();
  });
  if (!old) {
    reportElided(function);
    return markAllAnalysesPreserved();
  }
  if (failed(elideReshards(function, *moves, /*explain=*/false)))
    return signalPassFailure();
  Prices after(function, *moves);
  if (!after.isBelow(*before)) {
    function.setFunctionType(old->getFunctionType());
    function.getBody().takeBody(old->getBody());
  } else if (explain) {
    mlir::emitRemark(function.getLoc())
        << "places ops together"
        << layout::describe(*after.typical, *before->typical);
  }
  reportElided(function);
}
