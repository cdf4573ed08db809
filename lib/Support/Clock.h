//===- Clock.h - time that only goes forward ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_CLOCK_H
#define TESSERA_SUPPORT_CLOCK_H

#include <ctime>

namespace tessera {

/// Seconds on a clock that only goes forward.
inline double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

} // namespace tessera

#endif // TESSERA_SUPPORT_CLOCK_H
