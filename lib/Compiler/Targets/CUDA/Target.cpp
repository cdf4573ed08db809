//===- Target.cpp - NVIDIA GPUs -------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/Target.h"
#include "Compiler/Targets/CUDA/Codegen.h"
#include "Compiler/Targets/CUDA/Passes.h"
#include "Kernels/Passes.h"
#include "Plan/KernelCode.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

void cuda::registerTargets() {
#define TARGET(MAKE, EXAMPLE, NAMES)                                           \
  plan::registerTargets({EXAMPLE, NAMES, MAKE});
#include "Compiler/Targets/CUDA/Targets.def"
#undef TARGET
  plan::registerTargetAlias("cuda", findOnMachine);
}

ArrayRef<StringLiteral> GPUTarget::getVariants() const {
  static constexpr StringLiteral variants[] = {"cudnn", "math", "cublaslt"};
  return variants;
}

std::optional<std::string> GPUTarget::whyNotHere(StringRef variant,
                                                 Operation *op) const {
  return variant == "cudnn" ? whyNotCuDNN(op) : std::nullopt;
}

void GPUTarget::addPasses(OpPassManager &function) const {
  function.addPass(createSplitReductions());
}

void GPUTarget::addSchedule(OpPassManager &kernel) const {
  kernel.addPass(createCUDASchedule());
  kernel.addPass(createCUDAVerifySchedule());
}

Status GPUTarget::checkOptions(const plan::CodeOptions &) const { return Ok{}; }

/// Binaries, one after the other, and the functions of each kernel.
static plan::KernelCode pack(ArrayRef<CompiledKernel> kernels) {
  plan::KernelCode code;
  for (const CompiledKernel &kernel : kernels) {
    code.bytes.resize(llvm::alignTo(code.bytes.size(), 64));
    code.kernels[kernel.source.name] = {int32_t(code.binaries.size()),
                                        kernel.source.functions};
    const Binary &binary = kernel.binary;
    const size_t at = code.bytes.size();
    code.binaries.push_back({kernel.source.name, at, binary.cubin.size(),
                             at + binary.cubin.size(), binary.ptx.size()});
    code.bytes += binary.cubin + binary.ptx;
  }
  return code;
}

FailureOr<plan::KernelCode>
GPUTarget::compile(ModuleOp program, const plan::CodeOptions &options) const {
  FailureOr<std::vector<CompiledKernel>> kernels = emitKernels(program);
  if (failed(kernels))
    return failure();
  if (options.dump) {
    std::string text;
    for (const CompiledKernel &kernel : *kernels)
      if (!kernel.source.functions.empty())
        text += kernel.source.origin + kernel.source.text + "\n";
    if (failed(options.dump("kernels.cu", text)))
      return failure();
  }
  if (failed(compileKernels(program, *kernels, options,
                            getArchitecture().str())) ||
      (!options.programs.empty() &&
       failed(dumpKernels(program, *kernels, options.programs,
                          getArchitecture()))))
    return failure();
  return pack(*kernels);
}
