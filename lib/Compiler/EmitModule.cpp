//===- EmitModule.cpp - from a planned program to a module file -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A transcription: each value of the planned `@main` becomes a tensor of the
// module, each op but aliases, joins and constants a step. What is decided here
// is the class of memory: what a caller gives or gets is external, what
// collectives touch is symmetric, the rest local; a state that a step replaces
// where it lies has one memory with its next value. A choice is an alternative:
// its result and the values of its variants are one tensor, which the steps of
// each write.
//
//===----------------------------------------------------------------------===//

#include "Compiler/EmitModule.h"
#include "Comm/Comm.h"
#include "Compiler/Targets/Names.h"
#include "Module/Module.h"
#include "Plan/InPlace.h"
#include "Plan/Target.h"
#include "TensorView/Contract.h"
#include "TensorView/ExtentAnalysis.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

namespace {
class Emitter {
public:
  explicit Emitter(func::FuncOp main)
      : main(main), inPlace(plan::findInPlace(main)) {}
  LogicalResult run();
  fb::PlanT plan;
  std::string constants;

private:
  LogicalResult addSymbols();
  LogicalResult claimName(StringRef name, StringRef kind, unsigned number,
                          Location loc);
  LogicalResult addInputs();
  LogicalResult addAlternatives();
  LogicalResult addOutputs(func::ReturnOp op);
  LogicalResult addStep(Operation *op);
  FailureOr<int32_t> addTensor(Value value, std::string name);
  LogicalResult addResult(OpResult result);
  LogicalResult addJoin(plan::JoinOp join);
  LogicalResult addConstant(plan::ConstantOp op, fb::TensorT &tensor);
  std::unique_ptr<fb::ExtentT> toExtent(const layout::Extent &extent);
  FailureOr<std::unique_ptr<fb::ScalarT>> toScalar(Operation *op,
                                                   Attribute attribute);
  template <typename T> void push(Operation *op, StringRef source, T action);
  bool readsState(plan::LaunchOp launch) const;
  int32_t firstUse(Value value) const;
  int32_t id(Value value) { return ids.lookup(value); }

  func::FuncOp main;
  plan::InPlace inPlace;
  tv::MeshAttr mesh;
  std::map<std::string, int32_t> symbols;
  llvm::StringMap<std::string> owners; ///< of names: "argument #0"
  llvm::DenseMap<Value, int32_t> ids;
  llvm::DenseMap<Operation *, int32_t> steps;          ///< by op
  llvm::DenseMap<Operation *, plan::Variant> variants; ///< of steps
  llvm::DenseMap<Operation *, int32_t> alternatives;   ///< by choice
};
} // namespace

/// The name of an argument or result, or a made-up one.
static std::string getPortName(DictionaryAttr attributes, StringRef made,
                               unsigned number) {
  if (attributes)
    if (auto name = attributes.getAs<StringAttr>(tv::kNameAttr))
      return name.str();
  return (made + Twine(number)).str();
}

/// Whether steps behind it may write what it reads.
bool Emitter::readsState(plan::LaunchOp launch) const {
  auto rootOf = [](Value value) {
    while (auto alias = value.getDefiningOp<plan::AliasOp>())
      value = alias.getInput();
    return value;
  };
  return llvm::any_of(launch.getInputs(), [&](Value value) {
    const Value root = rootOf(value);
    return llvm::any_of(inPlace.states, [&](const auto &state) {
      return rootOf(state.second) == root || state.first == root;
    });
  });
}

/// The first step that reads a value; their end, if none does.
int32_t Emitter::firstUse(Value value) const {
  int32_t first = plan.steps.size();
  for (Operation *user : value.getUsers()) {
    if (auto step = steps.find(user); step != steps.end())
      first = std::min(first, step->second);
    else
      for (Value result : user->getResults()) // of what is no step
        first = std::min(first, firstUse(result));
  }
  return first;
}

