//===- ScalarText.cpp - scalar ops as CUDA C++ ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A table from ops to templates of text. `$0` is an operand, `$T` the type of
// the result and `$U` that type without a sign, `$f` ends the name of a
// function of float with f. Functions of math are CUDA's accurate ones, but for
// tanh of f32, and what is behind results of 16 bits (prelude.cuh).
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/ScalarText.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Error.h"

using namespace mlir;
using namespace tessera;

std::optional<std::string> cuda::getTypeName(Type type) {
  if (type.isF64())
    return "double";
  if (type.isF32())
    return "float";
  if (type.isF16())
    return "f16";
  if (type.isBF16())
    return "bf16";
  if (isa<Float8E4M3FNType>(type))
    return "f8E4M3";
  if (isa<Float8E5M2Type>(type))
    return "f8E5M2";
  if (type.isIndex())
    return "int64";
  if (auto integer = dyn_cast<IntegerType>(type)) {
    if (integer.getWidth() == 1)
      return "bool";
    if (llvm::is_contained({8u, 16u, 32u, 64u}, integer.getWidth()))
      return "int" + std::to_string(integer.getWidth());
  }
  return std::nullopt;
}

std::string cuda::getLiteral(TypedAttr value) {
  if (auto number = dyn_cast<IntegerAttr>(value)) {
    if (number.getType().isInteger(1))
      return number.getValue().isZero() ? "false" : "true";
    const APInt &bits = number.getValue();
    unsigned width = bits.getBitWidth();
    std::string text = llvm::toString(bits, 10, /*Signed=*/true);
    if (bits.isMinSignedValue() && width >= 32)
      text = width == 32 ? "(-2147483647 - 1)" : "(-9223372036854775807LL - 1)";
    else if (!number.getType().isIndex() && width == 64)
      text += "LL";
    else if (bits.getSignificantBits() > 32)
      text += "LL";
    return bits.isNegative() ? "(" + text + ")" : text;
  }
  auto number = cast<FloatAttr>(value);
  const APFloat &real = number.getValue();
  bool isFloat = number.getType().isF32();
  if (!real.isFinite()) {
    std::string bits =
        "0x" + llvm::toString(real.bitcastToAPInt(), 16, /*Signed=*/false);
    return isFloat ? "bitcast<float>(uint32(" + bits + "))"
                   : "bitcast<double>(uint64(" + bits + "ULL))";
  }
  // In decimal if that says it all, else in hexadecimal.
  SmallString<32> text;
  real.toString(text);
  APFloat again(real.getSemantics());
  if (auto status = again.convertFromString(text, APFloat::rmNearestTiesToEven);
      !status || !again.bitwiseIsEqual(real)) {
    llvm::consumeError(status.takeError());
    char buffer[64];
    real.convertToHexString(buffer, 0, false, APFloat::rmNearestTiesToEven);
    text = buffer;
  } else if (text.find_first_of(".eE") == StringRef::npos) {
    text += ".0";
  }
  if (isFloat)
    text += "f";
  return real.isNegative() ? ("(" + text + ")").str() : text.str().str();
}

