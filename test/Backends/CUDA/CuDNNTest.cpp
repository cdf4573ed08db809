//===- CuDNNTest.cpp - attention by cuDNN ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On the fake driver and the fake cuDNN, which computes what the descriptors
// say, whatever that is.
//
//===----------------------------------------------------------------------===//

#include "../../Runtime/DamagedPlans.h"
#include "FakeCuDNN.h"
#include "OnFake.h"

#include <cmath>

using namespace tessera;
using namespace tessera::test;
using Element = fb::DType;
using layout::Shape;

namespace {

const FakeCuDNN &fake() {
  static const auto &found = openFake<FakeCuDNN>("libcudnn.so.9", "fake_cudnn");
  return found;
}
class CuDNN : public OnFake<fake> {};

/// Exact in bf16.
double number(const std::string &port, const Shape &i, int) {
  int64_t hash = port[0];
  for (int64_t index : i)
    hash = (hash * 31 + index * index + 7) % 1009;
  return double(hash % 33 - 16) / 8;
}

/// An attention, and what it must give by its definition.
struct Attention {
  int64_t batch = 2, heads = 4, groups = 2, queries = 5, keys = 7, depth = 16;
  double scale = 0.25;
  bool causal = true, lse = true;
  Element dtype = Element::BF16;
  /// Views of q and o, of k and v, and of the log-sum-exp.
  std::string q = "[_, _, _, _]", k = q, l = "[_, _, _]";
  const char *mesh = "<tp = 1>";
  int ranks = 1;

  std::string module(void (*more)(PlanBuilder &) = nullptr) const {
    PlanBuilder b(mesh);
    int query = b.input("q", {batch, heads, queries, depth}, q, dtype);
    int key = b.input("k", {batch, groups, keys, depth}, k, dtype);
    int value = b.input("v", {batch, groups, keys, depth}, k, dtype);
    int result = b.output("o", {batch, heads, queries, depth}, q, dtype);
    int of = lse ? b.output("l", {batch, heads, queries}, l) : -1;
    b.attend(query, key, value, result, of, scale, causal);
    if (more)
      more(b);
    return b.module();
  }

  double expected(const std::string &port, const Shape &i, int) const {
    const int64_t group = i[1] / (heads / groups);
    const int64_t seen = causal ? i[2] + keys - queries + 1 : keys;
    std::vector<double> scores(seen);
    double largest = -INFINITY, sum = 0, mean = 0;
    for (int64_t t = 0; t < seen; ++t) {
      for (int64_t d = 0; d < depth; ++d)
        scores[t] += scale * number("q", {i[0], i[1], i[2], d}, 0) *
                     number("k", {i[0], group, t, d}, 0);
      largest = std::max(largest, scores[t]);
    }
    for (int64_t t = 0; t < seen; ++t) {
      const double weight = std::exp(scores[t] - largest);
      sum += weight;
      if (port == "o")
        mean += weight * number("v", {i[0], group, t, i[3]}, 0);
    }
    if (port == "l")
      return sum > 0 ? largest + std::log(sum) : -INFINITY;
    return sum > 0 ? mean / sum : 0;
  }

