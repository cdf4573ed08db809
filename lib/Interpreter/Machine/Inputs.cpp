//===- Inputs.cpp - arguments of an interpreted function -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Machine/Inputs.h"
#include "TensorView/ExtentAnalysis.h"
#include "TensorView/TensorView.h"
#include "Tensors/Safetensors.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

FailureOr<std::map<std::string, int64_t>>
interp::chooseSizes(func::FuncOp function,
                    const std::map<std::string, int64_t> &given) {
  std::map<std::string, int64_t> sizes;
  auto declared = function->getAttrOfType<DictionaryAttr>(tv::kSizesAttr);
  for (NamedAttribute size :
       declared ? declared.getValue() : ArrayRef<NamedAttribute>()) {
    tv::DeclaredSize bounds(size.getValue());
    const int64_t maximum = bounds.maximum, multiple = bounds.multiple;
    std::string name = size.getName().str();
    int64_t value = std::min((6 + multiple - 1) / multiple * multiple,
                             maximum / multiple * multiple);
    if (auto found = given.find(name); found != given.end())
      value = found->second;
    if (value < 0 || value > maximum || value % multiple)
      return mlir::emitError(function.getLoc())
             << "size " << name << " = " << value << " must be a multiple of "
             << multiple << " up to " << maximum;
    sizes[name] = value;
  }
  for (const auto &[name, value] : given)
    if (!sizes.count(name))
      return mlir::emitError(function.getLoc())
             << "declares no size '" << name << "'";
  return sizes;
}

/// The shape of the whole of an argument.
static FailureOr<Shape> shapeOf(func::FuncOp function, unsigned argument,
                                const std::map<std::string, int64_t> &sizes) {
  auto type =
      dyn_cast<RankedTensorType>(function.getArgument(argument).getType());
  if (!type)
    return mlir::emitError(function.getLoc())
           << "the interpreter has no values of type "
           << function.getArgument(argument).getType();
  Shape shape = tv::getGlobalShape(type);
  if (auto local = dyn_cast_or_null<tv::LocalAttr>(type.getEncoding())) {
    for (auto [i, extent] : llvm::zip_equal(shape, local.getExtents()))
      if (std::optional<int64_t> value = extent.evaluate(sizes))
        i = *value;
  } else if (auto dims = function.getArgAttrOfType<ArrayAttr>(argument,
                                                              tv::kDimsAttr)) {
    unsigned next = 0;
    for (int64_t &extent : shape)
      if (extent == layout::kDynamic && next < dims.size())
        if (auto found =
                sizes.find(cast<StringAttr>(dims[next++]).getValue().str());
            found != sizes.end())
          extent = found->second;
  }
  if (llvm::is_contained(shape, layout::kDynamic))
    return mlir::emitError(function.getLoc())
           << "argument #" << argument
           << " has a dynamic extent without a size; name "
              "it in 'tv.dims' and 'tv.sizes'";
  return shape;
}

static uint64_t hash(StringRef text) {
  uint64_t value = 0xcbf29ce484222325; // FNV-1a
  for (unsigned char c : text)
    value = (value ^ c) * 0x100000001b3;
  return value;
}

static LogicalResult readInput(func::FuncOp function, const std::string &name,
                               const TensorFiles &files, NDArray &array) {
  Result<const StoredTensor *> stored = files.find(name);
  if (!stored)
    return mlir::emitError(function.getLoc()) << stored.message();
  std::string typeName;
  llvm::raw_string_ostream(typeName) << array.type;
  for (const DTypeInfo &type : kDTypes)
    if (typeName[0] == 'u' &&
        type.name == typeName.substr(0, 1) + typeName.substr(2))
      typeName = type.name; // MLIR's ui8
  std::optional<DType> to = dtypeFromName(typeName);
  std::optional<DType> from = dtypeFromSafetensors((*stored)->typeName);
  if ((*stored)->shape != array.shape)
    return mlir::emitError(function.getLoc())
           << "tensor '" << name << "' has shape "
           << indexText((*stored)->shape) << " in its file, "
           << indexText(array.shape) << " in the program";
  if (!to || !from)
    return mlir::emitError(function.getLoc())
           << "tensor '" << name << "' has type " << (*stored)->typeName
           << " in its file, " << array.type << " in the program";
  for (size_t i = 0; i < array.data.size(); ++i) {
    // An integer is read exactly, a float as double.
    const std::byte *element = (*stored)->data + i * info(*from).bytes;
    bool fits =
        array.isFloat()
            ? convertElement(element, *from, &array.data[i].real, DType::F64)
            : convertElement(element, *from, &array.data[i].whole, DType::I64);
    if (!fits)
      return mlir::emitError(function.getLoc())
             << "tensor '" << name << "' has elements that " << array.type
             << " cannot hold";
  }
  return success();
}

FailureOr<std::vector<std::shared_ptr<NDArray>>>
interp::makeInputs(func::FuncOp function,
                   const std::map<std::string, int64_t> &sizes, uint64_t seed,
                   const TensorFiles *files) {
  std::vector<std::shared_ptr<NDArray>> inputs;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    FailureOr<Shape> shape = shapeOf(function, i, sizes);
    if (failed(shape))
      return failure();
    auto named = function.getArgAttrOfType<StringAttr>(i, tv::kNameAttr);
    std::string name = named ? named.str() : "arg" + std::to_string(i);
    Type element = cast<RankedTensorType>(function.getArgument(i).getType())
                       .getElementType();
    auto array = std::make_shared<NDArray>(element, *shape);
    double lo = array->isFloat() ? -1 : 0, hi = array->isFloat() ? 1 : 4;
    if (element.isInteger(1))
      hi = 2;
    if (Attribute given = function.getArgAttr(i, tv::kRangeAttr)) {
      auto range = dyn_cast<ArrayAttr>(given);
      if (!range || range.size() != 2 ||
          !llvm::all_of(range, llvm::IsaPred<FloatAttr, IntegerAttr>))
        return mlir::emitError(function.getLoc())
               << "'" << tv::kRangeAttr << "' of argument #" << i
               << " must be [lo, hi]";
      auto bound = [](Attribute value) {
        auto number = dyn_cast<FloatAttr>(value);
        return number ? number.getValueAsDouble()
                      : double(cast<IntegerAttr>(value).getInt());
      };
      lo = bound(range[0]), hi = bound(range[1]);
    }
    if (files) {
      if (failed(readInput(function, name, *files, *array)))
        return failure();
    } else if (!function.getArgAttr(i, tv::kInitAttr)) { // else zeros
      for (auto [at, value] : llvm::enumerate(array->data)) {
        double number = lo + (hi - lo) * randomNumber(seed, hash(name), at, 24);
        value = array->isFloat() ? real(number)
                                 : whole(int64_t(std::floor(number)));
      }
    }
    array->round();
    inputs.push_back(std::move(array));
  }
  return inputs;
}
