//===- NamesTest.cpp - tests of suggestions -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/Names.h"

#include "gtest/gtest.h"

using namespace tessera;

TEST(SuggestName, IsNear) {
  EXPECT_EQ(suggestName("bert.wte", {"x", "wte"}), "; did you mean 'wte'?");
  EXPECT_EQ(suggestName("wet", {"x", "wte.weight", "set"}),
            "; did you mean 'set'?");
  EXPECT_EQ(suggestName("mian", {"f", "main"}), "; did you mean 'main'?");
  // A letter is in many a name.
  EXPECT_EQ(suggestName("logits", {"x", "s", "it"}), "");
  EXPECT_EQ(suggestName("s", {"x", "logits"}), "");
}
