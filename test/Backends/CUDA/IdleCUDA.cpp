//===- IdleCUDA.cpp - CUDA libraries that do nothing ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver, NCCL, cuBLASLt and cuDNN as one library whose calls cost nothing,
// so that what a run takes is the runtime's own time. All work is done at once;
// a call of NCCL is in progress when it returns, and done when asked about. The
// parameter of a function "name_88" has 88 bytes, if it is none of the
// runtime's kernels.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/NCCL/NCCL.h"
#include "Emulation.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>

using namespace tessera::cuda;
using namespace tessera::cuda::nccl;

namespace tessera::cuda {
struct FunctionObject {
  size_t bytes;
};
} // namespace tessera::cuda

static char something;
template <typename T> static int give(T **handle) {
  *handle = reinterpret_cast<T *>(&something);
  return 0;
}

extern "C" {

//===----------------------------------------------------------------------===//
// The driver
//===----------------------------------------------------------------------===//

Code cuInit(unsigned) { return 0; }
Code cuDriverGetVersion(int *version) { return *version = 13000, 0; }
Code cuGetErrorName(Code, const char **) { return 1; }
Code cuGetErrorString(Code, const char **) { return 1; }
Code cuDeviceGetCount(int *count) { return *count = 64, 0; }
Code cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
Code cuDeviceGetName(char *name, int size, int) {
  return strncpy(name, "Idle GPU", size), 0;
}
Code cuDeviceGetAttribute(int *value, int attribute, int) {
  *value = attribute == kCapabilityMajor   ? 9
           : attribute == kCapabilityMinor ? 0
                                           : 1;
  return 0;
}
Code cuDeviceGetUuid_v2(void *, int) { return 1; }
Code cuDeviceCanAccessPeer(int *, int, int) { return 1; }
Code cuPointerGetAttribute(void *, int, DevicePointer) { return 1; }
Code cuCtxEnablePeerAccess(ContextHandle, unsigned) { return 1; }
Code cuDevicePrimaryCtxRetain(ContextHandle *context, int) {
  return give(context);
}
Code cuDevicePrimaryCtxRelease_v2(int) { return 0; }
Code cuCtxPushCurrent_v2(ContextHandle) { return 0; }
Code cuCtxPopCurrent_v2(ContextHandle *) { return 0; }
Code cuMemGetInfo_v2(size_t *free, size_t *total) {
  return *free = *total = size_t(1) << 40, 0;
}
Code cuMemAlloc_v2(DevicePointer *pointer, size_t bytes) {
  *pointer = reinterpret_cast<DevicePointer>(
      aligned_alloc(256, (bytes + 255) / 256 * 256));
  return 0;
}
Code cuMemFree_v2(DevicePointer pointer) {
  return free(reinterpret_cast<void *>(pointer)), 0;
}
Code cuMemGetAddressRange_v2(DevicePointer *, size_t *, DevicePointer) {
  return 1;
}
Code cuIpcGetMemHandle(IpcHandle *, DevicePointer) { return 1; }
Code cuIpcOpenMemHandle_v2(DevicePointer *, IpcHandle, unsigned) { return 1; }
Code cuIpcCloseMemHandle(DevicePointer) { return 1; }
Code cuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  return *pointer = calloc(1, bytes), 0;
}
Code cuMemFreeHost(void *pointer) { return free(pointer), 0; }
Code cuMemHostGetDevicePointer_v2(DevicePointer *pointer, void *host,
                                  unsigned) {
  return *pointer = reinterpret_cast<DevicePointer>(host), 0;
}
Code cuMemcpyAsync(DevicePointer, DevicePointer, size_t, Stream) { return 0; }
Code cuMemcpyDtoDAsync_v2(DevicePointer, DevicePointer, size_t, Stream) {
  return 0;
}
Code cuMemsetD8Async(DevicePointer, unsigned char, size_t, Stream) { return 0; }
Code cuMemsetD16Async(DevicePointer, unsigned short, size_t, Stream) {
  return 0;
}
Code cuMemsetD32Async(DevicePointer, unsigned, size_t, Stream) { return 0; }
Code cuModuleLoadDataEx(Module *module, const void *, unsigned, int *,
                        void **) {
  return give(module);
}
Code cuModuleUnload(Module) { return 0; }
Code cuModuleGetFunction(Function *function, Module, const char *name) {
  const tessera::test::Emulated known = tessera::test::findEmulated(name);
  const char *digits = strrchr(name, '_');
  // Until the process ends: a test has few.
  static std::mutex mutex;
  static std::deque<FunctionObject> functions;
  std::lock_guard lock(mutex);
  functions.push_back({known.run ? known.argumentBytes
                       : digits  ? strtoul(digits + 1, nullptr, 10)
                                 : 0});
  *function = &functions.back();
  return 0;
}
Code cuFuncSetAttribute(Function, int, int) { return 0; }
Code cuFuncGetParamInfo(Function function, size_t, size_t *, size_t *bytes) {
  return *bytes = function->bytes, 0;
}
Code cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Function, int,
                                                 size_t) {
  return *blocks = 1, 0;
}
Code cuTensorMapEncodeTiled(void *, int, unsigned, void *, const uint64_t *,
                            const uint64_t *, const uint32_t *,
                            const uint32_t *, int, int, int, int) {
  return 0;
}
Code cuLaunchKernel(Function, unsigned, unsigned, unsigned, unsigned, unsigned,
                    unsigned, unsigned, Stream, void **, void **) {
  return 0;
}
Code cuLaunchKernelEx(const LaunchConfig *, Function, void **, void **) {
  return 0;
}
Code cuStreamCreate(Stream *stream, unsigned) { return give(stream); }
Code cuStreamDestroy_v2(Stream) { return 0; }
Code cuStreamQuery(Stream) { return 0; }
Code cuStreamSynchronize(Stream) { return 0; }
Code cuStreamBeginCapture_v2(Stream, int) { return 0; }
Code cuStreamEndCapture(Stream, Graph *graph) { return give(graph); }
Code cuStreamIsCapturing(Stream, int *status) { return *status = 0, 0; }
Code cuStreamGetId(Stream, unsigned long long *id) { return *id = 1, 0; }
Code cuStreamWaitEvent(Stream, Event, unsigned) { return 0; }
Code cuEventCreate(Event *event, unsigned) { return give(event); }
Code cuEventDestroy_v2(Event) { return 0; }
Code cuEventRecord(Event, Stream) { return 0; }
Code cuEventQuery(Event) { return 0; }
Code cuEventElapsedTime(float *milliseconds, Event, Event) {
  return *milliseconds = 0, 0;
}
Code cuGraphInstantiateWithFlags(GraphExec *exec, Graph, unsigned long long) {
  return give(exec);
}
Code cuGraphLaunch(GraphExec, Stream) { return 0; }
Code cuGraphGetNodes(Graph, GraphNode *, size_t *count) {
  return *count = 0, 0;
}
Code cuGraphNodeGetType(GraphNode, int *) { return 500; }
Code cuGraphNodeGetDependencies_v2(GraphNode, GraphNode *, EdgeData *,
                                   size_t *) {
  return 500;
}
Code cuGraphNodeGetDependentNodes_v2(GraphNode, GraphNode *, EdgeData *,
                                     size_t *) {
  return 500;
}
Code cuGraphAddDependencies_v2(Graph, const GraphNode *, const GraphNode *,
                               const EdgeData *, size_t) {
  return 500;
}
Code cuGraphMemsetNodeGetParams(GraphNode, MemsetNode *) { return 500; }
Code cuGraphAddKernelNode_v2(GraphNode *, Graph, const GraphNode *, size_t,
                             const KernelNode *) {
  return 500;
}
Code cuGraphDestroyNode(GraphNode) { return 500; }
Code cuGraphDestroy(Graph) { return 0; }
Code cuGraphExecDestroy(GraphExec) { return 0; }

