//===- Placement.cpp - where the elements of a part are in the whole -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Ops/Placement.h"

#include <bit>
#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

Placement Placement::whole(const Shape &shape) {
  Placement placement;
  placement.shape = shape;
  for (int64_t extent : shape) {
    Dim dim;
    for (int64_t i = 0; i < extent; ++i)
      dim.held.push_back(i);
    dim.local = dim.held;
    placement.dims.push_back(std::move(dim));
  }
  return placement;
}

Placement Placement::of(const layout::View &view, const Shape &shape,
                        const layout::Mesh &mesh, int64_t rank) {
  Placement placement;
  placement.shape = shape;
  layout::Coords coords = mesh.coordsOfRank(rank);
  for (size_t d = 0; d < view.dims.size(); ++d) {
    const layout::Product &product = view.dims[d].product;
    int64_t bound = layout::boundOf(view, d, shape);
    int64_t extent = layout::localExtent(product, bound, mesh, coords);
    Dim dim;
    dim.span = view.dims[d].span;
    dim.local.assign(bound, -1);
    for (int64_t i = 0; i < extent; ++i) {
      int64_t global = layout::localToGlobal(product, bound, mesh, coords, i);
      dim.held.push_back(global);
      dim.local[global] = i;
    }
    placement.dims.push_back(std::move(dim));
  }
  return placement;
}

Shape Placement::localShape() const {
  Shape local;
  for (const Dim &dim : dims)
    local.push_back(dim.held.size());
  return local;
}

std::optional<int64_t> Placement::find(ArrayRef<int64_t> index) const {
  int64_t at = 0;
  size_t d = 0;
  for (const Dim &dim : dims) {
    int64_t number = 0;
    for (int64_t i = 0; i < dim.span; ++i, ++d) {
      if (index[d] < 0 || index[d] >= shape[d])
        return std::nullopt;
      number = number * shape[d] + index[d];
    }
    int64_t local = dim.local[number];
    if (local < 0)
      return std::nullopt;
    at = at * static_cast<int64_t>(dim.held.size()) + local;
  }
  return at;
}

void Placement::forEach(
    function_ref<void(ArrayRef<int64_t>, int64_t)> visit) const {
  Shape local = localShape();
  int64_t count = numElements(local);
  Index at(dims.size(), 0), index(shape.size());
  for (int64_t number = 0; number < count; ++number) {
    size_t d = 0;
    for (auto [k, dim] : llvm::enumerate(dims)) {
      int64_t global = dim.held[at[k]];
      for (int64_t i = dim.span; i-- > 0;) {
        index[d + i] = global % shape[d + i];
        global /= shape[d + i];
      }
      d += dim.span;
    }
    visit(index, number);
    for (size_t k = dims.size(); k-- > 0;) {
      if (++at[k] < local[k])
        break;
      at[k] = 0;
    }
  }
}

const std::vector<int64_t> *Placement::along(size_t dim) const {
  size_t d = 0;
  for (const Dim &own : dims) {
    if (d == dim && own.span == 1)
      return &own.held;
    d += own.span;
  }
  return nullptr;
}

/// The number of a device's coordinates along the axes of partial states.
static int64_t addendOf(const Layout &layout, int64_t rank, int64_t &count) {
  layout::Coords coords = layout.mesh.coordsOfRank(rank);
  int64_t number = 0;
  count = 1;
  for (const layout::Partial &partial : layout.view.partial)
    for (const layout::SubAxis &sub : partial.axes) {
      number = number * sub.size + sub.digit(layout.mesh, coords);
      count *= sub.size;
    }
  return number;
}

/// The one combiner of a partial value; nothing if it is whole or has several.
static std::optional<layout::Combiner> combinerOf(const layout::View &view) {
  std::optional<layout::Combiner> combiner;
  for (const layout::Partial &partial : view.partial) {
    if (combiner && *combiner != partial.combiner)
      return std::nullopt;
    combiner = partial.combiner;
  }
  return combiner;
}

