//===- Inline.cpp - the bodies of called functions ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Differentiate/Callee.h"
#include "Differentiate/Passes.h"
#include "TensorView/ExtentAnalysis.h"

#include "mlir/IR/BuiltinOps.h"
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
  /// What a cast gives in place of a call: the result of this number.
  struct Given {
    StringRef callee;
    unsigned number;
  };

  LogicalResult count(func::FuncOp function);
  FailureOr<func::FuncOp> getCallee(CallOpInterface call);
  LogicalResult instantiate(func::FuncOp function,
                            const llvm::DenseSet<Operation *> &general,
                            const llvm::DenseMap<Operation *, Given> &given);

  SymbolTable symbols;
  /// How many ops a function is once its calls are inlined; none while they are
  /// being counted.
  llvm::DenseMap<func::FuncOp, std::optional<uint64_t>> sizes;
};
} // namespace

static StringRef nameOfCallee(CallOpInterface call) {
  return cast<SymbolRefAttr>(call.getCallableForCallee())
      .getLeafReference()
      .getValue();
}

LogicalResult tv::verifyUnchecked(Operation *user, func::FuncOp callee) {
  for (unsigned i = 0; i < callee.getNumResults(); ++i)
    if (callee.getResultAttr(i, kCheckAttr))
      return user->emitError()
             << "'" << callee.getName() << "' checks result #" << i
             << "; 'tv.check' is of the results of the function that runs";
  return success();
}

FailureOr<func::FuncOp> Inliner::getCallee(CallOpInterface call) {
  auto callee = symbols.lookup<func::FuncOp>(nameOfCallee(call));
  if (!callee || callee.isExternal())
    return call.emitError() << "calls '" << nameOfCallee(call)
                            << "', which has no body here; a sharded program "
                               "holds only tv ops "
                               "and calls that inline";
  if (!callee.getBody().hasOneBlock() || callee.getBody().front().empty() ||
      !isa<func::ReturnOp>(callee.getBody().front().back()))
    return call.emitError() << "'" << nameOfCallee(call)
                            << "' has control flow; only straight-line "
                               "functions inline";
  if (failed(verifyUnchecked(call, callee)))
    return failure();
  return callee;
}

static SmallVector<CallOpInterface> getCalls(Operation *op) {
  SmallVector<CallOpInterface> calls;
  op->walk([&](CallOpInterface call) {
    if (isa<SymbolRefAttr>(call.getCallableForCallee()))
      calls.push_back(call);
  });
  return calls;
}

/// Fills `sizes` for `function` and all that it calls, however deep.
LogicalResult Inliner::count(func::FuncOp function) {
  struct Frame {
    func::FuncOp function;
    SmallVector<CallOpInterface> calls;
    size_t next;
    uint64_t size;
  };
  std::vector<Frame> frames;
  auto enter = [&](func::FuncOp function) {
    sizes[function] = std::nullopt;
    // Without its calls and return.
    SmallVector<CallOpInterface> calls = getCalls(function);
    uint64_t own = 0;
    for (Operation &op : function.getBody().front())
      own += !isa<CallOpInterface, func::ReturnOp>(op);
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
    CallOpInterface call = frame.calls[frame.next];
    FailureOr<func::FuncOp> callee = getCallee(call);
    if (failed(callee))
      return failure();
    auto known = sizes.find(*callee);
    if (known == sizes.end()) {
      enter(*callee);
      continue;
    }
    if (!known->second)
      return call.emitError() << "'" << nameOfCallee(call)
                              << "' calls itself; recursion does not inline";
    // Calls of what is empty end, too.
    frame.size =
        llvm::SaturatingAdd(frame.size, std::max<uint64_t>(*known->second, 1));
    ++frame.next;
  }
  return success();
}