//===----------------------------------------------------------------------===//
// NCCL
//===----------------------------------------------------------------------===//

State ncclGetVersion(int *version) { return *version = 22800, kSuccess; }
const char *ncclGetErrorString(State) { return "an error"; }
const char *ncclGetLastError(Comm) { return nullptr; }
State ncclGetUniqueId(UniqueId *) { return kSuccess; }
State ncclCommInitRankConfig(Comm *comm, int, UniqueId, int, Config *) {
  return give(comm), kInProgress;
}
State ncclCommSplit(Comm, int, int, Comm *part, Config *) {
  return give(part), kInProgress;
}
State ncclCommFinalize(Comm) { return kSuccess; }
State ncclCommDestroy(Comm) { return kSuccess; }
State ncclCommAbort(Comm) { return kSuccess; }
State ncclCommGetAsyncError(Comm, State *state) {
  return *state = kSuccess, kSuccess;
}
State ncclGroupStart() { return kSuccess; }
State ncclGroupEnd() { return kInProgress; }
State ncclSend(const void *, size_t, Type, int, Comm, Stream) {
  return kSuccess;
}
State ncclRecv(void *, size_t, Type, int, Comm, Stream) { return kSuccess; }
State ncclAllGather(const void *, void *, size_t, Type, Comm, Stream) {
  return kInProgress;
}
State ncclAllReduce(const void *, void *, size_t, Type, Reduction, Comm,
                    Stream) {
  return kInProgress;
}
State ncclReduceScatter(const void *, void *, size_t, Type, Reduction, Comm,
                        Stream) {
  return kInProgress;
}
State ncclMemAlloc(void **pointer, size_t bytes) {
  return *pointer = aligned_alloc(256, (bytes + 255) / 256 * 256), kSuccess;
}
State ncclMemFree(void *pointer) { return free(pointer), kSuccess; }
State ncclCommWindowRegister(Comm, void *, size_t, Window *window, int) {
  return give(window), kSuccess;
}
State ncclCommWindowDeregister(Comm, Window) { return kSuccess; }

