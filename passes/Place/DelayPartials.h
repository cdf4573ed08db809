//===- DelayPartials.h - combine partial values later -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLACE_DELAYPARTIALS_H
#define TESSERA_PLACE_DELAYPARTIALS_H

#include "Place/ChoosePlacement.h"

namespace tessera::tv {

/// Carries partial values through ops that may run on them, where fewer bytes
/// move then:
///
///     add(reshard(a), reshard(b))  ->  reshard(add(a, b))
///
/// Ops are local or reshards before and after.
llvm::LogicalResult delayPartials(mlir::func::FuncOp function, Moves &moves,
                                  Choices &choices);

} // namespace tessera::tv

#endif // TESSERA_PLACE_DELAYPARTIALS_H
