//===- Schedule.cpp - text and checks of the schedule dialect -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule/Schedule.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::schedule;

#include "Schedule/ScheduleDialect.cpp.inc"
#include "Schedule/ScheduleEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "Schedule/ScheduleAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "Schedule/ScheduleOps.cpp.inc"

void ScheduleDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Schedule/ScheduleAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Schedule/ScheduleOps.cpp.inc"
      >();
}

LogicalResult
ScheduleDialect::verifyOperationAttribute(Operation *op,
                                          NamedAttribute attribute) {
  Attribute value = attribute.getValue();
  StringRef name = attribute.getName();
  StringRef wanted = llvm::StringSwitch<StringRef>(name)
                         .Case(kLoopAttr, "a #schedule.loop")
                         .Case(kProductAttr, "a #schedule.product")
                         .Case(kAttentionAttr, "a #schedule.attention")
                         .Case(kRoleAttr, "a #schedule.role")
                         .Case(kAtOnceAttr, "a positive integer")
                         .Cases({kSyncAttr, kRoundedAttr, kBoundAttr}, "a unit")
                         .Default("");
  if (wanted.empty())
    return op->emitError() << "there is no attribute '" << name << "'";
  auto integer = dyn_cast<IntegerAttr>(value);
  const bool is = name == kLoopAttr        ? isa<LoopAttr>(value)
                  : name == kProductAttr   ? isa<ProductAttr>(value)
                  : name == kAttentionAttr ? isa<AttentionAttr>(value)
                  : name == kRoleAttr      ? isa<RoleAttr>(value)
                  : name == kAtOnceAttr
                      ? integer && integer.getValue().isStrictlyPositive()
                      : isa<UnitAttr>(value);
  if (!is)
    return op->emitError() << name << " is " << wanted << ", not " << value;
  return success();
}

LogicalResult OneHotOp::verify() {
  // Modulo 2^32, too; smaller numbers C++ would widen.
  Type type = getOther().getType();
  if (!type.isIndex() && type.getIntOrFloatBitWidth() < 32)
    return emitOpError() << "compares numbers of at least 32 bits, not "
                         << type;
  return success();
}
