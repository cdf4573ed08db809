//===- TensorViewVerify.cpp - checks that verifiers share ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `verifyExtents` reads the op's sharding rule: dimensions with the same
// factors have the same extent. Extents are those of the whole tensors, which
// local types carry too, so one check serves all phases; an extent that is not
// static agrees with any.
//
//===----------------------------------------------------------------------===//

#include "TensorView/TensorViewVerify.h"

#include "TensorView/ExtentAnalysis.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using namespace tessera::tv::checks;

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

static bool isStored(Type type) {
  return isa<Float64Type, Float32Type, BFloat16Type, Float16Type,
             Float8E4M3FNType, Float8E5M2Type>(type) ||
         type.isSignlessInteger(64) || type.isSignlessInteger(32) ||
         type.isSignlessInteger(8) || type.isSignlessInteger(1) ||
         type.isUnsignedInteger(32) || type.isUnsignedInteger(8);
}
static bool isFloat(Type type) {
  return isa<Float64Type, Float32Type, BFloat16Type, Float16Type>(type);
}
/// All but f8 and i1, which are for storage and masks.
static bool isNumber(Type type) {
  return isFloat(type) || (isa<IntegerType>(type) && !type.isInteger(1));
}
static bool isIndex(Type type) {
  return type.isSignlessInteger(32) || type.isSignlessInteger(64);
}
static bool isCount(Type type) {
  return isIndex(type) || type.isF32() || type.isF64();
}
static bool isCondition(Type type) { return type.isSignlessInteger(1); }

int64_t checks::rankOf(Value value) {
  auto tensor = cast<RankedTensorType>(value.getType());
  if (auto local = dyn_cast_or_null<LocalAttr>(tensor.getEncoding()))
    return local.getExtents().size();
  return tensor.getRank();
}

std::string Place::name() const {
  if (role == Captured)
    return "a captured tensor";
  return (role == Operand ? "operand #" : "result #") + std::to_string(number);
}

SmallVector<Place> checks::placesOf(Operation *op) {
  SmallVector<Place> places;
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    places.push_back({operand, Place::Operand, i});
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    places.push_back({result, Place::Result, i});
  return places;
}

//===----------------------------------------------------------------------===//
// Checks that all ops share
//===----------------------------------------------------------------------===//

MeshAttr checks::meshOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return {};
  if (auto local = dyn_cast_or_null<LocalAttr>(tensor.getEncoding()))
    return local.getView().getMesh();
  ViewAttr view = getView(tensor);
  return view ? view.getMesh() : MeshAttr();
}

LogicalResult checks::verifyTensors(Operation *op) {
  const Place *withMesh = nullptr;
  bool local = false, other = false;
  SmallVector<Place> places = placesOf(op);
  for (Region &region : op->getRegions())
    region.walk([&](LoadOp load) {
      places.push_back({load.getTensor(), Place::Captured, 0});
    });
  for (const Place &place : places) {
    auto type = cast<RankedTensorType>(place.value.getType());
    if (!isStored(type.getElementType()))
      return op->emitOpError()
             << place.name() << " has element type " << type.getElementType()
             << "; it must be one of f64, f32, bf16, f16, f8E4M3FN, f8E5M2, "
                "i64, i32, ui32, i8, ui8, i1";
    // Leaves room for sums and products of a few extents.
    int64_t elements = 1;
    for (int64_t extent : shapeOf(place.value))
      if (!isDynamic(extent) &&
          (llvm::MulOverflow(elements, std::max<int64_t>(extent, 1),
                             elements) ||
           elements > kMaxElements))
        return op->emitOpError() << place.name() << " has more than 2^"
                                 << llvm::Log2_64(kMaxElements) << " elements";
    Attribute encoding = type.getEncoding();
    if (encoding && !isa<ViewAttr, LocalAttr>(encoding))
      return op->emitOpError()
             << place.name() << " has an encoding that is neither #tv.view nor "
             << "#tv.local";
    (isa_and_nonnull<LocalAttr>(encoding) ? local : other) = true;
    MeshAttr mesh = meshOf(type);
    if (!mesh)
      continue;
    if (withMesh &&
        meshOf(withMesh->value.getType())->numDevices() != mesh->numDevices())
      return op->emitOpError()
             << place.name() << " lies on mesh " << mesh << ", but "
             << withMesh->name() << " on " << meshOf(withMesh->value.getType())
             << "; all tensors of one op must lie on the same devices";
    if (!withMesh)
      withMesh = &place;
  }
  if (local && other)
    return op->emitOpError() << "mixes #tv.local tensors with global ones";
  return success();
}

