//===- Context.h - one rank -----------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_CONTEXT_H
#define TESSERA_RUNTIME_CONTEXT_H

#include "Module/Module.h"
#include "Runtime/Backends.h"
#include "Runtime/Transports/Threads.h"

#include <memory>
#include <mutex>

namespace tessera {

using ReadModule = Result<std::shared_ptr<const ModuleReader>>;

inline ReadModule share(Result<ModuleReader> module) {
  if (!module)
    return module.error();
  return std::make_shared<const ModuleReader>(std::move(*module));
}

/// What ranks that are threads of one process have read: a module that all of
/// them load is checked and kept once.
class SharedModules {
public:
  ReadModule read(std::string_view bytes);

private:
  std::mutex mutex;
  std::weak_ptr<const ModuleReader> last;
};

class Context final : public Peers, private Poll {
public:
  /// Collective.
  static Outcome<std::unique_ptr<Context>>
  create(const tessera_context_options &options);
  ~Context();

  int rank() const override { return self; }
  int size() const override { return world; }
  double deadline() const override { return options.deadline; }
  Transport *transport() override { return link.get(); }
  Watch *watch() override { return watcher.get(); }
  void log(tessera_log_level level, const std::string &message) const override;
  Poll &startWait() override;
  Status allGather(const void *mine, void *all, size_t bytes) override {
    return gather(mine, all, bytes, /*anew=*/true);
  }
  Outcome<Ok> agree(const Outcome<Ok> &mine, uint64_t value,
                    const std::string &what) override;
  const Failure &giveUp(Failure failure) override;
  /// Until the first failure of a run; the context is of no use from then on.
  const Outcome<Ok> &alive() const { return state; }

  /// A module's bytes.
  ReadModule read(std::string_view bytes) const {
    return modules ? modules->read(bytes) : share(ModuleReader::read(bytes));
  }

  uint64_t memoryLimit() const { return options.memory_limit; }
  Backend &backend() const { return *device; }

  struct Memories {
    std::shared_ptr<Block> local, symmetric, constants;
  };
  /// Local and symmetric memory are shared by bindings, as they never run at
  /// once; a binding keeps the block it got when a later one needs a larger.
  /// What is missing is known to be there before any of it is allocated.
  Outcome<Memories> allocate(const tessera_memory &needs);
  /// For later bindings, when all ranks have theirs: so that all reuse
  /// symmetric memory, or none does.
  void keep(const Memories &memories);

private:
  explicit Context(const tessera_context_options &options);
  Status poll() override;
  void blame(int peer) override { culprit = peer; }
  Status openTransport();
  /// Whether the options say what the transport does.
  Outcome<Ok> checkRank();
  /// Without `anew` the deadline counts on from the gather before.
  Status gather(const void *mine, void *all, size_t bytes, bool anew);

  tessera_context_options options;
  tessera_bootstrap bootstrap{};
  int self = 0, world = 1;
  std::unique_ptr<Transport> link;
  std::shared_ptr<SharedModules> modules; ///< null: not a thread of a group
  std::unique_ptr<Watch> watcher;
  std::optional<Verdict> verdict;
  Outcome<Ok> state = Ok{};
  std::unique_ptr<Backend> device; // goes after the memory and before the link
  std::shared_ptr<Block> local, symmetric;
  double waitBegan = 0;
  int culprit = -1; ///< whom the last wait was for when it ended in an error
};

} // namespace tessera

/// The C handles.
struct tessera_threads {
  std::shared_ptr<tessera::ThreadsGroup> group;
  std::shared_ptr<tessera::SharedModules> modules;
};

#endif // TESSERA_RUNTIME_CONTEXT_H
