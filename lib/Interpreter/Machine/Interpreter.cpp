//===- Interpreter.cpp - runs a function of any phase on N ranks ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Machine/Interpreter.h"
#include "Plan/Plan.h"
#include "TensorView/TensorView.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

const Tensor *Interpreter::lookup(Value value) const {
  auto found = values.find(value);
  return found == values.end() ? nullptr : &found->second;
}

FailureOr<std::optional<Layout>> Interpreter::layoutOf(Operation *op,
                                                       Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return mlir::emitError(op->getLoc())
           << "the interpreter has no values of type " << type;
  Attribute encoding = tensor.getEncoding();
  if (config.ignoreViews || !encoding)
    return std::optional<Layout>();
  std::optional<Layout> layout;
  if (auto view = dyn_cast<tv::ViewAttr>(encoding))
    layout = Layout{view.getView(), view.getLayoutMesh()};
  else if (auto local = dyn_cast<tv::LocalAttr>(encoding))
    layout = Layout{local.getLayoutView(), local.getLayoutMesh()};
  else
    return op->emitError() << "the interpreter knows no encoding " << encoding;
  if (layout->mesh.numDevices() != config.ranks)
    return mlir::emitError(op->getLoc())
           << "its mesh has " << layout->mesh.numDevices()
           << " devices; --interpret=" << config.ranks << " gives it "
           << config.ranks << " ranks";
  return layout;
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

FailureOr<Shape> Interpreter::resultShape(Operation *op, unsigned result) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(result).getType());
  if (!type)
    return op->emitError() << "the interpreter has no values of type "
                           << op->getResult(result).getType();
  Shape shape = tv::getGlobalShape(type);
  if (auto local = dyn_cast_or_null<tv::LocalAttr>(type.getEncoding())) {
    for (auto [i, extent] : llvm::enumerate(local.getExtents())) {
      std::optional<int64_t> value = extent.evaluate(config.sizes);
      if (!value)
        return op->emitError() << "extent " << layout::toString(extent)
                               << " of result #" << result
                               << " names a size that the function does not "
                                  "declare in 'tv.sizes'";
      shape[i] = *value;
    }
    return shape;
  }
  if (!llvm::is_contained(shape, layout::kDynamic))
    return shape;

  auto operandShape = [&](unsigned i) -> const Shape & {
    return values.find(op->getOperand(i))->second.shape;
  };
  if (isa<tv::ReinterpretOpInterface>(op)) {
    // One dynamic extent takes what the others leave; several are the operand's
    // in order.
    const Shape &from = operandShape(0);
    Shape source = tv::getGlobalShape(op->getOperand(0).getType());
    int64_t known = 1;
    SmallVector<int64_t> dynamic;
    for (int64_t extent : shape)
      known *= extent == layout::kDynamic ? 1 : extent;
    for (auto [extent, given] : llvm::zip_equal(source, from))
      if (extent == layout::kDynamic)
        dynamic.push_back(given);
    bool one = llvm::count(shape, layout::kDynamic) == 1;
    auto next = dynamic.begin();
    for (int64_t &extent : shape)
      if (extent == layout::kDynamic)
        extent = one ? (known ? numElements(from) / known : 0)
                 : next == dynamic.end() ? 0
                                         : *next++;
    return shape;
  }
  // Ops whose operands are all alike, or that carry a `like`: the last operand
  // of the result's rank. Else what the factors of the rule say.
  auto rules = dyn_cast<tv::ShardingRuleOpInterface>(op);
  layout::Rule rule;
  if (rules)
    rule = rules.getShardingRule();
  bool isConcat = isa<tv::ConcatOp>(op);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != layout::kDynamic)
      continue;
    if (isConcat && int64_t(d) == int64_t(cast<tv::ConcatOp>(op).getDim())) {
      shape[d] = 0;
      for (unsigned i = 0; i < op->getNumOperands(); ++i)
        shape[d] += operandShape(i)[d];
      continue;
    }
    if (auto pad = dyn_cast<tv::PadOp>(op)) {
      shape[d] = operandShape(0)[d] + pad.getLow()[d] + pad.getHigh()[d];
      continue;
    }
    if (!rules) { // moves, constraints and windows
      shape[d] = operandShape(result)[d];
      continue;
    }
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      for (auto [k, factors] : llvm::enumerate(rule.operands[i]))
        if (!factors.empty() && factors == rule.results[result][d])
          shape[d] = operandShape(i)[k];
    if (shape[d] != layout::kDynamic)
      continue;
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (rule.uses[i] == layout::Use::Unread &&
          operandShape(i).size() == shape.size())
        shape[d] = operandShape(i)[d];
    if (shape[d] == layout::kDynamic)
      return op->emitOpError() << "extent " << d << " of result #" << result
                               << " does not follow from its operands";
  }
  return shape;
}

