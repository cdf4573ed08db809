//===- Backend.h - what a context runs on ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each context has one Backend: memory, and modules loaded for it. A loaded
// module makes a Work of each step; a Program is the list of a binding's works
// and what lasts from run to run. On a device a Work's `run` enqueues, and the
// Program waits; on the CPU it does the work at once.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_EXEC_BACKEND_H
#define TESSERA_EXEC_BACKEND_H

#include "Exec/Strided.h"
#include "Exec/Work.h"

namespace tessera {

/// What memory is for.
enum class MemoryKind {
  Local,     ///< temporaries: the caller's allocator, if there is one
  Symmetric, ///< temporaries that peers read
  External,  ///< ports of callers that have no allocator for this backend
};

/// The caller's memory, as in tessera_context_options; without functions there
/// is none.
struct Allocator {
  void *(*allocate)(void *user, size_t bytes) = nullptr;
  void (*deallocate)(void *user, void *pointer, size_t bytes) = nullptr;
  void *user = nullptr;

  explicit operator bool() const { return allocate; }
};

/// Begin and end of a step's last run, in seconds of the monotonic clock; when
/// the host enqueued it, where that is not the same.
struct StepTime {
  double begin = 0, end = 0;
  double enqueueBegin = 0, enqueueEnd = 0;
};

/// Why a run ended early, and at which work.
struct Stop {
  size_t work;
  tessera_code code;
  std::string message;
};
using Ran = Result<Ok, Stop>; ///< how a run went

/// A device, for people and for those who ask which runs have the same bits.
struct DeviceNote {
  int ordinal = -1;          ///< of a GPU
  std::string model, driver; ///< empty: none
  std::string libraries;     ///< with versions, as far as they are open

  /// "GPU 0, NVIDIA H200, driver ..."
  std::string text() const;
};

/// What ranks exchange bytes through; see tessera_communicator.
struct CommunicatorNote {
  std::string library, ranks;
  int groups;
  bool split;
  uint64_t memory;
  double seconds;
};

/// The works of a binding.
class Program {
public:
  virtual ~Program() = default;
  /// All works in order, finished when it returns. Keeps the peers' watch
  /// informed and ends when their poll does.
  virtual Ran run(Peers &peers, const StepNames &names) = 0;
  /// All works behind what the caller's stream holds so far and ahead of what
  /// it gets later; nothing is waited for. (INVALID_ARGUMENT: nothing was
  /// enqueued.)
  virtual Ran enqueue(Peers &, void *) {
    return Stop{0, TESSERA_INVALID_ARGUMENT,
                "what this context runs on has no streams: use "
                "tessera_binding_run"};
  }
  /// Waits for what was enqueued last, as `run` does.
  virtual Ran wait(Peers &) { return Ok{}; }
  /// By work; empty when this run did not measure them.
  virtual std::span<const StepTime> times() const = 0;
  /// By how much all of them may be too early or late.
  virtual double clockError() const { return 0; }
  /// What the host did in the last run before it only waited, in seconds.
  virtual double hostSeconds() const = 0;
};

/// A module with its code loaded. Works and programs end before it does.
class BackendModule {
public:
  virtual ~BackendModule() = default;

  virtual Result<std::unique_ptr<Work>> makeLaunch(const fb::LaunchT &launch,
                                                   Tensors &tensors) = 0;
  virtual Result<std::unique_ptr<Work>>
  makeContract(const fb::ContractT &contract, Tensors &tensors) = 0;
  virtual Result<std::unique_ptr<Work>> makeAttend(const fb::AttendT &attend,
                                                   Tensors &tensors) = 0;
  /// `axes`: of the mesh, over which it goes.
  virtual Result<std::unique_ptr<Work>>
  makeCollective(const fb::CollectiveT &collective,
                 const std::vector<layout::SubAxis> &axes,
                 Tensors &tensors) = 0;
  virtual Result<std::unique_ptr<Work>>
  makeCopy(const CopyLoop &loop, Place target, Place source) = 0;

  /// The works have their addresses and outlive the program.
  virtual Result<std::unique_ptr<Program>>
  makeProgram(std::span<const std::unique_ptr<Work>> works) = 0;
};

class Backend {
public:
  virtual ~Backend() = default;

  /// As in a module: "cpu", "cuda:sm_90a".
  virtual std::string target() const = 0;
  /// What must be the same on all ranks.
  virtual std::string common() const { return target(); }
  /// What that is, for people.
  virtual std::string commonParts() const { return "target or flags"; }
  virtual DeviceNote describeDevice() const { return {-1, target(), {}, {}}; }
  /// As the works' numbers count them.
  virtual std::vector<CommunicatorNote> describeCommunicators() const {
    return {};
  }
  /// Whether a module for `target` runs here, or why not.
  virtual Status accepts(const std::string &target) const = 0;
  /// Whether a variant of an op that is in a module can run here, or why not;
  /// `of`: the op.
  virtual Status runs(std::string_view variant,
                      const fb::AlternativeT &of) const = 0;
  virtual Result<std::unique_ptr<BackendModule>>
  load(const ModuleReader &module) = 0;

  /// Whether its memory is the host's, and the host's its.
  virtual bool isHost() const = 0;
  /// What can still be allocated; nothing when that is not known.
  virtual std::optional<uint64_t> available() const = 0;
  /// Of what it allocates, and of buffers and scratch in it.
  virtual int64_t alignment() const = 0;
  virtual Result<std::byte *> allocate(MemoryKind kind, size_t bytes) = 0;
  virtual void deallocate(MemoryKind kind, std::byte *pointer,
                          size_t bytes) = 0;
  /// Collective: when all ranks have prepared a binding's works, before these
  /// are connected. Fails on all ranks if it does on one.
  virtual Outcome<Ok> agree() { return Ok{}; }
  /// Collective: a binding's symmetric memory, as much on all ranks, before its
  /// first run and after its works are connected. Fails on all ranks if it does
  /// on one.
  virtual Outcome<Ok> share(Peers &, std::byte *, size_t) { return Ok{}; }
  /// Between any two places, both of the host and of the backend; finished when
  /// it returns.
  virtual Status copy(void *target, const void *source, size_t bytes) = 0;
};

/// Memory of a backend, returned with the last reference.
class Block {
public:
  Block(Backend &backend, MemoryKind kind, std::byte *pointer, size_t bytes)
      : backend(backend), kind(kind), pointer(pointer), bytes(bytes) {}
  ~Block() { backend.deallocate(kind, pointer, bytes); }
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;

  std::byte *data() const { return pointer; }
  size_t size() const { return bytes; }

private:
  Backend &backend;
  MemoryKind kind;
  std::byte *pointer;
  size_t bytes;
};

/// A line for the log: "step 3, 'tv.map' at a.mlir:3:1, kernel 'f'".
std::string describeStep(size_t index, const StepNames &names,
                         const Work &work);

} // namespace tessera

#endif // TESSERA_EXEC_BACKEND_H
