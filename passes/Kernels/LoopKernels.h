//===- LoopKernels.h - ops with a kernel of their own ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_LOOPKERNELS_H
#define TESSERA_KERNELS_LOOPKERNELS_H

#include "Kernels/KernelEmitter.h"

namespace tessera {
/// Copies `init`, then combines the updates of each place in order.
void emitScatter(KernelEmitter &emitter, tv::ScatterOp op);
/// Gives out rows in order, counting those of each expert.
void emitDispatch(KernelEmitter &emitter, tv::DispatchOp op);
} // namespace tessera

#endif // TESSERA_KERNELS_LOOPKERNELS_H
