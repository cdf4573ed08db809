//===- FusedKernel.cpp - ops that run in one loop nest --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernels/FusedKernel.h"
#include "Kernels/Windows.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tessera;

bool tessera::isPointwise(Operation *op) {
  return isa<tv::ElementOpInterface>(op) && op->hasTrait<OpTrait::Pointwise>();
}

bool tessera::isElementwise(Operation *op) {
  return isa<tv::ElementOpInterface, tv::CompositeOpInterface>(op) &&
         op->hasTrait<OpTrait::Pointwise>();
}

SmallVector<Value> tessera::getReadValues(Operation *op) {
  auto element = dyn_cast<tv::ElementOpInterface>(op);
  return element ? element.getReadValues() : tv::getOperandsAndCaptured(op);
}

std::optional<tv::Reduction> tessera::getReduction(Operation *op) {
  auto element = dyn_cast<tv::ElementOpInterface>(op);
  return element ? element.getReduction() : std::nullopt;
}

bool tessera::isFree(Operation *op) {
  auto element = dyn_cast<tv::ElementOpInterface>(op);
  return element && element.isFree();
}

bool tessera::wantsSeveral(Operation *op) {
  llvm::SetVector<Value> read;
  read.insert_range(getReadValues(op));
  for (size_t i = 0; i < read.size(); ++i)
    if (Operation *source = read[i].getDefiningOp(); source && isFree(source)) {
      if (cast<tv::ElementOpInterface>(source).getElementsAtOnce() > 1)
        return true;
      read.insert_range(getReadValues(source));
    }
  return false;
}

/// A copy computes no more ops than this, for the reasons of kMaxScalarOps.
static constexpr size_t kMaxCopied = 64;

/// How many elements of a value a use copies; nothing if it is no copy.
static std::optional<int64_t> countCopied(OpOperand &use) {
  Operation *op = use.getOwner();
  if (!isa<tv::WindowOpInterface>(op) || !isa<tv::ElementOpInterface>(op) ||
      getWindow(op))
    return std::nullopt;
  auto from = cast<RankedTensorType>(use.get().getType()),
       to = cast<RankedTensorType>(op->getResult(0).getType());
  return from.hasStaticShape() && to.hasStaticShape()
             ? std::min(from.getNumElements(), to.getNumElements())
             : ShapedType::kDynamic;
}

llvm::DenseSet<Operation *>
tessera::getCopied(Block &block,
                   llvm::function_ref<bool(Operation *)> isLooped) {
  llvm::DenseSet<Operation *> copied;
  // Whether all who read an op are copies, or one op that is copied.
  auto isCopied = [&](Operation *op) {
    if (!isElementwise(op) || !isLooped(op) || op->getNumResults() != 1 ||
        op->use_empty() || wantsSeveral(op))
      return false;
    Operation *first = *op->user_begin();
    if (copied.contains(first))
      return llvm::all_of(op->getUsers(),
                          [&](Operation *user) { return user == first; });
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    int64_t elements = 0;
    for (OpOperand &use : op->getUses()) {
      std::optional<int64_t> count = countCopied(use);
      if (!count || use.getOwner()->getBlock() != &block ||
          (*count == ShapedType::kDynamic && !op->hasOneUse()))
        return false;
      elements += *count;
    }
    return op->hasOneUse() || elements <= type.getNumElements();
  };
  // The copies that compute each, and how many ops those compute.
  llvm::DenseMap<Operation *, SmallVector<Operation *, 1>> copies;
  llvm::DenseMap<Operation *, size_t> counts;
  for (Operation &op : llvm::reverse(block)) {
    if (!isCopied(&op))
      continue;
    SmallVector<Operation *, 1> own(op.user_begin(), op.user_end());
    if (copied.contains(own.front()))
      own = copies.lookup(own.front());
    if (llvm::any_of(
            own, [&](Operation *copy) { return counts[copy] >= kMaxCopied; }))
      continue;
    for (Operation *copy : own)
      ++counts[copy];
    copies[&op] = std::move(own);
    copied.insert(&op);
  }
  // What a kernel would have at hand is not put into memory for a copy.
  for (Operation &op : block)
    if (copied.contains(&op) &&
        !llvm::all_of(getReadValues(&op), [&](Value value) {
          Operation *maker = value.getDefiningOp();
          return !maker || isFree(maker) || copied.contains(maker) ||
                 !isLooped(maker);
        }))
      copied.erase(&op);
  for (Operation &op : llvm::reverse(block))
    if (copied.contains(&op) && !isCopied(&op))
      copied.erase(&op);
  return copied;
}

std::optional<SmallVector<int64_t>>
tessera::getReducedDims(tv::ElementOpInterface op) {
  ArrayRef<int64_t> all = op.getReduction()->dims;
  SmallVector<int64_t> dims;
  int64_t next = 0;
  for (auto [i, dim] : llvm::enumerate(getSpace(op.getLooped().getType()))) {
    size_t reduced = 0;
    for (size_t part = 0; part < dim.extents.size(); ++part)
      reduced += llvm::is_contained(all, next++);
    if (reduced != 0 && reduced != dim.extents.size())
      return std::nullopt;
    if (reduced != 0)
      dims.push_back(i);
  }
  return dims;
}

