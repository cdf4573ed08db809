//===- EmitKernels.cpp - groups become loops over memory ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Op by op, where it stands: a group becomes a kernel and its launch or a
// product for a library, any other op a window on memory or a copy. What a
// choice chooses from has memory of its own, and what nothing but a concat
// reads is written in its place there.
//
//===----------------------------------------------------------------------===//

#include "Comm/Comm.h"
#include "Kernels/CapturedGrad.h"
#include "Kernels/FusedKernel.h"
#include "Kernels/LoopKernels.h"
#include "Kernels/Passes.h"
#include "Kernels/Windows.h"
#include "Plan/Target.h"

#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_EMITKERNELS
#include "Kernels/Passes.h.inc"
} // namespace tessera

namespace {
class Emitter {
public:
  Emitter(func::FuncOp main) : main(main), builder(main.getContext()) {}
  LogicalResult run();

private:
  LogicalResult emit(Operation *op);
  LogicalResult emitGroup(plan::GroupOp group);
  LogicalResult emitInOrder(Operation *op);
  LogicalResult emitLoops(plan::GroupOp group);
  LogicalResult emitContract(plan::GroupOp group);
  LogicalResult emitAttention(tv::AttentionOp op);
  LogicalResult emitAttention(tv::AttentionGradOp op);
  LogicalResult emitFlash(Operation *op, StringRef name, ValueRange heads,
                          ArrayRef<Value> results,
                          llvm::function_ref<void(KernelEmitter &)> body);
  FailureOr<Value> getWalks(tv::AttentionGradOp op);
  LogicalResult emitTranspose(Operation *op, ArrayRef<int64_t> perm);
  LogicalResult emitWindow(plan::GroupOp group, tv::WindowOpInterface op);
  void readRows(Operation *op, StringRef source);
  void emitAttend(plan::AttendOp op);
  void emitReturn(func::ReturnOp op);
  void giveMemory(plan::ChooseOp choice,
                  const llvm::DenseMap<Operation *, plan::Variant> &variants);
  LogicalResult launch(Operation *op, StringRef name,
                       const llvm::SetVector<Operation *> &inlined,
                       ArrayRef<Value> outputs,
                       llvm::function_ref<void(KernelEmitter &)> body);
  Value copy(Location loc, Value planned, StringRef source);
  Value inOrder(Operation *op, Value operand, ArrayRef<int64_t> perm);
  Value inRows(Location loc, Value operand, StringRef source);
  LogicalResult replace(Operation *op, plan::AliasKind kind, Value planned,
                        ArrayRef<int64_t> at = {});

  func::FuncOp main;
  OpBuilder builder;
  IRMapping made; ///< values of the group to those of the plan
  llvm::DenseMap<size_t, SmallVector<func::FuncOp, 1>> kernels; ///< by hash
  /// Of a block mask, by what else they are of.
  llvm::DenseMap<std::pair<Value, Attribute>, Value> allWalks;
  size_t numKernels = 0;
};
} // namespace

static LogicalResult hasNoKernel(Operation *op) {
  return op->emitError() << "'" << op->getName()
                         << "' has no kernel; it should be gone before "
                            "tv-emit-kernels";
}

//===----------------------------------------------------------------------===//
// Ops of the program
//===----------------------------------------------------------------------===//

LogicalResult Emitter::run() {
  Block &block = main.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(block)) {
    builder.setInsertionPoint(&op);
    if (failed(emit(&op)))
      return failure();
  }
  auto variants = plan::getVariants(block);
  for (auto choice : block.getOps<plan::ChooseOp>())
    giveMemory(choice, variants);
  return success();
}

