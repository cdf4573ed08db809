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

/// Of the largest GPU of an architecture; of one that is not known, what all
/// have.
static plan::Limits limitsOf(int architecture) {
  switch (architecture) {
  case 80:
    return {108, 2048, 164 << 10};
  case 89:
    return {142, 1536, 100 << 10};
  case 90:
    return {132, 2048, 228 << 10};
  case 100:
    return {148, 2048, 228 << 10};
  case 120:
    return {188, 1536, 100 << 10};
  default:
    return {84, 1536, 100 << 10};
  }
}

/// Links and arithmetic by the data sheets, in the part that an H200 reaches of
/// its own: NVLink where the largest GPU of an architecture has it, else PCIe.
static layout::Machine machineOf(int architecture) {
  switch (architecture) {
  case 80:
    return {.bandwidth = 200e9, .copy = 800e9, .loops = 95e12};
  case 90:
    return {};
  case 100:
  case 103:
    return {.bandwidth = 600e9, .copy = 3300e9, .loops = 700e12};
  default:
    return {.latency = 1e-5, .bandwidth = 20e9, .copy = 300e9, .loops = 45e12};
  }
}

namespace {
class Portable final : public GPUTarget {
public:
  Portable(StringRef name, int architecture)
      : GPUTarget(name.str(), limitsOf(architecture), machineOf(architecture)) {
  }
};
} // namespace

std::unique_ptr<plan::Target> cuda::makePortable(StringRef name) {
  int architecture = 0;
  StringRef number = name;
  if (!number.consume_front("cuda:sm_") || number.starts_with("0") ||
      number.getAsInteger(10, architecture) || architecture < kFirst)
    return nullptr;
  return std::make_unique<Portable>(name, architecture);
}
