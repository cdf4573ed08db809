//===- tessera-compile.cpp - a program to a module file -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/Progress.h"
#include "Support/StandardStreams.h"
#include "tessera/Compiler.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

#include <optional>

using namespace llvm;

static cl::OptionCategory category("tessera-compile");
static cl::opt<std::string> input(cl::Positional, cl::desc("<program.mlir>"),
                                  cl::init("-"), cl::cat(category));
static cl::opt<std::string> output("o", cl::desc("File to write"),
                                   cl::value_desc("file"), cl::init("-"),
                                   cl::cat(category));
static cl::list<std::string> mesh("mesh",
                                  cl::desc("Sizes of mesh axes, as tp=4,dp=2"),
                                  cl::CommaSeparated, cl::cat(category));
static cl::opt<std::string>
    shardings("shardings",
              cl::desc("A file with views by name, as layers.*.wq: "
                       "[did(tp) * _, _], after a line mesh <tp = 2>"),
              cl::value_desc("file"), cl::cat(category));
static cl::opt<std::string>
    target("target",
           cl::desc("What to compile for: cpu, cuda (this machine's GPU) or as "
                    "cuda:sm_90a, cuda:sm_80"),
           cl::init("cpu"), cl::cat(category));
static cl::opt<std::string>
    machine("machine",
            cl::desc("What moves and loops are priced with, as "
                     "<latency=1.0e-5,bandwidth=2.0e10,copy=2.5e11,"
                     "loops=4.0e13> (the target's by default)"),
            cl::value_desc("figures"), cl::cat(category));
static cl::list<std::string>
    attention("attention",
              cl::desc("Variants of attention to compile in, in order of "
                       "preference: flash,cudnn,math (all of them by default)"),
              cl::CommaSeparated, cl::cat(category));
static cl::list<std::string>
    matmul("matmul",
           cl::desc("Variants of matrix products to compile in for cuda, in "
                    "order of preference: cublaslt (alone by default), own"),
           cl::CommaSeparated, cl::cat(category));
static cl::opt<std::string>
    memory("memory",
           cl::desc("What a device may hold between steps, as 80GiB: values "
                    "beyond are made again"),
           cl::value_desc("bytes"), cl::cat(category));
static cl::opt<bool> strict(
    "strict",
    cl::desc("A move of data that the source does not write is an error"),
    cl::cat(category));
static cl::opt<bool> opByOp(
    "op-by-op",
    cl::desc("Place ops one after the other alone, not together where that "
             "takes less time"),
    cl::cat(category));
static cl::opt<std::string>
    compileFrom("compile-from", cl::desc("The phase that the input is in"),
                cl::init("source"), cl::cat(category));
static cl::opt<std::string>
    compileTo("compile-to",
              cl::desc("The phase to stop after: source, differentiated, bind, "
                       "propagated, planned, local, kernels, scheduled, plan "
                       "or module"),
              cl::init("module"), cl::cat(category));
static cl::opt<bool>
    locations("locations",
              cl::desc("Programs are written with the places of ops, and with "
                       "each tensor type once, as an alias"),
              cl::cat(category));
static cl::opt<std::string>
    dumpDirectory("dump-dir",
                  cl::desc("Folder for the program after each phase"),
                  cl::value_desc("folder"), cl::cat(category));
static cl::opt<std::string>
    dumpKernels("dump-kernels",
                cl::desc("Folder for each cuda kernel as a program that nvcc "
                         "compiles alone"),
                cl::value_desc("folder"), cl::cat(category));
static cl::opt<std::string> nvrtc("nvrtc",
                                  cl::desc("NVRTC's library, or its folder"),
                                  cl::value_desc("path"), cl::cat(category));
static cl::opt<bool> remarks("remarks",
                             cl::desc("Print the reasons of decisions"),
                             cl::cat(category));
static cl::opt<bool> quiet("quiet",
                           cl::desc("Do not print what moves between devices"),
                           cl::cat(category));

int main(int argc, char **argv) {
  tessera::holdStandardStreams();
  InitLLVM init(argc, argv, /*InstallPipeSignalExitHandler=*/false);
  cl::HideUnrelatedOptions(category);
  cl::SetVersionPrinter(
      [](raw_ostream &os) { os << "Tessera " TESSERA_VERSION "\n"; });
  cl::ParseCommandLineOptions(argc, argv,
                              "Tessera: compiles a sharded tensor program\n");
  auto fail = [](const Twine &message) {
    WithColor::error(errs(), "tessera-compile") << message << "\n";
    return 1;
  };
  for (const cl::opt<std::string> *path :
       {&dumpDirectory, &dumpKernels, &nvrtc, &shardings, &memory, &machine})
    if (path->getNumOccurrences() > 0 && path->empty())
      return fail("--" + path->ArgStr + " names no " + path->ValueStr);
  if (output == "-" && compileTo == "module" &&
      sys::Process::StandardOutIsDisplayed())
    return fail("a module is not for a terminal: name a file with -o, or a "
                "phase that is text with --compile-to");
  auto source = MemoryBuffer::getFileOrSTDIN(input);
  if (!source)
    return fail("cannot read '" + input + "': " + source.getError().message());

  tessera::CompileOptions options;
  options.name = input;
  options.mesh = std::vector<std::string>(mesh.begin(), mesh.end());
  options.shardings = shardings;
  options.target = target;
  options.machine = machine;
  options.attention =
      std::vector<std::string>(attention.begin(), attention.end());
  options.matmul = std::vector<std::string>(matmul.begin(), matmul.end());
  options.memory = memory;
  options.strict = strict;
  options.opByOp = opByOp;
  options.explain = remarks;
  options.from = compileFrom;
  options.to = compileTo;
  options.locations = locations;
  options.dumpDirectory = dumpDirectory;
  options.dumpKernels = dumpKernels;
  options.nvrtc = nvrtc;
  StringRef text = (*source)->getBuffer();
  if (std::string why = tessera::tryBytecode({text.data(), text.size()});
      !why.empty()) {
    errs() << input << ":1:1: error: " << why << "\n";
    return 1;
  }
  std::optional<tessera::Progress> progress(std::in_place, "compiling",
                                            "kernels");
  options.progress = [&](size_t done, size_t all) {
    progress->show(done, all);
  };
  tessera::CompileResult result =
      tessera::compile(std::string_view(text.data(), text.size()), options);
  progress.reset();
  errs() << result.diagnostics;
  if (options.explain)
    errs() << result.remarks;
  else if (!quiet)
    errs() << result.moves;
  if (!result.succeeded)
    return 1;

  // An error leaves no file behind.
  std::error_code error;
  ToolOutputFile file(output, error, sys::fs::OF_None);
  if (error)
    return fail("cannot write '" + output + "': " + error.message());
  file.os() << result.output;
  file.os().flush();
  if (file.os().has_error()) {
    std::string why = file.os().error().message();
    file.os().clear_error();
    return fail("cannot write '" + output + "': " + why);
  }
  file.keep();
  return 0;
}