static StringRef getTemplate(Operation *op) {
  return llvm::StringSwitch<StringRef>(op->getName().getStringRef())
      .Case("arith.addf", "$0 + $1")
      .Case("arith.subf", "$0 - $1")
      .Case("arith.mulf", "$0 * $1")
      .Case("arith.divf", "$0 / $1")
      .Case("arith.remf", "fmod$f($0, $1)")
      .Case("arith.negf", "-$0")
      .Case("arith.maximumf", "maximumf($0, $1)")
      .Case("arith.minimumf", "minimumf($0, $1)")
      .Case("arith.maxnumf", "fmax$f($0, $1)")
      .Case("arith.minnumf", "fmin$f($0, $1)")
      .Cases({"arith.extf"}, "widen<$T>($0)")
      .Cases({"arith.truncf"}, "narrow<$T>($0)")
      .Case("arith.sitofp", "$T($0)")
      .Case("arith.uitofp", "$T(unsign($0))")
      .Case("arith.fptosi", "$T($0)")
      .Case("arith.fptoui", "$T($U($0))")
      .Cases({"arith.extsi", "arith.trunci", "arith.index_cast"}, "$T($0)")
      .Cases({"arith.extui", "arith.index_castui"}, "$T(unsign($0))")
      .Case("arith.bitcast", "bitcast<$T>($0)")
      .Case("arith.select", "$0 ? $1 : $2")
      .Case("arith.addi", "addi($0, $1)")
      .Case("arith.subi", "subi($0, $1)")
      .Case("arith.muli", "muli($0, $1)")
      .Case("arith.divsi", "$T($0 / $1)")
      .Case("arith.remsi", "$T($0 % $1)")
      .Case("arith.divui", "divui($0, $1)")
      .Case("arith.remui", "remui($0, $1)")
      .Case("arith.floordivsi", "floordivsi($0, $1)")
      .Case("arith.ceildivsi", "ceildivsi($0, $1)")
      .Case("arith.ceildivui", "ceildivui($0, $1)")
      .Case("arith.andi", "$T($0 & $1)")
      .Case("arith.ori", "$T($0 | $1)")
      .Case("arith.xori", "$T($0 ^ $1)")
      .Case("arith.shli", "shli($0, $1)")
      .Case("arith.shrsi", "$T($0 >> $1)")
      .Case("arith.shrui", "shrui($0, $1)")
      .Case("arith.minsi", "minsi($0, $1)")
      .Case("arith.maxsi", "maxsi($0, $1)")
      .Case("arith.minui", "minui($0, $1)")
      .Case("arith.maxui", "maxui($0, $1)")
      .Case("math.absi", "absi($0)")
      .Case("math.absf", "fabs$f($0)")
      .Case("math.exp", "exp$f($0)")
      .Case("math.exp2", "exp2$f($0)")
      .Case("math.expm1", "expm1$f($0)")
      .Case("math.log", "log$f($0)")
      .Case("math.log2", "log2$f($0)")
      .Case("math.log10", "log10$f($0)")
      .Case("math.log1p", "log1p$f($0)")
      .Case("math.sqrt", "sqrt$f($0)")
      .Case("math.rsqrt", "$T(1) / sqrt$f($0)")
      .Case("math.cbrt", "cbrt$f($0)")
      .Case("math.sin", "sin$f($0)")
      .Case("math.cos", "cos$f($0)")
      .Case("math.tan", "tan$f($0)")
      .Case("math.asin", "asin$f($0)")
      .Case("math.acos", "acos$f($0)")
      .Case("math.atan", "atan$f($0)")
      .Case("math.atan2", "atan2$f($0, $1)")
      .Case("math.sinh", "sinh$f($0)")
      .Case("math.cosh", "cosh$f($0)")
      .Case("math.tanh", "tanh$f($0)")
      .Case("math.asinh", "asinh$f($0)")
      .Case("math.acosh", "acosh$f($0)")
      .Case("math.atanh", "atanh$f($0)")
      .Case("math.powf", "pow$f($0, $1)")
      .Case("math.erf", "erf$f($0)")
      .Case("math.erfc", "erfc$f($0)")
      .Case("math.floor", "floor$f($0)")
      .Case("math.ceil", "ceil$f($0)")
      .Case("math.round", "round$f($0)")
      .Case("math.roundeven", "rint$f($0)")
      .Case("math.trunc", "trunc$f($0)")
      .Case("math.fma", "fma$f($0, $1, $2)")
      .Case("math.copysign", "copysign$f($0, $1)")
      .Case("math.isnan", "$0 != $0")
      .Case("math.isinf", "isInfinite($0)")
      .Case("math.isfinite", "isFinite($0)")
      .Default("");
}

/// Ordered comparisons are C++'s; unordered ones the contrary's contrary.
static StringRef getTemplate(arith::CmpFPredicate predicate) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::AlwaysFalse:
    return "false";
  case P::OEQ:
    return "$0 == $1";
  case P::OGT:
    return "$0 > $1";
  case P::OGE:
    return "$0 >= $1";
  case P::OLT:
    return "$0 < $1";
  case P::OLE:
    return "$0 <= $1";
  case P::ONE:
    return "$0 < $1 || $0 > $1";
  case P::ORD:
    return "$0 == $0 && $1 == $1";
  case P::UEQ:
    return "!($0 < $1 || $0 > $1)";
  case P::UGT:
    return "!($0 <= $1)";
  case P::UGE:
    return "!($0 < $1)";
  case P::ULT:
    return "!($0 >= $1)";
  case P::ULE:
    return "!($0 > $1)";
  case P::UNE:
    return "$0 != $1";
  case P::UNO:
    return "$0 != $0 || $1 != $1";
  case P::AlwaysTrue:
    return "true";
  }
  llvm_unreachable("all predicates are covered");
}

