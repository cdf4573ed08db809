//===- Peers.h - this rank among the others -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_EXEC_PEERS_H
#define TESSERA_EXEC_PEERS_H

#include "Exec/Failure.h"
#include "Exec/Transport.h"
#include "Exec/Watch.h"

#include <cstdio>

namespace tessera {

/// What a backend needs of the context that it runs in.
class Peers {
public:
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Seconds that a wait for other ranks may take.
  virtual double deadline() const = 0;
  /// "2.5 s"
  std::string deadlineText() const {
    char text[32];
    snprintf(text, sizeof text, "%g s", deadline());
    return text;
  }
  /// Null when there is one rank.
  virtual Transport *transport() = 0;
  /// Null without a control channel.
  virtual Watch *watch() = 0;
  virtual void log(tessera_log_level level,
                   const std::string &message) const = 0;

  /// Asked by transports from here on; the deadline counts anew.
  virtual Poll &startWait() = 0;
  /// Collective: `bytes` from each rank, in rank order.
  virtual Status allGather(const void *mine, void *all, size_t bytes) = 0;
  /// Collective: fails on all ranks if one brings a failure or if the values
  /// differ; `what` then says what ("the module").
  virtual Outcome<Ok> agree(const Outcome<Ok> &mine, uint64_t value,
                            const std::string &what) = 0;
  /// Completes a failure with what the verdict knows, tells the other ranks and
  /// ends the context.
  virtual const Failure &giveUp(Failure failure) = 0;

protected:
  ~Peers() = default;
};

} // namespace tessera

#endif // TESSERA_EXEC_PEERS_H
