//===- ViewTest.cpp - text, order, hash and verification of views ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Text in both directions, every error of the parser and the verifier, and
// random text.
//
//===----------------------------------------------------------------------===//

#include "Enumerate.h"

#include <gtest/gtest.h>

using namespace tessera::layout;
using namespace tessera::layout::test;

TEST(View, TextRoundTrip) {
  Mesh mesh = makeMesh("<dp = 2, tp = 4>");
  for (const char *text : {
           "[]",
           "[_]",
           "[1, 1]",
           "[?, 12, _ * 3]",
           "[did(tp) * _, _]",
           "[_, _ * did(tp) * 128, _]",
           "[did(tp:(1)2) * 3 * did(tp:(2)2)]",
           "[(did(tp) * _ | 16) * 144, _]",
           "[((did(tp) * 3 | 2:9) * 2 | 1:12)]",
           "[flat(2) did(tp) * 4, 5]",
           "[_, _], alloc = (1, 0)",
           "[_], partial = [tp : sum]",
           "[_], partial = [(dp, tp:(2)2) : max, tp:(1)2 : min]",
           "[?, _], alloc = (0, 1), partial = [dp : sum], priority = [1, 0]",
       }) {
    View view = makeView(text, mesh);
    EXPECT_EQ(toString(view, mesh), text);
  }
}

TEST(View, TextOfEveryProductParsesToAnEqualView) {
  for (const Mesh &mesh : smallMeshes())
    forEachProduct(mesh, {}, [&](const Product &product) {
      View view;
      view.dims = {
          {{Factor::group(product, 0, reach(product)), Factor::rest()}, 1},
          {{Factor::stored(7)}, 2}};
      if (product.empty())
        return;
      EXPECT_EQ(makeView(toString(view, mesh).c_str(), mesh), view);
    });
}

TEST(View, SpacesDoNotMatter) {
  Mesh mesh = makeMesh("<tp=4>");
  EXPECT_EQ(
      makeView("[ did( tp )*( _|3:5 ) ,_ ],partial=[ tp:(1)2 :sum]", mesh),
      makeView("[did(tp) * (_ | 3:5), _], partial = [tp:(1)2 : sum]", mesh));
}

TEST(View, SyntaxErrors) {
  Mesh mesh = makeMesh("<dp = 2, tp = 4>");
  auto message = [&](std::string text) {
    auto view = parseView(text, mesh);
    if (view)
      return std::string("no error");
    std::string message = view.message();
    return message.substr(0, message.find(" of `" + text));
  };
  EXPECT_EQ(message("[did(tq)]"),
            "unknown mesh axis 'tq'; the mesh has dp, tp (at column 6");
  EXPECT_EQ(message("[did(_)]"),
            "unknown mesh axis '_'; the mesh has dp, tp (at column 6");
  EXPECT_EQ(message("[did(tp:2)]"),
            "expected `(pre)size` of a sub-axis of tp (at column 9");
  EXPECT_EQ(message("[2 *]"), "expected an integer, `_`, `?`, `did(...)` or "
                              "`(` (at column 5");
  EXPECT_EQ(message("[(2 * 3)]"), "expected `|` (at column 8");
  EXPECT_EQ(message("[(2 * 3 | _)]"),
            "expected the bound of a group (at column 11");
  EXPECT_EQ(message("[flat(0) 3]"),
            "`flat` spans one dimension or more (at column 7");
  EXPECT_EQ(message("[2] alloc = (0)"),
            "expected the end of the text (at column 5");
  EXPECT_EQ(message("[2], order = (0)"),
            "expected `alloc`, `partial` or `priority` (at column 6");
  EXPECT_EQ(message("[2], alloc = (0), alloc = (0)"),
            "`alloc` is there twice (at column 24");
  EXPECT_EQ(message("[2], partial = [tp : sum], partial = [dp : sum]"),
            "`partial` is there twice; one lists all states, as in `[x : sum, "
            "y : sum]` (at column 35");
  EXPECT_EQ(message("[2], priority = [0], priority = [1]"),
            "`priority` is there twice (at column 30");
  // A part of the mesh, as other systems say it: what to write.
  EXPECT_EQ(message("[_, 8], axes = {tp = 1}"),
            "a value on a part of the mesh has a dimension of 1 that lies "
            "there: {tp = 1} is `(did(tp) * 1 | 1:2)`, as in `[(did(tp) * 1 | "
            "1:2), _, 8]` (at column 22");
  EXPECT_EQ(message("axes = {dp = 1, tp:(1)2 = 0}, [_]"),
            "a value on a part of the mesh has a dimension of 1 that lies "
            "there: {dp = 1, tp:(1)2 = 0} is `(did(dp) * did(tp:(1)2) * 1 | "
            "2:3)`, as in `[(did(dp) * did(tp:(1)2) * 1 | 2:3)]` (at column "
            "27");
  EXPECT_EQ(message("[_], axes = {tp = 4}"), "tp is 0 to 3 (at column 19");
  EXPECT_EQ(message("[_], axes = {pp = 0}"),
            "unknown mesh axis 'pp'; the mesh has dp, tp (at column 14");
  EXPECT_EQ(message("[_], axes = [tp]"), "expected `{` (at column 13");
  EXPECT_EQ(message("[2], partial = [tp : mean]"),
            "expected a combiner: sum, max or min (at column 22");
  EXPECT_EQ(message("[99999999999999999999]"),
            "expected an integer, `_`, `?`, `did(...)` or `(` (at column 2");
  EXPECT_EQ(message("[2, 3"), "expected `]` (at column 6");
  EXPECT_EQ(message("[" + std::string(100, '(')),
            "groups are nested deeper than 64 (at column 67");
}