//===----------------------------------------------------------------------===//
// Moves and calls
//===----------------------------------------------------------------------===//

FailureOr<std::shared_ptr<NDArray>> Interpreter::assembled(Operation *op,
                                                           Value value) {
  const Tensor &tensor = values.find(value)->second;
  Result<std::shared_ptr<NDArray>> array = assemble(tensor, largestAddend);
  if (array) {
    // A combined value is a value of the program.
    if (config.roundValues && *array != tensor.parts[0])
      (*array)->round(config.doublesToFloat);
    return *array;
  }
  std::string name;
  llvm::raw_string_ostream os(name);
  value.printAsOperand(os, OpPrintingFlags());
  return op->emitOpError() << "reads " << name << ": " << array.message();
}

/// The rows of the first operand that the others name; zeros of none.
LogicalResult Interpreter::evaluateFetch(Operation *op) {
  std::vector<std::shared_ptr<NDArray>> arrays;
  for (Value operand : op->getOperands()) {
    FailureOr<std::shared_ptr<NDArray>> array = assembled(op, operand);
    if (failed(array))
      return failure();
    arrays.push_back(*array);
  }
  const NDArray &table = *arrays[0];
  auto indices = ArrayRef(arrays).drop_front();
  Shape shape = indices[0]->shape;
  shape.insert(shape.end(), table.shape.begin() + indices.size(),
               table.shape.end());
  auto rows = std::make_shared<NDArray>(table.type, shape);
  for (size_t number = 0; number < rows->data.size(); ++number) {
    Index to = delinearize(number, shape), from;
    const size_t rank = indices[0]->shape.size();
    int64_t place = linearize(ArrayRef(to).take_front(rank), indices[0]->shape);
    for (const auto &index : indices)
      from.push_back(index->data[place].whole);
    bool isInside = llvm::all_of(llvm::enumerate(from), [&](auto each) {
      return each.value() >= 0 && each.value() < table.shape[each.index()];
    });
    llvm::append_range(from, ArrayRef(to).drop_front(rank));
    rows->data[number] =
        isInside ? table.data[linearize(from, table.shape)] : Scalar{};
  }
  FailureOr<std::optional<Layout>> layout =
      layoutOf(op, op->getResult(0).getType());
  if (failed(layout))
    return failure();
  values[op->getResult(0)] = distribute(rows, *layout);
  return success();
}

LogicalResult Interpreter::evaluateMove(Operation *op) {
  if (auto move = dyn_cast<tv::MoveOpInterface>(op);
      move && !move.getRowIndices().empty())
    return evaluateFetch(op);
  for (auto [operand, result] :
       llvm::zip(op->getOperands(), op->getResults())) {
    FailureOr<std::optional<Layout>> layout = layoutOf(op, result.getType());
    if (failed(layout))
      return failure();
    FailureOr<std::shared_ptr<NDArray>> array = assembled(op, operand);
    if (failed(array))
      return failure();
    values[result] = distribute(*array, *layout);
  }
  return success();
}

LogicalResult Interpreter::evaluateCall(CallOpInterface op) {
  auto callee = dyn_cast_or_null<func::FuncOp>(op.resolveCallable());
  if (!callee || callee.isExternal())
    return op->emitOpError() << "calls a function without a body";
  std::vector<Tensor> arguments;
  for (Value operand : op.getArgOperands())
    arguments.push_back(values.find(operand)->second);
  FailureOr<std::vector<Tensor>> results = call(callee, std::move(arguments));
  if (failed(results))
    return failure();
  for (auto [value, tensor] : llvm::zip_equal(op->getResults(), *results))
    values[value] = std::move(tensor);
  return success();
}

