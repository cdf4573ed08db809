//===- Grouping.cpp - which ops run together ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op joins the kernel of one of its operands if it fits into its loops and
// no other step lies between them, else it starts a step of its own. A kernel
// is in one variant of a choice with all its ops, or in none. What is cheap to
// make of less is not kept for other kernels, small kernels are joined, and
// sums of columns go into the kernel of the rows. The steps come in an order
// that their data asks for, collectives in the order of the program.
//
//===----------------------------------------------------------------------===//

#include "Kernels/Grouping.h"
#include "Comm/Comm.h"
#include "Kernels/LoopKernels.h"
#include "Kernels/Windows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/BitVector.h"

#include <queue>

using namespace mlir;
using namespace tessera;

namespace {
class Grouper {
public:
  Grouper(func::FuncOp main, ArrayRef<std::string> matmul)
      : main(main), target(plan::getTarget(main)), matmul(matmul) {}
  LogicalResult findProducts();
  void group();
  void computeAgain();
  void sort();
  void joinSums();
  void joinFew();
  Grouping finish();

private:
  using Steps = llvm::SmallSetVector<size_t, 4>;

  bool hasKernel(Operation *op) const;
  std::optional<plan::Fusion> getEpilogue(Operation *product) const;
  void chooseSums();
  SmallVector<tv::ContractionOpInterface>
  getProductsBeside(tv::ReduceOp reduce);
  bool moveBefore(Operation *op, Operation *place);
  bool isFusable(Operation *op) const;
  void addProduct(Operation *product, Operation *at);
  void addStep(Operation *op, bool fused);
  std::optional<SmallVector<size_t>> getBetween(const Steps &sources,
                                                size_t target);
  void moveBefore(ArrayRef<size_t> between, size_t target);
  std::optional<Steps> getReaders(Value value);
  bool isStored(Value value);
  std::optional<FusedOps> fuse(llvm::SetVector<Operation *> ops);
  void computeAgain(Operation *op);
  bool join(size_t step, size_t other);
  Steps getSources(size_t step);
  const Steps &getKnownSources(size_t step);
  void forEachRead(PlanStep &step, llvm::function_ref<void(Value)> visit);

  func::FuncOp main;
  const plan::Target &target;
  ArrayRef<std::string> matmul;
  llvm::DenseMap<Operation *, Product> products;
  /// To the library's products whose epilogues they are.
  llvm::DenseMap<Operation *, Operation *> epilogues;
  /// What a library's product sums as well.
  llvm::DenseMap<Operation *, plan::Fusion> sumsOf;
  llvm::DenseSet<Operation *> summed; ///< the reductions in `sumsOf`
  std::vector<PlanStep> steps;
  /// The steps, each behind all that it depends on, while they are made.
  std::vector<size_t> order, position;
  std::optional<size_t> lastCollective; ///< step
  llvm::DenseMap<Operation *, size_t> stepOf;
  /// While ops are added to steps: what those that are not added to depend on.
  std::vector<std::optional<Steps>> sourcesOf;
  llvm::DenseSet<Operation *> copied; ///< computed where they are read
  SmallVector<Operation *> program;   ///< its ops, in the order of `placeOf`
  llvm::DenseMap<Operation *, size_t> placeOf;
  llvm::DenseMap<Operation *, plan::Variant> variantOf;
};
} // namespace

/// Whether loops over results compute it: a window, only with what it is on.
bool Grouper::isFusable(Operation *op) const {
  auto element = dyn_cast<tv::ElementOpInterface>(op);
  if (!element)
    return isElementwise(op) && !epilogues.contains(op);
  return element.hasElements() &&
         (!getWindow(op) ||
          copied.contains(
              cast<tv::WindowOpInterface>(op).getWhole().getDefiningOp()));
}

/// What a library does with all that a product sums.
std::optional<plan::Fusion> Grouper::getEpilogue(Operation *product) const {
  for (Operation *user : product->getUsers())
    if (std::optional<plan::Fusion> fusion = target.fuse(product, user))
      if (fusion->epilogue)
        return fusion;
  return std::nullopt;
}

