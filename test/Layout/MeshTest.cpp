//===- MeshTest.cpp - ranks, coordinates, sub-axes ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Meshes as text, the two directions between ranks and coordinates, and when
// sub-axes are disjoint.
//
//===----------------------------------------------------------------------===//

#include "Enumerate.h"

#include <gtest/gtest.h>

#include <map>

using namespace tessera::layout;
using namespace tessera::layout::test;

TEST(Mesh, RanksAndCoordinatesAreInverse) {
  for (const char *text :
       {"<a = 2, b = 3, c = 2>", "<a = 2, b = 3, devices = iota(b, a)>",
        "<a = 4, devices = [2, 0, 3, 1]>"}) {
    Mesh mesh = makeMesh(text);
    for (int64_t rank = 0; rank < mesh.numDevices(); ++rank)
      EXPECT_EQ(mesh.rankOfCoords(mesh.coordsOfRank(rank)), rank) << text;
  }
}

TEST(Mesh, TheFirstAxisIsOutermost) {
  Mesh mesh = makeMesh("<a = 2, b = 3>");
  EXPECT_EQ(mesh.rankOfCoords({1, 2}), 5);
  EXPECT_EQ(mesh.coordsOfRank(4), (Coords{1, 1}));
  Mesh turned = makeMesh("<a = 2, b = 3, devices = iota(b, a)>");
  EXPECT_EQ(turned.devices, (std::vector<int64_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(turned.coordsOfRank(1), (Coords{1, 0}));
}

TEST(Mesh, SubAxesOverlapUnlessTheyAreIndependentDigits) {
  for (int64_t size : {4, 6, 8, 12}) {
    Mesh mesh;
    mesh.axes = {{"x", size}};
    std::vector<SubAxis> subs;
    for (int64_t pre = 1; pre <= size; ++pre)
      for (int64_t part = 1; pre * part <= size; ++part)
        if (size % (pre * part) == 0)
          subs.push_back({0, pre, part});
    for (const SubAxis &a : subs)
      for (const SubAxis &b : subs) {
        // Independent: each pair of digits occurs equally often.
        std::map<std::pair<int64_t, int64_t>, int64_t> pairs;
        for (int64_t i = 0; i < size; ++i)
          ++pairs[{a.digit(mesh, {i}), b.digit(mesh, {i})}];
        bool independent = true;
        for (const auto &[pair, count] : pairs)
          independent &= count * a.size * b.size == size;
        // The remainders by 2 and by 3 of a coordinate are independent, but not
        // digits of one mixed-radix number.
        bool power = size == 4 || size == 8;
        if (power || !overlap(a, b))
          EXPECT_EQ(overlap(a, b), !independent)
              << toString(a, mesh) << " " << toString(b, mesh);
      }
  }
}

TEST(Mesh, TextRoundTrip) {
  for (const char *text :
       {"<tp = 4>", "<dp = 2, tp = 4>",
        "<dp = 2, tp = 4, devices = iota(tp, dp)>",
        "<a = 2, b = 3, c = 2, devices = iota(c, a, b)>",
        "<a = 1, b = 2, c = 2, devices = iota(a, c, b)>",
        "<x = 4, devices = [0, 2, 1, 3]>", "<devices = 2>"}) {
    Mesh mesh = makeMesh(text);
    EXPECT_EQ(toString(mesh), text);
    EXPECT_EQ(makeMesh(toString(mesh).c_str()), mesh);
  }
  EXPECT_TRUE(makeMesh("<x = 2, devices = [0, 1]>").devices.empty());
  EXPECT_EQ(hashValue(makeMesh("<x = 2>")),
            hashValue(makeMesh("<x = 2, devices = iota(x)>")));
  EXPECT_NE(hashValue(makeMesh("<x = 2>")), hashValue(makeMesh("<x = 3>")));
}

TEST(Mesh, Errors) {
  auto message = [](const char *text) {
    auto mesh = parseMesh(text);
    return mesh ? "no error" : mesh.message();
  };
  EXPECT_EQ(message("<x = 0>"),
            "mesh axis x has size 0; a size is at least 1 (at column 8 of `<x "
            "= 0>`)");
  EXPECT_EQ(message("<x = 2, x = 3>"),
            "the mesh names axis x twice; names are distinct (at column 15 of "
            "`<x = 2, x = 3>`)");
  EXPECT_EQ(message("<x>"), "expected `=` (at column 3 of `<x>`)");
  EXPECT_EQ(message("<x = 2, devices = [0, 0]>"),
            "rank 0 in `devices` is out of range or there twice; each rank "
            "from 0 to 1 stands once in `devices` (at column 26 of `<x = 2, "
            "devices = [0, 0]>`)");
  // The first of all in order are not all.
  EXPECT_EQ(message("<x = 4, devices = [0, 1, 2]>"),
            "the mesh has 4 positions, but `devices` lists 3 ranks; each rank "
            "from 0 to 3 stands once in `devices` (at column 29 of `<x = 4, "
            "devices = [0, 1, 2]>`)");
  EXPECT_EQ(message("<x = 4, devices = [0, 1, 2, 3, 4]>"),
            "the mesh has 4 positions, but `devices` lists 5 ranks; each rank "
            "from 0 to 3 stands once in `devices` (at column 35 of `<x = 4, "
            "devices = [0, 1, 2, 3, 4]>`)");
  EXPECT_EQ(message("<x = 4, devices = []>"),
            "`devices` lists each rank of the mesh once (at column 21 of `<x = "
            "4, devices = []>`)");
  EXPECT_EQ(message("<x = 2, y = 2, devices = iota(x, x)>"),
            "`iota` lists each axis of the mesh once: x, y (at column 36 of "
            "`<x = 2, y = 2, devices = iota(x, x)>`)");
  EXPECT_EQ(message("<x = 2, devices = iota(z)>"),
            "`iota` lists axes of this mesh: x (at column 24 of `<x = 2, "
            "devices = iota(z)>`)");
  EXPECT_EQ(message("<x = 100000, y = 100000>"),
            "the mesh has more devices than 2^32 (at column 25 of `<x = "
            "100000, y = 100000>`)");
  EXPECT_EQ(message("<x = 2> y"),
            "expected the end of the text (at column 9 of `<x = 2> y`)");
}

TEST(Mesh, DigitsOfAnotherMeshAreTheSameOnEveryRank) {
  std::vector<Mesh> meshes;
  for (const char *text :
       {"<x = 12>", "<a = 2, b = 6>", "<a = 6, b = 2>", "<a = 3, b = 4>",
        "<a = 3, b = 2, c = 2>", "<a = 1, b = 12>",
        "<a = 2, b = 6, devices = iota(b, a)>",
        "<a = 2, b = 2, c = 3, devices = iota(c, a, b)>",
        "<a = 12, devices = [1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]>",
        // The digits of 12 = 2 * 3 * 2 as 3, 2, 2; as 2, 2, 3 of two axes.
        "<a = 12, devices = [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]>",
        "<a = 2, b = 6, devices = [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]>",
        // Each axis has digits, but not all ranks are their sums.
        "<a = 2, b = 6, devices = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 10]>"})
    meshes.push_back(makeMesh(text));
  std::map<std::pair<size_t, size_t>, int> found, missing;
  for (size_t m = 0; m < meshes.size(); ++m)
    for (size_t n = 0; n < meshes.size(); ++n) {
      const Mesh &from = meshes[m], &to = meshes[n];
      for (size_t axis = 0; axis < from.axes.size(); ++axis)
        for (int64_t pre = 1; pre <= from.axes[axis].size; ++pre)
          for (int64_t size = 1; pre * size <= from.axes[axis].size; ++size) {
            if (from.axes[axis].size % (pre * size))
              continue;
            SubAxis sub{int(axis), pre, size};
            auto digits = sameDigit(sub, from, to);
            ++(digits ? found : missing)[{m, n}];
            for (int64_t rank = 0; digits && rank < 12; ++rank) {
              int64_t value = 0;
              for (const SubAxis &digit : *digits)
                value =
                    value * digit.size + digit.digit(to, to.coordsOfRank(rank));
              EXPECT_EQ(value, sub.digit(from, from.coordsOfRank(rank)))
                  << m << " " << n << " " << axis << " " << pre << " " << size;
            }
          }
    }
  // One axis has all digits of each mesh in order; 2 * 6 and 3 * 4 are cut
  // apart, but have the innermost 2 in common; an order of no axes has none.
  for (size_t m = 0; m < 6; ++m)
    EXPECT_EQ((missing[{m, 0}]), 0) << m;
  EXPECT_EQ((missing[{6, 0}]), 0);
  EXPECT_EQ((missing[{7, 0}]), 0);
  EXPECT_EQ(sameDigit({0, 1, 12}, meshes[9], meshes[0]),
            std::vector<SubAxis>({{0, 2, 3}, {0, 1, 2}, {0, 6, 2}}));
  EXPECT_FALSE(sameDigit({0, 1, 2}, meshes[9], meshes[0]));
  EXPECT_EQ(sameDigit({1, 1, 6}, meshes[10], meshes[0]),
            std::vector<SubAxis>({{0, 6, 2}, {0, 2, 3}}));
  EXPECT_GT((missing[{1, 3}]), 0);
  EXPECT_TRUE(sameDigit({1, 3, 2}, meshes[1], meshes[3]));
  EXPECT_FALSE(sameDigit({0, 1, 2}, meshes[1], meshes[3]));
  EXPECT_EQ((found[{8, 0}]), 0);
  EXPECT_EQ((found[{0, 8}]), 0);
  EXPECT_EQ((found[{11, 0}]), 0);
  EXPECT_FALSE(sameDigit({0, 1, 2}, makeMesh("<x = 2>"), meshes[0]));
  // Of equal lists positions are compared.
  EXPECT_EQ(sameDigit({1, 1, 2},
                      makeMesh("<a = 2, b = 2, devices = [3, 0, 1, 2]>"),
                      makeMesh("<x = 4, devices = [3, 0, 1, 2]>")),
            std::vector<SubAxis>({{0, 2, 2}}));
}
