//===- Copies.cpp - prepared launches of the runtime's kernels ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A box is moved in words as wide as its strides and addresses allow. Indices
// of points have 31 bits, so that a kernel divides by multiplying; a larger box
// is cut. Where the words that are neighbours in the target are not in the
// source, but others are, tiles go through shared memory.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Driver/Copies.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace tessera;
using namespace tessera::cuda;

//===----------------------------------------------------------------------===//
// Arguments: the structs of Kernels/cuda/base/runtime.cu
//===----------------------------------------------------------------------===//

namespace {

constexpr size_t kMaxLoops = kMaxRank + 1;
constexpr size_t kMaxMembers = 128;
constexpr size_t kMaxIndices = 4;

struct Loop {
  uint32_t size, magic, shift, unused;
  int64_t target, source;
};

struct CopyArguments {
  std::byte *target;
  const std::byte *source;
  uint32_t count, rank;
  Loop loops[kMaxLoops];
};

struct TransposeArguments {
  std::byte *target;
  const std::byte *source;
  uint32_t tiles, rank;
  uint32_t rows, columns;
  int64_t column, row;
  Loop loops[kMaxLoops];
};

struct FillArguments {
  std::byte *target;
  uint32_t count, rank;
  alignas(16) std::byte value[16];
  Loop loops[kMaxLoops];
};

struct FetchArguments {
  std::byte *target;
  uint64_t rowBytes, block;
  uint32_t places, placeRank;
  uint32_t words, rowRank;
  uint32_t lanes;
  uint32_t indices, wide, unused;
  const std::byte *at[kMaxIndices];
  uint64_t extents[kMaxIndices];
  int64_t strides[kMaxLoops][kMaxIndices];
  Loop place[kMaxLoops], row[kMaxLoops];
  const std::byte *rows[kMaxMembers];
};

struct FoldArguments {
  std::byte *target;
  uint64_t count;
  uint32_t members;
  uint32_t wide;
  const std::byte *sources[kMaxMembers];
};

using Dim = CopyLoop::Dim;

/// A loop whose index n / size is n * magic >> shift for n < 2^31: with
/// 2^(s-1) < size <= 2^s the error of magic / 2^(31+s) is below 1 / size / n.
Loop loopOf(const Dim &dim) {
  const uint32_t size = dim.size;
  const uint32_t shift = 31 + std::bit_width(size - 1);
  const uint64_t magic = ((uint64_t{1} << shift) + size - 1) / size;
  return {size, static_cast<uint32_t>(magic), shift, 0, dim.target, dim.source};
}

uint64_t pointsOf(const std::vector<Dim> &dims) {
  uint64_t points = 1;
  for (const Dim &dim : dims)
    points *= dim.size;
  return points;
}

template <typename Arguments>
RuntimeLaunch launchOf(std::string kernel, unsigned blocks,
                       const Arguments &arguments) {
  static_assert(sizeof(Arguments) % sizeof(uint64_t) == 0);
  RuntimeLaunch launch{std::move(kernel), blocks, {}};
  launch.argument.resize(sizeof(Arguments) / sizeof(uint64_t));
  std::memcpy(launch.argument.data(), &arguments, sizeof(Arguments));
  return launch;
}

/// The widest word, in bytes, that addresses and strides are multiples of.
int64_t wordOf(const std::vector<Dim> &dims, int64_t unit,
               const std::byte *target, const std::byte *source) {
  uint64_t bits = 16 | unit | reinterpret_cast<uintptr_t>(target) |
                  reinterpret_cast<uintptr_t>(source);
  for (const Dim &dim : dims)
    bits |= dim.target | dim.source;
  return bits & -bits;
}

/// Calls `body(dims, target, source)` for parts with fewer than 2^31 points.
template <typename Body>
void inParts(std::vector<Dim> dims, std::byte *target, const std::byte *source,
             const Body &body) {
  if (pointsOf(dims) < uint64_t{1} << 31)
    return body(dims, target, source);
  auto largest = std::max_element(
      dims.begin(), dims.end(),
      [](const Dim &a, const Dim &b) { return a.size < b.size; });
  const int64_t size = largest->size, half = size / 2;
  largest->size = half;
  inParts(dims, target, source, body);
  largest->size = size - half;
  inParts(dims, target + half * largest->target,
          source + half * largest->source, body);
}

template <typename Arguments>
void setLoops(Arguments &arguments, const std::vector<Dim> &dims) {
  arguments.rank = dims.size();
  std::transform(dims.begin(), dims.end(), arguments.loops, loopOf);
}

/// The loop to transpose with the last one: its words are neighbours in the
/// source, the last one's only in the target. -1 if that is not so, or too
/// short for tiles to pay.
int transposed(const std::vector<Dim> &dims, int64_t word) {
  constexpr int64_t kShortest = 16;
  const Dim &last = dims.back();
  if (last.target != word || last.source == word || last.size < kShortest)
    return -1;
  for (size_t d = 0; d + 1 < dims.size(); ++d)
    if (dims[d].source == word && dims[d].size >= kShortest)
      return d;
  return -1;
}

} // namespace

