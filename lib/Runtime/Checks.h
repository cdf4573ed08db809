//===- Checks.h - outputs that must be 0 after a run -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program says by them that its data is wrong. Each rank has all of such an
// output, so that all say the same, and none waits for one that has stopped.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_CHECKS_H
#define TESSERA_RUNTIME_CHECKS_H

#include "Exec/Backend.h"
#include "Exec/LocalTensors.h"

namespace tessera {

class Checks {
public:
  /// `memory`: the caller's, of a port's local tensor. The port outlives this.
  Status add(const fb::PortT &port, const LocalTensor &tensor,
             const std::byte *memory);
  /// After a run: the first element that is not 0 is an error, which harms
  /// nothing else.
  Outcome<Ok> look(Backend &backend) {
    return checks.empty() ? Ok{} : lookAtAll(backend);
  }

private:
  Outcome<Ok> lookAtAll(Backend &backend);

  struct Check {
    const fb::PortT *port;
    LocalTensor tensor;
    const std::byte *memory;
  };
  std::vector<Check> checks;
  std::vector<std::byte> host; ///< as much as the largest has
};

} // namespace tessera

#endif // TESSERA_RUNTIME_CHECKS_H
