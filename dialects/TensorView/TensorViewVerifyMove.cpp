//===- TensorViewVerifyMove.cpp - legal ops that move or make elements ---===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op checks its element types, ranks and attributes, then its extents.
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
// Same elements, other indices
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifySameElement(*this, {getInput(), getResult()})))
    return failure();
  auto count = [](Value value) {
    std::pair<int64_t, int64_t> r{0, 1}; // dynamic extents; product of others
    for (int64_t extent : shapeOf(value))
      isDynamic(extent) ? ++r.first : r.second *= extent;
    return r;
  };
  auto [dynamicIn, in] = count(getInput());
  auto [dynamicOut, out] = count(getResult());
  if (dynamicOut == dynamicIn && in == out)
    return success();
  if (!dynamicIn && !dynamicOut)
    return emitOpError() << "operand has " << in << " elements, result " << out;
  // One dynamic extent of the result takes what the others leave; that they
  // leave a whole number follows from the operand's extents (inferExtents).
  if (dynamicIn && dynamicOut == 1 && out)
    return success();
  // A local type says its extents.
  auto elements = [](Value value) {
    layout::Extent product(1);
    for (const layout::Extent &extent : getLocal(value).getExtents())
      product = product * extent;
    return product;
  };
  if (isa_and_present<LocalAttr>(getResult().getType().getEncoding()) &&
      elements(getInput()) == elements(getResult()))
    return success();
  return emitOpError()
         << "cannot tell the result's dynamic extents: it must have as many as "
            "the operand and static extents of the same product, or one";
}

LogicalResult TransposeOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifySameElement(*this, {getInput(), getResult()})) ||
      failed(verifyDense(*this, getPerm(), "perm", rankOf(getInput()))) ||
      failed(verifyRank(*this, getResult(), "result", rankOf(getInput()))))
    return failure();
  SmallVector<bool> seen(getPerm().size());
  for (int64_t dim : getPerm())
    if (dim < 0 || dim >= int64_t(seen.size()) ||
        std::exchange(seen[dim], true))
      return emitOpError() << "'perm' must name each dimension once";
  return verifyExtents(*this);
}

LogicalResult SliceOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifySameElement(*this, {getInput(), getResult()})) ||
      failed(verifyDense(*this, getOffsets(), "offsets", rankOf(getInput()))) ||
      failed(verifyRank(*this, getResult(), "result", rankOf(getInput()))))
    return failure();
  layout::Shape in = shapeOf(getInput()), out = shapeOf(getResult());
  for (auto [d, offset] : llvm::enumerate(getOffsets())) {
    if (isDynamic(in[d]) || isDynamic(out[d])) {
      if (isDynamic(in[d]) != isDynamic(out[d]) || offset != 0)
        return emitOpError() << "must take dimension " << d
                             << ", which is dynamic, as a whole";
      continue;
    }
    if (offset < 0 || offset > in[d] - out[d])
      return emitOpError() << "takes " << out[d] << " values from " << offset
                           << " of dimension " << d << ", which has extent "
                           << in[d];
  }
  return verifyExtents(*this);
}

LogicalResult ConcatOp::verify() {
  if (getInputs().empty())
    return emitOpError() << "must have an operand";
  SmallVector<Value> all(getOperands());
  all.push_back(getResult());
  if (failed(verifyTensors(*this)) || failed(verifySameElement(*this, all)) ||
      failed(verifyDim(*this, getDim(), getResult())))
    return failure();
  int64_t sum = 0;
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    if (failed(verifyRank(*this, input, "operand #" + std::to_string(i),
                          rankOf(getResult()))))
      return failure();
    int64_t extent = shapeOf(input)[getDim()];
    sum = isDynamic(sum) || isDynamic(extent) ? layout::kDynamic : sum + extent;
  }
  if (shapeOf(getResult())[getDim()] != sum)
    return emitOpError() << "result's dimension " << getDim() << " has extent "
                         << extentText(shapeOf(getResult())[getDim()])
                         << "; it must be " << extentText(sum);
  return verifyExtents(*this);
}

