//===- Intervals.cpp - what a mask says of a block of pairs ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorView/Intervals.h"
#include "TensorView/TensorView.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

using Body = ImplicitLocOpBuilder &;
using Int = arith::CmpIPredicate;

/// Of i1 it is a condition, not an integer.
static bool isInteger(Type type) {
  return type.isIndex() ||
         (type.isSignlessInteger() && type.getIntOrFloatBitWidth() <= 64);
}
static bool isCondition(Value value) { return value.getType().isInteger(1); }

static int64_t getWidth(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

static std::optional<int64_t> getConstant(Value value) {
  APInt number;
  if (value && matchPattern(value, m_ConstantInt(&number)))
    return number.getSExtValue();
  return std::nullopt;
}

static bool isCast(Operation *op) {
  return isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
             arith::ExtUIOp, arith::TruncIOp>(op);
}

/// Whether there is a rule for the op.
static bool hasRule(Operation *op) {
  if (!llvm::all_of(op->getOperandTypes(), isInteger) ||
      op->getNumResults() != 1 || !isInteger(op->getResult(0).getType()))
    return false;
  if (isa<arith::CmpIOp, arith::SelectOp>(op))
    return true;
  if (isCast(op))
    return !isCondition(op->getResult(0)) &&
           (isa<arith::ExtUIOp>(op) || !isCondition(op->getOperand(0)));
  if (isCondition(op->getResult(0)))
    return isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op);
  if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::MinSIOp,
          arith::MaxSIOp>(op))
    return true;
  std::optional<int64_t> second =
      op->getNumOperands() == 2 ? getConstant(op->getOperand(1)) : std::nullopt;
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp, arith::RemSIOp,
          arith::RemUIOp>(op))
    return second && *second > 0;
  return isa<arith::ShRSIOp>(op) && second && *second >= 0 &&
         *second < getWidth(op->getResult(0).getType());
}

//===----------------------------------------------------------------------===//
// What is to be reduced
//===----------------------------------------------------------------------===//

Intervals::Intervals(Block &body) : body(body) {
  find(body.getTerminator()->getOperand(0));
}

/// A bit for each argument of the mask.
unsigned Intervals::dependences(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() == &body ? 1 << argument.getArgNumber() : 0;
  if (value.getParentBlock() != &body)
    return 0; // a captured tensor
  if (auto found = known.find(value); found != known.end())
    return found->second;
  unsigned all = 0;
  for (Value operand : value.getDefiningOp()->getOperands())
    all |= dependences(operand);
  return known[value] = all;
}

static constexpr unsigned kOfQuery = 1 << Intervals::kQuery,
                          kOfKey = 1 << Intervals::kKey;

/// Whether rules lead from arguments and from what pairs have in common to it.
bool Intervals::isBounded(Value value) {
  if (isa<BlockArgument>(value) ||
      (dependences(value) & (kOfQuery | kOfKey)) == 0)
    return true;
  Operation *op = value.getDefiningOp();
  return hasRule(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
           return isBounded(operand);
         });
}

bool Intervals::isReduced(Value value) {
  const unsigned of = dependences(value) & (kOfQuery | kOfKey);
  return isInteger(value.getType()) && (of == kOfQuery || of == kOfKey) &&
         !isBounded(value) &&
         // An integer is shorter before.
         !(isCast(value.getDefiningOp()) && hasRule(value.getDefiningOp()));
}

/// From the last op on, so that what is reduced is as much as possible.
void Intervals::find(Value value) {
  if (isBounded(value))
    return;
  if (isReduced(value)) {
    const unsigned of = dependences(value);
    if (llvm::none_of(reduced, [&](auto &each) { return each.value == value; }))
      reduced.push_back({value, of & kOfQuery ? kQuery : kKey,
                         (of & 1 << kBatch) != 0, (of & 1 << kHead) != 0});
    return;
  }
  Operation *op = value.getDefiningOp();
  if (hasRule(op))
    for (Value operand : op->getOperands())
      find(operand);
}

//===----------------------------------------------------------------------===//
// Values at indices
//===----------------------------------------------------------------------===//