//===----------------------------------------------------------------------===//
// Which ops go together
//===----------------------------------------------------------------------===//

/// The space that an op loops over.
static Value getLooped(Operation *op) {
  auto element = dyn_cast<tv::ElementOpInterface>(op);
  return element ? element.getLooped() : op->getResult(0);
}

/// A kernel's loop holds no more scalar ops: code generation takes more than
/// linear time in them, and by then there is work enough for what is loaded.
static constexpr size_t kMaxScalarOps = 512;

/// A kernel reads no more tensors: a stage loads all that it reads at first,
/// into registers.
static constexpr size_t kMaxRead = 32;

static size_t countScalarOps(Operation *op) {
  size_t count = 0;
  for (Region &region : op->getRegions())
    for (Block &block : region)
      count += block.getOperations().size();
  return count;
}

FusedOps::FusedOps(Operation *op)
    : anchor(getLooped(op)) {
  insert(op);
  full = getSpace(anchor.getType());
  llvm::append_range(order, llvm::seq<int64_t>(0, full.size()));
  outer = full.size();
  if (getReduction(op)) {
    // (Reductions of a part of a dimension are refused before.)
    SmallVector<int64_t> reduced =
        getReducedDims(cast<tv::ElementOpInterface>(op)).value();
    llvm::erase_if(
        order, [&](int64_t dim) { return llvm::is_contained(reduced, dim); });
    outer = order.size();
    llvm::append_range(order, reduced);
    reduces = true;
  }
}

bool FusedOps::isOuter(Value value) const {
  if (!reduces || outer == full.size())
    return false;
  Space space = getSpace(value.getType());
  return space.size() == outer;
}

/// Whether the op repeats elements of its operand, whose dimensions are the
/// first of the result's.
static bool repeatsAlongFirst(Operation *op, size_t outer) {
  layout::Rule rule = cast<tv::ShardingRuleOpInterface>(op).getShardingRule();
  const std::vector<layout::DimFactors> &from = rule.operands.front(),
                                        &to = rule.results.front();
  return from.size() == outer &&
         std::equal(from.begin(), from.end(), to.begin());
}

bool FusedOps::reads(Value operand, bool atOuter) const {
  Operation *op = operand.getDefiningOp();
  if (!op)
    return true;
  if (ops.contains(op))
    return isOuter(operand) == atOuter;
  if (!isFree(op)) // memory
    return true;
  for (Value value : getReadValues(op))
    if (Operation *source = value.getDefiningOp();
        source && ops.contains(source))
      // The outer value at the same outer indices.
      return !atOuter && isOuter(value) && repeatsAlongFirst(op, outer);
  return !isBehind(operand);
}

bool FusedOps::isBehind(Value value) const {
  SmallVector<Value> worklist = {value};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    if (!op)
      continue;
    if (ops.contains(op))
      return true;
    if (isFree(op))
      llvm::append_range(worklist, getReadValues(op));
  }
  return false;
}

bool FusedOps::isReadOnlyBy(Operation *reader) const {
  return llvm::all_of(ops, [&](Operation *op) {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      return user == reader || ops.contains(user);
    });
  });
}

bool FusedOps::canAdd(Operation *op) const {
  const bool isReduction = getReduction(op).has_value();
  if (!(isElementwise(op) || isReduction) ||
      scalarOps + countScalarOps(op) > kMaxScalarOps)
    return false;
  Space space = getSpace(getLooped(op).getType());
  bool atFull = space == full;
  bool atOuter = false;
  if (!atFull && reduces && space.size() == outer) {
    atOuter = true;
    for (size_t i = 0; i < outer; ++i)
      atOuter &= space[i] == full[order[i]];
  }
  if (!atFull && !atOuter)
    return false;
  size_t outerOfOp = outer;
  SmallVector<int64_t> orderOfOp = order;
  if (isReduction) {
    // Over the innermost dimensions, all that are inner; over others only if
    // the loops need no order for what is stored.
    FusedOps own(op);
    outerOfOp = own.outer;
    if (atOuter || outerOfOp == full.size() ||
        (!llvm::is_sorted(own.order) && !storesOuter &&
         (reduces || !isReadOnlyBy(op))))
      return false;
    orderOfOp = own.order;
  }
  if (reduces && !atOuter &&
      (outerOfOp != outer || orderOfOp != order ||
       !(llvm::is_sorted(order) || storesOuter)))
    return false;
  llvm::SmallDenseSet<Value> anew;
  for (Value value : op->getOperands())
    if (!fromMemory.contains(value) && !ops.contains(value.getDefiningOp()))
      anew.insert(value);
  if (fromMemory.size() + anew.size() > kMaxRead)
    return false;
  for (Value value : op->getOperands())
    if (!reads(value, atOuter))
      return false;
  // Elements that a region loads are anywhere, of an operand too.
  llvm::SetVector<Value> loaded;
  getUsedValuesDefinedAbove(op->getRegions(), loaded);
  return llvm::none_of(loaded, [&](Value value) { return isBehind(value); });
}

