//===- InterpretPass.cpp - the interpreter in a pass pipeline ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `tessera-opt PASSES --interpret=N` runs the entry function of what the passes
// made on N ranks, runs a reference on whole tensors in float64, and compares.
// The reference is the source as it was before the passes, unless
// --interpret-against says otherwise.
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Machine/InterpretPass.h"
#include "Interpreter/Machine/Inputs.h"
#include "Interpreter/Machine/Interpreter.h"
#include "Interpreter/Machine/Tolerance.h"
#include "TensorView/TensorView.h"
#include "Tensors/Safetensors.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/ManagedStatic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;
namespace cl = llvm::cl;

namespace {
struct Options {
  cl::opt<int64_t> ranks{"interpret", cl::value_desc("N"),
                         cl::desc("Interpret the result of the passes on N "
                                  "ranks")};
  cl::opt<std::string> entry{"interpret-entry", cl::init("main"),
                             cl::desc("The function to interpret")};
  cl::opt<std::string> against{
      "interpret-against", cl::init("source"),
      cl::desc("What to compare with, on whole tensors in float64: 'source' "
               "(the entry before the passes), 'unsharded' (the entry after "
               "them), '@NAME' (that function), 'none'")};
  cl::opt<std::string> precision{
      "interpret-precision", cl::init("f64"),
      cl::desc("'f64', or 'program': each value rounded to its type")};
  cl::opt<std::string> print{
      "interpret-print", cl::ValueOptional, cl::init(""),
      cl::desc("Print the results: 'whole' (default), or 'shards' of each "
               "rank")};
  cl::opt<uint64_t> seed{"interpret-seed", cl::init(0),
                         cl::desc("Of the inputs that are made up")};
  cl::list<std::string> inputs{
      "interpret-inputs", cl::CommaSeparated,
      cl::desc("Files or folders of safetensors with the arguments by name")};
  cl::list<std::string> sizes{"interpret-sizes", cl::CommaSeparated,
                              cl::desc("Dynamic sizes, as b=3,s=7")};
  cl::opt<bool> localOnly{
      "interpret-local-only",
      cl::desc("An op with views that needs more than each rank holds is an "
               "error")};
};
} // namespace

static llvm::ManagedStatic<Options> options;
void interp::registerInterpretOptions() { *options; }

using Arrays = std::vector<std::shared_ptr<NDArray>>;

static void print(llvm::raw_ostream &os, const NDArray &array, size_t dim,
                  size_t &at) {
  if (dim == array.shape.size()) {
    os << toString(array.data[at++], array.type);
    return;
  }
  os << "[";
  for (int64_t i = 0; i < array.shape[dim]; ++i) {
    os << (i ? ", " : "");
    print(os, array, dim + 1, at);
  }
  os << "]";
}

static void printResults(const Interpreter &interpreter, const Arrays &results,
                         StringRef what) {
  llvm::raw_ostream &os = llvm::outs();
  for (size_t i = 0; i < results.size(); ++i) {
    const std::vector<std::shared_ptr<NDArray>> &parts =
        interpreter.getResultParts()[i].parts;
    if (what != "shards") {
      size_t at = 0;
      os << "result #" << i << ": ";
      print(os, *results[i], 0, at);
      os << "\n";
      continue;
    }
    for (auto [rank, part] : llvm::enumerate(parts)) {
      size_t at = 0;
      os << "result #" << i << " on rank " << rank << ": ";
      print(os, *part, 0, at);
      os << "\n";
    }
  }
}

namespace {
using Source = std::shared_ptr<OwningOpRef<ModuleOp>>;

struct KeepSourcePass
    : public PassWrapper<KeepSourcePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KeepSourcePass)
  explicit KeepSourcePass(Source source) : source(std::move(source)) {}
  StringRef getName() const override { return "interpret-keep-source"; }
  void runOnOperation() override { *source = getOperation().clone(); }
  Source source;
};

struct InterpretPass
    : public PassWrapper<InterpretPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InterpretPass)
  explicit InterpretPass(Source source) : source(std::move(source)) {}
  StringRef getName() const override { return "interpret"; }

  void runOnOperation() override {
    if (failed(interpret()))
      signalPassFailure();
  }

  LogicalResult interpret();
  FailureOr<func::FuncOp> find(ModuleOp module, StringRef name);
  LogicalResult compareWith(func::FuncOp reference, StringRef text,
                            func::FuncOp entry, const Config &config,
                            const Arrays &inputs, const Arrays &results,
                            double largestAddend);

  Source source;
};
} // namespace

