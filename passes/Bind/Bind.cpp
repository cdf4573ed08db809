//===- Bind.cpp - the mesh, and one spelling of every view ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps on the module: concats of many operands are divided, values that are
// cheaper to make than to move get one copy a use, the mesh gets the sizes
// asked for, and every tensor type gets its canonical view.
//
//===----------------------------------------------------------------------===//

#include "Bind/CopyPerUse.h"
#include "Bind/Passes.h"
#include "Support/Limits.h"
#include "TensorView/Contract.h"
#include "TensorView/TensorView.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_BINDPASS
#include "Bind/Passes.h.inc"
} // namespace tessera::tv

/// What a sharded program may hold at this point.
static LogicalResult verifyContents(func::FuncOp function) {
  if (function.isExternal())
    return function.emitError()
           << "has no body; a program is compiled as a whole";
  if (!function.getBody().hasOneBlock())
    return function.emitError()
           << "has control flow between blocks; a sharded program is "
              "straight-line in this version";
  if (function.getBody().front().empty() ||
      !isa<func::ReturnOp>(function.getBody().front().back()))
    return function.emitError() << "does not end in 'func.return'";
  for (Operation &op : function.getBody().front()) {
    if (isa<CallOpInterface, GradientOp, LocalRegionOp>(op))
      return op.emitError() << "'" << op.getName() << "' should be gone; "
                            << (isa<GradientOp>(op)      ? "tv-differentiate"
                                : isa<LocalRegionOp>(op) ? "tv-inline-regions"
                                                         : "tv-inline")
                            << " runs before tv-bind";
    bool touchesTensors =
        llvm::any_of(op.getOperandTypes(), llvm::IsaPred<RankedTensorType>) ||
        llvm::any_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>);
    if (isa_and_present<TensorViewDialect>(op.getDialect()) ||
        isa<func::ReturnOp>(op))
      continue;
    if (touchesTensors || op.getNumRegions())
      return op.emitError() << "'" << op.getName()
                            << "' on the tensors of a sharded program; only tv "
                               "and func ops may touch them in this version";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Many operands
//===----------------------------------------------------------------------===//

/// A kernel asks, for each element, which operand has it.
static constexpr size_t kMaxConcat = 32;

/// A concat of many operands becomes one of concats.
static void splitConcats(func::FuncOp function) {
  for (auto op : llvm::to_vector(function.getBody().front().getOps<ConcatOp>()))
    while (op.getInputs().size() > kMaxConcat) {
      OpBuilder builder(op);
      SmallVector<Value> parts, inputs(op.getInputs());
      for (ArrayRef<Value> left = inputs; !left.empty();) {
        ArrayRef<Value> some = left.take_front(kMaxConcat);
        left = left.drop_front(some.size());
        auto first = cast<RankedTensorType>(some.front().getType());
        SmallVector<int64_t> shape(first.getShape());
        int64_t &extent = shape[op.getDim()];
        for (Value each : some.drop_front()) {
          int64_t more =
              cast<RankedTensorType>(each.getType()).getDimSize(op.getDim());
          bool isKnown =
              !ShapedType::isDynamic(extent) && !ShapedType::isDynamic(more);
          extent = isKnown ? extent + more : ShapedType::kDynamic;
        }
        auto type = RankedTensorType::get(shape, first.getElementType());
        parts.push_back(some.size() == 1
                            ? some.front()
                            : ConcatOp::create(builder, op.getLoc(), type, some,
                                               op.getDimAttr())
                                  .getResult());
      }
      op->setOperands(parts);
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
  /// `view` on the bound mesh, as the user wrote it, but in the axes of the
  /// program's first mesh.
  FailureOr<ViewAttr> resize(ViewAttr view,
                             function_ref<InFlightDiagnostic()> emitError);
  /// The same of an argument or result, which lie on the devices that their
  /// own mesh lists.
  FailureOr<ViewAttr> declare(ViewAttr view,
                              function_ref<InFlightDiagnostic()> emitError);
  /// Whether what has this view, if any, lies on other devices than values do
  /// where it is an argument or result.
  bool isElsewhere(ViewAttr view) const;
  /// `type` with its view canonical.
  FailureOr<Type> bind(Type type, function_ref<InFlightDiagnostic()> emitError);

  /// Before others: the mesh for the views of `function`.
  LogicalResult chooseMesh(func::FuncOp function);

private:
  const llvm::StringMap<int64_t> &sizes;
  MeshAttr first; ///< that all views lie on
  llvm::DenseMap<ViewAttr, ViewAttr> resized;
  llvm::DenseMap<Type, Type> bound;
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

/// A mesh on which the axes of all are digits, where they are cut at places
/// that do not divide each other, as <a = 2, b = 3> and <c = 3, d = 2>: its
/// axes lie between the places at which all are cut. `parts` are those of axes
/// that views of each are cut at. Nothing where the axes of one will do, or
/// there is no such mesh.
static std::optional<layout::Mesh>
joinMeshes(ArrayRef<layout::Mesh> meshes,
           ArrayRef<std::vector<layout::SubAxis>> parts) {
  layout::Mesh flat;
  flat.axes.push_back({"ranks", meshes[0].numDevices()});
  if (llvm::all_of(meshes, [&](const layout::Mesh &mesh) {
        return mesh.devices == meshes[0].devices;
      }))
    flat.devices = meshes[0].devices;
  struct Digit {
    StringRef name;
    int64_t pre, size;
  };
  SmallVector<SmallVector<Digit>> digits;
  std::set<int64_t> all = {1, flat.numDevices()}, common;
  for (auto [mesh, used] : llvm::zip_equal(meshes, parts)) {
    std::set<int64_t> own = {1, flat.numDevices()};
    SmallVector<Digit> &of = digits.emplace_back();
    for (auto [i, axis] : llvm::enumerate(mesh.axes)) {
      if (axis.size == 1)
        continue;
      auto digit = layout::sameDigit({int(i), 1, axis.size}, mesh, flat);
      if (!digit || digit->size() != 1)
        return std::nullopt;
      const int64_t pre = digit->front().pre;
      of.push_back({axis.name, pre, axis.size});
      own.insert(pre);
    }
    all.insert(own.begin(), own.end());
    for (const layout::SubAxis &part : used)
      if (auto digits = layout::sameDigit(part, mesh, flat))
        for (const layout::SubAxis &digit : *digits)
          all.insert({digit.pre, digit.pre * digit.size});
    if (digits.size() == 1)
      common = own;
    std::erase_if(common, [&](int64_t cut) { return !own.count(cut); });
  }
  bool divide = true;
  for (auto cut = all.begin(); std::next(cut) != all.end(); ++cut)
    divide &= *std::next(cut) % *cut == 0;
  if (divide)
    return std::nullopt;
  layout::Mesh joined;
  joined.devices = flat.devices;
  for (auto cut = common.begin(); std::next(cut) != common.end(); ++cut) {
    const int64_t end = *std::next(cut);
    std::string name;
    for (ArrayRef<Digit> of : digits)
      for (const Digit &digit : of)
        if (name.empty() && digit.pre == *cut && digit.size == end / *cut)
          name = digit.name;
    if (name.empty()) {
      for (const Digit &digit : digits[0])
        if (digit.pre >= *cut && digit.pre < end)
          name += (name.empty() ? "" : "_") + digit.name.str();
      while (llvm::any_of(joined.axes, [&](const layout::Axis &axis) {
        return axis.name == name;
      }))
        name += "_";
    }
    joined.axes.push_back({name, end / *cut});
  }
  return joined;
}

/// Whether all axes of a mesh are digits of its ranks.
static bool countsRanks(const layout::Mesh &mesh) {
  layout::Mesh flat;
  flat.axes.push_back({"ranks", mesh.numDevices()});
  return mesh.devices.empty() ||
         layout::sameDigit({0, 1, mesh.numDevices()}, flat, mesh);
}

/// Whether `mesh` lists its devices in an order in which the axes of `first`
/// are no digits. Values with views on it lie on the devices of `first`.
static bool listsOthers(const layout::Mesh &mesh, const layout::Mesh &first) {
  return mesh.devices != first.devices &&
         !(countsRanks(mesh) && countsRanks(first));
}

bool Binder::isElsewhere(ViewAttr view) const {
  return view && first && listsOthers(view.getLayoutMesh(), first.getMesh());
}

/// Of meshes of which some list others' devices, the number of the one on whose
/// devices most bytes of arguments and results lie that are not the same on
/// all; the first of equals.
static size_t findMost(func::FuncOp function, ArrayRef<layout::Mesh> meshes) {
  SmallVector<int64_t> bytes(meshes.size());
  auto add = [&](Type type, Attribute user) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    ViewAttr view = getView(type);
    if (!view)
      view = dyn_cast_or_null<ViewAttr>(user);
    if (!tensor || !view || layout::axesOf(view.getView()).empty())
      return;
    int64_t size = tensor.getElementTypeBitWidth();
    for (int64_t extent : tensor.getShape())
      size *= ShapedType::isDynamic(extent) ? 1 : extent;
    for (auto [mesh, sum] : llvm::zip_equal(meshes, bytes))
      if (!listsOthers(view.getLayoutMesh(), mesh))
        sum += size;
  };
  for (BlockArgument argument : function.getArguments())
    add(argument.getType(),
        function.getArgAttr(argument.getArgNumber(), kUserViewAttr));
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    add(type, function.getResultAttr(i, kUserViewAttr));
  return llvm::max_element(bytes) - bytes.begin();
}

LogicalResult Binder::chooseMesh(func::FuncOp function) {
  llvm::SetVector<ViewAttr> found;
  AttrTypeWalker walker;
  walker.addWalk([&](ViewAttr view) { found.insert(view); });
  for (Type type : function.getArgumentTypes())
    walker.walk(type);
  function.walk([&](Operation *op) {
    walker.walk(op->getAttrDictionary());
    for (Type type : op->getResultTypes())
      walker.walk(type);
  });
  SmallVector<layout::Mesh> meshes;
  SmallVector<std::vector<layout::SubAxis>> parts;
  for (ViewAttr view : found) {
    FailureOr<MeshAttr> own =
        bind(view.getMesh(), [&] { return function.emitError(); });
    if (failed(own))
      return failure();
    const layout::Mesh &mesh = own->getMesh();
    // (One of another number of devices is an error where its view is.)
    if (!meshes.empty() && mesh.numDevices() != meshes[0].numDevices())
      continue;
    const size_t number = llvm::find(meshes, mesh) - meshes.begin();
    if (number == meshes.size()) {
      meshes.push_back(mesh);
      parts.emplace_back();
    }
    auto add = [&](const layout::SubAxis &sub) {
      if (!sub.isWhole(view.getLayoutMesh()) &&
          mesh.axes[sub.axis].size % (sub.pre * sub.size) == 0)
        parts[number].push_back(sub);
    };
    for (const layout::Dim &dim : view.getView().dims)
      llvm::for_each(layout::axesOf(dim.product), add);
    for (const layout::Partial &partial : view.getView().partial)
      llvm::for_each(partial.axes, add);
  }
  if (meshes.size() < 2)
    return success();
  first =
      MeshAttr::get(function.getContext(), meshes[findMost(function, meshes)]);
  for (layout::Mesh &mesh : meshes)
    if (listsOthers(mesh, first.getMesh()))
      mesh.devices = first->devices;
  if (std::optional<layout::Mesh> joined = joinMeshes(meshes, parts))
    first = MeshAttr::get(function.getContext(), *joined);
  return success();
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
  if (auto known = resized.find(attr); known != resized.end())
    return known->second;
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
  if (!first)
    first = *mesh;
  if (int64_t count = (*mesh)->numDevices(), all = first->numDevices();
      count != all)
    return emitError() << "has a view on mesh " << *mesh << ", of " << count
                       << " devices, but others are on " << first << ", of "
                       << all
                       << "; meshes of one program name the same devices, and "
                          "'mesh' sets the axes of each";
  if (*mesh != first) {
    layout::Mesh own = mesh->getMesh();
    if (isElsewhere(attr))
      own.devices = first->devices;
    Result<layout::View> moved = layout::onMesh(view, own, first.getMesh());
    if (!moved)
      return emitError() << moved.message();
    view = *moved;
  }
  return resized[attr] = ViewAttr::get(attr.getContext(), first, view);
}

FailureOr<ViewAttr>
Binder::declare(ViewAttr attr, function_ref<InFlightDiagnostic()> emitError) {
  FailureOr<ViewAttr> own = resize(attr, emitError);
  if (failed(own) || !isElsewhere(attr))
    return own;
  layout::Mesh mesh = first.getMesh();
  mesh.devices = attr.getLayoutMesh().devices;
  return ViewAttr::get(attr.getContext(),
                       MeshAttr::get(attr.getContext(), mesh), own->getView());
}

FailureOr<Type> Binder::bind(Type type,
                             function_ref<InFlightDiagnostic()> emitError) {
  if (auto tensor = dyn_cast<RankedTensorType>(type);
      tensor && tensor.getRank() > int64_t(kMaxRank))
    return emitError() << "a tensor may have " << kMaxRank
                       << " dimensions, not " << tensor.getRank();
  ViewAttr view = getView(type);
  if (!view)
    return type;
  if (auto known = bound.find(type); known != bound.end())
    return known->second;
  FailureOr<ViewAttr> own = resize(view, emitError);
  if (failed(own))
    return failure();
  auto tensor = cast<RankedTensorType>(type);
  layout::Shape shape(tensor.getShape());
  if (failed(own->verifyEncoding(shape, tensor.getElementType(), emitError)))
    return failure();
  return bound[type] = withEncoding(
             tensor, own->with(layout::canonicalize(own->getView(), shape,
                                                    own->getLayoutMesh())));
}

/// The axes of a mesh that its joined name `name` stands for, as a=2,b=3;
/// nothing if it is none.
static std::string partsOf(StringRef name, const layout::Mesh &mesh) {
  std::string parts;
  name = name.rtrim('_');
  for (const layout::Axis &axis : mesh.axes) {
    StringRef rest = name;
    if (!rest.consume_front(axis.name) ||
        !(rest.empty() || rest.consume_front("_")))
      continue;
    name = rest;
    parts += (parts.empty() ? "" : ",") + axis.name + "=" +
             std::to_string(axis.size);
  }
  return name.empty() ? parts : "";
}

LogicalResult BindPass::readSizes(llvm::StringMap<int64_t> &sizes) {
  // A flag has no place in the program.
  Location nowhere = UnknownLoc::get(&getContext());
  for (const std::string &entry : mesh) {
    auto [name, value] = StringRef(entry).split('=');
    int64_t size;
    if (name.empty() || value.getAsInteger(10, size) || size < 1)
      return emitError(nowhere)
             << "--mesh " << entry << ": must be axis=size, as tp=4";
    if (!sizes.try_emplace(name, size).second)
      return emitError(nowhere) << "--mesh " << entry << ": '" << name
                                << "' has a size already; name each axis once";
  }
  llvm::SetVector<StringRef> axes;
  llvm::SetVector<MeshAttr> meshes;
  AttrTypeWalker walker;
  walker.addWalk([&](MeshAttr mesh) {
    meshes.insert(mesh);
    for (const layout::Axis &axis : mesh.getMesh().axes)
      axes.insert(axis.name);
  });
  getOperation().walk([&](Operation *op) {
    walker.walk(op->getAttrDictionary());
    for (Type type : op->getResultTypes())
      walker.walk(type);
  });
  for (const auto &[name, size] : sizes) {
    if (axes.contains(name))
      continue;
    InFlightDiagnostic error =
        emitError(nowhere) << "--mesh " << name << "=" << size
                           << ": no view of the program has this axis; they "
                              "have "
                           << (axes.empty() ? "none" : llvm::join(axes, ", "));
    for (MeshAttr mesh : meshes)
      if (std::string parts = partsOf(name, mesh.getMesh()); !parts.empty())
        return error << ". tv-bind makes it of the axes " << parts
                     << ": write these, with their sizes";
    return error;
  }
  return success();
}

/// A view that an argument or result of the source has as an attribute: its
/// type, or a constraint before the end. So uses need not name it.
static LogicalResult takeViews(func::FuncOp function) {
  Operation *end = function.getBody().front().getTerminator();
  auto read = [&](Attribute attribute, Type type, const Twine &what,
                  ViewAttr &view) -> LogicalResult {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!attribute || (tensor && tensor.getEncoding()))
      return success();
    view = dyn_cast<ViewAttr>(attribute);
    if (!view || !tensor)
      return function.emitError() << "'" << kUserViewAttr << "' of " << what
                                  << " must be a #tv.view of a tensor";
    return success();
  };
  for (BlockArgument argument : function.getArguments()) {
    unsigned i = argument.getArgNumber();
    ViewAttr view;
    if (failed(read(function.getArgAttr(i, kUserViewAttr), argument.getType(),
                    "argument #" + Twine(i), view)))
      return failure();
    if (view)
      argument.setType(withEncoding(argument.getType(), view));
  }
  SmallVector<Type> types(function.getResultTypes());
  for (OpOperand &operand : end->getOpOperands()) {
    unsigned i = operand.getOperandNumber();
    Type type = types[i];
    ViewAttr view;
    if (failed(read(function.getResultAttr(i, kUserViewAttr), type,
                    "result #" + Twine(i), view)))
      return failure();
    if (!view)
      continue;
    // (A type without a view says that what is partial becomes whole.)
    if (!view.getView().partial.empty())
      types[i] = type = withEncoding(type, view);
    OpBuilder builder(end);
    operand.set(
        ConstrainOp::create(builder, end->getLoc(), type, operand.get(), view));
    function.removeResultAttr(
        i, StringAttr::get(function.getContext(), kUserViewAttr));
  }
  function.setFunctionType(FunctionType::get(
      function.getContext(), function.getArgumentTypes(), types));
  return success();
}

/// A state and its next value are one tensor at two times; if only the value
/// has a view, it is the state's.
static LogicalResult tieStates(func::FuncOp function) {
  const SmallVector<BlockArgument> states = getStates(function);
  for (auto [i, type] :
       llvm::enumerate(function.getFunctionType().getResults())) {
    BlockArgument state = states[i];
    if (!state)
      continue;
    auto old = dyn_cast<RankedTensorType>(state.getType());
    auto next = dyn_cast<RankedTensorType>(type);
    if (!old || !next || old.dropEncoding() != next.dropEncoding())
      return emitError(state.getLoc())
             << "state " << function.getResultAttr(i, kNameAttr) << " is "
             << state.getType() << ", but its next value, result #" << i
             << ", is " << type << "; write one type for both";
    if (!old.getEncoding())
      state.setType(next);
  }
  return success();
}

/// Of the results of a `tv.same_view` those that have a view have one.
static LogicalResult verifyAlike(ResultRange results) {
  ViewAttr view;
  for (OpResult result : results) {
    ViewAttr own = getView(result);
    if (view && own && own != view)
      return result.getOwner()->emitOpError()
             << "results lie alike, but their types have views " << view
             << " and " << own;
    if (own)
      view = own;
  }
  return success();
}

/// Of each result the view that says on which devices it lies, where its type
/// has one or these are not those of values: of a constraint before the end, of
/// its state, or of the argument that it is. What crosses to or from other
/// devices by a reshard of the source is told from what does not.
static SmallVector<ViewAttr> noteDevices(func::FuncOp function,
                                         const Binder &binder) {
  auto isReshard = [](Operation *op) { return isa_and_present<ReshardOp>(op); };
  auto isHere = [&](Value value) {
    return !binder.isElsewhere(getView(value));
  };
  const auto written = UnitAttr::get(function.getContext());
  for (BlockArgument argument : function.getArguments())
    if (!isHere(argument) && !argument.use_empty() &&
        llvm::all_of(argument.getUsers(), [&](Operation *op) {
          return isReshard(op) && llvm::all_of(op->getResults(), isHere);
        }))
      function.setArgAttr(argument.getArgNumber(), kUserMoveAttr, written);
  const SmallVector<BlockArgument> states = getStates(function);
  SmallVector<ViewAttr> leaving;
  for (OpOperand &operand :
       function.getBody().front().getTerminator()->getOpOperands()) {
    const unsigned number = operand.getOperandNumber();
    Value value = operand.get();
    auto constrain = value.getDefiningOp<ConstrainOp>();
    ViewAttr view = getView(function.getResultTypes()[number]);
    if (!view) {
      if (BlockArgument state = states[number])
        view = getView(state);
      else if (isa<BlockArgument>(value))
        view = getView(value);
      else if (constrain)
        view = constrain.getView();
      if (!binder.isElsewhere(view))
        view = {};
    }
    leaving.push_back(view);
    Operation *op = (constrain ? constrain.getInput() : value).getDefiningOp();
    if (binder.isElsewhere(view) && isReshard(op) &&
        llvm::all_of(op->getOperands(), isHere))
      function.setResultAttr(number, kUserMoveAttr, written);
  }
  return leaving;
}

LogicalResult BindPass::bindFunction(func::FuncOp function, Binder &binder) {
  if (failed(takeViews(function)) || failed(tieStates(function)))
    return failure();
  auto userViewName = StringAttr::get(&getContext(), kUserViewAttr);
  auto emitAt = [](Location loc, Twine what) {
    std::string text = what.str();
    return [loc, text] { return emitError(loc) << text << ": "; };
  };

  FunctionType type = function.getFunctionType();
  const SmallVector<ViewAttr> leaving = noteDevices(function, binder);
  SmallVector<Type> inputs, results;
  // Set at once: the attributes of all arguments are one array.
  SmallVector<DictionaryAttr> inputAttrs, resultAttrs;
  auto withUserView = [&](DictionaryAttr attributes, ViewAttr view) {
    NamedAttrList list(attributes);
    list.set(userViewName, view);
    return list.getDictionary(&getContext());
  };
  for (auto [index, argument] : llvm::enumerate(function.getArguments())) {
    auto emitError = emitAt(argument.getLoc(), "argument #" + Twine(index));
    FailureOr<Type> bound = binder.bind(argument.getType(), emitError);
    if (failed(bound))
      return failure();
    inputAttrs.push_back(function.getArgAttrDict(index));
    if (ViewAttr view = getView(argument))
      inputAttrs.back() =
          withUserView(inputAttrs.back(), *binder.declare(view, emitError));
    argument.setType(*bound);
    inputs.push_back(*bound);
  }
  const SmallVector<BlockArgument> states = getStates(function);
  for (auto [index, result] : llvm::enumerate(type.getResults())) {
    auto emitError = emitAt(function.getLoc(), "result #" + Twine(index));
    // Arguments may have got a view that the source does not name here.
    Value value = function.getBody().front().getTerminator()->getOperand(index);
    bool isBound = !getView(result) && isa<BlockArgument>(value);
    FailureOr<Type> bound =
        binder.bind(isBound ? value.getType() : result, emitError);
    if (failed(bound))
      return failure();
    BlockArgument state = states[index];
    if (state && getView(result) && state.getType() != *bound)
      return mlir::emitError(state.getLoc())
             << "state " << function.getResultAttr(index, kNameAttr)
             << " lies as " << getView(state.getType()) << ", but its next "
             << "value, result #" << index << ", as " << getView(*bound)
             << "; write one view, and the other follows";
    resultAttrs.push_back(function.getResultAttrDict(index));
    if (ViewAttr view = leaving[index])
      resultAttrs.back() =
          withUserView(resultAttrs.back(), *binder.declare(view, emitError));
    // (Without attributes there is no dictionary.)
    auto lies = [&](DictionaryAttr attributes) {
      auto view =
          attributes ? attributes.getAs<ViewAttr>(userViewName) : ViewAttr();
      return view ? view.getMesh() : MeshAttr();
    };
    MeshAttr now = state ? lies(inputAttrs[state.getArgNumber()]) : MeshAttr();
    if (MeshAttr next = lies(resultAttrs.back()); now && next && now != next)
      return mlir::emitError(state.getLoc())
             << "state " << function.getResultAttr(index, kNameAttr)
             << " lies on " << now << ", but its next value, result #" << index
             << ", on " << next << "; write one mesh for both";
    results.push_back(*bound);
  }
  function.setFunctionType(FunctionType::get(&getContext(), inputs, results));
  function.setAllArgAttrs(inputAttrs);
  function.setAllResultAttrs(resultAttrs);

  for (Operation &op : function.getBody().front()) {
    SmallVector<Attribute> userViews;
    bool any = false;
    for (OpResult result : op.getResults()) {
      auto emitError =
          emitAt(op.getLoc(), "result #" + Twine(result.getResultNumber()));
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
    op.removeAttr(userViewName);
    if (any)
      op.setAttr(userViewName, ArrayAttr::get(&getContext(), userViews));
    if (isa<SameViewOp>(op) && failed(verifyAlike(op.getResults())))
      return failure();
    if (isa<ReshardOp>(op))
      op.setAttr(kUserMoveAttr, UnitAttr::get(&getContext()));
    // A step begins where the text says.
    OpBuilder builder(&op);
    if (op.hasAttr(kStepAttr))
      for (OpOperand &operand : op.getOpOperands())
        if (ViewAttr view = getView(operand.get()))
          operand.set(ConstrainOp::create(builder, op.getLoc(),
                                          operand.get().getType(),
                                          operand.get(), view));
    if (auto constrain = dyn_cast<ConstrainOp>(op)) {
      auto emitError = emitAt(op.getLoc(), "constraint");
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
  llvm::StringMap<int64_t> sizes;
  if (failed(readSizes(sizes)))
    return signalPassFailure();

  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    Binder binder(sizes);
    if (failed(verifyContents(function)))
      return signalPassFailure();
    splitConcats(function);
    if (failed(binder.chooseMesh(function)) || failed(copyPerUse(function)) ||
        failed(bindFunction(function, binder)))
      return signalPassFailure();
  }
}
