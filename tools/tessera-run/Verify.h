//===- Verify.h - results beside those of the CPU -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How far a result may be from the CPU's. Each may be as far from the exact one
// as the project's tolerance says: four times what a program of these types is
// off by itself, and a rounding error of what is in a row. How far the program
// is off is measured, not guessed: the CPU runs it a second time with each
// floating input moved by about a unit in the last place of the program's
// coarsest type, up or down, and what that does to a row counts. Integers must
// be equal.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUN_VERIFY_H
#define TESSERA_RUN_VERIFY_H

#include "Session.h"

namespace tessera::run {

/// An element of an output that is the worst in some respect.
struct Worst {
  double value = 0;   ///< how bad
  int64_t place = -1; ///< row-major in the global tensor; -1: none is bad
  double mine = 0, reference = 0, allowed = 0;

  void meet(const Worst &other) {
    if (other.place >= 0 && (place < 0 || other.value > value ||
                             (other.value == value && other.place < place)))
      *this = other;
  }
};

/// How far an output is from the CPU's, on all ranks.
struct Difference {
  std::string name;
  DType dtype;
  layout::Shape shape;
  Worst largest;    ///< |mine - reference|
  Worst relative;   ///< of the larger of the two
  Worst share;      ///< of what is allowed; above 1 it is wrong
  double wrong = 0; ///< elements
  int64_t elements = 0;
};

struct Comparison {
  /// What is allowed, for people; empty without one.
  std::string rule;
  std::vector<Difference> outputs;

  std::string text() const;
  /// An error when an output is too far away.
  Status check() const;
};

/// The program of a session, compiled for the CPU.
struct Reference {
  Session cpu;
  std::vector<size_t> ports; ///< its number of each port of that session
};
/// All ranks: loads the module that the options name for it, and checks that it
/// is the same program. `threads`: where the ranks meet for that, null without
/// that transport.
Result<std::unique_ptr<Reference>> openReference(const Session &session,
                                                 const Options &options,
                                                 Team &team,
                                                 tessera_threads *threads);
/// All ranks: runs it as often and on the same inputs, which are open, and
/// compares what it leaves with what `session` has.
Result<Comparison> compareWithCPU(const Session &session, Reference &reference,
                                  const Options &options, Team &team);

} // namespace tessera::run

#endif // TESSERA_RUN_VERIFY_H
