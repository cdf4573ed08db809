//===- Failure.h - what a call of the C edge returns when it fails --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_EXEC_FAILURE_H
#define TESSERA_EXEC_FAILURE_H

#include "Support/Result.h"
#include "tessera/tessera.h"

namespace tessera {

struct Failure {
  tessera_code code;
  std::string message;
  std::string op{}, location{};
  int rank = -1; ///< the rank at fault
};

template <typename T> using Outcome = Result<T, Failure>;

} // namespace tessera

#endif // TESSERA_EXEC_FAILURE_H
