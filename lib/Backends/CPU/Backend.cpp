//===- Backend.cpp - running on this machine's processor ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Works run one after the other on the caller's thread: kernels from the
// module's shared object, products with BLAS, collectives over the context's
// transport.
//
//===----------------------------------------------------------------------===//

#include "Backends/CPU/Backend.h"
#include "Backends/CPU/Code.h"
#include "Backends/CPU/Collectives.h"
#include "Backends/CPU/Contract.h"
#include "Backends/CPU/Fetch.h"
#include "Layout/Arena.h"
#include "Support/Clock.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace tessera;

//===----------------------------------------------------------------------===//
// Works
//===----------------------------------------------------------------------===//

namespace {

class LaunchWork final : public Work {
public:
  static Result<std::unique_ptr<Work>>
  create(const fb::LaunchT &launch, Tensors &tensors, const Code &code) {
    Result<Code::Kernel> kernel = code.find(launch.symbol);
    if (!kernel)
      return kernel.error();
    auto work = std::make_unique<LaunchWork>();
    work->kernel = *kernel;
    for (int id : launch.tensors) {
      const LocalTensor &local = **tensors.get(id);
      work->places.push_back(placeOf(local));
      // { T *allocated, T *aligned, int64 offset, sizes, strides }
      std::vector<int64_t> &words = work->descriptors.emplace_back(3);
      words.insert(words.end(), local.sizes.begin(), local.sizes.end());
      words.insert(words.end(), local.strides.begin(), local.strides.end());
    }
    work->symbol = launch.symbol;
    for (const auto &scalar : launch.scalars) {
      Result<int64_t> value = tensors.value(*scalar, launch);
      if (!value)
        return value.error();
      work->scalars.push_back(*value);
    }
    for (std::vector<int64_t> &words : work->descriptors)
      work->arguments.push_back(words.data());
    for (int64_t &scalar : work->scalars)
      work->arguments.push_back(&scalar);
    return std::unique_ptr<Work>(std::move(work));
  }

  void setAddresses(const Bases &bases) override {
    for (size_t i = 0; i < places.size(); ++i)
      descriptors[i][0] = descriptors[i][1] =
          reinterpret_cast<int64_t>(bases(places[i]));
  }

  Status run(const Running &) override {
    kernel(arguments.data());
    return Ok{};
  }
  std::string text() const override { return "kernel '" + symbol + "'"; }

private:
  Code::Kernel kernel;
  std::string symbol;
  std::vector<Place> places;
  std::vector<std::vector<int64_t>> descriptors;
  std::vector<int64_t> scalars;
  std::vector<void *> arguments;
};

class ContractWork final : public Work {
public:
  ContractWork(Contract contract, const LocalTensor &a, const LocalTensor &b,
               const LocalTensor &c, const LocalTensor *addend)
      : contract(std::move(contract)), places{placeOf(a), placeOf(b),
                                              placeOf(c)},
        scratch(takeScratch(this->contract.scratchBytes())) {
    if (addend) {
      places[3] = placeOf(*addend);
      copy.emplace(c.elementBytes(), c.sizes, c.strides, addend->strides);
    }
  }

  void setAddresses(const Bases &bases) override {
    for (int i = 0; i < (copy ? 4 : 3); ++i)
      pointers[i] = bases(places[i]);
    scratchPointer = bases(scratch);
  }
  Status run(const Running &) override {
    if (copy)
      copy->run(pointers[2], pointers[3]);
    contract.run(pointers[0], pointers[1], pointers[2], scratchPointer,
                 /*adds=*/copy.has_value());
    return Ok{};
  }

private:
  Contract contract;
  Place places[4]; ///< a, b, c and the addend
  Place scratch;
  std::optional<CopyLoop> copy; ///< of the addend to c
  std::byte *pointers[4] = {};
  std::byte *scratchPointer = nullptr;
};

class CopyWork final : public Work {
public:
  CopyWork(const CopyLoop &loop, Place target, Place source)
      : loop(loop), to(target), from(source) {}
  void setAddresses(const Bases &bases) override {
    target = bases(to);
    source = bases(from);
  }
  Status run(const Running &) override {
    loop.run(target, source);
    return Ok{};
  }

private:
  CopyLoop loop;
  Place to, from;
  std::byte *target = nullptr;
  const std::byte *source = nullptr;
};

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

class CPUProgram final : public Program {
public:
  CPUProgram(std::span<const std::unique_ptr<Work>> works, uint32_t flags)
      : works(works), flags(flags), measured(works.size()) {}

