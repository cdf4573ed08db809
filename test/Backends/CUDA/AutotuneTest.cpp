//===- AutotuneTest.cpp - algorithms of matrix products, measured ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a driver and a cuBLASLt without a GPU, whose algorithms take the time that
// a test says.
//
//===----------------------------------------------------------------------===//

#include "Autotune.h"

using namespace tessera;
using namespace tessera::test;

namespace {

TEST_F(Autotune, WithoutAFileTheHeuristicChooses) {
  driver().algorithms = {3, 1};
  Session session;
  ASSERT_EQ(bindThree(session, cudaOptions()), "");
  EXPECT_TRUE(driver().products.empty());
  EXPECT_EQ(runThree(session), Ints({0, 0, 0}));
  EXPECT_EQ(counts(session), Counts({0, 0, 3}));
}

TEST_F(Autotune, WhatAProductSetsIsSetByKernelsInAGraph) {
  // 60 bytes by words of 4.
  driver().kernels["tessera_fill_4"] = [](const FakeLaunch &launch) {
    findEmulated(launch.name).run(launch.blocks, launch.words.data());
  };
  driver().sets = 60;
  int products = 0;
  driver().watch = [&](const FakeProduct &product) {
    auto *bytes =
        static_cast<unsigned char *>(const_cast<void *>(product.workspace));
    EXPECT_EQ(std::count(bytes, bytes + 60, 0), 60);
    std::fill_n(bytes, 60, 1);
    ++products;
  };
  Session session;
  ASSERT_EQ(bindThree(session, cudaOptions()), "");
  runThree(session); // and records
  EXPECT_TRUE(driver().launches.empty());
  runThree(session);
  EXPECT_EQ(products, 6);
  ASSERT_EQ(driver().launches.size(), 3u);
  for (const FakeLaunch &launch : driver().launches)
    EXPECT_EQ(launch.name, "tessera_fill_4");
}

TEST_F(Autotune, TheFastestIsMeasuredKeptAndUsed) {
  driver().algorithms = {3, 2, 1, 9};
  {
    Session session;
    ASSERT_EQ(bindThree(session, options(TESSERA_AUTOTUNE)), "");
    EXPECT_FALSE(driver().products.empty());
    EXPECT_EQ(runThree(session), Ints({2, 2, 2}));
    EXPECT_EQ(counts(session), Counts({0, 3, 0}));
    auto step = sized<tessera_step>();
    ASSERT_OK(tessera_binding_step(session.binding, 0, &step));
    EXPECT_ERROR(step.text, "measured algorithm");
  }
  Algorithms found = stored();
  EXPECT_EQ(found.origin, "cuBLASLt 13.1.0 on Fake 0");
  ASSERT_EQ(found.entries.size(), 2u);
  for (const auto &[key, entry] : found.entries) {
    // An event takes a millisecond, too.
    EXPECT_EQ(entry.microseconds, 2000) << key;
    EXPECT_EQ(entry.heuristic, 4000) << key;
  }
  // c is row-major: the library sees it turned, 6 x 4.
  EXPECT_TRUE(
      found.entries.count("6x4x8*1/f32:n:6:0:256/f32:n:8:0:256/f32:n:6:0:256"));
  EXPECT_TRUE(found.entries.count(
      "7x3x5*1/f32:n:7:0:256/f32:n:5:0:256/f32:n:7:0:256/bias:256"));

  // From here on it is read, whatever would be faster or proposed first, and
  // also when what is missing would be measured.
  const std::string text = read();
  struct stat before, after;
  ASSERT_EQ(stat(file.c_str(), &before), 0);
  driver().algorithms = {1, 2, 3, 9};
  for (uint32_t flags : {0u, uint32_t(TESSERA_AUTOTUNE)}) {
    Session session;
    driver().products.clear();
    ASSERT_EQ(bindThree(session, options(flags)), "");
    EXPECT_TRUE(driver().products.empty());
    EXPECT_EQ(runThree(session), Ints({2, 2, 2}));
    EXPECT_EQ(counts(session), Counts({3, 0, 0}));
  }
  EXPECT_EQ(read(), text);
  ASSERT_EQ(stat(file.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_TRUE(warnings.empty()) << warnings[0];
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

/// Gives the first `count` ports small multiples of `unit`, and returns them.
std::vector<std::vector<float>> fill(const Session &session, size_t count,
                                     float unit) {
  std::vector<std::vector<float>> given(count);
  for (size_t i = 0; i < count; ++i) {
    given[i].resize(session.bytes[i] / 4);
    for (size_t k = 0; k < given[i].size(); ++k)
      given[i][k] = float(int(k * (i + 3) % 11) - 5) * unit;
    EXPECT_OK(tessera_device_copy(session.context, session.pointers[i],
                                  given[i].data(), session.bytes[i]));
  }
  return given;
}

/// A backward: d = (a w^T) times the slope of gelu at x, with the sums of d's
/// columns; e = d^T x with those of d, which is then the library's second
/// matrix, and f = x^T d, where it is the first.
struct Backward : CUDAPlan {
  Backward() {
    int a = input("a", {5, 16}, "[_, _]"), w = input("w", {8, 16}, "[_, _]");
    int x = input("x", {5, 8}, "[_, _]");
    int d = output("d", {5, 8}, "[_, _]"), ds = output("ds", {8}, "[_]");
    int e = output("e", {8, 8}, "[_, _]"), es = output("es", {8}, "[_]");
    int f = output("f", {8, 8}, "[_, _]"), fs = output("fs", {8}, "[_]");
    contract(a, {0, 2}, w, {1, 2}, d, {0, 1});
    fb::ContractT &grad = *plan.steps.back()->action.AsContract();
    grad.epilogue = fb::Epilogue::GeluTanhGrad;
    grad.x = x;
    add(fb::Summed::C, ds);
    contract(d, {2, 0}, x, {2, 1}, e, {0, 1});
    add(fb::Summed::A, es);
    contract(x, {2, 0}, d, {2, 1}, f, {0, 1});
    add(fb::Summed::B, fs);
  }
  void add(fb::Summed summed, int sums) {
    fb::ContractT &contract = *plan.steps.back()->action.AsContract();
    contract.summed = summed;
    contract.sums = sums;
  }
};

TEST_F(Autotune, GradientsHaveKindsOfTheirOwn) {
  driver().algorithms = {3, 1};
  Session session;
  ASSERT_EQ(session.open(Backward().module(), options(TESSERA_AUTOTUNE)), "");
  ASSERT_EQ(session.allocate(), "");
  const std::vector<std::vector<float>> given = fill(session, 3, 0.25f);
  ASSERT_EQ(session.bindAllocated(), "");
  std::vector<std::string> keys;
  for (const auto &[key, entry] : stored().entries)
    keys.push_back(key);
  EXPECT_EQ(keys, std::vector<std::string>(
                      {"8x5x16*1/f32:t:16:0:256/f32:n:16:0:256/f32:n:8:0:256/"
                       "dgelu/aux:8:256/sums:d:256",
                       "8x8x5*1/f32:n:8:0:256/f32:t:8:0:256/f32:n:8:0:256/"
                       "sums:x:256",
                       "8x8x5*1/f32:n:8:0:256/f32:t:8:0:256/f32:n:8:0:256/"
                       "sums:y:256"}));
  ASSERT_EQ(session.run(), "");
  const auto &[a, w, x] = std::tie(given[0], given[1], given[2]);
  const std::vector<float> d = fetch(session, 3);
  std::vector<double> sums(8);
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 8; ++j) {
      double sum = 0, u = x[i * 8 + j];
      for (int k = 0; k < 16; ++k)
        sum += a[i * 16 + k] * w[j * 16 + k];
      // The slope, as a difference.
      auto gelu = [](double u) {
        return 0.5 * u *
               (1 +
                std::tanh(std::sqrt(2 / M_PI) * (u + 0.044715 * u * u * u)));
      };
      const double slope = (gelu(u + 1e-5) - gelu(u - 1e-5)) / 2e-5;
      EXPECT_NEAR(d[i * 8 + j], sum * slope, 1e-5) << i << ", " << j;
      sums[j] += d[i * 8 + j];
    }
  for (int port : {4, 6, 8})
    for (int j = 0; j < 8; ++j)
      EXPECT_NEAR(fetch(session, port)[j], sums[j], 1e-4) << port << ": " << j;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) {
      double sum = 0;
      for (int k = 0; k < 5; ++k)
        sum += d[k * 8 + i] * x[k * 8 + j];
      EXPECT_NEAR(fetch(session, 5)[i * 8 + j], sum, 1e-4);
      EXPECT_NEAR(fetch(session, 7)[j * 8 + i], sum, 1e-4);
    }
}

/// To what lies as the result does the library adds by itself; what lies in
/// another order is copied first, and a sum of nothing is what is added.
struct Accumulation : CUDAPlan {
  Accumulation() {
    int a = input("a", {5, 16}, "[_, _]"), w = input("w", {8, 16}, "[_, _]");
    int s = input("s", {5, 8}, "[_, _]"), t = input("t", {8, 5}, "[_, _]");
    int e = input("e", {5, 0}, "[_, _]"), f = input("f", {8, 0}, "[_, _]");
    int turned =
        alias("turned", t, fb::AliasKind::Transpose, {5, 8}, "[_, _]", {1, 0});
    add(a, w, s);
    add(a, w, turned);
    add(e, f, turned);
  }
  void add(int x, int y, int addend) {
    int to = output("c" + std::to_string(addend), {5, 8}, "[_, _]");
    contract(x, {0, 2}, y, {1, 2}, to, {0, 1});
    plan.steps.back()->action.AsContract()->addend = addend;
  }
};

TEST_F(Autotune, AddendsHaveKindsOfTheirOwn) {
  driver().algorithms = {3, 1};
  for (const char *name : {"tessera_copy_4", "tessera_transpose_4"})
    driver().kernels[name] = [name](const FakeLaunch &launch) {
      findEmulated(name).run(launch.blocks, launch.words.data());
    };
  Session session;
  ASSERT_EQ(session.open(Accumulation().module(), options(TESSERA_AUTOTUNE)),
            "");
  ASSERT_EQ(session.allocate(), "");
  const std::vector<std::vector<float>> given = fill(session, 4, 1);
  ASSERT_EQ(session.bindAllocated(), "");
  std::vector<std::string> keys;
  for (const auto &[key, entry] : stored().entries)
    keys.push_back(key);
  EXPECT_EQ(keys, std::vector<std::string>(
                      {"8x5x16*1/f32:t:16:0:256/f32:n:16:0:256/f32:n:8:0:256/"
                       "add:256"}));
  ASSERT_EQ(session.run(), "");
  const auto &[a, w, s, t] = std::tie(given[0], given[1], given[2], given[3]);
  const std::vector<float> c = fetch(session, 6), d = fetch(session, 7),
                           e = fetch(session, 8);
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 8; ++j) {
      float sum = 0;
      for (int k = 0; k < 16; ++k)
        sum += a[i * 16 + k] * w[j * 16 + k];
      EXPECT_EQ(c[i * 8 + j], sum + s[i * 8 + j]) << i << ", " << j;
      EXPECT_EQ(d[i * 8 + j], sum + t[j * 5 + i]) << i << ", " << j;
      EXPECT_EQ(e[i * 8 + j], t[j * 5 + i]) << i << ", " << j;
    }
}

/// What means something is in the module; what the library lacks of it is said
/// before anything runs.
TEST_F(Autotune, WhatTheLibraryLacksIsRefused) {
  Accumulation module;
  fb::ContractT &contract = *module.plan.steps[0]->action.AsContract();
  contract.epilogue = fb::Epilogue::GeluTanh;
  Session session;
  ASSERT_EQ(session.open(module.module(), cudaOptions()), "");
  ASSERT_EQ(session.allocate(), "");
  EXPECT_ERROR(session.bindAllocated(),
               "cuBLASLt adds to a product that has neither bias, nor epilogue, "
               "nor sums");
  EXPECT_TRUE(driver().products.empty());
}

TEST_F(Autotune, WhatIsMissingIsMeasuredAndAdded) {
  driver().algorithms = {3, 1};
  {
    Session session;
    ASSERT_EQ(bindThree(session, options(TESSERA_AUTOTUNE)), "");
  }
  Algorithms part = stored();
  const auto kept = *part.entries.begin();
  part.entries.erase(std::next(part.entries.begin()));
  write(part.toText());
  {
    Session session;
    ASSERT_EQ(bindThree(session, options()), "");
    EXPECT_EQ(counts(session), Counts({2, 0, 1}));
    EXPECT_EQ(runThree(session), Ints({1, 1, 0}));
  }
  driver().algorithms = {1, 3};
  Session session;
  ASSERT_EQ(bindThree(session, options(TESSERA_AUTOTUNE)), "");
  EXPECT_EQ(counts(session), Counts({2, 1, 0}));
  EXPECT_EQ(runThree(session), Ints({1, 1, 0}));
  EXPECT_EQ(stored().entries.size(), 2u);
  EXPECT_EQ(stored().entries.at(kept.first).algorithm, kept.second.algorithm);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(Autotune, TheHeuristicStaysUnlessAnotherIsBetterByMoreThanTimesDiffer) {
  for (auto [other, winner] : {std::pair(1.98, 0), std::pair(1.9, 1)}) {
    std::filesystem::remove(file);
    driver().algorithms = {2, other};
    Session session;
    ASSERT_EQ(bindThree(session, options(TESSERA_AUTOTUNE)), "");
    EXPECT_EQ(runThree(session), Ints(3, winner)) << other;
    EXPECT_EQ(counts(session), Counts({0, 3, 0}));
  }
}

TEST_F(Autotune, WhatCannotRunOrIsLessPreciseDoesNotWin) {
  driver().algorithms = {3, 1, 1.5, 2};
  driver().unable = {1};
  driver().imprecise = {2};
  Session session;
  ASSERT_EQ(bindThree(session, options(TESSERA_AUTOTUNE)), "");
  EXPECT_EQ(runThree(session), Ints({3, 3, 3}));
}

TEST_F(Autotune, WhatIsMeasuredIsAlignedAsTheProductIs) {
  driver().algorithms = {3, 1};
  CUDAPlan plan;
  int x = plan.input("x", {4, 8}, "[_, _]"),
      w = plan.input("w", {8, 6}, "[_, _]");
  int p = plan.output("p", {4, 6}, "[_, _]");
  plan.contract(x, {0, 2}, w, {2, 1}, p, {0, 1});
  Session session;
  ASSERT_EQ(session.open(plan.module(), options(TESSERA_AUTOTUNE)), "");
  ASSERT_EQ(session.allocate({}, /*extra=*/64), "");
  auto at = [&](int port, int offset) {
    return static_cast<char *>(session.pointers[port]) + offset;
  };
  void *pointers[] = {at(0, 4), at(1, 48), at(2, 8)};
  ASSERT_OK(tessera_binding_create(session.module, nullptr, 0, pointers, 3,
                                   &session.binding));
  ASSERT_FALSE(driver().products.empty());
  for (const FakeProduct &each : driver().products) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(each.x) % 256, 16u); // w
    EXPECT_EQ(reinterpret_cast<uintptr_t>(each.y) % 256, 4u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(each.d) % 256, 8u);
  }
  EXPECT_EQ(stored().entries.begin()->first,
            "6x4x8*1/f32:n:6:0:16/f32:n:8:0:4/f32:n:6:0:8");
  driver().products.clear();
  ASSERT_EQ(session.run(), "");
  EXPECT_EQ(driver().products.at(0).y, pointers[0]);
}

