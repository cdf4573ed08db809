//===- FusedKernel.cpp - ops that run in one loop nest --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernels/FusedKernel.h"
#include "Kernels/BuildLocal.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
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

llvm::SetVector<Value>
tessera::getMemoryRead(llvm::SetVector<Value> read,
                       const llvm::DenseSet<Operation *> &copied) {
  llvm::SetVector<Value> memory;
  for (size_t i = 0; i < read.size(); ++i) {
    Value value = read[i];
    Operation *op = value.getDefiningOp();
    if (op && (isFree(op) || copied.contains(op)))
      read.insert_range(getReadValues(op));
    else
      memory.insert(value);
  }
  return memory;
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
static std::optional<int64_t>
countCopied(OpOperand &use, llvm::function_ref<bool(Operation *)> isLooped) {
  Operation *op = use.getOwner();
  if (!isa<tv::WindowOpInterface>(op) || !isa<tv::ElementOpInterface>(op) ||
      !isLooped(op))
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
      std::optional<int64_t> count = countCopied(use, isLooped);
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

/// A kernel reads no more words: a stage loads all that it reads at first, into
/// registers, of a tensor a vector.
static constexpr size_t kMaxWords = 128;

static size_t countWords(Value read) {
  return cast<RankedTensorType>(read.getType()).getRank() == 0 ? 1 : 4;
}

/// A kernel of rows has no more sums of columns, and those of such rows: a
/// thread keeps its part of each in registers, and rows in shared memory, in
/// vectors.
static constexpr size_t kMaxSums = 3;
static constexpr int64_t kMinColumns = 1 << 8, kMaxColumns = 1 << 14,
                         kMaxRowBytes = 48 << 10, kVector = 8;
/// Shorter runs would write as much of the sums as of the rows.
static constexpr int64_t kMinRun = 3;
/// So many columns are work for a multiprocessor; of shorter rows it has more
/// runs.
static constexpr int64_t kColumnsAtOnce = 1 << 13, kMaxRunsAtOnce = 8;

static size_t countScalarOps(Operation *op) {
  size_t count = 0;
  for (Region &region : op->getRegions())
    for (Block &block : region)
      count += block.getOperations().size();
  return count;
}

FusedOps::FusedOps(Operation *op, int64_t multiprocessors)
    : anchor(getLooped(op)), multiprocessors(multiprocessors) {
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

bool FusedOps::hasLoopsOf(const FusedOps &other) const {
  auto meshOf = [](Value value) { return getLocal(value).getView().getMesh(); };
  return full == other.full && order == other.order && outer == other.outer &&
         meshOf(anchor) == meshOf(other.anchor);
}

bool FusedOps::isOuter(Value value) const {
  if (!reduces || outer == full.size() || sums.contains(value.getDefiningOp()))
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
    return !sums.contains(op) && isOuter(operand) == atOuter;
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

/// Extents of dimensions, together; nothing if they are not known.
static std::optional<int64_t> count(RankedTensorType type,
                                    ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    if (type.isDynamicDim(dim) ||
        __builtin_mul_overflow(count, type.getDimSize(dim), &count))
      return std::nullopt;
  return count;
}

bool tessera::reducesColumns(Operation *op) {
  return getReduction(op) && !llvm::is_sorted(FusedOps(op).order);
}

std::pair<SmallVector<Operation *>, SmallVector<Operation *>>
tessera::partitionColumns(ArrayRef<Operation *> ops) {
  SmallVector<Operation *> columns, others;
  for (Operation *op : ops)
    (reducesColumns(op) ? columns : others).push_back(op);
  return {columns, others};
}

void tessera::putSumsLast(SmallVectorImpl<Operation *> &ops) {
  auto [columns, others] = partitionColumns(ops);
  if (llvm::none_of(others, [](Operation *op) { return getReduction(op); }))
    return;
  ops = std::move(others);
  llvm::append_range(ops, columns);
}

/// Whether it reduces the outer dimensions of these rows, which are such as
/// have sums.
bool FusedOps::isSumOfColumns(Operation *op) const {
  if (multiprocessors == 0 || !reduces || outer == 0 || outer == full.size() ||
      !llvm::is_sorted(order) || !reducesColumns(op) || sums.size() == kMaxSums)
    return false;
  FusedOps own(op);
  const size_t inner = full.size() - outer;
  if (own.full != full || own.outer != inner ||
      !ArrayRef(own.order).take_front(inner).equals(
          ArrayRef(order).drop_front(outer)))
    return false;
  auto type = cast<RankedTensorType>(anchor.getType());
  const ArrayRef<int64_t> dims(order);
  std::optional<int64_t> rows = count(type, dims.take_front(outer)),
                         columns = count(type, dims.drop_front(outer));
  auto element = dyn_cast<FloatType>(
      cast<RankedTensorType>(own.anchor.getType()).getElementType());
  return rows && columns && *rows >= kMinRun * multiprocessors &&
         *columns >= kMinColumns && *columns <= kMaxColumns &&
         *columns % kVector == 0 && element && element.getWidth() <= 32 &&
         *columns * element.getWidth() / 8 <= kMaxRowBytes &&
         LocalShape(anchor).isPlain();
}

bool FusedOps::canAdd(Operation *op) const {
  const bool isSum = isSumOfColumns(op);
  const bool isReduction = !isSum && getReduction(op).has_value();
  if (!(isElementwise(op) || isReduction || isSum) ||
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
  llvm::SmallSetVector<Value, 4> all;
  all.insert_range(fromMemory);
  for (Value value : op->getOperands())
    if (!ops.contains(value.getDefiningOp()))
      all.insert(value);
  size_t words = 0;
  for (Value value : all)
    words += countWords(value);
  if (words > kMaxWords)
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
  const bool isSum = isSumOfColumns(op);
  insert(op);
  if (isSum)
    sums.insert(op);
  if (isSum || !getReduction(op))
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

namespace {
/// Runs of neighbouring rows, each of which has parts of sums of columns.
class Runs {
public:
  Runs(KernelEmitter &emitter, const FusedOps &fused, ArrayRef<Value> inner);

  /// Emits, for all rows of all runs, what is made for the outer indices.
  void emit(ArrayRef<Value> outerExtents,
            llvm::function_ref<void(ArrayRef<Value>)> row);
  /// Adds to the part of the present run.
  void add(tv::ElementOpInterface sum, Value addend, ArrayRef<Value> inner);
  /// Joins the parts of all runs.
  void join();

private:
  KernelEmitter::Reduction getReduction(tv::ElementOpInterface sum) {
    auto type = cast<RankedTensorType>(sum.getLooped().getType());
    return {sum.getReduction()->combiner, type.getElementType()};
  }
  SmallVector<Value> getPlace(Value run, ArrayRef<Value> inner) {
    SmallVector<Value> place = {run};
    llvm::append_range(place, inner);
    return place;
  }

  KernelEmitter &emitter;
  SmallVector<Value> inner; ///< extents
  llvm::MapVector<Operation *, Value> parts;
  int64_t rows, ofRun, runs;
  Value run; ///< the present one
};
} // namespace

Runs::Runs(KernelEmitter &emitter, const FusedOps &fused, ArrayRef<Value> inner)
    : emitter(emitter), inner(inner) {
  auto type = cast<RankedTensorType>(fused.anchor.getType());
  const ArrayRef<int64_t> dims(fused.order),
      columnDims = dims.drop_front(fused.outer);
  rows = *count(type, dims.take_front(fused.outer));
  const int64_t atOnce = std::clamp<int64_t>(
      kColumnsAtOnce / *count(type, columnDims), 1, kMaxRunsAtOnce);
  ofRun = std::max(llvm::divideCeil(rows, atOnce * fused.multiprocessors),
                   uint64_t(kMinRun));
  runs = llvm::divideCeil(rows, ofRun);
  LocalShape whole(fused.anchor), shape;
  shape.mesh = whole.mesh;
  shape.add(layout::Extent(runs));
  for (int64_t dim : columnDims)
    shape.add(whole, dim);
  for (Operation *op : fused.sums) {
    auto sum = cast<tv::ElementOpInterface>(op);
    parts[op] = emitter.addScratch(
        shape.type(getKernelScalar(getReduction(sum).element)));
  }
}

void Runs::emit(ArrayRef<Value> outerExtents,
                llvm::function_ref<void(ArrayRef<Value>)> row) {
  OpBuilder &b = emitter.builder();
  Arith math{b, emitter.loc()};
  emitter.parallel(emitter.index(runs), [&](ArrayRef<Value> at) {
    run = at[0];
    emitter.parallel(inner, [&](ArrayRef<Value> column) {
      for (auto [op, part] : parts) {
        KernelEmitter::Reduction sum =
            getReduction(cast<tv::ElementOpInterface>(op));
        memref::StoreOp::create(b, emitter.loc(),
                                emitter.identity(sum.combiner, sum.element),
                                part, getPlace(run, column));
      }
    });
    Value first = math.mul(run, emitter.index(ofRun));
    Value count = emitter.index(ofRun);
    if (rows % ofRun != 0)
      count = arith::MinUIOp::create(b, emitter.loc(), count,
                                     math.sub(emitter.index(rows), first));
    emitter.inOrder(count, {}, [&](ArrayRef<Value> i, ValueRange) {
      Value rest = math.add(first, i[0]);
      SmallVector<Value> outer(outerExtents.size());
      for (size_t dim = outer.size(); dim-- > 0;) {
        outer[dim] = dim == 0 ? rest : math.rem(rest, outerExtents[dim]);
        rest = dim == 0 ? rest : math.div(rest, outerExtents[dim]);
      }
      row(outer);
      return SmallVector<Value>();
    });
  });
}

void Runs::add(tv::ElementOpInterface sum, Value addend,
               ArrayRef<Value> inner) {
  Value part = parts[sum.getOperation()];
  SmallVector<Value> place = getPlace(run, inner);
  KernelEmitter::Reduction reduction = getReduction(sum);
  Value before =
      memref::LoadOp::create(emitter.builder(), emitter.loc(), part, place);
  memref::StoreOp::create(emitter.builder(), emitter.loc(),
                          emitter.combine(reduction.combiner, reduction.element,
                                          before, addend, /*mayReorder=*/false),
                          part, place);
}

void Runs::join() {
  SmallVector<KernelEmitter::Reduction> reductions;
  for (auto [op, part] : parts)
    reductions.push_back(getReduction(cast<tv::ElementOpInterface>(op)));
  emitter.parallel(inner, [&](ArrayRef<Value> column) {
    SmallVector<Value> sums = emitter.reduce(
        emitter.index(runs), reductions, [&](ArrayRef<Value> at) {
          SmallVector<Value> addends;
          for (auto [op, part] : parts)
            addends.push_back(memref::LoadOp::create(emitter.builder(),
                                                     emitter.loc(), part,
                                                     getPlace(at[0], column)));
          return addends;
        });
    for (auto [part, sum] : llvm::zip_equal(parts, sums))
      emitter.store(sum, part.first->getResult(0), column);
  });
}

/// The condition without which all that is reduced is an identity; null if
/// there is none.
static Value getCondition(scf::ParallelOp loop) {
  Value condition;
  auto reduce = cast<scf::ReduceOp>(loop.getBody()->getTerminator());
  for (auto [addend, identity] :
       llvm::zip_equal(reduce.getOperands(), loop.getInitVals())) {
    auto choice = addend.getDefiningOp<arith::SelectOp>();
    Attribute none, init;
    if (!choice || (condition && choice.getCondition() != condition) ||
        !matchPattern(choice.getFalseValue(), m_Constant(&none)) ||
        !matchPattern(identity, m_Constant(&init)) || none != init)
      return {};
    condition = choice.getCondition();
  }
  return condition;
}

/// What `value` is computed of in the loop, in order; nothing if it is not the
/// same in all iterations.
static std::optional<SmallVector<Operation *>> getSame(scf::ParallelOp loop,
                                                       Value value) {
  auto isInput = [](Value memref) {
    return llvm::none_of(memref.getUsers(), llvm::IsaPred<memref::StoreOp>);
  };
  auto mayVary = [&](Operation *op) {
    auto load = dyn_cast<memref::LoadOp>(op);
    const bool isFixed =
        load ? isInput(load.getMemRef())
             : op->getNumRegions() != 0 || isMemoryEffectFree(op);
    return isFixed ? WalkResult::advance() : WalkResult::interrupt();
  };
  llvm::SetVector<Value> read;
  llvm::DenseSet<Operation *> made;
  read.insert(value);
  for (size_t i = 0; i < read.size(); ++i) {
    if (llvm::is_contained(loop.getInductionVars(), read[i]))
      return std::nullopt;
    Operation *op = read[i].getDefiningOp();
    if (!op || !loop->isAncestor(op))
      continue;
    if (op->walk(mayVary).wasInterrupted())
      return std::nullopt;
    made.insert(op);
    read.insert_range(op->getOperands());
    getUsedValuesDefinedAbove(op->getRegions(), read);
  }
  SmallVector<Operation *> ordered;
  for (Operation &op : *loop.getBody())
    if (made.contains(&op))
      ordered.push_back(&op);
  return ordered;
}

/// Where all that a loop reduces is sum(select(c, x, 0)), and c the same in all
/// of it, the loop is in a branch.
static SmallVector<Value> branchAround(OpBuilder &b,
                                       SmallVector<Value> reduced) {
  auto loop = reduced[0].getDefiningOp<scf::ParallelOp>();
  Value condition = getCondition(loop);
  std::optional<SmallVector<Operation *>> made;
  if (condition)
    made = getSame(loop, condition);
  if (!made)
    return reduced;
  for (Operation *op : *made)
    op->moveBefore(loop);
  auto branch = scf::IfOp::create(b, loop.getLoc(), loop.getResultTypes(),
                                  condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loop.getLoc(), loop.getResults());
  loop->moveBefore(branch.thenBlock(), branch.thenBlock()->begin());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loop.getLoc(), loop.getInitVals());
  for (Operation &op : llvm::make_early_inc_range(*loop.getBody()))
    if (auto choice = dyn_cast<arith::SelectOp>(op);
        choice && choice.getCondition() == condition) {
      choice.replaceAllUsesWith(choice.getTrueValue());
      choice.erase();
    }
  return SmallVector<Value>(branch.getResults());
}

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
  std::optional<Runs> runs;
  if (!fused.sums.empty())
    runs.emplace(emitter, fused, innerExtents);
  auto isSum = [&](Value value) {
    return fused.sums.contains(value.getDefiningOp());
  };
  // (In a branch, a loop could keep nothing for the next one.)
  const bool isOneLoop =
      !runs && llvm::is_sorted(order) &&
      llvm::all_of(fused.ops,
                   [&](Operation *op) {
                     return !getReduction(op) || stages.stageOf(op) == 0;
                   }) &&
      llvm::all_of(outputs, [&](Value output) {
        return fused.isOuter(output) || getReduction(output.getDefiningOp());
      });
  auto emitOuter = [&](ArrayRef<Value> outer) {
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

      SmallVector<tv::ElementOpInterface> reductions, sums;
      for (Operation *op : fused.ops)
        if (getReduction(op) && stages.stageOf(op) == stage)
          (fused.sums.contains(op) ? sums : reductions)
              .push_back(cast<tv::ElementOpInterface>(op));
      SmallVector<Value> stored;
      for (Value output : outputs)
        if (!fused.isOuter(output) && stages.readyAt(output) == stage &&
            !getReduction(output.getDefiningOp()))
          stored.push_back(output);
      if (!reductions.empty() || !stored.empty() || !sums.empty()) {
        auto combiners =
            llvm::map_to_vector(reductions, [](tv::ElementOpInterface op) {
              auto type = cast<RankedTensorType>(op.getLooped().getType());
              return KernelEmitter::Reduction{op.getReduction()->combiner,
                                              type.getElementType()};
            });
        SmallVector<Value> reduced =
            emitter.reduce(innerExtents, combiners, [&](ArrayRef<Value> inner) {
              SmallVector<Value> indices = indicesOf(inner), addends;
              for (Value output : stored)
                emitter.store(emitter.element(output, indices), output,
                              indices);
              for (tv::ElementOpInterface sum : sums)
                runs->add(sum, sum.emitElement(emitter, indices).front(),
                          inner);
              for (tv::ElementOpInterface reduction : reductions)
                llvm::append_range(addends,
                                   reduction.emitElement(emitter, indices));
              return addends;
            });
        if (isOneLoop && !reduced.empty())
          reduced = branchAround(emitter.builder(), std::move(reduced));
        for (auto [reduction, value] : llvm::zip_equal(reductions, reduced))
          emitter.setElement(reduction->getResult(0), outer, value);
      }
    }
    for (Value output : outputs)
      if (fused.isOuter(output) ||
          (getReduction(output.getDefiningOp()) && !isSum(output)))
        emitter.store(emitter.element(output, outer), output, outer);
  };
  if (!runs)
    return emitter.parallel(outerExtents, emitOuter);
  runs->emit(outerExtents, emitOuter);
  runs->join();
}
