//===- VerifyInput.cpp - what a program that was read must be -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parser of text asks a tensor type's encoding whether it fits the type;
// MLIR's reader of bytecode does not, and no verifier of an op does it later.
// So tools parse without verifying, and verify here.
//
//===----------------------------------------------------------------------===//

#include "Compiler/VerifyInput.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace tessera;

/// Checks the tensor types of results, of arguments of blocks, and inside of
/// attributes, such as a function's type.
static LogicalResult verifyTensorTypes(Operation *program) {
  Operation *at = program;
  // Visits each type once, however many ops have it.
  AttrTypeWalker types;
  types.addWalk([&](RankedTensorType type) {
    auto emitError = [&] {
      return mlir::emitError(at->getLoc())
             << "type " << type << " is not legal: ";
    };
    return WalkResult(RankedTensorType::verify(
        emitError, type.getShape(), type.getElementType(), type.getEncoding()));
  });
  auto verify = [&](Operation *op) -> WalkResult {
    at = op;
    if (types.walk(op->getAttrDictionary()).wasInterrupted())
      return WalkResult::interrupt();
    for (Type type : op->getResultTypes())
      if (types.walk(type).wasInterrupted())
        return WalkResult::interrupt();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          if (types.walk(type).wasInterrupted())
            return WalkResult::interrupt();
    return WalkResult::advance();
  };
  return failure(program->walk<WalkOrder::PreOrder>(verify).wasInterrupted());
}

LogicalResult tessera::verifyInput(Operation *program) {
  return failure(failed(verifyTensorTypes(program)) ||
                 failed(mlir::verify(program)));
}

namespace {
struct VerifyInputPass : public PassWrapper<VerifyInputPass, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VerifyInputPass)
  StringRef getArgument() const override { return "verify-input"; }
  StringRef getDescription() const override {
    return "Verify a program that was parsed without; all input is";
  }
  void runOnOperation() override {
    if (failed(verifyInput(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace

std::unique_ptr<Pass> tessera::createVerifyInputPass() {
  return std::make_unique<VerifyInputPass>();
}
void tessera::registerVerifyInputPass() { registerPass(createVerifyInputPass); }
