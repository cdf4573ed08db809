//===- FormKernels.cpp - groups ops into kernels --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op joins the kernel of one of its operands if it fits into its loops and
// no other step lies between them, else it starts a step of its own. The steps
// are then emitted in an order that their data asks for, collectives in the
// order of the program. A kernel is in one variant of a choice with all its
// ops, or in none, and what a choice chooses from has memory of its own.
//
//===----------------------------------------------------------------------===//

#include "Comm/Comm.h"
#include "Kernels/FusedKernel.h"
#include "Kernels/LoopKernels.h"
#include "Kernels/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

#include <queue>

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_FORMKERNELS
#include "Kernels/Passes.h.inc"
} // namespace tessera

namespace {
/// One op of the plan: fused ops, or one op of another kind.
struct PlanStep {
  Operation *op; ///< the one op, or the last of the fused ones
  std::optional<FusedOps> fused;
  size_t first, last; ///< places of its ops in the program
  /// Of a collective, the one before it: all ranks run them in one order.
  std::optional<size_t> before = std::nullopt;
};

class Former {
public:
  Former(func::FuncOp main, StringRef target, ArrayRef<std::string> matmul)
      : main(main), target(target), matmul(matmul), builder(main.getContext()) {
  }
  LogicalResult run();
  size_t numKernels = 0;

private:
  // Grouping.
  LogicalResult chooseProducts();
  FailureOr<bool> isOwn(Operation *product);
  void group();
  void addStep(Operation *op, bool fused);
  bool dependsOn(size_t step, size_t target);
  llvm::SmallSetVector<size_t, 4> getSources(size_t step);
  void forEachRead(PlanStep &step, llvm::function_ref<void(Value)> visit);

  bool isProduct(const PlanStep &step) {
    return step.fused && own.contains(step.fused->ops.front());
  }

  // Emission.
  LogicalResult emit(PlanStep &step);
  LogicalResult emitLaunch(PlanStep &step);
  LogicalResult emitReturn(func::ReturnOp op);
  void giveMemory(plan::ChooseOp choice,
                  const llvm::DenseMap<Operation *, plan::Variant> &variants);
  LogicalResult emitTranspose(tv::TransposeOp op);
  LogicalResult emitReshape(tv::ReshapeOp op);
  LogicalResult emitLinear(tv::LinearOp op);
  LogicalResult emitMatmul(tv::MatmulOp op);
  LogicalResult emitAttention(tv::AttentionOp op);
  LogicalResult launch(Operation *op, StringRef name,
                       const llvm::SetVector<Operation *> &inlined,
                       ArrayRef<Value> outputs,
                       llvm::function_ref<void(KernelEmitter &)> body);
  Value copy(Location loc, Value planned, StringRef source);
  Value alias(plan::AliasKind kind, Operation *op, Value planned,
              ArrayRef<int64_t> at = {});
  void define(Value value, Value planned, Memory memory) {
    mapping.map(value, planned);
    memories[value] = std::move(memory);
  }

  func::FuncOp main;
  StringRef target;
  ArrayRef<std::string> matmul; ///< variants of products that are allowed
  OpBuilder builder;
  llvm::DenseSet<Operation *> own; ///< products that are kernels
  std::vector<PlanStep> steps;
  std::optional<size_t> lastCollective; ///< step
  llvm::DenseMap<Operation *, size_t> stepOf;
  llvm::DenseMap<Operation *, size_t> placeOf;
  llvm::DenseMap<Operation *, plan::Variant> variantOf;
  std::vector<llvm::SetVector<Value>> outputs; ///< of fused steps
  IRMapping mapping;                           ///< values to those of the plan
  llvm::DenseMap<Value, Memory> memories;
  llvm::StringMap<std::string> kernels; ///< text to symbol
};
} // namespace

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// Where each local dimension of a slice begins in its source, as a global
/// number, if each device's part is a window on what it has of the source.
static std::optional<SmallVector<int64_t>> getWindow(tv::SliceOp slice) {
  auto viewOf = [](Value tensor) {
    return cast<tv::LocalAttr>(
        cast<RankedTensorType>(tensor.getType()).getEncoding());
  };
  tv::LocalAttr from = viewOf(slice.getInput());
  std::vector<layout::Dim> sources = from.getLayoutView().dims,
                           targets =
                               viewOf(slice.getResult()).getLayoutView().dims;
  Result<std::vector<layout::View>> box =
      tv::getBoxViews(slice, from.getLayoutView(), from.getLayoutMesh());
  if (!box || box->front().dims != targets || sources.size() != targets.size())
    return std::nullopt;
  SmallVector<int64_t> at;
  ArrayRef<int64_t> offsets = slice.getOffsets();
  for (auto [source, target] : llvm::zip_equal(sources, targets)) {
    bool kept = source == target && offsets.front() == 0;
    if (source.span != target.span || (source.span > 1 && !kept))
      return std::nullopt;
    at.push_back(offsets.front());
    offsets = offsets.drop_front(source.span);
  }
  return at;
}

