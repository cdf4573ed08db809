//===- Driver.h - the CUDA driver, opened at run time ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What we use of the driver's interface, declared in our own words: one table
// of functions by their exported names, and the numbers that go through it (a
// test compares them with a toolkit's header where there is one).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BACKENDS_CUDA_DRIVER_DRIVER_H
#define TESSERA_BACKENDS_CUDA_DRIVER_DRIVER_H

#include "Exec/Failure.h"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace tessera::cuda {

using DevicePointer = unsigned long long;
using ContextHandle = struct ContextObject *;
using Stream = struct StreamObject *;
using Event = struct EventObject *;
using Module = struct ModuleObject *;
using Function = struct FunctionObject *;
using Graph = struct GraphObject *;
using GraphExec = struct GraphExecObject *;
using GraphNode = struct GraphNodeObject *;
/// Of an allocation, for other processes.
struct IpcHandle {
  std::array<char, 64> bytes;
  auto operator<=>(const IpcHandle &) const = default;
};

/// A result of the driver; 0 is success.
using Code = int;
constexpr Code kOutOfMemory = 2;
constexpr Code kStubLibrary = 34;
constexpr Code kNoDevice = 100;
constexpr Code kInvalidImage = 200;
constexpr Code kNoBinaryForGPU = 209;
constexpr Code kInvalidPTX = 218;
constexpr Code kUnsupportedPTX = 222;
constexpr Code kNotReady = 600;
constexpr Code kPeerAccessAlreadyEnabled = 704;
constexpr Code kSystemDriverMismatch = 803;

enum Attribute {
  kMultiprocessors = 16,
  kUnifiedAddressing = 41,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
};
/// What cuLaunchKernelEx takes: the driver's own structs.
struct LaunchAttribute {
  int id, gap = 0;
  alignas(8) int value[16];
};
struct LaunchConfig {
  unsigned gridX, gridY = 1, gridZ = 1, blockX, blockY = 1, blockZ = 1, shared;
  Stream stream;
  LaunchAttribute *attributes = nullptr;
  unsigned count = 0;
};
constexpr int kProgrammaticSerialization = 6;
enum FunctionAttribute { kMaxDynamicShared = 8 };
enum JitOption { kErrorLog = 5, kErrorLogBytes = 6 };
/// Of tensor maps: element types, and how boxes are read.
constexpr int kMapF16 = 6, kMapBF16 = 9;
constexpr int kMapDense = 0, kMapSwizzle128 = 3, kMapPromote128 = 2,
              kMapPromote256 = 3, kMapZeros = 0;
constexpr unsigned kStreamNonBlocking = 1;
constexpr int kCaptureThreadLocal = 1;
/// Kinds of a graph's nodes.
constexpr int kMemset = 2, kWaitEvent = 6, kEventRecord = 7;
struct EdgeData {
  unsigned char words[8];
};
/// Elements of 1, 2 or 4 bytes; rows lie `pitch` bytes apart.
struct MemsetNode {
  DevicePointer target;
  size_t pitch;
  unsigned value, elementBytes;
  size_t width, height;
};
struct KernelNode {
  Function function;
  unsigned gridX, gridY = 1, gridZ = 1, blockX, blockY = 1, blockZ = 1,
                  shared = 0;
  void **parameters, **extra = nullptr;
  void *kernel = nullptr, *context = nullptr;
};
constexpr unsigned kEventTimed = 0, kEventUntimed = 2;
constexpr int kPointerMemory = 2, kMemoryDevice = 2;
constexpr unsigned kHostPortable = 1, kHostMapped = 2;
constexpr unsigned kLazyPeerAccess = 1;