  void check(RunOptions options = {}) const {
    // The first run, the one that is recorded, and its replay.
    options.runs = 3;
    const double half = dtype == Element::BF16 ? 1 / 256.0 : 1 / 2048.0;
    options.observe = [&](const std::string &port, const Shape &i, double got) {
      const double want = expected(port, i, 0);
      const double allowed =
          port == "l" ? 1e-5 : half * std::max(1.0, std::abs(want));
      EXPECT_TRUE(got == want || std::abs(got - want) <= allowed)
          << port << testing::PrintToString(i) << " is " << got << ", expected "
          << want;
    };
    runModule(module(), ranks, number, nullptr, options);
  }
};

TEST_F(CuDNN, ComputesAttention) {
  for (bool causal : {false, true})
    for (bool lse : {false, true})
      for (Element dtype : {Element::BF16, Element::F16})
        for (int64_t groups : {1, 2, 4})
          for (int64_t keys : {5, 7}) {
            Attention a;
            a.causal = causal, a.lse = lse, a.dtype = dtype;
            a.groups = groups, a.keys = keys;
            SCOPED_TRACE(testing::Message()
                         << causal << lse << int(dtype) << groups << keys);
            a.check();
          }
  Attention more;
  more.causal = false, more.queries = 9;
  more.check();
  Attention one;
  one.queries = 1, one.scale = 1;
  one.check();
  EXPECT_EQ(fake().executions(2), 50 * 2); // the replays are none
  EXPECT_EQ(fake().executions(1), 0);
}

TEST_F(CuDNN, MemoryInOtherOrders) {
  Attention a;
  a.q = "[_, _, _, _], alloc = (2, 0, 1, 3)";
  a.k = "[_, _, _, _], alloc = (1, 2, 0, 3)";
  a.l = "[_, _, _], alloc = (2, 1, 0)";
  a.check();
}

TEST_F(CuDNN, OnSeveralRanks) {
  Attention heads;
  heads.mesh = "<tp = 2>", heads.ranks = 2;
  heads.q = heads.k = "[_, did(tp) * _, _, _]", heads.l = "[_, did(tp) * _, _]";
  heads.check();
  Attention batch;
  batch.mesh = "<tp = 2>", batch.ranks = 2;
  batch.q = batch.k = "[did(tp) * _, _, _, _]", batch.l = "[did(tp) * _, _, _]";
  batch.check();
  Attention both;
  both.mesh = "<dp = 2, tp = 2>", both.ranks = 4;
  both.q = both.k = "[did(dp) * _, did(tp) * _, _, _]";
  both.l = "[did(dp) * _, did(tp) * _, _]";
  both.check();
}

TEST_F(CuDNN, OperandsThatAreParts) {
  // Of [b, s, h, 3 * d]: q, k and v of a head beside each other.
  PlanBuilder b("<tp = 1>");
  const std::string view = "[_, _, _, _]";
  int all = b.input("q", {2, 5, 3, 24}, view, Element::BF16);
  int part[3];
  for (int i = 0; i < 3; ++i) {
    int slice = b.alias("slice", all, fb::AliasKind::Slice, {2, 5, 3, 8}, view,
                        {}, {0, 0, 0, 8 * i});
    part[i] = b.alias("part", slice, fb::AliasKind::Transpose, {2, 3, 5, 8},
                      view, {0, 2, 1, 3});
  }
  int o = b.output("o", {2, 3, 5, 8}, view, Element::BF16);
  b.attend(part[0], part[1], part[2], o, -1, 0.5, true);
  auto expected = [](const std::string &, const Shape &i, int) {
    auto at = [&](int64_t s, int64_t d) {
      return number("q", {i[0], s, i[1], d}, 0);
    };
    double sum = 0, mean = 0;
    for (int64_t t = 0; t <= i[2]; ++t) {
      double score = 0;
      for (int64_t d = 0; d < 8; ++d)
        score += at(i[2], d) * at(t, 8 + d);
      sum += std::exp(score / 2);
      mean += std::exp(score / 2) * at(t, 16 + i[3]);
    }
    return mean / sum;
  };
  RunOptions options;
  options.tolerance = 1 / 128.0;
  runModule(b.module(), 1, number, expected, options);
}

TEST_F(CuDNN, NoKeysAndNoQueries) {
  Attention none;
  none.causal = false, none.keys = 0;
  none.check();
  Attention empty;
  empty.queries = 0;
  empty.check();
  EXPECT_EQ(fake().plans(), 0);
}

TEST_F(CuDNN, AlikeAttentionsShareAPlan) {
  PlanBuilder b("<tp = 1>");
  const std::string view = "[_, _, _, _]";
  int x = b.input("x", {1, 2, 4, 8}, view, Element::F16);
  int y = b.output("y", {1, 2, 4, 8}, view, Element::F16);
  int z = b.output("z", {1, 2, 4, 8}, view, Element::F16);
  int w = b.output("w", {1, 2, 4, 8}, view, Element::F16);
  b.attend(x, x, x, y, -1, 0.5, true);
  b.attend(x, x, x, z, -1, 0.25, true); // another number, the same graph
  b.attend(x, x, x, w, -1, 0.5, false);
  RunOptions options;
  options.observe = [](const std::string &, const Shape &, double) {};
  options.inspect = [](tessera_binding *binding, int) {
    ASSERT_EQ(tessera_binding_step_count(binding), 3u);
    auto step = sized<tessera_step>();
    ASSERT_OK(tessera_binding_step(binding, 0, &step));
    EXPECT_STREQ(step.kind, "attention");
    EXPECT_STREQ(step.text,
                 "cuDNN's attention of 1 x 2 heads, 4 queries on 4 keys of 8 "
                 "f16, causal, engine 2");
    auto memory = sized<tessera_memory>();
    ASSERT_OK(tessera_binding_memory(binding, &memory));
    EXPECT_GE(memory.local, 1000u); // the engine's workspace
  };
  runModule(b.module(), 1, number, nullptr, options);
  EXPECT_EQ(fake().plans(), 2);
}

TEST_F(CuDNN, PlansThatNobodyUsesAreBounded) {
  PlanBuilder b("<tp = 1>");
  const int s = b.symbol("s", 1024);
  const std::string view = "[_, _, _, _]";
  int x = b.input("x", {1, 1, Size::symbol(s), 8}, view, Element::F16);
  int y = b.output("y", {1, 1, Size::symbol(s), 8}, view, Element::F16);
  b.attend(x, x, x, y, -1, 0.5, true);
  withModule(b.module(), 1, [&](tessera_module *module, int) {
    alignas(16) static std::byte memory[2][1 << 14];
    auto bind = [&](int64_t size) {
      void *pointers[] = {memory[0], memory[1]};
      tessera_binding *binding = nullptr;
      EXPECT_OK(
          tessera_binding_create(module, &size, 1, pointers, 2, &binding));
      return binding;
    };
    tessera_binding *first = bind(1);
    const int ofOne = fake().live();
    int most = 0;
    for (int64_t size = 2; size < 300; ++size) {
      tessera_binding_destroy(bind(size));
      most = std::max(most, fake().live());
    }
    EXPECT_LE(most, 65 * ofOne);
    EXPECT_EQ(fake().plans(), 299);
    EXPECT_OK(tessera_binding_run(first));
    tessera_binding_destroy(first);
    // Lately used ones are there.
    tessera_binding_destroy(bind(299));
    EXPECT_EQ(fake().plans(), 299);
  });
}

/// The gradients of an attention, by their definition for any o.
struct Gradients : Attention {
  std::string module() const {
    PlanBuilder b(mesh);
    auto like = [&](const char *name, bool isKey, bool isOutput) {
      const std::vector<Size> sizes = {batch, isKey ? groups : heads,
                                       isKey ? keys : queries, depth};
      const std::string &view = isKey ? k : q;
      return isOutput ? b.output(name, sizes, view, dtype)
                      : b.input(name, sizes, view, dtype);
    };
    int g = like("g", false, false), query = like("q", false, false);
    int key = like("k", true, false), value = like("v", true, false);
    int result = like("o", false, false);
    int of = b.input("l", {batch, heads, queries}, l);
    int ofQuery = like("Q", false, true), ofKey = like("K", true, true);
    b.attendGrad(g, query, key, value, result, of,
                 {ofQuery, ofKey, like("V", true, true)}, scale, causal);
    return b.module();
  }

