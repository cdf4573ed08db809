//===- Elements.cpp - the elements of a tensor's local part ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elements.h"

#include "Support/DType.h"

using namespace tessera;
using namespace tessera::run;

Elements::Elements(const GlobalTensor &tensor, int rank) {
  const layout::Coords coords = tensor.mesh.coordsOfRank(rank);
  const layout::Shape sizes =
      layout::localShape(tensor.view, tensor.shape, tensor.mesh, coords);
  const std::vector<int64_t> strides = layout::localStrides(tensor.view, sizes);
  for (int64_t size : tensor.shape)
    all *= size;
  // A dimension of the view stands for `span` adjacent ones, as one.
  int64_t inner = all;
  for (size_t d = 0; d < sizes.size(); ++d) {
    count *= sizes[d];
    const int64_t bound = layout::boundOf(tensor.view, d, tensor.shape);
    inner = bound ? inner / bound : 0;
    Dim &dim = dims.emplace_back(Dim{strides[d], {}});
    for (const layout::Run &run : layout::localRuns(tensor.view.dims[d].product,
                                                    bound, tensor.mesh, coords))
      for (int64_t i = 0; i < run.length; ++i)
        dim.global.push_back((run.global + i) * inner);
  }
}

layout::Shape run::indexOf(int64_t place, const layout::Shape &shape) {
  layout::Shape index(shape.size());
  for (size_t d = shape.size(); d-- > 0; place /= shape[d])
    index[d] = place % shape[d];
  return index;
}

std::string run::indexText(int64_t place, const layout::Shape &shape) {
  std::string text;
  for (int64_t each : indexOf(place, shape))
    text += (text.empty() ? "" : ", ") + std::to_string(each);
  return "[" + text + "]";
}

double run::valueOf(const void *data, DType dtype, int64_t place) {
  double value;
  convertElement(static_cast<const char *>(data) + place * info(dtype).bytes,
                 dtype, &value, DType::F64);
  return value;
}