  Ran run(Peers &peers, const StepNames &names) override {
    Watch *watch = peers.watch();
    const double began = now();
    for (size_t i = 0; i < works.size(); ++i) {
      if (flags & TESSERA_CHECK_STEPS)
        peers.log(TESSERA_LOG_INFO, describeStep(i, names, *works[i]));
      if (watch)
        watch->begin(i);
      measured[i].begin = i ? measured[i - 1].end : began;
      const bool waits = works[i]->meetsPeers();
      Status status = works[i]->run(
          waits ? Running{peers.transport(), &peers.startWait()} : Running{});
      if (!status)
        return Stop{i, waits ? TESSERA_PEER : TESSERA_INTERNAL,
                    status.message()};
      measured[i].end = now();
      if (watch)
        watch->end(i);
    }
    host = works.empty() ? 0 : measured.back().end - began;
    return Ok{};
  }
  std::span<const StepTime> times() const override { return measured; }
  double hostSeconds() const override { return host; }

private:
  std::span<const std::unique_ptr<Work>> works;
  const uint32_t flags;
  std::vector<StepTime> measured;
  double host = 0;
};

class CPUModule final : public BackendModule {
public:
  CPUModule(Code code, Transport *transport, uint32_t flags)
      : code(std::move(code)), transport(transport), flags(flags) {}

  Result<std::unique_ptr<Work>> makeLaunch(const fb::LaunchT &launch,
                                           Tensors &tensors) override {
    return LaunchWork::create(launch, tensors, code);
  }

  Result<std::unique_ptr<Work>> makeContract(const fb::ContractT &contract,
                                             Tensors &tensors) override {
    if (contract.bias >= 0 || contract.epilogue != fb::Epilogue::None ||
        contract.summed != fb::Summed::None)
      return Error{
          "the cpu backend has no product with a bias, an epilogue or sums; "
          "compile for the target cpu"};
    const LocalTensor &a = **tensors.get(contract.a);
    const LocalTensor &b = **tensors.get(contract.b);
    const LocalTensor &c = **tensors.get(contract.c);
    auto operand = [](const LocalTensor &tensor,
                      const std::vector<int32_t> &labels) {
      return Contract::Operand{tensor.dtype, tensor.sizes, tensor.strides,
                               labels};
    };
    Result<Contract> loops = Contract::create(operand(a, contract.a_labels),
                                              operand(b, contract.b_labels),
                                              operand(c, contract.c_labels));
    if (!loops)
      return loops.error();
    const LocalTensor *addend = nullptr;
    if (contract.addend >= 0)
      addend = *tensors.get(contract.addend);
    return std::unique_ptr<Work>(
        new ContractWork(std::move(*loops), a, b, c, addend));
  }

  Result<std::unique_ptr<Work>> makeAttend(const fb::AttendT &,
                                           Tensors &) override {
    return Error{"attention by cuDNN needs the backend cuda"};
  }

