//===- Library.h - vendor libraries opened at run time --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver, cuBLASLt, cuDNN and NCCL are opened when they are needed, so that
// one binary runs on machines without them and says what it lacks.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_DRIVER_LIBRARY_H
#define TESSERA_BACKENDS_CUDA_DRIVER_LIBRARY_H

#include "Support/Result.h"

#include <string>
#include <utility>

namespace tessera::cuda {

/// A vendor's version: 91501 is 9.15.1.
inline std::string toVersionText(size_t version) {
  return std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

/// A shared library, never closed: vendor libraries keep threads and handlers.
class Library {
public:
  /// By its soname, like "libnccl.so.2": the one already in the process, else
  /// the first of those in the folders of TESSERA_CUDA_LIBRARY_PATH (separated
  /// by colons), where the loader looks, and in the toolkit's usual folder.
  static Result<Library> open(const std::string &soname);

  /// Sets a pointer to the function of that name.
  template <typename Function>
  Status find(Function *&function, const char *name) const {
    Result<void *> symbol = lookup(name);
    if (!symbol)
      return symbol.error();
    function = reinterpret_cast<Function *>(*symbol);
    return Ok{};
  }

  /// The file that was opened.
  const std::string &path() const { return file; }

private:
  Library(void *handle, std::string soname);
  Result<void *> lookup(const char *name) const;

  void *handle;
  std::string file;
};

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_DRIVER_LIBRARY_H
