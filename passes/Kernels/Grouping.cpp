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
// is in one variant of a choice with all its ops, or in none. The steps come in
// an order that their data asks for, collectives in the order of the program.
//
//===----------------------------------------------------------------------===//

#include "Kernels/Grouping.h"
#include "Comm/Comm.h"
#include "Kernels/LoopKernels.h"
#include "Kernels/Windows.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

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
  Grouping takeInOrder();

private:
  bool hasKernel(Operation *op) const;
  std::optional<plan::Fusion> getEpilogue(Operation *product) const;
  void chooseSums();
  SmallVector<tv::ContractionOpInterface>
  getProductsBeside(tv::ReduceOp reduce);
  bool moveBefore(Operation *op, Operation *place);
  bool isFusable(Operation *op) const;
  void addProduct(Operation *product, Operation *at);
  void addStep(Operation *op, bool fused);
  bool dependsOn(size_t step, size_t target);
  llvm::SmallSetVector<size_t, 4> getSources(size_t step);
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
  std::optional<size_t> lastCollective; ///< step
  llvm::DenseMap<Operation *, size_t> stepOf;
  llvm::DenseSet<Operation *> copied; ///< by copies alone (getCopied)
  SmallVector<Operation *> program;   ///< its ops, in the order of `placeOf`
  llvm::DenseMap<Operation *, size_t> placeOf;
  llvm::DenseMap<Operation *, plan::Variant> variantOf;
};
} // namespace

/// Whether the op's elements are computed in loops over its results.
bool Grouper::isFusable(Operation *op) const {
  auto element = dyn_cast<tv::ElementOpInterface>(op);
  return element ? element.hasElements() && !getWindow(op)
                 : isElementwise(op) && !epilogues.contains(op);
}

/// What a library does with all that a product sums.
std::optional<plan::Fusion> Grouper::getEpilogue(Operation *product) const {
  for (Operation *user : product->getUsers())
    if (std::optional<plan::Fusion> fusion = target.fuse(product, user))
      if (fusion->epilogue)
        return fusion;
  return std::nullopt;
}

/// The last operands, if the op itself does not read them.
static MutableOperandRange getUnread(Operation *op) {
  // Captured tensors say what has gradients, and its regions read.
  if (auto grad = dyn_cast<tv::AttentionGradOp>(op))
    return grad.getCapturedMutable();
  return MutableOperandRange(op, 0, 0);
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
  } else {
    for (Value value :
         step.op->getOperands().drop_back(getUnread(step.op).size()))
      visit(value);
    for (const plan::Fusion &fusion : step.joined)
      if (fusion.x)
        visit(fusion.x);
    getUsedValuesDefinedAbove(step.op->getRegions(), read);
  }
  llvm::for_each(getMemoryRead(std::move(read), copied), visit);
}

llvm::SmallSetVector<size_t, 4> Grouper::getSources(size_t step) {
  llvm::SmallSetVector<size_t, 4> sources;
  forEachRead(steps[step], [&](Value value) {
    if (Operation *op = value.getDefiningOp())
      if (stepOf.contains(op) && stepOf[op] != step)
        sources.insert(stepOf[op]);
  });
  if (steps[step].before)
    sources.insert(*steps[step].before);
  return sources;
}

bool Grouper::dependsOn(size_t step, size_t target) {
  llvm::SetVector<size_t> worklist;
  worklist.insert(step);
  for (size_t i = 0; i < worklist.size(); ++i) {
    if (worklist[i] == target)
      return true;
    // What ended before the target began cannot depend on it.
    if (steps[worklist[i]].last >= steps[target].first)
      worklist.insert_range(getSources(worklist[i]));
  }
  return false;
}

bool Grouper::hasKernel(Operation *op) const {
  auto product = products.find(op);
  return product != products.end() && product->second.hasKernel();
}

