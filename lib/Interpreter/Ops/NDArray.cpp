//===- NDArray.cpp - arrays of the interpreter ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements are kept as double or int64 whatever their type; rounding and
// wrapping to the type are functions of their own.
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Ops/NDArray.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

static unsigned widthOf(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

double interp::roundTo(double value, Type type) {
  if (type.isF64())
    return value;
  if (type.isF32())
    return static_cast<float>(value);
  llvm::APFloat rounded(value);
  bool losesInfo;
  rounded.convert(cast<FloatType>(type).getFloatSemantics(),
                  llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  rounded.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return rounded.convertToDouble();
}

int64_t interp::wrapTo(int64_t value, Type type) {
  unsigned width = widthOf(type);
  if (width == 64)
    return value;
  uint64_t bits = static_cast<uint64_t>(value) << (64 - width);
  if (width == 1 || type.isUnsignedInteger())
    return static_cast<int64_t>(bits >> (64 - width));
  return static_cast<int64_t>(bits) >> (64 - width);
}

uint64_t interp::unsignedOf(int64_t value, Type type) {
  unsigned width = widthOf(type);
  uint64_t bits = static_cast<uint64_t>(value);
  return width == 64 ? bits : bits & ((uint64_t(1) << width) - 1);
}

uint64_t interp::bitsOf(Scalar value, Type type) {
  if (!isFloat(type))
    return unsignedOf(value.whole, type);
  llvm::APFloat rounded(value.real);
  bool losesInfo;
  rounded.convert(cast<FloatType>(type).getFloatSemantics(),
                  llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return rounded.bitcastToAPInt().getZExtValue();
}

Scalar interp::fromBits(uint64_t bits, Type type) {
  if (!isFloat(type))
    return whole(wrapTo(static_cast<int64_t>(bits), type));
  llvm::APFloat value(cast<FloatType>(type).getFloatSemantics(),
                      APInt(widthOf(type), bits));
  bool losesInfo;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  return real(value.convertToDouble());
}

Scalar interp::identityOf(layout::Combiner combiner, Type type) {
  bool max = combiner == layout::Combiner::Max;
  if (isFloat(type)) {
    double infinity = std::numeric_limits<double>::infinity();
    return real(combiner == layout::Combiner::Sum ? 0.0
                : max                             ? -infinity
                                                  : infinity);
  }
  if (combiner == layout::Combiner::Sum)
    return whole(0);
  unsigned width = widthOf(type);
  bool isUnsigned = width == 1 || type.isUnsignedInteger();
  if (isUnsigned)
    return whole(max ? 0 : static_cast<int64_t>((uint64_t(1) << width) - 1));
  int64_t least = std::numeric_limits<int64_t>::min() >> (64 - width);
  return whole(max ? least : -(least + 1));
}

Scalar interp::combine(layout::Combiner combiner, Type type, Scalar a,
                       Scalar b) {
  bool max = combiner == layout::Combiner::Max;
  if (isFloat(type)) {
    if (combiner == layout::Combiner::Sum)
      return real(a.real + b.real);
    if (std::isnan(a.real) || std::isnan(b.real))
      return real(std::numeric_limits<double>::quiet_NaN());
    return real(max ? std::max(a.real, b.real) : std::min(a.real, b.real));
  }
  if (combiner == layout::Combiner::Sum)
    return whole(wrapTo(
        static_cast<int64_t>(uint64_t(a.whole) + uint64_t(b.whole)), type));
  return whole(max ? std::max(a.whole, b.whole) : std::min(a.whole, b.whole));
}

Scalar interp::scalarOf(Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value))
    return real(number.getValueAsDouble());
  auto integer = cast<IntegerAttr>(value);
  const APInt &bits = integer.getValue();
  bool isUnsigned =
      integer.getType().isUnsignedInteger() || bits.getBitWidth() == 1;
  return whole(isUnsigned ? bits.getZExtValue() : bits.getSExtValue());
}

std::string interp::toString(Scalar value, Type type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (isFloat(type))
    os << llvm::format("%.9g", value.real);
  else
    os << value.whole;
  return text;
}

NDArray::NDArray(Type type, Shape shape) : type(type), shape(std::move(shape)) {
  Scalar nothing = isFloat() ? real(std::numeric_limits<double>::quiet_NaN())
                             : whole(std::numeric_limits<int64_t>::min());
  data.assign(numElements(this->shape), nothing);
}

void NDArray::round(bool doublesToFloat) {
  if (!isFloat() || (type.isF64() && !doublesToFloat))
    return;
  Type to = type.isF64() ? Float32Type::get(type.getContext()) : type;
  for (Scalar &value : data)
    value.real = roundTo(value.real, to);
}

int64_t interp::numElements(const Shape &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

int64_t interp::linearize(ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  int64_t number = 0;
  for (auto [i, extent] : llvm::zip_equal(index, shape))
    number = number * extent + i;
  return number;
}

Index interp::delinearize(int64_t number, ArrayRef<int64_t> shape) {
  Index index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = number % shape[d];
    number /= shape[d];
  }
  return index;
}

std::string interp::indexText(ArrayRef<int64_t> index) {
  std::string text = "[";
  for (auto [d, i] : llvm::enumerate(index))
    text += (d ? ", " : "") + std::to_string(i);
  return text + "]";
}
