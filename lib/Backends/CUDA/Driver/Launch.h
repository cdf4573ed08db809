//===- Launch.h - kernels of a module on a GPU ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_DRIVER_LAUNCH_H
#define TESSERA_BACKENDS_CUDA_DRIVER_LAUNCH_H

#include "Backends/CUDA/Driver/Copies.h"
#include "Backends/CUDA/Driver/Device.h"
#include "Exec/Work.h"

namespace tessera::cuda {

/// The cubins of a module, or their PTX, loaded into a device's context.
class Binaries {
public:
  static Result<std::unique_ptr<Binaries>> load(const Device &device,
                                                const ModuleReader &module);
  ~Binaries();

  struct Kernel {
    Function handle;
    int resident; ///< blocks that a multiprocessor holds
  };
  /// With `shared` bytes of dynamic shared memory, in blocks of `threads`, and
  /// one parameter of `words` 64-bit words (-1: others, or not known).
  Result<Kernel> find(int binary, const std::string &symbol, int threads,
                      int shared, int words);
  /// The same of the runtime's kernels, which every cuda module brings along.
  Result<Kernel> findRuntime(const std::string &symbol, int threads, int words);

  const Device &device() const { return owner; }

private:
  explicit Binaries(const Device &device) : owner(device) {}

  const Device &owner;
  std::vector<Module> modules;
  std::vector<std::string> names;
};

/// Launches of the runtime's kernels, ready to be enqueued.
class RuntimeQueue {
public:
  Status prepare(Binaries &binaries, std::vector<RuntimeLaunch> launches);
  Status enqueue() const;

private:
  const Device *device = nullptr;
  std::vector<RuntimeLaunch> launches;
  std::vector<Function> functions;
};

/// A copy between boxes; one run of bytes by the copy engine.
std::unique_ptr<Work> makeCopy(Binaries &binaries, const CopyLoop &loop,
                               Place target, Place source);

/// The functions of a launch, one after the other.
Result<std::unique_ptr<Work>>
makeLaunch(Binaries &binaries, const fb::LaunchT &launch, Tensors &tensors);

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_DRIVER_LAUNCH_H
