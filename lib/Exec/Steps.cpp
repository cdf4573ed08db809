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

Result<std::unique_ptr<Work>> tessera::makeWork(int index, Tensors &tensors,
                                                BackendModule &module) {
  const fb::StepT &step = *tensors.module().plan().steps[index];
  for (int id : tensorsOf(step))
    if (Result<const LocalTensor *> tensor = tensors.get(id); !tensor)
      return tensor.error();
  switch (step.action.type) {
  case fb::Action::Launch:
    return module.makeLaunch(*step.action.AsLaunch(), tensors);
  case fb::Action::Contract:
    return module.makeContract(*step.action.AsContract(), tensors);
  case fb::Action::Attend:
    return module.makeAttend(*step.action.AsAttend(), tensors);
  case fb::Action::Collective:
    return module.makeCollective(*step.action.AsCollective(),
                                 tensors.module().axes(index), tensors);
  default: { // Copy
    const LocalTensor &source = **tensors.get(step.action.AsCopy()->source);
    const LocalTensor &target = **tensors.get(step.action.AsCopy()->target);
    if (source.sizes != target.sizes)
      return Error{"source and target of a copy have different local shapes"};
    return module.makeCopy(CopyLoop(source.elementBytes(), source.sizes,
                                    target.strides, source.strides),
                           placeOf(target), placeOf(source));
  }
  }
}
