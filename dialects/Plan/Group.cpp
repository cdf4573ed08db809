//===- Group.cpp - ops that run together ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What may stand in a plan.group. That values leave it by its results alone is
// a matter of dominance, which MLIR checks.
//
//===----------------------------------------------------------------------===//

#include "Plan/Plan.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::plan;

Operation *GroupOp::getProduct() {
  auto products = getBody().getOps<tv::ContractionOpInterface>();
  return products.empty() ? nullptr : (*products.begin()).getOperation();
}

/// Whether an op's elements depend on `value`'s.
static bool reads(Operation *op, Value value) {
  return llvm::is_contained(tv::getOperandsAndCaptured(op), value);
}

LogicalResult GroupOp::verify() {
  Block &block = getBody().front();
  if (block.getNumArguments() || block.empty() || !isa<YieldOp>(block.back()))
    return emitOpError() << "is one block without arguments that ends in "
                            "'plan.yield'";
  Operation *product = getProduct();
  bool follows = false, sums = false;
  for (Operation &op : getOps()) {
    if (!isa<tv::TensorViewDialect>(op.getDialect()) ||
        !isMemoryEffectFree(&op) || isa<tv::MoveOpInterface>(op) ||
        !llvm::all_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>))
      return op.emitOpError() << "is no op of a group: those are functions of "
                                 "local tensors";
    if (isa<tv::ContractionOpInterface>(op) && &op != product)
      return op.emitOpError() << "is a second matrix product of its group";
    follows |= product && op.hasTrait<OpTrait::Pointwise>() &&
               isa<tv::CompositeOpInterface>(op) &&
               reads(&op, product->getResult(0));
    auto element = dyn_cast<tv::ElementOpInterface>(op);
    sums |= element && element.getReduction();
  }
  if ((getVariants() || getWithout() || getEpilogue() || getSummed()) &&
      !product)
    return emitOpError() << "says what there is of a matrix product, and has "
                            "none";
  if (getVariants() && getVariants()->empty())
    return emitOpError() << "needs a variant that there is";
  if ((getEpilogue() && !follows) || (getSummed() && !sums))
    return emitOpError() << "has no op that is "
                         << (getEpilogue() && !follows ? "the epilogue"
                                                       : "the sums")
                         << " of its product";
  if (getYielded().getTypes() != getResultTypes())
    return emitOpError() << "yields other types than its results have";
  llvm::SmallPtrSet<Value, 4> yielded;
  for (Value value : getYielded())
    if (value.getParentBlock() != &block || !yielded.insert(value).second)
      return emitOpError() << "yields what it does not make, or twice";
  if (yielded.empty())
    return emitOpError() << "yields nothing; what is not read does not run";
  return success();
}
