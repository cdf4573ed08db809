//===- ScalarText.h - scalar ops as CUDA C++ ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CUDA_SCALARTEXT_H
#define TESSERA_COMPILER_TARGETS_CUDA_SCALARTEXT_H

#include "mlir/IR/Operation.h"

#include <optional>
#include <string>

namespace tessera::cuda {

/// The name of a scalar type in prelude.cuh; nothing for others.
std::optional<std::string> getTypeName(mlir::Type type);

/// A number as a literal of its type.
std::string getLiteral(mlir::TypedAttr value);

/// What hides errors of functions of f32: nothing, results of 16 bits, or that
/// they are scores of attention in bf16, whose exponentials become bf16.
enum class Rounding { None, Results, Scores };

/// The value of an op of arith or math with one result as an expression of its
/// operands' names; nothing for an op that is not known.
std::optional<std::string>
getExpression(mlir::Operation *op, Rounding rounding,
              llvm::function_ref<std::string(mlir::Value)> name);

} // namespace tessera::cuda

#endif // TESSERA_COMPILER_TARGETS_CUDA_SCALARTEXT_H
