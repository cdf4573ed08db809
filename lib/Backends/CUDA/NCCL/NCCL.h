//===- NCCL.h - NCCL, opened at run time ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What we use of NCCL's interface, declared in our own words: one table of
// functions by their exported names, and the numbers that go through it (a test
// compares them with NCCL's header where there is one).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_NCCL_NCCL_H
#define TESSERA_BACKENDS_CUDA_NCCL_NCCL_H

#include "Backends/CUDA/Driver/Driver.h"
#include "Layout/View.h"
#include "Support/DType.h"

#include <climits>
#include <string_view>

namespace tessera::cuda::nccl {

using Comm = struct CommObject *;

/// What a call returns, and what a communicator is in.
enum State : int { kSuccess = 0, kInProgress = 7 };
enum Type : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};
enum Reduction : int { kSum = 0, kMax = 2, kMin = 3 };

struct UniqueId {
  char bytes[128];
};

/// A place in a communicator's symmetric memory, for kernels: an address on the
/// GPU. Where memory cannot be mapped between the GPUs it is one in the host's
/// memory, which stands for a registration of this rank's own, or null.
using Window = struct WindowObject *;
constexpr int kSymmetric = 1; ///< a flag of a window
constexpr int kZeroCTAs = 2;  ///< a policy: copy engines where they can do it

/// As of version 2.27. Newer libraries know its size and version, and leave
/// what is not in it at their defaults; older ones do not read its end.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 22700;
  int blocking = INT_MIN; ///< INT_MIN: the default
  int cgaClusterSize = INT_MIN;
  int minCTAs = INT_MIN;
  int maxCTAs = INT_MIN;
  const char *netName = nullptr;
  int splitShare = INT_MIN;
  int trafficClass = INT_MIN;
  const char *commName = nullptr;
  int collnetEnable = INT_MIN;
  int CTAPolicy = INT_MIN;
};

/// F(member, exported name, parameters)
#define TESSERA_NCCL(F)                                                        \
  F(getVersion, ncclGetVersion, (int *version))                                \
  F(getUniqueId, ncclGetUniqueId, (UniqueId * id))                             \
  F(commInitRankConfig, ncclCommInitRankConfig,                                \
    (Comm * comm, int ranks, UniqueId id, int rank, Config *config))           \
  F(commSplit, ncclCommSplit,                                                  \
    (Comm comm, int color, int key, Comm *part, Config *config))               \
  F(commFinalize, ncclCommFinalize, (Comm comm))                               \
  F(commDestroy, ncclCommDestroy, (Comm comm))                                 \
  F(commAbort, ncclCommAbort, (Comm comm))                                     \
  F(commGetAsyncError, ncclCommGetAsyncError, (Comm comm, State * state))      \
  F(groupStart, ncclGroupStart, ())                                            \
  F(groupEnd, ncclGroupEnd, ())                                                \
  F(send, ncclSend,                                                            \
    (const void *data, size_t count, Type type, int peer, Comm comm,           \
     Stream stream))                                                           \
  F(recv, ncclRecv,                                                            \
    (void *data, size_t count, Type type, int peer, Comm comm, Stream stream)) \
  F(allGather, ncclAllGather,                                                  \
    (const void *from, void *to, size_t count, Type type, Comm comm,           \
     Stream stream))                                                           \
  F(allReduce, ncclAllReduce,                                                  \
    (const void *from, void *to, size_t count, Type type, Reduction reduction, \
     Comm comm, Stream stream))                                                \
  F(reduceScatter, ncclReduceScatter,                                          \
    (const void *from, void *to, size_t count, Type type, Reduction reduction, \
     Comm comm, Stream stream))

/// The same of functions that came with version 2.27; windows tell whether
/// memory is mapped since 2.28.
#define TESSERA_NCCL_WINDOWS(F)                                                \
  F(memAlloc, ncclMemAlloc, (void **pointer, size_t bytes))                    \
  F(memFree, ncclMemFree, (void *pointer))                                     \
  F(commWindowRegister, ncclCommWindowRegister,                                \
    (Comm comm, void *data, size_t bytes, Window *window, int flags))          \
  F(commWindowDeregister, ncclCommWindowDeregister, (Comm comm, Window window))

class Api {
public:
  /// The NCCL of this process, checked: new enough, and with multicast off.
  /// Opened once.
  static Result<const Api *> get();

#define TESSERA_NCCL_MEMBER(member, name, parameters) State(*member) parameters;
  TESSERA_NCCL(TESSERA_NCCL_MEMBER)
  TESSERA_NCCL_WINDOWS(TESSERA_NCCL_MEMBER) ///< only if `hasWindows`
#undef TESSERA_NCCL_MEMBER

  /// Success, and what is still going on; else one sentence: "NCCL cannot
  /// `what`: ...". `comm` may be null.
  Status check(State state, std::string_view what, Comm comm) const;
  /// "2.28.9"
  const std::string &version() const { return versionText; }
  Status hasWindows() const;

private:
  static Result<Api *> open();

  const char *(*getErrorString)(State);
  const char *(*getLastError)(Comm);
  std::string versionText;
  bool windows = false;
};

/// NCCL's name for a type of elements; one that it can reduce.
Type typeOf(DType dtype);
Reduction reductionOf(layout::Combiner combiner);

} // namespace tessera::cuda::nccl

#endif // TESSERA_BACKENDS_CUDA_NCCL_NCCL_H
