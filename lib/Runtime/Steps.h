//===- Steps.h - the steps of a plan as works -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STEPS_H
#define TESSERA_RUNTIME_STEPS_H

#include "Backends/CPU/Code.h"
#include "Runtime/Collectives.h"

namespace tessera {

/// The tensors that a step reads or writes.
std::vector<int> tensorsOf(const fb::StepT &step);

/// Prepares step `index` of the module's plan.
Result<std::unique_ptr<Work>> makeWork(int index, Tensors &tensors,
                                       const Code &code);

/// A copy between two strided buffers of equal sizes.
class CopyWork final : public Work {
public:
  CopyWork(CopyLoop loop, Place target, Place source)
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

} // namespace tessera

#endif // TESSERA_RUNTIME_STEPS_H