void Grouper::addStep(Operation *op, bool fused) {
  stepOf[op] = steps.size();
  steps.push_back({op, std::nullopt, placeOf[op], placeOf[op]});
  if (fused)
    steps.back().fused.emplace(op);
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

/// Whether the op only widens elements for reductions, none of which fits into
/// the loops of `kernel` behind it: those read the narrow ones and widen them
/// again.
static bool isWidenedElsewhere(Operation *op, const FusedOps &kernel) {
  if (!isElementwise(op) || op->getNumOperands() != 1 ||
      op->getNumResults() != 1 || op->use_empty())
    return false;
  auto getBits = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getElementTypeBitWidth();
  };
  if (getBits(op->getResult(0)) <= getBits(op->getOperand(0)))
    return false;
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    FusedOps both = kernel;
    return getReduction(user) && !(both.tryAdd(op) && both.tryAdd(user));
  });
}

void Grouper::group() {
  Block &block = main.getBody().front();
  for (Operation &op : block) {
    placeOf[&op] = program.size();
    program.push_back(&op);
  }
  chooseSums();
  copied = getCopied(
      block, [&](Operation *op) { return isFusable(op) || hasKernel(op); });
  for (Operation *each : program) {
    Operation &op = *each;
    if (copied.contains(&op))
      continue;
    if (isFree(&op)) {
      // Exists in memory only for those that do not compute it themselves.
      bool needed = llvm::any_of(op.getUsers(), [&](Operation *user) {
        user = block.findAncestorOpInBlock(*user);
        return !isFusable(user) &&
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
    SmallVector<size_t> sources = llvm::to_vector(getSources(steps.size() - 1));
    llvm::sort(sources, std::greater<size_t>());
    for (size_t target : sources) {
      if (!steps[target].fused ||
          variantOf.lookup(&op) != variantOf.lookup(steps[target].op) ||
          (steps[target].product &&
           !mayFollowProduct(*steps[target].fused, &op)))
        continue;
      bool between = llvm::any_of(sources, [&](size_t other) {
        return other != target && dependsOn(other, target);
      });
      if (between || isWidenedElsewhere(&op, *steps[target].fused) ||
          !steps[target].fused->tryAdd(&op))
        continue;
      stepOf[&op] = target;
      steps[target].op = &op;
      steps[target].last = placeOf[&op];
      steps.pop_back();
      break;
    }
  }
}

Grouping Grouper::takeInOrder() {
  llvm::DenseSet<Operation *> loops = copied;
  for (const PlanStep &step : steps)
    if (step.fused)
      for (Operation *op : step.fused->ops)
        if (!hasKernel(op))
          loops.insert(op);
  std::vector<llvm::SmallSetVector<size_t, 4>> users(steps.size());
  std::vector<size_t> waitsFor(steps.size());
  for (size_t step = 0; step < steps.size(); ++step) {
    // Behind a kernel of a product, the op that a library would do with it.
    if (auto &fused = steps[step].fused; fused && steps[step].product)
      if (auto epilogue = getEpilogue(fused->ops.front());
          epilogue && !epilogue->x && fused->ops.contains(epilogue->op))
        steps[step].joined.push_back(*epilogue);
    llvm::SmallSetVector<size_t, 4> sources = getSources(step);
    forEachRead(steps[step], [&](Value value) {
      if (Operation *op = value.getDefiningOp())
        if (stepOf.contains(op) && stepOf[op] != step)
          steps[stepOf[op]].outputs.insert(value);
    });
    for (size_t source : sources)
      if (users[source].insert(step))
        ++waitsFor[step];
  }
  using Ready = std::pair<size_t, size_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<Ready>> ready;
  for (size_t step = 0; step < steps.size(); ++step)
    if (waitsFor[step] == 0)
      ready.push({steps[step].last, step});
  std::vector<PlanStep> ordered;
  while (!ready.empty()) {
    size_t step = ready.top().second;
    ready.pop();
    for (size_t user : users[step])
      if (--waitsFor[user] == 0)
        ready.push({steps[user].last, user});
    ordered.push_back(std::move(steps[step]));
  }
  return {std::move(ordered), std::move(placeOf), std::move(loops),
          std::move(copied)};
}

FailureOr<Grouping> tessera::groupSteps(func::FuncOp main,
                                        ArrayRef<std::string> matmul) {
  Grouper grouper(main, matmul);
  if (failed(grouper.findProducts()))
    return failure();
  grouper.group();
  return grouper.takeInOrder();
}

//===----------------------------------------------------------------------===//
// Groups as ops
//===----------------------------------------------------------------------===//

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

/// The free and copied ops that a group of these computes.
static llvm::SetVector<Operation *> getFreeOps(ArrayRef<Operation *> ops,
                                               const Grouping &of) {
  llvm::SetVector<Value> read;
  llvm::SetVector<Operation *> free;
  for (Operation *op : ops) {
    if (isFree(op))
      read.insert_range(op->getResults());
    else if (of.loops.contains(op))
      read.insert_range(getReadValues(op));
    else
      getUsedValuesDefinedAbove(op->getRegions(), read);
  }
  for (size_t i = 0; i < read.size(); ++i)
    if (Operation *op = read[i].getDefiningOp();
        op && (isFree(op) || of.copied.contains(op))) {
      free.insert(op);
      read.insert_range(getReadValues(op));
    }
  return free;
}

/// A copy of a free op in a group. What only lends it extents has the type say
/// them, unless it is at hand.
static Operation *copyFree(OpBuilder &builder, Operation *op,
                           IRMapping &inside) {
  Operation *copy = builder.clone(*op, inside);
  SmallVector<Value> read = getReadValues(copy);
  for (OpOperand &operand : copy->getOpOperands()) {
    Value value = operand.get();
    if (llvm::is_contained(read, value) || !value.getDefiningOp() ||
        value.getParentBlock() == copy->getBlock())
      continue;
    OpBuilder before(copy);
    auto type = cast<RankedTensorType>(value.getType());
    operand.set(tv::ConstantOp::create(
        before, copy->getLoc(), type,
        cast<ElementsAttr>(before.getZeroAttr(
            RankedTensorType::get({}, type.getElementType()))),
        Value()));
  }
  return copy;
}

plan::GroupOp tessera::makeGroup(OpBuilder &builder, ArrayRef<Operation *> ops,
                                 ArrayRef<Value> outputs, const Grouping &of) {
  llvm::SetVector<Operation *> free = getFreeOps(ops, of), all = free;
  all.insert_range(ops);
  SmallVector<Operation *> ordered = all.takeVector();
  llvm::sort(ordered, [&](Operation *a, Operation *b) {
    return of.placeOf.lookup(a) < of.placeOf.lookup(b);
  });
  auto group = plan::GroupOp::create(
      builder, ops.back()->getLoc(), ValueRange(outputs).getTypes(),
      ArrayAttr(), DictionaryAttr(), plan::EpilogueAttr(), plan::SummedAttr());
  Block &block = group.getBody().emplaceBlock();
  OpBuilder inner = OpBuilder::atBlockEnd(&block);
  IRMapping inside;
  auto readInside = [&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      operand.set(inside.lookupOrDefault(operand.get()));
  };
  for (Operation *op : ordered) {
    if (free.contains(op)) {
      copyFree(inner, op, inside);
      continue;
    }
    op->moveBefore(&block, block.end());
    if (of.loops.contains(op))
      readInside(op);
    for (Region &region : op->getRegions())
      region.walk(readInside);
    for (OpOperand &unread : getUnread(op))
      if (Operation *source = unread.get().getDefiningOp();
          source && isFree(source))
        unread.set(OpBuilder(op).clone(*source)->getResult(0));
  }
  auto yielded = llvm::map_to_vector(
      outputs, [&](Value output) { return inside.lookupOrDefault(output); });
  plan::YieldOp::create(inner, group.getLoc(), yielded);
  for (auto [output, result] : llvm::zip_equal(outputs, group.getResults())) {
    const bool isCopied = free.contains(output.getDefiningOp());
    Value(output).replaceUsesWithIf(result, [&](OpOperand &use) {
      Operation *user = use.getOwner();
      if (isCopied) // is computed again elsewhere
        return user->getBlock() == group->getBlock() && !isFree(user) &&
               !of.loops.contains(user);
      return !group->isAncestor(user);
    });
  }
  return group;
}
