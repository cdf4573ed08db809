//===- Compile.cpp - a program's text to a module -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the pipeline phase by phase, each with a pass manager of its own, so
// that a program can be written out between any two.
//
//===----------------------------------------------------------------------===//

#include "Compiler/EmitModule.h"
#include "Compiler/Pipeline.h"
#include "Compiler/PlanText.h"
#include "Compiler/Register.h"
#include "Compiler/Targets/Names.h"
#include "Compiler/VerifyInput.h"
#include "Plan/KernelCode.h"
#include "Plan/Target.h"
#include "TensorView/TensorView.h"
#include "tessera/Compiler.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace tessera;

namespace {
/// What is said of moves that go in one step, or of one.
struct Move {
  llvm::SmallVector<std::string, 1> places;
  llvm::SmallVector<std::string, 1> plans;
  uint64_t bytes = 0; ///< of the busiest device
  unsigned tensors = 1; ///< none: it is said with another
  bool isOneStep = true;
  bool isMost = false; ///< data say how much it is

  std::string print() const;
};

/// Takes them from what is said of each when it is planned, and of those that
/// go together when they are joined.
class MoveCollector : public remark::detail::MLIRRemarkStreamerBase {
public:
  explicit MoveCollector(std::vector<Move> &moves) : moves(moves) {}
  void streamOptimizationRemark(const remark::detail::Remark &remark) override;

private:
  void join(std::optional<uint64_t> bytes);
  void fetch(StringRef place, StringRef plan, StringRef most, StringRef loser);

  std::vector<Move> &moves;
  /// Where each is in `moves`, by its function and its number there.
  std::map<std::pair<std::string, uint64_t>, size_t> planned;
  /// Those of a step in which several go.
  llvm::SmallVector<size_t> together;
};

class Compilation {
public:
  Compilation(const CompileOptions &options, CompileResult &result)
      : options(options), result(result), diagnostics(result.diagnostics) {}
  LogicalResult run(StringRef source);

private:
  LogicalResult checkKernelOptions();
  LogicalResult checkTarget(ModuleOp program);
  LogicalResult runPhases(ModuleOp program, const PipelineOptions &pipeline);
  std::string print(ModuleOp program) const;
  /// If there is a folder for dumps: making the text takes time.
  LogicalResult dump(const Twine &name, function_ref<std::string()> getText);
  LogicalResult error(const Twine &message) {
    diagnostics << "error: " << message << "\n";
    return failure();
  }

  const CompileOptions &options;
  std::vector<Move> moves;
  plan::CodeOptions codeOptions;
  const plan::Target *target = nullptr;
  CompileResult &result;
  llvm::raw_string_ostream diagnostics;
};
} // namespace

std::string Compilation::print(ModuleOp program) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  OpPrintingFlags flags;
  program->print(os, options.locations ? flags.enableDebugInfo()
                                       : flags.useLocalScope());
  os << "\n";
  return text;
}

LogicalResult Compilation::dump(const Twine &name,
                                function_ref<std::string()> getText) {
  if (options.dumpDirectory.empty())
    return success();
  if (std::error_code why =
          llvm::sys::fs::create_directories(options.dumpDirectory))
    return error("cannot make the folder '" + options.dumpDirectory +
                 "': " + why.message());
  SmallString<128> path(options.dumpDirectory);
  llvm::sys::path::append(path, name);
  std::string why;
  auto file = openOutputFile(path, &why);
  if (!file)
    return error(why);
  file->os() << getText();
  file->keep();
  return success();
}

std::string Move::print() const {
  std::string line = llvm::join(places, ", ") + ": " +
                     llvm::join(plans, " and ") +
                     (isMost ? " of at most " : " of ") +
                     std::to_string(bytes) + " bytes on a device";
  if (tensors > 1)
    line += ", " + std::to_string(tensors) + " tensors in one step";
  return line;
}

