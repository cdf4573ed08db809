//===- Steps.h - the steps of a plan as works -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_EXEC_STEPS_H
#define TESSERA_EXEC_STEPS_H

#include "Exec/Backend.h"

namespace tessera {

/// Prepares step `index` of the module's plan.
Result<std::unique_ptr<Work>> makeWork(int index, Tensors &tensors,
                                       BackendModule &module);

} // namespace tessera

#endif // TESSERA_EXEC_STEPS_H