void FusedOps::insert(Operation *op) {
  ops.insert(op);
  scalarOps += countScalarOps(op);
  for (Value value : op->getResults())
    fromMemory.erase(value);
  for (Value value : op->getOperands())
    if (!ops.contains(value.getDefiningOp()))
      fromMemory.insert(value);
}

void FusedOps::add(Operation *op) {
  insert(op);
  if (!getReduction(op))
    return;
  FusedOps own(op);
  reduces = true;
  outer = own.outer;
  order = std::move(own.order);
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

namespace {
/// When each value of the kernel can be computed.
class Stages {
public:
  Stages(const FusedOps &fused) : fused(fused) {
    for (Operation *op : fused.ops)
      last = std::max(last, stageOf(op));
  }

  /// The first stage whose loop may compute a value of `op`; a reduction is
  /// complete after it.
  size_t stageOf(Operation *op) {
    auto [it, isNew] = known.try_emplace(op, 0);
    if (!isNew)
      return it->second;
    size_t stage = 0;
    for (Value value : getReadValues(op))
      stage = std::max(stage, readyAt(value));
    known[op] = stage;
    return stage;
  }

  /// The first stage whose loop may use the value.
  size_t readyAt(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !(fused.ops.contains(op) || isFree(op)))
      return 0;
    return stageOf(op) + (getReduction(op) ? 1 : 0);
  }

  size_t count() const { return last + 1; }

private:
  const FusedOps &fused;
  llvm::DenseMap<Operation *, size_t> known;
  size_t last = 0;
};
} // namespace

void tessera::emitFused(KernelEmitter &emitter, const FusedOps &fused,
                        ArrayRef<Value> outputs) {
  for (Value output : outputs)
    emitter.addOutput(output);
  SmallVector<Value> extents = emitter.localExtents(fused.anchor);
  SmallVector<int64_t> order = fused.order;
  // Without a reduction the loops follow memory.
  if (!fused.reduces)
    order = getOwnMemory(outputs.front().getType()).order;
  SmallVector<Value> loopExtents;
  for (int64_t dim : order)
    loopExtents.push_back(extents[dim]);
  ArrayRef<Value> outerExtents = ArrayRef(loopExtents).take_front(fused.outer);
  ArrayRef<Value> innerExtents = ArrayRef(loopExtents).drop_front(fused.outer);

  Stages stages(fused);
  emitter.parallel(outerExtents, [&](ArrayRef<Value> outer) {
    auto indicesOf = [&](ArrayRef<Value> inner) {
      SmallVector<Value> indices(order.size());
      for (size_t i = 0; i < order.size(); ++i)
        indices[order[i]] =
            i < outer.size() ? outer[i] : inner[i - outer.size()];
      return indices;
    };
    if (!fused.reduces) {
      SmallVector<Value> indices = indicesOf({});
      for (Value output : outputs)
        emitter.store(emitter.element(output, indices), output, indices);
      return;
    }
    for (size_t stage = 0; stage < stages.count(); ++stage) {
      // What is the same in the whole inner loop.
      for (Operation *op : fused.ops)
        if (!getReduction(op))
          for (Value result : op->getResults())
            if (fused.isOuter(result) && stages.readyAt(result) <= stage)
              emitter.element(result, outer);

      SmallVector<tv::ElementOpInterface> reductions;
      for (Operation *op : fused.ops)
        if (getReduction(op) && stages.stageOf(op) == stage)
          reductions.push_back(cast<tv::ElementOpInterface>(op));
      SmallVector<Value> stored;
      for (Value output : outputs)
        if (!fused.isOuter(output) && stages.readyAt(output) == stage &&
            !getReduction(output.getDefiningOp()))
          stored.push_back(output);
      if (!reductions.empty() || !stored.empty()) {
        auto combiners =
            llvm::map_to_vector(reductions, [](tv::ElementOpInterface op) {
              auto type = cast<RankedTensorType>(op.getLooped().getType());
              return KernelEmitter::Reduction{op.getReduction()->combiner,
                                              type.getElementType()};
            });
        SmallVector<Value> sums =
            emitter.reduce(innerExtents, combiners, [&](ArrayRef<Value> inner) {
              SmallVector<Value> indices = indicesOf(inner), addends;
              for (Value output : stored)
                emitter.store(emitter.element(output, indices), output,
                              indices);
              for (tv::ElementOpInterface reduction : reductions)
                llvm::append_range(addends,
                                   reduction.emitElement(emitter, indices));
              return addends;
            });
        for (auto [reduction, sum] : llvm::zip_equal(reductions, sums))
          emitter.setElement(reduction->getResult(0), outer, sum);
      }
    }
    for (Value output : outputs)
      if (fused.isOuter(output) || getReduction(output.getDefiningOp()))
        emitter.store(emitter.element(output, outer), output, outer);
  });
}
