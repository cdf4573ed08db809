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

/// The `flash` variant of attention: one op. Emits the kernel's only output, or
/// two if the log-sum-exp is used.
void emitAttention(KernelEmitter &emitter, tv::AttentionOp op);
/// Why an attention has no `flash` variant on a target; nothing if it has.
std::optional<std::string> whyNotFlash(tv::AttentionOp op,
                                       llvm::StringRef target);
} // namespace tessera

#endif // TESSERA_KERNELS_LOOPKERNELS_H