/// Whether what a device keeps of a whole dimension is one run of it.
static bool isOneRun(const layout::Product &product) {
  bool stored = false;
  for (const layout::Factor &factor : product) {
    if (factor.kind == layout::Factor::Kind::Group)
      return false;
    if (factor.kind != layout::Factor::Kind::Device)
      stored = true;
    else if (stored)
      return false;
  }
  return true;
}

/// Whether each device's part lies in what it has as one window.
static bool isWindow(comm::SliceOp slice) {
  if (slice.getNumOperands() != 1)
    return false;
  auto source = cast<tv::LocalAttr>(
      cast<RankedTensorType>(slice.getInputs().front().getType())
          .getEncoding());
  auto target = cast<tv::LocalAttr>(
      cast<RankedTensorType>(slice.getResults().front().getType())
          .getEncoding());
  if (source.getLayoutView().partial != target.getLayoutView().partial)
    return false;
  Space from = getSpace(slice.getInputs().front().getType());
  Space to = getSpace(slice.getResults().front().getType());
  if (from.size() != to.size())
    return false;
  for (auto [a, b] : llvm::zip_equal(from, to)) {
    bool whole = llvm::all_of(a.product, [](const layout::Factor &factor) {
      return factor.kind == layout::Factor::Kind::Stored ||
             factor.kind == layout::Factor::Kind::Rest;
    });
    if (a.extents != b.extents || (a != b && !(whole && isOneRun(b.product))))
      return false;
  }
  return true;
}

static bool isFlat(Value tensor) {
  return llvm::any_of(getSpace(tensor.getType()), [](const LocalDim &dim) {
    return dim.extents.size() != 1;
  });
}

//===----------------------------------------------------------------------===//
// Grouping
//===----------------------------------------------------------------------===//

/// Whether the op's elements are computed in loops over its results.
static bool isFusable(Operation *op) {
  if (auto slice = dyn_cast<tv::SliceOp>(op))
    return !getWindow(slice);
  return isa<tv::ReduceOp>(op) ||
         (canInline(op) && (!isa<tv::ConstantOp>(op) || isFree(op)));
}

