//===- FakeGraph.h - the graphs of the drivers that have no GPU -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nodes in a line, as one stream records them. Edges are asked for with room
// for what they carry, as some of the real one's carry something.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_RUNTIME_CUDA_FAKEGRAPH_H
#define TESSERA_TEST_RUNTIME_CUDA_FAKEGRAPH_H

#include "Backends/CUDA/Driver/Driver.h"

#include <functional>
#include <iterator>
#include <list>
#include <vector>

namespace tessera::cuda {
struct GraphNodeObject {
  GraphObject *graph;
  std::function<Code()> task;
  int kind = 0; ///< of a kernel
  MemsetNode memset = {};
};
struct GraphObject {
  std::list<GraphNodeObject> nodes;
  void add(std::function<Code()> task, int kind = 0, MemsetNode memset = {}) {
    nodes.push_back({this, std::move(task), kind, memset});
  }
};
} // namespace tessera::cuda

namespace tessera::test {

using cuda::Code, cuda::Graph, cuda::GraphNode;

constexpr Code kInvalidNodes = 1; ///< CUDA_ERROR_INVALID_VALUE

inline auto placeOf(GraphNode node) {
  auto &nodes = node->graph->nodes;
  return std::find_if(nodes.begin(), nodes.end(),
                      [&](const auto &other) { return &other == node; });
}

inline Code listNodes(Graph graph, GraphNode *to, size_t *count) {
  if (to && *count < graph->nodes.size())
    return kInvalidNodes;
  *count = graph->nodes.size();
  if (to)
    for (cuda::GraphNodeObject &node : graph->nodes)
      *to++ = &node;
  return 0;
}

/// The node before it, or behind it.
inline Code listBeside(GraphNode node, bool behind, GraphNode *to,
                       cuda::EdgeData *edges, size_t *count) {
  if (!to || !edges || *count < 1)
    return kInvalidNodes;
  auto place = placeOf(node);
  auto &nodes = node->graph->nodes;
  if (behind ? std::next(place) == nodes.end() : place == nodes.begin())
    return *count = 0, 0;
  *to = behind ? &*std::next(place) : &*std::prev(place);
  return *count = 1, 0;
}

/// Two neighbours of a node that is taken out are so without a word.
inline Code addEdges(const GraphNode *from, const GraphNode *to, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (std::distance(from[i]->graph->nodes.begin(), placeOf(from[i])) >=
        std::distance(to[i]->graph->nodes.begin(), placeOf(to[i])))
      return kInvalidNodes;
  return 0;
}

/// Behind the one node that it depends on, or first.
inline GraphNode insertNode(Graph graph, const GraphNode *after, size_t count,
                            std::function<Code()> task) {
  auto place = count ? std::next(placeOf(*after)) : graph->nodes.begin();
  return &*graph->nodes.insert(place, {graph, std::move(task)});
}

inline Code destroyNode(GraphNode node) {
  node->graph->nodes.erase(placeOf(node));
  return 0;
}

} // namespace tessera::test

#endif // TESSERA_TEST_RUNTIME_CUDA_FAKEGRAPH_H
