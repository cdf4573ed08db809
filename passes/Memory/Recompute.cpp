//===- Recompute.cpp - what a memory budget does not hold is made again ---===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As long as the plan takes more than the budget: at the step where an arena
// holds most, a value that waits there for a later step is dropped, and its
// step runs again before that one, with those that made what it reads and is
// gone by then; or else that is kept instead. Of all that could be dropped the
// one with the least time a byte.
//
// It works on the plan, where all memory is known to the byte and no pass joins
// steps that were taken apart.
//
//===----------------------------------------------------------------------===//

#include "Comm/Comm.h"
#include "Layout/Planner.h"
#include "Memory/Passes.h"
#include "Memory/PlannedMemory.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_RECOMPUTE
#include "Memory/Passes.h.inc"
} // namespace tessera

namespace {
/// Steps to run again before step `before`, in order, so that what they made
/// need not wait for it.
struct Again {
  llvm::SetVector<Operation *> steps;
  size_t before;
  /// Of steps that ran again already: the copies that are read instead, and
  /// those that need not run when these here do.
  llvm::SmallDenseMap<Operation *, Operation *> read, replaced;
  int64_t bytes = 0; ///< that are free in the meantime
  double seconds = 0;
};

/// What a window is on.
Value getWhole(Value value) {
  while (auto alias = value.getDefiningOp<plan::AliasOp>())
    value = alias.getInput();
  return value;
}

class Recomputer {
public:
  Recomputer(func::FuncOp main, PlannedMemory &memory, int64_t budget)
      : main(main), memory(memory), budget(budget),
        machine(tv::getMachine(main)) {
    for (auto [next, state] : memory.getInPlace().states)
      if (auto launch = next.getDefiningOp<plan::LaunchOp>())
        nextOf[getWhole(state)] = launch;
  }
  /// Calls `report` for each choice, before it is made.
  LogicalResult run(llvm::function_ref<void(const Again &)> report);

private:
  /// The step where an arena holds most, and how much.
  std::pair<size_t, int64_t> getFullest(bool symmetric) const;
  std::optional<Again> choose() const;
  std::optional<Again> consider(const Buffer &buffer, size_t fullest,
                                bool keepsSources) const;
  bool waitsAt(const Buffer &buffer, size_t step) const;
  bool canRunAgain(Operation *step, Operation *place) const;
  bool isCheap(plan::LaunchOp launch) const;
  Operation *getCopy(Operation *step, size_t after) const;
  double getSeconds(Operation *step) const;
  void apply(const Again &again);
  LogicalResult fail(int64_t least);

  func::FuncOp main;
  PlannedMemory &memory;
  const int64_t budget;
  const layout::Machine machine;
  llvm::DenseMap<Value, Operation *> nextOf;     ///< what replaces a state
  mutable llvm::DenseMap<Attribute, bool> cheap; ///< kernels
  /// Steps that do the same, and the number of those of each.
  std::vector<SmallVector<Operation *>> families;
  llvm::DenseMap<Operation *, size_t> familyOf;
  llvm::DenseMap<size_t, int> merges; ///< of families: copies that became one
  /// How often a step went to a later place.
  llvm::DenseMap<Operation *, int> delays;
};
} // namespace

/// No more steps are run again for one value.
static constexpr size_t kMaxSteps = 256;
/// Nor goes a step to a later place more often, nor are copies of one joined to
/// one that runs before them: two could do so in turn.
static constexpr int kMaxDelays = 4, kMaxMerges = 2;

bool Recomputer::waitsAt(const Buffer &buffer, size_t step) const {
  return buffer.first < step && step < buffer.last() &&
         !llvm::is_contained(buffer.reads, step);
}

std::pair<size_t, int64_t> Recomputer::getFullest(bool symmetric) const {
  std::vector<int64_t> changes(memory.getSteps().size() + 1);
  for (const Buffer &buffer : memory.getBuffers())
    if (buffer.isSymmetric == symmetric) {
      changes[buffer.first] += buffer.bytes;
      changes[buffer.last() + 1] -= buffer.bytes;
    }
  std::pair<size_t, int64_t> fullest = {0, 0};
  int64_t bytes = 0;
  for (auto [step, change] : llvm::enumerate(changes))
    if ((bytes += change) > fullest.second)
      fullest = {step, bytes};
  return fullest;
}

