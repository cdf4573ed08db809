//===- AttentionKeys.cpp - which keys a mask keeps ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/AttentionKeys.h"
#include "Compiler/Targets/CUDA/Scheduling.h"
#include "Plan/Plan.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

namespace {
/// Sums of a few products of numbers of 64 bits and positions.
using Wide = __int128;

struct Reach {
  Wide low = 0, high = 0;

  Reach plus(const Reach &other, Wide factor) const {
    const Wide a = factor * other.low, b = factor * other.high;
    return {low + std::min(a, b), high + std::max(a, b)};
  }
  bool isIn(const Reach &other) const {
    return low >= other.low && high <= other.high;
  }
  Wide getMost() const { return std::max(-low, high); }
};

/// key * k + query * q + constant + sum of factor * value.
struct Form {
  Wide key = 0, query = 0, constant = 0;
  SmallVector<std::pair<Value, Wide>> values = {};

  Form plus(const Form &other, Wide factor) const {
    Form sum = *this;
    sum.key += factor * other.key;
    sum.query += factor * other.query;
    sum.constant += factor * other.constant;
    for (auto [value, own] : other.values)
      sum.values.push_back({value, factor * own});
    return sum;
  }
};

/// A comparison of a mask_mod.
struct Comparison {
  explicit Comparison(Block &mask);

  Block &mask;
  Reach queries, keys; ///< positions
  llvm::DenseMap<Operation *, unsigned> dependences = getDependences(mask);
  SmallVector<KeyBound> bounds = {};

  bool isUniform(Value value) const;
  Reach getReach(const Form &form) const;
  std::optional<Form> getForm(Value value, int depth) const;
  /// Takes what says that the form is below zero.
  void below(const Form &form);
  void compare(arith::CmpIOp op);
};
} // namespace

/// Kernels count positions in 32 bits.
static Reach getPositions(int64_t extent) {
  return {0, ShapedType::isDynamic(extent) ? (Wide(1) << 31) - 1
                                           : std::max<Wide>(extent - 1, 0)};
}

Comparison::Comparison(Block &mask) : mask(mask) {
  auto sizeOf = [](Value memory, unsigned dim) {
    return cast<MemRefType>(memory.getType()).getDimSize(dim);
  };
  llvm::TypeSwitch<Operation *>(mask.getParentOp())
      .Case<plan::AttentionOp, plan::AttentionGradOp>([&](auto op) {
        queries = getPositions(sizeOf(op.getQuery(), 2));
        keys = getPositions(sizeOf(op.getKey(), 2));
        if constexpr (std::is_same_v<decltype(op), plan::AttentionOp>)
          if (op.getPages())
            keys = getPositions(ShapedType::kDynamic);
      });
}

/// What a type has.
static Reach getReach(Type type) {
  const unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  const Wide half = Wide(1) << (bits - 1);
  return {-half, half - 1};
}

static Reach getProduct(const Reach &a, const Reach &b) {
  const Wide all[] = {a.low * b.low, a.low * b.high, a.high * b.low,
                      a.high * b.high};
  return {*llvm::min_element(all), *llvm::max_element(all)};
}

/// Of ops, from a comparison on, that are looked at: a value that is used twice
/// is looked at twice.
constexpr int kDeepest = 10;

/// Whether it is a number that the launch gives, an extent or a coordinate of
/// the device.
static bool isOfLaunch(Operation *op) {
  if (!isa<arith::IndexCastOp>(op))
    return false;
  auto argument = dyn_cast<BlockArgument>(op->getOperand(0));
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

/// What a value that depends on no position may be. Batches, heads and what a
/// launch gives are positions, too.
static Reach getReach(Value value, int depth = kDeepest) {
  const Reach all = getReach(value.getType());
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return {constant.getSExtValue(), constant.getSExtValue()};
  Operation *op = value.getDefiningOp();
  if (!op)
    return value.getType().isIndex() ? getPositions(ShapedType::kDynamic) : all;
  if (depth == 0)
    return all;
  Reach reach = all;
  if (isOfLaunch(op)) {
    reach = getPositions(ShapedType::kDynamic);
  } else if (isa<arith::IndexCastOp, arith::ExtSIOp>(op)) {
    reach = getReach(op->getOperand(0), depth - 1);
  } else if (isa<arith::DivUIOp, arith::RemUIOp>(op)) {
    const Reach a = getReach(op->getOperand(0), depth - 1);
    if (a.low >= 0 &&
        matchPattern(op->getOperand(1), m_ConstantInt(&constant)) &&
        constant.isStrictlyPositive()) {
      const Wide by = constant.getSExtValue();
      reach = isa<arith::RemUIOp>(op) ? Reach{0, std::min(a.high, by - 1)}
                                      : Reach{a.low / by, a.high / by};
    }
  } else if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::MaxSIOp,
                 arith::MinSIOp>(op)) {
    const Reach a = getReach(op->getOperand(0), depth - 1),
                b = getReach(op->getOperand(1), depth - 1);
    reach = isa<arith::AddIOp>(op)   ? a.plus(b, 1)
            : isa<arith::SubIOp>(op) ? a.plus(b, -1)
            : isa<arith::MulIOp>(op) ? getProduct(a, b)
            : isa<arith::MaxSIOp>(op)
                ? Reach{std::max(a.low, b.low), std::max(a.high, b.high)}
                : Reach{std::min(a.low, b.low), std::min(a.high, b.high)};
  }
  return reach.isIn(all) ? reach : all;
}

