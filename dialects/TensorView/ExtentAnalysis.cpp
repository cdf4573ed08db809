//===- ExtentAnalysis.cpp - every extent as a polynomial of dynamic sizes -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One pass over the ops in order. Most ops need no code: dimensions of a result
// have the factors of dimensions of operands. Ops that compute extents
// implement ExtentsOpInterface.
//
//===----------------------------------------------------------------------===//

#include "TensorView/ExtentAnalysis.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::Extent;
using Extents = std::vector<Extent>;

FailureOr<ExtentAnalysis> ExtentAnalysis::ofArguments(func::FuncOp function) {
  ExtentAnalysis analysis;
  if (!function.isExternal() && failed(analysis.addArguments(function)))
    return failure();
  return analysis;
}

FailureOr<ExtentAnalysis> ExtentAnalysis::run(func::FuncOp function) {
  FailureOr<ExtentAnalysis> analysis = ofArguments(function);
  if (failed(analysis))
    return failure();
  for (Block &block : function.getBody())
    for (Operation &op : block)
      if (failed(analysis->addResults(&op)))
        return failure();
  return analysis;
}

/// What the type alone says: extents of a local type's encoding, static
/// extents, nothing for `?`.
static std::vector<std::optional<Extent>> statedExtents(RankedTensorType type) {
  std::vector<std::optional<Extent>> stated;
  if (auto local = dyn_cast_or_null<LocalAttr>(type.getEncoding())) {
    stated.assign(local.getExtents().begin(), local.getExtents().end());
    return stated;
  }
  for (int64_t extent : type.getShape())
    stated.push_back(ShapedType::isDynamic(extent)
                         ? std::optional<Extent>()
                         : std::optional<Extent>(extent));
  return stated;
}

DeclaredSize::DeclaredSize(Attribute attribute) {
  auto integer = [](Attribute value) {
    return cast<IntegerAttr>(value).getInt();
  };
  auto bounds = dyn_cast<ArrayAttr>(attribute);
  maximum = integer(bounds ? bounds[0] : attribute);
  if (bounds && bounds.size() > 1)
    multiple = integer(bounds[1]);
}