/// What runs on tensor cores is no cheaper than a product, and its price is not
/// known; what writes states where they lie runs once.
bool Recomputer::isCheap(plan::LaunchOp launch) const {
  auto [known, isNew] = cheap.try_emplace(launch.getKernelAttr(), true);
  if (!isNew)
    return known->second;
  auto pairs = memory.getInPlace().kernels.find(launch.getKernel());
  auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      launch, launch.getKernelAttr());
  if (pairs != memory.getInPlace().kernels.end() && !pairs->second.empty())
    known->second = false;
  kernel.walk([&](Operation *op) {
    known->second &= !isa<plan::AttentionOp, plan::AttentionGradOp,
                          plan::BlockWalksOp, plan::ProductOp>(op);
  });
  return known->second;
}

/// Whether the step gives the same at `place`.
bool Recomputer::canRunAgain(Operation *step, Operation *place) const {
  if (!isa<plan::LaunchOp, plan::ContractOp, plan::CopyOp,
           comm::CollectiveOpInterface>(step) ||
      memory.getVariant(step))
    return false;
  if (auto launch = dyn_cast<plan::LaunchOp>(step); launch && !isCheap(launch))
    return false;
  // A state may have its next value by then.
  return llvm::none_of(step->getOperands(), [&](Value operand) {
    Operation *next = nextOf.lookup(getWhole(operand));
    return next && next->isBeforeInBlock(place);
  });
}

/// The first step after step `after` that does what this one does, or null.
Operation *Recomputer::getCopy(Operation *step, size_t after) const {
  auto family = familyOf.find(step);
  if (family == familyOf.end())
    return nullptr;
  Operation *copy = nullptr;
  for (Operation *other : families[family->second]) {
    const Buffer *made = memory.find(other->getResult(0));
    if (made && made->first > after && (!copy || other->isBeforeInBlock(copy)))
      copy = other;
  }
  return copy;
}

double Recomputer::getSeconds(Operation *step) const {
  int64_t bytes = 0;
  for (Value value : step->getOperands())
    bytes += memory.getBytes(value);
  for (Value value : step->getResults())
    bytes += memory.getBytes(value);
  if (isa<comm::CollectiveOpInterface>(step))
    return machine.latency + double(bytes) / machine.bandwidth;
  double seconds = double(bytes) / machine.copy;
  if (auto product = dyn_cast<plan::ContractOp>(step)) {
    double loops = memory.getElements(product.getResult());
    for (auto [label, size] :
         llvm::zip_equal(product.getALabels(), memory.getShape(product.getA())))
      if (!llvm::is_contained(product.getLabels(), label))
        loops *= double(size);
    seconds += loops / machine.loops;
  }
  return seconds;
}

