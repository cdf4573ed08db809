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
#include "Compiler/Moves.h"
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
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace tessera;

namespace {
/// Takes what passes say of moves.
class MoveCollector final : public remark::detail::MLIRRemarkStreamerBase {
public:
  MoveCollector(Moves &moves, const std::string &told)
      : moves(moves), told(told) {}
  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    moves.take(remark, told.size());
  }

private:
  Moves &moves;
  const std::string &told;
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
  /// What has been told, with the moves that are left.
  std::string getReport() const {
    return options.explain ? moves.explain(result.remarks) : result.remarks;
  }
  LogicalResult error(const Twine &message) {
    diagnostics << "error: " << message << "\n";
    return failure();
  }

  const CompileOptions &options;
  Moves moves;
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
  pipeline.explainMoves = false;
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
  if (failed(remark::enableOptimizationRemarks(
          context, std::make_unique<MoveCollector>(moves, result.remarks),
          std::make_unique<remark::RemarkEmittingPolicyAll>(),
          Moves::getCategories())))
    return failure();
  auto explains = llvm::scope_exit([&] { result.remarks = getReport(); });
  OwningOpRef<ModuleOp> program = parseSourceFile<ModuleOp>(
      sources, ParserConfig(&context, /*verifyAfterParse=*/false));
  if (!program || failed(verifyInput(*program)) ||
      failed(runPhases(*program, pipeline)))
    return failure();
  result.moves = moves.getLines();
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
      emitModule(program, getReport(), std::move(*code));
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
