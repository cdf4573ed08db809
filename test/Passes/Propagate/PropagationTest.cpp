//===- PropagationTest.cpp - views on plain graphs ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Propagate/Propagation.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>
#include <random>

using namespace tessera;
using namespace tessera::tv;
using layout::IterationFactor;

namespace {

/// A graph written by names, whose ops and operands can be shuffled.
class Graph {
public:
  explicit Graph(std::string mesh) : mesh(*layout::parseMesh(mesh)) {}

  int tensor(std::string name, layout::Shape shape, std::string view = "",
             bool weight = false, bool open = false) {
    Propagation::Tensor t;
    t.shape = shape;
    t.typical = shape;
    t.elementBytes = 4;
    t.weight = weight;
    t.name = name;
    layout::View parsed = view.empty() ? layout::View::replicated(shape.size())
                                       : *layout::parseView(view, mesh);
    t.priority = parsed.priority;
    t.view = layout::canonicalize(parsed, shape, mesh);
    t.view.priority.clear();
    t.open.assign(shape.size(),
                  view.empty() || open ? 0 : Propagation::kClosed);
    tensors.push_back(t);
    return tensors.size() - 1;
  }

  /// Dimensions by letters: "mk,nk->mn". Letters not in a result are sums.
  void op(std::string letters, std::vector<int> operands,
          std::vector<int> results) {
    Propagation::Node node;
    node.name = letters;
    node.operands = operands;
    node.results = results;
    std::string names;
    auto dims = [&](char c, int64_t extent) {
      size_t at = names.find(c);
      if (at == std::string::npos) {
        at = names.size();
        names += c;
        IterationFactor factor;
        factor.size = extent;
        node.rule.factors.push_back(factor);
      }
      return layout::DimFactors{int(at)};
    };
    size_t arrow = letters.find("->");
    auto side = [&](std::string part, std::vector<int> &list, auto &rules) {
      size_t tensor = 0;
      rules.emplace_back();
      size_t d = 0;
      for (char c : part) {
        if (c == ',') {
          rules.emplace_back();
          ++tensor;
          d = 0;
          continue;
        }
        rules.back().push_back(dims(c, tensors[list[tensor]].shape[d++]));
      }
    };
    side(letters.substr(0, arrow), operands, node.rule.operands);
    size_t reductions = names.size();
    side(letters.substr(arrow + 2), results, node.rule.results);
    for (size_t f = 0; f < reductions; ++f)
      if (!node.rule.isInResult(f))
        node.rule.factors[f].kind = IterationFactor::Kind::Reduction;
    node.rule.uses.assign(operands.size(), layout::Use::Read);
    nodes.push_back(node);
  }

  void reshape(int from, int to) {
    Propagation::Node node;
    node.name = "reshape";
    node.operands = {from};
    node.results = {to};
    auto map = [this](layout::Shape a, layout::Shape b) {
      return [=, this](const layout::View &view) {
        return layout::reshapeView(view, a, b, mesh);
      };
    };
    node.forward = map(tensors[from].shape, tensors[to].shape);
    node.backward = map(tensors[to].shape, tensors[from].shape);
    nodes.push_back(node);
  }

  std::vector<std::string> run(std::mt19937 *shuffle = nullptr) {
    std::vector<int> place(tensors.size());
    std::iota(place.begin(), place.end(), 0);
    std::vector<Propagation::Node> list = nodes;
    if (shuffle) {
      std::shuffle(place.begin(), place.end(), *shuffle);
      std::shuffle(list.begin(), list.end(), *shuffle);
    }
    Propagation propagation(mesh);
    std::vector<int> at(tensors.size());
    for (int index : place)
      at[index] = propagation.addTensor(tensors[index]);
    for (Propagation::Node node : list) {
      for (int &t : node.operands)
        t = at[t];
      for (int &t : node.results)
        t = at[t];
      if (shuffle && !node.forward && node.operands.size() == 2 &&
          (*shuffle)() % 2) {
        std::swap(node.operands[0], node.operands[1]);
        std::swap(node.rule.operands[0], node.rule.operands[1]);
      }
      propagation.addNode(node);
    }
    Status status = propagation.run();
    EXPECT_TRUE(status);
    log = propagation.decisions();
    std::vector<std::string> views;
    for (size_t i = 0; i < tensors.size(); ++i)
      views.push_back(layout::toString(propagation.tensor(at[i]).view, mesh));
    return views;
  }

