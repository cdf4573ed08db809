//===- TensorViewVerifyCompute.cpp - legal regions and ops that compute --===//
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

#include "Support/Names.h"
#include "TensorView/Functions.h"
#include "TensorView/TensorViewVerify.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using namespace tessera::tv::checks;

//===----------------------------------------------------------------------===//
// Scalar regions
//===----------------------------------------------------------------------===//

LogicalResult checks::verifyScalarRegion(Operation *op, Region &region,
                                         StringRef name, TypeRange arguments,
                                         TypeRange yields) {
  Block &block = region.front();
  if (block.getArgumentTypes() != arguments)
    return op->emitOpError() << name << " must have arguments (" << arguments
                             << "), not (" << block.getArgumentTypes() << ")";
  for (Operation &inner : block) {
    if (!isa<YieldOp, LoadOp, AccumulateOp>(inner) &&
        (!isa<arith::ArithDialect, math::MathDialect>(inner.getDialect()) ||
         llvm::any_of(inner.getResultTypes(), llvm::IsaPred<ShapedType>)))
      return inner.emitOpError()
             << "is not allowed in a scalar region of " << op->getName()
             << ", which holds scalar arith and math ops, "
                "tv.load and tv.yield";
    for (OpOperand &operand : inner.getOpOperands()) {
      bool captured = isa<LoadOp>(inner) && operand.getOperandNumber() == 0;
      bool outside = operand.get().getParentRegion() != &region;
      if (outside && !captured)
        return inner.emitOpError()
               << "uses a value from outside of the scalar region; only "
                  "tv.load may, to read a tensor";
    }
  }
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return op->emitOpError() << name << " must end in tv.yield";
  if (yield.getOperandTypes() != yields)
    return yield.emitOpError() << "must yield (" << yields << "), not ("
                               << yield.getOperandTypes() << ")";
  return success();
}

LogicalResult LoadOp::verify() {
  if (!isa_and_nonnull<TensorViewDialect>(
          (*this)->getParentOp() ? (*this)->getParentOp()->getDialect()
                                 : nullptr))
    return emitOpError() << "belongs in a scalar region of a tv op";
  if (int64_t(getIndices().size()) != rankOf(getTensor()))
    return emitOpError() << "has " << getIndices().size()
                         << " indices; the tensor has rank "
                         << rankOf(getTensor());
  Type scalar = getScalarType(elementOf(getTensor()));
  if (getType() != scalar)
    return emitOpError() << "result must be " << scalar;
  auto local = dyn_cast_or_null<LocalAttr>(getTensor().getType().getEncoding());
  if (local && !layout::axesOf(local.getLayoutView()).empty())
    return emitOpError() << "reads a tensor that is not whole on each device";
  return success();
}

//===----------------------------------------------------------------------===//
// Pointwise, reductions, broadcasts
//===----------------------------------------------------------------------===//

LogicalResult MapOp::verify() {
  if (getInputs().empty() || getResults().empty())
    return emitOpError() << "must have an operand and a result";
  if (failed(verifyTensors(*this)))
    return failure();
  SmallVector<Place> places = placesOf(*this);
  for (const Place &place : places)
    if (failed(verifyRank(*this, place.value, place.name(),
                          rankOf(getInputs()[0]))))
      return failure();
  return verifySameExtents(*this, places);
}

LogicalResult MapOp::verifyRegions() {
  SmallVector<Type> arguments, yields;
  for (Value input : getInputs())
    arguments.push_back(getScalarType(elementOf(input)));
  for (Value result : getResults())
    yields.push_back(getScalarType(elementOf(result)));
  return verifyScalarRegion(*this, getBody(), "the region", arguments, yields);
}

LogicalResult ReduceOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getInput(), "input", kNumbers)) ||
      failed(verifySameElement(*this, {getInput(), getResult()})) ||
      failed(verifyAscending(*this, getDims(), rankOf(getInput()))) ||
      failed(verifyRank(*this, getResult(), "result",
                        rankOf(getInput()) - int64_t(getDims().size()))))
    return failure();
  return verifyExtents(*this);
}

LogicalResult BroadcastOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifySameElement(*this, {getInput(), getResult()})) ||
      failed(verifyDense(*this, getDims(), "dims", rankOf(getInput()))) ||
      failed(verifyAscending(*this, getDims(), rankOf(getResult()))) ||
      failed(verifyLike(*this, getLike(), getResult(), getDims())))
    return failure();
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

