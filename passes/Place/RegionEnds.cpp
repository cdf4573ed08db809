//===- RegionEnds.cpp - what the ends of a region take --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where uses need what a region makes that are not in it. What is returned may
// lie in other views, and its move waits for the end.
//
//===----------------------------------------------------------------------===//

#include "Place/Placer.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

static constexpr double kNever = std::numeric_limits<double>::infinity();

/// What `user` says of each dimension.
static SmallVector<Said> findSaid(ViewAttr user) {
  SmallVector<Said> said;
  for (const layout::Dim &dim : user.getView().dims) {
    const bool isOpen = dim.product.back().kind == layout::Factor::Kind::Open;
    said.append(dim.span, !isOpen                  ? Said::All
                          : dim.product.size() > 1 ? Said::Least
                                                   : Said::Nothing);
  }
  return said;
}

static bool areAll(ArrayRef<Said> said, Said what) {
  return llvm::all_of(said, [&](Said its) { return its == what; });
}

bool Placer::isWritten(Operation *op) {
  auto users = op->getAttrOfType<ArrayAttr>(kUserViewAttr);
  return users && !llvm::all_of(users, [](Attribute user) {
           auto view = dyn_cast<ViewAttr>(user);
           if (!view)
             return true;
           const SmallVector<Said> said = findSaid(view);
           return view.getView().partial.empty() &&
                  (said.empty() || !areAll(said, Said::All));
         });
}

/// What is said of the dimensions of what `use` returns; empty where it needs
/// what it has.
ArrayRef<Said> Placer::saidOf(OpOperand &use) {
  const unsigned number = use.getOperandNumber();
  if (!isa<func::ReturnOp>(use.getOwner()) || states[number])
    return {};
  auto [known, isNew] = saidOfReturned.try_emplace(number);
  SmallVector<Said> &said = known->second;
  if (!isNew)
    return said;
  auto user = function.getResultAttrOfType<ViewAttr>(number, kUserViewAttr);
  if (!user)
    said.assign(cast<RankedTensorType>(use.get().getType()).getRank(),
                Said::Nothing);
  else if (user.getView().partial.empty())
    said = findSaid(user);
  if (areAll(said, Said::All))
    said.clear();
  return said;
}

/// The view in which `use` needs `value`, which lies as `from`, if it is not
/// served as it is now: what may be returned in others is as it comes, or as
/// near as may be where that takes less.
int Placer::needOf(Value value, int from, OpOperand &use, bool asItIs,
                   bool least) {
  if (isa<ReshardOp>(use.getOwner()))
    return from;
  const int now = numberOf(use.get());
  if (asItIs || from == now)
    return now;
  ArrayRef<Said> said = saidOf(use);
  if (said.empty())
    return now;
  auto time = [&](int view) {
    return least ? leastSeconds(value, from, view)
                 : timeTo(value, from, view, use);
  };
  int need = now;
  double sooner = time(now);
  for (int other : ways.returned(value, from, now, said))
    if (double then = time(other); then < sooner) {
      need = other;
      sooner = then;
    }
  return need;
}

/// The kind of the small move that makes what `use` returns; -1 if there is
/// none, or others read that, too.
int Placer::kindReturned(OpOperand &use) {
  ReshardOp move = asMove(use.get().getDefiningOp());
  if (!move || !isa<func::ReturnOp>(use.getOwner()) ||
      !llvm::all_of(move->getUsers(), llvm::IsaPred<func::ReturnOp>))
    return -1;
  Value from = move.getInputs()[0];
  return ways.kindOf(from, numberOf(from), numberOf(use.get()));
}

void Placer::noteReturned(OpOperand &use) {
  const unsigned number = use.getOperandNumber();
  for (auto &[kind, values] : returned)
    values.erase(number);
  returned[kindReturned(use)][number] = sourceOf(use.get());
}

/// Notes the small moves that ops need, of each kind in order.
void Placer::noteNeeded() {
  needed.clear();
  for (Operation &op : function.getBody().front())
    if (ReshardOp move = asMove(&op)) {
      Value from = move.getInputs()[0], to = move.getResult(0);
      if (int kind = ways.kindOf(from, numberOf(from), numberOf(to));
          kind != kAlone)
        needed[kind].push_back(move);
    }
}

