//===- Contract.cpp - products of tensors on a GPU ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends/CUDA/Blas/Contract.h"
#include "Support/Try.h"

using namespace tessera;
using namespace tessera::cuda;

namespace {

class ContractWork final : public Work {
public:
  ContractWork(Binaries &binaries, const Blas &blas, Chooser &chooser,
               Products products)
      : binaries(binaries), blas(blas), chooser(chooser),
        products(std::move(products)) {}

  /// `tensors` by Products' numbers; null where there is none.
  void plan(const std::array<const LocalTensor *, Products::Count> &tensors) {
    if (products.empty)
      return;
    if (products.zero) {
      for (int t : {int(Products::C), int(Products::Sums)})
        if (tensors[t]) {
          const LocalTensor &zero = *tensors[t];
          zeros.emplace_back(t, CopyLoop(zero.elementBytes(), zero.sizes,
                                         zero.strides,
                                         layout::Shape(zero.sizes.size(), 0)));
          places[t] = placeOf(zero);
        }
      return;
    }
    // First, for its alignment.
    workspace = takeScratch(Blas::kWorkspace);
    for (int t = 0; t < Products::Count; ++t) {
      if (!tensors[t])
        continue;
      places[t] = placeOf(*tensors[t]);
      if (!products.staged[t])
        continue;
      const Staging &staging = *products.staged[t];
      const int64_t bytes = tensors[t]->elementBytes();
      const Place tensor = *places[t];
      const Place dense = takeScratch(staging.elements * bytes);
      places[t] = dense;
      if (products.isWritten(t))
        after.push_back(makeCopy(
            binaries,
            CopyLoop(bytes, staging.sizes, staging.strides, staging.dense),
            tensor, dense));
      else
        before.push_back(makeCopy(
            binaries,
            CopyLoop(bytes, staging.sizes, staging.dense, staging.strides),
            dense, tensor));
    }
    if (tensors[Products::Addend])
      placeAddend(*tensors[Products::Addend], *tensors[Products::C]);
  }

  void setAddresses(const Bases &bases) override {
    for (auto *copies : {&before, &after})
      for (const auto &copy : *copies)
        copy->setAddresses(bases);
    auto at = [&](int t) { return places[t] ? bases(*places[t]) : nullptr; };
    addresses = {at(Products::A),      at(Products::B),   at(Products::C),
                 at(Products::Bias),   at(Products::Aux), at(Products::Sums),
                 at(Products::Addend), bases(workspace)};
  }

  Status prepare() override {
    for (auto *copies : {&before, &after})
      for (const auto &copy : *copies)
        TSR_TRY(copy->prepare());
    if (products.zero) {
      RuntimeLaunches launches(binaries.device().multiprocessors());
      const std::byte zero[8] = {};
      for (const auto &[t, loop] : zeros)
        launches.fill(loop, t == Products::C ? addresses.c : addresses.sums,
                      zero, info(products.dtypes[Products::C]).bytes);
      return queue.prepare(binaries, std::move(launches.launches));
    }
    if (products.empty)
      return Ok{};
    Device::Current current(binaries.device());
    Result<std::unique_ptr<Blas::Calls>> prepared =
        blas.prepare(products, addresses);
    if (!prepared)
      return prepared.error();
    calls = std::move(*prepared);
    Result<Choice> choice = chooser.choose(blas, *calls);
    if (!choice)
      return choice.error();
    report.choice = *choice;
    return Ok{};
  }

  Status connect(Peers &) override {
    if (!calls)
      return Ok{};
    report.choice = chooser.settle(*calls, report.choice);
    if (report.choice != Choice::Heuristic)
      report.hash = calls->algorithmHash();
    return Ok{};
  }

  const AlgorithmReport *algorithm() const override {
    return calls ? &report : nullptr;
  }

  Status run(const Running &running) override {
    if (products.zero)
      return queue.enqueue();
    for (const auto &copy : before)
      TSR_TRY(copy->run(running));
    if (calls)
      TSR_TRY(calls->run(binaries.device().stream()));
    for (const auto &copy : after)
      TSR_TRY(copy->run(running));
    return Ok{};
  }

