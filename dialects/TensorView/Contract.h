//===- Contract.h - what a pass needs of a program --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pass names in its TableGen entry (ContractPass.td) the pass after which it
// runs. What is true there is checked before it begins, so that its code may
// rely on it, whoever wrote the program.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_CONTRACT_H
#define TESSERA_TENSORVIEW_CONTRACT_H

#include "TensorView/TensorView.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace tessera::tv {

/// A program of more ops is not one that somebody means to run.
inline constexpr uint64_t kMaxOps = uint64_t(1) << 18;

/// A dialect whose ops may touch one device's parts, beside tv.
class LocalDialectInterface
    : public mlir::DialectInterface::Base<LocalDialectInterface> {
public:
  LocalDialectInterface(mlir::Dialect *dialect) : Base(dialect) {}
};

/// What is true of a program after a pass, in order: each holds what the one
/// before does, but that of `Localized`, which has local types for views.
enum class Contract {
  /// tv-bind: functions have a body, of one block, in which only ops of ours
  /// touch tensors, and no gradient is left; views are canonical, and on one
  /// mesh.
  Bound,
  /// tv-propagate-shardings: every tensor has a view, every dimension of which
  /// is decided, a state's next value that of the state; no op that guides
  /// propagation is left.
  Propagated,
  /// tv-plan-reshards: every reshard has a plan.
  Planned,
  /// tv-localize: every tensor is one device's part; no reshard is left.
  Localized,
};

/// Of each result the state that it is the next value of; null: none.
llvm::SmallVector<mlir::BlockArgument>
getStates(mlir::func::FuncOp function);

/// An error at what does not fulfil the contract of `pass` in `root`, a
/// function or a module of functions.
llvm::LogicalResult verifyContract(mlir::Operation *root, Contract contract,
                                   llvm::StringRef pass);

/// A pass that relies on a contract.
template <Contract contract, typename OpT>
class ContractPass : public mlir::OperationPass<OpT> {
protected:
  using mlir::OperationPass<OpT>::OperationPass;
  ContractPass(const ContractPass &) = default;

  virtual void runOnContract() = 0;

private:
  void runOnOperation() final {
    if (failed(verifyContract(this->getOperation(), contract,
                              this->getArgument())))
      return this->signalPassFailure();
    runOnContract();
  }
};

} // namespace tessera::tv

#endif // TESSERA_TENSORVIEW_CONTRACT_H
