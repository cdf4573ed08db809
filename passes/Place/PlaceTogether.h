//===- PlaceTogether.h - the cheapest views for ops together ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLACE_PLACETOGETHER_H
#define TESSERA_PLACE_PLACETOGETHER_H

#include "Place/Moves.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::tv {

/// This part of a latency nobody could measure: it is no gain.
inline constexpr double kLeastLatency = 0.001;

/// Groups of ops that were not looked at.
struct LeftAlone {
  int64_t small = 0;   ///< which gain less than `gain` at most
  double gain = 0;     ///< seconds
  double moves = 0;    ///< seconds of the moves of their operands
  int64_t tooLate = 0; ///< when all that may be spent was
};

/// Places ops of `function`, each of which moves nothing but tv.reshard, anew
/// where they and the moves between them take less time together; `isFine`:
/// over primes of the mesh's axes, if views do not cut these so. Calls
/// `beforeChange` once before it changes something.
LeftAlone placeTogether(mlir::func::FuncOp function, Moves &moves, bool isFine,
                        llvm::function_ref<void()> beforeChange);

/// The same of a function of few ops, all at once, if they then take less than
/// `bound` seconds. False if there are more.
bool placeFew(mlir::func::FuncOp function, Moves &moves, double bound,
              llvm::function_ref<void()> beforeChange);

} // namespace tessera::tv

#endif // TESSERA_PLACE_PLACETOGETHER_H
