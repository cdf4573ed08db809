//===- TensorViewPartial.cpp - ops on partial values ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `transferPartial`: along one sub-axis, which states of the operands an op
// carries to which states of its results. Exact in real arithmetic: an op that
// is linear in its partial operands keeps sums, a monotone one keeps max and
// min. Rounding to fewer bits is monotone but not linear.
//
//===----------------------------------------------------------------------===//

#include "Layout/Exchange.h"
#include "TensorView/TensorView.h"
#include "TensorView/TensorViewPointwise.h"
#include "TensorView/TensorViewVerify.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

/// The state of a value along one sub-axis; nothing when it is whole.
using State = std::optional<layout::Combiner>;
using States = ArrayRef<State>;

static LogicalResult refuse(Operation *op, State state, Twine why,
                            std::string &text) {
  text = (Twine(op->getName().getStringRef()) + " may not run on a partial (" +
          layout::toString(*state) + ") operand: " + why)
             .str();
  return failure();
}

/// The first state that is partial.
static State firstPartial(States states) {
  for (State state : states)
    if (state)
      return state;
  return std::nullopt;
}

/// All results have `state`.
static LogicalResult give(Operation *op, State state,
                          SmallVectorImpl<State> &results) {
  results.assign(op->getNumResults(), state);
  return success();
}

/// Ops linear in each of `factors` apart: at most one of them is partial, by
/// sum; all other operands are whole.
static LogicalResult transferLinear(Operation *op, States operands,
                                    ArrayRef<unsigned> factors,
                                    SmallVectorImpl<State> &results,
                                    std::string &why) {
  State state = firstPartial(operands);
  unsigned count = llvm::count_if(operands, [](State s) { return bool(s); });
  if (!state)
    return give(op, state, results);
  if (*state != layout::Combiner::Sum)
    return refuse(op, state, "it keeps sums only", why);
  for (auto [i, operand] : llvm::enumerate(operands))
    if (operand && !llvm::is_contained(factors, i))
      return refuse(op, state, "operand #" + Twine(i) + " must be whole", why);
  if (count > 1)
    return refuse(op, state, "only one operand may be partial", why);
  return give(op, state, results);
}

/// Ops that only move elements: all operands that they read are alike.
static LogicalResult transferMoved(Operation *op, States operands,
                                   SmallVectorImpl<State> &results,
                                   std::string &why) {
  for (State operand : operands)
    if (operand != operands[0])
      return refuse(op, firstPartial(operands),
                    "all operands must be partial alike", why);
  return give(op, operands[0], results);
}

LogicalResult tv::refusePartial(Operation *op, States operands,
                                SmallVectorImpl<State> &results,
                                std::string &why) {
  layout::Rule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  for (auto [operand, use] : llvm::zip_equal(operands, rule.uses))
    if (operand && use != layout::Use::Unread)
      return refuse(op, operand, "it is not linear", why);
  return give(op, std::nullopt, results);
}

/// How one device's part lies; null for another value.
static const layout::View *getLocalView(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  auto local = type ? dyn_cast_or_null<LocalAttr>(type.getEncoding()) : nullptr;
  return local ? &local.getLayoutView() : nullptr;
}

/// The states of values along `axis`.
static SmallVector<State> statesAlong(const layout::SubAxis &axis,
                                      ValueRange values) {
  SmallVector<State> states(values.size());
  for (auto [state, value] : llvm::zip_equal(states, values))
    if (const layout::View *view = getLocalView(value))
      for (const layout::Partial &partial : view->partial)
        if (layout::contains(partial.axes, axis))
          state = partial.combiner;
  return states;
}

