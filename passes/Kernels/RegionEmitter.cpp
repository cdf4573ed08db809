//===- RegionEmitter.cpp - scalar regions as code of kernels --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ops of a region are cloned, in the types of kernels. What arith leaves
// undefined has the result that tv.map states, so no target needs a rule of its
// own; a constant operand, or an index that is known to lie inside of its
// tensor, needs no check.
//
//===----------------------------------------------------------------------===//

#include "Kernels/KernelEmitter.h"
#include "TensorView/ExtentAnalysis.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

TypedAttr tessera::getKernelConstant(Attribute value, Type type) {
  if (auto number = dyn_cast<FloatAttr>(value)) {
    APFloat wide = number.getValue();
    bool lost;
    wide.convert(cast<FloatType>(type).getFloatSemantics(),
                 APFloat::rmNearestTiesToEven, &lost);
    return FloatAttr::get(type, wide);
  }
  if (auto number = dyn_cast<IntegerAttr>(value))
    return IntegerAttr::get(type, number.getValue());
  return {};
}

//===----------------------------------------------------------------------===//
// Ops that are not defined everywhere
//===----------------------------------------------------------------------===//

namespace {
/// Gives one op a result for all operands.
class Completion {
public:
  Completion(OpBuilder &b, Operation *op)
      : b(b), op(op), loc(op->getLoc()), type(op->getResult(0).getType()),
        result(op->getResult(0)) {}

  void divide(bool isSigned, bool isRemainder);
  void shift(bool fillsWithSign);
  void toInteger(bool isSigned);

  Value getResult() const { return result; }

private:
  Value constant(TypedAttr value) {
    return arith::ConstantOp::create(b, loc, value);
  }
  Value integer(const APInt &value) {
    return constant(b.getIntegerAttr(type, value));
  }
  Value integer(int64_t value) {
    return integer(APInt(ConstantIntRanges::getStorageBitwidth(type), value,
                         /*isSigned=*/true, /*implicitTrunc=*/true));
  }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  }
  Value pick(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }

  OpBuilder &b;
  Operation *op;
  Location loc;
  Type type;
  Value result;
};
} // namespace

/// By 0 the quotient is 0 and the remainder the dividend. By -1 the quotient
/// wraps.
void Completion::divide(bool isSigned, bool isRemainder) {
  Value x = op->getOperand(0), y = op->getOperand(1);
  APInt divisor;
  bool isKnown = matchPattern(y, m_ConstantInt(&divisor));
  if (isKnown && !divisor.isZero() && !(isSigned && divisor.isAllOnes()))
    return;
  if (type.isIndex() && !isSigned && !isKnown) {
    // A region's index may be below 0, which one of a kernel is taken not to
    // be.
    auto castTo = [&](Type to, Value value) -> Value {
      return arith::IndexCastOp::create(b, loc, to, value);
    };
    b.setInsertionPoint(op);
    for (OpOperand &operand : op->getOpOperands())
      operand.set(castTo(b.getI64Type(), operand.get()));
    op->getResult(0).setType(type = b.getI64Type());
    divide(isSigned, isRemainder);
    b.setInsertionPointAfterValue(result);
    result = castTo(b.getIndexType(), result);
    return;
  }
  b.setInsertionPoint(op);
  Value zero = integer(0), byZero = compare(arith::CmpIPredicate::eq, y, zero);
  Value unsafe = byZero, negates;
  if (isSigned) {
    negates = compare(arith::CmpIPredicate::eq, y, integer(-1));
    unsafe = arith::OrIOp::create(b, loc, byZero, negates);
  }
  // By 1 the remainder is 0, as it is by -1.
  op->setOperand(1, pick(unsafe, integer(1), y));
  b.setInsertionPointAfter(op);
  if (isSigned && !isRemainder)
    result = pick(negates, arith::SubIOp::create(b, loc, zero, x), result);
  result = pick(byZero, isRemainder ? x : zero, result);
}

/// By the width or more all bits leave.
void Completion::shift(bool fillsWithSign) {
  Value by = op->getOperand(1);
  unsigned width = ConstantIntRanges::getStorageBitwidth(type);
  APInt amount;
  if (matchPattern(by, m_ConstantInt(&amount)) && amount.ult(width))
    return;
  b.setInsertionPoint(op);
  Value last = integer(width - 1);
  Value fits = compare(arith::CmpIPredicate::ule, by, last);
  op->setOperand(1, pick(fits, by, last));
  b.setInsertionPointAfter(op);
  if (!fillsWithSign)
    result = pick(fits, result, integer(0));
}

