//===- TensorViewPointwise.cpp - ops that are a scalar function -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorView/TensorViewPointwise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Scalar Scalar::beside(const Scalar &other) const {
  if (value)
    return *this;
  assert(other.value && "numbers alone have no type");
  ImplicitLocOpBuilder &b = *other.builder;
  Type type = other.value.getType();
  TypedAttr attribute;
  if (other.isFloat())
    attribute = b.getFloatAttr(type, number);
  else
    attribute = b.getIntegerAttr(type, int64_t(number));
  return other.with(arith::ConstantOp::create(b, attribute));
}

template <typename FloatOp, typename SignedOp, typename UnsignedOp>
Scalar Scalar::binary(Scalar x, Scalar y) {
  Scalar a = x.beside(y), c = y.beside(a);
  ImplicitLocOpBuilder &b = *a.builder;
  if (a.isFloat())
    return a.with(FloatOp::create(b, a.value, c.value));
  if (a.isUnsigned)
    return a.with(UnsignedOp::create(b, a.value, c.value));
  return a.with(SignedOp::create(b, a.value, c.value));
}

Scalar tv::operator+(Scalar x, Scalar y) {
  return Scalar::binary<arith::AddFOp, arith::AddIOp, arith::AddIOp>(x, y);
}
Scalar tv::operator-(Scalar x, Scalar y) {
  return Scalar::binary<arith::SubFOp, arith::SubIOp, arith::SubIOp>(x, y);
}
Scalar tv::operator*(Scalar x, Scalar y) {
  return Scalar::binary<arith::MulFOp, arith::MulIOp, arith::MulIOp>(x, y);
}
Scalar tv::operator/(Scalar x, Scalar y) {
  return Scalar::binary<arith::DivFOp, arith::DivSIOp, arith::DivUIOp>(x, y);
}
Scalar tv::max(Scalar x, Scalar y) {
  return Scalar::binary<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(x,
                                                                           y);
}
Scalar tv::min(Scalar x, Scalar y) {
  return Scalar::binary<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(x,
                                                                           y);
}
Scalar tv::operator-(Scalar x) {
  return x.isFloat() ? x.apply<arith::NegFOp>() : 0 - x;
}
Scalar tv::abs(Scalar x) {
  if (x.isFloat())
    return x.apply<math::AbsFOp>();
  return x.isUnsigned ? x : x.apply<math::AbsIOp>();
}
Scalar tv::pow(Scalar x, Scalar y) {
  Scalar a = x.beside(y), c = y.beside(a);
  return a.with(math::PowFOp::create(*a.builder, a.value, c.value));
}

/// Ordered but for "not equal", which a NaN is.
static arith::CmpFPredicate ofFloats(Predicate predicate) {
  using P = arith::CmpFPredicate;
  const P all[] = {P::OEQ, P::UNE, P::OLT, P::OLE, P::OGT, P::OGE};
  return all[unsigned(predicate)];
}
static arith::CmpIPredicate ofIntegers(Predicate predicate, bool isUnsigned) {
  using P = arith::CmpIPredicate;
  const P withSign[] = {P::eq, P::ne, P::slt, P::sle, P::sgt, P::sge};
  const P without[] = {P::eq, P::ne, P::ult, P::ule, P::ugt, P::uge};
  return (isUnsigned ? without : withSign)[unsigned(predicate)];
}

Scalar tv::compare(Predicate predicate, Scalar x, Scalar y) {
  Scalar a = x.beside(y), c = y.beside(a);
  ImplicitLocOpBuilder &b = *a.builder;
  Value result;
  if (a.isFloat())
    result = arith::CmpFOp::create(b, ofFloats(predicate), a.value, c.value);
  else
    result = arith::CmpIOp::create(b, ofIntegers(predicate, a.isUnsigned),
                                   a.value, c.value);
  return Scalar(b, result, result.getType());
}

Scalar tv::select(Scalar condition, Scalar x, Scalar y) {
  Scalar a = x.beside(y), c = y.beside(a);
  return a.with(arith::SelectOp::create(*condition.builder, condition.value,
                                        a.value, c.value));
}

/// f32 in place of a narrower float.
static Type widened(Type type) {
  bool isNarrow = isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32;
  return isNarrow ? Float32Type::get(type.getContext()) : type;
}