unsigned RuntimeLaunches::blocksFor(uint64_t items) const {
  // More than fit on a GPU at once, for the tail's sake.
  const uint64_t most = std::max(processors, 1) * 16;
  return std::clamp<uint64_t>(items, 1, most);
}

static uint64_t ceilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

void RuntimeLaunches::copy(const CopyLoop &loop, std::byte *target,
                           const std::byte *source) {
  if (loop.bytes() == 0)
    return;
  std::vector<Dim> all(loop.loops().begin(), loop.loops().end());
  const int64_t word = wordOf(all, loop.unitBytes(), target, source);
  if (loop.unitBytes() > word || all.empty())
    all.push_back({loop.unitBytes() / word, word, word});
  auto part = [&](std::vector<Dim> dims, std::byte *target,
                  const std::byte *source) {
    const std::string suffix = std::to_string(word);
    const int other = transposed(dims, word);
    if (other < 0) {
      CopyArguments arguments{};
      arguments.target = target;
      arguments.source = source;
      arguments.count = pointsOf(dims);
      setLoops(arguments, dims);
      const uint64_t aBlock = 4 * RuntimeLaunch::kThreads;
      launches.push_back(launchOf("tessera_copy_" + suffix,
                                  blocksFor(ceilDiv(arguments.count, aBlock)),
                                  arguments));
      return;
    }
    const int64_t tile = word <= 2 ? 64 : 32;
    const Dim rows = dims.back(), columns = dims[other];
    TransposeArguments arguments{};
    arguments.target = target;
    arguments.source = source;
    arguments.rows = rows.size;
    arguments.columns = columns.size;
    arguments.column = columns.target;
    arguments.row = rows.source;
    dims.pop_back();
    dims.erase(dims.begin() + other);
    for (const Dim &dim : {rows, columns})
      dims.push_back({static_cast<int64_t>(ceilDiv(dim.size, tile)),
                      dim.target * tile, dim.source * tile});
    arguments.tiles = pointsOf(dims);
    setLoops(arguments, dims);
    launches.push_back(launchOf("tessera_transpose_" + suffix,
                                blocksFor(arguments.tiles), arguments));
  };
  inParts(std::move(all), target, source, part);
}

void RuntimeLaunches::fill(const CopyLoop &loop, std::byte *target,
                           const std::byte *value, int64_t elementBytes) {
  if (loop.bytes() == 0)
    return;
  std::vector<Dim> all(loop.loops().begin(), loop.loops().end());
  for (Dim &dim : all)
    dim.source = 0;
  int64_t run = loop.unitBytes();
  if (!all.empty() && all.back().target == run) {
    run *= all.back().size;
    all.pop_back();
  }
  // At least an element, as addresses are aligned to those.
  const int64_t word =
      std::max(wordOf(all, run, target, nullptr), elementBytes);
  if (run > word || all.empty())
    all.push_back({run / word, word, 0});
  inParts(
      std::move(all), target, nullptr,
      [&](const std::vector<Dim> &dims, std::byte *target, const std::byte *) {
        FillArguments arguments{};
        arguments.target = target;
        arguments.count = pointsOf(dims);
        for (size_t i = 0; i < sizeof arguments.value; ++i)
          arguments.value[i] = value[i % elementBytes];
        setLoops(arguments, dims);
        launches.push_back(launchOf(
            "tessera_fill_" + std::to_string(word),
            blocksFor(ceilDiv(arguments.count, RuntimeLaunch::kThreads)),
            arguments));
      });
}