LogicalResult Emitter::run() {
  if (!main.getBody().hasOneBlock())
    return main.emitError() << "'@main' must be one block";
  // Arguments, what is returned, and kernels next to them may lie on others'
  // devices.
  tv::MeshAttr ofKernels;
  for (Operation &op : main.getBody().front()) {
    if (auto move = dyn_cast<comm::CollectiveOpInterface>(op)) {
      mesh = move.getAxes().getMesh();
      break;
    }
    if (!op.getNumResults() || isa<plan::CopyOp>(op))
      continue;
    if (auto type = dyn_cast<RankedTensorType>(op.getResultTypes()[0]))
      if (auto local = dyn_cast_or_null<tv::LocalAttr>(type.getEncoding())) {
        tv::MeshAttr &found = isa<plan::LaunchOp>(op) ? ofKernels : mesh;
        if (!found)
          found = local.getView().getMesh();
      }
  }
  if (!mesh)
    mesh = ofKernels;
  if (failed(addSymbols()) || failed(addInputs()) || failed(addAlternatives()))
    return failure();
  for (Operation &op : main.getBody().front()) {
    if (auto returns = dyn_cast<func::ReturnOp>(op)) {
      if (failed(addOutputs(returns)))
        return failure();
      continue;
    }
    if (isa<plan::ChooseOp>(op))
      continue; // its results are tensors since its variants'
    for (OpResult result : op.getResults())
      if (failed(addResult(result)))
        return failure();
    if (failed(addStep(&op)))
      return failure();
  }
  if (!mesh)
    return main.emitError() << "'@main' has no tensors, so no mesh to run on";
  for (auto launch : main.getOps<plan::LaunchOp>())
    if (launch.getAside() && !readsState(launch))
      for (Value result : launch.getResults()) {
        int32_t &until = plan.steps[steps.lookup(launch)]->until;
        until = std::min(until < 0 ? INT32_MAX : until, firstUse(result));
      }
  plan.mesh = layout::toString(mesh.getMesh());
  return success();
}

LogicalResult Emitter::addSymbols() {
  auto sizes = main->getAttrOfType<DictionaryAttr>(tv::kSizesAttr);
  for (NamedAttribute size :
       sizes ? sizes : DictionaryAttr::get(main.getContext())) {
    auto symbol = std::make_unique<fb::SymbolT>();
    symbol->name = size.getName().str();
    tv::DeclaredSize declared(size.getValue());
    symbol->maximum = declared.maximum;
    symbol->multiple = declared.multiple;
    symbols[symbol->name] = plan.symbols.size();
    plan.symbols.push_back(std::move(symbol));
  }
  return success();
}

LogicalResult Emitter::addAlternatives() {
  Block &block = main.getBody().front();
  variants = plan::getVariants(block);
  for (auto choice : block.getOps<plan::ChooseOp>()) {
    for (OpOperand &value : choice->getOpOperands())
      if (!plan::isOwnMemory(value, variants))
        return choice.emitOpError()
               << "each of its values must be the result of a step of its "
                  "variant, used by no other; tv-emit-kernels copies others";
    auto alternative = std::make_unique<fb::AlternativeT>();
    alternative->kind = choice.getKind().str();
    alternative->op = choice.getSource().str();
    alternative->location = getPlace(choice.getLoc());
    alternative->problem = choice.getProblem().value_or("").str();
    auto add = [&](StringRef name, StringRef reason) {
      auto variant = std::make_unique<fb::VariantT>();
      variant->name = name.str();
      variant->reason = reason.str();
      alternative->variants.push_back(std::move(variant));
    };
    for (unsigned i = 0; i < choice.getVariants().size(); ++i)
      add(choice.getVariant(i), "");
    if (DictionaryAttr without = choice.getWithoutAttr())
      for (NamedAttribute missing : without)
        add(missing.getName(), cast<StringAttr>(missing.getValue()));
    alternatives[choice] = plan.alternatives.size();
    plan.alternatives.push_back(std::move(alternative));
  }
  return success();
}

/// Two ports may not have one name, given or made up.
LogicalResult Emitter::claimName(StringRef name, StringRef kind,
                                 unsigned number, Location loc) {
  std::string owner = (kind + " #" + Twine(number)).str();
  auto [it, isNew] = owners.try_emplace(name, owner);
  if (isNew)
    return success();
  return emitError(loc) << it->second << " and " << owner
                        << " both have the name '" << name << "'";
}

