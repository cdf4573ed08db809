//===- ScalarProgram.cpp - scalar regions --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op has a function on slots, found by op class. Floats are computed in
// double; a conversion to a narrower float rounds only where the program's
// types are interpreted. Integers wrap.
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Ops/ScalarProgram.h"
#include "TensorView/TensorView.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

using Step = ScalarProgram::Step;
using Apply = decltype(Step::apply);
using Table = llvm::StringMap<Apply>;

// A function of doubles, given as a lambda without captures.
template <typename Op, double (*F)(double)> static void unary(Table &table) {
  table[Op::getOperationName()] = [](ScalarProgram &p, const Step &s) {
    p.slots[s.out] = real(F(p.slots[s.in[0]].real));
  };
}
template <typename Op, double (*F)(double, double)>
static void binary(Table &table) {
  table[Op::getOperationName()] = [](ScalarProgram &p, const Step &s) {
    p.slots[s.out] = real(F(p.slots[s.in[0]].real, p.slots[s.in[1]].real));
  };
}
/// A function of integers and their type; the result wraps.
template <typename Op, int64_t (*F)(int64_t, int64_t, Type)>
static void integer(Table &table) {
  table[Op::getOperationName()] = [](ScalarProgram &p, const Step &s) {
    p.slots[s.out] = whole(
        wrapTo(F(p.slots[s.in[0]].whole, p.slots[s.in[1]].whole, s.inType),
               s.outType));
  };
}

#define UNARY(OP, EXPR) unary<OP, [](double x) -> double { return EXPR; }>(t)
#define BINARY(OP, EXPR)                                                       \
  binary<OP, [](double x, double y) -> double { return EXPR; }>(t)
#define INTEGER(OP, EXPR)                                                      \
  integer<OP, [](int64_t x, int64_t y, Type type) -> int64_t {                 \
    (void)type;                                                                \
    return EXPR;                                                               \
  }>(t)
#define U(X) unsignedOf(X, type)

static void addFloats(Table &t) {
  using namespace arith;
  UNARY(NegFOp, -x);
  BINARY(AddFOp, x + y);
  BINARY(SubFOp, x - y);
  BINARY(MulFOp, x * y);
  BINARY(DivFOp, x / y);
  BINARY(RemFOp, std::fmod(x, y));
  BINARY(MaximumFOp, std::isnan(x) || std::isnan(y) ? x + y : std::max(x, y));
  BINARY(MinimumFOp, std::isnan(x) || std::isnan(y) ? x + y : std::min(x, y));
  BINARY(MaxNumFOp, std::fmax(x, y));
  BINARY(MinNumFOp, std::fmin(x, y));
  UNARY(math::AbsFOp, std::fabs(x));
  UNARY(math::ExpOp, std::exp(x));
  UNARY(math::Exp2Op, std::exp2(x));
  UNARY(math::ExpM1Op, std::expm1(x));
  UNARY(math::LogOp, std::log(x));
  UNARY(math::Log2Op, std::log2(x));
  UNARY(math::Log10Op, std::log10(x));
  UNARY(math::Log1pOp, std::log1p(x));
  UNARY(math::SqrtOp, std::sqrt(x));
  UNARY(math::RsqrtOp, 1 / std::sqrt(x));
  UNARY(math::CbrtOp, std::cbrt(x));
  UNARY(math::TanhOp, std::tanh(x));
  UNARY(math::SinhOp, std::sinh(x));
  UNARY(math::CoshOp, std::cosh(x));
  UNARY(math::SinOp, std::sin(x));
  UNARY(math::CosOp, std::cos(x));
  UNARY(math::TanOp, std::tan(x));
  UNARY(math::AsinOp, std::asin(x));
  UNARY(math::AcosOp, std::acos(x));
  UNARY(math::AtanOp, std::atan(x));
  UNARY(math::ErfOp, std::erf(x));
  UNARY(math::ErfcOp, std::erfc(x));
  UNARY(math::FloorOp, std::floor(x));
  UNARY(math::CeilOp, std::ceil(x));
  UNARY(math::RoundOp, std::round(x));
  UNARY(math::RoundEvenOp, std::nearbyint(x));
  UNARY(math::TruncOp, std::trunc(x));
  BINARY(math::PowFOp, std::pow(x, y));
  BINARY(math::Atan2Op, std::atan2(x, y));
  BINARY(math::CopySignOp, std::copysign(x, y));
  t[math::FmaOp::getOperationName()] = [](ScalarProgram &p, const Step &s) {
    p.slots[s.out] = real(std::fma(p.slots[s.in[0]].real, p.slots[s.in[1]].real,
                                   p.slots[s.in[2]].real));
  };
  t[math::FPowIOp::getOperationName()] = [](ScalarProgram &p, const Step &s) {
    p.slots[s.out] = real(std::pow(
        p.slots[s.in[0]].real, static_cast<double>(p.slots[s.in[1]].whole)));
  };
}