LogicalResult ExtentAnalysis::addArguments(func::FuncOp function) {
  if (auto sizes = function->getAttrOfType<DictionaryAttr>(kSizesAttr))
    for (NamedAttribute size : sizes) {
      DeclaredSize declared(size.getValue());
      std::string name = size.getName().str();
      maximums[name] = declared.maximum;
      multiples[name] = declared.multiple;
    }
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      continue;
    auto names = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(),
                                                      kDimsAttr);
    size_t next = 0;
    Extents own;
    for (const std::optional<Extent> &stated : statedExtents(type)) {
      if (stated) {
        own.push_back(*stated);
        continue;
      }
      if (!names || next >= names.size())
        return function.emitOpError()
               << "argument #" << argument.getArgNumber()
               << " has dynamic extents without names; write tv.dims = [\"b\", "
                  "...] on it, and tv.sizes = {b = MAXIMUM, ...} on the "
                  "function";
      own.push_back(Extent::symbol(cast<StringAttr>(names[next++]).str()));
    }
    if (failed(add(argument, std::move(own), function)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Extents of the results from those of operands with the same factors; an
/// operand that is not read gives the rest.
static LogicalResult
inferByRule(ShardingRuleOpInterface op, ArrayRef<Extents> operands,
            SmallVectorImpl<std::vector<std::optional<Extent>>> &results,
            std::string &why) {
  layout::Rule rule = op.getShardingRule();
  struct Known {
    Extent extent;
    size_t operand, dim;
  };
  std::map<layout::DimFactors, Known> known;
  auto isShifted = [&](const layout::DimFactors &factors) {
    return llvm::any_of(factors, [&](int f) {
      return rule.factors[f].kind == layout::IterationFactor::Kind::Shifted;
    });
  };
  for (auto [i, dims] : llvm::enumerate(rule.operands))
    for (auto [d, factors] : llvm::enumerate(dims)) {
      if (factors.empty() || isShifted(factors))
        continue;
      auto [it, isNew] =
          known.try_emplace(factors, Known{operands[i][d], i, d});
      if (isNew || it->second.extent == operands[i][d])
        continue;
      why = (Twine("operand #") + Twine(i) + "'s dimension " + Twine(d) +
             " has extent " + layout::toString(operands[i][d]) +
             "; it must be " + layout::toString(it->second.extent) +
             ", as operand #" + Twine(it->second.operand) + "'s dimension " +
             Twine(it->second.dim) + " has")
                .str();
      return failure();
    }
  for (auto [i, dims] : llvm::enumerate(rule.results)) {
    results[i].resize(dims.size());
    for (auto [d, factors] : llvm::enumerate(dims)) {
      auto it = known.find(factors);
      if (it != known.end()) {
        results[i][d] = it->second.extent;
        continue;
      }
      for (auto [operand, use] : llvm::zip_equal(operands, rule.uses))
        if (use == layout::Use::Unread && operand.size() == dims.size())
          results[i][d] = operand[d];
    }
  }
  return success();
}

bool ExtentAnalysis::addStaticResults(Operation *op) {
  for (Value operand : op->getOperands())
    if (auto it = extents.find(operand); it != extents.end())
      for (const Extent &extent : it->second)
        if (!extent.getStatic())
          return false;
  for (Value result : op->getResults())
    if (isa<RankedTensorType>(result.getType()))
      for (int64_t extent : getGlobalShape(result.getType()))
        if (extent == layout::kDynamic)
          return false;
  for (Value result : op->getResults())
    if (isa<RankedTensorType>(result.getType())) {
      layout::Shape shape = getGlobalShape(result.getType());
      extents[result] = Extents(shape.begin(), shape.end());
    }
  return true;
}

LogicalResult ExtentAnalysis::addResults(Operation *op) {
  if (addStaticResults(op))
    return success();
  SmallVector<Extents> operands;
  for (Value operand : op->getOperands())
    operands.push_back(extents.lookup(operand));
  SmallVector<std::vector<std::optional<Extent>>> inferred(op->getNumResults());
  std::string why;
  LogicalResult status = success();
  if (auto own = dyn_cast<ExtentsOpInterface>(op)) {
    SmallVector<Extents> found;
    status = own.inferExtents(operands, found, why);
    for (auto [i, result] : llvm::enumerate(found))
      inferred[i].assign(result.begin(), result.end());
  } else if (auto gradient = dyn_cast<GradientOp>(op)) {
    // Behind the function's results, which its own ops tell.
    const size_t first = op->getNumResults() - gradient.getTo().size();
    for (auto [i, argument] : llvm::enumerate(gradient.getTo()))
      inferred[first + i].assign(operands[argument].begin(),
                                 operands[argument].end());
  } else if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op)) {
    status = inferByRule(ruled, operands, inferred, why);
  } else if (isa<MoveOpInterface>(op) ||
             op->hasTrait<OpTrait::GuidesPropagation>()) {
    for (auto [i, operand] : llvm::enumerate(operands))
      inferred[i].assign(operand.begin(), operand.end());
  }
  if (failed(status))
    return op->emitOpError() << why;

  for (OpResult result : op->getResults()) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type)
      continue;
    Extents own;
    auto &from = inferred[result.getResultNumber()];
    for (auto [d, stated] : llvm::enumerate(statedExtents(type))) {
      std::optional<Extent> found = d < from.size() ? from[d] : std::nullopt;
      if (!stated && !found)
        return op->emitOpError()
               << "cannot tell the extent of result #"
               << result.getResultNumber() << "'s dimension " << d;
      if (stated && found && *stated != *found)
        return op->emitOpError()
               << "result #" << result.getResultNumber() << "'s dimension " << d
               << " has extent " << layout::toString(*stated) << "; it must be "
               << layout::toString(*found);
      own.push_back(stated ? *stated : *found);
    }
    if (failed(add(result, std::move(own), op)))
      return failure();
  }
  return success();
}

LogicalResult ExtentAnalysis::add(Value value, Extents own, Operation *op) {
  // First in floating point, which does not overflow.
  double elements = 1;
  for (const Extent &extent : own) {
    double most = std::abs(double(extent.constant));
    for (const auto &[symbols, coefficient] : extent.terms) {
      double term = std::abs(double(coefficient));
      for (const std::string &symbol : symbols)
        if (auto it = maximums.find(symbol); it != maximums.end())
          term *= it->second;
      most += term;
    }
    elements *= std::max(most, 1.0);
  }
  if (elements > kMaxElements)
    return op->emitOpError()
           << "has a tensor of more than 2^" << llvm::Log2_64(kMaxElements)
           << " elements at the sizes' maximums";
  for (const Extent &extent : own)
    if (!extent.evaluate(maximums))
      return op->emitOpError()
             << "a size in extent " << layout::toString(extent)
             << " has no maximum; declare it in 'tv.sizes' of the function";
  extents[value] = std::move(own);
  return success();
}

layout::Shape ExtentAnalysis::getMaximumShape(Value value) const {
  layout::Shape shape;
  for (const Extent &extent : get(value))
    shape.push_back(*extent.evaluate(maximums));
  return shape;
}

layout::Shape ExtentAnalysis::getTypicalShape(Value value) const {
  std::map<std::string, int64_t> sizes = maximums;
  for (auto &[name, size] : sizes)
    size = std::max<int64_t>(size / 2, 1);
  layout::Shape shape;
  for (const Extent &extent : get(value))
    shape.push_back(std::max<int64_t>(extent.evaluate(sizes).value_or(1), 0));
  return shape;
}

