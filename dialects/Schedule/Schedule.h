//===- Schedule.h - the schedule dialect ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SCHEDULE_SCHEDULE_H
#define TESSERA_SCHEDULE_SCHEDULE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "Schedule/ScheduleDialect.h.inc"
#include "Schedule/ScheduleEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "Schedule/ScheduleAttrs.h.inc"
#define GET_OP_CLASSES
#include "Schedule/ScheduleOps.h.inc"

namespace tessera::schedule {

inline constexpr llvm::StringLiteral kLoopAttr = "schedule.loop";
inline constexpr llvm::StringLiteral kProductAttr = "schedule.product";
inline constexpr llvm::StringLiteral kAttentionAttr = "schedule.attention";
inline constexpr llvm::StringLiteral kRoleAttr = "schedule.role";
inline constexpr llvm::StringLiteral kSyncAttr = "schedule.sync";
inline constexpr llvm::StringLiteral kAtOnceAttr = "schedule.at_once";
inline constexpr llvm::StringLiteral kRoundedAttr = "schedule.rounded";
inline constexpr llvm::StringLiteral kBoundAttr = "schedule.bound";

/// Null where there is none.
inline LoopAttr getLoop(mlir::Operation *op) {
  return op->getAttrOfType<LoopAttr>(kLoopAttr);
}
inline ProductAttr getProduct(mlir::Operation *op) {
  return op->getAttrOfType<ProductAttr>(kProductAttr);
}
inline AttentionAttr getAttention(mlir::Operation *op) {
  return op->getAttrOfType<AttentionAttr>(kAttentionAttr);
}
inline RoleAttr getRole(mlir::Operation *op) {
  return op->getAttrOfType<RoleAttr>(kRoleAttr);
}
inline bool hasRole(mlir::Operation *op, RoleKind kind) {
  RoleAttr role = getRole(op);
  return role && role.is(kind);
}

} // namespace tessera::schedule

#endif // TESSERA_SCHEDULE_SCHEDULE_H
