//===- OrderTest.cpp - the order in which gradients are added -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attention_bwd_order.cuh on the host, without a block mask: every tile of keys
// is launched once, and its rank at a block of queries is how many tiles that
// were launched before it have that block. So a tile waits for earlier ones
// alone, and any number of resident blocks will do. (WalksTest: beside a mask.)
//
//===----------------------------------------------------------------------===//

#include "Emulation.h"
#include "OnHost.h"

#include <array>
#include <map>
#include <string>
#include <vector>

#include "attention/attention_bwd_order.cuh"
#include "attention/attention_tiles.h"

#include "gtest/gtest.h"

using namespace tessera;

namespace {
struct Full : AttentionMods {};
struct Triangle : AttentionMods {
  static constexpr bool Causal = true;
};
struct Window : AttentionMods {
  struct Args {
    int before, behind;
  };
  static constexpr bool HasMask = true;
  static KeyRange keys(const Args &a, int64, int64, int64 first, int64 last,
                       int) {
    return {int(first) - a.before, int(last) + 1 + a.behind};
  }
};
/// The first head sees all.
struct ByHead : Window {
  static KeyRange keys(const Args &a, int64 batch, int64 head, int64 first,
                       int64 last, int keys) {
    return head % 3 ? Window::keys(a, batch, head, first, last, keys)
                    : KeyRange{0, keys};
  }
};
template <class Mods, int D>
constexpr AttentionTiles kTiles = getBackwardTiles(D, D, Mods::HasMask, false,
                                                   0);
template <class Mods, int D>
using Config = BwdConfig<bf16, D, Mods, true, kTiles<Mods, D>.rows,
                         kTiles<Mods, D>.keys, kTiles<Mods, D>.stages>;
template <class C> using Params = BwdParams<typename C::Mods::Args>;

/// A tile's blocks of queries, in the order of its walk.
struct Step {
  int batch, head, m, rank, after;
  bool trails;
};
struct Launched {
  int n, head, batch;
  std::vector<Step> steps;
};
template <class C> struct Launch {
  Params<C> p;
  std::vector<Launched> *tiles;
};
/// As the planner of attention_bwd_steps.cuh, all that there is.
template <class C> void plan(Launch<C> launch) {
  const Params<C> &p = launch.p;
  const BwdSections sections = bwd_sections<C>(p, 0);
  for (int id = 0;; ++id) {
    const typename C::Tile t = bwd_tile<C>(p, sections, id);
    if (t.n < 0)
      return;
    Launched tile = {t.n, t.head, t.batch, {}};
    const BwdRows<C> rows(p, t);
    for (int i = rows.begin; i < rows.end; ++i) {
      const int m = t.rows_down ? rows.begin + rows.end - 1 - i : i;
      const BwdRank rank = bwd_rank<C>(p, t, m);
      tile.steps.push_back({t.batch, t.head, m, rank.before, rank.after,
                            bwd_trails<C>(p, t, rows, m)});
    }
    if (threadIdx.x == 0)
      launch.tiles->push_back(tile);
  }
}

/// What is wrong if so many tiles run at once and each adds when its turn has
/// come, the latest first.
std::string addInTurn(const std::vector<Launched> &tiles, size_t resident) {
  std::map<std::array<int, 3>, int> counts;
  std::vector<std::pair<const Launched *, size_t>> running;
  for (size_t drawn = 0; drawn < tiles.size() || !running.empty();) {
    for (; running.size() < resident && drawn < tiles.size(); ++drawn)
      running.push_back({&tiles[drawn], 0});
    bool moves = false;
    for (size_t i = running.size(); i-- > 0;) {
      auto &[tile, at] = running[i];
      for (; at < tile->steps.size(); ++at, moves = true) {
        const Step &s = tile->steps[at];
        int &count = counts[{s.batch, s.head, s.m}];
        if (count != s.rank ||
            (s.trails && counts[{s.batch, s.head, s.m + 1}] != s.rank))
          break;
        ++count;
      }
    }
    moves |= std::erase_if(running, [](auto &of) {
               return of.second == of.first->steps.size();
             }) > 0;
    if (!moves)
      return std::to_string(resident) + " tiles wait for each other";
  }
  return "";
}

template <class Mods, int D>
std::string check(const Params<Config<Mods, D>> &p, Random &random) {
  using C = Config<Mods, D>;
  std::vector<Launched> tiles;
  const Launch<C> launch = {p, &tiles};
  emulation::launch<Launch<C>, plan<C>>(1, 32, launch);
  std::map<std::array<int, 3>, int> launched, counts;
  for (const Launched &tile : tiles) {
    if (++launched[{tile.batch, tile.head, tile.n}] > 1)
      return "a tile is launched twice";
    for (const Step &s : tile.steps)
      if (s.rank != counts[{s.batch, s.head, s.m}]++)
        return "head " + std::to_string(s.head) + ", block " +
               std::to_string(s.m) + ", tile " + std::to_string(tile.n) +
               ": rank " + std::to_string(s.rank);
  }
  const int columns = (p.keys + C::BN - 1) / C::BN;
  if (tiles.size() != size_t(columns) * p.heads * p.batch)
    return "tiles are missing";
  // The last kernel waits for so many.
  const int blocks = (p.queries + C::BM - 1) / C::BM;
  for (int batch = 0; batch < p.batch; ++batch)
    for (int head = 0; head < p.heads; ++head)
      for (int m = 0; m < blocks; ++m)
        if (const KeyRange seen = bwd_tiles<C>(p, batch, head, m);
            max(0, seen.end - seen.begin) != counts[{batch, head, m}])
          return "block " + std::to_string(m) + " is not complete";
  for (const Launched &tile : tiles)
    for (const Step &s : tile.steps)
      if (s.rank + 1 + s.after != counts[{s.batch, s.head, s.m}])
        return "head " + std::to_string(s.head) + ", block " +
               std::to_string(s.m) + ", tile " + std::to_string(tile.n) + ": " +
               std::to_string(s.after) + " add after it";
  for (size_t resident : {1, draw(random, 2, 200), 1 << 30})
    if (std::string problem = addInTurn(tiles, resident); !problem.empty())
      return problem;
  return "";
}

template <class Mods, int D> std::string checkOne(Random &random) {
  Params<Config<Mods, D>> p = {};
  const bool isLong = draw(random, 0, 7) == 0; // sections of few heads
  auto positions = [&] {
    return isLong ? draw(random, 5000, 17000) : draw(random, 1, 900);
  };
  const int group = draw(random, 0, 2) ? 1 : draw(random, 2, 4);
  p.batch = isLong ? 1 : draw(random, 1, 3);
  p.key_heads = draw(random, 1, isLong ? 6 : 40), p.heads = p.key_heads * group;
  p.queries = draw(random, 0, 9) ? positions() : 0, p.keys = positions();
  if (draw(random, 0, 1))
    p.keys = p.queries;
  p.causal_shift = p.keys - p.queries;
  if constexpr (std::is_base_of_v<Window, Mods>)
    p.args = {draw(random, 0, 1000), draw(random, 0, 1000)};
  return check<Mods, D>(p, random);
}
} // namespace

TEST(Order, RanksFollowTheLaunch) {
  constexpr std::string (*kChecks[])(Random &) = {
      checkOne<Full, 128>,     checkOne<Full, 64>,     checkOne<Full, 256>,
      checkOne<Triangle, 128>, checkOne<Triangle, 64>, checkOne<Triangle, 192>,
      checkOne<Window, 128>,   checkOne<Window, 64>,   checkOne<ByHead, 128>};
  for (int seed = 0; seed < 450; ++seed) {
    Random random(seed);
    ASSERT_EQ(kChecks[seed % std::size(kChecks)](random), "")
        << "of seed " << seed;
  }
}
