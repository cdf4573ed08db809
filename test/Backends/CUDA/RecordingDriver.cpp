//===- RecordingDriver.cpp - a CUDA driver that records ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecordingDriver.h"
#include "Backends/CUDA/Driver/Driver.h"
#include "FakeGraph.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <sstream>
#include <utility>

using namespace tessera;
using namespace tessera::cuda;
using tessera::test::FakeLaunch;
using tessera::test::RecordingDriver;

static RecordingDriver fake;
extern "C" __attribute__((visibility("default"))) RecordingDriver *
tessera_recording_driver() {
  return &fake;
}

namespace {

constexpr Code kInvalidValue = 1, kNotFound = 500, kInvalidContext = 201,
               kInvalidHandle = 400, kCaptureInvalidated = 901,
               kCaptureUnjoined = 904, kIllegalAddress = 700;

std::recursive_mutex mutex;
thread_local std::vector<ContextHandle> current;

using Task = std::function<Code()>;

} // namespace

namespace tessera::cuda {
struct ContextObject {
  int device;
};
struct FunctionObject {
  std::string name;
  size_t bytes;
  int maxShared = 48 << 10;
};
struct ModuleObject {
  std::map<std::string, FunctionObject> functions;
};
struct GraphExecObject {
  std::list<GraphNodeObject> nodes;
};
struct StreamObject {
  unsigned long long id = 0; // of no other, also later
  double clock = 0;          // milliseconds; an event takes one
  bool capturing = false;
  GraphObject graph;
  StreamObject *into = nullptr; // records for that, while it captures
  bool late = false;            // does what it holds when that is waited for
  std::vector<std::function<Code()>> held;
};
struct EventObject {
  bool timed;
  Stream recorded = nullptr; // where
  double time = 0;
};
} // namespace tessera::cuda

namespace {

ContextObject contexts[16];
std::set<Stream> streams;
// Handles and memory; never destroyed, so that what tests of a broken device
// leave is known to leak checkers.
auto &alive = *new std::set<const void *>;

template <typename T> T *make(T value) {
  T *object = new T(std::move(value));
  alive.insert(object);
  return object;
}
template <typename T> Code destroy(T *object, size_t &count) {
  if (!alive.erase(object))
    return kInvalidHandle;
  delete object;
  --count;
  return 0;
}

/// What every call begins with; 0 to go on.
Code enter(const char *name, bool needsContext = true) {
  auto failure = fake.failNext.find(name);
  if (failure != fake.failNext.end()) {
    Code code = failure->second;
    fake.failNext.erase(failure);
    return code;
  }
  if (needsContext && current.empty())
    return kInvalidContext;
  return needsContext ? fake.brokenCode : 0;
}

/// The stream whose graph takes in what comes to this one.
Stream recorder(Stream stream) {
  if (stream->capturing)
    return stream;
  return stream->into && stream->into->capturing ? stream->into : nullptr;
}

/// Does the task, or keeps it for the graph.
Code perform(const std::string &what, Stream stream, Task task, int kind = 0,
             MemsetNode memset = {}) {
  if (!alive.count(stream))
    return kInvalidHandle;
  fake.calls.push_back(what);
  if (stream->late)
    stream->held.push_back(std::move(task));
  else if (Stream records = recorder(stream))
    records->graph.add(std::move(task), kind, memset);
  else
    return task();
  return 0;
}

/// What is in `stream` later comes behind what `before` has now.
Code follow(Stream stream, Stream before) {
  if (!before->late && before != stream) {
    stream->into = recorder(before);
    stream->late = fake.late;
  }
  for (Task &task : std::exchange(before->held, {}))
    if (Stream records = recorder(stream))
      records->graph.add(std::move(task));
    else if (Code code = task())
      return code;
  return 0;
}

} // namespace