LogicalResult PadOp::verify() {
  int64_t rank = rankOf(getInput());
  if (failed(verifyTensors(*this)) ||
      failed(verifySameElement(*this, {getInput(), getResult()})) ||
      failed(verifyDense(*this, getLow(), "low", rank)) ||
      failed(verifyDense(*this, getHigh(), "high", rank)) ||
      failed(verifyRank(*this, getResult(), "result", rank)))
    return failure();
  auto value = cast<TypedAttr>(getValueAttr());
  if (value.getType() != elementOf(getInput()))
    return emitOpError() << "value has type " << value.getType()
                         << "; it must be " << elementOf(getInput());
  layout::Shape in = shapeOf(getInput()), out = shapeOf(getResult());
  for (int64_t d = 0; d < rank; ++d) {
    for (int64_t border : {getLow()[d], getHigh()[d]})
      if (border < 0 || border > kMaxElements)
        return emitOpError() << "'low' and 'high' must not be negative or "
                                "beyond 2^"
                             << llvm::Log2_64(kMaxElements);
    int64_t right =
        isDynamic(in[d]) ? in[d] : in[d] + getLow()[d] + getHigh()[d];
    if (out[d] != right)
      return emitOpError() << "result's dimension " << d << " has extent "
                           << extentText(out[d]) << "; it must be "
                           << extentText(right);
  }
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// Elements at run-time indices
//===----------------------------------------------------------------------===//

LogicalResult GatherOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifySameElement(*this, {getTable(), getResult()})) ||
      failed(verifyElement(*this, getIndices(), "indices", kIndices)) ||
      failed(verifyDim(*this, getDim(), getTable())) ||
      failed(verifyRank(*this, getResult(), "result",
                        rankOf(getTable()) + rankOf(getIndices()) - 1)))
    return failure();
  return verifyExtents(*this);
}

LogicalResult ScatterOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getInit(), "init", kNumbers)) ||
      failed(
          verifySameElement(*this, {getInit(), getUpdates(), getResult()})) ||
      failed(verifyElement(*this, getIndices(), "indices", kIndices)) ||
      failed(verifyDim(*this, getDim(), getInit())) ||
      failed(verifyRank(*this, getResult(), "result", rankOf(getInit()))) ||
      failed(verifyRank(*this, getUpdates(), "updates",
                        rankOf(getInit()) + rankOf(getIndices()) - 1)))
    return failure();
  return verifyExtents(*this);
}

LogicalResult CumsumOp::verify() {
  if (failed(verifyDim(*this, getDim(), getInput())))
    return failure();
  return verifyPointwise(*this, kNumbers);
}

LogicalResult DispatchOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifySameElement(*this, {getTokens(), getResult()})) ||
      failed(
          verifySameElement(*this, {getExperts(), getCounts(), getSlots()})) ||
      failed(verifyElement(*this, getExperts(), "experts", kIndices)) ||
      failed(verifyRank(*this, getTokens(), "tokens", 2)) ||
      failed(verifyRank(*this, getExperts(), "experts", 2)) ||
      failed(verifyRank(*this, getResult(), "result", 3)) ||
      failed(verifyRank(*this, getCounts(), "counts", 1)) ||
      failed(verifyRank(*this, getSlots(), "slots", 2)))
    return failure();
  layout::Shape shape = shapeOf(getResult());
  if (isDynamic(shape[0]) || isDynamic(shape[1]))
    return emitOpError()
           << "the number of experts and their capacity must be static";
  return verifyExtents(*this);
}

LogicalResult CombineOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getBuffers(), "buffers", kFloats)) ||
      failed(verifySameElement(*this,
                               {getBuffers(), getWeights(), getResult()})) ||
      failed(verifySameElement(*this, {getExperts(), getSlots()})) ||
      failed(verifyElement(*this, getExperts(), "experts", kIndices)) ||
      failed(verifyRank(*this, getBuffers(), "buffers", 3)) ||
      failed(verifyRank(*this, getExperts(), "experts", 2)) ||
      failed(verifyRank(*this, getSlots(), "slots", 2)) ||
      failed(verifyRank(*this, getWeights(), "weights", 2)) ||
      failed(verifyRank(*this, getResult(), "result", 2)))
    return failure();
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

