//===- PlannedMemory.cpp - the temporaries of a plan ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What EmitModule.cpp says of each tensor and Binding.cpp of its lifetime,
// before there is a module.
//
//===----------------------------------------------------------------------===//

#include "Memory/PlannedMemory.h"
#include "Comm/Comm.h"
#include "Layout/Arena.h"
#include "Layout/Transfers.h"
#include "Plan/Target.h"
#include "TensorView/Contract.h"
#include "TensorView/ExtentAnalysis.h"

using namespace mlir;
using namespace tessera;

std::optional<size_t> Buffer::nextRead(size_t step) const {
  auto next = llvm::upper_bound(reads, step);
  return next == reads.end() ? std::nullopt : std::optional(*next);
}

PlannedMemory::PlannedMemory(func::FuncOp main)
    : main(main), states(tv::getStates(main)),
      inPlace(plan::findInPlace(main)),
      alignment(plan::getTarget(main).getLimits().multiprocessors
                    ? layout::kDeviceAlignment
                    : layout::kHostAlignment) {
  if (auto sizes = main->getAttrOfType<DictionaryAttr>(tv::kSizesAttr))
    for (NamedAttribute size : sizes)
      maximums[size.getName().str()] =
          tv::DeclaredSize(size.getValue()).maximum;
}

FailureOr<PlannedMemory> PlannedMemory::get(func::FuncOp main) {
  PlannedMemory memory(main);
  auto hasMaximum = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    auto local = type ? dyn_cast_or_null<tv::LocalAttr>(type.getEncoding())
                      : tv::LocalAttr();
    return !local ||
           llvm::all_of(local.getExtents(), [&](const layout::Extent &extent) {
             return extent.evaluate(memory.maximums);
           });
  };
  auto error = [](Location loc) {
    return emitError(loc) << "a dynamic size has no maximum; declare it in "
                             "'tv.sizes' of '@main'";
  };
  for (BlockArgument argument : main.getArguments())
    if (!hasMaximum(argument))
      return error(argument.getLoc());
  for (Operation &op : main.getBody().front())
    if (!llvm::all_of(op.getResults(), hasMaximum))
      return error(op.getLoc());
  if (failed(memory.update()))
    return failure();
  return memory;
}

layout::Shape PlannedMemory::getShape(Value value) const {
  layout::Shape &shape = shapes[value.getType()];
  const tv::LocalAttr local = tv::getLocal(value);
  if (shape.empty() && !local.getExtents().empty()) {
    layout::Shape global;
    for (const layout::Extent &extent : local.getExtents())
      global.push_back(*extent.evaluate(maximums));
    shape = layout::maxLocalShape(
        layout::instantiate(local.getLayoutView(), global), global,
        local.getLayoutMesh());
  }
  return shape;
}

int64_t PlannedMemory::getElements(Value value) const {
  int64_t elements = 1;
  for (int64_t extent : getShape(value))
    elements *= extent;
  return elements;
}

int64_t PlannedMemory::getBytes(Value value) const {
  return getElements(value) * tv::ExtentAnalysis::getElementBytes(value);
}

/// An output that a step writes, or a state that is replaced where it lies.
bool PlannedMemory::isCallers(Value value) const {
  if (inPlace.states.contains(value))
    return true;
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    return isa<func::ReturnOp>(use.getOwner()) &&
           !states[use.getOperandNumber()];
  });
}

/// Whether collectives touch it, or it is a state's next value.
bool PlannedMemory::isSymmetric(Value value, OpResult result) const {
  if (isa<comm::CollectiveOpInterface>(result.getOwner()))
    return true;
  for (Value each : {value, Value(result)})
    if (llvm::any_of(
            each.getUsers(),
            llvm::IsaPred<comm::CollectiveOpInterface, func::ReturnOp>))
      return true;
  return false;
}

LogicalResult PlannedMemory::update() {
  Block &block = main.getBody().front();
  variants = plan::getVariants(block);
  steps.clear();
  buffers.clear();
  bufferOf.clear();
  for (Operation &op : block) {
    if (isa<plan::ConstantOp, plan::ChooseOp, plan::JoinOp>(op))
      continue;
    if (isa<plan::CopyOp>(op) && inPlace.states.contains(op.getResult(0)))
      continue; // is none
    if (auto alias = dyn_cast<plan::AliasOp>(op)) {
      if (auto found = bufferOf.find(alias.getInput()); found != bufferOf.end())
        bufferOf[alias.getResult()] = found->second;
      continue;
    }
    if (!isa<plan::PlanDialect>(op.getDialect()) &&
        !isa<comm::CollectiveOpInterface, func::ReturnOp>(op))
      return op.emitError() << "'" << op.getName()
                            << "' is no op of a plan; run tv-emit-kernels";
    if (variants.lookup(&op).number != 0)
      continue;
    const size_t step = steps.size();
    steps.push_back(&op);
    for (Value operand : op.getOperands())
      if (auto found = bufferOf.find(operand); found != bufferOf.end()) {
        auto &reads = buffers[found->second].reads;
        if (reads.empty() || reads.back() != step)
          reads.push_back(step);
      }
    for (OpResult result : op.getResults()) {
      Value value = plan::getChosen(result);
      if (plan::JoinOp join = plan::getJoin(value))
        value = join.getResult();
      if (isCallers(value))
        continue;
      // Of what lies in one memory, the first that is written.
      if (auto found = bufferOf.find(value); found != bufferOf.end()) {
        bufferOf[result] = found->second;
        continue;
      }
      bufferOf[value] = bufferOf[result] = buffers.size();
      buffers.push_back({value,
                         int64_t(llvm::alignTo(getBytes(value), alignment)),
                         isSymmetric(value, result), step});
    }
  }
  return success();
}

const Buffer *PlannedMemory::find(Value value) const {
  auto found = bufferOf.find(value);
  return found == bufferOf.end() ? nullptr : &buffers[found->second];
}

int64_t PlannedMemory::getPeak() const {
  int64_t bytes = 0;
  for (bool symmetric : {false, true}) {
    std::vector<layout::Lifetime> lifetimes;
    for (const Buffer &buffer : buffers)
      if (buffer.isSymmetric == symmetric)
        lifetimes.push_back({getBytes(buffer.value), int64_t(buffer.first),
                             int64_t(buffer.last())});
    bytes += layout::assignOffsets(lifetimes, alignment);
  }
  return bytes;
}
