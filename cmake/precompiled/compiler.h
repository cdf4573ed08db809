//===- compiler.h - what passes read --------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir.h"

#include "Comm/Comm.h"
#include "Plan/Plan.h"
#include "TensorView/TensorView.h"
