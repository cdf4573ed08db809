//===- EmulatedKernels.h - what kernels include, on the host --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled once, for hundreds of modules.
//
//===----------------------------------------------------------------------===//

#include "Emulation.h"
#include "base/prelude.cuh"
#include "base/random.cuh"
#include "gemm/gemm.cuh"
#include "rows/rows.cuh"
#include "rows/tiles.cuh"
