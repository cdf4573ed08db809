//===- ProgressTest.cpp - a stage that takes long, on a terminal ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/Progress.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <regex>
#include <thread>
#include <tuple>

using namespace tessera;

namespace {
/// Both ends of a terminal that nobody looks at, or of a pipe.
class ProgressTest : public testing::Test {
protected:
  void TearDown() override {
    close(there);
    close(here);
  }
  void openTerminal() {
    here = posix_openpt(O_RDWR | O_NOCTTY);
    ASSERT_TRUE(here >= 0 && grantpt(here) == 0 && unlockpt(here) == 0);
    there = open(ptsname(here), O_RDWR | O_NOCTTY);
    ASSERT_GE(there, 0);
  }
  void openPipe() {
    std::array<int, 2> ends;
    ASSERT_EQ(pipe(ends.data()), 0);
    std::tie(here, there) = std::tie(ends[0], ends[1]);
  }
  /// What was written since.
  std::string read() {
    std::string text;
    pollfd at = {here, POLLIN, 0};
    while (poll(&at, 1, 100) == 1) {
      char some[256];
      text.append(some, ::read(here, some, sizeof some));
    }
    return text;
  }
  static void pass(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }

  int here = -1, there = -1;
};
} // namespace

TEST_F(ProgressTest, OnATerminal) {
  openTerminal();
  {
    Progress progress("reading", "bytes", true, there);
    Progress kernels("compiling", "kernels", true, there);
    Progress quiet("running", "runs", false, there);
    progress.show(0, 10'000'000'000);
    EXPECT_EQ(read(), ""); // not in the first second
    pass(1.0);
    progress.show(2'500'000'000, 10'000'000'000);
    progress.show(2'600'000'000, 10'000'000'000); // too soon
    // However slow the machine is.
    EXPECT_TRUE(std::regex_match(
        read(), std::regex("\r\x1b\\[Kreading: 2\\.5 of 10\\.0 GB, "
                           "0:0\\d, 0:\\d\\d left")));
    kernels.show(3, 0);
    EXPECT_TRUE(std::regex_match(
        read(), std::regex("\r\x1b\\[Kcompiling: 3 kernels, 0:0\\d")));
    quiet.show(1, 2);
  }
  EXPECT_EQ(read(), "\r\033[K\r\033[K");
}

TEST_F(ProgressTest, NotOnATerminal) {
  openPipe();
  {
    Progress progress("reading", "bytes", true, there);
    pass(1.1);
    progress.show(1, 2);
  }
  EXPECT_EQ(read(), "");
}
