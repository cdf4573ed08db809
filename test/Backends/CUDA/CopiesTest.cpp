//===- CopiesTest.cpp - the runtime's kernels beside the CPU's loops ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prepared launches, emulated, write the same bytes as CopyLoop and fold: any
// strides, element sizes, alignments, members and types.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Driver/Copies.h"
#include "Emulation.h"
#include "Exec/Fold.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <set>

using namespace tessera;
using namespace tessera::cuda;
using layout::Combiner;
using layout::Shape;

namespace {

void run(const RuntimeLaunches &launches) {
  for (const RuntimeLaunch &launch : launches.launches) {
    test::Emulated kernel = test::findEmulated(launch.kernel);
    ASSERT_TRUE(kernel.run) << launch.kernel;
    ASSERT_EQ(kernel.argumentBytes, launch.argument.size() * 8);
    kernel.run(launch.blocks, launch.argument.data());
  }
}

/// Bytes on a 64-byte line.
struct Buffer {
  explicit Buffer(size_t bytes, unsigned seed = 0) : words(bytes / 8 + 16) {
    std::mt19937_64 random(seed);
    for (size_t i = 0; i < bytes; ++i)
      data()[i] = std::byte(random());
  }
  std::byte *data() {
    auto address = reinterpret_cast<uintptr_t>(words.data());
    return reinterpret_cast<std::byte *>((address + 63) / 64 * 64);
  }
  std::vector<uint64_t> words;
};

/// Strides of a box in the order of `order`, outermost first, with gaps.
Shape stridesOf(const Shape &sizes, const std::vector<int> &order,
                std::mt19937 &random, bool gaps, int64_t &extent) {
  Shape strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride *= sizes[order[i]] + (gaps ? random() % 3 : 0);
  }
  extent = stride;
  return strides;
}

TEST(Copies, AnyBoxes) {
  std::mt19937 random(1);
  std::set<std::string> used;
  for (int n = 0; n < 3000; ++n) {
    const int64_t element = int64_t{1} << random() % 4;
    const int rank = random() % 5;
    Shape sizes(rank);
    for (int64_t &size : sizes)
      size = random() % 8 == 0    ? 16 + random() % 60
             : random() % 20 == 0 ? 0
                                  : 1 + random() % 6;
    std::vector<int> from(rank), to(rank);
    std::iota(from.begin(), from.end(), 0);
    to = from;
    std::shuffle(to.begin(), to.end(), random);
    if (random() % 2)
      std::shuffle(from.begin(), from.end(), random);
    int64_t sourceExtent, targetExtent;
    Shape source = stridesOf(sizes, from, random, random() % 2, sourceExtent);
    Shape target = stridesOf(sizes, to, random, random() % 2, targetExtent);
    if (std::max(sourceExtent, targetExtent) > 100000)
      continue;
    const int64_t sourceShift = element * (random() % 4 ? 0 : random() % 16);
    const int64_t targetShift = element * (random() % 4 ? 0 : random() % 16);
    Buffer data(element * sourceExtent + sourceShift, n);
    const size_t bytes = element * targetExtent + targetShift;
    Buffer expected(bytes, 77), got(bytes, 77);
    CopyLoop loop(element, sizes, target, source);
    loop.run(expected.data() + targetShift, data.data() + sourceShift);
    RuntimeLaunches launches(random() % 3);
    launches.copy(loop, got.data() + targetShift, data.data() + sourceShift);
    run(launches);
    for (const RuntimeLaunch &launch : launches.launches)
      used.insert(launch.kernel);
    ASSERT_EQ(std::memcmp(expected.data(), got.data(), bytes), 0)
        << "case " << n << ": " << testing::PrintToString(sizes) << " target "
        << testing::PrintToString(target) << " source "
        << testing::PrintToString(source) << " of " << element << " bytes";
  }
  // All of them were met.
  EXPECT_EQ(used.size(), 9u) << testing::PrintToString(used);
}

std::string kernelOf(int64_t element, const Shape &sizes, const Shape &target,
                     const Shape &source, int64_t shift = 0) {
  RuntimeLaunches launches(132);
  launches.copy(CopyLoop(element, sizes, target, source),
                reinterpret_cast<std::byte *>(0x10000),
                reinterpret_cast<std::byte *>(0x20000 + shift));
  EXPECT_EQ(launches.launches.size(), 1u);
  return launches.launches[0].kernel;
}

TEST(Copies, TheWidestWordsThatFit) {
  EXPECT_EQ(kernelOf(2, {64, 128}, {128, 1}, {256, 1}), "tessera_copy_16");
  EXPECT_EQ(kernelOf(2, {64, 100}, {100, 1}, {256, 1}), "tessera_copy_8");
  EXPECT_EQ(kernelOf(2, {64, 128}, {128, 1}, {256, 1}, 4), "tessera_copy_4");
  EXPECT_EQ(kernelOf(2, {64, 3}, {3, 1}, {7, 1}), "tessera_copy_2");
  EXPECT_EQ(kernelOf(2, {64, 64}, {1, 64}, {64, 1}), "tessera_transpose_2");
  EXPECT_EQ(kernelOf(4, {64, 64}, {64, 1}, {1, 64}), "tessera_transpose_4");
  EXPECT_EQ(kernelOf(4, {3, 64}, {64, 1}, {1, 3}), "tessera_copy_4");
}

