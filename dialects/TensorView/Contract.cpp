//===- Contract.cpp - what a pass needs of a program ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorView/Contract.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

/// The pass after which a contract holds.
static StringRef getPass(Contract contract) {
  switch (contract) {
  case Contract::Bound:
    return "tv-bind";
  case Contract::Propagated:
    return "tv-propagate-shardings";
  case Contract::Planned:
    return "tv-plan-reshards";
  case Contract::Localized:
    return "tv-localize";
  }
  llvm_unreachable("all contracts are covered");
}

namespace {
class Checker {
public:
  Checker(Contract contract, StringRef pass) : contract(contract), pass(pass) {}
  LogicalResult check(func::FuncOp function);

private:
  LogicalResult checkOp(Operation *op);
  LogicalResult checkType(Type type, Operation *at);
  /// An error unless `view` is on `mesh`, which a first view sets.
  LogicalResult checkMesh(ViewAttr view, Operation *at);
  /// "PASS runs after OTHER: ", to which the caller adds why it cannot here.
  InFlightDiagnostic error(Operation *at) {
    return at->emitError() << pass << " runs after " << getPass(contract)
                           << ": ";
  }

  Contract contract;
  StringRef pass;
  MeshAttr mesh;
  llvm::DenseSet<Type> checked; ///< types that are as they should be
};
} // namespace

LogicalResult Checker::check(func::FuncOp function) {
  Region &body = function.getBody();
  if (body.empty())
    return error(function) << "'" << function.getName()
                           << "' has no body; a program is compiled as a whole";
  if (!body.hasOneBlock() || body.front().empty() ||
      !isa<func::ReturnOp>(body.front().back()))
    return error(function) << "'" << function.getName()
                           << "' is not one block that ends in 'func.return'";
  for (Type type : body.getArgumentTypes())
    if (failed(checkType(type, function)))
      return failure();
  for (Operation &op : body.front())
    if (failed(checkOp(&op)))
      return failure();
  return success();
}

LogicalResult Checker::checkOp(Operation *op) {
  bool touchesTensors =
      op->getNumRegions() > 0 ||
      llvm::any_of(op->getOperandTypes(), llvm::IsaPred<ShapedType>);
  for (Type type : op->getResultTypes()) {
    if (failed(checkType(type, op)))
      return failure();
    touchesTensors |= isa<ShapedType>(type);
  }
  const bool isLocal = contract == Contract::Localized;
  Dialect *dialect = op->getDialect();
  bool isOurs = isa<func::ReturnOp>(op) ||
                isa_and_present<TensorViewDialect>(dialect) ||
                (isLocal && isa_and_present<LocalDialectInterface>(dialect));
  if (touchesTensors && !isOurs)
    return error(op) << "'" << op->getName()
                     << "' may not touch the tensors of a sharded program";
  auto reshard = dyn_cast<ReshardOp>(op);
  auto constrain = dyn_cast<ConstrainOp>(op);
  if (constrain && failed(checkMesh(constrain.getView(), op)))
    return failure();
  if ((isLocal && reshard) ||
      (contract != Contract::Bound &&
       op->hasTrait<OpTrait::GuidesPropagation>()) ||
      isa<CallOp, GradientOp, LocalRegionOp>(op))
    return error(op) << "'" << op->getName() << "' should be gone";
  if (reshard && contract >= Contract::Planned && !reshard.getPlanAttr())
    return error(op) << "'tv.reshard' has no plan";
  return success();
}

LogicalResult Checker::checkMesh(ViewAttr view, Operation *at) {
  // Arguments and results may be on others' devices from when they are moved.
  const bool anyDevices = contract >= Contract::Propagated;
  if (mesh && view.getMesh() != mesh &&
      !(anyDevices && view.getLayoutMesh().axes == mesh->axes))
    return error(at) << "has a view on mesh " << view.getMesh()
                     << ", but others are on " << mesh
                     << "; a program runs on one mesh";
  mesh = view.getMesh();
  return success();
}

LogicalResult Checker::checkType(Type any, Operation *at) {
  if (!checked.insert(any).second)
    return success();
  auto mustBe = [&](const Twine &what) {
    return error(at) << "a value of type " << any << " " << what;
  };
  auto type = dyn_cast<RankedTensorType>(any);
  if (contract == Contract::Localized) {
    if (!type || !isa_and_present<LocalAttr>(type.getEncoding()))
      return mustBe("is not one device's part, a tensor with a #tv.local");
    return success();
  }
  if (!type) {
    if (isa<ShapedType>(any))
      return mustBe("is no tensor of a known rank");
    return success();
  }
  ViewAttr view = getView(type);
  if (!view) {
    if (contract == Contract::Bound && !type.getEncoding())
      return success();
    return mustBe("has no view");
  }
  if (failed(checkMesh(view, at)))
    return failure();
  layout::Shape shape(type.getShape().begin(), type.getShape().end());
  layout::View canonical =
      layout::canonicalize(view.getView(), shape, view.getLayoutMesh());
  if (canonical != view.getView())
    return mustBe("has another view than its canonical one, ")
           << layout::toString(canonical, view.getLayoutMesh());
  return success();
}

SmallVector<BlockArgument> tv::getStates(func::FuncOp function) {
  llvm::DenseMap<Attribute, BlockArgument> byName;
  for (auto [i, argument] : llvm::enumerate(function.getArguments()))
    if (isStateRole(function.getArgAttrOfType<StringAttr>(i, kRoleAttr)))
      byName.try_emplace(function.getArgAttr(i, kNameAttr), argument);
  SmallVector<BlockArgument> states(function.getNumResults());
  for (auto [i, state] : llvm::enumerate(states))
    if (Attribute name = function.getResultAttr(i, kNameAttr))
      state = byName.lookup(name);
  return states;
}

LogicalResult tv::verifyContract(Operation *root, Contract contract,
                                 StringRef pass) {
  if (auto function = dyn_cast<func::FuncOp>(root))
    return Checker(contract, pass).check(function);
  for (auto function : cast<ModuleOp>(root).getOps<func::FuncOp>())
    if (failed(Checker(contract, pass).check(function)))
      return failure();
  return success();
}
