//===- Graphs.cpp - a recorded run, made ready to launch -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Run/Graphs.h"
#include "Backends/CUDA/Driver/Copies.h"
#include "Support/Try.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::cuda;

namespace {

using Nodes = std::vector<GraphNode>;

class Editor {
public:
  Editor(Binaries &binaries, Graph graph)
      : binaries(binaries), device(binaries.device()), driver(device.driver()),
        graph(graph) {}

  Status run() {
    size_t count = 0;
    TSR_TRY(check(driver.graphGetNodes(graph, nullptr, &count)));
    Nodes nodes(count);
    TSR_TRY(check(driver.graphGetNodes(graph, nodes.data(), &count)));
    most = count;
    for (GraphNode node : nodes) {
      int kind = 0;
      TSR_TRY(check(driver.graphNodeGetType(node, &kind)));
      if (kind == kMemset)
        TSR_TRY(setByKernels(node));
      else if (kind == kWaitEvent || kind == kEventRecord)
        TSR_TRY(remove(node));
    }
    return Ok{};
  }

private:
  Status check(Code code) const {
    return device.check(code, "look through the recorded graph");
  }

  template <typename Call> Result<Nodes> beside(Call call, GraphNode node) {
    // The edges are asked for, as without those that say when a kernel may
    // start the driver has only an error.
    Nodes found(most);
    std::vector<EdgeData> edges(most);
    size_t count = most;
    TSR_TRY(check(call(node, found.data(), edges.data(), &count)));
    found.resize(count);
    return found;
  }

  /// What is behind the node is now behind what is before it.
  Status remove(GraphNode node) {
    Result<Nodes> before = beside(driver.graphNodeGetDependencies, node);
    if (!before)
      return before.error();
    Result<Nodes> after = beside(driver.graphNodeGetDependentNodes, node);
    if (!after)
      return after.error();
    for (GraphNode from : *before) {
      Result<Nodes> known = beside(driver.graphNodeGetDependentNodes, from);
      if (!known)
        return known.error();
      for (GraphNode to : *after)
        if (std::ranges::find(*known, to) == known->end())
          TSR_TRY(check(
              driver.graphAddDependencies(graph, &from, &to, nullptr, 1)));
    }
    return check(driver.graphDestroyNode(node));
  }

  Status setByKernels(GraphNode node) {
    MemsetNode memset = {};
    TSR_TRY(check(driver.graphMemsetNodeGetParams(node, &memset)));
    const int64_t bytes = memset.elementBytes;
    const int64_t rows = memset.height, columns = memset.width;
    const CopyLoop loop(bytes, {rows, columns},
                        {static_cast<int64_t>(memset.pitch) / bytes, 1},
                        {0, 0});
    RuntimeLaunches fill(device.multiprocessors());
    fill.fill(loop, reinterpret_cast<std::byte *>(memset.target),
              reinterpret_cast<const std::byte *>(&memset.value), bytes);
    std::vector<Function> functions;
    for (const RuntimeLaunch &launch : fill.launches) {
      Result<Binaries::Kernel> kernel =
          binaries.findRuntime(launch.kernel, RuntimeLaunch::kThreads,
                               static_cast<int>(launch.argument.size()));
      // A module has no kernel for less than its smallest element.
      if (!kernel)
        return Ok{};
      functions.push_back(kernel->handle);
    }
    Result<Nodes> before = beside(driver.graphNodeGetDependencies, node);
    if (!before)
      return before.error();
    for (size_t i = 0; i < functions.size(); ++i) {
      void *parameters[] = {fill.launches[i].argument.data()};
      const KernelNode kernel = {.function = functions[i],
                                 .gridX = fill.launches[i].blocks,
                                 .blockX = RuntimeLaunch::kThreads,
                                 .parameters = parameters};
      GraphNode added = nullptr;
      TSR_TRY(check(driver.graphAddKernelNode(&added, graph, before->data(),
                                              before->size(), &kernel)));
      ++most;
      TSR_TRY(
          check(driver.graphAddDependencies(graph, &added, &node, nullptr, 1)));
    }
    return remove(node);
  }

  Binaries &binaries;
  const Device &device;
  const Driver &driver;
  const Graph graph;
  size_t most = 0; ///< how many nodes one may have beside it
};

} // namespace

Status tessera::cuda::leaveKernels(Binaries &binaries, Graph graph) {
  return Editor(binaries, graph).run();
}