#define ENTER(...)                                                             \
  std::lock_guard lock(mutex);                                                 \
  if (Code code = enter(__func__, ##__VA_ARGS__))                              \
  return code
#define EXPORT extern "C" __attribute__((visibility("default"))) Code

extern "C" __attribute__((visibility("default"))) int
tessera::test::tessera_recording_perform(const char *what, void *stream,
                                         const FakeTask *task) {
  std::lock_guard lock(mutex);
  if (Code code = enter(what))
    return code;
  const int device = current.back()->device;
  auto *on = static_cast<Stream>(stream);
  return perform(what, on, [on, device, task = *task] {
    on->clock += task(device);
    return 0;
  });
}

//===----------------------------------------------------------------------===//
// The driver and its devices
//===----------------------------------------------------------------------===//

EXPORT cuInit(unsigned) { return fake.initCode; }
EXPORT cuDriverGetVersion(int *version) {
  *version = fake.version;
  return 0;
}
EXPORT cuGetErrorName(Code code, const char **name) {
  static const std::map<Code, const char *> names = {
      {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {kNoBinaryForGPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
      {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
      {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
  auto found = names.find(code);
  *name = found == names.end() ? nullptr : found->second;
  return *name ? 0 : kInvalidValue;
}
EXPORT cuGetErrorString(Code code, const char **text) {
  *text = code == kOutOfMemory ? "out of memory" : nullptr;
  return *text ? 0 : kInvalidValue;
}
EXPORT cuDeviceGetCount(int *count) {
  ENTER(false);
  *count = fake.devices;
  return 0;
}
EXPORT cuDeviceGet(int *device, int ordinal) {
  ENTER(false);
  *device = ordinal;
  return 0;
}
EXPORT cuDeviceGetName(char *name, int size, int device) {
  ENTER(false);
  std::string text =
      fake.name.empty() ? "Fake " + std::to_string(device) : fake.name;
  strncpy(name, text.c_str(), size);
  return 0;
}
EXPORT cuDeviceGetAttribute(int *value, int attribute, int) {
  ENTER(false);
  switch (attribute) {
  case kMultiprocessors:
    *value = fake.multiprocessors;
    return 0;
  case kUnifiedAddressing:
    *value = 1;
    return 0;
  case kCapabilityMajor:
    *value = fake.capability / 10;
    return 0;
  case kCapabilityMinor:
    *value = fake.capability % 10;
    return 0;
  }
  return kInvalidValue;
}
// Only asked about what NCCL did, or by ranks of it, which are not here.
EXPORT cuDeviceGetUuid_v2(void *, int) { return kInvalidValue; }
EXPORT cuDeviceCanAccessPeer(int *, int, int) { return kInvalidValue; }
EXPORT cuPointerGetAttribute(void *, int, DevicePointer) {
  return kInvalidValue;
}
EXPORT cuCtxEnablePeerAccess(ContextHandle, unsigned) { return kInvalidValue; }
EXPORT cuMemGetAddressRange_v2(DevicePointer *, size_t *, DevicePointer) {
  return kInvalidValue;
}
EXPORT cuIpcGetMemHandle(IpcHandle *, DevicePointer) { return kInvalidValue; }
EXPORT cuIpcOpenMemHandle_v2(DevicePointer *, IpcHandle, unsigned) {
  return kInvalidValue;
}
EXPORT cuIpcCloseMemHandle(DevicePointer) { return kInvalidValue; }
EXPORT cuDevicePrimaryCtxRetain(ContextHandle *context, int device) {
  ENTER(false);
  ++fake.retained[device];
  contexts[device].device = device;
  *context = &contexts[device];
  return 0;
}
EXPORT cuDevicePrimaryCtxRelease_v2(int device) {
  ENTER(false);
  --fake.retained[device];
  return 0;
}
EXPORT cuCtxPushCurrent_v2(ContextHandle context) {
  if (fake.retained[context->device] < 1)
    return kInvalidContext;
  current.push_back(context);
  return 0;
}
EXPORT cuCtxPopCurrent_v2(ContextHandle *context) {
  if (current.empty())
    return kInvalidContext;
  *context = current.back();
  current.pop_back();
  return 0;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

EXPORT cuMemGetInfo_v2(size_t *free, size_t *total) {
  ENTER();
  *free = fake.freeBytes;
  *total = 2 * fake.freeBytes;
  return 0;
}
EXPORT cuMemAlloc_v2(DevicePointer *pointer, size_t bytes) {
  ENTER();
  if (bytes == 0)
    return kInvalidValue;
  if (bytes > fake.freeBytes)
    return kOutOfMemory;
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xff, bytes);
  alive.insert(memory);
  *pointer = reinterpret_cast<DevicePointer>(memory);
  fake.allocations[*pointer] = bytes;
  fake.freeBytes -= bytes;
  return 0;
}
EXPORT cuMemFree_v2(DevicePointer pointer) {
  ENTER();
  auto found = fake.allocations.find(pointer);
  if (found == fake.allocations.end())
    return kInvalidValue;
  fake.freeBytes += found->second;
  fake.allocations.erase(found);
  alive.erase(reinterpret_cast<void *>(pointer));
  std::free(reinterpret_cast<void *>(pointer));
  return 0;
}
EXPORT cuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  ENTER();
  *pointer = std::malloc(bytes);
  std::memset(*pointer, 0xa5, bytes); // nobody relies on what is in it
  alive.insert(*pointer);
  ++fake.host;
  return 0;
}
EXPORT cuMemFreeHost(void *pointer) {
  ENTER();
  alive.erase(pointer);
  std::free(pointer);
  --fake.host;
  return 0;
}
EXPORT cuMemHostGetDevicePointer_v2(DevicePointer *pointer, void *host,
                                    unsigned) {
  ENTER();
  *pointer = reinterpret_cast<DevicePointer>(host);
  return 0;
}
EXPORT cuMemcpyAsync(DevicePointer to, DevicePointer from, size_t bytes,
                     Stream stream) {
  ENTER();
  return perform("copy", stream, [=] {
    std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from),
                 bytes);
    return 0;
  });
}
EXPORT cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes,
                            Stream stream) {
  ENTER();
  // Both must be the device's.
  for (DevicePointer pointer : {to, from}) {
    auto found = fake.allocations.upper_bound(pointer);
    if (found == fake.allocations.begin() ||
        pointer + bytes > (--found)->first + found->second)
      return kInvalidValue;
  }
  return perform("copy on device", stream, [=] {
    std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from),
                 bytes);
    return 0;
  });
}
template <typename T>
static Code fill(DevicePointer to, T value, size_t count, Stream stream) {
  auto task = [=] {
    std::fill_n(reinterpret_cast<T *>(to), count, value);
    return 0;
  };
  return perform("fill", stream, task, kMemset,
                 {to, count * sizeof value, value, sizeof value, count, 1});
}
EXPORT cuMemsetD8Async(DevicePointer to, unsigned char value, size_t count,
                       Stream stream) {
  ENTER();
  return fill(to, value, count, stream);
}
EXPORT cuMemsetD16Async(DevicePointer to, unsigned short value, size_t count,
                        Stream stream) {
  ENTER();
  return fill(to, value, count, stream);
}
EXPORT cuMemsetD32Async(DevicePointer to, unsigned value, size_t count,
                        Stream stream) {
  ENTER();
  return fill(to, value, count, stream);
}

//===----------------------------------------------------------------------===//
// Modules and kernels
//===----------------------------------------------------------------------===//

EXPORT cuModuleLoadDataEx(Module *module, const void *image, unsigned count,
                          int *options, void **values) {
  ENTER();
  char *log = nullptr;
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == kErrorLog)
      log = static_cast<char *>(values[i]);
  std::istringstream text(static_cast<const char *>(image));
  std::string fakeWord, cubin;
  int architecture = 0;
  if (!(text >> fakeWord >> cubin >> architecture) || fakeWord != "fake")
    return kInvalidImage;
  if (architecture != fake.capability) {
    if (log)
      std::strcpy(log, "fake: another architecture");
    return kNoBinaryForGPU;
  }
  ModuleObject object;
  FunctionObject function;
  while (text >> function.name >> function.bytes)
    object.functions[function.name] = function;
  *module = make(std::move(object));
  ++fake.modules;
  return 0;
}
EXPORT cuModuleUnload(Module module) {
  ENTER();
  return destroy(module, fake.modules);
}
EXPORT cuModuleGetFunction(Function *function, Module module,
                           const char *name) {
  ENTER();
  auto found = module->functions.find(name);
  if (!alive.count(module) || found == module->functions.end())
    return kNotFound;
  *function = &found->second;
  return 0;
}
EXPORT cuFuncSetAttribute(Function function, int attribute, int value) {
  ENTER();
  if (attribute != kMaxDynamicShared || value > 227 << 10)
    return kInvalidValue;
  function->maxShared = value;
  return 0;
}
EXPORT cuFuncGetParamInfo(Function function, size_t index, size_t *offset,
                          size_t *bytes) {
  ENTER();
  if (index != 0 || function->bytes == 0)
    return kInvalidValue;
  *offset = 0;
  *bytes = function->bytes;
  return 0;
}
EXPORT cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Function,
                                                   int threads, size_t) {
  ENTER();
  *blocks = threads > 1024 ? 0 : fake.resident;
  return 0;
}
/// A map here says what it was made of: address, type and rank, then 5 sizes, 4
/// strides, 5 extents of a box.
EXPORT cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address,
                              const uint64_t *sizes, const uint64_t *strides,
                              const uint32_t *box, const uint32_t *steps,
                              int interleave, int swizzle, int promotion,
                              int fill) {
  ENTER();
  if (uintptr_t(map) % 64 || uintptr_t(address) % 16 || rank < 1 || rank > 5 ||
      interleave != kMapDense || swizzle != kMapSwizzle128 || fill != kMapZeros)
    return kInvalidValue;
  // By 256 bytes where those are of the same row, or rows have no gaps.
  const uint64_t row = sizes[0] * 2;
  if (promotion != (row % 256 == 0 || (rank > 1 && strides[0] == row)
                        ? kMapPromote256
                        : kMapPromote128))
    return kInvalidValue;
  uint64_t words[16] = {uint64_t(address), uint64_t(type) << 8 | rank};
  for (unsigned i = 0; i < rank; ++i) {
    if (!sizes[i] || !box[i] || box[i] > 256 || steps[i] != 1 ||
        (i > 0 && strides[i - 1] % 16))
      return kInvalidValue;
    words[2 + i] = sizes[i];
    if (i > 0)
      words[6 + i] = strides[i - 1];
    words[11 + i] = box[i];
  }
  std::memcpy(map, words, sizeof words);
  return 0;
}
static Task makeTask(const FakeLaunch &launch) {
  return [launch]() -> Code {
    fake.launches.push_back(launch);
    auto kernel = fake.kernels.find(launch.name);
    if (kernel != fake.kernels.end())
      kernel->second(launch);
    if (launch.name == fake.breaks)
      fake.brokenCode = kIllegalAddress;
    if (launch.name == fake.hangs)
      fake.hanging = true;
    return 0;
  };
}
EXPORT cuLaunchKernelEx(const LaunchConfig *config, Function function,
                        void **parameters, void **extra) {
  ENTER();
  if (config->gridX == 0 || config->gridY != 1 || config->gridZ != 1 ||
      config->blockX == 0 || config->blockY != 1 || config->blockZ != 1 ||
      config->count > 1 || extra || int(config->shared) > function->maxShared ||
      (function->bytes && !parameters))
    return kInvalidValue;
  FakeLaunch launch{
      function->name, config->gridX, config->blockX, config->shared, {}};
  if (config->count) {
    const LaunchAttribute &attribute = config->attributes[0];
    if (attribute.id != kProgrammaticSerialization)
      return kInvalidValue;
    launch.early = attribute.value[0];
  }
  if (function->bytes) {
    launch.words.resize((function->bytes + 7) / 8);
    std::memcpy(launch.words.data(), parameters[0], function->bytes);
  }
  return perform("launch " + launch.name, config->stream, makeTask(launch));
}
EXPORT cuLaunchKernel(Function function, unsigned gridX, unsigned gridY,
                      unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned shared, Stream stream,
                      void **parameters, void **extra) {
  const LaunchConfig config = {gridX,  gridY,  gridZ,  blockX,
                               blockY, blockZ, shared, stream};
  return cuLaunchKernelEx(&config, function, parameters, extra);
}

