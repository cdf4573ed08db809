//===- Clock.h - one time for the clocks of all ranks ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In a meeting of all ranks nobody leaves before all have come. So a rank's
// clock as it came, less rank 0's as that left, is at most what the one is
// ahead of the other; and as it left, less rank 0's as that came, at least. A
// few meetings leave a short interval between these bounds. Ranks of one
// machine have the same clock, and no error.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUN_CLOCK_H
#define TESSERA_RUN_CLOCK_H

#include "Team.h"

namespace tessera::run {

/// When a rank came to a meeting and when it left, in seconds of its own clock.
struct Meeting {
  double came, left;
};

struct Clock {
  double ahead = 0; ///< of rank 0's, in seconds
  double error = 0; ///< the true value is that far away at most
};

/// Of a rank's clock, from the same meetings as rank 0 saw them. `shared`:
/// whether the two are expected to have one clock.
Clock compareClocks(const std::vector<Meeting> &mine,
                    const std::vector<Meeting> &first, bool shared);

/// All ranks: the monotonic clocks of all of them.
Result<std::vector<Clock>> compareClocks(Team &team);

} // namespace tessera::run

#endif // TESSERA_RUN_CLOCK_H
