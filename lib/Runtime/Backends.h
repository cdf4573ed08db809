//===- Backends.h - what a context can run on -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_BACKENDS_H
#define TESSERA_RUNTIME_BACKENDS_H

#include "Exec/Backend.h"

namespace tessera {

/// The backend that `options` name, for the rank of `peers`; checks that it can
/// run here. The peers, who have joined their transport, outlive it.
Outcome<std::unique_ptr<Backend>>
createBackend(const tessera_context_options &options, Peers &peers);

} // namespace tessera

#endif // TESSERA_RUNTIME_BACKENDS_H
