//===- Machine.h - what moves and loops are priced with ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LAYOUT_MACHINE_H
#define TESSERA_LAYOUT_MACHINE_H

#include <cstdint>

namespace tessera::layout {

/// What every choice between ways to move and to compute is priced with. These
/// are an H200's, among eight of one host.
struct Machine {
  double latency = 5e-6;    ///< seconds of a phase, however little it moves
  double bandwidth = 300e9; ///< bytes a second of a device's link, each way
  double copy = 2000e9;     ///< bytes a second of a local copy
  double loops = 300e12;    ///< iterations a second of the loops of a product

  friend bool operator==(const Machine &, const Machine &) = default;

  /// Whether a move of so much costs its latency rather than its bytes. Such
  /// moves go together where they can (tv-merge-reshards).
  bool isSmall(int64_t bytes) const {
    return double(bytes) <= latency * bandwidth;
  }
};

} // namespace tessera::layout

#endif // TESSERA_LAYOUT_MACHINE_H
