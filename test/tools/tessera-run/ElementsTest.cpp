//===- ElementsTest.cpp - the elements of a tensor's local part -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../../tools/tessera-run/Elements.h"
#include "gtest/gtest.h"

using namespace tessera;
using namespace tessera::run;

namespace {

GlobalTensor make(const char *mesh, layout::Shape shape, const char *view) {
  GlobalTensor tensor = {"t", DType::F32, std::move(shape), {}, {}};
  tensor.mesh = *layout::parseMesh(mesh);
  tensor.view = *layout::parseView(view, tensor.mesh);
  return tensor;
}

/// In the order of memory, what rank holds.
std::vector<int64_t> held(const GlobalTensor &tensor, int rank) {
  std::vector<std::pair<int64_t, int64_t>> places;
  Elements(tensor, rank).forEach([&](int64_t local, int64_t global) {
    places.push_back({local, global});
  });
  std::sort(places.begin(), places.end());
  std::vector<int64_t> result;
  for (auto [local, global] : places) {
    EXPECT_EQ(local, static_cast<int64_t>(result.size()));
    result.push_back(global);
  }
  return result;
}

using Places = std::vector<int64_t>;

TEST(Elements, AreWhereTheViewSays) {
  GlobalTensor columns =
      make("<tp = 2>", {2, 4}, "[_, did(tp) * _], alloc = (1, 0)");
  EXPECT_EQ(held(columns, 0), (Places{0, 4, 1, 5}));
  EXPECT_EQ(held(columns, 1), (Places{2, 6, 3, 7}));
  GlobalTensor cyclic = make("<tp = 2>", {6}, "[_ * did(tp) * 1]");
  EXPECT_EQ(held(cyclic, 1), (Places{1, 3, 5}));
  GlobalTensor uneven = make("<tp = 3>", {4, 1}, "[did(tp) * _, _]");
  EXPECT_EQ(held(uneven, 1), (Places{2, 3}));
  EXPECT_EQ(held(uneven, 2), Places{});
  GlobalTensor flat = make("<tp = 2>", {3, 2}, "[flat(2) did(tp) * _]");
  EXPECT_EQ(held(flat, 1), (Places{3, 4, 5}));
  EXPECT_EQ(held(make("<tp = 2>", {}, "[]"), 1), Places{0});
  EXPECT_EQ(held(make("<tp = 2>", {0, 5}, "[_, _]"), 1), Places{});
}

TEST(Elements, OfAllRanksAreTheTensor) {
  for (const char *view :
       {"[did(a) * _, did(b) * _]", "[did(b) * did(a) * _, _], alloc = (1, 0)",
        "[_ * did(b) * 2, did(a) * _]", "[flat(2) did(a) * _ * did(b) * 5]"}) {
    GlobalTensor tensor = make("<a = 2, b = 3>", {7, 10}, view);
    std::vector<int> times(70);
    for (int rank = 0; rank < 6; ++rank)
      for (int64_t place : held(tensor, rank))
        ++times[place];
    EXPECT_EQ(times, std::vector<int>(70, 1)) << view;
  }
}

TEST(Elements, HaveAnIndex) {
  EXPECT_EQ(indexText(23, {2, 3, 4}), "[1, 2, 3]");
  EXPECT_EQ(indexText(0, {}), "[]");
}

} // namespace
