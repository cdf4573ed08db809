//===- Trace.h - the steps of a run on a time axis ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUN_TRACE_H
#define TESSERA_RUN_TRACE_H

#include "Session.h"

namespace tessera::run {

/// All ranks: writes the steps of the last run in the Trace Event Format, which
/// Perfetto and Chrome show: a process a rank, on one time axis.
/// `temporary` is its name until it is whole.
Status writeTrace(const std::string &path, const std::string &temporary,
                  const Session &session, Team &team);

} // namespace tessera::run

#endif // TESSERA_RUN_TRACE_H
