//===- AttentionKeys.cpp - which keys a mask keeps ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/AttentionKeys.h"
#include "Compiler/Targets/CUDA/Scheduling.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

namespace {
/// key * k + query * q + constant + sum of factor * value.
struct Form {
  int64_t key = 0, query = 0, constant = 0;
  SmallVector<std::pair<Value, int64_t>> values = {};

  Form plus(const Form &other, int64_t factor) const {
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
  Block &mask;
  llvm::DenseMap<Operation *, unsigned> dependences = getDependences(mask);
  SmallVector<KeyBound> bounds = {};

  bool isUniform(Value value) const;
  std::optional<Form> getForm(Value value) const;
  /// Takes what says that the form is below zero.
  void below(const Form &form);
  void compare(arith::CmpIOp op);
};
} // namespace

/// Whether the value depends on neither the query nor the key.
bool Comparison::isUniform(Value value) const {
  if (auto argument = dyn_cast<BlockArgument>(value);
      argument && argument.getOwner() == &mask)
    return argument.getArgNumber() < 2;
  return value.getParentBlock() != &mask ||
         !(dependences.lookup(value.getDefiningOp()) & (OnQuery | OnKey));
}

std::optional<Form> Comparison::getForm(Value value) const {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return Form{0, 0, constant.getSExtValue()};
  if (value == mask.getArgument(3))
    return Form{1};
  if (value == mask.getArgument(2))
    return Form{0, 1};
  if (isUniform(value))
    return Form{0, 0, 0, {{value, 1}}};
  Operation *op = value.getDefiningOp();
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op))
    return getForm(op->getOperand(0));
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  std::optional<Form> a = getForm(op->getOperand(0)),
                      b = getForm(op->getOperand(1));
  if (!a || !b)
    return std::nullopt;
  if (!isa<arith::MulIOp>(op))
    return a->plus(*b, isa<arith::AddIOp>(op) ? 1 : -1);
  if (matchPattern(op->getOperand(1), m_ConstantInt(&constant)))
    return Form{}.plus(*a, constant.getSExtValue());
  return std::nullopt;
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
  bounds.push_back(
      {isEnd, bound.query, bound.constant + (isEnd ? 0 : 1), bound.values});
}

void Comparison::compare(arith::CmpIOp op) {
  std::optional<Form> a = getForm(op.getLhs()), b = getForm(op.getRhs());
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
  Comparison comparison{*op->getBlock()};
  comparison.compare(op);
  return std::move(comparison.bounds);
}