/// Warns of a port whose value ranks only have together: a program's caller may
/// give or take these, a file cannot.
static void warnOfParts(Location loc, const Twine &port, Value value,
                        DictionaryAttr attributes) {
  const tv::LocalAttr local = tv::getLocal(value);
  const layout::View &view = local.getLayoutView();
  if (view.partial.empty())
    return;
  auto user = attributes ? attributes.getAs<tv::ViewAttr>(tv::kUserViewAttr)
                         : tv::ViewAttr();
  layout::View whole = user ? user.getView() : view;
  whole.partial.clear();
  whole.alloc.reset();
  const layout::Mesh &mesh = local.getLayoutMesh();
  emitWarning(loc) << port << " is partial: ranks have parts of a "
                   << layout::toString(view.partial[0].combiner)
                   << " each, which no file holds for tessera-run; as "
                   << layout::toString(whole, mesh) << " it is whole";
}

LogicalResult Emitter::addInputs() {
  for (BlockArgument argument : main.getArguments()) {
    unsigned number = argument.getArgNumber();
    DictionaryAttr attributes = main.getArgAttrDict(number);
    auto port = std::make_unique<fb::PortT>();
    port->name = getPortName(attributes, "arg", number);
    FailureOr<int32_t> tensor = addTensor(argument, port->name);
    if (failed(tensor) ||
        failed(claimName(port->name, "argument", number, argument.getLoc())))
      return failure();
    port->tensor = *tensor;
    plan.tensors[*tensor]->storage = fb::Storage::External;
    if (attributes &&
        tv::isStateRole(attributes.getAs<StringAttr>(tv::kRoleAttr)))
      port->kind = fb::PortKind::State;
    port->zero_init = attributes && attributes.contains(tv::kInitAttr);
    if (!port->zero_init)
      warnOfParts(argument.getLoc(), "argument '" + port->name + "'", argument,
                  attributes);
    plan.ports.push_back(std::move(port));
  }
  return success();
}

/// Which elements a local tensor has; its order in memory is no part of that.
static std::tuple<tv::MeshAttr, layout::View, std::vector<layout::Extent>>
getPlaced(Value value) {
  const tv::LocalAttr local = tv::getLocal(value);
  layout::View view = local.getLayoutView();
  view.alloc.reset();
  return {local.getView().getMesh(),
          view,
          {local.getExtents().begin(), local.getExtents().end()}};
}

LogicalResult Emitter::addOutputs(func::ReturnOp op) {
  const SmallVector<BlockArgument> states = tv::getStates(main);
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    std::string name =
        getPortName(main.getResultAttrDict(number), "result", number);
    int32_t tensor = id(operand.get());
    if (BlockArgument state = states[number]) {
      if (getPlaced(state) != getPlaced(operand.get()))
        return emitError(state.getLoc())
               << "state '" << name << "' is " << state.getType()
               << ", but its next value, result #" << number << ", is "
               << operand.get().getType();
      plan.ports[state.getArgNumber()]->state_result = tensor;
      // Not the caller's memory; collectives may have written it.
      if (!inPlace.states.contains(operand.get()))
        plan.tensors[tensor]->storage = fb::Storage::Symmetric;
      continue;
    }
    if (failed(claimName(name, "result", number, main.getLoc())))
      return failure();
    auto port = std::make_unique<fb::PortT>();
    port->name = name;
    port->tensor = tensor;
    port->kind = fb::PortKind::Output;
    if (auto check =
            main.getResultAttrOfType<StringAttr>(number, tv::kCheckAttr)) {
      port->check = check.str();
      port->location = getPlace(operand.get().getLoc());
    }
    plan.tensors[tensor]->name = name;
    warnOfParts(op.getLoc(), "result '" + name + "'", operand.get(),
                main.getResultAttrDict(number));
    plan.ports.push_back(std::move(port));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

std::unique_ptr<fb::ExtentT> Emitter::toExtent(const layout::Extent &extent) {
  auto result = std::make_unique<fb::ExtentT>();
  result->constant = extent.constant;
  for (const auto &[names, coefficient] : extent.terms) {
    auto term = std::make_unique<fb::TermT>();
    term->coefficient = coefficient;
    for (const std::string &name : names)
      term->symbols.push_back(symbols[name]);
    result->terms.push_back(std::move(term));
  }
  return result;
}

FailureOr<int32_t> Emitter::addTensor(Value value, std::string name) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  auto local = type ? dyn_cast_or_null<tv::LocalAttr>(type.getEncoding())
                    : tv::LocalAttr();
  if (!local)
    return emitError(value.getLoc())
           << "a planned value must be a local tensor, but is "
           << value.getType();
  const tv::MeshAttr own = local.getView().getMesh();
  if (!mesh)
    mesh = own;
  if (mesh->axes != own->axes)
    return emitError(value.getLoc())
           << "a program runs on one mesh; this value lies on " << own
           << ", others on " << mesh;
  auto tensor = std::make_unique<fb::TensorT>();
  std::optional<DType> dtype = getDType(type.getElementType());
  if (!dtype)
    return emitError(value.getLoc())
           << "elements of type " << type.getElementType()
           << " cannot be in a module";
  tensor->name = std::move(name);
  tensor->dtype = static_cast<fb::DType>(*dtype);
  for (const layout::Extent &extent : local.getExtents()) {
    for (const auto &term : extent.terms)
      for (const std::string &symbol : term.first)
        if (!symbols.count(symbol))
          return emitError(value.getLoc())
                 << "dynamic size '" << symbol
                 << "' has no maximum; declare it in 'tv.sizes' of '@main'";
    tensor->shape.push_back(toExtent(extent));
  }
  tensor->view = layout::toString(local.getLayoutView(), mesh.getMesh());
  if (own != mesh) {
    if (own->devices.empty())
      llvm::append_range(tensor->devices, llvm::seq(own->numDevices()));
    else
      tensor->devices.assign(own->devices.begin(), own->devices.end());
  }
  ids[value] = plan.tensors.size();
  plan.tensors.push_back(std::move(tensor));
  return ids[value];
}