bool tessera::isRead(OpOperand &operand) {
  // Captured tensors say what has gradients, and its regions read.
  auto grad = dyn_cast<tv::AttentionGradOp>(operand.getOwner());
  auto isOwn = [&](OpOperand &each) { return &each == &operand; };
  return !grad || llvm::none_of(grad.getCapturedMutable(), isOwn);
}

void Grouper::forEachRead(PlanStep &step,
                          llvm::function_ref<void(Value)> visit) {
  // Through the free ops that the kernel computes itself.
  llvm::SetVector<Value> read;
  if (step.fused) {
    for (Operation *op : step.fused->ops) {
      if (!hasKernel(op))
        read.insert_range(getReadValues(op));
      else // in memory, all of it
        llvm::for_each(op->getOperands(), visit);
    }
  } else if (hasOwnOrder(step.op)) {
    read.insert_range(step.op->getOperands());
  } else {
    for (OpOperand &operand : step.op->getOpOperands())
      if (isRead(operand))
        visit(operand.get());
    for (const plan::Fusion &fusion : step.joined)
      if (fusion.x)
        visit(fusion.x);
    getUsedValuesDefinedAbove(step.op->getRegions(), read);
  }
  llvm::for_each(getMemoryRead(std::move(read), copied), visit);
}

Grouper::Steps Grouper::getSources(size_t step) {
  Steps sources;
  forEachRead(steps[step], [&](Value value) {
    if (auto source = stepOf.find(value.getDefiningOp());
        source != stepOf.end() && source->second != step)
      sources.insert(source->second);
  });
  if (steps[step].before)
    sources.insert(*steps[step].before);
  return sources;
}

const Grouper::Steps &Grouper::getKnownSources(size_t step) {
  if (sourcesOf.size() <= step)
    sourcesOf.resize(step + 1);
  if (!sourcesOf[step])
    sourcesOf[step] = getSources(step);
  return *sourcesOf[step];
}

/// What of `sources`, and of what they depend on, comes after `target`; nothing
/// if one of them depends on it.
std::optional<SmallVector<size_t>> Grouper::getBetween(const Steps &sources,
                                                       size_t target) {
  SmallVector<size_t> between;
  llvm::BitVector found(steps.size());
  auto add = [&](size_t step) {
    if (position[step] <= position[target] || found.test(step))
      return;
    found.set(step);
    between.push_back(step);
  };
  for (size_t source : sources)
    add(source);
  for (size_t i = 0; i < between.size(); ++i)
    for (size_t source : getKnownSources(between[i])) {
      if (source == target)
        return std::nullopt;
      add(source);
    }
  return between;
}

/// Puts what a step has come to depend on before it.
void Grouper::moveBefore(ArrayRef<size_t> between, size_t target) {
  if (between.empty())
    return;
  const size_t begin = position[target];
  size_t end = begin;
  llvm::BitVector moved(steps.size());
  for (size_t step : between) {
    end = std::max(end, position[step] + 1);
    moved.set(step);
  }
  SmallVector<size_t> later;
  size_t at = begin;
  for (size_t step : ArrayRef(order).slice(begin, end - begin))
    if (moved.test(step))
      order[at++] = step;
    else
      later.push_back(step);
  llvm::copy(later, order.begin() + at);
  for (size_t i = begin; i < end; ++i)
    position[order[i]] = i;
}

bool Grouper::hasKernel(Operation *op) const {
  auto product = products.find(op);
  return product != products.end() && product->second.hasKernel();
}

void Grouper::addStep(Operation *op, bool fused) {
  stepOf[op] = steps.size();
  position.push_back(order.size());
  order.push_back(steps.size());
  steps.push_back({op, std::nullopt, placeOf[op], placeOf[op]});
  if (fused)
    steps.back().fused.emplace(op, target.getLimits().multiprocessors);
  if (auto product = products.find(op); product != products.end())
    steps.back().product = product->second;
  if (isa<comm::CollectiveOpInterface>(op))
    steps.back().before = std::exchange(lastCollective, stepOf[op]);
}

bool Product::hasKernel() const {
  return llvm::is_contained(variants.names, kOwnProduct);
}

