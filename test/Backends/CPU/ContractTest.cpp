//===- ContractTest.cpp - products of tensors against plain loops ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends/CPU/Contract.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <thread>

using namespace tessera;

// OpenBLAS's, of which Contract.cpp makes what threads can share.
extern "C" {
void *blas_memory_alloc(int position);
void blas_memory_free(void *buffer);
}

namespace {

using Labels = std::vector<int32_t>;

/// A tensor with its dimensions anywhere in memory, and gaps if asked for.
struct Tensor {
  DType dtype;
  Labels labels;
  std::vector<int64_t> sizes, strides;
  std::vector<double> memory;

  Tensor(DType dtype, Labels labels, const std::map<int32_t, int64_t> &extents,
         std::mt19937 &random, bool gaps)
      : dtype(dtype), labels(std::move(labels)) {
    for (int32_t label : this->labels)
      sizes.push_back(extents.at(label));
    std::vector<int> order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    strides.resize(sizes.size());
    int64_t stride = gaps && random() % 2 ? 2 : 1;
    for (int d : order) {
      strides[d] = stride;
      stride *= std::max<int64_t>(sizes[d], 1) + (gaps ? random() % 3 : 0);
    }
    memory.assign(stride * 8 / 8 + 8, std::nan(""));
  }
  std::byte *data() { return reinterpret_cast<std::byte *>(memory.data()); }
  std::byte *at(const std::map<int32_t, int64_t> &index) {
    int64_t offset = 0;
    for (size_t d = 0; d < labels.size(); ++d)
      offset += index.at(labels[d]) * strides[d];
    return data() + offset * info(dtype).bytes;
  }
  double get(const std::map<int32_t, int64_t> &index) {
    double value;
    convertElement(at(index), dtype, &value, DType::F64);
    return value;
  }
  Contract::Operand operand() const { return {dtype, sizes, strides, labels}; }
};

void forEach(const Labels &labels, const std::map<int32_t, int64_t> &extents,
             const std::function<void(const std::map<int32_t, int64_t> &)> &f,
             std::map<int32_t, int64_t> index = {}) {
  if (index.size() == labels.size())
    return f(index);
  int32_t label = labels[index.size()];
  for (int64_t i = 0; i < extents.at(label); ++i) {
    index[label] = i;
    forEach(labels, extents, f, index);
    index.erase(label);
  }
}

struct Types {
  DType a, b, c;
};

void check(Types types, Labels a, Labels b, Labels c,
           std::map<int32_t, int64_t> extents, std::mt19937 &random,
           bool gaps) {
  for (Labels *labels : {&a, &b, &c})
    std::shuffle(labels->begin(), labels->end(), random);
  Tensor ta(types.a, a, extents, random, gaps);
  Tensor tb(types.b, b, extents, random, gaps);
  Tensor tc(types.c, c, extents, random, gaps);
  // Small integers: products and sums are exact in every type.
  const bool adds = random() % 2;
  for (Tensor *tensor : {&ta, &tb, &tc})
    if (tensor != &tc || adds)
      forEach(tensor->labels, extents, [&](const auto &index) {
        double value = int(random() % 5) - 2;
        convertElement(&value, DType::F64, tensor->at(index), tensor->dtype);
      });
  Result<Contract> contract =
      Contract::create(ta.operand(), tb.operand(), tc.operand());
  ASSERT_TRUE(contract) << contract.message();
  std::vector<double> scratch(contract->scratchBytes() / 8 + 1, std::nan(""));
  Tensor before = tc;
  contract->run(ta.data(), tb.data(), tc.data(),
                reinterpret_cast<std::byte *>(scratch.data()), adds);

  Labels sums;
  for (auto [label, size] : extents)
    if (std::find(c.begin(), c.end(), label) == c.end())
      sums.push_back(label);
  int wrong = 0;
  forEach(c, extents, [&](const auto &index) {
    double expected = adds ? before.get(index) : 0;
    forEach(sums, extents, [&](const auto &inner) {
      std::map<int32_t, int64_t> all = index;
      all.insert(inner.begin(), inner.end());
      expected += ta.get(all) * tb.get(all);
    });
    wrong += tc.get(index) != expected;
  });
  EXPECT_EQ(wrong, 0) << testing::PrintToString(a) << testing::PrintToString(b)
                      << testing::PrintToString(c)
                      << testing::PrintToString(extents) << info(types.a).name;
}

const Types kF32{DType::F32, DType::F32, DType::F32};
const Types kTypes[] = {kF32,
                        {DType::F64, DType::F64, DType::F64},
                        {DType::BF16, DType::BF16, DType::BF16},
                        {DType::F16, DType::F16, DType::F32},
                        {DType::F32, DType::BF16, DType::F16}};

TEST(Contract, RanksOfOneProcessMultiplyAtOnce) {
  constexpr int ranks = 2, rounds = 1000;
  constexpr int64_t n = 48;
  std::atomic<int> arrived = 0; // spun on, so that they start together
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const int64_t sizes[] = {n, n}, strides[] = {n, 1};
      const int32_t al[] = {0, 2}, bl[] = {2, 1}, cl[] = {0, 1};
      auto operand = [&](const int32_t(&labels)[2]) {
        return Contract::Operand{DType::F32, sizes, strides, labels};
      };
      Contract contract =
          *Contract::create(operand(al), operand(bl), operand(cl));
      // All elements of a are the rank's number, of b 1.
      std::vector<float> a(n * n, rank + 1), b(n * n, 1), c(n * n);
      auto bytes = [](std::vector<float> &v) {
        return reinterpret_cast<std::byte *>(v.data());
      };
      for (int round = 0; round < rounds; ++round) {
        ++arrived;
        while (arrived < ranks * (round + 1))
          ;
        contract.run(bytes(a), bytes(b), bytes(c), nullptr);
        for (float value : c)
          wrong += value != n * (rank + 1);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Contract, ThreadsHavePackingBuffersOfTheirOwn) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 1; thread <= 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 1000000; ++round) {
        auto *buffer = static_cast<std::atomic<int> *>(blas_memory_alloc(0));
        *buffer = thread;
        for (int i = 0; i < 8; ++i)
          wrong += *buffer != thread;
        blas_memory_free(buffer);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Contract, AllOrdersOfMemory) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i)
    for (const Types &types : kTypes)
      check(types, {0, 2}, {2, 1}, {0, 1}, {{0, 5}, {1, 7}, {2, 4}}, random,
            i % 2);
}

