//===- CopyPerUse.cpp - values made for each use --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bind/CopyPerUse.h"
#include "TensorView/Contract.h"
#include "TensorView/TensorView.h"

using namespace mlir;
using namespace tessera;

LogicalResult tv::copyPerUse(func::FuncOp function) {
  uint64_t size = function.getBody().front().getOperations().size();
  // Backwards, so that a copied broadcast's operand is seen after its copies.
  SmallVector<Operation *> ops;
  for (Operation &op : function.getBody().front())
    if (op.hasTrait<OpTrait::Rematerializable>())
      ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops)) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : op->getUses())
      uses.push_back(&use);
    // Copies of an op that reads one twice double with each.
    size += uses.size();
    if (size > kMaxOps)
      return op->emitError()
             << "has " << uses.size() << " uses, each with a copy of its own, "
             << "and '" << function.getName() << "' becomes more than "
             << kMaxOps << " ops; a program may have that many";
    // The first in program order keeps the op, and the copies follow.
    llvm::sort(uses, [](OpOperand *a, OpOperand *b) {
      return a->getOwner() == b->getOwner()
                 ? a->getOperandNumber() > b->getOperandNumber()
                 : b->getOwner()->isBeforeInBlock(a->getOwner());
    });
    for (OpOperand *use : ArrayRef(uses).drop_back(uses.empty() ? 0 : 1)) {
      OpBuilder builder(op->getContext());
      builder.setInsertionPointAfter(op);
      use->set(builder.clone(*op)->getResult(0));
    }
  }
  return success();
}