/// Between floats, by way of f32 where one is narrower.
static Value convertFloat(ImplicitLocOpBuilder &b, Value value, Type type) {
  for (Type next : {widened(value.getType()), widened(type), type}) {
    unsigned from = value.getType().getIntOrFloatBitWidth();
    if (value.getType() == next)
      continue;
    if (next.getIntOrFloatBitWidth() > from)
      value = arith::ExtFOp::create(b, next, value);
    else
      value = arith::TruncFOp::create(b, next, value);
  }
  return value;
}

Scalar tv::convert(Scalar x, Type element) {
  ImplicitLocOpBuilder &b = *x.builder;
  Type type = getScalarType(element);
  auto made = [&](Value value) { return Scalar(b, value, element); };
  if (element.isInteger(1))
    return x.value.getType() == type ? x : compare(Predicate::NE, x, 0);
  if (x.isFloat() && isa<FloatType>(type))
    return made(convertFloat(b, x.value, type));
  if (x.isFloat()) {
    Value wide = convertFloat(b, x.value, widened(x.value.getType()));
    if (element.isUnsignedInteger())
      return made(arith::FPToUIOp::create(b, type, wide));
    return made(arith::FPToSIOp::create(b, type, wide));
  }
  if (isa<FloatType>(type)) {
    Value wide;
    if (x.isUnsigned)
      wide = arith::UIToFPOp::create(b, widened(type), x.value);
    else
      wide = arith::SIToFPOp::create(b, widened(type), x.value);
    return made(convertFloat(b, wide, type));
  }
  unsigned from = x.value.getType().getIntOrFloatBitWidth();
  if (from == type.getIntOrFloatBitWidth())
    return made(x.value);
  if (from > type.getIntOrFloatBitWidth())
    return made(arith::TruncIOp::create(b, type, x.value));
  if (x.isUnsigned)
    return made(arith::ExtUIOp::create(b, type, x.value));
  return made(arith::ExtSIOp::create(b, type, x.value));
}

//===----------------------------------------------------------------------===//
// What follows from a function
//===----------------------------------------------------------------------===//

/// The function on arguments of the operands' own types; what it gives may be
/// of another type where these were made f32.
static Value build(ScalarOpInterface op, Block &block, bool isWide) {
  ImplicitLocOpBuilder b(op.getLoc(), op.getContext());
  b.setInsertionPointToEnd(&block);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    Type type = getScalarType(getElementTypeOrSelf(operand));
    Value argument = block.addArgument(type, op.getLoc());
    operands.push_back(isWide ? convertFloat(b, argument, widened(type))
                              : argument);
  }
  return op.buildScalar(b, operands);
}

void tv::buildBody(ScalarOpInterface op, Region &region) {
  Block *block = &region.emplaceBlock();
  Value value = build(op, *block, /*isWide=*/false);
  if (block->getOperations().size() > 1) {
    block->erase();
    block = &region.emplaceBlock();
    value = build(op, *block, /*isWide=*/true);
  }
  ImplicitLocOpBuilder b(op.getLoc(), op.getContext());
  b.setInsertionPointToEnd(block);
  Type type = getScalarType(getElementTypeOrSelf(op->getResult(0)));
  if (value.getType() != type)
    value = convertFloat(b, value, type);
  YieldOp::create(b, value);
}

Value tv::buildMap(OpBuilder &builder, ScalarOpInterface op) {
  auto map = MapOp::create(builder, op.getLoc(), op->getResultTypes(),
                           op->getOperands());
  buildBody(op, map.getBody());
  return map.getResult(0);
}

LogicalResult
tv::transferScalars(ScalarOpInterface op,
                    ArrayRef<std::optional<layout::Combiner>> operands,
                    SmallVectorImpl<std::optional<layout::Combiner>> &results,
                    std::string &why) {
  if (llvm::none_of(operands, [](auto state) { return state.has_value(); })) {
    results.assign(1, std::nullopt);
    return success();
  }
  Block block;
  Value value = build(op, block, /*isWide=*/false);
  ImplicitLocOpBuilder b(op.getLoc(), op.getContext());
  b.setInsertionPointToEnd(&block);
  YieldOp::create(b, value);
  return transferRegion(op, block, operands, results, why);
}