LogicalResult Grouper::findProducts() {
  Block &block = main.getBody().front();
  variantOf = plan::getVariants(block);
  for (Operation &op : block) {
    if (!isa<tv::ContractionOpInterface>(op))
      continue;
    Product &product = products[&op];
    if (!matmul.empty()) {
      FailureOr<FittingVariants> fitting =
          getFittingVariants(&op, "matmul", matmul, [&](StringRef variant) {
            return target.whyNot(variant, &op);
          });
      if (failed(fitting))
        return failure();
      product.variants = *fitting;
      // In a variant of another choice there is nothing to choose.
      if (variantOf.lookup(&op))
        product.variants = {{fitting->names.front()}, DictionaryAttr()};
    }
  }
  for (auto &[product, _] : products)
    if (!hasKernel(product))
      if (std::optional<plan::Fusion> epilogue = getEpilogue(product))
        epilogues[epilogue->op] = product;
  return success();
}

/// Moves an op before another unless it is there. False if it reads what is not
/// there.
bool Grouper::moveBefore(Operation *op, Operation *place) {
  const size_t from = placeOf[op], to = placeOf[place];
  if (from < to)
    return true;
  for (Value operand : op->getOperands())
    if (Operation *source = operand.getDefiningOp())
      if (placeOf[source] >= to)
        return false;
  std::rotate(program.begin() + to, program.begin() + from,
              program.begin() + from + 1);
  for (size_t i = to; i <= from; ++i)
    placeOf[program[i]] = i;
  return true;
}

/// The products that read what a reduction sums, or whose results that is made
/// of, in order.
SmallVector<tv::ContractionOpInterface>
Grouper::getProductsBeside(tv::ReduceOp reduce) {
  SmallVector<tv::ContractionOpInterface> products;
  auto add = [&](Operation *op) {
    if (auto product = dyn_cast_or_null<tv::ContractionOpInterface>(op);
        product && product->getBlock() == reduce->getBlock() &&
        !llvm::is_contained(products, product))
      products.push_back(product);
  };
  llvm::for_each(reduce.getInput().getUsers(), add);
  if (Operation *maker = reduce.getInput().getDefiningOp())
    for (Value operand : maker->getOperands())
      add(operand.getDefiningOp());
  llvm::sort(products, [&](Operation *a, Operation *b) {
    return placeOf[a] < placeOf[b];
  });
  return products;
}

/// Where a library sums columns of what it reads or writes anyway, as a bias'
/// gradient: before all who read the sums.
void Grouper::chooseSums() {
  Block &block = main.getBody().front();
  for (auto reduce : block.getOps<tv::ReduceOp>()) {
    if (reduce->use_empty())
      continue;
    Operation *reader = block.getTerminator();
    for (Operation *user : reduce->getUsers())
      if (user = block.findAncestorOpInBlock(*user);
          placeOf[user] < placeOf[reader])
        reader = user;
    for (tv::ContractionOpInterface op : getProductsBeside(reduce)) {
      if (hasKernel(op) || sumsOf.contains(op) ||
          variantOf.lookup(op) != variantOf.lookup(reduce))
        continue;
      std::optional<plan::Fusion> fusion = target.fuse(op, reduce);
      if (!fusion || !moveBefore(op, reader))
        continue;
      sumsOf[op] = *fusion;
      summed.insert(reduce);
      break;
    }
  }
}

/// A product for a library, with all that it does, at the place of its last op.
void Grouper::addProduct(Operation *product, Operation *at) {
  addStep(product, /*fused=*/false);
  PlanStep &step = steps.back();
  step.first = step.last = placeOf[at];
  if (std::optional<plan::Fusion> epilogue = getEpilogue(product))
    step.joined.push_back(*epilogue);
  if (auto sums = sumsOf.find(product); sums != sumsOf.end())
    step.joined.push_back(sums->second);
  for (const plan::Fusion &fusion : step.joined)
    stepOf[fusion.op] = stepOf[product];
}

/// Whether the op would take but numbers from the one row of `kernel`, which
/// runs in one place: on its own it runs in many.
static bool isApart(Operation *op, const FusedOps &kernel) {
  return kernel.reduces && kernel.outer == 0 && !getReduction(op) &&
         getSpace(op->getResult(0).getType()) == kernel.full &&
         llvm::none_of(op->getOperands(), [&](Value operand) {
           return kernel.ops.contains(operand.getDefiningOp());
         });
}

