//===- Team.h - what tessera-run's ranks tell each other ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The names of temporary files and the numbers of the report go between ranks
// here, apart from the library's own communication.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUN_TEAM_H
#define TESSERA_RUN_TEAM_H

#include "Support/Result.h"
#include "Support/Try.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace tessera::run {

/// One rank's membership.
class Team {
public:
  virtual ~Team() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// `all` receives `bytes` from each rank, in rank order. An error when the
  /// others do not come within the deadline and 1 s.
  virtual Status allGather(const void *mine, void *all, size_t bytes) = 0;

  template <typename T> Result<std::vector<T>> allGather(const T &mine) {
    std::vector<T> all(static_cast<size_t>(size()));
    TSR_TRY(allGather(&mine, all.data(), sizeof mine));
    return all;
  }
  /// All ranks have come here.
  Status barrier() {
    Result<std::vector<char>> all = allGather(char{0});
    return all ? Status(Ok{}) : Status(all.error());
  }
};

/// `size` ranks as threads of this process; one alone, too.
std::vector<std::unique_ptr<Team>> makeThreadsTeams(int size, double deadline);

/// The processes of an MPI job, through the library's plug-in.
Result<std::unique_ptr<Team>> joinMPITeam(double deadline);

/// Ends all processes of the job, if joinMPITeam has been called.
void abortMPI(int code);

} // namespace tessera::run

#endif // TESSERA_RUN_TEAM_H
