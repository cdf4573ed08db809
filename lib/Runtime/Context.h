//===- Context.h - one rank -----------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_CONTEXT_H
#define TESSERA_RUNTIME_CONTEXT_H

#include "Runtime/Backend.h"
#include "Runtime/Watch.h"

#include <cstddef>
#include <memory>
#include <optional>

namespace tessera {

/// Memory of a backend, returned with the last reference.
class Block {
public:
  Block(Backend &backend, Memory kind, std::byte *pointer, size_t bytes)
      : backend(backend), kind(kind), pointer(pointer), bytes(bytes) {}
  ~Block() { backend.deallocate(kind, pointer, bytes); }
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;

  std::byte *data() const { return pointer; }
  size_t size() const { return bytes; }

private:
  Backend &backend;
  Memory kind;
  std::byte *pointer;
  size_t bytes;
};

class Context final : private Poll {
public:
  /// Collective.
  static Outcome<std::unique_ptr<Context>>
  create(const tessera_context_options &options);
  ~Context();

  int rank() const { return self; }
  int size() const { return world; }
  uint64_t memoryLimit() const { return options.memory_limit; }
  /// In seconds.
  double deadline() const { return options.deadline; }
  /// "2.5 s"
  std::string deadlineText() const;
  Backend &backend() const { return *device; }
  Transport *transport() { return link.get(); }
  Watch *watch() { return watcher.get(); }
  void log(tessera_log_level level, const std::string &message) const;

  /// Collective: `bytes` from each rank, in rank order. Without `anew` the
  /// deadline counts on from the one before.
  Status allGather(const void *mine, void *all, size_t bytes, bool anew = true);
  /// Collective: fails on all ranks if one brings a failure or if the values
  /// differ; `what` then says what ("the module").
  Outcome<Ok> agree(const std::optional<Failure> &mine, uint64_t value,
                    const std::string &what);

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

  /// Asked by transports from here on; the deadline counts anew.
  Poll &startWait();
  /// The first failure of a run; the context is of no use from then on.
  const std::optional<Failure> &poison() const { return poisoned; }
  /// Completes a failure with what the verdict knows, tells the other ranks and
  /// poisons the context.
  const Failure &giveUp(Failure failure);

private:
  explicit Context(const tessera_context_options &options);
  Status poll() override;
  void blame(int peer) override { culprit = peer; }
  Status openTransport();

  tessera_context_options options;
  tessera_bootstrap bootstrap{};
  int self = 0, world = 1;
  std::unique_ptr<Transport> link;
  std::unique_ptr<Watch> watcher;
  std::optional<Verdict> verdict;
  std::optional<Failure> poisoned;
  std::unique_ptr<Backend> device; // goes after the memory and before the link
  std::shared_ptr<Block> local, symmetric;
  double waitBegan = 0;
  int culprit = -1; ///< whom the last wait was for when it ended in an error
};

/// Seconds on a clock that only goes forward.
double now();

} // namespace tessera

/// The C handles.
struct tessera_threads {
  std::shared_ptr<tessera::ThreadsGroup> group;
};

#endif // TESSERA_RUNTIME_CONTEXT_H
