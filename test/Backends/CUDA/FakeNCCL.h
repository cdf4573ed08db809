//===- FakeNCCL.h - what tests ask of the fake NCCL -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_RUNTIME_CUDA_FAKENCCL_H
#define TESSERA_TEST_RUNTIME_CUDA_FAKENCCL_H

#include <cstdint>

namespace tessera::test {

/// Found in the fake library by the name `fake_nccl`.
struct FakeNCCL {
  /// Communicators that are neither destroyed nor aborted to the end, and
  /// memory that is not freed.
  int (*live)();
  /// Calls so far of all ranks, as "allGather", "send".
  int (*calls)(const char *name);
  /// The same, of those on communicators of so many ranks: their counts, in
  /// bytes.
  uint64_t (*bytes)(const char *name, int ranks);
  /// The first misuse: a call while the last one is in progress, counts that
  /// differ between ranks, ... ; empty when there is none.
  const char *(*misuse)();
  /// From now on the communicators of this rank of the world have an error,
  /// and neither send nor receive.
  void (*fail)(int rank);
  /// Forgets calls, misuse and failures.
  void (*reset)();
};

} // namespace tessera::test

#endif // TESSERA_TEST_RUNTIME_CUDA_FAKENCCL_H
