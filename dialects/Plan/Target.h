//===- Target.h - what a program is compiled for --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes ask a Target what it runs well, and know none by name. Each folder of
// lib/Compiler/Targets implements and registers its own.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLAN_TARGET_H
#define TESSERA_PLAN_TARGET_H

#include "Layout/Machine.h"
#include "Plan/Plan.h"
#include "Support/Result.h"

#include <memory>

namespace mlir {
class ModuleOp;
class OpPassManager;
} // namespace mlir

namespace tessera::plan {
struct CodeOptions;
struct KernelCode;

/// An op that the library's step of a product takes along.
struct Fusion {
  mlir::Operation *op;
  /// What follows each of the product's sums, and what that reads beside it.
  std::optional<Epilogue> epilogue{};
  mlir::Value x{};
  /// What of the product's tensors is summed.
  std::optional<Summed> summed{};
};

/// Of a device that code is chosen by; zeros where it has no such thing.
struct Limits {
  int64_t multiprocessors = 0;
  int64_t threads = 0;     ///< that a multiprocessor holds at a time
  int64_t sharedBytes = 0; ///< of a multiprocessor's shared memory
};

class Target {
public:
  virtual ~Target() = default;

  /// As in programs and modules: "cpu", "cuda:sm_90a".
  llvm::StringRef getName() const { return name; }
  const Limits &getLimits() const { return limits; }
  /// What moves and loops take. The cpu has that of an H200: a program that is
  /// tried on CPUs moves what it moves on GPUs.
  const layout::Machine &getMachine() const { return machine; }

  /// The variants of ops (Support/Variants.h) that there are here.
  virtual llvm::ArrayRef<llvm::StringLiteral> getVariants() const = 0;
  /// Why this op has no such variant here; nothing if it has.
  std::optional<std::string> whyNot(llvm::StringRef variant,
                                    mlir::Operation *op) const;

  /// Whether the library's step of a product adds its bias.
  virtual bool fusesBias(mlir::Operation *product) const { return false; }
  /// What the library's step of a product does of an op that reads what the
  /// product makes, or what it reads; nothing if it does not do it.
  virtual std::optional<Fusion> fuse(mlir::Operation *product,
                                     mlir::Operation *op) const {
    return std::nullopt;
  }
  /// Whether the library does all of a product's step, or why not.
  virtual Status runs(ContractOp product) const { return Ok{}; }

  /// Whether rows that data name are fetched (comm.fetch) where the model says
  /// that this takes less time; else only where a program says so (tv.step).
  virtual bool choosesFetches() const { return false; }
  /// The latencies of a fetch: ranks swap how many rows each wants, which, and
  /// the rows.
  virtual unsigned getFetchPhases() const { return 3; }

  /// Its own passes over local tensors, before kernels are formed.
  virtual void addPasses(mlir::OpPassManager &function) const {}

  /// The passes of the phase `scheduled`: how its kernels run.
  virtual void addSchedule(mlir::OpPassManager &kernel) const {}

  /// An error at an option that changes nothing here.
  virtual Status checkOptions(const CodeOptions &options) const = 0;
  /// The kernels of a planned program.
  virtual mlir::FailureOr<KernelCode>
  compile(mlir::ModuleOp program, const CodeOptions &options) const = 0;

protected:
  explicit Target(std::string name, const Limits &limits = {},
                  const layout::Machine &machine = {})
      : name(std::move(name)), limits(limits), machine(machine) {}
  /// Of a variant that there is.
  virtual std::optional<std::string> whyNotHere(llvm::StringRef variant,
                                                mlir::Operation *op) const {
    return std::nullopt;
  }

private:
  const std::string name;
  const Limits limits;
  const layout::Machine machine;
};

/// Targets of one kind.
struct TargetKind {
  llvm::StringLiteral example; ///< the name of one
  llvm::StringLiteral names;   ///< of all, for messages
  /// Null where the name is none of these.
  std::unique_ptr<Target> (*make)(llvm::StringRef name);
};
void registerTargets(const TargetKind &kind);
/// What "cuda" alone means: the name of a target.
void registerTargetAlias(llvm::StringLiteral alias,
                         Result<std::string> (*resolve)());

/// The target of a name; an error says what there is. It lives on.
Result<const Target *> findTarget(llvm::StringRef name);
/// The same of a flag's text, which may be an alias.
Result<const Target *> parseTarget(llvm::StringRef text);

/// What a program is for, as a TargetAttr on the module op; absent for the cpu.
inline constexpr llvm::StringLiteral kTargetAttr = "plan.target";
/// Of the program that the op is in.
const Target &getTarget(mlir::Operation *op);
void setTarget(mlir::ModuleOp program, const Target &target);

} // namespace tessera::plan

#endif // TESSERA_PLAN_TARGET_H
