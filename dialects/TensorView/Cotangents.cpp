//===- Cotangents.cpp - gradients of values, op by op ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorView/Cotangents.h"
#include "TensorView/CoreBuilder.h"
#include "TensorView/ScalarGradient.h"
#include "TensorView/TensorViewPointwise.h"
#include "TensorView/TensorViewVerify.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

void Cotangents::visit(Operation *op) {
  // Not what only lends its extents.
  auto elements = dyn_cast<ElementOpInterface>(op);
  SmallVector<Value> reads =
      elements ? elements.getReadValues() : getOperandsAndCaptured(op);
  if (llvm::none_of(reads, [&](Value value) { return isNeeded(value); }))
    return;
  for (Value result : op->getResults())
    if (isa<FloatType>(getElementTypeOrSelf(result)))
      needed.insert(result);
}

void Cotangents::add(Value to, Value cotangent) {
  if (!isNeeded(to))
    return;
  addends[to].push_back({cotangent, std::nullopt});
  origin.try_emplace(to, reversed);
}

void Cotangents::addBox(Value to, ArrayRef<int64_t> offsets, Value cotangent) {
  if (!isNeeded(to))
    return;
  addends[to].push_back({cotangent, SmallVector<int64_t>(offsets)});
  origin.try_emplace(to, reversed);
}

/// Boxes of a value by where they begin.
using Boxes = SmallVector<std::pair<SmallVector<int64_t>, Value>>;

/// The value that boxes are together, one after the other along a dimension;
/// null if they are not all of it, or overlap.
static Value concatenate(ImplicitLocOpBuilder &builder, RankedTensorType type,
                         Boxes boxes) {
  for (int64_t dim = 0, e = type.getRank(); dim < e; ++dim) {
    llvm::sort(boxes, [&](const auto &a, const auto &b) {
      return a.first[dim] < b.first[dim];
    });
    int64_t end = 0;
    SmallVector<Value> parts;
    for (const auto &[offsets, value] : boxes) {
      layout::Shape box = getGlobalShape(value.getType());
      if (box[dim] == layout::kDynamic || offsets[dim] != end)
        break;
      end += std::exchange(box[dim], type.getDimSize(dim));
      if (ArrayRef(box) != type.getShape())
        break;
      parts.push_back(value);
    }
    if (parts.size() == boxes.size() && end == type.getDimSize(dim))
      return ConcatOp::create(builder, type, parts, dim);
  }
  return {};
}

Value Cotangents::take(ImplicitLocOpBuilder &builder, Value of) {
  auto found = addends.find(of);
  if (found == addends.end())
    return {};
  SmallVector<Addend, 2> all = std::move(found->second);
  addends.erase(found);
  layout::Shape shape = getGlobalShape(of.getType());
  RankedTensorType type = withEncoding(of.getType(), {});

  SmallVector<Value> terms;
  Boxes boxes;
  for (Addend &addend : all)
    if (addend.offsets)
      boxes.push_back({*addend.offsets, addend.value});
    else
      terms.push_back(addend.value);
  if (Value whole =
          boxes.empty() ? Value() : concatenate(builder, type, boxes)) {
    terms.push_back(whole);
    boxes.clear();
  }
  for (const auto &[offsets, value] : boxes) {
    layout::Shape box = getGlobalShape(value.getType());
    SmallVector<int64_t> high;
    for (auto [offset, extent, whole] : llvm::zip_equal(offsets, box, shape))
      high.push_back(whole == layout::kDynamic ? 0 : whole - offset - extent);
    terms.push_back(
        PadOp::create(builder, type, value, offsets, high,
                      builder.getFloatAttr(type.getElementType(), 0)));
  }
  Value sum = terms.front();
  for (Value term : ArrayRef(terms).drop_front())
    sum = AddOp::create(builder, type, sum, term);
  return sum;
}

Value tv::buildSplat(ImplicitLocOpBuilder &builder, double number,
                     RankedTensorType type, Value like) {
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Attribute value = builder.getFloatAttr(type.getElementType(), number);
  return ConstantOp::create(builder, type,
                            DenseElementsAttr::get(scalar, value),
                            type.hasStaticShape() ? Value() : like);
}

//===----------------------------------------------------------------------===//
// One op
//===----------------------------------------------------------------------===//

LogicalResult Cotangents::refuse(Operation *op) {
  InFlightDiagnostic error = op->emitOpError()
                             << "has no gradient, and one is asked for";
  if (isa<CallOpInterface>(op))
    error << "; tv-inline, run before, puts the function's ops in its place";
  SmallVector<StringRef> names;
  for (Operation *at = op; at;) {
    Operation *next = nullptr;
    for (Value result : at->getResults())
      if (auto found = origin.find(result); found != origin.end()) {
        next = found->second;
        break;
      }
    if (next)
      names.push_back(next->getName().getStringRef());
    at = next;
  }
  Diagnostic &note = error.attachNote();
  note << "on the way back from what is differentiated";
  for (auto [i, name] : llvm::enumerate(llvm::reverse(names)))
    note << (i ? ", " : " through ") << name;
  return error;
}