/// How `buffer` need not wait at step `fullest`; nothing if that frees nothing.
/// What it is made of and is gone by then is kept, or made again as well.
std::optional<Again> Recomputer::consider(const Buffer &buffer, size_t fullest,
                                          bool keepsSources) const {
  std::optional<size_t> before = buffer.nextRead(fullest);
  Operation *place = memory.getSteps()[*before];
  Again again;
  again.before = *before;
  llvm::SmallSetVector<const Buffer *, 4> kept;
  again.steps.insert(buffer.value.getDefiningOp());
  for (size_t i = 0; i < again.steps.size(); ++i) {
    Operation *step = again.steps[i];
    if (again.steps.size() > kMaxSteps || !canRunAgain(step, place))
      return std::nullopt;
    for (Value operand : step->getOperands()) {
      const Buffer *source = memory.find(operand);
      if (!source || source->last() >= fullest)
        continue;
      Operation *maker = source->value.getDefiningOp();
      Operation *copy = getCopy(maker, fullest);
      if (copy && copy->isBeforeInBlock(place))
        again.read[maker] = copy;
      else if (keepsSources)
        kept.insert(source);
      else if (again.steps.insert(maker) && copy &&
               merges.lookup(familyOf.lookup(maker)) < kMaxMerges)
        again.replaced[maker] = copy;
    }
  }
  for (const Buffer *source : kept)
    again.bytes -= source->bytes;
  for (Operation *step : again.steps) {
    bool isOnlyLater = true;
    for (Value result : step->getResults()) {
      const Buffer *each = memory.find(result);
      if (!each) {
        isOnlyLater = false; // the caller's
        continue;
      }
      isOnlyLater &= each->reads.empty() || each->reads.front() >= *before;
      if (each->isSymmetric == buffer.isSymmetric && waitsAt(*each, fullest) &&
          *each->nextRead(fullest) >= *before)
        again.bytes += each->bytes;
    }
    if (!isOnlyLater && !again.replaced.contains(step))
      again.seconds += getSeconds(step);
    else if (isOnlyLater && delays.lookup(step) >= kMaxDelays)
      return std::nullopt;
  }
  if (again.bytes <= 0)
    return std::nullopt;
  SmallVector<Operation *> ordered = again.steps.takeVector();
  llvm::sort(ordered,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  again.steps.insert_range(ordered);
  return again;
}

std::optional<Again> Recomputer::choose() const {
  std::optional<Again> best;
  for (bool symmetric : {false, true}) {
    const size_t fullest = getFullest(symmetric).first;
    for (const Buffer &buffer : memory.getBuffers()) {
      if (buffer.isSymmetric != symmetric || !waitsAt(buffer, fullest))
        continue;
      for (bool keepsSources : {true, false}) {
        std::optional<Again> again = consider(buffer, fullest, keepsSources);
        if (again && (!best || layout::isLess(again->seconds * best->bytes,
                                              best->seconds * again->bytes)))
          best = std::move(again);
      }
    }
  }
  return best;
}

void Recomputer::apply(const Again &again) {
  Operation *place = memory.getSteps()[again.before];
  OpBuilder builder(place);
  uint64_t nextId = 0;
  for (auto op : main.getBody().getOps<comm::CollectiveOpInterface>())
    nextId = std::max(nextId, op.getId() + 1);
  IRMapping made;
  for (auto [step, copy] : again.read)
    made.map(step->getResults(), copy->getResults());
  llvm::SmallPtrSet<Operation *, 8> own;
  llvm::SmallDenseMap<Operation *, Operation *> copies; // of steps
  // The value as it is made again, or as it is; through windows.
  auto get = [&](auto &self, Value value) -> Value {
    if (made.contains(value))
      return made.lookup(value);
    auto alias = value.getDefiningOp<plan::AliasOp>();
    if (!alias)
      return value;
    Value source = self(self, alias.getInput());
    if (source == alias.getInput())
      return value;
    Operation *copy = builder.clone(*alias, made);
    own.insert(copy);
    return made.lookup(value);
  };
  for (Operation *step : again.steps) {
    for (Value operand : step->getOperands())
      get(get, operand);
    Operation *copy = builder.clone(*step, made);
    if (isa<comm::CollectiveOpInterface>(copy))
      copy->setAttr("id", builder.getI64IntegerAttr(nextId++));
    own.insert(copy);
    copies[step] = copy;
    auto [family, isFirst] = familyOf.try_emplace(step, families.size());
    const size_t number = family->second;
    if (isFirst)
      families.push_back({step});
    families[number].push_back(copy);
    familyOf[copy] = number;
    if (Operation *later = again.replaced.lookup(step)) {
      later->replaceAllUsesWith(copy);
      ++merges[number];
    }
  }
  auto replace = [&](auto &self, Value value) -> void {
    for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
      Operation *user = use.getOwner();
      if (own.contains(user))
        continue;
      if (auto alias = dyn_cast<plan::AliasOp>(user))
        self(self, alias.getResult());
      else if (!user->isBeforeInBlock(place))
        use.set(get(get, value));
    }
  };
  for (Operation *step : again.steps)
    for (Value result : step->getResults())
      if (const Buffer *buffer = memory.find(result);
          buffer && buffer->value == result)
        replace(replace, result);
  // What only ran for later steps, and windows on it.
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(main.getBody().front()))) {
    auto family = familyOf.find(&op);
    if (!op.use_empty() ||
        (family == familyOf.end() && !isa<plan::AliasOp>(op)))
      continue;
    if (Operation *copy = copies.lookup(&op))
      delays[copy] = delays.lookup(&op) + 1;
    delays.erase(&op);
    if (family != familyOf.end()) {
      llvm::erase(families[family->second], &op);
      familyOf.erase(family);
    }
    op.erase();
  }
}

