//===- FakeDriver.cpp - libcuda.so.1 without a GPU ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the runtime uses of the driver, on host memory: a stream is a thread
// that takes one piece of work after the other, a graph is a list of them, the
// kernels are those of Emulation.h. Calls that a real driver forbids while a
// stream records fail here too. With TESSERA_FAKE_CUDA_APART="1 to 0" in the
// environment GPU 1 cannot reach GPU 0's memory; with
// TESSERA_FAKE_CUDA_CAPABILITY="9.0 8.6" the GPUs but the first are older.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Driver/Driver.h"
#include "Emulation.h"
#include "FakeGraph.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

using namespace tessera::cuda;
using Step = std::function<void()>;

namespace {

std::mutex allocatedMutex;
std::map<DevicePointer, size_t> allocated; // and their bytes

constexpr Code kInvalidValue = 1, kNotFound = 500, kCaptureUnsupported = 900;

class Queue {
public:
  Queue() : worker([this] { work(); }) {}
  ~Queue() {
    {
      std::lock_guard lock(mutex);
      ends = true;
    }
    change.notify_all();
    worker.join();
  }
  void push(Step step) {
    {
      std::lock_guard lock(mutex);
      steps.push_back(std::move(step));
    }
    change.notify_all();
  }
  bool idle() {
    std::lock_guard lock(mutex);
    return steps.empty();
  }
  void wait() {
    std::unique_lock lock(mutex);
    change.wait(lock, [&] { return steps.empty(); });
  }

private:
  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      change.wait(lock, [&] { return ends || !steps.empty(); });
      if (steps.empty())
        return;
      Step step = steps.front();
      lock.unlock();
      step();
      lock.lock();
      steps.pop_front();
      change.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable change;
  std::deque<Step> steps;
  bool ends = false;
  std::thread worker;
};

thread_local std::vector<ContextHandle> contexts;
bool hasContext() { return !contexts.empty(); }

} // namespace

namespace tessera::cuda {
struct GraphExecObject {
  std::list<GraphNodeObject> nodes;
};
struct StreamObject {
  static inline std::atomic<unsigned long long> last = 0;
  const unsigned long long id = ++last; ///< of no other, also later
  Queue queue;
  std::shared_ptr<GraphObject> graph;   ///< that it records
  std::weak_ptr<GraphObject> recording; ///< this, or that of one it waited for
};
struct EventObject {
  struct State {
    std::atomic<int> pending = 0;
    std::atomic<double> time = 0; ///< in milliseconds
  };
  std::shared_ptr<State> state = std::make_shared<State>();
  std::weak_ptr<GraphObject> recorded; ///< while that was recorded
};
struct FunctionObject {
  tessera::test::Emulated emulated;
};
struct ModuleObject {
  std::deque<FunctionObject> functions;
};
} // namespace tessera::cuda

/// In order on the stream, or into what it records.
static Code put(Stream stream, Step step) {
  if (!hasContext() || !stream)
    return kInvalidValue;
  if (auto graph = stream->recording.lock())
    graph->add([step = std::move(step)] { return step(), 0; });
  else
    stream->queue.push(std::move(step));
  return 0;
}

/// For the fake NCCL.
void fakeDriverPut(Stream stream, Step step) { put(stream, std::move(step)); }
/// An event that a graph records where it is made, if one is being.
void fakeDriverRecord(Stream stream, Step step) {
  if (auto graph = stream->recording.lock())
    graph->add([step = std::move(step)] { return step(), 0; }, kEventRecord);
}

