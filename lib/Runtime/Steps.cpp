//===- Steps.cpp - the steps of a plan as works ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which tensors a step touches, and which of the backend's works it is.
//
//===----------------------------------------------------------------------===//

#include "Runtime/Steps.h"

using namespace tessera;

std::vector<int> tessera::tensorsOf(const fb::StepT &step) {
  switch (step.action.type) {
  case fb::Action::Launch: {
    const auto &tensors = step.action.AsLaunch()->tensors;
    return {tensors.begin(), tensors.end()};
  }
  case fb::Action::Contract: {
    const fb::ContractT &contract = *step.action.AsContract();
    std::vector<int> ids = {contract.a, contract.b, contract.c};
    for (int optional : {contract.bias, contract.aux})
      if (optional >= 0)
        ids.push_back(optional);
    return ids;
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
