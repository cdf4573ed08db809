//===- Comm.h - the comm dialect ------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMM_COMM_H
#define TESSERA_COMM_COMM_H

#include "TensorView/TensorView.h"

namespace tessera::comm {
/// Of the partial states that a move of operand `number` combines, or else
/// makes. Of other operands it is the same, or none.
std::optional<layout::Combiner> getCombiner(mlir::Operation *op,
                                            unsigned number = 0);

/// Operands and results pair up as parts of the same global tensors, and what
/// the kind of the move may change of a view is all that it changes.
llvm::LogicalResult verifyCollective(mlir::Operation *op);
} // namespace tessera::comm

#include "Comm/CommDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "Comm/CommAttrs.h.inc"
#include "Comm/CommInterfaces.h.inc"
#define GET_OP_CLASSES
#include "Comm/CommOps.h.inc"

#endif // TESSERA_COMM_COMM_H