Type checks::getWide(Value value) {
  Type element = elementOf(value);
  return element.isF64() ? element : Float32Type::get(value.getContext());
}

LogicalResult ContractOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getA(), "a", kFloats)))
    return failure();
  const ContractionLabels labels = getContractionLabels();
  auto check = [&](ArrayRef<int32_t> of, Value tensor,
                   StringRef name) -> LogicalResult {
    if (int64_t(of.size()) != rankOf(tensor))
      return emitOpError() << name << " has rank " << rankOf(tensor) << " and "
                           << of.size() << " labels; they must be as many";
    for (auto [i, label] : llvm::enumerate(of)) {
      if (llvm::is_contained(of.take_front(i), label))
        return emitOpError() << "label " << label << " is twice in " << name;
      // It would be a sum of one factor, or a broadcast.
      if (llvm::is_contained(labels.a, label) +
              llvm::is_contained(labels.b, label) +
              llvm::is_contained(labels.result, label) <
          2)
        return emitOpError() << "label " << label << " is in " << name
                             << " only; it must be in two tensors at least";
    }
    return success();
  };
  if (failed(check(labels.a, getA(), "a")) ||
      failed(check(labels.b, getB(), "b")) ||
      failed(check(labels.result, getResult(), "result")))
    return failure();
  if (failed(verifySameElement(*this, {getA(), getB()})))
    return failure();
  Type element = elementOf(getA()), wide = getWide(getA());
  if (Type made = elementOf(getResult()); made != element && made != wide) {
    InFlightDiagnostic error = emitOpError()
                               << "result has element type " << made
                               << "; it must be " << element;
    return wide == element ? error
                           : error << ", or " << wide << ", in which it sums";
  }
  SmallVector<Value> added = {getResult()};
  llvm::append_range(added, getOperands().drop_front(2));
  if (failed(verifySameElement(*this, added)) ||
      (getAddend() &&
       failed(verifyRank(*this, getAddend(), "addend", rankOf(getResult())))))
    return failure();
  if (getBias()) {
    if (failed(verifyRank(*this, getBias(), "bias", 1)))
      return failure();
    if (labels.result.empty() ||
        llvm::is_contained(labels.a, labels.result.back()))
      return emitOpError() << "the result's last dimension must be a column, "
                              "to which the bias is added";
  }
  return verifyExtents(*this);
}

LogicalResult LinearOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getInput(), "input", kFloats)) ||
      failed(verifyRankAtLeast(*this, getInput(), "input", 1)) ||
      failed(verifyRank(*this, getWeight(), "weight", 2)) ||
      failed(verifyRank(*this, getResult(), "result", rankOf(getInput()))) ||
      (getBias() && failed(verifyRank(*this, getBias(), "bias", 1))))
    return failure();
  SmallVector<Value> all(getOperands());
  all.push_back(getResult());
  if (failed(verifySameElement(*this, all)))
    return failure();
  return verifyExtents(*this);
}

LogicalResult MatmulOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getLhs(), "lhs", kFloats)) ||
      failed(verifySameElement(*this, {getLhs(), getRhs(), getResult()})) ||
      failed(verifyRankAtLeast(*this, getLhs(), "lhs", 2)) ||
      failed(verifyRank(*this, getRhs(), "rhs", rankOf(getLhs()))) ||
      failed(verifyRank(*this, getResult(), "result", rankOf(getLhs()))))
    return failure();
  return verifyExtents(*this);
}

LogicalResult GroupedMatmulOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getInput(), "input", kFloats)) ||
      failed(
          verifySameElement(*this, {getInput(), getWeight(), getResult()})) ||
      failed(verifyElement(*this, getCounts(), "counts", kIndices)) ||
      failed(verifyRank(*this, getInput(), "input", 3)) ||
      failed(verifyRank(*this, getWeight(), "weight", 3)) ||
      failed(verifyRank(*this, getCounts(), "counts", 1)) ||
      failed(verifyRank(*this, getResult(), "result", 3)))
    return failure();
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

