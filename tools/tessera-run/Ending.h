//===- Ending.h - how a rank's process ends other than in peace -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// By an error, by a signal, or because a call into MPI does not return: then
// temporary files go, and one rank of the job says in one line why.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUN_ENDING_H
#define TESSERA_RUN_ENDING_H

#include "Support/Result.h"

#include <optional>
#include <string>

namespace tessera::run {

/// This process' rank, if an MPI launcher started it.
std::optional<int> launchedRank();

/// Before any other thread: from here on a thread takes SIGINT, SIGTERM and
/// SIGHUP, and watches phases.
Status startWarden();

/// The process ends with an error when this rank stays in what `name` says for
/// longer. There is one phase at a time.
class Phase {
public:
  Phase(const char *name, double seconds);
  ~Phase();
  Phase(const Phase &) = delete;
  /// It goes on until the end of the process.
  void keep() { kept = true; }

private:
  bool kept = false;
};

/// A file that the job's error leaves not behind, whoever made it.
void removeAtError(const std::string &path);

/// Says the error and ends all ranks. Of the ranks of a machine one says it:
/// rank 0 at once, the others, of which `culprit` does not count, a little
/// later, so that what all have is said in rank 0's words.
[[noreturn]] void fail(int rank, std::string message, int culprit = -1);

/// Of the job's ranks on this machine, those that have ended or are stopped, as
/// the rest of a sentence: "; rank 1 is stopped". Empty when there is none, or
/// where this is not known.
std::string describeAbsent();

} // namespace tessera::run

#endif // TESSERA_RUN_ENDING_H