LogicalResult Recomputer::fail(int64_t least) {
  InFlightDiagnostic error =
      main.emitError() << "between its steps a device holds " << least
                       << " bytes in the least way found, more than the "
                       << budget << " allowed";
  const auto local = getFullest(false), symmetric = getFullest(true);
  const bool isSymmetric = symmetric.second > local.second;
  const size_t fullest = (isSymmetric ? symmetric : local).first;
  SmallVector<const Buffer *> held;
  for (const Buffer &buffer : memory.getBuffers())
    if (buffer.isSymmetric == isSymmetric && buffer.first <= fullest &&
        fullest <= buffer.last())
      held.push_back(&buffer);
  llvm::stable_sort(held, [](const Buffer *a, const Buffer *b) {
    return a->bytes > b->bytes;
  });
  constexpr size_t kShown = 3;
  for (const Buffer *buffer : ArrayRef(held).take_front(kShown))
    error.attachNote(buffer->value.getLoc())
        << buffer->bytes << " of them for this";
  return error;
}

LogicalResult Recomputer::run(llvm::function_ref<void(const Again &)> report) {
  int64_t leastHeld = INT64_MAX, least = INT64_MAX;
  for (size_t rounds = 4 * memory.getSteps().size();; --rounds) {
    // The arenas may have gaps, and take more than they ever hold.
    const int64_t held = getFullest(false).second + getFullest(true).second;
    if (held <= budget || held < leastHeld) {
      leastHeld = std::min(leastHeld, held);
      least = std::min(least, memory.getPeak());
      if (least <= budget)
        return success();
    }
    std::optional<Again> again = rounds ? choose() : std::nullopt;
    if (!again)
      return fail(least);
    report(*again);
    apply(*again);
    if (failed(memory.update()))
      return failure();
  }
}

namespace {
struct Recompute : public tessera::impl::RecomputeBase<Recompute> {
  using RecomputeBase::RecomputeBase;

  void runOnOperation() override;

private:
  void report(const Again &again);
};
} // namespace

/// What a person calls a step.
static StringRef nameOf(Operation *step) {
  auto source = step->getAttrOfType<StringAttr>("source");
  return source ? source.getValue() : step->getName().getStringRef();
}

void Recompute::report(const Again &again) {
  Operation *wanted = again.steps.back();
  if (explain) {
    InFlightDiagnostic remark = mlir::emitRemark(wanted->getLoc());
    remark << nameOf(wanted) << " runs again";
    if (again.steps.size() > 1)
      remark << " with " << again.steps.size() - 1 << " steps before it";
    remark << llvm::formatv(": {0} bytes less for {1:f1} us", again.bytes,
                            again.seconds * 1e6)
                  .str();
  }
  remark::passed(wanted->getLoc(), remark::RemarkOpts::name("again")
                                       .category(getArgument())
                                       .function("main"))
      << remark::metric("step", nameOf(wanted))
      << remark::metric("steps", again.steps.size())
      << remark::metric("bytes", again.bytes)
      << remark::metric("us", again.seconds * 1e6);
}

void Recompute::runOnOperation() {
  auto main = getOperation().lookupSymbol<func::FuncOp>("main");
  if (!main) {
    getOperation().emitError() << "a program needs a function '@main'";
    return signalPassFailure();
  }
  // Kernels are on memory.
  if (failed(tv::verifyContract(main, tv::Contract::Localized, getArgument())))
    return signalPassFailure();
  FailureOr<PlannedMemory> memory = PlannedMemory::get(main);
  if (failed(memory) ||
      failed(Recomputer(main, *memory, bytes).run([&](const Again &again) {
        report(again);
      })))
    return signalPassFailure();
  const int64_t peak = memory->getPeak();
  if (explain)
    mlir::emitRemark(main.getLoc())
        << "between its steps a device holds " << peak << " bytes at most";
  remark::passed(
      main.getLoc(),
      remark::RemarkOpts::name("peak").category(getArgument()).function("main"))
      << remark::metric("bytes", peak);
}
