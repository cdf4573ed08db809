//===- Inline.cpp - the bodies of called functions ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Differentiate/Passes.h"
#include "TensorView/TensorView.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_INLINEPASS
#include "Differentiate/Passes.h.inc"
} // namespace tessera::tv

namespace {
/// Puts the bodies of called functions in the place of calls.
class Inliner {
public:
  explicit Inliner(ModuleOp module) : symbols(module) {}
  LogicalResult run(func::FuncOp function);
  /// Whether there were calls.
  bool hasInlined() const { return !sizes.empty(); }

private:
  LogicalResult count(func::FuncOp function);
  FailureOr<func::FuncOp> getCallee(func::CallOp call);

  SymbolTable symbols;
  /// How many ops a function is once its calls are inlined; none while they are
  /// being counted.
  llvm::DenseMap<func::FuncOp, std::optional<uint64_t>> sizes;
};
} // namespace

FailureOr<func::FuncOp> Inliner::getCallee(func::CallOp call) {
  auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!callee || callee.isExternal())
    return call.emitError() << "calls '" << call.getCallee()
                            << "', which has no body here; a sharded program "
                               "holds only tv ops "
                               "and calls that inline";
  if (!callee.getBody().hasOneBlock() || callee.getBody().front().empty() ||
      !isa<func::ReturnOp>(callee.getBody().front().back()))
    return call.emitError() << "'" << call.getCallee()
                            << "' has control flow; only straight-line "
                               "functions inline";
  return callee;
}

static SmallVector<func::CallOp> getCalls(Operation *op) {
  SmallVector<func::CallOp> calls;
  op->walk([&](func::CallOp call) { calls.push_back(call); });
  return calls;
}

/// Fills `sizes` for `function` and all that it calls, however deep.
LogicalResult Inliner::count(func::FuncOp function) {
  struct Frame {
    func::FuncOp function;
    SmallVector<func::CallOp> calls;
    size_t next;
    uint64_t size;
  };
  std::vector<Frame> frames;
  auto enter = [&](func::FuncOp function) {
    sizes[function] = std::nullopt;
    // Without its calls and return.
    SmallVector<func::CallOp> calls = getCalls(function);
    uint64_t own = 0;
    for (Operation &op : function.getBody().front())
      own += !isa<func::CallOp, func::ReturnOp>(op);
    frames.push_back({function, std::move(calls), 0, own});
  };
  if (!sizes.contains(function))
    enter(function);
  while (!frames.empty()) {
    Frame &frame = frames.back();
    if (frame.next == frame.calls.size()) {
      sizes[frame.function] = frame.size;
      frames.pop_back();
      continue;
    }
    func::CallOp call = frame.calls[frame.next];
    FailureOr<func::FuncOp> callee = getCallee(call);
    if (failed(callee))
      return failure();
    auto known = sizes.find(*callee);
    if (known == sizes.end()) {
      enter(*callee);
      continue;
    }
    if (!known->second)
      return call.emitError() << "'" << call.getCallee()
                              << "' calls itself; recursion does not inline";
    frame.size = llvm::SaturatingAdd(frame.size, *known->second);
    ++frame.next;
  }
  return success();
}

LogicalResult Inliner::run(func::FuncOp function) {
  SmallVector<func::CallOp> calls = getCalls(function);
  if (calls.empty())
    return success();
  if (failed(count(function)))
    return failure();
  if (uint64_t size = *sizes[function]; size > kMaxOps) {
    func::CallOp largest = calls.front();
    auto sizeOf = [&](func::CallOp call) {
      return *sizes[symbols.lookup<func::FuncOp>(call.getCallee())];
    };
    for (func::CallOp call : calls)
      if (sizeOf(call) > sizeOf(largest))
        largest = call;
    bool isExact = size != std::numeric_limits<uint64_t>::max();
    return largest.emitError()
           << "'" << largest.getCallee() << "' inlines here to "
           << (isExact ? "" : "at least ") << sizeOf(largest) << " ops, and '"
           << function.getName() << "' becomes " << size
           << "; a program may have " << kMaxOps;
  }
  // Calls in what is inlined are of `function`, too: `calls` grows.
  for (size_t i = 0; i < calls.size(); ++i) {
    func::CallOp call = calls[i];
    Block &body =
        symbols.lookup<func::FuncOp>(call.getCallee()).getBody().front();
    OpBuilder builder(call);
    IRMapping mapping;
    mapping.map(body.getArguments(), call.getOperands());
    for (Operation &op : body.without_terminator()) {
      Operation *clone = builder.clone(op, mapping);
      clone->setLoc(CallSiteLoc::get(op.getLoc(), call.getLoc()));
      llvm::append_range(calls, getCalls(clone));
    }
    for (auto [result, value] : llvm::zip_equal(
             call.getResults(), body.getTerminator()->getOperands()))
      result.replaceAllUsesWith(mapping.lookupOrDefault(value));
    call.erase();
  }
  return success();
}

namespace {
struct Inline : tv::impl::InlinePassBase<Inline> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    Inliner inliner(module);
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    // Public functions, and what they still name once calls are inlined.
    llvm::SetVector<Operation *> needed;
    for (func::FuncOp function : functions)
      if (function.isPublic())
        needed.insert(function);
    for (size_t i = 0; i < needed.size(); ++i) {
      if (failed(inliner.run(cast<func::FuncOp>(needed[i]))))
        return signalPassFailure();
      if (auto uses = SymbolTable::getSymbolUses(needed[i]))
        for (SymbolTable::SymbolUse use : *uses)
          if (auto function = module.lookupSymbol<func::FuncOp>(
                  use.getSymbolRef().getRootReference()))
            needed.insert(function);
    }
    for (func::FuncOp function : functions)
      if (!needed.contains(function))
        function.erase();
    if (!inliner.hasInlined() && needed.size() == functions.size())
      markAllAnalysesPreserved(); // and nothing is verified again
  }
};
} // namespace