void Grouper::group() {
  Block &block = main.getBody().front();
  for (Operation &op : block) {
    placeOf[&op] = program.size();
    program.push_back(&op);
  }
  chooseSums();
  copied = getCopied(block, [&](Operation *op) {
    return isFusable(op) || hasKernel(op) || isCopiedWindow(op);
  });
  for (Operation *each : program) {
    Operation &op = *each;
    if (copied.contains(&op))
      continue;
    if (isFree(&op)) {
      // Exists in memory only for those that do not compute it themselves.
      bool needed = llvm::any_of(op.getUsers(), [&](Operation *user) {
        user = block.findAncestorOpInBlock(*user);
        return !isFusable(user) && !hasOwnOrder(user) &&
               llvm::is_contained(user->getOperands(), op.getResult(0));
      });
      if (needed)
        addStep(&op, /*fused=*/true);
      continue;
    }
    if (isMemoryEffectFree(&op) && op.use_empty() &&
        !op.hasTrait<OpTrait::IsTerminator>())
      continue;
    if (summed.contains(&op))
      continue;
    if (isa<tv::ContractionOpInterface>(op) && !hasKernel(&op)) {
      // Not before what its epilogue reads is there.
      std::optional<plan::Fusion> epilogue = getEpilogue(&op);
      if (!epilogue || !epilogue->x)
        addProduct(&op, &op);
      continue;
    }
    if (Operation *product = epilogues.lookup(&op)) {
      if (!stepOf.contains(product))
        addProduct(product, &op);
      continue;
    }
    if (!isFusable(&op)) {
      addStep(&op, /*fused=*/hasKernel(&op));
      continue;
    }
    addStep(&op, /*fused=*/true);
    // The kernels that it reads from, latest first.
    const Steps sources = getSources(steps.size() - 1);
    SmallVector<size_t> latest = llvm::to_vector(sources);
    llvm::sort(latest, std::greater<size_t>());
    for (size_t target : latest) {
      if (!steps[target].fused ||
          variantOf.lookup(&op) != variantOf.lookup(steps[target].op) ||
          (steps[target].product &&
           !mayFollowProduct(*steps[target].fused, &op)) ||
          isApart(&op, *steps[target].fused) ||
          !steps[target].fused->canAdd(&op))
        continue;
      std::optional<SmallVector<size_t>> between = getBetween(sources, target);
      if (!between)
        continue;
      steps[target].fused->add(&op);
      stepOf[&op] = target;
      steps[target].op = &op;
      steps[target].last = placeOf[&op];
      steps.pop_back();
      order.pop_back();
      position.pop_back();
      if (target < sourcesOf.size())
        sourcesOf[target].reset();
      moveBefore(*between, target);
      break;
    }
  }
}

/// These and what is computed with them, in one loop nest; nothing if they do
/// not fit.
std::optional<FusedOps> Grouper::fuse(llvm::SetVector<Operation *> ops) {
  llvm::SetVector<Value> read;
  for (Operation *op : ops)
    read.insert_range(getReadValues(op));
  for (size_t i = 0; i < read.size(); ++i) {
    Operation *op = read[i].getDefiningOp();
    if (!op || !(isFree(op) || copied.contains(op)))
      continue;
    if (!isFree(op))
      ops.insert(op);
    read.insert_range(getReadValues(op));
  }
  SmallVector<Operation *> ordered = ops.takeVector();
  llvm::sort(ordered, [&](Operation *a, Operation *b) {
    return placeOf[a] < placeOf[b];
  });
  putSumsLast(ordered);
  FusedOps fused(ordered.front(), target.getLimits().multiprocessors);
  Steps own;
  for (Operation *op : ordered)
    if (!copied.contains(op))
      own.insert(stepOf[op]);
  auto staysIn = [&](Value value) {
    std::optional<Steps> readers = getReaders(value);
    return readers && llvm::all_of(*readers, [&](size_t step) {
             return own.contains(step);
           });
  };
  fused.storesOuter = llvm::all_of(ordered, [&](Operation *op) {
    return copied.contains(op) || getReduction(op) ||
           getSpace(op->getResult(0).getType()) != fused.full ||
           llvm::all_of(op->getResults(), staysIn);
  });
  for (Operation *op : ArrayRef(ordered).drop_front())
    if (!fused.tryAdd(op))
      return std::nullopt;
  return fused;
}

