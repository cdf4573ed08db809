//===- Localize.cpp - the program of one device ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The local form of every op is the same op on local types, so types change in
// place; only planned reshards become other ops. Extents of all values are
// gathered first, from global types.
//
//===----------------------------------------------------------------------===//

#include "Comm/Comm.h"
#include "Localize/Passes.h"
#include "TensorView/ExtentAnalysis.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_LOCALIZEPASS
#include "Localize/Passes.h.inc"
} // namespace tessera::tv

/// The values of the body of `function` that are tensors.
static llvm::SmallVector<Value> tensorsOf(func::FuncOp function) {
  llvm::SmallVector<Value> tensors;
  auto add = [&](ValueRange values) {
    for (Value value : values)
      if (isa<RankedTensorType>(value.getType()))
        tensors.push_back(value);
  };
  for (Block &block : function.getBody()) {
    add(block.getArguments());
    for (Operation &op : block)
      add(op.getResults());
  }
  return tensors;
}

/// The comm op that does the step of `op`.
static void replaceByCollective(func::FuncOp function, ReshardOp op,
                                StepAttr plan, uint64_t id) {
  OpBuilder builder(op);
  OperationState state(op.getLoc(),
                       (comm::CommDialect::getDialectNamespace() + Twine(".") +
                        stringifyStepKind(plan.getKind()))
                           .str());
  state.addOperands(op.getInputs());
  state.addTypes(op.getResultTypes());
  state.addAttribute(
      "axes",
      comm::AxesAttr::get(op.getContext(), plan.getMesh(), plan.getAxes()));
  state.addAttribute("id", builder.getI64IntegerAttr(id));
  if (!plan.getLoser().empty())
    state.addAttribute("loser", plan.getLoser());
  if (auto moves = op->getAttrOfType<DenseI64ArrayAttr>(kMoveAttr)) {
    std::string numbers =
        llvm::join(llvm::map_range(moves.asArrayRef(),
                                   [](int64_t n) { return llvm::itostr(n); }),
                   " ");
    remark::passed(op.getLoc(), remark::RemarkOpts::name("step")
                                    .category("tv-localize")
                                    .function(function.getName()))
        << remark::metric("id", id) << remark::metric("moves", numbers);
  }
  op->replaceAllUsesWith(builder.create(state));
  op.erase();
}

static LogicalResult localize(func::FuncOp function, uint64_t &nextId) {
  FailureOr<ExtentAnalysis> extents = ExtentAnalysis::run(function);
  if (failed(extents))
    return failure();

  llvm::SmallVector<ReshardOp> reshards;
  function.walk([&](ReshardOp op) { reshards.push_back(op); });

  llvm::SmallVector<std::pair<Value, Type>> types;
  for (Value value : tensorsOf(function)) {
    auto type = cast<RankedTensorType>(value.getType());
    types.push_back({value, getLocalType(type, extents->get(value).vec())});
  }
  for (auto [value, type] : types)
    value.setType(type);
  for (ReshardOp op : reshards)
    replaceByCollective(function, op, op.getPlanAttr(), nextId++);

  Block &entry = function.getBody().front();
  function.setFunctionType(FunctionType::get(
      function.getContext(), entry.getArgumentTypes(),
      function.getBody().back().getTerminator()->getOperandTypes()));
  // The local types name their dynamic extents.
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    function.removeArgAttr(i, kDimsAttr);
  return success();
}

namespace {
struct Localize : tv::impl::LocalizePassBase<Localize> {
  void runOnContract() override {
    uint64_t nextId = 0;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(localize(function, nextId)))
        return signalPassFailure();
  }
};
} // namespace
