//===- tessera-opt.cpp - runs passes on IR -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiler/Register.h"
#include "Compiler/VerifyInput.h"
#include "Interpreter/Machine/InterpretPass.h"
#include "Support/StandardStreams.h"
#include "TensorView/TensorView.h"
#ifdef TESSERA_TESTS
#include "lib/TestPasses.h"
#endif

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

static llvm::cl::opt<bool> typeAliases(
    "type-aliases",
    llvm::cl::desc("Print each tensor type with a view once, as an alias such "
                   "as !t8x16xf32"));

int main(int argc, char **argv) {
  tessera::holdStandardStreams();
  llvm::InitLLVM init(argc, argv, /*InstallPipeSignalExitHandler=*/false);
  llvm::cl::SetVersionPrinter(
      [](llvm::raw_ostream &os) { os << "Tessera " TESSERA_VERSION "\n"; });
  mlir::DialectRegistry registry;
  tessera::registerAll(registry);
  tessera::registerAllPasses();
  tessera::interp::registerInterpretOptions();
#ifdef TESSERA_TESTS
  tessera::test::registerPlacementTestPass();
  tessera::test::registerPrintRulesPass();
  tessera::test::registerGradientTestPass();
  tessera::test::registerRuleTestPass();
#endif
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "Tessera: passes on sharded tensor programs\n", registry);
  if (typeAliases)
    registry.addExtension(
        +[](mlir::MLIRContext *, tessera::tv::TensorViewDialect *dialect) {
          dialect->setTensorTypeAliases(true);
        });
  mlir::MlirOptMainConfig config =
      mlir::MlirOptMainConfig::createFromCLOptions();
  mlir::MlirOptMainConfig asked = config;
  config.verifyOnParsing(false);
  config.setPassPipelineSetupFn([asked](mlir::PassManager &passes) {
    if (asked.shouldVerifyOnParsing())
      passes.addPass(tessera::createVerifyInputPass());
    return tessera::interp::addInterpretation(
        passes, [&](mlir::PassManager &inner) {
          return asked.setupPassPipeline(inner);
        });
  });
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> in = mlir::openInputFile(input, &error);
  std::unique_ptr<llvm::ToolOutputFile> out =
      in ? mlir::openOutputFile(output, &error) : nullptr;
  if (!out) {
    llvm::errs() << error << "\n";
    return EXIT_FAILURE;
  }
  if (tessera::Status status = tessera::tryBytecode(in->getBuffer(), registry);
      !status) {
    llvm::errs() << in->getBufferIdentifier()
                 << ":1:1: error: " << status.message() << "\n";
    return EXIT_FAILURE;
  }
  llvm::LogicalResult result =
      mlir::MlirOptMain(out->os(), std::move(in), registry, config);
  out->os().flush();
  if (out->os().has_error()) {
    llvm::WithColor::error(llvm::errs(), "tessera-opt")
        << "cannot write '" << output << "': " << out->os().error().message()
        << "\n";
    out->os().clear_error();
    return EXIT_FAILURE;
  }
  if (succeeded(result))
    out->keep();
  return mlir::asMainReturnCode(result);
}
