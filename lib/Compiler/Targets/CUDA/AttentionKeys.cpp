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

/// factor * (of / by), `of` being the key, the query, what rises with the query
/// and is not negative, or, by 1, a value that depends on neither.
struct Term {
  Value of;
  int64_t by;
  Wide factor;
  Reach reach; ///< of the quotient
};

/// constant + sum of terms.
struct Form {
  Wide constant = 0;
  SmallVector<Term> terms = {};

  void add(const Term &term) {
    if (term.reach.getMost() == 0)
      return;
    auto own = llvm::find_if(terms, [&](const Term &other) {
      return other.of == term.of && other.by == term.by;
    });
    if (own == terms.end())
      terms.push_back(term);
    else if ((own->factor += term.factor) == 0)
      terms.erase(own);
  }
  Form plus(const Form &other, Wide factor) const {
    Form sum = *this;
    sum.constant += factor * other.constant;
    if (factor != 0)
      for (Term term : other.terms) {
        term.factor *= factor;
        sum.add(term);
      }
    return sum;
  }
  Reach getReach() const {
    Reach sum = {constant, constant};
    for (const Term &term : terms)
      sum = sum.plus(term.reach, term.factor);
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
  bool isKey(const Term &term) const { return term.of == mask.getArgument(3); }
  /// Whether it depends on no key and never falls as queries rise.
  bool rises(const Form &form) const;
  std::optional<Form> getForm(Value value, int depth) const;
  std::optional<Form> getQuotient(Value of, const Form &form, int64_t by) const;
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

bool Comparison::rises(const Form &form) const {
  return llvm::all_of(form.terms, [&](const Term &term) {
    return isUniform(term.of) || (!isKey(term) && term.factor > 0);
  });
}

/// `form` is what `of` is.
std::optional<Form> Comparison::getQuotient(Value of, const Form &form,
                                            int64_t by) const {
  const Reach reach = form.getReach();
  if (reach.low < 0)
    return std::nullopt;
  // Multiples leave the quotient.
  const Wide remainder = ((form.constant % by) + by) % by;
  Form whole{(form.constant - remainder) / by}, rest{remainder};
  for (Term term : form.terms) {
    const bool isMultiple = term.factor % by == 0;
    term.factor /= isMultiple ? by : 1;
    (isMultiple ? whole : rest).add(term);
  }
  if (rest.getReach().isIn({0, by - 1}))
    return whole;
  if (rest.constant == 0 && rest.terms.size() == 1) {
    const Term &only = rest.terms.front();
    if (only.factor == 1 && !isUniform(only.of)) {
      whole.add({only.of, only.by * by, 1, {0, only.reach.high / by}});
      return whole;
    }
  }
  if (!rises(form))
    return std::nullopt;
  return Form{0, {{of, by, 1, {0, reach.high / by}}}};
}

/// None of what may wrap in its type.
std::optional<Form> Comparison::getForm(Value value, int depth) const {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return Form{constant.getSExtValue()};
  auto single = [&](const Reach &reach) {
    Form form;
    form.add({value, 1, 1, reach});
    return form;
  };
  if (value == mask.getArgument(3))
    return single(keys);
  if (value == mask.getArgument(2))
    return single(queries);
  if (isUniform(value))
    return single(::getReach(value));
  if (depth == 0)
    return std::nullopt;
  Operation *op = value.getDefiningOp();
  auto operand = [&](unsigned i) {
    return getForm(op->getOperand(i), depth - 1);
  };
  std::optional<Form> form;
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op)) {
    form = operand(0);
  } else if (isa<arith::AddIOp, arith::SubIOp>(op)) {
    std::optional<Form> a = operand(0), b = operand(1);
    if (a && b)
      form = a->plus(*b, isa<arith::AddIOp>(op) ? 1 : -1);
  } else if (op->getNumOperands() == 2 &&
             matchPattern(op->getOperand(1), m_ConstantInt(&constant))) {
    const int64_t by = constant.getSExtValue();
    std::optional<Form> a;
    if (isa<arith::MulIOp>(op)) {
      if ((a = operand(0)))
        form = Form{}.plus(*a, by);
    } else if (by > 0 && isa<arith::DivUIOp, arith::RemUIOp, arith::DivSIOp,
                             arith::RemSIOp, arith::FloorDivSIOp>(op)) {
      if ((a = operand(0)))
        form = getQuotient(op->getOperand(0), *a, by);
      if (form && isa<arith::RemUIOp, arith::RemSIOp>(op))
        form = a->plus(*form, -by);
    }
  }
  if (form && !form->getReach().isIn(::getReach(value.getType())))
    return std::nullopt;
  return form;
}

/// Of a sum of quotients of the key, KeyBound::numbers: it has digits, each of
/// which counts more than all behind it.
static std::optional<SmallVector<int64_t>> getNumbers(SmallVector<Term> ofKey) {
  llvm::sort(ofKey, [](const Term &a, const Term &b) { return a.by < b.by; });
  if (ofKey.front().by != 1)
    ofKey.insert(ofKey.begin(), {ofKey.front().of, 1, 0, {}});
  SmallVector<int64_t> numbers;
  Wide weight = 0;
  for (auto [i, term] : llvm::enumerate(ofKey)) {
    const int64_t before = i ? ofKey[i - 1].by : 1;
    if (term.by % before != 0)
      return std::nullopt;
    weight = weight * (term.by / before) + term.factor;
    if (weight > KeyBound::kFar)
      return std::nullopt;
    if (i > 0)
      numbers.insert(numbers.begin(), term.by);
    numbers.insert(numbers.begin(), int64_t(weight));
  }
  return numbers;
}

