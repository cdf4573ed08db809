//===- PlaceTogetherPass.cpp - ops placed together where that is less -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Place/PlaceTogether.h counts most moves alone. What it makes is elided like
// the rest, and kept only if the whole function then takes less by the price of
// elision, where moves of one op go together.
//
//===----------------------------------------------------------------------===//

#include "Place/OpPrice.h"
#include "Place/PlaceTogether.h"
#include "Place/Placement.h"
#include "Place/Remarks.h"
#include "Place/SwapComposites.h"
#include "Reshard/ElideReshards.h"
#include "Reshard/Passes.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

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
/// Of few ops what takes least is known, and less will do.
static double leastGain(const Price &now, const Price &then, bool areFew) {
  if (areFew)
    return then.bytes > now.bytes ? 0.01 : 0.0001;
  if (then.bytes > now.bytes)
    return 0.05;
  return double(then.bytes) > 0.9 * double(now.bytes) ? 0.025 : 0.01;
}

static bool isDynamic(func::FuncOp function) {
  auto isStatic = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return !tensor || tensor.hasStaticShape();
  };
  return !llvm::all_of(function.getBody().front(), [&](Operation &op) {
    return llvm::all_of(op.getResultTypes(), isStatic);
  });
}

/// Of a function with more composites none is tried otherwise.
static constexpr size_t kMaxSwaps = 3;

namespace {
/// In a typical run, and in a small one where sizes are dynamic.
struct Prices {
  std::optional<Price> typical, small;

  Prices(func::FuncOp function, Moves &moves) {
    typical = small = priceOf(function, moves);
    if (!isDynamic(function))
      return;
    moves.setSmall(true);
    small = priceOf(function, moves);
    moves.setSmall(false);
  }
  /// In both runs no more, and in one less by what is a gain.
  bool isBelow(const Prices &other, bool areFew) const {
    if (!typical || !small || !other.typical || !other.small)
      return false;
    auto isNoMore = [](const Price &a, const Price &b) {
      return !layout::isLess(b.seconds, a.seconds);
    };
    auto isGain = [&](const Price &a, const Price &b) {
      return a.seconds < (1 - leastGain(b, a, areFew)) * b.seconds;
    };
    return isNoMore(*typical, *other.typical) &&
           isNoMore(*small, *other.small) &&
           (isGain(*typical, *other.typical) || isGain(*small, *other.small));
  }
};

struct PlaceTogether : tv::impl::PlaceTogetherPassBase<PlaceTogether> {
  using PlaceTogetherPassBase::PlaceTogetherPassBase;
  void runOnContract() override;

private:
  void report(const LeftAlone &left);
  enum class How { Whole, Fine, Few };
  void swapComposites(Moves &moves, llvm::function_ref<void()> beforeChange);
  FailureOr<bool> place(How how, std::optional<Moves> &moves);
};
} // namespace

/// Groups of little gain are not told of where all of them have little to gain.
void PlaceTogether::report(const LeftAlone &left) {
  auto us = [](double seconds) {
    return llvm::formatv("{0:f1} us", seconds * 1e6).str();
  };
  if (left.moves > left.gain)
    emitRemark(getOperation().getLoc())
        << "groups of ops that are left as they are: " << left.small
        << ", each of which could gain less than " << us(left.gain)
        << "; moves of their operands take " << us(left.moves);
  if (left.tooLate)
    emitRemark(getOperation().getLoc())
        << "groups of ops that are left as they are, for enough has been "
        << "tried: " << left.tooLate;
}

/// Puts core ops in place of a composite, or it in their place, where all then
/// takes less, placed anew: the best of such, and then of the others.
void PlaceTogether::swapComposites(Moves &moves,
                                   llvm::function_ref<void()> beforeChange) {
  func::FuncOp function = getOperation();
  const size_t count = findSwaps(function).size();
  if (count == 0 || count > kMaxSwaps || isDynamic(function))
    return;
  std::optional<Price> now = priceOf(function, moves);
  if (!now)
    return;
  bool isBetter = true;
  for (size_t round = 0; isBetter && round < count; ++round) {
    OwningOpRef<func::FuncOp> best;
    for (size_t i = 0; i < findSwaps(function).size(); ++i) {
      OwningOpRef<func::FuncOp> other = function.clone();
      if (failed(swapComposite(findSwaps(*other)[i])) ||
          !placeFew(*other, moves, now->seconds, [] {}))
        continue;
      std::optional<Price> then = priceOf(*other, moves);
      if (!then ||
          then->seconds >=
              now->seconds - kLeastLatency * moves.getMachine().latency)
        continue;
      now = then;
      best = std::move(other);
    }
    isBetter = bool(best);
    if (!isBetter)
      continue;
    beforeChange();
    function.setFunctionType(best->getFunctionType());
    function.getBody().takeBody(best->getBody());
  }
}

/// Whether the function was changed, perhaps back again. Makes `moves` if there
/// are none, and none of what is no value any more.
FailureOr<bool> PlaceTogether::place(How how, std::optional<Moves> &moves) {
  func::FuncOp function = getOperation();
  if (!moves) {
    FailureOr<Moves> ofFunction = Moves::get(function);
    if (failed(ofFunction))
      return failure();
    moves = std::move(*ofFunction);
  }
  OwningOpRef<func::FuncOp> old;
  std::optional<Prices> before;
  auto beforeChange = [&] {
    if (old)
      return;
    before.emplace(function, *moves);
    old = function.clone();
  };
  if (how == How::Few) {
    // (With a composite for its core ops they may be few.)
    placeFew(function, *moves, HUGE_VAL, beforeChange);
    swapComposites(*moves, beforeChange);
  } else {
    const LeftAlone left =
        placeTogether(function, *moves, how == How::Fine, beforeChange);
    if (explain && how == How::Whole)
      report(left);
  }
  if (!old)
    return false;
  // Which knows less of what goes together.
  if (how != How::Few &&
      failed(elideReshards(function, *moves, /*explain=*/false)))
    return failure();
  Prices after(function, *moves);
  if (!after.isBelow(*before, how == How::Few)) {
    function.setFunctionType(old->getFunctionType());
    function.getBody().takeBody(old->getBody());
    moves.reset(); // of other values
    return true;
  }
  if (explain) {
    auto remark = mlir::emitRemark(function.getLoc()) << "places ops together";
    if (how == How::Fine)
      remark << " over parts of axes";
    if (how == How::Few)
      remark << " all at once";
    if (int64_t others = countRemarks(*old) - countRemarks(function))
      remark << ", " << others << " of them otherwise than alone";
    remark << layout::describe(*after.typical, *before->typical);
  }
  return true;
}

void PlaceTogether::runOnContract() {
  std::optional<Moves> moves;
  bool changed = false;
  for (How how : {How::Whole, How::Fine, How::Few}) {
    FailureOr<bool> change = place(how, moves);
    if (failed(change))
      return signalPassFailure();
    changed |= *change;
  }
  reportRemarks(getOperation());
  if (!changed)
    markAllAnalysesPreserved();
}