//===----------------------------------------------------------------------===//
// cuBLASLt
//===----------------------------------------------------------------------===//

int cublasLtCreate(void **handle) { return give(handle); }
int cublasLtDestroy(void *) { return 0; }
size_t cublasLtGetVersion() { return 130100; }
const char *cublasLtGetStatusName(int) { return "an error"; }
int cublasLtMatmulDescCreate(void **desc, int, int) { return give(desc); }
int cublasLtMatmulDescDestroy(void *) { return 0; }
int cublasLtMatmulDescSetAttribute(void *, int, const void *, size_t) {
  return 0;
}
int cublasLtMatrixLayoutCreate(void **layout, int, uint64_t, uint64_t,
                               int64_t) {
  return give(layout);
}
int cublasLtMatrixLayoutDestroy(void *) { return 0; }
int cublasLtMatrixLayoutSetAttribute(void *, int, const void *, size_t) {
  return 0;
}
int cublasLtMatmulPreferenceCreate(void **preference) {
  return give(preference);
}
int cublasLtMatmulPreferenceDestroy(void *) { return 0; }
int cublasLtMatmulPreferenceSetAttribute(void *, int, const void *, size_t) {
  return 0;
}
int cublasLtMatmulAlgoGetHeuristic(void *, void *, void *, void *, void *,
                                   void *, void *, int, void *, int *returned) {
  return *returned = 1, 0; // what the caller has zeroed is a success
}
int cublasLtMatmulAlgoCheck(void *, void *, void *, void *, void *, void *,
                            const void *, void *) {
  return 0;
}
int cublasLtMatmul(void *, void *, const void *, const void *, void *,
                   const void *, void *, const void *, const void *, void *,
                   void *, void *, const void *, void *, size_t, void *) {
  return 0;
}

//===----------------------------------------------------------------------===//
// cuDNN
//===----------------------------------------------------------------------===//

size_t cudnnGetVersion() { return 91900; }
const char *cudnnGetErrorString(int) { return "an error"; }
void cudnnGetLastErrorString(char *, size_t) {}
int cudnnCreate(void **handle) { return give(handle); }
int cudnnDestroy(void *) { return 0; }
int cudnnSetStream(void *, void *) { return 0; }
int cudnnBackendCreateDescriptor(int, void **object) { return give(object); }
int cudnnBackendDestroyDescriptor(void *) { return 0; }
int cudnnBackendFinalize(void *) { return 0; }
int cudnnBackendSetAttribute(void *, int, int, int64_t, const void *) {
  return 0;
}
int cudnnBackendGetAttribute(void *, int field, int, int64_t, int64_t *count,
                             void *) {
  return *count = field == 202,
         0; // one configuration, of which is nothing told
}
int cudnnBackendExecute(void *, void *, void *) { return 0; }

} // extern "C"