LogicalResult Emitter::addResult(OpResult result) {
  Operation *op = result.getOwner();
  Value value = plan::getChosen(result);
  if (plan::JoinOp join = plan::getJoin(value); join && !ids.contains(value))
    if (failed(addJoin(join)))
      return failure();
  if (!ids.contains(value)) {
    std::string name = op->getName().stripDialect().str();
    if (auto launch = dyn_cast<plan::LaunchOp>(op))
      name = launch.getKernel().str();
    name += "." + std::to_string(plan.tensors.size());
    FailureOr<int32_t> tensor = addTensor(value, name);
    if (failed(tensor))
      return failure();
    plan.tensors[*tensor]->storage =
        llvm::any_of(value.getUsers(), llvm::IsaPred<func::ReturnOp>)
            ? fb::Storage::External
            : fb::Storage::Local;
  }
  ids[result] = id(value);
  if (Value state = inPlace.states.lookup(result)) {
    fb::TensorT &tensor = *plan.tensors[id(result)];
    tensor.storage = fb::Storage::Alias;
    tensor.alias = std::make_unique<fb::AliasT>();
    tensor.alias->kind = fb::AliasKind::Same;
    tensor.alias->source = id(state);
    return success();
  }
  fb::Storage &storage = plan.tensors[id(value)]->storage;
  bool symmetric = isa<comm::CollectiveOpInterface>(op);
  for (Value each : {value, Value(result)})
    symmetric |= llvm::any_of(each.getUsers(),
                              llvm::IsaPred<comm::CollectiveOpInterface>);
  if (symmetric && storage == fb::Storage::Local)
    storage = fb::Storage::Symmetric;
  return success();
}

/// Its parts are windows on it, and what becomes a part by transposes and
/// reshapes is one of that.
LogicalResult Emitter::addJoin(plan::JoinOp join) {
  if (failed(addResult(cast<OpResult>(join.getResult()))))
    return failure();
  auto addWindow = [&](Value value, Value of) {
    FailureOr<int32_t> id =
        addTensor(value, "part." + std::to_string(plan.tensors.size()));
    fb::TensorT *tensor = succeeded(id) ? plan.tensors[*id].get() : nullptr;
    if (tensor) {
      tensor->storage = fb::Storage::Alias;
      tensor->alias = std::make_unique<fb::AliasT>();
      tensor->alias->source = this->id(of);
    }
    return tensor;
  };
  int64_t offset = 0;
  for (Value value : join.getInputs()) {
    fb::TensorT *part = addWindow(value, join.getResult());
    if (!part)
      return failure();
    part->alias->kind = fb::AliasKind::Slice;
    const layout::Shape sizes = tv::getGlobalShape(value.getType());
    const size_t joined = join.getDim();
    for (size_t dim = 0; dim < sizes.size(); ++dim)
      part->alias->offsets.push_back(
          toExtent(layout::Extent(dim == joined ? offset : 0)));
    offset += sizes[joined];
    while (auto alias = value.getDefiningOp<plan::AliasOp>()) {
      fb::TensorT *before = addWindow(alias.getInput(), value);
      if (!before)
        return failure();
      value = alias.getInput();
      if (alias.getKind() == plan::AliasKind::Reshape) {
        before->alias->kind = fb::AliasKind::Reshape;
        continue;
      }
      before->alias->kind = fb::AliasKind::Transpose;
      before->alias->dims.resize(alias.getAt()->size());
      for (auto [to, from] : llvm::enumerate(*alias.getAt()))
        before->alias->dims[from] = to;
    }
  }
  return success();
}