LogicalResult Interpreter::evaluateRegion(tv::LocalRegionOp op) {
  auto move = [&](Value from, Value to, Type type) {
    FailureOr<std::optional<Layout>> layout = layoutOf(op, type);
    if (failed(layout))
      return failure();
    FailureOr<std::shared_ptr<NDArray>> array = assembled(op, from);
    if (failed(array))
      return failure();
    values[to] = distribute(*array, *layout);
    return success();
  };
  Block &body = op.getOps();
  for (auto [argument, operand] :
       llvm::zip_equal(body.getArguments(), op.getInputs()))
    if (failed(move(operand, argument, argument.getType())))
      return failure();
  for (Operation &inner : body.without_terminator())
    if (failed(evaluate(&inner)))
      return failure();
  for (auto [value, result] : llvm::zip_equal(op.getYielded(), op.getResults()))
    if (failed(move(value, result, result.getType())))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// The part of `tensor` on `rank`.
static Part partOf(const Tensor &tensor, int64_t rank) {
  if (!tensor.layout)
    return {std::make_shared<Placement>(Placement::whole(tensor.shape)),
            tensor.parts[0]};
  return {std::make_shared<Placement>(Placement::of(
              tensor.layout->view, tensor.shape, tensor.layout->mesh, rank)),
          tensor.parts[rank]};
}

static Part emptyPart(Placement place, Type element) {
  auto shared = std::make_shared<Placement>(std::move(place));
  return {shared, std::make_shared<NDArray>(element, shared->localShape())};
}

LogicalResult Interpreter::evaluateOnRanks(Operation *op, Evaluator evaluator,
                                           ArrayRef<Shape> shapes,
                                           std::string &error, bool &notHeld) {
  std::vector<Tensor> results;
  for (auto [result, shape] : llvm::zip_equal(op->getResults(), shapes)) {
    FailureOr<std::optional<Layout>> layout = layoutOf(op, result.getType());
    if (failed(layout))
      return failure();
    results.push_back({shape, *layout, {}});
  }
  for (int64_t rank = 0; rank < config.ranks; ++rank) {
    OpRun run;
    run.op = op;
    run.roundScalars = config.roundValues;
    for (Value operand : op->getOperands())
      run.operands.push_back(partOf(values.find(operand)->second, rank));
    for (auto [i, tensor] : llvm::enumerate(results)) {
      Type element =
          cast<RankedTensorType>(op->getResult(i).getType()).getElementType();
      run.results.push_back(emptyPart(
          tensor.layout ? Placement::of(tensor.layout->view, tensor.shape,
                                        tensor.layout->mesh, rank)
                        : Placement::whole(tensor.shape),
          element));
    }
    run.captured = [&](Value value) {
      return partOf(values.find(value)->second, rank);
    };
    LogicalResult ran = evaluator(run);
    if (failed(ran) || !run.error.empty()) {
      error = "on rank " + std::to_string(rank) + " " + run.error;
      notHeld = run.notHeld;
      return failure();
    }
    for (auto [tensor, part] : llvm::zip_equal(results, run.results)) {
      if (config.roundValues)
        part.data->round(config.doublesToFloat);
      if (tensor.layout || rank == 0)
        tensor.parts.push_back(part.data);
    }
  }
  for (auto [value, tensor] : llvm::zip_equal(op->getResults(), results))
    values[value] = std::move(tensor);
  return success();
}

LogicalResult Interpreter::evaluateWhole(Operation *op, Evaluator evaluator,
                                         ArrayRef<Shape> shapes) {
  OpRun run;
  run.op = op;
  run.roundScalars = config.roundValues;
  auto wholePart = [&](Value value) -> FailureOr<Part> {
    const Tensor &tensor = values.find(value)->second;
    FailureOr<std::shared_ptr<NDArray>> array = assembled(op, value);
    if (failed(array))
      return failure();
    return Part{std::make_shared<Placement>(Placement::whole(tensor.shape)),
                *array};
  };
  for (Value operand : op->getOperands()) {
    FailureOr<Part> part = wholePart(operand);
    if (failed(part))
      return failure();
    run.operands.push_back(*part);
  }
  for (auto [result, shape] : llvm::zip_equal(op->getResults(), shapes))
    run.results.push_back(
        emptyPart(Placement::whole(shape),
                  cast<RankedTensorType>(result.getType()).getElementType()));
  bool capturesFailed = false;
  run.captured = [&](Value value) -> Part {
    FailureOr<Part> part = wholePart(value);
    capturesFailed |= failed(part);
    return succeeded(part) ? *part
                           : emptyPart(Placement::whole(values[value].shape),
                                       values[value].parts[0]->type);
  };
  LogicalResult ran = evaluator(run);
  if (capturesFailed)
    return failure();
  if (failed(ran) || !run.error.empty())
    return op->emitOpError() << run.error;
  for (auto [value, part] : llvm::zip_equal(op->getResults(), run.results)) {
    if (config.roundValues)
      part.data->round(config.doublesToFloat);
    FailureOr<std::optional<Layout>> layout = layoutOf(op, value.getType());
    if (failed(layout))
      return failure();
    values[value] = distribute(part.data, *layout);
  }
  return success();
}

LogicalResult Interpreter::evaluate(Operation *op) {
  // Ops of a group are ops of the program.
  if (auto group = dyn_cast<plan::GroupOp>(op)) {
    for (Operation &inner : group.getOps())
      if (failed(evaluate(&inner)))
        return failure();
    for (auto [value, result] :
         llvm::zip_equal(group.getYielded(), group.getResults())) {
      Tensor tensor = values.find(value)->second;
      values[result] = std::move(tensor);
    }
    return success();
  }
  if (auto region = dyn_cast<tv::LocalRegionOp>(op))
    return evaluateRegion(region);
  // Everything that the op reads, in its regions too, was computed before.
  WalkResult known = op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (isa<RankedTensorType>(operand.getType()) && !values.contains(operand))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (known.wasInterrupted())
    return op->emitOpError() << "reads a tensor that was not computed";
  if (auto callOp = dyn_cast<CallOpInterface>(op))
    return evaluateCall(callOp);
  if (auto gradient = dyn_cast<tv::GradientOp>(op))
    return evaluateGradient(gradient);
  if (isa<tv::MoveOpInterface>(op) ||
      op->hasTrait<OpTrait::GuidesPropagation>())
    return evaluateMove(op);
  Evaluator evaluator = evaluatorOf(op);
  if (!evaluator && isa<plan::PlanDialect>(op->getDialect()))
    return evaluatePlan(op);
  if (!evaluator)
    return op->emitError() << "the interpreter has no rule for '"
                           << op->getName().getStringRef() << "'";

  SmallVector<Shape> shapes;
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    FailureOr<Shape> shape = resultShape(op, i);
    if (failed(shape))
      return failure();
    shapes.push_back(std::move(*shape));
  }
  bool local = false, views = false, undecided = false;
  std::vector<std::optional<Layout>> operandLayouts, resultLayouts;
  auto look = [&](Value value, std::vector<std::optional<Layout>> &layouts) {
    FailureOr<std::optional<Layout>> layout = layoutOf(op, value.getType());
    if (failed(layout))
      return failure();
    Attribute encoding = cast<RankedTensorType>(value.getType()).getEncoding();
    local |= *layout && isa<tv::LocalAttr>(encoding);
    views |= *layout && isa<tv::ViewAttr>(encoding);
    undecided |= !*layout;
    layouts.push_back(*layout);
    return success();
  };
  for (Value operand : op->getOperands())
    if (failed(look(operand, operandLayouts)))
      return failure();
  for (Value result : op->getResults())
    if (failed(look(result, resultLayouts)))
      return failure();

  if (!local && (!views || undecided))
    return evaluateWhole(op, evaluator, shapes);
  std::string why;
  bool notHeld = true;
  if (agreesWithRule(op, operandLayouts, resultLayouts, why) &&
      succeeded(evaluateOnRanks(op, evaluator, shapes, why, notHeld)))
    return success();
  if (why.empty()) // reported
    return failure();
  if (!notHeld)
    return op->emitOpError() << why;
  if (!local && !config.localOnly)
    return evaluateWhole(op, evaluator, shapes);
  return op->emitOpError() << "does not run on each device by itself: " << why;
}

