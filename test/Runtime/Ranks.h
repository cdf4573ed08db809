//===- Ranks.h - several ranks in one test --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a module on N ranks that are threads of the test, through the C header.
// Ports are filled and compared by global index, which the tests compute from
// the views by themselves.
//
// With TESSERA_TEST_BACKEND=cuda in the environment they run on that backend,
// on a driver whose memory is the host's (CUDA/FakeDriver.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_RUNTIME_RANKS_H
#define TESSERA_TEST_RUNTIME_RANKS_H

#include "../Module/PlanBuilder.h"
#include "Support/DType.h"
#include "tessera/tessera.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <functional>
#include <thread>

namespace tessera::test {

/// A status as text, freed; empty for success.
inline std::string take(tessera_status *status) {
  std::string text = tessera_status_message(status);
  if (status && text.empty())
    text = "a status without a message";
  tessera_status_free(status);
  return text;
}
#define ASSERT_OK(call) ASSERT_EQ(take(call), "")
#define EXPECT_OK(call) EXPECT_EQ(take(call), "")

/// A struct of the C header that says its size.
template <typename T> T sized() {
  T result{};
  result.size = sizeof result;
  return result;
}

/// Calls `body(context)` on each of `ranks` threads.
inline void onRanks(int ranks,
                    const std::function<void(tessera_context *)> &body,
                    tessera_context_options options = {}) {
  tessera_threads *group;
  ASSERT_OK(tessera_threads_create(ranks, &group));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      tessera_context_options own = options;
      own.size = sizeof own;
      own.rank = rank;
      own.world = ranks;
      own.transport = "threads";
      own.handle = group;
      if (!own.backend)
        own.backend = std::getenv("TESSERA_TEST_BACKEND");
      if (own.deadline == 0)
        own.deadline = 20;
      tessera_context *context;
      ASSERT_OK(tessera_context_create(&own, &context));
      body(context);
      tessera_context_destroy(context);
    });
  for (std::thread &thread : threads)
    thread.join();
  tessera_threads_destroy(group);
}

/// What ranks hear that make a context each and must not get one; `adapt` sets
/// the options that are a rank's own.
inline std::vector<std::string> getContextErrors(
    int ranks, const std::function<void(int, tessera_context_options &)> &adapt,
    const tessera_context_options &options = sized<tessera_context_options>()) {
  std::vector<std::string> errors(ranks);
  tessera_threads *group = nullptr;
  EXPECT_OK(tessera_threads_create(ranks, &group));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      tessera_context_options own = options;
      own.rank = rank;
      own.world = ranks;
      own.transport = "threads";
      own.handle = group;
      adapt(rank, own);
      tessera_context *context = nullptr;
      errors[rank] = take(tessera_context_create(&own, &context));
      tessera_context_destroy(context);
    });
  for (std::thread &thread : threads)
    thread.join();
  tessera_threads_destroy(group);
  return errors;
}

/// The memory of one port on one rank.
struct PortMemory {
  tessera_port port{};
  tessera_layout layout{};
  std::vector<double> alignedBytes; // 8-byte aligned
  void *data() { return alignedBytes.data(); }

  /// Calls `visit(element address, global index)` for each local element.
  void
  forEach(const tessera_module *module, size_t index,
          const std::vector<int64_t> &symbols,
          const std::function<void(char *, const layout::Shape &)> &visit) {
    std::vector<std::vector<int64_t>> global(layout.rank);
    for (int d = 0; d < layout.rank; ++d) {
      tessera_run runs[256];
      size_t count = 256;
      ASSERT_OK(tessera_module_runs(module, index, symbols.data(),
                                    symbols.size(), d, runs, &count));
      ASSERT_LE(count, 256u);
      for (size_t r = 0; r < count; ++r)
        for (int64_t i = 0; i < runs[r].length; ++i)
          global[d].push_back(runs[r].global + i);
      ASSERT_EQ(static_cast<int64_t>(global[d].size()), layout.shape[d]);
    }
    const int64_t bytes = info(static_cast<DType>(port.dtype)).bytes;
    int64_t total = 1;
    for (int d = 0; d < layout.rank; ++d)
      total *= layout.shape[d];
    for (int64_t n = 0; n < total; ++n) {
      layout::Shape at;
      int64_t rest = n, offset = 0;
      for (int d = layout.rank; d-- > 0; rest /= layout.shape[d]) {
        int64_t i = rest % layout.shape[d];
        offset += i * layout.strides[d];
        // A flat dimension is several global ones.
        int64_t value = global[d][i];
        int last = 0;
        for (int e = 0; e <= d; ++e)
          last += layout.span[e];
        for (int s = 0; s < layout.span[d]; ++s) {
          int64_t extent = layout.global_shape[last - 1 - s];
          bool first = s + 1 == layout.span[d];
          at.insert(at.begin(), first ? value : value % extent);
          value /= extent;
        }
      }
      visit(static_cast<char *>(data()) + offset * bytes, at);
    }
  }
};

using Value = std::function<double(const std::string &port,
                                   const layout::Shape &index, int rank)>;

inline void store(char *to, tessera_dtype dtype, double value) {
  if (!info(static_cast<DType>(dtype)).isFloat) {
    int64_t whole = value;
    ASSERT_TRUE(
        convertElement(&whole, DType::I64, to, static_cast<DType>(dtype)));
    return;
  }
  convertElement(&value, DType::F64, to, static_cast<DType>(dtype));
}
inline double loadValue(const char *from, tessera_dtype dtype) {
  double value;
  convertElement(from, static_cast<DType>(dtype), &value, DType::F64);
  return value;
}