LogicalResult Emitter::addConstant(plan::ConstantOp op, fb::TensorT &tensor) {
  tensor.storage = fb::Storage::Constant;
  constants.resize((constants.size() + 63) / 64 * 64);
  tensor.constant_offset = constants.size();
  auto value = dyn_cast<DenseElementsAttr>(op.getValue());
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(op.getValue())) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return op.emitError() << "the constant's resource is missing";
    constants.append(blob->getData().data(), blob->getData().size());
    return success();
  }
  if (!value)
    return op.emitError() << "this kind of constant cannot be in a module";
  auto element = value.getElementType();
  size_t bytes = info(static_cast<DType>(tensor.dtype)).bytes;
  // Others are no larger than the text that they are read from.
  constexpr int64_t maxSplatBytes = int64_t(1) << 30;
  if (value.isSplat() &&
      value.getNumElements() > maxSplatBytes / int64_t(bytes))
    return op.emitError() << "a constant of " << value.getNumElements()
                          << " equal elements would take more than "
                          << maxSplatBytes
                          << " bytes of the module; broadcast one element";
  auto append = [&](const APInt &bits) {
    uint64_t word = bits.getZExtValue();
    constants.append(reinterpret_cast<const char *>(&word), bytes);
  };
  if (isa<FloatType>(element))
    for (const APFloat &number : value.getValues<APFloat>())
      append(number.bitcastToAPInt());
  else
    for (const APInt &number : value.getValues<APInt>())
      append(number);
  return success();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

template <typename T>
void Emitter::push(Operation *op, StringRef source, T action) {
  auto step = std::make_unique<fb::StepT>();
  step->op = source.str();
  step->location = getPlace(op->getLoc());
  if (plan::Variant variant = variants.lookup(op)) {
    step->alternative = alternatives.lookup(variant.choice);
    step->variant = variant.number;
  }
  step->action.Set(std::move(action));
  steps[op] = plan.steps.size();
  plan.steps.push_back(std::move(step));
}

FailureOr<std::unique_ptr<fb::ScalarT>> Emitter::toScalar(Operation *op,
                                                          Attribute attribute) {
  auto scalar = std::make_unique<fb::ScalarT>();
  if (auto coord = dyn_cast<plan::CoordAttr>(attribute)) {
    std::optional<int> axis = mesh.getMesh().findAxis(coord.getAxis().str());
    if (!axis)
      return op->emitError()
             << "the mesh has no axis '" << coord.getAxis() << "'";
    scalar->kind = fb::ScalarKind::Coord;
    scalar->axis = *axis;
    return scalar;
  }
  scalar->kind = fb::ScalarKind::Value;
  scalar->extent = toExtent(cast<plan::ExtentAttr>(attribute).getExtent());
  return scalar;
}

