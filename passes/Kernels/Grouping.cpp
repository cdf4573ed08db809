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
  std::vector<PlanStep> takeInOrder();

private:
  bool hasKernel(Operation *op) const;
  std::optional<plan::Fusion> getEpilogue(Operation *product) const;
  void chooseSums();
  void addProduct(Operation *product, Operation *at);
  void addStep(Operation *op, bool fused);
  bool dependsOn(size_t step, size_t target);
  llvm::SmallSetVector<size_t, 4> getSources(size_t step);
  void forEachRead(PlanStep &step, llvm::function_ref<void(Value)> visit);

  func::FuncOp main;
  const plan::Target &target;
  ArrayRef<std::string> matmul;
  llvm::DenseMap<Operation *, Product> products;
  /// What a library's product sums as well.
  llvm::DenseMap<Operation *, plan::Fusion> sumsOf;
  llvm::DenseSet<Operation *> summed; ///< the reductions in `sumsOf`
  std::vector<PlanStep> steps;
  std::optional<size_t> lastCollective; ///< step
  llvm::DenseMap<Operation *, size_t> stepOf;
  llvm::DenseMap<Operation *, size_t> placeOf;
  llvm::DenseMap<Operation *, plan::Variant> variantOf;
};
} // namespace

/// Whether the op's elements are computed in loops over its results.
static bool isFusable(Operation *op) {
  auto element = dyn_cast<tv::ElementOpInterface>(op);
  return element && element.hasElements() && !getWindow(op);
}

/// What a library does with all that a product sums.
std::optional<plan::Fusion> Grouper::getEpilogue(Operation *product) const {
  for (Operation *user : product->getUsers())
    if (std::optional<plan::Fusion> fusion = target.fuse(product, user))
      if (fusion->epilogue)
        return fusion;
  return std::nullopt;
}

void Grouper::forEachRead(PlanStep &step,
                          llvm::function_ref<void(Value)> visit) {
  // Through the free ops that the kernel computes itself.
  llvm::SetVector<Value> worklist;
  if (step.fused) {
    for (Operation *op : step.fused->ops) {
      if (!hasKernel(op))
        worklist.insert_range(getReadValues(op));
      else // in memory, all of it
        llvm::for_each(op->getOperands(), visit);
    }
  } else {
    for (Value value : step.op->getOperands())
      visit(value);
    for (const plan::Fusion &fusion : step.joined)
      if (fusion.x)
        visit(fusion.x);
    getUsedValuesDefinedAbove(step.op->getRegions(), worklist);
  }
  for (size_t i = 0; i < worklist.size(); ++i) {
    Value value = worklist[i];
    Operation *op = value.getDefiningOp();
    if (op && isFree(op) && !(step.fused && step.fused->ops.contains(op)))
      worklist.insert_range(getReadValues(op));
    else
      visit(value);
  }
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
  // What stands behind a product for a library, and none takes along.
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto composite = dyn_cast<tv::CompositeOpInterface>(op);
    if (!composite)
      continue;
    Operation *product = nullptr;
    std::optional<plan::Fusion> fusion;
    for (Value operand : op.getOperands())
      if (Operation *source = operand.getDefiningOp();
          !fusion && products.contains(source)) {
        product = source;
        if (fusion = getEpilogue(source); fusion && fusion->op != &op)
          fusion.reset();
      }
    if (!product || (fusion && !hasKernel(product)))
      continue;
    OpBuilder builder(&op);
    SmallVector<Value> made;
    if (failed(composite.decompose(builder, made)))
      return failure();
    made.front().setType(op.getResult(0).getType());
    op.replaceAllUsesWith(made);
    op.erase();
    if (fusion && !fusion->x) {
      fusion->op = made.front().getDefiningOp();
      products[product].epilogue = fusion;
    }
  }
  return success();
}

/// Moves an op before another unless it is there. False if it reads what is not
/// there.
static bool moveBefore(Operation *op, Operation *place) {
  if (op->isBeforeInBlock(place))
    return true;
  for (Value operand : op->getOperands())
    if (Operation *source = operand.getDefiningOp())
      if (!source->isBeforeInBlock(place))
        return false;
  op->moveBefore(place);
  return true;
}

/// The products that read what a reduction sums, or whose results that is made
/// of, in order.
static SmallVector<tv::ContractionOpInterface>
getProductsBeside(tv::ReduceOp reduce) {
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
  llvm::sort(products, [](Operation *a, Operation *b) {
    return a->isBeforeInBlock(b);
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
          user->isBeforeInBlock(reader))
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

void Grouper::group() {
  chooseSums();
  llvm::DenseMap<Operation *, Operation *> epilogues; ///< to their products
  size_t place = 0;
  for (Operation &op : main.getBody().front())
    placeOf[&op] = place++;
  for (Operation &op : main.getBody().front()) {
    if (isFree(&op)) {
      // Exists in memory only for those that do not compute it themselves.
      bool needed = llvm::any_of(op.getUsers(), [&](Operation *user) {
        user = main.getBody().front().findAncestorOpInBlock(*user);
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
      if (epilogue)
        epilogues[epilogue->op] = &op;
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
      if (between || !steps[target].fused->tryAdd(&op))
        continue;
      stepOf[&op] = target;
      steps[target].op = &op;
      steps[target].last = placeOf[&op];
      steps.pop_back();
      break;
    }
  }
}

std::vector<PlanStep> Grouper::takeInOrder() {
  std::vector<llvm::SmallSetVector<size_t, 4>> users(steps.size());
  std::vector<size_t> waitsFor(steps.size());
  for (size_t step = 0; step < steps.size(); ++step) {
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
  return ordered;
}

FailureOr<std::vector<PlanStep>>
tessera::groupSteps(func::FuncOp main, ArrayRef<std::string> matmul) {
  plan::separateVariants(main.getBody().front());
  Grouper grouper(main, matmul);
  if (failed(grouper.findProducts()))
    return failure();
  grouper.group();
  return grouper.takeInOrder();
}