FailureOr<func::FuncOp> InterpretPass::find(ModuleOp module, StringRef name) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function || function.isExternal())
    return mlir::emitError(module.getLoc())
           << "has no function @" << name << " with a body to interpret";
  return function;
}

LogicalResult InterpretPass::compareWith(func::FuncOp reference, StringRef text,
                                         func::FuncOp entry,
                                         const Config &config,
                                         const Arrays &inputs,
                                         const Arrays &results,
                                         double largestAddend) {
  if (reference.getNumArguments() != inputs.size() ||
      reference.getNumResults() != results.size())
    return mlir::emitError(entry.getLoc())
           << "has other arguments or results than " << text;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    auto type = dyn_cast<RankedTensorType>(reference.getArgument(i).getType());
    if (!type || type.getElementType() != input->type ||
        tv::getGlobalShape(type).size() != input->shape.size())
      return mlir::emitError(entry.getLoc())
             << "has another type of argument #" << i << " than " << text;
  }
  Config exactly = config;
  exactly.ignoreViews = true;
  exactly.roundValues = false;
  FailureOr<Arrays> exact = Interpreter(exactly).run(reference, inputs);
  if (failed(exact))
    return failure();
  exactly.roundValues = true;
  FailureOr<Arrays> rounded = Interpreter(exactly).run(reference, inputs);
  if (failed(rounded))
    return failure();
  FailureOr<Arrays> inFloat = Arrays();
  if (llvm::any_of(results,
                   [](const auto &result) { return result->type.isF64(); })) {
    exactly.doublesToFloat = true;
    inFloat = Interpreter(exactly).run(reference, inputs);
    if (failed(inFloat))
      return failure();
  }
  double largestError = 0;
  for (auto [i, result] : llvm::enumerate(results)) {
    const NDArray &expected = *(*exact)[i];
    if (result->shape != expected.shape || result->type != expected.type)
      return mlir::emitError(entry.getLoc())
             << "result #" << i << " has shape " << indexText(result->shape)
             << ", " << indexText(expected.shape) << " in " << text;
    Comparison comparison =
        compare({expected, *(*rounded)[i],
                 inFloat->empty() ? nullptr : &*(*inFloat)[i]},
                *result, config.ranks, largestAddend);
    largestError = std::max(largestError, comparison.largestError);
    if (!comparison.differs)
      continue;
    int64_t at = linearize(*comparison.differs, result->shape);
    return mlir::emitError(entry.getLoc())
           << "result #" << i << " differs at "
           << indexText(*comparison.differs) << ": "
           << toString(result->data[at], result->type) << " on " << config.ranks
           << " ranks, " << toString(expected.data[at], result->type) << " in "
           << text << "; an error of "
           << toString(real(comparison.allowed),
                       Float64Type::get(&getContext()))
           << " is allowed";
  }
  llvm::outs() << "interpret: @" << entry.getName() << " equals " << text
               << " on " << config.ranks << " ranks, largest error "
               << llvm::format("%.2g", largestError) << "\n";
  return success();
}

