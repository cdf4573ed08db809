//===- KernelEmitter.cpp - tv values as loops over memory -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arguments, loops and memory of kernels; the scalar code of each op is its own
// (ElementOpInterface). Sizes, coordinates and constants are emitted once, at
// the entry.
//
//===----------------------------------------------------------------------===//

#include "Kernels/KernelEmitter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;

/// Of which kernels make no elements.
static bool isFloat8(Type element) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(element);
}

Type tessera::getKernelScalar(Type element) {
  if (element.isF16() || element.isBF16() || isFloat8(element))
    return Float32Type::get(element.getContext());
  if (element.isUnsignedInteger())
    return IntegerType::get(element.getContext(),
                            element.getIntOrFloatBitWidth());
  return element;
}

/// An element in memory.
static Type getStorage(Type element) {
  if (element.isInteger(1))
    return IntegerType::get(element.getContext(), 8);
  if (element.isUnsignedInteger())
    return IntegerType::get(element.getContext(),
                            element.getIntOrFloatBitWidth());
  return element;
}

KernelEmitter::KernelEmitter(OpBuilder &builder, Location loc, StringRef name,
                             llvm::SetVector<Operation *> inlined)
    : ElementBuilder(builder, loc), inlined(std::move(inlined)) {
  func = func::FuncOp::create(b, loc, name, b.getFunctionType({}, {}));
  func->setAttr(plan::kKernelAttr, b.getUnitAttr());
  b.setInsertionPointToStart(func.addEntryBlock());
}

func::FuncOp KernelEmitter::finish() {
  func::ReturnOp::create(b, location);
  Block &entry = func.getBody().front();
  func.setFunctionType(b.getFunctionType(entry.getArgumentTypes(), {}));
  return func;
}

Value KernelEmitter::fail(Operation *op, const Twine &message, Type type) {
  if (!failedAt)
    op->emitError() << message;
  failedAt = true;
  return b.createOrFold<arith::ConstantOp>(location, b.getZeroAttr(type));
}