void MoveCollector::streamOptimizationRemark(
    const remark::detail::Remark &remark) {
  llvm::StringMap<StringRef> said;
  for (const remark::detail::Remark::Arg &arg : remark.getArgs())
    said[arg.key] = arg.val;
  auto numberOf = [&](StringRef key) {
    uint64_t number;
    return said[key].getAsInteger(10, number) ? std::nullopt
                                              : std::optional(number);
  };
  std::pair move(remark.getFunction().str(), numberOf("move").value_or(0));
  if (remark.getRemarkName() == "together") {
    if (auto known = planned.find(move); known != planned.end())
      together.push_back(known->second);
  } else if (remark.getRemarkName() == "fetch") {
    fetch(getPlace(remark.getLocation()), said["plan"], said["bytes"],
          said["loser"]);
  } else if (remark.getRemarkName() == "reshards") {
    join(numberOf("moved"));
  } else if (uint64_t bytes = numberOf("bytes").value_or(0)) {
    planned[move] = moves.size();
    moves.push_back({{getPlace(remark.getLocation())},
                     {said["plan"].str()},
                     bytes,
                     /*tensors=*/1,
                     numberOf("steps") == 1});
  }
}

/// Rows that data name move instead of what was planned.
void MoveCollector::fetch(StringRef place, StringRef plan, StringRef most,
                          StringRef loser) {
  uint64_t bytes = 0;
  if (!most.consume_front("at most ") || most.getAsInteger(10, bytes))
    return;
  for (Move &move : moves) {
    const std::string planned =
        move.plans.front() + ", " + std::to_string(move.bytes) + " bytes";
    if (move.isMost || move.tensors != 1 || move.places.front() != place ||
        !loser.starts_with(planned))
      continue;
    move.plans = {plan.split(" in place").first.str()};
    move.bytes = bytes;
    move.isMost = true;
    return;
  }
}

/// What goes in one step is said where the first of it is, unless some of it is
/// said with others already.
void MoveCollector::join(std::optional<uint64_t> bytes) {
  llvm::SmallVector<size_t> all = std::exchange(together, {});
  llvm::sort(all);
  if (all.size() < 2 ||
      !llvm::all_of(all, [&](size_t at) { return moves[at].tensors == 1; }))
    return;
  Move &first = moves[all.front()];
  first.tensors = all.size();
  for (size_t at : llvm::drop_begin(all)) {
    Move &other = moves[at];
    if (!llvm::is_contained(first.places, other.places.front()))
      first.places.push_back(other.places.front());
    if (!llvm::is_contained(first.plans, other.plans.front()))
      first.plans.push_back(other.plans.front());
    first.isOneStep &= other.isOneStep;
    first.bytes += other.bytes;
    other.tensors = 0;
  }
  // Of a chain of steps only one is known to be that.
  if (first.isOneStep && bytes)
    first.bytes = *bytes;
}

LogicalResult Compilation::run(StringRef source) {
  DialectRegistry registry;
  registerAll(registry);
  if (options.locations)
    registry.addExtension(+[](MLIRContext *, tv::TensorViewDialect *dialect) {
      dialect->setTensorTypeAliases(true);
    });
  Result<const plan::Target *> known = plan::parseTarget(options.target);
  if (!known)
    return error(known.message());
  target = *known;

  PipelineOptions pipeline;
  for (auto [list, given] : {std::pair(&pipeline.mesh, &options.mesh),
                             std::pair(&pipeline.attention, &options.attention),
                             std::pair(&pipeline.matmul, &options.matmul)})
    for (const std::string &element : *given)
      list->push_back(element);
  pipeline.shardings = options.shardings;
  pipeline.machine = options.machine;
  pipeline.memory = options.memory;
  pipeline.strict = options.strict;
  pipeline.opByOp = options.opByOp;
  pipeline.explain = options.explain;
  pipeline.target = target->getName().str();
  pipeline.from = options.from;
  pipeline.to = options.to;
  if (Status status = checkOptions(pipeline, getPipeline(), "--"); !status)
    return error(status.message());
  if (failed(checkKernelOptions()))
    return failure();

  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(source, options.name,
                                       /*RequiresNullTerminator=*/false),
      SMLoc());
  SourceMgrDiagnosticHandler handler(sources, &context, diagnostics);
  llvm::raw_string_ostream remarks(result.remarks);
  ScopedDiagnosticHandler others(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
        isa<UnknownLoc>(diagnostic.getLocation())) // of a flag
      return LogicalResult::success(failed(error(diagnostic.str())));
    if (diagnostic.getSeverity() != DiagnosticSeverity::Remark)
      return failure();
    remarks << getPlace(diagnostic.getLocation()) << ": " << diagnostic << "\n";
    return success();
  });
  remark::RemarkCategories planned;
  planned.passed = "tv-plan-reshards|tv-fetch-rows|tv-merge-reshards";
  if (failed(remark::enableOptimizationRemarks(
          context, std::make_unique<MoveCollector>(moves),
          std::make_unique<remark::RemarkEmittingPolicyAll>(), planned)))
    return failure();
  OwningOpRef<ModuleOp> program = parseSourceFile<ModuleOp>(
      sources, ParserConfig(&context, /*verifyAfterParse=*/false));
  if (!program || failed(verifyInput(*program)) ||
      failed(runPhases(*program, pipeline)))
    return failure();
  // What is inlined several times is one line.
  llvm::MapVector<std::string, int, std::map<std::string, unsigned>> lines;
  for (const Move &move : moves)
    if (move.tensors)
      ++lines[move.print()];
  for (const auto &[line, count] : lines) {
    result.moves += line;
    if (count > 1)
      result.moves += ", " + std::to_string(count) + " times";
    result.moves += "\n";
  }
  return success();
}