//===----------------------------------------------------------------------===//
// What is computed again
//===----------------------------------------------------------------------===//

/// No more scalar ops are done again for a value.
static constexpr int64_t kMaxAgain = 16;
/// What a dimension counts for that is not known.
static constexpr int64_t kDynamicSize = 1024;

static int64_t getBytes(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t size : type.getShape())
    bytes *= ShapedType::isDynamic(size) ? kDynamicSize : size;
  return bytes;
}

/// How many scalar ops a map has, none of them more than a product; nothing of
/// another op.
static std::optional<int64_t> countCheap(Operation *op) {
  if (!isPointwise(op) || op->getNumRegions() != 1 || op->getNumResults() != 1)
    return std::nullopt;
  int64_t count = 0;
  for (Operation &scalar : op->getRegion(0).front().without_terminator()) {
    if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp,
             arith::ExtFOp, arith::TruncFOp, arith::ConstantOp>(scalar))
      return std::nullopt;
    count += !isa<arith::ConstantOp>(scalar);
  }
  return count;
}

/// The steps but its own that read a value in loops; nothing if others do.
std::optional<Grouper::Steps> Grouper::getReaders(Value value) {
  Steps readers;
  llvm::SetVector<Value> values;
  values.insert(value);
  for (size_t i = 0; i < values.size(); ++i)
    for (Operation *user : values[i].getUsers()) {
      if (user->getBlock() != &main.getBody().front())
        return std::nullopt;
      if (!llvm::is_contained(getReadValues(user), values[i]))
        continue; // its extents
      auto step = stepOf.find(user);
      if (copied.contains(user) || (isFree(user) && step == stepOf.end())) {
        values.insert_range(user->getResults());
        continue;
      }
      if (step == stepOf.end() && user->use_empty())
        continue;
      if (step == stepOf.end() || isFree(user) || !steps[step->second].fused ||
          steps[step->second].product)
        return std::nullopt;
      readers.insert(step->second);
    }
  readers.remove(stepOf[value.getDefiningOp()]);
  return readers;
}

bool Grouper::isStored(Value value) {
  std::optional<Steps> readers = getReaders(value);
  return !readers || !readers->empty();
}

/// Has all who read the op's result compute it again if less goes through
/// memory then.
void Grouper::computeAgain(Operation *op) {
  if (!countCheap(op))
    return;
  const size_t step = stepOf[op];
  const Value result = op->getResult(0);
  std::optional<Steps> readers = getReaders(result);
  if (!readers || readers->empty())
    return;
  const llvm::SetVector<Operation *> &own = steps[step].fused->ops;
  llvm::SetVector<Operation *> again;
  llvm::SetVector<Value> read, memory;
  int64_t count = 0;
  read.insert(result);
  for (size_t i = 0; i < read.size(); ++i) {
    Operation *maker = read[i].getDefiningOp();
    if (maker && !isFree(maker)) {
      const bool isOwn = own.contains(maker);
      if (!copied.contains(maker) && read[i] != result &&
          (!isOwn || getBytes(read[i]) < getBytes(result) ||
           isStored(read[i]))) {
        memory.insert(read[i]);
        continue;
      }
      std::optional<int64_t> more = countCheap(maker);
      if (!more || (count += *more) > kMaxAgain)
        return;
      again.insert(maker);
    } else if (!maker) {
      memory.insert(read[i]);
      continue;
    }
    read.insert_range(getReadValues(maker));
  }
  int64_t bytes = 0;
  for (Value value : memory)
    if (own.contains(value.getDefiningOp()) && !isStored(value))
      bytes += getBytes(value);
  for (size_t reader : *readers) {
    llvm::SetVector<Operation *> ops = steps[reader].fused->ops;
    ops.insert_range(again);
    if (variantOf.lookup(op) != variantOf.lookup(steps[reader].op) ||
        !fuse(std::move(ops)))
      return;
    llvm::SetVector<Value> all = memory;
    forEachRead(steps[reader], [&](Value value) { all.remove(value); });
    for (Value value : all)
      bytes += getBytes(value);
  }
  if (bytes >= getBytes(result) * int64_t(1 + readers->size()))
    return;
  for (Operation *each : again) {
    copied.insert(each);
    steps[step].fused->ops.remove(each);
  }
}

