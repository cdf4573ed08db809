//===- Module.cpp - any bytes as the plan of a module ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An input is a plan, as a FlatBuffer. It gets the hashes that fit it, and
// sections that nobody looks into. What the reader lets through must be found
// on every rank, at the smallest and the largest sizes, or be refused; and so
// must what each collective of it moves.
//
//===----------------------------------------------------------------------===//

#include "Module/Module.h"
#include "Exec/CollectivePlan.h"
#include "Exec/LocalTensors.h"
#include "Fuzz.h"

#include <algorithm>
#include <cstring>
#include <random>

using namespace tessera;

/// Devices, elements and tensors up to which collectives are planned.
static constexpr int64_t kMaxDevices = 8, kMaxElements = 4096;

static int64_t elementsOf(const layout::Shape &shape) {
  __int128 count = 1;
  for (int64_t extent : shape)
    count = std::min<__int128>(count * std::max<int64_t>(extent, 1), INT64_MAX);
  return int64_t(count);
}

static void onRank(const ModuleReader &module, int rank,
                   const std::vector<int64_t> &sizes) {
  Result<Tensors> tensors = Tensors::create(module, rank, sizes);
  if (!tensors)
    return;
  const fb::PlanT &plan = module.plan();
  for (size_t i = 0; i < plan.tensors.size(); ++i)
    if (Result<const LocalTensor *> tensor = tensors->get(int(i)))
      FUZZ_CHECK((*tensor)->elements() >= 0 && (*tensor)->root >= 0 &&
                 (*tensor)->sizes.size() == (*tensor)->strides.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const fb::CollectiveT *collective = plan.steps[i]->action.AsCollective();
    if (!collective)
      continue;
    auto isSmall = [&](const fb::Pair &pair) {
      Result<const LocalTensor *> from = tensors->get(pair.source());
      return from && elementsOf((*from)->globalShape) <= kMaxElements;
    };
    if (!std::ranges::all_of(pairsOf(*collective), isSmall))
      continue;
    Result<CollectivePlan> moves =
        CollectivePlan::create(*collective, module.axes(int(i)), *tensors);
    FUZZ_CHECK(moves || !moves.message().empty());
  }
}

int test::fuzzOne(std::string_view input) {
  ModuleBuilder builder;
  builder.setPlan(std::string(input));
  builder.setCode("nobody loads it");
  builder.setConstants(std::string(4096, '\0'));
  builder.setFeatures(kFeatureAlternatives | kFeatureSums | kFeatureAddends |
                      kFeatureGroups | kFeatureAttentionGrads |
                      kFeatureFetches | kFeatureDevices);
  Result<ModuleReader> module = ModuleReader::read(builder.build());
  if (!module) {
    FUZZ_CHECK(!module.message().empty());
    return 0;
  }
  const fb::PlanT &plan = module->plan();
  if (plan.symbols.size() > 4 || plan.tensors.size() > 256)
    return 0;
  std::vector<int64_t> least, most;
  for (const auto &symbol : plan.symbols) {
    least.push_back(0);
    most.push_back(symbol->maximum);
  }
  int64_t ranks = std::min(module->mesh().numDevices(), kMaxDevices);
  for (int rank = 0; rank < ranks; ++rank) {
    onRank(*module, rank, most);
    if (!least.empty())
      onRank(*module, rank, least);
  }
  return 0;
}

/// Offsets in a FlatBuffer are relative: most that is put in or taken out of
/// one ends its being one. So a few bytes or words become others, in place.
extern "C" __attribute__((visibility("default"))) size_t
LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);
extern "C" __attribute__((visibility("default"))) size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                        unsigned seed) {
  std::minstd_rand random(seed);
  if (size < 8 || random() % 8 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  for (unsigned count = 1 + random() % 3; count; --count) {
    static const int64_t numbers[] = {
        0, 1, -1, 2, 3, 8, 16, 64, 255, INT32_MAX, INT64_MAX, INT64_MIN};
    int64_t number = numbers[random() % std::size(numbers)];
    size_t bytes = size_t(1) << random() % 4;
    size_t at = random() % (size / bytes) * bytes;
    if (random() % 2)
      std::memcpy(data + at, data + random() % (size / bytes) * bytes, bytes);
    else if (random() % 2)
      std::memcpy(data + at, &number, bytes);
    else
      data[at] += random() % 2 ? 1 : -1;
  }
  return size;
}
