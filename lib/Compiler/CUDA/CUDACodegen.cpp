//===- CUDACodegen.cpp - kernels to cubins --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiler/CUDA/CUDACodegen.h"
#include "Compiler/EmitModule.h"
#include "Plan/Plan.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

/// "map_1: tv.map at block.mlir:10:3", for the first launch of each kernel.
static llvm::StringMap<std::string> getOrigins(ModuleOp program) {
  llvm::StringMap<std::string> origins;
  program.walk([&](plan::LaunchOp launch) {
    std::string text = (launch.getKernel() + ": " + launch.getSource()).str();
    if (std::string place = getPlace(launch.getLoc()); !place.empty())
      text += " at " + place;
    origins.try_emplace(launch.getKernel(), text);
  });
  return origins;
}

FailureOr<std::vector<CompiledKernel>> cuda::emitKernels(ModuleOp program) {
  llvm::StringMap<std::string> origins = getOrigins(program);
  std::vector<CompiledKernel> kernels;
  for (auto function : program.getOps<func::FuncOp>()) {
    if (!function->hasAttr(plan::kKernelAttr))
      continue;
    FailureOr<KernelSource> source = emitKernel(function);
    if (failed(source))
      return failure();
    source->origin = "// " + origins.lookup(function.getName()) + "\n";
    kernels.push_back({std::move(*source), {}});
  }
  kernels.push_back({{"runtime", "", getEmbeddedFile("runtime.cu"), {}}, {}});
  return kernels;
}

LogicalResult cuda::compileKernels(ModuleOp program,
                                   std::vector<CompiledKernel> &kernels,
                                   const std::string &nvrtc) {
  std::vector<Unit> units;
  for (const CompiledKernel &kernel : kernels)
    units.push_back({kernel.source.name, kernel.source.text});
  Result<NVRTC> compiler = NVRTC::open(nvrtc);
  if (!compiler)
    return program.emitError() << compiler.message();
  Result<std::vector<Binary>> binaries = compiler->compile(units);
  if (!binaries)
    return program.emitError() << binaries.message();
  // What spills is compiled again for fewer blocks at a time.
  for (auto [unit, binary] : llvm::zip_equal(units, *binaries))
    if (llvm::any_of(binary.functions, [](const FunctionReport &function) {
          return function.spillBytes > 0;
        })) {
      unit.text = "#define TESSERA_FEWER_BLOCKS\n" + unit.text;
      Result<std::vector<Binary>> again = compiler->compile({&unit, 1});
      if (!again)
        return program.emitError() << again.message();
      binary = std::move(again->front());
    }
  for (auto [kernel, binary] : llvm::zip_equal(kernels, *binaries)) {
    kernel.binary = std::move(binary);
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
