//===- Register.cpp - all that the compiler registers --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One line a folder of passes, one line a folder of targets.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Register.h"

#include "Allocate/Passes.h"
#include "Bind/Passes.h"
#include "Compiler/Pipeline.h"
#include "Compiler/Targets/CPU/Target.h"
#include "Compiler/Targets/CUDA/Passes.h"
#include "Compiler/Targets/CUDA/Target.h"
#include "Compiler/VerifyInput.h"
#include "Differentiate/Passes.h"
#include "Kernels/Passes.h"
#include "Localize/Passes.h"
#include "Memory/Passes.h"
#include "Place/Passes.h"
#include "Propagate/Passes.h"
#include "Reshard/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace tessera;

static void registerTargets() {
  static const bool once = [] {
    cpu::registerTargets();
    cuda::registerTargets();
    return true;
  }();
  (void)once;
}

void tessera::registerAll(DialectRegistry &registry) {
  registerTargets();
  registerDialects(registry);
}

void tessera::registerAllPasses() {
  registerTargets();
  // Of MLIR's own, those that know nothing of our ops.
  registerCanonicalizerPass();
  registerCSEPass();
  registerStripDebugInfoPass();
  registerSymbolDCEPass();
  tv::registerDifferentiatePasses();
  tv::registerBindPasses();
  tv::registerPropagatePasses();
  tv::registerPlacePasses();
  tv::registerReshardPasses();
  tv::registerAllocatePasses();
  tv::registerLocalizePasses();
  registerKernelsPasses();
  registerMemoryPasses();
  cuda::registerCUDAPasses();
  registerPipeline();
  registerVerifyInputPass();
}
