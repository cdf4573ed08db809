//===- Backend.cpp - running on an NVIDIA GPU -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One rank, one GPU, one stream. Works enqueue; see Program.cpp for what waits.
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Run/Backend.h"
#include "Backends/CUDA/Blas/Contract.h"
#include "Backends/CUDA/CuDNN/Attend.h"
#include "Backends/CUDA/Driver/Launch.h"
#include "Backends/CUDA/NCCL/Collectives.h"
#include "Backends/CUDA/NCCL/Fetch.h"
#include "Backends/CUDA/Run/Program.h"
#include "Layout/Arena.h"
#include "Support/Try.h"

#include <algorithm>
#include <cstdio>

using namespace tessera;
using namespace tessera::cuda;

static constexpr const char *kTarget = "cuda:sm_";
/// Of the GPUs that modules are compiled for.
static constexpr int kFirst = 80;

namespace {

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

class CUDAModule final : public BackendModule {
public:
  CUDAModule(Device &device, std::unique_ptr<Communicators> &communicators,
             std::unique_ptr<Blas> &blas, std::unique_ptr<CuDNN> &cudnn,
             Chooser &chooser, std::unique_ptr<Binaries> binaries,
             uint32_t flags)
      : device(device), communicators(communicators), blas(blas), cudnn(cudnn),
        chooser(chooser), binaries(std::move(binaries)), flags(flags) {}

  Result<std::unique_ptr<Work>> makeLaunch(const fb::LaunchT &launch,
                                           Tensors &tensors) override {
    return cuda::makeLaunch(*binaries, launch, tensors);
  }

  Result<std::unique_ptr<Work>> makeContract(const fb::ContractT &contract,
                                             Tensors &tensors) override {
    if (!blas) {
      Device::Current current(device);
      Result<std::unique_ptr<Blas>> opened = Blas::open();
      if (!opened)
        return opened.error();
      blas = std::move(*opened);
    }
    return cuda::makeContract(*binaries, *blas, chooser, contract, tensors);
  }

  Result<std::unique_ptr<Work>> makeAttend(const fb::AttendT &attend,
                                           Tensors &tensors) override {
    if (!cudnn) {
      Result<std::unique_ptr<CuDNN>> opened = CuDNN::open(device);
      if (!opened)
        return opened.error();
      cudnn = std::move(*opened);
    }
    return cuda::makeAttend(*binaries, *cudnn, attend, tensors);
  }

  Result<std::unique_ptr<Work>>
  makeCollective(const fb::CollectiveT &collective,
                 const std::vector<layout::SubAxis> &axes,
                 Tensors &tensors) override {
    const bool moves = movesBetweenRanks(collective, tensors.module().mesh());
    if (moves && !communicators) {
      Result<std::unique_ptr<Communicators>> opened =
          Communicators::open(device, flags);
      if (!opened)
        return opened.error();
      communicators = std::move(*opened);
    }
    Communicators *used = moves ? communicators.get() : nullptr;
    return collective.kind == fb::CollectiveKind::Fetch
               ? makeFetch(*binaries, used, collective, axes, tensors)
               : cuda::makeCollective(*binaries, used, collective, axes,
                                      tensors);
  }

  Result<std::unique_ptr<Work>> makeCopy(const CopyLoop &loop, Place target,
                                         Place source) override {
    return cuda::makeCopy(*binaries, loop, target, source);
  }

