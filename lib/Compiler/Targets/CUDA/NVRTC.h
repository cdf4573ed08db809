//===- NVRTC.h - CUDA C++ to machine code ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NVIDIA's run-time compiler, opened when it is needed: neither a GPU nor a
// driver nor CUDA's headers are. What it makes is kept in a cache on disk,
// which is never needed: what is missing, damaged or cannot be written is
// compiled.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CUDA_NVRTC_H
#define TESSERA_COMPILER_TARGETS_CUDA_NVRTC_H

#include "Support/Result.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tessera::cuda {

/// A translation unit.
struct Unit {
  std::string name; ///< for messages
  std::string text;
};

/// What ptxas says of a device function.
struct FunctionReport {
  std::string symbol;
  int registers = 0;
  int stackBytes = 0;
  int spillBytes = 0; ///< stored and loaded
  int sharedBytes = 0;
};

struct Binary {
  std::string cubin;
  /// For GPUs after the one that it is for; empty where it is for one alone, as
  /// sm_90a.
  std::string ptx;
  std::string log;
  std::vector<FunctionReport> functions;
  /// Warnings, and what ptxas says of wgmmas that it could not keep in flight.
  std::vector<std::string> notes;
  bool fromCache = false;
};

/// A file of Kernels/cuda, built into the compiler. Units include headers by
/// name.
struct EmbeddedFile {
  const char *name;
  const char *text;
};
std::span<const EmbeddedFile> getEmbeddedFiles();
/// Its text; null if there is none of this name.
const char *getEmbeddedFile(std::string_view name);

/// What TESSERA_TRAP_WAITS of the environment says; 0 where it is not set.
Result<unsigned> getTrapWaits();

class NVRTC {
public:
  /// `where` is the library or its folder. If empty: that of TESSERA_NVRTC,
  /// else the first of libnvrtc.so.13 where the loader finds it, in the
  /// toolkit's folder, and in the virtual environment beside the build.
  /// `architecture` is what units are compiled for: "sm_90a". Where the
  /// environment has TESSERA_TRAP_WAITS, waits of kernels for each other have
  /// an end (attention_trap.cuh).
  static Result<NVRTC> open(const std::string &where,
                            const std::string &architecture);

  /// Compiles all units, several at a time, and says how many are done to
  /// `progress`, if there is one. A unit that does not compile is the error.
  Result<std::vector<Binary>>
  compile(std::span<const Unit> units,
          const std::function<void(size_t, size_t)> &progress = nullptr) const;

private:
  struct Functions;
  NVRTC(std::shared_ptr<const Functions> functions, std::string architecture,
        unsigned trapWaits)
      : functions(std::move(functions)), architecture(std::move(architecture)),
        trapWaits(trapWaits) {}
  std::vector<std::string> getOptions() const;
  Result<Binary> compile(const Unit &unit) const;
  Result<Binary> compileAnew(const Unit &unit) const;

  std::shared_ptr<const Functions> functions;
  std::string architecture;
  unsigned trapWaits; ///< after so many looks; 0: none is trapped
};

} // namespace tessera::cuda

#endif // TESSERA_COMPILER_TARGETS_CUDA_NVRTC_H
