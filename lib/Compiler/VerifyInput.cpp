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
// So tools parse without verifying, and verify here. Nor does that reader look
// at the numbers in a file, so that damage may crash it: a child process reads
// it first, and what it cannot read no other process does.
//
//===----------------------------------------------------------------------===//

#include "Compiler/VerifyInput.h"
#include "TensorView/Functions.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/MemoryBufferRef.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace tessera;

/// Bytes of it: a pipe takes so many before anyone reads.
static constexpr size_t kMostReason = 4096;

/// What the child does: writes to `out` why it cannot read the bytes, if so.
static void readInChild(StringRef bytes, const DialectRegistry &registry,
                        int out) {
  for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGXCPU})
    std::signal(signal, SIG_DFL);
  auto limit = [](auto resource, uint64_t most) {
    rlimit now = {};
    getrlimit(resource, &now);
    now.rlim_cur = std::min<rlim_t>(now.rlim_max, most);
    setrlimit(resource, &now);
  };
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, 1 + (bytes.size() >> 22));
#if !__has_feature(address_sanitizer) // whose shadow takes terabytes
  limit(RLIMIT_AS, (uint64_t(1) << 30) + 64 * bytes.size());
#endif
  // What allocators and assertions say of the damage.
  close(STDERR_FILENO);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string why; // the first error
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (why.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      why = diagnostic.str();
  });
  ParserConfig config(&context, /*verifyAfterParse=*/false);
  OwningOpRef<ModuleOp> program = parseSourceString<ModuleOp>(bytes, config);
  if (program) {
    (void)verifyInput(*program);
    return;
  }
  if (why.empty())
    why = "it cannot be read";
  if (write(out, why.data(), std::min(why.size(), kMostReason)) < 0)
    _exit(1);
}

Status tessera::tryBytecode(StringRef bytes, const DialectRegistry &registry) {
  if (!isBytecode(llvm::MemoryBufferRef(bytes, "")))
    return Ok{};
  auto cannotStart = [] {
    return Error{std::string("cannot start a process that tries the "
                             "bytecode: ") +
                 strerror(errno)};
  };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0)
    return cannotStart();
  llvm::scope_exit from([&] { close(ends[0]); });
  pid_t child = fork();
  if (child < 0) {
    Status failed = cannotStart();
    close(ends[1]);
    return failed;
  }
  if (child == 0) {
    readInChild(bytes, registry, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  char reason[kMostReason];
  ssize_t length;
  while ((length = read(ends[0], reason, sizeof reason)) < 0 && errno == EINTR)
    ;
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return Error{std::string("cannot wait for the process that tries the "
                               "bytecode: ") +
                   strerror(errno)};
  if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0)
    return Error{"damaged bytecode: reading it would crash"};
  if (length > 0)
    return Error{"damaged bytecode: " + std::string(reason, length)};
  return Ok{};
}

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

/// MLIR's own error does not say which function was meant.
static LogicalResult verifyCalls(Operation *program) {
  SymbolTableCollection symbols;
  auto verify = [&](func::CallOp call) -> WalkResult {
    FlatSymbolRefAttr callee = call.getCalleeAttr();
    if (!callee || symbols.lookupNearestSymbolFrom(call, callee))
      return WalkResult::advance();
    return call.emitOpError()
           << "'" << callee.getValue() << "' is no function here"
           << tv::suggestFunction(call, callee.getValue());
  };
  return failure(program->walk(verify).wasInterrupted());
}

LogicalResult tessera::verifyInput(Operation *program) {
  return failure(failed(verifyTensorTypes(program)) ||
                 failed(verifyCalls(program)) || failed(mlir::verify(program)));
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
