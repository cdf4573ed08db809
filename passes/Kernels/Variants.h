//===- Variants.h - which variants of an op are compiled in -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_VARIANTS_H
#define TESSERA_KERNELS_VARIANTS_H

#include "mlir/IR/BuiltinAttributes.h"

namespace tessera {

/// What there is to choose from for one op, and why the rest is missing: what a
/// plan.choose says.
struct FittingVariants {
  llvm::SmallVector<llvm::StringRef> names; ///< the preferred first
  mlir::DictionaryAttr without;             ///< null if nothing is missing
};

/// The variants of `kind` that are compiled in, in this order: `allowed`, or
/// all there are if that is empty; without those that `whyNot` has a reason
/// against. An error where none is left, or a name is unknown.
mlir::FailureOr<FittingVariants> getFittingVariants(
    mlir::Operation *op, llvm::StringRef kind,
    llvm::ArrayRef<std::string> allowed,
    llvm::function_ref<std::optional<std::string>(llvm::StringRef)> whyNot);

} // namespace tessera

#endif // TESSERA_KERNELS_VARIANTS_H
