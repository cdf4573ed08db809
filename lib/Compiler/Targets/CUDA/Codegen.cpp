//===- Codegen.cpp - kernels to cubins ------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/Codegen.h"
#include "Comm/Comm.h"
#include "Compiler/Targets/Names.h"
#include "Plan/InPlace.h"
#include "Plan/Plan.h"

#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

/// "tv.linear 9:8"; with the file where that is another than `file`.
static std::string getName(StringRef op, Location loc, StringAttr file) {
  auto place = loc->findInstanceOf<FileLineColLoc>();
  if (!place)
    return op.str();
  if (place.getFilename() != file)
    return op.str() + " " + getPlace(loc);
  return (op + " " + Twine(place.getLine()) + ":" + Twine(place.getColumn()))
      .str();
}

/// Adds the names of the ops that a location is fused of.
static void addNames(Location loc, StringAttr file,
                     std::vector<std::string> &names) {
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      addNames(part, file, names);
  else if (auto name = dyn_cast<NameLoc>(loc))
    names.push_back(getName(name.getName(), loc, file));
}

/// The comment that leads a kernel back to the program, of its first launch:
///
///     // map_1: tv.map at block.mlir:10:3, of tv.linear 9:8, tv.add 10:3
static std::string getOrigin(func::FuncOp kernel, plan::LaunchOp launch) {
  std::string line =
      ("// " + kernel.getName() + ": " + launch.getSource()).str();
  StringAttr file;
  if (auto place = launch.getLoc()->findInstanceOf<FileLineColLoc>()) {
    line += " at " + getPlace(place);
    file = place.getFilename();
  }
  std::vector<std::string> names;
  addNames(kernel.getLoc(), file, names);
  if (names == std::vector{getName(launch.getSource(), launch.getLoc(), file)})
    names.clear();
  std::string text;
  for (auto [i, name] : llvm::enumerate(names)) {
    line += i == 0 ? ", of" : ",";
    if (line.size() + 1 + name.size() > 79) {
      text += line + "\n";
      line = "//    ";
    }
    line += " " + name;
  }
  return text + line + "\n";
}

/// The runtime's kernels that a program may need: moves of words not smaller
/// than its smallest element, fetches of rows, and the folds of its
/// collectives.
static std::string getRuntimeText(ModuleOp program) {
  size_t smallest = 16;
  std::set<std::string> folds;
  bool fetches = false;
  auto visit = [&](Value value, bool moves) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    std::optional<DType> dtype;
    if (type)
      dtype = getDType(type.getElementType());
    if (!dtype)
      return;
    smallest = std::min<size_t>(smallest, info(*dtype).bytes);
    auto local = dyn_cast_or_null<tv::LocalAttr>(type.getEncoding());
    if (!moves || !local)
      return;
    // Booleans are folded as bytes.
    const char *name = dtype == DType::I1 ? "u8" : info(*dtype).name;
    for (const layout::Partial &partial : local.getLayoutView().partial)
      folds.insert(std::string(" TESSERA_FOLD(") +
                   layout::toString(partial.combiner) + ", " + name + ")");
  };
  program.walk([&](Block *block) {
    for (Value argument : block->getArguments())
      visit(argument, false);
    for (Operation &op : *block) {
      auto move = dyn_cast<comm::CollectiveOpInterface>(op);
      fetches |= move && !move.getRowIndices().empty();
      for (Value operand : op.getOperands())
        visit(operand, bool(move));
      for (Value result : op.getResults())
        visit(result, false);
    }
  });
  std::string text =
      "#define TESSERA_SMALLEST " + std::to_string(smallest) + "\n";
  if (fetches)
    text += "#define TESSERA_FETCHES\n";
  text += "#define TESSERA_FOLDS";
  for (const std::string &fold : folds)
    text += fold;
  return text + "\n" + getEmbeddedFile("base/runtime.cu");
}

FailureOr<std::vector<CompiledKernel>> cuda::emitKernels(ModuleOp program) {
  llvm::StringMap<plan::LaunchOp> launches;
  program.walk([&](plan::LaunchOp launch) {
    launches.try_emplace(launch.getKernel(), launch);
  });
  plan::InPlace inPlace;
  if (auto main = program.lookupSymbol<func::FuncOp>("main"))
    inPlace = plan::findInPlace(main);
  std::vector<CompiledKernel> kernels;
  for (auto function : program.getOps<func::FuncOp>()) {
    if (!function->hasAttr(plan::kKernelAttr))
      continue;
    plan::eraseCopies(function, inPlace.kernels.lookup(function.getName()));
    FailureOr<KernelSource> source = emitKernel(function);
    if (failed(source))
      return failure();
    if (plan::LaunchOp launch = launches.lookup(function.getName()))
      source->origin = getOrigin(function, launch);
    kernels.push_back({std::move(*source), {}, {}});
  }
  kernels.push_back({{"runtime", "", getRuntimeText(program), {}}, {}, {}});
  return kernels;
}

/// In bytes, of all its functions.
static int countSpills(const Binary &binary) {
  int bytes = 0;
  for (const FunctionReport &function : binary.functions)
    bytes += function.spillBytes;
  return bytes;
}

LogicalResult cuda::compileKernels(ModuleOp program,
                                   std::vector<CompiledKernel> &kernels,
                                   const plan::CodeOptions &options,
                                   const std::string &architecture) {
  std::vector<Unit> units;
  for (const CompiledKernel &kernel : kernels)
    units.push_back({kernel.source.name, kernel.source.text});
  Result<NVRTC> compiler = NVRTC::open(options.nvrtc, architecture);
  if (!compiler)
    return program.emitError() << compiler.message();
  Result<std::vector<Binary>> binaries =
      compiler->compile(units, options.progress);
  if (!binaries)
    return program.emitError() << binaries.message();
  for (auto [kernel, binary] : llvm::zip_equal(kernels, *binaries)) {
    kernel.binary = std::move(binary);
    // What spills is compiled again: with less that stages share (rows.cuh),
    // then for fewer blocks at a time. If all spill, the first of those that
    // spill least stays.
    const bool hasRows =
        StringRef(kernel.source.text).contains("\"rows/rows.cuh\"");
    for (const char *remedy :
         {"TESSERA_KEEP_PACKED", "TESSERA_ANY_SIZE", "TESSERA_FEWER_BLOCKS"}) {
      if (countSpills(kernel.binary) == 0)
        break;
      if (!hasRows && StringRef(remedy) != "TESSERA_FEWER_BLOCKS")
        continue;
      std::string defines = ("#define " + Twine(remedy) + "\n").str();
      Unit remedied{kernel.source.name, defines + kernel.source.text};
      Result<std::vector<Binary>> again = compiler->compile({&remedied, 1});
      if (!again)
        return program.emitError() << again.message();
      if (countSpills(again->front()) >= countSpills(kernel.binary))
        continue;
      kernel.defines = std::move(defines);
      kernel.binary = std::move(again->front());
    }
    Operation *at = program.lookupSymbol(kernel.source.name);
    Location loc = at ? at->getLoc() : program.getLoc();
    for (const FunctionReport &function : kernel.binary.functions)
      if (function.spillBytes > 0 || function.stackBytes > 0)
        emitWarning(loc) << "device function '" << function.symbol << "' has "
                         << function.spillBytes << " bytes of spills and "
                         << function.stackBytes
                         << " bytes of stack; it will be slow";
    for (const std::string &note : kernel.binary.notes)
      emitWarning(loc) << "kernel '" << kernel.source.name << "': " << note;
  }
  return success();
}