/// Saturates; a NaN is 0.
void Completion::toInteger(bool isSigned) {
  unsigned width = type.getIntOrFloatBitWidth();
  APInt most = isSigned ? APInt::getSignedMaxValue(width)
                        : APInt::getMaxValue(width),
        least = isSigned ? APInt::getSignedMinValue(width) : APInt(width, 0);
  Value x = op->getOperand(0);
  auto number = [&](const APInt &value) {
    APFloat real(cast<FloatType>(x.getType()).getFloatSemantics());
    real.convertFromAPInt(value, /*IsSigned=*/true,
                          APFloat::rmNearestTiesToEven);
    return constant(FloatAttr::get(x.getType(), real));
  };
  auto compareFloats = [&](arith::CmpFPredicate predicate, Value y) {
    return arith::CmpFOp::create(b, loc, predicate, x, y).getResult();
  };
  b.setInsertionPoint(op);
  // Powers of two, which all floats have.
  Value end = number(most.zext(width + 2) + 1),
        begin = number(isSigned ? least.sext(width + 2) : APInt(width + 2, 0));
  Value isAbove = compareFloats(arith::CmpFPredicate::OGE, end);
  Value isBelow = compareFloats(arith::CmpFPredicate::OLT, begin);
  Value isInside = arith::AndIOp::create(
      b, loc, compareFloats(arith::CmpFPredicate::OGE, begin),
      compareFloats(arith::CmpFPredicate::OLT, end));
  op->setOperand(
      0,
      pick(isInside, x, constant(b.getZeroAttr(cast<FloatType>(x.getType())))));
  b.setInsertionPointAfter(op);
  result = pick(isAbove, integer(most), result);
  result = pick(isBelow, integer(least), result);
}

/// The result of `op`, which was just emitted, for all operands.
static Value complete(OpBuilder &b, Operation *op) {
  OpBuilder::InsertionGuard guard(b);
  Completion completion(b, op);
  TypeSwitch<Operation *>(op)
      .Case<arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp>(
          [&](auto) { completion.divide(true, /*isRemainder=*/false); })
      .Case<arith::DivUIOp, arith::CeilDivUIOp>(
          [&](auto) { completion.divide(false, /*isRemainder=*/false); })
      .Case([&](arith::RemSIOp) {
        completion.divide(true, /*isRemainder=*/true);
      })
      .Case([&](arith::RemUIOp) {
        completion.divide(false, /*isRemainder=*/true);
      })
      .Case<arith::ShLIOp, arith::ShRUIOp>(
          [&](auto) { completion.shift(/*fillsWithSign=*/false); })
      .Case([&](arith::ShRSIOp) { completion.shift(/*fillsWithSign=*/true); })
      .Case([&](arith::FPToSIOp) { completion.toInteger(/*isSigned=*/true); })
      .Case([&](arith::FPToUIOp) { completion.toInteger(/*isSigned=*/false); });
  return completion.getResult();
}

//===----------------------------------------------------------------------===//
// Indices of loads
//===----------------------------------------------------------------------===//

void KernelEmitter::noteIndex(Value index, const layout::Extent &extent) {
  // Under a condition a value may be one that is none outside.
  if (index.getParentBlock() == b.getInsertionBlock())
    indexOf.try_emplace(index, extent);
}

namespace {
/// What is known of an integer before the kernel runs.
class Ranges {
public:
  Ranges(const llvm::DenseMap<Value, layout::Extent> &indexOf,
         func::FuncOp function)
      : indexOf(indexOf) {
    auto sizes = function->getAttrOfType<DictionaryAttr>(tv::kSizesAttr);
    if (sizes)
      for (NamedAttribute size : sizes)
        maximums[size.getName().str()] =
            tv::DeclaredSize(size.getValue()).maximum;
  }

  /// Whether 0 <= index < extent.
  bool isIndex(Value index, const layout::Extent &extent);

private:
  ConstantIntRanges get(Value value);
  ConstantIntRanges compute(Value value);
  std::optional<int64_t> getMaximum(layout::Extent extent) const;
  static ConstantIntRanges below(int64_t end) {
    return ConstantIntRanges::fromSigned(
        APInt(64, 0), APInt(64, std::max<int64_t>(end, 1) - 1));
  }

  const llvm::DenseMap<Value, layout::Extent> &indexOf;
  std::map<std::string, int64_t> maximums;
  llvm::DenseMap<Value, ConstantIntRanges> ranges;
};
} // namespace

/// No size is negative.
std::optional<int64_t> Ranges::getMaximum(layout::Extent extent) const {
  std::erase_if(extent.terms, [](const auto &term) { return term.second < 0; });
  return extent.evaluate(maximums);
}

ConstantIntRanges Ranges::get(Value value) {
  if (auto found = ranges.find(value); found != ranges.end())
    return found->second;
  ConstantIntRanges range = compute(value);
  ranges.try_emplace(value, range);
  return range;
}

