//===- PropagateShardings.cpp - a view for every tensor -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thin driver of Propagation.h: builds its graph from a function, runs it,
// and writes the views into the types.
//
//===----------------------------------------------------------------------===//

#include "Propagate/Passes.h"
#include "Propagate/Propagation.h"
#include "TensorView/ExtentAnalysis.h"
#include "TensorView/TensorView.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_PROPAGATESHARDINGSPASS
#include "Propagate/Passes.h.inc"
} // namespace tessera::tv

namespace {
class PropagateShardingsPass
    : public tv::impl::PropagateShardingsPassBase<PropagateShardingsPass> {
public:
  using PropagateShardingsPassBase::PropagateShardingsPassBase;
  void runOnContract() override;

private:
  FailureOr<MeshAttr> findMesh();
  bool isPinned(Value value);
  void addTensors(Propagation &graph, Operation &op, ExtentAnalysis &extents);
  void addTensor(Propagation &graph, Value value, ExtentAnalysis &extents);
  SmallVector<Operation *> findDeciding(const Propagation &graph);
  LogicalResult addNode(Propagation &graph, Operation &op, MeshAttr mesh);
  void materialize(const Propagation &graph, MeshAttr mesh);
  void report(const Propagation &graph);

  int indexOf(Value value) const {
    auto it = indices.find(value);
    return it == indices.end() ? -1 : it->second;
  }

  llvm::DenseMap<Value, int> indices;
  SmallVector<Value> values;         ///< of each tensor, one
  SmallVector<BlockArgument> states; ///< of the function's results
};
} // namespace

/// The view that the user wrote for `value`, before `tv-bind` closed it.
static ViewAttr getUserView(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    return function.getArgAttrOfType<ViewAttr>(argument.getArgNumber(),
                                               kUserViewAttr);
  }
  auto result = cast<OpResult>(value);
  auto views = result.getOwner()->getAttrOfType<ArrayAttr>(kUserViewAttr);
  if (!views)
    return {};
  return dyn_cast<ViewAttr>(views[result.getResultNumber()]);
}

static bool hasOpenDigit(const layout::Product &product) {
  return llvm::any_of(product, [](const layout::Factor &factor) {
    return factor.kind == layout::Factor::Kind::Open ||
           hasOpenDigit(factor.product);
  });
}

/// Whether propagation may split a dimension further.
static bool isOpen(ViewAttr user) {
  return user && llvm::any_of(user.getView().dims, [](const layout::Dim &dim) {
           return hasOpenDigit(dim.product);
         });
}

/// "argument 'w0'" or "'tv.linear' at mlp.mlir:12".
static std::string describe(Value value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      kNameAttr);
    os << "argument ";
    if (name)
      os << "'" << name.getValue() << "'";
    else
      os << "#" << argument.getArgNumber();
    return text;
  }
  os << "'" << value.getDefiningOp()->getName() << "'";
  if (auto file = value.getLoc()->findInstanceOf<FileLineColLoc>())
    os << " in line " << file.getLine();
  return text;
}

/// Whether the function returns `value`, but not to replace a state; `states`:
/// of its results.
static bool isReturned(Value value, ArrayRef<BlockArgument> states) {
  bool any = false;
  for (OpOperand &use : value.getUses())
    if (auto end = dyn_cast<func::ReturnOp>(use.getOwner())) {
      if (states[use.getOperandNumber()])
        return false;
      any = true;
    }
  return any;
}

/// Whether a move that the user wrote, or a view of what the function returns,
/// is of `value`.
bool PropagateShardingsPass::isPinned(Value value) {
  func::FuncOp function = getOperation();
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    if (!isa<func::ReturnOp>(use.getOwner()))
      return isa<ReshardOp>(use.getOwner());
    const unsigned number = use.getOperandNumber();
    auto user = function.getResultAttrOfType<ViewAttr>(number, kUserViewAttr);
    return states[number] ||
           (getView(function.getFunctionType().getResult(number)) &&
            !::isOpen(user));
  });
}

/// The mesh that all views lie on.
FailureOr<MeshAttr> PropagateShardingsPass::findMesh() {
  func::FuncOp function = getOperation();
  for (Type type : function.getArgumentTypes())
    if (ViewAttr view = getView(type))
      return view.getMesh();
  for (Operation &op : function.getBody().front()) {
    if (auto constrain = dyn_cast<ConstrainOp>(op))
      return constrain.getView().getMesh();
    for (Type type : op.getResultTypes())
      if (ViewAttr view = getView(type))
        return view.getMesh();
  }
  const bool isAlone = llvm::hasSingleElement(
      function->getParentOfType<ModuleOp>().getOps<func::FuncOp>());
  return function.emitError()
         << "no tensor of '" << function.getName()
         << "' has a view, so there is no mesh to shard it over; write one on "
            "an argument, as #tv.view<#tv.mesh<tp = 2>, [did(tp) * _, _]>"
         << (isAlone ? "" : ", or make it private if only others call it");
}

