//===- ProductKernel.cpp - a matrix product as one op of a kernel ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The `own` variant: one op, for a kernel that reads and writes boxes of rows
// of 16-byte pieces. So how tensors lie is a matter of their types and of the
// windows on them.
//
//===----------------------------------------------------------------------===//

#include "Comm/Comm.h"
#include "Kernels/LoopKernels.h"

using namespace mlir;
using namespace tessera;

/// Results that one product may store.
static constexpr size_t kMaxOutputs = 2;

static RankedTensorType getTensor(Value value) {
  return cast<RankedTensorType>(value.getType());
}

bool tessera::isPlain(Value tensor) {
  return llvm::all_of(getSpace(tensor.getType()), [](const LocalDim &dim) {
    return dim.extents.size() == 1;
  });
}

std::pair<Value, Value> tessera::getFactors(Operation *op) {
  if (auto linear = dyn_cast<tv::LinearOp>(op))
    return {linear.getInput(), linear.getWeight()};
  auto matmul = cast<tv::MatmulOp>(op);
  auto transpose = matmul.getRhs().getDefiningOp<tv::TransposeOp>();
  if (!transpose || !isPlain(transpose.getInput()))
    return {matmul.getLhs(), Value()};
  auto swapped = llvm::to_vector(
      llvm::seq<int64_t>(0, getTensor(transpose.getInput()).getRank()));
  std::swap(swapped.back(), swapped[swapped.size() - 2]);
  if (transpose.getPerm() != ArrayRef(swapped))
    return {matmul.getLhs(), Value()};
  return {matmul.getLhs(), transpose.getInput()};
}

bool tessera::hasOwnBoxes(RankedTensorType type, int64_t unit) {
  Memory memory = getOwnMemory(type);
  int64_t size = type.getDimSize(unit);
  return memory.order.back() == unit && !ShapedType::isDynamic(size) &&
         size > 0 && size % 8 == 0;
}

bool tessera::hasBoxes(Value tensor, int64_t unit) {
  if (!isPlain(tensor))
    return false;
  if (auto op = tensor.getDefiningOp<tv::TransposeOp>())
    return hasBoxes(op.getInput(), op.getPerm()[unit]);
  if (tensor.getDefiningOp<tv::ReshapeOp>())
    return unit == getTensor(tensor).getRank() - 1 &&
           hasOwnBoxes(getTensor(tensor), unit);
  // Of a slice that may be a window or in memory of its own, both must fit.
  if (auto op = tensor.getDefiningOp<tv::SliceOp>())
    return op.getOffsets()[unit] % 8 == 0 && hasBoxes(op.getInput(), unit) &&
           hasOwnBoxes(getTensor(tensor), unit);
  if (auto op = tensor.getDefiningOp<comm::SliceOp>()) {
    Value source = op->getOperand(0);
    return op->getNumOperands() == 1 && isPlain(source) &&
           getSpace(source.getType())[unit] ==
               getSpace(tensor.getType())[unit] &&
           hasBoxes(source, unit) && hasOwnBoxes(getTensor(tensor), unit);
  }
  return hasOwnBoxes(getTensor(tensor), unit);
}

bool tessera::mayFollowProduct(const FusedOps &fused, Operation *op) {
  if (!isPointwise(op))
    return false;
  Operation *product = fused.ops.front();
  Type element = getTensor(product->getResult(0)).getElementType();
  for (Value result : op->getResults())
    if (getTensor(result).getElementType() != element || !isPlain(result) ||
        !hasOwnBoxes(getTensor(result), getTensor(result).getRank() - 1))
      return false;
  // Of numbers that come several at a time an epilogue would use one.
  llvm::SetVector<Value> read;
  read.insert_range(getReadValues(op));
  for (size_t i = 0; i < read.size(); ++i)
    if (Operation *source = read[i].getDefiningOp(); source && isFree(source)) {
      if (cast<tv::ElementOpInterface>(source).getElementsAtOnce() > 1)
        return false;
      read.insert_range(getReadValues(source));
    }
  size_t outputs = op->getNumResults();
  for (Operation *each : fused.ops)
    for (Value value : each->getResults())
      outputs += llvm::any_of(value.getUsers(), [&](Operation *user) {
        // (Others may read its extents.)
        bool reads =
            !isFree(user) || llvm::is_contained(getReadValues(user), value);
        return reads && user != op && !fused.ops.contains(user);
      });
  return outputs <= kMaxOutputs;
}

void tessera::emitProduct(KernelEmitter &emitter, const FusedOps &fused,
                          ArrayRef<Value> outputs) {
  Operation *op = fused.ops.front();
  Value result = op->getResult(0), bias;
  if (auto linear = dyn_cast<tv::LinearOp>(op))
    bias = linear.getBias();
  for (Value output : outputs)
    emitter.addOutput(output);
  auto [a, b] = getFactors(op);
  Value left = emitter.argument(a), right = emitter.argument(b);
  SmallVector<Value> memory;
  for (Value output : outputs)
    memory.push_back(emitter.argument(output));
  OpBuilder &builder = emitter.builder();
  auto product =
      plan::ProductOp::create(builder, op->getLoc(), left, right, memory);
  if (!bias && outputs == ArrayRef(result))
    return;
  SmallVector<Type> types(getTensor(result).getRank() + 1,
                          builder.getIndexType());
  types[0] = builder.getF32Type();
  emitter.scalarRegion(
      product.getEpilogue(), types, [&](ArrayRef<Value> arguments) {
        Value sum = arguments.front();
        ArrayRef<Value> at = arguments.drop_front();
        if (bias)
          sum = arith::AddFOp::create(builder, emitter.loc(), sum,
                                      emitter.element(bias, at.back()));
        emitter.setElement(result, at, sum);
        return llvm::map_to_vector(
            outputs, [&](Value output) { return emitter.element(output, at); });
      });
}
