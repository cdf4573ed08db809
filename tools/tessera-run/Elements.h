//===- Elements.h - the elements of a tensor's local part -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUN_ELEMENTS_H
#define TESSERA_RUN_ELEMENTS_H

#include "Tensors/Transfer.h"

namespace tessera::run {

/// Where the elements that one rank holds are in its memory and in the global
/// tensor.
class Elements {
public:
  Elements(const GlobalTensor &tensor, int rank);

  /// Calls `visit(in memory, global)` with both places, row-major, for each.
  template <typename Visit> void forEach(const Visit &visit) const {
    if (count > 0)
      walk(0, 0, 0, visit);
  }
  /// Of the whole tensor.
  int64_t globalCount() const { return all; }

private:
  template <typename Visit>
  void walk(size_t dim, int64_t local, int64_t global,
            const Visit &visit) const {
    if (dim == dims.size())
      return visit(local, global);
    for (int64_t place : dims[dim].global) {
      walk(dim + 1, local, global + place, visit);
      local += dims[dim].stride;
    }
  }

  struct Dim {
    int64_t stride;              ///< in memory
    std::vector<int64_t> global; ///< by local index: its share of the place
  };
  std::vector<Dim> dims;
  int64_t count = 1, all = 1;
};

/// Of a place in a row-major tensor; as text "[3, 17]".
layout::Shape indexOf(int64_t place, const layout::Shape &shape);
std::string indexText(int64_t place, const layout::Shape &shape);

/// An element as a number.
double valueOf(const void *data, DType dtype, int64_t place);

} // namespace tessera::run

#endif // TESSERA_RUN_ELEMENTS_H
