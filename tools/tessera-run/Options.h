//===- Options.h - the command line of tessera-run ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUN_OPTIONS_H
#define TESSERA_RUN_OPTIONS_H

#include "Support/Result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::run {

/// The backend that needs nothing beside this machine.
inline constexpr char kHostBackend[] = "cpu";

struct Options {
  const char *about = nullptr; ///< what to say instead of a run
  std::string module;
  std::vector<std::string> inputs;
  std::string names; ///< a map of names; empty: none
  std::vector<std::pair<std::string, int64_t>> sizes;
  std::string output;    ///< empty: results are dropped
  std::string save;      ///< a file for the states; empty: none
  int64_t saveEvery = 0; ///< steps; 0: only after the last one
  enum class Format { Text, Collectives, Ranks, JSON };
  Format report = Format::Text;
  int64_t steps = 1;
  std::vector<std::string> logged; ///< names of results
  std::string transport; ///< "mpi", "threads", or empty for a single rank
  int64_t ranks = 1;     ///< for "threads"
  double deadline = 60;
  int64_t memoryLimit = 0;
  std::string backend;           ///< empty: the module's
  std::optional<int32_t> device; ///< ordinal of the GPU
  bool symmetric = false, copyEngines = false;
  bool noGraph = false;
  std::string algorithms; ///< a file of them; empty: none
  bool autotune = false;  ///< measure what it lacks
  bool verbose = false;
  std::string trace; ///< a file for the last run's steps; empty: none
  /// Kinds of op, and which of their variants are allowed.
  std::vector<std::pair<std::string, std::string>> variants;
  std::string verify; ///< the module for cpu to compare with; empty: none
};

/// `underMPI`: whether mpirun started this process, which makes "mpi" the
/// default transport.
Result<Options> parseOptions(int argc, const char *const *argv, bool underMPI);

} // namespace tessera::run

#endif // TESSERA_RUN_OPTIONS_H
