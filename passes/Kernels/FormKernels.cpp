//===- FormKernels.cpp - groups ops into kernels --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each step (Grouping.h) becomes ops of the plan beside the old block: a kernel
// and its launch, a product for a library, a window on memory or a copy. A
// product with several variants becomes all of them, and a choice. What a
// choice chooses from has memory of its own.
//
//===----------------------------------------------------------------------===//

#include "Comm/Comm.h"
#include "Kernels/BuildLocal.h"
#include "Kernels/Grouping.h"
#include "Kernels/LoopKernels.h"
#include "Kernels/Passes.h"
#include "Kernels/Windows.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_FORMKERNELS
#include "Kernels/Passes.h.inc"
} // namespace tessera

namespace {
class Former {
public:
  Former(func::FuncOp main) : main(main), builder(main.getContext()) {}
  LogicalResult run(MutableArrayRef<PlanStep> steps);
  size_t numKernels = 0;

private:
  LogicalResult emit(PlanStep &step);
  LogicalResult emitLaunch(const FusedOps &fused, ArrayRef<Value> results,
                           bool isProduct);
  LogicalResult emitProduct(PlanStep &step);
  LogicalResult emitLibraryProduct(PlanStep &step);
  LogicalResult emitReturn(func::ReturnOp op);
  void giveMemory(plan::ChooseOp choice,
                  const llvm::DenseMap<Operation *, plan::Variant> &variants);
  LogicalResult emitTranspose(Operation *op, ArrayRef<int64_t> perm);
  LogicalResult emitReshape(Operation *op);
  using Joined = ArrayRef<plan::Fusion>;
  LogicalResult emitContract(tv::ContractionOpInterface op, Joined joined);
  LogicalResult emitAttention(tv::AttentionOp op);
  LogicalResult emitAttention(tv::AttentionGradOp op);
  LogicalResult emitFlash(Operation *op, StringRef name, ValueRange heads,
                          ArrayRef<Value> results,
                          llvm::function_ref<void(KernelEmitter &)> body);
  LogicalResult emitAttend(plan::AttendOp op);
  LogicalResult launch(Operation *op, StringRef name,
                       const llvm::SetVector<Operation *> &inlined,
                       ArrayRef<Value> outputs,
                       llvm::function_ref<void(KernelEmitter &)> body);
  Value copy(Location loc, Value planned, StringRef source);
  Value inOrder(Operation *op, Value operand, ArrayRef<int64_t> perm);
  Value inRows(Location loc, Value operand, StringRef source);
  Value alias(plan::AliasKind kind, Operation *op, Value planned,
              ArrayRef<int64_t> at = {});
  void define(Value value, Value planned, Memory memory) {
    mapping.map(value, planned);
    memories[value] = std::move(memory);
  }

  func::FuncOp main;
  OpBuilder builder;
  IRMapping mapping; ///< values to those of the plan
  llvm::DenseMap<Value, Memory> memories;
  llvm::StringMap<std::string> kernels; ///< text to symbol
  Block scratch; ///< its arguments stand for memory that one kernel needs
};
} // namespace

