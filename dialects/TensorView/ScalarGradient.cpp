//===- ScalarGradient.cpp - gradients of scalar regions -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op class has a function that gives its operands' gradients from its own.
// A gradient is a value and the condition under which it counts: `select` adds
// to the condition, and the value is made 0 by it where it leaves the region or
// meets another. So the infinite slope of a branch that was not taken never
// reaches a product.
//
//===----------------------------------------------------------------------===//

#include "TensorView/ScalarGradient.h"
#include "TensorView/TensorViewPointwise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SmallBitVector.h"

#include <numbers>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace {
/// A gradient where `guard` holds, and 0 elsewhere; always without a guard.
struct Adjoint {
  Value guard, value;
};

/// What a rule is given: `a`, the op's own gradient, and its operands and
/// result, wide. It says the gradient of each operand; null is 0.
struct Reverse : Floats {
  Operation *op;
  Value a, result;
  SmallVector<Value> operands;

  Value x() const { return operands[0]; }
  Value y() const { return operands[1]; }
  /// `value` by the sign of x, 0 where x is 0.
  Value bySign(Value value, Value x) {
    Value zero = number(0);
    Value isPositive = compare(arith::CmpFPredicate::OGT, x, zero);
    Value isNegative = compare(arith::CmpFPredicate::OLT, x, zero);
    return select(isPositive, value, select(isNegative, neg(value), zero));
  }
};

using Gradients = SmallVector<Value, 3>;
using ReverseRule = Gradients (*)(Reverse &r);
} // namespace

template <typename Op>
static void add(llvm::StringMap<ReverseRule> &table, ReverseRule rule) {
  table[Op::getOperationName()] = rule;
}

/// To the larger (or smaller) operand, and half to each of two equal ones.
template <arith::CmpFPredicate Predicate> static Gradients choose(Reverse &r) {
  Value isEqual = r.compare(arith::CmpFPredicate::OEQ, r.x(), r.y());
  Value shared = r.select(isEqual, r.mul(r.a, 0.5), r.number(0));
  Value isX = r.compare(Predicate, r.x(), r.y());
  Value isY = r.compare(Predicate, r.y(), r.x());
  return {r.select(isX, r.a, shared), r.select(isY, r.a, shared)};
}

static void addArithmetic(llvm::StringMap<ReverseRule> &t) {
  using namespace arith;
  add<AddFOp>(t, [](Reverse &r) -> Gradients { return {r.a, r.a}; });
  add<SubFOp>(t, [](Reverse &r) -> Gradients { return {r.a, r.neg(r.a)}; });
  add<MulFOp>(t, [](Reverse &r) -> Gradients {
    return {r.mul(r.a, r.y()), r.mul(r.a, r.x())};
  });
  add<DivFOp>(t, [](Reverse &r) -> Gradients {
    Value dx = r.div(r.a, r.y());
    return {dx, r.neg(r.mul(dx, r.result))};
  });
  add<RemFOp>(t, [](Reverse &r) -> Gradients {
    Value times = r.apply<math::TruncOp>(r.div(r.x(), r.y()));
    return {r.a, r.neg(r.mul(r.a, times))};
  });
  add<math::FmaOp>(t, [](Reverse &r) -> Gradients {
    return {r.mul(r.a, r.y()), r.mul(r.a, r.x()), r.a};
  });
  add<NegFOp>(t, [](Reverse &r) -> Gradients { return {r.neg(r.a)}; });
  add<ExtFOp>(t, [](Reverse &r) -> Gradients { return {r.a}; });
  add<TruncFOp>(t, [](Reverse &r) -> Gradients { return {r.a}; });
  add<MaximumFOp>(t, choose<CmpFPredicate::OGT>);
  add<MaxNumFOp>(t, choose<CmpFPredicate::OGT>);
  add<MinimumFOp>(t, choose<CmpFPredicate::OLT>);
  add<MinNumFOp>(t, choose<CmpFPredicate::OLT>);
  add<math::AbsFOp>(
      t, [](Reverse &r) -> Gradients { return {r.bySign(r.a, r.x())}; });
  add<math::CopySignOp>(t, [](Reverse &r) -> Gradients {
    Value sign = math::CopySignOp::create(r.b, r.loc, r.number(1), r.y());
    return {r.bySign(r.mul(r.a, sign), r.x()), Value()};
  });
  // Steps.
  add<math::FloorOp>(t, [](Reverse &) -> Gradients { return {Value()}; });
  add<math::CeilOp>(t, [](Reverse &) -> Gradients { return {Value()}; });
  add<math::RoundOp>(t, [](Reverse &) -> Gradients { return {Value()}; });
  add<math::RoundEvenOp>(t, [](Reverse &) -> Gradients { return {Value()}; });
  add<math::TruncOp>(t, [](Reverse &) -> Gradients { return {Value()}; });
}

