//===- WalksTest.cpp - orders of gradients beside random block masks ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attention_walks.cuh on the host: beside random masks, each tile walks the
// blocks of queries that the mask gives it, and ranks follow the launch, so any
// number of resident blocks will do. A tile waits for no tile launched behind
// it; the first of those that have not ended never waits for ever. Where a rank
// is broken, the wait that has no end is named as on a GPU.
//
//===----------------------------------------------------------------------===//

#include "Emulation.h"
#include "OnHost.h"

#include <numeric>
#include <string>
#include <vector>

#include "attention/attention_trap.cuh"
#include "attention/attention_walks.cuh"

#include "gtest/gtest.h"

using namespace tessera;

namespace {
/// What a mask is of.
struct Extents {
  int batch, heads, queries, keys;
};
Extents drawExtents(Random &random, int mostRows) {
  const int heads = draw(random, 1, 8);
  auto rows = [&] {
    return draw(random, 0, 9) ? draw(random, 1, mostRows)
                              : draw(random, 0, 130);
  };
  const int queries = rows(), keys = rows();
  return {draw(random, 1, 2), heads, queries, keys};
}

/// Whether a block has pairs: chance, a window, documents, a checkerboard, all
/// before, or chance beside rows without any.
std::vector<signed char> drawKinds(Random &random, int heads, int rows,
                                   int columns) {
  std::vector<signed char> kinds;
  const int style = draw(random, 0, 5), percent = draw(random, 0, 100);
  for (int head = 0; head < heads; ++head)
    for (int m = 0; m < rows; ++m)
      for (int n = 0; n < columns; ++n) {
        const bool chance = draw(random, 1, 100) <= percent;
        const int size = 1 + percent / 10;
        const bool any = style == 0   ? chance
                         : style == 1 ? abs(m - n) <= percent / 20
                         : style == 2 ? m / size == n / size
                         : style == 3 ? (m + n) % 2 == 0
                         : style == 4 ? n <= m
                                      : m % 7 != 3 && chance;
        kinds.push_back(any ? draw(random, 1, 2) : 0);
      }
  return kinds;
}

/// Blocks of threads run in any order.
template <class Mask> struct Launch {
  Mask mask;
  const int *order;
};
template <class Mask> void walksKernel(Launch<Mask> launch) {
  make_walks(launch.mask, launch.order[blockIdx.x]);
}

std::string name(const char *what, int batch, int head, int m, int n) {
  return std::string(what) + " in batch " + std::to_string(batch) + ", head " +
         std::to_string(head) + ", block " + std::to_string(m) + ", tile " +
         std::to_string(n);
}

/// Of a head, from the first queries on or from the last.
template <class Mask>
BlockWalks<int> walksOf(const Mask &mask, int batch, int head, bool last,
                        int passes) {
  int *words =
      mask.walks + ((batch * mask.heads + head) * 2 + last) * mask.words;
  return {mask.queries, mask.keys, passes, Mask::Passes, words};
}

/// The steps of a tile, as it is launched.
template <class Mask>
std::vector<int *> stepsOf(const Mask &mask, int batch, int head, bool last,
                           int launched) {
  const BlockWalks<int> walks =
      walksOf(mask, batch, head, last, launched % 2 + 1);
  std::vector<int *> steps;
  for (int part = 0; part < walks.parts; ++part)
    for (int i = 0; i < walks.width; ++i) {
      int *step = walks.walk(part, launched / 2) + i;
      if (uint32(*step) == walks.End)
        break;
      steps.push_back(step);
    }
  return steps;
}

std::string endless(const BwdWait &wait) {
  char text[512];
  snprintf(text, sizeof text, TESSERA_ENDLESS_WAIT, wait.batch, wait.head,
           wait.m, wait.query, wait.n, wait.key, wait.rank, wait.count);
  return text;
}
BwdWait waitOf(int batch, int head, int n, int step) {
  const int m = step & 0xffff;
  return {batch,      head, m, m * WalkParts::Rows, n, n * WalkParts::Keys,
          step >> 16, 0};
}

/// Tiles of keys that add in turn, so many resident at a time, as those of
/// attention_bwd.cuh: what is said of a wait without an end.
template <class Mask>
std::string addInTurn(const Mask &mask, int batch, int head, bool last,
                      size_t resident) {
  const BlockWalks<int> own = walksOf(mask, batch, head, last, 1);
  std::vector<int> counters(own.blocks);
  std::vector<std::vector<BwdWait>> running; // what each has to do, backward
  auto counter = [&](const BwdWait &wait) -> int & { return counters[wait.m]; };
  for (int drawn = 0; drawn < own.tiles || !running.empty();) {
    if (running.size() < resident && drawn < own.tiles) {
      const int launched = own.launched[drawn++];
      std::vector<BwdWait> &steps = running.emplace_back();
      for (int *step : stepsOf(mask, batch, head, last, launched))
        steps.push_back(waitOf(batch, head, launched / 2, *step));
      std::reverse(steps.begin(), steps.end());
      continue;
    }
    bool moves = false;
    for (std::vector<BwdWait> &steps : running)
      for (; !steps.empty() && counter(steps.back()) == steps.back().rank;
           moves = true) {
        ++counter(steps.back());
        steps.pop_back();
      }
    moves |= std::erase_if(running, [](auto &steps) { return steps.empty(); });
    if (moves)
      continue;
    BwdWait wait = running.front().back(); // of the first that was launched
    wait.count = counter(wait);
    return endless(wait);
  }
  return "";
}

/// Whether a rank that is one too high is found, whatever is resident.
template <class Mask>
std::string checkBroken(Random &random, const Mask &mask) {
  const int batch = draw(random, 0, mask.batch - 1);
  const int head = draw(random, 0, mask.heads - 1);
  const bool last = draw(random, 0, 1);
  const BlockWalks<int> own = walksOf(mask, batch, head, last, 1);
  const int launched = own.launched[draw(random, 0, own.tiles - 1)];
  const std::vector<int *> steps = stepsOf(mask, batch, head, last, launched);
  for (size_t resident : {1, 3, 1 << 30}) {
    if (std::string said = addInTurn(mask, batch, head, last, resident);
        !said.empty())
      return said;
    if (steps.empty())
      continue;
    int &step = *steps[draw(random, 0, steps.size() - 1)];
    BwdWait wait = waitOf(batch, head, launched / 2, step);
    wait.count = wait.rank++;
    step += 1 << 16;
    const std::string said = addInTurn(mask, batch, head, last, resident);
    step -= 1 << 16;
    if (said != endless(wait))
      return "not " + endless(wait) + "but " + said;
  }
  return "";
}

/// What is wrong with the walks of a head, from the first queries on or from
/// the last; read as attention_bwd_order.cuh does.
template <class Mask>
std::string check(const Mask &mask, int batch, int head, bool last) {
  const BlockWalks<int> own = walksOf(mask, batch, head, last, 1);
  if (*own.reads < 0 || *own.reads > mask.queries)
    return "reads " + std::to_string(*own.reads) + " rows of queries";
  std::vector<int> place(own.tiles, -1), passes(own.tiles);
  for (int i = 0; i < own.tiles; ++i) {
    const int n = own.launched[i] / 2;
    if (own.launched[i] < 0 || n >= own.tiles || place[n] >= 0)
      return name("no order of launch", batch, head, 0, n);
    place[n] = i, passes[n] = own.launched[i] % 2 + 1;
  }
  std::vector<std::vector<int>> places(own.blocks); // by ranks
  for (int n = 0; n < own.tiles; ++n) {
    std::vector<bool> walked(own.blocks);
    for (int *step : stepsOf(mask, batch, head, last, 2 * n + passes[n] - 1)) {
      const int m = *step & 0xffff;
      const size_t rank = uint32(*step) >> 16;
      if (m >= own.blocks || walked[m])
        return name("beyond the end, or twice", batch, head, m, n);
      walked[m] = true;
      places[m].resize(std::max(places[m].size(), rank + 1), -1);
      if (std::exchange(places[m][rank], place[n]) != -1)
        return name("another has this rank", batch, head, m, n);
    }
    for (int m = 0; m < own.blocks; ++m)
      if (walked[m] != mask.adds(batch, head, m, n))
        return name(walked[m] ? "is not in the mask" : "is left out", batch,
                    head, m, n);
  }
  // Each rank is one tile's, and the next one's tile is launched behind it.
  for (int m = 0; m < own.blocks; ++m)
    for (size_t rank = 0; rank < places[m].size(); ++rank)
      if (places[m][rank] < 0 ||
          (rank && places[m][rank] < places[m][rank - 1]))
        return name("ranks do not follow the launch", batch, head, m,
                    int(rank));
  return "";
}

template <int BlockQueries, int BlockKeys, bool Causal>
std::string checkOne(Random &random, const Extents &of) {
  using Mask = WalkedMask<BlockQueries, BlockKeys, Causal>;
  const int rows = (of.queries + BlockQueries - 1) / BlockQueries,
            columns = (of.keys + BlockKeys - 1) / BlockKeys;
  const std::vector<signed char> kinds =
      drawKinds(random, of.batch * of.heads, rows, columns);
  Mask mask = {};
  mask.kinds = kinds.data();
  mask.strides[0] = int64(of.heads) * rows * columns;
  mask.strides[1] = int64(rows) * columns;
  mask.strides[2] = columns, mask.strides[3] = 1;
  mask.batch = of.batch, mask.heads = of.heads;
  mask.queries = of.queries, mask.keys = of.keys;
  mask.words = WalkParts(of.queries, of.keys, Mask::Passes).words();

  constexpr int kUnwritten = 0x7badbad;
  const size_t count = mask.words * 2 * of.heads * of.batch;
  std::vector<int> walks(count + 64, kUnwritten), order(mask.count());
  mask.walks = walks.data();
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  const Launch<Mask> launch = {mask, order.data()};
  emulation::launch<Launch<Mask>, walksKernel<Mask>>(order.size(), kWalkThreads,
                                                     launch);
  for (size_t i = count; i < walks.size(); ++i)
    if (walks[i] != kUnwritten)
      return "writes beyond its words";
  if (of.queries == 0 || of.keys == 0)
    return "";
  for (int batch = 0; batch < of.batch; ++batch)
    for (int head = 0; head < of.heads; ++head)
      for (bool last : {false, true})
        if (std::string problem = check(mask, batch, head, last);
            !problem.empty())
          return problem;
  return checkBroken(random, mask);
}

std::string checkSeed(int seed, const Extents *of = nullptr) {
  Random random(seed);
  const Extents own = of ? *of : drawExtents(random, 800);
  constexpr std::string (*checks[])(Random &, const Extents &) = {
      checkOne<128, 128, false>, checkOne<128, 128, true>,
      checkOne<64, 128, true>,   checkOne<256, 128, false>,
      checkOne<128, 256, true>,  checkOne<64, 128, false>,
      checkOne<384, 128, false>};
  return checks[seed % std::size(checks)](random, own);
}
} // namespace

TEST(Walks, RanksFollowTheLaunch) {
  for (int seed = 0; seed < 1000; ++seed)
    ASSERT_EQ(checkSeed(seed), "") << "of seed " << seed;
}

/// More blocks than a range, and more tiles than a block makes at a time.
TEST(Walks, RanksOfLongSequences) {
  const Extents kLong[] = {
      {1, 1, 9000, 18000}, {1, 1, 17000, 1000}, {1, 2, 8300, 17000}};
  for (const Extents &of : kLong)
    for (int seed = 0; seed < 7; seed += 2)
      ASSERT_EQ(checkSeed(seed, &of), "")
          << "of seed " << seed << ", " << of.queries << " queries, " << of.keys
          << " keys";
}