FailureOr<std::vector<Tensor>>
Interpreter::call(func::FuncOp function, std::vector<Tensor> arguments) {
  if (!function.getBody().hasOneBlock())
    return mlir::emitError(function.getLoc())
           << "the interpreter runs straight-line "
              "functions only";
  if (depth == 64)
    return mlir::emitError(function.getLoc())
           << "calls are nested more than 64 deep";
  ++depth;
  for (auto [argument, tensor] :
       llvm::zip_equal(function.getArguments(), arguments))
    values[argument] = std::move(tensor);
  for (Operation &op : function.getBody().front().without_terminator())
    if (failed(evaluate(&op)))
      return failure();
  --depth;
  std::vector<Tensor> results;
  auto end =
      dyn_cast<func::ReturnOp>(function.getBody().front().getTerminator());
  if (!end)
    return mlir::emitError(function.getLoc()) << "must end in func.return";
  for (Value value : end.getOperands()) {
    const Tensor *tensor = lookup(value);
    if (!tensor)
      return end.emitError()
             << "the interpreter has no values of type " << value.getType();
    results.push_back(*tensor);
  }
  return results;
}

FailureOr<std::vector<std::shared_ptr<NDArray>>>
Interpreter::run(func::FuncOp function,
                 ArrayRef<std::shared_ptr<NDArray>> arguments) {
  values.clear();
  windows.clear();
  depth = 0;
  std::vector<Tensor> tensors;
  for (auto [argument, array] :
       llvm::zip_equal(function.getArguments(), arguments)) {
    FailureOr<std::optional<Layout>> layout =
        layoutOf(function, argument.getType());
    if (failed(layout))
      return failure();
    tensors.push_back(distribute(array, *layout));
  }
  FailureOr<std::vector<Tensor>> results = call(function, std::move(tensors));
  if (failed(results))
    return failure();
  resultParts = std::move(*results);
  std::vector<std::shared_ptr<NDArray>> arrays;
  Operation *end = function.getBody().front().getTerminator();
  for (Value value : end->getOperands()) {
    FailureOr<std::shared_ptr<NDArray>> array = assembled(end, value);
    if (failed(array))
      return failure();
    arrays.push_back(*array);
  }
  return arrays;
}
