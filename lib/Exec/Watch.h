//===- Watch.h - what the executor tells a control channel ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The executor leaves breadcrumbs here: the step it began last and the step it
// ended last. A control channel (Control/) sends them to rank 0 from its own
// thread and brings back a verdict when a rank is dead or stuck. Without one a
// context has no watch.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_EXEC_WATCH_H
#define TESSERA_EXEC_WATCH_H

#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

/// Why no rank can go on.
struct Verdict {
  std::string message; ///< one sentence
  std::string op;      ///< the op at which `rank` was last seen
  std::string location;
  int rank = -1; ///< the dead or stuck rank
};

/// The steps of a plan, for their names. Outlives the run.
class StepNames {
public:
  virtual const char *op(int64_t step) const = 0;
  virtual const char *location(int64_t step) const = 0;

protected:
  ~StepNames() = default;
};

/// The calls come from the rank's own thread. None blocks or allocates, `poll`
/// excepted when it has a verdict.
class Watch {
public:
  virtual ~Watch() = default;
  /// A run of the plan with these steps begins; -1 as a step below means
  /// "between runs".
  virtual void beginRun(const StepNames &names) = 0;
  virtual void endRun() = 0;
  virtual void begin(int64_t step) = 0;
  virtual void end(int64_t step) = 0;
  /// Whether this rank waits for others in the program's own code, where it
  /// cannot poll.
  virtual void wait(bool begins) = 0;
  /// This rank gave up, for a reason of its own or because of `verdict.rank`,
  /// -1 when it does not know; the others are to be told.
  virtual void fail(const Verdict &verdict) = 0;
  /// A verdict, once there is one, for ever after. Cheap: it is asked in a
  /// loop.
  virtual std::optional<Verdict> poll() = 0;
};

} // namespace tessera

#endif // TESSERA_EXEC_WATCH_H