Value KernelEmitter::hoisted(llvm::function_ref<Value()> emit) {
  OpBuilder::InsertionGuard guard(b);
  if (lastHoisted)
    b.setInsertionPointAfter(lastHoisted);
  else
    b.setInsertionPointToStart(&func.getBody().front());
  Value value = emit();
  lastHoisted = value.getDefiningOp();
  return value;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Value KernelEmitter::element(Value tensor, ArrayRef<Value> indices) {
  for (auto &[at, value] : known[tensor])
    if (ArrayRef<Value>(at) == indices)
      return value;
  Operation *op = tensor.getDefiningOp();
  if (op && inlined.contains(op)) {
    auto element = cast<tv::ElementOpInterface>(op);
    assert(!element.getReduction() && "what a reduction left is known");
    SmallVector<Value> values = element.emitElement(*this, indices);
    for (auto [result, value] : llvm::zip_equal(op->getResults(), values))
      setElement(result, indices, value);
    return known[tensor].back().second;
  }
  Value value = loadMemory(tensor, indices);
  setElement(tensor, indices, value);
  return value;
}

void KernelEmitter::setElement(Value tensor, ArrayRef<Value> indices,
                               Value scalar) {
  // What is stored is here what it is to those who load it: a gradient that is
  // infinite there is so in the norm that says whether a step is taken.
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  if ((element.isF16() || element.isBF16()) && outputs.contains(tensor) &&
      llvm::any_of(tensor.getUsers(),
                   [&](Operation *user) { return inlined.contains(user); }))
    scalar = arith::ExtFOp::create(
        b, location, scalar.getType(),
        arith::TruncFOp::create(b, location, element, scalar).getResult());
  known[tensor].push_back({llvm::to_vector(indices), scalar});
}

Value KernelEmitter::constant(Attribute value, Type element) {
  return arith::ConstantOp::create(
      b, location, getKernelConstant(value, getKernelScalar(element)));
}

Value KernelEmitter::attribute(Operation *op, StringAttr name) {
  Value &value = attributes[{op, name}];
  if (!value)
    value = addScalar(plan::ExtentAttr::get(
        b.getContext(), op->getAttrOfType<IntegerAttr>(name).getInt()));
  return value;
}

Value KernelEmitter::randomNumber(Value number, Value seed, Value stream,
                                  int64_t bits) {
  return plan::RandomOp::create(b, location, b.getF32Type(), number, seed,
                                stream, bits);
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

static MemRefType getMemRef(Type type, const Memory &memory) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> strides(tensor.getRank(), ShapedType::kDynamic);
  if (memory.unit && !strides.empty())
    strides[memory.order.back()] = 1;
  auto layout =
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return MemRefType::get(tensor.getShape(), getStorage(tensor.getElementType()),
                         layout);
}

Value KernelEmitter::argument(Value tensor) {
  Block &entry = func.getBody().front();
  auto found = llvm::find(outputs, tensor);
  if (found != outputs.end())
    return entry.getArgument(inputs.size() + (found - outputs.begin()));
  if (inputs.insert(tensor))
    entry.insertArgument(inputs.size() - 1,
                         getMemRef(tensor.getType(), getMemory(tensor)),
                         tensor.getLoc());
  return entry.getArgument(llvm::find(inputs, tensor) - inputs.begin());
}

void KernelEmitter::addOutput(Value tensor) {
  outputs.insert(tensor);
  resultTypes.push_back(tensor.getType());
  func.getBody().front().insertArgument(
      inputs.size() + resultTypes.size() - 1,
      getMemRef(tensor.getType(), getOwnMemory(tensor.getType())),
      tensor.getLoc());
}

Value KernelEmitter::addScratch(Type tensor) {
  resultTypes.push_back(tensor);
  return func.getBody().front().insertArgument(
      inputs.size() + resultTypes.size() - 1,
      getMemRef(tensor, getOwnMemory(tensor)), location);
}

Value KernelEmitter::addScalar(Attribute scalar) {
  scalars.push_back(scalar);
  return func.getBody().front().addArgument(b.getI64Type(), location);
}

Value KernelEmitter::scalarArgument(Attribute scalar) {
  Value &value = scalarValues[scalar];
  if (!value) {
    Value argument = addScalar(scalar);
    value = hoisted([&] {
      return arith::IndexCastOp::create(b, location, b.getIndexType(), argument)
          .getResult();
    });
  }
  return value;
}

Value KernelEmitter::index(int64_t value) {
  Value &constant = constants[value];
  if (!constant)
    constant = hoisted([&] {
      return arith::ConstantIndexOp::create(b, location, value).getResult();
    });
  return constant;
}

Value KernelEmitter::yes() {
  if (!always)
    always = hoisted([&] {
      return arith::ConstantIntOp::create(b, location, 1, 1).getResult();
    });
  return always;
}

Value KernelEmitter::extent(const layout::Extent &extent) {
  if (std::optional<int64_t> size = extent.getStatic())
    return index(*size);
  return scalarArgument(plan::ExtentAttr::get(b.getContext(), extent));
}

Value KernelEmitter::dimension(Value tensor, int64_t dim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(dim))
    return index(type.getDimSize(dim));
  Value memref = argument(tensor);
  Value &size = dimensions[{memref, dim}];
  if (!size) {
    Value number = index(dim);
    size = hoisted([&] {
      return memref::DimOp::create(b, location, memref, number).getResult();
    });
  }
  return size;
}