Status RuntimeLaunches::fold(DType dtype, layout::Combiner combiner,
                             std::span<const std::byte *const> members,
                             int64_t count, std::byte *target) {
  if (members.size() > kMaxMembers)
    return Error{"a reduction over " + std::to_string(members.size()) +
                 " ranks; at most " + std::to_string(kMaxMembers) +
                 " are supported on GPUs"};
  if (count == 0)
    return Ok{};
  FoldArguments arguments{};
  arguments.target = target;
  arguments.count = count;
  arguments.members = members.size();
  uintptr_t bits = reinterpret_cast<uintptr_t>(target);
  for (size_t i = 0; i < members.size(); ++i) {
    arguments.sources[i] = members[i];
    bits |= reinterpret_cast<uintptr_t>(members[i]);
  }
  arguments.wide = bits % 16 == 0;
  const std::string type = dtype == DType::I1 ? "u8" : info(dtype).name;
  const uint64_t aThread =
      arguments.wide ? 16 / std::max<uint64_t>(info(dtype).bytes, 2) : 1;
  launches.push_back(launchOf(
      std::string("tessera_") + layout::toString(combiner) + "_" + type,
      blocksFor(ceilDiv(count, aThread * RuntimeLaunch::kThreads)), arguments));
  return Ok{};
}

Status RuntimeLaunches::fetch(const FetchPlan &plan,
                              std::span<const std::byte *const> members,
                              std::span<const std::byte *const> indices,
                              std::byte *result) {
  if (members.size() > kMaxMembers || indices.size() > kMaxIndices)
    return Error{"rows of " + std::to_string(members.size()) + " ranks by " +
                 std::to_string(indices.size()) + " indices; at most " +
                 std::to_string(kMaxMembers) + " and " +
                 std::to_string(kMaxIndices) + " are supported on GPUs"};
  const int64_t places = plan.wanted(), bytes = plan.rowBytes();
  if (places == 0 || bytes == 0)
    return Ok{};
  const CopyLoop loop = plan.unpack();
  std::vector<Dim> row(loop.loops().begin(), loop.loops().end());
  int64_t unit = loop.unitBytes() | bytes;
  for (int64_t stride : plan.placeStrides)
    unit |= stride;
  for (const std::byte *member : members)
    unit |= reinterpret_cast<uintptr_t>(member);
  const int64_t word = wordOf(row, unit, result, nullptr);
  if (loop.unitBytes() > word || row.empty())
    row.push_back({loop.unitBytes() / word, word, word});
  const uint64_t words = bytes / word;
  if (uint64_t(places) >> 31 || words >> 31)
    return Error{std::to_string(places) + " rows of " + std::to_string(bytes) +
                 " bytes are too many on GPUs, or too large"};

  FetchArguments arguments{};
  arguments.target = result;
  arguments.rowBytes = bytes;
  arguments.block = plan.block;
  arguments.places = places;
  arguments.placeRank = plan.places.size();
  arguments.words = words;
  arguments.rowRank = row.size();
  std::ranges::transform(row, arguments.row, loopOf);
  arguments.lanes = std::min<uint64_t>(std::bit_ceil(words), 32);
  arguments.indices = indices.size();
  arguments.wide = plan.indices[0].isWide;
  for (size_t d = 0; d < plan.places.size(); ++d)
    arguments.place[d] = loopOf({plan.places[d], plan.placeStrides[d], 0});
  for (size_t k = 0; k < indices.size(); ++k) {
    arguments.at[k] = indices[k];
    arguments.extents[k] = plan.extents[k];
    for (size_t d = 0; d < plan.places.size(); ++d)
      arguments.strides[d][k] = plan.indices[k].strides[d];
  }
  std::ranges::copy(members, arguments.rows);
  launches.push_back(launchOf(
      "tessera_fetch_" + std::to_string(word),
      blocksFor(ceilDiv(places, RuntimeLaunch::kThreads / arguments.lanes)),
      arguments));
  return Ok{};
}