static void addExponentials(llvm::StringMap<ReverseRule> &t) {
  using namespace std::numbers;
  add<math::ExpOp>(
      t, [](Reverse &r) -> Gradients { return {r.mul(r.a, r.result)}; });
  add<math::Exp2Op>(t, [](Reverse &r) -> Gradients {
    return {r.mul(r.mul(r.a, r.result), ln2)};
  });
  add<math::ExpM1Op>(t, [](Reverse &r) -> Gradients {
    return {r.mul(r.a, r.add(r.result, r.number(1)))};
  });
  add<math::LogOp>(t,
                   [](Reverse &r) -> Gradients { return {r.div(r.a, r.x())}; });
  add<math::Log2Op>(t, [](Reverse &r) -> Gradients {
    return {r.mul(r.div(r.a, r.x()), log2e)};
  });
  add<math::Log10Op>(t, [](Reverse &r) -> Gradients {
    return {r.mul(r.div(r.a, r.x()), log10e)};
  });
  add<math::Log1pOp>(t, [](Reverse &r) -> Gradients {
    return {r.div(r.a, r.add(r.x(), r.number(1)))};
  });
  add<math::SqrtOp>(t, [](Reverse &r) -> Gradients {
    return {r.div(r.mul(r.a, 0.5), r.result)};
  });
  add<math::RsqrtOp>(t, [](Reverse &r) -> Gradients {
    return {r.div(r.mul(r.mul(r.a, -0.5), r.result), r.x())};
  });
  add<math::CbrtOp>(t, [](Reverse &r) -> Gradients {
    return {r.div(r.a, r.mul(r.mul(r.result, r.result), 3))};
  });
  // 0 where y x^(y-1) is 0 times infinity, and by y where x is 0.
  add<math::PowFOp>(t, [](Reverse &r) -> Gradients {
    Value zero = r.number(0);
    Value below =
        math::PowFOp::create(r.b, r.loc, r.x(), r.sub(r.y(), r.number(1)));
    Value isFlat = r.compare(arith::CmpFPredicate::OEQ, r.y(), zero);
    Value isZero = r.compare(arith::CmpFPredicate::OEQ, r.x(), zero);
    Value log = r.apply<math::LogOp>(r.x());
    return {r.select(isFlat, zero, r.mul(r.mul(r.a, r.y()), below)),
            r.select(isZero, zero, r.mul(r.mul(r.a, r.result), log))};
  });
  add<math::FPowIOp>(t, [](Reverse &r) -> Gradients {
    Value power = r.operands[1];
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(
          r.b, r.loc, r.b.getIntegerAttr(power.getType(), value));
    };
    Value less = arith::SubIOp::create(r.b, r.loc, power, constant(1));
    Value below = math::FPowIOp::create(r.b, r.loc, r.x(), less);
    Value times = arith::SIToFPOp::create(r.b, r.loc, r.type, power);
    Value isFlat = arith::CmpIOp::create(r.b, r.loc, arith::CmpIPredicate::eq,
                                         power, constant(0));
    return {r.select(isFlat, r.number(0), r.mul(r.mul(r.a, times), below)),
            Value()};
  });
}

static void addTrigonometry(llvm::StringMap<ReverseRule> &t) {
  add<math::TanhOp>(t, [](Reverse &r) -> Gradients {
    return {r.mul(r.a, r.sub(r.number(1), r.mul(r.result, r.result)))};
  });
  add<math::SinhOp>(t, [](Reverse &r) -> Gradients {
    return {r.mul(r.a, r.apply<math::CoshOp>(r.x()))};
  });
  add<math::CoshOp>(t, [](Reverse &r) -> Gradients {
    return {r.mul(r.a, r.apply<math::SinhOp>(r.x()))};
  });
  add<math::SinOp>(t, [](Reverse &r) -> Gradients {
    return {r.mul(r.a, r.apply<math::CosOp>(r.x()))};
  });
  add<math::CosOp>(t, [](Reverse &r) -> Gradients {
    return {r.neg(r.mul(r.a, r.apply<math::SinOp>(r.x())))};
  });
  add<math::TanOp>(t, [](Reverse &r) -> Gradients {
    return {r.mul(r.a, r.add(r.number(1), r.mul(r.result, r.result)))};
  });
  add<math::AsinOp>(t, [](Reverse &r) -> Gradients {
    Value square = r.sub(r.number(1), r.mul(r.x(), r.x()));
    return {r.div(r.a, r.apply<math::SqrtOp>(square))};
  });
  add<math::AcosOp>(t, [](Reverse &r) -> Gradients {
    Value square = r.sub(r.number(1), r.mul(r.x(), r.x()));
    return {r.neg(r.div(r.a, r.apply<math::SqrtOp>(square)))};
  });
  add<math::AtanOp>(t, [](Reverse &r) -> Gradients {
    return {r.div(r.a, r.add(r.number(1), r.mul(r.x(), r.x())))};
  });
  add<math::Atan2Op>(t, [](Reverse &r) -> Gradients {
    Value square = r.add(r.mul(r.x(), r.x()), r.mul(r.y(), r.y()));
    Value part = r.div(r.a, square);
    return {r.mul(part, r.y()), r.neg(r.mul(part, r.x()))};
  });
  add<math::ErfOp>(t, [](Reverse &r) -> Gradients {
    Value density = r.apply<math::ExpOp>(r.neg(r.mul(r.x(), r.x())));
    return {r.mul(r.mul(r.a, density), 2 * std::numbers::inv_sqrtpi)};
  });
  add<math::ErfcOp>(t, [](Reverse &r) -> Gradients {
    Value density = r.apply<math::ExpOp>(r.neg(r.mul(r.x(), r.x())));
    return {r.mul(r.mul(r.a, density), -2 * std::numbers::inv_sqrtpi)};
  });
}