TEST(Contract, SeveralLabelsOfEachKind) {
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    std::map<int32_t, int64_t> extents;
    for (int32_t label = 0; label < 8; ++label)
      extents[label] = 1 + random() % 3;
    // 0, 1 batches; 2, 3 rows; 4, 5 columns; 6, 7 contracted
    check(kTypes[i % 5], {0, 1, 2, 3, 6, 7}, {0, 1, 4, 5, 6, 7},
          {0, 1, 2, 3, 4, 5}, extents, random, i % 2);
  }
}

TEST(Contract, MissingKinds) {
  std::mt19937 random(3);
  for (int i = 0; i < 20; ++i) {
    check(kTypes[i % 5], {0}, {0}, {}, {{0, 9}}, random, false);     // dot
    check(kTypes[i % 5], {0}, {1}, {0, 1}, {{0, 3}, {1, 4}}, random, // outer
          false);
    check(kTypes[i % 5], {0, 1}, {1}, {0}, {{0, 3}, {1, 4}}, random, true);
    check(kTypes[i % 5], {0}, {0}, {0}, {{0, 5}}, random, false);
    check(kTypes[i % 5], {}, {}, {}, {}, random, false);
  }
}

TEST(Contract, EmptyExtents) {
  std::mt19937 random(4);
  for (int i = 0; i < 5; ++i)
    for (int32_t empty = 0; empty < 5; ++empty) {
      std::map<int32_t, int64_t> extents{
          {0, 3}, {1, 4}, {2, 5}, {3, 2}, {4, 3}};
      extents[empty] = 0; // an empty sum gives zeros
      check(kTypes[i], {0, 1, 3, 4}, {0, 2, 3, 4}, {0, 1, 2}, extents, random,
            i % 2);
    }
}

TEST(Contract, LargerThanATile) {
  std::mt19937 random(5);
  for (const Types &types : {kTypes[0], kTypes[1], kTypes[3]})
    check(types, {0, 2}, {2, 1}, {0, 1}, {{0, 260}, {1, 520}, {2, 30}}, random,
          true);
  check({DType::BF16, DType::F32, DType::F32}, {0, 2}, {2, 1}, {0, 1},
        {{0, 3}, {1, 5}, {2, 1100}}, random, false);
}

TEST(Contract, DifferingExtentsAreAnError) {
  std::mt19937 random(6);
  Tensor a(DType::F32, {0, 2}, {{0, 3}, {2, 4}}, random, false);
  Tensor b(DType::F32, {2, 1}, {{1, 3}, {2, 5}}, random, false);
  Tensor c(DType::F32, {0, 1}, {{0, 3}, {1, 3}}, random, false);
  Result<Contract> contract =
      Contract::create(a.operand(), b.operand(), c.operand());
  ASSERT_FALSE(contract);
  EXPECT_NE(contract.message().find("label 2"), std::string::npos);
}

} // namespace
