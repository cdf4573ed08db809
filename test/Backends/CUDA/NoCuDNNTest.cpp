//===- NoCuDNNTest.cpp - a cuDNN that does not do -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A process keeps the library that it has opened: here the fake one is too old.
//
//===----------------------------------------------------------------------===//

#include "../../Runtime/Ranks.h"

using namespace tessera;
using namespace tessera::test;
using Element = fb::DType;

namespace {

/// o is q where `math` runs.
std::string choice() {
  PlanBuilder b("<tp = 1>");
  int q = b.input("q", {1, 1, 4, 8}, "[_, _, _, _]", Element::BF16);
  int o = b.output("o", {1, 1, 4, 8}, "[_, _, _, _]", Element::BF16);
  int of = b.alternative(
      "attention", {{"flash", "it does not fit"}, {"cudnn", ""}, {"math", ""}});
  b.attend(q, q, q, o, -1, 1, false);
  b.inVariant(of, 1);
  b.copy(q, o);
  b.inVariant(of, 2);
  return b.module();
}

const char *const kReason =
    "libcudnn.so.9 is cuDNN 9.8.0; 9.10.2 or later is needed";

TEST(NoCuDNN, TheOthersCanBeChosen) {
  for (const char *names : {"", "cudnn,math", "math,cudnn"}) {
    RunOptions options;
    options.begin = [&](int) {
      if (*names)
        EXPECT_OK(tessera_variants_push("attention", names));
    };
    options.inspect = [&](tessera_binding *binding, int) {
      tessera_alternative alternative = alternativeOf(binding, 0);
      EXPECT_STREQ(alternative.chosen, "math");
      EXPECT_STREQ(alternative.variants, "cudnn, math");
    };
    auto value = [](const std::string &, const layout::Shape &i, int) {
      return double(i[2] * 8 + i[3]);
    };
    runModule(choice(), 1, value, value, options);
  }
}

TEST(NoCuDNN, AloneItIsAnErrorWithItsReason) {
  for (const char *names : {"cudnn", "flash,cudnn"})
    withModule(choice(), 1, [&](tessera_module *module, int) {
      EXPECT_OK(tessera_variants_push("attention", names));
      double q[16], o[16];
      const std::string error = bindError(module, {}, {q, o});
      EXPECT_ERROR(error, "no variant of attention that is allowed is there: ");
      EXPECT_ERROR(error, std::string("cudnn: "));
      EXPECT_ERROR(error, kReason);
      EXPECT_ERROR(error, "; there is math");
      EXPECT_EQ(contains(error, "flash: it does not fit"), *names == 'f');
      auto memory = sized<tessera_memory>();
      EXPECT_EQ(take(tessera_module_memory(module, nullptr, 0, &memory)),
                error);
    });
}

} // namespace