/// What an op is called in reports.
static StringRef getSource(Operation *op) {
  auto name = dyn_cast<NameLoc>(op->getLoc());
  // What tv-simplify made keeps the name of what the program says.
  if (name && isa<tv::ContractOp>(op))
    return name.getName().strref();
  return op->getName().getStringRef();
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

LogicalResult Former::run(MutableArrayRef<PlanStep> steps) {
  Block &block = main.getBody().front();
  auto *planned = new Block();
  main.getBody().push_back(planned);
  for (BlockArgument argument : block.getArguments())
    define(argument,
           planned->addArgument(argument.getType(), argument.getLoc()),
           getOwnMemory(argument.getType()));
  builder.setInsertionPointToStart(planned);
  for (PlanStep &step : steps)
    if (failed(emit(step)))
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
  if (step.product)
    return emitProduct(step);
  if (step.fused)
    return emitLaunch(*step.fused, step.outputs.getArrayRef(),
                      /*isProduct=*/false);
  // What moves nothing is a window on memory.
  if (auto permutation = getPermutation(op))
    return emitTranspose(op, *permutation);
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tv::ReinterpretOpInterface op) { return emitReshape(op); })
      .Case([&](tv::WindowOpInterface op) {
        Value whole = op.getWhole(), box = op->getResult(0);
        Memory memory = memories[whole];
        memory.dense &= getSpace(whole.getType()) == getSpace(box.getType());
        define(box,
               alias(plan::AliasKind::Slice, op, mapping.lookup(whole),
                     *getWindow(op)),
               memory);
        return success();
      })
      // A collective, but for a window.
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
      // One that is no splat is data of the plan.
      .Case([&](tv::ConstantOp op) {
        define(op.getResult(),
               plan::ConstantOp::create(builder, op.getLoc(),
                                        op.getResult().getType(),
                                        op.getValue()),
               getOwnMemory(op.getResult().getType()));
        return success();
      })
      // Kernels of their own.
      .Case<tv::AttentionOp, tv::AttentionGradOp>(
          [&](auto op) { return emitAttention(op); })
      .Case([&](plan::AttendOp op) { return emitAttend(op); })
      // These too: where they write depends on data.
      .Case<tv::ScatterOp, tv::DispatchOp>([&](auto op) {
        return launch(op, op->getName().stripDialect(), {},
                      llvm::to_vector_of<Value>(op->getResults()),
                      [&](KernelEmitter &emitter) { emitLoops(emitter, op); });
      })
      .Case([&](func::ReturnOp op) { return emitReturn(op); })
      .Default([&](Operation *op) -> LogicalResult {
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
  // Where all that it computes is from, in order.
  SmallVector<Operation *> ops(inlined.begin(), inlined.end());
  if (!inlined.contains(op))
    ops.push_back(op);
  llvm::sort(ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  kernel->setLoc(FusedLoc::get(
      builder.getContext(),
      llvm::map_to_vector(ops, [](Operation *op) { return op->getLoc(); })));
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
      builder.getStringAttr(getSource(op)));
  for (auto [old, result] : llvm::zip_equal(results, launchOp.getResults()))
    define(old, result, getOwnMemory(old.getType()));
  return success();
}

LogicalResult Former::emitLaunch(const FusedOps &fused, ArrayRef<Value> results,
                                 bool isProduct) {
  if (results.empty())
    return success();
  // Computed in the kernel: the fused ops and the free ones that they read.
  llvm::SetVector<Operation *> inlined = fused.ops;
  if (isProduct)
    inlined.remove(fused.ops.front());
  for (size_t i = 0; i < inlined.size(); ++i)
    for (Value value : getReadValues(inlined[i]))
      if (Operation *op = value.getDefiningOp())
        if (isFree(op))
          inlined.insert(op);
  if (isProduct) {
    auto product = cast<tv::ContractionOpInterface>(fused.ops.front());
    const ProductOrders orders = getProductOrders(product).value();
    Value a = inOrder(product, product.getA(), orders.a),
          b = inOrder(product, product.getB(), orders.b);
    return launch(product, getSource(product).split('.').second, inlined,
                  results, [&](KernelEmitter &emitter) {
                    tessera::emitProduct(emitter, fused, a, b, results);
                  });
  }
  auto memoryOf = [](Value value) { return getOwnMemory(value.getType()); };
  Operation *op = fused.ops.back();
  return launch(op, op->getName().stripDialect(), inlined, results,
                [&](KernelEmitter &emitter) {
                  emitFused(emitter, fused, results, memoryOf);
                });
}

/// Each variant computes the step's outputs, between which a choice chooses.
/// One that is alone leaves nothing to choose, but perhaps a reason.
LogicalResult Former::emitProduct(PlanStep &step) {
  const auto &[names, without] = step.product->variants;
  if (names.empty())
    return emitLibraryProduct(step);
  if (step.fused && step.outputs.empty())
    return success();
  ArrayRef<Value> outputs;
  if (names.size() > 1)
    outputs = step.outputs.getArrayRef();
  SmallVector<Value> values;
  for (StringRef variant : names) {
    if (failed(variant == kOwnProduct
                   ? emitLaunch(*step.fused, step.outputs.getArrayRef(),
                                /*isProduct=*/true)
                   : emitLibraryProduct(step)))
      return failure();
    for (Value output : outputs)
      values.push_back(mapping.lookup(output));
  }
  if (names.size() == 1 && !without)
    return success();
  Operation *product = step.fused ? step.fused->ops.front() : step.op;
  auto choice = plan::ChooseOp::create(
      builder, product->getLoc(), ValueRange(outputs).getTypes(), "matmul",
      builder.getStrArrayAttr(names), values, without, getSource(product));
  for (auto [output, result] : llvm::zip_equal(outputs, choice.getResults()))
    define(output, result, getOwnMemory(output.getType()));
  return success();
}

/// The library's product, and a kernel of what it leaves of the fused ops.
LogicalResult Former::emitLibraryProduct(PlanStep &step) {
  auto ops = step.fused ? step.fused->ops.getArrayRef() : ArrayRef(step.op);
  SmallVector<plan::Fusion, 2> joined = step.joined;
  Operation *epilogue = nullptr;
  if (const auto &fusion = step.product->epilogue;
      fusion && !(step.fused && !step.fused->ops.contains(fusion->op))) {
    joined.push_back(*fusion);
    epilogue = fusion->op;
  }
  if (failed(
          emitContract(cast<tv::ContractionOpInterface>(ops.front()), joined)))
    return failure();
  std::optional<FusedOps> rest;
  for (Operation *op : ops.drop_front()) {
    if (op == epilogue)
      continue;
    if (!rest)
      rest.emplace(op);
    else if (!rest->tryAdd(op))
      llvm_unreachable("what fits behind a product fits without it");
  }
  if (!rest)
    return success();
  auto outputs = llvm::filter_to_vector(step.outputs, [&](Value output) {
    return rest->ops.contains(output.getDefiningOp());
  });
  return emitLaunch(*rest, outputs, /*isProduct=*/false);
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

/// Memory whose dimensions are taken in another order.
static Memory permute(Memory memory, ArrayRef<int64_t> perm) {
  SmallVector<int64_t> resultDim(perm.size());
  for (auto [to, from] : llvm::enumerate(perm))
    resultDim[from] = to;
  for (int64_t &dim : memory.order)
    dim = resultDim[dim];
  return memory;
}

LogicalResult Former::emitTranspose(Operation *op, ArrayRef<int64_t> perm) {
  Value input = op->getOperand(0);
  if (!isPlain(input))
    return op->emitError()
           << "transposes dimensions that the view of its operand merges; "
              "reshape it first";
  define(op->getResult(0),
         alias(plan::AliasKind::Transpose, op, mapping.lookup(input), perm),
         permute(memories[input], perm));
  return success();
}

/// An operand with its dimensions in another order.
Value Former::inOrder(Operation *op, Value operand, ArrayRef<int64_t> perm) {
  if (llvm::is_sorted(perm))
    return operand;
  // A value of no op.
  Value turned = scratch.addArgument(
      LocalShape(operand).take(perm).summed(operand).type(getElement(operand)),
      op->getLoc());
  define(turned,
         plan::AliasOp::create(builder, op->getLoc(), turned.getType(),
                               plan::AliasKind::Transpose,
                               mapping.lookup(operand),
                               builder.getDenseI64ArrayAttr(perm)),
         permute(memories[operand], perm));
  return turned;
}

LogicalResult Former::emitReshape(Operation *op) {
  Value input = op->getOperand(0), result = op->getResult(0);
  Value planned = mapping.lookup(input);
  if (!memories[input].isRowMajor())
    planned = copy(op->getLoc(), planned, op->getName().getStringRef());
  Memory memory;
  const int64_t rank = cast<RankedTensorType>(result.getType()).getRank();
  llvm::append_range(memory.order, llvm::seq<int64_t>(0, rank));
  define(result, alias(plan::AliasKind::Reshape, op, planned), memory);
  return success();
}

/// A product by its labels, with what the library does as well.
LogicalResult Former::emitContract(tv::ContractionOpInterface op,
                                   Joined joined) {
  std::optional<tv::ContractionLabels> labels = getLocalLabels(op);
  if (!labels)
    return op.emitError() << "multiplies along dimensions that a view merges; "
                             "reshape them first";
  Value bias = op.getBias();
  Value result = op->getResult(0), second, x;
  plan::EpilogueAttr epilogue;
  plan::SummedAttr summed;
  for (const plan::Fusion &fusion : joined) {
    if (fusion.summed) {
      second = fusion.op->getResult(0);
      summed = plan::SummedAttr::get(builder.getContext(), *fusion.summed);
      continue;
    }
    // What goes into an epilogue is there as well where it is read.
    if (fusion.x)
      x = mapping.lookup(fusion.x);
    else if (!result.hasOneUse())
      second = result;
    result = fusion.op->getResult(0);
    epilogue = plan::EpilogueAttr::get(builder.getContext(), *fusion.epilogue);
  }
  auto contract = plan::ContractOp::create(
      builder, op->getLoc(), result.getType(),
      second ? second.getType() : Type(), mapping.lookup(op.getA()),
      mapping.lookup(op.getB()), bias ? mapping.lookup(bias) : Value(), x,
      labels->a, labels->b, labels->result, epilogue, summed, getSource(op));
  define(result, contract.getResult(), getOwnMemory(result.getType()));
  if (second)
    define(second, contract.getSecond(), getOwnMemory(second.getType()));
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

/// An operand of attention on tensor cores, which read rows of 16-byte pieces.
/// What lies otherwise is copied.
Value Former::inRows(Location loc, Value operand, StringRef source) {
  const Memory &memory = memories[operand];
  Value planned = mapping.lookup(operand);
  if (memory.unit && memory.order.back() == 3 && isAligned(planned, 3))
    return planned;
  return copy(loc, planned, source);
}

LogicalResult Former::emitAttend(plan::AttendOp op) {
  SmallVector<Value> operands;
  llvm::SmallDenseMap<Value, Value> known;
  for (Value operand : op->getOperands()) {
    Value &planned = known[operand];
    if (!planned)
      planned = inRows(op.getLoc(), operand, op.getSource());
    operands.push_back(planned);
  }
  bool hasLse = op.getLse() && !op.getLse().use_empty();
  auto attend = plan::AttendOp::create(
      builder, op.getLoc(), op.getResult().getType(),
      hasLse ? op.getLse().getType() : Type(), operands[0], operands[1],
      operands[2], op.getScaleAttr(), op.getCausalAttr(), op.getSourceAttr());
  define(op.getResult(), attend.getResult(),
         getOwnMemory(op.getResult().getType()));
  if (hasLse)
    define(op.getLse(), attend.getLse(), getOwnMemory(op.getLse().getType()));
  return success();
}

/// A kernel that reads `heads` in rows.
LogicalResult
Former::emitFlash(Operation *op, StringRef name, ValueRange heads,
                  ArrayRef<Value> results,
                  llvm::function_ref<void(KernelEmitter &)> body) {
  IRMapping before = mapping;
  llvm::DenseMap<Value, Memory> memoriesBefore = memories;
  llvm::SmallSetVector<Value, 5> operands;
  operands.insert_range(heads);
  for (Value operand : operands) {
    Value planned = inRows(op->getLoc(), operand, op->getName().getStringRef());
    if (planned != mapping.lookup(operand))
      define(operand, planned, getOwnMemory(planned.getType()));
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
  LogicalResult launched = launch(op, name, inlined, results, body);
  // Others read the operands where they are.
  for (Value operand : operands) {
    mapping.map(operand, before.lookup(operand));
    memories[operand] = memoriesBefore[operand];
  }
  return launched;
}

LogicalResult Former::emitAttention(tv::AttentionOp op) {
  SmallVector<Value> results = {op.getResult()};
  if (!op.getLse().use_empty())
    results.push_back(op.getLse());
  return emitFlash(
      op, "attention", op->getOperands(), results,
      [&](KernelEmitter &emitter) { tessera::emitAttention(emitter, op); });
}

LogicalResult Former::emitAttention(tv::AttentionGradOp op) {
  LocalShape shape = LocalShape(op.getQuery()).take({0, 1});
  LocalShape query(op.getQuery());
  shape.add(query.extents[2] + layout::Extent(128));
  // Three numbers a row, and what functors have of it.
  const bool hasMods = !op.getScoreMod().empty() || !op.getMaskMod().empty();
  shape.add(query.extents[3] + layout::Extent(hasMods ? 7 : 3));
  // A value of no op.
  Value sums =
      scratch.addArgument(shape.type(builder.getF32Type()), op.getLoc());
  SmallVector<Value> results(op->getResults());
  results.push_back(sums);
  return emitFlash(
      op, "attention_grad",
      {op.getGrad(), op.getQuery(), op.getKey(), op.getValue(), op.getOutput()},
      results, [&](KernelEmitter &emitter) {
        tessera::emitAttentionGrad(emitter, op, sums);
      });
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
/// value's variant, and that no other variant reads.
void Former::giveMemory(
    plan::ChooseOp choice,
    const llvm::DenseMap<Operation *, plan::Variant> &variants) {
  builder.setInsertionPoint(choice);
  for (OpOperand &operand : choice->getOpOperands()) {
    if (plan::isOwnMemory(operand, variants))
      continue;
    operand.set(plan::CopyOp::create(builder, choice.getLoc(),
                                     operand.get().getType(), operand.get(),
                                     choice.getSourceAttr()));
  }
}

/// Says what the steps below cannot be made of.
static LogicalResult verify(func::FuncOp main) {
  for (auto op : main.getBody().getOps<tv::ElementOpInterface>())
    if (op.getReduction() && !getReducedDims(op))
      return op.emitError() << "reduces a part of dimensions that the view "
                               "of its operand merges; reshape it first";
  return success();
}

namespace {
struct FormKernels : public tessera::impl::FormKernelsBase<FormKernels> {
  using FormKernelsBase::FormKernelsBase;

  void runOnContract() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main) {
      getOperation().emitError() << "a program needs a function '@main'";
      return signalPassFailure();
    }
    SmallVector<std::string> variants(matmul.begin(), matmul.end());
    if (failed(verify(main)))
      return signalPassFailure();
    FailureOr<std::vector<PlanStep>> steps = groupSteps(main, variants);
    if (failed(steps) || failed(Former(main).run(*steps)))
      return signalPassFailure();
  }
};
} // namespace
