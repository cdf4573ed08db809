//===- OpPrice.h - what an op and its moves take ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function takes what its ops take, one after the other, and its moves. What
// an op is the first to need of moves goes together (Moves::price), so the op
// pays for it:
//
//     %0 = tv.reshard %a        paid by %2
//     %1 = tv.reshard %b        paid by %2, together with %0
//     %2 = tv.add %0, %1        (so it would be were a cast between)
//     %3 = tv.reshard %2        pays for itself: its result is moved again
//     %4 = tv.reshard %3        paid by the return
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLACE_OPPRICE_H
#define TESSERA_PLACE_OPPRICE_H

#include "Place/Moves.h"

namespace tessera::tv {

/// The op of `value`'s block that needs it first; null if there is none.
mlir::Operation *firstUserOf(mlir::Value value);

/// Whether `op` makes one value of one, element by element or in place: moves
/// may wait until a later op needs that.
bool isOnTheWay(mlir::Operation *op);
/// So many such ops are looked through, so that long chains are not run through
/// again.
inline constexpr int kMaxWay = 8;

/// The reshard of one value that makes `value`, or what ops on the way make
/// `value` of; null if there is none.
ReshardOp moveBehind(mlir::Value value);

/// The op that pays for `move`, a reshard of one value.
mlir::Operation *payerOf(ReshardOp move);

/// The work of `op`, whose values have views, and what it pays for.
Result<layout::Price> priceOf(mlir::Operation *op, Moves &moves);

/// Of all ops, and small moves of one kind go together until an op needs one of
/// them (tv-merge-reshards). Nothing if some move has no plan.
std::optional<layout::Price> priceOf(mlir::func::FuncOp function, Moves &moves);

} // namespace tessera::tv

#endif // TESSERA_PLACE_OPPRICE_H