  layout::Mesh mesh;
  std::vector<Propagation::Decision> log;

private:
  std::vector<Propagation::Tensor> tensors;
  std::vector<Propagation::Node> nodes;
};

std::vector<std::string> checkOrderFree(Graph &graph) {
  std::vector<std::string> views = graph.run();
  std::mt19937 random(7);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(graph.run(&random), views);
  return views;
}

TEST(Propagation, mlpFromOneView) {
  Graph g("<tp = 2>");
  int x = g.tensor("x", {4, 8});
  int w0 = g.tensor("w0", {16, 8}, "[did(tp) * _, _]", true);
  int w1 = g.tensor("w1", {8, 16}, "", true);
  int h = g.tensor("h", {4, 16}), a = g.tensor("a", {4, 16}),
      y = g.tensor("y", {4, 8});
  g.op("mk,nk->mn", {x, w0}, {h});
  g.op("mn->mn", {h}, {a});
  g.op("mk,nk->mn", {a, w1}, {y});
  auto v = checkOrderFree(g);
  EXPECT_EQ(v[x], "[4, 8]");
  EXPECT_EQ(v[h], "[4, did(tp) * 8]");
  EXPECT_EQ(v[a], "[4, did(tp) * 8]");
  EXPECT_EQ(v[w1], "[8, did(tp) * 8]");
  EXPECT_EQ(v[y], "[4, 8]");
}

TEST(Propagation, linearTakesBothAxes) {
  Graph g("<y = 2, x = 3>");
  int x = g.tensor("x", {4, 8}, "[did(y) * _, _]");
  int w = g.tensor("w", {6, 8}, "[did(x) * _, _]", true);
  int r = g.tensor("r", {4, 6});
  g.op("mk,nk->mn", {x, w}, {r});
  EXPECT_EQ(checkOrderFree(g)[r], "[did(y) * 2, did(x) * 2]");
}

TEST(Propagation, conflictOnOneAxisKeepsTheLargerOnATieTheWeight) {
  for (int64_t m : {4, 6, 10}) {
    Graph g("<tp = 2>");
    int x = g.tensor("x", {m, 8}, "[did(tp) * _, _]");
    int w = g.tensor("w", {6, 8}, "[did(tp) * _, _]", true);
    int r = g.tensor("r", {m, 6});
    g.op("mk,nk->mn", {x, w}, {r});
    auto v = checkOrderFree(g);
    EXPECT_EQ(v[r], m > 6 ? "[did(tp) * 5, 6]"
                          : "[" + std::to_string(m) + ", did(tp) * 3]");
  }
}

TEST(Propagation, residualGoesBackward) {
  Graph g("<tp = 2>");
  int a = g.tensor("a", {4, 16}, "[_, did(tp) * _]");
  int w = g.tensor("w", {8, 16}, "[_, did(tp) * _]", true);
  int residual = g.tensor("residual", {4, 8}, "[did(tp) * _, _]");
  int y = g.tensor("y", {4, 8}), sum = g.tensor("sum", {4, 8});
  g.op("mk,nk->mn", {a, w}, {y});
  g.op("mn,mn->mn", {y, residual}, {sum});
  auto v = checkOrderFree(g);
  EXPECT_EQ(v[sum], "[did(tp) * 2, 8]");
  EXPECT_EQ(v[y], "[did(tp) * 2, 8]");
}

TEST(Propagation, closedViewsStayOpenOnesRefine) {
  Graph g("<dp = 2, tp = 2>");
  int x = g.tensor("x", {8, 8}, "[did(dp) * _, _]");
  int closed = g.tensor("closed", {8, 8}, "[_, _]");
  int open = g.tensor("open", {8, 8}, "[_, did(tp) * ?]", false, true);
  g.op("mn->mn", {x}, {closed});
  g.op("mn->mn", {x}, {open});
  auto v = checkOrderFree(g);
  EXPECT_EQ(v[closed], "[8, 8]");
  EXPECT_EQ(v[open], "[did(dp) * 4, did(tp) * 4]");
  EXPECT_TRUE(std::any_of(g.log.begin(), g.log.end(), [](auto &d) {
    return !d.taken &&
           d.text.find("its view is the user's") != std::string::npos;
  }));
}

TEST(Propagation, priorityDecidesBeforeBytes) {
  Graph g("<tp = 2>");
  int big =
      g.tensor("big", {8, 8, 4}, "[did(tp) * _, _, _], priority = [1, 0, 0]");
  int small = g.tensor("small", {8, 8}, "[_, did(tp) * _], priority = [0, 0]");
  int r = g.tensor("r", {8, 8});
  g.op("mnk->mn", {big}, {r});
  g.op("mn->mn", {small}, {r});
  auto v = g.run();
  EXPECT_EQ(v[r], "[8, did(tp) * 4]");
}

TEST(Propagation, reshapeCarriesStridedAndSplitDimensions) {
  Graph g("<x = 2>");
  int a = g.tensor("a", {3, 10}, "[_, did(x) * _]");
  int b = g.tensor("b", {30}), c = g.tensor("c", {3, 2, 5}),
      d = g.tensor("d", {3, 2, 5});
  g.reshape(a, b);
  g.op("m->m", {b}, {g.tensor("b2", {30})});
  g.reshape(b, c);
  g.op("mno->mno", {c}, {d});
  auto v = checkOrderFree(g);
  EXPECT_EQ(v[b], "[3 * did(x) * 5]");
  EXPECT_EQ(v[d], "[3, did(x), 5]");
}

TEST(Propagation, headsGoBackThroughReshapeIntoTheWeight) {
  Graph g("<tp = 3>");
  int x = g.tensor("x", {2, 32});
  int w = g.tensor("w", {32, 32}, "", true);
  int p = g.tensor("p", {2, 32}), heads = g.tensor("heads", {2, 16, 2});
  int r = g.tensor("r", {2, 16, 2}, "[_, did(tp) * _, _]");
  g.op("mk,nk->mn", {x, w}, {p});
  g.reshape(p, heads);
  g.op("mhd->mhd", {heads}, {r});
  auto v = checkOrderFree(g);
  EXPECT_EQ(v[heads], "[2, did(tp) * 6, 2]");
  EXPECT_EQ(v[w], "[did(tp) * 12, 32]");
}

} // namespace
