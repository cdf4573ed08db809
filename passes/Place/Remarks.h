//===- Remarks.h - remarks that later passes may make untrue ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLACE_REMARKS_H
#define TESSERA_PLACE_REMARKS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::tv {

/// Of the op's operands and results.
mlir::FunctionType typesOf(mlir::Operation *op);

/// Leaves a remark at `op`, which is true while its operands and results have
/// these types.
void leaveRemark(mlir::Operation *op, const llvm::Twine &text,
                 mlir::FunctionType types);

/// How many ops have remarks that are true.
int64_t countRemarks(mlir::func::FuncOp function);

/// Reports remarks that are true; no op has any then.
void reportRemarks(mlir::func::FuncOp function);

} // namespace tessera::tv

#endif // TESSERA_PLACE_REMARKS_H