static Value clone(Body b, Value value, IRMapping &arguments) {
  if (Value known = arguments.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  // What is outside are captured tensors.
  for (Value operand : op->getOperands())
    if (!isa<RankedTensorType>(operand.getType()))
      clone(b, operand, arguments);
  b.clone(*op, arguments);
  return arguments.lookup(value);
}

Value Intervals::build(Body b, Value value, IRMapping &arguments) {
  Value result = clone(b, value, arguments);
  Type type = result.getType();
  if (type.isIndex())
    return b.createOrFold<arith::IndexCastOp>(b.getI64Type(), result);
  if (isCondition(result))
    return b.createOrFold<arith::ExtUIOp>(b.getI32Type(), result);
  return getWidth(type) < 32
             ? b.createOrFold<arith::ExtSIOp>(b.getI32Type(), result)
             : result;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

namespace {
/// Values of a body, for one block.
class Rules {
public:
  explicit Rules(Body b) : b(b) {}

  void set(Value value, Value low, Value high);
  void set(Value value, Interval interval) { intervals[value] = interval; }
  Verdict getVerdict(Value value);

private:
  /// Unknown: nothing of an integer, null verdicts.
  std::optional<Interval> get(Value value);
  std::optional<Interval> compute(Operation *op);
  std::optional<Interval> computeQuotient(Operation *op, const Interval &x);
  Verdict computeVerdict(Operation *op);
  Verdict compare(Int predicate, const Interval &x, const Interval &y);
  Verdict compareUnsigned(Int predicate, const Interval &x, const Interval &y);

  Interval widen(const Interval &interval, Type type);
  Interval ofCondition(const Verdict &verdict);

  Type typeFor(int64_t least, int64_t most) {
    return least >= INT32_MIN && most <= INT32_MAX ? b.getI32Type()
                                                   : b.getI64Type();
  }
  Value castTo(Type type, Value value) {
    if (value.getType() == type)
      return value;
    return type.isInteger(64) ? b.createOrFold<arith::ExtSIOp>(type, value)
                              : b.createOrFold<arith::TruncIOp>(type, value);
  }
  Interval castTo(Type type, const Interval &x) {
    Value low = castTo(type, x.low);
    return {low, x.low == x.high ? low : castTo(type, x.high), x.least, x.most};
  }
  Value number(Type type, int64_t value) {
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
  }
  Value test(Int predicate, Value x, Value y) {
    return b.createOrFold<arith::CmpIOp>(predicate, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return x == y ? x : b.createOrFold<arith::SelectOp>(condition, x, y);
  }
  /// Of conditions that may be null, which are not known to hold.
  Value both(Value x, Value y) {
    return x && y ? b.createOrFold<arith::AndIOp>(x, y) : Value();
  }
  Value either(Value x, Value y) {
    return x && y ? b.createOrFold<arith::OrIOp>(x, y) : x ? x : y;
  }
  template <typename Op> Value make(Value x, Value y) {
    return b.createOrFold<Op>(x, y);
  }

  Body b;
  llvm::DenseMap<Value, std::optional<Interval>> intervals;
  llvm::DenseMap<Value, Verdict> verdicts;
};
} // namespace

static std::pair<int64_t, int64_t> getLimits(Type type) {
  const int64_t width = getWidth(type);
  const int64_t most =
      width == 64 ? INT64_MAX : (int64_t(1) << (width - 1)) - 1;
  return {-most - 1, most};
}

/// What is reduced, or the same for all pairs: all that is known are its
/// bounds.
void Rules::set(Value value, Value low, Value high) {
  if (isCondition(value)) {
    Value zero = number(low.getType(), 0);
    verdicts[value] = {test(Int::eq, high, zero), test(Int::ne, low, zero)};
    return;
  }
  auto [least, most] = getLimits(value.getType());
  if (std::optional<int64_t> constant = getConstant(low);
      constant && low == high)
    least = most = *constant;
  intervals[value] = castTo(typeFor(least, most), {low, high, least, most});
}

std::optional<Interval> Rules::get(Value value) {
  if (auto found = intervals.find(value); found != intervals.end())
    return found->second;
  std::optional<Interval> interval;
  if (Operation *op = value.getDefiningOp(); hasRule(op))
    interval = compute(op);
  return intervals[value] = interval;
}

Verdict Rules::getVerdict(Value value) {
  if (auto found = verdicts.find(value); found != verdicts.end())
    return found->second;
  Verdict verdict;
  if (Operation *op = value.getDefiningOp(); hasRule(op))
    verdict = computeVerdict(op);
  return verdicts[value] = verdict;
}

/// What wraps around in its type may be anything there.
Interval Rules::widen(const Interval &x, Type type) {
  auto [least, most] = getLimits(type);
  if (x.least >= least && x.most <= most)
    return castTo(typeFor(x.least, x.most), x);
  Type wide = x.low.getType();
  Value begin = number(wide, least), end = number(wide, most);
  Value fits = both(test(Int::sge, x.low, begin), test(Int::sle, x.high, end));
  return castTo(typeFor(least, most), {select(fits, x.low, begin),
                                       select(fits, x.high, end), least, most});
}

Interval Rules::ofCondition(const Verdict &verdict) {
  Type type = b.getI32Type();
  Value zero = number(type, 0), one = number(type, 1);
  return {verdict.always ? select(verdict.always, one, zero) : zero,
          verdict.never ? select(verdict.never, zero, one) : one, 0, 1};
}

/// By a constant above 0.
std::optional<Interval> Rules::computeQuotient(Operation *op,
                                               const Interval &x) {
  const int64_t by = *getConstant(op->getOperand(1));
  const bool isUnsigned = isa<arith::DivUIOp, arith::RemUIOp>(op);
  if (x.least < 0 && isUnsigned)
    return std::nullopt;
  Type type = x.low.getType();
  if (typeFor(by, by) != b.getI32Type())
    type = b.getI64Type();
  Interval wide = castTo(type, x);
  Value divisor = number(type, by);
  if (isa<arith::RemSIOp, arith::RemUIOp>(op)) {
    if (x.least < 0)
      return Interval{number(type, 1 - by), number(type, by - 1), 1 - by,
                      by - 1};
    if (x.most < by)
      return x;
    // Within one round they are in order.
    Value same = test(Int::eq, make<arith::DivUIOp>(wide.low, divisor),
                      make<arith::DivUIOp>(wide.high, divisor));
    return Interval{
        select(same, make<arith::RemUIOp>(wide.low, divisor), number(type, 0)),
        select(same, make<arith::RemUIOp>(wide.high, divisor),
               number(type, by - 1)),
        0, std::min(x.most, by - 1)};
  }
  auto floor = [&](int64_t n) { return n / by - (n % by < 0 ? 1 : 0); };
  if (isa<arith::FloorDivSIOp>(op))
    return Interval{make<arith::FloorDivSIOp>(wide.low, divisor),
                    make<arith::FloorDivSIOp>(wide.high, divisor),
                    floor(x.least), floor(x.most)};
  return Interval{x.least < 0 ? make<arith::DivSIOp>(wide.low, divisor)
                              : make<arith::DivUIOp>(wide.low, divisor),
                  x.least < 0 ? make<arith::DivSIOp>(wide.high, divisor)
                              : make<arith::DivUIOp>(wide.high, divisor),
                  x.least / by, x.most / by};
}

std::optional<Interval> Rules::compute(Operation *op) {
  Type type = op->getResult(0).getType();
  if (auto choice = dyn_cast<arith::SelectOp>(op)) {
    std::optional<Interval> x = get(choice.getTrueValue()),
                            y = get(choice.getFalseValue());
    if (!x || !y)
      return std::nullopt;
    Verdict is = getVerdict(choice.getCondition());
    const int64_t least = std::min(x->least, y->least),
                  most = std::max(x->most, y->most);
    Type wide = typeFor(least, most);
    *x = castTo(wide, *x), *y = castTo(wide, *y);
    auto pick = [&](Value ofX, Value ofY, Value other) {
      if (is.never)
        other = select(is.never, ofY, other);
      return is.always ? select(is.always, ofX, other) : other;
    };
    return Interval{
        pick(x->low, y->low, make<arith::MinSIOp>(x->low, y->low)),
        pick(x->high, y->high, make<arith::MaxSIOp>(x->high, y->high)), least,
        most};
  }
  Value first = op->getOperand(0);
  if (isCondition(first)) // (extended)
    return ofCondition(getVerdict(first));
  std::optional<Interval> x = get(first);
  if (!x)
    return std::nullopt;
  if (isa<arith::ExtUIOp, arith::IndexCastUIOp>(op) &&
      getWidth(first.getType()) < getWidth(type)) {
    if (x->least >= 0)
      return x;
    const int64_t most = (int64_t(1) << getWidth(first.getType())) - 1;
    Type wide = typeFor(0, most);
    *x = castTo(wide, *x);
    Value zero = number(wide, 0), isPositive = test(Int::sge, x->low, zero);
    return Interval{select(isPositive, x->low, zero),
                    select(isPositive, x->high, number(wide, most)), 0, most};
  }
  if (isCast(op))
    return widen(*x, type);
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp, arith::RemSIOp,
          arith::RemUIOp>(op))
    return computeQuotient(op, *x);
  if (isa<arith::ShRSIOp>(op)) {
    const int64_t by = *getConstant(op->getOperand(1));
    Type own = x->low.getType();
    *x = castTo(by < getWidth(own) ? own : b.getI64Type(), *x);
    Value amount = number(x->low.getType(), by);
    return Interval{make<arith::ShRSIOp>(x->low, amount),
                    make<arith::ShRSIOp>(x->high, amount), x->least >> by,
                    x->most >> by};
  }
  std::optional<Interval> y = get(op->getOperand(1));
  if (!y)
    return std::nullopt;
  // Both in a type that has the result, too.
  auto prepare = [&](int64_t least, int64_t most) {
    Type wide = typeFor(std::min({least, x->least, y->least}),
                        std::max({most, x->most, y->most}));
    *x = castTo(wide, *x), *y = castTo(wide, *y);
  };
  auto isPoint = [](const Interval &of) { return of.low == of.high; };
  int64_t least, most;
  if (isa<arith::AddIOp, arith::SubIOp>(op)) {
    const bool isSum = isa<arith::AddIOp>(op);
    auto fits = [&](int64_t of, int64_t with, int64_t &to) {
      return isSum ? !__builtin_add_overflow(of, with, &to)
                   : !__builtin_sub_overflow(of, with, &to);
    };
    if (!fits(x->least, isSum ? y->least : y->most, least) ||
        !fits(x->most, isSum ? y->most : y->least, most))
      return std::nullopt;
    prepare(least, most);
    auto compute = [&](Value of, Value with) {
      return isSum ? make<arith::AddIOp>(of, with)
                   : make<arith::SubIOp>(of, with);
    };
    Value low = compute(x->low, isSum ? y->low : y->high);
    return widen({low,
                  isPoint(*x) && isPoint(*y)
                      ? low
                      : compute(x->high, isSum ? y->high : y->low),
                  least, most},
                 type);
  }
  if (isa<arith::MulIOp>(op)) {
    int64_t corners[4];
    if (__builtin_mul_overflow(x->least, y->least, &corners[0]) ||
        __builtin_mul_overflow(x->least, y->most, &corners[1]) ||
        __builtin_mul_overflow(x->most, y->least, &corners[2]) ||
        __builtin_mul_overflow(x->most, y->most, &corners[3]))
      return std::nullopt;
    least = *std::min_element(corners, corners + 4);
    most = *std::max_element(corners, corners + 4);
    prepare(least, most);
    auto times = [&](Value of, Value by) {
      return make<arith::MulIOp>(of, by);
    };
    if (x->least >= 0 && y->least >= 0)
      return widen(
          {times(x->low, y->low), times(x->high, y->high), least, most}, type);
    Value ends[] = {times(x->low, y->low), times(x->high, y->low),
                    times(x->low, y->high), times(x->high, y->high)};
    Value low = ends[0], high = ends[0];
    for (Value end : ArrayRef(ends, isPoint(*y) ? 2 : 4).drop_front()) {
      low = make<arith::MinSIOp>(low, end);
      high = make<arith::MaxSIOp>(high, end);
    }
    return widen({low, high, least, most}, type);
  }
  prepare(0, 0);
  if (isa<arith::MinSIOp>(op))
    return Interval{make<arith::MinSIOp>(x->low, y->low),
                    make<arith::MinSIOp>(x->high, y->high),
                    std::min(x->least, y->least), std::min(x->most, y->most)};
  return Interval{make<arith::MaxSIOp>(x->low, y->low),
                  make<arith::MaxSIOp>(x->high, y->high),
                  std::max(x->least, y->least), std::max(x->most, y->most)};
}

Verdict Rules::compare(Int predicate, const Interval &x, const Interval &y) {
  switch (predicate) {
  case Int::eq: // all are one number
    return {
        either(test(Int::slt, x.high, y.low), test(Int::sgt, x.low, y.high)),
        both(test(Int::sge, x.low, y.high), test(Int::sle, x.high, y.low))};
  case Int::slt:
    return {test(Int::sge, x.low, y.high), test(Int::slt, x.high, y.low)};
  case Int::sle:
    return {test(Int::sgt, x.low, y.high), test(Int::sle, x.high, y.low)};
  case Int::sgt:
    return compare(Int::slt, y, x);
  case Int::sge:
    return compare(Int::sle, y, x);
  case Int::ne: {
    Verdict is = compare(Int::eq, x, y);
    return {is.always, is.never};
  }
  default:
    return compareUnsigned(predicate, x, y);
  }
}

/// As unsigned numbers, those below 0 are above all others. Of one sign they
/// are in order.
Verdict Rules::compareUnsigned(Int predicate, const Interval &x,
                               const Interval &y) {
  if (predicate == Int::ugt)
    return compareUnsigned(Int::ult, y, x);
  if (predicate == Int::uge)
    return compareUnsigned(Int::ule, y, x);
  const bool isLess = predicate == Int::ult;
  if (x.least >= 0 && y.least >= 0)
    return compare(isLess ? Int::slt : Int::sle, x, y);
  Value zero = number(x.low.getType(), 0);
  auto hasSign = [&](const Interval &of) -> Value {
    if (of.least >= 0)
      return arith::ConstantOp::create(b, b.getBoolAttr(true));
    return either(test(Int::sge, of.low, zero), test(Int::slt, of.high, zero));
  };
  Value ordered = both(hasSign(x), hasSign(y));
  return {both(ordered, test(isLess ? Int::uge : Int::ugt, x.low, y.high)),
          both(ordered, test(isLess ? Int::ult : Int::ule, x.high, y.low))};
}

Verdict Rules::computeVerdict(Operation *op) {
  if (auto choice = dyn_cast<arith::SelectOp>(op)) {
    Verdict is = getVerdict(choice.getCondition()),
            x = getVerdict(choice.getTrueValue()),
            y = getVerdict(choice.getFalseValue());
    auto pick = [&](Value ofX, Value ofY) {
      return either(either(both(is.always, ofX), both(is.never, ofY)),
                    both(ofX, ofY));
    };
    return {pick(x.never, y.never), pick(x.always, y.always)};
  }
  Value first = op->getOperand(0);
  auto comparison = dyn_cast<arith::CmpIOp>(op);
  if (comparison && !isCondition(first)) {
    std::optional<Interval> x = get(first), y = get(op->getOperand(1));
    if (!x || !y)
      return {};
    Type wide = x->low.getType() == y->low.getType() ? x->low.getType()
                                                     : b.getI64Type();
    return compare(comparison.getPredicate(), castTo(wide, *x),
                   castTo(wide, *y));
  }
  if (op->getNumOperands() != 2) // a cast
    return {};
  Verdict x = getVerdict(first), y = getVerdict(op->getOperand(1));
  const bool isEqual = comparison && comparison.getPredicate() == Int::eq;
  if (comparison && !isEqual && comparison.getPredicate() != Int::ne)
    return {};
  if (isa<arith::AndIOp>(op))
    return {either(x.never, y.never), both(x.always, y.always)};
  if (isa<arith::OrIOp>(op))
    return {both(x.never, y.never), either(x.always, y.always)};
  Verdict differ = {either(both(x.always, y.always), both(x.never, y.never)),
                    either(both(x.always, y.never), both(x.never, y.always))};
  return isEqual ? Verdict{differ.always, differ.never} : differ;
}

Verdict Intervals::build(Body b, IRMapping &arguments,
                         ArrayRef<Interval> intervals,
                         ArrayRef<std::pair<Value, Value>> bounds) {
  Rules rules(b);
  for (auto [argument, interval] :
       llvm::zip_equal(body.getArguments(), intervals))
    rules.set(argument, interval);
  for (auto [each, own] : llvm::zip_equal(reduced, bounds))
    rules.set(each.value, own.first, own.second);
  // What all pairs have in common, where no rule makes it.
  for (Operation &op : body.without_terminator()) {
    if (op.getNumResults() != 1 || hasRule(&op) ||
        (dependences(op.getResult(0)) & (kOfQuery | kOfKey)) != 0 ||
        !isInteger(op.getResult(0).getType()))
      continue;
    Value same = build(b, op.getResult(0), arguments);
    rules.set(op.getResult(0), same, same);
  }
  return rules.getVerdict(body.getTerminator()->getOperand(0));
}