/// Whether the value depends on neither the query nor the key.
bool Comparison::isUniform(Value value) const {
  if (auto argument = dyn_cast<BlockArgument>(value);
      argument && argument.getOwner() == &mask)
    return argument.getArgNumber() < 2;
  return value.getParentBlock() != &mask ||
         !(dependences.lookup(value.getDefiningOp()) & (OnQuery | OnKey));
}

bool cuda::mayBeFar(Value value) {
  return ::getReach(value).getMost() > KeyBound::kFar;
}

Reach Comparison::getReach(const Form &form) const {
  Reach sum = Reach{form.constant, form.constant}
                  .plus(keys, form.key)
                  .plus(queries, form.query);
  for (auto [value, factor] : form.values)
    sum = sum.plus(::getReach(value), factor);
  return sum;
}

/// None of what may wrap in its type.
std::optional<Form> Comparison::getForm(Value value, int depth) const {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return Form{0, 0, constant.getSExtValue()};
  if (value == mask.getArgument(3))
    return Form{1};
  if (value == mask.getArgument(2))
    return Form{0, 1};
  if (isUniform(value))
    return Form{0, 0, 0, {{value, 1}}};
  if (depth == 0)
    return std::nullopt;
  Operation *op = value.getDefiningOp();
  std::optional<Form> form;
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op)) {
    form = getForm(op->getOperand(0), depth - 1);
  } else if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) {
    std::optional<Form> a = getForm(op->getOperand(0), depth - 1),
                        b = getForm(op->getOperand(1), depth - 1);
    if (!a || !b)
      return std::nullopt;
    if (!isa<arith::MulIOp>(op))
      form = a->plus(*b, isa<arith::AddIOp>(op) ? 1 : -1);
    else if (matchPattern(op->getOperand(1), m_ConstantInt(&constant)))
      form = Form{}.plus(*a, constant.getSExtValue());
  }
  if (form && !getReach(*form).isIn(::getReach(value.getType())))
    return std::nullopt;
  return form;
}

void Comparison::below(const Form &form) {
  // key < bound, or -key < -(bound - 1). What falls as queries rise is no
  // bound: kernels go from the first of a block's queries to the last.
  if (form.key != 1 && form.key != -1)
    return;
  Form bound = Form{}.plus(form, -form.key);
  if (bound.query < 0)
    return;
  const bool isEnd = form.key == 1;
  bound.constant += isEnd ? 0 : 1;
  // One value may be beyond what the others reach: kernels take the nearest
  // that is not, which is as far from any position.
  bool isFar = false;
  Form near = bound;
  near.values.clear();
  SmallVector<std::pair<Value, int64_t>> values;
  for (auto [value, factor] : bound.values) {
    if (!mayBeFar(value))
      near.values.push_back({value, factor});
    else if (std::exchange(isFar, true) || (factor != 1 && factor != -1))
      return;
    values.push_back({value, int64_t(factor)});
  }
  if (getReach(near).getMost() < KeyBound::kFar / 2)
    bounds.push_back(
        {isEnd, int64_t(bound.query), int64_t(bound.constant), values});
}

void Comparison::compare(arith::CmpIOp op) {
  std::optional<Form> a = getForm(op.getLhs(), kDeepest),
                      b = getForm(op.getRhs(), kDeepest);
  if (!a || !b)
    return;
  const Form form = a->plus(*b, -1), one{0, 0, 1};
  const Form negative = Form{}.plus(form, -1);
  switch (op.getPredicate()) {
  case arith::CmpIPredicate::slt:
    return below(form);
  case arith::CmpIPredicate::sle:
    return below(form.plus(one, -1));
  case arith::CmpIPredicate::sgt:
    return below(negative);
  case arith::CmpIPredicate::sge:
    return below(negative.plus(one, -1));
  case arith::CmpIPredicate::eq:
    below(form.plus(one, -1));
    return below(negative.plus(one, -1));
  default:
    return;
  }
}

SmallVector<arith::CmpIOp> cuda::getBoundingOps(Block &mask) {
  SmallVector<arith::CmpIOp> ops;
  SmallVector<Value> hold = {mask.getTerminator()->getOperand(0)};
  while (!hold.empty()) {
    Value condition = hold.pop_back_val();
    if (auto both = condition.getDefiningOp<arith::AndIOp>())
      hold.append({both.getRhs(), both.getLhs()});
    else if (auto op = condition.getDefiningOp<arith::CmpIOp>();
             op && op->getBlock() == &mask && !getKeyBounds(op).empty())
      ops.push_back(op);
  }
  return ops;
}

SmallVector<KeyBound> cuda::getKeyBounds(arith::CmpIOp op) {
  Comparison comparison(*op->getBlock());
  comparison.compare(op);
  return std::move(comparison.bounds);
}