  Result<std::unique_ptr<Program>>
  makeProgram(std::span<const std::unique_ptr<Work>> works) override {
    Function mark = nullptr;
    if (std::ranges::any_of(
            works, [](const auto &work) { return work->meetsPeers(); })) {
      Result<Binaries::Kernel> kernel =
          binaries->findRuntime("tessera_mark", 1, 2);
      if (!kernel)
        return kernel.error();
      mark = kernel->handle;
    }
    return cuda::makeProgram(device, *binaries, mark, works, flags);
  }

private:
  Device &device;
  std::unique_ptr<Communicators> &communicators; ///< the backend's
  std::unique_ptr<Blas> &blas; ///< the context's, opened for the first product
  std::unique_ptr<CuDNN> &cudnn; ///< likewise, for the first attention
  Chooser &chooser;
  std::unique_ptr<Binaries> binaries;
  uint32_t flags;
};

//===----------------------------------------------------------------------===//
// The backend
//===----------------------------------------------------------------------===//

class CUDABackend final : public Backend {
public:
  CUDABackend(std::unique_ptr<Device> device, const CUDAOptions &options,
              Peers &peers)
      : device(std::move(device)), chooser(peers, *this, *this->device),
        options(options) {}

  Outcome<Ok> openAlgorithms() {
    const bool measures = options.flags & TESSERA_AUTOTUNE;
    if (!options.algorithms && measures)
      return Failure{TESSERA_INVALID_ARGUMENT,
                     "TESSERA_AUTOTUNE needs `algorithms`, the file that keeps "
                     "what is measured"};
    if (!options.algorithms)
      return Ok{};
    Device::Current current(*device);
    Result<std::unique_ptr<Blas>> opened = Blas::open();
    if (!opened)
      return Failure{TESSERA_UNSUPPORTED, opened.message()};
    blas = std::move(*opened);
    return chooser.open(options.algorithms, measures, *blas);
  }

  /// What is mapped between peers is NCCL's memory from the start: later
  /// modules reuse it.
  Outcome<Ok> openCommunicators(int ranks) {
    if (!sharesMemory() || ranks == 1)
      return Ok{};
    Result<std::unique_ptr<Communicators>> opened =
        Communicators::open(*device, options.flags);
    if (!opened)
      return Failure{TESSERA_UNSUPPORTED, opened.message()};
    communicators = std::move(*opened);
    return Ok{};
  }

  std::string common() const override {
    return target() + "\n" +
           std::to_string(options.flags &
                          (TESSERA_SYMMETRIC | TESSERA_COPY_ENGINES)) +
           "\n" + chooser.common();
  }
  std::string commonParts() const override {
    return options.algorithms ? "target, flags, GPU, cuBLASLt or the file of "
                                "algorithms"
                              : Backend::commonParts();
  }
  Outcome<Ok> agree() override { return chooser.agree(); }

  ~CUDABackend() override {
    if (device->isStuck()) {
      blas.release();
      cudnn.release();
      return;
    }
    Device::Current current(*device);
    blas.reset();
    cudnn.reset();
  }

  std::string target() const override { return device->target(); }

  DeviceNote describeDevice() const override {
    std::string libraries;
    auto add = [&](const char *name, const std::string &version) {
      libraries +=
          (libraries.empty() ? "" : ", ") + std::string(name) + version;
    };
    if (blas)
      add("cuBLASLt ", blas->version());
    if (cudnn)
      add("cuDNN ", cudnn->api().version());
    if (communicators)
      add("NCCL ", communicators->version());
    return {device->ordinal(), device->name(), device->driver().version(),
            std::move(libraries)};
  }

  std::vector<CommunicatorNote> describeCommunicators() const override {
    if (!communicators)
      return {};
    return communicators->describe();
  }

  Status accepts(const std::string &target) const override {
    if (target.rfind(kTarget, 0) != 0)
      return Error{"compile with --target=" + this->target() +
                   " or use --backend cpu"};
    int number = 0, length = 0;
    char suffix = 0;
    const char *text = target.c_str() + std::string(kTarget).size();
    const int found = std::sscanf(text, "%d%n%c", &number, &length, &suffix);
    // sm_90a runs on 9.0 alone; sm_80 on all from 8.0 on, from PTX where its
    // cubin does not.
    const bool exact = found == 2 && suffix == 'a' && text[length + 1] == 0;
    if (found < 1 || (found == 2 && !exact))
      return Error{"that is no architecture of a GPU"};
    const int own = device->capability();
    if (exact ? number == own : number <= own)
      return Ok{};
    return Error{
        "that needs compute capability " + std::to_string(number / 10) + "." +
        std::to_string(number % 10) + ", GPU " +
        std::to_string(device->ordinal()) + " (" + device->name() + ") has " +
        std::to_string(own / 10) + "." + std::to_string(own % 10) +
        (own < kFirst ? "; targets begin with cuda:sm_" + std::to_string(kFirst)
                      : ": compile with --target=" + this->target())};
  }