LogicalResult Emitter::addStep(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](plan::LaunchOp op) -> LogicalResult {
        fb::LaunchT launch;
        launch.symbol = op.getKernel().str();
        for (Value value : op->getOperands())
          launch.tensors.push_back(id(value));
        for (Value value : op->getResults())
          launch.tensors.push_back(id(value));
        for (Attribute attribute : op.getScalars()) {
          FailureOr<std::unique_ptr<fb::ScalarT>> scalar =
              toScalar(op, attribute);
          if (failed(scalar))
            return failure();
          launch.scalars.push_back(std::move(*scalar));
        }
        push(op, op.getSource(), std::move(launch));
        return success();
      })
      .Case([&](plan::ContractOp op) -> LogicalResult {
        if (Status status = plan::getTarget(op).runs(op); !status)
          return op->emitError() << status.message();
        fb::ContractT contract;
        contract.a = id(op.getA());
        contract.b = id(op.getB());
        contract.c = id(op.getResult());
        contract.a_labels = op.getALabels();
        contract.b_labels = op.getBLabels();
        contract.c_labels = op.getLabels();
        if (op.getBias())
          contract.bias = id(op.getBias());
        if (op.getAddend())
          contract.addend = id(op.getAddend());
        // One numbering in both.
        static_assert(int(fb::Epilogue::GeluTanh) ==
                          int(plan::Epilogue::GeluTanh) &&
                      int(fb::Epilogue::GeluTanhGrad) ==
                          int(plan::Epilogue::GeluTanhGrad));
        static_assert(int(fb::Summed::A) == int(plan::Summed::A) &&
                      int(fb::Summed::B) == int(plan::Summed::B) &&
                      int(fb::Summed::C) == int(plan::Summed::Result));
        if (auto epilogue = op.getEpilogue())
          contract.epilogue = static_cast<fb::Epilogue>(*epilogue);
        if (op.getX())
          contract.x = id(op.getX());
        if (op.getAux())
          contract.aux = id(op.getAux());
        if (auto summed = op.getSummed()) {
          contract.summed = static_cast<fb::Summed>(*summed);
          contract.sums = id(op.getSums());
        }
        push(op, op.getSource(), std::move(contract));
        return success();
      })
      .Case<plan::AttendOp, plan::AttendGradOp>([&](auto op) {
        fb::AttendT attend;
        attend.query = id(op.getQuery());
        attend.key = id(op.getKey());
        attend.value = id(op.getValue());
        if (op.getLse())
          attend.lse = id(op.getLse());
        attend.scale = op.getScale().convertToDouble();
        attend.causal = op.getCausal();
        if constexpr (std::is_same_v<decltype(op), plan::AttendOp>) {
          attend.result = id(op.getResult());
        } else {
          attend.result = id(op.getOutput());
          attend.grad = id(op.getGrad());
          attend.query_grad = id(op.getQueryGrad());
          attend.key_grad = id(op.getKeyGrad());
          attend.value_grad = id(op.getValueGrad());
        }
        push(op, op.getSource(), std::move(attend));
        return success();
      })
      .Case([&](plan::CopyOp op) {
        if (inPlace.states.contains(op.getResult()))
          return success();
        fb::CopyT copy;
        copy.source = id(op.getInput());
        copy.target = id(op.getResult());
        push(op, op.getSource(), std::move(copy));
        return success();
      })
      .Case([](plan::JoinOp) { return success(); })
      .Case([&](plan::AliasOp op) {
        fb::TensorT &tensor = *plan.tensors[id(op.getResult())];
        if (tensor.alias)
          return success(); // a join's
        tensor.storage = fb::Storage::Alias;
        tensor.alias = std::make_unique<fb::AliasT>();
        tensor.alias->source = id(op.getInput());
        switch (op.getKind()) {
        case plan::AliasKind::Reshape:
          tensor.alias->kind = fb::AliasKind::Reshape;
          break;
        case plan::AliasKind::Transpose:
          tensor.alias->kind = fb::AliasKind::Transpose;
          for (int64_t dim : op.getAtAttr().asArrayRef())
            tensor.alias->dims.push_back(dim);
          break;
        case plan::AliasKind::Slice:
          tensor.alias->kind = fb::AliasKind::Slice;
          for (int64_t offset : op.getAtAttr().asArrayRef())
            tensor.alias->offsets.push_back(toExtent(layout::Extent(offset)));
          break;
        case plan::AliasKind::Shard:
          tensor.alias->kind = fb::AliasKind::Shard;
          break;
        }
        return success();
      })
      .Case([&](plan::ConstantOp op) {
        return addConstant(op, *plan.tensors[id(op.getResult())]);
      })
      .Case([&](comm::CollectiveOpInterface op) {
        fb::CollectiveT collective;
        collective.kind = static_cast<fb::CollectiveKind>(op.getKind());
        for (const layout::SubAxis &sub : op.getAxes().getAxes())
          collective.axes.push_back(layout::toString(sub, mesh.getMesh()));
        collective.source = id(op->getOperand(0));
        collective.target = id(op->getResult(0));
        for (Value index : op.getRowIndices())
          collective.indices.push_back(id(index));
        if (collective.indices.empty()) {
          for (unsigned i = 1; i < op->getNumOperands(); ++i)
            collective.more.emplace_back(id(op->getOperand(i)),
                                         id(op->getResult(i)));
          for (unsigned i = 0; i < op->getNumOperands(); ++i)
            if (auto combiner = comm::getCombiner(op, i))
              collective.combiner = static_cast<fb::Combiner>(*combiner);
        }
        if (StringAttr loser = op.getLoserAttr())
          collective.loser = loser.str();
        push(op, op->getName().getStringRef(), std::move(collective));
        return success();
      })
      .Default([](Operation *op) {
        return op->emitError()
               << "'" << op->getName() << "' is no op of a plan";
      });
}