  /// What the query at `s` adds to dimension `d` of a gradient, with `t`.
  double term(const std::string &port, int64_t b, int64_t h, int64_t s,
              int64_t t, int64_t d) const {
    const int64_t group = h / (heads / groups);
    if (causal && t > s + keys - queries)
      return 0;
    auto at = [&](const char *of, int64_t head, int64_t row, int64_t e) {
      return number(of, {b, head, row, e}, 0);
    };
    double score = 0, mean = 0, dot = 0;
    for (int64_t e = 0; e < depth; ++e) {
      score += scale * at("q", h, s, e) * at("k", group, t, e);
      mean += at("g", h, s, e) * at("o", h, s, e);
      dot += at("g", h, s, e) * at("v", group, t, e);
    }
    const double weight = std::exp(score - expected("l", {b, h, s}, 0));
    if (port == "V")
      return weight * at("g", h, s, d);
    const double ofScore = scale * weight * (dot - mean);
    return ofScore * (port == "Q" ? at("k", group, t, d) : at("q", h, s, d));
  }

  double gradient(const std::string &port, const Shape &i) const {
    double sum = 0;
    if (port == "Q") {
      for (int64_t t = 0; t < keys; ++t)
        sum += term(port, i[0], i[1], i[2], t, i[3]);
      return sum;
    }
    for (int64_t n = 0; n < heads / groups; ++n)
      for (int64_t s = 0; s < queries; ++s)
        sum += term(port, i[0], i[1] * (heads / groups) + n, s, i[2], i[3]);
    return sum;
  }