  /// Those of kernels always can.
  Status runs(std::string_view variant,
              const fb::AlternativeT &of) const override {
    if (variant != "cudnn")
      return Ok{};
    Result<const dnn::Api *> api = dnn::Api::get();
    if (!api)
      return api.error();
    return of.op == "tv.attention_grad" ? whyNotGradients(**api, *device)
                                        : Status(Ok{});
  }

  Result<std::unique_ptr<BackendModule>>
  load(const ModuleReader &module) override {
    Result<std::unique_ptr<Binaries>> binaries =
        Binaries::load(*device, module);
    if (!binaries)
      return binaries.error();
    return std::unique_ptr<BackendModule>(
        new CUDAModule(*device, communicators, blas, cudnn, chooser,
                       std::move(*binaries), options.flags));
  }

  bool isHost() const override { return false; }
  int64_t alignment() const override { return layout::kDeviceAlignment; }

  std::optional<uint64_t> available() const override {
    Device::Current current(*device);
    size_t free = 0, total = 0;
    if (options.allocator || device->driver().memGetInfo(&free, &total))
      return std::nullopt;
    return free;
  }

  Result<std::byte *> allocate(MemoryKind kind, size_t bytes) override {
    if (kind == MemoryKind::Symmetric && communicators && sharesMemory())
      return communicators->allocate(bytes);
    if (isCallers(kind)) {
      void *pointer = options.allocator.allocate(options.allocator.user, bytes);
      if (!pointer)
        return Error{"not enough memory: the caller's allocator has no " +
                     std::to_string(bytes) + " bytes"};
      return static_cast<std::byte *>(pointer);
    }
    Device::Current current(*device);
    Result<DevicePointer> pointer = device->allocate(bytes);
    if (!pointer)
      return pointer.error();
    return reinterpret_cast<std::byte *>(*pointer);
  }

  void deallocate(MemoryKind kind, std::byte *pointer, size_t bytes) override {
    if (communicators && communicators->free(pointer))
      return;
    if (isCallers(kind))
      return options.allocator.deallocate(options.allocator.user, pointer,
                                          bytes);
    Device::Current current(*device);
    device->free(reinterpret_cast<DevicePointer>(pointer));
  }

  Outcome<Ok> share(Peers &peers, std::byte *symmetric, size_t bytes) override {
    if (!communicators)
      return Ok{};
    return communicators->share(peers, symmetric, bytes);
  }

  Status copy(void *target, const void *source, size_t bytes) override {
    Device::Current current(*device);
    return device->copy(target, source, bytes);
  }

private:
  bool sharesMemory() const {
    return options.flags & (TESSERA_SYMMETRIC | TESSERA_COPY_ENGINES);
  }
  /// What peers read is memory that we made.
  bool isCallers(MemoryKind kind) const {
    return options.allocator && kind == MemoryKind::Local;
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Communicators> communicators; ///< opened by the first need
  std::unique_ptr<Blas> blas;
  std::unique_ptr<CuDNN> cudnn;
  Chooser chooser;
  CUDAOptions options;
};

} // namespace

Outcome<std::unique_ptr<Backend>>
tessera::createCUDABackend(const CUDAOptions &options, Peers &peers) {
  Outcome<std::unique_ptr<Device>> device =
      Device::open(options.device, peers.rank());
  if (!device)
    return device.error();
  auto backend =
      std::make_unique<CUDABackend>(std::move(*device), options, peers);
  TSR_TRY(backend->openAlgorithms());
  TSR_TRY(backend->openCommunicators(peers.size()));
  return std::unique_ptr<Backend>(std::move(backend));
}