/// i1 is kept as 0 or 1, but is -1 where it has a sign.
static int64_t signedOf(int64_t value, Type type) {
  return type.isInteger(1) ? -value : value;
}

// Where arith leaves a result undefined it is what tv.map states.
static int64_t shift(int64_t value, uint64_t by, Type type, int kind) {
  if (by >= (type.isIndex() ? 64 : type.getIntOrFloatBitWidth()))
    return kind == 1 && signedOf(value, type) < 0 ? -1 : 0;
  return kind == 0   ? static_cast<int64_t>(static_cast<uint64_t>(value) << by)
         : kind == 1 ? signedOf(value, type) >> by
                     : static_cast<int64_t>(unsignedOf(value, type) >> by);
}
/// Rounds towards 0, or up or down.
static int64_t divide(int64_t x, int64_t y, Type type, int direction) {
  x = signedOf(x, type);
  y = signedOf(y, type);
  if (y == 0)
    return 0;
  if (y == -1)
    return static_cast<int64_t>(-static_cast<uint64_t>(x));
  bool isNegative = (x < 0) != (y < 0);
  return x / y + (x % y == 0                     ? 0
                  : direction > 0 && !isNegative ? 1
                  : direction < 0 && isNegative  ? -1
                                                 : 0);
}
static int64_t remainder(int64_t x, int64_t y, Type type) {
  x = signedOf(x, type);
  y = signedOf(y, type);
  return y == 0 ? x : y == -1 ? 0 : x % y;
}

static void addIntegers(Table &t) {
  using namespace arith;
  INTEGER(AddIOp, int64_t(uint64_t(x) + uint64_t(y)));
  INTEGER(SubIOp, int64_t(uint64_t(x) - uint64_t(y)));
  INTEGER(MulIOp, int64_t(uint64_t(x) * uint64_t(y)));
  INTEGER(DivSIOp, divide(x, y, type, 0));
  INTEGER(RemSIOp, remainder(x, y, type));
  INTEGER(DivUIOp, y ? int64_t(U(x) / U(y)) : 0);
  INTEGER(RemUIOp, y ? int64_t(U(x) % U(y)) : x);
  INTEGER(FloorDivSIOp, divide(x, y, type, -1));
  INTEGER(CeilDivSIOp, divide(x, y, type, 1));
  INTEGER(CeilDivUIOp, y ? int64_t(U(x) / U(y) + (U(x) % U(y) != 0)) : 0);
  INTEGER(MaxSIOp, std::max(signedOf(x, type), signedOf(y, type)));
  INTEGER(MinSIOp, std::min(signedOf(x, type), signedOf(y, type)));
  INTEGER(MaxUIOp, int64_t(std::max(U(x), U(y))));
  INTEGER(MinUIOp, int64_t(std::min(U(x), U(y))));
  INTEGER(AndIOp, x & y);
  INTEGER(OrIOp, x | y);
  INTEGER(XOrIOp, x ^ y);
  INTEGER(ShLIOp, shift(x, U(y), type, 0));
  INTEGER(ShRSIOp, shift(x, U(y), type, 1));
  INTEGER(ShRUIOp, shift(x, U(y), type, 2));
  t[math::AbsIOp::getOperationName()] = [](ScalarProgram &p, const Step &s) {
    int64_t x = p.slots[s.in[0]].whole;
    p.slots[s.out] =
        whole(wrapTo(x < 0 ? int64_t(-uint64_t(x)) : x, s.outType));
  };
}

static bool compareIntegers(arith::CmpIPredicate predicate, int64_t x,
                            int64_t y, Type type) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return x == y;
  case P::ne:
    return x != y;
  case P::slt:
    return x < y;
  case P::sle:
    return x <= y;
  case P::sgt:
    return x > y;
  case P::sge:
    return x >= y;
  case P::ult:
    return U(x) < U(y);
  case P::ule:
    return U(x) <= U(y);
  case P::ugt:
    return U(x) > U(y);
  case P::uge:
    return U(x) >= U(y);
  }
  return false;
}