/// F(member, exported name, parameters)
#define TESSERA_CUDA_DRIVER(F)                                                 \
  F(init, cuInit, (unsigned flags))                                            \
  F(driverGetVersion, cuDriverGetVersion, (int *version))                      \
  F(getErrorName, cuGetErrorName, (Code code, const char **name))              \
  F(getErrorString, cuGetErrorString, (Code code, const char **text))          \
  F(deviceGetCount, cuDeviceGetCount, (int *count))                            \
  F(deviceGet, cuDeviceGet, (int *device, int ordinal))                        \
  F(deviceGetName, cuDeviceGetName, (char *name, int size, int device))        \
  F(deviceGetAttribute, cuDeviceGetAttribute,                                  \
    (int *value, int attribute, int device))                                   \
  F(deviceGetUuid, cuDeviceGetUuid_v2, (void *uuid, int device))               \
  F(canAccessPeer, cuDeviceCanAccessPeer, (int *can, int device, int peer))    \
  F(primaryRetain, cuDevicePrimaryCtxRetain,                                   \
    (ContextHandle * context, int device))                                     \
  F(primaryRelease, cuDevicePrimaryCtxRelease_v2, (int device))                \
  F(ctxPush, cuCtxPushCurrent_v2, (ContextHandle context))                     \
  F(ctxPop, cuCtxPopCurrent_v2, (ContextHandle * context))                     \
  F(ctxEnablePeerAccess, cuCtxEnablePeerAccess,                                \
    (ContextHandle peer, unsigned flags))                                      \
  F(memGetInfo, cuMemGetInfo_v2, (size_t * free, size_t * total))              \
  F(memAlloc, cuMemAlloc_v2, (DevicePointer * pointer, size_t bytes))          \
  F(memFree, cuMemFree_v2, (DevicePointer pointer))                            \
  F(memGetAddressRange, cuMemGetAddressRange_v2,                               \
    (DevicePointer * base, size_t * bytes, DevicePointer pointer))             \
  F(ipcGetMemHandle, cuIpcGetMemHandle,                                        \
    (IpcHandle * handle, DevicePointer base))                                  \
  F(ipcOpenMemHandle, cuIpcOpenMemHandle_v2,                                   \
    (DevicePointer * base, IpcHandle handle, unsigned flags))                  \
  F(ipcCloseMemHandle, cuIpcCloseMemHandle, (DevicePointer base))              \
  F(memHostAlloc, cuMemHostAlloc,                                              \
    (void **pointer, size_t bytes, unsigned flags))                            \
  F(memFreeHost, cuMemFreeHost, (void *pointer))                               \
  F(memHostGetDevicePointer, cuMemHostGetDevicePointer_v2,                     \
    (DevicePointer * pointer, void *host, unsigned flags))                     \
  F(pointerGetAttribute, cuPointerGetAttribute,                                \
    (void *value, int attribute, DevicePointer pointer))                       \
  F(memcpyAsync, cuMemcpyAsync,                                                \
    (DevicePointer to, DevicePointer from, size_t bytes, Stream stream))       \
  F(memcpyDtoDAsync, cuMemcpyDtoDAsync_v2,                                     \
    (DevicePointer to, DevicePointer from, size_t bytes, Stream stream))       \
  F(memsetD8Async, cuMemsetD8Async,                                            \
    (DevicePointer to, unsigned char value, size_t count, Stream stream))      \
  F(memsetD16Async, cuMemsetD16Async,                                          \
    (DevicePointer to, unsigned short value, size_t count, Stream stream))     \
  F(memsetD32Async, cuMemsetD32Async,                                          \
    (DevicePointer to, unsigned value, size_t count, Stream stream))           \
  F(moduleLoadDataEx, cuModuleLoadDataEx,                                      \
    (Module * module, const void *image, unsigned count, int *options,         \
     void **values))                                                           \
  F(moduleUnload, cuModuleUnload, (Module module))                             \
  F(moduleGetFunction, cuModuleGetFunction,                                    \
    (Function * function, Module module, const char *name))                    \
  F(funcSetAttribute, cuFuncSetAttribute,                                      \
    (Function function, int attribute, int value))                             \
  F(funcGetParamInfo, cuFuncGetParamInfo,                                      \
    (Function function, size_t index, size_t * offset, size_t * bytes))        \
  F(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor,                    \
    (int *blocks, Function function, int threads, size_t shared))              \
  F(tensorMapEncode, cuTensorMapEncodeTiled,                                   \
    (void *map, int type, unsigned rank, void *address, const uint64_t *sizes, \
     const uint64_t *strides, const uint32_t *box, const uint32_t *steps,      \
     int interleave, int swizzle, int promotion, int fill))                    \
  F(launchKernel, cuLaunchKernel,                                              \
    (Function function, unsigned gridX, unsigned gridY, unsigned gridZ,        \
     unsigned blockX, unsigned blockY, unsigned blockZ, unsigned shared,       \
     Stream stream, void **parameters, void **extra))                          \
  F(launchKernelEx, cuLaunchKernelEx,                                          \
    (const LaunchConfig *config, Function function, void **parameters,         \
     void **extra))                                                            \
  F(streamCreate, cuStreamCreate, (Stream * stream, unsigned flags))           \
  F(streamDestroy, cuStreamDestroy_v2, (Stream stream))                        \
  F(streamQuery, cuStreamQuery, (Stream stream))                               \
  F(streamSynchronize, cuStreamSynchronize, (Stream stream))                   \
  F(streamBeginCapture, cuStreamBeginCapture_v2, (Stream stream, int mode))    \
  F(streamEndCapture, cuStreamEndCapture, (Stream stream, Graph * graph))      \
  F(streamIsCapturing, cuStreamIsCapturing, (Stream stream, int *status))      \
  F(streamGetId, cuStreamGetId, (Stream stream, unsigned long long *id))       \
  F(streamWaitEvent, cuStreamWaitEvent,                                        \
    (Stream stream, Event event, unsigned flags))                              \
  F(eventCreate, cuEventCreate, (Event * event, unsigned flags))               \
  F(eventDestroy, cuEventDestroy_v2, (Event event))                            \
  F(eventRecord, cuEventRecord, (Event event, Stream stream))                  \
  F(eventQuery, cuEventQuery, (Event event))                                   \
  F(eventElapsedTime, cuEventElapsedTime,                                      \
    (float *milliseconds, Event begin, Event end))                             \
  F(graphInstantiate, cuGraphInstantiateWithFlags,                             \
    (GraphExec * exec, Graph graph, unsigned long long flags))                 \
  F(graphLaunch, cuGraphLaunch, (GraphExec exec, Stream stream))               \
  F(graphGetNodes, cuGraphGetNodes,                                            \
    (Graph graph, GraphNode * nodes, size_t * count))                          \
  F(graphNodeGetType, cuGraphNodeGetType, (GraphNode node, int *type))         \
  F(graphNodeGetDependencies, cuGraphNodeGetDependencies_v2,                   \
    (GraphNode node, GraphNode * nodes, EdgeData * edges, size_t * count))     \
  F(graphNodeGetDependentNodes, cuGraphNodeGetDependentNodes_v2,               \
    (GraphNode node, GraphNode * nodes, EdgeData * edges, size_t * count))     \
  F(graphAddDependencies, cuGraphAddDependencies_v2,                           \
    (Graph graph, const GraphNode *from, const GraphNode *to,                  \
     const EdgeData *edges, size_t count))                                     \
  F(graphMemsetNodeGetParams, cuGraphMemsetNodeGetParams,                      \
    (GraphNode node, MemsetNode * memset))                                     \
  F(graphAddKernelNode, cuGraphAddKernelNode_v2,                               \
    (GraphNode * node, Graph graph, const GraphNode *after, size_t count,      \
     const KernelNode *kernel))                                                \
  F(graphDestroyNode, cuGraphDestroyNode, (GraphNode node))                    \
  F(graphDestroy, cuGraphDestroy, (Graph graph))                               \
  F(graphExecDestroy, cuGraphExecDestroy, (GraphExec exec))

class Driver {
public:
  /// The driver of this process, checked: it is there, is no toolkit's stub, is
  /// new enough for our modules, and has a GPU. Opened once.
  static Outcome<const Driver *> get();

#define TESSERA_CUDA_MEMBER(member, name, parameters) Code(*member) parameters;
  TESSERA_CUDA_DRIVER(TESSERA_CUDA_MEMBER)
#undef TESSERA_CUDA_MEMBER

  /// Success, or one sentence: "cannot `what`: CUDA_ERROR_... (...)".
  Status check(Code code, const std::string &what) const;

  /// "580.95.05 (CUDA 13.0)", as far as the system says.
  const std::string &version() const { return versionText; }
  int deviceCount() const { return count; }

private:
  static Outcome<Driver *> open();

  std::string versionText;
  int count = 0;
};

/// "13.0" of the driver's 13000.
std::string cudaVersion(int number);

} // namespace tessera::cuda

#endif // TESSERA_BACKENDS_CUDA_DRIVER_DRIVER_H
