//===- ExpandMath.cpp - functions as arithmetic ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call into libm for each element keeps a loop from being vectorized. Here
// the argument is widened to f64, where a polynomial with an error of 1e-10 is
// as good as exact for f32, and no care for cancellation is needed.
// Coefficients interpolate at Chebyshev points, of a variable u in [-1, 1].
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CPU/ExpandMath.h"
#include "Plan/Plan.h"
#include "TensorView/TensorViewPointwise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

namespace {
/// 2^(u/2), |u| <= 1; relative error below 1e-10.
constexpr double kExp2[] = {0x1.ffffffffa7138p-1,  0x1.62e42fef9cc96p-2,
                            0x1.ebfbe0aa03ba8p-5,  0x1.c6b08da709400p-8,
                            0x1.3b29d8bb23000p-11, 0x1.5d87759aa4000p-15,
                            0x1.446c79e000000p-19, 0x1.00c0e3f000000p-23};
/// erf(x)/x, u = 2x^2 - 1, |x| <= 1; below 1e-12.
constexpr double kErfInner[] = {
    0x1.ee51eb23cb7f1p-1,  -0x1.1fd16291d5f7fp-3,  0x1.4543680162d54p-6,
    -0x1.2b902c4dbdaaap-9, 0x1.c82aa2e5ce38ep-13,  -0x1.263816c9d5555p-16,
    0x1.4865240000000p-20, -0x1.44977038e38e3p-24, 0x1.1c43a71c71c72p-28};
/// erf(x), u = (2x - 5)/3, 1 <= x <= 4; below 1e-10.
constexpr double kErfOuter[] = {
    0x1.ffcaa8f4c9beap-1,   0x1.ac44a25bb470ap-9,  -0x1.918057da02ee3p-7,
    0x1.cdba00f121d12p-6,   -0x1.6596577293e1cp-5, 0x1.7c8c3d62d70ffp-5,
    -0x1.052160356f1e4p-5,  0x1.2faf28a7f4943p-7,  0x1.b5acecb0aa86ap-8,
    -0x1.3b4a9b8c9b435p-7,  0x1.2a74c2c8a35e7p-8,  0x1.d07e54a6f286cp-12,
    -0x1.e59e61399435fp-10, 0x1.e203a0caa1af2p-11, 0x1.858b769af286cp-14,
    -0x1.346276caf286cp-12, 0x1.52511206bca1ap-14, 0x1.14dad7af286bcp-15,
    -0x1.111ae435e50d7p-16};
/// tanh(x)/x, u = 8x^2 - 1, |x| <= 1/2; below 1e-11.
constexpr double kTanhInner[] = {0x1.ebae9562e883bp-1,  -0x1.35a03f2abb40bp-5,
                                 0x1.d6fa2b4ec5524p-10, -0x1.6ad1881a71249p-14,
                                 0x1.17dd079e49249p-18, -0x1.b193bd8924924p-23,
                                 0x1.4e7f6a4924924p-27};

/// Builds functions in f64.
struct Expander : tv::Floats {
  Value exp(Value x) {
    // Beyond these, f32 has 0 and infinity. A NaN passes.
    x = select(less(x, number(-104)), number(-104), x);
    x = select(less(number(89), x), number(89), x);
    // e^x = 2^n * 2^r with |r| <= 1/2. Adding 1.5 * 2^52 rounds to an integer
    // and leaves it in the low bits.
    Value t = mul(x, number(1.4426950408889634));
    Value magic = number(0x1.8p52);
    Value rounded = add(t, magic);
    Value r = sub(t, sub(rounded, magic));
    Value power = polynomial(kExp2, add(r, r));
    // Times 2^n: n is added to the exponent.
    Type i64 = b.getI64Type();
    Value n = arith::ShLIOp::create(
        b, loc, arith::BitcastOp::create(b, loc, i64, rounded),
        arith::ConstantIntOp::create(b, loc, i64, 52));
    Value bits = arith::AddIOp::create(
        b, loc, arith::BitcastOp::create(b, loc, i64, power), n);
    return arith::BitcastOp::create(b, loc, type, bits);
  }

