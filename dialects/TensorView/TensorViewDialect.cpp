//===- TensorViewDialect.cpp - registration and dialect attributes -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorView/Notes.h"
#include "TensorView/TensorView.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

#include "TensorView/TensorViewDialect.cpp.inc"
#include "TensorView/TensorViewEnums.cpp.inc"
#include "TensorView/TensorViewInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "TensorView/TensorViewAttrs.cpp.inc"

namespace {
/// Prints a mesh once a file, as `#mesh`; if asked, a tensor type with a view
/// too, as `!t8x16xf32`.
struct AsmInterface : public OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attribute, raw_ostream &os) const override {
    if (!isa<MeshAttr>(attribute))
      return AliasResult::NoAlias;
    os << "mesh";
    return AliasResult::FinalAlias;
  }
  AliasResult getAlias(Type type, raw_ostream &os) const override {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.getEncoding() ||
        &tensor.getEncoding().getDialect() != getDialect() ||
        !cast<TensorViewDialect>(getDialect())->aliasesTensorTypes())
      return AliasResult::NoAlias;
    os << "t";
    for (int64_t extent : tensor.getShape())
      (ShapedType::isDynamic(extent) ? os << "n" : os << extent) << "x";
    os << tensor.getElementType();
    return AliasResult::OverridableAlias;
  }
};
} // namespace

void TensorViewDialect::initialize() {
  addInterfaces<AsmInterface>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "TensorView/TensorViewAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "TensorView/TensorViewOps.cpp.inc"
      >();
}

/// Checks `tv.sizes` of a function.
static LogicalResult verifySizes(Operation *op, Attribute attribute) {
  auto sizes = dyn_cast<DictionaryAttr>(attribute);
  if (!sizes)
    return op->emitOpError() << "'tv.sizes' must be a dictionary such as "
                                "{b = 64, s = [256, 8]}";
  for (NamedAttribute size : sizes) {
    SmallVector<Attribute> values;
    if (auto array = dyn_cast<ArrayAttr>(size.getValue()))
      values.append(array.begin(), array.end());
    else
      values.push_back(size.getValue());
    bool positive = llvm::all_of(values, [](Attribute value) {
      auto integer = dyn_cast<IntegerAttr>(value);
      return integer && integer.getInt() > 0;
    });
    if (!positive || values.empty() || values.size() > 2)
      return op->emitOpError()
             << "dynamic size '" << size.getName().getValue()
             << "' must be its maximum, or [maximum, multiple], both positive";
  }
  return success();
}

/// Checks `tv.variants` but for the names, which targets know.
static LogicalResult verifyVariants(Operation *op, Attribute attribute) {
  if (!isa<AttentionOp, AttentionGradOp>(op))
    return op->emitOpError() << "has no variants for 'tv.variants' to choose "
                                "of; tv.attention and tv.attention_grad have";
  auto names = dyn_cast<ArrayAttr>(attribute);
  if (!names || names.empty() ||
      !llvm::all_of(names, llvm::IsaPred<StringAttr>))
    return op->emitOpError() << "'tv.variants' must be names, such as "
                                "[\"flash\", \"math\"], the preferred first";
  return success();
}

LogicalResult
TensorViewDialect::verifyOperationAttribute(Operation *op,
                                            NamedAttribute attribute) {
  if (attribute.getName() == kSizesAttr) {
    if (!isa<FunctionOpInterface>(op))
      return op->emitOpError() << "'tv.sizes' belongs on a function";
    return verifySizes(op, attribute.getValue());
  }
  if (attribute.getName() == kVariantsAttr)
    return verifyVariants(op, attribute.getValue());
  if (attribute.getName() == kStepAttr) {
    auto name = dyn_cast<StringAttr>(attribute.getValue());
    auto kind = name ? symbolizeStepKind(name.getValue()) : std::nullopt;
    const bool fetches = kind == StepKind::Fetch;
    if (!kind || !(fetches ? isa<GatherOp, DispatchOp, CombineOp>(op)
                           : isa<ReshardOp>(op)))
      return op->emitOpError()
             << "'tv.step' is of a tv.reshard, and names the kind of a step, "
                "such as \"all_gather\"; or \"fetch\", of an op that reads "
                "rows by indices";
  }
  if (attribute.getName() == kMachineAttr &&
      !(isa<ModuleOp>(op) && isa<MachineAttr>(attribute.getValue())))
    return op->emitOpError() << "'tv.machine' is a #tv.machine<...> on the "
                                "module";
  if (attribute.getName() == kLocalOpAttr &&
      !isa<UnitAttr>(attribute.getValue()))
    return op->emitOpError() << "'tv.local' has no value";
  // Besides those of programs, what passes note.
  if (!llvm::is_contained({kSizesAttr, kVariantsAttr, kStepAttr, kMachineAttr,
                           kLocalOpAttr, kUserMoveAttr, kUserViewAttr,
                           kMoveAttr, kRemarksAttr},
                          attribute.getName()))
    return op->emitOpError() << "has no meaning for " << attribute.getName()
                             << "; there are tv.sizes, tv.variants, tv.step, "
                                "tv.local, tv.machine and tv.user_view";
  return success();
}

static LogicalResult verifyName(Operation *op, const Twine &what,
                                Attribute attribute) {
  auto name = dyn_cast<StringAttr>(attribute);
  if (!name || name.empty())
    return op->emitOpError()
           << "'tv.name' of " << what << " must be a string that is not empty";
  return success();
}

