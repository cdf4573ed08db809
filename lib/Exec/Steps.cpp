//===- Steps.cpp - the steps of a plan as works ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which of the backend's works a step is.
//
//===----------------------------------------------------------------------===//

#include "Exec/Steps.h"

using namespace tessera;

using Made = Result<std::unique_ptr<Work>>;

namespace {
struct Make {
  BackendModule &module;
  Tensors &tensors;
  const std::vector<layout::SubAxis> &axes;

  Made operator()(const fb::LaunchT &launch) {
    return module.makeLaunch(launch, tensors);
  }
  Made operator()(const fb::ContractT &contract) {
    return module.makeContract(contract, tensors);
  }
  Made operator()(const fb::AttendT &attend) {
    return module.makeAttend(attend, tensors);
  }
  Made operator()(const fb::CollectiveT &collective) {
    return module.makeCollective(collective, axes, tensors);
  }
  Made operator()(const fb::CopyT &copy) {
    const LocalTensor &source = **tensors.get(copy.source);
    const LocalTensor &target = **tensors.get(copy.target);
    if (source.sizes != target.sizes)
      return Error{"source and target of a copy have different local shapes"};
    return module.makeCopy(CopyLoop(source.elementBytes(), source.sizes,
                                    target.strides, source.strides),
                           placeOf(target), placeOf(source));
  }
};
} // namespace

Made tessera::makeWork(int index, Tensors &tensors, BackendModule &module) {
  const fb::StepT &step = *tensors.module().plan().steps[index];
  for (int id : tensorsOf(step))
    if (Result<const LocalTensor *> tensor = tensors.get(id); !tensor)
      return tensor.error();
  return visit(step.action,
               Make{module, tensors, tensors.module().axes(index)});
}
