//===- Target.cpp - x86-64 ------------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CPU/Target.h"
#include "Compiler/Targets/CPU/Codegen.h"
#include "Plan/KernelCode.h"
#include "Plan/Target.h"

using namespace mlir;
using namespace tessera;

namespace {
class CPU final : public plan::Target {
public:
  explicit CPU(StringRef name) : Target(name.str()) {}

  ArrayRef<StringLiteral> getVariants() const override {
    static constexpr StringLiteral variants[] = {"math"};
    return variants;
  }

  Status runs(plan::ContractOp product) const override {
    if (product.getBias() || product.getEpilogue() || product.getSummed())
      return Error{"the cpu has no product with a bias, an epilogue or sums"};
    return Ok{};
  }

  bool choosesFetches() const override { return true; }

  Status checkOptions(const plan::CodeOptions &options) const override {
    if (!options.programs.empty())
      return Error{"kernels for cpu are no programs of their own; see the "
                   "files kernels.* of --dump-dir"};
    if (!options.nvrtc.empty())
      return Error{"kernels for cpu need no --nvrtc"};
    return Ok{};
  }

  FailureOr<plan::KernelCode>
  compile(ModuleOp program, const plan::CodeOptions &options) const override {
    cpu::KernelDumps dumps;
    FailureOr<std::string> elf =
        cpu::compileKernels(program, options.dump ? &dumps : nullptr);
    if (failed(elf) ||
        (options.dump && (failed(options.dump("kernels.ll", dumps.llvm)) ||
                          failed(options.dump("kernels.s", dumps.assembly)))))
      return failure();
    plan::KernelCode code;
    code.bytes = std::move(*elf);
    return code;
  }
};
} // namespace

static std::unique_ptr<plan::Target> makeCPU(StringRef name) {
  if (name != "cpu")
    return nullptr;
  return std::make_unique<CPU>(name);
}

void cpu::registerTargets() { plan::registerTargets({"cpu", "cpu", makeCPU}); }