LogicalResult tv::verifyLocalPartials(Operation *op) {
  std::vector<layout::SubAxis> partial, axes, split;
  for (auto [values, own] :
       {std::pair(ValueRange(op->getOperands()), &partial),
        std::pair(ValueRange(op->getResults()), &axes)})
    for (Value value : values)
      if (const layout::View *view = getLocalView(value))
        for (const layout::Partial &state : view->partial)
          llvm::append_range(*own, state.axes);
  if (partial.empty())
    return success();
  // A value may be partial along one part of an axis, others along all of it.
  llvm::append_range(axes, partial);
  if (auto parts = layout::refineAxes(axes))
    axes = std::move(*parts);
  llvm::erase_if(axes, [&](const layout::SubAxis &axis) {
    return !layout::contains(partial, axis);
  });
  for (ValueRange values :
       {ValueRange(op->getOperands()), ValueRange(op->getResults())})
    for (Value value : values)
      if (const layout::View *view = getLocalView(value))
        for (const layout::Dim &dim : view->dims)
          llvm::append_range(split, layout::axesOf(dim.product));
  auto ruled = cast<ShardingRuleOpInterface>(op);
  const layout::Rule rule = ruled.getShardingRule();
  for (const layout::SubAxis &axis : axes) {
    // Where an axis divides a loop, the rule says what is partial.
    if (llvm::any_of(split, [&](const layout::SubAxis &other) {
          return layout::overlap(axis, other);
        }))
      continue;
    SmallVector<State> operands = statesAlong(axis, op->getOperands()), results;
    for (auto [state, use] : llvm::zip_equal(operands, rule.uses))
      if (use == layout::Use::Unread)
        state.reset();
    std::string why;
    if (failed(ruled.transferPartial(operands, results, why))) {
      const size_t number =
          llvm::find_if(operands, [](State s) { return s.has_value(); }) -
          operands.begin();
      const Value operand = op->getOperand(number);
      return op->emitOpError()
             << "operand #" << number << " lies as "
             << layout::toString(*getLocalView(operand),
                                 checks::meshOf(operand.getType()).getMesh())
             << " on each device: " << why << "; a 'comm' op moves it before";
    }
    for (auto [number, state] : llvm::enumerate(results))
      if (const Value result = op->getResult(number);
          state != statesAlong(axis, result).front())
        return op->emitOpError()
               << "result #" << number << " must be "
               << (state ? "partial (" + std::string(layout::toString(*state)) +
                               ")"
                         : "whole")
               << " along "
               << layout::toString(axis,
                                   checks::meshOf(result.getType()).getMesh())
               << ", as the operands make it";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Scalar regions
//===----------------------------------------------------------------------===//

namespace {
/// How a scalar op of one operand acts on states.
enum class Monotone { No, Up, Down };

class ScalarStates {
public:
  ScalarStates(Operation *map, std::string &why) : map(map), why(why) {}

  LogicalResult run(Block &block, States operands,
                    SmallVectorImpl<State> &results) {
    for (auto [argument, state] :
         llvm::zip_equal(block.getArguments(), operands))
      states[argument] = state;
    for (Operation &op : block.without_terminator()) {
      SmallVector<State> in;
      for (Value operand : op.getOperands())
        in.push_back(states.lookup(operand));
      State out;
      if (firstPartial(in) && !isa<AccumulateOp>(op) &&
          failed(transfer(op, in, out)))
        return failure();
      for (Value result : op.getResults())
        states[result] = out;
    }
    for (Value value : block.getTerminator()->getOperands())
      results.push_back(states.lookup(value));
    return success();
  }

  State lookup(Value value) const { return states.lookup(value); }

private:
  static bool isPositiveConstant(Value value) {
    FloatAttr constant;
    return matchPattern(value, m_Constant(&constant)) &&
           constant.getValue().isFiniteNonZero() &&
           !constant.getValue().isNegative();
  }

  static bool isPositive(Value value) {
    auto add = value.getDefiningOp<arith::AddFOp>();
    auto isTerm = [](Value term) {
      return isPositive(term) ||
             isa_and_nonnull<math::ExpOp, math::Exp2Op, math::AbsFOp>(
                 term.getDefiningOp());
    };
    return isPositiveConstant(value) ||
           (add && isTerm(add.getLhs()) && isTerm(add.getRhs()) &&
            (isPositive(add.getLhs()) || isPositive(add.getRhs())));
  }

  static Monotone monotone(Operation &op) {
    if (isa<arith::NegFOp>(op))
      return Monotone::Down;
    // Widening and rounding keep order; so do these functions, which are
    // defined everywhere: a device's addend may be anything, -inf when its
    // shard is empty.
    if (isa<arith::ExtFOp, arith::TruncFOp, math::ExpOp, math::Exp2Op,
            math::ExpM1Op, math::TanhOp, math::ErfOp, math::FloorOp,
            math::CeilOp>(op))
      return Monotone::Up;
    return Monotone::No;
  }

  static layout::Combiner flip(layout::Combiner combiner) {
    return combiner == layout::Combiner::Max ? layout::Combiner::Min
                                             : layout::Combiner::Max;
  }

  LogicalResult transfer(Operation &op, States in, State &out) {
    State state = firstPartial(in);
    bool sum = *state == layout::Combiner::Sum;
    auto no = [&](Twine reason) {
      return refuse(map, state,
                    Twine(op.getName().getStringRef()) + " " + reason, why);
    };
    if (in.size() == 1) {
      if (sum) {
        // Integers wrap alike in each addend only at one width. What a device
        // has summed in more bits it rounds, as an op in fewer does.
        if (!isa<arith::NegFOp, arith::ExtFOp>(op) &&
            !(isa<arith::TruncFOp>(op) && getLocalView(map->getOperand(0))))
          return no(isa<arith::TruncFOp>(op)
                        ? "of the addends is not that of their sum, which is "
                          "rounded once it is whole, after an all-reduce"
                        : "is not linear");
        out = state;
        return success();
      }
      Monotone direction = monotone(op);
      if (direction == Monotone::No)
        return no("does not keep order");
      out = direction == Monotone::Up ? *state : flip(*state);
      return success();
    }
    bool both = in.size() == 2 && in[0] && in[1];
    if (isa<arith::AddFOp, arith::AddIOp, arith::SubFOp, arith::SubIOp>(op)) {
      bool floats = isa<arith::AddFOp, arith::SubFOp>(op);
      bool subtract = isa<arith::SubFOp, arith::SubIOp>(op);
      if (sum && both && in[0] == in[1]) {
        out = state;
        return success();
      }
      if (sum)
        return no("needs both operands partial by sum: a whole one would be "
                  "added once a device");
      // max(a) + c = max(a + c); integers may wrap.
      if (both || !floats)
        return no("of max or min needs a whole float as the other operand");
      out = subtract && in[1] ? flip(*state) : *state;
      return success();
    }
    if (isa<arith::MulFOp, arith::MulIOp>(op)) {
      if (both)
        return no("of two partial values is not linear");
      if (!sum && !isPositiveConstant(op.getOperand(in[0] ? 1 : 0)))
        return no("of max or min needs a positive constant as factor");
      out = state;
      return success();
    }
    if (isa<arith::DivFOp>(op)) {
      // c / max(a) = min(c / a) where both are positive.
      if (in[1] && !in[0] && !sum && isPositiveConstant(op.getOperand(0)) &&
          isPositive(op.getOperand(1))) {
        out = flip(*state);
        return success();
      }
      if (in[1])
        return no("by a partial value is not linear");
      if (!sum && !isPositiveConstant(op.getOperand(1)))
        return no("of max or min needs a positive constant as divisor");
      out = state;
      return success();
    }
    // The same choice of every addend; no addends are 0.
    if (isa<arith::SelectOp>(op)) {
      if (in[0])
        return no("on a partial condition is not linear");
      for (unsigned i : {1, 2})
        if (in[i] != state &&
            !(sum && matchPattern(op.getOperand(i), m_AnyZeroFloat())))
          return no("needs both values partial alike, or 0 beside a sum");
      out = state;
      return success();
    }
    // max(max a, c) = max over devices of max(a, c).
    bool isMax = isa<arith::MaximumFOp, arith::MaxNumFOp, arith::MaxSIOp,
                     arith::MaxUIOp>(op);
    bool isMin = isa<arith::MinimumFOp, arith::MinNumFOp, arith::MinSIOp,
                     arith::MinUIOp>(op);
    if (isMax || isMin) {
      layout::Combiner own =
          isMax ? layout::Combiner::Max : layout::Combiner::Min;
      for (State operand : in)
        if (operand && *operand != own)
          return no("needs operands that are whole or partial by the same "
                    "combiner");
      out = own;
      return success();
    }
    return no("is not linear");
  }

  Operation *map;
  std::string &why;
  llvm::DenseMap<Value, State> states;
};
} // namespace

/// Whether all tensors with a state of max or min have one order: integers are
/// signless in the region, but the state is of those with or without a sign.
static bool haveOneOrder(Operation *op, States operands, States results) {
  bool hasSign[2] = {false, false};
  auto look = [&](TypeRange types, States states) {
    for (auto [type, state] : llvm::zip_equal(types, states)) {
      Type element = getElementTypeOrSelf(type);
      if (state && *state != layout::Combiner::Sum && isa<IntegerType>(element))
        hasSign[element.isSignlessInteger() && !element.isInteger(1)] = true;
    }
  };
  look(op->getOperandTypes(), operands);
  look(op->getResultTypes(), results);
  return !(hasSign[0] && hasSign[1]);
}

LogicalResult tv::transferRegion(Operation *op, Block &block, States operands,
                                 SmallVectorImpl<State> &results,
                                 std::string &why) {
  if (failed(ScalarStates(op, why).run(block, operands, results)))
    return failure();
  if (!haveOneOrder(op, operands, results))
    return refuse(op, firstPartial(operands),
                  "integers with and without a sign are not in one order", why);
  return success();
}

LogicalResult MapOp::transferPartial(States operands,
                                     SmallVectorImpl<State> &results,
                                     std::string &why) {
  return transferRegion(*this, getBody().front(), operands, results, why);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::transferPartial(States operands,
                                        SmallVectorImpl<State> &results,
                                        std::string &why) {
  State state = operands[0];
  if (state && int(*state) != int(getCombiner()))
    return refuse(*this, state,
                  "it combines by " + Twine(stringifyCombiner(getCombiner())),
                  why);
  return give(*this, state, results);
}

LogicalResult BroadcastOp::transferPartial(States operands,
                                           SmallVectorImpl<State> &results,
                                           std::string &why) {
  return give(*this, operands[0], results); // `like` is not read
}

static LogicalResult transferContraction(ContractionOpInterface op,
                                         States operands,
                                         SmallVectorImpl<State> &results,
                                         std::string &why) {
  if (failed(transferLinear(op, operands.take_front(2), {0, 1}, results, why)))
    return failure();
  // What is added is partial exactly when the product is.
  if (llvm::all_of(operands.drop_front(2),
                   [&](State state) { return state == results[0]; }))
    return success();
  return refuse(op, firstPartial(operands),
                "what is added must be partial as the product is", why);
}

LogicalResult ContractOp::transferPartial(States operands,
                                          SmallVectorImpl<State> &results,
                                          std::string &why) {
  return transferContraction(*this, operands, results, why);
}

LogicalResult LinearOp::transferPartial(States operands,
                                        SmallVectorImpl<State> &results,
                                        std::string &why) {
  return transferContraction(*this, operands, results, why);
}

LogicalResult MatmulOp::transferPartial(States operands,
                                        SmallVectorImpl<State> &results,
                                        std::string &why) {
  return transferContraction(*this, operands, results, why);
}

LogicalResult GroupedMatmulOp::transferPartial(States operands,
                                               SmallVectorImpl<State> &results,
                                               std::string &why) {
  return transferLinear(*this, operands, {0, 1}, results, why);
}

LogicalResult AttentionGradOp::transferPartial(States operands,
                                               SmallVectorImpl<State> &results,
                                               std::string &why) {
  // Linear in the two gradients that come in together.
  const unsigned lseGrad = getLseGrad() ? 6 : 0;
  const unsigned captured = 6 + bool(getLseGrad()),
                 behind = captured + getCaptured().size();
  State state = firstPartial(operands.take_front(captured));
  if (!state)
    state = firstPartial(operands.drop_front(behind));
  if (!state)
    return give(*this, state, results);
  if (*state != layout::Combiner::Sum)
    return refuse(*this, state, "it keeps sums only", why);
  for (unsigned i = 1, e = operands.size(); i < e; ++i)
    if (i != lseGrad && operands[i] && (i < captured || i >= behind))
      return refuse(*this, state, "operand #" + Twine(i) + " must be whole",
                    why);
  if (operands[0] != operands[lseGrad])
    return refuse(*this, state, "do and dlse must be partial alike", why);
  // What is derived is linear; what is written need not be.
  if (!getScoreGrad().empty()) {
    Block &block = getScoreGrad().front();
    SmallVector<State> arguments(block.getNumArguments()), yielded;
    arguments[1] = state;
    ScalarStates states(*this, why);
    if (failed(states.run(block, arguments, yielded)))
      return failure();
    auto isKept = [&](Value value) {
      return states.lookup(value) == state ||
             matchPattern(value, m_AnyZeroFloat());
    };
    for (Operation &op : block)
      if (isa<AccumulateOp, YieldOp>(op) && !isKept(op.getOperands().back()))
        return refuse(*this, state, "its score_grad is not linear", why);
  }
  return give(*this, state, results);
}

LogicalResult TransposeOp::transferPartial(States operands,
                                           SmallVectorImpl<State> &results,
                                           std::string &why) {
  return transferMoved(*this, operands, results, why);
}
LogicalResult SliceOp::transferPartial(States operands,
                                       SmallVectorImpl<State> &results,
                                       std::string &why) {
  return transferMoved(*this, operands, results, why);
}
LogicalResult ConcatOp::transferPartial(States operands,
                                        SmallVectorImpl<State> &results,
                                        std::string &why) {
  return transferMoved(*this, operands, results, why);
}

LogicalResult PadOp::transferPartial(States operands,
                                     SmallVectorImpl<State> &results,
                                     std::string &why) {
  State state = operands[0];
  bool zero = matchPattern(getValueAttr(), m_AnyZeroFloat()) ||
              matchPattern(getValueAttr(), m_Zero());
  // max and min of equal borders is the border.
  if (state && *state == layout::Combiner::Sum && !zero)
    return refuse(*this, state, "its border is not 0", why);
  return give(*this, state, results);
}

LogicalResult GatherOp::transferPartial(States operands,
                                        SmallVectorImpl<State> &results,
                                        std::string &why) {
  return transferLinear(*this, operands, {0}, results, why);
}

LogicalResult ScatterOp::transferPartial(States operands,
                                         SmallVectorImpl<State> &results,
                                         std::string &why) {
  State state = firstPartial(operands);
  if (!state)
    return give(*this, state, results);
  if (operands[1])
    return refuse(*this, state, "its indices must be whole", why);
  auto combiner = getCombiner();
  if (operands[0] != operands[2] || (combiner && int(*state) != int(*combiner)))
    return refuse(
        *this, state,
        "init and updates must both be partial" +
            (combiner ? " by " + stringifyCombiner(*combiner).str() : ""),
        why);
  return give(*this, state, results);
}

LogicalResult CumsumOp::transferPartial(States operands,
                                        SmallVectorImpl<State> &results,
                                        std::string &why) {
  return transferLinear(*this, operands, {0}, results, why);
}

LogicalResult CombineOp::transferPartial(States operands,
                                         SmallVectorImpl<State> &results,
                                         std::string &why) {
  return transferLinear(*this, operands, {0, 3}, results, why);
}

//===----------------------------------------------------------------------===//
// Composites
//===----------------------------------------------------------------------===//

LogicalResult RopeOp::transferPartial(States operands,
                                      SmallVectorImpl<State> &results,
                                      std::string &why) {
  return transferLinear(*this, operands, {0}, results, why);
}
LogicalResult DropoutOp::transferPartial(States operands,
                                         SmallVectorImpl<State> &results,
                                         std::string &why) {
  return transferLinear(*this, operands, {0}, results, why);
}
