//===- LocalTensors.cpp - the tensors of a plan on one rank ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tensor that owns memory is dense in the order of its view's `alloc`. An
// alias is worked out from its source's sizes and strides. A constant lies in
// the module as the whole global tensor; what a rank holds of it is a window
// where one will do, else a dense copy made when the module is bound, which is
// then the memory of that tensor.
//
//===----------------------------------------------------------------------===//

#include "Exec/LocalTensors.h"
#include "Exec/Strided.h"
#include "Layout/Transfers.h"
#include "Support/Try.h"

#include <algorithm>
#include <numeric>

using namespace tessera;
using layout::Shape;

/// Of a tensor: so that the sums of a plan's do not overflow.
static constexpr int64_t kMostBytes = int64_t(1) << 52;

int64_t LocalTensor::elements() const { return product(sizes); }

Result<Tensors> Tensors::create(const ModuleReader &module, int rank,
                                std::span<const int64_t> symbols) {
  const auto &declared = module.plan().symbols;
  if (symbols.size() != declared.size())
    return Error{"the module has " + std::to_string(declared.size()) +
                 " symbols, " + std::to_string(symbols.size()) +
                 " values were given"};
  for (size_t i = 0; i < symbols.size(); ++i) {
    std::string text =
        "size " + declared[i]->name + " = " + std::to_string(symbols[i]);
    if (symbols[i] < 0)
      return Error{text + " is negative"};
    if (symbols[i] > declared[i]->maximum)
      return Error{text + " is above its declared maximum " +
                   std::to_string(declared[i]->maximum)};
    if (symbols[i] % declared[i]->multiple)
      return Error{text + " is not a multiple of " +
                   std::to_string(declared[i]->multiple) + ", as declared"};
  }
  Tensors tensors;
  tensors.reader = &module;
  tensors.self = rank;
  tensors.symbols.assign(symbols.begin(), symbols.end());
  tensors.coordinates = module.mesh().coordsOfRank(rank);
  tensors.known.resize(module.plan().tensors.size());
  tensors.addresses.resize(module.plan().tensors.size());
  return tensors;
}

std::string Tensors::name(int tensor) const {
  return "tensor '" + reader->plan().tensors[tensor]->name + "'";
}

Result<int64_t> Tensors::value(const fb::ExtentT &extent) const {
  if (std::optional<int64_t> value = evaluate(extent, symbols))
    return *value;
  return Error{"extent " + toString(extent, reader->plan()) + " overflows"};
}

Result<int64_t> Tensors::value(const fb::ScalarT &scalar,
                               const fb::LaunchT &launch) {
  switch (scalar.kind) {
  case fb::ScalarKind::Value:
    return value(*scalar.extent);
  case fb::ScalarKind::Coord:
    return coordsOf(launch.tensors.empty() ? -1
                                           : launch.tensors[0])[scalar.axis];
  default: { // Local
    Result<const LocalTensor *> tensor = get(scalar.tensor);
    if (!tensor)
      return tensor.error();
    return (*tensor)->sizes[scalar.dim];
  }
  }
}

layout::Coords Tensors::coordsOf(int tensor) const {
  return tensor < 0 || reader->plan().tensors[tensor]->devices.empty()
             ? coordinates
             : reader->mesh(tensor).coordsOfRank(self);
}

Result<const LocalTensor *> Tensors::get(int tensor) {
  // Sources first, without recursion: a chain may be long.
  std::vector<int> chain;
  for (int next = tensor; !known[next];) {
    chain.push_back(next);
    const auto &alias = reader->plan().tensors[next]->alias;
    if (!alias)
      break;
    next = alias->source;
  }
  while (!chain.empty()) {
    Result<LocalTensor> local = resolve(chain.back());
    if (!local)
      return Error{name(chain.back()) + ": " + local.message()};
    known[chain.back()] = std::move(*local);
    chain.pop_back();
  }
  return &*known[tensor];
}

int64_t Tensors::bytes(const LocalTensor &root) const {
  return root.elements() * root.elementBytes();
}

Result<int64_t> Tensors::maxBytes(int root) {
  Result<const LocalTensor *> local = get(root);
  if (!local)
    return local.error();
  const LocalTensor &tensor = **local;
  return product(layout::maxLocalShape(tensor.view, tensor.globalShape,
                                       reader->mesh())) *
         tensor.elementBytes();
}