void Comparison::below(const Form &form) {
  // Number of key < bound, or -number < -(bound - 1). What falls as queries
  // rise is no bound: kernels go from the first of a block's queries to the
  // last.
  Form ofKey, others{form.constant};
  for (const Term &term : form.terms)
    (isKey(term) ? ofKey : others).add(term);
  if (ofKey.terms.empty())
    return;
  const bool isEnd = ofKey.terms.front().factor > 0;
  ofKey = Form{}.plus(ofKey, isEnd ? 1 : -1);
  if (llvm::any_of(ofKey.terms,
                   [](const Term &term) { return term.factor < 0; }))
    return;
  std::optional<SmallVector<int64_t>> numbers = getNumbers(ofKey.terms);
  const Form bound = Form{isEnd ? 0 : 1}.plus(others, isEnd ? -1 : 1);
  if (!numbers || !rises(bound))
    return;
  // One value may be beyond what the others reach: kernels take the nearest
  // that is not, which is as far from any position.
  KeyBound taken = {isEnd, int64_t(bound.constant), {}, {}, *numbers};
  bool isFar = false;
  Form near{bound.constant};
  for (const Term &term : bound.terms) {
    if (!isUniform(term.of)) {
      near.add(term);
      taken.ofQuery.push_back({term.of, term.by, int64_t(term.factor)});
      continue;
    }
    if (!mayBeFar(term.of))
      near.add(term);
    else if (std::exchange(isFar, true) ||
             (term.factor != 1 && term.factor != -1))
      return;
    taken.values.push_back({term.of, int64_t(term.factor)});
  }
  const Wide most = near.getReach().getMost();
  if (most >= KeyBound::kFar / 2)
    return;
  // The keys that keys_below counts do not wrap either.
  const Wide end = most + (isFar ? KeyBound::kFar : 0);
  if (numbers->size() == 1 ||
      (end / (*numbers)[0] + 1) * (*numbers)[1] < 2 * Wide(KeyBound::kFar))
    bounds.push_back(std::move(taken));
}

void Comparison::compare(arith::CmpIOp op) {
  std::optional<Form> a = getForm(op.getLhs(), kDeepest),
                      b = getForm(op.getRhs(), kDeepest);
  if (!a || !b)
    return;
  const Form form = a->plus(*b, -1), one{1};
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

/// Whether the value is a sum of products by multiples of `size`.
static bool isMultiple(Value value, int64_t size) {
  APInt factor;
  if (auto product = value.getDefiningOp<arith::MulIOp>())
    return matchPattern(product.getRhs(), m_ConstantInt(&factor)) &&
           factor.getSExtValue() % size == 0;
  auto sum = value.getDefiningOp<arith::AddIOp>();
  return sum && isMultiple(sum.getLhs(), size) &&
         isMultiple(sum.getRhs(), size);
}

bool cuda::areInGroups(Block &number, int64_t size) {
  // That of a key behind those of whole queries.
  auto sum =
      number.getTerminator()->getOperand(0).getDefiningOp<arith::AddIOp>();
  auto before =
      sum ? sum.getLhs().getDefiningOp<arith::MulIOp>() : arith::MulIOp();
  APInt keys;
  if (!before || !matchPattern(before.getRhs(), m_ConstantInt(&keys)) ||
      keys.getSExtValue() % size != 0)
    return false;
  const Comparison at(number);
  std::optional<Form> key = at.getForm(sum.getRhs(), kDeepest);
  return key && key->constant % size == 0 &&
         llvm::all_of(key->terms, [&](const Term &term) {
           if (!at.isKey(term))
             return term.factor % size == 0 || isMultiple(term.of, size);
           return term.by == 1 ? term.factor == 1
                               : term.by % size == 0 && term.factor % size == 0;
         });
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

bool KeyBound::isOfDistance() const {
  return isPlain() && ofQuery.size() == 1 &&
         isa<BlockArgument>(ofQuery.front().of) && ofQuery.front().by == 1 &&
         ofQuery.front().factor == 1;
}

SmallVector<KeyBound> cuda::getKeyBounds(arith::CmpIOp op) {
  Comparison comparison(*op->getBlock());
  comparison.compare(op);
  return std::move(comparison.bounds);
}

bool cuda::keepsRange(Block &mask, int64_t least) {
  int64_t begin = -KeyBound::kFar, end = KeyBound::kFar; // less the query
  SmallVector<Value> hold = {mask.getTerminator()->getOperand(0)};
  while (!hold.empty()) {
    Value condition = hold.pop_back_val();
    if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
      llvm::append_range(hold, both->getOperands());
      continue;
    }
    auto op = condition.getDefiningOp<arith::CmpIOp>();
    if (!op || !op->hasAttr(schedule::kBoundAttr))
      return false;
    const SmallVector<KeyBound> bounds = getKeyBounds(op);
    const bool isPoint = op.getPredicate() == arith::CmpIPredicate::eq;
    if (bounds.size() != (isPoint ? 2 : 1) ||
        !llvm::all_of(bounds, [](const KeyBound &x) { return x.isPlain(); }))
      return false;
    for (const KeyBound &bound : bounds)
      if (bound.isOfDistance() && bound.values.empty()) {
        int64_t &of = bound.isEnd ? end : begin;
        of = bound.isEnd ? std::min(of, bound.constant)
                         : std::max(of, bound.constant);
      }
  }
  return end - begin >= least;
}
