//===- Portable.cpp - GPUs from sm_80 on ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A100, L4, RTX, and what comes after them: nothing of one architecture alone,
// and PTX beside the cubin. So a module runs on its GPU and on all later ones.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/Target.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

static constexpr int kFirst = 80;

namespace {
/// The largest GPU of an architecture. Links and arithmetic are by the data
/// sheets, in the part that an H200 reaches of its own.
struct Known {
  int architecture;
  plan::Limits limits;
  layout::Machine machine;
};

class Portable final : public GPUTarget {
public:
  Portable(StringRef name, const Known &known)
      : GPUTarget(name.str(), known.limits, known.machine) {}
};
} // namespace

static const Known &findKnown(int architecture) {
  static const layout::Machine pcie{
      .latency = 1e-5, .bandwidth = 20e9, .copy = 300e9, .loops = 45e12};
  static const layout::Machine nvlink5{
      .bandwidth = 600e9, .copy = 3300e9, .loops = 700e12};
  static const Known known[] = {
      {kFirst,
       {108, 2048, 164 << 10},
       {.bandwidth = 200e9, .copy = 800e9, .loops = 95e12}},
      {86, {84, 1536, 100 << 10}, pcie},
      {89, {142, 1536, 100 << 10}, pcie},
      {90, {132, 2048, 228 << 10}, {}},
      {100, {148, 2048, 228 << 10}, nvlink5},
      {110, {84, 1536, 100 << 10}, pcie},
      {120, {188, 1536, 100 << 10}, pcie},
  };
  // Of one that is not there, as sm_103, the nearest before it.
  const Known *found = known;
  for (const Known &each : known)
    if (each.architecture <= architecture)
      found = &each;
  return *found;
}

std::unique_ptr<plan::Target> cuda::makePortable(StringRef name) {
  int architecture = 0;
  StringRef number = name;
  if (!number.consume_front("cuda:sm_") || number.starts_with("0") ||
      number.getAsInteger(10, architecture) || architecture < kFirst)
    return nullptr;
  return std::make_unique<Portable>(name, findKnown(architecture));
}