/// Instead of values that are cheap to make of less, others read that.
void Grouper::computeAgain() {
  for (size_t step = 0; step < steps.size(); ++step)
    if (steps[step].fused && !steps[step].product)
      for (Operation *op : llvm::to_vector(steps[step].fused->ops))
        if (!isFree(op) && !copied.contains(op))
          computeAgain(op);
}

//===----------------------------------------------------------------------===//
// The order of steps
//===----------------------------------------------------------------------===//

/// Puts the steps in an order that their data asks for.
void Grouper::sort() {
  std::vector<Steps> users(steps.size());
  std::vector<size_t> waitsFor(steps.size());
  for (size_t step = 0; step < steps.size(); ++step)
    for (size_t source : getSources(step))
      if (users[source].insert(step))
        ++waitsFor[step];
  using Ready = std::pair<size_t, size_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<Ready>> ready;
  for (size_t step = 0; step < steps.size(); ++step)
    if (waitsFor[step] == 0)
      ready.push({steps[step].last, step});
  std::vector<PlanStep> sorted;
  std::vector<size_t> places(steps.size());
  while (!ready.empty()) {
    size_t step = ready.top().second;
    ready.pop();
    for (size_t user : users[step])
      if (--waitsFor[user] == 0)
        ready.push({steps[user].last, user});
    places[step] = sorted.size();
    sorted.push_back(std::move(steps[step]));
  }
  assert(sorted.size() == steps.size() && "steps that wait for each other");
  steps = std::move(sorted);
  for (PlanStep &step : steps)
    if (step.before)
      step.before = places[*step.before];
  for (auto &[_, step] : stepOf)
    step = places[step];
}

//===----------------------------------------------------------------------===//
// Kernels side by side
//===----------------------------------------------------------------------===//

/// A kernel of no more elements is little more than its launch.
static constexpr int64_t kFewElements = 1 << 15;

static bool hasFewElements(const PlanStep &step) {
  if (!step.fused || step.product || step.fused->ops.empty() ||
      isFree(step.fused->ops.front()))
    return false;
  auto type = cast<RankedTensorType>(step.fused->anchor.getType());
  return type.hasStaticShape() && type.getNumElements() <= kFewElements;
}

/// Puts the ops of a step with the same loops into the kernel of `step`.
bool Grouper::join(size_t step, size_t other) {
  if (variantOf.lookup(steps[step].op) != variantOf.lookup(steps[other].op))
    return false;
  // In the order of the program: what is joined either way is one kernel.
  SmallVector<Operation *> sorted(steps[step].fused->ops.getArrayRef());
  llvm::append_range(sorted, steps[other].fused->ops);
  llvm::sort(sorted, [&](Operation *a, Operation *b) {
    return placeOf.lookup(a) < placeOf.lookup(b);
  });
  llvm::SetVector<Operation *> ops(sorted.begin(), sorted.end());
  if (!fuse(ops))
    return false;
  for (Operation *op : steps[other].fused->ops)
    stepOf[op] = step;
  steps[other].fused->ops.clear();
  steps[step].fused->ops = std::move(ops);
  return true;
}

/// So many small kernels become one at most: where there are many of a kind,
/// most of what is compiled are kernels of so many, and few are of what is
/// left.
static constexpr size_t kMaxJoined = 4;

/// Small kernels with the same loops become one: at the place of the first if
/// all that the second reads is there before, else at that of the second, if
/// none between reads the first.
void Grouper::joinFew() {
  std::vector<size_t> joined(steps.size(), 1); ///< kernels that one was
  auto joinInto = [&](size_t step, size_t other) {
    if (joined[step] + joined[other] > kMaxJoined || !join(step, other))
      return false;
    joined[step] += joined[other];
    return true;
  };
  llvm::BitVector isRead(steps.size());
  SmallVector<size_t> open; ///< one for all with the same loops
  for (size_t step = 0; step < steps.size(); ++step) {
    Steps sources = getSources(step);
    if (hasFewElements(steps[step])) {
      const FusedOps &own = *steps[step].fused;
      auto found = llvm::find_if(open, [&](size_t other) {
        return own.hasLoopsOf(*steps[other].fused);
      });
      const bool isBefore =
          found != open.end() &&
          llvm::all_of(sources, [&](size_t source) { return source < *found; });
      if (found == open.end())
        open.push_back(step);
      else if (!isBefore || !joinInto(*found, step)) {
        if (!isBefore && !isRead[*found])
          joinInto(step, *found);
        *found = step;
      }
    }
    for (size_t source : sources)
      isRead.set(source);
  }
}

