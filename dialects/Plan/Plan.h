//===- Plan.h - the plan dialect ------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLAN_PLAN_H
#define TESSERA_PLAN_PLAN_H

#include "TensorView/TensorView.h"

#include "mlir/IR/SymbolTable.h"

namespace tessera::layout {
inline llvm::hash_code hash_value(const Extent &extent) {
  return hashValue(extent);
}
} // namespace tessera::layout

#include "Plan/PlanDialect.h.inc"
#include "Plan/PlanEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "Plan/PlanAttrs.h.inc"
#define GET_OP_CLASSES
#include "Plan/PlanOps.h.inc"

namespace tessera::plan {
/// Marks a function as a kernel; a unit attribute.
inline constexpr llvm::StringLiteral kKernelAttr = "plan.kernel";
/// On a kernel that makes the tiles of packed sequences: of how many positions,
/// sequences and rows a tile, and 1 if for causal attention; an array<i64>.
inline constexpr llvm::StringLiteral kPackedTilesAttr = "plan.packed_tiles";
/// Rows of the tiles that kernels of attention cut packed sequences into.
inline constexpr int64_t kPackedRows = 128;

/// A variant of a choice, or none.
struct Variant {
  ChooseOp choice;
  unsigned number = 0;
  explicit operator bool() const { return bool(choice); }
  bool operator==(const Variant &other) const {
    return choice == other.choice && number == other.number;
  }
};
/// The variant of each op of the block that belongs to one: the op's results
/// lead to this variant's values and nowhere else.
llvm::DenseMap<mlir::Operation *, Variant> getVariants(mlir::Block &block);

/// Whether a choice's value is memory that a step of its variant writes, and
/// that nothing but the choice and its variant reads: the variants' memory may
/// then be one.
bool isOwnMemory(mlir::OpOperand &value,
                 const llvm::DenseMap<mlir::Operation *, Variant> &variants);

/// The choice's result that a value of a variant is one tensor with, or itself.
mlir::Value getChosen(mlir::Value value);

/// Whether a value is what a step writes, perhaps of a choice, or a transpose
/// of that, and is read once: then a join may say where it is written.
bool canBeJoined(mlir::Value value);

/// Whether all such values are of one choice, or none is of any: then what they
/// are written to is there as soon as each variant's steps are over.
bool haveOneChoice(mlir::ValueRange values);

/// The join in whose memory a value is written, or null.
JoinOp getJoin(mlir::Value value);

/// Gives variants of different choices ops of their own where they share some
/// that no choice always needs; those would run whatever is chosen.
void separateVariants(mlir::Block &block);
} // namespace tessera::plan

#endif // TESSERA_PLAN_PLAN_H