ConstantIntRanges Ranges::compute(Value value) {
  ConstantIntRanges unknown = ConstantIntRanges::maxRange(
      ConstantIntRanges::getStorageBitwidth(value.getType()));
  if (auto found = indexOf.find(value); found != indexOf.end())
    if (std::optional<int64_t> end = getMaximum(found->second))
      return below(*end);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast_or_null<LoopLikeOpInterface>(
        argument.getOwner()->getParentOp());
    auto variables = loop ? loop.getLoopInductionVars() : std::nullopt;
    if (!variables)
      return unknown;
    // Loops of kernels go from 0 in steps of 1.
    for (auto [variable, end] :
         llvm::zip_equal(*variables, *loop.getLoopUpperBounds()))
      if (variable == argument)
        if (std::optional<int64_t> constant = getConstantIntValue(end))
          return below(*constant);
    return unknown;
  }
  auto op = value.getDefiningOp<InferIntRangeInterface>();
  auto isInteger = [](Type type) { return type.isIntOrIndex(); };
  if (!op || !llvm::all_of(op->getOperandTypes(), isInteger))
    return unknown;
  SmallVector<ConstantIntRanges> operands;
  for (Value operand : op->getOperands())
    operands.push_back(get(operand));
  op.inferResultRanges(operands,
                       [&](Value result, const ConstantIntRanges &range) {
                         if (result == value)
                           unknown = range;
                       });
  return unknown;
}

bool Ranges::isIndex(Value index, const layout::Extent &extent) {
  // Through a tensor of integers and back.
  while (auto cast = index.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, arith::IndexCastUIOp>(cast))
      break;
    Value from = cast->getOperand(0);
    unsigned width = ConstantIntRanges::getStorageBitwidth(index.getType()),
             fromWidth = ConstantIntRanges::getStorageBitwidth(from.getType());
    ConstantIntRanges range = get(from);
    if (range.smin().isNegative() ||
        range.smax().getActiveBits() >= std::min(width, fromWidth))
      break;
    index = from;
  }
  if (auto found = indexOf.find(index);
      found != indexOf.end() && found->second == extent)
    return true;
  std::optional<int64_t> end = extent.getStatic();
  ConstantIntRanges range = get(index);
  return end && !range.smin().isNegative() && range.smax().slt(*end);
}

Value KernelEmitter::loadCaptured(Operation *op, Value tensor,
                                  ArrayRef<Value> indices) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto [held, local] = localIndices(type, indices);
  if (!matchPattern(held, m_One()))
    return fail(op, "captured tensors must be whole on every device",
                getKernelScalar(type.getElementType()));
  Ranges ranges(indexOf, op->getParentOfType<func::FuncOp>());
  Value inside = yes();
  for (auto [index, extent] :
       llvm::zip_equal(indices, getLocal(type).getExtents()))
    if (!ranges.isIndex(index, extent))
      inside = b.createOrFold<arith::AndIOp>(
          location, inside, inRange(index, this->extent(extent)));
  if (matchPattern(inside, m_One()))
    return element(tensor, local);
  Value zero = arith::ConstantOp::create(
      b, location, b.getZeroAttr(getKernelScalar(type.getElementType())));
  return guarded(inside, zero,
                 [&, &local = local] { return element(tensor, local); });
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

SmallVector<Value> KernelEmitter::evaluate(Block &block,
                                           ArrayRef<Value> arguments) {
  IRMapping mapping;
  mapping.map(block.getArguments(), arguments);
  for (Operation &op : block.without_terminator()) {
    // The one op of a region that reads a tensor.
    if (auto load = dyn_cast<tv::LoadOp>(op)) {
      SmallVector<Value> indices;
      for (Value at : load.getIndices())
        indices.push_back(mapping.lookup(at));
      mapping.map(load.getResult(),
                  loadCaptured(load, load.getTensor(), indices));
      continue;
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      Type type = getKernelScalar(constant.getType());
      TypedAttr value = getKernelConstant(constant.getValue(), type);
      mapping.map(
          constant.getResult(), hoisted([&] {
            return arith::ConstantOp::create(b, location, value).getResult();
          }));
      continue;
    }
    if (llvm::any_of(op.getResultTypes(),
                     llvm::IsaPred<Float8E4M3FNType, Float8E5M2Type>)) {
      Value none = fail(&op,
                        "kernels do not make 8-bit floats yet; convert to bf16",
                        b.getF32Type());
      mapping.map(op.getResults(), SmallVector<Value>(op.getNumResults(), none));
      continue;
    }
    if (isa<arith::ExtFOp, arith::TruncFOp>(op) &&
        mapping.lookup(op.getOperand(0)).getType() ==
            getKernelScalar(op.getResult(0).getType())) {
      mapping.map(op.getResult(0), mapping.lookup(op.getOperand(0)));
      continue;
    }
    Operation *clone = b.clone(op, mapping);
    for (Value result : clone->getResults())
      result.setType(getKernelScalar(result.getType()));
    if (clone->getNumResults() == 1)
      mapping.map(op.getResult(0), complete(b, clone));
  }
  SmallVector<Value> results;
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(mapping.lookup(value));
  return results;
}
