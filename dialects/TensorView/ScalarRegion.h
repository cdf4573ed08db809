//===- ScalarRegion.h - the syntax of scalar regions ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_SCALARREGION_H
#define TESSERA_TENSORVIEW_SCALARREGION_H

#include "mlir/IR/OpImplementation.h"

namespace tessera::tv {

/// `(%x: f32, ...) { ... }`, for custom<ScalarRegion> of any dialect.
mlir::ParseResult parseScalarRegion(mlir::OpAsmParser &parser,
                                    mlir::Region &region);
void printScalarRegion(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                       mlir::Region &region);

} // namespace tessera::tv

#endif // TESSERA_TENSORVIEW_SCALARREGION_H
