//===- HeaderTest.cpp - our declarations beside a toolkit's header --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Built where there is a toolkit; if it compiles, the numbers and the sizes of
// parameters agree.
//
//===----------------------------------------------------------------------===//

#include "Alike.h"
#include "Backends/CUDA/Driver/Driver.h"
#include "Backends/CUDA/Driver/TensorMaps.h"
#include "gtest/gtest.h"

#include <cuda.h>

namespace cuda = tessera::cuda;

static_assert(cuda::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(cuda::kStubLibrary == CUDA_ERROR_STUB_LIBRARY);
static_assert(cuda::kNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(cuda::kInvalidImage == CUDA_ERROR_INVALID_IMAGE);
static_assert(cuda::kNoBinaryForGPU == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(cuda::kInvalidPTX == CUDA_ERROR_INVALID_PTX);
static_assert(cuda::kUnsupportedPTX == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(cuda::kNotReady == CUDA_ERROR_NOT_READY);
static_assert(cuda::kPeerAccessAlreadyEnabled ==
              CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
static_assert(cuda::kSystemDriverMismatch == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
static_assert(int(cuda::kMultiprocessors) ==
              CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(int(cuda::kUnifiedAddressing) ==
              CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
static_assert(int(cuda::kCapabilityMajor) ==
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(int(cuda::kCapabilityMinor) ==
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(int(cuda::kMaxDynamicShared) ==
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(int(cuda::kErrorLog) == CU_JIT_ERROR_LOG_BUFFER);
static_assert(int(cuda::kErrorLogBytes) == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
static_assert(cuda::kMapF16 == CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
static_assert(cuda::kMapBF16 == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
static_assert(cuda::kMapDense == CU_TENSOR_MAP_INTERLEAVE_NONE);
static_assert(cuda::kMapSwizzle128 == CU_TENSOR_MAP_SWIZZLE_128B);
static_assert(cuda::kMapPromote128 == CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
static_assert(cuda::kMapPromote256 == CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
static_assert(cuda::kMapZeros == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
static_assert(cuda::TensorMap::kBytes == sizeof(CUtensorMap));
static_assert(cuda::TensorMap::kAlignment <= alignof(CUtensorMap));
static_assert(cuda::kProgrammaticSerialization ==
              CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
static_assert(sizeof(cuda::LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(cuda::LaunchAttribute, value) ==
              offsetof(CUlaunchAttribute, value));
static_assert(sizeof(cuda::LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(cuda::LaunchConfig, shared) ==
              offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(cuda::LaunchConfig, stream) ==
              offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(cuda::LaunchConfig, attributes) ==
              offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(cuda::LaunchConfig, count) ==
              offsetof(CUlaunchConfig, numAttrs));
static_assert(cuda::kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(cuda::kCaptureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(cuda::kMemset == CU_GRAPH_NODE_TYPE_MEMSET);
static_assert(cuda::kWaitEvent == CU_GRAPH_NODE_TYPE_WAIT_EVENT);
static_assert(cuda::kEventRecord == CU_GRAPH_NODE_TYPE_EVENT_RECORD);
static_assert(sizeof(cuda::EdgeData) == sizeof(CUgraphEdgeData));
static_assert(sizeof(cuda::MemsetNode) == sizeof(CUDA_MEMSET_NODE_PARAMS));
static_assert(offsetof(cuda::MemsetNode, elementBytes) ==
              offsetof(CUDA_MEMSET_NODE_PARAMS, elementSize));
static_assert(offsetof(cuda::MemsetNode, height) ==
              offsetof(CUDA_MEMSET_NODE_PARAMS, height));
static_assert(sizeof(cuda::KernelNode) == sizeof(CUDA_KERNEL_NODE_PARAMS));
static_assert(offsetof(cuda::KernelNode, blockX) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS, blockDimX));
static_assert(offsetof(cuda::KernelNode, parameters) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS, kernelParams));
static_assert(offsetof(cuda::KernelNode, context) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS, ctx));
static_assert(cuda::kEventTimed == CU_EVENT_DEFAULT);
static_assert(cuda::kEventUntimed == CU_EVENT_DISABLE_TIMING);
static_assert(cuda::kPointerMemory == CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(cuda::kMemoryDevice == CU_MEMORYTYPE_DEVICE);
static_assert(sizeof(cuda::IpcHandle) == sizeof(CUipcMemHandle));
static_assert(cuda::kLazyPeerAccess == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
static_assert(cuda::kHostPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(cuda::kHostMapped == CU_MEMHOSTALLOC_DEVICEMAP);

using Api = cuda::Driver;

// The header maps names to the newest versions: those without a suffix are the
// oldest, which the driver still has.
#undef cuEventElapsedTime
extern "C" CUresult cuEventElapsedTime(float *, CUevent, CUevent);

TEST(Header, FunctionsHaveTheShapesOfTheToolkits) {
  TESSERA_CUDA_DRIVER(TESSERA_ALIKE)
}