SmallVector<Value> KernelEmitter::localExtents(Value tensor) {
  SmallVector<Value> sizes;
  auto type = cast<RankedTensorType>(tensor.getType());
  Space space = getSpace(type);
  auto search = [&](Value candidate, const LocalDim &dim) -> Value {
    // (Of what is not in memory, others are.)
    Operation *maker = candidate.getDefiningOp();
    if (maker && maker->getParentOfType<plan::GroupOp>() &&
        !llvm::is_contained(outputs, candidate))
      return {};
    Space other = getSpace(candidate.getType());
    for (size_t i = 0; i < other.size(); ++i)
      if (other[i] == dim)
        return dimension(candidate, i);
    return {};
  };
  for (int64_t i = 0; i < type.getRank(); ++i) {
    if (!type.isDynamicDim(i)) {
      sizes.push_back(index(type.getDimSize(i)));
      continue;
    }
    // It is in memory, or a tensor of the kernel has this dimension; else it is
    // counted.
    Operation *op = tensor.getDefiningOp();
    Value size;
    if (llvm::is_contained(outputs, tensor) || !op || !inlined.contains(op))
      size = dimension(tensor, i);
    for (Value candidate : outputs)
      size = size ? size : search(candidate, space[i]);
    for (Value candidate : inputs)
      size = size ? size : search(candidate, space[i]);
    if (!size) {
      for (Operation *inlinedOp : inlined)
        for (Value operand : inlinedOp->getOperands())
          if (!operand.getDefiningOp() ||
              !inlined.contains(operand.getDefiningOp()))
            size = size ? size : search(operand, space[i]);
    }
    if (!size)
      size = localExtent(getLocal(type).getLayoutMesh(), space[i]);
    sizes.push_back(size);
  }
  return sizes;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value KernelEmitter::loadMemory(Value tensor, ArrayRef<Value> indices) {
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  Value value = memref::LoadOp::create(b, location, argument(tensor), indices);
  if (element.isF16() || element.isBF16() || isFloat8(element))
    return arith::ExtFOp::create(b, location, b.getF32Type(), value);
  if (element.isInteger(1)) {
    Value zero = arith::ConstantIntOp::create(b, location, b.getI8Type(), 0);
    return arith::CmpIOp::create(b, location, arith::CmpIPredicate::ne, value,
                                 zero);
  }
  return value;
}

void KernelEmitter::store(Value scalar, Value output, ArrayRef<Value> indices) {
  Type element = cast<RankedTensorType>(output.getType()).getElementType();
  if (isFloat8(element))
    scalar = fail(output.getDefiningOp(),
                  "kernels do not make 8-bit floats yet; convert to bf16",
                  scalar.getType());
  if (element.isF16() || element.isBF16() || isFloat8(element)) {
    auto wide = scalar.getDefiningOp<arith::ExtFOp>();
    scalar = wide && wide.getIn().getType() == element
                 ? wide.getIn()
                 : arith::TruncFOp::create(b, location, element, scalar)
                       .getResult();
  } else if (element.isInteger(1)) {
    scalar = arith::ExtUIOp::create(b, location, b.getI8Type(), scalar);
  }
  memref::StoreOp::create(b, location, scalar, argument(output), indices);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void KernelEmitter::parallel(ArrayRef<Value> extents,
                             llvm::function_ref<void(ArrayRef<Value>)> body) {
  reduce(extents, {}, [&](ArrayRef<Value> indices) -> SmallVector<Value> {
    body(indices);
    return {};
  });
}

SmallVector<Value> KernelEmitter::reduce(
    ArrayRef<Value> extents, ArrayRef<Reduction> reductions,
    llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)> body) {
  SmallVector<Value> upper(extents), init;
  if (upper.empty())
    upper.push_back(index(1));
  SmallVector<Value> lower(upper.size(), index(0)),
      step(upper.size(), index(1));
  for (const Reduction &reduction : reductions)
    init.push_back(identity(reduction.combiner, reduction.element));
  auto loop =
      scf::ParallelOp::create(b, location, lower, upper, step, init, nullptr);
  OpBuilder::InsertionGuard guard(b);
  auto outside = known;
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> indices = loop.getInductionVars();
  indices.truncate(extents.size());
  SmallVector<Value> addends = body(indices);
  known = std::move(outside);
  if (reductions.empty())
    return {};
  auto reduce = scf::ReduceOp::create(b, location, addends);
  for (auto [reduction, region] :
       llvm::zip_equal(reductions, reduce.getReductions())) {
    b.setInsertionPointToStart(&region.front());
    Value combined = combine(reduction.combiner, reduction.element,
                             region.getArgument(0), region.getArgument(1),
                             /*mayReorder=*/true);
    scf::ReduceReturnOp::create(b, location, combined);
  }
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value> KernelEmitter::inOrder(ArrayRef<Value> extents,
                                          ValueRange init, Body body) {
  SmallVector<Value> indices;
  std::function<SmallVector<Value>(ValueRange)> nest =
      [&](ValueRange carried) -> SmallVector<Value> {
    if (indices.size() == extents.size())
      return body(indices, carried);
    Value zero = index(0), one = index(1);
    auto loop = scf::ForOp::create(b, location, zero, extents[indices.size()],
                                   one, carried);
    OpBuilder::InsertionGuard guard(b);
    auto outside = known;
    b.setInsertionPointToStart(loop.getBody());
    indices.push_back(loop.getInductionVar());
    SmallVector<Value> next = nest(loop.getRegionIterArgs());
    indices.pop_back();
    if (!carried.empty())
      scf::YieldOp::create(b, location, next);
    known = std::move(outside);
    return SmallVector<Value>(loop.getResults());
  };
  return nest(init);
}

Value KernelEmitter::guarded(Value condition, Value otherwise,
                             llvm::function_ref<Value()> then) {
  if (matchPattern(condition, m_One()))
    return then();
  auto branch = scf::IfOp::create(b, location, otherwise.getType(), condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  auto outside = known;
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, location, then());
  known = std::move(outside);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, location, otherwise);
  return branch.getResult(0);
}

void KernelEmitter::scalarRegion(
    Region &region, TypeRange types,
    llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)> body) {
  Block &block = region.emplaceBlock();
  block.addArguments(types, SmallVector<Location>(types.size(), location));
  OpBuilder::InsertionGuard guard(b);
  auto outside = known;
  b.setInsertionPointToStart(&block);
  SmallVector<Value> arguments(block.getArguments());
  tv::YieldOp::create(b, location, body(arguments));
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  known = std::move(outside);
}