void Former::forEachRead(PlanStep &step,
                         llvm::function_ref<void(Value)> visit) {
  // Through the free ops that the kernel computes itself.
  llvm::SetVector<Value> worklist;
  if (step.fused) {
    for (Operation *op : step.fused->ops) {
      if (!own.contains(op))
        worklist.insert_range(getReadValues(op));
      else // in memory, all of it
        llvm::for_each(op->getOperands(), visit);
    }
  } else {
    for (Value value : step.op->getOperands())
      visit(value);
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

llvm::SmallSetVector<size_t, 4> Former::getSources(size_t step) {
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

bool Former::dependsOn(size_t step, size_t target) {
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

void Former::addStep(Operation *op, bool fused) {
  stepOf[op] = steps.size();
  steps.push_back({op, std::nullopt, placeOf[op], placeOf[op]});
  if (fused)
    steps.back().fused.emplace(op);
  if (isa<comm::CollectiveOpInterface>(op))
    steps.back().before = std::exchange(lastCollective, stepOf[op]);
}

/// Whether the first variant that is allowed and fits is a kernel.
FailureOr<bool> Former::isOwn(Operation *product) {
  std::string reasons;
  for (const std::string &variant : matmul) {
    std::optional<std::string> why;
    if (variant == "own")
      why = whyNotOwn(product, target);
    else if (variant != "cublaslt")
      return product->emitError() << "'" << variant
                                  << "' is no variant of a matrix product; "
                                     "there are 'cublaslt' and 'own'";
    else if (target != plan::kCUDATarget)
      why = "it is for " + plan::kCUDATarget.str();
    if (!why)
      return variant == "own";
    reasons += "; " + variant + " does not fit: " + *why;
  }
  return product->emitError() << "has no variant that is allowed" << reasons;
}

LogicalResult Former::chooseProducts() {
  if (matmul.empty()) // the backend's library
    return success();
  for (Operation &op : main.getBody().front()) {
    if (!isa<tv::LinearOp, tv::MatmulOp>(op))
      continue;
    FailureOr<bool> chosen = isOwn(&op);
    if (failed(chosen))
      return failure();
    if (!*chosen)
      continue;
    own.insert(&op);
    // A gelu that is still here is for a library.
    for (Operation *user : llvm::make_early_inc_range(op.getUsers())) {
      auto gelu = dyn_cast<tv::GeluOp>(user);
      if (!gelu)
        continue;
      builder.setInsertionPoint(gelu);
      SmallVector<Value> made;
      if (failed(gelu.decompose(builder, made)))
        return failure();
      made.front().setType(gelu.getType());
      gelu.replaceAllUsesWith(made.front());
      gelu.erase();
    }
  }
  return success();
}

void Former::group() {
  plan::separateVariants(main.getBody().front());
  size_t place = 0;
  for (Operation &op : main.getBody().front())
    placeOf[&op] = place++;
  variantOf = plan::getVariants(main.getBody().front());
  for (Operation &op : main.getBody().front()) {
    if (isFree(&op)) {
      // Exists in memory only for those that do not compute it themselves.
      bool needed = llvm::any_of(op.getUsers(), [&](Operation *user) {
        user = main.getBody().front().findAncestorOpInBlock(*user);
        return !(isFusable(user)) && !isa<tv::SizeOp>(user) &&
               llvm::is_contained(user->getOperands(), op.getResult(0));
      });
      if (needed)
        addStep(&op, /*fused=*/true);
      continue;
    }
    if (isMemoryEffectFree(&op) && op.use_empty() &&
        !op.hasTrait<OpTrait::IsTerminator>())
      continue;
    if (!isFusable(&op)) {
      addStep(&op, /*fused=*/own.contains(&op));
      continue;
    }
    addStep(&op, /*fused=*/true);
    // The kernels that it reads from, latest first.
    size_t own = steps.size() - 1;
    SmallVector<size_t> sources = llvm::to_vector(getSources(own));
    llvm::sort(sources, std::greater<size_t>());
    for (size_t target : sources) {
      if (!steps[target].fused ||
          variantOf.lookup(&op) != variantOf.lookup(steps[target].op) ||
          (isProduct(steps[target]) &&
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

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

LogicalResult Former::run() {
  if (!main.getBody().hasOneBlock())
    return main.emitError() << "'@main' must be one block";
  if (failed(verifyLocal(main)))
    return failure();
  for (auto reduce : main.getBody().getOps<tv::ReduceOp>())
    if (!getReducedDims(reduce))
      return reduce.emitError() << "reduces a part of dimensions that the view "
                                   "of its operand merges; reshape it first";
  if (failed(chooseProducts()))
    return failure();
  group();

  // Who needs what, and in which order.
  outputs.resize(steps.size());
  std::vector<llvm::SmallSetVector<size_t, 4>> users(steps.size());
  std::vector<size_t> waitsFor(steps.size());
  for (size_t step = 0; step < steps.size(); ++step) {
    llvm::SmallSetVector<size_t, 4> sources = getSources(step);
    forEachRead(steps[step], [&](Value value) {
      if (Operation *op = value.getDefiningOp())
        if (stepOf.contains(op) && stepOf[op] != step)
          outputs[stepOf[op]].insert(value);
    });
    for (size_t source : sources)
      if (users[source].insert(step))
        ++waitsFor[step];
  }

  Block &block = main.getBody().front();
  auto *planned = new Block();
  main.getBody().push_back(planned);
  for (BlockArgument argument : block.getArguments())
    define(argument,
           planned->addArgument(argument.getType(), argument.getLoc()),
           getOwnMemory(argument.getType()));
  builder.setInsertionPointToStart(planned);

  using Ready = std::pair<size_t, size_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<Ready>> ready;
  for (size_t step = 0; step < steps.size(); ++step)
    if (waitsFor[step] == 0)
      ready.push({steps[step].last, step});
  bool failed = false;
  while (!ready.empty() && !failed) {
    size_t step = ready.top().second;
    ready.pop();
    failed = mlir::failed(emit(steps[step]));
    for (size_t user : users[step])
      if (--waitsFor[user] == 0)
        ready.push({steps[user].last, user});
  }
  if (failed)
    return failure();
  auto variants = plan::getVariants(*planned);
  for (auto choice : planned->getOps<plan::ChooseOp>())
    giveMemory(choice, variants);
  block.dropAllDefinedValueUses();
  block.erase();
  return success();
}

LogicalResult Former::emit(PlanStep &step) {
  Operation *op = step.op;
  if (step.fused)
    return emitLaunch(step);
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tv::LinearOp op) { return emitLinear(op); })
      .Case([&](tv::MatmulOp op) { return emitMatmul(op); })
      .Case([&](tv::TransposeOp op) { return emitTranspose(op); })
      .Case([&](tv::ReshapeOp op) { return emitReshape(op); })
      .Case([&](tv::SliceOp op) {
        Memory memory = memories[op.getInput()];
        memory.dense &= getSpace(op.getInput().getType()) ==
                        getSpace(op.getResult().getType());
        define(op.getResult(),
               alias(plan::AliasKind::Slice, op, mapping.lookup(op.getInput()),
                     *getWindow(op)),
               memory);
        return success();
      })
      .Case([&](comm::SliceOp op) {
        if (isWindow(op)) {
          Memory memory = memories[op.getInputs().front()];
          memory.dense = false;
          define(op.getResults().front(),
                 alias(plan::AliasKind::Shard, op,
                       mapping.lookup(op.getInputs().front())),
                 memory);
          return success();
        }
        Operation *clone = builder.clone(*op, mapping);
        for (auto [old, result] :
             llvm::zip_equal(op->getResults(), clone->getResults()))
          define(old, result, getOwnMemory(old.getType()));
        return success();
      })
      .Case<comm::CollectiveOpInterface, plan::ChooseOp>([&](auto op) {
        Operation *clone = builder.clone(*op, mapping);
        for (auto [old, result] :
             llvm::zip_equal(op->getResults(), clone->getResults()))
          define(old, result, getOwnMemory(old.getType()));
        return success();
      })
      .Case([&](tv::ConstantOp op) {
        define(op.getResult(),
               plan::ConstantOp::create(builder, op.getLoc(),
                                        op.getResult().getType(),
                                        op.getValue()),
               getOwnMemory(op.getResult().getType()));
        return success();
      })
      .Case([&](tv::AttentionOp op) { return emitAttention(op); })
      .Case([&](tv::ScatterOp op) {
        return launch(
            op, "scatter", {}, {op.getResult()},
            [&](KernelEmitter &emitter) { emitScatter(emitter, op); });
      })
      .Case([&](tv::DispatchOp op) {
        return launch(
            op, "dispatch", {}, llvm::to_vector_of<Value>(op->getResults()),
            [&](KernelEmitter &emitter) { emitDispatch(emitter, op); });
      })
      .Case([&](func::ReturnOp op) { return emitReturn(op); })
      .Default([&](Operation *op) -> LogicalResult {
        // The epilogue of a product is there by now.
        if (llvm::all_of(op->getResults(), [&](Value result) {
              return mapping.contains(result);
            }))
          return success();
        return op->emitError()
               << "'" << op->getName()
               << "' has no kernel; it should be gone before tv-form-kernels";
      });
}

LogicalResult Former::launch(Operation *op, StringRef name,
                             const llvm::SetVector<Operation *> &inlined,
                             ArrayRef<Value> results,
                             llvm::function_ref<void(KernelEmitter &)> body) {
  auto memoryOf = [&](Value value) {
    auto found = memories.find(value);
    return found == memories.end() ? getOwnMemory(value.getType())
                                   : found->second;
  };
  OpBuilder atModule(main);
  KernelEmitter emitter(atModule, op->getLoc(), "kernel", inlined, memoryOf);
  body(emitter);
  if (emitter.hasFailed())
    return failure();
  func::FuncOp kernel = emitter.finish();
  // The layers of a model share their kernels.
  std::string text;
  llvm::raw_string_ostream(text) << kernel;
  std::string &symbol = kernels[text];
  if (symbol.empty()) {
    symbol = (name + "_" + Twine(numKernels++)).str();
    kernel.setName(symbol);
  } else {
    kernel.erase();
  }
  SmallVector<Value> inputs;
  for (Value input : emitter.getInputs())
    inputs.push_back(mapping.lookup(input));
  auto launchOp = plan::LaunchOp::create(
      builder, op->getLoc(), ValueRange(results).getTypes(),
      FlatSymbolRefAttr::get(builder.getContext(), symbol), inputs,
      builder.getArrayAttr(emitter.getScalars()),
      builder.getStringAttr(op->getName().getStringRef()));
  for (auto [old, result] : llvm::zip_equal(results, launchOp.getResults()))
    define(old, result, getOwnMemory(old.getType()));
  return success();
}

LogicalResult Former::emitLaunch(PlanStep &step) {
  FusedOps &fused = *step.fused;
  ArrayRef<Value> results = outputs[stepOf[step.op]].getArrayRef();
  if (results.empty())
    return success();
  // Computed in the kernel: the fused ops and the free ones that they read.
  llvm::SetVector<Operation *> inlined = fused.ops;
  if (isProduct(step))
    inlined.remove(fused.ops.front());
  for (size_t i = 0; i < inlined.size(); ++i)
    for (Value value : getReadValues(inlined[i]))
      if (Operation *op = value.getDefiningOp())
        if (isFree(op))
          inlined.insert(op);
  if (Operation *product = fused.ops.front(); isProduct(step))
    return launch(
        product, product->getName().stripDialect(), inlined, results,
        [&](KernelEmitter &emitter) { emitProduct(emitter, fused, results); });
  auto memoryOf = [](Value value) { return getOwnMemory(value.getType()); };
  return launch(step.op, step.op->getName().stripDialect(), inlined, results,
                [&](KernelEmitter &emitter) {
                  emitFused(emitter, fused, results, memoryOf);
                });
}

Value Former::copy(Location loc, Value planned, StringRef source) {
  // Dense and row-major.
  auto type = cast<RankedTensorType>(planned.getType());
  auto local = cast<tv::LocalAttr>(type.getEncoding());
  layout::View view = local.getLayoutView();
  view.alloc.reset();
  auto dense = tv::LocalAttr::get(type.getContext(), local.getView().with(view),
                                  local.getExtents());
  return plan::CopyOp::create(builder, loc, tv::withEncoding(type, dense),
                              planned, builder.getStringAttr(source));
}

Value Former::alias(plan::AliasKind kind, Operation *op, Value planned,
                    ArrayRef<int64_t> at) {
  return plan::AliasOp::create(
      builder, op->getLoc(), op->getResult(0).getType(), kind, planned,
      kind == plan::AliasKind::Transpose || kind == plan::AliasKind::Slice
          ? builder.getDenseI64ArrayAttr(at)
          : DenseI64ArrayAttr());
}

LogicalResult Former::emitTranspose(tv::TransposeOp op) {
  if (isFlat(op.getInput()))
    return op.emitError()
           << "transposes dimensions that the view of its operand merges; "
              "reshape it first";
  Memory memory = memories[op.getInput()];
  SmallVector<int64_t> resultDim(op.getPerm().size());
  for (auto [to, from] : llvm::enumerate(op.getPerm()))
    resultDim[from] = to;
  for (int64_t &dim : memory.order)
    dim = resultDim[dim];
  define(op.getResult(),
         alias(plan::AliasKind::Transpose, op, mapping.lookup(op.getInput()),
               op.getPerm()),
         memory);
  return success();
}

LogicalResult Former::emitReshape(tv::ReshapeOp op) {
  Value planned = mapping.lookup(op.getInput());
  if (!memories[op.getInput()].isRowMajor())
    planned = copy(op.getLoc(), planned, op->getName().getStringRef());
  Memory memory;
  llvm::append_range(memory.order,
                     llvm::seq<int64_t>(0, op.getResult().getType().getRank()));
  define(op.getResult(), alias(plan::AliasKind::Reshape, op, planned), memory);
  return success();
}

/// Whether the tensors of a product have equal local ranks and no merged
/// dimension among the last `plain`.
static LogicalResult verifyProduct(Operation *op, ValueRange tensors,
                                   size_t plain) {
  size_t rank = getSpace(tensors.front().getType()).size();
  for (Value tensor : tensors) {
    Space space = getSpace(tensor.getType());
    bool fits = space.size() == rank && rank >= plain;
    for (size_t i = 0; fits && i < plain; ++i)
      fits = space[rank - 1 - i].extents.size() == 1;
    if (!fits)
      return op->emitError()
             << "multiplies along dimensions that a view merges; "
                "reshape them first";
  }
  return success();
}

LogicalResult Former::emitLinear(tv::LinearOp op) {
  if (failed(verifyProduct(op, {op.getInput(), op.getResult()}, 1)) ||
      failed(verifyProduct(op, op.getWeight(), 2)))
    return failure();
  int32_t rank = cast<RankedTensorType>(op.getInput().getType()).getRank();
  auto a = llvm::to_vector(llvm::seq<int32_t>(0, rank)), c = a;
  SmallVector<int32_t> b = {rank, rank - 1};
  c.back() = rank;
  // A gelu that is still here is the product's epilogue.
  tv::GeluOp gelu;
  for (Operation *user : op.getResult().getUsers())
    if (auto epilogue = dyn_cast<tv::GeluOp>(user);
        epilogue && epilogue.getTanh())
      gelu = epilogue;
  Value result = gelu ? gelu.getResult() : op.getResult();
  Value aux = gelu && !op.getResult().hasOneUse() ? op.getResult() : Value();
  auto contract = plan::ContractOp::create(
      builder, op.getLoc(), result.getType(), aux ? aux.getType() : Type(),
      mapping.lookup(op.getInput()), mapping.lookup(op.getWeight()),
      op.getBias() ? mapping.lookup(op.getBias()) : Value(), a, b, c,
      gelu ? plan::EpilogueAttr::get(builder.getContext(),
                                     plan::Epilogue::GeluTanh)
           : plan::EpilogueAttr(),
      op->getName().getStringRef());
  define(result, contract.getResult(), getOwnMemory(result.getType()));
  if (aux)
    define(aux, contract.getAux(), getOwnMemory(aux.getType()));
  return success();
}

LogicalResult Former::emitMatmul(tv::MatmulOp op) {
  if (failed(verifyProduct(op, {op.getLhs(), op.getRhs(), op.getResult()}, 2)))
    return failure();
  int32_t rank = cast<RankedTensorType>(op.getLhs().getType()).getRank();
  auto a = llvm::to_vector(llvm::seq<int32_t>(0, rank)), b = a, c = a;
  b[rank - 2] = rank - 1;
  b[rank - 1] = c[rank - 1] = rank;
  auto contract = plan::ContractOp::create(
      builder, op.getLoc(), op.getResult().getType(), /*aux=*/Type(),
      mapping.lookup(op.getLhs()), mapping.lookup(op.getRhs()),
      /*bias=*/Value(), a, b, c, plan::EpilogueAttr(),
      op->getName().getStringRef());
  define(op.getResult(), contract.getResult(),
         getOwnMemory(op.getResult().getType()));
  return success();
}

/// Whether, with dimension `unit` innermost in memory, all other strides of a
/// planned value and the place of its first element are multiples of 8
/// elements.
static bool isAligned(Value planned, int64_t unit) {
  auto alias = planned.getDefiningOp<plan::AliasOp>();
  if (!alias) {
    int64_t size = cast<RankedTensorType>(planned.getType()).getDimSize(unit);
    return !ShapedType::isDynamic(size) && size % 8 == 0;
  }
  Value source = alias.getInput();
  switch (alias.getKind()) {
  case plan::AliasKind::Reshape: // of a source in row-major order
    return isAligned(source,
                     cast<RankedTensorType>(source.getType()).getRank() - 1);
  case plan::AliasKind::Transpose:
    return isAligned(source, (*alias.getAt())[unit]);
  case plan::AliasKind::Slice:
    return (*alias.getAt())[unit] % 8 == 0 && isAligned(source, unit);
  case plan::AliasKind::Shard:
    return getSpace(source.getType())[unit] ==
               getSpace(planned.getType())[unit] &&
           isAligned(source, unit);
  }
  llvm_unreachable("all kinds are covered");
}

/// Tensor maps read operands: rows of 16-byte pieces. What lies otherwise is
/// copied.
LogicalResult Former::emitAttention(tv::AttentionOp op) {
  IRMapping before = mapping;
  llvm::DenseMap<Value, Memory> memoriesBefore = memories;
  llvm::SmallSetVector<Value, 3> operands;
  operands.insert_range(op->getOperands());
  for (Value operand : operands) {
    Memory memory = memories[operand];
    Value planned = mapping.lookup(operand);
    if (memory.unit && memory.order.back() == 3 && isAligned(planned, 3))
      continue;
    Value copied = copy(op.getLoc(), planned, op->getName().getStringRef());
    define(operand, copied, getOwnMemory(copied.getType()));
  }
  llvm::SetVector<Operation *> inlined;
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (size_t i = 0; i < captured.size(); ++i)
    if (Operation *source = captured[i].getDefiningOp())
      if (isFree(source)) {
        inlined.insert(source);
        captured.insert_range(getReadValues(source));
      }
  SmallVector<Value> results = {op.getResult()};
  if (!op.getLse().use_empty())
    results.push_back(op.getLse());
  LogicalResult launched =
      launch(op, "attention", inlined, results, [&](KernelEmitter &emitter) {
        tessera::emitAttention(emitter, op);
      });
  // Others read the operands where they are.
  for (Value operand : operands) {
    mapping.map(operand, before.lookup(operand));
    memories[operand] = memoriesBefore[operand];
  }
  return launched;
}

LogicalResult Former::emitReturn(func::ReturnOp op) {
  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    Value planned = mapping.lookup(operand.get());
    // An output is memory of the caller, written by one step.
    bool repeated = llvm::is_contained(operands, planned);
    bool isWindow =
        !planned.getDefiningOp() ||
        isa<plan::AliasOp, plan::ConstantOp>(planned.getDefiningOp());
    if (repeated || isWindow) {
      planned = plan::CopyOp::create(
          builder, op.getLoc(), operand.get().getType(), planned,
          builder.getStringAttr(op->getName().getStringRef()));
    }
    operands.push_back(planned);
  }
  func::ReturnOp::create(builder, op.getLoc(), operands);
  return success();
}

/// Each value of a choice becomes memory that one step writes, a step of the
/// value's variant, and that nothing but the choice reads.
void Former::giveMemory(
    plan::ChooseOp choice,
    const llvm::DenseMap<Operation *, plan::Variant> &variants) {
  builder.setInsertionPoint(choice);
  for (OpOperand &operand : choice->getOpOperands()) {
    Operation *step = operand.get().getDefiningOp();
    bool isStep =
        step && !isa<plan::AliasOp, plan::ConstantOp, plan::ChooseOp>(step);
    unsigned number = operand.getOperandNumber() / choice.getNumResults();
    bool isOwn = choice.getVariants().size() == 1 ||
                 variants.lookup(step) == plan::Variant{choice, number};
    if (isStep && isOwn && operand.get().hasOneUse())
      continue;
    operand.set(plan::CopyOp::create(builder, choice.getLoc(),
                                     operand.get().getType(), operand.get(),
                                     choice.getSourceAttr()));
  }
}

namespace {
struct FormKernels : public tessera::impl::FormKernelsBase<FormKernels> {
  using FormKernelsBase::FormKernelsBase;

  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main) {
      getOperation().emitError() << "a program needs a function '@main'";
      return signalPassFailure();
    }
    SmallVector<std::string> variants(matmul.begin(), matmul.end());
    Former former(main, target, variants);
    if (failed(former.run()))
      return signalPassFailure();
    getOperation()->removeAttr(plan::kTargetAttr);
    if (target != plan::kCPUTarget)
      getOperation()->setAttr(plan::kTargetAttr,
                              StringAttr::get(&getContext(), target));
  }
};
} // namespace