std::string tv::suggestFunction(Operation *op, StringRef name) {
  std::vector<std::string> names;
  if (auto module = op->getParentOfType<ModuleOp>())
    for (auto function : module.getOps<func::FuncOp>())
      if (!function->isAncestor(op)) // no recursion
        names.push_back(function.getName().str());
  return suggestName(name.str(), names);
}

/// The type of what an op names.
static FailureOr<FunctionType> typeOf(FlatSymbolRefAttr name, Operation *op,
                                      SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(op, name);
  if (callee && !callee.isExternal())
    return callee.getFunctionType();
  return op->emitOpError() << "'" << name.getValue()
                           << "' is no function with a body here"
                           << suggestFunction(op, name.getValue());
}

/// Of operands and results.
static LogicalResult verifyGlobal(Operation *op) {
  for (const Place &place : placesOf(op))
    if (isa_and_nonnull<LocalAttr>(
            cast<RankedTensorType>(place.value.getType()).getEncoding()))
      return op->emitOpError() << "is of global tensors, not of #tv.local ones";
  return success();
}

LogicalResult CallOp::verify() {
  return failure(failed(verifyTensors(*this)) || failed(verifyGlobal(*this)));
}

/// Whether a value of `own` type can stand where a function has `written`.
static bool isInstance(Type own, Type written) {
  auto tensor = dyn_cast<RankedTensorType>(own);
  auto general = dyn_cast<RankedTensorType>(written);
  if (!tensor || !general)
    return own == written;
  return tensor.getElementType() == general.getElementType() &&
         tensor.getRank() == general.getRank() &&
         llvm::all_of(llvm::zip(tensor.getShape(), general.getShape()),
                      [](auto extents) {
                        auto [mine, theirs] = extents;
                        return ShapedType::isDynamic(theirs) || mine == theirs;
                      }) &&
         (!general.getEncoding() ||
          general.getEncoding() == tensor.getEncoding());
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<FunctionType> type = typeOf(getCalleeAttr(), *this, symbols);
  if (failed(type))
    return failure();
  auto check = [&](TypeRange own, TypeRange written, StringRef verb,
                   StringRef what) -> LogicalResult {
    if (own.size() != written.size())
      return emitOpError() << "'" << getCallee() << "' " << verb << " "
                           << written.size() << " " << what << "s, not "
                           << own.size();
    for (auto [i, types] : llvm::enumerate(llvm::zip_equal(own, written)))
      if (auto [mine, theirs] = types; !isInstance(mine, theirs))
        return emitOpError()
               << "'" << getCallee() << "' " << verb << " " << theirs << " as "
               << what << " #" << i << ", which " << mine << " is not";
    return success();
  };
  return failure(
      failed(check(getInputs().getTypes(), type->getInputs(), "takes",
                   "argument")) ||
      failed(check(getResultTypes(), type->getResults(), "gives", "result")));
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// Numbers of `count` results or arguments, each once.
static LogicalResult verifyNumbers(GradientOp op, ArrayRef<int64_t> numbers,
                                   StringRef name, int64_t count,
                                   StringRef of) {
  for (auto [i, number] : llvm::enumerate(numbers)) {
    if (number < 0 || number >= count)
      return op.emitOpError()
             << "'" << name << "' names " << of << " #" << number << " of '"
             << op.getCallee() << "', which has " << count;
    if (llvm::is_contained(numbers.take_front(i), number))
      return op.emitOpError()
             << "'" << name << "' names " << of << " #" << number << " twice";
  }
  if (numbers.empty())
    return op.emitOpError() << "'" << name << "' must name " << of << "s";
  return success();
}

static bool isSameTensor(Type a, Type b) {
  return withEncoding(a, {}) == withEncoding(b, {});
}

LogicalResult GradientOp::verify() {
  return failure(failed(verifyTensors(*this)) || failed(verifyGlobal(*this)));
}

LogicalResult GradientOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<FunctionType> callee = typeOf(getCalleeAttr(), *this, symbols);
  if (failed(callee))
    return failure();
  FunctionType type = *callee;
  // Where an argument has no view, the value's is as good as any.
  auto fits = [](auto types) {
    auto [own, written] = types;
    return own == written ||
           (isInstance(own, written) && isSameTensor(own, written));
  };
  if (getInputs().size() != type.getNumInputs() ||
      !llvm::all_of(llvm::zip(getInputs().getTypes(), type.getInputs()), fits))
    return emitOpError() << "'" << getCallee() << "' takes ("
                         << type.getInputs() << "), not ("
                         << getInputs().getTypes() << ")";
  int64_t count = type.getNumResults();
  if (failed(verifyNumbers(*this, getOf(), "of", count, "result")) ||
      failed(
          verifyNumbers(*this, getTo(), "to", type.getNumInputs(), "argument")))
    return failure();
  if (getNumResults() != count + getTo().size() ||
      TypeRange(getResultTypes()).take_front(count) !=
          TypeRange(type.getResults()))
    return emitOpError() << "must have the results of '" << getCallee()
                         << "', (" << type.getResults()
                         << "), then one for each argument in 'to'";

  bool isGiven = !getCotangents().empty();
  if (isGiven && getCotangents().size() != getOf().size())
    return emitOpError() << "has " << getCotangents().size()
                         << " gradients in 'with' and " << getOf().size()
                         << " results in 'of'; they must be as many";
  for (auto [i, number] : llvm::enumerate(getOf())) {
    auto result = dyn_cast<RankedTensorType>(type.getResult(number));
    auto error = [&] {
      return emitOpError() << "result #" << number << " of '" << getCallee()
                           << "' ";
    };
    if (!result || !kFloats.contains(result.getElementType()))
      return error() << "has no gradient: it is not of floats, but "
                     << type.getResult(number);
    if (!isGiven && result.getRank() != 0)
      return error() << "is no scalar; 'with' must give its gradient";
    if (isGiven && !isSameTensor(getCotangents()[i].getType(), result))
      return error() << "is " << withEncoding(result, {})
                     << ", but its gradient in 'with' is "
                     << withEncoding(getCotangents()[i].getType(), {});
  }
  for (auto [i, number] : llvm::enumerate(getTo())) {
    Type argument = type.getInput(number);
    if (!kFloats.contains(elementOf(getInputs()[number])))
      return emitOpError() << "argument #" << number << " of '" << getCallee()
                           << "' has no gradient: it is not of floats, but "
                           << argument;
    if (Type own = getResult(count + i).getType(); !isSameTensor(own, argument))
      return emitOpError() << "the gradient by argument #" << number << " is "
                           << withEncoding(own, {}) << "; it must be "
                           << withEncoding(argument, {});
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Composites
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxOp::verify() {
  if (failed(verifyDim(*this, getDim(), getInput())))
    return failure();
  return verifyPointwise(*this, kFloats);
}

/// input and result [..., K], parameters [K], a positive epsilon.
static LogicalResult verifyNorm(Operation *op, const APFloat &epsilon) {
  SmallVector<Value> all(op->getOperands());
  all.push_back(op->getResult(0));
  if (failed(verifyTensors(op)) || failed(verifySameElement(op, all)) ||
      failed(verifyElement(op, all[0], "input", kFloats)) ||
      failed(verifyRankAtLeast(op, all[0], "input", 1)) ||
      failed(verifyRank(op, all.back(), "result", rankOf(all[0]))))
    return failure();
  for (Value parameter : ArrayRef(all).drop_front().drop_back())
    if (failed(verifyRank(op, parameter, "weight or bias", 1)))
      return failure();
  if (!(epsilon.convertToDouble() >= 0))
    return op->emitOpError() << "epsilon must not be negative";
  return verifyExtents(op);
}

LogicalResult LayerNormOp::verify() { return verifyNorm(*this, getEpsilon()); }
LogicalResult RmsNormOp::verify() { return verifyNorm(*this, getEpsilon()); }

LogicalResult RopeOp::verify() {
  if (failed(verifyRankAtLeast(*this, getInput(), "input", 2)))
    return failure();
  int64_t last = shapeOf(getInput()).back();
  if (isDynamic(last) || last % 2)
    return emitOpError() << "the last dimension must be static and even";
  if (!(getBase().convertToDouble() > 0))
    return emitOpError() << "base must be positive";
  const int64_t rank = rankOf(getInput());
  if (failed(verifyTensors(*this)) ||
      failed(verifySameElement(*this, {getInput(), getResult()})) ||
      failed(verifyElement(*this, getInput(), "input", kFloats)) ||
      failed(verifyRank(*this, getResult(), "result", rank)))
    return failure();
  if (Value positions = getPositions()) {
    if (failed(verifyElement(*this, positions, "positions", kIndices)))
      return failure();
    if (rankOf(positions) < 1 || rankOf(positions) >= rank)
      return emitOpError() << "positions have rank " << rankOf(positions)
                           << "; it must be 1, [S], or up to " << rank - 1
                           << ", the input's first dimensions and S";
  }
  return verifyExtents(*this);
}

LogicalResult TopKOp::verify() {
  const int64_t rank = rankOf(getInput());
  if (failed(verifyTensors(*this)) ||
      failed(verifyDim(*this, getDim(), getInput())) ||
      failed(verifyElement(*this, getInput(), "input", kFloats)) ||
      failed(verifySameElement(*this, {getInput(), getValues()})) ||
      failed(verifyElement(*this, getIndices(), "indices", kIndices)) ||
      failed(verifyRank(*this, getValues(), "values", rank)) ||
      failed(verifyRank(*this, getIndices(), "indices", rank)))
    return failure();
  const int64_t extent = shapeOf(getInput())[getDim()];
  const int64_t k = shapeOf(getValues())[getDim()];
  if (isDynamic(extent) || isDynamic(k) || k < 1 || k > 64 || k > extent)
    return emitOpError() << "takes " << extentText(k) << " of "
                         << extentText(extent)
                         << " elements; k must be static, in [1, 64], and at "
                            "most the input's extent, which is static";
  return verifyExtents(*this);
}

LogicalResult CrossEntropyOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getLogits(), "logits", kFloats)) ||
      failed(verifySameElement(*this, {getLogits(), getResult()})) ||
      failed(verifyElement(*this, getLabels(), "labels", kIndices)) ||
      failed(verifyRankAtLeast(*this, getLogits(), "logits", 1)) ||
      failed(
          verifyRank(*this, getLabels(), "labels", rankOf(getLogits()) - 1)) ||
      failed(verifyRank(*this, getResult(), "result", rankOf(getLogits()) - 1)))
    return failure();
  if (Value lse = getLse()) {
    if (failed(verifyRank(*this, lse, "lse", rankOf(getLogits()) - 1)))
      return failure();
    if (elementOf(lse) != getWide(getLogits()))
      return emitOpError() << "lse has element type " << elementOf(lse)
                           << "; it must be " << getWide(getLogits());
  }
  return verifyExtents(*this);
}

