//===- FakeCuDNN.h - what tests ask of the fake cuDNN -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_RUNTIME_CUDA_FAKECUDNN_H
#define TESSERA_TEST_RUNTIME_CUDA_FAKECUDNN_H

#include <cstdint>
#include <vector>

namespace tessera::test {

struct FakeEngine {
  int64_t number;
  bool nondeterministic = false;
  bool fails = false; ///< its plans cannot be finalized
  int64_t workspace = 0;
};

/// Found in the fake library by the name `fake_cudnn`. Its version is in the
/// environment, TESSERA_FAKE_CUDNN_VERSION, or 91900.
struct FakeCuDNN {
  /// What the heuristics propose, in modes A and fallback.
  void (*propose)(std::vector<FakeEngine> best, std::vector<FakeEngine> other);
  /// The next call to set an attribute fails.
  void (*failSet)();
  int (*live)();  ///< handles and descriptors
  int (*plans)(); ///< finalized so far
  /// Executions so far, by engine's number.
  int (*executions)(int64_t engine);
  /// The first misuse; empty when there is none.
  const char *(*misuse)();
  /// Forgets all but what is live.
  void (*reset)();
};

} // namespace tessera::test

#endif // TESSERA_TEST_RUNTIME_CUDA_FAKECUDNN_H
