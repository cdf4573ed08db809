//===- InPlace.h - states that steps replace where they lie ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The next value of a state may lie in the state's own memory where its kernel
// reads the state, if at all, at the element that it writes or before it writes
// any, and whatever else reads the state comes before: a scatter into a state
// writes its updates alone. Else it has memory of its own, and is copied.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLAN_INPLACE_H
#define TESSERA_PLAN_INPLACE_H

#include "Plan/Plan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace tessera::plan {

struct InPlace {
  /// By result of a launch, or of a copy that is none then: the argument of
  /// `main` that it replaces, or what that is in the result's dimensions.
  llvm::DenseMap<mlir::Value, mlir::Value> states;
  /// By kernel: an argument that is written, and the one that is read there, in
  /// each launch one memory.
  llvm::StringMap<llvm::SmallVector<std::pair<unsigned, unsigned>>> kernels;
};

/// Of a planned `main`, whose kernels are in its module.
InPlace findInPlace(mlir::func::FuncOp main);

/// Of a kernel whose arguments are one memory in pairs: what it copies from one
/// to the other at the same place is there.
void eraseCopies(mlir::func::FuncOp kernel,
                 llvm::ArrayRef<std::pair<unsigned, unsigned>> inPlace);

} // namespace tessera::plan

#endif // TESSERA_PLAN_INPLACE_H
