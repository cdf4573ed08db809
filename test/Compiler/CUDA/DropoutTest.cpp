//===- DropoutTest.cpp - which weights of attention stay ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attention_dropout.cuh on the host: what each lane of a warp is told of its
// part of a fragment, of queries or of keys, wherever numbers begin among
// eight, is what the interpreter says of each weight by itself.
//
//===----------------------------------------------------------------------===//

#include "Emulation.h"
#include "OnHost.h"

#include <string>

#include "attention/attention_dropout.cuh"

#include "Interpreter/Ops/Evaluators.h"

#include "gtest/gtest.h"

using namespace tessera;

namespace {
/// Three of ten weights are dropped.
template <bool InEights> struct Dropped : AttentionMods {
  static constexpr bool HasDropout = true, KeysInEights = InEights;
  static constexpr uint32 DropBelow = 19661; // ceil(0.3 * 2^16)
};
constexpr WeightStream kStream = {0x123456789abcdef0, 0xfedcba9876543210};

/// A fragment's first query and key, among those of all heads before. In turn:
/// three devices have blocks of 8 queries, two have blocks of 16 keys.
struct Fragment {
  int64_t before;
  int query, key, keys;
  std::string *wrong;
  bool inTurn = false;

  int64_t number(int query, int key) const {
    if (inTurn) {
      query = query / 8 * 24 + 8 + query % 8;
      key = key / 16 * 32 + 16 + key % 16;
    }
    return before + int64_t(query) * keys + key;
  }
  void expect(bool kept, int query, int key) const {
    const double drawn = interp::randomNumber(kStream.seed, kStream.stream,
                                              number(query, key), 16);
    if (kept != (drawn >= 0.3))
      *wrong += " " + std::to_string(query) + "," + std::to_string(key);
  }
};

/// The row and the column of a fragment that a thread's element i is in, from
/// its first ones (ptx.cuh).
int rowOf(int i) { return i / 2 % 2 * 8; }
int columnOf(int i) { return i / 4 * 8 + i % 2; }
} // namespace

/// As attention_fwd.cuh.
template <class Mods, int N> void queriesKernel(Fragment of) {
  const int lane = threadIdx.x % 32;
  const int row = of.query + threadIdx.x / 32 * 16 + lane / 4;
  KeptOfQueries<Mods, N> kept;
  kept.draw(kStream, of.number(kept.own(row), 0) + of.key);
  for (int i = 0; i < N / 2; ++i)
    of.expect(kept.has(i), row + rowOf(i), of.key + lane % 4 * 2 + columnOf(i));
}

/// As attention_bwd.cuh.
template <class Mods, int N> void keysKernel(Fragment of) {
  const int lane = threadIdx.x % 32;
  const int key = of.key + threadIdx.x / 32 * 16 + lane / 4;
  KeptOfKeys<Mods, N> kept;
  const int query = kept.own_query(of.query), first = kept.own_key(key);
  const int64_t number = of.number(query, first);
  kept.draw(kStream, number,
            [&](int i) { return of.number(query + i, first) - number; });
  for (int i = 0; i < N / 2; ++i)
    of.expect(kept.has(i), of.query + lane % 4 * 2 + columnOf(i),
              key + rowOf(i));
}

/// Of so many keys, and weights before.
template <class Mods> void expectKept(int keys, int64_t before) {
  std::string wrong;
  Fragment of = {before, 64, 128, keys, &wrong};
  auto run = [&]<void (*kernel)(Fragment)>(const char *name) {
    wrong.clear();
    emulation::launch<Fragment, kernel>(1, 128, of);
    EXPECT_EQ(wrong, "") << name << " of " << keys << " keys behind " << before;
  };
  run.template operator()<queriesKernel<Mods, 64>>("64 keys");
  run.template operator()<queriesKernel<Mods, 80>>("80 keys");
  run.template operator()<queriesKernel<Mods, 96>>("96 keys");
  run.template operator()<queriesKernel<Mods, 112>>("112 keys");
  run.template operator()<queriesKernel<Mods, 128>>("128 keys");
  for (bool inTurn : {false, true}) {
    of.inTurn = inTurn;
    run.template operator()<keysKernel<Mods, 64>>("64 queries");
    run.template operator()<keysKernel<Mods, 128>>("128 queries");
  }
}

TEST(Dropout, FragmentsAreToldOfTheirWeights) {
  // Counters beyond 32 bits; the last before a carry in one.
  for (int64_t heads :
       {int64_t(0), int64_t(1) << 34, (int64_t(1) << 34) - 32768})
    for (int keys : {400, 401, 402, 403, 404, 405, 406, 407}) {
      // A head begins anywhere, too, where its queries are no multiple of 8.
      const int64_t before = heads + 3 * keys;
      expectKept<Dropped<false>>(keys, before);
      if (keys % 8 == 0)
        expectKept<Dropped<true>>(keys, before);
    }
}
