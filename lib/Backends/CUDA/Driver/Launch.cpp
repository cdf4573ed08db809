//===- Launch.cpp - kernels of a module on a GPU --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All functions of a launch take one parameter of the same words: for each
// tensor the pointer to its first element, sizes, strides; then the scalars.
// Maps of tensors stand behind them, for the functions that have some.
// What the driver knows of a function is compared with what the plan says when
// the launch is prepared, not when it runs.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Driver/Launch.h"
#include "Backends/CUDA/Driver/TensorMaps.h"
#include "Support/Try.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

using namespace tessera;
using namespace tessera::cuda;

//===----------------------------------------------------------------------===//
// Binaries
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<Binaries>> Binaries::load(const Device &device,
                                                 const ModuleReader &module) {
  Device::Current current(device);
  std::unique_ptr<Binaries> self(new Binaries(device));
  std::string_view code = module.section(Section::Code);
  for (const auto &binary : module.plan().binaries) {
    char log[4096];
    Module loaded = nullptr;
    auto load = [&](uint64_t offset, uint64_t size) {
      std::memset(log, 0, sizeof log);
      int options[] = {kErrorLog, kErrorLogBytes};
      // (The driver writes to this how much it says.)
      void *values[] = {log, reinterpret_cast<void *>(sizeof log - 1)};
      // It begins anywhere in the section; the driver wants it aligned.
      std::string bytes(code.substr(offset, size));
      return device.driver().moduleLoadDataEx(&loaded, bytes.data(), 2, options,
                                              values);
    };
    Code result = load(binary->offset, binary->size);
    std::string what = "load binary '" + binary->name + "'";
    if (result == kNoBinaryForGPU && binary->ptx_size) {
      result = load(binary->ptx_offset, binary->ptx_size);
      what += " from its PTX";
    }
    if (Status status = device.check(result, what); !status) {
      std::string message = status.message();
      if (result == kNoBinaryForGPU || result == kInvalidImage ||
          result == kInvalidPTX || result == kUnsupportedPTX)
        message += ", on GPU " + std::to_string(device.ordinal()) + " (" +
                   device.name() + ", compute capability " +
                   std::to_string(device.capability() / 10) + "." +
                   std::to_string(device.capability() % 10) + ", driver " +
                   device.driver().version() +
                   "): compile with --target=" + device.target();
      if (log[0])
        message += std::string("; ") + log;
      return Error{message};
    }
    self->modules.push_back(loaded);
    self->names.push_back(binary->name);
  }
  return self;
}

Binaries::~Binaries() {
  if (owner.isStuck())
    return;
  Device::Current current(owner);
  for (Module module : modules)
    owner.driver().moduleUnload(module);
}

Result<Binaries::Kernel> Binaries::findRuntime(const std::string &symbol,
                                               int threads, int words) {
  auto found = std::find(names.begin(), names.end(), "runtime");
  if (found == names.end())
    return Error{"the module has no binary 'runtime': compile it anew"};
  return find(found - names.begin(), symbol, threads, 0, words);
}

Result<Binaries::Kernel> Binaries::find(int binary, const std::string &symbol,
                                        int threads, int shared, int words) {
  const Driver &driver = owner.driver();
  Device::Current current(owner);
  Kernel kernel = {};
  const std::string name =
      "function '" + symbol + "' of binary '" + names[binary] + "'";
  TSR_TRY(owner.check(
      driver.moduleGetFunction(&kernel.handle, modules[binary], symbol.c_str()),
      "find " + name));
  if (words >= 0) {
    size_t offset = 0, bytes = 0;
    Code code =
        words ? driver.funcGetParamInfo(kernel.handle, 0, &offset, &bytes) : 0;
    TSR_TRY(owner.check(code, "ask for the parameter of " + name));
    // (Where it starts is not ours: an aligned one starts behind a gap.)
    if (bytes != static_cast<size_t>(words) * 8)
      return Error{name + " takes " + std::to_string(bytes) +
                   " bytes, its launch has " + std::to_string(words * 8)};
  }
  if (shared > 0)
    TSR_TRY(owner.check(
        driver.funcSetAttribute(kernel.handle, kMaxDynamicShared, shared),
        "give " + name + " " + std::to_string(shared) +
            " bytes of shared memory"));
  TSR_TRY(owner.check(
      driver.occupancy(&kernel.resident, kernel.handle, threads, shared),
      "ask for the occupancy of " + name));
  if (kernel.resident < 1)
    return Error{name + " does not fit on GPU " +
                 std::to_string(owner.ordinal()) + " with " +
                 std::to_string(threads) + " threads and " +
                 std::to_string(shared) + " bytes of shared memory a block"};
  return kernel;
}

//===----------------------------------------------------------------------===//
// Kernels of the runtime
//===----------------------------------------------------------------------===//