  Result<std::unique_ptr<Work>>
  makeCollective(const fb::CollectiveT &collective,
                 const std::vector<layout::SubAxis> &axes,
                 Tensors &tensors) override {
    if (collective.kind == fb::CollectiveKind::Fetch)
      return FetchWork::create(collective, axes, tensors, transport);
    Result<CollectivePlan> plan =
        CollectivePlan::create(collective, axes, tensors);
    if (!plan)
      return plan.error();
    if (transport)
      transport->reserve(plan->mostMessages());
    return std::unique_ptr<Work>(new CollectiveWork(std::move(*plan)));
  }

  Result<std::unique_ptr<Work>> makeCopy(const CopyLoop &loop, Place target,
                                         Place source) override {
    return std::unique_ptr<Work>(new CopyWork(loop, target, source));
  }

  Result<std::unique_ptr<Program>>
  makeProgram(std::span<const std::unique_ptr<Work>> works) override {
    return std::unique_ptr<Program>(new CPUProgram(works, flags));
  }

private:
  Code code;
  Transport *transport; ///< null when there is one rank
  uint32_t flags;
};

//===----------------------------------------------------------------------===//
// The backend
//===----------------------------------------------------------------------===//

class CPUBackend final : public Backend {
public:
  CPUBackend(const CPUOptions &options, Transport *transport)
      : options(options), transport(transport) {}

  std::string target() const override { return "cpu"; }
  Status accepts(const std::string &target) const override {
    if (target != this->target())
      return Error{"compile with --target=cpu or use --backend cuda"};
    return Ok{};
  }

  Status runs(std::string_view variant,
              const fb::AlternativeT &) const override {
    if (variant == "cudnn")
      return Error{"it needs the backend cuda"};
    return Ok{};
  }

  Result<std::unique_ptr<BackendModule>>
  load(const ModuleReader &module) override {
    Code code;
    if (!module.section(Section::Code).empty()) {
      Result<Code> loaded = Code::load(module.section(Section::Code));
      if (!loaded)
        return loaded.error();
      code = std::move(*loaded);
    }
    return std::unique_ptr<BackendModule>(
        new CPUModule(std::move(code), transport, options.flags));
  }

  bool isHost() const override { return true; }
  int64_t alignment() const override { return kAlignment; }

  /// The system hands out more than it has, and ends the process later: so ask.
  std::optional<uint64_t> available() const override {
    if (options.allocator)
      return std::nullopt;
    FILE *file = std::fopen("/proc/meminfo", "re");
    if (!file)
      return std::nullopt;
    char line[128];
    unsigned long long kib;
    std::optional<uint64_t> result;
    while (!result && std::fgets(line, sizeof line, file))
      if (std::sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
        result = kib * 1024;
    std::fclose(file);
    return result;
  }

  Result<std::byte *> allocate(MemoryKind kind, size_t bytes) override {
    const size_t rounded = round(bytes);
    const Allocator &callers = options.allocator;
    void *pointer = rounded < bytes   ? nullptr
                    : isCallers(kind) ? callers.allocate(callers.user, rounded)
                                      : std::aligned_alloc(kAlignment, rounded);
    if (!pointer)
      return Error{"not enough memory for " + std::to_string(bytes) + " bytes"};
    return static_cast<std::byte *>(pointer);
  }

  void deallocate(MemoryKind kind, std::byte *pointer, size_t bytes) override {
    if (isCallers(kind))
      options.allocator.deallocate(options.allocator.user, pointer,
                                   round(bytes));
    else
      std::free(pointer);
  }

  Status copy(void *target, const void *source, size_t bytes) override {
    if (bytes)
      std::memcpy(target, source, bytes);
    return Ok{};
  }

private:
  static constexpr int64_t kAlignment = layout::kHostAlignment;
  bool isCallers(MemoryKind kind) const {
    return options.allocator && kind != MemoryKind::External;
  }
  static size_t round(size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  CPUOptions options;
  Transport *transport;
};

} // namespace

std::unique_ptr<Backend> tessera::createCPUBackend(const CPUOptions &options,
                                                   Peers &peers) {
  return std::make_unique<CPUBackend>(options, peers.transport());
}
