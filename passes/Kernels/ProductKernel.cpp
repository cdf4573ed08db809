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
#include "Kernels/Windows.h"

using namespace mlir;
using namespace tessera;

/// Results that one product may store.
static constexpr size_t kMaxOutputs = 2;

static RankedTensorType getTensor(Value value) {
  return cast<RankedTensorType>(value.getType());
}

StringRef tessera::getSource(Operation *op) {
  auto name = dyn_cast<NameLoc>(op->getLoc());
  // What tv-simplify made keeps the name of what the program says.
  if (name && isa<tv::ContractionOpInterface>(op) &&
      isa_and_present<tv::TensorViewDialect>(
          OperationName(name.getName(), op->getContext()).getDialect()))
    return name.getName().strref();
  return op->getName().getStringRef();
}

bool tessera::isPlain(Value tensor) {
  return llvm::all_of(getSpace(tensor.getType()), [](const LocalDim &dim) {
    return dim.extents.size() == 1;
  });
}

std::optional<tv::ContractionLabels>
tessera::getLocalLabels(tv::ContractionOpInterface op) {
  // A merged dimension has a run of labels, none of which is elsewhere.
  llvm::SmallDenseMap<int32_t, std::pair<ArrayRef<int32_t>, int32_t>> runs;
  int32_t count = 0;
  bool fits = true;
  auto take = [&](Value tensor, ArrayRef<int32_t> global) {
    SmallVector<int32_t> local;
    for (const LocalDim &dim : getSpace(tensor.getType())) {
      ArrayRef<int32_t> run = global.take_front(dim.extents.size());
      global = global.drop_front(run.size());
      bool isNew = !runs.contains(run.front());
      for (int32_t label : run) {
        auto [it, inserted] = runs.try_emplace(label, run, count);
        fits &= inserted == isNew && it->second.first == run;
      }
      count += isNew;
      local.push_back(runs[run.front()].second);
    }
    return local;
  };
  const tv::ContractionLabels global = op.getContractionLabels();
  tv::ContractionLabels local;
  local.a = take(op.getA(), global.a);
  local.b = take(op.getB(), global.b);
  local.result = take(op->getResult(0), global.result);
  return fits ? std::optional(local) : std::nullopt;
}

std::optional<ProductOrders>
tessera::getProductOrders(tv::ContractionOpInterface op) {
  std::optional<tv::ContractionLabels> labels = getLocalLabels(op);
  if (!labels || labels->result.size() < 2)
    return std::nullopt;
  const auto &[a, b, result] = *labels;
  // One label is contracted, all of the result's but its columns are a's.
  SmallVector<int32_t> rows(ArrayRef(result).drop_back());
  for (int32_t label : a)
    if (!llvm::is_contained(result, label))
      rows.push_back(label);
  SmallVector<int32_t> columns = {result.back(), rows.back()};
  if (b.size() == 3 && result.size() == 3)
    columns.insert(columns.begin(), result.front());
  ProductOrders orders;
  auto order = [](ArrayRef<int32_t> of, ArrayRef<int32_t> wanted,
                  SmallVectorImpl<int64_t> &to) {
    for (int32_t label : wanted)
      to.push_back(llvm::find(of, label) - of.begin());
    return of.size() == wanted.size() &&
           llvm::all_of(wanted, [&](int32_t label) {
             return llvm::is_contained(of, label);
           });
  };
  if (rows.size() != result.size() || !order(a, rows, orders.a) ||
      !order(b, columns, orders.b))
    return std::nullopt;
  return orders;
}

bool tessera::hasOwnBoxes(RankedTensorType type, int64_t unit) {
  Memory memory = getOwnMemory(type);
  int64_t size = type.getDimSize(unit);
  return memory.order.back() == unit && !ShapedType::isDynamic(size) &&
         size > 0 && size % 8 == 0;
}

static bool isLocalSlice(Operation *op) {
  // comm's own slice: a box of what a device has, which no interface of tv is.
  return isa<comm::SliceOp>(op);
}

/// Whether a reshape that has such rows of its own has them if it lies as this
/// does, too.
static bool hasBoxesBefore(Value tensor) {
  Operation *op = tensor.getDefiningOp();
  if (isa_and_present<tv::ReinterpretOpInterface>(op))
    return hasBoxesBefore(op->getOperand(0));
  const int64_t unit = getTensor(tensor).getRank() - 1;
  if (op && (isLocalSlice(op) || getPermutation(op) || getWindow(op)))
    return hasBoxes(tensor, unit);
  return getOwnMemory(tensor.getType()).order.back() == unit;
}

bool tessera::hasBoxes(Value tensor, int64_t unit) {
  if (!isPlain(tensor))
    return false;
  const bool fits = hasOwnBoxes(getTensor(tensor), unit);
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return fits;
  Value source = op->getNumOperands() == 1 ? op->getOperand(0) : Value();
  if (isa<tv::ReinterpretOpInterface>(op))
    return fits && unit == getTensor(tensor).getRank() - 1 &&
           hasBoxesBefore(source);
  // Of a slice that may be a window or in memory of its own, both must fit.
  if (auto box = dyn_cast<tv::WindowOpInterface>(op);
      box && box.getWhole() == source)
    return fits && isPlain(source) &&
           hasMultiple(getSpace(source.getType())[unit],
                       box.getBoxOffsets().front()[unit], 8) &&
           hasBoxes(source, unit);
  if (isLocalSlice(op))
    return fits && source && isPlain(source) &&
           getSpace(source.getType())[unit] ==
               getSpace(tensor.getType())[unit] &&
           hasBoxes(source, unit);
  if (auto permutation = getPermutation(op))
    return hasBoxes(source, (*permutation)[unit]);
  return fits;
}

bool tessera::mayFollowProduct(const FusedOps &fused, Operation *op) {
  if (!isElementwise(op))
    return false;
  Operation *product = fused.ops.front();
  Type element = getTensor(product->getResult(0)).getElementType();
  for (Value result : op->getResults())
    if (getTensor(result).getElementType() != element || !isPlain(result) ||
        !hasOwnBoxes(getTensor(result), getTensor(result).getRank() - 1))
      return false;
  if (wantsSeveral(op))
    return false;
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
                          Value a, Value b, ArrayRef<Value> outputs) {
  auto op = cast<tv::ContractionOpInterface>(fused.ops.front());
  Value result = op->getResult(0), bias = op.getBias(), addend = op.getAddend();
  for (Value output : outputs)
    emitter.addOutput(output);
  Value left = emitter.argument(a), right = emitter.argument(b);
  SmallVector<Value> memory;
  for (Value output : outputs)
    memory.push_back(emitter.argument(output));
  OpBuilder &builder = emitter.builder();
  auto product =
      plan::ProductOp::create(builder, op->getLoc(), left, right, memory);
  if (!bias && !addend && outputs == ArrayRef(result))
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
        if (addend)
          sum = arith::AddFOp::create(builder, emitter.loc(), sum,
                                      emitter.element(addend, at));
        emitter.setElement(result, at, sum);
        return llvm::map_to_vector(
            outputs, [&](Value output) { return emitter.element(output, at); });
      });
}