void PropagateShardingsPass::addTensor(Propagation &graph, Value value,
                                       ExtentAnalysis &extents) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return;
  Propagation::Tensor tensor;
  tensor.shape = layout::Shape(type.getShape());
  tensor.typical = extents.getTypicalShape(value);
  tensor.elementBytes = ExtentAnalysis::getElementBytes(value);
  if (explain)
    tensor.name = describe(value);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    tensor.weight = isWeightRole(getOperation().getArgAttrOfType<StringAttr>(
        argument.getArgNumber(), kRoleAttr));
  }
  tensor.returned = isReturned(value, states);
  tensor.pinned = isPinned(value);
  ViewAttr view = getView(type);
  if (auto constrain = value.getDefiningOp<ConstrainOp>())
    view = constrain.getView();
  if (!view) {
    layout::View whole = layout::View::replicated(type.getRank());
    tensor.view = layout::canonicalize(whole, tensor.shape, {});
    tensor.open.assign(type.getRank(), 0);
  } else {
    tensor.view = view.getView();
    tensor.open.assign(type.getRank(), Propagation::kClosed);
    if (ViewAttr user = getUserView(value)) {
      // Its dimensions may be others: where one product for two is a product
      // for each, tv-bind writes these.
      const layout::View &written = user.getView();
      SmallVector<int64_t> priorities; // by dimension of the tensor
      int64_t first = 0;
      for (auto [number, dim] : llvm::enumerate(written.dims)) {
        if (hasOpenDigit(dim.product))
          for (int64_t d = first; d < first + dim.span; ++d)
            tensor.open[d] = 0;
        if (!written.priority.empty())
          priorities.append(dim.span, written.priority[number]);
        first += dim.span;
      }
      for (ArrayRef<int64_t> left = priorities; !left.empty();) {
        const int64_t span = tensor.view.dims[tensor.priority.size()].span;
        tensor.priority.push_back(*llvm::min_element(left.take_front(span)));
        left = left.drop_front(span);
      }
    }
  }
  indices[value] = graph.addTensor(std::move(tensor));
  values.push_back(value);
}

/// The results of `op`; those of a `tv.same_view` are one tensor.
void PropagateShardingsPass::addTensors(Propagation &graph, Operation &op,
                                        ExtentAnalysis &extents) {
  ResultRange results = op.getResults();
  if (!isa<SameViewOp>(op)) {
    for (Value result : results)
      addTensor(graph, result, extents);
    return;
  }
  auto viewed = llvm::find_if(
      results, [](Value result) { return getView(result) != nullptr; });
  const Value first = viewed == results.end() ? results.front() : *viewed;
  addTensor(graph, first, extents);
  for (Value result : results)
    indices[result] = indexOf(first);
}

/// Whether the boxes are some of the equal parts of the whole along one
/// dimension, and all of it along others.
static bool hasEqualParts(WindowOpInterface op) {
  const bool isResult = op.getWhole().getDefiningOp() == op;
  const layout::Shape whole = getGlobalShape(op.getWhole().getType());
  std::optional<std::pair<size_t, int64_t>> cut; ///< dimension, size of a part
  for (auto [box, offsets] :
       llvm::zip_equal(isResult ? ValueRange(op->getOperands())
                                : ValueRange(op->getResults()),
                       op.getBoxOffsets())) {
    const layout::Shape part = getGlobalShape(box.getType());
    for (size_t d = 0; d < whole.size(); ++d) {
      if (part[d] == whole[d])
        continue;
      if (whole[d] == layout::kDynamic || part[d] == layout::kDynamic ||
          part[d] == 0 || whole[d] % part[d] != 0 ||
          offsets[d] % part[d] != 0 || (cut && *cut != std::pair(d, part[d])))
        return false;
      cut = {d, part[d]};
    }
  }
  return cut.has_value();
}