/// Whether the values of a function fit in memory; none is freed.
static LogicalResult checkMemory(func::FuncOp function, const Config &config) {
  constexpr int64_t kMaxElements = int64_t(1) << 28;
  int64_t dynamic = 1, sum = 0;
  for (const auto &[name, size] : config.sizes)
    dynamic = std::max(dynamic, size);
  auto add = [&](Location at, Value value) -> LogicalResult {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return success();
    Shape shape = tv::getGlobalShape(type);
    if (auto local = dyn_cast_or_null<tv::LocalAttr>(type.getEncoding()))
      for (auto [i, extent] : llvm::enumerate(local.getExtents()))
        shape[i] = extent.evaluate(config.sizes).value_or(dynamic);
    // Each rank may hold all of it.
    int64_t elements = type.getEncoding() ? config.ranks : 1;
    bool overflows = false;
    for (int64_t extent : shape)
      overflows |= llvm::MulOverflow(
          elements,
          extent == layout::kDynamic ? dynamic : std::max<int64_t>(extent, 1),
          elements);
    if (overflows || llvm::AddOverflow(sum, elements, sum) ||
        sum > kMaxElements)
      return mlir::emitError(at)
             << "with a value of type " << type
             << " the interpreter keeps more than 2^28 elements on "
             << config.ranks
             << " ranks together; give it smaller tensors or fewer ranks";
    return success();
  };
  for (Value argument : function.getArguments())
    if (failed(add(function.getLoc(), argument)))
      return failure();
  WalkResult walked = function.walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (failed(add(op->getLoc(), result)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult InterpretPass::interpret() {
  ModuleOp module = getOperation();
  FailureOr<func::FuncOp> entry = find(module, options->entry);
  if (failed(entry))
    return failure();
  StringRef precision = options->precision;
  if (precision != "f64" && precision != "program")
    return mlir::emitError(module.getLoc())
           << "--interpret-precision must be 'f64' or 'program'";
  StringRef print = options->print;
  if (print != "" && print != "whole" && print != "shards")
    return mlir::emitError(module.getLoc())
           << "--interpret-print must be 'whole' or 'shards'";
  std::map<std::string, int64_t> given;
  for (const std::string &size : options->sizes) {
    auto [name, text] = StringRef(size).split('=');
    int64_t value;
    if (text.getAsInteger(10, value))
      return mlir::emitError(module.getLoc())
             << "--interpret-sizes must be like b=3,s=7";
    given[name.str()] = value;
  }
  Config config;
  config.ranks = options->ranks;
  config.roundValues = precision == "program";
  config.localOnly = options->localOnly;
  FailureOr<std::map<std::string, int64_t>> sizes = chooseSizes(*entry, given);
  if (failed(sizes))
    return failure();
  config.sizes = *sizes;
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (failed(checkMemory(function, config)))
      return failure();
  std::optional<TensorFiles> files;
  if (!options->inputs.empty()) {
    Result<TensorFiles> opened = TensorFiles::open(std::vector<std::string>(
        options->inputs.begin(), options->inputs.end()));
    if (!opened)
      return mlir::emitError(module.getLoc()) << opened.message();
    files = std::move(*opened);
  }
  FailureOr<Arrays> inputs =
      makeInputs(*entry, *sizes, options->seed, files ? &*files : nullptr);
  if (failed(inputs))
    return failure();

  Interpreter interpreter(config);
  FailureOr<Arrays> results = interpreter.run(*entry, *inputs);
  if (failed(results))
    return failure();
  if (options->print.getNumOccurrences())
    printResults(interpreter, *results, print);

  StringRef against = options->against;
  if (against == "none")
    return success();
  ModuleOp other = against == "source" ? **source : module;
  std::string text = "the source";
  std::string name = options->entry;
  if (against == "unsharded")
    text = "the unsharded program";
  else if (against.consume_front("@"))
    text = "@" + (name = against.str());
  else if (against != "source")
    return mlir::emitError(module.getLoc())
           << "--interpret-against must be 'source', "
              "'unsharded', 'none' or '@NAME'";
  FailureOr<func::FuncOp> reference = find(other, name);
  if (failed(reference))
    return failure();
  bool byDifferences = false;
  other.walk([&](tv::GradientOp) { byDifferences = true; });
  bool isExact =
      config.roundValues || llvm::any_of(*results, [](const auto &result) {
        return result->type.isF64();
      });
  if (byDifferences && isExact)
    return mlir::emitError(module.getLoc())
           << text << " has tv.gradient, which the interpreter has by "
           << "differences: nothing to compare results of f64 with, or of "
              "--interpret-precision=program; give it what tv-differentiate "
              "makes of it";
  return compareWith(*reference, text, *entry, config, *inputs, *results,
                     interpreter.getLargestAddend());
}

LogicalResult interp::addInterpretation(
    PassManager &passes,
    llvm::function_ref<LogicalResult(PassManager &)> pipeline) {
  if (!options->ranks.getNumOccurrences()) {
    for (const auto &[name, option] : cl::getRegisteredOptions())
      if (name.starts_with("interpret-") && option->getNumOccurrences())
        return mlir::emitError(UnknownLoc::get(passes.getContext()))
               << "--" << name << " changes nothing without --interpret=N";
    return pipeline(passes);
  }
  auto source = std::make_shared<OwningOpRef<ModuleOp>>();
  passes.addPass(std::make_unique<KeepSourcePass>(source));
  if (failed(pipeline(passes)))
    return failure();
  passes.addPass(std::make_unique<InterpretPass>(source));
  return success();
}