extern "C" {

Code cuInit(unsigned) { return 0; }
Code cuDriverGetVersion(int *version) { return *version = 13000, 0; }
Code cuGetErrorName(Code, const char **name) {
  return *name = "CUDA_ERROR_FAKE", 0;
}
Code cuGetErrorString(Code, const char **text) {
  return *text = "the fake driver refuses", 0;
}
Code cuDeviceGetCount(int *count) { return *count = 64, 0; }
Code cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
Code cuDeviceGetName(char *name, int size, int) {
  return strncpy(name, "Fake GPU", size), 0;
}
Code cuDeviceGetAttribute(int *value, int attribute, int device) {
  int major = 9, minor = 0, length = 0;
  const char *text = getenv("TESSERA_FAKE_CUDA_CAPABILITY");
  for (int i = 0; text && i <= device &&
                  sscanf(text, "%d.%d%n", &major, &minor, &length) == 2;
       ++i)
    text += length;
  *value = attribute == kMultiprocessors     ? 3
           : attribute == kUnifiedAddressing ? 1
           : attribute == kCapabilityMajor   ? major
           : attribute == kCapabilityMinor   ? minor
                                             : 0;
  return 0;
}
Code cuDeviceGetUuid_v2(void *uuid, int device) {
  memset(uuid, 0, 16);
  memcpy(uuid, &device, sizeof device);
  return 0;
}
Code cuDeviceCanAccessPeer(int *can, int device, int peer) {
  const char *apart = getenv("TESSERA_FAKE_CUDA_APART");
  int from = -1, to = -1;
  if (apart)
    sscanf(apart, "%d to %d", &from, &to);
  return *can = device != from || peer != to, 0;
}
Code cuCtxEnablePeerAccess(ContextHandle peer, unsigned) {
  if (!hasContext())
    return kInvalidValue;
  auto deviceOf = [](ContextHandle context) {
    return int(reinterpret_cast<uintptr_t>(context)) - 1;
  };
  int can = 0;
  cuDeviceCanAccessPeer(&can, deviceOf(contexts.back()), deviceOf(peer));
  return can ? 0 : kInvalidValue;
}
Code cuDevicePrimaryCtxRetain(ContextHandle *context, int device) {
  *context = reinterpret_cast<ContextHandle>(uintptr_t(device) + 1);
  return 0;
}
Code cuDevicePrimaryCtxRelease_v2(int) { return 0; }
Code cuCtxPushCurrent_v2(ContextHandle context) {
  return contexts.push_back(context), 0;
}
Code cuCtxPopCurrent_v2(ContextHandle *context) {
  if (!hasContext())
    return kInvalidValue;
  *context = contexts.back();
  contexts.pop_back();
  return 0;
}
Code cuMemGetInfo_v2(size_t *free, size_t *total) {
  return *free = *total = size_t(1) << 40, 0;
}
Code cuMemAlloc_v2(DevicePointer *pointer, size_t bytes) {
  void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  // Nobody relies on what is in it.
  memset(memory, 0xa5, bytes);
  *pointer = reinterpret_cast<DevicePointer>(memory);
  std::lock_guard lock(allocatedMutex);
  allocated[*pointer] = bytes;
  return 0;
}
Code cuMemFree_v2(DevicePointer pointer) {
  std::lock_guard lock(allocatedMutex);
  allocated.erase(pointer);
  return free(reinterpret_cast<void *>(pointer)), 0;
}
Code cuPointerGetAttribute(void *value, int attribute, DevicePointer pointer) {
  std::lock_guard lock(allocatedMutex);
  if (attribute != kPointerMemory || !allocated.count(pointer))
    return kInvalidValue;
  return *static_cast<unsigned *>(value) = kMemoryDevice, 0;
}
Code cuMemGetAddressRange_v2(DevicePointer *base, size_t *bytes,
                             DevicePointer pointer) {
  std::lock_guard lock(allocatedMutex);
  auto above = allocated.upper_bound(pointer);
  if (above == allocated.begin())
    return kInvalidValue;
  const auto &[start, size] = *--above;
  if (pointer - start >= size)
    return kInvalidValue;
  return *base = start, *bytes = size, 0;
}
Code cuIpcGetMemHandle(IpcHandle *handle, DevicePointer base) {
  memcpy(handle, &base, sizeof base);
  return 0;
}
// Ranks are threads of one process.
Code cuIpcOpenMemHandle_v2(DevicePointer *, IpcHandle, unsigned) {
  return kInvalidValue;
}
Code cuIpcCloseMemHandle(DevicePointer) { return kInvalidValue; }
Code cuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  return *pointer = calloc(1, bytes), 0;
}
Code cuMemFreeHost(void *pointer) { return free(pointer), 0; }
Code cuMemHostGetDevicePointer_v2(DevicePointer *pointer, void *host,
                                  unsigned) {
  return *pointer = reinterpret_cast<DevicePointer>(host), 0;
}
Code cuMemcpyAsync(DevicePointer to, DevicePointer from, size_t bytes,
                   Stream stream) {
  return put(stream, [=] {
    memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
  });
}
Code cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes,
                          Stream stream) {
  return cuMemcpyAsync(to, from, bytes, stream);
}
Code cuMemsetD8Async(DevicePointer to, unsigned char value, size_t count,
                     Stream stream) {
  return put(stream,
             [=] { memset(reinterpret_cast<void *>(to), value, count); });
}
Code cuMemsetD16Async(DevicePointer to, unsigned short value, size_t count,
                      Stream stream) {
  return put(stream, [=] {
    std::fill_n(reinterpret_cast<unsigned short *>(to), count, value);
  });
}
Code cuMemsetD32Async(DevicePointer to, unsigned value, size_t count,
                      Stream stream) {
  return put(stream, [=] {
    std::fill_n(reinterpret_cast<unsigned *>(to), count, value);
  });
}
Code cuModuleLoadDataEx(Module *module, const void *, unsigned, int *,
                        void **) {
  return *module = new ModuleObject, 0;
}
Code cuModuleUnload(Module module) { return delete module, 0; }
Code cuModuleGetFunction(Function *function, Module module, const char *name) {
  tessera::test::Emulated emulated = tessera::test::findEmulated(name);
  if (!emulated.run)
    return kNotFound;
  module->functions.push_back({emulated});
  *function = &module->functions.back();
  return 0;
}
Code cuFuncSetAttribute(Function, int, int) { return 0; }
Code cuFuncGetParamInfo(Function function, size_t index, size_t *offset,
                        size_t *bytes) {
  if (index)
    return kInvalidValue;
  *offset = 0;
  *bytes = function->emulated.argumentBytes;
  return 0;
}
Code cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Function, int,
                                                 size_t) {
  return *blocks = 1, 0;
}
// No emulated kernel reads boxes.
Code cuTensorMapEncodeTiled(void *, int, unsigned, void *, const uint64_t *,
                            const uint64_t *, const uint32_t *,
                            const uint32_t *, int, int, int, int) {
  return kNotFound;
}
Code cuLaunchKernel(Function function, unsigned gridX, unsigned, unsigned,
                    unsigned, unsigned, unsigned, unsigned, Stream stream,
                    void **parameters, void **) {
  const auto *bytes = static_cast<const char *>(parameters[0]);
  std::vector<char> argument(bytes, bytes + function->emulated.argumentBytes);
  return put(stream, [=, kernel = function->emulated.run] {
    kernel(gridX, argument.data());
  });
}
Code cuLaunchKernelEx(const LaunchConfig *config, Function function,
                      void **parameters, void **extra) {
  return cuLaunchKernel(function, config->gridX, 1, 1, 1, 1, 1, 0,
                        config->stream, parameters, extra);
}
Code cuStreamCreate(Stream *stream, unsigned) {
  return *stream = new StreamObject, 0;
}
Code cuStreamDestroy_v2(Stream stream) { return delete stream, 0; }
Code cuStreamQuery(Stream stream) {
  if (!stream->recording.expired())
    return kCaptureUnsupported;
  return stream->queue.idle() ? 0 : kNotReady;
}
Code cuStreamSynchronize(Stream stream) {
  if (!stream->recording.expired())
    return kCaptureUnsupported;
  return stream->queue.wait(), 0;
}
Code cuStreamBeginCapture_v2(Stream stream, int) {
  if (!stream->recording.expired())
    return kInvalidValue;
  stream->graph = std::make_shared<GraphObject>();
  stream->recording = stream->graph;
  return 0;
}
Code cuStreamEndCapture(Stream stream, Graph *graph) {
  if (!stream->graph)
    return kInvalidValue;
  *graph = new GraphObject(std::move(*stream->graph));
  for (GraphNodeObject &node : (*graph)->nodes)
    node.graph = *graph;
  stream->graph.reset();
  return 0;
}
Code cuStreamIsCapturing(Stream stream, int *status) {
  return *status = !stream->recording.expired(), 0;
}
Code cuStreamGetId(Stream stream, unsigned long long *id) {
  return *id = stream->id, 0;
}
Code cuStreamWaitEvent(Stream stream, Event event, unsigned) {
  // Nodes are in a line.
  if (auto graph = event->recorded.lock())
    return stream->recording = graph, 0;
  return put(stream, [state = event->state] {
    while (state->pending)
      std::this_thread::yield();
  });
}
Code cuEventCreate(Event *event, unsigned) {
  return *event = new EventObject, 0;
}
Code cuEventDestroy_v2(Event event) { return delete event, 0; }
Code cuEventRecord(Event event, Stream stream) {
  event->recorded = stream->recording;
  if (!event->recorded.expired())
    return 0;
  ++event->state->pending;
  return put(stream, [state = event->state] {
    state->time = std::chrono::duration<double, std::milli>(
                      std::chrono::steady_clock::now().time_since_epoch())
                      .count();
    --state->pending;
  });
}
Code cuEventQuery(Event event) { return event->state->pending ? kNotReady : 0; }
Code cuEventElapsedTime(float *milliseconds, Event begin, Event end) {
  if (begin->state->pending || end->state->pending)
    return kNotReady;
  return *milliseconds = end->state->time - begin->state->time, 0;
}
Code cuGraphInstantiateWithFlags(GraphExec *exec, Graph graph,
                                 unsigned long long) {
  return *exec = new GraphExecObject{graph->nodes}, 0;
}
Code cuGraphLaunch(GraphExec exec, Stream stream) {
  for (const GraphNodeObject &node : exec->nodes)
    if (Code code = put(stream, node.task))
      return code;
  return 0;
}
Code cuGraphGetNodes(Graph graph, GraphNode *nodes, size_t *count) {
  return tessera::test::listNodes(graph, nodes, count);
}
Code cuGraphNodeGetType(GraphNode node, int *type) {
  return *type = node->kind, 0;
}
Code cuGraphNodeGetDependencies_v2(GraphNode node, GraphNode *nodes,
                                   EdgeData *edges, size_t *count) {
  return tessera::test::listBeside(node, false, nodes, edges, count);
}
Code cuGraphNodeGetDependentNodes_v2(GraphNode node, GraphNode *nodes,
                                     EdgeData *edges, size_t *count) {
  return tessera::test::listBeside(node, true, nodes, edges, count);
}
Code cuGraphAddDependencies_v2(Graph, const GraphNode *from,
                               const GraphNode *to, const EdgeData *,
                               size_t count) {
  return tessera::test::addEdges(from, to, count);
}
Code cuGraphMemsetNodeGetParams(GraphNode node, MemsetNode *memset) {
  return *memset = node->memset, 0;
}
Code cuGraphAddKernelNode_v2(GraphNode *, Graph, const GraphNode *, size_t,
                             const KernelNode *) {
  return kNotFound; // nothing here records a memset
}
Code cuGraphDestroyNode(GraphNode node) {
  return tessera::test::destroyNode(node);
}
Code cuGraphDestroy(Graph graph) { return delete graph, 0; }
Code cuGraphExecDestroy(GraphExec exec) { return delete exec, 0; }

} // extern "C"
