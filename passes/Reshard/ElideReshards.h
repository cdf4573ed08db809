//===- ElideReshards.h - fewer and cheaper reshards -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RESHARD_ELIDERESHARDS_H
#define TESSERA_RESHARD_ELIDERESHARDS_H

#include "Place/Moves.h"

namespace tessera::tv {

/// What tv-elide-reshards does; with `explain` it leaves its remarks at their
/// ops. Fails with a diagnostic.
llvm::LogicalResult elideReshards(mlir::func::FuncOp function, Moves &moves,
                                  bool explain);

} // namespace tessera::tv

#endif // TESSERA_RESHARD_ELIDERESHARDS_H
