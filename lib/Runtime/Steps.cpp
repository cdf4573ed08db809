//===- Steps.cpp - the steps of a plan as works ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernel launches get their argument arrays here, products of tensors their
// loops; collectives are in Collectives.cpp.
//
//===----------------------------------------------------------------------===//

#include "Runtime/Steps.h"
#include "Backends/CPU/Contract.h"

using namespace tessera;

std::vector<int> tessera::tensorsOf(const fb::StepT &step) {
  switch (step.action.type) {
  case fb::Action::Launch: {
    const auto &tensors = step.action.AsLaunch()->tensors;
    return {tensors.begin(), tensors.end()};
  }
  case fb::Action::Contract: {
    const fb::ContractT &contract = *step.action.AsContract();
    return {contract.a, contract.b, contract.c};
  }
  case fb::Action::Collective: {
    const fb::CollectiveT &collective = *step.action.AsCollective();
    return {collective.source, collective.target};
  }
  case fb::Action::Copy:
    return {step.action.AsCopy()->source, step.action.AsCopy()->target};
  default:
    return {};
  }
}

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
      Result<const LocalTensor *> tensor = tensors.get(id);
      if (!tensor)
        return tensor.error();
      const LocalTensor &local = **tensor;
      work->places.push_back(placeOf(local));
      // { T *allocated, T *aligned, int64 offset, sizes, strides }
      std::vector<int64_t> &words = work->descriptors.emplace_back(3);
      words.insert(words.end(), local.sizes.begin(), local.sizes.end());
      words.insert(words.end(), local.strides.begin(), local.strides.end());
    }
    for (const auto &scalar : launch.scalars) {
      Result<int64_t> value = valueOf(*scalar, tensors);
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

private:
  static Result<int64_t> valueOf(const fb::ScalarT &scalar, Tensors &tensors) {
    switch (scalar.kind) {
    case fb::ScalarKind::Value:
      return tensors.value(*scalar.extent);
    case fb::ScalarKind::Coord:
      return tensors.coords()[scalar.axis];
    default: {
      Result<const LocalTensor *> tensor = tensors.get(scalar.tensor);
      if (!tensor)
        return tensor.error();
      return (*tensor)->sizes[scalar.dim];
    }
    }
  }

  Code::Kernel kernel;
  std::vector<Place> places;
  std::vector<std::vector<int64_t>> descriptors;
  std::vector<int64_t> scalars;
  std::vector<void *> arguments;
};

class ContractWork final : public Work {
public:
  ContractWork(Contract contract, const LocalTensor &a, const LocalTensor &b,
               const LocalTensor &c)
      : contract(std::move(contract)),
        places{placeOf(a), placeOf(b), placeOf(c)},
        scratch(takeScratch(this->contract.scratchBytes())) {}

  void setAddresses(const Bases &bases) override {
    for (int i = 0; i < 3; ++i)
      pointers[i] = bases(places[i]);
    scratchPointer = bases(scratch);
  }
  Status run(const Running &) override {
    contract.run(pointers[0], pointers[1], pointers[2], scratchPointer);
    return Ok{};
  }

private:
  Contract contract;
  Place places[3];
  Place scratch;
  std::byte *pointers[3] = {};
  std::byte *scratchPointer = nullptr;
};

} // namespace

Result<std::unique_ptr<Work>> tessera::makeWork(int index, Tensors &tensors,
                                                const Code &code) {
  const fb::StepT &step = *tensors.module().plan().steps[index];
  std::vector<const LocalTensor *> local;
  for (int id : tensorsOf(step)) {
    Result<const LocalTensor *> tensor = tensors.get(id);
    if (!tensor)
      return tensor.error();
    local.push_back(*tensor);
  }
  switch (step.action.type) {
  case fb::Action::Launch:
    return LaunchWork::create(*step.action.AsLaunch(), tensors, code);
  case fb::Action::Contract: {
    const fb::ContractT &labels = *step.action.AsContract();
    auto operand = [](const LocalTensor &tensor,
                      const std::vector<int32_t> &labels) {
      return Contract::Operand{tensor.dtype, tensor.sizes, tensor.strides,
                               labels};
    };
    Result<Contract> contract =
        Contract::create(operand(*local[0], labels.a_labels),
                         operand(*local[1], labels.b_labels),
                         operand(*local[2], labels.c_labels));
    if (!contract)
      return contract.error();
    return std::unique_ptr<Work>(new ContractWork(
        std::move(*contract), *local[0], *local[1], *local[2]));
  }
  case fb::Action::Collective: {
    auto work = CollectiveWork::create(
        *step.action.AsCollective(), tensors.module().axes(index), *local[0],
        *local[1], tensors.module().mesh(), tensors.rank());
    if (!work)
      return work.error();
    return std::unique_ptr<Work>(std::move(*work));
  }
  default: { // Copy
    const LocalTensor &source = *local[0], &target = *local[1];
    if (source.sizes != target.sizes)
      return Error{"source and target of a copy have different local shapes"};
    return std::unique_ptr<Work>(
        new CopyWork(CopyLoop(source.elementBytes(), source.sizes,
                              target.strides, source.strides),
                     placeOf(target), placeOf(source)));
  }
  }
}