LogicalResult Cotangents::reverse(Operation *op, Block &block) {
  bool isReached = false;
  for (Value result : op->getResults()) {
    if (!isAdded(result))
      continue;
    isReached = true;
    if (!checks::kFloats.contains(getElementTypeOrSelf(result)))
      return refuse(op);
  }
  if (!isReached)
    return success();
  StringRef name = op->getName().getStringRef();
  if (auto known = dyn_cast<NameLoc>(op->getLoc()))
    name = known.getName();
  ImplicitLocOpBuilder builder(
      NameLoc::get(StringAttr::get(op->getContext(), "gradient of " + name),
                   op->getLoc()),
      op->getContext());
  builder.setInsertionPointToEnd(&block);
  Operation *outer = std::exchange(reversed, op);
  llvm::scope_exit leave([&] { reversed = outer; });
  if (auto own = dyn_cast<DifferentiableOpInterface>(op))
    return own.addCotangents(builder, *this);
  if (auto scalars = dyn_cast<ScalarOpInterface>(op)) {
    Region body;
    buildBody(scalars, body);
    return addScalarCotangents(builder, op, body.front(), *this);
  }
  auto composite = dyn_cast<CompositeOpInterface>(op);
  if (!composite)
    return refuse(op);

  // What it is made of, anew; the op itself stays.
  Operation *last = block.empty() ? nullptr : &block.back();
  SmallVector<Value> results;
  if (failed(composite.decompose(builder, results)))
    return failure();
  SmallVector<Operation *> parts;
  for (Operation *part = last ? last->getNextNode() : &block.front(); part;
       part = part->getNextNode()) {
    parts.push_back(part);
    visit(part);
  }
  for (auto [result, value] : llvm::zip_equal(op->getResults(), results))
    if (Value cotangent = take(builder, result))
      add(value, cotangent);
  for (Operation *part : llvm::reverse(parts))
    if (failed(reverse(part, block)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Scalar functions
//===----------------------------------------------------------------------===//

namespace {
/// A gradient of a captured tensor: an element of it and what is added, at each
/// index of the map.
struct Captured {
  Value tensor, number, adjoint;
};
} // namespace

/// The row-major number of the element that a load reads; -1 outside.
static Value buildNumber(ImplicitLocOpBuilder &b, ValueRange indices,
                         const layout::Shape &shape) {
  Type i64 = b.getI64Type();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  };
  Value number = constant(0);
  Value inside = arith::ConstantOp::create(b, b.getBoolAttr(true));
  for (auto [index, extent] : llvm::zip_equal(indices, shape)) {
    Value i = arith::IndexCastOp::create(b, i64, index);
    Value limit = constant(extent);
    // An index below 0 is a large unsigned number.
    Value fits = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, i, limit);
    inside = arith::AndIOp::create(b, inside, fits);
    number =
        arith::AddIOp::create(b, arith::MulIOp::create(b, number, limit), i);
  }
  return arith::SelectOp::create(b, inside, number, constant(-1));
}

/// Adds the two results of a map that are a captured tensor's gradient.
static void scatterInto(ImplicitLocOpBuilder &builder, Core &core, Value tensor,
                        Value numbers, Value adjoints, Cotangents &cotangents) {
  layout::Shape shape = getGlobalShape(tensor.getType());
  auto flatten = [&](Value value) -> Value {
    int64_t count = 1;
    for (int64_t extent : getGlobalShape(value.getType()))
      count = extent == layout::kDynamic || count == layout::kDynamic
                  ? layout::kDynamic
                  : count * extent;
    auto type = RankedTensorType::get({count}, Core::elementOf(value));
    return ReshapeOp::create(builder, type, value);
  };
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  auto type = RankedTensorType::get({count}, Core::elementOf(tensor));
  Value zeros = buildSplat(builder, 0, type);
  Value sums = ScatterOp::create(builder, type, Update::Sum, zeros,
                                 flatten(numbers), flatten(adjoints), 0);
  cotangents.add(tensor, ReshapeOp::create(builder, core.like(tensor), sums));
}

LogicalResult tv::addScalarCotangents(ImplicitLocOpBuilder &builder,
                                      Operation *op, Block &body,
                                      Cotangents &cotangents) {
  Location loc = builder.getLoc();
  Core core(builder, op, loc);
  Region region;
  Block &block = region.emplaceBlock();
  ImplicitLocOpBuilder b(loc, builder.getContext());
  b.setInsertionPointToEnd(&block);

  // Primals, then the cotangents of results.
  SmallVector<Value> inputs(op->getOperands());
  IRMapping primals;
  // In f64 where something of f64 has a gradient.
  Type wide = b.getF32Type();
  llvm::DenseSet<Value> active;
  auto activate = [&](Value value) {
    active.insert(value);
    if (value.getType().isF64())
      wide = value.getType();
  };
  for (auto [argument, operand] :
       llvm::zip_equal(body.getArguments(), op->getOperands())) {
    primals.map(argument, block.addArgument(argument.getType(), loc));
    if (cotangents.isNeeded(operand))
      activate(argument);
  }
  for (Operation &inner : body.without_terminator()) {
    b.clone(inner, primals);
    if (llvm::any_of(inner.getOperands(), [&](Value value) {
          return active.contains(value) || cotangents.isNeeded(value);
        }))
      llvm::for_each(inner.getResults(), activate);
  }
  SmallVector<Value> yielded;
  for (auto [result, value] :
       llvm::zip_equal(op->getResults(), body.getTerminator()->getOperands())) {
    Value cotangent = cotangents.take(builder, result);
    yielded.push_back(Value());
    if (!cotangent || !active.contains(value))
      continue;
    inputs.push_back(cotangent);
    Value argument = block.addArgument(Core::elementOf(cotangent), loc);
    yielded.back() = argument.getType() == wide
                         ? argument
                         : arith::ExtFOp::create(b, wide, argument).getResult();
  }

  SmallVector<Captured> captured;
  LogicalResult status = success();
  FailureOr<SmallVector<Value>> gradients = differentiateScalars(
      b, body, primals, yielded, wide,
      [&](Value value) {
        if (auto argument = dyn_cast<BlockArgument>(value))
          return cotangents.isNeeded(inputs[argument.getArgNumber()]);
        return cotangents.isNeeded(value.getDefiningOp<LoadOp>().getTensor());
      },
      [&](LoadOp load, Value adjoint) {
        layout::Shape shape = getGlobalShape(load.getTensor().getType());
        if (llvm::is_contained(shape, layout::kDynamic))
          status = load.emitOpError()
                   << "has no gradient by a tensor of dynamic extents";
        SmallVector<Value> indices;
        for (Value index : load.getIndices())
          indices.push_back(primals.lookup(index));
        captured.push_back(
            {load.getTensor(), buildNumber(b, indices, shape), adjoint});
      });
  if (failed(gradients) || failed(status))
    return failure();

  // What is yielded, each to whom it goes.
  SmallVector<Value> yields;
  SmallVector<Type> types;
  auto yield = [&](Value value, Type scalar, Type type) {
    if (auto extended = value.getDefiningOp<arith::ExtFOp>();
        extended && extended.getIn().getType() == scalar)
      value = extended.getIn();
    else if (value.getType() != scalar)
      value = arith::TruncFOp::create(b, scalar, value);
    yields.push_back(value);
    types.push_back(type);
    return value;
  };
  SmallVector<Value> to;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Value gradient = (*gradients)[i];
    if (!gradient || !cotangents.isNeeded(operand))
      continue;
    // An operand that is there twice has one gradient.
    for (unsigned j = i + 1; j < op->getNumOperands(); ++j)
      if (Value other = (*gradients)[j];
          other && op->getOperand(j) == operand) {
        gradient = arith::AddFOp::create(b, gradient, other);
        (*gradients)[j] = Value();
      }
    Type element = Core::elementOf(operand);
    Value value = yield(gradient, element, core.like(operand));
    // A cotangent as it came is no result.
    if (auto same = dyn_cast<BlockArgument>(value)) {
      cotangents.add(operand, inputs[same.getArgNumber()]);
      yields.pop_back();
      types.pop_back();
      continue;
    }
    to.push_back(operand);
  }
  for (const Captured &each : captured) {
    Value like = op->getResult(0);
    yield(each.number, b.getI64Type(), core.like(like, b.getI64Type()));
    Type element = Core::elementOf(each.tensor);
    yield(each.adjoint, element, core.like(like, element));
  }
  if (yields.empty())
    return success();
  YieldOp::create(b, yields);

  for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&inner))
      inner.erase();
  for (unsigned i = inputs.size(); i-- > 0;)
    if (block.getArgument(i).use_empty() && inputs.size() > 1) {
      block.eraseArgument(i);
      inputs.erase(inputs.begin() + i);
    }
  auto map = MapOp::create(builder, types, inputs);
  map.getBody().takeBody(region);
  for (auto [i, operand] : llvm::enumerate(to))
    cotangents.add(operand, map.getResult(i));
  for (auto [i, each] : llvm::enumerate(captured))
    scatterInto(builder, core, each.tensor, map.getResult(to.size() + 2 * i),
                map.getResult(to.size() + 2 * i + 1), cotangents);
  return success();
}
