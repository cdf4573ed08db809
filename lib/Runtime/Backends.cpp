//===- Backends.cpp - what a context can run on ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one list of backends. Each takes what it knows of a context's options.
//
//===----------------------------------------------------------------------===//

#include "Runtime/Backends.h"
#include "Backends/CPU/Backend.h"
#include "Backends/CUDA/Run/Backend.h"

using namespace tessera;

using Created = Outcome<std::unique_ptr<Backend>>;

static Allocator allocatorOf(const tessera_context_options &options) {
  return {options.allocate, options.deallocate, options.allocate_user};
}

static Created createCPU(const tessera_context_options &options, Peers &peers) {
  if (options.algorithms)
    return Failure{TESSERA_INVALID_ARGUMENT,
                   "`algorithms` is for the backend \"cuda\""};
  return createCPUBackend({options.flags, allocatorOf(options)}, peers);
}

static Created createCUDA(const tessera_context_options &options,
                          Peers &peers) {
  return createCUDABackend(
      {options.flags, allocatorOf(options), options.device, options.algorithms},
      peers);
}

static constexpr struct {
  const char *name;
  Created (*create)(const tessera_context_options &, Peers &);
} kBackends[] = {{"cpu", createCPU}, {"cuda", createCUDA}};

Created tessera::createBackend(const tessera_context_options &options,
                               Peers &peers) {
  const std::string name = options.backend ? options.backend : "cpu";
  std::string known;
  for (const auto &backend : kBackends) {
    if (name == backend.name)
      return backend.create(options, peers);
    known +=
        (known.empty() ? "" : " or ") + ('"' + std::string(backend.name)) + '"';
  }
  return Failure{TESSERA_INVALID_ARGUMENT,
                 "there is no backend '" + name + "': it is " + known};
}