/// Sums of columns go into a kernel of rows that has at hand all that they
/// read, if what they depend on is there before it, and what depends on them
/// comes after it.
void Grouper::joinSums() {
  std::vector<size_t> firstReader(steps.size(), steps.size());
  llvm::DenseMap<Value, SmallVector<size_t>> kernelsOf; ///< that read it
  auto hasRows = [&](const PlanStep &step) {
    return step.fused && step.fused->reduces && !step.product &&
           step.fused->outer > 0 && step.fused->multiprocessors > 0 &&
           llvm::is_sorted(step.fused->order);
  };
  for (size_t step = 0; step < steps.size(); ++step) {
    for (size_t source : getSources(step))
      firstReader[source] = std::min(firstReader[source], step);
    if (hasRows(steps[step]))
      forEachRead(steps[step],
                  [&](Value value) { kernelsOf[value].push_back(step); });
  }
  for (size_t step = 0; step < steps.size(); ++step) {
    if (!steps[step].fused || steps[step].fused->ops.size() != 1 ||
        !reducesColumns(steps[step].op))
      continue;
    llvm::SetVector<Value> read;
    forEachRead(steps[step], [&](Value value) { read.insert(value); });
    const Steps sources = getSources(step);
    auto canJoin = [&](size_t rows) {
      return rows != step && hasRows(steps[rows]) && firstReader[step] > rows &&
             llvm::all_of(sources,
                          [&](size_t source) { return source <= rows; }) &&
             llvm::all_of(read, [&](Value value) {
               return llvm::is_contained(kernelsOf[value], rows) ||
                      steps[rows].fused->ops.contains(value.getDefiningOp());
             });
    };
    SmallVector<size_t> candidates(sources.begin(), sources.end());
    for (Value value : read)
      llvm::append_range(candidates, kernelsOf[value]);
    auto rows = llvm::find_if(candidates, [&](size_t rows) {
      return canJoin(rows) && join(rows, step);
    });
    if (rows == candidates.end())
      continue;
    firstReader[*rows] = std::min(firstReader[*rows], firstReader[step]);
    for (size_t source : sources)
      if (source != *rows)
        firstReader[source] = std::min(firstReader[source], *rows);
  }
}

Grouping Grouper::finish() {
  llvm::DenseSet<Operation *> loops = copied;
  llvm::DenseSet<Value> read; ///< by other steps
  for (size_t step = 0; step < steps.size(); ++step) {
    auto &fused = steps[step].fused;
    if (fused)
      for (Operation *op : fused->ops)
        if (!hasKernel(op))
          loops.insert(op);
    if (hasOwnOrder(steps[step].op))
      loops.insert(steps[step].op);
    // Behind a kernel of a product, the op that a library would do with it.
    if (fused && steps[step].product)
      if (auto epilogue = getEpilogue(fused->ops.front());
          epilogue && !epilogue->x && fused->ops.contains(epilogue->op))
        steps[step].joined.push_back(*epilogue);
    forEachRead(steps[step], [&](Value value) {
      if (Operation *op = value.getDefiningOp())
        if (stepOf.contains(op) && stepOf[op] != step)
          read.insert(value);
    });
  }
  for (Operation *op : program)
    for (Value result : op->getResults())
      if (read.contains(result))
        steps[stepOf[op]].outputs.insert(result);
  return {std::move(steps), std::move(placeOf), std::move(loops),
          std::move(copied)};
}

FailureOr<Grouping> tessera::groupSteps(func::FuncOp main,
                                        ArrayRef<std::string> matmul) {
  Grouper grouper(main, matmul);
  if (failed(grouper.findProducts()))
    return failure();
  grouper.group();
  grouper.computeAgain();
  grouper.sort();
  grouper.joinSums();
  grouper.joinFew();
  return grouper.finish();
}