//===----------------------------------------------------------------------===//
// Streams, events, graphs
//===----------------------------------------------------------------------===//

EXPORT cuStreamCreate(Stream *stream, unsigned flags) {
  ENTER();
  if (flags != kStreamNonBlocking)
    return kInvalidValue;
  static unsigned long long last = 0;
  *stream = make(StreamObject());
  (*stream)->id = ++last;
  streams.insert(*stream);
  ++fake.streams;
  return 0;
}
EXPORT cuStreamDestroy_v2(Stream stream) {
  ENTER();
  streams.erase(stream);
  return destroy(stream, fake.streams);
}
EXPORT cuStreamQuery(Stream stream) {
  ENTER();
  return !alive.count(stream) ? kInvalidHandle : fake.hanging ? kNotReady : 0;
}
EXPORT cuStreamSynchronize(Stream stream) {
  ENTER();
  // The real one would never return; a test must not come here.
  if (fake.hanging)
    std::abort();
  return alive.count(stream) && !stream->capturing ? 0 : kCaptureInvalidated;
}
EXPORT cuStreamBeginCapture_v2(Stream stream, int mode) {
  ENTER();
  if (stream->capturing || mode != kCaptureThreadLocal)
    return kInvalidValue;
  stream->capturing = true;
  stream->graph = {};
  fake.calls.push_back("begin capture");
  return 0;
}
EXPORT cuStreamEndCapture(Stream stream, Graph *graph) {
  ENTER();
  if (!stream->capturing)
    return kInvalidValue;
  stream->capturing = false;
  fake.calls.push_back("end capture");
  for (const StreamObject *each : streams)
    if (each->into == stream && !each->held.empty())
      return kCaptureUnjoined;
  *graph = make(stream->graph);
  for (GraphNodeObject &node : (*graph)->nodes)
    node.graph = *graph;
  ++fake.graphs;
  return 0;
}
EXPORT cuStreamIsCapturing(Stream stream, int *status) {
  ENTER();
  return *status = stream->capturing, 0;
}
EXPORT cuStreamGetId(Stream stream, unsigned long long *id) {
  ENTER();
  return *id = stream->id, 0;
}
EXPORT cuStreamWaitEvent(Stream stream, Event event, unsigned) {
  ENTER();
  ++fake.waits;
  if (!alive.count(stream) || !alive.count(event))
    return kInvalidHandle;
  return event->recorded ? follow(stream, event->recorded) : 0;
}
EXPORT cuEventCreate(Event *event, unsigned flags) {
  ENTER();
  EventObject object;
  object.timed = flags == kEventTimed;
  *event = make(object);
  ++fake.events;
  return 0;
}
EXPORT cuEventDestroy_v2(Event event) {
  ENTER();
  return destroy(event, fake.events);
}
EXPORT cuEventRecord(Event event, Stream stream) {
  ENTER();
  if (!alive.count(event) || !alive.count(stream))
    return kInvalidHandle;
  event->recorded = stream;
  event->time = ++stream->clock;
  return 0;
}
EXPORT cuEventQuery(Event event) {
  ENTER();
  if (!alive.count(event) || !event->recorded)
    return kInvalidHandle;
  return fake.hanging ? kNotReady : 0;
}
EXPORT cuEventElapsedTime(float *milliseconds, Event begin, Event end) {
  ENTER();
  if (!begin->timed || !end->timed)
    return kInvalidHandle;
  *milliseconds = static_cast<float>(end->time - begin->time);
  return 0;
}
EXPORT cuGraphInstantiateWithFlags(GraphExec *exec, Graph graph,
                                   unsigned long long) {
  ENTER();
  *exec = make(GraphExecObject{graph->nodes});
  ++fake.execs;
  return 0;
}
EXPORT cuGraphLaunch(GraphExec exec, Stream stream) {
  ENTER();
  if (!alive.count(exec))
    return kInvalidHandle;
  return perform("launch graph", stream, [exec]() -> Code {
    for (const GraphNodeObject &node : exec->nodes)
      if (fake.hanging)
        break;
      else if (Code code = node.task())
        return code;
    return 0;
  });
}
EXPORT cuGraphGetNodes(Graph graph, GraphNode *nodes, size_t *count) {
  ENTER();
  return tessera::test::listNodes(graph, nodes, count);
}
EXPORT cuGraphNodeGetType(GraphNode node, int *type) {
  ENTER();
  return *type = node->kind, 0;
}
EXPORT cuGraphNodeGetDependencies_v2(GraphNode node, GraphNode *nodes,
                                     EdgeData *edges, size_t *count) {
  ENTER();
  return tessera::test::listBeside(node, false, nodes, edges, count);
}
EXPORT cuGraphNodeGetDependentNodes_v2(GraphNode node, GraphNode *nodes,
                                       EdgeData *edges, size_t *count) {
  ENTER();
  return tessera::test::listBeside(node, true, nodes, edges, count);
}
EXPORT cuGraphAddDependencies_v2(Graph, const GraphNode *from,
                                 const GraphNode *to, const EdgeData *,
                                 size_t count) {
  ENTER();
  return tessera::test::addEdges(from, to, count);
}
EXPORT cuGraphMemsetNodeGetParams(GraphNode node, MemsetNode *memset) {
  ENTER();
  return *memset = node->memset, node->kind == kMemset ? 0 : kInvalidValue;
}
EXPORT cuGraphAddKernelNode_v2(GraphNode *node, Graph graph,
                               const GraphNode *after, size_t count,
                               const KernelNode *kernel) {
  ENTER();
  FakeLaunch launch{
      kernel->function->name, kernel->gridX, kernel->blockX, 0, {}};
  launch.words.resize((kernel->function->bytes + 7) / 8);
  std::memcpy(launch.words.data(), kernel->parameters[0],
              kernel->function->bytes);
  *node = tessera::test::insertNode(graph, after, count, makeTask(launch));
  return 0;
}
EXPORT cuGraphDestroyNode(GraphNode node) {
  ENTER();
  return tessera::test::destroyNode(node);
}
EXPORT cuGraphDestroy(Graph graph) {
  ENTER();
  return destroy(graph, fake.graphs);
}
EXPORT cuGraphExecDestroy(GraphExec exec) {
  ENTER();
  return destroy(exec, fake.execs);
}