LogicalResult ConstantOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyLike(*this, getLike(), getResult())))
    return failure();
  auto type = dyn_cast<RankedTensorType>(getValue().getType());
  if (!type || type.getEncoding() ||
      type.getElementType() != elementOf(getResult()))
    return emitOpError() << "value must be a tensor of "
                         << elementOf(getResult()) << " without encoding";
  layout::Shape shape = shapeOf(getResult());
  if (type.getRank() != 0 && type.getShape() != ArrayRef(shape))
    return emitOpError() << "value must have the result's shape or rank 0";
  return success();
}

LogicalResult IotaOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getResult(), "result", kCounts)) ||
      failed(verifyDim(*this, getDim(), getResult())))
    return failure();
  return verifyLike(*this, getLike(), getResult());
}

LogicalResult RandomOp::verify() {
  if (failed(verifyTensors(*this)))
    return failure();
  if (!elementOf(getResult()).isF32())
    return emitOpError() << "result has element type " << elementOf(getResult())
                         << "; it must be f32";
  if (getBits() != 16 && getBits() != 24)
    return emitOpError() << "bits is " << getBits() << "; it must be 16 or 24";
  if (failed(verifyStep(*this, getStep())))
    return failure();
  return verifyLike(*this, getLike(), getResult());
}

LogicalResult SizeOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getResult(), "result", kCounts)) ||
      failed(verifyDim(*this, getDim(), getInput())))
    return failure();
  return verifyRank(*this, getResult(), "result", 0);
}

//===----------------------------------------------------------------------===//
// How data lies
//===----------------------------------------------------------------------===//

static LogicalResult verifySameTensor(Operation *op, Value a, Value b) {
  if (elementOf(a) == elementOf(b) && shapeOf(a) == shapeOf(b))
    return success();
  return op->emitOpError() << "result must have the shape and element type of "
                              "its operand";
}

/// Each result is the operand of its number, of the whole tensor.
static LogicalResult verifySameTensors(Operation *op) {
  if (failed(verifyTensors(op)))
    return failure();
  if (op->getNumOperands() == 0 || op->getNumOperands() != op->getNumResults())
    return op->emitOpError() << "must have as many results as operands, at "
                                "least one";
  for (auto [operand, result] :
       llvm::zip(op->getOperands(), op->getResults())) {
    if (failed(verifySameTensor(op, operand, result)))
      return failure();
    for (Value value : {operand, Value(result)})
      if (isa_and_nonnull<LocalAttr>(
              cast<RankedTensorType>(value.getType()).getEncoding()))
        return op->emitOpError() << "is of global tensors, not #tv.local ones";
  }
  return success();
}

LogicalResult ReshardOp::verify() {
  if (failed(verifySameTensors(*this)))
    return failure();
  auto isOnPlans = [&](Value value) {
    ViewAttr view = getView(value);
    return view && view.getLayoutMesh().axes == getPlan()->getMesh()->axes;
  };
  if (getPlan() && !(isOnPlans(getInputs()[0]) && isOnPlans(getResults()[0])))
    return emitOpError() << "has a plan, so its tensors must have views on the "
                            "plan's mesh";
  if (getPlan() && getPlan()->getKind() == StepKind::Fetch)
    return emitOpError() << "moves whole tensors, which no fetch does";
  return success();
}

LogicalResult ConstrainOp::verify() {
  if (failed(verifySameTensors(*this)))
    return failure();
  MeshAttr mesh = meshOf(getInput().getType());
  if (mesh && mesh->numDevices() != getView().getMesh()->numDevices())
    return emitOpError() << "operand lies on mesh " << mesh
                         << ", but the view is on " << getView().getMesh();
  return getView().verifyEncoding(
      shapeOf(getResult()), elementOf(getResult()),
      [&] { return emitOpError() << "view does not fit: "; });
}