  Value erf(Value x) {
    Value size = apply<math::AbsFOp>(x);
    // From 4 on it is 1 in f32.
    Value cut = select(less(number(4), size), number(4), size);
    Value u = mul(sub(add(cut, cut), number(5)), number(1.0 / 3));
    Value outer = apply<math::CopySignOp>(polynomial(kErfOuter, u), x);
    Value v = sub(mul(number(2), mul(x, x)), number(1));
    return select(less(size, number(1)), mul(x, polynomial(kErfInner, v)),
                  outer);
  }

  Value tanh(Value x) {
    Value size = apply<math::AbsFOp>(x);
    Value e = exp(mul(number(-2), size));
    Value ratio = div(sub(number(1), e), add(number(1), e));
    Value outer = apply<math::CopySignOp>(ratio, x);
    Value v = sub(mul(number(8), mul(x, x)), number(1));
    return select(less(size, number(0.5)), mul(x, polynomial(kTanhInner, v)),
                  outer);
  }

  Value less(Value x, Value y) {
    return compare(arith::CmpFPredicate::OLT, x, y);
  }
  Value polynomial(ArrayRef<double> coefficients, Value u) {
    Value sum = number(coefficients.back());
    for (double coefficient : llvm::reverse(coefficients.drop_back()))
      sum = math::FmaOp::create(b, loc, sum, u, number(coefficient));
    return sum;
  }
};
} // namespace

/// bf16 is the upper half of an f32.
static void expandBF16(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  Value x = op->getOperand(0), y;
  Type i16 = b.getI16Type(), i32 = b.getI32Type();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, i32, value);
  };
  if (isa<arith::ExtFOp>(op)) {
    y = arith::ExtUIOp::create(b, loc, i32,
                               arith::BitcastOp::create(b, loc, i16, x));
    y = arith::ShLIOp::create(b, loc, y, constant(16));
  } else {
    // To the nearest, ties to even; a NaN stays one.
    Value isNaN =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
    Value bits = arith::BitcastOp::create(b, loc, i32, x);
    Value odd = arith::AndIOp::create(
        b, loc, arith::ShRUIOp::create(b, loc, bits, constant(16)),
        constant(1));
    Value rounded = arith::AddIOp::create(
        b, loc, arith::AddIOp::create(b, loc, bits, constant(0x7fff)), odd);
    rounded =
        arith::SelectOp::create(b, loc, isNaN, constant(0x7fc00000), rounded);
    y = arith::TruncIOp::create(
        b, loc, i16, arith::ShRUIOp::create(b, loc, rounded, constant(16)));
  }
  op->getResult(0).replaceAllUsesWith(
      arith::BitcastOp::create(b, loc, op->getResult(0).getType(), y));
  op->erase();
}

/// f8E5M2 is the upper half of an f16; of f8E4M3FN the exponent is a bit
/// shorter, and the last number is not a number.
static void expandF8(arith::ExtFOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Type i16 = b.getI16Type(), f32 = b.getF32Type();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, i16, value);
  };
  auto shifted = [&](Value x, int64_t mask, int64_t bits) -> Value {
    return arith::ShLIOp::create(
        b, loc, arith::AndIOp::create(b, loc, x, constant(mask)),
        constant(bits));
  };
  auto widened = [&](Value x) -> Value {
    Value half = arith::BitcastOp::create(b, loc, b.getF16Type(), x);
    return arith::ExtFOp::create(b, loc, f32, half);
  };
  auto real = [&](double value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  };
  Value bits = arith::ExtUIOp::create(
      b, loc, i16, arith::BitcastOp::create(b, loc, b.getI8Type(), op.getIn()));
  Value y;
  if (isa<Float8E5M2Type>(op.getIn().getType())) {
    y = widened(shifted(bits, 0xff, 8));
  } else {
    Value isNaN = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::eq,
        arith::AndIOp::create(b, loc, bits, constant(0x7f)), constant(0x7f));
    y = widened(arith::OrIOp::create(b, loc, shifted(bits, 0x80, 8),
                                     shifted(bits, 0x7f, 7)));
    y = arith::SelectOp::create(b, loc, isNaN,
                                real(std::numeric_limits<double>::quiet_NaN()),
                                arith::MulFOp::create(b, loc, y, real(256)));
  }
  op.replaceAllUsesWith(y);
  op.erase();
}