TEST(View, VerifierErrors) {
  Mesh mesh = makeMesh("<dp = 2, tp = 4>");
  auto message = [&](const char *text, Shape shape) {
    auto status = verify(makeView(text, mesh), shape, mesh);
    return status ? "no error" : status.message();
  };
  EXPECT_EQ(message("[did(tp) * _, (did(dp) * _ | 2:7) * 2]", {9, 10}),
            "no error");
  EXPECT_EQ(message("[did(tp) * 32]", {kDynamic}), "no error");
  EXPECT_EQ(message("[_]", {3, 4}),
            "the view describes 1 dimensions, but the tensor has rank 2");
  EXPECT_EQ(message("[flat(3) _]", {3, 4}),
            "flat(3) does not fit a tensor of rank 2");
  EXPECT_EQ(message("[_, 2 * 3]", {4, 10}),
            "dimension 1: 2 * 3 reaches 6 values, fewer than the extent 10; "
            "write `_` for one of the factors");
  EXPECT_EQ(message("[_, flat(2) 2 * 3]", {4, 5, 2}),
            "dimensions 1 to 2: 2 * 3 reaches 6 values, fewer than the extent "
            "10; write `_` for one of the factors");
  EXPECT_EQ(message("[(2 * did(dp) | 5) * 2]", {10}),
            "dimension 0: 2 * did(dp) reaches 4 values, fewer than the bound "
            "5; write a bound of 4 or less, or `_` for one of the factors");
  EXPECT_EQ(message("[4000000000000000000 * did(tp)]", {10}),
            "dimension 0: 4000000000000000000 * did(tp) reaches more than 2^62 "
            "values; write `_` for one of the factors");
  EXPECT_EQ(message("[(_ | 4000000000000000000:4000000000000000001) * 4]", {4}),
            "dimension 0: (_ | 4000000000000000000:4000000000000000001) * 4 "
            "reaches more than 2^62 values; write `_` for one of the factors");
  EXPECT_EQ(message("[_ * did(tp) * _]", {16}),
            "two `_` in one group of dimension 0; write a number for one of "
            "them");
  EXPECT_EQ(message("[(_ * did(tp) | 6) * _]", {16}), "no error");
  EXPECT_EQ(message("[(_ | 4:4)]", {1}),
            "dimension 0: empty bound 4:4; a group keeps lo <= v < hi");
  EXPECT_EQ(message("[0 * _]", {4}),
            "dimension 0: a factor is 0; integers are at least 1");
  EXPECT_EQ(message("[did(tp) * _, did(tp) * _]", {4, 4}),
            "axis tp is used twice; sub-axes of one view are disjoint");
  EXPECT_EQ(message("[did(tp) * _], partial = [tp:(2)2 : sum]", {4}),
            "tp and tp:(2)2 overlap; sub-axes of one view are disjoint");
  EXPECT_EQ(message("[did(tp:(2)4) * _]", {4}),
            "dimension 0: tp:(2)4 is no part of axis tp of size 4; 2 * 4 must "
            "divide it");
  EXPECT_EQ(message("[_], partial = [tp:(1)3 : sum]", {4}),
            "partial: tp:(1)3 is no part of axis tp of size 4; 1 * 3 must "
            "divide it");
  EXPECT_EQ(message("[_, _], alloc = (0, 2)", {4, 4}),
            "alloc names each of the 2 local dimensions once, outermost in "
            "memory first");
  EXPECT_EQ(message("[_, _], priority = [0]", {4, 4}),
            "priority needs a number for each of the 2 dimensions of the view, "
            "not 1");
  View foreign = makeView("[did(tp) * _]", mesh);
  foreign.dims[0].product[0].sub.axis = 7;
  auto status = verify(foreign, {4}, mesh);
  ASSERT_FALSE(bool(status));
  EXPECT_EQ(status.message(), "dimension 0: axis number 7 is not on the mesh, "
                              "which has 2 axes");
}

