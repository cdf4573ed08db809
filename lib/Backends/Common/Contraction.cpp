//===- Contraction.cpp - the loops of a product of tensors ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends/Common/Contraction.h"

#include <algorithm>
#include <map>
#include <string>

using namespace tessera;

Contraction::Loops Contraction::collapse(Loops loops) {
  std::sort(loops.begin(), loops.end(), [](const Loop &x, const Loop &y) {
    for (int t : {C, A, B})
      if (x.stride[t] != y.stride[t])
        return x.stride[t] > y.stride[t];
    return x.size > y.size;
  });
  Loops result;
  for (const Loop &loop : loops) {
    if (loop.size == 1)
      continue;
    bool merges = !result.empty();
    for (int t = 0; merges && t < 3; ++t)
      merges = result.back().stride[t] == loop.stride[t] * loop.size;
    if (merges) {
      int64_t size = result.back().size;
      result.back() = loop;
      result.back().size *= size;
    } else {
      result.push_back(loop);
    }
  }
  return result;
}

Result<Contraction> Contraction::create(const Operand &a, const Operand &b,
                                        const Operand &c) {
  Contraction contraction;
  const Operand *operands[] = {&a, &b, &c};
  struct Label : Loop {
    bool in[3] = {false, false, false};
  };
  std::map<int32_t, Label> labels;
  for (int t = 0; t < 3; ++t) {
    const Operand &operand = *operands[t];
    contraction.dtypes[t] = operand.dtype;
    for (size_t d = 0; d < operand.labels.size(); ++d) {
      auto [found, fresh] = labels.try_emplace(operand.labels[d]);
      Label &label = found->second;
      if (fresh)
        label.size = operand.sizes[d];
      else if (label.size != operand.sizes[d])
        return Error{"operands of a product differ in the local extent of "
                     "label " +
                     std::to_string(operand.labels[d]) + ": " +
                     std::to_string(label.size) + " and " +
                     std::to_string(operand.sizes[d])};
      label.in[t] = true;
      label.stride[t] = operand.strides[d];
    }
  }
  for (auto &[id, label] : labels) {
    if (label.size == 0)
      (label.in[C] ? contraction.empty : contraction.sumsNothing) = true;
    if (!label.in[C])
      contraction.sums.push_back(label);
    else if (label.in[A] && label.in[B])
      contraction.batches.push_back(label);
    else
      (label.in[A] ? contraction.rows : contraction.columns).push_back(label);
  }
  return contraction;
}