/// A bool is -1 where it has a sign, as the one bit that it is.
static StringRef getTemplate(arith::CmpIPredicate predicate, bool isBool) {
  using P = arith::CmpIPredicate;
  if (isBool && predicate >= P::slt && predicate <= P::sge) {
    const P flipped[] = {P::ugt, P::uge, P::ult, P::ule};
    predicate = flipped[static_cast<int>(predicate) - static_cast<int>(P::slt)];
  }
  switch (predicate) {
  case P::eq:
    return "$0 == $1";
  case P::ne:
    return "$0 != $1";
  case P::slt:
    return "$0 < $1";
  case P::sle:
    return "$0 <= $1";
  case P::sgt:
    return "$0 > $1";
  case P::sge:
    return "$0 >= $1";
  case P::ult:
    return "unsign($0) < unsign($1)";
  case P::ule:
    return "unsign($0) <= unsign($1)";
  case P::ugt:
    return "unsign($0) > unsign($1)";
  case P::uge:
    return "unsign($0) >= unsign($1)";
  }
  llvm_unreachable("all predicates are covered");
}

std::optional<std::string>
cuda::getExpression(Operation *op, Rounding rounding,
                    llvm::function_ref<std::string(Value)> name) {
  if (op->getNumResults() != 1)
    return std::nullopt;
  Type type = op->getResult(0).getType();
  std::optional<std::string> typeName = getTypeName(type);
  if (!typeName)
    return std::nullopt;
  for (Value operand : op->getOperands())
    if (!getTypeName(operand.getType()))
      return std::nullopt;
  StringRef text = getTemplate(op);
  bool fromBool =
      op->getNumOperands() > 0 && op->getOperand(0).getType().isInteger(1);
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    text = getTemplate(compare.getPredicate());
  else if (auto compare = dyn_cast<arith::CmpIOp>(op))
    text = getTemplate(compare.getPredicate(), fromBool);
  else if (isa<arith::TruncIOp>(op) && type.isInteger(1))
    text = "($0 & 1) != 0";
  else if (isa<arith::FPToSIOp, arith::FPToUIOp>(op) && type.isInteger(1))
    text = "int32($0) != 0";
  else if (isa<arith::MaxSIOp>(op) && fromBool)
    text = "minui($0, $1)";
  else if (isa<arith::MinSIOp>(op) && fromBool)
    text = "maxui($0, $1)";
  else if (isa<arith::ExtSIOp, arith::SIToFPOp, arith::IndexCastOp>(op) &&
           fromBool)
    text = "$T(-int32($0))";
  else if (isa<math::TanhOp>(op) && type.isF32())
    text = rounding == Rounding::Scores ? "tanhFast($0)" : "tanh32($0)";
  if (rounding == Rounding::Results && type.isF32())
    text = llvm::StringSwitch<StringRef>(op->getName().getStringRef())
               .Case("arith.divf", "divideFast($0, $1)")
               .Case("math.exp", "expFast($0)")
               .Case("math.sqrt", "sqrtFast($0)")
               .Default(text);
  // Indices stay far from where they would wrap.
  if (type.isIndex()) {
    if (isa<arith::AddIOp>(op))
      text = "$0 + $1";
    else if (isa<arith::SubIOp>(op))
      text = "$0 - $1";
    else if (isa<arith::MulIOp>(op))
      text = "$0 * $1";
  }
  if (text.empty())
    return std::nullopt;

  std::string result;
  // A literal that a function gets must have the type of the others.
  bool isCall = text.contains('(');
  auto addOperand = [&](Value operand) {
    Type type = operand.getType();
    if (isCall && matchPattern(operand, m_Constant()) &&
        (type.isIndex() || type.isInteger(8) || type.isInteger(16)))
      result += *getTypeName(type) + "(" + name(operand) + ")";
    else
      result += name(operand);
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      result += text[i];
      continue;
    }
    char what = text[++i];
    if (what == 'T')
      result += *typeName;
    else if (what == 'U')
      result += "u" + *typeName;
    else if (what == 'f')
      result += type.isF32() ? "f" : "";
    else
      addOperand(op->getOperand(what - '0'));
  }
  return result;
}