static bool compareFloats(arith::CmpFPredicate predicate, double x, double y) {
  using P = arith::CmpFPredicate;
  bool unordered = std::isnan(x) || std::isnan(y);
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::AlwaysTrue:
    return true;
  case P::ORD:
    return !unordered;
  case P::UNO:
    return unordered;
  case P::OEQ:
    return x == y;
  case P::ONE:
    return !unordered && x != y;
  case P::OLT:
    return x < y;
  case P::OLE:
    return x <= y;
  case P::OGT:
    return x > y;
  case P::OGE:
    return x >= y;
  case P::UEQ:
    return unordered || x == y;
  case P::UNE:
    return unordered || x != y;
  case P::ULT:
    return unordered || x < y;
  case P::ULE:
    return unordered || x <= y;
  case P::UGT:
    return unordered || x > y;
  case P::UGE:
    return unordered || x >= y;
  }
  return false;
}

/// Towards 0, and into the range of the type; a NaN is 0.
static int64_t truncated(double value, Type type, bool isSigned) {
  int width = type.getIntOrFloatBitWidth();
  llvm::APSInt number(width, /*isUnsigned=*/!isSigned);
  bool isExact;
  (void)llvm::APFloat(value).convertToInteger(
      number, llvm::APFloat::rmTowardZero, &isExact);
  return wrapTo(number.isUnsigned() ? int64_t(number.getZExtValue())
                                    : number.getSExtValue(),
                type);
}

static void addOthers(Table &t) {
  using namespace arith;
  t[CmpIOp::getOperationName()] = [](ScalarProgram &p, const Step &s) {
    p.slots[s.out] = whole(compareIntegers(CmpIPredicate(s.predicate),
                                           p.slots[s.in[0]].whole,
                                           p.slots[s.in[1]].whole, s.inType));
  };
  t[CmpFOp::getOperationName()] = [](ScalarProgram &p, const Step &s) {
    p.slots[s.out] =
        whole(compareFloats(CmpFPredicate(s.predicate), p.slots[s.in[0]].real,
                            p.slots[s.in[1]].real));
  };
  t[SelectOp::getOperationName()] = [](ScalarProgram &p, const Step &s) {
    p.slots[s.out] = p.slots[s.in[p.slots[s.in[0]].whole ? 1 : 2]];
  };
  Apply floats = [](ScalarProgram &p, const Step &s) {
    double value = p.slots[s.in[0]].real;
    p.slots[s.out] =
        real(p.run->roundScalars ? roundTo(value, s.outType) : value);
  };
  t[ExtFOp::getOperationName()] = t[TruncFOp::getOperationName()] = floats;
  Apply integers = [](ScalarProgram &p, const Step &s) {
    p.slots[s.out] =
        whole(wrapTo(signedOf(p.slots[s.in[0]].whole, s.inType), s.outType));
  };
  t[ExtSIOp::getOperationName()] = t[TruncIOp::getOperationName()] =
      t[IndexCastOp::getOperationName()] = integers;
  Apply unsigneds = [](ScalarProgram &p, const Step &s) {
    p.slots[s.out] = whole(wrapTo(
        int64_t(unsignedOf(p.slots[s.in[0]].whole, s.inType)), s.outType));
  };
  t[ExtUIOp::getOperationName()] = t[IndexCastUIOp::getOperationName()] =
      unsigneds;
  // Conversions from integers are exact here if they fit a double.
  t[SIToFPOp::getOperationName()] = [](ScalarProgram &p, const Step &s) {
    p.slots[s.out] = real(double(signedOf(p.slots[s.in[0]].whole, s.inType)));
  };
  t[UIToFPOp::getOperationName()] = [](ScalarProgram &p, const Step &s) {
    p.slots[s.out] = real(double(unsignedOf(p.slots[s.in[0]].whole, s.inType)));
  };
  t[FPToSIOp::getOperationName()] = [](ScalarProgram &p, const Step &s) {
    p.slots[s.out] = whole(truncated(p.slots[s.in[0]].real, s.outType, true));
  };
  t[FPToUIOp::getOperationName()] = [](ScalarProgram &p, const Step &s) {
    p.slots[s.out] = whole(truncated(p.slots[s.in[0]].real, s.outType, false));
  };
  t[BitcastOp::getOperationName()] = [](ScalarProgram &p, const Step &s) {
    p.slots[s.out] = fromBits(bitsOf(p.slots[s.in[0]], s.inType), s.outType);
  };
  t[tv::LoadOp::getOperationName()] = [](ScalarProgram &p, const Step &s) {
    Index index;
    for (int slot : s.in)
      index.push_back(p.slots[slot].whole);
    p.slots[s.out] = Scalar{};
    for (auto [i, extent] : llvm::zip_equal(index, s.tensor.place->shape))
      if (i < 0 || i >= extent)
        return;
    if (std::optional<int64_t> at = s.tensor.place->find(index))
      p.slots[s.out] = s.tensor.data->data[*at];
    else
      (void)p.run->fail(
          "tv.load of element " + indexText(index) + " of a tensor of shape " +
          indexText(s.tensor.place->shape) + ", which is not on this device");
  };
  t[tv::AccumulateOp::getOperationName()] = [](ScalarProgram &p,
                                               const Step &s) {
    Index index;
    for (int slot : ArrayRef(s.in).drop_back())
      index.push_back(p.slots[slot].whole);
    p.accumulate(s.number, index, p.slots[s.in.back()].real);
  };
}