LogicalResult PropagateShardingsPass::addNode(Propagation &graph, Operation &op,
                                              MeshAttr mesh) {
  Propagation::Node node;
  if (explain)
    node.name = describe(op.getResult(0));
  for (Value operand : op.getOperands())
    node.operands.push_back(indexOf(operand));
  for (Value result : op.getResults())
    node.results.push_back(indexOf(result));
  if (auto rule = dyn_cast<ShardingRuleOpInterface>(op)) {
    node.rule = rule.getShardingRule();
    node.pointwise = op.hasTrait<OpTrait::Pointwise>();
    auto windows = dyn_cast<WindowOpInterface>(op);
    node.hasEqualParts = windows && hasEqualParts(windows);
    if (windows && windows.getWhole() == op.getOperand(0) &&
        op.getNumResults() == 1)
      node.box = [windows, mesh](const layout::View &view) mutable {
        auto boxes = getBoxViews(windows, view, mesh.getMesh());
        return boxes ? Result<layout::View>(std::move(boxes->front()))
                     : Result<layout::View>(boxes.error());
      };
    if (isa<SameViewOp>(op)) {
      node.pointwise = true;
      node.results.resize(1);
      node.rule.results.resize(1);
    }
  } else if (auto reinterpret = dyn_cast<ReinterpretOpInterface>(op)) {
    node.forward = [reinterpret, mesh](const layout::View &view) mutable {
      return reinterpret.getResultView(view, mesh.getMesh());
    };
    node.backward = [reinterpret, mesh](const layout::View &view) mutable {
      return reinterpret.getOperandView(view, mesh.getMesh());
    };
  } else if (op.hasTrait<OpTrait::GuidesPropagation>()) {
    node.forward = node.backward = [](const layout::View &view) {
      return Result<layout::View>(view);
    };
    auto stop = [](const layout::View &) -> Result<layout::View> {
      return Error{"views do not pass a barrier"};
    };
    auto barrier = dyn_cast<BarrierOp>(op);
    if (barrier && barrier.getPassage() != Passage::Forward)
      node.forward = stop;
    if (barrier && barrier.getPassage() != Passage::Backward)
      node.backward = stop;
  } else {
    return op.emitError() << "'" << op.getName()
                          << "' has no sharding rule, so no view can pass it";
  }
  graph.addNode(std::move(node));
  return success();
}

/// The type, of a tensor, in the same places.
static Type withoutPartial(Type type) {
  ViewAttr attr = getView(type);
  if (!attr || attr.getView().partial.empty())
    return type;
  layout::View view = attr.getView();
  view.partial.clear();
  return withEncoding(
      type, attr.with(layout::canonicalize(
                view, layout::Shape(cast<RankedTensorType>(type).getShape()),
                attr.getLayoutMesh())));
}

void PropagateShardingsPass::materialize(const Propagation &graph,
                                         MeshAttr mesh) {
  func::FuncOp function = getOperation();
  for (auto [value, index] : indices) {
    const Propagation::Tensor &tensor = graph.tensor(index);
    if (ViewAttr view = getView(value); view && view.getView() == tensor.view)
      continue;
    layout::View view =
        layout::canonicalize(tensor.view, tensor.shape, mesh.getMesh());
    Value(value).setType(withEncoding(
        value.getType(), ViewAttr::get(&getContext(), mesh, view)));
  }

  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    if (!op.hasTrait<OpTrait::GuidesPropagation>())
      continue;
    OpBuilder builder(&op);
    const bool moves = isa<ConstrainOp, BarrierOp>(op);
    for (auto [operand, result] :
         llvm::zip_equal(op.getOperands(), op.getResults())) {
      Value moved = operand;
      if (moves || operand.getType() != result.getType()) {
        auto reshard =
            ReshardOp::create(builder, op.getLoc(), TypeRange{result.getType()},
                              ValueRange{operand}, StepAttr());
        if (moves)
          reshard->setAttr(kUserMoveAttr, builder.getUnitAttr());
        moved = reshard.getResult(0);
      }
      result.replaceAllUsesWith(moved);
    }
    op.erase();
  }

  // What the function returns lies as the state that it replaces, as the user
  // wrote, or as it came out, but for partial states of which the user wrote
  // nothing here: callers have whole values.
  Operation *terminator = function.getBody().front().getTerminator();
  SmallVector<Type> results;
  for (auto [i, operand, type] :
       llvm::enumerate(terminator->getOpOperands(),
                       function.getFunctionType().getResults())) {
    Value value = operand.get();
    auto user = function.getResultAttrOfType<ViewAttr>(i, kUserViewAttr);
    Type wanted = value.getType();
    if (BlockArgument state = states[i])
      wanted = state.getType();
    else if (getView(type) && !isOpen(user))
      wanted = type;
    else if (!getView(type) || user.getView().partial.empty())
      wanted = withoutPartial(wanted);
    if (value.getType() != wanted) {
      OpBuilder builder(terminator);
      operand.set(ReshardOp::create(builder, terminator->getLoc(),
                                    TypeRange{wanted}, ValueRange{value},
                                    StepAttr())
                      .getResult(0));
    }
    results.push_back(operand.get().getType());
  }
  function.setFunctionType(FunctionType::get(
      &getContext(), function.getBody().front().getArgumentTypes(), results));
}

