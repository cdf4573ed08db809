//===- Bind.cpp - fixes the mesh, gives every view its one spelling
//--------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Four steps on the module: calls are inlined, values that are cheaper to make
// than to move get one copy a use, the mesh gets the sizes asked for, and every
// tensor type gets its canonical view.
//
//===----------------------------------------------------------------------===//

#include "Sharding/Passes.h"
#include "TensorView/TensorView.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_BINDPASS
#include "Sharding/Passes.h.inc"
} // namespace tessera::tv

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Puts the body of the called function in the place of the call. `active` are
/// the functions that are being inlined, to find recursion.
static LogicalResult inlineCalls(func::FuncOp function, SymbolTable &symbols,
                                 SmallVector<func::FuncOp> &active) {
  active.push_back(function);
  SmallVector<func::CallOp> calls;
  function.walk([&](func::CallOp call) { calls.push_back(call); });
  for (func::CallOp call : calls) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (!callee || callee.isExternal())
      return call.emitError() << "calls '" << call.getCallee()
                              << "', which has no body here; a sharded program "
                                 "holds only tv ops "
                                 "and calls that inline";
    if (llvm::is_contained(active, callee))
      return call.emitError() << "'" << call.getCallee()
                              << "' calls itself; recursion does not inline";
    if (!callee.getBody().hasOneBlock())
      return call.emitError() << "'" << call.getCallee()
                              << "' has control flow; only straight-line "
                                 "functions inline";
    if (failed(inlineCalls(callee, symbols, active)))
      return failure();
    OpBuilder builder(call);
    IRMapping mapping;
    mapping.map(callee.getArguments(), call.getOperands());
    for (Operation &op : callee.getBody().front().without_terminator()) {
      Operation *clone = builder.clone(op, mapping);
      clone->setLoc(CallSiteLoc::get(op.getLoc(), call.getLoc()));
    }
    for (auto [result, value] : llvm::zip_equal(
             call.getResults(),
             callee.getBody().front().getTerminator()->getOperands()))
      result.replaceAllUsesWith(mapping.lookupOrDefault(value));
    call.erase();
  }
  active.pop_back();
  return success();
}

/// What a sharded program may hold at this point.
static LogicalResult verifyContents(func::FuncOp function) {
  if (!function.getBody().hasOneBlock())
    return function.emitError()
           << "has control flow between blocks; a sharded program is "
              "straight-line in this version";
  for (Operation &op : function.getBody().front()) {
    bool touchesTensors =
        llvm::any_of(op.getOperandTypes(), llvm::IsaPred<RankedTensorType>) ||
        llvm::any_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>);
    if (isa<TensorViewDialect>(op.getDialect()) || isa<func::ReturnOp>(op))
      continue;
    if (touchesTensors || op.getNumRegions())
      return op.emitError() << "'" << op.getName()
                            << "' on the tensors of a sharded program; only tv "
                               "and func ops may touch them in this version";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// One copy a use
//===----------------------------------------------------------------------===//

static void copyPerUse(func::FuncOp function) {
  // Backwards, so that a copied broadcast's operand is seen after its copies.
  SmallVector<Operation *> ops;
  for (Operation &op : function.getBody().front())
    if (op.hasTrait<OpTrait::Rematerializable>())
      ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops)) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : op->getUses())
      uses.push_back(&use);
    // Uses are listed latest first; the first in program order keeps the op.
    for (OpOperand *use : ArrayRef(uses).drop_back(uses.empty() ? 0 : 1)) {
      OpBuilder builder(op->getContext());
      builder.setInsertionPointAfter(op);
      use->set(builder.clone(*op)->getResult(0));
    }
  }
}

//===----------------------------------------------------------------------===//
// Mesh and views
//===----------------------------------------------------------------------===//

namespace {
/// Rewrites meshes to the sizes asked for, and views to canonical form.
class Binder {
public:
  Binder(const llvm::StringMap<int64_t> &sizes) : sizes(sizes) {}

