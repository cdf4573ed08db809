//===- attention_trap.cuh - attention, backward: waits for a turn ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ordered, tiles wait for each other. With TESSERA_TRAP_WAITS, a wait that has
// looked at its counter so often (1: 2^23 times) ends all waits: the main
// kernel goes on in any order, and `finish` prints which wait had no end, and
// traps. (The main kernel itself does not print: with a call in it, ptxas
// serialises all products.)
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ATTENTION_TRAP_CUH
#define TESSERA_KERNELS_ATTENTION_TRAP_CUH

#include "base/ptx.cuh"

#if defined(TESSERA_TRAP_WAITS) && !defined(__CUDACC_RTC__)
#include <cstdio> // NVRTC knows printf
#endif

/// Of a BwdWait, for printf. A tile of -1 is finish's, which waits for all.
#define TESSERA_ENDLESS_WAIT                                                   \
  "tessera: a wait for a turn to add gradients has no end: batch %d, head "    \
  "%d, block of queries %d (from query %d on), tile of keys %d (from key %d "  \
  "on) waits for rank %d, but the counter has %d\n"

namespace tessera {

/// A tile of keys at a block of queries, of which the counter has seen as many
/// tiles.
struct BwdWait {
  int batch, head, m, query, n, key, rank, count;
};

#ifdef TESSERA_TRAP_WAITS

constexpr bool kTraps = true;
constexpr int kEndlessLooks =
    TESSERA_TRAP_WAITS > 1 ? TESSERA_TRAP_WAITS : 1 << 23;

/// The wait without an end, if there is one.
struct BwdTrap {
  int over;  // there is: nothing waits any more
  int first; // ticket of the tile that was launched first of those that wait
  int taken, known, told;
  BwdWait wait;
};
static __device__ BwdTrap bwd_trap = {0, 0x7fffffff};

/// Until is_there(counter); or some wait is without an end.
template <class F>
TSR_DEVICE void wait_or_trap(int const *counter, BwdWait wait, int ticket,
                             F is_there) {
  for (int looks = 0; !is_there(wait.count = load_relaxed(counter)); looks++) {
    if (looks % 64 != 0)
      continue;
    if (looks >= kEndlessLooks)
      store_relaxed(&bwd_trap.over, 1);
    if (!load_relaxed(&bwd_trap.over))
      continue;
    // Others wait for what waits without an end. Tiles should wait for those
    // launched before them alone, so the first of all is to blame. It must have
    // waited for long: one that has not may be about to go on.
    if (looks < kEndlessLooks / 2)
      return;
    atomicMin(&bwd_trap.first, ticket);
    int first = ticket;
    // Until all of them are here, which look every 64th time. (The condition
    // makes each load wait for the one before.)
    for (int i = 0; i < 1000 && first >= 0; i++)
      first = load_relaxed(&bwd_trap.first);
    if (first == ticket && !atomicExch(&bwd_trap.taken, 1)) {
      bwd_trap.wait = wait;
      fence_release();
      store_relaxed(&bwd_trap.known, 1);
    }
    return;
  }
}

/// The number of a tile in the order of launch.
struct BwdTicket {
  int ticket;
  TSR_MEMBER void number(int id) { ticket = id; }
  TSR_MEMBER void number(BwdTicket const &tile) { ticket = tile.ticket; }
};
/// Waits at the step that it was told, for that block of queries or one so many
/// blocks behind it.
template <class Step> struct BwdTurn {
  Step step;
  TSR_MEMBER void tell(Step const &now) { step = now; }
  TSR_MEMBER void wait(int const *turn, int rank, int behind = 0) {
    Step at = step;
    at.m += behind;
    const BwdWait wait = {at.batch, at.head,        at.m, at.first_query(),
                          at.n,     at.first_key(), rank};
    wait_or_trap(turn, wait, at.ticket,
                 [=](int count) { return count == rank; });
  }
};
/// Of finish: for all tiles of a block of queries.
TSR_DEVICE void wait_for_tiles(int const *turn, int count, int batch, int head,
                               int m, int query) {
  wait_or_trap(turn, {batch, head, m, query, -1, -1, count}, 0x7fffffff,
               [=](int added) { return added >= count; });
  fence_acquire();
}
TSR_DEVICE void trap_if_endless() {
  if (!load_relaxed(&bwd_trap.known) || atomicExch(&bwd_trap.told, 1))
    return;
  fence_acquire();
  const BwdWait at = bwd_trap.wait;
  printf(TESSERA_ENDLESS_WAIT, at.batch, at.head, at.m, at.query, at.n, at.key,
         at.rank, at.count);
  __trap();
}

#else

constexpr bool kTraps = false;
struct BwdTicket {
  TSR_MEMBER void number(int) {}
  TSR_MEMBER void number(BwdTicket const &) {}
};
template <class Step> struct BwdTurn {
  TSR_MEMBER void tell(Step const &) {}
  TSR_MEMBER void wait(int const *turn, int rank, int = 0) {
    while (load_relaxed(turn) != rank) {
    }
  }
};
TSR_DEVICE void wait_for_tiles(int const *turn, int count, int, int, int, int) {
  while (load_acquire(turn) < count) {
  }
}
TSR_DEVICE void trap_if_endless() {}

#endif

} // namespace tessera

#endif // TESSERA_KERNELS_ATTENTION_TRAP_CUH