/// Sets `codeOptions`. What would change nothing is an error, as in
/// `checkOptions`.
LogicalResult Compilation::checkKernelOptions() {
  codeOptions.programs = options.dumpKernels;
  codeOptions.nvrtc = options.nvrtc;
  codeOptions.progress = options.progress;
  if (!options.dumpDirectory.empty())
    codeOptions.dump = [&](StringRef name, StringRef text) {
      return dump(name, [&] { return text.str(); });
    };
  if (Status status = target->checkOptions(codeOptions); !status)
    return error(status.message());
  if (options.to == "plan" || options.to == "module")
    return success();
  for (const auto &[name, value] :
       {std::pair("dump-kernels", &options.dumpKernels),
        std::pair("nvrtc", &options.nvrtc)})
    if (!value->empty())
      return error("--" + Twine(name) +
                   " needs machine code of kernels, which "
                   "is made after '" +
                   options.to + "'; compile to plan or module");
  return success();
}

/// An error unless it is what a program with kernels is planned for.
LogicalResult Compilation::checkTarget(ModuleOp program) {
  if (StringRef planned = plan::getTarget(program).getName();
      planned != target->getName())
    return error("the program is planned for '" + planned + "', not for '" +
                 target->getName() + "'");
  return success();
}

LogicalResult Compilation::runPhases(ModuleOp program,
                                     const PipelineOptions &pipeline) {
  bool running = false;
  for (auto [number, phase] : llvm::enumerate(getPipeline())) {
    bool runsIt = running && phase.build;
    running |= phase.name == options.from;
    if (runsIt) {
      if (phase.name == "scheduled" && failed(checkTarget(program)))
        return failure();
      // (tessera-opt verifies behind each pass.)
      PassManager passes(program.getContext());
      passes.enableVerifier(false);
      phase.build(passes, pipeline);
      if (failed(passes.run(program)) || failed(mlir::verify(program)))
        return failure();
    }
    if (phase.build && running &&
        failed(dump(Twine(number) + "-" + phase.name + ".mlir",
                    [&] { return print(program); })))
      return failure();
    if (phase.name == options.to && phase.build) {
      result.output = print(program);
      return success();
    }
  }
  if (failed(checkTarget(program)))
    return failure();
  FailureOr<plan::KernelCode> code = target->compile(program, codeOptions);
  if (failed(code))
    return failure();
  FailureOr<std::string> module =
      emitModule(program, result.remarks, std::move(*code));
  if (failed(module))
    return failure();
  if (failed(dump("plan.txt", [&] { return printPlan(*module); })))
    return failure();
  result.output = options.to == "plan" ? printPlan(*module) : *module;
  return success();
}

std::string tessera::tryBytecode(std::string_view source) {
  DialectRegistry registry;
  registerAll(registry);
  Status status = tryBytecode(StringRef(source), registry);
  return status ? "" : status.message();
}

CompileResult tessera::compile(std::string_view source,
                               const CompileOptions &options) {
  CompileResult result;
  result.succeeded =
      succeeded(Compilation(options, result).run(StringRef(source)));
  return result;
}

std::vector<std::string> tessera::getPhases() {
  std::vector<std::string> names;
  for (const Phase &phase : getPipeline())
    names.push_back(phase.name.str());
  return names;
}
