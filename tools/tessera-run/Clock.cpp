//===- Clock.cpp - one time for the clocks of all ranks -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Clock.h"
#include "Support/Try.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <limits>

using namespace tessera;
using namespace tessera::run;

static double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Clock run::compareClocks(const std::vector<Meeting> &mine,
                         const std::vector<Meeting> &first, bool shared) {
  double least = -std::numeric_limits<double>::infinity(), most = -least;
  for (size_t i = 0; i < std::min(mine.size(), first.size()); ++i) {
    least = std::max(least, mine[i].came - first[i].left);
    most = std::min(most, mine[i].left - first[i].came);
  }
  // Whoever expects one clock is believed only as far as the meetings allow.
  if (shared && least <= 0 && most >= 0)
    return {};
  return {(least + most) / 2, (most - least) / 2};
}

namespace {

struct Record {
  /// Of the system's start: who has the same runs on the same machine.
  char boot[64];
  std::array<Meeting, 32> meetings;
};

} // namespace

Result<std::vector<Clock>> run::compareClocks(Team &team) {
  Record mine = {};
  if (FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re")) {
    if (!fgets(mine.boot, sizeof mine.boot, file))
      mine.boot[0] = 0;
    fclose(file);
  }
  for (Meeting &meeting : mine.meetings) {
    meeting.came = now();
    TSR_TRY(team.barrier());
    meeting.left = now();
  }
  Result<std::vector<Record>> all = team.allGather(mine);
  if (!all)
    return all.error();
  auto meetingsOf = [](const Record &record) {
    return std::vector<Meeting>(record.meetings.begin(), record.meetings.end());
  };
  std::vector<Clock> clocks(all->size());
  for (size_t rank = 1; rank < all->size(); ++rank)
    clocks[rank] = run::compareClocks(
        meetingsOf((*all)[rank]), meetingsOf((*all)[0]),
        mine.boot[0] && !std::strcmp((*all)[rank].boot, (*all)[0].boot));
  return clocks;
}
