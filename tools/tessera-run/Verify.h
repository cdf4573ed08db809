//===- Verify.h - results beside those of the CPU -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUN_VERIFY_H
#define TESSERA_RUN_VERIFY_H

#include "Report.h"
#include "Session.h"

namespace tessera::run {

/// `threads`: where the ranks meet for that, null without that transport.
/// All ranks: runs the module that the options name for it on the CPU, as often
/// and on the same inputs, and compares what it leaves with what `session` has.
Result<std::vector<Difference>> compareWithCPU(const Session &session,
                                               const Options &options,
                                               Team &team,
                                               tessera_threads *threads);

} // namespace tessera::run

#endif // TESSERA_RUN_VERIFY_H