  void check() const {
    RunOptions options;
    options.runs = 3;
    const double half = dtype == Element::BF16 ? 1 / 256.0 : 1 / 2048.0;
    options.observe = [&](const std::string &port, const Shape &i, double got) {
      const double want = gradient(port, i);
      EXPECT_LE(std::abs(got - want), half * std::max(1.0, std::abs(want)))
          << port << testing::PrintToString(i) << " is " << got << ", expected "
          << want;
    };
    auto input = [&](const std::string &port, const Shape &i, int rank) {
      return port == "l" ? expected(port, i, 0) : number(port, i, rank);
    };
    runModule(module(), ranks, input, nullptr, options);
  }
};

TEST_F(CuDNN, ComputesGradients) {
  for (bool causal : {false, true})
    for (Element dtype : {Element::BF16, Element::F16})
      for (int64_t groups : {1, 2, 4})
        for (int64_t keys : {5, 7}) {
          Gradients g;
          g.causal = causal, g.dtype = dtype, g.groups = groups, g.keys = keys;
          SCOPED_TRACE(testing::Message()
                       << causal << int(dtype) << groups << keys);
          g.check();
        }
  Gradients more;
  more.causal = false, more.queries = 9;
  more.check();
  EXPECT_EQ(fake().executions(2), 25 * 2);
}

TEST_F(CuDNN, GradientsInOtherOrdersAndOnSeveralRanks) {
  Gradients g;
  g.q = "[_, _, _, _], alloc = (2, 0, 1, 3)";
  g.k = "[_, _, _, _], alloc = (1, 2, 0, 3)";
  g.l = "[_, _, _], alloc = (2, 1, 0)";
  g.check();
  Gradients both;
  both.mesh = "<dp = 2, tp = 2>", both.ranks = 4;
  both.q = both.k = "[did(dp) * _, did(tp) * _, _, _]";
  both.l = "[did(dp) * _, did(tp) * _, _]";
  both.check();
}

TEST_F(CuDNN, GradientsThatAreParts) {
  // In one [b, s, h, 3 * d], where nothing else is written.
  Gradients g;
  g.batch = 1, g.heads = g.groups = 2, g.keys = g.queries = 4, g.depth = 8;
  PlanBuilder b("<tp = 1>");
  const std::string view = "[_, _, _, _]";
  const std::vector<Size> sizes = {1, 2, 4, 8};
  std::map<std::string, int> in;
  for (const char *name : {"g", "q", "k", "v", "o"})
    in[name] = b.input(name, sizes, view, g.dtype);
  int lse = b.input("l", {1, 2, 4}, "[_, _, _]");
  int all = b.output("y", {1, 4, 2, 24}, view, g.dtype);
  std::array<int, 3> part;
  for (int i = 0; i < 3; ++i) {
    int slice = b.alias("slice", all, fb::AliasKind::Slice, {1, 4, 2, 8}, view,
                        {}, {0, 0, 0, 8 * i});
    part[i] = b.alias("part", slice, fb::AliasKind::Transpose, {1, 2, 4, 8},
                      view, {0, 2, 1, 3});
  }
  b.attendGrad(in["g"], in["q"], in["k"], in["v"], in["o"], lse, part, g.scale,
               g.causal);
  RunOptions options;
  options.observe = [&](const std::string &, const Shape &i, double got) {
    const char *ports[] = {"Q", "K", "V"};
    const double want =
        g.gradient(ports[i[3] / 8], {i[0], i[2], i[1], i[3] % 8});
    EXPECT_LE(std::abs(got - want), std::max(1.0, std::abs(want)) / 256);
  };
  options.inspect = [](tessera_binding *binding, int) {
    auto step = sized<tessera_step>();
    ASSERT_OK(tessera_binding_step(binding, 0, &step));
    EXPECT_STREQ(step.text, "cuDNN's gradients of attention of 1 x 2 heads, 4 "
                            "queries on 4 keys of 8 bf16, causal, engine 2");
    auto memory = sized<tessera_memory>();
    ASSERT_OK(tessera_binding_memory(binding, &memory));
    EXPECT_GE(memory.local, 1000u + 4 * 2 * 4); // and each query's mean
  };
  auto input = [&](const std::string &port, const Shape &i, int rank) {
    return port == "l" ? g.expected(port, i, 0) : number(port, i, rank);
  };
  runModule(b.module(), 1, input, nullptr, options);
}

TEST_F(CuDNN, GradientsOfNoPairsAreZero) {
  Gradients none;
  none.causal = false, none.keys = 0;
  none.check();
  Gradients empty;
  empty.queries = 0;
  empty.check();
  EXPECT_EQ(fake().plans(), 0);
}

/// What binding `attention` fails with.
template <typename Of>
std::string errorOf(const Of &attention,
                    tessera_code code = TESSERA_INVALID_MODULE,
                    int64_t misplaced = 0) {
  std::string error;
  withModule(attention.module(), 1, [&](tessera_module *module, int) {
    alignas(16) static std::byte memory[9][1 << 14];
    std::vector<void *> pointers;
    for (size_t i = 0; i < tessera_module_port_count(module); ++i)
      pointers.push_back(memory[i] + misplaced);
    tessera_binding *binding;
    tessera_status *status = tessera_binding_create(
        module, nullptr, 0, pointers.data(), pointers.size(), &binding);
    ASSERT_NE(status, nullptr);
    EXPECT_EQ(tessera_status_code(status), code);
    const bool isGrad = std::is_same_v<Of, Gradients>;
    EXPECT_STREQ(tessera_status_op(status),
                 isGrad ? "tv.attention_grad" : "tv.attention");
    EXPECT_STREQ(tessera_status_location(status), "test.mlir:1:1");
    error = take(status);
  });
  return error;
}

TEST_F(CuDNN, TheFirstEngineThatDoesRuns) {
  fake().propose({{5, /*nondeterministic=*/true}, {6, false, /*fails=*/true}},
                 {{6, false, true}, {7}});
  Attention().check();
  EXPECT_EQ(fake().executions(7), 2);
  EXPECT_EQ(fake().executions(5) + fake().executions(6), 0);
}

TEST_F(CuDNN, NoEngineIsAnErrorWithTheExtents) {
  const std::string of = "cuDNN 9.19.0 has no engine for attention of 2 x 4 "
                         "heads, 5 queries on 7 keys of 16 bf16, 2 groups, "
                         "causal";
  fake().propose({}, {});
  EXPECT_EQ(errorOf(Attention()), of);
  fake().propose({{5, true}, {6, false, true}}, {{6, false, true}});
  EXPECT_EQ(errorOf(Attention()),
            of + ": engine 5: it has other bits in every run; engine 6: cuDNN "
                 "cannot finalize a descriptor: CUDNN_STATUS_NOT_SUPPORTED "
                 "(engine 6 does not want to)");
}

TEST_F(CuDNN, ACallThatFails) {
  fake().failSet();
  EXPECT_EQ(errorOf(Attention()),
            "cuDNN cannot set attribute 906: CUDNN_STATUS_BAD_PARAM (as the "
            "test wants)");
}

TEST_F(CuDNN, WhatDoesNotFit) {
  Attention a;
  a.queries = 9;
  EXPECT_EQ(errorOf(a), "causal attention of 9 queries on 7 keys; cuDNN needs "
                        "as many keys as queries, or more");
  a = Attention();
  a.groups = 3;
  EXPECT_ERROR(errorOf(a), "local shapes that do not fit together");
  a = Attention();
  a.depth = 12;
  EXPECT_EQ(errorOf(a), "tensor 'q' must lie in rows of 16-byte pieces for "
                        "cuDNN's attention");
  a = Attention();
  a.k = "[_, _, _, _], alloc = (0, 1, 3, 2)";
  EXPECT_EQ(errorOf(a), "tensor 'k' must lie in rows of 16-byte pieces for "
                        "cuDNN's attention");
  EXPECT_EQ(errorOf(Attention(), TESSERA_INVALID_MODULE, 8),
            "tensor 'q' must lie in rows of 16-byte pieces for cuDNN's "
            "attention");
}

TEST_F(CuDNN, AnotherVariantRunsWhatDoesNotFit) {
  PlanBuilder b("<tp = 1>");
  const Size keys = Size::symbol(b.symbol("t", 64));
  const std::string view = "[_, _, _, _]";
  int q = b.input("q", {1, 2, 5, 8}, view, Element::BF16);
  int k = b.input("k", {1, 2, keys, 8}, view, Element::BF16);
  int o = b.output("o", {1, 2, 5, 8}, view, Element::BF16);
  int of = b.alternative("attention", {{"cudnn", ""}, {"math", ""}});
  b.attend(q, k, k, o, -1, 0.5, true);
  b.inVariant(of, 0);
  b.copy(q, o);
  b.inVariant(of, 1);
  withModule(b.module(), 1, [](tessera_module *module, int) {
    alignas(16) static std::byte memory[3][1 << 14];
    const std::vector<void *> pointers = {memory[0], memory[1], memory[2]};
    auto chosen = [&](int64_t keys, const char *names, int64_t misplaced = 0) {
      EXPECT_OK(tessera_variants_push("attention", names));
      const std::vector<void *> at = {memory[0], memory[1] + misplaced,
                                      memory[2]};
      tessera_binding *binding;
      EXPECT_OK(
          tessera_binding_create(module, &keys, 1, at.data(), 3, &binding));
      EXPECT_OK(tessera_variants_pop());
      const std::string name = alternativeOf(binding, 0).chosen;
      EXPECT_OK(tessera_binding_run(binding));
      tessera_binding_destroy(binding);
      return name;
    };
    EXPECT_EQ(chosen(5, "cudnn"), "cudnn");
    EXPECT_EQ(chosen(5, "cudnn,math"), "cudnn");
    EXPECT_EQ(chosen(4, "cudnn,math"), "math");
    EXPECT_EQ(chosen(5, "cudnn,math", 2), "math");
    fake().propose({}, {});
    EXPECT_EQ(chosen(6, "cudnn,math"), "math");
    EXPECT_EQ(chosen(5, "cudnn,math"), "cudnn"); // its plan is there
    EXPECT_OK(tessera_variants_push("attention", "cudnn"));
    EXPECT_EQ(bindError(module, {4}, pointers),
              "no variant of attention that is allowed is there: cudnn: causal "
              "attention of 5 queries on 4 keys; cuDNN needs as many keys as "
              "queries, or more; there is math");
    EXPECT_OK(tessera_variants_pop());
  });
}

TEST_F(CuDNN, AloneItIsAnErrorWithAllReasons) {
  Attention a;
  a.queries = 9;
  const std::string module = a.module([](PlanBuilder &b) {
    b.alternative("attention", {{"cudnn", ""}, {"math", "it is left out"}});
    b.plan.alternatives[0]->op = b.plan.steps[0]->op;
    b.plan.alternatives[0]->location = b.plan.steps[0]->location;
  });
  withModule(module, 1, [](tessera_module *module, int) {
    alignas(16) static std::byte memory[5][1 << 14];
    EXPECT_EQ(
        bindError(module, {},
                  {memory, memory + 1, memory + 2, memory + 3, memory + 4}),
        "no variant of attention that is allowed is there: cudnn: causal "
        "attention of 9 queries on 7 keys; cuDNN needs as many keys as "
        "queries, or more; math: it is left out; there is none");
  });
}

TEST_F(CuDNN, GradientsThatDoNotFit) {
  Gradients g;
  g.queries = 9;
  EXPECT_EQ(errorOf(g), "causal attention of 9 queries on 7 keys; cuDNN needs "
                        "as many keys as queries, or more");
  g = Gradients();
  g.queries = g.keys = 1;
  EXPECT_EQ(errorOf(g),
            "cuDNN has no gradients of attention of one query on one key");
  g = Gradients();
  g.q = "[_, _, _, _], alloc = (0, 1, 3, 2)";
  EXPECT_ERROR(errorOf(g), "must lie in rows of 16-byte pieces");
  EXPECT_EQ(errorOf(Gradients(), TESSERA_INVALID_MODULE, 8),
            "tensor 'q' must lie in rows of 16-byte pieces for cuDNN's "
            "attention");
  fake().propose({{5, true}}, {});
  EXPECT_EQ(errorOf(Gradients()),
            "cuDNN 9.19.0 has no engine for gradients of attention of 2 x 4 "
            "heads, 5 queries on 7 keys of 16 bf16, 2 groups, causal: engine "
            "5: it has other bits in every run");
}

TEST_F(CuDNN, DamagedPlansNeverCrash) {
  PlanBuilder b("<tp = 1>");
  const std::string view = "[_, _, _, _]";
  const int s = b.symbol("s", 64), t = b.symbol("t", 64);
  const Size queries = Size::symbol(s), keys = Size::symbol(t);
  int q = b.input("q", {1, 4, queries, 16}, view, Element::F16);
  int k = b.input("k", {1, 2, keys, 16}, view, Element::F16);
  int o = b.output("o", {1, 4, queries, 16}, view, Element::F16);
  int l = b.output("l", {1, 4, queries}, "[_, _, _]");
  b.attend(q, k, k, o, l, 0.25, true);
  int dq = b.output("dq", {1, 4, queries, 16}, view, Element::F16);
  int dk = b.output("dk", {1, 2, keys, 16}, view, Element::F16);
  int dv = b.output("dv", {1, 2, keys, 16}, view, Element::F16);
  b.attendGrad(q, q, k, k, o, l, {dq, dk, dv}, 0.25, true);
  b.plan.target = "cuda:sm_90a";
  onRanks(1, [&](tessera_context *context) {
    Survivors survivors =
        loadDamaged(context, b.plan, {{0, 64}, {3, 64}, {64, 64}});
    EXPECT_GT(survivors.loads, survivors.rounds / 20);
    EXPECT_GT(survivors.binds, survivors.rounds / 20);
  });
}

TEST_F(CuDNN, TheDeviceSaysItsVersion) {
  PlanBuilder b("<tp = 1>");
  int x = b.input("x", {1, 2, 4, 8}, "[_, _, _, _]", Element::F16);
  int y = b.output("y", {1, 2, 4, 8}, "[_, _, _, _]", Element::F16);
  b.attend(x, x, x, y, -1, 0.5, true);
  const std::string file = b.module();
  onRanks(1, [&](tessera_context *context) {
    tessera_module *module;
    ASSERT_OK(tessera_module_load(context, file.data(), file.size(), &module));
    alignas(16) std::byte memory[2][256];
    void *pointers[] = {memory[0], memory[1]};
    tessera_binding *binding;
    ASSERT_OK(
        tessera_binding_create(module, nullptr, 0, pointers, 2, &binding));
    auto device = sized<tessera_device>();
    ASSERT_OK(tessera_context_device(context, &device));
    EXPECT_ERROR(device.libraries, "cuDNN 9.19.0");
    tessera_binding_destroy(binding);
    tessera_module_destroy(module);
  });
}

} // namespace
