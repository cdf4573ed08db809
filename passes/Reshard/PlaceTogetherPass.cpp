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
#include "Reshard/ElideReshards.h"
#include "Reshard/Passes.h"

#include "llvm/Support/FormatVariadic.h"

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
/// In a typical run, and in a small one where sizes are dynamic.
struct Prices {
  std::optional<Price> typical, small;

  Prices(func::FuncOp function, Moves &moves) {
    typical = small = priceOf(function, moves);
    auto isStatic = [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return !tensor || tensor.hasStaticShape();
    };
    if (llvm::all_of(function.getBody().front(), [&](Operation &op) {
          return llvm::all_of(op.getResultTypes(), isStatic);
        }))
      return;
    moves.setSmall(true);
    small = priceOf(function, moves);
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

private:
  void report(const LeftAlone &left);
  FailureOr<bool> place(bool isFine, std::optional<Moves> &moves);
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

/// Whether the function was changed, perhaps back again. Makes `moves` if there
/// are none, and none of what is no value any more.
FailureOr<bool> PlaceTogether::place(bool isFine, std::optional<Moves> &moves) {
  func::FuncOp function = getOperation();
  if (!moves) {
    FailureOr<Moves> ofFunction = Moves::get(function);
    if (failed(ofFunction))
      return failure();
    moves = std::move(*ofFunction);
  }
  OwningOpRef<func::FuncOp> old;
  std::optional<Prices> before;
  const LeftAlone left = placeTogether(function, *moves, isFine, [&] {
    before.emplace(function, *moves);
    old = function.clone();
  });
  if (explain && !isFine)
    report(left);
  if (!old)
    return false;
  if (failed(elideReshards(function, *moves, /*explain=*/false)))
    return failure();
  Prices after(function, *moves);
  if (!after.isBelow(*before)) {
    function.setFunctionType(old->getFunctionType());
    function.getBody().takeBody(old->getBody());
    moves.reset(); // of other values
    return true;
  }
  if (explain) {
    auto remark = mlir::emitRemark(function.getLoc()) << "places ops together";
    if (isFine)
      remark << " over parts of axes";
    if (int64_t others = countRemarks(*old) - countRemarks(function))
      remark << ", " << others << " of them otherwise than alone";
    remark << layout::describe(*after.typical, *before->typical);
  }
  return true;
}

void PlaceTogether::runOnContract() {
  std::optional<Moves> moves;
  bool changed = false;
  for (bool isFine : {false, true}) {
    FailureOr<bool> change = place(isFine, moves);
    if (failed(change))
      return signalPassFailure();
    changed |= *change;
  }
  reportRemarks(getOperation());
  if (!changed)
    markAllAnalysesPreserved();
}