void KernelEmitter::ifThen(Value condition, llvm::function_ref<void()> then) {
  if (matchPattern(condition, m_One()))
    return then();
  auto branch = scf::IfOp::create(b, location, condition);
  OpBuilder::InsertionGuard guard(b);
  auto outside = known;
  b.setInsertionPointToStart(branch.thenBlock());
  then();
  known = std::move(outside);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Value KernelEmitter::combine(tv::Combiner combiner, Type element, Value x,
                             Value y, bool mayReorder) {
  bool isFloat = isa<FloatType>(x.getType());
  bool isUnsigned = element.isUnsignedInteger() || element.isInteger(1);
  switch (combiner) {
  case tv::Combiner::Sum:
    if (!isFloat)
      return arith::AddIOp::create(b, location, x, y);
    // In an order that the vectorizer chooses, once for all runs.
    return arith::AddFOp::create(b, location, x, y,
                                 mayReorder ? arith::FastMathFlags::reassoc
                                            : arith::FastMathFlags::none);
  case tv::Combiner::Max:
    if (isFloat)
      return arith::MaximumFOp::create(b, location, x, y);
    if (isUnsigned)
      return arith::MaxUIOp::create(b, location, x, y);
    return arith::MaxSIOp::create(b, location, x, y);
  case tv::Combiner::Min:
    if (isFloat)
      return arith::MinimumFOp::create(b, location, x, y);
    if (isUnsigned)
      return arith::MinUIOp::create(b, location, x, y);
    return arith::MinSIOp::create(b, location, x, y);
  }
  llvm_unreachable("all combiners are covered");
}

Value KernelEmitter::identity(tv::Combiner combiner, Type element) {
  Type type = getKernelScalar(element);
  TypedAttr value = b.getZeroAttr(type);
  if (combiner != tv::Combiner::Sum) {
    bool max = combiner == tv::Combiner::Max;
    if (auto floating = dyn_cast<FloatType>(type)) {
      value = b.getFloatAttr(type, APFloat::getInf(floating.getFloatSemantics(),
                                                   /*Negative=*/max));
    } else {
      unsigned width = type.getIntOrFloatBitWidth();
      bool isUnsigned = element.isUnsignedInteger() || width == 1;
      APInt least = isUnsigned ? APInt::getMinValue(width)
                               : APInt::getSignedMinValue(width);
      APInt most = isUnsigned ? APInt::getMaxValue(width)
                              : APInt::getSignedMaxValue(width);
      value = b.getIntegerAttr(type, max ? least : most);
    }
  }
  return hoisted([&] {
    return arith::ConstantOp::create(b, location, value).getResult();
  });
}
