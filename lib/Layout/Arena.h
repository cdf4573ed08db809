//===- Arena.h - memory of temporaries ------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LAYOUT_ARENA_H
#define TESSERA_LAYOUT_ARENA_H

#include <cstdint>
#include <vector>

namespace tessera::layout {

/// What offsets are multiples of.
inline constexpr int64_t kHostAlignment = 64;
inline constexpr int64_t kDeviceAlignment = 256;

/// A buffer that is needed from step `first` to step `last`, both included.
struct Lifetime {
  int64_t bytes;
  int64_t first, last;
  int64_t offset = 0;
};

/// Gives each buffer an offset such that buffers alive together do not overlap,
/// and returns the bytes needed. Equal lists get equal offsets.
int64_t assignOffsets(std::vector<Lifetime> &buffers, int64_t alignment);

} // namespace tessera::layout

#endif // TESSERA_LAYOUT_ARENA_H