LogicalResult Emitter::emit(Operation *op) {
  // What moves nothing is a window on memory.
  if (auto permutation = getPermutation(op))
    return emitTranspose(op, *permutation);
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](plan::GroupOp group) { return emitGroup(group); })
      .Case([&](tv::ReinterpretOpInterface) {
        Value input = op->getOperand(0);
        if (!mayBeReshaped(getMemory(input), input.getType(),
                           op->getResult(0).getType()))
          input = copy(op->getLoc(), input, op->getName().getStringRef());
        return replace(op, plan::AliasKind::Reshape, input);
      })
      .Case([&](tv::WindowOpInterface box) {
        if (auto window = getWindow(op))
          return replace(op, plan::AliasKind::Slice, box.getWhole(), *window);
        return hasNoKernel(op);
      })
      // A collective, but for a window.
      .Case([&](comm::SliceOp slice) {
        return isWindow(slice)
                   ? replace(op, plan::AliasKind::Shard, op->getOperand(0))
                   : success();
      })
      .Case([](comm::CollectiveOpInterface) { return success(); })
      .Case([](plan::ChooseOp) { return success(); })
      // One that is no splat is data of the plan.
      .Case([&](tv::ConstantOp constant) {
        op->replaceAllUsesWith(plan::ConstantOp::create(
            builder, op->getLoc(), constant.getResult().getType(),
            constant.getValue()));
        op->erase();
        return success();
      })
      .Case([&](plan::AttendOp attend) {
        emitAttend(attend);
        return success();
      })
      .Case([&](plan::AttendGradOp attend) {
        readRows(attend, attend.getSource());
        return success();
      })
      .Case([&](func::ReturnOp end) {
        emitReturn(end);
        return success();
      })
      .Default(hasNoKernel);
}

LogicalResult Emitter::replace(Operation *op, plan::AliasKind kind,
                               Value planned, ArrayRef<int64_t> at) {
  const bool isPlaced =
      kind == plan::AliasKind::Transpose || kind == plan::AliasKind::Slice;
  op->replaceAllUsesWith(plan::AliasOp::create(
      builder, op->getLoc(), op->getResult(0).getType(), kind, planned,
      isPlaced ? builder.getDenseI64ArrayAttr(at) : DenseI64ArrayAttr()));
  op->erase();
  return success();
}

Value Emitter::copy(Location loc, Value planned, StringRef source) {
  // Dense and row-major.
  const tv::LocalAttr local = getLocal(planned);
  layout::View view = local.getLayoutView();
  view.alloc.reset();
  auto dense = tv::LocalAttr::get(
      local.getContext(), local.getView().with(view), local.getExtents());
  return plan::CopyOp::create(builder, loc,
                              tv::withEncoding(planned.getType(), dense),
                              planned, builder.getStringAttr(source));
}

LogicalResult Emitter::emitTranspose(Operation *op, ArrayRef<int64_t> perm) {
  if (!isPlain(op->getOperand(0)))
    return op->emitError()
           << "transposes dimensions that the view of its operand merges; "
              "reshape it first";
  return replace(op, plan::AliasKind::Transpose, op->getOperand(0), perm);
}

/// An operand of attention on tensor cores, which read rows of 16-byte pieces.
/// What lies otherwise is copied.
Value Emitter::inRows(Location loc, Value operand, StringRef source) {
  const Memory memory = getMemory(operand);
  if (memory.unit && memory.order.back() == 3 && isAligned(operand, 3))
    return operand;
  return copy(loc, operand, source);
}

/// (A log-sum-exp, which is no head's, may lie anyhow.)
void Emitter::readRows(Operation *op, StringRef source) {
  llvm::SmallDenseMap<Value, Value> known;
  for (OpOperand &operand : op->getOpOperands()) {
    if (cast<RankedTensorType>(operand.get().getType()).getRank() != 4)
      continue;
    Value &planned = known[operand.get()];
    if (!planned)
      planned = inRows(op->getLoc(), operand.get(), source);
    operand.set(planned);
  }
}

void Emitter::emitAttend(plan::AttendOp op) {
  readRows(op, op.getSource());
  if (!op.getLse() || !op.getLse().use_empty())
    return;
  auto attend = plan::AttendOp::create(
      builder, op.getLoc(), op.getResult().getType(), Type(), op.getQuery(),
      op.getKey(), op.getValue(), op.getScaleAttr(), op.getCausalAttr(),
      op.getSourceAttr());
  op.getResult().replaceAllUsesWith(attend.getResult());
  op.erase();
}

