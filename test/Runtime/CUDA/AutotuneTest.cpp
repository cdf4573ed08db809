//===- AutotuneTest.cpp - algorithms of matrix products, measured and kept ===//
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

#include "Backends/CUDA/Algorithms.h"
#include "OnRecordingDriver.h"

#include <filesystem>
#include <fstream>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>

using namespace tessera;
using namespace tessera::test;
using cuda::Algorithms;

namespace {

class Autotune : public CUDA {
protected:
  Autotune() {
    std::string name =
        (std::filesystem::temp_directory_path() / "tessera-XXXXXX").string();
    folder = mkdtemp(name.data());
    file = folder / "algorithms";
  }
  ~Autotune() override { std::filesystem::remove_all(folder); }

  tessera_context_options options(uint32_t flags = 0) {
    tessera_context_options options = cudaOptions(flags);
    options.algorithms = file.c_str();
    options.log_user = this;
    options.log = [](void *self, tessera_log_level level, const char *message) {
      auto &test = *static_cast<Autotune *>(self);
      std::lock_guard lock(test.mutex);
      if (level == TESSERA_LOG_WARNING)
        test.warnings.push_back(message);
    };
    return options;
  }
  std::string read() const {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void write(const std::string &text) const { std::ofstream(file) << text; }
  Algorithms stored() const {
    Result<Algorithms> result = Algorithms::parse(read(), file);
    EXPECT_TRUE(result) << result.message();
    return result ? *result : Algorithms();
  }

  std::filesystem::path folder;
  std::string file;
  std::mutex mutex;
  std::vector<std::string> warnings;
};

/// p = x w, q = v w, r = y u + b: two products of one kind and one of another.
struct ThreeProducts : CUDAPlan {
  explicit ThreeProducts(const char *mesh = "<tp = 1>") : CUDAPlan(mesh) {
    int x = input("x", {4, 8}, "[_, _]"), v = input("v", {4, 8}, "[_, _]");
    int w = input("w", {8, 6}, "[_, _]");
    int y = input("y", {3, 5}, "[_, _]"), u = input("u", {5, 7}, "[_, _]");
    int b = input("b", {7}, "[_]");
    int p = output("p", {4, 6}, "[_, _]"), q = output("q", {4, 6}, "[_, _]");
    int r = output("r", {3, 7}, "[_, _]");
    contract(x, {0, 2}, w, {2, 1}, p, {0, 1});
    contract(v, {0, 2}, w, {2, 1}, q, {0, 1});
    contract(y, {0, 2}, u, {2, 1}, r, {0, 1});
    plan.steps.back()->action.AsContract()->bias = b;
  }
};

std::vector<float> fetch(const Session &session, size_t port) {
  std::vector<float> values(session.bytes[port] / 4);
  EXPECT_OK(tessera_device_copy(session.context, values.data(),
                                session.pointers[port], session.bytes[port]));
  return values;
}

/// Opens and binds, with numbers in all ports, which that must not change.
std::string bindThree(Session &session, const tessera_context_options &options,
                      const std::string &module = ThreeProducts().module()) {
  if (std::string error = session.open(module, options); !error.empty())
    return error;
  std::string error = session.allocate();
  if (!error.empty())
    return error;
  std::vector<std::vector<float>> before;
  for (size_t i = 0; i < session.pointers.size(); ++i) {
    std::vector<float> values(session.bytes[i] / 4);
    for (size_t k = 0; k < values.size(); ++k)
      values[k] = float(i + 1) + float(k % 7);
    EXPECT_OK(tessera_device_copy(session.context, session.pointers[i],
                                  values.data(), session.bytes[i]));
    before.push_back(values);
  }
  error = session.bindAllocated();
  for (size_t i = 0; i < session.pointers.size(); ++i)
    EXPECT_EQ(fetch(session, i), before[i]) << i;
  return error;
}

/// Runs, compares with plain sums, and returns the calls' algorithms.
std::vector<int> runThree(Session &session) {
  driver().products.clear();
  EXPECT_EQ(session.run(), "");
  std::vector<int> algorithms;
  for (const FakeProduct &each : driver().products)
    algorithms.push_back(each.algorithm);
  auto compare = [&](int a, int b, int c, int rows, int sums, int columns,
                     int bias) {
    std::vector<float> left = fetch(session, a), right = fetch(session, b);
    std::vector<float> result = fetch(session, c);
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) {
        float sum = bias < 0 ? 0 : fetch(session, bias)[j];
        for (int k = 0; k < sums; ++k)
          sum += left[i * sums + k] * right[k * columns + j];
        EXPECT_EQ(result[i * columns + j], sum) << c << ": " << i << ", " << j;
      }
  };
  compare(0, 2, 6, 4, 8, 6, -1);
  compare(1, 2, 7, 4, 8, 6, -1);
  compare(3, 4, 8, 3, 5, 7, 5);
  return algorithms;
}

/// Stored, measured, by heuristic.
std::vector<uint64_t> counts(const Session &session) {
  tessera_products products{};
  products.size = sizeof products;
  EXPECT_OK(tessera_binding_products(session.binding, &products));
  return {products.stored, products.measured, products.heuristic};
}

using Ints = std::vector<int>;
using Counts = std::vector<uint64_t>;

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

TEST_F(Autotune, WithoutAFileTheHeuristicChooses) {
  driver().algorithms = {3, 1};
  Session session;
  ASSERT_EQ(bindThree(session, cudaOptions()), "");
  EXPECT_TRUE(driver().products.empty());
  EXPECT_EQ(runThree(session), Ints({0, 0, 0}));
  EXPECT_EQ(counts(session), Counts({0, 0, 3}));
}

TEST_F(Autotune, TheFastestIsMeasuredKeptAndUsed) {
  driver().algorithms = {3, 2, 1, 9};
  {
    Session session;
    ASSERT_EQ(bindThree(session, options(TESSERA_AUTOTUNE)), "");
    EXPECT_FALSE(driver().products.empty());
    EXPECT_EQ(runThree(session), Ints({2, 2, 2}));
    EXPECT_EQ(counts(session), Counts({0, 3, 0}));
    tessera_step step{};
    step.size = sizeof step;
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
  std::vector<std::vector<float>> given(3);
  for (size_t i = 0; i < given.size(); ++i) {
    given[i].resize(session.bytes[i] / 4);
    for (size_t k = 0; k < given[i].size(); ++k)
      given[i][k] = float(int(k * (i + 3) % 11) - 5) / 4;
    EXPECT_OK(tessera_device_copy(session.context, session.pointers[i],
                                  given[i].data(), session.bytes[i]));
  }
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

//===----------------------------------------------------------------------===//
// Another library or GPU
//===----------------------------------------------------------------------===//

TEST_F(Autotune, AnotherVersionIsSaidOnceAndTheHeuristicChooses) {
  driver().algorithms = {3, 1};
  {
    Session session;
    ASSERT_EQ(bindThree(session, options(TESSERA_AUTOTUNE)), "");
  }
  const std::string text = read();
  driver().blasVersion = 130201;
  {
    Session session;
    ASSERT_EQ(bindThree(session, options()), "");
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_EQ(warnings[0],
              file + " holds algorithms for cuBLASLt 13.1.0 on Fake 0; this is "
                     "cuBLASLt 13.2.1 on Fake 0: cuBLASLt's heuristic chooses");
    EXPECT_EQ(runThree(session), Ints({0, 0, 0}));
    EXPECT_EQ(counts(session), Counts({0, 0, 3}));
    EXPECT_EQ(warnings.size(), 1u);
  }
  EXPECT_EQ(read(), text);
  {
    Session session;
    ASSERT_EQ(bindThree(session, options(TESSERA_AUTOTUNE)), "");
    EXPECT_EQ(runThree(session), Ints({1, 1, 1}));
    ASSERT_EQ(warnings.size(), 2u);
    EXPECT_ERROR(warnings[1], "they are measured anew");
  }
  EXPECT_EQ(stored().origin, "cuBLASLt 13.2.1 on Fake 0");
  EXPECT_EQ(stored().entries.size(), 2u);
  {
    // On another GPU.
    Session session;
    tessera_context_options other = options();
    int32_t ordinal = 1;
    other.device = &ordinal;
    ASSERT_EQ(bindThree(session, other), "");
    EXPECT_EQ(runThree(session), Ints({0, 0, 0}));
    ASSERT_EQ(warnings.size(), 3u);
    EXPECT_ERROR(warnings[2], "cuBLASLt 13.2.1 on Fake 0; this is cuBLASLt "
                              "13.2.1 on Fake 1");
  }
  write("tessera-algorithms 2\nwhatever");
  Session session;
  ASSERT_EQ(bindThree(session, options()), "");
  EXPECT_EQ(runThree(session), Ints({0, 0, 0}));
  ASSERT_EQ(warnings.size(), 4u);
  EXPECT_ERROR(warnings[3], "holds algorithms for version '2' of the format");
}

TEST_F(Autotune, AnAlgorithmThatTheLibraryRefuses) {
  driver().algorithms = {3, 2, 1};
  {
    Session session;
    ASSERT_EQ(bindThree(session, options(TESSERA_AUTOTUNE)), "");
  }
  driver().refused = {2};
  {
    Session session;
    ASSERT_EQ(bindThree(session, options()), "");
    EXPECT_EQ(runThree(session), Ints({0, 0, 0}));
    EXPECT_EQ(counts(session), Counts({0, 0, 3}));
    ASSERT_EQ(warnings.size(), 2u); // kinds of products
    EXPECT_ERROR(warnings[0],
                 file + ": the algorithm for 6x4x8*1/f32:n:6:0:256/f32:n:8:0:"
                        "256/f32:n:6:0:256 is refused (cuBLASLt: checking an "
                        "algorithm: CUBLAS_STATUS_NOT_SUPPORTED): cuBLASLt's "
                        "heuristic chooses");
  }
  driver().unable = {2};
  Session session;
  ASSERT_EQ(bindThree(session, options(TESSERA_AUTOTUNE)), "");
  EXPECT_EQ(runThree(session), Ints({1, 1, 1}));
  EXPECT_EQ(counts(session), Counts({0, 3, 0}));
  ASSERT_EQ(warnings.size(), 4u);
  EXPECT_ERROR(warnings[2], "it is measured anew");
  for (const auto &[key, entry] : stored().entries)
    EXPECT_EQ(entry.algorithm.data[0], 1u) << key;
}

//===----------------------------------------------------------------------===//
// Several ranks
//===----------------------------------------------------------------------===//

/// Binds and runs on two ranks; their errors, and each call's algorithm by the
/// address of its result.
struct TwoRanks {
  std::string errors[2], contexts[2];
  std::vector<int> algorithms[2];
  std::vector<uint64_t> chosen[2];

  TwoRanks(
      const std::string &module, tessera_context_options options,
      const std::function<void()> &bound = [] {}) {
    tessera_threads *group;
    EXPECT_OK(tessera_threads_create(2, &group));
    options.world = 2;
    options.transport = "threads";
    options.handle = group;
    options.deadline = 20;
    Session sessions[2];
    auto onBoth = [&](const std::function<void(int)> &body) {
      std::thread other(body, 1);
      body(0);
      other.join();
    };
    onBoth([&](int rank) {
      tessera_context_options own = options;
      own.rank = rank;
      contexts[rank] = sessions[rank].open(module, own);
    });
    bound();
    if (contexts[0].empty() && contexts[1].empty()) {
      onBoth([&](int rank) { errors[rank] = sessions[rank].bind(); });
      for (int rank : {0, 1}) {
        if (!errors[rank].empty())
          continue;
        driver().products.clear();
        errors[rank] = sessions[rank].run();
        for (const FakeProduct &each : driver().products)
          algorithms[rank].push_back(each.algorithm);
        chosen[rank] = counts(sessions[rank]);
      }
    }
    for (Session &session : sessions)
      session.close();
    tessera_threads_destroy(group);
  }
};

TEST_F(Autotune, RanksTakeWhatTheLowestOneMeasured) {
  driver().name = "Fake";
  driver().algorithms = {3, 1, 2};
  driver().algorithmsOn[1] = {3, 2, 1};
  const std::string module = ThreeProducts("<tp = 2>").module();
  {
    TwoRanks ranks(module, options(TESSERA_AUTOTUNE));
    for (int rank : {0, 1}) {
      EXPECT_EQ(ranks.contexts[rank] + ranks.errors[rank], "");
      EXPECT_EQ(ranks.algorithms[rank], Ints({1, 1, 1})) << rank;
      EXPECT_EQ(ranks.chosen[rank], Counts({0, 3, 0})) << rank;
    }
  }
  EXPECT_EQ(stored().entries.size(), 2u);
  for (const auto &[key, entry] : stored().entries)
    EXPECT_EQ(entry.algorithm.data[0], 1u) << key;
  {
    TwoRanks ranks(module, options());
    for (int rank : {0, 1}) {
      EXPECT_EQ(ranks.contexts[rank] + ranks.errors[rank], "");
      EXPECT_EQ(ranks.algorithms[rank], Ints({1, 1, 1})) << rank;
      EXPECT_EQ(ranks.chosen[rank], Counts({3, 0, 0})) << rank;
    }
  }
  EXPECT_TRUE(warnings.empty());
  // Said by one.
  driver().blasVersion = 130200;
  TwoRanks ranks(module, options());
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_EQ(ranks.algorithms[1], Ints({0, 0, 0}));
}

TEST_F(Autotune, WhatOnlyOneRankHasIsKeptToo) {
  driver().name = "Fake";
  driver().algorithms = {3, 1};
  CUDAPlan plan("<tp = 2>");
  int x = plan.input("x", {4, 8}, "[_, _]"),
      w = plan.input("w", {8, 5}, "[_, did(tp) * _]");
  int p = plan.output("p", {4, 5}, "[_, did(tp) * _]");
  plan.contract(x, {0, 2}, w, {2, 1}, p, {0, 1});
  TwoRanks ranks(plan.module(), options(TESSERA_AUTOTUNE));
  for (int rank : {0, 1}) {
    EXPECT_EQ(ranks.contexts[rank] + ranks.errors[rank], "");
    EXPECT_EQ(ranks.algorithms[rank], Ints({1})) << rank;
  }
  std::vector<std::string> shapes;
  for (const auto &[key, entry] : stored().entries)
    shapes.push_back(key.substr(0, key.find('*')));
  EXPECT_EQ(shapes, std::vector<std::string>({"2x4x8", "3x4x8"}));

  // What one is refused is said by rank 0, once.
  driver().refused = {1};
  Algorithms part = stored();
  part.entries.erase(part.entries.begin()->first == "2x4x8"
                         ? part.entries.begin()
                         : std::prev(part.entries.end()));
  write(part.toText());
  TwoRanks again(plan.module(), options());
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_EQ(again.algorithms[0], Ints({0}));
  EXPECT_EQ(again.algorithms[1], Ints({0}));
}

TEST_F(Autotune, RanksMustHaveOneGPUAndOneFile) {
  const std::string module = ThreeProducts("<tp = 2>").module();
  TwoRanks ranks(module, options(TESSERA_AUTOTUNE)); // Fake 0 and Fake 1
  for (const std::string &error : ranks.contexts)
    EXPECT_ERROR(error,
                 "ranks 0 and 1 differ in what they run on: target, GPU, "
                 "cuBLASLt or the file of algorithms");
}

TEST_F(Autotune, AFileThatCannotBeWrittenInTheEndFailsOnAllRanks) {
  driver().name = "Fake";
  TwoRanks ranks(ThreeProducts("<tp = 2>").module(), options(TESSERA_AUTOTUNE),
                 [&] { std::filesystem::remove_all(folder); });
  for (const std::string &error : ranks.errors)
    EXPECT_ERROR(error, file + ": cannot be written: No such file");
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST_F(Autotune, AFileThatCannotBeWrittenIsKnownBeforeAnythingRuns) {
  file = folder / "missing" / "algorithms";
  tessera_context_options own = options(TESSERA_AUTOTUNE);
  tessera_context *context;
  tessera_status *status = tessera_context_create(&own, &context);
  EXPECT_EQ(tessera_status_code(status), TESSERA_IO);
  EXPECT_ERROR(take(status), file + ": cannot be written: No such file");
  EXPECT_TRUE(driver().calls.empty());

  file = folder;
  own = options(TESSERA_AUTOTUNE);
  EXPECT_ERROR(take(tessera_context_create(&own, &context)),
               file + ": cannot be read: Is a directory");
}

TEST_F(Autotune, WhatTheOptionsMustSay) {
  tessera_context *context;
  tessera_context_options own = options();
  EXPECT_ERROR(take(tessera_context_create(&own, &context)),
               file + ": there is no such file of algorithms");
  own = cudaOptions(TESSERA_AUTOTUNE);
  EXPECT_ERROR(take(tessera_context_create(&own, &context)),
               "TESSERA_AUTOTUNE needs `algorithms`");
  own = options();
  own.backend = "cpu";
  EXPECT_ERROR(take(tessera_context_create(&own, &context)),
               "`algorithms` is for the backend \"cuda\"");
  // A caller built with an older header has no such field.
  own = options();
  own.size = offsetof(tessera_context_options, algorithms);
  ASSERT_OK(tessera_context_create(&own, &context));
  tessera_context_destroy(context);
}

TEST_F(Autotune, ADamagedFileIsAnErrorThatNamesTheLine) {
  {
    Session session;
    ASSERT_EQ(bindThree(session, options(TESSERA_AUTOTUNE)), "");
  }
  const std::string text = read();
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  ASSERT_EQ(lines.size(), 5u);
  auto expect = [&](const std::string &damaged, const std::string &error) {
    write(damaged);
    for (uint32_t flags : {0u, uint32_t(TESSERA_AUTOTUNE)}) {
      tessera_context_options own = options(flags);
      tessera_context *context;
      tessera_status *status = tessera_context_create(&own, &context);
      EXPECT_EQ(tessera_status_code(status), TESSERA_IO);
      EXPECT_ERROR(take(status), file + ":" + error);
    }
    EXPECT_EQ(read(), damaged);
  };
  auto with = [&](size_t line, const std::string &instead) {
    std::string result;
    for (size_t i = 0; i < lines.size(); ++i)
      result += (i == line ? instead : lines[i]) + "\n";
    return result;
  };
  auto changed = [&](size_t line, size_t at, char to) {
    std::string damaged = lines[line];
    damaged[at] = to;
    return with(line, damaged);
  };
  expect("", "1: this is no file of algorithms");
  expect("{}", "1: this is no file of algorithms");
  expect(with(1, ""), "2: here stands what the algorithms are for");
  expect(with(2, "x"), "3: this is no entry");
  expect(with(3, lines[3] + " "), "4: this is no entry");
  expect(with(3, lines[2]), "4: this product has an entry already");
  const size_t algorithm = lines[2].find(' ') + 1;
  expect(changed(2, algorithm, 'g'),
         "3: an algorithm is 128 hexadecimal digits");
  expect(changed(2, algorithm, 'f'), "3: the line is damaged");
  expect(changed(2, 0, '8'), "3: the line is damaged");
  expect(changed(3, algorithm + 129, '9'), "4: ");
  expect(changed(3, lines[3].size() - 1, 'x'), "4: the line is damaged");
  expect(changed(2, lines[2].find('.', algorithm), ','), "3: a time is");
  expect(with(4, "end 3"), "5: there are 2 entries above");
  expect(with(4, ""), "5: this is no entry");
  expect(text.substr(0, text.size() - 6), "5: the end is missing");
  expect(text + "more", "6: nothing follows the end");
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