layout::Shape ExtentAnalysis::getMultiples(Value value) const {
  layout::Shape shape;
  for (const Extent &extent : get(value)) {
    int64_t multiple = extent.constant;
    for (const auto &[symbols, count] : extent.terms) {
      int64_t term = count;
      for (const std::string &symbol : symbols)
        term *= multiples.at(symbol);
      multiple = std::gcd(multiple, term);
    }
    shape.push_back(multiple);
  }
  return shape;
}

int64_t ExtentAnalysis::getElementBytes(Value value) {
  unsigned bits =
      cast<RankedTensorType>(value.getType()).getElementTypeBitWidth();
  return (bits + 7) / 8;
}

//===----------------------------------------------------------------------===//
// Ops that compute extents
//===----------------------------------------------------------------------===//

static Extents staticOr(RankedTensorType type, Extent dynamic) {
  Extents extents;
  for (int64_t extent : getGlobalShape(type))
    extents.push_back(extent == layout::kDynamic ? dynamic : Extent(extent));
  return extents;
}

LogicalResult ReshapeOp::inferExtents(ArrayRef<Extents> operands,
                                      SmallVectorImpl<Extents> &results,
                                      std::string &why) {
  auto type = cast<RankedTensorType>(getResult().getType());
  layout::Shape shape = getGlobalShape(type);
  Extent total = 1;
  for (const Extent &extent : operands[0])
    total = total * extent;
  size_t dynamic = llvm::count(shape, layout::kDynamic);
  if (dynamic == 1) {
    Extent others = 1;
    for (int64_t extent : shape)
      if (extent != layout::kDynamic)
        others = others * Extent(extent);
    std::optional<Extent> rest = layout::divideExactly(total, others);
    if (!rest) {
      why = "the operand's " + layout::toString(total) +
            " elements are not a multiple of " + layout::toString(others);
      return failure();
    }
    results.push_back(staticOr(type, *rest));
    return success();
  }
  // The dynamic extents of the operand, in order.
  Extents extents, left;
  for (auto [extent, own] :
       llvm::zip_equal(getGlobalShape(getInput().getType()), operands[0]))
    if (extent == layout::kDynamic)
      left.push_back(own);
  auto next = left.begin();
  Extent product = 1;
  for (int64_t extent : shape) {
    if (extent == layout::kDynamic) {
      if (next == left.end()) {
        why = "has more dynamic extents in its result than in its operand";
        return failure();
      }
      extents.push_back(*next++);
    } else {
      extents.push_back(extent);
    }
    product = product * extents.back();
  }
  if (product != total) {
    why = "the operand has " + layout::toString(total) +
          " elements, the result " + layout::toString(product);
    return failure();
  }
  results.push_back(std::move(extents));
  return success();
}

LogicalResult LocalRegionOp::inferExtents(ArrayRef<Extents> operands,
                                          SmallVectorImpl<Extents> &results,
                                          std::string &why) {
  auto extentsOf = [](Value part) -> ArrayRef<Extent> {
    return getLocal(part).getExtents();
  };
  for (auto [i, operand, argument] :
       llvm::enumerate(operands, getOps().getArguments()))
    for (auto [d, own, given] : llvm::enumerate(extentsOf(argument), operand))
      if (own != given) {
        why = "argument #" + std::to_string(i) +
              " in the region is a part of a tensor whose dimension " +
              std::to_string(d) + " has extent " + layout::toString(own) +
              "; the operand's is " + layout::toString(given);
        return failure();
      }
  for (Value value : getYielded())
    results.push_back(Extents(extentsOf(value)));
  return success();
}

LogicalResult ConcatOp::inferExtents(ArrayRef<Extents> operands,
                                     SmallVectorImpl<Extents> &results,
                                     std::string &why) {
  Extents extents = operands[0];
  for (auto [i, operand] : llvm::enumerate(operands.drop_front()))
    for (auto [d, extent] : llvm::enumerate(operand)) {
      if (d == getDim()) {
        extents[d] = extents[d] + extent;
        continue;
      }
      if (extents[d] == extent)
        continue;
      why = (Twine("operand #") + Twine(i + 1) + "'s dimension " + Twine(d) +
             " has extent " + layout::toString(extent) + "; it must be " +
             layout::toString(extents[d]) + ", as operand #0's has")
                .str();
      return failure();
    }
  results.push_back(std::move(extents));
  return success();
}

LogicalResult PadOp::inferExtents(ArrayRef<Extents> operands,
                                  SmallVectorImpl<Extents> &results,
                                  std::string &why) {
  Extents extents = operands[0];
  for (auto [d, extent] : llvm::enumerate(extents))
    extent = extent + Extent(getLow()[d] + getHigh()[d]);
  results.push_back(std::move(extents));
  return success();
}
