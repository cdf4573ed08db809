//===- OnRecordingDriver.h - tests of the cuda backend without a GPU -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_RUNTIME_CUDA_ONRECORDINGDRIVER_H
#define TESSERA_TEST_RUNTIME_CUDA_ONRECORDINGDRIVER_H

#include "../../Runtime/Ranks.h"
#include "Emulation.h"
#include "RecordingDriver.h"

#include <cstdlib>
#include <dlfcn.h>

namespace tessera::test {

inline RecordingDriver &driver() {
  static RecordingDriver &access = []() -> RecordingDriver & {
    setenv("TESSERA_CUDA_LIBRARY_PATH", TESSERA_RECORDING_DRIVER, 1);
    void *library = dlopen(TESSERA_RECORDING_DRIVER "/libcuda.so.1", RTLD_NOW);
    if (!library)
      abort();
    return *reinterpret_cast<RecordingDriverAccess *>(
        dlsym(library, kRecordingDriverAccess))();
  }();
  return access;
}

/// Each test finds a new driver and leaves nothing in it.
class CUDA : public testing::Test {
protected:
  void SetUp() override { driver() = RecordingDriver(); }
  void TearDown() override {
    if (leaves)
      return;
    const RecordingDriver &d = driver();
    EXPECT_TRUE(d.allocations.empty()) << d.allocations.size() << " left";
    EXPECT_EQ(d.host + d.modules + d.streams + d.events + d.graphs + d.execs +
                  d.blas,
              0u)
        << d.host << " host, " << d.modules << " modules, " << d.streams
        << " streams, " << d.events << " events, " << d.graphs << " graphs, "
        << d.execs << " executables, " << d.blas << " of cuBLASLt left";
    for (auto [device, count] : d.retained)
      EXPECT_EQ(count, 0) << "device " << device;
  }
  bool leaves = false; ///< a device that broke keeps what it had
};

inline tessera_context_options cudaOptions(uint32_t flags = 0) {
  auto options = sized<tessera_context_options>();
  options.world = 1;
  options.backend = "cuda";
  options.flags = flags;
  return options;
}

/// A context, a module and a binding with all ports in device memory.
struct Session {
  tessera_context *context = nullptr;
  tessera_module *module = nullptr;
  tessera_binding *binding = nullptr;
  std::vector<void *> pointers;
  std::vector<size_t> bytes;

  std::string open(const std::string &file,
                   tessera_context_options options = cudaOptions()) {
    if (std::string error = take(tessera_context_create(&options, &context));
        !error.empty())
      return error;
    return take(
        tessera_module_load(context, file.data(), file.size(), &module));
  }
  /// Memory for each port, and `extra` bytes more.
  std::string allocate(const std::vector<int64_t> &symbols = {},
                       size_t extra = 0) {
    for (size_t i = 0; i < tessera_module_port_count(module); ++i) {
      auto layout = sized<tessera_layout>();
      if (std::string error = take(tessera_module_layout(
              module, i, symbols.data(), symbols.size(), &layout));
          !error.empty())
        return error;
      void *pointer = nullptr;
      if (layout.bytes)
        if (std::string error = take(tessera_device_allocate(
                context, layout.bytes + extra, &pointer));
            !error.empty())
          return error;
      pointers.push_back(pointer);
      bytes.push_back(layout.bytes);
    }
    return {};
  }
  std::string bindAllocated(const std::vector<int64_t> &symbols = {}) {
    return take(tessera_binding_create(module, symbols.data(), symbols.size(),
                                       pointers.data(), pointers.size(),
                                       &binding));
  }
  std::string bind(const std::vector<int64_t> &symbols = {}) {
    std::string error = allocate(symbols);
    return error.empty() ? bindAllocated(symbols) : error;
  }
  std::string run() { return take(tessera_binding_run(binding)); }
  void close() {
    if (binding)
      tessera_binding_destroy(binding);
    for (size_t i = 0; i < pointers.size(); ++i)
      tessera_device_free(context, pointers[i], bytes[i]);
    if (module)
      tessera_module_destroy(module);
    if (context)
      tessera_context_destroy(context);
    context = nullptr, module = nullptr, binding = nullptr;
    pointers.clear();
  }
  ~Session() { close(); }
};

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// With the copies and fills of Kernels/cuda/base/runtime.cu.
inline std::string runtimeCubin() {
  std::string text = "fake cubin 90\n";
  for (const char *kind : {"copy_", "transpose_", "fill_"})
    for (const char *bytes : {"1", "2", "4", "8", "16"}) {
      std::string name = std::string("tessera_") + kind + bytes;
      text +=
          name + " " + std::to_string(findEmulated(name).argumentBytes) + "\n";
    }
  return text;
}

struct CUDAPlan : PlanBuilder {
  std::string code;