LogicalResult AdamWOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyElement(*this, getStep(), "step", kIndices)))
    return failure();
  for (auto [operand, result] :
       llvm::zip(getOperands().take_front(3), getResults()))
    if (failed(verifySameElement(*this, {operand, result})))
      return failure();
  const int64_t rank = rankOf(getWeight());
  for (auto [i, place] : llvm::enumerate(placesOf(*this))) {
    const bool isScalar = i >= 4 && i < 7;
    if (failed(
            verifyRank(*this, place.value, place.name(), isScalar ? 0 : rank)))
      return failure();
    if (place.value == getStep())
      continue;
    if (failed(verifyElement(*this, place.value, place.name(), kFloats)))
      return failure();
    if (elementOf(place.value).isF64() != elementOf(getWeight()).isF64())
      return emitOpError() << place.name() << " is of "
                           << elementOf(place.value) << ", the weight of "
                           << elementOf(getWeight())
                           << "; all must be f64, or none";
  }
  for (const APFloat &beta : {getMeanBeta(), getSquareBeta()})
    if (!(beta.convertToDouble() >= 0 && beta.convertToDouble() < 1))
      return emitOpError() << "betas must be in [0, 1)";
  if (!(getEpsilon().convertToDouble() >= 0))
    return emitOpError() << "epsilon must not be negative";
  return verifyExtents(*this);
}

LogicalResult DropoutOp::verify() {
  double rate = getRate().convertToDouble();
  if (!(rate >= 0 && rate < 1))
    return emitOpError() << "rate must be in [0, 1)";
  if (failed(verifyTensors(*this)) || failed(verifyStep(*this, getStep())) ||
      failed(verifySameElement(*this, {getInput(), getResult()})) ||
      failed(verifyElement(*this, getInput(), "input", kFloats)) ||
      failed(verifyRank(*this, getResult(), "result", rankOf(getInput()))))
    return failure();
  return verifyExtents(*this);
}
