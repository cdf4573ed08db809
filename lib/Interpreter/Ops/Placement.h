//===- Placement.h - where the elements of a part are in the whole -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interpreter's only way from local to global indices, made of the index
// maps of Layout/View.h. An op on a device's part asks for elements by their
// global index, so one evaluator serves whole tensors, views and local types.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_OPS_PLACEMENT_H
#define TESSERA_INTERPRETER_OPS_PLACEMENT_H

#include "Interpreter/Ops/NDArray.h"

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <memory>
#include <optional>

namespace tessera::interp {

/// The elements of a tensor of `shape` that one device holds, row-major in its
/// local dimensions.
struct Placement {
  struct Dim {
    int64_t span = 1;           ///< global dimensions taken as one
    std::vector<int64_t> held;  ///< global index of each local one, ascending
    std::vector<int64_t> local; ///< local index of each global one, or -1
  };
  Shape shape;
  std::vector<Dim> dims;

  static Placement whole(const Shape &shape);
  static Placement of(const layout::View &view, const Shape &shape,
                      const layout::Mesh &mesh, int64_t rank);

  Shape localShape() const;
  /// The row-major local number of a global index; nothing if not held.
  std::optional<int64_t> find(llvm::ArrayRef<int64_t> index) const;
  /// Every held element: its global index and its local number, in local order.
  void forEach(
      llvm::function_ref<void(llvm::ArrayRef<int64_t> index, int64_t at)> visit)
      const;
  /// What is held along global dimension `dim`; null inside of a flat one.
  const std::vector<int64_t> *along(size_t dim) const;
};

/// Where a tensor lies on all devices.
struct Layout {
  layout::View view;
  layout::Mesh mesh;
};

/// A tensor during interpretation: one array for all ranks, or one for each.
struct Tensor {
  Shape shape;                  ///< of the whole tensor
  std::optional<Layout> layout; ///< absent: one array, which is the whole
  std::vector<std::shared_ptr<NDArray>> parts;
};

/// The parts of a whole array under `layout` (none: itself). Of a partial value
/// coordinate 0 gets the value, the others the combiner's identity.
Tensor distribute(std::shared_ptr<NDArray> array, std::optional<Layout> layout);

/// The whole array: partial values combined in order of their coordinates,
/// replicas checked to agree in every bit. Raises `largestAddend` to the
/// largest magnitude that was combined.
Result<std::shared_ptr<NDArray>> assemble(const Tensor &tensor,
                                          double &largestAddend);

} // namespace tessera::interp

#endif // TESSERA_INTERPRETER_OPS_PLACEMENT_H