TEST(View, EqualViewsHashEqually) {
  Mesh mesh = makeMesh("<dp = 2, tp = 4>");
  const char *texts[] = {"[_, _]",
                         "[_, ?]",
                         "[did(tp), _]",
                         "[did(tp:(1)2), _]",
                         "[(2 | 1:2), _]",
                         "[(2 | 0:2), _]",
                         "[flat(2) _]",
                         "[_, _], partial = [tp : sum]",
                         "[_, _], alloc = (1, 0)",
                         "[_, _], partial = [tp : max]"};
  for (const char *a : texts)
    for (const char *b : texts) {
      View first = makeView(a, mesh), second = makeView(b, mesh);
      EXPECT_EQ(first == second, a == b);
      EXPECT_EQ(hashValue(first) == hashValue(second), a == b) << a << b;
      EXPECT_EQ((first <=> second) == 0, a == b);
      EXPECT_EQ(first<second, second> first);
    }
}

/// Random token sequences: none may crash, and a legal view goes through all of
/// the algebra.
TEST(View, SurvivesRandomText) {
  const char *tokens[] = {"[",
                          "]",
                          ",",
                          "*",
                          "(",
                          ")",
                          "|",
                          ":",
                          "_",
                          "?",
                          "2",
                          "3",
                          "7",
                          "0",
                          "did(x)",
                          "did(y)",
                          "did(x:(2)2)",
                          "flat(2)",
                          "alloc",
                          "=",
                          "partial",
                          "sum",
                          "4611686018427387904",
                          "9223372036854775807"};
  Mesh mesh = makeMesh("<x = 4, y = 3>");
  uint64_t state = 1;
  auto random = [&](uint64_t n) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % n;
  };
  int legal = 0;
  for (int round = 0; round < (longRun ? 3000000 : 100000); ++round) {
    std::string text = "[";
    if (round % 2) {
      for (uint64_t i = random(12); i-- > 0;)
        text += std::string(" ") + tokens[random(std::size(tokens))];
    } else {
      // Grammatical ones, so that most get further.
      int open = 0;
      for (uint64_t i = random(5) + 1; i-- > 0;) {
        for (; random(4) == 0; ++open)
          text += "(";
        text += tokens[8 + random(10)];
        for (; open > 0 && random(2) == 0; --open)
          text += random(2) ? " | 2)" : " | 1:3)";
        text += i ? " * " : "";
      }
      while (open-- > 0)
        text += " | 2)";
      text += "]";
    }
    auto view = parseView(text, mesh);
    if (!view)
      continue;
    EXPECT_EQ(*parseView(toString(*view, mesh), mesh), *view);
    for (const Shape &shape : {Shape{7}, {2, 3}, {kDynamic}, {INT64_MAX / 4}}) {
      if (!verify(*view, shape, mesh))
        continue;
      ++legal;
      View canonical = canonicalize(*view, shape, mesh);
      EXPECT_TRUE(bool(verify(canonical, shape, mesh))) << text;
      EXPECT_TRUE(isCanonical(canonical, shape, mesh)) << text;
      maxLocalShape(canonical, shape, mesh);
      if (shape.size() == 2)
        (void)reshapeView(canonical, shape, {3, 2}, mesh);
    }
  }
  EXPECT_GT(legal, 1000);
}
