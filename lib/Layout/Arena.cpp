//===- Arena.cpp - memory of temporaries ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The largest first, each at the lowest offset where it meets none of those
// placed before that live at the same time.
//
//===----------------------------------------------------------------------===//

#include "Layout/Arena.h"

#include <algorithm>
#include <numeric>

using namespace tessera;
using namespace tessera::layout;

int64_t layout::assignOffsets(std::vector<Lifetime> &buffers,
                              int64_t alignment) {
  std::vector<size_t> bySize(buffers.size());
  std::iota(bySize.begin(), bySize.end(), 0);
  std::sort(bySize.begin(), bySize.end(), [&](size_t a, size_t b) {
    return buffers[a].bytes != buffers[b].bytes
               ? buffers[a].bytes > buffers[b].bytes
               : a < b;
  });
  std::vector<Lifetime> placed; // by offset; copies: they are read in a row
  int64_t end = 0;
  for (size_t i : bySize) {
    Lifetime &buffer = buffers[i];
    if (buffer.bytes == 0)
      continue;
    const int64_t bytes =
        (buffer.bytes + alignment - 1) / alignment * alignment;
    int64_t offset = 0;
    for (const Lifetime &other : placed) {
      if ((other.last < buffer.first) | (buffer.last < other.first))
        continue;
      if (offset + bytes <= other.offset)
        break;
      int64_t after = other.offset + other.bytes;
      offset =
          std::max(offset, (after + alignment - 1) / alignment * alignment);
    }
    buffer.offset = offset;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), buffer,
                                   [](const Lifetime &a, const Lifetime &b) {
                                     return a.offset < b.offset;
                                   }),
                  buffer);
    end = std::max(end, offset + bytes);
  }
  return end;
}