  FailureOr<MeshAttr> bind(MeshAttr mesh,
                           function_ref<InFlightDiagnostic()> emitError);
  /// `view` on the bound mesh, as the user wrote it.
  FailureOr<ViewAttr> resize(ViewAttr view,
                             function_ref<InFlightDiagnostic()> emitError);
  /// `type` with its view canonical.
  FailureOr<Type> bind(Type type, function_ref<InFlightDiagnostic()> emitError);

private:
  const llvm::StringMap<int64_t> &sizes;
};

class BindPass : public tv::impl::BindPassBase<BindPass> {
public:
  using BindPassBase::BindPassBase;
  void runOnOperation() override;

private:
  LogicalResult readSizes(llvm::StringMap<int64_t> &sizes);
  LogicalResult bindFunction(func::FuncOp function, Binder &binder);
};
} // namespace

FailureOr<MeshAttr> Binder::bind(MeshAttr attr,
                                 function_ref<InFlightDiagnostic()> emitError) {
  layout::Mesh mesh = attr.getMesh();
  bool changed = false;
  for (layout::Axis &axis : mesh.axes) {
    auto it = sizes.find(axis.name);
    if (it == sizes.end() || it->second == axis.size)
      continue;
    axis.size = it->second;
    changed = true;
  }
  if (!changed)
    return attr;
  if (!mesh.devices.empty())
    return emitError() << "the mesh lists its devices, so its axes cannot get "
                          "other sizes; remove 'devices' or '--mesh'";
  MeshAttr bound = MeshAttr::getChecked(emitError, attr.getContext(), mesh);
  if (!bound)
    return failure();
  return bound;
}

/// Whole axes follow the mesh; sub-axes keep their sizes.
static void resizeAxes(layout::Product &product, const layout::Mesh &from,
                       const layout::Mesh &to) {
  for (layout::Factor &factor : product) {
    if (factor.kind == layout::Factor::Kind::Device && factor.sub.isWhole(from))
      factor.sub.size = to.axes[factor.sub.axis].size;
    resizeAxes(factor.product, from, to);
  }
}

FailureOr<ViewAttr>
Binder::resize(ViewAttr attr, function_ref<InFlightDiagnostic()> emitError) {
  FailureOr<MeshAttr> mesh = bind(attr.getMesh(), emitError);
  if (failed(mesh))
    return failure();
  layout::View view = attr.getView();
  for (layout::Dim &dim : view.dims)
    resizeAxes(dim.product, attr.getLayoutMesh(), mesh->getMesh());
  for (layout::Partial &partial : view.partial)
    for (layout::SubAxis &sub : partial.axes)
      if (sub.isWhole(attr.getLayoutMesh()))
        sub.size = mesh->getMesh().axes[sub.axis].size;
  return ViewAttr::get(attr.getContext(), *mesh, view);
}

FailureOr<Type> Binder::bind(Type type,
                             function_ref<InFlightDiagnostic()> emitError) {
  ViewAttr view = getView(type);
  if (!view)
    return type;
  FailureOr<ViewAttr> resized = resize(view, emitError);
  if (failed(resized))
    return failure();
  auto tensor = cast<RankedTensorType>(type);
  layout::Shape shape(tensor.getShape());
  if (failed(
          resized->verifyEncoding(shape, tensor.getElementType(), emitError)))
    return failure();
  return Type(withEncoding(
      tensor, resized->with(layout::canonicalize(resized->getView(), shape,
                                                 resized->getLayoutMesh()))));
}

LogicalResult BindPass::readSizes(llvm::StringMap<int64_t> &sizes) {
  for (const std::string &entry : mesh) {
    auto [name, value] = StringRef(entry).split('=');
    int64_t size;
    if (name.empty() || value.getAsInteger(10, size) || size < 1)
      return getOperation().emitError()
             << "mesh option '" << entry << "' must be axis=size, as tp=4";
    sizes[name] = size;
  }
  llvm::StringMap<int64_t> unknown = sizes;
  AttrTypeWalker walker;
  walker.addWalk([&](MeshAttr mesh) {
    for (const layout::Axis &axis : mesh.getMesh().axes)
      unknown.erase(axis.name);
  });
  getOperation().walk([&](Operation *op) {
    walker.walk(op->getAttrDictionary());
    for (Type type : op->getResultTypes())
      walker.walk(type);
  });
  for (const auto &entry : unknown)
    return getOperation().emitError()
           << "mesh option names axis '" << entry.getKey()
           << "', which no view of the program has";
  return success();
}

