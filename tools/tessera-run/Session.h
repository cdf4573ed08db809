//===- Session.h - a module with its tensors on one rank ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Over the C header: from a file to a binding that has run. Ports lie in memory
// of the context's backend; the host sees copies of them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUN_SESSION_H
#define TESSERA_RUN_SESSION_H

#include "Options.h"
#include "Support/Progress.h"
#include "Team.h"
#include "Tensors/Transfer.h"
#include "tessera/tessera.h"

#include <cstdlib>
#include <functional>

namespace tessera::run {

/// A status of the library as one sentence; frees it.
Status take(tessera_status *status);
/// The rank at fault of the last such error on this thread, or -1.
int culprit();

template <auto destroy> struct Destroy {
  template <typename T> void operator()(T *object) const { destroy(object); }
};
using Context =
    std::unique_ptr<tessera_context, Destroy<tessera_context_destroy>>;
using Module = std::unique_ptr<tessera_module, Destroy<tessera_module_destroy>>;
using Binding =
    std::unique_ptr<tessera_binding, Destroy<tessera_binding_destroy>>;
using HostBuffer = std::unique_ptr<void, Destroy<std::free>>;

/// 64-byte aligned; null for no bytes.
Result<HostBuffer> allocateHost(const std::string &name, size_t bytes);

/// Memory of a context's backend.
struct FreeOnDevice {
  tessera_context *context;
  size_t bytes;
  void operator()(void *pointer) const {
    tessera_device_free(context, pointer, bytes);
  }
};
using DeviceBuffer = std::unique_ptr<void, FreeOnDevice>;

/// A port with its tensor for the sizes of this run.
struct Port {
  tessera_port description;
  GlobalTensor tensor;
  uint64_t bytes = 0;                   ///< of this rank's part
  const StoredTensor *stored = nullptr; ///< where it is read from
  DeviceBuffer buffer;

  std::string name() const { return description.name; }
  bool isRead() const { return description.kind != TESSERA_OUTPUT; }
  bool isWritten() const { return description.kind != TESSERA_INPUT; }
  bool isState() const { return description.kind == TESSERA_STATE; }
  bool startsAsZeros() const { return description.zero_init && !stored; }
};

/// What one rank runs on; with a fixed size, to be sent.
struct RankDevice {
  int32_t ordinal; ///< -1: no GPU
  char model[128], driver[64], libraries[192];

  bool isGPU() const { return ordinal >= 0; }
};

class Session {
public:
  Session(const Options &options, Team &team) : options(options), team(team) {}

  /// `backend`: empty: the one that the module is for.
  /// `threads`: null without that transport.
  Status load(const std::string &path, std::string backend,
              tessera_threads *threads);
  Status openInputs();
  /// From files, which are open, to memory.
  Status readInputs();
  /// Once more.
  Status fillPorts();
  /// Sets `target` and `device`.
  Status describe();
  /// Binds, and runs as often as the options say. `after`: called after each
  /// run with its number, from 1.
  Status execute(const std::function<Status(int64_t)> &after = nullptr);
  /// A copy of what a port holds.
  Result<HostBuffer> fetch(const Port &port) const;

  Context context;
  Module module;
  layout::Mesh mesh;
  std::string path, target, device;
  RankDevice rankDevice = {};
  uint64_t freeBytes = 0; ///< 0: not known
  std::vector<tessera_symbol> symbols;
  std::vector<int64_t> sizes; ///< parallel to `symbols`
  NameMap names;
  std::vector<Port> ports;
  Binding binding;                          ///< goes before what it points to
  std::vector<double> seconds, hostSeconds; ///< one a run

private:
  Status fixSizes();
  Status checkMemory();
  Status makePorts();
  tessera_context_options contextOptions(const std::string &backend,
                                         tessera_threads *threads);

  /// Of rank 0, unless it says more.
  bool showsProgress() const { return team.rank() == 0 && !options.verbose; }
  static void log(void *session, tessera_log_level level, const char *message);

  const Options &options;
  Team &team;
  TensorFiles files;
  std::optional<Progress> measuring; ///< while there is a binding to be made
  uint64_t measured = 0;             ///< products
};

} // namespace tessera::run

#endif // TESSERA_RUN_SESSION_H
