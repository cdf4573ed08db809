//===- Control.h - who is dead, who is stuck ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The control channel of a context: a thread of its own and a socket to rank 0,
// apart from what moves the tensors. Each rank reports how far it is, several
// times a second. Rank 0 judges:
//
//   dead     the connection ends without a farewell
//   stopped  a rank waits for longer than the deadline, and another one has not
//            reported for as long: its process is stopped or its host is gone
//   stuck    ... and another one is not waiting, yet makes no progress
//   astray   ... and all wait, at different ops: the one ahead has not taken
//            part in an op of the others
//   failed   a rank gave up for a reason of its own
//
// and tells all the first verdict there is. When rank 0 itself is dead or
// silent, the others see it alone. A verdict reaches every rank that can run
// within the deadline and 2 seconds.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_CONTROL_CONTROL_H
#define TESSERA_RUNTIME_CONTROL_CONTROL_H

#include "Exec/Watch.h"
#include "Support/Result.h"

#include <functional>
#include <memory>

namespace tessera {

/// Collective: `all` receives `bytes` from each rank, in rank order.
using AllGather =
    std::function<Status(const void *mine, void *all, size_t bytes)>;

/// Collective: joins the ranks by three all-gathers. When one rank cannot join,
/// all get an error. `deadline` is in seconds: what a wait for a rank may take,
/// and the time from the end of the second all-gather to the begin of the third
/// is below it. Destroying the result says farewell.
Result<std::unique_ptr<Watch>>
startControl(int rank, int world, double deadline, const AllGather &allGather);

} // namespace tessera

#endif // TESSERA_RUNTIME_CONTROL_CONTROL_H