/// Whether a move of `kind` to `use`, which returns it, goes together with
/// another that is there whatever the region does: of what is returned beside
/// it, for all that wait for the end, or of what an op after it needs.
bool Placer::isShared(OpOperand &use, int kind) {
  if (kind == kAlone)
    return false;
  if (llvm::is_contained(waiting, kind))
    return true;
  const Value source = sourceOf(use.get());
  Operation *maker = source.getDefiningOp();
  auto isOther = [&](Value other) {
    return other != source && !inside.contains(other.getDefiningOp());
  };
  if (auto values = returned.find(kind); values != returned.end())
    for (const auto &[number, other] : values->second)
      if (isOther(other))
        return true;
  auto isNeeded = [&](Operation *user) {
    return !isa<func::ReturnOp>(user) && !inside.contains(user);
  };
  auto moves = needed.find(kind);
  if (moves != needed.end())
    for (ReshardOp move : llvm::reverse(moves->second)) {
      if (maker && move->isBeforeInBlock(maker))
        break;
      if (isOther(sourceOf(move.getResult(0))) &&
          llvm::any_of(move->getUsers(), isNeeded))
        return true;
    }
  return false;
}

/// The values that the region returns, by the kinds of their moves now.
std::map<int, llvm::SmallPtrSet<Operation *, 4>> Placer::findReturned() const {
  std::map<int, llvm::SmallPtrSet<Operation *, 4>> found;
  for (const auto &[kind, values] : returned)
    for (const auto &[number, value] : values)
      if (inside.contains(value.getDefiningOp()))
        found[kind].insert(value.getDefiningOp());
  return found;
}

/// The kinds of moves of more than one of these.
SmallVector<int> Placer::waitingNow() const {
  SmallVector<int> kinds;
  for (const auto &[kind, makers] : findReturned())
    if (kind != kAlone && makers.size() > 1)
      kinds.push_back(kind);
  return kinds;
}

/// The time of moves to the uses of `value` that are not in the region, one
/// from where another ends if that is nearer; with `least` at most that,
/// without plans.
double Placer::reachEnds(Value value, int from, int copy, bool asItIs,
                         bool least) {
  double sum = 0;
  SmallVector<std::pair<int, OpOperand *>> needs;
  for (OpOperand *use : uses.find(value)->second) {
    if (inside.contains(use->getOwner()))
      continue;
    if (auto move = dyn_cast<ReshardOp>(use->getOwner())) {
      const int to = numberOf(move.getResult(0));
      sum += least ? leastSeconds(value, from, to) : seconds(value, from, to);
      continue;
    }
    const int need = needOf(value, from, *use, asItIs, least);
    auto other =
        llvm::find_if(needs, [&](auto &other) { return other.first == need; });
    if (other == needs.end())
      needs.emplace_back(need, use);
    else if (!isa<func::ReturnOp>(use->getOwner())) // which does not wait
      other->second = use;
  }
  SmallVector<int> has = {from};
  if (copy != from)
    has.push_back(copy);
  if (least) {
    for (auto [need, use] : needs)
      has.push_back(need);
    for (auto [need, use] : needs) {
      double least = kNever;
      for (int is : has)
        if (is != need || is == from || is == copy)
          least = std::min(least, leastSeconds(value, is, need));
      if (isa<func::ReturnOp>(use->getOwner()))
        least = std::max(least - ways.getLatency(), 0.);
      sum += least;
    }
    return sum;
  }
  while (!needs.empty()) {
    double least = kNever;
    size_t next = 0;
    for (auto [number, each] : llvm::enumerate(needs))
      for (int is : has) {
        double time = timeTo(value, is, each.first, *each.second);
        if (time < least) {
          least = time;
          next = number;
        }
      }
    if (least == kNever)
      return kNever;
    sum += least;
    has.push_back(needs[next].first);
    needs.erase(needs.begin() + next);
  }
  return sum;
}

/// Of a move for `use`.
double Placer::timeTo(Value value, int from, int to, OpOperand &use) {
  double time = seconds(value, from, to);
  if (!isa<func::ReturnOp>(use.getOwner()))
    return time;
  const int kind = ways.kindOf(value, from, to);
  if (isShared(use, kind))
    time -= ways.getLatency();
  else if (kind != kAlone)
    kindsOfEnds.insert(kind);
  return time;
}
