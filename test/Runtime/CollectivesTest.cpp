//===- CollectivesTest.cpp - moves over the threads transport -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Modules of one collective on meshes of 1, 2, 3, 4 and 6 ranks: every element
// of the result is compared, and the bytes and copies where the test is about
// them.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"

#include <mutex>
#include <random>

using namespace tessera;
using namespace tessera::test;
using fb::CollectiveKind;

namespace {

double numberOf(const layout::Shape &index) {
  double number = 1;
  for (int64_t i : index)
    number = number * 13 + i;
  return number;
}

struct Case {
  CollectiveKind kind;
  const char *mesh;
  std::vector<Size> shape;
  const char *from, *to;
  std::vector<std::string> axes = {};
  fb::Combiner combiner = fb::Combiner::Sum;
  fb::DType dtype = fb::DType::F32;
};

/// What rank `rank` holds of `value` by the partial states of `view`: multiples
/// that differ along their axes, and only there.
double addendOf(double value, const layout::View &view,
                const layout::Mesh &mesh, int rank) {
  int64_t factor = 0;
  for (const layout::Partial &partial : view.partial)
    for (const layout::SubAxis &sub : partial.axes)
      factor = factor * sub.size + sub.digit(mesh, mesh.coordsOfRank(rank));
  return value * (factor + 1);
}

/// All addends together.
double combined(double value, const layout::View &view,
                const layout::Mesh &mesh, fb::Combiner combiner) {
  int64_t factors = 1;
  for (const layout::Partial &partial : view.partial)
    for (const layout::SubAxis &sub : partial.axes)
      factors *= sub.size;
  return combiner == fb::Combiner::Sum   ? value * factors * (factors + 1) / 2
         : combiner == fb::Combiner::Max ? value * factors
                                         : value;
}

/// Runs the move on all ranks; what is partial before and whole after is
/// combined, what stays partial stays the rank's own addend.
std::vector<tessera_collective> check(const Case &c) {
  PlanBuilder b(c.mesh);
  int x = b.input("x", c.shape, c.from, c.dtype);
  int y = b.output("y", c.shape, c.to, c.dtype);
  b.collective(c.kind, x, y, c.axes, c.combiner);
  layout::Mesh mesh = *layout::parseMesh(c.mesh);
  layout::View from = *layout::parseView(b.plan.tensors[x]->view, mesh);
  layout::View to = *layout::parseView(b.plan.tensors[y]->view, mesh);
  const bool reduces = !from.partial.empty() && to.partial.empty();
  std::vector<tessera_collective> figures(mesh.numDevices());
  RunOptions options;
  options.runs = 3; // later ones with used scratch, or replaying a graph
  options.inspect = [&](tessera_binding *binding, int rank) {
    figures[rank].size = sizeof figures[rank];
    ASSERT_EQ(tessera_binding_collective_count(binding), 1u);
    ASSERT_OK(tessera_binding_collective(binding, 0, &figures[rank]));
    // Its texts end with the module.
    EXPECT_STREQ(figures[rank].location, "test.mlir:1:1");
    EXPECT_STREQ(figures[rank].loser, "exchange, 999 bytes, 12.0 us");
  };
  SCOPED_TRACE(std::string(c.mesh) + " " + c.from + " -> " + c.to);
  runModule(
      b.module(), mesh.numDevices(),
      [&](const std::string &, const layout::Shape &index, int rank) {
        return addendOf(numberOf(index), from, mesh, rank);
      },
      [&](const std::string &, const layout::Shape &index, int rank) {
        if (reduces)
          return combined(numberOf(index), from, mesh, c.combiner);
        return addendOf(numberOf(index), from, mesh, rank);
      },
      options);
  return figures;
}

/// As `check`, of tensors that one step moves.
void checkGroup(const std::vector<Case> &cases) {
  const Case &first = cases[0];
  PlanBuilder b(first.mesh);
  layout::Mesh mesh = *layout::parseMesh(first.mesh);
  std::vector<fb::Pair> pairs;
  std::vector<layout::View> from, to;
  for (const Case &c : cases) {
    std::string n = std::to_string(pairs.size());
    pairs.emplace_back(b.input("x" + n, c.shape, c.from, c.dtype),
                       b.output("y" + n, c.shape, c.to, c.dtype));
    from.push_back(
        *layout::parseView(b.plan.tensors[pairs.back().source()]->view, mesh));
    to.push_back(
        *layout::parseView(b.plan.tensors[pairs.back().target()]->view, mesh));
  }
  b.collective(first.kind, pairs[0].source(), pairs[0].target(), first.axes,
               first.combiner, {pairs.begin() + 1, pairs.end()});
  // What each alone comes to.
  std::vector<uint64_t> sent(mesh.numDevices()), copied(mesh.numDevices());
  for (const Case &c : cases) {
    if (c.kind == CollectiveKind::Slice)
      continue; // nothing
    auto figures = check(c);
    for (int rank = 0; rank < mesh.numDevices(); ++rank) {
      sent[rank] += figures[rank].bytes_sent;
      copied[rank] += figures[rank].copied_bytes;
    }
  }
  RunOptions options;
  options.runs = 3;
  options.inspect = [&](tessera_binding *binding, int rank) {
    auto figures = sized<tessera_collective>();
    ASSERT_EQ(tessera_binding_collective_count(binding), 1u);
    ASSERT_OK(tessera_binding_collective(binding, 0, &figures));
    EXPECT_EQ(figures.tensors, cases.size());
    EXPECT_EQ(figures.bytes_sent, sent[rank]);
    EXPECT_EQ(figures.copied_bytes, copied[rank]);
  };
  SCOPED_TRACE(std::string(first.mesh) + " " + first.from + " -> " + first.to);
  auto numberOfPort = [](const std::string &port) {
    return std::stoi(port.substr(1));
  };
  auto value = [&](int number, const layout::Shape &index) {
    return numberOf(index) + number;
  };
  runModule(
      b.module(), mesh.numDevices(),
      [&](const std::string &port, const layout::Shape &index, int rank) {
        int n = numberOfPort(port);
        return addendOf(value(n, index), from[n], mesh, rank);
      },
      [&](const std::string &port, const layout::Shape &index, int rank) {
        int n = numberOfPort(port);
        if (!from[n].partial.empty())
          return combined(value(n, index), from[n], mesh, first.combiner);
        // Whole values that become partial are the first's.
        return to[n].partial.empty() || rank == 0 ? value(n, index) : 0;
      },
      options);
}

const char *const kMeshes[] = {"<tp = 1>", "<tp = 2>", "<tp = 3>", "<tp = 4>",
                               "<tp = 6>"};

TEST(Collectives, AllGatherOfTheOuterDimension) {
  for (const char *mesh : kMeshes)
    check({CollectiveKind::AllGather,
           mesh,
           {7, 5},
           "[did(tp) * _, _]",
           "[_, _]",
           {"tp"}});
  // In place on both sides.
  auto figures = check({CollectiveKind::AllGather,
                        "<tp = 4>",
                        {8, 5},
                        "[did(tp) * _, _]",
                        "[_, _]",
                        {"tp"}});
  EXPECT_EQ(figures[0].copies, 0u);
  EXPECT_EQ(figures[0].bytes_received, 3u * 2 * 5 * 4);
  EXPECT_EQ(figures[0].bytes_sent, 3u * 2 * 5 * 4);
}

/// Of other sizes and element types, with copies and without; some native on a
/// device and some not.
TEST(Collectives, TensorsOfOneStep) {
  const char *sum = "[_, _], partial = [tp : sum]";
  for (const char *mesh : kMeshes) {
    checkGroup(
        {{CollectiveKind::AllReduce, mesh, {7, 5}, sum, "[_, _]", {"tp"}},
         {CollectiveKind::AllReduce,
          mesh,
          {64, 3},
          sum,
          "[_, _]",
          {"tp"},
          fb::Combiner::Sum,
          fb::DType::F64},
         {CollectiveKind::AllReduce, mesh, {1, 1}, sum, "[_, _]", {"tp"}}});
    checkGroup({{CollectiveKind::AllGather,
                 mesh,
                 {5, 12},
                 "[_, did(tp) * _]",
                 "[_, _]",
                 {"tp"}},
                {CollectiveKind::AllGather,
                 mesh,
                 {12, 5},
                 "[did(tp) * _, _]",
                 "[_, _]",
                 {"tp"}}});
    checkGroup({{CollectiveKind::ReduceScatter,
                 mesh,
                 {12, 5},
                 sum,
                 "[did(tp) * _, _]",
                 {"tp"}},
                {CollectiveKind::ReduceScatter,
                 mesh,
                 {5, 7},
                 sum,
                 "[_, did(tp) * _]",
                 {"tp"}}});
    checkGroup({{CollectiveKind::Slice, mesh, {4, 5}, "[_, _]", sum},
                {CollectiveKind::Slice, mesh, {2, 3}, "[_, _]", sum}});
  }
}

TEST(Collectives, AllGatherOfTheInnerDimension) {
  for (const char *mesh : kMeshes)
    check({CollectiveKind::AllGather,
           mesh,
           {5, 7},
           "[_, did(tp) * _]",
           "[_, _]",
           {"tp"}});
  auto figures = check({CollectiveKind::AllGather,
                        "<tp = 4>",
                        {5, 8},
                        "[_, did(tp) * _]",
                        "[_, _]",
                        {"tp"}});
  EXPECT_EQ(figures[0].copies, 1u); // unpacking
  EXPECT_EQ(figures[0].copied_bytes, 3u * 5 * 2 * 4);
}

TEST(Collectives, AllGatherWithTheGatheredDimensionOutermostInMemory) {
  auto figures = check({CollectiveKind::AllGather,
                        "<tp = 4>",
                        {5, 8},
                        "[_, did(tp) * _], alloc = (1, 0)",
                        "[_, _], alloc = (1, 0)",
                        {"tp"}});
  EXPECT_EQ(figures[0].copies, 0u);
}

TEST(Collectives, CyclicAndBlockCyclic) {
  for (const char *mesh : kMeshes) {
    check({CollectiveKind::AllGather,
           mesh,
           {13, 3},
           "[_ * did(tp), _]",
           "[_, _]",
           {"tp"}});
    check({CollectiveKind::Exchange,
           mesh,
           {3, 23},
           "[_, _ * did(tp) * 2]",
           "[_, did(tp) * _]"});
  }
}

TEST(Collectives, AllToAll) {
  for (const char *mesh : kMeshes)
    check({CollectiveKind::AllToAll,
           mesh,
           {7, 11, 2},
           "[did(tp) * _, _, _]",
           "[_, did(tp) * _, _]",
           {"tp"}});
}

TEST(Collectives, ExchangeOnTwoAxes) {
  check({CollectiveKind::Exchange,
         "<dp = 2, tp = 3>",
         {7, 9},
         "[did(dp) * _, did(tp) * _]",
         "[did(tp) * _, did(dp) * _]"});
  check({CollectiveKind::Exchange,
         "<dp = 2, tp = 2, devices = [0, 2, 1, 3]>",
         {7, 9},
         "[did(dp) * did(tp) * _, _]",
         "[did(tp) * did(dp) * _, _]"});
}

TEST(Collectives, Slice) {
  for (const char *mesh : kMeshes) {
    auto figures = check(
        {CollectiveKind::Slice, mesh, {5, 7}, "[_, _]", "[_, did(tp) * _]"});
    EXPECT_EQ(figures[0].bytes_sent + figures[0].bytes_received, 0u);
  }
}

TEST(Collectives, AllReduce) {
  for (const char *mesh : kMeshes)
    for (fb::Combiner combiner :
         {fb::Combiner::Sum, fb::Combiner::Max, fb::Combiner::Min}) {
      const char *names[] = {"sum", "max", "min"};
      std::string from =
          std::string("[_, _], partial = [tp : ") + names[int(combiner)] + "]";
      check({CollectiveKind::AllReduce,
             mesh,
             {5, 7},
             from.c_str(),
             "[_, _]",
             {"tp"},
             combiner});
    }
}

TEST(Collectives, AllReduceOfEachType) {
  for (fb::DType dtype : {fb::DType::F64, fb::DType::F32, fb::DType::I64,
                          fb::DType::I32, fb::DType::U32})
    check({CollectiveKind::AllReduce,
           "<tp = 3>",
           {33, 40},
           "[_, _], partial = [tp : sum]",
           "[_, _]",
           {"tp"},
           fb::Combiner::Sum,
           dtype});
  // Sums that 16 bits hold.
  for (fb::DType dtype : {fb::DType::BF16, fb::DType::F16, fb::DType::I8})
    check({CollectiveKind::AllReduce,
           "<tp = 3>",
           {5},
           "[_], partial = [tp : sum]",
           "[_]",
           {"tp"},
           fb::Combiner::Sum,
           dtype});
}

TEST(Collectives, AllReduceOverOneOfTwoAxes) {
  check({CollectiveKind::AllReduce,
         "<dp = 2, tp = 3>",
         {6, 4},
         "[did(dp) * _, _], partial = [tp : sum]",
         "[did(dp) * _, _]",
         {"tp"}});
  check({CollectiveKind::AllReduce,
         "<dp = 3, tp = 2>",
         {6, 4},
         "[_, did(tp) * _], partial = [dp : sum]",
         "[_, did(tp) * _]",
         {"dp"}});
  check({CollectiveKind::AllReduce,
         "<dp = 3, tp = 2>",
         {6, 4},
         "[_, _], partial = [(dp, tp) : sum]",
         "[_, _]",
         {"dp", "tp"}});
}

TEST(Collectives, AllReduceInAnyOrderOfMemory) {
  auto figures = check({CollectiveKind::AllReduce,
                        "<tp = 3>",
                        {5, 7},
                        "[_, _], alloc = (1, 0), partial = [tp : sum]",
                        "[_, _], alloc = (1, 0)",
                        {"tp"}});
  EXPECT_EQ(figures[0].copies, 0u);
  figures = check({CollectiveKind::AllReduce,
                   "<tp = 3>",
                   {5, 7},
                   "[_, _], alloc = (1, 0), partial = [tp : sum]",
                   "[_, _]",
                   {"tp"}});
  EXPECT_EQ(figures[0].copies, 1u);
}

TEST(Collectives, ReduceScatter) {
  for (const char *mesh : kMeshes) {
    check({CollectiveKind::ReduceScatter,
           mesh,
           {7, 5},
           "[_, _], partial = [tp : sum]",
           "[did(tp) * _, _]",
           {"tp"}});
    check({CollectiveKind::ReduceScatter,
           mesh,
           {5, 7},
           "[_, _], partial = [tp : sum]",
           "[_, did(tp) * _]",
           {"tp"}});
    check({CollectiveKind::ReduceScatter,
           mesh,
           {5, 13},
           "[_, _], partial = [tp : max]",
           "[_, _ * did(tp)]",
           {"tp"},
           fb::Combiner::Max});
  }
  auto figures = check({CollectiveKind::ReduceScatter,
                        "<tp = 4>",
                        {8, 5},
                        "[_, _], partial = [tp : sum]",
                        "[did(tp) * _, _]",
                        {"tp"}});
  EXPECT_EQ(figures[0].copies, 0u);
  EXPECT_EQ(figures[0].bytes_sent, 3u * 2 * 5 * 4);
  figures = check({CollectiveKind::ReduceScatter,
                   "<tp = 4>",
                   {5, 8},
                   "[_, _], partial = [tp : sum]",
                   "[_, did(tp) * _]",
                   {"tp"}});
  EXPECT_EQ(figures[0].copies, 1u); // packing
}

TEST(Collectives, ReduceScatterBesideAnotherSplit) {
  check({CollectiveKind::ReduceScatter,
         "<dp = 2, tp = 3>",
         {7, 8},
         "[did(dp) * _, _], partial = [tp : sum]",
         "[did(dp) * _, did(tp) * _]",
         {"tp"}});
  check({CollectiveKind::ReduceScatter,
         "<dp = 2, tp = 3>",
         {12, 8},
         "[did(dp) * _, _], partial = [tp : sum]",
         "[did(dp) * did(tp) * _, _]",
         {"tp"}});
}

TEST(Collectives, PartialStaysPartialInAnExchange) {
  check({CollectiveKind::AllGather,
         "<dp = 2, tp = 3>",
         {7, 8},
         "[did(dp) * _, _], partial = [tp : sum]",
         "[_, _], partial = [tp : sum]",
         {"dp"}});
}

TEST(Collectives, WholeBecomesPartial) {
  PlanBuilder b("<tp = 3>");
  int x = b.input("x", {4}, "[_]");
  int y = b.output("y", {4}, "[_], partial = [tp : sum]");
  b.collective(CollectiveKind::Slice, x, y);
  runModule(
      b.module(), 3,
      [](const std::string &, const layout::Shape &i, int) {
        return numberOf(i);
      },
      [](const std::string &, const layout::Shape &i, int rank) {
        return rank == 0 ? numberOf(i) : 0;
      });
}

TEST(Collectives, InPlaceThroughAnAlias) {
  // The sum of a buffer into the same buffer.
  PlanBuilder b("<tp = 3>");
  int x = b.input("x", {50}, "[_]");
  int h =
      b.tensor("h", {50}, "[_], partial = [tp : sum]", fb::Storage::Symmetric);
  int s = b.alias("s", h, fb::AliasKind::Same, {50}, "[_]");
  int y = b.output("y", {50}, "[_]");
  b.copy(x, h);
  b.collective(CollectiveKind::AllReduce, h, s, {"tp"});
  b.copy(s, y);
  runModule(
      b.module(), 3,
      [](const std::string &, const layout::Shape &i, int rank) {
        return numberOf(i) * (rank + 1);
      },
      [](const std::string &, const layout::Shape &i, int) {
        return numberOf(i) * 6;
      });
}

TEST(Collectives, ExchangeOntoItsOwnBuffer) {
  PlanBuilder b("<tp = 4>");
  int x = b.input("x", {16, 3}, "[did(tp) * _, _]");
  int h = b.tensor("h", {16, 3}, "[did(tp) * _, _]");
  int s = b.alias("s", h, fb::AliasKind::Same, {16, 3}, "[_ * did(tp), _]");
  int y = b.output("y", {16, 3}, "[_ * did(tp), _]");
  b.copy(x, h);
  b.collective(CollectiveKind::Exchange, h, s);
  b.copy(s, y);
  auto number = [](const std::string &, const layout::Shape &i, int) {
    return numberOf(i);
  };
  runModule(b.module(), 4, number, number);
}

/// Rows that are run of memory or not, from ranks or this one, none, outside.
TEST(Collectives, Fetch) {
  struct Case {
    const char *mesh, *table, *at, *result;
    std::vector<std::string> axes;
    fb::DType type;
    int64_t copies;
  };
  using enum fb::DType;
  const Case cases[] = {
      {"<tp = 1>",
       "[did(tp) * _, _, _]",
       "[_, _]",
       "[_, _, _]",
       {"tp"},
       I32,
       0},
      {"<tp = 3>",
       "[did(tp) * _, _, _]",
       "[_, _]",
       "[_, _, _]",
       {"tp"},
       I32,
       0},
      {"<tp = 3>",
       "[did(tp) * _, _, _]",
       "[did(tp) * _, _]",
       "[did(tp) * _, _, _]",
       {"tp"},
       I64,
       0},
      {"<tp = 4>",
       "[did(tp) * _, _, _]",
       "[_, _ * did(tp)]",
       "[_, _ * did(tp), _]",
       {"tp"},
       I32,
       0},
      {"<tp = 2>",
       "[did(tp) * _, _, _], alloc = (2, 0, 1)",
       "[_, _]",
       "[_, _, _]",
       {"tp"},
       I32,
       1},
      {"<tp = 2>",
       "[did(tp) * _, _, _], alloc = (1, 0, 2)",
       "[did(tp) * _, _], alloc = (1, 0)",
       "[did(tp) * _, _, _], alloc = (2, 1, 0)",
       {"tp"},
       I32,
       1},
      {"<a = 2, b = 2>",
       "[did(b) * did(a) * _, _, _]",
       "[did(a) * _, _]",
       "[did(a) * _, _, _]",
       {"b", "a"},
       I32,
       0},
      {"<a = 2, b = 2>",
       "[did(b) * _, _, did(a) * _]",
       "[did(b) * _, _]",
       "[did(b) * _, _, did(a) * _]",
       {"b"},
       I32,
       0},
      {"<a = 4>",
       "[did(a:(2)2) * _, _, _]",
       "[did(a) * _, _]",
       "[did(a) * _, _, _]",
       {"a:(2)2"},
       I64,
       0},
  };
  const bool isCPU = !std::getenv("TESSERA_TEST_BACKEND");
  for (const Case &c : cases) {
    SCOPED_TRACE(std::string(c.mesh) + " " + c.table + " at " + c.at);
    PlanBuilder b(c.mesh);
    int table = b.input("table", {7, 3, 5}, c.table);
    int rows = b.input("rows", {6, 4}, c.at, c.type);
    int columns = b.input("columns", {6, 4}, c.at, c.type);
    int y = b.output("y", {6, 4, 5}, c.result);
    b.fetch(table, {rows, columns}, y, c.axes);
    auto row = [](const layout::Shape &i) {
      return (i[0] * 5 + i[1] * 3) % 9 - 1;
    };
    auto column = [](const layout::Shape &i) {
      return i[0] == 4 ? 3 : i[1] % 3;
    };
    const int ranks = layout::parseMesh(c.mesh)->numDevices();
    RunOptions options;
    options.runs = 3;
    options.inspect = [&](tessera_binding *binding, int) {
      auto report = sized<tessera_collective>();
      ASSERT_OK(tessera_binding_collective(binding, 0, &report));
      EXPECT_STREQ(report.kind, "fetch");
      if (ranks > 1 && isCPU)
        EXPECT_EQ(report.copies > 0, c.copies > 0);
    };
    runModule(
        b.module(), ranks,
        [&](const std::string &name, const layout::Shape &i, int) -> double {
          return name == "rows"      ? row(i)
                 : name == "columns" ? column(i)
                                     : numberOf(i);
        },
        [&](const std::string &, const layout::Shape &i, int) -> double {
          const int64_t r = row(i), k = column(i);
          return r < 0 || r >= 7 || k >= 3 ? 0 : numberOf({r, k, i[2]});
        },
        options);
  }
}

TEST(Collectives, SumsAreTheSameBitsOnAllRanksAndInRankOrder) {
  const int ranks = 6;
  const int64_t n = 1001;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> addends(ranks, std::vector<float>(n));
  for (auto &addend : addends)
    for (float &value : addend)
      value = normal(random) * std::exp2(int(random() % 40) - 20);
  PlanBuilder b("<tp = 6>");
  int x = b.input("x", {n}, "[_], partial = [tp : sum]");
  int y = b.output("y", {n}, "[_]");
  b.collective(CollectiveKind::AllReduce, x, y, {"tp"});
  RunOptions options;
  options.runs = 3;
  runModule(
      b.module(), ranks,
      [&](const std::string &, const layout::Shape &i, int rank) {
        return addends[rank][i[0]];
      },
      [&](const std::string &, const layout::Shape &i, int) {
        float sum = addends[0][i[0]];
        for (int rank = 1; rank < ranks; ++rank)
          sum += addends[rank][i[0]];
        return sum;
      },
      options);
}

TEST(Collectives, WrongOnesAreErrorsWhenBound) {
  auto errorOf = [](const char *from, const char *to, CollectiveKind kind,
                    std::vector<std::string> axes) {
    PlanBuilder b("<tp = 2>");
    int x = b.input("x", {8, 8}, from);
    int y = b.output("y", {8, 8}, to);
    b.collective(kind, x, y, axes);
    std::string module = b.module(), error;
    std::mutex mutex;
    onRanks(2, [&](tessera_context *context) {
      tessera_module *loaded;
      ASSERT_OK(
          tessera_module_load(context, module.data(), module.size(), &loaded));
      auto memory = sized<tessera_memory>();
      tessera_status *status =
          tessera_module_memory(loaded, nullptr, 0, &memory);
      std::lock_guard lock(mutex);
      if (status)
        EXPECT_STREQ(tessera_status_location(status), "test.mlir:1:1");
      error = take(status);
      tessera_module_destroy(loaded);
    });
    return error;
  };
  EXPECT_NE(errorOf("[_, _]", "[_, _]", CollectiveKind::AllReduce, {"tp"})
                .find("is not partial"),
            std::string::npos);
  EXPECT_NE(errorOf("[_, _], partial = [tp : sum]", "[_, _]",
                    CollectiveKind::Exchange, {})
                .find("without a reduction"),
            std::string::npos);
  EXPECT_NE(errorOf("[did(tp) * _, _]", "[_, _]", CollectiveKind::Slice, {})
                .find("local slice"),
            std::string::npos);
  EXPECT_NE(errorOf("[_, _], partial = [tp : sum]", "[did(tp) * _, _]",
                    CollectiveKind::AllReduce, {"tp"})
                .find("changes only partial states"),
            std::string::npos);
}

} // namespace