static const llvm::StringMap<ReverseRule> &reverseRules() {
  static const llvm::StringMap<ReverseRule> table = [] {
    llvm::StringMap<ReverseRule> made;
    addArithmetic(made);
    addExponentials(made);
    addTrigonometry(made);
    return made;
  }();
  return table;
}

//===----------------------------------------------------------------------===//
// Reverse mode
//===----------------------------------------------------------------------===//

namespace {
class Differentiator {
public:
  Differentiator(OpBuilder &builder, const IRMapping &primals, Type wide,
                 function_ref<bool(Value)> isActive,
                 function_ref<void(LoadOp, Value)> accumulate)
      : builder(builder), primals(primals), wide(wide), isActive(isActive),
        accumulate(accumulate) {}

  FailureOr<SmallVector<Value>> run(Block &block, ValueRange yielded);

private:
  LogicalResult reverse(Operation &op);
  /// `value` counts where `guard` holds.
  void contribute(Value to, Value guard, Value value) {
    if (value && active.contains(to))
      adjoints[to].push_back({guard, value});
  }
  /// The sum of all contributions; a value of null if there are none.
  Adjoint sum(Value of, Location loc);
  Value masked(Adjoint adjoint, Location loc) {
    if (!adjoint.guard)
      return adjoint.value;
    Floats s = at(loc);
    return s.select(adjoint.guard, adjoint.value, s.number(0));
  }
  Floats at(Location loc) { return {builder, loc, wide}; }

  OpBuilder &builder;
  const IRMapping &primals;
  Type wide;
  function_ref<bool(Value)> isActive;
  function_ref<void(LoadOp, Value)> accumulate;
  /// What depends on a float that has a gradient.
  llvm::DenseSet<Value> active;
  llvm::DenseMap<Value, SmallVector<Adjoint, 2>> adjoints;
};
} // namespace

static LogicalResult noGradient(Operation &op) {
  return op.emitOpError() << "has no gradient, and one is asked for";
}

Adjoint Differentiator::sum(Value of, Location loc) {
  auto found = adjoints.find(of);
  if (found == adjoints.end())
    return {};
  Floats s = at(loc);
  Adjoint total;
  for (Adjoint next : found->second) {
    if (!total.value)
      total = next;
    else if (total.guard == next.guard)
      total.value = s.add(total.value, next.value);
    else
      total = {Value(), s.add(masked(total, loc), masked(next, loc))};
  }
  return total;
}

LogicalResult Differentiator::reverse(Operation &op) {
  Location loc = op.getLoc();
  Adjoint own = sum(op.getResult(0), loc);
  if (!own.value)
    return success();
  if (auto load = dyn_cast<LoadOp>(op)) {
    accumulate(load, masked(own, loc));
    return success();
  }
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    OpBuilder &b = builder;
    auto both = [&](Value condition) -> Value {
      return own.guard ? arith::AndIOp::create(b, loc, own.guard, condition)
                       : condition;
    };
    Value condition = primals.lookup(select.getCondition());
    if (active.contains(select.getTrueValue()))
      contribute(select.getTrueValue(), both(condition), own.value);
    if (active.contains(select.getFalseValue())) {
      Value one = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
      Value other = arith::XOrIOp::create(b, loc, condition, one);
      contribute(select.getFalseValue(), both(other), own.value);
    }
    return success();
  }
  ReverseRule rule = reverseRules().lookup(op.getName().getStringRef());
  if (!rule)
    return noGradient(op);
  Reverse r{at(loc), &op, own.value, {}, {}};
  auto primal = [&](Value value) {
    Value known = primals.lookup(value);
    return isa<FloatType>(known.getType()) ? r.cast(known) : known;
  };
  for (Value operand : op.getOperands())
    r.operands.push_back(primal(operand));
  r.result = primal(op.getResult(0));
  for (auto [operand, gradient] : llvm::zip_equal(op.getOperands(), rule(r)))
    contribute(operand, own.guard, gradient);
  return success();
}

