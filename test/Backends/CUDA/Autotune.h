//===- Autotune.h - tests that measure algorithms of matrix products ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_RUNTIME_CUDA_AUTOTUNE_H
#define TESSERA_TEST_RUNTIME_CUDA_AUTOTUNE_H

#include "Backends/CUDA/Blas/Algorithms.h"
#include "OnRecordingDriver.h"

#include <filesystem>
#include <fstream>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>

namespace tessera::test {

using cuda::Algorithms;

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

inline std::vector<float> fetch(const Session &session, size_t port) {
  std::vector<float> values(session.bytes[port] / 4);
  EXPECT_OK(tessera_device_copy(session.context, values.data(),
                                session.pointers[port], session.bytes[port]));
  return values;
}

/// Opens and binds, with numbers in all ports, which that must not change.
inline std::string
bindThree(Session &session, const tessera_context_options &options,
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
inline std::vector<int> runThree(Session &session) {
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
inline std::vector<uint64_t> counts(const Session &session) {
  auto products = sized<tessera_products>();
  EXPECT_OK(tessera_binding_products(session.binding, &products));
  return {products.stored, products.measured, products.heuristic};
}

using Ints = std::vector<int>;
using Counts = std::vector<uint64_t>;

} // namespace tessera::test

#endif // TESSERA_TEST_RUNTIME_CUDA_AUTOTUNE_H
