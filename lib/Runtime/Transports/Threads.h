//===- Threads.h - ranks that are threads of one process ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_TRANSPORTS_THREADS_H
#define TESSERA_RUNTIME_TRANSPORTS_THREADS_H

#include "Exec/Transport.h"

namespace tessera {

/// The meeting point of ranks that are threads of one process.
class ThreadsGroup {
public:
  static std::shared_ptr<ThreadsGroup> create(int size);
  virtual ~ThreadsGroup() = default;
  virtual int size() const = 0;
  /// Rank `rank`'s end; each rank is taken once at a time. When it is
  /// destroyed, peers that wait for it get an error.
  virtual Result<std::unique_ptr<Transport>> join(int rank) = 0;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_TRANSPORTS_THREADS_H