FailureOr<SmallVector<Value>> Differentiator::run(Block &block,
                                                  ValueRange yielded) {
  auto isFloat = [](Value value) { return isa<FloatType>(value.getType()); };
  for (BlockArgument argument : block.getArguments())
    if (isFloat(argument) && isActive(argument))
      active.insert(argument);
  for (Operation &op : block.without_terminator()) {
    bool depends = isa<LoadOp>(op)
                       ? isActive(op.getResult(0))
                       : llvm::any_of(op.getOperands(), [&](Value value) {
                           return active.contains(value);
                         });
    // It would end here, as at every integer, but not for having no slope.
    if (depends && isa<arith::BitcastOp>(op))
      return noGradient(op);
    for (Value result : op.getResults())
      if (depends && isFloat(result))
        active.insert(result);
  }
  for (auto [value, adjoint] :
       llvm::zip_equal(block.getTerminator()->getOperands(), yielded))
    contribute(value, Value(), adjoint);
  for (Operation &op : llvm::reverse(block.without_terminator()))
    if (failed(reverse(op)))
      return failure();
  SmallVector<Value> gradients;
  for (BlockArgument argument : block.getArguments()) {
    Adjoint total = sum(argument, argument.getLoc());
    gradients.push_back(total.value ? masked(total, argument.getLoc())
                                    : Value());
  }
  return gradients;
}

FailureOr<SmallVector<Value>>
tv::differentiateScalars(OpBuilder &builder, Block &block,
                         const IRMapping &primals, ValueRange yielded,
                         Type wide, function_ref<bool(Value)> isActive,
                         function_ref<void(LoadOp, Value)> accumulate) {
  return Differentiator(builder, primals, wide, isActive, accumulate)
      .run(block, yielded);
}

//===----------------------------------------------------------------------===//
// score_grad
//===----------------------------------------------------------------------===//

LogicalResult tv::addScoreGrad(AttentionGradOp op) {
  Location loc = op.getLoc();
  Block &mod = op.getScoreMod().front();
  Type wide = mod.getArgument(0).getType();
  Block &block = op.getScoreGrad().emplaceBlock();
  auto b = OpBuilder::atBlockEnd(&block);
  IRMapping primals;
  primals.map(mod.getArgument(0), block.addArgument(wide, loc));
  Value dy = block.addArgument(wide, loc);
  for (BlockArgument index : mod.getArguments().drop_front())
    primals.map(index, block.addArgument(index.getType(), loc));
  for (Operation &inner : mod.without_terminator())
    b.clone(inner, primals);

  auto numberOf = [&](LoadOp load) {
    auto found = llvm::find(op.getCaptured(), load.getTensor());
    return unsigned(found - op.getCaptured().begin());
  };
  llvm::SmallBitVector loaded(op.getCaptured().size());
  mod.walk([&](LoadOp load) {
    if (numberOf(load) < loaded.size())
      loaded.set(numberOf(load));
  });
  for (unsigned i = 0; i < loaded.size(); ++i)
    if (!loaded.test(i))
      return op.emitOpError()
             << "score_mod loads nothing from captured tensor #" << i;

  FailureOr<SmallVector<Value>> gradients = differentiateScalars(
      b, mod, primals, dy, wide,
      [&](Value value) {
        auto load = value.getDefiningOp<LoadOp>();
        return !load || numberOf(load) < loaded.size();
      },
      [&](LoadOp load, Value adjoint) {
        SmallVector<Value> indices;
        for (Value index : load.getIndices())
          indices.push_back(primals.lookup(index));
        AccumulateOp::create(b, load.getLoc(),
                             b.getI64IntegerAttr(numberOf(load)), indices,
                             adjoint);
      });
  if (failed(gradients))
    return failure();
  Value ds = gradients->front();
  if (!ds)
    ds = arith::ConstantOp::create(b, loc, b.getFloatAttr(wide, 0));
  YieldOp::create(b, loc, ds);
  // Primals that no slope needs.
  for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&inner))
      inner.erase();
  return success();
}