/// An output is memory of the caller, written by one step: in other dimensions,
/// too, but for a state, which a step may replace where it lies.
void Emitter::emitReturn(func::ReturnOp op) {
  llvm::SmallPtrSet<Value, 4> returned;
  const SmallVector<BlockArgument> states = tv::getStates(main);
  for (OpOperand &operand : op->getOpOperands()) {
    Value planned = operand.get();
    Operation *step = planned.getDefiningOp();
    const bool isAlias = isa_and_present<plan::AliasOp>(step);
    const layout::Shape sizes = tv::getGlobalShape(planned.getType());
    const auto known = llvm::find_if(
        sizes, [](int64_t size) { return size != layout::kDynamic; });
    if (isAlias && !states[operand.getOperandNumber()] &&
        known != sizes.end() && mayBeReturned(planned))
      operand.set(plan::JoinOp::create(builder, op.getLoc(), planned.getType(),
                                       planned, known - sizes.begin()));
    else if (!returned.insert(planned).second || !step || isAlias ||
             isa<plan::ConstantOp>(step))
      operand.set(plan::CopyOp::create(
          builder, op.getLoc(), planned.getType(), planned,
          builder.getStringAttr(op->getName().getStringRef())));
  }
}

/// Each value of a choice becomes memory that one step writes, a step of the
/// value's variant, and that no other variant reads.
void Emitter::giveMemory(
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

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

/// Of a kernel's ops, without what they are applied to.
static size_t hashOf(func::FuncOp kernel) {
  llvm::hash_code hash = hash_value(kernel.getFunctionType());
  kernel.getBody().walk([&](Operation *op) {
    hash =
        llvm::hash_combine(hash, OperationEquivalence::computeHash(
                                     op, OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::IgnoreLocations));
  });
  return hash;
}

LogicalResult Emitter::launch(Operation *op, StringRef name,
                              const llvm::SetVector<Operation *> &inlined,
                              ArrayRef<Value> results,
                              llvm::function_ref<void(KernelEmitter &)> body) {
  OpBuilder atModule(main);
  KernelEmitter emitter(atModule, op->getLoc(), "kernel", inlined);
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
  auto &alike = kernels[hashOf(kernel)];
  auto known = llvm::find_if(alike, [&](func::FuncOp other) {
    return OperationEquivalence::isRegionEquivalentTo(
        &kernel.getBody(), &other.getBody(),
        OperationEquivalence::IgnoreLocations);
  });
  if (known == alike.end()) {
    kernel.setName((name + "_" + Twine(numKernels++)).str());
    alike.push_back(kernel);
  } else {
    kernel.erase();
    kernel = *known;
  }
  auto launchOp = plan::LaunchOp::create(
      builder, op->getLoc(), emitter.getResultTypes(),
      FlatSymbolRefAttr::get(kernel), emitter.getInputs(),
      builder.getArrayAttr(emitter.getScalars()), /*aside=*/UnitAttr(),
      builder.getStringAttr(getSource(op)));
  made.map(results, launchOp.getResults().take_front(results.size()));
  return success();
}

LogicalResult Emitter::emitGroup(plan::GroupOp group) {
  made.clear();
  Operation *product = group.getProduct();
  ArrayAttr variants = group.getVariantsAttr();
  if (variants && variants.size() > 1)
    return group.emitOpError() << "has several variants; tv-choose-variants "
                                  "makes each a group";
  const bool isOwn =
      variants && cast<StringAttr>(variants[0]).getValue() == kOwnProduct;
  LogicalResult emitted =
      product && !isOwn
          ? emitContract(group)
          : TypeSwitch<Operation *, LogicalResult>(
                &*std::prev(group.getBody().front().end(), 2))
                // Kernels of their own.
                .Case<tv::AttentionOp, tv::AttentionGradOp>(
                    [&](auto op) { return emitAttention(op); })
                .Case([&](tv::WindowOpInterface op) {
                  return emitWindow(group, op);
                })
                .Default([&](Operation *op) {
                  return hasOwnOrder(op) ? emitInOrder(op) : emitLoops(group);
                });
  if (failed(emitted))
    return failure();
  for (auto [yielded, result] :
       llvm::zip_equal(group.getYielded(), group.getResults())) {
    if (!made.contains(yielded))
      return group.emitOpError() << "yields more than its step makes";
    result.replaceAllUsesWith(made.lookup(yielded));
  }
  group.erase();
  return success();
}

/// The dimension along which the operands are all of the result, in order.
static std::optional<int64_t> getSideBySide(tv::WindowOpInterface op) {
  if (op.getWhole().getDefiningOp() != op)
    return std::nullopt;
  const layout::Shape whole = tv::getGlobalShape(op.getWhole().getType());
  const auto boxes = op.getBoxOffsets();
  for (size_t dim = 0; dim < whole.size(); ++dim) {
    bool fits = whole[dim] != layout::kDynamic;
    int64_t end = 0;
    for (auto [operand, at] : llvm::zip_equal(op->getOperands(), boxes)) {
      const layout::Shape part = tv::getGlobalShape(operand.getType());
      for (size_t d = 0; d < whole.size() && fits; ++d)
        fits = d == dim ? at[d] == end && part[d] != layout::kDynamic
                        : at[d] == 0 && part[d] == whole[d];
      if (!fits)
        break;
      end += part[dim];
    }
    if (fits && end == whole[dim])
      return dim;
  }
  return std::nullopt;
}

LogicalResult Emitter::emitWindow(plan::GroupOp group,
                                  tv::WindowOpInterface op) {
  std::optional<int64_t> dim;
  if (llvm::hasSingleElement(group.getOps()) &&
      llvm::all_of(op->getOperands(), isPlain) && isPlain(op->getResult(0)))
    dim = getSideBySide(op);
  if (!dim || !mayBeJoined(op))
    return emitLoops(group);
  made.map(op->getResult(0), plan::JoinOp::create(builder, op.getLoc(),
                                                  op->getResult(0).getType(),
                                                  op->getOperands(), *dim));
  return success();
}

/// Adds the free and copied ops that make these values, or what the ops read.
static void addFree(llvm::SetVector<Operation *> &ops,
                    const llvm::DenseSet<Operation *> &copied = {},
                    ArrayRef<Value> values = {}) {
  auto add = [&](ArrayRef<Value> values) {
    for (Value value : values)
      if (Operation *op = value.getDefiningOp();
          op && (isFree(op) || copied.contains(op)))
        ops.insert(op);
  };
  add(values);
  for (size_t i = 0; i < ops.size(); ++i)
    add(getReadValues(ops[i]));
}

/// What writes in an order of its own.
LogicalResult Emitter::emitInOrder(Operation *op) {
  llvm::SetVector<Operation *> inlined;
  addFree(inlined, {}, llvm::to_vector(op->getOperands()));
  return launch(
      op, op->getName().stripDialect(), inlined,
      llvm::to_vector_of<Value>(op->getResults()),
      [&](KernelEmitter &emitter) { tessera::emitInOrder(emitter, op); });
}

/// What runs in one loop nest, perhaps behind a product.
LogicalResult Emitter::emitLoops(plan::GroupOp group) {
  // What no library takes along is a map.
  for (auto op : llvm::make_early_inc_range(
           group.getBody().getOps<tv::CompositeOpInterface>())) {
    if (!isElementwise(op))
      return hasNoKernel(op);
    OpBuilder before(op);
    SmallVector<Value> values;
    if (failed(op.decompose(before, values)))
      return failure();
    values.front().setType(op->getResult(0).getType());
    op->replaceAllUsesWith(values);
    op->erase();
  }
  SmallVector<Value> results(group.getYielded());
  Block &block = group.getBody().front();
  const llvm::DenseSet<Operation *> copied =
      getCopied(block, [&](Operation *op) { return op->getBlock() == &block; });
  SmallVector<Operation *> ops;
  for (Operation &op : group.getOps())
    if (!isFree(&op) && !copied.contains(&op))
      ops.push_back(&op);
  if (ops.empty()) // of what is free, what others read
    ops.push_back(results.front().getDefiningOp());
  SmallVector<Operation *> inLoops(ops);
  putSumsLast(inLoops);
  FusedOps fused(inLoops.front(),
                 plan::getTarget(main).getLimits().multiprocessors);
  fused.storesOuter = llvm::all_of(results, [&](Value result) {
    return getReduction(result.getDefiningOp()) ||
           getSpace(result.getType()) != fused.full;
  });
  for (Operation *op : ArrayRef(inLoops).drop_front())
    if (!fused.tryAdd(op))
      return op->emitError() << "does not fit into the loops of its group";
  Operation *product = group.getProduct();
  llvm::SetVector<Operation *> inlined = fused.ops;
  if (product)
    inlined.remove(product);
  addFree(inlined, copied);
  if (auto op = dyn_cast_or_null<tv::ContractionOpInterface>(product)) {
    std::optional<ProductOrders> orders = getProductOrders(op);
    if (!orders)
      return op.emitError() << "is no product of rows with rows";
    Value a = inOrder(op, op.getA(), orders->a),
          b = inOrder(op, op.getB(), orders->b);
    return launch(op, getSource(op).split('.').second, inlined, results,
                  [&](KernelEmitter &emitter) {
                    tessera::emitProduct(emitter, fused, a, b, results);
                  });
  }
  return launch(
      ops.back(), ops.back()->getName().stripDialect(), inlined, results,
      [&](KernelEmitter &emitter) { emitFused(emitter, fused, results); });
}

/// An operand with its dimensions in another order.
Value Emitter::inOrder(Operation *op, Value operand, ArrayRef<int64_t> perm) {
  if (llvm::is_sorted(perm))
    return operand;
  RankedTensorType type =
      LocalShape(operand).take(perm).summed(operand).type(getElement(operand));
  return plan::AliasOp::create(builder, op->getLoc(), type,
                               plan::AliasKind::Transpose, operand,
                               builder.getDenseI64ArrayAttr(perm));
}

/// A product by its labels, with what the library does as well.
LogicalResult Emitter::emitContract(plan::GroupOp group) {
  auto op = cast<tv::ContractionOpInterface>(group.getProduct());
  std::optional<tv::ContractionLabels> labels = getLocalLabels(op);
  if (!labels)
    return op.emitError() << "multiplies along dimensions that a view merges; "
                             "reshape them first";
  Value bias = op.getBias(), result = op->getResult(0), second, x;
  plan::EpilogueAttr epilogue = group.getEpilogueAttr();
  plan::SummedAttr summed = group.getSummedAttr();
  for (Operation &other : group.getOps()) {
    if (&other == op)
      continue;
    if (summed && getReduction(&other)) {
      second = other.getResult(0);
    } else if (epilogue && isElementwise(&other)) {
      // What goes into an epilogue is there as well where it is read.
      for (Value operand : other.getOperands())
        if (operand != op->getResult(0))
          x = operand;
      if (llvm::is_contained(group.getYielded(), result))
        second = result;
      result = other.getResult(0);
    } else {
      return other.emitError() << "is not what a library does with a product";
    }
  }
  auto contract = plan::ContractOp::create(
      builder, op->getLoc(), result.getType(),
      second ? second.getType() : Type(), op.getA(), op.getB(), bias, x,
      op.getAddend(), labels->a, labels->b, labels->result, epilogue, summed,
      getSource(op));
  made.map(result, contract.getResult());
  if (second)
    made.map(second, contract.getSecond());
  return success();
}

/// A kernel that reads `heads` in rows.
LogicalResult
Emitter::emitFlash(Operation *op, StringRef name, ValueRange heads,
                   ArrayRef<Value> results,
                   llvm::function_ref<void(KernelEmitter &)> body) {
  llvm::SmallSetVector<Value, 5> operands;
  operands.insert_range(heads);
  for (Value operand : operands)
    replaceAllUsesInRegionWith(
        operand, inRows(op->getLoc(), operand, op->getName().getStringRef()),
        *op->getParentRegion());
  llvm::SetVector<Operation *> inlined;
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  addFree(inlined, {}, captured.getArrayRef());
  return launch(op, name, inlined, results, body);
}

LogicalResult Emitter::emitAttention(tv::AttentionOp op) {
  SmallVector<Value> results = {op.getResult()};
  if (!op.getLse().use_empty())
    results.push_back(op.getLse());
  return emitFlash(
      op, "attention", {op.getQuery(), op.getKey(), op.getValue()}, results,
      [&](KernelEmitter &emitter) { tessera::emitAttention(emitter, op); });
}

/// The order in which gradients go through a block mask. Layers share it. It is
/// made where the mask is, beside what comes before the gradients.
FailureOr<Value> Emitter::getWalks(tv::AttentionGradOp op) {
  TypedValue<RankedTensorType> mask = op.getBlockMask();
  if (!mask)
    return Value();
  auto extentOf = [](Value tensor, int64_t dim) {
    return *LocalShape(tensor).extents[dim].getStatic();
  };
  const int64_t queries = extentOf(op.getQuery(), 2),
                keys = extentOf(op.getKey(), 2);
  ArrayAttr key = builder.getArrayAttr(
      {builder.getDenseI64ArrayAttr({queries, keys}), op.getBlocksAttr(),
       builder.getBoolAttr(op.getCausal())});
  Value &walks = allWalks[{mask, key}];
  if (walks)
    return walks;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(mask);
  LocalShape shape = LocalShape(mask).take({0, 1});
  shape.add(layout::Extent(2));
  shape.add(layout::Extent(plan::BlockWalksOp::countWords(queries, keys)));
  // What stands for it until it is launched.
  auto none = UnrealizedConversionCastOp::create(
      builder, op.getLoc(), shape.type(builder.getI32Type()), mask);
  Value result = none.getResult(0);
  if (failed(launch(op, "block_walks", {}, result, [&](KernelEmitter &emitter) {
        emitter.addOutput(result);
        plan::BlockWalksOp::create(
            emitter.builder(), op.getLoc(), emitter.argument(mask),
            emitter.argument(result),
            builder.getDenseI64ArrayAttr({queries, keys}), op.getBlocksAttr(),
            op.getCausalAttr());
      })))
    return failure();
  walks = made.lookup(result);
  walks.getDefiningOp<plan::LaunchOp>().setAside(true);
  none.erase();
  return walks;
}

/// The most that a device has of a dimension.
static layout::Extent getMost(const LocalShape &shape, int64_t dim) {
  using Kind = layout::Factor::Kind;
  int64_t most = 1;
  for (const layout::Factor &factor : shape.dims[dim].product)
    if (factor.kind == Kind::Stored)
      most *= factor.size;
    else if (factor.kind != Kind::Device)
      return shape.extents[dim];
  return layout::Extent(most);
}

LogicalResult Emitter::emitAttention(tv::AttentionGradOp op) {
  LocalShape shape = LocalShape(op.getQuery()).take({0, 1});
  LocalShape query(op.getQuery());
  const layout::Extent keys = LocalShape(op.getKey()).extents[2];
  const int64_t sequences =
      op.getTiles()
          ? (LocalShape(op.getTiles()).extents[1].getStatic().value() -
             *keys.getStatic() - 4) /
                8
          : 0;
  // Panels of 64 columns at the most (BwdConfig::SumColumns), three numbers a
  // row, and what functors have of it;
  // distances of S + 191 places for each tile of keys.
  const bool hasMods = !op.getScoreMod().empty() || !op.getMaskMod().empty();
  const int64_t columns = llvm::alignTo(*query.extents[3].getStatic(), 64);
  int64_t more = hasMods ? 7 : 3;
  if (!op.getScoreGrad().empty())
    for (auto add : op.getScoreGrad().getOps<tv::AccumulateOp>())
      if (getSumBy(add) == "distance")
        more +=
            llvm::divideCeil(3 * llvm::divideCeil(*keys.getStatic(), 128), 2);
  shape.add(getMost(query, 2) + layout::Extent(128 * (1 + sequences)));
  shape.add(layout::Extent(columns + more));
  SmallVector<Type> scratch = {shape.type(builder.getF32Type())};
  if (LocalShape(op.getKey()).extents[1] != query.extents[1])
    for (Value tensor : {op.getKey(), op.getValue()}) {
      LocalShape ofHeads = query.take({0, 1});
      for (int64_t dim : {2, 3})
        ofHeads.add(LocalShape(tensor), dim);
      scratch.push_back(ofHeads.type(getElementTypeOrSelf(tensor)));
    }
  FailureOr<Value> walks = getWalks(op);
  if (failed(walks))
    return failure();
  return emitFlash(
      op, "attention_grad",
      {op.getGrad(), op.getQuery(), op.getKey(), op.getValue(), op.getOutput()},
      llvm::to_vector_of<Value>(op->getResults()), [&](KernelEmitter &emitter) {
        tessera::emitAttentionGrad(emitter, op, *walks, scratch);
      });
}

namespace {
struct EmitKernels : public tessera::impl::EmitKernelsBase<EmitKernels> {
  void runOnContract() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main) {
      getOperation().emitError() << "a program needs a function '@main'";
      return signalPassFailure();
    }
    if (failed(Emitter(main).run()))
      return signalPassFailure();
  }
};
} // namespace