LogicalResult SameViewOp::verify() {
  if (failed(verifySameTensors(*this)))
    return failure();
  for (OpResult result : getResults())
    if (shapeOf(result) != shapeOf(getResult(0)))
      return emitOpError() << "is of tensors of one shape; that of operand #"
                           << result.getResultNumber() << " differs from that "
                           << "of operand #0";
  return success();
}

LogicalResult BarrierOp::verify() { return verifySameTensors(*this); }

//===----------------------------------------------------------------------===//
// For each device
//===----------------------------------------------------------------------===//

/// Whether `op` may stand in a local region: it is a move of `comm`, or
/// computes and so moves nothing.
static bool isForEachDevice(Operation *op) {
  if (isa<MoveOpInterface>(op))
    return !isa<ReshardOp>(op);
  return isa<TensorViewDialect>(op->getDialect()) &&
         !op->hasTrait<OpTrait::GuidesPropagation>() &&
         !isa<CallOp, GradientOp, LocalRegionOp>(op);
}

static LogicalResult verifyPart(LocalRegionOp op, Value part, Value whole,
                                const Twine &what, MeshAttr &mesh) {
  auto type = dyn_cast<RankedTensorType>(part.getType());
  auto local =
      type ? dyn_cast_or_null<LocalAttr>(type.getEncoding()) : LocalAttr();
  if (!local)
    return op.emitOpError()
           << what << " in the region has type " << part.getType()
           << "; it must be one device's part, a tensor with "
              "#tv.local";
  MeshAttr own = local.getView().getMesh();
  if (mesh && mesh != own)
    return op.emitOpError() << what << " in the region lies on mesh " << own
                            << ", others on " << mesh;
  mesh = own;
  if (type.getElementType() != elementOf(whole) ||
      local.getGlobalShape() != shapeOf(whole))
    return op.emitOpError()
           << what << " in the region is a part of another "
           << "tensor, " << part.getType() << ", than " << whole.getType();
  return success();
}

LogicalResult LocalRegionOp::verify() {
  for (TypeRange types : {TypeRange(getInputs()), TypeRange(getResults())})
    for (Type type : types)
      if (Attribute encoding = cast<RankedTensorType>(type).getEncoding();
          encoding && !isa<ViewAttr>(encoding))
        return emitOpError() << "is of global tensors, not of " << type;
  return success();
}

LogicalResult LocalRegionOp::verifyRegions() {
  Block &body = getOps();
  if (body.getNumArguments() != getNumOperands())
    return emitOpError() << "has " << getNumOperands()
                         << " operands, and its region "
                         << body.getNumArguments() << " arguments";
  auto end = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (!end || end.getNumOperands() != getNumResults())
    return emitOpError() << "region must end in 'tv.yield' of "
                         << getNumResults() << " tensors, one a result";
  for (Operation &op : body.without_terminator())
    if (!isForEachDevice(&op))
      return op.emitError() << "'" << op.getName()
                            << "' in a 'tv.local_region', which holds ops of "
                               "tv that compute, and moves of comm";
  MeshAttr mesh;
  for (auto [i, part, whole] :
       llvm::enumerate(body.getArguments(), getInputs()))
    if (failed(verifyPart(*this, part, whole, "argument #" + Twine(i), mesh)))
      return failure();
  for (auto [i, part, whole] :
       llvm::enumerate(end.getOperands(), getResults())) {
    if (failed(verifyPart(*this, part, whole, "result #" + Twine(i), mesh)))
      return failure();
    const LocalAttr local = getLocal(part);
    auto canonical = [&](const layout::View &view) {
      return layout::canonicalize(view, shapeOf(whole), mesh.getMesh());
    };
    ViewAttr view = getView(whole);
    if (view && (view.getMesh() != mesh ||
                 canonical(view.getView()) != canonical(local.getLayoutView())))
      return emitOpError() << "result #" << i << " lies as " << view
                           << ", but the region yields it as "
                           << local.getView();
  }
  for (Operation &op : body.without_terminator())
    for (auto [i, result] : llvm::enumerate(op.getResults()))
      if (failed(verifyPart(*this, result, result,
                            "result #" + Twine(i) + " of '" +
                                op.getName().getStringRef() + "'",
                            mesh)))
        return failure();
  return success();
}
