//===- DamagedPlans.h - plans that are wrong under a fitting hash ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_RUNTIME_DAMAGEDPLANS_H
#define TESSERA_TEST_RUNTIME_DAMAGEDPLANS_H

#include "Ranks.h"

#include <random>

namespace tessera::test {

/// How many of `rounds` plans were loaded, and the sizes they could be bound
/// with.
struct Survivors {
  int rounds, loads = 0, binds = 0;
};

/// Loads modules of `plan` in which up to 3 bytes are others, completed by
/// `finish`, and asks for their memory with each of `sizes`. What the reader
/// lets through must be bound or refused.
inline Survivors
loadDamaged(tessera_context *context, const fb::PlanT &plan,
            const std::vector<std::vector<int64_t>> &sizes,
            const std::function<void(ModuleBuilder &)> &finish = nullptr) {
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishPlanBuffer(builder, fb::Plan::Pack(builder, &plan));
  const std::string bytes(reinterpret_cast<char *>(builder.GetBufferPointer()),
                          builder.GetSize());
  std::mt19937 random(1);
  Survivors result{std::getenv("TESSERA_LONG") ? 200000 : 4000};
  for (int i = 0; i < result.rounds; ++i) {
    std::string damaged = bytes;
    for (unsigned k = i ? 1 + random() % 3 : 0; k > 0; --k)
      damaged[random() % damaged.size()] =
          random() % 2 ? random() : random() % 10;
    ModuleBuilder module;
    module.setPlan(damaged);
    if (finish)
      finish(module);
    const std::string file = module.build();
    tessera_module *loaded;
    if (tessera_status *status =
            tessera_module_load(context, file.data(), file.size(), &loaded)) {
      const std::string why = take(status);
      EXPECT_NE(why, "") << i;
      EXPECT_NE(i, 0) << "the plan itself is wrong: " << why;
      continue;
    }
    ++result.loads;
    auto memory = sized<tessera_memory>();
    for (const std::vector<int64_t> &each : sizes)
      result.binds += take(tessera_module_memory(loaded, each.data(),
                                                 each.size(), &memory)) == "";
    tessera_module_destroy(loaded);
  }
  return result;
}

} // namespace tessera::test

#endif // TESSERA_TEST_RUNTIME_DAMAGEDPLANS_H
