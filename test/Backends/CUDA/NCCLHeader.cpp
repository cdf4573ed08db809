//===- NCCLHeader.cpp - our declarations beside NCCL's own ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Alike.h.
//
//===----------------------------------------------------------------------===//

#include "Alike.h"
#include "Backends/CUDA/NCCL/NCCL.h"

#include <nccl.h>

namespace ours = tessera::cuda::nccl;

static_assert(ours::kSuccess == int(ncclSuccess));
static_assert(ours::kInProgress == int(ncclInProgress));
static_assert(ours::kInt8 == int(ncclInt8));
static_assert(ours::kUint8 == int(ncclUint8));
static_assert(ours::kInt32 == int(ncclInt32));
static_assert(ours::kUint32 == int(ncclUint32));
static_assert(ours::kInt64 == int(ncclInt64));
static_assert(ours::kFloat16 == int(ncclFloat16));
static_assert(ours::kFloat32 == int(ncclFloat32));
static_assert(ours::kFloat64 == int(ncclFloat64));
static_assert(ours::kBfloat16 == int(ncclBfloat16));
static_assert(ours::kSum == int(ncclSum));
static_assert(ours::kMax == int(ncclMax));
static_assert(ours::kMin == int(ncclMin));
static_assert(sizeof(ours::State) == sizeof(ncclResult_t));
static_assert(sizeof(ours::UniqueId) == sizeof(ncclUniqueId));

static_assert(sizeof(ours::Config) <= sizeof(ncclConfig_t));
#define SAME_PLACE(member)                                                     \
  static_assert(offsetof(ours::Config, member) ==                              \
                offsetof(ncclConfig_t, member))
SAME_PLACE(size);
SAME_PLACE(magic);
SAME_PLACE(version);
SAME_PLACE(blocking);
SAME_PLACE(cgaClusterSize);
SAME_PLACE(minCTAs);
SAME_PLACE(maxCTAs);
SAME_PLACE(netName);
SAME_PLACE(splitShare);
SAME_PLACE(CTAPolicy);
static_assert(ours::kSymmetric == NCCL_WIN_COLL_SYMMETRIC);
static_assert(ours::kZeroCTAs == NCCL_CTA_POLICY_ZERO);
static_assert(ours::Config{}.magic ==
              ncclConfig_t(NCCL_CONFIG_INITIALIZER).magic);
static_assert(NCCL_CONFIG_UNDEF_INT == INT_MIN);

using ours::Api;
TESSERA_NCCL(TESSERA_ALIKE)
TESSERA_NCCL_WINDOWS(TESSERA_ALIKE)
