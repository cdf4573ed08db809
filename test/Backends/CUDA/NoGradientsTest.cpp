//===- NoGradientsTest.cpp - a cuDNN for the attention alone --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Run with a cuDNN that is too old for gradients, and again with a GPU on which
// they may differ from run to run: attentions run, their gradients by others.
//
//===----------------------------------------------------------------------===//

#include "../../Runtime/Ranks.h"

using namespace tessera;
using namespace tessera::test;
using Element = fb::DType;

namespace {

/// An attention and its gradients, which are q where `math` runs.
std::string choices() {
  PlanBuilder b("<tp = 1>");
  b.plan.target = "cuda:sm_80";
  const std::string view = "[_, _, _, _]";
  const std::vector<Size> sizes = {1, 1, 4, 8};
  int q = b.input("q", sizes, view, Element::BF16);
  int l = b.output("l", {1, 1, 4}, "[_, _, _]");
  std::array<int, 4> out;
  for (int i = 0; i < 4; ++i)
    out[i] =
        b.output(std::string(1, "oqkv"[i]) + "'", sizes, view, Element::BF16);
  int first = b.alternative("attention", {{"cudnn", ""}});
  b.attend(q, q, q, out[0], l, 1, false);
  b.inVariant(first, 0);
  int second = b.alternative("attention", {{"cudnn", ""}, {"math", ""}});
  b.plan.alternatives.back()->op = "tv.attention_grad";
  b.attendGrad(q, q, q, q, out[0], l, {out[1], out[2], out[3]}, 1, false);
  b.inVariant(second, 0);
  for (int i = 1; i < 4; ++i) {
    b.copy(q, out[i]);
    b.inVariant(second, 1);
  }
  return b.module();
}

TEST(NoGradients, TheOthersAreChosen) {
  RunOptions options;
  options.observe = [](const std::string &port, const layout::Shape &i,
                       double got) {
    if (port != "o'" && port != "l")
      EXPECT_EQ(got, double(i[2] * 8 + i[3]));
  };
  options.inspect = [](tessera_binding *binding, int) {
    EXPECT_STREQ(alternativeOf(binding, 0).chosen, "cudnn");
    EXPECT_STREQ(alternativeOf(binding, 1).chosen, "math");
  };
  auto value = [](const std::string &, const layout::Shape &i, int) {
    return double(i[2] * 8 + i[3]);
  };
  runModule(choices(), 1, value, value, options);
}

TEST(NoGradients, AloneItIsAnErrorWithItsReason) {
  withModule(choices(), 1, [&](tessera_module *module, int) {
    EXPECT_OK(tessera_variants_push("attention", "cudnn"));
    alignas(16) double memory[6][16];
    EXPECT_EQ(bindError(module, {},
                        {memory[0], memory[1], memory[2], memory[3], memory[4],
                         memory[5]}),
              std::string("no variant of attention that is allowed is there: "
                          "cudnn: ") +
                  (std::getenv("TESSERA_FAKE_CUDA_CAPABILITY")
                       ? "it is not known to give the same gradients in every "
                         "run on GPUs of compute capability 10.0 or later"
                       : "it is cuDNN 9.12.0; gradients need 9.15.1 or later") +
                  "; there is math");
    EXPECT_OK(tessera_variants_pop());
  });
}

} // namespace
