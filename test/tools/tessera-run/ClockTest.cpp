//===- ClockTest.cpp - one time for the clocks of all ranks ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../../tools/tessera-run/Clock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <random>

using namespace tessera::run;

namespace {

/// Meetings as two ranks see them: they come at random times, and leave at
/// random times after the last has come.
struct Meetings {
  std::vector<Meeting> mine, first;
  Meetings(double ahead, double late, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> some(0, late);
    double time = 1000;
    for (int i = 0; i < 16; ++i) {
      const double a = time + some(random), b = time + some(random);
      const double met = std::max(a, b);
      const double leftA = met + some(random), leftB = met + some(random);
      mine.push_back({a + ahead, leftA + ahead});
      first.push_back({b, leftB});
      time = std::max(leftA, leftB);
    }
  }
};

TEST(Clock, TheErrorIsABound) {
  for (double ahead : {0.0, 3.5, -200.0, 1e-4})
    for (double late : {1e-6, 1e-3})
      for (unsigned seed = 0; seed < 50; ++seed) {
        const Meetings meetings(ahead, late, seed);
        const Clock clock =
            compareClocks(meetings.mine, meetings.first, /*shared=*/false);
        EXPECT_LE(std::abs(clock.ahead - ahead), clock.error + 1e-9);
        EXPECT_GT(clock.error, 0);
        EXPECT_LE(clock.error, 2 * late);
      }
}

TEST(Clock, AClockIsSharedOnlyIfItCanBe) {
  const Meetings same(0, 1e-3, 1);
  const Clock exact = compareClocks(same.mine, same.first, /*shared=*/true);
  EXPECT_EQ(exact.ahead, 0);
  EXPECT_EQ(exact.error, 0);
  // Of containers with a time of their own, say.
  const Meetings other(5, 1e-3, 1);
  EXPECT_NEAR(compareClocks(other.mine, other.first, true).ahead, 5, 2e-3);
}

TEST(Clock, RanksOfAProcessShareOne) {
  std::vector<std::unique_ptr<Team>> teams = makeThreadsTeams(1, 10);
  tessera::Result<std::vector<Clock>> clocks = compareClocks(*teams[0]);
  ASSERT_TRUE(bool(clocks));
  ASSERT_EQ(clocks->size(), 1u);
  EXPECT_EQ((*clocks)[0].error, 0);
}

} // namespace