Status RuntimeQueue::prepare(Binaries &binaries,
                             std::vector<RuntimeLaunch> prepared) {
  device = &binaries.device();
  launches = std::move(prepared);
  functions.clear();
  for (const RuntimeLaunch &launch : launches) {
    Result<Binaries::Kernel> kernel =
        binaries.findRuntime(launch.kernel, RuntimeLaunch::kThreads,
                             static_cast<int>(launch.argument.size()));
    if (!kernel)
      return kernel.error();
    functions.push_back(kernel->handle);
  }
  return Ok{};
}

Status RuntimeQueue::enqueue() const {
  for (size_t i = 0; i < launches.size(); ++i) {
    const RuntimeLaunch &launch = launches[i];
    // The driver copies it during the call.
    void *parameters[] = {const_cast<uint64_t *>(launch.argument.data())};
    TSR_TRY(device->check(
        device->driver().launchKernel(functions[i], launch.blocks, 1, 1,
                                      RuntimeLaunch::kThreads, 1, 1, 0,
                                      device->stream(), parameters, nullptr),
        "launch '", launch.kernel, "'"));
  }
  return Ok{};
}

namespace {

class CopyWork final : public Work {
public:
  CopyWork(Binaries &binaries, const CopyLoop &loop, Place target, Place source)
      : binaries(binaries), loop(loop), to(target), from(source) {}

  void setAddresses(const Bases &bases) override {
    target = bases(to);
    source = bases(from);
  }

  Status prepare() override {
    if (loop.isDense() || loop.bytes() == 0)
      return Ok{};
    RuntimeLaunches launches(binaries.device().multiprocessors());
    launches.copy(loop, target, source);
    return queue.prepare(binaries, std::move(launches.launches));
  }

  Status run(const Running &) override {
    if (loop.bytes() == 0)
      return Ok{};
    if (!loop.isDense())
      return queue.enqueue();
    const Device &device = binaries.device();
    return device.check(
        device.driver().memcpyDtoDAsync(reinterpret_cast<DevicePointer>(target),
                                        reinterpret_cast<DevicePointer>(source),
                                        loop.bytes(), device.stream()),
        "enqueue a copy");
  }

  std::string text() const override {
    return "copy of " + std::to_string(loop.bytes()) + " bytes" +
           (loop.isDense() ? "" : ", strided");
  }

private:
  Binaries &binaries;
  CopyLoop loop;
  Place to, from;
  std::byte *target = nullptr, *source = nullptr;
  RuntimeQueue queue;
};

} // namespace