TEST(Copies, BoxesOfMoreThanTwoToThe31Points) {
  // Not run: the parts together are the whole.
  RuntimeLaunches launches(132);
  const int64_t rows = int64_t{5} << 20, columns = 4097;
  launches.copy(CopyLoop(1, {rows, columns}, {columns, 1}, {2 * columns, 1}),
                reinterpret_cast<std::byte *>(0x10000),
                reinterpret_cast<std::byte *>(0x20000));
  EXPECT_EQ(launches.launches.size(), 16u);
  uint64_t next = 0x10000, points = 0;
  for (const RuntimeLaunch &launch : launches.launches) {
    EXPECT_EQ(launch.kernel, "tessera_copy_1");
    EXPECT_EQ(launch.argument[0], next);
    uint64_t count = static_cast<uint32_t>(launch.argument[2]);
    EXPECT_LT(count, uint64_t{1} << 31);
    next += count;
    points += count;
  }
  EXPECT_EQ(points, uint64_t(rows) * columns);
}

TEST(Copies, Fills) {
  std::mt19937 random(2);
  for (int n = 0; n < 500; ++n) {
    const int64_t element = int64_t{1} << random() % 4;
    const int rank = random() % 4;
    Shape sizes(rank);
    for (int64_t &size : sizes)
      size = random() % 12 == 0 ? 0 : 1 + random() % 9;
    std::vector<int> order(rank);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    int64_t extent;
    Shape target = stridesOf(sizes, order, random, random() % 2, extent);
    const int64_t shift = element * (random() % 5);
    const size_t bytes = element * extent + shift;
    Buffer value(8, n), expected(bytes, 77), got(bytes, 77);
    CopyLoop loop(element, sizes, target, Shape(rank, 0));
    loop.run(expected.data() + shift, value.data());
    RuntimeLaunches launches(2);
    launches.fill(loop, got.data() + shift, value.data(), element);
    run(launches);
    ASSERT_EQ(std::memcmp(expected.data(), got.data(), bytes), 0)
        << "case " << n << ": " << testing::PrintToString(sizes) << " target "
        << testing::PrintToString(target) << " of " << element << " bytes";
  }
}

TEST(Copies, FoldsAreTheCPUsBitByBit) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (DType dtype :
       {DType::F64, DType::F32, DType::BF16, DType::F16, DType::I64, DType::I32,
        DType::U32, DType::I8, DType::U8, DType::I1})
    for (Combiner combiner : {Combiner::Sum, Combiner::Max, Combiner::Min}) {
      if (!canFold(dtype, combiner))
        continue;
      for (int members : {1, 2, 3, 8, 128})
        for (int64_t count : {0, 1, 7, 16, 1000})
          for (int64_t shift : {0, 1}) {
            const int64_t bytes = info(dtype).bytes;
            std::vector<Buffer> buffers;
            std::vector<const std::byte *> sources;
            for (int m = 0; m < members; ++m) {
              Buffer &buffer =
                  buffers.emplace_back((count + shift) * bytes, random());
              for (int64_t i = 0; i < count + shift; ++i) {
                if (!info(dtype).isFloat) {
                  if (dtype == DType::I1)
                    buffer.data()[i] = std::byte(random() % 2);
                  continue;
                }
                double value = normal(random) * std::exp2(int(random() % 30));
                if (random() % 50 == 0)
                  value = random() % 2
                              ? std::numeric_limits<double>::quiet_NaN()
                              : std::numeric_limits<double>::infinity();
                convertElement(&value, DType::F64, buffer.data() + i * bytes,
                               dtype);
              }
            }
            for (Buffer &buffer : buffers)
              sources.push_back(buffer.data() + shift * bytes);
            const size_t size = (count + shift) * bytes;
            Buffer expected(size, 77), got(size, 77);
            tessera::fold(dtype, combiner, sources, count,
                          expected.data() + shift * bytes);
            RuntimeLaunches launches(2);
            Status status = launches.fold(dtype, combiner, sources, count,
                                          got.data() + shift * bytes);
            ASSERT_TRUE(status) << status.message();
            run(launches);
            for (int64_t i = 0; i < count + shift; ++i) {
              const std::byte *a = expected.data() + i * bytes,
                              *b = got.data() + i * bytes;
              double x = 0, y = 0;
              if (info(dtype).isFloat) {
                convertElement(a, dtype, &x, DType::F64);
                convertElement(b, dtype, &y, DType::F64);
              }
              if (x != x && y != y)
                continue; // which NaN is the machine's choice
              ASSERT_EQ(std::memcmp(a, b, bytes), 0)
                  << info(dtype).name << " " << layout::toString(combiner)
                  << " of " << members << ", element " << i << " of " << count;
            }
            // Onto a member.
            if (count) {
              auto *onto = const_cast<std::byte *>(sources.back());
              RuntimeLaunches inPlace(2);
              ASSERT_TRUE(inPlace.fold(dtype, combiner, sources, count, onto));
              run(inPlace);
              EXPECT_EQ(
                  std::memcmp(onto, got.data() + shift * bytes, count * bytes),
                  0);
            }
          }
    }
  std::vector<const std::byte *> many(129);
  RuntimeLaunches launches(2);
  Status status = launches.fold(DType::F32, Combiner::Sum, many, 4, nullptr);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.message(), "a reduction over 129 ranks; at most 128 are "
                              "supported on GPUs");
}

} // namespace
