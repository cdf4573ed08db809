//===- Strided.cpp - copies between strided boxes -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops are ordered so that writes are sequential; an odometer over the
// outer dimensions drives an inner loop of fixed-size moves.
//
//===----------------------------------------------------------------------===//

#include "Exec/Strided.h"

#include <algorithm>
#include <cstring>

using namespace tessera;
using layout::Shape;

int64_t tessera::product(const Shape &sizes) {
  int64_t n = 1;
  for (int64_t size : sizes)
    n *= size;
  return n;
}

Shape tessera::rowMajor(const Shape &sizes) {
  Shape strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;
       stride *= std::max<int64_t>(sizes[i], 1))
    strides[i] = stride;
  return strides;
}

bool tessera::isDense(const Shape &sizes, const Shape &strides) {
  if (product(sizes) == 0)
    return true;
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0; expected *= sizes[i])
    if (sizes[i] != 1 && strides[i] != expected)
      return false;
  return true;
}

std::optional<Shape> tessera::reshapeStrides(const Shape &from,
                                             const Shape &strides,
                                             const Shape &to) {
  int64_t count = product(from);
  if (count != product(to))
    return std::nullopt;
  Shape result = rowMajor(to);
  if (count == 0)
    return result;
  // Match groups of dimensions with equal products; within a group the source
  // must be contiguous, and the target's strides follow from its last one.
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    size_t iBegin = i, jBegin = j;
    int64_t a = i < from.size() ? from[i++] : 1;
    int64_t b = j < to.size() ? to[j++] : 1;
    while (a != b) {
      if (a < b)
        a *= from[i++];
      else
        b *= to[j++];
    }
    int64_t last = 1, expected = 0;
    for (size_t k = i; k-- > iBegin;) {
      if (from[k] == 1)
        continue;
      if (expected == 0)
        last = expected = strides[k];
      else if (strides[k] != expected)
        return std::nullopt;
      expected *= from[k];
    }
    for (size_t k = j; k-- > jBegin; last *= to[k])
      result[k] = last;
  }
  return result;
}

CopyLoop::CopyLoop(int64_t elementBytes, const Shape &sizes,
                   const Shape &targetStrides, const Shape &sourceStrides) {
  unit = elementBytes;
  total = elementBytes * product(sizes);
  if (total == 0)
    return;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1)
      dims[rank++] = {sizes[i], targetStrides[i] * elementBytes,
                      sourceStrides[i] * elementBytes};
  normalize();
}

std::optional<CopyLoop> CopyLoop::between(int64_t elementBytes, const Shape &to,
                                          const Shape &targetStrides,
                                          const Shape &from,
                                          const Shape &sourceStrides) {
  if (product(to) == 0)
    return CopyLoop(elementBytes, to, targetStrides, targetStrides);
  // Both as digits at the borders of either, innermost first.
  struct Digit {
    int64_t size = 1, stride = 0;
  };
  Shape sizes, targets, sources;
  size_t t = to.size(), s = from.size();
  Digit target, source;
  for (;;) {
    while (target.size == 1 && t-- > 0)
      target = {to[t], targetStrides[t]};
    while (source.size == 1 && s-- > 0)
      source = {from[s], sourceStrides[s]};
    auto [size, other] = std::minmax({target.size, source.size});
    if (size == 1 || other % size != 0)
      break;
    if (!sizes.empty() && target.stride == targets.back() * sizes.back() &&
        source.stride == sources.back() * sizes.back()) {
      sizes.back() *= size;
    } else {
      sizes.push_back(size);
      targets.push_back(target.stride);
      sources.push_back(source.stride);
    }
    for (Digit *digit : {&target, &source})
      *digit = {digit->size / size, digit->stride * size};
  }
  if (target.size != 1 || source.size != 1 || sizes.size() > kMaxRank)
    return std::nullopt;
  return CopyLoop(elementBytes, sizes, targets, sources);
}

bool CopyLoop::repeat(int64_t count, int64_t targetStep, int64_t sourceStep) {
  if (rank == static_cast<int>(kMaxRank))
    return false;
  dims[rank++] = {count, targetStep, sourceStep};
  total *= count;
  normalize();
  return true;
}

void CopyLoop::normalize() {
  std::sort(dims.begin(), dims.begin() + rank, [](const Dim &a, const Dim &b) {
    return a.target != b.target ? a.target > b.target : a.source > b.source;
  });
  int kept = 0;
  for (int i = 0; i < rank; ++i) {
    Dim *outer = kept ? &dims[kept - 1] : nullptr;
    if (outer && outer->target == dims[i].target * dims[i].size &&
        outer->source == dims[i].source * dims[i].size)
      *outer = {outer->size * dims[i].size, dims[i].target, dims[i].source};
    else
      dims[kept++] = dims[i];
  }
  rank = kept;
  if (rank && dims[rank - 1].target == unit && dims[rank - 1].source == unit)
    unit *= dims[--rank].size;
}

template <typename T>
static void moveElements(std::byte *target, const std::byte *source,
                         int64_t count, int64_t targetStep,
                         int64_t sourceStep) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(target + i * targetStep, source + i * sourceStep, sizeof(T));
}

void CopyLoop::run(std::byte *target, const std::byte *source) const {
  if (total == 0)
    return;
  if (rank == 0) {
    std::memcpy(target, source, unit);
    return;
  }
  const Dim &inner = dims[rank - 1];
  std::array<int64_t, kMaxRank> index{};
  while (true) {
    switch (unit) {
    case 1:
      moveElements<uint8_t>(target, source, inner.size, inner.target,
                            inner.source);
      break;
    case 2:
      moveElements<uint16_t>(target, source, inner.size, inner.target,
                             inner.source);
      break;
    case 4:
      moveElements<uint32_t>(target, source, inner.size, inner.target,
                             inner.source);
      break;
    case 8:
      moveElements<uint64_t>(target, source, inner.size, inner.target,
                             inner.source);
      break;
    default:
      for (int64_t i = 0; i < inner.size; ++i)
        std::memcpy(target + i * inner.target, source + i * inner.source, unit);
    }
    int d = rank - 2;
    for (; d >= 0; --d) {
      target += dims[d].target;
      source += dims[d].source;
      if (++index[d] < dims[d].size)
        break;
      target -= dims[d].target * dims[d].size;
      source -= dims[d].source * dims[d].size;
      index[d] = 0;
    }
    if (d < 0)
      return;
  }
}