std::unique_ptr<Work> tessera::cuda::makeCopy(Binaries &binaries,
                                              const CopyLoop &loop,
                                              Place target, Place source) {
  return std::make_unique<CopyWork>(binaries, loop, target, source);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

namespace {

/// Of a launch, by the driver.
constexpr int64_t kMaxBlocks = INT32_MAX;

class LaunchWork final : public Work {
public:
  LaunchWork(const Device &device, std::string symbol)
      : device(device), symbol(std::move(symbol)) {}

  Status plan(Binaries &binaries, const fb::LaunchT &launch, Tensors &tensors) {
    for (int id : launch.tensors) {
      const LocalTensor &local = **tensors.get(id);
      pointers.push_back({words.size(), placeOf(local)});
      words.push_back(0);
      words.insert(words.end(), local.sizes.begin(), local.sizes.end());
      words.insert(words.end(), local.strides.begin(), local.strides.end());
    }
    for (const auto &scalar : launch.scalars) {
      Result<int64_t> value = tensors.value(*scalar, launch);
      if (!value)
        return value.error();
      words.push_back(*value);
    }
    bool follows = false; // what was launched before is the function before
    for (const auto &each : launch.functions) {
      Result<std::vector<Boxed>> boxed = planBoxed(*each, launch, tensors);
      if (!boxed)
        return boxed.error();
      const size_t mapped = boxed->empty() ? words.size() : endOfMaps(*boxed);
      Result<Binaries::Kernel> kernel =
          binaries.find(each->binary, each->symbol, each->threads, each->shared,
                        static_cast<int>(mapped));
      if (!kernel)
        return kernel.error();
      // (Blocks loop: any number of them is right.)
      const int64_t most =
          each->persistent
              ? int64_t(device.multiprocessors()) * kernel->resident
              : kMaxBlocks;
      int64_t points = 1;
      for (const auto &extent : each->space) {
        Result<int64_t> value = tensors.value(*extent, launch);
        if (!value)
          return value.error();
        if (*value < 0 || __builtin_mul_overflow(points, *value, &points))
          return Error{"the loops of function '" + each->symbol +
                       "' have too many points"};
      }
      const int64_t items = std::max<int64_t>(each->items, 1);
      // Whole clusters.
      const int64_t wanted = points / items + (points % items != 0);
      const int64_t blocks =
          std::min((wanted / each->cluster + (wanted % each->cluster != 0)),
                   std::max<int64_t>(most / each->cluster, 1)) *
          each->cluster;
      if (blocks > 0)
        functions.push_back({kernel->handle,
                             each->symbol,
                             static_cast<unsigned>(blocks),
                             static_cast<unsigned>(each->threads),
                             static_cast<unsigned>(each->shared),
                             each->early && follows,
                             std::move(*boxed),
                             {}});
      follows = blocks > 0;
    }
    return Ok{};
  }

  Status prepare() override {
    for (Launched &each : functions) {
      if (each.boxed.empty())
        continue;
      each.words = words;
      each.words.resize(endOfMaps(each.boxed));
      for (const Boxed &boxed : each.boxed)
        if (Status status = boxed.map.encode(
                device,
                reinterpret_cast<const std::byte *>(words[boxed.pointer]),
                reinterpret_cast<std::byte *>(&each.words[boxed.at]));
            !status)
          return Error{"function '" + each.symbol + "' cannot read " +
                       boxed.name + " in boxes: " + status.message()};
    }
    return Ok{};
  }

  void setAddresses(const Bases &bases) override {
    for (auto [word, place] : pointers)
      words[word] = reinterpret_cast<int64_t>(bases(place));
  }

  Status run(const Running &) override {
    for (Launched &each : functions) {
      std::vector<int64_t> &own = each.boxed.empty() ? words : each.words;
      void *parameters[] = {own.data()};
      // (Only read, but the driver's type does not say so.)
      static LaunchAttribute early = {.id = kProgrammaticSerialization,
                                      .value = {1}};
      const LaunchConfig config = {.gridX = each.blocks,
                                   .blockX = each.threads,
                                   .shared = each.shared,
                                   .stream = device.stream(),
                                   .attributes = &early,
                                   .count = each.early};
      TSR_TRY(device.check(device.driver().launchKernelEx(
                               &config, each.handle,
                               own.empty() ? nullptr : parameters, nullptr),
                           "launch '", each.symbol, "'"));
    }
    return Ok{};
  }

  std::string text() const override {
    std::string text = "kernel '" + symbol + "'";
    for (const Launched &each : functions)
      text += ", " + each.symbol + ": " + std::to_string(each.blocks) +
              " blocks of " + std::to_string(each.threads) + " threads, " +
              std::to_string(each.shared) + " bytes shared";
    return text;
  }

private:
  struct Boxed {
    TensorMap map;
    size_t pointer; ///< the word with the tensor's address
    size_t at;      ///< the map's first word
    std::string name;
  };
  struct Launched {
    Function handle;
    std::string symbol;
    unsigned blocks, threads, shared;
    bool early; ///< starts when the one before lets it
    std::vector<Boxed> boxed;
    std::vector<int64_t> words; ///< the parameter, if there are maps
  };

  static size_t endOfMaps(const std::vector<Boxed> &boxed) {
    return boxed.back().at + TensorMap::kBytes / 8;
  }

  Result<std::vector<Boxed>> planBoxed(const fb::FunctionT &function,
                                       const fb::LaunchT &launch,
                                       Tensors &tensors) const {
    constexpr size_t alignment = TensorMap::kAlignment / 8;
    size_t at = (words.size() + alignment - 1) / alignment * alignment;
    std::vector<Boxed> result;
    for (const auto &boxed : function.boxed) {
      const int id = launch.tensors[boxed->tensor];
      const auto create =
          boxed->ragged ? TensorMap::createRagged : TensorMap::create;
      Result<TensorMap> map = create(**tensors.get(id), boxed->box);
      if (!map)
        return Error{"function '" + function.symbol + "' cannot read " +
                     tensors.name(id) + " in boxes: " + map.message()};
      result.push_back({std::move(*map), pointers[boxed->tensor].first, at,
                        tensors.name(id)});
      at += TensorMap::kBytes / 8;
    }
    return result;
  }

  const Device &device;
  std::string symbol;
  std::vector<int64_t> words;
  std::vector<std::pair<size_t, Place>> pointers; ///< which words
  std::vector<Launched> functions;
};

} // namespace

Result<std::unique_ptr<Work>>
tessera::cuda::makeLaunch(Binaries &binaries, const fb::LaunchT &launch,
                          Tensors &tensors) {
  if (launch.functions.empty())
    return Error{"kernel '" + launch.symbol + "' has no functions for a GPU"};
  auto work = std::make_unique<LaunchWork>(binaries.device(), launch.symbol);
  TSR_TRY(work->plan(binaries, launch, tensors));
  return std::unique_ptr<Work>(std::move(work));
}