static const Table &scalarOps() {
  static const Table table = [] {
    Table made;
    addFloats(made);
    addIntegers(made);
    addOthers(made);
    return made;
  }();
  return table;
}

std::optional<Step> ScalarProgram::stepOf(Operation &op) {
  Apply apply = scalarOps().lookup(op.getName().getStringRef());
  if (!apply)
    return std::nullopt;
  Step step{apply, {}, 0, {}, {}, 0, {}, 0};
  if (op.getNumOperands())
    step.inType = op.getOperands().back().getType();
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    step.predicate = int64_t(compare.getPredicate());
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    step.predicate = int64_t(compare.getPredicate());
  if (auto accumulate = dyn_cast<tv::AccumulateOp>(op))
    step.number = accumulate.getNumber();
  else
    step.outType = op.getResult(0).getType();
  return step;
}

LogicalResult ScalarProgram::compile(Region &region, OpRun &opRun) {
  run = &opRun;
  llvm::DenseMap<Value, int> slotOf;
  auto define = [&](Value value) {
    slots.push_back(Scalar{});
    return slotOf[value] = slots.size() - 1;
  };
  for (BlockArgument argument : region.getArguments())
    define(argument);
  auto use = [&](Operation &op, Value value, SmallVectorImpl<int> &in) {
    auto found = slotOf.find(value);
    if (found == slotOf.end())
      return opRun.fail("its region's " + op.getName().getStringRef() +
                        " uses a value from outside, which only tv.load may");
    in.push_back(found->second);
    return success();
  };
  for (Operation &op : region.front()) {
    if (auto yield = dyn_cast<tv::YieldOp>(op)) {
      for (Value value : yield.getValues())
        if (failed(use(op, value, yields)))
          return failure();
      yielded.resize(yields.size());
      return success();
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (!isa<FloatAttr, IntegerAttr>(constant.getValue()))
        return opRun.fail("its region has a constant that is no scalar");
      slots[define(constant)] = scalarOf(constant.getValue());
      continue;
    }
    std::optional<Step> step = stepOf(op);
    if (!step)
      return opRun.fail("the interpreter has no rule for '" +
                        op.getName().getStringRef() + "' in a scalar region");
    auto load = dyn_cast<tv::LoadOp>(op);
    for (Value operand :
         load ? ValueRange(load.getIndices()) : ValueRange(op.getOperands()))
      if (failed(use(op, operand, step->in)))
        return failure();
    if (load)
      step->tensor = opRun.captured(load.getTensor());
    if (op.getNumResults())
      step->out = define(op.getResult(0));
    steps.push_back(std::move(*step));
  }
  return opRun.fail("its region does not end in tv.yield");
}

ArrayRef<Scalar> ScalarProgram::operator()(ArrayRef<Scalar> arguments) {
  std::copy(arguments.begin(), arguments.end(), slots.begin());
  for (const Step &step : steps)
    step.apply(*this, step);
  for (auto [value, slot] : llvm::zip_equal(yielded, yields))
    value = slots[slot];
  return yielded;
}
