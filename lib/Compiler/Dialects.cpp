//===- Dialects.cpp - all dialects that the compiler registers ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Comm/Comm.h"
#include "Compiler/Register.h"
#include "Plan/Plan.h"
#include "Schedule/Schedule.h"
#include "TensorView/TensorView.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;

void tessera::registerDialects(DialectRegistry &registry) {
  // scf, so that control flow gets an error of ours.
  registry.insert<arith::ArithDialect, func::FuncDialect, math::MathDialect,
                  memref::MemRefDialect, scf::SCFDialect>();
  registry.insert<tv::TensorViewDialect, comm::CommDialect, plan::PlanDialect,
                  schedule::ScheduleDialect>();
}
