//===- ExtentAnalysis.cpp - the extents of every tensor of a function
//------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorView/ExtentAnalysis.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::Extent;

using Extents = std::vector<Extent>;
using OptionalExtents = SmallVector<std::optional<Extent>>;

/// The extents that the type states.
static OptionalExtents stated(Value value) {
  OptionalExtents extents;
  for (int64_t extent : cast<RankedTensorType>(value.getType()).getShape())
    extents.push_back(ShapedType::isDynamic(extent)
                          ? std::nullopt
                          : std::optional(Extent(extent)));
  return extents;
}

LogicalResult ExtentAnalysis::addArguments(func::FuncOp function) {
  if (auto sizes = function->getAttrOfType<DictionaryAttr>(kSizesAttr))
    for (NamedAttribute size : sizes) {
      Attribute value = size.getValue();
      if (auto array = dyn_cast<ArrayAttr>(value))
        value = array[0];
      maximums[size.getName().str()] = cast<IntegerAttr>(value).getInt();
    }
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      continue;
    auto names = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(),
                                                      kDimsAttr);
    if (type.getNumDynamicDims() && !names)
      return function.emitError()
             << "argument #" << argument.getArgNumber()
             << " has dynamic extents without names; write tv.dims = [\"b\", "
                "...] on it, and tv.sizes = {b = MAXIMUM, ...} on the function";
    Extents result;
    size_t next = 0;
    for (std::optional<Extent> &extent : stated(argument))
      result.push_back(
          extent ? *extent
                 : Extent::symbol(cast<StringAttr>(names[next++]).str()));
    extents[argument] = std::move(result);
  }
  return success();
}

/// Through the iteration factors: operands give factors their extents, which
/// give results theirs.
static void inferByRule(const layout::Rule &rule, ArrayRef<Extents> operands,
                        MutableArrayRef<OptionalExtents> results) {
  SmallVector<std::optional<Extent>> factors(rule.factors.size());
  for (auto [index, factor] : llvm::enumerate(rule.factors))
    if (factor.size != layout::kDynamic)
      factors[index] = Extent(factor.size);
  for (auto [dims, extents] : llvm::zip(rule.operands, operands))
    for (auto [dim, extent] : llvm::zip(dims, extents))
      if (dim.size() == 1 && !factors[dim[0]])
        factors[dim[0]] = extent;
  for (auto [dims, extents] : llvm::zip(rule.results, results))
    for (auto [dim, extent] : llvm::zip(dims, extents)) {
      if (extent ||
          llvm::any_of(dim, [&](int factor) { return !factors[factor]; }))
        continue;
      extent = Extent(1);
      for (int factor : dim)
        extent = *extent * *factors[factor];
    }
}

/// Each `?` of the result is the operand's next dynamic extent, where the
/// static extents before it have one product on both sides.
static void inferReshape(const Extents &operand, OptionalExtents &result) {
  size_t next = 0;
  int64_t left = 1, right = 1;
  for (std::optional<Extent> &extent : result) {
    if (extent) {
      right *= extent->constant;
      continue;
    }
    while (next < operand.size() && operand[next].getStatic() &&
           (left < right || operand[next].constant == 1))
      left *= operand[next++].constant;
    if (left != right || next == operand.size() || operand[next].getStatic())
      return;
    extent = operand[next++];
    left = right = 1;
  }
}

LogicalResult ExtentAnalysis::addResults(Operation *op) {
  SmallVector<Extents> operands;
  for (Value operand : op->getOperands())
    operands.push_back(extents[operand]);
  SmallVector<OptionalExtents> results;
  for (Value result : op->getResults())
    results.push_back(isa<RankedTensorType>(result.getType())
                          ? stated(result)
                          : OptionalExtents());

  if (auto rule = dyn_cast<ShardingRuleOpInterface>(op))
    inferByRule(rule.getShardingRule(), operands, results);
  else if (isa<ReinterpretOpInterface>(op))
    inferReshape(operands[0], results[0]);
  else if (operands.size() == results.size()) // moves and constraints
    for (auto [operand, result] : llvm::zip(operands, results))
      result.assign(operand.begin(), operand.end());

  for (auto [value, result] : llvm::zip(op->getResults(), results)) {
    Extents known;
    for (auto [dim, extent] : llvm::enumerate(result)) {
      if (!extent)
        return op->emitError()
               << "the dynamic extent of dimension " << dim
               << " of the result does not follow from the operands";
      known.push_back(*extent);
    }
    extents[value] = std::move(known);
  }
  return success();
}

FailureOr<ExtentAnalysis> ExtentAnalysis::run(func::FuncOp function) {
  ExtentAnalysis analysis;
  if (failed(analysis.addArguments(function)))
    return failure();
  for (Operation &op : function.getBody().front().without_terminator())
    if (failed(analysis.addResults(&op)))
      return failure();
  return analysis;
}

layout::Shape ExtentAnalysis::getMaximumShape(Value value) const {
  layout::Shape shape;
  for (const Extent &extent : get(value))
    shape.push_back(*extent.evaluate(maximums));
  return shape;
}

int64_t ExtentAnalysis::getElementBytes(Value value) {
  unsigned bits =
      cast<RankedTensorType>(value.getType()).getElementTypeBitWidth();
  return (bits + 7) / 8;
}

int64_t ExtentAnalysis::getMaximumBytes(Value value) const {
  int64_t bytes = getElementBytes(value);
  for (int64_t extent : getMaximumShape(value))
    bytes *= extent;
  return bytes;
}