Tensor interp::distribute(std::shared_ptr<NDArray> array,
                          std::optional<Layout> layout) {
  Tensor tensor{array->shape, std::move(layout), {}};
  if (!tensor.layout) {
    tensor.parts.push_back(std::move(array));
    return tensor;
  }
  for (int64_t rank = 0; rank < tensor.layout->mesh.numDevices(); ++rank) {
    Placement place = Placement::of(tensor.layout->view, tensor.shape,
                                    tensor.layout->mesh, rank);
    auto part = std::make_shared<NDArray>(array->type, place.localShape());
    int64_t count;
    bool first = addendOf(*tensor.layout, rank, count) == 0;
    Scalar identity =
        first
            ? Scalar{}
            : identityOf(tensor.layout->view.partial[0].combiner, array->type);
    place.forEach([&](ArrayRef<int64_t> index, int64_t at) {
      part->data[at] =
          first ? array->data[linearize(index, array->shape)] : identity;
    });
    tensor.parts.push_back(std::move(part));
  }
  return tensor;
}

Result<std::shared_ptr<NDArray>> interp::assemble(const Tensor &tensor,
                                                  double &largestAddend) {
  if (!tensor.layout)
    return tensor.parts[0];
  const Layout &layout = *tensor.layout;
  Type type = tensor.parts[0]->type;
  std::optional<layout::Combiner> combiner = combinerOf(layout.view);
  if (!combiner && !layout.view.partial.empty())
    return Error{
        "a value is partial by two combiners; the interpreter knows no "
        "order between them"};
  int64_t numAddends;
  addendOf(layout, 0, numAddends);
  // Of each addend its elements, and the rank that gave each.
  std::vector<NDArray> addends(numAddends, NDArray(type, tensor.shape));
  std::vector<std::vector<int64_t>> from(
      numAddends, std::vector<int64_t>(numElements(tensor.shape), -1));
  std::string error;
  for (int64_t rank = 0; rank < layout.mesh.numDevices(); ++rank) {
    int64_t addend = addendOf(layout, rank, numAddends);
    Placement place =
        Placement::of(layout.view, tensor.shape, layout.mesh, rank);
    const NDArray &part = *tensor.parts[rank];
    if (part.shape != place.localShape())
      return Error{"rank " + std::to_string(rank) + " has a part of shape " +
                   indexText(part.shape) + " where its view gives " +
                   indexText(place.localShape())};
    place.forEach([&](ArrayRef<int64_t> index, int64_t at) {
      int64_t to = linearize(index, tensor.shape);
      int64_t &owner = from[addend][to];
      Scalar &value = addends[addend].data[to];
      if (owner < 0) {
        owner = rank;
        value = part.data[at];
      } else if (std::bit_cast<int64_t>(value) !=
                     std::bit_cast<int64_t>(part.data[at]) &&
                 error.empty()) {
        error = "replicas differ at " + indexText(index) + ": " +
                toString(value, type) + " on rank " + std::to_string(owner) +
                ", " + toString(part.data[at], type) + " on rank " +
                std::to_string(rank);
      }
    });
  }
  for (const std::vector<int64_t> &owners : from)
    for (auto [at, owner] : llvm::enumerate(owners))
      if (owner < 0 && error.empty())
        error =
            "no rank holds element " + indexText(delinearize(at, tensor.shape));
  if (!error.empty())
    return Error{error};
  auto result = std::make_shared<NDArray>(std::move(addends[0]));
  for (int64_t a = 0; a < numAddends && numAddends > 1; ++a)
    for (size_t i = 0; i < result->data.size(); ++i) {
      Scalar value = a ? addends[a].data[i] : result->data[i];
      if (result->isFloat() && std::isfinite(value.real))
        largestAddend = std::max(largestAddend, std::fabs(value.real));
      if (a)
        result->data[i] = combine(*combiner, type, result->data[i], value);
    }
  return result;
}