void PropagateShardingsPass::report(const Propagation &graph) {
  ::llvm::StringSet<> said;
  for (const Propagation::Decision &decision : graph.decisions())
    if (said.insert(decision.text).second)
      emitRemark(values[decision.tensor].getLoc()) << decision.text;
}

/// The ops that may decide of a view, or are asked what such a one's operands
/// cost; where decisions are explained, all.
SmallVector<Operation *>
PropagateShardingsPass::findDeciding(const Propagation &graph) {
  auto isOpen = [&](Value value) {
    const int tensor = indexOf(value);
    return tensor >= 0 && graph.isOpen(tensor);
  };
  SmallVector<Operation *> deciding;
  DenseSet<Operation *> asked;
  for (Operation &op :
       llvm::reverse(getOperation().getBody().front().without_terminator())) {
    if (isa<ReshardOp>(op))
      continue;
    if (!explain && !asked.contains(&op) &&
        llvm::none_of(op.getOperands(), isOpen) &&
        llvm::none_of(op.getResults(), isOpen))
      continue;
    deciding.push_back(&op);
    // One that gives its operand's elements costs what that does.
    if (!isa<ShardingRuleOpInterface>(op))
      for (Value operand : op.getOperands())
        asked.insert(operand.getDefiningOp());
  }
  std::reverse(deciding.begin(), deciding.end());
  return deciding;
}

/// Views that the user wrote fit the largest sizes, too. (tv-bind looks at
/// extents that the types say.)
static LogicalResult verifyAtMaximum(func::FuncOp function,
                                     const ExtentAnalysis &extents) {
  auto verify = [&](Value value, ViewAttr view, Location loc,
                    const Twine &what) -> LogicalResult {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!view || !type || type.hasStaticShape())
      return success();
    const layout::Shape maximum = extents.getMaximumShape(value);
    Status status =
        layout::verify(view.getView(), maximum, view.getLayoutMesh());
    if (status)
      return success();
    std::set<std::string> sizes;
    for (const layout::Extent &extent : extents.get(value))
      for (const auto &term : extent.terms)
        for (const std::string &name : term.first)
          sizes.insert(name + " = " +
                       std::to_string(extents.getMaximums().at(name)));
    return emitError(loc) << what << " lies as "
                          << layout::toString(view.getView(),
                                              view.getLayoutMesh())
                          << ", which does not fit at the largest sizes, "
                          << llvm::join(sizes, ", ") << ": "
                          << status.message();
  };
  for (BlockArgument argument : function.getArguments())
    if (failed(verify(argument, getView(argument), argument.getLoc(),
                      describe(argument))))
      return failure();
  for (Operation &op : function.getBody().front())
    for (OpResult result : op.getResults()) {
      auto constrain = dyn_cast<ConstrainOp>(op);
      if (failed(verify(
              result, constrain ? constrain.getView() : getView(result),
              op.getLoc(), "result #" + Twine(result.getResultNumber()))))
        return failure();
    }
  Operation *end = function.getBody().front().getTerminator();
  for (auto [i, value, type] : llvm::enumerate(
           end->getOperands(), function.getFunctionType().getResults()))
    if (failed(verify(value, getView(type), end->getLoc(),
                      "result #" + Twine(i) + " of the function")))
      return failure();
  return success();
}

void PropagateShardingsPass::runOnContract() {
  func::FuncOp function = getOperation();
  indices.clear();
  values.clear();
  states = getStates(function);
  FailureOr<MeshAttr> mesh = findMesh();
  if (failed(mesh))
    return signalPassFailure();
  FailureOr<ExtentAnalysis> extents = ExtentAnalysis::run(function);
  if (failed(extents) || failed(verifyAtMaximum(function, *extents)))
    return signalPassFailure();
  Propagation graph(mesh->getMesh(), getMachine(getOperation()), explain);
  for (Value argument : function.getArguments())
    addTensor(graph, argument, *extents);
  for (Operation &op : function.getBody().front())
    addTensors(graph, op, *extents);
  for (Operation *op : findDeciding(graph))
    if (failed(addNode(graph, *op, *mesh)))
      return signalPassFailure();

  Status status = graph.run();
  if (!status) {
    function.emitError() << status.message();
    return signalPassFailure();
  }
  if (explain)
    report(graph);
  materialize(graph, *mesh);
}