namespace {
/// The dimension `dim` of a tensor, of this extent.
struct SeenExtent {
  Place place;
  size_t dim;
  int64_t extent;
};
} // namespace

/// An error if `extent` is not that of `seen`, with which it must agree.
static LogicalResult verifySame(Operation *op, const SeenExtent &extent,
                                const SeenExtent &seen) {
  if (extent.extent == seen.extent)
    return success();
  return op->emitOpError() << extent.place.name() << "'s dimension "
                           << extent.dim << " has extent " << extent.extent
                           << "; it must be " << seen.extent << ", as "
                           << seen.place.name() << "'s dimension " << seen.dim
                           << " has";
}

LogicalResult checks::verifyExtents(Operation *op) {
  const layout::Rule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  SmallVector<std::pair<const layout::DimFactors *, SeenExtent>, 16> seen;
  for (const Place &place : placesOf(op)) {
    const auto &dims = place.role == Place::Operand
                           ? rule.operands[place.number]
                           : rule.results[place.number];
    layout::Shape shape = shapeOf(place.value);
    for (auto [d, factors] : llvm::enumerate(dims)) {
      bool shifted = llvm::any_of(factors, [&](int f) {
        return rule.factors[f].kind == layout::IterationFactor::Kind::Shifted;
      });
      if (factors.empty() || shifted || isDynamic(shape[d]))
        continue;
      const SeenExtent extent{place, d, shape[d]};
      auto same = llvm::find_if(seen, [&factors = factors](const auto &other) {
        return *other.first == factors;
      });
      if (same == seen.end())
        seen.emplace_back(&factors, extent);
      else if (failed(verifySame(op, extent, same->second)))
        return failure();
    }
  }
  return success();
}

LogicalResult checks::verifySameExtents(Operation *op, ArrayRef<Place> places) {
  SmallVector<std::optional<SeenExtent>> seen(rankOf(places[0].value));
  for (const Place &place : places)
    for (auto [d, extent] : llvm::enumerate(shapeOf(place.value))) {
      if (isDynamic(extent))
        continue;
      const SeenExtent own{place, d, extent};
      if (!seen[d])
        seen[d] = own;
      else if (failed(verifySame(op, own, *seen[d])))
        return failure();
    }
  return success();
}

LogicalResult checks::verifyRank(Operation *op, Value value, StringRef name,
                                 int64_t rank) {
  if (rankOf(value) == rank)
    return success();
  return op->emitOpError() << name << " has rank " << rankOf(value)
                           << "; it must be " << rank;
}

LogicalResult checks::verifyRankAtLeast(Operation *op, Value value,
                                        StringRef name, int64_t rank) {
  if (rankOf(value) >= rank)
    return success();
  return op->emitOpError() << name << " has rank " << rankOf(value)
                           << "; it must be at least " << rank;
}

LogicalResult checks::verifyDim(Operation *op, int64_t dim, Value value) {
  if (dim >= 0 && dim < rankOf(value))
    return success();
  return op->emitOpError() << "dim " << dim << " is not in [0, "
                           << rankOf(value) << "): dimensions count from 0";
}

