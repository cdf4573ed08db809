//===- Remarks.cpp - remarks that later passes may make untrue ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Place/Remarks.h"
#include "TensorView/Notes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tessera;

FunctionType tv::typesOf(Operation *op) {
  return FunctionType::get(op->getContext(), op->getOperandTypes(),
                           op->getResultTypes());
}

void tv::leaveRemark(Operation *op, const Twine &text, FunctionType types) {
  Builder builder(op->getContext());
  SmallVector<Attribute> left;
  if (auto known = op->getAttrOfType<ArrayAttr>(kRemarksAttr))
    left.assign(known.begin(), known.end());
  left.push_back(builder.getArrayAttr(
      {builder.getStringAttr(text), TypeAttr::get(types)}));
  op->setAttr(kRemarksAttr, builder.getArrayAttr(left));
}

/// The texts of the remarks that are true of `op`.
static SmallVector<StringRef> remarksOf(Operation *op) {
  SmallVector<StringRef> texts;
  auto left = op->getAttrOfType<ArrayAttr>(tv::kRemarksAttr);
  if (!left)
    return texts;
  const FunctionType types = tv::typesOf(op);
  for (auto remark : left.getAsRange<ArrayAttr>())
    if (cast<TypeAttr>(remark[1]).getValue() == types)
      texts.push_back(cast<StringAttr>(remark[0]).getValue());
  return texts;
}

int64_t tv::countRemarks(func::FuncOp function) {
  int64_t count = 0;
  function.walk([&](Operation *op) { count += !remarksOf(op).empty(); });
  return count;
}

void tv::reportRemarks(func::FuncOp function) {
  function.walk([](Operation *op) {
    for (StringRef text : remarksOf(op))
      emitRemark(op->getLoc()) << text;
    op->removeAttr(kRemarksAttr);
  });
}