/// The binaries for a GPU, and the functions of each launch.
static void addBinaries(fb::PlanT &plan, const plan::KernelCode &code) {
  for (const plan::KernelCode::Binary &each : code.binaries) {
    auto binary = std::make_unique<fb::BinaryT>();
    binary->name = each.name;
    binary->offset = each.offset;
    binary->size = each.size;
    if (each.ptxSize) {
      binary->ptx_offset = each.ptxOffset;
      binary->ptx_size = each.ptxSize;
    }
    plan.binaries.push_back(std::move(binary));
  }
  for (const auto &step : plan.steps) {
    fb::LaunchT *launch = step->action.AsLaunch();
    if (!launch)
      continue;
    const plan::KernelCode::Kernel &kernel = code.kernels.at(launch->symbol);
    for (const plan::DeviceFunction &from : kernel.functions) {
      auto function = std::make_unique<fb::FunctionT>();
      function->binary = kernel.binary;
      function->symbol = from.symbol;
      function->threads = from.threads;
      function->shared = from.shared;
      function->items = from.items;
      function->cluster = from.cluster;
      function->persistent = from.persistent;
      function->early = from.early;
      for (const plan::DeviceFunction::Boxed &boxed : from.boxed) {
        auto tensor = std::make_unique<fb::BoxedTensorT>();
        tensor->tensor = boxed.argument;
        tensor->box = boxed.box;
        tensor->ragged = boxed.ragged;
        function->boxed.push_back(std::move(tensor));
      }
      for (const plan::SpaceExtent &extent : from.space) {
        auto scalar = std::make_unique<fb::ScalarT>();
        switch (extent.kind) {
        case plan::SpaceExtent::Kind::Constant:
          scalar->kind = fb::ScalarKind::Value;
          scalar->extent = std::make_unique<fb::ExtentT>();
          scalar->extent->constant = extent.constant;
          break;
        case plan::SpaceExtent::Kind::Dimension:
          scalar->kind = fb::ScalarKind::Local;
          scalar->tensor = launch->tensors[extent.argument];
          scalar->dim = extent.dim;
          break;
        case plan::SpaceExtent::Kind::Scalar:
          *scalar = fb::ScalarT(
              *launch->scalars[extent.argument - launch->tensors.size()]);
          break;
        }
        function->space.push_back(std::move(scalar));
      }
      launch->functions.push_back(std::move(function));
    }
  }
}

FailureOr<std::string> tessera::emitModule(ModuleOp program, StringRef report,
                                           plan::KernelCode code) {
  auto main = program.lookupSymbol<func::FuncOp>("main");
  if (!main)
    return program.emitError() << "a program needs a function '@main'";
  Emitter emitter(main);
  if (failed(emitter.run()))
    return failure();
  if (auto of = program->getAttrOfType<tv::MachineAttr>(tv::kMachineAttr)) {
    const layout::Machine &machine = of.getMachine();
    emitter.plan.machine = std::make_unique<fb::Machine>(
        machine.latency, machine.bandwidth, machine.copy, machine.loops);
  }
  ModuleBuilder module;
  if (!code.binaries.empty()) {
    emitter.plan.target = plan::getTarget(program).getName().str();
    addBinaries(emitter.plan, code);
    module.setCode(std::move(code.bytes), /*cpuLevel=*/0);
  } else if (!code.bytes.empty()) {
    module.setCode(std::move(code.bytes));
  }
  module.setPlan(emitter.plan);
  module.setConstants(std::move(emitter.constants));
  module.setReport(report.str());
  std::string bytes = module.build();
  // The runtime's own check; what fails here is a fault of the compiler.
  Result<ModuleReader> reader = ModuleReader::read(bytes);
  if (!reader)
    return program.emitError() << "the module is wrong: " << reader.message();
  return bytes;
}