LogicalResult BindPass::bindFunction(func::FuncOp function, Binder &binder) {
  auto userViewName = StringAttr::get(&getContext(), kUserViewAttr);
  auto emitAt = [](Operation *op, Twine what) {
    std::string text = what.str();
    return [op, text] { return op->emitError() << text << ": "; };
  };

  FunctionType type = function.getFunctionType();
  SmallVector<Type> inputs, results;
  // Set at once: the attributes of all arguments are one array.
  SmallVector<DictionaryAttr> inputAttrs, resultAttrs;
  auto withUserView = [&](DictionaryAttr attributes, ViewAttr view) {
    NamedAttrList list(attributes);
    list.set(userViewName, view);
    return list.getDictionary(&getContext());
  };
  for (auto [index, argument] : llvm::enumerate(function.getArguments())) {
    auto emitError = emitAt(function, "argument #" + Twine(index));
    FailureOr<Type> bound = binder.bind(argument.getType(), emitError);
    if (failed(bound))
      return failure();
    inputAttrs.push_back(function.getArgAttrDict(index));
    if (ViewAttr view = getView(argument))
      inputAttrs.back() =
          withUserView(inputAttrs.back(), *binder.resize(view, emitError));
    argument.setType(*bound);
    inputs.push_back(*bound);
  }
  for (auto [index, result] : llvm::enumerate(type.getResults())) {
    auto emitError = emitAt(function, "result #" + Twine(index));
    FailureOr<Type> bound = binder.bind(result, emitError);
    if (failed(bound))
      return failure();
    resultAttrs.push_back(function.getResultAttrDict(index));
    if (ViewAttr view = getView(result))
      resultAttrs.back() =
          withUserView(resultAttrs.back(), *binder.resize(view, emitError));
    results.push_back(*bound);
  }
  function.setFunctionType(FunctionType::get(&getContext(), inputs, results));
  function.setAllArgAttrs(inputAttrs);
  function.setAllResultAttrs(resultAttrs);

  for (Operation &op : function.getBody().front()) {
    SmallVector<Attribute> userViews;
    bool any = false;
    for (Value result : op.getResults()) {
      auto emitError = emitAt(&op, "view of the result");
      FailureOr<Type> bound = binder.bind(result.getType(), emitError);
      if (failed(bound))
        return failure();
      Attribute user = UnitAttr::get(&getContext());
      if (ViewAttr view = getView(result)) {
        user = *binder.resize(view, emitError);
        any = true;
      }
      userViews.push_back(user);
      result.setType(*bound);
    }
    if (any)
      op.setAttr(userViewName, ArrayAttr::get(&getContext(), userViews));
    if (isa<ReshardOp>(op))
      op.setAttr(kUserMoveAttr, UnitAttr::get(&getContext()));
    if (auto constrain = dyn_cast<ConstrainOp>(op)) {
      auto emitError = emitAt(&op, "constraint");
      FailureOr<Type> bound = binder.bind(
          withEncoding(constrain.getInput().getType(), constrain.getView()),
          emitError);
      if (failed(bound))
        return failure();
      op.setAttr(
          userViewName,
          ArrayAttr::get(&getContext(),
                         {*binder.resize(constrain.getView(), emitError)}));
      constrain.setViewAttr(getView(*bound));
    }
  }
  return success();
}

void BindPass::runOnOperation() {
  ModuleOp module = getOperation();
  SymbolTable symbols(module);
  llvm::StringMap<int64_t> sizes;
  if (failed(readSizes(sizes)))
    return signalPassFailure();

  SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
  for (func::FuncOp function : functions) {
    SmallVector<func::FuncOp> active;
    if (function.isPublic() && !function.isExternal() &&
        failed(inlineCalls(function, symbols, active)))
      return signalPassFailure();
  }
  for (func::FuncOp function : functions)
    if (function.isPrivate() &&
        SymbolTable::symbolKnownUseEmpty(function, module))
      function.erase();

  Binder binder(sizes);
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    if (failed(verifyContents(function)))
      return signalPassFailure();
    copyPerUse(function);
    if (failed(bindFunction(function, binder)))
      return signalPassFailure();
  }
}
