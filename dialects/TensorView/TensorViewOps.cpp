//===- TensorViewOps.cpp - scalar regions and generated code of ops ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorView/ScalarRegion.h"
#include "TensorView/TensorView.h"
#include "TensorView/TensorViewPointwise.h"
#include "TensorView/TensorViewVerify.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

ParseResult tv::parseScalarRegion(OpAsmParser &parser, Region &region) {
  SmallVector<OpAsmParser::Argument> arguments;
  return failure(parser.parseArgumentList(arguments,
                                          OpAsmParser::Delimiter::Paren,
                                          /*allowType=*/true) ||
                 parser.parseRegion(region, arguments));
}

void tv::printScalarRegion(OpAsmPrinter &printer, Operation *, Region &region) {
  printer << "(";
  llvm::interleaveComma(
      region.getArguments(), printer,
      [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ") ";
  printer.printRegion(region, /*printEntryBlockArgs=*/false);
}

namespace {
/// For OperationEquivalence: values inside of what is compared are alike as
/// they are met, those around as they are made.
struct Alike {
  Skip skip;
  IRMapping inside;

  auto check() {
    return [this](Value a, Value b) -> LogicalResult {
      Value known = inside.lookupOrNull(a);
      return success(known ? known == b : areSame(a, b, skip));
    };
  }
  auto mark() {
    return [this](Value a, Value b) { inside.map(a, b); };
  }
};
} // namespace

bool tv::areSame(Value a, Value b, Skip skip) {
  a = skip(a), b = skip(b);
  auto x = dyn_cast_or_null<OpResult>(a), y = dyn_cast_or_null<OpResult>(b);
  if (a == b || !x || !y || x.getResultNumber() != y.getResultNumber())
    return a == b;
  Alike alike{skip, {}};
  return OperationEquivalence::isEquivalentTo(
      x.getOwner(), y.getOwner(), alike.check(), alike.mark(),
      OperationEquivalence::IgnoreLocations |
          OperationEquivalence::IgnoreDiscardableAttrs);
}

bool tv::areSame(Region &a, Region &b, Skip skip) {
  Alike alike{skip, {}};
  return OperationEquivalence::isRegionEquivalentTo(
      &a, &b, alike.check(), alike.mark(),
      OperationEquivalence::IgnoreLocations);
}

/// All but the number of a move, which is not the program's.
static ParseResult parseMoveAttrs(OpAsmParser &parser, NamedAttrList &attrs) {
  return parser.parseOptionalAttrDict(attrs);
}

static void printMoveAttrs(OpAsmPrinter &printer, ReshardOp op,
                           DictionaryAttr attrs) {
  printer.printOptionalAttrDict(attrs.getValue(),
                                {kMoveAttr, op.getPlanAttrName()});
}

/// A word before operands.
static ParseResult parseFlag(OpAsmParser &parser, UnitAttr &flag,
                             StringRef word) {
  SMLoc at = parser.getCurrentLocation();
  StringRef found;
  if (parser.parseOptionalKeyword(&found))
    return success();
  if (found != word)
    return parser.emitError(at) << "has no '" << found << "' before operands, "
                                << "but may have '" << word << "'";
  flag = parser.getBuilder().getUnitAttr();
  return success();
}

static void printFlag(OpAsmPrinter &printer, Operation *, UnitAttr flag,
                      StringRef word) {
  if (flag)
    printer << " " << word;
}

#define GET_OP_CLASSES
#include "TensorView/TensorViewOps.cpp.inc"