struct RunOptions {
  std::vector<int64_t> symbols;
  int runs = 1;
  double tolerance = 0;
  /// Gets each element of outputs and state in place of the comparison.
  std::function<void(const std::string &port, const layout::Shape &index,
                     double got)>
      observe;
  /// Takes what is expected to be NaN: an addend that some rank has.
  std::function<void(const std::string &, const layout::Shape &, int, double)>
      shared;
  /// Called after the runs, on each rank.
  std::function<void(tessera_binding *, int rank)> inspect;
  /// Called first, on each rank's own thread.
  std::function<void(int rank)> begin;
  tessera_context_options context{};
};

/// Fills inputs and state with `input`, runs, and compares outputs and state
/// with `expected`.
inline void runModule(const std::string &module, int ranks, const Value &input,
                      const Value &expected, RunOptions options = {}) {
  onRanks(
      ranks,
      [&](tessera_context *context) {
        const int rank = tessera_context_rank(context);
        if (options.begin)
          options.begin(rank);
        tessera_module *loaded;
        ASSERT_OK(tessera_module_load(context, module.data(), module.size(),
                                      &loaded));
        std::vector<PortMemory> ports(tessera_module_port_count(loaded));
        std::vector<void *> pointers;
        const auto &symbols = options.symbols;
        for (size_t i = 0; i < ports.size(); ++i) {
          PortMemory &p = ports[i];
          p.port.size = sizeof p.port;
          p.layout.size = sizeof p.layout;
          ASSERT_OK(tessera_module_port(loaded, i, &p.port));
          ASSERT_OK(tessera_module_layout(loaded, i, symbols.data(),
                                          symbols.size(), &p.layout));
          // What is not written stays NaN, or a value nobody expects.
          p.alignedBytes.assign(p.layout.bytes / 8 + 1,
                                std::numeric_limits<double>::quiet_NaN());
          if (p.port.kind != TESSERA_OUTPUT)
            p.forEach(
                loaded, i, symbols, [&](char *at, const layout::Shape &index) {
                  store(at, p.port.dtype, input(p.port.name, index, rank));
                });
          pointers.push_back(p.data());
        }
        tessera_binding *binding;
        ASSERT_OK(tessera_binding_create(loaded, symbols.data(), symbols.size(),
                                         pointers.data(), pointers.size(),
                                         &binding));
        for (int run = 0; run < options.runs; ++run)
          ASSERT_OK(tessera_binding_run(binding));
        for (size_t i = 0; i < ports.size(); ++i) {
          PortMemory &p = ports[i];
          if (p.port.kind == TESSERA_INPUT)
            continue;
          int wrong = 0;
          p.forEach(
              loaded, i, symbols, [&](char *at, const layout::Shape &index) {
                if (options.observe)
                  return options.observe(p.port.name, index,
                                         loadValue(at, p.port.dtype));
                double want = expected(p.port.name, index, rank);
                double got = loadValue(at, p.port.dtype);
                if (std::isnan(want) && options.shared)
                  return options.shared(p.port.name, index, rank, got);
                if (std::abs(got - want) <= options.tolerance || got == want)
                  return;
                if (++wrong <= 3)
                  ADD_FAILURE()
                      << p.port.name << "[" << testing::PrintToString(index)
                      << "] on rank " << rank << " is " << got << ", expected "
                      << want;
              });
        }
        if (options.inspect)
          options.inspect(binding, rank);
        tessera_binding_destroy(binding);
        tessera_module_destroy(loaded);
      },
      options.context);
}

/// Runs `body` with the module loaded on each rank.
inline void
withModule(const std::string &module, int ranks,
           const std::function<void(tessera_module *, int rank)> &body,
           tessera_context_options options = {}) {
  onRanks(
      ranks,
      [&](tessera_context *context) {
        tessera_module *loaded;
        ASSERT_OK(tessera_module_load(context, module.data(), module.size(),
                                      &loaded));
        body(loaded, tessera_context_rank(context));
        tessera_module_destroy(loaded);
      },
      options);
}

/// What binding fails with; `pointers` as they are.
inline std::string bindError(tessera_module *module,
                             std::vector<int64_t> symbols,
                             std::vector<void *> pointers,
                             tessera_code code = TESSERA_INVALID_ARGUMENT) {
  tessera_binding *binding;
  tessera_status *status =
      tessera_binding_create(module, symbols.data(), symbols.size(),
                             pointers.data(), pointers.size(), &binding);
  if (!status)
    tessera_binding_destroy(binding);
  EXPECT_EQ(tessera_status_code(status), code);
  return take(status);
}

inline tessera_alternative alternativeOf(tessera_binding *binding,
                                         size_t index) {
  auto result = sized<tessera_alternative>();
  EXPECT_OK(tessera_binding_alternative(binding, index, &result));
  return result;
}

inline bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}
#define EXPECT_ERROR(error, part)                                              \
  do {                                                                         \
    std::string found = error;                                                 \
    EXPECT_TRUE(contains(found, part)) << "error: '" << found << "'";          \
  } while (false)

} // namespace tessera::test

#endif // TESSERA_TEST_RUNTIME_RANKS_H