static bool isState(FunctionOpInterface function, unsigned argIndex) {
  return isStateRole(
      function.getArgAttrOfType<StringAttr>(argIndex, kRoleAttr));
}

/// Ranks see the same errors: each has all of what is checked.
static LogicalResult verifyCheck(FunctionOpInterface function, unsigned index,
                                 Attribute attribute) {
  auto error = [&] {
    return function.emitOpError() << "'tv.check' of result #" << index << " ";
  };
  auto text = dyn_cast<StringAttr>(attribute);
  if (!text || text.empty())
    return error() << "must be a string that is not empty: what it means "
                      "where one is not 0";
  Type type = function.getResultTypes()[index];
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.getElementType().isInteger())
    return error() << "is for a tensor of integers, not " << type;
  const Attribute name = function.getResultAttr(index, kNameAttr);
  for (unsigned i = 0; name && i < function.getNumArguments(); ++i)
    if (isState(function, i) && function.getArgAttr(i, kNameAttr) == name)
      return error() << "is for a result that is no state, and " << name
                     << " is one";
  std::optional<layout::View> view;
  if (ViewAttr attr = getView(type))
    view = attr.getView();
  else if (auto local = dyn_cast_or_null<LocalAttr>(tensor.getEncoding()))
    view = local.getLayoutView();
  if (view && (!view->partial.empty() || !layout::axesOf(*view).empty()))
    return error() << "is for one of which each device has all, not " << type
                   << "; write a view that does not split it";
  return success();
}

LogicalResult TensorViewDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned resultIndex, NamedAttribute attribute) {
  if (attribute.getName() == kNameAttr)
    return verifyName(op, "result #" + Twine(resultIndex),
                      attribute.getValue());
  if (llvm::is_contained({kUserViewAttr, kUserMoveAttr}, attribute.getName()))
    return success();
  if (auto function = dyn_cast<FunctionOpInterface>(op);
      function && attribute.getName() == kCheckAttr)
    return verifyCheck(function, resultIndex, attribute.getValue());
  return op->emitOpError() << "has no meaning for " << attribute.getName()
                           << " on result #" << resultIndex
                           << "; there are tv.name, tv.check and tv.user_view";
}

/// A state's next value is the one result of its name.
static LogicalResult verifyStates(FunctionOpInterface function) {
  llvm::DenseMap<Attribute, int64_t> counts;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (Attribute name = function.getResultAttr(i, kNameAttr))
      ++counts[name];
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (!isState(function, i))
      continue;
    auto name = function.getArgAttrOfType<StringAttr>(i, kNameAttr);
    if (!name)
      return function.emitOpError()
             << "argument #" << i << " is " << function.getArgAttr(i, kRoleAttr)
             << " and needs a 'tv.name', that of the result which replaces it";
    if (int64_t count = counts.lookup(name); count != 1)
      return function.emitOpError()
             << "state " << name << " needs one result with its name, its "
             << "next value, and has " << count;
  }
  return success();
}

LogicalResult
TensorViewDialect::verifyRegionArgAttribute(Operation *op, unsigned regionIndex,
                                            unsigned argIndex,
                                            NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  if (attribute.getName() == kDimsAttr) {
    auto type =
        dyn_cast<RankedTensorType>(function.getArgument(argIndex).getType());
    auto dims = dyn_cast<ArrayAttr>(attribute.getValue());
    if (!type || !dims || !llvm::all_of(dims, llvm::IsaPred<StringAttr>) ||
        dims.size() != size_t(type.getNumDynamicDims()))
      return op->emitOpError()
             << "'tv.dims' of argument #" << argIndex
             << " must name each of its dynamic extents, in order";
    auto sizes = op->getAttrOfType<DictionaryAttr>(kSizesAttr);
    for (StringAttr dim : dims.getAsRange<StringAttr>())
      if (!sizes || !sizes.get(dim))
        return op->emitOpError()
               << "dynamic size '" << dim.getValue() << "' of argument #"
               << argIndex << " has no maximum; declare it in 'tv.sizes'";
  }
  if (attribute.getName() == kRoleAttr) {
    auto role = dyn_cast<StringAttr>(attribute.getValue());
    if (!role || !llvm::is_contained({"input", "weight", "state", "parameter"},
                                     role.getValue()))
      return op->emitOpError()
             << "'tv.role' of argument #" << argIndex
             << " must be \"input\", \"weight\", \"state\" or \"parameter\"";
    // All states at once, where the first is.
    if (isStateRole(role) &&
        llvm::none_of(llvm::seq(argIndex),
                      [&](unsigned i) { return isState(function, i); }))
      return verifyStates(function);
  }
  if (attribute.getName() == kInitAttr &&
      (attribute.getValue() != StringAttr::get(getContext(), "zero") ||
       function.getArgAttr(argIndex, kRoleAttr) !=
           StringAttr::get(getContext(), "state")))
    return op->emitOpError()
           << "'tv.init' of argument #" << argIndex
           << " must be \"zero\", and its 'tv.role' \"state\"";
  if (attribute.getName() == kNameAttr)
    return verifyName(op, "argument #" + Twine(argIndex), attribute.getValue());
  if (!llvm::is_contained({kDimsAttr, kRoleAttr, kInitAttr, kRangeAttr,
                           kUserViewAttr, kUserMoveAttr},
                          attribute.getName()))
    return op->emitOpError()
           << "has no meaning for " << attribute.getName() << " on argument #"
           << argIndex
           << "; there are tv.name, tv.role, tv.init, tv.dims, tv.range and "
              "tv.user_view";
  return success();
}