  std::string text() const override {
    if (products.empty || products.zero)
      return "product over nothing";
    const MatrixProduct &product = products.product;
    return "product " + std::to_string(product.m) + " x " +
           std::to_string(product.n) + " x " + std::to_string(product.k) +
           ", batch " + std::to_string(product.batch) + ", " +
           std::to_string(products.calls.size()) + " calls, " +
           std::to_string(before.size() + after.size()) + " operands copied" +
           (report.choice == Choice::Stored     ? ", stored algorithm"
            : report.choice == Choice::Measured ? ", measured algorithm"
                                                : "");
  }

private:
  /// The library reads the addend where it is if it lies as c does, else in c's
  /// place.
  void placeAddend(const LocalTensor &addend, const LocalTensor &c) {
    const bool isStaged = products.staged[Products::C].has_value();
    if (!isStaged && addend.strides == c.strides)
      return;
    before.push_back(
        makeCopy(binaries,
                 CopyLoop(c.elementBytes(), c.sizes, c.strides, addend.strides),
                 placeOf(c), placeOf(addend)));
    places[Products::Addend] = places[Products::C];
    if (isStaged) {
      const Staging &staging = *products.staged[Products::C];
      before.push_back(makeCopy(binaries,
                                CopyLoop(c.elementBytes(), staging.sizes,
                                         staging.dense, staging.strides),
                                *places[Products::C], placeOf(c)));
    }
  }

  Binaries &binaries;
  const Blas &blas;
  Chooser &chooser;
  Products products;
  std::optional<Place> places[Products::Count];
  Place workspace{Place::kScratch, 0};
  std::vector<std::unique_ptr<Work>> before, after;
  Blas::Addresses addresses = {};
  std::unique_ptr<Blas::Calls> calls;
  AlgorithmReport report;
  // When no term is summed: of tensors by their numbers.
  std::vector<std::pair<int, CopyLoop>> zeros;
  RuntimeQueue queue;
};

} // namespace

Result<std::unique_ptr<Work>>
tessera::cuda::makeContract(Binaries &binaries, const Blas &blas,
                            Chooser &chooser, const fb::ContractT &contract,
                            Tensors &tensors) {
  TSR_TRY(checkEpilogue(contract));
  std::array<const LocalTensor *, Products::Count> local = {};
  const int ids[] = {contract.a,
                     contract.b,
                     contract.c,
                     contract.bias,
                     contract.x >= 0 ? contract.x : contract.aux,
                     contract.sums,
                     contract.addend};
  for (int t = 0; t < Products::Count; ++t)
    if (ids[t] >= 0) {
      Result<const LocalTensor *> tensor = tensors.get(ids[t]);
      if (!tensor)
        return tensor.error();
      local[t] = *tensor;
    }
  auto operand = [&](int t, const std::vector<int32_t> &labels) {
    return Contraction::Operand{local[t]->dtype, local[t]->sizes,
                                local[t]->strides, labels};
  };
  Epilogue epilogue;
  for (int t = Products::Bias; t < Products::Count; ++t)
    if (local[t] && local[t]->dtype != local[Products::C]->dtype)
      return Error{tensors.name(ids[t]) + " must be of the result's type, " +
                   info(local[Products::C]->dtype).name};
  if (local[Products::Bias]) {
    epilogue.bias = true;
    epilogue.biasStride = local[Products::Bias]->strides[0];
  }
  epilogue.gelu = contract.epilogue == fb::Epilogue::GeluTanh;
  epilogue.geluGrad = contract.epilogue == fb::Epilogue::GeluTanhGrad;
  if (local[Products::Aux]) {
    if (local[Products::Aux]->sizes != local[Products::C]->sizes)
      return Error{tensors.name(ids[Products::Aux]) +
                   " must have the result's local shape"};
    epilogue.aux = true;
    epilogue.auxStrides = local[Products::Aux]->strides;
  }
  if (local[Products::Sums]) {
    epilogue.summed = contract.summed;
    epilogue.sumsStride = local[Products::Sums]->strides[0];
  }
  const LocalTensor *addend = local[Products::Addend];
  if (addend && addend->sizes != local[Products::C]->sizes)
    return Error{tensors.name(ids[Products::Addend]) +
                 " must have the result's local shape"};
  epilogue.addend = addend;
  Result<Products> products =
      Products::create(operand(Products::A, contract.a_labels),
                       operand(Products::B, contract.b_labels),
                       operand(Products::C, contract.c_labels), epilogue);
  if (!products)
    return products.error();
  if (local[Products::Sums] &&
      local[Products::Sums]->sizes[0] != products->numSums)
    return Error{tensors.name(ids[Products::Sums]) + " must have " +
                 std::to_string(products->numSums) + " elements"};
  // A sum of no terms adds nothing.
  if (addend && products->zero) {
    const LocalTensor &c = *local[Products::C];
    return makeCopy(
        binaries,
        CopyLoop(c.elementBytes(), c.sizes, c.strides, addend->strides),
        placeOf(c), placeOf(*addend));
  }
  auto work = std::make_unique<ContractWork>(binaries, blas, chooser,
                                             std::move(*products));
  work->plan(local);
  return std::unique_ptr<Work>(std::move(work));
}