LogicalResult Inliner::run(func::FuncOp function) {
  SmallVector<CallOpInterface> calls = getCalls(function);
  if (calls.empty())
    return success();
  if (failed(count(function)))
    return failure();
  if (uint64_t size = *sizes[function]; size > kMaxOps) {
    CallOpInterface largest = calls.front();
    auto sizeOf = [&](CallOpInterface call) {
      return *sizes[symbols.lookup<func::FuncOp>(nameOfCallee(call))];
    };
    for (CallOpInterface call : calls)
      if (sizeOf(call) > sizeOf(largest))
        largest = call;
    bool isExact = size != std::numeric_limits<uint64_t>::max();
    return largest.emitError()
           << "'" << nameOfCallee(largest) << "' inlines here to "
           << (isExact ? "" : "at least ") << sizeOf(largest) << " ops, and '"
           << function.getName() << "' becomes " << size
           << "; a program may have " << kMaxOps;
  }
  llvm::DenseSet<Operation *> general;
  llvm::DenseMap<Operation *, Given> given;
  // Calls in what is inlined are of `function`, too: `calls` grows.
  for (size_t i = 0; i < calls.size(); ++i) {
    CallOpInterface call = calls[i];
    Block &body =
        symbols.lookup<func::FuncOp>(nameOfCallee(call)).getBody().front();
    if (isa<CallOp>(call) && call->getBlock() != &function.getBody().front())
      return call->emitError() << "is in control flow; a sharded program is "
                                  "straight-line in this version";
    const bool isInGeneral = general.contains(call);
    const bool isGeneral = isa<CallOp>(call) || isInGeneral;
    OpBuilder builder(call);
    auto cast = [&](Value value, Type type) {
      auto op = UnrealizedConversionCastOp::create(builder, call.getLoc(), type,
                                                   value);
      if (isInGeneral)
        general.insert(op);
      return op;
    };
    IRMapping mapping;
    for (auto [argument, operand] :
         llvm::zip_equal(body.getArguments(), call.getArgOperands())) {
      Type type = argument.getType();
      mapping.map(argument, operand.getType() == type
                                ? operand
                                : cast(operand, type).getResult(0));
    }
    for (Operation &op : body.without_terminator()) {
      Operation *clone = builder.clone(op, mapping);
      clone->setLoc(CallSiteLoc::get(op.getLoc(), call.getLoc()));
      if (isGeneral)
        general.insert(clone);
      llvm::append_range(calls, getCalls(clone));
    }
    for (auto [result, value] : llvm::zip_equal(
             call->getResults(), body.getTerminator()->getOperands())) {
      Value own = mapping.lookupOrDefault(value);
      if (isa<CallOp>(call)) {
        UnrealizedConversionCastOp op = cast(own, result.getType());
        given[op] = {nameOfCallee(call), result.getResultNumber()};
        own = op.getResult(0);
      }
      result.replaceAllUsesWith(own);
    }
    general.erase(call);
    call.erase();
  }
  return general.empty() && given.empty()
             ? success()
             : instantiate(function, general, given);
}

/// Gives what general functions had with `?` the extents that follow here, and
/// removes the casts at their borders.
LogicalResult
Inliner::instantiate(func::FuncOp function,
                     const llvm::DenseSet<Operation *> &general,
                     const llvm::DenseMap<Operation *, Given> &given) {
  FailureOr<ExtentAnalysis> extents = ExtentAnalysis::ofArguments(function);
  if (failed(extents))
    return failure();
  Block &body = function.getBody().front();
  auto typeOf = [&](Value value) -> Type {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return value.getType();
    SmallVector<int64_t> shape;
    for (const layout::Extent &extent : extents->get(value))
      shape.push_back(extent.getStatic().value_or(ShapedType::kDynamic));
    return type.clone(shape);
  };
  auto refuse = [&](Operation *cast, Type type,
                    StringRef mend = "") -> LogicalResult {
    // Not at the cast, which nobody wrote.
    const Given &what = given.find(cast)->second;
    return mlir::emitError(cast->getLoc())
           << "'" << what.callee << "' gives " << type << " as result #"
           << what.number << " of this call, not "
           << cast->getResult(0).getType() << mend;
  };
  // With the types that the functions have, which say what `?` follows which.
  for (Operation &op : body) {
    auto cast = dyn_cast<UnrealizedConversionCastOp>(op);
    if (!cast) {
      if (failed(extents->addResults(&op)))
        return failure();
      if (isa<GradientOp>(op) && general.contains(&op) &&
          llvm::any_of(op.getOperands(), [&](Value operand) {
            return typeOf(operand) != operand.getType();
          }))
        return op.emitError()
               << "a gradient in a function for any size: write its extents, "
                  "or ask for the gradient of what calls the function";
      continue;
    }
    Value from = cast.getOperand(0), to = cast.getResult(0);
    if (!isa<RankedTensorType>(to.getType()))
      continue;
    extents->copy(to, from);
    if (given.contains(cast) &&
        failed(verifyCompatibleShape(typeOf(from), to.getType())))
      return refuse(cast, typeOf(from));
  }
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (general.contains(&op))
      for (OpResult result : op.getResults())
        result.setType(typeOf(result));
    auto cast = dyn_cast<UnrealizedConversionCastOp>(op);
    if (!cast)
      continue;
    Value from = cast.getOperand(0), to = cast.getResult(0);
    // A view that only the call writes is that of the value, if nobody else
    // sees it.
    if (given.contains(cast) && from.getType() != to.getType()) {
      Operation *owner = from.getDefiningOp();
      if (getView(from.getType()) || !getView(to.getType()) ||
          from.getType() != withEncoding(to.getType(), {}))
        return refuse(cast, from.getType());
      if (!owner || !general.contains(owner) || isa<GradientOp>(owner) ||
          !from.hasOneUse())
        return refuse(cast, from.getType(),
                      "; it is used elsewhere: write its view in tv.constrain");
      from.setType(to.getType());
    }
    to.replaceAllUsesWith(from);
    cast.erase();
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
