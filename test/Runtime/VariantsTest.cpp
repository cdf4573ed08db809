//===- VariantsTest.cpp - which variant of an op runs ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Variants of these modules compute different values, so that a result says
// which of them ran.
//
//===----------------------------------------------------------------------===//

#include "MLP.h"
#include "Ranks.h"

#include "tessera/Variants.h"

using namespace tessera;
using namespace tessera::test;
using fb::CollectiveKind;
using fb::Storage;

namespace {

/// y = 2 * (two steps of x) + 3, where `flash` takes x to 2 * x + 1 and `math`
/// to 2 * (2 * x + 5) + 7, through a large temporary, a constant and a move.
struct Choice {
  PlanBuilder b{"<tp = 2>"};
  static constexpr int64_t kLarge = 4096;

  explicit Choice(const char *whyNotFlash = "") {
    int x = b.input("x", {8, 4}, "[did(tp) * _, _]");
    int c = b.tensor("c", {kLarge}, "[_]", Storage::Constant);
    int l = b.tensor("l", {kLarge}, "[_]");
    int t = b.tensor("t", {8, 4}, "[did(tp) * _, _]", Storage::Symmetric);
    int u = b.tensor("u", {8, 4}, "[_, _]", Storage::Symmetric);
    int s = b.alias("s", u, fb::AliasKind::Shard, {8, 4}, "[did(tp) * _, _]");
    int r = b.tensor("r", {8, 4}, "[did(tp) * _, _]");
    int y = b.output("y", {8, 4}, "[did(tp) * _, _]");
    int of = b.alternative("attention", {{"flash", whyNotFlash}, {"math", ""}});
    if (!*whyNotFlash) {
      b.launch("twice_plus", {x, r}, {valueScalar(1)});
      b.inVariant(of, 0);
    }
    b.copy(c, l);
    b.inVariant(of, 1);
    b.launch("twice_plus", {x, t}, {valueScalar(5)});
    b.inVariant(of, 1);
    b.collective(CollectiveKind::AllGather, t, u, {"tp"});
    b.inVariant(of, 1);
    b.launch("twice_plus", {s, r}, {valueScalar(7)});
    b.inVariant(of, 1);
    b.launch("twice_plus", {r, y}, {valueScalar(3)});
  }
  std::string module() const {
    return b.module(kernels(), std::string(kLarge * 4, '\0'));
  }

