//===- Backend.cpp - what a context runs on -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runtime/Backend.h"
#include "Backends/CPU/Backend.h"

using namespace tessera;

Outcome<std::unique_ptr<Backend>>
tessera::createBackend(const tessera_context_options &options, int rank,
                       int world, Transport *transport) {
  std::string name = options.backend ? options.backend : "cpu";
  if (name == "cpu")
    return createCPUBackend(options, transport);
  return Failure{TESSERA_INVALID_ARGUMENT,
                 "there is no backend '" + name +
                     "': it is \"cpu\" or \"cuda\"",
                 {},
                 {},
                 rank};
}
