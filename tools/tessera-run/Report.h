//===- Report.h - what tessera-run prints about a run ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUN_REPORT_H
#define TESSERA_RUN_REPORT_H

#include "Verify.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tessera::run {

/// Numbers of one collective on one rank, in one run.
struct Traffic {
  uint64_t sent, received, copies, copiedBytes;
  double seconds;
};

struct Collective {
  std::string kind, axes, op, location, loser;
  uint64_t tensors;
  Traffic traffic; ///< of this rank; the largest numbers, when merged
  std::vector<Traffic> byRank; ///< once merged
};

struct Memory {
  uint64_t external, local, symmetric, constants;
};

/// What collectives go through, of rank 0, with the largest numbers of any.
struct Communicator {
  std::string library, ranks, axes;
  int groups;
  bool split;
  struct Numbers {
    uint64_t collectives, calls, sent, received, memory;
    double seconds;
  } numbers;
};

/// Matrix products, by where their algorithms come from.
struct Products {
  uint64_t stored, measured, heuristic;
  uint64_t hash; ///< of the first two kinds' algorithms
};

/// An op that has variants.
struct Choice {
  std::string kind, op, location, chosen;
  std::vector<std::string> variants; ///< those in the module
};

struct Report {
  std::string module, mesh;
  int ranks;
  std::string target;
  uint64_t hash; ///< of the module
  RankDevice device;
  std::vector<RankDevice> devices; ///< by rank, once merged
  std::vector<Communicator> communicators;
  bool graph; ///< whether runs replay a recorded one
  bool timed; ///< whether collectives have times
  std::vector<std::pair<std::string, int64_t>> sizes;
  std::vector<Collective> collectives;
  std::vector<Choice> choices;
  /// Names of scalars, and what they were after each run.
  std::vector<std::pair<std::string, std::vector<double>>> logged;
  std::vector<double> seconds;     ///< one a run
  std::vector<double> hostSeconds; ///< likewise; of graphs, one a launch
  Memory memory;
  std::vector<Memory> memories; ///< by rank, once merged
  bool withProducts = false; ///< whether these are shown
  Products products;         ///< of all ranks, when merged
  std::string output, save, trace; ///< empty: none
  Comparison comparison;     ///< the same on all ranks already

  /// Replaces each number by the largest of all ranks, or the sum where that is
  /// said; all ranks call it.
  Status merge(Team &team);
  std::string text() const;
  /// What does not differ from run to run: no times.
  std::string collectivesText() const;
  /// Likewise: a row for each rank.
  std::string ranksText() const;
  std::string json() const;

private:
  std::string title() const;
  std::string bitsTable() const;
  std::string communicatorTable() const;
  std::string collectiveTable(bool withTimes) const;
};

/// Rows of cells in columns.
std::string table(const std::vector<std::vector<std::string>> &rows,
                  const std::vector<bool> &alignRight);

} // namespace tessera::run

#endif // TESSERA_RUN_REPORT_H