  static double input(const std::string &, const layout::Shape &i, int) {
    return small(i);
  }
  static double flash(const std::string &, const layout::Shape &i, int) {
    return 2 * (2 * small(i) + 1) + 3;
  }
  static double math(const std::string &, const layout::Shape &i, int) {
    return 2 * (2 * (2 * small(i) + 5) + 7) + 3;
  }
};

/// Calls `inspect` on each rank with a binding made under `names`; null:
/// without a word.
void run(const std::string &module, const char *names, const Value &expected,
         std::function<void(tessera_binding *)> inspect = nullptr) {
  RunOptions options;
  options.runs = 2;
  options.begin = [&](int) {
    if (names)
      EXPECT_OK(tessera_variants_push("attention", names));
  };
  options.inspect = [&](tessera_binding *binding, int) {
    if (inspect)
      inspect(binding);
  };
  runModule(module, 2, Choice::input, expected, options);
}

TEST(Variants, TheFirstThatIsAllowedAndThereRuns) {
  std::string both = Choice().module();
  std::string mathOnly = Choice("it does not fit").module();
  run(both, nullptr, Choice::flash);
  run(both, "flash", Choice::flash);
  run(both, "math", Choice::math);
  run(both, "flash,math", Choice::flash);
  run(both, "math,flash", Choice::math);
  run(mathOnly, nullptr, Choice::math);
  run(mathOnly, "flash,math", Choice::math);
}

TEST(Variants, KindsAreChosenApart) {
  PlanBuilder b("<tp = 1>");
  int x = b.input("x", {8, 4}, "[_, _]");
  int r = b.tensor("r", {8, 4}, "[_, _]");
  int h = b.output("h", {8, 4}, "[_, _]");
  int g = b.output("g", {8, 4}, "[_, _]");
  int attention = b.alternative("attention", {{"flash", ""}, {"math", ""}});
  int matmul = b.alternative("matmul", {{"cublaslt", ""}, {"own", ""}});
  auto add = [&](int from, int to, int64_t addend, int of, int variant) {
    b.launch("twice_plus", {from, to}, {valueScalar(addend)});
    b.inVariant(of, variant);
  };
  add(x, r, 1, attention, 0);
  add(x, r, 5, attention, 1);
  add(r, h, 3, matmul, 0);
  add(h, g, 11, matmul, 0); // a variant reads what it has written
  add(r, h, 7, matmul, 1);
  add(r, g, 9, matmul, 1);
  std::string module = b.module(kernels());

  const char *attentions[] = {nullptr, "flash", "math,flash"};
  const char *matmuls[] = {nullptr, "cublaslt,own", "own,cublaslt", "own"};
  for (const char *first : attentions)
    for (const char *second : matmuls) {
      RunOptions options;
      options.begin = [&](int) {
        if (first)
          EXPECT_OK(tessera_variants_push("attention", first));
        if (second)
          EXPECT_OK(tessera_variants_push("matmul", second));
      };
      bool isMath = first && *first == 'm', isOwn = second && *second == 'o';
      options.inspect = [&](tessera_binding *binding, int) {
        EXPECT_STREQ(alternativeOf(binding, 0).chosen,
                     isMath ? "math" : "flash");
        EXPECT_STREQ(alternativeOf(binding, 1).kind, "matmul");
        EXPECT_STREQ(alternativeOf(binding, 1).chosen,
                     isOwn ? "own" : "cublaslt");
        EXPECT_EQ(tessera_binding_step_count(binding), 3u);
      };
      auto expected = [&](const std::string &name, const layout::Shape &i,
                          int) {
        double r = 2 * small(i) + (isMath ? 5 : 1);
        if (isOwn)
          return 2 * r + (name == "h" ? 7 : 9);
        return name == "h" ? 2 * r + 3 : 2 * (2 * r + 3) + 11;
      };
      runModule(module, 1, Choice::input, expected, options);
    }
}

TEST(Variants, AScopeMayHoldModulesWithoutTheOp) {
  RunOptions options;
  options.begin = [](int) {
    EXPECT_OK(tessera_variants_push("matmul", "own"));
  };
  runModule(Choice().module(), 2, Choice::input, Choice::flash, options);
}

TEST(Variants, StepsOfOthersAreNotThere) {
  std::string module = Choice().module();
  run(module, "flash", Choice::flash, [](tessera_binding *binding) {
    EXPECT_EQ(tessera_binding_step_count(binding), 2u);
    EXPECT_EQ(tessera_binding_collective_count(binding), 0u);
    auto step = sized<tessera_step>();
    ASSERT_OK(tessera_binding_step(binding, 1, &step));
    EXPECT_STREQ(step.location, "test.mlir:6:1");
    EXPECT_EQ(step.collective, -1);
  });
  run(module, "math", Choice::math, [](tessera_binding *binding) {
    EXPECT_EQ(tessera_binding_step_count(binding), 5u);
    ASSERT_EQ(tessera_binding_collective_count(binding), 1u);
    auto collective = sized<tessera_collective>();
    ASSERT_OK(tessera_binding_collective(binding, 0, &collective));
    EXPECT_STREQ(collective.location, "test.mlir:4:1");
    EXPECT_EQ(collective.bytes_received, 64u);
    auto step = sized<tessera_step>();
    ASSERT_OK(tessera_binding_step(binding, 2, &step));
    EXPECT_EQ(step.collective, 0);
    EXPECT_STREQ(step.location, "test.mlir:4:1");
    ASSERT_OK(tessera_binding_step(binding, 4, &step));
    EXPECT_STREQ(step.location, "test.mlir:6:1");
  });
}

TEST(Variants, MemoryIsThatOfWhatIsChosen) {
  withModule(Choice().module(), 2, [](tessera_module *module, int) {
    auto memoryOf = [&](const char *names) {
      AttentionBackends scope({names});
      auto memory = sized<tessera_memory>();
      EXPECT_OK(tessera_module_memory(module, nullptr, 0, &memory));
      double x[64], y[64];
      void *pointers[] = {x, y};
      tessera_binding *binding;
      EXPECT_OK(
          tessera_binding_create(module, nullptr, 0, pointers, 2, &binding));
      auto bound = sized<tessera_memory>();
      EXPECT_OK(tessera_binding_memory(binding, &bound));
      EXPECT_EQ(memory.local, bound.local);
      EXPECT_EQ(memory.symmetric, bound.symmetric);
      tessera_binding_destroy(binding);
      return memory;
    };
    tessera_memory flash = memoryOf("flash"), math = memoryOf("math");
    EXPECT_EQ(flash.local, 4u * 4 * 4); // r alone
    EXPECT_EQ(flash.symmetric, 0u);
    EXPECT_GE(math.local, 4u * Choice::kLarge);
    EXPECT_EQ(math.symmetric, 64u + 128u);
  });
}

TEST(Variants, AQueryNamesTheChosen) {
  auto check = [](const char *names, const Value &expected, const char *chosen,
                  const char *why, const char *variants) {
    run(Choice(why).module(), names, expected, [&](tessera_binding *binding) {
      ASSERT_EQ(tessera_binding_alternative_count(binding), 1u);
      tessera_alternative alternative = alternativeOf(binding, 0);
      EXPECT_STREQ(alternative.kind, "attention");
      EXPECT_STREQ(alternative.op, "tv.attention");
      EXPECT_STREQ(alternative.location, "choice.mlir:1:1");
      EXPECT_STREQ(alternative.chosen, chosen);
      EXPECT_STREQ(alternative.variants, variants);
      EXPECT_ERROR(take(tessera_binding_alternative(binding, 1, &alternative)),
                   "there is no alternative 1");
    });
  };
  check(nullptr, Choice::flash, "flash", "", "flash, math");
  check("math", Choice::math, "math", "", "flash, math");
  check("flash,math", Choice::math, "math", "it does not fit", "math");
}

/// The variant that this thread binds.
std::string chosenBy(tessera_module *module) {
  double x[64], y[64];
  void *pointers[] = {x, y};
  tessera_binding *binding;
  EXPECT_OK(tessera_binding_create(module, nullptr, 0, pointers, 2, &binding));
  std::string name = alternativeOf(binding, 0).chosen;
  tessera_binding_destroy(binding);
  return name;
}

TEST(Variants, TheInnermostEntryCounts) {
  withModule(Choice().module(), 2, [](tessera_module *module, int) {
    EXPECT_EQ(chosenBy(module), "flash");
    AttentionBackends outer({"math"});
    EXPECT_EQ(chosenBy(module), "math");
    {
      AttentionBackends inner({"flash"});
      EXPECT_EQ(chosenBy(module), "flash");
      // Another thread has its own.
      std::string other = "?";
      std::thread([&] {
        EXPECT_ERROR(take(tessera_variants_pop()), "has no variants to pop");
        other = "";
      }).join();
      EXPECT_EQ(other, "");
    }
    EXPECT_EQ(chosenBy(module), "math");
  });
}

TEST(Variants, AnExceptionEndsAScope) {
  withModule(Choice().module(), 2, [](tessera_module *module, int) {
    try {
      Variants scope("attention", {"math"});
      EXPECT_EQ(chosenBy(module), "math");
      throw 1;
    } catch (int) {
    }
    EXPECT_EQ(chosenBy(module), "flash");
  });
  auto message = [](const char *kind, const char *name) -> std::string {
    try {
      Variants scope(kind, {"math", name});
    } catch (const std::invalid_argument &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("attention", "fast"),
            "'fast' is no variant of attention; there are 'flash', 'cudnn' and "
            "'math'");
  EXPECT_ERROR(take(tessera_variants_pop()), "has no variants to pop");
}

TEST(Variants, TheProcessHasADefault) {
  std::string module = Choice().module();
  EXPECT_OK(tessera_variants_default("attention", "math"));
  run(module, nullptr, Choice::math); // ranks are threads that say nothing
  run(module, "flash", Choice::flash);
  withModule(module, 2, [](tessera_module *module, int rank) {
    tessera_binding *bound;
    double x[64], y[64];
    void *pointers[] = {x, y};
    ASSERT_OK(tessera_binding_create(module, nullptr, 0, pointers, 2, &bound));
    EXPECT_EQ(chosenBy(module), "math");
    if (rank == 0) // both have bound by then
      EXPECT_OK(tessera_variants_default("attention", nullptr));
    EXPECT_STREQ(alternativeOf(bound, 0).chosen, "math"); // it keeps its own
    tessera_binding_destroy(bound);
  });
  run(module, nullptr, Choice::flash);
  EXPECT_ERROR(take(tessera_variants_default("attention", "fast")), "'fast'");
  EXPECT_ERROR(take(tessera_variants_default("softmax", nullptr)), "'softmax'");
  EXPECT_ERROR(take(tessera_variants_default(nullptr, "math")), "null");
  run(module, nullptr, Choice::flash);
}

/// A choice between variants of an attention or its gradient.
std::string moduleOf(const char *op, const char *problem,
                     const char *whyNotFlash = "") {
  Choice choice(whyNotFlash);
  choice.b.plan.alternatives[0]->op = op;
  choice.b.plan.alternatives[0]->problem = problem;
  return choice.module();
}
constexpr const char *kGrad = "tv.attention_grad";

/// What binding `module` under `names` chose.
std::string choiceOf(const std::string &module, const char *names,
                     const char *kind = "attention") {
  std::string choice;
  withModule(module, 2, [&](tessera_module *module, int rank) {
    AttentionBackends scope({names});
    double x[64], y[64];
    void *pointers[] = {x, y};
    tessera_binding *binding;
    ASSERT_OK(
        tessera_binding_create(module, nullptr, 0, pointers, 2, &binding));
    if (rank == 0)
      choice = tessera_binding_choice(binding, kind);
    tessera_binding_destroy(binding);
  });
  return choice;
}

TEST(Variants, AGradientFollowsWhatABindingChose) {
  const std::string forward = moduleOf("tv.attention", "[2, 8] bf16");
  const std::string backward = moduleOf(kGrad, "[2, 8] bf16");
  for (const char *name : {"flash", "math"}) {
    const std::string choice = choiceOf(forward, name);
    // Other threads, and another default.
    EXPECT_OK(
        tessera_variants_default("attention", *name == 'm' ? "flash" : "math"));
    withModule(backward, 2, [&](tessera_module *module, int) {
      EXPECT_NE(chosenBy(module), name);
      Variants scope(choice);
      EXPECT_EQ(chosenBy(module), name);
      auto memory = sized<tessera_memory>();
      EXPECT_OK(tessera_module_memory(module, nullptr, 0, &memory));
      {
        AttentionBackends inner({*name == 'm' ? "flash" : "math"});
        EXPECT_NE(chosenBy(module), name);
      }
      // Other kinds are not its matter.
      Variants products("matmul", {"own"});
      EXPECT_EQ(chosenBy(module), name);
    });
    EXPECT_OK(tessera_variants_default("attention", nullptr));
    EXPECT_ERROR(take(tessera_variants_pop()), "has no variants to pop");
  }
}

TEST(Variants, AChoiceIsOfProblemsAndOfNoModule) {
  // Layers are alike; one took another variant.
  auto plan = [](std::vector<std::pair<const char *, const char *>> layers) {
    PlanBuilder b("<tp = 2>");
    int x = b.input("x", {8, 4}, "[did(tp) * _, _]");
    int y = b.output("y", {8, 4}, "[did(tp) * _, _]");
    for (auto [problem, whyNotFlash] : layers) {
      int of =
          b.alternative("attention", {{"flash", whyNotFlash}, {"math", ""}});
      b.plan.alternatives[of]->problem = problem;
    }
    b.launch("twice_plus", {x, y}, {valueScalar(1)});
    return b.module(kernels());
  };
  std::string choice = choiceOf(
      plan({{"a", ""}, {"a", ""}, {"b", "it does not fit"}}), "flash,math");
  EXPECT_EQ(std::ranges::count(choice, '\n'), 2);
  withModule(plan({{"b", ""}, {"a", ""}, {"b", ""}}), 2,
             [&](tessera_module *module, int) {
               Variants scope(choice);
               double x[64], y[64];
               void *pointers[] = {x, y};
               tessera_binding *binding;
               ASSERT_OK(tessera_binding_create(module, nullptr, 0, pointers, 2,
                                                &binding));
               EXPECT_STREQ(alternativeOf(binding, 0).chosen, "math");
               EXPECT_STREQ(alternativeOf(binding, 1).chosen, "flash");
               EXPECT_STREQ(alternativeOf(binding, 2).chosen, "math");
               tessera_binding_destroy(binding);
             });
  // A module without such ops is bound as ever.
  withModule(plan({}), 2, [&](tessera_module *module, int) {
    Variants scope(choice);
    double x[64], y[64];
    void *pointers[] = {x, y};
    tessera_binding *binding;
    ASSERT_OK(
        tessera_binding_create(module, nullptr, 0, pointers, 2, &binding));
    EXPECT_STREQ(tessera_binding_choice(binding, "attention"), "");
    EXPECT_STREQ(tessera_binding_choice(binding, nullptr), "");
    tessera_binding_destroy(binding);
  });
  EXPECT_STREQ(tessera_binding_choice(nullptr, "attention"), "");
  EXPECT_EQ(choiceOf(Choice().module(), "math"), ""); // of no problem
  EXPECT_EQ(choiceOf(moduleOf(kGrad, "a"), "math", "matmul"), "");
}

TEST(Variants, AChoiceThatDoesNotFitIsAnErrorAtTheOp) {
  const std::string choice =
      choiceOf(moduleOf("tv.attention", "[2, 8] bf16"), "flash");
  auto errorOf = [&](const std::string &module) {
    std::string error;
    withModule(module, 2, [&](tessera_module *module, int rank) {
      Variants scope(choice);
      double x[64], y[64];
      void *pointers[] = {x, y};
      tessera_binding *binding;
      tessera_status *status =
          tessera_binding_create(module, nullptr, 0, pointers, 2, &binding);
      ASSERT_NE(status, nullptr);
      EXPECT_EQ(tessera_status_code(status), TESSERA_INVALID_ARGUMENT);
      EXPECT_STREQ(tessera_status_op(status), kGrad);
      EXPECT_STREQ(tessera_status_location(status), "choice.mlir:1:1");
      const std::string message = take(status);
      if (rank == 0)
        error = message;
      auto memory = sized<tessera_memory>();
      EXPECT_EQ(take(tessera_module_memory(module, nullptr, 0, &memory)),
                message);
    });
    return error;
  };
  EXPECT_EQ(errorOf(moduleOf(kGrad, "[2, 9] bf16")),
            "the choice is of attention of [2, 8] bf16 (tv.attention at "
            "choice.mlir:1:1), not of [2, 9] bf16: it must be of a binding of "
            "the same");
  EXPECT_EQ(errorOf(moduleOf(kGrad, "[2, 8] bf16", "it does not fit")),
            "no variant of attention that is allowed is there: flash: it does "
            "not fit; there is math, and tv.attention at choice.mlir:1:1 chose "
            "'flash'");
}

TEST(Variants, WhatIsNoChoiceIsAnError) {
  const std::string choice =
      choiceOf(moduleOf("tv.attention", "[2, 8] bf16"), "flash");
  const std::string flash = "flash\t[2, 8] bf16\ttv.attention at f:1:1";
  EXPECT_OK(tessera_variants_push_choice(("attention\n" + flash).c_str()));
  EXPECT_OK(tessera_variants_pop());
  for (const std::string &text : std::vector<std::string>{
           "", "attention", "attention\n", "matmul\n" + flash,
           "softmax\n" + flash, "attention\nflash", "attention\nflash\t\tx",
           "attention\nflash\ta", "attention\n\n" + flash, "flash" + choice,
           choice.substr(0, choice.rfind('\t'))})
    EXPECT_EQ(take(tessera_variants_push_choice(text.c_str())),
              "this is no choice that tessera_binding_choice gave, of a "
              "binding with ops of the kind")
        << text;
  EXPECT_THROW(Variants{std::string("flash")}, std::invalid_argument);
  EXPECT_ERROR(take(tessera_variants_push_choice(nullptr)), "null");
  EXPECT_ERROR(take(tessera_variants_pop()), "has no variants to pop");
}

TEST(Variants, AForcedVariantThatIsMissingIsAnErrorWithItsReason) {
  withModule(
      Choice("it does not fit").module(), 2, [](tessera_module *module, int) {
        AttentionBackends scope({"flash"});
        double x[64], y[64];
        void *pointers[] = {x, y};
        tessera_binding *binding;
        tessera_status *status =
            tessera_binding_create(module, nullptr, 0, pointers, 2, &binding);
        ASSERT_NE(status, nullptr);
        EXPECT_STREQ(tessera_status_op(status), "tv.attention");
        EXPECT_STREQ(tessera_status_location(status), "choice.mlir:1:1");
        const char *message =
            "no variant of attention that is allowed is there: flash: "
            "it does not fit; there is math";
        EXPECT_EQ(take(status), message);
        auto memory = sized<tessera_memory>();
        EXPECT_EQ(take(tessera_module_memory(module, nullptr, 0, &memory)),
                  message);
      });
}

/// y = 2 * x + 1 by `flash`, through a copy that has room for 8 rows over two
/// ranks, no more and no less; 2 * x + 5 by `math`.
std::string moduleOfSizes() {
  PlanBuilder b("<tp = 2>");
  const Size rows = Size::symbol(b.symbol("n", 8));
  const std::string view = "[did(tp) * _, _]";
  int x = b.input("x", {rows, 4}, view);
  int eight = b.tensor("eight", {8, 4}, view);
  int y = b.output("y", {rows, 4}, view);
  int of = b.alternative("attention", {{"flash", ""}, {"math", ""}});
  b.copy(x, eight);
  b.inVariant(of, 0);
  b.launch("twice_plus", {eight, y}, {valueScalar(1)});
  b.inVariant(of, 0);
  b.launch("twice_plus", {x, y}, {valueScalar(5)});
  b.inVariant(of, 1);
  return b.module(kernels());
}

TEST(Variants, WhatCannotTakeTheSizesOnAnyRankDoesNotRun) {
  const std::string module = moduleOfSizes();
  for (const char *names : {"", "flash,math", "math"})
    for (int64_t rows : {8, 7, 6}) { // rank 0 has 4, 4 and 3 of them
      const bool isFlash = rows == 8 && std::string(names) != "math";
      RunOptions options;
      options.symbols = {rows};
      options.begin = [&](int) {
        if (*names)
          EXPECT_OK(tessera_variants_push("attention", names));
      };
      options.inspect = [&](tessera_binding *binding, int) {
        EXPECT_STREQ(alternativeOf(binding, 0).chosen,
                     isFlash ? "flash" : "math");
      };
      runModule(
          module, 2, Choice::input,
          [&](const std::string &, const layout::Shape &i, int) {
            return 2 * small(i) + (isFlash ? 1 : 5);
          },
          options);
    }
  withModule(module, 2, [](tessera_module *module, int rank) {
    AttentionBackends scope({"flash"});
    double x[64], y[64];
    auto error = [](const char *why) {
      return "no variant of attention that is allowed is there: flash: " +
             std::string(why) + "; there is math";
    };
    const char *here =
        "source and target of a copy have different local shapes";
    EXPECT_EQ(bindError(module, {7}, {x, y}),
              error(rank == 0 ? "it cannot run on rank 1" : here));
    EXPECT_EQ(bindError(module, {6}, {x, y}), error(here));
    // Each rank's own memory.
    auto memory = sized<tessera_memory>();
    const int64_t rows = 7;
    EXPECT_EQ(take(tessera_module_memory(module, &rows, 1, &memory)),
              rank == 0 ? "" : error(here));
  });
}

TEST(Variants, RanksThatDifferAreAnErrorOnAll) {
  withModule(Choice().module(), 2, [](tessera_module *module, int rank) {
    AttentionBackends scope({rank == 0 ? "flash" : "math"});
    double x[64], y[64];
    EXPECT_ERROR(bindError(module, {}, {x, y}), "variants of ops they bind");
  });
  // One that cannot choose at all.
  withModule(Choice("it does not fit").module(), 2,
             [](tessera_module *module, int rank) {
               AttentionBackends scope({rank == 0 ? "flash" : "math"});
               double x[64], y[64];
               EXPECT_ERROR(bindError(module, {}, {x, y},
                                      rank == 0 ? TESSERA_INVALID_ARGUMENT
                                                : TESSERA_PEER),
                            rank == 0 ? "it does not fit" : "");
             });
}

TEST(Variants, WrongNamesAreErrors) {
  auto push = [](const char *kind, const char *names) {
    tessera_status *status = tessera_variants_push(kind, names);
    EXPECT_EQ(tessera_status_code(status), TESSERA_INVALID_ARGUMENT);
    return take(status);
  };
  EXPECT_EQ(push("softmax", "own"),
            "no kind of op 'softmax' has variants; those that have: "
            "'attention' and 'matmul'");
  EXPECT_EQ(push("matmul", "own,flash"),
            "'flash' is no variant of matmul; there are 'cublaslt' and 'own'");
  EXPECT_EQ(push("attention", "flash,fast"),
            "'fast' is no variant of attention; there are 'flash', 'cudnn' and "
            "'math'");
  EXPECT_EQ(push("attention", ""), "no variant of attention is named; there "
                                   "are 'flash', 'cudnn' and 'math'");
  EXPECT_ERROR(push("attention", "flash,,math"), "'' is no variant");
  EXPECT_ERROR(push("attention", "flash,"), "'' is no variant");
  EXPECT_EQ(push("attention", "math,flash,math"), "'math' is named twice");
  EXPECT_ERROR(push(nullptr, "flash"), "null");
  EXPECT_ERROR(push("attention", nullptr), "null");
  // None of them left anything behind.
  EXPECT_ERROR(take(tessera_variants_pop()), "has no variants to pop");
}

} // namespace
