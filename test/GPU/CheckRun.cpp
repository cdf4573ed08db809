//===- CheckRun.cpp - a run's outputs and collectives against a reference -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the GPU test bundle calls after each run, on machines without Python:
//
//   check-run EXPECTED_FOLDER OUTPUT.safetensors [EXPECTED.json REPORT.json]
//
// For each tensor NAME of EXPECTED (f64) the output NAME must have its shape
// and be no further from it than the tensor NAME:allowed says, element by
// element. The reports must list the same collectives: kind, axes, bytes,
// copies.
//
//===----------------------------------------------------------------------===//

#include "Support/DType.h"
#include "Tensors/Safetensors.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace tessera;

static constexpr const char *kAllowed = ":allowed";

static int fail(const std::string &message) {
  printf("%s\n", message.c_str());
  return 1;
}

static Result<double> element(const StoredTensor &tensor, int64_t index) {
  std::optional<DType> dtype = dtypeFromSafetensors(tensor.typeName);
  if (!dtype)
    return Error{tensor.name + " is of type " + tensor.typeName};
  double value;
  convertElement(tensor.data + index * info(*dtype).bytes, *dtype, &value,
                 DType::F64);
  return value;
}

/// The largest share of what is allowed that an element is off.
static Result<double> compare(const StoredTensor &expected,
                              const StoredTensor &allowed,
                              const StoredTensor &output) {
  if (expected.shape != output.shape)
    return Error{output.name + " has another shape than expected"};
  int64_t count = 1;
  for (int64_t size : expected.shape)
    count *= size;
  double worst = 0;
  for (int64_t i = 0; i < count; ++i) {
    Result<double> got = element(output, i), want = element(expected, i),
                   bound = element(allowed, i);
    if (!got)
      return got.error();
    if (!want || !bound)
      return Error{"the reference of " + output.name + " is not f64"};
    if (*got == *want || (std::isnan(*got) && std::isnan(*want)))
      continue;
    const double distance = std::abs(*got - *want);
    if (!(distance <= *bound)) {
      char text[256];
      snprintf(text, sizeof text,
               "%s: element %lld is %.9g for %.9g, where %.3g is allowed",
               output.name.c_str(), static_cast<long long>(i), *got, *want,
               *bound);
      return Error{text};
    }
    worst = std::max(worst, distance / *bound);
  }
  return worst;
}

/// What must not differ between two runs of one plan. (What a fetch moves the
/// data say; GPUs report the most that it may be.)
static Result<std::vector<nlohmann::json>> collectivesOf(const char *path) {
  std::ifstream file(path);
  auto report =
      nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!report.is_object() || !report.contains("collectives"))
    return Error{std::string(path) + " is no report of tessera-run"};
  std::vector<nlohmann::json> list;
  for (auto &each : report["collectives"])
    if (each["kind"] == "fetch")
      list.push_back({each["kind"], each["axes"]});
    else
      list.push_back({each["kind"], each["axes"], each["sent"],
                      each["received"], each["copies"], each["copied_bytes"]});
  return list;
}

int main(int argc, char **argv) {
  if (argc != 3 && argc != 5)
    return fail("usage: check-run EXPECTED_FOLDER OUTPUT.safetensors "
                "[EXPECTED.json REPORT.json]");
  Result<TensorFiles> expected = TensorFiles::open({argv[1]});
  Result<TensorFiles> output = TensorFiles::open({argv[2]});
  if (!expected || !output)
    return fail(!expected ? expected.message() : output.message());
  double worst = 0;
  int count = 0;
  for (const auto &[name, tensor] : expected->tensors()) {
    if (name.ends_with(kAllowed))
      continue;
    auto allowed = expected->find(name + kAllowed);
    auto got = output->find(name);
    if (!allowed || !got)
      return fail(!allowed ? allowed.message() : got.message());
    Result<double> share = compare(tensor, **allowed, **got);
    if (!share)
      return fail(share.message());
    worst = std::max(worst, *share);
    ++count;
  }
  if (count == 0)
    return fail(std::string(argv[1]) + " has no tensors");
  if (argc == 5) {
    auto want = collectivesOf(argv[3]), got = collectivesOf(argv[4]);
    if (!want || !got)
      return fail(!want ? want.message() : got.message());
    for (size_t i = 0; i < std::max(want->size(), got->size()); ++i)
      if (i >= want->size() || i >= got->size() || (*want)[i] != (*got)[i])
        return fail("collective " + std::to_string(i) + " is " +
                    (i < got->size() ? (*got)[i].dump() : "missing") +
                    ", expected " +
                    (i < want->size() ? (*want)[i].dump() : "none"));
  }
  printf("%.0f %% of what is allowed\n", 100 * worst);
  return 0;
}
