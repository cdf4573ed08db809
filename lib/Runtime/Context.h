//===- Context.h - one rank -----------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_CONTEXT_H
#define TESSERA_RUNTIME_CONTEXT_H

#include "Runtime/Failure.h"
#include "Runtime/Transport.h"
#include "Runtime/Watch.h"

#include <cstddef>
#include <memory>
#include <optional>

namespace tessera {

class Context;

/// Memory from a context's allocator, returned with the last reference.
class Block {
public:
  Block(const tessera_context_options &options, size_t bytes);
  ~Block();
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;

  /// Null when there was none.
  std::byte *data() const { return pointer; }
  size_t size() const { return bytes; }

private:
  std::byte *pointer;
  size_t bytes;
  void (*deallocate)(void *user, void *pointer, size_t bytes);
  void *user;
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
  Transport *transport() { return link.get(); }
  Watch *watch() { return watcher.get(); }
  void log(tessera_log_level level, const std::string &message) const;

  /// Collective: `bytes` from each rank, in rank order.
  Status allGather(const void *mine, void *all, size_t bytes);
  /// Collective: fails on all ranks if one brings a failure or if the values
  /// differ; `what` then says what ("the module").
  Outcome<Ok> agree(const std::optional<Failure> &mine, uint64_t value,
                    const std::string &what);

  enum class Arena { Local, Symmetric };
  /// Memory that bindings share, as they never run at once. A binding keeps the
  /// block it got when a later one needs a larger.
  Outcome<std::shared_ptr<Block>> arena(Arena kind, size_t bytes);
  Outcome<std::shared_ptr<Block>> allocate(size_t bytes);

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
  Status openTransport();

  tessera_context_options options;
  tessera_bootstrap bootstrap{};
  int self = 0, world = 1;
  std::unique_ptr<Transport> link;
  std::unique_ptr<Watch> watcher;
  std::optional<Verdict> verdict;
  std::optional<Failure> poisoned;
  std::shared_ptr<Block> arenas[2];
  double waitBegan = 0;
};

/// Seconds on a clock that only goes forward.
double now();

} // namespace tessera

/// The C handles.
struct tessera_threads {
  std::shared_ptr<tessera::ThreadsGroup> group;
};

#endif // TESSERA_RUNTIME_CONTEXT_H
