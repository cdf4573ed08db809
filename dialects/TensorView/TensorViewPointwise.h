//===- TensorViewPointwise.h - ops that are a scalar function -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the code of TensorViewPointwise.td is written in, and what follows from
// it: all of an op but its name.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_TENSORVIEWPOINTWISE_H
#define TESSERA_TENSORVIEW_TENSORVIEWPOINTWISE_H

#include "TensorView/TensorView.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

namespace tessera::tv {

/// A value of a scalar region that is being built: what C++ computes with it
/// becomes `arith` and `math`. Which op that is, its type and sign say.
class Scalar {
public:
  /// A constant of the type of what it meets.
  Scalar(double number) : number(number) {}
  /// `element` is that of the tensor, which has a sign.
  Scalar(mlir::ImplicitLocOpBuilder &builder, mlir::Value value,
         mlir::Type element)
      : builder(&builder), value(value),
        isUnsigned(element.isUnsignedInteger() || element.isInteger(1)) {}

  mlir::Value getValue() const { return value; }
  bool isFloat() const { return llvm::isa<mlir::FloatType>(value.getType()); }

  /// A function of `math` on floats.
  template <typename Op> Scalar apply() const {
    return with(Op::create(*builder, value));
  }

  friend Scalar operator+(Scalar x, Scalar y);
  friend Scalar operator-(Scalar x, Scalar y);
  friend Scalar operator*(Scalar x, Scalar y);
  friend Scalar operator/(Scalar x, Scalar y);
  friend Scalar operator-(Scalar x);
  friend Scalar abs(Scalar x);
  friend Scalar max(Scalar x, Scalar y);
  friend Scalar min(Scalar x, Scalar y);
  friend Scalar pow(Scalar x, Scalar y);
  friend Scalar compare(Predicate predicate, Scalar x, Scalar y);
  friend Scalar select(Scalar condition, Scalar x, Scalar y);
  /// To the element type of a tensor, as tv.cast states it.
  friend Scalar convert(Scalar x, mlir::Type element);

private:
  Scalar with(mlir::Value other) const {
    Scalar result = *this;
    result.value = other;
    return result;
  }
  /// What it is beside `other`.
  Scalar beside(const Scalar &other) const;
  template <typename FloatOp, typename SignedOp, typename UnsignedOp>
  static Scalar binary(Scalar x, Scalar y);

  mlir::ImplicitLocOpBuilder *builder = nullptr;
  mlir::Value value;
  double number = 0;
  bool isUnsigned = false;
};

inline Scalar exp(Scalar x) { return x.apply<mlir::math::ExpOp>(); }
inline Scalar log(Scalar x) { return x.apply<mlir::math::LogOp>(); }
inline Scalar sqrt(Scalar x) { return x.apply<mlir::math::SqrtOp>(); }
inline Scalar rsqrt(Scalar x) { return x.apply<mlir::math::RsqrtOp>(); }
inline Scalar tanh(Scalar x) { return x.apply<mlir::math::TanhOp>(); }
inline Scalar erf(Scalar x) { return x.apply<mlir::math::ErfOp>(); }

/// Builds, op by op, what is done with floats of one type.
struct Floats {
  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Type type;

  template <typename Op> mlir::Value apply(mlir::Value x) {
    return Op::create(b, loc, x);
  }
  template <typename Op> mlir::Value apply(mlir::Value x, mlir::Value y) {
    return Op::create(b, loc, x, y);
  }
  mlir::Value number(double value) {
    return mlir::arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return apply<mlir::arith::AddFOp>(x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return apply<mlir::arith::SubFOp>(x, y);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) {
    return apply<mlir::arith::MulFOp>(x, y);
  }
  mlir::Value mul(mlir::Value x, double y) { return mul(x, number(y)); }
  mlir::Value div(mlir::Value x, mlir::Value y) {
    return apply<mlir::arith::DivFOp>(x, y);
  }
  mlir::Value neg(mlir::Value x) { return apply<mlir::arith::NegFOp>(x); }
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value x,
                      mlir::Value y) {
    return mlir::arith::CmpFOp::create(b, loc, predicate, x, y);
  }
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) {
    return mlir::arith::SelectOp::create(b, loc, condition, x, y);
  }
  /// Widened to the type, or rounded to it.
  mlir::Value cast(mlir::Value x) {
    const unsigned own = x.getType().getIntOrFloatBitWidth(),
                   bits = type.getIntOrFloatBitWidth();
    if (own > bits)
      return mlir::arith::TruncFOp::create(b, loc, type, x);
    return own == bits ? x : mlir::arith::ExtFOp::create(b, loc, type, x);
  }
};

/// The value of `function`, given the operands as `Count` scalars.
template <unsigned Count, typename Function>
mlir::Value buildScalar(mlir::ImplicitLocOpBuilder &builder,
                        mlir::Operation *op, mlir::ValueRange operands,
                        Function function) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return function(Scalar(builder, operands[I],
                           mlir::getElementTypeOrSelf(op->getOperand(I)))...)
        .getValue();
  }
  (std::make_index_sequence<Count>());
}

/// Fills an empty region with the op's function and a `tv.yield`, as the body
/// of a `tv.map` on its operands. Narrow floats are computed in f32 and rounded
/// at the end, but a function of one op, which rounds but once, in its own
/// type.
void buildBody(ScalarOpInterface op, mlir::Region &region);

/// The `tv.map` that the op is.
mlir::Value buildMap(mlir::OpBuilder &builder, ScalarOpInterface op);

/// One loop a dimension of the result, that of each operand.
layout::Rule getPointwiseRule(mlir::Operation *op);

/// `transferPartial` of a scalar region, of `op` in messages.
llvm::LogicalResult
transferRegion(mlir::Operation *op, mlir::Block &block,
               llvm::ArrayRef<std::optional<layout::Combiner>> operands,
               llvm::SmallVectorImpl<std::optional<layout::Combiner>> &results,
               std::string &why);
/// The same of an op's function, in real arithmetic: conversions to f32 and
/// back do not count.
llvm::LogicalResult
transferScalars(ScalarOpInterface op,
                llvm::ArrayRef<std::optional<layout::Combiner>> operands,
                llvm::SmallVectorImpl<std::optional<layout::Combiner>> &results,
                std::string &why);

} // namespace tessera::tv

#endif // TESSERA_TENSORVIEW_TENSORVIEWPOINTWISE_H