/// Philox 4x32, as described at tv.random.
static void expandRandom(plan::RandomOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto constant = [&](uint64_t value) -> Value {
    return arith::ConstantOp::create(b, loc,
                                     b.getI64IntegerAttr(int64_t(value)));
  };
  auto lower = [&](Value x) -> Value {
    return arith::AndIOp::create(b, loc, x, constant(0xffffffff));
  };
  auto upper = [&](Value x) -> Value {
    return arith::ShRUIOp::create(b, loc, x, constant(32));
  };
  auto exclusiveOr = [&](Value x, Value y) -> Value {
    return arith::XOrIOp::create(b, loc, x, y);
  };
  Value number =
      arith::IndexCastOp::create(b, loc, b.getI64Type(), op.getNumber());
  const bool halves = op.getBits() == 16;
  Value block =
      arith::ShRUIOp::create(b, loc, number, constant(halves ? 3 : 2));
  Value counter[4] = {lower(block), upper(block), lower(op.getStream()),
                      upper(op.getStream())};
  Value key[2] = {lower(op.getSeed()), upper(op.getSeed())};
  auto add = [&](Value x, uint32_t y) {
    return lower(arith::AddIOp::create(b, loc, x, constant(y)));
  };
  for (int round = 0; round < (halves ? 7 : 10); ++round) {
    Value first =
        arith::MulIOp::create(b, loc, counter[0], constant(0xD2511F53));
    Value second =
        arith::MulIOp::create(b, loc, counter[2], constant(0xCD9E8D57));
    Value next[4] = {
        exclusiveOr(exclusiveOr(upper(second), counter[1]), key[0]),
        lower(second),
        exclusiveOr(exclusiveOr(upper(first), counter[3]), key[1]),
        lower(first)};
    std::copy(next, next + 4, counter);
    key[0] = add(key[0], 0x9E3779B9);
    key[1] = add(key[1], 0xBB67AE85);
  }
  Value word = counter[3];
  auto bits = [&](Value x, uint64_t mask) -> Value {
    return arith::AndIOp::create(b, loc, x, constant(mask));
  };
  Value which =
      halves ? bits(arith::ShRUIOp::create(b, loc, number, constant(1)), 3)
             : bits(number, 3);
  for (int i = 2; i >= 0; --i) {
    Value here = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, which,
                                       constant(i));
    word = arith::SelectOp::create(b, loc, here, counter[i], word);
  }
  if (halves) {
    word = arith::ShRUIOp::create(
        b, loc, word,
        arith::ShLIOp::create(b, loc, bits(number, 1), constant(4)));
    word = bits(word, 0xffff);
  } else {
    word = arith::ShRUIOp::create(b, loc, word, constant(8));
  }
  Type f32 = b.getF32Type();
  Value scale = arith::ConstantOp::create(
      b, loc, b.getF32FloatAttr(halves ? 0x1p-16f : 0x1p-24f));
  op.replaceAllUsesWith(
      arith::MulFOp::create(b, loc, arith::SIToFPOp::create(b, loc, f32, word),
                            scale)
          .getResult());
  op.erase();
}

void tessera::expandMath(ModuleOp module) {
  module.walk(expandRandom);
  module.walk([](arith::ExtFOp op) {
    if (isa<Float8E4M3FNType, Float8E5M2Type>(op.getIn().getType()))
      expandF8(op);
  });
  module.walk([](Operation *op) {
    if ((isa<arith::ExtFOp>(op) && op->getOperand(0).getType().isBF16() &&
         op->getResult(0).getType().isF32()) ||
        (isa<arith::TruncFOp>(op) && op->getResult(0).getType().isBF16() &&
         op->getOperand(0).getType().isF32()))
      expandBF16(op);
  });
  module.walk([](Operation *op) {
    if (!isa<math::ExpOp, math::ErfOp, math::TanhOp>(op) ||
        !op->getResult(0).getType().isF32())
      return;
    OpBuilder b(op);
    Expander expander{{b, op->getLoc(), b.getF64Type()}};
    Value x = expander.cast(op->getOperand(0));
    Value y = TypeSwitch<Operation *, Value>(op)
                  .Case([&](math::ExpOp) { return expander.exp(x); })
                  .Case([&](math::ErfOp) { return expander.erf(x); })
                  .Case([&](math::TanhOp) { return expander.tanh(x); });
    op->getResult(0).replaceAllUsesWith(
        tv::Floats{b, op->getLoc(), b.getF32Type()}.cast(y));
    op->erase();
  });
}