Result<LocalTensor> Tensors::resolve(int id) {
  const fb::TensorT &tensor = *reader->plan().tensors[id];
  LocalTensor result;
  result.dtype = static_cast<DType>(tensor.dtype);
  result.root = id;
  result.address = addresses[id];
  int64_t bytes = result.elementBytes();
  for (const auto &extent : tensor.shape) {
    Result<int64_t> size = value(*extent);
    if (!size)
      return size.error();
    if (*size < 0)
      return Error{"extent " + toString(*extent, reader->plan()) + " is " +
                   std::to_string(*size)};
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(*size, 1), &bytes) ||
        bytes > kMostBytes)
      return Error{"its size overflows"};
    result.globalShape.push_back(*size);
  }
  const layout::Mesh &mesh = reader->mesh(id);
  result.mesh = &mesh;
  // Static ones were when the plan was checked.
  if (staticShape(tensor) != result.globalShape)
    TSR_TRY(layout::verify(reader->view(id), result.globalShape, mesh));
  result.view = layout::instantiate(reader->view(id), result.globalShape);
  result.sizes =
      layout::localShape(result.view, result.globalShape, mesh, coordsOf(id));
  result.strides = layout::localStrides(result.view, result.sizes);
  if (result.view.alloc) {
    result.order.assign(result.view.alloc->begin(), result.view.alloc->end());
  } else {
    result.order.resize(result.sizes.size());
    std::iota(result.order.begin(), result.order.end(), 0);
  }
  if (tensor.alias) {
    TSR_TRY(applyAlias(id, *known[tensor.alias->source], result));
  } else if (tensor.storage == fb::Storage::Constant) {
    TSR_TRY(applyConstant(result));
  }
  return result;
}

/// The box of `from` that is all of `to` on this rank, if it is one box there
/// with equal dimensions. Where `to` has no elements, an empty box.
static std::optional<layout::Box> window(const layout::View &from,
                                         const LocalTensor &to,
                                         const layout::Mesh &mesh, int rank) {
  layout::View target = to.view;
  target.partial = from.partial;
  if (to.elements() == 0)
    return layout::Box{Shape(to.sizes.size(), 0), to.sizes};
  layout::Transfers moves =
      layout::expandTransfers(from, target, to.globalShape, mesh, rank);
  if (!moves.receives.empty() || moves.keepFrom.boxes.size() != 1 ||
      moves.keepFrom.boxes[0].size != to.sizes)
    return std::nullopt;
  return moves.keepFrom.boxes[0];
}

Status Tensors::applyAlias(int id, const LocalTensor &source,
                           LocalTensor &result) {
  const fb::AliasT &alias = *reader->plan().tensors[id]->alias;
  result.root = source.root;
  result.address = source.address;
  result.offset = source.offset;
  result.inModule = source.inModule;
  std::string of = " of " + name(alias.source);
  auto moveTo = [&](const Shape &offsets) {
    for (size_t i = 0; i < offsets.size(); ++i)
      result.offset += offsets[i] * source.strides[i];
    result.strides = source.strides;
    result.order = source.order;
  };
  switch (alias.kind) {
  case fb::AliasKind::Reshape: {
    std::optional<Shape> strides =
        reshapeStrides(source.sizes, source.strides, result.sizes);
    if (!strides)
      return Error{"it cannot be a reshape" + of + " in place"};
    result.strides = *strides;
    result.order.resize(result.sizes.size());
    std::iota(result.order.begin(), result.order.end(), 0);
    return Ok{};
  }
  case fb::AliasKind::Transpose: {
    std::vector<int> position(alias.dims.size());
    for (size_t i = 0; i < alias.dims.size(); ++i) {
      result.strides[i] = source.strides[alias.dims[i]];
      position[alias.dims[i]] = i;
      if (result.sizes[i] != source.sizes[alias.dims[i]])
        return Error{"it is no transposition" + of};
    }
    for (size_t i = 0; i < result.order.size(); ++i)
      result.order[i] = position[source.order[i]];
    return Ok{};
  }
  case fb::AliasKind::Slice: {
    Shape offsets;
    for (size_t i = 0; i < alias.offsets.size(); ++i) {
      Result<int64_t> global = value(*alias.offsets[i]);
      if (!global)
        return global.error();
      int64_t bound = layout::boundOf(source.view, i, source.globalShape);
      bool inside = *global >= 0 && *global <= bound;
      int64_t offset =
          inside ? layout::localExtent(source.view.dims[i].product, *global,
                                       *result.mesh, coordsOf(id))
                 : 0;
      if (!inside || result.sizes[i] > source.sizes[i] - offset)
        return Error{"it reaches beyond dimension " + std::to_string(i) + of};
      offsets.push_back(offset);
    }
    moveTo(offsets);
    return Ok{};
  }
  case fb::AliasKind::Shard: {
    if (source.globalShape != result.globalShape)
      return Error{"it is no shard" + of + ", the global shapes differ"};
    std::optional<layout::Box> box =
        window(source.view, result, *result.mesh, self);
    if (!box)
      return Error{"its part" + of + " is not one window"};
    moveTo(box->offset);
    return Ok{};
  }
  case fb::AliasKind::Same:
    if (source.sizes != result.sizes)
      return Error{"it has other local sizes than its buffer, that" + of};
    moveTo({});
    return Ok{};
  }
  return Ok{};
}

Status Tensors::applyConstant(LocalTensor &result) {
  bool rowMajorOrder = std::is_sorted(result.order.begin(), result.order.end());
  if (!rowMajorOrder || result.sizes.size() != result.globalShape.size())
    return Ok{};
  layout::View whole = layout::instantiate(
      layout::View::replicated(result.globalShape.size()), result.globalShape);
  std::optional<layout::Box> box = window(whole, result, *result.mesh, self);
  if (!box)
    return Ok{};
  result.inModule = true;
  result.strides = rowMajor(result.globalShape);
  for (size_t i = 0; i < box->offset.size(); ++i)
    result.offset += box->offset[i] * result.strides[i];
  return Ok{};
}