TEST_F(Autotune, WhatIsMeasuredAreRandomNumbers) {
  driver().algorithms = {3, 1};
  CUDAPlan plan;
  const int64_t n = 600; // more than a period of the numbers
  int x = plan.input("x", {2, n}, "[_, _]"),
      w = plan.input("w", {n, n}, "[_, _]");
  int p = plan.output("p", {2, n}, "[_, _]");
  plan.contract(x, {0, 2}, w, {2, 1}, p, {0, 1});
  int watched = 0, negative = 0, wrong = 0, equalRows = 0;
  driver().watch = [&](const FakeProduct &product) {
    if (watched++)
      return;
    const float *w = static_cast<const float *>(product.x);
    for (int64_t i = 0; i < n * n; ++i) {
      negative += w[i] < 0;
      wrong += !(std::fabs(w[i]) >= 1. / 16 && std::fabs(w[i]) < 1);
    }
    for (int64_t i = 0; i + 1 < n; ++i)
      equalRows += std::equal(w + i * n, w + (i + 1) * n, w + (i + 1) * n);
  };
  Session session;
  ASSERT_EQ(session.open(plan.module(), options(TESSERA_AUTOTUNE)), "");
  ASSERT_EQ(session.bind(), "");
  EXPECT_GT(watched, 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(equalRows, 0);
  EXPECT_NEAR(double(negative) / double(n * n), 0.5, 0.01);
}

TEST_F(Autotune, WithoutMemoryToMeasureTheHeuristicChooses) {
  driver().algorithms = {3, 1};
  driver().freeBytes = 48 << 20; // one workspace, not two
  Session session;
  ASSERT_EQ(bindThree(session, options(TESSERA_AUTOTUNE)), "");
  EXPECT_EQ(runThree(session), Ints({0, 0, 0}));
  EXPECT_EQ(counts(session), Counts({0, 0, 3}));
  ASSERT_EQ(warnings.size(), 2u); // kinds of products
  EXPECT_ERROR(warnings[0], "not enough memory");
  EXPECT_ERROR(warnings[0], "to measure algorithms for 6x4x8*1/");
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(Autotune, TheCallersAllocatorGivesTheMemory) {
  static int taken, given;
  taken = given = 0;
  driver().algorithms = {3, 1};
  tessera_context_options own = options(TESSERA_AUTOTUNE);
  own.allocate = [](void *, size_t bytes) {
    ++taken;
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  };
  own.deallocate = [](void *, void *pointer, size_t) {
    ++given;
    std::free(pointer);
  };
  {
    Session session;
    EXPECT_EQ(bindThree(session, own), "");
    EXPECT_EQ(taken, 4);
    EXPECT_EQ(given, 2);
  }
  EXPECT_EQ(taken, given);
}

TEST_F(Autotune, WhatMeasuringCallsMayFail) {
  driver().algorithms = {3, 1};
  for (const char *call :
       {"cuEventCreate", "cuEventRecord", "cuEventElapsedTime",
        "cuStreamSynchronize", "cuMemcpyAsync", "matmul"}) {
    Session session;
    ASSERT_EQ(session.open(ThreeProducts().module(), options(TESSERA_AUTOTUNE)),
              "");
    ASSERT_EQ(session.allocate(), "");
    driver().failNext[call] = 1;
    EXPECT_ERROR(session.bindAllocated(), "INVALID_VALUE");
  }
  driver().algorithms = {};
  Session session;
  ASSERT_EQ(session.open(ThreeProducts().module(), options(TESSERA_AUTOTUNE)),
            "");
  EXPECT_ERROR(session.bind(),
               "cuBLASLt has no algorithm for a product of 6 x 4 x 8 in f32");
}

} // namespace