const Elements checks::kFloats = {isFloat, "f64, f32, bf16 or f16"};
const Elements checks::kNumbers = {isNumber, "a number, not f8 or i1"};
const Elements checks::kIndices = {isIndex, "i32 or i64"};
const Elements checks::kCounts = {isCount, "i32, i64, f32 or f64"};
const Elements checks::kConditions = {isCondition, "i1"};
const Elements checks::kStored = {isStored, "stored"}; // as verifyTensors says

LogicalResult checks::verifyElement(Operation *op, Value value, StringRef name,
                                    const Elements &elements) {
  if (elements.contains(elementOf(value)))
    return success();
  return op->emitOpError() << name << " has element type " << elementOf(value)
                           << "; it must be " << elements.name;
}

LogicalResult checks::verifySameElement(Operation *op, ValueRange values) {
  for (Value value : values)
    if (elementOf(value) != elementOf(values[0]))
      return op->emitOpError()
             << "element type " << elementOf(value) << " must be "
             << elementOf(values[0]) << ", as the others";
  return success();
}

LogicalResult checks::verifyPointwise(Operation *op, const Elements &elements,
                                      ValueRange alike) {
  SmallVector<Place> all = placesOf(op);
  SmallVector<Value> same(alike);
  if (same.empty())
    for (const Place &place : all)
      same.push_back(place.value);
  if (failed(verifyTensors(op)) || failed(verifySameElement(op, same)))
    return failure();
  if (!elements.contains(elementOf(same[0]))) {
    const Place *first = llvm::find_if(
        all, [&](const Place &place) { return place.value == same[0]; });
    return verifyElement(op, same[0], first->name(), elements);
  }
  const int64_t rank = rankOf(all[0].value);
  for (const Place &place : all)
    if (rankOf(place.value) != rank)
      return op->emitOpError()
             << place.name() << " has rank " << rankOf(place.value)
             << "; it must be " << rank << ", as " << all[0].name()
             << " has: tv.broadcast adds dimensions";
  return verifySameExtents(op, all);
}

LogicalResult checks::verifyStep(Operation *op, Value step) {
  if (step && (rankOf(step) != 0 || !elementOf(step).isInteger(64)))
    return op->emitOpError()
           << "step is " << step.getType() << "; it must be a tensor<i64>";
  return success();
}

LogicalResult checks::verifyDense(Operation *op, ArrayRef<int64_t> list,
                                  StringRef name, int64_t size) {
  if (int64_t(list.size()) == size)
    return success();
  return op->emitOpError() << "'" << name << "' has " << list.size()
                           << " numbers; it must have " << size;
}

LogicalResult checks::verifyAscending(Operation *op, ArrayRef<int64_t> dims,
                                      int64_t rank) {
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim < 0 || dim >= rank || (i && dim <= dims[i - 1]))
      return op->emitOpError()
             << "'dims' must ascend and be in [0, " << rank << ")";
  return success();
}

LogicalResult checks::verifyLike(Operation *op, Value like, Value result,
                                 ArrayRef<int64_t> fromOperand) {
  layout::Shape shape = shapeOf(result);
  if (!like) {
    // A local type says its extents.
    if (isa_and_present<LocalAttr>(
            cast<RankedTensorType>(result.getType()).getEncoding()))
      return success();
    for (auto [d, extent] : llvm::enumerate(shape))
      if (isDynamic(extent) && !llvm::is_contained(fromOperand, d))
        return op->emitOpError() << "result's dimension " << d
                                 << " is dynamic; 'like' must give its extent";
    return success();
  }
  layout::Shape likeShape = shapeOf(like);
  bool equal = likeShape.size() == shape.size();
  for (size_t d = 0; equal && d < shape.size(); ++d)
    equal = isDynamic(shape[d]) || isDynamic(likeShape[d]) ||
            shape[d] == likeShape[d];
  if (!equal)
    return op->emitOpError() << "'like' must have the shape of the result";
  return success();
}