  explicit CUDAPlan(const char *mesh = "<tp = 1>") : PlanBuilder(mesh) {
    plan.target = "cuda:sm_90a";
    binary("runtime", runtimeCubin());
  }
  int binary(std::string name, std::string text) {
    auto binary = std::make_unique<fb::BinaryT>();
    binary->name = std::move(name);
    binary->offset = code.size();
    text.push_back('\0');
    binary->size = text.size();
    code += text;
    plan.binaries.push_back(std::move(binary));
    return plan.binaries.size() - 1;
  }
  /// Adds a function to the last launch.
  void function(int binary, std::string symbol, std::vector<Size> space,
                int threads = 256, int shared = 0, int64_t items = 1) {
    auto function = std::make_unique<fb::FunctionT>();
    function->binary = binary;
    function->symbol = std::move(symbol);
    function->threads = threads;
    function->shared = shared;
    function->items = items;
    for (const Size &size : space)
      function->space.push_back(
          std::make_unique<fb::ScalarT>(valueScalar(size)));
    plan.steps.back()->action.AsLaunch()->functions.push_back(
        std::move(function));
  }
  std::string module(std::string constants = "") const {
    return PlanBuilder::module(code, std::move(constants), 0);
  }
};

/// y = 2 x + 1 on [batch, 8]: one kernel of one function, 4 points a block.
struct TwicePlus : CUDAPlan {
  explicit TwicePlus(int parameterBytes = 8 * (5 + 5 + 1)) {
    int batch = symbol("batch", 64);
    Size rows = Size::symbol(batch);
    int x = input("x", {rows, 8}, "[_, _]");
    int y = output("y", {rows, 8}, "[_, _]");
    int kernels = binary("pointwise", "fake cubin 90\ntwice_plus " +
                                          std::to_string(parameterBytes));
    launch("twice_plus", {x, y}, {valueScalar(1)});
    function(kernels, "twice_plus", {rows, 8}, 128, 1024, 4);
    driver().kernels["twice_plus"] = [](const FakeLaunch &launch) {
      const auto *x = reinterpret_cast<const float *>(launch.words[0]);
      auto *y = reinterpret_cast<float *>(launch.words[5]);
      const float plus = launch.words[10];
      for (uint64_t i = 0; i < launch.words[1] * launch.words[2]; ++i)
        y[i] = 2 * x[i] + plus;
    };
  }
};

/// Puts numbers in x, runs, and compares y.
inline void expectTwicePlus(Session &session, int64_t batch, float scale) {
  std::vector<float> x(batch * 8), y(batch * 8);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = scale * i;
  ASSERT_OK(tessera_device_copy(session.context, session.pointers[0], x.data(),
                                x.size() * 4));
  ASSERT_EQ(session.run(), "");
  ASSERT_OK(tessera_device_copy(session.context, y.data(), session.pointers[1],
                                y.size() * 4));
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(y[i], 2 * x[i] + 1) << i;
}

} // namespace tessera::test

#endif // TESSERA_TEST_RUNTIME_CUDA_ONRECORDINGDRIVER_H
