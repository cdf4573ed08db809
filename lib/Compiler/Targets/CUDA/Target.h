//===- Target.h - NVIDIA GPUs ---------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CUDA_TARGET_H
#define TESSERA_COMPILER_TARGETS_CUDA_TARGET_H

#include "Plan/Target.h"

namespace tessera::cuda {

/// Makes all targets of this folder known.
void registerTargets();

/// Named as "cuda:sm_90a". Products by cuBLASLt, attention by cuDNN.
class GPUTarget : public plan::Target {
public:
  llvm::ArrayRef<llvm::StringLiteral> getVariants() const override;

  bool fusesBias(mlir::Operation *product) const override;
  std::optional<plan::Fusion> fuse(mlir::Operation *product,
                                   mlir::Operation *op) const override;
  Status runs(plan::ContractOp product) const override;
  /// Rows are read in each other's memory between two meetings.
  unsigned getFetchPhases() const override { return 2; }
  void addPasses(mlir::OpPassManager &function) const override;
  void addSchedule(mlir::OpPassManager &kernel) const override;
  Status checkOptions(const plan::CodeOptions &options) const override;
  mlir::FailureOr<plan::KernelCode>
  compile(mlir::ModuleOp program,
          const plan::CodeOptions &options) const override;

  /// As NVRTC names it: "sm_90a".
  llvm::StringRef getArchitecture() const {
    return getName().substr(getName().find(':') + 1);
  }

protected:
  using Target::Target;
  std::optional<std::string> whyNotHere(llvm::StringRef variant,
                                        mlir::Operation *op) const override;
};

/// Why cuDNN cannot do an attention, or none can; nothing if it can.
std::optional<std::string> whyNotCuDNN(mlir::Operation *op);
/// The same of our own kernels for tensor cores of sm_90a, of an attention or
/// its gradient.
std::optional<std::string> whyNotFlash(mlir::Operation *op);

/// Null where the name is none of a file's.
#define TARGET(MAKE, EXAMPLE, NAMES)                                           \
  std::unique_ptr<plan::Target> MAKE(llvm::StringRef name);
#include "Compiler/Targets/CUDA/Targets.def"
#undef TARGET

/// The name of the target for all GPUs of this machine, by the driver.
Result<std::string> findOnMachine();

} // namespace tessera::cuda

#endif // TESSERA_COMPILER_TARGETS_CUDA_TARGET_H
